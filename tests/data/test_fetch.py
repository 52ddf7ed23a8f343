"""`slimrnn data` and what it rests on: a data set from a real server on this machine."""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path

import pytest
from file_server import FileServer, serving

from slimrnn.cli import main
from slimrnn.data import CATALOGUE, DataError
from slimrnn.data.check import condition_of
from slimrnn.data.dataset import DataFile, Dataset, Source
from slimrnn.data.fetch import fetch

Capture = pytest.CaptureFixture[str]


def md5(content: bytes) -> str:
    return f"md5:{hashlib.md5(content, usedforsecurity=False).hexdigest()}"


def zipped(files: dict[str, bytes]) -> bytes:
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content)  # of no date: the same bytes in every process
    return memory.getvalue()


LETTERS, NUMBERS = b"abc" * 1000, b"123" * 1000
ARCHIVE = zipped({"inner/numbers.txt": NUMBERS, "inner/more/readme.txt": b"read me"})


def toy(url: str) -> Dataset:
    return Dataset(
        "toy",
        "toys/toy",
        "letters and numbers",
        "free for all",
        files=(DataFile("letters.txt", md5(LETTERS), 3000), DataFile("numbers.txt", md5(NUMBERS), 3000)),
        sources=(
            Source(f"{url}letters.txt", md5(LETTERS)),
            Source(f"{url}toy.zip", md5(ARCHIVE), prefix="inner/"),
        ),
    )


def toy_server(**misbehaviour: object) -> FileServer:
    return FileServer({"letters.txt": LETTERS, "toy.zip": ARCHIVE}, **misbehaviour)  # type: ignore[arg-type]


def get(dataset: Dataset, directory: Path) -> None:
    fetch(dataset, directory, lambda text: None, lambda name: lambda done, total: None)


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.rglob("*") if path.is_file() and path.name != ".lock"}


def test_files_and_archives_come_and_are_not_fetched_again(tmp_path: Path) -> None:
    with serving(toy_server()) as server:
        dataset = toy(server.url)
        assert condition_of(dataset, tmp_path).state == "absent"
        get(dataset, tmp_path)
        get(dataset, tmp_path)
    assert server.requests == ["letters.txt@0", "toy.zip@0"]
    assert names(tmp_path) == {"letters.txt", "numbers.txt"}
    assert (tmp_path / "toys/toy/numbers.txt").read_bytes() == NUMBERS
    assert str(condition_of(dataset, tmp_path)) == "complete"


def test_what_is_missing_or_damaged_is_named_and_fetched(tmp_path: Path) -> None:
    with serving(toy_server()) as server:
        dataset = toy(server.url)
        get(dataset, tmp_path)
        (tmp_path / "toys/toy/numbers.txt").unlink()
        assert str(condition_of(dataset, tmp_path)) == "missing files: numbers.txt"
        (tmp_path / "toys/toy/letters.txt").write_bytes(b"abd" + LETTERS[3:])
        assert str(condition_of(dataset, tmp_path)) == "damaged: letters.txt"
        get(dataset, tmp_path)
        assert str(condition_of(dataset, tmp_path)) == "complete"


def test_an_archive_that_was_put_there_by_hand_is_unpacked(tmp_path: Path) -> None:
    with serving(FileServer({})) as server:
        dataset, folder = toy(server.url), tmp_path / "toys/toy"
        folder.mkdir(parents=True)
        (folder / "letters.txt").write_bytes(LETTERS)
        (folder / "toy.zip").write_bytes(ARCHIVE)
        get(dataset, tmp_path)
    assert server.requests == []
    assert names(tmp_path) == {"letters.txt", "numbers.txt"}


def test_a_failure_says_which_file_to_put_where(tmp_path: Path) -> None:
    with serving(toy_server(status=500)) as server, pytest.raises(DataError) as failure:
        get(toy(server.url), tmp_path)
    wanted = tmp_path / "toys/toy/letters.txt"
    assert str(failure.value).endswith(f"try again, or put letters.txt at {wanted}")
    assert "\n" not in str(failure.value)


def test_data_that_has_no_public_home_comes_with_instructions(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"order LDC93S1 at .* and put its TRAIN and TEST in {tmp_path}/timit$"):
        get(CATALOGUE["timit"], tmp_path)


TWIN = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from test_fetch import fetch, toy
fetch(toy({url!r}), Path({directory!r}), lambda text: print(text, flush=True), lambda name: lambda done, total: None)
"""


def test_two_processes_do_not_fetch_twice(tmp_path: Path) -> None:
    """The first is held up by the server until the second waits for it."""
    with serving(toy_server(delay=threading.Event())) as server:
        script = TWIN.format(tests=str(Path(__file__).parent), url=server.url, directory=str(tmp_path))
        command = [sys.executable, "-c", script]
        twins = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
        said: list[str] = []
        readers = [threading.Thread(target=lambda twin=twin: said.append(twin.stdout.readline())) for twin in twins]
        for reader in readers:
            reader.start()
        while not any(said):
            assert all(twin.poll() is None for twin in twins)
            time.sleep(0.01)
        assert server.delay is not None
        server.delay.set()
        for reader, twin in zip(readers, twins, strict=True):
            assert twin.wait(30) == 0
            reader.join()
            assert twin.stdout is not None
            twin.stdout.close()
    assert sorted(said) == ["", f"another process is at work in {tmp_path}/toys/toy: waiting for it\n"]
    assert server.requests == ["letters.txt@0", "toy.zip@0"]


def test_the_command_shows_the_terms_before_it_fetches(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(toy_server()) as server:
        monkeypatch.setitem(CATALOGUE, "toy", toy(server.url))
        assert main(["data", "get", "toy", "--data-dir", str(tmp_path)]) == 0
        assert capsys.readouterr().out.splitlines() == [
            "toy: letters and numbers",
            "terms: free for all",
            "letters.txt  0.0 of 0.0 MB",
            "toy.zip  0.0 of 0.0 MB",
            f"{tmp_path}/toys/toy: complete",
        ]


def test_the_command_checks_and_lists(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLIMRNN_DATA", str(tmp_path))
    assert main(["data", "check"]) == 0
    assert capsys.readouterr().out.count(" absent") == len(CATALOGUE)
    assert main(["data", "check", "mnist"]) == 1
    (tmp_path / "mnist").mkdir()
    (tmp_path / "mnist/train-labels-idx1-ubyte.gz").write_bytes(b"no digits")
    assert main(["data", "check"]) == 1
    assert "damaged: train-labels-idx1-ubyte.gz" in capsys.readouterr().out
    assert main(["data", "list"]) == 0
    listed = capsys.readouterr().out
    assert all(each.description in listed and each.licence in listed for each in CATALOGUE.values())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["get"], "expected the name of a data set (mnist, ptb"),
        (["get", "mnits"], "got 'mnits'; did you mean 'mnist'?"),
        (["fetch"], "expected list, get NAME or check after slimrnn data, got fetch"),
        ([], "expected list, get NAME or check after slimrnn data, got none"),
        (["list", "mnist"], "expected no names after slimrnn data list, got mnist"),
        (["check", "--data-dir", "/nowhere"], "expected a directory of data sets, got /nowhere"),
    ],
)
def test_mistakes_are_told_in_one_line(arguments: list[str], message: str, capsys: Capture) -> None:
    assert main(["data", *arguments]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1
