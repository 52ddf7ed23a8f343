"""The core takes numbers without a full mantissa for zero: gradients that have vanished, states that have decayed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from native_cases import ISAS, instruction_set, on, threads
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


def zeros(layer: RecurrentLayer, batch: int, dtype: torch.dtype, units: int = 2) -> tuple[Tensor, ...]:
    return tuple(torch.zeros(batch, units, dtype=dtype) for _ in range(layer.cell.states))


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


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("numbers", [gradient, silence])
@pytest.mark.parametrize("batch", [1, 40])
@by_precision
def test_what_has_vanished_is_zero_and_all_else_exact(
    count: int, isa: str, numbers: Callable[..., Tensor], batch: int, dtype: torch.dtype, steps: int
) -> None:
    with instruction_set(isa), threads(count):
        native = numbers("native", dtype, batch, steps)
    reference = numbers("reference", dtype, batch, steps)
    is_full = reference >= torch.finfo(dtype).tiny
    assert int((~is_full & (reference > 0)).sum()) > 0  # the case is there
    assert torch.equal(native, torch.where(is_full, reference, 0.0))


@torch.no_grad()
@by_precision
def test_steps_decay_as_sequences_do(dtype: torch.dtype, steps: int) -> None:
    stack = RNN(2, 2, nonlinearity="identity", structure=Diagonal(), dtype=dtype, backend="native")
    stack.layer(0).recurrent.tensor("diagonal").fill_(0.5)
    stack.layer(0).input.tensor("weight").copy_(torch.eye(2).unsqueeze(0))
    x = torch.zeros(steps, 3, 2, dtype=dtype)
    x[0] = 1
    state, outputs = None, []
    for x_t in x:
        output, state = stack.step(x_t, state)
        outputs.append(output)
    powers = 0.5 ** torch.arange(steps, dtype=torch.float64)
    powers[powers < torch.finfo(dtype).tiny] = 0
    assert torch.equal(torch.stack(outputs)[:, 0, 0].double(), powers)
    assert torch.equal(torch.stack(outputs), stack(x)[0])


def test_threads_that_share_one_product_decay_alike() -> None:
    """One sequence on two threads: half of every product is another thread's."""
    layer = on("native", RNN(1, 256, nonlinearity="identity").layer(0))
    with torch.no_grad():
        layer.recurrent.tensor("weight").copy_(0.5 * torch.eye(256).roll(1, 0).unsqueeze(0))
        layer.input.tensor("weight").fill_(1.0)
        x, outputs = torch.zeros(160, 1, 1), []
        x[0] = 1
        for count in (1, 2):
            with threads(count):
                outputs.append(layer(x, zeros(layer, 1, torch.float32, 256))[0])
    assert torch.equal(*outputs)
    assert outputs[0][100].min() > 0
    assert not outputs[0][127:].any()  # 2^-127


@pytest.mark.parametrize("numbers", [gradient, silence])
@by_precision
def test_the_caller_keeps_such_numbers(numbers: Callable[..., Tensor], dtype: torch.dtype, steps: int) -> None:
    with threads(2):
        numbers("native", dtype, 40, steps)
        smallest = torch.full((100_000,), torch.finfo(dtype).tiny, dtype=dtype)  # enough for all threads of torch
        assert (smallest / 4 > 0).all()
