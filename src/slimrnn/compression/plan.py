"""What a model can be compressed to: everything that does not depend on the budget is done once."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import nn

from slimrnn.compression.allocation import allocate
from slimrnn.compression.budget import IN_WORDS, Budget, Unit
from slimrnn.compression.candidates import Candidate, Matrix, matrices_of
from slimrnn.compression.families import Structures, check_structures
from slimrnn.compression.losses import Loss
from slimrnn.compression.second_moments import Moments, second_moments
from slimrnn.compression.sites import find_sites, recurrent_stacks
from slimrnn.compression.weighting import DAMPED
from slimrnn.structures import Structure


@dataclass(frozen=True, eq=False)
class Plan:
    """The matrices of a model and what can be chosen for each; a budget makes the choice."""

    model: nn.Module  #: with our layers, uncompressed
    matrices: list[Matrix]
    left: dict[str, str]  #: why others are left alone
    keep: Sequence[str] | str | None
    moments: dict[str, Moments] | None = None  #: None: errors are in the Frobenius norm

    @classmethod
    def of(
        cls,
        model: nn.Module,
        structures: Structures | str | Structure | None = None,
        keep: Sequence[str] | str | None = None,
    ) -> Plan:
        """The candidates of a model, of which only the costs are known."""
        sites, left = find_sites(model, keep)
        return cls(model, matrices_of(sites, check_structures(structures), structures is not None), left, keep)

    def measured(self, data: Iterable[Any] | None = None, objective: Loss | None = None) -> Plan:
        """With the errors of all candidates, weighted by the gradients of `objective(model, batch)` on the data, or in
        the Frobenius norm."""
        if data is None or objective is None:
            return replace(self, matrices=[matrix.measured(None) for matrix in self.matrices])
        moments = second_moments(self.model, data, objective, self.keep)
        return replace(self, moments=moments).damped()

    def damped(self, damping: float = DAMPED) -> Plan:
        """With errors for another damping of G, as a share of its mean eigenvalue."""
        assert self.moments is not None  # there is nothing to damp without
        found = [matrix.measured(self.moments[matrix.site.name], damping) for matrix in self.matrices]
        return replace(self, matrices=found)

    def whole(self, unit: Unit) -> int:
        """What all recurrent layers of the model cost, with their biases."""
        return cost_of(self.model, unit)

    def fixed(self, unit: Unit) -> int:
        """The part of it that no choice changes."""
        return self.whole(unit) - sum(m.present.cost(unit, m.item_size) for m in self.matrices)

    def smallest(self, unit: Unit) -> int:
        """The least budget that can be kept."""
        return self.fixed(unit) + sum(min(choice.cost for choice in m.choices(unit)) for m in self.matrices)

    def check(self, budget: Budget) -> None:
        """ValueError where it is too small."""
        whole, smallest = self.whole(budget.unit), self.smallest(budget.unit)
        if budget.of(whole) < smallest:
            what = IN_WORDS[budget.unit]
            raise ValueError(
                f"expected a budget of at least {smallest:,} {what}, {100 * smallest / whole:.3g} % of the recurrent "
                f"layers' {whole:,}, got {budget.of(whole):,}"
            )

    def choose(self, budget: Budget) -> list[Candidate]:
        """For every matrix, so that the sum of their errors is least."""
        self.check(budget)
        unit, whole = budget.unit, self.whole(budget.unit)
        found = allocate([m.choices(unit) for m in self.matrices], budget.of(whole) - self.fixed(unit), whole)
        assert found is not None  # `check` has seen that there is one
        return [m.candidates[k] for m, k in zip(self.matrices, found, strict=True)]

    def build(self, chosen: Sequence[Candidate]) -> nn.Module:
        """The model with these matrices."""
        small = copy.deepcopy(self.model)
        sites = {site.name: site for site in find_sites(small, self.keep).sites}
        for matrix, candidate in zip(self.matrices, chosen, strict=True):
            if not candidate.as_it_is:
                sites[matrix.site.name].put(copy.deepcopy(matrix.approximated.fitted(candidate.spec)))
        return small


def cost_of(model: nn.Module, unit: Unit) -> int:
    """Of all recurrent layers of a model."""
    cores = {core for stack in recurrent_stacks(model).values() for core in stack.cores}
    if unit == "macs":
        return sum(map.macs for core in cores for map in (core.input, *core.maps))
    parameters = {p for core in cores for p in core.parameters()}
    return sum(p.numel() * (p.element_size() if unit == "bytes" else 1) for p in parameters)
