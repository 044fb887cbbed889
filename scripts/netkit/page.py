"""A self-contained HTML page about sweeps; page.html is its template."""

import functools
import html
import os
import re
import shlex
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from netkit import draw, plots, units
from netkit.results import Results, ResultsError, reading
from netkit.tables import DOUBT, GAP, MARK, Block, Sweep, block, build, choose, digits_for

COLOURS = {plots.TEXT: "var(--text)", plots.MUTED: "var(--muted)", plots.GRID: "var(--grid)",
           "#ffffff": "var(--paper)", **{colour.lower(): f"var(--line{i})" for i, colour in enumerate(plots.COLOURS)}}
MOST_LINKS = 4      # listed individually
MOST_COMMANDS = 12  # shown without being unfolded
MOST_COLUMNS = 8    # that fit on paper, if there are fewer rows

Pairs = List[Tuple[str, str]]
joined = functools.lru_cache(maxsize=None)(shlex.join)


def inline(svg: str, name: str, label: str) -> str:
    """An SVG file for embedding: without header, namespaces and metadata, with unique IDs and the page's colours."""
    body = svg[svg.index("<svg"):]
    body = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->\s*|<style.*?</style>", "", body, flags=re.S)
    body = re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", body).replace("xlink:href", "href")
    body = re.sub(r'\bid="', f'id="{name}-', body)
    body = re.sub(r'href="#', f'href="#{name}-', body).replace("url(#", f"url(#{name}-")
    body = body.replace("<svg", f'<svg role="img" aria-label="{html.escape(label)}"', 1)
    return re.sub("|".join(COLOURS), lambda found: COLOURS[found[0]], body)


def tables(sweep: Sweep, figures: "Sequence[Tuple[str, bool]]") -> "List[Block]":
    blocks: "List[Block]" = []
    for name, of_ceiling in figures:
        if not sweep.has(name):
            continue
        try:
            layout = choose(sweep, mixed=len(sweep.units_of(name)) > 1)
            if layout.columns and len(sweep.values[layout.columns]) > max(MOST_COLUMNS, len(sweep.values[layout.rows])):
                layout.rows, layout.columns = layout.columns, layout.rows
            made = build(sweep, name, layout, of_ceiling)
        except ResultsError:
            continue            # no run has it: nothing to show
        blocks += [block(table, digits_for(made)) for table in made
                   if any(entry.value is not None for row in table.entries for entry in row)]
    return blocks


def failures(sweep: Sweep) -> "Iterator[str]":
    for cell in sweep.cells.values():
        reasons = [run.reason() for run in cell.tried() if not run.ok]
        if reasons:
            of = f"{len(reasons)} of {len(cell.runs)} runs" if len(cell.runs) > 1 else "failed"
            yield f"{sweep.said(cell.point)}: {of}: {'; '.join({reason: 0 for reason in reasons})}"


def pairs(told: Any) -> "Iterator[Tuple[str, str]]":
    for name, value in units.flatten(told):
        plain = isinstance(value, list) and not any(isinstance(one, (dict, list)) for one in value)
        yield name, ", ".join(map(str, value)) if plain else units.show_value(value)


def carriers(results: Results) -> Pairs:
    """What carried the packets, where netlab made the link; for many links, only their kind."""
    words = list({str(run.more["link"]): 0 for run in results.runs if run.more.get("link")})
    makers = {one[one.rfind("(") + 1:-1]: 0 for one in words if one.endswith(")")}
    return [*([("link made by", ", ".join(makers))] if makers else []),
            *(("link", one) for one in words if len(words) <= MOST_LINKS)]


def surroundings(sweep: Sweep, part: Results) -> "Dict[str, Any]":
    """What a file says about its ends, except for what the sweep itself sets, which is known only from before."""
    header = part.header
    ends = [(name, value) for name, value in pairs(header.environment) if name.split()[-1] not in sweep.varying()]
    return {"path": part.path, "plan": header.plan_text, "pairs": [
        *ends, *carriers(part), *((name, sweep.label(name, value)) for name, value in header.constants.items()),
        ("repetitions", str(header.repetitions)), ("order", header.order),
        *([("seed", str(header.seed))] if header.seed is not None else [])]}


