"""What is measured, as data: layers by name, the rows of the tables, and the bars a row should reach.

A bar is a ratio, rival / ours, for (1 thread, 2 threads), as measured on two quiet cores (Zen 4, AVX-512).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from torch import nn

from slimrnn import (
    GRU,
    LEM,
    LSTM,
    MGU,
    RNN,
    SLSTM,
    AntisymmetricRNN,
    BlockDiagonal,
    ContextSwitching,
    CoRNN,
    Dense,
    Diagonal,
    FastGRNN,
    IndRNN,
    Kronecker,
    LayerNormGRU,
    LayerNormLSTM,
    Leaky,
    LipschitzRNN,
    LowRank,
    MinGRU,
    MinLSTM,
    OutputRecurrent,
    Structure,
    UnICORNN,
    UnitaryProduct,
)
from slimrnn.layers import RecurrentStack

JAX, LOOP = "jax.jit + lax.scan", "torch loop of this cell"
QUICK_TIME = 40  # steps of a sequence with --quick


@dataclass(frozen=True)
class Shape:
    """State width, batch, steps and input width."""

    n: int
    B: int
    T: int
    m: int = 1

    def __str__(self) -> str:
        return f"{self.n}/{self.B}/{self.T}/{self.m}"

    def cut(self, time: int) -> Shape:
        return replace(self, T=min(self.T, time))


@dataclass(frozen=True)
class Row:
    """A layer of ours beside a rival."""

    layer: str
    rival: str
    shape: Shape
    bars: tuple[float, float] | None = None

    @property
    def rival_key(self) -> str:
        """Names the rival among others of the same shape: JAX and LOOP are as many as our layers."""
        return f"{self.rival}, {self.layer}" if self.rival in (JAX, LOOP) else self.rival

    def bar(self, threads: int) -> float | None:
        return self.bars[threads - 1] if self.bars and threads <= len(self.bars) else None


def twos(n: int) -> Structure:
    """Kronecker factors of 2 x 2 for a state of n, a power of two."""
    return Kronecker([2] * (n.bit_length() - 1))


SLIM = LowRank(24) + Diagonal()
BLOCKS = BlockDiagonal(8)
GRU_SLIM, LSTM_BLOCKS, KRU = "GRU low-rank 24+diagonal", "LSTM 8 blocks", "Kronecker 2x2 modReLU"

LAYERS: dict[str, Callable[[Shape], nn.Module]] = {
    "nn.GRU": lambda s: nn.GRU(s.m, s.n),
    "nn.LSTM": lambda s: nn.LSTM(s.m, s.n),
    "GRU dense": lambda s: GRU(s.m, s.n),
    "LSTM dense": lambda s: LSTM(s.m, s.n),
    GRU_SLIM: lambda s: GRU(s.m, s.n, structure=SLIM, reset="before"),
    f"{LOOP}, {GRU_SLIM}": lambda s: GRU(s.m, s.n, structure=SLIM, reset="before", backend="reference"),
    LSTM_BLOCKS: lambda s: LSTM(s.m, s.n, structure=BLOCKS),
    KRU: lambda s: RNN(s.m, s.n, structure=twos(s.n), nonlinearity="modrelu"),
    f"{LOOP}, {KRU}": lambda s: RNN(s.m, s.n, structure=twos(s.n), nonlinearity="modrelu", backend="reference"),
    "nn.GRUCell": lambda s: nn.GRUCell(s.m, s.n),
    "nn.LSTMCell": lambda s: nn.LSTMCell(s.m, s.n),
}


def _with_backend(make: Callable[[Shape, str], nn.Module], backend: str, shape: Shape) -> nn.Module:
    return make(shape, backend)


# Connections beyond a layer's own, native and in plain torch.
CONNECTIONS: dict[str, Callable[[Shape, str], nn.Module]] = {
    "GRU leaky": lambda s, backend: GRU(s.m, s.n, leak=Leaky(time_constants=(1, 100), learned=True), backend=backend),
    "GRU delays 1, 2, 4, 8": lambda s, backend: GRU(s.m, s.n, delays=(1, 2, 4, 8), backend=backend),
    "GRU delay 8": lambda s, backend: GRU(s.m, s.n, delays=8, backend=backend),
    "GRU skip 16": lambda s, backend: GRU(s.m, s.n, skip=16, backend=backend),
    "GRU transition depth 2": lambda s, backend: GRU(s.m, s.n, transition_depth=2, backend=backend),
    "RNN output recurrence": lambda s, backend: OutputRecurrent(s.m, s.n, 10, backend=backend),
    "RNN hidden and output recurrence": lambda s, backend: OutputRecurrent(
        s.m, s.n, 10, hidden_recurrence=Dense(), backend=backend
    ),
    "context switching GRU, 8 blocks": lambda s, backend: ContextSwitching(
        GRU(s.m, s.n, structure=BLOCKS, backend=backend)
    ),
}
for _name, _make in CONNECTIONS.items():
    LAYERS[_name] = partial(_with_backend, _make, "auto")
    LAYERS[f"{LOOP}, {_name}"] = partial(_with_backend, _make, "reference")

# Cells by name, each with the structure that is its default.
ZOO: dict[str, Callable[..., RecurrentStack]] = {
    "RNN tanh": RNN,
    "GRU": GRU,
    "GRU, reset before": partial(GRU, reset="before"),
    "LSTM": LSTM,
    "LSTM, peepholes": partial(LSTM, peephole=True),
    "LSTM, zoneout 0.1": partial(LSTM, zoneout=0.1),
    "MGU": MGU,
    "LEM": LEM,
    "CoRNN": CoRNN,
    "UnICORNN": UnICORNN,
    "FastGRNN": FastGRNN,
    "SLSTM": SLSTM,
    "MinGRU": MinGRU,
    "MinLSTM": MinLSTM,
    "LayerNormGRU": LayerNormGRU,
    "LayerNormLSTM": LayerNormLSTM,
    "AntisymmetricRNN": AntisymmetricRNN,
    "LipschitzRNN": LipschitzRNN,
    "IndRNN": IndRNN,
}

SMALL, LARGE, SINGLE = Shape(128, 20, 784), Shape(512, 20, 200), Shape(128, 1, 784)
COPY, ADDING = Shape(512, 20, 750, 10), Shape(128, 20, 1000, 2)

AGAINST_TORCH = [
    Row("GRU dense", "nn.GRU", SMALL, (3, 5)),
    Row("GRU dense", "nn.GRU", LARGE, (1.8, 2.2)),
    Row("GRU dense", "nn.GRU", SINGLE, (20, 30)),
    Row("LSTM dense", "nn.LSTM", SMALL, (1.7, 2.0)),
    Row("LSTM dense", "nn.LSTM", LARGE, (1.15, 1.2)),
    Row(GRU_SLIM, "nn.GRU", SMALL, (5, 8)),
    Row(GRU_SLIM, LOOP, SMALL, (7.5, 12)),
    Row(GRU_SLIM, "nn.GRU", LARGE, (9, 10)),
    Row(LSTM_BLOCKS, "nn.LSTM", SMALL, (5.5, 5.5)),
    Row(LSTM_BLOCKS, "nn.LSTM", LARGE, (6, 5.5)),
    Row(KRU, LOOP, COPY, (28, 45)),
    Row(KRU, LOOP, ADDING, (40, 70)),
]
OURS = dict.fromkeys((row.layer, row.shape) for row in AGAINST_TORCH)
AGAINST_JAX = [Row(layer, JAX, shape, (1.8, 1.8)) for layer, shape in OURS]

AGAINST_LOOP = [Row(name, rival, SMALL) for name in CONNECTIONS for rival in (LOOP, "GRU dense")]

STREAM = Shape(128, 1, 1)
STEPS = [
    Row("GRU dense", "nn.GRUCell", STREAM, (3, 3)),
    Row(GRU_SLIM, "nn.GRUCell", STREAM, (3, 3)),
    Row("LSTM dense", "nn.LSTMCell", STREAM, (3, 3)),
    Row(LSTM_BLOCKS, "nn.LSTMCell", STREAM, (3, 3)),
    *(Row("GRU dense", "nn.GRUCell", Shape(n, 1, 1, 8)) for n in (16, 32)),
    *(Row("LSTM dense", "nn.LSTMCell", Shape(n, 1, 1, 8)) for n in (16, 32)),
]

MEMORY_BAR = 0.5  # of the rival's
MEMORY = [
    Row("GRU dense", "nn.GRU", SMALL),
    Row(GRU_SLIM, "nn.GRU", SMALL),
    Row("LSTM dense", "nn.LSTM", SMALL),
    Row(LSTM_BLOCKS, "nn.LSTM", SMALL),
    Row(KRU, LOOP, COPY),
]


@dataclass(frozen=True)
class Sweep:
    """Layers along one axis of the shape."""

    axis: str  # a field of Shape
    values: tuple[int, ...]
    base: Shape
    layers: tuple[str, ...] = ("GRU dense", GRU_SLIM, KRU)

    def shapes(self, quick: bool) -> list[Shape]:
        values = self.values[:-2] if quick else self.values
        return [replace(self.base, **{self.axis: value}) for value in values]


SWEEPS = [
    Sweep("T", (100, 200, 400, 800), Shape(128, 20, 0)),
    Sweep("n", (128, 256, 512, 1024, 2048), Shape(0, 20, 40)),
    Sweep("B", (1, 2, 4, 8, 16, 32, 64), Shape(128, 0, 200)),
]


@dataclass(frozen=True)
class Crossover:
    """A structure, by the state's width, beside Dense() under one cell."""

    cell: str  # a key of CELLS
    name: str
    structure: Callable[[int], Structure]
    smallest: int = 16  # width that it fits


