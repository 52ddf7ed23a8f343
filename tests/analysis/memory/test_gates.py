"""Gates against the cells' equations written out in numpy, torch.nn's layers, and bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

from registry import BACKENDS
from slimrnn import GRU, LSTM, RNN, BlockDiagonal, Diagonal, FullUnitary, LowRank
from slimrnn.analysis.memory.gates import GateActivity, gate_values, measure_gates
from slimrnn.layers import RecurrentStack
from slimrnn.layers.recurrent_layer import RecurrentLayer

STEPS, BATCH, INPUTS, HIDDEN = 11, 3, 2, 6
LENGTHS = [11, 4, 7]

Array = NDArray[Any]
Gates = dict[str, list[Array]]


def sigmoid(z: Array) -> Array:
    return 1 / (1 + np.exp(-z))


def array(tensor: torch.Tensor | None, *shape: int) -> Array:
    return np.zeros(shape) if tensor is None else tensor.detach().resolve_conj().numpy()


def written_out(core: RecurrentLayer, x_TI: Array, start: list[Array]) -> tuple[Gates, Array]:
    """The gates and states of one sequence, step by step, from the equations in the cells' docstrings."""
    h, c = [start[0]] * max(core.delay, core.skip or 1), [start[-1]] * core.delay  # the past, the newest last
    alpha = np.zeros(HIDDEN) if core.leak is None else array(core.leak())
    found: Gates = {}
    U, V = array(core.input.dense()), None if core.skipped is None else array(core.skipped.dense())
    for x in x_TI:
        now = (h[-core.delay], c[-core.delay])
        for number, (cell, inner) in enumerate(core.transitions):
            b = array(cell.input_bias(), len(cell.gates), HIDDEN)
            z = b + U @ x if number == 0 else b
            z = z + V @ h[-(core.skip or 1)] if V is not None and number == 0 else z
            before = now[0]
            gates, now = one_step(cell, z, array(inner.dense()), *now)
            now = (alpha * before + (1 - alpha) * now[0], now[1])
            for name, values in gates.items():
                found.setdefault(f"{name} {number}" if number else name, []).append(values)
        h.append(now[0])
        c.append(now[1])
    return found, np.stack(h[-len(x_TI) :])


def one_step(cell: Any, z: Array, W: Array, h: Array, c: Array) -> tuple[dict[str, Array], tuple[Array, Array]]:
    if len(cell.gates) == 3:
        r, u = sigmoid(z[0] + W[0] @ h), sigmoid(z[1] + W[1] @ h)
        inner = W[2] @ (r * h) if cell.reset == "before" else r * (W[2] @ h + array(cell.recurrent_bias, HIDDEN))
        n = np.tanh(z[2] + inner)
        return {"reset": r, "update": u, "candidate": n}, ((1 - u) * n + u * h, c)
    if len(cell.gates) == 4:
        p = array(cell.peephole, 3, HIDDEN)
        i, f = sigmoid(z[0] + W[0] @ h + p[0] * c), sigmoid(z[1] + W[1] @ h + p[1] * c)
        g = np.tanh(z[2] + W[2] @ h)
        c = f * c + i * g
        o = sigmoid(z[3] + W[3] @ h + p[2] * c)
        return {"input": i, "forget": f, "candidate": g, "output": o}, (o * np.tanh(c), c)
    a = z[0] + W[0] @ h
    if cell.nonlinearity == "modrelu":
        h = a / np.abs(a) * np.maximum(np.abs(a) + array(cell.bias)[0], 0)
    else:
        h = {"tanh": np.tanh(a.real), "relu": np.maximum(a.real, 0), "identity": a}[cell.nonlinearity]
    return {"hidden": np.abs(h) if np.iscomplexobj(h) else h}, (h, c)


