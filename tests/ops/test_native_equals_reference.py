"""The native core computes what the reference scan does."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from native_cases import BATCH, INPUT, LENGTHS, TIME, build, check_native, needs_library, pairs, start
from registry import numbers
from slimrnn import LowRank

pytestmark = needs_library

VARIANTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {  # options of the layer, and of the call
    "plain": ({}, {}),
    "reversed": ({}, {"reverse": True}),
    "ragged": ({}, {"lengths": LENGTHS}),
    "ragged-reversed": ({}, {"lengths": LENGTHS, "reverse": True}),
    "masks": ({"recurrent_dropout": 0.5}, {"lengths": LENGTHS, "reverse": True}),
    "no-bias": ({"bias": False}, {}),
    "input-structure": ({"input_structure": LowRank(2)}, {"lengths": LENGTHS}),
}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["double", "single"])
@pytest.mark.parametrize("variant", VARIANTS)
@pairs
def test_native_is_reference(cell: str, structure: str, variant: str, dtype: torch.dtype) -> None:
    options, call = VARIANTS[variant]
    layer = build(cell, structure, dtype=dtype, **options)
    check_native(layer, numbers(TIME, BATCH, INPUT).to(dtype), start(layer), **call)
