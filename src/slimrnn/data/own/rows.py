"""CSV one row at a time, without polars: lines of a pipe, and small tables.

The rules are those of whole files: as many values in a row as there are columns, numbers where numbers are wanted.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slimrnn._checks import suggestion
from slimrnn._texts import decimal, listed, shown
from slimrnn.data.own.csv_head import header_fields, header_names
from slimrnn.data.own.missing import MISSING
from slimrnn.data.own.number_text import LARGEST
from slimrnn.data.tables import separator_of
from slimrnn.errors import DataError


@dataclass(frozen=True, eq=False)
class Row:
    """The numbers of the columns that were asked for, NaN where one is missing, and the texts of others."""

    line: int
    values: NDArray[np.float32]
    texts: tuple[str, ...]


def read_rows(
    stream: Iterable[str], columns: Sequence[str], texts: Sequence[str] = (), name: str = "the input"
) -> Iterator[Row]:
    """Rows as their lines come: a header, then numbers of `columns` and texts of others. `name` is for messages."""
    lines = _lines(stream, name)
    head = next(lines, "").rstrip("\r\n").removeprefix("\ufeff")
    if not head:
        raise DataError(f"expected a header with {listed(columns)} in line 1 of {name}, got nothing")
    separator = separator_of(head.encode(), "csv")
    names = header_names(header_fields(head, separator, name), name)
    for wanted in (*columns, *texts):
        if wanted not in names:
            raise DataError(
                f"expected a column {wanted} in line 1 of {name}, got {listed(names)}{suggestion(wanted, names)}"
            )
    numbers, others = [names.index(n) for n in columns], [names.index(n) for n in texts]
    reader, line, blank = csv.reader(lines, delimiter=separator, strict=True), 2, False
    try:
        for fields in reader:
            if fields and blank:
                raise DataError(f"expected {len(names)} values in line {line - 1:,} of {name}, got a blank line")
            blank = not fields
            if len(fields) == len(names):
                values = [_number(fields[n], names[n], line, name) for n in numbers]
                yield Row(line, np.array(values, np.float32), tuple(fields[n].strip() for n in others))
            elif fields:
                raise DataError(f"expected {len(names)} values in line {line:,} of {name}, got {len(fields)}")
            line = reader.line_num + 2
    except csv.Error as error:
        raise DataError(f"expected CSV in line {line:,} of {name}, got {error}") from None


def _lines(stream: Iterable[str], name: str) -> Iterator[str]:
    try:
        for number, line in enumerate(stream, 1):
            if "\0" in line:
                raise DataError(f"expected text in line {number:,} of {name}, got a NUL byte")
            yield line
    except UnicodeDecodeError as wrong:
        raise DataError(f"expected UTF-8 in {name}, got {wrong.object[wrong.start]:#04x}") from None


def _number(text: str, column: str, line: int, name: str) -> float:
    text = text.strip(" \t")
    if text in MISSING:
        return float("nan")
    number = decimal(text)
    if number is None or abs(number) > LARGEST:
        raise DataError(f"expected a finite number as {column} in line {line:,} of {name}, got {shown(text)}")
    return number
