"""torch.nn.utils reaches the maps and cells inside a layer: parametrizations, spectral_norm and prune."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations, parametrize, prune

from registry import numbers, randomise_
from slimrnn import GRU, LSTM, RNN, BlockDiagonal, Kronecker, LowRank, OutputRecurrent, Structure, UnitaryProduct
from slimrnn.layers import RecurrentStack
from slimrnn.structures.base import StructuredMap

TOOLS: dict[str, Callable[[nn.Module, str], object]] = {
    "spectral norm": lambda module, name: parametrizations.spectral_norm(module, name, dim=1),
    "weight norm": lambda module, name: parametrizations.weight_norm(module, name, dim=1),
    "orthogonal": parametrizations.orthogonal,
    "spectral norm by a hook": lambda module, name: nn.utils.spectral_norm(module, name, dim=1),
    "prune": lambda module, name: prune.l1_unstructured(module, name, 0.5),
    "prune twice": lambda module, name: [prune.l1_unstructured(module, name, 0.3) for _ in range(2)],
    "prune rows": lambda module, name: prune.ln_structured(module, name, 0.5, n=2, dim=1),
}
MAPS: dict[str, Callable[[RecurrentStack], StructuredMap]] = {
    "recurrent": lambda stack: stack.layer(0).recurrent,
    "input": lambda stack: stack.layer(0).input,
}
STRUCTURED: dict[str, tuple[Structure, str]] = {
    "blocks": (BlockDiagonal(2), "weight"),
    "low rank": (LowRank(2), "right"),
    "kronecker": (Kronecker([2, 3]), "factor_1"),
    "one part of a sum": (LowRank(2) + BlockDiagonal(2), "weight"),
}
X = torch.randn(4, 2, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))  # in any order of tests
tools = pytest.mark.parametrize("tool", TOOLS)
backends = pytest.mark.parametrize("backend", ["reference", "auto"])


def gru(backend: str = "auto", **options: Any) -> GRU:
    stack = GRU(3, 6, backend=backend, dtype=torch.float64, **options)
    randomise_(stack, 0.3)
    return stack


def train(stack: nn.Module, updates: int = 3) -> None:
    optimizer = torch.optim.SGD(stack.parameters(), 0.1)
    for _ in range(updates):
        optimizer.zero_grad()
        stack(X)[0].square().sum().backward()
        optimizer.step()


def streamed(stack: RecurrentStack) -> Tensor:
    state, outputs = stack.initial_state(X.shape[1]), []
    with torch.no_grad():
        for x in X:
            output, state = stack.step(x, state)
            outputs.append(output)
    return torch.stack(outputs)


def plain_twin(stack: GRU) -> GRU:
    """A layer without tools whose matrices are those that the tools gave, written out."""
    twin, layer = gru(), stack.layer(0)
    for into, source in ((twin.layer(0).recurrent, layer.recurrent), (twin.layer(0).input, layer.input)):
        into.nearest_(source.dense().detach())
    twin.layer(0).cell.load_state_dict(layer.cell.state_dict())
    return twin


@backends
@pytest.mark.parametrize("where", MAPS)
@tools
def test_a_tool_acts_on_forward_backward_and_step(tool: str, where: str, backend: str) -> None:
    stack = gru(backend)
    map = MAPS[where](stack)
    before = map.dense()
    TOOLS[tool](map, "weight")
    train(stack)
    stack.eval()
    assert not torch.allclose(map.dense(), before)
    torch.testing.assert_close(stack(X)[0], plain_twin(stack)(X)[0])
    torch.testing.assert_close(streamed(stack), stack(X)[0])


@backends
@tools
def test_gradients_are_those_of_differences(tool: str, backend: str) -> None:
    stack = gru(backend)
    TOOLS[tool](stack.layer(0).recurrent, "weight")
    stack.eval()  # spectral_norm iterates in training, so that no two reads agree
    names, values = zip(*stack.named_parameters(), strict=True)

    def output(*values: Tensor) -> Tensor:
        found: Tensor = torch.func.functional_call(stack, dict(zip(names, values, strict=True)), (X,))[0]
        return found

    assert torch.autograd.gradcheck(output, values, fast_mode=True)


@pytest.mark.parametrize("kind", STRUCTURED)
@pytest.mark.parametrize("tool", ["spectral norm", "spectral norm by a hook", "prune"])
def test_a_tool_acts_on_every_structure_alike(tool: str, kind: str) -> None:
    structure, name = STRUCTURED[kind]
    stacks = []
    for backend in ("reference", "auto"):
        torch.manual_seed(0)
        stack = gru(backend, structure=structure)
        owner = next(m for m in stack.layer(0).recurrent.modules() if name in m._parameters)
        before = stack(X)[0]
        TOOLS[tool](owner, name)
        assert not torch.allclose(stack(X)[0], before)
        train(stack)
        stacks.append(stack)
    for mine, theirs in zip(stacks[0].parameters(), stacks[1].parameters(), strict=True):
        torch.testing.assert_close(mine, theirs)


def test_pruned_numbers_stay_zero_and_have_no_gradient() -> None:
    stack = gru()
    recurrent = stack.layer(0).recurrent
    prune.random_unstructured(recurrent, "weight", 0.5)
    train(stack)
    pruned = recurrent.get_buffer("weight_mask") == 0
    gradient = recurrent.get_parameter("weight_orig").grad
    assert gradient is not None
    assert pruned.sum() == pruned.numel() // 2
    assert not gradient[pruned].any()
    assert not recurrent.dense()[pruned].any()
    prune.remove(recurrent, "weight")
    assert torch.equal(recurrent.get_parameter("weight") == 0, pruned)


@pytest.mark.parametrize("tool", ["spectral norm", "spectral norm by a hook"])
def test_spectral_norm_along_the_rows_bounds_the_matrix_of_a_simple_net(tool: str) -> None:
    stack = RNN(3, 6, dtype=torch.float64)
    TOOLS[tool](stack.layer(0).recurrent, "weight")
    for _ in range(200):
        stack(X)
    norm = torch.linalg.matrix_norm(stack.recurrent_matrices()[0], 2)
    torch.testing.assert_close(norm, torch.ones_like(norm))


@tools
def test_matrices_are_never_those_of_before_an_update(tool: str) -> None:
    stack = gru()
    TOOLS[tool](stack.layer(0).recurrent, "weight")
    train(stack, 1)
    stack.eval()
    assert torch.equal(stack.recurrent_matrices()[0], stack.layer(0).recurrent.dense())
    before = stack.recurrent_matrices()[0]
    stack.train()
    train(stack, 1)
    assert not torch.allclose(stack.eval().recurrent_matrices()[0], before)


@tools
def test_a_layer_in_use_can_be_copied(tool: str) -> None:
    stack = gru()
    TOOLS[tool](stack.layer(0).recurrent, "weight")
    train(stack)
    stack.eval()
    torch.testing.assert_close(copy.deepcopy(stack)(X)[0], stack(X)[0])


class Scaled(nn.Module):
    """Reads a number that no parameter or buffer of the layer holds."""

    factor = 1.0

    def forward(self, weight: Tensor) -> Tensor:
        return weight * self.factor


def test_steps_follow_a_parametrization_that_changes_without_a_trace() -> None:
    stack, scaled = gru(), Scaled()
    streamed(stack)
    parametrize.register_parametrization(stack.layer(0).recurrent, "weight", scaled)
    first = streamed(stack)
    scaled.factor = 0.5
    assert not torch.allclose(streamed(stack), first)
    torch.testing.assert_close(streamed(stack), stack(X)[0])


@pytest.mark.parametrize("tool", ["weight norm", "prune", None])
@pytest.mark.parametrize("weight_norm", [False, True])
def test_row_norms_are_clipped(tool: str | None, weight_norm: bool) -> None:
    stack = gru(max_row_norm=0.3, weight_norm=weight_norm)
    if tool is not None:
        TOOLS[tool](stack.layer(0).recurrent, "weight")
    stack.constrain_()
    rows = torch.linalg.vector_norm(stack.recurrent_matrices()[0].detach(), dim=-1)
    assert float(rows.max()) <= 0.3 + 1e-12
    if tool is None:
        assert float(rows.max()) >= 0.3 - 1e-12


def test_parameters_of_a_cell_can_be_pruned() -> None:
    for stack in (gru(), LSTM(3, 6, peephole=True, dtype=torch.float64), RNN(3, 6, dtype=torch.float64)):
        cell = stack.layer(0).cell
        for name, _ in list(cell.named_parameters()):
            prune.random_unstructured(cell, name, 0.5)
        train(stack)
        mask = cell.get_buffer("bias_mask")
        gradient = cell.get_parameter("bias_orig").grad
        assert gradient is not None
        assert not gradient[mask == 0].any()
        assert gradient[mask == 1].any()
        torch.testing.assert_close(streamed(stack), stack(X)[0])


def test_pruned_complex_nets_train_alike_on_both_backends() -> None:
    outputs = []
    for backend in ("reference", "auto"):
        torch.manual_seed(0)
        stack = RNN(3, 4, nonlinearity="modrelu", structure=UnitaryProduct(), backend=backend, dtype=torch.float64)
        for name in ("phases", "reflections"):
            prune.random_unstructured(stack.layer(0).recurrent, name, 0.3)
        train(stack)
        outputs.append(stack(X)[0])
    torch.testing.assert_close(outputs[0], outputs[1])


def test_output_recurrence_can_be_pruned() -> None:
    net = OutputRecurrent(3, 6, 2, dtype=torch.float64)
    prune.random_unstructured(net.layer.recurrent, "left", 0.5)
    prune.random_unstructured(net.layer.cell, "bias", 0.5)
    train(net)
    assert net(X)[0].shape == (4, 2, 2)


def test_pruned_layers_convert_to_torch() -> None:
    stack = gru()
    prune.random_unstructured(stack.layer(0).recurrent, "weight", 0.5)
    prune.random_unstructured(stack.layer(0).cell, "bias", 0.5)
    train(stack)
    torch.testing.assert_close(stack.to_torch()(X)[0], stack(X)[0])


def test_the_nearest_member_can_be_written_into_a_pruned_map() -> None:
    recurrent = gru().layer(0).recurrent
    wanted = numbers(3, 6, 6)
    prune.random_unstructured(recurrent, "weight", 0.5)
    kept = recurrent.get_buffer("weight_mask")
    torch.testing.assert_close(recurrent.nearest_(wanted).dense(), wanted * kept)


@pytest.mark.parametrize("layer", [GRU, LSTM])
def test_a_layer_with_a_pruned_bias_can_be_copied_after_a_call(layer: Any) -> None:
    stack: RecurrentStack = randomise_(layer(3, 4, dtype=torch.float64))
    prune.l1_unstructured(stack.layer(0).cell, "bias", 0.5)
    x = numbers(5, 2, 3)
    output, _ = stack(x)
    twin = copy.deepcopy(stack)
    again = pickle.loads(pickle.dumps(stack))
    for other in (twin, again):
        torch.testing.assert_close(other(x)[0], output, rtol=0, atol=0)
    output.sum().backward()
    twin(x)[0].sum().backward()
    for a, b in zip(stack.parameters(), twin.parameters(), strict=True):
        assert a.grad is not None
        torch.testing.assert_close(a.grad, b.grad, rtol=0, atol=0)
