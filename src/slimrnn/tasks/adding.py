"""The adding problem: the sum of two marked numbers among many (Hochreiter & Schmidhuber 1997).

KRU §4.2; low-rank paper §3.0.2. Shape suffixes: T time, B sequences.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from slimrnn._checks import check_count
from slimrnn.tasks.averages import average
from slimrnn.tasks.generated import GeneratedTask
from slimrnn.training import random
from slimrnn.training.task import Batch, Indices, Score

TOLERANCE = 0.04


@dataclass(frozen=True)
class AddingTask(GeneratedTask):
    """Add the two marked numbers of a long sequence."""

    length: int = 100
    """time steps per sequence"""

    name = "adding"
    every_step = False
    input_size = 2
    output_size = 1
    test_sets: ClassVar[Mapping[str, int]] = {"any": 10_000, "half": 10_000}

    def __post_init__(self) -> None:
        check_count("length", self.length)
        if self.length < 2:
            raise ValueError(f"expected length to be at least 2, one step per marker, got {self.length}")

    @property
    def baselines(self) -> dict[str, float]:
        """Two uniform numbers have a sum of mean 1 and variance 2/12."""
        return {"always 1": 1 / 6}

    def generate(self, split: str, key: int, indices: Indices) -> Batch:
        """One marker in each half; in the test set "any" both are anywhere (as in the low-rank authors' code)."""
        rows = np.arange(len(indices))
        markers = self._anywhere(key, indices) if split == "any" else self._in_each_half(key, indices)
        inputs = np.zeros((self.length, len(indices), 2), dtype=np.float32)
        inputs[:, :, 0] = random.uniform(random.key(key, "numbers"), indices, self.length).T
        inputs[markers, rows, 1] = 1
        targets = inputs[markers, rows, 0].sum(0)
        return Batch(torch.from_numpy(inputs), torch.from_numpy(targets)[:, None])

    def _in_each_half(self, key: int, indices: Indices) -> NDArray[np.int64]:
        """(2, B): a step in the first half and one in the second, which includes the middle step of an odd length."""
        half = self.length // 2
        first = random.integers(random.key(key, "first"), indices, 1, 0, half)
        second = random.integers(random.key(key, "second"), indices, 1, half, self.length)
        return np.hstack([first, second]).T

    def _anywhere(self, key: int, indices: Indices) -> NDArray[np.int64]:
        """(2, B): two different steps."""
        first = random.integers(random.key(key, "first"), indices, 1, 0, self.length)
        second = random.integers(random.key(key, "second"), indices, 1, 0, self.length - 1)
        return np.hstack([first, second + (second >= first)]).T

    def scores(self, output: Tensor, batch: Batch) -> dict[str, Score]:
        """The loss is the mean squared error; the accuracy is the share of sums that are correct to ± 0.04."""
        errors = output - batch.targets
        close = (errors.abs() < TOLERANCE).to(output.dtype)
        return {"loss": average(errors.square(), batch.weights), "accuracy": average(close, batch.weights)}
