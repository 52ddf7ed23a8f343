"""Speech files to write: audio in both formats, phones, and whole corpora in TIMIT's layouts."""

from __future__ import annotations

import wave
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.int16]


def tone(samples: int, pitch: float = 0.1) -> Samples:
    signal: Samples = np.round(3000 * np.sin(pitch * np.arange(samples))).astype(np.int16)
    return signal


def sphere(samples: Samples, **changed: str) -> bytes:
    """A file as NIST's tools write it; `changed` fields are "-i 2", or empty to leave them out."""
    fields = {
        "channel_count": "-i 1",
        "sample_count": f"-i {len(samples)}",
        "sample_rate": "-i 16000",
        "sample_n_bytes": "-i 2",
        "sample_byte_format": "-s2 01",
        "sample_sig_bits": "-i 16",
    } | changed
    lines = ["NIST_1A", "   1024", *(f"{name} {value}" for name, value in fields.items() if value), "end_head", ""]
    order = ">i2" if fields["sample_byte_format"].endswith("10") else "<i2"
    return "\n".join(lines).encode().ljust(1024) + samples.astype(order).tobytes()


def write_riff(path: Path, samples: Samples, rate: int = 16_000, channels: int = 1, width: int = 2) -> None:
    """By the standard library."""
    with wave.open(str(path), "wb") as file:
        file.setparams((channels, width, rate, 0, "NONE", ""))
        file.writeframes(samples.tobytes())


def write_utterance(
    folder: Path, name: str, phones: Sequence[str] = ("h#", "aa", "q", "h#"), *, riff: bool = False, upper: bool = False
) -> None:
    """100 frames: a quarter of them of each phone, but for the last, which no segment covers."""
    folder.mkdir(parents=True, exist_ok=True)
    audio, text = (folder / (f"{name}.{kind}".upper() if upper else f"{name}.{kind}") for kind in ("wav", "phn"))
    samples = tone(400 + 99 * 160, 0.01 * (1 + sum(map(ord, name.lower())) % 50))
    if riff:
        write_riff(audio, samples)
    else:
        audio.write_bytes(sphere(samples))
    text.write_text("".join(f"{4000 * i} {4000 * (i + 1)} {phone}\n" for i, phone in enumerate(phones)))
