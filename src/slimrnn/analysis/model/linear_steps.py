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
        return self.map.matvec(v, self.gates) if self.weight is None else dense_product(self.weight, v)

    def rmatvec(self, d: Tensor) -> Tensor:
        if self.weight is None:
            return self.map.rmatvec(d, self.gates)
        return d.flatten(-2) @ self.weight.flatten(0, 1).conj()


class LinearSteps:
    """∂s_t/∂s_{t−1} of the steps from the products U x_t + b (T, B, G, H) and the states before them (T, B, H)."""

    def __init__(self, core: RecurrentLayer, wx_TBGH: Tensor, states: State) -> None:
        """`core` is a `frozen` one of which `can_serve` is true."""
        self.count = len(states)
        leaves: list[Tensor] = [part.detach().requires_grad_() for part in states]
        calls: list[tuple[StructuredMap, slice, Tensor]] = []

        def record(map: StructuredMap, h: Tensor, gates: slice = ALL, prepared: Prepared | None = None) -> Tensor:
            leaves.append(type(map).matvec(map, h.detach(), gates, prepared).requires_grad_())
            calls.append((map, gates, h))
            return leaves[-1]

        maps = [transition.recurrent for transition in core.transitions]
        for map in maps:
            map.matvec = partial(record, map)  # type: ignore[method-assign]
        try:
            with torch.enable_grad():
                after = core.advance()(wx_TBGH, tuple(leaves))
        finally:
            for map in maps:
                del map.matvec  # type: ignore[method-assign]
        with torch.no_grad():
            weights = {id(map): map.dense() if map.shape.in_size <= DENSE else None for map in maps}
        self.products = []
        for map, gates, q in calls:
            weight = weights[id(map)]
            self.products.append(
                Product(None if weight is None else weight[gates], map, gates, list(_factors(q, leaves)))
            )
        self.after = [list(_factors(part, leaves)) for part in after]

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


@torch.no_grad()
def linear_steps(core: RecurrentLayer, x_TBI: Tensor, start: State) -> tuple[LinearSteps, State, State]:
    """The steps of a `frozen` core without delays that reads x, the states before each step, and the last state."""
    output, last = core(x_TBI, start)
    h_TBH = torch.complex(*output.chunk(2, -1)) if core.cell.complex else output
    trajectory = Trajectory(core, 0, 0, False, x_TBI, start, h_TBH, None)
    wx_TBGH = trajectory.products()
    states = trajectory.states_before(wx_TBGH)
    return LinearSteps(core, wx_TBGH, states), states, last


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
