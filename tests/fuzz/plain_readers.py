"""What an independent, simple reader makes of a user's file: csv, float, numpy.load and wave, and no checks."""

from __future__ import annotations

import csv
import gzip
import io
import math
import re
import wave
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from slimrnn.data.mfcc import mfcc
from slimrnn.data.own_files import Roles
from slimrnn.data.sequences import Sequences

Series = tuple[str | None, str | None, list[list[float]]]  # id, label, steps
MISSING = {"", "NA", "N/A", "NaN", "nan", "NAN", "null", "NULL", "None", "?", "+nan", "-nan"}


def plainly(path: Path, read: Sequences) -> list[Series]:
    """The same file by the shortest way, with the roles that were taken."""
    roles = read.roles or Roles()
    kind = path.suffixes[0][1:]
    if path.name == "labels.csv":
        rows = [{name: text.strip() for name, text in row.items()} for row in _dicts(path.read_bytes())]
        return [(row["file"], row["label"], _mfcc(path.parent / row["file"])) for row in rows]
    if kind in ("csv", "tsv"):
        raw = path.read_bytes()
        rows = _dicts(gzip.decompress(raw) if path.suffix == ".gz" else raw, kind == "tsv")
        return _of_rows(rows, roles, read)
    if kind == "parquet":
        return _of_rows(
            [{n: "" if v is None else str(v) for n, v in row.items()} for row in pl.read_parquet(path).to_dicts()],
            roles,
            read,
        )
    return {"ts": _plain_ts, "arff": _plain_arff, "npz": _plain_npz, "npy": _plain_npy, "wav": _plain_wav}[kind](path)


def _dicts(raw: bytes, tabs: bool = False) -> list[dict[str, str]]:
    text = raw.decode("utf-8-sig").rstrip("\r\n")
    first = re.sub('"[^"]*"', "", text.partition("\n")[0])
    separator = "\t" if tabs else next((s for s in ",;\t|" if s in first), ",")
    rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator))
    names = [name.strip() or f"column {n + 1}" for n, name in enumerate(rows[0])]
    if all(_number(value) is not None or value.strip() in MISSING for value in rows[0]):
        names, rows = [f"column {n + 1}" for n in range(len(rows[0]))], [[], *rows]
    return [dict(zip(names, row or [""], strict=True)) for row in rows[1:]]


def _number(text: str) -> float | None:
    try:
        return None if "_" in text or not text.isascii() else float(text)
    except ValueError:
        return None


def _value(text: str) -> float:
    text = text.strip(" \t")
    return math.nan if text in MISSING else float({"True": "1", "False": "0"}.get(text, text))


def _of_rows(rows: list[dict[str, str]], roles: Roles, read: Sequences) -> list[Series]:
    names = roles.columns or ()
    for row in rows:
        row.update({name: row[name].strip() for name in (roles.sequence, roles.label) if name in row})
    label = roles.label if roles.labels != "none" else None
    if roles.layout == "wide":
        found: list[Series] = []
        for row in rows:
            steps = sorted(names, key=lambda name: int(re.findall("[0-9]+$", name)[0]))
            values = [[_value(row[name])] for name in steps]
            while math.isnan(values[-1][0]):
                values.pop()
            found.append((row[roles.sequence] if roles.sequence else None, row[label] if label else None, values))
        return found
    groups: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        groups.setdefault(row[roles.sequence] if roles.sequence else "", []).append(row)
    dates = read.times is not None and read.times.dtype.kind == "M"
    for group in groups.values():
        if roles.time is not None:
            time = roles.time
            group.sort(key=lambda row: row[time] if dates else "")
            group.sort(key=lambda row: 0.0 if dates else _value(row[time]))
    return [
        (name or None, group[0][label] if label else None, [[_value(row[c]) for c in names] for row in group])
        for name, group in groups.items()
    ]


