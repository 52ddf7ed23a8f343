"""`slimrnn` itself: help, exit codes and errors of one line."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from cli_runs import complaint

import slimrnn
from slimrnn.cli import COMMANDS, main

Capture = pytest.CaptureFixture[str]


def test_help_lists_every_command(capsys: Capture) -> None:
    assert main([]) == main(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for name, summary in COMMANDS.items():
        assert sum(line.split() == [name, *summary.split()] for line in lines) == 2


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_help(command: str, capsys: Capture) -> None:
    assert main([command, "--help"]) == 0
    assert f"usage: slimrnn {command}" in capsys.readouterr().out


def test_errors_are_one_line_on_every_kind_of_terminal(capsys: Capture) -> None:
    """tyro draws boxes, of other characters where there is no UTF-8, as here."""
    arguments = ["params", "copy", "--lenght", "3"]
    command, setting = [sys.executable, "-m", "slimrnn", *arguments], {"PYTHONIOENCODING": "utf-8"}
    said = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | setting).stderr
    assert said == f"slimrnn: {complaint(capsys, *arguments)}\n"
    assert said.endswith("got --lenght; did you mean --length?\n")


def test_mistyped_command_gets_a_suggestion(capsys: Capture) -> None:
    assert complaint(capsys, "docter").endswith("got 'docter'; did you mean 'doctor'?")


def test_version(capsys: Capture) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == slimrnn.__version__


def test_debug_shows_where_an_error_came_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLIMRNN_DEBUG", "1")
    with pytest.raises(Exception, match="did you mean 'doctor'"):
        main(["docter"])


WITHOUT_EXTRA = """
import sys
for name in ("lightning", "tyro", "safetensors", "yaml"):
    sys.modules[name] = None
from slimrnn.cli import main
assert main(["doctor"]) == 0
sys.exit(main(["train", "copy"]))
"""


def test_missing_extra_is_named_in_one_line_and_doctor_works_without_it() -> None:
    said = subprocess.run([sys.executable, "-c", WITHOUT_EXTRA], capture_output=True, text=True, check=False)
    assert said.returncode == 2
    assert said.stderr == 'slimrnn: expected the package tyro, got none: pip install "slimrnn[train]"\n'
    assert said.stdout.startswith("slimrnn ")
