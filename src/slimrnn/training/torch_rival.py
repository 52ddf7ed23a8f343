"""torch.nn.LSTM with as many parameters, to compare with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from slimrnn.training.checks import build_model
from slimrnn.training.config import Config, ModelConfig

NAME = "nn.LSTM"  # of its run, in the directory of the other
KEPT = ("layers", "bidirectional", "pooling", "dropout", "readout_dropout", "readout_hidden")


def torch_rival(config: Config, directory: Path) -> Config:
    """The same settings but for the net: an LSTM with a dense matrix, run by torch's own operator, whose size is the
    one with about as many parameters in all."""
    wanted = _parameters(config)
    model = replace(ModelConfig("lstm", backend="torch"), **{name: getattr(config.model, name) for name in KEPT})
    low, high = 1, 2
    while _parameters(replace(config, model=replace(model, hidden=high))) < wanted:
        low, high = high, 2 * high
    sizes = range(low, high + 1)
    while len(sizes) > 2:
        middle = sizes[len(sizes) // 2]
        less = _parameters(replace(config, model=replace(model, hidden=middle))) < wanted
        sizes = range(middle, sizes[-1] + 1) if less else range(sizes[0], middle + 1)
    found = {size: _parameters(replace(config, model=replace(model, hidden=size))) for size in sizes}
    hidden = min(found, key=lambda size: abs(found[size] - wanted))
    return replace(config, model=replace(model, hidden=hidden), out=directory / NAME)


def _parameters(config: Config) -> int:
    return sum(parameter.numel() for parameter in build_model(config).parameters())
