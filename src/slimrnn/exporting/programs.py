"""torch.export of a model, with free batch sizes and lengths."""

from __future__ import annotations

import torch
from torch import nn

from slimrnn.errors import ExportError
from slimrnn.exporting.examples import Example


def captured(model: nn.Module, example: Example) -> torch.export.ExportedProgram:
    """ExportError where a size that should be free would be fixed, or where torch.export cannot read the model."""
    try:
        return torch.export.export(model, (), example.values, dynamic_shapes=example.dynamic_shapes(), strict=False)
    except ExportError:
        raise
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise ExportError(
            f"torch.export cannot read this model with free sizes: {' '.join(lines[:3])} (fixed=True keeps the sizes of "
            "the example)"
        ) from error
