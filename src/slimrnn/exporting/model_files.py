"""The files of a saved model: config.json, which names the file of its weights. Both are whole or not there.

The weights get a name of their own in every version of the model, and config.json, which is written last, tells which:
a process that is killed while it saves leaves the model that was there before.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor

from slimrnn._disk import disk_errors, whole_file
from slimrnn._tensor_files import Sizes, packed, read
from slimrnn._texts import shown
from slimrnn.errors import SavedModelError

CONFIG = "config.json"
FORMAT = "slimrnn model"
VERSION = 1
WEIGHTS = "model weights"  # name of the format
MOST_BYTES = 64 * 2**20  # of a config, which may hold a mask of 8,000 x 8,000 entries
_NAME = re.compile(r"weights-([0-9a-f]{32})\.safetensors")

_reading = partial(disk_errors, SavedModelError, "read")
_writing = partial(disk_errors, SavedModelError, "write")


def write(directory: Path, config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """A model in place of the one that was there."""
    with _writing(directory):
        directory.mkdir(parents=True, exist_ok=True)
    before = _weights_before(directory)
    content, digest = packed(WEIGHTS, tensors)
    name = f"weights-{digest}.safetensors"
    whole: dict[str, Any] = {"format": FORMAT, "version": VERSION, **config, "weights": name}
    whole["checksum"] = checksum(whole)
    for path, written in ((directory / name, content), (directory / CONFIG, f"{_text(whole)}\n".encode())):
        with _writing(path), whole_file(path) as file:
            file.write(written)
    if before is not None and before != name:
        with _writing(directory / before):
            (directory / before).unlink(missing_ok=True)


def read_config(directory: Path) -> dict[str, Any]:
    """What config.json says, known to be ours and undamaged."""
    path = directory / CONFIG
    if not path.exists():
        raise SavedModelError(f"expected a saved model, a directory with a {CONFIG}, got {directory}")
    with _reading(path):
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise SavedModelError(f"expected a {CONFIG} of at most {MOST_BYTES:,} bytes, got {size:,} in {path}")
        content = path.read_bytes()
    try:
        config = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise SavedModelError(f"{path} is damaged: expected JSON: {shown(str(error), 200)}") from None
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise SavedModelError(f"{path} is no {CONFIG} of slimrnn: expected an entry format={FORMAT!r}")
    version = config.get("version")
    if isinstance(version, int) and version > VERSION:
        raise SavedModelError(f"{path} is from a newer slimrnn: expected version {VERSION}, got {shown(version)}")
    if version != VERSION or config.pop("checksum", None) != checksum(config):
        raise SavedModelError(f"{path} is damaged or was edited: its checksum does not fit. Change the model in Python")
    return config


def is_all_of(directory: Path, beside: Collection[str] = ()) -> bool:
    """Whether a saved model is there, and nothing else, except for files of these names."""
    try:
        read_config(directory)
    except SavedModelError:
        return False
    return all(file.name in (CONFIG, *beside) or _NAME.fullmatch(file.name) for file in directory.iterdir())


def read_weights(directory: Path, config: Mapping[str, Any], check: Callable[[Sizes], None]) -> dict[str, Tensor]:
    """The tensors of a model; `check` sees their sizes before they are read."""
    name = config.get("weights")
    match = _NAME.fullmatch(name) if isinstance(name, str) else None  # no way out of the directory
    if match is None:
        raise SavedModelError(f"expected the name of a file of weights in {directory / CONFIG}, got {shown(name)}")
    with _reading(directory / match[0]):
        tensors, _ = read(directory / match[0], WEIGHTS, SavedModelError, check, match[1])
    return tensors


def checksum(config: Mapping[str, Any]) -> str:
    """Covers all of a config but the checksum itself."""
    return hashlib.blake2b(json.dumps(config, sort_keys=True).encode(), digest_size=16).hexdigest()


def _weights_before(directory: Path) -> str | None:
    """The weights of the model that is there; SavedModelError for a config.json of something else."""
    try:
        name = read_config(directory).get("weights")
    except SavedModelError as error:
        if not (directory / CONFIG).exists():
            return None
        raise SavedModelError(f"expected an empty directory, or one with a saved model, to save in: {error}") from None
    return name if isinstance(name, str) and _NAME.fullmatch(name) else None


def _text(value: Any, indent: int = 0) -> str:
    """JSON to be read by people: what is short stays on one line."""
    line = json.dumps(value, allow_nan=False, ensure_ascii=False)
    if len(line) <= 100 or not isinstance(value, dict | list):
        return line
    inside, outside = "\n" + " " * (indent + 2), "\n" + " " * indent
    if isinstance(value, list):
        return "[" + ",".join(inside + _text(item, indent + 2) for item in value) + outside + "]"
    items = (f"{inside}{json.dumps(name)}: {_text(item, indent + 2)}" for name, item in value.items())
    return "{" + ",".join(items) + outside + "}"
