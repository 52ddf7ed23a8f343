"""What a run leaves behind, and how it ends."""

from __future__ import annotations

import json
import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from training_cases import EchoTask, tiny

from slimrnn.training import (
    Batch,
    ConfigError,
    ModelConfig,
    OptimConfig,
    Run,
    Score,
    evaluate,
    resume,
    train,
)
from slimrnn.training.checkpoints import list_checkpoints
from slimrnn.training.checks import build_model


def test_directory_of_a_run(tmp_path: Path) -> None:
    config = tiny(tmp_path / "run", tensorboard=True)
    result = train(config, command="slimrnn train echo", quiet=True)
    names = {path.name for path in result.directory.iterdir() if not path.name.startswith(".")}
    weights = {"best.safetensors", "final.safetensors"}
    assert names == {"run.json", "curve.csv", "curve.png", "checkpoints", "tensorboard"} | weights
    assert [path.name for path in list_checkpoints(result.directory / "checkpoints")] == [
        "update-000000030.safetensors",
        "update-000000040.safetensors",
    ]
    record = json.loads((result.directory / "run.json").read_text())
    assert record["command"] == "slimrnn train echo"
    assert record["status"] == "finished"
    task = {"name": "echo", "class": "training_cases:EchoTask", "length": 12, "spoiled": None, "tests": None}
    assert record["config"]["task"] == task
    assert record["parameters"]["total"] == sum(p.numel() for p in build_model(config).parameters())
    assert {"slimrnn", "torch", "lightning"} <= set(record["versions"])
    assert list((result.directory / "tensorboard").iterdir())
    assert (result.directory / "curve.png").read_bytes().startswith(b"\x89PNG")


class CountingTask(EchoTask):
    built = 0

    def model(self, config: ModelConfig) -> torch.nn.Module:
        CountingTask.built += 1
        return super().model(config)


