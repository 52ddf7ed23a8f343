"""Files that users bring: tables, arrays, UCR/UEA archives and folders of sound, all read to `Sequences`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from slimrnn.data.files import reading
from slimrnn.data.own.arff_file import read_arff
from slimrnn.data.own.array_file import read_arrays
from slimrnn.data.own.folders import parts_of, together
from slimrnn.data.own.read_table import read_own_table
from slimrnn.data.own.rows import Row, read_rows
from slimrnn.data.own.ts_file import read_ts
from slimrnn.data.own.wav_folder import has_sound, read_wav_folder
from slimrnn.data.roles import Roles
from slimrnn.data.sequences import Sequences
from slimrnn.errors import DataError

__all__ = ["Roles", "Row", "read_parts", "read_rows", "read_sequences"]

TABLES = ("csv", "tsv", "parquet")
OTHERS: dict[str, Callable[[Path, Roles, bool], Sequences]] = {
    "ts": read_ts,
    "arff": read_arff,
    "npz": read_arrays,
    "npy": read_arrays,
}
IN_PARTS = ("ts", "arff", "csv", "tsv", "parquet", "npz", "npy")


def read_sequences(path: Path, roles: Roles | None = None, *, to_predict: bool = False) -> Sequences:
    """Sequences of a file or a folder; what is no data, or could be two things, is a DataError with its place.

    A folder with NAME_TRAIN.ts and NAME_TEST.ts (or .arff, .csv, ...), or the path FOLDER/NAME, is read as one data set
    with its `parts`. With `to_predict` the columns of labels and splits may be missing, whatever the roles say."""
    roles = roles or Roles()
    with reading(path):
        if path.is_dir() and has_sound(path):
            return read_wav_folder(path, roles, to_predict)
        files = parts_of(path, IN_PARTS) if path.is_dir() or (not path.exists() and path.parent.is_dir()) else {}
    if files:
        return read_parts(files, roles, to_predict=to_predict)
    return _read_file(path, roles, to_predict)


def read_parts(files: Mapping[str, Path], roles: Roles | None = None, *, to_predict: bool = False) -> Sequences:
    """One data set of several files, by part: {"train": a, "test": b}; all are read as the first one is."""
    sets: dict[str, Sequences] = {}
    for part, path in files.items():
        sets[part] = _read_file(path, roles or Roles(), to_predict)
        roles = _for_others(sets[part], roles or Roles())
    return together(sets)


def _for_others(read: Sequences, roles: Roles) -> Roles:
    """What one file has is expected of the next."""
    taken = read.roles or roles
    return taken if read.labels is not None else replace(taken, label=None)


def _read_file(path: Path, roles: Roles, to_predict: bool) -> Sequences:
    suffixes = path.suffixes[:-1] if path.suffix == ".gz" else path.suffixes
    kind = suffixes[-1][1:].lower() if suffixes else ""
    if kind in TABLES:
        return read_own_table(path, kind, roles, to_predict)
    if kind in OTHERS and path.suffix != ".gz":
        return OTHERS[kind](path, roles, to_predict)
    wanted = ", ".join(f".{kind}" for kind in (*TABLES, *OTHERS))
    what = "a folder without these" if path.is_dir() else "no such file" if not path.exists() else "another kind"
    raise DataError(
        f"expected a file in {wanted}, a folder of .wav files, or NAME_TRAIN and NAME_TEST, got {what}: {path}"
    )
