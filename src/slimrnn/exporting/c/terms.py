"""The terms of a map in C: y += W x for some of its gates, whose products lie one after the other.

Each function takes its tensors as the native core does (csrc/structures), writes them as constants, and gives what
makes the calls. Complex tensors are pairs of real numbers.

Shape suffixes: G gates, k of these that are asked for, m rows, n columns, b blocks, r rank.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import torch
from torch import Tensor

from slimrnn.errors import ExportError
from slimrnn.exporting.c.fourier_terms import circulant, unitary_product
from slimrnn.exporting.c.given import Given, Product, Sizes
from slimrnn.exporting.c.source import Body, Source, at


def block_diagonal(given: Given) -> Product:
    """(G, m, n), or (G, b, m/b, n/b)"""
    w, (_, *blocks, rows, columns) = given.floats(0, "matrix"), given.shape()
    count, pairs = (blocks or [1])[0], given.sizes.pairs
    size = rows * columns * pairs

    def product(body: Body, first: int, last: int, x: str, y: str) -> None:
        if count == 1:
            body.call(f"dense{given.suffix}", at(w, first * size), (last - first) * rows, columns, x, y)
            return
        with body.loop(last - first, "g"), body.loop(count, "b"):
            matrix = f"{w} + ({first}u + g) * {count * size} + b * {size}"
            to = f"{y} + g * {count * rows * pairs} + b * {rows * pairs}"
            body.call(f"dense{given.suffix}", matrix, rows, columns, f"{x} + b * {columns * pairs}", to)

    return product


def diagonal(given: Given) -> Product:
    """(G, n)"""
    d, width = given.floats(0, "diagonal"), given.sizes.columns * given.sizes.pairs

    def product(body: Body, first: int, last: int, x: str, y: str) -> None:
        for gate in range(first, last):
            to = at(y, (gate - first) * width)
            body.call(f"diagonal{given.suffix}", at(d, gate * width), given.sizes.columns, x, to)

    return product


def low_rank(given: Given) -> Product:
    """left (G, m, r) and right (G, r, n), or (r, n) for all"""
    left, right = given.floats(0, "left"), given.floats(1, "right")
    (_, m, r), n, pairs = given.shape(0), given.sizes.columns, given.sizes.pairs
    tied = len(given.shape(1)) == 2
    dense = f"dense{given.suffix}"

    def product(body: Body, first: int, last: int, x: str, y: str) -> None:
        count = 1 if tied else last - first
        low = body.array("low", count * r * pairs)
        body.clear(count * r * pairs, low)
        body.call(dense, at(right, 0 if tied else first * r * n * pairs), count * r, n, x, low)
        if tied:
            body.call(dense, at(left, first * m * r * pairs), (last - first) * m, r, low, y)
            return
        for gate in range(first, last):
            here = gate - first
            matrix, of_gate = at(left, gate * m * r * pairs), at(low, here * r * pairs)
            body.call(dense, matrix, m, r, of_gate, at(y, here * m * pairs))

    return product


def kronecker(given: Given) -> Product:
    """factors (G, p, q), of which the last acts on the fastest digit"""
    factors = [given.floats(k, f"factor_{k}") for k in range(len(given.tensors))]
    sizes, pairs = [given.shape(k)[1:] for k in range(len(given.tensors))], given.sizes.pairs
    widths = [given.sizes.columns]  # before and after every factor, from the last one on
    for p, q in reversed(sizes):
        widths.append(widths[-1] // q * p)

    def of_gate(body: Body, gate: int, x: str, y: str, scratch: Sequence[str]) -> None:
        for turn, k in enumerate(reversed(range(len(factors)))):
            p, q = sizes[k]
            is_last = k == 0
            to = y if is_last else scratch[turn % 2]
            if not is_last:
                body.clear(widths[turn + 1] * pairs, to)
            factor = at(factors[k], gate * p * q * pairs)
            body.call(f"kronecker{given.suffix}", factor, p, q, widths[turn] // q, x, to)
            x = to

    def product(body: Body, first: int, last: int, x: str, y: str) -> None:
        most = max([1, *widths[1:-1]]) * pairs
        scratch = [body.array("factor", most) for _ in range(min(2, len(factors) - 1))]
        for gate in range(first, last):
            of_gate(body, gate, x, at(y, (gate - first) * given.sizes.rows * pairs), scratch)

    return product


def permutation(given: Given) -> Product:
    """order (n)"""
    order = given.source.whole(f"{given.name}_order", given.tensors[0], f"{given.what}, order")
    n, pairs = given.sizes.columns, given.sizes.pairs

    def product(body: Body, first: int, last: int, x: str, y: str) -> None:
        for gate in range(last - first):
            to = at(y, gate * n * pairs)
            with body.loop(n):
                if pairs == 1:
                    body.line(f"({to})[k] += ({x})[{order}[k]];")
                for part in range(pairs if pairs == 2 else 0):
                    body.line(f"({to})[2 * k + {part}] += ({x})[2 * {order}[k] + {part}];")

    return product


def sparse(given: Given) -> Product:
    """values (G, k) at positions i n + j (G, k), as rows: where each ends, and the columns"""
    positions, n, pairs = given.tensors[1].long(), given.sizes.columns, given.sizes.pairs
    order = positions.argsort(dim=-1, stable=True)
    values = torch.stack([value[chosen] for value, chosen in zip(given.tensors[0], order, strict=True)])
    positions = positions.gather(-1, order)
    counts = torch.stack([torch.bincount(of_gate // n, minlength=given.sizes.rows) for of_gate in positions])
    gates, count = positions.shape
    ends = counts.cumsum(-1) + count * torch.arange(gates).unsqueeze(1)
    source, name, what = given.source, given.name, given.what
    w = source.floats(f"{name}_values", values, f"{what}, values")
    end = source.whole(f"{name}_ends", ends, f"{what}, where rows end")
    column = source.whole(f"{name}_columns", positions % n, f"{what}, columns")

    def product(body: Body, first: int, last: int, x: str, y: str) -> None:
        body.line("{")
        body.depth += 1
        body.line(f"size_t place = {first * count};")
        with body.loop((last - first) * given.sizes.rows, "i"):
            with_end = f"for (; place < {end}[{first * given.sizes.rows} + i]; place++) {{"
            body.line(with_end)
            body.depth += 1
            _add_entry(body, w, f"{column}[place]", x, y, pairs)
            body.depth -= 1
            body.line("}")
        body.depth -= 1
        body.line("}")

    return product


def _add_entry(body: Body, w: str, column: str, x: str, y: str, pairs: int) -> None:
    if pairs == 1:
        body.line(f"({y})[i] += {w}[place] * ({x})[{column}];")
        return
    body.line(f"const float *const a = {w} + 2 * place, *const b = {x} + 2 * {column};")
    body.line(f"({y})[2 * i] += a[0] * b[0] - a[1] * b[1];")
    body.line(f"({y})[2 * i + 1] += a[0] * b[1] + a[1] * b[0];")


def chain(given: Given, written: str) -> Product:
    """Factors from left to right, as `ProductMap.written` has them, and what the core reads of that, which is left out.
    Between two factors each gate has a vector of its own. All are square but the last."""
    left, sizes = list(given.tensors), given.sizes
    products = []
    described = json.loads(written)
    for number, terms in enumerate(described):
        named = []
        for name, count in terms:
            named.append((name, left[:count]))
            del left[:count]
        columns = sizes.columns if number == len(described) - 1 else sizes.rows
        own = Sizes(sizes.rows, columns, sizes.pairs)
        products.append(total(given.source, f"{given.name}_{number}", f"{given.what}, factor {number}", own, named))
    *others, last_product = products
    width = sizes.rows * sizes.pairs

    def product(body: Body, first: int, last: int, x: str, y: str) -> None:
        between = [body.array("between", width) for _ in range(min(2, len(others)))]
        for gate in range(first, last):
            here, there = between[0], between[-1]
            body.clear(width, here)
            last_product(body, gate, gate + 1, x, here)
            for turn, factor in enumerate(reversed(others)):
                if turn == len(others) - 1:
                    there = at(y, (gate - first) * width)
                else:
                    body.clear(width, there)
                factor(body, gate, gate + 1, here, there)
                here, there = there, here

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


def total(source: Source, name: str, what: str, sizes: Sizes, terms: Sequence[tuple[str, Sequence[Tensor]]]) -> Product:
    """The sum of terms."""
    products = []
    for number, (term, tensors) in enumerate(terms):
        kind, _, written = term.partition("/")
        given = Given(source, f"{name}_{number}", f"{what}: {kind}", sizes, tensors)
        if kind == "chain":
            products.append(chain(given, written))
        elif kind in TERMS:
            products.append(TERMS[kind](given))
        else:
            raise ExportError(f"expected a structure of {', '.join(TERMS)}, got {term}, which has no C yet")

    def product(body: Body, first: int, last: int, x: str, y: str) -> None:
        for one in products:
            one(body, first, last, x, y)

    return product
