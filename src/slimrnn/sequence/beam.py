"""Beam search: the sequences of symbols that the likeliest beginnings lead to.

At every step each of the K best beginnings goes on with each symbol, or ends; of all these the best K stay. Those that
ended are set aside, so that the beam gets narrower. Finished sequences are compared by

    score = log P / ((5 + length) / 6)^length_penalty        (Wu et al. 2016, eq. 14)

With a width of 1 this is greedy decoding; with a place for each way in which each beginning may go on, also beyond the
largest length, it is exhaustive search. Where there are fewer sequences than places, the log-probability of the rest is
−∞.

Shape suffixes: B batch, K places of the beam, N options of a step, T steps so far.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from slimrnn._checks import check_count, check_number
from slimrnn.sequence._core import reordered, step
from slimrnn.sequence.generated import Generated
from slimrnn.sequence.lengths import PredictedLength
from slimrnn.sequence.stream import batch_size, largest_length
from slimrnn.sequence.symbols import PADDING, SymbolChoice, SymbolOutput

if TYPE_CHECKING:
    from slimrnn.sequence.decoder import Decoder

NEVER = float("-inf")


class Hypotheses(NamedTuple):
    """Sequences side by side, (B, K) each."""

    sequences: Tensor  # (B, K, T)
    lengths: Tensor
    log_probs: Tensor
    scores: Tensor

    def chosen(self, places_BK: Tensor) -> Hypotheses:
        """Those at these places."""
        across = places_BK.unsqueeze(-1).expand(-1, -1, self.sequences.shape[-1])
        others = (part.gather(1, places_BK) for part in self[1:])
        return Hypotheses(self.sequences.gather(1, across), *others)

    def joined(self, others: Hypotheses) -> Hypotheses:
        return Hypotheses(*(torch.cat(pair, 1) for pair in zip(self, others, strict=True)))

    def longer(self) -> Hypotheses:
        """The same, with room for another symbol."""
        return self._replace(sequences=functional.pad(self.sequences, (0, 1), value=PADDING))


@torch.no_grad()
def beam_search(
    decoder: Decoder,
    context: Tensor | None,
    width: int,
    max_length: int | None,
    length_penalty: float,
    batch: int | None,
) -> Generated:
    """The best `width` sequences of at most `max_length` symbols, finished ones first."""
    check_count("width", width)
    check_number("length_penalty", length_penalty)
    if length_penalty < 0:
        raise ValueError(f"expected length_penalty of at least 0, got {length_penalty}")
    if not isinstance(decoder.output, SymbolOutput):
        raise ValueError("expected symbols for a beam search, got a decoder of real vectors")
    most, end = largest_length(decoder, max_length), decoder.output.count
    beam = _Beam(decoder, context, batch_size(context, batch), width)
    done, live = beam.nothing(), beam.beginnings()
    for t in range(most + 1):
        best_BK, places_BK = (live.log_probs.unsqueeze(-1) + beam.options(t)).flatten(1).topk(width, 1)
        parents_BK, symbols_BK = places_BK // (end + 1), places_BK % (end + 1)
        ended_BK = symbols_BK == end
        unfinished = live._replace(log_probs=_without(live.log_probs, parents_BK, ended_BK))
        live = live.chosen(parents_BK)._replace(log_probs=best_BK)
        done = _best(done.joined(_scored(live, ended_BK, length_penalty)), width)
        if t == most:
            break
        live = live.longer()._replace(lengths=live.lengths + 1, log_probs=best_BK.masked_fill(ended_BK, NEVER))
        live.sequences[..., t], done = symbols_BK, done.longer()
        if not _may_improve(live, done, most, length_penalty):
            unfinished = done._replace(log_probs=torch.full_like(best_BK, NEVER))  # there is no place for them
            break
        beam.follow(parents_BK, symbols_BK)
    return _result(done, _scored(unfinished, torch.ones_like(ended_BK), length_penalty), width)


class _Beam:
    """The decoder on K beginnings of each of B sequences, which are rows b · K + k of one batch."""

    def __init__(self, decoder: Decoder, context: Tensor | None, batch: int, width: int) -> None:
        self.decoder, self.shape = decoder, (batch, width)
        self.given = decoder._context(context, batch)
        self.rows_BK = torch.arange(batch * width, device=decoder.output.readout.weight.device).view(batch, width)
        self.context = None if self.given is None else self.given.repeat_interleave(width, 0)
        self.state, self.before = decoder._start(self.context, batch * width), decoder.output.begin(batch * width)
        self.taus_BK = torch.zeros_like(self.rows_BK)

    def nothing(self) -> Hypotheses:
        """No sequence at all."""
        never = self.decoder.output.readout.weight.new_full(self.shape, NEVER)
        return Hypotheses(self.before.new_empty(*self.shape, 0), torch.zeros_like(self.rows_BK), never, never)

    def beginnings(self) -> Hypotheses:
        """The empty sequence, or that of the likeliest lengths, where these are predicted."""
        batch, width = self.shape
        if isinstance(self.decoder.length, PredictedLength):
            options = self.decoder._log_taus(self.given, batch)
        else:
            options = self.decoder.output.readout.weight.new_zeros(batch, 1)
        best, taus = options.topk(min(width, options.shape[1]), 1)
        missing = (0, width - best.shape[1])
        self.taus_BK = functional.pad(taus, missing)
        return self.nothing()._replace(log_probs=functional.pad(best, missing, value=NEVER))

    def options(self, t: int) -> Tensor:
        """(B, K, N) log-probabilities of what may come next."""
        decoder, left = self.decoder, self.decoder._left((self.taus_BK - t).flatten())
        hidden, self.state = step(decoder.core, decoder._input(self.before, self.context, left), self.state)
        choice = decoder.output.choice(hidden, _halting(decoder, hidden, left))
        assert isinstance(choice, SymbolChoice)  # what `beam_search` asks for
        return choice.options.view(*self.shape, choice.options.shape[-1])

    def follow(self, parents_BK: Tensor, symbols_BK: Tensor) -> None:
        """Go on from these beginnings with these symbols."""
        self.taus_BK = self.taus_BK.gather(1, parents_BK)
        self.state = reordered(self.state, self.rows_BK.gather(1, parents_BK).flatten())
        self.before = symbols_BK.flatten()


def _halting(decoder: Decoder, hidden: Tensor, left: Tensor | None) -> tuple[Tensor, Tensor] | None:
    """As the decoder's own; a length that was predicted leaves no choice."""
    if left is None:
        return decoder._stop(hidden)
    never, always = torch.full_like(left, NEVER), torch.zeros_like(left)
    return torch.where(left == 0, always, never), torch.where(left == 0, never, always)


