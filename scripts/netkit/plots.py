"""What the plots of a sweep show: panels with lines, bars and ceilings. draw.py prints them by matplotlib,
vega.py makes them to hover over and to zoom into."""

import itertools
import math
import re
import statistics
from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from netkit import ceiling
from netkit.results import SETS, ResultsError, Run, is_number, key_of
from netkit.tables import COLUMNS, GROUPS, ROWS, TRANSACTIONS, Cell, Sweep, rank

# Okabe and Ito's colours without yellow and black, which are nothing on white and on black.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "triangle-right",
           "triangle-left")
DASHES = ((), (5, 2), (1.5, 1.5), (6, 2, 1.5, 2))
RAMP = ((0x00, 0x72, 0xb2), (0x56, 0xb4, 0xe9), (0xe6, 0x9f, 0x00), (0xd5, 0x5e, 0x00))
TESTS = ("TCP_STREAM", "UDP_STREAM", "TCP_SENDFILE", "TCP_MAERTS")      # have the first colours, as have
OTHER_TESTS = ("TCP_RR", "UDP_RR", "TCP_CRR", "TCP_CC")                 # those, which have another unit
TEXT, MUTED, GRID = "#1f2a37", "#6b7684", "#e4e7eb"

KINDS = ("mtu", "netpipe", "fluctuation", "buffer", "cpu", "tests")
SPREADS = ("minmax", "stddev", "none")
LACKS = {"mtu": "no axis mtu with two values",
         "netpipe": "no axis size or request with six values over a span of 64",
         "fluctuation": "no run with interim samples: give netperf -D",
         "buffer": "no axis beside the tests", "tests": "no good run",
         "cpu": "no LOCAL_CPU_UTIL and REMOTE_CPU_UTIL, or no axis beside the tests: measure with -c -C"}
FACETS = tuple(name for name in GROUPS if name not in SETS)     # a panel for each value of these
MOST_RUNS_IN_TIME = 6       # points whose samples are drawn over time; more are drawn by the axis

CALLED = {"mtu": "MTU", "size": "message size", "buffer": "socket buffer", "mss": "MSS", "flows": "flows",
          "local_buffer": "local socket buffer", "remote_buffer": "remote socket buffer",
          "processes": "netperf processes", "cpu": "processors", "nodelay": "TCP_NODELAY"}
UNITS = {name: "bytes" for name in ("mtu", "size", "request", "response", "mss")}


@dataclass
class Mark:
    """A measured point: its mean, and how its runs lie about it. A mean that is not a number is a gap."""
    x: float
    y: float
    words: str = ""
    low: Optional[float] = None
    high: Optional[float] = None
    off: Optional[float] = None                 # standard deviation
    box: "Optional[Tuple[float, float]]" = None     # quartiles


@dataclass
class Line:
    name: str           # by which it is found in a file of SVG
    label: str
    colour: str
    marks: "List[Mark]"
    kind: str = "data"  # or "ceiling", "step", "mean", "worst", "bar"
    marker: str = ""
    dash: "Sequence[float]" = ()

    def there(self) -> "List[Mark]":
        return [mark for mark in self.marks if not math.isnan(mark.y)]


class Scale:
    """Where the values of an axis stand: by their logarithm when they span much, side by side when they
    are no numbers."""

    def __init__(self, sweep: Sweep, name: str, values: "Sequence[Any]", numbered: bool = True) -> None:
        self.numeric = numbered and len(values) > 1 and all(map(is_number, values))
        every = [v for v in sweep.values.get(name, []) if is_number(v)]  # so that all panels look alike
        self.log = self.numeric and min(every) > 0 and max(every) / min(every) >= 8
        self._places = {key_of(value): float(value if self.numeric else i)
                        for i, value in enumerate(values)}
        self.places = list(self._places.values())
        self.labels = [sweep.label(name, value) for value in values]
        self.title = axis_title(sweep, name)

    def at(self, value: Any) -> float:
        return self._places[key_of(value)]

    def limits(self) -> "Tuple[float, float]":
        low, high = min(self.places), max(self.places)
        if not self.numeric:
            return low - 0.5, high + 0.5
        pad = (high / low) ** 0.03 if self.log else 0.03 * (high - low)
        return (low / pad, high * pad) if self.log else (low - pad, high + pad)


