"""Two-way tables of a sweep: their layout, and their output as text, CSV, Markdown or LaTeX. Tidy ones, a row per run."""

import csv
import functools
import io
import itertools
import math
import re
import statistics
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple, Union

from netkit import ceiling, engines, python, units
from netkit.results import (DERIVED, SETS, Axis, Results, ResultsError, Run, is_number, key_of, matches,
                            disturbed_runs, point_key, reading, within)
from netkit.units import show_value

# Which role suits an axis, the best first; axes with other names are in between.
GROUPS = ("test", "protocol", *SETS, "family", "host")
ROWS = ("buffer", "local_buffer", "remote_buffer", "mtu", "mss", "interval", "cpu")
COLUMNS = ("size", "request", "response", "nodelay", "family", "flows", "threads", "processes", "test",
           "protocol", *SETS)
SIZES = ("size", "request", "response", "buffer", "local_buffer", "remote_buffer", "mtu", "mss")

STATISTICS: "Dict[str, Callable[[Sequence[float]], float]]" = {
    "mean": statistics.fmean, "median": statistics.median, "min": min, "max": max,
    "stddev": statistics.stdev, "n": len}

LEAST_BEYOND, MOST_BEYOND = 100.2, 110.0   # percent of a ceiling: above the first a run exceeds it, above the second the ceiling is probably wrong
MOST_LISTED = 6     # points not measured, or with remarks, that are listed individually

PERCENT = "% of the ceiling"
RATE, TRANSACTIONS = "Mbit/s", "transactions/s"
THROUGHPUTS = ("THROUGHPUT", "LOCAL_SEND_THROUGHPUT", "LOCAL_RECV_THROUGHPUT",
               "REMOTE_SEND_THROUGHPUT", "REMOTE_RECV_THROUGHPUT", "TRANSACTION_RATE",
               "MIN_FLOW_THROUGHPUT", "MAX_FLOW_THROUGHPUT", "CLEAN_THROUGHPUT")
UNITS = {"LOCAL_CPU_UTIL": "%", "REMOTE_CPU_UTIL": "%", "LOCAL_SD": "us/KB", "REMOTE_SD": "us/KB",
         "MEAN_LATENCY": "us", "MIN_LATENCY": "us", "MAX_LATENCY": "us", "P50_LATENCY": "us",
         "P90_LATENCY": "us", "P99_LATENCY": "us", "STDDEV_LATENCY": "us", "IDLE_P50_LATENCY": "us",
         "IDLE_P99_LATENCY": "us", "LOADED_P50_LATENCY": "us", "LOADED_P99_LATENCY": "us", "LOAD_LATENCY": "us", "ELAPSED_TIME": "s", "CLEAN_SECONDS": "s",
         "DROPS": "packets", **{name: "%" for name in DERIVED if name.endswith("PERCENT")}}

# The members of a document's `intervals` for these percentiles, and how many transactions are needed to tell each.
PERCENTILES = {"P50_LATENCY": ("p50", 6), "P90_LATENCY": ("p90", 36), "P99_LATENCY": ("p99", 368)}


def unit_of(run: Run, figure: str = "THROUGHPUT") -> str:
    """A unit common to all streams, whatever unit netperf printed."""
    told = ceiling.unit_of(figure, str(run.result.get("THROUGHPUT_UNITS") or ""))
    return TRANSACTIONS if told == ceiling.RATE_UNIT else RATE if told.endswith(
        "bits/s") or told in ceiling.BYTES else told


