"""What every export has: a proof, nothing left behind where that fails, and refusals that say what to do."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fake_exporter
import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import prune
from torch.nn.utils.rnn import pack_sequence

import slimrnn
from slimrnn import GRU, LSTM, RNN
from slimrnn.errors import ExportError
from slimrnn.exporting import EXPORTERS, Proof, freeze
from slimrnn.exporting.proving import STEPS
from slimrnn.sequence import Decoder, Symbols

X = torch.randn(7, 3, 5)


@pytest.fixture(autouse=True)
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(EXPORTERS, "fake", "fake_exporter")
    fake_exporter.error.clear()
    yield
    fake_exporter.requests.clear()


def exported(path: Path, model: nn.Module | None = None, example: Any = X, **options: Any) -> Proof:
    return slimrnn.export(model or GRU(5, 8), example, path / "net", to="fake", quiet=True, **options)


def test_proof_is_written_beside_the_artefact(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    proof = slimrnn.export(GRU(5, 8), (X, torch.randn(1, 3, 8)), tmp_path / "deep" / "net", to="fake")
    assert sorted(path.name for path in (tmp_path / "deep").iterdir()) == ["net.fake", "net.fake.proof.json"]
    assert Proof.read(tmp_path / "deep" / "net.fake.proof.json") == proof
    assert proof.largest == 0
    assert proof.bytes == (tmp_path / "deep" / "net.fake").stat().st_size
    assert capsys.readouterr().out == f"{proof}\n"
    assert "largest difference 0.0e+00" in str(proof)


def test_proof_runs_other_lengths_and_batches_whole_and_in_steps(tmp_path: Path) -> None:
    proof = exported(tmp_path, GRU(5, 8), (X, torch.randn(1, 3, 8)))
    assert [(case.inputs, case.way, case.given) for case in proof.cases] == [
        ("input 7x3x5, hx 1x3x8", "whole", True),
        ("input 7x3x5, hx 1x3x8", "whole", False),
        ("input 1x1x5, hx 1x1x8", "whole", False),
        ("input 15x1x5, hx 1x1x8", "whole", False),
        ("input 3x6x5, hx 1x6x8", "whole", False),
        ("6 x (input 1x3x5, hx 1x3x8)", "in steps", False),
    ]


def test_proof_tells_steps_from_units(tmp_path: Path) -> None:
    """A sequence of its own has as many steps as this layer has units."""
    proof = exported(tmp_path, GRU(5, STEPS, num_layers=2), (X, torch.randn(2, 3, STEPS)))
    assert proof.cases[-1].inputs == f"{STEPS} x (input 1x3x5, hx 2x3x{STEPS})"


def test_proof_runs_what_is_given(tmp_path: Path) -> None:
    lengths = torch.tensor([2, 9])
    given = [{"input": torch.randn(9, 2, 5), "lengths": lengths}]
    proof = exported(tmp_path, LSTM(5, 8), {"input": X, "lengths": torch.tensor([7, 1, 3])}, given=given)
    assert [case.inputs for case in proof.cases if case.given] == ["input 7x3x5, lengths 3", "input 9x2x5, lengths 2"]
    with pytest.raises(ValueError, match="expected the arguments input, lengths as in the example, got input"):
        exported(tmp_path, LSTM(5, 8), {"input": X, "lengths": torch.tensor([7, 1, 3])}, given=[X])


def test_random_lengths_lie_within_the_sequences(tmp_path: Path) -> None:
    seen: list[int] = []
    model = GRU(5, 8)
    model.register_forward_pre_hook(
        lambda module, args, kwargs: seen.append(int(kwargs["lengths"].max()) - kwargs["input"].shape[0]),
        with_kwargs=True,
    )
    exported(tmp_path, model, {"input": X, "lengths": torch.tensor([7, 1, 3])})
    assert max(seen) <= 0


class OfBatches(nn.Module):
    """Takes a dict, whose lengths have a name of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = GRU(5, 8)

    def forward(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        return {"last": self.rnn(batch["x"], lengths=batch["n"])[1]}


def test_lengths_of_any_name_lie_within_the_sequences(tmp_path: Path) -> None:
    proof = exported(tmp_path, OfBatches(), {"batch": {"x": X, "n": torch.tensor([7, 1, 3])}})
    assert len(proof.cases) == 5


def test_steps_carry_their_state(tmp_path: Path) -> None:
    proof = exported(tmp_path, LSTM(5, 8), torch.randn(3, 5), step=True)
    assert proof.step
    assert proof.cases[0].inputs == "x_t 3x5, state_0 1x3x8, state_1 1x3x8"
    assert proof.cases[-1].way == "in steps"


def test_fixed_sizes_stay(tmp_path: Path) -> None:
    proof = exported(tmp_path, GRU(5, 8), torch.randn(1, 1, 5), fixed=True)
    assert {case.inputs for case in proof.cases} == {"input 1x1x5"}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            lambda y: y + 1e-3 * y.abs().max(),
            r"at most 1e-05 of the largest output, got 1.0e-03 for input",
        ),
        (lambda y: torch.full_like(y, torch.nan), "got inf for input"),
        (lambda y: torch.full_like(y, torch.inf), "got inf for input"),
        (lambda y: y[:-1], r"expected an output of shape \(7, 3, 8\), got \(6, 3, 8\)"),
    ],
)
def test_a_difference_is_an_error_and_leaves_nothing(
    wrong: Callable[[Tensor], Tensor], message: str, tmp_path: Path
) -> None:
    fake_exporter.error.append(wrong)
    with pytest.raises(ExportError, match=message):
        exported(tmp_path)
    assert list(tmp_path.iterdir()) == []


