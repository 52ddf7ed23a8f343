"""Results of our runs of the papers' experiments: `python results/publish.py` writes RESULTS.md, which is page.md with
tables, the short table of README.md and those of docs/compress.md, from what is in this directory;
docs/figures/paper_results.py draws the runs.
`--keep runs/reproduce` first copies the runs of a directory here: settings, scores and curves, no weights."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean
from textwrap import fill

import compression_tables
import tyro
from compression_tables import markdown

from slimrnn.papers import PaperRow, Verdict, find_row, judge, paper_rows, run_directory
from slimrnn.tasks.comparison import Contestant
from slimrnn.training.progress import in_words
from slimrnn.training.record import Run

RESULTS = Path(__file__).parent
PROJECT = RESULTS.parent
SEEDS = range(10)
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
WHY = {  # rows that were not run, and the reason; the first that fits
    r"timit-(rnn|lstm|kru)": "the corpus is not free",
    r"youtube-8m-": "needs terabytes of features",
    r"ptb-gru-3298": "days on one core",
    r"ptb-": "four hours or more on one core",
    r".*-mnist-furnn$": "ten hours on one core",
    r"(pixel|permuted)-mnist-.*-quick": "an hour or two",
    r"(pixel|permuted)-mnist-": "hours to days with the paper's settings",
    r"adding-750-": "half an hour on one core",
    r"": "not yet",
}


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
        PROJECT / "README.md": {"results": front_table()},
        PROJECT / "docs" / "compress.md": {name: markdown(table) for name, table in nets.items()},
    }


def keep_runs(runs: Path) -> None:
    """Copy the runs of rows that were evaluated after the first update."""
    for row in paper_rows().values():
        for seed in SEEDS:
            source, target = (run_directory(where, row, seed) for where in (runs, RESULTS))
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

    text = (Path(__file__).parent / "page.md").read_text()
    text = text.replace("<!-- counts -->", counts(text))
    text = text.replace("<!-- our recipes -->", our_recipes())
    text = text.replace("<!-- who converges -->", adding_table())
    text = text.replace("<!-- gaps -->", gap_table())
    text = text.replace("<!-- compression -->", markdown(compression_tables.summary()))
    text = re.sub(r"<!-- rows: (.*) -->", rows, text)
    if sorted(listed) != sorted(paper_rows()):
        missing = sorted(set(paper_rows()) - set(listed))
        raise ValueError(f"expected every row in page.md once, got {missing or 'some twice'}")
    return text


def counts(text: str) -> str:
    """Number of the papers' rows in each state, by most of their seeds, for each section of the page and in all."""
    head = ["", "agree", "disagree", "unfinished", "not run", "no verdict"]
    table = []
    for section in text.split("\n## ")[1:]:
        prefixes = re.search(r"<!-- rows: (.*) -->", section)
        if prefixes:
            names = [name for name in paper_rows() if name.startswith(tuple(prefixes[1].split()))]
            states = [_state(find_row(name)) for name in names if find_row(name).paper != "ours"]
            table += [(section.splitlines()[0], states)] if states else []
    table.append(("**all**", [state for _, states in table for state in states]))
    columns = ("passed", "failed", "unfinished", "not run", "measured")
    return markdown([head, *([title, *(f"{states.count(column)}" for column in columns)] for title, states in table)])


def our_recipes() -> str:
    """How many of the papers' rows agree, or do not, by runs of recipes of ours alone."""
    rows = [row for row in paper_rows().values() if row.paper != "ours"]
    decided = [(row, _state(row), judge(RESULTS, row, (seeds_of(row) or [0])[0]).recipe) for row in rows]
    ours = [(row, state) for row, state, recipe in decided if recipe and find_row(recipe).paper == "ours"]
    agree = sum(state == "passed" for _, state in ours)
    rivals = sum(state == "failed" and row.race is not None for row, state in ours)
    alone = sum(row.also is not None and not seeds_of(row) and _state(row) == "failed" for row in rows)
    return fill(
        f"Of those that agree, {agree} do so only because of a recipe of ours, explained below; single settings of"
        f" ours, such as one of an optimizer, are not counted. Of those that disagree, {alone} were run by our recipe"
        f" and not by the paper's, and in {rivals} a rival is quicker only by our recipe.",
        width=120,
    )


