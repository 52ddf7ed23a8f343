"""Scores of a net on a set of sequences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import torch
from torch import nn

from slimrnn.training.batches import as_dtype
from slimrnn.training.config import Config
from slimrnn.training.task import Batch, Score, Task

LARGEST = 2**25  # numbers that the layers' outputs and inner states may have at a time
MOST = 1000  # sequences at a time


class EvaluationBatches:
    """The first `size` sequences of a split in large batches; process `rank` of `world` has every world-th."""

    def __init__(self, config: Config, split: str, size: int, rank: int = 0, world: int = 1) -> None:
        self.samples = config.task.samples(split, config.seed)
        if self.samples.size is not None:
            size = min(size, self.samples.size)
        self.indices = np.arange(rank, size, world, dtype=np.int64)
        steps = len(self.samples.fetch(self.indices[:1]).inputs)
        self.at_once = max(1, min(MOST, LARGEST // (steps * config.model.hidden * 4)))

    def __len__(self) -> int:
        return -(-len(self.indices) // self.at_once)

    def __iter__(self) -> Iterator[Batch]:
        for start in range(0, len(self.indices), self.at_once):
            yield self.samples.fetch(self.indices[start : start + self.at_once])


class Totals:
    """Sums of scores over batches, and over processes when read."""

    def __init__(self) -> None:
        self.sums: dict[str, list[float]] = {}

    def add(self, scores: dict[str, Score]) -> None:
        for name, (total, weight) in scores.items():
            sums = self.sums.setdefault(name, [0.0, 0.0])
            sums[0] += float(total)
            sums[1] += float(weight)

    def means(self, device: torch.device, world: int = 1) -> dict[str, float]:
        """The scores, over `world` processes, which must all ask."""
        sums = torch.tensor(list(self.sums.values()), dtype=torch.float64, device=device)
        if world > 1:
            torch.distributed.all_reduce(sums)
        return {name: total / weight for name, (total, weight) in zip(self.sums, sums.tolist(), strict=True)}


@torch.no_grad()
def measure(model: nn.Module, task: Task, batches: Iterable[Batch], world: int = 1) -> dict[str, float]:
    """The task's scores of a net, over the batches of `world` processes."""
    some, training, state = next(model.parameters()), model.training, None
    totals = Totals()
    model.eval()
    for batch in batches:
        batch = as_dtype(batch, some.dtype).to(some.device)
        output, state = model(batch.inputs, None if batch.first else state, batch.lengths)
        totals.add(task.scores(output, batch))
    model.train(training)
    return totals.means(some.device, world)
