"""A layer's scan in the native core: its program, its operands, and its definition again for further derivatives.

Shape suffixes: T time, B batch, I input width, G gates, H hidden units.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from slimrnn._fields import from_pairs, side_by_side, stacked
from slimrnn.cells.base import State
from slimrnn.layers.drawn import Drawn
from slimrnn.layers.input_product import input_matrix, input_product, look_up
from slimrnn.layers.traced import takes_dropped_weights
from slimrnn.layers.transition import Transition, constant
from slimrnn.ops import native, operators, reference
from slimrnn.ops.calls import Inputs
from slimrnn.ops.library import limits
from slimrnn.ops.onnx_exports import check_translatable
from slimrnn.ops.terms import Program, program
from slimrnn.ops.versions import Snapshot
from slimrnn.structures.base import Prepared
from slimrnn.tracing.native_cells import LEAK
from slimrnn.tracing.trace import Noise, Trace, own_rows

if TYPE_CHECKING:
    from slimrnn.layers.recurrent_layer import RecurrentLayer


def native_program(layer: RecurrentLayer, maps: tuple[Prepared, ...] | None = None) -> Program | None:
    """What the native core is to do at every step, or None where it cannot; `maps` may stand in for the matrices."""
    if torch.compiler.is_compiling():
        _guard_steps(layer)
    transitions, steps = layer.transitions, layer.traced_steps()
    if maps is not None and not takes_dropped_weights(layer):
        return None
    if maps is None:
        maps = tuple(transition.recurrent.prepare() for transition in transitions)
    terms = [transition.recurrent.terms(prepared) for transition, prepared in zip(transitions, maps, strict=True)]
    if steps is None or None in terms:
        return None
    if len(terms) > limits.phases or any(len(some or ()) > limits.terms for some in terms):
        return None
    further = {} if layer.leak is None else {LEAK: layer.leak()}
    owns = [own_rows(t.cell, step.trace, further) for t, step in zip(transitions, steps, strict=True)]
    own = None if owns[0] is None else stacked([rows for rows in owns if rows is not None])
    flat = [term for some in terms for term in some or ()]
    return program(steps[0].native, layer.cell.complex, flat, len(transitions), own, steps[0].trace)


def _guard_steps(layer: RecurrentLayer) -> None:
    """Let torch.compile compile again when an attribute of the layer or of a cell has changed: it takes the steps as
    constants. (What it adds up, it looks at again.)"""
    assert layer._changes + sum(transition.cell._changes for transition in layer.transitions) >= 0


def native_scan(
    layer: RecurrentLayer,
    program: Program,
    x_TBI: Tensor | None,
    wx_TBGH: Tensor | None,
    state: State,
    drawn: Drawn,
    lengths_B: Tensor | None,
    reverse: bool,
    first_step: int,
    resets: reference.Resets | None = None,
) -> tuple[Tensor, State]:
    """Over inputs, or over their products."""
    check_translatable(program.plan.complex)
    phases, u, bias, products, tokens = program.plan.phases, None, None, None, None
    if x_TBI is not None and drawn.table is not None:
        numbers, x_TBI = x_TBI.squeeze(-1), None
        if phases == 1:
            tokens = numbers
        else:
            wx_TBGH = look_up(drawn.table, numbers)
    if x_TBI is not None and phases == 1:  # a dense product is taken in the time loop
        u = input_matrix(layer.input, layer.recurrent.input_scale())
    if x_TBI is not None and u is not None:
        bias = layer.cell.input_bias()
        given = x_TBI
    elif tokens is not None and drawn.table is not None:
        given = drawn.table
    else:
        products = _Products(layer, x_TBI, wx_TBGH, reverse)
        given = products()
    again = None
    if not torch.compiler.is_compiling():
        again = operators.Definition(_replay(layer.transitions, program.step), products)
    if lengths_B is not None and phases > 1:
        lengths_B = lengths_B * phases
    if resets is not None:
        resets = of_first_phase(resets, phases, reverse)
    noise, mask, matrices = (drawn.seed, first_step * phases), drawn.h_mask, program.plan.cell.program.matrices
    if mask is not None and mask.dim() == 3:  # a cell may have more gates than matrices
        mask = mask[:, :matrices] if matrices else None
    inputs = native.as_inputs(program, given, u, bias, state, mask, lengths_B, reverse, *noise, tokens, resets)
    output, last = native.scan(inputs, again)
    return of_last_phase(output, phases, reverse), last


# --- loops in which every step has several phases -------------------------------------------------------


def in_turns(phases: list[Tensor], reverse: bool) -> Tensor:
    """What each phase has for every step, (T, ...) -> what the loop reads, (T * phases, ...)."""
    return phases[0] if len(phases) == 1 else torch.stack(phases[:: -1 if reverse else 1], 1).flatten(0, 1)


def of_first_phase(resets: reference.Resets, phases: int, reverse: bool) -> reference.Resets:
    """Before the first phase of a step, and no other."""
    never = torch.zeros_like(resets.at_TB)
    return resets._replace(at_TB=in_turns([resets.at_TB, *[never] * (phases - 1)], reverse))


def of_last_phase(output: Tensor, phases: int, reverse: bool) -> Tensor:
    """(T * phases, ...) -> (T, ...)"""
    if phases == 1:
        return output
    return output[0::phases] if reverse else output[phases - 1 :: phases]


class _Products:
    """What every step of the native loop adds to its gates: U x + b in the first phase, constants in the others.

    Called again in backward it gives the same, from the same tensors, or raises where one of them has changed."""

    def __init__(self, layer: RecurrentLayer, x_TBI: Tensor | None, wx_TBGH: Tensor | None, reverse: bool) -> None:
        self.map, self.reverse = layer.input, reverse
        self.x, self.wx = x_TBI, wx_TBGH
        self.matrices = () if x_TBI is None else layer.input.prepare()
        self.scale = None if x_TBI is None else layer.recurrent.input_scale()
        self.bias, *self.others = (transition.cell.input_bias() for transition in layer.transitions)
        self.unchanged = None if torch.compiler.is_compiling() else Snapshot(self.tensors)

    def tensors(self) -> list[Tensor]:
        return [t for t in (self.x, self.wx, self.scale, *self.matrices, self.bias, *self.others) if t is not None]

    def __call__(self) -> Tensor:
        if self.unchanged is not None:
            self.unchanged.check()
        first = self.wx
        if self.x is not None:
            first = input_product(self.map, self.x, self.bias, self.scale, self.matrices)
        assert first is not None
        return in_turns([first, *(constant(bias, first) for bias in self.others)], self.reverse)


def _replay(transitions: list[Transition], trace: Trace) -> Callable[[Inputs], tuple[Tensor, Tensor]]:
    """The reference scan on the tensors of the native operator, for second derivatives: (output, last state).

    The step is the one that the core ran, for all transitions, whatever has become of their cells. In the tensors a
    complex number is a pair, and what stands for both of its parts stands twice."""

    def replay(inputs: Inputs) -> tuple[Tensor, Tensor]:
        x, u, bias, state, own, mask, lengths_B, seed, tokens, at, anew, weights, plan, reverse, first_step = inputs
        pairs = plan.complex
        if tokens is not None:
            x = look_up(x, tokens)
        wx = x if u is None else (x @ u.flatten(0, 1).mT).reshape(*x.shape[:-1], *u.shape[:2])
        wx = wx if bias is None else wx + bias
        states = tuple(state.unbind(0))
        if pairs:
            wx, states = from_pairs(wx), tuple(map(from_pairs, states))
            own = None if own is None else own.reshape(*own.shape[:-1], -1, 2).mean(-1)
            mask = None if mask is None else mask[..., ::2]
            weights = [torch.view_as_complex(w.contiguous()) if w.is_floating_point() else w for w in weights]
        count = len(weights) // plan.phases
        turn = []
        for phase, transition in enumerate(transitions):
            tensors = tuple(weights[phase * count : (phase + 1) * count])
            turn.append(transition.replayed(trace, tensors, None if own is None else own[phase], mask))
        all_steps = range(first_step, first_step + len(x))
        numbers = iter(enumerate(reversed(all_steps) if reverse else all_steps))

        def advance(wx: Tensor, before: State) -> State:
            k, number = next(numbers)
            return turn[k % len(turn)](wx, before, Noise(seed, number))

        resets = None
        if at is not None and anew is not None:
            resets = reference.Resets(at, tuple(from_pairs(part) if pairs else part for part in anew.unbind(0)))
        output, last = reference.scan(advance, wx, states, lengths_B, reverse, resets)
        joined = torch.stack([torch.view_as_real(part).flatten(-2) if pairs else part for part in last])
        return side_by_side(output), joined

    return replay
