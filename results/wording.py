"""The words of RESULTS.md, and which rows go where. Figures are never written here: they come from the runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

ADDING = "The adding problem"
HEAD = """# Results

What came of running the papers' experiments on two cores of a CPU, one thread each. This page and its figures are made
by `make results` from the settings, scores and curves kept in `results/`.

Every line is a command that trains the net, or goes on with a run that was stopped, and ends in a verdict. The score is
that of the net which was best on the validation set, on the whole test set; of an unfinished run, on the part of it
that is evaluated on the way. "Passed at" tells the first update whose evaluation met the paper's figure. Where there
are several seeds, the mean and the range. Times are of training with the evaluations on the way, on a machine that was
busy with other things as well: take them as upper bounds. Runs marked unfinished go on with the same command. The
papers' pages ([factorized](docs/paper-factorized.md), [KRU](docs/paper-kru.md), [low-rank](docs/paper-low-rank.md))
tell where settings differ from the papers' and why."""


@dataclass(frozen=True)
class Section:
    """Rows that belong together: those whose names begin with one of `prefixes`."""

    title: str
    text: str
    prefixes: tuple[str, ...]
    figure: str = ""
    caption: str = ""

    def names(self, rows: Iterable[str]) -> list[str]:
        return [name for name in rows if name.startswith(self.prefixes)]


FRONT = (
    "copy-1000-kru",
    "copy-1000-lstm",
    "copy-2000-kru",
    "adding-750-lr-gru",
    "adding-200-kru",
    "copy-danihelka-lrd-gru",
    "copy-henaff-lrd-gru",
    "permuted-mnist-kru-quick",
    "permuted-mnist-lrd-gru-128-24",
    "ptb-lrd-gru-1000-64",
)

SECTIONS = (
    Section(
        "Copying over 1,000 and 2,000 steps",
        "",
        ("copy-1000", "copy-2000"),
        figure="results-copy",
        caption="Cross-entropy of the nets on the copy problem over updates",
    ),
    Section(
        ADDING,
        "",
        ("adding-",),
        figure="results-adding",
        caption="Squared error of the nets on the adding problem over updates, for four lengths",
    ),
    Section(
        "The low-rank paper's memory tasks",
        "",
        ("copy-500", "copy-danihelka", "copy-henaff"),
        figure="results-memory",
        caption="Cross-entropy of the low-rank plus diagonal GRU with and without weight normalisation",
    ),
    Section(
        "Word copy",
        "",
        ("word-copy",),
        figure="results-word-copy",
        caption="Cross-entropy of dense and factorized nets on word copy, for four numbers of repeats",
    ),
    Section(
        "MNIST pixel by pixel",
        "",
        ("pixel-mnist", "permuted-mnist"),
        figure="results-mnist",
        caption="Accuracy on permuted MNIST over updates",
    ),
    Section("MNIST with highway layers", "", ("highway",)),
    Section(
        "Penn Treebank characters",
        "",
        ("ptb",),
        figure="results-ptb",
        caption="Perplexity per character on Penn Treebank over epochs",
    ),
    Section("Phones of TIMIT", "", ("timit",)),
    Section("Recommendation", "", ("recommendation",)),
    Section("YouTube-8M", "", ("youtube",)),
)
