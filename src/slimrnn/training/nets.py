"""The nets of a run: their files best.safetensors and final.safetensors, and how to call them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from slimrnn._texts import shown
from slimrnn.errors import CheckpointError, ConfigError
from slimrnn.sequence import EncoderDecoder
from slimrnn.training.checks import build_model
from slimrnn.training.config import Config
from slimrnn.training.run_files import read_tensors

WEIGHTS = "weights"  # name of the format
START = "start.safetensors"  # in the directory of a compressed run: its net before any update


def read_net(path: Path, config: Config) -> nn.Module:
    """The net whose weights are in a file."""
    weights, data = read_tensors(path, WEIGHTS)
    _update_of(data, path)
    try:
        config.task.check_weights(weights)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    model = build_model(config)
    load_weights(model, weights, path)
    return model


def load_weights_from(model: nn.Module, path: Path) -> int:
    """Load the weights of a file into a net; returns the update that they are from."""
    weights, data = read_tensors(path, WEIGHTS)
    load_weights(model, weights, path)
    return _update_of(data, path)


def _update_of(data: Any, path: Path) -> int:
    update = data.get("update") if isinstance(data, dict) else None
    if not isinstance(update, int) or isinstance(update, bool):
        raise CheckpointError(f"expected the number of an update in the metadata of {path}, got {shown(data)}")
    return update


def load_weights(model: nn.Module, weights: Mapping[str, Tensor], path: Path) -> None:
    """Load weights whose names, shapes and types must be those of the net; `path` is for error messages."""
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
