"""`slimrnn compress`: the net of a run made smaller, and fine-tuned; the result is a run, too."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tyro import MISSING
from tyro.conf import Positional

from slimrnn.cli.duration import Budget, seconds
from slimrnn.cli.parsing import parse
from slimrnn.cli.report import exit_code, show
from slimrnn.cli.settings import TaskClass
from slimrnn.errors import UsageError


@dataclass(frozen=True)
class Options:
    """Compress the recurrent layers of a run's best net to a budget, weighted by its training data; fine-tune it by
    distillation. The result is a run, with eval, analyse, sample, export and resume."""

    run: Positional[Path] = MISSING
    """directory of the run"""
    budget: str = "20%"
    """of the recurrent layers: 20%, 50k parameters, "200 KB" or "1.2M macs" (multiply-adds per step)"""
    fine_tune: int = 0
    """updates after the compression"""
    out: Path | None = None
    """directory of the new run; default: that of the run with -small"""
    structures: tuple[str, ...] = ()
    """candidates: tied-low-rank, low-rank, tied-low-rank+diagonal, block-diagonal, kronecker,
    kronecker+tied-low-rank, kronecker+sparse, dense; default: low-rank, tied or not, and dense"""
    keep: tuple[str, ...] = ()
    """patterns of layers or matrices to leave alone, such as rnn.l0 or *.input"""
    weighted: bool = True
    """weight the approximation by the training data and its gradients"""
    distil: bool = True
    """learn the outputs of the old net, by default where the task allows it; else the targets"""
    lr: float | None = None
    """peak learning rate; default: the more was taken away, the higher"""
    time_limit: Budget = None
    """of fine-tuning, such as 90s, 10m or 1h30m; slimrnn resume continues"""
    task: TaskClass = None
    """module:Class of the task, if it has moved since the run began"""


def run(arguments: Sequence[str]) -> int:
    """Compress, print the report, fine-tune, and print the result."""
    options = parse(Options(), arguments, "slimrnn compress")
    limit = seconds(options.time_limit)
    from slimrnn.compression.budget import read_budget
    from slimrnn.tasks.compressed_runs import compress_run
    from slimrnn.training.run import check_can_be_made

    if options.fine_tune < 0:
        raise UsageError(f"expected --fine-tune of at least 0 updates, got {options.fine_tune}")
    insists = "--distil" in arguments
    if insists:
        _check_distils(options)
    out = options.out or options.run.with_name(f"{options.run.name}-small")
    check_can_be_made(out)
    try:
        budget = read_budget(options.budget)
        result, config = compress_run(
            options.run,
            out,
            budget,
            updates=options.fine_tune,
            structures=options.structures or None,
            keep=options.keep or None,
            weighted=options.weighted,
            distil=insists or (None if options.distil else False),
            rate=options.lr,
            task=options.task,
            limit=limit,
            command=shlex.join(["slimrnn", "compress", *arguments]),
        )
    except ValueError as error:
        raise UsageError(str(error)) from error
    show(result, config.task)
    return exit_code(result)


def _check_distils(options: Options) -> None:
    """Refuse a wish for distillation that would have no effect."""
    from slimrnn.tasks import run_config
    from slimrnn.training.distillation import can_distil
    from slimrnn.training.record import Run

    if not options.fine_tune:
        raise UsageError("expected --distil only with --fine-tune, got it without: nothing is learned then")
    task = run_config(Run(options.run), options.task).task
    if not can_distil(task):
        raise UsageError(f"expected --distil with a task whose loss needs the net's output alone, got {task.name}")
