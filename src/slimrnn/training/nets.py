"""Nets of a run: on the disk, best.safetensors and final.safetensors, and what they are called with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from slimrnn._texts import shown
from slimrnn.errors import CheckpointError
from slimrnn.sequence import EncoderDecoder
from slimrnn.training.checks import build_model
from slimrnn.training.config import Config
from slimrnn.training.run_files import read_tensors

WEIGHTS = "weights"  # name of the format


def read_net(path: Path, config: Config) -> tuple[nn.Module, int]:
    """The net whose weights are in a file, and its update."""
    model = build_model(config)
    return model, load_weights_from(model, path)


def load_weights_from(model: nn.Module, path: Path) -> int:
    """Give a net the weights of a file; the update that they are from."""
    weights, data = read_tensors(path, WEIGHTS)
    load_weights(model, weights, path)
    update = data.get("update") if isinstance(data, dict) else None
    if not isinstance(update, int) or isinstance(update, bool):
        raise CheckpointError(f"expected the number of an update in the metadata of {path}, got {shown(data)}")
    return update


def load_weights(model: nn.Module, weights: Mapping[str, Tensor], path: Path) -> None:
    """Put the weights of a file into a net that has the same names, shapes and types; `path` is for messages."""
    held = model.state_dict()
    for name in sorted(held.keys() | weights.keys()):
        ours, theirs = (_kind(tensors.get(name)) for tensors in (held, weights))
        if ours != theirs:
            raise CheckpointError(f"{path} has the weights of another net: expected {ours} for {name}, got {theirs}")
    model.load_state_dict(dict(weights))


def _kind(tensor: Tensor | None) -> str:
    return "none" if tensor is None else f"{tuple(tensor.shape)} of {str(tensor.dtype).removeprefix('torch.')}"


def reader(model: nn.Module, inputs: Tensor, lengths: Tensor | None) -> tuple[nn.Module, tuple[Any, ...]]:
    """The part of a net that reads, and what it is called with: of an encoder-decoder, the encoder."""
    if isinstance(model, EncoderDecoder):
        return model.encoder, (inputs, lengths)
    return model, (inputs, None, lengths)
