"""Circulant and UnitaryProduct matrices in C: few numbers, and as many operations as of a dense matrix."""

from __future__ import annotations

import math

import torch

from slimrnn.exporting.c.given import Given, Product
from slimrnn.exporting.c.source import Body, at


def circulant(given: Given) -> Product:
    """column (G, n): W_ij = c_{i - j}"""
    c, n, pairs = given.floats(0, "column"), given.sizes.columns, given.sizes.pairs

    def product(body: Body, first: int, last: int, x: str, y: str) -> None:
        for gate in range(first, last):
            to = at(y, (gate - first) * n * pairs)
            body.call(f"circulant{given.suffix}", at(c, gate * n * pairs), n, x, to)

    return product


def unitary_product(given: Given) -> Product:
    """phases (G, 3, n), reflections (G, 2, n), order (n): D₃ R₂ F⁻¹ D₂ Π R₁ F D₁"""
    source, n = given.source, given.sizes.columns
    phases, reflections = given.floats(0, "phases"), given.floats(1, "reflections")
    order = source.whole(f"{given.name}_order", given.tensors[2], f"{given.what}, order")
    angles = 2 * math.pi / n * torch.arange(n, dtype=torch.float64)
    pairs = torch.stack([angles.cos(), angles.sin()], -1).float()
    roots = source.floats(f"{given.name}_roots", pairs, f"{given.what}, roots of one")
    scale = source.floats(f"{given.name}_scale", torch.tensor([n**-0.5]), f"{given.what}, scale")

    def product(body: Body, first: int, last: int, x: str, y: str) -> None:
        one, other = body.array("turned", 2 * n), body.array("turned", 2 * n)

        def turned(phase: int, gate: int, of: str, to: str) -> None:
            body.call("diagonal_pairs", at(phases, (3 * gate + phase) * 2 * n), n, of, to)

        for gate in range(first, last):
            body.clear(2 * n, one)
            turned(0, gate, x, one)
            body.call("fourier", roots, n, "-1.0f", f"{scale}[0]", one, other)
            body.call("reflect", at(reflections, 4 * gate * n), n, other)
            with body.loop(n):
                body.line(f"{one}[2 * k] = {other}[2 * {order}[k]];")
                body.line(f"{one}[2 * k + 1] = {other}[2 * {order}[k] + 1];")
            body.clear(2 * n, other)
            turned(1, gate, one, other)
            body.call("fourier", roots, n, "1.0f", f"{scale}[0]", other, one)
            body.call("reflect", at(reflections, (4 * gate + 2) * n), n, one)
            turned(2, gate, one, at(y, (gate - first) * 2 * n))

    return product
