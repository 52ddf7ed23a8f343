"""`slimrnn.quantize`: what becomes int8, what is refused, files, copies and reports."""

from __future__ import annotations

import copy
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from int8_cases import INPUT, REFUSED_CELLS, assert_same_bits, emulated, in_int8, made
from torch import nn

import slimrnn
from registry import STRUCTURES, needs_library
from slimrnn import GRU, LSTM, RNN, Diagonal, Kronecker, LowRank, ReadOut
from slimrnn.errors import ExportError, SavedModelError
from slimrnn.exporting.int8.embedding import Int8Embedding
from slimrnn.exporting.int8.layer import Int8Layer
from slimrnn.exporting.int8.linear import Int8Linear
from slimrnn.layers import SequenceNet


def net() -> SequenceNet:
    rnn = LSTM(6, 16, 2, vocabulary=9, peephole=True, learn_initial_state=True, structure=LowRank(3) + Diagonal())
    return SequenceNet(rnn, ReadOut(rnn, 8, at="last"), nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 3)))


TOKENS = torch.randint(0, 9, (5, 4), generator=torch.Generator().manual_seed(1))


def test_layers_read_outs_and_embeddings_become_int8_and_the_rest_is_listed() -> None:
    q: Any = in_int8(net())
    kinds = [type(q.rnn.layer(0)), type(q.rnn.embedding), type(q.output[1])]
    assert kinds == [Int8Layer, Int8Embedding, Int8Linear]
    assert [part.name for part in q.int8_report.kept] == ["output.0"]
    assert {part.name for part in q.int8_report.parts} == {
        *("rnn.embedding", "rnn.layers.0", "rnn.layers.1", "readout", "output.1")
    }
    assert "runs_as='int8" in repr(q.rnn)
    assert "Int8Linear" in repr(q)
    assert not q.training


def test_the_outputs_are_near_and_the_difference_is_reported() -> None:
    model = net()
    q: Any = in_int8(model, data=[TOKENS, (TOKENS, None), {"inputs": TOKENS}])
    assert all(0 < one.relative < 0.05 for one in q.int8_report.differences)
    assert "relative rms" in str(q.int8_report)
    with pytest.raises(ExportError, match=r"at most 0\.00%"):
        in_int8(model, data=[TOKENS], tolerance=1e-6)
    with pytest.raises(ValueError, match="expected data"):
        in_int8(model, tolerance=0.1)


def test_weights_are_a_quarter_of_the_size(tmp_path: Path) -> None:
    model = GRU(64, 256)
    q = in_int8(model)
    for name, one in (("float", model), ("int8", q)):
        slimrnn.save(one, tmp_path / name)
    sizes = [sum(f.stat().st_size for f in (tmp_path / name).glob("*.safetensors")) for name in ("float", "int8")]
    assert sizes[1] < 0.27 * sizes[0]


def test_files_copies_and_pickles_give_the_same_bits(tmp_path: Path) -> None:
    q = in_int8(net())
    slimrnn.save(q, tmp_path)
    fresh = in_int8(net())
    fresh.load_state_dict(q.state_dict())
    found = q(TOKENS)
    for other in (slimrnn.load(tmp_path), copy.deepcopy(q), pickle.loads(pickle.dumps(q)), fresh):
        assert_same_bits(other(TOKENS), found)
        assert_same_bits(emulated(other)(TOKENS), found)


@pytest.mark.parametrize("options", [{"leak": 0.3, "transition_depth": 2}, {"delays": (1, 2)}, {"zoneout": 0.2}])
def test_options_of_layers_survive_a_file(tmp_path: Path, options: dict[str, Any]) -> None:
    q, x = in_int8(GRU(INPUT, 12, **options)), torch.randn(5, 3, INPUT)
    slimrnn.save(q, tmp_path)
    assert_same_bits(slimrnn.load(tmp_path)(x), q(x))
    assert_same_bits(emulated(q)(x), q(x))


def test_some_layers_may_stay_in_float32(tmp_path: Path) -> None:
    model = nn.ModuleList([GRU(INPUT, 8, 2, structure=Kronecker([2, 4])), nn.Linear(8, 8)])
    with pytest.raises(ExportError, match=r"Kronecker.* in 0.layers.0: skip=\('0.layers.0',\) keeps it"):
        in_int8(model)
    q: Any = in_int8(model, skip=["0.layers.0", "0.layers.1"])
    assert type(q[1]) is Int8Linear
    assert not any(isinstance(m, Int8Layer) for m in q.modules())
    partly: Any = in_int8(GRU(INPUT, 8, 2), skip=["layers.0"])
    slimrnn.save(partly, tmp_path)
    loaded: Any = slimrnn.load(tmp_path)
    assert [type(core) for core in loaded.cores] == [type(core) for core in partly.cores]
    with pytest.raises(ValueError, match="expected names of modules in skip, got 'none'"):
        in_int8(model, skip=["none"])
    with pytest.raises(TypeError, match="names in a tuple"):
        in_int8(model, skip="0")


