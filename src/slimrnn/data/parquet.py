"""Parquet, read in a process of its own: of a damaged file polars may panic, or ask for too much memory and abort."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

from slimrnn._memory import available_memory
from slimrnn.data.files import reading
from slimrnn.errors import DataError

if TYPE_CHECKING:
    from polars import DataFrame

MAGIC = b"PAR1"
SECONDS, BYTES_A_SECOND = 60, 2**20  # a file may take so long, and longer if it is large
REFUSED = 3  # exit code for what polars says itself

# Pieces of the table, each after its size: the other side need not hold all of them, nor the file.
_CHILD = f"""
import io, sys
sys.path[:] = sys.argv[4:]
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]), resource.RLIM_INFINITY))
except (ImportError, ValueError, OSError):
    pass
import polars
try:
    frame = polars.read_parquet(sys.argv[2] or sys.stdin.buffer.read())
    rows = -(-int(sys.argv[3]) // max(1, frame.width))
    for piece in frame.iter_slices(rows) if 0 < rows < len(frame) else [frame]:
        packed = io.BytesIO()
        piece.write_ipc(packed)
        sys.stdout.buffer.write(packed.tell().to_bytes(8, "little"))
        sys.stdout.buffer.write(packed.getbuffer())
    sys.stdout.buffer.write(bytes(8))
except BaseException as error:
    sys.stderr.write("\\0" + str(error))
    sys.exit({REFUSED})
"""


def read_parquet(raw: bytes, path: Path) -> DataFrame:
    """The whole table; `path` is for messages."""
    _check_magic(raw[:4], raw[-4:], path)
    (frame,) = _pieces(raw, path, 0, len(raw))
    return frame


def parquet_pieces(path: Path, values: int) -> Iterator[DataFrame]:
    """The table in pieces of about so many values; of one without rows, one piece."""
    with reading(path), path.open("rb") as file:
        first = file.read(4)
        size = file.seek(0, io.SEEK_END)
        file.seek(max(0, size - 4))
        _check_magic(first, file.read(), path)
    return _pieces(None, path, values, size)


def _check_magic(first: bytes, last: bytes, path: Path) -> None:
    if first != MAGIC or last != MAGIC:
        raise DataError(f"expected {MAGIC!r} at both ends of {path}, got {first!r} and {last!r}: it is no Parquet")


def _pieces(raw: bytes | None, path: Path, values: int, size: int) -> Iterator[DataFrame]:
    """Of a file, or of its content."""
    source = "" if raw is not None else str(path.absolute())
    command = [sys.executable, "-c", _CHILD, str(available_memory()), source, str(values), *sys.path]
    seconds = SECONDS + size // BYTES_A_SECOND
    try:
        said = tempfile.TemporaryFile()  # noqa: SIM115
        pipe = subprocess.PIPE
        child = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=said)
    except OSError as error:
        raise DataError(f"cannot start a process to read {path}: {error.strerror or error}") from None
    timer = threading.Timer(seconds, child.kill)
    timer.daemon = True
    timer.start()
    with said, child:
        try:
            with contextlib.suppress(BrokenPipeError):
                _write(child.stdin, raw or b"")
            yield from _frames(child.stdout)
            child.wait()
        finally:
            in_time = timer.is_alive()
            timer.cancel()
            child.kill()
        if child.returncode:
            said.seek(0)
            raise DataError(_reason(child.returncode, said.read(), path, seconds if not in_time else None))


def _write(stdin: IO[bytes] | None, raw: bytes) -> None:
    if stdin is not None:
        with stdin:
            stdin.write(raw)


def _frames(stdout: IO[bytes] | None) -> Iterator[DataFrame]:
    import polars

    while stdout is not None:
        size = int.from_bytes(stdout.read(8), "little")
        packed = stdout.read(size)
        if size == 0 or len(packed) < size:  # the end, or that of the process
            return
        yield polars.read_ipc(io.BytesIO(packed))


def _reason(code: int, said: bytes, path: Path, seconds: int | None) -> str:
    if seconds is not None:
        return f"expected a table in {path}, got one that is not read after {seconds} s"
    words = said.decode(errors="replace").rpartition("\0")[2].strip().partition("\n")[0]
    reason = words if code == REFUSED else "it asks for more memory than there is"
    return f"expected a table in {path}, got one that cannot be read: {reason}"
