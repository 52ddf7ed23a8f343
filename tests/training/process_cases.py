"""What processes do in tests; quick to import, which each of them has to.

As a script, it trains `config_of(DIRECTORY)`, and the node called "lost" dies on the way."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from slimrnn.errors import TrainingDiverged
from slimrnn.tasks.adding import AddingTask
from slimrnn.training import Batch, Config, ModelConfig, OptimConfig, Score, TrainingError, train
from slimrnn.training.launch import my_place


def second_fails() -> None:
    """While the first waits for it."""
    if my_place().rank == 1:
        raise TrainingDiverged("the second process failed")
    time.sleep(600)


@dataclass(frozen=True)
class LosesANode(AddingTask):
    """In update 16 of the node called "lost", all of its processes end as if its power did."""

    def scores(self, output: Tensor, batch: Batch) -> dict[str, Score]:
        if batch.update == 15 and os.environ.get("NODE") == "lost":
            os.kill(os.getppid(), signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)
        return super().scores(output, batch)


def config_of(directory: Path) -> Config:
    """Batches that do not divide evenly by 4."""
    return Config(
        LosesANode(6),
        ModelConfig("gru", 5),
        OptimConfig(lr=1e-2, clip_norm=0.5),
        updates=20,
        batch_size=6,
        valid_size=10,
        test_size=10,
        eval_every=5,
        checkpoint_every=10,
        dtype="float64",
        tensorboard=False,
        out=directory,
    )


def train_and_end_threads(directory: Path) -> None:
    """What runs at the end of a process ends the threads that talk to the others."""
    train(config_of(directory), quiet=True)
    if not _talking():
        raise TrainingError("expected threads that talk to the other process, got none")
    atexit._run_exitfuncs()
    end = time.monotonic() + 30
    while _talking() and time.monotonic() < end:  # the kernel lists a thread a little longer than it lives
        time.sleep(0.01)
    if _talking():
        raise TrainingError(f"expected no threads that talk to the other process, got {_talking()}")


def _talking() -> list[str]:
    names = []
    for path in Path("/proc/self/task").glob("*/comm"):
        with contextlib.suppress(OSError):  # it has ended
            names.append(path.read_text().strip())
    return [name for name in names if "gloo" in name]


if __name__ == "__main__":
    try:
        train(config_of(Path(sys.argv[1])), quiet=True)
    except TrainingError as error:
        sys.exit(f"slimrnn: {error}")
