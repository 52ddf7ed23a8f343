"""Fixed seeds, so that a failure comes back; one thread, since the matrices here are tiny."""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy reads it when it is imported, and so do processes of tests

import pytest
import torch
from hypothesis import settings

from slimrnn.ops import calls

settings.register_profile("slimrnn", derandomize=True, deadline=None, max_examples=25)
settings.load_profile("slimrnn")
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _threads_at_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sizes here are small: threads, where asked for, share the work all the same."""
    monkeypatch.setattr(calls, "ONE_THREAD", 0)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)
