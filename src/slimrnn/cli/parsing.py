"""tyro, with errors of one line."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Sequence
from typing import TypeVar

import tyro

from slimrnn.errors import UsageError

Form = TypeVar("Form")

# tyro's words and ours; what is not listed here passes through as it is.
REWORDED = (
    (
        r"invalid choice '(.*)' for argument '(.*)'\. Expected one of \((.*)\)\.",
        r"expected \2 to be one of \3, got '\1'",
    ),
    (r"Missing value for argument '(.*?)'.*", r"expected a value after \1, got none"),
    (r"Error parsing (\S+): invalid literal for int\(\).*: (.*)", r"expected \1 to be an integer, got \2"),
    (
        r"Error parsing (\S+): Exceeds the limit .* value has (\d+) digits.*",
        r"expected \1 to be an integer, got \2 digits",
    ),
    (r"Error parsing (\S+): could not convert string to float: (.*)", r"expected \1 to be a number, got \2"),
    (r"Error parsing (\S+): no type matching FLOAT\|.* from \[(.*?)\]\. .*", r"expected \1 to be numbers, got \2"),
    (r"Error parsing \S*: (expected .*)", r"\1"),
    (r"Missing from (.*?): (\S+) (.*) \(required\)", r"expected \2, the \3, after \1, got none"),
)


def parse(empty: Form, arguments: Sequence[str], prog: str, *, compact: bool = False) -> Form:
    """A dataclass whose values are the defaults, with what the command line changes.

    Where there are many options, a compact help leaves their descriptions to --help-verbose."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            return tyro.cli(
                type(empty),
                args=list(arguments),
                prog=prog,
                default=empty,
                compact_help=compact,
                config=(tyro.conf.DisallowNone, tyro.conf.PositionalMetavarFromFieldName),
            )
    except SystemExit as stop:
        if not stop.code:
            raise
        raise UsageError(_one_line(said.getvalue(), prog)) from None
    except ValueError as error:
        raise UsageError(str(error)) from error


def _one_line(box: str, prog: str) -> str:
    """The sense of a box of text: what is wrong and, for an option that does not exist, those that resemble it."""
    message, *others = _sections(box)
    text = " ".join(message)
    if text.startswith("Unrecognized options: "):
        tokens = text.removeprefix("Unrecognized options: ").split(", ")
        unknown = [token for token in tokens if token.startswith("--")] or tokens
        similar = dict.fromkeys(line.split()[0] for lines in others for line in lines if line.startswith("--"))
        hint = f"did you mean {' or '.join(similar)}?" if similar else f"{prog} --help shows them"
        return f"expected options of {prog}, got {' '.join(unknown)}; {hint}"
    for pattern, ours in REWORDED:
        if re.fullmatch(pattern, text):
            return re.sub(pattern, ours, text)
    return text


def _sections(box: str) -> list[list[str]]:
    """The lines between a box's rules, without its title. There are boxes of lines and, for other terminals, of -."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", box)
    lines = [line.strip(" │╰╯") for line in plain.splitlines()]
    sections: list[list[str]] = [[]]
    for line in lines:
        if line.startswith("╭") or (line and set(line) <= {"─", "-"}):
            sections.append([])
        elif line:
            sections[-1].append(line)
    return sections[1:] or sections
