"""Tensors that backward reads again must be as they were, which autograd checks for those that it saves."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from torch import Tensor


class Snapshot:
    """The tensors that `read` returns, and their versions: `check` raises once they are others or have changed."""

    def __init__(self, read: Callable[[], Iterable[Tensor]]) -> None:
        self.read = read
        self.seen = [(t, None if t.is_inference() else t._version) for t in read()]

    def check(self) -> None:
        now = list(self.read())
        if len(now) != len(self.seen) or any(t is not old for t, (old, _) in zip(now, self.seen, strict=True)):
            raise RuntimeError(
                "one of the variables needed for gradient computation has been replaced since forward: "
                "expected the same parameters in backward"
            )
        for t, version in self.seen:
            if version is not None and t._version != version:
                raise RuntimeError(
                    "one of the variables needed for gradient computation has been modified by an inplace operation: "
                    f"expected {t.dtype} of shape {tuple(t.shape)} at version {version}, got version {t._version}"
                )
