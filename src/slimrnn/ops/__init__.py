"""The time loop, once per backend: `reference` in plain torch is the definition, `native` the fast one, and `torch`
torch's own operators for the layers that torch has."""

from __future__ import annotations

import warnings
from functools import cache

from slimrnn._checks import check_choice
from slimrnn.ops.library import missing_reason, native_library

__all__ = ["BACKENDS", "resolve_backend"]

BACKENDS = ("auto", "native", "reference", "torch")


def resolve_backend(backend: str) -> str:
    """The backend that "auto" stands for here; RuntimeError for one that this installation lacks."""
    check_choice("backend", backend, BACKENDS)
    if backend == "native" and native_library() is None:
        raise RuntimeError(f"expected a native library for backend='native', got none: {missing_reason()}")
    if backend != "auto":
        return backend
    if native_library() is not None:
        return "native"
    _tell_once()
    return "reference"


@cache
def _tell_once() -> None:
    warnings.warn(f"slimrnn runs in plain torch, many times slower: {missing_reason()}", RuntimeWarning, stacklevel=2)
