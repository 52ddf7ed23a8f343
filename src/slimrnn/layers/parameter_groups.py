"""Parameter groups for an optimizer: the recurrent matrices at a learning rate of their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import nn

from slimrnn._checks import check_number
from slimrnn.layers.recurrent_layer import RecurrentLayer


def recurrent_parameters(model: nn.Module) -> Iterator[nn.Parameter]:
    """Parameters of the recurrent matrices of every recurrent layer in a model, ours or torch's."""
    for module in model.modules():
        if isinstance(module, RecurrentLayer):
            for recurrent in module.maps:
                yield from recurrent.parameters()
        elif isinstance(module, nn.RNNBase | nn.RNNCellBase):
            yield from (p for name, p in module.named_parameters() if "weight_hh" in name)


def parameter_groups(model: nn.Module, lr: float, recurrent_rate: float = 0.1) -> list[dict[str, Any]]:
    """For an optimizer, `Adam(parameter_groups(model, 1e-3))`: all parameters of a model in two groups, the recurrent
    matrices with the learning rate lr · recurrent_rate, and the others with lr. A group without parameters is left out.

    Factors of a product need smaller steps than single matrices, since their changes multiply: with many Kronecker
    factors, 0.1 or less is a good `recurrent_rate`."""
    for name, rate in (("lr", lr), ("recurrent_rate", recurrent_rate)):
        check_number(name, rate)
        if rate < 0:
            raise ValueError(f"expected {name} of at least 0, got {rate}")
    recurrent = {id(p) for p in recurrent_parameters(model)}
    groups = [
        {"params": [p for p in model.parameters() if (id(p) in recurrent) == is_recurrent], "lr": rate}
        for is_recurrent, rate in ((False, lr), (True, lr * recurrent_rate))
    ]
    return [group for group in groups if group["params"]]
