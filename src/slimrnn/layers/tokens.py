"""Tokens as the input of a stack: integers that stand for rows of its embedding, or for one-hot vectors.

Inside the layers tokens are an integer tensor (T, B, 1), so that they are cut, padded and turned as vectors are.

Shape suffixes: T time, B batch, I input width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeGuard

import torch
from torch import Tensor, nn
from torch.nn import functional

from slimrnn.ops.operators import traced, transformed
from slimrnn.structures import Dense

if TYPE_CHECKING:
    from slimrnn.layers.stack import RecurrentStack

INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
EMBEDDING_OPTIONS = ("padding_idx", "max_norm", "scale_grad_by_freq", "sparse")  # act where vectors are looked up


def is_tokens(x: object) -> bool:
    """Whether it is a tensor of integers."""
    return isinstance(x, Tensor) and x.dtype in INTEGERS


def check_form(x: Tensor, dims: Sequence[int], what: str) -> Tensor:
    """Tokens have one axis less than the vectors they stand for: (...) -> int64 (..., 1)."""
    if x.dim() + 1 not in dims:
        axes = " or ".join(str(dim - 1) for dim in dims)
        raise ValueError(f"expected {what} to be tokens with {axes} axes, got integers of shape {tuple(x.shape)}")
    return x.long().unsqueeze(-1)


def refuse_floats(x: object, dims: Sequence[int], what: str) -> None:
    """Tokens that are no integers: a batch of them has the form of one sequence of vectors."""
    if not isinstance(x, Tensor) or x.is_nested or x.is_complex() or x.dim() not in dims[:-1] or not _is_known(x):
        return
    if bool((x == x.round()).all()) and bool((x > 1).any()):
        raise TypeError(f"expected {what} to be tokens, which are integers, got {x.dtype}: convert it with .long()")


def check_range(tokens: Tensor, vocabulary: int) -> None:
    """(T, B, 1), or (B, 1) or (1) of one step; not where values are unknown: there looking them up checks them."""
    if not _is_known(tokens):
        return
    lowest, highest = torch.aminmax(tokens)
    if int(lowest) < 0 or int(highest) >= vocabulary:
        place = ((tokens < 0) | (tokens >= vocabulary)).nonzero()[0].tolist()
        names = ("", "in sequence {0}", "at step {0} of sequence {1}")[len(place) - 1].format(*place)
        got = f"{int(tokens[tuple(place)])} {names}".rstrip()
        raise ValueError(f"expected tokens from 0 to {vocabulary - 1}, got {got}")


def _is_known(x: Tensor) -> bool:
    """Whether one can look at the values."""
    return bool(x.numel()) and not (torch.compiler.is_compiling() or transformed() or traced() or x.is_meta)


def one_hot(tokens: Tensor, width: int, dtype: torch.dtype) -> Tensor:
    """(...) -> (..., I)"""
    return functional.one_hot(tokens, width).to(dtype)


def for_first_layers(stack: RecurrentStack, tokens_TB1: Tensor) -> tuple[Tensor, Tensor | None]:
    """What the first layers read: vectors; or tokens, whose products they look up in a table, with the vectors (V, I)
    that it is made of (None: one-hot ones).

    A table is made where it has at most half as many rows as there are steps to take. Dropout on inputs is another one
    in every sequence, and so is the product."""
    steps = tokens_TB1.numel()
    if (stack.training and stack.recurrent_dropout) or not steps:
        return stack.vectors(tokens_TB1.squeeze(-1)), None
    if stack.one_hot:
        if 2 * stack.input_size <= steps or stack.input_structure == Dense():  # its columns need no product
            return tokens_TB1, None
    elif is_plain(stack.embedding) and 2 * stack.embedding.num_embeddings <= steps:
        return tokens_TB1, stack.embedding.weight
    return stack.vectors(tokens_TB1.squeeze(-1)), None


def is_plain(embedding: nn.Module | None) -> TypeGuard[nn.Embedding]:
    """Whether all it does is to look up rows of its weight."""
    if type(embedding) is not nn.Embedding or embedding._forward_hooks or embedding._forward_pre_hooks:
        return False
    return not any(getattr(embedding, name) not in (None, False) for name in EMBEDDING_OPTIONS)
