"""compress: a trained model to a budget."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from slimrnn.compression.allocation import allocate
from slimrnn.compression.budget import IN_WORDS, Budget, Unit
from slimrnn.compression.candidates import Candidate, Matrix, matrices_of
from slimrnn.compression.families import Structures, check_structures
from slimrnn.compression.losses import Loss, output_of, probe
from slimrnn.compression.second_moments import second_moments
from slimrnn.compression.sites import find_sites, recurrent_stacks
from slimrnn.structures import Structure

SEED = 0  # of the labels and directions that are drawn


@dataclass(frozen=True, eq=False)
class Plan:
    """The matrices of a model and what can be chosen for each; a budget makes the choice."""

    model: nn.Module  #: with our layers, uncompressed
    matrices: list[Matrix]
    left: dict[str, str]  #: why others are left alone
    keep: Sequence[str] | str | None

    def whole(self, unit: Unit) -> int:
        """What all recurrent layers of the model cost, with their biases."""
        return cost_of(self.model, unit)

    def fixed(self, unit: Unit) -> int:
        """The part of it that no choice changes."""
        return self.whole(unit) - sum(m.present.cost(unit, m.item_size) for m in self.matrices)

    def smallest(self, unit: Unit) -> int:
        """The least budget that can be kept."""
        return self.fixed(unit) + sum(min(choice.cost for choice in m.choices(unit)) for m in self.matrices)

    def choose(self, budget: Budget) -> list[Candidate]:
        """For every matrix; ValueError where the budget is too small."""
        unit, whole = budget.unit, self.whole(budget.unit)
        room, fixed = budget.of(whole), self.fixed(unit)
        found = allocate([m.choices(unit) for m in self.matrices], room - fixed, whole) if room >= fixed else None
        if found is None:
            smallest = self.smallest(unit)
            raise ValueError(
                f"expected a budget of at least {smallest:,} {IN_WORDS[unit]}, {100 * smallest / whole:.3g} % of the "
                f"recurrent layers' {whole:,}, got {room:,}"
            )
        return [m.candidates[k] for m, k in zip(self.matrices, found, strict=True)]

    def build(self, chosen: Sequence[Candidate]) -> nn.Module:
        """The model with these matrices."""
        small = copy.deepcopy(self.model)
        sites = {site.name: site for site in find_sites(small, self.keep).sites}
        for matrix, candidate in zip(self.matrices, chosen, strict=True):
            if not candidate.as_it_is:
                sites[matrix.site.name].put(copy.deepcopy(matrix.approximator.fitted(candidate.spec)))
        return small


def make_plan(
    model: nn.Module,
    *,
    data: Iterable[Any] | None = None,
    loss: Loss | str | None = None,
    structures: Structures | str | Structure | None = None,
    keep: Sequence[str] | str | None = None,
    checked: bool = True,
) -> Plan:
    """Second moments and candidates of a model with our layers; what all budgets share."""
    sites, left = find_sites(model, keep)
    listed = check_structures(structures)
    moments = None
    if data is not None:
        if checked:
            _check_data(model, data)
        moments = second_moments(model, data, probe(loss, torch.Generator().manual_seed(SEED)), keep)
    return Plan(model, matrices_of(sites, moments, listed, structures is not None), left, keep)


def cost_of(model: nn.Module, unit: Unit) -> int:
    """Of all recurrent layers of a model."""
    cores = {core for stack in recurrent_stacks(model).values() for core in stack.cores}
    if unit == "macs":
        return sum(map.macs for core in cores for map in (core.input, *core.maps))
    parameters = {p for core in cores for p in core.parameters()}
    return sum(p.numel() * (p.element_size() if unit == "bytes" else 1) for p in parameters)


def _check_data(model: nn.Module, data: Iterable[Any]) -> None:
    """Run the first batch."""
    was_training = model.training
    try:
        with torch.no_grad():
            output_of(model.eval(), next(iter(data)))
    except (TypeError, ValueError, RuntimeError, IndexError) as error:
        raise ValueError(f"expected data that the model takes, got a batch with which it says: {error}") from error
    finally:
        model.train(was_training)
