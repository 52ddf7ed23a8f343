"""A few hundred to thousands of updates after the compression: Adam, cosine, clipped gradients, the best net kept."""

from __future__ import annotations

import contextlib
import copy
import itertools
import math
import sys
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from slimrnn.compression.choosing import finite
from slimrnn.compression.losses import Loss, distance, output_of

CLIP = 1.0
TIMES = 10  # that the score is measured on the way


class Tuned(NamedTuple):
    """What came of it."""

    updates: int  #: done
    best_update: int  #: 0: none made it better
    score: float


def fine_tune_(
    model: nn.Module,
    teacher: nn.Module,
    data: Iterable[Any],
    loss: Loss | str | None,
    updates: int,
    score: Callable[[nn.Module], float],
    rate: float,
    quiet: bool = False,
) -> Tuned:
    """Follow the loss, or without one the outputs of the teacher. The net with the best score stays, be it the first;
    Ctrl-C ends it early."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    if not parameters:
        raise ValueError("expected parameters to fine-tune, got none with requires_grad: model.requires_grad_(True)")
    optimizer = torch.optim.Adam(parameters, lr=rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, updates)
    objective = loss if callable(loss) else _distillation(teacher, loss)
    was_training = model.training
    best, weights, best_update, done = score(model), copy.deepcopy(model.state_dict()), 0, 0
    with contextlib.suppress(KeyboardInterrupt):
        for batch in itertools.islice(_again_and_again(data), updates):
            value = objective(model.train(), batch)
            optimizer.zero_grad()
            value.backward()
            norm = nn.utils.clip_grad_norm_(parameters, CLIP)
            if math.isfinite(float(norm)):
                optimizer.step()
            schedule.step()
            done += 1
            if done % max(1, updates // TIMES) and done != updates:
                continue
            now = score(model)
            if finite(now) < finite(best):
                best, weights, best_update = now, copy.deepcopy(model.state_dict()), done
            if not quiet:
                print(f"  update {done:,} of {updates:,}: {now:.4g}, best {best:.4g}", file=sys.stderr, flush=True)
    if done < updates:
        print(f"  stopped after update {done:,}; the best net, of update {best_update:,}, is kept", file=sys.stderr)
    model.load_state_dict(weights)
    model.train(was_training)
    return Tuned(done, best_update, best)


def _again_and_again(data: Iterable[Any]) -> Iterable[Any]:
    while True:
        yield from data


def _distillation(teacher: nn.Module, loss: str | None) -> Loss:
    teacher = teacher.eval()

    def objective(model: nn.Module, batch: Any) -> Tensor:
        with torch.no_grad():
            wanted = output_of(teacher, batch)
        return distance(output_of(model, batch), wanted, loss)

    return objective
