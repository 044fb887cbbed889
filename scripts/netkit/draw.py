"""Draws the figures of plots.py, and meshes, as PNG, SVG and PDF. Call python.need("matplotlib", ...) first.

A figure has the requested width, and its text the size of print. Text that does not fit beside the lines goes below.
In SVG, marks have tooltips, and a page that embeds it may replace the colours TEXT, MUTED, GRID and white."""

import html
import io
import math
import re
import statistics
import textwrap
import warnings
from dataclasses import replace
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Set, Tuple

from netkit.engines import ROWS
from netkit.mesh import Found, Pair
from netkit.plots import GRID, MUTED, TEXT, Figure, Line, Mark, Panel, Scale, plain
from netkit.units import printable

STYLE = {
    "font.family": "sans-serif", "font.size": 9, "text.color": TEXT, "axes.labelcolor": MUTED,
    "axes.edgecolor": MUTED, "axes.linewidth": 0.8, "axes.spines.top": False,
    "axes.spines.right": False, "axes.titlesize": 10, "axes.titleweight": "bold",
    "axes.titlelocation": "left", "axes.titlecolor": TEXT, "axes.labelsize": 8.5, "axes.grid": True,
    "axes.axisbelow": True, "grid.color": GRID, "grid.linewidth": 0.7, "xtick.color": MUTED,
    "ytick.color": MUTED, "xtick.labelsize": 8, "ytick.labelsize": 8, "xtick.major.size": 3,
    "ytick.major.size": 0, "xtick.minor.size": 3, "ytick.minor.size": 0, "lines.linewidth": 1.6,
    "lines.markersize": 4.2, "lines.solid_capstyle": "round", "figure.facecolor": "white",
    "axes.facecolor": "none", "svg.fonttype": "none", "pdf.fonttype": 42,
    "figure.constrained_layout.use": True, "axes.unicode_minus": True, "text.parse_math": False,
}
MARKERS = {"circle": "o", "square": "s", "triangle-up": "^", "diamond": "D", "triangle-down": "v",
           "cross": "P", "triangle-right": ">", "triangle-left": "<", "": ""}
WIDTH = 18.0                # cm, the text width of a page
SLOT = 7.5                  # cm that a stack needs next to another one
CM, POINT = 1 / 2.54, 1 / 72        # in inches
LETTER, PROSE = 0.62, 0.55  # of the font size: the maximum width of a letter, and the average in longer texts
SMALL = 8.0                 # font size of labels
ROW = 11.5                  # points between the baselines of labels
FAINT = 0.6                 # opacity of the parts of a bar, which have text on them
LEADER = 14.0               # points between axes and labels
NARROW = 4.0                # points: hosts of a mesh that would be closer than this have no names
SPAN = 2.0                  # the colour scale of a mesh ends at this factor from the median

Drawn = List[Tuple[Panel, Any, bool]]       # panel, axes, whether it is the lowest of its stack


def style(kind: str) -> Any:
    """The matplotlib style of a figure. Before 3.6, matplotlib takes text between two $ for mathematics."""
    import matplotlib
    warnings.filterwarnings("ignore", "Glyph .* missing from")     # with SVG the viewer has fonts of its own, and in a PNG it is visible
    return matplotlib.rc_context({**{name: value for name, value in STYLE.items() if name in matplotlib.rcParams},
                                  "svg.hashsalt": f"plumbline-{kind}"})


def wide(text: str) -> float:
    """The width of a label in points, or slightly less."""
    return max(map(len, text.split("\n"))) * LETTER * SMALL


def wrap(text: str, points: float, size: float = SMALL) -> str:
    return textwrap.fill(printable(text, "\n"), max(12, int(points / (PROSE * size))), break_long_words=False,
                         break_on_hyphens=False)


def across(count: int, width: float) -> int:
    """How many stacks fit side by side into this width in cm."""
    return max(1, min(count, int(width / SLOT)))


