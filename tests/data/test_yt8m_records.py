"""Videos: the real video-level shards, and frame-level ones that the tests write after the published schema."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from real_data import needs_data
from slimrnn.data import DataError, find_folder
from slimrnn.data.shards import Shards
from slimrnn.data.tfrecord import BadRecord, find_records
from slimrnn.data.youtube8m import FRAME_BYTES, find_videos, parser
from video_shards import (
    bytes_feature,
    entry,
    field,
    flip,
    frame_record,
    int_feature,
    some_frames,
    some_records,
    video_record,
    write_shard,
)

FRAMES, MEANS = parser("frame"), parser("video")
SPLITS = ("train", "valid", "test")
IMAGE, SOUND = (field(1, bytes_feature(bytes(size))) for size in (1024, 128))  # of a frame


def ids(shards: Shards) -> list[int]:
    return [int(video.id) for k in range(shards.size) if (video := shards.read(k, FRAMES)) is not None]


@needs_data
def test_the_sample_has_3567_videos() -> None:
    shards = Shards.of(sorted(find_folder("yt8m_sample").glob("*.tfrecord")))
    assert (len(shards.paths), shards.size) == (12, 3_567)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        videos = [video for k in range(shards.size) if (video := shards.read(k, MEANS)) is not None]
    assert len(videos) == len({video.id for video in videos}) == 3_567
    labels = np.concatenate([video.labels for video in videos])
    assert (len(labels), labels.min(), labels.max(), len(set(labels.tolist()))) == (10_765, 0, 3_860, 1_761)
    assert min(len(video.labels) for video in videos) == 1
    means = np.concatenate([video.features_TI for video in videos])
    assert means.shape == (3_567, 1_152)
    assert -2 <= means.min() < means.max() <= 2 + 4 / 512  # of dequantised numbers


@needs_data
def test_the_sample_is_split_by_places_in_its_shards() -> None:
    splits = find_videos("video", MEANS)
    assert {name: shards.size for name, shards in splits.items()} == {"train": 2_864, "valid": 352, "test": 351}
    places = [set(zip(s.files_N.tolist(), s.offsets_N.tolist(), strict=True)) for s in splits.values()]
    assert len(set.union(*places)) == 3_567
    assert set((splits["valid"].places_N % 10).tolist()) == {8}


@pytest.mark.parametrize("key", ["id", "video_id"])
def test_frames_are_rgb_and_audio_side_by_side(key: str) -> None:
    frames = some_frames(7)
    video = FRAMES(frame_record([3, 500, 3861], frames, "x0Yz", key))
    assert (video.id, video.labels.tolist()) == ("x0Yz", [3, 500, 3861])
    assert np.array_equal(video.features_TI, frames)
    assert video.features_TI.dtype == np.uint8


def test_frames_beyond_the_most_are_left_out() -> None:
    frames = some_frames(9)
    assert np.array_equal(parser("frame", max_frames=4)(frame_record([1], frames)).features_TI, frames[:4])


def test_audio_may_be_absent_or_left_out() -> None:
    frames, silent = some_frames(3), parser("frame", audio=False)
    for record in (frame_record([1], frames), frame_record([1], frames[:, :1024])):
        assert np.array_equal(silent(record).features_TI, frames[:, :1024])
    with pytest.raises(BadRecord, match="expected frames of audio, got none"):
        FRAMES(frame_record([1], frames[:, :1024]))


def test_means_are_floats() -> None:
    means = np.linspace(-2, 2, 1152, dtype=np.float32)
    video = MEANS(video_record([0], means.tolist()))
    assert video.features_TI.shape == (1, 1152)
    assert np.array_equal(video.features_TI[0], means)
    assert parser("video", audio=False)(video_record([0], means.tolist())).features_TI.shape == (1, 1024)


def test_a_video_may_have_no_labels() -> None:
    bare = FRAMES(field(2, entry("rgb", IMAGE) + entry("audio", SOUND)))
    assert (bare.id, bare.labels.tolist(), bare.features_TI.shape) == ("", [], (1, 1152))
    assert FRAMES(frame_record([], some_frames(1))).labels.tolist() == []


@pytest.mark.parametrize("frames", [1, 5, 300])
def test_the_size_of_a_record_tells_its_frames(frames: int) -> None:
    record = frame_record(list(range(30)), some_frames(frames))
    assert len(record) // sum(FRAME_BYTES.values()) == frames


def lists(rgb: list[bytes], audio: list[bytes]) -> bytes:
    parts = [entry(name, b"".join(frames)) for name, frames in (("rgb", rgb), ("audio", audio))]
    return field(1, entry("labels", int_feature([1]))) + field(2, b"".join(parts))


@pytest.mark.parametrize(
    ("parse", "record", "message"),
    [
        (
            FRAMES,
            lists([IMAGE] * 3, [SOUND] * 2),
            "expected as many frames of all features, got 3 of rgb and 2 of audio",
        ),
        (FRAMES, lists([IMAGE, SOUND], [SOUND] * 2), "expected 1024 bytes of rgb for each frame, got one of 128 bytes"),
        (FRAMES, lists([field(1, b"")], [SOUND]), "expected 1024 bytes of rgb for each frame, got 0 for 1 frames"),
        (FRAMES, lists([], [SOUND]), "expected frames of rgb, got none"),
        (FRAMES, frame_record([3862], some_frames(1)), "expected labels below 3,862, got 3,862"),
        (MEANS, video_record([1], [0.0] * 1151), "expected 128 numbers mean_audio, got 127"),
        (MEANS, video_record([1], [np.nan] * 1152), "expected finite means, got others"),
        (MEANS, frame_record([1], some_frames(1)), "expected 1024 numbers mean_rgb, got none"),
    ],
)
def test_records_of_another_shape_are_bad(parse: Callable[[bytes], object], record: bytes, message: str) -> None:
    with pytest.raises(BadRecord, match=message):
        parse(record)


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ("train validate test", {"train": range(40), "valid": range(100, 140), "test": range(200, 240)}),
        ("train validate", {"train": range(40), "valid": range(100, 140, 2), "test": range(101, 140, 2)}),
        (
            "train test",
            {"train": [i for i in range(40) if i % 10 < 9], "valid": range(9, 40, 10), "test": range(200, 240)},
        ),
        ("validate", {"train": [i for i in range(100, 140) if i % 10 < 8], "valid": range(108, 140, 10)}),
        ("train", {"train": [i for i in range(40) if i % 10 < 8], "test": range(9, 40, 10)}),
    ],
)
def test_splits_are_by_name_or_by_place(tmp_path: Path, kinds: str, expected: dict[str, range]) -> None:
    for kind in kinds.split():
        first = {"train": 0, "validate": 100, "test": 200}[kind]
        for part in (0, 1):
            write_shard(tmp_path / "frame" / f"{kind}{part}.tfrecord", some_records(20, first + 20 * part))
    found = find_videos("frame", FRAMES, tmp_path)
    assert tuple(found) == SPLITS
    for split, numbers in expected.items():
        assert ids(found[split]) == list(numbers)


def test_the_other_levels_folder_is_passed_over(tmp_path: Path) -> None:
    write_shard(tmp_path / "2/frame/train/train00.tfrecord", some_records(10))
    write_shard(tmp_path / "2/video/train/train00.tfrecord", [video_record([1], [0.0] * 1152)] * 20)
    assert sum(shards.size for shards in find_videos("frame", FRAMES, tmp_path).values()) == 10
    assert sum(shards.size for shards in find_videos("video", MEANS, tmp_path).values()) == 20


def test_test_shards_without_labels_are_left_out_and_said_to_be(tmp_path: Path) -> None:
    for kind in ("train", "validate"):
        write_shard(tmp_path / f"{kind}.tfrecord", some_records(4))
    write_shard(tmp_path / "test.tfrecord", [frame_record([], some_frames(2))] * 4)
    with pytest.warns(RuntimeWarning, match=f"the test shards in {tmp_path} have no labels and are left out") as told:
        assert [find_videos("frame", FRAMES, tmp_path)["test"].size for _ in range(3)] == [2, 2, 2]
    assert len(told) == 1


def test_other_shards_without_labels_are_refused(tmp_path: Path) -> None:
    path = write_shard(tmp_path / "train.tfrecord", [frame_record([], some_frames(2))] * 20)
    with pytest.raises(DataError, match=f"expected labels in {path}, got none in the first 10 videos"):
        find_videos("frame", FRAMES, tmp_path)


def test_one_warning_counts_the_bad_records_of_a_shard(tmp_path: Path) -> None:
    path = write_shard(tmp_path / "train.tfrecord", [*some_records(20), frame_record([9999], some_frames(1))])
    starts = find_records(path)[0]
    for number in (3, 7, 11):
        flip(path, int(starts[number]) + 100 * number)
    shards = Shards.of([path])
    with pytest.warns(RuntimeWarning) as told:
        found = [shards.read(k, FRAMES) for k in (*range(21), *range(21))]
    assert [k for k in range(21) if found[k] is None] == [3, 7, 11, 20]
    assert [str(warning.message) for warning in told] == [
        f"4 of 21 records of {path} cannot be used and are left out; the first: the CRC of the record at byte "
        f"{starts[3]:,} of {path} is wrong"
    ]


def test_a_shard_that_breaks_off_is_used_up_to_there_and_said_to_be(tmp_path: Path) -> None:
    path, whole = (write_shard(tmp_path / name, some_records(5)) for name in ("train0.tfrecord", "train1.tfrecord"))
    end = int(find_records(path)[0][3])
    path.write_bytes(path.read_bytes()[: end + 5])
    with pytest.warns(RuntimeWarning, match="damaged") as told:
        shards = [Shards.of([path, whole]) for _ in range(2)]
    assert ids(shards[1]) == [0, 1, 2, 0, 1, 2, 3, 4]
    assert [str(warning.message) for warning in told] == [
        f"{path} is damaged: it breaks off at byte {end + 5:,}, in the length of a record; the 3 records before that "
        "are used"
    ]


def test_an_empty_shard_is_said_to_be_left_out(tmp_path: Path) -> None:
    paths = [write_shard(tmp_path / "train0", []), write_shard(tmp_path / "train1", some_records(2))]
    with pytest.warns(RuntimeWarning, match="train0 is damaged: it is empty; it is left out"):
        assert ids(Shards.of(paths)) == [0, 1]


def test_a_changed_shard_is_indexed_again(tmp_path: Path) -> None:
    path = write_shard(tmp_path / "train.tfrecord", some_records(2))
    assert Shards.of([path]).size == 2
    write_shard(path, some_records(3))
    assert Shards.of([path]).size == 3


def test_a_shard_without_one_good_record_is_refused(tmp_path: Path) -> None:
    path = write_shard(tmp_path / "train.tfrecord", some_records(2))
    for start in find_records(path)[0][:-1]:
        flip(path, int(start) + 50)
    with pytest.raises(DataError, match=f"expected records that can be used in {path}, got none of 2; the first: "):
        Shards.of([path]).read(0, FRAMES)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "train.tfrecord",
            b"<html>not found</html>",
            "expected a TFRecord, got .*train.tfrecord: the CRC of the length",
        ),
        ("data.tfrecord", b"", r"expected frame-level shards of YouTube-8M \(train\*.tfrecord, .*\) in .*, got none"),
        ("train.csv", b"a,b", r"expected frame-level shards of YouTube-8M \(train\*.tfrecord, .*\) in .*, got none"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        find_videos("frame", FRAMES, tmp_path)


def test_shards_of_the_other_level_are_recognised(tmp_path: Path) -> None:
    write_shard(tmp_path / "train.tfrecord", [video_record([1], [0.0] * 1152)] * 20)
    with pytest.raises(
        DataError, match=r"train.tfrecord: expected frames of rgb, got none; this one is of level video"
    ):
        find_videos("frame", FRAMES, tmp_path)
    write_shard(tmp_path / "train.tfrecord", some_records(20))
    with pytest.raises(DataError, match=r"expected video-level records of .*; this one is of level frame"):
        find_videos("video", MEANS, tmp_path)


def test_too_few_records_and_missing_folders_are_refused(tmp_path: Path) -> None:
    write_shard(tmp_path / "train.tfrecord", some_records(8))
    with pytest.raises(DataError, match=r"expected videos for valid in .*, got none: there are too few records"):
        find_videos("frame", FRAMES, tmp_path)
    with pytest.raises(DataError, match=r"expected a directory with shards of YouTube-8M, got .*none"):
        find_videos("frame", FRAMES, tmp_path / "none")
