"""The contents of a sweep's plots: panels with lines, bars and ceilings, which draw.py draws."""

import functools
import itertools
import math
import re
import statistics
from dataclasses import dataclass, field, replace
from operator import methodcaller
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from netkit import ceiling, units
from netkit.results import SETS, ResultsError, Run, is_number, key_of, reading
from netkit.tables import COLUMNS, DOUBT, GROUPS, ROWS, TRANSACTIONS, Cell, Sweep, rank, require_axis

# Okabe and Ito's colours without yellow and black, which are invisible on white or black.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "triangle-right",
           "triangle-left")
DASHES = ((), (5, 2), (1.5, 1.5), (6, 2, 1.5, 2))
CEILINGS = ((4, 3), (1, 2), (8, 2, 1, 2), (10, 4))      # dashes of ceilings, which have no markers
RAMP = ((0x00, 0x72, 0xb2), (0x56, 0xb4, 0xe9), (0xe6, 0x9f, 0x00), (0xd5, 0x5e, 0x00))
TESTS = ("TCP_STREAM", "UDP_STREAM", "TCP_SENDFILE", "TCP_MAERTS")      # these have the first colours, as have
OTHER_TESTS = ("TCP_RR", "UDP_RR", "TCP_CRR", "TCP_CC")                 # these, whose unit differs
TEXT, MUTED, GRID = "#1f2a37", "#6b7684", "#e4e7eb"
USUAL = (1500, 9000, 576, 1280, 1000)       # MTUs that are labelled first where there is no room for all

KINDS = ("mtu", "netpipe", "flows", "fluctuation", "curve", "latency", "stations", "buffer", "cpu", "tests")
SPREADS = ("minmax", "stddev", "none")
LACKS = {"mtu": "no axis mtu with two values",
         "netpipe": "no axis size or request with six values over a span of 64",
         "flows": "no run of several flows with interim results: give netperf --flows N -D S --json, or a plan flows and "
         "interval",
         "fluctuation": "no run with interim samples: give netperf -D",
         "latency": "no run with beside or asked_rate",
         "curve": "no run with a search: give netperf --rate auto --json",
         "stations": "no run with stations: give netperf --stations --json",
         "buffer": "no axis beside the tests", "tests": "no good run",
         "cpu": "no LOCAL_CPU_UTIL and REMOTE_CPU_UTIL, or no axis beside the tests: measure with -c -C"}
# Which figures a run needs for each kind of plot.
NEEDED: "Dict[str, Callable[[Run], Any]]" = {
    "flows": lambda run: len(run.more.get("interim_flows") or []) >= 2,
    "fluctuation": lambda run: len(run.interim or []) >= 4,
    "latency": lambda run: run.figure("LOADED_P50_LATENCY") or run.figure("ASKED_RATE"),
    "curve": lambda run: len((run.more.get("curve") or {}).get("steps") or []) >= 2,
    "stations": lambda run: "stations.wire_us" in run.evidence("near")}
FACETS = tuple(name for name in GROUPS if name not in SETS)     # a panel for each of their values
MOST_LINES = 12             # in a panel, if another axis can be split into panels
BESIDE = {"idle, median": "IDLE_P50_LATENCY", "idle, P99": "IDLE_P99_LATENCY", "loaded, median": "LOADED_P50_LATENCY",
          "loaded, P99": "LOADED_P99_LATENCY"}
OPEN = {"median": "P50_LATENCY", "P90": "P90_LATENCY", "P99": "P99_LATENCY"}
NEVER = (2 ** 47 - 1) / 1e3     # us: the top of netperf's histograms, for transactions that never ended
BARS = (*COLOURS, "#8c6d31", "#9aa5b1")      # colours of a bar's parts: as many as there are stations
STATIONS = ("near_send", "near_queue", "wire", "far_receive", "far_work", "far_send", "far_queue", "near_receive")
QUARTILES = ("least", "lower quartile", "median", "upper quartile", "most")
MOST_NAMED = 8              # flows in a panel
FAR = 4                     # ceilings beyond this multiple of the largest value are cut off, as they would squeeze the data
MOST_RUNS_IN_TIME = 6       # points whose samples are plotted over time; with more points, over the axis

CALLED = {"mtu": "MTU", "size": "message size", "buffer": "socket buffer", "mss": "MSS", "flows": "flows",
          "local_buffer": "local socket buffer", "remote_buffer": "remote socket buffer",
          "processes": "netperf processes", "asked_rate": "asked rate", "cpu": "processors", "nodelay": "TCP_NODELAY"}
UNITS = {name: "bytes" for name in ("mtu", "size", "request", "response", "mss")}


@dataclass
class Mark:
    """A measured point: the mean, and the spread of its runs. NaN makes a gap."""
    x: float
    y: float
    words: str = ""
    low: Optional[float] = None
    high: Optional[float] = None
    off: Optional[float] = None                 # standard deviation
    box: "Optional[Tuple[float, float]]" = None     # quartiles
    doubt: bool = False                         # disturbed, or unsure


@dataclass
class Line:
    name: str           # its ID in SVG
    label: str
    colour: str
    marks: "List[Mark]"
    kind: str = "data"  # or "points", "ceiling", "step", "mean", "worst", "change", "bar"
    marker: str = ""
    dash: "Sequence[float]" = ()

    def there(self) -> "List[Mark]":
        return [mark for mark in self.marks if not math.isnan(mark.y)]


