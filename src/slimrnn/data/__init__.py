"""Data sets: where they are, how to get them, and readers of their formats. numpy and the standard library only."""

from __future__ import annotations

from slimrnn.data.cache import cached
from slimrnn.data.catalogue import CATALOGUE, find_dataset
from slimrnn.data.directory import cache_directory, data_directory, find_file, find_folder
from slimrnn.errors import DataError

__all__ = [
    "CATALOGUE",
    "DataError",
    "cache_directory",
    "cached",
    "data_directory",
    "find_dataset",
    "find_file",
    "find_folder",
]
