"""Two-way tables of a sweep: what stands where, and as text, CSV, Markdown or LaTeX."""

import csv
import io
import itertools
import statistics
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from netkit import ceiling
from netkit.results import (Results, ResultsError, Run, holds, is_number, matches, point_key,
                            show_value)

# What an axis is best shown as, the best first; an axis of another name stands in between.
GROUPS = ("test", "protocol", "family", "host")
ROWS = ("buffer", "local_buffer", "remote_buffer", "mtu", "mss", "interval", "cpu")
COLUMNS = ("size", "request", "response", "nodelay", "family", "flows", "threads", "processes", "test",
           "protocol")

STATISTICS: "Dict[str, Callable[[Sequence[float]], float]]" = {
    "mean": statistics.fmean, "median": statistics.median, "min": min, "max": max,
    "stddev": lambda values: statistics.stdev(values) if len(values) > 1 else 0.0}

MOST_MISSING = 6    # points not measured that are listed one by one

PERCENT = "% of the ceiling"
UNITS = {"LOCAL_CPU_UTIL": "%", "REMOTE_CPU_UTIL": "%", "LOCAL_SD": "us/KB", "REMOTE_SD": "us/KB",
         "MEAN_LATENCY": "us", "MIN_LATENCY": "us", "MAX_LATENCY": "us", "P50_LATENCY": "us",
         "P90_LATENCY": "us", "P99_LATENCY": "us", "STDDEV_LATENCY": "us", "ELAPSED_TIME": "s"}


@dataclass
class Cell:
    """All runs of one point."""
    point: "Dict[str, Any]"
    runs: "List[Run]" = field(default_factory=list)

    def good(self) -> "List[Run]":
        return [run for run in self.runs if run.ok]

    def values(self, figure: str) -> "List[float]":
        found = (run.figure(figure) for run in self.good())
        return [value for value in found if value is not None]

    def failures(self) -> "List[str]":
        return [run.reason() for run in self.runs if not run.ok and not run.excluded]

    def tried(self) -> "List[Run]":
        return [run for run in self.runs if not run.excluded]

    def unit(self, figure: str) -> str:
        if figure not in THROUGHPUTS:
            return UNITS.get(figure, "")
        return next((str(run.result["THROUGHPUT_UNITS"]) for run in self.good()
                     if run.result.get("THROUGHPUT_UNITS")), "")


UNLIKE = ("test", "protocol", "engine")   # axes along which an average means nothing

THROUGHPUTS = ("THROUGHPUT", "LOCAL_SEND_THROUGHPUT", "LOCAL_RECV_THROUGHPUT",
               "REMOTE_SEND_THROUGHPUT", "REMOTE_RECV_THROUGHPUT", "TRANSACTION_RATE",
               "MIN_FLOW_THROUGHPUT", "MAX_FLOW_THROUGHPUT")


