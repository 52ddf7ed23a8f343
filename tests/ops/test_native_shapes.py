"""Any shape: sizes that no vector width divides, single rows and columns, odd factors."""

from __future__ import annotations

import math
from typing import Any

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from native_cases import ISAS, check_native, instruction_set, start

from registry import CELLS, needs_library, numbers, randomise_
from slimrnn import BlockDiagonal, Dense, Diagonal, Kronecker, LowRank, Structure

pytestmark = needs_library


@st.composite
def kroneckers(draw: st.DrawFn) -> tuple[int, Structure]:
    """Factors of p x q whose product is square and at most 40 wide; or of 2 x 2, 4 x 4 and 8 x 8, at most 128 wide."""
    if draw(st.booleans()):
        factors = draw(st.lists(st.sampled_from([2, 2, 4, 8]), min_size=1, max_size=7))
        while math.prod(factors) > 128:
            factors.pop()
        return math.prod(factors), Kronecker(factors)
    rows = [draw(st.integers(1, 7))]
    while math.prod(rows) <= 20 and draw(st.booleans()):
        rows.append(draw(st.integers(1, 40 // math.prod(rows))))
    columns = draw(st.permutations(rows))
    return math.prod(rows), Kronecker(list(zip(rows, columns, strict=True)))


@st.composite
def simple(draw: st.DrawFn, size: int) -> Structure:
    kind = draw(st.sampled_from(["dense", "diagonal", "block", "low-rank", "tied"]))
    if kind == "block":
        return BlockDiagonal(draw(st.sampled_from([b for b in range(1, size + 1) if size % b == 0])))
    if kind in ("low-rank", "tied"):
        return LowRank(draw(st.integers(1, min(size, 9))), tied=kind == "tied")
    return Dense() if kind == "dense" else Diagonal()


@st.composite
def structures(draw: st.DrawFn) -> tuple[int, Structure]:
    """A size and a structure, or a sum of two, that fits it."""
    if draw(st.booleans()):
        size, structure = draw(kroneckers())
    else:
        size = draw(st.integers(1, 40))
        structure = draw(simple(size))
    return size, structure + draw(simple(size)) if draw(st.booleans()) else structure


@settings(max_examples=300)
@given(data=st.data())
def test_any_shape(data: st.DataObject) -> None:
    size, structure = data.draw(structures())
    cell = data.draw(st.sampled_from(sorted(CELLS)))
    time, batch, width = (data.draw(st.integers(1, most)) for most in (5, 7, 5))
    dtype = data.draw(st.sampled_from([torch.float64, torch.float32]))
    masks: list[dict[str, Any]] = [{}, {"recurrent_dropout": 0.5}, {"recurrent_dropout": 0.5, "mask_per_gate": True}]
    options = data.draw(st.sampled_from(masks))
    lengths = data.draw(st.none() | st.lists(st.integers(1, time), min_size=batch, max_size=batch))
    torch.manual_seed(data.draw(st.integers(0, 1000)))
    layer = randomise_(CELLS[cell].build(width, size, structure=structure, dtype=dtype, **options), 0.1).layer(0)
    with instruction_set(data.draw(st.sampled_from(ISAS))):
        check_native(
            layer,
            numbers(time, batch, width).to(dtype),
            start(layer, batch),
            None if lengths is None else torch.tensor(lengths),
            data.draw(st.booleans()),
            single=1e-3,  # a single unit may saturate, and then 1 − h² has few digits; wrong shapes are off by more
        )
