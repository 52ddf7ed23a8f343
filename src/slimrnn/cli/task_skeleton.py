"""Which way does a point walk around a circle? A task to start from: put your data in place of `curves`.

    slimrnn train task_skeleton:SkeletonTask --updates 300 --out runs/first
    slimrnn eval runs/first

resume, compare, analyse and export take such a run, too. docs/tasks.md says more.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from slimrnn.tasks import average
from slimrnn.training import (
    Batch,
    Config,
    Indices,
    ModelConfig,
    OptimConfig,
    Samples,
    Score,
    Task,
)
from torch import Tensor
from torch.nn import functional

SIZES = {"train": 2000, "valid": 500, "test": 500}  # sequences of each part


@lru_cache(maxsize=3)  # made or read once, and asked for several times
def curves(split: str, length: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Your data: the inputs of all sequences, (sequences, steps, columns), and what to predict, (sequences).

    Here a point walks around a circle, one way (0) or the other (1), and is seen with noise. No two parts may share a
    sequence, so each has random numbers of its own."""
    rng = np.random.default_rng(list(SIZES).index(split))
    targets = rng.integers(0, 2, SIZES[split])
    angles = rng.uniform(0, 2 * np.pi, (SIZES[split], 1)) + 0.3 * np.where(targets, 1, -1)[:, None] * np.arange(length)
    points = np.stack([np.cos(angles), np.sin(angles)], -1) + 0.5 * rng.normal(size=(SIZES[split], length, 2))
    return points.astype(np.float32), targets


@dataclass(frozen=True)
class Part:
    """The sequences of a part, by number."""

    inputs: NDArray[np.float32]
    targets: NDArray[np.int64]

    @property
    def size(self) -> int:
        return len(self.targets)

    def fetch(self, indices: Indices) -> Batch:
        """Those with these numbers, as tensors. Time comes first: inputs are (steps, sequences, columns)."""
        inputs = torch.from_numpy(self.inputs[indices]).transpose(0, 1).contiguous()
        return Batch(inputs, torch.from_numpy(self.targets[indices]))


@dataclass(frozen=True)
class SkeletonTask(Task):
    """Tell which way a point walks around a circle."""

    # Fields are options of the command line: --length 50. All of them need defaults.
    length: int = 20
    """number of steps"""

    name = "skeleton"  # what `slimrnn compare` and the directories of runs call it
    every_step = False  # one output after the last step; True: an output at every step
    # The net that is best on the validation data is kept: by default the one with the smallest loss.

    @property
    def input_size(self) -> int:
        """Numbers that the net reads at a step."""
        return 2

    @property
    def output_size(self) -> int:
        """Numbers that it puts out: here one for each class."""
        return 2

    @property
    def baselines(self) -> dict[str, float]:
        """Losses that everybody can reach, which `slimrnn train` shows beside yours."""
        return {"guessing": float(np.log(2))}

    def samples(self, split: str, seed: int) -> Samples:
        """The sequences of "train", "valid" or "test"."""
        return Part(*curves(split, self.length))

    def scores(self, output: Tensor, batch: Batch) -> dict[str, Score]:
        """The loss, whose gradient is followed, and what else is worth watching; each is a mean over sequences."""
        losses = functional.cross_entropy(output, batch.targets, reduction="none")
        correct = (output.argmax(-1) == batch.targets).to(output.dtype)
        return {"loss": average(losses), "accuracy": average(correct)}

    def default_config(self) -> Config:
        """What `slimrnn train` begins with; every setting is also an option."""
        return Config(self, ModelConfig("gru", hidden=32), OptimConfig("adam", lr=3e-3), updates=1000, batch_size=32)