def sheets(figure: Figure) -> "List[Figure]":
    """Split a figure into rows, of which two or more fit on a page."""
    count = across(len(figure.stacks), WIDTH)
    return [replace(figure, stacks=figure.stacks[at:at + count], every=figure.stacks,
                    title="" if at else figure.title,
                    words=figure.words if at + count >= len(figure.stacks) else "")
            for at in range(0, len(figure.stacks), count)]


def labelled(panel: Panel) -> "List[Line]":
    """The lines that need a label: if there are several, or a ceiling; and the parts of a bar."""
    named = [line for line in panel.lines if line.label and line.there() and line.kind in ("data", "ceiling", "part")]
    return named if len(named) > 1 or any(line.kind == "ceiling" for line in named) else []


def heights(figure: Figure, slot: float, direct: bool) -> "List[float]":
    """The heights of a stack's panels in inches. Labels beside the lines must fit below each other."""
    if figure.stacks[0][0].rows:
        return [0.3 * len(panel.rows) + 0.1 for panel in figure.stacks[0]]
    main = min(3.0, max(1.8, 0.5 * slot))
    made = []
    for place in range(max(map(len, figure.stacks))):
        labels = max(len(labelled(stack[place])) for stack in figure.stacks if len(stack) > place)
        made.append(max(0.65 * main if place else main, labels * ROW * POINT * direct))
    return made


def panels(fig: Any, figure: Figure, side: int, tall: "List[float]") -> Drawn:
    """Create axes for all panels. Panels with the same unit at the same place in their stacks share limits."""
    down = math.ceil(len(figure.stacks) / side)
    grid = fig.add_gridspec(len(tall) * down + 1, side, height_ratios=[*tall * down, 0.01])
    made = []
    for number, stack in enumerate(figure.stacks):
        for i, panel in enumerate(stack):
            ax = fig.add_subplot(grid[number // side * len(tall) + i, number % side])
            made.append((panel, ax, i == len(stack) - 1))
            alike = [other[i] for other in figure.every or figure.stacks if len(other) > i and (
                other[i].unit, other[i].log) == (panel.unit, panel.log)]
            limits = [one.limits() for one in ([panel] if figure.kind == "history" else alike)]
            if not panel.rows:
                ax.set_yscale("log" if panel.log else "linear")
                ax.set_ylim(min(low for low, _ in limits), max(high for _, high in limits))
    return made


def stroke(line: Line) -> Any:
    return (0, line.dash) if line.dash else "-"


def legend(fig: Any, made: Drawn, lines: "Sequence[Line]", labels: "List[str]", points: float) -> None:
    """A legend below all panels, in as many columns as fit."""
    from matplotlib.lines import Line2D
    ax = fig.add_subplot(made[0][1].get_gridspec()[-1, :])
    ax.axis("off")
    ax.legend([Line2D([], [], color=line.colour, linestyle="" if line.kind == "part" else stroke(line), marker=MARKERS[line.marker],
                      markeredgewidth=1.1, markerfacecolor="white" if line.dash else line.colour, alpha=FAINT if line.kind == "part" else 1)
               for line in lines], labels, loc="upper left", bbox_to_anchor=(0, 1), borderaxespad=0,
              frameon=False, fontsize=SMALL, handlelength=3, labelspacing=0.35, columnspacing=1.5,
              ncol=columns_of(labels, points))


def columns_of(labels: "Sequence[str]", points: float) -> int:
    return max(1, min(len(labels), int(points / (max(map(wide, labels)) + 44))))


def draw_panel(panel: Panel, ax: Any, lowest: bool, points: float) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter
    note = wrap(panel.note, points)
    ax.annotate(note, (0, 1), xycoords="axes fraction", xytext=(0, 3), va="bottom", textcoords="offset points",
                fontsize=SMALL, color=MUTED)
    ax.set_title(wrap(panel.title, points, 10), pad=5 + (ROW * (note.count("\n") + 1) if note else 0))
    ax.set_ylabel(printable(panel.words))
    ax.grid(False, axis="x")
    if panel.x:
        if panel.x.log:
            ax.set_xscale("log", base=2)
        ax.set_xticks([])
        ax.set_xticks(panel.x.places, minor=True)   # one per value; name_ticks() labels them
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.set_xlim(*panel.x.limits())
        if lowest:
            ax.set_xlabel(printable(panel.x.title))
            name_ticks(panel.x, ax)
    else:
        ax.set_xlabel("Time (s)" if lowest else "")
        ax.margins(x=0.01)
    for line in panel.lines:
        {"step": draw_step, "ceiling": draw_ceiling, "mean": draw_ceiling, "worst": draw_worst,
         "change": draw_change}.get(line.kind, draw_line)(panel, ax, line)
    if panel.log:       # several ticks, even if the axis spans only part of a decade
        low, high = ax.get_ylim()
        ax.yaxis.set_major_locator(MaxNLocator(6) if high < 20 * low else LogLocator(subs=(1, 2, 5) if high < 2000 * low else (1,)))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: plain(value, 10)))
    ax.yaxis.set_minor_formatter(NullFormatter())


