"""Weights to and from torch.nn.RNN, GRU and LSTM.

torch keeps two biases per gate, of which only the sum matters, except for the GRU's candidate, whose second bias is
reset together with the recurrent product. We keep one per gate, and that second one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor, nn

from slimrnn.cells import ElmanCell, GRUCell, LSTMCell
from slimrnn.layers.options import DEFAULTS
from slimrnn.layers.torch_names import give_biases, suffixes
from slimrnn.structures import Structure

if TYPE_CHECKING:
    from slimrnn.layers.recurrent_layer import RecurrentLayer
    from slimrnn.layers.stack import RecurrentStack

    Stack = TypeVar("Stack", bound=RecurrentStack)


def from_torch(
    cls: type[Stack],
    module: nn.RNNBase,
    structure: Structure | Sequence[Structure] | None,
    options: Mapping[str, Any],
) -> Stack:
    """A `cls` with the weights of `module`, or with the nearest ones that the structures in use allow."""
    torch_type = _torch_type(cls)
    if not isinstance(module, torch_type):
        raise TypeError(f"expected a torch.nn.{torch_type.__name__}, got {type(module).__name__}")
    if module.proj_size:
        raise ValueError(f"expected an LSTM without projection, got proj_size={module.proj_size}")
    taken = {"num_layers", "bias", "batch_first", "dropout", "bidirectional", "nonlinearity", "dtype", "device"}
    if clash := taken & options.keys():
        raise TypeError(f"expected {', '.join(sorted(clash))} to come from the torch layer, got it as an option too")
    own: dict[str, Any] = {"nonlinearity": module.nonlinearity} if isinstance(module, nn.RNN) else {}
    weight = next(module.parameters())
    make: Any = cls  # each layer has its own options, which it checks itself
    stack: Stack = make(
        module.input_size,
        module.hidden_size,
        module.num_layers,
        bias=bool(module.bias),
        batch_first=bool(module.batch_first),
        dropout=module.dropout,
        bidirectional=bool(module.bidirectional),
        structure=structure,
        dtype=weight.dtype,
        device=weight.device,
        **own,
        **options,
    )
    if reason := _beyond(stack):
        raise ValueError(f"expected a layer that torch.nn.{torch_type.__name__} can express, got {reason}")
    if getattr(stack.cell, "reset", "after") != "after":
        raise ValueError("expected reset='after' for the weights of torch.nn.GRU, got 'before', another function")
    for k, suffix in enumerate(suffixes(stack)):
        layer, gates = stack.layer(k), len(stack.cell.gates)
        layer.recurrent.nearest_(getattr(module, "weight_hh" + suffix).detach().unflatten(0, (gates, -1)))
        layer.input.nearest_(getattr(module, "weight_ih" + suffix).detach().unflatten(0, (gates, -1)))
        if module.bias:
            first, second = (getattr(module, f"bias_{end}{suffix}").detach() for end in ("ih", "hh"))
            _take_biases(layer.cell, first.unflatten(0, (gates, -1)), second.unflatten(0, (gates, -1)))
        _freeze(layer, module, suffix)
    return stack.train(module.training)


def to_torch(stack: RecurrentStack) -> nn.RNNBase:
    """A torch.nn layer that computes the same; ValueError where torch has none."""
    torch_type = _torch_type(type(stack))
    _check_expressible(stack, torch_type)
    cell = stack.cell
    some = next(stack.parameters())
    own = {"nonlinearity": cell.nonlinearity} if isinstance(cell, ElmanCell) else {}
    make: Any = torch_type
    module: nn.RNNBase = make(
        stack.input_size,
        stack.hidden_size,
        stack.num_layers,
        bias=stack.bias,
        batch_first=stack.batch_first,
        dropout=stack.dropout,
        bidirectional=stack.bidirectional,
        device=some.device,
        dtype=some.dtype,
        **own,
    )
    with torch.no_grad():
        for k, suffix in enumerate(suffixes(stack)):
            layer = stack.layer(k)
            getattr(module, "weight_hh" + suffix).copy_(layer.recurrent.dense().flatten(0, 1))
            getattr(module, "weight_ih" + suffix).copy_(layer.input.dense().flatten(0, 1))
            if stack.bias:
                first, second = give_biases(layer.cell)
                getattr(module, "bias_ih" + suffix).copy_(first.flatten())
                getattr(module, "bias_hh" + suffix).copy_(second.flatten())
            for part, kinds in _sources(layer):
                trained = [p.requires_grad for p in part.parameters()]
                for kind in kinds if stack.bias or part is not layer.cell else ():
                    getattr(module, kind + suffix).requires_grad_(any(trained) or not trained)
    return module.train(stack.training)


def _sources(layer: RecurrentLayer) -> list[tuple[nn.Module, tuple[str, ...]]]:
    """The parts of a layer, with what torch's layers have for each."""
    return [(layer.input, ("weight_ih",)), (layer.recurrent, ("weight_hh",)), (layer.cell, ("bias_ih", "bias_hh"))]


