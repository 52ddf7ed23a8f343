"""Modules that tell when an attribute of theirs is set, so that nobody has to look at all of them again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import nn


class Latest:
    """`change` is another object after every change of an attribute of some watched module."""

    change = object()


latest = Latest()


class Watched(nn.Module):
    """A module whose attributes are set and deleted as usual, and noticed.

    `_changes` counts how often an attribute got another value, but for tensors, modules and `training`: a number that
    torch.compile looks at before it runs what it has compiled."""

    _changes: int = 0

    if not TYPE_CHECKING:  # to which a class that defines them may have any attribute

        def __setattr__(self, name: str, value: Any) -> None:
            if torch.compiler.is_compiling():
                super().__setattr__(name, value)
                return
            before = self.__dict__.get(name, value)
            super().__setattr__(name, value)
            if before is not value and name != "training":
                self.__dict__["_changes"] = self._changes + 1
            _notice()

        def __delattr__(self, name: str) -> None:
            super().__delattr__(name)
            _notice()


def _notice() -> None:
    if not torch.compiler.is_compiling():
        latest.change = object()
