"""Batches by number: batch k of a run is a function of its settings and k, for any number of processes and workers."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import count
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from slimrnn.training import random
from slimrnn.training.config import Config
from slimrnn.training.launch import Place
from slimrnn.training.task import Batch, Indices, Samples

AT_MOST = 64  # batches whose sequences are shared out by length


class Batches(Dataset[Batch]):
    """The batches of one process, from the first or from where `load_state_dict` says.

    Sequences come in their order, or, of a fixed set of `size`, in a new order in every epoch; a batch may span two
    epochs, so that all are of one size. Where the samples tell their lengths, the sequences of some batches in a row
    are shared out so that those of one batch are about as long as each other. `bptt` cuts batches into pieces of that
    many steps, and after `restart_every` pieces the sequences begin anew. Process `rank` of `world` has every world-th
    sequence of a batch. `updates` is how many to give before it ends."""

    def __init__(
        self,
        samples: Samples,
        batch_size: int,
        *,
        updates: int,
        seed: int = 0,
        size: int | None = None,
        bptt: int | None = None,
        restart_every: int | None = None,
        rank: int = 0,
        world: int = 1,
        workers: int = 0,
    ) -> None:
        if size is not None and samples.size is not None and size > samples.size:
            raise ValueError(f"expected a size of at most {samples.size:,}, the sequences there are, got {size:,}")
        self.samples, self.batch_size, self.updates, self.seed = samples, batch_size, updates, seed
        self.size = samples.size if size is None else size
        self.bptt, self.restart_every = bptt, restart_every
        self.rank, self.world, self.workers = rank, world, workers
        self.lengths: Callable[[Indices], Indices] | None = getattr(samples, "lengths", None)
        self.together = AT_MOST if self.size is None else max(1, min(AT_MOST, self.size // batch_size))
        self.window: tuple[int, list[Indices]] = -1, []  # the batches that were last shared out
        self.batch, self.piece, self.served = 0, 0, 0  # what comes next, and the number of pieces before it

    @classmethod
    def of_run(cls, config: Config, place: Place) -> Batches:
        """The training batches of a run."""
        return cls(
            config.task.samples("train", config.seed),
            config.batch_size,
            updates=config.updates,
            seed=config.seed,
            size=config.train_size,
            bptt=config.bptt,
            restart_every=config.restart_every,
            rank=place.rank,
            world=place.world,
            workers=config.workers,
        )

    def __len__(self) -> int:
        return self.updates

    def __getitem__(self, number: int) -> Batch:
        """This process's sequences of a batch."""
        if self.bptt is None:
            return self.samples.fetch(self.indices(number)[self.rank :: self.world])
        whole = self.samples.fetch(self.indices(number))  # all of them, so that all processes see as many pieces
        return whole if self.world == 1 else _sequences(whole, slice(self.rank, None, self.world))

    def indices(self, number: int) -> Indices:
        """The sequences of a batch, over all processes."""
        if self.lengths is None:
            return self._drawn(number * self.batch_size, self.batch_size)
        window, place = divmod(number, self.together)
        if self.window[0] != window:
            drawn = self._drawn(window * self.together * self.batch_size, self.together * self.batch_size)
            by_length = drawn[np.argsort(self.lengths(drawn), kind="stable")].reshape(self.together, self.batch_size)
            order = random.permutation(random.key(self.seed, "window", window), self.together)
            self.window = window, list(by_length[order])
        return self.window[1][place]

    def _drawn(self, first: int, count: int) -> Indices:
        """The sequences at these places of the order of all epochs."""
        places = np.arange(first, first + count, dtype=np.int64)
        if self.size is None:
            return places
        epochs, within = places // self.size, places % self.size
        chosen = np.empty_like(places)
        for epoch in np.unique(epochs):
            here = epochs == epoch
            chosen[here] = _order(self.seed, int(epoch), self.size)[within[here]]
        return chosen

    def __iter__(self) -> Iterator[Batch]:
        self.served %= self.updates  # asked again after the end, it goes on
        for batch in self._from(self.batch):
            pieces = [batch] if self.bptt is None else list(batch.segments(self.bptt, self.restart_every))
            for piece in pieces[self.piece :]:
                if self.served == self.updates:
                    return
                self.served += 1
                self.piece += 1
                if self.piece == len(pieces):
                    self.batch, self.piece = self.batch + 1, 0
                yield piece

    def _from(self, first: int) -> Iterator[Batch]:
        if not self.workers:
            return map(self.__getitem__, count(first))
        order = range(first, first + self.updates)
        loader: DataLoader[Batch] = DataLoader(
            self, batch_size=None, sampler=order, num_workers=self.workers, worker_init_fn=_ignore_signals
        )
        return iter(loader)

    def state_dict(self) -> dict[str, Any]:
        """The position in the data."""
        return {"batch": self.batch, "piece": self.piece, "given": self.served}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.batch, self.piece, self.served = state["batch"], state["piece"], state["given"]


def as_dtype(batch: Batch, dtype: torch.dtype) -> Batch:
    """The batch with its real numbers in another precision."""
    cast: dict[str, Any] = {
        name: value.to(dtype)
        for name, value in vars(batch).items()
        if isinstance(value, Tensor) and value.is_floating_point() and value.dtype != dtype
    }
    return replace(batch, **cast) if cast else batch


def on_device(batch: Batch, config: Config, device: torch.device) -> Batch:
    """The batch in the precision of the run, on the device."""
    batch = as_dtype(batch, getattr(torch, config.dtype))
    return batch if batch.inputs.device == device else batch.to(device)


def _sequences(batch: Batch, which: slice) -> Batch:
    """A slice of the sequences of a batch; needs an output at every step."""
    return replace(
        batch,
        inputs=batch.inputs[:, which],
        targets=batch.targets[:, which],
        weights=None if batch.weights is None else batch.weights[:, which],
        lengths=None if batch.lengths is None else batch.lengths[which],
    )


@lru_cache(maxsize=2)  # a batch may span two epochs
def _order(seed: int, epoch: int, size: int) -> Indices:
    return random.permutation(random.key(seed, "order", epoch), size)


def _ignore_signals(worker: int) -> None:
    """Ctrl-C and a scheduler's SIGTERM reach workers too, but the training process decides when to stop."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
