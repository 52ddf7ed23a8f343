"""Sequence-to-sequence tasks on random symbols: the target is a function of the source."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from slimrnn._checks import check_count
from slimrnn.tasks.transduction import Pair, TransductionTask
from slimrnn.training import random
from slimrnn.training.task import Indices


@dataclass(frozen=True)
class RandomSymbolsTask(TransductionTask):
    """A subclass defines the target. Lengths are random."""

    length: int = 10
    """longest sequence, in symbols"""
    shortest: int = 3
    """shortest sequence"""
    symbols: int = 10
    """alphabet size"""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("shortest", self.shortest)
        check_count("length", self.length)
        check_count("symbols", self.symbols)
        if self.symbols < 3:
            raise ValueError(f"expected symbols to be at least 3, so that splits can differ, got {self.symbols}")
        if self.shortest > self.length:
            raise ValueError(f"expected shortest of at most length {self.length}, got {self.shortest}")

    @property
    def input_size(self) -> int:
        return self.symbols

    @property
    def output_size(self) -> int:
        return self.symbols

    @property
    def longest(self) -> int:
        return self.length

    def pairs(self, split: str, key: int, indices: Indices) -> list[Pair]:
        """The sum of a sequence modulo the alphabet size decides its split, so no multiset of symbols is in two splits.
        The last symbol is set to give that sum."""
        sources_BT = random.integers(random.key(key, "symbols"), indices, self.length, 0, self.symbols)
        lengths = random.integers(random.key(key, "lengths"), indices, 1, self.shortest, self.length + 1)[:, 0]
        sums = self._sums(split, random.key(key, "sums"), indices)
        sources_BT[np.arange(self.length) >= lengths[:, None] - 1] = 0
        sources_BT[np.arange(len(sources_BT)), lengths - 1] = (sums - sources_BT.sum(1)) % self.symbols
        sources = [row[:length] for row, length in zip(sources_BT.tolist(), lengths.tolist(), strict=True)]
        return [(source, self.answer(source)) for source in sources]

    @abstractmethod
    def answer(self, source: Sequence[int]) -> Sequence[int]:
        """The target of a source."""

    def _sums(self, split: str, key: int, indices: Indices) -> Indices:
        """Modulo the alphabet size: the largest for the test set, the second largest for validation."""
        if split == "train":
            return random.integers(key, indices, 1, 0, self.symbols - 2)[:, 0]
        return np.full(len(indices), self.symbols - (1 if split == "test" else 2))
