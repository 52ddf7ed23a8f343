"""The names of `slimrnn.analysis` stay what they are, whichever of its modules are imported besides."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

import pytest

from slimrnn import analysis
from slimrnn.analysis.doctor import advice

MOVED = {
    "bptt": ("slimrnn.analysis.lecture.bptt", ["BPTT", "elman_bptt", "layer_bptt"]),
    "advice": ("slimrnn.analysis.doctor.advice", [n for n, v in vars(advice).items() if isinstance(v, int | float)]),
}


def test_no_module_takes_the_place_of_a_public_name() -> None:
    for module in pkgutil.walk_packages(analysis.__path__, "slimrnn.analysis."):
        importlib.import_module(module.name)
    assert not [name for name in analysis.__all__ if isinstance(getattr(analysis, name), ModuleType)]


@pytest.mark.parametrize(("module", "name"), [(module, name) for module, (_, names) in MOVED.items() for name in names])
def test_documented_modules_say_where_their_names_are(module: str, name: str) -> None:
    home, old = MOVED[module][0], importlib.import_module(f"slimrnn.analysis.{module}")
    with pytest.warns(DeprecationWarning, match=f"slimrnn.analysis.{module}.{name} has moved: import it from {home}"):
        assert getattr(old, name) is getattr(importlib.import_module(home), name)
