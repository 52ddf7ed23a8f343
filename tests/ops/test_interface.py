"""The C header, the ctypes structs and the structures that python names say the same."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path
from typing import Any

import pytest

from registry import FIELDS, SIZE, STRUCTURES, needs_library
from slimrnn.ops import library
from slimrnn.structures import StructuredMap
from slimrnn.tracing import program

HEADER = Path(__file__).parents[2] / "csrc/include/slimrnn.h"
TYPES: dict[str, Any] = {"int32_t": ctypes.c_int32, "int64_t": ctypes.c_int64}
STRUCTS = {
    "slimrnn_tensor": library.TensorStruct,
    "slimrnn_term": library.TermStruct,
    "slimrnn_product_spec": library.ProductSpecStruct,
    "slimrnn_place": library.PlaceStruct,
    "slimrnn_instruction": library.InstructionStruct,
    "slimrnn_program": library.ProgramStruct,
    "slimrnn_cell": library.CellStruct,
    "slimrnn_scan": library.ScanStruct,
    "slimrnn_memory": library.MemoryStruct,
}


def header() -> str:
    """Without comments."""
    return re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.DOTALL)


def constants() -> dict[str, int]:
    return {name: int(value) for name, value in re.findall(r"(SLIMRNN_\w+)(?: = | )(\d+)", header())}


def fields_of(struct: str) -> list[tuple[str, str]]:
    """(name, type) of every field, a pointer's type ending in *, an array's in its length."""
    found = []
    (body,) = re.findall(r"typedef struct \{([^}]*)\} " + struct + ";", header())
    for declaration in body.split(";")[:-1]:
        kind, names = re.fullmatch(r"\s*(?:const )?(\w+) (.*)", declaration, re.DOTALL).groups()  # type: ignore[union-attr]
        for name in names.split(","):
            bare, _, length = re.sub(r"\*(const\b)?|\s", "", name).partition("[")
            size = constants()[length[:-1]] if length else ""
            found.append((bare, f"{kind}{'*' if '*' in name else ''}{size}"))
    return found


def type_of(kind: Any) -> str:
    names = {ctypes.c_int32: "int32_t", ctypes.c_int64: "int64_t", ctypes.c_uint64: "uint64_t", ctypes.c_void_p: "*"}
    names |= {ctypes.c_double: "double"} | {struct: name for name, struct in STRUCTS.items()}
    if kind in names:
        return names[kind]
    if issubclass(kind, ctypes.Array):
        return f"{names[kind._type_]}{kind._length_}"
    return f"{names[kind._type_]}*"


@pytest.mark.parametrize("name", STRUCTS)
def test_structs_are_those_of_the_header(name: str) -> None:
    ours = [(field[0], type_of(field[1])) for field in STRUCTS[name]._fields_]
    untyped = {"void*": "*", "int64_t*": "*", "uint8_t*": "*"}
    assert ours == [(field, untyped.get(kind, kind)) for field, kind in fields_of(name)]


def test_numbers_are_those_of_the_header() -> None:
    assert constants()["SLIMRNN_ABI"] == library.ABI
    assert constants()["SLIMRNN_CHANGED"] == library.CHANGED
    for name in ("states", "gates", "products", "registers"):
        assert constants()[f"SLIMRNN_MOST_{name.upper()}"] == getattr(program, f"MOST_{name.upper()}")


def enumerators(name: str) -> list[str]:
    (body,) = re.findall(r"enum " + name + r" \{([^}]*)\}", header())
    return [word.strip().removeprefix("SLIMRNN_") for word in body.split(",") if word.strip()]


def test_instructions_and_places_are_those_of_the_header() -> None:
    assert enumerators("slimrnn_op") == [*program.OPS, "OPS"]
    assert enumerators("slimrnn_place_kind") == [*program.PLACES, "PLACE_KINDS"]


@needs_library
def test_limits_are_those_of_the_header() -> None:
    assert (library.limits.terms, library.limits.phases) == (
        constants()["SLIMRNN_MOST_TERMS"],
        constants()["SLIMRNN_MOST_PHASES"],
    )


@needs_library
def test_every_structure_of_the_core_has_a_map_and_every_map_names_one() -> None:
    named = {kind.native for kind in subclasses(StructuredMap)} - {None}
    assert named == set(library.structures())
    for name, (structure, field) in {f"{s} {c}": (STRUCTURES[s], c) for s, c in FIELDS}.items():
        built = structure.build(SIZE, SIZE, 1, complex=field)
        assert built.terms(built.prepare()) is not None, name


def subclasses(kind: type[StructuredMap]) -> list[type[StructuredMap]]:
    own = [c for c in kind.__subclasses__() if c.__module__.startswith("slimrnn.")]
    return [*own, *(deeper for c in own for deeper in subclasses(c))]
