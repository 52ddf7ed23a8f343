"""The cells that torch has, and their relatives, compute their equations, written out a second time in numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from registry import STRUCTURES, TORCH_CELLS, numbers, randomise_
from slimrnn import LSTM, RNN
from slimrnn.cells import ElmanCell, GRUCell, LSTMCell
from slimrnn.cells.elman import modrelu
from slimrnn.layers import RecurrentStack

Array = npt.NDArray[Any]  # real or complex, as the state


def sigmoid(z: Array) -> Array:
    return 1 / (1 + np.exp(-z))


def parts(stack: RecurrentStack) -> list[tuple[Array, Array, dict[str, Array]]]:
    """Recurrent and input matrices and own parameters of every transition; only the first has an input."""
    layer, found = stack.layer(0), []
    for number, (cell, recurrent) in enumerate(layer.transitions):
        u = layer.input.dense().detach().numpy()
        own = {name: p.detach().numpy() for name, p in cell.named_parameters()}
        found.append((recurrent.dense().detach().numpy(), u if number == 0 else np.zeros_like(u), own))
    return found


def elman(w: Array, u: Array, own: dict[str, Array], x: Array, h: Array, cell: ElmanCell) -> Array:
    z = u[0] @ x + w[0] @ h
    if cell.nonlinearity == "modrelu":
        size = np.abs(z) + own["bias"][0]
        return np.where(size > 0, size * z / np.abs(z), 0)
    bias = own["bias"][0]
    z = z + (bias[:, 0] + 1j * bias[:, 1] if cell.complex else bias)
    values: dict[str, Array] = {"tanh": np.tanh(z), "relu": np.maximum(z.real, 0), "identity": z}
    return values[cell.nonlinearity]


def lstm(w: Array, u: Array, own: dict[str, Array], x: Array, h: Array, c: Array) -> tuple[Array, Array]:
    i, f, g, o = (u[k] @ x + w[k] @ h + own["bias"][k] for k in range(4))
    p = own.get("peephole", np.zeros((3, len(h))))
    c_new = sigmoid(f + p[1] * c) * c + sigmoid(i + p[0] * c) * np.tanh(g)
    return sigmoid(o + p[2] * c_new) * np.tanh(c_new), c_new


def gru(w: Array, u: Array, own: dict[str, Array], x: Array, h: Array, cell: GRUCell) -> Array:
    b = own["bias"]
    r, z = (sigmoid(u[k] @ x + w[k] @ h + b[k]) for k in range(2))
    product = r * (w[2] @ h + own["recurrent_bias"]) if cell.reset == "after" else w[2] @ (r * h)
    candidate = np.tanh(u[2] @ x + b[2] + product)
    return np.asarray((1 - z) * candidate + z * h)


@pytest.mark.parametrize("structure", ["dense", "low-rank+diagonal", "kronecker-3"])
@pytest.mark.parametrize("name", TORCH_CELLS)
def test_cell_computes_its_equation(name: str, structure: str) -> None:
    stack = randomise_(TORCH_CELLS[name].build(5, 12, structure=STRUCTURES[structure]))
    leak = stack.layer(0).leak
    alpha = np.zeros(12) if leak is None else leak().detach().numpy()
    x = numbers(6, 5).numpy()
    h = np.zeros(12, dtype=complex if stack.cell.complex else float)
    c = np.zeros(12)
    expected = []
    for x_t in x:
        for w, u, own in parts(stack):
            before = h
            if isinstance(stack.cell, LSTMCell):
                h, c = lstm(w, u, own, x_t, h, c)
            elif isinstance(stack.cell, GRUCell):
                h = gru(w, u, own, x_t, h, stack.cell)
            else:
                assert isinstance(stack.cell, ElmanCell)
                h = elman(w, u, own, x_t, h, stack.cell)
            h = alpha * before + (1 - alpha) * h
        expected.append(np.concatenate([h.real, h.imag]) if stack.cell.complex else h)
    output, last = stack(torch.from_numpy(x))
    np.testing.assert_allclose(output.detach().numpy(), np.stack(expected), rtol=1e-12, atol=1e-12)
    final = last[0] if isinstance(last, tuple) else last
    np.testing.assert_allclose(final[0].detach().numpy(), h, rtol=1e-12, atol=1e-12)


def test_initial_biases() -> None:
    forget = LSTMCell(3, forget_bias=1.5).bias
    update = GRUCell(3, update_bias=4.0).bias
    assert forget is not None
    assert update is not None
    assert forget.tolist() == [[0, 0, 0], [1.5] * 3, [0, 0, 0], [0, 0, 0]]
    assert update.tolist() == [[0, 0, 0], [4.0] * 3, [0, 0, 0]]
    assert GRUCell(3, reset="before").recurrent_bias is None


@pytest.mark.parametrize(
    "given", [(0, 6), [0.0, 2.0, 4.0, 6.0], torch.tensor([0, 6]), torch.linspace(0, 6, 4), np.linspace(0, 6, 4)]
)
def test_initial_biases_may_be_a_range_over_the_units_or_one_for_each(given: Any) -> None:
    for bias in (GRUCell(4, update_bias=given).bias, LSTM(3, 4, 2, forget_bias=given).layer(1).cell.bias):
        assert bias is not None
        assert bias[1].tolist() == [0.0, 2.0, 4.0, 6.0]
        assert bias[0].tolist() == [0.0] * 4


def test_of_two_units_a_range_is_one_bias_for_each() -> None:
    bias = GRUCell(2, update_bias=[3.0, 1.0]).bias
    assert bias is not None
    assert bias[1].tolist() == [3.0, 1.0]


@pytest.mark.parametrize("complex", [False, True])
def test_modrelu_at_zero_has_value_and_gradient_zero(complex: bool) -> None:
    z = torch.zeros(3, dtype=torch.complex128 if complex else torch.float64, requires_grad=True)
    bias = torch.tensor([-1.0, 0.0, 1.0], dtype=torch.float64, requires_grad=True)
    h = modrelu(z, bias)
    h.abs().sum().backward()
    assert z.grad is not None
    assert bias.grad is not None
    assert torch.equal(h, torch.zeros_like(h))
    assert torch.isfinite(torch.view_as_real(z.grad) if complex else z.grad).all()
    assert torch.isfinite(bias.grad).all()


@pytest.mark.parametrize("complex", [False, True])
def test_modrelu_below_its_bias_is_silent_at_the_start(complex: bool) -> None:
    layer = RNN(2, 5, nonlinearity="modrelu", complex=complex, modrelu_bias=-0.25, dtype=torch.float64, num_layers=2)
    biases = [p for name, p in layer.named_parameters() if name.endswith("cell.bias")]
    assert len(biases) == 2
    assert all(bias.eq(-0.25).all() for bias in biases)
    output, _ = layer(torch.zeros(3, 1, 2, dtype=torch.float64))
    assert torch.all(output == 0)
    assert not torch.all(layer(100 * numbers(3, 1, 2))[0] == 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "expected modrelu_bias only with 'modrelu' and a bias, got -1.0 with 'tanh'"),
        ({"nonlinearity": "modrelu", "bias": False}, "got -1.0 with bias=False"),
    ],
)
def test_a_bias_of_modrelu_needs_modrelu(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RNN(2, 5, modrelu_bias=-1.0, **options)


def test_modrelu_keeps_the_phase_and_shifts_the_modulus() -> None:
    z, bias = numbers(50, complex=True), numbers(50) * 0.5
    h = modrelu(z, bias)
    alive = z.abs() + bias > 0
    torch.testing.assert_close(h.abs(), (z.abs() + bias).clamp_min(0))
    torch.testing.assert_close(h[alive].angle(), z[alive].angle())
    assert torch.all(h[~alive] == 0)
