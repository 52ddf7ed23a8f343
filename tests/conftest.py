"""Fixed seeds, so that a failure comes back."""

from __future__ import annotations

import pytest
import torch
from hypothesis import settings

settings.register_profile("slimrnn", derandomize=True, deadline=None, max_examples=25)
settings.load_profile("slimrnn")
torch.set_num_threads(1)  # the matrices here are tiny


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)
