"""`slimrnn new-task`: what it writes works as it is."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_runs import TINY, complaint

from slimrnn.cli import main
from slimrnn.training import Run

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry not in ("", ".")])
    yield tmp_path
    sys.modules.pop("bird_calls", None)


def test_the_skeleton_trains_as_it_is(directory: Path, capsys: Capture) -> None:
    assert main(["new-task", "bird-calls"]) == 0
    assert "slimrnn train bird_calls:BirdCallsTask" in capsys.readouterr().out
    text = (directory / "bird_calls.py").read_text()
    assert "skeleton" not in text.lower()
    options = ["--updates=60", "--model.hidden=8", "--no-tensorboard", "--out=run"]
    assert main(["train", "bird_calls:BirdCallsTask", *options]) == 0
    result = Run("run").result
    assert result is not None
    assert result.score("test", "accuracy") > 0.6
    assert Run("run").config["task"] == {"name": "bird-calls", "class": "bird_calls:BirdCallsTask", "length": 20}
    assert main(["eval", "run"]) == 0
    assert "guessing" in capsys.readouterr().out
    assert main(["train", "--task", "bird_calls:BirdCallsTask", *TINY, "--length=5", "--out=short"]) == 0


def test_it_is_clean(directory: Path) -> None:
    assert main(["new-task", "bird_calls"]) == 0
    subprocess.run([sys.executable, "-m", "ruff", "check", "--quiet", "bird_calls.py"], check=True)
    compile((directory / "bird_calls.py").read_text(), "bird_calls.py", "exec")  # types: those of the skeleton


REFUSED = {
    "2nd": "expected letters, digits and - as a name, such as bird-calls, got '2nd'",
    "a b": "got 'a b'",
    "class": "got 'class'",
    "../up": "got '../up'",
    "json": "expected a name that no installed module has, got 'json'",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_name_is_refused(name: str, directory: Path, capsys: Capture) -> None:
    assert REFUSED[name] in complaint(capsys, "new-task", name)
    assert not list(directory.iterdir())


def test_nothing_is_overwritten(directory: Path, capsys: Capture) -> None:
    (directory / "bird_calls.py").write_text("mine")
    assert "bird_calls.py exists" in complaint(capsys, "new-task", "bird-calls")
    assert (directory / "bird_calls.py").read_text() == "mine"
