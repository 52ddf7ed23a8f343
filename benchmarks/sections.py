"""The sections of the report: each yields tables of records, measured when asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import bandwidth
import cases
import jax_rivals
import torch
import torchrecurrent_rivals
from cases import JAX, LAYERS, LOOP, Row, Shape
from forced import as_bytecode
from memory import peak_megabytes
from timing import STREAM_STEPS, Options, Pass, best_times, flops, matmul_peak, streaming_pass, tell, training_pass
from torch import nn

from slimrnn import Dense

Record = dict[str, object]
PEAK_SHARE = "of matmul peak"  # a column
MakePass = Callable[[nn.Module, Shape], Pass]


@dataclass
class Table:
    """Records, whose keys are the columns; notes go below."""

    title: str
    records: list[Record]
    notes: list[str] = field(default_factory=list)
    facts: Record = field(default_factory=dict)


@dataclass
class Result:
    """Seconds of a row's rival and of our layer."""

    rival: float
    ours: float
    layer: nn.Module


def table(options: Options) -> Iterator[Table]:
    """Forward and backward beside the rivals."""
    for threads in options.threads:
        torch.set_num_threads(threads)
        notes = ["GFLOP/s count the products only: 6 per recurrent and 4 per input multiply-add, no gates."]
        rows = _chosen([*cases.AGAINST_TORCH, *_jax_rows(threads, notes)], options)
        peak = matmul_peak(options) if rows else 0.0
        found = _measure(rows, options, training_pass, f"table, {_threads(threads)}", budget=10)
        peak = max(peak, matmul_peak(options)) if rows else 0.0
        records = []
        for row, result in found.items():
            rate = flops(result.layer, row.shape) / result.ours / 1e9
            record = _times(row, result, "ms", 1e3) | _verdict(row, result, threads, options)
            records.append(record | {"GFLOP/s": rate, PEAK_SHARE: rate / peak})
        title = f"forward + backward, {_threads(threads)}, matmul peak {peak:.0f} GFLOP/s"
        yield Table(title, records, notes, {"threads": threads, "matmul peak GFLOP/s": peak})


def everyday(options: Options) -> Iterator[Table]:
    """Ragged batches, one sequence, small nets, both directions, equal parameters."""
    from everyday import CASES, measure

    for threads in options.threads:
        torch.set_num_threads(threads)
        records = []
        for case in (case for case in CASES if options.wants(case.name, case.rival_name, case.shape)):
            both, forward = measure(case, options)
            ratios = both["rival"] / both["ours"], forward["rival"] / forward["ours"]
            bars = (case.bars[threads - 1] if threads <= 2 else None) or (None, None)
            record: Record = {"layer": case.name, "n/B/T/m": str(case.shape), "rival": case.rival_name}
            record |= {"rival ms": 1e3 * both["rival"], "ours ms": 1e3 * both["ours"]}
            for name, ratio, bar in zip(("ratio", "forward"), ratios, bars, strict=True):
                met = None if bar is None else _met(ratio >= bar, options)
                record |= {name: ratio, f"{name}: bar": bar and round(bar, 2), f"{name}: met": met}
            records.append(record)
        title = f"everyday shapes, forward + backward, and forward alone; {_threads(threads)}"
        yield Table(title, records, facts={"threads": threads})


def connections(options: Options) -> Iterator[Table]:
    """Leaks, delays, skips, deep transitions, output recurrence and context switching."""
    for threads in options.threads:
        torch.set_num_threads(threads)
        rows = _chosen(cases.AGAINST_LOOP, options)
        found = _measure(rows, options, training_pass, f"connections, {_threads(threads)}", budget=20)
        records = [_times(row, result, "ms", 1e3) for row, result in found.items()]
        yield Table(f"connections, forward + backward, {_threads(threads)}", records, facts={"threads": threads})


