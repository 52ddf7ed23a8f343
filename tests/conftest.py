"""Fixed seeds, so that a failure comes back."""

from __future__ import annotations

import pytest
import torch
from hypothesis import settings

from slimrnn.ops import calls

settings.register_profile("slimrnn", derandomize=True, deadline=None, max_examples=25)
settings.load_profile("slimrnn")
torch.set_num_threads(1)  # the matrices here are tiny


@pytest.fixture(autouse=True)
def _threads_at_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sizes here are small: threads, where asked for, share the work all the same."""
    monkeypatch.setattr(calls, "ONE_THREAD", 0)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)
