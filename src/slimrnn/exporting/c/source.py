"""A C file while it is written: constants, functions, and of the common ones those that are called."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from slimrnn.errors import ExportError
from slimrnn.exporting.c import text
from slimrnn.exporting.c.int8_kernels import INT8_KERNELS
from slimrnn.exporting.c.kernels import KERNELS
from slimrnn.exporting.c.mathematics import FUNCTIONS

COMMON = FUNCTIONS | KERNELS | INT8_KERNELS
BYTES = {"float": 4, "int8_t": 1, "uint8_t": 1, "int16_t": 2, "uint16_t": 2, "int32_t": 4, "uint32_t": 4}
WHOLE = {
    "uint8_t": (0, 255),
    "uint16_t": (0, 65535),
    "uint32_t": (0, 2**32 - 1),
}


class Source:
    """Everything but the two functions that a user calls."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.constants: list[str] = []
        self.functions: list[str] = []
        self.called: set[str] = set()
        self.weight_bytes = 0

    def name(self, own: str) -> str:
        return f"{self.prefix}_{own}"

    # --- constants -----------------------------------------------------------------------------------------------

    def floats(self, own: str, values: Tensor, what: str) -> str:
        """A constant array of the numbers one after the other -> its name."""
        numbers = values.detach().flatten()
        if numbers.dtype != torch.float32:
            raise ExportError(f"expected float32 weights for C, got {what} of {values.dtype}: export model.float()")
        if not bool(torch.isfinite(numbers).all()):
            raise ExportError(f"expected finite weights, got infinite ones or NaN in {what}")
        return self._array("float", own, [text.real(value) for value in numbers.tolist()], values, what)

    def whole(self, own: str, values: Tensor, what: str, kind: str | None = None) -> str:
        """Likewise of integers, by default of the smallest type that holds them."""
        numbers = [int(value) for value in values.flatten().tolist()]
        low, high = min(numbers), max(numbers)
        if kind is None:
            kind = next(name for name, (least, most) in WHOLE.items() if least <= low and high <= most)
        return self._array(kind, own, [str(number) for number in numbers], values, what)

    def _array(self, kind: str, own: str, numbers: list[str], values: Tensor, what: str) -> str:
        name = self.name(own)
        shape = " x ".join(map(str, values.shape))
        self.weight_bytes += BYTES[kind] * len(numbers)
        self.constants.append(
            f"{text.comment(f'{what}, {shape}')}\n"
            f"static const {kind} {name}[{len(numbers)}] = {{\n    {text.rows(numbers)}\n}};\n"
        )
        return name

    # --- functions -----------------------------------------------------------------------------------------------

    def common(self, own: str) -> str:
        """The name of a common function, which is written then, with all that it calls."""
        if own not in self.called:
            self.called.add(own)
            for other in re.findall(r"@(\w+)", COMMON[own]):
                self.common(other)
        return self.name(own)

    def function(self, head: str, body: Body, what: str) -> None:
        self.functions.append(f"{text.comment(what)}\nstatic {head}\n{{\n{body}}}\n")

    def text(self) -> str:
        """The whole of it, in the order that C needs."""
        common = [body.replace("@", f"{self.prefix}_") for own, body in COMMON.items() if own in self.called]
        return "\n".join([*common, *self.constants, *self.functions])


class Body:
    """The statements of a function, and the arrays that it needs while it runs."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.arrays: list[str] = []
        self.lines: list[str] = []
        self.bytes = 0
        self.depth = 1

    def array(self, own: str, count: int, kind: str = "float") -> str:
        name = f"{own}_{len(self.arrays)}"
        self.arrays.append(f"    {kind} {name}[{count}];\n")
        self.bytes += count * BYTES[kind]
        return name

    def line(self, statement: str) -> None:
        self.lines.append(f"{'    ' * self.depth}{statement}\n")

    def call(self, own: str, *arguments: object) -> None:
        self.line(f"{self.source.common(own)}({', '.join(map(str, arguments))});")

    @contextmanager
    def loop(self, count: int | str, name: str = "k") -> Iterator[None]:
        self.line(f"for (size_t {name} = 0; {name} < {count}; {name}++) {{")
        self.depth += 1
        yield
        self.depth -= 1
        self.line("}")

    def clear(self, count: int, at: str) -> None:
        self.call("clear", count, at)

    def __str__(self) -> str:
        return "".join([*self.arrays, *self.lines])


Emit = Callable[[Body], None]


def at(base: str, offset: int) -> str:
    """A place in an array."""
    return base if offset == 0 else f"{base} + {offset}"
