"""The rooms of the package and their imports, read from the source, and the way of a minibatch through them:
`python docs/figures/house.py` writes the figure beside itself, or into a directory given."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

from figure_style import save
from import_graph import FOUNDATION, PACKAGE, RANKS, imports, modules, room_of
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from slimrnn.plotting import COLORS, GREY

BLUE, RED, GREEN = COLORS[:3]
COLOR = {"csrc": COLORS[4], "cells": GREEN, "structures": GREEN}  # of rooms; the others are blue
Point = tuple[float, float]
WIDTH, HEIGHT = 2.5, 0.78
# Where a room stands, column and floor; what it is for. A room that is not here is drawn in the last column.
PLACES = {
    "cli": (1.5, 9, "one file per command"),
    "estimators": (1.75, 8, "fit, predict"),
    "papers": (0.5, 8, "rows, settings, verdicts"),
    "tasks": (1.5, 7, "data, loss, scores"),
    "data": (0, 5, "downloads, readers"),
    "training": (1.5, 6, "the loop, exact resume"),
    "sequence": (1.5, 5, "encoders, decoders"),
    "layers": (1.5, 4, "RNN, GRU, LSTM: stacks"),
    "tracing": (0, 3, "a cell's step as a graph"),
    "cells": (1, 2, "how the state is updated"),
    "structures": (2, 2, "how W is stored"),
    "ops": (1.5, 1, "time loop: torch, native"),
    "csrc": (1.5, 0, "the time loop in C++"),
    "analysis": (3, 5, "what a net remembers"),
    "exporting": (3, 6, "ONNX, C99, int8"),
    "compression": (3, 7, "smaller nets from large"),
    "serving": (3, 8, "many streams at once"),
}
BATCH = (  # the stations of a minibatch, in order
    ("data", "files become tensors"),
    ("tasks", "a batch $(x, y)$ is drawn"),
    ("training", "forward, loss, backward, update"),
    ("layers", "input products $U x_t + b$, all steps at once"),
    ("structures", "$W h$ prepared once per sequence"),
    ("cells", "which gates, which update"),
    ("ops", "one call for the whole sequence"),
    ("csrc", "$h_t = \\mathrm{cell}(U x_t + b,\\ W h_{t-1})$ for every $t$"),
)


def main(directory: Path = Path(__file__).parent) -> None:
    figure = Figure(figsize=(12.6, 8.6), dpi=130)
    left, right = figure.subplots(1, 2, width_ratios=(1.75, 1))
    figure.subplots_adjust(0, 0, 1, 0.9, wspace=0.03)
    draw_rooms(left)
    draw_batch(right)
    save(figure, directory / "house.png")


def edges() -> Counter[tuple[str, str]]:
    """How many imports go from one room to another. Every room uses the foundation: it is left out. Who imports the
    public names imports layers; what slimrnn/__init__.py collects itself is no room's import."""
    known = modules()
    rooms = {module: room_of(module, known).replace(PACKAGE, "layers") for module in known}
    within = [edge for edge in imports(known) if edge.importer != PACKAGE]
    found = Counter((rooms[edge.importer], rooms[edge.imported]) for edge in within)
    return Counter({pair: n for pair, n in found.items() if pair[0] != pair[1] and FOUNDATION not in pair})


def places(rooms: list[str]) -> dict[str, Point]:
    """Floors without rooms are left out; rooms that `PLACES` does not know stand in a column of their own."""
    floors = sorted({PLACES[room][1] for room in rooms if room in PLACES})
    found = {room: (PLACES[room][0], floors.index(PLACES[room][1])) for room in rooms if room in PLACES}
    found |= {room: (4, floor) for floor, room in enumerate(sorted(set(rooms) - found.keys()))}
    return {room: (column * (WIDTH + 0.45), floor * 1.3) for room, (column, floor) in found.items()}


def is_shortcut(pair: tuple[str, str], pairs: set[tuple[str, str]]) -> bool:
    """Whether the imports lead from the first room to the second by way of others, too."""
    reached = {end for start, end in pairs if start == pair[0]} - {pair[1]}
    while more := {end for start, end in pairs if start in reached} - reached:
        reached |= more
    return pair[1] in reached


