"""Moved: `PaperRow` is in `slimrnn.papers`."""

from __future__ import annotations

from slimrnn._moved import moved

__getattr__ = moved(__name__, {"PaperRow": "slimrnn.papers"})
