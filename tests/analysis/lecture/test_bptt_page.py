"""The examples of docs/bptt.md run and print what the page says, and its figures are there."""

from __future__ import annotations

from pathlib import Path

import pytest

from pages import check_examples, check_figures


def test_the_examples_print_what_they_say(capsys: pytest.CaptureFixture[str]) -> None:
    check_examples("bptt.md", capsys)


def test_the_script_makes_the_figures_of_the_page(tmp_path: Path) -> None:
    check_figures("bptt.md", "bptt.py", tmp_path)
