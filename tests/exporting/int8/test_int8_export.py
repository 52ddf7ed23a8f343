"""`slimrnn.export(..., to="int8")`: a saved model, proven in a process that has nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

import slimrnn
from slimrnn import GRU, ReadOut
from slimrnn.errors import ExportError
from slimrnn.exporting import Proof
from slimrnn.exporting.export import _put
from slimrnn.layers import SequenceNet


def net() -> SequenceNet:
    rnn = GRU(6, 20)
    return SequenceNet(rnn, ReadOut(rnn, 5), nn.Identity())


def test_the_artefact_has_the_bits_of_the_quantized_model(tmp_path: Path) -> None:
    model, x = net(), torch.randn(9, 4, 6)
    proof = slimrnn.export(model, (x, model.initial_state(4)), tmp_path / "net", to="int8", scores={"loss": 1.5})
    assert proof.relative == 0
    assert proof.cases[-1].way == "in steps"
    assert proof.measured["loss"] == 1.5
    assert 0 < proof.measured["relative rms difference to float32"] < 0.05
    assert "bytes of weights" in str(proof)
    assert Proof.read(tmp_path / "net.proof.json") == proof
    assert torch.equal(slimrnn.load(tmp_path / "net")(x)[0], slimrnn.quantize(model)(x)[0])


def test_steps_of_it_and_in_place_of_an_older_one(tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    with pytest.raises(ExportError, match="where nothing is yet"):
        slimrnn.export(net(), torch.randn(4, 6), tmp_path / "net", to="int8", step=True, quiet=True)
    (tmp_path / "net").rmdir()
    slimrnn.save(net(), tmp_path / "net")
    proof = slimrnn.export(net(), torch.randn(4, 6), tmp_path / "net", to="int8", step=True, quiet=True)
    assert proof.relative == 0
    assert sorted(file.suffix for file in (tmp_path / "net").iterdir()) == [".json", ".json", ".safetensors"]


def test_a_limit_and_a_model_that_cannot_be_saved(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"at most 0\.00%"):
        slimrnn.export(net(), torch.randn(9, 4, 6), tmp_path / "net", to="int8", limit=1e-7)

    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = GRU(6, 20)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            output: torch.Tensor = self.rnn(x)[0]
            return output

    with pytest.raises(ExportError, match="layers of slimrnn"):
        slimrnn.export(Own(), torch.randn(9, 4, 6), tmp_path / "net", to="int8")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("to", ["onnx", "torch", "int8"])
def test_other_formats_want_the_float_model(tmp_path: Path, to: str) -> None:
    with pytest.raises(ExportError, match="expected a float model"):
        slimrnn.export(slimrnn.quantize(GRU(3, 4)), torch.randn(5, 2, 3), tmp_path / "net", to=to, quiet=True)
    assert not any(tmp_path.iterdir())


def test_only_a_saved_model_is_replaced(tmp_path: Path) -> None:
    """The last step of an export alone: what was written is put where it belongs."""
    draft, path, room = tmp_path / "draft", tmp_path / "net", tmp_path / "room"
    room.mkdir()
    for directory in (draft, path):
        slimrnn.save(net(), directory)
    config = (path / "config.json").read_text()
    for name, content in (("config.json", '{"name": "an app"}'), ("thesis.tex", "years of work")):
        (path / name).write_text(content)
        with pytest.raises(ExportError, match="or a saved model and nothing else, got"):
            _put(draft, path, room)
        assert (path / name).read_text() == content
        (path / "config.json").write_text(config)
    (path / "thesis.tex").unlink()
    _put(draft, path, room)
    assert (path / "config.json").read_text() != config
