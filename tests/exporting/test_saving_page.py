"""The examples of docs/saving.md run and print what the page says."""

from __future__ import annotations

import pytest

from pages import check_examples


def test_the_examples_print_what_they_say(capsys: pytest.CaptureFixture[str]) -> None:
    check_examples("saving.md", capsys)
