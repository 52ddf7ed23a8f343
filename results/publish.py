"""Results of our runs of the papers' experiments: `python results/publish.py` writes RESULTS.md, which is page.md with
tables, and the short table of README.md, from the runs in this directory; docs/figures/paper_results.py draws them.
`--keep runs/reproduce` first copies the runs of a directory here: settings, scores and curves, no weights."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import mean

import tyro

from slimrnn.papers import PaperRow, Verdict, find_row, judge, paper_rows, run_directory
from slimrnn.tasks.comparison import Contestant
from slimrnn.training.progress import in_words
from slimrnn.training.record import Run

RESULTS = Path(__file__).parent
PROJECT = RESULTS.parent
SEEDS = range(10)
FRONT = (  # what README.md shows
    "copy-1000-kru",
    "copy-1000-lstm",
    "copy-2000-kru",
    "adding-750-lr-gru",
    "adding-400-kru",
    "adding-750-kru",
    "copy-500-lrd-gru",
    "copy-danihelka-lrd-gru",
    "copy-henaff-lrd-gru",
    "word-copy-16-gru-factorized",
    "permuted-mnist-kru-quick",
    "permuted-mnist-gru-128-quick",
    "permuted-mnist-lrd-gru-128-24-quick",
    "ptb-lrd-gru-1000-64",
)


def main(keep: Path | None = None) -> None:
    """Write RESULTS.md and README's table.

    Args:
        keep: a directory of runs to copy here first, as slimrnn reproduce makes it
    """
    if keep is not None:
        keep_runs(keep)
    (PROJECT / "RESULTS.md").write_text(page())
    readme = PROJECT / "README.md"
    readme.write_text(with_table(readme.read_text(), front_table()))


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
    text = text.replace("<!-- counts -->", _counts(paper_rows().values()))
    text = text.replace("<!-- who converges -->", adding_table())
    text = re.sub(r"<!-- rows: (.*) -->", rows, text)
    if sorted(listed) != sorted(paper_rows()):
        missing = sorted(set(paper_rows()) - set(listed))
        raise ValueError(f"expected every row in page.md once, got {missing or 'some twice'}")
    return text


def front_table() -> str:
    """The rows that README.md shows."""
    table = [["`slimrnn reproduce` …", "parameters", "ours", "paper", "verdict"]]
    for name in FRONT:
        row = find_row(name)
        _, ours, paper, verdict, _, _, parameters = cells(row)
        table.append([f"`{name}`", parameters, ours, f"{paper} [{_source(row)}]", verdict])
    return markdown(table)


def adding_table() -> str:
    """When each net converges on the adding problem, with the errors on both test sets (KRU figure 2)."""
    lengths, nets = (100, 200, 400, 750), ("kru", "lr-gru", "lstm", "rnn", "furnn", "uernn")
    return markdown(
        [["", *(f"T = {T}" for T in lengths)], *([net, *(_converged(T, net) for T in lengths)] for net in nets)]
    )


def _converged(length: int, net: str) -> str:
    bound = find_row(f"adding-{length}-kru").bound or 0
    directory = RESULTS / f"adding-{length}-{net}"
    if not (directory / "run.json").exists():
        return ""
    contestant = Contestant(net, Run(directory))
    curve = contestant.run.curve
    first = next((u for u, e in zip(curve["update"], curve["half/loss"], strict=True) if e <= bound), None)
    when = f"not in {contestant.progress[0]:,.0f}" if first is None else f"**{first:,.0f}**"
    errors = [contestant.score(split, "loss") for split in ("half", "any")]
    return f"{when} ({' / '.join('?' if error is None else f'{error:.2g}' for error in errors)})"


def with_table(text: str, table: str) -> str:
    """Replace the table between the two marks."""
    found = re.sub(r"(?s)(<!-- results -->\n).*(\n<!-- end of results -->)", rf"\1{table}\2", text)
    if table not in found:
        raise ValueError("expected the marks <!-- results --> and <!-- end of results -->, got a text without them")
    return found


def cells(row: PaperRow) -> list[str]:
    """The row in RESULTS.md: command, ours, the paper's, verdict, updates, time, parameters."""
    seeds = seeds_of(row)
    runs = [Run(run_directory(RESULTS, row, seed)) for seed in seeds]
    verdicts = [judge(RESULTS, row, seed) for seed in seeds]
    command = f"`slimrnn reproduce {row.name}`"
    if not runs:
        return [command, "", row.claim, "not run", "", "", ""]
    updates, seconds = zip(*(Contestant(row.name, run).progress for run in runs), strict=True)
    return [
        command,
        _spread(row, [verdict.value for verdict in verdicts if verdict.value is not None]),
        row.claim,
        _verdict(row, verdicts),
        "–".join(f"{update:,.0f}" for update in dict.fromkeys([min(updates), max(updates)])),
        in_words(mean(seconds)),
        f"{runs[0].record['parameters']['total']:,}",
    ]


