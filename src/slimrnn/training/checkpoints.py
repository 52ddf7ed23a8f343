"""Checkpoints: everything needed to resume a run, in a safetensors file. The newest two are kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from slimrnn._texts import shown
from slimrnn.errors import CheckpointError
from slimrnn.training.run_files import read_tensors, write_tensors, writing

FORMAT = "checkpoint"
KEPT = 2


def write_checkpoint(path: Path, run: str, checkpoint: dict[str, Any]) -> None:
    """Nested containers of tensors and plain values; `run` marks whose they are."""
    tensors: dict[str, Tensor] = {}
    data = _take_apart(checkpoint, "", tensors)
    write_tensors(path, FORMAT, tensors, {"run": run, "checkpoint": data})


def read_checkpoint(path: Path, run: str) -> dict[str, Any]:
    """CheckpointError if it is damaged or belongs to another run."""
    tensors, data = read_tensors(path, FORMAT)
    if not isinstance(data, dict) or not {"run", "checkpoint"} <= data.keys():
        raise CheckpointError(f"expected entries run and checkpoint in the metadata of {path}, got {shown(data)}")
    if data["run"] != run:
        raise CheckpointError(f"{path} belongs to a run with other settings")
    try:
        checkpoint: dict[str, Any] = _put_together(data["checkpoint"], tensors)
        if "pytorch-lightning_version" in checkpoint:
            checkpoint = _from_lightning(checkpoint)
        update = checkpoint["update"]
    except (LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:  # also RecursionError
        raise CheckpointError(f"expected the state of a run in {path}, got another form: {shown(error)}") from None
    if not isinstance(update, int) or isinstance(update, bool) or not 0 <= update < 2**63:
        raise CheckpointError(f"expected update, a number of updates, in {path}, got {shown(update)}")
    return checkpoint


def checkpoint_path(directory: Path, update: int) -> Path:
    return directory / f"update-{update:09d}.safetensors"


def list_checkpoints(directory: Path) -> list[Path]:
    """Oldest first."""
    return sorted(directory.glob("update-*.safetensors"))


def remove_old(directory: Path) -> None:
    """Keep the newest."""
    for path in list_checkpoints(directory)[:-KEPT]:
        with writing(path):
            path.unlink(missing_ok=True)


def newest_checkpoint(directory: Path, run: str, say: Callable[[str], None]) -> dict[str, Any] | None:
    """The newest intact checkpoint, or None if there are none; damaged ones are reported through `say`."""
    problems: list[CheckpointError] = []
    for path in reversed(list_checkpoints(directory)):
        try:
            return read_checkpoint(path, run)
        except CheckpointError as error:
            say(f"{error}; looking for the one before")
            problems.append(error)
    if problems:
        reason = f"the newest: {problems[0]}"
        raise CheckpointError(f"none of the {len(problems)} checkpoints in {directory} can be used; {reason}")
    return None


def _from_lightning(old: dict[str, Any]) -> dict[str, Any]:
    """Convert a checkpoint of an early run, written by Lightning's Trainer."""
    (loop,) = old["callbacks"].values()
    return {
        "update": old["global_step"],
        "model": {name.removeprefix("model."): weight for name, weight in old["state_dict"].items()},
        "optimizer": old["optimizer_states"][0],
        "schedule": old["lr_schedulers"][0],
        "learner": old["slimrnn"] | {"update": old["global_step"]},
        "batches": old["loops"]["fit_loop"]["state_dict"]["combined_loader"][0],
        "loop": loop,
    }


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
