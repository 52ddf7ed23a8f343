"""A scan as ONNX, in onnxruntime, against the reference: every cell, every structure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from one_scan import OneScan
from torch import Tensor

from registry import CELLS, FEW_PAIRS, STRUCTURES, randomise_
from slimrnn import GRU, LSTM, RNN, BlockDiagonal, LowRank
from slimrnn._fields import pairs_flat
from slimrnn.exporting.frozen import FrozenLayer, freeze
from slimrnn.layers import RecurrentStack
from slimrnn.layers.input_product import look_up
from slimrnn.ops.reference import Resets

SIZE = 12
LENGTHS = torch.tensor([4, 1, 5])
OPERATORS = {
    "indrnn": "RNN",
    "tanh": "RNN",
    "relu": "RNN",
    "lstm": "LSTM",
    "lstm-peephole": "LSTM",
    "gru-after": "GRU",
    "gru-before": "GRU",
}


def built(cell: str, structure: str, **options: Any) -> RecurrentStack:
    torch.manual_seed(1)
    return randomise_(
        CELLS[cell].build(3, SIZE, structure=STRUCTURES[structure], backend="reference", **options)
    ).eval()


def as_pairs(state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return tuple(torch.view_as_real(part) if part.is_complex() else part for part in state)


def compare(
    stack: RecurrentStack,
    tolerance: float,
    lengths: Tensor | None = None,
    reverse: bool = False,
    shapes: Sequence[tuple[int, int]] = ((5, 3), (1, 3)),
    merge: bool | None = None,
    resets: bool = False,
) -> list[str]:
    """One ONNX model for all shapes; the names of its operators."""
    ours, frozen = stack.layer(0), freeze(stack, merge).layer(0)  # type: ignore[operator]
    assert isinstance(frozen, FrozenLayer)
    model = None
    for time, batch in shapes:
        dtype = next(stack.parameters()).dtype
        x = torch.randn(time, batch, 3, dtype=dtype)
        state = tuple(0.5 * torch.randn_like(part) for part in ours.initial_state(batch))
        ends = None if lengths is None else lengths.clamp_max(time)
        anew = pairs_anew = None
        if resets:
            anew = Resets(torch.rand(time, batch) < 0.4, tuple(0.5 * torch.randn_like(part) for part in state))
            pairs_anew = anew._replace(state=as_pairs(anew.state))
        with torch.no_grad():
            wanted, last = ours(x, state, ends, reverse, resets=anew)
            inputs = frozen.operands(x, None, as_pairs(state), None, ends, reverse, pairs_anew)
        model = model or OneScan(inputs)
        found, found_last = model(inputs)
        phases = frozen.plan.phases
        found = found[0::phases] if reverse else found[phases - 1 :: phases]
        for one, other in ((found, wanted), (found_last, torch.stack([pairs_flat(part) for part in last]))):
            assert one.shape == other.shape
            assert float((one - other).abs().max()) <= tolerance * float(other.abs().max())
    assert model is not None
    return model.ops


@pytest.mark.parametrize(("cell", "structure"), FEW_PAIRS)
def test_scan_equals_the_reference(cell: str, structure: str) -> None:
    """Ragged and backwards; in double precision nothing hides."""
    ops = compare(built(cell, structure), 1e-12, LENGTHS, reverse=True)
    assert "Scan" in ops


@pytest.mark.parametrize("cell", ["lstm", "gru-leaky-deep", "modrelu-leaky-deep"])
def test_sequences_begin_anew(cell: str) -> None:
    compare(built(cell, "dense"), 1e-12, reverse=True, resets=True)
    assert "Scan" in compare(built(cell, "dense", dtype=torch.float32), 1e-5, resets=True)


@pytest.mark.parametrize("cell", CELLS)
def test_dense_cells_in_single_precision(cell: str) -> None:
    ops = compare(built(cell, "dense", dtype=torch.float32), 1e-5, shapes=((5, 2), (9, 1), (1, 3)))
    assert {"RNN", "GRU", "LSTM", "Scan"} & set(ops) == {OPERATORS.get(cell, "Scan")}


@pytest.mark.parametrize("cell", OPERATORS)
def test_operators_of_onnx_are_ragged_and_turn_around(cell: str) -> None:
    ops = compare(built(cell, "dense", dtype=torch.float32), 1e-5, LENGTHS, reverse=True)
    assert OPERATORS[cell] in ops
    assert "Scan" not in ops


@pytest.mark.parametrize("structure", ["low-rank", "block", "householder"])
def test_merged_matrices_are_those_of_an_operator(structure: str) -> None:
    assert "GRU" in compare(built("gru-after", structure, dtype=torch.float32), 1e-5, merge=True)


def test_structures_are_merged_where_that_takes_no_more_memory() -> None:
    kept = freeze(GRU(3, 8, structure=LowRank(3))).layer(0).plan.terms  # type: ignore[operator]
    merged = freeze(GRU(3, 8, structure=LowRank(4))).layer(0).plan.terms  # type: ignore[operator]
    assert kept == (("low_rank", 2),)
    assert merged == (("block_diagonal", 1),)


def test_a_single_step_needs_no_loop() -> None:
    stack = built("lstm", "low-rank")
    layer = freeze(stack).layer(0)  # type: ignore[operator]
    state = tuple(torch.randn(4, SIZE, dtype=torch.float64) for _ in range(2))
    x = torch.randn(4, 3, dtype=torch.float64)
    with torch.no_grad():
        inputs = layer.operands(None, layer.input_product(x).unsqueeze(0), state)
        model = OneScan(inputs, single=True)
        torch.testing.assert_close(model(inputs)[1], torch.stack(stack.layer(0).step(x, state)), rtol=0, atol=1e-14)
    assert not {"Scan", "LSTM", "Loop"} & set(model.ops)


@pytest.mark.parametrize("vocabulary", [7, 100])
def test_tokens_are_looked_up_or_one_hot(vocabulary: int) -> None:
    """A product with one-hot vectors is cheap while tokens are few."""
    torch.manual_seed(1)
    stack = randomise_(GRU(vocabulary, 8, one_hot=True)).eval()
    layer = freeze(stack).layer(0)  # type: ignore[operator]
    tokens = torch.randint(vocabulary, (6, 3))
    state = (torch.randn(3, 8),)
    with torch.no_grad():
        table = layer.token_table(None)
        inputs = layer.operands(tokens.unsqueeze(-1), None, state, table)
        wanted, _ = stack.layer(0).scan(None, look_up(table, tokens), state)
    model = OneScan(inputs)
    torch.testing.assert_close(model(inputs)[0], wanted, rtol=0, atol=1e-6)
    assert ("GRU" in model.ops) == (vocabulary == 7)


@pytest.mark.parametrize(
    ("layer", "options"), [(LSTM, {"structure": BlockDiagonal(2)}), (RNN, {"nonlinearity": "modrelu"})]
)
def test_frozen_layers_give_the_same(layer: type[RecurrentStack], options: dict[str, Any]) -> None:
    """Complex states are pairs of real numbers there."""
    torch.manual_seed(1)
    make: Any = layer
    stack = randomise_(make(3, 8, num_layers=2, dtype=torch.float64, **options)).eval()
    frozen: Any = freeze(stack)
    x = torch.randn(5, 2, 3, dtype=torch.float64)
    with torch.no_grad():
        (wanted, last), (found, found_last) = stack(x), frozen(x)
        torch.testing.assert_close(found, wanted)
        parts = last if isinstance(last, tuple) else (last,)
        found_parts = found_last if isinstance(found_last, tuple) else (found_last,)
        for one, other in zip(found_parts, parts, strict=True):
            torch.testing.assert_close(one, torch.view_as_real(other) if other.is_complex() else other)
