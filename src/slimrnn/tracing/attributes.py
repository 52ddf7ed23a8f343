"""Whether a step changes the cell that it belongs to: the core runs it many times, but python traces it once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import nn

from slimrnn.tracing.dependences import TABLES
from slimrnn.tracing.stand_in import Untraceable

PLAIN = (int, float, complex, str, bytes)


class Attributes:
    """Of a module and those within it, as they were, also what is in lists, dicts and sets."""

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        self.before = dict(_of_module(module))

    def check(self) -> None:
        """Untraceable where one has changed."""
        now = dict(_of_module(self.module))
        for name in {**self.before, **now}:
            if name not in now or name not in self.before or not _is_same(self.before[name], now[name]):
                raise Untraceable(
                    f"changes {name.partition('[')[0]}, which native cells cannot: they trace a step once"
                )


def _of_module(module: nn.Module, name: str = "self") -> Iterator[tuple[str, Any]]:
    """Everything that it holds, by where it is."""
    for key, value in module.__dict__.items():
        if key not in TABLES and key != "_changes":
            yield from _inside(value, f"{name}.{key}")
    for table in TABLES[:2]:
        yield from ((f"{name}.{key}", value) for key, value in module.__dict__[table].items())
    for key, child in module._modules.items():
        yield from ((f"{name}.{key}", child),) if child is None else _of_module(child, f"{name}.{key}")


def _inside(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        yield f"{name}[]", len(value)
        for key, inner in value.items():
            yield from _inside(inner, f"{name}[{key!r}]")
    elif isinstance(value, list | tuple):
        yield f"{name}[]", len(value)
        for number, inner in enumerate(value):
            yield from _inside(inner, f"{name}[{number}]")
    else:
        yield name, frozenset(value) if isinstance(value, set) else value


def _is_same(a: Any, b: Any) -> bool:
    """Stand-ins are not compared: that would be part of the step."""
    return a is b or (type(a) is type(b) and isinstance(a, (*PLAIN, frozenset)) and bool(a == b))