def front_table() -> str:
    """The rows that README.md shows, with the run that decided."""
    table = [["`slimrnn reproduce` …", "parameters", "ours", "paper", "verdict"]]
    for name in FRONT:
        row = find_row(name)
        _, ours, paper, verdict, _, _, parameters = cells(row)
        decided = judge(RESULTS, row, 0).recipe
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


def gap_table() -> str:
    """Word copy: what the factorized net is ahead of the dense one (factorized paper, figures 1 to 3)."""
    repeats = (4, 8, 16, 32)
    table = [
        ["cross-entropy, dense − factorized", *(f"{count} repeats" for count in repeats), "widens, as in the paper"]
    ]
    for cell in ("lstm", "gru"):
        names = [[f"word-copy-{count}-{cell}-{kind}" for kind in ("dense", "factorized")] for count in repeats]
        losses = [[judge(RESULTS, find_row(name), 0).value or 0 for name in pair] for pair in names]
        gaps = [dense - factorized for dense, factorized in losses]
        verdict = "**passed**" if gaps == sorted(gaps) else "not met"
        table.append([cell.upper(), *(f"{gap:.3f}" for gap in gaps), verdict])
    return markdown(table)


def _converged(length: int, net: str) -> str:
    bound = find_row(f"adding-{length}-kru").bound or 0
    directory = RESULTS / f"adding-{length}-{net}"
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


def cells(row: PaperRow) -> list[str]:
    """The row in RESULTS.md: command, ours, the paper's, verdict, updates, time, parameters."""
    seeds = seeds_of(row)
    runs = [Run(run_directory(RESULTS, row, seed)) for seed in seeds]
    command = f"`slimrnn reproduce {row.name}`"
    if not runs:
        return [command, "", row.claim, _verdict(row, [judge(RESULTS, row, 0)]), "", "", ""]
    alone = [judge(RESULTS, replace(row, also=None), seed) for seed in seeds]
    updates, seconds = zip(*(Contestant(row.name, run).progress for run in runs), strict=True)
    return [
        command,
        _spread(row, [verdict.value for verdict in alone if verdict.value is not None], len(set(updates)) == 1)
        + _second(row, runs),
        row.claim,
        _verdict(row, [judge(RESULTS, row, seed) for seed in seeds]),
        "–".join(f"{update:,.0f}" for update in dict.fromkeys([min(updates), max(updates)])) + _halved(runs),
        in_words(mean(seconds)),
        _parameters(runs[0]),
    ]


def _second(row: PaperRow, runs: Sequence[Run]) -> str:
    """The other score that has to be met, where there is one and the runs have it."""
    name = row.second[0] if row.second else ""
    scores = [run.result.best.get(row.split, {}) for run in runs if run.result is not None]
    found = [score[name] for score in scores if name in score]
    return f", {name.replace('_', ' ')} {score_text(replace(row, score=name), mean(found))}" if found else ""


def _parameters(run: Run) -> str:
    total, trained = (run.record["parameters"].get(name) for name in ("total", "trainable"))
    return f"{total:,}" + (f" ({trained:,} trained)" if trained not in (None, total) else "")


def _halved(runs: Sequence[Run]) -> str:
    """Marks runs whose rate was halved after a gradient that was not finite."""
    found = [recovery["update"] for run in runs if run.result is not None for recovery in run.result.recoveries]
    return f" (rate halved at {', '.join(f'{update:,}' for update in found)})" if found else ""


def seeds_of(row: PaperRow) -> list[int]:
    """Seeds whose runs are in this directory."""
    return [seed for seed in SEEDS if (run_directory(RESULTS, row, seed) / "run.json").exists()]


def score_text(row: PaperRow, value: float) -> str:
    """The score in the paper's unit."""
    if "accuracy" in row.score:
        return f"{100 * value:.1f} %"
    return f"{value:.2f}" if "perplexity" in row.score else f"{value:.3g}"


