"""The command line: one file per command."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

from slimrnn import _collection
from slimrnn._checks import suggestion
from slimrnn.errors import DataError, ExportError, TrainingError, UsageError

GROUPS = {
    "Training": {
        "tasks": "list the tasks",
        "new-task": "write a file with a task of your own to start from",
        "train": "train a net on a task",
        "resume": "continue a run that was stopped",
        "eval": "score a run's net on the test sets",
        "compare": "compare runs: a table and a plot",
        "analyse": "report what a net remembers, and why",
        "reproduce": "reproduce a paper's result, with a verdict",
        "compress": "compress a run's net to a budget; the result is a run",
        "predict": "predict new sequences of your own data",
        "export": "export a run's net: ONNX, a torch program or C, with a proof",
        "sample": "sample text from a character-level net",
        "recommend": "recommend next items",
    },
    "Tools": {
        "data": "list, download and check data sets",
        "params": "count parameters, or find the largest net for a budget",
        "bench": "benchmark our layers against torch's",
        "doctor": "show versions, backend, threads and data",
    },
}
COMMANDS = {name: summary for group in GROUPS.values() for name, summary in group.items()}
MODULES = {"eval": "evaluate", "new-task": "new_task"}  # names that modules cannot have
EXTRA = {"lightning", "matplotlib", "safetensors", "tensorboard", "tyro", "yaml"}


def main(arguments: Sequence[str] | None = None) -> int:
    """`slimrnn COMMAND`; returns the exit code."""
    try:
        return _dispatch(list(sys.argv[1:] if arguments is None else arguments))
    except SystemExit as stop:  # tyro ends its help texts in this way
        return int(stop.code or 0)
    except BrokenPipeError:  # the reader of our output has seen enough
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - python flushes it once more on its way out
        return 141
    except (UsageError, TrainingError, DataError, ExportError, ModuleNotFoundError, KeyboardInterrupt) as error:
        missing = error.name or "" if isinstance(error, ModuleNotFoundError) else None
        if os.environ.get("SLIMRNN_DEBUG", "0") not in ("", "0") or (missing is not None and missing not in EXTRA):
            raise
        message = "interrupted" if isinstance(error, KeyboardInterrupt) else str(error)
        if missing:
            message = f'expected the package {missing}, got none: pip install "slimrnn[train]"'
        print(f"slimrnn: {' '.join(message.split())}", file=sys.stderr)
        return 130 if isinstance(error, KeyboardInterrupt) else 2
    finally:
        _collection.end()


def _dispatch(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(_overview())
        return 0
    if arguments[0] == "--version":
        import slimrnn

        print(slimrnn.__version__)
        return 0
    name, *rest = arguments
    if name not in COMMANDS:
        hint = suggestion(name, COMMANDS)
        raise UsageError(f"expected a command ({', '.join(COMMANDS)}), got {name!r}{hint}")
    command = importlib.import_module(f"slimrnn.cli.{MODULES.get(name, name)}")
    _collection.collect_again()
    return int(command.run(rest) or 0)


def _overview() -> str:
    width = max(map(len, COMMANDS))
    lines = ["usage: slimrnn COMMAND ...", "", "Recurrent networks with long memories, few parameters."]
    for group, commands in GROUPS.items():
        lines += ["", group, *(f"  {name:<{width}}  {summary}" for name, summary in commands.items())]
    lines += ["", "slimrnn COMMAND --help shows the options."]
    return "\n".join(lines)
