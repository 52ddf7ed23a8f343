"""Numbers, names and comments as C."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from slimrnn._texts import shown
from slimrnn.errors import ExportError

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
LONGEST = 24  # C99 tells 31 characters of a linker's name apart, and `_init` and the like come behind
WIDTH = 116


def prefix_of(stem: str, given: str | None) -> str:
    """What all names of a file begin with: as given, or its own name with _ for - and ."""
    name = stem.replace("-", "_").replace(".", "_") if given is None else given
    if not isinstance(name, str) or not NAME.fullmatch(name) or len(name) > LONGEST:
        wanted = f"prefix= to be a name in C of at most {LONGEST} letters, digits and _"
        raise ExportError(f"expected {wanted}, got {shown(name)}")
    return name


def check_file_name(name: str) -> None:
    """It stands in an #include."""
    if not FILE.fullmatch(name):
        raise ExportError(f"expected a file name of letters, digits, _, -, + and . for C, got {shown(name)}")


def comment(text: str) -> str:
    """Words that cannot end a comment, whoever chose them."""
    plain = re.sub(r"[^A-Za-z0-9 ,.:;()\[\]{}=+@<>'|_-]", "?", text).replace("??", "?")
    return f"/* {plain} */"


def real(value: float) -> str:
    """A float32, every bit of it."""
    if not math.isfinite(value):
        raise ExportError(f"expected finite numbers, got {value}")
    return "0.0f" if value == 0 else f"{_short(float(value).hex())}f"


def _short(text: str) -> str:
    """0x1.8000000000000p+1 -> 0x1.8p+1"""
    digits, exponent = text.split("p")
    return f"{digits.rstrip('0').rstrip('.') if '.' in digits else digits}p{exponent}"


def rows(numbers: Iterable[str]) -> str:
    """Between braces, in lines of bounded width."""
    lines, line = [], ""
    for number in numbers:
        if len(line) + len(number) + 2 > WIDTH:
            lines.append(line)
            line = ""
        line += f"{', ' if line else ''}{number}"
    return ",\n    ".join([*lines, line])
