"""`slimrnn sample`."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from cli_runs import complaint, trained

from slimrnn.cli import main
from slimrnn.cli.settings import trained_net
from slimrnn.tasks import PTBCharsTask, sample_text

TEXT = "a stitch in time saves nine.\nno pain no gain.\n\nleast said soonest mended.\n" * 8


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs, of which one carries its state from sentence to sentence."""
    directory = tmp_path_factory.mktemp("runs")
    (directory / "text.txt").write_text(TEXT)
    options = ["--file", str(directory / "text.txt"), "--model.cell=gru", "--model.hidden=12", "--optim.lr=3e-2"]
    options += ["--updates=80", "--eval-every=80", "--batch-size=4", "--no-tensorboard", "--threads=1"]
    assert main(["train", "ptb-chars", *options, "--out", str(directory / "sentences")]) == 0
    assert main(["train", "ptb-chars", *options, "--streams=4", "--bptt=10", "--out", str(directory / "streams")]) == 0
    return directory


def sampled(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    assert main(["sample", *arguments]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("name", ["sentences", "streams"])
def test_a_seed_gives_one_text(runs: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    texts = [sampled(capsys, str(runs / name), "--prompt", "no ", "--length", "40", "--seed", seed) for seed in "0012"]
    assert texts[0] == texts[1]
    assert len(set(texts)) == 3
    assert all(text.startswith("no ") and len(text) == 3 + 40 + 1 for text in texts)


def test_without_temperature_the_likeliest_of_a_whole_pass_is_written(runs: Path) -> None:
    task, model = trained_net(runs / "streams", PTBCharsTask, None)
    prompt = "a st"
    text = prompt + "".join(sample_text(model, task, prompt, 60, temperature=0))
    read = torch.tensor([[task.symbols.index(character)] for character in "\n" + text[:-1]])
    with torch.no_grad():
        output, _ = model(read)
    likeliest = "".join(task.symbols[int(place)] for place in output[:, 0].argmax(-1))
    assert likeliest[len(prompt) :] == text[len(prompt) :]


def test_sentences_begin_anew_where_training_let_them(runs: Path) -> None:
    task, model = trained_net(runs / "sentences", PTBCharsTask, None)
    first = "".join(sample_text(model, task, "", 30, temperature=0))
    assert "".join(sample_text(model, task, "no pain\n", 30, temperature=0)) == first
    task, model = trained_net(runs / "streams", PTBCharsTask, None)
    states = ["".join(sample_text(model, task, prompt, 300, 1.0)) for prompt in ("", "no pain\n")]
    assert states[0] != states[1]


def test_a_low_temperature_is_near_the_likeliest(runs: Path) -> None:
    task, model = trained_net(runs / "streams", PTBCharsTask, None)
    likeliest = "".join(sample_text(model, task, "no", 40, 0))
    assert "".join(sample_text(model, task, "no", 40, 1e-9, seed=3)) == likeliest
    assert "".join(sample_text(model, task, "no", 40, 1.0, seed=3)) != likeliest


def test_bad_input_is_refused(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(runs / "streams")
    assert "got 'Z'" in complaint(capsys, "sample", run, "--prompt", "no Z")
    assert complaint(capsys, "sample", run, "--length", "0") == "expected --length of at least 1, got 0"
    assert complaint(capsys, "sample", run, "--temperature=-1") == "expected --temperature of at least 0, got -1.0"
    assert "has no run.json" in complaint(capsys, "sample", str(tmp_path))
    other = trained(tmp_path / "copy")
    assert complaint(capsys, "sample", str(other)).endswith("which is one on copy")


def test_another_text_than_that_of_training_is_refused(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = runs / "text.txt"
    path.write_text(TEXT + "Q")
    assert "expected the text that the net was trained on, with 18 symbols, got" in complaint(
        capsys, "sample", str(runs / "streams")
    )
    path.write_text(TEXT)
