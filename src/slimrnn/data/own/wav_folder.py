"""A folder of sound files with a table of labels: each clip is a sequence of features, by `mfcc` at its own rate.

The table is the only .csv file of the folder, or labels.csv: a column `file` with names in the folder, and `label`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from slimrnn._texts import shown
from slimrnn.data.audio import read_clip
from slimrnn.data.files import reading
from slimrnn.data.mfcc import CEPSTRA, HOP, Framing, mfcc
from slimrnn.data.own.finish import Found, check_no_columns, finished, no_step_labels
from slimrnn.data.own.growing import Growing
from slimrnn.data.own.missing import UNLABELLED
from slimrnn.data.own.notes import plural
from slimrnn.data.own.number_text import number_in
from slimrnn.data.own.parts import PARTS
from slimrnn.data.own.rows import Row, read_rows
from slimrnn.data.roles import Roles
from slimrnn.data.sequences import Sequences
from slimrnn.errors import DataError

SOUND = (".wav",)
TABLE, FILE, LABEL, SPLIT = "labels.csv", "file", "label", "split"


def has_sound(folder: Path) -> bool:
    """Whether one of its files is sound."""
    return any(path.suffix.lower() in SOUND for path in folder.iterdir())


def read_wav_folder(folder: Path, roles: Roles, to_predict: bool) -> Sequences:
    """The clips in the order of the table; without a table, to predict, in that of their names."""
    check_no_columns(folder, roles, ("time",))
    no_step_labels(folder, roles)
    table = _table(folder)
    if table is None and (to_predict or roles.labels == "none"):
        names = sorted(path.name for path in folder.iterdir() if path.suffix.lower() in SOUND)
        return finished(_features(folder, names), folder, roles, to_predict)
    if table is None:
        raise DataError(f"expected a table {TABLE} with the columns {FILE} and {LABEL} in {folder}, got none")
    column, label, split = roles.sequence or FILE, roles.label or LABEL, roles.split
    wanted = roles.labels != "none" and (not to_predict or label in _names(table))
    split = SPLIT if split is None and SPLIT in _names(table) else split
    split = None if to_predict and split not in _names(table) else split
    texts = [column, *([label] if wanted else []), *([split] if split is not None else [])]
    with reading(table), table.open(encoding="utf-8", newline="") as file:
        rows = list(read_rows(file, (), texts, str(table)))
    found = _features(folder, _clips(rows, table, folder))
    if wanted:
        found.label = label
        found.labels = np.array([_label(row, roles, table) for row in rows])
    if split is not None:
        found.parts = tuple(_part(row, table) for row in rows)
    listed_files = {row.texts[0] for row in rows}
    left = sum(path.suffix.lower() in SOUND and path.name not in listed_files for path in folder.iterdir())
    found.notes += [f"left out {plural(left, 'file')} that {table.name} does not list"] if left else []
    return finished(found, folder, roles, to_predict)


def _table(folder: Path) -> Path | None:
    tables = sorted(path for path in folder.iterdir() if path.suffix.lower() == ".csv")
    named = [path for path in tables if path.name == TABLE]
    if len(tables) > 1 and not named:
        raise DataError(f"expected one table of labels in {folder}, or {TABLE}, got {tables[0].name}, {tables[1].name}")
    return next(iter(named or tables), None)


def _names(table: Path) -> list[str]:
    with reading(table), table.open(encoding="utf-8-sig", errors="replace") as file:
        return [name.strip().strip('"') for name in file.readline().replace(";", ",").replace("\t", ",").split(",")]


def _clips(rows: Sequence[Row], table: Path, folder: Path) -> list[str]:
    lines: dict[str, int] = {}
    for row in rows:
        name = row.texts[0]
        if Path(name).name != name or not name:
            raise DataError(f"expected names of files in {folder} in line {row.line:,} of {table}, got {shown(name)}")
        if not (folder / name).is_file():
            raise DataError(f"expected the file of line {row.line:,} of {table}, got no {folder / name}")
        if lines.setdefault(name, row.line) != row.line:
            raise DataError(
                f"expected each file once in {table}, got {shown(name)} in lines {lines[name]:,} and {row.line:,}"
            )
    if not rows:
        raise DataError(f"expected files in {table}, got none")
    return list(lines)


def _label(row: Row, roles: Roles, table: Path) -> str | float:
    text = row.texts[1]
    if roles.numbers:
        return number_in(text, "a number as label", f"line {row.line:,} of {table}")
    if text.strip() in UNLABELLED:
        raise DataError(f"expected a label in line {row.line:,} of {table}, got {shown(text)}")
    return text


def _part(row: Row, table: Path) -> str:
    text = row.texts[-1].strip().lower()
    if text not in PARTS:
        raise DataError(f"expected train, valid or test in line {row.line:,} of {table}, got {shown(row.texts[-1])}")
    return PARTS[text]


def _features(folder: Path, names: Sequence[str]) -> Found:
    values, lengths, rate = Growing(), [], 0
    for name in names:
        samples, found = read_clip(folder / name)
        rate = rate or found
        if found != rate:
            raise DataError(
                f"expected {rate:,} samples a second in {folder / name}, as in {names[0]}, got {found:,}: "
                "bring all files to one rate"
            )
        if Framing(rate).frames_in(len(samples)) < 1:
            raise DataError(
                f"expected at least {Framing(rate).window:,} samples in {folder / name}, a frame of 25 ms, "
                f"got {len(samples):,}"
            )
        try:
            features = mfcc(samples, rate).astype(np.float32)
        except ValueError as error:
            raise DataError(f"{folder / name}: {error}") from None
        values.add(features)
        lengths.append(len(features))
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    note = f"features of {plural(len(names), 'file')} at {rate:,} samples a second, a step each {HOP} ms"
    return Found(values.take(), starts, _channels(rate), ids=tuple(names), notes=[note])


def _channels(rate: int) -> tuple[str, ...]:
    """The rate is part of the names: a net does not understand features at another one."""
    static = [*(f"c{n}" for n in range(1, CEPSTRA + 1)), "energy"]
    return tuple(f"{prefix}{name}@{rate}Hz" for prefix in ("", "d_") for name in static)
