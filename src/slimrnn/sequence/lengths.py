"""Three ways to decide where a sequence ends (lecture, "Drawing samples from an RNN model").

A sequence may have no element at all: each rule gives that a probability too.
"""

from __future__ import annotations

from dataclasses import dataclass

from slimrnn._checks import check_count


@dataclass(frozen=True)
class EndSymbol:
    """One more symbol, which says that the sequence is over: for symbols only."""


@dataclass(frozen=True)
class Halt:
    """A Bernoulli output before each element: halt, or go on with another one."""


@dataclass(frozen=True)
class PredictedLength:
    """The length τ is drawn first, from the context: P(τ) P(y₁ … y_τ | τ). The decoder reads how many elements are
    left, τ − t, at every step."""

    max_length: int
    """largest length that there is a probability for"""

    def __post_init__(self) -> None:
        check_count("max_length", self.max_length)


LengthRule = EndSymbol | Halt | PredictedLength


def length_rule(length: LengthRule | None, of_symbols: bool) -> LengthRule:
    """The rule that was asked for, or the usual one."""
    if length is None:
        return EndSymbol() if of_symbols else Halt()
    if not isinstance(length, LengthRule):
        raise TypeError(f"expected length to be EndSymbol(), Halt() or PredictedLength(max_length), got {length!r}")
    if isinstance(length, EndSymbol) and not of_symbols:
        raise ValueError(
            "expected Halt() or PredictedLength() for real vectors, which have no symbols, got EndSymbol()"
        )
    return length
