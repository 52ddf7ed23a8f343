"""Whether the tensors of a scan agree, which the core cannot see: it has their addresses only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from slimrnn.ops.calls import Inputs

REAL = (torch.float32, torch.float64)
WHOLE = {"lengths": torch.int64, "tokens": torch.int64, "resets": torch.bool}  # the only type; all others are real
WORDS = {
    "x": "the input",
    "u": "the input weights",
    "bias": "the bias",
    "state": "the state",
    "own": "the cell's parameters",
    "mask": "the mask",
    "reset_state": "the state after resets",
}


def check_operands(inputs: Inputs, time: int) -> None:
    """All of the state's type, float32 or float64, on the CPU, and of shapes that fit. The core checks the shapes of
    the recurrent weights itself. Written for speed: it is called in every scan."""
    dtype = inputs.state.dtype
    for name, shape in _shapes(inputs, time).items():
        t = getattr(inputs, name)
        if t is None:
            continue
        if t.dtype is not WHOLE.get(name, dtype) or not t.is_cpu:
            _explain(inputs)
        if t.shape != shape:
            words = WORDS.get(name, name)
            raise ValueError(f"expected {words} of shape {shape} in a native scan, got {tuple(t.shape)}")
    for t in inputs.weights:
        if not t.is_cpu or (t.dtype is not dtype and t.dtype is not torch.int64):
            _explain(inputs)
    if dtype not in REAL:
        _explain(inputs)


def _shapes(inputs: Inputs, time: int) -> dict[str, Sequence[int]]:
    """Of the tensors by their names, as far as the state, the input and the cell tell."""
    x, plan = inputs.x, inputs.plan
    _, batch, width = inputs.state.shape
    cell = plan.cell
    state, gates, steps = (cell.states, batch, width), (cell.gates, width), (time, batch)
    found: dict[str, Sequence[int]] = {
        "state": state,
        "bias": gates,
        "own": (plan.phases, cell.program.own_rows, width),
        "mask": (batch, *([cell.program.matrices] if inputs.mask is not None and inputs.mask.dim() > 2 else []), width),
        "lengths": (batch,),
        "resets": steps,
        "reset_state": state,
    }
    if inputs.u is not None:
        found["x"], found["u"] = (*steps, x.shape[-1]), (*gates, x.shape[-1])
    elif inputs.tokens is not None:
        found["x"], found["tokens"] = (x.shape[0], *gates), steps
    elif x.shape[0]:  # not made again for backward
        found["x"] = (*steps, *gates)
    return found


def _explain(inputs: Inputs) -> None:
    """Raise for a type or a device."""
    held = {WORDS.get(name, name): getattr(inputs, name) for name in (*WORDS, *WHOLE)}
    held |= {f"recurrent weight {k}": t for k, t in enumerate(inputs.weights)}
    tensors: dict[str, Tensor] = {name: t for name, t in held.items() if t is not None}
    for name, t in tensors.items():
        if not t.is_cpu:
            raise ValueError(f"expected all tensors of a native scan on the CPU, got {name} on {t.device}")
        if name in WHOLE and t.dtype is not WHOLE[name]:
            raise TypeError(f"expected {name} of {WHOLE[name]}, got {t.dtype}")
    names: dict[torch.dtype, list[str]] = {}
    for name, t in tensors.items():
        if name not in WHOLE and t.dtype is not torch.int64:
            names.setdefault(t.dtype, []).append(name)
    listed = "; ".join(f"{dtype}: {', '.join(some)}" for dtype, some in names.items())
    raise TypeError(
        "expected the input, the state and all parameters of a layer in one dtype, torch.float32 or torch.float64, got "
        f"{listed} (a cell of your own hands the dtype that it is given on to super().__init__)"
    )
