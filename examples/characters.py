"""Learn a text character by character, then write more of it.

    python examples/characters.py --file my.txt

A GRU with low-rank plus diagonal matrices says at every step what comes next; the engine trains it, line by line. Its
bits per character on the last twentieth of the text stand beside those of two tables: which character follows the five
before it, and how frequent each is. Without a file the lines are made, and end with the names that they began with:
"ben gives anna the red boat. anna thanks ben." A table cannot look back that far. How well one can do is the entropy of
the text: the bits of the choices that were made, per character.
"""

from __future__ import annotations

import math
import random
import re
import shutil
from collections import Counter, defaultdict
from pathlib import Path

import tyro
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from slimrnn.data import DataError
from slimrnn.plotting import COLORS, GREY, label_ends, save, styled
from slimrnn.tasks import PTBCharsTask, load_run, sample_text
from slimrnn.training import Config, ModelConfig, OptimConfig, Run, TrainingError, train

NAMES = ("anna", "ben", "clara", "dan", "emma", "frank", "grace", "hugo")
COLOURS = ("red", "blue", "green", "black", "white", "brown", "grey", "pink")
THINGS = ("boat", "book", "cup", "drum", "flute", "hat", "kite", "lamp")
TRUE = r"(\w+) gives (\w+) the \w+ \w+\. \2 thanks \1\."


def main(file: Path | None = None, updates: int = 1500, out: Path = Path("out/characters")) -> None:
    """Train a net, print what it has learned and what it writes, and save a picture.

    Args:
        file: a text; by default one is made
        updates: with 32 lines of the text each
        out: directory of the run and the picture
    """
    if (out / "run" / "run.json").exists():  # of the time before
        shutil.rmtree(out / "run")
    levels: dict[str, float] = {"entropy": make_text(out / "text.txt")} if file is None else {}
    task = PTBCharsTask(file or out / "text.txt")
    config = Config(
        task,
        ModelConfig("gru", 128, "low-rank+diagonal", rank=24, update_bias=1.0),
        OptimConfig(lr=3e-3, clip_norm=1.0, schedule="cosine"),
        updates,
        batch_size=32,
        eval_every=max(1, updates // 30),
        checkpoint_every=updates,
        out=out / "run",
        tensorboard=False,
    )
    try:
        bits = train(config).score(name="bits_per_character")
    except (DataError, TrainingError) as error:
        raise SystemExit(str(error)) from None
    learned, unseen = str(task.text("train")), str(task.text("test"))
    levels |= {"6 characters": table_bits(learned, unseen, 6), "1 character": table_bits(learned, unseen, 1)}
    print(f"\nbits per character: GRU {bits:.3f}", *(f"{name} {level:.3f}" for name, level in levels.items()), sep=", ")
    net, _ = load_run(out / "run")
    written = "".join(sample_text(net, task, "", 2000, 0.8)).splitlines()[:-1]  # the last line may not be complete
    print("\n".join(["", *written[:7]]))
    if file is None:
        print(f"\n{sum(re.fullmatch(TRUE, line) is not None for line in written)} of {len(written)} lines are true")
    draw(Run(out / "run"), levels, written, out / "characters.png")
    print(f"picture: {out / 'characters.png'}")


def make_text(path: Path, lines: int = 5000) -> float:
    """Write lines, and return their entropy in bits per character."""
    drawing, size = random.Random(0), 0
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as text:
        for _ in range(lines):
            giver, taker = drawing.sample(NAMES, 2)
            what = f"the {drawing.choice(COLOURS)} {drawing.choice(THINGS)}"
            size += text.write(f"{giver} gives {taker} {what}. {taker} thanks {giver}.\n")
    return lines * math.log2(len(NAMES) * (len(NAMES) - 1) * len(COLOURS) * len(THINGS)) / size


def table_bits(learned: str, unseen: str, order: int) -> float:
    """Of a character given the order − 1 before it: counts, mixed with those of shorter contexts (Witten and Bell)."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for place in range(order, len(learned)):
        for size in range(order):
            counts[learned[place - size : place]][learned[place]] += 1
    bits = 0.0
    for place in range(order, len(unseen)):
        chance = 1 / (len(counts[""]) + 1)
        for size in range(order):
            seen = counts.get(unseen[place - size : place], Counter())
            kinds = len(seen) or 1
            chance = (seen[unseen[place]] + kinds * chance) / (seen.total() + kinds)
        bits -= math.log2(chance)
    return bits / (len(unseen) - order)


def draw(run: Run, levels: dict[str, float], written: list[str], path: Path) -> None:
    """The learning curve, and what the net writes."""
    figure = Figure(figsize=(8.6, 7), dpi=150)
    top, bottom = figure.subplots(2, 1, height_ratios=[3, 2], gridspec_kw={"hspace": 0.6, "right": 0.8})
    updates, bits = run.curve["update"], run.curve["valid/bits_per_character"]
    top.set_yscale("log")
    top.plot(updates, bits, color=COLORS[0], linewidth=2.2)
    for level in levels.values():
        top.axhline(level, color=GREY, linewidth=1.2, linestyle="--", zorder=1.5)
    top.set_xlabel("updates", fontsize=12)
    top.set_ylabel("bits per character", fontsize=12)
    top.margins(x=0.01)
    top.set_ylim(bottom=0.8 * min(*bits, *levels.values()))
    top.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    top.yaxis.set_major_formatter("{x:g}")
    top.yaxis.set_minor_formatter("")
    ends = [(name, level, GREY) for name, level in levels.items()]
    label_ends(top, [*ends, (f"GRU\n{run.record['parameters']['total']:,} parameters", bits[-1], COLORS[0])])
    styled(top, "A text, character by character", "the fewer bits, the better the net knows what comes next")
    styled(bottom, "What the net writes")
    for y, line in enumerate(written[:7]):
        bottom.text(
            0, 1.1 - y / 7, line if len(line) < 75 else f"{line[:74]}…", family="monospace", fontsize=10.5, va="top"
        )
    bottom.set_axis_off()
    save(figure, path)


if __name__ == "__main__":
    tyro.cli(main)
