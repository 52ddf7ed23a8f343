"""`slimrnn data`: the data sets that nets are trained on."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from slimrnn.cli.parsing import parse
from slimrnn.data import CATALOGUE, data_directory, find_dataset
from slimrnn.data.check import condition_of
from slimrnn.data.dataset import Dataset
from slimrnn.data.download import Report
from slimrnn.data.fetch import fetch
from slimrnn.errors import UsageError

ACTIONS = ("list", "get", "check")
EVERY = 0.2  # seconds between two states of a line of progress
WIDTH = max(map(len, CATALOGUE))


@dataclass(frozen=True)
class Options:
    """List, download or check data sets."""

    action: Positional[str] = ""
    """list, get or check"""
    names: Positional[tuple[str, ...]] = ()
    """names of data sets; check: default all"""
    data_dir: Path | None = None
    """parent directory of the data sets; default: SLIMRNN_DATA, or the user's cache"""


def run(arguments: Sequence[str]) -> int:
    """Do what is asked; the exit code of a check is 1 where something is wrong."""
    options = parse(Options(), arguments, "slimrnn data")
    if options.action not in ACTIONS:
        raise UsageError(f"expected list, get NAME or check after slimrnn data, got {options.action or 'none'}")
    chosen = [find_dataset(name) for name in options.names]
    directory = data_directory(options.data_dir)
    if options.action == "get":
        return _get(chosen, directory)
    if options.action == "check":
        return _check(chosen, directory)
    if chosen:
        raise UsageError(f"expected no names after slimrnn data list, got {options.names[0]}")
    print(*(f"{each.name:<{WIDTH}}  {each.description} ({each.licence})" for each in CATALOGUE.values()), sep="\n")
    return 0


def _get(chosen: Sequence[Dataset], directory: Path) -> int:
    if not chosen:
        raise UsageError(f"expected the name of a data set ({', '.join(CATALOGUE)}) after slimrnn data get, got none")
    for dataset in chosen:
        print(f"{dataset.name}: {dataset.description}\nterms: {dataset.licence}", flush=True)
        fetch(dataset, directory, print, _progress)
        print(f"{directory / dataset.folder}: {condition_of(dataset, directory)}")
    return 0


def _check(chosen: Sequence[Dataset], directory: Path) -> int:
    """A data set that is damaged is a mistake; one that is not all there, if it was named."""
    if not directory.is_dir():
        raise UsageError(f"expected a directory of data sets, got {directory}: set SLIMRNN_DATA, or --data-dir")
    print(f"in {directory}")
    wrong = False
    for dataset in chosen or CATALOGUE.values():
        condition = condition_of(dataset, directory)
        wrong |= condition.state == "damaged" or (bool(chosen) and condition.state != "complete")
        print(f"{dataset.name:<{WIDTH}}  {condition}", flush=True)
    return int(wrong)


def _progress(name: str) -> Report:
    """A line that is rewritten, or, where there is no terminal, one at the end."""
    drawn, terminal = 0.0, sys.stdout.isatty()

    def report(done: int, total: int | None) -> None:
        nonlocal drawn
        end = done == total
        if end or (terminal and time.monotonic() - drawn > EVERY):
            drawn = time.monotonic()
            share = f" of {total / 1e6:.1f}" if total else ""
            text = f"{name}  {done / 1e6:.1f}{share} MB"
            print(f"\r\x1b[K{text}" if terminal else text, end="\n" if end else "", flush=True)

    return report
