"""A task of one's own, the one of docs/tasks.md, from the command line: trained, killed, resumed, scored, analysed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from cli_runs import TINY, complaint

from pages import DOCS
from slimrnn.cli import main
from slimrnn.tasks import config_from_dict, load_run
from slimrnn.training import Run

NAME = "parity:ParityTask"
Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working directory with the page's module, which is not on the import path."""
    example = re.search(
        r"```python\n(from dataclasses(?:(?!```).)*class ParityTask.*?)```",
        DOCS.joinpath("tasks.md").read_text(),
        re.DOTALL,
    )
    assert example
    (tmp_path / "parity.py").write_text(example[1])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry not in ("", ".")])
    yield tmp_path
    for module in ("parity", "moved", "broken"):
        sys.modules.pop(module, None)


def command(*arguments: str) -> subprocess.Popen[str]:
    """As the installed command: the working directory is not on the import path."""
    environment = os.environ | {"PYTHONSAFEPATH": "1"}
    return subprocess.Popen([sys.executable, "-m", "slimrnn", *arguments], env=environment, text=True)


def test_killed_and_resumed_it_is_as_if_it_had_not_been(directory: Path, capsys: Capture) -> None:
    options = [*TINY, "--updates=300", "--eval-every=100"]
    process = command("train", NAME, *options, "--out=killed")
    while not list(directory.glob("killed/checkpoints/update-*")):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert Run("killed").result is None
    assert main(["resume", "killed"]) == 0
    assert main(["train", "--task", NAME, *options, "--out=whole"]) == 0
    killed, whole = Run("killed"), Run("whole")
    assert killed.result is not None
    assert whole.result is not None
    assert killed.result.final == whole.result.final
    assert killed.config["task"] == {"name": "parity", "class": NAME, "length": 4}
    capsys.readouterr()
    assert main(["eval", "killed"]) == 0
    assert "guessing" in capsys.readouterr().out
    assert main(["compare", "killed", "whole"]) == 0
    assert main(["analyse", "killed"]) == 0
    assert (directory / "out" / "memory" / "report.html").exists()
    assert "class" not in re.findall(r"parity, [^<]*", (directory / "out" / "memory" / "report.html").read_text())[0]
    _, config = load_run("killed")
    assert type(config.task).__name__ == "ParityTask"


def test_two_processes_find_the_module(directory: Path) -> None:
    assert command("train", NAME, *TINY, "--devices=2", "--out=run").wait() == 0
    assert Run("run").status == "finished"


def test_settings_from_files_and_their_task(directory: Path, capsys: Capture) -> None:
    assert main(["train", NAME, *TINY, "--out=run"]) == 0
    Path("own.yaml").write_text(yaml.safe_dump({"task": {"name": NAME, "length": 4}, "out": "again"}))
    assert main(["train", NAME, "--config=own.yaml", *TINY]) == 0
    assert main(["train", "--config=run/run.json", "--out=third"]) == 0
    assert Run("again").config["task"] == Run("third").config["task"] == Run("run").config["task"]
    assert "expected the task of own.yaml, parity, or none" in complaint(capsys, "train", "copy", "--config=own.yaml")
    assert main(["params", NAME]) == 0


def test_help_shows_its_options(capsys: Capture) -> None:
    assert main(["train", NAME, "--help"]) == 0
    assert "--length INT (default: 50)" in capsys.readouterr().out


def test_a_class_that_moved_is_found_where_one_says(directory: Path, capsys: Capture) -> None:
    assert main(["train", NAME, *TINY, "--out=run"]) == 0
    (directory / "parity.py").rename(directory / "moved.py")
    del sys.modules["parity"]
    for name in ("resume", "eval", "compare", "analyse"):
        told = complaint(capsys, name, "run")
        assert told.startswith(
            "expected a task that can be imported, got 'parity:ParityTask': No module named 'parity'"
        )
        assert main([name, "run", "--task", "moved:ParityTask"]) == 0
    for command_, option, told in (("export", "--int8", "--to c only"), ("predict", "--file=new.csv", "one on parity")):
        assert complaint(capsys, command_, "run", option).startswith("expected a task that can be imported")
        assert told in complaint(capsys, command_, "run", option, "--task", "moved:ParityTask")
    assert type(load_run("run", "moved:ParityTask")[1].task).__module__ == "moved"


