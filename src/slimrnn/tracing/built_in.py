"""The cells that the library is built with C++ for, with their default options. Any other runs as bytecode, at nearly
the same speed; LayerNorm cells do too, since their C++ would take as long to compile as all the rest."""

from __future__ import annotations

from functools import partial

from slimrnn.cells import (
    AntisymmetricRNNCell,
    Cell,
    CoRNNCell,
    ElmanCell,
    FastGRNNCell,
    GRUCell,
    LEMCell,
    LipschitzRNNCell,
    LSTMCell,
    MGUCell,
    MinGRUCell,
    MinLSTMCell,
    SLSTMCell,
    UnICORNNCell,
)
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
    "MGU": partial(MGUCell),
    "LEM": partial(LEMCell),
    "coRNN": partial(CoRNNCell),
    "UnICORNN": partial(UnICORNNCell),
    "FastGRNN": partial(FastGRNNCell),
    "sLSTM": partial(SLSTMCell),
    "MinGRU": partial(MinGRUCell),
    "MinLSTM": partial(MinLSTMCell),
    "AntisymmetricRNN": partial(AntisymmetricRNNCell),
    "LipschitzRNN": partial(LipschitzRNNCell),
}


def generated_header() -> str:
    """csrc/cells/generated.h"""
    return header((name, lowered(trace(make(2)))) for name, make in BUILT_IN.items())
