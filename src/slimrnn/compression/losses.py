"""What the user's data and loss are taken as.

A batch is a tensor, the input; a tuple, of which the first is the input; or a dict of the model's arguments. A loss is
a function of the model and a batch that returns a number to be made small; or "logits", which says that the model's
output are logits of classes along its last axis; or nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence

Loss = Callable[[nn.Module, Any], Tensor]
LOGITS = "logits"


def check_loss(loss: Loss | str | None) -> None:
    if loss is not None and loss != LOGITS and not callable(loss):
        raise TypeError(f'expected loss to be a function of model and batch, "logits" or None, got {loss!r}')


def batches_of(data: Iterable[Any]) -> Iterable[Any]:
    """Batches that can be gone through more than once."""
    if isinstance(data, Tensor | Mapping | str) or not hasattr(data, "__iter__"):
        raise TypeError(f"expected data to be batches, such as a list of tensors or a DataLoader, got {type(data)}")
    batches = list(data) if iter(data) is data else data
    if next(iter(batches), None) is None:
        raise ValueError("expected at least one batch of data, got none")
    return batches


def output_of(model: nn.Module, batch: Any) -> Tensor:
    """The model's output, of several the first."""
    if isinstance(batch, Mapping):
        return _first(model(**batch))
    if isinstance(batch, Sequence) and not isinstance(batch, PackedSequence | str):
        return _first(model(batch[0]))
    return _first(model(batch))


def _first(output: Any) -> Tensor:
    if isinstance(output, PackedSequence):
        return output.data
    if isinstance(output, Tensor):
        return output
    if isinstance(output, Mapping):
        return _first(output.get(LOGITS, next(iter(output.values()))))
    if isinstance(output, Sequence) and len(output):
        return _first(output[0])
    raise TypeError(f"expected the model to return a tensor, or several, got {type(output).__name__}: give a loss")


def probe(loss: Loss | str | None, generator: torch.Generator) -> Loss:
    """What to differentiate for the gradients of the matrices' outputs: the loss; of logits, the loss with labels drawn
    from the model's own distribution, which makes G the Fisher matrix; else a random direction of the output, which
    makes G the sum of J Jᵀ over its numbers."""
    if callable(loss):
        return loss

    def drawn_labels(model: nn.Module, batch: Any) -> Tensor:
        logits = output_of(model, batch).flatten(0, -2)
        shares = logits.detach().double().softmax(-1).cpu()
        labels = torch.multinomial(shares, 1, generator=generator).squeeze(-1).to(logits.device)
        return functional.cross_entropy(logits, labels, reduction="sum")

    def drawn_direction(model: nn.Module, batch: Any) -> Tensor:
        output = output_of(model, batch)
        return (output * torch.randn(output.shape, generator=generator).to(output)).sum()

    return drawn_labels if loss == LOGITS else drawn_direction


def distance(output: Tensor, of_teacher: Tensor, loss: Loss | str | None) -> Tensor:
    """Of two outputs: KL in nats, of logits; else the squared error as a share of the teacher's power."""
    if loss == LOGITS:
        ours, theirs = output.log_softmax(-1).flatten(0, -2), of_teacher.log_softmax(-1).flatten(0, -2)
        return functional.kl_div(ours, theirs, reduction="batchmean", log_target=True)
    power = of_teacher.square().mean().clamp_min(torch.finfo(output.dtype).tiny)
    return (output - of_teacher).square().mean() / power
