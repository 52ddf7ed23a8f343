"""run.json: settings, versions and result of a run."""

from __future__ import annotations

import hashlib
import json
import math
import platform
import shlex
import sys
from dataclasses import asdict, dataclass, fields, is_dataclass
from datetime import datetime, timezone
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy
import torch
from torch import nn

import slimrnn
from slimrnn._texts import listed, shown
from slimrnn.errors import ConfigError, RunDirectoryError
from slimrnn.training.config import Config, plain
from slimrnn.training.curve import read_curve
from slimrnn.training.run_files import write_whole
from slimrnn.training.task import Task

Scores = dict[str, dict[str, float]]  # by set and by name
ENTRIES: dict[str, type] = {  # what a record may have beside its settings
    "status": str,
    "fingerprint": str,
    "parameters": dict,
    "data": dict,
    "result": dict,
    "resumed": list,
    "resumed_by": list,
}
_IN_WORDS: dict[type, str] = {str: "a text", dict: "a dict", list: "a list"}
# May differ when a run goes on.
FREE = {"out", "devices", "workers", "threads", "tensorboard", "updates", "stop_at", "patience"}


@dataclass(frozen=True)
class Result:
    """The result of a run."""

    directory: Path
    ended: str  #: finished, target, patience, budget, interrupted
    updates: int  #: done in all
    seconds: float  #: of training and evaluations on the way
    best_update: int | None  #: after which the net was best on the validation set
    best: Scores  #: scores of that net
    final: Scores  #: scores of the net after the last update
    recoveries: tuple[dict[str, Any], ...] = ()

    def score(self, split: str = "test", name: str = "loss") -> float:
        """Of the best net."""
        return self.best[split][name]


class Run:
    """A run directory, read."""

    def __init__(self, directory: Path | str) -> None:
        self.directory = Path(directory)
        path = self.directory / "run.json"
        try:
            self.record: dict[str, Any] = json.loads(path.read_bytes())
        except FileNotFoundError:
            raise RunDirectoryError(
                f"expected the directory of a run, got {directory}, which has no run.json"
            ) from None
        except NotADirectoryError:
            raise RunDirectoryError(f"expected the directory of a run, got {directory}, which is a file") from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise RunDirectoryError(f"cannot read {path}: {reason}") from None
        except RecursionError:
            raise RunDirectoryError(f"cannot read {path}: its values are nested too deeply") from None
        if not isinstance(self.record, dict) or not isinstance(self.record.get("config"), dict):
            raise RunDirectoryError(f"expected the settings of a run in {path}, got none")
        for name, kind in ENTRIES.items():
            value = self.record.get(name)
            if value is not None and not isinstance(value, kind):
                raise RunDirectoryError(f"expected {name} in {path} to be {_IN_WORDS[kind]}, got {shown(value)}")

    @property
    def config(self) -> dict[str, Any]:
        """The settings, as plain data."""
        config: dict[str, Any] = self.record["config"]
        return config

    @property
    def status(self) -> str:
        """running (or killed), finished, target, patience, budget, interrupted, or failed: and why."""
        return str(self.record.get("status", "unknown"))

    @property
    def parameters(self) -> int:
        """Of the whole net."""
        total = (self.record.get("parameters") or {}).get("total")
        if not isinstance(total, int) or isinstance(total, bool):
            path = self.directory / "run.json"
            raise RunDirectoryError(
                f"expected the number of parameters as parameters.total in {path}, got {shown(total)}"
            )
        return total

    @cached_property
    def curve(self) -> dict[str, list[float]]:
        """Columns of curve.csv."""
        return read_curve(self.directory / "curve.csv")

    def column(self, name: str) -> list[float]:
        """A column of the curve, which has to be there."""
        if name not in self.curve:
            found = listed(self.curve) or "none"
            raise RunDirectoryError(f"expected a column {name} in {self.directory / 'curve.csv'}, got {found}")
        return self.curve[name]

    @property
    def result(self) -> Result | None:
        """The result; None if the run is going on or was killed."""
        if self.record.get("result") is None:
            return None
        try:
            return _result(self.directory, self.record["result"])
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            path = self.directory / "run.json"
            raise RunDirectoryError(
                f"expected the result of a run in {path}, got another form: {listed([str(error)])}"
            ) from None

    @property
    def best_weights(self) -> Path:
        """The file of the best net, which in a run that was stopped between evaluations may be the last one."""
        result = self.result
        is_last = (
            result is not None and result.ended in ("budget", "interrupted") and result.best_update == result.updates
        )
        return self.directory / ("final.safetensors" if is_last else "best.safetensors")

    def write(self, **changes: Any) -> None:
        """Change entries of run.json."""
        self.record |= changes
        content = json.dumps(_strict(self.record), indent=2, allow_nan=False)
        write_whole(self.directory / "run.json", content.encode())

    def check_continues(self, config: Config) -> None:
        """Refuse settings and data other than those the run began with."""
        if self.record.get("fingerprint") not in (None, fingerprint(config)):
            now = plain(config)
            differing = [name for name in now if name not in FREE and now[name] != self.config.get(name)]
            raise ConfigError(
                f"expected the settings that {self.directory} began with, got other {', '.join(differing)}"
            )
        before = self.config.get("updates")
        if config.optim.schedule == "cosine" and config.updates != before:
            raise ConfigError(
                f"expected {shown(before)} updates, for which the cosine was made, got {config.updates:,}"
            )
        config.task.check_data(self.record.get("data") or {})


