"""What the tasks on a user's own sequences share: the file and its columns, the parts, the scaling.

Shape suffixes: T time, B sequences, D columns, I input width.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from slimrnn._checks import check_choice, check_number
from slimrnn.data.roles import Labels, Roles
from slimrnn.data.sequences import Sequences
from slimrnn.errors import ConfigError
from slimrnn.tasks.own.frames import count, framed, width
from slimrnn.tasks.own.reading import read_once
from slimrnn.tasks.own.samples import PartSamples
from slimrnn.tasks.own.scaling import Scaling
from slimrnn.tasks.own.splits import SPLITS, check_not_empty, given_parts, held_out
from slimrnn.training.config import Config
from slimrnn.training.task import Batch, Indices, Outcome, Samples, Task

if TYPE_CHECKING:
    from typing_extensions import Self

ALL = 1_000_000_000  # sequences of a test set that are scored: all of them


@dataclass(frozen=True)
class SequencesTask(Task):
    """A task on sequences of numbers, from a file or from memory."""

    file: Path | None = None
    """your data: .csv, .tsv, .parquet, .npz, .npy, .ts, .arff, or a folder of WAV files with a table of labels"""
    test_file: Path | None = None
    """the test set, if it is a file of its own"""
    sequence: str | None = None
    """column that says which sequence a row belongs to; default: guessed, and shown"""
    time: str | None = None
    """column with the time of a step; default: guessed"""
    label: str | None = None
    """column with what to predict; default: guessed"""
    split: str | None = None
    """column that says train, valid or test; default: parts are drawn at random, of each label alike"""
    columns: tuple[str, ...] = ()
    """columns that the net reads; default: all other columns of numbers"""
    test_share: float = 0.2
    """share of the sequences to test on, unless the file says which"""
    valid_share: float = 0.2
    """share of the others to validate on; 0: none is held out, and the net with the smallest training loss is taken"""
    split_seed: int = 0
    """seed of the parts, so that runs with different seeds have the same ones"""
    noise: float = 0.0
    """standard deviation of noise that training adds to the scaled inputs"""

    test_sets: ClassVar[Mapping[str, int]] = {"test": ALL}
    labels_are: ClassVar[Labels] = "sequence"  #: one label for each sequence or each "step", or "none"
    numbers: ClassVar[bool] = False  #: whether labels are numbers

    def __post_init__(self) -> None:
        for option in ("test_share", "valid_share"):
            check_number(option, getattr(self, option))
            if not 0 <= getattr(self, option) < 0.9:
                raise ValueError(f"expected {option} from 0 to 0.9, got {getattr(self, option)}")
        check_number("noise", self.noise)
        if self.noise < 0:
            raise ValueError(f"expected noise of at least 0, got {self.noise}")

    # --- from memory, or from the record of a run -------------------------------------------------------

    @classmethod
    def of(cls, sequences: Sequences, test: Sequences | None = None, **options: Any) -> Self:
        """A task on sequences in memory; `options` are the fields but for the file's."""
        task = cls(**options)
        vars(task).update(sequences=sequences, test_sequences=test)
        return task

    def changed(self, **options: Any) -> Self:
        """With other options, on the same sequences."""
        task = replace(self, **options)
        kept = ("sequences", "test_sequences")
        vars(task).update({name: value for name, value in vars(self).items() if name in kept})
        return task

    def restored(self, facts: Mapping[str, Any]) -> Self:
        """With what `facts` recorded, so that the net can be used without the file that it was trained on."""
        task = self.changed()
        try:
            vars(task).update(scaling=Scaling.from_record(facts), roles=_roles(facts["roles"]), **self.remember(facts))
        except (KeyError, TypeError, ValueError) as error:
            raise ConfigError(f"expected the columns and scales of the data in run.json, got others: {error}") from None
        return task

    def remember(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        """What a task adds to `facts`, read again."""
        return {}

    def facts(self) -> dict[str, Any]:
        return {"roles": asdict(self.roles), "steps": int(self.sequences.lengths.max()), **self.scaling.record()}

    def __getstate__(self) -> dict[str, Any]:
        """Another process reads the file itself."""
        here = dict(vars(self))
        if self.file is not None:
            here = {field.name: here[field.name] for field in fields(self)}
        return here

    # --- data -------------------------------------------------------------------------------------------

    @cached_property
    def sequences(self) -> Sequences:
        """All, or those to train on where the test set is another file."""
        return self._read(self.file, self.wanted_roles)

    @cached_property
    def roles(self) -> Roles:
        """Of the columns, as they were given or found."""
        return self.sequences.roles or self.wanted_roles

    @cached_property
    def test_sequences(self) -> Sequences | None:
        """Of the file for the test."""
        if self.test_file is None:
            return None
        found = self._read(self.test_file, self.roles)
        if found.columns != self.sequences.columns:
            raise ConfigError(
                f"expected the columns {', '.join(self.sequences.columns)} in {self.test_file}, got "
                f"{', '.join(found.columns)}"
            )
        return found

    def _read(self, path: Path | None, roles: Roles) -> Sequences:
        if path is None:
            raise ConfigError(f"expected the file of your data, slimrnn train {self.name} --file FILE, got none")
        return read_once(path, roles)

    @property
    def wanted_roles(self) -> Roles:
        """As the options say."""
        return Roles(
            self.sequence,
            self.time,
            self.label,
            self.split,
            self.columns or None,
            self.labels_are,
            self.numbers,
        )

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
        """A label for each sequence, which are shared out alike."""
        return np.zeros(len(self.sequences), dtype=np.int64)

    def part(self, split: str) -> tuple[Sequences, Indices]:
        """Where the sequences of a part are, and their numbers there."""
        check_choice("split", split, SPLITS)
        test = self.test_sequences if split == "test" else None
        return self.sequences if test is None else test, self.parts[split]

    @cached_property
    def scaling(self) -> Scaling:
        return Scaling.learned(*self.part("train"))

    @property
    def is_ragged(self) -> bool:
        """Whether lengths differ anywhere, so that batches say them."""
        tests = [] if self.test_sequences is None else [self.test_sequences.lengths]
        return len(np.unique(np.concatenate([self.sequences.lengths, *tests]))) > 1

    @property
    def stride(self) -> int:
        """Steps of the data from one step of the net to the next."""
        return 1

    @property
    def input_size(self) -> int:
        return len(self.scaling.columns) * width(self.stride)

    def inputs(self, sequences: Sequences, which: Indices) -> tuple[Tensor, Tensor]:
        """What the net reads of these sequences, (T, B, I), and the lengths."""
        lengths_B, starts_B = sequences.lengths[which], sequences.starts[:-1][which]
        steps_T1 = np.arange(lengths_B.max(initial=1))[:, None]
        places_TB = starts_B + np.minimum(steps_T1, lengths_B - 1)  # the last step goes on
        values = self.scaling(sequences.values[places_TB])
        inputs, lengths = framed(values, self.stride), count(lengths_B, self.stride)
        inputs[np.arange(len(inputs))[:, None] >= lengths] = 0
        return torch.from_numpy(inputs), torch.from_numpy(lengths)

    def samples(self, split: str, seed: int) -> Samples:
        """In the order of the file, for any seed."""
        return PartSamples(self, split, len(self.part(split)[1]))

    def steps(self, sequences: Sequences, which: Indices) -> Indices:
        """Of the net, for each sequence."""
        return count(sequences.lengths[which], self.stride)

    @abstractmethod
    def batch(self, sequences: Sequences, which: Indices) -> Batch:
        """Inputs, and targets where the sequences have labels."""

    def run(self, model: nn.Module, batch: Batch, state: Any = None) -> tuple[Outcome, Any]:
        """Noise is drawn anew for every update, from random numbers that belong to it."""
        if model.training and self.noise:
            batch = replace(batch, inputs=batch.inputs + self.noise * torch.randn_like(batch.inputs))
        return super().run(model, batch, state)

    @property
    def title(self) -> str:
        """Of figures."""
        return self.name if self.file is None else f"{self.name}: {self.file.stem}"

    # --- predictions ------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def answer_columns(self) -> list[str]:
        """Of a table of predictions, after the name of the sequence."""

    @abstractmethod
    def answers(
        self, model: nn.Module, sequences: Sequences, which: Indices
    ) -> Iterator[tuple[int, list[list[str]]]]:
        """For each of these sequences its number and its rows in a table of predictions, in any order."""

    def check(self, config: Config) -> None:
        for split in SPLITS:
            self.samples(split, config.seed)


def _roles(record: Mapping[str, Any]) -> Roles:
    columns = record.get("columns")
    return Roles(**{**record, "columns": None if columns is None else tuple(columns)})
