"""Interaction logs: who took what and when, from CSV, TSV, Parquet and MovieLens' own formats."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from slimrnn._checks import suggestion
from slimrnn._texts import listed, shown
from slimrnn.data.files import reading
from slimrnn.data.own.iso_times import EXAMPLE
from slimrnn.data.tables import WITHOUT_HEADER, Table, kind_of, polars, read_table
from slimrnn.errors import DataError

if TYPE_CHECKING:
    from polars import DataFrame, Series

USUAL_NAMES = {
    "user": ("user", "user_id", "userId"),
    "item": ("item", "item_id", "itemId", "movieId"),
    "time": ("timestamp", "time"),
}

YEAR = "^[0-9]{4}[-/]"

Numbers = NDArray[np.int32]


@dataclass(frozen=True)
class Columns:
    """Names of the columns of a log. Where there is no name, a usual one is looked for; pages are read by name only."""

    user: str | None = None
    item: str | None = None
    time: str | None = None
    page: str | None = None
    in_order: bool = False  # there are no times: rows are in time order


@dataclass(frozen=True, eq=False)
class Interactions:
    """Events by user, each user's in time order: those of user u are starts[u] ... starts[u + 1] − 1.

    Users, items and pages are numbers, and `item_ids[number]` is what the log calls them."""

    items: Numbers
    starts: NDArray[np.int64]
    times: NDArray[np.float64] | None  # in seconds, or whatever the log counts in
    pages: Numbers | None
    user_ids: tuple[str, ...]
    item_ids: tuple[str, ...]
    page_ids: tuple[str, ...] = ()
    duplicates: int = 0  # that were dropped
    incomplete: int = 0  # rows that were skipped

    @property
    def users(self) -> Numbers:
        """Of each event."""
        return np.repeat(np.arange(len(self.user_ids), dtype=np.int32), np.diff(self.starts))

    @property
    def catalogue(self) -> int:
        """A checksum of the items and pages in the order of their numbers."""
        names = "\0".join(("items", *self.item_ids, "pages", *self.page_ids)).encode()
        return int.from_bytes(hashlib.blake2b(names, digest_size=8).digest(), "big", signed=True)


def read_interactions(path: Path, columns: Columns | None = None, skip_incomplete: bool = False) -> Interactions:
    """A log of events. Unsorted ones are sorted, those at one time staying in the order of the file.

    Events of the same user, item and time are one: the others are dropped, and a warning tells how many. A row with
    a value missing is an error, or skipped with a warning."""
    with reading(path):
        found = path.stat()
    return _read(path, found.st_size, found.st_mtime_ns, columns or Columns(), skip_incomplete)


@lru_cache(maxsize=4)
def _read(path: Path, size: int, changed: int, columns: Columns, skip_incomplete: bool) -> Interactions:
    return interactions_from(read_table(path), path, columns, skip_incomplete)


def interactions_from(table: Table, path: Path, columns: Columns, skip_incomplete: bool = False) -> Interactions:
    """A table whose columns are texts, or of a Parquet file's types; `path` is for messages."""
    frame = table.frame
    if kind_of(path) == "txt":
        columns = Columns(columns.user, columns.item, columns.time, columns.page, in_order=True)
    names = _names(frame.columns, columns, path)
    frame = frame.select([frame[name].alias(role) for role, name in names.items()])
    _check_types(frame, names, path)
    frame, rows, incomplete = _without_missing(frame, names, path, table.place, skip_incomplete)
    if len(frame) == 0:
        raise DataError(f"expected events in {path}, got none")
    if kind_of(path) in WITHOUT_HEADER:
        _check_no_header(frame, path, table.place(int(rows[0])))
    users, user_ids = _numbered(frame["user"])
    items, item_ids = _numbered(frame["item"])
    pages, page_ids = _numbered(frame["page"]) if "page" in names else (None, ())
    times = None
    if "time" in names:
        times = _seconds(frame["time"], path, names["time"], lambda event: table.place(int(rows[event])))
    order = np.argsort(users, kind="stable") if times is None else np.lexsort((times, users))
    duplicates = 0
    if times is not None:
        order, duplicates = _without_duplicates(order, users, items, times, path)
    starts = np.concatenate([[0], np.cumsum(np.bincount(users[order], minlength=len(user_ids)))]).astype(np.int64)
    return Interactions(
        items[order],
        starts,
        None if times is None else times[order],
        None if pages is None else pages[order],
        user_ids,
        item_ids,
        page_ids,
        duplicates,
        incomplete,
    )


def _names(present: Sequence[str], columns: Columns, path: Path) -> dict[str, str]:
    """Of the columns that are read, by what they are."""
    names: dict[str, str] = {}
    for role in ("user", "item", "time", "page"):
        asked: str | None = getattr(columns, role)
        if asked is None and (role == "page" or (role == "time" and columns.in_order)):
            continue
        wanted = USUAL_NAMES[role] if asked is None else (asked,)
        name = next((name for name in wanted if name in present), None)
        if name is None:
            hint = "" if asked is None else suggestion(asked, present)
            ways = "" if role != "time" else ", or --in-order where rows are in time order and have none"
            raise DataError(
                f"expected a column {' or '.join(wanted)} in {path}, got {listed(present)}{hint}: "
                f"--{role}-column says which{ways}"
            )
        names[role] = name
    return names


