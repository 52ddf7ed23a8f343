"""A run that is stopped after one update and resumed is the run that was not stopped."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from slimrnn.training import Config, Result, Run, resume, train


def check_exact_resume(config: Config, directory: Path) -> Result:
    """Compare the final scores and the curves, and return the result of the run that was not stopped."""
    whole = train(replace(config, out=directory / "whole"), quiet=True)
    stopped = replace(config, out=directory / "stopped")
    assert train(stopped, budget=0, quiet=True).ended == "budget"
    assert resume(directory / "stopped", stopped, quiet=True).final == whole.final
    curves = [Run(directory / name).curve for name in ("whole", "stopped")]
    for curve in curves:
        del curve["seconds"]
    assert repr(curves[0]) == repr(curves[1])
    return whole
