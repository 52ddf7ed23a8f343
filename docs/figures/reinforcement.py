"""The figure of docs/reinforcement.md: `python docs/figures/reinforcement.py` writes it beside itself, or into a
directory given. The curves in reinforcement.csv are every sixth line of those of `examples/recurrent_ppo.py --frames
100000 --seeds 3`."""

from __future__ import annotations

import csv
import sys
from collections import defaultdict
from pathlib import Path

from figure_style import LEGEND, save, styled
from matplotlib.figure import Figure

from slimrnn.plotting import COLORS

CURVES = Path(__file__).with_suffix(".csv")


def main(directory: Path = Path(__file__).parent) -> None:
    figure = Figure(figsize=(7, 4.2), dpi=130, layout="constrained")
    axes, curves = figure.subplots(), defaultdict[tuple[str, str], list[tuple[int, float]]](list)
    with CURVES.open(newline="") as file:
        for row in csv.DictReader(file):
            curves[row["policy"], row["seed"]].append((int(row["frames"]), float(row["reward"])))
    colors = dict(zip(dict.fromkeys(policy for policy, _ in curves), (COLORS[1], COLORS[0]), strict=True))
    for (policy, seed), points in curves.items():
        label = policy if seed == "0" else None
        axes.plot(*zip(*points, strict=True), color=colors[policy], linewidth=1.8, label=label)
    subtitle = "one curve for each seed"
    styled(axes, "CartPole with hidden velocities", subtitle, "frames", "mean reward of 100 episodes")
    axes.legend(**LEGEND)
    save(figure, directory / "reinforcement.png")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
