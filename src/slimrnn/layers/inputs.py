"""Checks of what a user passes to a layer."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pack_sequence, unpack_sequence

from slimrnn._checks import check_count
from slimrnn.ops.reference import valid_steps


def check_sizes(**sizes: int) -> None:
    """Each must be a positive int."""
    for name, value in sizes.items():
        check_count(name, value)


def check_input(x: Tensor, dims: Sequence[int], input_size: int, dtype: torch.dtype, what: str) -> Tensor:
    """`x` must be a tensor with one of `dims` axes, the layer's width and its dtype.

    Under autocast any real floating type is taken and converted: the recurrence keeps the parameters' precision."""
    if not isinstance(x, Tensor):
        raise TypeError(f"expected {what} to be a tensor, got {type(x).__name__}")
    if x.is_nested:
        raise TypeError(f"expected {what} to be a padded tensor (with lengths= for a ragged batch), got a nested one")
    if not (x.is_floating_point() or x.is_complex()):
        tokens = "make the layer with vocabulary= or one_hot=True for tokens"
        raise TypeError(f"expected {what} of dtype {dtype}, got {x.dtype}; convert it with .to({dtype}), or {tokens}")
    if x.dim() not in dims:
        raise ValueError(f"expected {what} with {' or '.join(map(str, dims))} axes, got shape {tuple(x.shape)}")
    if x.shape[-1] != input_size:
        raise ValueError(f"expected {what} of width input_size={input_size}, got {x.shape[-1]}")
    if x.dtype != dtype:
        if not (in_autocast(x.device.type) and x.is_floating_point()):
            raise TypeError(
                f"expected {what} of dtype {dtype}, got {x.dtype}; convert it with .to({dtype}) or move the layer"
            )
        x = x.to(dtype)
    return x


def refuse_packed(x: object) -> None:
    """For what is built on layers, which do take them."""
    if isinstance(x, PackedSequence):
        how = "torch.nn.utils.rnn.pad_packed_sequence gives both"
        raise TypeError(f"expected a padded tensor, with lengths= for a ragged batch, got a PackedSequence: {how}")


def packed(nested: Tensor, dims: int = 3) -> PackedSequence:
    """The sequences of a nested tensor (B, T, I), or of tokens (B, T), whose lengths differ."""
    if nested.dim() != dims:
        raise ValueError(f"expected a nested input of {dims} axes, a sequence in each row, got {nested.dim()}")
    rows = list(nested.unbind())
    if not all(map(len, rows)):
        raise ValueError("expected nested sequences of at least one step each, got an empty one")
    return pack_sequence(rows, enforce_sorted=False)


def nested_as(packed: PackedSequence, like: Any) -> Tensor:
    """The opposite, in the layout of another nested tensor; a jagged one shares its offsets, so that the two can be
    added and the like."""
    rows = unpack_sequence(packed)
    if like.layout == torch.jagged and like.lengths() is None:
        return torch.nested.nested_tensor_from_jagged(torch.cat(rows), like.offsets())
    return torch.nested.as_nested_tensor(rows, layout=like.layout)


def in_autocast(device: str) -> bool:
    """Whether autocast is on for this kind of device."""
    try:
        return torch.is_autocast_enabled(device)
    except RuntimeError:  # there is none; torch.compile of torch 2.10 cannot trace is_autocast_available
        return False


def full_precision(device: str) -> contextlib.AbstractContextManager[Any]:
    """Recurrences lose their memory in half precision, so autocast is left outside."""
    if in_autocast(device):
        return torch.autocast(device, enabled=False)
    return contextlib.nullcontext()


def check_lengths(
    lengths: Tensor | Sequence[int], time: int, batch: int, device: torch.device, least: int = 1
) -> Tensor:
    """`lengths` must hold one integer between `least` and `time` for every sequence."""
    if not isinstance(lengths, Tensor):
        if not hasattr(lengths, "__iter__") or not all(isinstance(n, Integral) and n is not True for n in lengths):
            raise TypeError(f"expected lengths to be a tensor or a sequence of integers, got {lengths!r}")
        lengths = torch.tensor([int(n) for n in lengths], dtype=torch.long)
    if lengths.is_floating_point() or lengths.is_complex() or lengths.dtype == torch.bool:
        raise TypeError(f"expected lengths to be integers, got {lengths.dtype}")
    lengths = lengths.long()  # sums and indices of smaller types overflow, or mean something else
    if tuple(lengths.shape) != (batch,):
        raise ValueError(f"expected lengths of shape ({batch},), one per sequence, got {tuple(lengths.shape)}")
    # Values are unknown to torch.compile, which could not go on past a look at them.
    if batch and not torch.compiler.is_compiling() and (int(lengths.min()) < least or int(lengths.max()) > time):
        raise ValueError(f"expected lengths between {least} and {time}, got {lengths.tolist()}")
    return lengths.to(device)


def check_resets(resets: Tensor, shape: tuple[int, ...], device: torch.device, what: str = "resets") -> Tensor:
    """`resets` must be booleans of this shape."""
    if not isinstance(resets, Tensor):
        raise TypeError(f"expected {what} to be a tensor, got {type(resets).__name__}")
    if resets.dtype != torch.bool:
        raise TypeError(f"expected {what} of dtype torch.bool, got {resets.dtype}; convert with .bool()")
    if tuple(resets.shape) != shape:
        raise ValueError(f"expected {what} of shape {shape}, one for each step, got {tuple(resets.shape)}")
    return resets.to(device)


def without_padding(x: Tensor, lengths: Tensor | Sequence[int] | None, batch_first: bool = False) -> Tensor:
    """Zeros beyond each sequence's end: whatever the padding holds, even NaN, stays outside, also of the gradients."""
    if lengths is None or not isinstance(x, Tensor) or x.is_nested or x.dim() not in (2, 3):
        return x  # the layer explains what it takes
    if not x.is_floating_point():
        return x  # tokens, which the layer looks at itself
    turned = batch_first and x.dim() == 3
    x_TBI = x.transpose(0, 1) if turned else x if x.dim() == 3 else x.unsqueeze(1)
    time, batch = x_TBI.shape[:2]
    x_TBI = x_TBI.masked_fill(~valid_steps(time, check_lengths(lengths, time, batch, x.device)), 0)
    return x_TBI.transpose(0, 1) if turned else x_TBI.reshape(x.shape)


def check_state(
    hx: Tensor | tuple[Tensor, ...], states: int, shape: tuple[int, ...], dtype: torch.dtype
) -> tuple[Tensor, ...]:
    """`hx` must be one tensor, or a tuple of `states` tensors, of this shape and dtype."""
    if states == 1:
        if not isinstance(hx, Tensor):
            raise TypeError(f"expected the initial state to be a tensor, got {type(hx).__name__}")
        hx = (hx,)
    if not isinstance(hx, tuple | list) or len(hx) != states or not all(isinstance(s, Tensor) for s in hx):
        raise TypeError(f"expected the initial state to be a tuple of {states} tensors (h_0, c_0), got {type(hx)}")
    for s in hx:
        if tuple(s.shape) != shape:
            raise ValueError(f"expected an initial state of shape {shape}, got {tuple(s.shape)}")
        convertible = in_autocast(s.device.type) and s.is_floating_point() and dtype.is_floating_point
        if s.dtype != dtype and not convertible:
            raise TypeError(f"expected an initial state of dtype {dtype}, got {s.dtype}")
    return tuple(s.to(dtype) for s in hx)
