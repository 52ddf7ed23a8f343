"""Figures and reports of a diagnosis."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
import torch
from torch import nn

from slimrnn import GRU, RNN, Kronecker
from slimrnn.analysis import Diagnosis, diagnose, html_report, save_figures, write_report
from slimrnn.analysis.doctor.figures import layer_figures

GATED = ["reach", "spectrum", "gates", "forgetting", "capacity", "structure"]


@pytest.fixture(scope="module")
def nets() -> tuple[Diagnosis, Diagnosis]:
    x = torch.randn(40, 3, 2, generator=torch.Generator().manual_seed(0))
    torch.manual_seed(0)
    kru = RNN(2, 4, nonlinearity="modrelu", structure=Kronecker([2, 2]))
    return diagnose(GRU(2, 4, num_layers=2), x), diagnose(kru, x)


class Page(HTMLParser):
    """Names in a page, what it links to, and whether its elements are closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in ("meta", "link"):
            self.open.append(tag)
        self._note(attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note(attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def _note(self, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in ("href", "xlink:href", "src"):
                self.links.append(value or "")


def test_every_measure_has_its_figure(nets: tuple[Diagnosis, Diagnosis]) -> None:
    first, second = layer_figures(nets[0])
    assert [picture.name for picture in second] == [f"layer-1-{name}" for name in GATED]
    assert [picture.name for picture in first] == [f"layer-0-{name}" for name in GATED if name != "capacity"]
    (unitary,) = layer_figures(nets[1])
    assert "layer-0-forgetting" not in {picture.name for picture in unitary}


def test_dependence_has_a_figure_where_sequences_are_long() -> None:
    (found,) = layer_figures(diagnose(nn.GRU(1, 3), torch.randn(350, 1, 1)))
    assert "layer-0-dependence" in {picture.name for picture in found}


def test_figures_are_png_and_svg_and_always_the_same(nets: tuple[Diagnosis, Diagnosis], tmp_path: Path) -> None:
    written = save_figures(nets[1], tmp_path / "one")
    again = save_figures(nets[1], tmp_path / "two")
    assert {path.suffix for path in written} == {".png", ".svg"}
    drawn = save_figures(nets[1], tmp_path / "one", figures=layer_figures(nets[1]))
    assert drawn == written
    for path, same in zip(drawn, again, strict=True):
        assert path.read_bytes() == same.read_bytes()
        assert path.read_bytes().startswith(b"\x89PNG" if path.suffix == ".png" else b"<?xml")


def test_two_nets_share_figures(nets: tuple[Diagnosis, Diagnosis]) -> None:
    both, alone = layer_figures(*nets, names=("gru", "kru"))
    reach = next(picture for picture in both if picture.name == "layer-0-reach")
    assert reach.caption.count("half-life") == 2
    svg = reach.rendered("svg").decode()
    assert "gru: of the state" in svg
    assert "kru: of the state" in svg
    assert all("kru" not in picture.caption for picture in alone)  # it has one layer only


@pytest.mark.parametrize("both", [False, True])
def test_the_report_is_one_whole_page(nets: tuple[Diagnosis, Diagnosis], both: bool) -> None:
    other = nets[1] if both else None
    text = html_report(nets[0], other, names=("gru", "kru"), title="a < b")
    page = Page(text)
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))
    assert {link for link in page.links if not link.startswith("#")} <= {"data:,"}
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)
    assert set(re.findall(r"url\(#([^)]*)\)", text)) <= set(page.ids)
    assert page.tags.count("svg") == page.tags.count("figure") == sum(map(len, layer_figures(nets[0], other)))
    assert text.count('role="img" aria-label="') == page.tags.count("svg")
    assert "script" not in page.tags
    assert "<title>a &lt; b</title>" in text
    assert 'name="viewport"' in text
    assert "prefers-color-scheme: dark" in text


def test_the_report_tells_summary_findings_and_layers_in_this_order(nets: tuple[Diagnosis, Diagnosis]) -> None:
    text = html_report(nets[0])
    places = [text.index(part) for part in ("2 recurrent layers", "<h2>Findings", "<h2>l0", "<h2>l1")]
    assert places == sorted(places)
    for finding in nets[0].findings:
        assert finding.seen[1:].replace("'", "&#x27;") in text
    assert "dependence: it needs a sequence of at least 342 steps, got 40" in text


def test_colours_follow_the_scheme(nets: tuple[Diagnosis, Diagnosis]) -> None:
    text = html_report(nets[1])
    body = text[text.index("</head>") :]
    assert not re.findall(r"#[0-9a-f]{6}\b(?!\))", body)
    assert "var(--c0)" in body


def test_a_report_is_written(nets: tuple[Diagnosis, Diagnosis], tmp_path: Path) -> None:
    path = write_report(tmp_path / "report.html", nets[1])
    assert path.read_text(encoding="utf-8") == html_report(nets[1])