@pytest.mark.parametrize("cell", REFUSED_CELLS)
def test_cells_without_exact_bits_are_refused(cell: str) -> None:
    with pytest.raises(ExportError, match=r"layers\.0"):
        in_int8(made(cell, "dense"))


@pytest.mark.parametrize("structure", ["kronecker-2", "sparse", "circulant", "monarch"])
def test_structures_without_an_int8_form_are_refused(structure: str) -> None:
    with pytest.raises(ExportError, match=r"layers.0: skip="):
        in_int8(made("tanh", structure))
    assert structure in STRUCTURES


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (nn.GRU(3, 4), "from_torch"),
        (nn.LayerNorm(4), "recurrent or linear"),
        (GRU(3, 4, dtype=torch.float64), r"model.float\(\)"),
        (GRU(3, 6, skip=2), "without skip"),
        (slimrnn.OutputRecurrent(3, 4, 2), "feedback"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(model: nn.Module, text: str) -> None:
    with pytest.raises(ExportError, match=text):
        in_int8(model)


def test_weights_that_are_no_numbers_are_refused() -> None:
    for model in (RNN(3, 4), nn.Linear(3, 4)):
        with torch.no_grad():
            next(model.parameters()).view(-1)[1] = torch.nan
        with pytest.raises(ExportError, match="infinity or NaN"):
            in_int8(model)


def test_tied_weights_stay_one_tensor_in_float32() -> None:
    model = nn.ModuleDict({"embedding": nn.Embedding(9, 4), "rnn": GRU(4, 4), "out": nn.Linear(4, 9, bias=False)})
    model["out"].weight = model["embedding"].weight
    q: Any = in_int8(model)
    assert q["out"].weight is q["embedding"].weight
    assert {part.name for part in q.int8_report.kept} == {"embedding", "out"}


def test_it_cannot_be_trained() -> None:
    q, x = in_int8(GRU(3, 4)), torch.randn(5, 2, 3)
    with pytest.raises(RuntimeError, match="no gradients"):
        q(x.clone().requires_grad_())
    with pytest.raises(RuntimeError, match="no gradients"):
        in_int8(nn.Linear(3, 4))(x.clone().requires_grad_())
    with pytest.raises(TypeError, match="float32 alone"):
        copy.deepcopy(q).double()(x.double())
    with pytest.raises(RuntimeError, match="a float layer"):
        q.recurrent_matrices()
    q.train()
    with pytest.raises(RuntimeError, match=r"expected eval\(\)"):
        q(x)


def test_numbers_that_no_rounding_makes_are_refused() -> None:
    q = in_int8(GRU(3, 4, structure=slimrnn.Permutation(seed=1) + LowRank(2)))
    for name, value in (("layers.0.u", -128), ("layers.0.weight_0", 7), ("layers.0.u_scale", torch.nan)):
        state = {key: tensor.clone() for key, tensor in q.state_dict().items()}
        state[name].view(-1)[0] = value
        with pytest.raises(RuntimeError, match=name):
            q.load_state_dict(state)


def test_a_file_that_names_layers_which_are_not_there_is_refused(tmp_path: Path) -> None:
    from slimrnn.exporting.model_files import checksum

    slimrnn.save(in_int8(GRU(3, 4)), tmp_path)
    for wrong in ([5], [-1], "all", [True]):
        config = json.loads((tmp_path / "config.json").read_text())
        config["model"]["int8"] = wrong
        del config["checksum"]
        (tmp_path / "config.json").write_text(json.dumps({**config, "checksum": checksum(config)}))
        with pytest.raises(SavedModelError):
            slimrnn.load(tmp_path)


OTHER_MACHINE = """
import sys, torch, slimrnn
q = slimrnn.load(sys.argv[1])
with torch.no_grad():
    output, _ = q(torch.linspace(-3, 3, 5 * 3 * 6).view(5, 3, 6))
print(output.view(torch.int32).tolist())
"""


@needs_library
def test_processors_without_vnni_give_the_same_bits(tmp_path: Path) -> None:
    q = in_int8(GRU(6, 37))
    slimrnn.save(q, tmp_path)
    command, environment = [sys.executable, "-c", OTHER_MACHINE, str(tmp_path)], {**os.environ, "SLIMRNN_NO_VNNI": "1"}
    told = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    output, _ = q(torch.linspace(-3, 3, 5 * 3 * 6).view(5, 3, 6))
    assert json.loads(told) == output.view(torch.int32).tolist()


def test_a_model_that_is_one_linear_layer_is_counted_once() -> None:
    report: Any = slimrnn.quantize(nn.Linear(4, 4)).int8_report
    assert (report.before, report.after, report.kept) == (80, 16 + 2 * 16, ())
