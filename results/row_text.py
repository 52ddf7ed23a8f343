"""A paper's row as text: its line in the tables of RESULTS.md and README.md, from the runs in this directory."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean

from slimrnn.papers import PaperRow, Verdict, find_row, judge, run_directory
from slimrnn.tasks.comparison import Contestant
from slimrnn.training.progress import in_words
from slimrnn.training.record import Run

RESULTS = Path(__file__).parent
SEEDS = range(10)
WHY = {  # rows that were not run, and the reason; the first that fits
    r"timit-(rnn|lstm|kru)": "the corpus is not free",
    r"youtube-8m-": "needs terabytes of features",
    r"ptb-gru-3298": "days on one core",
    r"ptb-": "four hours or more on one core",
    r"pixel-mnist-furnn$": "eight hours on one core",
    r"(pixel|permuted)-mnist-.*-quick": "an hour or two",
    r"(pixel|permuted)-mnist-": "hours to days with the paper's settings",
    r"": "not yet",
}


def cells(row: PaperRow) -> list[str]:
    """The row in RESULTS.md: command, ours, the paper's, verdict, updates, time, parameters."""
    seeds = seeds_of(row)
    runs = [Run(run_directory(RESULTS, row, seed)) for seed in seeds]
    command = f"`slimrnn reproduce {row.name}`"
    if not runs:
        return [command, "", row.claim, _verdict(row, verdicts_on(row)), "", "", ""]
    alone = [judge(RESULTS, replace(row, also=None), seed) for seed in seeds]
    updates, seconds = zip(*(Contestant(row.name, run).progress for run in runs), strict=True)
    return [
        command,
        _spread(row, [verdict.value for verdict in alone if verdict.value is not None], len(set(updates)) == 1)
        + _second(row, runs),
        row.claim,
        _verdict(row, verdicts_on(row)),
        "–".join(f"{update:,.0f}" for update in dict.fromkeys([min(updates), max(updates)])) + _halved(runs),
        in_words(max(seconds)),
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


def verdicts_on(row: PaperRow) -> list[Verdict]:
    """A verdict for each seed that the row has, or its other recipe: that alone can decide, but in a race."""
    recipes = [row] if row.also is None or row.race is not None else [row, find_row(row.also)]
    seeds = sorted({seed for recipe in recipes for seed in seeds_of(recipe)})
    return [judge(RESULTS, row, seed) for seed in seeds or [0]]


def score_text(row: PaperRow, value: float) -> str:
    """The score in the paper's unit."""
    if "accuracy" in row.score:
        return f"{100 * value:.1f} %"
    return f"{value:.2f}" if "perplexity" in row.score else f"{value:.3g}"


def state_of(row: PaperRow) -> str:
    states = [verdict.state for verdict in verdicts_on(row)]
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
    if low == high:
        return f"{where} {low} ({len(values)} seeds)"
    average = f"{score_text(row, mean(values))} ({low} to {high}, {len(values)} seeds)"
    return f"{where} {average if are_equal else f'{low} to {high} ({len(values)} seeds)'}"


def _verdict(row: PaperRow, verdicts: Sequence[Verdict]) -> str:
    states = [verdict.state for verdict in verdicts]
    if states[0] == "not run":
        return f"not run: {next(reason for rows, reason in WHY.items() if re.match(rows, row.name))}"
    if "passed" in states and not _most_passed(states):
        others = {verdict.recipe for verdict in verdicts if verdict.state != "passed"} - {"", row.name}
        by = f"{' by' if row.race is None else ', because of'} {' and '.join(sorted(others))}" if others else ""
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
