"""Numbers that are not finite lead back to the last good net."""

from __future__ import annotations

import copy
import math
from pathlib import Path

import pytest
import torch
from torch import nn
from training_cases import EchoTask, tiny

from slimrnn.training import OptimConfig, Run, TrainingDiverged, train
from slimrnn.training.recovery import GoodState, is_finite
from slimrnn.training.run_files import read_tensors


def test_nan_leads_back_at_half_the_rate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Update 26 meets a NaN; up to 25 all is as it would be without, and 20 is where a checkpoint was."""
    spoiled = train(tiny(tmp_path / "spoiled", EchoTask(spoiled=5 * 25), updates=30), quiet=True)
    assert spoiled.recoveries == ({"update": 25, "back_to": 20, "rate": 0.005},)
    said = capsys.readouterr().out
    assert (
        "the gradient of update 26 is not finite: back to the net after update 20 at half the rate, 0.005 (1/3)" in said
    )
    curve = Run(spoiled.directory).curve
    assert curve["lr"] == [0.01, 0.01, 0.01, 0.005]
    assert all(math.isfinite(value) for value in curve["train/loss"][1:])
    good = train(tiny(tmp_path / "good", updates=20), quiet=True)
    assert Run(good.directory).curve["valid/loss"] == curve["valid/loss"][:3]


def test_the_net_is_that_of_the_last_checkpoint(tmp_path: Path) -> None:
    """The NaN is in the last update, after which the weights are those of update 20."""
    spoiled = train(tiny(tmp_path / "spoiled", EchoTask(spoiled=5 * 24), updates=25), quiet=True)
    good = train(tiny(tmp_path / "good", updates=20), quiet=True)
    weights, expected = (read_tensors(run.directory / "final.safetensors", "weights")[0] for run in (spoiled, good))
    assert all(torch.equal(weights[name], expected[name]) for name in expected)


def test_it_gives_up_after_so_many(tmp_path: Path) -> None:
    """A rate so large that every net is infinite after an update."""
    config = tiny(tmp_path / "run", optim=OptimConfig("sgd", 1e38, max_recoveries=2))
    with pytest.raises(TrainingDiverged, match="not finite, and 2 returns to a good net at half the rate did not help"):
        train(config, quiet=True)
    assert Run(tmp_path / "run").status.startswith("failed: the gradient")


def test_infinite_weights_never_become_a_checkpoint(tmp_path: Path) -> None:
    """The gradients of update 1 are finite, and what it makes of the weights is not."""
    config = tiny(
        tmp_path / "run", checkpoint_every=1, optim=OptimConfig("sgd", 1e38, weight_decay=1e9, max_recoveries=0)
    )
    with pytest.raises(TrainingDiverged, match="the net or its optimizer after update 1 is not finite"):
        train(config, quiet=True)
    assert not list((tmp_path / "run" / "checkpoints").iterdir())


def _step(model: nn.Module, optimizer: torch.optim.Optimizer, scale: float = 1.0) -> None:
    optimizer.zero_grad()
    (scale * model(torch.ones(1, 2)).sum()).backward()
    optimizer.step()


def test_a_good_state_can_be_returned_to_twice() -> None:
    model = nn.Linear(2, 2)
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    _step(model, optimizer)
    good, expected = GoodState.of(1, model, optimizer), copy.deepcopy(optimizer.state_dict())
    for _ in range(2):
        _step(model, optimizer)
        good.restore_(model, optimizer)
        for number, state in expected["state"].items():
            assert all(torch.equal(optimizer.state_dict()["state"][number][name], state[name]) for name in state)


def test_squares_beyond_float32_are_not_finite() -> None:
    """The weights are finite, but would never move again."""
    model = nn.Linear(2, 2)
    optimizer = torch.optim.Adam(model.parameters())
    _step(model, optimizer)
    assert is_finite(model, optimizer)
    _step(model, optimizer, 1e25)
    assert all(p.isfinite().all() for p in model.parameters())
    assert not is_finite(model, optimizer)
