"""The figures of plots.py in print, by matplotlib: PNG, SVG and PDF. Call python.need("matplotlib", ...)
first: this module imports it only inside its functions.

Text, grid and paper are TEXT, MUTED, GRID and white, which a page that holds the SVG may replace.
"""

import io
import itertools
import math
from typing import Any, List, Sequence, Tuple

from netkit.plots import GRID, MUTED, TEXT, Figure, Line, Panel, Scale

STYLE = {
    "font.family": "sans-serif", "font.size": 9, "text.color": TEXT, "axes.labelcolor": MUTED,
    "axes.edgecolor": MUTED, "axes.linewidth": 0.8, "axes.spines.top": False,
    "axes.spines.right": False, "axes.titlesize": 10, "axes.titleweight": "bold",
    "axes.titlelocation": "left", "axes.titlecolor": TEXT, "axes.labelsize": 8.5, "axes.grid": True,
    "axes.axisbelow": True, "grid.color": GRID, "grid.linewidth": 0.7, "xtick.color": MUTED,
    "ytick.color": MUTED, "xtick.labelsize": 8, "ytick.labelsize": 8, "xtick.major.size": 3,
    "ytick.major.size": 0, "xtick.minor.size": 0, "ytick.minor.size": 0, "lines.linewidth": 1.6,
    "lines.markersize": 4.2, "lines.solid_capstyle": "round", "figure.facecolor": "white",
    "axes.facecolor": "none", "svg.fonttype": "none", "pdf.fonttype": 42,
    "figure.constrained_layout.use": True, "axes.unicode_minus": True,
}
MARKERS = {"circle": "o", "square": "s", "triangle-up": "^", "diamond": "D", "triangle-down": "v",
           "cross": "P", "triangle-right": ">", "triangle-left": "<", "": ""}
PANEL_WIDTH, PANEL_HEIGHT, LOW_HEIGHT = 4.7, 3.3, 2.1
MOST_ACROSS = 3
MOST_LABELS = 14            # at the right of a panel


def across(count: int) -> int:
    """How many stacks stand side by side."""
    return min(count, MOST_ACROSS if count != 4 else 2)