class Sweep:
    """Results by their points. constants are those of the header and, over them, those given."""

    def __init__(self, results: Results, constants: "Optional[Dict[str, Any]]" = None) -> None:
        self.results = results
        self.constants = {**results.header.constants, **(constants or {})}
        self.values: "Dict[str, List[Any]]" = {a.name: list(a.values) for a in results.header.axes}
        self.units = {a.name: a.unit for a in results.header.axes}
        self.cells: "Dict[str, Cell]" = {}
        for run in results.runs:
            for name, value in run.point.items():
                known = self.values.setdefault(name, [])
                if not holds(known, value):
                    known.append(value)
            self.cells.setdefault(point_key(run.point), Cell(run.point)).runs.append(run)

    def varying(self) -> "List[str]":
        """The axes that tell points apart."""
        return [name for name, values in self.values.items() if len(values) > 1]

    def single(self) -> "Dict[str, Any]":
        return {name: values[0] for name, values in self.values.items() if len(values) == 1}

    def points(self) -> "Iterator[Dict[str, Any]]":
        """Those of the plan, in its order, then others that were measured."""
        names = list(self.values)
        for choice in itertools.product(*self.values.values()):
            yield dict(zip(names, choice))

    def planned(self, point: "Dict[str, Any]") -> Optional[bool]:
        """Whether the plan has a point with these values; None where the file does not tell."""
        skips = self.results.header.skips
        if skips is None:
            return None
        rest = [name for name in self.values if name not in point]
        return any(not any(matches({**self.constants, **point, **dict(zip(rest, choice))}, skip)
                           for skip in skips)
                   for choice in itertools.product(*(self.values[name] for name in rest)))

    def cell(self, point: "Dict[str, Any]") -> Optional[Cell]:
        return self.cells.get(point_key(point))

    def ceiling(self, cell: Cell) -> Optional[ceiling.Ceiling]:
        good = cell.good()
        return ceiling.of_point(cell.point, self.constants, good[0].result if good else None)

    def share(self, cell: Cell, figure: str = "THROUGHPUT") -> "List[float]":
        """The figure of each run as percent of the point's ceiling; none where it has none."""
        most, unit = self.ceiling(cell), cell.unit(figure)
        if most is None or (unit == ceiling.RATE_UNIT) != (most.unit == ceiling.RATE_UNIT):
            return []
        return [100 * ceiling.in_unit(value, unit) / most.value for value in cell.values(figure)]

    def figures(self) -> "List[str]":
        """Which figures the runs have as numbers."""
        found = {name: 0 for run in self.results.runs if run.ok for name in run.result
                 if run.figure(name) is not None}
        return list(found)

    def units_of(self, figure: str) -> "List[str]":
        return list({cell.unit(figure): 0 for cell in self.cells.values() if cell.good()})

    def label(self, name: str, value: Any) -> str:
        """A value of an axis as a heading."""
        if self.units.get(name) == "bytes" and name.endswith("buffer") and is_number(value):
            numbers = [one for one in self.values[name] if is_number(one)]
            if all(one % 1024 == 0 for one in numbers):
                return f"{value // 1024} KiB"
        return show_value(value)

    def describe(self, point: "Dict[str, Any]", names: "Optional[Sequence[str]]" = None) -> str:
        """A point in words: the test by its name alone, the rest as NAME VALUE."""
        words = []
        for name, value in point.items():
            if names is not None and name not in names:
                continue
            text = self.label(name, value)
            if name == "test":
                words.append(text)
            elif name == "family" and value in (4, 6):
                words.append(f"IPv{value}")
            else:
                words.append(f"{name} {text}")
        return ", ".join(words)


# --- which axis goes where ----------------------------------------------------------------

@dataclass
class Layout:
    rows: str
    columns: Optional[str]
    groups: "List[str]"


def rank(name: str, order: Sequence[str], otherwise: float) -> float:
    return float(order.index(name)) if name in order else otherwise


def choose(sweep: Sweep, rows: Optional[str] = None, columns: Optional[str] = None,
           groups: "Optional[List[str]]" = None, mixed: bool = False) -> Layout:
    """Which axis the rows, the columns and the tables are of. mixed says that the tests' units
    differ, so that tests cannot share a table. Raises ResultsError for an axis that is none."""
    for option, name in [("--rows", rows), ("--columns", columns),
                         *[("--group", name) for name in groups or []]]:
        if name and name not in sweep.values:
            raise ResultsError(f"{option} {name}: no such axis (try "
                               f"{', '.join(sweep.values) or 'a sweep with axes'})")
    named = [name for name in [rows, columns, *(groups or [])] if name]
    twice = next((name for name in named if named.count(name) > 1), None)
    if twice:
        raise ResultsError(f"axis {twice} is asked for twice: give --rows, --columns and --group "
                           "an axis each")
    free = [name for name in sweep.varying() if name not in named]
    held = [name for name in free if mixed and name in ("test", "protocol") and groups is None]
    if len(free) - len(held) > (rows is None) + (columns is None) and groups is None and not held:
        held = sorted((n for n in free if n in GROUPS), key=lambda n: GROUPS.index(n))[:1]
    free = [name for name in free if name not in held]
    if rows is None:
        fit = sorted(free, key=lambda n: rank(n, ROWS, len(ROWS) + rank(n, COLUMNS, -0.5)))
        rows = fit[0] if fit else next((n for n in [*held, *sweep.values] if n not in named), None)
        if rows is None:
            raise ResultsError("no axis is left for the rows: give --rows")
        free = [name for name in free if name != rows]
        held = [name for name in held if name != rows]
    if columns is None and free:
        columns = sorted(free, key=lambda n: rank(n, COLUMNS, -0.5))[0]
        free = [name for name in free if name != columns]
    left = [name for name in sweep.values if name in free + held]
    return Layout(rows, columns, list(groups or []) + left)


# --- the tables ---------------------------------------------------------------------------

