"""A layer that reads tokens computes what it does on the vectors that they stand for."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from registry import CELLS, FEW_PAIRS, RECTANGULAR, SIZE, STRUCTURES, needs_library
from slimrnn import GRU, LSTM, RNN, Deep, Dense, Diagonal, LowRank, summary
from slimrnn.analysis.model.layer_inputs import layer_inputs
from slimrnn.layers import RecurrentStack
from slimrnn.training.config import ModelConfig
from slimrnn.training.models.sequence_model import SequenceModel
from slimrnn.training.models.symbol_model import SymbolModel

VOCABULARY, WIDTH, TIME, BATCH = 5, 6, 7, 3
LENGTHS = [4, 7, 1]
BACKENDS = [pytest.param("native", marks=needs_library), "reference"]
OPTIONS: dict[str, dict[str, Any]] = {
    "embedding": {"vocabulary": VOCABULARY},
    "two directions": {"vocabulary": VOCABULARY, "num_layers": 2, "bidirectional": True},
    "no bias": {"vocabulary": VOCABULARY, "bias": False},
    "delays": {"vocabulary": VOCABULARY, "delays": (1, 2, 3), "bidirectional": True},
    "skip": {"vocabulary": VOCABULARY, "skip": 3},
    "deep transition": {"vocabulary": VOCABULARY, "transition_depth": 2},
    "segments": {"vocabulary": VOCABULARY, "checkpoint_every": 3},
    "batch first": {"vocabulary": VOCABULARY, "batch_first": True},
    "large vocabulary": {"vocabulary": 50},
    "one-hot": {"one_hot": True},
    "one-hot, no bias": {"one_hot": True, "bias": False},
    "one-hot, low rank": {"one_hot": True, "input_structure": LowRank(2)},
    "one-hot, weight norm": {"one_hot": True, "weight_norm": True},
}


def tokens_for(rnn: RecurrentStack) -> Tensor:
    """Every one of a small vocabulary but the last is there, some of them more than once."""
    count = rnn.input_size if rnn.vocabulary is None else rnn.vocabulary
    tokens = torch.randint(count - 1, (TIME, BATCH), generator=torch.Generator().manual_seed(1))
    return tokens.T.contiguous() if rnn.batch_first else tokens


def gru(**options: Any) -> GRU:
    torch.manual_seed(0)
    return GRU(WIDTH, SIZE, dtype=torch.float64, **options)


def results(rnn: RecurrentStack, x: Any, **given: Any) -> list[Tensor]:
    """Output, state and all gradients."""
    torch.manual_seed(3)  # of dropout
    output, state = rnn(x, **given)
    output = getattr(output, "data", output)
    states = state if isinstance(state, tuple) else (state,)
    weights = torch.randn(output.shape, dtype=output.dtype, generator=torch.Generator().manual_seed(2))
    loss = (output * weights).sum() + sum(part.abs().square().sum() for part in states)
    found = torch.autograd.grad(loss, [p for p in rnn.parameters() if p.requires_grad], allow_unused=True)
    return [output, *states, *(d for d in found if d is not None)]


def assert_same(ours: list[Tensor], theirs: list[Tensor]) -> None:
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("lengths", [None, LENGTHS], ids=["whole", "ragged"])
@pytest.mark.parametrize("name", OPTIONS)
def test_tokens_give_what_their_vectors_give(name: str, lengths: Any, backend: str) -> None:
    rnn = gru(backend=backend, **OPTIONS[name])
    tokens = tokens_for(rnn)
    assert_same(results(rnn, tokens, lengths=lengths), results(rnn, rnn.vectors(tokens), lengths=lengths))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("cell", "structure"), FEW_PAIRS)
def test_every_cell_and_structure_reads_tokens(cell: str, structure: str, backend: str) -> None:
    torch.manual_seed(0)
    rnn = CELLS[cell].build(WIDTH, SIZE, structure=STRUCTURES[structure], vocabulary=VOCABULARY, backend=backend)
    tokens = tokens_for(rnn)
    assert_same(results(rnn, tokens), results(rnn, rnn.vectors(tokens)))


@pytest.mark.parametrize("structure", RECTANGULAR)
def test_every_input_structure_reads_one_hot_tokens(structure: str) -> None:
    rnn = gru(input_structure=RECTANGULAR[structure], one_hot=True)
    tokens = tokens_for(rnn)
    assert_same(results(rnn, tokens), results(rnn, rnn.vectors(tokens)))


@needs_library
@pytest.mark.parametrize("cell", ["modrelu", "lstm"])
def test_native_core_agrees_with_the_reference(cell: str) -> None:
    torch.manual_seed(0)
    rnn = CELLS[cell].build(WIDTH, SIZE, bidirectional=True, vocabulary=VOCABULARY)
    tokens, found = tokens_for(rnn), []
    for backend in ("native", "reference"):
        rnn.backend = backend
        found.append(results(rnn, tokens, lengths=LENGTHS))
    assert rnn.runs_as == "reference"
    assert_same(*found)


@needs_library
def test_threads_add_up() -> None:
    rnn = GRU(WIDTH, 64, vocabulary=VOCABULARY, dtype=torch.float64)
    tokens, found, threads = torch.randint(VOCABULARY, (40, 8)), [], torch.get_num_threads()
    try:
        for count in (1, 3):
            torch.set_num_threads(count)
            found.append(results(rnn, tokens))
    finally:
        torch.set_num_threads(threads)
    assert_same(*found)


@pytest.mark.parametrize("dropout", ["recurrent_dropout", "weight_drop", "zoneout"])
@pytest.mark.parametrize("kind", ["embedding", "one-hot"])
def test_dropout_draws_the_same(kind: str, dropout: str) -> None:
    rnn = gru(**OPTIONS[kind], **{dropout: 0.4})
    tokens = tokens_for(rnn)
    drawn = results(rnn, tokens)
    assert_same(drawn, results(rnn, rnn.vectors(tokens)))
    assert not torch.equal(drawn[0], rnn.eval()(tokens)[0])


def test_matches_torch() -> None:
    rnn, embedding = gru(vocabulary=VOCABULARY, batch_first=True), nn.Embedding(VOCABULARY, WIDTH, dtype=torch.float64)
    rnn.embedding.load_state_dict(embedding.state_dict())  # type: ignore[union-attr]
    plain = gru(batch_first=True)
    plain.load_state_dict(rnn.state_dict(), strict=False)
    torch_gru = plain.to_torch()
    tokens = tokens_for(rnn)
    torch.testing.assert_close(rnn(tokens)[0], torch_gru(embedding(tokens))[0])


@pytest.mark.parametrize("kind", ["embedding", "one-hot", "large vocabulary"])
def test_packed_nested_and_unbatched(kind: str) -> None:
    rnn = gru(**OPTIONS[kind])
    tokens = tokens_for(rnn)
    packed = pack_padded_sequence(tokens, LENGTHS, enforce_sorted=False)
    vectors = pack_padded_sequence(rnn.vectors(tokens), LENGTHS, enforce_sorted=False)
    assert_same(results(rnn, packed), results(rnn, vectors))
    rows = [tokens[:length, k] for k, length in enumerate(LENGTHS)]
    nested, last = rnn(torch.nested.nested_tensor(rows, layout=torch.jagged))
    torch.testing.assert_close(last, rnn(tokens, lengths=LENGTHS)[1])
    for row, output in zip(rows, nested.unbind(), strict=True):
        torch.testing.assert_close(output, rnn(row)[0])


@pytest.mark.parametrize("dtype", [torch.int32, torch.uint8])
def test_any_integers_are_tokens(dtype: torch.dtype) -> None:
    rnn = gru(vocabulary=VOCABULARY)
    tokens = tokens_for(rnn)
    assert torch.equal(rnn(tokens.to(dtype))[0], rnn(tokens)[0])


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("kind", ["embedding", "one-hot"])
def test_steps_are_the_sequence(kind: str, grad: bool) -> None:
    rnn = gru(**OPTIONS[kind], num_layers=2)
    tokens = tokens_for(rnn)
    with torch.set_grad_enabled(grad):
        whole, last = rnn(tokens)
        state, alone = rnn.initial_state(BATCH), rnn.initial_state()
        for t in range(TIME):
            y, state = rnn.step(tokens[t], state)
            torch.testing.assert_close(y, whole[t])
            y, alone = rnn.step(tokens[t, 0], alone)
            torch.testing.assert_close(y, whole[t, 0])
        torch.testing.assert_close(state, last)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", ["embedding", "one-hot", "delays", "deep transition"])
def test_second_derivatives(kind: str, backend: str) -> None:
    rnn = gru(backend=backend, **OPTIONS[kind])
    tokens = tokens_for(rnn)

    def second(x: Tensor) -> list[Tensor]:
        parameters = list(rnn.parameters())
        first = torch.autograd.grad(rnn(x)[0].sin().sum(), parameters, create_graph=True)
        found = torch.autograd.grad(torch.stack([d.square().sum() for d in first]).sum(), parameters, allow_unused=True)
        return [d for d in found if d is not None]

    assert_same(second(tokens), second(rnn.vectors(tokens)))


def test_compiled_and_exported() -> None:
    rnn = gru(vocabulary=VOCABULARY)
    tokens = tokens_for(rnn)
    compiled: Any = torch.compile(rnn, fullgraph=True, backend="aot_eager")
    assert_same(results(compiled, tokens), results(rnn, tokens))
    exported = torch.export.export(rnn.eval(), (tokens,))
    torch.testing.assert_close(exported.module()(tokens)[0], rnn(tokens)[0])


def test_gradients_of_single_sequences() -> None:
    """By vmap, in the reference."""
    rnn = gru(vocabulary=VOCABULARY)
    parameters: dict[str, Tensor] = dict(rnn.named_parameters())
    tokens = tokens_for(rnn)

    def loss(values: dict[str, Tensor], x_T: Tensor) -> Tensor:
        output: Tensor = torch.func.functional_call(rnn, values, (x_T,))[0]
        return output.square().sum()

    each = torch.func.vmap(torch.func.grad(loss), (None, 1))(parameters, tokens)
    for k in range(BATCH):
        alone = torch.autograd.grad(loss(parameters, tokens[:, k]), list(parameters.values()))
        assert_same([each[name][k] for name in parameters], list(alone))


def test_copies_and_state_dicts() -> None:
    rnn, other = gru(vocabulary=VOCABULARY), GRU(WIDTH, SIZE, vocabulary=VOCABULARY, dtype=torch.float64)
    tokens = tokens_for(rnn)
    assert torch.equal(copy.deepcopy(rnn)(tokens)[0], rnn(tokens)[0])
    other.load_state_dict(rnn.state_dict())
    assert torch.equal(other(tokens)[0], rnn(tokens)[0])
    assert next(iter(rnn.state_dict())) == "embedding.weight"
    assert gru(one_hot=True).state_dict().keys() == gru().state_dict().keys()


def test_parameters_are_counted_and_shown() -> None:
    rnn = gru(vocabulary=VOCABULARY)
    assert rnn.num_parameters == gru().num_parameters + VOCABULARY * WIDTH
    assert summary(rnn).other == VOCABULARY * WIDTH
    assert "vocabulary=5" in repr(rnn)
    assert "one_hot=True" in repr(gru(one_hot=True))


@pytest.mark.parametrize("options", [{"padding_idx": 1}, {"max_norm": 0.5}, {"scale_grad_by_freq": True}])
def test_an_embedding_keeps_its_own_options(options: dict[str, Any]) -> None:
    rnn = gru(vocabulary=VOCABULARY)
    rnn.embedding = nn.Embedding(VOCABULARY, WIDTH, dtype=torch.float64, **options)
    tokens = tokens_for(rnn)
    assert_same(results(rnn, tokens), results(rnn, rnn.vectors(tokens)))


@pytest.mark.parametrize("kind", ["embedding", "one-hot"])
@pytest.mark.parametrize("padding", [-1, 999])
def test_padding_may_hold_anything(kind: str, padding: int) -> None:
    rnn = gru(**OPTIONS[kind])
    tokens = tokens_for(rnn)
    beyond = torch.arange(TIME).unsqueeze(1) >= torch.tensor(LENGTHS)
    assert_same(
        results(rnn, tokens.masked_fill(beyond, padding), lengths=LENGTHS), results(rnn, tokens, lengths=LENGTHS)
    )


def test_bad_tokens_are_named() -> None:
    rnn = gru(vocabulary=VOCABULARY)
    tokens = tokens_for(rnn)
    for bad in (-1, VOCABULARY):
        wrong = tokens.clone()
        wrong[3, 2] = bad
        with pytest.raises(ValueError, match=rf"from 0 to 4, got {bad} at step 3 of sequence 2"):
            rnn(wrong)
        with pytest.raises(ValueError, match=rf"from 0 to 4, got {bad} in sequence 2"):
            rnn.step(wrong[3])
        with pytest.raises(ValueError, match=rf"from 0 to 4, got {bad}$"):
            rnn.step(wrong[3, 2])
    with pytest.raises(TypeError, match=r"integers, got torch\.float64: convert it with"):
        rnn(torch.full((TIME, BATCH), 3.0, dtype=torch.float64))
    with pytest.raises(ValueError, match=r"tokens with 1 or 2 axes, got integers of shape \(7, 3, 1\)"):
        rnn(tokens.unsqueeze(-1))
    with pytest.raises(TypeError, match="bool"):
        rnn(tokens > 0)


@needs_library
def test_bad_tokens_are_refused_in_compiled_code() -> None:
    rnn = gru(vocabulary=VOCABULARY)
    compiled: Any = torch.compile(rnn, fullgraph=True, backend="aot_eager")
    with pytest.raises((ValueError, RuntimeError, IndexError)):
        compiled(torch.full((TIME, BATCH), VOCABULARY))


@pytest.mark.parametrize("layer", [GRU, LSTM, RNN])
def test_a_layer_without_the_option_tells_of_it(layer: type[RecurrentStack]) -> None:
    make: Any = layer
    rnn = make(WIDTH, SIZE)
    for call in (rnn, rnn.step):
        with pytest.raises(TypeError, match="vocabulary= or one_hot=True"):
            call(torch.zeros(3, 2).long())
    with pytest.raises(RuntimeError, match="vocabulary= or one_hot=True"):
        rnn.vectors(torch.zeros(3).long())


def test_options_are_checked() -> None:
    with pytest.raises(ValueError, match="vocabulary or one_hot, got both"):
        gru(vocabulary=3, one_hot=True)
    with pytest.raises(ValueError, match="vocabulary"):
        gru(vocabulary=0)
    with pytest.raises(ValueError, match="vocabulary=5"):
        gru(vocabulary=5).to_torch()


def test_tokens_reach_a_layer_inside_another() -> None:
    deep = Deep(WIDTH, gru(vocabulary=VOCABULARY), 2, input_depth=0)
    tokens = tokens_for(deep.layer)
    ours, theirs = deep(tokens, lengths=LENGTHS), deep(deep.layer.vectors(tokens), lengths=LENGTHS)
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("steps", [2, 40])
def test_an_embedding_that_does_not_fit_is_refused(backend: str, steps: int) -> None:
    """Whether its vectors are looked up, or its products."""
    tokens = torch.ones(steps, 1, dtype=torch.int64)
    for embedding in (nn.Embedding(5, WIDTH), nn.Embedding(5, WIDTH + 1, dtype=torch.float64)):
        rnn = gru(vocabulary=VOCABULARY, backend=backend)
        rnn.embedding = embedding
        with pytest.raises((ValueError, RuntimeError)):
            rnn(tokens)


def test_an_embedding_of_another_size_brings_its_vocabulary() -> None:
    rnn = gru(vocabulary=VOCABULARY)
    rnn.embedding = nn.Embedding(3 * VOCABULARY, WIDTH, dtype=torch.float64)
    assert_same([rnn(torch.full((40, 1), 14))[0]], [rnn(rnn.vectors(torch.full((40, 1), 14)))[0]])
    rnn.embedding = nn.Embedding(2, WIDTH, dtype=torch.float64)
    with pytest.raises(ValueError, match=r"from 0 to 1, got 4 at step 0 of sequence 0"):
        rnn(torch.full((40, 1), 4))


def test_vectors_may_be_whole_numbers() -> None:
    rnn = gru(vocabulary=VOCABULARY)
    assert rnn.embedding is not None
    with torch.no_grad():
        rnn.embedding.weight.round_().add_(2)
    vectors = rnn.vectors(torch.tensor([0, 1]))
    assert rnn(vectors)[0].shape == (2, SIZE)
    assert rnn.step(vectors[0])[0].shape == (SIZE,)


def test_analysis_sees_vectors() -> None:
    rnn = gru(vocabulary=VOCABULARY, batch_first=True)
    tokens = tokens_for(rnn)
    (given,) = layer_inputs(rnn, tokens, lengths=LENGTHS).values()
    assert given.x.shape == (BATCH, TIME, WIDTH)


@pytest.mark.parametrize("structure", [Dense(), LowRank(2) + Diagonal()], ids=repr)
def test_symbol_model_is_the_net_on_one_hot_vectors(structure: Any) -> None:
    """With the same parameters under the same names as before there were tokens."""
    text = "dense" if structure == Dense() else "low-rank+diagonal"
    config = ModelConfig("gru", SIZE, text, rank=None if structure == Dense() else 2)
    torch.manual_seed(0)
    symbols = SymbolModel(WIDTH, WIDTH, config, every_step=True).double()
    vectors = SequenceModel(WIDTH, WIDTH, config, every_step=True).double()
    vectors.load_state_dict(symbols.state_dict())
    tokens = torch.randint(WIDTH, (TIME, BATCH))
    ours, theirs = symbols(tokens), vectors(symbols.one_hot(tokens))
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)
    for one, other in zip(
        torch.autograd.grad(ours[0].square().sum(), list(symbols.parameters())),
        torch.autograd.grad(theirs[0].square().sum(), list(vectors.parameters())),
        strict=True,
    ):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("options", [{"one_hot": True}, {"vocabulary": VOCABULARY}, {"vocabulary": 50}], ids=str)
@pytest.mark.parametrize("mask_per_gate", [False, True])
def test_dropout_of_the_state_alone(options: dict[str, Any], mask_per_gate: bool) -> None:
    rnn = gru(recurrent_dropout=(0.0, 0.5), mask_per_gate=mask_per_gate, **options)
    tokens = tokens_for(rnn)
    for a, b in zip(results(rnn, tokens), results(rnn, rnn.vectors(tokens)), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-12)


def test_another_module_in_the_place_of_the_embedding_knows_its_tokens() -> None:
    rnn = gru(vocabulary=50)
    assert rnn.embedding is not None
    tokens = torch.full((TIME, BATCH), 49)
    expected = rnn(tokens)[0]
    rnn.embedding = nn.Sequential(rnn.embedding, nn.Identity())  # type: ignore[assignment]
    torch.testing.assert_close(rnn(tokens)[0], expected, rtol=0, atol=0)
    y, _ = rnn.step(tokens[0])
    torch.testing.assert_close(y, expected[0])
    with pytest.raises(IndexError):
        rnn(tokens + 1)
