"""What a layer must know while torch.onnx looks at it."""

from __future__ import annotations

import torch

from slimrnn.errors import ExportError


class Table:
    """Whether `slimrnn.exporting.onnx_table` was asked for in this process. Without it torch.onnx cannot know how to
    translate our operator, and says so in many lines that do not help."""

    was_made = False


def in_onnx_export() -> bool:
    """Whether torch.onnx asks. A constant for torch.compile, which would take torch's own answer to be no: torch.onnx
    tries a strict export where the other kind was refused."""
    return torch.compiler.is_exporting() and torch.onnx.is_in_onnx_export()


in_onnx_export.__dict__["_dynamo_marked_constant"] = True


def check_translatable(complex: bool) -> None:
    """ExportError for a layer that torch.onnx is about to fail at."""
    if not in_onnx_export():
        return
    if not Table.was_made:
        raise ExportError(
            "expected custom_translation_table=slimrnn.exporting.onnx_table() for torch.onnx.export of a slimrnn "
            "layer, got none: pass it, or use slimrnn.export"
        )
    if complex:
        raise ExportError(
            "expected a frozen model for torch.onnx.export of a complex state, got one that is not: pass "
            "slimrnn.exporting.freeze(model), or use slimrnn.export"
        )


def check_exporter() -> None:
    """ExportError in torch.onnx.export(..., dynamo=False), which records by torch.jit and knows none of our layers."""
    if not torch.compiler.is_compiling() and torch._C._is_tracing() and torch.onnx.is_in_onnx_export():
        raise ExportError(
            "expected torch.onnx.export(..., dynamo=True) for a slimrnn layer, got dynamo=False, whose exporter would "
            "fix the length: use slimrnn.export(model, example, 'net.onnx'), or dynamo=True with "
            "custom_translation_table=slimrnn.exporting.onnx_table()"
        )


def check_no_noise() -> None:
    """ExportError for a layer in training, with dropout or the like."""
    if in_onnx_export():
        raise ExportError("expected model.eval() for torch.onnx.export, got a layer in training, with noise")
