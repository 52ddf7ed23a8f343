"""The numbers of streams, as the native core takes them."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import SupportsIndex

import torch
from torch import Tensor

from slimrnn.errors import StreamClosed
from slimrnn.serving.native_pool import CLOSED, ERRORS

WHOLE = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def stream_number(stream: SupportsIndex) -> int:
    try:
        found = operator.index(stream)
    except TypeError:
        raise TypeError(f"expected the number of a stream, an int, got {stream!r}") from None
    if not 0 <= found < 2**63:  # ctypes would cut off the rest
        raise StreamClosed(ERRORS[CLOSED][1].format(found))
    return found


def stream_numbers(streams: Sequence[SupportsIndex] | Tensor) -> Tensor:
    """(B)"""
    if isinstance(streams, Tensor):
        if streams.dim() != 1:
            raise ValueError(f"expected a list of streams, got shape {tuple(streams.shape)}")
        if streams.dtype not in WHOLE:
            raise TypeError(f"expected the numbers of streams, of torch.int64, got {streams.dtype}")
        return streams.to("cpu", torch.int64).contiguous()
    given = list(streams)
    try:
        return torch.tensor(list(map(operator.index, given)), dtype=torch.int64)
    except (TypeError, ValueError):  # no int, or one of more than 64 bits: this tells which
        return torch.tensor([stream_number(stream) for stream in given], dtype=torch.int64)
