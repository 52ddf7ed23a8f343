"""Files that users bring: tables, arrays, UCR/UEA archives and folders of sound, all read to `Sequences`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from slimrnn.data.own.arff_file import read_arff
from slimrnn.data.own.read_table import read_own_table
from slimrnn.data.own.ts_file import read_ts
from slimrnn.data.roles import Roles
from slimrnn.data.sequences import Sequences
from slimrnn.errors import DataError

__all__ = ["Roles", "read_sequences"]

TABLES = ("csv", "tsv", "parquet")
OTHERS: dict[str, Callable[[Path, Roles, bool], Sequences]] = {"ts": read_ts, "arff": read_arff}


def read_sequences(path: Path, roles: Roles | None = None, *, to_predict: bool = False) -> Sequences:
    """A file of sequences; what is no data, or could be two things, is a DataError with its place.

    With `to_predict` the columns of labels and splits may be missing, whatever the roles say."""
    roles = roles or Roles()
    kind = _kind(path)
    if kind in TABLES:
        return read_own_table(path, kind, roles, to_predict)
    if kind in OTHERS:
        return OTHERS[kind](path, roles, to_predict)
    raise DataError(f"expected a file in {', '.join('.' + kind for kind in (*TABLES, *OTHERS))}, got {path}")


def _kind(path: Path) -> str:
    suffixes = path.suffixes[:-1] if path.suffix == ".gz" else path.suffixes
    return suffixes[-1][1:].lower() if suffixes else ""
