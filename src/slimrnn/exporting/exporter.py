"""An export format: what it is called, what it writes, and how what was written is run for the proof."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from torch import Tensor, nn

from slimrnn.exporting.examples import Example

Run = Callable[[Sequence[Tensor]], list[Tensor]]  # the inputs, one tensor after the other -> the outputs, likewise
REPEATS = 3  # of a call, of which the fastest counts
Result = TypeVar("Result")


def timed(call: Callable[[], Result]) -> tuple[Result, float]:
    """What it gives, and the seconds of the fastest of some calls."""
    best = float("inf")
    for _ in range(REPEATS):
        start = time.perf_counter()
        result = call()
        best = min(best, time.perf_counter() - start)
    return result, best


@dataclass(frozen=True)
class Request:
    """What is to be exported: a model in eval(), which the exporter may change, and an example of its arguments."""

    model: nn.Module
    example: Example
    step: bool  # a graph of one step, for streaming
    options: Any  # of this exporter, see Exporter.options


@dataclass(frozen=True)
class NoOptions:
    """Of an exporter that has none."""


@dataclass(frozen=True)
class Exporter:
    """One file of this room has one of these, named EXPORTER, and a line in registry.py."""

    suffix: str  # of the file that it writes; "" for a directory
    runtime: Callable[[], str]  # name and version of what runs it
    write: Callable[[Request, Path], None]  # raises ExportError for what it cannot do
    open: Callable[[Path], AbstractContextManager[Run]]  # in its own runtime
    needs: tuple[str, ...] = ()  # packages, of the extra "export"
    options: type[Any] = NoOptions  # a dataclass: further arguments of slimrnn.export
    tolerance: float = 1e-5  # largest difference, relative to the largest output of that kind
    # Where the artefact is to equal another model: that, and what was measured on the examples to get there.
    prepare: Callable[[nn.Module, Sequence[Example], Any], tuple[nn.Module, dict[str, float]]] | None = None
    others: tuple[str, ...] = ()  # suffixes of further files that it writes beside that one
    sizes: Callable[[Path], dict[str, float]] = lambda path: {}  # bytes that are of interest, by name
    takes_int8: bool = False  # models of slimrnn.quantize
    steps_only: bool = False  # it runs single steps from the initial state on, and is compared with `Unrolled`

    def files(self, path: Path) -> list[Path]:
        """All that it writes."""
        return [path, *(path.with_suffix(suffix) for suffix in self.others)]
