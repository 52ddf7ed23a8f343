"""A structure for each layer and direction."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
from torch import nn

import slimrnn
from slimrnn import GRU, LSTM, BlockDiagonal, Dense, Diagonal, LowRank, analysis
from slimrnn.exporting.int8.quantize import quantize

EACH = [LowRank(2), LowRank(3, tied=True), Dense(), LowRank(2) + Diagonal()]


def layer(dtype: torch.dtype = torch.float64) -> LSTM:
    torch.manual_seed(0)
    inward = [Dense(), Dense(), LowRank(2), BlockDiagonal(4)]
    return LSTM(3, 8, 2, bidirectional=True, structure=EACH, input_structure=inward, dtype=dtype)


def test_each_layer_has_its_own_structure() -> None:
    rnn = layer()
    assert [core.recurrent.spec for core in rnn.cores] == EACH
    assert rnn.structure == tuple(EACH)
    assert "structure=(LowRank(2), LowRank(3, tied=True), Dense(), LowRank(2) + Diagonal())" in repr(rnn)
    assert [row.structure for row in slimrnn.summary(rnn).layers] == [repr(spec) for spec in EACH]
    assert [cost.structure for cost in analysis.layer_costs(rnn)] == [repr(spec) for spec in EACH]


def test_the_native_core_agrees_with_the_reference() -> None:
    rnn, x = layer(), torch.randn(5, 2, 3, dtype=torch.float64)
    other = copy.deepcopy(rnn)
    other.backend = "reference"
    torch.testing.assert_close(rnn(x)[0], other(x)[0], rtol=1e-10, atol=1e-10)


def test_one_structure_is_shown_where_all_are_the_same() -> None:
    assert GRU(3, 8, 2, structure=[LowRank(2)] * 2).structure == LowRank(2)


def test_saved_and_loaded_layers_are_the_same(tmp_path: Path) -> None:
    rnn, x = layer(), torch.randn(5, 2, 3, dtype=torch.float64)
    slimrnn.save(rnn, tmp_path / "model")
    loaded = slimrnn.load(tmp_path / "model")
    assert repr(loaded) == repr(rnn)
    assert torch.equal(loaded(x)[0], rnn(x)[0])


def test_from_torch_takes_the_nearest_of_each_family() -> None:
    dense = nn.GRU(3, 8, 2).double()
    rnn, x = GRU.from_torch(dense, structure=[LowRank(8), Dense()]), torch.randn(5, 2, 3, dtype=torch.float64)
    torch.testing.assert_close(rnn(x)[0], dense(x)[0], rtol=1e-10, atol=1e-10)
    assert isinstance(rnn.to_torch(), nn.GRU)


def test_exported_c_computes_the_same(tmp_path: Path) -> None:
    torch.manual_seed(0)
    rnn = LSTM(3, 8, 2, structure=EACH[:2], input_structure=[Dense(), LowRank(2)]).eval()
    example = torch.randn(7, 2, 3)
    proof = slimrnn.export(rnn, example, tmp_path / "net", to="c")
    assert proof.relative <= proof.tolerance


def test_int8_layers_keep_their_structures() -> None:
    torch.manual_seed(0)
    rnn, x = LSTM(3, 8, 2, structure=EACH[:2]).eval(), torch.randn(7, 2, 3)
    torch.testing.assert_close(quantize(rnn)(x)[0], rnn(x)[0], rtol=0.1, atol=0.05)


@pytest.mark.parametrize(
    ("structure", "said"),
    [
        ([LowRank(2)], "expected one structure, or 2, one for each layer and direction, got 1"),
        ([LowRank(2)] * 3, "expected one structure, or 2, one for each layer and direction, got 3"),
        ([LowRank(2), 3], "expected structure to be a structure such as LowRank\\(24\\), got 3 in a sequence"),
        ((), "expected structure to be a structure such as LowRank\\(24\\), got \\(\\)"),
    ],
)
def test_wrong_sequences_are_refused(structure: list[object], said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        LSTM(3, 8, 2, structure=structure)  # type: ignore[arg-type]
