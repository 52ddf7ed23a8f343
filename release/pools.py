"""A pool of streams under sanitizers, see pool_stress.cpp: with builds of its own."""

from __future__ import annotations

from collections.abc import Iterator

from runs import CheckError, Setting, clean_environment, run
from wheels import PROJECT


def check_pools(setting: Setting) -> Iterator[str]:
    """A million frames of 16 clients, under ThreadSanitizer and under AddressSanitizer."""
    for sanitizer in ("thread", "address"):
        told = run(["make", "--directory", PROJECT, f"stress-{sanitizer}"], clean_environment())
        found = [line for line in told.splitlines() if "none lost" in line or "memory grew" in line]
        if len(found) != 2:
            raise CheckError(f"expected what pool_stress has seen, got:\n{told[-3000:]}")
        yield from (f"{sanitizer}: {line}" for line in found)
