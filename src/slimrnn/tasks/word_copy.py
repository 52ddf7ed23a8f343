"""Word copy: read a word of random bits, then repeat it several times (factorized paper, §3.1).

Shape suffixes: T time, B sequences, L letters of a word, R words of a sequence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from slimrnn._checks import check_count
from slimrnn.tasks.averages import average
from slimrnn.tasks.generated import GeneratedTask
from slimrnn.training import random
from slimrnn.training.task import Batch, Indices, Score


@dataclass(frozen=True)
class WordCopyTask(GeneratedTask):
    """Read a word of six letters of eight random bits, then repeat it several times."""

    repeats: int = 4
    """number of repetitions of the word"""
    letters: int = 6
    """letters of the word, one per step"""
    bits: int = 8
    """random bits per letter"""

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
        """The first output of the word is also the input; without memory all bits of the repeats are guesses."""
        return {"memoryless": self.repeats / (self.repeats + 1) * math.log(2)}

    def generate(self, split: str, key: int, indices: Indices) -> Batch:
        bits = random.integers(random.key(key, "bits"), indices, self.letters * self.bits, 0, 2)
        word_LB = bits.reshape(-1, self.letters, self.bits).swapaxes(0, 1).astype(np.float32)
        targets = np.tile(word_LB, (self.repeats + 1, 1, 1))
        inputs = np.zeros_like(targets)
        inputs[: self.letters] = word_LB
        return Batch(torch.from_numpy(inputs), torch.from_numpy(targets))

    def scores(self, output: Tensor, batch: Batch) -> dict[str, Score]:
        """The loss is the mean over all bits; the accuracies are over the repeats.

        With truncated backpropagation, the word accuracy is right if segments consist of whole words."""
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

    def _by_word(self, steps_TB: Tensor) -> Tensor:
        """(R, L, B), without an incomplete last word."""
        words = len(steps_TB) // self.letters
        return steps_TB[: words * self.letters].reshape(words, self.letters, -1)
