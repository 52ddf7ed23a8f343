"""Results of our runs of the papers' experiments: `python results/publish.py` writes RESULTS.md, which is page.md with
tables, the short table of README.md and those of docs/compress.md, from what is in this directory;
docs/figures/paper_results.py draws the runs.
`--keep runs/reproduce` first copies the runs of a directory here: settings, scores and curves, no weights."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from textwrap import fill

import compression_tables
import row_text
import tyro
from compression_tables import markdown
from row_text import cells, seeds_of, state_of, verdicts_on

from slimrnn.papers import PaperRow, find_row, judge, paper_rows, run_directory
from slimrnn.tasks.comparison import Contestant
from slimrnn.training.record import Run

GAPS = "<!-- gaps -->"
PAGE = row_text.RESULTS / "page.md"
PROJECT = row_text.RESULTS.parent
FRONT = (  # what README.md shows
    "copy-1000-kru",
    "copy-2000-kru",
    "adding-750-lr-gru",
    "adding-100-lstm",
    "adding-750-kru",
    "copy-500-lrd-gru",
    "copy-danihelka-lrd-gru",
    "word-copy-16-gru-factorized",
    "permuted-mnist-lrd-gru-128-24",
    "ptb-lrd-gru-tied-1000-64",
)


def main(keep: Path | None = None) -> None:
    """Write RESULTS.md and the tables of README.md and docs/compress.md.

    Args:
        keep: a directory of runs to copy here first, as slimrnn reproduce makes it
    """
    if keep is not None:
        keep_runs(keep)
    (PROJECT / "RESULTS.md").write_text(page())
    for path, tables in tables_elsewhere().items():
        for name, table in tables.items():
            path.write_text(with_table(path.read_text(), name, table))


def tables_elsewhere() -> dict[Path, dict[str, str]]:
    """Tables of other pages, by the names of their marks."""
    nets = {name: compression_tables.table(compression_tables.COMPRESSION / name) for name in compression_tables.NETS}
    return {
        PROJECT / "README.md": {"results": front()},
        PROJECT / "docs" / "compress.md": {name: markdown(table) for name, table in nets.items()},
    }


def keep_runs(runs: Path) -> None:
    """Copy the runs of rows that were evaluated after the first update."""
    for row in paper_rows().values():
        for seed in row_text.SEEDS:
            source, target = (run_directory(where, row, seed) for where in (runs, row_text.RESULTS))
            if not (source / "run.json").exists() or len(Run(source).curve.get("update", [])) < 2:
                continue
            target.mkdir(exist_ok=True)
            for name in ("run.json", "curve.csv"):
                shutil.copyfile(source / name, target / name)


def page() -> str:
    """RESULTS.md: page.md with its placeholders filled in."""
    listed: list[str] = []

    def rows(prefixes: re.Match[str]) -> str:
        names = [name for name in paper_rows() if name.startswith(tuple(prefixes[1].split()))]
        listed.extend(names)
        head = ["command", "ours", "the paper", "verdict", "updates", "time", "parameters"]
        return markdown([head, *(cells(find_row(name)) for name in names)])

    text = PAGE.read_text()
    text = text.replace("<!-- counts -->", counts(text))
    text = text.replace("<!-- our recipes -->", our_recipes())
    text = text.replace("<!-- who converges -->", adding_table())
    text = text.replace(GAPS, gap_table())
    text = text.replace("<!-- compression -->", markdown(compression_tables.summary()))
    text = re.sub(r"<!-- rows: (.*) -->", rows, text)
    if sorted(listed) != sorted(paper_rows()):
        missing = sorted(set(paper_rows()) - set(listed))
        raise ValueError(f"expected every row in page.md once, got {missing or 'some twice'}")
    return text


def counts(text: str) -> str:
    """Number of the papers' rows in each state, by most of their seeds, for each section of the page and in all."""
    head = ["", "agree", "disagree", "unfinished", "not run", "no verdict"]
    table = _states(text)
    table.append(("**all**", [state for _, states in table for state in states]))
    columns = ("passed", "failed", "unfinished", "not run", "measured")
    return markdown([head, *([title, *(f"{states.count(column)}" for column in columns)] for title, states in table)])


def _states(text: str) -> list[tuple[str, list[str]]]:
    """The sections of the page that have rows of a paper, and the states of these rows."""
    table = []
    for section in text.split("\n## ")[1:]:
        prefixes = re.search(r"<!-- rows: (.*) -->", section)
        if prefixes:
            names = [name for name in paper_rows() if name.startswith(tuple(prefixes[1].split()))]
            states = [state_of(find_row(name)) for name in names if find_row(name).paper != "ours"]
            if GAPS in section:
                states += map(_widens, gaps().values())
            table += [(section.splitlines()[0], states)] if states else []
    return table


def _by_our_recipe() -> list[tuple[PaperRow, str]]:
    """The papers' rows that a run by a recipe of ours decided, and their states."""
    rows = [row for row in paper_rows().values() if row.paper != "ours"]
    decided = [(row, state_of(row), verdicts_on(row)[0].recipe) for row in rows]
    return [(row, state) for row, state, recipe in decided if recipe and find_row(recipe).paper == "ours"]


