"""A cell as the native core takes it: sizes, recurrent products, and two programs (`slimrnn_cell` in csrc/include).

`slimrnn.tracing` writes them. Where the library was built with C++ for the same step, that runs instead.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
from functools import cache, cached_property
from typing import Any, NamedTuple

from slimrnn.ops.library import CellStruct, InstructionStruct, PlaceStruct, ProgramStruct, cell_codes

Instruction = tuple[int, int, int, int, int]  # op, to, a, b, c
Quadruple = tuple[int, int, int, int]


class CellProgram(NamedTuple):
    """The fields of `slimrnn_cell`."""

    gates: int
    matrices: int
    states: int
    own_rows: int
    slots: int
    kept: int
    spares: int
    row_sums: int
    registers: int
    products: tuple[Quadruple, ...] = ()
    places: tuple[Quadruple, ...] = ()
    constants: tuple[float | None, ...] = ()  # None: one over the number of units
    forward: tuple[Instruction, ...] = ()
    backward: tuple[Instruction, ...] = ()
    by_hand: str = ""  # the name of C++ that was not made from programs, and has none

    @property
    def fingerprint(self) -> str:
        """Names the C++ that computes the same."""
        return self.by_hand or hashlib.sha256(repr(tuple(self)).encode()).hexdigest()[:16]


class NativeCell:
    """A program and what is derived from it. Not a tuple: torch.compile looks only at the attributes that it meets."""

    def __init__(self, program: CellProgram) -> None:
        self.program = program
        self.text = json.dumps(program, separators=(",", ":"))
        self.gates, self.states, self.slots, self.kept = program.gates, program.states, program.slots, program.kept
        self._structs: dict[int, CellStruct] = {}

    @cached_property
    def code(self) -> int:
        """The number of its C++ in the library, or -1."""
        return cell_codes().get(self.program.fingerprint, -1)

    def struct(self, width: int) -> CellStruct:
        """For states of so many real numbers."""
        if width not in self._structs:
            self._structs[width] = filled(self.program, self.code, width)
        return self._structs[width]

    def __reduce__(self) -> tuple[Any, ...]:
        return decoded, (self.text,)


@cache
def decoded(text: str) -> NativeCell:
    """A cell from its text."""

    def frozen(value: Any) -> Any:
        return tuple(map(frozen, value)) if isinstance(value, list) else value

    return NativeCell(CellProgram(*frozen(json.loads(text))))


def filled(program: CellProgram, code: int, width: int) -> CellStruct:
    """The struct, with the arrays that its pointers need alive in `held`."""
    places = (PlaceStruct * len(program.places))(*(PlaceStruct(*place) for place in program.places))
    numbers = [1.0 / width if value is None else value for value in program.constants]
    constants = (ctypes.c_double * len(numbers))(*numbers)
    programs = []
    for instructions in (program.forward, program.backward):
        lines = (InstructionStruct * len(instructions))(*(InstructionStruct(*i) for i in instructions))
        programs.append(ProgramStruct(lines, len(instructions)))
    struct = CellStruct(
        code=code,
        gates=program.gates,
        matrices=program.matrices,
        states=program.states,
        own_rows=program.own_rows,
        slots=program.slots,
        kept=program.kept,
        spares=program.spares,
        row_sums=program.row_sums,
        product_count=len(program.products),
        place_count=len(program.places),
        constant_count=len(program.constants),
        register_count=program.registers,
        places=places,
        constants=constants,
        forward=programs[0],
        backward=programs[1],
    )
    for number, product in enumerate(program.products):
        struct.products[number] = product
    struct.held = (places, constants, *programs)
    return struct
