"""int8 layers beside the same layers in float32: single steps through the C interface and in Python, and whole
sequences.

Steps in C are timed by a loop in C, compiled here where there is a compiler: a call from Python alone takes as long as
a small step."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import torch
from cases import Shape
from timing import Options, Pass, best_times, streaming_pass

import slimrnn
from slimrnn import GRU, LSTM, BlockDiagonal, Diagonal, LowRank
from slimrnn.layers.streaming import current_stream
from slimrnn.ops.library import native_library

INPUT, STEPS, TIME = 16, 200, 200
BATCHES = (1, 20)
LAYERS: dict[str, Callable[[], Any]] = {
    "GRU, n = 128": lambda: GRU(INPUT, 128),
    "GRU, n = 512": lambda: GRU(INPUT, 512),
    "LSTM, n = 128": lambda: LSTM(INPUT, 128),
    "LSTM, n = 512": lambda: LSTM(INPUT, 512),
    "GRU, n = 128, LowRank(24) + Diagonal()": lambda: GRU(INPUT, 128, structure=LowRank(24) + Diagonal()),
    "LSTM, n = 512, BlockDiagonal(8)": lambda: LSTM(INPUT, 512, structure=BlockDiagonal(8)),
}
BARS = {"GRU, n = 128": 2.0, "LSTM, n = 128": 2.0, "GRU, n = 512": 2.5, "LSTM, n = 512": 2.5}  # of a step in C
LOOP = """
#include <stdint.h>
int run(int32_t (*step)(void *, const void *, int64_t, const void *), void *handle, const void *places, int64_t count) {
    int status = 0;
    while (count-- > 0 && !status) status = step(handle, 0, 1, places);
    return status;
}
"""


@cache
def loop_in_c() -> Any:
    """run(step, handle, places, count), or None without a compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None or native_library() is None:
        return None
    folder = Path(tempfile.mkdtemp())
    (folder / "loop.c").write_text(LOOP)
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", folder / "loop.so", folder / "loop.c"], check=True)
    run = ctypes.CDLL(str(folder / "loop.so")).run
    shutil.rmtree(folder)
    run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int64]
    return run


def steps_in_c(layer: Any) -> Pass | None:
    """STEPS steps of one sequence, each from the state that the last one left."""
    run, library = loop_in_c(), native_library()
    if run is None or library is None:
        return None
    with torch.no_grad():
        stepper = current_stream(layer).steppers[0]
    x, y = torch.randn(1, INPUT), torch.zeros(1, layer.hidden_size)
    states = [torch.zeros(1, layer.hidden_size) for _ in range(layer.cell.states)]
    addresses = [state.data_ptr() for state in states]
    places = stepper.pack(x.data_ptr(), INPUT, 1, y.data_ptr(), *addresses, *addresses)
    function = ctypes.cast(library.slimrnn_step, ctypes.c_void_p)
    held = (x, y, states)

    def steps() -> object:
        assert run(function, stepper.handle, places, STEPS) == 0
        return held

    return steps


def sequence(layer: Any, batch: int) -> Pass:
    x = torch.randn(TIME, batch, INPUT)

    @torch.no_grad()
    def run() -> object:
        return layer(x)

    return run


def measure(options: Options) -> Iterator[dict[str, object]]:
    """A record for every layer and way: microseconds of a step, or of a step of a whole sequence."""
    for name, make in LAYERS.items():
        layer = make().eval()
        nets = {"float32": layer, "int8": slimrnn.quantize(layer)}
        ways: dict[str, tuple[int, Callable[[Any], Pass | None]]] = {
            "step in C": (STEPS, steps_in_c),
            "step in Python": (1000, lambda net: streaming_pass(net, Shape(net.hidden_size, 1, 1, INPUT))),
        }
        for batch in BATCHES:
            ways[f"T = {TIME}, B = {batch}"] = (TIME, lambda net, batch=batch: sequence(net, batch))  # type: ignore[misc]
        for way, (count, make_pass) in ways.items():
            passes = {kind: made for kind, net in nets.items() if (made := make_pass(net)) is not None}
            if len(passes) < 2 or not options.wants(name, way):
                continue
            best = best_times(passes, options, f"int8, {name}, {way}", budget=3)
            micro = {kind: 1e6 * seconds / count for kind, seconds in best.items()}
            bar = BARS.get(name) if way == "step in C" else None
            ratio = micro["float32"] / micro["int8"]
            yield {
                "layer": name,
                "what": way,
                "float32 µs": micro["float32"],
                "int8 µs": micro["int8"],
                "ratio": ratio,
                "bar": bar,
                "met": None if bar is None else ratio >= bar,
            }
