"""Numbers in int8 and exact products of them.

A row of weights w is q · s with q from −127 to 127 and one float32 scale s. A vector v that is multiplied is rounded
likewise, each time, with the scale max|v| / 127: it cannot saturate, whatever v is. The product of integers is an
int32, the same in any order, so

    y = start + float(Σ q_w q_v) · (s_w · s_v)

has the same bits everywhere. A v with an infinity or NaN gives NaN; one below `LEAST` counts as zero.

Shape suffixes: M rows, K columns.
"""

from __future__ import annotations

import torch
from torch import Tensor

from slimrnn.errors import ExportError

LARGEST = 127
LEAST = 2.0**-100  # of max|v|
MOST_COLUMNS = (2**31 - 1) // LARGEST**2  # whose sum is an int32


def rounded_rows(weight: Tensor) -> tuple[Tensor, Tensor]:
    """(..., K) float32 -> int8 (..., K), scales (...)."""
    if weight.is_meta:
        return weight.to(torch.int8), weight.new_empty(weight.shape[:-1])
    wide = weight.double()
    most = wide.abs().amax(-1)
    scale = (most / LARGEST).float()
    short = scale.double() * (LARGEST + 0.5) <= most  # among denormal numbers there may be none so near
    scale = torch.where(short & (most > 0), torch.nextafter(scale, torch.tensor(torch.inf)), scale)
    divisor = torch.where(scale > 0, scale, 1).double().unsqueeze(-1)
    return (wide / divisor).round().to(torch.int8), scale


def check_finite(value: Tensor | None, where: str) -> None:
    """ExportError where weights, or the scales of their rows, are no finite numbers."""
    if value is not None and not value.is_meta and not bool(torch.isfinite(value).all()):
        raise ExportError(f"expected finite weights, got infinity or NaN in {where}")


def as_floats(numbers: Tensor, scale: Tensor) -> Tensor:
    """The weights that int8 stands for."""
    return numbers.float() * scale.unsqueeze(-1)


def rounded_vectors(v: Tensor) -> tuple[Tensor, Tensor]:
    """(..., K) -> whole numbers as float64, scales (...)."""
    most = v.abs().amax(-1)  # NaN where there is one
    counts, is_finite = most >= LEAST, most < torch.inf
    largest = most.new_full((), LARGEST)  # a tensor: torch takes 127 / v as 127 · (1 / v)
    inverse = torch.where(counts & is_finite, largest / most, 0.0)
    numbers = torch.where((counts & is_finite).unsqueeze(-1), v, 0.0) * inverse.unsqueeze(-1)
    scale = torch.where(is_finite, torch.where(counts, most / largest, 0.0), torch.nan)
    return numbers.round().double(), scale


def product(start: Tensor, numbers: Tensor, scale: Tensor, weight: Tensor, weight_scale: Tensor) -> Tensor:
    """start (..., M) + W v, for W (M, K) and vectors from `rounded_vectors`."""
    whole = (numbers @ weight.double().mT).float()  # float64 holds these sums exactly, in any order
    return start + whole * (weight_scale * scale.unsqueeze(-1))


def affine(x: Tensor, weight: Tensor, weight_scale: Tensor, bias: Tensor | None) -> Tensor:
    """W x + b for x (..., K) and W (M, K)."""
    start = x.new_zeros(()) if bias is None else bias
    return product(start, *rounded_vectors(x), weight, weight_scale)
