"""Exports through torch.onnx and torch.export, which take seconds: few models with much in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime  # type: ignore[import-untyped]
import pytest
import torch
from torch import Tensor, nn

import slimrnn
from registry import randomise_
from slimrnn import GRU, LSTM, RNN, Dense, Diagonal, Kronecker, LowRank
from slimrnn.errors import ExportError
from slimrnn.exporting import Proof, onnx_table
from slimrnn.exporting.onnx_file import open_session
from slimrnn.sequence import Encoder, Symbols

pytestmark = pytest.mark.filterwarnings("ignore")  # torch's own


def operators(path: Path) -> set[str]:
    return {node.op_type for node in onnx.load(path).graph.node}


class Tagger(nn.Module):
    """A user's model around our layer."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, 6)
        self.rnn: Any = randomise_(LSTM(6, 8, batch_first=True, bidirectional=True, structure=LowRank(2) + Diagonal()))
        self.out = nn.Linear(16, 4)

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        found: Tensor = self.out(self.rnn(torch.relu(self.embedding(tokens)), lengths=lengths)[0]).log_softmax(-1)
        return found


def test_a_model_with_a_ragged_stack_in_two_directions(tmp_path: Path) -> None:
    torch.manual_seed(1)
    example = {"tokens": torch.randint(11, (3, 7)), "lengths": torch.tensor([7, 2, 5])}
    proof = slimrnn.export(Tagger(), example, tmp_path / "net.onnx", quiet=True)
    assert proof.relative <= 1e-5
    assert Proof.read(tmp_path / "net.onnx.proof.json") == proof
    graph = onnx.load(tmp_path / "net.onnx").graph
    shapes = [[d.dim_param or d.dim_value for d in i.type.tensor_type.shape.dim] for i in (*graph.input, *graph.output)]
    assert shapes == [["batch", "length"], ["batch"], ["batch", "length", 4]]
    assert [one.name for one in (*graph.input, *graph.output)] == ["tokens", "lengths", "output"]
    assert "Scan" in operators(tmp_path / "net.onnx")
    assert str(Path(slimrnn.__file__).parent).encode() not in (tmp_path / "net.onnx").read_bytes()


