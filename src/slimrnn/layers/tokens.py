"""Tokens as the input of a stack: integers that stand for rows of its embedding, or for one-hot vectors.

Inside the layers tokens are an integer tensor (T, B, 1), so that they are cut, padded and turned as vectors are.

Shape suffixes: T time, B batch, I input width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

import torch
from torch import Tensor, nn
from torch.nn import functional

from slimrnn._fields import some_parameter
from slimrnn.layers.backend import OnBackend
from slimrnn.layers.inputs import check_input
from slimrnn.layers.options import mask_rates
from slimrnn.ops.operators import traced, transformed
from slimrnn.structures import Dense, Structure

INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.uint16, torch.uint32, torch.uint64)
EMBEDDING_OPTIONS = ("padding_idx", "max_norm", "scale_grad_by_freq", "sparse")  # act where vectors are looked up


class TokenInput(OnBackend):
    """What a stack with `vocabulary` or `one_hot` does with its input."""

    input_size: int
    vocabulary: int | None
    one_hot: bool
    embedding: nn.Embedding | None
    layers: nn.ModuleList
    input_structure: Structure | tuple[Structure, ...]
    recurrent_dropout: float | Sequence[float]

    @property
    def takes_tokens(self) -> bool:
        """Whether integers are input."""
        return self.one_hot or self.embedding is not None

    def vectors(self, tokens: Tensor) -> Tensor:
        """What tokens stand for, (...) -> (..., I): rows of the embedding, or one-hot vectors."""
        if not self.takes_tokens:
            raise RuntimeError("expected a layer with vocabulary= or one_hot=True for tokens, got one without")
        if self.embedding is None:
            return one_hot(tokens.long(), self.input_size, self._dtype)
        found: Tensor = self.embedding(tokens.long())
        if found.shape[-1] != self.input_size or found.dtype != self._dtype:
            wanted = f"vectors of {self.input_size} numbers of {self._dtype}"
            raise ValueError(f"expected the embedding to give {wanted}, got {found.shape[-1]} of {found.dtype}")
        return found

    @property
    def _dtype(self) -> torch.dtype:
        return some_parameter(self.layers).dtype

    def _checked(self, x: Tensor, dims: tuple[int, ...], what: str) -> Tensor:
        """Vectors (..., I) in the layer's dtype, or tokens as int64 (..., 1), whose values nobody has looked at."""
        if self.takes_tokens:
            if is_tokens(x):
                return _with_axis(x, dims, what)
            self._refuse_floats(x, dims, what)
        return check_input(x, dims, self.input_size, self._dtype, what)

    def _check_range(self, tokens: Tensor) -> None:
        vocabulary = self.input_size if self.embedding is None else getattr(self.embedding, "num_embeddings", None)
        if vocabulary is not None:  # else another module in the embedding's place, which alone knows
            _check_range(tokens, vocabulary)

    def _refuse_floats(self, x: object, dims: Sequence[int], what: str) -> None:
        """Tokens that are no integers: a batch of them has the form of one sequence of vectors, but for their width."""
        if not isinstance(x, Tensor) or not x.is_floating_point() or x.is_nested or x.dim() not in dims[:-1]:
            return
        if x.shape[-1] != self.input_size and _is_known(x) and bool((x == x.round()).all()):
            raise TypeError(f"expected {what} to be tokens, which are integers, got {x.dtype}: convert it with .long()")

    def _step_vectors(self, x_t: Tensor) -> Tensor:
        """Of one step."""
        if not is_tokens(x_t):
            self._refuse_floats(x_t, (1, 2), "x_t")
            return x_t
        tokens = _with_axis(x_t, (1, 2), "x_t")
        self._check_range(tokens)
        return self.vectors(tokens.squeeze(-1))

    def _for_first_layers(self, tokens_TB1: Tensor) -> tuple[Tensor, Tensor | None]:
        """What the first layers read: vectors; or tokens, whose products they look up in a table, with the vectors
        (V, I) that it is made of (None: one-hot ones).

        A table is made where it has at most half as many rows as there are steps to take; it is slower from about 3/4
        on. Dropout on inputs makes other vectors in every sequence, and torch's operators read vectors only."""
        if torch.compiler.is_exporting() and self.embedding is not None:  # for any number of steps
            return self.vectors(tokens_TB1.squeeze(-1)), None
        steps, drops = tokens_TB1.numel(), self.training and mask_rates(self.recurrent_dropout)[0]
        if steps and not drops and self.backend in ("native", "reference"):
            if self.embedding is None:
                dense = self.input_structure == Dense()
                if dense or 2 * self.input_size <= steps:  # a dense map's are its columns
                    return tokens_TB1, None
            elif _is_plain(self.embedding) and 2 * self.embedding.num_embeddings <= steps:
                return tokens_TB1, self.embedding.weight
        return self.vectors(tokens_TB1.squeeze(-1)), None


def is_tokens(x: object) -> bool:
    """Whether it is a tensor of integers."""
    return isinstance(x, Tensor) and x.dtype in INTEGERS


def one_hot(tokens: Tensor, width: int, dtype: torch.dtype) -> Tensor:
    """(...) -> (..., I)"""
    return functional.one_hot(tokens, width).to(dtype)


def _with_axis(x: Tensor, dims: Sequence[int], what: str) -> Tensor:
    """Tokens have one axis less than the vectors they stand for: (...) -> int64 (..., 1)."""
    if x.is_nested:
        raise TypeError(f"expected {what} to be a padded tensor, got a nested one")
    if x.dim() + 1 not in dims:
        axes = " or ".join(str(dim - 1) for dim in dims)
        raise ValueError(f"expected {what} to be tokens with {axes} axes, got integers of shape {tuple(x.shape)}")
    return x.long().unsqueeze(-1)


def _check_range(tokens: Tensor, vocabulary: int) -> None:
    """(T, B, 1), or (B, 1) or (1) of one step; not where values are unknown: there looking them up checks them."""
    if not _is_known(tokens):
        return
    lowest, highest = torch.aminmax(tokens)
    if int(lowest) < 0 or int(highest) >= vocabulary:
        place = ((tokens < 0) | (tokens >= vocabulary)).nonzero()[0].tolist()
        names = ("", " in sequence {0}", " at step {0} of sequence {1}")[len(place) - 1].format(*place)
        raise ValueError(f"expected tokens from 0 to {vocabulary - 1}, got {int(tokens[tuple(place)])}{names}")


def _is_known(x: Tensor) -> bool:
    """Whether one can look at the values."""
    return bool(x.numel()) and not (torch.compiler.is_compiling() or transformed() or traced() or x.is_meta)


def _is_plain(embedding: nn.Module) -> TypeGuard[nn.Embedding]:
    """Whether all it does is to look up rows of its weight."""
    if type(embedding) is not nn.Embedding or embedding._forward_hooks or embedding._forward_pre_hooks:
        return False
    return all(getattr(embedding, name) in (None, False) for name in EMBEDDING_OPTIONS)
