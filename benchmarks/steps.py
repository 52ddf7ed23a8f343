"""Single steps at many sizes beside torch's cells and onnxruntime, and what unusual input costs."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from cases import Shape
from timing import STREAM_STEPS, Options, Pass, best_times, streaming_pass
from torch import nn

import slimrnn
from slimrnn import GRU, LSTM
from slimrnn.layers import RecurrentStack

Record = dict[str, object]
CELLS: dict[str, tuple[Callable[[int, int], RecurrentStack], Any]] = {
    "GRU dense": (GRU, nn.GRUCell),
    "LSTM dense": (LSTM, nn.LSTMCell),
}
SIZES, BATCHES = (16, 32, 64, 128, 256), (1, 8, 64)
INPUTS = 32
RUNTIME = "onnxruntime"
MISSING = "onnxruntime or what exports to it is not installed: no times of it."
FRICTION_BAR = 1.3


def runtime_is_here() -> bool:
    return all(importlib.util.find_spec(name) for name in ("onnx", "onnxscript", RUNTIME))


def grid_records(options: Options) -> Iterator[Record]:
    """A row for every cell, width and batch: our step, the same inside fixed_weights(), and the rivals."""
    with tempfile.TemporaryDirectory() as folder:
        for name, (make, cell_type) in CELLS.items():
            for n in SIZES[::2] if options.quick else SIZES:
                layer = make(INPUTS, n).eval()
                session = onnx_session(layer, Path(folder) / f"{name}-{n}.onnx") if runtime_is_here() else None
                for batch in BATCHES:
                    shape = Shape(n, batch, 1, INPUTS)
                    if options.wants(name, cell_type.__name__, RUNTIME, shape):
                        yield _record(name, layer, cell_type, session, shape, options)


def _record(name: str, layer: RecurrentStack, cell: Any, session: Any, shape: Shape, options: Options) -> Record:
    ours = streaming_pass(layer, shape)
    passes = {"ours": ours, "fixed": _fixed(layer, ours), "cell": streaming_pass(cell(shape.m, shape.n), shape)}
    if session is not None:
        passes[RUNTIME] = onnx_pass(session, layer, shape)
    best = best_times(passes, options, f"step, {name}, {shape}", budget=1.5)
    micros = {key: 1e6 * seconds / STREAM_STEPS for key, seconds in best.items()}
    record: Record = {"layer": name, "n": shape.n, "B": shape.B, "ours µs": micros["ours"], "fixed µs": micros["fixed"]}
    record |= {"nn cell µs": micros["cell"], "nn cell / ours": micros["cell"] / micros["ours"]}
    other = micros.get(RUNTIME)
    return record | {f"{RUNTIME} µs": other, f"{RUNTIME} / ours": other and other / micros["ours"]}


def _fixed(layer: RecurrentStack, steps: Pass) -> Pass:
    def run() -> object:
        with layer.fixed_weights():
            return steps()

    return run


def onnx_session(layer: RecurrentStack, path: Path) -> Any:
    """Of a graph of one step, with as many threads as torch."""
    import onnxruntime  # type: ignore[import-untyped]

    slimrnn.export(layer, torch.randn(3, layer.input_size), path, step=True, quiet=True)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads, settings.log_severity_level = torch.get_num_threads(), 3
    return onnxruntime.InferenceSession(str(path), settings, providers=["CPUExecutionProvider"])


def onnx_pass(session: Any, layer: RecurrentStack, shape: Shape) -> Pass:
    """As streaming_pass; all in numpy, as onnxruntime has it."""
    x_name, *state_names = (one.name for one in session.get_inputs())
    x, state = torch.randn(shape.B, shape.m).numpy(), layer.initial_state(shape.B)
    parts = state if isinstance(state, tuple) else (state,)
    start = [part.detach().numpy() for part in parts]

    def run() -> object:
        given, latest = {x_name: x}, start
        for _ in range(STREAM_STEPS):
            given.update(zip(state_names, latest, strict=True))
            _, *latest = session.run(None, given)
        return latest

    return run


def friction_records(options: Options) -> Iterator[Record]:
    """A contiguous frame and an ordinary layer beside frames x[:, t] and layers of inference mode."""
    for n, batch in ((16, 1), (16, 8), (128, 1), (128, 8), (128, 64)):
        shape = Shape(n, batch, 1, INPUTS)
        if not options.wants("GRU dense", shape):
            continue
        layer = GRU(INPUTS, n).eval()
        with torch.inference_mode():
            built, moved = GRU(INPUTS, n).eval(), GRU(INPUTS, n).eval().double().float()
        strided = torch.randn(batch, 5, INPUTS)[:, 2]
        passes = {
            "plain": streaming_pass(layer, shape),
            "strided x[:, t]": streaming_pass(layer, shape, strided),
            "built in inference mode": streaming_pass(built, shape),
            "moved in inference mode": streaming_pass(moved, shape),
        }
        best = best_times(passes, options, f"step, unusual input, {shape}", budget=2)
        record: Record = {"layer": "GRU dense", "n": n, "B": batch, "plain µs": 1e6 * best["plain"] / STREAM_STEPS}
        ratios = {name: best[name] / best["plain"] for name in list(passes)[1:]}
        met = None if options.quick else "yes" if max(ratios.values()) <= FRICTION_BAR else "no"
        yield record | ratios | {"bar": f"at most {FRICTION_BAR}", "met": met}
