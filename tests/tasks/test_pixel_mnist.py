"""Pixel MNIST against its definition, on the real images."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scoring import value

from real_data import needs_data
from slimrnn.data import DataError
from slimrnn.data.mnist import load_mnist
from slimrnn.tasks import PixelMnistTask
from slimrnn.training import Batch, Config, ModelConfig
from slimrnn.training.batches import Batches
from slimrnn.training.evaluation import EvaluationBatches
from slimrnn.training.run import train

PLAIN, PERMUTED = PixelMnistTask(), PixelMnistTask(permuted=True)


@needs_data
def test_a_sequence_is_an_image_row_by_row() -> None:
    indices = np.array([7, 54_999, 7])
    images, digits = load_mnist("train")
    batch = PLAIN.samples("train", 0).fetch(indices)
    assert tuple(batch.inputs.shape) == (784, 3, 1)
    assert batch.inputs.dtype == torch.float32
    pixels = torch.from_numpy(images[indices].reshape(3, 784)).T[..., None]
    assert torch.equal((batch.inputs * 255).round(), pixels.to(torch.float32))
    assert batch.inputs.min() == 0
    assert batch.inputs.max() <= 1
    assert batch.targets.tolist() == digits[indices].tolist()


@needs_data
def test_several_pixels_at_a_time() -> None:
    plain, rows = (PixelMnistTask(pixels_per_step=k).samples("train", 0).fetch(np.array([7, 8])) for k in (1, 28))
    assert tuple(rows.inputs.shape) == (28, 2, PixelMnistTask(pixels_per_step=28).input_size)
    assert torch.equal(rows.inputs.permute(1, 0, 2).flatten(1), plain.inputs[..., 0].T)
    with pytest.raises(ValueError, match="expected pixels_per_step to divide 784 pixels, got 5"):
        PixelMnistTask(pixels_per_step=5)


@needs_data
def test_splits_are_the_first_55000_the_last_5000_and_the_test_images() -> None:
    images, digits = load_mnist("train")
    assert [PLAIN.samples(split, 0).size for split in ("train", "valid", "test")] == [55_000, 5_000, 10_000]
    valid, test = (PLAIN.samples(split, 0).fetch(np.array([0, 4_999])) for split in ("valid", "test"))
    assert valid.targets.tolist() == digits[[55_000, 59_999]].tolist()
    assert float(valid.inputs[:, 1].sum()) == pytest.approx(images[59_999].sum() / 255, rel=1e-5)
    assert test.targets.tolist() == load_mnist("t10k")[1][[0, 4_999]].tolist()
    with pytest.raises(IndexError):
        PLAIN.samples("train", 0).fetch(np.array([55_000]))  # the first of the validation set


@needs_data
def test_a_permuted_sample_is_the_permuted_plain_one() -> None:
    indices = np.arange(50)
    plain, permuted = (task.samples("test", 0).fetch(indices) for task in (PLAIN, PERMUTED))
    order = np.array([int(torch.nonzero((plain.inputs == step).all((1, 2)))[0]) for step in permuted.inputs])
    assert torch.equal(plain.inputs[order], permuted.inputs)
    assert torch.equal(plain.inputs.sort(0).values, permuted.inputs.sort(0).values)
    assert torch.equal(plain.targets, permuted.targets)
    assert not torch.equal(plain.inputs, permuted.inputs)


@needs_data
def test_the_order_is_one_for_all_images_and_belongs_to_its_seed() -> None:
    samples = PERMUTED.samples("train", 0)
    first = samples.fetch(np.array([0])).inputs[:, 0, 0]
    assert torch.equal(first, samples.fetch(np.array([3, 0])).inputs[:, 1, 0])
    assert torch.equal(first, PERMUTED.samples("train", 5).fetch(np.array([0])).inputs[:, 0, 0])
    other = replace(PERMUTED, permutation_seed=1).samples("train", 0).fetch(np.array([0])).inputs[:, 0, 0]
    assert not torch.equal(first, other)
    inked = first[:40].nonzero()[:, 0]
    assert inked.tolist() == [9, 14, 31, 34]  # on every machine


def test_scores_of_known_outputs() -> None:
    output = torch.zeros(4, 10)
    output[0, 3] = output[1, 4] = 5.0
    batch = Batch(torch.zeros(784, 4, 1), torch.tensor([3, 5, 0, 1]))
    scores = PLAIN.scores(output, batch)
    right = math.log(math.exp(5) + 9) - 5
    assert value(scores["loss"]) == pytest.approx((right + right + 5 + 2 * math.log(10)) / 4)
    assert value(scores["accuracy"]) == 0.5  # the right one, and the tie that goes to the first class
    assert PLAIN.baselines == {"guessing": math.log(10)}


@needs_data
def test_an_epoch_is_all_training_images_in_a_new_order() -> None:
    batches = Batches(PLAIN.samples("train", 0), 20, updates=5_500)
    first, second = (np.concatenate([batches.indices(k + e * 2_750) for k in range(2_750)]) for e in (0, 1))
    assert np.array_equal(np.sort(first), np.arange(55_000))
    assert np.array_equal(np.sort(second), np.arange(55_000))
    assert not np.array_equal(first, second)


@needs_data
def test_evaluations_take_no_more_images_than_there_are() -> None:
    config = Config(PLAIN, ModelConfig("gru", 4), valid_size=20_000)
    assert sum(batch.inputs.shape[1] for batch in EvaluationBatches(config, "valid", 20_000)) == 5_000


@needs_data
def test_a_part_of_a_set_is_evenly_spread_over_it() -> None:
    """The first half of the test file is harder than the second."""
    batches = EvaluationBatches(Config(PLAIN, ModelConfig("gru", 4)), "test", 2_500)
    assert np.array_equal(
        np.sort(np.concatenate([indices for indices, _, _ in batches.batches])), np.arange(0, 10_000, 4)
    )


@needs_data
def test_a_tiny_net_trains(tmp_path: Path) -> None:
    config = Config(
        PERMUTED,
        ModelConfig("gru", 4, "low-rank", rank=2),
        updates=3,
        batch_size=4,
        valid_size=6,
        test_size=8,
        eval_every=3,
        checkpoint_every=3,
        threads=1,
        out=tmp_path / "run",
        tensorboard=False,
    )
    result = train(config, quiet=True)
    assert result.updates == 3
    assert result.final["test"]["loss"] == pytest.approx(math.log(10), abs=0.5)
    assert result.final["test"]["accuracy"] in [n / 8 for n in range(9)]


def test_without_data_training_is_refused_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLIMRNN_DATA", str(tmp_path))
    with pytest.raises(DataError, match="put it there, or run slimrnn data get mnist"):
        train(Config(PLAIN, out=tmp_path / "run"), quiet=True)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"permutation_seed": 3}, "expected permutation_seed only with permuted, got 3"),
        ({"permuted": True, "permutation_seed": 1.5}, "expected permutation_seed to be an int, got 1.5"),
    ],
)
def test_bad_options_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        PixelMnistTask(**options)  # type: ignore[arg-type]