@dataclass(eq=False)
class Cell:
    """All runs of a point."""
    point: "Dict[str, Any]"
    runs: "List[Run]" = field(default_factory=list)

    def good(self) -> "List[Run]":
        return [run for run in self.runs if run.ok]

    def values(self, figure: str) -> "List[float]":
        """The figures of the good runs, throughputs in unit()."""
        found = [(run.figure(figure), run) for run in self.good()]
        return [ceiling.in_unit(value, ceiling.unit_of(figure, str(run.result.get("THROUGHPUT_UNITS") or "")))
                if figure in THROUGHPUTS else value for value, run in found if value is not None]

    @functools.lru_cache(maxsize=None)
    def disturbed(self) -> str:
        return disturbed_runs(self.good())

    def unsure(self) -> str:
        """Says so if the requested confidence was not reached."""
        told = good[-1].more.get("confidence") if (good := self.good()) else None
        if not isinstance(told, dict) or told.get("reached") is not False:
            return ""
        return (f"not sure: the mean's interval is {told.get('width') or '?'} % wide after {len(self.good())} runs"
                f", {told.get('wanted')} % was wanted")

    def between(self, figure: str) -> "Optional[Tuple[float, float]]":
        """For a single run: the 95 % interval of its percentile."""
        good, name = self.good(), PERCENTILES.get(figure, ("", 0))[0]
        told = within(good[0].more, "intervals", name) if len(good) == 1 else None
        return (told[0], told[1]) if told and None not in told else None     # null: beyond the unanswered ones

    def too_few(self, figure: str) -> str:
        """Says so if some runs had too few transactions for their percentile."""
        name, enough = PERCENTILES.get(figure, ("", 0))
        told = [within(run.more, "intervals") or {} for run in self.good() if name]
        some = sum(name in one and not one[name] for one in told)
        return f"too few transactions for {figure}, which takes {enough}: {some} of {len(told)} runs" if some else ""

    def tried(self) -> "List[Run]":
        return [run for run in self.runs if not run.excluded]

    def unit(self, figure: str = "THROUGHPUT") -> str:
        if figure not in THROUGHPUTS:
            return UNITS.get(figure, "")
        return next(filter(None, map(unit_of, self.good(), itertools.repeat(figure))), "")


