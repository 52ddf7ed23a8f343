"""Structures as text: "block-diagonal(4) @ shuffle(4) @ block-diagonal(4) + diagonal".

A comma stands between those of the layers, where they differ: "low-rank(24), dense".

sum     = product { "+" product }
product = factor { "@" factor }
factor  = "(" sum ")" | name [ "(" number { "," number } ")" ] | module ":" name
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import reduce
from operator import add, matmul

from slimrnn import (
    Antisymmetric,
    BlockDiagonal,
    Circulant,
    ComplexDiagonal,
    Dense,
    Diagonal,
    FullUnitary,
    Householder,
    Kronecker,
    Legendre,
    LowRank,
    Permutation,
    Shift,
    Shuffle,
    Sparse,
    UnitaryProduct,
)
from slimrnn.errors import ConfigError
from slimrnn.structures import Structure

Number = int | float | tuple[int, int]
NAMES: dict[str, Callable[..., Structure]] = {
    "dense": Dense,
    "diagonal": Diagonal,
    "low-rank": LowRank,
    "tied-low-rank": lambda rank: LowRank(rank, tied=True),
    "block-diagonal": BlockDiagonal,
    "kronecker": lambda *factors: Kronecker(factors),
    "sparse": lambda density, *seed: Sparse(density, None, *seed),
    "permutation": lambda *seed: Permutation(None, *seed),
    "shift": Shift,
    "shuffle": Shuffle,
    "circulant": Circulant,
    "householder": Householder,
    "antisymmetric": Antisymmetric,
    "legendre": Legendre,
    "complex-diagonal": ComplexDiagonal,
    "full-unitary": FullUnitary,
    "unitary-product": UnitaryProduct,
}
TOKEN = re.compile(r"\s*(?:([A-Za-z_][\w.:-]*)\s*(\([-+\d.eEx,\s]*\))?|([-+@()])|(.))\s*")


class _Reader:
    """The text from left to right. `make` gives the structure of a name and its arguments, None without brackets."""

    def __init__(self, text: str, which: str, make: Callable[[str, tuple[Number, ...] | None], Structure]) -> None:
        self.tokens = [match.groups() for match in TOKEN.finditer(text)]
        self.text, self.which, self.make = text, which, make

    def take(self, sign: str) -> bool:
        if self.tokens and self.tokens[0][2] == sign:
            self.tokens.pop(0)
            return True
        return False

    def sum(self) -> Structure:
        parts = [self.product()]
        while self.take("+"):
            parts.append(self.product())
        return reduce(add, parts)

    def product(self) -> Structure:
        parts = [self.factor()]
        while self.take("@"):
            parts.append(self.factor())
        return reduce(matmul, parts)

    def factor(self) -> Structure:
        if self.take("("):
            inner = self.sum()
            if not self.take(")"):
                raise ConfigError(f"expected every ( of {self.which} to be closed, got {self.text!r}")
            return inner
        if not self.tokens:
            return self.make("", None)
        name, arguments, sign, other = self.tokens.pop(0)
        if name is None:
            return self.make(sign or other, None)
        return self.make(name, None if arguments is None else self.numbers(arguments))

    def numbers(self, arguments: str) -> tuple[Number, ...]:
        texts = [text.strip() for text in arguments[1:-1].split(",") if text.strip()]
        try:
            return tuple(_number(text) for text in texts)
        except ValueError:
            raise ConfigError(f"expected numbers between the brackets of {self.which}, got {arguments}") from None


def read_structure(text: str, which: str, make: Callable[[str, tuple[Number, ...] | None], Structure]) -> Structure:
    """The structure that a text stands for; `which` is the setting that holds it."""
    reader = _Reader(text, which, make)
    found = reader.sum()
    if reader.tokens:
        raise ConfigError(f"expected {which} to be names with + and @ between them, got {text!r}")
    return found


def _number(text: str) -> Number:
    if re.fullmatch(r"\d+x\d+", text):  # the sizes of a factor that is not square
        rows, columns = map(int, text.split("x"))
        return rows, columns
    return int(text) if re.fullmatch(r"[-+]?\d+", text) else float(text)


def texts_of_layers(text: str) -> list[str]:
    """The parts between commas outside of brackets."""
    return re.split(r",(?![^()]*\))", text)


def names_in(text: str | Structure) -> set[str]:
    """The names of the structures in a text; a structure itself brings its own settings and has none."""
    if isinstance(text, Structure):
        return set()
    return {match.group(1) for match in TOKEN.finditer(text) if match.group(1)}


def with_arguments(name: str, arguments: tuple[Number, ...], which: str) -> Structure:
    """The structure of a name that brings its arguments."""
    try:
        return NAMES[name](*arguments)
    except (TypeError, ValueError) as error:
        shown = ", ".join(map(str, arguments))
        raise ConfigError(f"expected arguments that suit {name} in {which}, got ({shown}): {error}") from None
