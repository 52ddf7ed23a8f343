"""Ways out of slimrnn: ONNX and torch programs, each with a proof that it computes the same; models as files."""

from slimrnn.exporting.export import export
from slimrnn.exporting.proof import Case, Proof
from slimrnn.exporting.registry import EXPORTERS
from slimrnn.exporting.saving import load, save

__all__ = ["EXPORTERS", "Case", "Proof", "export", "load", "save"]
