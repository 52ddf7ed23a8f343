"""The cells that the library is built with C++ for. Any other cell runs as bytecode, at nearly the same speed."""

from __future__ import annotations

from functools import partial

from slimrnn.cells import Cell, ElmanCell, GRUCell, LSTMCell
from slimrnn.tracing.cpp import header
from slimrnn.tracing.program import lowered
from slimrnn.tracing.trace import trace

BUILT_IN: dict[str, partial[Cell]] = {
    "h = tanh(U x + W h + b)": partial(ElmanCell, nonlinearity="tanh"),
    "h = relu(U x + W h + b)": partial(ElmanCell, nonlinearity="relu"),
    "h = U x + W h + b": partial(ElmanCell, nonlinearity="identity"),
    "LSTM": partial(LSTMCell),
    "LSTM with peepholes": partial(LSTMCell, peephole=True),
    "GRU, reset after the product": partial(GRUCell, reset="after"),
    "GRU, reset after the product, without biases": partial(GRUCell, reset="after", bias=False),
    "GRU, reset before the product": partial(GRUCell, reset="before"),
}


def generated_header() -> str:
    """csrc/cells/generated.h"""
    return header((name, lowered(trace(make(2)))) for name, make in BUILT_IN.items())
