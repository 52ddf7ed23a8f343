"""The derivatives of steps along a trajectory, ready to be applied to any number of vectors, forth and back.

Between its recurrent products, the step of most cells works on each unit by itself. Its derivative then consists of
the products, which are the same in every step, and of a number for each unit, which are found for all steps at once.
With a complex state, the derivative of one value by another is v ↦ a v + b v̄.

Shape suffixes: T time, B batch, G gates, H hidden units, V vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from slimrnn.analysis.model.trajectory import Trajectory
from slimrnn.cells.base import State
from slimrnn.layers.recurrent_layer import RecurrentLayer
from slimrnn.layers.traced import found_steps
from slimrnn.structures.base import ALL, Prepared, StructuredMap
from slimrnn.structures.dense import dense_product
from slimrnn.tracing import Traced
from slimrnn.tracing.graph import order

DENSE = 512  # units, up to which structured products are written out: they are many small operations


class Factor(NamedTuple):
    """The derivative of one value by another, for every step (B, H), or (B, G, H) by a product."""

    source: int  # the value by which: a state, or a product
    plain: Sequence[Tensor]  # a; empty for 1
    conjugate: Sequence[Tensor]  # b; empty for 0


class Product(NamedTuple):
    """A recurrent product W q, where q depends on the states and on the products before."""

    weight: Tensor | None  # (G, H, H), written out
    map: StructuredMap
    gates: slice
    factors: list[Factor]  # of q

    def matvec(self, v: Tensor) -> Tensor:
        return type(self.map).matvec(self.map, v, self.gates) if self.weight is None else dense_product(self.weight, v)

    def rmatvec(self, d: Tensor) -> Tensor:
        if self.weight is None:
            return self.map.rmatvec(d, self.gates)
        return d.flatten(-2) @ self.weight.flatten(0, 1).conj()


class Linearizer:
    """Finds the derivatives of a layer's steps. `core` is a `frozen` one of which `can_serve` is true."""

    @torch.no_grad()
    def __init__(self, core: RecurrentLayer) -> None:
        self.core = core
        self.maps = [transition.recurrent for transition in core.transitions]
        self.weights = [map.dense() if map.shape.in_size <= DENSE else None for map in self.maps]

    @torch.no_grad()
    def along(self, x_TBI: Tensor, start: State) -> tuple[LinearSteps, State, State]:
        """The steps without delays that read x, the states before each, and the last state."""
        core = self.core
        output, last = core(x_TBI, start)
        h_TBH = torch.complex(*output.chunk(2, -1)) if core.cell.complex else output
        trajectory = Trajectory(core, 0, 0, False, x_TBI, start, h_TBH, None)
        wx_TBGH = trajectory.products()
        states = trajectory.states_before(wx_TBGH)
        return self.at(wx_TBGH, states), states, last

    def at(self, wx_TBGH: Tensor, states: State) -> LinearSteps:
        """The steps from the products U x_t + b and the states before them (T, B, H)."""
        leaves: list[Tensor] = [part.detach().requires_grad_() for part in states]
        calls: list[tuple[Product, Tensor]] = []

        def record(place: int, h: Tensor, gates: slice = ALL, prepared: Prepared | None = None) -> Tensor:
            weight = self.weights[place]
            product = Product(None if weight is None else weight[gates], self.maps[place], gates, [])
            leaves.append(product.matvec(h.detach()).requires_grad_())
            calls.append((product, h))
            return leaves[-1]

        for place, map in enumerate(self.maps):
            map.matvec = partial(record, place)  # type: ignore[method-assign]
        try:
            with torch.enable_grad():
                after = self.core.advance()(wx_TBGH, tuple(leaves))
        finally:
            for map in self.maps:
                del map.matvec
        products = [product._replace(factors=[*_factors(q, leaves)]) for product, q in calls]
        return LinearSteps(products, [[*_factors(part, leaves)] for part in after])


class LinearSteps:
    """∂s_t/∂s_{t−1} of some steps."""

    def __init__(self, products: list[Product], after: list[list[Factor]]) -> None:
        self.products, self.after, self.count = products, after, len(after)

    @torch.no_grad()
    def forth(self, t: int, change: State) -> State:
        """What a change (..., B, H) of the state before step t is after it."""
        values = list(change)
        for product in self.products:
            values.append(product.matvec(_sum(product.factors, t, values)))
        return tuple(_sum(factors, t, values) for factors in self.after)

    @torch.no_grad()
    def back(self, t: int, d_after: State) -> State:
        """The gradient by the state before step t, from that by the state after it (..., B, H)."""
        found: dict[int, Tensor] = {}
        for factors, d in zip(self.after, d_after, strict=True):
            self._pass_on(factors, t, d, found)
        for number, product in reversed([*enumerate(self.products, self.count)]):
            if number in found:
                self._pass_on(product.factors, t, product.rmatvec(found[number]), found)
        return tuple(found[i] if i in found else torch.zeros_like(d) for i, d in enumerate(d_after))

    def _pass_on(self, factors: Sequence[Factor], t: int, d: Tensor, found: dict[int, Tensor]) -> None:
        for source, plain, conjugate in factors:
            given = d.unsqueeze(-2) if source >= self.count else d
            part = given * plain[t].conj() if plain else given
            if conjugate:
                part = part + given.conj() * conjugate[t]
            found[source] = found[source] + part if source in found else part


def can_serve(core: RecurrentLayer) -> bool:
    """Whether its steps work on each unit by itself but for the products."""
    steps = found_steps(core)
    return all(isinstance(step, Traced) and all(n.op != "total" for n in order(step.trace.after)) for step in steps)


def _sum(factors: Sequence[Factor], t: int, values: Sequence[Tensor]) -> Tensor:
    total: Tensor | None = None
    for source, plain, conjugate in factors:
        value = values[source]
        part = value * plain[t] if plain else value
        if conjugate:
            part = part + value.conj() * conjugate[t]
        if part.dim() > values[0].dim():  # of a product, the sum over the gates
            part = part.sum(-2)
        total = part if total is None else total + part
    return torch.zeros_like(values[0]) if total is None else total


def _factors(target: Tensor, leaves: Sequence[Tensor]) -> Iterator[Factor]:
    """The derivatives of a value by the states and the products; a sum has those of all units, since they are apart."""
    for source, leaf in enumerate(leaves):
        if target is leaf:
            yield Factor(source, (), ())
            return
    if not target.requires_grad:
        return
    with torch.enable_grad():
        sums = [part.sum() for part in ((target.real, target.imag) if target.is_complex() else (target,))]
    given = [torch.autograd.grad(one, leaves, retain_graph=True, allow_unused=True) for one in sums]
    for source, found in enumerate(zip(*given, strict=True)):
        if len(found) == 1:
            if found[0] is not None:
                yield Factor(source, found[0].unbind(0), ())
        elif found[0] is not None or found[1] is not None:
            of_real, of_imag = (torch.zeros_like(leaves[source]) if part is None else part for part in found)
            plain, conjugate = (of_real.conj() + 1j * of_imag.conj()) / 2, (of_real + 1j * of_imag) / 2
            yield Factor(source, plain.unbind(0), conjugate.unbind(0) if bool(conjugate.any()) else ())
