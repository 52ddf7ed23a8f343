"""The scripts in examples/, in small; the demo has a test of its own."""

from __future__ import annotations

import re
import runpy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

EXAMPLES = Path(__file__).parents[1] / "examples"
PNG = b"\x89PNG"

Capture = pytest.CaptureFixture[str]


def script(name: str) -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))


def write_csv(path: Path, values: Sequence[object]) -> Path:
    path.write_text("time,value\n" + "".join(f"{hour},{value}\n" for hour, value in enumerate(values)))
    return path


def test_forecasts_of_a_file_are_judged_beside_naive_ones(tmp_path: Path, capsys: Capture) -> None:
    file = write_csv(tmp_path / "my.csv", [step % 12 for step in range(500)])
    script("forecasting")["main"](file, periods=(12, 3), horizon=4, updates=1, out=tmp_path / "new" / "a.png")
    said = dict(re.findall(r"^  (\S.*?) +(\d\S*?)(?:, [\d,]+ parameters)?$", capsys.readouterr().out, re.MULTILINE))
    assert list(said) == ["torch.nn.LSTM", "slimrnn.LSTM", "last value", "12 steps before", "3 steps before"]
    assert float(said["12 steps before"]) == 0
    # of the steps t to t + k of 0, 1, ... 11, k pass the jump from 11 to 0: |k - 12| there and k elsewhere
    errors = [(k * (12 - k) + (12 - k) * k) / 12 for k in (1, 2, 3, 4)]
    assert float(said["last value"]) == pytest.approx(sum(errors) / 4, rel=0.05)  # the test steps are not whole periods
    assert float(said["3 steps before"]) > 0
    assert (tmp_path / "new" / "a.png").read_bytes().startswith(PNG)


@pytest.mark.parametrize(
    ("values", "column", "complaint"),
    [
        ([1, 2], "price", r"expected a column 'price' in .*my.csv, got \['time', 'value'\]"),
        ([1, "two", 3], "value", "expected a number in line 3 of .*my.csv, got 'two'"),
        ([1, 2, ""], "value", "expected a number in line 4 of .*my.csv, got ''"),
        (["nan"], "value", "expected a number in line 2 of .*my.csv, got 'nan'"),
        ([], "value", "expected a column 'value' in .*my.csv, got no rows"),
        (range(300), "value", "expected a series that is long beside its periods and the horizon, got 300 steps"),
    ],
)
def test_files_that_cannot_be_forecast_are_refused(
    tmp_path: Path, values: Sequence[object], column: str, complaint: str
) -> None:
    file = write_csv(tmp_path / "my.csv", values)
    with pytest.raises(SystemExit, match=complaint):
        script("forecasting")["main"](file, column, out=tmp_path / "a.png")


def test_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PNG)
    for name in ("none.csv", "a.png"):
        with pytest.raises(SystemExit, match=f"expected a CSV file, got .*{name}"):
            script("forecasting")["main"](tmp_path / name)


def test_characters_of_a_file_are_learned_twice(tmp_path: Path, capsys: Capture) -> None:
    text = tmp_path / "my.txt"
    text.write_text("to be, or not to be:\n" * 100)
    for _ in range(2):  # the directory of the first time does not matter
        script("characters")["main"](text, updates=2, out=tmp_path / "out")
    said = re.search(
        r"bits per character: GRU ([\d.]+), 6 characters ([\d.]+), 1 character ([\d.]+)", capsys.readouterr().out
    )
    assert said
    net, six, one = map(float, said.groups())
    assert six < one < net < 10  # two updates teach nothing
    assert (tmp_path / "out" / "characters.png").read_bytes().startswith(PNG)
    with pytest.raises(SystemExit, match=r"expected a text file, got .*none.txt"):
        script("characters")["main"](tmp_path / "none.txt", out=tmp_path / "other")


def test_tables_of_characters_know_what_they_see(tmp_path: Path) -> None:
    characters = script("characters")
    assert characters["table_bits"]("ab" * 500, "ab" * 50, 1) == pytest.approx(1, abs=0.01)
    assert characters["table_bits"]("ab" * 500, "ab" * 50, 2) < 0.01
    assert characters["table_bits"]("ab" * 500, "xy" * 50, 2) > 10  # never seen, yet possible


def test_made_lines_end_with_the_names_they_began_with(tmp_path: Path) -> None:
    characters = script("characters")
    entropy = characters["make_text"](tmp_path / "text.txt", 50)
    text = (tmp_path / "text.txt").read_text()
    assert all(re.fullmatch(characters["TRUE"], line) for line in text.splitlines())
    assert entropy * len(text) / 50 == pytest.approx(11.807, abs=1e-3)  # log2 of 8 · 7 · 8 · 8


def test_streams_in_two_processes_equal_whole_sequences(tmp_path: Path, capsys: Capture) -> None:
    script("streaming")["main"](steps=40, calls=3, out=tmp_path)
    said = capsys.readouterr().out
    assert said.startswith("4 streams are on at step 20;")
    gap = re.search("difference from whole sequences: (.*)", said)
    assert gap
    assert float(gap[1]) < 1e-6
    assert len(re.findall(r"a step of \S+: [\d.]+ µs", said)) == 2
    assert (tmp_path / "streaming.png").read_bytes().startswith(PNG)


def test_recurrent_policies_agree_where_episodes_end_inside_a_batch(tmp_path: Path, capsys: Capture) -> None:
    ppo = script("recurrent_ppo")
    ppo["main"](frames=64, units=8, out=tmp_path)
    assert len(re.findall(r"(?:sb3-contrib|slimrnn), seed 0: [\d,]+ frames per second", capsys.readouterr().out)) == 2
    assert (tmp_path / "recurrent_ppo.png").read_bytes().startswith(PNG)
    assert (tmp_path / "recurrent_ppo.csv").read_text().count("\n") == 3  # of each policy one batch
    env = ppo["make_env"]()
    spaces = (env.observation_space, env.action_space, lambda progress: 1e-3)
    ours = ppo["SlimPolicy"](*spaces, lstm_hidden_size=8)
    theirs = ppo["RecurrentActorCriticPolicy"](*spaces, lstm_hidden_size=8)
    theirs.lstm_actor = ours.lstm_actor.to_torch()
    x, states = torch.randn(3 * 5, 2), (torch.randn(1, 3, 8), torch.randn(1, 3, 8))
    for features, starts in ((x, torch.rand(15) < 0.3), (x[:3], torch.tensor([1, 0, 1]))):
        found = [p._process_sequence(features, states, starts.float(), p.lstm_actor) for p in (ours, theirs)]
        torch.testing.assert_close(found[0][0], found[1][0])
        torch.testing.assert_close(tuple(found[0][1]), tuple(found[1][1]))
