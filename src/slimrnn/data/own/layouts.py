"""Long and wide tables told apart.

A wide table has the steps of a sequence side by side, in columns that count: t0, t1, t2, ... or, with two channels,
x_1, x_2, ..., y_1, y_2, ... Shape suffixes: T steps, C channels.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

LEAST = 5  # steps of a table that is taken for wide: x1, x2 and x3 may be three sensors

_COUNTED = re.compile(r"(.*?)[ _.\-]?([0-9]{1,9})")


@dataclass(frozen=True)
class Steps:
    """The columns of a wide table: of each step, those of all channels."""

    channels: tuple[str, ...]
    names: tuple[str, ...]  # T × C, in this order


def steps_of(names: Sequence[str]) -> Steps | None:
    """Of columns that count, all channels alike and without a gap; None for others."""
    channels: dict[str, dict[int, str]] = {}
    for name in names:
        found = _COUNTED.fullmatch(name)
        if found is None or channels.setdefault(found[1], {}).setdefault(int(found[2]), name) != name:
            return None
    counts = [sorted(steps) for steps in channels.values()]
    if not counts or any(count != counts[0] for count in counts) or counts[0][-1] - counts[0][0] >= len(counts[0]):
        return None
    ordered = tuple(steps[number] for number in counts[0] for steps in channels.values())
    return Steps(tuple(name or "value" for name in channels), ordered)


def looks_wide(names: Sequence[str]) -> bool:
    """Whether columns of numbers look like steps rather than channels."""
    steps = steps_of(names)
    return steps is not None and len(steps.names) >= LEAST * len(steps.channels)


def forced_steps(names: Sequence[str]) -> Steps:
    """Of a table that is said to be wide: columns that do not count are steps of one channel in their order."""
    return steps_of(names) or Steps(("value",), tuple(names))
