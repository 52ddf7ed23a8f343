"""The options that every stack of recurrent layers takes beyond torch's own: each is described here and nowhere else.

The constructors, `repr`, the docstring of RecurrentStack, the training settings and the command line read this table.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from typing import Annotated, Any, Concatenate, NamedTuple, ParamSpec, TypedDict, TypeVar, get_type_hints

import torch

from slimrnn._checks import check_choice, check_count, check_number, check_probability, check_real_dtype, suggestion
from slimrnn.cells.leaky import Leaky
from slimrnn.ops import BACKENDS
from slimrnn.structures import Dense, Structure

Layer = TypeVar("Layer")
Arguments = ParamSpec("Arguments")
Check = Callable[[str, Any], object]


class Option(NamedTuple):
    """What an option is if it is not given, what it does, and how a value is checked."""

    default: Any
    help: str
    check: Check | None = None  # (name, value): raises


def _structure(name: str, value: object) -> None:
    listed = isinstance(value, Sequence) and not isinstance(value, str) and len(value) > 0
    for spec in value if listed else (value,):  # type: ignore[attr-defined]
        if not isinstance(spec, Structure):
            got = repr(spec) if not listed else f"{spec!r} in a sequence"
            raise TypeError(f"expected {name} to be a structure such as LowRank(24), got {got}")


def structure_of_each(name: str, given: Structure | Sequence[Structure], layers: int) -> tuple[Structure, ...]:
    """The structure of each layer · direction, of which all may have the same."""
    each = (given,) * layers if isinstance(given, Structure) else tuple(given)
    if len(each) != layers:
        wanted = f"one {name}" if layers == 1 else f"one {name}, or {layers}, one for each layer and direction"
        raise ValueError(f"expected {wanted}, got {len(each)}")
    return each


def as_written(each: Sequence[Structure]) -> Structure | tuple[Structure, ...]:
    """A single structure where all layers have the same."""
    return each[0] if all(spec == each[0] for spec in each) else tuple(each)


def _positive(name: str, value: Any) -> None:
    check_number(name, value)
    if value <= 0:
        raise ValueError(f"expected {name} to be positive, got {value}")


def _leak(name: str, value: object) -> None:
    if not isinstance(value, Leaky):
        check_number(name, value)


def _delays(name: str, value: Any) -> None:
    if isinstance(value, str) or not (isinstance(value, int) or hasattr(value, "__iter__")):
        raise TypeError(f"expected {name} to be an int or a sequence of ints, got {value!r}")
    delays = (value,) if isinstance(value, int) else tuple(value)
    if not delays:
        raise ValueError("expected at least one delay, got none")
    for delay in delays:
        check_count(name, delay)


def check_flag(name: str, value: object) -> None:
    """`value` must be True or False."""
    if not isinstance(value, bool):
        raise TypeError(f"expected {name} to be True or False, got {value!r}")


def _rates(name: str, value: Any) -> None:
    if isinstance(value, str) or not (isinstance(value, int | float) or hasattr(value, "__iter__")):
        raise TypeError(f"expected {name} to be a number or a sequence of numbers, got {value!r}")
    for rate in (value,) if isinstance(value, int | float) else tuple(value):
        check_probability(name, rate)


def mask_rates(recurrent_dropout: float | Sequence[float]) -> Sequence[float]:
    """Of the inputs and of h."""
    one = isinstance(recurrent_dropout, int | float)
    return (recurrent_dropout, recurrent_dropout) if one else recurrent_dropout  # type: ignore[return-value]


def _two(name: str, value: Any) -> None:
    _rates(name, value)
    if not isinstance(value, int | float) and len(value) != 2:
        raise ValueError(f"expected one {name}, or two, of inputs and of h, got {len(value)}")


def _backend(name: str, value: str) -> None:
    check_choice(name, value, BACKENDS)


class StackOptions(TypedDict, total=False):
    """Keyword arguments that every layer takes."""

    structure: Annotated[
        Structure | Sequence[Structure] | None,
        Option(Dense(), "structure of the recurrent matrices, or one for each layer and direction", _structure),
    ]
    input_structure: Annotated[
        Structure | Sequence[Structure] | None,
        Option(Dense(), "structure of the input matrices, or one for each layer and direction", _structure),
    ]
    vocabulary: Annotated[
        int | None,
        Option(None, "input is tokens, integers below this; `embedding` turns them into vectors", check_count),
    ]
    one_hot: Annotated[
        bool, Option(False, "input is tokens, integers below input_size, each a one-hot vector", check_flag)
    ]
    residual: Annotated[
        bool, Option(False, "add each layer's input to its output, from the second layer on", check_flag)
    ]
    transition_depth: Annotated[
        int, Option(1, "cells that the state passes through in each step; the first sees the input", check_count)
    ]
    leak: Annotated[
        float | Leaky | None,
        Option(None, "leaky units, h = leak · h_before + (1 − leak) · output of the cell", _leak),
    ]
    delays: Annotated[
        int | Sequence[int],
        Option(
            (1,), "the cell sees the state from this many steps earlier; several: one for each group of units", _delays
        ),
    ]
    skip: Annotated[
        int | None, Option(None, "the cell also sees h from `skip` steps earlier, by matrices of its own", check_count)
    ]
    recurrent_dropout: Annotated[
        float | Sequence[float],
        Option(0.0, "dropout on inputs and h, one mask per sequence (Gal & Ghahramani 2016), or a rate for each", _two),
    ]
    mask_per_gate: Annotated[
        bool,
        Option(False, "recurrent_dropout: a mask of h for each gate instead of one for all", check_flag),
    ]
    zoneout: Annotated[
        float | Sequence[float],
        Option(0.0, "probability that a unit keeps its state in a step (Krueger et al. 2017), or one each", _rates),
    ]
    weight_drop: Annotated[
        float, Option(0.0, "dropout on the recurrent weights, once per call (Merity et al. 2018)", check_probability)
    ]
    learn_initial_state: Annotated[bool, Option(False, "the state before the first step is a parameter", check_flag)]
    weight_norm: Annotated[
        bool,
        Option(False, "weight normalisation of the rows of all matrices but diagonal and unitary ones", check_flag),
    ]
    max_row_norm: Annotated[
        float | None, Option(None, "`constrain_()`, called after an optimizer step, clips rows to this norm", _positive)
    ]
    checkpoint_every: Annotated[
        int | None,
        Option(None, "gradient checkpointing every so many steps: less memory, same gradients", check_count),
    ]
    backend: Annotated[str, Option("auto", '"auto", "native", "reference" or "torch"', _backend)]
    device: Annotated[torch.device | str | None, Option(None, "device of the parameters")]
    dtype: Annotated[
        torch.dtype | None, Option(None, "real type of the parameters", lambda _, dtype: check_real_dtype(dtype))
    ]


OPTIONS: dict[str, Option] = {
    name: hint.__metadata__[0] for name, hint in get_type_hints(StackOptions, include_extras=True).items()
}
HELP = "\n".join(f"{name} -- {option.help};" for name, option in OPTIONS.items())[:-1] + "."

# What `repr` leaves out: torch's own defaults, and ours.
DEFAULTS: dict[str, Any] = {
    "num_layers": 1,
    "bias": True,
    "batch_first": False,
    "dropout": 0.0,
    "bidirectional": False,
    **{
        n: o.default
        for n, o in OPTIONS.items()
        if n not in ("structure", "input_structure", "backend", "device", "dtype")
    },
}


# A single layer does not have these.
OF_STACKS = ("vocabulary", "one_hot", "residual", "transition_depth", "delays", "max_row_norm")


# What may be set on a stack that is there, for all its layers.
OF_LAYERS = ("recurrent_dropout", "mask_per_gate", "zoneout", "weight_drop", "checkpoint_every")


def changed(name: str, value: Any, stack: Any) -> Any:
    """One of these options of a stack, checked together with the other that it must agree with."""
    partner = {"mask_per_gate": "recurrent_dropout", "checkpoint_every": "skip"}.get(name)
    others = {} if partner is None else {partner: getattr(stack, partner)}
    return resolve(others | {name: value})[name]


def resolve(options: Mapping[str, Any]) -> dict[str, Any]:
    """All options, the given ones checked and the others at their defaults."""
    resolved = {name: option.default for name, option in OPTIONS.items()}
    for name, value in options.items():
        default, _, check = OPTIONS[name]
        if value is None and (default is None or isinstance(default, Structure)):
            continue
        given = tuple(value) if isinstance(value, Iterator) else value  # which can be read once only
        if check is not None:
            check(name, given)
        resolved[name] = given
    if resolved["vocabulary"] is not None and resolved["one_hot"]:
        raise ValueError(f"expected vocabulary or one_hot, got both: vocabulary={resolved['vocabulary']}")
    if resolved["mask_per_gate"] and not any(mask_rates(resolved["recurrent_dropout"])):
        raise ValueError("expected recurrent_dropout with mask_per_gate, got none: set its rate, or leave both out")
    leak, delays, skip = resolved["leak"], resolved["delays"], resolved["skip"]
    if leak is not None and not isinstance(leak, Leaky):
        resolved["leak"] = Leaky(float(leak))  # the same in every unit
    if not isinstance(resolved["zoneout"], int | float):
        resolved["zoneout"] = tuple(resolved["zoneout"])
    resolved["delays"] = (delays,) if isinstance(delays, int) else tuple(delays)
    if skip is not None:
        if skip == 1 or resolved["delays"] != (1,):
            raise ValueError(f"expected skip of at least 2, and delays of 1 with it, got {skip} and {delays}")
        if resolved["checkpoint_every"] is not None:
            raise ValueError(f"expected no checkpoint_every with skip, got {resolved['checkpoint_every']} and {skip}")
    return resolved


# Options of torch's that we lack: its default, and what to take for others.
NOT_HERE = {"proj_size": (0, "; LowRank(r, tied=True) as structure is near to it")}


def suggests_options(
    init: Callable[Concatenate[Layer, Arguments], None],
) -> Callable[Concatenate[Layer, Arguments], None]:
    """A constructor with **options: StackOptions that suggests a name for one that it does not know."""
    own = [name for name, p in inspect.signature(init).parameters.items() if p.kind is not p.VAR_KEYWORD][1:]
    known = [*own, *OPTIONS]

    @wraps(init)
    def checked(self: Layer, /, *args: Arguments.args, **options: Arguments.kwargs) -> None:
        given: Any = dict(options)
        for name, value in options.items():
            default, hint = NOT_HERE.get(name, (None, ""))
            if name not in known and default is not None and value == default and value is not False:
                del given[name]
            elif name not in known:
                got = f"an unexpected keyword argument {name!r}{hint or suggestion(name, known)}"
                raise TypeError(f"expected an option of {type(self).__name__}, got {got}")
        init(self, *args, **given)

    return checked
