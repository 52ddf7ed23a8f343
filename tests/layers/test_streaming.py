"""The lean path of `step` gives what the whole sequence does, also after a parameter has changed."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor

from registry import CELLS, PAIRS, SIZE, STRUCTURES, numbers, randomise_
from slimrnn import GRU, LSTM, Dense, LowRank
from slimrnn.layers import RecurrentStack
from slimrnn.layers.streaming import find_stream

pytestmark = pytest.mark.skipif(GRU(1, 1).backend != "native", reason="the lean path is native")


def run(stack: RecurrentStack, x: Tensor) -> tuple[Tensor, Any]:
    state: Any = stack.initial_state(x.shape[1] if x.dim() == 3 else None)
    outputs = []
    for x_t in x:
        y, state = stack.step(x_t, state)
        outputs.append(y)
    return torch.stack(outputs), state


def check(stack: RecurrentStack, x: Tensor) -> None:
    with torch.no_grad():
        whole, last = stack(x)
        stepped, state = run(stack, x)
    torch.testing.assert_close(stepped, whole, rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(state, last, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(("cell", "structure"), PAIRS)
def test_lean_steps_are_the_whole_sequence(cell: str, structure: str) -> None:
    options = {"residual": True, "weight_norm": True, "learn_initial_state": True}
    stack = randomise_(CELLS[cell].build(4, SIZE, 2, structure=STRUCTURES[structure], **options), 0.1)
    check(stack, numbers(5, 3, 4))
    check(stack, numbers(5, 4))
    with torch.no_grad():
        assert find_stream(stack) is not None


def test_packed_weights_are_renewed() -> None:
    stack, x = LSTM(3, 8, 2, structure=LowRank(2), dtype=torch.float64), numbers(4, 2, 3)
    check(stack, x)
    for fused in (False, True):  # fused optimizers do not raise the version of what they change
        optimizer = torch.optim.SGD(stack.parameters(), lr=0.5, fused=fused)
        stack(x)[0].sum().backward()
        optimizer.step()
        check(stack, x)
    stack.load_state_dict(LSTM(3, 8, 2, structure=LowRank(2), dtype=torch.float64).state_dict())
    check(stack, x)
    other = LSTM(3, 8, 2, structure=LowRank(2), dtype=torch.float64).state_dict()
    stack.load_state_dict(other, assign=True)
    check(stack, x)
    for p in stack.parameters():
        p.data = p.data * 0.5
    check(stack, x)
    stack.layer(1).recurrent = Dense().build(8, 8, 4, dtype=torch.float64)
    check(stack, x)
    stack.float()
    with torch.no_grad():
        torch.testing.assert_close(run(stack, x.float())[0], stack(x.float())[0])


def test_fixed_leaks_are_renewed_too() -> None:
    stack, x = GRU(3, 8, leak=0.5, dtype=torch.float64), numbers(4, 2, 3)
    check(stack, x)
    leak = stack.layer(0).leak
    assert leak is not None
    leak.get_buffer("alpha").fill_(0.9)
    check(stack, x)
    leak.alpha = torch.full((8,), 0.2, dtype=torch.float64)
    check(stack, x)


def test_groups_of_units_take_ordinary_steps() -> None:
    stack, x = GRU(3, 8, delays=[1, 1], dtype=torch.float64), numbers(4, 2, 3)
    check(stack, x)
    with torch.no_grad(), pytest.raises(ValueError, match=r"expected an initial state of shape \(1, 2, 8\)"):
        stack.step(x[0], numbers(2, 2, 8))


def test_packed_weights_stay_behind_in_copies_and_pickles() -> None:
    stack, x = GRU(3, 8, dtype=torch.float64), numbers(4, 2, 3)
    check(stack, x)
    assert "_stream" in stack.__dict__
    twin = copy.deepcopy(stack)
    assert "_stream" not in twin.__dict__
    check(twin, x)


def test_steps_with_autograd_are_differentiable() -> None:
    stack, x = GRU(3, 8, dtype=torch.float64), numbers(4, 2, 3)
    run(stack, x)[0].sum().backward()
    assert all(p.grad is not None for p in stack.parameters())
