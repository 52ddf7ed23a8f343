"""Sequences that begin anew in the middle of a batch, as a user asks for them.

Shape suffixes: T time, B batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from slimrnn._fields import some_parameter
from slimrnn.layers.inputs import check_input, check_resets
from slimrnn.ops.reference import Resets, valid_steps

if TYPE_CHECKING:
    from slimrnn.layers.stack import RecurrentStack, States


def resets_of(
    stack: RecurrentStack,
    resets: Tensor | None,
    reset_state: States | None,
    time: int,
    batch: int,
    batched: bool,
    lengths_B: Tensor | None,
) -> list[Resets] | None:
    """Of each layer, within the lengths of the sequences."""
    if resets is None:
        if reset_state is not None:
            raise ValueError("expected resets= with reset_state=, got none")
        return None
    if stack.bidirectional:
        raise ValueError("expected one direction for resets, got bidirectional=True, which reads across them")
    turned = batched and stack.batch_first
    shape = (batch, time) if turned else (time, batch) if batched else (time,)
    at_TB = check_resets(resets, shape, some_parameter(stack.layers).device)
    at_TB = at_TB.T if turned else at_TB if batched else at_TB.unsqueeze(1)
    if lengths_B is not None:
        at_TB = at_TB & valid_steps(time, lengths_B).squeeze(-1)
    return [Resets(at_TB, state) for state in stack.states_of(reset_state, batch, batched)]


def renewed(stack: RecurrentStack, x_t: Tensor, state: States | None, reset: Tensor) -> States | None:
    """The state, but the initial one where `reset` is true: for a single step. None, the initial state, stays."""
    if state is None:
        x = check_input(x_t, (1, 2), stack.input_size, some_parameter(stack.layers).dtype, "x_t")
        check_resets(reset, tuple(x.shape[:-1]), x.device, "reset")
        return None
    some = state if isinstance(state, Tensor) else state[0]
    batched = some.dim() == 3
    batch = some.shape[1] if batched else 1
    at_B = check_resets(reset, (batch,) if batched else (), some.device, "reset").reshape(batch)
    pairs = zip(stack.states_of(state, batch, batched), stack.states_of(None, batch, batched), strict=True)
    return stack.joined([Resets(at_B.unsqueeze(0), anew).before(0, part) for part, anew in pairs], batched)
