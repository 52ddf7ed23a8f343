"""The cell that a name stands for: one of slimrnn's, or module:name."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from slimrnn import (
    GRU,
    LEM,
    LSTM,
    MGU,
    RNN,
    SLSTM,
    AntisymmetricRNN,
    Chrono,
    CoRNN,
    DeepTransitionRNN,
    FastGRNN,
    IndRNN,
    LayerNormGRU,
    LayerNormLSTM,
    LipschitzRNN,
    MinGRU,
    MinLSTM,
    Recurrent,
    UnICORNN,
    UniformGate,
)
from slimrnn._checks import suggestion
from slimrnn.cells import Cell
from slimrnn.cells.biases import DrawnBias
from slimrnn.errors import ConfigError
from slimrnn.layers import RecurrentStack
from slimrnn.layers.recurrent import CellLayer, own_options
from slimrnn.training.config import ModelConfig
from slimrnn.training.importing import imported

LAYERS: dict[str, type[RecurrentStack]] = {
    "rnn": RNN,
    "gru": GRU,
    "lstm": LSTM,
    "mgu": MGU,
    "lem": LEM,
    "cornn": CoRNN,
    "deep-transition-rnn": DeepTransitionRNN,
    "unicornn": UnICORNN,
    "fastgrnn": FastGRNN,
    "slstm": SLSTM,
    "mingru": MinGRU,
    "minlstm": MinLSTM,
    "layer-norm-lstm": LayerNormLSTM,
    "layer-norm-gru": LayerNormGRU,
    "antisymmetric-rnn": AntisymmetricRNN,
    "lipschitz-rnn": LipschitzRNN,
    "indrnn": IndRNN,
}
OF_CELL = {  # settings that have a place of their own
    "nonlinearity": ("rnn",),
    "reset": ("gru",),
    "update_bias": ("gru", "mingru", "layer-norm-gru"),
    "forget_bias": ("lstm", "mgu", "slstm", "minlstm", "layer-norm-lstm"),
    "peephole": ("lstm",),
}
OPTIONS_OF_LAYER: dict[type[RecurrentStack], tuple[str, ...]] = {  # whose cells are made by the layer's own arguments
    IndRNN: ("nonlinearity", "start"),
    RNN: ("modrelu_bias",),
}
GATE_BIASES = {"update_bias", "forget_bias"}


def layer_from(config: ModelConfig) -> Callable[..., RecurrentStack]:
    """What makes the layers, with the options of the cell filled in.

    "module:name" is a class of cells, or of layers, that a module on the path has."""
    layer, own = _named(config.cell) if ":" not in config.cell else _imported(config.cell)
    placed = {name: getattr(config, name) for name, cells in OF_CELL.items() if config.cell in cells}
    placed |= {
        name: _drawn(name, placed[name]) for name in GATE_BIASES & placed.keys() if isinstance(placed[name], str)
    }
    given = _given(config, [name for name in own if name not in placed])
    return partial(layer, **given, **placed)


def has_structure(config: ModelConfig) -> bool:
    """Whether a cell comes with a structure of its own where the settings name none."""
    return config.structure == "dense" and "structure" in getattr(LAYERS.get(config.cell), "defaults", {})


def _named(name: str) -> tuple[Callable[..., RecurrentStack], Iterable[str]]:
    if name not in LAYERS:
        names = ", ".join(LAYERS)
        raise ConfigError(f"expected a cell of {names}, or module:name, got {name!r}{suggestion(name, LAYERS)}")
    layer = LAYERS[name]
    if issubclass(layer, CellLayer):
        return layer, own_options(layer.cell_type)
    return layer, OPTIONS_OF_LAYER.get(layer, ())


def _imported(name: str) -> tuple[Callable[..., RecurrentStack], Iterable[str]]:
    found = imported(name, "cell to be a cell")
    if isinstance(found, type) and issubclass(found, CellLayer):
        return found, own_options(found.cell_type)
    if not isinstance(found, type) or not issubclass(found, Cell):
        raise ConfigError(f"expected cell to be a subclass of slimrnn.Cell, got {found!r} from {name!r}")
    try:
        return partial(Recurrent, found), own_options(found)
    except TypeError as error:
        raise ConfigError(str(error)) from None


def _drawn(name: str, text: str) -> DrawnBias:
    """`chrono(longest)` or `uniform`."""
    if text == "uniform":
        return UniformGate()
    longest = re.fullmatch(r"chrono\((.*)\)", text)
    try:
        return Chrono(float(longest[1] if longest else ""))
    except ValueError:
        message = f"expected {name} to be numbers, chrono(longest) with longest of at least 2, or uniform, got {text!r}"
        raise ConfigError(message) from None


def _given(config: ModelConfig, own: list[str]) -> dict[str, Any]:
    """The options of the cell that were given as name=value; a value is a number, a tuple or a text."""
    given: dict[str, Any] = {}
    for text in config.cell_options:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise ConfigError(f"expected cell_options as name=value, such as dt=0.5, got {text!r}")
        if name not in own:
            options = f"of {', '.join(own)}" if own else "none"
            hint = suggestion(name, own)
            raise ConfigError(f"expected cell_options {options} with {config.cell}, got {name!r}{hint}")
        try:
            given[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            given[name] = value
    return given
