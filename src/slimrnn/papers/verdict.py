"""The verdict on a row of a paper, from the runs in a directory."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from slimrnn.papers.registry import find_row
from slimrnn.papers.row import PaperRow
from slimrnn.training.locking import is_locked
from slimrnn.training.record import Result, Run

State = Literal["not run", "running", "unfinished", "passed", "failed", "measured", "waiting"]


@dataclass(frozen=True)
class Verdict:
    """State of a row's run. "measured": the row has no criterion; "waiting": the row it is compared with has to finish
    first."""

    state: State
    update: int = 0  #: of the last evaluation, or of the first that met the bound
    value: float | None = None  #: the row's score
    recipe: str = ""  #: the row whose run decided, where there are several

    def __str__(self) -> str:
        score = "" if self.value is None else f": {self.value:.4g}"
        return self.state if self.state == "not run" else f"{self.state} at update {self.update:,}{score}"


def run_directory(runs: Path, row: PaperRow, seed: int) -> Path:
    """Directory of a row's run."""
    return runs / (row.name if seed == 0 else f"{row.name}-seed-{seed}")


def judge(runs: Path, row: PaperRow, seed: int) -> Verdict:
    """The verdict on a row, from its run, that by another recipe, and those of the row it is compared with."""
    verdict = _judge_alone(runs, row, seed)
    if row.also is None or row.race is not None:  # a race looks at all recipes itself
        return verdict
    other = _judge_alone(runs, replace(find_row(row.also), bound=row.bound, by=row.by), seed)
    return min(verdict, replace(other, recipe=row.also), key=_rank)


def _rank(verdict: Verdict) -> tuple[int, int]:
    """Verdicts on one net, the one that decides first: the earliest that passed; while one that was begun can still
    pass, none has failed."""
    order = {"passed": 0, "running": 1, "unfinished": 2, "not run": 4}
    return order.get(verdict.state, 3), verdict.update


def _judge_alone(runs: Path, row: PaperRow, seed: int) -> Verdict:
    directory = run_directory(runs, row, seed)
    if row.race is not None:
        return _judge_race(runs, row, seed)
    if not (directory / "run.json").exists():
        return Verdict("not run")
    run, limit = Run(directory), _limit(runs, row, seed)
    progress = _progress(run, row, limit)
    if is_locked(directory):
        return Verdict("running", progress.last_update, progress.last_score)
    if run.result is None:
        state: State = "failed" if progress.has_failed else "unfinished"  # killed runs leave no result
        return Verdict(state, progress.last_update, progress.last_score)
    value = _score(run, run.result, row)
    passes = _best_passes(run, row, limit)
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
    """How far a run is, and the first update whose evaluation met a limit, or whose net did on the whole test set."""

    recipe: str = ""  # the row whose run it is
    reached: int | None = None
    last_update: int = 0
    last_score: float | None = None
    is_complete: bool = False
    has_failed: bool = False

    def not_reached_at(self, update: int) -> bool:
        """The run has got to that update without meeting the limit, or will never get there."""
        return (self.last_update >= update or self.has_failed) and (self.reached is None or self.reached > update)


def _progress(run: Run, row: PaperRow, limit: float | None) -> _Progress:
    columns = (run.curve.get(name, []) for name in ("update", f"{row.split}/{row.score}"))
    curve = [(int(update), score) for update, score in zip(*columns, strict=True)]
    name = row.second[0] if row.second else ""
    seconds: list[dict[str, float]] = [{name: score} for score in run.curve.get(f"{row.split}/{name}", [])]
    passing = (
        update
        for (update, score), second in zip(curve, seconds or [{}] * len(curve), strict=True)
        if limit is not None and row.passes(score, limit) and row.passes_second(second)
    )
    has_failed = run.result is None and run.status.startswith("failed")
    is_complete = has_failed or (run.result is not None and run.result.ended in ("finished", "target"))
    last_update, last_score = curve[-1] if curve else (0, None)
    reached = next(passing, None)
    if reached is None and row.direction == "at most" and _best_passes(run, row, limit):
        reached = run.result.best_update if run.result else None  # on the whole test set, which the curve has not seen
    return _Progress(row.name, reached, last_update, last_score, is_complete, has_failed)


def _best_passes(run: Run, row: PaperRow, limit: float | None) -> bool:
    """Whether the net that is best on the validation set does, by its final scores."""
    if limit is None or run.result is None:
        return False
    return row.passes(_score(run, run.result, row), limit) and row.passes_second(run.result.best.get(row.split, {}))


def _score(run: Run, result: Result, row: PaperRow) -> float:
    """That of the net which was best on the validation set; on the training set the curve has it."""
    if row.split != "train":
        return result.score(row.split, row.score)
    scores = dict(zip(run.curve["update"], run.column(f"{row.split}/{row.score}"), strict=True))
    return math.nan if result.best_update is None else scores.get(result.best_update, math.nan)


class _Racer:
    """A net in a race, by all recipes that it has."""

    def __init__(self, runs: Path, row: PaperRow, bound: float | None, seed: int) -> None:
        self.tries: list[_Progress] = []
        for recipe in (row, *([find_row(row.also)] if row.also else [])):
            directory = run_directory(runs, recipe, seed)
            has_run = (directory / "run.json").exists()
            self.tries.append(_progress(Run(directory), recipe, bound) if has_run else _Progress())
        self.best = min(self.tries, key=lambda one: (one.reached is None, one.reached or -one.last_update))
        self.reached = self.best.reached
        self.is_complete = all(one.is_complete for one in self.tries)

    def not_reached_at(self, update: int) -> bool:
        return all(one.not_reached_at(update) for one in self.tries)


def _judge_race(runs: Path, row: PaperRow, seed: int) -> Verdict:
    """Which of two nets met the bound first: known once one has met it and the other has got as far without."""
    assert row.compared_with is not None
    own, other = (_Racer(runs, one, row.bound, seed) for one in (row, find_row(row.compared_with)))
    directory = run_directory(runs, row, seed)
    if not (directory / "run.json").exists():
        return Verdict("not run")
    run, last = Run(directory), own.tries[0]
    value = last.last_score if run.result is None else _score(run, run.result, row)
    if is_locked(directory):
        return Verdict("running", last.last_update, value)
    first, second = (own, other) if row.race == "ahead" else (other, own)
    if first.reached is not None and second.not_reached_at(first.reached):
        if row.race != "second" or second.reached is not None:
            return Verdict("passed", first.reached, value, first.best.recipe)
        return Verdict("failed" if own.is_complete else "unfinished", last.last_update, value)
    if second.reached is not None and (first.not_reached_at(second.reached) or first.reached == second.reached):
        return Verdict("failed", second.reached, value, second.best.recipe)
    is_over = own.is_complete and other.is_complete
    return Verdict("failed" if is_over else "unfinished", last.last_update, value)
