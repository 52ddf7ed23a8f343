"""Runs that take no time."""

from __future__ import annotations

from pathlib import Path

import pytest

from slimrnn.cli import main

TINY = [
    "--length=4",
    "--model.cell=gru",
    "--model.hidden=4",
    "--updates=6",
    "--eval-every=2",
    "--checkpoint-every=2",
    "--batch-size=4",
    "--valid-size=8",
    "--test-size=8",
    "--threads=1",
    "--no-tensorboard",
]


def trained(directory: Path, *options: str) -> Path:
    """A finished run of the copy problem."""
    assert main(["train", "copy", *TINY, "--out", str(directory), *options]) == 0
    return directory


def complaint(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What a refused command says: one line, and nothing on standard output."""
    capsys.readouterr()
    assert main(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("slimrnn: ")
    assert said.err.count("\n") == 1
    return said.err.removeprefix("slimrnn: ").rstrip()