def _plain_ts(path: Path) -> list[Series]:
    text = path.read_bytes().decode("utf-8", errors="replace")
    lines = [line.strip() for line in text.removeprefix("\ufeff").split("\n")]
    lines = [line for line in lines if line and line[0] not in "#%"]
    place = next(n for n, line in enumerate(lines) if line.lower().split()[0] == "@data")
    tags = " ".join(lines[:place]).lower()
    labelled = re.search("@(class|target)label true", tags) is not None
    found: list[Series] = []
    for line in lines[place + 1 :]:
        line = re.sub(r"\(([^()]*),([^(),]*)\)", r"\2", line)
        *channels, label = line.split(":") if labelled else [*line.split(":"), ""]
        columns = [[_value(value) for value in channel.split(",")] for channel in channels]
        found.append((None, label.strip() if labelled else None, [list(step) for step in zip(*columns, strict=True)]))
    return found


def _plain_arff(path: Path) -> list[Series]:
    text = path.read_bytes().decode("utf-8", errors="replace").removeprefix("\ufeff")
    lines = [line.strip() for line in text.split("\n")]
    lines = [line for line in lines if line and line[0] != "%"]
    place = next(n for n, line in enumerate(lines) if line.lower().split()[0] == "@data")
    nominal = any("{" in line for line in lines[:place])
    found: list[Series] = []
    for line in lines[place + 1 :]:
        numbers, _, label = line.rpartition(",") if nominal else (line, "", "")
        columns = [[_value(v) for v in row.split(",")] for row in numbers.strip(" '\"").split("\\n")]
        steps = [list(step) for step in zip(*columns, strict=True)]
        while all(map(math.isnan, steps[-1])):
            steps.pop()
        found.append((None, label.strip(" '\"") if nominal else None, steps))
    return found


def _plain_npz(path: Path) -> list[Series]:
    with np.load(path, allow_pickle=False) as arrays:
        values = arrays[next(name for name in ("values", "x", "X", "data") if name in arrays)]
        names = [name for name in ("labels", "label", "y", "Y") if name in arrays]
        lengths = arrays.get("lengths")
        labels = [str(v).strip() for v in arrays[names[0]].tolist()] if names else [None] * len(values)
    return _padded(values, lengths, labels)


def _plain_npy(path: Path) -> list[Series]:
    values = np.load(path, allow_pickle=False)
    return _padded(values, None, [None] * len(values))


def _padded(values: np.ndarray[Any, Any], lengths: Any, labels: Any) -> list[Series]:
    found: list[Series] = []
    for n, one in enumerate(values):
        steps = one.reshape(len(one), -1).astype(np.float64).tolist()
        steps = steps[: None if lengths is None else lengths[n]]
        while lengths is None and all(map(math.isnan, steps[-1])):
            steps.pop()
        found.append((None, labels[n], steps))
    return found


def _mfcc(path: Path) -> list[list[float]]:
    with wave.open(str(path)) as file:
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2")
        return mfcc(samples, file.getframerate()).tolist()  # type: ignore[no-any-return]


def _plain_wav(path: Path) -> list[Series]:
    return [(path.name, "yes", _mfcc(path))]


def difference(read: Sequences, plain: list[Series]) -> str:
    """What differs, in words; nothing where all is the same."""
    if len(read) != len(plain):
        return f"{len(read)} sequences instead of {len(plain)}"
    for n, (name, label, steps) in enumerate(plain):
        with np.errstate(over="ignore"):
            expected = np.array(steps, np.float64).astype(np.float32)
        if not np.array_equal(read[n], expected, equal_nan=True):
            return f"sequence {n}: {read[n].tolist()} instead of {expected.tolist()}"
        if name is not None and read.ids[n] != name:
            return f"id {read.ids[n]!r} instead of {name!r}"
        if (label is None) != (read.labels is None) or (label is not None and str(read.labels[n]) != label):  # type: ignore[index]
            return f"label {None if read.labels is None else read.labels[n]!r} instead of {label!r}"
    return ""
