"""int8 layers in C, with the bits of `slimrnn.exporting.int8`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor, nn

from slimrnn.exporting.c.given import Given, Product, Sizes
from slimrnn.exporting.c.layers import LayerWriter
from slimrnn.exporting.c.source import Body, Source, at
from slimrnn.exporting.c.terms import diagonal, permutation
from slimrnn.exporting.constant_layer import Terms
from slimrnn.exporting.int8.layer import Int8Layer

Rounded = Callable[[Body, int, int, str, str, str, str], None]  # (body, first, last + 1, x, its int8, its scale, y)


class Int8Writer(LayerWriter):
    """Writes an Int8Layer; `vectors` is the embedding of its tokens, in int8 or not, None where they are one-hot."""

    layer: Int8Layer

    def __init__(self, source: Source, own: str, layer: Int8Layer, tokens: bool, vectors: nn.Module | None) -> None:
        super().__init__(source, own, layer, layer.trace, tokens, vectors)

    def _input_products(self, gates: str) -> None:
        body, source, own, columns = self.body, self.source, self.own, self.layer.u.shape[-1]
        w = source.whole(f"{own}_input", self.layer.u, f"{own}: input, int8", "int8_t")
        scales = source.floats(f"{own}_input_scales", self.layer.u_scale, f"{own}: input, scales")
        self._start_with_bias(0, gates)
        if self.tokens and self.vectors is None:
            body.call("int8_column", w, scales, self.count, columns, "(size_t)token", gates)
            return
        x = self._vector_of_token(columns) if self.tokens else "x"
        numbers, scale = rounded(body, x, columns)
        body.call("int8_dense", w, scales, self.count, columns, numbers, scale, gates)

    def _vector_of_token(self, columns: int) -> str:
        return vector_of_token(self.body, self.source, self.own, self.vectors, columns)

    def _product(self, own: str, terms: Terms) -> Product:
        return total(self.source, own, Sizes(self.units, self.units), terms)

    def _skip(self, oldest: str, gates: str) -> None:
        """An int8 layer has none."""

    def _described(self) -> str:
        return f"int8, {' + '.join(name for name, _ in self.layer.plan.terms) or 'no matrix'}"


def rounded(body: Body, x: str, count: int) -> tuple[str, str]:
    """A vector in int8 -> its place, and that of its scale."""
    numbers, scale = body.array("numbers", count, "int8_t"), body.array("scale", 1)
    body.line(f"{scale}[0] = {body.source.common('round')}({x}, {count}, {numbers});")
    return numbers, f"{scale}[0]"


def vector_of_token(body: Body, source: Source, own: str, vectors: nn.Module | None, columns: int) -> str:
    """A row of an embedding, which may be in int8 itself."""
    assert vectors is not None
    if not hasattr(vectors, "numbers"):
        name = source.floats(f"{own}_embedding", vectors.weight, f"{own}: embedding")  # type: ignore[arg-type]
        return f"{name} + (size_t)token * {columns}"
    numbers = source.whole(f"{own}_embedding", vectors.numbers, f"{own}: embedding, int8", "int8_t")  # type: ignore[arg-type]
    scales = source.floats(f"{own}_embedding_scales", vectors.scale, f"{own}: embedding, scales")  # type: ignore[arg-type]
    x = body.array("vector", columns)
    body.call("int8_vector", f"{numbers} + (size_t)token * {columns}", columns, f"{scales}[token]", x)
    return x


# --- terms -----------------------------------------------------------------------------------------------------------


def _block_diagonal(given: Given) -> Rounded:
    """int8 (G, n, n) or (G, b, m, m), scales (G, n)"""
    _, *blocks, rows, columns = given.tensors[0].shape
    count = (blocks or [1])[0]
    w = given.source.whole(f"{given.name}_matrix", given.tensors[0], f"{given.what}, int8", "int8_t")
    scales = given.floats(1, "scales")
    size, height = rows * columns, count * rows

    def product(body: Body, first: int, last: int, x: str, numbers: str, scale: str, y: str) -> None:
        if count == 1:
            places = at(w, first * size), at(scales, first * rows)
            body.call("int8_dense", *places, (last - first) * rows, columns, numbers, scale, y)
            return
        with body.loop(last - first, "g"), body.loop(count, "b"):
            matrix = f"{w} + ({first}u + g) * {count * size} + b * {size}"
            places = matrix, f"{scales} + ({first}u + g) * {height} + b * {rows}"
            to = f"{y} + g * {height} + b * {rows}"
            body.call("int8_dense", *places, rows, columns, f"{numbers} + b * {columns}", scale, to)

    return product


def _low_rank(given: Given) -> Rounded:
    """left (G, n, r) and right (G, r, n) or (r, n), each int8 with scales"""
    source, name, what = given.source, given.name, given.what
    left = source.whole(f"{name}_left", given.tensors[0], f"{what}, left, int8", "int8_t")
    right = source.whole(f"{name}_right", given.tensors[2], f"{what}, right, int8", "int8_t")
    left_scales, right_scales = given.floats(1, "left_scales"), given.floats(3, "right_scales")
    (_, n, r), tied = given.tensors[0].shape, given.tensors[2].dim() == 2

    def product(body: Body, first: int, last: int, x: str, numbers: str, scale: str, y: str) -> None:
        low, low_numbers, low_scale = body.array("low", r), body.array("numbers", r, "int8_t"), body.array("scale", 1)
        for gate in range(first, last):
            if gate == first or not tied:
                down = 0 if tied else gate
                body.clear(r, low)
                places = at(right, down * r * n), at(right_scales, down * r)
                body.call("int8_dense", *places, r, n, numbers, scale, low)
                body.line(f"{low_scale}[0] = {source.common('round')}({low}, {r}, {low_numbers});")
            places = at(left, gate * n * r), at(left_scales, gate * n)
            to = at(y, (gate - first) * n)
            body.call("int8_dense", *places, n, r, low_numbers, f"{low_scale}[0]", to)

    return product


def _of_floats(term: Callable[[Given], Product]) -> Callable[[Given], Rounded]:
    """A term that has no int8 matrix."""

    def made(given: Given) -> Rounded:
        product = term(given)
        return lambda body, first, last, x, numbers, scale, y: product(body, first, last, x, y)

    return made


TERMS: dict[str, Callable[[Given], Rounded]] = {
    "block_diagonal": _block_diagonal,
    "low_rank": _low_rank,
    "diagonal": _of_floats(diagonal),
    "permutation": _of_floats(permutation),
}
IN_INT8 = ("block_diagonal", "low_rank")


def total(source: Source, name: str, sizes: Sizes, terms: Sequence[tuple[str, Sequence[Tensor]]]) -> Product:
    """The sum of terms, for which x is rounded once."""
    products = [
        TERMS[kind](Given(source, f"{name}_{number}", f"{name}: {kind}", sizes, tensors))
        for number, (kind, tensors) in enumerate(terms)
    ]
    needs_int8 = any(kind in IN_INT8 for kind, _ in terms)

    def product(body: Body, first: int, last: int, x: str, y: str) -> None:
        numbers, scale = rounded(body, x, sizes.columns) if needs_int8 else ("", "")
        for one in products:
            one(body, first, last, x, numbers, scale, y)

    return product
