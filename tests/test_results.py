"""RESULTS.md is what the runs in results/ say, and they are runs of the rows they are named after."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import paper_results
import pytest
from publish import PROJECT, counts, keep_runs, our_recipes, page, tables_elsewhere, with_table
from row_text import RESULTS, cells, seeds_of, state_of

from slimrnn.papers import PaperRow, find_row, paper_rows, run_directory
from slimrnn.tasks import config_from_dict
from slimrnn.training.record import Run, fingerprint

KEPT = sorted(path.parent for path in RESULTS.glob("*/run.json"))


def test_the_pages_are_up_to_date() -> None:
    """Else: make results."""
    assert (PROJECT / "RESULTS.md").read_text() == page()
    for path, tables in tables_elsewhere().items():
        text = path.read_text()
        assert all(with_table(text, name, table) == text for name, table in tables.items())


@pytest.mark.parametrize("directory", KEPT, ids=lambda path: path.name)
def test_a_kept_run_has_the_settings_of_its_row(directory: Path) -> None:
    run = Run(directory)
    row = find_row(directory.name.split("-seed-")[0])
    assert directory == run_directory(RESULTS, row, run.record["seed"])
    expected = fingerprint(replace(row.config, seed=run.record["seed"]))
    assert fingerprint(config_from_dict(run.config)) == expected
    assert run.config["updates"] == row.config.updates or row.name.startswith("timit")


@pytest.mark.parametrize("directory", KEPT, ids=lambda path: path.name)
def test_a_kept_run_is_small_and_tells_no_path(directory: Path) -> None:
    assert sorted(path.name for path in directory.iterdir()) == ["curve.csv", "run.json"]
    for path in directory.iterdir():
        assert path.stat().st_size < 100_000
        assert not re.search(r'"/|/(tmp|root|home|work)/', path.read_text())


def test_compression_tells_no_path_and_keeps_its_budgets() -> None:
    for path in (RESULTS / "compression").rglob("*.json"):
        text = path.read_text()
        assert not re.search(r"/(tmp|root|home|work)/", text)
        share, cell = path.stem.rpartition("-")[2], json.loads(text)
        if share[0].isdigit():
            assert cell["share"] <= float(share)


def test_figures_are_those_the_page_shows(tmp_path: Path) -> None:
    paper_results.main(tmp_path)
    shown = re.findall(r"!\[.+\]\(docs/figures/(.+)\)", (PROJECT / "RESULTS.md").read_text())
    assert sorted(shown) == sorted(path.name for path in tmp_path.iterdir())
    for name in shown:
        assert (PROJECT / "docs" / "figures" / name).read_bytes().startswith(b"\x89PNG")


def test_a_row_that_was_not_run_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("row_text.RESULTS", tmp_path)
    assert cells(find_row("copy-1000-kru"))[3] == "not run: not yet"
    assert cells(find_row("timit-kru"))[3] == "not run: the corpus is not free"
    assert not any(map(seeds_of, paper_rows().values()))


def write_runs(runs: Path, row: PaperRow, *scores_of_seeds: float, ended: str = "finished") -> None:
    """A run for each score, with seeds 0, 1, ..."""
    for seed, score in enumerate(scores_of_seeds):
        directory = run_directory(runs, row, seed)
        directory.mkdir(parents=True)
        scores = {split: {row.score: score} for split in ("valid", row.split)}
        result = {"ended": ended, "updates": 1000, "seconds": 60.0, "best_update": 1000}
        result |= {"best": scores, "final": scores, "recoveries": []}
        record = {"status": ended, "config": {}, "parameters": {"total": 5314}, "seed": seed, "result": result}
        (directory / "run.json").write_text(json.dumps(record))
        (directory / "curve.csv").write_text(f"update,seconds,{row.split}/{row.score}\n0,0.0,2.3\n900,5.0,{score}\n")
        (directory / "best.safetensors").write_text("weights")


def test_seeds_are_summed_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("row_text.RESULTS", tmp_path)
    row = find_row("copy-1000-kru")
    write_runs(tmp_path / "runs", row, 1e-4, 3e-4, 1e-2)
    keep_runs(tmp_path / "runs")
    assert not (run_directory(tmp_path, row, 0) / "best.safetensors").exists()
    _, ours, _, verdict, updates, time, parameters = cells(row)
    assert ours == "loss 0.00347 (0.0001 to 0.01, 3 seeds)"
    assert verdict == "**passed** 2 of 3 at 900"
    assert (updates, time, parameters) == ("1,000", "1:00 min", "5,314")


def test_a_text_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="expected the marks"):
        with_table("nothing here", "results", "| a |")
    marked = "<!-- results -->\nold\n<!-- end of results -->"
    assert with_table(marked, "results", "| a |") == "<!-- results -->\n| a |\n<!-- end of results -->"


@pytest.mark.parametrize(
    ("losses", "verdict", "count"),
    [
        ((1e-4, 3e-4, 1e-2), "**passed** 2 of 3 at 900", "| 1 | 0 |"),
        ((1e-4, 1e-2), "not met: agrees with 1 of 2 seeds", "| 0 | 1 |"),
    ],
)
def test_a_claim_agrees_if_most_seeds_pass(
    losses: tuple[float, ...], verdict: str, count: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("row_text.RESULTS", tmp_path)
    row = find_row("copy-1000-kru")
    write_runs(tmp_path, row, *losses)
    assert cells(row)[3] == verdict
    assert f"| **all** {count}" in counts("\n## Copy\n<!-- rows: copy-1000-kru -->\n")


@pytest.mark.parametrize(("loss", "agree", "disagree"), [(1e-3, 1, 0), (0.1, 0, 1)])
def test_verdicts_by_our_recipe_alone_are_counted(
    loss: float, agree: int, disagree: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("row_text.RESULTS", tmp_path)
    write_runs(tmp_path, find_row("adding-100-kru-ours"), loss)
    write_runs(tmp_path, find_row("copy-1000-kru"), 1e-4)  # by the paper's
    told = " ".join(our_recipes().split())
    assert told.startswith(f"Of those that agree, {agree} do so only because of a recipe of ours")
    assert f"Of those that disagree, {disagree} were run by our recipe" in told


def test_rivals_that_are_quicker_only_by_our_recipe_are_counted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("row_text.RESULTS", tmp_path)
    assert "and 0 are races that a rival wins by our recipe" in " ".join(our_recipes().split())
    for name, loss in (("kru", 0.1), ("kru-ours", 0.1), ("lstm", 0.1), ("lstm-ours", 1e-3)):
        write_runs(tmp_path, find_row(f"adding-100-{name}"), loss)
    assert "and 1 are races that a rival wins by our recipe" in " ".join(our_recipes().split())


@pytest.mark.parametrize(
    ("run", "verdict"),
    [
        (("",), "not met by the paper's recipe; ours was not run"),
        (("-ours",), "not met by our recipe; the paper's was not run"),
        (("", "-ours"), "not met by either recipe"),
    ],
)
def test_a_verdict_says_which_recipes_were_tried(
    run: tuple[str, ...], verdict: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("row_text.RESULTS", tmp_path)
    for recipe in run:
        write_runs(tmp_path, find_row(f"adding-100-kru{recipe}"), 0.1)
    assert cells(find_row("adding-100-kru"))[3] == verdict


def test_an_unfinished_run_by_our_recipe_has_the_length_of_that_recipe(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("row_text.RESULTS", tmp_path)
    write_runs(tmp_path, find_row("permuted-mnist-kru-quick"), 0.5, ended="interrupted")
    assert cells(find_row("permuted-mnist-kru"))[3] == "unfinished (5 % of 22,000)"


def test_a_verdict_on_which_seeds_differ_names_the_recipe(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The LSTM by our recipe is first with seed 1."""
    monkeypatch.setattr("row_text.RESULTS", tmp_path)
    for name, losses in {
        "kru": (1e-3, 0.1),
        "lstm": (0.1, 0.1),
        "kru-ours": (0.1, 0.1),
        "lstm-ours": (0.1, 1e-3),
    }.items():
        write_runs(tmp_path, find_row(f"adding-100-{name}"), *losses)
    verdict = cells(find_row("adding-100-lstm"))[3]
    assert verdict == "not met: agrees with 1 of 2 seeds, because of adding-100-lstm-ours"


def test_seeds_by_our_recipe_alone_count(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("row_text.RESULTS", tmp_path)
    row = find_row("adding-750-kru")
    write_runs(tmp_path, row, 0.1)
    write_runs(tmp_path, find_row("adding-750-kru-ours"), 1e-3, 0.1, 0.1)
    assert cells(row)[3] == "not met: agrees with 1 of 3 seeds by adding-750-kru-ours"
    assert state_of(row) == "failed"