@dataclass
class Panel:
    title: str
    unit: str
    x: "Optional[Scale]"            # None: seconds
    lines: "List[Line]" = field(default_factory=list)
    log: bool = False
    zero: bool = False              # the axis begins there
    note: str = ""
    what: str = ""                  # what has the unit; empty: the throughput
    rows: "List[str]" = field(default_factory=list)     # of bars, which lie

    @property
    def words(self) -> str:
        """At its axis."""
        return f"{self.what} ({self.unit})" if self.what else self.unit

    def limits(self) -> "Tuple[float, float]":
        values = [v for line in self.lines for mark in line.there()
                  for v in (mark.y, mark.low, mark.high) if v is not None]
        low, high = min(values or [0.0]), max(values or [1.0])
        if self.log:
            low = min([v for v in values if v > 0] or [0.1])
            pad = (high / low) ** 0.06 if high > low else 2.0
            return low / pad, high * pad
        if self.rows or self.zero:
            return 0.0, high * 1.06 or 1.0
        if self.unit == "%":    # room for one percent, so that noise of a tenth is no mountain
            low, high = min(low, -1.0), max(high, 0.0)
        pad = 0.08 * (high - low) or 0.05 * abs(high) or 1.0
        return low - pad, high + pad


@dataclass
class Figure:
    """Stacks of panels side by side; those of a stack share their x axis."""
    kind: str
    title: str
    stacks: "List[List[Panel]]"
    words: str = ""         # what its marks mean


class Series(NamedTuple):
    """The points of one line: along the x axis, those that were measured."""
    point: "Dict[str, Any]"
    label: str
    colour: str
    marker: str
    dash: "Sequence[float]"
    cells: "List[Tuple[Any, Cell]]"     # x and what was tried there, failures too: they are gaps


# --- which kinds a sweep can be drawn as --------------------------------------------------

def kinds(sweep: Sweep) -> "List[str]":
    """Those that say something about it, the most telling first. Raises ResultsError for none."""
    if not any(run.ok for run in sweep.results.runs):
        raise ResultsError(f"{sweep.results.path}: not one good run, nothing to draw")
    return [kind for kind in KINDS if suits(sweep, kind)]


def suits(sweep: Sweep, kind: str) -> bool:
    varying = sweep.varying()
    over = [name for name in varying if name not in GROUPS]
    if kind == "mtu":
        return "mtu" in varying
    if kind == "netpipe":
        return message_axis(sweep) is not None
    if kind == "fluctuation":
        return any(len(run.interim or []) >= 4 for run in sweep.results.runs if run.ok)
    if kind == "cpu":
        return bool(over) and all(any((run.figure(figure) or -1) >= 0
                                      for run in sweep.results.runs if run.ok)
                                  for figure in ("LOCAL_CPU_UTIL", "REMOTE_CPU_UTIL"))
    if kind == "buffer":
        return bool(over) and "mtu" not in varying and message_axis(sweep) is None
    return not over


def message_axis(sweep: Sweep) -> Optional[str]:
    """The axis of message sizes when it is fine and long enough for a curve of its own."""
    if any(name.endswith("buffer") or name == "mtu" for name in sweep.varying()):
        return None
    for name in ("size", "request", "response"):
        values = [v for v in sweep.values.get(name, []) if is_number(v) and v > 0]
        if len(values) >= 6 and max(values) / min(values) >= 64:
            return name
    return None


def require_kind(sweep: Sweep, kind: str) -> None:
    """Raises ResultsError, with what the sweep lacks, when it cannot be drawn so."""
    over = any(name not in GROUPS for name in sweep.varying())
    if not (suits(sweep, kind) or (kind == "buffer" and over) or kind == "tests"):
        raise ResultsError(f"--kind {kind}: {LACKS[kind]} (try {', '.join(kinds(sweep))})")


# --- lines and words ----------------------------------------------------------------------

