"""Layers whose recurrence is diagonal beside the time that their memory traffic takes: nothing else is in their way."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from cases import QUICK_TIME, Shape
from timing import Options, best_times, training_pass

from slimrnn import RNN, ComplexDiagonal, Diagonal, UnICORNN
from slimrnn.layers import RecurrentStack

LAYERS: dict[str, Callable[[Shape], RecurrentStack]] = {
    "UnICORNN x Diagonal": lambda s: UnICORNN(s.m, s.n, structure=Diagonal()),
    "LRU": lambda s: RNN(s.m, s.n, nonlinearity="identity", complex=True, structure=ComplexDiagonal()),
}
SHAPES = (Shape(128, 20, 784), Shape(512, 20, 784))
WIDE = 1 << 25  # numbers: more than any cache holds


def bytes_moved(layer: RecurrentStack, shape: Shape) -> int:
    """What forward and backward must write and read at least: the history of states and of what the step keeps, once
    each way, and the gradient of the output."""
    core = layer.cores[0]
    steps = core.traced_steps()
    assert steps is not None
    native = steps[0].native
    width = shape.n * (2 if layer.layer(0).cell.complex else 1)
    return (2 * (native.states + native.kept) + 1) * 4 * width * shape.B * shape.T


def copy_bandwidth(options: Options) -> float:
    """Bytes per second that one core reads and writes when it copies."""
    source, target = torch.ones(WIDE), torch.ones(WIDE)
    best = best_times({"copy": lambda: target.copy_(source)}, options, "copy bandwidth", budget=1)
    return 2 * 4 * WIDE / best["copy"]


def records(options: Options, speed: float) -> Iterator[dict[str, object]]:
    """Of every layer and shape, where copies have this speed."""
    for shape in (s.cut(QUICK_TIME) if options.quick else s for s in SHAPES):
        for name, make in LAYERS.items():
            if options.wants(name, shape):
                layer = make(shape)
                best = best_times({name: training_pass(layer, shape)}, options, f"diagonal, {name}", budget=3)[name]
                bound = bytes_moved(layer, shape) / speed
                record = {"layer": name, "n/B/T/m": str(shape), "runs as": layer.runs_as, "ours ms": 1e3 * best}
                yield record | {"bound ms": 1e3 * bound, "ours / bound": best / bound}
