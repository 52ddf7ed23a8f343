"""Every reader of a file: good files for it, how it is called, and how to make the checksums of a damaged one right."""

from __future__ import annotations

import gzip
import io
import json
import struct
import tarfile
import tempfile
import wave
import zipfile
from functools import partial
from pathlib import Path

import artefacts
import numpy as np
import own_files
import polars as pl
import safetensors.torch
import torch
import yaml
from subject import Subject
from torch import nn

from slimrnn import GRU, Leaky, LowRank, Sparse
from slimrnn._tensor_files import VERSION, checksum
from slimrnn.cli.settings import load
from slimrnn.data.audio import read_audio
from slimrnn.data.idx import read_idx
from slimrnn.data.interactions import read_interactions
from slimrnn.data.phones import frame_phones, read_phones
from slimrnn.data.shards import Shards
from slimrnn.data.text import parse_ptb, read_text
from slimrnn.data.tfrecord import masked_crc
from slimrnn.data.unpack import unpack
from slimrnn.data.youtube8m import parser
from slimrnn.exporting import load as load_model
from slimrnn.exporting import model_files, save
from slimrnn.tasks import AddingTask, config_from_dict, config_to_dict
from slimrnn.training import Config, ModelConfig, Run
from slimrnn.training.checkpoints import newest_checkpoint, read_checkpoint
from slimrnn.training.checks import build_model, check
from slimrnn.training.curve import Curve, read_curve
from slimrnn.training.nets import WEIGHTS, read_net
from speech import sphere, tone
from video_shards import frame_record, some_frames

CONFIG = Config(AddingTask(6), ModelConfig("gru", 4))


def _log(separator: str, header: str = "user,item,timestamp\n") -> bytes:
    rows = [f"u{i % 5},{i % 7},{1000 + 3 * i}\n" for i in range(30)]
    return (header + "".join(rows)).replace(",", separator).encode()


def _parquet() -> bytes:
    buffer = io.BytesIO()
    rows = {"user": [f"u{i % 5}" for i in range(30)], "item": [i % 7 for i in range(30)], "timestamp": range(30)}
    pl.DataFrame({**rows, "timestamp": [float(i) for i in range(30)]}).write_parquet(buffer)
    return buffer.getvalue()


def _record() -> bytes:
    scores = {"valid": {"loss": 0.5}, "test": {"loss": None}}
    result = {"ended": "finished", "updates": 40, "seconds": 1.5, "best_update": 30, "best": scores, "final": scores}
    record = {"status": "finished", "config": config_to_dict(CONFIG), "parameters": {"total": 7}, "resumed": [10]}
    return json.dumps({**record, "result": {**result, "recoveries": []}}, indent=2).encode()


def _read_record(path: Path) -> None:
    run = Run(path.parent)
    _ = run.status, run.result, run.best_weights, run.parameters
    check(config_from_dict(run.config))


def _read_settings(path: Path) -> None:
    check(load(path))


def _tensors(kind: str, data: object) -> bytes:
    return _signed(build_model(CONFIG).state_dict(), {"format": kind, "version": VERSION, "data": json.dumps(data)})


def _signed(tensors: dict[str, torch.Tensor], metadata: dict[str, str]) -> bytes:
    return bytes(safetensors.torch.save(tensors, metadata | {"checksum": checksum(metadata, tensors)}))


def _weights() -> bytes:
    return _tensors(WEIGHTS, {"update": 3, "score": 0.5})


def _checkpoint() -> bytes:
    names = sorted(build_model(CONFIG).state_dict())
    state = ["dict", [[name, ["tensor", name]] for name in names]]
    entries = [["update", 7], ["model", state], ["rates", ["list", [0.1, ["tuple", [1, None]]]]]]
    return _tensors("checkpoint", {"run": "", "checkpoint": ["dict", entries]})


def _resigned(kind: str, good: bytes, text: bytes) -> bytes:
    """`text` as the data of the metadata, whatever it is, with the checksum that fits."""
    data = text.decode("utf-8", errors="replace")
    return _signed(safetensors.torch.load(good), {"format": kind, "version": VERSION, "data": data})


def _data_of(content: bytes) -> bytes:
    size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8 : 8 + size])
    return str(header["__metadata__"]["data"]).encode()


def _signed_config(content: bytes) -> bytes:
    """With the checksum that fits, where it is a config at all."""
    try:
        config = json.loads(content)
        config["checksum"] = model_files.checksum({n: v for n, v in config.items() if n != "checksum"})
        return json.dumps(config).encode()
    except (ValueError, TypeError, AttributeError, RecursionError):
        return content


def _read_model(weights: bytes, name: str, path: Path) -> None:
    """A config, which lies beside whole weights."""
    (path.parent / name).write_bytes(weights)
    load_model(path.parent)


def _saved_models() -> list[Subject]:
    layer = GRU(3, 4, 2, structure=LowRank(1) + Sparse(0.5, seed=2), leak=Leaky(0.5), dropout=0.25)
    with tempfile.TemporaryDirectory() as directory:
        save(nn.Sequential(layer, nn.Linear(4, 2)), directory)
        config = (Path(directory) / model_files.CONFIG).read_bytes()
        name = json.loads(config)["weights"]
        weights = (Path(directory) / name).read_bytes()
    return [Subject("config.json", (config,), partial(_read_model, weights, name), _signed_config)]


def _read_checkpoint(path: Path) -> None:
    newest_checkpoint(path.parent, "", lambda _: None)
    read_checkpoint(path, "")


def _idx() -> bytes:
    images = np.arange(3 * 4 * 5, dtype=np.uint8)
    return b"\0\0\x08\3" + struct.pack(">3I", 3, 4, 5) + images.tobytes()


