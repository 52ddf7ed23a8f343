"""`slimrnn reproduce`, with papers that are quick to reproduce."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from cli_runs import complaint

from slimrnn.cli import main
from slimrnn.papers import PaperRow, paper_rows, register_rows
from slimrnn.tasks import CopyTask
from slimrnn.training import Config, ModelConfig, OptimConfig

Capture = pytest.CaptureFixture[str]
CONFIG = Config(
    CopyTask(4),
    ModelConfig("gru", 4),
    updates=6,
    batch_size=4,
    valid_size=8,
    test_size=8,
    eval_every=2,
    checkpoint_every=2,
    tensorboard=False,
)
ROWS = (
    PaperRow("easy", "Almanac §1", "some loss", CONFIG, bound=10.0, curve=((2, 3.0), (5, 2.0))),
    PaperRow("hard", "Almanac §2", "no loss", CONFIG, bound=1e-9, note="without its oracle"),
    PaperRow("stays", "Almanac §2", "stays bad", CONFIG, bound=1.0, direction="at least"),
    PaperRow("rival", "Almanac §3", "worse than easy", replace(CONFIG, seed=5), compared_with="easy"),
    PaperRow("curious", "Almanac §3", "something", CONFIG),
)


@pytest.fixture(autouse=True)
def _almanac(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("slimrnn.papers.registry._BY_NAME", paper_rows())
    register_rows(*ROWS)
    monkeypatch.chdir(tmp_path)


def states(capsys: Capture, *options: str) -> dict[str, str]:
    """The listing of our own rows: the state of each."""
    capsys.readouterr()
    assert main(["reproduce", "--list", *options]) == 0
    lines = capsys.readouterr().out.partition("Almanac\n")[2].partition("\n\n")[0].splitlines()
    claims = {row.name: row.claim for row in ROWS}
    return {line.split()[0]: line.partition(claims[line.split()[0]])[2].strip() for line in lines}


def test_row_that_passes_ends_with_0_and_says_when(capsys: Capture) -> None:
    assert main(["reproduce", "easy"]) == 0
    said = capsys.readouterr().out
    lines = [line.split() for line in said.splitlines()]
    assert ["paper", "some", "loss", "(Almanac", "§1)"] in lines
    assert "passed  test loss ≤ 10 at update 0" in said
    [ours] = [line[1] for line in lines if line[:1] == ["2"] and line[-1] == "3"]
    assert float(ours) == pytest.approx(2.3, abs=0.3)
    assert ["5", "2"] in lines  # not evaluated there
    assert states(capsys)["easy"].startswith("passed at update 0: 2.")


def test_row_that_fails_ends_with_1(capsys: Capture) -> None:
    assert main(["reproduce", "hard"]) == 1
    said = capsys.readouterr().out
    assert "without its oracle" in said
    assert "failed  test loss ≤ 1e-09 not met in 6 updates" in said
    assert states(capsys)["hard"].startswith("failed at update 6: 2.")


def test_budget_stops_and_the_same_command_goes_on(capsys: Capture) -> None:
    assert main(["reproduce", "stays", "--budget", "0.001s"]) == 3
    assert "unfinished at update 1 of 6; the same command resumes it" in capsys.readouterr().out
    assert states(capsys)["stays"].startswith("unfinished at update 1: 2.")
    assert main(["reproduce", "stays"]) == 0
    assert "passed  test loss ≥ 1 at update 6" in capsys.readouterr().out
    curve = Path("runs/reproduce/stays/curve.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in curve] == ["update", "0", "2", "4", "6"]


def test_finished_row_is_not_trained_again(capsys: Capture) -> None:
    assert main(["reproduce", "hard"]) == 1
    before = Path("runs/reproduce/hard/run.json").read_text()
    assert main(["reproduce", "hard"]) == 1
    assert Path("runs/reproduce/hard/run.json").read_text() == before


def test_row_is_held_against_the_row_that_the_paper_compares_it_with(capsys: Capture) -> None:
    code = main(["reproduce", "rival"])
    rival, easy = (
        json.loads(Path(f"runs/reproduce/{name}/run.json").read_text())["result"]["best"]["test"]["loss"]
        for name in ("rival", "easy")
    )
    assert code == (0 if rival <= easy else 1)
    assert "test loss ≤ that of easy" in capsys.readouterr().out


def test_budget_that_ends_before_the_row_itself_begins(capsys: Capture) -> None:
    assert main(["reproduce", "rival", "--budget", "0.001s"]) == 3
    assert "easy comes first and is unfinished" in capsys.readouterr().out
    assert states(capsys)["rival"] == "not run"


def test_run_that_diverges_fails(capsys: Capture) -> None:
    relu = ModelConfig("rnn", 4, nonlinearity="relu")
    wild = replace(CONFIG, model=relu, optim=OptimConfig("sgd", lr=1e30, max_recoveries=0), updates=40)
    register_rows(PaperRow("wild", "Almanac §5", "calm", wild, bound=10.0))
    assert main(["reproduce", "wild"]) == 1
    assert capsys.readouterr().out.splitlines()[-1].startswith("failed  ")


def test_row_without_a_number_is_only_measured(capsys: Capture) -> None:
    assert main(["reproduce", "curious"]) == 0
    assert "no verdict" in capsys.readouterr().out
    assert states(capsys)["curious"].startswith("measured at update 6: 2.")


def test_list_knows_all_states(capsys: Capture) -> None:
    assert set(states(capsys).values()) == {"not run"}


def test_run_that_another_process_works_on(capsys: Capture) -> None:
    assert main(["reproduce", "stays", "--budget", "0.001s"]) == 3
    capsys.readouterr()
    hold = "from pathlib import Path; from slimrnn.training.locking import locked\n"
    hold += "with locked(Path('runs/reproduce/stays')): print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        assert states(capsys)["stays"].startswith("running")
        assert "another process" in complaint(capsys, "reproduce", "stays")
        other.communicate(b"\n")
    assert states(capsys)["stays"].startswith("unfinished")


def test_seeds_have_runs_of_their_own(capsys: Capture) -> None:
    assert main(["reproduce", "easy", "--seed", "3", "--out", "elsewhere"]) == 0
    record = json.loads(Path("elsewhere/easy-seed-3/run.json").read_text())
    assert record["seed"] == 3
    assert record["command"] == "slimrnn reproduce easy --seed 3 --out elsewhere"
    assert states(capsys, "--out", "elsewhere")["easy"] == "not run"
    assert states(capsys, "--out", "elsewhere", "--seed", "3")["easy"].startswith("passed")


def test_rows_that_cannot_be_run_are_refused(capsys: Capture) -> None:
    assert complaint(capsys, "reproduce").endswith("or --list, got none")
    assert complaint(capsys, "reproduce", "esay").endswith("got 'esay'; did you mean 'easy'?")
