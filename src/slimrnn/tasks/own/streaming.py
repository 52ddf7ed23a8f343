"""Predictions on a stream: lines of a table come in, lines of predictions go out as soon as they can be made."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from slimrnn._texts import decimal, listed, shown
from slimrnn.data.sequences import Sequences
from slimrnn.errors import DataError
from slimrnn.tasks.own.own_task import OwnTask
from slimrnn.tasks.own.predicting import predictions
from slimrnn.tasks.own.tag import TagTask

SEPARATORS = ",\t;|"
MISSING = ("", "nan", "na", "null", "?")
Row = tuple[str, str, list[float]]  # sequence, time, values


def stream(task: OwnTask, model: nn.Module, lines: Iterable[str], write: Callable[[Sequence[str]], None]) -> None:
    """Tags of a net that reads forward are written line by line; everything else once its sequence is complete: when
    a line of another sequence follows, an empty line, or the end."""
    rows = _rows(task, iter(lines))
    forward = not any(getattr(part, "bidirectional", False) for part in model.modules())
    if isinstance(task, TagTask) and forward:
        _tag(task, model, rows, write)
    else:
        _predict(task, model, rows, write)


@torch.no_grad()
def _tag(task: TagTask, model: Any, rows: Iterator[Row | None], write: Callable[[Sequence[str]], None]) -> None:
    """Sequences may alternate: each has its own state."""
    states: dict[str, Any] = {}
    last: dict[str, NDArray[np.float32]] = {}
    some = next(model.parameters())
    for row in rows:
        if row is None:  # all sequences end
            states.clear()
            last.clear()
            continue
        name, time, values = row
        before = last.get(name)
        history = np.array([values], dtype=np.float32)
        both = history if before is None else np.concatenate([before, history])
        known = task.scaling(both[:, None])[-1]
        last[name] = np.where(np.isfinite(history), history, np.nan if before is None else before)
        output, states[name] = model.step(torch.from_numpy(known).to(some), states.get(name))
        write([name, time, *task.named(output)[0]])


def _predict(
    task: OwnTask, model: nn.Module, rows: Iterator[Row | None], write: Callable[[Sequence[str]], None]
) -> None:
    held: list[Row] = []
    for row in _with_end(rows):
        if held and (row is None or row[0] != held[0][0]):
            for answer in predictions(task, model, _sequence(task, held)):
                write(answer)
            held = []
        if row is not None:
            held.append(row)


def _with_end(rows: Iterator[Row | None]) -> Iterator[Row | None]:
    yield from rows
    yield None


def _sequence(task: OwnTask, rows: Sequence[Row]) -> Sequences:
    values = np.array([values for _, _, values in rows], dtype=np.float32)
    times = [decimal(time) for _, time, _ in rows]
    known = None if None in times else np.array(times, dtype=np.float64)
    return Sequences(values, np.array([0, len(rows)]), task.input_columns, (rows[0][0],), times=known)


def _rows(task: OwnTask, lines: Iterator[str]) -> Iterator[Row | None]:
    """Sequence, time and values of each line; None for an empty line."""
    first = next(lines, "").rstrip("\r\n").removeprefix("\ufeff")
    separator = max(SEPARATORS, key=first.count)
    header = next(csv.reader([first], delimiter=separator), [])
    places = {name: place for place, name in enumerate(header)}
    roles = task.roles
    needed = [*(name for name in (roles.sequence, roles.time) if name), *task.input_columns]
    for name in needed:
        if name not in places:
            raise DataError(f"expected a column {name} in line 1 of the input, got {listed(header) or 'none'}")
    for number, line in enumerate(lines, 2):
        if not line.strip():
            yield None
            continue
        fields = next(csv.reader([line.rstrip("\r\n")], delimiter=separator))
        if len(fields) != len(header):
            raise DataError(f"expected {len(header)} fields in line {number:,} of the input, got {len(fields)}")
        name = fields[places[roles.sequence]] if roles.sequence else ""
        time = fields[places[roles.time]] if roles.time else str(number - 2)
        yield name, time, [_number(fields[places[column]], column, number) for column in task.input_columns]


def _number(text: str, column: str, line: int) -> float:
    if text.strip().lower() in MISSING:
        return float("nan")
    value = decimal(text.strip())
    if value is None or not np.isfinite(value):
        raise DataError(f"expected a number as {column} in line {line:,} of the input, got {shown(text)}")
    return value
