"""ComputedWeight: a weight under torch's name that no parameter holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

IN_PLACE = ("__setitem__", "__set__", "__delitem__", "__iadd__", "__isub__", "__imul__", "__itruediv__", "__ipow__")


class ComputedWeight(Tensor):
    """Numbers to read, with gradients to what they are computed from. Writing to them, which would be lost, raises an
    error that says what to write to."""

    advice: str

    @classmethod
    def of(cls, numbers: Tensor, advice: str) -> ComputedWeight:
        """`numbers` with that advice for who writes to them."""
        computed = numbers.as_subclass(cls)
        computed.advice = advice
        return computed

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        given = kwargs or {}
        written = args[0] if args and _writes(func.__name__) else given.get("out", given.get("tensor"))
        if isinstance(written, ComputedWeight) and (_writes(func.__name__) or "out" in given):
            raise RuntimeError(written.advice)
        with torch._C.DisableTorchFunctionSubclass():
            result = func(*args, **given)
        source = args[0] if args else None
        if isinstance(result, Tensor) and isinstance(source, ComputedWeight) and _shares(result, source):
            return ComputedWeight.of(result, source.advice)  # a view: writing to it would be lost, too
        return result


def _writes(name: str) -> bool:
    return name in IN_PLACE or (name.endswith("_") and not name.endswith("__"))


def _shares(a: Tensor, b: Tensor) -> bool:
    with torch._C.DisableTorchFunctionSubclass():
        return a.device == b.device and a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
