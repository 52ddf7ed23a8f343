"""One result of a paper: the settings that should reproduce it, and the criterion that decides whether they do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from slimrnn.training.config import Config


@dataclass(frozen=True)
class PaperRow:
    """One row of a paper's results. A run of `config` passes

    - if its score on `split` is on the right side of `bound`, and so is the `second` score where there is one,
    - if it beats the score of the row `compared_with`, where the paper only ranks two nets,
    - if it reaches the bound before or after that row, where the paper ranks their speeds (`race`).

    Where `also` names a row that trains the same net by another recipe, the better of the two decides, on both sides of
    a race. A row with none of these is only measured.
    """

    name: str
    paper: str  #: the paper and the place in it: "KRU §4.1"
    claim: str  #: what the paper reports, in one line
    config: Config
    score: str = "loss"
    split: str = "test"
    bound: float | None = None
    direction: Literal["at most", "at least"] = "at most"  #: side of the bound that passes
    second: tuple[str, float] | None = None  #: another score and its bound, which have to be met too
    compared_with: str | None = None
    race: Literal["ahead", "behind", "second"] | None = None
    """reach the bound first; after the other row, or never; after the other row, but reach it"""
    by: int | None = None  #: last update at which reaching the bound still counts
    also: str | None = None  #: row of the same net by another recipe
    curve: tuple[tuple[int, float], ...] = ()  #: (updates, score) from the authors' log
    note: str = ""  #: where our settings differ from the paper's, and why

    def __post_init__(self) -> None:
        if (self.bound is not None and self.compared_with is not None) != (self.race is not None):
            raise ValueError(f"expected row {self.name} to have a bound or another row, and both only in a race")

    @property
    def within(self) -> int:
        """Number of updates in a complete run."""
        return self.config.updates

    @property
    def criterion(self) -> str:
        """The condition to pass, as text; empty for a row that is only measured."""
        limit = f"that of {self.compared_with}" if self.bound is None else f"{self.bound:g}"
        if self.bound is None and self.compared_with is None:
            return ""
        deadline = f" by update {self.by:,}" if self.by else ""
        if self.race is not None:
            order = {"ahead": "before", "behind": "not before", "second": "after"}[self.race]
            deadline = f" {order} {self.compared_with}"
        side = "≤" if self.direction == "at most" else "≥"
        also = f" and {self.second[0]} {side} {self.second[1]:g}" if self.second else ""
        return f"{self.split} {self.score} {side} {limit}{also}{deadline}"

    def passes(self, value: float, other: float | None = None) -> bool:
        """Whether a run that scored `value` reproduces the row; `other` is the score of the row `compared_with`."""
        limit = other if self.bound is None else self.bound
        if limit is None:
            raise ValueError(f"expected a bound, or the score of another row, to judge {self.name} by")
        return self._meets(value, limit)

    def passes_second(self, scores: Mapping[str, float]) -> bool:
        """Whether the scores of a run meet the second bound, if there is one. A run from before there was such a score
        does not."""
        return self.second is None or (self.second[0] in scores and self._meets(scores[self.second[0]], self.second[1]))

    def _meets(self, value: float, limit: float) -> bool:
        return value <= limit if self.direction == "at most" else value >= limit


def by_our_recipe(row: PaperRow, config: Config, note: str, suffix: str = "ours") -> PaperRow:
    """The net of a row with settings of ours; the verdict is that of the row."""
    claim = f"our recipe: see {row.name}"
    return replace(
        row,
        name=f"{row.name}-{suffix}",
        paper="ours",
        claim=claim,
        config=config,
        bound=None,
        compared_with=None,
        race=None,
        also=None,
        curve=(),
        note=note,
    )


def accuracy_row(name: str, paper: str, percent: float, config: Config, note: str = "") -> PaperRow:
    """A row whose bound is the paper's test accuracy."""
    claim, bound = f"test accuracy {percent} %", round(percent / 100, 6)
    return PaperRow(name, paper, claim, config, score="accuracy", bound=bound, direction="at least", note=note)
