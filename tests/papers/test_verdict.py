"""Verdicts, from directories that look like runs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from slimrnn.papers import PaperRow, find_row, judge, paper_rows, register_rows
from slimrnn.tasks import CopyTask
from slimrnn.training import Config

OPEN = PaperRow("open", "Almanac §6", "something", Config(CopyTask(4), updates=4))
ROWS = (
    OPEN,
    replace(OPEN, name="bound", bound=1.0),
    replace(OPEN, name="early", bound=1.0, by=3),
    replace(OPEN, name="high", bound=1.0, direction="at least"),
    replace(OPEN, name="ranked", compared_with="open"),
    replace(OPEN, name="hare", bound=1.0, compared_with="tortoise", race="ahead"),
    replace(OPEN, name="tortoise", bound=1.0, compared_with="hare", race="behind"),
    replace(OPEN, name="turtle", bound=1.0, compared_with="hare", race="second"),
    replace(OPEN, name="twice", bound=1.0, also="open"),
    replace(OPEN, name="rival", bound=1.0, compared_with="twice", race="behind", also="rival-ours"),
    replace(OPEN, name="rival-ours"),
    replace(OPEN, name="both", bound=1.0, second=("error", 1.0)),
    replace(OPEN, name="fits", bound=1.0, split="train"),
)


@pytest.fixture(autouse=True)
def _rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slimrnn.papers.registry._BY_NAME", paper_rows())
    register_rows(*ROWS)


def write_run(
    directory: Path, losses: list[float], ended: str | None = None, errors: list[float] | None = None
) -> None:
    """A run with an evaluation every second update; three of them are a whole run. "killed" leaves no result."""
    ended = ended or ("finished" if len(losses) == 3 else "budget")
    directory.mkdir(parents=True)
    last = {"loss": losses[-1]} | ({"error": errors[-1]} if errors else {})
    scores = dict.fromkeys(("valid", "test"), last)
    result = {"ended": ended, "updates": 2 * len(losses) - 2, "seconds": 1.0, "best_update": 0, "recoveries": []}
    has_result = ended not in ("killed", "failed")
    result |= {"best": scores, "final": scores}
    record = {"status": ended, "config": {}, "result": result if has_result else None}
    (directory / "run.json").write_text(json.dumps(record))
    rows = [f"{2 * k},{k},{loss}" for k, loss in enumerate(losses)]
    head = "update,seconds,test/loss"
    if errors:
        head, rows = f"{head},test/error", [f"{row},{error}" for row, error in zip(rows, errors, strict=True)]
    (directory / "curve.csv").write_text("\n".join([head, *rows]) + "\n")


@pytest.mark.parametrize(
    ("row", "losses", "ended", "verdict"),
    [
        ("bound", [2, 0.5, 0.4], None, "passed at update 2: 0.4"),
        ("bound", [2, 0.5], None, "passed at update 2: 0.5"),  # it cannot be lost again
        ("bound", [2, 2], None, "unfinished at update 2: 2"),
        ("bound", [2, 2], "killed", "unfinished at update 2: 2"),
        ("bound", [2, 2], "failed", "failed at update 2: 2"),
        ("bound", [2, 2, 2], None, "failed at update 4: 2"),
        ("early", [2, 0.5, 0.4], None, "passed at update 2: 0.4"),
        ("early", [2, 2, 0.5], None, "failed at update 4: 0.5"),
        ("high", [2, 2], None, "unfinished at update 2: 2"),  # it could still fall
        ("high", [2, 2, 2], None, "passed at update 4: 2"),
        ("high", [2, 2, 0.5], None, "failed at update 4: 0.5"),
        ("open", [2, 2, 0.5], None, "measured at update 4: 0.5"),
        ("ranked", [2, 2, 0.5], None, "waiting at update 4: 0.5"),
        ("both", [2, 0.5], None, "unfinished at update 2: 0.5"),  # without the second score
    ],
)
def test_a_run_is_held_against_its_bound(
    tmp_path: Path, row: str, losses: list[float], ended: str | None, verdict: str
) -> None:
    assert str(judge(tmp_path, find_row(row), 0)) == "not run"
    write_run(tmp_path / row, losses, ended)
    assert str(judge(tmp_path, find_row(row), 0)) == verdict


@pytest.mark.parametrize(
    ("errors", "verdict"),
    [
        ([2, 2, 0.5], "passed at update 4: 0.4"),
        ([2, 0.5, 0.5], "passed at update 2: 0.4"),
        ([2, 2, 2], "failed at update 4: 0.4"),
    ],
)
def test_a_second_score_decides_too(tmp_path: Path, errors: list[float], verdict: str) -> None:
    write_run(tmp_path / "both", [2, 0.5, 0.4], errors=errors)
    assert str(judge(tmp_path, find_row("both"), 0)) == verdict


@pytest.mark.parametrize(
    ("losses", "best", "verdict"),
    [
        (["", 2, 0.5], 4, "passed at update 4: 0.5"),
        (["", 0.5, 2], 2, "passed at update 2: 0.5"),
        (["", 0.5, 2], 4, "failed at update 4: 2"),
        (["", 2], 2, "unfinished at update 2: 2"),
    ],
)
def test_the_training_loss_is_that_before_the_best_net(
    tmp_path: Path, losses: list[float | str], best: int, verdict: str
) -> None:
    write_run(tmp_path / "fits", [9.0] * len(losses))
    record = json.loads((tmp_path / "fits" / "run.json").read_text())
    record["result"]["best_update"] = best
    (tmp_path / "fits" / "run.json").write_text(json.dumps(record))
    rows = [f"{2 * k},{k},{loss}" for k, loss in enumerate(losses)]
    (tmp_path / "fits" / "curve.csv").write_text("\n".join(["update,seconds,train/loss", *rows]) + "\n")
    assert str(judge(tmp_path, find_row("fits"), 0)) == verdict


def test_a_bound_met_only_by_the_best_net(tmp_path: Path) -> None:
    """Scores on the way are on a part of the test set."""
    for name in ("bound", "hare"):
        write_run(tmp_path / name, [2, 2, 2])
        record = json.loads((tmp_path / name / "run.json").read_text())
        record["result"] |= {"best_update": 3, "best": {split: {"loss": 0.9} for split in ("valid", "test")}}
        (tmp_path / name / "run.json").write_text(json.dumps(record))
    write_run(tmp_path / "tortoise", [2, 2, 2])
    assert str(judge(tmp_path, find_row("bound"), 0)) == "passed at update 3: 0.9"
    assert str(judge(tmp_path, find_row("hare"), 0)) == "passed at update 3: 0.9"
    assert judge(tmp_path, find_row("tortoise"), 0).state == "passed"


@pytest.mark.parametrize(("loss", "verdict"), [(0.4, "passed at update 2: 0.4"), (0.6, "failed at update 4: 0.6")])
def test_a_run_is_held_against_the_row_it_is_compared_with(tmp_path: Path, loss: float, verdict: str) -> None:
    write_run(tmp_path / "open", [2, 1, 0.5])
    write_run(tmp_path / "ranked", [2, loss, loss])
    assert str(judge(tmp_path, find_row("ranked"), 0)) == verdict


@pytest.mark.parametrize(
    ("hare", "tortoise", "verdicts"),
    [
        ([2, 0.5, 0.4], [2, 2, 0.5], ("passed at update 2", "passed at update 2", "passed at update 2")),
        ([2, 0.5, 0.4], [2, 2, 2], ("passed at update 2", "passed at update 2", "failed at update 4")),
        ([2, 0.5, 0.4], [2, 0.5, 0.4], ("failed at update 2", "failed at update 2", "failed at update 2")),
        ([2, 2, 0.5], [2, 0.5, 0.4], ("failed at update 2", "failed at update 2", "failed at update 2")),
        ([2, 2, 2], [2, 2, 2], ("failed at update 4", "failed at update 4", "failed at update 4")),
        ([2, 0.5], [2], ("unfinished at update 2", "unfinished at update 0", "unfinished at update 0")),
        ([2, 2], [2, 2, 2], ("unfinished at update 2", "unfinished at update 4", "unfinished at update 4")),
        ([2, 0.5, 0.4], [2, 2], ("passed at update 2", "passed at update 2", "unfinished at update 2")),
    ],
)
def test_a_race_for_the_bound(
    tmp_path: Path, hare: list[float], tortoise: list[float], verdicts: tuple[str, str, str]
) -> None:
    for name, losses in (("hare", hare), ("tortoise", tortoise), ("turtle", tortoise)):
        write_run(tmp_path / name, losses)
    for name, verdict in zip(("hare", "tortoise", "turtle"), verdicts, strict=True):
        assert str(judge(tmp_path, find_row(name), 0)).startswith(verdict)


@pytest.mark.parametrize(
    ("paper", "ours", "verdict"),
    [
        ([2, 2, 2], [2, 0.5, 0.4], "passed at update 2: 0.4"),
        ([2, 0.5, 0.4], [2, 2, 0.5], "passed at update 2: 0.4"),
        (None, [2, 2, 0.5], "passed at update 4: 0.5"),
        (None, [2, 2, 2], "failed at update 4: 2"),  # what was run decides
        ([2, 2], [2, 2, 2], "unfinished at update 2: 2"),
        ([2, 2, 2], [2, 2, 2], "failed at update 4: 2"),
    ],
)
def test_the_better_of_two_recipes_decides(
    tmp_path: Path, paper: list[float] | None, ours: list[float], verdict: str
) -> None:
    if paper is not None:
        write_run(tmp_path / "twice", paper)
    write_run(tmp_path / "open", ours)
    found = judge(tmp_path, find_row("twice"), 0)
    assert str(found) == verdict
    assert (found.recipe == "open") == (paper is None or ours == [2, 0.5, 0.4])


@pytest.mark.parametrize(
    ("rival", "ours", "state", "by"),
    [
        ([2, 2, 0.5], [2, 2, 0.5], "passed", "open"),
        ([2, 2, 2], [2, 0.5, 0.4], "failed", "rival-ours"),  # as early as the other
        ([2, 2, 2], [2], "unfinished", ""),  # not there yet
        ([2, 2, 2], None, "unfinished", ""),
        ([2, 2, 2], "failed", "passed", "open"),  # it will never get there
    ],
)
def test_a_race_is_between_the_best_of_each_net(
    tmp_path: Path, rival: list[float], ours: list[float] | str | None, state: str, by: str
) -> None:
    write_run(tmp_path / "twice", [2, 2, 2])
    write_run(tmp_path / "open", [2, 0.5, 0.4])
    write_run(tmp_path / "rival", rival)
    if ours is not None:
        write_run(tmp_path / "rival-ours", *(([2.0], ours) if isinstance(ours, str) else (ours,)))
    found = judge(tmp_path, find_row("rival"), 0)
    assert (found.state, found.recipe) == (state, by)
