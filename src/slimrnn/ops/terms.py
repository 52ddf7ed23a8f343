"""What a structure tells the native core: its terms, each a kind with a few tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from torch import Tensor

BLOCK, DIAGONAL, LOW_RANK, KRONECKER, UNITARY_PRODUCT = range(5)  # slimrnn_kind


@dataclass(frozen=True)
class TermPlan:
    """One term without its tensors; the fields of slimrnn_term."""

    kind: int
    count: int = 1
    shared: bool = False
    sizes: tuple[int, ...] = ()
    tensors: int = 1

    def encode(self) -> str:
        return ",".join(map(str, [self.kind, self.count, int(self.shared), self.tensors, *self.sizes]))

    @staticmethod
    def decode(text: str) -> TermPlan:
        kind, count, shared, tensors, *sizes = map(int, text.split(","))
        return TermPlan(kind, count, bool(shared), tuple(sizes), tensors)


class NativeTerm(NamedTuple):
    """One term of a recurrent map, as the native core takes it."""

    plan: TermPlan
    tensors: tuple[Tensor, ...]


def fits(terms: int, phases: int) -> bool:
    """Whether the native core has room for so many terms, shared out to so many phases (kernels.cpp, pack)."""
    return terms <= 64 and phases <= 16 and terms <= 16 * phases


class Program(NamedTuple):
    """What the native core does at every step: a cell, or several in turn ("phases"), and their maps."""

    cell: str
    own: Tensor | None  # (phases, rows, H): parameters that act within the step, the leak in the last row
    terms: list[NativeTerm]  # those of the first phase, those of the second, ...
    phases: int = 1
    leaky: bool = False


@dataclass(frozen=True)
class Plan:
    """Everything about a scan that is not a tensor. Travels through the registered op as text."""

    cell: str
    complex: bool
    terms: tuple[TermPlan, ...]
    phases: int = 1
    leaky: bool = False

    def encode(self) -> str:
        numbers = (int(self.complex), self.phases, int(self.leaky))
        return " ".join([self.cell, *map(str, numbers), *(term.encode() for term in self.terms)])

    @staticmethod
    @cache
    def decode(text: str) -> Plan:
        cell, pairs, phases, leaky, *terms = text.split(" ")
        return Plan(cell, pairs == "1", tuple(map(TermPlan.decode, terms)), int(phases), leaky == "1")

    def split(self, weights: Sequence[Tensor]) -> list[NativeTerm]:
        """The terms with their tensors again."""
        found, start = [], 0
        for term in self.terms:
            found.append(NativeTerm(term, tuple(weights[start : start + term.tensors])))
            start += term.tensors
        return found