class Masked(nn.Module):
    """Logits that are minus infinity beyond the end of a sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = GRU(5, 8)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        masked: Tensor = self.rnn(x, lengths=lengths)[0]
        return masked.masked_fill(torch.arange(len(x)).view(-1, 1, 1) >= lengths.view(-1, 1), -torch.inf)


def test_numbers_beside_infinite_ones_are_compared(tmp_path: Path) -> None:
    example = {"x": X, "lengths": torch.tensor([7, 2, 3])}
    assert exported(tmp_path, Masked(), example).largest == 0
    for wrong in (lambda y: y + 1e-3, lambda y: y.nan_to_num(), lambda y: y.nan_to_num(neginf=torch.inf)):
        fake_exporter.error[:] = [wrong]
        with pytest.raises(ExportError, match="at most 1e-05 of the largest output"):
            exported(tmp_path, Masked(), example)


@pytest.mark.parametrize("tolerance", [-1.0, float("inf"), float("nan")])
def test_a_tolerance_is_a_number(tolerance: float, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected tolerance to be a number of at least 0, got"):
        slimrnn.export(GRU(5, 8), X, tmp_path / "net.onnx", tolerance=tolerance)


def test_exports_of_one_name_have_a_proof_each(tmp_path: Path) -> None:
    exported(tmp_path)
    slimrnn.export(GRU(5, 8), X, tmp_path / "net.json", to="rtneural", quiet=True)
    for name in ("net.fake", "net.json"):
        Proof.read(tmp_path / f"{name}.proof.json").check(tmp_path / name)


def test_an_older_export_stays_where_a_new_one_fails(tmp_path: Path) -> None:
    before = exported(tmp_path)
    fake_exporter.error.append(lambda y: y + 1)
    with pytest.raises(ExportError):
        exported(tmp_path)
    assert Proof.read(tmp_path / "net.fake.proof.json") == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["net.fake", "net.fake.proof.json"]


def test_the_model_is_exported_as_in_eval_and_left_alone(tmp_path: Path) -> None:
    model = GRU(5, 8, num_layers=2, dropout=0.5, recurrent_dropout=0.5)
    proof = exported(tmp_path, model)
    assert model.training
    assert not fake_exporter.requests[-1].model.training
    assert proof.largest == 0


def test_double_precision_is_held_to_more(tmp_path: Path) -> None:
    fake_exporter.error.append(lambda y: y + 1e-8)
    with pytest.raises(ExportError, match="at most 1e-10"):
        exported(tmp_path, GRU(5, 8, dtype=torch.float64), X.double())
    assert exported(tmp_path, GRU(5, 8, dtype=torch.float64), X.double(), tolerance=1e-6).tolerance == 1e-6


@pytest.mark.parametrize(
    ("model", "example", "options", "error", "message"),
    [
        (GRU(5, 8), torch.randn(7, 7, 5), {}, ValueError, "whose length and batch size differ, got 7 for both"),
        (GRU(5, 8), torch.randn(7, 5, 5), {}, ValueError, r"got input of shape \(7, 5, 5\): choose another"),
        (GRU(5, 8), torch.randn(7, 1, 5), {}, ValueError, "a batch of at least 2, got 1"),
        (GRU(5, 8), (X, None, X), {}, TypeError, "at most 2 arguments of forward, got 3: others as a dict"),
        (GRU(5, 8), {"x": X}, {}, TypeError, r"arguments of forward \(input, hx, lengths, .*\), got 'x'"),
        (GRU(5, 8), pack_sequence([X[:, 0]]), {}, ExportError, "padded tensors and lengths=, got a PackedSequence"),
        (GRU(5, 8), X, {"merge": True}, TypeError, "expected options colour of this exporter, got 'merge'"),
        (
            GRU(5, 8).half(),
            X.half(),
            {},
            ExportError,
            r"float32 or float64, got .* of torch.float16: export m",
        ),
        (nn.Linear(5, 8), X, {}, ExportError, "a model whose forward calls a recurrent layer of slimrnn, got none"),
        (nn.Linear(5, 8), X, {"step": True}, ExportError, r"a model with step\(x_t, state\).*, got a Linear without"),
        ("a model", X, {}, TypeError, "expected a torch module, got str"),
        (
            Decoder(lambda width: GRU(width, 8), Symbols(5)),
            X,
            {},
            ExportError,
            r"whose forward names its arguments, got Decoder.forward\(\*args\): .* export its core in steps",
        ),
        (GRU(5, 8, device="meta"), X, {}, ExportError, "a model on the CPU, got .* on meta: load its weights first"),
    ],
)
def test_what_cannot_be_exported_is_refused(
    model: Any, example: Any, options: dict[str, Any], error: type[Exception], message: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message):
        exported(tmp_path, model, example, **options)
    assert list(tmp_path.iterdir()) == []


def test_pruned_weights_are_to_be_made_permanent(tmp_path: Path) -> None:
    model = GRU(5, 8)
    prune.l1_unstructured(model.layer(0).recurrent, "weight", amount=0.5)
    with pytest.raises(ExportError, match=r"that copy.deepcopy copies.*torch.nn.utils.prune.remove"):
        exported(tmp_path, model)
    prune.remove(model.layer(0).recurrent, "weight")
    exported(tmp_path, model)


def test_the_way_out_follows_from_the_suffix(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"expected to= one of onnx, torch, .*, or a path ending in .onnx"):
        slimrnn.export(GRU(5, 8), X, tmp_path / "net.tflite")
    with pytest.raises(ValueError, match="expected to to be one of 'onnx', 'torch'"):
        slimrnn.export(GRU(5, 8), X, tmp_path / "net", to="tflite")


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "onnxscript" else found(name))
    with pytest.raises(ExportError, match=r'expected the package onnxscript for to="onnx", got none: pip inst'):
        slimrnn.export(GRU(5, 8), X, tmp_path / "net.onnx")
    with pytest.raises(ExportError, match="expected the package onnxscript"):
        slimrnn.exporting.onnx_table()


class Untraceable(slimrnn.Cell):
    """Its step looks at numbers."""

    gates = ("h",)

    def step(self, wx: Tensor, matvec: Any, state: Any) -> Any:
        z = wx[..., 0, :] + matvec(state[0])[..., 0, :]
        return (torch.cumsum(torch.tanh(z), -1),)


def test_cells_that_cannot_be_traced_are_frozen_for_steps_only() -> None:
    model = slimrnn.Recurrent(Untraceable, 5, 8)
    with pytest.raises(ExportError, match=r"whose step can be traced, got Untraceable, which uses cumsum.*step=True"):
        freeze(model)
    freeze(model, step=True)


def test_complex_states_with_delays_are_refused() -> None:
    with pytest.raises(ExportError, match="a complex state without delays and skip"):
        freeze(RNN(5, 8, nonlinearity="modrelu", delays=(2,)))


def test_masks_of_other_sizes_keep_their_form(tmp_path: Path) -> None:
    class Masked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = GRU(5, 8)

        def forward(self, x: Tensor, mask: Tensor) -> Tensor:
            return self.rnn(x, lengths=mask.sum(0))[0]  # type: ignore[no-any-return]

    mask = torch.arange(7)[:, None] < torch.tensor([7, 3, 1])
    assert len(exported(tmp_path, Masked(), (X, mask)).cases) == 5


def test_other_integers_are_those_of_the_same_feature(tmp_path: Path) -> None:
    class Features(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.item, self.gap, self.rnn = nn.Embedding(90, 3), nn.Embedding(2, 2), GRU(5, 4)

        def forward(self, x: Tensor) -> Tensor:
            return self.rnn(torch.cat([self.item(x[..., 0]), self.gap(x[..., 1])], -1))[0]  # type: ignore[no-any-return]

    x = torch.stack([torch.randint(50, 90, (7, 3)), torch.randint(2, (7, 3))], -1)
    assert exported(tmp_path, Features(), x).largest == 0
