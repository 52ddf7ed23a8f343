"""`slimrnn params`: count parameters, or find the largest net for a budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from slimrnn import ContextSwitching, Highway, hidden_size_for, summary
from slimrnn.cli.option_classes import with_options
from slimrnn.cli.parsing import parse
from slimrnn.cli.settings import starting_point
from slimrnn.errors import UsageError
from slimrnn.layers import RecurrentStack
from slimrnn.training.config import ModelConfig
from slimrnn.training.models.sequence_model import structure_from
from slimrnn.training.task import Task

USAGE = (
    "usage: slimrnn params TASK [OPTIONS]\n\nCount a net's parameters by layer, or find the largest net for a budget."
)


@dataclass(frozen=True)
class Options:
    """Count a net's parameters by layer, or find the largest net for a budget."""

    config: Path | None = None
    """settings from this YAML file or run.json; options override them"""
    budget: int | None = None
    """find the largest --model.hidden whose recurrent (or highway) layers have at most this many parameters"""


def run(arguments: Sequence[str]) -> None:
    """Print the table."""
    start, rest = starting_point(arguments, "params", USAGE)
    empty = with_options(Options(), {"task": start.task}, {"model": start.model})
    filled = parse(empty, rest, f"slimrnn params {start.task.name}", compact=True)
    model = filled.model
    try:
        with torch.device("meta"):  # counting needs no memory
            if filled.budget is not None:
                model = replace(model, hidden=affordable(filled.task, model, filled.budget))
            table = summary(filled.task.model(model))
    except (ValueError, RuntimeError) as error:
        raise UsageError(str(error)) from error
    if filled.budget is not None:
        kind = "highway" if model.cell == "highway" else "recurrent"
        print(f"{filled.budget:,} parameters of {kind} layers: largest state {model.hidden:,}\n")
    print(table)


def affordable(task: Task, model: ModelConfig, budget: int) -> int:
    """The largest state whose recurrent or highway layers have at most `budget` parameters."""

    def layers(_: int, hidden: int, **__: Any) -> Any:
        found = task.model(replace(model, hidden=hidden)).modules()
        parts = [part for part in found if isinstance(part, RecurrentStack | ContextSwitching | Highway)]
        counts = {id(p): p.numel() for part in parts for p in part.parameters()}
        return SimpleNamespace(num_parameters=sum(counts.values()))

    groups = len(model.delays)  # structures are those of each group of units
    return hidden_size_for(
        budget,
        layers,
        task.input_size,
        structure=lambda n: structure_from(replace(model, hidden=n * groups)),
        input_structure=lambda n: structure_from(replace(model, hidden=n * groups), "input_structure"),
        delays=model.delays,
    )
