"""Which column of a table is what: as the user says, or guessed from names and first rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from slimrnn._checks import suggestion
from slimrnn._texts import listed
from slimrnn.data.own.csv_head import unnamed
from slimrnn.data.own.iso_times import is_time
from slimrnn.data.own.layouts import looks_wide
from slimrnn.data.own.missing import MISSING
from slimrnn.data.own.parts import PARTS
from slimrnn.data.own.table_file import TableFile
from slimrnn.data.roles import Roles
from slimrnn.data.tables import polars
from slimrnn.errors import DataError

if TYPE_CHECKING:
    from polars import DataFrame, Series

Kind = Literal["numbers", "times", "texts", "empty", "other"]
HEAD = 10_000  # rows that are looked at

USUAL = {
    "sequence": (
        "sequence",
        "sequence_id",
        "seq",
        "seq_id",
        "series",
        "series_id",
        "unique_id",
        "id",
        "case",
        "clip",
        "name",
    ),
    "time": ("time", "timestamp", "datetime", "date", "t", "ds", "step"),
    "label": ("label", "class", "target"),
    "split": ("split", "part"),
}


class RoleGuess:
    """`roles` with names for all that was found, the `kinds` of the columns, and `notes` on what was guessed."""

    def __init__(self, table: TableFile, head: DataFrame, roles: Roles, to_predict: bool) -> None:
        self.table, self.head = table, head[:HEAD]
        self.kinds = kinds_of(self.head)
        self.roles = roles = _present(table, roles, to_predict)
        self._guessed: list[str] = []
        taken = {name for name in (roles.sequence, roles.time, roles.label, roles.split) if name is not None}
        taken.update(roles.columns or ())
        found = {role: self._role(role, taken) for role in USUAL}
        layout = roles.layout or self._layout(found, taken)
        self._first_column(layout, found, taken)
        self.roles = replace(
            roles,
            sequence=found["sequence"],
            time=found["time"],
            label=found["label"],
            split=found["split"],
            layout=layout,
            columns=roles.columns or self._inputs(found),
        )
        self.notes = self._notes()

    def _role(self, role: str, taken: set[str]) -> str | None:
        """The column with the given name, or with a usual one."""
        asked: str | None = getattr(self.roles, role)
        if asked is not None or (role == "label" and self.roles.labels == "none"):
            return asked
        free = {name.lower(): name for name in reversed(self.table.names) if name not in taken}
        usual = (free[name] for name in USUAL[role] if name in free)
        name = next((name for name in usual if self._fits(role, name)), None)
        if role == "time" and name is None and self.roles.layout != "wide":
            name = next((name for name in free.values() if self.kinds[name] == "times"), None)
        return self._take(role, name, taken)

    def _take(self, role: str, name: str | None, taken: set[str]) -> str | None:
        if name is not None:
            taken.add(name)
            self._guessed.append(role)
        return name

    def _fits(self, role: str, name: str) -> bool:
        if self.kinds[name] in ("empty", "other"):
            return False
        if role == "time":
            return self.roles.layout != "wide" and self.kinds[name] in ("numbers", "times")
        if role == "split":
            return 2 * sum(text.lower() in PARTS for text in _texts(self.head[name])) > len(self.head)
        return True

    def _layout(self, found: Mapping[str, str | None], taken: set[str]) -> Literal["long", "wide"]:
        if found["time"] is not None or self.roles.labels == "step":
            return "long"
        if found["sequence"] is not None and self.head[found["sequence"]].n_unique() < len(self.head):
            return "long"
        names = self.roles.columns or [n for n in self.table.names if n not in taken and self._is_number(n)]
        if names and names[0] == unnamed(0) and self.roles.columns is None:
            names = names[1:]
        return "wide" if looks_wide(names) else "long"

    def _first_column(self, layout: str, found: dict[str, str | None], taken: set[str]) -> None:
        """One without a name: the times of a long table, the labels (as UCR has it) or the ids of a wide one."""
        name = unnamed(0)
        if name not in self.table.names or name in taken:
            return
        column = _numbers(self.head[name])
        role = None
        if layout == "long":
            role = "time" if len(column) and (np.diff(column) > 0).all() else None
        elif not self.table.has_header:
            role = "label" if (column == np.round(column)).all() else None
        else:
            role = "sequence" if self.head[name].n_unique() == len(self.head) else None
        if role is not None and found[role] is None and not (role == "label" and self.roles.labels == "none"):
            found[role] = self._take(role, name, taken)

    def _is_number(self, name: str) -> bool:
        return self.kinds[name] == "numbers"

    def _inputs(self, found: Mapping[str, str | None]) -> tuple[str, ...]:
        used = set(found.values())
        if self.roles.label is not None:
            used.add(self.roles.label)
        names = tuple(name for name in self.table.names if name not in used and self._is_number(name))
        if not names:
            raise DataError(f"expected columns of numbers in {self.table.path}, got {listed(self.table.names)}")
        return names

    def _notes(self) -> tuple[str, ...]:
        roles, inputs = self.roles, self.roles.columns or ()
        parts = [f"{getattr(roles, role)} as {role}" for role in self._guessed]
        notes = [f"{roles.layout} table; took {', '.join([*parts, f'{listed(inputs)} as inputs'])}"]
        used = {roles.sequence, roles.time, roles.label, roles.split, *inputs}
        left = [f"{name} ({self.kinds[name]})" for name in self.table.names if name not in used]
        if left:
            notes.append(f"left out {listed(left)}")
        if not self.table.has_header:
            notes.append("line 1 has numbers and no names: columns are counted")
        return tuple(notes)


def _present(table: TableFile, roles: Roles, to_predict: bool) -> Roles:
    """Without the names of columns that may be missing and are; others must be there."""
    names = set(table.names)
    if roles.label not in names and (to_predict or roles.labels == "none"):
        roles = replace(roles, label=None, labels="none")
    if roles.split not in names and to_predict:
        roles = replace(roles, split=None)
    uses: dict[str, str] = {}
    given = [("sequence", roles.sequence), ("time", roles.time), ("label", roles.label), ("split", roles.split)]
    for role, name in [*given, *(("input", name) for name in roles.columns or ())]:
        if name is None:
            continue
        if name not in names:
            hint = suggestion(name, table.names[:1000])
            raise DataError(f"expected a column {name} ({role}) in {table.path}, got {listed(table.names)}{hint}")
        if uses.setdefault(name, role) != role:
            raise DataError(f"expected one role for the column {name} of {table.path}, got {uses[name]} and {role}")
    return roles


def kinds_of(head: DataFrame) -> dict[str, Kind]:
    """What most values of each column are."""
    pl = polars()
    texts = [name for name, dtype in head.schema.items() if dtype == pl.String]
    counts = head.select(pl.col(*texts).cast(pl.Float64, strict=False).count()).row(0) if texts else ()
    plain = {name for name, count in zip(texts, counts, strict=True) if count == len(head)}  # for all at once: fast
    kinds: dict[str, Kind] = dict.fromkeys(plain, "numbers")
    for name, dtype in head.schema.items():
        if name not in plain:
            kinds[name] = _text_kind(head[name]) if dtype == pl.String else _typed_kind(head[name])
    return kinds


def _text_kind(column: Series) -> Kind:
    pl = polars()
    texts = _texts(column)
    if len(texts) == 0:
        return "empty"
    if 2 * texts.cast(pl.Float64, strict=False).count() >= len(texts):
        return "numbers"
    return "times" if 2 * sum(map(is_time, texts[:100])) >= len(texts[:100]) else "texts"


def _typed_kind(column: Series) -> Kind:
    pl = polars()
    if column.null_count() == len(column):
        return "empty"
    if column.dtype.is_numeric() or column.dtype == pl.Boolean:
        return "numbers"
    if column.dtype in (pl.Date, pl.Datetime):
        return "times"
    return "texts" if column.dtype in (pl.Categorical, pl.Enum) else "other"


def _texts(column: Series) -> Series:
    """Those that are not missing."""
    pl = polars()
    texts = column.cast(pl.String).str.strip_chars(" \t").drop_nulls()
    return texts.filter(~texts.is_in(MISSING))


def _numbers(column: Series) -> NDArray[np.float64]:
    pl = polars()
    numbers: NDArray[np.float64] = column.cast(pl.Float64, strict=False).fill_null(float("nan")).to_numpy()
    return numbers
