"""Progress of a run: a single updating line on a terminal, otherwise a line per evaluation."""

from __future__ import annotations

import math
import shutil
import sys
import time

from slimrnn.training.config import Config
from slimrnn.training.curve import Row

WIDTH = 24
EVERY = 0.1  # seconds between two drawings


class Progress:
    """`quiet` leaves only what must be said, and of several processes one `speaks`."""

    def __init__(self, config: Config, quiet: bool = False, speaks: bool = True) -> None:
        self.updates, self.quiet, self.speaks = config.updates, quiet or not speaks, speaks
        self.shown = [f"{split}/{config.task.monitor}" for split in ("valid", *config.task.test_sets)]
        self.terminal = sys.stdout.isatty() and not self.quiet
        self.row: Row = {}
        self.first, self.start, self.drawn = 0, time.perf_counter(), -math.inf

    def begin(self, update: int) -> None:
        """Speed is measured from here."""
        self.first, self.start = update, time.perf_counter()

    def update(self, update: int) -> None:
        """After every update: cheap unless it is time to draw."""
        if self.terminal and time.perf_counter() - self.drawn > EVERY:
            self._draw(update)

    def evaluated(self, row: Row) -> None:
        self.row = row
        if self.terminal:
            self._draw(int(row["update"]))
        elif not self.quiet:
            print(f"{int(row['update']):>9,}  {self._scores()}{self._speed(int(row['update']))}", flush=True)

    def say(self, text: str) -> None:
        """Print a message on its own line."""
        if self.speaks:
            print(f"\r\x1b[K{text}" if self.terminal else text, flush=True)

    def end(self) -> None:
        if self.terminal:
            print(flush=True)

    def _draw(self, update: int) -> None:
        self.drawn = time.perf_counter()
        text = f"{update:,}/{self.updates:,}  {self._scores()}{self._speed(update)}"
        columns = shutil.get_terminal_size().columns - 1  # a line that wraps cannot be rewritten
        width = max(0, min(WIDTH, columns - len(text) - 1))
        done = round(width * update / self.updates) if self.updates else width  # a net that is only scored is done
        line = "━" * done + "─" * (width - done) + f" {text}"
        print(f"\r\x1b[K{line[:columns]}", end="", flush=True)

    def _scores(self) -> str:
        names = [name for name in ("train/loss", *self.shown) if not math.isnan(self.row.get(name, math.nan))]
        return "  ".join(f"{name.removesuffix('/loss')} {self.row[name]:.4g}" for name in names)

    def _speed(self, update: int) -> str:
        elapsed = time.perf_counter() - self.start
        if update <= self.first or elapsed <= 0:
            return ""
        speed = (update - self.first) / elapsed
        left = (self.updates - update) / speed
        return f"  {speed:.3g}/s" + (f"  {in_words(left)} left" if left else "")


def in_words(seconds: float) -> str:
    """A duration: 7 s, 3:05 min, 1:30 h."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes}:{rest:02d} min" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02d} h"
