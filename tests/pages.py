"""Runs the examples of a page of the documentation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"


def check_examples(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Every python example of the page runs, in order, and prints what the block of text after it says."""
    text = (DOCS / page).read_text()
    namespace: dict[str, object] = {"__name__": __name__}
    found = re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", text, re.DOTALL)
    assert found
    for code, printed in found:
        exec(compile(code, page, "exec", dont_inherit=True), namespace)
        assert capsys.readouterr().out == printed
