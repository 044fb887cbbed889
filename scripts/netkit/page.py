"""One page of a sweep, with everything that it shows inside itself."""

import html
import re
import shlex
from typing import Any, Dict, Iterator, List, Sequence, Tuple

from netkit import plots
from netkit.results import Results, ResultsError, show_value
from netkit.tables import (GAP, LEFT_OUT, MARK, Sweep, Table, build, choose, digits_for, grid)

STYLE = """
:root { color-scheme: light dark; --paper: #ffffff; --text: #1f2a37; --muted: #6b7684;
  --grid: #e4e7eb; --soft: #f6f7f9; --accent: #2f6fde; --bad: #c0374d; }
@media (prefers-color-scheme: dark) { :root { --paper: #14181d; --text: #e6e9ed;
  --muted: #98a2ae; --grid: #2b323a; --soft: #1b2127; --accent: #7aa5f2; --bad: #f0798b; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2.5rem 1.5rem 4rem; max-width: 76rem; background: var(--paper);
  color: var(--text); font: 15px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
h1 { margin: 0; font-size: 1.9rem; line-height: 1.2; letter-spacing: -0.01em; }
h2 { margin: 2.8rem 0 0.8rem; font-size: 1.2rem; }
.sub, figcaption, .note { color: var(--muted); }
.sub { margin: 0.4rem 0 0; }
nav { margin-top: 1rem; display: flex; flex-wrap: wrap; gap: 0.3rem 1.2rem; }
a { color: var(--accent); text-decoration: none; } a:hover { text-decoration: underline; }
.facts { display: flex; flex-wrap: wrap; gap: 0.8rem 2.4rem; margin: 1.6rem 0 0; }
.facts div { min-width: 6rem; } .facts dt { color: var(--muted); font-size: 0.8rem; }
.facts dd { margin: 0; font-size: 1.15rem; font-variant-numeric: tabular-nums; }
figure { margin: 1.2rem 0 2rem; overflow-x: auto; }
figure svg { display: block; max-width: 100%; height: auto; stroke-linejoin: round;
  stroke-linecap: butt; }
figure svg text { font-family: system-ui, "Segoe UI", "DejaVu Sans", sans-serif !important; }
.tables { display: flex; flex-wrap: wrap; gap: 1.8rem 4rem; align-items: flex-start; }
.scroll { overflow-x: auto; max-width: 100%; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
caption { text-align: left; white-space: nowrap; font-weight: 600; padding: 0 0 0.5rem; }
th, td { padding: 0.22rem 0.9rem; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
thead th { border-bottom: 1.5px solid var(--muted); font-weight: 600; }
tbody th { font-weight: 400; color: var(--muted); }
tbody tr:hover { background: var(--soft); }
tr.average td, tr.average th { border-top: 1px solid var(--grid); }
.average, td.left-out { color: var(--muted); } td.gap, .bad { color: var(--bad); }
table.plain td { text-align: left; white-space: normal; vertical-align: top; }
table.plain td:first-child { color: var(--muted); padding-right: 2rem; }
ul { padding-left: 1.2rem; } li { margin: 0.15rem 0; }
details { margin: 0.6rem 0; } summary { cursor: pointer; color: var(--accent); }
pre { background: var(--soft); border: 1px solid var(--grid); border-radius: 6px;
  padding: 0.8rem 1rem; overflow-x: auto; font: 12.5px/1.55 ui-monospace, "DejaVu Sans Mono",
  monospace; }
pre i { color: var(--muted); font-style: normal; }
@media print { :root { --paper: #fff; --text: #000; --muted: #555; --grid: #ccc; --soft: #fff;
  --accent: #000; --bad: #a00; } body { max-width: none; padding: 0; font-size: 10.5pt; }
  nav { display: none; } figure, table, li { break-inside: avoid; } h2 { break-after: avoid; }
  pre { white-space: pre-wrap; overflow-wrap: anywhere; } }
"""

COLOURS = {plots.TEXT: "var(--text)", plots.MUTED: "var(--muted)", plots.GRID: "var(--grid)",
           "#ffffff": "var(--paper)"}
MOST_LINKS = 4      # that are told one by one

KIND_WORDS = {"mtu": "Throughput over MTU", "netpipe": "Latency and bandwidth over message size",
              "fluctuation": "Fluctuation", "buffer": "Throughput over its axis",
              "cpu": "Throughput and processors", "tests": "Throughput by test"}


def text(value: Any) -> str:
    return html.escape(str(value))


