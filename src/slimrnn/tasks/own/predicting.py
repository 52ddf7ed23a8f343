"""Predictions for new sequences by the net of a run: rows of a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from torch import nn

from slimrnn.data.own_files import read_sequences
from slimrnn.data.roles import Roles
from slimrnn.data.sequences import Sequences
from slimrnn.errors import ConfigError, DataError
from slimrnn.tasks.loading import run_config
from slimrnn.tasks.own.own_task import OwnTask

AT_A_TIME = 1024  # sequences whose rows are held


def load_predictor(directory: Path, task: str | None = None) -> tuple[OwnTask, nn.Module]:
    """The task of a run and its best net; the file that it was trained on is not needed."""
    from slimrnn.training.nets import read_net
    from slimrnn.training.record import Run

    run = Run(directory)
    config = run_config(run, task)
    if not isinstance(config.task, OwnTask):
        raise ConfigError(f"expected a run on your own sequences, got {directory}, which is one on {config.task.name}")
    known = config.task.restored(run.record.get("data") or {})
    return known, read_net(run.best_weights, replace(config, task=known)).eval()


def read_new(path: Path, task: OwnTask) -> Sequences:
    """Sequences to predict, with the columns that the net was trained on; labels are not needed."""
    sequences = read_sequences(path, unlabelled(task.roles), to_predict=True)
    wanted = task.input_columns
    if sequences.columns != wanted:
        raise DataError(
            f"expected the columns that the net was trained on ({', '.join(wanted)}) in {path}, got "
            f"{', '.join(sequences.columns)}"
        )
    return sequences


def unlabelled(roles: Roles) -> Roles:
    """The same columns but for those of the label and of the parts."""
    return replace(roles, label=None, labels="none", split=None)


def heading(task: OwnTask) -> list[str]:
    """The first row."""
    return [task.roles.sequence or "sequence", *task.answer_columns]


def predictions(task: OwnTask, model: nn.Module, sequences: Sequences) -> Iterator[list[str]]:
    """The other rows, in the order of the sequences."""
    for start in range(0, len(sequences), AT_A_TIME):
        which = np.arange(start, min(start + AT_A_TIME, len(sequences)))
        found = dict(task.answers(model, sequences, which))
        for index in which.tolist():
            for row in found[index]:
                yield [sequences.ids[index], *row]
