"""Teacher forcing, open loop, and what is between them."""

from __future__ import annotations

import pytest
import torch
from sequence_cases import contexts, decoder, every_core, every_rule
from torch import Tensor

from slimrnn import GRU
from slimrnn.sequence import Decoder, EndSymbol, Gaussian, Halt, PredictedLength, Symbols
from slimrnn.sequence import decoder as decoder_module
from slimrnn.sequence._core import initial_state, step

LENGTHS = [4, 0, 2, 3, 1]


def some(rule: object, core: object = None) -> tuple[Decoder, Tensor, Tensor]:
    made = decoder(rule=rule) if core is None else decoder(core, rule)  # type: ignore[arg-type]
    return made, torch.randint(3, (4, 5)), contexts(5)


def by_hand(made: Decoder, target: Tensor, context: Tensor, read: Tensor | None) -> Tensor:
    """The costs, step by step: the net reads `read`, or else its own likeliest symbols."""
    state = initial_state(made.core, target.shape[1]) if made.start is None else made.start(context)
    before, lengths = made.output.begin(target.shape[1]), torch.tensor(LENGTHS)
    costs = torch.zeros(len(target) + 1, len(LENGTHS), dtype=torch.float64)
    for t in range(len(target) + 1):
        given = [made.output.read(before), context]
        if isinstance(made.length, PredictedLength):
            given.append(((lengths - t).clamp_min(0).double() / made.length.max_length)[:, None])
        hidden, state = step(made.core, torch.cat(given, -1), state)
        symbols = made.output.readout(hidden).log_softmax(-1)
        halts = torch.zeros(5) if made.halt is None else torch.sigmoid(made.halt(hidden)[:, 0])
        for b, length in enumerate(LENGTHS):
            if t < length:
                costs[t, b] = -symbols[b, target[t, b]] - torch.log1p(-halts[b])
            elif t == length and made.tau is not None:
                costs[t, b] = -made.tau(context).log_softmax(-1)[b, length]
            elif t == length:
                costs[t, b] = -symbols[b, 3] if made.halt is None else -halts[b].log()
        if t < len(target):
            before = symbols[:, :3].argmax(-1) if read is None else read[t]
    return costs


@every_rule
@every_core
def test_forcing_one_is_teacher_forcing_and_zero_is_open_loop(
    core: object, rule: EndSymbol | Halt | PredictedLength
) -> None:
    made, target, context = some(rule, core)
    with torch.no_grad():
        for forcing, read in ((1.0, target), (0.0, None)):
            costs = made.losses(target, context, LENGTHS, forcing=forcing)
            assert torch.allclose(costs, by_hand(made, target, context, read), atol=1e-12)


def test_full_forcing_runs_the_whole_sequence_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made, target, context = some(EndSymbol())
    expected = made.losses(target, context)

    def no_steps(*_: object) -> None:
        raise AssertionError("a single step")

    monkeypatch.setattr(decoder_module, "step", no_steps)
    assert torch.equal(made.losses(target, context, forcing=1.0), expected)
    with pytest.raises(AssertionError, match="a single step"):
        made.losses(target, context, forcing=0.999)


@every_rule
def test_forcing_in_between_reads_either_with_that_probability(rule: EndSymbol | Halt | PredictedLength) -> None:
    made, _, _ = some(rule)
    target, context = torch.randint(3, (1, 4000)), contexts(1).expand(4000, -1)
    with torch.no_grad():
        left = made._left(torch.tensor([[1], [0]]).expand(2, 4000))
        values = torch.cat([target, target])
        ends = {
            name: made._unrolled(values, context, left, truth, False, None)[1]
            for name, truth in (
                ("true", torch.ones(2, 4000, dtype=torch.bool)),
                ("own", torch.zeros(2, 4000, dtype=torch.bool)),
                ("mixed", torch.rand(2, 4000) < 0.3),
            )
        }
    is_true = (ends["mixed"] == ends["true"]).all(-1)
    is_own = (ends["mixed"] == ends["own"]).all(-1)
    told_apart = ~(ends["true"] == ends["own"]).all(-1)
    assert bool((is_true | is_own).all())
    assert float(is_true[told_apart].double().mean()) == pytest.approx(0.3, abs=0.04)


def test_scheduled_sampling_is_seeded() -> None:
    made, target, context = some(EndSymbol())
    first, second, other = (
        made.losses(target, context, forcing=0.5, draw=True, generator=torch.Generator().manual_seed(seed))
        for seed in (1, 1, 2)
    )
    assert torch.equal(first, second)
    assert not torch.equal(first, other)


def test_drawn_feedback_follows_the_options() -> None:
    made = decoder(output=Symbols(2), sharp=3.0)
    given = contexts(1).expand(5000, -1)
    hidden = made._forced(torch.zeros(1, 5000, dtype=torch.long), given, None)[0]
    choice = made.output.choice(hidden, None)
    drawn = choice.feedback(True, torch.Generator().manual_seed(0))
    share = choice.options[0, :2].softmax(-1)[1].detach()  # type: ignore[union-attr]
    assert float(drawn.double().mean()) == pytest.approx(float(share), abs=0.03)


@every_rule
@pytest.mark.parametrize("forcing", [1.0, 0.0])
def test_gradients_of_the_loss(rule: EndSymbol | Halt | PredictedLength, forcing: float) -> None:
    made, target, context = some(rule)
    context.requires_grad_()
    names = [name for name, _ in made.named_parameters()]

    def loss(context: Tensor, *parameters: Tensor) -> Tensor:
        given = dict(zip(names, parameters, strict=True))
        named = {f"made.{name}": p for name, p in given.items()}
        return torch.func.functional_call(_Loss(made), named, (context,))  # type: ignore[no-any-return]

    class _Loss(torch.nn.Module):
        def __init__(self, made: Decoder) -> None:
            super().__init__()
            self.made = made

        def forward(self, context: Tensor) -> Tensor:
            return self.made.loss(target, context, LENGTHS, forcing=forcing)

    assert torch.autograd.gradcheck(loss, (context, *made.parameters()), fast_mode=True)


@pytest.mark.parametrize("rule", [Halt(), PredictedLength(4)], ids=["halt", "predicted"])
def test_open_loop_gradients_go_through_what_is_fed_back(rule: Halt | PredictedLength) -> None:
    made = decoder(lambda width: GRU(width, 4), rule, Gaussian(2))
    target, context = torch.randn(3, 2, 2, dtype=torch.float64), contexts(2).requires_grad_()
    assert torch.autograd.gradcheck(lambda c: made.loss(target, c, [3, 1], forcing=0.0), (context,))
    last = made.losses(target, context, forcing=0.0)[2].sum()
    (bias,) = torch.autograd.grad(last, [made.output.readout.bias], retain_graph=True)
    made_of_its_own = made.losses(target, context, forcing=1.0)[2].sum()
    (forced_bias,) = torch.autograd.grad(made_of_its_own, [made.output.readout.bias])
    assert not torch.allclose(bias, forced_bias)
