"""Runs a layer natively and keeps, for each of its cores, what went in and which states came out.

Given these, everything within a step (gates, Jacobians) is computed for all steps at once: no loop over time, but for
the LSTM's c, which no layer returns, and there the loop is pointwise.

Shape suffixes: T time, B batch, I input width, G gates, H hidden units, D delay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from slimrnn.cells import LSTMCell
from slimrnn.cells.base import State
from slimrnn.layers import GRU, LSTM, RNN, delays
from slimrnn.layers.recurrent_layer import RecurrentLayer
from slimrnn.layers.stack import RecurrentStack, States
from slimrnn.layers.tokens import one_hot
from slimrnn.ops.reference import valid_steps
from slimrnn.structures.base import ALL

Lengths = Tensor | Sequence[int]
Layer = RecurrentStack | nn.RNNBase

OURS: dict[type[nn.RNNBase], type[RecurrentStack]] = {nn.RNN: RNN, nn.GRU: GRU, nn.LSTM: LSTM}


@dataclass(frozen=True, eq=False)
class Trajectory:
    """A run of one core; a reversed core's sequences are turned, so that time runs as the core does."""

    core: RecurrentLayer
    number: int  # among the stack's cores
    layer: int  # depth · directions + direction, as torch numbers its states
    backward: bool
    x: Tensor  # (T, B, I)
    start: State  # before the first step; with delays or a skip, lines (B, D·H)
    h: Tensor  # (T, B, H)
    lengths: Tensor | None

    @property
    def valid(self) -> Tensor:
        """(T, B): is this step within its sequence?"""
        steps, batch = self.h.shape[:2]
        if self.lengths is None:
            return torch.ones(steps, batch, dtype=torch.bool, device=self.h.device)
        return valid_steps(steps, self.lengths).squeeze(-1)

    def in_time(self, values_TB: Tensor) -> Tensor:
        """Values by step of the core as values by step of the data."""
        return delays.turned(values_TB, self.lengths) if self.backward else values_TB

    def products(self) -> Tensor:
        """U x_t + b, and what a skip adds (T, B, G, H)."""
        wx_TBGH = self.core.input_product(self.x)
        if self.core.skipped is not None:
            assert self.core.skip is not None
            wx_TBGH = wx_TBGH + self.core.skipped.matvec(self._earlier(self.h, self.start[0], self.core.skip))
        return wx_TBGH

    def states_before(self, wx_TBGH: Tensor) -> State:
        """What the step sees: h and the other states, such as an LSTM's c, of `delay` steps before, (T, B, H) each."""
        h_before = self._earlier(self.h, self.start[0], self.core.delay)
        if self.core.cell.states == 1:
            return (h_before,)
        return h_before, *self._other_states(wx_TBGH, h_before)

    def _earlier(self, h_TBH: Tensor, line: Tensor, steps: int) -> Tensor:
        oldest_first = line.unflatten(-1, (-1, self.core.cell.hidden_size)).transpose(0, 1).flip(0)
        return torch.cat([oldest_first[-steps:], h_TBH])[: len(h_TBH)]

    def _other_states(self, wx_TBGH: Tensor, h_before_TBH: Tensor) -> State:
        """Those but h before every step. An LSTM with one transition has all its products known, and the loop is
        pointwise."""
        core, zero = self.core, wx_TBGH.new_zeros(())
        known = len(core.transitions) == 1 and type(core.cell).step is LSTMCell.step
        products = wx_TBGH + core.recurrent.matvec(h_before_TBH) if known else wx_TBGH
        advance = core.advance()
        lines = [part.unflatten(-1, (-1, core.cell.hidden_size)).transpose(0, 1).flip(0) for part in self.start[1:]]
        found = list(zip(*(line[-core.delay :] for line in lines), strict=True))
        for t, (z_BGH, h_BH) in enumerate(zip(products.unbind(0), h_before_TBH.unbind(0), strict=True)):
            before = (h_BH, *found[t])
            step = core.cell.step(z_BGH, lambda h, gates=ALL: zero, before) if known else advance(z_BGH, before)
            found.append(step[1:])
        return tuple(torch.stack(parts) for parts in zip(*found[: len(h_before_TBH)], strict=True))


def run(
    layer: Layer, x: Tensor | PackedSequence, lengths: Lengths | None = None, hx: States | None = None
) -> list[Trajectory]:
    """The trajectories of all cores, in the order of `cores`, without dropout; x, lengths and hx as our layers take
    them."""
    stack = as_stack(layer)
    found: list[Trajectory] = []

    def keep(core: RecurrentLayer) -> Callable[..., None]:
        def hook(_: nn.Module, args: tuple[Any, ...], options: dict[str, Any], result: tuple[Tensor, State]) -> None:
            found.append(_trajectory(core, len(found), len(stack.delays), result[0], *args, **options))

        return hook

    hooks = [core.register_forward_hook(keep(core), with_kwargs=True) for core in stack.cores]
    try:
        with evaluating(stack), torch.no_grad():
            stack(x, hx) if isinstance(x, PackedSequence) else stack(x, hx, lengths=lengths)
    finally:
        for hook in hooks:
            hook.remove()
    if not found[0].valid.any():
        raise ValueError("expected at least one sequence, got none")
    for one in found:
        if not bool((torch.isfinite(one.x).all(-1) & torch.isfinite(one.h).all(-1) | ~one.valid).all()):
            raise ValueError(f"expected finite inputs and states, got others in layer {one.layer}")
    return found


def _trajectory(
    core: RecurrentLayer,
    number: int,
    groups: int,
    h: Tensor,
    x: Tensor,
    start: State,
    lengths: Tensor | None = None,
    reverse: bool = False,
    vectors_VI: Tensor | None = None,
    resets: None = None,  # `run` asks for none
) -> Trajectory:
    if not x.is_floating_point():  # tokens
        width = core.input.shape.in_size
        x = one_hot(x.squeeze(-1), width, h.dtype) if vectors_VI is None else vectors_VI[x.squeeze(-1)]
    h = torch.complex(*h.chunk(2, -1)) if core.cell.complex else h
    if reverse:
        x, h = delays.turned(x, lengths), delays.turned(h, lengths)
    return Trajectory(core, number, number // groups, reverse, x, start, h, lengths)


def as_stack(layer: Layer) -> RecurrentStack:
    """One of our layers, or torch's with the same weights as one of ours."""
    if isinstance(layer, RecurrentStack):
        return layer
    for theirs, ours in OURS.items():
        if isinstance(layer, theirs):
            with torch.random.fork_rng():  # a layer draws its first weights
                return ours.from_torch(layer)
    expected = "an RNN, GRU or LSTM of slimrnn or torch.nn"
    raise TypeError(f"expected {expected}, got {type(layer).__module__}.{type(layer).__qualname__}")


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Without dropout; afterwards every part is in its own mode again."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, training in modes:
            part.training = training
