"""Figures of docs/own-data.md, from the results of our runs in own_data.json."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from matplotlib.figure import Figure

from slimrnn.plotting import COLORS, GREY, save, styled
from slimrnn.tasks.own.figures import plot_confusion

HERE = Path(__file__).parent


def main(directory: Path = HERE) -> None:
    """Write both."""
    found = json.loads((HERE / "own_data.json").read_text())
    _accuracies(found["accuracy"], directory / "own-accuracy.png")
    confusion = found["confusion"]
    plot_confusion(
        torch.tensor(confusion["counts"]), confusion["classes"], directory / "own-confusion.png", "JapaneseVowels"
    )


def _accuracies(rows: dict[str, list[float]], path: Path) -> None:
    """A line for each set: ours, 1-NN DTW with the full and with the learned window, the majority class."""
    figure = Figure(figsize=(8, 4.6), dpi=110)
    axes = figure.add_subplot()
    names = list(rows)[::-1]
    marks = (("slimrnn", "o", COLORS[0]), ("DTW, full window", "|", COLORS[1]), ("DTW, learned window", "|", COLORS[4]))
    for place, (label, mark, color) in enumerate([*marks, ("majority class", "x", GREY)]):
        size = 80 if mark == "o" else 150 if mark == "|" else 30
        values = [rows[name][place] for name in names]
        axes.scatter(values, range(len(names)), s=size, marker=mark, color=color, label=label, linewidths=2, zorder=3)
    axes.set_yticks(range(len(names)), names, fontsize=11)
    axes.set_xlabel("accuracy on the archive's test set", fontsize=12)
    axes.set_xlim(0, 1.02)
    styled(axes, "All defaults, one command each")
    axes.grid(axis="x", color="#e8e8e8", linewidth=0.8)
    axes.legend(loc="upper left", bbox_to_anchor=(0, -0.14), ncols=4, fontsize=10, frameon=False)
    save(figure, path)


if __name__ == "__main__":
    main()
