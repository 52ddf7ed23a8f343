"""replacements: what `replace` does with every recurrent module of a model, and why."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from slimrnn.compression.recurrent_modules import OURS, Found, Where, check_where, chosen, recurrent_modules
from slimrnn.layers import RecurrentStack

NOT_CHOSEN = "not asked for by where"


@dataclass(frozen=True)
class Replacement:
    """A recurrent module: what it is, what it becomes, or why it stays."""

    names: tuple[str, ...]  # all of them, where a module is shared
    module: nn.Module
    reason: str  # why it stays; "" where it is replaced

    @property
    def replaced(self) -> bool:
        return not self.reason

    @property
    def left(self) -> bool:
        """Whether it was asked for and stays a layer of torch's."""
        return not (self.replaced or self.reason == NOT_CHOSEN or isinstance(self.module, RecurrentStack))

    def __str__(self) -> str:
        return f"{self.shown_names}: {self.kind} {self.outcome}"

    @property
    def shown_names(self) -> str:
        return " = ".join(name or "(the model)" for name in self.names)

    @property
    def kind(self) -> str:
        """As `torch.nn.LSTM(3, 64)`."""
        module, kind = self.module, type(self.module)
        room = (
            "slimrnn" if isinstance(module, RecurrentStack) else kind.__module__.replace("torch.nn.modules.rnn", "nn")
        )
        sizes = [str(getattr(module, size)) for size in ("input_size", "hidden_size") if hasattr(module, size)]
        return f"{room}.{kind.__name__}({', '.join(sizes)})"

    @property
    def outcome(self) -> str:
        return f"becomes slimrnn.{OURS[type(self.module)].__name__}" if self.replaced else f"stays: {self.reason}"


@dataclass(frozen=True)
class Replacements:
    """What `replacements` found; `print` shows a line for each."""

    layers: tuple[Replacement, ...]

    @property
    def left(self) -> tuple[Replacement, ...]:
        """What was asked for and cannot be replaced."""
        return tuple(layer for layer in self.layers if layer.left)

    def __str__(self) -> str:
        rows = [(layer.shown_names, layer.kind, layer.outcome) for layer in self.layers]
        widths = [max((len(row[column]) for row in rows), default=0) for column in (0, 1)]
        return "\n".join(f"{name.ljust(widths[0])}  {kind.ljust(widths[1])}  {end}" for name, kind, end in rows)


def replacements(model: nn.Module, where: Where | None = None) -> Replacements:
    """What `replace(model, where=where)` would do with every recurrent module of a model; nothing is changed."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"expected a torch.nn.Module, got {type(model).__name__}")
    check_where(where)
    return Replacements(tuple(_planned(found, where) for found in recurrent_modules(model)))


def _planned(found: Found, where: Where | None) -> Replacement:
    reason = found.reason if chosen(found, where) or isinstance(found.module, RecurrentStack) else NOT_CHOSEN
    return Replacement(found.names, found.module, reason)
