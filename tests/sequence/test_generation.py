"""Greedy decoding, sampling, prompts and streams."""

from __future__ import annotations

import math

import pytest
import torch
from sequence_cases import contexts, decoder, every_context, every_core, every_rule

from slimrnn import GRU, LSTM
from slimrnn.sequence import (
    GREEDY,
    PADDING,
    Decoder,
    EndSymbol,
    Gaussian,
    Halt,
    PredictedLength,
    Sampling,
    Symbols,
)

OPTIONS = torch.tensor([[0.1, 0.2, 0.3, 0.4]], dtype=torch.float64).log()


def shares(how: Sampling, count: int = 20_000) -> list[float]:
    """How often each of OPTIONS is drawn."""
    drawn = how.pick(OPTIONS.expand(count, -1), torch.Generator().manual_seed(0))
    return [float((drawn == k).double().mean()) for k in range(4)]


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        (Sampling(), [0.1, 0.2, 0.3, 0.4]),
        (Sampling(0.5), [0.01 / 0.3, 0.04 / 0.3, 0.09 / 0.3, 0.16 / 0.3]),
        (Sampling(1e-40), [0, 0, 0, 1]),
        (Sampling(1e-300, top_p=0.9), [0, 0, 0, 1]),
        (Sampling(top_k=2), [0, 0, 3 / 7, 4 / 7]),
        (Sampling(top_k=9), [0.1, 0.2, 0.3, 0.4]),
        (Sampling(top_p=0.65), [0, 0, 3 / 7, 4 / 7]),
        (Sampling(top_p=0.71), [0, 2 / 9, 3 / 9, 4 / 9]),
        (Sampling(top_p=1e-9), [0, 0, 0, 1]),
        (Sampling(top_k=3, top_p=0.39), [0, 0, 0, 1]),
        (GREEDY, [0, 0, 0, 1]),
    ],
    ids=str,
)
def test_options_are_drawn_with_the_probabilities_that_were_asked_for(how: Sampling, expected: list[float]) -> None:
    for found, wanted in zip(shares(how), expected, strict=True):
        assert found == pytest.approx(wanted, abs=5 * math.sqrt(0.25 / 20_000) if 0 < wanted < 1 else 0)


def test_a_temperature_near_zero_is_greedy_in_single_precision() -> None:
    options = torch.tensor([[-3.0, -0.5, -2.0], [-0.1, -4.0, -3.0]])
    for temperature in (1e-20, 1e-38, 1e-40, 1e-300):
        assert Sampling(temperature).pick(options, None).tolist() == [1, 0]


@every_rule
def test_nothing_is_written_for_no_contexts(rule: EndSymbol | Halt | PredictedLength) -> None:
    made = decoder(rule=rule)
    assert made.generate(contexts(0), max_length=4).lists() == []
    assert made.beam_search(contexts(0), 2, max_length=4).best().lists() == []


@every_rule
@every_core
@every_context
def test_greedy_takes_the_likeliest_option_of_every_step(
    core: object, rule: EndSymbol | Halt | PredictedLength, context: str
) -> None:
    made, given = decoder(core, rule, context=context, sharp=2.0), contexts(6)  # type: ignore[arg-type]
    written = made.generate(given, max_length=5)
    for b in range(6):
        sequence = written.sequences[: written.lengths[b], b : b + 1]
        if isinstance(rule, PredictedLength):
            assert len(sequence) == int(made._log_taus(given[b : b + 1], 1).argmax())
        for t in range(len(sequence)):
            left = made._left(torch.full((1, 1), len(sequence)) - torch.arange(t + 1)[:, None])
            hidden = made._forced(sequence[: t + 1], given[b : b + 1], left)
            options = made.output.choice(hidden, made._stop(hidden)).options[-1, 0]  # type: ignore[union-attr]
            assert int(options.argmax()) == int(sequence[t, 0])


@every_rule
@pytest.mark.parametrize("how", [GREEDY, Sampling(0.8)], ids=["greedy", "sampled"])
def test_streaming_is_generating(rule: EndSymbol | Halt | PredictedLength, how: Sampling) -> None:
    made, given = decoder(rule=rule, sharp=2.0), contexts(8)
    whole = made.generate(given, how, max_length=4, generator=torch.Generator().manual_seed(3))
    stream = made.stream(given, how, max_length=4, generator=torch.Generator().manual_seed(3))
    came = []
    for t, symbols in enumerate(stream):
        came.append(symbols)
        assert torch.equal(symbols == PADDING, ~stream.alive)
        assert torch.equal(stream.so_far().sequences, torch.stack(came))
        assert int(stream.lengths.max()) == t + 1
    assert [symbols.tolist() for symbols in came] == whole.sequences.tolist()
    for name in ("lengths", "finished", "log_probs"):
        assert torch.equal(getattr(stream.so_far(), name), getattr(whole, name))
    with pytest.raises(StopIteration):
        next(stream)


