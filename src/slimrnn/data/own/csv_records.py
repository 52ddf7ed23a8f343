"""The bytes of a CSV file, in blocks of whole records. A record ends at a line break outside quotes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from slimrnn._texts import shown
from slimrnn.data.compressed import GZIP, gunzipped, most_for
from slimrnn.data.files import reading
from slimrnn.data.tables import PACKED
from slimrnn.errors import DataError

SIZE = 2**20  # bytes that are looked at together
LONGEST = 2**26  # bytes of one record: an open quote must not swallow a large file
BOM = b"\xef\xbb\xbf"
SHOWN = 200  # bytes of a record that a message may need


@dataclass(frozen=True, eq=False)
class Block:
    """Whole records, the places where they end, the bytes that are inside quotes, and the line of the first."""

    raw: bytes
    ends: NDArray[np.int64]
    inside: NDArray[np.bool_] | None
    line: int

    def place(self, record: int) -> str:
        """ "line 7 (a,1,2)"."""
        start = 0 if record == 0 else int(self.ends[record - 1]) + 1
        text = self.raw[start : int(self.ends[record])].rstrip(b"\r")[:SHOWN].decode(errors="replace")
        return f"line {self.line + self.raw.count(bytes([10]), 0, start):,} ({shown(text)[1:-1]})"

    def counts(self, separator: str) -> NDArray[np.int64]:
        """Values of each record."""
        codes = np.frombuffer(self.raw, np.uint8)
        between = codes == ord(separator) if self.inside is None else (codes == ord(separator)) & ~self.inside
        return np.diff(np.searchsorted(np.flatnonzero(between), self.ends), prepend=0) + 1

    def stray_quote(self, separator: str) -> int | None:
        """The first record with a quote that does not begin or end a value, where there is one."""
        if self.inside is None:
            return None
        codes = np.frombuffer(self.raw, np.uint8)
        quotes = np.flatnonzero(codes == ord('"'))
        before = np.where(quotes == 0, ord("\n"), codes[quotes - 1])
        after = codes[np.minimum(quotes + 1, len(codes) - 1)]
        beside = np.where(self.inside[quotes], before, after)
        wrong = quotes[~np.isin(beside, np.frombuffer(b'\n\r"' + separator.encode(), np.uint8))]
        return int(np.searchsorted(self.ends, wrong[0])) if len(wrong) else None

    def check_text(self, path: Path) -> None:
        """UTF-8 without NUL."""
        place = self.raw.find(0)
        if place >= 0:
            raise DataError(f"expected text in line {self._line_at(place):,} of {path}, got a NUL byte: is it UTF-8?")
        if self.raw.count(b"\r") != self.raw.count(b"\r\n"):
            place = re.search(rb"\r(?!\n)", self.raw).start()  # type: ignore[union-attr]
            raise DataError(
                f"expected line ends \\n or \\r\\n in {path}, got \\r alone in line {self._line_at(place):,}"
            )
        if not self.raw.isascii():
            try:
                self.raw.decode()
            except UnicodeDecodeError as wrong:
                line = self._line_at(wrong.start)
                raise DataError(
                    f"expected UTF-8 in line {line:,} of {path}, got {self.raw[wrong.start]:#04x}"
                ) from None

    def _line_at(self, place: int) -> int:
        return self.line + self.raw.count(b"\n", 0, place)


def blocks_of(path: Path) -> Iterator[Block]:
    """All records of a file; blank lines at its end are none."""
    rest, line = b"", 1
    for part in _parts(path):
        raw = rest + part
        block = _block(raw, line)
        end = int(block.ends[-1]) + 1 if len(block.ends) else 0
        end = len(raw[:end].rstrip(b"\r\n"))  # blank lines wait for what follows
        end = raw.find(b"\n", end) + 1 if end else 0
        rest = raw[end:]
        if len(rest) > LONGEST:
            raise DataError(
                f"expected lines of at most {LONGEST:,} bytes in {path}, got more, or a quote that does not close, "
                f"from line {line + raw.count(bytes([10]), 0, end):,} on ({shown(rest[:SHOWN])})"
            )
        if end:
            yield _cut(block, end)
            line += raw.count(b"\n", 0, end)
    if rest.strip(b"\r\n"):
        block = _block(rest.rstrip(b"\r\n") + b"\n", line)
        if not len(block.ends) or block.ends[-1] < len(block.raw) - 1:
            start = int(block.ends[-1]) + 1 if len(block.ends) else 0
            text = shown(block.raw[start : start + SHOWN].rstrip().decode(errors="replace"))
            raise DataError(
                f"expected a quote that closes in {path}, got one that does not from line "
                f"{line + block.raw.count(bytes([10]), 0, start):,} on ({text[1:-1]})"
            )
        yield block


def _block(raw: bytes, line: int) -> Block:
    codes = np.frombuffer(raw, np.uint8)
    breaks, inside = codes == ord("\n"), None
    if b'"' in raw:
        inside = np.bitwise_xor.accumulate((codes == ord('"')).view(np.uint8)).view(bool)
        breaks &= ~inside
    return Block(raw, np.flatnonzero(breaks), inside, line)


def _cut(block: Block, end: int) -> Block:
    inside = None if block.inside is None else block.inside[:end]
    return Block(block.raw[:end], block.ends[: np.searchsorted(block.ends, end)], inside, block.line)


def _parts(path: Path) -> Iterator[bytes]:
    """The bytes of a file, unpacked, without a byte order mark."""
    with reading(path), path.open("rb") as file:
        first = file.read(SIZE)
        if not first.startswith(GZIP):
            yield _checked(first, path)
            while part := file.read(SIZE):
                yield part
            return
        packed = first + file.read()
    begun = False
    for part in gunzipped(packed, path, most_for(len(packed)), SIZE):
        yield part if begun else _checked(part, path)
        begun = True


def _checked(first: bytes, path: Path) -> bytes:
    if first.startswith(PACKED):
        raise DataError(f"expected a table in {path}, got {first[:4]!r} at its beginning: it is compressed; unpack it")
    if first[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise DataError(f"expected UTF-8 in {path}, got UTF-16 from byte 0 on: save it as UTF-8")
    return first.removeprefix(BOM)
