"""Sum: W = A + B + ... of any structures. `LowRank(r) + Diagonal()` is the low-rank paper's eq. 5."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from slimrnn.ops.terms import Term
from slimrnn.structures.base import ALL, Prepared, Shape, Structure, StructuredMap


class SumMap(StructuredMap):
    """y_g = Σ_k (W_k)_g h."""

    def __init__(self, spec: Sum, shape: Shape, weight_norm: bool = False) -> None:
        super().__init__(spec, shape, weight_norm)
        self.parts = nn.ModuleList(part.map_type(part, shape, weight_norm) for part in spec.parts)
        self.tensor_counts = [len(part.prepare()) for part in self._maps()]

    def _maps(self) -> Iterator[StructuredMap]:
        for part in self.parts:
            assert isinstance(part, StructuredMap)  # what __init__ put there
            yield part

    def _split(self, prepared: Prepared | None) -> Iterator[tuple[StructuredMap, Prepared]]:
        """The parts, each with its own tensors."""
        rest = prepared or self.prepare()
        for part, count in zip(self._maps(), self.tensor_counts, strict=True):
            yield part, rest[:count]
            rest = rest[count:]

    def prepare(self) -> Prepared:
        return tuple(tensor for part in self._maps() for tensor in part.prepare())

    def some_numbers(self, prepared: Prepared | None = None) -> Tensor:
        part, tensors = next(self._split(prepared))
        return part.some_numbers(tensors)

    def matvec(self, h: Tensor, gates: slice = ALL, prepared: Prepared | None = None) -> Tensor:
        return _total(part.matvec(h, gates, tensors) for part, tensors in self._split(prepared))

    def rmatvec(self, y: Tensor, gates: slice = ALL, prepared: Prepared | None = None) -> Tensor:
        return _total(part.rmatvec(y, gates, tensors) for part, tensors in self._split(prepared))

    def terms(self, prepared: Prepared) -> list[Term] | None:
        terms = [part.terms(tensors) for part, tensors in self._split(prepared)]
        return None if any(t is None for t in terms) else [term for t in terms for term in t or []]

    @property
    def term_count(self) -> int | None:
        counts = [part.term_count for part in self._maps()]
        return None if None in counts else sum(count or 0 for count in counts)

    def clip_rows_(self, max_norm: float) -> None:
        for part in self._maps():
            part.clip_rows_(max_norm)

    def penalty(self) -> Tensor:
        return _total(part.penalty() for part in self._maps())

    @property
    def macs(self) -> int:
        return sum(part.macs for part in self._maps())

    def project_(self, matrix: Tensor, sweeps: int = 1000) -> None:
        """Alternate: each term moves to the member nearest to what the others leave. The error never rises.

        A momentum is tried before each sweep and dropped as soon as it does not help, since plain alternation
        is slow where the terms overlap (low rank and diagonal: the factor analysis problem)."""
        parts = list(self._maps())
        scale = torch.linalg.vector_norm(matrix).clamp_min(torch.finfo(matrix.real.dtype).tiny)
        floor = 8 * torch.finfo(matrix.real.dtype).eps
        terms = [torch.zeros_like(matrix) for _ in parts]
        previous, error, momentum, best = terms, float("inf"), 0.0, _snapshot(self)
        for _ in range(sweeps):
            guess = [term + momentum * (term - old) for term, old in zip(terms, previous, strict=True)]
            new = _sweep(parts, matrix, guess)
            new_error = float(torch.linalg.vector_norm(matrix - sum(new, torch.zeros_like(matrix))) / scale)
            if new_error > error:  # the guess overshot, or rounding is all that is left
                if momentum == 0:
                    break
                momentum, previous = 0.0, terms
                continue
            done = new_error < floor or error - new_error < 1e-12 * new_error
            previous, terms, error, best = terms, new, new_error, _snapshot(self)
            momentum = min(0.98, 0.5 + 0.5 * momentum)
            if done:
                break
        _restore(self, best)


def _total(summands: Iterable[Tensor]) -> Tensor:
    first, *others = summands
    return sum(others, first)


def _sweep(parts: list[StructuredMap], matrix: Tensor, terms: list[Tensor]) -> list[Tensor]:
    """One round: every part in turn becomes the member nearest to the matrix minus the other terms."""
    terms = list(terms)
    for k, part in enumerate(parts):
        rest = matrix - sum((t for j, t in enumerate(terms) if j != k), torch.zeros_like(matrix))
        terms[k] = part.nearest_(rest).dense()
    return terms


def _snapshot(module: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in module.state_dict().items()}


def _restore(module: nn.Module, saved: dict[str, Tensor]) -> None:
    module.load_state_dict(saved)


@dataclass(frozen=True)
class Sum(Structure):
    """The sum of two or more structures; written with `+`."""

    parts: tuple[Structure, ...]

    map_type = SumMap

    def __post_init__(self) -> None:
        flat: list[Structure] = []
        for part in self.parts:
            if not isinstance(part, Structure):
                raise TypeError(f"expected structures to add, got {part!r}")
            flat.extend(part.parts if isinstance(part, Sum) else [part])
        object.__setattr__(self, "parts", tuple(flat))
        if len(flat) < 2:
            raise ValueError(f"expected at least two structures to add, got {len(flat)}")

    def check(self, shape: Shape) -> None:
        for part in self.parts:
            part.check(shape)

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.parts))