CELLS: dict[str, Callable[[Shape, Structure], nn.Module]] = {
    "GRU, reset before": lambda s, w: GRU(s.m, s.n, structure=w, reset="before"),
    "LSTM": lambda s, w: LSTM(s.m, s.n, structure=w),
    "complex modReLU": lambda s, w: RNN(s.m, s.n, structure=w, nonlinearity="modrelu"),
}
CROSSOVER_SIZES = (16, 32, 64, 128, 256, 512, 1024)
CROSSOVER_BASE = Shape(0, 20, 40)
CROSSOVERS = [
    Crossover("GRU, reset before", "Diagonal()", lambda n: Diagonal()),
    Crossover("GRU, reset before", "LowRank(24)", lambda n: LowRank(24), 32),
    Crossover("GRU, reset before", "LowRank(24, tied=True)", lambda n: LowRank(24, tied=True), 32),
    Crossover("GRU, reset before", "LowRank(24) + Diagonal()", lambda n: SLIM, 32),
    Crossover("LSTM", "BlockDiagonal(8)", lambda n: BLOCKS),
    Crossover("LSTM", "Kronecker 2x2", twos),
    Crossover("complex modReLU", "Kronecker 2x2", twos),
    Crossover("complex modReLU", "UnitaryProduct()", lambda n: UnitaryProduct()),
]
