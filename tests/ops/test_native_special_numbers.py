"""NaN and infinity go where the reference lets them go."""

from __future__ import annotations

import math

import pytest
import torch
from native_cases import BATCH, INPUT, ISAS, LENGTHS, TIME, build, few_pairs, instruction_set, on, precisions, start
from torch import Tensor

from registry import CELLS, FEW_PAIRS, needs_library, numbers
from slimrnn import RNN
from slimrnn.layers.recurrent_layer import RecurrentLayer

pytestmark = needs_library
VALUES = (math.nan, math.inf, -math.inf)


def parts(layer: RecurrentLayer, x: Tensor, state: tuple[Tensor, ...], lengths: Tensor | None = None) -> list[Tensor]:
    """Outputs and last states."""
    output, last = layer(x, state, lengths)
    if layer.cell.complex:
        output = torch.complex(*output.chunk(2, -1))
    return [output, *last]


def check_masks(layer: RecurrentLayer, x: Tensor, state: tuple[Tensor, ...]) -> None:
    with torch.no_grad():
        actual, expected = (parts(on(backend, layer), x, state) for backend in ("native", "reference"))
    for a, b in zip(actual, expected, strict=True):
        finite = torch.isfinite(b)
        assert torch.equal(torch.isfinite(a), finite)
        tolerance = 1e-10 if x.dtype == torch.float64 else 1e-4
        torch.testing.assert_close(a[finite], b[finite], rtol=tolerance, atol=tolerance)
        if not b.is_complex():  # ∞ times a complex number is ∞ or NaN in either part: torch's own products differ
            assert torch.equal(torch.isnan(a), torch.isnan(b))
            assert torch.equal(a[torch.isinf(b)], b[torch.isinf(b)])


@precisions
@few_pairs
def test_special_number_in_the_input(cell: str, structure: str, dtype: torch.dtype) -> None:
    layer = build(cell, structure, dtype=dtype)
    for value in VALUES:
        x = numbers(TIME, BATCH, INPUT).to(dtype)
        x[1, 1, 2] = value
        check_masks(layer, x, start(layer))


@precisions
@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("cell", CELLS)
def test_special_number_in_the_state(cell: str, value: float, dtype: torch.dtype) -> None:
    for structure in (s for c, s in FEW_PAIRS if c == cell):
        layer = build(cell, structure, dtype=dtype)
        for which in range(layer.cell.states):
            state = start(layer)
            state[which][1, 3] = value
            check_masks(layer, numbers(TIME, BATCH, INPUT).to(dtype), state)


@pytest.mark.parametrize("cell", CELLS)
def test_special_number_beyond_a_sequence_stays_there(cell: str) -> None:
    layer = on("native", build(cell))
    x, state = numbers(TIME, BATCH, INPUT), start(layer)
    clean = parts(layer, x, state, LENGTHS)
    for value in VALUES:
        for b, length in enumerate(LENGTHS.tolist()):
            x[length:, b] = value
        assert all(torch.equal(a, c) for a, c in zip(parts(layer, x, state, LENGTHS), clean, strict=True))


@pytest.mark.parametrize("scale", [1e-30, 1e-10, 1.0, 30.0, 100.0, 1000.0, 1e10, 1e25])
@pytest.mark.parametrize("cell", CELLS)
def test_large_and_small_numbers(cell: str, scale: float) -> None:
    """Arguments of exp, tanh and the square root far from one: series, saturation, squares that are no numbers."""
    if cell.startswith("layer-norm") and scale > 1e20:
        return  # a variance beyond all numbers, in both precisions
    single = 1e-4 if cell == "mingru" else 1e-5  # whose candidate is linear: what rounding does to a gate is not damped
    for dtype, power, tolerance in ((torch.float64, 7, 1e-12), (torch.float32, 1, single)):
        layer = build(cell, "diagonal", dtype=dtype)
        size = scale**power  # float64: up to 1e175
        x = (size * numbers(1, BATCH, INPUT)).to(dtype)
        zeros = tuple(torch.zeros_like(s) for s in start(layer))
        with torch.no_grad():
            actual, expected = (parts(on(backend, layer), x, zeros) for backend in ("native", "reference"))
        for a, b in zip(actual, expected, strict=True):
            torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


@precisions
@pytest.mark.parametrize("isa", ISAS)
def test_tanh_and_sigmoid_to_the_last_digits(isa: str, dtype: torch.dtype) -> None:
    """Weights that let the functions be seen: h = tanh(x), and c = σ(x) with only the forget gate open."""
    some = torch.cat([torch.linspace(-20, 20, 9001), torch.logspace(-30, 1, 999), -torch.logspace(-30, 1, 999)])
    x = some.to(dtype).reshape(1, -1, 1)
    tanh, lstm = (CELLS[cell].build(1, 1, dtype=dtype).layer(0) for cell in ("tanh", "lstm"))
    with torch.no_grad(), instruction_set(isa):
        for layer, gate in ((tanh, 0), (lstm, 1)):
            for p in layer.parameters():
                p.zero_()
            layer.get_parameter("input.weight")[gate] = 1.0
        zero = torch.zeros(x.shape[1], 1, dtype=dtype)
        h, (_, c) = on("native", tanh)(x, (zero,))[0], on("native", lstm)(x, (zero, zero + 1))[1]
    exact = x.double()
    few = 4 * torch.finfo(dtype).eps
    torch.testing.assert_close(h.double(), exact.tanh(), rtol=few, atol=0)
    torch.testing.assert_close(c.double(), exact[0].sigmoid(), rtol=few, atol=0)


def test_modrelu_passes_nan_to_the_gradients() -> None:
    rnn = RNN(2, 4, nonlinearity="modrelu", dtype=torch.float64)
    x = torch.tensor([[[float("nan"), 1.0]]], dtype=torch.float64, requires_grad=True)
    rnn(x)[0].sum().backward()
    bias = rnn.cell.get_parameter("bias").grad
    assert x.grad is not None
    assert bias is not None
    assert x.grad.isnan().all()
    assert bias.isnan().any()
