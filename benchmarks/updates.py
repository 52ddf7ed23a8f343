"""Where the time of a training update goes, for a row of every task of the papers.

As a script, `updates.py ROW THREADS SECONDS` trains for so long and prints the updates per second.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from itertools import islice
from statistics import median
from unittest.mock import patch

import torch
from timing import Options, tell

from slimrnn.errors import DataError
from slimrnn.layers import RecurrentStack
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
LARGE = (
    "adding-750-kru",
    "copy-1000-kru",
    "word-copy-32-lstm-factorized",
    "permuted-mnist-kru-quick",
    "permuted-mnist-uernn",
    "permuted-mnist-lr-gru-512-4-quick",
    "permuted-mnist-lstm-quick",
)
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


@contextmanager
def written_gradients() -> Iterator[None]:
    """Zeros for every output, as if all of them were read and not the last state."""
    with patch.object(RecurrentStack, "last_output", lambda *_: None):
        yield


WAYS: dict[str, Callable[[], list[AbstractContextManager[None]]]] = {  # what surrounds the updates
    "as it is": lambda: [kept_memory()],
    "memory given back": list,
    "zeros written": lambda: [kept_memory(), written_gradients()],
    "both": lambda: [written_gradients()],
}


def seconds_by_way(row: str, updates: int, repeats: int = 3) -> dict[str, float]:
    """Processor time of an update, the median, with and without what saves memory traffic."""
    loop, found = Updates(row), {way: list[float]() for way in WAYS}
    for way in [*WAYS] * repeats:
        with ExitStack() as surrounding:
            for context in WAYS[way]():
                surrounding.enter_context(context)
            loop.run(WARM_UP)
            for _ in range(updates):
                start = time.process_time()
                loop.run(1)
                found[way].append(time.process_time() - start)
    return {way: median(seconds) for way, seconds in found.items()}


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
    yield "without what saves memory traffic", list(_memory(options)), []
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
        ways = seconds_by_way(row, 1 if options.quick else 5)
        first, *others = ways
        ratios = {f"{way} / {first}": ways[way] / ways[first] for way in others}
        yield {"row": row, "ms": 1e3 * ways[first]} | ratios
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
