"""A data set from its public homes into the data directory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from slimrnn._disk import lock
from slimrnn.data.check import condition_of, problem_of
from slimrnn.data.dataset import Dataset, Source
from slimrnn.data.download import Report, download, is_right
from slimrnn.data.files import writing
from slimrnn.data.unpack import unpack
from slimrnn.errors import DataError

Reporter = Callable[[str], Report]  # what shows the progress of a file


def fetch(dataset: Dataset, directory: Path, say: Callable[[str], object], reporter: Reporter) -> None:
    """Download and unpack what is not there yet. Files that a user has put in their place are taken as they are."""
    if not dataset.sources:
        raise DataError(
            f"{dataset.name} is not for automatic download: {dataset.instructions} in {directory / dataset.folder}"
        )
    if all(_is_done(dataset, source, directory) for source in dataset.sources):
        return  # a data directory that is complete may be read-only
    folder = directory / dataset.folder
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / ".lock").open("a") as file:
            if not lock(file):
                say(f"another process is at work in {folder}: waiting for it")
                lock(file, wait=True)
            for source in dataset.sources:
                if not _is_done(dataset, source, directory):
                    _bring(dataset, source, folder, reporter)


def _is_done(dataset: Dataset, source: Source, directory: Path) -> bool:
    if dataset.patterns:
        return condition_of(dataset, directory).state == "complete"
    return not any(problem_of(file, directory / dataset.folder) for file in dataset.files_of(source))


def _bring(dataset: Dataset, source: Source, folder: Path, reporter: Reporter) -> None:
    path = folder / source.name
    if source.prefix is None or not path.is_file() or not is_right(path, source.checksum):
        try:
            download(source, path, reporter(source.name))
        except DataError as error:
            by_hand = f"or put {source.name} at {path}" + (
                " and repeat the command" if source.prefix is not None else ""
            )
            raise DataError(f"{error}; try again, {by_hand}") from None
    if source.prefix is not None:
        unpack(path, folder, source.prefix, [file.name for file in dataset.files_of(source)])
        path.unlink()
    for file in dataset.files_of(source):
        if problem_of(file, folder):
            raise DataError(f"expected {folder / file.name} from {source.url} to have {file.checksum}, got another")
