"""Where data is looked for and kept."""

from __future__ import annotations

import os
from pathlib import Path

from slimrnn.data.catalogue import find_dataset
from slimrnn.errors import DataError


def cache_directory() -> Path:
    """The user's cache of slimrnn: in XDG_CACHE_HOME, or else in ~/.cache. It need not exist."""
    root = os.environ.get("XDG_CACHE_HOME", "")
    try:
        base = Path(root) if Path(root).is_absolute() else Path.home() / ".cache"
    except RuntimeError:
        raise DataError("expected a home directory, or XDG_CACHE_HOME to name one for caches, got none") from None
    return base / "slimrnn"


def data_directory(explicit: Path | None = None) -> Path:
    """The directory of all data sets: `explicit`, SLIMRNN_DATA, or one in the user's cache. It need not exist."""
    if explicit is not None:
        return explicit
    named = os.environ.get("SLIMRNN_DATA", "")
    return Path(named).expanduser() if named else cache_directory() / "data"


def find_file(dataset: str, name: str, explicit: Path | None = None) -> Path:
    """A file of a data set of the catalogue, which is there; else a message that says where it belongs."""
    path = dataset_folder(dataset, explicit) / name
    if not path.is_file():
        raise DataError(
            f"expected {name} of {dataset} at {path}, got none: put it there, or run slimrnn data get {dataset}"
        )
    return path


def find_folder(dataset: str, explicit: Path | None = None) -> Path:
    """The folder of a data set of the catalogue, which is there."""
    path = dataset_folder(dataset, explicit)
    if not path.is_dir():
        raise DataError(f"expected {dataset} in {path}, got none: put it there, or run slimrnn data get {dataset}")
    return path


def dataset_folder(dataset: str, explicit: Path | None = None) -> Path:
    """Where a data set of the catalogue belongs."""
    return data_directory(explicit) / find_dataset(dataset).folder