@dataclass
class Table:
    """One two-way table. Where a point has no figure the value is None."""
    group: "Dict[str, Any]"
    title: str
    corner: str
    row_labels: "List[str]"
    column_labels: "List[str]"
    values: "List[List[Optional[float]]]"
    partial: "List[List[bool]]"          # some of the point's runs failed
    left_out: "List[List[bool]]"         # by the plan
    gaps: "List[str]"                    # what failed or is missing, and why
    unit: str
    row_keys: "List[str]"                # the labels for programs: 16384 where they say 16 KiB
    column_keys: "List[str]"
    across: bool                         # does an average of a row mean something?
    down: bool

    def row_average(self, index: int) -> Optional[float]:
        return average(self.values[index])

    def column_average(self, index: int) -> Optional[float]:
        return average([row[index] for row in self.values])

    def average(self) -> Optional[float]:
        return average([value for row in self.values for value in row])


def average(values: "Sequence[Optional[float]]") -> Optional[float]:
    """Of those that are there."""
    there = [value for value in values if value is not None]
    return statistics.fmean(there) if there else None


def build(sweep: Sweep, figure: str = "THROUGHPUT", layout: Optional[Layout] = None,
          of_ceiling: bool = False, statistic: str = "mean") -> "List[Table]":
    """The tables of a figure, one a group. Raises ResultsError when no run has the figure, or with
    of_ceiling when no point has a ceiling."""
    if figure not in sweep.figures() and any(run.ok for run in sweep.results.runs):
        raise ResultsError(f"--figure {figure}: no run has it (try {', '.join(sweep.figures())})")
    if of_ceiling and figure not in THROUGHPUTS:
        raise ResultsError(f"--figure {figure}: has no ceiling (try THROUGHPUT)")
    if of_ceiling and not any(sweep.share(cell, figure) for cell in sweep.cells.values()):
        raise ResultsError("--of-ceiling: no point's ceiling is known: say what the link is by "
                           "--rate 100mbit --mtu 1500, or in the plan's [constants]")
    layout = layout or choose(sweep, mixed=len(sweep.units_of(figure)) > 1 and not of_ceiling)
    tables = []
    for choice in itertools.product(*(sweep.values[name] for name in layout.groups)):
        table = one_table(sweep, figure, layout, dict(zip(layout.groups, choice)), of_ceiling,
                          statistic)
        if table:
            tables.append(table)
    return tables


def one_table(sweep: Sweep, figure: str, layout: Layout, group: "Dict[str, Any]",
              of_ceiling: bool, statistic: str) -> Optional[Table]:
    """Rows and columns that the plan leaves out in this group are not its; where the plan is not known
    those of which nothing was tried."""
    chosen = [layout.rows] + ([layout.columns] if layout.columns else [])
    inside = [cell for cell in sweep.cells.values()
              if all(same(cell.point.get(name), value) for name, value in group.items())]
    if not inside and not sweep.planned(group):
        return None

    def belongs(axis: str, value: Any) -> bool:
        return bool(sweep.planned({**group, axis: value})) or any(
            same(cell.point.get(axis), value) for cell in inside)

    rows = [v for v in sweep.values[layout.rows] if belongs(layout.rows, v)]
    columns = [v for v in sweep.values[layout.columns] if belongs(layout.columns, v)
               ] if layout.columns else [None]
    values: "List[List[Optional[float]]]" = []
    partial: "List[List[bool]]" = []
    left_out: "List[List[bool]]" = []
    gaps: "List[str]" = []
    missing: "List[str]" = []
    for row, line in itertools.groupby(itertools.product(rows, columns), lambda pair: pair[0]):
        values.append([])
        partial.append([])
        left_out.append([])
        for _, column in line:
            point = {**group, **dict(zip(chosen, (row, column)))}
            found = [cell for cell in inside
                     if all(same(cell.point.get(name), point[name]) for name in chosen)]
            value, why, some = figure_of(sweep, found, figure, of_ceiling, statistic)
            values[-1].append(value)
            partial[-1].append(some)
            left_out[-1].append(not any(cell.tried() for cell in found)
                                and (bool(found) or sweep.planned(point) is False))
            if why and not left_out[-1][-1]:
                names = [name for name in point if len(sweep.values[name]) > 1] or chosen
                (gaps if found else missing).append(f"{sweep.describe(point, names)}: {why}")
    if len(missing) > MOST_MISSING:
        missing = [f"{len(missing)} of {len(rows) * len(columns)} not measured"]
    gaps += missing
    units = list({cell.unit(figure): 0 for cell in inside if cell.good()})
    unit = PERCENT if of_ceiling else ", ".join(units)
    head = sweep.describe({**{n: v for n, v in sweep.single().items() if n == "test"}, **group})
    if "test" not in sweep.values and sweep.constants.get("test"):
        head = ", ".join(filter(None, [str(sweep.constants["test"]), head]))
    return Table(group, ": ".join(filter(None, [head, caption(sweep, figure, unit, statistic)])),
                 layout.rows + (f" \\ {layout.columns}" if layout.columns else ""),
                 [sweep.label(layout.rows, row) for row in rows],
                 [sweep.label(layout.columns, c) if layout.columns else figure for c in columns],
                 values, partial, left_out, gaps, unit, [show_value(row) for row in rows],
                 [show_value(c) if layout.columns else figure for c in columns],
                 across=len(columns) > 1 and layout.columns not in UNLIKE,
                 down=len(rows) > 1 and layout.rows not in UNLIKE)


