"""MovieLens by name: ratings as events, and the titles of the films."""

from __future__ import annotations

import zipfile
from functools import lru_cache
from pathlib import Path

from slimrnn._texts import listed
from slimrnn.data.directory import dataset_folder, find_file
from slimrnn.data.files import reading
from slimrnn.data.interactions import Columns, Interactions, interactions_from, read_interactions
from slimrnn.data.tables import parse_table
from slimrnn.data.unpack import DAMAGED, check_promised
from slimrnn.errors import DataError

FILES = {"ml-1m-sequences": "ml-1m.txt", "ml-1m": "ratings.dat", "ml-latest-small": "ml-latest-small.zip"}
EVENTS = {"ml-1m-sequences": 999_611, "ml-1m": 1_000_209}  # ml-latest-small may be replaced by a later one
COLUMNS = ("userId", "movieId", "timestamp")


def read_movielens(name: str) -> Interactions:
    """The events of a data set of the catalogue."""
    path = find_file(name, FILES[name])
    log = _read_zip(path.resolve()) if path.suffix == ".zip" else read_interactions(path)
    events = len(log.items) + log.duplicates
    if events != EVENTS.get(name, events):
        raise DataError(f"expected {EVENTS[name]:,} events in {path}, got {events:,}")
    return log


def read_titles(name: str) -> dict[str, str]:
    """Titles by the ids of the log; empty where the files that have them are not there."""
    folder = dataset_folder(name)
    if name == "ml-latest-small":
        archive = folder / FILES[name]
        frame = parse_table(_member(archive, "movies.csv"), archive / "movies.csv", ",").frame
        if not {"movieId", "title"} <= set(frame.columns):
            raise DataError(
                f"expected columns movieId and title in {archive / 'movies.csv'}, got {listed(frame.columns)}"
            )
        return dict(zip(frame["movieId"].to_list(), frame["title"].to_list(), strict=True))
    if not (folder / "movies.dat").is_file():
        return {}
    titles = {line[0]: line[1] for line in _lines(folder / "movies.dat", "::")}
    if name == "ml-1m":
        return titles
    if not (folder / "sas_to_original_items.txt").is_file():  # the sequences have numbers of their own
        return {}
    return {line[0]: titles[line[1]] for line in _lines(folder / "sas_to_original_items.txt", " ") if line[1] in titles}


@lru_cache(maxsize=1)
def _read_zip(path: Path) -> Interactions:
    inside = path / "ratings.csv"
    return interactions_from(parse_table(_member(path, inside.name), inside, ","), inside, Columns(*COLUMNS))


def _member(path: Path, name: str) -> bytes:
    """A file of the archive, whatever folder of it it is in."""
    with reading(path):
        try:
            with zipfile.ZipFile(path) as archive:
                found = next((entry for entry in archive.infolist() if entry.filename.split("/")[-1] == name), None)
                if found is None:
                    raise DataError(f"expected {name} in {path}, got none")
                check_promised(1, found.file_size, path)
                return archive.read(found)
        except DAMAGED as error:
            raise DataError(f"expected a whole zip file, got {path}: {error}") from None


def _lines(path: Path, separator: str) -> list[list[str]]:
    with reading(path):
        lines = path.read_text(encoding="latin-1").splitlines()
    return [parts for line in lines if len(parts := line.split(separator)) >= 2]