def name_ticks(scale: Scale, ax: Any) -> None:
    """Label as many numbers as fit, MTUs in two rows; all values that are not numbers, rotated if necessary."""
    at = [72 / ax.figure.dpi * ax.transData.transform((place, 1))[0] for place in scale.places]
    need = [wide(label) + 6 for label in scale.labels]
    kept = thin(at, need, scale.first)
    if on_end(scale, ax.bbox.width * 72 / ax.figure.dpi):
        ax.tick_params(axis="x", rotation=90)
        kept = list(range(len(at)))
    rest = [i for i in range(len(at)) if i not in kept and scale.first]
    second = thin([at[i] for i in rest], [need[i] for i in rest], [rest.index(i) for i in scale.first if i in rest])
    names = {**{i: scale.labels[i] for i in kept}, **{rest[i]: "\n" + scale.labels[rest[i]] for i in second}}
    ax.set_xticks([scale.places[i] for i in names], list(names.values()))


def on_end(scale: "Optional[Scale]", points: float) -> bool:
    """Whether labels that are not numbers have to be rotated to fit."""
    return scale is not None and not scale.numeric and sum(wide(label) + 6 for label in scale.labels) > points


def thin(at: "Sequence[float]", need: "Sequence[float]", first: "Sequence[int]") -> "List[int]":
    """Which ascending positions to label without touching: every nth if even; else ends, `first`, and what fits."""
    count, kept = len(at), []
    steps = [b - a for a, b in zip(at, at[1:])]
    fit = [n for n in range(1, count) if n * steps[0] >= max(need)]
    if fit and max(steps) - min(steps) < 1e-6 * max(steps):
        stride = next((n for n in fit if (count - 1) % n == 0 and n <= 2 * fit[0]), fit[0])
        return list(range(0, count, stride))
    for i in dict.fromkeys([*range(count)[:1], *range(count)[-1:], *first, *range(count)]):
        if all(abs(at[i] - at[other]) >= (need[i] + need[other]) / 2 for other in kept):
            kept.append(i)
    return sorted(kept)


