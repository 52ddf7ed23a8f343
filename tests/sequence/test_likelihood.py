"""log_prob is a probability, and what is drawn is drawn with it."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from sequence_cases import (
    CORES,
    RULES,
    all_sequences,
    as_batch,
    contexts,
    decoder,
    every_context,
    every_core,
    every_rule,
)
from torch import Tensor

from slimrnn.sequence import Decoder, EndSymbol, Gaussian, Halt, PredictedLength, Sampling, Symbols

LONGEST = 4


def p_value(observed: Tensor, expected: Tensor) -> float:
    """Of Pearson's chi-square test."""
    statistic = ((observed - expected) ** 2 / expected).sum()
    return float(torch.special.gammaincc(torch.tensor((len(expected) - 1) / 2).double(), statistic / 2))


def log_probs_of_all(made: Decoder, context: Tensor, longest: int = LONGEST) -> tuple[list[tuple[int, ...]], Tensor]:
    found = all_sequences(2, longest)
    padded, lengths = as_batch(found)
    return found, made.log_prob(padded, context.expand(len(found), -1), lengths).detach()


@every_rule
@every_context
def test_probabilities_of_all_sequences_add_up_to_one(rule: EndSymbol | Halt | PredictedLength, context: str) -> None:
    made, given = decoder(rule=rule, output=Symbols(2), context=context, sharp=3.0), contexts(1)
    sequences, log_probs = log_probs_of_all(made, given)
    total = float(log_probs.exp().sum())
    if isinstance(rule, PredictedLength):
        assert total == pytest.approx(1, abs=1e-12)  # there are no longer ones
        return
    beginnings = [sequence for sequence in sequences if len(sequence) == LONGEST]
    padded, lengths = as_batch(beginnings)
    costs = made.losses(padded, given.expand(len(beginnings), -1), lengths).detach()
    still_going = (-costs[:LONGEST].sum(0)).exp() * (1 - (-costs[LONGEST]).exp())
    assert total + float(still_going.sum()) == pytest.approx(1, abs=1e-12)


@every_rule
@pytest.mark.parametrize("core", ["slim-gru", "two-lstms"])
def test_sampled_frequencies_match_log_prob(rule: EndSymbol | Halt | PredictedLength, core: str) -> None:
    made, given, count = decoder(CORES[core], rule, Symbols(2), sharp=3.0), contexts(1), 20_000
    generator = torch.Generator().manual_seed(1)
    drawn = made.generate(given.expand(count, -1), Sampling(), max_length=LONGEST, generator=generator)
    frequencies = Counter(
        tuple(sequence) if finished else "unfinished"
        for sequence, finished in zip(drawn.lists(), drawn.finished.tolist(), strict=True)
    )
    sequences, log_probs = log_probs_of_all(made, given)
    observed = torch.tensor([float(frequencies[sequence]) for sequence in sequences])
    expected = count * log_probs.exp()
    rest = torch.tensor([float(frequencies["unfinished"])]), count - expected.sum().clamp_max(count)[None]
    frequent = expected >= 5
    observed = torch.cat([observed[frequent], observed[~frequent].sum()[None] + rest[0]])
    expected = torch.cat([expected[frequent], expected[~frequent].sum()[None] + rest[1]])
    if expected[-1] < 5:
        observed = torch.cat([observed[:-2], observed[-2:].sum()[None]])
        expected = torch.cat([expected[:-2], expected[-2:].sum()[None]])
    assert len(expected) > 5
    assert p_value(observed, expected) > 1e-3
    flat = torch.full_like(expected, float(expected.mean()))
    assert p_value(observed, flat) < 1e-6  # the test can tell


@every_rule
@every_core
@every_context
def test_what_is_generated_has_the_log_prob_that_it_says(
    core: object, rule: EndSymbol | Halt | PredictedLength, context: str
) -> None:
    made, given = decoder(core, rule, context=context), contexts(40)  # type: ignore[arg-type]
    drawn = made.generate(given, Sampling(), max_length=LONGEST, generator=torch.Generator().manual_seed(0))
    assert int(drawn.finished.sum()) > 0
    log_probs = made.log_prob(drawn.sequences, given, drawn.lengths)
    assert torch.allclose(log_probs[drawn.finished], drawn.log_probs[drawn.finished], atol=1e-10)
    costs = made.losses(drawn.sequences, given, drawn.lengths)
    if not isinstance(rule, PredictedLength):  # of what may go on: all but the end
        going = -costs[:LONGEST].sum(0)[~drawn.finished]
        assert torch.allclose(going, drawn.log_probs[~drawn.finished], atol=1e-10)
        assert set(drawn.lengths[~drawn.finished].tolist()) <= {LONGEST}


@pytest.mark.parametrize("rule", [Halt(), PredictedLength(6)], ids=["halt", "predicted"])
def test_gaussian_samples_have_the_mean_variance_and_density_that_log_prob_says(rule: Halt | PredictedLength) -> None:
    made, given = decoder(rule=rule, output=Gaussian(2), sharp=2.0), contexts(1).expand(4000, -1)
    drawn = made.generate(given, Sampling(), max_length=6, generator=torch.Generator().manual_seed(0))
    log_probs = made.log_prob(drawn.sequences, given, drawn.lengths)
    assert torch.allclose(log_probs[drawn.finished], drawn.log_probs[drawn.finished], atol=1e-10)
    first = drawn.sequences[0][drawn.lengths > 0]
    hidden = made._forced(made.output.begin(1).unsqueeze(0), given[:1], made._left(torch.ones(1, 1)))
    if isinstance(rule, Halt):  # with a predicted length the first element depends on it
        choice = made.output.choice(hidden, None)
        error = 4 * first.std(0) / len(first) ** 0.5
        assert bool(((first.mean(0) - choice.mean[0, 0]).abs() < error).all())  # type: ignore[union-attr]
        assert torch.allclose(first.var(0), choice.log_variance[0, 0].exp(), rtol=0.1)  # type: ignore[union-attr]


def test_the_gaussian_density_is_torchs() -> None:
    made = decoder(rule=PredictedLength(3), output=Gaussian(2))
    values, given = torch.randn(3, 5, 2, dtype=torch.float64), contexts(5)
    left = made._left(torch.tensor([[3], [2], [1]]).expand(3, 5))
    hidden = made._forced(values, given, left)
    mean, log_variance = made.output.readout(hidden).chunk(2, -1)
    theirs = torch.distributions.Normal(mean, (0.5 * log_variance).exp()).log_prob(values).sum(-1)
    assert torch.allclose(-made.losses(values, given)[:3], theirs, atol=1e-12)


@pytest.mark.parametrize("name", RULES)
def test_a_decoder_without_context(name: str) -> None:
    made = decoder(rule=RULES[name], output=Symbols(2), context_size=0, sharp=2.0)
    drawn = made.generate(how=Sampling(), batch=50, max_length=LONGEST, generator=torch.Generator().manual_seed(0))
    log_probs = made.log_prob(drawn.sequences, lengths=drawn.lengths)
    assert torch.allclose(log_probs[drawn.finished], drawn.log_probs[drawn.finished], atol=1e-10)
    sequences = all_sequences(2, LONGEST)
    padded, lengths = as_batch(sequences)
    total = float(made.log_prob(padded, lengths=lengths).detach().exp().sum())
    assert total <= 1 + 1e-12
    if name == "predicted":
        assert total == pytest.approx(1, abs=1e-12)
