"""docs/own-data.md: its example runs, its figures are drawn from our results, and its commands exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pages import DOCS, check_examples, check_figures
from slimrnn.cli import COMMANDS
from slimrnn.tasks import TASKS


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    check_examples("own-data.md", capsys)


def test_the_figures_are_those_of_the_results(tmp_path: Path) -> None:
    check_figures("own-data.md", "own_data.py", tmp_path)


def test_its_commands_exist() -> None:
    found = re.findall(r"slimrnn (\w+) +(\w+)", (DOCS / "own-data.md").read_text())
    commands = {(command, task) for command, task in found if command in COMMANDS}
    assert {task for command, task in commands if command == "train"} <= set(TASKS) | {"chooses"}
    assert "predict" in {command for command, _ in commands}
