"""Tracers see the native core as one operator: what they record computes what the layer does."""

from __future__ import annotations

import io
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.fx.experimental.proxy_tensor import make_fx

from registry import CELLS, FEW_CELLS, needs_library, numbers, randomise_
from slimrnn import GRU, LowRank
from slimrnn.errors import ExportError
from slimrnn.layers import ReadOut, RecurrentStack

pytestmark = [
    needs_library,
    pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning"),  # our checks of shapes are python
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
few_cells = pytest.mark.parametrize("cell", FEW_CELLS)
grad_modes = pytest.mark.parametrize("grad", [False, True], ids=["no-grad", "grad"])


class Single(nn.Module):
    """`step` as a module of its own."""

    def __init__(self, stack: RecurrentStack) -> None:
        super().__init__()
        self.stack = stack

    def forward(self, x: Tensor, *state: Tensor) -> Any:
        return self.stack.step(x, state if len(state) > 1 else state[0])


def build(cell: str) -> RecurrentStack:
    return randomise_(CELLS[cell].build(3, 4, 2, backend="native"), 0.1)


@grad_modes
@few_cells
def test_traced_layer_is_the_layer(cell: str, grad: bool) -> None:
    stack = build(cell)
    with torch.set_grad_enabled(grad):
        traced: Any = torch.jit.trace(stack, (numbers(5, 2, 3),))
        for time, batch in ((5, 2), (7, 3), (1, 1)):
            x = numbers(time, batch, 3)
            torch.testing.assert_close(traced(x), stack(x), rtol=1e-12, atol=1e-12)


@few_cells
def test_traced_layer_is_saved_and_differentiated(cell: str) -> None:
    stack, file = build(cell), io.BytesIO()
    with torch.no_grad():
        torch.jit.save(torch.jit.trace(stack, (numbers(5, 2, 3),)), file)
    file.seek(0)
    loaded, x = torch.jit.load(file), numbers(5, 2, 3)
    for model in (stack, loaded):
        model(x)[0].square().sum().backward()
    found = dict(loaded.named_parameters())
    for name, p in stack.named_parameters():
        torch.testing.assert_close(found[name].grad, p.grad, rtol=1e-12, atol=1e-12)


@grad_modes
@few_cells
def test_traced_step_is_the_step(cell: str, grad: bool) -> None:
    stack = build(cell)
    x = numbers(2, 2, 3)
    with torch.set_grad_enabled(grad):
        after = stack.step(x[0], None)[1]
        state = tuple(t.detach() for t in (after if isinstance(after, tuple) else (after,)))
        traced: Any = torch.jit.trace(Single(stack), (x[0], *state))
        torch.testing.assert_close(traced(x[1], *state), Single(stack)(x[1], *state), rtol=1e-12, atol=1e-12)


@grad_modes
@few_cells
def test_make_fx_records_the_operator(cell: str, grad: bool) -> None:
    stack = build(cell)
    with torch.set_grad_enabled(grad):
        graph = make_fx(lambda x: stack(x)[0])(numbers(5, 2, 3))
        x = numbers(5, 2, 3)
        torch.testing.assert_close(graph(x), stack(x)[0], rtol=1e-12, atol=1e-12)
    assert sum("slimrnn" in str(node.target) for node in graph.graph.nodes) == 2


def test_tracers_that_cannot_follow_say_so() -> None:
    stack = GRU(3, 4, input_structure=LowRank(2))
    with pytest.raises(TypeError, match="expected input to be a tensor, got Proxy"):
        torch.fx.symbolic_trace(stack)
    for module in (stack, torch.nn.Sequential(stack)):
        with pytest.raises(ExportError, match=r"torch.jit.script cannot read slimrnn's layers: use slimrnn.export"):
            torch.jit.script(module)


@grad_modes
def test_traced_checkpoints_take_sequences_of_any_length(grad: bool) -> None:
    stack = randomise_(GRU(3, 4, checkpoint_every=2, dtype=torch.float64, backend="native"), 0.1)
    with torch.set_grad_enabled(grad):
        traced: Any = torch.jit.trace(stack, (numbers(5, 2, 3),))
    for time in (1, 4, 9):
        x = numbers(time, 3, 3)
        torch.testing.assert_close(traced(x), stack(x))


@grad_modes
def test_traced_readout_is_saved(grad: bool) -> None:
    readout = ReadOut(GRU(3, 4, dtype=torch.float64), 2, at="last")
    with torch.set_grad_enabled(grad):
        traced: Any = torch.jit.trace(readout, (numbers(5, 2, 4),))
    file, x = io.BytesIO(), numbers(5, 3, 4)
    torch.jit.save(traced, file)
    file.seek(0)
    torch.testing.assert_close(torch.jit.load(file)(x), readout(x))


def test_compiled_layers_have_no_second_derivative_and_say_so() -> None:
    stack, x = build("gru-after"), numbers(5, 2, 3).requires_grad_()
    compiled = torch.compile(stack, backend="eager")
    (first,) = torch.autograd.grad(compiled(x)[0].square().sum(), x, create_graph=True)
    (expected,) = torch.autograd.grad(stack(x)[0].square().sum(), x)
    torch.testing.assert_close(first, expected)
    with pytest.raises(
        RuntimeError, match=r"^expected first derivatives of a layer under torch\.compile, got a second"
    ):
        torch.autograd.grad(first.square().sum(), x)