def cells(options: Options) -> Iterator[Table]:
    """Every cell: compiled, as bytecode, and as a loop in plain torch; all at one shape, beside nn.GRU."""
    threads, records = options.threads[0], []
    torch.set_num_threads(threads)
    shape = cases.SMALL.cut(cases.QUICK_TIME) if options.quick else cases.SMALL
    for name, make in cases.ZOO.items():
        if not options.wants(name, shape):
            continue
        ours = make(shape.m, shape.n)
        layers = {"ours": ours, LOOP: make(shape.m, shape.n, backend="reference"), "nn.GRU": nn.GRU(shape.m, shape.n)}
        if theirs := torchrecurrent_rivals.layer(name, shape):
            layers["torchrecurrent"] = theirs
        if ours.runs_as == "compiled":
            layers["bytecode"] = as_bytecode(make(shape.m, shape.n))
        passes = {key: training_pass(layer, shape) for key, layer in layers.items()}
        best = best_times(passes, options, f"cells, {name}", budget=8)
        record: Record = {"cell": name, "n/B/T/m": str(shape), "runs as": ours.runs_as, "ours ms": 1e3 * best["ours"]}
        record |= {f"over {key}": best[key] / best["ours"] for key in (LOOP, "nn.GRU")}
        if torchrecurrent_rivals.installed():
            rival = best.get("torchrecurrent")
            record["over torchrecurrent"] = rival / best["ours"] if rival else None
        slower = best["bytecode"] / best["ours"] if "bytecode" in best else None
        records.append(record | {"bytecode / compiled time": slower})
    notes = [
        "over: speed-up, higher is better. Structures are the cells' own: UnICORNN and IndRNN have diagonal matrices,"
    ]
    notes.append("MinGRU and MinLSTM none.")
    yield Table(f"cells, forward + backward, {_threads(threads)}", records, notes, {"threads": threads})


def diagonal(options: Options) -> Iterator[Table]:
    """Diagonal recurrences beside what their memory traffic alone would take, on one thread."""
    torch.set_num_threads(1)
    speed = bandwidth.copy_bandwidth(options)
    records = list(bandwidth.records(options, speed))
    notes = [f"bound: bytes that must be read and written, at the {speed / 1e9:.1f} GB/s of a copy; bar: at most 3."]
    yield Table("diagonal recurrences, forward + backward, 1 thread", records, notes, {"threads": 1})


def step(options: Options) -> Iterator[Table]:
    """Streaming, one step at a time, without gradients."""
    for threads in options.threads:
        torch.set_num_threads(threads)
        rows = _chosen(cases.STEPS, options)
        found = _measure(rows, options, streaming_pass, f"step, {_threads(threads)}", budget=3)
        unit = 1e6 / STREAM_STEPS
        records = [_times(r, t, "µs", unit) | _verdict(r, t, threads, options) for r, t in found.items()]
        yield Table(f"one streaming step under no_grad, {_threads(threads)}", records, facts={"threads": threads})
    yield from _steps_at_many_sizes(options)


def _steps_at_many_sizes(options: Options) -> Iterator[Table]:
    from steps import INPUTS, MISSING, friction_records, grid_records, runtime_is_here

    threads = options.threads[0]
    torch.set_num_threads(threads)
    notes = [
        "fixed: inside fixed_weights(). onnxruntime: a graph of slimrnn.export(step=True), called with numpy arrays."
    ]
    if not runtime_is_here():
        notes.append(MISSING)
    title = f"one streaming step, m={INPUTS}, {_threads(threads)}"
    yield Table(title, list(grid_records(options)), notes, {"threads": threads})
    title = f"unusual input: time over that of a contiguous frame and an ordinary layer, {_threads(threads)}"
    yield Table(title, list(friction_records(options)), facts={"threads": threads})


def memory(options: Options) -> Iterator[Table]:
    """Growth of peak memory, every contestant in a fresh process."""
    threads, records = options.threads[0], []
    rows = _chosen(cases.MEMORY, options)
    peaks: dict[tuple[str, Shape], float] = {}
    for name, shape in dict.fromkeys((name, row.shape) for row in rows for name in (row.rival_key, row.layer)):
        tell(f"memory: {name}, {shape}")
        peaks[name, shape] = peak_megabytes(name, shape, threads)
    tell()
    for row in rows:
        rival, ours = peaks[row.rival_key, row.shape], peaks[row.layer, row.shape]
        record: Record = {"layer": row.layer, "n/B/T/m": str(row.shape), "rival": row.rival}
        record |= {"rival MB": rival, "ours MB": ours, "ours / rival": ours / rival if rival else None}
        met = _met(ours <= cases.MEMORY_BAR * rival, options)
        records.append(record | {"bar": f"at most {cases.MEMORY_BAR}", "met": met})
    yield Table(f"peak memory of forward + backward, {_threads(threads)}", records, facts={"threads": threads})


def scaling(options: Options) -> Iterator[Table]:
    """Time along each axis of the shape; × is the ratio to the row before."""
    threads = options.threads[0]
    torch.set_num_threads(threads)
    for sweep in cases.SWEEPS:
        layers = [name for name in sweep.layers if options.wants(name)]
        shapes = sweep.shapes(options.quick)
        passes = {(name, s): training_pass(LAYERS[name](s), s) for s in shapes for name in layers}
        best = best_times(passes, options, f"scaling in {sweep.axis}", budget=6)
        records = []
        for i, shape in enumerate(shapes if layers else []):
            record: Record = {sweep.axis: getattr(shape, sweep.axis)}
            for name in layers:
                now = best[name, shape]
                before = best[name, shapes[i - 1]] if i else None
                record |= {f"{name} ms": 1e3 * now, f"{name} ×": before and now / before}
            records.append(record)
        fixed = ", ".join(f"{k}={v}" for k, v in vars(sweep.base).items() if k != sweep.axis)
        yield Table(f"scaling in {sweep.axis} ({fixed}), {_threads(threads)}", records, facts={"threads": threads})


