"""Whether a data set is there, and whole."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from slimrnn.data.dataset import DataFile, Dataset
from slimrnn.data.download import is_right
from slimrnn.data.files import reading


@dataclass(frozen=True)
class Condition:
    """What was found of a data set, and what is wrong with it."""

    state: Literal["complete", "absent", "missing files", "damaged"]
    problems: tuple[str, ...] = ()
    unverified: bool = False  # there are files whose checksums nobody knows

    def __str__(self) -> str:
        if self.state == "complete" and self.unverified:
            return "complete, as far as its files have checksums"
        return ": ".join([self.state, *([", ".join(self.problems)] if self.problems else [])])


def condition_of(dataset: Dataset, directory: Path) -> Condition:
    """Look at every file, and read those that have checksums."""
    folder = directory / dataset.folder
    with reading(folder):
        return _of_patterns(dataset, folder) if dataset.patterns else _of_files(dataset, folder)


def problem_of(file: DataFile, folder: Path) -> str:
    """ "damaged" for a file that is not what it should be, "missing" for one that is not there, else nothing."""
    path = folder / file.name
    if not path.is_file():
        return "missing"
    if file.size is not None and path.stat().st_size != file.size:
        return "damaged"
    return "" if is_right(path, file.checksum) else "damaged"


def _of_files(dataset: Dataset, folder: Path) -> Condition:
    problems = {file.name: problem_of(file, folder) for file in dataset.files}
    damaged = tuple(name for name, problem in problems.items() if problem == "damaged")
    missing = tuple(name for name, problem in problems.items() if problem == "missing")
    if damaged:
        return Condition("damaged", damaged)
    if missing:
        return Condition("absent") if len(missing) == len(problems) else Condition("missing files", missing)
    return Condition("complete", unverified=not all(file.checksum for file in dataset.files))


def _of_patterns(dataset: Dataset, folder: Path) -> Condition:
    found = {pattern: sum(path.is_file() for path in folder.glob(pattern)) for pattern, _ in dataset.patterns}
    if not any(found.values()):
        return Condition("absent")
    short = [
        f"{found[pattern]:,} of {count:,} {pattern}" for pattern, count in dataset.patterns if found[pattern] < count
    ]
    return Condition("missing files", tuple(short)) if short else Condition("complete", unverified=True)
