"""What the columns of a user's file are for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from slimrnn._checks import check_choice

Layout = Literal["long", "wide"]
Labels = Literal["sequence", "step", "none"]


@dataclass(frozen=True)
class Roles:
    """Names of columns. A reader guesses what is None, and tells what it took in `Sequences.roles` and in its notes."""

    sequence: str | None = None  #: which sequence a row belongs to; a file without such a column is one sequence
    time: str | None = None  #: order of the steps; without it, rows are in order
    label: str | None = None  #: what to predict, text or number
    split: str | None = None  #: train, valid (validation) or test, one for each sequence
    columns: tuple[str, ...] | None = None  #: inputs; by default all other columns of numbers
    labels: Labels = "sequence"  #: one for each sequence, one for each step, or "none": no label is wanted
    numbers: bool = False  #: labels are numbers (regression), else texts
    layout: Layout | None = None  #: of tables: "long" has a row for each step, "wide" a row for each sequence

    def __post_init__(self) -> None:
        check_choice("labels", self.labels, ("sequence", "step", "none"))
        if self.layout is not None:
            check_choice("layout", self.layout, ("long", "wide"))
        if self.columns is not None and (isinstance(self.columns, str) or len(set(self.columns)) < len(self.columns)):
            raise ValueError(f"expected a tuple of different names as columns, got {self.columns!r}")
