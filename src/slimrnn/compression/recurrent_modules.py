"""The recurrent modules of a model, torch's and ours, under all their names; and why some have to stay as they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import torch
from torch import nn
from torch.nn.utils import parametrize

from slimrnn.layers import GRU, LSTM, RNN, RecurrentStack

Where = str | Sequence[str] | Callable[[str, nn.Module], bool]

OURS: dict[type[nn.Module], type[RecurrentStack]] = {nn.RNN: RNN, nn.GRU: GRU, nn.LSTM: LSTM}
KINDS = ("RNN", "GRU", "LSTM", "RNNCell", "GRUCell", "LSTMCell")
QUANTIZED = ("torch.ao.nn.", "torch.nn.quantized", "torch.nn.quantizable", "torchao.")
BOOKKEEPING = frozenset(vars(nn.Module()))  # where nn.Module keeps what it sees
WRAPPERS = ("DistributedDataParallel", "FullyShardedDataParallel")


@dataclass(frozen=True)
class Found:
    """A recurrent module under all its names."""

    module: nn.Module
    names: tuple[str, ...]
    reason: str  # why it cannot be replaced; "" if it can


def recurrent_modules(model: nn.Module) -> list[Found]:
    """Every recurrent module of torch.nn and of ours, in the order of `named_modules`."""
    names: dict[nn.Module, list[str]] = {}
    for name, module in _walk(model):
        if _is_recurrent(module):
            names.setdefault(module, []).append(name)
    uses = Counter(id(p) for module in model.modules() for p in module._parameters.values() if p is not None)
    found = [Found(module, tuple(known), reason_to_stay(module, uses)) for module, known in names.items()]
    return [*found, *_out_of_sight(model)]


def _walk(module: nn.Module, name: str = "", above: tuple[nn.Module, ...] = ()) -> Iterator[tuple[str, nn.Module]]:
    """Every module under all its names; not the parts of layers that are one thing, and no module within itself."""
    yield name, module
    if isinstance(module, RecurrentStack) or _is_quantized(module):
        return
    for key, child in module._modules.items():
        if child is not None and child is not module and all(child is not one for one in above):
            yield from _walk(child, f"{name}.{key}" if name else key, (*above, module))


def chosen(found: Found, where: Where | None) -> bool:
    """Whether `where` asks for it by one of its names."""
    if where is None:
        return True
    if callable(where):
        return any(where(name, found.module) for name in found.names)
    patterns = [where] if isinstance(where, str) else where
    return any(fnmatchcase(name, pattern) for name in found.names for pattern in patterns)


def check_where(where: object) -> None:
    """Refuse what is neither patterns nor a function."""
    texts = [where] if isinstance(where, str) else where
    if where is None or callable(where):
        return
    if not isinstance(texts, Iterable) or not all(isinstance(text, str) for text in texts):
        raise TypeError(
            "expected where to be a pattern such as 'encoder.*', several of them, or a function of name and module, "
            f"got {where!r}"
        )


def reason_to_stay(module: nn.Module, uses: Counter[int]) -> str:
    """Why a recurrent module cannot be replaced, with what to do; "" if it can. `uses` counts the model's parameters
    by their identity."""
    kind = type(module).__name__
    if isinstance(module, RecurrentStack):
        return "slimrnn's already"
    if isinstance(module, torch.jit.ScriptModule):
        return "compiled by torch.jit: replace it before that"
    if _is_quantized(module):
        return "quantized: replace the layer that it was made from, and use slimrnn.quantize"
    if isinstance(module, nn.RNNCellBase):
        return "a single step, called in a loop of the model's own: use slimrnn's layers and their step there"
    assert isinstance(module, nn.RNNBase)  # what else `_is_recurrent` lets through
    computed = [name for name in module._flat_weights_names if name not in module._parameters]
    if parametrize.is_parametrized(module) or computed:
        names = computed or list(module.parametrizations)  # type: ignore[arg-type]
        return f"{names[0]} is computed by weight_norm, prune, a parametrization or the like: remove that first"
    if type(module) not in OURS:
        base = next((base.__name__ for base in type(module).__mro__ if base in OURS), None)
        same = "" if base is None else f"; if it computes what nn.{base} does, use slimrnn.{base}.from_torch"
        return f"a class of its own{same}"
    if module.proj_size:
        return f"proj_size={module.proj_size}: slimrnn has no projection of h; LowRank(r, tied=True) is near to it"
    return _something_attached(module, uses) or _frozen_in_part(module, kind)


def _something_attached(module: nn.RNNBase, uses: Counter[int]) -> str:
    parameters = dict(module.named_parameters(recurse=False, remove_duplicate=False))
    tied = [name for name, p in parameters.items() if uses[id(p)] > 1]
    if tied:
        return f"{tied[0]} is a parameter of something else, too: they would come apart"
    if module._modules or module._buffers or len(parameters) != len(module._flat_weights_names):
        return "it has modules, buffers or parameters beyond those of torch"
    if "forward" in vars(module):
        return "its forward has been replaced"
    if module._compiled_call_impl is not None:
        return "compiled by torch.compile: replace it before that"
    if any(vars(module)[kind] for kind in vars(module) if kind.strip("_").startswith(("state_dict", "load_state"))):
        return "it has hooks on its state_dict, which has other names here"
    if any(p._backward_hooks or getattr(p, "_post_accumulate_grad_hooks", None) for p in parameters.values()):
        return "its parameters have hooks"
    if len({(p.dtype, p.device) for p in parameters.values()}) > 1:
        return "its parameters differ in dtype or device"
    return ""


def _frozen_in_part(module: nn.RNNBase, kind: str) -> str:
    """The GRU's candidate keeps both biases, and the other gates their sum, in one parameter with the first."""
    if kind != "GRU" or not module.bias:
        return ""
    for _, _, first, second in module._all_weights:
        if module.get_parameter(first).requires_grad != module.get_parameter(second).requires_grad:
            return f"of {first} and {second} one is frozen; slimrnn's GRU has their sum as one parameter"
    return ""


def refuse_wrappers(model: nn.Module) -> None:
    """Modules that have taken hold of parameters, which would be others."""
    for name, module in model.named_modules():
        if type(module).__name__ in WRAPPERS or type(module).__name__.startswith("FSDP"):
            got = f"{type(module).__name__}{f' as {name}' if name else ''}, which holds parameters that would be others"
            raise ValueError(f"expected a model that is wrapped for several processes afterwards, got {got}")


def _is_recurrent(module: nn.Module) -> bool:
    if isinstance(module, nn.RNNBase | nn.RNNCellBase | RecurrentStack) or _is_quantized(module):
        return True
    return isinstance(module, torch.jit.ScriptModule) and getattr(module, "original_name", None) in KINDS


def _is_quantized(module: nn.Module) -> bool:
    return type(module).__name__ in KINDS and type(module).__module__.startswith(QUANTIZED)


def _out_of_sight(model: nn.Module) -> Iterator[Found]:
    """Layers that a module keeps in a plain list, tuple, dict or otherwise where `nn.Module` does not see them."""
    for name, module in model.named_modules():
        for attribute, value in vars(module).items():
            if attribute in BOOKKEEPING:
                continue
            held = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else [value]
            for one in held:
                if isinstance(one, nn.Module) and any(isinstance(m, nn.RNNBase) for m in one.modules()):
                    reason = f"in {attribute}, where nn.Module does not see it: use nn.ModuleList or nn.ModuleDict"
                    yield Found(one, (f"{name}.{attribute}" if name else attribute,), reason)
