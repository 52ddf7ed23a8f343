"""Numbers in lines of text, separated by commas."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from slimrnn._texts import decimal, shown
from slimrnn.data.own.missing import MISSING
from slimrnn.errors import DataError

LARGEST = float(np.finfo(np.float32).max)

_PLAIN = re.compile(r"[0-9+\-.eE,]*")  # what `float` reads in one way only


def numbers_in(text: str, place: str) -> NDArray[np.float64]:
    """All of a text; NaN where a value is missing. `place` is for messages: "line 7 of a.ts"."""
    fields = text.split(",")
    try:
        if not _PLAIN.fullmatch(text):
            raise ValueError
        numbers = np.array(fields, np.float64)
    except ValueError:
        numbers = np.array([_number(field.strip(" \t"), n, place) for n, field in enumerate(fields)], np.float64)
    too_large = np.abs(numbers) > LARGEST
    if too_large.any():
        wrong = int(too_large.argmax())
        expected = f"a finite number of at most {LARGEST:.3g}"
        raise DataError(f"expected {expected} as value {wrong + 1:,} in {place}, got {shown(fields[wrong])}")
    return numbers


def number_in(text: str, what: str, place: str) -> float:
    """One finite number, which is not missing."""
    number = decimal(text.strip(" \t"))
    if number is None or not np.isfinite(number):
        raise DataError(f"expected {what} in {place}, got {shown(text)}")
    return number


def _number(field: str, place_in_line: int, place: str) -> float:
    if field in MISSING:
        return float("nan")
    number = decimal(field)
    if number is None:
        raise DataError(f"expected a number as value {place_in_line + 1:,} in {place}, got {shown(field)}")
    return number
