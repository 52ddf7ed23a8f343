"""Tensors of int8 modules from elsewhere: numbers that no rounding makes are refused, since kernels rely on that."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from slimrnn.exporting.int8.rows import LARGEST


class CheckedNumbers(nn.Module):
    """Looks at what `load_state_dict` brings."""

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        held: dict[str, Any] = {**self._parameters, **self._buffers}
        given = {name: state_dict.get(prefix + name) for name, tensor in held.items() if tensor is not None}
        wrong = [_problem(prefix + name, tensor) for name, tensor in given.items() if isinstance(tensor, Tensor)]
        error_msgs += [text for text in wrong if text]
        others = (missing_keys, unexpected_keys, error_msgs)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, *others)


def _problem(name: str, tensor: Tensor) -> str:
    if tensor.is_meta or not tensor.numel():
        return ""
    if tensor.dtype == torch.int8 and int(tensor.min()) < -LARGEST:
        return f"expected int8 from -{LARGEST} to {LARGEST}, got -128 in {name}"
    if tensor.dtype == torch.int64 and not torch.equal(tensor.sort().values, torch.arange(len(tensor))):
        return f"expected a permutation, got others numbers in {name}"
    if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
        return f"expected finite numbers, got infinity or NaN in {name}"
    return ""
