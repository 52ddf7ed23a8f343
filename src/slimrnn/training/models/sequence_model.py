"""The net that a configuration describes: recurrent layers and a linear read-out.

Shape suffixes: T time, B sequences of a batch, I input width, O output width, H width of the layers' output.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields
from typing import Any

from torch import Tensor, nn

from slimrnn import (
    GRU,
    LSTM,
    RNN,
    BlockDiagonal,
    ContextSwitching,
    Dense,
    Diagonal,
    FullUnitary,
    Kronecker,
    Leaky,
    LowRank,
    ReadOut,
    UnitaryProduct,
)
from slimrnn._checks import suggestion
from slimrnn.errors import ConfigError
from slimrnn.layers import RecurrentStack
from slimrnn.layers.options import OPTIONS
from slimrnn.layers.stack import States
from slimrnn.structures import Structure
from slimrnn.training.config import ModelConfig
from slimrnn.training.importing import imported

LAYERS: dict[str, type[RecurrentStack]] = {"rnn": RNN, "gru": GRU, "lstm": LSTM}
OF_CELL = {"nonlinearity": "rnn", "reset": "gru", "update_bias": "gru", "forget_bias": "lstm", "peephole": "lstm"}
OF_STRUCTURE = {
    "rank": "low-rank",
    "tied": "low-rank",
    "blocks": "block-diagonal",
    "context_switching": "block-diagonal",
    "factors": "kronecker",
}
STRUCTURES: dict[str, Callable[[ModelConfig], Structure]] = {
    "dense": lambda _: Dense(),
    "diagonal": lambda _: Diagonal(),
    "low-rank": lambda config: LowRank(_needed(config, "rank"), tied=config.tied),
    "block-diagonal": lambda config: BlockDiagonal(_needed(config, "blocks")),
    "kronecker": lambda config: Kronecker(config.factors or _factors_of_two(config.hidden // len(config.delays))),
    "full-unitary": lambda _: FullUnitary(),
    "unitary-product": lambda _: UnitaryProduct(),
}


class SequenceModel(nn.Module):
    """Recurrent layers and a linear read-out, at every step or after the last."""

    def __init__(self, input_size: int, output_size: int, config: ModelConfig, every_step: bool) -> None:
        super().__init__()
        self.rnn = build_layers(input_size, config)
        self.readout = ReadOut(self.rnn, output_size, at="every" if every_step else "last")

    def forward(
        self, inputs: Tensor, state: States | None = None, lengths: Tensor | None = None
    ) -> tuple[Tensor, States]:
        """Inputs (T, B, I) to the output, (T, B, O) or (B, O), and the state after the last step."""
        hidden_TBH, state = self.rnn(inputs, state, lengths=lengths)
        return self.readout(hidden_TBH, lengths), state


def build_layers(input_size: int, config: ModelConfig) -> RecurrentStack | ContextSwitching:
    """The recurrent layers; options that do not belong to the cell or the structure are refused."""
    if config.cell not in LAYERS:
        raise ConfigError(f"expected a cell of {', '.join(LAYERS)}, got {config.cell!r}")
    _refuse_unused(config)
    of_cell = {name: getattr(config, name) for name, cell in OF_CELL.items() if cell == config.cell}
    shared = {name: getattr(config, name) for name in OPTIONS if hasattr(config, name)}
    shared |= {name: structure_from(config, name) for name in ("structure", "input_structure")}
    layer: Any = LAYERS[config.cell]
    stack: RecurrentStack = layer(
        input_size,
        config.hidden,
        config.layers,
        dropout=config.dropout,
        bidirectional=config.bidirectional,
        **shared | {"leak": _leak(config)},
        **of_cell,
    )
    if config.context_switching == "none":
        return stack
    return ContextSwitching(stack, config.context_switching, mean_one=True)


def _leak(config: ModelConfig) -> Leaky | None:
    if config.leak is None and config.time_constants is None:
        if config.learn_leak:
            raise ConfigError("expected leak or time_constants with learn_leak, got neither")
        return None
    return Leaky(config.leak, config.time_constants, learned=config.learn_leak)


def structure_from(config: ModelConfig, which: str = "structure") -> Structure:
    """The structure with a name such as "low-rank+diagonal", or "module:name" for a user's; `which` is the field that
    holds the name."""
    names = [name.strip() for name in getattr(config, which).split("+")]
    total, *others = (_term(name, config, which) for name in names)
    for other in others:
        total = total + other
    return total


def recurrent_layers(model: nn.Module) -> list[RecurrentStack]:
    """The stacks of recurrent layers anywhere in a model."""
    return [module for module in model.modules() if isinstance(module, RecurrentStack)]


def recurrent_parameters(model: nn.Module) -> Iterator[nn.Parameter]:
    """Parameters of the recurrent matrices."""
    for stack in recurrent_layers(model):
        for layer in stack.cores:
            for recurrent in layer.maps:
                yield from recurrent.parameters()


def learned_initial_states(model: nn.Module) -> list[nn.Parameter]:
    """Those of the layers that have one."""
    layers = [layer for stack in recurrent_layers(model) for layer in stack.cores]
    return [layer.initial for layer in layers if isinstance(layer.initial, nn.Parameter)]


def _term(name: str, config: ModelConfig, which: str) -> Structure:
    if name in STRUCTURES:
        return STRUCTURES[name](config)
    if ":" in name:
        return _imported(name, which)
    hint = suggestion(name, STRUCTURES)
    raise ConfigError(f"expected {which} from {', '.join(STRUCTURES)} or a sum of these, got {name!r}{hint}")


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
    used = {name.strip() for text in (config.structure, config.input_structure) for name in text.split("+")}
    _refuse(config, OF_STRUCTURE, sorted(used))


def _refuse(config: ModelConfig, owners: dict[str, str], present: list[str]) -> None:
    defaults = {f.name: f.default for f in fields(config) if f.default is not MISSING}
    for option, owner in owners.items():
        value = getattr(config, option)
        if owner not in present and value != defaults[option]:
            raise ConfigError(f"expected {option} only with {owner}, got {option} {value} with {', '.join(present)}")
