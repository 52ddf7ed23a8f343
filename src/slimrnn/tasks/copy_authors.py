"""The one start of the low-rank authors' runs on the copy problem: sequences, order of the batches, initial weights.

Their code draws all of it with numpy's legacy generator from two fixed seeds. Shape suffixes: B sequences.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from slimrnn.training.config import Config
from slimrnn.training.models.sequence_model import SequenceModel, recurrent_layers
from slimrnn.training.task import Indices

TRAIN, TEST, BATCH, WIDTH, SYMBOLS = 100_000, 10_000, 20, 10, 8
DATA_SEED, WEIGHT_SEED, ORDER_SEED = 0, 1234, 1234
Rows = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]  # symbols, counts and lags


@lru_cache(maxsize=2)
def drawn(length: int, variable_length: bool, variable_lag: bool) -> Rows:
    """The training sequences, then the test sequences: symbols (B, 10), their numbers (B) and the lags (B)."""
    random, total = np.random.RandomState(DATA_SEED), TRAIN + TEST
    symbols_B = np.zeros((total, WIDTH), dtype=np.int64)
    counts_B, lags_B = np.full(total, WIDTH), np.full(total, length)
    if not (variable_length or variable_lag):
        return random.randint(0, SYMBOLS, size=(WIDTH, total)).T, counts_B, lags_B
    for row in range(total):
        if variable_length:
            counts_B[row] = random.randint(1, WIDTH + 1)
        else:
            lags_B[row] = random.randint(1, length + 1)
        symbols_B[row, : counts_B[row]] = random.randint(0, SYMBOLS, size=(counts_B[row],))
    return symbols_B, counts_B, lags_B


@dataclass
class Order:
    """Rows of the training set by place. A new permutation is applied to the permuted set before every batch."""

    batch: int = -1
    random: np.random.RandomState = field(default_factory=lambda: np.random.RandomState(ORDER_SEED))
    rows: Indices = field(default_factory=lambda: np.arange(TRAIN))

    def __call__(self, places: Indices) -> Indices:
        found = np.empty_like(places)
        for batch in np.unique(places // BATCH):
            here = places // BATCH == batch
            found[here] = self._permuted(int(batch))[places[here] % TRAIN]
        return found

    def _permuted(self, batch: int) -> Indices:
        if batch < self.batch:
            self.__init__()  # type: ignore[misc]
        while self.batch < batch:
            self.rows, self.batch = self.rows[self.random.permutation(TRAIN)], self.batch + 1
        return self.rows


def check_start(config: Config) -> None:
    """Refuse settings for which the authors' start does not exist."""
    task, model = config.task, config.model
    given = (getattr(task, "symbols", None), getattr(task, "width", None), config.batch_size, config.train_size)
    if given != (SYMBOLS, WIDTH, BATCH, None):
        expected = f"{SYMBOLS} symbols, width {WIDTH}, batches of {BATCH} and no train_size"
        raise ValueError(f"expected {expected} with start authors, got {', '.join(map(str, given))}")
    if (model.cell, model.structure, model.layers) != ("gru", "low-rank+diagonal", 1) or model.weight_norm:
        raise ValueError(
            f"expected one layer of low-rank+diagonal gru without weight_norm with start authors, got {model.layers} of"
            f" {model.structure} {model.cell}"
        )


@torch.no_grad()
def set_weights_(model: nn.Module) -> None:
    """Glorot-uniform matrices in the authors' order; their gates are candidate, update, reset, ours the reverse."""
    assert isinstance(model, SequenceModel)
    random, layer = np.random.RandomState(WEIGHT_SEED), recurrent_layers(model)[0].cores[0]
    sum_map: Any = layer.recurrent
    low_rank, diagonal = sum_map.parts

    def draw(weights: torch.Tensor, bound: float | None = None) -> None:
        limit = math.sqrt(6 / sum(weights.shape)) if bound is None else bound
        weights.copy_(torch.from_numpy(random.uniform(-limit, limit, size=tuple(reversed(weights.shape))).T))

    for gates, bound in (
        (layer.input.get_parameter("weight"), None),
        (low_rank.right, None),
        (diagonal.diagonal, 0.01),
        (low_rank.left, None),
    ):
        for gate in (2, 1, 0):
            draw(gates[gate], bound)
    draw(model.readout.weight)
    nn.init.zeros_(model.readout.bias)
