"""Classification of a user's sequences: one label for each.

Shape suffixes: B sequences, C classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from slimrnn._checks import check_count
from slimrnn.data.sequences import Sequences
from slimrnn.errors import DataError
from slimrnn.tasks.own.defaults import one_output_config
from slimrnn.tasks.own.labelled_task import LabelledTask
from slimrnn.tasks.own.outputs import outputs_of
from slimrnn.training.config import Config
from slimrnn.training.task import Batch, Indices


@dataclass(frozen=True)
class ClassifyTask(LabelledTask):
    """Classify your own sequences, from a table, arrays or sound files."""

    frame: int = 1
    """steps of the data that make one step of the net; slimrnn train chooses it by the length"""

    name = "classify"
    every_step = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("frame", self.frame)

    @property
    def stride(self) -> int:
        return self.frame

    def labels_of(self, split: str) -> NDArray[Any]:
        sequences, which = self.part(split)
        return labels_of(sequences)[which]

    @property
    def strata(self) -> NDArray[Any]:
        return labels_of(self.sequences)

    def batch(self, sequences: Sequences, which: Indices) -> Batch:
        inputs, lengths = self.inputs(sequences, which)
        targets = np.zeros(len(which), dtype=np.int64)
        if sequences.labels is not None:
            targets = self.numbers_of(labels_of(sequences)[which], "the data")
        return Batch(inputs, torch.from_numpy(targets), lengths=lengths)

    def suited_config(self) -> tuple[Config, str]:
        return one_output_config(self, f"{self.output_size} classes", hold_none=True)

    # --- predictions ------------------------------------------------------------------------------------

    def answers(self, model: nn.Module, sequences: Sequences, which: Indices) -> Iterator[tuple[int, list[list[str]]]]:
        """The class and all probabilities."""
        for indices, output_BC, _ in outputs_of(self, model, sequences, which):
            for index, row in zip(indices.tolist(), self.named(output_BC), strict=True):
                yield index, [row]


def labels_of(sequences: Sequences) -> NDArray[Any]:
    """One for each sequence."""
    if sequences.labels is None:
        raise DataError("expected a label for every sequence, got none: name its column with --label")
    if len(sequences.labels) != len(sequences):
        raise DataError(
            f"expected one label for each of {len(sequences):,} sequences, got {len(sequences.labels):,}: "
            "labels of steps are for slimrnn train tag"
        )
    return sequences.labels
