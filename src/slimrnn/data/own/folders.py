"""Data sets of several files: NAME_TRAIN and NAME_TEST, as the UCR/UEA archive has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from slimrnn._texts import listed
from slimrnn.data.own.parts import PARTS
from slimrnn.data.sequences import Sequences
from slimrnn.errors import DataError

ENDS = {"_train": "train", "_valid": "valid", "_val": "valid", "_test": "test"}


def parts_of(path: Path, kinds: Sequence[str]) -> dict[str, Path]:
    """The files of a data set, by part: those in a folder, or those whose names begin with the path.

    Of files that differ in their kind only, those of the first kind are taken; a folder may hold several data sets if
    one has its name."""
    folder = path if path.is_dir() else path.parent
    sets: dict[str, dict[str, dict[str, Path]]] = {}  # by name, kind and part
    for file in sorted(folder.iterdir()):
        kind = file.suffix[1:].lower()
        name, end, part = file.stem.rpartition("_")
        if kind in kinds and end + part.lower() in ENDS:
            sets.setdefault(name, {}).setdefault(kind, {})[ENDS[end + part.lower()]] = file
    wanted = path.name if path.name in sets else None
    if wanted is None and path.is_dir() and len(sets) == 1:
        wanted = next(iter(sets))
    if wanted is None:
        if path.is_dir() and len(sets) > 1:
            some = ", ".join(str(path / name) for name in sets)
            raise DataError(f"expected one data set in {path}, got {listed(sets)}: say which, as one of {some}")
        return {}
    # A whole data set of a later kind before a part of one of an earlier kind.
    kind = min(sets[wanted], key=lambda kind: (len(sets[wanted][kind]) < 2, kinds.index(kind)))
    files = sets[wanted][kind]
    return {part: files[part] for part in ("train", "valid", "test") if part in files}


def together(sets: Mapping[str, Sequences]) -> Sequences:
    """One `Sequences` of several files, whose parts are the keys."""
    first_name, first = next(iter(sets.items()))
    for name, other in sets.items():
        if name not in PARTS.values():
            raise DataError(f"expected train, valid or test, got {name}")
        if other.columns != first.columns:
            raise DataError(
                f"expected the inputs {listed(first.columns)} of the {first_name} file in the {name} file, "
                f"got {listed(other.columns)}"
            )
        for what in ("labels", "times"):
            one, two = getattr(first, what), getattr(other, what)
            if (one is None) != (two is None) or (one is not None and one.dtype.kind != two.dtype.kind):
                raise DataError(f"expected {what} in both the {first_name} and the {name} file, or of one kind")
    all_of_them = list(sets.values())
    ids = [(part, name) for part, own in sets.items() for name in own.ids]
    unique = len({name for _, name in ids}) == len(ids)
    offsets = np.cumsum([0, *(len(own.values) for own in all_of_them)])
    starts = [own.starts[:-1] + offset for own, offset in zip(all_of_them, offsets, strict=False)]
    return replace(
        first,
        values=np.concatenate([own.values for own in all_of_them]),
        starts=np.concatenate([*starts, offsets[-1:]]).astype(np.int64),
        ids=tuple(name if unique else f"{part}/{name}" for part, name in ids),
        labels=None if first.labels is None else np.concatenate([own.labels for own in all_of_them]),
        times=None if first.times is None else np.concatenate([own.times for own in all_of_them]),
        parts=tuple(part for part, own in sets.items() for _ in own.ids),
        notes=tuple(f"{part}: {note}" for part, own in sets.items() for note in own.notes),
    )
