"""`slimrnn predict`: what the net of a run says about new sequences."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tyro import MISSING
from tyro.conf import Positional

from slimrnn.cli.parsing import parse
from slimrnn.cli.settings import TaskClass
from slimrnn.errors import UsageError
from slimrnn.tasks.own.predicting import heading, load_predictor, predictions, read_new
from slimrnn.tasks.own.streaming import stream


@dataclass(frozen=True)
class Options:
    """Predict with the best net of a run on classify, tag, regress or forecast: classes with probabilities, numbers,
    or forecasts with quantiles."""

    run: Positional[Path] = MISSING
    """directory of the run"""
    file: Path = MISSING
    """new sequences, with the columns of the file that the net was trained on; labels are not needed. - reads lines of
    CSV from standard input and answers each as soon as it can"""
    out: Path | None = None
    """table of predictions, .csv or .tsv; default: standard output"""
    replace: bool = False
    """replace the table if it exists"""
    task: TaskClass = None
    """module:Class of the task, if it has moved since the run began"""


def run(arguments: Sequence[str]) -> None:
    """Write the table."""
    options = parse(Options(), arguments, "slimrnn predict")
    if options.out is not None and options.out.suffix not in (".csv", ".tsv"):
        raise UsageError(f"expected --out to end in .csv or .tsv, got {options.out}")
    if options.out is not None and options.out.exists() and not options.replace:
        raise UsageError(f"expected a new file as --out, got {options.out}, which exists: --replace replaces it")
    from slimrnn.training.run_files import write_whole

    task, model = load_predictor(options.run, options.task)
    if str(options.file) == "-":
        if options.out is not None:
            raise UsageError("expected --out only with a file, got --file -, whose answers go to standard output")
        lines = csv.writer(sys.stdout, lineterminator="\n")

        def write(row: Iterable[str]) -> None:
            lines.writerow(row)
            sys.stdout.flush()

        write(heading(task))
        stream(task, model, sys.stdin, write)
        return
    sequences = read_new(options.file, task)
    rows = _lines([heading(task), *predictions(task, model, sequences)], options.out)
    if options.out is None:
        sys.stdout.writelines(rows)
        return
    write_whole(options.out, "".join(rows).encode())
    for note in sequences.notes:
        print(note)
    print(f"{len(sequences):,} sequences: {options.out}")


def _lines(rows: Iterable[Sequence[str]], out: Path | None) -> Iterator[str]:
    text = io.StringIO()
    writer = csv.writer(text, delimiter="\t" if out is not None and out.suffix == ".tsv" else ",", lineterminator="\n")
    for row in rows:
        writer.writerow(row)
        yield text.getvalue()
        text.seek(0)
        text.truncate()
