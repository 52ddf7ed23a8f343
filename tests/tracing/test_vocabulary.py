"""Every operation of the vocabulary, in cells of one line: native = reference, outputs and all gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from both_backends import LENGTHS, cell_of, check, found, layer_with, on
from small_cells import CELLS
from torch import nn
from torch.nn import functional as F

from registry import needs_library, numbers
from slimrnn import Recurrent

pytestmark = needs_library

# --- pointwise functions, where they are smooth and where they are not ----------------------------------------------

EDGES = [-25.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 19.75, 20.0, 20.25, 25.0]
POSITIVE = [0.25, 0.5, 1.0, 1.5, 2.0, 9.0]
SMALL = [-3.0, -1.0, -0.25, 0.0, 0.25, 1.0, 3.0]

ANY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "add of a multiple": lambda a, b: torch.add(a, b, alpha=3) + a.add(1.5) + torch.add(a, 2, alpha=2),
    "sub": lambda a, b: a - b + (1 - a),
    "sub of a multiple": lambda a, b: torch.sub(a, b, alpha=0.5) - torch.subtract(b, a) * 2,
    "mul": lambda a, b: a * b * 0.5 + 2 * torch.multiply(a, b),
    "neg": lambda a, b: -a + torch.negative(b).neg(),
    "sigmoid": lambda a, b: torch.sigmoid(a) * F.sigmoid(b),
    "tanh": lambda a, b: torch.tanh(a) + F.tanh(b).square(),
    "abs": lambda a, b: abs(a) + torch.abs(b) * 3,
    "sign": lambda a, b: torch.sign(a) * b + torch.sgn(b) * a,
    "relu": lambda a, b: torch.relu(a) + F.relu(b) * 2,
    "maximum": lambda a, b: torch.maximum(a, b),
    "minimum": lambda a, b: torch.minimum(a, b),
    "where gt": lambda a, b: torch.where(a > b, a * a, b),
    "where lt": lambda a, b: torch.where(a < 1, a, 3.0),
    "where ge": lambda a, b: torch.where(torch.ge(a, b), 0.5, b * a),
    "where le": lambda a, b: torch.where(a.le(b), a, b * b),
    "where eq": lambda a, b: torch.where(torch.eq(a, b), a * 3, b) + torch.where(a == b, a, 0.0),
    "where of the tensor": lambda a, b: a.where(a > 0, b),
    "comparison times a number": lambda a, b: (a > 0) * b + b * (a <= b),
    "clamp": lambda a, b: torch.clamp(a, -1, 2) + b.clamp(min=0.5) * 2 + torch.clip(b, max=1.0),
    "hardtanh": lambda a, b: F.hardtanh(a) + F.hardtanh(b, -0.5, 2.0),
    "softplus": lambda a, b: F.softplus(a) + F.softplus(b, 2.0, 10.0) + F.softplus(b, beta=0.5),
    "logsigmoid": lambda a, b: F.logsigmoid(a) - F.logsigmoid(-b),
    "silu": lambda a, b: F.silu(a) + b * 0,
    "softsign": lambda a, b: F.softsign(a) * b,
    "leaky_relu": lambda a, b: F.leaky_relu(a) + F.leaky_relu(b, 0.2) + F.leaky_relu(b, negative_slope=0.3),
    "lerp": lambda a, b: torch.lerp(a, b, 0.3) + a.lerp(b, torch.sigmoid(a)),
    "addcmul": lambda a, b: torch.addcmul(a, a, b, value=0.5) + torch.addcmul(b, b, b),
    "whole powers": lambda a, b: a**2 + 0.1 * torch.pow(b, 3) + a.pow(1) + b**0,
    "same": lambda a, b: a.clone() + b.contiguous(),
    "modules": lambda a, b: nn.Tanh()(a) + nn.ReLU()(b) + nn.SiLU()(b) + nn.Softplus()(a) + nn.Sigmoid()(a),
    "doubled": lambda a, b: (a + b) * (a + b) - (a + b),
}
OF_POSITIVE: dict[str, Callable[[Any, Any], Any]] = {
    "div": lambda a, b: a / b + torch.div(b, 3) + torch.divide(b, a) + 2 / b,
    "reciprocal": lambda a, b: torch.reciprocal(a) * b.reciprocal(),
    "log": lambda a, b: torch.log(a) * b.log(),
    "log1p": lambda a, b: torch.log1p(a) - b,
    "sqrt": lambda a, b: torch.sqrt(a) + b.sqrt(),
    "rsqrt": lambda a, b: torch.rsqrt(a) - b,
    "powers": lambda a, b: a**0.5 + b**1.5 + a**-2 + b**-0.5 + a.pow(2.5),
}
OF_SMALL: dict[str, Callable[[Any, Any], Any]] = {
    "exp": lambda a, b: torch.exp(a) * b + b.exp(),
    "expm1": lambda a, b: torch.expm1(a) + b,
    "half powers at zero": lambda a, b: abs(a) ** 1.5 + torch.relu(b) ** 2.5,
}
GRIDS = [(ANY, EDGES), (OF_POSITIVE, POSITIVE), (OF_SMALL, SMALL)]
FUNCTIONS = [pytest.param(f, grid, id=name) for functions, grid in GRIDS for name, f in functions.items()]


@pytest.mark.parametrize(("f", "grid"), FUNCTIONS)
def test_functions_of_exact_numbers(f: Callable[[Any, Any], Any], grid: list[float]) -> None:
    """All pairs of a grid, ties and edges among them: the input product is the input itself."""

    def step(cell: Any, wx: Any, matvec: Any, state: Any) -> Any:
        return (f(*wx.unbind(-2)) + 0.1 * state[0],)

    width = len(grid)
    layer = layer_with(cell_of(step, gates=2, matrices=0), width, input_size=2 * width, bias=False)
    with torch.no_grad():
        layer.get_parameter("input.weight").copy_(torch.eye(2 * width).reshape(2, width, 2 * width))
    a = torch.tensor(grid, dtype=torch.float64)
    shifted = torch.stack([a.roll(k) for k in range(width)])
    x = torch.cat([a.expand(width, -1), shifted], -1)
    check(layer, x.reshape(2, -1, 2 * width) if width % 2 == 0 else x[None])
    assert found(layer.cell).native.code < 0


# --- what a step is made of -----------------------------------------------------------------------------------------

VARIANTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {  # options of the layer, and of the call
    "plain": ({}, {}),
    "ragged": ({}, {"lengths": LENGTHS}),
    "reversed": ({}, {"reverse": True, "lengths": LENGTHS}),
    "masks": ({"recurrent_dropout": 0.4}, {}),
    "leak": ({"leak": 0.3}, {"lengths": LENGTHS}),
    "deep": ({"transition_depth": 2}, {"lengths": LENGTHS, "reverse": True}),
    "one unit": ({"width": 1}, {"lengths": LENGTHS}),
    "13 units": ({"width": 13}, {}),
    "150 units": ({"width": 150, "leak": 0.2}, {}),
}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("cell", CELLS)
def test_cells(cell: str, variant: str) -> None:
    (step, sizes), (options, call) = CELLS[cell], VARIANTS[variant]
    check(layer_with(cell_of(step, **sizes), **options), None, None, **call)


def test_two_directions_and_layers_at_once() -> None:
    step, sizes = CELLS["ranges"]
    stack = Recurrent(cell_of(step, **sizes), 3, 5, 2, bidirectional=True, dtype=torch.float64)
    x = numbers(4, 3, 3)
    results = []
    for backend in ("native", "reference"):
        for k in range(len(stack.layers)):
            stack.layer(k).backend = backend
        results.append(stack(x, lengths=LENGTHS)[0])
    torch.testing.assert_close(*results, rtol=0, atol=1e-11)


@pytest.mark.parametrize("cell", ["layer_norm of gates", "8 states", "overlapping ranges"])
def test_threads_change_nothing(cell: str) -> None:
    step, sizes = CELLS[cell]
    layer, x = layer_with(cell_of(step, **sizes)), numbers(3, 40, 3)
    state = tuple(numbers(40, 5) for _ in range(layer.cell.states))
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        found.append(on("native", layer, x, state))
    torch.set_num_threads(1)
    for name in ("output", "last 0"):
        assert torch.equal(found[0][name], found[1][name])
    for name, value in found[0].items():
        torch.testing.assert_close(found[1][name], value, rtol=0, atol=1e-11)


@pytest.mark.parametrize("options", [{}, {"zoneout": 0.3, "transition_depth": 2, "leak": 0.2}], ids=["plain", "noisy"])
@pytest.mark.parametrize("cell", ["numbers chosen by parameters", "overlapping ranges", "layer_norm of gates"])
def test_second_derivatives(cell: str, options: dict[str, Any]) -> None:
    """Of the native scan, by its definition in torch."""
    step, sizes = CELLS[cell]
    layer, x = layer_with(cell_of(step, **sizes), **options), numbers(3, 2, 3).requires_grad_()
    found = []
    for backend in ("native", "reference"):
        layer.backend = backend
        torch.manual_seed(1)
        output = layer(x, layer.initial_state(2), torch.tensor([3, 2]), True)[0]
        (first,) = torch.autograd.grad(output.square().sum(), x, create_graph=True)
        found.append(torch.autograd.grad(first.square().sum(), [x, layer.get_parameter("input.weight")]))
    torch.testing.assert_close(*found, rtol=0, atol=1e-10)