LAYERS: dict[str, tuple[type[RecurrentStack], dict[str, Any]]] = {
    "gru": (GRU, {"update_bias": 1.0}),
    "gru before": (GRU, {"reset": "before", "structure": LowRank(2) + Diagonal()}),
    "gru without bias": (GRU, {"bias": False}),
    "gru leak": (GRU, {"leak": 0.7}),
    "gru delay": (GRU, {"delays": 3, "structure": BlockDiagonal(2)}),
    "gru skip": (GRU, {"skip": 3}),
    "gru deep": (GRU, {"transition_depth": 2, "leak": 0.3}),
    "lstm": (LSTM, {"forget_bias": 1.0}),
    "lstm peephole": (LSTM, {"peephole": True}),
    "lstm peephole delay leak": (LSTM, {"peephole": True, "delays": 2, "leak": 0.4}),
    "lstm peephole skip": (LSTM, {"skip": 2, "peephole": True}),
    "lstm deep": (LSTM, {"transition_depth": 2, "peephole": True}),
    "tanh": (RNN, {}),
    "tanh leak": (RNN, {"leak": 0.6, "learn_initial_state": True}),
    "tanh deep": (RNN, {"transition_depth": 3}),
    "relu": (RNN, {"nonlinearity": "relu"}),
    "modrelu": (RNN, {"nonlinearity": "modrelu", "structure": FullUnitary()}),
    "modrelu real": (RNN, {"nonlinearity": "modrelu", "complex": False}),
    "identity": (RNN, {"nonlinearity": "identity", "complex": True}),
}


def build(name: str, **options: Any) -> RecurrentStack:
    make, own = LAYERS[name]
    torch.manual_seed(0)
    layer = make(INPUTS, HIDDEN, dtype=torch.float64, **own, **options)  # type: ignore[arg-type]
    for key, parameter in layer.named_parameters():
        if "recurrent" not in key or not isinstance(own.get("structure"), FullUnitary):
            nn.init.normal_(parameter, std=0.8)
    return layer


