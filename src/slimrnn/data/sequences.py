"""Sequences of numbers that a user brings, as every reader of files returns them.

Shape suffixes: S steps of all sequences together, N sequences, D columns.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimrnn.data.roles import Roles


@dataclass(frozen=True, eq=False)
class Sequences:
    """N sequences of their own lengths, one after the other, with what is known of each."""

    values: NDArray[np.float32]  #: (S, D), NaN where a value is missing
    starts: NDArray[np.int64]  #: (N + 1): sequence i has the steps starts[i] to starts[i + 1]
    columns: tuple[str, ...]  #: names of the D columns
    ids: tuple[str, ...]  #: names of the N sequences, no two alike
    labels: NDArray[Any] | None = None  #: (N) one for each sequence or (S) one for each step: texts, or float64 numbers
    times: NDArray[Any] | None = None  #: (S) float64 numbers or datetime64, increasing in each sequence
    parts: tuple[str, ...] | None = None  #: (N) "train", "valid" or "test", where the file says so
    notes: tuple[str, ...] = ()  #: what a reader did beyond reading, in sentences for the user: "3 rows without ..."
    roles: Roles | None = None  #: the columns that were taken: with these, another file is read alike

    def __post_init__(self) -> None:
        steps, count = len(self.values), len(self.starts) - 1
        if self.values.ndim != 2 or self.values.shape[1] != len(self.columns):
            raise ValueError(f"expected {len(self.columns)} columns of values, got the shape {self.values.shape}")
        if count < 0 or self.starts[0] != 0 or self.starts[-1] != steps or bool((np.diff(self.starts) < 1).any()):
            raise ValueError(f"expected increasing starts from 0 to {steps:,}, got {self.starts!r}")
        if len(self.ids) != count or len(set(self.ids)) != count:
            raise ValueError(f"expected {count:,} different ids, got {len(set(self.ids)):,} in {len(self.ids):,}")
        for name, allowed in (("labels", (count, steps)), ("times", (steps,)), ("parts", (count,))):
            given = getattr(self, name)
            if given is not None and len(given) not in allowed:
                raise ValueError(f"expected {' or '.join(map(str, allowed))} {name}, got {len(given)}")

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, index: int) -> NDArray[np.float32]:
        """The values of a sequence, (T, D)."""
        if not 0 <= index < len(self):
            raise IndexError(f"expected a number of a sequence below {len(self)}, got {index}")
        return self.values[self.starts[index] : self.starts[index + 1]]

    def __iter__(self) -> Iterator[NDArray[np.float32]]:
        return (self[index] for index in range(len(self)))

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Steps of each sequence, (N)."""
        return np.diff(self.starts)

    def checksum(self) -> str:
        """Of all that was read: the same for the same sequences in the same order, in whatever file they are."""
        found = hashlib.blake2b(digest_size=16)
        for names in (self.columns, self.ids, self.parts):
            found.update(repr(names).encode())
        for array in (self.values, self.starts, self.labels, self.times):
            if array is None or array.dtype == object:
                found.update(repr(None if array is None else array.tolist()).encode())
            else:  # no copy of what may be large
                found.update(str(array.dtype).encode())
                found.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        return found.hexdigest()
