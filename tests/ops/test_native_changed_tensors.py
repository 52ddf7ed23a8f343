"""A tensor that changes between forward and backward: autograd's error, or the gradient of what forward computed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.func import functional_call
from torch.utils._python_dispatch import TorchDispatchMode

from registry import CELLS, needs_library, numbers, randomise_
from slimrnn import (
    GRU,
    LSTM,
    BlockDiagonal,
    ComplexDiagonal,
    CoRNN,
    Diagonal,
    Leaky,
    LowRank,
    Permutation,
    Sparse,
    UnitaryProduct,
)
from slimrnn.layers import RecurrentStack

pytestmark = needs_library
LENGTHS = [5, 2, 4]
OPTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "plain": ("tanh", {}),
    "gru-before": ("gru-before", {"structure": LowRank(2) + Diagonal()}),
    "peephole": ("lstm-peephole", {}),
    "depth": ("gru-after", {"transition_depth": 2}),
    "skip": ("gru-after", {"skip": 2}),
    "skip-complex": ("modrelu", {"skip": 2}),
    "delays": ("lstm", {"delays": 2}),
    "groups": ("tanh", {"delays": (1, 2)}),
    "fixed-leak": ("gru-after", {"leak": 0.4}),
    "learned-leak": ("lstm", {"leak": Leaky(0.4, learned=True)}),
    "deep-leak": ("tanh", {"leak": Leaky(0.4, learned=True), "transition_depth": 3}),
    "initial": ("lstm", {"learn_initial_state": True}),
    "input": ("gru-after", {"input_structure": LowRank(2)}),
    "input-normed": ("lstm", {"input_structure": LowRank(2), "weight_norm": True}),
    "normed": ("gru-after", {"structure": BlockDiagonal(2), "weight_norm": True, "transition_depth": 2}),
    "dropout": ("lstm-peephole", {"recurrent_dropout": 0.5, "input_structure": LowRank(2)}),
    "segments": ("lstm-peephole", {"checkpoint_every": 2}),
    "segments-input": ("gru-after", {"checkpoint_every": 2, "input_structure": LowRank(2), "leak": 0.3}),
    "modrelu": ("modrelu", {"structure": UnitaryProduct()}),
    "modrelu-input": ("modrelu", {"input_structure": LowRank(2), "transition_depth": 2}),
    "product": ("gru-before", {"structure": LowRank(2) @ Permutation(seed=1) + Sparse(0.3)}),
    "lru": ("identity-complex", {"structure": ComplexDiagonal(0.3, 0.9)}),
    "lru-input": ("identity-complex", {"structure": ComplexDiagonal(0.3, 0.9), "input_structure": LowRank(2)}),
    "no-bias": ("gru-before", {"bias": False, "transition_depth": 2}),
    "two-layers": ("gru-after", {"num_layers": 2, "bidirectional": True, "input_structure": LowRank(2)}),
}


class Watch(TorchDispatchMode):
    """In whose presence layers call the registered operator."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def build(option: str) -> RecurrentStack:
    cell, options = OPTIONS[option]
    if not options.get("bias", True):
        options = {**options, "update_bias": 0.0}
    return randomise_(CELLS[cell].build(3, 4, backend="native", **options), 0.1)


def run(
    stack: RecurrentStack, x: Tensor, state: tuple[Tensor, ...], lengths: Tensor, again: bool, change: Callable[[], Any]
) -> list[Tensor]:
    """The first derivatives, with something done between forward and backward."""
    torch.manual_seed(1)  # dropout masks
    inputs = [x, *state, *(p for p in stack.parameters() if p.requires_grad)]
    output, last = stack(x, state[0] if len(state) == 1 else state or None, lengths=lengths)
    parts = last if isinstance(last, tuple) else (last,)
    loss = output.square().sum() + torch.stack([part.abs().square().sum() for part in parts]).sum()
    change()
    found = torch.autograd.grad(loss, inputs, create_graph=again, allow_unused=True)
    return [torch.zeros(()) if g is None else g.detach() for g in found]


def states_of(stack: RecurrentStack) -> tuple[Tensor, ...]:
    """A random initial state, of which gradients are taken."""
    with torch.no_grad():
        last = stack(numbers(3, 3, 3))[1]
    return tuple(part.detach().clone().requires_grad_() for part in (last if isinstance(last, tuple) else (last,)))


