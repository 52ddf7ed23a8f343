"""The rooms of the house: imports go one way, nothing private crosses a wall, and no modules import each other."""

from __future__ import annotations

import re
from pathlib import Path

from import_graph import LEVELS, RANKS, Import, cycles, imports, modules, room_of

from pages import check_figures

MODULES = modules()
IMPORTS = imports(MODULES)
HOW_TO_ADD = "LEVELS of docs/figures/import_graph.py has a level for every room, PLANNED those without files"

PLANNED: set[str] = set()  # rooms that have a level and no files yet


def crossing() -> list[Import]:
    return sorted(edge for edge in IMPORTS if room(edge.importer) != room(edge.imported))


def room(module: str) -> str:
    return room_of(module, MODULES)


def package_of(module: str) -> str:
    return module if MODULES[module].name == "__init__.py" else module.rpartition(".")[0]


def may_import(importer: str, module: str) -> bool:
    """What begins with an underscore is for the package that it is in: `slimrnn._checks` is the foundation for all."""
    parts = module.split(".")
    private = next((depth for depth, part in enumerate(parts) if part.startswith("_")), None)
    return private is None or importer.split(".")[:private] == parts[:private]


def test_every_room_has_a_level() -> None:
    rooms = {room(module) for module in MODULES}
    assert not rooms - RANKS.keys(), f"rooms without a level: {sorted(rooms - RANKS.keys())}; {HOW_TO_ADD}"
    assert RANKS.keys() - rooms == PLANNED, f"rooms without files: {sorted(RANKS.keys() - rooms)}; {HOW_TO_ADD}"
    assert sum(map(len, LEVELS)) == len(RANKS)


def test_imports_go_down() -> None:
    upward = {(e.importer, e.imported) for e in crossing() if RANKS[room(e.importer)] <= RANKS[room(e.imported)]}
    assert not upward, f"expected imports from lower rooms only, see LEVELS: {sorted(upward)}"


def test_private_modules_stay_in_their_package() -> None:
    private = sorted((e.importer, e.imported) for e in IMPORTS if not may_import(e.importer, e.imported))
    assert not private, f"expected public modules of another package, got private ones: {private}"


def test_examples_use_public_modules() -> None:
    """What a user copies from: nothing private, and nothing of the command line."""
    texts = [path.read_text() for path in sorted((Path(__file__).parents[1] / "examples").glob("*.py"))]
    used = {name for text in texts for name in re.findall(r"^ *(?:from|import) (slimrnn[\w.]*)", text, re.MULTILINE)}
    assert "slimrnn" in used
    assert not {name for name in used if "._" in name or name.startswith("slimrnn.cli")}


def test_rooms_within_a_room_do_not_import_each_other() -> None:
    between = {Import(package_of(e.importer), package_of(e.imported), e.at_start) for e in IMPORTS}
    inner = {edge for edge in between if edge.importer.count(".") > 1 and edge.imported.count(".") > 1}
    found = [sorted(cycle) for cycle in cycles(inner)]
    assert not found, f"packages import each other: {found}"


def test_modules_do_not_import_each_other() -> None:
    found = [sorted(cycle) for cycle in cycles(IMPORTS)]
    assert not found, f"modules import each other: {found}"


def test_the_house_is_drawn(tmp_path: Path) -> None:
    check_figures("../CONTRIBUTING.md", "house.py", tmp_path, most_bytes=120_000)
