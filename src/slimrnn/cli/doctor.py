"""What this installation has: versions, backend, instruction sets, threads."""

from __future__ import annotations

import platform

import numpy
import torch

import slimrnn
from slimrnn.ops.library import instruction_sets, missing_reason, native_library


def run() -> None:
    """Print a line for each thing worth knowing."""
    library = native_library()
    facts = {
        "slimrnn": slimrnn.__version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "threads": f"{torch.get_num_threads()} (torch.set_num_threads changes it)",
        "backend": "native" if library else f"reference, in plain torch: {missing_reason()}",
    }
    if library:
        facts["instruction sets"] = ", ".join(instruction_sets(library)) + " (the first is used, or SLIMRNN_ISA)"
    width = max(map(len, facts))
    for name, value in facts.items():
        print(f"{name:<{width}}  {value}")
