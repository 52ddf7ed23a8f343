"""Checks of the constants of cells."""

from __future__ import annotations

from slimrnn._checks import check_number


def check_positive(name: str, value: float) -> None:
    """`value` must be a finite number above zero."""
    check_number(name, value)
    if value <= 0:
        raise ValueError(f"expected {name} to be positive, got {value}")


def check_not_negative(name: str, value: float) -> None:
    """`value` must be a finite number of at least zero."""
    check_number(name, value)
    if value < 0:
        raise ValueError(f"expected {name} of at least 0, got {value}")
