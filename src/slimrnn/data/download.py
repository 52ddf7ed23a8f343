"""Downloads that resume after an interruption, and get their final name only if the checksum is right.

The package pooch is not used: it starts an interrupted download from the beginning.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from slimrnn._texts import whole_number
from slimrnn.data.dataset import Source
from slimrnn.data.files import checksum, writing
from slimrnn.errors import DataError

CHUNK = 2**16
SECONDS = 30.0  # without a byte, after which a connection counts as broken
TRIES = 5  # connections that may break after they have brought something
REFUSED_RANGE = 416

Report = Callable[[int, int | None], object]  # bytes that are there, and of how many


def download(source: Source, path: Path, report: Report) -> None:
    """Fetch a file. What is there of it is kept in `path`.part until it is whole."""
    part = path.with_name(f"{path.name}.part")
    resumed = part.exists()
    _fetch(source, part, report)
    if not is_right(part, source.checksum) and resumed:  # its beginning may be of another version: once more, anew
        with writing(part):
            part.unlink()
        _fetch(source, part, report)
    if not is_right(part, source.checksum):
        got = checksum(part, _kind(source.checksum))
        with writing(part):
            part.unlink()
        raise DataError(
            f"expected {source.url} to have the checksum {source.checksum}, got {got}: nothing is kept of it"
        )
    with writing(path):
        part.replace(path)


def is_right(path: Path, expected: str) -> bool:
    """Whether a file has the checksum, or none is known."""
    return not expected or checksum(path, _kind(expected)) == expected.partition(":")[2]


def _kind(expected: str) -> str:
    return expected.partition(":")[0]


def _fetch(source: Source, part: Path, report: Report) -> None:
    """All bytes, over as many connections as it takes; DataError where one brings nothing."""
    reason = ""
    for _ in range(TRIES):
        before = part.stat().st_size if part.exists() else 0
        try:
            if _receive(source.url, part, before, report):
                return
            reason = "the connection breaks off"
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == REFUSED_RANGE and before:
                if _is_complete(error, before):
                    return
                with writing(part):
                    part.unlink()
                continue
            raise DataError(f"cannot fetch {source.url}: the server answers {error.code} {error.reason}") from None
        except urllib.error.URLError as error:
            reason = f"{error.reason}"
        except (OSError, http.client.HTTPException) as error:
            reason = f"{error}" or type(error).__name__
        if not part.exists() or part.stat().st_size <= before:
            break
    there = part.stat().st_size if part.exists() else 0
    kept = f"; {there:,} bytes are there, and the next try goes on from them" if there else ""
    raise DataError(f"cannot fetch {source.url}: {reason}{kept}")


def _receive(url: str, part: Path, before: int, report: Report) -> bool:
    """Append what one connection brings; whether that is all."""
    request = urllib.request.Request(url, headers={"User-Agent": "slimrnn", "Accept-Encoding": "identity"})
    if before:
        request.add_header("Range", f"bytes={before}-")
    with urllib.request.urlopen(request, timeout=SECONDS) as response:
        goes_on = response.status == http.client.PARTIAL_CONTENT
        start = _first_byte(response.headers.get("Content-Range", "")) if goes_on else 0
        if start not in (0, before):
            raise DataError(f"expected {url} from byte {before:,} on, got it from byte {start:,}")
        length = response.headers.get("Content-Length", "")
        total = None if (size := whole_number(length.strip())) is None else start + size
        with _writing_at(part, start) as file:
            done = start
            report(done, total)
            while chunk := response.read(CHUNK):
                file.write(chunk)
                done += len(chunk)
                report(done, total)
    return total is None or done == total


@contextlib.contextmanager
def _writing_at(part: Path, start: int) -> Iterator[BinaryIO]:
    """To append, or to begin anew; what has come is on the disk afterwards, whatever happens."""
    with writing(part):
        file = part.open("ab" if start else "wb")
    with file:
        try:
            yield file
        finally:
            file.flush()
            os.fsync(file.fileno())


def _first_byte(content_range: str) -> int:
    """Of "bytes 100-199/200"."""
    first = content_range.removeprefix("bytes ").partition("-")[0]
    number = whole_number(first)
    return -1 if number is None else number


def _is_complete(error: urllib.error.HTTPError, there: int) -> bool:
    """A server that has no byte more says how many there are: "bytes */200"."""
    return error.headers.get("Content-Range", "") == f"bytes */{there}"
