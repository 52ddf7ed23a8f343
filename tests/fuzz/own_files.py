"""Users' files as subjects."""

from __future__ import annotations

import csv
import gzip
import io
import math
import wave
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from subject import Subject

from slimrnn.data.own_files import read_sequences
from slimrnn.data.sequences import Sequences
from speech import tone


def long_rows() -> list[list[object]]:
    rows: list[list[object]] = [["id", "t", "a", "b", "label", "split"]]
    for i in range(12):
        case = i // 4
        b = "" if i == 5 else -1.5e-3 * i
        rows.append([f"s{case}", i % 4, i / 7, b, "xy"[case % 2], ("train", "test")[case % 2]])
    return rows


def _csv(rows: list[list[object]], separator: str = ",", quotes: int = csv.QUOTE_MINIMAL) -> bytes:
    buffer = io.StringIO()
    csv.writer(buffer, delimiter=separator, quoting=quotes, lineterminator="\n").writerows(rows)  # type: ignore[arg-type]
    return buffer.getvalue().encode()


def _dates() -> bytes:
    rows = [f"2026-01-{day:02d} 12:30,{day},{day * 0.5}\n" for day in range(1, 20)]
    return ("when,kwh,price\n" + "".join(rows)).encode()


def _wide() -> list[list[object]]:
    head: list[object] = ["name", *(f"t{n}" for n in range(7)), "label"]
    rows = [[f"n{i}", *(round(math.sin(i + n), 4) for n in range(7)), f"k{i % 3}"] for i in range(9)]
    return [head, *rows]


def _ucr() -> bytes:
    """As the archive's own .tsv: no header, the label first."""
    return "".join("\t".join([str(i % 2), *(str(i + n / 8) for n in range(6))]) + "\n" for i in range(9)).encode()


def _ts() -> tuple[bytes, ...]:
    ragged = ""
    for i in range(5):
        one = ",".join(str(i + t / 4) for t in range(4 + i))
        other = ",".join("?" if t == 1 else str(-t) for t in range(4 + i))
        ragged += f"{one}:{other}:c{i % 2}\n"
    head = "# about\n@problemName p\n@timeStamps false\n@missing true\n@univariate false\n@dimensions 2\n"
    even = "@timestamps false\n@univariate true\n@equalLength true\n@seriesLength 5\n@classLabel true 1 2\n@data\n"
    even += "".join(f"{','.join(str(i * t) for t in range(5))}:{1 + i % 2}\n" for i in range(6))
    timed = "@timeStamps true\n@univariate true\n@classLabel true u v\n@data\n"
    timed += "".join(
        f"(2026-01-0{1 + i} 00:00:00,{i}.5),(2026-01-0{2 + i} 06:00:00,-2):{'uv'[i % 2]}\n" for i in range(5)
    )
    return (
        f"{head}@equalLength false\n@classLabel true c0 c1\n@data\n{ragged}".encode(),
        even.encode(),
        timed.encode(),
    )


def _arff() -> tuple[bytes, ...]:
    head = "% about\n@relation r\n" + "".join(f"@attribute att{n} numeric\n" for n in range(5))
    plain = (
        head
        + "@attribute target {0,1}\n\n@data\n"
        + "".join(
            f"{','.join('?' if i == 2 and n == 4 else str(i - n / 3) for n in range(5))},{i % 2}\n" for i in range(6)
        )
    )
    inner = "@relation r\n@attribute rel relational\n@attribute a0 numeric\n@attribute a1 numeric\n@end rel\n"
    rows = "".join(f"'{i},{i + 1}\\n{-i},{i / 2}',{'pq'[i % 2]}\n" for i in range(6))
    return plain.encode(), f"{inner}@attribute class {{p,q}}\n@data\n{rows}".encode()


def _arrays() -> dict[str, np.ndarray[Any, Any]]:
    values = np.arange(4 * 5 * 2, dtype=np.float64).reshape(4, 5, 2) / 3
    return {"values": values, "lengths": np.array([5, 3, 1, 4]), "labels": np.array(["u", "v", "u", "v"])}


def _npz(compressed: bool) -> bytes:
    buffer = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(buffer, **_arrays())  # type: ignore[arg-type]
    return buffer.getvalue()


def _npy() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, _arrays()["values"])
    return buffer.getvalue()


def _repacked(content: bytes) -> bytes:
    """An .npz whose values are this, with a CRC that fits."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("values.npy", content)
    return buffer.getvalue()


def parquet(rows: list[list[object]]) -> bytes:
    names = [str(name) for name in rows[0]]
    columns = list(zip(*rows[1:], strict=True))
    frame = pl.DataFrame(
        {n: pl.Series([None if v == "" else v for v in c]) for n, c in zip(names, columns, strict=True)}
    )
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


def clip(length: int = 900) -> bytes:
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setparams((1, 2, 8_000, 0, "NONE", ""))
        file.writeframes(tone(length).tobytes())
    return buffer.getvalue()


def _read_clip(path: Path) -> Sequences:
    (path.parent / "labels.csv").write_text(f"file,label\n{path.name},yes\n")
    return read_sequences(path.parent)


def _read_labels(path: Path) -> Sequences:
    for name in ("a.wav", "b.wav"):
        (path.parent / name).write_bytes(clip())
    return read_sequences(path.parent)


def subjects() -> list[Subject]:
    """One for each format."""
    rows, labels = long_rows(), b"file,label\na.wav,yes\nb.wav,no\n"
    long = (_csv(rows), _csv(rows, ";"), _csv(rows, quotes=csv.QUOTE_NONNUMERIC), _dates())
    return [
        Subject("own.csv", long, read_sequences),
        Subject("own.tsv", (_csv(rows, "\t"), _ucr()), read_sequences, share=0.5),
        Subject("own-wide.csv", (_csv(_wide()), _csv(_wide(), "|")), read_sequences, share=0.5),
        Subject("own.csv.gz", long[:1], read_sequences, gzip.compress, share=0.2),
        Subject("own.ts", _ts(), read_sequences),
        Subject("own.arff", _arff(), read_sequences),
        Subject("own.npz", (_npz(True), _npz(False)), read_sequences),
        Subject("own-again.npz", (_npy(),), read_sequences, _repacked, share=0.5),
        Subject("own.npy", (_npy(),), read_sequences, share=0.5),
        Subject("own.parquet", (parquet(rows),), read_sequences, share=0.05),
        Subject("own.wav", (clip(),), _read_clip, share=0.5),
        Subject("labels.csv", (labels,), _read_labels, share=0.2),
    ]
