"""Archives: only plain files, only below the folder, and all of them or none."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import posixpath
import shutil
import stat
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import IO, Any

from slimrnn.data.compressed import GZIP, most_for
from slimrnn.data.files import writing
from slimrnn.errors import DataError

MEMBERS = 100_000  # of an archive
DAMAGED = (  # what the readers of archives raise; NotImplementedError is a RuntimeError
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, gzip.BadGzipFile, struct.error),
    *(EOFError, RuntimeError, ValueError, OverflowError, KeyError, IndexError),
)


def unpack(archive: Path, folder: Path, prefix: str = "", only: Collection[str] = ()) -> list[Path]:
    """Put what lies below `prefix` in the archive into the folder; `only` names the files that are wanted."""
    with writing(folder), tempfile.TemporaryDirectory(prefix=".unpack-", dir=folder) as scratch:
        names = _extract(archive, Path(scratch), prefix, only)
        missing = sorted(set(only) - set(names))
        if missing or not names:
            raise DataError(f"expected {archive} to hold {prefix}{missing[0] if missing else '*'}, got none")
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (Path(scratch) / name).replace(folder / name)
    return [folder / name for name in names]


def _extract(archive: Path, scratch: Path, prefix: str, only: Collection[str]) -> list[str]:
    names = []
    try:
        for member, content in _members(archive):
            name = _safe(member, archive)
            if not name.startswith(prefix) or (only and name.removeprefix(prefix) not in only):
                continue
            if content is None:
                raise DataError(f"expected plain files in {archive}, got the link or device {member}")
            name = name.removeprefix(prefix)
            target = scratch / name
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as file:
                shutil.copyfileobj(content, file)
            names.append(name)
    except DAMAGED as error:
        raise DataError(f"{archive} is damaged: {error}") from None
    return names


def _members(archive: Path) -> Iterator[tuple[str, IO[bytes] | None]]:
    """Names and contents of all that is no directory; None is the content of what is no plain file."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as zipped:
            check_promised(len(zipped.infolist()), sum(entry.file_size for entry in zipped.infolist()), archive)
            for entry in zipped.infolist():
                if entry.flag_bits & 1:
                    raise DataError(f"expected plain files in {archive}, got {entry.filename}, which is encrypted")
                kind = stat.S_IFMT(entry.external_attr >> 16)
                if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                    yield entry.filename, None
                elif not entry.is_dir():
                    with zipped.open(entry) as content:
                        yield entry.filename, content
        return
    members = total = 0
    with _unpacked(archive) as stream, tarfile.open(fileobj=stream, mode="r|") as tar:
        for member in tar:
            members, total = members + 1, total + member.size
            check_promised(members, total, archive)
            if not member.isdir():
                yield member.name, tar.extractfile(member) if member.isreg() else None


def check_promised(members: int, total: int, archive: Path) -> None:
    """Refuse more members, or more bytes in all, than an honest archive of this size has."""
    most = most_for(archive.stat().st_size)
    if members > MEMBERS:
        raise DataError(f"expected at most {MEMBERS:,} members in {archive}, got more")
    if total > most:
        raise DataError(f"expected at most {most:,} bytes in {archive}, got members of {total:,}")


@contextlib.contextmanager
def _unpacked(archive: Path) -> Iterator[Any]:
    """The bytes of a tar file, whatever it is compressed by."""
    with archive.open("rb") as file:
        start = file.read(6)
        file.seek(0)
        kind = next((opened for magic, opened in COMPRESSED.items() if start.startswith(magic)), None)
        stream = file if kind is None else kind(file)
        yield _Limited(stream, most_for(archive.stat().st_size), archive)


class _Limited:
    """A stream that ends in an error after so many bytes: the list of a tar file's members can be a bomb, too."""

    def __init__(self, stream: IO[bytes], most: int, archive: Path) -> None:
        self.stream, self.left, self.most, self.archive = stream, most, most, archive

    def read(self, count: int) -> bytes:
        try:
            content = self.stream.read(max(0, min(count, self.left + 1)))
        except OSError as error:  # bz2 has no class of its own
            raise DataError(f"{self.archive} is damaged: {error.strerror or error}") from None
        self.left -= len(content)
        if self.left < 0:
            raise DataError(f"expected at most {self.most:,} bytes in {self.archive}, got more")
        return content


def _gunzipped(file: IO[bytes]) -> gzip.GzipFile:
    return gzip.GzipFile(fileobj=file)


COMPRESSED: dict[bytes, Callable[[IO[bytes]], Any]] = {
    GZIP: _gunzipped,
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\0": lzma.LZMAFile,
}


def _safe(member: str, archive: Path) -> str:
    """The name in its simplest form; refuse one that leads out of the folder, here or on another system."""
    name = posixpath.normpath(member)
    parts = name.split("/")
    if name.startswith("/") or ".." in parts or "\\" in name or ":" in parts[0] or "\0" in name:
        raise DataError(f"expected names below a folder in {archive}, got {member!r}")
    return name
