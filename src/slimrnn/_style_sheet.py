"""The style sheet of reports."""

from __future__ import annotations

STYLE = """
:root {
  --ink: #1f2328; --grey: #656d76; --grid: #e8e8e8; --paper: #f5f6f8; --card: #ffffff; --line: #dfe3e8;
  --c0: #0b6bcb; --c1: #c8553d; --c2: #2a8c5a; --c3: #8a5bb5; --c4: #b8860b; --c5: #3a3a3a;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ink: #e6edf3; --grey: #9aa4af; --grid: #30363d; --paper: #0d1117; --card: #161b22; --line: #30363d;
    --c0: #58a6ff; --c1: #f0856d; --c2: #56c98a; --c3: #b88ee6; --c4: #e0b040; --c5: #c9d1d9;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
}
main { max-width: 68rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.8rem; line-height: 1.2; margin: 0; }
h2 { font-size: 1.3rem; margin: 2.2rem 0 .8rem; overflow-wrap: anywhere; }
h3 { font-size: 1rem; margin: 0 0 .5rem; }
header p { color: var(--grey); margin: .3rem 0 1.2rem; overflow-wrap: anywhere; }
header { margin-bottom: 1.2rem; }
.card {
  background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: 1rem 1.1rem; min-width: 0;
}
.columns { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); }
.summary p:first-of-type { font-weight: 600; }
.summary p { margin: 0 0 .6rem; }
.summary p:last-child { margin: 0; }
.finding { border-left: .25rem solid var(--c2); padding: .1rem 0 .1rem .8rem; margin: 0 0 1.1rem; }
.finding:last-child { margin-bottom: 0; }
.finding.problem { border-color: var(--c1); }
.finding.hint { border-color: var(--c4); }
.finding p { margin: 0 0 .25rem; }
.seen { font-weight: 600; }
.seen span { color: var(--grey); font-weight: 400; margin-right: .25rem; }
.seen .mark { color: var(--c2); margin-right: .35rem; }
.problem .mark { color: var(--c1); }
.hint .mark { color: var(--c4); }
.advice::before { content: "→ "; color: var(--grey); }
.reason { color: var(--grey); font-size: .9rem; }
.figures { columns: 2 25rem; column-gap: 1rem; margin-bottom: 1rem; }
figure { margin: 0 0 1rem; padding: .9rem .9rem 1rem; break-inside: avoid; }
figure svg { display: block; width: 100%; height: auto; }
figure svg text { font-family: inherit !important; }
figcaption { color: var(--grey); font-size: .88rem; margin-top: .5rem; }
table { border-collapse: collapse; width: 100%; font-size: .95rem; }
th, td { text-align: left; vertical-align: top; padding: .4rem .8rem .4rem 0; border-top: 1px solid var(--line); }
tr:first-child > * { border-top: 0; }
th { font-weight: 600; white-space: nowrap; }
td { overflow-wrap: anywhere; }
.numbers th, .numbers td { text-align: right; padding: .3rem 0 .3rem .5rem; font-variant-numeric: tabular-nums; }
.numbers th { white-space: normal; }
.numbers th:first-child, .numbers td:first-child { text-align: left; padding-left: 0; }
details { border-top: 1px solid var(--line); padding: .5rem 0 0; margin-top: .5rem; }
details ul { margin: .4rem 0 0; padding-left: 1.2rem; }
summary { cursor: pointer; font-weight: 600; }
@media (min-width: 40rem) { .numbers td { overflow-wrap: break-word; } }
@media (max-width: 30rem) {
  main { padding: 1rem .6rem 3rem; }
  .card { padding: .8rem; }
  figure.card { padding: .7rem .5rem .8rem; }
}
@media print { body { background: none; } .card { break-inside: avoid; } }
"""
