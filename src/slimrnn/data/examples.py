"""Example and SequenceExample, the messages in TensorFlow's records: named lists of bytes, floats or integers.

    Example          features (1)
    SequenceExample  context (1) features, feature_lists (2)
    features         feature (1) map of name to feature
    feature_lists    feature_list (1) map of name to a list of feature (1)
    feature          one of bytes_list (1), float_list (2), int64_list (3), each with value (1)

The classes are made here, in a pool of their own, so that they do not meet those of a loaded TensorFlow."""

from __future__ import annotations

import importlib
from functools import lru_cache
from typing import Any

from slimrnn.data.tfrecord import BadRecord
from slimrnn.errors import DataError

PACKAGE = "slimrnn.examples"
OPTIONAL, REPEATED = 1, 3  # FieldDescriptorProto.Label
FLOAT, INT64, STRING, MESSAGE, BYTES = 2, 3, 9, 11, 12  # FieldDescriptorProto.Type


def parse_example(record: bytes) -> Any:
    """The features by name: `features["labels"].int64_list.value`."""
    return _parse("Example", record).features.feature


def parse_sequence_example(record: bytes) -> tuple[Any, Any]:
    """The features of the whole by name, and the lists: `lists["rgb"].feature[3].bytes_list.value[0]`."""
    example = _parse("SequenceExample", record)
    return example.context.feature, example.feature_lists.feature_list


def message_class(name: str) -> Any:
    """The protobuf class "Example" or "SequenceExample"."""
    return _classes()[name]


def _parse(name: str, record: bytes) -> Any:
    classes = _classes()
    message = classes[name]()
    try:
        message.ParseFromString(record)
    except classes["DecodeError"] as error:
        raise BadRecord(f"it is not a {name}: {error}") from None
    return message


@lru_cache(maxsize=1)
def _classes() -> dict[str, Any]:
    try:
        descriptors, pools, factory, messages = (
            importlib.import_module(f"google.protobuf.{module}")
            for module in ("descriptor_pb2", "descriptor_pool", "message_factory", "message")
        )
    except ModuleNotFoundError:
        raise DataError('expected the package protobuf, got none: pip install "slimrnn[data]"') from None
    file = descriptors.FileDescriptorProto(name=f"{PACKAGE}.proto", package=PACKAGE, syntax="proto3")
    _describe(file)
    pool = pools.DescriptorPool()
    pool.Add(file)
    made = {
        name: factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}"))
        for name in ("Example", "SequenceExample")
    }
    return {**made, "DecodeError": messages.DecodeError}


def _describe(file: Any) -> None:
    """The messages of the table above."""
    add = file.message_type.add
    feature = add(name="Feature")
    feature.oneof_decl.add(name="kind")
    for number, (kind, values) in enumerate((("Bytes", BYTES), ("Float", FLOAT), ("Int64", INT64)), 1):
        add(name=f"{kind}List").field.add(name="value", number=1, label=REPEATED, type=values)
        _add(feature, f"{kind.lower()}_list", number, f"{kind}List", oneof_index=0)
    _add(add(name="FeatureList"), "feature", 1, "Feature", label=REPEATED)
    _add_map(add(name="Features"), "feature", "Feature")
    _add_map(add(name="FeatureLists"), "feature_list", "FeatureList")
    _add(add(name="Example"), "features", 1, "Features")
    sequence = add(name="SequenceExample")
    _add(sequence, "context", 1, "Features")
    _add(sequence, "feature_lists", 2, "FeatureLists")


def _add(message: Any, name: str, number: int, kind: str, **options: Any) -> None:
    """A field that is a message; optional unless `label` says otherwise."""
    options = {"label": OPTIONAL, "type": MESSAGE, "type_name": f".{PACKAGE}.{kind}", **options}
    message.field.add(name=name, number=number, **options)


def _add_map(message: Any, name: str, kind: str) -> None:
    """A map of texts to messages, as protobuf has it: a repeated message of a key and a value."""
    entry = message.nested_type.add(name="".join(part.capitalize() for part in name.split("_")) + "Entry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, label=OPTIONAL, type=STRING)
    _add(entry, "value", 2, kind)
    _add(message, name, 1, f"{message.name}.{entry.name}", label=REPEATED)
