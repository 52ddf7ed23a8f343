"""What is refused, and in which words."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from sequence_cases import CORES, decoder
from torch import nn

from slimrnn import GRU, Deep
from slimrnn.sequence import (
    Constant,
    Decoder,
    Encoder,
    EncoderDecoder,
    EndSymbol,
    ExponentialDecay,
    Gaussian,
    Halt,
    InverseSigmoidDecay,
    LinearDecay,
    PredictedLength,
    Sampling,
    Symbols,
)

GRU_OF: Any = CORES["gru"]
LINEAR: Any = partial(nn.Linear, out_features=4)
GIVEN = torch.zeros(2, 3, dtype=torch.float64)
TARGET = torch.zeros(4, 2, dtype=torch.long)
CONSTRUCTION: list[tuple[Callable[[], object], str]] = [
    (lambda: Symbols(0), "expected count to be at least 1, got 0"),
    (lambda: Symbols(3, 0), "expected embedding to be at least 1, got 0"),
    (lambda: Gaussian(0), "expected size to be at least 1, got 0"),
    (lambda: PredictedLength(0), "expected max_length to be at least 1, got 0"),
    (lambda: Sampling(-1.0), "expected temperature of at least 0, got -1.0"),
    (lambda: Sampling(float("nan")), "expected temperature to be finite, got nan"),
    (lambda: Sampling(top_k=0), "expected top_k to be at least 1, got 0"),
    (lambda: Sampling(top_p=0.0), "expected top_p above 0 and at most 1, got 0.0"),
    (lambda: Sampling(top_p=1.1), "expected top_p above 0 and at most 1, got 1.1"),
    (lambda: Constant(1.5), r"expected probability in \[0, 1\], got 1.5"),
    (lambda: LinearDecay(-0.1), "expected slope to be at least 0, got -0.1"),
    (lambda: ExponentialDecay(1.0), "expected k between 0 and 1, got 1.0"),
    (lambda: InverseSigmoidDecay(0.5), "expected k of at least 1, got 0.5"),
    (lambda: Decoder(GRU_OF, 3), r"expected output to be Symbols\(count\) or Gaussian\(size\), got 3"),  # type: ignore[arg-type]
    (lambda: Decoder(GRU_OF, Symbols(3), 7), r"expected length to be EndSymbol\(\), Halt\(\) or .*, got 7"),  # type: ignore[arg-type]
    (lambda: Decoder(GRU_OF, Gaussian(2), EndSymbol()), r"expected Halt\(\) or .* real vectors.*, got EndSymbol\(\)"),
    (lambda: Decoder(GRU_OF, Symbols(3), context="input "), "expected context to be one of 'state', .*, got 'input '"),  # type: ignore[arg-type]
    (lambda: Decoder(GRU_OF, Symbols(3), context_size=-1), "expected context_size .* at least 0, got -1"),
    (lambda: Decoder(lambda w: GRU(7, 4), Symbols(3)), "expected core to make .* input_size=4, as asked, got 7"),
    (
        lambda: Decoder(lambda w: GRU(w, 4, batch_first=True), Symbols(3)),
        "expected .* time first, got batch_first=True",
    ),
    (lambda: Decoder(lambda w: GRU(w, 4, bidirectional=True), Symbols(3)), "expected a core in one direction, got .*"),
    (
        lambda: Decoder(lambda w: Deep(w, GRU(4, 4, bidirectional=True), 4), Symbols(3)),
        "expected a core in one direction, got .*",
    ),
    (
        lambda: Encoder(lambda w: Deep(w, GRU(4, 4, bidirectional=True), 4), 3),
        "expected layers of one direction inside the core, which mixes both, got bidirectional ones",
    ),
    (lambda: Decoder(lambda w: nn.LSTM(w, 4, proj_size=2), Symbols(3)), "expected an LSTM without projection, got .*2"),
    (
        lambda: Decoder(LINEAR, Symbols(3)),
        "expected core to make an RNN, GRU or LSTM .*, got Linear",
    ),
    (
        lambda: Decoder(lambda w: GRU(w, 4, learn_initial_state=True), Symbols(3), context_size=2),
        "expected the context or a learned state as initial state, got both",
    ),
    (lambda: Encoder(GRU_OF, 0), "expected source to be at least 1, got 0"),
    (
        lambda: EncoderDecoder(Encoder(GRU_OF, 2), Decoder(GRU_OF, Symbols(3), context_size=5)),
        "expected a decoder of context_size=6, the encoder's, got 5",
    ),
]
USE: list[tuple[Callable[[Decoder], object], str]] = [
    (lambda d: d.log_prob(TARGET + 3, GIVEN), "expected symbols between 0 and 2, got 3"),
    (lambda d: d.log_prob(TARGET - 1, GIVEN), "expected symbols between 0 and 2, got -1"),
    (lambda d: d.log_prob(TARGET.float(), GIVEN), "expected symbols as a tensor of integers, got torch.float32"),
    (lambda d: d.log_prob(TARGET[:, 0], GIVEN), r"expected a sequence of shape \(T, B\) or .*, got \(4,\)"),
    (lambda d: d.log_prob(TARGET[..., None], GIVEN), r"expected symbols of shape \(T, B\), got \(4, 2, 1\)"),
    (lambda d: d.log_prob(TARGET, GIVEN, [4, 5]), r"expected lengths between 0 and 4, got \[4, 5\]"),
    (lambda d: d.log_prob(TARGET, GIVEN, [4, -1]), r"expected lengths between 0 and 4, got \[4, -1\]"),
    (lambda d: d.log_prob(TARGET, GIVEN[:1]), r"expected a context of shape \(2, 3\), got \(1, 3\)"),
    (lambda d: d.log_prob(TARGET), r"expected a context of shape \(2, 3\), got None"),
    (lambda d: d.loss(TARGET, GIVEN, forcing=1.1), r"expected forcing in \[0, 1\], got 1.1"),
    (lambda d: d.generate(GIVEN), "expected max_length, as nothing else bounds .*, got none"),
    (lambda d: d.generate(GIVEN, max_length=0), "expected max_length to be at least 1, got 0"),
    (lambda d: d.generate(max_length=3), r"expected a context of shape \(1, 3\), got None"),
    (lambda d: d.generate(GIVEN, max_length=3, batch=5), "expected as many sequences as contexts, 2, got 5"),
    (lambda d: d.generate(GIVEN, 0.7, max_length=3), r"expected how to be GREEDY or Sampling\(...\), got 0.7"),  # type: ignore[arg-type]
    (
        lambda d: d.generate(GIVEN, max_length=3, prompt=TARGET[:0]),
        "expected a prompt of at least one .*, got an empty",
    ),
    (lambda d: d.generate(GIVEN, max_length=3, prompt=TARGET + 9), "expected symbols between 0 and 2, got 9"),
    (
        lambda d: d.generate(GIVEN, max_length=3, prompt=TARGET[:, :1]),
        r"expected a prompt of shape \(T, 2\), got \(4, 1\)",
    ),
    (
        lambda d: d.generate(GIVEN, max_length=3, prompt=TARGET, prompt_lengths=[0, 1]),
        r"expected lengths between 1 and 4, got \[0, 1\]",
    ),
    (lambda d: d.beam_search(GIVEN, 0, max_length=3), "expected width to be at least 1, got 0"),
    (
        lambda d: d.beam_search(GIVEN, 2, max_length=3, length_penalty=-0.5),
        "expected length_penalty of at least 0, got -0.5",
    ),
    (lambda d: d.beam_search(GIVEN, 2, max_length=3).lists(), r"expected symbols of shape .*; see best\(\)"),
]


@pytest.mark.parametrize(("make", "message"), CONSTRUCTION)
def test_parts_that_do_not_fit_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        make()


@pytest.mark.parametrize(("use", "message"), USE)
def test_bad_input_is_refused(use: Callable[[Decoder], object], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        use(decoder())


def test_predicted_lengths_have_an_end() -> None:
    made = decoder(rule=PredictedLength(3))
    with pytest.raises(ValueError, match="expected lengths of at most 3, which can be predicted, got 4"):
        made.log_prob(TARGET, GIVEN)
    with pytest.raises(ValueError, match=r"expected no prompt with a predicted length, .*, got one"):
        made.generate(GIVEN, prompt=TARGET)


def test_real_vectors_have_no_symbols() -> None:
    made = decoder(rule=Halt(), output=Gaussian(2))
    values = torch.zeros(4, 2, 2, dtype=torch.float64)
    with pytest.raises(ValueError, match=r"expected top_k and top_p with symbols only, got .* for real vectors"):
        made.generate(GIVEN, Sampling(top_k=2), max_length=3)
    with pytest.raises(ValueError, match="expected symbols for a beam search, got a decoder of real vectors"):
        made.beam_search(GIVEN, 2, max_length=3)
    with pytest.raises(TypeError, match=r"expected values as a tensor of torch.float64, got torch.float32"):
        made.log_prob(values.float(), GIVEN)
    with pytest.raises(ValueError, match=r"expected values of shape \(T, B, 2\), got \(4, 2, 1\)"):
        made.log_prob(values[..., :1], GIVEN)


def test_no_context_where_there_is_none() -> None:
    made = decoder(context_size=0)
    with pytest.raises(ValueError, match="expected no context, as context_size is 0, got one"):
        made.log_prob(TARGET, GIVEN)
    with pytest.raises(ValueError, match="expected batch to be at least 1, got 0"):
        made.generate(max_length=3, batch=0)


def test_sources_are_checked() -> None:
    encoder = Encoder(GRU_OF, Symbols(4))
    with pytest.raises(ValueError, match=r"expected a source of 2 axes, \(T, B\), got \(4, 2, 1\)"):
        encoder(TARGET[..., None])
    with pytest.raises(ValueError, match="expected a source of at least one step, got an empty one"):
        encoder(TARGET[:0])
    with pytest.raises(ValueError, match="expected symbols between 0 and 3, got 4"):
        encoder(TARGET + 4)
    with pytest.raises(ValueError, match=r"expected lengths between 1 and 4, got \[0, 1\]"):
        encoder(TARGET, [0, 1])
    with pytest.raises(ValueError, match=r"expected a source of 3 axes, \(T, B, I\), got \(4, 2\)"):
        Encoder(GRU_OF, 2)(TARGET)