def start_record(directory: Path, config: Config, model: nn.Module, command: str | None) -> Run:
    """The first run.json of a run."""
    run = Run.__new__(Run)
    run.directory, run.record = directory, {}
    run.write(
        status="running",
        command=command or shlex.join(sys.orig_argv),
        started=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        config=plain(config),
        fingerprint=fingerprint(config),
        seed=config.seed,
        parameters=_parameters(model),
        data=config.task.facts(),
        versions={
            "slimrnn": slimrnn.__version__,
            "python": platform.python_version(),
            "torch": torch.__version__,
            "lightning": version("lightning"),
            "numpy": numpy.__version__,
        },
        machine={"processor": platform.machine(), "threads": config.threads or torch.get_num_threads()},
        result=None,
    )
    return run


def fingerprint(config: Config) -> str:
    """Of the settings that a checkpoint depends on; one that is at its default counts as if it did not exist, so that
    runs outlive the addition of settings."""
    kept = {name: value for name, value in _changed(config).items() if name not in FREE}
    return hashlib.blake2b(json.dumps(kept, sort_keys=True).encode(), digest_size=8).hexdigest()


def _strict(value: Any) -> Any:
    """JSON has no NaN and no infinity: null."""
    if isinstance(value, dict):
        return {key: _strict(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _result(directory: Path, values: dict[str, Any]) -> Result:
    nets = {net: {split: _numbers(scores) for split, scores in values[net].items()} for net in ("best", "final")}
    result = Result(directory, **values | nets | {"recoveries": tuple(values["recoveries"])})
    for name, kind in (("ended", str), ("updates", int), ("seconds", int | float), ("best_update", int | None)):
        if not isinstance(getattr(result, name), kind):
            raise TypeError(f"{name} is {shown(getattr(result, name))}")
    if not all(isinstance(recovery, dict) for recovery in result.recoveries):
        raise TypeError(f"recoveries are {shown(result.recoveries)}")
    return result


def _numbers(scores: dict[str, float | None]) -> dict[str, float]:
    return {name: math.nan if value is None else float(value) for name, value in scores.items()}


def _changed(settings: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"name": settings.name} if isinstance(settings, Task) else {}
    for field in fields(settings):
        value = getattr(settings, field.name)
        if is_dataclass(value):
            found[field.name] = _changed(value)
        elif value != field.default:
            found[field.name] = _floats(plain(value)) if "float" in str(field.type) else plain(value)
    return found


def _floats(value: Any) -> Any:
    """With whole numbers as floats, which they are after reading run.json again."""
    if isinstance(value, list):
        return [_floats(item) for item in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _parameters(model: nn.Module) -> dict[str, Any]:
    found = slimrnn.summary(model)
    layers = [asdict(layer) | {"total": layer.total} for layer in found.layers]
    return {
        "total": found.total,
        "recurrent": sum(layer.recurrent for layer in found.layers),
        "trainable": sum(p.numel() for p in model.parameters() if p.requires_grad),
        "layers": layers,
    }
