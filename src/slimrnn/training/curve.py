"""The learning curve: a row of scores for every evaluation, in curve.csv and for TensorBoard."""

from __future__ import annotations

import contextlib
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING

from slimrnn.training.errors import RunDirectoryError
from slimrnn.training.files import write_whole, writing

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

Row = dict[str, float]  # by column: update, seconds, lr, train/loss, valid/loss, ...; a NaN is an empty field


class Curve:
    """curve.csv, and TensorBoard's files if a directory for them is given. Rows after update `last` are dropped."""

    def __init__(self, path: Path, last: int, tensorboard: Path | None = None) -> None:
        self.path = path
        lines = path.read_text(errors="replace").splitlines(keepends=True) if path.exists() else []
        whole = _whole(path, lines)
        kept = [line for i, line in enumerate(whole) if i == 0 or int(line.split(",", 1)[0]) <= last]
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

    def log(self, update: int, numbers: Row) -> None:
        """For TensorBoard only."""
        if self.board is not None:
            for name, number in numbers.items():
                self.board.add_scalar(name, number, update)

    def close(self) -> None:
        if self.board is not None:
            with contextlib.suppress(OSError):  # of a full disk that was reported before
                self.board.close()


def read_curve(path: Path) -> dict[str, list[float]]:
    """The columns; empty where there is no file yet."""
    if not path.exists():
        return {}
    whole = _whole(path, path.read_text(errors="replace").splitlines(keepends=True))
    columns = zip(*(line.rstrip("\n").split(",") for line in whole), strict=True)
    return {name: [float(text or "nan") for text in column] for name, *column in columns}


def _whole(path: Path, lines: list[str]) -> list[str]:
    """All but a last line that is on its way, or that a kill cut off; the others have to be rows of numbers."""
    whole = lines if not lines or lines[-1].endswith("\n") else lines[:-1]
    columns = whole[0].count(",") if whole else 0
    for number, line in enumerate(whole[1:], 2):
        update, *others = line.rstrip("\n").split(",")
        if len(others) != columns or not update.isdigit() or not all(map(_is_number, others)):
            raise RunDirectoryError(f"expected rows of numbers in {path}, got a damaged line {number}: mend it")
    return whole


def _is_number(text: str) -> bool:
    try:
        float(text or "nan")
    except ValueError:
        return False
    return True


def _board(directory: Path, last: int) -> SummaryWriter | None:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:  # it is a convenience beside curve.csv
        return None
    with writing(directory):
        return SummaryWriter(str(directory), purge_step=last + 1)