def draw_line(panel: Panel, ax: Any, line: Line) -> None:
    """Points are joined only if x is numeric: there is nothing between on and off."""
    xs, ys = [mark.x for mark in line.marks], [mark.y for mark in line.marks]
    joined = line.kind != "points" and (panel.x is None or panel.x.numeric)
    spread = [mark for mark in line.marks if mark.low is not None and mark.high is not None]
    if spread and joined and all(mark.off is None for mark in spread):
        lows, highs = ([y if v is None else v for v, y in zip(values, ys)] for values in (
            [mark.low for mark in line.marks], [mark.high for mark in line.marks]))
        ax.fill_between(xs, lows, highs, color=line.colour, alpha=0.18, linewidth=0,
                        gid=f"spread-{line.name}")
    elif spread:
        # Around the centre, as the mean may lie outside a bar of samples.
        ax.errorbar([m.x for m in spread], [(m.low + m.high) / 2 for m in spread], fmt="none", elinewidth=1,
                    yerr=[(m.high - m.low) / 2 for m in spread], ecolor=line.colour, capsize=2.5)
    for mark in line.marks:
        if mark.box:
            ax.plot([mark.x] * 2, mark.box, color=line.colour, linewidth=5, alpha=0.4,
                    solid_capstyle="butt")
    many = len(xs) > 40 and joined
    ax.plot(xs, ys, color=line.colour, linestyle=stroke(line) if joined else "", marker=MARKERS[line.marker],
            markersize=2.6 if many else None, markeredgewidth=1.1,
            markerfacecolor="white" if line.dash else line.colour, gid=line.name, zorder=3)
    doubted = [mark for mark in line.there() if mark.doubt]
    if doubted:
        ax.plot([mark.x for mark in doubted], [mark.y for mark in doubted], color=MUTED, linestyle="none", marker="o", markersize=8,
                markerfacecolor="none", markeredgewidth=0.8, gid=f"doubt-{line.name}", zorder=4)
    gaps = [x for x, y in zip(xs, ys) if math.isnan(y)]
    if gaps and line.name.startswith("line"):
        ax.plot(gaps, [0.015] * len(gaps), color=line.colour, linestyle="none", marker="x",
                markersize=5.5, markeredgewidth=1.5, transform=ax.get_xaxis_transform(),
                gid=f"gap-{line.name}", clip_on=False, zorder=4)


def draw_ceiling(panel: Panel, ax: Any, line: Line) -> None:
    """Drawn over the data, which often coincides with it: dashed, so that the data shows through."""
    joined = len(line.marks) > 1 and (panel.x is None or panel.x.numeric)
    reach = 0.4 if panel.x and not panel.x.numeric else 0.0     # a short bar over each value
    if not joined:
        ax.hlines([mark.y for mark in line.marks], [mark.x - reach for mark in line.marks],
                  [mark.x + reach for mark in line.marks], color=line.colour, linewidth=1.2, zorder=6)
    ax.plot([mark.x for mark in line.marks], [mark.y for mark in line.marks], color=line.colour, linewidth=1.0,
            linestyle=stroke(line) if joined else "", gid=line.name, zorder=6)


def draw_step(panel: Panel, ax: Any, line: Line) -> None:
    runs = sum(one.kind == "step" for one in panel.lines)
    ax.step([mark.x for mark in line.marks], [mark.y for mark in line.marks], where="pre", linewidth=0.9,
            color=line.colour, alpha=max(0.25, 0.9 / math.sqrt(runs)), gid=line.name)


def draw_worst(panel: Panel, ax: Any, line: Line) -> None:
    xs, y = [mark.x for mark in line.marks], line.marks[0].y
    ax.plot(xs, [y, y], color=line.colour, linewidth=3.2, solid_capstyle="butt", gid=line.name, zorder=7)
    low, high = ax.get_ylim()
    above = y - low < 0.15 * (high - low)
    share = (sum(xs) / 2 - ax.get_xlim()[0]) / (ax.get_xlim()[1] - ax.get_xlim()[0])    # align the text so that it stays within the panel
    ax.annotate(line.label, (sum(xs) / 2, y), xytext=(0, 6 if above else -6), textcoords="offset points",
                ha="left" if share < 0.25 else "right" if share > 0.75 else "center", va="bottom" if above else "top", fontsize=SMALL, color=TEXT, fontweight="bold")


