"""Decoder: a probability of every sequence, given a context; trained by it, drawn from it.

Shape suffixes: T time, B batch, C context, H width of the core's output, D size of a real element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from slimrnn._checks import check_choice, check_probability
from slimrnn.layers.inputs import check_lengths
from slimrnn.sequence._core import (
    Core,
    StartMap,
    State,
    check_core,
    has_learned_start,
    initial_state,
    output_size,
    scan,
    step,
)
from slimrnn.sequence.beam import beam_search
from slimrnn.sequence.gaussian import Gaussian, GaussianOutput
from slimrnn.sequence.generated import Generated
from slimrnn.sequence.lengths import EndSymbol, Halt, LengthRule, PredictedLength, length_rule
from slimrnn.sequence.sampling import GREEDY, Sampling
from slimrnn.sequence.stream import Stream
from slimrnn.sequence.symbols import SymbolOutput, Symbols

Lengths = Tensor | Sequence[int] | None


class Decoder(nn.Module):
    """P(y₁ … y_τ | c) = Π_t P(y_t | y₁ … y_{t−1}, c), and where it ends, by a recurrent net that reads y_{t−1}.

    core -- makes the recurrent layers for an input width: `lambda width: GRU(width, 128)`; ours, of any kind that has a
    `step`, or torch.nn's;
    output -- `Symbols(count)` or `Gaussian(size)`;
    length -- how the end is decided: `EndSymbol()`, `Halt()` or `PredictedLength(max_length)`; by default the first
    for symbols and the second for real vectors;
    context_size -- width of the context vector c; 0: there is none;
    context -- c is the initial state ("state"), an extra input at each step ("input"), or "both";
    device, dtype -- of all but the core, which has its own.

    Sequences are time first, (T, B) symbols or (T, B, D) vectors, with `lengths` where they differ; 0 is a length."""

    def __init__(
        self,
        core: Callable[[int], Core],
        output: Symbols | Gaussian,
        length: LengthRule | None = None,
        *,
        context_size: int = 0,
        context: Literal["state", "input", "both"] = "both",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(output, Symbols | Gaussian):
            raise TypeError(f"expected output to be Symbols(count) or Gaussian(size), got {output!r}")
        self.length = length_rule(length, isinstance(output, Symbols))
        check_choice("context", context, ("state", "input", "both"))
        if not isinstance(context_size, int) or context_size < 0:
            raise ValueError(f"expected context_size to be an int of at least 0, got {context_size!r}")
        self.context_size, self.context = context_size, context
        where: dict[str, Any] = {"device": device, "dtype": dtype}
        kind: Any = SymbolOutput if isinstance(output, Symbols) else GaussianOutput
        reads_context = context_size if context != "state" else 0
        width = kind.read_width(output) + reads_context + isinstance(self.length, PredictedLength)
        self.core = check_core(core(width), width, causal=True)
        hidden = output_size(self.core)
        self.output: SymbolOutput | GaussianOutput = kind(output, hidden, isinstance(self.length, EndSymbol), **where)
        starts = context_size and context != "input"
        if starts and has_learned_start(self.core):
            raise ValueError("expected the context or a learned state as initial state, got both")
        self.start = StartMap(context_size, self.core, **where) if starts else None
        self.halt = nn.Linear(hidden, 1, **where) if isinstance(self.length, Halt) else None
        lengths = self.length.max_length + 1 if isinstance(self.length, PredictedLength) else 0
        self.tau = nn.Linear(context_size or 1, lengths, bias=context_size > 0, **where) if lengths else None

    # --- likelihood and training ------------------------------------------------------------------------

    def forward(self, *args: Any, **options: Any) -> Tensor:
        """The loss, so that wrappers such as DistributedDataParallel can be put around a decoder."""
        return self.loss(*args, **options)

    def log_prob(self, sequence: Tensor, context: Tensor | None = None, lengths: Lengths = None) -> Tensor:
        """(B) log-probabilities (of real vectors: densities) of whole sequences, the decision of their length
        included: the chain rule."""
        return -self.losses(sequence, context, lengths).sum(0)

    def loss(
        self,
        sequence: Tensor,
        context: Tensor | None = None,
        lengths: Lengths = None,
        *,
        forcing: float = 1.0,
        draw: bool = False,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """The mean of `losses` over all decisions: the elements of each sequence and its length."""
        losses = self.losses(sequence, context, lengths, forcing=forcing, draw=draw, generator=generator)
        steps_B = self._lengths(sequence, lengths)
        return losses.sum() / (steps_B + 1).sum()

    def losses(
        self,
        sequence: Tensor,
        context: Tensor | None = None,
        lengths: Lengths = None,
        *,
        forcing: float = 1.0,
        draw: bool = False,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """(T + 1, B): what each decision costs, −log P. Row t < length is that of element t, row `length` that of
        ending there, the rest is zero.

        `forcing` is the probability with which the net reads the true element before (Bengio et al. 2015), drawn for
        every step: 1 is teacher forcing, 0 is open loop, where it reads its own likeliest ones, or with `draw` those
        that it draws. 1 runs the whole sequence at once."""
        check_probability("forcing", forcing)
        lengths_B = self._lengths(sequence, lengths)
        steps_T1 = torch.arange(len(sequence) + 1, device=sequence.device).unsqueeze(1)
        inside_TB = steps_T1 < lengths_B
        values = self.output.check(sequence, inside_TB[:-1])
        values = torch.cat([values, values.new_zeros(1, *values.shape[1:])])  # the last row is never looked at
        context = self._context(context, values.shape[1])
        left_TB = self._left(lengths_B - steps_T1)
        if forcing == 1:
            hidden = self._forced(values, context, left_TB)
        else:
            truth_TB = torch.rand(inside_TB.shape, generator=generator, device=values.device) < forcing
            truth_TB |= ~inside_TB  # beyond the end there is nothing to go on from
            hidden = self._unrolled(values, context, left_TB, truth_TB, draw, generator)
        choice = self.output.choice(hidden, self._stop(hidden))
        ends = choice.stop() if self.tau is None else self._log_tau(context, lengths_B)
        ends = torch.where(steps_T1 == lengths_B, ends, 0)
        return -torch.where(inside_TB, choice.log_prob(values), ends)

    def _forced(self, values: Tensor, context: Tensor | None, left_TB: Tensor | None) -> Tensor:
        """Teacher forcing: outputs (T, B, H) of the core, from one run over the true sequence."""
        before = torch.cat([self.output.begin(values.shape[1]).unsqueeze(0), values[:-1]])
        state = self._start(context, values.shape[1])
        return scan(self.core, self._input(before, context, left_TB), state)[0]

    def _unrolled(
        self,
        values: Tensor,
        context: Tensor | None,
        left_TB: Tensor | None,
        truth_TB: Tensor,
        draw: bool,
        generator: torch.Generator | None,
    ) -> Tensor:
        """Scheduled sampling: outputs of the core, step by step, from the true element before or the net's own."""
        before = self.output.begin(values.shape[1])
        state = self._start(context, values.shape[1])
        outputs = []
        for t, (value, truth_B) in enumerate(zip(values.unbind(0), truth_TB.unbind(0), strict=True)):
            left_B = None if left_TB is None else left_TB[t]
            hidden, state = step(self.core, self._input(before, context, left_B), state)
            outputs.append(hidden)
            own = self.output.choice(hidden, None).feedback(draw, generator)
            before = torch.where(truth_B if own.dim() == 1 else truth_B.unsqueeze(-1), value, own)
        return torch.stack(outputs)

    # --- generation -------------------------------------------------------------------------------------

    def stream(
        self,
        context: Tensor | None = None,
        how: Sampling = GREEDY,
        *,
        max_length: int | None = None,
        batch: int | None = None,
        prompt: Tensor | None = None,
        prompt_lengths: Lengths = None,
        generator: torch.Generator | None = None,
    ) -> Stream:
        """Elements as they come: an iterator of (B) symbols or (B, D) values. See `Stream` and `generate`."""
        return Stream(self, context, how, max_length, batch, prompt, prompt_lengths, generator)

    def generate(
        self,
        context: Tensor | None = None,
        how: Sampling = GREEDY,
        *,
        max_length: int | None = None,
        batch: int | None = None,
        prompt: Tensor | None = None,
        prompt_lengths: Lengths = None,
        generator: torch.Generator | None = None,
    ) -> Generated:
        """Whole sequences, the likeliest step by step or drawn as `how` says, of at most `max_length` elements (with a
        predicted length: by default its largest). One for each context, or `batch` of them where there is none.

        They go on from the `prompt`, (T, B) symbols, which is not repeated."""
        return self.stream(
            context,
            how,
            max_length=max_length,
            batch=batch,
            prompt=prompt,
            prompt_lengths=prompt_lengths,
            generator=generator,
        ).rest()

    def beam_search(
        self,
        context: Tensor | None = None,
        width: int = 4,
        *,
        max_length: int | None = None,
        length_penalty: float = 0.0,
        batch: int | None = None,
    ) -> Generated:
        """The best `width` sequences of symbols found for each context, best first; see `slimrnn.sequence.beam`."""
        return beam_search(self, context, width, max_length, length_penalty, batch)

    # --- parts ------------------------------------------------------------------------------------------

    def _input(self, before: Tensor, context: Tensor | None, left: Tensor | None) -> Tensor:
        """(…, I): the element before, the context, and the share of the largest length that is left."""
        parts = [self.output.read(before)]
        if context is not None and self.context != "state":
            parts.append(context.expand(*parts[0].shape[:-1], -1))
        if left is not None:
            parts.append(left.unsqueeze(-1))
        return torch.cat(parts, -1) if len(parts) > 1 else parts[0]

    def _start(self, context: Tensor | None, batch: int) -> State:
        if self.start is not None and context is not None:
            state: State = self.start(context)
            return state
        return initial_state(self.core, batch)

    def _stop(self, hidden: Tensor) -> tuple[Tensor, Tensor] | None:
        """Log-probabilities of halting and of going on."""
        if self.halt is None:
            return None
        logit = self.halt(hidden).squeeze(-1)
        return functional.logsigmoid(logit), functional.logsigmoid(-logit)

    def _left(self, steps: Tensor) -> Tensor | None:
        """τ − t as an input, where the length is predicted: as a share of the largest."""
        if not isinstance(self.length, PredictedLength):
            return None
        return steps.clamp_min(0).to(self.output.readout.weight.dtype) / self.length.max_length

    def _log_taus(self, context: Tensor | None, batch: int) -> Tensor:
        """(B, max_length + 1): log P(τ | c) of a predicted length."""
        assert self.tau is not None
        given = self.tau.weight.new_ones(batch, 1) if context is None else context
        return functional.log_softmax(self.tau(given), -1)

    def _log_tau(self, context: Tensor | None, lengths_B: Tensor) -> Tensor:
        assert isinstance(self.length, PredictedLength)
        longest, most = int(lengths_B.max()) if len(lengths_B) else 0, self.length.max_length
        if longest > most:
            raise ValueError(f"expected lengths of at most {most}, which can be predicted, got {longest}")
        return self._log_taus(context, len(lengths_B)).gather(1, lengths_B.unsqueeze(1)).squeeze(1)

    def extra_repr(self) -> str:
        return f"length={self.length}, context_size={self.context_size}, context={self.context!r}"

    # --- checks -----------------------------------------------------------------------------------------

    def _lengths(self, sequence: Tensor, lengths: Lengths) -> Tensor:
        if not isinstance(sequence, Tensor) or sequence.dim() < 2:
            raise ValueError(f"expected a sequence of shape (T, B) or (T, B, D), got {_shape(sequence)}")
        time, batch = sequence.shape[:2]
        if lengths is None:
            return torch.full((batch,), time, device=sequence.device)
        return check_lengths(lengths, time, batch, sequence.device, least=0).long()

    def _context(self, context: Tensor | None, batch: int) -> Tensor | None:
        if not self.context_size:
            if context is not None:
                raise ValueError("expected no context, as context_size is 0, got one")
            return None
        if not isinstance(context, Tensor) or tuple(context.shape) != (batch, self.context_size):
            raise ValueError(f"expected a context of shape ({batch}, {self.context_size}), got {_shape(context)}")
        return context


def _shape(value: object) -> str:
    return str(tuple(value.shape)) if isinstance(value, Tensor) else str(value)
