"""A small task and small runs for the tests.

As a script, it trains what `KILLED` lists and kills each run, or resumes a run of `UNEVEN`.

Shape suffixes: T time, B sequences.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from slimrnn.tasks.adding import AddingTask
from slimrnn.training import (
    Batch,
    Config,
    Indices,
    ModelConfig,
    OptimConfig,
    Samples,
    Score,
    Task,
    random,
    resume,
    train,
)


@dataclass(frozen=True)
class EchoTask(Task):
    """Repeat the number of three steps ago; sequences of different lengths. Sample `spoiled` of "train" is NaN. "test"
    may have a size, and all else goes on forever."""

    length: int = 12
    spoiled: int | None = None
    tests: int | None = None

    name = "echo"
    every_step = True
    test_sets: ClassVar[Mapping[str, int]] = {"test": 40}

    @property
    def input_size(self) -> int:
        return 1

    @property
    def output_size(self) -> int:
        return 1

    @property
    def baselines(self) -> dict[str, float]:
        return {"always 0.5": 1 / 12}

    def samples(self, split: str, seed: int) -> Samples:
        return EchoSamples(self, split, random.key(seed, split), self.tests if split == "test" else None)

    def scores(self, output: Tensor, batch: Batch) -> dict[str, Score]:
        errors_TB = (output - batch.targets).squeeze(-1)
        assert batch.weights is not None
        close_TB = (errors_TB.abs() < 0.1).to(output.dtype)
        return {
            name: Score((values * batch.weights).sum(), batch.weights.sum())
            for name, values in (("loss", errors_TB.square()), ("accuracy", close_TB))
        }


@dataclass(frozen=True)
class EchoSamples:
    task: EchoTask
    split: str
    key: int
    size: int | None = None

    def fetch(self, indices: Indices) -> Batch:
        steps = self.task.length
        numbers_TB = random.uniform(random.key(self.key, "numbers"), indices, steps).T.copy()
        lengths_B = random.integers(random.key(self.key, "lengths"), indices, 1, steps // 2, steps + 1)[:, 0]
        inside_TB = np.arange(steps)[:, None] < lengths_B
        if self.split == "train" and self.task.spoiled is not None:
            numbers_TB[:, indices == self.task.spoiled] = np.nan
        echo_TB = np.vstack([np.zeros((3, len(indices))), numbers_TB[:-3]])
        return Batch(
            torch.from_numpy(numbers_TB[..., None]).float(),
            torch.from_numpy(echo_TB[..., None]).float(),
            torch.from_numpy(inside_TB).float(),
            torch.from_numpy(lengths_B),
        )


def first_indices(count: int) -> Indices:
    return np.arange(count, dtype=np.int64)


def tiny(out: Path | None = None, task: Task | None = None, **options: Any) -> Config:
    """A run of a second."""
    model = options.pop("model", ModelConfig("gru", 8))
    optim = options.pop("optim", OptimConfig(lr=1e-2))
    sizes = {
        "updates": 40,
        "batch_size": 5,
        "valid_size": 20,
        "test_size": 20,
        "eval_every": 10,
        "checkpoint_every": 10,
    }
    return Config(task or EchoTask(), model, optim, out=out, **{"tensorboard": False, **sizes, **options})


@contextmanager
def file_size_limit(limit: int) -> Iterator[None]:
    """As if the disk were full after so many bytes of a file."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


LONG: dict[str, Any] = {"updates": 240, "eval_every": 15, "checkpoint_every": 20}
KILLED = {
    "dropout, fixed set, plateau, workers": tiny(
        task=AddingTask(12),
        model=ModelConfig("gru", 8, layers=2, dropout=0.2, recurrent_dropout=0.2, weight_norm=True, max_row_norm=0.5),
        optim=OptimConfig(
            "rmsprop", 1e-2, accumulator_start=1e-3, clip_value=0.1, schedule="plateau", schedule_patience=1
        ),
        train_size=33,
        workers=2,
        **LONG,
    ),
    "bptt, cosine": tiny(
        model=ModelConfig("lstm", 8, structure="low-rank+diagonal", rank=2, learn_initial_state=True),
        optim=OptimConfig(lr=1e-2, clip_norm=0.1, schedule="cosine"),
        bptt=5,
        **LONG,
    ),
    "bptt, complex state, recovery": tiny(
        task=EchoTask(spoiled=5 * 24),  # update 73
        model=ModelConfig("rnn", 8, structure="kronecker", nonlinearity="modrelu"),
        optim=OptimConfig(
            "sgd", 1e-2, momentum=0.5, penalty=0.1, recurrent_rate=0.1, schedule="step", schedule_every=50
        ),
        bptt=5,
        **LONG,
    ),
}


UNEVEN = tiny(  # 5 sequences of different lengths; with a single one for testing, the second of two processes has none
    task=EchoTask(tests=1),
    model=ModelConfig("lstm", 8, learn_initial_state=True),
    optim=OptimConfig(lr=1e-2, clip_norm=0.1, schedule="plateau", schedule_patience=1),
    bptt=5,
    dtype="float64",
)


def kill_all(directory: Path) -> None:
    """Each run in a process of its own, killed in the middle: some time after its first checkpoint."""
    choice = Random(0)
    torch.set_num_threads(1)
    for number, config in enumerate(KILLED.values()):
        out = directory / str(number)
        process = os.fork()
        if process == 0:
            train(replace(config, out=out), quiet=True)
            os._exit(0)
        while not list(out.glob("checkpoints/update-*")):
            time.sleep(0.005)
        time.sleep(choice.uniform(0.05, 0.3))
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)


if __name__ == "__main__":
    if sys.argv[1] == "resume":
        resume(sys.argv[2], UNEVEN, quiet=True)
    else:
        kill_all(Path(sys.argv[1]))
