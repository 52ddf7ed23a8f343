"""Runs whose files were damaged, lost or left half-made."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import save
from torch import Tensor
from training_cases import file_size_limit, tiny

from slimrnn._tensor_files import VERSION, checksum
from slimrnn.tasks import AddingTask, config_from_dict, load_run
from slimrnn.training import (
    CheckpointError,
    ConfigError,
    ModelConfig,
    OptimConfig,
    Run,
    RunDirectoryError,
    TrainingError,
    evaluate,
    resume,
    train,
)
from slimrnn.training.checkpoints import newest_checkpoint
from slimrnn.training.checks import build_model
from slimrnn.training.curve import Curve, read_curve
from slimrnn.training.launch import my_place
from slimrnn.training.nets import WEIGHTS, read_net
from slimrnn.training.record import fingerprint
from slimrnn.training.run_files import read_tensors, write_tensors


@pytest.mark.parametrize("content", ["[]", "{}", '{"config": null}'])
def test_a_record_without_settings_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(RunDirectoryError, match="expected the settings of a run in"):
        Run(tmp_path)


BAD_RECORDS = {
    "nested": ('{"config": ' + "[" * 100_000, "cannot read .*run.json: its values are nested too deeply"),
    "many digits": ('{"config": {"updates": ' + "9" * 5000 + "}}", "cannot read .*run.json: Exceeds the limit"),
    "no UTF-8": ('{"config": {"\udcff": 1}}', "cannot read .*run.json: 'utf-8' codec can't decode byte 0xff"),
    "parameters": ('{"config": {}, "parameters": 7}', "expected parameters in .*run.json to be a dict, got 7"),
    "result": ('{"config": {}, "result": [1]}', r"expected result in .*run.json to be a dict, got \[1\]"),
    "resumed": ('{"config": {}, "resumed": "no"}', "expected resumed in .*run.json to be a list, got 'no'"),
}


@pytest.mark.parametrize(("content", "message"), BAD_RECORDS.values(), ids=BAD_RECORDS)
def test_records_that_are_not_ours_are_refused(content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(RunDirectoryError, match=message) as error:
        Run(tmp_path)
    assert len(str(error.value)) < 500


@pytest.mark.parametrize(
    "result",
    [
        {},
        {"best": {"test": {"loss": 10**400}}},
        {"best": 1},
        {"ended": "no"},
        {"best": {}, "final": {}, "recoveries": [1]},
    ],
)
def test_results_of_another_form_are_refused(result: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps({"config": {}, "result": result}))
    with pytest.raises(RunDirectoryError, match=r"expected the result of a run in .*run.json, got another form"):
        _ = Run(tmp_path).result
    with pytest.raises(
        RunDirectoryError, match=r"expected the number of parameters as parameters.total in .*, got None"
    ):
        _ = Run(tmp_path).parameters
    with pytest.raises(RunDirectoryError, match=r"expected a column valid/loss in .*curve.csv, got none"):
        Run(tmp_path).column("valid/loss")


def test_a_file_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "file.pt").write_bytes(b"PK")
    with pytest.raises(RunDirectoryError, match=r"expected the directory of a run, got .*file.pt, which is a file"):
        load_run(tmp_path / "file.pt")


BAD_DATA: dict[str, tuple[Any, str]] = {
    "no data": (None, "expected an entry data in the metadata of"),
    "no JSON": ("{", "expected JSON as data in the metadata of .*, got '{': "),
    "nested": ("[" * 100_000, "expected JSON as data in the metadata of"),
    "no update": ("{}", "expected the number of an update in the metadata of .*, got {}"),
    "a list": ("[1]", r"expected the number of an update in the metadata of .*, got \[1\]"),
    "a text": ('{"update": "7"}', "expected the number of an update in the metadata of .*, got {'update': '7'}"),
}


@pytest.mark.parametrize(("data", "message"), BAD_DATA.values(), ids=BAD_DATA)
def test_weights_with_a_right_checksum_and_wrong_metadata_are_refused(
    data: str | None, message: str, tmp_path: Path
) -> None:
    config, path = tiny(), tmp_path / "best.safetensors"
    write_with_data(path, WEIGHTS, build_model(config).state_dict(), data)
    with pytest.raises(CheckpointError, match=message) as error:
        read_net(path, config)
    assert len(str(error.value)) < 500


BAD_STATES = {
    "no entries": "7",
    "no state": '{"run": ""}',
    "unknown kind": '{"run": "", "checkpoint": ["dict", [["update", ["what", 1]]]]}',
    "no pairs": '{"run": "", "checkpoint": ["dict", [1]]}',
    "no tag": '{"run": "", "checkpoint": [[], 1]}',
    "unknown tensor": '{"run": "", "checkpoint": ["dict", [["a", ["tensor", "x"]], ["update", 1]]]}',
    "real": '{"run": "", "checkpoint": ["dict", [["a", ["complex", "readout.bias"]], ["update", 1]]]}',
    "unhashable": '{"run": "", "checkpoint": ["dict", [[[1], 1]]]}',
    "no update": '{"run": "", "checkpoint": ["dict", []]}',
    "update -1": '{"run": "", "checkpoint": ["dict", [["update", -1]]]}',
    "nested": '{"run": "", "checkpoint": ' + '["list", [' * 400 + "]]" * 400 + "}",
}


@pytest.mark.parametrize("data", BAD_STATES.values(), ids=BAD_STATES)
def test_checkpoints_with_a_right_checksum_and_another_content_are_refused(data: str, tmp_path: Path) -> None:
    path = tmp_path / "update-000000001.safetensors"
    write_with_data(path, "checkpoint", build_model(tiny()).state_dict(), data)
    said: list[str] = []
    with pytest.raises(CheckpointError, match=r"none of the 1 checkpoints in .* can be used; the newest: .*update-"):
        newest_checkpoint(tmp_path, "", said.append)
    assert len(said) == 1
    assert "expected" in said[0]
    assert len(said[0]) < 500


def test_weights_of_other_types_are_refused(tmp_path: Path) -> None:
    config, path = tiny(), tmp_path / "best.safetensors"
    weights = build_model(config).state_dict()
    write_tensors(path, WEIGHTS, {**weights, "readout.bias": weights["readout.bias"].double()}, {"update": 1})
    with pytest.raises(
        CheckpointError, match=r"another net: expected \(1,\) of float32 for readout.bias, got .* float64"
    ):
        read_net(path, config)


def write_with_data(path: Path, kind: str, tensors: dict[str, Tensor], data: str | None) -> None:
    """As `write_tensors` does, but for the data, which is any text."""
    metadata = {"format": kind, "version": VERSION} | ({} if data is None else {"data": data})
    path.write_bytes(save(tensors, metadata | {"checksum": checksum(metadata, tensors)}))


@pytest.mark.parametrize("line", [b"what,is,this\n", b"\xff\x00\n", b"30,1\n"])
def test_a_damaged_line_of_the_curve_is_named(line: bytes, tmp_path: Path) -> None:
    config = tiny(tmp_path / "run")
    train(config, budget=0, quiet=True)
    path = tmp_path / "run" / "curve.csv"
    before = path.read_bytes()
    path.write_bytes(before + line)
    with pytest.raises(RunDirectoryError, match=r"in corrupt line 3 of .*curve.csv, got .*[;:] fix or delete it"):
        resume(tmp_path / "run", config, quiet=True)
    with pytest.raises(RunDirectoryError, match=r"in corrupt line 3 of .*curve.csv, got .*[;:] fix or delete it"):
        _ = Run(tmp_path / "run").curve
    path.write_bytes(before + b"10,0.1,")  # what a kill may leave
    assert Run(tmp_path / "run").curve["update"] == [0]
    assert resume(tmp_path / "run", config, quiet=True).ended == "finished"


CURVE = "update,seconds,lr,train/loss,valid/loss\n0,0.1,0.01,,0.5\n10,0.2,0.01,0.4,0.3\n"
BAD_CURVES = {
    "superscript": (
        "10,0.2",
        "1²,0.2",
        "expected a whole number as update in corrupt line 3 of .*curve.csv, got '1²': fix",
    ),
    "many digits": (
        "10,0.2",
        "9" * 5000 + ",0.2",
        "expected a whole number as update in corrupt line 3 of .*, got '9{59}…:",
    ),
    "other scripts": (",0.3", ",٣", "expected a number or nothing as valid/loss in corrupt line 3 of .*, got '٣': fix"),
    "underscore": (
        ",0.3",
        ",1_0",
        "expected a number or nothing as valid/loss in corrupt line 3 of .*, got '1_0': fix",
    ),
    "a field too many": (
        ",0.3",
        ",0.3,1",
        "expected 5 numbers in corrupt line 3 of .*, got 6: '10,0.2,0.01,0.4,0.3,1'",
    ),
    "no header": (CURVE.partition("\n")[0] + "\n", "", "expected different columns, .* in line 1 of .*, got '0,0.1,"),
    "renamed update": ("update,", "step,", "expected different columns, update and seconds first, .* got 'step,sec"),
    "a column twice": ("train/loss", "lr", "expected different columns, .* got 'update,seconds,lr,lr,valid/loss'"),
}


@pytest.mark.parametrize(("old", "new", "message"), BAD_CURVES.values(), ids=BAD_CURVES)
def test_curves_that_are_not_ours_are_refused_with_place_and_value(
    old: str, new: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "curve.csv"
    path.write_text(CURVE.replace(old, new), encoding="utf-8")
    for read in (read_curve, lambda path: Curve(path, 0)):
        with pytest.raises(RunDirectoryError, match=message):
            read(path)


def test_a_renamed_column_is_told_when_a_row_is_written(tmp_path: Path) -> None:
    (tmp_path / "curve.csv").write_text(CURVE.replace("valid/loss", "valid/los"))
    curve = Curve(tmp_path / "curve.csv", 10)
    with pytest.raises(
        RunDirectoryError, match=r"expected columns of update, .*, valid/loss in .*, got 'valid/los': fix"
    ):
        curve.write({"update": 20, "seconds": 0.3, "lr": 0.01, "train/loss": 0.2, "valid/loss": 0.1})


def test_a_curve_that_cannot_be_read_is_told_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "curve.csv").mkdir()
    with pytest.raises(RunDirectoryError, match=r"cannot read .*curve.csv: Is a directory"):
        read_curve(tmp_path / "curve.csv")


@pytest.mark.parametrize("text", ["²", "-1", "9" * 5000, "two"])
def test_a_group_of_processes_that_is_no_number_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", text)
    with pytest.raises(TrainingError, match="expected the environment variable WORLD_SIZE to be a whole number, got"):
        my_place()


def test_weights_of_another_net_are_refused(tmp_path: Path) -> None:
    config = tiny(tmp_path / "run", updates=2)
    train(config, quiet=True)
    train(tiny(tmp_path / "other", updates=2, model=ModelConfig("gru", 5)), quiet=True)
    shutil.copy(tmp_path / "other" / "best.safetensors", tmp_path / "run")
    with pytest.raises(CheckpointError, match=r"best\.safetensors has the weights of another net"):
        evaluate(tmp_path / "run", config)


def test_a_run_ends_without_its_best_net(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tiny(tmp_path / "run", optim=OptimConfig(lr=30.0))  # the net is best before the first update
    train(config, budget=0, quiet=True)
    (tmp_path / "run" / "best.safetensors").write_bytes(b"damaged")
    result = resume(tmp_path / "run", config, quiet=True)
    assert (result.ended, result.best_update, result.best) == ("finished", 40, result.final)
    assert "; the last net is taken for the best" in capsys.readouterr().out


def test_the_best_net_is_that_of_its_file(tmp_path: Path) -> None:
    """A run that was killed may have written it after the checkpoint that it goes on from."""
    config = tiny(tmp_path / "run", optim=OptimConfig(lr=30.0))
    train(config, budget=0, quiet=True)
    path = tmp_path / "run" / "best.safetensors"
    write_tensors(path, WEIGHTS, read_tensors(path, WEIGHTS)[0], {"update": 7, "score": 0.1})
    assert resume(tmp_path / "run", config, budget=0, quiet=True).best_update == 7


def test_a_full_disk_at_the_start_leaves_no_half_made_run(tmp_path: Path) -> None:
    config = tiny(tmp_path / "run", updates=2)
    with file_size_limit(100), pytest.raises(RunDirectoryError, match=r"cannot write .*run.json"):
        train(config, quiet=True)
    assert train(config, quiet=True).ended == "finished"


def test_a_full_disk_leaves_no_part_of_a_picture(tmp_path: Path) -> None:
    with file_size_limit(20_000), pytest.raises(RunDirectoryError, match=r"cannot write .*curve.png: File too large"):
        train(tiny(tmp_path / "run", updates=2), quiet=True)
    assert not (tmp_path / "run" / "curve.png").exists()


def test_processes_that_do_not_fit_leave_no_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ConfigError, match="expected devices to be 2, the processes that torchrun started, got 3"):
        train(tiny(tmp_path / "run", devices=3))
    with pytest.raises(ConfigError, match="expected valid_size of at least one sequence for each of 2 devices, got 1"):
        train(tiny(tmp_path / "run", valid_size=1))
    assert not (tmp_path / "run").exists()


def test_whole_numbers_for_fractions_are_the_same_settings() -> None:
    """As run.json, which the command line reads, gives them back."""
    config = tiny(task=AddingTask(6), optim=OptimConfig(lr=1, clip_norm=2), stop_at=3)
    written = {"task": {"name": "adding", "length": 6}, "optim": {"lr": 1, "clip_norm": 2}}
    names = ("updates", "batch_size", "valid_size", "test_size", "eval_every", "checkpoint_every", "tensorboard")
    model = {"cell": "gru", "hidden": 8}
    read = config_from_dict(written | {"model": model} | {name: getattr(config, name) for name in names})
    assert isinstance(read.optim.lr, float)
    assert fingerprint(read) == fingerprint(config)


def test_scores_that_are_no_numbers_are_null(tmp_path: Path) -> None:
    run = Run(train(tiny(tmp_path / "run", updates=1), quiet=True).directory)
    scores = {"test": {"loss": math.nan, "accuracy": 0.5}}
    run.write(result=run.record["result"] | {"best": scores, "final": {"test": {"loss": math.inf}}})

    def refuse(constant: str) -> float:
        raise AssertionError(constant)

    kept = json.loads((tmp_path / "run" / "run.json").read_text(), parse_constant=refuse)
    assert kept["result"]["best"]["test"] == {"loss": None, "accuracy": 0.5}
    result = Run(tmp_path / "run").result
    assert result is not None
    assert math.isnan(result.score("test"))


def test_a_target_may_be_moved(tmp_path: Path) -> None:
    config = tiny(tmp_path / "run", stop_at=1e9)
    first = train(config, quiet=True)
    assert (first.ended, first.updates) == ("target", 10)
    assert resume(tmp_path / "run", config, quiet=True) == first
    moved = resume(tmp_path / "run", replace(config, stop_at=None), quiet=True)
    assert (moved.ended, moved.updates) == ("finished", 40)


def test_a_run_that_is_to_go_on_is_scored_as_on_the_way(tmp_path: Path) -> None:
    config = tiny(tmp_path / "run", valid_size=20, test_size=40, eval_every=1)
    stopped = train(config, budget=0, quiet=True)
    assert stopped.final["test"]["loss"] == pytest.approx(Run(stopped.directory).curve["test/loss"][-1])
    finished = resume(stopped.directory, config, quiet=True)
    assert finished.final["test"]["loss"] != pytest.approx(Run(stopped.directory).curve["test/loss"][-1])