def inputs(seed: int = 1) -> torch.Tensor:
    return torch.randn(STEPS, BATCH, INPUTS, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", LAYERS)
def test_gates_are_those_of_the_equations(name: str, reverse: bool, backend: str) -> None:
    """Every sequence by itself, without padding, step by step; the second direction on the sequence turned round."""
    layer, x = build(name, bidirectional=reverse, backend=backend), inputs()
    core = layer.cores[-1]
    ours = gate_values(layer, x, LENGTHS)[-1]
    start = [array(part)[0, :HIDDEN] for part in core.initial_state(1)]
    for b, length in enumerate(LENGTHS):
        alone = x[:length, b].numpy()
        expected, _ = written_out(core, alone[::-1] if reverse else alone, start)
        for gate, values in expected.items():
            wanted = np.stack(values[::-1] if reverse else values)
            np.testing.assert_allclose(ours[gate][:length, b], wanted, rtol=0, atol=1e-10)
            assert np.isnan(ours[gate][length:, b]).all()


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("make", [nn.GRU, nn.LSTM, nn.RNN])
def test_torch_layers_are_ours_with_their_weights(make: Any, bidirectional: bool) -> None:
    torch.manual_seed(0)
    theirs = make(INPUTS, HIDDEN, 2, bidirectional=bidirectional, batch_first=True, dropout=0.5, dtype=torch.float64)
    kinds: dict[Any, type[RecurrentStack]] = {nn.GRU: GRU, nn.LSTM: LSTM, nn.RNN: RNN}
    ours = kinds[make].from_torch(theirs)
    x = inputs().transpose(0, 1)
    for a, b in zip(gate_values(theirs, x, LENGTHS), gate_values(ours, x, LENGTHS), strict=True):
        assert a.keys() == b.keys()
        for gate, values in a.items():
            np.testing.assert_array_equal(values, b[gate])
    assert theirs.training
    assert ours.training


def test_gru_of_torch_follows_from_its_gates() -> None:
    """torch's own outputs, put together from the gates: h = (1 − u) n + u h_before."""
    torch.manual_seed(0)
    gru = nn.GRU(INPUTS, HIDDEN, dtype=torch.float64)
    (gates,) = gate_values(gru, inputs())
    h = gru(inputs())[0].detach().numpy()
    before = np.concatenate([np.zeros_like(h[:1]), h[:-1]])
    u, n = gates["update"], gates["candidate"]
    np.testing.assert_allclose((1 - u) * n + u * before, h, rtol=0, atol=1e-12)


def test_lstm_of_torch_follows_from_its_gates() -> None:
    torch.manual_seed(0)
    lstm = nn.LSTM(INPUTS, HIDDEN, dtype=torch.float64)
    (gates,) = gate_values(lstm, inputs())
    c = np.zeros((BATCH, HIDDEN))
    h = lstm(inputs())[0].detach().numpy()
    for t in range(STEPS):
        c = gates["forget"][t] * c + gates["input"][t] * gates["candidate"][t]
        np.testing.assert_allclose(gates["output"][t] * np.tanh(c), h[t], rtol=0, atol=1e-12)


def named(found: list[GateActivity], name: str, core: int = 0) -> GateActivity:
    (one,) = (gate for gate in found if gate.name == name and gate.core == core)
    return one


@pytest.mark.parametrize("name", ["gru", "lstm peephole", "tanh", "relu"])
def test_statistics_are_those_of_the_values_without_padding(name: str) -> None:
    layer, x = build(name, num_layers=2), inputs()
    values = gate_values(layer, x, LENGTHS)
    found = measure_gates(layer, x, LENGTHS, bins=7)
    assert [gate.layer for gate in found] == sorted(gate.layer for gate in found)
    for gate in found:
        flat = values[gate.core][gate.name].reshape(-1, HIDDEN)
        flat = flat[~np.isnan(flat[:, 0])]
        assert len(flat) == sum(LENGTHS)
        assert gate.counts.sum() == flat.size
        np.testing.assert_array_equal(gate.counts, np.histogram(flat, gate.edges)[0])
        np.testing.assert_allclose(gate.quantiles, np.quantile(flat, gate.levels))
        for ours, wanted in ((gate.mean, flat.mean(0)), (gate.smallest, flat.min(0)), (gate.largest, flat.max(0))):
            np.testing.assert_allclose(ours, wanted)
        if gate.kind == "relu":
            np.testing.assert_array_equal(gate.low_share, (flat == 0).mean(0))
            assert gate.high == 0
        else:
            low, high = (-0.8, 0.8) if gate.kind == "tanh" else (0.1, 0.9)
            np.testing.assert_array_equal(gate.low_share, (flat < low).mean(0))
            np.testing.assert_array_equal(gate.high_share, (flat > high).mean(0))
            assert gate.saturated == pytest.approx(((flat < low) | (flat > high)).mean())


def test_packed_equals_padded() -> None:
    layer, x = build("lstm peephole"), inputs()
    packed = pack_padded_sequence(x, torch.tensor(LENGTHS), enforce_sorted=False)
    for a, b in zip(measure_gates(layer, packed), measure_gates(layer, x, LENGTHS), strict=True):
        np.testing.assert_array_equal(a.mean, b.mean)
        np.testing.assert_array_equal(a.counts, b.counts)


def test_padding_may_hold_anything() -> None:
    layer, x = build("gru"), inputs()
    beyond = torch.arange(STEPS)[:, None] >= torch.tensor(LENGTHS)
    spoilt = x.masked_fill(beyond.unsqueeze(-1), torch.nan)
    for a, b in zip(measure_gates(layer, spoilt, LENGTHS), measure_gates(layer, x, LENGTHS), strict=True):
        np.testing.assert_array_equal(a.quantiles, b.quantiles)


def test_bound_of_lemma_1_2_and_forgetting_times() -> None:
    """A gate without weights is σ(bias) throughout: 1/(1 − f) = 1 + e^bias, even where f rounds to one."""
    layer = GRU(INPUTS, 3)
    biases = torch.tensor([0.0, 4.0, 30.0])
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.zero_()
        layer.cell.get_parameter("bias")[1] = biases
    gate = named(measure_gates(layer, inputs().float()), "update")
    expected = 1 + np.exp(biases.double().numpy())
    assert gate.alpha is not None
    assert gate.forgetting_time is not None
    np.testing.assert_allclose(gate.alpha, 1 / expected, rtol=1e-12)
    np.testing.assert_allclose(gate.forgetting_time, expected, rtol=1e-12)
    np.testing.assert_array_equal(gate.longest_forgetting_time, 1 / gate.alpha)
    assert named(measure_gates(layer, inputs().float()), "reset").forgetting_time is None


def test_forgetting_time_is_that_of_the_product_of_the_gates() -> None:
    layer, x = build("lstm"), inputs()
    gate, values = named(measure_gates(layer, x), "forget"), gate_values(layer, x)[0]["forget"]
    per_step = np.prod(values.reshape(-1, HIDDEN), 0) ** (1 / (STEPS * BATCH))
    assert gate.forgetting_time == pytest.approx(1 / (1 - per_step))
    assert gate.longest_forgetting_time == pytest.approx(1 / (1 - values.max((0, 1))))


def test_delays_lengthen_the_forgetting_time() -> None:
    layer = build("gru delay")
    gate = named(measure_gates(layer, inputs()), "update")
    assert gate.longest_forgetting_time is not None
    assert gate.alpha is not None
    np.testing.assert_allclose(gate.longest_forgetting_time, 3 / gate.alpha)


def test_groups_of_delays_are_measured_one_by_one() -> None:
    torch.manual_seed(0)
    layer = GRU(INPUTS, HIDDEN, delays=[1, 2], dtype=torch.float64)
    found = measure_gates(layer, inputs(), LENGTHS)
    assert [(gate.core, gate.layer, gate.name) for gate in found] == [
        (core, 0, name) for core in (0, 1) for name in ("reset", "update", "candidate")
    ]


def test_leaks_carry() -> None:
    """In a GRU with a leak, α + (1 − α) u carries; elsewhere α beside the gates."""
    gru, lstm, rnn = build("gru leak"), build("lstm peephole delay leak"), build("tanh leak")
    values = gate_values(gru, inputs())[0]
    alpha = array(gru.cores[0].leak())  # type: ignore[misc]
    np.testing.assert_allclose(values["carry"], alpha + (1 - alpha) * values["update"])
    carrying = {gate.name for gate in measure_gates(gru, inputs()) if gate.forgetting_time is not None}
    assert carrying == {"carry"}
    carrying = {gate.name for gate in measure_gates(lstm, inputs()) if gate.forgetting_time is not None}
    assert carrying == {"forget", "leak"}
    leak = named(measure_gates(rnn, inputs()), "leak")
    assert leak.forgetting_time == pytest.approx(np.full(HIDDEN, 2.5))


@pytest.mark.parametrize("name", ["lstm", "gru skip", "gru delay", "lstm peephole skip", "lstm peephole delay leak"])
def test_a_state_to_start_from(name: str) -> None:
    layer, x = build(name), inputs()
    _, state = layer(x[:6])
    whole = gate_values(layer, x)[0]
    for gate, values in gate_values(layer, x[6:], hx=state)[0].items():
        np.testing.assert_allclose(values, whole[gate][6:], rtol=0, atol=1e-12)


def test_bad_input_is_refused() -> None:
    layer, x = build("gru"), inputs()
    with pytest.raises(ValueError, match=r"expected 0 <= low < high <= 1, got 0\.9 and 0\.1"):
        measure_gates(layer, x, low=0.9, high=0.1)
    with pytest.raises(ValueError, match="expected bins to be a positive int, got 0"):
        measure_gates(layer, x, bins=0)
    with pytest.raises(ValueError, match="expected finite inputs and states, got others in layer 0"):
        measure_gates(layer, x.index_fill(0, torch.tensor(3), torch.nan))
    with pytest.raises(ValueError, match="expected input of width input_size=2, got 3"):
        measure_gates(layer, torch.zeros(4, 2, 3, dtype=torch.float64))
    with pytest.raises(ValueError, match="expected at least one sequence, got none"):
        measure_gates(layer, x[:, :0])
    with pytest.raises(TypeError, match=r"expected an RNN, GRU or LSTM of slimrnn or torch\.nn, got torch\.nn"):
        measure_gates(nn.Linear(2, 3), x)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="expected an LSTM without projection, got proj_size=2"):
        measure_gates(nn.LSTM(INPUTS, HIDDEN, proj_size=2), x)
