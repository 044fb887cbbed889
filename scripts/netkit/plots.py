"""Plots of a sweep, by matplotlib. Call python.need("matplotlib", ...) first: this module imports
it only inside its functions.

Every colour of text, grid and ceiling is one of TEXT, MUTED and GRID, which a page that holds the
SVG may replace; those of the data are readable on white and on black.
"""

import io
import itertools
import math
import re
import statistics
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from netkit import ceiling
from netkit.results import ResultsError, Run, is_number
from netkit.tables import COLUMNS, GROUPS, ROWS, Cell, Sweep, rank, same

TEXT, MUTED, GRID = "#1f2a37", "#6b7684", "#e4e7eb"
BLUE, ORANGE, GREEN, PURPLE, RED, TEAL = ("#2f6fde", "#dd7a1c", "#2a9a6b", "#8b5fd3", "#d3455b",
                                          "#1b98a8")
TEST_COLOURS = {"TCP_STREAM": BLUE, "UDP_STREAM": ORANGE, "TCP_SENDFILE": GREEN,
                "TCP_MAERTS": PURPLE, "TCP_RR": BLUE, "UDP_RR": ORANGE, "TCP_CRR": GREEN,
                "TCP_CC": PURPLE}
OTHER_COLOURS = (TEAL, RED, PURPLE, GREEN, ORANGE, BLUE)
RAMP = ((0x2f, 0x6f, 0xde), (0x8b, 0x5f, 0xd3), (0xd3, 0x45, 0x7b), (0xdd, 0x7a, 0x1c))
LOCAL, REMOTE = BLUE, ORANGE
DASHES = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)))
MARKERS = ("o", "s", "^", "D")

STYLE = {
    "font.family": "sans-serif", "font.size": 9, "text.color": TEXT, "axes.labelcolor": MUTED,
    "axes.edgecolor": MUTED, "axes.linewidth": 0.8, "axes.spines.top": False,
    "axes.spines.right": False, "axes.titlesize": 10, "axes.titleweight": "bold",
    "axes.titlelocation": "left", "axes.titlecolor": TEXT, "axes.labelsize": 8.5, "axes.grid": True,
    "axes.axisbelow": True, "grid.color": GRID, "grid.linewidth": 0.7, "xtick.color": MUTED,
    "ytick.color": MUTED, "xtick.labelsize": 8, "ytick.labelsize": 8, "xtick.major.size": 3,
    "ytick.major.size": 0, "xtick.minor.size": 0, "ytick.minor.size": 0, "lines.linewidth": 1.6,
    "lines.markersize": 3.6, "lines.solid_capstyle": "round", "figure.facecolor": "white",
    "axes.facecolor": "none", "svg.fonttype": "none", "svg.hashsalt": "plumbline",
    "figure.constrained_layout.use": True, "axes.unicode_minus": True,
}

KINDS = ("mtu", "netpipe", "fluctuation", "buffer", "cpu", "tests")
SPREADS = ("minmax", "stddev", "none")
PANEL_WIDTH, PANEL_HEIGHT = 4.6, 3.0
SAID_WITH_NAME = ("family", "flows", "threads", "processes")     # whose values alone tell nothing
MOST_RUNS_IN_TIME = 6       # points whose samples are drawn over time; more are drawn by the axis
MOST_PANELS_ACROSS = 3


class Series(NamedTuple):
    """The points of one line: along the x axis, those that were measured."""
    point: "Dict[str, Any]"
    label: str
    colour: Any
    dash: Any
    marker: str
    cells: "List[Tuple[Any, Cell]]"     # x and what was tried there, failures too: they are gaps

    def means(self, figure: str) -> "List[float]":
        return [mean_of(cell.values(figure)) for _, cell in self.cells]


# --- which kinds a sweep can be drawn as --------------------------------------------------

def kinds(sweep: Sweep) -> "List[str]":
    """Those that say something about it, the most telling first. Raises ResultsError for none."""
    if not any(run.ok for run in sweep.results.runs):
        raise ResultsError(f"{sweep.results.path}: not one good run, nothing to draw")
    return [kind for kind in KINDS if suits(sweep, kind)]


def suits(sweep: Sweep, kind: str) -> bool:
    varying = sweep.varying()
    along = [name for name in varying if name not in GROUPS]
    if kind == "mtu":
        return "mtu" in varying
    if kind == "netpipe":
        return ("mtu" not in varying and not any(name.endswith("buffer") for name in varying)
                and message_axis(sweep) is not None)
    if kind == "fluctuation":
        return any(len(run.interim or []) >= 4 for run in sweep.results.runs if run.ok)
    if kind == "cpu":
        return bool(along) and all(any((run.figure(figure) or -1) >= 0
                                       for run in sweep.results.runs if run.ok)
                                   for figure in ("LOCAL_CPU_UTIL", "REMOTE_CPU_UTIL"))
    if kind == "buffer":
        return bool(along) and "mtu" not in varying and message_axis(sweep, 64) is None
    return not along


def message_axis(sweep: Sweep, least_span: float = 64) -> Optional[str]:
    """The axis of message sizes when it is fine and long enough for a curve of its own."""
    for name in ("size", "request", "response"):
        values = [v for v in sweep.values.get(name, []) if is_number(v) and v > 0]
        if len(values) >= 6 and max(values) / min(values) >= least_span and not any(
                other.endswith("buffer") or other == "mtu" for other in sweep.varying()):
            return name
    return None


