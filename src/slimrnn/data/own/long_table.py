"""A row for each step: rows are put together by sequence, in the order of time.

Shape suffixes: S steps, N sequences, D columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from slimrnn._texts import shown
from slimrnn.data.own.growing import Growing
from slimrnn.data.own.missing import UNLABELLED
from slimrnn.data.own.notes import missing_note, plural
from slimrnn.data.own.parts import PARTS
from slimrnn.data.own.role_guess import RoleGuess
from slimrnn.data.own.table_file import TableFile, refuse
from slimrnn.data.own.table_values import Codes, exact_numbers_of, numbers_of, texts_of, times_of
from slimrnn.data.precision import Precision
from slimrnn.data.sequences import Sequences
from slimrnn.errors import DataError

if TYPE_CHECKING:
    from polars import DataFrame


class LongTable:
    """Takes a table piece by piece."""

    def __init__(self, table: TableFile, guess: RoleGuess) -> None:
        self.table, self.roles, self.notes = table, guess.roles, list(guess.notes)
        self._dates = self.roles.time is not None and guess.kinds[self.roles.time] == "times"
        self._rows = 0
        self._ids, self._names, self._parts = Codes(), Codes(), Codes()
        self._columns: dict[str, Growing] = {}
        self._precision = Precision(by_sequence=self.roles.labels == "none")  # forecasts: each series has its level

    def add(self, frame: DataFrame) -> None:
        """The next rows."""
        roles, table, row = self.roles, self.table, self._rows
        values, ids = numbers_of(frame, roles.columns or (), row, table), None
        self._keep("values", values.astype(np.float32))
        if roles.sequence is not None:
            ids = self._ids(texts_of(frame, roles.sequence, "the name of a sequence", ("",), row, table))
            self._keep("ids", ids)
        self._precision.add(values, np.zeros(len(values), np.int32) if ids is None else ids)
        if roles.time is not None:
            self._keep("times", times_of(frame, roles.time, self._dates, row, table))
        if roles.label is not None and roles.labels != "none":
            if roles.numbers:
                self._keep("labels", exact_numbers_of(frame, roles.label, "a label", row, table))
            else:
                self._keep("labels", self._names(texts_of(frame, roles.label, "a label", UNLABELLED, row, table)))
        if roles.split is not None:
            texts = texts_of(frame, roles.split, "train, valid or test", ("",), row, table)
            self._keep("parts", self._parts(texts))
        self._rows += len(frame)

    def sequences(self) -> Sequences:
        """All of them, in the order of their first rows."""
        columns = {name: column.take() for name, column in self._columns.items()}
        ids_S = columns.get("ids")
        names = tuple(self._ids.names) if ids_S is not None else (self.table.path.name,)
        order = self._order(ids_S, columns.get("times"))
        if order is not None:
            columns = {name: columns.pop(name)[order] for name in list(columns)}
        counts = [self._rows] if ids_S is None else np.bincount(columns["ids"], minlength=len(names))
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        labels, parts = columns.get("labels"), None
        if labels is not None:
            if self.roles.labels == "sequence":
                hint = "labels may be one for each step, or the column of sequences another"
                labels = self._constant(labels, starts, order, self.roles.label, hint)
            labels = labels if self.roles.numbers else np.array(list(self._names.names))[labels]
        if "parts" in columns:
            codes = self._constant(columns["parts"], starts, order, self.roles.split, "a sequence is in one part")
            parts = tuple(self._part_names(columns["parts"], order)[code] for code in codes)
        values = columns["values"]
        self.notes.extend(missing_note(values, self.roles.columns or ()))
        return Sequences(
            values,
            starts,
            self.roles.columns or (),
            names,
            labels,
            columns.get("times"),
            parts,
            tuple(self.notes),
            self.roles,
        )

    def check_precision(self) -> None:
        """Refuse columns whose values single precision does not tell apart."""
        problem = self._precision.problem(self.roles.columns or ())
        if problem is not None:
            raise DataError(f"{self.table.path}: {problem}")

    def _keep(self, name: str, piece: NDArray[Any]) -> None:
        self._columns.setdefault(name, Growing()).add(piece)

    def _order(self, ids_S: NDArray[np.int32] | None, times_S: NDArray[Any] | None) -> NDArray[np.int64] | None:
        """In which rows are sorted by sequence and time; None where they are."""
        if times_S is None and ids_S is None:
            return None
        keys = [key for key in (times_S, ids_S) if key is not None]
        same = np.ones(self._rows - 1, bool) if ids_S is None else ids_S[1:] == ids_S[:-1]
        sorted_by_id = ids_S is None or bool((ids_S[1:] >= ids_S[:-1]).all())
        if sorted_by_id and (times_S is None or bool((~same | (times_S[1:] > times_S[:-1])).all())):
            return None
        order: NDArray[np.int64] = np.lexsort(keys)
        if times_S is not None:
            self._check_steps(order, ids_S, times_S)
            late = same & (times_S[1:] < times_S[:-1])
            if late.any():
                self.notes.append(
                    f"sorted by {self.roles.time}: {plural(int(late.sum()), 'row')} came before the row above"
                )
        if not sorted_by_id:
            self.notes.append(f"put the rows of each {self.roles.sequence} together")
        return order

    def _check_steps(self, order: NDArray[np.int64], ids_S: NDArray[np.int32] | None, times_S: NDArray[Any]) -> None:
        """No two of one sequence at one time."""
        one, other = order[:-1], order[1:]
        equal = times_S[one] == times_S[other]
        if ids_S is not None:
            equal &= ids_S[one] == ids_S[other]
        if equal.any():
            first = int(equal.argmax())
            row, again = int(one[first]), int(other[first])
            which = "" if ids_S is None else f" of {shown(list(self._ids.names)[ids_S[row]])}"
            raise DataError(
                f"expected one row at each {self.roles.time}{which} in {self.table.path}, got two at "
                f"{times_S[row]}: {self.table.place(row)} and {self.table.place(again)}"
            )

    def _constant(
        self,
        codes_S: NDArray[Any],
        starts: NDArray[np.int64],
        order: NDArray[np.int64] | None,
        name: str | None,
        hint: str,
    ) -> NDArray[Any]:
        """The value of each sequence, which must not change in it."""
        first_N = codes_S[starts[:-1]]
        changed = codes_S != np.repeat(first_N, np.diff(starts))
        if changed.any():
            step = int(changed.argmax())
            start = int(starts[np.searchsorted(starts, step, side="right") - 1])
            one, other = self.table.place(_row(order, start)), self.table.place(_row(order, step))
            raise DataError(
                f"expected one {name} for each sequence in {self.table.path}, got {one} and {other}: {hint}"
            )
        return first_N

    def _part_names(self, codes_S: NDArray[np.int32], order: NDArray[np.int64] | None) -> list[str]:
        names = list(self._parts.names)
        for code, name in enumerate(names):
            if name.strip().lower() not in PARTS:
                row = min(_row(order, int(step)) for step in np.flatnonzero(codes_S == code))
                refuse(self.table, row, str(self.roles.split), "train, valid or test", name)
        return [PARTS[name.strip().lower()] for name in names]


def _row(order: NDArray[np.int64] | None, step: int) -> int:
    return step if order is None else int(order[step])