@pytest.mark.parametrize("again", [False, True], ids=["once", "create-graph"])
@pytest.mark.parametrize("path", ["eager", "operator"])
@pytest.mark.parametrize("option", OPTIONS)
def test_no_wrong_gradient(option: str, path: str, again: bool) -> None:
    stack = build(option)
    x, state, lengths = numbers(5, 3, 3).requires_grad_(), states_of(stack), torch.tensor(LENGTHS)
    tensors = {"x": x, **{f"state {k}": part for k, part in enumerate(state)}, "lengths": lengths}
    tensors |= dict(stack.named_parameters()) | dict(stack.named_buffers())
    with Watch() if path == "operator" else contextlib.nullcontext():  # type: ignore[no-untyped-call]
        expected = run(stack, x, state, lengths, again, lambda: None)
        for name, tensor in tensors.items():
            before = tensor.detach().clone()
            found: list[Tensor] | None = None
            with contextlib.suppress(RuntimeError):
                found = run(stack, x, state, lengths, again, partial(disturb, tensor))
            for a, b in zip(found or (), expected if found else (), strict=True):
                torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12, msg=f"of {tuple(b.shape)}, {name} changed")
            with torch.no_grad():
                tensor.copy_(before)


def disturb(tensor: Tensor) -> None:
    with torch.no_grad():
        tensor.copy_(tensor.flip(0)) if not tensor.is_floating_point() else tensor.add_(0.3)


def adapted(stack: RecurrentStack, x: Tensor) -> list[Tensor]:
    """As in meta-learning: the gradient, to be differentiated, of a call with other parameters than the layer's own."""
    parameters = {name: (1.5 * p).detach().requires_grad_() for name, p in stack.named_parameters()}
    output = functional_call(stack, parameters, (x,))[0]
    values = list(parameters.values())
    first = torch.autograd.grad(output.square().sum(), values, create_graph=True, allow_unused=True)
    size = torch.stack([g.square().sum() for g in first if g is not None]).sum()
    second = torch.autograd.grad(size, values, allow_unused=True)
    return [g.detach() for g in (*first, *second) if g is not None]


@pytest.mark.parametrize("option", [name for name in OPTIONS if "segments" not in name and name != "dropout"])
def test_functional_call_is_differentiated_at_its_own_parameters(option: str) -> None:
    stack, x = build(option), numbers(5, 3, 3)
    results = []
    for backend in ("native", "reference"):
        for core in stack.cores:
            core.backend = backend
        results.append(adapted(stack, x))
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("backend", ["native", "reference"])
def test_segments_run_again_with_other_parameters_are_refused(backend: str) -> None:
    """Which is where functional_call has put the layer's own back."""
    stack = CELLS["gru-after"].build(3, 4, checkpoint_every=2, backend=backend)
    parameters = {name: (1.5 * p).detach().requires_grad_() for name, p in stack.named_parameters()}
    output = functional_call(stack, parameters, (numbers(5, 3, 3),))[0]
    with pytest.raises(RuntimeError, match="has been replaced since forward"):
        output.sum().backward()


CHANGES: dict[str, tuple[Any, Any, Callable[[RecurrentStack], Any]]] = {
    "mode": (GRU, {"zoneout": 0.5}, lambda stack: stack.eval()),
    "zoneout": (LSTM, {"zoneout": 0.5}, lambda stack: setattr(stack.layer(0), "zoneout", None)),
    "attribute": (CoRNN, {}, lambda stack: setattr(stack.layer(0).cell, "dt", 0.5)),
    "cell": (GRU, {}, lambda stack: setattr(stack.layer(0), "cell", GRU(3, 4, reset="before").layer(0).cell)),
}


@pytest.mark.parametrize("name", CHANGES)
def test_layers_that_change_before_backward(name: str) -> None:
    """The gradient to be differentiated is that of what forward computed."""
    make, options, change = CHANGES[name]
    stack, x = randomise_(make(3, 4, dtype=torch.float64, **options), 0.1), numbers(5, 3, 3).requires_grad_()
    lengths = torch.tensor(LENGTHS)
    expected = run(stack, x, (), lengths, False, lambda: None)
    found = run(stack, x, (), lengths, True, lambda: change(stack))
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)
