"""docs/command-line.md describes every command, and its examples are commands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from slimrnn.cli import COMMANDS, main

PAGE = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text()


def test_every_command_has_a_section() -> None:
    assert set(re.findall(r"^## `slimrnn ([a-z-]+)", PAGE, re.MULTILINE)) == set(COMMANDS)


def test_examples_use_commands_that_exist() -> None:
    examples = re.findall(r"^\$ slimrnn (.*)$", PAGE, re.MULTILINE)
    assert {shlex.split(example)[0] for example in examples} - {"--help"} == set(COMMANDS)


def test_the_page_shows_the_overview(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--help"])
    assert f"$ slimrnn --help\n{capsys.readouterr().out}```" in PAGE
