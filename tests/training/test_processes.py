"""Two processes train what one does."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import training_cases
from process_cases import second_fails, train_and_end_threads
from training_cases import UNEVEN

from slimrnn.training import ConfigError, Result, Run, TrainingDiverged, train
from slimrnn.training.launch import launch


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Result:
    return train(replace(UNEVEN, out=tmp_path_factory.mktemp("one")), quiet=True)


def test_two_processes_give_the_curve_of_one(one: Result, tmp_path: Path) -> None:
    two = train(replace(UNEVEN, out=tmp_path / "two", devices=2), quiet=True)
    assert (two.ended, two.updates, two.best_update) == (one.ended, one.updates, one.best_update)
    _assert_same_curve(two.directory, one.directory)
    np.testing.assert_allclose(two.score("test"), one.score("test"), rtol=1e-6)


def test_torchrun_goes_on_where_one_process_stopped(one: Result, tmp_path: Path) -> None:
    stopped = train(replace(UNEVEN, out=tmp_path / "stopped"), budget=0, quiet=True)
    assert (stopped.ended, stopped.updates) == ("budget", 1)  # with a state to carry over to the second update
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone"]
    script = [training_cases.__file__, "resume", str(stopped.directory)]
    subprocess.run([*command, *script], check=True, timeout=120, env=os.environ | {"PYTHONFAULTHANDLER": "1"})
    _assert_same_curve(stopped.directory, one.directory)
    assert Run(stopped.directory).status == "finished"


def test_an_error_in_one_process_ends_all_and_is_raised_here() -> None:
    with pytest.raises(TrainingDiverged, match="the second process failed"):
        launch(second_fails, (), 2)
    assert not multiprocessing.active_children()


def test_threads_that_talk_to_other_processes_end_before_the_interpreter(tmp_path: Path) -> None:
    launch(train_and_end_threads, (tmp_path,), 2)  # otherwise torch may abort


def test_more_processes_than_sequences_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="expected batch_size of at least one sequence for each of 6 devices, got 5"):
        train(replace(UNEVEN, out=tmp_path / "run", devices=6))
    assert not (tmp_path / "run").exists()


def _assert_same_curve(directory: Path, other: Path) -> None:
    curve, expected = Run(directory).curve, Run(other).curve
    assert list(curve) == list(expected)
    for name in set(expected) - {"seconds"}:
        np.testing.assert_allclose(curve[name], expected[name], rtol=1e-6, err_msg=name)
