"""Beam search."""

from __future__ import annotations

import pytest
import torch
from sequence_cases import all_sequences, as_batch, contexts, decoder, every_context, every_core, every_rule
from torch import Tensor

from slimrnn.sequence import Decoder, EndSymbol, Halt, PredictedLength, Symbols

LONGEST = 4
EVERY = 4 * 3**LONGEST  # places for all that a beginning of LONGEST of three symbols may go on with


def exhaustive(made: Decoder, context: Tensor, penalty: float) -> list[tuple[float, tuple[int, ...]]]:
    """All sequences by their scores, best first."""
    sequences = all_sequences(3, LONGEST)
    padded, lengths = as_batch(sequences)
    log_probs = made.log_prob(padded, context.expand(len(sequences), -1), lengths).detach()
    scores = log_probs / ((5 + lengths) / 6) ** penalty
    return sorted(zip(scores.tolist(), sequences, strict=True), reverse=True)


@every_rule
@every_core
@every_context
def test_a_beam_of_one_is_greedy(core: object, rule: EndSymbol | Halt | PredictedLength, context: str) -> None:
    made, given = decoder(core, rule, context=context, sharp=2.0), contexts(12)  # type: ignore[arg-type]
    for penalty in (0.0, 1.0):
        beam = made.beam_search(given, 1, max_length=4, length_penalty=penalty).best()
        greedy = made.generate(given, max_length=4)
        assert beam.lists() == greedy.lists()
        assert torch.equal(beam.finished, greedy.finished)
        assert torch.allclose(beam.log_probs, greedy.log_probs, atol=1e-12)


@every_rule
@pytest.mark.parametrize("penalty", [0.0, 0.7])
def test_a_wide_beam_is_exhaustive_search(rule: EndSymbol | Halt | PredictedLength, penalty: float) -> None:
    made, given = decoder(rule=rule, sharp=2.0), contexts(3)
    beam = made.beam_search(given, EVERY, max_length=LONGEST, length_penalty=penalty)
    for b in range(3):
        expected = exhaustive(made, given[b : b + 1], penalty)
        assert int(beam.finished[b].sum()) == len(expected)
        assert beam.scores is not None
        assert beam.scores[b, : len(expected)].tolist() == pytest.approx([score for score, _ in expected], abs=1e-10)
        for k in range(10):
            found = tuple(beam.sequences[: beam.lengths[b, k], b, k].tolist())
            assert found == expected[k][1]


@every_rule
def test_hypotheses_have_the_log_probs_that_they_say(rule: EndSymbol | Halt | PredictedLength) -> None:
    made, given = decoder(rule=rule), contexts(5)
    beam = made.beam_search(given, 6, max_length=LONGEST, length_penalty=0.5)
    assert beam.scores is not None
    for k in range(6):
        log_probs = made.log_prob(beam.sequences[:, :, k], given, beam.lengths[:, k])
        finished = beam.finished[:, k]
        assert torch.allclose(log_probs[finished], beam.log_probs[finished, k], atol=1e-10)
    assert bool((beam.scores[:, :-1] >= beam.scores[:, 1:]).all() or not beam.finished.all())
    assert bool((beam.finished[:, :-1].int() >= beam.finished[:, 1:].int()).all())


def test_a_length_penalty_prefers_longer_sequences() -> None:
    made, given = decoder(sharp=2.0), contexts(40)
    without, with_penalty = (
        made.beam_search(given, 20, max_length=6, length_penalty=penalty).best().lengths.double().mean()
        for penalty in (0.0, 2.0)
    )
    assert with_penalty > without


def test_places_that_no_sequence_fills_are_impossible() -> None:
    made, given = decoder(output=Symbols(2)), contexts(2)
    beam = made.beam_search(given, 10, max_length=1)
    assert beam.finished.sum(1).tolist() == [3, 3]  # nothing, 0 and 1
    assert bool(beam.log_probs[:, 3:].isneginf().any())
    assert {tuple(sorted(beam.sequences[: beam.lengths[0, k], 0, k].tolist())) for k in range(3)} == {(), (0,), (1,)}
    empty = beam.log_probs.isneginf()
    assert beam.lengths[empty].sum() == 0


def test_a_length_that_is_reached_is_reported() -> None:
    made, given = decoder(), contexts(2)
    with torch.no_grad():
        made.output.readout.bias[-1] = -1e9
    beam = made.beam_search(given, 3, max_length=4)
    assert not beam.finished.any()
    assert beam.lengths.tolist() == [[4] * 3] * 2
