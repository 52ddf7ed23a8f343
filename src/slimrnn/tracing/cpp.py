"""C++ of a cell's step and of the way back, from the same actions as its programs: csrc/cells/generated.h."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from slimrnn.tracing.graph import COMPARISONS, Node
from slimrnn.tracing.lower import Action, Adjoint, Apply, Line, Loop, Place, Rows
from slimrnn.tracing.operations import OPERATIONS
from slimrnn.tracing.program import Lowered, assembled

HEAD = """\
// Written by `make cells` from src/slimrnn/cells. Do not edit.
#pragma once
#include "noise.h"

namespace slimrnn {
namespace SLIMRNN_ISA {
"""
TAIL = """
}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
"""


def header(cells: Iterable[tuple[str, Lowered]]) -> str:
    """The whole file, for cells and what is said of each."""
    parts, table = [HEAD], []
    for comment, cell in cells:
        program = assembled(cell)
        fingerprint, sizes = program.fingerprint, ", ".join(map(str, (*program[:8], len(program.products))))
        parts.append(f"\n// {comment}\n{struct(f'Cell_{fingerprint}', cell)}")
        functions = f"Cell_{fingerprint}<T>::forward, SLIMRNN_BACK(Cell_{fingerprint}<T>::backward)"
        table.append(f'    {{"{fingerprint}", {{{sizes}}}, {functions}}},\n')
    parts.append(f"\ntemplate <class T>\nconstexpr CellCode<T> generated[] = {{\n{''.join(table)}}};\n")
    parts.append("constexpr int generated_count = int(sizeof(generated<float>) / sizeof(generated<float>[0]));\n")
    return "".join([*parts, TAIL])


def struct(name: str, cell: Lowered) -> str:
    lines = [f"template <class T> struct {name} {{"]
    for function, actions in (("forward", cell.forward), ("backward", cell.backward)):
        lines += [f"static void {function}(Step<T> &s) {{", "const int64_t w = s.width;"]
        lines += _body(actions, cell.slots)
        lines.append("}")
    return "\n".join(_indented([*lines, "};"])) + "\n"


def _body(actions: Sequence[Action], slots: int) -> list[str]:
    lines: list[str] = []
    open_rows = False  # loops without a product between them share one loop over the rows
    for action in actions:
        by_row = isinstance(action, Loop | Rows)
        if by_row != open_rows:
            lines.append("for (int64_t r = 0; r < s.rows; r++) {" if by_row else "}")
            open_rows = by_row
        if isinstance(action, Loop):
            lines += _loop(action, slots)
        elif isinstance(action, Rows):
            lines += _rows(action)
        else:
            lines.append(_product(action, slots))
    return [*lines, "}"] if open_rows else lines


def _product(action: Apply | Adjoint, slots: int) -> str:
    if isinstance(action, Apply):
        at, apart = _pointer(action.to, slots)
        return f"s.apply({_pointer(action.x, slots)[0]}, {at}, {apart}, {action.first}, {action.last});"
    at, apart = _pointer(action.y, slots)
    to = _pointer(action.to, slots)[0]
    return f"s.adjoint({action.product}, {at}, {apart}, {to}, {action.first}, {action.last});"


def _rows(rows: Rows) -> list[str]:
    """One number for each row, computed as a vector of equal ones."""
    lines = []
    for line in rows.lines:
        lines.append(_line(line, None))
        if line.does == "COMPUTE":
            lines.append(f"s.row_sum({line.number})[r] = ((Vec<T>)v{line.node.number})[0];")
    return ["{", *lines, "}"]


def _loop(loop: Loop, slots: int) -> list[str]:
    pointers: dict[Place, str] = {}

    def at(place: Place) -> str:
        return f"{pointers.setdefault(place, f'p{len(pointers)}')} + k"

    inside = [_line(line, at) for line in loop.lines if line.does != "PER_ROW"]
    named = []
    for place, name in pointers.items():
        start, apart = _pointer(place, slots)
        named.append(f"auto *const {name} = {start}{'' if apart == '0' else f' + r * {apart}'};")
    totals = [line.number for line in loop.lines if line.does == "TOTAL"]
    before = [f"Vec<T> t{number}{{}};" for number in totals]
    after = [f"s.row_sum({number})[r] = sum_of<T>(t{number});" for number in totals]
    before += [_line(line, at) for line in loop.lines if line.does == "PER_ROW"]
    noise = sorted({line.node.attr for line in loop.lines if line.node.op == "noise" and line.does == "COMPUTE"})
    before += [f"const uint32_t key{stream} = noise_key(s, {stream}, r);" for stream in noise]
    return ["{", *before, *named, "each_vector<T>(w, [&](int64_t k, auto n) {", *inside, "});", *after, "}"]


def _line(line: Line, at: object) -> str:
    name, place = f"v{line.node.number}", line.place
    if line.does == "LOAD":
        return f"const Vec<T> {name} = n.get({at(place)});"  # type: ignore[operator]
    if line.does == "PER_ROW":
        kind = "Int<T>" if line.node.op in COMPARISONS else "Vec<T>"
        return f"const {kind} {name} = ({kind})fill(s.row_sum({line.number})[r]);"
    if line.does == "STORE":
        return f"n.put({at(place)}, {_text(line.node, True)});"  # type: ignore[operator]
    if line.does == "SUM":
        return f"add_to<T>({at(Place('D_OWN', line.number))}, n, {_text(line.node, True)});"  # type: ignore[operator]
    if line.does == "TOTAL":
        return f"t{line.number} += n.template only<T>({_text(line.node, True)});"
    kind = "auto" if line.node.op in COMPARISONS else "Vec<T>"
    return f"const {kind} {name} = {_expression(line.node)};"


def _expression(n: Node) -> str:
    if n.op == "noise":
        return f"uniforms<T>(key{n.attr}, k)"
    whole = n.op in ("where", "maximum", "minimum") or all(a.kind == "c" for a in n.args)
    return OPERATIONS[n.op].cpp.format(*(_text(a, whole) for a in n.args))


def _text(n: Node, as_vector: bool) -> str:
    if n.op == "per_width":
        number = "T(1) / T(w)"
    elif n.op == "const":
        number = f"T({n.attr!r})".replace("T(inf)", "T(INFINITY)").replace("T(-inf)", "-T(INFINITY)")
    else:
        return f"v{n.number}"
    return f"fill<T>({number})" if as_vector else f"({number})" if " " in number else number


def _pointer(place: Place, slots: int) -> tuple[str, str]:
    """Where its first row begins, and how far apart the rows are."""
    kind, index, part, parts = place

    def at(base: str, count: int) -> str:
        return base if count == 0 else f"{base} + w" if count == 1 else f"{base} + {count} * w"

    def times(count: int) -> str:
        return "w" if count == 1 else f"{count} * w"

    if kind == "SLOT":
        return at("s.slots", index), times(slots)
    if kind == "SPARE":
        base = "s.spare" if index == 0 else f"s.spare + {index} * s.rows * w"
        return at(base, part), times(parts)
    if kind in ("OWN", "D_OWN"):
        return at("s.own" if kind == "OWN" else "s.d_own", index), "0"
    if kind == "D_GATE":
        return at("s.d_gates", index), "s.ldd"
    if kind == "X":
        return f"s.products[{index}].x", "s.ldx"
    if kind == "Y":
        return at(f"s.products[{index}].y", part), times(parts)
    return f"s.{kind.lower()}[{index}]", "w"


def _indented(lines: Sequence[str]) -> list[str]:
    depth, found = 0, []
    for line in lines:
        depth -= line.startswith("}")
        found.append("    " * depth + line)
        depth += line.endswith("{")
    return found