class Sweep:
    """Results grouped by point. `constants` override those of the header."""

    def __init__(self, results: Results, constants: "Optional[Dict[str, Any]]" = None) -> None:
        if not results.header.axes and not any(run.point for run in results.runs):  # a plan with one point: a row named after its test
            point = {"test": results.header.constants.get("test") or "TCP_STREAM"}
            results = replace(results, header=replace(results.header, axes=[Axis(name, [value]) for name, value in point.items()]),
                              runs=[replace(run, point=point) for run in results.runs])
        axes = list(dict.fromkeys([*(axis.name for axis in results.header.axes), *(name for run in results.runs for name in run.point)]))
        if any(len(run.point) < len(axes) for run in results.runs):     # axes that a point lacks are the plan's, or empty
            results = replace(results, runs=[replace(run, point={
                name: run.point.get(name, results.header.constants.get(name)) for name in axes}) for run in results.runs])
        self.results = results
        self.constants = {**results.header.constants, **(constants or {})}
        known = {axis.name: {key_of(value): value for value in axis.values}
                 for axis in results.header.axes}
        self.units = {a.name: a.unit for a in results.header.axes}
        self.cells: "Dict[str, Cell]" = {}
        for run in results.runs:
            if run.place not in self.cells:
                self.cells[run.place] = Cell(run.point)
                for name, value in run.point.items():
                    known.setdefault(name, {}).setdefault(key_of(value), value)
            self.cells[run.place].runs.append(run)
        self.values = {name: list(values.values()) for name, values in known.items()}
        self.in_kib = {name for name, values in self.values.items()
                       if name.endswith("buffer") and self.units.get(name) == "bytes"
                       and all(value % 1024 == 0 for value in values if is_number(value))}

    def varying(self) -> "List[str]":
        """The axes that distinguish points."""
        return [name for name, values in self.values.items() if len(values) > 1]

    def single(self) -> "Dict[str, Any]":
        return {name: values[0] for name, values in self.values.items() if len(values) == 1}

    def test(self, point: "Dict[str, Any]") -> str:
        return str({**self.constants, **self.single(), **point}.get("test") or "")

    def points(self) -> "Iterator[Dict[str, Any]]":
        """The plan's points in order, then others that were measured."""
        names = list(self.values)
        for choice in itertools.product(*self.values.values()):
            yield dict(zip(names, choice))

    def planned(self, point: "Dict[str, Any]") -> Optional[bool]:
        """Whether the plan has a point with these values; None if the file does not say."""
        skips = self.results.header.skips
        if skips is None:
            return None
        rest = [name for name in self.values if name not in point]
        whole = ({**self.constants, **point, **dict(zip(rest, choice))}
                 for choice in itertools.product(*(self.values[name] for name in rest)))
        return any(self._meet(one) and not any(matches(one, skip) for skip in skips) for one in whole)

    def _meet(self, point: "Dict[str, Any]") -> bool:
        """Whether client and server are a pair of the plan: not a host with itself, and only listed pairs, if any."""
        ends = [point.get(name) for name in ("client", "server")]
        if None not in ends and self._pairs():
            return key_of(ends) in self._pairs()
        return ends[0] is None or engines.named(ends[0]) != engines.named(ends[1] or point.get("host"))

    @functools.lru_cache(maxsize=None)
    def _pairs(self) -> "Set[Any]":
        return set(map(key_of, (self.results.header.more.get("settings") or {}).get("pairs") or ()))

    def cell(self, point: "Dict[str, Any]") -> Optional[Cell]:
        return self.cells.get(point_key(point))

    @functools.lru_cache(maxsize=None)
    def ceiling(self, cell: Cell) -> Optional[float]:
        """The ceiling in the cell's unit. Link properties are from options, else the plan, else the interface."""
        good = cell.good()
        link = good[0].near_device if good else {}
        found = ceiling.of_point(cell.point, {**link, **self.constants}, good[0].result if good else None)
        fits = found and (found.unit == ceiling.RATE_UNIT) == (cell.unit() == TRANSACTIONS)
        return found.value if found and fits else None

    def share(self, cell: Cell, figure: str = "THROUGHPUT") -> "List[float]":
        """Each run's figure in percent of the point's ceiling; empty if there is no ceiling."""
        most = self.ceiling(cell)
        return [100 * value / most for value in cell.values(figure)] if most and cell.unit(figure) == cell.unit() else []

    def doubts(self, cell: Cell, ceilings: bool = False, figure: str = "") -> "Iterator[str]":
        """Remarks about a point's good runs: unsure, disturbed, above the ceiling, or too short for a percentile."""
        yield from filter(None, [cell.unsure(), cell.disturbed(), self.beyond(cell) if ceilings else "",
                                 cell.too_few(figure)])

    def told(self, cells: "Sequence[Cell]", found: "Sequence[Tuple[Cell, str]]") -> "List[str]":
        """The remarks that were found, one line each; if many, one line for disturbed points and one for the others."""
        if len({id(cell) for cell, _ in found}) <= MOST_LISTED:
            return [f"{self.said(cell.point)}: {words}" for cell, words in found]
        disturbed = [cell for cell in cells if cell.disturbed()]
        rest = [f"{self.said(cell.point)}: {words}" for cell, words in found if words != cell.disturbed()]
        return [*([f"{len(disturbed)} of {len(cells)} points ({DOUBT}): " + disturbed_runs(
            [run for cell in disturbed for run in cell.good()])] if disturbed else []),
            *(rest if len(rest) <= MOST_LISTED else [f"{len(rest)} points ({DOUBT}) not sure or above their ceiling, such as {rest[0]}"])]

    def beyond(self, cell: Cell) -> str:
        """Why a run may be above its ceiling, if one is."""
        most = max(self.share(cell), default=0.0)
        if most < LEAST_BEYOND:
            return ""
        test = self.test(cell.point)
        why = ("rate or MTU are not those of the link" if most > MOST_BEYOND else
               "what a queue held at the end arrived later, and its time does not count (RECEIVER_SPAN_THROUGHPUT counts it)"
               if test.startswith("UDP") else
               "buffers and queues held a part that passed outside of the time; a longer run has less of it")
        return f"{most:.1f} % of its ceiling: {why}"

    def has(self, figure: str) -> bool:
        return any(cell.values(figure) for cell in self.cells.values())

    def figures(self) -> "List[str]":
        """The names of all numeric figures."""
        names = dict.fromkeys(name for run in self.results.runs if run.ok for name in run.result)
        return [name for name in dict.fromkeys([*names, *DERIVED]) if self.has(name)]

    def units_of(self, figure: str) -> "List[str]":
        return list({cell.unit(figure): 0 for cell in self.cells.values() if cell.good()})

    def label(self, name: str, value: Any) -> str:
        """A value of an axis as a heading."""
        if name in self.in_kib and is_number(value):
            return f"{value // 1024} KiB"
        rate = units.rate(value) if name == "rate" else None
        if rate:
            return units.show_rate(rate)
        return units.printable(engines.named(value) if name in ("client", "server") and value is not None else show_value(value))

    def said(self, point: "Dict[str, Any]") -> str:
        """How a point differs from the others; a single point is described in full."""
        return self.describe(point, self.varying() or None)

    def describe(self, point: "Dict[str, Any]", names: "Optional[Sequence[str]]" = None,
                 called: "Dict[str, str]" = {}) -> str:
        """A point in words: test, label and file by value alone, others as NAME VALUE. `called` renames axes."""
        words = []
        for name, value in point.items():
            if names is not None and name not in names:
                continue
            text = self.label(name, value)
            if name in ("test", *SETS):
                words.append(text)
            elif name == "family" and value in (4, 6):
                words.append(f"IPv{value}")
            else:
                words.append(f"{called.get(name, name)} {text}")
        return ", ".join(words)


