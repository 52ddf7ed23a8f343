"""Tasks whose sequences are made from random numbers."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from slimrnn._checks import check_choice
from slimrnn.training import random
from slimrnn.training.task import Batch, Indices, Samples, Task


@dataclass(frozen=True)
class GeneratedTask(Task):
    """A subclass says how to make the sequences of given numbers; every split has random numbers of its own."""

    def samples(self, split: str, seed: int) -> Samples:
        check_choice("split", split, ["train", "valid", *self.test_sets])
        return _Samples(self, split, random.key(seed, self.name, split))

    @abstractmethod
    def generate(self, split: str, key: int, indices: Indices) -> Batch:
        """The sequences of these numbers, drawn under `key`: `random.key(key, "what")` is for what is drawn."""


@dataclass(frozen=True)
class _Samples:
    """There is no end of them."""

    task: GeneratedTask
    split: str
    key: int
    size: None = None

    def fetch(self, indices: Indices) -> Batch:
        return self.task.generate(self.split, self.key, indices)
