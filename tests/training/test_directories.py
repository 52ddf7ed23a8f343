"""Directories and disks that fail lose nothing."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from training_cases import file_size_limit, tiny

from slimrnn.training import (
    Run,
    RunDirectoryError,
    engine,
    resume,
    train,
)
from slimrnn.training.checkpoints import checkpoint_path, list_checkpoints, remove_old
from slimrnn.training.locking import is_locked, locked
from slimrnn.training.run_files import remove_leftovers


def test_existing_directory_is_refused_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RunDirectoryError, match="exists: choose another directory, or continue the run in it"):
        train(tiny(tmp_path))
    with pytest.raises(RunDirectoryError, match="exists"):
        train(tiny(tmp_path / "file"))
    with pytest.raises(RunDirectoryError, match=r"cannot write .*: Not a directory"):
        train(tiny(tmp_path / "file" / "run"))


def test_directories_are_numbered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = [train(tiny(updates=1), quiet=True).directory for _ in range(2)]
    assert made == [Path("runs/echo-gru-dense-1"), Path("runs/echo-gru-dense-2")]


def test_what_is_not_a_run_cannot_be_resumed(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match=r"expected the directory of a run, got .* which has no run.json"):
        resume(tmp_path, tiny())
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(RunDirectoryError, match="cannot read"):
        Run(tmp_path)


def test_full_disk_loses_no_checkpoint(tmp_path: Path) -> None:
    config = tiny(tmp_path / "run")
    train(config, budget=0, quiet=True)
    before = list_checkpoints(tmp_path / "run" / "checkpoints")
    size = (tmp_path / "run" / "curve.csv").stat().st_size
    for limit in (size + 10, 5000):  # it fails at the first row of the curve, then at the first checkpoint
        with file_size_limit(limit), pytest.raises(RunDirectoryError, match=r"cannot write .*: File too large"):
            resume(tmp_path / "run", config, quiet=True)
        assert list_checkpoints(tmp_path / "run" / "checkpoints") == before
        assert not list((tmp_path / "run").rglob(".*.part"))
    whole = train(replace(config, out=tmp_path / "whole"), quiet=True)
    assert resume(tmp_path / "run", config, quiet=True).final == whole.final
    assert Run(tmp_path / "run").curve["valid/loss"] == Run(whole.directory).curve["valid/loss"]


@pytest.fixture
def unprivileged() -> Iterator[Path]:
    """A directory of one's own, as a user whom permissions bind: root they do not."""
    directory, user = Path(tempfile.mkdtemp()), os.geteuid()
    if user == 0:
        os.chown(directory, 65534, 65534)
        os.seteuid(65534)
    yield directory
    os.seteuid(user)
    shutil.rmtree(directory)


def test_read_only_directory_is_refused_and_loses_no_checkpoint(unprivileged: Path) -> None:
    config = tiny(unprivileged / "run")
    train(config, budget=0, quiet=True)
    checkpoints = unprivileged / "run" / "checkpoints"
    before = list_checkpoints(checkpoints)
    checkpoints.chmod(stat.S_IRUSR | stat.S_IXUSR)
    with pytest.raises(RunDirectoryError, match=r"cannot write .*update-000000010.safetensors: Permission denied"):
        resume(unprivileged / "run", config, quiet=True)
    checkpoints.chmod(stat.S_IRWXU)
    assert list_checkpoints(checkpoints) == before
    unprivileged.chmod(stat.S_IRUSR | stat.S_IXUSR)
    with pytest.raises(RunDirectoryError, match=r"cannot write .*other: Permission denied"):
        train(tiny(unprivileged / "other"))
    unprivileged.chmod(stat.S_IRWXU)


def test_a_run_in_use_is_refused(tmp_path: Path) -> None:
    train(tiny(tmp_path / "run"), budget=0, quiet=True)
    script = "import sys; from pathlib import Path; from slimrnn.training.locking import is_locked, locked\n"
    script += "print(is_locked(Path(sys.argv[1])))\nwith locked(Path(sys.argv[1])): pass"
    with locked(tmp_path / "run"):
        assert not is_locked(tmp_path / "elsewhere")
        assert is_locked(tmp_path / "run")  # to ask does not release it
        with pytest.raises(RunDirectoryError, match="is in use: this process is training it"), locked(tmp_path / "run"):
            pass
        other = subprocess.run([sys.executable, "-c", script, tmp_path / "run"], capture_output=True, text=True)
    assert not is_locked(tmp_path / "run")
    assert other.stdout == "True\n"
    assert "is in use: another process is training it" in other.stderr


def test_only_what_the_run_left_behind_is_deleted(tmp_path: Path) -> None:
    names = ["run.json", "checkpoints/update-1", "tries/2/best", "compression/report"]
    left = [tmp_path / Path(name).parent / f".{Path(name).name}.1.part" for name in names]
    for path in left:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    remove_leftovers(tmp_path)
    assert [path.exists() for path in left] == [False, False, True, True]


def test_old_checkpoints_that_cannot_be_deleted_are_told_in_a_line(unprivileged: Path) -> None:
    for number in range(3):
        checkpoint_path(unprivileged, number).touch()
    unprivileged.chmod(stat.S_IRUSR | stat.S_IXUSR)
    with pytest.raises(RunDirectoryError, match=r"cannot write .*update-000000000.safetensors: Permission denied"):
        remove_old(unprivileged)
    unprivileged.chmod(stat.S_IRWXU)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (KeyboardInterrupt(), "interrupted"),
        (RunDirectoryError("cannot write x: No space left"), "failed: cannot write"),
    ],
)
def test_a_run_stopped_in_its_last_evaluation_says_how_to_go_on(
    error: BaseException,
    status: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    config = tiny(tmp_path / "run", updates=4)

    def fails(*_: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(engine, "_scores", fails)
        with pytest.raises(type(error)) as raised:
            train(config, quiet=True)
    run = Run(tmp_path / "run")
    assert run.status.startswith(status)
    assert run.result is None
    assert f"slimrnn resume {run.directory}" in f"{capsys.readouterr().out} {raised.value}"
    assert resume(run.directory, config, quiet=True).ended == "finished"
    assert Run(run.directory).status == "finished"