@dataclass
class Layout:
    rows: str
    columns: Optional[str]
    groups: "List[str]"


def rank(name: str, order: Sequence[str], otherwise: float) -> float:
    return float(order.index(name)) if name in order else otherwise


def require_axis(sweep: Sweep, option: str, name: str) -> None:
    if name not in sweep.values:
        raise ResultsError(f"{option} {name}: no such axis (try {', '.join(sweep.values) or 'a sweep with axes'})")


def choose(sweep: Sweep, rows: Optional[str] = None, columns: Optional[str] = None,
           groups: "Optional[List[str]]" = None, mixed: bool = False) -> Layout:
    """Choose the axes. `mixed`: units differ, so tests can't share a table. Raises ResultsError for unknown axes."""
    for option, name in [("--rows", rows), ("--columns", columns),
                         *[("--group", name) for name in groups or []]]:
        if name:
            require_axis(sweep, option, name)
    named = [name for name in [rows, columns, *(groups or [])] if name]
    twice = next((name for name in named if named.count(name) > 1), None)
    if twice:
        raise ResultsError(f"axis {twice} is asked for twice: give --rows, --columns and --group "
                           "an axis each")
    free = [name for name in sweep.varying() if name not in named]
    held = [name for name in free if mixed and name in ("test", "protocol") and groups is None]
    if len(free) - len(held) > (rows is None) + (columns is None) and groups is None and not held:
        held = [name for name in GROUPS if name in free][:1]
    free = [name for name in free if name not in held]
    if rows is None:
        rows = min(free, key=lambda n: rank(n, ROWS, len(ROWS) + rank(n, COLUMNS, -0.5)),
                   default=next((n for n in [*held, *sweep.values] if n not in named), None))
        if rows is None:
            raise ResultsError("no axis is left for the rows: give --rows")
        free = [name for name in free if name != rows]
        held = [name for name in held if name != rows]
    if columns is None and free:
        columns = min(free, key=lambda n: rank(n, COLUMNS, -0.5))
        free = [name for name in free if name != columns]
    left = [name for name in sweep.values if name in free + held]
    return Layout(rows, columns, list(groups or []) + left)


@dataclass
class Entry:
    """A cell of a table."""
    value: Optional[float] = None
    spread: Optional[float] = None      # standard deviation, if there are two runs or more
    count: int = 0
    mark: str = ""                      # MARK: some runs failed or lack the figure; DOUBT: there are remarks
    left_out: bool = False              # by the plan
    between: "Optional[Tuple[float, float]]" = None     # the interval of a single run's percentile


@dataclass
class Table:
    group: "Dict[str, Any]"
    title: str
    corner: str
    row_labels: "List[str]"
    column_labels: "List[str]"
    entries: "List[List[Entry]]"
    gaps: "List[str]"                    # failed or missing points, and why
    row_keys: "List[str]"                # row labels for programs: 16384 instead of 16 KiB
    column_keys: "List[str]"
    across: bool                         # whether the average of a row makes sense
    down: bool
    counted: bool = False                # whether the numbers of runs are shown


def average(entries: "Iterator[Entry]") -> Entry:
    there = [entry.value for entry in entries if entry.value is not None]
    return Entry(statistics.fmean(there) if there else None)


def alike(sweep: Sweep, name: Optional[str]) -> bool:
    """Whether an average along an axis makes sense: it does along sizes, but not over hosts, builds or processors."""
    return bool(name) and (name in SIZES or sweep.units.get(str(name)) == "bytes") and len(
        [v for v in sweep.values[str(name)] if is_number(v)]) > 1