def caption(sweep: Sweep, figure: str, unit: str, statistic: str) -> str:
    times = sweep.results.header.repetitions
    what = f"{figure} in {unit}" if unit else figure
    return what + (f", {statistic} of {times} runs" if times > 1 else "")


def same(one: Any, other: Any) -> bool:
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def figure_of(sweep: Sweep, cells: "List[Cell]", figure: str, of_ceiling: bool,
              statistic: str) -> "Tuple[Optional[float], str, bool]":
    """The value of a place in a table; what failed there, and whether only a part of it did."""
    values = [value for cell in cells
              for value in (sweep.share(cell, figure) if of_ceiling else cell.values(figure))]
    failures = [reason for cell in cells for reason in cell.failures()]
    runs = sum(len(cell.tried()) for cell in cells)
    if not runs:
        return None, "not measured", False
    why = "; ".join({reason: 0 for reason in failures})
    if not values:
        if not failures:
            return None, "its ceiling is not known" if of_ceiling else f"no {figure}", False
        return None, (why if runs == 1 else f"{len(failures)} of {runs} failed: {why}"), False
    if failures:
        return STATISTICS[statistic](values), f"{len(failures)} of {runs} failed: {why}", True
    return STATISTICS[statistic](values), "", False


# --- writing them -------------------------------------------------------------------------

GAP = "-"
LEFT_OUT = "n/a"
MARK = "*"          # behind a value of which some runs failed


def digits_for(tables: "Sequence[Table]") -> int:
    """So many behind the point that the largest has four digits or more, and no fewer than two
    where there is room: 94.15, 812.4, 68681."""
    most = max((abs(v) for t in tables for row in t.values for v in row if v is not None),
               default=0.0)
    return 0 if most >= 10000 else 1 if most >= 1000 else 2 if most >= 1 else 4


@dataclass
class Grid:
    """A table as words: the heads, and the rows, whose last is the average."""
    head: "List[str]"
    rows: "List[List[str]]"
    down: bool          # is the last row the average?
    across: bool        # is the last column?


def grid(table: Table, digits: int, averages: bool = True, mark: str = MARK) -> Grid:
    def show(value: Optional[float], partial: bool = False, left_out: bool = False) -> str:
        if value is None:
            return LEFT_OUT if left_out else GAP
        return f"{value:.{digits}f}{mark if partial else ''}"

    across, down = averages and table.across, averages and table.down
    head = [table.corner, *table.column_labels, *(["average"] if across else [])]
    rows = [[label, *map(show, *lines), *([show(table.row_average(i))] if across else [])]
            for i, (label, *lines) in enumerate(
                zip(table.row_labels, table.values, table.partial, table.left_out))]
    if down:
        rows.append(["average", *[show(table.column_average(i))
                                  for i in range(len(table.column_labels))],
                     *([show(table.average())] if across else [])])
    return Grid(head, rows, down, across)


def as_text(tables: "Sequence[Table]", digits: int, averages: bool = True) -> str:
    blocks = []
    for table in tables:
        words = grid(table, digits, averages)
        marked = any(map(any, table.partial))
        rows = [[*row[:1], *[cell if cell.endswith(MARK) or not marked else cell + " "
                             for cell in row[1:]]] for row in [words.head, *words.rows]]
        wide = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        lines = ["  ".join([row[0].ljust(wide[0]), *(c.rjust(w) for c, w in zip(row[1:], wide[1:]))]
                           ).rstrip() for row in rows]
        rule = "-" * max(map(len, lines))
        lines.insert(1, rule)
        if words.down:
            lines.insert(-1, rule)
        blocks.append("\n".join([table.title, "", *lines, *notes(table, "")]))
    return "\n\n".join(blocks) + "\n"


def notes(table: Table, bullet: str) -> "List[str]":
    return ["", *[f"{bullet}{line}" for line in table.gaps]] if table.gaps else []


