"""Cells that ONNX has: RNN, GRU and LSTM with dense matrices.

Shape suffixes: T time, B batch, I input width, G gates, n units, S states.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import onnx_ir as ir

from slimrnn.cells import Cell, ElmanCell, GRUCell, LSTMCell
from slimrnn.exporting.onnx.nodes import Nodes
from slimrnn.exporting.onnx.scan import Operands, sizes_of
from slimrnn.tracing.graph import as_text
from slimrnn.tracing.trace import Trace, trace

MOST_ONE_HOT = 4  # times as many tokens as units: up to there the product with one-hot vectors costs little


class Known(NamedTuple):
    """An operator of ONNX that computes a cell's step."""

    op: str
    order: tuple[int, ...]  # our gates in ONNX's order
    attributes: dict[str, Any]
    own: tuple[Any, ...] = ()  # what the rows of own are, by the names of the cell's parameters


RNN, GRU, LSTM = (0,), (1, 0, 2), (0, 3, 1, 2)  # h; z r h of our r u n; i o f c of our i f g o
CELLS: list[tuple[Callable[[int], Cell], Known]] = [
    (partial(ElmanCell, nonlinearity="tanh"), Known("RNN", RNN, {"activations": ["Tanh"]})),
    (partial(ElmanCell, nonlinearity="relu"), Known("RNN", RNN, {"activations": ["Relu"]})),
    (partial(GRUCell, reset="after"), Known("GRU", GRU, {"linear_before_reset": 1})),
    (partial(GRUCell, reset="after", bias=False), Known("GRU", GRU, {"linear_before_reset": 1})),
    (partial(GRUCell, reset="before"), Known("GRU", GRU, {"linear_before_reset": 0})),
    (partial(LSTMCell), Known("LSTM", LSTM, {})),
    (partial(LSTMCell, peephole=True), Known("LSTM", LSTM, {})),
]


@cache
def _known() -> dict[str, Known]:
    found = {}
    for make, known in CELLS:
        traced = trace(make(2))
        found[as_text(traced.after)] = known._replace(own=tuple(node.attr for node in traced.own))
    return found


def find_operator(given: Operands, traced: Trace) -> Known | None:
    """The operator that computes the same, or None."""
    known = None if given.plan.complex else _known().get(as_text(traced.after))
    if known is None or given.plan.phases > 1 or given.is_single_step or given.resets is not None:
        return None
    if given.state.dtype != ir.DataType.FLOAT:  # onnxruntime has these operators in single precision only
        return None
    if [name for name, _ in given.plan.terms] != ["block_diagonal"] or len(sizes_of(given.weights[0])) != 3:
        return None
    if given.tokens is not None:
        return known if sizes_of(given.x)[0] <= MOST_ONE_HOT * given.units else None
    return known if given.u is not None else None


def emit_operator(nodes: Nodes, given: Operands, known: Known) -> tuple[ir.Value, ir.Value]:
    """-> out (T, B, n) and last (S, B, n), as `slimrnn::scan`."""
    n, gates = given.units, len(known.order)
    x, u, bias = _inputs(nodes, given)

    def flat(value: ir.Value, *columns: int) -> ir.Value:
        """(G, n, ...) -> (1, G n, ...) in ONNX's order"""
        chosen = value if gates == 1 else nodes("Gather", value, nodes.ints(*known.order), axis=0)
        return nodes("Reshape", chosen, nodes.ints(1, gates * n, *columns))

    zeros = nodes("Expand", nodes.number(0.0), nodes.ints(1, gates * n))
    second, peephole = zeros, None
    if known.op == "GRU" and known.own:
        inner = nodes("Reshape", given.own, nodes.ints(1, n))
        second = nodes("Concat", nodes("Expand", nodes.number(0.0), nodes.ints(1, 2 * n)), inner, axis=1)
    if known.op == "LSTM" and known.own:
        peephole = _peephole(nodes, given, known.own)
    both = nodes("Concat", zeros if bias is None else flat(bias), second, axis=1)
    lengths = None if given.lengths is None else nodes("Cast", given.lengths, to=ir.DataType.INT32)
    weights = [flat(u, sizes_of_u(given)), flat(given.weights[0], n), both]
    start = nodes.split(given.state, [1] * given.plan.cell.states, 0)
    inputs = [x, *weights, lengths, *start, *([] if peephole is None else [peephole])]
    attributes = {**known.attributes, "hidden_size": n, "direction": "reverse" if given.reverse else "forward"}
    y, *last = nodes.several(known.op, inputs, 1 + len(start), **attributes)
    joined = nodes("Concat", *last, axis=0) if len(last) > 1 else last[0]
    return nodes("Squeeze", y, nodes.ints(1)), joined


def _inputs(nodes: Nodes, given: Operands) -> tuple[ir.Value, ir.Value, ir.Value | None]:
    """x (T, B, I), u (G, n, I) and the bias; tokens are one-hot vectors, whose columns have the bias in them."""
    if given.tokens is None:
        assert given.u is not None
        return given.x, given.u, given.bias
    values = nodes(
        "Concat",
        nodes("Unsqueeze", nodes.number(0.0), nodes.ints(0)),
        nodes("Unsqueeze", nodes.number(1.0), nodes.ints(0)),
        axis=0,
    )
    one_hot = nodes("OneHot", given.tokens, nodes.int(sizes_of(given.x)[0]), values)
    return one_hot, nodes("Transpose", given.x, perm=[1, 2, 0]), None


def sizes_of_u(given: Operands) -> int:
    """I"""
    return sizes_of(given.x)[0] if given.u is None else sizes_of(given.u)[-1]


def _peephole(nodes: Nodes, given: Operands, own: Sequence[Any]) -> ir.Value:
    """(1, 3 n): i, o, f of our rows i, f, o"""
    rows = [own.index(("peephole", row)) for row in (0, 2, 1)]
    rows_3n = nodes("Gather", given.own, nodes.ints(*rows), axis=1)
    return nodes("Reshape", rows_3n, nodes.ints(1, 3 * given.units))
