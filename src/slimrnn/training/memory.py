"""Memory that a run keeps between its updates."""

from __future__ import annotations

import contextlib
import ctypes
import platform
from collections.abc import Iterator

# Parameters of mallopt(3), and what they are otherwise: glibc moves its threshold up to 64 MiB by itself.
_TRIM_THRESHOLD, _MMAP_MAX = -1, -4
_DEFAULT_TRIM_THRESHOLD, _DEFAULT_MMAP_MAX = 64 << 20, 65_536


@contextlib.contextmanager
def kept_memory() -> Iterator[None]:
    """Freed memory stays with the process until the end, and then goes back to the system.

    Every update takes and frees the same large tensors. glibc hands them to the system each time, which clears every
    page again for the next update: a tenth of its time and more where the tensors have hundreds of megabytes. Other C
    libraries are left as they are."""
    libc = ctypes.CDLL(None) if platform.libc_ver()[0] == "glibc" else None
    if libc is None:
        yield
        return
    libc.mallopt(_TRIM_THRESHOLD, -1)  # never give memory back
    libc.mallopt(_MMAP_MAX, 0)  # no allocation of its own for a large tensor, which would go back at once
    try:
        yield
    finally:
        libc.mallopt(_TRIM_THRESHOLD, _DEFAULT_TRIM_THRESHOLD)
        libc.mallopt(_MMAP_MAX, _DEFAULT_MMAP_MAX)
        libc.malloc_trim(0)
