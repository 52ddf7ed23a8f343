"""Downloads against a real server: resumed, verified, and never half there."""

from __future__ import annotations

import hashlib
import socket
from pathlib import Path

import pytest
from file_server import FileServer, serving

from slimrnn.data import DataError
from slimrnn.data.dataset import Source
from slimrnn.data.download import download

CONTENT = bytes(range(256)) * 2000  # 512,000 bytes, several chunks
MD5 = f"md5:{hashlib.md5(CONTENT, usedforsecurity=False).hexdigest()}"


def quiet(done: int, total: int | None) -> None:
    """Nobody watches."""


def fetched(server: FileServer, folder: Path, checksum: str = MD5) -> bytes:
    download(Source(server.url + "file", checksum), folder / "file", quiet)
    assert [path.name for path in folder.iterdir()] == ["file"]
    return (folder / "file").read_bytes()


def test_a_file_arrives_with_its_progress(tmp_path: Path) -> None:
    told: list[tuple[int, int | None]] = []
    with serving(FileServer({"file": CONTENT})) as server:
        download(Source(server.url + "file", MD5), tmp_path / "file", lambda done, total: told.append((done, total)))
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert told[0] == (0, len(CONTENT))
    assert told[-1] == (len(CONTENT), len(CONTENT))
    assert [done for done, _ in told] == sorted({done for done, _ in told})


def test_broken_connections_are_taken_up_where_they_broke(tmp_path: Path) -> None:
    with serving(FileServer({"file": CONTENT}, breaks=[100_000, 200_001])) as server:
        assert fetched(server, tmp_path) == CONTENT
    assert server.requests == ["file@0", "file@100000", "file@300001"]


def test_an_interrupted_download_goes_on_another_day(tmp_path: Path) -> None:
    (tmp_path / "file.part").write_bytes(CONTENT[:70_000])
    with serving(FileServer({"file": CONTENT})) as server:
        assert fetched(server, tmp_path) == CONTENT
    assert server.requests == ["file@70000"]


def test_a_server_without_ranges_begins_anew(tmp_path: Path) -> None:
    (tmp_path / "file.part").write_bytes(CONTENT[:70_000])
    with serving(FileServer({"file": CONTENT}, ranges=False)) as server:
        assert fetched(server, tmp_path) == CONTENT


def test_a_part_that_is_whole_is_only_verified(tmp_path: Path) -> None:
    (tmp_path / "file.part").write_bytes(CONTENT)
    with serving(FileServer({"file": CONTENT})) as server:
        assert fetched(server, tmp_path) == CONTENT
    assert server.requests == [f"file@{len(CONTENT)}"]


@pytest.mark.parametrize("part", [b"x" * 70_000, b"x" * len(CONTENT), b"x" * (len(CONTENT) + 1)])
def test_a_part_of_another_version_is_thrown_away(tmp_path: Path, part: bytes) -> None:
    (tmp_path / "file.part").write_bytes(part)
    with serving(FileServer({"file": CONTENT})) as server:
        assert fetched(server, tmp_path) == CONTENT
    assert server.requests[-1] == "file@0"


def test_a_wrong_checksum_leaves_nothing(tmp_path: Path) -> None:
    wrong = f"md5:{'0' * 32}"
    with serving(FileServer({"file": CONTENT})) as server, pytest.raises(DataError, match=f"expected .* {wrong}, got "):
        fetched(server, tmp_path, wrong)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("status", [404, 503])
def test_errors_of_the_server_are_told(tmp_path: Path, status: int) -> None:
    with (
        serving(FileServer({}, status=status)) as server,
        pytest.raises(DataError, match=f"the server answers {status}"),
    ):
        fetched(server, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_always_breaks_off_keeps_what_came(tmp_path: Path) -> None:
    with (
        serving(FileServer({"file": CONTENT}, breaks=[10_000, 0])) as server,
        pytest.raises(DataError, match="10,000 bytes are there, and the next try goes on from them"),
    ):
        fetched(server, tmp_path)
    assert (tmp_path / "file.part").read_bytes() == CONTENT[:10_000]


def test_no_server_is_told_in_one_line(tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        source = Source(f"http://127.0.0.1:{unused.getsockname()[1]}/file", MD5)
        with pytest.raises(DataError, match=r"^cannot fetch http://127[^\n]*refused$"):
            download(source, tmp_path / "file", quiet)
