"""YouTube-8M (Abu-El-Haija et al. 2016): labels of videos, and features of their frames or the means of these.

Frame level: SequenceExamples with up to 300 frames, one a second, of 1,024 bytes "rgb" and 128 bytes "audio". Video
level: Examples with their means, "mean_rgb" and "mean_audio", as floats. Shape suffixes: T frames, I features.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slimrnn.data.directory import find_folder
from slimrnn.data.examples import parse_example, parse_sequence_example
from slimrnn.data.shards import Shards
from slimrnn.data.tfrecord import BadRecord, read_record
from slimrnn.errors import DataError

SIZES = {"rgb": 1024, "audio": 128}
CLASSES = 3862  # of the release of May 2018; February 2017: 4,716; 2016: 4,800
FRAMES = 300  # of the longest videos
FRAME_BYTES = {"rgb": 1024 + 9, "audio": 128 + 9}  # in a record: with protobuf's tags and lengths
SCALE, SHIFT = 4 / 255, 4 / 512 - 2  # a byte is one of 256 values in [-2, 2]
DATASETS = {"frame": "yt8m", "video": "yt8m_sample"}  # in the catalogue
KINDS = ("train", "validate", "test")  # what the names of shards begin with
LOOKED_AT = 10  # records of a shard, to see what it holds
_unlabelled: set[Path] = set()  # folders whose test shards this process has told of


class Video(NamedTuple):
    """A record. Features are (T, I) bytes, or (1, I) floats at video level."""

    id: str
    labels: NDArray[np.int64]
    features_TI: NDArray[Any]


Parse = Callable[[bytes], Video]


def parser(level: str, classes: int = CLASSES, audio: bool = True, max_frames: int = FRAMES) -> Parse:
    """A function that makes a Video of a record, or raises BadRecord."""
    sizes = SIZES if audio else {"rgb": SIZES["rgb"]}
    if level == "video":
        return partial(_parse_video, sizes=sizes, classes=classes)
    return partial(_parse_frames, sizes=sizes, classes=classes, max_frames=max_frames)


def find_videos(level: str, parse: Parse, folder: Path | None = None) -> dict[str, Shards]:
    """The records of "train", "valid" and "test", in the data set's folder or in another.

    Shards belong to a split by their names. For a split that has none, others give a part of their records."""
    root = find_folder(DATASETS[level]) if folder is None else folder.expanduser()
    if not root.is_dir():
        raise DataError(f"expected a directory with shards of YouTube-8M, got {root}")
    found = {kind: paths for kind in KINDS if (paths := _paths(root, kind, level))}
    for kind, paths in list(found.items()):
        if not _has_labels(paths, level, parse):
            if kind != "test":
                raise DataError(f"expected labels in {paths[0]}, got none in the first {LOOKED_AT} videos")
            _tell_unlabelled(root)
            del found[kind]
    if not found:
        names = ", ".join(f"{kind}*.tfrecord" for kind in KINDS)
        raise DataError(f"expected {level}-level shards of YouTube-8M ({names}) in {root}, got none with labels")
    splits = {split: Shards.of(found[kind]).part(of, places) for split, (kind, of, places) in _shares(found).items()}
    for split, shards in splits.items():
        if not shards.size:
            raise DataError(f"expected videos for {split} in {root}, got none: there are too few records")
    return splits


def _paths(root: Path, kind: str, level: str) -> list[Path]:
    """Those that the official layout does not put into the other level's folder."""
    other = "video" if level == "frame" else "frame"
    paths = sorted(root.rglob(f"{kind}*.tfrecord"))
    return [path for path in paths if other not in path.relative_to(root).parts[:-1]]


