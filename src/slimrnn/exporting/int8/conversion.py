"""A recurrent layer becomes an Int8Layer, in place; on the device "meta" too, where only shapes are known."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from slimrnn.errors import ExportError
from slimrnn.exporting.int8.emulation import inexact
from slimrnn.exporting.int8.layer import Int8Layer
from slimrnn.exporting.int8.rows import MOST_COLUMNS, check_finite, rounded_rows
from slimrnn.exporting.int8.terms import TERMS, rounded
from slimrnn.layers.input_product import input_matrix
from slimrnn.layers.recurrent_layer import RecurrentLayer
from slimrnn.layers.traced import found_steps, usable
from slimrnn.ops.programs import NativeCell
from slimrnn.ops.terms import Plan, Term, kind_of, program
from slimrnn.structures.base import StructuredMap
from slimrnn.tracing.graph import order
from slimrnn.tracing.native_cells import LEAK, Traced
from slimrnn.tracing.program import assembled, lowered
from slimrnn.tracing.trace import own_rows

MOVED = "in the layer's own"  # stands for a parameter of the cell, of which the layer has what its step reads


@torch.no_grad()
def to_int8_(layer: RecurrentLayer, name: str = "") -> None:
    """ExportError with the reason where it has no int8 form; then nothing has changed."""
    where = name or "the layer"
    layer.eval()
    _check_layer(layer, where)
    steps = _steps(layer, where)
    transitions = layer.transitions
    further = {} if layer.leak is None else {LEAK: layer.leak()}
    owns = [own_rows(t.cell, step.trace, further) for t, step in zip(transitions, steps, strict=True)]
    terms = [rounded(term) for t in transitions for term in _terms(t.recurrent, where)]
    u, u_scale = rounded_rows(_input_matrix(layer, where))
    found = program(_bytecode(steps[0]), False, terms, len(transitions), None)
    constants: dict[str, Tensor | None] = {"u_scale": u_scale, "u": u}
    for phase, transition in enumerate(transitions):
        constants[f"bias_{phase}"] = transition.cell.input_bias()
    constants["own"] = None if owns[0] is None else _stacked([rows for rows in owns if rows is not None])
    constants |= {f"weight_{k}": weight for k, weight in enumerate(found.weights)}
    for key, value in constants.items():
        check_finite(value, f"{where} ({key})")
    _replace(layer, found.plan._replace(int8=True), steps[0], constants)


def _stacked(parts: list[Tensor]) -> Tensor:
    """torch.stack, which on "meta" imports the compiler: seconds of the first load."""
    stacked = parts[0].new_empty((len(parts), *parts[0].shape))
    for place, part in zip(stacked, parts, strict=True):
        place.copy_(part)
    return stacked


def _replace(layer: RecurrentLayer, plan: Plan, step: Traced, constants: dict[str, Tensor | None]) -> None:
    cells = [layer.cell, *layer.deeper_cells]
    for child in ("recurrent", "input", "deeper_maps", "skipped", "leak"):
        delattr(layer, child)
    layer.__class__ = Int8Layer
    assert isinstance(layer, Int8Layer)
    layer.plan, layer.trace, layer.leak, layer.skipped = plan, step.trace, None, None
    for key, value in constants.items():
        if value is not None and value.dtype == torch.int64:
            layer.register_buffer(key, value.detach().clone())
        else:
            kept = None if value is None else nn.Parameter(value.detach().clone(), requires_grad=False)
            layer.register_parameter(key, kept)
    if layer.initial is not None:
        layer.initial.requires_grad_(False)
    for cell in cells:
        _strip(cell)


def _strip(cell: nn.Module) -> None:
    for part in cell.modules():
        for table in (part._parameters, part._buffers):
            for key in [key for key, value in table.items() if value is not None]:
                del table[key]
                part.__dict__[key] = MOVED


def _check_layer(layer: RecurrentLayer, where: str) -> None:
    if layer.cell.complex:
        raise ExportError(f"expected a real state for int8, got a complex one in {where}: {_instead(where)}")
    if layer.skip is not None:
        raise ExportError(
            f"expected a layer without skip for int8, got skip={layer.skip} in {where}: {_instead(where)}"
        )
    for key, parameter in layer.named_parameters():
        if parameter.dtype != torch.float32:
            raise ExportError(f"expected float32, got {where}.{key} of {parameter.dtype}: quantize model.float()")


def _steps(layer: RecurrentLayer, where: str) -> list[Traced]:
    found = found_steps(layer)
    steps, cell = usable(found), type(layer.cell).__name__
    if steps is None:
        reason = next((s for s in found if isinstance(s, str)), "differs between its transitions")
        raise ExportError(f"expected a cell whose step can be traced, got {cell} in {where}, which {reason}")
    op = inexact(order(steps[0].trace.after))
    if op is not None:
        what = "a sum over units, whose bits depend on its order" if op == "total" else op
        raise ExportError(
            f"expected a cell with exact bits for int8, got {what} in {cell} of {where}: {_instead(where)}"
        )
    return steps


def _bytecode(step: Traced) -> NativeCell:
    """The program of the cell, also where C++ was written by hand for it."""
    return NativeCell(assembled(lowered(step.trace))) if step.native.program.by_hand else step.native


def _terms(map: StructuredMap, where: str) -> Sequence[Term]:
    terms = map.terms(map.prepare())
    if terms is None:
        raise ExportError(
            f"expected a structure with native kernels for int8, got {map.spec!r} in {where}: {_instead(where)}"
        )
    for term in terms:
        if kind_of(term.structure) not in TERMS:
            wanted = "Dense, BlockDiagonal, LowRank, Diagonal, permutations and sums of these"
            raise ExportError(f"expected {wanted} for int8, got {map.spec!r} in {where}: {_instead(where)}")
    _check_columns(map.shape.in_size, where)
    return terms


def _input_matrix(layer: RecurrentLayer, where: str) -> Tensor:
    """U written out."""
    scale = layer.recurrent.input_scale()
    dense = input_matrix(layer.input, scale)
    if dense is None:
        dense = layer.input.dense()
        dense = dense if scale is None else dense * scale.unsqueeze(-1)
        kept = sum(t.nbytes for t in layer.input.prepare())
        if dense.numel() > kept:  # a byte each
            spec = layer.input.spec
            raise ExportError(
                f"expected an input matrix that int8 makes smaller, got {spec!r} in {where}: {_instead(where)}"
            )
    _check_columns(dense.shape[-1], where)
    return dense


def _check_columns(columns: int, where: str) -> None:
    if columns > MOST_COLUMNS:
        raise ExportError(
            f"expected at most {MOST_COLUMNS:,} columns, whose int8 products fit in int32, got {columns:,} in {where}"
        )


def _instead(where: str) -> str:
    return f"skip={(where,)!r} keeps it in float32"


__all__ = ["to_int8_"]
