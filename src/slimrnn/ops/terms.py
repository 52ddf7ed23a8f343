"""A native scan without its numbers: the cell, the terms of its recurrent map, and how they take turns."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from torch import Tensor


class Term(NamedTuple):
    """One term of a recurrent map: the native structure that computes it (csrc/structures), and its tensors."""

    structure: str
    tensors: tuple[Tensor, ...]


class Plan(NamedTuple):
    """Everything about a scan that is not a tensor. Travels through the registered operator as text."""

    cell: str
    complex: bool
    terms: tuple[tuple[str, int], ...]  # structure and number of tensors; those of the first phase, of the second, ...
    phases: int = 1  # maps and cells that take turns, step by step
    leaky: bool = False

    def encode(self) -> str:
        numbers = (int(self.complex), self.phases, int(self.leaky))
        return " ".join([self.cell, *map(str, numbers), *(f"{name}:{count}" for name, count in self.terms)])

    @staticmethod
    @cache
    def decode(text: str) -> Plan:
        cell, pairs, phases, leaky, *terms = text.split(" ")
        counted = tuple((name, int(count)) for name, _, count in (term.partition(":") for term in terms))
        return Plan(cell, pairs == "1", counted, int(phases), leaky == "1")


class Program(NamedTuple):
    """A plan and the parameters that it runs with."""

    plan: Plan
    weights: list[Tensor]  # of the terms, one after the other; complex where the state is
    own: Tensor | None  # (phases, rows, H): parameters that act within the step, the leak in the last row


def program(cell: str, complex: bool, terms: Iterable[Term], phases: int, own: Tensor | None, leaky: bool) -> Program:
    terms = list(terms)
    counted = tuple((term.structure, len(term.tensors)) for term in terms)
    return Program(Plan(cell, complex, counted, phases, leaky), [t for term in terms for t in term.tensors], own)
