"""What the recurrent layers inside a model are given when it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence

from slimrnn.analysis.model.layers import in_vectors, recurrent_modules
from slimrnn.analysis.model.trajectory import evaluating
from slimrnn.layers import RecurrentStack
from slimrnn.layers.stack import States


@dataclass(frozen=True, eq=False)
class LayerInput:
    """The arguments of a call, x padded and in the layer's own form: `view.states(given.x, given.hx, given.lengths)`.

    Of tokens, the vectors that they stand for."""

    x: Tensor
    hx: States | None = None
    lengths: Tensor | None = None


def layer_inputs(model: nn.Module, *args: Any, **kwargs: Any) -> dict[str, LayerInput]:
    """What each RNN, GRU or LSTM gets when the model is called with these arguments, by `LayerView.owner`.

    The model runs once, in eval mode and without gradients. A layer that it calls more than once, such as one step at a
    time, or not at all, has no sequence to show: ValueError."""
    calls = layer_calls(model, *args, **kwargs)
    if not calls:
        raise ValueError(f"expected a model with an RNN, GRU or LSTM, got {type(model).__name__} without one")
    for name, seen in calls.items():
        if len(seen) != 1:
            which = name or type(model).__name__
            raise ValueError(f"expected one call of {which}, with a whole sequence, got {len(seen)}")
    return {name: seen[0] for name, seen in calls.items()}


def layer_calls(model: nn.Module, *args: Any, **kwargs: Any) -> dict[str, list[LayerInput]]:
    """All calls of each: none, one with a sequence, or one for each step."""
    found = recurrent_modules(model)
    owners = {name: module for name, module in found if isinstance(module, RecurrentStack | nn.RNNBase)}
    calls: dict[str, list[LayerInput]] = {name: [] for name in owners}
    hooks = [
        module.register_forward_pre_hook(_listener(module, calls[name]), with_kwargs=True)
        for name, module in owners.items()
    ]
    try:
        with evaluating(model), torch.no_grad():
            model(*args, **kwargs)
    finally:
        for hook in hooks:
            hook.remove()
    return calls


def _listener(module: nn.Module, calls: list[LayerInput]) -> Callable[..., None]:
    batch_first = bool(getattr(module, "batch_first", False))

    def heard(
        input: Tensor | PackedSequence,
        hx: States | None = None,
        lengths: Any = None,
        resets: Tensor | None = None,
        reset_state: States | None = None,
    ) -> LayerInput:
        if resets is not None and bool(resets.any()):
            raise ValueError("expected sequences without resets, got some: give the model one episode in each sequence")
        if isinstance(input, PackedSequence):
            input, lengths = pad_packed_sequence(input, batch_first=batch_first)
        if isinstance(module, RecurrentStack):
            input = in_vectors(module, input, lengths)
        return LayerInput(input, hx, None if lengths is None else torch.as_tensor(lengths))

    def hook(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        calls.append(heard(*args, **kwargs))

    return hook
