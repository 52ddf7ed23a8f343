"""A cell's traced step as ONNX nodes.

Shape suffixes: B batch, G gates, n units.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import onnx_ir as ir

from slimrnn.errors import ExportError
from slimrnn.exporting.onnx.nodes import Nodes, Numbers
from slimrnn.exporting.onnx.terms import Gates, Product
from slimrnn.tracing.graph import Node, order
from slimrnn.tracing.trace import Trace

ONNX_NAMES = {
    "add": "Add",
    "sub": "Sub",
    "mul": "Mul",
    "div": "Div",
    "neg": "Neg",
    "sigmoid": "Sigmoid",
    "tanh": "Tanh",
    "exp": "Exp",
    "log": "Log",
    "softplus": "Softplus",
    "sqrt": "Sqrt",
    "abs": "Abs",
    "sign": "Sign",
    "relu": "Relu",
    "maximum": "Max",
    "minimum": "Min",
    "where": "Where",
    "gt": "Greater",
    "lt": "Less",
    "ge": "GreaterOrEqual",
    "le": "LessOrEqual",
    "eq": "Equal",
}


class Group(NamedTuple):
    """Products of one vector with matrices in a row."""

    x: Node
    first: int
    last: int
    starts_at_inputs: bool  # each is wx_g + W_g x, and nobody else reads that wx_g


class StepEmitter:
    """Makes the nodes of steps. `matvec` is asked once, outside of any loop, for each range of gates."""

    def __init__(self, trace: Trace, units: int, matvec: Callable[[Gates], Product]) -> None:
        self.trace, self.units = trace, units
        self.nodes = order(trace.after)
        self.groups = self._find_groups()
        self.products = {group.x: matvec(Gates(group.first, group.last, units)) for group in self.groups.values()}

    def _find_groups(self) -> dict[Node, Group]:
        wanted: dict[Node, list[Node]] = {}
        readers: dict[Node, int] = {}
        for n in self.nodes:
            for a in n.args:
                readers[a] = readers.get(a, 0) + 1
            if n.op == "product":
                wanted.setdefault(n.args[1], []).append(n)
        found = {}
        for x, products in wanted.items():
            gates = [n.attr for n in products]
            first, last = min(gates), max(gates) + 1
            bases = [n.args[0] for n in products]
            plain = all(b.op == "wx" and b.attr == g and readers[b] == 1 for b, g in zip(bases, gates, strict=True))
            found[x] = Group(x, first, last, plain and sorted(gates) == list(range(first, last)))
        return found

    def __call__(self, nodes: Nodes, wx: Numbers, before: Sequence[Numbers], own: Sequence[ir.Value]) -> list[Numbers]:
        """(B, G n), the states before (B, n), the rows of own (n) -> the states after."""
        inputs = self._sections(nodes, wx)
        values: dict[Node, Numbers] = {}
        made: dict[Node, list[Numbers]] = {}
        for n in self.nodes:
            if n.op == "wx":
                if (n.attr, n.attr + 1) in inputs:
                    values[n] = inputs[n.attr, n.attr + 1]
            elif n.op == "before":
                values[n] = before[n.attr]
            elif n.op == "row":
                values[n] = Numbers(own[n.attr])
            elif n.op == "product":
                base, x = n.args
                group = self.groups[x]
                if x not in made:
                    made[x] = self._multiplied(nodes, group, values[x], inputs)
                y = made[x][n.attr - group.first]
                at_start = group.starts_at_inputs or base.constant == 0
                values[n] = y if at_start else nodes.add(values[base], y)
            else:
                values[n] = compute(nodes, n, [values[a] for a in n.args], self.units)
        return [values[a] for a in self.trace.after]

    def _sections(self, nodes: Nodes, wx: Numbers) -> dict[tuple[int, int], Numbers]:
        """The input products, in the ranges of gates in which they are read."""
        together = {g.first: g.last for g in self.groups.values() if g.starts_at_inputs}
        ranges, gate = [], 0
        while gate < self.trace.gates:
            ranges.append((gate, together.get(gate, gate + 1)))
            gate = ranges[-1][1]
        parts = nodes.splits(wx, [(last - first) * self.units for first, last in ranges], -1)
        return dict(zip(ranges, parts, strict=True))

    def _multiplied(
        self, nodes: Nodes, group: Group, x: Numbers, inputs: dict[tuple[int, int], Numbers]
    ) -> list[Numbers]:
        y = self.products[group.x](nodes, x)
        if group.starts_at_inputs:
            y = nodes.add(inputs[group.first, group.last], y)
        return nodes.splits(y, [self.units] * (group.last - group.first), -1)


def compute(nodes: Nodes, n: Node, args: list[Numbers], units: int) -> Numbers:
    """One operation of `slimrnn.tracing.operations`."""
    if n.op == "const":
        return Numbers(nodes.number(n.attr))
    if n.op == "per_width":
        return Numbers(nodes.number(1.0 / units))
    if n.op == "total":
        return Numbers(*(nodes("ReduceSum", part, nodes.ints(-1)) for part in args[0].parts))
    if all(a.im is None for a in args) and n.op in ONNX_NAMES:
        return Numbers(nodes(ONNX_NAMES[n.op], *(a.re for a in args)))
    if n.op in COMPLEX:
        return COMPLEX[n.op](nodes, *args)
    if n.op == "noise":
        raise ExportError("expected model.eval() for an export to ONNX, got a layer in training, whose noise it lacks")
    raise ExportError(f"expected operations that ONNX has, got {n.op}{' of complex numbers' * n.is_complex}")


def _divided(nodes: Nodes, a: Numbers, b: Numbers) -> Numbers:
    if b.im is None:
        return Numbers(*(nodes("Div", part, b.re) for part in a.parts))
    square = Numbers(nodes("Add", nodes("Mul", b.re, b.re), nodes("Mul", b.im, b.im)))
    return _divided(nodes, nodes.mul(a, nodes.conj(b)), square)


def _modulus(nodes: Nodes, a: Numbers) -> Numbers:
    """√(re² + im²), as the larger part times √(1 + ratio²), which does not overflow."""
    assert a.im is not None
    sizes = nodes("Abs", a.re), nodes("Abs", a.im)
    larger, smaller = nodes("Max", *sizes), nodes("Min", *sizes)
    is_zero = nodes("Equal", larger, nodes.number(0.0))
    ratio = nodes("Div", smaller, nodes("Where", is_zero, nodes.number(1.0), larger))
    one_more = nodes("Add", nodes.number(1.0), nodes("Mul", ratio, ratio))
    return Numbers(nodes("Mul", larger, nodes("Sqrt", one_more)))


def _sign(nodes: Nodes, a: Numbers) -> Numbers:
    """z/|z|, and 0 at 0"""
    modulus = _modulus(nodes, a).re
    is_zero = nodes("Equal", modulus, nodes.number(0.0))
    return _divided(nodes, a, Numbers(nodes("Where", is_zero, nodes.number(1.0), modulus)))


def _chosen(nodes: Nodes, condition: Numbers, a: Numbers, b: Numbers) -> Numbers:
    zero = nodes.number(0.0)
    parts = ((a.re, b.re), (zero if a.im is None else a.im, zero if b.im is None else b.im))
    return Numbers(*(nodes("Where", condition.re, one, other) for one, other in parts))


COMPLEX: dict[str, Callable[..., Numbers]] = {
    "add": Nodes.add,
    "sub": Nodes.sub,
    "mul": Nodes.mul,
    "neg": Nodes.neg,
    "div": _divided,
    "abs": _modulus,
    "sign": _sign,
    "where": _chosen,
}
