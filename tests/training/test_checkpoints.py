"""Checkpoint files are whole or refused, and the one before is used."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file
from training_cases import EchoTask, file_size_limit, tiny

from slimrnn.training import CheckpointError, OptimConfig, RunDirectoryError, resume, train
from slimrnn.training.checkpoints import (
    checkpoint_path,
    list_checkpoints,
    newest_checkpoint,
    read_checkpoint,
    remove_old,
    write_checkpoint,
)
from slimrnn.training.record import fingerprint
from slimrnn.training.run_files import read_tensors, write_tensors, write_whole

STATE: dict[str, Any] = {
    "update": 7,
    "weights": {"a": torch.randn(2, 3), "b": torch.tensor(1.5, dtype=torch.float64), "none": torch.zeros(0, 2)},
    "optimizer": [{"state": {0: {"step": torch.tensor(3.0)}, 1: {}}, "betas": (0.9, 0.999), "lr": 1e-3}],
    "complex": (torch.randn(2, dtype=torch.complex64), torch.randn(2, dtype=torch.complex128)),
    "numbers": [1, -0.1, math.inf, True, None, "text", 2**70],
    "same": torch.arange(3).expand(2, 3),
}


def _assert_same(value: Any, other: Any) -> None:
    assert type(value) is type(other)
    if isinstance(value, torch.Tensor):
        assert value.dtype == other.dtype
        assert torch.equal(value, other)
    elif isinstance(value, dict):
        assert list(value) == list(other)
        for key in value:
            _assert_same(value[key], other[key])
    elif isinstance(value, list | tuple):
        for item, other_item in zip(value, other, strict=True):
            _assert_same(item, other_item)
    else:
        assert value == other


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "c", "run", STATE)
    _assert_same(read_checkpoint(tmp_path / "c", "run"), STATE)


def test_what_cannot_be_kept_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"expected tensors, numbers, texts .* at a.b"):
        write_checkpoint(tmp_path / "c", "run", {"a": {"b": object()}})


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)


def _edit_header(path: Path) -> None:
    content = path.read_bytes()
    assert b"0.999" in content
    path.write_bytes(content.replace(b"0.999", b"0.998"))


def _pickle(path: Path) -> None:
    path.write_bytes(pickle.dumps({"state_dict": {}}))


def _other_safetensors(path: Path) -> None:
    save_file({"a": torch.zeros(2)}, path)


def _other_run(path: Path) -> None:
    write_checkpoint(path, "other", STATE)


def _other_version(path: Path) -> None:
    save_file({"a": torch.zeros(2)}, path, {"format": "checkpoint", "version": "999"})


DAMAGES: list[tuple[Callable[[Path], None], str]] = [
    (_truncate, "damaged or not a checkpoint"),
    (_empty, "damaged or not a checkpoint"),
    (_flip, "damaged: its checksum"),
    (_edit_header, "damaged: its checksum"),
    (_pickle, "damaged or not a checkpoint"),
    (_other_safetensors, "is not a checkpoint file of slimrnn"),
    (_other_run, "belongs to a run with other settings"),
    (_other_version, "has version 999 of its format"),
]


@pytest.mark.parametrize(("damage", "message"), DAMAGES)
def test_damaged_file_is_refused_and_the_one_before_is_used(
    damage: Callable[[Path], None], message: str, tmp_path: Path
) -> None:
    for update in (7, 14):
        write_checkpoint(checkpoint_path(tmp_path, update), "run", STATE | {"update": update})
    damage(checkpoint_path(tmp_path, 14))
    said: list[str] = []
    _assert_same(newest_checkpoint(tmp_path, "run", said.append), STATE)
    assert len(said) == 1
    assert message in said[0]
    assert "update-000000014" in said[0]
    assert "\n" not in said[0]


@given(st.data())
def test_any_changed_byte_is_noticed(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path = tmp_path_factory.mktemp("byte") / "c"
    write_checkpoint(path, "run", {"a": torch.arange(4), "b": 1.5})
    content = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    with pytest.raises(CheckpointError):
        read_checkpoint(path, "run")


def test_no_checkpoint_at_all_is_a_beginning_and_only_bad_ones_are_an_error(tmp_path: Path) -> None:
    assert newest_checkpoint(tmp_path, "run", print) is None
    _pickle(checkpoint_path(tmp_path, 3))
    with pytest.raises(CheckpointError, match=r"none of the 1 checkpoints .* can be used"):
        newest_checkpoint(tmp_path, "run", lambda text: None)


def test_the_newest_two_are_kept(tmp_path: Path) -> None:
    for update in (5, 100, 20, 1_000_000):
        checkpoint_path(tmp_path, update).touch()
    remove_old(tmp_path)
    assert list_checkpoints(tmp_path) == [checkpoint_path(tmp_path, 100), checkpoint_path(tmp_path, 1_000_000)]


def test_failed_write_leaves_the_file_that_was_there(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_whole(path, b"good")
    with file_size_limit(100), pytest.raises(RunDirectoryError, match=r"cannot write .*file: File too large"):
        write_whole(path, b"x" * 1000)
    assert path.read_bytes() == b"good"
    assert list(tmp_path.iterdir()) == [path]


def test_weights_are_plain_safetensors(tmp_path: Path) -> None:
    from safetensors.torch import load_file

    weights = {"a": torch.randn(3), "b": torch.randn(2, 2).t()}
    write_tensors(tmp_path / "w", "weights", weights, {"update": 3})
    assert all(torch.equal(load_file(tmp_path / "w")[name], weights[name]) for name in weights)
    assert read_tensors(tmp_path / "w", "weights")[1] == {"update": 3}
    with pytest.raises(CheckpointError, match="does not exist"):
        read_tensors(tmp_path / "no", "weights")


def test_fingerprint_is_of_what_a_checkpoint_depends_on() -> None:
    config = tiny()
    same = replace(config, out=Path("elsewhere"), devices=2, workers=3, updates=50)
    assert fingerprint(same) == fingerprint(config)
    assert fingerprint(replace(config, seed=1)) != fingerprint(config)
    assert fingerprint(replace(config, task=EchoTask(13))) != fingerprint(config)


def test_fingerprint_outlives_the_addition_of_settings() -> None:
    """One at its default is as good as none."""

    @dataclass(frozen=True)
    class Optim(OptimConfig):
        invented_later: float = 0.5

    optim = OptimConfig(lr=1e-2)
    assert fingerprint(tiny(optim=Optim(lr=1e-2))) == fingerprint(tiny(optim=optim))
    assert fingerprint(tiny(optim=Optim(lr=1e-2, invented_later=1.0))) != fingerprint(tiny(optim=optim))


@pytest.mark.parametrize("entry", ["model", "optimizer", "loop"])
def test_a_checkpoint_without_a_part_of_the_state_is_refused_with_its_place(entry: str, tmp_path: Path) -> None:
    config = tiny(tmp_path / "run")
    train(config, quiet=True)
    (path,) = list_checkpoints(tmp_path / "run" / "checkpoints")[-1:]
    tensors, data = read_tensors(path, "checkpoint")
    data["checkpoint"][1] = [pair for pair in data["checkpoint"][1] if pair[0] != entry]
    write_tensors(path, "checkpoint", tensors, data)
    more = replace(config, updates=config.updates + 1)
    with pytest.raises(CheckpointError, match=rf"expected the state .* of {config.out}, got another form: .*{entry}"):
        resume(tmp_path / "run", more, quiet=True)
