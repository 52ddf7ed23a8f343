"""Settings are checked before any work is done."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields
from numbers import Integral
from typing import Any, Literal, get_args, get_origin, get_type_hints

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from slimrnn._checks import check_choice, check_count, check_number, check_probability, suggestion
from slimrnn._memory import available_memory, in_gigabytes
from slimrnn._texts import shown
from slimrnn.errors import ConfigError, is_out_of_memory
from slimrnn.training.config import Config, OptimConfig, plain
from slimrnn.training.task import Task

COUNTS = ("batch_size", "valid_size", "eval_every", "checkpoint_every", "devices")
OPTIONAL_COUNTS = ("train_size", "test_size", "bptt", "restart_every", "patience", "threads")
MOST_THREADS = 1024
OF_OPTIMIZER = {
    "decay": ("rmsprop",),
    "accumulator_start": ("rmsprop",),
    "eps_inside": ("rmsprop",),
    "momentum": ("rmsprop", "sgd"),
}
OF_SCHEDULE = {
    "schedule_every": ("step",),
    "schedule_patience": ("plateau",),
    "schedule_factor": ("step", "plateau"),
}


def check(config: Config) -> None:
    """Refuse what is impossible, and options that would have no effect."""
    if not isinstance(config.task, Task):
        raise ConfigError(f"expected a task, got {config.task!r}")
    _check_sizes(plain(config), "")
    for name in COUNTS:
        _run(check_count, name, getattr(config, name))
    if config.updates != 0 or config.start_from is None:  # a net that is there already may just be scored
        _run(check_count, "updates", config.updates)
    for name in OPTIONAL_COUNTS:
        if getattr(config, name) is not None:
            _run(check_count, name, getattr(config, name))
    _check_at_least_zero("workers", config.workers)
    for name, whole in (("seed", config.seed), ("workers", config.workers)):
        _check_whole(name, whole)
    if config.threads is not None and config.threads > MOST_THREADS:
        raise ConfigError(f"expected threads to be at most {MOST_THREADS:,}, got {config.threads:,}")
    if config.stop_at is not None:
        _run(check_number, "stop_at", config.stop_at)
    if config.dtype not in ("float32", "float64"):
        raise ConfigError(f"expected dtype to be float32 or float64, got {config.dtype!r}")
    _check_choices(config.model)
    _check_choices(config.optim)
    _check_optim(config.optim)
    _check_together(config)
    _check_memory(config)
    try:
        config.task.check(config)
    except ValueError as error:
        raise ConfigError(str(error)) from None


def check_budget(budget: float | None) -> None:
    """Of time, in seconds."""
    if budget is not None:
        _check_at_least_zero("budget", budget)


def _check_choices(settings: Any) -> None:
    """Refuse values that are none of those listed; the command line does so by itself, Python does not."""
    for name, kind in get_type_hints(type(settings)).items():
        if get_origin(kind) is Literal:
            value = getattr(settings, name)
            try:
                check_choice(name, value, get_args(kind))
            except ValueError as error:
                raise ConfigError(f"{error}{suggestion(value, get_args(kind))}") from None


def _check_at_least_zero(name: str, value: Any) -> None:
    _run(check_number, name, value)
    if value < 0:
        raise ConfigError(f"expected {name} to be at least 0, got {value}")


def _check_whole(name: str, value: object) -> None:
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise ConfigError(f"expected {name} to be an int, got {value!r}")


def _check_sizes(value: object, where: str) -> None:
    """Refuse integers, anywhere in the settings, that numpy and torch have no type for."""
    if isinstance(value, dict):
        for name, item in value.items():
            _check_sizes(item, f"{where}.{name}".removeprefix("."))
    elif isinstance(value, list):
        for item in value:
            _check_sizes(item, where)
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ConfigError(f"expected {where} to be an integer of 64 bits, got {shown(value)}")


class _Affordable(TorchDispatchMode):
    """Refuses tensors larger than the memory: a system may promise them, and end the process that uses them."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Or torch imports torch._dynamo for the first tensor, which takes as long as torch itself."""
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        is_shape = args and isinstance(args[0], list | tuple) and all(isinstance(size, int) for size in args[0])
        if is_shape and 4 * math.prod(args[0]) > available_memory():
            raise MemoryError
        return func(*args, **kwargs or {})


