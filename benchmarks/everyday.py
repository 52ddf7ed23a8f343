"""Shapes that people run every day: ragged batches, one sequence, small nets, both directions, equal parameters."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from cases import SLIM, Shape, twos
from timing import Options, Pass, best_times
from torch import Tensor, nn

from slimrnn import GRU, LSTM, RNN, BlockDiagonal, Kronecker

Make = Callable[[Shape], nn.Module]
Bar = tuple[float, float | None]  # of forward + backward, and of forward alone


@dataclass(frozen=True)
class Case:
    """A layer of ours beside a rival; the bars are for one thread and two."""

    name: str
    shape: Shape
    ours: Make
    rival: Make
    rival_name: str
    bars: tuple[Bar | None, Bar | None] = (None, None)
    ragged: bool = False  # ours has sequences of all lengths, the rival full ones
    last: bool = False  # the loss reads h_n only, so that the gradient vanishes on its way back


def _kru(structure: Callable[[int], Any]) -> Make:
    return lambda s: RNN(s.m, s.n, structure=structure(s.n), nonlinearity="modrelu")


def _bidirectional(kind: Callable[..., nn.Module]) -> Make:
    return lambda s: kind(s.m, s.n, num_layers=2, bidirectional=True)


def _lstm(s: Shape) -> nn.Module:
    return LSTM(s.m, s.n)


def _gru(s: Shape) -> nn.Module:
    return GRU(s.m, s.n)


def _torch_lstm(s: Shape) -> nn.Module:
    return nn.LSTM(s.m, s.n)


def _torch_gru(s: Shape) -> nn.Module:
    return nn.GRU(s.m, s.n)


RAGGED, FULL = Shape(256, 32, 200, 64), "ours, full batch"
PIXELS = Shape(128, 50, 784)
CASES = [
    Case("LSTM, ragged", RAGGED, _lstm, _lstm, FULL, ((1 / 0.6, None), None), ragged=True),
    Case("GRU, ragged", RAGGED, _gru, _gru, FULL, ((1 / 0.6, None), None), ragged=True),
    Case("LSTM, one sequence", Shape(256, 1, 100, 256), _lstm, _torch_lstm, "nn.LSTM", ((1.3, 1.1), (1.3, 1.1))),
    Case("GRU, one sequence", Shape(128, 1, 784), _gru, _torch_gru, "nn.GRU", ((20, None), (30, None))),
    Case("LSTM, h_n only", PIXELS, _lstm, _torch_lstm, "nn.LSTM", last=True),
    Case("GRU, h_n only", PIXELS, _gru, _torch_gru, "nn.GRU", last=True),
    Case("LSTM, small", Shape(32, 32, 100, 8), _lstm, _torch_lstm, "nn.LSTM", ((1.6, 1.2), None)),
    Case(
        "LSTM, 4 blocks",
        Shape(128, 20, 150, 9),
        lambda s: LSTM(s.m, s.n, structure=BlockDiagonal(4)),
        lambda s: nn.LSTM(s.m, s.n // 2),
        "nn.LSTM of n/2, equal parameters",
        ((1.5, 1.2), None),
    ),
    Case(
        "LSTM, 2 layers, both directions",
        Shape(128, 16, 200, 40),
        _bidirectional(LSTM),
        _bidirectional(nn.LSTM),
        "nn.LSTM",
        ((1.25, 1.1), None),
    ),
    Case(
        "GRU low-rank 24+diagonal",
        Shape(128, 128, 784),
        lambda s: GRU(s.m, s.n, structure=SLIM, reset="before"),
        _torch_gru,
        "nn.GRU",
        ((5.5, None), None),
    ),
    Case(
        "Kronecker 4, 4, 4, 8",
        Shape(512, 50, 784),
        _kru(lambda n: Kronecker([4, 4, 4, 8])),
        _kru(twos),
        "ours, Kronecker 2x2",
        ((1, None), (1, None)),
    ),
]


def measure(case: Case, options: Options) -> tuple[dict[str, float], dict[str, float]]:
    """Seconds of ours and the rival: forward + backward, and forward alone."""
    shape = replace(case.shape, T=min(case.shape.T, 40)) if options.quick else case.shape
    x = torch.randn(shape.T, shape.B, shape.m)
    lengths = torch.linspace(1, shape.T, shape.B).round().long()[torch.randperm(shape.B)] if case.ragged else None
    layers = {"ours": case.ours(shape), "rival": case.rival(shape)}
    both, forward = dict[str, Pass](), dict[str, Pass]()
    for name, layer in layers.items():
        extra = {"lengths": lengths} if name == "ours" and lengths is not None else {}
        both[name], forward[name] = _passes(layer, x, extra, case.last)
    what = f"everyday, {case.name}"
    return _best(both, options, what, budget=6), _best(forward, options, f"{what}, forward", budget=3)


def _best(passes: dict[str, Pass], options: Options, what: str, budget: float) -> dict[str, float]:
    """Those that take milliseconds are run many times in a row: between the rounds the caches are lost."""
    for run in passes.values():
        run()
    start = time.perf_counter()
    for run in passes.values():
        run()
    count = max(1, int(0.05 / (time.perf_counter() - start)))
    found = best_times({name: _in_a_row(run, count) for name, run in passes.items()}, options, what, budget)
    return {name: seconds / count for name, seconds in found.items()}


def _in_a_row(run: Pass, count: int) -> Pass:
    def again() -> object:
        for _ in range(count - 1):
            run()
        return run()

    return again


def _passes(layer: nn.Module, x: Tensor, extra: dict[str, Any], last: bool) -> tuple[Pass, Pass]:
    def read() -> Tensor:
        output, state = layer(x, **extra)
        h_n: Tensor = state[0] if isinstance(state, tuple) else state
        return h_n if last else output

    gradient = torch.randn_like(read())

    def both() -> object:
        layer.zero_grad()
        output = read()
        torch.autograd.backward(output, gradient)
        return output

    @torch.no_grad()
    def forward() -> object:
        return layer(x, **extra)

    return both, forward