REFUSED = {
    "nowhere:Task": "No module named 'nowhere'",
    "parity:Nothing": "has no attribute 'Nothing'",
    "parity:random": "expected a class derived from slimrnn.training.Task",
    "parity:Batch": "expected a class derived from slimrnn.training.Task",
    "parity:GeneratedTask": "expected a task that defines generate, input_size",
    "parity:": "expected a task as module:name",
    ":Task": "expected a task as module:name",
    "broken:Task": "NameError: name 'undefined' is not defined",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_task_is_refused_in_one_line(name: str, directory: Path, capsys: Capture) -> None:
    (directory / "broken.py").write_text("undefined")
    told = complaint(capsys, "train", name)
    assert REFUSED[name] in told
    assert repr(name) in told


def test_a_run_without_a_class_that_is_a_text_is_refused(directory: Path, capsys: Capture) -> None:
    assert main(["train", NAME, *TINY, "--out=run"]) == 0
    record = json.loads(Path("run/run.json").read_text())
    record["config"]["task"]["class"] = 3
    Path("run/run.json").write_text(json.dumps(record))
    assert complaint(capsys, "eval", "run") == "expected task.class to be a text such as module:Class, got 3"


OWN_CLASSES = """
from dataclasses import dataclass

from slimrnn.tasks import ClassifyTask

@dataclass(frozen=True)
class GesturesTask(ClassifyTask):
    name = "gestures"
"""


def test_a_class_on_top_of_classify_predicts(directory: Path) -> None:
    (directory / "moved.py").write_text(OWN_CLASSES)
    rows = [f"{i},{t},{(2 * (i % 2) - 1) * t},{'ab'[i % 2]}" for i in range(20) for t in range(5)]
    Path("data.csv").write_text("\n".join(["id,t,x,label", *rows]))
    options = ["--updates=20", "--model.hidden=4", "--no-tensorboard", "--out=run"]
    assert main(["train", "--task", "moved:GesturesTask", "--file=data.csv", *options]) == 0
    assert Run("run").config["task"]["class"] == "moved:GesturesTask"
    (directory / "moved.py").rename(directory / "parity.py")
    del sys.modules["moved"]
    new = ["--file=data.csv", "--out=new.csv", "--task", "parity:GesturesTask"]
    assert main(["predict", "run", *new]) == 0
    assert Path("new.csv").read_text().startswith("id,predicted,p(a),p(b)\n0,")


SCRIPT = """
from pathlib import Path

from parity import ParityTask
from slimrnn.tasks import config_from_dict
from slimrnn.training import Config, ModelConfig, Run, train

print("imported")

class OwnTask(ParityTask):
    name = "own"

if __name__ == "__main__":
    sizes = dict(updates=2, batch_size=2, valid_size=2, test_size=2, tensorboard=False)
    train(Config(OwnTask(4), ModelConfig("gru", 4), **sizes, out=Path("run")), quiet=True)
    config = config_from_dict(Run("run").config)
    assert type(config.task) is OwnTask
"""


def test_a_run_of_a_script_is_found_by_the_commands(directory: Path, capsys: Capture) -> None:
    (directory / "moved.py").write_text(SCRIPT)
    done = subprocess.run([sys.executable, "moved.py"], check=True, capture_output=True, text=True)
    assert done.stdout.count("imported") == 1
    assert Run("run").config["task"]["class"] == "moved:OwnTask"
    assert main(["eval", "run"]) == 0
    assert type(config_from_dict(Run("run").config).task).__name__ == "OwnTask"


def test_an_unknown_task_points_to_what_reads_ones_own_data(capsys: Capture) -> None:
    told = complaint(capsys, "train", "csv")
    assert "ptb-chars --file" in told
    assert "recommend --file" in told
    assert "module:Class" in told
    assert complaint(capsys, "train", "coppy").endswith("got 'coppy'; did you mean 'copy'?")