def _state(row: PaperRow) -> str:
    states = [judge(RESULTS, row, seed).state for seed in seeds_of(row) or [0]]
    state = "passed" if _most_passed(states) else next(state for state in states if state != "passed")
    return "unfinished" if state == "waiting" else state


def _most_passed(states: Sequence[str]) -> bool:
    return 2 * states.count("passed") > len(states)


def _spread(row: PaperRow, values: Sequence[float], are_equal: bool) -> str:
    """The score; of several seeds the mean and the range, or the range alone if some were stopped."""
    where = f"{row.score.replace('_', ' ')}{'' if row.split == 'test' else f' ({row.split})'}"
    if len(values) == 1:
        return f"{where} {score_text(row, values[0])}"
    low, high = (score_text(row, value) for value in (min(values), max(values)))
    average = f"{score_text(row, mean(values))} ({low} to {high}, {len(values)} seeds)"
    return f"{where} {average if are_equal else f'{low} to {high} ({len(values)} seeds)'}"


def _verdict(row: PaperRow, verdicts: Sequence[Verdict]) -> str:
    states = [verdict.state for verdict in verdicts]
    if states[0] == "not run":
        return f"not run: {next(reason for rows, reason in WHY.items() if re.match(rows, row.name))}"
    if "passed" in states and not _most_passed(states):
        others = {verdict.recipe for verdict in verdicts if verdict.state != "passed"} - {"", row.name}
        by = f", because of {' and '.join(sorted(others))}" if others else ""
        return f"not met: agrees with {states.count('passed')} of {len(states)} seeds{by}"
    if "passed" in states:
        share = "" if len(states) == 1 else f" {states.count('passed')} of {len(states)}"
        return f"**passed**{share}" + _when(row, [verdict for verdict in verdicts if verdict.state == "passed"])
    if states[0] == "unfinished" and row.race is not None and verdicts[0].update >= row.within:
        return f"open: {' and '.join(_behind(row))} not far enough"
    decided = verdicts[0].recipe
    if states[0] in ("unfinished", "waiting"):
        within = find_row(decided or row.name).within
        return f"unfinished ({100 * verdicts[0].update / within:.0f} % of {within:,})"
    first = f": {decided} at {verdicts[0].update:,}" if row.race is not None and decided else ""
    if row.race is None and row.also:
        first = _recipes_tried(row, find_row(row.also))
    return {"failed": f"not met{first}", "measured": "–"}.get(states[0], states[0])


def _recipes_tried(paper: PaperRow, ours: PaperRow) -> str:
    has_run = [judge(RESULTS, replace(row, also=None), 0).state != "not run" for row in (paper, ours)]
    if all(has_run):
        return " by either recipe"
    return " by the paper's recipe; ours was not run" if has_run[0] else " by our recipe; the paper's was not run"


def _behind(row: PaperRow) -> list[str]:
    """The runs that a race waits for: those of its own net, or else those of the other."""
    for net in filter(None, (row.name, row.compared_with)):
        names = [name for name in (net, find_row(net).also) if name]
        rows = [replace(find_row(name), race=None, compared_with=None, also=None) for name in names]
        waiting = [one.name for one in rows if judge(RESULTS, one, 0).state in ("not run", "unfinished")]
        if waiting:
            return waiting
    return []


def _when(row: PaperRow, passed: Sequence[Verdict]) -> str:
    """The update at which a bound was met, or within how many it was not, and in which run if it is another row's."""
    updates = sorted(verdict.update for verdict in passed)
    when = " at " + "–".join(f"{update:,}" for update in dict.fromkeys([updates[0], updates[-1]]))
    if row.direction == "at least":
        when = f", within {updates[-1]:,} updates" if row.score == "loss" else ""
    decided = passed[0].recipe
    return f", {decided}{when}" if decided and decided != row.name else when


def _source(row: PaperRow) -> str:
    return {"factorized": "1", "low-rank": "2", "KRU": "3"}[row.paper.split()[0]]


if __name__ == "__main__":
    tyro.cli(main)
