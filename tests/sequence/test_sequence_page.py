"""The examples of docs/sequence.md run and print what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "sequence.md"


def test_the_examples_print_what_they_say(capsys: pytest.CaptureFixture[str]) -> None:
    examples = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(examples) == PAGE.read_text().count("```python")
    namespace: dict[str, object] = {"__name__": __name__}
    for code, printed in examples:
        exec(code, namespace)
        assert capsys.readouterr().out == printed