def draw_change(panel: Panel, ax: Any, line: Line) -> None:
    """The size of a change, as text that fits the side with more room, at the bottom if the points are at the top."""
    x, to_axes = line.marks[0].x, ax.transScale + ax.transLimits
    share = to_axes.transform((x, ax.get_ylim()[1]))[0]
    left = share > 0.5
    heights = [to_axes.transform((mark.x, mark.y))[1] for one in panel.lines if one is not line
               for mark in one.marks if math.isfinite(mark.y) and (mark.x < x) == left]
    below = sum(height > 0.5 for height in heights) > len(heights) / 2
    room = 0.85 * max(share, 1 - share) * ax.bbox.width / ax.figure.dpi * 72
    label = "\n".join(wrap(part, room) for part in line.label.split("\n"))
    ax.axvline(x, color=line.colour, linestyle=stroke(line), linewidth=1.0, gid=line.name)
    ax.annotate(label, (x, 0.0 if below else 1.0), xycoords=("data", "axes fraction"), xytext=(-3 if left else 3, 3 if below else -2),
                textcoords="offset points", ha="right" if left else "left", va="bottom" if below else "top", fontsize=SMALL, color=TEXT)


def draw_bars(panel: Panel, ax: Any, _: bool, points: float) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator
    ax.xaxis.set_major_locator(MaxNLocator(4 if points > 300 else 1))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: plain(value, 10)))
    ax.set_yticks(range(len(panel.rows)), [wrap(row, 0.35 * points) for row in panel.rows], color=TEXT)
    ax.invert_yaxis()
    ax.grid(False, axis="y")
    ends = {}
    for line in panel.lines:
        mark = line.marks[0]
        ends[mark.x] = max(ends.get(mark.x, 0.0), mark.y, mark.high or 0.0)
        if line.kind == "ceiling":
            ax.plot([mark.y] * 2, [mark.x - 0.36, mark.x + 0.36], color=TEXT, linewidth=2, gid=line.name,
                    zorder=6)
            continue
        if line.kind == "part":
            ax.barh(mark.x, mark.y - mark.low, left=mark.low, height=0.56, color=line.colour, gid=line.name,
                    edgecolor="white", linewidth=0.8, alpha=FAINT)
            words = line.label.replace(" ", "\n")
            if wide(words) < (mark.y - mark.low) / panel.limits()[1] * points:
                ax.annotate(words, ((mark.low + mark.y) / 2, mark.x), va="center", ha="center", fontsize=SMALL, color=TEXT)
            continue
        ax.barh(mark.x, mark.y, height=0.56, color=line.colour, gid=line.name)
        if mark.low is not None:
            ax.plot([mark.low, mark.high], [mark.x] * 2, color=TEXT, linewidth=1.2)
        ax.annotate(line.label if points > 300 else line.label.replace("  ", "\n"), (ends[mark.x], mark.x),
                    xytext=(6, 0), textcoords="offset points", va="center", fontsize=SMALL, color=TEXT)
    ax.set_xlim(*panel.limits())
    ax.set_xlabel(printable(panel.words))


def end_labels(panel: Panel, ax: Any) -> "List[Tuple[Line, Mark, Any]]":
    """Labels to the right of the lines, each with a leader from the end of its line."""
    from matplotlib.transforms import ScaledTranslation
    beside = ax.transAxes + ScaledTranslation(LEADER * POINT, 0, ax.figure.dpi_scale_trans)
    return [(line, line.there()[-1], ax.annotate(
        line.label, (line.there()[-1].x, line.there()[-1].y), xytext=(1, 0.5), textcoords=beside, va="center",
        ha="left", fontsize=SMALL, color=TEXT, annotation_clip=False, arrowprops={
            "arrowstyle": "-", "color": line.colour, "linewidth": 0.8, "shrinkA": 3, "shrinkB": 3,
            "relpos": (0, 0.5), "patchA": None, "gid": f"leader-{line.name}"})) for line in labelled(panel)]


