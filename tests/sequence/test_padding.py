"""What is beyond the end of a sequence does not matter."""

from __future__ import annotations

import pytest
import torch
from sequence_cases import CORES, contexts, decoder, every_core, every_rule

from slimrnn import GRU
from slimrnn.sequence import Encoder, EncoderDecoder, EndSymbol, Gaussian, Halt, PredictedLength, Symbols
from slimrnn.sequence._core import Core

LENGTHS = [4, 0, 2, 3, 1]


def seq2seq(core: object, rule: EndSymbol | Halt | PredictedLength | None = None) -> EncoderDecoder:
    encoder = Encoder(core, Symbols(5, 3)).double()  # type: ignore[arg-type]
    made = decoder(core, rule, context_size=encoder.context_size)  # type: ignore[arg-type]
    return EncoderDecoder(encoder, made)


@every_rule
@pytest.mark.parametrize("forcing", [1.0, 0.0])
def test_padding_changes_neither_values_nor_gradients(rule: EndSymbol | Halt | PredictedLength, forcing: float) -> None:
    made, given, target = decoder(rule=rule), contexts(5), torch.randint(3, (4, 5))
    results = []
    for filling in (-1, 2, 10**6):
        padded = target.clone()
        for b, length in enumerate(LENGTHS):
            padded[length:, b] = filling
        made.zero_grad()
        loss = made.loss(padded, given, LENGTHS, forcing=forcing)
        loss.backward()
        results.append([loss.detach(), *(p.grad.clone() for p in made.parameters() if p.grad is not None)])
    assert len(results[0]) > 5
    for others in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], others, strict=True))


@pytest.mark.parametrize("forcing", [1.0, 0.0])
def test_padding_of_real_vectors_may_be_anything(forcing: float) -> None:
    made, given = decoder(rule=Halt(), output=Gaussian(2)), contexts(3)
    target = torch.randn(4, 3, 2, dtype=torch.float64)
    results = []
    for filling in (0.0, float("nan"), float("inf")):
        padded = target.clone()
        for b, length in enumerate([4, 1, 2]):
            padded[length:, b] = filling
        made.zero_grad()
        made.loss(padded, given, [4, 1, 2], forcing=forcing).backward()
        results.append([p.grad.clone() for p in made.parameters() if p.grad is not None])
    for others in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], others, strict=True))


@every_core
@every_rule
def test_ragged_is_one_by_one(core: object, rule: EndSymbol | Halt | PredictedLength) -> None:
    made = seq2seq(core, rule)
    source, target, source_lengths = torch.randint(5, (6, 5)), torch.randint(3, (4, 5)), [6, 1, 3, 2, 4]
    together = made.log_prob(target, source, LENGTHS, source_lengths)
    written = made.generate(source, source_lengths=source_lengths, max_length=4)
    for b in range(5):
        alone = source[: source_lengths[b], b : b + 1]
        assert torch.allclose(made.log_prob(target[: LENGTHS[b], b : b + 1], alone), together[b], atol=1e-12)
        assert made.generate(alone, max_length=4).lists() == written.lists()[b : b + 1]


@pytest.mark.parametrize("bidirectional", [False, True])
def test_the_source_beyond_its_end_does_not_matter(bidirectional: bool) -> None:
    def core(width: int) -> Core:
        return GRU(width, 4, bidirectional=bidirectional)

    encoder = Encoder(core, Symbols(5, 3))
    source, lengths = torch.randint(5, (6, 3)), [6, 1, 3]
    other = source.clone()
    for b, length in enumerate(lengths):
        other[length:, b] = 10**6
    assert torch.equal(encoder(source, lengths), encoder(other, lengths))
    assert encoder(source, lengths).shape == (3, 4 * (1 + bidirectional))


def test_real_sources_are_read_too() -> None:
    encoder = Encoder(CORES["complex"], 2)
    source = torch.randn(5, 3, 2)
    assert encoder(source).shape == (3, 8)
    assert torch.allclose(encoder(source, [5, 2, 1])[1], encoder(source[:2])[1], atol=1e-6)


def test_the_mean_loss_counts_elements_and_ends() -> None:
    made, given, target = decoder(), contexts(5), torch.randint(3, (4, 5))
    costs = made.losses(target, given, LENGTHS)
    assert costs.shape == (5, 5)
    assert torch.equal((costs != 0).sum(0), torch.tensor(LENGTHS) + 1)
    assert torch.allclose(made.loss(target, given, LENGTHS), costs.sum() / (sum(LENGTHS) + 5))
