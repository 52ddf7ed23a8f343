"""`slimrnn export`: the net of a run for another runtime, with a proof that it computes the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree
from tyro import MISSING
from tyro.conf import Positional

from slimrnn.cli.parsing import parse
from slimrnn.cli.settings import TaskClass
from slimrnn.errors import ExportError
from slimrnn.exporting import export, quantize
from slimrnn.layers import RecurrentStack, SequenceNet
from slimrnn.sequence import EncoderDecoder
from slimrnn.tasks import load_run
from slimrnn.training.config import Config
from slimrnn.training.evaluation import EvaluationBatches, final_sizes, measure
from slimrnn.training.models.frame_model import FrameModel, dequantised
from slimrnn.training.models.sequence_model import SequenceModel
from slimrnn.training.models.symbol_model import SymbolModel
from slimrnn.training.task import Batch

MOST_STEPS = 100  # of the real sequences
MOST_SINGLE_STEPS = 500  # where single steps are all that there is
MOST_SEQUENCES = 3  # of these


@dataclass(frozen=True)
class Options:
    """Export the net of a run. The file is run on random and real sequences, and kept only if it computes the same."""

    run: Positional[Path] = MISSING
    """directory of a run, or one of its files best.safetensors and final.safetensors"""
    to: Literal["onnx", "torch", "aoti", "int8", "c"] = "onnx"
    """onnx: ONNX; torch: torch.export; aoti: AOTInductor, which needs a C++ compiler; int8: a saved
    model in int8, a directory that slimrnn.load reads; c: C99 of single steps, which needs a C compiler for the
    proof"""
    step: bool = False
    """one step with the state going in and out, for streaming, instead of whole sequences"""
    int8: bool = False
    """with --to c: matrices in int8, as slimrnn.quantize makes them"""
    out: Path = Path("out/net")
    """path of the file; a missing suffix is added, and the proof is written beside it"""
    task: TaskClass = None
    """module:Class of the task, if it has moved since the run began"""


def run(arguments: Sequence[str]) -> None:
    """Write the file and its proof, and print that."""
    options = parse(Options(), arguments, "slimrnn export")
    model, config = load_run(options.run, options.task)
    if isinstance(model, EncoderDecoder):
        raise ExportError(
            "expected a net of recurrent layers and a read-out, got an encoder-decoder: export its parts with "
            "slimrnn.export"
        )
    if options.int8 and options.to != "c":
        raise ExportError(f"expected --int8 with --to c only, got --to {options.to}")
    batch = _batch(config, model)
    if options.to == "c":
        example: Any = _sequences(batch, model)
        model = quantize(model) if options.int8 else model
    else:
        example = _step(batch) if options.step else _whole(batch, model)
    extra: dict[str, Any] = {}
    if options.to == "int8":
        extra["scores"] = _scores(model, config)
        model = _savable(model)
    try:
        export(model, example, options.out, to=options.to, step=options.step, **extra)
    except ValueError as error:
        raise ExportError(str(error)) from error


def _savable(model: nn.Module) -> nn.Module:
    """The same net of layers alone, which slimrnn.load can make."""
    if type(model) not in (SequenceModel, SymbolModel) or not isinstance(model.rnn, RecurrentStack):
        raise ExportError(
            f"expected a net of recurrent layers and a read-out, got a {type(model).__name__}: "
            "slimrnn.quantize(load_run(...)[0]) makes it int8 in Python"
        )
    parts: Any = model
    return SequenceNet(parts.rnn, parts.readout, parts.output)


def _scores(model: nn.Module, config: Config) -> dict[str, float]:
    """Of the task on validation data, in float32 and in int8."""
    batches = EvaluationBatches(config, "valid", final_sizes(config)["valid"])
    found: dict[str, float] = {}
    for kind, net in (("float32", model), ("int8", quantize(model))):
        found |= {f"{name} in {kind}": value for name, value in measure(net, config.task, batches).items()}
    return found


def _batch(config: Config, model: nn.Module) -> Batch:
    """Sequences for validation, as many as no other axis has places."""
    from slimrnn.training.batches import as_dtype

    samples = config.task.samples("valid", config.seed)
    if samples.size is not None and samples.size < 2:  # one sequence cannot show that there may be several
        samples = config.task.samples("train", config.seed)
    taken = {size for parameter in model.parameters() for size in parameter.shape} | {1}
    most = 64 if samples.size is None else min(64, samples.size)
    count = next((count for count in range(min(8, most), most) if count not in taken), most)
    return as_dtype(samples.fetch(np.arange(count, dtype=np.int64)), getattr(torch, config.dtype))


def _whole(batch: Batch, model: Any) -> dict[str, Any]:
    """Of a length that no other axis has, where there is one: axes are told apart by their sizes."""
    inputs, lengths = batch.inputs, batch.lengths
    state = {"state": model.initial_state(inputs.shape[1])} if hasattr(model, "initial_state") else {}
    other = {size for leaf in pytree.tree_leaves(state) for size in leaf.shape} | {*inputs.shape[1:]}
    most = min(len(inputs), MOST_STEPS)
    steps = next((steps for steps in range(most, 0, -1) if steps not in other), most)
    values: dict[str, Any] = {"inputs": inputs[:steps], **state}
    return values if lengths is None else values | {"lengths": lengths.clamp_max(steps)}


def _step(batch: Batch) -> Tensor:
    return batch.inputs[0]


def _sequences(batch: Batch, model: nn.Module) -> Tensor:
    """Some, without what lies beyond the end of the shortest."""
    shortest = len(batch.inputs) if batch.lengths is None else int(batch.lengths[:MOST_SEQUENCES].min())
    chosen = batch.inputs[: min(shortest, MOST_SINGLE_STEPS), :MOST_SEQUENCES]
    return dequantised(chosen) if isinstance(model, FrameModel) and chosen.dtype == torch.uint8 else chosen
