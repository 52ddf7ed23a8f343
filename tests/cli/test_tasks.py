"""`slimrnn tasks`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from slimrnn.cli import main
from slimrnn.tasks import TASKS


def test_every_task_has_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tasks"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(TASKS)
    assert all(len(line.split()) > 2 for line in lines)


def test_lightning_is_not_imported_to_show_what_there_is_or_to_train(tmp_path: Path) -> None:
    script = """
import sys
from slimrnn.cli import main
small = ["--updates", "1", "--valid-size", "2", "--test-size", "2", "--out", sys.argv[1]]
train = ["train", "adding", "--length", "4", *small]
for arguments in (["tasks"], ["train", "copy", "--help"], ["reproduce", "--list"], train):
    assert main(arguments) == 0
sys.exit("lightning" in sys.modules)
"""
    subprocess.run([sys.executable, "-c", script, tmp_path / "run"], check=True, stdout=subprocess.DEVNULL)
