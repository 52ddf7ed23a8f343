"""A traced step in plain torch with exact bits: the definition that the native core and generated C must equal.

Shape suffixes: B rows, G gates, H hidden units, R rows of own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import cast

import torch
from torch import Tensor

from slimrnn.cells.base import State
from slimrnn.exporting.constant_layer import Terms
from slimrnn.exporting.int8.exact import OPERATIONS, single
from slimrnn.exporting.int8.terms import Vectors, add_products, as_vectors
from slimrnn.tracing.graph import Node, order
from slimrnn.tracing.trace import Trace

LEAVES = ("wx", "before", "row", "const", "per_width", "product")


def inexact(nodes: Iterable[Node]) -> str | None:
    """The first operation that has no exact bits."""
    return next((n.op for n in nodes if n.op not in LEAVES and n.op not in OPERATIONS), None)


def step_of(trace: Trace, hidden: int, terms: Terms, own_RH: Tensor | None) -> Callable[[Tensor, State], State]:
    """(U x + b, state) -> state"""
    nodes = order(trace.after)

    def step(wx_BGH: Tensor, state: State) -> State:
        values, vectors = cast(dict[Node, Tensor], {}), cast(dict[Node, Vectors], {})
        for n in nodes:
            match n.op:
                case "wx":
                    values[n] = wx_BGH[..., n.attr, :]
                case "before":
                    values[n] = state[n.attr]
                case "row":
                    assert own_RH is not None
                    values[n] = own_RH[n.attr]
                case "const" | "per_width":
                    number = 1.0 / hidden if n.attr is None else n.attr
                    values[n] = torch.tensor(single(number), device=wx_BGH.device)
                case "product":
                    start, x = n.args
                    if x not in vectors:
                        vectors[x] = as_vectors(values[x].expand_as(state[0]))
                    values[n] = add_products(values[start], vectors[x], n.attr, terms)
                case _:
                    values[n] = OPERATIONS[n.op](*(values[a] for a in n.args))
        return tuple(values[after].expand_as(state[0]) for after in trace.after)

    return step
