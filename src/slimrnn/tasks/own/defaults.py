"""Settings that suit the data: size, rate, number of updates. docs/own-data.md says how they were chosen."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from slimrnn._texts import listed
from slimrnn.data.own.notes import plural
from slimrnn.errors import ConfigError
from slimrnn.tasks.own.own_task import OwnTask
from slimrnn.tasks.own.sequences_task import SequencesTask
from slimrnn.training.checks import build_model
from slimrnn.training.config import Config, ModelConfig, OptimConfig

if TYPE_CHECKING:
    from slimrnn.tasks.own.forecast import ForecastTask

STEPS = 50  # of the net, about, for a sequence of the median length
TOO_FEW = 300  # training sequences of which a classifier can spare none for validation
FEW = 500  # training sequences below which noise and dropout help
MANY = 2000  # and from which a larger net has enough to learn from
AT_MOST = 2000  # sequences that evaluations on the way read, and of the validation set
LONG = 400  # steps from which sequences are learned in pieces
PIECE = 200  # steps of these
ENDS = (("train", "valid"), ("valid", "test"), ("test", "end"))


def one_output_config(task: SequencesTask, targets: str, *, hold_none: bool = False) -> tuple[Config, str]:
    """For one answer per sequence: two directions, the mean over all steps, frames of a long sequence."""
    train = len(task.part("train")[1])
    if hold_none and train < TOO_FEW and (task.sequences.parts is None or "valid" not in task.sequences.parts):
        task = task.changed(valid_share=0.0)
        train = len(task.part("train")[1])
    typical = int(np.median(task.sequences.lengths))
    frame = task.stride if task.stride > 1 else max(1, round(typical / STEPS))
    few = train < FEW
    model = ModelConfig(
        "gru",
        64 if train < MANY else 128,
        bidirectional=True,
        pooling="mean",
        readout_dropout=0.2 if few else 0.0,
    )
    config = _config(task.changed(frame=frame, noise=task.noise or (0.1 if few else 0.0)), model, train)
    why = f"a GRU of {model.hidden} units in each direction, and the mean of its states"
    if frame > 1:
        why += f"; {frame} steps of the data make one of the net, which learns {typical // frame} better than {typical}"
    if few:
        why += f"; noise and dropout, since {train:,} sequences are few"
    if not task.valid_share:
        why += "; none are held out for validation, and the net with the smallest training loss is taken"
    return config, f"{described(task, targets)}\n{why}"


def tagging_config(task: SequencesTask, targets: str) -> tuple[Config, str]:
    """For an answer at every step: one direction, so that the net can run on a stream."""
    train = len(task.part("train")[1])
    longest, few = int(task.sequences.lengths.max()), train < FEW
    model = ModelConfig("gru", 64 if train < MANY else 128, readout_dropout=0.1 if few else 0.0)
    config = _config(task, model, train)
    why = f"a GRU of {model.hidden} units, which reads forward only and so can answer line by line"
    if longest > LONG:
        config = replace(config, bptt=PIECE, updates=2 * config.updates)
        why += f"; sequences are learned in pieces of {PIECE} steps, with the state carried over"
    return config, f"{described(task, targets)}\n{why}"


def _config(task: OwnTask, model: ModelConfig, train: int) -> Config:
    batch = int(np.clip(train // 4, 1, 16)) if train < FEW else 32 if train < MANY else 64
    updates = int(np.clip(40 * train // batch, 600, 2000))
    every = updates // 20
    return Config(
        task,
        model,
        OptimConfig("adamw", 5e-3, weight_decay=1e-2, clip_norm=1.0, schedule="cosine"),
        updates=updates,
        batch_size=batch,
        valid_size=AT_MOST,
        eval_every=every,
        checkpoint_every=every,
        patience=10,
    )


def described(task: SequencesTask, targets: str) -> str:
    """What was read, and how it was split."""
    sequences, test = task.sequences, task.test_sequences
    lengths = sequences.lengths if test is None else np.concatenate([sequences.lengths, test.lengths])
    shortest, longest = int(lengths.min()), int(lengths.max())
    steps = f"{longest:,} steps" if shortest == longest else f"{shortest:,} to {longest:,} steps"
    columns = f"{plural(len(sequences.columns), 'column')} ({listed(sequences.columns, 60)})"
    sizes = {name: f"{len(which):,}" for name, which in task.parts.items()}
    if task.parts["valid"] is task.parts["train"]:
        sizes["valid"] = "none"
    shared = ", ".join(f"{size} for {name}" for name, size in sizes.items())
    lines = [f"{len(lengths):,} sequences of {steps}, {columns}, {targets}: {shared}"]
    if test is not None and task.test_share != OwnTask.test_share:
        lines.append(f"--test-share {task.test_share:g} is not used: the test set is a file of its own")
    return "\n".join([*lines, *sequences.notes])


def forecast_config(task: ForecastTask) -> tuple[Config, str]:
    """For forecasts: one direction, an answer after every step, the naive forecast to start from."""
    count = len(task.windows("train"))
    model = ModelConfig("gru", 64)
    config = _config(task.changed(context=task.reads, noise=task.noise or 0.05), model, count)
    config = replace(config, optim=replace(config.optim, lr=2e-3), batch_size=min(32, config.batch_size))
    naive = "the last value" if task.base == 1 else f"the value {task.base} steps ago"
    why = (
        f"a GRU of {model.hidden} units that reads {task.reads} steps and forecasts the difference to {naive}, "
        "the best naive forecast of the training part"
    )
    series = f"{len(task.series):,} series" if len(task.series) > 1 else "one series"
    lengths = task.series.lengths
    steps = f"{lengths.max():,}" if lengths.min() == lengths.max() else f"{lengths.min():,} to {lengths.max():,}"
    parts = ", ".join(f"{int((task.cuts[end] - task.cuts[name]).sum()):,} for {name}" for name, end in ENDS)
    read = f"{series} of {steps} steps ({listed(task.targets, 60)}), {task.horizon} steps ahead: {parts}, in this order"
    return config, "\n".join([read, *task.sequences.notes, why])


def variants(config: Config) -> list[Config]:
    """For a budget: these settings, a larger net, another cell, a longer training, more or less regularisation. Where
    none were held out for validation some are, to choose by."""
    task, model, optim = config.task, config.model, config.optim
    if isinstance(task, OwnTask) and not task.valid_share:
        config = replace(config, task=task.changed(valid_share=OwnTask.valid_share))
    every = 2 * config.eval_every
    slow = replace(optim, lr=optim.lr / 3)
    nets = [replace(model, hidden=2 * model.hidden)]
    if model.cell == "gru":
        nets.append(replace(model, cell="lstm", forget_bias=1.0, update_bias=0.0, reset="after"))
    if model.layers == 1:
        nets.append(replace(model, layers=2, dropout=0.2))
    nets += [replace(model, hidden=max(8, model.hidden // 2)), replace(model, readout_dropout=0.5)]
    longer = replace(config, optim=slow, updates=2 * config.updates, eval_every=every, checkpoint_every=every)
    tries = [replace(config, model=net) for net in nets]
    possible = [one for one in tries if _is_possible(one)]
    return [config, *possible[:1], longer, *possible[1:]]


def _is_possible(config: Config) -> bool:
    """Half the units may be fewer than the rank, or not divide into the blocks."""
    try:
        build_model(config)
    except ConfigError:
        return False
    return True
