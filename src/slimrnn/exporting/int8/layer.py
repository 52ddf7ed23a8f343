"""Int8Layer: a recurrent layer whose matrices are int8, for inference.

Shape suffixes: T time, B batch, I input width, V vocabulary, G gates, H hidden units.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

import torch
from torch import Tensor, nn

from slimrnn.cells.base import State
from slimrnn.exporting.int8 import native
from slimrnn.exporting.int8.checked import CheckedNumbers
from slimrnn.exporting.int8.emulation import step_of
from slimrnn.exporting.int8.rows import affine
from slimrnn.exporting.int8.terms import Terms
from slimrnn.layers.drawn import NOTHING, Drawn
from slimrnn.layers.input_product import look_up
from slimrnn.layers.native_scan import of_first_phase
from slimrnn.layers.recurrent_layer import RecurrentLayer
from slimrnn.ops import reference
from slimrnn.ops.calls import Inputs
from slimrnn.ops.stepping import Stepper
from slimrnn.ops.terms import Plan
from slimrnn.tracing.trace import Trace


class Int8Layer(CheckedNumbers, RecurrentLayer):
    """state_t = cell(U x_t + b, h ↦ W h, state_{t−1}) with U and W in int8 and all else in float32.

    Made by `slimrnn.quantize`. Its tensors: u int8 (G, H, I) with u_scale (G, H); bias_0, bias_1, ... (G, H) of its
    transitions; own (transitions, rows, H), what the step reads of the cell's parameters; weight_0, weight_1, ... of
    the terms that `plan` lists (see terms.py). `trace` is the step as a graph."""

    plan: Plan
    trace: Trace
    u: Tensor
    u_scale: Tensor
    own: Tensor | None

    def _has_none(self) -> NoReturn:
        raise RuntimeError("expected a float layer, whose matrices can be looked at and trained, got one in int8")

    recurrent = input = maps = transitions = property(_has_none)

    @property
    def backend(self) -> str:
        """ "native", or "reference": plain torch. Both give the same bits."""
        return self._backend if self.u.device.type == "cpu" else "reference"

    @backend.setter
    def backend(self, wanted: str) -> None:
        self._backend, self._wanted_backend = self.check_backend(wanted), wanted

    def check_backend(self, wanted: str) -> str:
        if wanted == "torch":
            raise ValueError("expected backend 'auto', 'native' or 'reference' for an int8 layer, got 'torch'")
        return super().check_backend(wanted)

    @property
    def runs_as(self) -> str:
        return "int8" if self.backend == "native" else "int8 in plain torch"

    def renew_cells(self) -> None:
        """Nothing changes any more."""

    def bias_of(self, phase: int) -> Tensor | None:
        """(G, H)"""
        found: Tensor | None = getattr(self, f"bias_{phase}")
        return found

    @property
    def weights(self) -> list[Tensor]:
        """Of the terms of all transitions, one after the other."""
        return [getattr(self, f"weight_{k}") for k in range(sum(count for _, count in self.plan.terms))]

    def terms_of(self, phase: int) -> Terms:
        """Kind and tensors of each."""
        per_phase, rest, found = len(self.plan.terms) // self.plan.phases, iter(self.weights), []
        for kind, count in self.plan.terms:
            found.append((kind, [next(rest) for _ in range(count)]))
        return found[phase * per_phase : (phase + 1) * per_phase]

    # --- input products ---------------------------------------------------------------------------------

    def token_table(self, vectors_VI: Tensor | None) -> Tensor:
        if vectors_VI is None:
            vectors_VI = torch.eye(self.u.shape[-1], device=self.u.device)
        return self.input_product(vectors_VI)

    def input_product(self, x: Tensor, table_VGH: Tensor | None = None) -> Tensor:
        """(..., G, H)"""
        if table_VGH is not None:
            return look_up(table_VGH, x.squeeze(-1))
        self.check_inference(x)
        gates, hidden, _ = self.u.shape
        bias = self.bias_of(0)
        multiply = native.affine if self.backend == "native" and native.can_serve(x) else affine
        wx = multiply(x, self.u.flatten(0, 1), self.u_scale.flatten(), None if bias is None else bias.flatten())
        found: Tensor = wx.unflatten(-1, (gates, hidden))
        return found

    # --- the scan ---------------------------------------------------------------------------------------

    def scan(
        self,
        x_TBI: Tensor | None,
        wx_TBGH: Tensor | None,
        state: State,
        drawn: Drawn = NOTHING,
        lengths_B: Tensor | None = None,
        reverse: bool = False,
        first_step: int = 0,
        resets: reference.Resets | None = None,
    ) -> tuple[Tensor, State]:
        given = x_TBI if wx_TBGH is None else wx_TBGH
        assert given is not None
        self.check_inference(given, *state)
        if self.backend == "native" and native.can_serve(given):
            inputs, u_scale = self.operands(x_TBI, wx_TBGH, state, drawn.table, lengths_B, reverse, resets)
            output, last = native.run(inputs, u_scale)
            phases = self.plan.phases
            if phases > 1:
                output = output[0::phases] if reverse else output[phases - 1 :: phases]
            return output, last.unbind(0)
        wx = wx_TBGH if wx_TBGH is not None else self.input_product(given, drawn.table)
        return reference.scan(self.advance(), wx, state, lengths_B, reverse, resets)

    def advance(self, drawn: Drawn = NOTHING, steps: Iterable[int] = (0,), reverse: bool = False) -> reference.Step:
        hidden, phases = self.cell.hidden_size, range(self.plan.phases)
        owns = [None if self.own is None else self.own[phase] for phase in phases]
        turn = [step_of(self.trace, hidden, self.terms_of(phase), owns[phase]) for phase in phases]

        def advance(wx_BGH: Tensor, state: State) -> State:
            for phase, step in enumerate(turn):
                bias = self.bias_of(phase)
                constant = torch.zeros_like(wx_BGH) if bias is None else bias.expand_as(wx_BGH)
                state = step(constant if phase else wx_BGH, state)
            return state

        return advance

    def operands(
        self,
        x_TBI: Tensor | None,
        wx_TBGH: Tensor | None,
        state: State,
        table_VGH: Tensor | None = None,
        lengths_B: Tensor | None = None,
        reverse: bool = False,
        resets: reference.Resets | None = None,
    ) -> tuple[Inputs, Tensor | None]:
        """Of the native core, and the scales of u where it multiplies by that."""
        phases, u, bias, tokens = self.plan.phases, None, None, None
        if x_TBI is not None and table_VGH is not None and phases == 1:
            given, tokens = table_VGH, x_TBI.squeeze(-1)
        elif x_TBI is not None and table_VGH is None and phases == 1:
            given, u, bias = x_TBI, self.u, self.bias_of(0)
        else:
            first = self.input_product(x_TBI, table_VGH) if x_TBI is not None else wx_TBGH
            assert first is not None
            given = self._in_turns(first, reverse)
        if resets is not None and phases > 1:
            resets = of_first_phase(resets, phases, reverse)
        at, anew = (None, None) if resets is None else (resets.at_TB, torch.stack(resets.state))
        lengths_B = None if lengths_B is None else lengths_B * phases
        start, own, weights = torch.stack(state), self.own, self.weights
        inputs = Inputs(
            given, u, bias, start, own, None, lengths_B, None, tokens, at, anew, weights, self.plan, reverse
        )
        return inputs, None if u is None else self.u_scale

    def _in_turns(self, first: Tensor, reverse: bool) -> Tensor:
        """The input products, and in the other phases the biases."""
        if self.plan.phases == 1:
            return first
        biases = [self.bias_of(phase) for phase in range(1, self.plan.phases)]
        others = [torch.zeros_like(first) if bias is None else bias.expand_as(first) for bias in biases]
        return torch.stack([first, *others][:: -1 if reverse else 1], 1).flatten(0, 1)

    def make_stepper(self) -> Stepper | None:
        """For the stack's lean steps."""
        if self.backend != "native" or self.plan.phases > 1 or self.line > 1 or self.training:
            return None
        state = (self.u_scale.new_empty(1, self.cell.hidden_size),) * self.cell.states
        inputs, u_scale = self.operands(self.u_scale.new_empty(1, 1, self.u.shape[-1]), None, state)
        return native.stepper(inputs, u_scale)

    def check_inference(self, *given: Tensor) -> None:
        """RuntimeError where gradients are wanted, or noise."""
        check_inference(self, *given)


def check_inference(module: nn.Module, *given: Tensor) -> None:
    """int8 is for inference: RuntimeError where gradients are wanted, in training mode, or for another dtype."""
    some: Any = (*given, *module.parameters())
    if torch.is_grad_enabled() and any(t.requires_grad for t in some):
        raise RuntimeError(
            "expected no gradients through an int8 layer, which cannot be trained, got a tensor that requires one: "
            "use torch.no_grad(), or train the float model and quantize it again"
        )
    if module.training and isinstance(module, RecurrentLayer):
        raise RuntimeError("expected eval() for an int8 layer, which cannot be trained, got training mode")
    for t in some:
        if t.is_floating_point() and t.dtype != torch.float32:
            raise TypeError(f"expected float32 in an int8 layer, got {t.dtype}: its bits are defined in float32 alone")