def _penalty(lengths: Tensor | int, power: float) -> Tensor | float:
    return ((5 + lengths) / 6) ** power


def _scored(live: Hypotheses, which_BK: Tensor, power: float) -> Hypotheses:
    """With their scores; those that are not meant have a probability of zero."""
    log_probs = live.log_probs.masked_fill(~which_BK, NEVER)
    return live._replace(log_probs=log_probs, scores=log_probs / _penalty(live.lengths, power))


def _best(hypotheses: Hypotheses, width: int) -> Hypotheses:
    return hypotheses.chosen(hypotheses.scores.topk(width, 1).indices)


def _without(log_probs_BK: Tensor, parents_BK: Tensor, ended_BK: Tensor) -> Tensor:
    """The log-probabilities of beginnings, but −∞ for those that just ended."""
    ended = torch.zeros_like(log_probs_BK).scatter_add(1, parents_BK, ended_BK.to(log_probs_BK.dtype)) > 0
    return log_probs_BK.masked_fill(ended, NEVER)


def _may_improve(live: Hypotheses, done: Hypotheses, most: int, power: float) -> bool:
    """Whether a beginning could end better than the worst that is set aside: its log-probability can only fall, and
    the largest length has the largest penalty."""
    return bool((live.log_probs / _penalty(most, power) > done.scores[:, -1:]).any())


def _result(done: Hypotheses, unfinished: Hypotheses, width: int) -> Generated:
    """Finished sequences first, then the others, each by score."""
    both, missing = done.joined(unfinished), torch.isneginf(done.scores)
    finished = torch.cat([~missing, torch.zeros_like(missing)], 1)
    by_score = both.scores.argsort(dim=1, descending=True, stable=True)
    order = by_score.gather(1, finished.gather(1, by_score).int().argsort(dim=1, descending=True, stable=True))[
        :, :width
    ]
    best, finished = both.chosen(order), finished.gather(1, order)
    lengths = best.lengths.masked_fill(torch.isneginf(best.scores), 0)
    steps = torch.arange(best.sequences.shape[-1], device=lengths.device)
    sequences = best.sequences.masked_fill(steps >= lengths.unsqueeze(-1), PADDING).movedim(-1, 0)
    longest = int(lengths.max()) if lengths.numel() else 0
    return Generated(sequences[:longest], lengths, finished, best.log_probs, best.scores)