def require_kind(sweep: Sweep, kind: str) -> None:
    """Raises ResultsError, with what the sweep lacks, when it cannot be drawn so."""
    lacks = {"mtu": "no axis mtu with two values", "netpipe": "no axis size or request with six "
             "values over a span of 64", "fluctuation": "no run with interim samples: give "
             "netperf -D",
             "buffer": "no axis beside the tests", "tests": "no good run",
             "cpu": "no LOCAL_CPU_UTIL and REMOTE_CPU_UTIL, or no axis beside the tests: measure "
             "with -c -C"}
    along = [name for name in sweep.varying() if name not in GROUPS]
    able = suits(sweep, kind) or (kind == "buffer" and bool(along)) or kind == "tests"
    if not able:
        raise ResultsError(f"--kind {kind}: {lacks[kind]} (try {', '.join(kinds(sweep))})")


# --- colours, lines, labels ---------------------------------------------------------------

def ramp(index: int, count: int) -> str:
    """The colour of one among `count` that have an order."""
    at = 0.0 if count < 2 else index / (count - 1) * (len(RAMP) - 1)
    low = min(int(at), len(RAMP) - 2)
    mixed = [round(a + (b - a) * (at - low)) for a, b in zip(RAMP[low], RAMP[low + 1])]
    return "#" + "".join(f"{part:02x}" for part in mixed)


def series_of(sweep: Sweep, x: str, fixed: "Dict[str, Any]") -> "List[Series]":
    """The lines of one panel: a choice of every axis that is neither x nor fixed. The test makes
    the colour, other axes the dashes; without tests the first axis makes the colour."""
    names = [name for name in sweep.varying() if name != x and name not in fixed]
    names.sort(key=lambda name: name != "test")
    single = sweep.single()
    found = []
    for choice in itertools.product(*(range(len(sweep.values[name])) for name in names)):
        point = {**fixed, **{n: sweep.values[n][i] for n, i in zip(names, choice)}}
        cells = []
        for value in sweep.values[x]:
            cell = sweep.cell({**single, **point, x: value})
            if cell:
                cells.append((value, cell))
        if not any(cell.good() for _, cell in cells):
            continue
        if names:
            count = len(sweep.values[names[0]])
            ordered = all(is_number(v) for v in sweep.values[names[0]]) and names[0] != "family"
            test = sweep.values[names[0]][choice[0]]
            colour = (ramp(choice[0], count) if ordered else
                      TEST_COLOURS.get(str(test)) or OTHER_COLOURS[choice[0] % len(OTHER_COLOURS)])
        else:
            test = point.get("test") or single.get("test") or sweep.constants.get("test")
            colour = TEST_COLOURS.get(str(test), BLUE)
        style = 0
        for name, index in zip(names[1:], choice[1:]):
            style = style * len(sweep.values[name]) + index
        telling = [n for n in names if n == names[0] or tells(sweep, point, n, names)]
        label = sweep.describe({n: point[n] for n in telling}) if len(names) != 1 else (
            sweep.label(names[0], point[names[0]]) if names[0] not in SAID_WITH_NAME
            else sweep.describe({names[0]: point[names[0]]}))
        found.append(Series(point, label, colour, DASHES[style % len(DASHES)],
                            MARKERS[style % len(MARKERS)], cells))
    return found


def tells(sweep: Sweep, point: "Dict[str, Any]", name: str, names: "Sequence[str]") -> bool:
    """Whether a line of the same test was measured with another value of this axis, too."""
    return any(not same(cell.point.get(name), point[name]) for cell in sweep.cells.values()
               if cell.good() and all(same(cell.point.get(n), point[n])
                                      for n in names if n != name))


class Scale:
    """Where the values of an axis stand: by their logarithm when they span much, evenly when they
    are no numbers."""

    def __init__(self, sweep: Sweep, name: str, values: "Sequence[Any]") -> None:
        self.values = list(values)
        numbers = [v for v in values if is_number(v)]
        self.numeric = len(numbers) == len(self.values) and len(numbers) > 1
        every = [v for v in sweep.values[name] if is_number(v)]  # so that all panels look alike
        self.log = self.numeric and min(every) > 0 and max(every) / min(every) >= 8
        self.labels = [sweep.label(name, value) for value in self.values]
        self.title = {"mtu": "MTU (bytes)", "size": "message size (bytes)",
                      "request": "request (bytes)", "buffer": "socket buffers",
                      "local_buffer": "local socket buffer",
                      "remote_buffer": "remote socket buffer",
                      "mss": "MSS (bytes)", "flows": "flows", "processes": "netperf processes",
                      "threads": "threads (local,remote)" if any(
                          isinstance(v, str) for v in self.values) else "threads",
                      "cpu": "processors (local,remote)"
                      }.get(name, name)
        if name.endswith("buffer") and "KiB" not in "".join(self.labels):
            self.title += f" ({sweep.units[name]})" if sweep.units.get(name) else ""

    def at(self, value: Any) -> float:
        if not self.numeric:
            return float(next(i for i, v in enumerate(self.values) if same(v, value)))
        return math.log2(value) if self.log else float(value)

    def apply(self, ax: Any, show: bool = True) -> None:
        """Ticks at the values themselves, as many as have room."""
        places = [self.at(value) for value in self.values]
        span = (max(places) - min(places)) or 1.0
        longest = max(map(len, self.labels))
        room = max(0.055, 0.017 * longest)
        kept = thin(places, room * span)
        ax.set_xticks([places[i] for i in kept])
        ax.set_xticklabels([shorten(self.labels[i]) for i in kept] if show else [])
        pad = 0.03 * span if self.numeric else 0.4
        ax.set_xlim(min(places) - pad, max(places) + pad)
        ax.grid(False, axis="x")
        if show:
            ax.set_xlabel(self.title)


