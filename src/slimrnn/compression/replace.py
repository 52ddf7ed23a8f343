"""replace: torch's recurrent layers anywhere in a model become ours."""

from __future__ import annotations

import logging
import warnings
from typing import TypeVar, overload

from torch import nn

from slimrnn.compression.recurrent_modules import OURS, Where, refuse_wrappers
from slimrnn.compression.replacements import Replacement, Replacements, replacements
from slimrnn.layers import RecurrentStack
from slimrnn.structures import Structure

Model = TypeVar("Model", bound=nn.Module)

HOOKS = (
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_backward_hooks",
    "_backward_pre_hooks",
    "_is_full_backward_hook",
)
logger = logging.getLogger("slimrnn")


@overload
def replace(model: nn.RNNBase, structure: Structure | None = None, where: Where | None = None) -> RecurrentStack: ...
@overload
def replace(model: Model, structure: Structure | None = None, where: Where | None = None) -> Model: ...
def replace(model: nn.Module, structure: Structure | None = None, where: Where | None = None) -> nn.Module:
    """`model = replace(model)`: every nn.RNN, nn.GRU and nn.LSTM in it becomes ours, and outputs stay the same.

    The model is changed in place and returned; one that is a recurrent layer itself is not changed, but its replacement
    returned. Optimizers and wrappers for several processes are made afterwards, since the parameters are new ones.

    structure -- of the recurrent matrices: the nearest member of that family, so outputs are no longer the same;
    where -- which layers: a pattern of dotted names such as "encoder.*", several of them, or a function of the name and
    the module. The others stay.

    Dtype, device, training mode, frozen parameters and hooks on calls are kept. A warning tells what had to stay and
    why, the log of "slimrnn" what was done, and `slimrnn.compression.replacements(model)` both beforehand. If nothing
    can be replaced, that is a ValueError, and the model is as it was."""
    plan = replacements(model, where)
    refuse_wrappers(model)
    _check(plan, model, where)
    made = {id(one.module): _made(one, structure) for one in plan.layers if one.replaced}  # all, before any is put in
    for one in plan.layers:
        if one.replaced:
            logger.info("replace: %s", one)
    if plan.left:
        told = "; ".join(map(str, plan.left))
        warnings.warn(f"replace left {len(plan.left)} recurrent module(s) as they are: {told}", stacklevel=2)
    for parent in model.modules():
        for name, child in parent._modules.items():
            if id(child) in made:
                parent._modules[name] = made[id(child)]
    return made.get(id(model), model)


def _check(plan: Replacements, model: nn.Module, where: Where | None) -> None:
    if any(one.replaced for one in plan.layers):
        return
    if where is None and any(isinstance(one.module, RecurrentStack) for one in plan.layers) and not plan.left:
        return  # all of it was replaced before
    wanted = "an nn.RNN, nn.GRU or nn.LSTM to replace"
    if not plan.layers:
        raise ValueError(f"expected {wanted}, got {type(model).__name__}, which has none")
    chosen = "" if where is None else f" with where={where!r}"
    told = "; ".join(map(str, plan.layers))
    raise ValueError(f"expected {wanted}, got {type(model).__name__}{chosen}, of which all stays: {told}")


def _made(one: Replacement, structure: Structure | None) -> RecurrentStack:
    module = one.module
    assert isinstance(module, nn.RNNBase)  # nothing else is replaced
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "dropout acts between stacked layers")  # torch said so, too
            ours = OURS[type(module)].from_torch(module, structure)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{one.shown_names}: {error}") from error
    for kind in HOOKS:
        setattr(ours, kind, getattr(module, kind))  # the same tables, so that a handle's remove() still works
    for name, value in vars(module).items():
        if not name.startswith("_") and not hasattr(ours, name):
            setattr(ours, name, value)  # what somebody has attached
    return ours
