"""The command line: one file per command."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from slimrnn.cli import doctor

COMMANDS = {"doctor": doctor}


def main(arguments: Sequence[str] | None = None) -> None:
    """`slimrnn COMMAND`."""
    parser = argparse.ArgumentParser(
        prog="slimrnn", description="Recurrent networks with long memories, few parameters."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, module in COMMANDS.items():
        summary = (module.__doc__ or "").strip().split("\n")[0]
        commands.add_parser(name, help=summary, description=summary).set_defaults(run=module.run)
    parser.parse_args(arguments).run()
