"""Transductions of random symbols: what is to be written is a function of what was read."""

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
    """A subclass says what to write. Sequences have different lengths."""

    length: int = 10
    """symbols of the longest sequence"""
    shortest: int = 3
    """symbols of the shortest one"""
    symbols: int = 10
    """different symbols"""

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
        """Which split a sequence is in is a matter of its sum, modulo the number of symbols: so no multiset of symbols
        is in two. The last symbol makes the sum what it has to be."""
        drawn = random.integers(random.key(key, "symbols"), indices, self.length, 0, self.symbols)
        lengths = random.integers(random.key(key, "lengths"), indices, 1, self.shortest, self.length + 1)[:, 0]
        sums = self._sums(split, random.key(key, "sums"), indices)
        drawn[np.arange(self.length) >= lengths[:, None] - 1] = 0
        drawn[np.arange(len(drawn)), lengths - 1] = (sums - drawn.sum(1)) % self.symbols
        sources = [row[:length] for row, length in zip(drawn.tolist(), lengths.tolist(), strict=True)]
        return [(source, self.answer(source)) for source in sources]

    @abstractmethod
    def answer(self, source: Sequence[int]) -> Sequence[int]:
        """The target of a source."""

    def _sums(self, split: str, key: int, indices: Indices) -> Indices:
        """Modulo the number of symbols: the largest for the test set, the one below for validation."""
        if split == "train":
            return random.integers(key, indices, 1, 0, self.symbols - 2)[:, 0]
        return np.full(len(indices), self.symbols - (1 if split == "test" else 2))
