"""The files around the code: what they cite exists and is up to date."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

import slimrnn

PROJECT = Path(__file__).parents[1]


def test_citation_is_complete() -> None:
    citation = yaml.safe_load((PROJECT / "CITATION.cff").read_text())
    assert citation["cff-version"] == "1.2.0"
    assert citation["version"] == slimrnn.__version__
    assert citation["license"] == "Apache-2.0"
    assert {"message", "title", "type", "abstract", "authors"} <= set(citation)
    assert all(set(author) == {"name"} for author in citation["authors"])
    readme = " ".join((PROJECT / "README.md").read_text().split())
    assert len(citation["references"]) == 6
    for source in citation["references"]:
        assert {"type", "title", "year", "authors"} <= set(source)
        assert source["title"] in readme
        assert all(set(author) == {"family-names", "given-names"} for author in source["authors"])


def test_changelog_has_this_version() -> None:
    assert f"## [{slimrnn.__version__}]" in (PROJECT / "CHANGELOG.md").read_text()


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "CHANGELOG.md", "examples/README.md"])
def test_links_lead_somewhere(name: str) -> None:
    page = PROJECT / name
    for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_every_make_target_that_is_told_exists() -> None:
    targets = re.findall(r"^([a-z-]+):", (PROJECT / "Makefile").read_text(), re.MULTILINE)
    told = re.findall(r"`make ([\w-]+)`", (PROJECT / "CONTRIBUTING.md").read_text())
    assert told
    assert set(told) <= set(targets)
