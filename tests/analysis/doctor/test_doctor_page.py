"""The examples of docs/doctor.md run and print what the page says; its thresholds and figures are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pages import DOCS, check_examples, check_figures
from slimrnn.analysis.doctor import advice

PAGE = DOCS / "doctor.md"


def test_the_examples_print_what_they_say(capsys: pytest.CaptureFixture[str]) -> None:
    check_examples("doctor.md", capsys)


def test_the_page_has_every_threshold() -> None:
    told = {name: float(value) for name, value in re.findall(r"^\| `([A-Z_]+)` \| (\S+) \|", PAGE.read_text(), re.M)}
    assert told == {name: value for name, value in vars(advice).items() if isinstance(value, int | float)}


def test_the_script_makes_the_figures_of_the_page(tmp_path: Path) -> None:
    check_figures("doctor.md", "doctor.py", tmp_path, 80_000)