def _check_no_header(frame: DataFrame, path: Path, place: str) -> None:
    """Names where ids are expected: usual ones, or texts where all other ids are numbers."""
    pl = polars()
    roles = ("user", "item")
    usual = all(str(frame[role][0]).lower() in {name.lower() for name in USUAL_NAMES[role]} for role in roles)
    numbers = frame.select([pl.col(role).cast(pl.String).cast(pl.Int64, strict=False) for role in roles])
    odd = len(frame) > 1 and None in numbers.row(0) and sum(numbers[1:].null_count().row(0)) == 0
    if usual or (odd and numbers.row(0) == (None, None)):
        raise DataError(
            f"expected events from the first line of {path} on, as its format has no header, got {place}: remove the "
            "line, or write the table as .csv or .tsv"
        )


def _check_types(frame: DataFrame, names: dict[str, str], path: Path) -> None:
    """Parquet has lists, bytes and more."""
    pl = polars()
    for role, dtype in frame.schema.items():
        known = dtype.is_numeric() or dtype in (pl.String, pl.Date, pl.Datetime, pl.Null)
        if not known and (role == "time" or dtype not in (pl.Categorical, pl.Enum, pl.Boolean)):
            wanted = "numbers or dates" if role == "time" else "texts or numbers"
            raise DataError(f"expected {wanted} as {names[role]} in {path}, got {dtype}")


def _without_missing(
    frame: DataFrame, names: dict[str, str], path: Path, place: Callable[[int], str], skip: bool
) -> tuple[DataFrame, NDArray[np.int64], int]:
    """The rows that have all values, without spaces around texts; their numbers among all, and how many others there
    are."""
    pl = polars()
    frame = frame.fill_nan(None)
    texts = [role for role, dtype in frame.schema.items() if dtype == pl.String]
    frame = frame.with_columns([pl.col(role).str.strip_chars() for role in texts])
    empty = [pl.col(role).is_null() | (pl.col(role).cast(pl.String) == "") for role in frame.columns]
    missing = frame.select(pl.any_horizontal(empty)).to_series()
    count = int(missing.sum())
    if count == 0:
        return frame, np.arange(len(frame)), 0
    row = missing.arg_max() or 0
    role = next(role for role in frame.columns if frame[role][row] in (None, ""))
    where = f"no {names[role]} in {place(row)}"
    rows = "row" if count == 1 else "rows"
    if not skip:
        raise DataError(
            f"expected all values in {path}, got {where} ({count:,} such {rows}): --skip-incomplete leaves them out"
        )
    warnings.warn(f"{path}: skipped {count:,} incomplete {rows}, the first with {where}", stacklevel=2)
    return frame.filter(~missing), np.flatnonzero(~missing.to_numpy()), count


def _numbered(column: Series) -> tuple[Numbers, tuple[str, ...]]:
    """Places in the sorted list of ids, and this list: sorted as numbers where all are, else as texts."""
    pl = polars()
    texts = column.cast(pl.String)
    ids = texts.unique().sort()
    whole = ids.cast(pl.Int64, strict=False)
    if whole.null_count() == 0 and whole.n_unique() == len(ids):
        ids = ids.gather(whole.arg_sort())
    return texts.cast(pl.Enum(ids)).to_physical().to_numpy().astype(np.int32), tuple(ids.to_list())


def _seconds(column: Series, path: Path, name: str, place: Callable[[int], str]) -> NDArray[np.float64]:
    """From numbers, or from dates as in 2026-01-31 or 2026-01-31 12:00:00; in others, such as 01/02/2026, the month
    comes first here and the day there."""
    pl = polars()
    given = column
    if column.dtype == pl.String:
        numbers = column.cast(pl.Float64, strict=False)
        column = _dates(column) if numbers[0] is None else numbers
        if column.null_count():
            row = column.is_null().arg_max() or 0
            raise DataError(
                f"expected numbers or dates as {name} in {path}, such as {EXAMPLE}, got {shown(given[row])} in "
                f"{place(row)}"
            )
    if column.dtype.is_temporal():
        column = column.cast(pl.Datetime("us")).cast(pl.Int64) / 1e6
    seconds: NDArray[np.float64] = column.cast(pl.Float64).to_numpy().astype(np.float64)
    if not np.isfinite(seconds).all():
        row = int(np.flatnonzero(~np.isfinite(seconds))[0])
        raise DataError(f"expected finite numbers as {name} in {path}, got {shown(given[row])} in {place(row)}")
    return seconds


def _dates(column: Series) -> Series:
    """Null where there is none, or the year does not come first: polars itself refuses a column in which it finds no
    form of dates."""
    pl = polars()
    column = column.to_frame("text").select(pl.when(pl.col("text").str.contains(YEAR)).then("text")).to_series()
    try:
        return column.str.to_datetime(strict=False, time_unit="us")
    except pl.exceptions.PolarsError:
        return column.clear(len(column))


def _without_duplicates(
    order: NDArray[np.int64], users: Numbers, items: Numbers, times: NDArray[np.float64], path: Path
) -> tuple[NDArray[np.int64], int]:
    """Of the events of one user, item and time, the first in the file stays."""
    one, next_one = order[:-1], order[1:]
    at_once = (users[one] == users[next_one]) & (times[one] == times[next_one])
    some = order[np.append(at_once, False) | np.append(False, at_once)]
    some = some[np.lexsort((items[some], times[some], users[some]))]  # stable: equal ones stay as in the file
    same = np.ones(max(0, len(some) - 1), dtype=bool)
    for values in (users, items, times):
        same &= values[some][1:] == values[some][:-1]
    repeated = np.zeros(len(order), dtype=bool)
    repeated[some[1:][same]] = True
    count = int(repeated.sum())
    if count:
        told = "one event that repeats" if count == 1 else f"{count:,} events that repeat"
        warnings.warn(f"{path}: dropped {told} the user, item and time of another", stacklevel=2)
    return order[~repeated[order]], count
