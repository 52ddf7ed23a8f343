"""Memory that a run keeps between its updates. In new processes, whose heap holds nothing else."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc is told to keep memory")

BEGINNING = """
import resource
from concurrent.futures import ThreadPoolExecutor
import torch
from slimrnn.training.memory import kept_memory

SIZE = 96 << 18  # numbers in 96 MB

def faults():
    "Pages that the system has to clear while large tensors come and go."
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(4):
        torch.zeros(SIZE)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20
"""


def run(script: str) -> None:
    done = subprocess.run([sys.executable, "-c", BEGINNING + script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_freed_memory_is_taken_again_without_page_faults() -> None:
    run("""
before = faults()
with kept_memory():
    faults()
    kept = faults()
assert kept < before / 4, (kept, before)
assert faults() > 2 * kept  # as it was
""")


def test_memory_goes_back_at_the_end_even_after_an_error() -> None:
    run("""
before = resident()
try:
    with kept_memory():
        torch.zeros(SIZE)
        assert resident() > before + 50
        raise KeyError
except KeyError:
    pass
assert resident() < before + 50
""")


def test_other_threads_have_large_tensors_too() -> None:
    run("""
with kept_memory(), ThreadPoolExecutor(2) as threads:
    futures = [threads.submit(torch.ones, SIZE) for _ in range(4)]
    assert [int(future.result().sum()) for future in futures] == [SIZE] * 4
""")