def seeds_of(row: PaperRow) -> list[int]:
    """Seeds whose runs are in this directory."""
    return [seed for seed in SEEDS if (run_directory(RESULTS, row, seed) / "run.json").exists()]


def markdown(table: Sequence[Sequence[str]]) -> str:
    """A Markdown table; the first row is the header."""
    lines = [f"| {' | '.join(row)} |" for row in table]
    return "\n".join([lines[0], "|" + "---|" * len(table[0]), *lines[1:]])


def score_text(row: PaperRow, value: float) -> str:
    """The score in the paper's unit."""
    if "accuracy" in row.score:
        return f"{100 * value:.1f} %"
    return f"{value:.2f}" if row.score == "perplexity" else f"{value:.3g}"


def _counts(rows: Iterable[PaperRow]) -> str:
    """Number of rows in each state, by their first seed."""
    states = [judge(RESULTS, row, min(seeds_of(row), default=0)).state for row in rows]
    words = {"passed": "agree with the paper", "failed": "disagree", "measured": "have no figure to be held against"}
    found = [f"{states.count(state)} {text}" for state, text in words.items()]  # type: ignore[arg-type]
    other = states.count("unfinished") + states.count("waiting")
    return (
        f"Of {len(states)} rows {', '.join(found)}, {other} are unfinished and {states.count('not run')} were not run."
    )


def _spread(row: PaperRow, values: Sequence[float]) -> str:
    where = f"{row.score.replace('_', ' ')}{'' if row.split == 'test' else f' ({row.split})'}"
    if len(values) == 1:
        return f"{where} {score_text(row, values[0])}"
    low, high = (score_text(row, value) for value in (min(values), max(values)))
    return f"{where} {score_text(row, mean(values))} ({low} to {high}, {len(values)} seeds)"


def _verdict(row: PaperRow, verdicts: Sequence[Verdict]) -> str:
    states = [verdict.state for verdict in verdicts]
    if "passed" in states:
        share = "" if len(states) == 1 else f" {states.count('passed')} of {len(states)}"
        first = sorted(verdict.update for verdict in verdicts if verdict.state == "passed")
        when = "–".join(f"{update:,}" for update in dict.fromkeys([first[0], first[-1]]))
        winner = f", {row.compared_with}" if row.race in ("behind", "second") else ""
        return f"**passed**{share}" + (f"{winner} at {when}" if row.direction == "at most" else "")
    if states[0] in ("unfinished", "waiting"):
        return f"unfinished ({100 * verdicts[0].update / row.within:.0f} % of {row.within:,})"
    return {"failed": "not met", "measured": "–"}.get(states[0], states[0])


def _source(row: PaperRow) -> str:
    return {"factorized": "1", "low-rank": "2", "KRU": "3"}[row.paper.split()[0]]


if __name__ == "__main__":
    tyro.cli(main)
