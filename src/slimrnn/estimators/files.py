"""Estimators as files: the net as `slimrnn.save` writes it, and estimator.json beside it. No pickle."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import slimrnn
from slimrnn._disk import disk_errors, whole_file
from slimrnn._texts import shown
from slimrnn.errors import SavedModelError
from slimrnn.exporting import model_files
from slimrnn.layers import SequenceNet
from slimrnn.structures import Structure
from slimrnn.tasks import config_from_dict
from slimrnn.tasks.own.own_task import OwnTask
from slimrnn.training.config import plain

if TYPE_CHECKING:
    from slimrnn.estimators.base import SequenceEstimator

NAME = "estimator.json"
FORMAT = "slimrnn estimator"
VERSION = 1
OF_NET = {"structure": "of the net"}  # in place of a structure, which the net's file has

_reading = partial(disk_errors, SavedModelError, "read")
_writing = partial(disk_errors, SavedModelError, "write")


def save(estimator: SequenceEstimator, directory: str | PathLike[str]) -> None:
    """The net first; estimator.json names its weights, so that halves of two estimators are not taken for one."""
    directory = Path(directory)
    record = {
        "format": FORMAT,
        "version": VERSION,
        "class": type(estimator).__name__,
        "parameters": {name: _parameter(name, value, estimator) for name, value in estimator.get_params().items()},
        "task": plain(estimator.task_),
        "data": estimator.task_.facts(),
        "fitted": estimator._fitted(),
    }
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None:
        record["fitted"]["feature_names_in_"] = list(map(str, names))
    _text(record)  # what cannot be written is told before anything is
    slimrnn.save(estimator.model_, directory)
    record["weights"] = model_files.read_config(directory)["weights"]
    with _writing(directory / NAME), whole_file(directory / NAME) as file:
        file.write(_text(record).encode())


def load(estimator: SequenceEstimator, directory: str | PathLike[str], custom_objects: Iterable[Any]) -> None:
    """Parameters and fitted attributes, set."""
    directory = Path(directory)
    path = directory / NAME
    if not path.exists():
        raise SavedModelError(f"expected a saved estimator, a directory with {NAME}, got {directory}")
    with _reading(path):
        content = path.read_bytes()
    try:
        record = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise SavedModelError(f"{path} is damaged: expected JSON: {shown(str(error), 200)}") from None
    if not isinstance(record, dict) or record.get("format") != FORMAT or record.get("version") != VERSION:
        raise SavedModelError(f"expected {path} to be of the format {FORMAT!r}, version {VERSION}, got another")
    if record.get("class") != type(estimator).__name__:
        raise SavedModelError(f"expected a {type(estimator).__name__} in {directory}, got {shown(record.get('class'))}")
    if model_files.read_config(directory).get("weights") != record.get("weights"):
        raise SavedModelError(f"expected {path} to be of the net beside it, got that of another: save it again")
    net = slimrnn.load(directory, custom_objects=custom_objects)
    if not isinstance(net, SequenceNet):
        raise SavedModelError(f"expected the net of an estimator in {directory}, got a {type(net).__name__}")
    try:
        _set(estimator, record, net)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SavedModelError(f"{path} is damaged: {shown(str(error), 200)}") from None


def _set(estimator: SequenceEstimator, record: Mapping[str, Any], net: SequenceNet) -> None:
    given = {name: net.rnn.structure if value == OF_NET else value for name, value in record["parameters"].items()}
    estimator.set_params(**given)
    options = {name: value for name, value in record["task"].items() if name != "class"}  # nothing is imported
    task = config_from_dict({"task": options}).task
    if not isinstance(task, OwnTask):
        raise ValueError(f"expected a task on sequences, got {task.name}")
    estimator.model_, estimator.task_ = net, task.restored(record["data"])
    fitted = dict(record["fitted"])
    names = fitted.pop("feature_names_in_", None)
    if names is not None:
        fitted["feature_names_in_"] = np.array(names, dtype=object)
    fitted["history_"] = [{n: math.nan if v is None else v for n, v in row.items()} for row in fitted["history_"]]
    estimator._remember(fitted)


def array_record(values: NDArray[Any]) -> dict[str, Any]:
    """An array as plain data; times are counted in their unit."""
    kind = values.dtype
    plain_values = values.astype(np.int64) if kind.kind in "mM" else values
    return {"dtype": "object" if kind.kind == "O" else kind.str, "values": plain_values.tolist()}


def array_of(record: Mapping[str, Any]) -> NDArray[Any]:
    """The inverse; null is NaN."""
    kind = np.dtype(record["dtype"])
    if kind.kind in "mM":
        return np.array(record["values"], dtype=np.int64).astype(kind)
    return np.array(record["values"], dtype=kind)


def _parameter(name: str, value: Any, estimator: SequenceEstimator) -> Any:
    if isinstance(value, Structure) and name == "structure":
        return OF_NET
    if isinstance(value, np.random.RandomState):
        return estimator.seed_  # fit takes the same again
    if isinstance(value, np.generic):
        return value.item()
    return dict(value) if isinstance(value, Mapping) else list(value) if isinstance(value, tuple) else value


def _text(record: Mapping[str, Any]) -> str:
    """JSON, with null for NaN."""
    try:
        return json.dumps(_strict(record), indent=1, allow_nan=False) + "\n"
    except TypeError as error:
        raise TypeError(
            f"expected parameters and classes that are numbers and texts, to save them, got others: {error}"
        ) from None


def _strict(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _strict(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
