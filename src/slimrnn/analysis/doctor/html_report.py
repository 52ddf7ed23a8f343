"""A diagnosis as one HTML file: nothing to load, no scripts, light and dark, for phones and desks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from itertools import zip_longest
from pathlib import Path

from slimrnn._pages import inline, page
from slimrnn.analysis.doctor._axes import INK
from slimrnn.analysis.doctor.captioned_figure import CaptionedFigure
from slimrnn.analysis.doctor.diagnosis import Diagnosis
from slimrnn.analysis.doctor.figures import layer_figures
from slimrnn.analysis.doctor.finding import Finding
from slimrnn.analysis.doctor.layer_diagnosis import LayerDiagnosis
from slimrnn.analysis.doctor.text_report import gate_name, headline, lead, measured

WORDS = {"problem": "Problem", "hint": "Hint", "fine": "Fine"}


def html_report(
    diagnosis: Diagnosis,
    compare: Diagnosis | None = None,
    *,
    names: Sequence[str] = ("A", "B"),
    title: str = "Memory report",
    subtitle: str = "",
    figures: Sequence[Sequence[CaptionedFigure]] | None = None,
) -> str:
    """The report of a net, or with `compare` of two side by side, which `names` tells apart; `figures` are those of
    `layer_figures`, where they have been drawn already."""
    nets = [diagnosis] if compare is None else [diagnosis, compare]
    labels = [""] if compare is None else list(names)
    figures = layer_figures(diagnosis, compare, names) if figures is None else figures
    body = [
        f"<header><h1>{escape(title)}</h1>" + (f"<p>{escape(subtitle)}</p>" if subtitle else "") + "</header>",
        _columns([_summary(net, label) for net, label in zip(nets, labels, strict=True)], "summary"),
        f"<h2>Findings</h2>{_columns([_findings(net, label) for net, label in zip(nets, labels, strict=True)])}",
    ]
    for number, layers in enumerate(zip_longest(*(net.layers for net in nets))):
        present = [(label, layer) for label, layer in zip(labels, layers, strict=True) if layer is not None]
        body.append(_layer(present, figures[number], number))
    return page(title, body)


def write_report(
    path: Path | str,
    diagnosis: Diagnosis,
    compare: Diagnosis | None = None,
    *,
    names: Sequence[str] = ("A", "B"),
    title: str = "Memory report",
    subtitle: str = "",
) -> Path:
    """The report as a file; see `html_report`."""
    path = Path(path)
    path.write_text(html_report(diagnosis, compare, names=names, title=title, subtitle=subtitle), encoding="utf-8")
    return path


def _columns(parts: Sequence[str], kind: str = "") -> str:
    return (
        f'<div class="columns {kind}">'
        + "".join(f'<section class="card">{part}</section>' for part in parts)
        + "</div>"
    )


def _named(label: str) -> str:
    return f"<h3>{escape(label)}</h3>" if label else ""


def _summary(net: Diagnosis, label: str) -> str:
    findings = net.findings
    sentences = [f"{headline(net.model, net.layers, findings)}.", *lead(net.layers, findings)]
    return _named(label) + "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)


def _findings(net: Diagnosis, label: str) -> str:
    found = net.findings
    return _named(label) + ("".join(map(_finding, found)) if found else "<p>Nothing to remark.</p>")


def _finding(finding: Finding) -> str:
    advice = f'<p class="advice">{escape(_sentence(finding.advice))}</p>' if finding.advice else ""
    return (
        f'<article class="finding {finding.severity}"><p class="seen"><b class="mark">{WORDS[finding.severity]}</b> '
        f"<span>{escape(finding.layer)}</span> {escape(_sentence(finding.seen))}.</p>{advice}"
        f'<p class="reason">{escape(_sentence(finding.reason))}.</p></article>'
    )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _layer(present: Sequence[tuple[str, LayerDiagnosis]], figures: Sequence[CaptionedFigure], number: int) -> str:
    names = list(dict.fromkeys(layer.name for _, layer in present))
    drawn = "".join(_figure(captioned, f"f{number}{place}") for place, captioned in enumerate(figures))
    tables = _columns([_named(label) + _tables(layer) for label, layer in present])
    return f'<h2>{escape(" and ".join(names))}</h2><div class="figures">{drawn}</div>{tables}'


def _figure(captioned: CaptionedFigure, prefix: str) -> str:
    alt = escape(f"{captioned.title}. {captioned.caption}", quote=True)
    drawn, caption = (
        inline(captioned.rendered("svg").decode(), prefix, alt, {INK: "var(--ink)"}),
        escape(captioned.caption),
    )
    return f'<figure class="card"><h3>{escape(captioned.title)}</h3>{drawn}<figcaption>{caption}</figcaption></figure>'


def _tables(layer: LayerDiagnosis) -> str:
    rows = [("layer", layer.description), *measured(layer)]
    told = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in rows)
    return f"<table>{told}</table>" + "".join(_details(layer))


def _details(layer: LayerDiagnosis) -> Iterator[str]:
    heads = "".join(f"<th>{name}</th>" for name in ("matrix", "radius", "norm", "condition", "from unitary"))
    rows = "".join(
        f"<tr><td>{escape(gate_name(one.gate))}</td><td>{one.spectral_radius:.4g}</td><td>{one.spectral_norm:.4g}</td>"
        f"<td>{one.condition_number:.3g}</td><td>{one.unitarity_drift:.2g}</td></tr>"
        for one in layer.spectra
    )
    yield f'<details><summary>Matrices</summary><table class="numbers"><tr>{heads}</tr>{rows}</table></details>'
    if layer.memory_range is not None:
        reasons = "".join(f"<li>{escape(reason)}</li>" for reason in layer.memory_range.reasons)
        yield f"<details><summary>Short-range or not</summary><ul>{reasons}</ul></details>"
    if layer.left_out:
        rest = "".join(f"<li>{escape(name)}: {escape(why)}</li>" for name, why in layer.left_out.items())
        yield f"<details><summary>Left out</summary><ul>{rest}</ul></details>"
