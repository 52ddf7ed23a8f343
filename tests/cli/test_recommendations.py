"""`slimrnn recommend`, and what the other commands show of recommenders."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from cli_runs import complaint, trained

from real_data import needs_data
from slimrnn.cli import main
from slimrnn.cli.recommend import suggestions
from slimrnn.cli.settings import trained_net
from slimrnn.tasks import RecommendTask

CIRCLE = "abcdefgh"
TINY = ["--model.hidden=12", "--optim.lr=3e-2", "--batch-size=8", "--no-tensorboard", "--threads=1", "--eval-every=60"]


def write_log(path: Path, users: int = 30) -> None:
    """All go around a circle, one step every ten seconds."""
    lines = ["user,item,timestamp,page"]
    for user in range(users):
        lines += [f"{user},{CIRCLE[(user + k) % len(CIRCLE)]},{10 * k},{'xy'[k % 2]}" for k in range(5 + user % 7)]
    path.write_text("\n".join(lines))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A net that reads items, and one that reads pages and times too."""
    directory = tmp_path_factory.mktemp("runs")
    write_log(directory / "log.csv")
    options = ["--file", str(directory / "log.csv"), "--updates=60", "--embedding=8", *TINY]
    assert main(["train", "recommend", *options, "--no-time-gaps", "--out", str(directory / "items")]) == 0
    assert main(["train", "recommend", *options, "--page-column=page", "--out", str(directory / "all")]) == 0
    return directory


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    assert main(list(arguments)) == 0
    return capsys.readouterr().out


def items(table: str) -> list[str]:
    return [line.split()[0] for line in table.splitlines()[1:]]


def test_the_next_item_of_the_circle_comes_first(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = said(capsys, "recommend", str(runs / "items"), "--items", "c,d,e")
    assert re.fullmatch(r"item  probability\n(\w +[01]\.\d{4}\n){5}", found)
    assert items(found)[0] == "f"
    assert set(items(found)) == set("abfgh")  # without what was seen
    assert len(items(said(capsys, "recommend", str(runs / "items"), "--items", "c,d", "--top", "3"))) == 3
    everything = said(capsys, "recommend", str(runs / "items"), "--items", "c,d,e", "--with-seen")
    assert set(items(everything)) == set(CIRCLE)


def test_pages_and_times_are_read_where_the_net_does(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(runs / "all")
    found = said(capsys, "recommend", run, "--items", "c,d,e", "--pages", "x,y,x", "--times", "0,10,20")
    assert items(found)[0] == "f"
    assert complaint(capsys, "recommend", run, "--items", "c,d", "--pages", "x,y").startswith(
        "expected --times, one for"
    )
    assert complaint(capsys, "recommend", run, "--items", "c,d", "--times", "0,1").startswith(
        "expected --pages, one for"
    )
    for option in ("--pages", "--times"):
        told = complaint(capsys, "recommend", str(runs / "items"), "--items", "c,d", option, "1,2")
        assert told.startswith(f"expected no {option} for a net that does not read them, got 1,2")
    one = ["recommend", run, "--items", "c,d", "--pages", "x,y", "--times"]
    assert complaint(capsys, *one, "0") == "expected one of --times for each item, got 1 and 2"
    assert complaint(capsys, *one, "1,0") == "expected --times in ascending order, got 1,0"
    assert complaint(capsys, *one, "1,soon") == "expected --times to be numbers, got 1,soon"


def test_suggestions_are_those_of_a_whole_pass(runs: Path) -> None:
    task, model = trained_net(runs / "items", RecommendTask, None)
    found = suggestions(task, model, {"items": ["b", "c", "d"], "times": [], "pages": []}, 8, with_seen=True)
    places = [task.log.item_ids.index(item) for item in "bcd"]
    with torch.no_grad():
        chances = model.scores(model(torch.tensor(places)[:, None, None])[0])[-1, 0].softmax(-1)
    order = chances.argsort(descending=True).tolist()
    assert [one.item for one in found] == [task.log.item_ids[place] for place in order]
    assert [one.probability for one in found] == pytest.approx(chances[order].tolist(), rel=1e-5)


def test_unknown_items_are_refused_or_left_out(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(runs / "items")
    refused = complaint(capsys, "recommend", run, "--items", "c,zz,d")
    assert refused == "expected items that the net knows, got 'zz' (--skip-unknown leaves it out)"
    found = said(capsys, "recommend", run, "--items", "c,zz,d", "--skip-unknown")
    assert found.startswith("left out 1 of 3 events, which are unknown: zz\n\nitem")
    assert found.split("\n\n")[1] == said(capsys, "recommend", run, "--items", "c,d")
    assert complaint(capsys, "recommend", run, "--items", "yy,zz", "--skip-unknown").endswith("got yy, zz")


def test_bad_input_is_refused(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(runs / "items")
    assert complaint(capsys, "recommend", run, "--items", "c", "--top", "0") == "expected --top of at least 1, got 0"
    assert complaint(capsys, "recommend", run, "--items", ",").startswith("expected some items after --items")
    assert "--items" in complaint(capsys, "recommend", run)
    assert "has no run.json" in complaint(capsys, "recommend", str(tmp_path), "--items", "c")
    other = trained(tmp_path / "copy")
    assert complaint(capsys, "recommend", str(other), "--items", "c").endswith("which is one on copy")


def test_another_log_than_that_of_training_is_refused(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = runs / "log.csv"
    whole = path.read_text()
    for other, count in ((whole + "\n0,new,1000,x", 9), (whole.replace("c,", "z,"), 8)):
        assert other != whole
        path.write_text(other)
        refused = complaint(capsys, "recommend", str(runs / "items"), "--items", "d")
        assert refused == f"expected the log that the net was trained on, with 8 items, got another, with {count}"
    path.write_text(whole)


def test_tables_show_popularity_and_item_to_item(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evaluated = said(capsys, "eval", str(runs / "items")).splitlines()
    assert evaluated[0].split() == ["loss", "map", "at", "20", "recall", "at", "20", "ndcg", "at", "10", "mrr"]
    assert [re.split("  +", line)[0] for line in evaluated[1:]] == ["valid", "test", "popularity", "item to item"]
    assert re.split("  +", evaluated[4])[1:] == ["1", "1", "1", "1"]  # the circle is known; there is no loss
    plot = ["--out", str(runs / "plot.png")]
    compared = said(capsys, "compare", str(runs / "items"), str(runs / "all"), *plot).splitlines()
    assert [re.split("  +", line)[0] for line in compared[1:5]] == ["items", "all", "popularity", "item to item"]


@needs_data
def test_titles_are_shown_where_the_data_has_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--data=ml-latest-small", "--no-time-gaps", "--max-length=10", "--negatives=50", "--updates=2", *TINY]
    sizes = ["--valid-size=4", "--test-size=4", "--embedding=4"]
    assert main(["train", "recommend", *options, *sizes, "--out", str(tmp_path / "run")]) == 0
    found = said(capsys, "recommend", str(tmp_path / "run"), "--items", "1,2", "--top", "5").splitlines()
    assert found[0].split() == ["item", "probability", "title"]
    assert all(re.search(r"\w \(\d{4}\)$", line) for line in found[1:])
