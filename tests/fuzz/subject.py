"""A reader of files, to be given damaged ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Subject:
    """`name` is the file's; `read` raises one of the library's errors, or nothing. `repair` takes the damage to the
    content of a packed file, so that it is found behind checksums that are right."""

    name: str
    good: tuple[bytes, ...]
    read: Callable[[Path], object]
    repair: Callable[[bytes], bytes] | None = None
    share: float = 1.0  # of the mutants that others have: of slow ones fewer