def crossover(options: Options) -> Iterator[Table]:
    """Our structured layers beside our dense ones of the same cell."""
    threads = options.threads[0]
    torch.set_num_threads(threads)
    chosen = [c for c in cases.CROSSOVERS if options.wants(c.cell, c.name)]
    sizes = cases.CROSSOVER_SIZES[:-3] if options.quick else cases.CROSSOVER_SIZES
    ratios: dict[tuple[str, str, int], float] = {}
    for n in sizes:
        shape = replace(cases.CROSSOVER_BASE, n=n)
        specs = {(c.cell, c.name): c.structure(n) for c in chosen if n >= c.smallest}
        specs |= {(cell, "Dense()"): Dense() for cell, _ in specs}
        passes = {key: training_pass(cases.CELLS[key[0]](shape, spec), shape) for key, spec in specs.items()}
        best = best_times(passes, options, f"crossover, n={n}", budget=4)
        ratios |= {(*key, n): best[key[0], "Dense()"] / best[key] for key in specs}
    records = []
    for c in chosen:
        row = {n: ratios.get((c.cell, c.name, n)) for n in sizes}
        first = next((n for n, ratio in row.items() if ratio and ratio > 1), None)
        record: Record = {"structure": c.name, "cell": c.cell, "faster at n": first or "none of these"}
        records.append(record | {f"n={n}": ratio for n, ratio in row.items()})
    base = cases.CROSSOVER_BASE
    title = f"crossover: time of our dense layer / of our structured one (B={base.B}, T={base.T}, m={base.m})"
    yield Table(f"{title}, {_threads(threads)}", records, facts={"threads": threads})


def _chosen(rows: Sequence[Row], options: Options) -> list[Row]:
    found = [row for row in rows if options.wants(row.layer, row.rival, row.shape)]
    return [replace(row, shape=row.shape.cut(cases.QUICK_TIME)) for row in found] if options.quick else found


def _jax_rows(threads: int, notes: list[str]) -> list[Row]:
    if not jax_rivals.installed():
        notes.append("jax is not installed: no rows against it.")
    elif threads != jax_rivals.cores():
        cores = jax_rivals.cores()
        notes.append(
            f"jax uses all {cores} cores of the process: its rows are with --threads {cores} (or use taskset)."
        )
    else:
        return cases.AGAINST_JAX
    return []


def _measure(rows: list[Row], options: Options, make: MakePass, what: str, budget: float) -> dict[Row, Result]:
    """All contestants of one shape take turns; each rival runs once, however many rows it is in."""
    found: dict[Row, Result] = {}
    for shape in dict.fromkeys(row.shape for row in rows):
        group = [row for row in rows if row.shape == shape]
        names = dict.fromkeys(name for row in group for name in (row.rival_key, row.layer) if name in LAYERS)
        layers = {name: LAYERS[name](shape) for name in names}
        passes = {name: make(layer, shape) for name, layer in layers.items()}
        passes |= {r.rival_key: jax_rivals.training_pass(r.layer, shape) for r in group if r.rival == JAX}
        best = best_times(passes, options, f"{what}, {shape}", budget)
        found |= {row: Result(best[row.rival_key], best[row.layer], layers[row.layer]) for row in group}
    return {row: found[row] for row in rows}


def _times(row: Row, result: Result, unit: str, factor: float) -> Record:
    return {
        "layer": row.layer,
        "n/B/T/m": str(row.shape),
        "rival": row.rival,
        f"rival {unit}": result.rival * factor,
        f"ours {unit}": result.ours * factor,
        "ratio": result.rival / result.ours,
    }


def _verdict(row: Row, result: Result, threads: int, options: Options) -> Record:
    bar = row.bar(threads)
    return {"bar": bar, "met": None if bar is None else _met(result.rival / result.ours >= bar, options)}


def _met(reached: bool, options: Options) -> str | None:
    """With --quick the shapes are not those of the bars."""
    return None if options.quick else "yes" if reached else "no"


