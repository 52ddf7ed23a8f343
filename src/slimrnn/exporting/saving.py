"""`save` and `load`: a model as a directory of safetensors and a readable config. No pickle."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from slimrnn._memory import available_memory, in_gigabytes
from slimrnn._tensor_files import Sizes
from slimrnn._texts import listed, shown
from slimrnn._version import __version__
from slimrnn.errors import SavedModelError
from slimrnn.exporting import model_files
from slimrnn.exporting.building import Builder
from slimrnn.exporting.descriptions import Described, Describer
from slimrnn.exporting.likeness import check_same
from slimrnn.exporting.names import Names
from slimrnn.exporting.tensors import fill_, held_tensors, sizes, stored, tie_, tied_tensors
from slimrnn.structures import Sparse, StructuredMap

ANY_MODEL = (
    "save the weights of any model with weights_only=True, and read them with slimrnn.load(directory, into=model)"
)
ENTRIES = {"written_by", "model", "class", "training", "modes", "requires_grad", "tied", "weights", "format", "version"}


def save(model: nn.Module, directory: str | PathLike[str], *, weights_only: bool = False) -> None:
    """Write a model to a directory: its weights as safetensors and how it is made as a readable config.json.

    It may be any layer of slimrnn, with its options, and `nn.Sequential` and the like of these and of common modules of
    torch.nn. For a model of a class of your own, `weights_only=True` leaves out how it is made.

    A model that was saved there before is replaced, in one step: whoever stops this leaves the old one."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"expected a model, an nn.Module, to save, got {type(model).__name__}")
    tied, held = tied_tensors(model), held_tensors(model)
    tensors = {name: stored(name, tensor) for name, tensor in held.items() if name not in tied}
    config: dict[str, Any] = {"written_by": f"slimrnn {__version__}, torch {torch.__version__}"}
    config |= {"class": type(model).__name__, "model": None}
    if not weights_only:
        try:
            config["model"], made = _described(model, tensors)
        except TypeError as error:
            raise TypeError(f"{error}; {ANY_MODEL}") from None
        config |= _modes(model) | _trained(model, made)
    model_files.write(Path(directory), config | ({"tied": tied} if tied else {}), tensors)


def load(
    directory: str | PathLike[str],
    *,
    into: nn.Module | None = None,
    custom_objects: Iterable[Any] = (),
    device: torch.device | str = "cpu",
) -> nn.Module:
    """The model that `save` wrote; SavedModelError if it is damaged.

    `into` is a model to read the weights into, and to return; names, shapes and dtypes must be the same.
    `custom_objects` are the classes of your own cells and structures, and functions, that the model needs: nothing is
    imported because a file says so."""
    directory, names = Path(directory), Names(custom_objects)
    config = model_files.read_config(directory)
    if unknown := config.keys() - ENTRIES:
        raise SavedModelError(
            f"expected a config.json of slimrnn in {directory}, got entries {listed(sorted(unknown))}"
        )
    tied = _entries(config, "tied", str)
    described = config.get("model")
    if into is None and described is None:
        wanted = f"into=, a model of class {shown(config.get('class'))}"
        raise SavedModelError(f"expected {wanted}, since {directory} holds weights only, got none")

    def made(on: str, tensors: int, numbers: int) -> nn.Module:
        if into is not None:
            return into
        found = Builder(names, on, tensors, numbers).build(described)
        tie_(found, tied)
        return found

    def check(found: Sizes) -> None:
        numbers = sum(math.prod(shape) for shape, _ in found.values())
        model = made("meta", len(found), numbers)
        _check_sizes(model, found, tied, directory)
        _check_memory(model, directory)

    tensors = model_files.read_weights(directory, config, check)
    model = made("cpu", len(tensors), sum(t.numel() for t in tensors.values()))
    try:
        fill_(model, tensors, tied)
    except RuntimeError as error:  # numbers that a layer cannot have
        raise SavedModelError(f"{directory} is damaged: {shown(str(error), 300)}") from None
    if into is None:
        _set_modes(model, config)
        model.to(device)
    return model


def _described(model: nn.Module, tensors: Mapping[str, Tensor]) -> tuple[Described, nn.Module]:
    """How a model is made, and what `load` will make of that, without memory for its numbers."""
    describer = Describer()
    described = describer.describe(model)
    numbers = sum(tensor.numel() for tensor in tensors.values())
    try:
        made = Builder(Names(describer.custom), "meta", len(tensors), numbers).build(described)
    except (SavedModelError, ValueError) as error:
        raise TypeError(f"expected a model that can be made from its config on the device meta: {error}") from None
    check_same(model, made)
    return described, made


def _modes(model: nn.Module) -> dict[str, Any]:
    """Whether the model is in training mode, and which modules are not in the model's mode."""
    others = {name: module.training for name, module in model.named_modules() if module.training != model.training}
    return {"training": model.training} | ({"modes": others} if others else {})


def _trained(model: nn.Module, made: nn.Module) -> dict[str, Any]:
    """Which parameters are trained, where that is not as they were made."""
    usual = {name: p.requires_grad for name, p in made.named_parameters(remove_duplicate=False)}
    found = {name: p.requires_grad for name, p in model.named_parameters() if p.requires_grad != usual[name]}
    return {"requires_grad": found} if found else {}


def _set_modes(model: nn.Module, config: Mapping[str, Any]) -> None:
    model.train(config.get("training") is not False)
    try:
        for name, training in _entries(config, "modes", bool).items():
            model.get_submodule(name).training = training
        for name, trained in _entries(config, "requires_grad", bool).items():
            model.get_parameter(name).requires_grad_(trained)
    except (AttributeError, RuntimeError) as error:
        raise SavedModelError(f"expected names of the model's modules and parameters: {shown(str(error))}") from None


def _entries(config: Mapping[str, Any], name: str, kind: type) -> dict[str, Any]:
    """An entry of names with values of one kind."""
    found = config.get(name, {})
    if not isinstance(found, dict) or not all(isinstance(value, kind) for value in found.values()):
        raise SavedModelError(
            f"expected names in {name} of config.json, each with a {kind.__name__}, got {shown(found)}"
        )
    return found


def _check_sizes(model: nn.Module, found: Sizes, tied: Mapping[str, str], directory: Path) -> None:
    wanted = {name: size for name, size in sizes(held_tensors(model)).items() if name not in tied}
    for name in sorted(wanted.keys() | found.keys()):
        if wanted.get(name) != found.get(name):
            ours, theirs = (_shown_size(some.get(name)) for some in (wanted, found))
            raise SavedModelError(
                f"{directory} has the weights of another model: expected {ours} for {name[:80]}, got {theirs}"
            )


def _shown_size(size: tuple[tuple[int, ...], str] | None) -> str:
    return "none" if size is None else f"{size[0]} of {size[1]}"


def _check_memory(model: nn.Module, directory: Path) -> None:
    """The weights twice, in the file and in the model, and what it takes to draw places of sparse matrices."""
    needed = 2 * sum(t.numel() * t.element_size() for t in held_tensors(model).values())
    for map in model.modules():
        if isinstance(map, StructuredMap) and isinstance(map.spec, Sparse):
            needed += 24 * map.shape.out_size * map.shape.in_size
    if needed > (free := available_memory()):
        raise SavedModelError(f"expected {in_gigabytes(needed)} of memory for {directory}, got {in_gigabytes(free)}")
