"""What the native core is told about a cell: sizes, products, and two programs (`slimrnn_cell` in csrc/include)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from slimrnn.ops.programs import CellProgram, Instruction
from slimrnn.tracing.backward import Backward, derive, kept, without_candidate
from slimrnn.tracing.complex_steps import check_native
from slimrnn.tracing.graph import Node
from slimrnn.tracing.lower import Action, Adjoint, Apply, Function, Line, Loop, Place, Rows, Store
from slimrnn.tracing.stand_in import Untraceable
from slimrnn.tracing.trace import Trace

MOST_STATES, MOST_PRODUCTS, MOST_GATES, MOST_REGISTERS = 8, 8, 32, 64
MOST = 1 << 10  # of anything else, see csrc/cells/sound.h
PLACES = ("SLOT", "BEFORE", "AFTER", "SPARE", "OWN", "D_GATE", "D_BEFORE", "D_AFTER", "X", "Y")
OPS = (
    *("APPLY", "ADJOINT", "LOOP", "ROWS", "LOAD", "STORE", "SUM", "TOTAL", "PER_ROW", "NOISE"),
    *("ADD", "SUB", "MUL", "DIV", "NEG", "SIGMOID", "TANH", "EXP", "LOG", "SOFTPLUS", "SQRT", "ABS", "SIGN", "RELU"),
    *("MAXIMUM", "MINIMUM", "GT", "LT", "GE", "LE", "EQ", "WHERE"),
)
NUMBER = {name: number for number, name in enumerate(OPS)}


class Lowered(NamedTuple):
    """A cell's step and the way back as actions, and what they need."""

    trace: Trace
    forward: list[Action]
    backward: list[Action]
    products: list[tuple[int, int, int, int]]
    slots: int
    kept: int
    spares: int
    row_sums: int


def lowered(trace: Trace) -> Lowered:
    """The step, what it keeps, and the way back."""
    _check_size("rows of parameters", len(trace.own))
    backward = derive(trace)
    check_native(trace)  # the way back then consists of the same kind of arithmetic
    keep = kept(trace, backward)
    if len(keep) > trace.gates:  # more than there is room for where the input products were
        backward = without_candidate(trace, backward)
        keep = kept(trace, backward)
    forward, slots = _forward(trace, keep)
    actions = forward.lower()
    table, way_back = _backward(trace, backward, slots)
    way_back_actions = way_back.lower()
    count = max([trace.gates, *(slot + 1 for slot in slots.values())])
    spares, row_sums = max(forward.spares, way_back.spares), max(len(forward.row_sums), len(way_back.row_sums))
    _check_limits(trace, table)
    return Lowered(trace, actions, way_back_actions, table, count, len(keep), spares, row_sums)


def _check_limits(trace: Trace, products: Sequence[object]) -> None:
    for name, count, most in (
        ("states", trace.states, MOST_STATES),
        ("gates", max(trace.gates, trace.matrices), MOST_GATES),
        ("products of different vectors or ranges of gates", len(products), MOST_PRODUCTS),
    ):
        if count > most:
            raise Untraceable(f"has {count} {name}, more than the {most} of native cells")


def _check_size(of: str, count: int) -> None:
    if count > MOST:
        raise Untraceable(f"needs {count} {of}, more than the {MOST} of native cells")


def _forward(trace: Trace, keep: list[Node]) -> tuple[Function, dict[Node, int]]:
    """Kept vectors take the slot of an input product that nobody reads any more, or one of their own."""
    states = [Store(n, Place("AFTER", i)) for i, n in enumerate(trace.after)]
    first = Function(states + [Store(n, Place("SPARE", 10**6)) for n in keep])  # to see what is read when
    first.lower()
    last_use = {slot: first.last_use.get(slot, -1) for slot in range(trace.gates)}
    slots: dict[Node, int] = {}
    for n in sorted(keep, key=lambda n: (not _is_in_place(n), first.stage[n], n.number)):
        if _is_in_place(n):
            slots[n] = n.attr
        else:
            free = [slot for slot, loop in sorted(last_use.items()) if loop <= first.stage[n]]
            near = [a.attr for a in n.args if _is_in_place(a) and a.attr in free]  # a gate in the place of its product
            slots[n] = (near or free or [len(last_use)])[0]
        last_use[slots[n]] = 10**6
    stores = [Store(n, Place("SLOT", slot)) for n, slot in slots.items() if not _is_in_place(n)]
    return Function(states + stores), slots


def _is_in_place(n: Node) -> bool:
    """Whether it lies in a slot anyway."""
    return n.op == "wx" or (n.op == "product" and n.args[0].op == "wx")


def _backward(
    trace: Trace, backward: Backward, slots: dict[Node, int]
) -> tuple[list[tuple[int, int, int, int]], Function]:
    given = {n: Place("AFTER", i) for i, n in enumerate(trace.after)} | {n: Place("SLOT", j) for n, j in slots.items()}
    stores = [Store(n, Place("D_GATE", g)) for g, n in enumerate(backward.wx)]
    stores += [Store(n, Place("D_BEFORE", i)) for i, n in enumerate(backward.before)]
    table, gradients = [], {}
    for number, (x, first, last, ds) in enumerate(backward.products):
        of_gates = last <= trace.gates and all(d is backward.wx[first + k] for k, d in enumerate(ds))
        y = Place("D_GATE", first) if of_gates else Place("Y", number, 0, last - first)
        if not of_gates:
            stores += [Store(d, y._replace(part=part)) for part, d in enumerate(ds)]
        source = x.attr if x.op == "before" else MOST_STATES + trace.after.index(x) if x in trace.after else -1
        if source < 0:
            stores.append(Store(x, Place("X", number)))
        gradients[number] = (y, first, last)
        table.append((source, first, last, int(of_gates)))
    sums = [(n, row) for row, n in enumerate(backward.own) if n.constant != 0]
    return table, Function(stores, given, sums, gradients)