def test_the_net_is_built_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the best net is not the last."""
    monkeypatch.setattr(CountingTask, "built", 0)
    config = tiny(tmp_path / "run", CountingTask(), optim=OptimConfig(lr=30.0), updates=20)
    assert train(config, quiet=True).best_update == 0
    assert CountingTask.built == 1
    resume(tmp_path / "run", replace(config, updates=30), quiet=True)
    assert CountingTask.built == 2


def test_curve_has_a_row_for_every_evaluation(tmp_path: Path) -> None:
    run = Run(train(tiny(tmp_path / "run", updates=25), quiet=True).directory)
    scores = [f"{split}/{name}" for split in ("valid", "test") for name in ("loss", "accuracy")]
    assert list(run.curve) == ["update", "seconds", "lr", "train/loss", *scores]
    assert run.curve["update"] == [0, 10, 20, 25]
    assert run.result is not None
    assert run.result.final["valid"]["loss"] == pytest.approx(run.curve["valid/loss"][-1])


@pytest.mark.parametrize("cell", ["gru", "rnn"])
def test_curve_tells_the_row_norms_of_weight_normalisation(tmp_path: Path, cell: str) -> None:
    """Updates make v longer: gradients are at right angles to it."""
    net = ModelConfig(cell, 8, "low-rank+diagonal", rank=2, nonlinearity="modrelu" if cell == "rnn" else "tanh")
    config = tiny(tmp_path / "run", model=replace(net, weight_norm=True), updates=40, eval_every=10)
    norms = Run(train(config, quiet=True).directory).curve["net/row_norm"]
    assert len(norms) == 5
    assert norms == sorted(norms)
    plain = replace(config, model=net, out=tmp_path / "plain")
    assert "net/row_norm" not in Run(train(plain, quiet=True).directory).curve


def test_best_net_is_the_one_with_the_best_validation_score(tmp_path: Path) -> None:
    config = tiny(tmp_path / "run", optim=OptimConfig(lr=0.3), seed=1)  # too fast to end with the best
    result = train(config, quiet=True)
    curve = Run(result.directory).curve
    best = min(range(len(curve["update"])), key=lambda i: curve["valid/loss"][i])
    assert result.best_update == curve["update"][best] != result.updates
    assert result.best["valid"]["loss"] == pytest.approx(curve["valid/loss"][best])
    assert evaluate(result.directory, config) == result.best
    assert evaluate(result.directory, config, "final") == result.final != result.best


def test_a_run_stopped_between_evaluations_has_the_scores_of_its_last_net_if_that_is_better(tmp_path: Path) -> None:
    config = tiny(tmp_path / "run")
    stopped = train(config, budget=0, quiet=True)
    assert (stopped.ended, stopped.updates, stopped.best_update) == ("budget", 1, 1)
    assert evaluate(stopped.directory, config) == stopped.best == stopped.final
    assert stopped.best["valid"]["loss"] < Run(stopped.directory).curve["valid/loss"][0]
    resumed, whole = resume(stopped.directory, config, quiet=True), train(tiny(tmp_path / "whole"), quiet=True)
    assert (resumed.best_update, resumed.best) == (whole.best_update, whole.best)


class RisingTask(EchoTask):
    monitor = "accuracy"
    lower_is_better = False


def test_target_ends_a_run(tmp_path: Path) -> None:
    result = train(tiny(tmp_path / "loss", stop_at=0.08), quiet=True)
    curve = Run(result.directory).curve["valid/loss"]
    assert result.ended == "target"
    assert curve[-1] <= 0.08 < min(curve[:-1])
    assert resume(result.directory, tiny(stop_at=0.08)) == result
    result = train(tiny(tmp_path / "accuracy", RisingTask(), stop_at=0.3), quiet=True)
    curve = Run(result.directory).curve["valid/accuracy"]
    assert curve[-1] >= 0.3 > max(curve[:-1])


def test_killed_after_its_target_a_run_is_not_trained_on(tmp_path: Path) -> None:
    config = tiny(tmp_path / "run", stop_at=0.08)
    result = train(config, quiet=True)
    Run(result.directory).write(status="running", result=None)  # what it would say if it had been killed at the end
    again = resume(result.directory, config, quiet=True)
    assert (again.ended, again.updates, again.final) == ("target", result.updates, result.final)


def test_budget_ends_a_run_that_can_be_resumed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tiny(tmp_path / "run")
    stopped = train(config, budget=0, quiet=True)
    assert (stopped.ended, stopped.updates, Run(stopped.directory).status) == ("budget", 1, "budget")
    assert "stopped after update 1; to continue: slimrnn resume" in capsys.readouterr().out
    whole = train(replace(config, out=tmp_path / "whole"), quiet=True)
    resumed = resume(stopped.directory, config, quiet=True)
    assert (resumed.ended, resumed.final) == ("finished", whole.final)
    assert Run(stopped.directory).curve["train/loss"][1:] == Run(whole.directory).curve["train/loss"][1:]


class InterruptedTask(EchoTask):
    """A signal arrives in the middle of update 13, between two checkpoints and before a NaN."""

    number = signal.SIGINT

    def scores(self, output: torch.Tensor, batch: Batch) -> dict[str, Score]:
        if output.requires_grad:
            InterruptedTask.seen += 1
            if InterruptedTask.seen == 13:
                os.kill(os.getpid(), self.number)
        return super().scores(output, batch)

    seen = 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_a_run_that_can_be_resumed(
    number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(InterruptedTask, "number", number)
    monkeypatch.setattr(InterruptedTask, "seen", 0)
    before = signal.getsignal(number)
    config = tiny(tmp_path / "run", InterruptedTask(spoiled=5 * 15))
    stopped = train(config, quiet=True)
    assert (stopped.ended, stopped.updates) == ("interrupted", 13)
    assert signal.getsignal(number) == before
    whole = train(replace(config, out=tmp_path / "whole"), quiet=True)
    resumed = resume(stopped.directory, config, quiet=True)
    assert resumed.final == whole.final
    assert resumed.recoveries == whole.recoveries == ({"update": 15, "back_to": 10, "rate": 0.005},)


def test_complete_run_gives_its_result_and_takes_more_updates(tmp_path: Path) -> None:
    result = train(tiny(tmp_path / "run", updates=20), quiet=True)
    assert resume(result.directory, tiny(updates=20)) == result
    longer = resume(result.directory, tiny(updates=40), quiet=True)
    assert Run(longer.directory).config["updates"] == 40
    assert longer.final == train(tiny(tmp_path / "whole", updates=40), quiet=True).final


def test_resuming_with_other_settings_is_refused(tmp_path: Path) -> None:
    directory = train(tiny(tmp_path / "run", optim=OptimConfig(schedule="cosine"), updates=10), quiet=True).directory
    with pytest.raises(ConfigError, match=r"expected the settings that .* began with, got other optim, seed"):
        resume(directory, tiny(updates=10, seed=1))
    with pytest.raises(ConfigError, match="expected 10 updates, for which the cosine was made"):
        resume(directory, tiny(optim=OptimConfig(schedule="cosine"), updates=20))


def test_damaged_checkpoint_is_passed_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tiny(tmp_path / "run")
    result = train(config, quiet=True)
    Run(result.directory).write(status="running", result=None)
    newest = list_checkpoints(result.directory / "checkpoints")[-1]
    newest.write_bytes(newest.read_bytes()[:-1000])
    (newest.parent / ".update-000000050.safetensors.part").touch()
    again = resume(result.directory, config, quiet=True)
    assert "is damaged or not a checkpoint file" in capsys.readouterr().out
    assert again.final == result.final
    assert Run(again.directory).record["resumed"] == [30]
    assert not list(again.directory.rglob(".*.part"))


def test_killed_before_its_first_checkpoint_a_run_starts_over(tmp_path: Path) -> None:
    config = tiny(tmp_path / "run", updates=10)
    result = train(config, quiet=True)
    shutil.rmtree(result.directory / "checkpoints")
    (result.directory / "checkpoints").mkdir()
    Run(result.directory).write(status="running", result=None)
    assert resume(result.directory, config, quiet=True).final == result.final
    assert Run(result.directory).curve["update"] == [0, 10]
