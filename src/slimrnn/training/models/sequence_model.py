"""The net that a configuration describes: recurrent layers and a read-out.

Shape suffixes: T time, B sequences of a batch, I input width, O output width, H width of the layers' output.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, fields, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from slimrnn import (
    BlockDiagonal,
    ContextSwitching,
    Kronecker,
    Leaky,
    LowRank,
    ReadOut,
)
from slimrnn._checks import check_probability, suggestion
from slimrnn.errors import ConfigError
from slimrnn.layers import RecurrentStack
from slimrnn.layers.affine import Affine
from slimrnn.layers.options import OPTIONS
from slimrnn.layers.stack import States
from slimrnn.structures import Structure
from slimrnn.structures.base import StructuredMap
from slimrnn.structures.dense import DenseMap
from slimrnn.structures.legendre import LegendreMap
from slimrnn.training.cells import OF_CELL, has_structure, layer_from
from slimrnn.training.config import ModelConfig
from slimrnn.training.importing import imported
from slimrnn.training.structure_names import NAMES, Number, names_in, read_structure, texts_of_layers, with_arguments

OF_STRUCTURE = {
    "rank": "low-rank",
    "tied": "low-rank",
    "blocks": "block-diagonal",
    "context_switching": "block-diagonal",
    "factors": "kronecker",
}
EXAMPLES = {
    "tied-low-rank": "tied-low-rank(24)",
    "sparse": "sparse(0.05)",
    "shuffle": "shuffle(4)",
    "householder": "householder(8)",
    "legendre": "legendre(100)",
}


class SequenceModel(nn.Module):
    """Recurrent layers and a read-out, linear or with a hidden layer, at every step or after the last."""

    def __init__(
        self, input_size: int, output_size: int, config: ModelConfig, every_step: bool, one_hot: bool = False
    ) -> None:
        super().__init__()
        hidden, self.readout_dropout = config.readout_hidden, config.readout_dropout
        check_probability("readout_dropout", self.readout_dropout)
        if every_step and config.pooling != "last":
            raise ConfigError(f"expected pooling only with one output per sequence, got {config.pooling}")
        layers = replace(config, readout_hidden=0, readout_dropout=0.0, pooling="last")
        self.rnn = build_layers(input_size, layers, one_hot=one_hot)
        self.readout = ReadOut(self.rnn, hidden or output_size, at="every" if every_step else config.pooling)
        self.output = nn.Sequential(nn.ReLU(), Affine(hidden, output_size)) if hidden else nn.Identity()

    def forward(
        self, inputs: Tensor, state: States | None = None, lengths: Tensor | None = None
    ) -> tuple[Tensor, States]:
        """Inputs (T, B, I) to the output, (T, B, O) or (B, O), and the state after the last step."""
        hidden_TBH, state = self.rnn(inputs, state, lengths=lengths)
        if self.training and self.readout.at == "last" and isinstance(self.rnn, RecurrentStack):
            last_BH = self.rnn.last_output(state)  # the gradient of all other outputs, zeros, need not be written
            hidden_TBH, lengths = (hidden_TBH, lengths) if last_BH is None else (last_BH.unsqueeze(0), None)
        if self.training and self.readout_dropout:
            hidden_TBH = hidden_TBH * functional.dropout(torch.ones_like(hidden_TBH[0]), self.readout_dropout)
        return self.output(self.readout(hidden_TBH, lengths)), state

    def step(self, x_t: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        """One step, (B, I) to (B, O), and the state after it."""
        if self.training and self.readout_dropout:
            raise RuntimeError("expected eval() for step with readout_dropout, of one mask a sequence, got training")
        hidden_BH, state = self.rnn.step(x_t, state)
        return self.output(self.readout.product(hidden_BH)), state

    def initial_state(self, batch: int | None = None) -> Any:
        """The state before the first step."""
        return self.rnn.initial_state(batch)

    def stages(self) -> list[nn.Module]:
        """What the input passes through in a step, for exports that run steps only."""
        return [self.rnn, self.readout, self.output]


def build_layers(input_size: int, config: ModelConfig, one_hot: bool = False) -> RecurrentStack | ContextSwitching:
    """The recurrent layers; options that do not belong to the cell or the structure are refused."""
    layer = layer_from(config)
    _refuse_unused(config)
    for option, none in (("readout_hidden", 0), ("readout_dropout", 0), ("pooling", "last")):
        if getattr(config, option) != none:
            raise ConfigError(f"expected {option} {none} for this task's net, got {getattr(config, option)}")
    shared = {name: getattr(config, name) for name in OPTIONS if hasattr(config, name)}
    shared |= {name: _structures(config, name) for name in ("structure", "input_structure")}
    if has_structure(config):
        del shared["structure"]
    stack = layer(
        input_size,
        config.hidden,
        config.layers,
        dropout=config.dropout,
        bidirectional=config.bidirectional,
        one_hot=one_hot,
        **shared | {"leak": _leak(config)},
    )
    if input_size == 1:
        _write_memories_(stack)
    if config.context_switching == "none":
        return stack
    return ContextSwitching(stack, config.context_switching, mean_one=True)


def _write_memories_(stack: RecurrentStack) -> None:
    """A Legendre memory of one input begins with the input vector that belongs to it."""
    core = stack.cores[0]
    if isinstance(core.recurrent, LegendreMap) and isinstance(core.input, DenseMap):
        core.input.nearest_(core.recurrent.input_vector().expand(core.input.shape.gates, -1).unsqueeze(-1))


def _leak(config: ModelConfig) -> Leaky | None:
    if config.leak is None and config.time_constants is None:
        if config.learn_leak:
            raise ConfigError("expected leak or time_constants with learn_leak, got neither")
        return None
    return Leaky(config.leak, config.time_constants, learned=config.learn_leak)


def structure_from(config: ModelConfig, which: str = "structure") -> Structure:
    """The structure that a text such as "low-rank+diagonal" stands for; `which` is the field that holds it.

    A name may bring its arguments, "low-rank(8)"; without them the settings of that name are taken. "module:name" is
    one that a module on the path has. In Python, where nothing is written to run.json, the field may also hold the
    structure itself."""
    held = getattr(config, which)
    return held if isinstance(held, Structure) else _read(held, config, which)


def _read(text: str, config: ModelConfig, which: str) -> Structure:
    return read_structure(text, which, lambda name, given: _term(name, given, config, which))


def _structures(config: ModelConfig, which: str) -> list[Structure] | Structure:
    """One, or with commas in the text one for each layer and direction."""
    held = getattr(config, which)
    if isinstance(held, Structure):
        return held
    found = [_read(text, config, which) for text in texts_of_layers(held)]
    return found if len(found) > 1 else found[0]


def recurrent_layers(model: nn.Module) -> list[RecurrentStack]:
    """The stacks of recurrent layers anywhere in a model."""
    return [module for module in model.modules() if isinstance(module, RecurrentStack)]


def row_scales(model: nn.Module) -> Iterator[nn.Parameter]:
    """The scales s of weight normalisation, w = s v / ‖v‖."""
    for part in model.modules():
        if isinstance(part, StructuredMap) and part.weight_norm:
            yield from (part.get_parameter(f"{name}_scale") for name, scaled in part.normed.items() if scaled)


def learned_initial_states(model: nn.Module) -> list[nn.Parameter]:
    """Those of the layers that have one."""
    layers = [layer for stack in recurrent_layers(model) for layer in stack.cores]
    return [layer.initial for layer in layers if isinstance(layer.initial, nn.Parameter)]


def _term(name: str, arguments: tuple[Number, ...] | None, config: ModelConfig, which: str) -> Structure:
    if ":" in name and arguments is None:
        return _imported(name, which)
    if name not in NAMES:
        known, hint = ", ".join(NAMES), suggestion(name, NAMES)
        raise ConfigError(f"expected {which} from {known}, or these with + and @ between them, got {name!r}{hint}")
    if arguments is not None:
        return with_arguments(name, arguments, which)
    match name:
        case "low-rank":
            return LowRank(_needed(config, "rank"), tied=config.tied)
        case "block-diagonal":
            return BlockDiagonal(_needed(config, "blocks"))
        case "kronecker":
            return Kronecker(config.factors or _factors_of_two(config.hidden // len(config.delays)))  # of each group
        case "tied-low-rank" | "sparse" | "shuffle" | "householder" | "legendre":
            raise ConfigError(f"expected {name} with a number, such as {EXAMPLES[name]}, got none in {which}")
    return with_arguments(name, (), which)


def _imported(name: str, which: str) -> Structure:
    """A user's structure: a spec, or a class of specs without arguments."""
    found = imported(name, f"{which} to be a structure")
    try:
        # No other callable: settings that come from elsewhere are to import a module at most.
        spec = found() if isinstance(found, type) and issubclass(found, Structure) else found
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"expected {which} to be a structure that needs no arguments, got {name!r}: {error}"
        ) from None
    if not isinstance(spec, Structure):
        raise ConfigError(f"expected {which} to be a structure, got {type(spec).__name__} from {name!r}")
    return spec