def thin(places: "Sequence[float]", room: float) -> "List[int]":
    """Which of some rising places to name so that the names have room: every second, third ... one
    where they are evenly spaced, else as many as fit beside the first and the last."""
    count = len(places)
    steps = [b - a for a, b in zip(places, places[1:])]
    if steps and max(steps) - min(steps) < 1e-6 * max(steps):
        fit = [n for n in range(1, count) if n * steps[0] >= room] or [max(1, count - 1)]
        stride = next((n for n in fit if (count - 1) % n == 0 and n <= 2 * fit[0]), fit[0])
        return list(range(0, count, stride))
    kept: "List[int]" = []
    for i in [0, count - 1, *range(1, count - 1)]:
        if all(abs(places[i] - places[k]) >= room for k in kept):
            kept.append(i)
    return sorted(kept)


def shorten(label: str) -> str:
    """65536 as 64K where it is one, 16 KiB as it is."""
    if re.fullmatch(r"[0-9]{4,}", label) and int(label) % 1024 == 0:
        number = int(label)
        return f"{number >> 20}M" if number % (1 << 20) == 0 else f"{number >> 10}K"
    return label


def end_labels(ax: Any, wanted: "Sequence[Tuple[float, str, Any]]", bold: bool = False) -> None:
    """Words at the right of the lines, each at its line's height, pushed apart where they would
    touch. Call it when the limits of y are final."""
    wanted = [one for one in wanted if not math.isnan(one[0])]
    if not wanted:
        return
    low, high = ax.get_ylim()
    log = ax.get_yscale() == "log"

    def fraction(y: float) -> float:
        if log:
            return (math.log(y) - math.log(low)) / (math.log(high) - math.log(low))
        return (y - low) / (high - low)

    least = 11.5 / (ax.bbox.height * 72 / ax.figure.dpi)
    entries = sorted(([fraction(y), text, colour] for y, text, colour in wanted),
                     key=lambda entry: entry[0])
    for _ in range(200):
        moved = False
        for one, other in zip(entries, entries[1:]):
            gap = other[0] - one[0]
            if gap < least - 1e-9:
                one[0] -= (least - gap) / 2
                other[0] += (least - gap) / 2
                moved = True
        if not moved:
            break
    shift = min(0.0, 1.0 - entries[-1][0]) or max(0.0, 0.02 - entries[0][0])
    for height, text, colour in entries:
        ax.annotate(text, (1, height + shift), xycoords="axes fraction", xytext=(6, 0),
                    textcoords="offset points", va="center", ha="left", fontsize=8, color=colour,
                    fontweight="bold" if bold else "normal", annotation_clip=False)


def mean_of(values: "Sequence[float]") -> float:
    """Not a number where there are none, which is drawn as a gap."""
    return statistics.fmean(values) if values else math.nan


def last_of(values: "Sequence[float]") -> float:
    return next((value for value in reversed(values) if not math.isnan(value)), math.nan)


