"""Tables of texts from files: CSV and its relatives, and Parquet, with the line of each row for messages."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slimrnn._texts import shown
from slimrnn.data.compressed import GZIP, gunzip, most_for
from slimrnn.data.files import reading
from slimrnn.data.parquet import read_parquet
from slimrnn.errors import DataError

if TYPE_CHECKING:
    from polars import DataFrame

WITHOUT_HEADER = {"txt": ("user", "item"), "dat": ("user", "item", "rating", "timestamp")}
SEPARATORS = {"csv": ",", "tsv": "\t", "txt": " ", "dat": "::"}
OTHERS = (";", "\t", "|")  # of a .csv file whose header has no comma: spreadsheets write them where "," is decimal

HEAD = 2**20  # bytes in which a header ends

_QUOTED = re.compile(rb'"[^"]*"')
PACKED = (GZIP, b"\x28\xb5\x2f\xfd", b"\x78\x01", b"\x78\x9c", b"\x78\xda")  # polars would unpack it, whatever its size


@dataclass(frozen=True)
class Table:
    """Columns by name, of texts or of a Parquet file's types, and where a row of them is: "line 7"."""

    frame: DataFrame
    place: Callable[[int], str]


def read_table(path: Path) -> Table:
    """A whole file."""
    kind = kind_of(path)
    with reading(path):
        raw = path.read_bytes()
    if not raw:
        raise DataError(f"expected a log of events, got {path}, which is empty")
    if raw.startswith(GZIP):
        raw = gunzip(raw, path, most_for(len(raw)))
    if kind == "parquet":
        polars()
        return Table(read_parquet(raw, path), lambda row: f"row {row + 1:,}")
    return parse_table(raw, path, separator_of(raw.lstrip(b"\r\n").partition(b"\n")[0], kind), WITHOUT_HEADER.get(kind))


def parse_table(raw: bytes, path: Path, separator: str, names: Sequence[str] | None = None) -> Table:
    """Lines of values with a separator between them; `names` where no header has them. `path` is for messages."""
    pl = polars()
    raw = raw.rstrip(b"\r\n") + b"\n"
    if not raw.strip():
        raise DataError(f"expected a log of events, got {path}, which is empty")
    if raw.startswith(PACKED):
        raise DataError(f"expected a table in {path}, got {raw[:4]!r} at its beginning: it is compressed; unpack it")
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise DataError(f"expected UTF-8 in {path}, got UTF-16 from byte 0 on: save it as UTF-8")
    try:
        frame: DataFrame = pl.read_csv(raw, separator=separator[0], has_header=names is None, infer_schema=False)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise DataError(_problem(raw, path, separator[0], error)) from None
    if names is None:
        _check_different(next(_records(raw[:HEAD], separator[0]), (1, []))[1], path)
    else:
        frame = _named(frame, names, len(separator), path)
    return Table(frame, lambda row: _place(raw, separator[0], row + (names is None)))


def polars() -> Any:
    """The package, when it is needed."""
    try:
        import polars
    except ModuleNotFoundError:
        raise DataError('expected the package polars, got none: pip install "slimrnn[data]"') from None
    return polars


def kind_of(path: Path) -> str:
    """csv, tsv, txt, dat or parquet."""
    suffixes = path.suffixes[:-1] if path.suffix.lower() == ".gz" else path.suffixes
    kind = suffixes[-1][1:].lower() if suffixes else ""
    if kind not in (*SEPARATORS, "parquet"):
        raise DataError(f"expected a log in .csv, .tsv, .parquet, .txt or .dat, got {path}")
    return kind


def separator_of(header: bytes, kind: str) -> str:
    """The one that a first line has outside quotes."""
    usual, plain = SEPARATORS[kind], _QUOTED.sub(b"", header)
    if kind == "csv" and usual.encode() not in plain:
        return next((other for other in OTHERS if other.encode() in plain), usual)
    return usual


def _check_different(header: Sequence[str], path: Path) -> None:
    """polars gives the second column of a name another one."""
    again = next((name for place, name in enumerate(header) if name and name in header[:place]), None)
    if again is not None:
        raise DataError(f"expected different names in the header of {path}, got {shown(again)} more than once")


def _named(frame: DataFrame, names: Sequence[str], step: int, path: Path) -> DataFrame:
    kept = frame[:, ::step]  # polars takes separators of one character: "::" is an empty value between two
    if kept.width < len(names):
        raise DataError(f"expected columns of {', '.join(names)} in line 1 of {path}, got {kept.width}")
    kept = kept[:, : len(names)]
    return kept.rename(dict(zip(kept.columns, names, strict=False)))


def _problem(raw: bytes, path: Path, separator: str, error: BaseException) -> str:
    """What polars does not tell: where it is."""
    try:
        raw.decode()
    except UnicodeDecodeError as wrong:
        line = raw.count(b"\n", 0, wrong.start) + 1
        return f"expected UTF-8 in line {line:,} of {path}, got {raw[wrong.start]:#04x} at byte {wrong.start:,}"
    width = None
    for line, fields in _records(raw, separator):
        width = len(fields) if width is None else width
        if len(fields) > width:
            return (
                f"expected {width} values in line {line:,} of {path}, got {len(fields)}: {_joined(fields, separator)}"
            )
    reason = str(error).strip().partition("\n")[0]
    return f"expected a table in {path}, got one that cannot be read: {shown(reason, 200)}"


def _place(raw: bytes, separator: str, number: int) -> str:
    """Of a record by number, the header's being 0: its line in the file, and what it says."""
    for place, (line, fields) in enumerate(_records(raw, separator)):
        if place == number:
            return f"line {line:,} ({_joined(fields, separator)})"
    return f"row {number:,}"


def _joined(fields: Sequence[str], separator: str) -> str:
    return shown(separator.join(fields))


def _records(raw: bytes, separator: str) -> Iterator[tuple[int, list[str]]]:
    """The fields of each, with its first line; a record may have several, and blank lines before the first are none."""
    reader = csv.reader(io.StringIO(raw.decode("utf-8-sig", errors="replace"), newline=""), delimiter=separator)
    line, begun = 1, False
    try:
        for fields in reader:
            begun = begun or bool(fields)
            if begun:
                yield line, fields
            line = reader.line_num + 1
    except csv.Error:  # a field of more than 131,072 characters, and a place less in a message
        return
