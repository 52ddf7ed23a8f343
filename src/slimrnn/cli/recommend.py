"""`slimrnn recommend`: the most likely next items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from tyro import MISSING
from tyro.conf import Positional

from slimrnn._checks import suggestion
from slimrnn._texts import table
from slimrnn.cli.parsing import parse
from slimrnn.cli.settings import TaskClass, trained_net
from slimrnn.errors import UsageError
from slimrnn.tasks.recommend import RecommendTask
from slimrnn.tasks.recommend_splits import gaps_between
from slimrnn.training.models.recommender_model import RecommenderModel


@dataclass(frozen=True)
class Options:
    """Recommend the items most likely to come next, by the best net of a run on recommend."""

    run: Positional[Path] = MISSING
    """directory of the run"""
    items: str = MISSING
    """the user's items so far, by their ids in the log, oldest first: 12,5,77"""
    times: str = ""
    """timestamps in seconds, one per item; for a net with time gaps"""
    pages: str = ""
    """pages, one per item; for a net with pages"""
    top: int = 10
    """number of items to recommend"""
    with_seen: bool = False
    """also recommend items that the user has had"""
    skip_unknown: bool = False
    """skip unknown items instead of refusing them"""
    task: TaskClass = None
    """module:Class of the task, if it has moved since the run began"""


@dataclass(frozen=True)
class Suggestion:
    """An item with its probability of being next."""

    item: str
    probability: float
    title: str = ""


def run(arguments: Sequence[str]) -> None:
    """Print a table."""
    options = parse(Options(), arguments, "slimrnn recommend")
    if options.top < 1:
        raise UsageError(f"expected --top of at least 1, got {options.top}")
    task, model = trained_net(options.run, RecommendTask, options.task)
    events = {"items": _split(options.items), "times": _split(options.times), "pages": _split(options.pages)}
    if not events["items"]:
        raise UsageError("expected some items after --items, such as 12,5,77, got none")
    for name in ("times", "pages"):
        if events[name] and len(events[name]) != len(events["items"]):
            raise UsageError(
                f"expected one of --{name} for each item, got {len(events[name])} and {len(events['items'])}"
            )
    for name, feature in (("times", "gap"), ("pages", "page")):
        if events[name] and feature not in model.inputs:
            raise UsageError(f"expected no --{name} for a net that does not read them, got {','.join(events[name])}")
    events = known_events(task, events, options.skip_unknown)
    found = suggestions(task, model, events, options.top, options.with_seen)
    print(suggestion_table(found))


def known_events(task: RecommendTask, events: dict[str, list[str]], skip_unknown: bool) -> dict[str, list[str]]:
    """Those whose items and pages the net knows."""
    known = {"items": set(task.log.item_ids), "pages": set(task.log.page_ids)}
    kept = np.ones(len(events["items"]), dtype=bool)
    for name, ids in known.items():
        for place, given in enumerate(events[name] if ids else []):
            if given in ids:
                continue
            if not skip_unknown:
                hint = suggestion(given, ids)
                raise UsageError(
                    f"expected {name} that the net knows, got {given!r} (--skip-unknown leaves it out){hint}"
                )
            kept[place] = False
    if not kept.any():
        raise UsageError(f"expected an item that the net knows, got {', '.join(events['items'])}")
    if not kept.all():
        left = ", ".join(item for item, keep in zip(events["items"], kept, strict=True) if not keep)
        print(f"left out {(~kept).sum()} of {len(kept)} events, which are unknown: {left}\n")
    return {
        name: [v for v, keep in zip(values, kept, strict=True) if keep] if values else []
        for name, values in events.items()
    }


@torch.no_grad()
def suggestions(
    task: RecommendTask, model: RecommenderModel, events: dict[str, list[str]], top: int, with_seen: bool = False
) -> list[Suggestion]:
    """The most probable next items. Probabilities are those among all items, with or without the ones seen."""
    log, features = task.log, []
    places = {name: place for place, name in enumerate(log.item_ids)}
    items = [places[item] for item in events["items"]]
    for name in model.inputs:
        features.append(items if name == "item" else _feature(task, name, events))
    inputs_TBF = torch.tensor(np.stack(features, -1)[:, None][-task.max_length :])
    hidden_TBE, _ = model(inputs_TBF)
    scores_V = model.scores(hidden_TBE[-1, 0]).double()
    if not with_seen:
        scores_V[torch.tensor(items)] = -torch.inf
    chances_V, titles = scores_V.softmax(-1), task.titles
    order = chances_V.argsort(descending=True, stable=True)[: min(top, int((scores_V > -torch.inf).sum()))].tolist()
    return [Suggestion(log.item_ids[v], float(chances_V[v]), titles.get(log.item_ids[v], "")) for v in order]


def _feature(task: RecommendTask, name: str, events: dict[str, list[str]]) -> list[int]:
    option = {"gap": "times", "page": "pages"}[name]
    if not events[option]:
        raise UsageError(f"expected --{option}, one for each item, which this net reads too, got none")
    if name == "page":
        places = {page: place for place, page in enumerate(task.log.page_ids)}
        return [places[page] for page in events["pages"]]
    try:
        times = np.array([float(time) for time in events["times"]])
    except ValueError:
        raise UsageError(f"expected --times to be numbers, got {','.join(events['times'])}") from None
    if not np.isfinite(times).all() or (np.diff(times) < 0).any():
        raise UsageError(f"expected --times in ascending order, got {','.join(events['times'])}")
    kinds: list[int] = gaps_between(times).tolist()
    return kinds


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def suggestion_table(found: Sequence[Suggestion]) -> str:
    """A line for each, its title at the end."""
    rows = [["item", "probability"], *([one.item, f"{one.probability:.4f}"] for one in found)]
    titles = ["title" if any(one.title for one in found) else "", *(one.title for one in found)]
    return "\n".join(f"{row}  {title}".rstrip() for row, title in zip(table(rows).splitlines(), titles, strict=True))
