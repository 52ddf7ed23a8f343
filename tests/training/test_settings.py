"""Settings do what they say, and impossible ones are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from training_cases import EchoTask, first_indices, tiny

from slimrnn.layers.parameter_groups import recurrent_parameters
from slimrnn.tasks import AddingTask
from slimrnn.training import (
    Config,
    ConfigError,
    ModelConfig,
    OptimConfig,
    Run,
    SequenceModule,
    TrainingError,
    train,
)
from slimrnn.training.checks import build_model
from slimrnn.training.in_memory import train_in_memory
from slimrnn.training.run_files import read_tensors
from slimrnn.training.search import best_of


def test_recurrent_rate_of_zero_leaves_the_matrices(tmp_path: Path) -> None:
    config = tiny(tmp_path / "run", optim=OptimConfig(lr=0.1, recurrent_rate=0, penalty=1.0))
    final, _ = read_tensors(train(config, quiet=True).directory / "final.safetensors", "weights")
    counts, model = Run(tmp_path / "run").record["parameters"], build_model(config)
    assert counts["trainable"] == counts["total"] - counts["recurrent"]
    recurrent = {id(p) for p in recurrent_parameters(model)}
    for name, p in model.named_parameters():
        assert torch.equal(final[name], p) == (id(p) in recurrent)


def test_only_the_read_out_is_trained_if_asked_for(tmp_path: Path) -> None:
    model = ModelConfig("gru", 8, readout_hidden=3)
    config = tiny(tmp_path / "run", model=model, optim=OptimConfig(lr=0.1, readout_only=True))
    final, _ = read_tensors(train(config, quiet=True).directory / "final.safetensors", "weights")
    for name, p in build_model(config).named_parameters():
        assert torch.equal(final[name], p) == name.startswith("rnn."), name


def test_rows_stay_within_their_norm(tmp_path: Path) -> None:
    config = tiny(tmp_path / "run", model=ModelConfig("gru", 8, max_row_norm=0.5), optim=OptimConfig(lr=0.1))
    model = build_model(config)
    assert _largest_row(model) > 0.5
    train(config, quiet=True)
    model.load_state_dict(read_tensors(tmp_path / "run" / "final.safetensors", "weights")[0])
    assert _largest_row(model) <= 0.5 + 1e-6


def _largest_row(model: nn.Module) -> float:
    return max(float(p.detach().norm(dim=-1).max()) for p in recurrent_parameters(model))


def test_penalty_draws_factors_towards_unitarity(tmp_path: Path) -> None:
    model = ModelConfig("gru", 8, "kronecker")
    defects = []
    for penalty in (0.0, 10.0):
        config = tiny(tmp_path / str(penalty), model=model, optim=OptimConfig(lr=0.02, penalty=penalty))
        train(config, quiet=True)
        net: Any = build_model(config)
        net.load_state_dict(read_tensors(tmp_path / str(penalty) / "final.safetensors", "weights")[0])
        defects.append(float(net.rnn.penalty().detach()))
    assert defects[1] < 0.1 * defects[0]


def test_first_update_is_the_one_by_hand(tmp_path: Path) -> None:
    config = tiny(tmp_path / "run", optim=OptimConfig("sgd", 0.5, clip_value=1e-3, weight_decay=0.1), updates=1)
    train(config, quiet=True)
    final, _ = read_tensors(tmp_path / "run" / "final.safetensors", "weights")
    model, batch = build_model(config), config.task.samples("train", 0).fetch(first_indices(5))
    output, _ = model(batch.inputs, None, batch.lengths)
    total, weight = config.task.scores(output, batch)["loss"]
    (total / weight).backward()
    for name, p in model.named_parameters():
        assert p.grad is not None
        gradient = p.grad.clamp(-1e-3, 1e-3) + 0.1 * p.detach()
        torch.testing.assert_close(final[name], p.detach() - 0.5 * gradient)


def test_random_numbers_and_threads_of_the_caller_are_left_alone(tmp_path: Path) -> None:
    state, threads = torch.random.get_rng_state(), torch.get_num_threads()
    train(tiny(tmp_path / "run", updates=2, threads=2), quiet=True)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.get_num_threads() == threads


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"updates": 0}, "expected updates to be at least 1, got 0"),
    ({"batch_size": 2.5}, "expected batch_size to be an int, got 2.5"),
    ({"workers": -1}, "expected workers to be at least 0"),
    ({"bptt": 3, "model": ModelConfig("gru", 8, bidirectional=True)}, "expected bptt with one direction"),
    ({"restart_every": 3}, "expected restart_every only with bptt, got 3 without"),
    ({"bptt": 3, "restart_every": 0}, "expected restart_every to be at least 1, got 0"),
    ({"model": ModelConfig("gru", 8, "low-rank")}, "expected rank with structure low-rank"),
    ({"model": ModelConfig("gru", 0)}, "expected hidden_size to be at least 1"),
    ({"optim": OptimConfig(lr=-1)}, "expected lr to be positive, got -1"),
    ({"optim": OptimConfig(momentum=0.9)}, "expected momentum only with rmsprop or sgd, got momentum 0.9 with adam"),
    ({"optim": OptimConfig(schedule_every=5)}, "expected schedule_every only with step"),
    ({"optim": OptimConfig(scale_rate=10.0)}, "expected scale_rate only with weight_norm, got 10.0 without"),
    ({"optim": OptimConfig(clip_norm=float("nan"))}, "expected clip_norm to be finite"),
    ({"optim": OptimConfig("sgd", momentum=1.0)}, "expected momentum below 1, got 1.0"),
    ({"optim": OptimConfig(schedule="step", schedule_factor=2.0)}, "expected schedule_factor below 1, got 2.0"),
    ({"stop_at": float("nan")}, "expected stop_at to be finite"),
    ({"seed": 10**30}, "expected seed to be an integer of 64 bits"),
    ({"threads": 10**12}, "expected threads to be at most 1,024"),
    (
        {"model": ModelConfig("gru", 10**12)},
        "that fits into the memory, .* got 5 sequences of 12 steps through 1,000,000,000,000 units",
    ),
    ({"model": ModelConfig("gru", 300_000)}, "expected a net that fits into the memory, got 300,000 units"),
    ({"task": AddingTask(10**12)}, "expected a run that fits into the memory, .* sequences of 1,000,000,000,000 steps"),
    (
        {"task": AddingTask(10**9), "batch_size": 500},
        "got 500 sequences of 1,000,000,000 steps through 8 units, which take more than",
    ),
    ({"updates": 10**400}, "expected updates to be an integer of 64 bits, got a number of 1,329 bits"),
    ({"optim": OptimConfig(schedule="cosin")}, "expected schedule to be one of .*got 'cosin'; did you mean 'cosine'"),  # type: ignore[arg-type]
    ({"optim": OptimConfig("adamm")}, "expected optimizer to be one of .*got 'adamm'; did you mean 'adam'"),  # type: ignore[arg-type]
    ({"optim": OptimConfig("sgd", momentum="0.9")}, "expected momentum to be a number, got '0.9'"),  # type: ignore[arg-type]
    ({"optim": OptimConfig(max_recoveries=0.5)}, "expected max_recoveries to be an int, got 0.5"),  # type: ignore[arg-type]
    ({"model": ModelConfig("gru", 8, pooling="men")}, "expected pooling to be one of .*got 'men'; did you mean 'mean'"),  # type: ignore[arg-type]
    ({"workers": "2"}, "expected workers to be a number, got '2'"),
    ({"seed": 0.5}, "expected seed to be an int, got 0.5"),
    ({"dtype": "float16"}, "expected dtype to be float32 or float64"),
]


@pytest.mark.parametrize(("options", "message"), WRONG)
def test_impossible_settings_are_refused_before_any_work(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message) as error:
        train(tiny(tmp_path / "run", **options))
    assert not (tmp_path / "run").exists()
    assert isinstance(error.value, TrainingError)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("budget", "message"),
    [("10", "to be a number, got '10'"), (float("nan"), "to be finite, got nan"), (-1, "to be at least 0, got -1")],
)
def test_a_budget_is_a_number_of_seconds(budget: Any, message: str, tmp_path: Path) -> None:
    config = tiny(tmp_path / "run")
    calls: list[Callable[[], object]] = [
        lambda: train(config, budget=budget),
        lambda: train_in_memory(config, budget=budget),
        lambda: best_of([config], budget),
    ]
    for call in calls:
        with pytest.raises(ConfigError, match=f"expected budget {message}"):
            call()
    assert not (tmp_path / "run").exists()


def test_module_checks_too() -> None:
    with pytest.raises(ConfigError, match="expected updates"):
        SequenceModule(Config(EchoTask(), updates=0))