def inline(svg: str, name: str) -> str:
    """An SVG file as a part of a page: without what makes it a file (its header, name spaces,
    metadata), with identifiers of its own and the page's colours."""
    body = svg[svg.index("<svg"):]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.S)
    body = re.sub(r"<!--.*?-->\s*", "", body, flags=re.S)
    body = re.sub(r"<style.*?</style>", "", body, flags=re.S)
    body = re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", body)
    body = body.replace("xlink:href", "href")
    body = re.sub(r'\bid="', f'id="{name}-', body)
    body = re.sub(r'href="#', f'href="#{name}-', body)
    body = body.replace("url(#", f"url(#{name}-")
    body = body.replace("<svg", f'<svg role="img" aria-label="{text(KIND_WORDS[name])}"', 1)
    return re.sub("|".join(COLOURS), lambda found: COLOURS[found[0]], body)


def table_html(table: Table, digits: int) -> str:
    words = grid(table, digits)

    def cells(row: "Sequence[str]") -> str:
        made = [f'<th scope="row">{text(row[0])}</th>']
        for i, cell in enumerate(row[1:], 1):
            kind = ("gap" if cell == GAP else "left-out" if cell == LEFT_OUT else
                    "average" if words.across and i == len(row) - 1 else "")
            mark = f' class="{kind}"' if kind else ""
            made.append(f"<td{mark}>{text(cell)}</td>")
        return "".join(made)

    lines = [f"<table><caption>{text(table.title)}</caption><thead><tr>",
             "".join(f'<th scope="col">{text(word)}</th>' for word in words.head),
             "</tr></thead><tbody>"]
    for i, row in enumerate(words.rows):
        last = words.down and i == len(words.rows) - 1
        lines.append(f'<tr class="average">{cells(row)}</tr>' if last else f"<tr>{cells(row)}</tr>")
    return "\n".join([*lines, "</tbody></table>"])


def tables_html(sweep: Sweep, figures: "Sequence[Tuple[str, bool]]") -> str:
    blocks: "List[str]" = []
    for figure, of_ceiling in figures:
        try:
            made = build(sweep, figure, choose(sweep, mixed=len(sweep.units_of(figure)) > 1),
                         of_ceiling)
        except ResultsError:
            continue            # no run has it: nothing to show
        digits = digits_for(made)
        blocks += [f'<div class="scroll">{table_html(table, digits)}</div>' for table in made]
    return "<div class=\"tables\">" + "\n".join(blocks) + "</div>" if blocks else ""


def failures(sweep: Sweep) -> "List[str]":
    """What failed, a line a point."""
    lines = []
    for cell in sweep.cells.values():
        reasons = cell.failures()
        if reasons:
            names = [n for n in cell.point if len(sweep.values[n]) > 1] or list(cell.point)
            of = f"{len(reasons)} of {len(cell.runs)} runs" if len(cell.runs) > 1 else "failed"
            lines.append(f"{sweep.describe(cell.point, names)}: {of}: "
                         f"{'; '.join({reason: 0 for reason in reasons})}")
    return lines


def flatten(value: Any, name: str = "") -> "Iterator[Tuple[str, str]]":
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from flatten(inner, f"{name} {key}".strip())
    elif isinstance(value, list) and value and all(not isinstance(v, (dict, list)) for v in value):
        yield name, ", ".join(map(str, value))
    elif value is not None:
        yield name, show_value(value)


def carriers(results: Results) -> "List[Tuple[str, str]]":
    """What carried the packets, where netlab made the link; of many links only by what."""
    words = list({str(run.more["link"]): 0 for run in results.runs if run.more.get("link")})
    makers = {one[one.rfind("(") + 1:-1]: 0 for one in words if one.endswith(")")}
    return [*([("link made by", ", ".join(makers))] if makers else []),
            *(("link", one) for one in words if len(words) <= MOST_LINKS)]


def pairs_html(pairs: "Sequence[Tuple[str, str]]") -> str:
    rows = "".join(f"<tr><td>{text(name)}</td><td>{text(value)}</td></tr>" for name, value in pairs)
    return f'<table class="plain"><tbody>{rows}</tbody></table>'