def gid(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-")


# --- the figures --------------------------------------------------------------------------

def new(width: float, height: float, title: str, rows: int, columns: int, words: str = "",
        **grid: Any) -> Any:
    """A figure and its panels; words explain, below them, what is not named where it stands."""
    from matplotlib.figure import Figure
    fig = Figure(figsize=(width, height))
    fig.set_constrained_layout_pads(w_pad=0.08, h_pad=0.06, hspace=0.04, wspace=0.04)
    axes = fig.subplots(rows, columns, squeeze=False, **grid)
    fig.suptitle(title, x=0.012, ha="left", fontsize=12, fontweight="bold", color=TEXT)
    if words:
        fig.supxlabel(words, x=0.012, ha="left", fontsize=8, color=MUTED)
    return fig, axes


def caption(first: str, spread: str, sweep: Sweep) -> str:
    """What the marks of a figure mean, as far as it has them."""
    cells = list(sweep.cells.values())
    repeated = any(len(cell.good()) > 1 for cell in cells)
    return "; ".join(filter(None, [
        first if any(map(sweep.ceiling, cells)) else "",
        {"minmax": "band: least to most of the runs", "stddev": "bars: standard deviation of the "
         "runs"}.get(spread, "") if repeated else "",
        "×: failed" if any(not cell.good() for cell in cells) else ""]))


def facets(sweep: Sweep, names: "Sequence[str]", x: str) -> "List[Dict[str, Any]]":
    """A panel for every choice of these axes under which something was measured."""
    names = [name for name in names if name in sweep.varying() and name != x]
    made = [dict(zip(names, choice))
            for choice in itertools.product(*(sweep.values[name] for name in names))]
    return [fixed for fixed in made if series_of(sweep, x, fixed)] or [{}]


def throughput_unit(sweep: Sweep, cells: "Sequence[Cell]") -> str:
    unit = next((cell.unit("THROUGHPUT") for cell in cells if cell.unit("THROUGHPUT")), "")
    return {"10^6bits/s": "Mbit/s", "Trans/s": "transactions/s", "10^9bits/s": "Gbit/s",
            "10^3bits/s": "kbit/s"}.get(unit, unit)


def ceiling_line(sweep: Sweep, line: Series) -> "List[Tuple[Any, float]]":
    """The ceiling along a line, in the unit of its throughput."""
    found = []
    for x, cell in line.cells:
        most = sweep.ceiling(cell)
        scale = ceiling.in_unit(1.0, cell.unit("THROUGHPUT"))
        if most is not None and (most.unit == ceiling.RATE_UNIT) == (
                cell.unit("THROUGHPUT") == ceiling.RATE_UNIT):
            found.append((x, most.value / scale))
    return found


def ceilings_of(sweep: Sweep, lines: "Sequence[Series]") -> "List[Tuple[str, Any]]":
    """The different ceilings of some lines, each with the tests it is of."""
    groups: "List[Tuple[List[str], List[Tuple[Any, float]]]]" = []
    for line in lines:
        points = ceiling_line(sweep, line)
        test = str(line.point.get("test") or sweep.single().get("test")
                   or sweep.constants.get("test") or "")
        name = test.partition("_")[0] if test in ceiling.STREAMS else test
        if len(points) < 1:
            continue
        for names, known in groups:
            shared = dict(known)
            if name in names and all(math.isclose(shared.get(x, y), y, rel_tol=1e-9)
                                     for x, y in points):
                known[:] = sorted({**shared, **dict(points)}.items())
                break
        else:
            groups.append(([name], points))
    return [("/".join(names), points) for names, points in groups]


def draw_spread(ax: Any, line: Series, xs: "List[float]", figure: str, spread: str) -> None:
    each = [cell.values(figure) or [math.nan] for _, cell in line.cells]
    if spread == "none" or not any(len(values) > 1 for values in each):
        return
    if spread == "minmax":
        ax.fill_between(xs, [min(v) for v in each], [max(v) for v in each], color=line.colour,
                        alpha=0.16, linewidth=0, gid=f"spread-{gid(line.label) or 'all'}")
        return
    means = [mean_of(v) for v in each]
    off = [statistics.stdev(v) if len(v) > 1 else 0.0 for v in each]
    ax.errorbar(xs, means, yerr=off, fmt="none", ecolor=line.colour, elinewidth=1, capsize=2.5,
                alpha=0.8)


def draw_line(ax: Any, line: Series, xs: "List[float]", ys: "List[float]", prefix: str = "line"
              ) -> None:
    ax.plot(xs, ys, color=line.colour, linestyle=line.dash, marker=line.marker,
            markerfacecolor="white" if line.dash != "-" else line.colour, markeredgewidth=1.1,
            gid=f"{prefix}-{gid(line.label) or 'all'}", zorder=3)
    gaps = [x for x, y in zip(xs, ys) if math.isnan(y)]
    if gaps and prefix.startswith("line"):
        ax.plot(gaps, [0.015] * len(gaps), color=line.colour, linestyle="none", marker="x",
                markersize=5.5, markeredgewidth=1.5, transform=ax.get_xaxis_transform(),
                gid=f"gap-{gid(line.label) or 'all'}", clip_on=False, zorder=4)


def lines_with(sweep: Sweep, x: str, fixed: "Dict[str, Any]", figure: str) -> "List[Series]":
    """The lines of a panel along which some run has the figure."""
    return [line for line in series_of(sweep, x, fixed)
            if any(cell.values(figure) for _, cell in line.cells)]


def head_of(sweep: Sweep, fixed: "Dict[str, Any]") -> str:
    """The title of a panel."""
    test = {} if "test" in fixed or "test" in sweep.varying() else {
        "test": sweep.single().get("test") or sweep.constants.get("test")}
    return sweep.describe({**{k: v for k, v in test.items() if v}, **fixed})


def mtu_plot(sweep: Sweep, spread: str) -> Any:
    panels = facets(sweep, ["family", "host"], "mtu")
    across = len(panels)
    fig, axes = new(1.2 + (PANEL_WIDTH + 1.1) * across, 5.9, "Throughput over MTU",
                    2, across, sharey="row", words=caption("grey: the ceiling", spread, sweep),
                    gridspec_kw={"height_ratios": [1.75, 1]})
    labels: "List[Callable[[], None]]" = []
    deviations: "List[float]" = []
    for index, (fixed, top, low) in enumerate(zip(panels, axes[0], axes[1])):
        lines = lines_with(sweep, "mtu", fixed, "THROUGHPUT")
        scale = Scale(sweep, "mtu", [v for v in sweep.values["mtu"]
                                     if any(same(v, x) for line in lines for x, _ in line.cells)])
        ends, low_ends = [], []
        for name, points in ceilings_of(sweep, lines):
            top.plot([scale.at(x) for x, _ in points], [y for _, y in points], color=MUTED,
                     linewidth=1.1, zorder=2, gid=f"ceiling-{gid(name)}-{index}")
            if points:
                ends.append((points[-1][1], f"{name} at most", MUTED))
        for line in lines:
            xs = [scale.at(x) for x, _ in line.cells]
            ys = line.means("THROUGHPUT")
            draw_spread(top, line, xs, "THROUGHPUT", spread)
            draw_line(top, line, xs, ys, f"line{index}")
            ends.append((last_of(ys), line.label, line.colour))
            off = [mean_of(sweep.share(cell)) - 100 for _, cell in line.cells]
            if not all(map(math.isnan, off)):
                draw_line(low, line, xs, off, f"deviation{index}")
                deviations += [y for y in off if not math.isnan(y)]
                low_ends.append((last_of(off), line.label, line.colour))
        top.set_title(head_of(sweep, fixed))
        scale.apply(top, show=not low_ends)
        if low_ends:
            scale.apply(low)
            low.axhline(0, color=MUTED, linewidth=1.1, zorder=2)
        else:
            low.set_visible(False)
        labels.append(lambda top=top, ends=ends: end_labels(top, ends))
    if deviations:
        axes[1][0].set_ylim(*deviation_limits(deviations))
    axes[0][0].set_ylabel(throughput_unit(sweep, list(sweep.cells.values())))
    axes[1][0].set_ylabel("from the ceiling (%)")
    return finish(fig, labels)


def deviation_limits(values: "Sequence[float]") -> "Tuple[float, float]":
    """Room for one percent at least, so that noise of a tenth does not look like a mountain."""
    low, high = min([*values, -1.0]), max([*values, 0.0])
    return low - 0.08 * (high - low), high + 0.12 * (high - low)


def finish(fig: Any, labels: "Sequence[Callable[[], None]]") -> Any:
    """Lays the figure out, then puts the words where the lines came to end, and makes room."""
    fig.draw_without_rendering()
    for place in labels:
        place()
    return fig


def along(sweep: Sweep) -> str:
    """The axis that a plot's x is of."""
    free = [name for name in sweep.varying() if name not in GROUPS]
    if not free:
        return sweep.varying()[0] if sweep.varying() else next(iter(sweep.values), "")
    return sorted(free, key=lambda n: rank(n, ROWS, len(ROWS) + rank(n, COLUMNS, -0.5)))[0]


def arrange(count: int) -> "Tuple[int, int]":
    """Rows and columns for so many panels."""
    across = min(count, MOST_PANELS_ACROSS if count != 4 else 2)
    return math.ceil(count / across), across


def panels_for(sweep: Sweep, x: str) -> "List[Dict[str, Any]]":
    """A panel for each test, family and host; but for one line each, all lines in one panel if
    their units allow."""
    panels = facets(sweep, GROUPS, x)
    if all(len(series_of(sweep, x, fixed)) == 1 for fixed in panels) and (
            len(sweep.units_of("THROUGHPUT")) == 1 and len(panels) <= 6):
        return [{}]
    return panels


def buffer_plot(sweep: Sweep, spread: str) -> Any:
    x = along(sweep)
    panels = panels_for(sweep, x)
    down, across = arrange(len(panels))
    units = {throughput_unit(sweep, [c for s in series_of(sweep, x, fixed) for _, c in s.cells])
             for fixed in panels}
    fig, axes = new(1.0 + (PANEL_WIDTH + 0.7) * across, 0.7 + 3.5 * down,
                    f"Throughput over {Scale(sweep, x, sweep.values[x]).title}", down, across,
                    sharey=len(units) == 1, words=caption("dotted: the ceiling", spread, sweep))
    labels: "List[Callable[[], None]]" = []
    for index, ax in enumerate(axes.flat):
        if index >= len(panels):
            ax.set_visible(False)
            continue
        fixed = panels[index]
        lines = lines_with(sweep, x, fixed, "THROUGHPUT")
        scale = Scale(sweep, x, sweep.values[x])
        ends = []
        for line in lines:
            xs = [scale.at(v) for v, _ in line.cells]
            ys = line.means("THROUGHPUT")
            most = ceiling_line(sweep, line)
            ax.plot([scale.at(v) for v, _ in most], [y for _, y in most], color=line.colour,
                    linewidth=0.9, alpha=0.65, linestyle=(0, (2, 2)), zorder=2,
                    gid=f"ceiling-{gid(line.label) or 'all'}-{index}")
            draw_spread(ax, line, xs, "THROUGHPUT", spread)
            draw_line(ax, line, xs, ys, f"line{index}")
            ends.append((last_of(ys), line.label, line.colour))
        if len(lines) == 1:
            ends = []
        ax.set_title(head_of(sweep, fixed))
        scale.apply(ax, show=index >= len(panels) - across)
        if index % across == 0 or len(units) > 1:
            ax.set_ylabel(throughput_unit(sweep, [c for s in lines for _, c in s.cells]))
        labels.append(lambda ax=ax, ends=ends: end_labels(ax, ends))
    return finish(fig, labels)


def cpu_plot(sweep: Sweep, spread: str) -> Any:
    """Throughput above, below it how busy either end was."""
    x = along(sweep)
    panels = facets(sweep, GROUPS, x)
    across = len(panels)
    fig, axes = new(1.0 + (PANEL_WIDTH + 0.7) * across, 5.6,
                    "Throughput and processors of both ends", 2, across, sharex="col",
                    gridspec_kw={"height_ratios": [1, 1.1]}, words=caption("", spread, sweep))
    labels: "List[Callable[[], None]]" = []
    for index, (fixed, top, low) in enumerate(zip(panels, axes[0], axes[1])):
        lines = series_of(sweep, x, fixed)
        scale = Scale(sweep, x, sweep.values[x])
        ends, low_ends = [], []
        for line in lines:
            xs = [scale.at(v) for v, _ in line.cells]
            ys = line.means("THROUGHPUT")
            draw_spread(top, line, xs, "THROUGHPUT", spread)
            draw_line(top, line, xs, ys, f"line{index}")
            ends.append((last_of(ys), line.label, line.colour))
            for end, figure, colour, dash in (("local", "LOCAL_CPU_UTIL", LOCAL, "-"),
                                              ("remote", "REMOTE_CPU_UTIL", REMOTE, DASHES[1])):
                part = line._replace(colour=colour if len(lines) == 1 else line.colour,
                                     dash="-" if len(lines) == 1 else dash,
                                     marker="o" if end == "local" else "s",
                                     label=" ".join(filter(None, [line.label, end])))
                ys = part.means(figure)
                draw_spread(low, part, xs, figure, spread)
                draw_line(low, part, xs, ys, f"cpu{index}")
                low_ends.append((last_of(ys), part.label if len(lines) > 1 else end, part.colour))
        top.set_title(head_of(sweep, fixed))
        top.set_ylim(0, None)
        low.set_ylim(0, max(100.0, low.get_ylim()[1]))
        scale.apply(top, show=False)
        scale.apply(low)
        top.tick_params(labelbottom=False)
        top.set_ylabel(throughput_unit(sweep, [c for s in lines for _, c in s.cells]))
        if index == 0:
            low.set_ylabel("processor busy (%)")
        labels.append(lambda top=top, ends=ends if len(lines) > 1 else []: end_labels(top, ends))
        labels.append(lambda low=low, ends=low_ends: end_labels(low, ends))
    return finish(fig, labels)


# --- fluctuation --------------------------------------------------------------------------

def spans(run: Run) -> "List[Tuple[float, float, float]]":
    """The interim samples as begin, end and throughput."""
    found, before = [], 0.0
    for end, value in run.interim or []:
        if end > before:
            found.append((before, float(end), float(value)))
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


def fluctuation_plot(sweep: Sweep, spread: str) -> Any:
    sampled = [cell for cell in sweep.cells.values()
               if any(len(run.interim or []) >= 4 for run in cell.good())]
    if len(sampled) <= MOST_RUNS_IN_TIME:
        return over_time(sweep, sampled)
    return over_axis(sweep, sampled)


def over_time(sweep: Sweep, cells: "Sequence[Cell]") -> Any:
    down, across = arrange(len(cells))
    fig, axes = new(1.0 + PANEL_WIDTH * across, 0.7 + 2.9 * down,
                    "Fluctuation within the runs", down, across,
                    sharey=len(sweep.units_of("THROUGHPUT")) == 1,
                    words="a line a run; dashed: the mean; red: the second in which least went "
                    "through")
    for index, ax in enumerate(axes.flat):
        if index >= len(cells):
            ax.set_visible(False)
            continue
        cell = cells[index]
        colour = TEST_COLOURS.get(str(cell.point.get("test") or sweep.constants.get("test")), BLUE)
        runs = [run for run in cell.good() if run.interim]
        values: "List[float]" = []
        for run in runs:
            pieces = spans(run)
            ax.step([pieces[0][0], *[end for _, end, _ in pieces]],
                    [pieces[0][2], *[value for _, _, value in pieces]], where="pre", color=colour,
                    linewidth=0.9, alpha=max(0.25, 0.9 / math.sqrt(len(runs))),
                    gid=f"run-{index}-{run.repetition}")
            values += [value for _, _, value in pieces]
        mean = mean_of([v for v in cell.values("THROUGHPUT")] or values)
        ax.axhline(mean, color=TEXT, linewidth=1, linestyle=(0, (4, 2)), gid=f"mean-{index}")
        worst = min(filter(None, map(worst_second, runs)), key=lambda w: w[2], default=None)
        if worst:
            ax.plot(worst[:2], [worst[2]] * 2, color=RED, linewidth=3.2, solid_capstyle="butt",
                    gid=f"worst-{index}", zorder=4)
            ax.annotate(f"worst second {worst[2]:.4g}", (sum(worst[:2]) / 2, worst[2]),
                        xytext=(0, -8), textcoords="offset points", ha="center", va="top",
                        fontsize=8, color=RED, fontweight="bold")
        ax.margins(x=0.01, y=0.2)
        ax.set_title(sweep.describe({n: cell.point[n] for n in sweep.varying() if n in cell.point})
                     or head_of(sweep, {}))
        off = statistics.pstdev(values) / mean_of(values) * 100 if mean_of(values) else 0.0
        ax.annotate(f"mean {mean:.4g}, samples {min(values):.4g} to {max(values):.4g}, "
                    f"deviation {off:.2g} %", (0, 1), xycoords="axes fraction", xytext=(1, -2),
                    textcoords="offset points", va="top", fontsize=7.5, color=MUTED)
        ax.grid(False, axis="x")
        if index >= len(cells) - across:
            ax.set_xlabel("seconds")
        if index % across == 0 or len(sweep.units_of("THROUGHPUT")) > 1:
            ax.set_ylabel(throughput_unit(sweep, [cell]))
    return fig


def over_axis(sweep: Sweep, sampled: "Sequence[Cell]") -> Any:
    """For each point the samples' range, the middle half of them, the mean and the worst second."""
    x = along(sweep)
    names = [name for name in sweep.varying() if name != x]
    panels = facets(sweep, names, x)
    down, across = arrange(len(panels))
    fig, axes = new(1.0 + (PANEL_WIDTH + 0.5) * across, 0.7 + 3.3 * down,
                    f"Fluctuation over {Scale(sweep, x, sweep.values[x]).title}", down, across,
                    sharey=len(sweep.units_of("THROUGHPUT")) == 1,
                    words="thin: least to most of the interim samples; thick: the middle half")
    labels: "List[Callable[[], None]]" = []
    for index, ax in enumerate(axes.flat):
        if index >= len(panels):
            ax.set_visible(False)
            continue
        fixed = panels[index]
        line = series_of(sweep, x, fixed)[0]
        colour = TEST_COLOURS.get(str(fixed.get("test") or sweep.single().get("test")), BLUE)
        scale = Scale(sweep, x, sweep.values[x])
        means, lows, last = [], [], []
        for value, cell in line.cells:
            runs = [run for run in cell.good() if run.interim]
            samples = [v for run in runs for _, _, v in spans(run)]
            if len(samples) < 2:
                continue
            at = scale.at(value)
            quarter, _, upper = statistics.quantiles(samples, n=4)
            ax.plot([at] * 2, [min(samples), max(samples)], color=colour, linewidth=1, alpha=0.55)
            ax.plot([at] * 2, [quarter, upper], color=colour, linewidth=5, alpha=0.4,
                    solid_capstyle="butt")
            means.append((at, mean_of(cell.values("THROUGHPUT") or samples)))
            worst = min(filter(None, map(worst_second, runs)), key=lambda w: w[2], default=None)
            if worst:
                lows.append((at, worst[2]))
            last = [(quarter + upper) / 2]
        ax.plot([a for a, _ in means], [b for _, b in means], color=colour, marker="o",
                linewidth=1.3, gid=f"mean-{index}", zorder=4)
        ax.plot([a for a, _ in lows], [b for _, b in lows], color=RED, marker="v", linewidth=0.9,
                linestyle=(0, (2, 2)), gid=f"worst-{index}", zorder=3)
        ends = [(means[-1][1], "mean", colour)] if means and last else []
        ends += [(lows[-1][1], "worst second", RED)] if lows else []
        ax.set_title(head_of(sweep, fixed))
        scale.apply(ax, show=index >= len(panels) - across)
        if index % across == 0 or len(sweep.units_of("THROUGHPUT")) > 1:
            ax.set_ylabel(throughput_unit(sweep, [c for _, c in line.cells]))
        labels.append(lambda ax=ax, ends=ends: end_labels(ax, ends))
    return finish(fig, labels)


# --- netpipe and tests --------------------------------------------------------------------

def bandwidth(size: float, cell: Cell, value: float) -> float:
    """10^6 bits a second one way: a transaction carries the message there and back."""
    if cell.unit("THROUGHPUT") == ceiling.RATE_UNIT:
        return 2 * size * 8 * value / 1e6
    return ceiling.in_unit(value, cell.unit("THROUGHPUT"))


def netpipe_plot(sweep: Sweep, spread: str) -> Any:
    """As NetPIPE draws it: bandwidth, and the time of a message one way, half a transaction."""
    x = message_axis(sweep) or "size"
    fig, axes = new(8.4, 6.4, "Latency and bandwidth over message size", 2, 1,
                    sharex=True, words=caption("grey: the ceiling", spread, sweep))
    top, low = axes[0][0], axes[1][0]
    scale = Scale(sweep, x, sweep.values[x])
    ends, low_ends = [], []
    for line in series_of(sweep, x, {}):
        cells = [(v, cell) for v, cell in line.cells
                 if not any(value <= 0 for value in cell.values("THROUGHPUT"))]
        if not any(cell.values("THROUGHPUT") for _, cell in cells):
            continue
        xs = [scale.at(v) for v, _ in cells]
        each = [[bandwidth(v, cell, value) for value in cell.values("THROUGHPUT")] or [math.nan]
                for v, cell in cells]
        most = [(v, cell, sweep.ceiling(cell)) for v, cell in cells]
        bounds = [(scale.at(v), bandwidth(v, cell, m.value / ceiling.in_unit(
            1.0, cell.unit("THROUGHPUT")))) for v, cell, m in most if m]
        top.plot([a for a, _ in bounds], [b for _, b in bounds], color=MUTED, linewidth=1.1,
                 gid=f"ceiling-{gid(line.label) or 'all'}", zorder=2)
        if spread == "minmax" and any(len(v) > 1 for v in each):
            top.fill_between(xs, [min(v) for v in each], [max(v) for v in each], color=line.colour,
                             alpha=0.16, linewidth=0)
        draw_line(top, line, xs, [mean_of(v) for v in each])
        name = line.label or head_of(sweep, {})
        ends.append((last_of(list(map(mean_of, each))), name, line.colour))
        if bounds:
            ends.append((bounds[-1][1], f"{name} at most", MUTED))
        timed = [(v, cell) for v, cell in cells if cell.unit("THROUGHPUT") == ceiling.RATE_UNIT]
        if timed:
            delays = [[1e6 / (2 * rate) for rate in cell.values("THROUGHPUT")] or [math.nan]
                      for _, cell in timed]
            xs = [scale.at(v) for v, _ in timed]
            if spread == "minmax" and any(len(v) > 1 for v in delays):
                low.fill_between(xs, [min(v) for v in delays], [max(v) for v in delays],
                                 color=line.colour, alpha=0.16, linewidth=0)
            draw_line(low, line, xs, [mean_of(v) for v in delays], "latency")
            low_ends.append((last_of(list(map(mean_of, delays))), name, line.colour))
    top.set_yscale("log")
    top.set_ylabel("Mbit/s")
    scale.apply(top, show=not low_ends)
    if low_ends:
        low.set_yscale("log")
        low.set_ylabel("one way (µs)")
        scale.apply(low)
        top.tick_params(labelbottom=False)
    else:
        low.set_visible(False)
    plain_logs(top, low)
    return finish(fig, [lambda: end_labels(top, ends), lambda: end_labels(low, low_ends)])


def plain_logs(*axes: Any) -> None:
    """Logarithmic ticks as 0.1, 1, 10, 1000 rather than as powers."""
    from matplotlib.ticker import FuncFormatter, NullFormatter
    for ax in axes:
        if ax.get_yscale() == "log":
            ax.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,.10g}".replace(",", " ")))
            ax.yaxis.set_minor_formatter(NullFormatter())


