"""MNIST pixel by pixel: classify a digit after 784 steps of one pixel each (Le, Jaitly & Hinton 2015).

KRU §4.3; low-rank paper §3.0.3. Shape suffixes: T time, B sequences, I pixels of a step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from numbers import Integral

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from slimrnn._checks import check_choice, check_count
from slimrnn.data.mnist import CLASSES, SIDE, load_mnist_split
from slimrnn.tasks.averages import average
from slimrnn.training import random
from slimrnn.training.task import Batch, Indices, Samples, Score, Task

PIXELS = SIDE * SIDE


@dataclass(frozen=True)
class PixelMnistTask(Task):
    """Classify handwritten digits, read one pixel per step."""

    permuted: bool = False
    """permuted MNIST: one random order of the pixels for all images, instead of row by row"""
    permutation_seed: int = 0
    """permuted: seed of that order"""
    pixels_per_step: int = 1
    """read this many pixels at a time: 28 for a row of the image"""

    name = "pixel-mnist"
    every_step = False
    monitor = "accuracy"
    lower_is_better = False
    output_size = CLASSES

    def __post_init__(self) -> None:
        if not isinstance(self.permutation_seed, Integral):
            raise TypeError(f"expected permutation_seed to be an int, got {self.permutation_seed!r}")
        if self.permutation_seed and not self.permuted:
            raise ValueError(f"expected permutation_seed only with permuted, got {self.permutation_seed}")
        check_count("pixels_per_step", self.pixels_per_step)
        if PIXELS % self.pixels_per_step:
            raise ValueError(f"expected pixels_per_step to divide {PIXELS} pixels, got {self.pixels_per_step}")

    @property
    def input_size(self) -> int:
        return self.pixels_per_step

    @property
    def baselines(self) -> dict[str, float]:
        return {"guessing": math.log(CLASSES)}

    def samples(self, split: str, seed: int) -> Samples:
        """Images in the order of the files, for any seed."""
        check_choice("split", split, ["train", "valid", *self.test_sets])
        return _Samples(self, split, len(load_mnist_split(split)[0]))

    def scores(self, output: Tensor, batch: Batch) -> dict[str, Score]:
        losses = functional.cross_entropy(output, batch.targets, reduction="none")
        correct = (output.argmax(-1) == batch.targets).to(output.dtype)
        return {"loss": average(losses, batch.weights), "accuracy": average(correct, batch.weights)}


@dataclass(frozen=True)
class _Samples:
    """Holds no images, so it is cheap to send to a worker process."""

    task: PixelMnistTask
    split: str
    size: int

    def fetch(self, indices: Indices) -> Batch:
        images, labels = load_mnist_split(self.split)
        pixels_BT = images[indices].reshape(-1, PIXELS)
        if self.task.permuted:
            pixels_BT = pixels_BT[:, _permutation(self.task.permutation_seed)]
        at_once = self.task.pixels_per_step
        steps_TBI = pixels_BT.reshape(-1, PIXELS // at_once, at_once).swapaxes(0, 1)
        inputs_TBI = np.divide(steps_TBI, np.float32(255), dtype=np.float32)
        return Batch(torch.from_numpy(inputs_TBI), torch.from_numpy(labels[indices].astype(np.int64)))


@lru_cache(maxsize=4)
def _permutation(seed: int) -> Indices:
    return random.permutation(random.key(seed, "pixel-mnist", "order"), PIXELS)
