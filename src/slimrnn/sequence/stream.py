"""Stream: a decoder at work, element by element.

Shape suffixes: T time, B sequences.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from slimrnn._checks import check_count
from slimrnn.layers.inputs import check_lengths
from slimrnn.sequence._core import scan, step
from slimrnn.sequence.generated import Generated
from slimrnn.sequence.lengths import PredictedLength
from slimrnn.sequence.sampling import Sampling
from slimrnn.sequence.symbols import SymbolOutput

if TYPE_CHECKING:
    from slimrnn.sequence.decoder import Decoder

    Lengths = Tensor | Sequence[int] | None


class Stream:
    """An iterator of (B) symbols or (B, D) values, without gradients. It ends when all sequences have ended, or are as
    long as they may get. `alive` says which sequences an element belongs to; the others get padding."""

    @torch.no_grad()
    def __init__(
        self,
        decoder: Decoder,
        context: Tensor | None,
        how: Sampling,
        max_length: int | None,
        batch: int | None,
        prompt: Tensor | None,
        prompt_lengths: Lengths,
        generator: torch.Generator | None,
    ) -> None:
        if not isinstance(how, Sampling):
            raise TypeError(f"expected how to be GREEDY or Sampling(...), got {how!r}")
        if how.restricts and not isinstance(decoder.output, SymbolOutput):
            raise ValueError(f"expected top_k and top_p with symbols only, got {how} for real vectors")
        self.decoder, self.how, self.generator = decoder, how, generator
        self.max_length = largest_length(decoder, max_length)
        if context is None and batch is None and isinstance(prompt, Tensor) and prompt.dim() > 1:
            batch = prompt.shape[1]
        batch = batch_size(context, batch)
        self.context = decoder._context(context, batch)
        self._state, self._before = decoder._start(self.context, batch), decoder.output.begin(batch)
        weight = decoder.output.readout.weight
        self.alive = torch.ones(batch, dtype=torch.bool, device=weight.device)
        self.finished = ~self.alive
        self.written: list[Tensor] = []
        self._over, self._padding = batch == 0, decoder.output.padding
        self._gone: Tensor | None = None  # who has ended, once there is one
        self._ended_at = torch.zeros(batch, dtype=torch.long, device=weight.device)
        self._total, self._pending = weight.new_zeros(batch), list[Tensor]()  # log-probabilities, and those to add
        self._tau: Tensor | None = None
        self._taus: set[int] = set()
        if prompt is not None:
            self._read(prompt, prompt_lengths)
        elif isinstance(decoder.length, PredictedLength):
            options = decoder._log_taus(self.context, batch)
            self._tau = Sampling(how.temperature).pick(options, generator)
            self._total, self._taus = options.gather(1, self._tau.unsqueeze(1)).squeeze(1), set(self._tau.tolist())

    def __iter__(self) -> Stream:
        return self

    @torch.no_grad()
    def __next__(self) -> Tensor:
        """Most steps end no sequence: these only note what was written."""
        steps, decoder, left = len(self.written), self.decoder, None
        if self._tau is not None:
            if steps in self._taus:
                self._end(self._tau == steps)
            self._over = self._over or steps == self.max_length
            left = decoder._left(self._tau - steps)
        if self._over:
            raise StopIteration
        hidden, self._state = step(decoder.core, decoder._input(self._before, self.context, left), self._state)
        choice = decoder.output.choice(hidden, decoder._stop(hidden))
        self._before, log_probs, ends = choice.pick(self.how, self.generator, self._gone)
        if self._tau is None:
            if ends is not None:
                self._end(ends, log_probs)
            self._over = self._over or steps == self.max_length
            if self._over:
                raise StopIteration
        self._pending.append(log_probs)
        values = self._before
        if self._gone is not None:
            values = values.masked_fill(self._gone if values.dim() == 1 else self._gone.unsqueeze(-1), self._padding)
        self.written.append(values)
        return values

    def _end(self, which: Tensor, log_probs: Tensor | None = None) -> None:
        """These sequences end here, at this cost."""
        which = which & self.alive
        total = self.log_probs
        self._total = total if log_probs is None else torch.where(which, total + log_probs, total)
        self._ended_at = self._ended_at.masked_fill(which, len(self.written))
        self.finished, self.alive = self.finished | which, self.alive & ~which
        self._gone, self._over = ~self.alive, not bool(self.alive.any())

    @property
    def lengths(self) -> Tensor:
        """(B) elements written until now."""
        return torch.where(self.alive, len(self.written), self._ended_at)

    @property
    def log_probs(self) -> Tensor:
        """(B) log-probabilities of what was written until now, and of the ends that were reached."""
        if self._pending:
            total = sum(self._pending, self._total)
            self._total, self._pending = torch.where(self.alive, total, self._total), []
        return self._total

    def so_far(self) -> Generated:
        """All that was written until now."""
        empty = self.decoder.output.empty(0, len(self.alive))
        sequences = torch.stack(self.written) if self.written else empty
        return Generated(sequences, self.lengths, self.finished, self.log_probs)

    def rest(self) -> Generated:
        """All that is written until the end."""
        for _ in self:
            pass
        return self.so_far()

    def _read(self, prompt: Tensor, lengths: Lengths) -> None:
        """Go on from a prompt: from the state after all of it but its last element, which is read next."""
        decoder = self.decoder
        if isinstance(decoder.length, PredictedLength):
            raise ValueError("expected no prompt with a predicted length, which is drawn before any element, got one")
        if not isinstance(prompt, Tensor) or prompt.dim() < 2 or prompt.shape[1] != len(self.alive):
            got = tuple(prompt.shape) if isinstance(prompt, Tensor) else type(prompt).__name__
            raise ValueError(f"expected a prompt of shape (T, {len(self.alive)}), got {got}")
        if not len(prompt):
            raise ValueError("expected a prompt of at least one element, or none, got an empty one")
        time, batch = prompt.shape[:2]
        lengths_B = check_lengths([time] * batch if lengths is None else lengths, time, batch, prompt.device)
        values = decoder.output.check(prompt, torch.arange(time, device=prompt.device).unsqueeze(1) < lengths_B)
        before = torch.cat([self._before.unsqueeze(0), values[:-1]])
        self._state = scan(decoder.core, decoder._input(before, self.context, None), self._state, lengths_B)[1]
        self._before = values[lengths_B.long() - 1, torch.arange(batch, device=prompt.device)]


def largest_length(decoder: Decoder, max_length: int | None) -> int:
    """Elements that a sequence may get to have."""
    if max_length is not None:
        check_count("max_length", max_length)
        return max_length
    if not isinstance(decoder.length, PredictedLength):
        raise ValueError("expected max_length, as nothing else bounds the length of what is written, got none")
    return decoder.length.max_length


def batch_size(context: Tensor | None, batch: int | None) -> int:
    """Sequences to write."""
    if batch is not None:
        check_count("batch", batch)
        if isinstance(context, Tensor) and len(context) != batch:
            raise ValueError(f"expected as many sequences as contexts, {len(context)}, got {batch}")
        return batch
    return len(context) if isinstance(context, Tensor) else 1