def our_recipes() -> str:
    """How many of the papers' rows agree, or do not, by runs of recipes of ours alone."""
    rows, ours = [row for row in paper_rows().values() if row.paper != "ours"], _by_our_recipe()
    agree = sum(state == "passed" for _, state in ours)
    rivals = sum(state == "failed" and row.race is not None for row, state in ours)
    alone = sum(row.also is not None and not seeds_of(row) and state_of(row) == "failed" for row in rows)
    return fill(
        f"Of those that agree, {agree} do so only because of a recipe of ours, explained below; single settings of"
        f" ours, such as one of an optimizer, are not counted. Of those that disagree, {alone} were run by our recipe"
        f" and not by the paper's, and {rivals} are races that a rival wins by our recipe.",
        width=120,
    )


def front() -> str:
    """What README.md shows: a table of some rows, and the counts of all."""
    states = [state for _, states in _states(PAGE.read_text()) for state in states]
    ours = sum(state == "passed" for _, state in _by_our_recipe())
    counts_in_words = (
        f"Of the papers' claims that have a verdict, {states.count('passed')} agree with our runs, {ours} of them only"
        f" by a recipe of ours, and {states.count('failed')} do not. Unfinished: {states.count('unfinished')}; not run:"
        f" {states.count('not run')}, for want of data or because they take hours."
    )
    return f"{front_table()}\n\n{fill(counts_in_words, width=120)}"


def front_table() -> str:
    """The rows that README.md shows, with the run that decided."""
    table = [["`slimrnn reproduce` …", "parameters", "ours", "paper", "verdict"]]
    for name in FRONT:
        row = find_row(name)
        _, ours, paper, verdict, _, _, parameters = cells(row)
        decided = judge(row_text.RESULTS, row, 0).recipe
        if decided == row.also:
            _, ours, _, _, _, _, parameters = cells(find_row(decided))
        table.append([f"`{name}`", parameters, ours, f"{paper} [{_source(row)}]", verdict])
    return markdown(table)


def adding_table() -> str:
    """When each net converges on the adding problem, with the errors on both test sets (KRU figure 2)."""
    lengths, nets = (100, 200, 400, 750), ("kru", "lstm", "rnn", "furnn", "uernn", "lr-gru")
    table = [["", *(f"T = {T}" for T in lengths)]]
    for net in nets:
        for recipe in ("", "-ours") if net != "lr-gru" else ("",):
            words = "" if net == "lr-gru" else ", our recipe" if recipe else ", the paper's recipe"
            table.append([f"{net}{words}", *(_converged(T, net + recipe) for T in lengths)])
    return markdown(table)


REPEATS = (4, 8, 16, 32)


def gaps() -> dict[str, list[float]]:
    """Word copy: what the factorized net is ahead of the dense one, by cells, for each number of repeats."""
    names = [f"word-copy-{count}-{cell}" for cell in ("lstm", "gru") for count in REPEATS]
    ahead = [_mean_value(f"{name}-dense") - _mean_value(f"{name}-factorized") for name in names]
    return {"LSTM": ahead[: len(REPEATS)], "GRU": ahead[len(REPEATS) :]}


def _widens(ahead: Sequence[float]) -> str:
    return "passed" if sorted(ahead) == ahead else "failed"


def gap_table() -> str:
    """Whether that gap widens with the repeats (factorized paper, figures 1 to 3)."""
    head = ["cross-entropy, dense − factorized", *(f"{count} repeats" for count in REPEATS), "widens, as in the paper"]
    verdicts = {"passed": "**passed**", "failed": "not met"}
    return markdown(
        [head, *([cell, *(f"{gap:.3f}" for gap in ahead), verdicts[_widens(ahead)]] for cell, ahead in gaps().items())]
    )


def _mean_value(name: str) -> float:
    """The mean score of a row over its seeds."""
    row = find_row(name)
    return mean(judge(row_text.RESULTS, row, seed).value or 0 for seed in seeds_of(row))


def _converged(length: int, net: str) -> str:
    bound = find_row(f"adding-{length}-kru").bound or 0
    directory = row_text.RESULTS / f"adding-{length}-{net}"
    if not (directory / "run.json").exists():
        return ""
    contestant = Contestant(net, Run(directory))
    curve = contestant.run.curve
    first = next((u for u, e in zip(curve["update"], curve["half/loss"], strict=True) if e <= bound), None)
    errors = [contestant.score(split, "loss") for split in ("half", "any")]
    result = contestant.run.result
    if first is None and result is not None and errors[0] is not None and errors[0] <= bound:
        first = result.best_update  # on the whole test set
    when = f"not in {contestant.progress[0]:,.0f}" if first is None else f"**{first:,.0f}**"
    return f"{when} ({' / '.join('?' if error is None else f'{error:.2g}' for error in errors)})"


def with_table(text: str, name: str, table: str) -> str:
    """Replace the table between the two marks of this name."""
    found = re.sub(rf"(?s)(<!-- {name} -->\n).*(\n<!-- end of {name} -->)", rf"\1{table}\2", text)
    if table not in found:
        raise ValueError(f"expected the marks <!-- {name} --> and <!-- end of {name} -->, got a text without them")
    return found


def _source(row: PaperRow) -> str:
    return {"factorized": "1", "low-rank": "2", "KRU": "3"}[row.paper.split()[0]]


if __name__ == "__main__":
    tyro.cli(main)
