"""Thousands of streams: a StreamPool beside batched calls, a loop over cells, and onnxruntime stream by stream."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import torch
from steps import onnx_session, runtime_is_here
from timing import Options, Pass, best_times
from torch import Tensor, nn

from slimrnn import GRU, LSTM, StreamPool
from slimrnn.layers import RecurrentStack

Record = dict[str, object]
UNITS = INPUTS = 128
PERIOD = 0.032  # seconds between two frames of a stream: a voice detector's
STREAMS = 1000  # of the loops
TIME = 50  # steps of the sequence


def speed_records(options: Options) -> Iterator[Record]:
    """Frames per second of pools, in one call for 64 streams and for many, and of the rivals with one thread."""
    layer, many = LSTM(INPUTS, UNITS).eval(), 200 if options.quick else STREAMS
    frames = torch.randn(many, INPUTS)
    pools = [StreamPool(layer, capacity=many, threads=threads) for threads in options.threads]
    passes: dict[str, tuple[int, Pass]] = {}
    for pool in pools:
        streams, suffix = torch.tensor([pool.open() for _ in range(many)]), f"{pool.threads} thread(s)"
        passes[f"step_many of 64, {suffix}"] = 640, partial(_steps_of_pool, pool, streams[:64], frames[:64], 10)
        passes[f"step_many of {many}, {suffix}"] = many, partial(_steps_of_pool, pool, streams, frames, 1)
    passes |= _rivals(layer, frames)
    best = best_times({name: run for name, (_, run) in passes.items()}, options, "pool", budget=12)
    first = 640 / best[next(iter(passes))]
    for name, seconds in best.items():
        rate = passes[name][0] / seconds
        yield {"way": name, "µs per frame": 1e6 / rate, "frames/s": rate, "over the first": rate / first}
    for pool in pools:
        pool.shutdown()


def _steps_of_pool(pool: StreamPool, streams: Tensor, frames: Tensor, times: int) -> object:
    return [pool.step_many(streams, frames) for _ in range(times)]


def _rivals(layer: RecurrentStack, frames: Tensor) -> dict[str, tuple[int, Pass]]:
    """With the frames that each runs."""
    cell, state, sequence = nn.LSTMCell(INPUTS, UNITS), layer.initial_state(64), torch.randn(TIME, 64, INPUTS)

    def cells() -> object:
        with torch.no_grad():
            return [cell(x[None]) for x in frames]

    def steps() -> object:
        with torch.no_grad(), layer.fixed_weights():
            return [layer.step(frames[:64], state) for _ in range(10)]

    def whole() -> object:
        with torch.no_grad():
            return layer(sequence, state)

    found: dict[str, tuple[int, Pass]] = {
        "rnn.step of a batch of 64": (640, steps),
        f"rnn over a sequence of {TIME} steps, batch of 64": (64 * TIME, whole),
        "loop over nn.LSTMCell": (len(frames), cells),
    }
    if runtime_is_here():
        with tempfile.TemporaryDirectory() as folder:
            sessions = _sessions(layer, frames, Path(folder) / "step.onnx")
        found["loop over onnxruntime sessions"] = len(frames), sessions
    return found


def _sessions(layer: RecurrentStack, frames: Tensor, path: Path) -> Pass:
    """One session for all streams, each with its own state: as servers have it."""
    session = onnx_session(layer, path)
    x_name, *state_names = (one.name for one in session.get_inputs())
    zeros = [part.numpy() for part in layer.initial_state(1)]
    states = [zeros] * len(frames)
    rows = [x[None].numpy() for x in frames]

    def run() -> object:
        for k, x in enumerate(rows):
            _, *states[k] = session.run(None, {x_name: x, **dict(zip(state_names, states[k], strict=True))})
        return states

    return run


def real_time_record(streams: int, seconds: float, threads: int) -> Record:
    """A frame of every stream every 32 ms, at random times; whatever has come is handed over in one call."""
    pool = StreamPool(LSTM(INPUTS, UNITS).eval(), capacity=streams, threads=threads)
    ids, frames = torch.tensor([pool.open() for _ in range(streams)]), torch.randn(streams, INPUTS)
    order = torch.rand(streams).mul(PERIOD).sort()
    phases, ids = order.values.double(), ids[order.indices]
    ticks = int(seconds / PERIOD)
    arrivals = (torch.arange(ticks)[:, None] * PERIOD + phases).flatten()  # in order
    late, done, total = [], 0, len(arrivals)
    pool.step_many(ids, frames)
    begun = time.perf_counter() + 0.01
    while done < total:
        now = time.perf_counter() - begun
        come = int(torch.searchsorted(arrivals, now))
        if come == done:
            continue
        come = min(come, done + streams)  # one frame of a stream at a time
        rows = torch.arange(done, come) % streams
        pool.step_many(ids[rows], frames[rows])
        late.append(time.perf_counter() - begun - arrivals[done:come])
        done = come
    spent = time.perf_counter() - begun
    latencies = torch.cat(late).sort().values
    pool.shutdown()
    p50, p99 = (1e3 * float(latencies[int(share * (total - 1))]) for share in (0.5, 0.99))
    record: Record = {"streams": streams, "frames/s": total / spent, "mean batch": total / len(late)}
    record |= {"p50 ms": p50, "p99 ms": p99, "longest ms": 1e3 * float(latencies[-1])}
    return record | {"bar": "p99 < 32 ms", "met": "yes" if p99 < 32 else "no"}


def python_micros(options: Options) -> float:
    """What a frame of step_many costs where there is nothing to compute."""
    pool = StreamPool(GRU(1, 1).eval(), capacity=64, threads=1)
    ids, frames = torch.tensor([pool.open() for _ in range(64)]), torch.randn(64, 1)
    best = best_times({"": lambda: [pool.step_many(ids, frames) for _ in range(100)]}, options, "pool, python", 2)
    pool.shutdown()
    return 1e6 * best[""] / 6400
