"""What classification, tagging and regression share: parts that share no sequence, scaled columns.

Shape suffixes: T time, B sequences, D columns, I input width.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from slimrnn._checks import check_choice
from slimrnn.data.roles import Roles
from slimrnn.data.sequences import Sequences
from slimrnn.errors import ConfigError
from slimrnn.tasks.own.frames import count, framed, width
from slimrnn.tasks.own.own_task import OwnTask
from slimrnn.tasks.own.samples import PartSamples
from slimrnn.tasks.own.scaling import Scaling
from slimrnn.tasks.own.splits import SPLITS, check_not_empty, given_parts, held_out
from slimrnn.training.task import Batch, Indices, Samples

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True)
class SequencesTask(OwnTask):
    """A task on labelled sequences."""

    test_file: Path | None = None
    """the test set, if it is a file of its own"""
    label: str | None = None
    """column with what to predict; default: guessed"""
    split: str | None = None
    """column that says train, valid or test; default: parts are drawn at random, of each label alike"""
    split_seed: int = 0
    """seed of the parts, so that runs with different seeds have the same ones"""

    @classmethod
    def of(cls, sequences: Sequences, test: Sequences | None = None, **options: Any) -> Self:
        """A task on sequences in memory; `options` are the fields but for those of files."""
        task = super().of(sequences, **options)
        vars(task).update(test_sequences=test)
        return task

    @property
    def wanted_roles(self) -> Roles:
        return replace(super().wanted_roles, label=self.label, split=self.split, numbers=self.numbers)

    @cached_property
    def test_sequences(self) -> Sequences | None:
        """Of the file for the test."""
        if self.test_file is None:
            return None
        found = self.read(self.test_file, self.roles)
        if found.columns != self.sequences.columns:
            raise ConfigError(
                f"expected the columns {', '.join(self.sequences.columns)} in {self.test_file}, got "
                f"{', '.join(found.columns)}"
            )
        return found

    # --- parts ------------------------------------------------------------------------------------------

    @cached_property
    def parts(self) -> dict[str, Indices]:
        """The numbers of each part's sequences; "test" counts in the test file, if there is one."""
        sequences, test = self.sequences, self.test_sequences
        everyone = np.arange(len(sequences))
        parts = dict.fromkeys(SPLITS, everyone[:0]) if sequences.parts is None else given_parts(sequences.parts)
        rest = parts["train"] if sequences.parts is not None else everyone
        labels = self.strata
        if test is not None:
            parts["test"] = np.arange(len(test))
        elif len(parts["test"]) == 0:
            parts["test"] = held_out(rest, labels[rest], self.test_share, self.split_seed, "test")
            rest = np.setdiff1d(rest, parts["test"])
        if self.valid_share and len(parts["valid"]) == 0:
            parts["valid"] = held_out(rest, labels[rest], self.valid_share, self.split_seed, "valid")
            rest = np.setdiff1d(rest, parts["valid"])
        parts["train"] = rest
        if not self.valid_share and len(parts["valid"]) == 0:
            parts["valid"] = rest
        check_not_empty(parts, len(sequences) + (0 if test is None else len(test)))
        return parts

    @property
    def strata(self) -> NDArray[Any]:
        """A label for each sequence: each label is shared out alike."""
        return np.zeros(len(self.sequences), dtype=np.int64)

    def part(self, split: str) -> tuple[Sequences, Indices]:
        """Where the sequences of a part are, and their numbers there."""
        check_choice("split", split, SPLITS)
        test = self.test_sequences if split == "test" else None
        return self.sequences if test is None else test, self.parts[split]

    def samples(self, split: str, seed: int) -> Samples:
        """In the order of the file, for any seed."""
        return PartSamples(self, split, len(self.part(split)[1]))

    # --- inputs -----------------------------------------------------------------------------------------

    @cached_property
    def scaling(self) -> Scaling:
        """Learned on the training part."""
        return Scaling.learned(*self.part("train"))

    def checksums(self) -> dict[str, str]:
        test = None if self.test_file is None else self.test_sequences
        return super().checksums() | ({} if test is None else {"test_file": test.checksum()})

    def facts(self) -> dict[str, Any]:
        return super().facts() | self.scaling.record()

    def remember(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        return super().remember(facts) | {"scaling": Scaling.from_record(facts)}

    @property
    def input_columns(self) -> tuple[str, ...]:
        return self.scaling.columns

    @property
    def stride(self) -> int:
        """Steps of the data from one step of the net to the next."""
        return 1

    @property
    def input_size(self) -> int:
        return len(self.input_columns) * width(self.stride)

    def steps(self, sequences: Sequences, which: Indices) -> Indices:
        """Of the net, for each sequence."""
        return count(sequences.lengths[which], self.stride)

    @abstractmethod
    def batch(self, sequences: Sequences, which: Indices) -> Batch:
        """Inputs, and targets where the sequences have labels."""

    def inputs(self, sequences: Sequences, which: Indices) -> tuple[Tensor, Tensor | None]:
        """What the net reads of these sequences, (T, B, I), and the lengths, unless all of the data are alike."""
        lengths_B, starts_B = sequences.lengths[which], sequences.starts[:-1][which]
        steps_T1 = np.arange(lengths_B.max(initial=1))[:, None]
        places_TB = starts_B + np.minimum(steps_T1, lengths_B - 1)  # the last step goes on
        inputs, lengths = framed(self.scaling(sequences.values[places_TB]), self.stride), self.steps(sequences, which)
        inputs[np.arange(len(inputs))[:, None] >= lengths] = 0
        ragged = len(np.unique(sequences.lengths)) > 1
        return torch.from_numpy(inputs), torch.from_numpy(lengths) if ragged else None
