"""The way back through a step, as more nodes of the same graph, and what the step must keep for it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from slimrnn.tracing.graph import COMPARISONS, Node, order, rebuilt, where
from slimrnn.tracing.operations import OPERATIONS
from slimrnn.tracing.trace import Trace


class Product(NamedTuple):
    """W_g x for the matrices first ... last-1, on the way back."""

    x: Node
    first: int
    last: int
    gradients: list[Node]  # of each product


class Backward(NamedTuple):
    """Gradients of everything that a step reads, from those of the states after it ("d_after")."""

    wx: list[Node]
    before: list[Node]
    own: list[Node]
    products: list[Product]

    @property
    def roots(self) -> list[Node]:
        found = [*self.wx, *self.before, *self.own]
        for product in self.products:
            found += [*product.gradients, product.x]
        return found


def derive(trace: Trace) -> Backward:
    """Reverse mode: nodes in reverse order, each hands its gradient on to its arguments."""
    return _Derivation(trace).run()


class _Derivation:
    def __init__(self, trace: Trace) -> None:
        self.trace, self.graph = trace, trace.graph
        self.gradient: dict[Node, Node] = {}
        self.multiplied: dict[Node, dict[int, Node]] = {}  # a vector -> of each of its products, the gradient
        self.in_place: dict[Node, set[int]] = {}  # a vector -> its products that start at an input product
        self.products: list[Product] = []

    def run(self) -> Backward:
        trace, graph = self.trace, self.graph
        for i, n in enumerate(trace.after):
            self.add(n, graph.make("d_after", attr=i, kind="f", is_complex=trace.is_complex))
        for n in reversed(order(trace.after)):
            if n in self.multiplied:
                self.gradient[n] = self.adjoint(n)
            if n in self.gradient:
                self.pass_on(n, self.gradient[n])
        zero = graph.constant(0.0)

        def of(op: str, count: int) -> list[Node]:
            return [self.gradient.get(graph.made.get((op, (), i), zero), zero) for i in range(count)]

        return Backward(of("wx", trace.gates), of("before", trace.states), of("row", len(trace.own)), self.products)

    def add(self, n: Node, gradient: Node | None) -> None:
        if gradient is None or n.kind == "c" or gradient.constant == 0:
            return
        if n.kind == "r" and gradient.kind in "fu":
            gradient = self.graph.make("total", gradient)
        known = self.gradient.get(n)
        self.gradient[n] = gradient if known is None else known + gradient

    def pass_on(self, n: Node, d: Node) -> None:
        if n.op == "product":
            base, x = n.args
            self.add(base, d)
            if base.op == "wx":
                self.in_place.setdefault(x, set()).add(n.attr)
            mine = self.multiplied.setdefault(x, {})
            mine[n.attr] = d if n.attr not in mine else mine[n.attr] + d
        elif n.args and n.op not in COMPARISONS:
            gradient = OPERATIONS[n.op].gradient
            assert gradient is not None
            for a, d_a in zip(n.args, gradient(d, n, *n.args), strict=True):
                self.add(a, d_a)

    def adjoint(self, x: Node) -> Node:
        """What comes back to a vector through its products, run by run of matrices that follow one another."""
        found, mine = self.gradient.get(x, self.graph.constant(0.0)), self.multiplied[x]
        for run in runs(sorted(mine), self.in_place.get(x, ())):
            gradients = [mine[k] for k in run]
            found = self.graph.make(
                "adjoint", found, *gradients, attr=len(self.products), is_complex=self.trace.is_complex
            )
            self.products.append(Product(x, run[0], run[-1] + 1, gradients))
        return found


def runs(numbers: list[int], apart: Iterable[int] = ()) -> list[list[int]]:
    """Consecutive numbers together, those of `apart` not with others."""
    found: list[list[int]] = []
    for k in numbers:
        if found and found[-1][-1] == k - 1 and (k in apart) == (k - 1 in apart):
            found[-1].append(k)
        else:
            found.append([k])
    return found


def without_candidate(trace: Trace, backward: Backward) -> Backward:
    """h = n + u (b − n) gives n = (h − u b)/(1 − u), so a GRU's n need not be kept: wherever the gradient has n it has
    1 − u too, so nothing is lost where that is small."""
    h = trace.after[0]
    if h.op != "add" or h.args[0].op != "tanh" or h.args[1].op != "mul" or h.args[1].args[1].op != "sub":
        return backward
    n, u, (b, m) = h.args[0], h.args[1].args[0], h.args[1].args[1].args
    if m is not n or b.op != "before" or u.op != "sigmoid":
        return backward
    shut = 1.0 - u
    value = where(trace.graph.make("eq", shut, 0.0), 0.0, (h - u * b) / shut)
    candidate = trace.graph.make("maximum", trace.graph.make("minimum", value, 1.0), -1.0)
    # The states after the step are at hand: nothing below them is exchanged.
    instead = {a: a for a in (*trace.after, *order([candidate], stop=trace.after))} | {n: candidate}

    def new(nodes: list[Node]) -> list[Node]:
        return rebuilt(nodes, instead)

    products = [p._replace(x=new([p.x])[0], gradients=new(p.gradients)) for p in backward.products]
    return Backward(new(backward.wx), new(backward.before), new(backward.own), products)


def kept(trace: Trace, backward: Backward) -> list[Node]:
    """The fewest vectors of the step from which, with the states, the way back can be computed: a minimum cut.

    Every node is a pair of vertices; to cut between them, to keep its value, costs 1 for a vector of the step, and any
    other cannot be kept. What the way back cannot have otherwise are input products and recurrent products. Of equal
    cuts, the one nearest to the way back."""
    in_step, after = set(order(trace.after)), set(trace.after)
    roots = [r for r in backward.roots if r not in after]
    nodes = [n for n in order(backward.roots, stop=after) if n not in after]
    flow = _Flow()
    for n in nodes:
        can_be_kept = n in in_step and n.kind == "f" and n.op not in COMPARISONS and n.op != "before"
        flow.edge((n, 0), (n, 1), 1 if can_be_kept else _Flow.MUCH)
        if n.op in ("wx", "product"):
            flow.edge("source", (n, 0), _Flow.MUCH)
        for a in () if n.op == "product" else n.args:
            if a not in after:
                flow.edge((a, 1), (n, 0), _Flow.MUCH)
    for root in roots:
        flow.edge((root, 1), "sink", _Flow.MUCH)
    near = flow.cut()
    return [n for n in nodes if (n, 1) in near and (n, 0) not in near]


class _Flow:
    """A flow network, for its minimum cut."""

    MUCH = 10**6

    def __init__(self) -> None:
        self.edges: dict[Any, dict[Any, int]] = {"source": {}, "sink": {}}

    def edge(self, a: Any, b: Any, capacity: int) -> None:
        forth, back = self.edges.setdefault(a, {}), self.edges.setdefault(b, {})
        forth[b] = forth.get(b, 0) + capacity
        back.setdefault(a, 0)

    def cut(self) -> set[Any]:
        """The vertices on the sink's side of the minimum cut nearest to it."""
        while True:
            seen, via = self._reach("source", forwards=True)
            if "sink" not in seen:
                return self._reach("sink", forwards=False)[0]
            v: Any = "sink"
            while v != "source":
                self.edges[via[v]][v] -= 1
                self.edges[v][via[v]] += 1
                v = via[v]

    def _reach(self, start: Any, forwards: bool) -> tuple[set[Any], dict[Any, Any]]:
        seen, queue, via = {start}, [start], {}
        for v in queue:
            for w in self.edges[v]:
                if w not in seen and (self.edges[v][w] if forwards else self.edges[w][v]) > 0:
                    seen.add(w)
                    queue.append(w)
                    via[w] = v
        return seen, via
