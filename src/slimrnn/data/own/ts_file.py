"""Files of the UCR/UEA archive, `.ts`: a head of @tags, then a line for each sequence with its channels between colons
and its label at the end. Steps are values, or (time, value) pairs.

Shape suffixes: T steps, C channels.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimrnn._texts import listed, shown
from slimrnn.data.own.finish import Found, check_no_columns, finished, no_step_labels
from slimrnn.data.own.growing import Growing
from slimrnn.data.own.iso_times import EXAMPLE, iso_times
from slimrnn.data.own.number_text import number_in, numbers_in
from slimrnn.data.own.text_lines import text_lines
from slimrnn.data.own.ts_head import TsHead
from slimrnn.data.precision import Precision
from slimrnn.data.roles import Roles
from slimrnn.data.sequences import Sequences
from slimrnn.errors import DataError

_COLON = re.compile(r":(?![^()]*\))")  # outside pairs, whose times have colons
_PAIRS = re.compile(r"\s*\([^()]*\)\s*(,\s*\([^()]*\)\s*)*")
_PAIR = re.compile(r"\(([^()]*)\)")


def read_ts(path: Path, roles: Roles, to_predict: bool) -> Sequences:
    """A whole file."""
    check_no_columns(path, roles)
    no_step_labels(path, roles)
    lines = text_lines(path, b"#%")
    reader = _Reader(path, TsHead.read(lines, path), roles)
    for number, text in lines:
        reader.add(text, f"line {number:,} of {path}")
    return finished(reader.found(), path, roles, to_predict)


class _Reader:
    def __init__(self, path: Path, head: TsHead, roles: Roles) -> None:
        self.path, self.head, self.roles = path, head, roles
        self.channels, self.values, self.times = head.channels, Growing(), Growing()
        self.precision = Precision(by_sequence=roles.labels == "none")
        self.dated: bool | None = None
        self.lengths: list[int] = []
        self.labels: list[Any] = []

    def add(self, text: str, place: str) -> None:
        parts = _COLON.split(text)
        if self.head.labelled:
            self._add_label(parts.pop().strip(), place)
        if self.channels is None:
            self.channels = len(parts)
        if len(parts) != self.channels or not self.channels:
            label = " and a label" if self.head.labelled else ""
            raise DataError(
                f"expected {self.channels or 1} channels{label} between colons in {place}, got {len(parts)}"
            )
        columns = [self._channel(part, place) for part in parts]
        for channel, (values, times) in enumerate(columns):
            if len(values) != len(columns[0][0]):
                raise DataError(
                    f"expected {len(columns[0][0]):,} values in channel {channel + 1} of {place}, as in channel 1, "
                    f"got {len(values):,}"
                )
            if times is not None and columns[0][1] is not None and (times != columns[0][1]).any():
                raise DataError(f"expected the times of channel 1 in channel {channel + 1} of {place}, got others")
        if self.head.length is not None and len(columns[0][0]) != self.head.length:
            raise DataError(
                f"expected {self.head.length:,} values in {place}, as @seriesLength says, got {len(columns[0][0]):,}"
            )
        if self.head.equal and self.lengths and len(columns[0][0]) != self.lengths[0]:
            raise DataError(
                f"expected {self.lengths[0]:,} values in {place}, as @equalLength is true, got {len(columns[0][0]):,}"
            )
        values_TC = np.stack([values for values, _ in columns], 1)
        self.precision.add(values_TC)
        self.values.add(values_TC.astype(np.float32))
        if columns[0][1] is not None:
            self.times.add(columns[0][1])
        self.lengths.append(len(columns[0][0]))

    def _add_label(self, label: str, place: str) -> None:
        if self.head.classes and label not in self.head.classes:
            raise DataError(f"expected a label of {listed(self.head.classes)} in {place}, got {shown(label)}")
        if not label or label == "?":
            raise DataError(f"expected a label at the end of {place}, got {shown(label)}")
        self.labels.append(number_in(label, "a number as label", place) if self.roles.numbers else label)

    def _channel(self, text: str, place: str) -> tuple[NDArray[np.float64], NDArray[Any] | None]:
        if not self.head.timed:
            return numbers_in(text, place), None
        if not _PAIRS.fullmatch(text):
            raise DataError(f"expected pairs (time,value) in {place}, got {shown(text)}")
        pairs = [pair.rpartition(",") for pair in _PAIR.findall(text)]
        values = numbers_in(",".join(value for _, _, value in pairs), place)
        return values, self._times([time.strip() for time, _, _ in pairs], place)

    def _times(self, texts: list[str], place: str) -> NDArray[Any]:
        if self.dated is None:
            self.dated = isinstance(iso_times(texts[:1]), np.ndarray)
        times = iso_times(texts) if self.dated else np.array([number_in(text, "a time", place) for text in texts])
        if isinstance(times, int):
            raise DataError(f"expected a time such as {EXAMPLE} in {place}, got {shown(texts[times])}")
        late = times[1:] <= times[:-1]
        if late.any():
            step = int(late.argmax()) + 1
            raise DataError(f"expected times that increase in {place}, got {texts[step - 1]} and then {texts[step]}")
        return times

    def found(self) -> Found:
        if not self.lengths:
            raise DataError(f"expected sequences after @data in {self.path}, got none")
        starts = np.concatenate([[0], np.cumsum(self.lengths)]).astype(np.int64)
        count = self.channels or 1
        channels = ("value",) if count == 1 else tuple(f"dim{n + 1}" for n in range(count))
        labels = np.array(self.labels) if self.labels else None
        times = self.times.take() if len(self.times) else None
        label = "label" if self.labels else None
        return Found(self.values.take(), starts, channels, label, labels, times=times, precision=self.precision)
