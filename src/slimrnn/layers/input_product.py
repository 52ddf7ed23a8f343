"""U x + b, with the factors on U x that the recurrent map may ask for (`StructuredMap.input_scale`).

Shape suffixes: V vocabulary, G gates, H hidden units, I input width.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from slimrnn.structures.base import Prepared, StructuredMap
from slimrnn.structures.dense import DenseMap


def input_product(
    map: StructuredMap, x: Tensor, bias: Tensor | None, scale_GH: Tensor | None, prepared: Prepared | None = None
) -> Tensor:
    """s ⊙ (U x) + b"""
    if scale_GH is None:
        return map.affine(x, bias, prepared)
    y = map.affine(x, None, prepared) * scale_GH
    return y if bias is None else y + bias


def input_matrix(map: StructuredMap, scale_GH: Tensor | None) -> Tensor | None:
    """s ⊙ U (G, H, I) where it is dense, and so can be multiplied in the time loop."""
    if not isinstance(map, DenseMap):
        return None
    (u,) = map.prepare()
    return u if scale_GH is None else u * scale_GH.unsqueeze(-1)


def written_out(map: StructuredMap, scale_GH: Tensor | None) -> Tensor:
    """s ⊙ U (G, H, I), also where it is not dense: for single steps, a product in the native loop takes less time than
    a cheaper one outside of it."""
    dense = input_matrix(map, scale_GH)
    if dense is not None:
        return dense
    u = map.dense()
    return u if scale_GH is None else u * scale_GH.unsqueeze(-1)


def token_products(
    map: StructuredMap, vectors_VI: Tensor | None, bias: Tensor | None, scale_GH: Tensor | None
) -> Tensor:
    """s ⊙ (U x) + b for the vector x of every token, (V, G, H); without vectors they are one-hot: the columns of U."""
    if vectors_VI is not None:
        return input_product(map, vectors_VI, bias, scale_GH)
    u = input_matrix(map, scale_GH)
    if u is not None:
        columns = u.permute(2, 0, 1)
        return columns if bias is None else columns + bias
    some = map.some_numbers().real
    one_hot = torch.eye(map.shape.in_size, dtype=some.dtype, device=some.device)
    return input_product(map, one_hot, bias, scale_GH)


def look_up(table_VGH: Tensor, tokens: Tensor) -> Tensor:
    """The rows of a table, (...) -> (..., G, H)."""
    real = torch.view_as_real(table_VGH) if table_VGH.is_complex() else table_VGH
    rows = functional.embedding(tokens, real.flatten(1)).unflatten(-1, real.shape[1:])
    return torch.view_as_complex(rows) if table_VGH.is_complex() else rows
