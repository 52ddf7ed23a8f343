"""The papers' results as rows: settings, the published figure, and the verdict on our runs of them."""

from __future__ import annotations

from slimrnn.papers.registry import find_row, paper_rows, register_rows
from slimrnn.papers.row import PaperRow
from slimrnn.papers.verdict import Verdict, judge, run_directory

__all__ = ["PaperRow", "Verdict", "find_row", "judge", "paper_rows", "register_rows", "run_directory"]
