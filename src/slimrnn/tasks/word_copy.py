"""Word copy: read a word of random bits, then write it again and again (factorized paper, §3.1).

Shape suffixes: T time, B sequences, L letters of a word, R words of a sequence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from slimrnn._checks import check_count
from slimrnn.tasks.averages import average
from slimrnn.tasks.generated import GeneratedTask
from slimrnn.training import random
from slimrnn.training.config import Config, ModelConfig, OptimConfig
from slimrnn.training.paper import PaperRow
from slimrnn.training.task import Batch, Indices, Score


@dataclass(frozen=True)
class WordCopyTask(GeneratedTask):
    """Read a word of six letters of eight random bits, then write it again and again."""

    repeats: int = 4
    """times that the word is to be written after it was read"""
    letters: int = 6
    """letters of the word, one a step"""
    bits: int = 8
    """random bits of a letter"""

    name = "word-copy"
    every_step = True

    def __post_init__(self) -> None:
        check_count("repeats", self.repeats)
        check_count("letters", self.letters)
        check_count("bits", self.bits)

    @property
    def input_size(self) -> int:
        return self.bits

    @property
    def output_size(self) -> int:
        return self.bits

    @property
    def baselines(self) -> dict[str, float]:
        """The word is seen while it is first written; a net without memory guesses every bit of the repeats."""
        return {"memoryless": self.repeats / (self.repeats + 1) * math.log(2)}

    def generate(self, split: str, key: int, indices: Indices) -> Batch:
        drawn = random.integers(random.key(key, "bits"), indices, self.letters * self.bits, 0, 2)
        word_LB = drawn.reshape(-1, self.letters, self.bits).swapaxes(0, 1).astype(np.float32)
        targets = np.tile(word_LB, (self.repeats + 1, 1, 1))
        inputs = np.zeros_like(targets)
        inputs[: self.letters] = word_LB
        return Batch(torch.from_numpy(inputs), torch.from_numpy(targets))

    def scores(self, output: Tensor, batch: Batch) -> dict[str, Score]:
        """The loss is that of a bit of the whole output; the accuracies are those of the repeats.

        Truncated backpropagation gives pieces: words are counted rightly where these hold whole words."""
        losses = functional.binary_cross_entropy_with_logits(output, batch.targets, reduction="none")
        repeats = slice(self.letters if batch.first else 0, None)
        correct = ((output > 0) == (batch.targets > 0.5))[repeats]
        weights = None if batch.weights is None else batch.weights[repeats]
        words_RB = self._by_word(correct.all(-1)).all(1).to(output.dtype)
        return {
            "loss": average(losses, batch.weights),
            "bit_accuracy": average(correct.to(output.dtype), weights),
            "word_accuracy": average(words_RB, None if weights is None else self._by_word(weights)[:, 0]),
        }

    @classmethod
    def papers(cls) -> tuple[PaperRow, ...]:
        return tuple(row for repeats in (4, 8, 16, 32) for cell in ("lstm", "gru") for row in _pair(repeats, cell))

    def _by_word(self, steps_TB: Tensor) -> Tensor:
        """(R, L, B), without what is left of an unfinished word."""
        words = len(steps_TB) // self.letters
        return steps_TB[: words * self.letters].reshape(words, self.letters, -1)


def _pair(repeats: int, cell: Literal["lstm", "gru"]) -> list[PaperRow]:
    """A dense net, and a factorized one with as many parameters and so twice the state."""
    dense = Config(
        WordCopyTask(repeats), ModelConfig(cell, 64, layers=2), OptimConfig("rmsprop", clip_norm=1.0), updates=5_000
    )
    blocks = ModelConfig(cell, 128, "block-diagonal", blocks=4, input_structure="block-diagonal", layers=2)
    name = f"word-copy-{repeats}-{cell}"
    note = "the paper gives neither sizes nor rates: 64 dense units, RMSprop at 1e-3"
    return [
        PaperRow(f"{name}-dense", "factorized §3.1", "higher cross-entropy than factorized", dense, note=note),
        PaperRow(
            f"{name}-factorized",
            "factorized §3.1",
            "lower cross-entropy than dense, with equal parameters",
            replace(dense, model=blocks),
            compared_with=f"{name}-dense",
            note=note,
        ),
    ]
