"""Kronecker: a product of small factors moves a large state (KRU paper, eq. 4)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from slimrnn._checks import check_count
from slimrnn.structures.base import ALL, Prepared, Shape, Structure, StructuredMap
from slimrnn.structures.initial import haar

MOST_FACTORS = 64  # of the core, csrc/structures/kronecker.h


class KroneckerMap(StructuredMap):
    """y_g = (W_g1 ⊗ ... ⊗ W_gk) h with factor_i of shape (G, p_i, q_i); the product is never written out."""

    native: str | None = "kronecker"

    def __init__(self, spec: Kronecker, shape: Shape, weight_norm: bool = False) -> None:
        super().__init__(spec, shape, weight_norm)
        self.factors = spec.factors
        if len(self.factors) > MOST_FACTORS:
            self.native = None
        for i, (p, q) in enumerate(self.factors):
            initial = haar(shape, shape.gates, p, q)
            self.add_parameter(f"factor_{i}", initial, rows=spec.trainable, trainable=spec.trainable)

    def prepare(self) -> Prepared:
        return tuple(self.tensor(f"factor_{i}") for i in range(len(self.factors)))

    def matvec(self, h: Tensor, gates: slice = ALL, prepared: Prepared | None = None) -> Tensor:
        factors = [factor[gates] for factor in prepared or self.prepare()]
        count, rows = factors[0].shape[0], math.prod(h.shape[:-1])
        y = h.reshape(1, rows, self.shape.in_size).expand(count, -1, -1)
        y = _rotate_through(y, [factor.mT for factor in factors])
        return y.transpose(0, 1).reshape(*h.shape[:-1], count, self.shape.out_size)

    def rmatvec(self, y: Tensor, gates: slice = ALL, prepared: Prepared | None = None) -> Tensor:
        factors = [factor[gates] for factor in prepared or self.prepare()]
        by_gate = y.movedim(-2, 0).flatten(1, -2) if y.dim() > 2 else y.unsqueeze(1)  # (G, rows, m)
        h = _rotate_through(by_gate, [factor.conj() for factor in factors]).sum(0)
        return h.reshape(*y.shape[:-2], self.shape.in_size)

    def penalty(self) -> Tensor:
        """Σ_i ‖W_iᴴW_i − I‖² (KRU eq. 7); W_iW_iᴴ for a wide factor, whose columns cannot be orthonormal."""
        return torch.stack([_unitary_defect(factor) for factor in self.prepare()]).sum()

    def project_(self, matrix: Tensor) -> None:
        factors = _nearest_factors(matrix, self.factors)
        for i, factor in enumerate(factors):
            self.assign_(f"factor_{i}", factor)

    @property
    def macs(self) -> int:
        total, size = 0, self.shape.in_size
        for p, q in reversed(self.factors):
            total += size * p
            size = size // q * p
        return self.shape.gates * total * (4 if self.complex else 1)


def _rotate_through(y_GRN: Tensor, factors_Gqp: Sequence[Tensor]) -> Tensor:
    """Multiply the last tensor axis by the last factor, move it to the front, and so on until all are done.

    Each stage is one batched matrix product of (G, rows · n/q, q) with (G, q, p)."""
    gates, rows, _ = y_GRN.shape
    for factor in reversed(factors_Gqp):
        q, p = factor.shape[-2:]
        rest = y_GRN.shape[-1] // q
        y_GRN = y_GRN.reshape(gates, rows * rest, q) @ factor
        y_GRN = y_GRN.reshape(gates, rows, rest, p).transpose(-1, -2).reshape(gates, rows, p * rest)
    return y_GRN


def _unitary_defect(factor: Tensor) -> Tensor:
    tall = factor.shape[-2] >= factor.shape[-1]
    gram = factor.mH @ factor if tall else factor @ factor.mH
    defect = gram - torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
    return torch.view_as_real(defect).square().sum() if defect.is_complex() else defect.square().sum()


def _nearest_factors(matrix: Tensor, sizes: Sequence[tuple[int, int]], sweeps: int = 200) -> list[Tensor]:
    """Factors whose Kronecker product is closest to each matrix of a (G, m, n) stack.

    Rearranged, a Kronecker product of k factors is a rank-one tensor of order k: for k = 2 the leading singular
    pair solves it (Van Loan & Pitsianis 1993); for more, splitting off one factor at a time gives the start of
    an alternating least squares, whose error never rises."""
    gates, k = matrix.shape[0], len(sizes)
    grid = matrix.reshape(gates, *(p for p, _ in sizes), *(q for _, q in sizes))
    order = [0, *(axis for i in range(k) for axis in (1 + i, 1 + k + i))]
    tensor = grid.permute(order).reshape(gates, *(p * q for p, q in sizes))  # (G, p1q1, ..., pkqk)
    vectors = _split_off(tensor)
    previous = torch.zeros(gates, dtype=tensor.real.dtype, device=tensor.device)
    for _ in range(sweeps if k > 2 else 0):
        for i in range(k):
            vectors[i] = _contract_others(tensor, vectors, i)
            strength = torch.linalg.vector_norm(vectors[i], dim=-1, keepdim=True)
            vectors[i] = vectors[i] / strength.clamp_min(torch.finfo(strength.dtype).tiny)
        vectors[-1] = vectors[-1] * strength  # the whole norm sits in the last vector
        gain = strength[:, 0] - previous
        previous = strength[:, 0]
        if bool((gain <= 4 * torch.finfo(strength.dtype).eps * strength[:, 0]).all()):
            break
    return _balanced(vectors, sizes)


def _split_off(tensor: Tensor) -> list[Tensor]:
    """Unit vectors for all but the last axis by repeated leading singular pairs; the last carries the norm."""
    vectors = []
    while tensor.dim() > 2:
        u, s, vh = torch.linalg.svd(tensor.flatten(2), full_matrices=False)
        vectors.append(u[..., 0])
        tensor = (s[..., :1] * vh[..., 0, :]).reshape(tensor.shape[0], *tensor.shape[2:])
    return [*vectors, tensor]


def _contract_others(tensor: Tensor, vectors: Sequence[Tensor], keep: int) -> Tensor:
    """⟨tensor, unit vectors of all axes but `keep`⟩, per gate."""
    for axis in reversed(range(len(vectors))):
        if axis != keep:
            norm = torch.linalg.vector_norm(vectors[axis], dim=-1, keepdim=True)
            unit = vectors[axis] / norm.clamp_min(torch.finfo(norm.dtype).tiny)
            tensor = torch.einsum("g...a,ga->g...", tensor.movedim(axis + 1, -1), unit.conj())
    return tensor


def _balanced(vectors: Sequence[Tensor], sizes: Sequence[tuple[int, int]]) -> list[Tensor]:
    """Share the norm so that a multiple of a unitary matrix gets factors that are multiples of unitary ones."""
    norms = [torch.linalg.vector_norm(v, dim=-1, keepdim=True) for v in vectors]
    ranks = [min(size) for size in sizes]
    share = torch.stack(norms).prod(0) / math.sqrt(math.prod(ranks))
    share = share ** (1 / len(sizes))
    factors = []
    for vector, norm, rank, (p, q) in zip(vectors, norms, ranks, sizes, strict=True):
        unit = vector / norm.clamp_min(torch.finfo(norm.dtype).tiny)
        factors.append((unit * share * math.sqrt(rank)).reshape(-1, p, q))
    return factors


@dataclass(frozen=True, init=False)
class Kronecker(Structure):
    """W = W_1 ⊗ ... ⊗ W_k. Factors are ints (square) or (p, q) pairs; their products are the dimensions.

    `Kronecker([2] * 9)` is a 512 x 512 matrix from nine 2 x 2 factors: 36 numbers per gate. The factors start as
    random unitary (orthogonal, in a real cell) matrices; `trainable=False` keeps them so, as in an echo state
    network (KRU §4.1)."""

    factors: tuple[tuple[int, int], ...]
    trainable: bool = True

    map_type = KroneckerMap

    def __init__(self, factors: Sequence[int | tuple[int, int]], trainable: bool = True) -> None:
        if isinstance(factors, int | str) or not isinstance(factors, Sequence) or not factors:
            raise ValueError(f"expected factors to be a sequence of ints or (p, q) pairs, got {factors!r}")
        pairs = tuple(tuple(f) if isinstance(f, Sequence) else (f, f) for f in factors)
        for pair in pairs:
            if len(pair) != 2:
                raise ValueError(f"expected each factor to be an int or a (p, q) pair, got {pair!r}")
            check_count("a factor's size", pair[0])
            check_count("a factor's size", pair[1])
        object.__setattr__(self, "factors", pairs)
        object.__setattr__(self, "trainable", trainable)

    def check(self, shape: Shape) -> None:
        rows, columns = (math.prod(sizes) for sizes in zip(*self.factors, strict=True))
        if (rows, columns) != (shape.out_size, shape.in_size):
            raise ValueError(
                f"expected Kronecker factors whose product is {shape.out_size} x {shape.in_size}, "
                f"got {rows} x {columns} from {self!r}"
            )

    def __repr__(self) -> str:
        sizes = [p if p == q else (p, q) for p, q in self.factors]
        listed = f"[{sizes[0]}] * {len(sizes)}" if len(sizes) > 2 and len(set(sizes)) == 1 else repr(sizes)
        return f"Kronecker({listed}{'' if self.trainable else ', trainable=False'})"
