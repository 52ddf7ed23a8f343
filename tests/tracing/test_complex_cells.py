"""Users' own cells of complex states: a complex number is a pair, and a real one has an imaginary part of zero."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from both_backends import BATCH, INPUT, TIME, WIDTH, check, layer_with
from torch import Tensor, nn

from registry import needs_library, numbers
from slimrnn import Cell, Diagonal, Kronecker, Recurrent
from slimrnn.cells.base import Matvec, State

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
    assert layer.cell.bias is not None and not layer.cell.bias.is_complex()
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
