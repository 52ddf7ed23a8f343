"""Where the time of a training update goes, for a row of every task of the papers.

As a script, `updates.py ROW THREADS SECONDS` trains for so long and prints the updates per second.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from itertools import islice
from unittest.mock import patch

import torch
from timing import Options, tell

from slimrnn.errors import DataError
from slimrnn.ops import calls
from slimrnn.papers.registry import find_row
from slimrnn.training.batches import Batches, on_device
from slimrnn.training.launch import ALONE
from slimrnn.training.learner import Learner, net_to_train
from slimrnn.training.memory import kept_memory

ROWS = (
    "adding-750-kru",
    "copy-1000-kru",
    "copy-1000-lstm",
    "permuted-mnist-lrd-gru-128-24",
    "ptb-lrd-gru-1000-64",
    "timit-sample-kru",
    "word-copy-32-lstm-factorized",
    "recommendation-factorized",
    "youtube-8m-factorized-small",
    "highway-mnist-lrd",
)
AT_ONCE = ("permuted-mnist-lrd-gru-128-24", "copy-1000-lstm")
LARGE = ("adding-750-kru", "permuted-mnist-kru-quick", "permuted-mnist-uernn", "permuted-mnist-lr-gru-512-4-quick")
PARTS = ("kernel", "around it", "clipping", "optimizer", "data", "rest")
WARM_UP = 2  # updates


class Updates:
    """The loop of training without evaluations and files; `seconds` has the time of each part since `begin`."""

    def __init__(self, row: str) -> None:
        config = replace(find_row(row).config, updates=10**9, workers=0)
        net = net_to_train(config)
        net.train()
        self.learner = Learner(config, net, print)
        self.batches, self.place = iter(Batches.of_run(config, ALONE)), torch.device("cpu")
        self.seconds = dict.fromkeys(PARTS, 0.0)

    def run(self, count: int) -> None:
        with self._kernel():
            for _ in range(count):
                self._update()

    def begin(self) -> None:
        self.seconds = dict.fromkeys(PARTS, 0.0)

    def _update(self) -> None:
        learner = self.learner
        with self._part("data"):
            batch = on_device(next(self.batches), learner.config, self.place)
        with self._part("around it"):
            loss = learner.loss(batch)
        with self._part("rest"):
            learner.optimizer.zero_grad()
        with self._part("around it"):
            loss.backward()
        with self._part("clipping"):
            learner.clip_or_recover_()
        with self._part("optimizer"):
            learner.optimizer.step()
        with self._part("rest"):
            learner.constrain_()
            learner.schedule.step()
            learner.update += 1

    @contextmanager
    def _part(self, name: str) -> Iterator[None]:
        start, inside = time.perf_counter(), self.seconds["kernel"]
        yield
        self.seconds[name] += time.perf_counter() - start - (self.seconds["kernel"] - inside)

    @contextmanager
    def _kernel(self) -> Iterator[None]:
        """The native core's own time, forward and backward, with the input product that it takes in its loop."""
        run = calls.Call.run

        def timed(call: calls.Call, function: str) -> None:
            start = time.perf_counter()
            run(call, function)
            self.seconds["kernel"] += time.perf_counter() - start

        with patch.object(calls.Call, "run", timed):
            yield


def parts_of_an_update(row: str, updates: int) -> dict[str, float]:
    """Seconds of each part, in the mean."""
    loop = Updates(row)
    with kept_memory():  # as in training
        loop.run(WARM_UP)
        loop.begin()
        loop.run(updates)
    return {part: loop.seconds[part] / updates for part in PARTS}


def updates_per_second(row: str, threads: int, seconds: float) -> float:
    torch.set_num_threads(threads)
    loop = Updates(row)
    with kept_memory():
        loop.run(WARM_UP)
        done, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds:
            loop.run(1)
            done += 1
        return done / (time.perf_counter() - start)


def with_and_without_memory(row: str, updates: int, repeats: int = 3) -> tuple[float, float]:
    """Seconds of an update where freed memory is kept and where it goes back to the system, each the best of a few."""
    loop, best = Updates(row), [float("inf")] * 2
    for k in [0, 1] * repeats:
        with nullcontext() if k else kept_memory():
            loop.run(WARM_UP)
            for _ in range(updates):
                start = time.perf_counter()
                loop.run(1)
                best[k] = min(best[k], time.perf_counter() - start)
    return best[0], best[1]


def processes_at_once(row: str, count: int, threads: int, seconds: float) -> float:
    """Updates per second of all processes together."""
    command = [sys.executable, __file__, row, str(threads), str(seconds)]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(count)]
    return sum(float(process.communicate()[0]) for process in started)


def tables(options: Options) -> Iterator[tuple[str, list[dict[str, object]], list[str]]]:
    """Titles, records and notes of the section."""
    for threads in options.threads:
        torch.set_num_threads(threads)
        title, notes = f"parts of an update, {threads} thread{'s' if threads > 1 else ''}", list[str]()
        yield title, list(_parts(options, notes)), notes
    torch.set_num_threads(1)
    yield "memory kept between updates, or given back", list(_memory(options)), []
    yield "updates per second, of both runs together where there are two", list(_at_once(options)), []


def _parts(options: Options, notes: list[str]) -> Iterator[dict[str, object]]:
    for row in filter(options.wants, ROWS):
        tell(f"updates: {row}")
        try:
            parts = parts_of_an_update(row, 1 if options.quick else 8)
        except DataError as error:
            notes.append(f"{row} is left out: {error}")
            continue
        total = sum(parts.values())
        yield {"row": row, "ms": 1e3 * total} | {f"{name} %": 100 * part / total for name, part in parts.items()}
    tell()


def _memory(options: Options) -> Iterator[dict[str, object]]:
    for row in filter(options.wants, LARGE):
        tell(f"updates, memory: {row}")
        kept, given_back = with_and_without_memory(row, 1 if options.quick else 5)
        yield {"row": row, "kept ms": 1e3 * kept, "given back ms": 1e3 * given_back, "ratio": given_back / kept}
    tell()


def _at_once(options: Options) -> Iterator[dict[str, object]]:
    seconds = 0.2 if options.quick else 3.0
    for row in filter(options.wants, AT_ONCE):
        tell(f"updates, two runs at once: {row}")
        one, two, both = (processes_at_once(row, *how, seconds) for how in ((1, 1), (1, 2), (2, 1)))
        rates: dict[str, object] = {"one thread": one, "two threads": two, "two runs of one thread": both}
        yield {"row": row} | rates | {"two runs / two threads": both / two}
    tell()


if __name__ == "__main__":
    name, of_threads, so_long = islice(sys.argv, 1, 4)
    print(updates_per_second(name, int(of_threads), float(so_long)))
