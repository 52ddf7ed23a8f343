"""A step as a graph of nodes: equal nodes are one node, and trivial arithmetic is done at once.

A node's value is of a kind: "c" a constant, "u" a number for each unit, "r" one for each row of the batch, "f" full, a
number for each row and unit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

COMPARISONS = {"gt": ">", "lt": "<", "ge": ">=", "le": "<=", "eq": "=="}
MATRIX = ("product", "adjoint")  # made by the recurrent matrices
BARRIERS = (*MATRIX, "total")  # need all units of what they read


class Node:
    """One value: an operation and what it is applied to. `attr` says which input, gate or parameter is meant."""

    def __init__(
        self, graph: Graph, op: str, args: tuple[Node, ...], attr: Any, kind: str, number: int, is_complex: bool
    ) -> None:
        self.graph, self.op, self.args, self.attr = graph, op, args, attr
        self.kind, self.number, self.is_complex = kind, number, is_complex

    def __add__(self, other: Operand) -> Node:
        return self.graph.make("add", self, other)

    def __radd__(self, other: Operand) -> Node:
        return self.graph.make("add", other, self)

    def __sub__(self, other: Operand) -> Node:
        return self.graph.make("sub", self, other)

    def __rsub__(self, other: Operand) -> Node:
        return self.graph.make("sub", other, self)

    def __mul__(self, other: Operand) -> Node:
        return self.graph.make("mul", self, other)

    def __rmul__(self, other: Operand) -> Node:
        return self.graph.make("mul", other, self)

    def __truediv__(self, other: Operand) -> Node:
        return self.graph.make("div", self, other)

    def __rtruediv__(self, other: Operand) -> Node:
        return self.graph.make("div", other, self)

    def __neg__(self) -> Node:
        return self.graph.make("neg", self)

    def __repr__(self) -> str:
        inner = ", ".join(f"%{a.number}" for a in self.args)
        return f"%{self.number} = {self.op}{'' if self.attr is None else f'[{self.attr}]'}({inner})"

    @property
    def constant(self) -> float | None:
        return self.attr if self.op == "const" else None


Operand = Node | float


class Graph:
    """Makes nodes. Those of a complex state are complex but for the cell's own parameters and moduli."""

    def __init__(self) -> None:
        self.made: dict[tuple[str, tuple[Node, ...], Any], Node] = {}

    def make(
        self, op: str, *operands: Operand, attr: Any = None, kind: str | None = None, is_complex: bool | None = None
    ) -> Node:
        args = tuple(a if isinstance(a, Node) else self.constant(a) for a in operands)
        simple = self._simplified(op, args)
        if simple is not None:
            return simple
        key = (op, args, attr)
        if key not in self.made:
            if kind is None:
                kind = "f" if op in MATRIX else "r" if op == "total" else joined(a.kind for a in args)
            if is_complex is None:
                is_complex = op != "abs" and any(a.is_complex for a in args)
            self.made[key] = Node(self, op, args, attr, kind, len(self.made), is_complex)
        return self.made[key]

    def constant(self, value: float) -> Node:
        return self.make("const", attr=float(value), kind="c")

    def _simplified(self, op: str, args: tuple[Node, ...]) -> Node | None:
        values = [a.constant for a in args]
        if op == "neg":
            if values[0] is not None:
                return self.constant(-values[0])
            inner = args[0]
            return inner.args[0] if inner.op == "neg" else inner.args[1] - inner.args[0] if inner.op == "sub" else None
        if op == "total":
            return self._total(args[0])
        if op in ("add", "sub", "mul", "div"):
            return self._arithmetic(op, args, values) or self._signs_outside(op, *args)
        return args[1] if op == "where" and args[1] is args[2] else None

    def _arithmetic(self, op: str, args: tuple[Node, ...], values: list[float | None]) -> Node | None:
        (left, right), (a, b) = args, values
        if a is not None and b is not None and (op != "div" or b != 0):
            return self.constant({"add": a + b, "sub": a - b, "mul": a * b, "div": a / (b or 1.0)}[op])
        if op == "add" and 0 in values:
            return left if b == 0 else right
        if op == "sub" and 0 in values:
            return left if b == 0 else -right
        if op == "mul" and 0 in values:
            return self.constant(0.0)
        if op == "mul" and (1 in values or -1 in values):
            other, factor = (left, b) if b in (1, -1) else (right, a)
            return other if factor == 1 else -other
        if op == "div" and right.kind == "r" and left.kind in "fu":  # one division for each row
            return left * (1.0 / right)
        return left if op == "div" and b == 1 else None

    def _signs_outside(self, op: str, left: Node, right: Node) -> Node | None:
        """a − b instead of a + (−b), and the like."""
        if right.op == "neg":
            b = right.args[0]
            return left - b if op == "add" else left + b if op == "sub" else -self.make(op, left, b)
        if left.op == "neg":
            a = left.args[0]
            return right - a if op == "add" else -(a + right) if op == "sub" else -self.make(op, a, right)
        return None

    def _total(self, x: Node) -> Node | None:
        """Factors that a row shares come after the sum, so that what they are made of need not be known before it."""
        if x.op == "neg":
            return -self.make("total", x.args[0])
        if x.op == "mul" and "f" in (x.args[0].kind, x.args[1].kind):
            for factor, vector in (x.args, x.args[::-1]):
                if factor.kind in "cr":
                    return self.make("total", vector) * factor
        if _is_centred(x):
            return self.constant(0.0)
        if x.op in ("add", "sub") and all(a.kind == "f" for a in x.args) and any(map(self._total, x.args)):
            return self.make(x.op, *(self.make("total", a) for a in x.args))
        return None


def _is_centred(x: Node) -> bool:
    """x = v − mean v"""
    if x.op != "sub" or x.args[1].op != "mul":
        return False
    total, per_width = x.args[1].args
    return total.op == "total" and total.args[0] is x.args[0] and per_width.op == "per_width"


def joined(kinds: Iterable[str]) -> str:
    """The kind of what is computed from values of these kinds."""
    found = set(kinds) - {"c"}
    return "c" if not found else found.pop() if len(found) == 1 else "f"


def where(condition: Node, a: Operand, b: Operand) -> Node:
    return condition.graph.make("where", condition, a, b)


def order(roots: Sequence[Node], stop: Iterable[Node] = ()) -> list[Node]:
    """The nodes that the roots are computed from and the roots, arguments first; not those of `stop` and below."""
    seen, found = set(stop), []
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        node, done = stack.pop()
        if done:
            found.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack += [(a, False) for a in reversed(node.args)]
    return found


def rebuilt(roots: Sequence[Node], instead: dict[Node, Node]) -> list[Node]:
    """The roots with some nodes exchanged for others."""
    new = dict(instead)
    for n in order(roots, stop=instead):
        args = [new[a] for a in n.args]
        new[n] = (
            n
            if all(a is b for a, b in zip(args, n.args, strict=True))
            else n.graph.make(n.op, *args, attr=n.attr, kind=n.kind, is_complex=n.is_complex)
        )
    return [new[root] for root in roots]


def as_text(roots: Sequence[Node]) -> str:
    """The same for equal graphs, whatever was made on the way."""
    number: dict[Node, int] = {}
    lines = []
    for n in order(roots):
        number[n] = len(number)
        inner = ",".join(str(number[a]) for a in n.args)
        lines.append(f"{n.op}{'' if n.attr is None else f'[{n.attr}]'}({inner})")
    return ";".join([*lines, "->" + ",".join(str(number[root]) for root in roots)])
