"""Real and complex dtypes."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

_COMPLEX = {torch.float32: torch.complex64, torch.float64: torch.complex128}


def field_dtype(real: torch.dtype, complex: bool) -> torch.dtype:
    """`real` itself, or the complex dtype made of pairs of it. (torch.compile cannot trace `dtype.to_complex`.)"""
    if not complex:
        return real
    if real not in _COMPLEX:
        raise TypeError(f"expected float32 or float64 for a complex state, got {real}")
    return _COMPLEX[real]


def some_parameter(module: nn.Module) -> Tensor:
    """The first parameter, as `next(module.parameters())`, at a fraction of its cost."""
    for parameter in module._parameters.values():
        if parameter is not None:
            return parameter
    for child in module._modules.values():
        if child is not None:
            try:
                return some_parameter(child)
            except LookupError:
                continue
    raise LookupError("expected a module with parameters, got none")


def side_by_side(h: Tensor) -> Tensor:
    """Real parts, then imaginary parts, along the last axis; a real tensor as it is."""
    return torch.cat([h.real, h.imag], -1) if h.is_complex() else h  # (a transposed view has no gradient where B = 0)


def stacked(tensors: Sequence[Tensor]) -> Tensor:
    """As torch.stack, but one tensor is seen with one more axis and not copied."""
    return tensors[0].unsqueeze(0) if len(tensors) == 1 else torch.stack([*tensors])


def from_pairs(t: Tensor) -> Tensor:
    """(..., 2n) real numbers as (..., n) complex ones."""
    return torch.view_as_complex(t.reshape(*t.shape[:-1], -1, 2))


def as_complex(pairs: Tensor) -> Tensor:
    """(..., 2) real numbers as (...) complex ones, wherever they lie in memory (a view would need an even offset)."""
    return torch.complex(pairs[..., 0], pairs[..., 1])


def real_view(t: Tensor) -> Tensor:
    """(...) complex numbers as (..., 2) real ones; a real tensor as it is."""
    return torch.view_as_real(t.resolve_conj()) if t.is_complex() else t


def pairs_flat(t: Tensor) -> Tensor:
    """(..., n) complex numbers as (..., 2n) real ones; a real tensor as it is."""
    return real_view(t).flatten(-2) if t.is_complex() else t
