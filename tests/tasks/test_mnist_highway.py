"""MNIST as vectors for highway layers, against its definition, on the real images."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scoring import value

from real_data import needs_data
from slimrnn import LowRank
from slimrnn.cli import main
from slimrnn.data.mnist import load_mnist
from slimrnn.tasks import MnistHighwayTask, PixelMnistTask
from slimrnn.training import Batch, Config, ConfigError, ModelConfig, OptimConfig
from slimrnn.training.checks import build_model, check
from slimrnn.training.models.highway_model import HighwayModel
from slimrnn.training.nets import WEIGHTS
from slimrnn.training.run import evaluate, resume, train
from slimrnn.training.run_files import read_tensors

TASK = MnistHighwayTask()
NET = ModelConfig("highway", 8, "low-rank", rank=2, layers=2, nonlinearity="relu", dropout=0.3)
CONFIG = Config(
    replace(TASK, input_dropout=0.2, output_dropout=0.5),
    NET,
    OptimConfig(lr=1e-2),
    updates=6,
    batch_size=20,
    valid_size=50,
    test_size=40,
    eval_every=3,
    checkpoint_every=3,
    threads=1,
    tensorboard=False,
)


def some_batch(size: int) -> Batch:
    return Batch(torch.rand(1, size, 784), torch.arange(size) % 10)


@needs_data
def test_a_sample_is_an_image_in_one_step() -> None:
    indices = np.array([7, 54_999, 7])
    images, digits = load_mnist("train")
    batch = TASK.samples("train", 0).fetch(indices)
    assert tuple(batch.inputs.shape) == (1, 3, 784)
    assert batch.inputs.dtype == torch.float32
    assert torch.equal((batch.inputs[0] * 255).round(), torch.from_numpy(images[indices].reshape(3, 784)).float())
    assert batch.inputs.max() == 1
    assert batch.targets.tolist() == digits[indices].tolist()


@needs_data
def test_splits_are_those_of_pixel_mnist() -> None:
    for split, size in (("train", 55_000), ("valid", 5_000), ("test", 10_000)):
        ours, pixels = (task.samples(split, 0) for task in (TASK, PixelMnistTask()))
        assert ours.size == pixels.size == size
        last = np.array([size - 1])
        assert torch.equal(ours.fetch(last).inputs[0, 0], pixels.fetch(last).inputs[:, 0, 0])
        assert torch.equal(ours.fetch(last).targets, pixels.fetch(last).targets)


def test_scores_of_known_outputs() -> None:
    output = torch.full((3, 10), -1.0)
    output[0, 3] = 1.0  # all right, to the margin
    output[1, 4], output[1, 5] = 0.5, 0.25  # wrong: (1 + 0.5)² + (1 − 0.25)²
    output[2, 0] = 2.0  # beyond the margin costs nothing
    scores = TASK.scores(output, Batch(torch.zeros(1, 3, 784), torch.tensor([3, 5, 0])))
    assert value(scores["loss"]) == pytest.approx((0 + 2.25 + 0.5625 + 0) / 3)
    assert value(scores["accuracy"]) == pytest.approx(2 / 3)


def test_guessing_is_the_best_constant() -> None:
    batch = some_batch(10)
    losses = [value(TASK.scores(torch.full((10, 10), o), batch)["loss"]) for o in (-0.9, -0.8, -0.7)]
    assert min(losses) == losses[1] == pytest.approx(TASK.baselines["guessing"]) == pytest.approx(3.6)


def test_l2_counts_in_training_only() -> None:
    task = replace(TASK, l2=0.1)
    model, batch = task.model(NET), some_batch(12)
    assert isinstance(model, HighwayModel)
    torch.manual_seed(0)  # of the dropout
    plain = replace(task, l2=0.0).run(model, batch)[0].scores["loss"]
    torch.manual_seed(0)
    regular = task.run(model, batch)[0].scores["loss"]
    assert regular.weight == plain.weight == 12
    more = (regular.total - plain.total) / 12
    torch.testing.assert_close(more, 0.1 * model.readout.weight.square().sum(), atol=1e-4, rtol=1e-4)
    (gradient,) = torch.autograd.grad(more, model.readout.weight)
    torch.testing.assert_close(gradient, 0.2 * model.readout.weight, atol=1e-4, rtol=1e-4)
    model.eval()
    with torch.no_grad():
        outcome, _ = task.run(model, batch)
        assert value(outcome.scores["loss"]) == value(task.scores(model(batch.inputs)[0], batch)["loss"])
    with pytest.raises(TypeError, match="expected a net with a linear readout for l2, got _WithoutReadOut"):
        task.run(_WithoutReadOut(), batch)


class _WithoutReadOut(torch.nn.Identity):
    def forward(self, inputs: torch.Tensor, *_: Any) -> Any:
        return inputs[0, :, :10], None


def test_the_net_is_dense_highway_dense() -> None:
    torch.manual_seed(0)
    task = replace(TASK, batch_norm=False)
    model = task.model(replace(NET, dropout=0.0)).double()
    assert isinstance(model, HighwayModel)
    x = torch.rand(1, 5, 784, dtype=torch.float64)
    hidden = (x[0] @ model.input.weight.T + model.input.bias).relu()
    expected = model.highway(hidden) @ model.readout.weight.T + model.readout.bias
    torch.testing.assert_close(model(x)[0], expected)
    assert model.highway.structure == LowRank(2)
    assert not any(isinstance(part, torch.nn.BatchNorm1d) for part in model.modules())
    with pytest.raises(ValueError, match="expected inputs of one step for a net without recurrence, got 3"):
        model(torch.zeros(3, 5, 784, dtype=torch.float64))


def test_pixels_and_outputs_are_dropped() -> None:
    for options in ({"input_dropout": 0.5}, {"output_dropout": 0.5}):
        model, x = replace(TASK, **options).model(replace(NET, dropout=0.0)), torch.rand(1, 5, 784)  # type: ignore[arg-type]
        assert not torch.equal(model(x)[0], model(x)[0])
        assert torch.equal(model.eval()(x)[0], model(x)[0])


@needs_data
def test_a_stopped_run_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    """Running means of the batch normalisation and dropout included."""
    whole = train(replace(CONFIG, out=tmp_path / "whole"), quiet=True)
    half = replace(CONFIG, updates=3, out=tmp_path / "parts")
    train(half, quiet=True)
    parts = resume(tmp_path / "parts", replace(half, updates=6), quiet=True)
    assert parts.final == whole.final
    first, second = (read_tensors(tmp_path / run / "final.safetensors", WEIGHTS)[0] for run in ("whole", "parts"))
    assert any("running_mean" in name for name in first)
    assert all(torch.equal(tensor, second[name]) for name, tensor in first.items())
    scores = evaluate(tmp_path / "whole", replace(CONFIG, out=tmp_path / "whole"), "final")
    assert scores == whole.final
    assert 0.3 < scores["test"]["loss"] < 100


@needs_data
def test_commands_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "run")
    small = ["--updates=40", "--batch-size=50", "--valid-size=200", "--eval-every=40", "--threads=1"]
    net = ["--model.hidden=32", "--optim.lr=1e-2", "--no-tensorboard", "--out", out]
    assert main(["train", "mnist-highway", *small, *net]) == 0
    assert main(["eval", out]) == 0
    test = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("test"))
    assert float(test.split()[2]) > 0.7  # of ten digits
    assert main(["params", "mnist-highway", "--model.structure=low-rank", "--model.rank=8", "--budget=10000"]) == 0
    said = capsys.readouterr().out
    assert "10,000 parameters of highway layers: largest state 277" in said  # n (4 · 8 + 4)
    assert "highway.layers.0  LowRank(8)" in said


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cell": "gru"}, "expected cell highway for a net without recurrence, got gru"),
        ({"bidirectional": True}, "expected bidirectional only with recurrent layers, got bidirectional True with"),
        ({"recurrent_dropout": 0.1}, "expected recurrent_dropout only with recurrent layers, got"),
        ({"learn_initial_state": True}, "expected learn_initial_state only with recurrent layers"),
        ({"weight_norm": True}, "expected weight_norm only with recurrent layers"),
        ({"update_bias": 1.0}, "expected update_bias only with recurrent layers"),
        ({"input_structure": "diagonal"}, "expected input_structure only with recurrent layers"),
        ({"backend": "native"}, "expected backend only with recurrent layers, got backend native with highway"),
        ({"nonlinearity": "modrelu"}, "expected nonlinearity to be one of 'relu', 'tanh', got 'modrelu'"),
        ({"blocks": 2}, "expected blocks only with block-diagonal, got blocks 2 with dense, low-rank"),
        ({"rank": 9}, "expected a rank of at most 8"),
    ],
)
def test_what_does_not_belong_to_the_net_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build_model(replace(CONFIG, model=replace(NET, **options)))


@needs_data
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"devices": 2}, "expected one process with batch_norm, which needs the whole batch, got 2 devices"),
        ({"batch_size": 1}, "expected batch_size of at least 2 with batch_norm, got 1"),
        ({"optim": OptimConfig(penalty=0.5)}, "expected penalty 0 without recurrent matrices, got 0.5"),
        ({"optim": OptimConfig(recurrent_rate=0.0)}, "expected recurrent_rate 1 without recurrent matrices, got 0.0"),
        ({"bptt": 5}, "expected bptt with an output at every step"),
    ],
)
def test_what_does_not_belong_to_the_run_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check(replace(CONFIG, **options))


def test_highway_layers_are_for_this_task_only() -> None:
    with pytest.raises(ConfigError, match=r"expected a cell of rnn, gru, lstm, .* got 'highway'"):
        build_model(Config(PixelMnistTask(), ModelConfig("highway")))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"l2": -1.0}, "expected l2 to be at least 0, got -1.0"),
        ({"l2": math.inf}, "expected l2 to be finite, got inf"),
        ({"transform_bias": "low"}, "expected transform_bias to be a number, got 'low'"),
        ({"input_dropout": 1.2}, r"expected input_dropout in \[0, 1\], got 1.2"),
        ({"output_dropout": -0.1}, r"expected output_dropout in \[0, 1\], got -0.1"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        MnistHighwayTask(**options)
