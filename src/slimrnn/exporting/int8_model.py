"""int8 models as directories, as `slimrnn.save` writes them: run by slimrnn, and equal to `slimrnn.quantize`'s."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import nn
from torch.utils import _pytree as pytree

from slimrnn._disk import disk_errors, whole_file
from slimrnn._version import __version__
from slimrnn.errors import ExportError
from slimrnn.exporting.examples import Example
from slimrnn.exporting.exporter import Exporter, Request, Run
from slimrnn.exporting.fresh_process import SIGNATURE, in_fresh_process
from slimrnn.exporting.int8.quantize import quantize
from slimrnn.exporting.saving import save
from slimrnn.exporting.stepping import Stepping


@dataclass(frozen=True)
class Int8Options:
    """Further arguments of `slimrnn.export(..., to="int8")`."""

    skip: tuple[str, ...] = ()  # as of quantize
    limit: float | None = None  # of the relative rms difference to float32: quantize's tolerance
    scores: Mapping[str, float] = field(default_factory=dict)  # of a task, to stand in the proof


def rounded(model: nn.Module, examples: Sequence[Example], options: Int8Options) -> tuple[nn.Module, dict[str, float]]:
    """The model that the artefact must equal, and how far it is from the one in float32."""
    data = [example.values for example in examples]
    found = quantize(model, data, skip=[_inside(model, name) for name in options.skip], tolerance=options.limit)
    report: Any = found.int8_report
    inner: Any = found.model if isinstance(found, Stepping) else found
    inner.int8_report = report
    measured = {
        "bytes of weights in float32": report.before,
        "bytes of weights": report.after,
        "relative rms difference to float32": max(one.relative for one in report.differences),
    }
    return found, measured | {name: float(value) for name, value in options.scores.items()}


def _inside(model: nn.Module, name: str) -> str:
    return f"model.{name}" if isinstance(model, Stepping) else name


def write(request: Request, path: Path) -> None:
    """The saved model, and how it is called."""
    model = request.model.model if isinstance(request.model, Stepping) else request.model
    assert isinstance(model, nn.Module)
    try:
        save(model, path)
    except TypeError as error:
        raise ExportError(str(error)) from None
    arguments = pytree.treespec_dumps(pytree.tree_structure(request.example.values))
    content = json.dumps({"step": request.step, "arguments": arguments})
    with disk_errors(ExportError, "write", path), whole_file(path / SIGNATURE) as file:
        file.write(content.encode())


def open_model(path: Path) -> AbstractContextManager[Run]:
    return in_fresh_process("int8", path)


def runtime() -> str:
    return f"slimrnn {__version__}"


EXPORTER = Exporter(
    suffix="", runtime=runtime, write=write, open=open_model, options=Int8Options, tolerance=0.0, prepare=rounded
)
