"""Every call of the recurrent layers inside a model when it runs, however often it calls them."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from slimrnn.analysis._trajectory import evaluating
from slimrnn.analysis.layer_inputs import LayerInput, _listener
from slimrnn.analysis.layers import recurrent_modules
from slimrnn.layers import RecurrentStack


def layer_calls(model: nn.Module, *args: Any, **kwargs: Any) -> dict[str, list[LayerInput]]:
    """As `layer_inputs`, by `LayerView.owner`, but with all calls: none, one with a sequence, or one for each step."""
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
