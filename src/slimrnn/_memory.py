"""How much memory there is, so that what cannot fit is refused before it is asked for."""

from __future__ import annotations

import os
import re
from pathlib import Path

UNKNOWN = 2**40  # where the system does not say


def available_memory() -> int:
    """Bytes that can be had now without swapping; of all memory, where the system says no more than that."""
    try:
        found = re.search(r"^MemAvailable:\s*([0-9]{1,15}) kB$", Path("/proc/meminfo").read_text(), re.MULTILINE)
        if found:
            return 1024 * int(found[1])
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return UNKNOWN


def in_gigabytes(count: int) -> str:
    return f"{count / 1e9:,.1f} GB"
