"""The recurrent layers inside an encoder or a decoder: anything of ours that steps, or torch.nn's.

A state is a tensor whose last axes are batch and width, or a tuple of states.

Shape suffixes: T time, B batch, I input width, H width of the output, C width of the context.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from slimrnn._fields import as_complex
from slimrnn.layers import ContextSwitching, Deep, OutputRecurrent, RecurrentStack

Core = RecurrentStack | ContextSwitching | Deep | OutputRecurrent | nn.RNNBase
State = Tensor | tuple[Any, ...]


def check_core(core: object, width: int, *, causal: bool) -> Core:
    """A core must be recurrent layers, time first, for inputs of this width; of a decoder, in one direction."""
    if not isinstance(core, Core):
        raise TypeError(f"expected core to make an RNN, GRU or LSTM for an input width, got {type(core).__name__}")
    if core.input_size != width:
        raise ValueError(f"expected core to make a layer of input_size={width}, as asked, got {core.input_size}")
    if core.batch_first:
        raise ValueError("expected a core with time first, got batch_first=True")
    both = any(_directions(part) == 2 for part in core.modules())
    if causal and both:
        raise ValueError("expected a core in one direction, got a bidirectional one, which reads what it is to write")
    if both and _directions(core) == 1:
        raise ValueError("expected layers of one direction inside the core, which mixes both, got bidirectional ones")
    if getattr(core, "proj_size", 0):
        raise ValueError(f"expected an LSTM without projection, got proj_size={core.proj_size}")
    return core


def output_size(core: Core) -> int:
    return core.hidden_size * _directions(core) if isinstance(core, nn.RNNBase) else core.output_size


def has_learned_start(core: Core) -> bool:
    return any(isinstance(part, RecurrentStack) and part.learn_initial_state for part in core.modules())


def initial_state(core: Core, batch: int) -> State:
    if not isinstance(core, nn.RNNBase):
        return core.initial_state(batch)
    zero = next(core.parameters()).new_zeros(core.num_layers, batch, core.hidden_size)
    return (zero, zero) if isinstance(core, nn.LSTM) else zero


def scan(core: Core, x_TBI: Tensor, state: Any, lengths_B: Tensor | None = None) -> tuple[Tensor, State]:
    """The whole sequence: outputs (T, B, H), and the state after each sequence's last step."""
    run: Any = core
    if not isinstance(core, nn.RNNBase):
        output, state = run(x_TBI, state, lengths=lengths_B)
    elif lengths_B is None:
        output, state = run(x_TBI, state)
    else:
        packed, state = run(pack_padded_sequence(x_TBI, lengths_B.cpu(), enforce_sorted=False), state)
        output, _ = pad_packed_sequence(packed, total_length=len(x_TBI))
    return output, state


def step(core: Core, x_BI: Tensor, state: Any) -> tuple[Tensor, State]:
    """One step: without gradients, a layer of ours is one native call."""
    if not isinstance(core, nn.RNNBase):
        return core.step(x_BI, state)
    output, state = core(x_BI.unsqueeze(0), state)
    return output.squeeze(0), state


def last_output(core: Core, output_TBH: Tensor, lengths_B: Tensor | None) -> Tensor:
    """(B, H): what each direction gives when it has seen the whole sequence."""
    sequences = torch.arange(output_TBH.shape[1], device=output_TBH.device)
    last = output_TBH[-1] if lengths_B is None else output_TBH[lengths_B.long() - 1, sequences]
    half = output_TBH.shape[-1] // 2
    return last if _directions(core) == 1 else torch.cat([last[:, :half], output_TBH[0, :, half:]], -1)


def reordered(state: State, rows: Tensor) -> State:
    """The states of other sequences."""
    others: State = _mapped(lambda part: part.index_select(-2, rows), state)
    return others


class StartMap(nn.Linear):
    """The context as initial state: h₀ = W c + b, for every layer and every tensor of the state."""

    def __init__(self, context_size: int, core: Core, **where: Any) -> None:
        widths: list[int] = []
        self.form = _mapped(lambda part: _Form(part, widths), initial_state(core, 1))
        super().__init__(context_size, sum(widths), **where)

    def forward(self, context_BC: Tensor) -> State:  # type: ignore[override]
        numbers_BN = super().forward(context_BC)
        state: State = _mapped(lambda form: form.part(numbers_BN), self.form)
        return state


class _Form:
    """A tensor of a state: its shape, and which numbers make it."""

    def __init__(self, part: Tensor, widths: list[int]) -> None:
        """`widths` are those of the parts before, and then of this one too."""
        self.lead, self.pairs = (*part.shape[:-2], part.shape[-1]), part.is_complex()
        self.first, self.count = sum(widths), part[..., 0, :].numel() * (2 if self.pairs else 1)
        widths.append(self.count)

    def part(self, numbers_BN: Tensor) -> Tensor:
        mine = numbers_BN[:, self.first : self.first + self.count]
        values = mine.unflatten(-1, (*self.lead, 2) if self.pairs else self.lead)
        values = as_complex(values) if self.pairs else values
        return values.movedim(0, -2).contiguous()


def _mapped(function: Callable[[Any], Any], state: Any) -> Any:
    """The same for each tensor of a state."""
    return tuple(_mapped(function, part) for part in state) if isinstance(state, tuple) else function(state)


def _directions(core: nn.Module) -> int:
    return 2 if getattr(core, "bidirectional", False) else 1
