"""The examples of docs/compress.md run and print what the page says."""

from __future__ import annotations

import pytest

from pages import check_examples


def test_a_model_is_compressed_as_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    check_examples("compress.md", capsys)
