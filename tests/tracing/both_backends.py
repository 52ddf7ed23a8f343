"""Cells made of one function, and layers of them run on both backends: outputs, last states and all gradients."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from registry import numbers
from slimrnn import Cell, Recurrent
from slimrnn.cells.base import Matvec, State
from slimrnn.layers.recurrent_layer import RecurrentLayer
from slimrnn.ops import reference
from slimrnn.tracing import Traced, find

Step = Callable[[Any, Any, Any, Any], Any]  # (cell, wx, matvec, state) -> state
Results = dict[str, Tensor]
INPUT, TIME, BATCH, WIDTH = 3, 4, 3, 5
LENGTHS = torch.tensor([2, 4, 1])


def cell_of(
    step: Step,
    gates: int = 1,
    states: int = 1,
    matrices: int | None = None,
    build: Callable[[Any, int], None] | None = None,
) -> type[Cell]:
    """A cell of this step; `build` may give it parameters, for so many units."""
    function = step

    class OneLine(Cell):
        def __init__(self, hidden_size: int, bias: bool = True, **place: Any) -> None:
            super().__init__(hidden_size, bias, **place)
            if build is not None:
                build(self, hidden_size)

        def step(self, wx_BGH: Tensor, matvec: Matvec, state: State) -> State:
            found: State = function(self, wx_BGH, matvec, state)
            return found

    OneLine.gates, OneLine.states = tuple(f"gate {k}" for k in range(gates)), states
    OneLine.matrices = gates if matrices is None else matrices
    return OneLine


def layer_with(cell: type[Cell], width: int = WIDTH, **options: Any) -> RecurrentLayer:
    """One layer in double precision, its parameters moved off their initial values."""
    stack = Recurrent(cell, options.pop("input_size", INPUT), width, dtype=torch.float64, **options).double()
    with torch.no_grad():
        for p in stack.parameters():
            p.add_(0.2 * torch.randn_like(p))
    return stack.layer(0)


def start(layer: RecurrentLayer, batch: int = BATCH) -> State:
    return tuple(0.5 * numbers(*s.shape, complex=s.is_complex()) for s in layer.initial_state(batch))


def differentiate(
    layer: RecurrentLayer,
    x: Tensor,
    state: State,
    lengths: Tensor | None = None,
    reverse: bool = False,
    seed: int = 1,
) -> Results:
    """Outputs, last states and the gradients, of a fixed random weighting of both, of everything that has one."""
    x, state = x.detach().requires_grad_(), tuple(s.detach().requires_grad_() for s in state)
    torch.manual_seed(seed)
    output, last = layer(x, state, lengths, reverse)
    results = {"output": output, **{f"last {k}": s for k, s in enumerate(last)}}
    draw = torch.Generator().manual_seed(seed)
    loss = torch.zeros((), dtype=x.dtype)
    for value in results.values():
        real = torch.view_as_real(value) if value.is_complex() else value
        loss = loss + (real * torch.randn(real.shape, generator=draw, dtype=x.dtype)).sum()
    inputs = {"x": x, **{f"state {k}": s for k, s in enumerate(state)}}
    inputs |= {name: p for name, p in layer.named_parameters() if p.requires_grad}
    found = torch.autograd.grad(loss, list(inputs.values()), allow_unused=True)
    for name, value, gradient in zip(inputs, inputs.values(), found, strict=True):
        results[f"gradient of {name}"] = torch.zeros_like(value) if gradient is None else gradient
    return {name: value.detach() for name, value in results.items()}


def on(backend: str, layer: RecurrentLayer, x: Tensor, state: State, *call: Any, **options: Any) -> Results:
    """`differentiate` on this backend; the native one may not fall back."""
    layer.backend = backend
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("error")
        if backend == "native":
            patch.setattr(reference, "scan", None)
        return differentiate(layer, x, state, *call, **options)


def equal(actual: Results, expected: Results, tolerance: float = 1e-10) -> None:
    """To `tolerance`, of the largest entry where that is above one."""
    assert actual.keys() == expected.keys()
    for name, value in expected.items():
        most = max(1.0, float(value.abs().nan_to_num(posinf=0.0).max()))
        assert actual[name].shape == value.shape, name
        torch.testing.assert_close(
            actual[name],
            value,
            rtol=0.0,
            atol=tolerance * most,
            equal_nan=True,
            msg=lambda text, name=name: f"{name}: {text}",  # type: ignore[misc]
        )


def check(layer: RecurrentLayer, x: Tensor | None = None, state: State | None = None, *call: Any, **more: Any) -> None:
    """native = reference."""
    x = numbers(TIME, BATCH, layer.input.shape.in_size) if x is None else x
    state = start(layer, x.shape[1]) if state is None else state
    equal(on("native", layer, x, state, *call, **more), on("reference", layer, x, state, *call, **more))


def found(cell: Cell) -> Traced:
    """The cell's traced step; the test fails with the reason where there is none."""
    step = find(cell)
    assert not isinstance(step, str), step
    return step


def parameter(*shape: int) -> nn.Parameter:
    return nn.Parameter(0.5 + 0.3 * torch.randn(shape, dtype=torch.float64))
