"""The functions that define int8 layers' bits: near the true values, within their bounds, and never falling."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from slimrnn.exporting.int8 import exact

GRID = torch.cat([torch.linspace(-100, 100, 400_001), torch.logspace(-40, 2, 50_001), -torch.logspace(-40, 2, 50_001)])
INSIDE = torch.linspace(-8, 8, 400_001)


def ulps(found: Tensor, x: Tensor, function: Callable[[Tensor], Tensor]) -> float:
    """The largest distance from the true value, in units of its last place."""
    true = function(x.double())
    place = torch.from_numpy(np.spacing(true.float().abs().numpy())).double()
    return float(((found.double() - true).abs() / place).max())


def softplus(x: Tensor) -> Tensor:
    return torch.logaddexp(x, torch.zeros_like(x))


@pytest.mark.parametrize(
    ("ours", "true", "x", "most"),
    [
        (exact.tanh, torch.tanh, GRID, 4),
        (exact.sigmoid, torch.sigmoid, GRID[GRID > -80], 4),
        (exact.exp, torch.exp, GRID[GRID.abs() < 80], 3),
        (exact.log, torch.log, torch.logspace(-37, 37, 300_001), 3),
        (exact.softplus, softplus, GRID[GRID > -80], 6),
    ],
)
def test_functions_are_accurate_to_a_few_units(
    ours: Callable[[Tensor], Tensor], true: Callable[[Tensor], Tensor], x: Tensor, most: int
) -> None:
    assert ulps(ours(x), x, true) <= most


@pytest.mark.parametrize("function", [exact.tanh, exact.sigmoid])
def test_gates_do_not_fall_and_stay_within_their_bounds(function: Callable[[Tensor], Tensor]) -> None:
    y = function(GRID.sort().values)
    assert bool((y.abs() <= 1).all())
    steps = y.diff()
    assert float(steps.min()) >= -2e-7  # the last place of a number near one, twice
    coarse = function(INSIDE[::100]).diff()
    assert bool((coarse[:1000] >= 0).all())


def test_special_numbers() -> None:
    x = torch.tensor([0.0, torch.inf, -torch.inf, torch.nan])
    assert exact.tanh(x)[:3].tolist() == [0, 1, -1]
    assert exact.sigmoid(x)[:3].tolist() == [0.5, 1, 0]
    assert exact.exp(x)[:3].tolist() == [1, torch.inf, 0]
    assert exact.log(x)[:2].tolist() == [-torch.inf, torch.inf]
    for function in (exact.tanh, exact.sigmoid, exact.exp, exact.log, exact.softplus):
        assert bool(function(x)[3].isnan())


def test_literals_of_c_are_the_constants() -> None:
    for value in (exact.LOG2_E, exact.LN2_LOW, exact.EXP_4, exact.LOG_3, exact.SIGMOID_LOW):
        assert float.fromhex(exact.hexadecimal(value).removesuffix("f")) == value == float(np.float32(value))
