"""Every cell of the zoo computes its paper's equation, has its gradients, and starts as it says."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck
from zoo_equations import EQUATIONS

from registry import STRUCTURES, ZOO, numbers, randomise_
from slimrnn import LEM, SLSTM, AntisymmetricRNN, CoRNN, Dense, IndRNN, LipschitzRNN, MinGRU, MinLSTM, UnICORNN, cells
from slimrnn.layers import RecurrentStack

zoo = pytest.mark.parametrize("name", ZOO)


def told(stack: RecurrentStack) -> Any:
    """The cell's constants and parameters, in numpy."""
    cell = stack.cell
    parameters = {name: p.detach().numpy() for name, p in cell.named_parameters()}
    constants = {name: value for name, value in vars(cell).items() if isinstance(value, float | str)}
    return SimpleNamespace(**parameters, **constants)


@pytest.mark.parametrize("structure", ["dense", "diagonal", "low-rank+diagonal", "kronecker-3"])
@zoo
def test_cell_computes_its_equation(name: str, structure: str) -> None:
    stack = randomise_(ZOO[name].build(5, 12, structure=STRUCTURES[structure]))
    u, (w,) = stack.layer(0).input.dense().detach().numpy(), stack.recurrent_matrices()
    state = tuple(np.zeros(12) for _ in range(stack.cell.states))
    x, outputs = numbers(7, 5), []
    for x_t in x.numpy():
        state = EQUATIONS[name](w.detach().numpy(), u, told(stack), x_t, *state)
        outputs.append(state[0])
    output, last = stack(x)
    np.testing.assert_allclose(output.detach().numpy(), np.stack(outputs), rtol=1e-12, atol=1e-12)
    parts = last if isinstance(last, tuple) else (last,)
    for part, expected in zip(parts, state, strict=True):
        np.testing.assert_allclose(part[0].detach().numpy(), expected, rtol=1e-12, atol=1e-12)


@zoo
def test_gradients_are_those_of_differences(name: str) -> None:
    stack = randomise_(ZOO[name].build(2, 4, learn_initial_state=True), 0.2)
    x = numbers(3, 2, 2).requires_grad_()
    parameters = [p for p in stack.parameters() if p.numel()]

    def run(x: torch.Tensor, *_: torch.Tensor) -> tuple[torch.Tensor, ...]:
        output, last = stack(x)
        return output, *(last if isinstance(last, tuple) else (last,))

    assert gradcheck(run, (x, *parameters))


@zoo
def test_without_biases_a_cell_has_none(name: str) -> None:
    case = {option: value for option, value in ZOO[name].options.items() if not option.endswith("_bias")}
    build: Any = ZOO[name].layer
    stack = build(2, 4, bias=False, **case)
    assert not [key for key, _ in stack.named_parameters() if "bias" in key]
    stack(torch.randn(3, 2, 2))


def test_cells_start_as_they_say() -> None:
    torch.manual_seed(0)
    fast = cells.FastGRNNCell(3)
    assert fast.gate_bias is not None
    assert fast.gate_bias.tolist() == [1.0] * 3
    assert (fast.zeta.tolist(), fast.nu.tolist()) == ([1.0], [-4.0])
    c = cells.UnICORNNCell(1000).c.detach()
    assert -0.1 <= float(c.min()) < -0.09
    assert 0.09 < float(c.max()) <= 0.1
    normed = cells.LayerNormLSTMCell(3, forget_bias=2.0)
    assert normed.bias is not None
    assert normed.bias.tolist() == [[0.0] * 3, [2.0] * 3, [0.0] * 3, [0.0] * 3]
    assert normed.recurrent_gain.tolist() == [[1.0] * 3] * 4
    for cell, gate in ((cells.MGUCell(2, forget_bias=-1.0), 0), (cells.MinGRUCell(2, update_bias=-1.0), 0)):
        assert cell.bias is not None
        assert cell.bias[gate].tolist() == [-1.0, -1.0]


@pytest.mark.parametrize("layer", [IndRNN, UnICORNN])
def test_independent_units_start_with_weights_between_zero_and_one(layer: Any) -> None:
    torch.manual_seed(0)
    for matrices in layer(3, 500, 2).recurrent_matrices():
        weights = matrices[0].detach().diagonal()
        assert 0 <= float(weights.min()) < 0.02
        assert 0.98 < float(weights.max()) <= 1
    assert (IndRNN(3, 5, start=(0.5, 0.5)).recurrent_matrices()[0][0].diagonal() == 0.5).all()


