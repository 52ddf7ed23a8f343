"""The sizes here are small: threads share the work all the same."""

from __future__ import annotations

import pytest

from slimrnn.ops import native


@pytest.fixture(autouse=True)
def _threads_at_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "ONE_THREAD", 0)
