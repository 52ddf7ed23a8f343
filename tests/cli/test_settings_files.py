"""Files of settings that are anything but: one line, with a place and a value, and no work."""

from __future__ import annotations

from pathlib import Path

import pytest

from slimrnn.cli import main
from slimrnn.cli.settings import load
from slimrnn.errors import ConfigError, UsageError

TASK = "task: {name: copy, length: 10}\n"
ALIASES = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 30)
)
MERGES = "a0: &a0 {x: 1, y: 2}\n" + "".join(
    f"a{i}: &a{i}\n  <<: [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 30)
)
BAD = {
    "an impossible date": (
        TASK + "seed: 2026-13-45\n",
        "got .*, line 2, column 7: expected a value of type 'timestamp'",
    ),
    "no int": (TASK + "seed: !!int abc\n", "line 2, column 7: expected a value of type 'int', got 'abc'"),
    "an empty int": (TASK + "seed: !!int ''\n", "line 2, column 7: expected a value of type 'int', got ''"),
    "no float": (TASK + "seed: !!float abc\n", "line 2, column 7: expected a value of type 'float', got 'abc'"),
    "no bool": (TASK + "seed: !!bool abc\n", "line 2, column 7: expected a value of type 'bool', got 'abc'"),
    "5,000 digits": (TASK + f"seed: {'9' * 5000}\n", "line 2, column 7: expected a value of type 'int', got '9{59}…$"),
    "400 digits for a float": (
        TASK + f"stop_at: {'9' * 400}\n",
        "expected stop_at to be a number, got a number of .* bits",
    ),
    "deep nesting": (TASK + "seed: " + "[" * 100_000, "got .*, whose values are nested too deeply"),
    "a list": ("[1, 2]", r"to hold names and values, got \[1, 2\]"),
    "an alias bomb": (ALIASES + "task: *a29\n", r"expected task to be a dict with the name of a task .*, got \[{8,}"),
    "an alias bomb for a number": (ALIASES.replace("a29:", "seed:") + TASK, r"expected an option .*, got 'a0'"),
    "a bomb of merges": (MERGES + TASK, "line .*: expected at most 10,000 pairs of names and values, got more"),
    "an alias of itself": ("task: &a [*a]\n", r"expected task to be a dict with the name of a task .*, got \["),
    "a name that is a list": ("? [1, 2]\n: 3\n", "line 1, column 3: found unhashable key"),
    "two documents": (TASK + "---\n" + TASK, "line 2, column 1: but found another document"),
    "an object of Python": (
        "task: !!python/object/apply:os.getcwd []\n",
        "line 1, column 7: could not determine a const",
    ),
    "a NUL for a directory": (TASK + 'out: "a\\0b"\n', "expected out to be a text .*, got 'a.x00b'"),
    "half a character": (TASK + 'out: "\\ud800"\n', "expected out to be a text that a file's name can be, got"),
    "no text": (TASK + "seed: \x01\n", "not a text from byte"),
    "too much": ("#" * 2**20 + "\n" + TASK, "expected a file of settings of at most 1,048,576 bytes, got"),
}


@pytest.mark.parametrize(("content", "message"), BAD.values(), ids=BAD)
def test_what_is_no_settings_is_refused_in_a_line(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text(content, encoding="utf-8")
    with pytest.raises((UsageError, ConfigError), match=message) as error:
        load(path)
    assert len(str(error.value)) < 600


def test_the_command_says_so_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text(ALIASES + "task: *a29\n")
    assert main(["train", "--config", str(path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_aliases_and_merges_of_a_sensible_size_are_read(tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text("task: &t {name: copy, length: 10}\nmodel: {<<: {hidden: 7}, cell: gru}\nseed: &n 3\nupdates: *n\n")
    config = load(path)
    assert (config.model.hidden, config.model.cell, config.updates) == (7, "gru", 3)


@pytest.mark.parametrize("number", ["1000000000000", "9" * 5000])
def test_lengths_beyond_all_measure_are_refused(number: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "copy", "--length", number]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("slimrnn: expected")
    assert said.err.count("\n") == 1
    assert len(said.err) < 400
