"""What can be wrong with data, told in one line."""

from __future__ import annotations


class DataError(Exception):
    """Data that is missing, damaged or not to be had; the message names the file and what to do."""
