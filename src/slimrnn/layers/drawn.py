"""What is drawn or made once for a call of a layer, and is the same wherever the call runs in pieces or again.

Shape suffixes: T time, B batch, I input width, V vocabulary, G gates, H hidden units.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from slimrnn._fields import some_parameter
from slimrnn.layers.options import mask_rates
from slimrnn.ops.onnx_exports import check_no_noise
from slimrnn.structures.base import Prepared

if TYPE_CHECKING:
    from slimrnn.layers.recurrent_layer import RecurrentLayer


class Drawn(NamedTuple):
    """Masks, a seed, matrices with dropped weights, and products of tokens; None where there are none."""

    x_mask: Tensor | None = None  # (B, I)
    h_mask: Tensor | None = None  # (B, H), or (B, G, H): one for each gate
    seed: Tensor | None = None  # of zoneout, one int64
    maps: tuple[Prepared, ...] | None = None  # of the transitions
    table: Tensor | None = None  # (V, G, H): U x + b of every token, where the input is tokens


NOTHING = Drawn()


def draw(layer: RecurrentLayer, x: Tensor) -> Drawn:
    """For a layer in training and input (..., B, I)."""
    if not layer.training:
        return NOTHING
    x_mask = h_mask = seed = maps = None
    if layer.recurrent_dropout or layer.zoneout is not None or layer.weight_drop:
        check_no_noise()
    if layer.recurrent_dropout:
        rates, cell = mask_rates(layer.recurrent_dropout), layer.cell
        gates = (max(len(cell.gates), cell.matrices),) if layer.mask_per_gate else ()
        sizes = ((x.shape[-1],), (*gates, cell.hidden_size))
        dtype = x.dtype if x.is_floating_point() else some_parameter(layer).dtype  # x may be tokens
        x_mask, h_mask = (
            functional.dropout(x.new_ones(x.shape[-2], *size, dtype=dtype), rate) if rate else None
            for size, rate in zip(sizes, rates, strict=True)
        )
    if layer.zoneout is not None:
        seed = torch.randint(2**62, (), device=x.device)
    if layer.weight_drop:
        maps = tuple(_dropped(t.recurrent.prepare(), layer.weight_drop) for t in layer.transitions)
    return Drawn(x_mask, h_mask, seed, maps)


def _dropped(prepared: Prepared, rate: float) -> Prepared:
    """Weights are dropped (Merity et al. 2018), orders of units are not."""

    def dropped(t: Tensor) -> Tensor:
        if not (t.is_floating_point() or t.is_complex()):
            return t
        return t * functional.dropout(torch.ones_like(t.real if t.is_complex() else t), rate)

    return tuple(dropped(t) for t in prepared)
