"""Public names that moved to another module keep working, with a warning."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping
from typing import Any


def moved(module: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a module whose names in `homes` are now in the module that it says. That one is imported
    only on use, so the old module does not depend on it."""

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        home = homes[name]
        warnings.warn(f"{module}.{name} has moved: import it from {home}", DeprecationWarning, stacklevel=2)
        return getattr(importlib.import_module(home), name)

    return find
