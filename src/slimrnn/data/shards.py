"""Records of many TFRecord files by number.

Shape suffixes: N records.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from slimrnn.data.files import reading
from slimrnn.data.tfrecord import FOOTER, HEADER, BadRecord, find_records, read_record
from slimrnn.errors import DataError

T = TypeVar("T")
_told: set[Path] = set()  # shards whose bad records were told of by this process


@dataclass(frozen=True, eq=False)
class Shards:
    """Where each record is. No file stays open and no record is kept, so that an epoch takes no memory."""

    paths: tuple[Path, ...]
    files_N: NDArray[np.int32]  # place in `paths`
    offsets_N: NDArray[np.int64]
    sizes_N: NDArray[np.int64]  # bytes of the records themselves
    places_N: NDArray[np.int64]  # number of the record in its file

    @classmethod
    def of(cls, paths: Sequence[Path]) -> Shards:
        """All records of the files, in this order. What follows damage in a file is left out, with a warning."""
        stamps = []
        for path in paths:
            with reading(path):
                found = path.stat()
            stamps.append((found.st_size, found.st_mtime_ns))
        return _index(tuple(paths), tuple(stamps))

    @property
    def size(self) -> int:
        return len(self.offsets_N)

    def part(self, of: int, places: Collection[int]) -> Shards:
        """Of every `of` records in a row of a file, those at these places; other files make no difference."""
        chosen = np.isin(self.places_N % of, list(places))
        return Shards(
            self.paths, self.files_N[chosen], self.offsets_N[chosen], self.sizes_N[chosen], self.places_N[chosen]
        )

    def read(self, index: int, parse: Callable[[bytes], T]) -> T | None:
        """What `parse` makes of a record; None if its CRC is wrong or `parse` raises BadRecord. Of each file with such
        records a process tells once, with their number."""
        path = self.paths[self.files_N[index]]
        try:
            return parse(read_record(path, int(self.offsets_N[index])))
        except BadRecord:
            if path not in _told:
                _tell(path, parse)
                _told.add(path)
            return None


@lru_cache(maxsize=8)
def _index(paths: tuple[Path, ...], stamps: tuple[tuple[int, int], ...]) -> Shards:
    """`stamps` change when the files do. Not kept in the cache, which would compute the checksums of the files: that
    takes longer than to find their records."""
    offsets, sizes, counts = [], [], []
    for path in paths:
        bounds, problem = find_records(path)
        if problem or len(bounds) == 1:
            reason = problem or "it is empty"
            warnings.warn(f"{path} is damaged: {reason}; {_used(len(bounds) - 1)}", RuntimeWarning, stacklevel=4)
        offsets.append(bounds[:-1])
        sizes.append(np.diff(bounds) - HEADER - FOOTER)
        counts.append(len(bounds) - 1)
    files = np.repeat(np.arange(len(paths), dtype=np.int32), counts)
    places = [np.arange(count, dtype=np.int64) for count in counts]
    none = [np.zeros(0, dtype=np.int64)]
    return Shards(
        paths, files, np.concatenate(offsets or none), np.concatenate(sizes or none), np.concatenate(places or none)
    )


def _used(count: int) -> str:
    return f"the {count:,} records before that are used" if count else "it is left out"


def _tell(path: Path, parse: Callable[[bytes], object]) -> None:
    """Look at the whole file, so that one warning has the number of bad records."""
    bounds, _ = find_records(path)
    problems = [problem for offset in bounds[:-1].tolist() if (problem := _problem(path, offset, parse))]
    count = len(bounds) - 1
    if len(problems) == count:
        raise DataError(f"expected records that can be used in {path}, got none of {count:,}; the first: {problems[0]}")
    warnings.warn(
        f"{len(problems):,} of {count:,} records of {path} cannot be used and are left out; the first: {problems[0]}",
        RuntimeWarning,
        stacklevel=4,
    )


def _problem(path: Path, offset: int, parse: Callable[[bytes], object]) -> str:
    try:
        record = read_record(path, offset)
    except BadRecord as error:
        return str(error)
    try:
        parse(record)
    except BadRecord as error:
        return f"at byte {offset:,}, {error}"
    return ""