def engine(options: Options) -> Iterator[Table]:
    """What the training engine adds to an update."""
    from engine import SIZES, in_a_bare_loop, settings, with_engine

    threads, records = options.threads[0], list[Record]()
    torch.set_num_threads(threads)
    for length, hidden, updates in SIZES:
        config = settings(length, hidden, updates // 10 if options.quick else updates)
        rounds = []
        for count in range(1 if options.quick else 5):
            tell(f"engine, T={length}: round {count + 1}")
            rounds.append((with_engine(config), in_a_bare_loop(config)))
        tell()
        ours, loop = (1e6 * min(times) for times in zip(*rounds, strict=True))
        record: Record = {"T": length, "n": hidden, "bare loop µs": loop, "engine µs": ours}
        records.append(record | {"added µs": ours - loop, "engine / loop": ours / loop})
    title = f"an update of a low-rank GRU on the adding problem (B=20), {_threads(threads)}"
    yield Table(title, records, facts={"threads": threads})


def updates(options: Options) -> Iterator[Table]:
    """Where the time of an update goes, by tasks of the papers; two runs at once beside one with two threads."""
    from updates import tables

    yield from (Table(title, records, notes) for title, records, notes in tables(options))


def decoding(options: Options) -> Iterator[Table]:
    """Symbols per second of a decoder that reads what it wrote."""
    from decoding import BATCHES, CORES, STEPS, UNITS, WAYS, contestants, decoding_pass

    threads, records, steps = options.threads[0], list[Record](), STEPS // 10 if options.quick else STEPS
    torch.set_num_threads(threads)
    for name in filter(options.wants, CORES):
        decoders = contestants(name)
        passes = {
            (way, batch, kind): decoding_pass(decoder, batch, how, steps)
            for way, how in WAYS.items()
            for batch in BATCHES
            for kind, decoder in decoders.items()
        }
        best = best_times(passes, options, f"decoding, {name}", budget=10)
        for way in WAYS:
            for batch in BATCHES:
                rates = {kind: batch * steps / best[way, batch, kind] for kind in decoders}
                record: Record = {"core": name, "way": way, "batch": batch, "ours tokens/s": rates["auto"]}
                record |= {"reference tokens/s": rates["reference"], "torch.nn tokens/s": rates.get("torch.nn")}
                records.append(record | {"ours / reference": rates["auto"] / rates["reference"]})
    title = f"decoding of {steps} symbols one by one, n={UNITS}, {_threads(threads)}"
    yield Table(title, records, facts={"threads": threads})


def loading(options: Options) -> Iterator[Table]:
    """What making batches costs beside training on them."""
    from loading import measure, settings

    threads, records, notes = options.threads[0], list[Record](), list[str]()
    torch.set_num_threads(threads)
    for name, make in settings().items():
        if not options.wants(name):
            continue
        tell(f"loading: {name}")
        config = make()
        found = measure(config, 0.5 if options.quick else 5)
        if found is None:
            notes.append(f"{name}: its data is not here")
            continue
        record: Record = {"row": name, "batch": config.batch_size, "first batch after s": found.ready}
        record |= {"sequences/s loaded": config.batch_size / found.batch}
        record |= {
            "sequences/s trained": config.batch_size / found.update,
            "loading / training": found.batch / found.update,
        }
        records.append(record)
    tell()
    yield Table(f"batches and updates, {_threads(threads)}", records, notes, facts={"threads": threads})


def pool(options: Options) -> Iterator[Table]:
    """Thousands of streams; the bars of one core need the process on one core (taskset -c 0)."""
    from pool import PERIOD, UNITS, python_micros, real_time_record, speed_records

    torch.set_num_threads(1)
    yield Table(f"frames of streams of an LSTM, n = m = {UNITS}", list(speed_records(options)))
    streams = (500,) if options.quick else (5000, 7000)
    records = [real_time_record(count, 1 if options.quick else 3, options.threads[0]) for count in streams]
    notes = [
        f"step_many costs {python_micros(options):.2f} µs for each of 64 frames where there is nothing to compute."
    ]
    yield Table(f"a frame of every stream every {1e3 * PERIOD:.0f} ms, at random times", records, notes)


def _threads(count: int) -> str:
    return f"{count} thread{'s' if count > 1 else ''}"


def int8(options: Options) -> Iterator[Table]:
    """int8 layers beside the same in float32."""
    from int8 import measure

    torch.set_num_threads(1)
    title = "int8 beside float32, one thread, 16 inputs; microseconds of a step"
    yield Table(title, list(measure(options)), facts={"threads": 1})


SECTIONS = {
    "table": table,
    "everyday": everyday,
    "connections": connections,
    "cells": cells,
    "diagonal": diagonal,
    "step": step,
    "pool": pool,
    "memory": memory,
    "scaling": scaling,
    "crossover": crossover,
    "engine": engine,
    "updates": updates,
    "loading": loading,
    "decoding": decoding,
    "int8": int8,
}