@dataclass
class Wanted:
    """The choices that apply to all tables of a sweep."""
    sweep: Sweep
    figure: str
    layout: Layout
    of_ceiling: bool
    statistic: str
    spread: bool        # show standard deviations, and numbers of runs that differ

    def values(self, cell: Cell) -> "List[float]":
        return self.sweep.share(cell, self.figure) if self.of_ceiling else cell.values(self.figure)


def build(sweep: Sweep, figure: str = "THROUGHPUT", layout: Optional[Layout] = None,
          of_ceiling: bool = False, statistic: str = "mean", spread: bool = True) -> "List[Table]":
    """A figure's tables, one for each group. Raises ResultsError if no run has it or, with of_ceiling, a ceiling."""
    if any(cell.good() for cell in sweep.cells.values()) and not sweep.has(figure):
        raise ResultsError(f"--figure {figure}: no run has it (try {', '.join(sweep.figures()) or 'another file'})")
    if of_ceiling and figure not in THROUGHPUTS:
        raise ResultsError(f"--figure {figure}: has no ceiling (try THROUGHPUT)")
    if of_ceiling and not any(map(sweep.ceiling, sweep.cells.values())):
        raise ResultsError("--of-ceiling: no point's ceiling is known: say what the link is by "
                           "--rate 100mbit --mtu 1500, or in the plan's [constants]")
    layout = layout or choose(sweep, mixed=len(sweep.units_of(figure)) > 1 and not of_ceiling)
    wanted = Wanted(sweep, figure, layout, of_ceiling, statistic, spread)
    inside: "Dict[Any, List[Cell]]" = {}
    for cell in sweep.cells.values():
        inside.setdefault(tuple(key_of(cell.point.get(n)) for n in layout.groups), []).append(cell)
    tables = []
    for choice in itertools.product(*(sweep.values[name] for name in layout.groups)):
        group, cells = dict(zip(layout.groups, choice)), inside.get(tuple(map(key_of, choice)), [])
        if cells or sweep.planned(group):
            tables.append(one_table(wanted, group, cells))
    return tables


def one_table(wanted: Wanted, group: "Dict[str, Any]", inside: "List[Cell]") -> Table:
    """Omits rows and columns that the plan leaves out of this group or, without a plan, that were never tried."""
    sweep, layout = wanted.sweep, wanted.layout
    chosen = [layout.rows] + ([layout.columns] if layout.columns else [])
    places: "Dict[Any, List[Cell]]" = {}
    for cell in inside:
        places.setdefault(tuple(key_of(cell.point.get(name)) for name in chosen), []).append(cell)

    def belonging(axis: str) -> "List[Any]":
        there = {key_of(cell.point.get(axis)) for cell in inside}
        return [value for value in sweep.values[axis]
                if key_of(value) in there or sweep.planned({**group, axis: value})]

    rows = belonging(layout.rows)
    columns = belonging(layout.columns) if layout.columns else [None]
    doubts = [(cell, words) for cell in inside for words in sweep.doubts(cell, wanted.of_ceiling, wanted.figure)]
    doubted = {cell for cell, _ in doubts}
    entries: "List[List[Entry]]" = []
    gaps: "List[str]" = []
    missing: "List[str]" = []
    lacking: "List[str]" = []
    for row in rows:
        entries.append([])
        for column in columns:
            point = {**group, **dict(zip(chosen, (row, column)))}
            found = places.get(tuple(map(key_of, (row, column)[:len(chosen)])), [])
            entry, why = entry_of(wanted, found)
            entry.left_out = entry.value is None and not any(cell.tried() for cell in found) and (
                bool(found) or sweep.planned(point) is False)
            entries[-1].append(entry)
            if why and not entry.left_out:
                (gaps if found else missing).append(f"{sweep.said(point)}: {why}")
            without = sum(len(cell.good()) for cell in found) - entry.count
            if without and entry.value is not None:
                entry.mark = MARK
                lacking.append(f"{sweep.said(point)}: {without} of {sum(len(cell.tried()) for cell in found)} have no {wanted.figure}")
            entry.mark += DOUBT if entry.value is not None and not doubted.isdisjoint(found) else ""
    gaps += lacking if len(lacking) <= MOST_LISTED else [f"{len(lacking)} points ({MARK}) have runs without {wanted.figure}"]
    if len(missing) > MOST_LISTED:
        missing = [f"{len(missing)} of {len(rows) * len(columns)} not measured"]
    gaps += sweep.told(inside, doubts)
    counts = sorted({entry.count for line in entries for entry in line if entry.count})
    if not wanted.spread or len(counts) < 2:
        counts = counts[-1:]
    return Table(group, title_of(wanted, group, inside, counts),
                 layout.rows + (f" \\ {layout.columns}" if layout.columns else ""),
                 [sweep.label(layout.rows, row) for row in rows],
                 [sweep.label(layout.columns, c) if layout.columns else wanted.figure for c in columns],
                 entries, gaps + missing, [show_value(row) for row in rows],
                 [show_value(c) if layout.columns else wanted.figure for c in columns],
                 across=len(columns) > 1 and alike(sweep, layout.columns) and wanted.statistic != "n",
                 down=len(rows) > 1 and alike(sweep, layout.rows) and wanted.statistic != "n",
                 counted=len(counts) > 1)


