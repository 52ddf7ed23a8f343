"""The examples of docs/tasks.md run and print what the page says."""

from __future__ import annotations

import pytest

from pages import check_examples
from slimrnn.papers import paper_rows


def test_the_examples_print_what_they_say(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slimrnn.papers.registry._BY_NAME", paper_rows())  # the page registers a row
    check_examples("tasks.md", capsys)
