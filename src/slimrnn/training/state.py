"""The state that truncated backpropagation carries from batch to batch: tensors with the sequences on axis 1.

In a group of processes each has the sequences rank, rank + world, ...; checkpoints hold those of all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def detached(state: Any) -> Any:
    """Cut off from the graph that computed it."""
    return _each(Tensor.detach, state)


def of_all_processes(state: Any, rank: int, world: int) -> Any:
    """The state of all sequences; every process must ask."""

    def joined(part: Tensor) -> Tensor:
        if world == 1:
            return part
        count = torch.tensor(part.shape[1], device=part.device)
        torch.distributed.all_reduce(count)
        whole = part.new_zeros(part.shape[0], int(count), *part.shape[2:])
        whole[:, rank::world] = part
        torch.distributed.all_reduce(whole)
        return whole

    return _each(joined, state)


def of_one_process(state: Any, rank: int, world: int, device: torch.device) -> Any:
    """The state of this process's sequences."""
    return _each(lambda whole: whole[:, rank::world].to(device).contiguous(), state)


def _each(change: Callable[[Tensor], Tensor], state: Any) -> Any:
    if isinstance(state, Tensor):
        return change(state)
    if isinstance(state, tuple | list):
        return type(state)(_each(change, part) for part in state)
    return state
