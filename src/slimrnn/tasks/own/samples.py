"""The sequences of a part by number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from slimrnn.data.sequences import Sequences
from slimrnn.training.task import Batch, Indices


class Source(Protocol):
    """What makes batches of sequences."""

    def part(self, split: str) -> tuple[Sequences, Indices]: ...

    def steps(self, sequences: Sequences, which: Indices) -> Indices: ...

    def batch(self, sequences: Sequences, which: Indices) -> Batch: ...


@dataclass(frozen=True)
class PartSamples:
    """Holds no values, so it is cheap to send to a worker process that has the task."""

    task: Source
    split: str
    size: int

    def lengths(self, indices: Indices) -> Indices:
        """Steps of the net for each sequence."""
        sequences, which = self.task.part(self.split)
        return self.task.steps(sequences, which[indices])

    def fetch(self, indices: Indices) -> Batch:
        sequences, which = self.task.part(self.split)
        return self.task.batch(sequences, which[indices])
