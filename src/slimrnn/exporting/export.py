"""`slimrnn.export`: write an artefact, run it in its own runtime, and keep it only if it computes the same."""

from __future__ import annotations

import copy
import math
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from slimrnn._disk import disk_errors
from slimrnn._texts import shown
from slimrnn.errors import ExportError
from slimrnn.exporting import model_files
from slimrnn.exporting.examples import Example, as_example
from slimrnn.exporting.exporter import Exporter, Request
from slimrnn.exporting.int8.layer import Int8Layer
from slimrnn.exporting.proof import Proof
from slimrnn.exporting.proving import prove
from slimrnn.exporting.registry import EXPORTERS, find_exporter
from slimrnn.exporting.stages import Unrolled
from slimrnn.exporting.stepping import Stepping

SUFFIXES = {".onnx": "onnx", ".pt2": "torch", ".c": "c"}


def export(
    model: nn.Module,
    example: Any,
    path: Path | str,
    *,
    to: str | None = None,
    step: bool = False,
    fixed: bool = False,
    given: Sequence[Any] = (),
    tolerance: float | None = None,
    quiet: bool = False,
    **options: Any,
) -> Proof:
    """Export a model with our layers, and prove that the result computes the same.

    example -- arguments of `model.forward`: a tensor, a tuple, or a dict by name; batch size and length may be others
    later, so here they must be two different sizes that no other axis has;
    to -- "onnx", "torch", "aoti", "rtneural", "int8" (a directory for slimrnn.load) or "c"; without it, by the suffix
    of the path (.onnx, .pt2, .c);
    step -- a graph of one step, `model.step(x_t, state)`, for streaming: example is x_t or (x_t, state); "c" has no
    other: there example is one sequence, or several as the model takes them;
    fixed -- all sizes stay as they are in the example;
    given -- further examples, such as real sequences, that the proof is to run;
    tolerance -- of the largest difference relative to the largest output (default: 1e-5; of float64: 1e-10);
    options -- of the exporter, such as `merge` of ONNX: see docs/deployment.md.

    The model is exported as in eval(). The proof is returned, printed and written beside the artefact, as
    net.onnx.proof.json. A difference beyond the tolerance is an ExportError, and nothing is written."""
    exporter, to = _chosen(to, Path(path))
    if tolerance is not None and not 0 <= tolerance < math.inf:
        raise ValueError(f"expected tolerance to be a number of at least 0, got {tolerance}")
    path = _with_suffix(Path(path), exporter.suffix)
    _check_model(model, exporter, to)
    ours = _copied(model).eval()  # the caller's own stays as it is
    if exporter.steps_only:
        ours, step = Unrolled(ours), False
    elif step:
        ours = Stepping(ours)
    first = as_example(ours, example, fixed)
    if isinstance(ours, Unrolled):
        ours.check(first.values["x"])
    others = [as_example(ours, one, fixed, like=first) for one in given]
    chosen, measured = _options(exporter, options), dict[str, float]()
    if exporter.prepare is not None:
        ours, measured = exporter.prepare(ours, [first, *others], chosen)
    request = Request(copy.deepcopy(ours), first, step, chosen)
    proof = _written(ours, [first, *others], to, exporter, request, path, tolerance, measured)
    if not quiet:
        print(proof)
    return proof


def _written(
    ours: nn.Module,
    examples: Sequence[Example],
    to: str,
    exporter: Exporter,
    request: Request,
    path: Path,
    tolerance: float | None,
    measured: dict[str, float],
) -> Proof:
    """In a folder of its own beside the path, from where it is moved once it is proven."""
    with disk_errors(ExportError, "write", path):
        path.parent.mkdir(parents=True, exist_ok=True)
        room = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        draft = room / path.name
        with torch.no_grad():
            exporter.write(request, draft)
            proof = prove(ours, examples, to, exporter, draft, request.step, tolerance, measured)
        name = f"{path.name}.proof.json"
        proof.write(room / name)
        with disk_errors(ExportError, "write", path):
            for made, kept in zip(exporter.files(draft), exporter.files(path), strict=True):
                _put(made, kept, room)
            (room / name).replace(path.with_name(name))
    finally:
        shutil.rmtree(room, ignore_errors=True)
    return proof


def _put(draft: Path, path: Path, room: Path) -> None:
    """In place of what was there; of directories, only a saved model is replaced."""
    if not draft.is_dir() or not path.exists():
        draft.replace(path)
        return
    if not model_files.is_all_of(path, beside=[made.name for made in draft.iterdir()]):
        raise ExportError(f"expected a path where nothing is yet, or a saved model and nothing else, got {path}")
    before = path.replace(room / "before")
    try:
        draft.replace(path)
    except OSError:
        before.replace(path)
        raise


def _chosen(to: str | None, path: Path) -> tuple[Exporter, str]:
    if to is None:
        if path.suffix not in SUFFIXES:
            raise ValueError(
                f"expected to= one of {', '.join(EXPORTERS)}, or a path ending in .onnx, .pt2 or .c, got {path}"
            )
        to = SUFFIXES[path.suffix]
    return find_exporter(to), to


def _with_suffix(path: Path, suffix: str) -> Path:
    return path if path.suffix == suffix else path.with_name(path.name + suffix)


def _options(exporter: Exporter, options: dict[str, Any]) -> Any:
    known = exporter.options.__dataclass_fields__
    for name in options:
        if name not in known:
            raise TypeError(f"expected options {', '.join(known) or '(none)'} of this exporter, got {name!r}")
    return exporter.options(**options)


def _copied(model: nn.Module) -> nn.Module:
    try:
        return copy.deepcopy(model)
    except RuntimeError as error:  # pruned weights are no leaves of autograd
        raise ExportError(
            f"expected a model that copy.deepcopy copies, got one that it does not ({shown(str(error), 80)}): make "
            "pruned weights permanent with torch.nn.utils.prune.remove; weight_norm is that of parametrizations"
        ) from error


def _check_model(model: nn.Module, exporter: Exporter, to: str) -> None:
    if not isinstance(model, nn.Module):
        raise TypeError(f"expected a torch module, got {type(model).__name__}")
    if not exporter.takes_int8 and any(isinstance(module, Int8Layer) for module in model.modules()):
        raise ExportError(
            f'expected a float model for to="{to}", got one with int8 layers: export the float model, save this one '
            'with slimrnn.save, or export it with to="c"'
        )
    tensors: list[tuple[str, Tensor]] = [*model.named_parameters(), *model.named_buffers()]
    for name, tensor in tensors:
        if tensor.device.type != "cpu":
            way = "load its weights first" if tensor.is_meta else "export model.cpu()"
            raise ExportError(f"expected a model on the CPU, got {name} on {tensor.device}: {way}")
        if tensor.dtype in (torch.float16, torch.bfloat16):
            raise ExportError(f"expected float32 or float64, got {name} of {tensor.dtype}: export model.float()")
