"""The matrices of a model that can be compressed: those of the input and of the state, of every layer and direction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal, NamedTuple

from torch import Tensor, nn

from slimrnn.layers.context_switching import ContextSwitching
from slimrnn.layers.options import as_written
from slimrnn.layers.recurrent_layer import RecurrentLayer
from slimrnn.layers.stack import RecurrentStack
from slimrnn.structures.base import StructuredMap
from slimrnn.structures.legendre import LegendreMap

Kind = Literal["input", "recurrent"]
KINDS: tuple[Kind, ...] = ("input", "recurrent")


@dataclass(frozen=True, eq=False)
class Site:
    """A map of a layer, which another one can take the place of."""

    layer: str  #: "rnn.l0", or "rnn.l1_reverse"
    kind: Kind
    core: RecurrentLayer
    stack: RecurrentStack
    index: int  #: of the layer · direction in its stack

    @property
    def name(self) -> str:
        return f"{self.layer}.{self.kind}"

    @property
    def map(self) -> StructuredMap:
        return self.core.input if self.kind == "input" else self.core.recurrent

    def matrix(self) -> Tensor:
        """The matrices of the gates one above the other, (G·m, n) in float64."""
        return self.map.dense().detach().double().flatten(0, 1)

    def put(self, new: StructuredMap) -> None:
        """Take another map, in the dtype, on the device and as trainable as the present one."""
        some, trainable = next(self.map.parameters()), any(p.requires_grad for p in self.map.parameters())
        new = new.to(dtype=some.dtype, device=some.device).train(self.map.training).requires_grad_(trainable)
        setattr(self.core, self.kind, new)
        if self.core.wanted_backend == "torch":  # which knows dense matrices only
            self.core.backend = "auto"
        self.stack.structure = as_written([core.recurrent.spec for core in self.stack.cores])
        self.stack.input_structure = as_written([core.input.spec for core in self.stack.cores])


class Found(NamedTuple):
    """The matrices to compress, and why others are left alone, by the names of their layers."""

    sites: list[Site]
    left: dict[str, str]


def find_sites(model: nn.Module, keep: Sequence[str] | str | None = None) -> Found:
    """All of a model but for those that a pattern of `keep` matches, such as "encoder.*" or "*.input"."""
    patterns = (keep,) if isinstance(keep, str) else tuple(keep or ())
    sites, left, used = [], {}, set()
    for site, reason in _all(model):
        matching = {p for p in patterns if fnmatchcase(site.name, p) or fnmatchcase(site.layer, p)}
        used |= matching
        if matching:
            left[site.name] = "kept as asked"
        elif reason:
            left[site.name] = reason
        else:
            sites.append(site)
    if unused := sorted(set(patterns) - used):
        known = ", ".join(dict.fromkeys([*left, *(site.name for site in sites)])) or "none"
        raise ValueError(f"expected keep to match some of {known}, got {', '.join(unused)}")
    if not sites:
        got = "one without" if not left else "; ".join(f"{name}: {reason}" for name, reason in left.items())
        raise ValueError(f"expected a model with recurrent matrices to compress, got {got}")
    return Found(sites, left)


def recurrent_stacks(model: nn.Module) -> dict[str, RecurrentStack]:
    """By their names in the model, each once."""
    return {name: module for name, module in model.named_modules() if isinstance(module, RecurrentStack)}


def _all(model: nn.Module) -> Iterator[tuple[Site, str | None]]:
    switched = {part for m in model.modules() if isinstance(m, ContextSwitching) for part in m.modules()}
    for owner, stack in recurrent_stacks(model).items():
        for index, core in enumerate(stack.cores):
            depth, direction = divmod(index // len(stack.delays), stack.num_directions)
            layer = f"{owner}.l{depth}".lstrip(".") + ("_reverse" if direction else "")
            reason = "context switching weights its blocks" if stack in switched else _reason(stack, core)
            for kind in KINDS:
                site = Site(layer, kind, core, stack, index)
                if reason is None and not site.map.num_parameters:
                    continue
                yield site, reason


def _reason(stack: RecurrentStack, core: RecurrentLayer) -> str | None:
    """Why a layer stays as it is."""
    if type(core) is not RecurrentLayer:
        return f"{type(core).__name__} holds its matrices in another form"
    if core.cell.complex:
        return "its state is complex"
    if len(core.maps) > 1 or len(stack.delays) > 1:
        return "several matrices share a structure (transition_depth, skip or delays)"
    if isinstance(core.recurrent, LegendreMap) or core.recurrent.input_scale() is not None:
        return "its recurrent matrix is part of its definition"
    return None
