"""Arguments of a model's forward, and others like them: of other batch sizes and lengths, with other numbers."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence
from torch.utils import _pytree as pytree

from slimrnn.errors import ExportError
from slimrnn.exporting.stages import Unrolled
from slimrnn.exporting.stepping import Stepping
from slimrnn.layers import OutputRecurrent, RecurrentStack

FREE = ("length", "batch")


class Sizes(NamedTuple):
    """Of the axes that may be of other sizes later; None where there is none."""

    length: int | None = None
    batch: int | None = None


@dataclass(frozen=True)
class Example:
    """Arguments by the names of forward's parameters."""

    values: dict[str, Any]
    sizes: Sizes

    @property
    def leaves(self) -> list[Tensor]:
        """All tensors, one after the other."""
        return [leaf for leaf in pytree.tree_leaves(self.values) if isinstance(leaf, Tensor)]

    @property
    def names(self) -> list[str]:
        """Of the leaves: of parameters, with a number where one has several."""
        found = []
        for name, value in self.values.items():
            count = sum(isinstance(leaf, Tensor) for leaf in pytree.tree_leaves(value))
            found += [name] if count == 1 else [f"{name}_{k}" for k in range(count)]
        return found

    def axes(self, tensor: Tensor) -> dict[int, str]:
        """Those that are free, by name."""
        named = {size: name for name, size in zip(FREE, self.sizes, strict=True) if size is not None}
        return {axis: named[size] for axis, size in enumerate(tensor.shape) if size in named}

    def dynamic_shapes(self) -> dict[str, Any]:
        """As torch.export takes them. A name for each size: torch then refuses to fix it."""
        dims = {name: torch.export.Dim(name, min=1) for name in FREE}

        def shape(leaf: Any) -> Any:
            return {axis: dims[name] for axis, name in self.axes(leaf).items()} if isinstance(leaf, Tensor) else None

        return {name: pytree.tree_map(shape, value) for name, value in self.values.items()}

    def as_pairs(self) -> Example:
        """Complex numbers as pairs of real ones."""

        def real(leaf: Any) -> Any:
            return torch.view_as_real(leaf) if isinstance(leaf, Tensor) and leaf.is_complex() else leaf

        return Example(pytree.tree_map(real, self.values), self.sizes)

    def random(self, sizes: Sizes, generator: torch.Generator) -> Example:
        """Other numbers like these, in other sizes."""

        def other(name: str, leaf: Any) -> Any:
            if not isinstance(leaf, Tensor):
                return leaf
            free = self.axes(leaf)
            shape = [getattr(sizes, free[k]) if k in free else size for k, size in enumerate(leaf.shape)]
            if "length" in name and sizes.length is not None and not leaf.is_floating_point():
                return torch.randint(1, sizes.length + 1, shape, generator=generator).to(leaf.dtype)
            found = _masks(leaf, free, shape, generator) if leaf.dtype == torch.bool else _like(leaf, shape, generator)
            if sizes.length is not None and self._may_be_lengths(leaf):
                found = found.clamp_max(sizes.length)
            return found

        values = {
            name: pytree.tree_map(lambda leaf, name=name: other(name, leaf), value)
            for name, value in self.values.items()
        }
        return Example(values, sizes)

    def _may_be_lengths(self, leaf: Tensor) -> bool:
        """Whatever its name is: integers, one for each sequence, none of which is longer than these are."""
        whole = not (leaf.is_floating_point() or leaf.is_complex() or leaf.dtype == torch.bool)
        if not whole or leaf.dim() != 1 or set(self.axes(leaf).values()) != {"batch"} or self.sizes.length is None:
            return False
        return bool(leaf.min() >= 1) and bool(leaf.max() <= self.sizes.length)


@dataclass(frozen=True)
class SequenceExample(Example):
    """Sequences (T, B, ...) for `Unrolled`, whose free axes are known, whatever their sizes are."""

    def axes(self, tensor: Tensor) -> dict[int, str]:
        return dict(enumerate(FREE))


def _masks(leaf: Tensor, free: Mapping[int, str], shape: list[int], generator: torch.Generator) -> Tensor:
    """Masks of sequences have a form, which random ones would not: those of the example, cut or with their last step
    again and again."""
    for axis, name in free.items():
        own, size = leaf.shape[axis], shape[axis]
        chosen = torch.arange(size).clamp_max(own - 1)
        if name == "batch":
            chosen = torch.randint(own, (size,), generator=generator)
        leaf = leaf.index_select(axis, chosen)
    return leaf