def title_of(wanted: Wanted, group: "Dict[str, Any]", inside: "List[Cell]", counts: "List[int]") -> str:
    """A table's title, such as "UDP_STREAM: THROUGHPUT in Mbit/s, mean \u00b1 standard deviation of 5 runs"."""
    sweep = wanted.sweep
    unit = PERCENT if wanted.of_ceiling else ", ".join(
        {cell.unit(wanted.figure): 0 for cell in inside if cell.good()})
    test = {"test": sweep.test(group)} if sweep.test(group) and "test" not in sweep.varying() else {}
    how = {"mean": "mean \u00b1 standard deviation" if wanted.spread else "mean", "n": "number"}.get(
        wanted.statistic, wanted.statistic)
    runs = "" if not counts or counts[-1] < 2 else f", {how} of {counts[-1]} runs" if len(
        counts) == 1 else f", {how} of {counts[0]} to {counts[-1]} runs (n)"
    return ": ".join(filter(None, [sweep.describe({**test, **sweep.results.chosen, **group}),
                                   wanted.figure + (f" in {unit}" if unit else "") + runs]))


def entry_of(wanted: Wanted, cells: "List[Cell]") -> "Tuple[Entry, str]":
    """A cell of a table, and what failed there."""
    values = [value for cell in cells for value in wanted.values(cell)]
    tried = [run for cell in cells for run in cell.tried()]
    failures = [run.reason() for run in tried if not run.ok]
    if not tried:
        return Entry(), "not measured"
    why = "; ".join({reason: 0 for reason in failures})
    if failures and (values or len(tried) > 1):
        why = f"{len(failures)} of {len(tried)} failed: {why}"
    if not values:
        return Entry(), why or ("its ceiling is not known" if wanted.of_ceiling
                                else f"no {wanted.figure}")
    if wanted.statistic == "stddev" and len(values) < 2:
        return Entry(), why or "one run has no standard deviation"
    spread = statistics.stdev(values) if wanted.spread and wanted.statistic == "mean" and len(
        values) > 1 else None
    between = cells[0].between(wanted.figure) if wanted.spread and wanted.statistic == "mean" and len(values) == 1 else None
    return Entry(STATISTICS[wanted.statistic](values), spread, len(values), MARK if failures else "", between=between), why


GAP = "-"
LEFT_OUT = "n/a"
MARK, DOUBT = "*", "!"  # after values with failed runs, and after values with remarks


class Words(NamedTuple):
    """A cell as text: the value, its suffix, and its kind."""
    value: str
    rest: str = ""
    kind: str = ""

    def __str__(self) -> str:
        return self.value + self.rest


@dataclass
class Block:
    """A table as text, for all output formats: the columns in `left` are text, the others numbers."""
    title: str
    head: "List[str]"
    rows: "List[List[Union[str, Words]]]"
    notes: "List[str]" = field(default_factory=list)
    left: "Sequence[int]" = (0,)
    down: bool = False      # the last row is the average
    across: bool = False    # the last column is the average

    @property
    def letters(self) -> int:
        """The width in characters, with column separators."""
        return sum(2 + max(len(str(row[i])) for row in [self.head, *self.rows]) for i in range(len(self.head)))


