"""Users' files that are damaged are refused, or what is read of them is what a simple independent reader reads.

SLIMRNN_FUZZ is the number of mutants of each format, SLIMRNN_FUZZ_SEED their seed."""

from __future__ import annotations

import warnings
from pathlib import Path
from random import Random

import pytest
from nasty import bomb, nasty
from own_files import subjects
from plain_readers import difference, plainly
from subject import Subject
from test_fuzz import LONGEST, MUTANTS, SEED, bounded, written

from slimrnn.data.own_files import read_sequences
from slimrnn.data.sequences import Sequences
from slimrnn.errors import DataError


def outcome(subject: Subject, path: Path) -> Sequences | str:
    """What is read, or the message of a refusal."""
    try:
        with bounded(), warnings.catch_warnings():
            warnings.simplefilter("error")
            read = subject.read(path)
    except DataError as error:
        return str(error)
    assert isinstance(read, Sequences)
    return read


@pytest.mark.parametrize("subject", subjects(), ids=lambda subject: subject.name)
def test_what_is_read_is_what_is_there(subject: Subject, tmp_path: Path) -> None:
    random, refused = Random(f"{SEED} nasty {subject.name}"), 0
    for number in range(max(2, round(MUTANTS * subject.share))):
        content = random.choice(subject.good)
        content = nasty(content, random) if number >= len(subject.good) else subject.good[number]
        path = written(tmp_path / str(number), subject, content if subject.repair is None else subject.repair(content))
        place = f"seed {SEED}, mutant {number} {content[:300]!r} ({path})"
        try:
            read = outcome(subject, path)
        except BaseException as error:
            pytest.fail(f"{type(error).__name__}: {error}; {place}", pytrace=True)
        if isinstance(read, Sequences):
            assert difference(read, plainly(path, read)) == "", place
        else:
            refused += 1
            assert "\n" not in read, place
            assert len(read) < LONGEST, place
    assert refused, "no mutant was refused"


def test_a_small_file_cannot_promise_much(tmp_path: Path) -> None:
    (tmp_path / "bomb.npz").write_bytes(bomb())
    with bounded(), pytest.raises(DataError, match="at most"):
        read_sequences(tmp_path / "bomb.npz")


def test_a_million_columns_are_refused(tmp_path: Path) -> None:
    (tmp_path / "wide.csv").write_bytes(
        b",".join(b"t%d" % n for n in range(10**6)) + b"\n" + b"1," * (10**6 - 1) + b"1\n"
    )
    with bounded(), pytest.raises(DataError, match="at most 100,000 columns"):
        read_sequences(tmp_path / "wide.csv")
