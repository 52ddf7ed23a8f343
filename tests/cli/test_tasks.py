"""`slimrnn tasks`."""

from __future__ import annotations

import subprocess
import sys

import pytest

from slimrnn.cli import main
from slimrnn.tasks import TASKS


def test_every_task_has_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tasks"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(TASKS)
    assert all(len(line.split()) > 2 for line in lines)


def test_lightning_is_not_imported_to_show_what_there_is() -> None:
    script = """
import sys
from slimrnn.cli import main
for arguments in (["tasks"], ["train", "copy", "--help"], ["reproduce", "--list"]):
    assert main(arguments) == 0
sys.exit("lightning" in sys.modules)
"""
    subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.DEVNULL)
