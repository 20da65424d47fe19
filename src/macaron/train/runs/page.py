"""Blocks as one HTML page that needs nothing else: no script, no font, no image from anywhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape

from macaron.train.runs.blocks import Block, Chart, Fold, Grid, Note
from macaron.train.runs.plot import COLOURS, plot

STYLE = """
:root { color-scheme: light dark; --ground: #fff; --ink: #1c1c1e; --soft: #6b6b70; --line: #dcdce0; --mark: #fff3d6; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #17171a; --ink: #ececf0; --soft: #9a9aa2; --line: #38383e; --mark: #453a1c; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 72rem; padding: 1.5rem; background: var(--ground); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.35rem; } h2 { font-size: 1.05rem; margin: 2rem 0 .5rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: .25rem .9rem .25rem 0; border-bottom: 1px solid var(--line);
  overflow-wrap: anywhere; }
th { color: var(--soft); font-weight: 600; } .number { text-align: right; } .marked, .warns { background: var(--mark); }
.warns { padding: .4rem .7rem; border-radius: .3rem; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: .2rem 0 1rem; font-size: 13px; }
summary { cursor: pointer; } .name { color: var(--soft); }
svg { display: block; width: 100%; height: auto; max-width: 60rem; } svg text { fill: var(--soft); font-size: 12px; }
svg .axis { stroke: var(--line); } svg .curve { fill: none; stroke-width: 1.8; }
.key { display: inline-block; width: .8rem; height: .2rem; margin: 0 .4rem .2rem 1rem; }
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def page(title: str, blocks: Iterable[Block]) -> str:
    """The whole page; everything in `blocks` is shown as text."""
    body = "\n".join(part for block in blocks for part in _parts(block))
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_escaped(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{_escaped(title)}</h1>\n{body}\n</body>\n</html>\n"
    )


def _parts(block: Block) -> Iterator[str]:
    match block:
        case Note():
            yield f"<p{_class('warns', block.warns)}>{_escaped(block.text)}</p>"
        case Grid():
            yield from _grid(block)
        case Chart():
            yield f"<h2>{_escaped(block.title)}</h2>"
            yield plot(block)
            keys = zip(block.series, COLOURS, strict=False)
            yield "".join(
                f'<span class="key" style="background:{colour}"></span>{_escaped(line.name)}' for line, colour in keys
            )
        case Fold():
            texts = "".join(
                f'<div class="name">{_escaped(name)}</div><pre>{_escaped(text)}</pre>' for name, text in block.texts
            )
            yield f"<details><summary>{_escaped(block.title)}</summary>{texts}</details>"


def _grid(grid: Grid) -> Iterator[str]:
    if grid.title:
        yield f"<h2>{_escaped(grid.title)}</h2>"
    if not grid.rows:
        yield "<p>nothing</p>"
        return
    yield '<div class="wide"><table>'
    if any(grid.columns):
        yield f"<tr>{''.join(_cell('th', at, name, grid) for at, name in enumerate(grid.columns))}</tr>"
    for number, row in enumerate(grid.rows):
        cells = "".join(_cell("td", at, text, grid) for at, text in enumerate(row))
        yield f"<tr{_class('marked', number in grid.marked)}>{cells}</tr>"
    yield "</table></div>"


def _cell(tag: str, at: int, text: str, grid: Grid) -> str:
    return f"<{tag}{_class('number', at in grid.numbers)}>{_escaped(text)}</{tag}>"


def _class(name: str, has: bool) -> str:
    return f' class="{name}"' if has else ""


def _escaped(text: str) -> str:
    # Half a character pair cannot be written as UTF-8.
    return escape(text.encode("utf-8", "replace").decode("utf-8").replace("\0", "\N{REPLACEMENT CHARACTER}"))