def test_a_cell_without_recurrent_matrices_has_no_weights_for_them() -> None:
    for layer in (MinGRU, MinLSTM):
        stack = layer(3, 5)
        assert stack.layer(0).recurrent.num_parameters == 0
        assert stack.recurrent_matrices()[0].shape == (0, 5, 5)
        assert stack.num_parameters == len(stack.cell.gates) * (3 * 5 + 5)


def test_two_matrices_and_one_input_product() -> None:
    for layer in (CoRNN, LipschitzRNN):
        stack = layer(3, 5, structure=Dense())
        assert stack.recurrent_matrices()[0].shape == (2, 5, 5)
        assert stack.num_parameters == 2 * 25 + 3 * 5 + 5


@pytest.mark.parametrize("forget", ["sigmoid", "exp"])
@pytest.mark.parametrize("size", [-400.0, 400.0])
def test_slstm_bears_gates_whose_exponential_does_not_fit(forget: str, size: float) -> None:
    stack = SLSTM(1, 4, forget=forget, dtype=torch.float64)
    x = size * torch.randn(20, 3, 1, dtype=torch.float64).abs().requires_grad_()
    with torch.no_grad():
        stack.layer(0).input.assign_("weight", torch.ones(4, 4, 1, dtype=torch.float64))
    output, _ = stack(x.detach().requires_grad_())
    output.sum().backward()
    assert output.isfinite().all()
    assert all(p.grad is None or p.grad.isfinite().all() for p in stack.parameters())


def test_oscillators_without_input_keep_their_energy_roughly() -> None:
    """UnICORNN's step is symplectic: over 2000 steps y² α + z² stays within a few per cent."""
    stack = UnICORNN(1, 6, alpha=1.0, dt=0.05, dtype=torch.float64)
    with torch.no_grad():
        stack.layer(0).recurrent.assign_("diagonal", torch.zeros(1, 6, dtype=torch.float64))
    y, z = numbers(1, 1, 6), numbers(1, 1, 6)
    _, (y_n, z_n) = stack(torch.zeros(2000, 1, 1, dtype=torch.float64), (y, z))
    torch.testing.assert_close(y_n**2 + z_n**2, y**2 + z**2, rtol=0.05, atol=0)


BAD: dict[str, tuple[Any, type[Exception], str]] = {
    "dt": (lambda: LEM(2, 3, dt=0.0), ValueError, "expected dt to be positive, got 0.0"),
    "gamma": (lambda: CoRNN(2, 3, gamma=-1.0), ValueError, "expected gamma of at least 0, got -1.0"),
    "nan": (lambda: CoRNN(2, 3, epsilon=float("nan")), ValueError, "expected epsilon to be finite, got nan"),
    "forget": (lambda: SLSTM(2, 3, forget="tanh"), ValueError, "expected forget to be one of 'sigmoid', 'exp'"),
    "bias": (lambda: MinLSTM(2, 3, bias=False, forget_bias=1.0), ValueError, "expected bias=True with forget_bias"),
    "text": (lambda: UnICORNN(2, 3, alpha="a"), TypeError, "expected alpha to be a number, got 'a'"),
    "size": (lambda: cells.MGUCell(0), ValueError, "expected hidden_size to be at least 1, got 0"),
    "structure": (lambda: LEM(2, 3, structure="dense"), TypeError, "expected structure to be a structure"),
    "torch": (lambda: LEM.from_torch(torch.nn.GRU(2, 3)), ValueError, "which torch.nn has too, got LEM"),
    "to torch": (lambda: LEM(2, 3).to_torch(), ValueError, "which torch.nn has too, got LEM"),
    "state dict": (
        lambda: LEM(2, 3).load_state_dict(torch.nn.GRU(2, 3).state_dict()),
        RuntimeError,
        "torch.nn has no layer that computes what LEM does",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_arguments_are_told(case: str) -> None:
    make, error, message = BAD[case]
    with pytest.raises(error, match=message):
        make()


def test_any_structure_is_the_default_but_where_units_are_alone() -> None:
    assert LEM(2, 3).structure == Dense()
    assert repr(UnICORNN(2, 3).structure) == "Diagonal()"
    assert UnICORNN(2, 3, structure=Dense()).structure == Dense()


@pytest.mark.parametrize("layer", [AntisymmetricRNN, LipschitzRNN])
def test_flows_are_antisymmetric(layer: Any) -> None:
    (matrices,) = layer(2, 5).recurrent_matrices()
    assert torch.equal(matrices, -matrices.mT)
