"""ONNX nodes, one after the other, on real numbers and on complex ones as pairs of real tensors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import onnx_ir as ir

_numbers = count()


class Numbers(NamedTuple):
    """A tensor; a complex one has imaginary parts, too."""

    re: ir.Value
    im: ir.Value | None = None

    @property
    def parts(self) -> list[ir.Value]:
        return [self.re] if self.im is None else [self.re, self.im]


class Nodes:
    """Makes nodes. `outside` makes those that need to be computed once only, before the loop that these are in."""

    def __init__(self, made: list[ir.Node], dtype: ir.DataType, opset: int, outside: Nodes | None = None) -> None:
        self.made, self.dtype, self.opset = made, dtype, opset
        self.outside = outside or self

    def inside(self) -> Nodes:
        """Of the body of a loop."""
        return Nodes([], self.dtype, self.opset, self.outside)

    # --- values ------------------------------------------------------------------------------------------------

    def several(self, op: str, inputs: Sequence[ir.Value | None], outputs: int, **attributes: Any) -> list[ir.Value]:
        named = ir.convenience.convert_attributes(attributes)
        node = ir.Node("", op, list(inputs), named, num_outputs=outputs, version=self.opset)
        for value in node.outputs:
            value.name = new_name()
        self.made.append(node)
        return list(node.outputs)

    def __call__(self, op: str, *inputs: ir.Value | None, **attributes: Any) -> ir.Value:
        return self.several(op, inputs, 1, **attributes)[0]

    def ints(self, *values: int) -> ir.Value:
        """One after the other."""
        return self("Constant", value=ir.tensor(np.array(values, dtype=np.int64)))

    def whole(self, value: int) -> ir.Value:
        return self("Constant", value=ir.tensor(np.array(value, dtype=np.int64)))

    def number(self, value: float) -> ir.Value:
        return self("Constant", value=ir.tensor(np.array(value, dtype=self.dtype.numpy())))

    def numbers(self, values: Sequence[float]) -> ir.Value:
        return self("Constant", value=ir.tensor(np.array(values, dtype=self.dtype.numpy())))

    def size(self, x: ir.Value, axis: int) -> ir.Value:
        """(1)"""
        return self("Shape", x, start=axis, end=axis + 1)

    def split(self, x: ir.Value, sizes: Sequence[int], axis: int) -> list[ir.Value]:
        return [x] if len(sizes) == 1 else self.several("Split", [x, self.ints(*sizes)], len(sizes), axis=axis)

    # --- shapes of numbers -------------------------------------------------------------------------------------

    def reshape(self, x: Numbers, *shape: int) -> Numbers:
        """0 is the size before, -1 what is left."""
        return Numbers(*(self("Reshape", part, self.ints(*shape)) for part in x.parts))

    def transpose(self, x: Numbers, *order: int) -> Numbers:
        return Numbers(*(self("Transpose", part, perm=list(order)) for part in x.parts))

    def take(self, x: Numbers, numbers: ir.Value, axis: int) -> Numbers:
        return Numbers(*(self("Gather", part, numbers, axis=axis) for part in x.parts))

    def cut(self, x: Numbers, first: int, last: int, axis: int = 0) -> Numbers:
        places = self.ints(first), self.ints(last), self.ints(axis)
        return Numbers(*(self("Slice", part, *places) for part in x.parts))

    def joined(self, xs: Sequence[Numbers], axis: int) -> Numbers:
        if len(xs) == 1:
            return xs[0]
        return Numbers(*(self("Concat", *parts, axis=axis) for parts in zip(*(x.parts for x in xs), strict=True)))

    def splits(self, x: Numbers, sizes: Sequence[int], axis: int) -> list[Numbers]:
        return [Numbers(*parts) for parts in zip(*(self.split(p, sizes, axis) for p in x.parts), strict=True)]

    def from_pairs(self, x: ir.Value) -> Numbers:
        """(..., n, 2) -> (..., n)"""
        re, im = (self("Gather", x, self.whole(part), axis=-1) for part in (0, 1))
        return Numbers(re, im)

    # --- arithmetic --------------------------------------------------------------------------------------------

    def add(self, a: Numbers, b: Numbers) -> Numbers:
        if a.im is None or b.im is None:
            return Numbers(self("Add", a.re, b.re), b.im if a.im is None else a.im)
        return Numbers(self("Add", a.re, b.re), self("Add", a.im, b.im))

    def sub(self, a: Numbers, b: Numbers) -> Numbers:
        re = self("Sub", a.re, b.re)
        if a.im is None or b.im is None:
            return Numbers(re, a.im if b.im is None else self("Neg", b.im))
        return Numbers(re, self("Sub", a.im, b.im))

    def neg(self, a: Numbers) -> Numbers:
        return Numbers(*(self("Neg", part) for part in a.parts))

    def conj(self, a: Numbers) -> Numbers:
        return Numbers(a.re, None if a.im is None else self("Neg", a.im))

    def mul(self, a: Numbers, b: Numbers) -> Numbers:
        if a.im is None or b.im is None:
            factor, other = (a, b) if a.im is None else (b, a)
            return Numbers(*(self("Mul", factor.re, part) for part in other.parts))
        re = self("Sub", self("Mul", a.re, b.re), self("Mul", a.im, b.im))
        return Numbers(re, self("Add", self("Mul", a.re, b.im), self("Mul", a.im, b.re)))

    def matrix(self, w: Numbers) -> Numbers:
        """As `matmul` takes it on the right: a complex one as a real matrix of four blocks, (re, im) (re, im)."""
        if w.im is None:
            return w
        upper, lower = self("Concat", w.re, w.im, axis=-1), self("Concat", self("Neg", w.im), w.re, axis=-1)
        return Numbers(self("Concat", upper, lower, axis=-2))

    def matmul(self, x: Numbers, matrix: Numbers, width: int) -> Numbers:
        """x times a `matrix` of so many columns, complex ones counting once."""
        if x.im is None:
            return Numbers(self("MatMul", x.re, matrix.re))
        y = self("MatMul", self("Concat", x.re, x.im, axis=-1), matrix.re)
        return Numbers(*self.split(y, (width, width), -1))


def new_name() -> str:
    """Of a value, and of no other."""
    return f"slimrnn_{next(_numbers)}"
