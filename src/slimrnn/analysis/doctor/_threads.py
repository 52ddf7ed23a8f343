"""Small work on one thread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for torch's operations; afterwards, as many as before.

    Threads of OpenMP wait for each other by spinning. Where an operation takes microseconds and another process wants
    the core, each one then waits for a whole time slice."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
