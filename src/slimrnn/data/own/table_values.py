"""Columns of a table's piece as arrays, with every value checked.

`row` is the number of the piece's first row in the table. Shape suffixes: R rows of a piece, D columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from slimrnn.data.own.iso_times import EXAMPLE, iso_times
from slimrnn.data.own.missing import MISSING
from slimrnn.data.own.number_text import LARGEST
from slimrnn.data.own.table_file import TableFile, refuse
from slimrnn.data.tables import polars
from slimrnn.errors import DataError

if TYPE_CHECKING:
    from polars import DataFrame, Series


def numbers_of(frame: DataFrame, names: Sequence[str], row: int, table: TableFile) -> NDArray[np.float64]:
    """(R, D), NaN where a value is missing."""
    pl = polars()
    cast = frame.select(pl.col(*names).cast(pl.Float64, strict=False))
    gaps = [name for name, count in zip(names, cast.null_count().row(0), strict=True) if count]
    if gaps:
        cast = cast.with_columns([_mended(frame[name], cast[name], row, table) for name in gaps])
    values_RD: NDArray[np.float64] = cast.to_numpy()
    too_large = np.abs(values_RD) > LARGEST
    if too_large.any():
        wrong, place = (int(n) for n in np.argwhere(too_large)[0])
        expected = f"a finite number of at most {LARGEST:.3g}"
        refuse(table, row + wrong, names[place], expected, frame[names[place]][wrong])
    return values_RD


def exact_numbers_of(frame: DataFrame, name: str, what: str, row: int, table: TableFile) -> NDArray[np.float64]:
    """One column in float64, without missing values: times or labels."""
    pl = polars()
    column = _mended(frame[name], frame[name].cast(pl.Float64, strict=False), row, table).to_numpy()
    wrong = np.flatnonzero(~np.isfinite(column))
    if len(wrong):
        refuse(table, row + int(wrong[0]), name, f"a finite number, {what},", frame[name][int(wrong[0])])
    return np.ascontiguousarray(column, np.float64)


def _mended(texts: Series, numbers: Series, row: int, table: TableFile) -> Series:
    """NaN for texts that say so, and numbers with spaces around them; any other text is refused."""
    pl = polars()
    if not numbers.null_count():
        return numbers
    if texts.dtype == pl.String:
        stripped = texts.str.strip_chars(" \t")
        numbers = stripped.cast(pl.Float64, strict=False)
        wrong = numbers.is_null() & stripped.is_not_null() & ~stripped.is_in(MISSING)
        if wrong.any():
            place = wrong.arg_max() or 0
            hint = "write decimals with a point" if "," in stripped[place] else ""
            refuse(table, row + place, texts.name, "a number", texts[place], hint)
    return numbers.fill_null(float("nan")).alias(texts.name)


def texts_of(frame: DataFrame, name: str, what: str, missing: Sequence[str], row: int, table: TableFile) -> Series:
    """A column of which no value is missing, without spaces around the texts."""
    pl = polars()
    dtype = frame[name].dtype
    if not (dtype.is_numeric() or dtype in (pl.String, pl.Categorical, pl.Enum, pl.Boolean, pl.Null, pl.Date)):
        raise DataError(f"expected texts or numbers as {name} in {table.path}, got {dtype}")
    given = frame[name].cast(pl.String)
    column = given.str.strip_chars()
    wrong = column.is_null() | column.is_in(list(missing))
    if wrong.any():
        place = wrong.arg_max() or 0
        refuse(table, row + place, name, what, "" if given[place] is None else given[place])
    return column


def times_of(frame: DataFrame, name: str, dates: bool, row: int, table: TableFile) -> NDArray[Any]:
    """float64, or datetime64[us] where they are `dates`."""
    pl = polars()
    column = frame[name]
    if not dates:
        return exact_numbers_of(frame, name, "a time", row, table)
    if column.dtype == pl.String:
        texts = column.fill_null("").to_list()
        times = iso_times(texts)
        if isinstance(times, int):
            refuse(table, row + times, name, f"a time such as {EXAMPLE}", texts[times])
        return times
    if column.null_count():
        refuse(table, row + (column.is_null().arg_max() or 0), name, "a time", None)
    instants = column.cast(pl.Datetime("us")) if column.dtype == pl.Date else column.dt.cast_time_unit("us")
    return instants.to_physical().to_numpy().astype("datetime64[us]")  # of UTC, whatever zone is shown


class Codes:
    """Texts as numbers in the order of their first appearance."""

    def __init__(self) -> None:
        self.names: dict[str, int] = {}

    def __call__(self, column: Series) -> NDArray[np.int32]:
        pl = polars()
        own = column.unique(maintain_order=True)
        codes = np.array([self.names.setdefault(name, len(self.names)) for name in own.to_list()], np.int32)
        places: NDArray[np.int32] = column.cast(pl.Enum(own)).to_physical().to_numpy()
        return codes[places]
