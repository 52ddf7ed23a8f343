"""An array that grows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

BLOCK = 33 * 2**20  # bytes: the C library gives memory of 32 MiB and less to the system late, or never


class Growing:
    """Rows are added; `take` gives all of them as one array, and needs memory for them once, and for a block more."""

    def __init__(self) -> None:
        self._blocks: list[NDArray[Any]] = []
        self._used = 0  # rows of the last block
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, rows: NDArray[Any]) -> None:
        """More rows, all of one width and type."""
        self._size += len(rows)
        while len(rows):
            if not self._blocks or self._used == len(self._blocks[-1]):
                width = max(1, rows.itemsize * int(np.prod(rows.shape[1:])))
                self._blocks.append(np.empty((-(-BLOCK // width), *rows.shape[1:]), rows.dtype))
                self._used = 0
            block = self._blocks[-1]
            count = min(len(rows), len(block) - self._used)
            block[self._used : self._used + count] = rows[:count]
            self._used += count
            rows = rows[count:]

    def take(self) -> NDArray[Any]:
        """All rows; none are kept."""
        first = self._blocks[0]
        if len(self._blocks) == 1:
            self._blocks = []
            return first[: self._size]
        whole = np.empty((self._size, *first.shape[1:]), first.dtype)
        del first
        start = 0
        self._blocks.reverse()
        while self._blocks:
            block = self._blocks.pop()[: self._size - start]
            whole[start : start + len(block)] = block
            start += len(block)
            del block
        return whole
