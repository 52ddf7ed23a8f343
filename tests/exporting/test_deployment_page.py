"""The example of the page on deployment."""

from __future__ import annotations

from pathlib import Path

import pytest

from pages import check_examples


@pytest.mark.filterwarnings("ignore")  # torch's own
def test_the_example_runs(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    check_examples("deployment.md", capsys)
