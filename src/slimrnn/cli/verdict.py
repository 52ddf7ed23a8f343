"""What runs in a directory say about a row of a paper."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from slimrnn.tasks import find_row
from slimrnn.training.locking import is_locked
from slimrnn.training.paper import PaperRow
from slimrnn.training.record import Run

State = Literal["not run", "running", "unfinished", "passed", "failed", "measured", "waiting"]


@dataclass(frozen=True)
class Verdict:
    """How far a row is, and what came of it. Without a criterion it is only measured; a row that is judged by another
    waits for it."""

    state: State
    update: int = 0  # of the last evaluation, or of the first that met the bound
    value: float | None = None  # the score in question

    def __str__(self) -> str:
        score = "" if self.value is None else f": {self.value:.4g}"
        return self.state if self.state == "not run" else f"{self.state} at update {self.update:,}{score}"


def run_directory(runs: Path, row: PaperRow, seed: int) -> Path:
    """Where the run of a row is kept."""
    return runs / (row.name if seed == 0 else f"{row.name}-seed-{seed}")


def judge(runs: Path, row: PaperRow, seed: int) -> Verdict:
    """From the run of a row, and from that of the row it is compared with."""
    directory = run_directory(runs, row, seed)
    if not (directory / "run.json").exists():
        return Verdict("not run")
    run = Run(directory)
    updates = [int(update) for update in run.curve.get("update", [])]
    scores = run.curve.get(f"{row.split}/{row.score}", [])
    last, value = next(zip(reversed(updates), reversed(scores), strict=True), (0, None))
    if is_locked(directory):
        return Verdict("running", last, value)
    if run.result is None:
        return Verdict("failed" if run.status.startswith("failed") else "unfinished", last, value)  # or killed
    if row.race is not None:
        return _raced(runs, row, seed, run.result.score(row.split, row.score))
    value, limit = run.result.score(row.split, row.score), _limit(runs, row, seed)
    complete, met = run.result.ended in ("finished", "target"), limit is not None and row.passes(value, limit)
    if met and row.direction == "at most":
        first = next((u for u, score in zip(updates, scores, strict=True) if row.passes(score, limit)), last)
        return Verdict("passed" if row.by is None or first <= row.by else "failed", first, value)
    if not complete:
        return Verdict("unfinished", run.result.updates, value)
    if limit is None:
        return Verdict("waiting" if row.compared_with else "measured", last, value)
    return Verdict("passed" if met else "failed", last, value)


def _raced(runs: Path, row: PaperRow, seed: int, value: float) -> Verdict:
    """Of two runs, who was at the bound first; known as soon as one is there and the other has gone as far."""
    assert row.compared_with is not None
    own, other = (_progress(runs, some, row, seed) for some in (row, find_row(row.compared_with)))
    first, second = (own, other) if row.race == "ahead" else (other, own)
    if first.reached is not None and second.beyond(first.reached):
        waits = row.race == "second" and second.reached is None
        return Verdict("passed", first.reached, value) if not waits else _open(own, value)
    if second.reached is not None and (first.beyond(second.reached) or first.reached == second.reached):
        return Verdict("failed", second.reached, value)
    return _open(own, value, other)


def _open(own: _Progress, value: float, *others: _Progress) -> Verdict:
    """Nobody is there yet, or the one that has to be is not."""
    return Verdict("failed" if all(one.complete for one in (own, *others)) else "unfinished", own.last, value)


@dataclass(frozen=True)
class _Progress:
    """In a race: the update at which the bound was met, the last one, and whether there are more to come."""

    reached: int | None
    last: int
    complete: bool

    def beyond(self, update: int) -> bool:
        """Was not there yet at that update."""
        return self.last >= update and (self.reached is None or self.reached > update)


def _progress(runs: Path, row: PaperRow, race: PaperRow, seed: int) -> _Progress:
    directory = run_directory(runs, row, seed)
    if not (directory / "run.json").exists():
        return _Progress(None, 0, False)
    run = Run(directory)
    updates = [int(update) for update in run.curve.get("update", [])]
    scores = run.curve.get(f"{race.split}/{race.score}", [])
    reached = next((u for u, score in zip(updates, scores, strict=True) if race.passes(score)), None)
    complete = run.result is not None and run.result.ended in ("finished", "target")
    return _Progress(reached, max(updates, default=0), complete)


def _limit(runs: Path, row: PaperRow, seed: int) -> float | None:
    """What the score is held against."""
    if row.compared_with is None:
        return row.bound
    other = judge(runs, find_row(row.compared_with), seed)
    return None if other.state in ("not run", "running", "unfinished") else other.value
