"""The options that every stack of recurrent layers takes beyond torch's."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Concatenate, ParamSpec, TypedDict, TypeVar

import torch

from slimrnn._checks import check_count, check_number, suggestion
from slimrnn.cells.leaky import Leaky
from slimrnn.structures import Structure

Layer = TypeVar("Layer")
Arguments = ParamSpec("Arguments")

DEFAULTS = {
    "num_layers": 1,
    "bias": True,
    "batch_first": False,
    "dropout": 0.0,
    "bidirectional": False,
    "residual": False,
    "transition_depth": 1,
    "leak": None,
    "delays": (1,),
    "skip": None,
    "recurrent_dropout": 0.0,
    "learn_initial_state": False,
    "weight_norm": False,
    "max_row_norm": None,
    "checkpoint_every": None,
}  # what `repr` leaves out


class StackOptions(TypedDict, total=False):
    """Keyword arguments that every layer takes; RecurrentStack explains them."""

    structure: Structure
    input_structure: Structure
    residual: bool
    transition_depth: int
    leak: float | Leaky | None
    delays: int | Sequence[int]
    skip: int | None
    recurrent_dropout: float
    learn_initial_state: bool
    weight_norm: bool
    max_row_norm: float | None
    checkpoint_every: int | None
    backend: str
    device: torch.device | str | None
    dtype: torch.dtype | None


def naming_options(
    init: Callable[Concatenate[Layer, Arguments], None],
) -> Callable[Concatenate[Layer, Arguments], None]:
    """A constructor with **options: StackOptions that suggests a name for one that it does not know."""
    own = [name for name, p in inspect.signature(init).parameters.items() if p.kind is not p.VAR_KEYWORD][1:]
    known = [*own, *StackOptions.__annotations__]

    @wraps(init)
    def checked(self: Layer, /, *args: Arguments.args, **options: Arguments.kwargs) -> None:
        for name in options:
            if name not in known:
                got = f"an unexpected keyword argument {name!r}{suggestion(name, known)}"
                raise TypeError(f"expected an option of {type(self).__name__}, got {got}")
        init(self, *args, **options)

    return checked


def check_leak(leak: float | Leaky | None) -> Leaky | None:
    """A number stands for the same α in every unit."""
    if leak is None or isinstance(leak, Leaky):
        return leak
    check_number("leak", leak)
    return Leaky(float(leak))


def check_delays(
    delays: int | Sequence[int], skip: int | None, hidden_size: int, checkpoint_every: int | None
) -> tuple[int, ...]:
    """One delay for all units, or one for each of several equal groups of them."""
    if isinstance(delays, str) or not (isinstance(delays, int) or hasattr(delays, "__iter__")):
        raise TypeError(f"expected delays to be an int or a sequence of ints, got {delays!r}")
    found = (delays,) if isinstance(delays, int) else tuple(delays)
    if not found:
        raise ValueError("expected at least one delay, got none")
    for delay in found:
        check_count("delays", delay)
    if hidden_size % len(found):
        raise ValueError(f"expected hidden_size divisible by the {len(found)} delays, got {hidden_size}")
    if skip is not None:
        check_count("skip", skip)
        if skip == 1 or found != (1,):
            raise ValueError(f"expected skip of at least 2, and delays of 1 with it, got {skip} and {delays}")
        if checkpoint_every is not None:
            raise ValueError(f"expected no checkpoint_every with skip, got {checkpoint_every} and {skip}")
    return found
