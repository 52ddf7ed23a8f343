"""Archives: only plain files, only below the folder, and all of them or none."""

from __future__ import annotations

import lzma
import posixpath
import shutil
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import IO

from slimrnn.data.errors import DataError
from slimrnn.data.files import writing

_DAMAGED = (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError)


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
    except _DAMAGED as error:
        raise DataError(f"{archive} is damaged: {error}") from None
    return names


def _members(archive: Path) -> Iterator[tuple[str, IO[bytes] | None]]:
    """Names and contents of all that is no directory; None is the content of what is no plain file."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as zipped:
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
    with tarfile.open(archive, "r|*") as tar:
        for member in tar:
            if not member.isdir():
                yield member.name, tar.extractfile(member) if member.isreg() else None


def _safe(member: str, archive: Path) -> str:
    """The name in its simplest form; refuse one that leads out of the folder, here or on another system."""
    name = posixpath.normpath(member)
    parts = name.split("/")
    if name.startswith("/") or ".." in parts or "\\" in name or ":" in parts[0] or "\0" in name:
        raise DataError(f"expected names below a folder in {archive}, got {member!r}")
    return name
