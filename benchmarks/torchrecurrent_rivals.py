"""The same cells in torchrecurrent, loops of single steps in plain torch; used where it is installed."""

from __future__ import annotations

import importlib
import importlib.util

from cases import Shape
from torch import nn

SAME = {  # names of cases.ZOO -> theirs
    "LSTM, peepholes": "PeepholeLSTM",
    "MGU": "MGU",
    "LEM": "LEM",
    "UnICORNN": "UnICORNN",
    "FastGRNN": "FastGRNN",
    "AntisymmetricRNN": "AntisymmetricRNN",
    "IndRNN": "IndRNN",
}


def installed() -> bool:
    return importlib.util.find_spec("torchrecurrent") is not None


def layer(name: str, shape: Shape) -> nn.Module | None:
    """Theirs for a cell of ours, or None."""
    if name not in SAME or not installed():
        return None
    made: nn.Module = getattr(importlib.import_module("torchrecurrent"), SAME[name])(shape.m, shape.n)
    return made
