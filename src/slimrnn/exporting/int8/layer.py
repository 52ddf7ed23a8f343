"""Int8Layer: a recurrent layer whose matrices are int8, for inference.

Shape suffixes: T time, B batch, I input width, V vocabulary, G gates, H hidden units.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

import torch
from torch import Tensor, nn

from slimrnn.cells.base import State
from slimrnn.exporting.constant_layer import ConstantLayer
from slimrnn.exporting.int8 import native
from slimrnn.exporting.int8.checked import CheckedNumbers
from slimrnn.exporting.int8.emulation import step_of
from slimrnn.exporting.int8.rows import affine
from slimrnn.layers.drawn import NOTHING, Drawn
from slimrnn.layers.input_product import look_up
from slimrnn.layers.native_scan import of_last_phase
from slimrnn.layers.recurrent_layer import RecurrentLayer
from slimrnn.ops import reference
from slimrnn.ops.stepping import Stepper
from slimrnn.tracing.trace import Trace


class Int8Layer(CheckedNumbers, ConstantLayer):
    """state_t = cell(U x_t + b, h ↦ W h, state_{t−1}) with U and W in int8 and all else in float32.

    Made by `slimrnn.quantize`. Of its tensors u and the terms' weights (see terms.py) are int8, u with u_scale (G, H).
    `trace` is the step as a graph."""

    trace: Trace
    u: Tensor
    u_scale: Tensor

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
            inputs = self.operands(x_TBI, wx_TBGH, state, drawn.table, lengths_B, reverse, resets)
            output, last = native.run(inputs, self.u_scale)
            return of_last_phase(output, self.plan.phases, reverse), last.unbind(0)
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

    def make_stepper(self) -> Stepper | None:
        """For the stack's lean steps."""
        if self.backend != "native" or self.plan.phases > 1 or self.line > 1 or self.training:
            return None
        state = (self.u_scale.new_empty(1, self.cell.hidden_size),) * self.cell.states
        inputs = self.operands(self.u_scale.new_empty(1, 1, self.u.shape[-1]), None, state)
        return native.stepper(inputs, self.u_scale)

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
