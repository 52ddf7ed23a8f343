"""The softmax over all items, and its estimate from some."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from slimrnn.tasks import sampled_softmax
from slimrnn.tasks.sampled_softmax import Candidates, Sampler, log_uniform, softmax_loss, unigram

ITEMS, WIDTH, POSITIONS = 7, 3, 10


@pytest.fixture(params=[2**24, 14, 1], ids=["one block", "blocks of two rows", "row by row"])
def blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampled_softmax, "BLOCK_SIZE", request.param)


def problem() -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Rows, targets, weights, matrix and bias."""
    torch.manual_seed(0)
    rows = torch.randn(POSITIONS, WIDTH, dtype=torch.float64, requires_grad=True)
    matrix = torch.randn(ITEMS, WIDTH, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(ITEMS, dtype=torch.float64, requires_grad=True)
    targets, weights = torch.randint(ITEMS, (POSITIONS,)), torch.rand(POSITIONS, dtype=torch.float64)
    return rows, targets, weights, matrix, bias


def definition(rows: Tensor, targets: Tensor, weights: Tensor, matrix: Tensor, bias: Tensor) -> Tensor:
    return (functional.cross_entropy(rows @ matrix.T + bias, targets, reduction="none") * weights).sum()


def gradients(loss: Tensor, *parameters: Tensor) -> list[Tensor]:
    return list(torch.autograd.grad(loss, parameters))


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize(
    "candidates", [None, Candidates(torch.randperm(ITEMS), torch.zeros(ITEMS))], ids=["all", "drawn"]
)
def test_all_items_as_candidates_are_the_full_softmax(candidates: Candidates | None) -> None:
    rows, targets, weights, matrix, bias = problem()
    ours = softmax_loss(rows, targets, weights, matrix, bias, candidates)
    expected = definition(rows, targets, weights, matrix, bias)
    torch.testing.assert_close(ours, expected, rtol=1e-12, atol=0)
    for found, right in zip(
        gradients(3 * ours, rows, matrix, bias), gradients(3 * expected, rows, matrix, bias), strict=True
    ):
        torch.testing.assert_close(found, right, rtol=1e-10, atol=1e-12)


@pytest.mark.usefixtures("blocks")
def test_gradients_are_those_of_finite_differences() -> None:
    rows, targets, weights, matrix, bias = problem()
    candidates = Candidates(torch.tensor([5, 0, 3]), torch.tensor([0.3, -1.0, 0.7]))
    assert set(targets.tolist()) & {5, 0, 3}  # some are drawn, ...
    assert set(targets.tolist()) - {5, 0, 3}  # ... and some are not

    def loss(rows: Tensor, matrix: Tensor, bias: Tensor) -> Tensor:
        return softmax_loss(rows, targets, weights, matrix, bias, candidates)

    assert torch.autograd.gradcheck(loss, (rows, matrix, bias))


def test_the_estimated_partition_function_is_right_on_average() -> None:
    """Over all ways to draw three of four items, with their probabilities."""
    probabilities = np.array([0.1, 0.2, 0.3, 0.4])
    sampler = Sampler(probabilities, 3)
    scores = torch.tensor([0.5, -1.0, 2.0, 0.1], dtype=torch.float64)
    one, target = torch.ones(1, dtype=torch.float64), torch.tensor([2])
    mean = 0.0
    for drawn in itertools.product(range(4), repeat=3):
        items, times = torch.tensor(drawn).unique(return_counts=True)
        candidates = Candidates(items, times.double().log() - sampler.log_expected_V[items])
        loss = softmax_loss(one[:, None], target, one, scores[:, None], torch.zeros_like(scores), candidates)
        mean += float(np.prod(probabilities[list(drawn)])) * float((loss + scores[2]).exp())
    assert mean == pytest.approx(float(scores.exp().sum()), rel=1e-12)


def test_items_are_drawn_as_often_as_their_probabilities_say() -> None:
    torch.manual_seed(0)
    probabilities = np.array([0.05, 0.25, 0.7])
    sampler = Sampler(probabilities, 20_000)
    items, corrections = sampler.draw()
    expected = torch.from_numpy(probabilities * 20_000)
    times = (corrections + sampler.log_expected_V[items]).exp()
    assert items.tolist() == [0, 1, 2]
    assert float(times.sum()) == pytest.approx(20_000)
    assert ((times - expected).abs() < 5 * expected.sqrt()).all()


def test_draws_follow_the_global_random_numbers() -> None:
    sampler = Sampler(unigram(np.arange(50)), 10)
    drawn = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        drawn.append(sampler.draw().items_C.tolist())
    assert drawn[0] == drawn[1] != drawn[2]


@pytest.mark.parametrize("distribution", [unigram, log_uniform])
def test_frequent_items_are_likelier_and_all_are_possible(distribution: object) -> None:
    assert callable(distribution)
    chances = distribution(np.array([0, 9, 3, 30]))
    assert chances.sum() == pytest.approx(1)
    assert chances.argsort().tolist() == [0, 2, 1, 3]
    assert chances.min() > 0


def test_log_uniform_is_zipfs_law() -> None:
    expected = [np.log(2 / 1), np.log(3 / 2), np.log(4 / 3)] / np.log(4)
    assert log_uniform(np.array([7, 2, 1])) == pytest.approx(expected)
