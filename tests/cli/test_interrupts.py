"""Ctrl-C before the work begins: while packages are imported."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

# Of a package that takes long to import, during which the user presses Ctrl-C; whoever imports it may hide exceptions.
SLOW = """
import os, signal, time
try:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(20)
except KeyboardInterrupt as error:
    raise ImportError("something else") from error
"""


def heed_interrupts() -> None:
    """As in a terminal: where tests run in the background, a shell has them ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize(
    ("package", "arguments"),
    [
        ("torch", ["tasks"]),
        ("numpy", ["--version"]),
        ("tyro", ["train", "copy", "--help"]),
        ("safetensors", ["train", "copy", "--updates", "1"]),
    ],
)
def test_an_interrupted_import_is_told_in_one_line(package: str, arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / f"{package}.py").write_text(SLOW)
    done = subprocess.run(
        [sys.executable, "-m", "slimrnn", *arguments],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        preexec_fn=heed_interrupts,
    )
    assert (done.returncode, done.stderr) == (130, "slimrnn: interrupted\n")


def test_a_program_that_uses_the_library_keeps_its_own_manners() -> None:
    code = "import signal, slimrnn; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
        preexec_fn=heed_interrupts,
    )
    assert done.stdout == "True\n"