def tests_plot(sweep: Sweep, spread: str) -> Any:
    """A bar a point, with a mark where its ceiling is; a panel for each unit."""
    cells = [cell for cell in sweep.cells.values() if cell.values("THROUGHPUT")]
    units = list({cell.unit("THROUGHPUT"): 0 for cell in cells})
    counts = [sum(cell.unit("THROUGHPUT") == unit for cell in cells) for unit in units]
    fig, axes = new(8.4, 1.3 + 0.42 * len(cells) + 0.6 * len(units), "Throughput by test",
                    len(units), 1, gridspec_kw={"height_ratios": counts})
    for unit, ax in zip(units, axes[:, 0]):
        inside = [cell for cell in cells if cell.unit("THROUGHPUT") == unit]
        names = [sweep.describe({n: cell.point[n] for n in sweep.varying() if n in cell.point})
                 or head_of(sweep, {}) or "all" for cell in inside]
        ax.set_yticks(range(len(inside)))
        ax.set_yticklabels(names, color=TEXT)
        ax.invert_yaxis()
        ax.grid(False, axis="y")
        marks = 0
        for row, (cell, name) in enumerate(zip(inside, names)):
            values = cell.values("THROUGHPUT")
            mean = mean_of(values)
            test = cell.point.get("test") or sweep.constants.get("test")
            colour = TEST_COLOURS.get(str(test), BLUE)
            ax.barh(row, mean, height=0.56, color=colour, gid=f"bar-{gid(name)}")
            if len(values) > 1 and spread != "none":
                ax.plot([min(values), max(values)], [row, row], color=TEXT, linewidth=1.2)
            most = sweep.ceiling(cell)
            words = f"{mean:,.5g}".replace(",", " ")
            end = mean
            if most and (most.unit == ceiling.RATE_UNIT) == (unit == ceiling.RATE_UNIT):
                bound = most.value / ceiling.in_unit(1.0, unit)
                ax.plot([bound] * 2, [row - 0.36, row + 0.36], color=TEXT, linewidth=2,
                        gid=f"ceiling-{gid(name)}")
                words += f"  ({100 * mean / bound:.1f} % of {bound:,.5g})".replace(",", " ")
                end, marks = max(mean, bound), marks + 1
            ax.annotate(words, (end, row), xytext=(6, 0), textcoords="offset points", va="center",
                        fontsize=8, color=TEXT)
        ax.set_xlim(0, ax.get_xlim()[1] * 1.32)
        ax.set_xlabel(throughput_unit(sweep, inside)
                      + (", the mark is the ceiling" if marks else ""))
    return fig


FIGURES = {"mtu": mtu_plot, "netpipe": netpipe_plot, "fluctuation": fluctuation_plot,
           "buffer": buffer_plot, "cpu": cpu_plot, "tests": tests_plot}


def draw(sweep: Sweep, kind: str, spread: str = "minmax", form: str = "svg", dpi: int = 160,
         clear: bool = False) -> bytes:
    """A plot as the bytes of a PNG or SVG file; clear is without a background. Raises ResultsError
    when the sweep cannot be drawn so."""
    import matplotlib
    require_kind(sweep, kind)
    with matplotlib.rc_context({**STYLE, "svg.hashsalt": f"plumbline-{kind}"}):
        fig = FIGURES[kind](sweep, spread)
        out = io.BytesIO()
        fig.savefig(out, format=form, dpi=dpi, transparent=clear, bbox_inches="tight",
                    pad_inches=0.12, metadata={"Date": None} if form == "svg" else None)
        return out.getvalue()
