"""The first line of a CSV file: names of columns, or already numbers."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from slimrnn._texts import decimal, shown, whole_number
from slimrnn.data.own.csv_records import LONGEST
from slimrnn.data.own.iso_times import is_time
from slimrnn.data.own.missing import MISSING
from slimrnn.errors import DataError

MOST_COLUMNS = 100_000


def header_fields(text: str, separator: str, path: Path | str) -> list[str]:
    """Values of the first line; `path` is for messages."""
    if "\r" in text or "\n" in text:
        raise DataError(f"expected one line as the header of {path}, got a line break in it: {shown(text)}")
    csv.field_size_limit(LONGEST)
    try:
        fields = next(csv.reader([text], delimiter=separator, strict=True), [])
    except csv.Error as error:
        raise DataError(f"expected names of columns in line 1 of {path}, got {shown(text)}: {error}") from None
    if not any(field.strip() for field in fields):
        raise DataError(f"expected names of columns in line 1 of {path}, got {shown(text)}")
    if len(fields) > MOST_COLUMNS:
        raise DataError(
            f"expected at most {MOST_COLUMNS:,} columns in {path}, got {len(fields):,}: "
            "write a row for each step, or an .npz file"
        )
    return fields


def header_names(fields: Sequence[str], path: Path | str) -> tuple[str, ...]:
    """Names without spaces around them, no two alike; one that is empty is "column 3"."""
    names = [name.strip() or unnamed(place) for place, name in enumerate(fields)]
    seen: dict[str, int] = {}
    for place, name in enumerate(names):
        if decimal(name) is not None and whole_number(name) is None:
            raise DataError(f"expected names in line 1 of {path}, the header, got the number {shown(name)}")
        if seen.setdefault(name, place) != place:
            raise DataError(
                f"expected different names in line 1 of {path}, the header, got {shown(name)} for the columns "
                f"{seen[name] + 1} and {place + 1}"
            )
    return tuple(names)


def unnamed(place: int) -> str:
    """What a column without a name is called."""
    return f"column {place + 1}"


def is_header(fields: Sequence[str]) -> bool:
    """Whether it has names: numbers, dates and missing values are data, but 0, 1, 2, ... are names."""
    named = fields[1:] if fields[0] == "" else fields
    numbers = [whole_number(name.strip()) for name in named]
    if len(fields) > 1 and numbers and numbers in (list(range(len(numbers))), list(range(1, len(numbers) + 1))):
        return True
    texts = [field.strip() for field in fields]
    return not all(decimal(text) is not None or text in MISSING or is_time(text) for text in texts)
