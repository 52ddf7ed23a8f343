"""The state_dict of a torch.nn.RNN, GRU or LSTM, loaded into a layer of ours that holds the same numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from torch import Tensor

from slimrnn.layers.torch_names import holds_matrices, suffixes
from slimrnn.layers.torch_weights import joined_biases, other_function

if TYPE_CHECKING:
    from slimrnn.layers.stack import RecurrentStack


def take_torch_keys(
    stack: RecurrentStack, state_dict: dict[str, Any], prefix: str, missing: list[str], errors: list[str]
) -> None:
    """Put our keys in the place of torch's, if there are any, so that the layers below find theirs.

    What is missing or has another shape is reported by torch's name; what is too much stays, and is reported as such.
    """
    if f"{prefix}weight_ih_l0" not in state_dict:
        return
    if reason := _differs(stack):
        raise RuntimeError(_refusal(stack, f"{prefix}weight_ih_l0", reason))
    gates, hidden = len(stack.cell.gates), stack.hidden_size
    for k, suffix in enumerate(suffixes(stack)):
        ours, width = f"{prefix}layers.{k}.", stack.layer(k).input.shape.in_size
        wanted: dict[str, tuple[int, ...]] = {
            "weight_ih": (gates * hidden, width),
            "weight_hh": (gates * hidden, hidden),
        }
        if stack.bias:
            wanted |= dict.fromkeys(("bias_ih", "bias_hh"), (gates * hidden,))
        taken: dict[str, Tensor] = {}
        for kind, shape in wanted.items():
            given = _take(state_dict, f"{prefix}{kind}{suffix}", shape, missing, errors)
            if given is not None:
                taken[kind] = given.unflatten(0, (gates, hidden))
        state_dict.update(_as_ours(stack, ours, taken) | _others(stack, k, ours, taken))


def _take(
    state_dict: dict[str, Any], key: str, shape: tuple[int, ...], missing: list[str], errors: list[str]
) -> Tensor | None:
    if key not in state_dict:
        missing.append(key)
        return None
    value: Tensor = state_dict.pop(key)
    if not isinstance(value, Tensor) or tuple(value.shape) != shape:
        got = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
        errors.append(f"size mismatch for {key}: expected {shape}, got {got} from the state_dict")
        return None
    return value


def _as_ours(stack: RecurrentStack, ours: str, taken: Mapping[str, Tensor]) -> dict[str, Tensor]:
    names = {"weight_ih": "input.weight", "weight_hh": "recurrent.weight"}
    found = {ours + name: taken[kind] for kind, name in names.items() if kind in taken}
    if "bias_ih" in taken and "bias_hh" in taken:
        bias, inner = joined_biases(stack.cell, taken["bias_ih"], taken["bias_hh"])
        found[f"{ours}cell.bias"] = bias
        if inner is not None:
            found[f"{ours}cell.recurrent_bias"] = inner
    return found


def _others(stack: RecurrentStack, k: int, ours: str, taken: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """What stays as it is, since it was missing or wrong: reported once, by torch's name."""
    given = _as_ours(stack, ours, taken)
    own = stack.layer(k).state_dict(prefix=ours)
    return {key: value for key, value in own.items() if key not in given}


def _differs(stack: RecurrentStack) -> str | None:
    """Why torch's numbers are not this layer's."""
    if reason := other_function(stack):
        return reason
    for k in range(len(suffixes(stack))):
        layer = stack.layer(k)
        for option, map in (("structure", layer.recurrent), ("input_structure", layer.input)):
            if not holds_matrices(map):
                return f"weight_norm={map.weight_norm}" if map.weight_norm else f"{option}={map.spec!r}"
        if stack.bias and "bias" not in layer.cell._parameters:
            return "a bias that torch.nn.utils computes"
    return None


def _refusal(stack: RecurrentStack, key: str, reason: str) -> str:
    ours = type(stack).__name__
    wrong = f"expected the state_dict of a slimrnn {ours}, got that of a torch layer ({key}): "
    if stack.torch_type is None:
        return wrong + f"torch.nn has no layer that computes what {ours} does"
    theirs = f"torch.nn.{stack.torch_type.__name__}"
    return (
        wrong + f"it fits dense layers that compute what {theirs} does, not one with {reason}. Load it into a {theirs} "
        f"and convert that with {ours}.from_torch, or with slimrnn.replace (to_torch is the way back)"
    )
