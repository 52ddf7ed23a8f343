"""U x + b, with the factors on U x that the recurrent map may ask for (`StructuredMap.input_scale`)."""

from __future__ import annotations

from torch import Tensor

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