def digits_for(tables: "Sequence[Table]") -> int:
    """Digits after the point: none if the largest value has 5 before it, 1 if 4, else 2 (4 below 1); more near 0."""
    values = [abs(entry.value) for table in tables for line in table.entries for entry in line if entry.value] or [0.0]
    most, least = max(values), min(values)
    return max(0 if most >= 10000 else 1 if most >= 1000 else 2 if most >= 1 else 4,
               min(4, 1 - math.floor(math.log10(least))) if 0 < least < 1 else 0)


def block(table: Table, digits: int, averages: bool = True) -> Block:
    def show(entry: Entry, kind: str = "") -> Words:
        if entry.value is None:
            return Words(LEFT_OUT, kind="left-out") if entry.left_out else Words(GAP, kind=kind or "gap")
        off = "" if entry.spread is None else f" \u00b1{entry.spread:.{digits}f}"
        off += "" if entry.between is None else " [" + ", ".join(f"{time:.{digits}f}" for time in entry.between) + "]"
        runs = f" ({entry.count})" if table.counted and entry.count else ""
        return Words(f"{entry.value:.{digits}f}", entry.mark + off + runs, kind)

    across, down = averages and table.across, averages and table.down
    made = Block(table.title, [table.corner, *table.column_labels, *["average"] * across],
                 [[label, *map(show, line), *([show(average(line), "average")] if across else [])]
                  for label, line in zip(table.row_labels, table.entries)], table.gaps,
                 down=down, across=across)
    if down:
        each = [*zip(*table.entries), *([itertools.chain(*table.entries)] if across else [])]
        made.rows.append(["average", *(show(average(column), "average") for column in each)])
    return made


def as_text(made: Block) -> str:
    rows = [[Words(cell) if isinstance(cell, str) else cell for cell in row]
            for row in [list(made.head), *made.rows]]
    value, rest = ([max(len(row[i][part]) for row in (rows if part else rows[1:] or rows))
                    for i in range(len(made.head))] for part in (0, 1))
    wide = [max(v + r, len(head)) for v, r, head in zip(value, rest, made.head)]
    lines = []
    for number, row in enumerate(rows):
        cells = [f"{cell.value}{cell.rest.ljust(rest[i]) if number else ''}" for i, cell in enumerate(row)]
        lines.append("  ".join(cell.ljust(w) if i in made.left else cell.rjust(w)
                               for i, (cell, w) in enumerate(zip(cells, wide))).rstrip())
    rule = "-" * max(map(len, lines))
    lines.insert(1, rule)
    if made.down:
        lines.insert(-1, rule)
    return "\n".join([made.title, "", *lines, *([""] if made.notes else []), *made.notes])


def csv_text(rows: "Sequence[Sequence[Any]]") -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def as_csv(tables: "Sequence[Table]", digits: int, averages: bool = True) -> str:
    """A single table of all groups, whose axes are the first columns."""
    columns = list({key: 0 for table in tables for key in table.column_keys})
    if all(key.isdigit() for key in columns):
        columns.sort(key=int)
    groups = list({name: 0 for table in tables for name in table.group})
    blocks = [block(table, digits, averages) for table in tables]
    columns += ["average"] if any(made.across for made in blocks) else []
    rows = [[*groups, tables[0].corner if tables else "", *columns]]
    for table, made in zip(tables, blocks):
        for label, row in zip([*table.row_keys, "average"], made.rows):
            cells = dict(zip([*table.column_keys, "average"], row[1:]))
            rows.append([*(show_value(table.group[name]) for name in groups), label,
                         *(cells.get(key, Words(""))[0] for key in columns)])
    return csv_text(rows)


def as_markdown(made: Block) -> str:
    def clean(text: Any) -> str:
        return str(text).replace("\\", "\\\\").replace("|", "\\|").replace("*", "\\*")

    lines = ["| " + " | ".join(map(clean, row)) + " |" for row in [list(made.head), *made.rows]]
    lines.insert(1, "|" + "|".join("---" if i in made.left else "---:"
                                   for i in range(len(made.head))) + "|")
    return "\n".join([f"**{clean(made.title)}**", "", *lines, *([""] if made.notes else []),
                      *(clean(f"- {line}") for line in made.notes)])


LATEX = str.maketrans({"\\": r"\textbackslash{}", "~": r"\textasciitilde{}",
                       "^": r"\textasciicircum{}", "\u00b1": r"$\pm$",
                       **{mark: "\\" + mark for mark in "&%$#_{}"}})


