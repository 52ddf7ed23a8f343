"""Peak memory of a forward and backward pass, each in a process of its own."""

from __future__ import annotations

import multiprocessing
import resource
import sys

import torch
from cases import LAYERS, Shape
from timing import training_pass


def peak_megabytes(name: str, shape: Shape, threads: int) -> float:
    """Growth of the peak resident memory over what layer and input need.

    From a fork server, since a process started from this one would inherit its peak (Linux keeps it over exec)."""
    with multiprocessing.get_context("forkserver").Pool(1, maxtasksperchild=1) as pool:
        return pool.apply(_growth, (name, shape, threads))


def _growth(name: str, shape: Shape, threads: int) -> float:
    torch.set_num_threads(threads)
    layer = LAYERS[name](shape)
    training_pass(layer, shape.cut(2))()  # loads the code, which is not the layer's memory
    run = training_pass(layer, shape)
    before = _peak()
    run()
    return _peak() - before


def _peak() -> float:
    unit = 1 if sys.platform == "darwin" else 1024  # bytes there, kilobytes elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6
