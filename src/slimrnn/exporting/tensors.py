"""The tensors of a model that a file holds, by name; those that are one and the same are held once."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

import torch
from torch import Tensor, nn

from slimrnn._tensor_files import CODES, Sizes
from slimrnn.errors import SavedModelError


def held_tensors(model: nn.Module) -> dict[str, Tensor]:
    """The `state_dict`, and numbers of buffers that it leaves out: who computes them again may round otherwise."""
    found = {}
    for name, value in model.state_dict().items():
        if not isinstance(value, Tensor):
            raise TypeError(f"expected tensors in the state_dict, got {type(value).__name__} as {name}")
        found[name] = value
    for name, buffer in model.named_buffers(remove_duplicate=False):
        if name not in found and buffer.is_floating_point() and buffer.numel():
            found[name] = buffer
    return found


def tied_tensors(model: nn.Module) -> dict[str, str]:
    """For every name of a tensor that has an earlier name too, that name."""
    firsts: dict[int, str] = {}
    named = chain(model.named_parameters(remove_duplicate=False), model.named_buffers(remove_duplicate=False))
    found = {name: firsts.setdefault(id(tensor), name) for name, tensor in named}
    return {name: first for name, first in found.items() if name != first}


def tie_(model: nn.Module, tied: Mapping[str, str]) -> None:
    """Make the tensors of several names one again; SavedModelError where they are not alike."""
    for name, first in tied.items():
        place, _, own = name.rpartition(".")
        try:
            module, tensor = model.get_submodule(place), _tensor(model, first)
            alike = _tensor(model, name).shape == tensor.shape and _tensor(model, name).dtype == tensor.dtype
        except (AttributeError, KeyError):
            raise SavedModelError(
                f"expected tensors of the model to be tied, got {name[:60]} and {first[:60]}"
            ) from None
        if not alike:
            raise SavedModelError(f"expected tied tensors of one shape and type, got {name[:60]} and {first[:60]}")
        if isinstance(tensor, nn.Parameter):
            module._parameters[own] = tensor
        else:
            module._buffers[own] = tensor


def _tensor(model: nn.Module, name: str) -> Tensor:
    place, _, own = name.rpartition(".")
    module = model.get_submodule(place)
    tensor = module._parameters.get(own, module._buffers.get(own))
    if tensor is None:
        raise KeyError(name)
    return tensor


def stored(name: str, tensor: Tensor) -> Tensor:
    """As a file holds it: complex numbers as pairs of real ones."""
    if tensor.is_meta or tensor.layout != torch.strided:
        raise TypeError(f"expected a tensor with its numbers in memory, got {name} of {tensor.device}, {tensor.layout}")
    real = torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
    if real.dtype not in CODES:
        raise TypeError(f"expected a tensor of numbers, got {name} of {tensor.dtype}")
    return real


def sizes(tensors: Mapping[str, Tensor]) -> Sizes:
    """As a file will tell them."""
    return {
        name: (tuple(t.shape) + (2,) * t.is_complex(), CODES.get(t.real.dtype if t.is_complex() else t.dtype, "other"))
        for name, t in tensors.items()
    }


@torch.no_grad()
def fill_(model: nn.Module, tensors: Mapping[str, Tensor], tied: Mapping[str, str]) -> None:
    """Give a model the numbers of a file, whose names and sizes fit."""
    state = model.state_dict()
    for name, target in held_tensors(model).items():
        source = tensors[tied.get(name, name)]
        source = torch.view_as_complex(source) if target.is_complex() else source
        if name in state:
            state[name] = source
        else:
            target.copy_(source)
    model.load_state_dict(state)