def axis_title(sweep: Sweep, name: str) -> str:
    unit = UNITS.get(name) or ("" if name in sweep.in_kib else sweep.units.get(name, ""))
    mixed = name in ("threads", "cpu") and any(isinstance(v, str) for v in sweep.values.get(name, []))
    return CALLED.get(name, name) + (f" ({unit})" if unit else " (local,remote)" if mixed else "")


def named(sweep: Sweep, point: "Dict[str, Any]") -> str:
    return sweep.describe(point, called=CALLED)


def ramp(index: int, count: int) -> str:
    """The colour of one among `count` that have an order."""
    at = 0.0 if count < 2 else index / (count - 1) * (len(RAMP) - 1)
    low = min(int(at), len(RAMP) - 2)
    mixed = [round(a + (b - a) * (at - low)) for a, b in zip(RAMP[low], RAMP[low + 1])]
    return "#" + "".join(f"{part:02x}" for part in mixed)


def look(test: str, index: int = 0) -> "Tuple[str, str]":
    """The colour and the marker of a test, or of the value with this number."""
    for tests in (TESTS, OTHER_TESTS):
        index = tests.index(test) if test in tests else index
    return COLOURS[index % len(COLOURS)], MARKERS[index % len(MARKERS)]


def series_of(sweep: Sweep, x: str, fixed: "Dict[str, Any]", unit: str = "") -> "List[Series]":
    """The lines of one panel: a choice of every axis that is neither x nor fixed. The test makes colour
    and marker, other axes the dashes; without tests the first axis makes the colour."""
    names = [name for name in sweep.varying() if name != x and name not in fixed]
    names.sort(key=lambda name: name != "test")
    order = {key_of(value): i for i, value in enumerate(sweep.values.get(x, []))}
    found: "Dict[Tuple[Any, ...], List[Tuple[Any, Cell]]]" = {}
    for cell in sweep.cells.values():
        if all(key_of(cell.point.get(n)) == key_of(v) for n, v in fixed.items()):
            key = tuple(key_of(cell.point.get(name)) for name in names)
            found.setdefault(key, []).append((cell.point.get(x), cell))
    good = {key: sorted(cells, key=lambda one: order.get(key_of(one[0]), 0))
            for key, cells in found.items()
            if any(cell.good() and (not unit or cell.unit() == unit) for _, cell in cells)}
    at = {name: {key_of(v): i for i, v in enumerate(sweep.values[name])} for name in names}
    made = []
    for key in sorted(good, key=lambda key: [at[n][k] for n, k in zip(names, key)]):
        point = {**fixed, **{n: sweep.values[n][at[n][k]] for n, k in zip(names, key)}}
        first = sweep.values[names[0]] if names else []
        index = at[names[0]][key[0]] if names else 0
        colour, marker = look(sweep.test(point) if not names or names[0] == "test" else "", index)
        if first and all(map(is_number, first)) and names[0] != "family" and len(first) > 2:
            colour = ramp(index, len(first))
        style = 0
        for name, k in zip(names[1:], key[1:]):
            style = style * len(sweep.values[name]) + at[name][k]
        telling = [n for i, n in enumerate(names) if not i or any(
            all((a == b) != (i == j) for j, (a, b) in enumerate(zip(key, other))) for other in good)]
        made.append(Series(point, named(sweep, {n: point[n] for n in telling}), colour,
                           MARKERS[(MARKERS.index(marker) + style) % len(MARKERS)],
                           DASHES[style % len(DASHES)], good[key]))
    return made


def mean_of(values: "Sequence[float]") -> float:
    """Not a number where there are none, which is drawn as a gap."""
    return statistics.fmean(values) if values else math.nan


