"""A report in a real browser, as wide as a phone and as a desk."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path

import pytest
import torch

from slimrnn import GRU, RNN, Kronecker
from slimrnn.analysis import diagnose, write_report
from slimrnn.analysis.doctor.figures import layer_figures

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--allow-file-access-from-files",  # so that the page around may look into the report
    "--enable-logging=stderr",
    "--virtual-time-budget=20000",
    "--dump-dom",
]
WIDTHS = (360, 1200)
AROUND = """<!DOCTYPE html><html><body><pre id="seen"></pre>
{frames}
<script>
addEventListener("load", () => {{
  const seen = [...document.querySelectorAll("iframe")].map((frame) => {{
    const page = frame.contentDocument;
    const sizes = (what) => [...page.querySelectorAll(what)].map((one) => one.getBoundingClientRect());
    return {{
      wide: page.documentElement.scrollWidth,
      figures: sizes("figure svg").map((box) => [box.width, box.height]),
      drawn: [...page.querySelectorAll("figure svg path")].some((path) => path.getTotalLength() > 100),
      findings: sizes(".finding").length,
      text: getComputedStyle(page.body).color,
    }};
  }});
  document.getElementById("seen").textContent = JSON.stringify(seen);
}});
</script></body></html>"""


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium, which is not installed")
@pytest.mark.parametrize("both", [False, True])
def test_the_report_shows_its_figures_on_a_phone_and_on_a_desk(tmp_path: Path, both: bool) -> None:
    assert CHROMIUM is not None
    x = torch.randn(40, 2, 2)
    gru, kru = GRU(2, 4), RNN(2, 4, nonlinearity="modrelu", structure=Kronecker([2, 2]))
    one, other = diagnose(gru, x), diagnose(kru, x) if both else None
    write_report(tmp_path / "report.html", one, other)
    frames = "".join(f'<iframe src="report.html" width="{width}" height="3000"></iframe>' for width in WIDTHS)
    (tmp_path / "around.html").write_text(AROUND.format(frames=frames))
    profile = f"--user-data-dir={tmp_path / 'profile'}"
    address = (tmp_path / "around.html").as_uri()
    done = subprocess.run([CHROMIUM, *FLAGS, profile, address], capture_output=True, text=True, timeout=300)
    assert "CONSOLE" not in done.stderr
    found = re.search(r'<pre id="seen">(.+?)</pre>', done.stdout)
    assert found is not None, done.stderr
    count = len(layer_figures(one, other)[0])
    for width, seen in zip(WIDTHS, json.loads(unescape(found[1])), strict=True):
        assert seen["wide"] <= width  # nothing sticks out
        assert len(seen["figures"]) == count
        assert all(0.7 * min(width, 520) < wide <= width and high > 50 for wide, high in seen["figures"])
        assert seen["drawn"]
        assert seen["findings"] >= len(one.findings)