def place_labels(labels: "List[Tuple[Line, Mark, Any]]", ax: Any) -> None:
    """Place the labels at their lines' heights, apart from each other. The axes must have their final position."""
    place = ax.transData + ax.transAxes.inverted()
    found = sorted(((min(max(0.0, place.transform((mark.x, mark.y))[1]), 1.0), words) for _, mark, words in labels),
                   key=lambda entry: entry[0])
    least, next_free = ROW / (ax.bbox.height * 72 / ax.figure.dpi), 0.02
    for above, (height, words) in zip(reversed(range(len(found))), found):
        height = max(height, next_free)
        next_free = height + least
        words.set_position((1, min(height, 1.0 - above * least)))     # between 0 and 1 if they fit


def titles(made: Drawn, tall: float) -> "Iterator[str]":
    """SVG elements over the marks of a drawn figure that carry tooltips; `tall` is its height in points."""
    for panel, ax, _ in made:
        points = 72 / ax.figure.dpi
        left, low, right, high = ax.bbox.padded(2).extents * points
        for line in sorted(panel.lines, key=lambda line: line.kind != "ceiling"):
            before = -math.inf
            for mark in line.marks:
                at = ax.get_ylim()[0] if math.isnan(mark.y) else mark.y
                x, y = ax.transData.transform((at, mark.x) if panel.rows else (mark.x, at)) * points
                y += 3 if math.isnan(mark.y) else 0
                near = line.kind == "step" and x - before < 3
                if not mark.words or near or not (left <= x <= right and low <= y <= high):
                    continue
                before, begin = x, left if line.kind == "bar" else x - 6
                yield (f'<rect class="tip" x="{begin:.2f}" y="{tall - y - 6:.2f}" width="{x + 6 - begin:.2f}" '
                       f'height="12" rx="6" fill="{MUTED}" fill-opacity="0"><title>'
                       f'{html.escape(printable(mark.words, chr(10)), quote=False)}</title></rect>')