def build_model(config: Config) -> nn.Module:
    """The task's net, with the initial weights that belong to the seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        try:
            with _Affordable():  # type: ignore[no-untyped-call]
                model = config.task.model(config.model)
        except (TypeError, ValueError) as error:
            raise ConfigError(str(error)) from None
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            raise ConfigError(f"expected a net that fits into the memory, got {config.model.hidden:,} units") from None
    return model.to(getattr(torch, config.dtype))


def _check_together(config: Config) -> None:
    for name in ("batch_size", "valid_size", "test_size"):
        value = getattr(config, name)
        if value is not None and value < config.devices:
            raise ConfigError(
                f"expected {name} of at least one sequence for each of {config.devices} devices, got {value}"
            )
    if config.bptt is not None and not config.task.every_step:
        raise ConfigError(f"expected bptt with an output at every step, got task {config.task.name}, which has one")
    if config.bptt is not None and config.model.bidirectional:
        raise ConfigError("expected bptt with one direction, got a bidirectional net, which needs the future")
    if config.restart_every is not None and config.bptt is None:
        raise ConfigError(f"expected restart_every only with bptt, got {config.restart_every} without")
    if config.optim.scale_rate != 1 and not config.model.weight_norm:
        raise ConfigError(f"expected scale_rate only with weight_norm, got {config.optim.scale_rate} without")
    size = config.task.samples("train", config.seed).size
    if config.train_size is not None and size is not None and config.train_size > size:
        raise ConfigError(f"expected train_size of at most {size:,}, got {config.train_size:,}")


def _check_memory(config: Config) -> None:
    """Refuse sequences of which not even the inputs of one update fit, before anything is asked for."""
    steps = getattr(config.task, "length", None)
    if not isinstance(steps, int):
        return
    numbers = config.task.input_size + (config.model.hidden if config.bptt is None else 0)
    needed = config.batch_size // config.devices * steps * numbers * getattr(torch, config.dtype).itemsize
    if needed > (there := available_memory()):
        raise ConfigError(
            f"expected a run that fits into the memory, of which {in_gigabytes(there)} are free, got "
            f"{config.batch_size:,} sequences of {steps:,} steps through {config.model.hidden:,} units, which take "
            f"more than {in_gigabytes(needed)}"
        )


def _check_optim(optim: OptimConfig) -> None:
    for name in ("lr", "clip_norm", "clip_value", "eps", "schedule_factor"):
        value = getattr(optim, name)
        if value is not None:
            _run(check_number, name, value)
            if value <= 0:
                raise ConfigError(f"expected {name} to be positive, got {value}")
    at_least_zero = ("accumulator_start", "weight_decay", "recurrent_rate", "scale_rate", "penalty", "momentum")
    for name in (*at_least_zero, "max_recoveries"):
        _check_at_least_zero(name, getattr(optim, name))
    _check_whole("max_recoveries", optim.max_recoveries)
    for name in ("momentum", "schedule_factor"):
        if getattr(optim, name) >= 1:
            raise ConfigError(f"expected {name} below 1, got {getattr(optim, name)}")
    _run(check_probability, "decay", optim.decay)
    for name in ("schedule_every", "schedule_patience"):
        _run(check_count, name, getattr(optim, name))
    defaults = {field.name: field.default for field in fields(optim)}
    for owners, chosen in ((OF_OPTIMIZER, optim.optimizer), (OF_SCHEDULE, optim.schedule)):
        for name, owner in owners.items():
            value = getattr(optim, name)
            if chosen not in owner and value != defaults[name]:
                raise ConfigError(f"expected {name} only with {' or '.join(owner)}, got {name} {value} with {chosen}")


def _run(check: Callable[[str, Any], None], name: str, value: object) -> None:
    try:
        check(name, value)
    except (TypeError, ValueError) as error:
        raise ConfigError(str(error)) from None
