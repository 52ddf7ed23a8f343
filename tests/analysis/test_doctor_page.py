"""The examples of docs/doctor.md run and print what the page says; its thresholds and figures are there."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from pages import DOCS, check_examples
from slimrnn.analysis import advice

PAGE, FIGURES = DOCS / "doctor.md", DOCS / "figures"


def test_the_examples_print_what_they_say(capsys: pytest.CaptureFixture[str]) -> None:
    check_examples("doctor.md", capsys)


def test_the_page_has_every_threshold() -> None:
    told = {name: float(value) for name, value in re.findall(r"^\| `([A-Z_]+)` \| (\S+) \|", PAGE.read_text(), re.M)}
    assert told == {name: value for name, value in vars(advice).items() if isinstance(value, int | float)}


def test_the_script_makes_the_figures_of_the_page(tmp_path: Path) -> None:
    runpy.run_path(str(FIGURES / "doctor.py"))["main"](tmp_path)
    shown = re.findall(r"!\[.+\]\(figures/(.+)\)", PAGE.read_text())
    assert sorted(shown) == sorted(path.name for path in tmp_path.iterdir())
    for name in shown:
        for figure in (tmp_path / name, FIGURES / name):
            assert figure.read_bytes().startswith(b"\x89PNG")
            assert figure.stat().st_size < 80_000
