"""The examples of docs/bptt.md run and print what the page says, and its figures are there."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "bptt.md"
FIGURES = PAGE.parent / "figures"


def test_the_examples_print_what_they_say(capsys: pytest.CaptureFixture[str]) -> None:
    examples = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(examples) == PAGE.read_text().count("```python")
    namespace: dict[str, object] = {"__name__": __name__}
    for code, printed in examples:
        exec(code, namespace)
        assert capsys.readouterr().out == printed


def test_the_script_makes_the_figures_of_the_page(tmp_path: Path) -> None:
    runpy.run_path(str(FIGURES / "bptt.py"))["main"](tmp_path)
    shown = re.findall(r"!\[.+\]\(figures/(.+)\)", PAGE.read_text())
    assert sorted(shown) == sorted(path.name for path in tmp_path.iterdir())
    for name in shown:
        for figure in (tmp_path / name, FIGURES / name):
            assert figure.read_bytes().startswith(b"\x89PNG")
            assert figure.stat().st_size < 60_000
