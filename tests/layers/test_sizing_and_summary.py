"""Budgets and tables."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from slimrnn import GRU, LSTM, RNN, BlockDiagonal, Dense, Diagonal, Kronecker, LowRank, hidden_size_for, summary
from slimrnn.layers import RecurrentStack
from slimrnn.layers.summary import HEADINGS


@pytest.mark.parametrize(
    ("layer", "options"),
    [
        (GRU, {}),
        (LSTM, {"structure": BlockDiagonal(8)}),
        (LSTM, {"structure": BlockDiagonal(4), "num_layers": 2, "bidirectional": True, "peephole": True}),
        (GRU, {"structure": LowRank(24) + Diagonal(), "reset": "before"}),
        (RNN, {"structure": Diagonal(), "bias": False}),
        (RNN, {"nonlinearity": "modrelu"}),
    ],
)
@pytest.mark.parametrize("budget", [5_000, 50_000, 123_456])
def test_hidden_size_is_the_largest_within_the_budget(layer: type[RecurrentStack], options: Any, budget: int) -> None:
    make: Any = layer
    n = hidden_size_for(budget, layer, 3, **options)
    assert make(3, n, **options).num_parameters <= budget
    step = options["structure"].blocks if isinstance(options.get("structure"), BlockDiagonal) else 1
    assert make(3, n + step, **options).num_parameters > budget


def test_hidden_size_for_a_family_of_structures() -> None:
    n = hidden_size_for(
        10_000, RNN, 2, nonlinearity="modrelu", structure=lambda n: Kronecker([2] * round(math.log2(n)))
    )
    assert n == 1024
    assert hidden_size_for(10_000, LSTM, 2, structure=Kronecker([4, 4, 4])) == 64


def test_hidden_size_for_reports_impossible_options() -> None:
    with pytest.raises(ValueError, match="expected reset to be one of"):
        hidden_size_for(10_000, GRU, 2, reset="sometimes")


def test_summary_counts_parameters_and_multiply_adds() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = GRU(10, 128, 2, structure=LowRank(24) + Diagonal(), learn_initial_state=True)
            self.readout = nn.Linear(128, 10)

        def forward(self, x: Tensor) -> Tensor:
            result: Tensor = self.readout(self.rnn(x)[0])
            return result

    net = Net()
    table = summary(net)
    first, second = table.layers
    assert (first.name, second.name) == ("rnn.layers.0", "rnn.layers.1")
    assert (first.recurrent, first.input, first.bias) == (3 * (2 * 128 * 24 + 128), 3 * 10 * 128, 4 * 128 + 128)
    assert first.macs == 3 * (2 * 128 * 24 + 128) + 3 * 10 * 128
    assert first.dense_macs == 3 * 128 * (128 + 10)
    assert table.other == 1290
    assert table.total == sum(p.numel() for p in net.parameters())
    lines = str(table).splitlines()
    assert lines[0].split() == list(HEADINGS)
    assert lines[-1].split() == ["total", f"{table.total:,}"]


def test_summary_counts_peepholes_as_recurrent() -> None:
    with_peepholes, without = (summary(LSTM(3, 8, peephole=p)).layers[0] for p in (True, False))
    assert with_peepholes.recurrent - without.recurrent == 24
    assert with_peepholes.bias == without.bias


def test_summary_counts_shared_parameters_once() -> None:
    a, b = GRU(3, 8), GRU(3, 8)
    b.layer(0).recurrent = a.layer(0).recurrent
    both = nn.ModuleList([a, b])
    table = summary(both)
    assert table.other == 0
    assert table.total == sum(p.numel() for p in both.parameters())


def test_summary_of_a_model_without_recurrent_layers() -> None:
    table = summary(nn.Linear(2, 3))
    assert (table.layers, table.other) == ((), 9)


@pytest.mark.parametrize(
    ("spec", "macs"),
    [
        (Dense(), 64 * 64),
        (BlockDiagonal(8), 512),
        (LowRank(4), 512),
        (Kronecker([2] * 6), 6 * 2 * 64),
        (Diagonal(), 64),
    ],
)
def test_multiply_adds_per_gate(spec: Any, macs: int) -> None:
    assert spec.build(64, 64, 3).macs == 3 * macs
    assert spec.build(64, 64, 3, complex=True).macs == 12 * macs


def test_default_dtype_is_respected() -> None:
    torch.set_default_dtype(torch.float64)
    try:
        stack = RNN(2, 4, nonlinearity="modrelu", structure=Kronecker([2, 2]))
        assert {p.dtype for p in stack.parameters()} == {torch.float64}
    finally:
        torch.set_default_dtype(torch.float32)
