"""The examples of docs/replace.md run and print what the page says."""

from __future__ import annotations

import pytest

from pages import check_examples


@pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")
def test_layers_of_a_model_are_replaced_as_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    check_examples("replace.md", capsys)
