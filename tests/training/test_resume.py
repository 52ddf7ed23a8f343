"""A run that was killed and resumed is the run that was not."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import training_cases
from training_cases import KILLED

from slimrnn.training import Run, resume, train
from slimrnn.training.checkpoints import FORMAT, list_checkpoints, read_checkpoint, write_checkpoint
from slimrnn.training.record import fingerprint
from slimrnn.training.run_files import read_tensors


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("killed")
    subprocess.run([sys.executable, training_cases.__file__, directory], check=True, timeout=120)
    return directory


@pytest.mark.parametrize("name", KILLED)
def test_killed_and_resumed_equals_uninterrupted(name: str, killed: Path, tmp_path: Path) -> None:
    config, directory = KILLED[name], killed / str(list(KILLED).index(name))
    assert Run(directory).status == "running"
    before = len(Run(directory).curve["update"])
    resumed = resume(directory, config, quiet=True)
    whole = train(replace(config, out=tmp_path / "whole"), quiet=True)
    assert 1 < before < len(Run(directory).curve["update"])
    assert _rows(directory) == _rows(whole.directory)
    assert (resumed.best, resumed.final) == (whole.best, whole.final)
    assert resumed.recoveries == whole.recoveries
    for path in ("final.safetensors", "best.safetensors", "checkpoints/update-000000240.safetensors"):
        _assert_same_tensors(directory / path, whole.directory / path)


@pytest.mark.parametrize("between", [False, True])
def test_checkpoints_of_lightnings_trainer_are_understood(between: bool, tmp_path: Path) -> None:
    """As the first runs have them; one that was stopped between two checkpoints holds the good state too."""
    config = KILLED["bptt, complex state, recovery"]
    directory = train(replace(config, out=tmp_path / "run"), budget=0 if between else None, quiet=True).directory
    path = list_checkpoints(directory / "checkpoints")[-1 if between else -2]
    new = read_checkpoint(path, fingerprint(config))
    assert ("good" in new["learner"]) == between
    old = {
        "epoch": 0,
        "global_step": new["update"],
        "pytorch-lightning_version": "2.6.6",
        "state_dict": {f"model.{name}": weight for name, weight in new["model"].items()},
        "loops": {"fit_loop": {"state_dict": {"combined_loader": [new["batches"]]}}},
        "callbacks": {"Conductor": new["loop"]},
        "optimizer_states": [new["optimizer"]],
        "lr_schedulers": [new["schedule"]],
        "slimrnn": {name: value for name, value in new["learner"].items() if name != "update"},
    }
    for other in list_checkpoints(directory / "checkpoints"):
        other.unlink()
    write_checkpoint(path, fingerprint(config), old)
    Run(directory).write(status="running", result=None)
    resumed, whole = resume(directory, config, quiet=True), train(replace(config, out=tmp_path / "whole"), quiet=True)
    assert Run(directory).record["resumed"] == [new["update"]]
    assert _rows(directory) == _rows(whole.directory)
    assert (resumed.final, resumed.recoveries) == (whole.final, whole.recoveries)


def _rows(directory: Path) -> list[list[str]]:
    """curve.csv without the seconds."""
    rows = [line.split(",") for line in (directory / "curve.csv").read_text().splitlines()]
    assert rows[0][1] == "seconds"
    return [[row[0], *row[2:]] for row in rows]


def _assert_same_tensors(path: Path, other: Path) -> None:
    kind = FORMAT if "update" in path.name else "weights"
    (tensors, _), (others, _) = read_tensors(path, kind), read_tensors(other, kind)
    assert tensors.keys() == others.keys()
    assert all(torch.equal(tensor, others[name]) for name, tensor in tensors.items())
