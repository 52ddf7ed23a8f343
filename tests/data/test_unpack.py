"""Archives of all kinds, good and evil."""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from slimrnn.data import DataError
from slimrnn.data.unpack import unpack

FILES = {"top/a.txt": b"first", "top/deep/b.txt": b"second" * 1000, "other/c.txt": b"third"}
EVIL = ["../out.txt", "/out.txt", "top/../../out.txt", "top\\..\\..\\out.txt", "C:/out.txt"]


def zipped(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def tarred(path: Path, files: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def linked_zip(path: Path) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        link = zipfile.ZipInfo("top/link")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc")
    return path


def linked_tar(path: Path) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        link = tarfile.TarInfo("top/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc"
        archive.addfile(link)
    return path


both = pytest.mark.parametrize("pack", [zipped, tarred])
Pack = Callable[[Path, dict[str, bytes]], Path]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "folder").mkdir()
    return tmp_path / "folder"


def names(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


@both
def test_what_lies_below_the_prefix_is_unpacked(pack: Pack, tmp_path: Path, folder: Path) -> None:
    unpack(pack(tmp_path / "archive", FILES), folder, "top/")
    assert names(folder) == {"a.txt", "deep/b.txt"}
    assert (folder / "deep" / "b.txt").read_bytes() == FILES["top/deep/b.txt"]


@both
def test_only_what_is_wanted(pack: Pack, tmp_path: Path, folder: Path) -> None:
    unpack(pack(tmp_path / "archive", FILES), folder, "top/", ["a.txt"])
    assert names(folder) == {"a.txt"}


def test_names_that_begin_with_a_dot_are_the_same(tmp_path: Path, folder: Path) -> None:
    unpack(tarred(tmp_path / "archive", {f"./{name}": content for name, content in FILES.items()}), folder, "top/")
    assert names(folder) == {"a.txt", "deep/b.txt"}


@both
@pytest.mark.parametrize("evil", EVIL)
def test_no_name_leads_out_of_the_folder(pack: Pack, evil: str, tmp_path: Path, folder: Path) -> None:
    with pytest.raises(DataError, match="expected names below a folder"):
        unpack(pack(tmp_path / "archive", {**FILES, evil: b"evil"}), folder)
    assert names(tmp_path) == {"archive"}


@pytest.mark.parametrize("make", [linked_zip, linked_tar])
def test_links_are_refused(make: Callable[[Path], Path], tmp_path: Path, folder: Path) -> None:
    with pytest.raises(DataError, match="got the link or device top/link"):
        unpack(make(tmp_path / "archive"), folder)
    assert list(folder.iterdir()) == []


@both
def test_bombs_are_refused_before_they_are_unpacked(pack: Pack, tmp_path: Path, folder: Path) -> None:
    archive = pack(tmp_path / "archive", {"top/a.txt": bytes(2**27)})
    with pytest.raises(DataError, match=r"expected at most 67,108,864 bytes in .*archive, got"):
        unpack(archive, folder)
    assert list(folder.iterdir()) == []


def test_a_tar_bomb_among_the_headers_is_refused(tmp_path: Path, folder: Path) -> None:
    with tarfile.open(tmp_path / "archive", "w:gz", format=tarfile.PAX_FORMAT) as archive:
        member = tarfile.TarInfo("top/a.txt")
        member.pax_headers = {"comment": "x" * 2**27}
        archive.addfile(member)
    with pytest.raises(DataError, match=r"expected at most 67,108,864 bytes in .*archive, got more"):
        unpack(tmp_path / "archive", folder)


def test_too_many_members_are_refused(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slimrnn.data.unpack.MEMBERS", 2)
    for pack in (zipped, tarred):
        with pytest.raises(DataError, match=r"expected at most 2 members in .*archive, got more"):
            unpack(pack(tmp_path / "archive", FILES), folder)


@both
def test_damaged_archives_leave_nothing(pack: Pack, tmp_path: Path, folder: Path) -> None:
    archive = pack(tmp_path / "archive", FILES)
    content = bytearray(archive.read_bytes())
    content[len(content) // 3] ^= 0xFF
    for damaged in (bytes(content), bytes(content[:-30]), b"", b"no archive"):
        archive.write_bytes(damaged)
        with pytest.raises(DataError, match=r"is damaged|expected"):
            unpack(archive, folder)
        assert list(folder.iterdir()) == []


@both
def test_missing_members_are_named_and_nothing_is_unpacked(pack: Pack, tmp_path: Path, folder: Path) -> None:
    with pytest.raises(DataError, match=r"to hold top/z\.txt, got none"):
        unpack(pack(tmp_path / "archive", FILES), folder, "top/", ["a.txt", "z.txt"])
    assert names(folder) == set()
