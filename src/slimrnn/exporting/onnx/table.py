"""How torch.onnx translates our operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir
import torch
from onnxscript import evaluator

from slimrnn.errors import ExportError
from slimrnn.exporting.onnx.cells import emit_operator, find_operator
from slimrnn.exporting.onnx.nodes import Nodes
from slimrnn.exporting.onnx.scan import Operands, emit_scan
from slimrnn.ops.onnx_exports import Table
from slimrnn.ops.terms import Plan


def onnx_table() -> dict[Callable[..., Any], Callable[..., Any]]:
    """`torch.onnx.export(..., dynamo=True, custom_translation_table=onnx_table())` translates our layers."""
    Table.was_made = True
    return {torch.ops.slimrnn.scan.default: translate}


def emit(nodes: Nodes, given: Operands) -> tuple[ir.Value, ir.Value]:
    """The operator of ONNX that computes the same, or a Scan."""
    known = find_operator(given, given.trace())
    return emit_scan(nodes, given) if known is None else emit_operator(nodes, given, known)


def translate(
    x: ir.Value,
    u: ir.Value | None,
    bias: ir.Value | None,
    state: ir.Value,
    own: ir.Value | None,
    mask: ir.Value | None,
    lengths: ir.Value | None,
    seed: ir.Value | None,
    tokens: ir.Value | None,
    resets: ir.Value | None,
    reset_state: ir.Value | None,
    weights: Sequence[ir.Value],
    plan: str,
    reverse: bool,
    first_step: int,
    keep: bool,
) -> tuple[ir.Value, ...]:
    """The four results of `slimrnn::scan`, of which the last two are for backward and empty here."""
    if mask is not None or seed is not None:
        raise ExportError("expected model.eval() for an export to ONNX, got a layer in training, whose noise it lacks")
    recorder: Any = evaluator.default()
    assert state.dtype is not None
    nodes = Nodes(recorder.nodes, state.dtype, recorder.opset.version)
    anew = (resets, reset_state)
    given = Operands(x, u, bias, state, own, lengths, tokens, *anew, weights, Plan.decode(plan), reverse)
    out, last = emit(nodes, given)
    nothing = nodes("Constant", value=ir.tensor([], dtype=state.dtype))
    return out, last, nothing, nothing
