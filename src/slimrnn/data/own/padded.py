"""Sequences in an array of one length, with missing values after the end of shorter ones.

Shape suffixes: N sequences, T steps at most, C channels, S steps of all sequences.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from slimrnn.data.own.notes import plural
from slimrnn.errors import DataError

Unpadded = tuple[NDArray[np.float32], NDArray[np.int64], list[str]]


def without_padding(padded_NTC: NDArray[np.float32], place: Callable[[int], str]) -> Unpadded:
    """Values (S, C), starts (N + 1) and notes. Steps at the end that have no value at all are none."""
    count, steps, channels = padded_NTC.shape
    there_NT: NDArray[np.bool_] = np.logical_or.reduce(~np.isnan(padded_NTC), axis=2)
    lengths_N = steps - np.argmax(there_NT[:, ::-1], axis=1)
    empty = ~np.logical_or.reduce(there_NT, axis=1)
    if empty.any():
        raise DataError(f"expected values in each sequence, got none in {place(int(empty.argmax()))}")
    shorter = int((lengths_N < steps).sum())
    if not shorter:
        return padded_NTC.reshape(-1, channels), np.arange(count + 1, dtype=np.int64) * steps, []
    values = padded_NTC[np.arange(steps) < lengths_N[:, None]]
    starts = np.concatenate([[0], np.cumsum(lengths_N)]).astype(np.int64)
    note = f"missing values at the end of {plural(shorter, 'sequence')} are taken as the end of it"
    return values, starts, [note]
