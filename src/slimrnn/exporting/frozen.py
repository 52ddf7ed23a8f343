"""Layers with constant weights: all that a layer computes from its parameters alone is computed once, before an export.

Runtimes need no matrix inverse, weight norm or complex number then. The layers still run, and give the same numbers.

Shape suffixes: T time, B batch, I input width, V vocabulary, G gates, H hidden units, W real numbers of a state vector.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from slimrnn._fields import field_dtype, pairs_flat, real_view
from slimrnn.cells.base import State
from slimrnn.errors import ExportError
from slimrnn.exporting.constant_layer import ConstantLayer
from slimrnn.exporting.int8.layer import Int8Layer
from slimrnn.layers.drawn import NOTHING, Drawn
from slimrnn.layers.input_product import input_matrix, look_up
from slimrnn.layers.native_scan import of_last_phase
from slimrnn.layers.recurrent_layer import RecurrentLayer
from slimrnn.layers.stack import RecurrentStack
from slimrnn.layers.traced import found_steps, usable
from slimrnn.ops import native, reference
from slimrnn.ops.onnx_exports import check_exporter
from slimrnn.ops.terms import Term, program
from slimrnn.structures.base import StructuredMap
from slimrnn.structures.circulant import CirculantMap
from slimrnn.tracing.native_cells import LEAK, Traced
from slimrnn.tracing.trace import own_rows


@torch.no_grad()
def freeze(model: nn.Module, merge: bool | None = None, step: bool = False) -> nn.Module:
    """A copy in eval() whose recurrent layers have constant weights, for torch.onnx.export with `onnx_table()`.
    Complex states are pairs of real numbers there: (layers, B, H, 2).

    merge -- write recurrent matrices out: True, False, or by default where that takes no more memory;
    step -- only steps will be exported, which plain torch can take, too."""
    found = copy.deepcopy(model).eval()
    for name, module in found.named_modules():
        if isinstance(module, RecurrentStack):
            module.as_pairs = module.cell.complex
        elif isinstance(module, RecurrentLayer) and not isinstance(module, Int8Layer):
            steps = found_steps(module)
            traced = usable(steps)
            if traced is not None:
                _freeze(module, traced, merge, name)
            elif not step:
                cell, reason = type(module.cell).__name__, next((s for s in steps if isinstance(s, str)), "")
                reason = reason or "differs between its transitions"
                raise ExportError(
                    f"expected a cell whose step can be traced, got {cell}, which {reason}: change that, or export "
                    "single steps (step=True)"
                )
    return found


class FrozenLayer(ConstantLayer):
    """A RecurrentLayer that was frozen. Every tensor is real: a complex number is a pair, (..., 2) in states, side by
    side elsewhere."""

    start: Tensor | None  #: of a complex state, (S, H, 2)

    def initial_state(self, batch: int) -> State:
        if not self.cell.complex:
            return super().initial_state(batch)
        assert self.start is not None
        return tuple(pairs.expand(batch, -1, 2) for pairs in self.start)

    def shown(self, state: State) -> Tensor:
        return torch.cat(state[0].unbind(-1), -1) if self.cell.complex else super().shown(state)

    def token_table(self, vectors_VI: Tensor | None) -> Tensor:
        if vectors_VI is not None:
            return self.input_product(vectors_VI)
        if self.u is None:
            return super().token_table(None)
        table = self.u.permute(2, 0, 1)
        bias = self.bias_of(0)
        return table if bias is None else table + bias

    def input_product(self, x: Tensor, table_VGH: Tensor | None = None) -> Tensor:
        """(..., G, W)"""
        if table_VGH is not None:
            return look_up(table_VGH, x.squeeze(-1))
        if self.u is None:
            return super().input_product(x)
        gates, width, _ = self.u.shape
        wx: Tensor = (x @ self.u.flatten(0, 1).mT).unflatten(-1, (gates, width))
        bias = self.bias_of(0)
        return wx if bias is None else wx + bias

    def advance(self, drawn: Drawn = NOTHING, steps: Iterable[int] = (0,), reverse: bool = False) -> reference.Step:
        return lambda wx_BGW, state: self.scan(None, wx_BGW.unsqueeze(0), state)[1]

    def scan(
        self,
        x_TBI: Tensor | None,
        wx_TBGH: Tensor | None,
        state: State,
        drawn: Drawn = NOTHING,
        lengths_B: Tensor | None = None,
        reverse: bool = False,
        first_step: int = 0,
        resets: reference.Resets | None = None,
    ) -> tuple[Tensor, State]:
        check_exporter()
        inputs = self.operands(x_TBI, wx_TBGH, state, drawn.table, lengths_B, reverse, resets)
        output, last = native.run(inputs)
        output = of_last_phase(output, self.plan.phases, reverse)
        return output, (last.unflatten(-1, (-1, 2)) if self.cell.complex else last).unbind(0)

    def flat(self, state: State) -> Tensor:
        """(S, B, W)"""
        return torch.stack([part.flatten(-2) if self.cell.complex else part for part in state])


def _freeze(layer: RecurrentLayer, steps: Sequence[Traced], merge: bool | None, name: str) -> None:
    transitions = layer.transitions
    if layer.line > 1 and layer.cell.complex:
        raise ExportError(
            f"expected a complex state without delays and skip to export, got one with in {name or 'the layer'}"
        )
    further = {} if layer.leak is None else {LEAK: layer.leak()}
    owns = [own_rows(t.cell, step.trace, further) for t, step in zip(transitions, steps, strict=True)]
    maps = _terms([t.recurrent for t in transitions], merge)
    found = program(steps[0].native, layer.cell.complex, maps, len(transitions), None)
    u = _input_matrix(layer)
    constants: dict[str, Tensor | None] = {"u": None if u is None else _wide(u)}
    for phase, transition in enumerate(transitions):
        bias = transition.cell.input_bias()
        constants[f"bias_{phase}"] = None if bias is None else _bias(bias, layer.cell.complex)
    own = None if owns[0] is None else torch.stack([rows for rows in owns if rows is not None])
    if own is not None and layer.cell.complex:
        own = own.repeat_interleave(2, -1)
    constants["own"] = own
    constants |= {f"weight_{k}": real_view(weight) for k, weight in enumerate(found.weights)}
    start = real_view(torch.stack([part[0] for part in RecurrentLayer.initial_state(layer, 1)]))
    units = layer.cell.hidden_size
    constants["start"] = start[:, :units] if layer.cell.complex else None
    layer.__class__ = FrozenLayer
    assert isinstance(layer, FrozenLayer)
    layer.plan = found.plan
    dtype = next(layer.parameters()).dtype
    for key, value in constants.items():
        if value is not None and value.is_floating_point():
            value = value.to(dtype)
        layer.register_buffer(key, None if value is None else value.detach().clone(), persistent=False)


def _input_matrix(layer: RecurrentLayer) -> Tensor | None:
    """U written out, or None where its structure is kept: where that is smaller, and plain products of real numbers."""
    scale = layer.recurrent.input_scale()
    dense = input_matrix(layer.input, scale)
    if dense is not None:
        return dense
    has_fourier = any(isinstance(part, CirculantMap) for part in layer.input.modules())
    if not (layer.cell.complex or has_fourier or scale is not None) and _bytes(layer.input.prepare()) < _bytes(
        [layer.input.dense()]
    ):
        return None
    written = layer.input.dense()
    return written if scale is None else written * scale.unsqueeze(-1)


def _bias(bias_GH: Tensor, is_complex: bool) -> Tensor:
    """(G, W); a complex cell's may be real."""
    return pairs_flat(bias_GH.to(field_dtype(bias_GH.real.dtype, True)) if is_complex else bias_GH)


def _wide(u_GHI: Tensor) -> Tensor:
    """(G, W, I)"""
    return real_view(u_GHI).mT.flatten(-3, -2) if u_GHI.is_complex() else u_GHI


def _terms(maps: Sequence[StructuredMap], merge: bool | None) -> list[Term]:
    """Of all phases; written out in all of them or in none."""
    kept = [map.terms(map.prepare()) for map in maps]
    if not maps[0].shape.gates:
        return []
    first = kept[0]
    if first is not None and merge is None:
        merge = _bytes([maps[0].dense()]) <= _bytes([tensor for term in first for tensor in term.tensors])
    if first is None or merge:
        return [Term("block_diagonal", (map.dense(),)) for map in maps]
    return [term for terms in kept for term in terms or ()]


def _bytes(tensors: Iterable[Tensor]) -> int:
    return sum(tensor.nbytes for tensor in tensors)
