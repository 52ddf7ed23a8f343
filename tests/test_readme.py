"""The README's first example runs and prints what the README says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from slimrnn.ops import resolve_backend


def test_first_example_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    text = (Path(__file__).parents[1] / "README.md").read_text()
    found = re.search(r"```python\n(?P<code>.*?)```\n\n```\n(?P<output>.*?)```", text, re.DOTALL)
    assert found
    exec(found["code"], {})
    shown = found["output"].replace("backend='native'", f"backend={resolve_backend('auto')!r}")
    assert capsys.readouterr().out == shown
