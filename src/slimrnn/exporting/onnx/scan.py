"""The operator `slimrnn::scan` as ONNX nodes: a Scan with the cell's step as its body, or for a single step that alone.

Shape suffixes: T time, B batch, I input width, V vocabulary, G gates, W real numbers of a state vector, S states, P
phases. Of a complex state n = W/2 are its units; else n = W.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import onnx_ir as ir

from slimrnn.errors import ExportError
from slimrnn.exporting.onnx.nodes import Nodes, Numbers, new_name
from slimrnn.exporting.onnx.step import StepEmitter
from slimrnn.exporting.onnx.terms import Operand, total
from slimrnn.ops.terms import Plan
from slimrnn.tracing.native_cells import step_of_program
from slimrnn.tracing.trace import Trace


@dataclass(frozen=True)
class Operands:
    """Those of the operator, as `slimrnn.ops.calls.Inputs`."""

    x: ir.Value
    u: ir.Value | None
    bias: ir.Value | None
    state: ir.Value
    own: ir.Value | None
    lengths: ir.Value | None
    tokens: ir.Value | None
    resets: ir.Value | None
    reset_state: ir.Value | None
    weights: Sequence[ir.Value]
    plan: Plan
    reverse: bool

    @property
    def width(self) -> int:
        return sizes_of(self.state)[-1]

    @property
    def units(self) -> int:
        return self.width // 2 if self.plan.complex else self.width

    @property
    def is_single_step(self) -> bool:
        shape = self.x.shape if self.tokens is None else self.tokens.shape
        phases = 1 if self.tokens is not None else self.plan.phases
        return shape is not None and shape[0] == phases

    def trace(self) -> Trace:
        found = step_of_program(self.plan.cell.text, self.plan.complex)
        if found is None:
            raise ExportError(
                "expected a layer of this process, got a program that another one exported: export the model itself"
            )
        return found

    def terms(self, nodes: Nodes) -> list[list[tuple[str, list[Operand]]]]:
        """The terms of each phase, with their tensors."""
        rest, found = list(self.weights), []
        for name, count in self.plan.terms:
            tensors = [self._operand(nodes, value) for value in rest[:count]]
            found.append((name, tensors))
            del rest[:count]
        size = len(found) // self.plan.phases
        return [found[phase * size : (phase + 1) * size] for phase in range(self.plan.phases)]

    def _operand(self, nodes: Nodes, value: ir.Value) -> Operand:
        shape = sizes_of(value)
        if self.plan.complex and value.dtype == nodes.dtype:
            return Operand(nodes.from_pairs(value), shape[:-1])
        return Operand(Numbers(value), shape)


class Flags(NamedTuple):
    """What is true or false for each sequence, (T, B, 1) or of one step (B, 1)."""

    valid: ir.Value | None  # is the step within its sequence?
    resets: ir.Value | None  # does the sequence begin anew before it?


StepFunction = Callable[[Nodes, Numbers, Flags, list[Numbers]], tuple[Numbers, list[Numbers]]]


def sizes_of(value: ir.Value) -> tuple[int, ...]:
    """Of a tensor whose shape must be known; of a state, the batch is -1."""
    assert value.shape is not None
    return tuple(size if isinstance(size, int) else -1 for size in value.shape)


def emit_scan(nodes: Nodes, given: Operands) -> tuple[ir.Value, ir.Value]:
    """-> out (T, B, W) and last (S, B, W), as the operator."""
    trace, units = given.trace(), given.units
    steps = [
        StepEmitter(trace, units, lambda gates, terms=terms: total(nodes, gates, terms))  # type: ignore[misc]
        for terms in given.terms(nodes)
    ]
    wx = _input_products(nodes, given, trace)
    start = _states(nodes, given, given.state, trace.states)
    flags = Flags(
        None if given.lengths is None else _valid(nodes, given, wx.re),
        None if given.resets is None else _resets(nodes, given),
    )
    step = _in_turns(nodes, given, trace, steps)
    if given.is_single_step:
        first = nodes.whole(0)
        here = Flags(*(None if flag is None else nodes("Gather", flag, first, axis=0) for flag in flags))
        h, last = step(nodes, nodes.take(wx, first, 0), here, start)
        h = Numbers(*(nodes("Unsqueeze", part, nodes.ints(0)) for part in h.parts))
    else:
        h, last = _loop(nodes, given, step, wx, flags, start)
    return _output(nodes, given, h), _joined_states(nodes, given, last)


def _in_turns(outside: Nodes, given: Operands, trace: Trace, steps: Sequence[StepEmitter]) -> StepFunction:
    """The phases of a step, one after the other; of several, wx is (P, B, G n), and h likewise."""
    phases = len(steps)
    own = [_rows_of_own(outside, given, trace, phase) for phase in range(phases)]
    anew = [] if given.reset_state is None else _states(outside, given, given.reset_state, trace.states)
    places = list(range(phases))[:: -1 if given.reverse else 1]

    def step(nodes: Nodes, wx: Numbers, flags: Flags, before: list[Numbers]) -> tuple[Numbers, list[Numbers]]:
        inputs = [wx] if phases == 1 else [nodes.take(wx, nodes.whole(k), 0) for k in places]
        shown: list[Numbers] = []
        if flags.resets is not None:
            before = [_where(nodes, flags.resets, new, left) for new, left in zip(anew, before, strict=True)]
        for emit, products, rows in zip(steps, inputs, own, strict=True):
            after = emit(nodes, products, before, rows)
            h = after[0]
            if flags.valid is not None:
                zero = Numbers(*(nodes.number(0.0) for _ in h.parts))
                h = _where(nodes, flags.valid, h, zero)
                after = [_where(nodes, flags.valid, new, old) for new, old in zip(after, before, strict=True)]
            before = after
            shown.append(h)
        if phases == 1:
            return shown[0], before
        rows_1 = [Numbers(*(nodes("Unsqueeze", part, nodes.ints(0)) for part in h.parts)) for h in shown]
        return nodes.joined([rows_1[k] for k in places], 0), before

    return step


def _loop(
    nodes: Nodes, given: Operands, step: StepFunction, wx: Numbers, flags: Flags, start: list[Numbers]
) -> tuple[Numbers, list[Numbers]]:
    """A Scan. Its body reads weights from outside of it."""
    inner = nodes.inside()
    n, gates = given.units, given.plan.cell.gates
    phases = () if given.plan.phases == 1 else (given.plan.phases,)
    sequences = [*wx.parts, *(flag for flag in flags if flag is not None)]
    states = [part for state in start for part in state.parts]
    inside = [_typed(nodes.dtype, (None, n)) for _ in states]
    read = [_typed(nodes.dtype, (*phases, None, gates * n)) for _ in wx.parts]
    here = Flags(*(None if flag is None else _typed(ir.DataType.BOOL, (None, 1)) for flag in flags))
    grouped = iter(inside)
    before = [Numbers(*(next(grouped) for _ in state.parts)) for state in start]
    h, after = step(inner, Numbers(*read), here, before)
    outputs = [part for numbers in (*after, h) for part in numbers.parts]
    results: list[ir.Value] = []
    for value in outputs:  # an output is no input, and none is there twice
        copy = inner("Identity", value)
        shape = (None, n) if len(results) < len(states) else (*phases, None, n)
        copy.type, copy.shape = ir.TensorType(nodes.dtype), _shape(shape)
        results.append(copy)
    inputs = [*inside, *read, *(flag for flag in here if flag is not None)]
    body = ir.Graph(inputs, results, nodes=inner.made, opset_imports={"": nodes.opset}, name=new_name())
    direction = int(given.reverse)
    found = nodes.several(
        "Scan",
        [*states, *sequences],
        len(results),
        body=body,
        num_scan_inputs=len(sequences),
        scan_input_directions=[direction] * len(sequences),
        scan_output_directions=[direction] * len(h.parts),
    )
    last = iter(found)
    return (
        Numbers(*found[len(states) :]),
        [Numbers(*(next(last) for _ in state.parts)) for state in start],
    )


def _typed(dtype: ir.DataType, shape: Sequence[int | None]) -> ir.Value:
    return ir.Value(name=new_name(), type=ir.TensorType(dtype), shape=_shape(shape))


def _shape(sizes: Sequence[int | None]) -> ir.Shape:
    return ir.Shape([ir.SymbolicDim("batch") if size is None else size for size in sizes])


def _where(nodes: Nodes, condition: ir.Value, a: Numbers, b: Numbers) -> Numbers:
    return Numbers(*(nodes("Where", condition, one, other) for one, other in zip(a.parts, b.parts, strict=True)))


def _input_products(nodes: Nodes, given: Operands, trace: Trace) -> Numbers:
    """U x + b, (T, B, G n), or of several phases (T, P, B, G n)."""
    width, phases = trace.gates * given.width, given.plan.phases
    wx = given.x
    if given.tokens is not None:
        table_VN = nodes("Reshape", wx, nodes.ints(-1, width))
        wx = nodes("Gather", table_VN, given.tokens, axis=0)
    elif given.u is not None:
        u_NI = nodes("Reshape", given.u, nodes.ints(width, sizes_of(given.u)[-1]))
        wx = nodes("MatMul", wx, nodes("Transpose", u_NI, perm=[1, 0]))
    if given.bias is not None:
        wx = nodes("Add", wx, nodes("Reshape", given.bias, nodes.ints(width)))
    last = (width,) if not given.plan.complex else (width // 2, 2)
    if phases > 1:
        batch = nodes.size(given.state, 1)
        shape = nodes("Concat", nodes.ints(-1, phases), batch, nodes.ints(*last), axis=0)
        wx = nodes("Reshape", wx, shape)
    elif given.plan.complex or (given.u is None and given.tokens is None):
        wx = nodes("Reshape", wx, nodes.ints(0, 0, *last))
    return nodes.from_pairs(wx) if given.plan.complex else Numbers(wx)


def _states(nodes: Nodes, given: Operands, states_SBW: ir.Value, count: int) -> list[Numbers]:
    states = nodes.split(states_SBW, [1] * count, 0)
    units = (given.units, 2) if given.plan.complex else (given.units,)
    flat = [nodes("Reshape", state, nodes.ints(-1, *units)) for state in states]
    return [nodes.from_pairs(state) if given.plan.complex else Numbers(state) for state in flat]


def _joined_states(nodes: Nodes, given: Operands, states: Sequence[Numbers]) -> ir.Value:
    """(S, B, W)"""
    flat = []
    for state in states:
        part = state.re
        if state.im is not None:
            pairs = [nodes("Unsqueeze", part, nodes.ints(2)) for part in state.parts]
            part = nodes("Reshape", nodes("Concat", *pairs, axis=2), nodes.ints(0, given.width))
        flat.append(nodes("Unsqueeze", part, nodes.ints(0)))
    return nodes("Concat", *flat, axis=0) if len(flat) > 1 else flat[0]


def _output(nodes: Nodes, given: Operands, h: Numbers) -> ir.Value:
    """Real and imaginary parts side by side; the phases one after the other."""
    out = h.re if h.im is None else nodes("Concat", h.re, h.im, axis=-1)
    if given.plan.phases == 1:
        return out
    batch = nodes.size(given.state, 1)
    return nodes("Reshape", out, nodes("Concat", nodes.ints(-1), batch, nodes.ints(given.width), axis=0))


def _rows_of_own(nodes: Nodes, given: Operands, trace: Trace, phase: int) -> list[ir.Value]:
    if given.own is None:
        return []
    own = nodes("Gather", given.own, nodes.whole(phase), axis=0)
    if given.plan.complex:  # each number stands twice
        own = nodes("Reshape", own, nodes.ints(0, given.units, 2))
        own = nodes("Gather", own, nodes.whole(0), axis=-1)
    return [nodes("Gather", own, nodes.whole(row), axis=0) for row in range(len(trace.own))]


def _valid(nodes: Nodes, given: Operands, wx: ir.Value) -> ir.Value:
    """(T, B, 1): is this step within its sequence? Lengths count the phases."""
    assert given.lengths is not None
    time = nodes("Squeeze", nodes.size(wx, 0))
    steps = nodes("Range", nodes.whole(0), time, nodes.whole(1))
    steps = nodes("Mul", steps, nodes.whole(given.plan.phases))
    lengths = nodes("Cast", given.lengths, to=ir.DataType.INT64)
    within = nodes("Less", nodes("Unsqueeze", steps, nodes.ints(1)), lengths)
    return nodes("Unsqueeze", within, nodes.ints(2))


def _resets(nodes: Nodes, given: Operands) -> ir.Value:
    """(T, B, 1). Of several phases only the first, which reversed is the last in memory, has resets."""
    assert given.resets is not None
    at, phases = given.resets, given.plan.phases
    if phases > 1:
        shape = nodes("Concat", nodes.ints(-1, phases), nodes.size(given.state, 1), axis=0)
        at = nodes("Gather", nodes("Reshape", at, shape), nodes.whole(phases - 1 if given.reverse else 0), axis=1)
    return nodes("Unsqueeze", at, nodes.ints(2))
