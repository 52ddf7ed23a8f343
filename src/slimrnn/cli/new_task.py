"""`slimrnn new-task`: a file with a working task to start from."""

from __future__ import annotations

import keyword
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from tyro import MISSING
from tyro.conf import Positional

from slimrnn._texts import shown
from slimrnn.cli.parsing import parse
from slimrnn.errors import UsageError

SKELETON = Path(__file__).with_name("task_skeleton.py")


@dataclass(frozen=True)
class Options:
    """Write NAME.py, a small complete task with data of its own, to be changed into yours."""

    name: Positional[str] = MISSING
    """name of the task, such as gestures or bird-calls"""


def run(arguments: Sequence[str]) -> None:
    """Write the file, and say how to train on it."""
    name = parse(Options(), arguments, "slimrnn new-task").name
    module = name.replace("-", "_")
    if not module.isidentifier() or not module.isascii() or keyword.iskeyword(module):
        raise UsageError(f"expected letters, digits and - as a name, such as bird-calls, got {shown(name)}")
    path = Path(f"{module}.py")
    if path.exists():
        raise UsageError(f"expected a name of which there is no file yet, got {shown(name)}: {path} exists")
    if find_spec(module) is not None:
        raise UsageError(f"expected a name that no installed module has, got {shown(name)}, which Python would import")
    words = [word for word in module.split("_") if word]
    task = "".join(word[0].upper() + word[1:] for word in words).removesuffix("Task") + "Task"
    text = SKELETON.read_text(encoding="utf-8")
    for ours, theirs in (("task_skeleton", module), ("SkeletonTask", task), ('"skeleton"', f'"{"-".join(words)}"')):
        text = text.replace(ours, theirs)
    from slimrnn.training.run_files import writing

    with writing(path), path.open("x", encoding="utf-8") as file:
        file.write(text)
    print(f"{path}: a task that works as it is; its comments say what to change\nto train a net on it: ", end="")
    print(f"slimrnn train {module}:{task}")
