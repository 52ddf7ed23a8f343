"""Memory that a run keeps between its updates."""

from __future__ import annotations

import platform
import resource
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from slimrnn.training.memory import kept_memory

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc is told to keep memory")
MEGABYTES = 96


def _take() -> None:
    torch.zeros(MEGABYTES << 18)


def _faults(times: int = 4) -> int:
    """Pages that the system has to clear while large tensors come and go."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(times):
        _take()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def test_freed_memory_is_taken_again_without_page_faults() -> None:
    _take()
    before = _faults()
    with kept_memory():
        _take()
        kept = _faults()
    assert kept < before / 10
    assert _faults() > 10 * kept  # as it was


def test_memory_goes_back_at_the_end_even_after_an_error() -> None:
    def resident() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize() >> 20

    def fail() -> None:
        _take()
        assert resident() > before + MEGABYTES / 2
        raise KeyError("stopped")

    before = resident()
    with pytest.raises(KeyError, match="stopped"), kept_memory():
        fail()
    assert resident() < before + MEGABYTES / 2


def test_other_threads_have_large_tensors_too() -> None:
    with kept_memory(), ThreadPoolExecutor(2) as threads:
        futures = [threads.submit(torch.ones, MEGABYTES << 18) for _ in range(4)]
        assert [int(future.result().sum()) for future in futures] == [MEGABYTES << 18] * 4
