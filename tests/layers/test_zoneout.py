"""Zoneout: units that keep their state, from noise that depends on nothing but its numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from registry import CELLS, needs_library, numbers, randomise_
from slimrnn import GRU, LSTM, RNN
from slimrnn.layers import RecurrentStack
from slimrnn.ops import reference
from slimrnn.ops.noise import uniform

INPUT, TIME, BATCH, SIZE = 3, 6, 4, 6
LENGTHS = torch.tensor([4, 6, 1, 3])
SEED = torch.tensor(0x123456789ABCDEF)


def leaves(state: Any) -> list[Tensor]:
    return list(state) if isinstance(state, tuple) else [state]


def outcome(stack: RecurrentStack, backend: str, lengths: Tensor | None = None, seed: int = 3) -> list[Tensor]:
    """Outputs, last states and all gradients."""
    for k in range(len(stack.layers)):
        stack.layer(k).backend = backend
    torch.manual_seed(7)
    x = numbers(TIME, BATCH, INPUT).requires_grad_()
    torch.manual_seed(seed)
    with pytest.MonkeyPatch.context() as patch:
        if backend == "native":
            patch.setattr(reference, "scan", None)
        output, last = stack(x, lengths=lengths)
    found = [output, *leaves(last)]
    loss = torch.stack([(part.abs() * torch.arange(1, part.shape[-1] + 1)).sum() for part in found]).sum()
    inputs = [x, *(p for p in stack.parameters() if p.requires_grad)]
    return [t.detach() for t in (*found, *torch.autograd.grad(loss, inputs))]


def close(actual: list[Tensor], expected: list[Tensor]) -> None:
    torch.testing.assert_close(actual, expected, rtol=1e-10, atol=1e-10)


VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "two directions and layers": {"bidirectional": True, "num_layers": 2},
    "deep": {"transition_depth": 2, "bidirectional": True},
    "leaky": {"leak": 0.4},
    "masks": {"recurrent_dropout": 0.3, "weight_drop": 0.2},
    "checkpoints": {"checkpoint_every": 2, "bidirectional": True},
    "deep checkpoints": {"checkpoint_every": 4, "transition_depth": 3, "bidirectional": True},
}


@needs_library
@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("cell", ["tanh", "lstm-peephole", "gru-before", "lem", "layer-norm-lstm", "unicornn"])
def test_native_is_reference(cell: str, variant: str, ragged: bool) -> None:
    stack = randomise_(CELLS[cell].build(INPUT, SIZE, zoneout=0.3, **VARIANTS[variant]), 0.1)
    lengths = LENGTHS if ragged else None
    close(outcome(stack, "native", lengths), outcome(stack, "reference", lengths))
    assert not torch.equal(outcome(stack, "native", lengths)[0], outcome(stack, "native", lengths, seed=4)[0])
    stack.eval()
    close(outcome(stack, "native", lengths), outcome(stack, "reference", lengths))


@pytest.mark.parametrize("backend", ["reference", pytest.param("native", marks=needs_library)])
@pytest.mark.parametrize("depth", [1, 2])
def test_checkpoints_change_nothing(depth: int, backend: str) -> None:
    options: dict[str, Any] = {"zoneout": (0.3, 0.1), "bidirectional": True, "transition_depth": depth}
    plain = randomise_(LSTM(INPUT, SIZE, dtype=torch.float64, **options))
    pieces = LSTM(INPUT, SIZE, dtype=torch.float64, checkpoint_every=2, **options)
    pieces.load_state_dict(plain.state_dict())
    for lengths in (None, LENGTHS):
        close(outcome(pieces, backend, lengths), outcome(plain, backend, lengths))


@pytest.mark.parametrize("options", [{"delays": 2}, {"delays": 3, "checkpoint_every": 1}, {"skip": 2}])
@needs_library
def test_native_is_reference_with_delays(options: dict[str, Any]) -> None:
    stack = randomise_(GRU(INPUT, SIZE, zoneout=0.3, dtype=torch.float64, **options))
    for lengths in (None, LENGTHS):
        close(outcome(stack, "native", lengths), outcome(stack, "reference", lengths))


@needs_library
def test_complex_states_run_in_plain_torch() -> None:
    stack = randomise_(RNN(INPUT, SIZE, nonlinearity="modrelu", zoneout=0.4, dtype=torch.float64))
    expected = outcome(stack, "reference")
    stack.layer(0).backend = "native"
    torch.manual_seed(7)
    x = numbers(TIME, BATCH, INPUT)
    torch.manual_seed(3)
    with pytest.warns(RuntimeWarning, match="noise on a complex state, which native cells do not have"):
        output = stack(x)[0]
    torch.testing.assert_close(output, expected[0])
    linear = RNN(INPUT, SIZE, nonlinearity="identity", complex=True, zoneout=0.4, dtype=torch.float64).eval()
    close(outcome(linear, "native"), outcome(linear, "reference"))  # an expectation can be native


def integrator(rate: Any, **options: Any) -> RecurrentStack:
    """h ← h + 1, but for the units that keep theirs."""
    stack = RNN(1, 50, nonlinearity="identity", zoneout=rate, dtype=torch.float64, **options)
    with torch.no_grad():
        stack.layer(0).recurrent.nearest_(torch.eye(50, dtype=torch.float64)[None])
        stack.layer(0).input.nearest_(torch.ones(1, 50, 1, dtype=torch.float64))
    return stack


@pytest.mark.parametrize("backend", ["reference", pytest.param("native", marks=needs_library)])
@pytest.mark.parametrize("rate", [0.1, 0.5, 0.85])
def test_so_many_units_keep_their_state(rate: float, backend: str) -> None:
    stack = integrator(rate, bias=False, backend=backend)
    output = stack(torch.ones(20, 30, 1, dtype=torch.float64))[0].detach()
    moved = torch.diff(output, dim=0, prepend=torch.zeros(1, 30, 50))
    assert set(moved.unique().tolist()) == {0.0, 1.0}
    kept = 1 - moved
    spread = 5 * (rate * (1 - rate)) ** 0.5
    assert abs(float(kept.mean()) - rate) < spread / 30000**0.5
    for dims, count in (((0, 1), 600), ((1, 2), 1500), ((0, 2), 1000)):  # each unit, step and row
        assert float((kept.mean(dims) - rate).abs().max()) < spread / count**0.5
    assert len({tuple(row) for row in kept.flatten(0, 1).tolist()}) > 580


def test_every_call_draws_anew_and_a_seed_repeats_it() -> None:
    stack, x = integrator(0.5, bias=False), torch.ones(5, 3, 1, dtype=torch.float64)
    torch.manual_seed(1)
    a, b = stack(x)[0], stack(x)[0]
    torch.manual_seed(1)
    assert not torch.equal(a, b)
    assert torch.equal(stack(x)[0], a)


@needs_library
@pytest.mark.parametrize("cell", ["gru-after", "layer-norm-gru"])
def test_neither_threads_nor_further_rows_change_a_row(cell: str) -> None:
    stack, x = randomise_(CELLS[cell].build(INPUT, 20, zoneout=0.4)), numbers(TIME, 33, INPUT)

    def run(rows: int, threads: int = 1, lengths: Tensor | None = None) -> Tensor:
        torch.set_num_threads(threads)
        torch.manual_seed(3)
        output: Tensor = stack(x[:, :rows], lengths=None if lengths is None else lengths[:rows])[0]
        torch.set_num_threads(1)
        return output.detach()

    whole = run(33)
    assert torch.equal(run(33, 2), whole)
    torch.testing.assert_close(run(7), whole[:, :7], rtol=0, atol=1e-13)
    lengths = torch.arange(33) % TIME + 1
    ragged = run(33, 2, lengths)
    for row in (0, 4, 5, 32):
        torch.testing.assert_close(ragged[: lengths[row], row], whole[: lengths[row], row], rtol=0, atol=1e-13)


def test_eval_takes_the_expectation() -> None:
    stack = randomise_(LSTM(INPUT, SIZE, zoneout=(0.2, 0.6), dtype=torch.float64)).eval()
    layer, x = stack.layer(0), numbers(TIME, BATCH, INPUT)
    w, u = (m.dense().detach().numpy() for m in (layer.recurrent, layer.input))
    b = layer.get_parameter("cell.bias").detach().numpy()
    h = c = np.zeros((BATCH, SIZE))
    for t in range(TIME):
        z = np.einsum("ghi,bi->gbh", u, x[t].numpy()) + np.einsum("ghk,bk->gbh", w, h) + b[:, None]
        i, f, o = (1 / (1 + np.exp(-z[k])) for k in (0, 1, 3))
        new = f * c + i * np.tanh(z[2])
        h, c = 0.2 * h + 0.8 * o * np.tanh(new), 0.6 * c + 0.4 * new
    output, (_, last_c) = stack(x)
    np.testing.assert_allclose(output[-1].detach().numpy(), h, rtol=0, atol=1e-12)
    np.testing.assert_allclose(last_c[0].detach().numpy(), c, rtol=0, atol=1e-12)


def test_rates_are_checked() -> None:
    with pytest.raises(ValueError, match="expected zoneout to be one number or 2, one for each state, got 3"):
        LSTM(3, 4, zoneout=(0.1, 0.2, 0.3))
    with pytest.raises(ValueError, match="zoneout"):
        LSTM(3, 4, zoneout=1.5)
    assert LSTM(3, 4, zoneout=(0.0, 0.0)).layer(0).zoneout is None


# --- the noise itself -----------------------------------------------------------------------------------------------


def by_numpy(seed: int, stream: int, step: int, rows: int, units: int) -> np.ndarray[Any, Any]:
    """The mixing of csrc/cells/noise.h, in 32 bits that overflow."""

    def mixed(x: Any) -> Any:
        x = np.asarray(x, dtype=np.uint32)
        x = (x ^ (x >> np.uint32(16))) * np.uint32(0x7FEB352D)
        x = (x ^ (x >> np.uint32(15))) * np.uint32(0x846CA68B)
        return x ^ (x >> np.uint32(16))

    with np.errstate(over="ignore"):
        key = mixed(seed & 0xFFFFFFFF)
        for part in (seed >> 32, stream, step):
            key = mixed(key ^ np.uint32(part))
        keys = mixed(key ^ np.arange(rows, dtype=np.uint32))[:, None]
        bits: np.ndarray[Any, Any] = mixed(keys + np.arange(units, dtype=np.uint32) * np.uint32(0x9E3779B9))
    return (bits >> np.uint32(8)).astype(np.float64) / 2**24


@pytest.mark.parametrize("seed", [0, 1, 2**32 - 1, 2**32, 0x123456789ABCDEF, 2**62 - 1])
def test_noise_is_the_documented_mixing(seed: int) -> None:
    for stream, step in ((0, 0), (3, 17), (7, 2**31)):
        found = uniform(torch.tensor(seed), stream, step, torch.zeros(9, 21, dtype=torch.float64))
        np.testing.assert_array_equal(found.numpy(), by_numpy(seed, stream, step, 9, 21))


def test_noise_is_uniform() -> None:
    values = uniform(SEED, 0, 5, torch.zeros(500, 400, dtype=torch.float64)).flatten()
    count = values.numel()
    assert abs(float(values.mean()) - 0.5) < 5 / (12 * count) ** 0.5
    bins = torch.histc(values, 100, 0, 1)
    chi = float(((bins - count / 100) ** 2 / (count / 100)).sum())
    assert 45 < chi < 170  # 99 ± 5 · 14
    steps = torch.arange(1, count + 1) / count
    assert float((values.sort().values - steps).abs().max()) < 2.2 / count**0.5  # Kolmogorov and Smirnov
    assert float(values.min()) >= 0
    assert float(values.max()) < 1


def test_noise_differs_wherever_it_should() -> None:
    like = torch.zeros(200, 200, dtype=torch.float64)
    base = uniform(SEED, 0, 5, like)
    others = [
        uniform(SEED, 1, 5, like),
        uniform(SEED, 0, 6, like),
        uniform(SEED, 5, 0, like),
        uniform(SEED + 1, 0, 5, like),
        uniform(SEED + 2**32, 0, 5, like),
        base.roll(1, 0),
        base.roll(1, 1),
        base.mT,
    ]
    for other in others:
        correlation = float(((base - 0.5) * (other - 0.5)).mean() * 12)
        assert abs(correlation) < 0.03
    assert uniform(SEED, 0, 5, like.float()).dtype == torch.float32
    assert torch.equal(uniform(SEED, 0, 5, like.float()).double(), base)
