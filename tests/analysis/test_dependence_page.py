"""The examples of docs/analysis-dependence.md run and print what the page says, and its figures are there."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from pages import DOCS, check_examples

PAGE = "analysis-dependence.md"


def test_the_examples_print_what_they_say(capsys: pytest.CaptureFixture[str]) -> None:
    check_examples(PAGE, capsys)


def test_the_script_makes_the_figures_of_the_page(tmp_path: Path) -> None:
    runpy.run_path(str(DOCS / "figures" / "dependence.py"))["main"](tmp_path)
    shown = re.findall(r"!\[.+\]\(figures/(.+)\)", (DOCS / PAGE).read_text())
    assert sorted(shown) == sorted(path.name for path in tmp_path.iterdir())
    for name in shown:
        for figure in (tmp_path / name, DOCS / "figures" / name):
            assert figure.read_bytes().startswith(b"\x89PNG")
            assert figure.stat().st_size < 60_000


def test_the_script_makes_the_tables_of_the_page() -> None:
    """The heads and the names of the rows; the numbers take minutes."""
    script = runpy.run_path(str(DOCS / "figures" / "dependence.py"))
    page = (DOCS / PAGE).read_text()
    for line in (*script["estimators_table"](series=2), *script["bands_table"](trials=1), *script["verdicts_table"](1)):
        name = line.split("|")[1:3]
        assert "|".join(["", *name, ""]) in page
