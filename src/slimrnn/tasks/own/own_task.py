"""What all tasks on a user's own sequences share: the file and its columns, from a file or from memory."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import nn

from slimrnn._checks import check_number
from slimrnn.data.roles import Labels, Roles
from slimrnn.data.sequences import Sequences
from slimrnn.errors import ConfigError, DataError
from slimrnn.tasks.own.reading import read_once
from slimrnn.tasks.own.splits import SPLITS
from slimrnn.training.config import Config
from slimrnn.training.task import Batch, Indices, Outcome, Task

if TYPE_CHECKING:
    from typing_extensions import Self

ALL = 1_000_000_000  # sequences of a test set that are scored: all of them
GIVEN = ("sequences", "test_sequences")  # what a task may have been given instead of files


@dataclass(frozen=True)
class OwnTask(Task):
    """A task on sequences of numbers that a user brings."""

    file: Path | None = None
    """your data: .csv, .tsv, .parquet, .npz, .npy, .ts, .arff, or a folder of WAV files with a table of labels"""
    sequence: str | None = None
    """column that says which sequence a row belongs to; default: guessed, and shown"""
    time: str | None = None
    """column with the time of a step; default: guessed"""
    columns: tuple[str, ...] = ()
    """columns that the net reads; default: all other columns of numbers"""
    test_share: float = 0.2
    """share to test on, unless the file says which"""
    valid_share: float = 0.2
    """share of the rest to validate on; 0: none is held out, and the net with the smallest training loss is taken"""
    noise: float = 0.0
    """standard deviation of noise that training adds to the scaled inputs"""

    test_sets: ClassVar[Mapping[str, int]] = {"test": ALL}
    distils: ClassVar[bool | None] = True  # `run` only adds noise
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
    def of(cls, sequences: Sequences, **options: Any) -> Self:
        """A task on sequences in memory; `options` are the fields but for the file's."""
        task = cls(**options)
        vars(task).update(sequences=sequences)
        return task

    def changed(self, **options: Any) -> Self:
        """With other options, on the same sequences."""
        task = replace(self, **options)
        vars(task).update({name: value for name, value in vars(self).items() if name in GIVEN})
        return task

    def restored(self, facts: Mapping[str, Any]) -> Self:
        """With what `facts` recorded, so that the net can be used without the file that it was trained on."""
        task = self.changed()
        try:
            vars(task).update(self.remember(facts))
        except (KeyError, TypeError, ValueError) as error:
            raise ConfigError(f"expected the columns and scales of the data in run.json, got others: {error}") from None
        return task

    def remember(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Attributes by name, from what `facts` recorded."""
        roles = facts["roles"]
        columns = None if roles["columns"] is None else tuple(roles["columns"])
        return {"roles": Roles(**{**roles, "columns": columns})}

    def facts(self) -> dict[str, Any]:
        checksums = self.checksums()
        return {"roles": asdict(self.roles), **({"checksums": checksums} if checksums else {})}

    def checksums(self) -> dict[str, str]:
        """Of what the files hold now, by their options."""
        return {} if self.file is None else {"file": self.sequences.checksum()}

    def check_data(self, facts: Mapping[str, Any]) -> None:
        """Refuse a file that has changed since: its parts would be drawn anew, and sequences of the training part
        would come into the test. Runs of earlier versions have no checksum."""
        recorded = facts.get("checksums")
        if not isinstance(recorded, Mapping):
            return
        for option, now in self.checksums().items():
            if recorded.get(option) != now:
                raise DataError(
                    f"expected {getattr(self, option)} as it was when the net was trained, got other data: with these, "
                    "the net might be tested on sequences that it has seen. Put the old file back, or train a new net; "
                    "slimrnn predict answers for new sequences"
                )

    def __getstate__(self) -> dict[str, Any]:
        """Another process reads the file itself."""
        here = dict(vars(self))
        return here if self.file is None else {field.name: here[field.name] for field in fields(self)}

    # --- data -------------------------------------------------------------------------------------------

    @cached_property
    def sequences(self) -> Sequences:
        """All of the file."""
        return self.read(self.file, self.wanted_roles)

    @cached_property
    def roles(self) -> Roles:
        """Of the columns, as they were given or found."""
        return self.sequences.roles or self.wanted_roles

    @property
    def wanted_roles(self) -> Roles:
        """As the options say."""
        return Roles(self.sequence, self.time, columns=self.columns or None, labels=self.labels_are)

    def read(self, path: Path | None, roles: Roles) -> Sequences:
        if path is None:
            raise ConfigError(f"expected the file of your data, slimrnn train {self.name} --file FILE, got none")
        return read_once(path, roles)

    @property
    @abstractmethod
    def input_columns(self) -> tuple[str, ...]:
        """Columns of the file that the net reads."""

    def run(self, model: nn.Module, batch: Batch, state: Any = None) -> tuple[Outcome, Any]:
        """Noise is drawn anew for every update, from random numbers that belong to it."""
        if model.training and self.noise:
            batch = replace(batch, inputs=batch.inputs + self.noise * torch.randn_like(batch.inputs))
        return super().run(model, batch, state)

    def check(self, config: Config) -> None:
        for split in SPLITS:
            self.samples(split, config.seed)

    def variants(self, config: Config) -> list[Config]:
        from slimrnn.tasks.own.defaults import variants

        return variants(config)

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
    def answers(self, model: nn.Module, sequences: Sequences, which: Indices) -> Iterator[tuple[int, list[list[str]]]]:
        """For each of these sequences its number and its rows in a table of predictions, in any order."""
