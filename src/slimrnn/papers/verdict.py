"""The verdict on a row of a paper, from the runs in a directory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from slimrnn.papers.registry import find_row
from slimrnn.papers.row import PaperRow
from slimrnn.training.locking import is_locked
from slimrnn.training.record import Run

State = Literal["not run", "running", "unfinished", "passed", "failed", "measured", "waiting"]


@dataclass(frozen=True)
class Verdict:
    """State of a row's run. "measured": the row has no criterion; "waiting": the row it is compared with has to finish
    first."""

    state: State
    update: int = 0  #: of the last evaluation, or of the first that met the bound
    value: float | None = None  #: the row's score

    def __str__(self) -> str:
        score = "" if self.value is None else f": {self.value:.4g}"
        return self.state if self.state == "not run" else f"{self.state} at update {self.update:,}{score}"


def run_directory(runs: Path, row: PaperRow, seed: int) -> Path:
    """Directory of a row's run."""
    return runs / (row.name if seed == 0 else f"{row.name}-seed-{seed}")


def judge(runs: Path, row: PaperRow, seed: int) -> Verdict:
    """The verdict on a row, from its run and that of the row it is compared with."""
    directory = run_directory(runs, row, seed)
    if not (directory / "run.json").exists():
        return Verdict("not run")
    run, limit = Run(directory), _limit(runs, row, seed)
    progress = _progress(run, row, limit)
    if is_locked(directory):
        return Verdict("running", progress.last_update, progress.last_score)
    if run.result is None:
        state: State = "failed" if run.status.startswith("failed") else "unfinished"  # killed runs leave no result
        return Verdict(state, progress.last_update, progress.last_score)
    value = run.result.score(row.split, row.score)
    if row.race is not None:
        return _judge_race(runs, row, seed, progress, value)
    passes = limit is not None and row.passes(value, limit)
    if passes and row.direction == "at most":  # the score only has to get there once: no need to finish
        update = progress.last_update if progress.reached is None else progress.reached
        return Verdict("passed" if row.by is None or update <= row.by else "failed", update, value)
    if not progress.is_complete:
        return Verdict("unfinished", run.result.updates, value)
    if limit is None:
        return Verdict("waiting" if row.compared_with else "measured", progress.last_update, value)
    return Verdict("passed" if passes else "failed", progress.last_update, value)


def _limit(runs: Path, row: PaperRow, seed: int) -> float | None:
    """The bound, or the score of the row that this one is compared with, once that is known."""
    if row.bound is not None or row.compared_with is None:
        return row.bound
    other = judge(runs, find_row(row.compared_with), seed)
    return None if other.state in ("not run", "running", "unfinished") else other.value


@dataclass(frozen=True)
class _Progress:
    """How far a run is, and the first update whose evaluation met a limit."""

    reached: int | None = None
    last_update: int = 0
    last_score: float | None = None
    is_complete: bool = False

    def not_reached_at(self, update: int) -> bool:
        """The run has got to that update without meeting the limit."""
        return self.last_update >= update and (self.reached is None or self.reached > update)


def _progress(run: Run, row: PaperRow, limit: float | None) -> _Progress:
    columns = (run.curve.get(name, []) for name in ("update", f"{row.split}/{row.score}"))
    curve = [(int(update), score) for update, score in zip(*columns, strict=True)]
    passing = (update for update, score in curve if limit is not None and row.passes(score, limit))
    is_complete = run.result is not None and run.result.ended in ("finished", "target")
    last_update, last_score = curve[-1] if curve else (0, None)
    return _Progress(next(passing, None), last_update, last_score, is_complete)


def _judge_race(runs: Path, row: PaperRow, seed: int, progress: _Progress, value: float) -> Verdict:
    """Which of two runs met the bound first: known once one has met it and the other has got as far without."""
    assert row.compared_with is not None
    directory = run_directory(runs, find_row(row.compared_with), seed)
    other = _progress(Run(directory), row, row.bound) if (directory / "run.json").exists() else _Progress()
    first, second = (progress, other) if row.race == "ahead" else (other, progress)
    if first.reached is not None and second.not_reached_at(first.reached):
        if row.race != "second" or second.reached is not None:
            return Verdict("passed", first.reached, value)
        return Verdict("failed" if progress.is_complete else "unfinished", progress.last_update, value)
    if second.reached is not None and (first.not_reached_at(second.reached) or first.reached == second.reached):
        return Verdict("failed", second.reached, value)
    is_over = progress.is_complete and other.is_complete
    return Verdict("failed" if is_over else "unfinished", progress.last_update, value)
