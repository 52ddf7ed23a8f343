"""Runs that begin with the weights of a file."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from training_cases import tiny

from slimrnn.training import Batch, CheckpointError, Result, resume, train
from slimrnn.training.nets import START, WEIGHTS
from slimrnn.training.run_files import read_tensors


class Killed(BaseException):
    """Ends a run as a kill does: nothing is caught, nothing is written."""


class Killer:
    def __init__(self, last: int) -> None:
        self.last = last

    def after_update(self, update: int, model: Any, batch: Batch, say: Callable[[str], Any]) -> dict[str, float]:
        if update == self.last:
            raise Killed
        return {}


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(tiny(tmp_path_factory.mktemp("first"), updates=10), quiet=True).directory


def test_killed_before_its_first_checkpoint_a_run_begins_with_the_same_file(first: Path, tmp_path: Path) -> None:
    """Not with the file of the same name that it wrote itself."""
    config = tiny(start_from=first / "best.safetensors", eval_every=2, checkpoint_every=20, updates=12)
    with pytest.raises(Killed):
        train(replace(config, out=tmp_path / "killed"), quiet=True, callbacks=[Killer(9)])
    assert (tmp_path / "killed/best.safetensors").exists()
    resumed = resume(tmp_path / "killed", config, quiet=True)
    _assert_same(resumed, train(replace(config, out=tmp_path / "whole"), quiet=True))


def test_with_a_checkpoint_the_file_is_not_needed(first: Path, tmp_path: Path) -> None:
    start = Path(shutil.copy(first / "best.safetensors", tmp_path / "w.safetensors"))
    config = tiny(start_from=start, updates=10)
    whole = train(replace(config, out=tmp_path / "whole"), quiet=True)
    stopped = train(replace(config, out=tmp_path / "run"), budget=0, quiet=True)
    assert stopped.updates == 1
    start.unlink()
    _assert_same(resume(stopped.directory, config, quiet=True), whole)


def test_without_a_checkpoint_a_missing_file_is_told(first: Path, tmp_path: Path) -> None:
    start = Path(shutil.copy(first / "best.safetensors", tmp_path / "w.safetensors"))
    config = tiny(start_from=start, updates=10)
    with pytest.raises(Killed):
        train(replace(config, out=tmp_path / "run"), quiet=True, callbacks=[Killer(5)])
    start.unlink()
    with pytest.raises(CheckpointError, match=r"w\.safetensors"):
        resume(tmp_path / "run", config, quiet=True)


def test_a_compressed_run_that_was_moved_begins_with_its_own_file(first: Path, tmp_path: Path) -> None:
    config = tiny(start_from=tmp_path / "old" / START, updates=10)
    (tmp_path / "old").mkdir()
    shutil.copy(first / "best.safetensors", tmp_path / "old" / START)
    whole = train(replace(config, out=tmp_path / "whole"), quiet=True)
    with pytest.raises(Killed):
        train(replace(config, out=tmp_path / "old"), quiet=True, callbacks=[Killer(5)])
    (tmp_path / "old").rename(tmp_path / "new")
    _assert_same(resume(tmp_path / "new", config, quiet=True), whole)


def _assert_same(result: Result, other: Result) -> None:
    ours, theirs = (read_tensors(one.directory / "final.safetensors", WEIGHTS)[0] for one in (result, other))
    assert all(torch.equal(weight, theirs[name]) for name, weight in ours.items())
    assert (result.best, result.final) == (other.best, other.final)
