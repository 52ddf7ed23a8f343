"""Parquet, read in a process of its own: of a damaged file polars may panic, or ask for too much memory and abort."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from slimrnn._memory import available_memory
from slimrnn.errors import DataError

if TYPE_CHECKING:
    from polars import DataFrame

MAGIC = b"PAR1"
SECONDS, BYTES_A_SECOND = 60, 2**20  # a file may take so long, and longer if it is large
REFUSED = 3  # exit code for what polars says itself

_CHILD = f"""
import sys
sys.path[:] = sys.argv[2:]
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]), resource.RLIM_INFINITY))
except (ImportError, ValueError, OSError):
    pass
import polars
try:
    frame = polars.read_parquet(sys.stdin.buffer.read())
    frame.write_ipc(sys.stdout.buffer)
except BaseException as error:
    sys.stderr.write("\\0" + str(error))
    sys.exit({REFUSED})
"""


def read_parquet(raw: bytes, path: Path) -> DataFrame:
    """The whole table; `path` is for messages."""
    import polars

    if raw[:4] != MAGIC or raw[-4:] != MAGIC:
        raise DataError(
            f"expected {MAGIC!r} at both ends of {path}, got {raw[:4]!r} and {raw[-4:]!r}: it is no Parquet"
        )
    command = [sys.executable, "-c", _CHILD, str(available_memory()), *sys.path]
    seconds = SECONDS + len(raw) // BYTES_A_SECOND
    try:
        done = subprocess.run(command, input=raw, capture_output=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        raise DataError(f"expected a table in {path}, got one that is not read after {seconds} s") from None
    except OSError as error:
        raise DataError(f"cannot start a process to read {path}: {error.strerror or error}") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").rpartition("\0")[2].strip().partition("\n")[0]
        reason = said if done.returncode == REFUSED else "it asks for more memory than there is"
        raise DataError(f"expected a table in {path}, got one that cannot be read: {reason}")
    return polars.read_ipc(io.BytesIO(done.stdout))
