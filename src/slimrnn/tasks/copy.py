"""The copy memory problem: recall symbols in order after a long delay (Hochreiter & Schmidhuber 1997).

KRU §4.1; low-rank paper §3.0.1 with the variants of Danihelka et al. 2016 and Henaff et al. 2016.
Shape suffixes: T time, B sequences, S symbols to recall.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from slimrnn._checks import check_choice, check_count
from slimrnn.tasks import copy_authors
from slimrnn.tasks.averages import average
from slimrnn.tasks.generated import GeneratedTask
from slimrnn.training import random
from slimrnn.training.config import Config, ModelConfig
from slimrnn.training.task import Batch, Indices, Samples, Score


@dataclass(frozen=True)
class CopyTask(GeneratedTask):
    """Recall ten symbols in order after a long delay."""

    length: int = 1000
    """time steps from the last symbol to the delimiter, after which they have to be recalled"""
    symbols: int = 8
    """alphabet size, without the blank and the delimiter"""
    width: int = 10
    """number of symbols to recall"""
    variable_length: bool = False
    """random number of symbols per sequence, from 1 to width (Danihelka et al. 2016)"""
    variable_lag: bool = False
    """random delay per sequence, from 1 to length (Henaff et al. 2016)"""
    start: Literal["seed", "authors"] = "seed"
    """initial weights, data and order of batches: drawn from the seed, or those of the low-rank authors' one run, for a
    low-rank+diagonal gru"""

    name = "copy"
    every_step = True

    def __post_init__(self) -> None:
        check_count("length", self.length)
        check_count("symbols", self.symbols)
        check_count("width", self.width)
        check_choice("start", self.start, ["seed", "authors"])
        if self.start == "authors" and self.variable_length and self.variable_lag:
            raise ValueError("expected variable_length or variable_lag with start authors, got both")

    @property
    def input_size(self) -> int:
        return self.symbols + 2

    @property
    def output_size(self) -> int:
        return self.symbols + 2

    @property
    def steps(self) -> int:
        """Length of all sequences: shorter ones are padded with blanks, which are scored too."""
        return self.length + 2 * self.width

    @property
    def baselines(self) -> dict[str, float]:
        """Losses of nets that know when to answer, but not what.

        A share p_j of the sequences has a symbol j steps after the delimiter. "memoryless" knows p_j only, so it pays
        the entropy H(p_j) and p_j times the entropy of a symbol; "length only" knows how many symbols there were."""
        places = np.arange(self.width)
        present = 1 - places / self.width if self.variable_length else np.ones(self.width)
        guessing = float(present.sum()) * math.log(self.symbols)
        if not self.variable_length:
            return {"memoryless": guessing / self.steps}
        entropy = -sum(p * math.log(p) + (1 - p) * math.log1p(-p) for p in present.tolist() if p < 1)
        return {"memoryless": (guessing + entropy) / self.steps, "length only": guessing / self.steps}

    def samples(self, split: str, seed: int) -> Samples:
        if self.start == "seed" or split == "valid":  # the authors had no validation set
            return super().samples(split, seed)
        check_choice("split", split, ["train", *self.test_sets])
        return _AuthorsSamples(self, split)

    def generate(self, split: str, key: int, indices: Indices) -> Batch:
        symbols_BS = random.integers(random.key(key, "symbols"), indices, self.width, 0, self.symbols)
        counts = self._largest_or_random(self.variable_length, random.key(key, "counts"), indices, self.width)
        lags = self._largest_or_random(self.variable_lag, random.key(key, "lags"), indices, self.length)
        return self.batch(symbols_BS, counts, lags)

    def batch(self, symbols_BS: NDArray[np.int64], counts: NDArray[np.int64], lags: NDArray[np.int64]) -> Batch:
        """Sequences that begin with the first `counts` symbols, which are to be recalled after `lags` steps."""
        blank, delimiter = self.symbols, self.symbols + 1
        rows, places = np.nonzero(np.arange(self.width) < counts[:, None])
        inputs_BT = np.full((len(counts), self.steps), blank, dtype=np.int64)
        targets_BT = inputs_BT.copy()
        inputs_BT[rows, places] = targets_BT[rows, (counts + lags)[rows] + places] = symbols_BS[rows, places]
        inputs_BT[np.arange(len(counts)), counts + lags - 1] = delimiter
        one_hot = np.eye(self.input_size, dtype=np.float32)
        return Batch(torch.from_numpy(one_hot[inputs_BT.T]), torch.from_numpy(targets_BT.T.copy()))

    @staticmethod
    def _largest_or_random(variable: bool, key: int, indices: Indices, largest: int) -> NDArray[np.int64]:
        if variable:
            return random.integers(key, indices, 1, 1, largest + 1)[:, 0]
        return np.full(len(indices), largest, dtype=np.int64)

    def scores(self, output: Tensor, batch: Batch) -> dict[str, Score]:
        """The loss is the cross-entropy over all steps; the accuracy is over the symbols to recall."""
        by_class = output.movedim(-1, 0)  # torch's softmax is seven times slower over a short last axis
        losses_TB = functional.cross_entropy(by_class[None], batch.targets[None], reduction="none")[0]
        recalled_TB = batch.targets < self.symbols
        correct = output.detach()[recalled_TB].argmax(-1) == batch.targets[recalled_TB]
        weights = None if batch.weights is None else batch.weights[recalled_TB]
        return {
            "loss": average(losses_TB, batch.weights),
            "recall_accuracy": average(correct.to(output.dtype), weights),
        }

    def model(self, config: ModelConfig) -> nn.Module:
        model = super().model(config)
        if self.start == "authors":
            copy_authors.set_weights_(model)
        return model

    def check(self, config: Config) -> None:
        if self.start == "authors":
            copy_authors.check_start(config)


@dataclass(frozen=True)
class _AuthorsSamples:
    """The sequences of the low-rank authors: those to train on without end, in the order of their batches."""

    task: CopyTask
    split: str
    order: copy_authors.Order = field(default_factory=copy_authors.Order)
    size: None = None

    def fetch(self, indices: Indices) -> Batch:
        rows = self.order(indices) if self.split == "train" else copy_authors.TRAIN + indices
        drawn = copy_authors.drawn(self.task.length, self.task.variable_length, self.task.variable_lag)
        symbols_BS, counts, lags = (part[rows] for part in drawn)
        return self.task.batch(symbols_BS, counts, lags)
