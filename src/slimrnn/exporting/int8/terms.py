"""The terms of a recurrent map in int8: which there are, how each is rounded, and its product in plain torch.

    block_diagonal   weight int8 (G, n, n) or (G, blocks, m, m), scales (G, n)
    low_rank         L int8 (G, n, r), scales (G, n); R int8 (G, r, n), or tied (r, n), scales (G, r) or (r)
    diagonal         float32 (G, n)
    permutation      int64 (n)

Shape suffixes: B rows, G gates, H hidden units, K columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from slimrnn.exporting.constant_layer import Terms
from slimrnn.exporting.int8.rows import product, rounded_rows, rounded_vectors
from slimrnn.ops.terms import Term, kind_of


class Vectors(NamedTuple):
    """What is multiplied, (B, H), and the same in int8, with its scales (B)."""

    floats: Tensor
    numbers: Tensor
    scale: Tensor


def as_vectors(x: Tensor) -> Vectors:
    return Vectors(x, *rounded_vectors(x))


class Int8Term(NamedTuple):
    """How a structure is rounded, and y (B, H) = start + W_g x."""

    rounded: Callable[[Sequence[Tensor]], list[Tensor]]
    add: Callable[[Tensor, Vectors, int, Sequence[Tensor]], Tensor]


def _round_blocks(tensors: Sequence[Tensor]) -> list[Tensor]:
    (weight,) = tensors
    numbers, scale = rounded_rows(weight)
    return [numbers, scale.reshape(len(weight), -1)]


def _add_blocks(start: Tensor, x: Vectors, gate: int, tensors: Sequence[Tensor]) -> Tensor:
    weight, scale = tensors[0][gate], tensors[1][gate]
    if weight.dim() == 2:
        return product(start, x.numbers, x.scale, weight, scale)
    blocks = x.numbers.unflatten(-1, (len(weight), -1)).unbind(-2)
    parts = [(part @ w.double().mT).float() for part, w in zip(blocks, weight, strict=True)]
    return start + torch.cat(parts, -1) * (scale * x.scale.unsqueeze(-1))


def _round_factors(tensors: Sequence[Tensor]) -> list[Tensor]:
    return [part for factor in tensors for part in rounded_rows(factor)]


def _add_low_rank(start: Tensor, x: Vectors, gate: int, tensors: Sequence[Tensor]) -> Tensor:
    left, left_scale, right, right_scale = tensors
    tied = right.dim() == 2
    down, down_scale = (right, right_scale) if tied else (right[gate], right_scale[gate])
    low = product(x.floats.new_zeros(()), x.numbers, x.scale, down, down_scale)
    return product(start, *rounded_vectors(low), left[gate], left_scale[gate])


def _add_diagonal(start: Tensor, x: Vectors, gate: int, tensors: Sequence[Tensor]) -> Tensor:
    return start + tensors[0][gate] * x.floats


def _add_permuted(start: Tensor, x: Vectors, gate: int, tensors: Sequence[Tensor]) -> Tensor:
    return start + x.floats[..., tensors[0]]


TERMS = {
    "block_diagonal": Int8Term(_round_blocks, _add_blocks),
    "low_rank": Int8Term(_round_factors, _add_low_rank),
    "diagonal": Int8Term(list, _add_diagonal),
    "permutation": Int8Term(list, _add_permuted),
}


def rounded(term: Term) -> Term:
    """With its weights in int8; KeyError for a structure that has no such form."""
    kind = kind_of(term.structure)
    return Term(kind, tuple(TERMS[kind].rounded(term.tensors)))


def add_products(start: Tensor, x: Vectors, gate: int, terms: Terms) -> Tensor:
    """start + W_g x, term after term."""
    for kind, tensors in terms:
        start = TERMS[kind].add(start, x, gate, tensors)
    return start
