"""Optimizers, rates and clipping."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import LambdaLR

from slimrnn.layers.parameter_groups import recurrent_parameters
from slimrnn.training import ModelConfig, OptimConfig, SequenceModel
from slimrnn.training.optim import RMSprop, build_optimizer, clip_gradients_, freeze_recurrent_, gradient_norm
from slimrnn.training.rates import Rate, refresh_rate_


def _parameter(seed: int = 0) -> nn.Parameter:
    return nn.Parameter(torch.randn(3, 4, generator=torch.Generator().manual_seed(seed)))


def _gradient(step: int) -> Tensor:
    return torch.randn(3, 4, generator=torch.Generator().manual_seed(100 + step))


@pytest.mark.parametrize("momentum", [0.0, 0.5])
def test_rmsprop_from_zero_is_torchs(momentum: float) -> None:
    ours, torchs = _parameter(), _parameter()
    pairs = [
        (ours, RMSprop([ours], lr=0.1, alpha=0.9, momentum=momentum)),
        (torchs, torch.optim.RMSprop([torchs], lr=0.1, alpha=0.9, momentum=momentum)),
    ]
    for step in range(5):
        for p, optimizer in pairs:
            p.grad = _gradient(step)
            optimizer.step()
    assert torch.equal(ours, torchs)


@pytest.mark.parametrize("eps_inside", [False, True])
def test_rmsprop_starts_where_it_is_told(eps_inside: bool) -> None:
    p = _parameter()
    optimizer = RMSprop([p], lr=0.1, alpha=0.9, eps=1e-2, accumulator_start=1e-3, eps_inside=eps_inside)
    weight, mean = p.detach().clone(), torch.full_like(p, 1e-3)
    for step in range(5):
        p.grad = _gradient(step)
        optimizer.step()
        mean = 0.9 * mean + 0.1 * _gradient(step) ** 2
        weight = weight - 0.1 * _gradient(step) / ((mean + 1e-2).sqrt() if eps_inside else mean.sqrt() + 1e-2)
    torch.testing.assert_close(p.detach(), weight)


@pytest.mark.parametrize("options", [{}, {"momentum": 0.5}, {"weight_decay": 0.1}])
def test_where_eps_is_makes_no_difference_when_it_is_zero(options: dict[str, float]) -> None:
    results = []
    for inside in (False, True):
        p = _parameter()
        optimizer = RMSprop([p], lr=0.1, alpha=0.9, eps=0.0, accumulator_start=1e-3, eps_inside=inside, **options)
        for step in range(5):
            p.grad = _gradient(step)
            optimizer.step()
        results.append(p.detach())
    torch.testing.assert_close(*results)


def test_recurrent_matrices_have_a_rate_of_their_own() -> None:
    model = SequenceModel(2, 1, ModelConfig("gru", 8), every_step=False)
    optimizer = build_optimizer(model, OptimConfig("sgd", 0.5, recurrent_rate=0.1))
    rates = {id(p): group["lr"] for group in optimizer.param_groups for p in group["params"]}
    recurrent = {id(p) for p in recurrent_parameters(model)}
    assert rates == {id(p): 0.5 * (0.1 if id(p) in recurrent else 1) for p in model.parameters()}


def test_scales_of_weight_normalisation_may_have_a_rate_of_their_own() -> None:
    net = ModelConfig("gru", 8, "low-rank+diagonal", rank=2, weight_norm=True)
    model = SequenceModel(2, 1, net, every_step=False)
    optimizer = build_optimizer(model, OptimConfig("sgd", 0.5, recurrent_rate=0.1, scale_rate=10))
    rates = {id(p): group["lr"] for group in optimizer.param_groups for p in group["params"]}
    found = {name: rates[id(p)] for name, p in model.named_parameters()}
    fast = {name for name, rate in found.items() if rate == 5.0}
    assert {name.split(".")[-1] for name in fast} == {"weight_scale"}  # of the input matrices
    (left,) = (name for name in found if name.endswith("left_scale"))
    assert found[left] == pytest.approx(0.5)  # of a recurrent one: ten times a tenth
    assert found[left.removesuffix("_scale")] == pytest.approx(0.05)
    assert len(build_optimizer(model, OptimConfig("sgd", 0.5)).param_groups) == 2


@pytest.mark.parametrize("name", ["rmsprop", "adam", "adamw", "adagrad", "sgd"])
def test_every_optimizer_moves_what_is_not_frozen(name: str) -> None:
    model = SequenceModel(2, 1, ModelConfig("gru", 8), every_step=False)
    freeze_recurrent_(model)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    optimizer = build_optimizer(model, OptimConfig(name))  # type: ignore[arg-type]
    model(torch.randn(5, 3, 2))[0].sum().backward()
    optimizer.step()
    frozen = {id(p) for p in recurrent_parameters(model)}
    for name, p in model.named_parameters():
        assert torch.equal(p, before[name]) == (id(p) in frozen)


def test_schedules() -> None:
    cosine = Rate(OptimConfig(schedule="cosine"), 100)
    assert [cosine(0), cosine(50), cosine(100)] == pytest.approx([1, 0.5, 0])
    step = Rate(OptimConfig(schedule="step", schedule_every=10, schedule_factor=0.1), 100)
    assert [step(9), step(10), step(25)] == pytest.approx([1, 0.1, 0.01])
    constant = Rate(OptimConfig(), 100)
    assert [constant(0), constant(1000)] == [1, 1]


def test_plateau_waits_and_reduces() -> None:
    rate = Rate(OptimConfig(schedule="plateau", schedule_patience=2, schedule_factor=0.5), 100)
    factors = []
    for score in (3.0, 2.0, 2.0, 2.5, 1.9, math.nan, 1.9, 1.9, 1.9):
        rate.observe(score)
        factors.append(rate(0))
    assert factors == [1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25, 0.125]


def test_plateau_of_a_score_that_should_rise() -> None:
    rate = Rate(OptimConfig(schedule="plateau", schedule_patience=1, schedule_factor=0.5), 100, lower_is_better=False)
    for score in (0.1, 0.2, 0.3):
        rate.observe(score)
    assert rate(0) == 1
    rate.observe(0.2)
    assert rate(0) == 0.5


def test_changed_scale_holds_from_the_next_update() -> None:
    p, rate = _parameter(), Rate(OptimConfig(), 100)
    optimizer = torch.optim.SGD([p], lr=0.5)
    scheduler = LambdaLR(optimizer, rate)
    rate.halve()
    refresh_rate_(scheduler)
    assert optimizer.param_groups[0]["lr"] == 0.25


def test_rate_is_saved_with_the_scheduler() -> None:
    def make() -> LambdaLR:
        return LambdaLR(torch.optim.SGD([_parameter()], lr=1.0), Rate(OptimConfig(schedule="plateau"), 100))

    first, second = make(), make()
    first.lr_lambdas[0].halve()  # type: ignore[attr-defined]
    second.load_state_dict(first.state_dict())
    assert second.lr_lambdas[0](0) == 0.5


def test_clip_by_value_then_by_norm() -> None:
    p = _parameter()
    for optim, expected in [
        (OptimConfig(clip_value=0.5), _gradient(0).clamp(-0.5, 0.5)),
        (OptimConfig(clip_norm=0.5), _gradient(0) * 0.5 / _gradient(0).norm()),
        (OptimConfig(clip_norm=100.0), _gradient(0)),
        (
            OptimConfig(clip_value=0.5, clip_norm=1.0),
            _gradient(0).clamp(-0.5, 0.5) / _gradient(0).clamp(-0.5, 0.5).norm(),
        ),
    ]:
        p.grad = _gradient(0)
        clip_gradients_([p], gradient_norm([p.grad]), optim)
        torch.testing.assert_close(p.grad, expected, rtol=1e-5, atol=1e-6)


def test_norm_of_large_numbers_is_finite_and_of_nan_is_not() -> None:
    assert gradient_norm([torch.tensor([1e30, 1e30])]) == pytest.approx(math.sqrt(2) * 1e30)
    assert not gradient_norm([torch.tensor([1.0]), torch.tensor([math.nan])]).isfinite()
    assert not gradient_norm([torch.tensor([math.inf])]).isfinite()


def test_clipping_by_norm_survives_numbers_whose_squares_overflow() -> None:
    p = nn.Parameter(torch.zeros(2))
    p.grad = torch.tensor([3e30, 4e30])
    clip_gradients_([p], gradient_norm([p.grad]), OptimConfig(clip_norm=1.0))
    torch.testing.assert_close(p.grad, torch.tensor([0.6, 0.8]))
