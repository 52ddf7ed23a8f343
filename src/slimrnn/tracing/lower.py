"""A graph as a list of actions: recurrent products, and loops over rows and units between them.

A value that a later loop needs lies in memory, or is computed again there where that costs next to nothing. What is one
number for each row is computed once for each row, between the loops.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from slimrnn.tracing.backward import runs
from slimrnn.tracing.graph import BARRIERS, COMPARISONS, MATRIX, Node, order
from slimrnn.tracing.operations import OPERATIONS


class Place(NamedTuple):
    """Memory of a step, as `slimrnn_place` describes it."""

    kind: str
    index: int  # type: ignore[assignment]  # the ABI's word; nobody looks for a value in a place
    part: int = 0
    parts: int = 1


LEAVES = {"wx": "SLOT", "before": "BEFORE", "row": "OWN", "d_after": "D_AFTER"}
INLINE = ("const", "per_width", "noise")  # need no memory


class Line(NamedTuple):
    """LOAD node from place, PER_ROW node of row sum `number`, COMPUTE node, STORE node to place, SUM node to row
    `number` of own's gradient, or TOTAL: row sum `number` of node. In Rows: COMPUTE row sum `number`, and PER_ROW for
    those that it is computed from."""

    does: str
    node: Node
    place: Place | None = None
    number: int = 0


class Apply(NamedTuple):
    """to += W x for the matrices first ... last-1"""

    x: Place
    to: Place
    first: int
    last: int


class Adjoint(NamedTuple):
    """to += W^H y of a product"""

    product: int
    y: Place
    to: Place
    first: int
    last: int


class Loop(NamedTuple):
    lines: list[Line]


class Rows(NamedTuple):
    """Arithmetic on row sums."""

    lines: list[Line]


Action = Apply | Adjoint | Loop | Rows


class Store(NamedTuple):
    node: Node
    place: Place
    loop: int | None = None  # where, if not where it is computed
    stays: bool = True  # the node can be read there afterwards


@dataclass
class Function:
    """A step, or the way back through one: what lies where before it, and what must lie where after it."""

    stores: list[Store]
    given: dict[Node, Place] = field(default_factory=dict)  # beside the leaves
    sums: list[tuple[Node, int]] = field(default_factory=list)  # to rows of own's gradient
    products: dict[int, tuple[Place, int, int]] = field(default_factory=dict)  # number -> its gradient, first, last
    first_spare: int = 0

    def __post_init__(self) -> None:
        self.spares = self.first_spare
        self.row_sums: dict[Node, int] = {}
        roots = [s.node for s in self.stores] + [n for n, _ in self.sums]
        self.nodes = order(roots, stop=self.given)
        self.nodes = [*(n for n in self.given if n not in self.nodes), *self.nodes]
        leaves = {n: Place(LEAVES[n.op], n.attr) for n in self.nodes if n.op in LEAVES}
        self.at_hand = leaves | self.given
        self.places = dict(self.at_hand)
        self.users: dict[Node, list[Node]] = {}
        for n in self.nodes:
            for a in n.args if n not in self.at_hand else ():
                self.users.setdefault(a, []).append(n)
        self.cheap = self._find_cheap()
        self.stage = self._find_stages()

    # --- when -----------------------------------------------------------------------------------------------

    def _find_cheap(self) -> set[Node]:
        """What is computed again rather than kept: a few instructions on what stays where it is."""
        cheap: set[Node] = set()
        for n in self.nodes:
            if n in self.at_hand or not n.args or n.kind == "r":
                is_cheap = n.op != "wx"  # whose slot is used again
            else:
                costly = n.op in BARRIERS or OPERATIONS[n.op].is_costly
                is_cheap = not costly and all(a in cheap for a in n.args)
            if is_cheap:
                cheap.add(n)
        return cheap

    def _find_stages(self) -> dict[Node, int]:
        """In which loop a node is computed; products and adjoints are before the loop of their number."""
        stage = dict.fromkeys(self.at_hand, 0)
        for n in self.nodes:
            if n in stage:
                continue
            below = [stage[a] for a in n.args]
            if n.op == "adjoint":  # one after the other without a loop between them
                base = below[0] + (n.args[0].op != "adjoint")
                stage[n] = max(base, *(b + 1 for b in below[1:]))
            else:
                stage[n] = max(below, default=0) + (n.op in BARRIERS)
        for n in reversed(self.nodes):  # as late as it is needed, where what it reads is there anyway
            users = self.users.get(n)
            if users and n.args and n not in self.at_hand and n.op not in BARRIERS and all(map(self._stays, n.args)):
                stage[n] = max(stage[n], min(stage[u] - (u.op in BARRIERS) for u in users))
        return stage

    def _stays(self, n: Node) -> bool:
        return n in self.at_hand or n.op in BARRIERS or n.kind in "cur" or n in self.cheap

    # --- where ----------------------------------------------------------------------------------------------

    def _spare(self, parts: int = 1) -> Place:
        at, self.spares = self.spares, self.spares + parts
        return Place("SPARE", at, 0, parts)

    def lower(self) -> list[Action]:
        self.calls: dict[int, list[Action]] = {}
        self._place_products()
        self._place_adjoints()
        for store in self.stores:
            if store.stays and store.node.args and store.node not in self.places:
                self.places[store.node] = store.place
        while True:
            try:
                return self._all_loops()
            except _Missing as missing:  # a later loop needs it: it gets memory
                self.places[missing.node] = place = self._spare()
                self.stores.append(Store(missing.node, place))

    def _place_products(self) -> None:
        groups: dict[tuple[int, Node, bool], dict[int, Node]] = {}
        for n in self.nodes:
            if n.op == "product" and n not in self.at_hand:
                key = (self.stage[n], n.args[1], n.args[0].op == "wx")
                if n.attr in groups.setdefault(key, {}):  # the same matrix and vector from another start
                    key = (*key[:2], None)  # type: ignore[assignment]
                groups.setdefault(key, {})[n.attr] = n
        for (stage, x, in_place), members in groups.items():
            source = self._contiguous(x)
            for run in runs(sorted(members)):
                to = Place("SLOT", run[0]) if in_place else self._spare(len(run))
                for part, gate in enumerate(run):
                    n = members[gate]
                    self.places[n] = Place("SLOT", gate) if in_place else to._replace(part=part)
                    if not in_place:
                        self.stores.append(Store(n.args[0], self.places[n], stage - 1, stays=False))
                self.calls.setdefault(stage, []).append(Apply(source, to, run[0], run[-1] + 1))

    def _contiguous(self, x: Node) -> Place:
        """Where rows of x lie one next to the other."""
        for place in (self.places.get(x), *(s.place for s in self.stores if s.node is x)):
            if place is not None and place.kind in ("BEFORE", "AFTER", "SPARE") and place.parts == 1:
                self.places.setdefault(x, place)
                return place
        place = self._spare()
        self.stores.append(Store(x, place))
        self.places.setdefault(x, place)
        return place

    def _place_adjoints(self) -> None:
        """A chain of adjoints adds to one place: where it ends, if that is wanted somewhere, or a spare one."""
        for n in self.nodes:
            if n.op != "adjoint":
                continue
            base = n.args[0]
            if base.op == "adjoint":
                to = self.places[base]
            else:
                to = self._end_of_chain(n)
                self.stores.append(Store(base, to, max(self.stage[n] - 1, self.stage[base]), stays=False))
            self.places[n] = to
            y, first, last = self.products[n.attr]
            self.calls.setdefault(self.stage[n], []).append(Adjoint(n.attr, y, to, first, last))

    def _end_of_chain(self, n: Node) -> Place:
        while after := [u for u in self.users.get(n, ()) if u.op == "adjoint" and u.args[0] is n]:
            n = after[0]
        for store in self.stores:
            if store.node is n and store.place.kind == "D_BEFORE":
                self.stores.remove(store)
                return store.place
        return self._spare()

    # --- loops ----------------------------------------------------------------------------------------------

    def _all_loops(self) -> list[Action]:
        by_loop: dict[int, list[Store]] = {}
        for store in self.stores:
            by_loop.setdefault(self.stage[store.node] if store.loop is None else store.loop, []).append(store)
        count = 1 + max([*self.stage.values(), *by_loop, *self.calls], default=0)
        self.last_use: dict[int, int] = {}  # slot -> loop
        self.known_rows: set[Node] = set()  # of kind "r": whose row sums are there
        actions: list[Action] = []
        for number in range(count):
            for call in self.calls.get(number, []):
                actions.append(call)
                if isinstance(call, Apply) and call.to.kind == "SLOT":
                    self.last_use |= dict.fromkeys(range(call.first, call.last), number)
            lines = self._loop(number, by_loop.get(number, []))
            wanted = [line.node for line in lines if line.does == "PER_ROW"]
            if rows := self._rows([n for n in wanted if n not in self.known_rows]):
                actions.append(Rows(rows))
            if lines:
                actions.append(Loop(lines))
                self.known_rows |= {n for n in self.nodes if n.op == "total" and self.stage[n] == number + 1}
        return actions

    def _loop(self, number: int, stores: Sequence[Store]) -> list[Line]:
        sums = [(n, row) for n, row in self.sums if self.stage[n] == number]
        totals = [n for n in self.nodes if n.op == "total" and self.stage[n] == number + 1]
        lines: list[Line] = []
        done: set[Node] = set()

        def need(n: Node) -> None:
            if n in done or n.op in ("const", "per_width"):
                return
            done.add(n)
            if n in self.at_hand or (n in self.places and (n.op in MATRIX or self.stage[n] < number)):
                lines.append(Line("LOAD", n, place := self.places[n]))
                if place.kind == "SLOT":
                    self.last_use[place.index] = number
            elif n.kind == "r":
                lines.append(Line("PER_ROW", n, None, self._row_sum(n)))
            elif self.stage[n] >= number or n in self.cheap or n.kind == "c" or n.op in COMPARISONS or not n.args:
                for a in n.args:
                    need(a)
                lines.append(Line("COMPUTE", n))
            else:
                raise _Missing(n)

        wanted: Iterable[Node] = [s.node for s in stores] + [n for n, _ in sums] + [n.args[0] for n in totals]
        for n in wanted:
            need(n)
        lines += [*(Line("STORE", s.node, s.place) for s in stores), *(Line("SUM", n, None, row) for n, row in sums)]
        return lines + [Line("TOTAL", n.args[0], None, self._row_sum(n)) for n in totals]

    def _row_sum(self, n: Node) -> int:
        return self.row_sums.setdefault(n, len(self.row_sums))

    def _rows(self, wanted: Sequence[Node]) -> list[Line]:
        """What makes these row sums of those that are known."""
        made = [n for n in order(wanted, stop=self.known_rows) if n.kind == "r"]
        read = {a for n in made for a in n.args if a in self.known_rows}
        lines = [Line("PER_ROW", n, None, self._row_sum(n)) for n in sorted(read, key=lambda n: n.number)]
        self.known_rows |= set(made)
        return [*lines, *(Line("COMPUTE", n, None, self._row_sum(n)) for n in made)]


class _Missing(Exception):
    def __init__(self, node: Node) -> None:
        super().__init__()
        self.node = node
