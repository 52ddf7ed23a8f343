"""Predictions on a stream: lines of a table come in, lines of predictions go out as soon as they can be made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from slimrnn._texts import decimal
from slimrnn.data.own.iso_times import is_time, iso_times
from slimrnn.data.own.rows import read_rows
from slimrnn.data.sequences import Sequences
from slimrnn.tasks.own.own_task import OwnTask
from slimrnn.tasks.own.predicting import predictions
from slimrnn.tasks.own.tag import TagTask

Write = Callable[[Sequence[str]], None]
Step = tuple[str, str, NDArray[np.float32]]  # sequence, time, values


def stream(task: OwnTask, model: nn.Module, lines: Iterable[str], write: Write) -> None:
    """Tags of a net that reads forward are written line by line; everything else once its sequence is complete: when
    a line of another sequence follows, or the end."""
    forward = not any(getattr(part, "bidirectional", False) for part in model.modules())
    if isinstance(task, TagTask) and forward:
        _tag(task, model, _steps(task, lines), write)
        return
    for _, steps in groupby(_steps(task, lines), key=lambda step: step[0]):
        for row in predictions(task, model, _sequence(task, [*steps])):
            write(row)


@torch.no_grad()
def _tag(task: TagTask, model: Any, steps: Iterable[Step], write: Write) -> None:
    """Sequences may alternate: each has its own state, and its last values for those that are missing."""
    states: dict[str, Any] = {}
    last: dict[str, NDArray[np.float32]] = {}
    some = next(model.parameters())
    for name, time, values in steps:
        known = np.where(np.isfinite(values), values, last.get(name, np.float32("nan")))
        last[name] = known
        output, states[name] = model.step(torch.from_numpy(task.scaling(known[None])).to(some), states.get(name))
        write([name, time, *task.named(output)[0]])


def _sequence(task: OwnTask, steps: Sequence[Step]) -> Sequences:
    values = np.stack([values for _, _, values in steps])
    times = _times([time for _, time, _ in steps])
    return Sequences(values, np.array([0, len(steps)]), task.input_columns, (steps[0][0],), times=times)


def _times(texts: Sequence[str]) -> NDArray[Any] | None:
    """Dates, or numbers; None for anything else."""
    if is_time(texts[0]):
        dates = iso_times(texts)
        return None if isinstance(dates, int) else dates
    numbers = [decimal(text) for text in texts]
    return None if None in numbers else np.array(numbers, dtype=np.float64)


def _steps(task: OwnTask, lines: Iterable[str]) -> Iterator[Step]:
    """Without a column of sequences all lines are one; without one of times they are counted."""
    named = [role for role in ("sequence", "time") if getattr(task.roles, role) is not None]
    texts = [str(getattr(task.roles, role)) for role in named]
    for number, row in enumerate(read_rows(lines, task.input_columns, texts)):
        found = dict(zip(named, row.texts, strict=True))
        yield found.get("sequence", "input"), found.get("time", str(number)), row.values
