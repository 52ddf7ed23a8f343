"""Users' own cells of complex states: a complex number is a pair, and a real one has an imaginary part of zero."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from both_backends import BATCH, INPUT, TIME, WIDTH, check, layer_with
from torch import Tensor, nn

from registry import needs_library, numbers
from slimrnn import Cell, Diagonal, Kronecker, Recurrent
from slimrnn.cells.base import Matvec, State
from slimrnn.exporting import freeze
from slimrnn.layers.recurrent_layer import RecurrentLayer
from slimrnn.tracing import find

pytestmark = needs_library


class Half(Cell):
    """With the bias that every cell has, real numbers."""

    gates = ("h",)

    def __init__(self, hidden_size: int, bias: bool = True, **place: Any) -> None:
        super().__init__(hidden_size, bias, complex=True, **place)

    def step(self, wx: Tensor, matvec: Matvec, state: State) -> State:
        return (0.5 * (wx + matvec(state[0])).squeeze(-2),)


@pytest.mark.parametrize("input_structure", [None, Kronecker([(5, 3)])])
def test_a_real_bias_is_the_real_part(input_structure: Any) -> None:
    options = {} if input_structure is None else {"input_structure": input_structure}
    layer = layer_with(Half, structure=Diagonal(), **options)
    assert layer.runs_as == "bytecode"
    check(layer)


def test_single_steps_with_a_real_bias() -> None:
    stack, x = Recurrent(Half, INPUT, WIDTH, dtype=torch.float64), numbers(TIME, BATCH, INPUT)
    nn.init.normal_(stack.layer(0).cell.bias)  # type: ignore[arg-type]
    stack.backend = "reference"
    whole = stack(x)[0]
    stack.backend = "native"
    state: Any = stack.initial_state(BATCH)
    with torch.no_grad():
        for t in range(TIME):
            y, state = stack.step(x[t], state)
            torch.testing.assert_close(y, whole[t])


def test_a_real_bias_is_exported() -> None:
    stack = Recurrent(Half, INPUT, WIDTH, structure=Diagonal())
    nn.init.normal_(stack.layer(0).cell.bias)  # type: ignore[arg-type]
    x = torch.randn(TIME, 2, INPUT)
    torch.testing.assert_close(freeze(stack)(x)[0], stack(x)[0])


class Own(Half):
    """With parameters of its own, most of them real."""

    def __init__(self, hidden_size: int, bias: bool = True, **place: Any) -> None:
        super().__init__(hidden_size, False, **place)
        self.a = nn.Parameter(0.5 + torch.rand(hidden_size, dtype=torch.float64))
        self.turn = nn.Parameter(torch.polar(torch.ones(hidden_size), torch.rand(hidden_size)).to(torch.complex128))
        self.register_buffer("mask", torch.arange(hidden_size) % 2 == 0)


def own(step: Any) -> type[Cell]:
    class One(Own):
        def step(self, wx: Tensor, matvec: Matvec, state: State) -> State:
            z = 0.5 * (wx + matvec(state[0])).squeeze(-2)
            found: State = step(self, z, matvec, state[0])
            return found

    return One


def product(matvec: Any, h: Any) -> Any:
    return matvec(h).squeeze(-2)


NATIVE: dict[str, Any] = {
    "factors": lambda c, z, m, h: (z * c.a / (c.a + 1) + h,),
    "zero": lambda c, z, m, h: (torch.where(c.mask, z, 0.0) - h * 0.1 + 0.0,),
    "real numbers among themselves": lambda c, z, m, h: (z * (0.3 + c.a) - (1 - 0.5 * c.a) * h,),
}
REFUSED: dict[str, tuple[Any, str]] = {
    "a number": (lambda c, z, m, h: (z + 0.3,), "computes add of real and complex"),
    "a parameter": (lambda c, z, m, h: (z + c.a,), "computes add of real and complex"),
    "a parameter taken off": (lambda c, z, m, h: (z / c.a - c.a,), "computes sub of real and complex"),
    "a product's start": (lambda c, z, m, h: (z + 0.1 * (product(m, 2 * h) + c.a),), "computes product of real and"),
    "a product of a parameter": (lambda c, z, m, h: (z + product(m, c.a),), "computes product of real and"),
    "a choice": (lambda c, z, m, h: (torch.where(c.mask, z, 0.5),), "computes where of real and complex"),
    "a complex parameter": (lambda c, z, m, h: (z * c.a * c.turn,), "uses turn, which is complex"),
    "division by a state": (lambda c, z, m, h: (0.1 / (h + z),), "computes div of complex"),
    "a product of states": (lambda c, z, m, h: (h * z,), "computes mul of complex"),
}


def layer_of(cell: type[Cell]) -> RecurrentLayer:
    return Recurrent(cell, INPUT, WIDTH, dtype=torch.float64, structure=Diagonal()).layer(0)


@pytest.mark.parametrize("name", NATIVE)
def test_what_acts_on_both_parts_alike_is_native(name: str) -> None:
    check(layer_of(own(NATIVE[name])))


@pytest.mark.parametrize("name", REFUSED)
def test_other_arithmetic_runs_in_plain_torch(name: str) -> None:
    step, says = REFUSED[name]
    layer, x = layer_of(own(step)), numbers(TIME, BATCH, INPUT)
    state = tuple(numbers(*s.shape, complex=True) for s in layer.initial_state(BATCH))
    reason = find(layer.cell)
    assert isinstance(reason, str)
    assert says in reason
    assert layer.runs_as == "reference"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # told once
        output = layer(x, state)[0]
    layer.backend = "reference"
    torch.testing.assert_close(layer(x, state)[0], output, equal_nan=True)
