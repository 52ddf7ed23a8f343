"""Files that users bring: tables, arrays, UCR/UEA archives and folders of sound, all read to `Sequences`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from slimrnn._checks import suggestion
from slimrnn._texts import listed, shown
from slimrnn.data.roles import Roles
from slimrnn.data.sequences import Sequences
from slimrnn.data.tables import polars, read_table
from slimrnn.errors import DataError

__all__ = ["Roles", "read_sequences"]

NAMES = {
    "sequence": ("sequence", "sequence_id", "series", "series_id", "id", "case", "clip", "subject", "user"),
    "time": ("time", "timestamp", "t", "step", "date", "datetime"),
    "label": ("label", "class", "target", "y"),
    "split": ("split", "part", "set"),
}


def read_sequences(path: Path, roles: Roles | None = None, *, to_predict: bool = False) -> Sequences:
    """A file of sequences; what is no data, or could be two things, is a DataError with its place.

    With `to_predict` the columns of labels and splits may be missing, whatever the roles say."""
    pl = polars()
    table = read_table(path)
    frame, roles, notes = table.frame, roles or Roles(), []
    found: dict[str, str | None] = {}
    for role, usual in NAMES.items():
        asked = getattr(roles, role)
        if asked is not None and asked not in frame.columns:
            if to_predict and role in ("label", "split"):
                asked = None
            else:
                raise DataError(
                    f"expected a column {asked} in {path}, got {listed(frame.columns)}"
                    f"{suggestion(asked, frame.columns)}"
                )
        found[role] = asked
        if asked is None and not (role == "label" and roles.labels == "none"):
            free = [n for n in frame.columns if n.lower() in usual and n not in (roles.columns or ())]
            found[role] = free[0] if free else None
            if free:
                notes.append(f"took the column {free[0]} as {role}")
    inputs = roles.columns
    if inputs is None:
        others = [name for name in frame.columns if name not in found.values()]
        inputs = tuple(others)
    numbers = []
    for name in inputs:
        column = frame[name].cast(pl.Float64, strict=False)
        wrong = column.is_null() & frame[name].is_not_null() & (frame[name].cast(pl.String) != "")
        if wrong.any():
            row = wrong.arg_max() or 0
            raise DataError(
                f"expected a number as {name} in {path}, got {shown(frame[name][row])} in {table.place(row)}"
            )
        numbers.append(column.fill_null(float("nan")).to_numpy())
    values = np.stack(numbers, 1).astype(np.float32)
    ids = frame[found["sequence"]].cast(pl.String).to_list() if found["sequence"] else [path.name] * len(frame)
    names = tuple(dict.fromkeys(ids))
    codes = np.array([{n: i for i, n in enumerate(names)}[i] for i in ids])
    times = frame[found["time"]].cast(pl.Float64).to_numpy() if found["time"] else np.arange(len(frame))
    order = np.lexsort((times, codes))
    starts = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=len(names)))]).astype(np.int64)
    labels = parts = None
    if found["label"] and roles.labels != "none":
        kind = pl.Float64 if roles.numbers else pl.String
        labels = np.array(frame[found["label"]].cast(kind).to_list())[order]
        labels = labels[starts[:-1]] if roles.labels == "sequence" else labels
    if found["split"]:
        parts = tuple(np.array(frame[found["split"]].to_list())[order][starts[:-1]].tolist())
    taken = replace(roles, **found, columns=inputs, layout="long")
    return Sequences(
        values[order], starts, inputs, names, labels, times[order] if found["time"] else None, parts, tuple(notes), taken
    )
