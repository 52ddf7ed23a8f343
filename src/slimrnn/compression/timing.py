"""How long the recurrent layers of models take: per step and per sequence, one model after the other in every round."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import nn

from slimrnn.layers.stack import RecurrentStack

STEPS = 100  # of a sequence
ROUNDS = 7


class Times(NamedTuple):
    """Milliseconds of all recurrent layers, on one sequence."""

    step: float
    sequence: float  #: of STEPS steps


@torch.no_grad()
def times_of(models: Sequence[nn.Module]) -> list[Times]:
    """The best of several rounds for each model."""
    steps = [[_step(module) for module in _recurrent(model)] for model in models]
    sequences = [[_sequence(module) for module in _recurrent(model)] for model in models]
    found = zip(_best(steps, 20), _best(sequences, 1), strict=True)
    return [Times(step, sequence) for step, sequence in found]


def _recurrent(model: nn.Module) -> list[Any]:
    """Copies of ours and torch's, without dropout."""
    found = [m for m in model.modules() if isinstance(m, RecurrentStack | nn.RNNBase)]
    return [copy.deepcopy(module).eval() for module in found]


def _sequence(module: Any) -> Callable[[], Any]:
    x = _input(module, STEPS)
    return lambda: module(x)


def _step(module: Any) -> Callable[[], Any]:
    x = _input(module, 1)
    if not isinstance(module, RecurrentStack) or module.bidirectional:
        _, state = module(x)
        return lambda: module(x, state)
    x_t, state = x.flatten(0, 1), module.initial_state(1)
    return lambda: module.step(x_t, state)


def _input(module: Any, steps: int) -> torch.Tensor:
    some = next(module.parameters())
    shape = (1, steps, module.input_size) if module.batch_first else (steps, 1, module.input_size)
    return torch.zeros(shape, dtype=some.dtype, device=some.device)


def _best(calls: Sequence[Sequence[Callable[[], Any]]], times: int) -> list[float]:
    """Milliseconds of a round of calls."""
    best = [float("inf")] * len(calls)
    for _ in range(ROUNDS):
        for k, some in enumerate(calls):
            begin = time.perf_counter()
            for call in [*some] * times:
                call()
            best[k] = min(best[k], 1000 * (time.perf_counter() - begin) / times)
    return best