@dataclass
class Scale:
    """How an axis places its values: on a log scale if they span orders of magnitude, evenly if not numbers."""
    places: "List[float]"
    labels: "List[str]"             # as many are shown as there is room for
    title: str
    numeric: bool
    log: bool = False
    first: "Sequence[int]" = ()     # values that are labelled first
    of_value: "Dict[Any, float]" = field(default_factory=dict)      # position of a value, by key_of()

    @classmethod
    def of(cls, sweep: Sweep, name: str, values: "Sequence[Any]") -> "Scale":
        numeric = len(values) > 1 and all(map(is_number, values))
        every = [v for v in sweep.values.get(name, []) if is_number(v)]  # so that all panels look alike
        unit = UNITS.get(name) or ("" if name in sweep.in_kib else sweep.units.get(name, ""))
        mixed = name in ("threads", "cpu") and any(isinstance(v, str) for v in sweep.values.get(name, []))
        words = CALLED.get(name, name)
        places = {key_of(value): float(value if numeric else i) for i, value in enumerate(values)}
        return cls(list(places.values()),
                   [plain(value, 12) if is_number(value) and name not in sweep.in_kib else sweep.label(name, value) for value in values],
                   (words[0].upper() + words[1:] if name in CALLED else words) + (
                       f" ({unit})" if unit else " (local,remote)" if mixed else ""),
                   numeric, numeric and min(every) > 0 and max(every) / min(every) >= 8,
                   [values.index(value) for value in USUAL if name == "mtu" and value in values], places)

    def at(self, value: Any) -> float:
        return self.of_value[key_of(value)]

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
    begin: Optional[float] = 0.0    # start of the axis; None: near the smallest value
    note: str = ""
    what: str = "Throughput"        # the quantity that the unit belongs to
    rows: "List[str]" = field(default_factory=list)     # labels of horizontal bars

    @property
    def words(self) -> str:
        """The axis title."""
        return f"{self.what} ({self.unit})" if self.unit else self.what

    def limits(self) -> "Tuple[float, float]":
        values = [v for line in self.lines for mark in line.there()
                  for v in (mark.y, mark.low, mark.high) if v is not None]
        low, high = min(values or [0.0]), max(values or [1.0])
        if self.log:
            low = min([v for v in values if v > 0] or [0.1])
            pad = (high / low) ** 0.06 if high > low else 2.0
            return self.begin or low / pad, high * pad
        if self.begin is not None:
            return self.begin, high + 0.06 * (high - self.begin) if high > self.begin else self.begin + 1.0
        if self.unit == "%":    # show at least one percent, so that noise of 0.1 % does not look large
            low, high = min(low, -1.0), max(high, 0.0)
        pad = 0.08 * (high - low) or 0.05 * abs(high) or 1.0
        return low - pad, high + pad


@dataclass
class Figure:
    """Stacks of panels side by side. The panels of a stack share the x axis."""
    kind: str
    title: str
    stacks: "List[List[Panel]]"
    words: str = ""         # the caption
    every: "List[List[Panel]]" = field(default_factory=list)    # all panels of the figure that this is a part of, which have the same limits


@dataclass
class Wish:
    """Options of a plot."""
    spread: str = "minmax"
    x: str = ""                     # name of the axis; empty: chosen
    begin: Optional[float] = 0.0    # start of throughput axes; None: near the smallest
    title: Optional[str] = None     # None: made from the contents


class Series(NamedTuple):
    """The measured points of one line, along the x axis."""
    point: "Dict[str, Any]"
    label: str
    colour: str
    marker: str
    dash: "Sequence[float]"
    cells: "List[Tuple[Any, Cell]]"     # x and the cell; failed cells are gaps


def kinds(sweep: Sweep, x: str = "") -> "List[str]":
    """Kinds of plot that suit the sweep (with x: over it), most informative first. Raises ResultsError if none."""
    if x:
        require_axis(sweep, "--x", x)
    if not any(run.ok for run in sweep.results.runs):
        raise ResultsError(f"{sweep.results.path}: not one good run, nothing to draw")
    with reading(sweep.results.path):
        return [kind for kind in KINDS if suits(sweep, kind, x)]


@functools.lru_cache(maxsize=None)
def suits(sweep: Sweep, kind: str, x: str = "") -> bool:
    varying = sweep.varying()
    over = bool(x) or any(name not in GROUPS for name in varying)
    own = {"mtu": "mtu" if "mtu" in varying else None, "netpipe": message_axis(sweep)}  # axes that have a kind of their own
    if kind in own:
        return own[kind] is not None and x in ("", own[kind])
    if kind in NEEDED:
        return (not x or kind == "latency") and bool(runs_of(sweep, kind))
    if kind == "cpu":
        return over and all(any((run.figure(figure) or -1) >= 0 for run in sweep.results.runs if run.ok)
                            for figure in ("LOCAL_CPU_UTIL", "REMOTE_CPU_UTIL"))
    if kind == "buffer":
        return x not in own.values() if x else over and not any(own.values())
    return not over


