"""Tables of what `benchmarks/compression.py` measured: `python results/compression_tables.py DIRECTORY` prints that of
its cells; docs/compress.md and RESULTS.md have those of the cells in compression/."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

COMPRESSION = Path(__file__).parent / "compression"
NETS = {  # directory, and what was compressed
    "characters": "LSTM 512, characters of the Penn Treebank: bits per character",
    "digits": "LSTM 128, digits of MNIST: accuracy",
    "films": "GRU 128, films of MovieLens 1M: MAP@20",
}
SCORES = ("bits_per_character", "accuracy", "map_at_20")
METHODS = {
    "after-weighted": "right after, weighted",
    "after-plain": "right after, plain SVD",
    "distilled-weighted": "{} updates, weighted",
    "distilled-plain": "{} updates, plain SVD",
    "scratch": "{} updates from random weights",
}
Cells = dict[str, dict[str, Any]]


def read_cells(directory: Path) -> Cells:
    """By their names, such as "after-weighted-0.2"."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(directory.glob("*.json"))}


def table(directory: Path) -> list[list[str]]:
    """A row for each method and a column for each budget, with how far a score is from the dense net's."""
    cells = read_cells(directory)
    shares = shares_of(cells)
    longer = {path.name: read_cells(path) for path in sorted(directory.glob("*-updates"))}
    rows = [
        [score_of(cells).replace("_", " "), *(f"{100 * share:g} %" for share in shares)],
        ["dense", *[_dense(cells)] * len(shares)],
    ]
    for found in (cells, *longer.values()):
        for method, words in METHODS.items():
            row = [against_dense(found, cells, method, share) for share in shares]
            if any(row):
                updates = {
                    cell["updates"] for name, cell in found.items() if name.startswith(method) if "updates" in cell
                }
                rows.append([words.format(f"{max(updates, default=0):,}"), *row])
    return rows + [
        [
            f"speed, {batch.replace('batch', 'batch of')}, against `torch.nn`",
            *(_faster(times, share) for share in shares),
        ]
        for batch, times in cells.get("times", {}).get("milliseconds", {}).items()
    ]


def summary() -> list[list[str]]:
    """A row for each net: after the longest fine-tuning that there is at each budget."""
    rows: list[list[str]] = []
    for name, words in NETS.items():
        cells = read_cells(COMPRESSION / name)
        longer = [read_cells(path) for path in sorted((COMPRESSION / name).glob("*-updates"))]
        shares = shares_of(cells)
        rows = rows or [["net and score", "dense", *(f"{100 * share:g} %" for share in shares)]]
        best = [
            [against_dense(found, cells, "distilled-weighted", share) for found in (*longer, cells)] for share in shares
        ]
        rows.append([words, _dense(cells), *(next(filter(None, found), "") for found in best)])
    return rows


def shares_of(cells: Cells) -> list[float]:
    """Budgets, the largest first."""
    return sorted({float(name.rpartition("-")[2]) for name in cells if name.startswith("after-")}, reverse=True)


def score_of(cells: Cells) -> str:
    """The name of the score that is shown."""
    return next(score for score in SCORES if score in cells["dense"]["scores"]["test"])


def against_dense(found: Cells, cells: Cells, method: str, share: float) -> str:
    """A score on the test set; empty if it was not measured."""
    cell = found.get(f"{method}-{share:g}")
    if cell is None:
        return ""
    score = score_of(cells)
    value, dense = (float(one["scores"]["test"][score]) for one in (cell, cells["dense"]))
    return f"{_shown(score, value)} ({100 * (value / dense - 1):+.1f} %)"


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """The first row is the header."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def _dense(cells: Cells) -> str:
    return _shown(score_of(cells), cells["dense"]["scores"]["test"][score_of(cells)])


def _shown(score: str, value: float) -> str:
    return f"{100 * value:.2f} %" if score == "accuracy" else f"{value:.3f}" if value >= 1 else f"{value:.4f}"


def _faster(times: dict[str, float], share: float) -> str:
    ours = times.get(f"{share:g}")
    return "" if ours is None or "torch" not in times else f"{times['torch'] / ours:.1f} ×"


if __name__ == "__main__":
    print(markdown(table(Path(sys.argv[1]))))
