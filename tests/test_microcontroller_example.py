"""examples/microcontroller in small: digits are learned, exported to C, and run on boards if there is an emulator."""

from __future__ import annotations

import importlib
import shutil
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from numpy.typing import NDArray

from slimrnn.data import mnist

FOLDER = Path(__file__).parents[1] / "examples" / "microcontroller"
HAS_BOARDS = all(shutil.which(name) for name in ("arm-none-eabi-gcc", "qemu-system-arm"))


def stripes(split: str) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """A column of light for each digit."""
    labels = (np.arange(300) % 10).astype(np.uint8)
    images = np.zeros((300, 28, 28), np.uint8)
    for image, digit in zip(images, labels, strict=True):
        image[:, 2 * digit : 2 * digit + 3] = 255
    return images, labels


@pytest.fixture
def digits(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.setattr(mnist, "load_mnist_split", stripes)
    return importlib.import_module("digits")


@pytest.fixture
def out(digits: ModuleType, tmp_path: Path) -> Path:
    for command in ("train", "export"):
        digits.main([command, "--out", str(tmp_path), "--epochs", "2"])
    return tmp_path


def test_a_net_is_trained_quantized_and_exported(capsys: pytest.CaptureFixture[str], out: Path) -> None:
    found = sorted(path.name for path in out.iterdir() if path.is_file())
    assert found == [f"{name}.{suffix}" for name in ("digits", "digits_float") for suffix in ("c", "c.proof.json", "h")]
    said = capsys.readouterr().out
    assert "bytes of weights" in said
    assert "0.0e+00" in said  # int8: every bit


@pytest.mark.skipif(not HAS_BOARDS, reason="there is no arm-none-eabi-gcc or no qemu-system-arm")
def test_boards_give_the_answers_of_torch(out: Path, digits: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    digits.main(["run", "--out", str(out), "--images", "2", "--boards", "Cortex-M0", "Cortex-M4F"])
    said = capsys.readouterr().out
    assert said.count("2 of 2 answers as in torch") == 4


def test_what_is_missing_is_named(digits: ModuleType, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(SystemExit, match="apt-get install gcc-arm-none-eabi qemu-system-arm"):
        digits.main(["run", "--out", str(out), "--images", "2"])
