"""The net of a run, ready to use."""

from __future__ import annotations

from pathlib import Path

from torch import nn

from slimrnn.tasks.configs import config_from_dict
from slimrnn.training.config import Config
from slimrnn.training.record import Run


def run_config(run: Run, task: str | None = None) -> Config:
    """The settings of a run; `task`, module:Class, is where its task is now, if not where run.json says."""
    values = run.config
    if task is not None and isinstance(values.get("task"), dict):
        values = {**values, "task": {**values["task"], "class": task}}
    return config_from_dict(values)


def load_run(path: Path | str, task: str | None = None) -> tuple[nn.Module, Config]:
    """The best net of the run in a directory, or that of one of its files best.safetensors and final.safetensors, for
    inference; and the settings of the run. `task` as for `run_config`."""
    from slimrnn.training.nets import read_net

    path = Path(path)
    is_file = path.suffix == ".safetensors"
    run = Run(path.parent if is_file else path)
    config = run_config(run, task)
    return read_net(path if is_file else run.best_weights, config).eval(), config
