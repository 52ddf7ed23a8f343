"""Our layers side by side with torch.nn's and others: times, memory, scaling, crossovers.

Contestants take turns in one process and the best round of each counts. A ratio above 1 says that ours is faster; bars
are what two quiet cores (Zen 4, AVX-512) should show. Nothing here fails because something is slow.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import re
import time
from pathlib import Path
from typing import Any, NoReturn

import torch
from sections import PEAK_SHARE, SECTIONS, Table
from timing import Options

import slimrnn
from slimrnn._checks import suggestion
from slimrnn.ops import resolve_backend


def main() -> None:
    args = parse()
    options = Options(tuple(args.threads), args.repeats, args.only, args.quick)
    torch.manual_seed(0)
    facts = machine()
    print("  ".join(f"{name} {value}" for name, value in facts.items()))
    if facts.get("load", 0) > 0.5:
        print("other work is running: expect wrong ratios, most of all with several threads")
    if options.quick:
        print("--quick: short sequences, for trying the benchmark out; the bars are for the full ones")
    began, report = time.perf_counter(), []
    gc.collect()
    gc.freeze()  # collections between rounds then look at new objects only
    for name in args.section:
        for table in filter(lambda table: table.records, SECTIONS[name](options)):
            print(f"\n{render(table)}", flush=True)
            report.append({"section": name, "title": table.title, **table.facts, "records": table.records})
    if not report:
        print(f"nothing in {', '.join(args.section)} matches --only {options.only!r}")
    print(f"\n{time.perf_counter() - began:.0f} seconds")
    if args.json:
        args.json.write_text(
            json.dumps({"machine": facts, "options": vars(options), "tables": report}, indent=1) + "\n"
        )


# argparse's words and ours.
REWORDED = (
    (r"^argument (\S+): invalid choice: (.*) \(choose from (.*)\)$", r"expected \1 to be one of \3, got \2"),
    (r"^argument (\S+): expected (?:at least )?one argument$", r"expected a value after \1, got none"),
    (r"^argument (\S+): expected (.*), got (.*)$", r"expected \1 to be \2, got \3"),
)


class Parser(argparse.ArgumentParser):
    """With errors of one line, as those of all commands."""

    def error(self, message: str) -> NoReturn:
        for theirs, ours in REWORDED:
            message = re.sub(theirs, ours, message)
        self.exit(2, f"slimrnn: {message}\n")


def parse() -> argparse.Namespace:
    parser = Parser(
        prog="slimrnn bench",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--section", nargs="+", choices=SECTIONS, default=list(SECTIONS), help="default: all")
    parser.add_argument(
        "--threads",
        nargs="+",
        type=positive,
        default=[1, 2],
        help="of torch and ours (default: 1 2); memory, scaling and crossover take the first",
    )
    parser.add_argument("--repeats", type=positive, help="rounds after the first, at most (default: 7, --quick: 2)")
    parser.add_argument("--only", metavar="SUBSTRING", default="", help="rows whose layer, rival or shape has it")
    parser.add_argument("--quick", action="store_true", help="short sequences and small states")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write all numbers here too")
    args, unknown = parser.parse_known_args()
    if unknown:
        options = [option for action in parser._actions for option in action.option_strings]
        parser.error(f"expected options of slimrnn bench, got {unknown[0]}{suggestion(unknown[0], options)}")
    args.repeats = args.repeats or (2 if args.quick else 7)
    return args


def positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected an integer of at least 1, got {text}")
    return int(text)


def machine() -> dict[str, Any]:
    """Where the numbers come from."""
    facts: dict[str, Any] = {
        "slimrnn": slimrnn.__version__,
        "backend": resolve_backend("auto"),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
    }
    if hasattr(os, "getloadavg"):
        facts["load"] = round(os.getloadavg()[0], 2)
    return facts


def render(table: Table) -> str:
    """The title, aligned columns, and the notes."""
    columns = list(table.records[0])
    headings = ["×" if c.endswith(" ×") else c for c in columns]
    rows = [headings, *([text(record[c], c) for c in columns] for record in table.records)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    left = [isinstance(table.records[0][c], str) and c != "met" for c in columns]
    lines = []
    for row in rows:
        cells = [c.ljust(w) if side else c.rjust(w) for c, w, side in zip(row, widths, left, strict=True)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join([table.title, *lines, *table.notes])


def text(value: object, column: str) -> str:
    """Three digits of a measured number, a bar as it was written, - for none."""
    if value is None:
        return "-"
    if column == PEAK_SHARE:
        return f"{value:.0%}"
    if isinstance(value, float) and column != "bar":
        return f"{value:.{0 if value >= 99.95 else 1 if value >= 9.995 else 2}f}"
    return str(value)


if __name__ == "__main__":
    main()
