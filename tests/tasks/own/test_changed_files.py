"""A user's file may change after training."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from own_cases import some_sequences, some_series, tiny, write_csv
from slimrnn.data.sequences import Sequences
from slimrnn.errors import DataError
from slimrnn.tasks import run_config
from slimrnn.tasks.own import ClassifyTask, ForecastTask, OwnTask
from slimrnn.training import Run, evaluate, resume, train


def trained(task: OwnTask, directory: Path) -> Run:
    train(tiny(task, updates=1, out=directory), quiet=True)
    return Run(directory)


def append(path: Path, sequences: Sequences) -> None:
    more = replace(sequences, ids=tuple(f"new {name}" for name in sequences.ids))
    rows = write_csv(more, path.with_suffix(".more")).read_text().partition("\n")[2]
    path.write_text(path.read_text() + rows)


def test_a_file_that_grew_is_not_tested_on(tmp_path: Path) -> None:
    file = write_csv(some_sequences(), tmp_path / "data.csv")
    run = trained(ClassifyTask(file), tmp_path / "run")
    before = run_config(run).task
    assert isinstance(before, ClassifyTask)
    trained_on = {before.sequences.ids[i] for i in before.parts["train"]}
    append(file, some_sequences(4, seed=1))
    config = run_config(run)
    assert isinstance(config.task, ClassifyTask)
    tested = {config.task.sequences.ids[i] for i in config.task.parts["test"]}
    assert trained_on & tested  # what must not be scored
    for again in (evaluate, resume):
        with pytest.raises(DataError, match=r"expected .*data\.csv as it was when the net was trained, got other data"):
            again(run.directory, config)


def test_a_series_that_grew_is_not_tested_on(tmp_path: Path) -> None:
    file = write_csv(some_series(), tmp_path / "data.csv")
    run = trained(ForecastTask(file, horizon=3), tmp_path / "run")
    append(file, some_series(1))
    with pytest.raises(DataError, match="Put the old file back, or train a new net"):
        evaluate(run.directory, run_config(run))


def test_a_test_file_that_changed_is_refused(tmp_path: Path) -> None:
    file = write_csv(some_sequences(), tmp_path / "data.csv")
    test = write_csv(some_sequences(6, seed=1), tmp_path / "test.csv")
    run = trained(ClassifyTask(file, test_file=test), tmp_path / "run")
    write_csv(some_sequences(6, seed=2), test)
    with pytest.raises(DataError, match=r"expected .*test\.csv as it was"):
        evaluate(run.directory, run_config(run))


def test_the_same_data_in_a_new_file_are_taken(tmp_path: Path) -> None:
    file = write_csv(some_sequences(), tmp_path / "data.csv")
    run = trained(ClassifyTask(file), tmp_path / "run")
    file.write_text(file.read_text().replace("\r\n", "\n") + "\n")
    evaluate(run.directory, run_config(run))


def test_runs_without_a_checksum_are_still_scored(tmp_path: Path) -> None:
    file = write_csv(some_sequences(), tmp_path / "data.csv")
    run = trained(ClassifyTask(file), tmp_path / "run")
    facts = {name: value for name, value in run.record["data"].items() if name != "checksums"}
    run.write(data=facts)
    append(file, some_sequences(4, seed=1))
    evaluate(run.directory, run_config(run))


@pytest.mark.parametrize("name", ["values", "starts", "labels", "times", "ids", "parts"])
def test_a_checksum_covers_all_that_was_read(name: str) -> None:
    read = replace(some_sequences(), parts=("train", "test") * 12)
    starts = read.starts.copy()
    starts[1] += 1
    assert read.labels is not None
    assert read.times is not None
    other: Any = {
        "values": read.values + np.float32(1),
        "starts": starts,
        "labels": read.labels[::-1],
        "times": read.times + 1,
        "ids": read.ids[::-1],
        "parts": ("test", "train") * 12,
    }[name]
    assert read.checksum() == replace(read).checksum() != replace(read, **{name: other}).checksum()
