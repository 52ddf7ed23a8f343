"""Ragged batches: nothing leaks from padding, whatever it holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from registry import CELLS, numbers, randomise_
from slimrnn import GRU, LSTM, BlockDiagonal, ContextSwitching, Deep, Dense, Diagonal, LowRank, OutputRecurrent


@pytest.mark.parametrize("fill", [0.0, 1e6, float("nan"), float("inf")])
@pytest.mark.parametrize("cell", CELLS)
def test_padding_never_leaks(cell: str, fill: float) -> None:
    stack = randomise_(CELLS[cell].build(3, 8, 2, bidirectional=True), 0.1)
    lengths = torch.tensor([4, 2, 1])
    clean = numbers(4, 3, 3)
    padding = torch.arange(4)[:, None] >= lengths
    results: list[list[Tensor]] = []
    for value in (0.0, fill):
        x = clean.clone()
        x[padding] = value
        x.requires_grad_()
        output, last = stack(x, lengths=lengths)
        states = list(last) if isinstance(last, tuple) else [last]
        loss = output.square().sum() + sum(s.abs().square().sum() for s in states)
        stack.zero_grad()
        loss.backward()
        assert x.grad is not None
        gradients = [p.grad for p in stack.parameters() if p.grad is not None]
        results.append([output, *states, x.grad, *gradients])
    for a, b in zip(*results, strict=True):
        assert torch.equal(a, b)


AROUND: dict[str, Any] = {
    "switching": lambda **o: ContextSwitching(GRU(4, 6, structure=BlockDiagonal(2), **o), "both", auxiliary_size=3),
    "deep": lambda **o: Deep(4, GRU(5, 6, **o), 3),
    "output": lambda **o: OutputRecurrent(4, 6, 3, **o),
    "hidden-and-output": lambda **o: OutputRecurrent(4, 6, 3, hidden_recurrence=Dense(), **o),
    "feedback": lambda **o: OutputRecurrent(4, 6, 3, feedback=torch.tanh, **o),
}


@pytest.mark.parametrize("name", AROUND)
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("forced", [False, True])
def test_padding_never_leaks_into_what_is_built_on_layers(name: str, batch_first: bool, forced: bool) -> None:
    net = AROUND[name](batch_first=batch_first, dtype=torch.float64)
    lengths = torch.tensor([4, 2, 1])
    padding = torch.arange(4)[:, None] >= lengths
    clean, targets = numbers(4, 3, 4), numbers(4, 3, 3)
    results: list[list[Tensor]] = []
    for value in (0.0, float("nan")):
        x, y = clean.clone(), targets.clone()
        x[padding], y[padding] = value, value
        x, y = (x.transpose(0, 1), y.transpose(0, 1)) if batch_first else (x, y)
        given = {"targets": y} if forced and isinstance(net, OutputRecurrent) else {}
        net.zero_grad()
        output, _ = net(x, lengths=lengths, **given)
        output = output.transpose(0, 1) if batch_first else output
        output[~padding].square().sum().backward()
        results.append([output[~padding].detach(), *(p.grad.clone() for p in net.parameters() if p.grad is not None)])
    for with_zeros, with_nan in zip(*results, strict=True):
        assert torch.equal(with_zeros, with_nan)


@given(st.lists(st.integers(1, 7), min_size=1, max_size=5), st.booleans(), st.booleans())
def test_any_lengths_equal_sequences_alone(lengths: list[int], bidirectional: bool, batch_first: bool) -> None:
    torch.manual_seed(0)
    stack = GRU(
        2,
        6,
        2,
        structure=LowRank(2) + Diagonal(),
        bidirectional=bidirectional,
        batch_first=batch_first,
        dtype=torch.float64,
    )
    x = numbers(7, len(lengths), 2)
    output, last = stack(x.transpose(0, 1) if batch_first else x, lengths=lengths)
    output = output.transpose(0, 1) if batch_first else output
    for b, n in enumerate(lengths):
        alone, state = stack(x[:n, b])
        torch.testing.assert_close(output[:n, b], alone, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(last[:, b], state, rtol=1e-12, atol=1e-12)
        assert torch.all(output[n:, b] == 0)


@pytest.mark.parametrize("form", [list, tuple, np.array, torch.tensor, lambda n: torch.tensor(n, dtype=torch.int32)])
def test_lengths_come_in_several_forms(form: Any) -> None:
    stack, x = LSTM(2, 3), torch.randn(4, 2, 2)
    expected, _ = stack(x, lengths=torch.tensor([4, 2]))
    assert torch.equal(stack(x, lengths=form([4, 2]))[0], expected)


def test_initial_state_of_a_ragged_batch_gets_its_gradient() -> None:
    stack = LSTM(2, 3, bidirectional=True, dtype=torch.float64)
    x, lengths = numbers(4, 3, 2), [4, 1, 2]
    h_0, c_0 = numbers(2, 3, 3).requires_grad_(), numbers(2, 3, 3).requires_grad_()

    def run(h_0: Tensor, c_0: Tensor) -> Tensor:
        output, _ = stack(x, (h_0, c_0), lengths=lengths)
        result: Tensor = output
        return result

    assert torch.autograd.gradcheck(run, (h_0, c_0))


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("cell", ["tanh", "modrelu", "lstm"])
def test_nested_tensors_equal_their_sequences(cell: str, batch_first: bool) -> None:
    stack = randomise_(CELLS[cell].build(3, 8, 2, bidirectional=True, batch_first=batch_first), 0.1)
    rows = [numbers(steps, 3) for steps in (2, 4, 1)]
    nested = torch.nested.nested_tensor(rows, layout=torch.jagged, requires_grad=True)
    output, last = stack(nested)
    torch.cat(output.unbind()).square().sum().backward()
    assert nested.grad is not None
    gradients = nested.grad.unbind()
    assert (output + nested.sum(-1, keepdim=True)).is_nested  # ragged in the same way
    for number, row in enumerate(rows):
        row.requires_grad_()
        alone, end = stack(row)
        torch.testing.assert_close(output.unbind()[number], alone)
        ends, lasts = (state if isinstance(state, tuple) else (state,) for state in (end, last))
        for part, whole in zip(ends, lasts, strict=True):
            torch.testing.assert_close(whole[:, number], part)
        alone.square().sum().backward()
        torch.testing.assert_close(gradients[number], row.grad)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors is in prototype stage")
def test_strided_nested_tensors_come_back_as_such() -> None:
    stack = GRU(3, 4, dtype=torch.float64)
    rows = [numbers(2, 3), numbers(5, 3)]
    output, _ = stack(torch.nested.nested_tensor(rows))
    assert output.layout == torch.strided
    for found, row in zip(output.unbind(), rows, strict=True):
        torch.testing.assert_close(found, stack(row)[0])


def test_context_switching_takes_nested_tensors() -> None:
    net = ContextSwitching(GRU(4, 6, structure=BlockDiagonal(2), dtype=torch.float64), auxiliary_size=3)
    rows = [numbers(2, 4), numbers(5, 4)]
    output, _ = net(torch.nested.nested_tensor(rows, layout=torch.jagged))
    for found, row in zip(output.unbind(), rows, strict=True):
        torch.testing.assert_close(found, net(row)[0])
