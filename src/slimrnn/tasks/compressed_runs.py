"""The net of a run, compressed; what comes of it is a run, too."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from slimrnn.compression.budget import Budget
from slimrnn.compression.choosing import choose_by_score
from slimrnn.compression.families import Structures
from slimrnn.compression.plan import Plan, cost_of
from slimrnn.compression.rates import peak_rate
from slimrnn.compression.reporting import report_of
from slimrnn.compression.sites import recurrent_stacks
from slimrnn.errors import ConfigError, RunDirectoryError
from slimrnn.layers.options import as_written
from slimrnn.structures import Structure
from slimrnn.tasks.loading import load_run
from slimrnn.training.batches import Batches, as_dtype
from slimrnn.training.config import Config, ModelConfig, OptimConfig
from slimrnn.training.distillation import can_distil, each, has_classes
from slimrnn.training.evaluation import measure
from slimrnn.training.launch import ALONE
from slimrnn.training.nets import START, WEIGHTS
from slimrnn.training.record import Result, Run
from slimrnn.training.run import train
from slimrnn.training.run_files import write_tensors
from slimrnn.training.structure_texts import structure_text
from slimrnn.training.task import Batch

STEPS, MOST = 20_000, 50  # steps of the training data to weight by, and batches
RESTART_EVERY = 10  # pieces of streams: a net that is never started anew may run away when it is


def compress_run(
    directory: Path,
    out: Path,
    budget: Budget,
    *,
    updates: int = 0,
    structures: Structures | None = None,
    keep: Sequence[str] | None = None,
    weighted: bool = True,
    distil: bool | None = None,
    rate: float | None = None,
    task: str | None = None,
    limit: float | None = None,
    command: str | None = None,
) -> tuple[Result, Config]:
    """A new run in `out` with the compressed net of the run in `directory`, fine-tuned for so many updates. Its report
    is printed, and written to `out`/compression."""
    model, config = load_run(directory, task)
    config.task.check_data(Run(directory).record.get("data") or {})
    plan = Plan.of(model, structures, keep)
    plan.check(budget)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise RunDirectoryError(f"{out} exists: choose another directory with --out, or continue with slimrnn resume")
    plan = plan.measured(_calibration(config), _drawn_loss(config)) if weighted else plan.measured()
    score = score_of_run(config)
    plan, chosen, small = choose_by_score(plan, budget, score)
    report = report_of(model, plan, budget, chosen, small, score, "loss on training data")
    print(f"{report}\n")
    share = cost_of(small, "parameters") / plan.whole("parameters")
    settings = fine_tuning_config(config, small, share, updates, directory.absolute(), distil)
    if rate is not None:
        settings = replace(settings, optim=replace(settings.optim, lr=rate))
    settings = replace(settings, start_from=write_start(out / START, small).absolute(), out=out)
    result = train(settings, command, limit)
    if result.updates:
        after = replace(report.after, score=score(load_run(out, task)[0]))
        report = replace(report, after=after, right_after=report.after.score, updates=result.updates)
        report = replace(report, best_update=result.best_update or 0)
    report.save(out / "compression")
    return result, settings


def plan_of_run(
    model: nn.Module,
    config: Config,
    *,
    weighted: bool = True,
    structures: Structures | str | Structure | None = None,
    keep: Sequence[str] | str | None = None,
) -> Plan:
    """What the net of a run can be compressed to, weighted by its training data."""
    plan = Plan.of(model, structures, keep)
    return plan.measured(_calibration(config), _drawn_loss(config)) if weighted else plan.measured()


def compressed_config(config: Config, small: nn.Module) -> ModelConfig:
    """The settings of a run's net after its compression."""
    stacks = list(recurrent_stacks(small).values())
    if len(stacks) != 1:
        raise ConfigError(f"expected a net with one stack of recurrent layers, got {len(stacks)}")
    recurrent = as_written([core.recurrent.spec for core in stacks[0].cores])
    inward = as_written([core.input.spec for core in stacks[0].cores])
    plain = replace(config.model, rank=None, tied=False, blocks=None, factors=None)
    return replace(plain, structure=structure_text(recurrent), input_structure=structure_text(inward))


def fine_tuning_config(
    config: Config, small: nn.Module, share: float, updates: int, teacher: Path, distil: bool | None = None
) -> Config:
    """Of a run that goes on from the compressed net: Adam, cosine, and a rate that grows with the damage. `distil` from
    the teacher's outputs: by default where the task allows it."""
    distil = can_distil(config.task) if distil is None else distil
    schedule: Any = "cosine" if updates else "constant"
    optim = OptimConfig(
        optimizer="adam", lr=peak_rate(share), schedule=schedule, clip_norm=1.0, penalty=config.optim.penalty
    )
    every = max(1, updates // 10)
    return replace(
        config,
        model=compressed_config(config, small),
        optim=optim,
        updates=updates,
        eval_every=every,
        checkpoint_every=min(every, config.checkpoint_every),
        restart_every=None if config.bptt is None else RESTART_EVERY,
        stop_at=None,
        teacher=teacher if distil and updates else None,
    )


def write_start(path: Path, small: nn.Module) -> Path:
    """The weights of the compressed net, in the form of a run's."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_tensors(path, WEIGHTS, small.state_dict(), {"update": 0})
    return path


def _calibration(config: Config) -> Iterator[Batch]:
    """Batches of the training data, with about STEPS steps in all."""
    batches = iter(Batches.of_run(replace(config, updates=max(config.updates, MOST)), ALONE))
    seen = 0
    for batch in islice(batches, MOST):
        yield as_dtype(batch, getattr(torch, config.dtype))
        seen += math.prod(batch.inputs.shape[:2])
        if seen >= STEPS:
            return


def score_of_run(config: Config) -> Callable[[nn.Module], float]:
    """The task's mean loss on what the matrices are weighted by."""
    return lambda model: measure(model, config.task, _calibration(config))["loss"]


def _drawn_loss(config: Config) -> Callable[[nn.Module, Any], Tensor]:
    """The summed loss of a batch, whose targets, where they are classes, are drawn from the net's own distribution;
    along streams the state is carried over."""
    generator, carried = torch.Generator().manual_seed(0), [cast(Any, None)]

    def loss(model: nn.Module, batch: Batch) -> Tensor:
        state = None if batch.first else carried[0]
        if not can_distil(config.task):
            outcome, after = config.task.run(model, batch, state)
            carried[0] = each(Tensor.detach, after)
            return outcome.scores["loss"].total
        output, after = model(batch.inputs, state, batch.lengths)
        carried[0] = each(Tensor.detach, after)
        if not has_classes(output, batch):
            return config.task.scores(output, batch)["loss"].total
        logits = output.flatten(0, -2)
        labels = torch.multinomial(logits.detach().double().softmax(-1), 1, generator=generator).squeeze(-1)
        losses = functional.cross_entropy(logits, labels, reduction="none")
        if batch.weights is not None and batch.weights.numel() == losses.numel():
            losses = losses * batch.weights.flatten()
        return losses.sum()

    return loss
