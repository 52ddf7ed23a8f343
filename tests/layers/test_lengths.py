"""Lengths of any integer type mean the same."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from registry import CELLS, numbers
from slimrnn import GRU, ReadOut
from slimrnn.layers import RecurrentStack
from slimrnn.layers.inputs import check_lengths

INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.uint16)
OPTIONS: dict[str, dict[str, Any]] = {
    "segments": {"checkpoint_every": 4},
    "deep transition": {"transition_depth": 2},
    "skip": {"skip": 2},
    "delay": {"delays": 3},
    "two directions": {"bidirectional": True, "num_layers": 2},
}


def results(rnn: RecurrentStack, x: Tensor, lengths: Tensor) -> list[Tensor]:
    output, state = rnn(x, lengths=lengths)
    return [output, *(state if isinstance(state, tuple) else (state,))]


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("cell", ["gru-after", "lstm"])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_layers_take_any_integers(cell: str, options: dict[str, Any], dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    rnn = CELLS[cell].build(3, 4, **options)
    x, lengths = numbers(100, 2, 3), torch.tensor([3, 100])
    for given, expected in zip(results(rnn, x, lengths.to(dtype)), results(rnn, x, lengths), strict=True):
        torch.testing.assert_close(given, expected, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("at", ["last", "mean", "max"])
def test_read_outs_take_any_integers(at: str, dtype: torch.dtype) -> None:
    readout = ReadOut(GRU(3, 4, dtype=torch.float64), 2, at=at)
    output, lengths = numbers(10, 2, 4), torch.tensor([3, 10])
    torch.testing.assert_close(readout(output, lengths.to(dtype)), readout(output, lengths), rtol=0, atol=0)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_checked_lengths_are_int64(dtype: torch.dtype) -> None:
    checked = check_lengths(torch.tensor([3, 10], dtype=dtype), 10, 2, torch.device("cpu"))
    assert checked.dtype == torch.int64
    assert checked.tolist() == [3, 10]
