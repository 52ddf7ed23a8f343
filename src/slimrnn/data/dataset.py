"""What is known of a data set: its files, where they come from and on what terms."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DataFile:
    """A file of a data set. A checksum is a kind and its digits, "md5:…" or "git:…"; empty where none is known."""

    name: str  # below the folder of the data set, with / between parts
    checksum: str = ""
    size: int | None = None


@dataclass(frozen=True)
class Source:
    """A file on the web: one of the data set's, or an archive of which what lies below `prefix` is."""

    url: str
    checksum: str = ""
    size: int | None = None
    prefix: str | None = None  # None: no archive

    @property
    def name(self) -> str:
        return self.url.rpartition("/")[2]


@dataclass(frozen=True)
class Dataset:
    """A data set with a fixed list of files, or with some that fit patterns."""

    name: str
    folder: str  # in the data directory
    description: str
    licence: str
    files: tuple[DataFile, ...] = ()
    patterns: tuple[tuple[str, int], ...] = ()  # instead of files: ("**/*.wav", 160) for so many at least
    sources: tuple[Source, ...] = ()
    instructions: str = ""  # where there is no source

    def files_of(self, source: Source) -> tuple[DataFile, ...]:
        """What a source brings: the file of its name, or from an archive all files that no other source brings."""
        if source.prefix is None:
            return tuple(file for file in self.files if file.name == source.name)
        others = {other.name for other in self.sources if other is not source and other.prefix is None}
        return tuple(file for file in self.files if file.name not in others)
