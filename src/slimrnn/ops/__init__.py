"""The time loop, once per backend. Today there is the reference in plain torch."""

from __future__ import annotations

from slimrnn._checks import check_choice
from slimrnn.ops.reference import scan

__all__ = ["resolve_backend", "scan"]


def resolve_backend(backend: str) -> str:
    """The backend that "auto" stands for here; RuntimeError for one that this installation lacks."""
    check_choice("backend", backend, ["auto", "native", "reference"])
    if backend == "native":
        raise RuntimeError("expected backend='auto' or 'reference', got 'native': this version has no native core")
    return "reference"