def _freeze(layer: RecurrentLayer, module: nn.RNNBase, suffix: str) -> None:
    """Leave what is computed from frozen parameters alone untrained."""
    for part, kinds in _sources(layer):
        found = [getattr(module, kind + suffix) for kind in kinds if hasattr(module, kind + suffix)]
        if found and not any(weight.requires_grad for weight in found):
            part.requires_grad_(False)


def _torch_type(cls: type[RecurrentStack]) -> type[nn.RNNBase]:
    if cls.torch_type is None:
        raise ValueError(f"expected an RNN, GRU or LSTM, which torch.nn has too, got {cls.__name__}, which it has not")
    return cls.torch_type


def joined_biases(cell: nn.Module, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor | None]:
    """Our biases from torch's two of each gate, (G, H), and for a GRU that of the candidate's recurrent product."""
    if isinstance(cell, GRUCell):
        return torch.cat([first[:2] + second[:2], first[2:]]), second[2]
    return first + second, None


@torch.no_grad()
def _take_biases(cell: nn.Module, first: Tensor, second: Tensor) -> None:
    bias, inner = joined_biases(cell, first, second)
    cell.get_parameter("bias").copy_(bias)
    if inner is not None:
        cell.get_parameter("recurrent_bias").copy_(inner)


def _beyond(stack: RecurrentStack) -> str | None:
    """An option in use that gives the recurrence connections that torch's layers lack."""
    for option in ("transition_depth", "leak", "delays", "skip"):
        if (value := getattr(stack, option)) != DEFAULTS[option]:
            return f"{option}={value}"
    return None


def other_function(stack: RecurrentStack) -> str | None:
    """An option in use with which the stack computes something that no layer of torch.nn does."""
    cell = stack.cell
    if stack.torch_type is None:
        return "a cell of its own"
    if isinstance(cell, ElmanCell) and cell.nonlinearity not in ("tanh", "relu"):
        return f"nonlinearity={cell.nonlinearity!r}"
    if isinstance(cell, GRUCell) and cell.reset != "after":
        return "reset='before'"
    if isinstance(cell, LSTMCell) and cell.peephole is not None:
        return "peephole=True"
    if stack.residual and stack.num_layers > 1:
        return "residual=True"
    if reason := _beyond(stack):
        return reason
    if stack.embedding is not None:
        return f"vocabulary={stack.vocabulary} (use its `embedding`, and a copy without one)"
    if stack.learn_initial_state:
        return "learn_initial_state=True"
    return f"zoneout={stack.zoneout}" if any(core.zoneout is not None for core in stack.cores) else None


def _check_expressible(stack: RecurrentStack, torch_type: type[nn.RNNBase]) -> None:
    reason = other_function(stack)
    if reason is None and stack.training and (stack.recurrent_dropout or stack.weight_drop):
        name = "recurrent_dropout" if stack.recurrent_dropout else "weight_drop"
        reason = f"{name} in training mode (call eval() first)"
    if reason:
        raise ValueError(f"expected a layer that torch.nn.{torch_type.__name__} can express, got {reason}")
