"""The examples of docs/analysis-dependence.md run and print what the page says, and its figures are there."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from pages import DOCS, check_examples, check_figures

PAGE = "analysis-dependence.md"


def test_the_examples_print_what_they_say(capsys: pytest.CaptureFixture[str]) -> None:
    check_examples(PAGE, capsys)


def test_the_script_makes_the_figures_of_the_page(tmp_path: Path) -> None:
    check_figures("analysis-dependence.md", "dependence.py", tmp_path)


def test_the_script_makes_the_tables_of_the_page() -> None:
    """The heads and the names of the rows; the numbers take minutes."""
    script = runpy.run_path(str(DOCS / "figures" / "dependence.py"))
    page = (DOCS / PAGE).read_text()
    for line in (*script["estimators_table"](series=2), *script["bands_table"](trials=1), *script["verdicts_table"](1)):
        name = line.split("|")[1:3]
        assert "|".join(["", *name, ""]) in page
