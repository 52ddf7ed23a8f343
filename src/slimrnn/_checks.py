"""Messages for bad arguments, always of the form "expected ..., got ..."."""

from __future__ import annotations

from collections.abc import Sequence


def check_count(name: str, value: object) -> None:
    """`value` must be a positive int."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"expected {name} to be an int, got {value!r}")
    if value < 1:
        raise ValueError(f"expected {name} to be at least 1, got {value}")


def check_probability(name: str, value: object) -> None:
    """`value` must lie in [0, 1]."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"expected {name} to be a number, got {value!r}")
    if not 0 <= value <= 1:
        raise ValueError(f"expected {name} in [0, 1], got {value}")


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """`value` must be one of `choices`."""
    if value not in choices:
        raise ValueError(f"expected {name} to be one of {', '.join(map(repr, choices))}, got {value!r}")
