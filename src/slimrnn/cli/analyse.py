"""`slimrnn analyse`: what the net of a run remembers, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from tyro import MISSING
from tyro.conf import Positional

from slimrnn.cli.parsing import parse
from slimrnn.cli.settings import TaskClass
from slimrnn.errors import UsageError
from slimrnn.tasks import load_run, run_config
from slimrnn.training.config import Config
from slimrnn.training.nets import reader
from slimrnn.training.task import Batch

if TYPE_CHECKING:
    from slimrnn.analysis import Diagnosis


@dataclass(frozen=True)
class Options:
    """Report how far back the net of a run remembers, what limits it and what to change: as text, as one HTML file and
    as figures."""

    runs: Positional[tuple[Path, ...]] = MISSING
    """directory of a run, or one of its files best.safetensors and final.safetensors"""
    compare: bool = False
    """compare two runs"""
    out: Path = Path("out/memory")
    """output directory"""
    split: Literal["train", "valid"] = "valid"
    """data that the net reads"""
    sequences: int = 8
    """number of sequences; more than 8 only with --thorough"""
    steps: int | None = None
    """number of steps of each; default: all"""
    thorough: bool = False
    """more lags and exact gradients: minutes instead of seconds"""
    task: TaskClass = None
    """module:Class of the task, if it has moved since the run began"""


def run(arguments: Sequence[str]) -> None:
    """Print the summary, write the report and the figures."""
    options = parse(Options(), arguments, "slimrnn analyse")
    wanted = 2 if options.compare else 1
    if len(options.runs) != wanted:
        word = "two runs after --compare" if options.compare else "one run, or two with --compare"
        raise UsageError(f"expected {word}, got {len(options.runs)}")
    if options.sequences < 1 or (options.steps is not None and options.steps < 2):
        raise UsageError("expected --sequences of at least 1 and --steps of at least 2, got less")
    from slimrnn.training.run_files import writing

    Thread(target=import_module, args=["matplotlib.figure"], daemon=True).start()  # while the measures are taken
    configs = [_config(path, options.task) for path in options.runs]
    with writing(options.out):
        options.out.mkdir(parents=True, exist_ok=True)
    found = [_diagnosed(path, config, options) for path, config in zip(options.runs, configs, strict=True)]
    names = _names(options.runs)
    for name, diagnosis in zip(names, found, strict=True):
        print(f"{name}\n{'=' * len(name)}\n{diagnosis}\n" if options.compare else f"{diagnosis}\n")
    _write(found, names, configs, options)
    print("\n".join(dict.fromkeys(_read(config, options) for config in configs)))
    print(f"report and figures: {options.out / 'report.html'}")


def _write(found: Sequence[Diagnosis], names: Sequence[str], configs: Sequence[Config], options: Options) -> None:
    from slimrnn.analysis import html_report, layer_figures, save_figures
    from slimrnn.training.config import plain
    from slimrnn.training.plots import describe_model, describe_task
    from slimrnn.training.run_files import write_whole, writing

    other = found[1] if options.compare else None
    subtitles = [
        f"{describe_model(plain(one.model))}; {describe_task(plain(one.task))}; {_read(one, options)}"
        for one in configs
    ]
    figures = layer_figures(found[0], other, names)
    report = html_report(
        found[0],
        other,
        names=names,
        title=f"What {' and '.join(names)} remember{'' if options.compare else 's'}",
        subtitle=" / ".join(subtitles),
        figures=figures,
    )
    with writing(options.out):
        write_whole(options.out / "report.html", report.encode())
        save_figures(found[0], options.out, other, names, figures=figures)


def _diagnosed(path: Path, config: Config, options: Options) -> Diagnosis:
    from slimrnn.analysis import diagnose

    model, _ = load_run(path, options.task)
    batch = _batch(config, options)
    reads, given = reader(model, batch.inputs, batch.lengths)
    try:
        return diagnose(reads, *given, thorough=options.thorough, updates=_updates(path))
    except ValueError as error:
        raise UsageError(str(error)) from error


def _updates(path: Path) -> int | None:
    """That the net was trained for; None of a run that goes on."""
    from slimrnn.training.record import Run

    result = Run(_directory(path)).result
    if result is None:
        return None
    return result.updates if path.name == "final.safetensors" else result.best_update


def _directory(path: Path) -> Path:
    return path.parent if path.suffix == ".safetensors" else path


def _config(path: Path, task: str | None) -> Config:
    from slimrnn.training.record import Run

    return run_config(Run(_directory(path)), task)


def _batch(config: Config, options: Options) -> Batch:
    """The first sequences of the split, or the first steps of these."""
    from slimrnn.training.batches import as_dtype

    samples = config.task.samples(options.split, config.seed)
    count = options.sequences if samples.size is None else min(options.sequences, samples.size)
    batch = as_dtype(samples.fetch(np.arange(count, dtype=np.int64)), getattr(torch, config.dtype))
    if options.steps is None or options.steps >= len(batch.inputs):
        return batch
    lengths = None if batch.lengths is None else batch.lengths.clamp_max(options.steps)
    return replace(batch, inputs=batch.inputs[: options.steps], lengths=lengths)


def _read(config: Config, options: Options) -> str:
    """ "8 of 1,000 sequences for validation were read (--sequences)"."""
    size = config.task.samples(options.split, config.seed).size
    name = {"valid": "validation", "train": "training"}[options.split]
    if size is None:
        return f"read {options.sequences} new sequences for {name} (--sequences sets how many)"
    return f"read {min(options.sequences, size):,} of {size:,} sequences for {name} (--sequences sets how many)"


def _names(paths: Sequence[Path]) -> list[str]:
    """Short ones, unless these are alike."""
    names = [_directory(path).resolve().name for path in paths]
    return names if len(set(names)) == len(names) else [str(path) for path in paths]
