"""A cell's traced step in C: loops over the units, and recurrent products between them.

What is computed when, and which values lie in memory meanwhile, is what the native core has, too: see tracing/lower.py.
Every value of a complex cell is a pair of variables, but for its own parameters and moduli.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from slimrnn.errors import ExportError
from slimrnn.exporting.c.given import Product
from slimrnn.exporting.c.source import Body, at
from slimrnn.exporting.int8.exact import hexadecimal, single
from slimrnn.tracing.graph import COMPARISONS, Node
from slimrnn.tracing.lower import Apply, Function, Line, Loop, Place, Rows, Store
from slimrnn.tracing.trace import Trace

INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", **COMPARISONS}
CALLS = {  # common functions of one or two numbers
    "sigmoid": "sigmoid",
    "tanh": "tanh",
    "exp": "exp",
    "log": "log",
    "softplus": "softplus",
    "sqrt": "sqrt",
    "abs": "magnitude",
    "sign": "sign",
    "relu": "relu",
    "maximum": "maximum",
    "minimum": "minimum",
}
Value = tuple[str, ...]  # an expression in C, or of a complex number two: real and imaginary part
Where = Callable[[Place], str]  # -> a pointer in C


@dataclass(frozen=True)
class Places:
    """Where a step finds and leaves its vectors of units · pairs numbers; those of gates and own lie in a row."""

    gates: str
    before: Sequence[str]
    after: Sequence[str]
    own: Sequence[str]  # of each row one number for each unit, also of a complex cell; or a number that is that of all


class StepEmitter:
    """Writes the statements of steps. `product` multiplies with the recurrent matrices."""

    def __init__(self, trace: Trace, units: int, product: Product) -> None:
        self.units, self.product = units, product
        self.pairs = 2 if trace.is_complex else 1
        function = Function([Store(n, Place("AFTER", i)) for i, n in enumerate(trace.after)])
        self.actions = function.lower()
        self.spares, self.sums = function.spares, len(function.row_sums)
        applied = [action for action in self.actions if isinstance(action, Apply)]
        self.multiplied = {place for one in applied for place in (one.x, *_parts_of(one))}

    def __call__(self, body: Body, places: Places) -> None:
        width = self.units * self.pairs
        spare = body.array("spare", self.spares * width) if self.spares else ""

        def where(place: Place) -> str:
            if place.kind in ("BEFORE", "AFTER"):
                return (places.before if place.kind == "BEFORE" else places.after)[place.index]
            if place.kind == "OWN":
                return places.own[place.index]
            start = {"SLOT": places.gates, "SPARE": spare}[place.kind]
            return at(start, (place.index + place.part) * width)

        sums = body.array("sum", self.sums) if self.sums else ""
        for action in self.actions:
            if isinstance(action, Apply):
                self.product(body, action.first, action.last, where(action.x), where(action.to))
            elif isinstance(action, Rows):
                self._rows(body, action, sums)
            else:
                assert isinstance(action, Loop)
                self._loop(body, action, where, sums)

    # --- loops ---------------------------------------------------------------------------------------------------

    def _loop(self, body: Body, loop: Loop, where: Where, sums: str) -> None:
        values: dict[Node, Value] = {}
        totals = [line for line in loop.lines if line.does == "TOTAL"]
        for line in totals:
            body.line(f"{sums}[{line.number}] = 0.0f;")
        with body.loop(self.units):
            for line in loop.lines:
                if line.does == "LOAD":
                    values[line.node] = self._load(body, line, where)
                elif line.does == "PER_ROW":
                    values[line.node] = (_of_row(line, sums),)
                elif line.does == "COMPUTE":
                    values[line.node] = self._compute(body, line.node, values)
                elif line.does == "STORE":
                    self._store(body, line, where, values)
                else:
                    body.line(f"{sums}[{line.number}] += {self._value(body, line.node, values)[0]};")

    def _rows(self, body: Body, rows: Rows, sums: str) -> None:
        """One number for all units."""
        values: dict[Node, Value] = {}
        for line in rows.lines:
            if line.does == "COMPUTE":
                (found,) = self._expression(body, line.node, [self._value(body, a, values) for a in line.node.args])
                is_truth = line.node.op in COMPARISONS
                body.line(f"{sums}[{line.number}] = {f'{found} ? 1.0f : 0.0f' if is_truth else found};")
            values[line.node] = (_of_row(line, sums),)

    def _is_wide(self, place: Place) -> bool:
        """Whether pairs lie there."""
        return self.pairs == 2 and (place.kind in ("SLOT", "BEFORE", "AFTER") or place in self.multiplied)

    def _load(self, body: Body, line: Line, where: Where) -> Value:
        assert line.place is not None
        pointer, wide = where(line.place), self._is_wide(line.place) or line.node.is_complex
        if line.place.kind == "OWN" and is_literal(pointer):
            return (pointer,)
        names = _names(line.node)
        for part, name in enumerate(names):
            body.line(f"const float {name} = ({pointer})[{f'2 * k + {part}' if wide else 'k'}];")
        return names

    def _store(self, body: Body, line: Line, where: Where, values: dict[Node, Value]) -> None:
        assert line.place is not None
        pointer, found = where(line.place), self._value(body, line.node, values)
        if self._is_wide(line.place) or len(found) == 2:
            for part, value in enumerate((*found, "0.0f")[:2]):
                body.line(f"({pointer})[2 * k + {part}] = {value};")
        else:
            body.line(f"({pointer})[k] = {found[0]};")

    # --- arithmetic ----------------------------------------------------------------------------------------------

    def _value(self, body: Body, n: Node, values: dict[Node, Value]) -> Value:
        if n.op == "per_width":
            return (literal(1.0 / self.units),)
        if n.op == "const":
            if math.isfinite(n.attr):
                return (literal(n.attr),)
            sign = "0xff800000u" if n.attr < 0 else "0x7f800000u"
            return (f"{body.source.common('from_bits')}({sign})",)
        return values[n]

    def _compute(self, body: Body, n: Node, values: dict[Node, Value]) -> Value:
        names = _names(n)
        found = self._expression(body, n, [self._value(body, a, values) for a in n.args])
        kind = "int" if n.op in COMPARISONS else "float"
        for name, expression in zip(names, found, strict=True):
            body.line(f"const {kind} {name} = {expression};")
        return names

    def _expression(self, body: Body, n: Node, args: list[Value]) -> Value:
        common = body.source.common
        if any(len(arg) == 2 for arg in args):
            return _of_pairs(common, n, args)
        plain = [arg[0] for arg in args]
        if n.op in INFIX:
            return (f"{plain[0]} {INFIX[n.op]} {plain[1]}",)
        if n.op == "neg":
            return (f"-({plain[0]})",)
        if n.op == "where":
            return (f"{plain[0]} ? {plain[1]} : {plain[2]}",)
        if n.op in CALLS:
            return (f"{common(CALLS[n.op])}({', '.join(plain)})",)
        raise ExportError(f"expected operations that the export to C has, got {n.op}")


def _of_pairs(common: Callable[[str], str], n: Node, args: list[Value]) -> Value:
    """Where some of the numbers are complex."""
    first, *others = args
    if n.op in ("add", "sub"):
        (a, b), sign = ((*arg, "0.0f")[:2] for arg in args), INFIX[n.op]
        return f"{a[0]} {sign} {b[0]}", f"{a[1]} {sign} {b[1]}"
    if n.op == "neg":
        return f"-({first[0]})", f"-({first[1]})"
    if n.op == "where":
        a, b = ((*arg, "0.0f")[:2] for arg in others)
        return tuple(f"{first[0]} ? {one} : {other}" for one, other in zip(a, b, strict=True))
    if n.op in ("mul", "div") and 1 in (len(first), len(others[0])) and (n.op == "mul" or len(first) == 2):
        factor, pair = (first[0], others[0]) if len(first) == 1 else (others[0][0], first)
        return tuple(f"{part} {INFIX[n.op]} {factor}" for part in pair)
    if n.op == "abs":
        return (f"{common('modulus')}({first[0]}, {first[1]})",)
    if n.op == "sign":  # z/|z|, and 0 at 0
        modulus = f"{common('modulus')}({first[0]}, {first[1]})"
        return tuple(f"{modulus} > 0.0f ? {part} / {modulus} : 0.0f" for part in first)
    raise ExportError(f"expected operations that the export to C has, got {n.op} of complex numbers")


def _parts_of(one: Apply) -> Iterator[Place]:
    """Where a product is added to."""
    for part in range(one.last - one.first):
        yield one.to._replace(part=part) if one.to.kind == "SPARE" else one.to._replace(index=one.to.index + part)


def _names(n: Node) -> Value:
    return (f"v{n.number}_re", f"v{n.number}_im") if n.is_complex else (f"v{n.number}",)


def _of_row(line: Line, sums: str) -> str:
    return f"({sums}[{line.number}] > 0.5f)" if line.node.op in COMPARISONS else f"{sums}[{line.number}]"


def is_literal(expression: str) -> bool:
    """Whether it is a number, not a place."""
    return expression[0] in "(0123456789"


def literal(value: float) -> str:
    """The float32 number nearest to it, exactly."""
    nearest = single(value)
    written = f"{nearest!r}f" if nearest == value else hexadecimal(value)
    return f"({written})" if math.copysign(1, value) < 0 else written
