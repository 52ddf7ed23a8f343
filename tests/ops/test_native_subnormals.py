"""The core takes numbers without a full mantissa for zero: gradients that have vanished, states that have decayed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from native_cases import ISAS, instruction_set, on
from torch import Tensor

from registry import needs_library
from slimrnn import RNN, Diagonal
from slimrnn.layers.recurrent_layer import RecurrentLayer

pytestmark = needs_library
by_precision = pytest.mark.parametrize(("dtype", "steps"), [(torch.float32, 160), (torch.float64, 1100)])


def halving(backend: str, dtype: torch.dtype) -> RecurrentLayer:
    """A layer whose state is halved at every step."""
    layer = on(backend, RNN(2, 2, nonlinearity="identity", structure=Diagonal(), dtype=dtype).layer(0))
    with torch.no_grad():
        layer.recurrent.tensor("diagonal").fill_(0.5)
        layer.input.tensor("weight").copy_(torch.eye(2).unsqueeze(0))
    return layer


def zeros(layer: RecurrentLayer, batch: int, dtype: torch.dtype) -> tuple[Tensor, ...]:
    return tuple(torch.zeros(batch, 2, dtype=dtype) for _ in range(layer.cell.states))


def gradient(backend: str, dtype: torch.dtype, batch: int, steps: int) -> Tensor:
    """Of the last state, with respect to all inputs."""
    layer = halving(backend, dtype)
    x = torch.ones(steps, batch, 2, dtype=dtype, requires_grad=True)
    layer(x, zeros(layer, batch, dtype))[1][0].sum().backward()
    assert x.grad is not None
    return x.grad


@torch.no_grad()
def silence(backend: str, dtype: torch.dtype, batch: int, steps: int) -> Tensor:
    """The outputs after a first input of one."""
    layer = halving(backend, dtype)
    x = torch.zeros(steps, batch, 2, dtype=dtype)
    x[0] = 1
    output: Tensor = layer(x, zeros(layer, batch, dtype))[0]
    return output


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("numbers", [gradient, silence])
@pytest.mark.parametrize("batch", [1, 40])
@by_precision
def test_what_has_vanished_is_zero_and_all_else_exact(
    isa: str, numbers: Callable[..., Tensor], batch: int, dtype: torch.dtype, steps: int
) -> None:
    with instruction_set(isa):
        native = numbers("native", dtype, batch, steps)
    reference = numbers("reference", dtype, batch, steps)
    is_full = reference >= torch.finfo(dtype).tiny
    assert int((~is_full & (reference > 0)).sum()) > 0  # the case is there
    assert torch.equal(native, torch.where(is_full, reference, 0.0))


@by_precision
def test_steps_decay_as_sequences_do(dtype: torch.dtype, steps: int) -> None:
    stack = RNN(2, 2, nonlinearity="identity", structure=Diagonal(), dtype=dtype, backend="native")
    with torch.no_grad():
        stack.layer(0).recurrent.tensor("diagonal").fill_(0.5)
    x = torch.zeros(steps, 3, 2, dtype=dtype)
    x[0] = 1
    state, outputs = None, []
    with torch.no_grad():
        for x_t in x:
            output, state = stack.step(x_t, state)
            outputs.append(output)
        assert torch.equal(torch.stack(outputs), stack(x)[0])
    assert not outputs[-1].any()


@pytest.mark.parametrize("numbers", [gradient, silence])
@by_precision
def test_the_caller_keeps_such_numbers(numbers: Callable[..., Tensor], dtype: torch.dtype, steps: int) -> None:
    numbers("native", dtype, 40, steps)
    smallest = torch.full((64,), torch.finfo(dtype).tiny, dtype=dtype)
    assert (smallest / 4 > 0).all()
