"""Lines of a text file with comments, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from slimrnn.data.files import reading
from slimrnn.data.own.csv_records import BOM
from slimrnn.errors import DataError


def text_lines(path: Path, comments: bytes) -> Iterator[tuple[int, str]]:
    """Numbers and texts of the lines that are neither blank nor comments, which begin with one of these bytes."""
    with reading(path), path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            line = (raw.removeprefix(BOM) if number == 1 else raw).strip()
            if number == 1 and raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
                raise DataError(f"expected UTF-8 in {path}, got UTF-16 from byte 0 on: save it as UTF-8")
            if not line or line[0] in comments:
                continue
            if b"\0" in line:
                raise DataError(f"expected text in line {number:,} of {path}, got a NUL byte")
            try:
                yield number, line.decode()
            except UnicodeDecodeError as wrong:
                byte = line[wrong.start]
                raise DataError(f"expected UTF-8 in line {number:,} of {path}, got {byte:#04x}") from None
