"""Rounding: weights and vectors of any size, what is not finite, and a GRU written out again in numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from int8_cases import ISAS, assert_same_bits, emulated, in_int8, instruction_set
from torch import nn

from registry import needs_library
from slimrnn import GRU, LSTM, Diagonal, LowRank
from slimrnn.exporting.int8.rows import as_floats, rounded_rows, rounded_vectors

FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(st.lists(FLOATS, min_size=1, max_size=9))
def test_a_row_keeps_every_weight_to_half_a_step(row: list[float]) -> None:
    weight = torch.tensor([row])
    numbers, scale = rounded_rows(weight)
    assert int(numbers.min()) >= -127
    error = (as_floats(numbers, scale).double() - weight.double()).abs()
    assert bool((error <= 0.5001 * scale.double() + 2e-45).all())


@given(st.lists(FLOATS, min_size=1, max_size=9))
def test_a_vector_never_saturates(values: list[float]) -> None:
    v = torch.tensor([values])
    numbers, scale = rounded_vectors(v)
    assert float(numbers.abs().max()) <= 127
    counts = float(v.abs().max()) >= 2.0**-100
    error = (numbers * scale.double().unsqueeze(-1) - v.double()).abs()
    assert not counts or bool((error <= 0.5001 * scale.double()).all())


@needs_library
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("size", [1e30, 1e-30, 1e-41, 0.0])
def test_extreme_weights_give_the_bits_of_the_emulation(isa: str, size: float) -> None:
    rnn = GRU(3, 9, structure=LowRank(3) + Diagonal())
    with torch.no_grad():
        for p in rnn.parameters():
            p.mul_(size)
        parts: Any = rnn.layer(0).recurrent.parts
        parts[0].left[0, 2] = 0  # a row of zeros
    q, x = in_int8(rnn), torch.randn(5, 4, 3)
    with instruction_set(isa), torch.no_grad():
        assert_same_bits(q(x), emulated(q)(x))


@needs_library
@pytest.mark.parametrize("isa", ISAS)
def test_extreme_inputs_give_the_bits_of_the_emulation_and_never_a_plausible_number(isa: str) -> None:
    q = in_int8(LSTM(3, 9))
    x = torch.randn(4, 7, 3)
    for row, value in enumerate((torch.inf, -torch.inf, torch.nan, 1e38, 1e-40, 0.0)):
        x[1, row, 1] = value
        x[1, row, 2] = 0
    with instruction_set(isa), torch.no_grad():
        output, state = q(x)
        assert_same_bits((output, state), emulated(q)(x))
        state = q.initial_state(7)
        for t in range(4):
            y, state = q.step(x[t], state)
            assert_same_bits(y, output[t])
    assert bool(output[1:, :3].isnan().all())
    assert bool(output[:, 3:].isfinite().all())
    assert bool(output[0].isfinite().all())


@needs_library
@pytest.mark.parametrize("isa", ISAS)
def test_a_state_beyond_one_is_not_cut(isa: str) -> None:
    rnn = GRU(3, 16)
    q, x, start = in_int8(rnn), torch.randn(1, 2, 3), 40 * torch.randn(1, 2, 16)
    with instruction_set(isa), torch.no_grad():
        found, _ = q(x, start)
        assert_same_bits(found, emulated(q)(x, start)[0])
        assert float((found - rnn(x, start)[0]).abs().max()) < 0.02 * float(start.abs().max())


def test_what_is_not_finite_in_a_linear_layer_is_nan_in_its_row() -> None:
    q = in_int8(nn.Linear(4, 3))
    x = torch.ones(3, 4)
    x[1, 2] = torch.inf
    for net in (q, emulated(q)):
        y = net(x)
        assert bool(y[1].isnan().all())
        assert bool(y[[0, 2]].isfinite().all())


# --- the same again, by somebody who has not read the code -----------------------------------------------------------

F = np.float32
Array = Any


def numpy_product(start: Array, weight: Array, scale: Array, v: Array) -> Array:
    most = np.abs(v).max()
    q = np.rint(v * (F(127) / most)).astype(np.int64) if most else np.zeros(len(v), np.int64)
    sums = (weight.astype(np.int64) @ q).astype(np.float32)
    return start + sums * (scale * (most / F(127)))


def numpy_exp(x: Array) -> tuple[Array, Array]:
    """2^k and p of e^x = 2^k (1 + p)"""
    k = np.rint(x * F(1.44269504088896341)).astype(np.float32)
    r = x - k * F(0.693145751953125) - k * F(1.428606765330187e-6)
    r2 = r * r
    q = r2 * F(1.394136437e-3) + (r * F(8.367197464e-3) + F(4.166635351e-2))
    q = r2 * q + (r * F(1.666653853e-1) + F(5.000000045e-1))
    return np.ldexp(F(1), k.astype(np.int32)), r + r2 * q


def numpy_sigmoid(x: Array) -> Array:
    scale, p = numpy_exp(-x)
    return F(1) / ((p + F(1)) * scale + F(1))


def numpy_tanh(x: Array) -> Array:
    scale, p = numpy_exp(F(2) * x)
    m = scale * p + (scale - F(1))
    return m / (m + F(2))


def test_a_gru_in_numpy_has_the_same_bits() -> None:
    q = in_int8(GRU(4, 11))
    tensors = {name.removeprefix("layers.0."): t.numpy() for name, t in q.state_dict().items()}
    u, u_scale, bias, inner = (tensors[name] for name in ("u", "u_scale", "bias_0", "own"))
    w, w_scale = tensors["weight_0"], tensors["weight_1"]
    x, h = torch.randn(6, 4), np.zeros(11, np.float32)
    found = []
    for x_t in x.numpy():
        wx = [numpy_product(bias[g], u[g], u_scale[g], x_t) for g in range(3)]
        starts = [wx[0], wx[1], inner[0, 0]]
        r, z, c = (numpy_product(starts[g], w[g], w_scale[g], h) for g in range(3))
        r, z = numpy_sigmoid(r), numpy_sigmoid(z)
        n = numpy_tanh(wx[2] + r * c)
        h = n + z * (h - n)
        found.append(h)
    assert np.asarray(found).dtype == np.float32
    assert_same_bits(q(x)[0], torch.from_numpy(np.stack(found)))
