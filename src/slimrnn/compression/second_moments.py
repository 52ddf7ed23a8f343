"""What every matrix sees and what its outputs do: C = E v vᵀ of its inputs and G = E g gᵀ of its outputs' gradients.

Shape suffixes: N rows (steps of all sequences), G gates, m outputs and n inputs of a map.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from slimrnn.compression.sites import Site, find_sites, recurrent_stacks
from slimrnn.layers.stack import RecurrentStack
from slimrnn.layers.tokens import is_tokens
from slimrnn.structures.base import ALL, Prepared, StructuredMap

ENOUGH, MOST = 20_000, 100  # rows, and batches


@dataclass(eq=False)
class Moments:
    """Sums over rows, of one matrix."""

    gates: int
    out_size: int
    inputs: Tensor  # (n, n): Σ v vᵀ
    outputs: Tensor  # (G·m, G·m): Σ g gᵀ
    weight: float = 0.0  # of the inputs
    waiting: list[tuple[range, Tensor, Tensor]] = field(default_factory=list)  # gates, v (N, n), g (N, G·m)

    @classmethod
    def of(cls, map: StructuredMap) -> Moments:
        """None yet."""
        shape, device = map.shape, map.some_numbers().device
        rows = shape.gates * shape.out_size
        inputs = torch.zeros(shape.in_size, shape.in_size, dtype=torch.float64, device=device)
        outputs = torch.zeros(rows, rows, dtype=torch.float64, device=device)
        return cls(shape.gates, shape.out_size, inputs, outputs)

    def see(self, v: Tensor, y: Tensor, gates: slice = ALL) -> Tensor:
        """v (..., n) gives y (..., G', m): returns y, whose gradient will be seen."""
        if not y.requires_grad:
            y = y.detach().requires_grad_()
        chosen, rows = range(self.gates)[gates], v.detach().flatten(0, -2)
        y.register_hook(lambda g: self.waiting.append((chosen, rows, g.detach().flatten(0, -3).flatten(1))))
        return y

    def add(self) -> int:
        """Sum up what has been seen. Rows without a gradient, such as padding, do not count."""
        most = 0
        by_gates: dict[range, list[tuple[Tensor, Tensor]]] = {}
        for gates, v, g in self.waiting:
            by_gates.setdefault(gates, []).append((v, g))
        self.waiting.clear()
        for gates, pairs in by_gates.items():
            v_Nn, g_NM = (torch.cat(parts) for parts in zip(*pairs, strict=True))
            there = (g_NM != 0).any(1)
            v_Nn, g_NM = v_Nn[there].double(), g_NM[there]
            share = len(gates) / self.gates
            self.inputs += share * (v_Nn.mT @ v_Nn)
            self.weight += share * len(v_Nn)
            block = slice(gates.start * self.out_size, gates.stop * self.out_size)
            self.outputs[block, block] += (g_NM.mT @ g_NM).double()  # of one batch: far more exact than the damping
            most = max(most, len(v_Nn))
        return most


def second_moments(
    model: nn.Module,
    data: Iterable[Any],
    objective: Callable[[nn.Module, Any], Tensor],
    keep: Any = None,
    enough: int = ENOUGH,
) -> dict[str, Moments]:
    """By the names of the matrices, from the gradients of `objective(model, batch)`, over as many batches as give
    `enough` steps. The model itself is not touched."""
    twin = copy.deepcopy(model).eval().requires_grad_(False)
    found = {site.name: Moments.of(site.map) for site in find_sites(twin, keep).sites}
    for site in find_sites(twin, keep).sites:
        _watch(site, found[site.name])
    for stack in recurrent_stacks(twin).values():
        stack.register_forward_pre_hook(_as_vectors, with_kwargs=True)
    rows = 0
    for batch in itertools.islice(data, MOST):
        with torch.enable_grad():
            value = objective(twin, batch)
        if not value.requires_grad:
            raise ValueError("expected a loss that depends on the recurrent layers of the model, got one that does not")
        value.backward()
        rows += max(moments.add() for moments in found.values())
        if rows >= enough:
            break
    for name, moments in found.items():
        if not moments.weight or not bool(moments.outputs.isfinite().all() and moments.inputs.isfinite().all()):
            what = "numbers" if moments.weight else "data that reaches every layer"
            got = "infinity or NaN" if moments.weight else "none"
            raise ValueError(f"expected {what}, got {got} at {name}")
    return found


def _watch(site: Site, moments: Moments) -> None:
    """The layer runs in plain torch, and its products are seen."""
    core, map = site.core, site.map
    core.backend = "reference"
    core.checkpoint_every = None
    if site.kind == "recurrent":
        plain = map.matvec

        def matvec(h: Tensor, gates: slice = ALL, prepared: Prepared | None = None) -> Tensor:
            return moments.see(h, plain(h, gates, prepared), gates)

        map.matvec = matvec  # type: ignore[method-assign]
        return
    product = core.input_product

    def input_product(x: Tensor, table_VGH: Tensor | None = None) -> Tensor:
        return moments.see(x, product(x, table_VGH))

    core.input_product = input_product  # type: ignore[method-assign]


def _as_vectors(stack: RecurrentStack, given: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Tokens reach the layers as the vectors that they stand for."""
    x = given[0] if given else options["input"]
    if not stack.takes_tokens or not is_tokens(x.data if isinstance(x, PackedSequence) else x):
        return None
    vectors = x._replace(data=stack.vectors(x.data)) if isinstance(x, PackedSequence) else stack.vectors(x)
    return (vectors, *given[1:]), {name: value for name, value in options.items() if name != "input"}
