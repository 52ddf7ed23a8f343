"""`slimrnn doctor`."""

from __future__ import annotations

import pytest
import torch

from slimrnn.cli import main
from slimrnn.ops import resolve_backend


def test_doctor_tells_versions_and_backend(capsys: pytest.CaptureFixture[str]) -> None:
    main(["doctor"])
    told = dict(line.split("  ", 1) for line in capsys.readouterr().out.splitlines())
    assert told["torch"].strip() == torch.__version__
    assert told["backend"].strip().startswith(resolve_backend("auto"))


def test_unknown_command_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["docter"])
    assert stop.value.code == 2
    assert "invalid choice: 'docter'" in capsys.readouterr().err
