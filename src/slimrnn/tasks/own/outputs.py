"""What a net says about sequences, in batches of similar length."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor, nn

from slimrnn.data.sequences import Sequences
from slimrnn.tasks.own.samples import Source
from slimrnn.training.batches import as_dtype
from slimrnn.training.task import Batch, Indices

MOST = 256  # sequences at a time
LARGEST = 1 << 17  # steps of these together


@torch.no_grad()
def outputs_of(
    task: Source, model: nn.Module, sequences: Sequences, which: Indices
) -> Iterator[tuple[Indices, Tensor, Batch]]:
    """Numbers of some sequences, the net's output for them and the batch that they made, until all of `which` had
    their turn; the longest come first."""
    some, training = next(model.parameters()), model.training
    model.eval()
    steps = task.steps(sequences, which)
    order, start = np.argsort(-steps, kind="stable"), 0
    while start < len(order):
        count = max(1, min(MOST, LARGEST // max(1, int(steps[order[start]]))))
        indices = which[order[start : start + count]]
        batch = as_dtype(task.batch(sequences, indices), some.dtype).to(some.device)
        output, _ = model(batch.inputs, None, batch.lengths)
        yield indices, output, batch
        start += count
    model.train(training)
