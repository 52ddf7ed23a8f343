"""ONNX files, by torch.onnx with our translation table, run in onnxruntime."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from slimrnn._texts import shown
from slimrnn.errors import ExportError
from slimrnn.exporting.examples import Example
from slimrnn.exporting.exporter import Exporter, Request, Run
from slimrnn.exporting.frozen import freeze
from slimrnn.exporting.programs import captured, reason_of
from slimrnn.exporting.stepping import Stepping
from slimrnn.layers import RecurrentStack

MOST_BYTES = 2_000_000_000  # of a file in the format that ONNX is written in
MOST_FOLDED = 1024  # numbers: larger constants are computed when a session starts, and the file stays small


@dataclass(frozen=True)
class OnnxOptions:
    """Further arguments of slimrnn.export for to="onnx"."""

    merge: bool | None = None  # recurrent matrices written out: by default where that takes no more memory
    output_names: tuple[str, ...] | None = None


def write(request: Request, path: Path) -> None:
    """An ONNX file of one piece."""
    import onnx
    import onnxscript.optimizer

    from slimrnn.exporting.onnx.table import onnx_table

    names = _output_names(request)
    model = freeze(request.model, request.options.merge, request.step)
    exported = captured(model, request.example.as_pairs())
    with _quiet():
        try:
            made: Any = torch.onnx.export(
                exported,
                dynamo=True,
                custom_translation_table=onnx_table(),
                input_names=request.example.names,
                output_names=names,
                optimize=False,
                verbose=False,
            )
        except Exception as error:
            raise reason_of(error, "torch.onnx") from error
        onnxscript.optimizer.optimize(made.model, input_size_limit=MOST_FOLDED, output_size_limit=MOST_FOLDED)
    _tidy(made.model, request.example)
    _write(made, path)
    onnx.checker.check_model(str(path), full_check=True)


def _tidy(model: Any, example: Example) -> None:
    """Free sizes are called length and batch, and nothing tells of the sources and folders that the model came from."""
    import onnx_ir as ir

    named = {}
    for value, leaf in zip(model.graph.inputs, example.leaves, strict=True):
        for axis, name in example.axes(leaf).items():
            if isinstance(value.shape[axis], ir.SymbolicDim):
                named[value.shape[axis].value] = name

    def rename(value: Any) -> None:
        value.metadata_props.clear()
        for axis, size in enumerate(value.shape or ()):
            if isinstance(size, ir.SymbolicDim) and size.value in named:
                value.shape[axis] = ir.SymbolicDim(named[size.value])

    model.metadata_props.clear()
    for value in (*model.graph.inputs, *model.graph.outputs, *model.graph.initializers.values()):
        rename(value)
    for node in ir.traversal.RecursiveGraphIterator(model.graph):
        node.metadata_props.clear()
        node.doc_string = None
        for value in node.outputs:
            rename(value)


def _write(made: Any, path: Path) -> None:
    size = sum(value.const_value.nbytes for value in made.model.graph.initializers.values())
    if size > MOST_BYTES:
        raise ExportError(
            f"expected weights of at most {MOST_BYTES:,} bytes for an ONNX file, got {size:,}: export it as a torch "
            "program, net.pt2, or give torch.onnx.export(..., external_data=True) our onnx_table()"
        )
    made.save(str(path), external_data=False)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """torch.onnx logs what it did, and warns of things that are not ours."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript", "onnx_ir")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _output_names(request: Request) -> list[str] | None:
    """As torch calls them, for models that give an output and a state."""
    model: Any = request.model.model if isinstance(request.model, Stepping) else request.model
    result = request.model(**request.example.values)
    if request.options.output_names is not None:
        names = list(request.options.output_names)
        count = sum(isinstance(leaf, Tensor) for leaf in pytree.tree_leaves(result))
        if len({*names, *request.example.names}) < len(request.example.names) + count or len(names) != count:
            raise ValueError(f"expected {count} output_names, which differ and are no names of inputs, got {names}")
        return names
    if isinstance(result, Tensor):
        return ["output"]
    if isinstance(result, tuple) and len(result) == 2 and isinstance(result[0], Tensor):
        states = [leaf for leaf in pytree.tree_leaves(result[1]) if isinstance(leaf, Tensor)]
        usual = ["h_n", "c_n"] if len(states) < 3 and isinstance(model, RecurrentStack) else []
        return ["output", *(usual or [f"state_{k}" for k in range(len(states))])[: len(states)]]
    return None


@contextlib.contextmanager
def open_session(path: Path) -> Iterator[Run]:
    """In onnxruntime, with as many threads as torch."""
    import onnxruntime  # type: ignore[import-untyped]

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # which has no base class of its own
        reason = shown(str(error), 300)
        raise ExportError(f"expected an ONNX file in {path}, which onnxruntime refuses: {reason}") from error
    names = [one.name for one in session.get_inputs()]

    def run(leaves: Sequence[Tensor]) -> list[Tensor]:
        values = [torch.view_as_real(leaf) if leaf.is_complex() else leaf for leaf in leaves]
        given = {name: value.contiguous().numpy() for name, value in zip(names, values, strict=True)}
        try:
            return [torch.from_numpy(found) for found in session.run(None, given)]
        except Exception as error:
            reason = shown(str(error), 300)
            raise ExportError(
                f"expected an ONNX file that runs in {path}, which onnxruntime refuses: {reason}"
            ) from error

    yield run


def _runtime() -> str:
    import onnxruntime

    return f"onnxruntime {onnxruntime.__version__}"


EXPORTER = Exporter(
    suffix=".onnx",
    runtime=_runtime,
    write=write,
    open=open_session,
    needs=("onnx", "onnxruntime", "onnxscript"),
    options=OnnxOptions,
)