def _like(leaf: Tensor, shape: list[int], generator: torch.Generator) -> Tensor:
    if leaf.is_complex():
        return torch.complex(_like(leaf.real, shape, generator), _like(leaf.imag, shape, generator))
    if leaf.is_floating_point():
        spread = float(leaf.std()) if leaf.numel() > 1 else 0.0
        return (torch.randn(shape, generator=generator) * (spread or 0.5) + float(leaf.mean())).to(leaf.dtype)
    columns = shape[-1] if leaf.dim() > 2 and shape[-1] == leaf.shape[-1] else 1  # features, of a kind of number each
    own = leaf.reshape(-1, columns)
    chosen = torch.randint(len(own), (math.prod(shape) // columns, columns), generator=generator)
    return own.gather(0, chosen).reshape(shape)  # of its own numbers: there may be no others


def as_example(model: nn.Module, example: Any, fixed: bool, like: Example | None = None) -> Example:
    """Arguments as the user wrote them: a tensor, a tuple, or a dict by name."""
    if isinstance(model, Unrolled):
        x = model.canonical(example)
        return SequenceExample({"x": x}, Sizes(x.shape[0], x.shape[1]))
    values = _by_name(model, example)
    if isinstance(model, Stepping) and "state" not in values:
        x = values["x_t"]
        values["state"] = model.initial_state(len(x) if isinstance(x, Tensor) and _is_batch(model, x) else None)
    for leaf in pytree.tree_leaves(values, is_leaf=lambda v: isinstance(v, PackedSequence)):
        if isinstance(leaf, PackedSequence) or (isinstance(leaf, Tensor) and leaf.is_nested):
            raise ExportError(
                f"expected padded tensors and lengths=, got a {type(leaf).__name__}: no runtime has those"
            )
    if like is not None and list(values) != list(like.values):
        raise ValueError(f"expected the arguments {', '.join(like.values)} as in the example, got {', '.join(values)}")
    if fixed:
        return Example(values, Sizes())
    found = Example(values, _sizes(model, values))
    if like is None:
        _check(found)
    return found


def _by_name(model: nn.Module, example: Any) -> dict[str, Any]:
    parameters = list(inspect.signature(model.forward).parameters.values())
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        kind = type(model).__name__
        raise ExportError(
            f"expected a model whose forward names its arguments, got {kind}.forward(*args): put it into a module "
            "whose forward calls what you need; of a decoder, export its core in steps (step=True)"
        )
    if isinstance(example, Mapping):
        known = [p.name for p in parameters]
        for name in example:
            if name not in known:
                raise TypeError(f"expected arguments of forward ({', '.join(known)}), got {name!r}")
        return {name: example[name] for name in known if name in example}
    one = not isinstance(example, tuple) or isinstance(example, PackedSequence)  # which is a tuple
    given = (example,) if one else example
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(given) > len(places):
        raise TypeError(
            f"expected at most {len(places)} arguments of forward, got {len(given)}: others as a dict by name"
        )
    return {p.name: value for p, value in zip(places, given, strict=False)}


class _Seen(Exception):
    """Stops a model once the sizes of what its recurrent layer reads are known."""


def _sizes(model: nn.Module, values: dict[str, Any]) -> Sizes:
    if isinstance(model, Stepping):
        x = values["x_t"]
        return Sizes(None, len(x) if isinstance(x, Tensor) and _is_batch(model, x) else None)
    found: list[Sizes] = []

    def look(layer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        x = args[0] if args else kwargs["input"]
        tokens = not x.is_floating_point() and getattr(layer, "takes_tokens", False)
        vector = 0 if tokens else 1  # the axis that tokens lack
        length, batch = (x.shape[0], None) if x.dim() == 1 + vector else x.shape[:2]
        found.append(Sizes(batch, length) if layer.batch_first and batch is not None else Sizes(length, batch))
        raise _Seen

    layers = [module for module in model.modules() if isinstance(module, RecurrentStack | OutputRecurrent)]
    hooks = [layer.register_forward_pre_hook(look, with_kwargs=True) for layer in layers]
    try:
        with torch.no_grad():
            model(**values)
    except _Seen:
        return found[0]
    finally:
        for hook in hooks:
            hook.remove()
    raise ExportError(
        "expected a model whose forward calls a recurrent layer of slimrnn, got none: fixed=True exports for the sizes "
        "of the example"
    )


def _is_batch(model: Stepping, x: Tensor) -> bool:
    tokens = not x.is_floating_point() and getattr(model.model, "takes_tokens", False)
    return x.dim() == (1 if tokens else 2)


def _check(example: Example) -> None:
    """Whether free axes can be told from others by their sizes."""
    length, batch = example.sizes
    for name, size in zip(FREE, example.sizes, strict=True):
        if size == 1:
            raise ValueError(f"expected an example with a {name} of at least 2, got 1 (or fixed=True, which keeps it)")
    if length is not None and length == batch:
        raise ValueError(f"expected an example whose length and batch size differ, got {length} for both")
    for name, tensor in _named(example):
        free = example.axes(tensor)
        if len(set(free.values())) < len(free):
            shape = tuple(tensor.shape)
            wanted = f"sizes that tell length ({length}) and batch ({batch}) from other axes"
            raise ValueError(f"expected {wanted}, got {name} of shape {shape}: choose another length or batch size")


def _named(example: Example) -> Iterator[tuple[str, Tensor]]:
    return zip(example.names, example.leaves, strict=True)