def gid(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-") or "all"


def mark_of(x: float, values: "List[float]", said: str, unit: str, spread: str) -> Mark:
    mark = Mark(x, mean_of(values))
    many = len(values) > 1
    if many and spread == "minmax":
        mark.low, mark.high = min(values), max(values)
    elif many and spread == "stddev":
        mark.off = statistics.stdev(values)
        mark.low, mark.high = mark.y - mark.off, mark.y + mark.off
    mark.words = f"{said}\n{mark.y:.6g} {unit}" if values else f"{said}\nfailed"
    if many:
        mark.words += (f" \u00b1 {statistics.stdev(values):.3g}, {min(values):.6g} to {max(values):.6g}, "
                       f"{len(values)} runs")
    return mark


def line_of(sweep: Sweep, panel: Panel, line: Series, spread: str, values: Any, prefix: str) -> Line:
    """A line of a panel; values gives a cell's."""
    assert panel.x
    marks = [mark_of(panel.x.at(x), values(cell), named(sweep, {n: cell.point[n] for n in sweep.varying()
                                                                if n in cell.point}),
                     panel.unit, spread) for x, cell in line.cells]
    return Line(f"{prefix}-{gid(line.label)}", line.label, line.colour, marks, marker=line.marker,
                dash=line.dash)


def rates(cell: Cell) -> "List[float]":
    return cell.values("THROUGHPUT")


def bandwidth(panel: Panel, size: float, cell: Cell, value: float) -> float:
    """In the unit of a panel: of a transaction, which carries the message there and back, Mbit/s one way."""
    return 2 * size * 8 * value / 1e6 if cell.unit() == TRANSACTIONS != panel.unit else value


def ceilings(sweep: Sweep, panel: Panel, lines: "Sequence[Series]", suffix: str) -> "Iterator[Line]":
    """The different ceilings of some lines, each named by the tests it is of."""
    groups: "List[Tuple[List[str], Dict[float, float], str]]" = []
    for line in lines:
        assert panel.x
        points = {panel.x.at(x): bandwidth(panel, x, cell, most)
                  for x, cell in line.cells for most in [sweep.ceiling(cell)] if most}
        test = sweep.test(line.point)
        name = test.partition("_")[0] if test in ceiling.STREAMS else test
        for names, known, _ in groups:
            if name in names and all(math.isclose(known.get(x, y), y, rel_tol=1e-9)
                                     for x, y in points.items()):
                known.update(points)
                break
        else:
            if points:
                groups.append(([name], points, line.label))
    of = [names[0] for names, _, _ in groups]
    for names, points, label in groups:
        said = names[0] if of.count(names[0]) == 1 else label
        yield Line(f"ceiling-{gid(said)}-{suffix}", f"{said} at most" if said else "ceiling", TEXT,
                   [Mark(x, y, f"{said} at most\n{y:.6g} {panel.unit}".strip())
                    for x, y in sorted(points.items())], "ceiling")


def caption(sweep: Sweep, spread: str, *more: str) -> str:
    """What the marks of a figure mean, as far as it has them."""
    cells = list(sweep.cells.values())
    repeated = any(len(cell.good()) > 1 for cell in cells)
    return "; ".join(filter(None, [
        *more, "black: the ceiling" if any(map(sweep.ceiling, cells)) else "",
        {"minmax": "band or bar: least to most of the runs", "stddev": "bars: standard deviation of the "
         "runs"}.get(spread, "") if repeated else "",
        "\u00d7: failed" if any(not cell.good() for cell in cells) else ""]))


def facets(sweep: Sweep, names: "Sequence[str]", x: str) -> "List[Dict[str, Any]]":
    """A panel for every choice of these axes under which something was measured."""
    names = [name for name in names if name in sweep.varying() and name != x]
    there = {tuple(key_of(cell.point.get(name)) for name in names)
             for cell in sweep.cells.values() if cell.good()}
    return [dict(zip(names, choice)) for choice in itertools.product(*(sweep.values[n] for n in names))
            if tuple(map(key_of, choice)) in there]


def head_of(sweep: Sweep, fixed: "Dict[str, Any]") -> str:
    """The title of a panel."""
    test = {} if "test" in sweep.varying() else {"test": sweep.test(fixed)}
    return named(sweep, {**{k: v for k, v in test.items() if v}, **fixed})


def along(sweep: Sweep) -> str:
    """The axis that a plot's x is of."""
    free = [name for name in sweep.varying() if name not in GROUPS]
    if not free:
        return sweep.varying()[0] if sweep.varying() else next(iter(sweep.values), "")
    return sorted(free, key=lambda n: rank(n, ROWS, len(ROWS) + rank(n, COLUMNS, -0.5)))[0]


# --- the figures --------------------------------------------------------------------------

def panel_of(sweep: Sweep, x: str, fixed: "Dict[str, Any]", lines: "List[Series]", spread: str,
             suffix: str) -> Panel:
    """Throughput over an axis, with ceilings."""
    unit = next((cell.unit() for line in lines for _, cell in line.cells if cell.unit()), "")
    there = {key_of(value) for line in lines for value, _ in line.cells}
    panel = Panel(head_of(sweep, fixed), unit, Scale(sweep, x, [v for v in sweep.values[x]
                                                                if key_of(v) in there]))
    panel.lines = [line_of(sweep, panel, line, spread, rates, f"line{suffix}") for line in lines]
    panel.lines += ceilings(sweep, panel, lines, suffix)
    return panel


def mtu_plot(sweep: Sweep, spread: str) -> Figure:
    """Throughput over the MTU, below it the deviation from the ceiling; a stack for each unit."""
    stacks = []
    for fixed in facets(sweep, ["family", "host"], "mtu"):
        for unit in sweep.units_of("THROUGHPUT"):
            lines = series_of(sweep, "mtu", fixed, unit)
            if not lines:
                continue
            index = str(len(stacks))
            stacks.append([panel_of(sweep, "mtu", fixed, lines, spread, index)])
            low = Panel("", "%", stacks[-1][0].x, what="from the ceiling")
            low.lines = [line_of(sweep, low, line, spread, lambda cell: [
                share - 100 for share in sweep.share(cell)], f"deviation{index}") for line in lines]
            if any(line.there() for line in low.lines):
                low.lines.append(Line(f"zero-{index}", "", TEXT, [Mark(x, 0.0, "the ceiling") for x in
                                                                 low.x.places], "ceiling"))
                stacks[-1].append(low)
    return Figure("mtu", "Throughput over MTU", stacks, caption(sweep, spread))


def buffer_plot(sweep: Sweep, spread: str) -> Figure:
    x = along(sweep)
    panels = facets(sweep, FACETS, x)
    if len(sweep.units_of("THROUGHPUT")) == 1 and len(panels) <= 6 and all(
            len(series_of(sweep, x, fixed)) == 1 for fixed in panels):
        panels = [{}]       # one line each: all of them in one panel
    stacks = [[panel_of(sweep, x, fixed, series_of(sweep, x, fixed), spread, str(i))]
              for i, fixed in enumerate(panels)]
    return Figure("buffer", f"Throughput over {axis_title(sweep, x)}", stacks, caption(sweep, spread))


def cpu_plot(sweep: Sweep, spread: str) -> Figure:
    """Throughput above, below it how busy either end was."""
    x, stacks = along(sweep), []
    for index, fixed in enumerate(facets(sweep, FACETS, x)):
        lines = series_of(sweep, x, fixed)
        top = panel_of(sweep, x, fixed, lines, spread, str(index))
        low = Panel("", "%", top.x, zero=True, what="processor busy")
        for line in lines:
            for number, (end, figure) in enumerate((("local", "LOCAL_CPU_UTIL"),
                                                    ("remote", "REMOTE_CPU_UTIL"))):
                colour, marker = look("", number) if len(lines) == 1 else (line.colour, line.marker)
                part = line._replace(label=" ".join(filter(None, [line.label, end])), colour=colour,
                                     marker=marker, dash=DASHES[number])
                low.lines.append(line_of(sweep, low, part, spread,
                                         lambda cell, figure=figure: cell.values(figure), f"cpu{index}"))
        top.zero = True
        stacks.append([top, low])
    return Figure("cpu", "Throughput and processors of both ends", stacks,
                  caption(sweep, spread, "solid: local end, dashed: remote end"))


def netpipe_plot(sweep: Sweep, spread: str) -> Figure:
    """As NetPIPE draws it: bandwidth, and the time of a message one way, half a transaction."""
    x = message_axis(sweep) or "size"
    top = Panel(head_of(sweep, {}), "Mbit/s", Scale(sweep, x, sweep.values[x]), log=True)
    low = Panel("", "\u00b5s", top.x, log=True, what="one way")
    lines = [line._replace(cells=[(v, cell) for v, cell in line.cells if not any(
        rate <= 0 for rate in rates(cell))]) for line in series_of(sweep, x, {})]
    for line in lines:
        top.lines.append(line_of(sweep, top, line, spread, lambda cell: [
            bandwidth(top, cell.point[x], cell, rate) for rate in rates(cell)], "line"))
        if any(cell.unit() == TRANSACTIONS for _, cell in line.cells):
            low.lines.append(line_of(sweep, low, line, spread, lambda cell: [
                1e6 / (2 * rate) for rate in rates(cell)], "latency"))
    top.lines += ceilings(sweep, top, lines, "0")
    return Figure("netpipe", "Latency and bandwidth over message size",
                  [[top, low] if low.lines else [top]], caption(sweep, spread))


def tests_plot(sweep: Sweep, spread: str) -> Figure:
    """A bar a point, with a mark where its ceiling is; a panel for each unit."""
    stack = []
    for unit in sweep.units_of("THROUGHPUT"):
        cells = [cell for cell in sweep.cells.values() if rates(cell) and cell.unit() == unit]
        panel = Panel("", unit, None, rows=[
            named(sweep, {n: cell.point[n] for n in sweep.varying() if n in cell.point})
            or head_of(sweep, {}) or "all" for cell in cells])
        for row, (cell, name) in enumerate(zip(cells, panel.rows)):
            mark = mark_of(row, rates(cell), name, unit, spread)
            label, most = f"{mark.y:,.5g}", sweep.ceiling(cell)
            if most:
                label += f"  ({100 * mark.y / most:.1f} % of {most:,.5g})"
                panel.lines.append(Line(f"ceiling-{gid(name)}", "", TEXT, [
                    Mark(row, most, f"{name} at most\n{most:.6g} {unit}")], "ceiling"))
            panel.lines.append(Line(f"bar-{gid(name)}", label.replace(",", " "),
                                    look(sweep.test(cell.point))[0], [mark], "bar"))
        stack.append(panel)
    return Figure("tests", "Throughput by test", [stack] if stack else [], caption(sweep, spread))


# --- fluctuation --------------------------------------------------------------------------

def spans(run: Run) -> "List[Tuple[float, float, float]]":
    """The interim samples as begin, end and throughput in the unit of the figures."""
    found, before = [], 0.0
    for end, value in run.interim or []:
        if end > before:
            value = ceiling.in_unit(float(value), str(run.result.get("THROUGHPUT_UNITS") or ""))
            found.append((before, float(end), value))
            before = float(end)
    return found


def worst_second(run: Run) -> "Optional[Tuple[float, float, float]]":
    """Begin, end and mean throughput of the second in which least went through: of all stretches of
    whole samples that last a second, or as near above one as the samples allow."""
    pieces = spans(run)
    worst: "Optional[Tuple[float, float, float]]" = None
    for i, (begin, _, _) in enumerate(pieces):
        amount = 0.0
        for start, end, value in pieces[i:]:
            amount += value * (end - start)
            if end - begin >= 1 - 0.05:
                mean = amount / (end - begin)
                if worst is None or mean < worst[2]:
                    worst = begin, end, mean
                break
    return worst


def worst_of(cell: Cell) -> "Optional[Tuple[float, float, float]]":
    return min(filter(None, map(worst_second, cell.good())), key=lambda one: one[2], default=None)


def fluctuation_plot(sweep: Sweep, spread: str) -> Figure:
    sampled = [cell for cell in sweep.cells.values()
               if any(len(run.interim or []) >= 4 for run in cell.good())]
    if len(sampled) > MOST_RUNS_IN_TIME:
        return over_axis(sweep)
    stacks = [[over_time(sweep, cell, index)] for index, cell in enumerate(sampled)]
    return Figure("fluctuation", "Fluctuation within the runs", stacks, "a line a run; dashed black: the "
                  "mean; thick: the second in which least went through")


def over_time(sweep: Sweep, cell: Cell, index: int) -> Panel:
    said = named(sweep, {n: cell.point[n] for n in sweep.varying() if n in cell.point})
    panel = Panel(said or head_of(sweep, {}), cell.unit(), None)
    values: "List[float]" = []
    for run in cell.good():
        pieces = spans(run)
        if pieces:
            marks = [Mark(pieces[0][0], pieces[0][2]), *(Mark(
                end, value, f"run {run.repetition}, until {end:g} s\n{value:.6g} {panel.unit}")
                for _, end, value in pieces)]
            panel.lines.append(Line(f"run-{index}-{run.repetition}", "", look(sweep.test(cell.point))[0],
                                    marks, "step"))
            values += [value for _, _, value in pieces]
    last = max(mark.x for line in panel.lines for mark in line.marks)
    mean = mean_of(rates(cell) or values)
    panel.lines.append(Line(f"mean-{index}", "", TEXT, [Mark(0.0, mean), Mark(last, mean)], "mean"))
    worst = worst_of(cell)
    if worst:
        panel.lines.append(Line(f"worst-{index}", f"worst second {worst[2]:.4g}", TEXT, [
            Mark(at, worst[2], f"worst second\n{worst[2]:.6g} {panel.unit}") for at in worst[:2]], "worst"))
    off = statistics.pstdev(values) / mean_of(values) * 100 if mean_of(values) else 0.0
    panel.note = (f"mean {mean:.4g}, samples {min(values):.4g} to {max(values):.4g}, "
                  f"deviation {off:.2g} %")
    return panel


def over_axis(sweep: Sweep) -> Figure:
    """For each point the samples' range, the middle half of them, the mean and the worst second."""
    x = along(sweep)
    stacks = []
    for index, fixed in enumerate(facets(sweep, [n for n in sweep.varying() if n != x], x)):
        line = series_of(sweep, x, fixed)[0]
        panel = Panel(head_of(sweep, fixed), line.cells[0][1].unit(), Scale(sweep, x, sweep.values[x]))
        means, lows = [], []
        for value, cell in line.cells:
            samples = [v for run in cell.good() for _, _, v in spans(run)]
            if len(samples) < 2:
                continue
            quarter, _, upper = statistics.quantiles(samples, n=4)
            mean, worst = mean_of(rates(cell) or samples), worst_of(cell)
            said = named(sweep, {x: value})
            means.append(Mark(panel.x.at(value), mean, f"{said}\nmean {mean:.6g} {panel.unit}",
                              min(samples), max(samples), box=(quarter, upper)))
            if worst:
                lows.append(Mark(panel.x.at(value), worst[2], f"{said}\nworst second {worst[2]:.6g} "
                                 f"{panel.unit}"))
        panel.lines = [Line(f"mean-{index}", "mean", COLOURS[0], means, marker="circle"),
                       Line(f"worst-{index}", "worst second", COLOURS[1], lows, marker="triangle-down",
                            dash=DASHES[1])]
        stacks.append([panel])
    return Figure("fluctuation", f"Fluctuation over {axis_title(sweep, x)}", stacks,
                  "band: least to most of the interim samples; thick: the middle half")


FIGURES = {"mtu": mtu_plot, "netpipe": netpipe_plot, "fluctuation": fluctuation_plot,
           "buffer": buffer_plot, "cpu": cpu_plot, "tests": tests_plot}


def figure(sweep: Sweep, kind: str, spread: str = "minmax") -> Figure:
    """Raises ResultsError when the sweep cannot be drawn so."""
    require_kind(sweep, kind)
    made = FIGURES[kind](sweep, spread)
    if not any(line.there() for stack in made.stacks for panel in stack for line in panel.lines):
        raise ResultsError(f"{sweep.results.path}: no run has a throughput, nothing to draw")
    for stack in made.stacks:
        for panel in stack:
            side_by_side(panel)
    return made


def side_by_side(panel: Panel) -> None:
    """Moves the marks of several lines apart where x is no number: they would lie on each other."""
    lines = [line for line in panel.lines if line.kind == "data"]
    if panel.x and not panel.x.numeric:
        step = min(0.16, 0.7 / max(1, len(lines)))
        for i, line in enumerate(lines):
            for mark in line.marks:
                mark.x += (i - (len(lines) - 1) / 2) * step
