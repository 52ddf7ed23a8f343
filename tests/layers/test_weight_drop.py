"""Dropout on the recurrent weights, drawn once per call."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from registry import BACKENDS, CELLS, needs_library, numbers, randomise_
from slimrnn import (
    GRU,
    LSTM,
    RNN,
    BlockDiagonal,
    Dense,
    Diagonal,
    Kronecker,
    LowRank,
    Permutation,
    Structure,
    UnitaryProduct,
)
from slimrnn.layers import RecurrentStack
from slimrnn.ops import reference

INPUT, TIME, BATCH, SIZE = 3, 5, 4, 12
LENGTHS = torch.tensor([4, 5, 1, 3])
STRUCTURES: dict[str, Structure] = {
    "dense": Dense(),
    "low-rank+diagonal": LowRank(3) + Diagonal(),
    "kronecker": Kronecker([3, 4]),
    "permutation@block": Permutation(seed=2) @ BlockDiagonal(3),
}
structures = pytest.mark.parametrize("structure", STRUCTURES)


def outcome(stack: RecurrentStack, backend: str, lengths: Tensor | None = None) -> dict[str, Tensor]:
    """Outputs and all gradients, with the same random numbers each time."""
    for k in range(len(stack.layers)):
        stack.layer(k).backend = backend
    torch.manual_seed(7)
    x = numbers(TIME, BATCH, INPUT)
    torch.manual_seed(3)
    with pytest.MonkeyPatch.context() as patch:
        if backend == "native":
            patch.setattr(reference, "scan", None)
        output = stack(x, lengths=lengths)[0]
    found = {name: p for name, p in stack.named_parameters() if p.requires_grad}
    gradients = torch.autograd.grad((output * torch.arange(output.shape[-1])).sum(), list(found.values()))
    return {"output": output.detach(), **dict(zip(found, gradients, strict=True))}


@needs_library
@pytest.mark.parametrize(
    "options",
    [{}, {"num_layers": 2, "bidirectional": True}, {"transition_depth": 2}, {"checkpoint_every": 2}, {"leak": 0.3}],
    ids=str,
)
@structures
@pytest.mark.parametrize("cell", ["lstm", "gru-before", "lem"])
def test_native_is_reference(cell: str, structure: str, options: dict[str, Any]) -> None:
    case = CELLS[cell]
    stack = randomise_(case.build(INPUT, SIZE, structure=STRUCTURES[structure], weight_drop=0.4, **options), 0.1)
    for lengths in (None, LENGTHS):
        native, plain = outcome(stack, "native", lengths), outcome(stack, "reference", lengths)
        torch.testing.assert_close(native, plain, rtol=1e-9, atol=1e-10)


@needs_library
def test_complex_weights_are_dropped_whole() -> None:
    stack = randomise_(RNN(INPUT, SIZE, nonlinearity="modrelu", weight_drop=0.4, dtype=torch.float64), 0.1)
    torch.testing.assert_close(outcome(stack, "native"), outcome(stack, "reference"), rtol=1e-9, atol=1e-10)
    gradient = outcome(stack, "native")["layers.0.recurrent.weight"]
    assert torch.equal(gradient[..., 0] == 0, gradient[..., 1] == 0)
    assert 0.2 < float((gradient == 0).double().mean()) < 0.6


@needs_library
@pytest.mark.parametrize("structure", [UnitaryProduct(), Diagonal() @ UnitaryProduct(), UnitaryProduct() + Diagonal()])
def test_what_the_core_takes_for_unitary_is_dropped_in_plain_torch(structure: Structure) -> None:
    """Its kernel would compute wrong gradients where phases and reflections have zeros."""
    stack = RNN(INPUT, SIZE, nonlinearity="modrelu", structure=structure, weight_drop=0.4, dtype=torch.float64)
    assert stack.runs_as == "reference"
    x = numbers(TIME, BATCH, INPUT)
    found = {}
    for backend in ("native", "reference"):
        stack.layer(0).backend = backend
        torch.manual_seed(3)
        output = stack(x)[0]
        found[backend] = [output.detach(), *torch.autograd.grad(output.square().sum(), [*stack.parameters()])]
    torch.testing.assert_close(found["native"], found["reference"], rtol=1e-9, atol=1e-10)
    stack.layer(0).backend = "native"
    assert stack.eval().runs_as == "compiled"


def linear(backend: str, rate: float = 0.5) -> RecurrentStack:
    """h ← W h from h = 1, where the input is zero."""
    return RNN(1, SIZE, nonlinearity="identity", bias=False, weight_drop=rate, dtype=torch.float64, backend=backend)


def dropped(stack: RecurrentStack, unit: Tensor) -> Tensor:
    """The matrix that the first step multiplies by, from its columns; the whole sequence must agree with it."""
    batch = unit.shape[0]
    output = stack(torch.zeros(3, batch, 1, dtype=torch.float64), unit[None])[0]
    w: Tensor = output[0].mT
    torch.testing.assert_close(output[1].mT, w @ w, rtol=0, atol=1e-12)  # fixed within the call
    torch.testing.assert_close(output[2].mT, w @ w @ w, rtol=0, atol=1e-12)
    return w


@pytest.mark.parametrize("backend", BACKENDS)
def test_weights_are_dropped_once_per_call_and_scaled(backend: str) -> None:
    stack, eye = linear(backend, 0.3), torch.eye(SIZE, dtype=torch.float64)
    w = stack.layer(0).recurrent.dense()[0]
    shares = []
    for _ in range(20):
        found = dropped(stack, eye)
        kept = found != 0
        torch.testing.assert_close(found[kept], (w / 0.7)[kept], rtol=0, atol=1e-12)
        shares.append(float(kept.double().mean()))
    assert abs(sum(shares) / 20 - 0.7) < 5 * (0.21 / (20 * SIZE**2)) ** 0.5
    assert len(set(shares)) > 1
    stack.eval()
    torch.testing.assert_close(dropped(stack, eye), w, rtol=0, atol=1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradients_reach_the_kept_weights_alone(backend: str) -> None:
    stack, eye = linear(backend), torch.eye(SIZE, dtype=torch.float64)
    output = stack(torch.zeros(1, SIZE, 1, dtype=torch.float64), eye[None])[0]
    kept = output[0].mT.detach() != 0
    weight = stack.layer(0).get_parameter("recurrent.weight")
    (gradient,) = torch.autograd.grad(output.sum(), weight)
    torch.testing.assert_close(gradient[0], 2.0 * kept.double(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
@structures
def test_eval_leaves_the_weights_alone(structure: str, backend: str) -> None:
    options: dict[str, Any] = {"structure": STRUCTURES[structure], "dtype": torch.float64, "backend": backend}
    stack, plain = GRU(INPUT, SIZE, weight_drop=0.5, **options), GRU(INPUT, SIZE, **options)
    plain.load_state_dict(stack.state_dict())
    x = numbers(TIME, BATCH, INPUT)
    assert not torch.allclose(stack(x)[0], plain(x)[0])
    stack.eval()
    assert torch.equal(stack(x)[0], plain(x)[0])


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_none_and_all(rate: float) -> None:
    stack, x = LSTM(INPUT, SIZE, weight_drop=rate, dtype=torch.float64), numbers(TIME, BATCH, INPUT)
    without = LSTM(INPUT, SIZE, dtype=torch.float64)
    without.load_state_dict(stack.state_dict())
    if rate:
        with torch.no_grad():
            without.layer(0).get_parameter("recurrent.weight").zero_()
    torch.testing.assert_close(stack(x)[0], without(x)[0])


def test_the_rate_is_checked() -> None:
    with pytest.raises(ValueError, match="weight_drop"):
        LSTM(3, 4, weight_drop=1.5)
