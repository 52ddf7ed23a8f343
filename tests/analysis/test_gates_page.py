"""The examples of docs/analysis-gates.md run and print what the page says, and its figures are there."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from pages import DOCS, check_examples


def test_the_page_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    check_examples("analysis-gates.md", capsys)


def test_the_script_makes_the_figures_of_the_page(tmp_path: Path) -> None:
    runpy.run_path(str(DOCS / "figures" / "theory.py"))["main"](tmp_path)
    shown = re.findall(r"!\[.+\]\(figures/(.+)\)", (DOCS / "analysis-gates.md").read_text())
    assert sorted(shown) == sorted(path.name for path in tmp_path.iterdir())
    for name in shown:
        for figure in (tmp_path / name, DOCS / "figures" / name):
            assert figure.read_bytes().startswith(b"\x89PNG")
            assert figure.stat().st_size < 60_000
