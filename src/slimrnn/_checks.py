"""Messages for bad arguments, always of the form "expected ..., got ..."."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Sequence
from numbers import Integral, Real

import torch


def check_count(name: str, value: object) -> None:
    """`value` must be a positive int."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise TypeError(f"expected {name} to be an int, got {value!r}")
    if value < 1:
        raise ValueError(f"expected {name} to be at least 1, got {value}")


def check_number(name: str, value: object) -> None:
    """`value` must be a finite real number."""
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"expected {name} to be a number, got {value!r}")
    if not math.isfinite(value):
        raise ValueError(f"expected {name} to be finite, got {value}")


def check_probability(name: str, value: float) -> None:
    """`value` must lie in [0, 1]."""
    check_number(name, value)
    if not 0 <= float(value) <= 1:
        raise ValueError(f"expected {name} in [0, 1], got {value}")


def check_real_dtype(dtype: object) -> None:
    """`dtype` must be a real floating type."""
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise TypeError(f"expected a real floating dtype (a complex state follows from it), got {dtype!r}")


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """`value` must be one of `choices`."""
    if value not in choices:
        raise ValueError(f"expected {name} to be one of {', '.join(map(repr, choices))}, got {value!r}")


def suggestion(name: object, names: Iterable[str]) -> str:
    """ "; did you mean 'copy'?" where a name is close to what was given."""
    close = difflib.get_close_matches(name, list(names), n=1) if isinstance(name, str) else []
    return f"; did you mean {close[0]!r}?" if close else ""
