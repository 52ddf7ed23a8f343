"""Small work on one thread."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec

import torch

OPENBLAS = ("scipy_openblas_{}64_", "scipy_openblas_{}", "openblas_{}64_", "openblas_{}")  # its names in numpy's builds


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for torch's operations and for numpy's linear algebra; afterwards, as many as before.

    Their threads wait for each other by spinning. Where an operation takes microseconds and another process wants the
    core, each one then waits for a whole time slice."""
    counters = [(torch.get_num_threads, torch.set_num_threads), *_openblas()]
    before = [count() for count, _ in counters]
    for _, use in counters:
        use(1)
    try:
        yield
    finally:
        for (_, use), threads in zip(counters, before, strict=True):
            use(threads)


@cache
def _openblas() -> list[tuple[Callable[[], int], Callable[[int], None]]]:
    """How to ask for and to set the threads of the OpenBLAS that numpy was linked with; none of another library."""
    module = find_spec("numpy.linalg._umath_linalg")
    if module is None or module.origin is None:
        return []
    library = ctypes.CDLL(module.origin)
    for name in OPENBLAS:
        count = getattr(library, name.format("get_num_threads"), None)
        use = getattr(library, name.format("set_num_threads"), None)
        if count is not None and use is not None:
            count.argtypes, count.restype = (), ctypes.c_int
            use.argtypes, use.restype = (ctypes.c_int,), None
            return [(count, use)]
    return []
