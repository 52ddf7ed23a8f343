"""Product: W = A B ... of any structures. `BlockDiagonal(g) @ Shuffle(g) @ BlockDiagonal(g)` is a Monarch matrix."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from slimrnn._fixed_buffers import FixedBuffers
from slimrnn.ops.terms import Term, kind_of
from slimrnn.structures.base import ALL, Prepared, Shape, Structure, StructuredMap
from slimrnn.structures.descent import descend_
from slimrnn.structures.permutation import PermutationMap
from slimrnn.structures.sum import Sum

MOST_TERMS = 16  # of all factors together, in the native core (csrc/structures/chain.h)


class ProductMap(FixedBuffers, StructuredMap):
    """y_g = (W_1)_g (W_2)_g ... (W_k)_g h; the product is never written out.

    `chain` tells the native core how the tensors are shared out: for every factor the number of its terms (a sum has
    several), and for every term the code of its structure and the number of its tensors. `written` says the same."""

    native = "chain"
    chain: Tensor

    def __init__(self, spec: Product, shape: Shape, weight_norm: bool = False) -> None:
        super().__init__(spec, shape, weight_norm)
        shapes = _shapes(shape, len(spec.parts))
        maps = [part.map_type(part, s, weight_norm) for part, s in zip(spec.parts, shapes, strict=True)]
        self.parts = nn.ModuleList(maps)
        self.tensor_counts = [len(part.prepare()) for part in maps]
        terms = [part.terms(part.prepare()) for part in maps]
        self.has_kernels = all(terms) and sum(len(t or ()) for t in terms) <= MOST_TERMS
        self.written = _written([some or [] for some in terms])
        self.register_buffer("chain", torch.tensor(self._numbers(), device=shape.device), persistent=False)

    def _numbers(self) -> list[int]:
        return [n for some in json.loads(self.written) for n in _described(some)] if self.has_kernels else [0]

    def fixed_buffers(self) -> dict[str, Tensor]:
        return {"chain": torch.tensor(self._numbers())}

    def _maps(self) -> list[StructuredMap]:
        return [part for part in self.parts if isinstance(part, StructuredMap)]

    def _split(self, prepared: Prepared | None) -> list[tuple[StructuredMap, Prepared]]:
        """The factors from left to right, each with its own tensors."""
        rest, found = prepared or self.prepare(), []
        for part, count in zip(self._maps(), self.tensor_counts, strict=True):
            found.append((part, rest[:count]))
            rest = rest[count:]
        return found

    def prepare(self) -> Prepared:
        return (*(tensor for part in self._maps() for tensor in part.prepare()), self.chain)

    def some_numbers(self, prepared: Prepared | None = None) -> Tensor:
        part, tensors = self._split(prepared)[0]
        return part.some_numbers(tensors)

    def matvec(self, h: Tensor, gates: slice = ALL, prepared: Prepared | None = None) -> Tensor:
        *others, (last, tensors) = self._split(prepared)
        y = last.matvec(h, gates, tensors)
        for part, own in reversed(others):
            y = torch.cat([part.matvec(v, gate, own) for gate, v in self._by_gate(y, gates)], -2)
        return y

    def rmatvec(self, y: Tensor, gates: slice = ALL, prepared: Prepared | None = None) -> Tensor:
        *others, (last, tensors) = self._split(prepared)
        for part, own in others:
            vectors = [part.rmatvec(v.unsqueeze(-2), gate, own) for gate, v in self._by_gate(y, gates)]
            y = torch.stack(vectors, -2)
        return last.rmatvec(y, gates, tensors)

    def _by_gate(self, y: Tensor, gates: slice) -> list[tuple[slice, Tensor]]:
        """Between two factors each gate has a vector of its own."""
        numbers = range(*gates.indices(self.shape.gates))
        return [(slice(g, g + 1), v) for g, v in zip(numbers, y.unbind(-2), strict=True)]

    def terms(self, prepared: Prepared) -> list[Term] | None:
        return [Term(f"chain/{self.written}", prepared)] if self.has_kernels else None

    @property
    def term_count(self) -> int | None:
        return 1 if self.has_kernels else None

    def clip_rows_(self, max_norm: float) -> None:
        for part in self._maps():
            part.clip_rows_(max_norm)

    def penalty(self) -> Tensor:
        first, *others = (part.penalty() for part in self._maps())
        return sum(others, first)

    @property
    def macs(self) -> int:
        """The last factor multiplies one vector for all gates, the others one for each."""
        *others, last = self._maps()
        return last.macs + sum(self.shape.gates * _macs_of_one_gate(part) for part in others)

    def project_(self, matrix: Tensor) -> None:
        """With one factor and permutations around it, that factor's own nearest member: ‖M − ΠXΠ'‖ = ‖ΠᴴMΠ'ᴴ − X‖.
        Else a local optimum, found from the present parameters; the error never rises."""
        parts = self._maps()
        free = [k for k, part in enumerate(parts) if not isinstance(part, PermutationMap)]
        if not free:
            return
        if len(free) > 1:
            descend_(self, matrix)
            return
        before, after = parts[: free[0]], parts[free[0] + 1 :]
        for part in before:
            matrix = part.dense().mH @ matrix
        for part in reversed(after):
            matrix = matrix @ part.dense().mH
        parts[free[0]].nearest_(matrix)


def _shapes(shape: Shape, count: int) -> Iterator[Shape]:
    """Square ones and, on the right, the one that takes the input."""
    for _ in range(count - 1):
        yield replace(shape, in_size=shape.out_size)
    yield shape


def _described(terms: list[tuple[str, int]]) -> list[int]:
    return [len(terms), *(n for name, tensors in terms for n in (structure_code(kind_of(name)), tensors))]


def _written(factors: list[list[Term]]) -> str:
    """For exporters, which do not see the numbers in `chain`: name and number of tensors of every term, by factor."""
    return json.dumps(
        [[(term.structure, len(term.tensors)) for term in some] for some in factors], separators=(",", ":")
    )


def structure_code(name: str) -> int:
    """The name of a native structure as a number (FNV-1a, 32 bits)."""
    code = 2166136261
    for byte in name.encode():
        code = (code ^ byte) * 16777619 % 2**32
    return code


def _macs_of_one_gate(part: StructuredMap) -> int:
    return part.spec.map_type(part.spec, replace(part.shape, gates=1, device="meta")).macs


@dataclass(frozen=True)
class Product(Structure):
    """The product of two or more structures; written with `@`. The state meets the last one first.

    All factors are square but the last, which takes the input where it is not."""

    parts: tuple[Structure, ...]

    map_type = ProductMap

    def __post_init__(self) -> None:
        flat: list[Structure] = []
        for part in self.parts:
            if not isinstance(part, Structure):
                raise TypeError(f"expected structures to multiply, got {part!r}")
            flat.extend(part.parts if isinstance(part, Product) else [part])
        object.__setattr__(self, "parts", tuple(flat))
        if len(flat) < 2:
            raise ValueError(f"expected at least two structures to multiply, got {len(flat)}")

    def check(self, shape: Shape) -> None:
        for part, own in zip(self.parts, _shapes(shape, len(self.parts)), strict=True):
            part.check(own)

    def __repr__(self) -> str:
        return " @ ".join(f"({part!r})" if isinstance(part, Sum) else repr(part) for part in self.parts)
