"""A row for each sequence, with its steps side by side.

Shape suffixes: N sequences, T steps at most, C channels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slimrnn._texts import shown
from slimrnn.data.own.growing import Growing
from slimrnn.data.own.layouts import forced_steps
from slimrnn.data.own.missing import UNLABELLED
from slimrnn.data.own.notes import missing_note
from slimrnn.data.own.padded import without_padding
from slimrnn.data.own.parts import PARTS
from slimrnn.data.own.role_guess import RoleGuess
from slimrnn.data.own.table_file import TableFile, refuse
from slimrnn.data.own.table_values import exact_numbers_of, numbers_of, texts_of
from slimrnn.data.precision import Precision
from slimrnn.data.sequences import Sequences
from slimrnn.errors import DataError

if TYPE_CHECKING:
    from polars import DataFrame


class WideTable:
    """Takes a table piece by piece."""

    def __init__(self, table: TableFile, guess: RoleGuess) -> None:
        self.table, self.roles, self.notes = table, guess.roles, list(guess.notes)
        if self.roles.time is not None or self.roles.labels == "step":
            wrong = "a column of times" if self.roles.time is not None else "labels for each step"
            raise DataError(f"expected a long table in {table.path} for {wrong}, got layout wide")
        self._steps = forced_steps(self.roles.columns or ())
        self._rows = 0
        self._ids: dict[str, int] = {}
        self._values = Growing()
        self._precision = Precision(by_sequence=self.roles.labels == "none")
        self._labels: list[Any] = []
        self._parts: list[str] = []

    def add(self, frame: DataFrame) -> None:
        """The next rows."""
        roles, table, row = self.roles, self.table, self._rows
        values = numbers_of(frame, self._steps.names, row, table)
        self._values.add(values.astype(np.float32))
        channels = len(self._steps.channels)
        numbers = np.repeat(np.arange(row, row + len(values)), values.shape[1] // channels)
        self._precision.add(values.reshape(-1, channels), numbers)
        if roles.sequence is not None:
            for name in texts_of(frame, roles.sequence, "the name of a sequence", ("",), row, table).to_list():
                self._add_id(name)
        if roles.label is not None and roles.labels != "none":
            if roles.numbers:
                self._labels.extend(exact_numbers_of(frame, roles.label, "a label", row, table))
            else:
                self._labels.extend(texts_of(frame, roles.label, "a label", UNLABELLED, row, table).to_list())
        if roles.split is not None:
            texts = texts_of(frame, roles.split, "train, valid or test", ("",), row, table).to_list()
            for place, text in enumerate(texts):
                if text.strip().lower() not in PARTS:
                    refuse(table, row + place, roles.split, "train, valid or test", text)
            self._parts.extend(PARTS[text.strip().lower()] for text in texts)
        self._rows += len(frame)

    def sequences(self) -> Sequences:
        """All of them, in the order of the rows."""
        channels = len(self._steps.channels)
        padded_NTC = self._values.take().reshape(self._rows, -1, channels)
        values, starts, notes = without_padding(padded_NTC, lambda n: f"{self.table.path}, {self.table.place(n)}")
        self.notes += [*notes, *missing_note(values, self._steps.channels)]
        ids = tuple(self._ids) or tuple(str(n + 1) for n in range(self._rows))
        labels = np.array(self._labels) if self._labels else None
        parts = tuple(self._parts) or None
        columns = self._steps.channels
        return Sequences(values, starts, columns, ids, labels, None, parts, tuple(self.notes), self.roles)

    def check_precision(self) -> None:
        """Refuse channels whose values single precision does not tell apart."""
        problem = self._precision.problem(self._steps.channels)
        if problem is not None:
            raise DataError(f"{self.table.path}: {problem}")

    def _add_id(self, name: str) -> None:
        row = len(self._ids)
        before = self._ids.setdefault(name, row)
        if before != row:
            one, other = self.table.place(before), self.table.place(row)
            raise DataError(
                f"expected one row for each {self.roles.sequence} of the wide table {self.table.path}, "
                f"got two of {shown(name)}: {one} and {other}"
            )
