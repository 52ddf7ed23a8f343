"""The recurrent layers inside an encoder or a decoder: ours, or torch.nn's.

Shape suffixes: T time, B batch, I input width, H width of the output.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from slimrnn._fields import as_complex, side_by_side
from slimrnn.layers import RecurrentStack

Core = RecurrentStack | nn.RNNBase
States = Tensor | tuple[Tensor, ...]


def check_core(core: object, width: int, *, causal: bool) -> Core:
    """A core must be a stack of recurrent layers, time first, for inputs of this width; of a decoder, in one
    direction."""
    if not isinstance(core, RecurrentStack | nn.RNNBase):
        raise TypeError(f"expected core to make an RNN, GRU or LSTM for an input width, got {type(core).__name__}")
    if core.input_size != width:
        raise ValueError(f"expected core to make a layer of input_size={width}, as asked, got {core.input_size}")
    if core.batch_first:
        raise ValueError("expected a core with time first, got batch_first=True")
    if causal and core.bidirectional:
        raise ValueError("expected a core in one direction, got a bidirectional one, which reads what it is to write")
    if getattr(core, "proj_size", 0):
        raise ValueError(f"expected an LSTM without projection, got proj_size={core.proj_size}")
    return core


def state_count(core: Core) -> int:
    """Tensors of the state: two of an LSTM."""
    return core.cell.states if isinstance(core, RecurrentStack) else 1 + isinstance(core, nn.LSTM)


def is_complex(core: Core) -> bool:
    return isinstance(core, RecurrentStack) and core.cell.complex


def output_size(core: Core) -> int:
    if isinstance(core, RecurrentStack):
        return core.output_size
    return core.hidden_size * (2 if core.bidirectional else 1)


def has_learned_start(core: Core) -> bool:
    return isinstance(core, RecurrentStack) and core.learn_initial_state


def initial_state(core: Core, batch: int) -> States:
    if isinstance(core, RecurrentStack):
        return core.initial_state(batch)
    some = next(core.parameters())
    zero = some.new_zeros(core.num_layers, batch, core.hidden_size)
    return (zero, zero) if state_count(core) == 2 else zero


def scan(core: Core, x_TBI: Tensor, state: States | None, lengths_B: Tensor | None = None) -> tuple[Tensor, States]:
    """The whole sequence: outputs (T, B, H), and the state after each sequence's last step."""
    if isinstance(core, RecurrentStack):
        output, state = core(x_TBI, state, lengths=lengths_B)
        assert state is not None
        return output, state
    if lengths_B is None:
        return core(x_TBI, state)  # type: ignore[no-any-return]
    packed = pack_padded_sequence(x_TBI, lengths_B.cpu(), enforce_sorted=False)
    _, last = core(packed, state)
    return x_TBI.new_empty(0), last  # who gives lengths wants the state only


def step(core: Core, x_BI: Tensor, state: States) -> tuple[Tensor, States]:
    """One step: without gradients, ours is one native call for each layer."""
    if isinstance(core, RecurrentStack):
        return core.step(x_BI, state)
    output, state = core(x_BI.unsqueeze(0), state)
    return output.squeeze(0), state


def summary_of(core: Core, state: States) -> Tensor:
    """(B, H): the last state h of the top layer, of both directions."""
    h = state if isinstance(state, Tensor) else state[0]
    directions = 2 if core.bidirectional else 1
    return torch.cat([side_by_side(part) for part in h[-directions:].unbind(0)], -1)


def reordered(state: States, rows: Tensor) -> States:
    """The states of other sequences."""
    if isinstance(state, Tensor):
        return state.index_select(1, rows)
    return tuple(part.index_select(1, rows) for part in state)


class StartMap(nn.Linear):
    """The context as initial state: h₀ = W c + b, for every layer and every tensor of the state."""

    def __init__(self, context_size: int, core: Core, **where: Any) -> None:
        self.parts, self.depth, self.hidden = state_count(core), core.num_layers, core.hidden_size
        self.pairs = is_complex(core)
        super().__init__(context_size, self.parts * self.depth * self.hidden * (2 if self.pairs else 1), **where)

    def forward(self, context_BC: Tensor) -> States:  # type: ignore[override]
        shape = (self.parts, self.depth, self.hidden, 2) if self.pairs else (self.parts, self.depth, self.hidden)
        states = super().forward(context_BC).unflatten(-1, shape).movedim(0, 2)
        states = as_complex(states) if self.pairs else states
        parts = tuple(part.contiguous() for part in states.unbind(0))
        return parts if self.parts > 1 else parts[0]
