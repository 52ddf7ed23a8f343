"""Encoders and decoders are ordinary modules."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from sequence_cases import contexts, decoder, every_core, every_rule
from torch import Tensor, nn

from slimrnn import GRU, LSTM
from slimrnn.sequence import Decoder, Encoder, EncoderDecoder, EndSymbol, Halt, PredictedLength, Sampling, Symbols
from slimrnn.sequence import curricula as c

LAYERS: dict[str, Callable[..., Any]] = {"gru": partial(GRU, hidden_size=6), "lstm": partial(LSTM, hidden_size=5)}


@every_rule
@every_core
def test_copies_compute_the_same(core: object, rule: EndSymbol | Halt | PredictedLength) -> None:
    made, given = decoder(core, rule), contexts(4)  # type: ignore[arg-type]
    target = torch.randint(3, (4, 4))
    made.generate(given, max_length=3)  # leaves packed weights behind
    expected = made.log_prob(target, given)
    fresh = decoder(core, rule)  # type: ignore[arg-type]
    fresh.load_state_dict(made.state_dict())
    file = io.BytesIO()
    torch.save(made.state_dict(), file)
    file.seek(0)
    loaded = decoder(core, rule)  # type: ignore[arg-type]
    loaded.load_state_dict(torch.load(file, weights_only=True))
    for other in (fresh, loaded, copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert torch.equal(other.log_prob(target, given), expected)


@pytest.mark.parametrize("name", LAYERS)
def test_native_and_reference_losses_and_gradients_agree(name: str) -> None:
    gradients = []
    for backend in ("auto", "reference"):
        torch.manual_seed(0)
        made = decoder(partial(LAYERS[name], backend=backend))
        target, given = torch.randint(3, (5, 6)), contexts(6)
        loss = made.loss(target, given, [5, 1, 0, 2, 3, 4])
        loss.backward()
        gradients.append([loss.detach(), *(p.grad for p in made.parameters() if p.grad is not None)])
    for ours, theirs in zip(*gradients, strict=True):
        assert torch.allclose(ours, theirs, atol=1e-10)


def test_single_precision_and_other_dtypes() -> None:
    made = decoder().float()
    target = torch.randint(3, (4, 2))
    assert made.log_prob(target, torch.randn(2, 3)).dtype == torch.float32
    assert (
        Decoder(lambda w: GRU(w, 4, dtype=torch.float64), Symbols(2), dtype=torch.float64)
        .log_prob(target.clamp_max(1))
        .dtype
        == torch.float64
    )


def test_a_translator_learns_by_the_loss() -> None:
    encoder = Encoder(lambda width: GRU(width, 24), Symbols(4))
    made = EncoderDecoder(
        encoder, Decoder(lambda width: nn.GRU(width, 24), Symbols(4), Halt(), context_size=encoder.context_size)
    )
    source = torch.cartesian_prod(torch.arange(4), torch.arange(4)).T
    target = torch.cat([source.flip(0), source[:1]])
    optimizer = torch.optim.Adam(made.parameters(), lr=0.02)
    for update in range(120):
        optimizer.zero_grad()
        made(target, source, forcing=1.0 if update < 110 else 0.5).backward()  # called, it is the loss
        optimizer.step()
    assert made.generate(source, max_length=6).lists() == target.T.tolist()
    assert made.beam_search(source, 3, max_length=6).best().lists() == target.T.tolist()
    came = list(made.stream(source[:, :1], max_length=6))
    assert [int(symbol) for symbol in came] == target[:, 0].tolist()


def test_draws_stay_out_of_the_way_of_gradients() -> None:
    made, given = decoder(), contexts(2).requires_grad_()
    assert not made.generate(given, Sampling(), max_length=3).log_probs.requires_grad
    assert torch.is_grad_enabled()
    stream = made.stream(given, max_length=3)
    for symbols in stream:
        assert torch.is_grad_enabled()
        assert isinstance(symbols, Tensor)


def test_curricula_are_those_of_the_paper() -> None:
    assert [c.Constant(0.4)(update) for update in (0, 10**6)] == [0.4, 0.4]
    linear = c.LinearDecay(0.1, start=0.9, least=0.25)
    assert [linear(update) for update in (0, 4, 100)] == pytest.approx([0.9, 0.5, 0.25])
    assert [c.ExponentialDecay(0.9)(update) for update in (0, 1, 10)] == pytest.approx([1, 0.9, 0.9**10])
    sigmoid = c.InverseSigmoidDecay(5.0)
    by_the_formula = [5 / (5 + float(torch.tensor(update / 5).double().exp())) for update in (0, 3, 8, 20)]
    assert [sigmoid(update) for update in (0, 3, 8, 20)] == pytest.approx(by_the_formula)
    assert sigmoid(10**9) == 0
    for curriculum in (linear, c.ExponentialDecay(0.9), sigmoid, c.Constant(0.3)):
        values = [curriculum(update) for update in range(300)]
        assert values == sorted(values, reverse=True)
        assert all(0 <= value <= 1 for value in values)
        assert pickle.loads(pickle.dumps(curriculum)) == curriculum
