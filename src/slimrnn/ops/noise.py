"""Uniform noise from a counter: a number that depends on nothing but the seed, the stream, the step, the row and the
unit, so that it is the same in pieces, in any order and on the way back. The same bits as csrc/cells/noise.h.
"""

from __future__ import annotations

import torch
from torch import Tensor

MASK = 0xFFFFFFFF


def uniform(seed: Tensor, stream: int, step: int, rows: int, units: int, dtype: torch.dtype) -> Tensor:
    """(rows, units) numbers in [0, 1) of 24 bits; the seed is one int64."""
    key = _mixed(seed & MASK)
    key = _mixed(key ^ (seed >> 32 & MASK))
    key = _mixed(key ^ stream)
    key = _mixed(key ^ (step & MASK))
    key_B1 = _mixed(key ^ torch.arange(rows, device=seed.device)).unsqueeze(-1)
    unit_H = torch.arange(units, device=seed.device) * 0x9E3779B9
    bits = _mixed((key_B1 + unit_H) & MASK) >> 8
    return bits.to(dtype) * 2.0**-24


def _mixed(x: Tensor) -> Tensor:
    """Every bit of the result depends on every bit of x, both of 32 bits. Products that overflow keep the low bits."""
    x = (x ^ (x >> 16)) * 0x7FEB352D & MASK
    x = (x ^ (x >> 15)) * 0x846CA68B & MASK
    return x ^ (x >> 16)