def _needed(config: ModelConfig, option: str) -> int:
    value: int | None = getattr(config, option)
    if value is None:
        raise ConfigError(f"expected {option} with structure {OF_STRUCTURE[option]}, got none")
    return value


def _factors_of_two(hidden: int) -> list[int]:
    if hidden < 2 or hidden & (hidden - 1):
        raise ConfigError(f"expected factors for kronecker, or hidden to be a power of two, got hidden {hidden}")
    return [2] * (hidden.bit_length() - 1)


def _refuse_unused(config: ModelConfig) -> None:
    _refuse(config, OF_CELL, [config.cell])
    refuse_foreign(config)
    for option in ("dropout", "residual"):
        if getattr(config, option) and config.layers == 1:
            raise ConfigError(f"expected at least 2 layers for {option}, which acts between them, got 1")


def refuse_foreign(config: ModelConfig) -> None:
    """Options of structures that the net does not have."""
    used = names_in(config.structure) | names_in(config.input_structure)
    _refuse(config, {option: (structure,) for option, structure in OF_STRUCTURE.items()}, sorted(used))


def _refuse(config: ModelConfig, owners: dict[str, tuple[str, ...]], present: list[str]) -> None:
    defaults = {f.name: f.default for f in fields(config) if f.default is not MISSING}
    for option, users in owners.items():
        value, shown = getattr(config, option), ", ".join(present)
        if not set(users) & set(present) and value != defaults[option]:
            raise ConfigError(f"expected {option} only with {', '.join(users)}, got {option} {value} with {shown}")
