"""Ways out of slimrnn: ONNX and torch programs, each with a proof that it computes the same; models as files."""

from __future__ import annotations

from typing import Any

from slimrnn.exporting.export import export
from slimrnn.exporting.frozen import freeze
from slimrnn.exporting.int8.quantize import quantize
from slimrnn.exporting.int8.report import Int8Report
from slimrnn.exporting.proof import Case, Proof
from slimrnn.exporting.registry import EXPORTERS, find_exporter
from slimrnn.exporting.saving import load, save

__all__ = ["EXPORTERS", "Case", "Int8Report", "Proof", "export", "freeze", "load", "onnx_table", "quantize", "save"]


def onnx_table() -> dict[Any, Any]:
    """`torch.onnx.export(model, ..., dynamo=True, custom_translation_table=onnx_table())` translates our layers."""
    find_exporter("onnx")  # or why it is missing
    from slimrnn.exporting.onnx import table

    return table.onnx_table()
