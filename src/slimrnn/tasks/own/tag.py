"""Tagging of a user's sequences: a label at every step.

Shape suffixes: T time, B sequences, C classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from slimrnn.data.sequences import Sequences
from slimrnn.errors import DataError
from slimrnn.tasks.own.defaults import tagging_config
from slimrnn.tasks.own.labelled_task import LabelledTask
from slimrnn.tasks.own.outputs import outputs_of
from slimrnn.tasks.own.splits import cut_in_time
from slimrnn.training.config import Config
from slimrnn.training.task import Batch, Indices

FEW = 10  # sequences; fewer are split in time


@dataclass(frozen=True)
class TagTask(LabelledTask):
    """Label every step of your own sequences."""

    name = "tag"
    every_step = True
    labels_are = "step"

    @cached_property
    def sequences(self) -> Sequences:
        """Where there are only a few, their ends are for validation and test."""
        found: Sequences = self.read(self.file, self.wanted_roles)
        if len(found) >= FEW or found.parts is not None or self.test_file is not None:
            return found
        return cut_in_time(found, self.valid_share, self.test_share)

    def labels_of(self, split: str) -> NDArray[Any]:
        """Without those that are missing."""
        sequences, which = self.part(split)
        chosen = np.zeros(len(sequences), dtype=bool)
        chosen[which] = True
        labels = step_labels(sequences)[np.repeat(chosen, sequences.lengths)].astype(str)
        known: NDArray[Any] = labels[labels != ""]
        return known

    def batch(self, sequences: Sequences, which: Indices) -> Batch:
        """Steps without a label have no weight."""
        inputs, lengths = self.inputs(sequences, which)
        inside_TB = np.arange(len(inputs))[:, None] < self.steps(sequences, which)
        classes_TB = np.zeros(inside_TB.shape, dtype=np.int64)
        if sequences.labels is not None:
            labels = step_labels(sequences)
            places = [np.arange(sequences.starts[index], sequences.starts[index + 1]) for index in which]
            found = self.numbers_of(labels[np.concatenate([np.zeros(0, np.int64), *places])], "the data")
            classes_TB.T[inside_TB.T] = found  # one sequence after the other
        weights_TB = (inside_TB & (classes_TB >= 0)).astype(np.float32)
        return Batch(
            inputs,
            torch.from_numpy(np.maximum(classes_TB, 0)),
            torch.from_numpy(weights_TB),
            lengths,
        )

    def suited_config(self) -> tuple[Config, str]:
        return tagging_config(self, f"{self.output_size} classes")

    @property
    def answer_columns(self) -> list[str]:
        return [self.roles.time or "step", *super().answer_columns]

    def answers(self, model: nn.Module, sequences: Sequences, which: Indices) -> Iterator[tuple[int, list[list[str]]]]:
        """For every step the class and all probabilities."""
        for indices, output_TBC, _ in outputs_of(self, model, sequences, which):
            for place, index in enumerate(indices.tolist()):
                rows = self.named(output_TBC[: sequences.lengths[index], place])
                yield index, [[time, *row] for time, row in zip(times_of(sequences, index), rows, strict=True)]


def times_of(sequences: Sequences, index: int) -> list[str]:
    """Of the steps of a sequence, or else their numbers."""
    if sequences.times is None:
        return [str(step) for step in range(sequences.lengths[index])]
    times = sequences.times[sequences.starts[index] : sequences.starts[index + 1]]
    if np.issubdtype(times.dtype, np.datetime64):
        return [str(time) for time in times]
    return [f"{time:.15g}" for time in times.tolist()]


def step_labels(sequences: Sequences) -> NDArray[Any]:
    """One for each step."""
    if sequences.labels is None:
        raise DataError("expected a label at every step, got none: name its column with --label")
    if len(sequences.labels) != len(sequences.values):
        raise DataError(
            f"expected a label for each of {len(sequences.values):,} steps, got {len(sequences.labels):,}: one label "
            "for each sequence is for slimrnn train classify"
        )
    return sequences.labels