def as_csv(tables: "Sequence[Table]", digits: int, averages: bool = True) -> str:
    """One table of all groups, whose axes are the first columns."""
    columns = list({key: 0 for table in tables for key in table.column_keys})
    if all(key.isdigit() for key in columns):
        columns.sort(key=int)
    groups = list({name: 0 for table in tables for name in table.group})
    grids = [grid(table, digits, averages, mark="") for table in tables]
    across = any(words.across for words in grids)
    out = io.StringIO()
    write = csv.writer(out, lineterminator="\n").writerow
    write([*groups, tables[0].corner if tables else "", *columns, *(["average"] if across else [])])
    for table, words in zip(tables, grids):
        keys = table.column_keys + (["average"] if words.across else [])
        for label, row in zip([*table.row_keys, "average"], words.rows):
            cells = dict(zip(keys, row[1:]))
            write([*(show_value(table.group[name]) for name in groups), label,
                   *(cells.get(key, "") for key in columns),
                   *([cells.get("average", "")] if across else [])])
    return out.getvalue()


def as_markdown(tables: "Sequence[Table]", digits: int, averages: bool = True) -> str:
    def clean(text: str) -> str:
        return text.replace("\\", "\\\\").replace("|", "\\|").replace("*", "\\*")

    def line(cells: "Sequence[str]") -> str:
        return "| " + " | ".join(map(clean, cells)) + " |"

    blocks = []
    for table in tables:
        words = grid(table, digits, averages)
        lines = [line(words.head), "|" + "|".join(["---", *["---:"] * (len(words.head) - 1)]) + "|"]
        lines += [line(row) for row in words.rows]
        blocks.append("\n".join([f"**{clean(table.title)}**", "", *lines,
                                 *map(clean, notes(table, "- "))]))
    return "\n\n".join(blocks) + "\n"


LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
         **{mark: "\\" + mark for mark in "&%$#_{}"}}


def latex(text: str) -> str:
    return "".join(LATEX.get(letter, letter) for letter in text)


def as_latex(tables: "Sequence[Table]", digits: int, averages: bool = True) -> str:
    """With nothing beyond LaTeX itself, so that it can be pasted anywhere."""
    blocks = []
    for table in tables:
        words = grid(table, digits, averages)
        form = "l|" + "r" * (len(words.head) - 1 - words.across) + ("|r" if words.across else "")

        def line(cells: "Sequence[str]") -> str:
            return "    " + " & ".join(map(latex, cells)) + r" \\"

        body = [line(words.head), r"    \hline", *map(line, words.rows)]
        if words.down:
            body.insert(-1, r"    \hline")
        gaps = [rf"  \par\footnotesize {latex(gap)}" for gap in table.gaps]
        blocks.append("\n".join([r"\begin{table}[htbp]", r"  \centering",
                                 rf"  \caption{{{latex(table.title)}}}",
                                 rf"  \begin{{tabular}}{{{form}}}", *body, r"  \end{tabular}",
                                 *gaps, r"\end{table}"]))
    return "\n\n".join(blocks) + "\n"


FORMATS = {"text": as_text, "csv": as_csv, "markdown": as_markdown, "latex": as_latex}


# --- lists --------------------------------------------------------------------------------

def lists(blocks: "Sequence[List[List[str]]]", titles: "Sequence[str]", form: str,
          words: int) -> str:
    """Tables whose first row is the heads, in one of FORMATS. The first column is words, and so are
    those from number `words` on; the others are numbers."""
    return ("\n" if form == "csv" else "\n\n").join(
        one_list(block, title, form, words) for block, title in zip(blocks, titles)) + "\n"


def one_list(rows: "List[List[str]]", title: str, form: str, words: int) -> str:
    left = [i == 0 or i >= words for i in range(len(rows[0]))]
    if form == "csv":
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows(rows)
        return out.getvalue()
    if form == "markdown":
        lines = ["| " + " | ".join(row) + " |" for row in rows]
        lines.insert(1, "|" + "|".join("---" if words else "---:" for words in left) + "|")
        return "\n".join([f"**{title}**", "", *lines])
    if form == "latex":
        body = ["    " + " & ".join(map(latex, row)) + r" \\" for row in rows]
        body.insert(1, r"    \hline")
        return "\n".join([r"\begin{table}[htbp]", r"  \centering",
                          rf"  \caption{{{latex(title)}}}",
                          rf"  \begin{{tabular}}{{{''.join('l' if w else 'r' for w in left)}}}",
                          *body, r"  \end{tabular}", r"\end{table}"])
    wide = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(w) if l else cell.rjust(w) for cell, w, l in zip(row, wide, left)
                       ).rstrip() for row in rows]
    return "\n".join([title, "", *lines])
