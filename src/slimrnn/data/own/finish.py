"""The last steps of readers whose files have no table of columns: UCR/UEA archives, arrays and sound.

Shape suffixes: S steps, N sequences, C channels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimrnn._checks import suggestion
from slimrnn._texts import listed
from slimrnn.data.own.notes import missing_note
from slimrnn.data.precision import Precision
from slimrnn.data.roles import Roles
from slimrnn.data.sequences import Sequences
from slimrnn.errors import DataError


@dataclass
class Found:
    """What a file has."""

    values: NDArray[np.float32]  # (S, C)
    starts: NDArray[np.int64]  # (N + 1)
    channels: tuple[str, ...]
    label: str | None = None  # name of the labels, where there are some
    labels: NDArray[Any] | None = None
    ids: tuple[str, ...] | None = None
    times: NDArray[Any] | None = None
    parts: tuple[str, ...] | None = None
    notes: list[str] = field(default_factory=list)
    precision: Precision | None = None  # of the values before they were single


def finished(found: Found, path: Path, roles: Roles, to_predict: bool) -> Sequences:
    """As the roles ask for it: channels by name, and labels if they are wanted."""
    check_label(found.label, path, roles, to_predict)
    values, channels = found.values, found.channels
    if roles.columns is not None and roles.columns != channels:
        for name in roles.columns:
            if name not in channels:
                hint = suggestion(name, channels)
                raise DataError(f"expected a channel {name} in {path}, got {listed(channels)}{hint}")
        values = values[:, [channels.index(name) for name in roles.columns]]
        channels = roles.columns
    problem = None if found.precision is None or to_predict else found.precision.problem(found.channels, channels)
    if problem is not None:
        raise DataError(f"{path}: {problem}")
    wanted = roles.labels != "none"
    notes = [f"took {listed(channels)} as inputs{f', {found.label} as labels' if wanted and found.label else ''}"]
    notes += [*found.notes, *missing_note(values, channels)]
    ids = found.ids or tuple(str(n + 1) for n in range(len(found.starts) - 1))
    taken = replace(roles, label=found.label or roles.label, columns=channels)
    labels = found.labels if wanted else None
    return Sequences(values, found.starts, channels, ids, labels, found.times, found.parts, tuple(notes), taken)


def check_label(found: str | None, path: Path, roles: Roles, to_predict: bool) -> None:
    """The name that was given, if one was, is that of the labels."""
    if roles.label is not None and roles.label != found and not (to_predict or roles.labels == "none"):
        raise DataError(f"expected labels {roles.label} in {path}, got {found or 'none'}")


def check_no_columns(path: Path, roles: Roles, roles_of_tables: Sequence[str] = ("sequence", "time", "split")) -> None:
    """Refuse names that only a table can have."""
    for role in roles_of_tables:
        if getattr(roles, role) is not None:
            raise DataError(f"expected no column for {role} with {path}, got {getattr(roles, role)}: it is no table")
    if roles.layout is not None:
        raise DataError(f"expected no layout with {path}, got {roles.layout}: it is no table")


def no_step_labels(path: Path, roles: Roles) -> None:
    """Refuse labels for each step where a format has none."""
    if roles.labels == "step":
        raise DataError(f"expected a label for each step, got {path}, whose format has one for each sequence")
