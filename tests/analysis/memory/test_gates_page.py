"""The examples of docs/analysis-gates.md run and print what the page says, and its figures are there."""

from __future__ import annotations

from pathlib import Path

import pytest

from pages import check_examples, check_figures


def test_the_page_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    check_examples("analysis-gates.md", capsys)


def test_the_script_makes_the_figures_of_the_page(tmp_path: Path) -> None:
    check_figures("analysis-gates.md", "theory.py", tmp_path)
