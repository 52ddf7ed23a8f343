"""An exporter whose artefact is the model's parameters and whose runtime may be wrong, for what all exporters share."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from slimrnn.exporting.exporter import Exporter, Request, Run

requests: list[Request] = []
error: list[Callable[[Tensor], Tensor]] = []  # what the runtime does to the output


@dataclass(frozen=True)
class FakeOptions:
    colour: str = "red"


def write(request: Request, path: Path) -> None:
    requests.append(request)
    torch.save(request.model.state_dict(), path)


@contextlib.contextmanager
def open_fake(path: Path) -> Iterator[Run]:
    request = requests[-1]
    request.model.load_state_dict(torch.load(path))
    spec = pytree.tree_structure(request.example.values)

    def run(leaves: Sequence[Tensor]) -> list[Tensor]:
        output, *states = pytree.tree_leaves(request.model(**pytree.tree_unflatten(list(leaves), spec)))
        return [error[-1](output) if error else output, *states]

    yield run


EXPORTER = Exporter(suffix=".fake", runtime=lambda: "fake 1.0", write=write, open=open_fake, options=FakeOptions)
