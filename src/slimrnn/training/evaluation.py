"""Scores of a net on a set of sequences."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from slimrnn.structures.base import StructuredMap
from slimrnn.training.batches import as_dtype
from slimrnn.training.config import Config
from slimrnn.training.task import Batch, Indices, Outcome, Task

LARGEST = 2**25  # numbers that the layers' outputs and inner states may have at a time
MOST = 1000  # sequences at a time
FEW = 64  # with less, long sequences are rather cut, where truncated backpropagation shows that this can be done


class EvaluationBatches:
    """`size` sequences of a split in large batches; process `rank` of `world` has every world-th.

    Of a set that has more they are evenly spread, since files are often sorted. Those of similar length go together. A
    batch of very long sequences comes in pieces, which go on from each other."""

    def __init__(self, config: Config, split: str, size: int, rank: int = 0, world: int = 1) -> None:
        self.samples = config.task.samples(split, config.seed)
        there_are = size if self.samples.size is None else self.samples.size
        size = min(size, there_are)
        indices = np.arange(rank, size, world, dtype=np.int64) * there_are // max(1, size)
        steps = self._steps(indices)
        longest_first = np.argsort(-steps, kind="stable")
        self.batches = list(_cut(indices[longest_first], steps[longest_first], config))

    def _steps(self, indices: Indices) -> Indices:
        """Of each sequence; there are none where a split has fewer than there are processes."""
        if not len(indices):
            return indices
        find = getattr(self.samples, "lengths", None)
        if find is None:
            return np.full(len(indices), len(self.samples.fetch(indices[:1]).inputs))
        steps: Indices = find(indices)
        return steps

    def __len__(self) -> int:
        return sum(-(-steps // piece) for _, steps, piece in self.batches)

    def __iter__(self) -> Iterator[Batch]:
        for indices, steps, piece in self.batches:
            batch = self.samples.fetch(indices)
            yield from [batch] if piece == steps else batch.segments(piece)


def _cut(indices: Indices, steps: Indices, config: Config) -> Iterator[tuple[Indices, int, int]]:
    """Batches of sequences, the longest first: which, their steps, and how many of these to take at a time."""
    room, start = LARGEST // (config.model.hidden * 4), 0
    while start < len(indices):
        longest, few = max(1, int(steps[start])), min(FEW, len(indices) - start)
        count, piece = max(1, min(MOST, room // longest)), longest
        if config.bptt is not None and few * longest > room:
            count, piece = few, max(1, room // few)
        yield indices[start : start + count], longest, piece
        start += count


def final_sizes(config: Config) -> dict[str, int]:
    """Sequences of each set in the evaluation that ends a run."""
    tests = {split: config.test_size or size for split, size in config.task.test_sets.items()}
    present = {split: config.task.samples(split, config.seed).size for split in ("valid", *tests)}
    wanted = {"valid": config.valid_size, **tests}
    return {split: min(size, present[split] or size) for split, size in wanted.items()}


def evaluated_sizes(config: Config) -> dict[str, int]:
    """Sequences of each set in the evaluations on the way."""
    return {split: min(size, config.valid_size) for split, size in final_sizes(config).items()}


class Totals:
    """Sums of scores, and rows kept, over batches; over processes when read."""

    def __init__(self) -> None:
        self.sums: dict[str, list[float]] = {}
        self.kept: dict[str, list[Tensor]] = {}
        self.state: Any = None  # after the last batch, for one that goes on from there

    @torch.no_grad()
    def add_batch(self, model: nn.Module, task: Task, batch: Batch) -> None:
        """Run a net on a batch and add what comes of it."""
        outcome, self.state = task.run(model, batch, None if batch.first else self.state)
        self.add(outcome)

    def add(self, outcome: Outcome) -> None:
        for name, (total, weight) in outcome.scores.items():
            sums = self.sums.setdefault(name, [0.0, 0.0])
            sums[0] += float(total)
            sums[1] += float(weight)
        for name, rows in outcome.kept.items():
            self.kept.setdefault(name, []).append(rows.cpu())

    def scores(self, task: Task, device: torch.device, world: int = 1) -> dict[str, float]:
        """All scores of the task, over `world` processes, which must all ask; NaN where nothing had a weight. A process
        may have had no batch: the others know the names."""
        names = list(self.sums)
        kept = {name: torch.cat(rows) for name, rows in self.kept.items()}
        if world > 1:
            everyone: list[Any] = [None] * world
            torch.distributed.all_gather_object(everyone, (names, kept))
            names = list(dict.fromkeys(name for theirs, _ in everyone for name in theirs))
            rows = [(name, part) for _, theirs in everyone for name, part in theirs.items()]
            kept = {name: torch.cat([part for owner, part in rows if owner == name]) for name, _ in rows}
        sums = torch.tensor([self.sums.get(name, [0.0, 0.0]) for name in names], dtype=torch.float64, device=device)
        if world > 1:
            torch.distributed.all_reduce(sums)
        means = {
            name: total / weight if weight else math.nan
            for name, (total, weight) in zip(names, sums.tolist(), strict=True)
        }
        return means | (task.pooled(kept) if kept else {}) | task.derived(means)


@torch.no_grad()
def mean_row_norm(model: nn.Module) -> float | None:
    """‖v‖ of the rows w = s v / ‖v‖, in the mean; None without weight normalisation. Gradients are at right angles to
    v, so updates make it longer; the longer v, the less a step turns w."""
    maps = (m for m in model.modules() if isinstance(m, StructuredMap) and m.weight_norm)
    rows = [(m, m.stored(name)) for m in maps for name in m.normed]
    norms = [(v.flatten(-2) if m.complex else v).norm(dim=-1).flatten() for m, v in rows]
    return float(torch.cat(norms).mean()) if norms else None


def measure(model: nn.Module, task: Task, batches: Iterable[Batch], world: int = 1) -> dict[str, float]:
    """The task's scores of a net, over the batches of `world` processes."""
    some, training, totals = next(model.parameters()), model.training, Totals()
    model.eval()
    for batch in batches:
        totals.add_batch(model, task, as_dtype(batch, some.dtype).to(some.device))
    model.train(training)
    return totals.scores(task, some.device, world)
