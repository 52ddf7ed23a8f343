"""What a frame passes through, one after the other: the layers of a model and its read-outs."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from slimrnn._fields import pairs_flat
from slimrnn.layers import ReadOut, RecurrentLayer, RecurrentStack
from slimrnn.layers.streaming import step_inputs_of
from slimrnn.layers.traced import found_steps, runs_as
from slimrnn.ops.calls import DTYPES, Inputs
from slimrnn.serving.known_modules import check_hooks, check_methods
from slimrnn.serving.pointwise_cell import PointwiseCell

Model = nn.Module | Sequence[nn.Module]
AFTERWARDS = "a pool takes a stack of layers, or a list of one with nn.Linear, ReadOut and activations after it"


class Stage(NamedTuple):
    """A layer of the native core, and what becomes of its state and output."""

    inputs: Inputs
    initial: Tensor | None  # (S, W); None: its state is not kept
    residual: bool = False

    @property
    def input_size(self) -> int:
        return int(self.inputs.x.shape[-1])

    @property
    def width(self) -> int:
        return int(self.inputs.state.shape[-1])


@torch.no_grad()
def stages_of(model: Model) -> list[Stage]:
    """Of a copy of the model as in eval()."""
    parts = list(model) if isinstance(model, list | tuple) else [model]
    if not parts or not all(isinstance(part, nn.Module) for part in parts):
        raise TypeError(f"expected a model or a list of modules, got {model!r}: {AFTERWARDS}")
    given = nn.ModuleList(parts)  # type: ignore[arg-type]
    check_hooks(given)
    held = copy.deepcopy(given).eval()
    stages = list(_joined([module for part in held for module in _flat(part)]))
    if not any(stage.initial is not None for stage in stages):
        raise ValueError(f"expected a recurrent layer of slimrnn in the model, got none: {AFTERWARDS}")
    for below, above in pairwise(stages):
        if above.input_size != below.width:
            raise ValueError(f"expected a layer for inputs of width {below.width}, got one for {above.input_size}")
    types = {stage.inputs.state.dtype for stage in stages}
    if len(types) > 1:
        raise TypeError(f"expected one type of numbers in the whole model, got {', '.join(sorted(map(str, types)))}")
    return stages


def _flat(module: nn.Module) -> Iterator[nn.Module]:
    check_methods(module)
    if isinstance(module, nn.Sequential | nn.ModuleList):
        for part in module:
            yield from _flat(part)
    elif not isinstance(module, nn.Identity | nn.Dropout):
        yield module


def _joined(modules: list[nn.Module]) -> Iterator[Stage]:
    """Activations go with the linear layer that they follow."""
    k = 0
    while k < len(modules):
        module = modules[k]
        k += 1
        if isinstance(module, RecurrentStack):
            yield from _layers(module)
            width, some = module.output_size, next(module.parameters())
            if k == len(modules) or isinstance(modules[k], RecurrentStack | nn.Linear):
                continue
            module = _identity(width, some)
        elif not isinstance(module, nn.Linear):
            raise TypeError(f"expected a recurrent layer or nn.Linear, got {type(module).__name__}: {AFTERWARDS}")
        activations = []
        while k < len(modules) and not isinstance(modules[k], RecurrentStack | nn.Linear):
            activations.append(modules[k])
            k += 1
        yield _read_out(module, activations)


def _identity(width: int, like: Tensor) -> nn.Linear:
    found = nn.Linear(width, width, bias=False, dtype=like.dtype, device=like.device)
    found.weight.copy_(torch.eye(width))
    return found


def _layers(stack: RecurrentStack) -> Iterator[Stage]:
    if stack.bidirectional:
        raise ValueError("expected one direction, got bidirectional=True, which needs the future")
    if stack.takes_tokens:
        raise ValueError("expected a layer that reads vectors, got one of tokens: feed the vectors of its embedding")
    for number, layer in enumerate(stack.layers):
        if getattr(layer, "make_stepper", None) is not None:
            raise TypeError("expected layers in float32 or float64, got int8: a pool has no such, use the float model")
        if not isinstance(layer, RecurrentLayer) or layer.line > 1 or len(layer.transitions) > 1:
            raise ValueError("expected layers without delays, skip and transition_depth, got some; a pool has no such")
        check_methods(layer)
        layer.renew_cells()
        initial = torch.stack([part[0] for part in layer.initial_state(1)])
        yield Stage(_checked(layer), pairs_flat(initial), stack.residual and number > 0)


def _read_out(linear: nn.Linear, activations: Sequence[nn.Module]) -> Stage:
    if isinstance(linear, ReadOut) and linear.at != "every":
        raise ValueError(f'expected ReadOut(at="every"), got at={linear.at!r}: a stream has no last step')
    place: Any = {"dtype": linear.weight.dtype, "device": linear.weight.device}
    cell = PointwiseCell(linear.out_features, linear.bias is not None, activations, **place)
    layer = RecurrentLayer(linear.in_features, cell, **place).eval()
    layer.input.assign_("weight", linear.weight[None])
    if linear.bias is not None and cell.bias is not None:
        cell.bias.copy_(linear.bias[None])
    return Stage(_checked(layer), None)


def _checked(layer: RecurrentLayer) -> Inputs:
    some = next(layer.parameters())
    if some.device.type != "cpu" or some.dtype not in DTYPES:
        raise ValueError(f"expected a model in float32 or float64 on the CPU, got {some.dtype} on {some.device}")
    for step in found_steps(layer):
        if isinstance(step, str):
            cell = layer.cell
            what = cell.activations[-1] if isinstance(cell, PointwiseCell) else type(cell).__name__
            raise ValueError(f"expected what the native core can run, got {what}, whose step {step}")
    inputs = step_inputs_of(layer)
    if inputs is None:
        why = f"a {type(layer.cell).__name__} that runs as {runs_as(layer)!r}"
        raise ValueError(f'expected layers that the native core runs, with backend="native", got {why}')
    return inputs
