"""Tables of sequences: long ones with a row for each step, wide ones with a row for each sequence."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from slimrnn.data.own.long_table import LongTable
from slimrnn.data.own.role_guess import RoleGuess
from slimrnn.data.own.table_file import TableFile, open_table
from slimrnn.data.own.wide_table import WideTable
from slimrnn.data.roles import Roles
from slimrnn.data.sequences import Sequences
from slimrnn.errors import DataError

if TYPE_CHECKING:
    from polars import DataFrame


def read_own_table(path: Path, kind: str, roles: Roles, to_predict: bool) -> Sequences:
    """A CSV, TSV or Parquet file."""
    table = open_table(path, kind)
    pieces = table.pieces()
    first = next((piece for piece in pieces if len(piece)), None)
    if first is None:
        raise DataError(f"expected rows after the header of {path}, got none")
    guess = RoleGuess(table, first, roles, to_predict)
    check_inputs(table, first, guess)
    reader = WideTable(table, guess) if guess.roles.layout == "wide" else LongTable(table, guess)
    for piece in chain([first], pieces):
        reader.add(piece)
    if not to_predict:
        reader.check_precision()
    return reader.sequences()


def check_inputs(table: TableFile, first: DataFrame, guess: RoleGuess) -> None:
    """Columns that were asked for must have numbers."""
    hints = {
        "texts": "a net reads numbers; leave it out, or write a column of 0 and 1 for each of its values",
        "times": "a date is no input; name it as the time, or write hours or weekdays as numbers",
        "other": "write its numbers in columns of their own",
    }
    for name in guess.roles.columns or ():
        kind = guess.kinds[name]
        if kind in hints:
            column = first[name].drop_nulls()
            got = f"{kind} such as {str(column[0])[:60]!r}" if kind != "other" else str(column.dtype)
            raise DataError(f"expected numbers as {name} in {table.path}, got {got}: {hints[kind]}")
