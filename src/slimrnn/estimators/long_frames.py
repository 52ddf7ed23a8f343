"""Frames of pandas and polars with a row for each step. Neither is imported: both give columns by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimrnn._checks import suggestion
from slimrnn._texts import listed, shown

MISSING = ("nan", "NaT", "<NA>")


@dataclass(frozen=True)
class LongFrame:
    """Its rows by sequence, in the order in which sequences first appear."""

    values: NDArray[np.float64]  #: (S, D)
    starts: NDArray[np.int64]
    columns: tuple[str, ...]
    ids: tuple[str, ...]
    rows: NDArray[np.int64]  #: the sequence of each row, in the frame's order
    times: NDArray[Any] | None  #: (S), by sequence
    labels: NDArray[Any] | None  #: in the frame's order


def is_frame(X: Any) -> bool:
    """Whether it has columns by name, of which arrays can be made."""
    return hasattr(X, "columns") and hasattr(X, "to_numpy")


def read_long(
    frame: Any, sequence: str | None, time: str | None, label: str | None, columns: Sequence[str] | None
) -> LongFrame:
    """The sequences of a frame with these columns; without `sequence` it is one. A label's column may be missing, since
    nobody needs it to predict.

    ValueError for columns that are not there or hold no numbers, and for two steps at one time."""
    names = [str(name) for name in frame.columns]
    held = dict(zip(names, frame.columns, strict=True))  # a frame may have numbers as names
    if len(held) < len(names):
        again = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"expected different names of columns in the frame, got {again!r} more than once")
    for role, name in (("sequence", sequence), ("time", time), *(("columns", one) for one in columns or ())):
        if name is not None and name not in names:
            hint = suggestion(name, names)
            raise ValueError(f"expected a column {name!r} ({role}=) in the frame, got {listed(names)}{hint}")
    if not len(frame):
        raise ValueError("expected a frame with at least one row, got none")
    taken = (sequence, time, label)
    chosen = list(columns or ())
    if columns is None:
        chosen = [name for name in names if name not in taken and _is_numeric(frame[held[name]])]
    if not chosen:
        raise ValueError(f"expected columns of numbers beside {listed(filter(None, taken))}, got {listed(names)}")
    columns_of = {name: frame[held[name]] for name in (*filter(None, taken), *chosen) if name in held}
    rows, ids = _numbered(columns_of, sequence, len(frame))
    order, times = _ordered(columns_of, rows, ids, time)
    values = np.stack([_numbers(columns_of[name], name)[order] for name in chosen], 1)
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows))]).astype(np.int64)
    labels = np.asarray(columns_of[label]) if label in names else None
    return LongFrame(values, starts, tuple(chosen), ids, rows, times, labels)


def _numbered(frame: Mapping[str, Any], name: str | None, count: int) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Which sequence each row belongs to, and the names of the sequences."""
    if name is None:
        return np.zeros(count, dtype=np.int64), ("series",)
    keys = np.asarray(frame[name])
    if has_missing(keys):
        raise ValueError(f"expected the sequence of every row in the column {name!r}, got rows without one")
    keys = keys.astype(str) if keys.dtype == object else keys
    found, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    by_appearance = np.argsort(first, kind="stable")
    place = np.empty(len(found), dtype=np.int64)
    place[by_appearance] = np.arange(len(found))
    return place[inverse.reshape(-1)], tuple(map(str, found[by_appearance]))


def _ordered(
    frame: Mapping[str, Any], rows: NDArray[np.int64], ids: tuple[str, ...], name: str | None
) -> tuple[NDArray[np.int64], NDArray[Any] | None]:
    """The rows of the first sequence in their order, of the second, and so on; and their times."""
    if name is None:
        return np.argsort(rows, kind="stable").astype(np.int64), None
    times = np.asarray(frame[name])
    if times.dtype.kind not in "fiuM":
        raise ValueError(f"expected numbers or dates as {name!r} (time=), got {times.dtype}")
    if has_missing(times):
        raise ValueError(f"expected the time of every row in the column {name!r}, got rows without one")
    order = np.lexsort((times, rows))
    same = (np.diff(rows[order]) == 0) & (times[order][1:] == times[order][:-1])
    if same.any():
        row = int(order[1:][same][0])
        raise ValueError(
            f"expected one row for each time of a sequence, got two with {name} {times[row]} in {ids[rows[row]]!r}"
        )
    in_order = times[order]
    return order.astype(np.int64), in_order if in_order.dtype.kind == "M" else in_order.astype(np.float64)


def has_missing(values: NDArray[Any]) -> bool:
    """Whether there is a NaN, a None or the like."""
    if values.dtype == object:
        return any(value is None or str(value) in MISSING for value in values)
    return values.dtype.kind in "fmM" and bool((values != values).any())


def _is_numeric(column: Any) -> bool:
    ask = getattr(column.dtype, "is_numeric", None)  # of polars
    return bool(ask() or str(column.dtype) == "Boolean") if ask is not None else column.dtype.kind in "fiub"


def _numbers(column: Any, name: str) -> NDArray[np.float64]:
    """NaN where a value is missing."""
    if not _is_numeric(column):
        raise ValueError(f"expected numbers in the column {name!r}, got {shown(str(column.dtype))}")
    return np.asarray(column, dtype=np.float64)
