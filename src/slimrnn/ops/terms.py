"""A native scan without its numbers: the cell, the terms of its recurrent map, and how they take turns."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple

from torch import Tensor

from slimrnn.ops.programs import NativeCell, decoded


class Term(NamedTuple):
    """One term of a recurrent map: the native structure that computes it (csrc/structures), and its tensors."""

    structure: str  # the name; after a slash there may be more, which is not for the core but for exporters
    tensors: tuple[Tensor, ...]


def kind_of(structure: str) -> str:
    """The name that the core knows."""
    return structure.partition("/")[0]


class Plan(NamedTuple):
    """Everything about a scan that is not a tensor. Travels through the registered operator as text."""

    cell: NativeCell
    complex: bool
    terms: tuple[tuple[str, int], ...]  # structure and number of tensors; those of the first phase, of the second, ...
    phases: int = 1  # maps and cells that take turns, step by step
    int8: bool = False  # matrices in int8, which the registered operator does not take

    def encode(self) -> str:
        numbers = (int(self.complex), self.phases)
        return " ".join([self.cell.text, *map(str, numbers), *(f"{name}:{count}" for name, count in self.terms)])

    @staticmethod
    @cache
    def decode(text: str) -> Plan:
        cell, pairs, phases, *terms = text.split(" ")
        counted = tuple((name, int(count)) for name, _, count in (term.partition(":") for term in terms))
        return Plan(decoded(cell), pairs == "1", counted, int(phases))


class Program(NamedTuple):
    """A plan and the parameters that it runs with."""

    plan: Plan
    weights: list[Tensor]  # of the terms, one after the other; complex where the state is
    own: Tensor | None  # (phases, rows, H): what the step reads of the cell's parameters
    step: Any = None  # what the cell was made from, a trace, for derivatives that the core does not have


def program(
    cell: NativeCell, complex: bool, terms: Iterable[Term], phases: int, own: Tensor | None, step: Any = None
) -> Program:
    terms = list(terms)
    counted = tuple((term.structure, len(term.tensors)) for term in terms)
    return Program(Plan(cell, complex, counted, phases), [t for term in terms for t in term.tensors], own, step)
