"""The options beyond torch's: residual, dropouts, learned states, normalisation."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch

from registry import CELLS, numbers, randomise_
from slimrnn import GRU, LSTM, RNN, BlockDiagonal, Dense, Diagonal, Kronecker, LowRank
from slimrnn.layers import RecurrentStack


@pytest.mark.parametrize("cell", ["tanh", "modrelu", "lstm", "gru-before"])
@pytest.mark.parametrize("width", [3, 12])  # other than that of the outputs, and the same
def test_residual_adds_each_upper_layers_input(cell: str, width: int) -> None:
    stack = CELLS[cell].build(width, 6, 3, residual=True, bidirectional=True)
    plain = CELLS[cell].build(width, 6, 3, bidirectional=True)
    plain.load_state_dict(stack.state_dict())
    x = numbers(4, 2, width)
    flow, expected = x, x
    for depth in range(3):
        one = CELLS[cell].build(flow.shape[-1], 6, bidirectional=True)
        for direction in range(2):
            one.layers[direction] = stack.layers[2 * depth + direction]
        y, _ = one(flow)
        flow = y + flow if depth else y
        expected = flow
    torch.testing.assert_close(stack(x)[0], expected)
    assert not torch.allclose(stack(x)[0], plain(x)[0])


def test_residual_and_dropout_warn_for_a_single_layer() -> None:
    with pytest.warns(UserWarning, match="dropout acts between stacked layers"):
        LSTM(2, 3, dropout=0.5)
    with pytest.warns(UserWarning, match="residual acts between stacked layers"):
        LSTM(2, 3, residual=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LSTM(2, 3, 2, dropout=0.5, residual=True)


def test_dropout_acts_between_layers_in_training_only() -> None:
    stack = GRU(3, 8, 2, dropout=0.5, dtype=torch.float64)
    x = numbers(4, 2, 3)
    assert not torch.equal(stack(x)[0], stack(x)[0])
    stack.eval()
    assert torch.equal(stack(x)[0], stack(x)[0])
    single = GRU(3, 8, dtype=torch.float64)
    single.layers[0] = stack.layers[0]
    lower = single(x)[0]
    stack.train()
    torch.manual_seed(5)
    h = stack(x)[1]
    assert torch.equal(h[0], lower[-1])  # nothing before the first layer, nothing within


def test_recurrent_dropout_is_one_mask_per_sequence() -> None:
    stack = RNN(6, 6, nonlinearity="identity", bias=False, recurrent_dropout=0.5, dtype=torch.float64)
    stack.layer(0).recurrent.nearest_(torch.eye(6, dtype=torch.float64)[None])
    stack.layer(0).input.nearest_(torch.eye(6, dtype=torch.float64)[None])
    x = torch.ones(3, 40, 6, dtype=torch.float64)
    y, _ = stack(x)
    # h_1 = m_x, h_2 = m_h h_1 + m_x, h_3 = m_h h_2 + m_x with masks in {0, 2} fixed in time
    m_x, m_h = y[0], torch.where(y[0] > 0, (y[1] - y[0]) / y[0], 0.0)
    assert set(m_x.unique().tolist()) == {0.0, 2.0}
    assert set(m_h.unique().tolist()) == {0.0, 2.0}
    torch.testing.assert_close(y[2], m_h * y[1] + m_x)
    assert len({tuple(row) for row in m_x.tolist()}) > 1  # each sequence has its own
    stack.eval()
    torch.testing.assert_close(stack(x)[0][2], torch.full((40, 6), 3.0, dtype=torch.float64))


@pytest.mark.parametrize("cell", CELLS)
def test_recurrent_dropout_of_everything_leaves_the_bias(cell: str) -> None:
    stack = randomise_(CELLS[cell].build(3, 6, recurrent_dropout=1.0), 0.1)
    a, b = stack(numbers(4, 2, 3))[0], stack(numbers(4, 2, 3))[0]
    assert torch.isfinite(a).all()
    assert torch.equal(a, b)


@pytest.mark.parametrize("cell", CELLS)
def test_learned_initial_state_is_used_and_trained(cell: str) -> None:
    stack = randomise_(CELLS[cell].build(3, 6, 2, bidirectional=True, learn_initial_state=True))
    x = numbers(4, 5, 3)
    hx: Any = stack.initial_state(5)
    output, last = stack(x)
    torch.testing.assert_close(output, stack(x, hx)[0])
    output.square().sum().backward()
    for k in range(4):
        learned = stack.layer(k).initial
        assert learned is not None
        assert learned.grad is not None
        assert torch.all(learned.grad.abs().sum() > 0)
    alone = stack(x[:, 0])[0]
    torch.testing.assert_close(alone, output[:, 0])
    assert torch.as_tensor(last[0] if isinstance(last, tuple) else last).shape == (4, 5, 6)


def test_weight_norm_rows_and_constraint() -> None:
    stack = GRU(4, 8, structure=LowRank(3) + Diagonal(), weight_norm=True, max_row_norm=10.0, dtype=torch.float64)
    names = {n for n, _ in stack.named_parameters()}
    assert {"layers.0.input.weight_scale", "layers.0.recurrent.parts.0.left_scale"} <= names
    x = numbers(3, 2, 4)
    before = stack(x)[0]
    with torch.no_grad():
        for name, p in stack.named_parameters():
            if name.endswith(("left", "right", "input.weight")):
                p.mul_(1000)
    stack.constrain_()
    for name, p in stack.named_parameters():
        if name.endswith(("left", "right", "input.weight")):
            assert float(torch.linalg.vector_norm(p.detach(), dim=-1).max()) <= 10 + 1e-9
    torch.testing.assert_close(stack(x)[0], before)  # weight norm makes the row lengths irrelevant


def test_constrain_holds_the_scales_of_weight_norm() -> None:
    stack = LSTM(4, 8, weight_norm=True, max_row_norm=0.5, dtype=torch.float64)
    with torch.no_grad():
        for name, p in stack.named_parameters():
            if name.endswith("_scale"):
                p.fill_(-3.0)
    stack.constrain_()
    for part in (stack.layer(0).recurrent, stack.layer(0).input):
        norms = torch.linalg.vector_norm(part.dense().detach(), dim=-1)
        torch.testing.assert_close(norms, torch.full_like(norms, 0.5))


def test_constrain_without_max_row_norm_changes_nothing() -> None:
    stack = LSTM(4, 8)
    before = {k: v.clone() for k, v in stack.state_dict().items()}
    with torch.no_grad():
        stack.layer(0).recurrent.get_parameter("weight").mul_(1)
    stack.constrain_()
    assert all(torch.equal(v, before[k]) for k, v in stack.state_dict().items())


def test_input_structure_is_used() -> None:
    stack = LSTM(6, 12, structure=BlockDiagonal(3), input_structure=BlockDiagonal(3), dtype=torch.float64)
    x = numbers(5, 2, 6)
    whole, _ = stack(x)
    # Factorized paper, eq. 14: three small LSTMs side by side.
    pieces = []
    for i in range(3):
        small = LSTM(2, 4, dtype=torch.float64)
        with torch.no_grad():
            for part in ("recurrent", "input"):
                block = getattr(stack.layer(0), part).get_parameter("weight")[:, i]
                getattr(small.layer(0), part).get_parameter("weight").copy_(block)
        pieces.append(small(x[..., 2 * i : 2 * i + 2])[0])
    torch.testing.assert_close(whole, torch.cat(pieces, -1))


def test_kronecker_and_low_rank_inputs() -> None:
    for structure in (Kronecker([(4, 2), 3]), LowRank(2), LowRank(2) + Dense()):
        stack = GRU(6, 12, input_structure=structure, dtype=torch.float64)
        dense = GRU(6, 12, dtype=torch.float64)
        dense.layer(0).recurrent.load_state_dict(stack.layer(0).recurrent.state_dict())
        dense.layer(0).input.nearest_(stack.layer(0).input.dense())
        x = numbers(3, 2, 6)
        torch.testing.assert_close(stack(x)[0], dense(x)[0])


def test_complex_output_is_real_and_imaginary_part() -> None:
    stack = RNN(3, 8, 2, nonlinearity="modrelu", structure=Kronecker([2] * 3))
    output, h_n = stack(torch.randn(5, 2, 3))
    assert output.shape == (5, 2, 16)
    assert output.dtype == torch.float32
    assert h_n.dtype == torch.complex64
    assert torch.equal(torch.cat([h_n[-1].real, h_n[-1].imag], -1), output[-1])
    assert stack.output_size == 16


def test_penalty_sums_over_layers() -> None:
    stack: RecurrentStack = RNN(3, 8, 2, nonlinearity="modrelu", structure=Kronecker([2] * 3), bidirectional=True)
    with torch.no_grad():
        for k in range(4):
            for p in stack.layer(k).recurrent.parameters():
                p.mul_(1.1)
    expected = 4 * 3 * 2 * (1.21 - 1) ** 2
    assert stack.penalty().item() == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("backend", ["reference", "auto"])
@pytest.mark.parametrize("cell", CELLS)
def test_checkpointing_changes_nothing_but_memory(cell: str, backend: str) -> None:
    """Segments that do not divide the sequence; whatever their length, a cell does not see them: one has all."""
    x, lengths = numbers(11, 3, 3), [11, 4, 7]
    results: list[list[torch.Tensor]] = []
    for every in (None, 4, 1, 100) if cell == "lstm-peephole" else (None, 4):
        torch.manual_seed(1)
        stack = CELLS[cell].build(
            3, 6, 2, bidirectional=True, recurrent_dropout=0.3, checkpoint_every=every, backend=backend
        )
        torch.manual_seed(2)
        inputs = x.clone().requires_grad_()
        output, last = stack(inputs, lengths=lengths)
        states = list(last) if isinstance(last, tuple) else [last]
        loss = output.square().sum() + sum(s.abs().square().sum() for s in states)
        gradients = torch.autograd.grad(loss, [inputs, *(p for p in stack.parameters() if p.requires_grad)])
        results.append([output, *states, *gradients])
    for other in results[1:]:
        torch.testing.assert_close(other, results[0], rtol=1e-12, atol=1e-12)


def test_checkpointing_keeps_only_a_segment_of_history() -> None:
    kept: list[int] = []
    x = torch.randn(400, 2, 3)
    for every in (None, 20):
        sizes: dict[int, int] = {}

        def note(t: torch.Tensor, sizes: dict[int, int] = sizes) -> torch.Tensor:
            sizes[t.untyped_storage().data_ptr()] = t.untyped_storage().nbytes()
            return t

        stack = LSTM(3, 64, checkpoint_every=every)
        with torch.autograd.graph.saved_tensors_hooks(note, lambda t: t):
            stack(x)[0].sum()
        kept.append(sum(sizes.values()))
    assert kept[1] < kept[0] / 4


NOISE: dict[str, Any] = {"recurrent_dropout": 0.5, "zoneout": (0.5, 0.1), "weight_drop": 0.5}


@pytest.mark.parametrize("name", NOISE)
@pytest.mark.parametrize("options", [{}, {"delays": (1, 2)}, {"num_layers": 2, "bidirectional": True}], ids=str)
def test_an_option_that_is_set_later_acts(name: str, options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    noisy = LSTM(3, 4, dtype=torch.float64, **{name: NOISE[name]}, **options)
    plain = LSTM(3, 4, dtype=torch.float64, **options)
    plain.load_state_dict(noisy.state_dict())
    x = numbers(5, 2, 3)
    expected = plain(x)[0]
    assert not torch.allclose(noisy(x)[0], expected)
    setattr(noisy, name, 0.0)
    torch.testing.assert_close(noisy(x)[0], expected, rtol=0, atol=0)
    setattr(plain, name, NOISE[name])
    assert getattr(plain, name) == NOISE[name]
    assert not torch.allclose(plain(x)[0], expected)


def test_an_option_that_is_set_later_is_checked() -> None:
    rnn = GRU(3, 4, recurrent_dropout=0.5)
    for name, value in (("zoneout", 2.0), ("zoneout", (0.1, 0.1)), ("weight_drop", None), ("checkpoint_every", 0)):
        with pytest.raises((TypeError, ValueError), match=r"expected .*, got"):
            setattr(rnn, name, value)
    with pytest.raises(ValueError, match="expected no checkpoint_every with skip"):
        GRU(3, 4, skip=2).checkpoint_every = 2
    rnn.checkpoint_every = 2
    rnn.mask_per_gate = True
    assert [(core.checkpoint_every, core.mask_per_gate) for core in rnn.cores] == [(2, True)]
    assert rnn.cores[0].zoneout is None
    rnn.checkpoint_every = None
    assert rnn.cores[0].checkpoint_every is None
