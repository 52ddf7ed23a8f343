"""A result of a paper: the settings that should give it, and what decides whether they did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from slimrnn.training.config import Config

FURNN_RATE = 1e-3
"""A full unitary matrix turns the state of all T steps at once, so its rate is this share of the others': 1e-6 for 1e-3
in the published settings of Wisdom et al. 2016 for MNIST."""


@dataclass(frozen=True)
class PaperRow:
    """One line of a paper's results.

    A run of `config` passes if its score on `split` is on the right side of `bound`; where the paper only ranks two
    nets, of the score that a run of the row `compared_with` reaches; where it ranks their speeds, if the run is ahead
    or behind in the `race` of the two for the bound. A row with none of these is there to be compared with.
    """

    name: str
    paper: str  #: which, and where in it: "KRU §4.1"
    claim: str  #: what it reports, in a line
    config: Config
    score: str = "loss"
    split: str = "test"
    bound: float | None = None
    direction: Literal["at most", "at least"] = "at most"  #: where to be
    compared_with: str | None = None
    race: Literal["ahead", "behind", "second"] | None = (
        None  #: which place; "behind" may never be there, "second" has to
    )
    by: int | None = None  #: the update at which the bound has to be met at the latest
    curve: tuple[tuple[int, float], ...] = ()  #: (updates, score) from the authors' log
    note: str = ""  #: where our settings depart from the paper's, and why

    def __post_init__(self) -> None:
        if (self.bound is not None and self.compared_with is not None) != (self.race is not None):
            raise ValueError(f"expected row {self.name} to have a bound or another row, and both only in a race")

    @property
    def within(self) -> int:
        """Updates that the net may take."""
        return self.config.updates

    @property
    def criterion(self) -> str:
        """What has to hold, in words; empty for a row that is only compared with."""
        side = "≤" if self.direction == "at most" else "≥"
        if self.bound is not None:
            order = {"ahead": "before", "behind": "not before", "second": "after"}
            when = (
                f" {order[self.race]} {self.compared_with}"
                if self.race
                else f" by update {self.by:,}"
                if self.by
                else ""
            )
            return f"{self.split} {self.score} {side} {self.bound:g}{when}"
        if self.compared_with is not None:
            return f"{self.split} {self.score} {side} that of {self.compared_with}"
        return ""

    def passes(self, value: float, other: float | None = None) -> bool:
        """Whether a run that scored `value` reproduces the row; `other` is the score of the row `compared_with`."""
        limit = other if self.bound is None else self.bound
        if limit is None:
            raise ValueError(f"expected a bound, or the score of another row, to judge {self.name} by")
        return value <= limit if self.direction == "at most" else value >= limit