def commands(sweep: Sweep) -> Pairs:
    """All commands, each point's once, with those before it."""
    made: Pairs = []
    for cell in sweep.cells.values():
        seen: "Dict[str, int]" = {}
        for run in cell.runs:
            steps = [step.get("command", "") for step in run.before]
            text = "\n".join(filter(None, [*(shlex.join(map(str, step)) if isinstance(step, list) else str(step)
                                             for step in steps), joined(tuple(run.command))]))
            seen[text] = seen.get(text, 0) + 1
        made += [(sweep.said(cell.point) + (f" (\u00d7 {times})" if times > 1 else ""), text)
                 for text, times in seen.items()]
    return made


def facts(sweep: Sweep) -> Pairs:
    runs = sweep.results.runs
    bad = sum(not run.ok and not run.excluded for run in runs)
    planned = sum(bool(sweep.planned(point)) for point in sweep.points())
    of = f" of {planned}" if planned > len(sweep.cells) else ""
    found = [("points", f"{len(sweep.cells)}{of}"),
             ("runs", str(len(runs)) + (f", {bad} failed" if bad else ""))]
    for name in ("rate", "mtu", "length", "host"):
        value = sweep.constants.get(name)
        if value is not None and name not in sweep.varying():
            found.append(({"mtu": "MTU", "length": "a run's seconds"}.get(name, name), sweep.label(name, value)))
    return [*found, ("measuring took", units.show_duration(sum(run.seconds for run in runs)))]


def part_of(sweep: Sweep, number: str, kind: Optional[str], wish: plots.Wish, name: str,
            tell: "Callable[[str], None]") -> "Dict[str, Any]":
    results, header, cells = sweep.results, sweep.results.header, list(sweep.cells.values())

    def drawn(one: str) -> "List[str]":
        tell(f"drawing {one} of {results.path}")
        made = plots.figure(sweep, one, wish)
        return [inline(draw.draw(part, clear=True).decode(), f"{number}{one}{at or ''}", made.title)
                for at, part in enumerate(draw.sheets(made))]

    pictures = [picture for one in kinds_of(sweep, kind, wish) for picture in drawn(one)]
    tell(f"tables of {results.path}, for the page")
    with reading(results.path):
        wanted = {(name, False): 0, ("THROUGHPUT", False): 0, ("THROUGHPUT", True): 0,
                  ("LOSS_PERCENT", False): 0, ("LOCAL_CPU_UTIL", False): 0, ("REMOTE_CPU_UTIL", False): 0}
        made = tables(sweep, list(wanted))
        title = header.title or header.plan or "Results"
        began = re.sub(r"T(\d\d:\d\d).*Z$", r" \1 UTC", header.started)
        return {"id": number, "title": title, "facts": facts(sweep),
                "sub": [header.plan if header.plan != title else "", began, results.path],
                "figures": pictures,
                "tables": made, "gaps": any(str(cell) == GAP or MARK in str(cell) for one in made for row in one.rows for cell in row[1:]),
                "failures": list(failures(sweep)), "doubts": sweep.told(cells, [(cell, words) for cell in cells for words in sweep.doubts(cell, True)]),
                "sources": [surroundings(sweep, source) for source in results.sources or [results]],
                "commands": commands(sweep)}


def kinds_of(sweep: Sweep, kind: Optional[str], wish: plots.Wish) -> "Sequence[str]":
    found = plots.kinds(sweep, wish.x)
    return [kind] if kind else found


def steps(sweeps: "Sequence[Sweep]", kind: Optional[str], wish: plots.Wish) -> int:
    """How many steps make() reports."""
    return sum(len(kinds_of(sweep, kind, wish)) + 1 for sweep in sweeps)


def make(sweeps: "Sequence[Sweep]", kind: Optional[str] = None, wish: plots.Wish = plots.Wish(),
         name: str = "THROUGHPUT", tell: "Callable[[str], None]" = lambda words: None) -> str:
    """Render the page; different plans follow each other. Needs jinja2 and matplotlib. `tell` precedes each step."""
    import jinja2
    place = jinja2.Environment(loader=jinja2.FileSystemLoader(os.path.dirname(__file__)), autoescape=True,
                               trim_blocks=True, lstrip_blocks=True)
    numbers = [f"plan{i}-" for i in range(1, len(sweeps) + 1)] if len(sweeps) > 1 else [""]
    parts = [part_of(sweep, number, kind, wish, name, tell) for sweep, number in zip(sweeps, numbers)]
    return place.get_template("page.html").render(
        title=" + ".join({str(part["title"]): 0 for part in parts}), parts=parts, gap=GAP, mark=MARK, doubt=DOUBT,
        most_commands=MOST_COMMANDS)
