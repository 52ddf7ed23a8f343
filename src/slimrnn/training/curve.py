"""The learning curve: a row of scores for every evaluation, in curve.csv and for TensorBoard."""

from __future__ import annotations

import contextlib
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING

from slimrnn._texts import decimal, listed, shown, whole_number
from slimrnn.errors import RunDirectoryError
from slimrnn.training.run_files import read_text, write_whole, writing

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

FIRST = ["update", "seconds"]  # columns, and where TensorBoard's begin
Row = dict[str, float]  # by column: update, seconds, lr, train/loss, valid/loss, ...; a NaN is an empty field


class Curve:
    """curve.csv and, with a directory for it, TensorBoard. Rows after update `last` are dropped."""

    def __init__(self, path: Path, last: int, tensorboard: Path | None = None) -> None:
        self.path = path
        text = read_text(path) if path.exists() else ""
        header, *rows = _whole(path, text)
        kept = [header, *(row for row in rows if (whole_number(row[0]) or 0) <= last)] if header else []
        if (written := "".join(f"{','.join(row)}\n" for row in kept)) != text:
            write_whole(path, written.encode())
        self.columns = header
        self.board = None if tensorboard is None else _board(tensorboard, last)

    def write(self, row: Row) -> None:
        """Append a row and flush it to the disk, before the next checkpoint is written."""
        text = "" if self.columns else ",".join(row) + "\n"
        self.columns = self.columns or list(row)
        for name in self.columns:
            if name not in row:
                raise RunDirectoryError(
                    f"expected columns of {', '.join(row)} in {self.path}, got {shown(name)}: fix line 1"
                )
        text += ",".join("" if math.isnan(row[name]) else repr(row[name]) for name in self.columns) + "\n"
        with writing(self.path):
            with self.path.open("a") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            if self.board is not None:
                for name in self.columns[len(FIRST) :]:
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
    """The columns by name; empty if there is no file yet."""
    if not path.exists():
        return {}
    header, *rows = _whole(path, read_text(path))
    return {name: [float(row[place] or "nan") for row in rows] for place, name in enumerate(header)}


def _whole(path: Path, text: str) -> list[list[str]]:
    """The fields of all complete lines (a kill may truncate the last one): the header, empty if there is none, and rows
    of numbers."""
    lines = [line.split(",") for line in text.split("\n")[:-1]]
    header, *rows = lines or [[]]
    if lines and (header[: len(FIRST)] != FIRST or len({*header, ""}) <= len(header)):
        raise RunDirectoryError(
            f"expected different columns, update and seconds first, in line 1 of {path}, got {shown(','.join(header))}"
        )
    for number, row in enumerate(rows, 2):
        _check(row, header, f"corrupt line {number:,} of {path}")
    return [header, *rows]


def _check(row: list[str], header: list[str], where: str) -> None:
    if len(row) != len(header):
        raise RunDirectoryError(
            f"expected {len(header)} numbers in {where}, got {len(row)}: {shown(','.join(row))}; fix or delete it"
        )
    for name, field in zip(header, row, strict=True):
        if whole_number(field) is None if name == "update" else field and decimal(field) is None:
            wanted = "a whole number" if name == "update" else "a number or nothing"
            raise RunDirectoryError(
                f"expected {wanted} as {listed([name])} in {where}, got {shown(field)}: fix or delete it"
            )


def _board(directory: Path, last: int) -> SummaryWriter | None:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:  # it is a convenience beside curve.csv
        return None
    with writing(directory):
        return SummaryWriter(str(directory), purge_step=last + 1)
