"""`slimrnn reproduce`: train with a paper's settings and compare with its result."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from tyro.conf import Positional

from slimrnn._texts import number, table
from slimrnn.cli.duration import Budget, seconds
from slimrnn.cli.parsing import parse
from slimrnn.errors import TrainingDiverged, UsageError
from slimrnn.papers import PaperRow, Verdict, find_row, judge, paper_rows, run_directory
from slimrnn.training.config import plain
from slimrnn.training.launch import my_place
from slimrnn.training.locking import is_locked
from slimrnn.training.plots import describe_model, describe_task
from slimrnn.training.progress import in_words
from slimrnn.training.record import Result, Run

EXIT_CODES = {"passed": 0, "measured": 0, "failed": 1}
UNFINISHED = 3


@dataclass(frozen=True)
class Options:
    """Reproduce a result of a paper with its settings, and say whether ours agrees.

    The exit code is 0 if it does, 1 if not and 3 if the run is unfinished; the same command then resumes it."""

    name: Positional[str] = ""
    """name of the row to reproduce"""
    list: bool = False
    """list all rows and the verdicts on their runs"""
    budget: Budget = None
    """time limit, such as 90s, 10m or 1h30m"""
    seed: int = 0
    """random seed of the initial weights and of the data"""
    threads: int | None = None
    """number of threads; default: torch's"""
    out: Path = Path("runs/reproduce")
    """parent directory of the runs, one for each row and seed"""


def run(arguments: Sequence[str]) -> int:
    """Train what is not finished yet, and print the verdict."""
    options = parse(Options(), arguments, "slimrnn reproduce")
    if options.list:
        print(listing(options.out, options.seed))
        return 0
    if not options.name:
        raise UsageError("expected the name of a row after slimrnn reproduce, or --list, got none")
    if my_place().world > 1:
        raise UsageError("expected slimrnn reproduce in one process, got several")
    budget, row = seconds(options.budget), find_row(options.name)
    deadline = None if budget is None else time.monotonic() + budget
    command = shlex.join(["slimrnn", "reproduce", *arguments])
    for current in _needed(row):
        try:
            result = _train(current, options, command, deadline)
        except TrainingDiverged as error:
            print(f"\nfailed  {error}")
            return EXIT_CODES["failed"]
        if result.ended == "interrupted":
            return 130
        if result.ended == "budget" and current is not row:
            print(f"\n{current.name} comes first and is unfinished; the same command resumes it")
            return UNFINISHED
    verdict = judge(options.out, row, options.seed)
    print(f"\n{_report(row, verdict, Run(result.directory), result)}")
    return EXIT_CODES.get(verdict.state, UNFINISHED)


def _needed(row: PaperRow) -> list[PaperRow]:
    """What the verdict hangs on, the row itself last: the row it is compared with, and both by their other recipes."""
    rows = ([find_row(row.compared_with)] if row.compared_with else []) + [row]
    others = [find_row(one.also) for one in rows if one.also]
    return [*rows[:-1], *others, row]


def listing(runs: Path, seed: int) -> str:
    """All rows by paper, with their verdicts."""
    lines: list[str] = []
    rows = sorted(paper_rows().values(), key=lambda row: row.paper.split()[0].lower())
    width, claim = max(len(row.name) for row in rows), max(len(row.claim) for row in rows)
    for paper, group in groupby(rows, key=lambda row: row.paper.split()[0]):
        lines += ["", paper] if lines else [paper]
        for row in group:
            lines.append(f"  {row.name:<{width}}  {row.claim:<{claim}}  {judge(runs, row, seed)}")
    return "\n".join(lines)


def _train(row: PaperRow, options: Options, command: str, deadline: float | None) -> Result:
    """Start or resume the run of a row; a complete one only returns its result."""
    from slimrnn.training.run import resume, train

    directory = run_directory(options.out, row, options.seed)
    config = replace(row.config, seed=options.seed, threads=options.threads, out=directory)
    left = None if deadline is None else max(0.0, deadline - time.monotonic())
    if is_locked(directory):
        raise UsageError(f"expected a run that is not in use, got {directory}, which another process is training")
    print(f"{row.name}: {describe_model(plain(config.model))}")
    print(f"{describe_task(plain(config.task))}, up to {config.updates:,} updates")
    print(f"{row.paper}: {row.claim}")
    print(f"{row.note}\n" if row.note else "")
    if (directory / "run.json").exists():
        return resume(directory, config, left, command=command)
    return train(config, command, left)


def _report(row: PaperRow, verdict: Verdict, run: Run, result: Result) -> str:
    """The authors' learning curve next to ours, our result, the paper's, and the verdict."""
    lines = []
    if row.curve:
        scores = dict(zip(run.curve["update"], run.column(f"{row.split}/{row.score}"), strict=True))
        rows = [[f"{update:,}", number(scores.get(update)), number(paper)] for update, paper in row.curve]
        lines += [table([["updates", "ours", "paper"], *rows]), ""]
    ours = f"{row.split} {row.score} {number(verdict.value)}"
    lines.append(f"ours    {ours} after {result.updates:,} updates, {in_words(result.seconds)}")
    lines.append(f"paper   {row.claim} ({row.paper})")
    match verdict.state:
        case "passed":
            lines.append(f"passed  {row.criterion} at update {verdict.update:,}")
        case "failed":
            lines.append(f"failed  {row.criterion} not met in {result.updates:,} updates")
        case "measured":
            lines.append("no verdict: the row has no criterion")
        case _:
            lines.append(f"unfinished at update {verdict.update:,} of {row.within:,}; the same command resumes it")
    return "\n".join(lines)
