"""Nets on the disk: best.safetensors and final.safetensors of a run."""

from __future__ import annotations

from pathlib import Path

from torch import nn

from slimrnn.training.checks import build_model
from slimrnn.training.config import Config
from slimrnn.training.errors import CheckpointError
from slimrnn.training.files import read_tensors

WEIGHTS = "weights"  # name of the format


def read_net(path: Path, config: Config) -> tuple[nn.Module, int]:
    """The net whose weights are in a file, and its update."""
    model = build_model(config)
    weights, data = read_tensors(path, WEIGHTS)
    try:
        model.load_state_dict(weights)
    except RuntimeError:
        raise CheckpointError(f"{path} has the weights of another net") from None
    return model, data["update"]