@every_rule
def test_together_is_one_by_one(rule: EndSymbol | Halt | PredictedLength) -> None:
    made, given = decoder(rule=rule, sharp=2.0), contexts(7)
    together = made.generate(given, max_length=4)
    for b, sequence in enumerate(together.lists()):
        alone = made.generate(given[b : b + 1], max_length=4)
        assert alone.lists() == [sequence]
        assert torch.allclose(alone.log_probs, together.log_probs[b : b + 1], atol=1e-12)
        assert bool(alone.finished) == bool(together.finished[b])


def test_seeds_give_the_same_again_and_leave_torchs_own_numbers_alone() -> None:
    made, given = decoder(), contexts(30)
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    first, second, other = (
        made.generate(given, Sampling(), max_length=6, generator=torch.Generator().manual_seed(seed))
        for seed in (1, 1, 2)
    )
    assert torch.equal(first.sequences, second.sequences)
    assert first.lists() != other.lists()
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("rule", [EndSymbol(), Halt()], ids=["end", "halt"])
@every_core
def test_a_prompt_is_gone_on_from(core: object, rule: EndSymbol | Halt) -> None:
    made, given = decoder(core, rule, sharp=2.0), contexts(4)  # type: ignore[arg-type]
    prompt, lengths = torch.randint(3, (3, 4)), torch.tensor([3, 1, 2, 3])
    written = made.generate(given, max_length=3, prompt=prompt, prompt_lengths=lengths)
    for b in range(4):
        start = prompt[: lengths[b], b : b + 1]
        whole = torch.cat([start, written.sequences[: written.lengths[b], b : b + 1]])
        of_all, of_prompt = (made.losses(part, given[b : b + 1]) for part in (whole, start))
        ends = len(whole) + 1 if written.finished[b] else len(whole)
        cost = of_all[:ends].sum() - of_prompt[: len(start)].sum()
        assert torch.allclose(-cost, written.log_probs[b], atol=1e-10)


def test_a_length_that_is_reached_is_reported() -> None:
    made, given = decoder(), contexts(3)
    with torch.no_grad():
        made.output.readout.bias[-1] = -1e9
    written = made.generate(given, max_length=4)
    assert not written.finished.any()
    assert written.lengths.tolist() == [4, 4, 4]
    with torch.no_grad():
        made.output.readout.bias[-1] = 1e9
    nothing = made.generate(given, max_length=4)
    assert nothing.finished.all()
    assert nothing.lists() == [[], [], []]
    assert nothing.sequences.shape == (0, 3)


def test_a_predicted_length_that_is_cut_is_reported() -> None:
    made, given = decoder(rule=PredictedLength(4)), contexts(3)
    with torch.no_grad():
        assert made.tau is not None
        made.tau.weight.zero_()
        made.tau.bias.copy_(torch.tensor([0.0, 0, 0, 9, 0]))
    assert made.generate(given).lengths.tolist() == [3, 3, 3]
    cut = made.generate(given, max_length=2)
    assert cut.lengths.tolist() == [2, 2, 2]
    assert not cut.finished.any()


@pytest.mark.parametrize("rule", [Halt(), PredictedLength(5)], ids=["halt", "predicted"])
def test_gaussian_greedy_gives_the_means_and_temperature_the_spread(rule: Halt | PredictedLength) -> None:
    made, given = decoder(rule=rule, output=Gaussian(2)), contexts(1).expand(500, -1)
    means = made.generate(given, max_length=5)
    assert torch.equal(means.sequences[:, :1].expand(-1, 500, -1), means.sequences)
    assert int(means.lengths[0]) > 0
    deviations = []
    for temperature in (0.1, 1.0):
        drawn = made.generate(given, Sampling(temperature), max_length=5, generator=torch.Generator().manual_seed(0))
        deviations.append(float(drawn.sequences[0][drawn.lengths > 0].std(0).mean()))
    assert deviations[1] > 5 * deviations[0]


def test_generation_takes_native_steps_without_a_graph() -> None:
    native = Decoder(lambda width: LSTM(width, 16, 2), Symbols(5, 4), context_size=3)
    if native.core.backend != "native":
        pytest.skip("there is no native library here")
    reference = Decoder(lambda width: LSTM(width, 16, 2, backend="reference"), Symbols(5, 4), context_size=3)
    reference.load_state_dict(native.state_dict())
    given = torch.randn(9, 3)
    ours, theirs = (made.generate(given, max_length=20) for made in (native, reference))
    assert "_stream" in native.core.__dict__  # the packed weights of lean steps
    assert not ours.log_probs.requires_grad
    assert ours.lists() == theirs.lists()
    assert torch.allclose(ours.log_probs, theirs.log_probs, atol=1e-4)


def test_weights_that_an_optimizer_changed_are_the_ones_that_write() -> None:
    made = Decoder(lambda width: GRU(width, 8), Symbols(4), context_size=3)
    given, target = torch.randn(16, 3), torch.tensor([[2, 0, 1]]).T.expand(3, 16)
    optimizer = torch.optim.Adam(made.parameters(), lr=0.05, fused=True)
    made.generate(given, max_length=5)
    for _ in range(60):
        optimizer.zero_grad()
        made.loss(target, given).backward()
        optimizer.step()
    assert made.generate(given, max_length=5).lists() == [[2, 0, 1]] * 16