def commands_html(sweep: Sweep) -> str:
    """Every command that was given, a point's once, with those that came before it."""
    lines: "List[str]" = []
    count = 0
    for cell in sweep.cells.values():
        seen: "Dict[str, int]" = {}
        for run in cell.runs:
            steps = [str(step.get("command", "")) if not isinstance(step.get("command"), list)
                     else shlex.join(map(str, step["command"])) for step in run.before]
            block = "\n".join(filter(None, [*steps, shlex.join(map(str, run.command))]))
            seen[block] = seen.get(block, 0) + 1
        names = [n for n in cell.point if len(sweep.values[n]) > 1] or list(cell.point)
        for block, times in seen.items():
            count += 1
            again = f" (\u00d7 {times})" if times > 1 else ""
            said = text(sweep.describe(cell.point, names))
            lines.append(f"<i># {said}{again}</i>\n{text(block)}")
    shown = "" if count > 12 else " open"
    return (f"<details{shown}><summary>{count} commands, in the order of their first run</summary>"
            f"<pre>{chr(10).join(lines)}</pre></details>")


def facts(sweep: Sweep) -> "List[Tuple[str, str]]":
    runs = sweep.results.runs
    bad = sum(not run.ok and not run.excluded for run in runs)
    planned = sum(bool(sweep.planned(point)) for point in sweep.points())
    of = f" of {planned}" if planned > len(sweep.cells) else ""
    found = [("points", f"{len(sweep.cells)}{of}"), ("runs", str(len(runs)) + (
        f", {bad} failed" if bad else ""))]
    for name in ("rate", "mtu", "length", "host"):
        value = sweep.constants.get(name)
        if value is not None and name not in sweep.varying():
            found.append(({"mtu": "MTU", "length": "a run's seconds"}.get(name, name),
                          f"{value / 1e6:g} Mbit/s" if name == "rate"
                          and isinstance(value, (int, float)) else show_value(value)))
    minutes = sum(run.seconds for run in runs) / 60
    return [*found, ("measuring took", f"{minutes:.0f} min" if minutes >= 2 else
                     f"{minutes * 60:.0f} s")]


def section(name: str, title: str, body: str) -> str:
    return f'<section id="{name}"><h2>{text(title)}</h2>\n{body}\n</section>' if body else ""


def parts_of(results: Results) -> "List[Results]":
    return results.sources or [results]


def make(sweep: Sweep, drawn: "Sequence[Tuple[str, str]]", figure: str = "THROUGHPUT") -> str:
    """The page. drawn holds the plots: their kinds, and SVG files without a background."""
    results = sweep.results
    header = results.header
    title = header.title or header.plan or "Results"
    wanted = [(figure, False), *([("THROUGHPUT", False)] if figure != "THROUGHPUT" else []),
              ("THROUGHPUT", True), ("LOCAL_CPU_UTIL", False), ("REMOTE_CPU_UTIL", False)]
    wrong = failures(sweep)
    marked = (f'<p class="note">{GAP}: failed or not measured; {MARK}: some runs of this point '
              "failed; averages are of what is there.</p>" if wrong else "")
    environment, plan = "", ""
    for part in parts_of(results):
        name = f"<p><b>{text(part.path)}</b></p>" if results.sources else ""
        pairs = [*flatten(part.header.environment), *carriers(part), *flatten(part.header.constants),
                 ("repetitions", str(part.header.repetitions)), ("order", part.header.order),
                 *([("seed", str(part.header.seed))] if part.header.seed is not None else [])]
        environment += name + pairs_html(pairs)
        if part.header.plan_text:
            plan += f"{name}<pre>{text(part.header.plan_text)}</pre>"
    sections = [
        ("plots", "Plots", "\n".join(f"<figure>{inline(svg, kind)}</figure>"
                                     for kind, svg in drawn)),
        ("tables", "Tables", tables_html(sweep, wanted) + marked),
        ("failures", "What failed", "<ul>" + "".join(f"<li>{text(line)}</li>" for line in wrong)
         + "</ul>" if wrong else ""),
        ("environment", "Environment", environment),
        ("commands", "Commands", commands_html(sweep)), ("plan", "Plan", plan)]
    links = "".join(f'<a href="#{name}">{text(word)}</a>' for name, word, body in sections if body)
    chips = "".join(f"<div><dt>{text(name)}</dt><dd>{text(value)}</dd></div>"
                    for name, value in facts(sweep))
    began = re.sub(r"T(\d\d:\d\d).*", r" \1 UTC", header.started) if header.started.endswith(
        "Z") else header.started
    name = header.plan if header.plan != title else ""
    sub = " \u00b7 ".join(filter(None, [name, began, results.path]))
    return "\n".join([
        '<!DOCTYPE html>', '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{text(title)}</title><style>{STYLE}</style></head><body>",
        f'<header><h1>{text(title)}</h1><p class="sub">{text(sub)}</p>',
        f'<dl class="facts">{chips}</dl><nav>{links}</nav></header><main>',
        *(section(*one) for one in sections), "</main></body></html>", ""])
