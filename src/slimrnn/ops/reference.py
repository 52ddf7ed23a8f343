"""The reference scan: the readable definition of every layer, in plain torch.

Shape suffixes: T time, B batch, G gates, H hidden units.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from slimrnn.errors import ExportError

State = tuple[Tensor, ...]  # (B, H) each; the first one is the layer's output
Step = Callable[[Tensor, State], State]  # (U x_t + b, state before) -> state


class Resets(NamedTuple):
    """Where sequences begin anew: before these steps their state is `state`, and not what the step before has left."""

    at_TB: Tensor
    state: State

    def before(self, t: int, state: State) -> State:
        """The state before step t, of what the step before it has left."""
        at_B = self.at_TB[t]
        at = at_B.reshape(*at_B.shape, *[1] * (state[0].dim() - 1))  # of (B, H), or of pairs (B, H, 2)
        return tuple(torch.where(at, anew, left) for anew, left in zip(self.state, state, strict=True))

    def of_steps(self, start: int, stop: int) -> Resets:
        return self._replace(at_TB=self.at_TB[start:stop])


def scan(
    step: Step,
    wx_TBGH: Tensor,
    state: State,
    lengths_B: Tensor | None = None,
    reverse: bool = False,
    resets: Resets | None = None,
) -> tuple[Tensor, State]:
    """Run a step over time and return the outputs (T, B, H) and the last state.

    Beyond a sequence's length its state stays as it is and its output is zero. Reversed, the loop runs from the last
    step to the first, so a padded sequence waits in its initial state until its own end comes up."""
    check_length_is_fixed(wx_TBGH.shape[0])
    valid = None
    if lengths_B is not None:
        valid_TB1 = valid_steps(wx_TBGH.shape[0], lengths_B)
        wx_TBGH = torch.where(valid_TB1.unsqueeze(-1), wx_TBGH, _ordinary(wx_TBGH, lengths_B))
        valid = valid_TB1.unbind(0)
    inputs = wx_TBGH.unbind(0)
    outputs, zero = list(inputs), state[0].new_zeros(())
    for t in reversed(range(len(inputs))) if reverse else range(len(inputs)):
        if resets is not None:
            state = resets.before(t, state)
        new = step(inputs[t], state)
        if valid is not None:
            new = tuple(torch.where(valid[t], after, before) for after, before in zip(new, state, strict=True))
            outputs[t] = torch.where(valid[t], new[0], zero)
        else:
            outputs[t] = new[0]
        state = new
    return torch.stack(outputs), state


def check_length_is_fixed(time: int) -> None:
    """ExportError where a loop over time would be exported for one length, though others are asked for."""
    # A strict export does not tell whether the length is free; torch.onnx tries one after the other kind was refused.
    if torch.compiler.is_exporting() and (isinstance(time, torch.SymInt) or torch.compiler.is_dynamo_compiling()):
        raise ExportError(
            "expected a layer that runs in the native core to export it for any length, got one whose loop over time "
            "in plain torch would fix it: use backend='auto', float32 or float64, a cell that can be traced and no "
            "skip, or export single steps"
        )


def _ordinary(wx_TBGH: Tensor, lengths_B: Tensor) -> Tensor:
    """Something that a cell can bear instead of padding: what the longest sequence starts with.

    The step of a sequence that has ended is computed and not used, but zero times a derivative that is no number is no
    number either; and at zero, not every cell has one."""
    if not lengths_B.numel():
        return wx_TBGH.new_zeros(())
    start_1GH = wx_TBGH[0].detach().index_select(0, lengths_B.argmax(0, keepdim=True))
    return torch.nan_to_num(start_1GH, posinf=0.0, neginf=0.0)


def valid_steps(time: int, lengths_B: Tensor) -> Tensor:
    """(T, B, 1): is this step within its sequence?"""
    return (torch.arange(time, device=lengths_B.device).unsqueeze(1) < lengths_B).unsqueeze(-1)
