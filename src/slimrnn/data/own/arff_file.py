"""Weka's `.arff` as the UCR/UEA archive has it: a row for each sequence, its steps as numeric attributes, or its
channels as the rows of one relational attribute.

Shape suffixes: N sequences, T steps at most, C channels.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimrnn._texts import listed, shown
from slimrnn.data.own.arff_head import ArffHead
from slimrnn.data.own.finish import Found, check_label, check_no_columns, finished, no_step_labels
from slimrnn.data.own.growing import Growing
from slimrnn.data.own.number_text import number_in, numbers_in
from slimrnn.data.own.padded import without_padding
from slimrnn.data.own.text_lines import text_lines
from slimrnn.data.precision import Precision
from slimrnn.data.roles import Roles
from slimrnn.data.sequences import Sequences
from slimrnn.errors import DataError

_VALUE = re.compile(r"""\s*(?:'([^']*)'|"([^"]*)"|([^,'"]*))\s*(,|$)""")


def read_arff(path: Path, roles: Roles, to_predict: bool) -> Sequences:
    """A whole file."""
    check_no_columns(path, roles)
    no_step_labels(path, roles)
    lines = text_lines(path, b"%")
    head = ArffHead.read(lines, path, roles.label)
    check_label(head.label, path, roles, to_predict)
    rows, channels = Growing(), 0
    labels: list[Any] = []
    places: list[int] = []
    precision = Precision(by_sequence=roles.labels == "none")
    for number, text in lines:
        place = f"line {number:,} of {path}"
        values_TC, label = _row(text, head, place)
        channels = channels or values_TC.shape[1]
        if values_TC.shape[1] != channels:
            raise DataError(f"expected {channels} channels in {place}, got {values_TC.shape[1]}")
        precision.add(values_TC)
        rows.add(values_TC[None].astype(np.float32))
        places.append(number)
        if label is not None:
            labels.append(number_in(label, "a number as label", place) if roles.numbers else label)
    if not places:
        raise DataError(f"expected rows after @data in {path}, got none")
    values, starts, notes = without_padding(rows.take(), lambda n: f"line {places[n]:,} of {path}")
    names = ("value",) if channels == 1 else tuple(f"dim{n + 1}" for n in range(channels))
    known = np.array(labels) if labels else None
    found = Found(values, starts, names, head.label, known, notes=notes, precision=precision)
    return finished(found, path, roles, to_predict)


def _row(text: str, head: ArffHead, place: str) -> tuple[NDArray[np.float64], str | None]:
    """Values (T, C) and the label."""
    values = _values(text, place)
    if len(values) != len(head.kinds):
        raise DataError(f"expected {len(head.kinds):,} values in {place}, got {len(values):,}")
    label = None
    if head.label_place is not None:
        label = values.pop(head.label_place).strip()
        if label in ("", "?"):
            raise DataError(f"expected a label in {place}, got {shown(label)}")
        if head.classes and label not in head.classes:
            raise DataError(f"expected a label of {listed(head.classes)} in {place}, got {shown(label)}")
    if head.inner is None:
        return numbers_in(",".join(values), place)[:, None], label
    channels = [numbers_in(row, place) for row in values[0].split("\\n")]
    for number, channel in enumerate(channels):
        if len(channel) != head.inner:
            raise DataError(f"expected {head.inner:,} values in channel {number + 1} of {place}, got {len(channel):,}")
    return np.stack(channels, 1), label


def _values(text: str, place: str) -> list[str]:
    if text.startswith("{"):
        raise DataError(f"expected all values in {place}, got a sparse row: {shown(text)}")
    if "'" not in text and '"' not in text:
        return text.split(",")
    return list(_quoted(text, place))


def _quoted(text: str, place: str) -> Iterator[Any]:
    start, more = 0, True
    while more:
        found = _VALUE.match(text, start)
        if found is None:
            raise DataError(f"expected quotes around whole values in {place}, got {shown(text[start:])}")
        yield next(value for value in found.groups()[:3] if value is not None)
        start, more = found.end(), found[4] == ","
