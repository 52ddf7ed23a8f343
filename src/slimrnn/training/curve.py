"""The learning curve: a row of scores for every evaluation, in curve.csv and for TensorBoard."""

from __future__ import annotations

import contextlib
import csv
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING

from slimrnn.training.files import write_whole, writing

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

Row = dict[str, float]  # by column: update, seconds, lr, train/loss, valid/loss, ...; a NaN is an empty field


class Curve:
    """curve.csv, and TensorBoard's files if a directory for them is given. Rows after update `last` are dropped."""

    def __init__(self, path: Path, last: int, tensorboard: Path | None = None) -> None:
        self.path = path
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        kept = [line for i, line in enumerate(lines) if line.endswith("\n") and (i == 0 or _update(line) <= last)]
        if kept != lines:
            write_whole(path, "".join(kept).encode())
        self.columns = kept[0].strip().split(",") if kept else []
        self.board = None if tensorboard is None else _board(tensorboard, last)

    def write(self, row: Row) -> None:
        """Append a row; it is on the disk before the checkpoint that follows."""
        text = "" if self.columns else ",".join(row) + "\n"
        self.columns = self.columns or list(row)
        text += ",".join("" if math.isnan(row[name]) else repr(row[name]) for name in self.columns) + "\n"
        with writing(self.path):
            with self.path.open("a") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            if self.board is not None:
                for name in self.columns[2:]:
                    self.board.add_scalar(name, row[name], int(row["update"]))

    def close(self) -> None:
        if self.board is not None:
            with contextlib.suppress(OSError):  # of a full disk that was reported before
                self.board.close()


def read_curve(path: Path) -> dict[str, list[float]]:
    """The columns; empty where there is no file yet."""
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        rows = [row for row in csv.reader(file) if row]
    whole = [row for row in rows if len(row) == len(rows[0])]  # the last may be on its way
    return {name: [float(text or "nan") for text in column] for name, *column in zip(*whole, strict=True)}


def _update(line: str) -> int:
    return int(line.split(",", 1)[0])


def _board(directory: Path, last: int) -> SummaryWriter | None:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:  # it is a convenience beside curve.csv
        return None
    with writing(directory):
        return SummaryWriter(str(directory), purge_step=last + 1)
