"""Tensors that torch.nn.utils computes from others: `parametrizations`, and `prune`, `spectral_norm` and their kind.

The first are computed whenever the attribute is read. The others leave a plain attribute, which a hook before `forward`
renews; maps and cells have no `forward`, so here the hook runs where the tensor is read.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.utils import parametrize


def is_computed(module: nn.Module) -> bool:
    """Whether some tensor of the module may be computed anew whenever it is used."""
    return bool(module._forward_pre_hooks) or parametrize.is_parametrized(module)


def read(module: nn.Module, name: str) -> Tensor:
    """A tensor of a module as it is now."""
    if name in module._parameters or not module._forward_pre_hooks:
        stored: Tensor = getattr(module, name)
        return stored
    renew(module, name)
    computed: Tensor = getattr(module, name)
    setattr(module, name, computed.detach())  # a module with a graph in it could not be copied
    return computed


def renew(module: nn.Module, name: str | None = None) -> None:
    """Let the hooks before `forward` compute the tensor of that name, or all that they compute."""
    for number, hook in module._forward_pre_hooks.items():
        target = getattr(hook, "_tensor_name", getattr(hook, "name", None))  # prune's word and spectral_norm's
        if name is None or target in (None, name):
            hook(module, (), {}) if number in module._forward_pre_hooks_with_kwargs else hook(module, ())


def write(module: nn.Module, name: str, value: Tensor) -> None:
    """Set a tensor of a module, or what it is computed from so that it has this value where that is possible."""
    parameter = module._parameters.get(name, module._parameters.get(f"{name}_orig"))
    if parametrize.is_parametrized(module, name):
        setattr(module, name, value)  # through the right inverse
    elif parameter is not None:
        parameter.copy_(value)
    else:
        raise RuntimeError(f"expected {name} to be a parameter, or one of torch.nn.utils.parametrizations, got neither")
