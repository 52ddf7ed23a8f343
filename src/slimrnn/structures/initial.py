"""Initial values of matrices."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from slimrnn._fields import field_dtype
from slimrnn.structures.base import Shape


def uniform(shape: Shape, bound: float, *sizes: int) -> Tensor:
    """Entries uniform in ±bound, in both parts of a complex entry."""
    if shape.complex:
        return torch.view_as_complex(shape.uniform(bound, *sizes, 2))
    return shape.uniform(bound, *sizes)


def glorot(shape: Shape, *sizes: int) -> Tensor:
    """Matrices of sizes[-2] x sizes[-1] whose entries have variance 2 / (fan in + fan out) (Glorot & Bengio).

    As in the low-rank authors' code. A complex entry splits the variance between its two parts."""
    bound = math.sqrt(6 / (sizes[-2] + sizes[-1]))
    return uniform(shape, bound / math.sqrt(2) if shape.complex else bound, *sizes)


def haar(shape: Shape, *sizes: int) -> Tensor:
    """Uniformly random unitary (or orthogonal) matrices; rectangular ones have orthonormal rows or columns.

    QR of a Gaussian matrix with the phases of R's diagonal moved into Q (Mezzadri 2007). Computed in double
    precision, so that in single precision only the final rounding departs from unitarity."""
    dtype = field_dtype(shape.dtype or torch.get_default_dtype(), shape.complex)
    if (
        shape.device is not None and torch.device(shape.device).type == "meta"
    ):  # for whose qr torch imports its compiler
        return torch.empty(sizes, dtype=dtype, device=shape.device)
    tall = sizes[-2] >= sizes[-1]
    wide = torch.complex128 if shape.complex else torch.float64
    gaussian = torch.randn(sizes if tall else (*sizes[:-2], sizes[-1], sizes[-2]), dtype=wide, device=shape.device)
    q, r = torch.linalg.qr(gaussian)
    q = q * torch.sgn(r.diagonal(dim1=-2, dim2=-1)).unsqueeze(-2)
    q = q if tall else q.mH.resolve_conj()
    result: Tensor = q.to(dtype).contiguous()
    return result
