"""Damaged and foreign files are refused in one line, and a model is saved whole or not at all."""

from __future__ import annotations

import json
import pickle
import re
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

import slimrnn
from slimrnn import GRU, RNN, Diagonal, Kronecker, LowRank, Sparse
from slimrnn._disk import whole_file
from slimrnn.errors import SavedModelError
from slimrnn.exporting import model_files, saving
from slimrnn.exporting.model_files import checksum


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    slimrnn.save(GRU(3, 4, 2, structure=LowRank(1) + Diagonal()), tmp_path)
    return tmp_path


def weights_of(directory: Path) -> Path:
    (found,) = directory.glob("*.safetensors")
    return found


def edit(directory: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the config, with a checksum that fits."""
    path = directory / "config.json"
    config = json.loads(path.read_text())
    del config["checksum"]
    change(config)
    path.write_text(json.dumps({**config, "checksum": checksum(config)}))


def refusal(directory: Path, **options: Any) -> str:
    with pytest.raises(SavedModelError) as error:
        slimrnn.load(directory, **options)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 700
    return str(error.value)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(data=st.data(), config=st.booleans(), cut=st.booleans())
def test_changed_bytes_are_noticed(saved: Path, data: st.DataObject, config: bool, cut: bool) -> None:
    path = saved / "config.json" if config else weights_of(saved)
    whole = path.read_bytes()
    at = data.draw(st.integers(0, len(whole) - 2))
    changed = (
        whole[:at] if cut else whole[:at] + bytes([whole[at] ^ 1 << data.draw(st.integers(0, 6))]) + whole[at + 1 :]
    )
    try:
        if config and json.loads(whole) == _parsed(changed):  # a space for a line's end
            return
        path.write_bytes(changed)
        refusal(saved)
    finally:
        path.write_bytes(whole)
    slimrnn.load(saved)


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return None


def test_weights_of_another_model_are_refused(saved: Path, tmp_path: Path) -> None:
    """Whole, of the same shapes, and under the right name."""
    slimrnn.save(GRU(3, 4, 2, structure=LowRank(1) + Diagonal()), tmp_path / "other")
    weights_of(saved).write_bytes(weights_of(tmp_path / "other").read_bytes())
    assert "checksum" in refusal(saved)


def _set(*path: str, to: Any) -> Callable[[dict[str, Any]], None]:
    def change(config: dict[str, Any]) -> None:
        for name in path[:-1]:
            config = config[name]
        config[path[-1]] = to

    return change


EDITS: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "newer": (_set("version", to=2), "from a newer slimrnn"),
    "version": (_set("version", to="1"), "damaged or was edited"),
    "format": (_set("format", to="other"), "no config.json of slimrnn"),
    "entry": (_set("architectures", to=["Bert"]), "got entries architectures"),
    "path": (_set("weights", to="../weights.safetensors"), "name of a file of weights"),
    "absolute": (_set("weights", to="/etc/passwd"), "name of a file of weights"),
    "gone": (_set("weights", to=f"weights-{'0' * 32}.safetensors"), "does not exist"),
    "sizes": (_set("model", "hidden_size", to=5), "weights of another model: expected"),
    "dtype": (_set("model", "dtype", to="float64"), "of F64 for .*, got .* of F32"),
    "no dtype": (_set("model", "dtype", to="object"), "expected a dtype"),
    "layers": (_set("model", "num_layers", to=10**12), "no more layers than there are weights for"),
    "depth": (_set("model", "transition_depth", to=10**9), "no more layers than there are weights for"),
    "units": (_set("model", "hidden_size", to=10**15), "expected hidden_size of at most"),
    "words": (_set("model", "hidden_size", to="many"), "arguments of layers, got some that make none"),
    "option": (_set("model", "hiden", to=3), "got some that make none: .*hiden"),
    "type": (_set("model", "type", to="os.system"), "expected the name of a layer"),
    "import": (_set("model", "type", to="os:system"), "expected system, which os defined"),
    "cell": (_set("model", "type", to="LEMCell"), "expected the name of a layer or a structure"),
    "spec": (_set("model", to={"type": "Diagonal"}), "expected a layer or a module"),
    "structure": (_set("model", "structure", to={"type": "GRU"}), "make none"),
    "nothing": (_set("model", to=7), "expected a type and its arguments"),
    "object": (_set("model", "structure", to={"eval": "1"}), "expected a number, a text, a structure"),
    "same": (_set("model", to={"same_as": "x"}), "module that came before"),
    "tied": (_set("tied", to={"layers.0.cell.bias": "layers.7"}), "to be tied"),
    "tied shapes": (_set("tied", to={"layers.0.cell.bias": "layers.0.input.weight"}), "one shape and type"),
    "modes": (_set("modes", to={"layers.9": True}), "names of the model's modules"),
    "flags": (_set("requires_grad", to={"layers.0.cell.bias": "no"}), "each with a bool"),
}


@pytest.mark.parametrize("name", EDITS)
def test_configs_that_say_something_else_are_refused(name: str, saved: Path) -> None:
    change, words = EDITS[name]
    edit(saved, change)
    told = refusal(saved)
    assert re.search(words, told), told


def test_nothing_is_imported_and_nothing_unpickled(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **options: object) -> None:
        raise AssertionError(args)

    edit(saved, _set("model", "structure", to={"type": "this:Zen"}))
    for module, name in ((pickle, "loads"), (pickle, "load"), (pickle, "Unpickler"), (torch, "load")):
        monkeypatch.setattr(module, name, fail)
    assert "expected Zen, which this defined" in refusal(saved)
    assert "this" not in sys.modules


def test_deep_nesting_and_large_configs_are_refused(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved / "config.json"
    path.write_text("[" * 10**5)
    assert "expected JSON" in refusal(saved)
    monkeypatch.setattr(model_files, "MOST_BYTES", 1000)
    assert "at most 1,000 bytes" in refusal(saved)


def test_sizes_in_the_header_are_not_believed(saved: Path) -> None:
    path = weights_of(saved)
    content = path.read_bytes()
    size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8 : 8 + size])
    header["layers.0.cell.bias"] |= {"shape": [2**40, 2**20], "data_offsets": [0, 2**62]}
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + content[8 + size :])
    assert "is damaged" in refusal(saved)
    path.write_bytes(struct.pack("<Q", 2**60) + content[8:])
    assert "is damaged" in refusal(saved)


def test_what_does_not_fit_into_memory_is_refused_before_it_is_read(tmp_path: Path, monkeypatch: Any) -> None:
    slimrnn.save(RNN(2, 50, structure=Sparse(0.01), bias=False), tmp_path)
    monkeypatch.setattr(saving, "available_memory", lambda: 60_000)  # of which the numbers themselves need 1,300
    assert "of memory" in refusal(tmp_path)


def test_many_units_with_few_numbers_are_loaded(tmp_path: Path) -> None:
    layer = RNN(2, 2**10, structure=Kronecker([2] * 10), input_structure=Kronecker([(2**9, 1), 2]), bias=False)
    slimrnn.save(layer, tmp_path)
    assert repr(slimrnn.load(tmp_path)) == repr(layer)


def test_what_is_no_saved_model_is_refused(tmp_path: Path) -> None:
    assert "expected a saved model" in refusal(tmp_path / "none")
    assert "expected a saved model" in refusal(tmp_path)
    (tmp_path / "config.json").write_text('{"architectures": ["Bert"]}')
    assert "no config.json of slimrnn" in refusal(tmp_path)
    with pytest.raises(SavedModelError, match="expected an empty directory, or one with a saved model"):
        slimrnn.save(GRU(2, 3), tmp_path)
    assert json.loads((tmp_path / "config.json").read_text()) == {"architectures": ["Bert"]}
    (tmp_path / "file").write_text("")
    with pytest.raises(SavedModelError, match="cannot write"):
        slimrnn.save(GRU(2, 3), tmp_path / "file")


@pytest.mark.parametrize("stops_at", [0, 1])
def test_a_save_that_stops_leaves_the_model_that_was_there(
    stops_at: int, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, calls = slimrnn.load(saved), []

    @contextmanager
    def stopping(path: Path) -> Iterator[BinaryIO]:
        calls.append(path)
        with whole_file(path) as file:
            yield file
            if len(calls) == stops_at + 1:
                raise KeyboardInterrupt

    monkeypatch.setattr(model_files, "whole_file", stopping)
    with pytest.raises(KeyboardInterrupt):
        slimrnn.save(nn.Linear(3, 4), saved)
    found = slimrnn.load(saved)
    assert all(map(torch.equal, before.state_dict().values(), found.state_dict().values()))
    monkeypatch.undo()
    slimrnn.save(nn.Linear(3, 4), saved)
    assert isinstance(slimrnn.load(saved), nn.Linear)


def test_a_new_model_takes_the_place_of_the_old_one(saved: Path) -> None:
    before = weights_of(saved)
    slimrnn.save(GRU(3, 5), saved)
    assert weights_of(saved) != before
    slimrnn.save(slimrnn.load(saved), saved)
    assert sorted(path.suffix for path in saved.iterdir()) == [".json", ".safetensors"]


def test_bad_arguments_are_told(saved: Path) -> None:
    with pytest.raises(TypeError, match=r"expected a model, an nn\.Module, to save, got dict"):
        slimrnn.save({}, saved)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="expected classes and functions in custom_objects, got 3"):
        slimrnn.load(saved, custom_objects=[3])
    with pytest.raises(TypeError, match="numbers in memory, got weight of meta"):
        slimrnn.save(nn.Linear(2, 3, device="meta"), saved)


def test_a_missing_safetensors_is_told(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "safetensors.torch", None)
    with pytest.raises(ImportError, match="pip install safetensors"):
        slimrnn.save(GRU(2, 3), saved)


def test_a_module_without_a_dtype_takes_no_memory_before_its_size_is_checked(tmp_path: Path) -> None:
    slimrnn.save(nn.Sequential(nn.Linear(2, 3)), tmp_path)
    large = {"type": "torch.nn.Linear", "in_features": 2**40, "out_features": 2**20}  # more than any machine has
    edit(tmp_path, lambda config: config["model"]["modules"].update({"0": large}))
    assert "has the weights of another model" in refusal(tmp_path)
