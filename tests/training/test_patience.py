"""A run ends when evaluations bring nothing better, and stays ended."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from slimrnn.tasks import AddingTask
from slimrnn.training import Config, ConfigError, ModelConfig, OptimConfig, Run, resume, train
from slimrnn.training.search import best_of
from slimrnn.training.torch_rival import torch_rival

STILL = OptimConfig(lr=1e-30)  # the net never changes, so nothing is better than the first evaluation
CONFIG = Config(
    AddingTask(4),
    ModelConfig("gru", 3),
    STILL,
    updates=12,
    batch_size=4,
    eval_every=2,
    checkpoint_every=2,
    valid_size=8,
    test_size=8,
    threads=1,
    tensorboard=False,
)


def test_a_run_without_progress_ends(tmp_path: Path) -> None:
    config = replace(CONFIG, patience=2, out=tmp_path / "run")
    result = train(config, quiet=True)
    assert (result.ended, result.updates, result.best_update) == ("patience", 4, 0)
    assert resume(tmp_path / "run", config, quiet=True) == result
    assert resume(tmp_path / "run", replace(config, patience=None), quiet=True).updates == 12
    assert Run(tmp_path / "run").status == "finished"


def test_patience_does_not_end_a_run_that_improves(tmp_path: Path) -> None:
    config = replace(CONFIG, optim=OptimConfig(lr=1e-3), patience=2, out=tmp_path / "run")
    assert train(config, quiet=True).ended == "finished"


def test_patience_is_a_count() -> None:
    with pytest.raises(ConfigError, match="expected patience to be at least 1, got 0"):
        train(replace(CONFIG, patience=0))


def test_the_best_of_several_settings_has_the_directory(tmp_path: Path) -> None:
    learns = replace(CONFIG, optim=OptimConfig(lr=1e-2))
    said: list[str] = []
    configs = [replace(CONFIG, out=tmp_path / "run"), learns, CONFIG]
    result = best_of(configs, 3600, "the command", said.append)
    assert result.directory == tmp_path / "run"
    assert Run(result.directory).config["optim"]["lr"] == 1e-2
    assert Run(result.directory).record["command"] == "the command"
    assert sorted(path.name for path in (tmp_path / "run" / "tries").iterdir()) == ["1", "3"]
    assert [line.split(":")[0] for line in said] == ["1 of 3", "2 of 3", "3 of 3"]


def test_without_time_only_the_first_setting_is_trained(tmp_path: Path) -> None:
    said: list[str] = []
    result = best_of([replace(CONFIG, out=tmp_path / "run"), CONFIG], 0, say=said.append)
    assert result.ended == "budget"
    assert said[-1] == "no time for 1 more"
    assert not (tmp_path / "run" / "tries").exists()


def test_the_rival_has_as_many_parameters(tmp_path: Path) -> None:
    config = replace(CONFIG, model=ModelConfig("gru", 40, structure="low-rank", rank=4))
    rival = torch_rival(config, tmp_path)
    assert (rival.model.cell, rival.model.backend, rival.model.structure) == ("lstm", "torch", "dense")
    counts = [sum(p.numel() for p in one.task.model(one.model).parameters()) for one in (config, rival)]
    assert abs(counts[0] - counts[1]) < 0.1 * counts[0]
