"""Tables that are read piece by piece: what CSV and Parquet files have in common."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Protocol

from slimrnn._texts import shown
from slimrnn.data.own.csv_file import CsvFile
from slimrnn.data.parquet import parquet_pieces
from slimrnn.data.tables import polars
from slimrnn.errors import DataError

if TYPE_CHECKING:
    from polars import DataFrame

VALUES = 2**19  # of a piece of a Parquet file


class TableFile(Protocol):
    """Columns by name, and rows of texts or of a Parquet file's types."""

    path: Path
    names: tuple[str, ...]
    has_header: bool

    def pieces(self) -> Iterator[DataFrame]:
        """All rows; to be called once."""

    def place(self, row: int) -> str:
        """Where a row is, for messages."""


def open_table(path: Path, kind: str) -> TableFile:
    """A file of the kind "csv", "tsv" or "parquet"."""
    return _Parquet(path) if kind == "parquet" else CsvFile(path, kind)


def refuse(table: TableFile, row: int, name: str, expected: str, got: object, hint: str = "") -> NoReturn:
    """A value, with its column and its place."""
    raise DataError(
        f"expected {expected} as {name} in {table.path}, got {shown(got)} in {table.place(row)}{hint and ': '}{hint}"
    )


class _Parquet:
    has_header = True

    def __init__(self, path: Path) -> None:
        polars()
        self.path, self._pieces = path, parquet_pieces(path, VALUES)
        self._first = next(self._pieces)
        self.names = tuple(self._first.columns)
        if not self.names:
            raise DataError(f"expected a table in {path}, got one without columns")

    def pieces(self) -> Iterator[DataFrame]:
        yield self._first
        yield from self._pieces

    def place(self, row: int) -> str:
        return f"row {row + 1:,}"
