"""The examples of docs/cells.md run and print what the page says; its tables have every cell and layer."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pages import DOCS, check_examples
from registry import ZOO
from slimrnn import cells

TABLE = (DOCS / "cells.md").read_text().partition("## The zoo")[2]


def test_the_examples_run(capsys: pytest.CaptureFixture[str]) -> None:
    check_examples("cells.md", capsys)


def test_every_layer_is_in_the_tables_and_the_reference() -> None:
    page = (DOCS / "cells.md").read_text()
    for case in ZOO.values():
        assert page.count(f"`{case.layer.__name__}`") >= 2
    reference = (DOCS / "api" / "cells.md").read_text()
    for name in cells.__all__:
        assert f".{name}\n" in reference or name == "Leaky"


@pytest.mark.parametrize("name", ZOO)
def test_the_table_counts_the_parameters(name: str) -> None:
    """The fifth column of the first table, for n = 7 and m = 3."""
    layer: Any = ZOO[name].layer
    row = next(line for line in TABLE.splitlines() if line.startswith(f"| `{layer.__name__}` |"))
    terms = row.split("|")[5].strip(" $").split(" + ")
    assert layer(3, 7).num_parameters == sum(map(term, terms))


def term(written: str) -> int:
    """The value of 4n^2, nm, 14n or 2."""
    number, unit = re.fullmatch(r"(\d*)(n\^2|n\(n - 1\)/2|n\(n - 1\)|nm|n|)", written).groups()  # type: ignore[union-attr]
    return int(number or 1) * {"n^2": 49, "n(n - 1)/2": 21, "n(n - 1)": 42, "nm": 21, "n": 7, "": 1}[unit]
