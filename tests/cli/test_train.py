"""`slimrnn train`, `resume` and `eval`."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cli_runs import TINY, complaint, trained

from slimrnn.cli import main
from slimrnn.tasks import TASKS, load_run
from slimrnn.training.checks import build_model
from slimrnn.training.record import fingerprint

Capture = pytest.CaptureFixture[str]
NAMES = ", ".join(TASKS)


def record(directory: Path) -> Any:
    return json.loads((directory / "run.json").read_text())


def test_run_keeps_options_and_the_exact_command(tmp_path: Path, capsys: Capture) -> None:
    directory = trained(tmp_path / "a run", "--optim.lr", "0.01", "--model.structure=low-rank", "--model.rank", "2")
    kept = record(directory)
    assert kept["command"].startswith("slimrnn train copy --length=4 ")
    assert kept["command"].endswith(f"--out '{directory}' --optim.lr 0.01 --model.structure=low-rank --model.rank 2")
    assert kept["config"]["task"]["length"] == 4
    assert kept["config"]["optim"]["lr"] == 0.01
    assert kept["config"]["model"]["rank"] == 2
    said = capsys.readouterr().out
    assert "finished after 6 updates" in said
    assert str(directory) in said


def test_default_directory_is_a_new_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        assert main(["train", "copy", *TINY]) == 0
    assert len(list((tmp_path / "runs").iterdir())) == 2


def test_command_line_overrides_file(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(
        "task: {name: adding, length: 6}\n"
        "model: {cell: gru, hidden: 4, update_bias: 1}\n"
        "optim: {lr: 1e-2}\n"
        "updates: 4\neval_every: 4\nvalid_size: 8\ntest_size: 8\ntensorboard: false\n"
    )
    out = tmp_path / "run"
    assert main(["train", f"--config={file}", "--length", "8", "--model.hidden", "3", "--out", str(out)]) == 0
    config = record(out)["config"]
    assert config["task"] == {"name": "adding", "length": 8}
    assert (config["model"]["hidden"], config["model"]["update_bias"]) == (3, 1.0)
    assert (config["optim"]["lr"], config["updates"]) == (0.01, 4)


def test_biases_may_be_spread_over_the_units(tmp_path: Path) -> None:
    out = tmp_path / "run"
    options = ["--model.cell", "gru", "--model.hidden", "4", "--model.update_bias", "0", "6"]
    assert main(["train", "copy", *TINY, *options, "--out", str(out)]) == 0
    assert record(out)["config"]["model"]["update_bias"] == [0.0, 6.0]
    _, config = load_run(out)
    assert config.model.update_bias == (0.0, 6.0)
    fresh = build_model(replace(config, model=replace(config.model, update_bias=(0, 6))))
    assert fresh.state_dict()["rnn.layers.0.cell.bias"][1].tolist() == [0, 2, 4, 6]
    assert fingerprint(config) == fingerprint(replace(config, model=replace(config.model, update_bias=(0, 6))))
    assert main(["resume", str(out)]) == 0


def test_biases_may_be_drawn(tmp_path: Path) -> None:
    out = tmp_path / "run"
    options = ["--model.cell", "lstm", "--model.forget_bias", "chrono(9)"]
    assert main(["train", "copy", *TINY, *options, "--out", str(out)]) == 0
    assert record(out)["config"]["model"]["forget_bias"] == "chrono(9)"
    _, config = load_run(out)
    input_bias, forget_bias = build_model(config).state_dict()["rnn.layers.0.cell.bias"][:2]
    assert input_bias.tolist() == (-forget_bias).tolist()
    assert forget_bias.min() > 0
    assert forget_bias.max() < math.log(8)
    assert main(["resume", str(out)]) == 0


def test_settings_of_a_run_start_another(tmp_path: Path) -> None:
    first = trained(tmp_path / "first")
    assert main(["train", "--config", str(first / "run.json"), "--seed", "1", "--out", str(tmp_path / "second")]) == 0
    configs = [record(tmp_path / name)["config"] for name in ("first", "second")]
    assert [config.pop("out") for config in configs] == [str(first), str(tmp_path / "second")]
    assert [config.pop("seed") for config in configs] == [0, 1]
    assert configs[0] == configs[1]


def test_bad_files_are_refused(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "settings.yaml"
    assert "No such file" in complaint(capsys, "train", "--config", str(file))
    for content, message in {
        "task: {name: coppy}": "did you mean 'copy'?",
        "task: {name: copy}\nupdatse: 3": "did you mean 'updates'?",
        "task: {name: copy}\nmodel: {hidden: many}": "expected model.hidden to be an int, got 'many'",
        "[1, 2]": "to hold names and values, got [1, 2]",
        "task: {name: copy": "expected YAML",
    }.items():
        file.write_text(content)
        assert message in complaint(capsys, "train", "--config", str(file))
    file.write_text("task: {name: copy}")
    assert "expected the task of" in complaint(capsys, "train", "adding", "--config", str(file))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", f"expected a task ({NAMES}) or --config FILE after slimrnn train, got none"),
        ("coppy", f"expected a task of {NAMES}, got 'coppy'; did you mean 'copy'?"),
        ("copy --length -3", "expected length to be at least 1, got -3"),
        ("copy --lenght 3", "expected options of slimrnn train copy, got --lenght; did you mean --length?"),
        ("copy --model.rnk 3", "got --model.rnk; did you mean --model.rank?"),
        ("copy --qqq", "expected options of slimrnn train copy, got --qqq; slimrnn train copy --help shows them"),
        ("copy adding", "expected options of slimrnn train copy, got adding; slimrnn train copy --help shows them"),
        ("copy --model.cell lsm", "indrnn, or module:name, got 'lsm'; did you mean 'lstm'?"),
        ("copy --updates", "expected a value after --updates, got none"),
        ("copy --updates many", "expected --updates to be an integer, got 'many'"),
        ("copy --updates 0", "expected updates to be at least 1, got 0"),
        ("copy --model.forget_bias a b", "expected --model.forget-bias to be numbers, got 'a', 'b'"),
        ("copy --optim.lr fast", "expected --optim.lr to be a number, got 'fast'"),
        ("copy --optim.lr -1", "expected lr to be positive, got -1.0"),
        ("copy --model.structure low-rank", "expected rank with structure low-rank, got none"),
        ("copy --model.structure block-diagonal --model.blocks 3 --model.hidden 8", "got 8"),
        ("copy --budget soon", "expected a time such as 90s, 10m or 1h30m, got 'soon'"),
        ("adding --bptt 3", "expected bptt with an output at every step, got task adding, which has one"),
    ],
)
def test_bad_input_is_refused_before_any_work(
    arguments: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    assert complaint(capsys, "train", *arguments.split()).endswith(message)
    assert list(tmp_path.iterdir()) == []


def test_run_directory_that_exists_is_refused_and_left_alone(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    assert f"{tmp_path} exists" in complaint(capsys, "train", "copy", *TINY, "--out", str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_help_is_grouped_and_has_the_tasks_options(capsys: Capture) -> None:
    assert main(["train", "copy", "--help"]) == 0
    said = capsys.readouterr().out
    groups = [line.strip("╭─╮ ") for line in said.splitlines() if line.strip("╭─╮ ").endswith("options")]
    assert groups == ["options", "model options", "optim options"]
    for option in (
        "--length INT (default: 1000)",
        "--model.cell STR (default: lstm)",
        "--budget TIME",
    ):
        assert option in said
    assert len(said.splitlines()) < 104  # a line for each option, and the groups
    assert main(["train", "copy", "--help-verbose"]) == 0
    assert "number of updates (optimizer steps)" in capsys.readouterr().out


def test_eval_gives_the_scores_of_the_run(tmp_path: Path, capsys: Capture) -> None:
    directory = trained(tmp_path / "run")
    result = record(directory)["result"]
    for checkpoint in ("best", "final"):
        capsys.readouterr()
        assert main(["eval", str(directory), "--checkpoint", checkpoint]) == 0
        heading, *rows, baseline = (line.split() for line in capsys.readouterr().out.splitlines())
        assert heading == ["loss", "recall", "accuracy"]
        assert rows == [
            [split, *(f"{value:.4g}" for value in scores.values())] for split, scores in result[checkpoint].items()
        ]
        assert baseline == ["memoryless", f"{10 * math.log(8) / 24:.4g}"]


def test_resume_extends_a_run_as_if_it_had_been_longer(tmp_path: Path) -> None:
    def curve(directory: Path) -> list[list[str]]:
        return [line.split(",") for line in (directory / "curve.csv").read_text().splitlines()]

    longer = curve(trained(tmp_path / "long", "--updates", "10"))
    short = trained(tmp_path / "short")
    assert main(["resume", str(short), "--updates", "10"]) == 0
    assert record(short)["resumed_by"] == [f"slimrnn resume {short} --updates 10"]
    assert record(short)["config"]["updates"] == 10
    seconds = longer[0].index("seconds")
    assert [row[:seconds] + row[seconds + 1 :] for row in curve(short)] == [
        row[:seconds] + row[seconds + 1 :] for row in longer
    ]


@pytest.mark.parametrize("command", ["resume", "eval", "compare"])
def test_commands_on_runs_refuse_what_is_none(command: str, tmp_path: Path, capsys: Capture) -> None:
    assert complaint(capsys, command, str(tmp_path)).startswith("expected the directory of a run, got ")
    assert complaint(capsys, command).endswith(f"after slimrnn {command}, got none")


def test_fewer_updates_than_done_are_refused(tmp_path: Path, capsys: Capture) -> None:
    directory = trained(tmp_path / "run")
    assert complaint(capsys, "resume", str(directory), "--updates", "4").endswith("at least 6, got 4")


def test_python_m_slimrnn_trains(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "slimrnn", "train", "copy", *TINY, "--out", "run"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    assert record(tmp_path / "run")["command"].startswith("slimrnn train copy --length=4")
