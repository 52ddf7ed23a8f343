"""What users hand to an estimator, as `Sequences`.

Shape suffixes: N sequences, T steps, D columns, S steps of all sequences together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimrnn._texts import shown
from slimrnn.data.precision import Precision
from slimrnn.data.sequences import Sequences
from slimrnn.estimators.long_frames import is_frame, read_long

LARGEST = float(np.finfo(np.float32).max)
FORMS = "an array (N, T) or (N, T, D), a list of arrays (T,) or (T, D), or a frame"


@dataclass(frozen=True)
class Given:
    """Sequences, and what else the form that they came in tells."""

    sequences: Sequences
    names: tuple[str, ...] | None = None  #: of the columns, where they have names
    steps: tuple[str, ...] | None = None  #: of the steps, which are the columns of a frame with a row for each sequence
    labels: NDArray[Any] | None = None  #: that came with them: one for each sequence, or for each row of a frame
    rows: NDArray[np.int64] | None = None  #: the sequence of each row of a frame


def read(
    X: Any,
    *,
    sequence: str | None = None,
    time: str | None = None,
    label: str | None = None,
    columns: Sequence[str] | None = None,
    check: Precision | None = None,
) -> Given:
    """Sequences from any form; ValueError with the place of what is no number, and with `check` for values that single
    precision does not tell apart. A frame without `sequence` has a row for each sequence and a column for each step."""
    if isinstance(X, Sequences):
        return Given(X, X.columns, labels=X.labels)
    if is_frame(X) and sequence is not None:
        return _from_frame(X, sequence, time, label, columns, check)
    for name, given in (("time", time), ("label", label), ("columns", columns)):
        if given is not None:
            raise ValueError(f"expected {name} only with a frame and sequence=, the column of its sequences, got {X!r}")
    values, starts = _from_arrays(X)
    names = tuple(map(str, range(values.shape[1])))
    ids = tuple(map(str, range(len(starts) - 1)))
    steps = tuple(X.columns) if is_frame(X) and all(isinstance(name, str) for name in X.columns) else None
    return Given(Sequences(_single(values, starts, names, check), starts, names, ids), steps=steps)


def read_series(
    X: Any,
    *,
    sequence: str | None = None,
    time: str | None = None,
    columns: Sequence[str] | None = None,
    check: Precision | None = None,
) -> tuple[Given, bool]:
    """The same for series, and whether it is a single one: numbers one after the other, or a frame without
    `sequence`, whose rows are steps."""
    if is_frame(X):
        return _from_frame(X, sequence, time, None, columns, check), sequence is None
    if isinstance(X, Iterator):  # looking at the first series would take it away
        X = list(X)
    first: Any = next(iter(X), 0.0) if hasattr(X, "__iter__") and not isinstance(X, Sequences) else None
    is_single = first is not None and np.ndim(first) == 0
    return read(np.asarray(X)[None] if is_single else X, check=check), is_single


def _from_frame(
    X: Any,
    sequence: str | None,
    time: str | None,
    label: str | None,
    columns: Sequence[str] | None,
    check: Precision | None,
) -> Given:
    frame = read_long(X, sequence, time, label, columns)
    values = _single(frame.values, frame.starts, frame.columns, check)
    sequences = Sequences(values, frame.starts, frame.columns, frame.ids, times=frame.times)
    return Given(sequences, frame.columns, labels=frame.labels, rows=frame.rows)


def _from_arrays(X: Any) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The values of all sequences, (S, D), and where each begins."""
    whole = X if isinstance(X, np.ndarray) else _array(X)
    if whole is not None and whole.dtype != object:
        return _from_whole(whole)
    try:
        pieces = [_piece(one, index) for index, one in enumerate(X)]
    except TypeError:
        raise ValueError(f"expected sequences as {FORMS}, got {type(X).__name__}") from None
    if not pieces:
        raise ValueError("expected at least one sequence, got none")
    widths = [piece.shape[1] for piece in pieces]
    odd = next((index for index, width in enumerate(widths) if width != widths[0]), None)
    if odd is not None:
        raise ValueError(
            f"expected {widths[0]} columns in every sequence, as in the first, got {widths[odd]} in sequence {odd}"
        )
    starts = np.concatenate([[0], np.cumsum([len(piece) for piece in pieces])]).astype(np.int64)
    return np.concatenate(pieces), starts


def _array(X: Any) -> NDArray[Any] | None:
    """Of what has a shape; a list may be ragged, and is read one by one."""
    if isinstance(X, list | tuple) or not hasattr(X, "__array__"):
        return None
    return np.asarray(X)


def _from_whole(X: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    _check_kind(X, "X")
    if X.ndim not in (2, 3) or 0 in X.shape:
        hint = "; a single sequence is X[None]" if X.ndim == 1 else ""
        raise ValueError(f"expected sequences as {FORMS}, got an array of shape {X.shape}{hint}")
    count, steps = X.shape[:2]
    return X.reshape(count * steps, -1), np.arange(count + 1, dtype=np.int64) * steps


def _piece(one: Any, index: int) -> NDArray[Any]:
    """A sequence, (T, D)."""
    try:
        found = np.asarray(one)
    except ValueError:
        raise ValueError(f"expected rows of one length in sequence {index}, got {shown(one)}") from None
    _check_kind(found, f"sequence {index}")
    if found.ndim not in (1, 2) or 0 in found.shape:
        raise ValueError(
            f"expected an array (T,) or (T, D) of at least one step as sequence {index}, got shape {found.shape}"
        )
    return found.reshape(len(found), -1)


def _check_kind(values: NDArray[Any], where: str) -> None:
    if values.dtype.kind not in "fiub":
        some = shown(values.reshape(-1)[0].item() if values.size and values.dtype != object else values.dtype)
        raise ValueError(f"expected real numbers in {where}, got {some}")


def _single(
    values: NDArray[Any], starts: NDArray[np.int64], columns: Sequence[str], check: Precision | None
) -> NDArray[np.float32]:
    """In single precision."""
    with np.errstate(over="ignore"):
        single = _finite(np.ascontiguousarray(values, dtype=np.float32), starts)
    if check is not None:
        check.add_all(values, starts)
        problem = check.problem(columns)
        if problem is not None:
            raise ValueError(problem)
    return single


def _finite(values: NDArray[np.float32], starts: NDArray[np.int64]) -> NDArray[np.float32]:
    """NaN is a missing value; what is infinite, at least in single precision, is refused."""
    wrong = np.isinf(values)
    if wrong.any():
        step, column = (int(place) for place in np.argwhere(wrong)[0])
        index = int(np.searchsorted(starts, step, side="right")) - 1
        raise ValueError(
            f"expected numbers up to {LARGEST:.2g} in size, or NaN for a missing one, got {values[step, column]} or "
            f"a larger one in sequence {index}, step {step - int(starts[index])}, column {column}"
        )
    return values
