"""Texts that come from files: the numbers in them, and how messages show them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence

DIGITS = 18  # of the largest numbers that fit into 64 bits whatever their digits are

_WHOLE = re.compile(r"[0-9]+")
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?inf|nan")


def whole_number(text: str, digits: int = DIGITS) -> int | None:
    """The number that a text is, all of it, in at most so many ASCII digits; None for every other text.

    `str.isdigit` takes "²" for a digit, which `int` does not; and `int` has an error of its own for 5,000 digits."""
    return int(text) if len(text) <= digits and _WHOLE.fullmatch(text) else None


def decimal(text: str) -> float | None:
    """The number that a text is in ASCII, as Python writes it: 12, -0.5, 1e-09, inf or nan; None for every other text.

    `float` alone also takes "1_0", spaces around a number, and the digits of all scripts."""
    return float(text) if _DECIMAL.fullmatch(text) else None


def shown(value: object, most: int = 60) -> str:
    """A text or a value as a message shows it: in quotes where it is a text, and never long.

    Only so much of a value is looked at as is shown: aliases of YAML can make a small file a value without end."""
    text = _shown(value, most)
    return text if len(text) <= most else f"{text[:most]}…"


def listed(names: Iterable[str], most: int = 200) -> str:
    """Names as a message lists them, with a comma between them."""
    text = ", ".join(name[:most] for name in itertools.islice(names, most))
    return text if len(text) <= most else f"{text[:most]}…"


def _shown(value: object, most: int) -> str:
    """At least the first `most` characters of repr, in a time that depends on these alone."""
    if isinstance(value, str | bytes):
        return repr(value[:most]) if len(value) <= most else repr(value[:most])[:-1]
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 4 * most:
        return f"a number of {value.bit_length():,} bits"
    brackets = _BRACKETS.get(type(value))
    if brackets is None or most <= 0:
        return repr(value) if brackets is None else "…"
    text = brackets[0]
    items = value.items() if isinstance(value, dict) else ((item, None) for item in value)  # type: ignore[attr-defined]
    for item, inner in items:
        if len(text) > most:
            break
        text += ", " * (len(text) > 1) + _shown(item, most - len(text))
        if isinstance(value, dict):
            text += ": " + _shown(inner, most - len(text))
    return text + brackets[1]


_BRACKETS: dict[type, str] = {dict: "{}", list: "[]", tuple: "()", set: "{}"}


def number(value: float | None) -> str:
    """A score with four significant digits."""
    return "" if value is None else f"{value:.4g}"


def table(rows: Sequence[Sequence[str]]) -> str:
    """Columns of text, the first aligned left and the others right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join([row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))])
        for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)
