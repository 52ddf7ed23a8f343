"""The best of a few settings: one that cannot be trained does not lose the others."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from training_cases import EchoTask, tiny

from slimrnn.training import Config, ConfigError, ModelConfig, OptimConfig, Result, Run, TrainingDiverged, train
from slimrnn.training import search as searching
from slimrnn.training.search import best_of

FEW: dict[str, Any] = {"updates": 2, "eval_every": 1, "checkpoint_every": 2}
CONFIG = tiny(**FEW)
IMPOSSIBLE = tiny(model=ModelConfig("gru", 8, "low-rank", rank=12), **FEW)
DIVERGES = tiny(task=EchoTask(spoiled=0), optim=OptimConfig(max_recoveries=0), **FEW)


def test_impossible_settings_are_left_out_before_any_training(tmp_path: Path) -> None:
    said: list[str] = []
    result = best_of([replace(CONFIG, out=tmp_path / "run"), IMPOSSIBLE], 3600, say=said.append)
    assert "one setting is left out: expected a rank of at most 8" in said[0]
    assert [line.split(":")[0] for line in said[1:]] == ["1 of 1"]
    assert Run(result.directory).status == "finished"


def test_the_first_setting_must_be_possible(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="expected a rank of at most 8"):
        best_of([replace(IMPOSSIBLE, out=tmp_path / "run"), CONFIG], 3600)
    assert not (tmp_path / "run").exists()


def test_a_run_that_fails_leaves_the_best_of_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    late = ConfigError("found out late")

    def fails_once(config: Config, *arguments: Any, **options: Any) -> Result:
        if config.seed == 1:
            raise late
        return train(config, *arguments, **options)

    monkeypatch.setattr(searching, "train", fails_once)
    said: list[str] = []
    result = best_of([replace(CONFIG, out=tmp_path / "run"), replace(CONFIG, seed=1), DIVERGES], 3600, say=said.append)
    assert result.ended == "finished"
    assert said[1] == "2 of 3: found out late"
    assert said[2].startswith("3 of 3: the gradient of update 1 is not finite")
    with pytest.raises(ConfigError, match="found out late"):
        best_of([replace(CONFIG, seed=1, out=tmp_path / "other")], 3600, say=said.append)
    with pytest.raises(TrainingDiverged, match="expected a setting that can be trained, got none"):
        best_of([replace(DIVERGES, out=tmp_path / "third")], 3600, say=said.append)


def test_a_score_that_is_no_number_does_not_win(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = iter([math.nan, 0.5, 0.4])
    monkeypatch.setattr(searching, "_score", lambda *_: next(scores))
    result = best_of([replace(CONFIG, seed=s, out=tmp_path / "run") for s in range(3)], 3600, say=lambda _: None)
    assert Run(result.directory).config["seed"] == 2
