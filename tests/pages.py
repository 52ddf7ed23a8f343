"""Runs the examples of a page of the documentation, and the script of its figures."""

from __future__ import annotations

import operator
import re
import runpy
from collections.abc import Callable
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"


def check_examples(
    page: str, capsys: pytest.CaptureFixture[str], same: Callable[[str, str], bool] = operator.eq
) -> None:
    """Every python example of the page runs, in order, and prints what the block of text after it says."""
    text = (DOCS / page).read_text()
    namespace: dict[str, object] = {"__name__": __name__}
    found = re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", text, re.DOTALL)
    assert found
    for code, printed in found:
        exec(compile(code, page, "exec", dont_inherit=True), namespace)
        told = capsys.readouterr().out
        if not same(told, printed):
            assert told == printed  # where pytest shows the difference


def check_figures(page: str, script: str, directory: Path, most_bytes: int = 60_000) -> None:
    """The script makes the figures that the page shows, and those that lie beside it are there and small."""
    figures = DOCS / "figures"
    runpy.run_path(str(figures / script))["main"](directory)
    shown = re.findall(r"!\[.+\]\((?:docs/)?figures/(.+)\)", (DOCS / page).read_text())
    assert sorted(shown) == sorted(path.name for path in directory.iterdir())
    for name in shown:
        for figure in (directory / name, figures / name):
            assert figure.read_bytes().startswith(b"\x89PNG")
            assert figure.stat().st_size < most_bytes
