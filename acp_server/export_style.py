"""How an exported page looks: one style sheet, light and dark, with nothing fetched."""

from typing import Final

STYLE: Final = """
:root {
  color-scheme: light dark;
  --page: #fbfaf8; --ink: #1f2328; --dim: #656d76; --line: #dedbd5; --soft: #f3f1ec; --card: #fff;
  --you: #e8f0fb; --you-line: #c5d8f3; --accent: #2f5fb3;
  --good: #1a7f37; --bad: #b42318; --wait: #8a6100;
  --add: #e6f6ea; --add-ink: #0f5a28; --cut: #fdebea; --cut-ink: #8c1d13; --hunk: #6639ba;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #15171a; --ink: #e3e5e8; --dim: #969da6; --line: #33373d; --soft: #1f2226; --card: #1a1d21;
    --you: #1b2a40; --you-line: #2d4568; --accent: #8ab4f8;
    --good: #57c774; --bad: #ff8b7e; --wait: #e3b341;
    --add: #12301d; --add-ink: #8ee2a6; --cut: #3a1917; --cut-ink: #ffb3aa; --hunk: #c4a5ff;
  }
}
* { box-sizing: border-box; }
html { background: var(--page); }
body {
  margin: 0 auto; padding: 2.5rem 1.25rem 4rem; max-width: 54rem; color: var(--ink);
  font: 16px/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif;
  overflow-wrap: anywhere;
}
pre, code, .title, .path, .url { font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
h1 { margin: 0 0 .5rem; font-size: 1.75rem; line-height: 1.25; letter-spacing: -.01em; }
.facts {
  display: flex; flex-wrap: wrap; gap: .15rem 1.5rem; margin: 0; color: var(--dim); font-size: .85rem;
}
.facts div { display: flex; gap: .4rem; } .facts dt::after { content: ":"; }
.facts dd { margin: 0; color: var(--ink); }
nav { margin-top: 1.25rem; font-size: .9rem; } nav ol { margin: .5rem 0 0; padding-left: 1.75rem; }
nav a { color: var(--accent); text-decoration: none; } nav a:hover { text-decoration: underline; }
.turn { margin-top: 2rem; padding-top: 1.5rem; border-top: 1px solid var(--line); }
.said { margin: 1rem 0; }
.who {
  display: flex; justify-content: space-between; margin-bottom: .2rem; color: var(--dim); font-size: .8rem;
}
.who b { color: var(--ink); font-weight: 600; }
.you {
  padding: .6rem .9rem .75rem; border: 1px solid var(--you-line); border-radius: .6rem;
  background: var(--you);
}
.you .words { white-space: pre-wrap; }
.agent p, .thought p { margin: .5rem 0; white-space: pre-line; }
.h { font-weight: 650; line-height: 1.3; margin-top: 1rem !important; }
.h1 { font-size: 1.3rem; } .h2 { font-size: 1.17rem; } .h3 { font-size: 1.05rem; }
ul, ol { margin: .25rem 0; padding-left: 1.6rem; } li { white-space: pre-line; }
.i1 { margin-left: 1.4rem; } .i2 { margin-left: 2.8rem; } .i3 { margin-left: 4.2rem; }
.i4 { margin-left: 5.6rem; } .i5 { margin-left: 7rem; }
blockquote { margin: .5rem 0; padding: 0 0 0 .9rem; border-left: 3px solid var(--line); color: var(--dim); }
hr { border: 0; border-top: 1px solid var(--line); margin: 1rem 0; }
code { background: var(--soft); border-radius: .25rem; padding: .1em .35em; font-size: .88em; }
.url { color: var(--dim); font-size: .85em; }
.table { overflow-x: auto; margin: .8rem 0; } table { border-collapse: collapse; font-size: .92rem; }
th, td { border: 1px solid var(--line); padding: .3rem .6rem; text-align: left; vertical-align: top; }
th { background: var(--soft); }
.code { position: relative; margin: .6rem 0; }
.language { position: absolute; top: .35rem; right: .6rem; color: var(--dim); font-size: .72rem; }
pre {
  margin: 0; padding: .65rem .8rem; background: var(--soft); border-radius: .4rem; font-size: .82rem;
  line-height: 1.5; white-space: pre-wrap; max-height: 32rem; overflow: auto; tab-size: 4;
}
.thought { margin: .75rem 0; color: var(--dim); font-size: .92rem; }
.thought > .words { border-left: 3px solid var(--line); margin-top: .3rem; padding-left: .9rem; }
summary { cursor: pointer; } summary:focus-visible, a:focus-visible { outline: 2px solid var(--accent); }
.card { margin: .75rem 0; background: var(--card); border: 1px solid var(--line); border-radius: .6rem; }
.card > summary { display: flex; align-items: baseline; gap: .6rem; padding: .5rem .8rem; list-style: none; }
.card > summary::-webkit-details-marker { display: none; }
.card > summary::before { content: "\\25B8"; color: var(--dim); font-size: .8rem; }
.card[open] > summary::before { content: "\\25BE"; }
.card.bare > summary { cursor: default; } .card.bare > summary::before { content: ""; }
.kind {
  flex: none; color: var(--dim); font-size: .72rem; text-transform: uppercase; letter-spacing: .05em;
}
.title { flex: 1; font-size: .85rem; min-width: 0; }
.status { flex: none; font-size: .78rem; font-weight: 600; color: var(--wait); }
.done .status { color: var(--good); } .failed .status, .cancelled .status { color: var(--bad); }
.failed, .cancelled { border-left: 3px solid var(--bad); }
.inside { padding: 0 .8rem .7rem; font-size: .92rem; } .inside > * { margin: .5rem 0 0; }
.inside p { margin: .3rem 0 0; white-space: pre-line; }
.notes, .path { color: var(--dim); font-size: .78rem; }
.diff { padding: .4rem 0; } .diff span { display: block; padding: 0 .8rem; min-height: 1.5em; }
.diff .add { background: var(--add); color: var(--add-ink); }
.diff .cut { background: var(--cut); color: var(--cut-ink); } .diff .hunk { color: var(--hunk); }
.ended { margin: 1rem 0 0; color: var(--dim); font-size: .8rem; }
.ended.failed { border: 0; color: var(--bad); }
footer { margin-top: 2.5rem; color: var(--dim); font-size: .78rem; }
@media print { pre { max-height: none; } .card, .you { break-inside: avoid; } }
"""