def runs_of(sweep: Sweep, kind: str) -> "List[Tuple[Cell, Run]]":
    """The runs that have the figures this kind needs, with their cells."""
    return [(cell, run) for cell in sweep.cells.values() for run in cell.good() if NEEDED[kind](run)]


def message_axis(sweep: Sweep) -> Optional[str]:
    """The axis of message sizes, if it has enough values for a curve."""
    if any(name.endswith("buffer") or name == "mtu" for name in sweep.varying()):
        return None
    for name in ("size", "request", "response"):
        values = [v for v in sweep.values.get(name, []) if is_number(v) and v > 0]
        if len(values) >= 6 and max(values) / min(values) >= 64:
            return name
    return None


def named(sweep: Sweep, point: "Dict[str, Any]") -> str:
    return sweep.describe(point, called=CALLED)


def ramp(index: int, count: int) -> str:
    """A colour from a sequential scale of `count`."""
    at = 0.0 if count < 2 else index / (count - 1) * (len(RAMP) - 1)
    low = min(int(at), len(RAMP) - 2)
    mixed = [round(a + (b - a) * (at - low)) for a, b in zip(RAMP[low], RAMP[low + 1])]
    return "#" + "".join(f"{part:02x}" for part in mixed)


def look(test: str, index: int = 0) -> "Tuple[str, str]":
    """The colour and marker of a test, or of the value with this index."""
    for tests in (TESTS, OTHER_TESTS):
        index = tests.index(test) if test in tests else index
    return COLOURS[index % len(COLOURS)], MARKERS[index % len(MARKERS)]


def series_of(sweep: Sweep, x: str, fixed: "Dict[str, Any]", unit: str = "") -> "List[Series]":
    """The lines of a panel: one for each combination of the other axes' values. Colour and marker show the test, or
    the first axis, dashes the others. A single axis sets all three, for prints in black and white."""
    names = sorted((name for name in sweep.varying() if name != x and name not in fixed), key=lambda name: name != "test")
    at = {name: {key_of(v): i for i, v in enumerate(values)} for name, values in sweep.values.items()}
    found: "Dict[Tuple[int, ...], List[Tuple[Any, Cell]]]" = {}     # by the indexes of their values
    for cell in sweep.cells.values():
        if all(key_of(cell.point.get(n)) == key_of(v) for n, v in fixed.items()):
            key = tuple(at[name][key_of(cell.point.get(name))] for name in names)
            found.setdefault(key, []).append((cell.point.get(x), cell))
    good = {key: sorted(cells, key=lambda one: at.get(x, {}).get(key_of(one[0]), 0))
            for key, cells in found.items()
            if any(cell.good() and (not unit or cell.unit() == unit) for _, cell in cells)}
    made = []
    for key in sorted(good):
        point = {**fixed, **{n: sweep.values[n][i] for n, i in zip(names, key)}}
        first = sweep.values[names[0]] if names else []
        index = key[0] if names else 0
        colour, marker = look(sweep.test(point) if not names or names[0] == "test" else "", index)
        if first and all(map(is_number, first)) and names[0] != "family" and len(first) > 2:
            colour = ramp(index, len(first))
        style = 0
        dash = index + index // len(MARKERS) if len(names) == 1 else 0
        for name, i in zip(names[1:], key[1:]):
            style = style * len(sweep.values[name]) + i
        telling = [n for i, n in enumerate(names) if not i or any(
            all((a == b) != (i == j) for j, (a, b) in enumerate(zip(key, other))) for other in good)]
        made.append(Series(point, named(sweep, {n: point[n] for n in telling}), colour,
                           MARKERS[(MARKERS.index(marker) + style) % len(MARKERS)],
                           DASHES[(dash + style) % len(DASHES)], good[key]))
    return made


def plain(value: float, digits: int = 5) -> str:
    """Without exponent, and with a true minus sign: 1370, 13 700."""
    whole = len(f"{abs(value):.0f}") if math.isfinite(value) else 0
    return f"{value:{',' * (whole > 4)}.{max(digits, whole)}g}".replace(",", " ").replace("-", "\u2212")


def mean_of(values: "Sequence[float]") -> float:
    """The mean; NaN, which is drawn as a gap, if there are no values."""
    return statistics.fmean(values) if values else math.nan