def saved(paper: Any, form: str, clear: bool = False) -> bytes:
    """Save reproducibly: the same figure gives the same bytes."""
    out = io.BytesIO()
    paper.savefig(out, format=form, dpi=160, transparent=clear, metadata={"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form))
    return out.getvalue()


def draw(figure: Figure, form: str = "svg", width: float = WIDTH, clear: bool = False) -> bytes:
    """Draw a figure as PNG, SVG or PDF, with a width in cm; `clear` makes the background transparent."""
    from matplotlib.figure import Figure as Paper
    side = across(len(figure.stacks), width)
    slot = width * CM / side
    every = [line for stack in figure.stacks for panel in stack for line in labelled(panel)]
    direct = bool(every) and not figure.stacks[0][0].rows and (
        LEADER + max(wide(line.label) for line in every)) * POINT <= 0.33 * slot
    once = {(line.label, line.colour, line.marker, tuple(line.dash)): line for line in every}   # of several panels
    named = [] if direct else list(once.values())
    points = width * CM / POINT - 12
    title, words = wrap(figure.title, points, 12), wrap(figure.words, points)
    tall = heights(figure, slot, direct)
    rows = math.ceil(len(figure.stacks) / side)
    ends = [max(map(wide, stack[-1].x.labels)) * POINT for stack in figure.stacks
            if stack[-1].x and on_end(stack[-1].x, 0.5 * slot / POINT)]
    room = points - 44          # without the axis labels on the left
    keys = [wrap(line.label, room - 40) for line in named]
    lines = sum(key.count("\n") + 1 for key in keys) / columns_of(keys, room) if keys else 0
    with style(figure.kind):
        high = rows * (sum(tall) + 0.25 * len(tall) + 0.45 + max(ends, default=0.0)) + POINT * (
            17 * (title.count("\n") + 1) + ROW * (words.count("\n") + 2 + math.ceil(lines)))
        paper = Paper(figsize=(width * CM, high))
        paper.set_constrained_layout_pads(w_pad=0.06, h_pad=0.06, hspace=0.03, wspace=0.03)
        if title:
            paper.suptitle(title, x=0.012, ha="left", fontsize=12, fontweight="bold", color=TEXT)
        if words:
            paper.supxlabel(words, x=0.012, ha="left", fontsize=SMALL, color=MUTED)
        made = panels(paper, figure, side, tall)
        for panel, ax, lowest in made:
            (draw_bars if panel.rows else draw_panel)(panel, ax, lowest, slot / POINT - 50)
        if named:
            legend(paper, made, named, keys, room)
        beside = [(end_labels(panel, ax), ax) for panel, ax, _ in made if direct]
        engine = getattr(paper, "get_layout_engine", None)     # before 3.6, matplotlib has to draw to lay out the axes
        engine().execute(paper) if engine else paper.draw_without_rendering()
        for panel, ax, lowest in made:
            if panel.x and lowest:
                name_ticks(panel.x, ax)
        for found, ax in beside:
            place_labels(found, ax)
        drawn = saved(paper, form, clear)
        if form != "svg":
            return drawn
        tips = "\n".join(titles(made, paper.get_figheight() / POINT))
        return drawn.replace(b"</svg>", f'<g id="tips">\n{tips}\n</g>\n</svg>'.encode())


def draw_pairs(ax: Any, figures: "Dict[Pair, float]", dead: "Iterable[Pair]", groups: "Dict[str, Set[str]]", unit: str, colours: str, size: float) -> None:
    import numpy as np
    from matplotlib.colors import LogNorm
    keys = {name: [group for group, hosts in groups.items() if name in hosts] for pair in (*figures, *dead) for name in pair}
    names = sorted(keys, key=lambda name: keys[name])
    cells = np.full([len(names)] * 2, np.nan)
    for (client, server), value in figures.items():
        cells[names.index(client), names.index(server)] = value
    middle = statistics.median(figures.values() or [1.0])
    image = ax.imshow(cells, cmap=colours, norm=LogNorm(middle / SPAN, middle * SPAN), interpolation="nearest")
    ax.grid(False)
    ax.set_facecolor("#dddddd")
    ax.set_xlabel("server" + " (\u00d7: nothing)" * bool(dead))
    ax.set_ylabel("client")
    ax.figure.colorbar(image, ax=ax, shrink=0.7, label=unit, extend="both", ticks=[middle / SPAN, middle, middle * SPAN],
                       format=lambda value, _: plain(value, 4)).minorticks_off()
    shown = [printable(re.sub(rf"^({'|'.join(ROWS)}):", "", name)) for name in names] if size / len(names) > NARROW else []
    ax.set_xticks(range(len(shown)), shown, rotation=90)
    ax.set_yticks(range(len(shown)), shown)
    letters = min(8.0, 0.8 * size / len(names))
    ax.tick_params(length=0, labelsize=letters)
    for client, server in dead:
        ax.text(names.index(server), names.index(client), "\u00d7", ha="center", va="center", fontsize=letters)
    for number in range(1, len(names)):
        if keys[names[number]] != keys[names[number - 1]]:
            ax.axhline(number - 0.5, color="black", linewidth=0.8)
            ax.axvline(number - 0.5, color="black", linewidth=0.8)


def draw_mesh(found: Found, groups: "Dict[str, Set[str]]", figure: str, less_is_better: bool, form: str, width: float) -> bytes:
    """A mesh as heat maps, with the hosts sorted by group."""
    from matplotlib.figure import Figure as Paper
    made = {name: (figures, found.dead.get(name, ())) for name, figures in found.meshes.items() if figures or name in found.dead}
    with style("mesh"):
        paper = Paper(figsize=(width * CM, 0.85 * width * CM * max(1, len(made))), layout="constrained")
        for number, (name, pairs) in enumerate(made.items(), 1):
            ax = paper.add_subplot(len(made), 1, number, title=printable(name))
            draw_pairs(ax, *pairs, groups, figure, "RdBu_r" if less_is_better else "RdBu", 0.7 * width * CM * 72)
        return saved(paper, form)
