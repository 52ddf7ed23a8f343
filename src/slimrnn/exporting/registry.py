"""The exporters by name. A new one is a file with an EXPORTER and a line here."""

from __future__ import annotations

import importlib
import importlib.util

from slimrnn._checks import check_choice
from slimrnn.errors import ExportError
from slimrnn.exporting.exporter import Exporter

EXPORTERS = {  # imported when asked for: most need packages that not everybody has
    "onnx": "slimrnn.exporting.onnx_file",
    "torch": "slimrnn.exporting.torch_program",
    "aoti": "slimrnn.exporting.aoti_package",
    "rtneural": "slimrnn.exporting.rtneural",
    "c": "slimrnn.exporting.c_source",
    "int8": "slimrnn.exporting.int8_model",
}


def find_exporter(to: str) -> Exporter:
    """ValueError for a name that is none; ExportError where a package is missing."""
    check_choice("to", to, list(EXPORTERS))
    found: Exporter = importlib.import_module(EXPORTERS[to]).EXPORTER
    missing = [name for name in found.needs if importlib.util.find_spec(name) is None]
    if missing:
        raise ExportError(f'expected the package {missing[0]} for to="{to}", got none: pip install "slimrnn[export]"')
    return found
