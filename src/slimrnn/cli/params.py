"""`slimrnn params`: where a net's parameters are, or the state that a budget buys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from slimrnn import hidden_size_for, summary
from slimrnn.cli.errors import refusing
from slimrnn.cli.forms import form
from slimrnn.cli.parsing import parse
from slimrnn.cli.settings import starting_point
from slimrnn.layers import RecurrentStack
from slimrnn.training.config import ModelConfig
from slimrnn.training.model import build_layers, structure_from

USAGE = "usage: slimrnn params TASK [OPTIONS]\n\nWhere a net's parameters are, or the state that a budget buys."


@dataclass(frozen=True)
class Options:
    """Where a net's parameters are, or the state that a budget buys."""

    config: Path | None = None
    """settings from this YAML file or run.json; options override them"""
    budget: int | None = None
    """find the largest --model.hidden whose recurrent layers have at most so many parameters"""


def run(arguments: Sequence[str]) -> None:
    """Print the table."""
    start, rest = starting_point(arguments, "params", USAGE)
    empty = form(Options(), {"task": start.task}, {"model": start.model})
    filled = parse(empty, rest, f"slimrnn params {start.task.name}", compact=True)
    with refusing(ValueError, RuntimeError), torch.device("meta"):  # counting needs no memory
        model = filled.model
        if filled.budget is not None:
            model = replace(model, hidden=affordable(filled.task.input_size, model, filled.budget))
        table = summary(filled.task.model(model))
    if filled.budget is not None:
        print(f"{filled.budget:,} parameters of recurrent layers buy a state of {model.hidden:,}\n")
    print(table)


def affordable(input_size: int, model: ModelConfig, budget: int) -> int:
    """The largest state that so many parameters of recurrent layers buy."""

    def layers(size: int, hidden: int, **_: Any) -> RecurrentStack:
        return build_layers(size, replace(model, hidden=hidden))

    return hidden_size_for(
        budget,
        layers,
        input_size,
        structure=lambda n: structure_from(replace(model, hidden=n)),
        input_structure=lambda n: structure_from(replace(model, hidden=n), "input_structure"),
    )