def draw_rooms(axes: Axes) -> None:
    found = edges()
    found["ops", "csrc"] = found["structures", "ops"]  # by ctypes
    upward = {pair for pair in found if "csrc" not in pair and RANKS[pair[0]] <= RANKS[pair[1]]}
    at = places(sorted({room for pair in found for room in pair}))
    for (importer, imported), count in found.items():
        if (importer, imported) in upward:
            arrow(axes, at[importer], at[imported], 1.4, RED, 2.5, bend=0.3)
        elif is_shortcut((importer, imported), found.keys() - upward):
            arrow(axes, at[importer], at[imported], 0.9, "#cfcfcf", 1, bend=0.3)
        else:
            arrow(axes, at[importer], at[imported], 1 + 0.2 * count**0.5, "#555555", 2)
    for room in at:
        box(axes, at[room], room, PLACES.get(room, (0, 0, ""))[2], COLOR.get(room, BLUE))
    faults = "; red: upwards, to be removed" if upward else ""
    title(axes, "Rooms and imports", f"dark: to the next room; light: further down as well{faults}")


def draw_batch(axes: Axes) -> None:
    for k, (room, words) in enumerate(BATCH):
        at = (0.0, 1.29 * (len(BATCH) - 1 - k))
        box(axes, at, room, "", COLOR.get(room, BLUE), 1.55)
        axes.text(1.0, at[1], words, fontsize=10.5, va="center")
        if k:
            arrow(axes, (0, at[1] + 1.29), at, 1.8, "#555555", 2)
    axes.set_xlim(-1.1, 4.6)
    title(axes, "The way of a minibatch", "down for the outputs; gradients come back the same way")


def title(axes: Axes, words: str, more: str) -> None:
    axes.axis("off")
    axes.margins(0.03)
    axes.set_title(words, loc="left", fontsize=15, weight="bold", pad=24)
    axes.annotate(more, (0, 1), (0, 8), "axes fraction", "offset points", color=GREY, fontsize=10.5)


def box(axes: Axes, at: Point, name: str, words: str, color: str, width: float = WIDTH) -> None:
    corner = (at[0] - width / 2, at[1] - HEIGHT / 2)
    for face, alpha in (("white", 1.0), (color, 0.13)):
        axes.add_patch(
            FancyBboxPatch(corner, width, HEIGHT, "round,pad=0,rounding_size=0.1", fc=face, lw=0, alpha=alpha, zorder=3)
        )
    axes.text(at[0], at[1] + 0.14 * bool(words), name, fontsize=12.5, weight="bold", ha="center", va="center", zorder=4)
    axes.text(at[0], at[1] - 0.18, words, fontsize=8.8, color=GREY, ha="center", va="center", zorder=4)


def arrow(axes: Axes, start: Point, end: Point, width: float, color: str, order: float, bend: float = 0.0) -> None:
    """From box to box, by their sides where it is bent or level, otherwise from floor to floor."""
    beside = start[0] != end[0]
    if start[1] == end[1]:
        side = 1 if end[0] > start[0] else -1
        first, last, bend = (start[0] + side * WIDTH / 2, start[1]), (end[0] - side * WIDTH / 2, end[1]), 0.0
    elif bend and not beside:
        side = 1 if end[1] < start[1] else -1
        first, last, bend = (start[0] + side * WIDTH / 2, start[1]), (end[0] + side * WIDTH / 2, end[1]), -1.3 * bend
    else:
        down = -1 if end[1] < start[1] else 1
        first, last = (start[0], start[1] + down * HEIGHT / 2), (end[0], end[1] - down * HEIGHT / 2)
        bend = bend / 3
    head = f"-|>,head_width={0.12 + 0.03 * width},head_length=0.3"
    style: dict[str, Any] = {
        "lw": width,
        "color": color,
        "zorder": order,
        "shrinkA": 0,
        "shrinkB": 1,
        "mutation_scale": 14,
    }
    axes.add_patch(FancyArrowPatch(first, last, connectionstyle=f"arc3,rad={bend}", arrowstyle=head, **style))
    axes.update_datalim([first, last])


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
