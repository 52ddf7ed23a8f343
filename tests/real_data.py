"""Tests on real data are for where SLIMRNN_DATA names the directory that holds it."""

from __future__ import annotations

import os

import pytest

needs_data = pytest.mark.skipif(
    not os.environ.get("SLIMRNN_DATA"), reason="needs real data: set SLIMRNN_DATA to the directory that holds it"
)
