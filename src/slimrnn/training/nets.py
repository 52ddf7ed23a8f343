"""Nets of a run: on the disk, best.safetensors and final.safetensors, and what they are called with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import Tensor, nn

from slimrnn.sequence import EncoderDecoder
from slimrnn.training.checks import build_model
from slimrnn.training.config import Config
from slimrnn.training.errors import CheckpointError
from slimrnn.training.files import read_tensors

WEIGHTS = "weights"  # name of the format


def read_net(path: Path, config: Config) -> tuple[nn.Module, int]:
    """The net whose weights are in a file, and its update."""
    model = build_model(config)
    return model, load_weights_(model, path)


def load_weights_(model: nn.Module, path: Path) -> int:
    """Give a net the weights of a file; the update that they are from."""
    weights, data = read_tensors(path, WEIGHTS)
    try:
        model.load_state_dict(weights)
    except RuntimeError:
        raise CheckpointError(f"{path} has the weights of another net") from None
    return int(data["update"])


def reader(model: nn.Module, inputs: Tensor, lengths: Tensor | None) -> tuple[nn.Module, tuple[Any, ...]]:
    """The part of a net that reads, and what it is called with: of an encoder-decoder, the encoder."""
    if isinstance(model, EncoderDecoder):
        return model.encoder, (inputs, lengths)
    return model, (inputs, None, lengths)
