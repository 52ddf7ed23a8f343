"""What processes do in tests; quick to import, which each of them has to."""

from __future__ import annotations

import time

from slimrnn.training.errors import TrainingDiverged
from slimrnn.training.launch import my_place


def second_fails() -> None:
    """While the first waits for it."""
    if my_place().rank == 1:
        raise TrainingDiverged("the second process failed")
    time.sleep(600)
