"""ConstantLayer: a recurrent layer that reads tensors made once from its parameters, and no parameters any more.

Shape suffixes: T time, B batch, I input width, V vocabulary, G gates, H hidden units, W real numbers of a state vector.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from slimrnn.cells.base import State
from slimrnn.layers.native_scan import in_turns, of_first_phase
from slimrnn.layers.recurrent_layer import RecurrentLayer
from slimrnn.layers.transition import constant
from slimrnn.ops.calls import Inputs
from slimrnn.ops.reference import Resets
from slimrnn.ops.terms import Plan

Terms = Sequence[tuple[str, Sequence[Tensor]]]  # of one phase: kind and tensors


class ConstantLayer(RecurrentLayer):
    """Its tensors: u (G, W, I), or None where the input map is kept; bias_0, bias_1, ... (G, W) of its transitions, or
    None; own (transitions, rows, W), what the step reads of the cell's parameters, or None; weight_0, weight_1, ... of
    the terms that `plan` lists."""

    plan: Plan
    u: Tensor | None
    own: Tensor | None

    def renew_cells(self) -> None:
        """Nothing changes any more."""

    def bias_of(self, phase: int) -> Tensor | None:
        """(G, W)"""
        found: Tensor | None = getattr(self, f"bias_{phase}")
        return found

    @property
    def weights(self) -> list[Tensor]:
        """Of the terms of all transitions, one after the other."""
        return [getattr(self, f"weight_{k}") for k in range(sum(count for _, count in self.plan.terms))]

    def terms_of(self, phase: int) -> Terms:
        """Kind and tensors of each."""
        per_phase, rest = len(self.plan.terms) // self.plan.phases, iter(self.weights)
        found = [(kind, [next(rest) for _ in range(count)]) for kind, count in self.plan.terms]
        return found[phase * per_phase : (phase + 1) * per_phase]

    def operands(
        self,
        x_TBI: Tensor | None,
        wx_TBGH: Tensor | None,
        state: State,
        table_VGW: Tensor | None = None,
        lengths_B: Tensor | None = None,
        reverse: bool = False,
        resets: Resets | None = None,
    ) -> Inputs:
        """Of the native core."""
        phases, u, bias, tokens = self.plan.phases, None, None, None
        if x_TBI is not None and table_VGW is not None and phases == 1:
            given, tokens = table_VGW, x_TBI.squeeze(-1)
        elif x_TBI is not None and table_VGW is None and self.u is not None and phases == 1:
            given, u, bias = x_TBI, self.u, self.bias_of(0)
        else:
            first = self.input_product(x_TBI, table_VGW) if x_TBI is not None else wx_TBGH
            assert first is not None
            biases = (self.bias_of(phase) for phase in range(1, phases))
            given = in_turns([first, *(constant(bias, first) for bias in biases)], reverse)
        if resets is not None:
            resets = of_first_phase(resets, phases, reverse)
        at, anew = (None, None) if resets is None else (resets.at_TB, self.flat(resets.state))
        start, own, weights = self.flat(state), self.own, self.weights
        lengths_B = None if lengths_B is None else lengths_B * phases
        return Inputs(given, u, bias, start, own, None, lengths_B, None, tokens, at, anew, weights, self.plan, reverse)

    def flat(self, state: State) -> Tensor:
        """(S, B, W)"""
        return torch.stack(state)
