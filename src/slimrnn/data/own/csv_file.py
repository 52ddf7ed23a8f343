"""CSV and its relatives as frames of texts, piece by piece: a file of any size is read once.

UTF-8, with or without a byte order mark; the separator of the header; quotes around whole values; as many values in
each record as there are columns. A first line of numbers and dates is no header, unless it counts: 0, 1, 2, ...
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from slimrnn._texts import decimal, shown, whole_number
from slimrnn.data.own.csv_records import LONGEST, Block, blocks_of
from slimrnn.data.own.iso_times import is_time
from slimrnn.data.own.missing import MISSING
from slimrnn.data.tables import polars, separator_of
from slimrnn.errors import DataError

if TYPE_CHECKING:
    from polars import DataFrame

MOST_COLUMNS = 100_000


class CsvFile:
    """`names` of the columns, from a header or counted, and all records after it."""

    def __init__(self, path: Path, kind: str) -> None:
        self.path = path
        self._blocks = blocks_of(path)
        self._first = next(self._blocks, None)
        if self._first is None:
            raise DataError(f"expected a table, got {path}, which is empty")
        self._first.check_text(path)
        head = self._first.raw[: int(self._first.ends[0])].rstrip(b"\r")
        self._separator = separator_of(head, kind)
        fields = header_fields(head.decode(), self._separator, path)
        self.has_header = is_header(fields)
        self.names = header_names(fields, path) if self.has_header else tuple(map(unnamed, range(len(fields))))

    def pieces(self) -> Iterator[DataFrame]:
        """The columns as texts; to be called once."""
        assert self._first is not None
        blocks = chain([self._first], self._blocks)
        self._first = None
        skipped = int(self.has_header)
        for block in blocks:
            yield self._frame(block)[skipped:]
            skipped = 0

    def place(self, row: int) -> str:
        """ "line 7 (a,1,2)" of a record, the first after the header being 0. The file is read again for it."""
        record = row + self.has_header
        for block in blocks_of(self.path):
            if record < len(block.ends):
                return block.place(record)
            record -= len(block.ends)
        return f"record {row + 1:,}"

    def _frame(self, block: Block) -> DataFrame:
        pl = polars()
        block.check_text(self.path)
        stray = block.stray_quote(self._separator)
        if stray is not None:
            place = block.place(stray)
            raise DataError(f"expected quotes around whole values in {self.path}, got one inside a value in {place}")
        counts = block.counts(self._separator)
        wrong = (counts != len(self.names)).nonzero()[0]
        if len(wrong):
            raise DataError(
                f"expected {len(self.names):,} values in each line of {self.path}, "
                f"got {counts[wrong[0]]:,} in {block.place(int(wrong[0]))}"
            )
        try:
            schema = dict.fromkeys(self.names, pl.String)
            frame: DataFrame = pl.read_csv(block.raw, separator=self._separator, has_header=False, schema=schema)
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            reason = shown(str(error).strip().partition("\n")[0], 200)
            raise DataError(f"expected a table in {self.path} from line {block.line:,} on, got {reason}") from None
        if frame.shape != (len(counts), len(self.names)):
            raise DataError(
                f"expected {len(counts):,} records in {self.path} from line {block.line:,} on, got {len(frame):,}"
            )
        return frame


def header_fields(text: str, separator: str, path: Path | str) -> list[str]:
    """Values of the first line; `path` is for messages."""
    if "\r" in text or "\n" in text:
        raise DataError(f"expected one line as the header of {path}, got a line break in it: {shown(text)}")
    csv.field_size_limit(LONGEST)
    fields = next(csv.reader([text], delimiter=separator), [""])
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
