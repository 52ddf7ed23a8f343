"""Who imports whom in src/slimrnn, and how high each room of the house stands. `house.py` draws it, and
tests/test_rooms.py holds it to its rules."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"
PACKAGE = "slimrnn"
FOUNDATION = "foundation"  # slimrnn/_checks.py and the like: what every room may use
# From the ground up. A room imports from lower levels only; rooms of one level do not know each other.
LEVELS = (
    (FOUNDATION,),
    ("ops",),
    ("structures", "cells"),
    ("tracing",),
    ("layers",),
    ("exporting", "compression", "serving"),  # look at layers from outside; some of their names are slimrnn's own
    (PACKAGE,),  # slimrnn/__init__.py: the public names
    ("sequence",),
    ("data", "analysis"),  # analysis looks at layers from outside
    ("training",),
    ("tasks",),
    ("papers",),
    ("estimators",),
    ("cli",),
)
RANKS = {room: height for height, rooms in enumerate(LEVELS) for room in rooms}


@dataclass(frozen=True, order=True)
class Import:
    importer: str
    imported: str
    at_start: bool  # when the importer is imported: not in a function, not for type checkers only


def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    found = {}
    for path in sorted((SOURCE / PACKAGE).rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def room_of(module: str, known: Mapping[str, Path]) -> str:
    """The sub-package, or for the modules beside it: `cli`, which `__main__` starts, the package, the foundation."""
    _, _, inside = module.partition(".")
    if inside == "__main__":
        return "cli"
    if "." not in inside and known[module].name != "__init__.py":
        return FOUNDATION
    return inside.split(".")[0] or PACKAGE


def imports(known: Mapping[str, Path]) -> set[Import]:
    """Of modules of the package by modules of the package."""
    return {
        Import(module, _module(name, known), at_start)
        for module, path in known.items()
        for name, at_start in _imported_names(ast.parse(path.read_text()), module, path.name == "__init__.py")
        if name.split(".")[0] == PACKAGE
    }


def cycles(found: set[Import]) -> list[set[str]]:
    """The sets of modules that import each other when the first of them is imported."""
    reached = {edge.importer: {edge.importer} for edge in found} | {edge.imported: {edge.imported} for edge in found}
    edges = [(edge.importer, edge.imported) for edge in found if edge.at_start]
    grew = True
    while grew:
        grew = False
        for importer, imported in edges:
            before = len(reached[importer])
            reached[importer] |= reached[imported]
            grew |= len(reached[importer]) > before
    together = {frozenset(other for other in reached[module] if module in reached[other]) for module in reached}
    return sorted((set(one) for one in together if len(one) > 1), key=sorted)


def _module(name: str, known: Mapping[str, Path]) -> str:
    """`slimrnn.ops.native` for a name within it."""
    while name not in known:
        name = name.rpartition(".")[0]
    return name


def _imported_names(node: ast.AST, module: str, is_package: bool, at_start: bool = True) -> Iterator[tuple[str, bool]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from ((alias.name, at_start) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            inside = module.split(".")[: -child.level + is_package or None] if child.level else []
            base = ".".join([*inside, *([child.module] if child.module else [])])
            yield from ((f"{base}.{alias.name}", at_start) for alias in child.names)
        else:
            later = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or (
                isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
            )
            yield from _imported_names(child, module, is_package, at_start and not later)
