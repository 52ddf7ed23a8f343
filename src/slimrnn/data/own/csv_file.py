"""CSV and its relatives as frames of texts, piece by piece: a file of any size is read once.

UTF-8, with or without a byte order mark; the separator of the header; quotes around whole values; as many values in
each record as there are columns. A first line of numbers and dates is no header, unless it counts: 0, 1, 2, ...
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from slimrnn._texts import shown
from slimrnn.data.own.csv_head import header_fields, header_names, is_header, unnamed
from slimrnn.data.own.csv_records import Block, blocks_of
from slimrnn.data.tables import polars, separator_of
from slimrnn.errors import DataError

if TYPE_CHECKING:
    from polars import DataFrame


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