def _zip() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("top/a.txt", "top/deep/b.txt"):
            archive.writestr(name, b"content of " * 40)
    return buffer.getvalue()


def _tar(compression: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=f"w:{compression}", format=tarfile.PAX_FORMAT) as archive:  # type: ignore[call-overload]
        for name in ("top/a.txt", f"top/{'long' * 40}.txt"):
            member = tarfile.TarInfo(name)
            member.size, member.pax_headers = 440, {"mtime": "1.5"}
            archive.addfile(member, io.BytesIO(b"content of " * 40))
    return buffer.getvalue()


def _unpack(path: Path) -> None:
    folder = path.parent / f"{path.name}-folder"
    folder.mkdir()
    unpack(path, folder, "top/")


def _riff() -> bytes:
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setparams((1, 2, 16_000, 0, "NONE", ""))
        file.writeframes(tone(500).tobytes())
    return buffer.getvalue()


def _read_phones(path: Path) -> None:
    frame_phones(read_phones(path), np.arange(200, 8000, 160))


def _shard(records: list[bytes]) -> bytes:
    content = b""
    for record in records:
        length = struct.pack("<Q", len(record))
        content += length + struct.pack("<I", masked_crc(length)) + record + struct.pack("<I", masked_crc(record))
    return content


def _read_shard(path: Path) -> None:
    shards = Shards.of([path])
    for index in range(shards.size):
        shards.read(index, parser("frame"))


def _read_ptb(path: Path) -> None:
    parse_ptb(path.read_bytes(), path)


def subjects() -> list[Subject]:
    """All readers."""
    return [*_logs(), *_runs(), *_saved_models(), *artefacts.subjects(), *_data_sets(), *own_files.subjects()]


def _logs() -> list[Subject]:
    csv = _log(",")
    dates = b"user,item,time\n" + b"".join(b"u%d,7,2026-01-%02d\n" % (day % 3, day) for day in range(1, 29))
    return [
        Subject("log.csv", (csv, _log(";"), dates), read_interactions),
        Subject("log.tsv", (_log("\t"),), read_interactions, share=0.5),
        Subject("log.txt", (_log(" ", ""),), read_interactions, share=0.5),
        Subject("log.dat", (b"1::2::3::4\n5::6::7::8\n" * 5,), read_interactions, share=0.5),
        Subject("log.csv.gz", (csv,), read_interactions, repair=gzip.compress),
        Subject("log-as-it-is.csv.gz", (gzip.compress(csv),), read_interactions),
        Subject("log.parquet", (_parquet(),), read_interactions, share=0.2),
    ]


def _runs() -> list[Subject]:
    weights, checkpoint = _weights(), _checkpoint()
    curve = b"update,seconds,lr,train/loss,valid/loss\n0,0.1,0.01,,0.5\n10,0.2,0.01,0.4,0.3\n20,0.3,1e-05,0.2,inf\n"
    settings = yaml.safe_dump(config_to_dict(CONFIG)).encode()
    aliases = b"task: &a {name: adding, length: 9}\nseed: &b 3\nmodel: {<<: {hidden: 5}}\nupdates: *b\n"
    return [
        Subject("settings.yaml", (settings, aliases), _read_settings),
        Subject("run.json", (_record(),), _read_record),
        Subject("curve.csv", (curve,), read_curve),
        Subject("curve-to-go-on.csv", (curve,), partial(Curve, last=10)),
        Subject("best.safetensors", (weights,), lambda path: read_net(path, CONFIG)),
        Subject(
            "best-signed.safetensors",
            (_data_of(weights),),
            lambda path: read_net(path, CONFIG),
            partial(_resigned, WEIGHTS, weights),
        ),
        Subject("update-000000007.safetensors", (checkpoint,), _read_checkpoint),
        Subject(
            "update-000000008.safetensors",
            (_data_of(checkpoint),),
            _read_checkpoint,
            partial(_resigned, "checkpoint", checkpoint),
        ),
    ]


def _data_sets() -> list[Subject]:
    idx, record = _idx(), frame_record([1, 2], some_frames(2))
    phones = b"".join(b"%d %d %s\n" % (1000 * i, 1000 * i + 1000, name) for i, name in enumerate((b"h#", b"aa", b"q")))
    return [
        Subject("images", (idx,), lambda path: read_idx(path, 3)),
        Subject("images.gz", (gzip.compress(idx),), lambda path: read_idx(path, 3)),
        Subject("images-packed-again.gz", (idx,), lambda path: read_idx(path, 3), gzip.compress),
        Subject("archive.zip", (_zip(),), _unpack),
        Subject("archive.tar", (_tar(""),), _unpack),
        Subject("archive.tar.gz", (_tar("gz"),), _unpack, share=0.5),
        Subject("archive.tar.xz", (_tar("xz"), _tar("bz2")), _unpack, share=0.5),
        Subject("archive-packed-again.tar.gz", (_tar(""),), _unpack, gzip.compress),
        Subject("speech.wav", (_riff(), sphere(tone(500))), lambda path: read_audio(path, 16_000)),
        Subject("sphere.wav", (sphere(tone(50)),), lambda path: read_audio(path, 16_000)),
        Subject("speech.phn", (phones,), _read_phones),
        Subject("train00.tfrecord", (_shard([record, record]),), _read_shard),
        Subject("train01.tfrecord", (record,), _read_shard, lambda content: _shard([content])),
        Subject("text.txt", (("To be – or not.\n" * 9).encode(),), partial(read_text, split="train")),
        Subject("ptb.char.txt", (b"t o _ b e \n " * 9,), _read_ptb),
    ]
