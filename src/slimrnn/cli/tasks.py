"""`slimrnn tasks`: what nets can be trained on, a line each."""

from __future__ import annotations

from collections.abc import Sequence

from slimrnn.errors import UsageError
from slimrnn.tasks import TASKS

USAGE = (
    "usage: slimrnn tasks\n\nThe tasks that `slimrnn train` knows. `slimrnn train TASK --help` shows a task's options."
)


def run(arguments: Sequence[str]) -> None:
    """Print the list."""
    if not arguments:
        print(listing())
    elif arguments[0] in ("-h", "--help"):
        print(USAGE)
    else:
        raise UsageError(f"expected no options after slimrnn tasks, got {arguments[0]}")


def listing() -> str:
    """A line for each task."""
    width = max(map(len, TASKS))
    return "\n".join(f"{name:<{width}}  {(task.__doc__ or '').splitlines()[0]}" for name, task in TASKS.items())