def panels(fig: Any, figure: Figure) -> "List[Tuple[Panel, Any, bool]]":
    """Axes for all panels, and whether a panel is the lowest of its stack. Those of one unit in the same
    place of their stacks have the same limits."""
    wide = across(len(figure.stacks))
    deep = max(map(len, figure.stacks))
    heights = [PANEL_HEIGHT if i % deep == 0 else LOW_HEIGHT for i in range(
        deep * math.ceil(len(figure.stacks) / wide))]
    if figure.stacks[0][0].rows:
        heights = [len(panel.rows) for panel in figure.stacks[0]]
    grid = fig.add_gridspec(len(heights), wide, height_ratios=heights)
    made = []
    for number, stack in enumerate(figure.stacks):
        for i, panel in enumerate(stack):
            ax = fig.add_subplot(grid[number // wide * deep + i, number % wide])
            made.append((panel, ax, i == len(stack) - 1))
            alike = [other[i] for other in figure.stacks if len(other) > i and (
                other[i].unit, other[i].log) == (panel.unit, panel.log)]
            limits = [one.limits() for one in alike]
            low, high = min(low for low, _ in limits), max(high for _, high in limits)
            if not panel.rows:
                ax.set_yscale("log" if panel.log else "linear")
                ax.set_ylim(low, high)
    return made


def draw_panel(panel: Panel, ax: Any, lowest: bool) -> None:
    ax.set_title(panel.title)
    ax.set_ylabel(panel.words)
    ax.grid(False, axis="x")
    if panel.x:
        apply_scale(panel.x, ax, lowest)
    else:
        ax.set_xlabel("seconds")
        ax.margins(x=0.01)
    for line in panel.lines:
        {"step": draw_step, "ceiling": draw_ceiling, "mean": draw_ceiling, "worst": draw_worst}.get(
            line.kind, draw_line)(panel, ax, line)
    if panel.note:
        ax.annotate(panel.note, (0, 1), xycoords="axes fraction", xytext=(1, -2), va="top",
                    textcoords="offset points", fontsize=7.5, color=MUTED)
    if panel.log:
        from matplotlib.ticker import FuncFormatter, NullFormatter
        ax.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,.10g}".replace(",", " ")))
        ax.yaxis.set_minor_formatter(NullFormatter())


def apply_scale(scale: Scale, ax: Any, lowest: bool) -> None:
    """Ticks at the values themselves, as many as have room."""
    from matplotlib.ticker import NullLocator
    if scale.log:
        ax.set_xscale("log", base=2)
    low, high = scale.limits()
    span = [math.log2(place) for place in scale.places] if scale.log else scale.places
    room = max(0.055, 0.017 * max(map(len, scale.labels))) * (max(span) - min(span) or 1.0)
    kept = thin(span, room)
    ax.set_xticks([scale.places[i] for i in kept])
    ax.set_xticklabels([scale.labels[i] for i in kept] if lowest else [])
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xlim(low, high)
    if lowest:
        ax.set_xlabel(scale.title)


def thin(places: "Sequence[float]", room: float) -> "List[int]":
    """Which of some rising places to name so that the names have room: every second, third ... one
    where they are evenly spaced, else as many as fit beside the first and the last."""
    count = len(places)
    steps = [b - a for a, b in zip(places, places[1:])]
    if steps and max(steps) - min(steps) < 1e-6 * max(steps):
        fit = [n for n in range(1, count) if n * steps[0] >= room] or [max(1, count - 1)]
        stride = next((n for n in fit if (count - 1) % n == 0 and n <= 2 * fit[0]), fit[0])
        return list(range(0, count, stride))
    kept = [0]
    for i in range(1, count - 1):
        if places[i] - places[kept[-1]] >= room and places[-1] - places[i] >= room:
            kept.append(i)
    return kept + ([count - 1] if count > 1 else [])


def draw_line(panel: Panel, ax: Any, line: Line) -> None:
    """Joined where x is a number; what lies between on and off nobody measured."""
    xs, ys = [mark.x for mark in line.marks], [mark.y for mark in line.marks]
    joined = panel.x is not None and panel.x.numeric
    spread = [mark for mark in line.marks if mark.low is not None and mark.high is not None]
    if spread and joined and all(mark.off is None for mark in spread):
        lows, highs = ([y if v is None else v for v, y in zip(values, ys)] for values in (
            [mark.low for mark in line.marks], [mark.high for mark in line.marks]))
        ax.fill_between(xs, lows, highs, color=line.colour, alpha=0.18, linewidth=0,
                        gid=f"spread-{line.name}")
    elif spread:
        # About the middle: the mean need not lie between, where the bar is that of samples.
        ax.errorbar([m.x for m in spread], [(m.low + m.high) / 2 for m in spread], fmt="none", elinewidth=1,
                    yerr=[(m.high - m.low) / 2 for m in spread], ecolor=line.colour, capsize=2.5)
    for mark in line.marks:
        if mark.box:
            ax.plot([mark.x] * 2, mark.box, color=line.colour, linewidth=5, alpha=0.4,
                    solid_capstyle="butt")
    many = len(xs) > 40 and joined
    ax.plot(xs, ys, color=line.colour, linestyle=((0, line.dash) if line.dash else "-") if joined else "",
            marker=MARKERS[line.marker], markersize=2.6 if many else None, markeredgewidth=1.1,
            markerfacecolor="white" if line.dash else line.colour, gid=line.name, zorder=3)
    gaps = [x for x, y in zip(xs, ys) if math.isnan(y)]
    if gaps and line.name.startswith("line"):
        ax.plot(gaps, [0.015] * len(gaps), color=line.colour, linestyle="none", marker="x",
                markersize=5.5, markeredgewidth=1.5, transform=ax.get_xaxis_transform(),
                gid=f"gap-{line.name}", clip_on=False, zorder=4)


def draw_ceiling(panel: Panel, ax: Any, line: Line) -> None:
    """Over the data, which often lie on it: dashed, so that they are seen between."""
    joined = len(line.marks) > 1 and (panel.x is None or panel.x.numeric)
    wide = 0.4 if panel.x and not panel.x.numeric else 0.0      # a short bar over each
    if not joined:
        ax.hlines([mark.y for mark in line.marks], [mark.x - wide for mark in line.marks],
                  [mark.x + wide for mark in line.marks], color=TEXT, linewidth=1.2, zorder=6)
    ax.plot([mark.x for mark in line.marks], [mark.y for mark in line.marks], color=TEXT, linewidth=1.0,
            linestyle=(0, (4, 3)) if joined else "", gid=line.name, zorder=6)


def draw_step(panel: Panel, ax: Any, line: Line) -> None:
    runs = sum(one.kind == "step" for one in panel.lines)
    ax.step([mark.x for mark in line.marks], [mark.y for mark in line.marks], where="pre", linewidth=0.9,
            color=line.colour, alpha=max(0.25, 0.9 / math.sqrt(runs)), gid=line.name)


def draw_worst(panel: Panel, ax: Any, line: Line) -> None:
    xs, y = [mark.x for mark in line.marks], line.marks[0].y
    ax.plot(xs, [y, y], color=line.colour, linewidth=3.2, solid_capstyle="butt", gid=line.name, zorder=7)
    ax.annotate(line.label, (sum(xs) / 2, y), xytext=(0, -8), textcoords="offset points", ha="center",
                va="top", fontsize=8, color=TEXT, fontweight="bold")


def draw_bars(panel: Panel, ax: Any) -> None:
    ax.set_yticks(range(len(panel.rows)))
    ax.set_yticklabels(panel.rows, color=TEXT)
    ax.invert_yaxis()
    ax.grid(False, axis="y")
    ends = {}
    for line in panel.lines:
        mark = line.marks[0]
        ends[mark.x] = max(ends.get(mark.x, 0.0), mark.y)
        if line.kind == "ceiling":
            ax.plot([mark.y] * 2, [mark.x - 0.36, mark.x + 0.36], color=TEXT, linewidth=2, gid=line.name,
                    zorder=6)
            continue
        ax.barh(mark.x, mark.y, height=0.56, color=line.colour, gid=line.name)
        if mark.low is not None:
            ax.plot([mark.low, mark.high], [mark.x] * 2, color=TEXT, linewidth=1.2)
        ax.annotate(line.label, (ends[mark.x], mark.x), xytext=(6, 0), textcoords="offset points",
                    va="center", fontsize=8, color=TEXT)
    ax.set_xlim(0, panel.limits()[1] * 1.3)
    ax.set_xlabel(panel.words)


def end_labels(panel: Panel, ax: Any) -> None:
    """Words at the right of the lines, each at its line's height and joined to its end by a leader, pushed
    apart where they would touch. Call it when the axes have their place."""
    named = [(line, line.there()[-1]) for line in panel.lines
             if line.label and line.there() and line.kind in ("data", "ceiling")]
    if sum(line.kind == "data" for line, _ in named) < 2 and not any(
            line.kind == "ceiling" for line, _ in named):
        named = []
    if len(named) > MOST_LABELS:    # of many, which have an order then, some
        step = (len(named) - 1) / (MOST_LABELS - 1)
        named = [named[round(i * step)] for i in range(MOST_LABELS)]
    place = ax.transData + ax.transAxes.inverted()
    named = sorted(((place.transform((mark.x, mark.y))[1], line, mark) for line, mark in named),
                   key=lambda entry: entry[0])
    heights = spread_out([height for height, _, _ in named],
                         11.5 / (ax.bbox.height * 72 / ax.figure.dpi))
    out = 1 + 16 / (ax.bbox.width * 72 / ax.figure.dpi)
    for height, (_, line, mark) in zip(heights, named):
        ax.annotate(line.label, (mark.x, mark.y), xytext=(out, height), textcoords="axes fraction",
                    va="center", ha="left", fontsize=8, color=TEXT, annotation_clip=False, arrowprops={
                        "arrowstyle": "-", "color": line.colour, "linewidth": 0.8, "shrinkA": 1,
                        "shrinkB": 3, "relpos": (0, 0.5), "gid": f"leader-{line.name}"})


def spread_out(heights: "List[float]", least: float) -> "List[float]":
    """Rising heights, moved so that they are so far apart and, where they have room, between 0 and 1."""
    made = list(heights)
    for _ in range(300):
        moved = False
        for i, j in itertools.combinations(range(len(made)), 2):
            if j == i + 1 and made[j] - made[i] < least - 1e-9:
                off = (least - (made[j] - made[i])) / 2
                made[i], made[j], moved = made[i] - off, made[j] + off, True
        if not moved:
            break
    shift = (min(0.0, 1.0 - made[-1]) or max(0.0, 0.02 - made[0])) if made else 0.0
    return [height + shift for height in made]


def draw(figure: Figure, form: str = "svg", dpi: int = 160, clear: bool = False) -> bytes:
    """A figure as the bytes of a PNG, SVG or PDF file; clear is without a background."""
    import matplotlib
    from matplotlib.figure import Figure as Paper
    with matplotlib.rc_context({**STYLE, "svg.hashsalt": f"plumbline-{figure.kind}"}):
        wide = across(len(figure.stacks))
        down = math.ceil(len(figure.stacks) / wide)
        tall = max(map(len, figure.stacks))
        size = (0.8 + (PANEL_WIDTH + 1.1) * wide,
                0.7 + (PANEL_HEIGHT + LOW_HEIGHT * (tall - 1) + 0.3) * down)
        if figure.stacks[0][0].rows:
            size = (8.4, 1.3 + sum(0.42 * len(panel.rows) + 0.6 for panel in figure.stacks[0]))
        paper = Paper(figsize=size)
        paper.set_constrained_layout_pads(w_pad=0.08, h_pad=0.06, hspace=0.04, wspace=0.04)
        paper.suptitle(figure.title, x=0.012, ha="left", fontsize=12, fontweight="bold", color=TEXT)
        if figure.words:
            paper.supxlabel(figure.words, x=0.012, ha="left", fontsize=8, color=MUTED)
        made = panels(paper, figure)
        for panel, ax, lowest in made:
            draw_bars(panel, ax) if panel.rows else draw_panel(panel, ax, lowest)
        paper.draw_without_rendering()      # now the axes have their places
        for panel, ax, _ in made:
            if not panel.rows:
                end_labels(panel, ax)
        out = io.BytesIO()
        paper.savefig(out, format=form, dpi=dpi, transparent=clear, bbox_inches="tight", pad_inches=0.12,
                      metadata={"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form))
        return out.getvalue()
