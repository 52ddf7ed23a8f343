"""Damaged files are read or refused in one line: never another exception, a hang or an allocation without end.

SLIMRNN_FUZZ is the number of mutants of each reader, SLIMRNN_FUZZ_SEED their seed: `make fuzz` sets both."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import warnings
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import FrameType

import pytest
from mutants import mutant
from subject import Subject
from subjects import subjects

from slimrnn.data import DataError
from slimrnn.errors import ExportError, SavedModelError, UsageError
from slimrnn.training import TrainingError

MUTANTS = int(os.environ.get("SLIMRNN_FUZZ", "30"))
SEED = os.environ.get("SLIMRNN_FUZZ_SEED", "0")
SECONDS = 60  # for one mutant, on a machine that does other things as well
MEMORY = 2 * 2**30  # beyond what the process has
LONGEST = 1200  # characters of a message, of which a path has many
REFUSALS = (DataError, ExportError, SavedModelError, TrainingError, UsageError)


class Hang(BaseException):
    """What no reader catches."""


@contextlib.contextmanager
def bounded() -> Iterator[None]:
    """Little time and little memory."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise Hang(f"a reader that is not done after {SECONDS} s")

    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, before[1]))
    handler = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, handler)
        resource.setrlimit(resource.RLIMIT_AS, before)


def outcome(subject: Subject, path: Path) -> str:
    """ "read", or the message of a refusal."""
    try:
        with bounded(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            subject.read(path)
    except REFUSALS as error:
        return str(error)
    return "read"


def written(folder: Path, subject: Subject, content: bytes) -> Path:
    """In a folder of its own: readers remember files by their names."""
    folder.mkdir()
    (folder / subject.name).write_bytes(content)
    return folder / subject.name


@pytest.mark.parametrize("subject", subjects(), ids=lambda subject: subject.name)
def test_damaged_files_are_read_or_refused(subject: Subject, tmp_path: Path) -> None:
    random, found = Random(f"{SEED} {subject.name}"), []
    for number in range(max(3, round(MUTANTS * subject.share))):
        content = mutant(random.choice(subject.good), random, subject.good)
        content = content if subject.repair is None else subject.repair(content)
        path = written(tmp_path / str(number), subject, content)
        try:
            found.append(outcome(subject, path))
        except BaseException as error:
            kind = type(error).__name__
            pytest.fail(f"seed {SEED}, mutant {number}: {kind}: {error} for {content[:300]!r} ({path})", pytrace=True)
        assert "\n" not in found[-1].strip(), found[-1]
        assert len(found[-1]) < LONGEST, found[-1]
    assert set(found) != {"read"}, "no mutant was refused: the damage does not reach the reader"


@pytest.mark.parametrize("subject", subjects(), ids=lambda subject: subject.name)
def test_whole_files_are_read(subject: Subject, tmp_path: Path) -> None:
    for number, good in enumerate(subject.good):
        content = good if subject.repair is None else subject.repair(good)
        assert outcome(subject, written(tmp_path / str(number), subject, content)) == "read"
