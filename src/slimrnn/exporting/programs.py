"""torch.export of a model, with free batch sizes and lengths."""

from __future__ import annotations

import torch
from torch import nn

from slimrnn.errors import ExportError
from slimrnn.exporting.examples import Example
from slimrnn.layers.recurrent_layer import RecurrentLayer


def captured(model: nn.Module, example: Example) -> torch.export.ExportedProgram:
    """ExportError where a size that should be free would be fixed, or where torch.export cannot read the model."""
    try:
        return torch.export.export(model, (), example.values, dynamic_shapes=example.dynamic_shapes(), strict=False)
    except Exception as error:
        raise reason_of(error, "torch.export", _way_of(model)) from error


def _way_of(model: nn.Module) -> str:
    """What is likely to free a size."""
    for name, module in model.named_modules():
        if isinstance(module, nn.RNNBase):
            kind = type(module).__name__
            return f"make {name or 'it'} a slimrnn.{kind}, as slimrnn.{kind}.from_torch does"
        if isinstance(module, RecurrentLayer) and module.backend == "torch":
            return "set its backend to 'auto'"
    return "change that, as by x.shape[0] instead of len(x)"


def reason_of(error: BaseException, tool: str, way: str = "change that") -> ExportError:
    """The ExportError that an error comes from, or one that says what a tool said."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ExportError):
            return cause
        error, cause = cause, cause.__cause__ or cause.__context__
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    if "Constraints violated" in lines[0]:
        fixes = [line for line in lines if "specialized" in line]
        name = fixes[0].split(" as ")[0].removeprefix("- You marked ") if fixes else "size"
        return ExportError(
            f"expected a model that takes any {name}, got one whose code fixes it ({' '.join(lines[1:2])}): {way}; "
            "or export single steps (step=True), or keep all sizes (fixed=True)"
        )
    return ExportError(f"{tool} cannot export this model: {lines[0]}")
