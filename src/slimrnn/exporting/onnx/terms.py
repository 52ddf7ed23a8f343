"""The terms of a recurrent map as ONNX: x (B, n) to the products of some gates side by side, (B, k n).

Each takes its tensors as the native core does (csrc/structures), and makes once, outside of the loop, what it
multiplies with there. Sparse, circulant and UnitaryProduct matrices are written out when a session starts: the file has
their few numbers only.

Shape suffixes: G gates, k of these that are asked for, n units, b blocks, r rank.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import onnx_ir as ir

from slimrnn.errors import ExportError
from slimrnn.exporting.onnx.nodes import Nodes, Numbers

Product = Callable[[Nodes, Numbers], Numbers]  # (nodes within the loop, x) -> y


class Gates(NamedTuple):
    """Those that are asked for, and the number of units."""

    first: int
    last: int
    units: int

    @property
    def number(self) -> int:
        return self.last - self.first


class Operand(NamedTuple):
    """A tensor of a term and its shape, where a pair is no axis."""

    numbers: Numbers
    shape: tuple[int, ...]

    def of(self, nodes: Nodes, gates: Gates) -> Numbers:
        """Those of the gates, which the first axis counts."""
        if (gates.first, gates.last) == (0, self.shape[0]):
            return self.numbers
        return nodes.cut(self.numbers, gates.first, gates.last)


def block_diagonal(nodes: Nodes, gates: Gates, tensors: Sequence[Operand]) -> Product:
    """(G, n, n), or (G, b, n/b, n/b)"""
    (weight,) = tensors
    w, k = weight.of(nodes, gates), gates.number
    if len(weight.shape) == 3:
        return written_out(nodes, gates, w)
    _, b, rows, columns = weight.shape
    matrix = nodes.matrix(nodes.reshape(nodes.transpose(w, 1, 3, 0, 2), b, columns, k * rows))

    def product(inner: Nodes, x: Numbers) -> Numbers:
        by_block = inner.transpose(inner.reshape(x, 0, b, columns), 1, 0, 2)
        y = inner.matmul(by_block, matrix, k * rows)  # (b, B, k n/b)
        if k > 1:
            return inner.reshape(inner.transpose(inner.reshape(y, 0, 0, k, rows), 1, 2, 0, 3), 0, k * b * rows)
        return inner.reshape(inner.transpose(y, 1, 0, 2), 0, b * rows)

    return product


def written_out(nodes: Nodes, gates: Gates, w: Numbers) -> Product:
    """Of matrices (k, n, n)."""
    width = gates.number * gates.units
    matrix = nodes.matrix(nodes.transpose(nodes.reshape(w, width, gates.units), 1, 0))
    return lambda inner, x: inner.matmul(x, matrix, width)


def diagonal(nodes: Nodes, gates: Gates, tensors: Sequence[Operand]) -> Product:
    """(G, n)"""
    d = nodes.reshape(tensors[0].of(nodes, gates), 1, gates.number * gates.units)
    return lambda inner, x: inner.mul(inner.joined([x] * gates.number, -1), d)


def low_rank(nodes: Nodes, gates: Gates, tensors: Sequence[Operand]) -> Product:
    """left (G, n, r) and right (G, r, n), or (r, n) for all"""
    (left, right), k = tensors, gates.number
    n, r = left.shape[1:]
    outward = left.of(nodes, gates)
    if len(right.shape) == 2 or k == 1:
        down = nodes.reshape(right.numbers if len(right.shape) == 2 else right.of(nodes, gates), r, n)
        inward = nodes.matrix(nodes.transpose(down, 1, 0))
        all_left = nodes.matrix(nodes.transpose(nodes.reshape(outward, k * n, r), 1, 0))
        return lambda inner, x: inner.matmul(inner.matmul(x, inward, r), all_left, k * n)
    inward = nodes.matrix(nodes.transpose(nodes.reshape(right.of(nodes, gates), k * r, n), 1, 0))
    by_gate = nodes.matrix(nodes.transpose(outward, 0, 2, 1))

    def product(inner: Nodes, x: Numbers) -> Numbers:
        low = inner.transpose(inner.reshape(inner.matmul(x, inward, k * r), 0, k, r), 1, 0, 2)
        return inner.reshape(inner.transpose(inner.matmul(low, by_gate, n), 1, 0, 2), 0, k * n)

    return product


def kronecker(nodes: Nodes, gates: Gates, tensors: Sequence[Operand]) -> Product:
    """factors (G, p, q), of which the last acts on the fastest digit"""
    k = gates.number
    sizes = [factor.shape[1:] for factor in tensors]
    factors = [nodes.matrix(nodes.transpose(factor.of(nodes, gates), 0, 2, 1)) for factor in tensors]

    def product(inner: Nodes, x: Numbers) -> Numbers:
        width, y, many = gates.units, x, 1
        for (p, q), factor in zip(reversed(sizes), reversed(factors), strict=True):
            rest = width // q
            y = inner.matmul(inner.reshape(y, many, -1, q), factor, p)
            many, width = k, rest * p
            y = inner.transpose(inner.reshape(y, k, -1, rest, p), 0, 1, 3, 2)
        y = inner.reshape(y, k, -1, width)
        return inner.reshape(y, -1, width) if k == 1 else inner.reshape(inner.transpose(y, 1, 0, 2), 0, k * width)

    return product


def permutation(nodes: Nodes, gates: Gates, tensors: Sequence[Operand]) -> Product:
    """order (n)"""
    order = tensors[0].numbers.re
    return lambda inner, x: inner.joined([inner.take(x, order, 1)] * gates.number, -1)


def sparse(nodes: Nodes, gates: Gates, tensors: Sequence[Operand]) -> Product:
    """values (G, k) at positions i n + j (G, k)"""
    values, positions = (tensor.of(nodes, gates) for tensor in tensors)
    shape = nodes.ints(gates.number, gates.units**2)
    empty = nodes("Expand", nodes.number(0.0), shape)
    entries = [nodes("ScatterElements", empty, positions.re, part, axis=1) for part in values.parts]
    return written_out(nodes, gates, Numbers(*entries))


def circulant(nodes: Nodes, gates: Gates, tensors: Sequence[Operand]) -> Product:
    """column (G, n): W_ij = c_{i - j}"""
    steps = _steps(nodes, gates.units)
    differences = nodes("Sub", nodes("Unsqueeze", steps, nodes.ints(1)), steps)
    wrapped = nodes("Mod", differences, nodes.whole(gates.units))
    return written_out(nodes, gates, nodes.take(tensors[0].of(nodes, gates), wrapped, 1))


def unitary_product(nodes: Nodes, gates: Gates, tensors: Sequence[Operand]) -> Product:
    """phases (G, 3, n), reflections (G, 2, n), order (n): D₃ R₂ F⁻¹ D₂ Π R₁ F D₁ of every unit vector"""
    n = gates.units
    phases, reflections = (tensor.of(nodes, gates) for tensor in tensors[:2])
    order = tensors[2].numbers.re
    d1, d2, d3 = (nodes.cut(phases, i, i + 1, 1) for i in range(3))  # (k, 1, n)
    v1, v2 = (nodes.cut(reflections, i, i + 1, 1) for i in range(2))
    steps = _steps(nodes, n)
    turns = nodes("Mod", nodes("Mul", nodes("Unsqueeze", steps, nodes.ints(1)), steps), nodes.whole(n))
    angles = [2 * math.pi * k / n for k in range(n)]  # not by Cos: older runtimes lack it in double precision
    waves = [nodes.numbers([n**-0.5 * wave(angle) for angle in angles]) for wave in (math.cos, math.sin)]
    back = nodes.take(Numbers(*waves), turns, 0)

    def reflected(y: Numbers, v: Numbers) -> Numbers:
        y_v = nodes.mul(nodes.conj(v), y)
        along = Numbers(*(nodes("ReduceSum", part, nodes.ints(-1)) for part in y_v.parts))
        return nodes.sub(y, nodes.mul(nodes.mul(Numbers(nodes.number(2.0)), v), along))

    identity = Numbers(nodes("EyeLike", nodes("Expand", nodes.number(0.0), nodes.ints(n, n))))
    y = nodes.matmul(nodes.mul(identity, d1), nodes.matrix(nodes.conj(back)), n)
    y = nodes.mul(nodes.take(reflected(y, v1), order, 2), d2)
    y = nodes.mul(reflected(nodes.matmul(y, nodes.matrix(back), n), v2), d3)
    return written_out(nodes, gates, nodes.transpose(y, 0, 2, 1))


def _steps(nodes: Nodes, n: int) -> ir.Value:
    return nodes("Range", nodes.whole(0), nodes.whole(n), nodes.whole(1))


def chain(nodes: Nodes, gates: Gates, tensors: Sequence[Operand], written: str) -> Product:
    """Factors from left to right, as `ProductMap.written` has them. Between two factors each gate has a vector of its
    own."""
    left = list(tensors)
    factors: list[list[tuple[str, list[Operand]]]] = []
    for terms in json.loads(written):
        factors.append([])
        for name, count in terms:
            factors[-1].append((name, left[:count]))
            del left[:count]
    *others, last = factors
    singles = [Gates(g, g + 1, gates.units) for g in range(gates.first, gates.last)]
    first_product = total(nodes, gates, last)
    products = [[total(nodes, one, terms) for one in singles] for terms in reversed(others)]

    def product(inner: Nodes, x: Numbers) -> Numbers:
        y = inner.splits(first_product(inner, x), [gates.units] * gates.number, -1)
        for of_gates in products:
            y = [one(inner, v) for one, v in zip(of_gates, y, strict=True)]
        return inner.joined(y, -1)

    return product


TERMS = {
    "block_diagonal": block_diagonal,
    "diagonal": diagonal,
    "low_rank": low_rank,
    "kronecker": kronecker,
    "permutation": permutation,
    "sparse": sparse,
    "circulant": circulant,
    "unitary_product": unitary_product,
}


def total(nodes: Nodes, gates: Gates, terms: Sequence[tuple[str, Sequence[Operand]]]) -> Product:
    """The sum of terms."""
    products = []
    for name, tensors in terms:
        kind, _, written = name.partition("/")
        if kind == "chain":
            products.append(chain(nodes, gates, tensors, written))
        elif kind in TERMS:
            products.append(TERMS[kind](nodes, gates, tensors))
        else:
            raise ExportError(f"expected a structure of {', '.join(TERMS)}, got {name}, which has no ONNX yet")

    def product(inner: Nodes, x: Numbers) -> Numbers:
        y = products[0](inner, x)
        for other in products[1:]:
            y = inner.add(y, other(inner, x))
        return y

    return product
