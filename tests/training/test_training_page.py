"""The examples of docs/training.md run and print what the page says."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "training.md"


def test_the_examples_print_what_they_say(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(examples) == PAGE.read_text().count("```python")
    namespace: dict[str, object] = {"__name__": __name__}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"`isinstance\(treespec, LeafSpec\)` is deprecated")
        warnings.filterwarnings("ignore", ".*does not have many workers")
        for code, printed in examples:
            exec(code, namespace)
            assert _the_same_everywhere(capsys.readouterr().out) == _the_same_everywhere(printed)


def _the_same_everywhere(text: str) -> list[str]:
    """Scores depend on the machine a little, and the speed does."""
    return [re.sub(r"\d+\.\d+", "...", re.sub(r"  [\d.]+/s.*", "", line)) for line in text.splitlines()]
