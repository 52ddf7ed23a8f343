"""On the way back the core takes numbers without a full mantissa for zero."""

from __future__ import annotations

import pytest
import torch
from native_cases import ISAS, instruction_set, on

from registry import needs_library
from slimrnn import RNN, Diagonal

pytestmark = needs_library


def gradient(backend: str, dtype: torch.dtype, batch: int, steps: int) -> torch.Tensor:
    """That of the input, where the state is halved at every step."""
    rnn = RNN(2, 2, nonlinearity="identity", structure=Diagonal(), dtype=dtype)
    layer = on(backend, rnn.layer(0))
    with torch.no_grad():
        layer.recurrent.tensor("diagonal").fill_(0.5)
        layer.input.tensor("weight").copy_(torch.eye(2).unsqueeze(0))
    x = torch.ones(steps, batch, 2, dtype=dtype, requires_grad=True)
    layer(x, tuple(torch.zeros(batch, 2, dtype=dtype) for _ in range(layer.cell.states)))[1][0].sum().backward()
    assert x.grad is not None
    return x.grad


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(("dtype", "steps"), [(torch.float32, 160), (torch.float64, 1100)])
@pytest.mark.parametrize("batch", [1, 40])
def test_vanished_gradients_are_zero_and_all_others_exact(isa: str, dtype: torch.dtype, steps: int, batch: int) -> None:
    with instruction_set(isa):
        native = gradient("native", dtype, batch, steps)
    reference = gradient("reference", dtype, batch, steps)
    is_full = reference >= torch.finfo(dtype).tiny
    assert int((~is_full & (reference > 0)).sum()) > 0  # the case is there
    assert torch.equal(native, torch.where(is_full, reference, 0.0))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_caller_keeps_such_numbers(dtype: torch.dtype) -> None:
    gradient("native", dtype, 40, 10)
    smallest = torch.full((64,), torch.finfo(dtype).tiny, dtype=dtype)
    assert (smallest / 4 > 0).all()
