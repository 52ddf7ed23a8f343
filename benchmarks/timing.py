"""The clock: contestants take turns in every round, and the best round of each counts."""

from __future__ import annotations

import gc
import math
import shutil
import sys
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from cases import Shape
from torch import Tensor, nn

from slimrnn.layers import RecurrentStack

Key = TypeVar("Key", bound=Hashable)
Pass = Callable[[], object]  # what it returns is freed after the clock has stopped
LEAST_ROUNDS = 3  # the first one warms up
STREAM_STEPS = 1000


@dataclass(frozen=True)
class Options:
    """The command line."""

    threads: tuple[int, ...]
    repeats: int
    only: str
    quick: bool

    def wants(self, *names: object) -> bool:
        return self.only.lower() in " ".join(map(str, names)).lower()


def tell(text: str = "") -> None:
    """Show where we are on the terminal's last line; without a text, clear it."""
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns - 1
        print(f"\r\033[K{text[:width]}", end="", file=sys.stderr, flush=True)


def best_times(passes: Mapping[Key, Pass], options: Options, what: str, budget: float) -> dict[Key, float]:
    """Seconds of each pass. After `budget` seconds no further round starts, so that all have run equally often."""
    best = dict.fromkeys(passes, math.inf)
    end = time.perf_counter() + budget
    gc.disable()  # as timeit: a collection belongs to nobody
    try:
        for count in range(options.repeats + 1):
            if count >= LEAST_ROUNDS and time.perf_counter() > end:
                break
            for key, run in passes.items():
                tell(f"{what}: round {count + 1} of at most {options.repeats + 1}, {_name(key)}")
                best[key] = min(best[key], _seconds(run))
            gc.collect()
    finally:
        gc.enable()
        tell()
    return best


def _name(key: object) -> str:
    return " ".join(map(str, key)) if isinstance(key, tuple) else str(key)


def _seconds(run: Pass) -> float:
    start = time.perf_counter()
    result = run()
    elapsed = time.perf_counter() - start
    del result
    return elapsed


def training_pass(layer: nn.Module, shape: Shape) -> Pass:
    """Forward and backward over random input, with a random gradient coming in."""
    x = torch.randn(shape.T, shape.B, shape.m)
    width = layer(x[:1])[0].shape[-1]
    gradient = torch.randn(shape.T, shape.B, width)

    def run() -> object:
        layer.zero_grad()
        output, _ = layer(x)
        torch.autograd.backward(output, gradient)
        return output

    return run


def streaming_pass(layer: nn.Module, shape: Shape, x: Tensor | None = None) -> Pass:
    """STREAM_STEPS single steps, without gradients, each from the state that the last one left."""
    x, zero = torch.randn(shape.B, shape.m) if x is None else x, torch.zeros(shape.B, shape.n)
    start: Any = (zero, zero) if isinstance(layer, nn.LSTMCell) else zero

    @torch.no_grad()
    def run_cell() -> object:
        state = start
        for _ in range(STREAM_STEPS):
            state = layer(x, state)
        return state

    if not isinstance(layer, RecurrentStack):
        return run_cell
    step, start = layer.step, layer.initial_state(shape.B)

    @torch.no_grad()
    def run() -> object:
        state = start
        for _ in range(STREAM_STEPS):
            _, state = step(x, state)
        return state

    return run


def flops(layer: nn.Module, shape: Shape) -> int:
    """Operations of the products in one training pass: a multiply-add is two; forward has one product of each kind,
    backward two recurrent ones and, as the input wants no gradient, one of the input."""
    assert isinstance(layer, RecurrentStack)
    inner = layer.layer(0)
    inputs = len(inner.cell.gates) * shape.n * shape.m * (2 if inner.cell.complex else 1)  # x is real
    return 2 * (3 * inner.recurrent.macs + 2 * inputs) * shape.T * shape.B


def matmul_peak(options: Options) -> float:
    """GFLOP/s of one large float32 product in torch."""
    size = 1024 if options.quick else 2048
    a, b = torch.randn(size, size), torch.randn(size, size)
    best = best_times({"torch matmul": lambda: a @ b}, options, "matmul peak", budget=1)
    return float(2 * size**3 / best["torch matmul"] / 1e9)