class WithStart(nn.Module):
    """Asks for the initial state itself, and gives logits that are minus infinity beyond the end."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn: Any = randomise_(GRU(5, 6, num_layers=2, structure=(LowRank(2), Dense())))

    def forward(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        x, n = batch["x"], batch["n"]
        output, last = self.rnn(x, 0.5 + self.rnn.initial_state(x.shape[1]), lengths=n)
        return {
            "y": output.masked_fill(torch.arange(x.shape[0]).view(-1, 1, 1) >= n.view(-1, 1), -torch.inf),
            "last": last,
        }


def test_a_model_of_dicts_that_makes_its_own_state(tmp_path: Path) -> None:
    torch.manual_seed(1)
    model, example = WithStart(), {"batch": {"x": torch.randn(7, 3, 5), "n": torch.tensor([7, 2, 5])}}
    slimrnn.export(model, example, tmp_path / "net.onnx", quiet=True)
    x, n = torch.randn(11, 2, 5), torch.tensor([4, 11])
    with open_session(tmp_path / "net.onnx") as run, torch.no_grad():
        for found, wanted in zip(run([x, n]), model({"x": x, "n": n}).values(), strict=True):
            torch.testing.assert_close(found, wanted, rtol=0, atol=1e-6)


def test_complex_states_go_in_and_out_as_pairs(tmp_path: Path) -> None:
    torch.manual_seed(1)
    model = randomise_(RNN(5, 8, num_layers=2, nonlinearity="modrelu", structure=Kronecker([2, 4])))
    state = torch.randn(2, 3, 8, dtype=torch.complex64)
    proof = slimrnn.export(model, (torch.randn(7, 3, 5), state), tmp_path / "net.onnx", quiet=True)
    assert proof.cases[-1].way == "in steps"
    with open_session(tmp_path / "net.onnx") as run:
        assert run([torch.randn(4, 2, 5), torch.zeros(2, 2, 8, 2)])[1].shape == (2, 2, 8, 2)


def test_a_step_of_tokens_for_streaming(tmp_path: Path) -> None:
    torch.manual_seed(1)
    model = randomise_(GRU(5, 8, num_layers=2, vocabulary=11, residual=True, structure=LowRank(2), reset="before"))
    proof = slimrnn.export(model, torch.randint(11, (3,)), tmp_path / "net.onnx", step=True, quiet=True)
    assert proof.cases[-1].way == "in steps"
    assert not {"Scan", "Loop", "GRU"} & operators(tmp_path / "net.onnx")


def test_torch_onnx_with_our_table(tmp_path: Path) -> None:
    torch.manual_seed(1)
    model = randomise_(GRU(5, 8, num_layers=2)).eval()
    length, batch = torch.export.Dim("length"), torch.export.Dim("batch")
    made: Any = torch.onnx.export(
        model,
        (torch.randn(7, 3, 5),),
        dynamo=True,
        dynamic_shapes=({0: length, 1: batch},),
        custom_translation_table=onnx_table(),
        verbose=False,
    )
    made.save(str(tmp_path / "net.onnx"))
    session = onnxruntime.InferenceSession(tmp_path / "net.onnx")
    x = torch.randn(11, 2, 5)
    output, last = session.run(None, {"input": x.numpy()})
    with torch.no_grad():
        for found, wanted in zip((output, last), model(x), strict=True):
            np.testing.assert_allclose(found, wanted.numpy(), rtol=0, atol=1e-6)
    assert "GRU" in operators(tmp_path / "net.onnx")


def test_torch_onnx_of_a_loop_in_plain_torch_does_not_fix_the_length() -> None:
    """With Dim.AUTO torch would fix it without a word."""
    free = torch.export.Dim.AUTO
    with pytest.raises(Exception, match="got one whose loop over time in plain torch would fix it"):
        torch.onnx.export(
            GRU(5, 8, backend="reference").eval(),
            (torch.randn(7, 3, 5),),
            dynamo=True,
            dynamic_shapes=({0: free, 1: free},),
            custom_translation_table=onnx_table(),
            verbose=False,
        )


def test_torch_onnx_without_our_table_says_what_to_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slimrnn.ops.onnx_exports.Table.was_made", False)
    with pytest.raises(Exception, match=r"expected custom_translation_table=slimrnn.exporting.onnx_table\(\)"):
        torch.onnx.export(GRU(5, 8).eval(), (torch.randn(7, 3, 5),), dynamo=True, verbose=False)


def test_torch_programs_run_in_a_fresh_process(tmp_path: Path) -> None:
    torch.manual_seed(1)
    model = randomise_(GRU(5, 8, delays=(2,)))
    example = {"input": torch.randn(7, 3, 5), "lengths": torch.tensor([7, 2, 5])}
    proof = slimrnn.export(model, example, tmp_path / "net.pt2", quiet=True)
    assert proof.relative <= 1e-6
    assert proof.runtime == f"torch {torch.__version__}"
    program: Any = torch.export.load(tmp_path / "net.pt2").module()
    x, lengths = torch.randn(4, 2, 5), torch.tensor([1, 4])
    with torch.no_grad():
        torch.testing.assert_close(program(input=x, lengths=lengths), model.eval()(x, lengths=lengths))


def test_encoders_take_any_length(tmp_path: Path) -> None:
    encoder = Encoder(lambda width: GRU(width, 8, bidirectional=True), Symbols(5))
    slimrnn.export(encoder, (torch.randint(5, (7, 3)), torch.tensor([7, 2, 5])), tmp_path / "net.pt2", quiet=True)
    program: Any = torch.export.load(tmp_path / "net.pt2").module()
    source, lengths = torch.randint(5, (4, 2)), torch.tensor([1, 4])
    with torch.no_grad():
        torch.testing.assert_close(program(source=source, lengths=lengths), encoder(source, lengths))


def test_weights_too_large_for_a_file_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("slimrnn.exporting.onnx_file.MOST_BYTES", 100)
    with pytest.raises(ExportError, match=r"weights of at most 100 bytes.*: export it as a torch program, net.pt2"):
        slimrnn.export(GRU(5, 8), torch.randn(7, 3, 5), tmp_path / "net.onnx")
    assert list(tmp_path.iterdir()) == []


def test_loops_in_plain_torch_are_refused(tmp_path: Path) -> None:
    for model in (GRU(5, 8, backend="reference"), GRU(5, 8, skip=3)):
        with pytest.raises(ExportError, match="got one whose loop over time in plain torch would fix it"):
            slimrnn.export(model, torch.randn(7, 3, 5), tmp_path / "net.pt2")
    assert list(tmp_path.iterdir()) == []


class Beside(nn.Module):
    """A layer of torch.nn before ours."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.LSTM(5, 6), GRU(6, 8)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.second(self.first(x)[0])[0]
        return found


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Beside(), r"takes any length, got .*: make first a slimrnn.LSTM, as slimrnn.LSTM.from_torch does; or export"),
        (GRU(5, 8, backend="torch"), "takes any length, got .*: set its backend to 'auto'; or export"),
    ],
)
def test_what_fixes_the_length_is_named(model: nn.Module, message: str, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=message):
        slimrnn.export(model, torch.randn(7, 3, 5), tmp_path / "net.pt2")
    assert list(tmp_path.iterdir()) == []


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_bytes(b"no model")
    with (
        pytest.raises(ExportError, match=r"expected an ONNX file in .*net.onnx, which onnxruntime refuses"),
        open_session(tmp_path / "net.onnx"),
    ):
        pass


@pytest.mark.parametrize("names", [["y"], ["y", "y"], ["input", "h"]])
def test_names_of_outputs_that_are_too_few_or_taken_are_refused(names: list[str], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected 2 output_names, which differ and are no names of inputs"):
        slimrnn.export(GRU(3, 4), torch.randn(7, 2, 3), tmp_path / "net.onnx", output_names=names, quiet=True)
