"""`slimrnn export`: the net of a run for another runtime, with a proof that it computes the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from tyro import MISSING
from tyro.conf import Positional

from slimrnn.cli.parsing import parse
from slimrnn.cli.settings import TaskClass
from slimrnn.errors import ExportError
from slimrnn.exporting import export
from slimrnn.sequence import EncoderDecoder
from slimrnn.tasks import load_run
from slimrnn.training.config import Config
from slimrnn.training.task import Batch

MOST_STEPS = 100  # of the real sequences


@dataclass(frozen=True)
class Options:
    """Export the net of a run. The file is run on random and real sequences, and kept only if it computes the same."""

    run: Positional[Path] = MISSING
    """directory of a run, or one of its files best.safetensors and final.safetensors"""
    to: Literal["onnx", "torch", "aoti"] = "onnx"
    """onnx: ONNX; torch: torch.export; aoti: AOTInductor, which needs a C++ compiler"""
    step: bool = False
    """one step with the state going in and out, for streaming, instead of whole sequences"""
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
    batch = _batch(config, model)
    example = _step(batch) if options.step else _whole(batch, model)
    try:
        export(model, example, options.out, to=options.to, step=options.step)
    except ValueError as error:
        raise ExportError(str(error)) from error


def _batch(config: Config, model: nn.Module) -> Batch:
    """Sequences for validation, as many as no other axis has places."""
    from slimrnn.training.batches import as_dtype

    samples = config.task.samples("valid", config.seed)
    taken = {size for parameter in model.parameters() for size in parameter.shape} | {1}
    most = 64 if samples.size is None else min(64, samples.size)
    count = next((count for count in range(min(8, most), most) if count not in taken), most)
    return as_dtype(samples.fetch(np.arange(count, dtype=np.int64)), getattr(torch, config.dtype))


def _whole(batch: Batch, model: Any) -> dict[str, Any]:
    inputs, lengths = batch.inputs, batch.lengths
    other = {*inputs.shape[1:]}
    steps = next(steps for steps in range(min(len(inputs), MOST_STEPS), 0, -1) if steps not in other)
    values: dict[str, Any] = {"inputs": inputs[:steps]}
    if hasattr(model, "initial_state"):
        values["state"] = model.initial_state(inputs.shape[1])
    return values if lengths is None else values | {"lengths": lengths.clamp_max(steps)}


def _step(batch: Batch) -> Tensor:
    return batch.inputs[0]
