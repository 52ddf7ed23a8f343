"""The net of a run, ready to use."""

from __future__ import annotations

from pathlib import Path

from torch import nn

from slimrnn.tasks.configs import config_from_dict
from slimrnn.training.config import Config
from slimrnn.training.record import Run


def load_run(path: Path | str) -> tuple[nn.Module, Config]:
    """The best net of the run in a directory, or that of one of its files best.safetensors and final.safetensors, for
    inference; and the settings of the run."""
    from slimrnn.training.nets import read_net

    path = Path(path)
    is_file = path.suffix == ".safetensors"
    run = Run(path.parent if is_file else path)
    config = config_from_dict(run.config)
    net, _ = read_net(path if is_file else run.best_weights, config)
    return net.eval(), config
