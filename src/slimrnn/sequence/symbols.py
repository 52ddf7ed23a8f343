"""Sequences of symbols: how they are read and what is said about the next one.

Shape suffixes: B batch, V symbols, N = V + 1 options of a step: the symbols, then "no more".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from slimrnn._checks import check_count
from slimrnn._fixed_buffers import FixedBuffers
from slimrnn.sequence.sampling import Sampling

PADDING = -1  # where a sequence has no symbol


@dataclass(frozen=True)
class Symbols:
    """Symbols 0 … count − 1. They are read one-hot, or through a learned vector of `embedding` numbers each.

    Begin and end are not among them: a decoder has an input and an output of its own for these."""

    count: int
    embedding: int | None = None

    def __post_init__(self) -> None:
        check_count("count", self.count)
        if self.embedding is not None:
            check_count("embedding", self.embedding)


class SymbolTable(FixedBuffers):
    """The vector of each symbol."""

    weight: Tensor

    def __init__(self, rows: int, embedding: int | None, **where: Any) -> None:
        super().__init__()
        self.width = rows if embedding is None else embedding
        if embedding is None:
            self.register_buffer("weight", torch.eye(rows, **where), persistent=False)
        else:
            self.weight = nn.Parameter(torch.randn(rows, embedding, **where))

    def fixed_buffers(self) -> dict[str, Tensor]:
        """One-hot vectors."""
        return {"weight": torch.eye(self.width)}

    def forward(self, symbols: Tensor) -> Tensor:
        return functional.embedding(symbols, self.weight)


class SymbolOutput(nn.Module):
    """Reads the symbol before, or "begin", and gives the options of a step; `with_end`: one of its own for the end."""

    padding = PADDING

    def __init__(self, spec: Symbols, hidden: int, with_end: bool, **where: Any) -> None:
        super().__init__()
        self.count = spec.count
        self.table = SymbolTable(spec.count + 1, spec.embedding, **where)
        self.readout = nn.Linear(hidden, spec.count + with_end, **where)

    @staticmethod
    def read_width(spec: Symbols) -> int:
        """Numbers that stand for a symbol when it is read."""
        return spec.count + 1 if spec.embedding is None else spec.embedding

    def begin(self, batch: int) -> Tensor:
        """What is read before the first symbol, (B)."""
        return torch.full((batch,), self.count, device=self.readout.weight.device)

    def read(self, symbols: Tensor) -> Tensor:
        vectors: Tensor = self.table(symbols)
        return vectors

    def check(self, values_TB: Tensor, inside_TB: Tensor) -> Tensor:
        """The symbols, with "begin" where there is none."""
        if isinstance(values_TB, Tensor) and values_TB.dim() != 2:
            raise ValueError(f"expected symbols of shape (T, B), got {tuple(values_TB.shape)}")
        return check_symbols(values_TB, self.count, inside_TB, self.count)

    def choice(self, hidden: Tensor, stop: tuple[Tensor, Tensor] | None) -> SymbolChoice:
        """`stop` are the log-probabilities of halting and of going on, where the symbols have no end of their own."""
        options = functional.log_softmax(self.readout(hidden), -1)
        if stop is not None:
            halts, goes_on = stop
            options = torch.cat([options + goes_on.unsqueeze(-1), halts.unsqueeze(-1)], -1)
        return SymbolChoice(options, self.count)

    def empty(self, steps: int, *shape: int) -> Tensor:
        """Only padding."""
        return torch.full((steps, *shape), PADDING, device=self.readout.weight.device)


@dataclass(frozen=True)
class SymbolChoice:
    """Log-probabilities (…, N) of what may come next."""

    options: Tensor
    count: int

    def log_prob(self, symbols: Tensor) -> Tensor:
        """Of going on with these symbols."""
        return self.options.gather(-1, symbols.clamp_max(self.count - 1).unsqueeze(-1)).squeeze(-1)

    def stop(self) -> Tensor:
        """Log-probability that there is no more."""
        return self.options[..., self.count]

    def feedback(self, draw: bool, generator: torch.Generator | None) -> Tensor:
        """A symbol to read next, were there one: the likeliest, or one that is drawn."""
        symbols = self.options.detach()[..., : self.count]
        return Sampling(temperature=float(draw)).pick(symbols, generator)

    def pick(
        self, how: Sampling, generator: torch.Generator | None, gone_B: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """(B) symbols, the log-probability of each, and where instead there is no more: None for nowhere.

        Sequences that are gone do not count."""
        if how.greedy:
            log_prob_B, picked_B = self.options.max(-1)
        else:
            picked_B = how.pick(self.options, generator)
            log_prob_B = self.options.gather(-1, picked_B.unsqueeze(-1)).squeeze(-1)
        if gone_B is not None:
            picked_B = picked_B.masked_fill(gone_B, 0)
        return picked_B, log_prob_B, picked_B == self.count if int(picked_B.max()) == self.count else None


def check_symbols(values: Tensor, count: int, inside: Tensor | None, padding: int) -> Tensor:
    """Integers between 0 and count − 1 where `inside`; the others become `padding`."""
    if (
        not isinstance(values, Tensor)
        or values.is_floating_point()
        or values.is_complex()
        or values.dtype == torch.bool
    ):
        got = values.dtype if isinstance(values, Tensor) else type(values).__name__
        raise TypeError(f"expected symbols as a tensor of integers, got {got}")
    values = values.long() if inside is None else values.long().masked_fill(~inside, padding)
    if torch.compiler.is_compiling():  # which cannot look at numbers
        return values
    shown = values if inside is None else values[inside]
    if shown.numel() and (int(shown.min()) < 0 or int(shown.max()) >= count):
        unknown = shown[(shown < 0) | (shown >= count)][0]
        raise ValueError(f"expected symbols between 0 and {count - 1}, got {int(unknown)}")
    return values
