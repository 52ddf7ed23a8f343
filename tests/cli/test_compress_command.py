"""`slimrnn compress`: a run in, a smaller run out."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from own_cases import some_sequences, write_csv
from slimrnn import GRU
from slimrnn.cli import main
from slimrnn.compression import CompressionReport
from slimrnn.compression.plan import cost_of
from slimrnn.tasks import load_run, run_config
from slimrnn.training.record import Run
from slimrnn.training.run import resume

RUN = ["--length", "5", "--model.cell", "gru", "--model.hidden", "12", "--model.layers", "2", "--updates", "4"]
SMALL = ["--valid-size", "8", "--test-size", "8", "--batch-size", "4", "--no-tensorboard"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "a"
    assert main(["train", "copy", *RUN, *SMALL, "--out", str(out)]) == 0
    return out


def test_the_result_is_a_run_within_the_budget(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compress", str(trained), "--budget", "40%", "--fine-tune", "3"]) == 0
    shown, small = capsys.readouterr().out, trained.with_name("a-small")
    assert "rnn.l1.recurrent" in shown
    before, after = load_run(trained)[0], load_run(small)[0]
    assert cost_of(after, "parameters") <= 0.4 * cost_of(before, "parameters")
    assert isinstance(after.rnn, GRU)
    assert isinstance(after.rnn.structure, tuple)  # one for each layer
    assert Run(small).result is not None
    assert main(["eval", str(small)]) == 0
    assert (small / "compression/report.html").exists()


def test_without_fine_tuning_it_is_a_run_too(trained: Path, tmp_path: Path) -> None:
    out = tmp_path / "b"
    assert main(["compress", str(trained), "--budget", "400", "--no-weighted", "--out", str(out)]) == 0
    result = Run(out).result
    assert result is not None
    assert (result.ended, result.updates) == ("finished", 0)
    assert main(["resume", str(out), "--updates", "2"]) == 0


def test_a_stopped_fine_tuning_goes_on_exactly(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CompressionReport, "save", lambda *_: None)  # another test looks at it
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    arguments = ["compress", str(trained), "--budget", "40%", "--fine-tune", "3", "--out"]
    assert main([*arguments, str(whole)]) == 0
    assert main([*arguments, str(parts), "--time-limit", "0.01s"]) == 0
    stopped = Run(parts).result
    assert stopped is not None
    assert stopped.updates < 3
    resume(parts, run_config(Run(parts)), quiet=True)
    wanted, found = (load_run(run / "final.safetensors")[0].state_dict() for run in (whole, parts))
    assert all(torch.equal(value, found[name]) for name, value in wanted.items())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--budget", "1%"], "expected a budget of at least"),
        (["--budget", "few"], "as budget, got 'few'"),
        (["--keep", "foo"], "expected keep to match some of rnn.l0.input"),
        (["--distil"], "expected --distil only with --fine-tune, got it without"),
        (["--fine-tune", "-1"], "expected --fine-tune of at least 0 updates, got -1"),
    ],
)
def test_wrong_options_are_refused(
    trained: Path, tmp_path: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compress", str(trained), "--out", str(tmp_path / "x"), *arguments]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_a_directory_that_cannot_be_made_is_told_before_the_work(
    trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = trained / "run.json"
    assert main(["compress", str(trained), "--out", str(file / "x" / "y")]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == f"slimrnn: cannot write {file / 'x' / 'y'}: Not a directory\n"


def test_a_classifier_of_own_data_learns_from_the_net_that_was_compressed(tmp_path: Path) -> None:
    table, run, small = write_csv(some_sequences(), tmp_path / "table.csv"), tmp_path / "run", tmp_path / "small"
    options = ["--model.hidden", "8", "--updates", "2", "--no-tensorboard"]
    assert main(["train", "classify", "--file", str(table), *options, "--out", str(run)]) == 0
    assert main(["compress", str(run), "--budget", "60%", "--fine-tune", "2", "--distil", "--out", str(small)]) == 0
    assert Run(small).config["teacher"] == str(run)
    again = ["train", "classify", "--file", str(table), *options, "--out", str(tmp_path / "again")]
    assert main([*again, "--teacher", str(run)]) == 0


def test_a_task_that_cannot_distil_is_told_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run"
    assert main(["train", "reverse", "--model.hidden", "4", "--updates", "1", *SMALL, "--out", str(run)]) == 0
    assert main(["compress", str(run), "--fine-tune", "2", "--distil", "--out", str(tmp_path / "x")]) == 2
    assert (
        "expected --distil with a task whose loss needs the net's output alone, got reverse" in capsys.readouterr().err
    )