def gid(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-") or "all"


def mark_of(x: float, values: "List[float]", said: str, unit: str, spread: str, doubts: "Sequence[str]") -> Mark:
    mark = Mark(x, mean_of(values), doubt=bool(doubts))
    words = f"{plain(mark.y, 6)} {unit}" if values else "failed"
    if len(values) > 1:
        low, high, off = min(values), max(values), statistics.stdev(values)
        words += f" \u00b1 {plain(off, 3)}, {plain(low, 6)} to {plain(high, 6)}, {len(values)} runs"
        if spread == "minmax":
            mark.low, mark.high = low, high
        elif spread == "stddev":
            mark.low, mark.high, mark.off = mark.y - off, mark.y + off, off
    mark.words = "\n".join([said, words, *doubts])
    return mark


def line_of(sweep: Sweep, panel: Panel, line: Series, spread: str, values: Any, prefix: str) -> Line:
    """One line of a panel. `values` gets the values of a cell."""
    assert panel.x
    marks = [mark_of(panel.x.at(x), values(cell), said_of(sweep, cell), panel.unit, spread, list(sweep.doubts(cell)))
             for x, cell in line.cells]
    return Line(f"{prefix}-{gid(line.label)}", line.label, line.colour, marks, marker=line.marker, dash=line.dash)


def rates(cell: Cell) -> "List[float]":
    return cell.values("THROUGHPUT")


def bandwidth(panel: Panel, size: float, cell: Cell, value: float) -> float:
    """In the panel's unit. A transaction carries the message both ways: its rate becomes Mbit/s one way."""
    return 2 * size * 8 * value / 1e6 if cell.unit() == TRANSACTIONS != panel.unit else value


def ceilings(sweep: Sweep, panel: Panel, lines: "Sequence[Series]", suffix: str) -> "Iterator[Line]":
    """The different ceilings of some lines, labelled with the tests they apply to."""
    groups: "List[Tuple[str, Dict[float, float], Series]]" = []
    for line in lines:
        assert panel.x
        points = {panel.x.at(x): bandwidth(panel, x, cell, most)
                  for x, cell in line.cells for most in [sweep.ceiling(cell)] if most}
        test = sweep.test(line.point)
        name = test.partition("_")[0] if test in ceiling.STREAMS else test
        for other, known, _ in groups:
            if name == other and all(math.isclose(known.get(x, y), y, rel_tol=1e-9) for x, y in points.items()):
                known.update(points)
                break
        else:
            if points:
                groups.append((name, points, line))
    of = [name for name, _, _ in groups]
    most = math.inf if panel.log else FAR * max((mark.y for line in panel.lines for mark in line.there()), default=math.inf)
    if any(y > most for _, points, _ in groups for y in points.values()):
        panel.note = f"ceilings above {FAR} times the most measured are not drawn"
    tests = [test.replace("_STREAM", "") for test in TESTS + OTHER_TESTS]
    for number, (name, points, line) in enumerate(groups):
        single = of.count(name) == 1
        said = name if single else line.label       # it has the colour of its line, and each test has its dashes
        number = tests.index(name) if single and name in tests else number
        near = sorted((x, y) for x, y in points.items() if y <= most)
        if not near or len(near) == 1 < len(points):
            continue
        yield Line(f"ceiling-{gid(said)}-{suffix}", f"{said} at most" if said else "ceiling", TEXT if single else line.colour,
                   [Mark(x, y, f"{said} at most\n{plain(y, 6)} {panel.unit}".strip()) for x, y in near], "ceiling", dash=CEILINGS[number % len(CEILINGS)])


def caption(sweep: Sweep, spread: str, *more: str) -> str:
    """The caption: what the marks mean that occur in the figure."""
    cells = list(sweep.cells.values())
    repeated = any(len(cell.good()) > 1 for cell in cells)
    doubted = sum(any(sweep.doubts(cell)) for cell in cells)
    return "; ".join(filter(None, [
        *more, {"minmax": "band or bar: least to most of the runs", "stddev": "bars: standard deviation of the "
                "runs"}.get(spread, "") if repeated else "",
        "\u00d7: failed" if any(not cell.good() for cell in cells) else "",
        f"ring or {DOUBT}: disturbed, or not sure ({doubted} of {len(cells)})" if doubted else ""]))


def conditions(sweep: Sweep) -> str:
    """The conditions common to the whole figure: runs per point, length, link, date."""
    counts = [len(cell.good()) for cell in sweep.cells.values() if cell.good()]
    good = [run for run in sweep.results.runs if run.ok]
    varying = sweep.varying()
    known = {name: value for name, value in {**good[0].near_device, **sweep.constants, **sweep.single()}.items()
             if name not in varying}
    length = units.seconds(known.get("length")) if is_number(known.get("length")) else None
    lasted = [seconds for seconds in (run.figure("ELAPSED_TIME") for run in good) if seconds]
    if length is None and lasted and "length" not in varying:
        length = float(f"{statistics.median(lasted):.3g}")
    rate = units.rate(known.get("rate"))
    delay = units.seconds(known["delay"]) if known.get("delay") else None
    days = sorted({began[:10] for began in [sweep.results.header.started, *(run.started for run in good)]
                   if re.match(r"\d{4}-\d\d-\d\dT", began)})
    return ", ".join(filter(None, [
        "n = " + " to ".join(dict.fromkeys(map(str, (min(counts), max(counts))))),
        f"{units.show_time(length)} each" if length else "",
        units.show_rate(rate) if rate else "", f"delay {units.show_time(delay)}" if delay else "",
        f"MTU {known['mtu']}" if known.get("mtu") else "",
        named(sweep, {name: value for name, value in sweep.single().items() if name not in (
            "test", "length", "rate", "delay", "mtu")}),
        " to ".join(dict.fromkeys(days[:1] + days[-1:]))]))


def facets(sweep: Sweep, names: "Sequence[str]", x: str) -> "List[Dict[str, Any]]":
    """A panel for each measured combination of axes. Too many lines are split by test, then by the smallest axis."""
    names = [name for name in names if name in sweep.varying() and name != x]
    rest = sorted((name for name in sweep.varying() if name != x and name not in names),
                  key=lambda name: (name != "test", len(sweep.values[name])))
    while len(rest) > 1 and math.prod(len(sweep.values[name]) for name in rest) > MOST_LINES:
        names.append(rest.pop(0))
    there = {tuple(key_of(cell.point.get(name)) for name in names)
             for cell in sweep.cells.values() if cell.good()}
    return [dict(zip(names, choice)) for choice in itertools.product(*(sweep.values[n] for n in names))
            if tuple(map(key_of, choice)) in there]


def head_of(sweep: Sweep, fixed: "Dict[str, Any]") -> str:
    """The title of a panel."""
    test = {} if "test" in sweep.varying() else {"test": sweep.test(fixed)}
    return named(sweep, {**{k: v for k, v in test.items() if v}, **fixed})


def along(sweep: Sweep) -> str:
    """The axis that serves best as the x axis."""
    return min((name for name in sweep.varying() if name not in GROUPS), default=[*sweep.varying(), *sweep.values, ""][0],
               key=lambda n: rank(n, ROWS, len(ROWS) + rank(n, COLUMNS, -0.5)))


def panel_of(sweep: Sweep, x: str, fixed: "Dict[str, Any]", lines: "List[Series]", wish: Wish,
             suffix: str) -> Panel:
    """Throughput over an axis, with ceilings."""
    units_there = {cell.unit(): 0 for line in lines for _, cell in line.cells if cell.unit()}
    if wish.x and len(units_there) > 1:
        raise ResultsError(f"--x {x}: {' and '.join(units_there)} on one axis: choose some points by --where")
    unit = next(iter(units_there), "")
    there = {key_of(value) for line in lines for value, _ in line.cells}
    panel = Panel(head_of(sweep, fixed), unit, Scale.of(sweep, x, [v for v in sweep.values[x]
                                                                if key_of(v) in there]), begin=wish.begin)
    panel.lines = [line_of(sweep, panel, line, wish.spread, rates, f"line{suffix}") for line in lines]
    panel.lines += ceilings(sweep, panel, lines, suffix)
    return panel


def mtu_plot(sweep: Sweep, wish: Wish) -> Figure:
    """Throughput over MTU, and below it the deviation from the ceiling; a stack for each unit."""
    x, stacks = wish.x or "mtu", []
    for fixed in facets(sweep, ["family", "host"], x):
        for unit in sweep.units_of("THROUGHPUT"):
            lines = series_of(sweep, x, fixed, unit)
            if not lines:
                continue
            index = str(len(stacks))
            stacks.append([panel_of(sweep, x, fixed, lines, wish, index)])
            low = Panel("", "%", stacks[-1][0].x, begin=None, what="From the ceiling")
            low.lines = [line_of(sweep, low, line, wish.spread, lambda cell: [
                share - 100 for share in sweep.share(cell)], f"deviation{index}") for line in lines]
            if any(line.there() for line in low.lines):
                low.lines.append(Line(f"zero-{index}", "", TEXT, [Mark(x, 0.0, "the ceiling") for x in
                                                                 low.x.places], "ceiling", dash=CEILINGS[0]))
                stacks[-1].append(low)
    return Figure("mtu", f"Throughput over {CALLED.get(x, x)}", stacks, caption(sweep, wish.spread))


def buffer_plot(sweep: Sweep, wish: Wish) -> Figure:
    x = wish.x or along(sweep)
    panels = facets(sweep, FACETS, x)
    if len(sweep.units_of("THROUGHPUT")) == 1 and len(panels) <= 6 and all(
            len(series_of(sweep, x, fixed)) == 1 for fixed in panels):
        panels = [{}]       # single lines: all of them in one panel
    stacks = [[panel_of(sweep, x, fixed, series_of(sweep, x, fixed), wish, str(i))]
              for i, fixed in enumerate(panels)]
    return Figure("buffer", f"Throughput over {CALLED.get(x, x)}", stacks, caption(sweep, wish.spread))


def cpu_plot(sweep: Sweep, wish: Wish) -> Figure:
    x, stacks = wish.x or along(sweep), []
    for index, fixed in enumerate(facets(sweep, FACETS, x)):
        lines = [line._replace(dash=()) for line in series_of(sweep, x, fixed)]     # here dashes distinguish the two ends
        top = panel_of(sweep, x, fixed, lines, wish, str(index))
        low = Panel("", "%", top.x, what="Processor busy")
        for line in lines:
            for number, (end, figure) in enumerate((("local", "LOCAL_CPU_UTIL"),
                                                    ("remote", "REMOTE_CPU_UTIL"))):
                colour, marker = look("", number) if len(lines) == 1 else (line.colour, line.marker)
                part = line._replace(label=" ".join(filter(None, [line.label, end])), colour=colour,
                                     marker=marker, dash=DASHES[number])
                low.lines.append(line_of(sweep, low, part, wish.spread, methodcaller("values", figure), f"cpu{index}"))
        stacks.append([top, low])
    return Figure("cpu", "Throughput and processors of both ends", stacks,
                  caption(sweep, wish.spread, "solid: local end, dashed: remote end"))


def latency_plot(sweep: Sweep, wish: Wish) -> Figure:
    """Latency over an axis: of --beside, idle and under load, or of an open loop."""
    x, stacks = wish.x or along(sweep), []
    beside = any(cell.values("LOADED_P50_LATENCY") for cell in sweep.cells.values())
    for index, fixed in enumerate(facets(sweep, [n for n in sweep.varying() if n != x], x)):
        line = series_of(sweep, x, fixed)[0]
        panel = Panel(head_of(sweep, fixed), "\u00b5s", Scale.of(sweep, x, sweep.values[x]), log=True, begin=wish.begin,
                      what="Latency")
        for number, (name, figure) in enumerate((BESIDE if beside else OPEN).items()):
            colour, marker = look("", number)
            part = line._replace(label=name, colour=colour, marker=marker, dash=DASHES[number % 2 if beside else 0])
            panel.lines.append(line_of(sweep, panel, part, wish.spread, methodcaller("values", figure), f"latency{index}"))
        stacks.append([panel])
    title = "Latency without the test and under its load" if beside else "Latency of an open loop"
    return Figure("latency", title, stacks, caption(sweep, wish.spread))


def netpipe_plot(sweep: Sweep, wish: Wish) -> Figure:
    """As NetPIPE plots it: bandwidth, and the one-way time of a message, which is half a transaction."""
    x = wish.x or message_axis(sweep) or "size"
    top = Panel(head_of(sweep, {}), "Mbit/s", Scale.of(sweep, x, sweep.values[x]), log=True, begin=wish.begin)
    low = Panel("", "\u00b5s", top.x, log=True, what="One way")
    lines = [line._replace(cells=[(v, cell) for v, cell in line.cells if not any(
        rate <= 0 for rate in rates(cell))]) for line in series_of(sweep, x, {})]
    for line in lines:
        top.lines.append(line_of(sweep, top, line, wish.spread, lambda cell: [
            bandwidth(top, cell.point[x], cell, rate) for rate in rates(cell)], "line"))
        if any(cell.unit() == TRANSACTIONS for _, cell in line.cells):
            low.lines.append(line_of(sweep, low, line, wish.spread, lambda cell: [
                1e6 / (2 * rate) for rate in rates(cell)], "latency"))
    top.lines += ceilings(sweep, top, lines, "0")
    return Figure("netpipe", "Latency and bandwidth over message size",
                  [[top, low] if low.lines else [top]], caption(sweep, wish.spread))


def said_of(sweep: Sweep, cell: Cell) -> str:
    """How a point differs from the others; a single point is described in full."""
    return named(sweep, {n: cell.point[n] for n in sweep.varying() if n in cell.point}) or head_of(sweep, {})


def tests_plot(sweep: Sweep, wish: Wish) -> Figure:
    """A bar for each point, with its ceiling marked; a panel for each unit."""
    stack = []
    for unit in sweep.units_of("THROUGHPUT"):
        cells = [cell for cell in sweep.cells.values() if rates(cell) and cell.unit() == unit]
        panel = Panel("", unit, None, rows=[
            said_of(sweep, cell) or "all" for cell in cells])
        for row, (cell, name) in enumerate(zip(cells, panel.rows)):
            mark = mark_of(row, rates(cell), name, unit, wish.spread, list(sweep.doubts(cell)))
            label, most = plain(mark.y) + f"  {DOUBT}" * mark.doubt, sweep.ceiling(cell)
            if most:
                label += f"  ({100 * mark.y / most:.1f} % of {plain(most)})"
                panel.lines.append(Line(f"ceiling-{gid(name)}", "", TEXT, [
                    Mark(row, most, f"{name} at most\n{plain(most, 6)} {unit}")], "ceiling"))
            panel.lines.append(Line(f"bar-{gid(name)}", label,
                                    look(sweep.test(cell.point))[0], [mark], "bar"))
        stack.append(panel)
    return Figure("tests", "Throughput by test", [stack] if stack else [], caption(
        sweep, wish.spread, "upright: the ceiling" if any(map(sweep.ceiling, sweep.cells.values())) else ""))


def curve_plot(sweep: Sweep, wish: Wish) -> Figure:
    """Latency over the rates that a search tried, and where the search ended."""
    stacks = []
    for index, (cell, run) in enumerate(runs_of(sweep, "curve")[:MOST_RUNS_IN_TIME]):
        curve = run.more["curve"]
        steps = sorted(curve["steps"], key=lambda step: step["rate"])
        unit, by = ("Mbit/s", 1e6) if curve["unit"] == "bit/s" else ("1/s", 1.0)
        at = [step["rate"] / by for step in steps]
        panel = Panel(said_of(sweep, cell), "\u00b5s", Scale(at, list(map(plain, at)), f"Rate ({unit})", True, at[-1] / at[0] >= 8),
                      log=True, begin=wish.begin, what="Latency")
        for number, name in enumerate(("p50", "p99", "p99.9")):
            colour, marker = look("", number)
            panel.lines.append(Line(f"curve-{index}-{gid(name)}", name.upper(), colour, marker=marker, marks=[
                Mark(step["rate"] / by, step[name], f"{name.upper()} at {plain(step['rate'] / by, 4)} {unit}\n{plain(step[name], 4)} \u00b5s",
                     *(min(NEVER, one or NEVER) for one in step["intervals"].get(name) or ())) for step in steps if (step.get(name) or NEVER) < NEVER]))
        if curve["knee"]:
            panel.lines.append(Line(f"knee-{index}", f"the knee: {plain(curve['knee'] / by)}", MUTED,
                                    [Mark(curve["knee"] / by, 0.0)], "change"))
        stacks.append([panel])
    return Figure("curve", "Latency over the rate", stacks, "band: between which times the percentile lies, 19 times in "
                  "20; not drawn: what is never answered")


def stations_plot(sweep: Sweep, wish: Wish) -> Figure:
    """A bar for each point; its parts are the times that a transaction spent at each station."""
    told: "Dict[Cell, List[Dict[str, Any]]]" = {}
    for cell, run in runs_of(sweep, "stations"):
        told.setdefault(cell, []).append(run.evidence("near"))
    panel = Panel("", "\u00b5s", None, what="Round trip", rows=[said_of(sweep, cell) or "all" for cell in told])
    for row, runs in enumerate(told.values()):
        means = {name: statistics.mean(one[f"stations.{name}_us"] for one in runs) for name in STATIONS}
        whole, end = sum(means.values()), 0.0
        for number, (name, mean) in enumerate(means.items()):
            begin, end = end, end + mean
            words = f"{panel.rows[row]}\n{name} {plain(mean, 4)} \u00b5s, {100 * mean / whole:.0f} %"
            panel.lines.append(Line(f"part-{row}-{name}", name.replace("_", " "), BARS[number],
                                    [Mark(row, end, words, low=begin)], "part", "square"))
    return Figure("stations", "Where the time of a transaction goes", [[panel]],
                  "means, from left to right in this order")


def flows_plot(sweep: Sweep, wish: Wish) -> Figure:
    stacks = [flows_over_time(sweep, cell, run, f"{index}", wish)
              for index, (cell, run) in enumerate(runs_of(sweep, "flows")[:MOST_RUNS_IN_TIME])]
    return Figure("flows", "Flows over time", stacks, "each interval at its middle; circles: the first and the last, in "
                  "which buffers fill and drain; Jain's index: 1 where all flows are alike")


def flows_over_time(sweep: Sweep, cell: Cell, run: Run, number: str, wish: Wish) -> "List[Panel]":
    panel = Panel(said_of(sweep, cell), cell.unit(), None, begin=wish.begin, what="Throughput of each flow")
    samples = run.more["interim_flows"]
    ends = [0.0, *(at for at, _, _ in samples)]
    middles = [(begin + end) / 2 for begin, end in zip(ends, ends[1:])]
    unit = str(run.result.get("THROUGHPUT_UNITS") or "")
    flows = list(zip(*(rates for _, rates, _ in samples)))
    names = QUARTILES if run.more["interim_quartiles"] else [f"flow {i}" for i in range(1, len(flows) + 1)]
    for i, (name, rates) in enumerate(zip(names, flows)):
        values = [ceiling.in_unit(float(rate), unit) for rate in rates]
        marks = [Mark(x, y, f"{name}, until {end:g} s\n{plain(y, 6)} {panel.unit}")
                 for x, y, end in zip(middles, values, ends[1:])]
        panel.lines += with_edges(Line(f"flow-{number}-{i + 1}", name if len(flows) <= MOST_NAMED else "",
                                       ramp(i, len(flows)), marks, dash=DASHES[i % len(DASHES)]))
    jain = Panel("", "", None, what="Jain's index")
    jain.lines = with_edges(Line(f"jain-{number}", "", TEXT, [
        Mark(x, math.nan, f"until {end:g} s\nnothing moved") if index is None else
        Mark(x, index, f"until {end:g} s\nJain's index {index:.3f}")
        for x, end, (_, _, index) in zip(middles, ends[1:], samples)]))
    return [panel, jain]


def with_edges(line: Line) -> "List[Line]":
    """Splits off the first and last interval, in which buffers fill and drain."""
    if len(line.marks) < 5:
        return [line]
    return [replace(line, marks=line.marks[1:-1]),
            replace(line, name=f"edge-{line.name}", label="", marks=[line.marks[0], line.marks[-1]], kind="points", marker="circle",
                    dash=DASHES[1])]


def spans(run: Run) -> "List[Tuple[float, float, float]]":
    """Interim samples as start, end and throughput in the unit of the figures."""
    found, before = [], 0.0
    for end, value in run.interim or []:
        if end > before:
            value = ceiling.in_unit(float(value), str(run.result.get("THROUGHPUT_UNITS") or ""))
            found.append((before, float(end), value))
            before = float(end)
    return found


def seconds_of(run: Run) -> "Iterator[Tuple[float, float, float]]":
    """Start, end and mean throughput of all runs of samples that last about a second."""
    pieces = spans(run)
    for i, (begin, _, _) in enumerate(pieces):
        amount = 0.0
        for start, end, value in pieces[i:]:
            amount += value * (end - start)
            if end - begin >= 1 - 0.05:
                yield begin, end, amount / (end - begin)
                break


def worst_of(cell: Cell) -> "Optional[Tuple[float, float, float]]":
    """The second with the lowest throughput."""
    return min(itertools.chain(*map(seconds_of, cell.good())), key=lambda one: one[2], default=None)


def fluctuation_plot(sweep: Sweep, wish: Wish) -> Figure:
    sampled = list(dict.fromkeys(cell for cell, _ in runs_of(sweep, "fluctuation")))
    if wish.x or len(sampled) > MOST_RUNS_IN_TIME:
        return over_axis(sweep, wish)
    stacks = [[over_time(sweep, cell, index, wish)] for index, cell in enumerate(sampled)]
    return Figure("fluctuation", "Fluctuation within the runs", stacks, "a line a run; dashed: the "
                  "mean; thick: the second in which least went through")


def over_time(sweep: Sweep, cell: Cell, index: int, wish: Wish) -> Panel:
    panel = Panel(said_of(sweep, cell), cell.unit(), None, begin=wish.begin)
    values: "List[float]" = []
    for run in cell.good():
        pieces = spans(run)
        if pieces:
            marks = [Mark(pieces[0][0], pieces[0][2]), *(Mark(
                end, value, f"run {run.repetition}, until {end:g} s\n{plain(value, 6)} {panel.unit}")
                for _, end, value in pieces)]
            panel.lines.append(Line(f"run-{index}-{run.repetition}", "", look(sweep.test(cell.point))[0],
                                    marks, "step"))
            values += [value for _, _, value in pieces]
    last = max(mark.x for line in panel.lines for mark in line.marks)
    mean = mean_of(rates(cell) or values)
    panel.lines.append(Line(f"mean-{index}", "", TEXT, [Mark(0.0, mean), Mark(last, mean)], "mean",
                            dash=CEILINGS[0]))
    worst = worst_of(cell)
    if worst:
        panel.lines.append(Line(f"worst-{index}", f"worst second {plain(worst[2], 4)}", TEXT, [
            Mark(at, worst[2], f"worst second\n{plain(worst[2], 6)} {panel.unit}") for at in worst[:2]], "worst"))
    off = statistics.pstdev(values) / mean_of(values) * 100 if mean_of(values) else 0.0
    panel.note = (f"mean {plain(mean, 4)}, samples {plain(min(values), 4)} to {plain(max(values), 4)}, "
                  f"deviation {plain(off, 2)}\u00a0%")
    return panel


def over_axis(sweep: Sweep, wish: Wish) -> Figure:
    """For each point: the samples' range and quartiles, the mean and the worst second."""
    x = wish.x or along(sweep)
    stacks = []
    for index, fixed in enumerate(facets(sweep, [n for n in sweep.varying() if n != x], x)):
        line = series_of(sweep, x, fixed)[0]
        panel = Panel(head_of(sweep, fixed), line.cells[0][1].unit(), Scale.of(sweep, x, sweep.values[x]),
                      begin=wish.begin)
        means, lows = [], []
        for value, cell in line.cells:
            samples = [v for run in cell.good() for _, _, v in spans(run)]
            if len(samples) < 2:
                continue
            quarter, _, upper = statistics.quantiles(samples, n=4)
            mean, worst = mean_of(rates(cell) or samples), worst_of(cell)
            said = named(sweep, {x: value})
            means.append(Mark(panel.x.at(value), mean, f"{said}\nmean {plain(mean, 6)} {panel.unit}",
                              min(samples), max(samples), box=(quarter, upper)))
            if worst:
                lows.append(Mark(panel.x.at(value), worst[2], f"{said}\nworst second {plain(worst[2], 6)} "
                                 f"{panel.unit}"))
        panel.lines = [Line(f"mean-{index}", "mean", COLOURS[0], means, marker="circle"),
                       Line(f"worst-{index}", "worst second", COLOURS[1], lows, marker="triangle-down",
                            dash=DASHES[1])]
        stacks.append([panel])
    return Figure("fluctuation", f"Fluctuation over {CALLED.get(x, x)}", stacks,
                  "band: least to most of the interim samples; thick: the middle half")


FIGURES = {"mtu": mtu_plot, "netpipe": netpipe_plot, "flows": flows_plot,
           "fluctuation": fluctuation_plot, "latency": latency_plot, "stations": stations_plot, "curve": curve_plot,
           "buffer": buffer_plot, "cpu": cpu_plot, "tests": tests_plot}


def figure(sweep: Sweep, kind: str, wish: Wish = Wish()) -> Figure:
    """The figure of this kind. Raises ResultsError if the sweep has no such figure."""
    over = any(name not in GROUPS for name in sweep.varying())
    with reading(sweep.results.path):
        if not (suits(sweep, kind) or (kind == "buffer" and over) or kind == "tests"):
            raise ResultsError(f"--kind {kind}: {LACKS[kind]} (try {', '.join(kinds(sweep))})")
        made = FIGURES[kind](sweep, wish)
    made.title = made.title if wish.title is None else wish.title
    made.words = "; ".join(filter(None, [made.words, conditions(sweep)]))
    made.stacks = [stack for stack in made.stacks if any(line.there() for panel in stack for line in panel.lines)]
    if not made.stacks:
        raise ResultsError(f"{sweep.results.path}: no run has a throughput, nothing to draw")
    for stack in made.stacks:
        for panel in stack:
            side_by_side(panel)
    return made


def side_by_side(panel: Panel) -> None:
    """Shift marks of several lines apart where x is not numeric, as they would overlap."""
    lines = [line for line in panel.lines if line.kind == "data"]
    if panel.x and not panel.x.numeric:
        step = min(0.16, 0.7 / max(1, len(lines)))
        for i, line in enumerate(lines):
            for mark in line.marks:
                mark.x += (i - (len(lines) - 1) / 2) * step
