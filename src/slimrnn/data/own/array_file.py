"""Arrays in `.npy` and `.npz` files: (N, T) or (N, T, C). Nothing is unpickled, and nothing is read before its size is
known to be right.

Shape suffixes: N sequences, T steps at most, C channels, S steps of all sequences.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimrnn._texts import listed, shown
from slimrnn.data.own.finish import Found, check_no_columns, finished
from slimrnn.data.own.missing import UNLABELLED
from slimrnn.data.own.npy import read_npy, read_npz
from slimrnn.data.own.number_text import LARGEST
from slimrnn.data.own.padded import without_padding
from slimrnn.data.own.parts import PARTS
from slimrnn.data.precision import Precision
from slimrnn.data.roles import Roles
from slimrnn.data.sequences import Sequences
from slimrnn.errors import DataError

VALUES = ("values", "x", "X", "data")
LABELS = ("labels", "label", "y", "Y")
AT_A_TIME = 1 << 18  # steps whose double precision copy is held
KNOWN = ("lengths", "ids", "columns", "parts", "split")


def read_arrays(path: Path, roles: Roles, to_predict: bool) -> Sequences:
    """Of an .npz file: `values`, `lengths`, `labels`, `ids`, `columns` and `parts`, of which only the first must be."""
    check_no_columns(path, roles)
    arrays = {"values": read_npy(path)} if path.suffix == ".npy" else read_npz(path)
    found = _values(arrays, path, Precision(by_sequence=roles.labels == "none"))
    lengths_N = np.diff(found.starts)
    found.label = roles.label if roles.label in arrays else next((name for name in LABELS if name in arrays), None)
    if found.label is not None and roles.labels != "none":
        steps = np.shape(found.values)[0] if roles.labels == "step" else None
        found.labels = _labels(arrays[found.label], found.label, lengths_N, steps, roles, path)
    if "ids" in arrays:
        found.ids = _texts(arrays["ids"], "ids", len(lengths_N), path)
        _check_different(found.ids, "ids", path)
    part = next((name for name in ("parts", "split") if name in arrays), None)
    if part is not None:
        texts = _texts(arrays[part], part, len(lengths_N), path)
        for number, text in enumerate(texts):
            if text.lower() not in PARTS:
                raise DataError(f"expected train, valid or test as {part}[{number}] in {path}, got {shown(text)}")
        found.parts = tuple(PARTS[text.lower()] for text in texts)
    used = {*VALUES, *KNOWN, found.label}
    left = [name for name in arrays if name not in used]
    found.notes += [f"left out {listed(left)}"] if left else []
    return finished(found, path, roles, to_predict)


def _values(arrays: Mapping[str, NDArray[Any]], path: Path, precision: Precision) -> Found:
    names = [name for name in VALUES if name in arrays]
    if len(names) != 1:
        raise DataError(
            f"expected one array of values ({', '.join(VALUES)}) in {path}, got {listed(names or arrays) or 'none'}"
        )
    array = arrays[names[0]]
    if array.dtype.kind not in "biuf":
        raise DataError(f"expected numbers as {names[0]} in {path}, got {array.dtype}")
    if array.ndim not in (2, 3) or 0 in array.shape:
        raise DataError(f"expected {names[0]} (N, T) or (N, T, C) in {path}, got the shape {array.shape}")
    padded_NTC = array.reshape(*array.shape[:2], -1)
    count, _, channels = padded_NTC.shape
    columns = ("value",) if channels == 1 else tuple(f"dim{n + 1}" for n in range(channels))
    if "columns" in arrays:
        columns = _texts(arrays["columns"], "columns", channels, path)
        _check_different(columns, "columns", path)
    notes: list[str] = []
    inside_NT = None
    if "lengths" in arrays:
        lengths_N = _lengths(arrays["lengths"], count, padded_NTC.shape[1], path)
        inside_NT = np.arange(padded_NTC.shape[1]) < lengths_N[:, None]
        starts = np.concatenate([[0], np.cumsum(lengths_N)]).astype(np.int64)
        values = _checked(padded_NTC, inside_NT, names[0], path)[inside_NT]
    else:
        checked = _checked(padded_NTC, None, names[0], path)
        values, starts, notes = without_padding(checked, lambda n: f"{path}, {names[0]}[{n}]")
    if array.itemsize > 4 or array.dtype.kind in "iu":
        _compare(padded_NTC, inside_NT, precision)
    return Found(values, starts, columns, notes=notes, precision=precision)


def _checked(padded_NTC: NDArray[Any], inside_NT: NDArray[Any] | None, name: str, path: Path) -> NDArray[np.float32]:
    """In float32; values after the end of a sequence may be anything."""
    with np.errstate(over="ignore", invalid="ignore"):
        values_NTC = padded_NTC.astype(np.float32)
    wrong_NTC = np.isinf(values_NTC)
    if inside_NT is not None:
        wrong_NTC &= inside_NT[:, :, None]
    if wrong_NTC.any():
        place = tuple(int(n) for n in np.argwhere(wrong_NTC)[0])
        at = ", ".join(map(str, place if values_NTC.shape[2] > 1 else place[:2]))
        raise DataError(
            f"expected finite numbers of at most {LARGEST:.3g} in {path}, got {name}[{at}] = {padded_NTC[place]}"
        )
    return values_NTC


def _compare(padded_NTC: NDArray[Any], inside_NT: NDArray[Any] | None, precision: Precision) -> None:
    count, steps, channels = padded_NTC.shape
    hop = -(-AT_A_TIME // steps)
    for start in range(0, count, hop):
        piece = padded_NTC[start : start + hop].astype(np.float64)
        if inside_NT is not None:
            piece = np.where(inside_NT[start : start + hop, :, None], piece, np.nan)
        precision.add(piece.reshape(-1, channels), np.repeat(np.arange(start, start + len(piece)), steps))


def _check_different(names: tuple[str, ...], what: str, path: Path) -> None:
    if len(set(names)) < len(names):
        again = next(name for name in names if names.count(name) > 1)
        raise DataError(f"expected different {what} in {path}, got {shown(again)} more than once")


def _lengths(array: NDArray[Any], count: int, most: int, path: Path) -> NDArray[np.int64]:
    if array.shape != (count,) or array.dtype.kind not in "iu":
        raise DataError(f"expected {count:,} whole numbers as lengths in {path}, got {array.dtype} {array.shape}")
    wrong = np.flatnonzero((array < 1) | (array > most))
    if len(wrong):
        raise DataError(f"expected lengths from 1 to {most:,} in {path}, got lengths[{wrong[0]}] = {array[wrong[0]]}")
    return array.astype(np.int64)


def _labels(
    array: NDArray[Any], name: str, lengths_N: NDArray[np.int64], steps: int | None, roles: Roles, path: Path
) -> NDArray[Any]:
    """(N), or for each step (N, T) with padding or (S) without."""
    if steps is not None and array.ndim == 2 and len(array) == len(lengths_N) and array.shape[1] >= lengths_N.max():
        array = array[np.arange(array.shape[1]) < lengths_N[:, None]]
    wanted = len(lengths_N) if steps is None else steps
    if array.shape != (wanted,):
        raise DataError(f"expected {wanted:,} {name} in {path}, got the shape {array.shape}")
    if roles.numbers:
        if array.dtype.kind not in "iuf" or not np.isfinite(array).all():
            raise DataError(f"expected finite numbers as {name} in {path}, got {array.dtype}, or NaN or Inf")
        return array.astype(np.float64)
    return np.array(_texts(array, name, wanted, path))


def _texts(array: NDArray[Any], name: str, count: int, path: Path) -> tuple[str, ...]:
    """Whole numbers without a decimal point."""
    if array.shape != (count,) or array.dtype.kind not in "biufU":
        raise DataError(f"expected {count:,} texts or numbers as {name} in {path}, got {array.dtype} {array.shape}")
    if array.dtype.kind == "f" and np.isfinite(array).all() and (np.abs(array) < 2**53).all():
        array = array.astype(np.int64) if (array == np.round(array)).all() else array
    texts = tuple(str(value).strip() for value in array.tolist())
    for number, text in enumerate(texts):
        if text in UNLABELLED:
            raise DataError(f"expected {name} without gaps in {path}, got {name}[{number}] = {shown(text)}")
    return texts
