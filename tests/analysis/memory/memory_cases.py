"""Inputs for `memory_range`, and its answer for a net of one layer."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from slimrnn.analysis.memory.memory_range import MemoryRange, memory_range
from slimrnn.layers import RecurrentStack

INPUTS, HIDDEN = 3, 12


def inputs(steps: int = 120, batch: int = 8, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(steps, batch, INPUTS, dtype=dtype, generator=torch.Generator().manual_seed(0))


def one(layer: RecurrentStack | nn.RNNBase, x: Tensor | None = None, **options: Any) -> MemoryRange:
    (found,) = memory_range(layer, inputs(dtype=next(layer.parameters()).dtype) if x is None else x, **options)
    return found
