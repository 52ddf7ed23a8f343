"""Checkpoints: all of Lightning's state in a safetensors file, the newest few kept, damaged ones passed over."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch.plugins import CheckpointIO
from torch import Tensor

from slimrnn._texts import shown
from slimrnn.training.errors import CheckpointError
from slimrnn.training.files import read_tensors, write_tensors

FORMAT = "checkpoint"
KEPT = 2


class SafetensorsIO(CheckpointIO):
    """Lightning's nested state as tensors and JSON. `run` marks whose checkpoints they are."""

    def __init__(self, run: str = "") -> None:
        self.run = run

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any = None) -> None:
        tensors: dict[str, Tensor] = {}
        data = _take_apart(checkpoint, "", tensors)
        write_tensors(Path(path), FORMAT, tensors, {"run": self.run, "checkpoint": data})

    def load_checkpoint(self, path: Any, map_location: Any = None, weights_only: bool | None = None) -> dict[str, Any]:
        tensors, data = read_tensors(Path(path), FORMAT)
        if not isinstance(data, dict) or not {"run", "checkpoint"} <= data.keys():
            raise CheckpointError(f"expected entries run and checkpoint in the metadata of {path}, got {shown(data)}")
        if data["run"] != self.run:
            raise CheckpointError(f"{path} belongs to a run with other settings")
        try:
            checkpoint = _put_together(data["checkpoint"], tensors)
        except (KeyError, TypeError, ValueError, RuntimeError) as error:  # also RecursionError
            raise CheckpointError(f"expected the state of a run in {path}, got another form: {shown(error)}") from None
        step = checkpoint.get("global_step") if isinstance(checkpoint, dict) else None
        if not isinstance(step, int) or isinstance(step, bool) or not 0 <= step < 2**63:
            raise CheckpointError(f"expected global_step, a number of updates, in {path}, got {shown(step)}")
        return dict(checkpoint)

    def remove_checkpoint(self, path: Any) -> None:
        Path(path).unlink(missing_ok=True)


def checkpoint_path(directory: Path, update: int) -> Path:
    return directory / f"update-{update:09d}.safetensors"


def list_checkpoints(directory: Path) -> list[Path]:
    """Oldest first."""
    return sorted(directory.glob("update-*.safetensors"))


def remove_old(directory: Path) -> None:
    """Keep the newest."""
    for path in list_checkpoints(directory)[:-KEPT]:
        path.unlink()


def newest_checkpoint(directory: Path, run: str, say: Callable[[str], None]) -> tuple[Path, int] | None:
    """The newest that is whole, and its update; `say` hears about those that are not. None where there is none."""
    paths = list_checkpoints(directory)
    for path in reversed(paths):
        try:
            return path, SafetensorsIO(run).load_checkpoint(path)["global_step"]
        except CheckpointError as error:
            say(f"{error}; looking for the one before")
    if paths:
        raise CheckpointError(f"none of the {len(paths)} checkpoints in {directory} can be used")
    return None


def _take_apart(value: Any, name: str, tensors: dict[str, Tensor]) -> Any:
    """JSON for everything but the tensors, which are put under their names: every container is a tagged list."""
    if isinstance(value, Tensor):
        tensors[name] = torch.view_as_real(value) if value.is_complex() else value
        return ["complex" if value.is_complex() else "tensor", name]
    if isinstance(value, dict):
        return ["dict", [[key, _take_apart(item, f"{name}.{key}".lstrip("."), tensors)] for key, item in value.items()]]
    if isinstance(value, list | tuple):
        tag = "tuple" if isinstance(value, tuple) else "list"
        return [tag, [_take_apart(item, f"{name}.{i}", tensors) for i, item in enumerate(value)]]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(
        f"expected tensors, numbers, texts and containers of these in a checkpoint, got {value!r} at {name}"
    )


def _put_together(value: Any, tensors: dict[str, Tensor]) -> Any:
    if not isinstance(value, list):
        return value
    tag, content = value
    match tag:
        case "tensor":
            return tensors[content]
        case "complex":
            return torch.view_as_complex(tensors[content])
        case "dict":
            return {key: _put_together(item, tensors) for key, item in content}
        case "list":
            return [_put_together(item, tensors) for item in content]
        case "tuple":
            return tuple(_put_together(item, tensors) for item in content)
    raise ValueError(f"unknown kind {shown(tag)}")