# --- programs ------------------------------------------------------------------------------------------------------


def assembled(lowered: Lowered) -> CellProgram:
    assembler = _Assembler()
    forward, backward = (assembler.program(actions) for actions in (lowered.forward, lowered.backward))
    count = len(assembler.constants)
    registers = count + assembler.most
    if registers > MOST_REGISTERS:
        raise Untraceable(f"needs {registers} values at once, more than the {MOST_REGISTERS} of native cells")
    trace = lowered.trace
    _check_size("vectors", max(lowered.slots, lowered.spares, lowered.row_sums, len(assembler.places)))
    return CellProgram(
        gates=trace.gates,
        matrices=trace.matrices,
        states=trace.states,
        own_rows=len(trace.own),
        slots=lowered.slots,
        kept=lowered.kept,
        spares=lowered.spares,
        row_sums=lowered.row_sums,
        registers=registers,
        products=tuple(lowered.products),
        places=tuple((PLACES.index(p.kind), p.index, p.part, p.parts) for p in assembler.places),
        constants=tuple(assembler.constants),
        forward=_moved(forward, count),
        backward=_moved(backward, count),
    )


class _Assembler:
    """Numbers places and constants, and gives values registers; those of constants are negative until all are known."""

    def __init__(self) -> None:
        self.places: dict[Place, int] = {}
        self.constants: dict[float | None, int] = {}
        self.most = 0

    def place(self, place: Place) -> int:
        return self.places.setdefault(place, len(self.places))

    def program(self, actions: Sequence[Action]) -> list[Instruction]:
        code: list[Instruction] = []
        for action in actions:
            if isinstance(action, Apply):
                to, x = self.place(action.to), self.place(action.x)
                code.append((NUMBER["APPLY"], to, x, action.first, action.last))
            elif isinstance(action, Adjoint):
                code.append((NUMBER["ADJOINT"], self.place(action.to), self.place(action.y), action.product, 0))
            else:
                body = self.loop(action) if isinstance(action, Loop) else self.rows(action)
                name = "LOOP" if isinstance(action, Loop) else "ROWS"
                code += [(NUMBER[name], len(body), 0, 0, 0), *body]
        return code

    def rows(self, rows: Rows) -> list[Instruction]:
        numbers = {line.node: line.number for line in rows.lines}
        code = []
        for line in rows.lines:
            if line.does == "COMPUTE":
                a, b, c = (*(self._register(n, numbers) for n in line.node.args), 0, 0, 0)[:3]
                code.append((NUMBER[_name(line)], line.number, a, b, c))
        return code

    def loop(self, loop: Loop) -> list[Instruction]:
        last = {n: at for at, line in enumerate(loop.lines) for n in _reads(line)}
        registers: dict[Node, int] = {}
        free: list[int] = []
        used, code = 0, []
        for at, line in enumerate(loop.lines):
            reads = [self._register(n, registers) for n in _reads(line)]
            for n in dict.fromkeys(_reads(line)):
                if last[n] == at and n in registers:
                    free.append(registers[n])
            to = line.number if line.place is None else self.place(line.place)
            if line.does in ("LOAD", "PER_ROW", "COMPUTE"):
                if not free:
                    free, used = [used], used + 1
                registers[line.node] = free.pop()
                self.most = max(self.most, used)
                if line.does != "COMPUTE":
                    reads = [to]
                elif line.node.op == "noise":
                    reads = [line.node.attr]
                to = registers[line.node]
            a, b, c = (*reads, 0, 0, 0)[:3]
            code.append((NUMBER[_name(line)], to, a, b, c))
        return code

    def _register(self, n: Node, registers: dict[Node, int]) -> int:
        if n.op in ("const", "per_width"):
            return -1 - self.constants.setdefault(n.constant, len(self.constants))
        return registers[n]


def _reads(line: Line) -> Sequence[Node]:
    if line.does == "COMPUTE":
        return line.node.args
    return () if line.does in ("LOAD", "PER_ROW") else (line.node,)


def _name(line: Line) -> str:
    return line.node.op.upper() if line.does == "COMPUTE" else line.does


# Which of (to, a, b, c) are registers.
_REGISTERS = {"LOAD": 1, "PER_ROW": 1, "NOISE": 1, "STORE": 2, "SUM": 2, "TOTAL": 2}


def _moved(code: list[Instruction], constants: int) -> tuple[Instruction, ...]:
    """Constants in the first registers, values behind them."""

    def register(number: int) -> int:
        return -1 - number if number < 0 else number + constants

    moved: list[Instruction] = []
    for op, to, a, b, c in code:
        name = OPS[op]
        if name in ("APPLY", "ADJOINT", "LOOP", "ROWS"):
            moved.append((op, to, a, b, c))
        elif name in _REGISTERS:
            moved.append((op, register(to), a, b, c) if _REGISTERS[name] == 1 else (op, to, register(a), b, c))
        else:
            arity = 3 if name == "WHERE" else 2 if name in _BINARY else 1
            numbers = [register(x) if k < arity else 0 for k, x in enumerate((a, b, c))]
            moved.append((op, register(to), *numbers))  # type: ignore[arg-type]
    return tuple(moved)


_BINARY = ("ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "GT", "LT", "GE", "LE", "EQ")
