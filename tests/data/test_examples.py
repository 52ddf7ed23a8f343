"""Example and SequenceExample, from bytes encoded by hand."""

from __future__ import annotations

import sys

import pytest

from slimrnn.data import DataError
from slimrnn.data.examples import _classes, message_class, parse_example, parse_sequence_example
from slimrnn.data.tfrecord import BadRecord
from video_shards import bytes_feature, entry, field, float_feature, int_feature, varint


def test_the_three_kinds_of_values() -> None:
    content = entry("b", bytes_feature(b"x", b"")) + entry("f", float_feature([0.5, -2.0]))
    features = parse_example(field(1, content + entry("i", int_feature([0, 300, 2**40]))))
    assert list(features["b"].bytes_list.value) == [b"x", b""]
    assert list(features["f"].float_list.value) == [0.5, -2.0]
    assert list(features["i"].int64_list.value) == [0, 300, 2**40]
    assert sorted(features) == ["b", "f", "i"]


def test_integers_need_not_be_packed() -> None:
    loose = field(3, varint(1 << 3) + varint(7) + varint(1 << 3) + varint(8))
    assert list(parse_example(field(1, entry("i", loose)))["i"].int64_list.value) == [7, 8]


def test_a_sequence_has_a_context_and_lists() -> None:
    frames = b"".join(field(1, bytes_feature(bytes([k]))) for k in range(3))
    context, lists = parse_sequence_example(
        field(1, entry("id", bytes_feature(b"abcd"))) + field(2, entry("rgb", frames))
    )
    assert context["id"].bytes_list.value[0] == b"abcd"
    assert [feature.bytes_list.value[0] for feature in lists["rgb"].feature] == [b"\0", b"\1", b"\2"]


def test_what_is_written_by_the_classes_has_the_bytes_of_the_schema() -> None:
    example = message_class("Example")()
    example.features.feature["labels"].int64_list.value.extend([3, 4, 300])
    assert example.SerializeToString() == field(1, entry("labels", int_feature([3, 4, 300])))


@pytest.mark.parametrize("record", [b"\x0a\xff", b"\xff" * 20, b"<html>"])
def test_other_bytes_are_a_bad_record(record: bytes) -> None:
    with pytest.raises(BadRecord, match="it is not a SequenceExample: "):
        parse_sequence_example(record)


def test_without_the_package_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "google.protobuf.descriptor_pb2", None)
    _classes.cache_clear()
    with pytest.raises(DataError, match=r'expected the package protobuf, got none: pip install "slimrnn\[data\]"'):
        parse_example(b"")
