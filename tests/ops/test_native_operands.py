"""Tensors that do not agree are refused before the core sees them: it would read and write beyond their ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from registry import needs_library, numbers
from slimrnn import GRU, RNN, Cell, Kronecker, Recurrent
from slimrnn.cells.base import Matvec, State

pytestmark = needs_library
INPUT, WIDTH, TIME, BATCH = 3, 4, 5, 2


class Forgetful(Cell):
    """Takes a dtype and keeps it to itself."""

    gates = ("n",)

    def __init__(self, hidden_size: int, bias: bool = True, dtype: Any = None, device: Any = None) -> None:
        super().__init__(hidden_size, bias, device=device)

    def step(self, wx: Tensor, matvec: Matvec, state: State) -> State:
        return (torch.tanh((wx + matvec(state[0])).squeeze(-2)),)


def other_layer() -> Any:
    stack = GRU(INPUT, WIDTH, num_layers=2)
    stack.layer(1).double()
    return stack


def other_recurrent() -> Any:
    stack = GRU(INPUT, WIDTH)
    stack.layer(0).recurrent.double()
    return stack


def other_factor() -> Any:
    stack = RNN(INPUT, WIDTH, nonlinearity="modrelu", structure=Kronecker([2, 2]))
    recurrent: Any = stack.layer(0).recurrent
    recurrent.factor_1 = nn.Parameter(recurrent.factor_1.double())
    return stack


def other_bias() -> Any:
    stack = GRU(INPUT, WIDTH)
    cell = stack.layer(0).cell
    assert cell.bias is not None
    cell.bias = nn.Parameter(cell.bias.double())
    return stack


def loaded() -> Any:
    stack = GRU(INPUT, WIDTH)
    numbers = stack.state_dict()
    numbers["layers.0.input.weight"] = numbers["layers.0.input.weight"].double()
    stack.load_state_dict(numbers, assign=True)
    return stack


def other_input() -> Any:
    stack = GRU(INPUT, WIDTH)
    stack.layer(0).input.weight = nn.Parameter(torch.randn(3, WIDTH, INPUT - 1))
    return stack


def short_bias() -> Any:
    stack = GRU(INPUT, WIDTH)
    stack.layer(0).cell.bias = nn.Parameter(torch.zeros(2, WIDTH))
    return stack


def somewhere_else() -> Any:
    stack = GRU(INPUT, WIDTH)
    stack.layer(0).recurrent.to("meta")
    return stack


MIXED = "^expected the input, the state and all parameters of a layer in one dtype, .* got .*torch.float64: .*"
CASES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "recurrent weights": (other_recurrent, TypeError, MIXED + "recurrent weight 0"),
    "a factor": (other_factor, TypeError, MIXED + "recurrent weight 1"),
    "bias": (other_bias, TypeError, MIXED + "the bias, .*; torch.float32: the input weights"),
    "loaded input weights": (loaded, TypeError, MIXED + "the input weights"),
    "a cell of one's own": (
        lambda: Recurrent(Forgetful, INPUT, WIDTH, dtype=torch.float64),
        TypeError,
        MIXED + r"the input weights.*super\(\).__init__",
    ),
    "bias of fewer gates": (short_bias, ValueError, r"^expected the bias of shape \(3, 4\) .*got \(2, 4\)"),
    "another device": (somewhere_else, ValueError, "^expected all .* on the CPU, got recurrent weight 0 on meta"),
}


@pytest.mark.parametrize("differentiated", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_operands_that_do_not_agree(name: str, differentiated: bool) -> None:
    make, error, says = CASES[name]
    stack = make()
    x = torch.randn(TIME, BATCH, INPUT).to(next(stack.parameters()).dtype)
    with torch.set_grad_enabled(differentiated), pytest.raises(error, match=says):
        stack(x)


@pytest.mark.parametrize("name", [name for name in CASES if name != "another device"])  # where plain torch runs
def test_operands_of_single_steps(name: str) -> None:
    make, error, _ = CASES[name]
    stack = make()
    x = torch.randn(BATCH, INPUT).to(next(stack.parameters()).dtype)
    with torch.no_grad(), pytest.raises(error, match=r"^expected .* got "):
        stack.step(x, stack.initial_state(BATCH))


def test_a_layer_of_another_type_than_the_first() -> None:
    stack = other_layer()
    with pytest.raises(TypeError, match=MIXED):
        stack(torch.randn(TIME, BATCH, INPUT))
    with (
        torch.no_grad(),
        pytest.raises(TypeError, match=r"^expected single steps in torch\.float64, .* got torch.float"),
    ):
        stack.step(torch.randn(BATCH, INPUT), torch.zeros(2, BATCH, WIDTH))


def test_an_input_matrix_of_another_width() -> None:
    stack = other_input()
    with pytest.raises(ValueError, match=r"^expected the input weights of shape \(3, 4, 3\) .*got \(3, 4, 2\)"):
        stack(torch.randn(TIME, BATCH, INPUT))
    with torch.no_grad(), pytest.raises(ValueError, match=r"^expected input and output of widths 2 and 4, got 3 and 4"):
        stack.step(torch.randn(BATCH, INPUT), stack.initial_state(BATCH))


def test_an_initial_state_without_numbers() -> None:
    stack = GRU(INPUT, WIDTH)
    with pytest.raises(ValueError, match=r"^expected .*(CPU|cpu).* got .*meta"):
        stack(torch.randn(TIME, BATCH, INPUT), torch.zeros(1, BATCH, WIDTH, device="meta"))


def test_compiled_layers_are_checked_too() -> None:
    stack: Any = torch.compile(GRU(INPUT, WIDTH, dtype=torch.float64), backend="eager")
    x = numbers(TIME, BATCH, INPUT)
    stack(x)
    stack.layer(0).recurrent.float()
    with pytest.raises(Exception, match="expected the input, the state and all parameters of a layer in one dtype"):
        stack(x)
