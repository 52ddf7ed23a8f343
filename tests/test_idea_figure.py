"""The figure of the README and the landing page is made by its script."""

from __future__ import annotations

from pathlib import Path

from pages import check_figures


def test_the_figure_of_the_idea_is_drawn(tmp_path: Path) -> None:
    check_figures("index.md", "idea.py", tmp_path)