def _shares(kinds: Collection[str]) -> dict[str, tuple[str, int, Collection[int]]]:
    """Of each split: whose shards, and which of every so many of their records."""
    whole, tenths = (1, range(1)), range(10)
    if set(kinds) == set(KINDS):
        return {"train": ("train", *whole), "valid": ("validate", *whole), "test": ("test", *whole)}
    if "train" in kinds and "validate" in kinds:  # the published test shards have no labels
        return {"train": ("train", *whole), "valid": ("validate", 2, [0]), "test": ("validate", 2, [1])}
    kind = next(iter(kinds))
    if len(kinds) == 1:
        return {"train": (kind, 10, tenths[:8]), "valid": (kind, 10, [8]), "test": (kind, 10, [9])}
    return {"train": (kind, 10, tenths[:9]), "valid": (kind, 10, [9]), "test": ("test", *whole)}


def _has_labels(paths: list[Path], level: str, parse: Parse) -> bool:
    """Whether one of the first records has any; DataError if none of them is what it should be."""
    shards, problem, usable = Shards.of(paths), "", 0
    for index in range(min(LOOKED_AT, shards.size)):
        path, record = shards.paths[shards.files_N[index]], b""
        try:
            record = read_record(path, int(shards.offsets_N[index]))
            if len(parse(record).labels):
                return True
            usable += 1
        except BadRecord as error:
            problem = problem or f"{path}: {error}{_hint(record, level)}"
    if not usable and problem:
        raise DataError(f"expected {level}-level records of YouTube-8M, got {problem}")
    return False


def _hint(record: bytes, level: str) -> str:
    other = "video" if level == "frame" else "frame"
    try:
        parser(other, classes=2**31)(record)
    except BadRecord:
        return ""
    return f"; this one is of level {other}"


def _tell_unlabelled(root: Path) -> None:
    if root not in _unlabelled:
        _unlabelled.add(root)
        warnings.warn(f"the test shards in {root} have no labels and are left out", RuntimeWarning, stacklevel=4)


def _parse_frames(record: bytes, sizes: dict[str, int], classes: int, max_frames: int) -> Video:
    context, lists = parse_sequence_example(record)
    parts = [_frames(lists, name, size, max_frames) for name, size in sizes.items()]
    if len({len(part) for part in parts}) > 1:
        counts = " and ".join(f"{len(part)} of {name}" for name, part in zip(sizes, parts, strict=True))
        raise BadRecord(f"expected as many frames of all features, got {counts}")
    return Video(_id(context), _labels(context, classes), np.concatenate(parts, 1))


def _frames(lists: Any, name: str, size: int, max_frames: int) -> NDArray[np.uint8]:
    features = lists[name].feature[:max_frames] if name in lists else []
    if not features:
        raise BadRecord(f"expected frames of {name}, got none")
    content = [value for feature in features for value in feature.bytes_list.value]
    wrong = next((value for value in content if len(value) != size), None)
    if wrong is not None or len(content) != len(features):
        got = f"{len(content)} for {len(features)} frames" if wrong is None else f"one of {len(wrong)} bytes"
        raise BadRecord(f"expected {size} bytes of {name} for each frame, got {got}")
    return np.frombuffer(b"".join(content), np.uint8).reshape(-1, size)


def _parse_video(record: bytes, sizes: dict[str, int], classes: int) -> Video:
    features, parts = parse_example(record), []
    for name, size in sizes.items():
        values = features[f"mean_{name}"].float_list.value if f"mean_{name}" in features else []
        if len(values) != size:
            raise BadRecord(f"expected {size} numbers mean_{name}, got {len(values) or 'none'}")
        parts.append(np.array(values, dtype=np.float32))
    means = np.concatenate(parts)[None]
    if not np.isfinite(means).all():
        raise BadRecord("expected finite means, got others")
    return Video(_id(features), _labels(features, classes), means)


def _id(features: Any) -> str:
    """Called "video_id" in the first releases."""
    name = "id" if "id" in features else "video_id"
    values = features[name].bytes_list.value if name in features else []
    return values[0].decode(errors="replace") if values else ""


def _labels(features: Any, classes: int) -> NDArray[np.int64]:
    labels = np.array(features["labels"].int64_list.value if "labels" in features else [], dtype=np.int64)
    wrong = labels[(labels < 0) | (labels >= classes)]
    if len(wrong):
        raise BadRecord(f"expected labels below {classes:,}, got {wrong[0]:,}")
    return labels
