"""Tasks with generated sequences."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from slimrnn._checks import check_choice
from slimrnn.training import random
from slimrnn.training.task import Batch, Indices, Samples, Task


@dataclass(frozen=True)
class GeneratedTask(Task):
    """Base of tasks with generated data: a subclass defines `generate`; every split has random numbers of its own."""

    def samples(self, split: str, seed: int) -> Samples:
        check_choice("split", split, ["train", "valid", *self.test_sets])
        return _Samples(self, split, random.key(seed, self.name, split))

    @abstractmethod
    def generate(self, split: str, key: int, indices: Indices) -> Batch:
        """The sequences with these indices. Draw with `slimrnn.training.random` and keys made from `key`, such as
        `random.key(key, "bits")`, so that a sequence depends on its index only."""


@dataclass(frozen=True)
class _Samples:
    """An unlimited number of sequences."""

    task: GeneratedTask
    split: str
    key: int
    size: None = None

    def fetch(self, indices: Indices) -> Batch:
        return self.task.generate(self.split, self.key, indices)