def latex(text: Any) -> str:
    """Escape for LaTeX; negative numbers get a minus sign, not a hyphen."""
    return re.sub(r"^-(?=\d)", "$-$", str(text).translate(LATEX))


def as_latex(made: Block) -> str:
    """With rules from the package booktabs."""
    form = "".join("l" if i in made.left else "r" for i in range(len(made.head)))
    body = ["    " + " & ".join(map(latex, row)) + r" \\" for row in [list(made.head), *made.rows]]
    body.insert(1, r"    \midrule")
    if made.down:
        body.insert(-1, r"    \midrule")
    return "\n".join([r"\begin{table}[htbp] % \usepackage{booktabs}", r"  \centering",
                      rf"  \caption{{{latex(made.title)}}}", rf"  \begin{{tabular}}{{{form}}}", r"    \toprule",
                      *body, r"    \bottomrule", r"  \end{tabular}",
                      *(rf"  \par\footnotesize {latex(line)}" for line in made.notes), r"\end{table}"])


FORMS: "Dict[str, Callable[[Block], str]]" = {"text": as_text, "markdown": as_markdown,
                                              "latex": as_latex}
FORMATS = (*FORMS, "csv")


def write(blocks: "Sequence[Block]", form: str) -> str:
    """Tables in one of FORMATS; CSV has no titles and notes."""
    if form == "csv":
        return "\n".join(csv_text([made.head, *made.rows]) for made in blocks)
    return "\n\n".join(units.printable(FORMS[form](made), "\n") for made in blocks) + "\n"


TIDY_EVIDENCE = ("moved.ethtool.", "moved.nic.", "moved.qdisc.", "tc.")     # evidence that gets columns of a tidy table


def tidy_row(sweep: Sweep, run: Run) -> "Dict[str, Any]":
    """A row of a tidy table: axes, constants, the run's status, figures as printed and derived ones, and changes of counters at both ends."""
    cell = sweep.cells.get(run.place)
    more = {f"{end}.{name}": value for end in ("near", "far") for name, value in run.evidence(end).items()
            if name.startswith(TIDY_EVIDENCE) and is_number(value)}
    more.update({f"disturbed.{reason}": seconds for reason, seconds in (
        within(run.more, "disturbed", "reasons") or {}).items()})
    header = sweep.results.header
    constants = {**header.constants, **({"label": run.more["label"]} if run.more.get("label") else {})}
    return {"plan": header.plan, **constants, **run.point,
            "repetition": run.repetition, "started": run.started, "seconds": run.seconds,
            "status": run.status, "reason": run.reason(), **run.result,
            "CEILING": sweep.ceiling(cell) if cell else None,
            **{name: run.figure(name) for name in DERIVED}, **more}


def tidy_rows(sweeps: "Sequence[Sweep]") -> "List[Dict[str, Any]]":
    """All rows with the same columns, counters last; empty columns are omitted."""
    made = []
    for sweep in sweeps:
        with reading(sweep.results.path):
            made += [tidy_row(sweep, run) for run in sweep.results.runs]
    names = {name: "." in name or name in DERIVED for row in made for name, value in row.items()
             if value not in (None, "")}
    ordered = sorted(names, key=names.__getitem__)
    return [{name: row.get(name) for name in ordered} for row in made]


def tidy_csv(sweeps: "Sequence[Sweep]") -> str:
    """As CSV; missing values are empty, booleans are words."""
    made = tidy_rows(sweeps)
    cells = [[str(value).lower() if isinstance(value, bool) else value for value in row.values()] for row in made]
    return csv_text([list(made[0]), *cells])


def tidy_parquet(sweeps: "Sequence[Sweep]") -> bytes:
    pandas = python.need("pandas", "python3-pandas", "--tidy FILE.parquet")
    frame = pandas.DataFrame(tidy_rows(sweeps))
    for name in frame.columns:      # a column has a single type there
        kinds = {type(value) for value in frame[name].dropna()}
        if len(kinds - {int, float}) > 0 and len(kinds) > 1:
            frame[name] = frame[name].map(lambda value: None if value is None else str(value))
    out = io.BytesIO()
    try:
        frame.to_parquet(out, index=False)
    except ImportError:
        raise ResultsError("--tidy FILE.parquet needs Python's pyarrow or fastparquet beside pandas: pip "
                           "install pyarrow; or --tidy FILE.csv") from None
    return out.getvalue()
