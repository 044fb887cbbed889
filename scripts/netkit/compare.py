"""Compares two results point by point, with the statistics of gates. A side's files are sessions (gate/past.py)."""

import functools
import glob
import math
import os
from collections import Counter
from typing import Iterator, List, Sequence, Tuple

import numpy as np

from netkit import plots, results
from netkit.gate import output, past, stats, trial
from netkit.gate.model import BETTER, CANT_TELL, EQUAL, VERDICTS, WORSE, Judgement, Metric, Point
from netkit.gate.points import DEFAULTS, metric
from netkit.tables import Block
from netkit.units import show_value

CONFIDENCE = 95.0       # percent, for all verdicts together
MOST = 60               # in a plot
HEAD = ["point", "A", "B", "unit", "change (%)", "from", "to", "verdict", "runs of A", "of B"]
COLOURS = {EQUAL: plots.COLOURS[0], WORSE: plots.COLOURS[1], BETTER: plots.COLOURS[2], CANT_TELL: plots.MUTED}


def some(names: "Sequence[str]") -> str:
    return ", ".join(names[:4]) + (" ..." if len(names) > 4 else "") or "none"


class Side:
    """The files of one side, and after divide() their good runs by point."""

    def __init__(self, path: str, where: "Sequence[str]", figure: str = "THROUGHPUT") -> None:
        asked = figure.partition(":")[0]
        wanted = {asked, *(DEFAULTS.values() if asked == "THROUGHPUT" else ()), "THROUGHPUT_UNITS", "SD_UNITS"
                  } if asked not in results.DERIVED else None      # the other figures would be most of the memory
        paths = sorted(glob.glob(os.path.join(glob.escape(path), "*.json*"))) if os.path.isdir(path) else [path]
        self.path = path
        self.sessions: "List[past.Session]" = []
        self.parts: "List[results.Results]" = []
        self.left_out: "List[str]" = []         # files of a directory that can't be used, and why
        for one in paths:
            try:
                self.parts.append(results.only(results.read(one, wanted), where))
                for run in self.parts[-1].runs if wanted is None else ():
                    run.result = {asked: run.figure(asked)}
            except results.ResultsError as fault:
                if one == path:
                    raise
                self.left_out.append(f"left out: {fault}")
        if not self.parts:
            raise results.ResultsError((self.left_out or [f"{path}: no files of results (*.json, *.jsonl) in it"])[0])

    def axes(self) -> "List[str]":
        """The axes that distinguish its points."""
        return [name for name, axis in results.joined_axes(self.parts).items()
                if len(axis.values) > 1 or name in self.parts[0].chosen]

    def divide(self, names: "Sequence[str]") -> None:
        """Group the runs into sessions by point, named by these axes. The runs themselves are released."""
        made = []
        for part in self.parts:
            made.append(past.of_sweep(part, names))
            part.runs = []
        self.sessions = past.in_order(made)

    def slots(self, point: str) -> past.Slots:
        return past.Slots.joined([one.slots[point] for one in self.sessions if point in one.slots])

    def points(self) -> "List[str]":
        return list(dict.fromkeys(point for one in self.sessions for point in (*one.slots, *one.failed)))

    @functools.lru_cache(maxsize=None)
    def values(self, point: str, wanted: Metric) -> "Tuple[List[float], int, int]":
        """The figures of all runs, including 0; how many runs gave no result, and of how many."""
        silent = [one.silent(point, wanted) for one in self.sessions]
        return self.slots(point).all(wanted), *(sum(of) for of in zip(*silent))


class Sessions(past.Baseline):
    """A's sessions as a baseline for sessions of B."""

    def __init__(self, a: Side, b: Side, points: "Sequence[Point]") -> None:
        super().__init__(a.path, "", a.sessions, points, other_machine=True)
        self._b = b.sessions
        if past.span(past.in_order([*a.sessions, *b.sessions])) < past.A_DAY:
            self.least = 0.0

    def row(self, point: Point, metric: Metric, now: past.Slots, error: float) -> "past.Row | None":
        """Welch's test of session means if either side has several sessions; otherwise all of B is one session."""
        sides = [[past.mean(found)[0] for found in (one.figures(point.name, metric) for one in sessions) if found]
                 for sessions in (self.sessions, self._b)]
        made = super().row(point, metric, now, error)
        if made is None or min(map(len, sides)) < 2:
            return made
        parts = [max(stats.LEAST_NOISE ** 2, float(np.var(means, ddof=1))) / len(means) for means in sides]
        free = sum(parts) ** 2 / sum(part ** 2 / (len(means) - 1) for part, means in zip(parts, sides))
        made.against = made.against._replace(change=float(np.mean(sides[1]) - np.mean(sides[0])), error=math.sqrt(sum(parts)), free=free)
        made.best, made.now = made.against.best(), [math.exp(mean) for mean in sides[1]]
        return made


class Comparison:
    """The comparison. Raises ResultsError, and UsageError for a figure whose better direction is unknown."""

    def __init__(self, a: Side, b: Side, figure: str, margin: float) -> None:
        self.a, self.b, self.margin = a, b, margin
        names = list(dict.fromkeys([*a.axes(), *b.axes()]))
        for side in (a, b):
            side.divide(names)
        of_a = set(a.points())
        both = [name for name in b.points() if name in of_a and any(name in one.slots for one in (*a.sessions, *b.sessions))]
        if not both:
            raise results.ResultsError(f"{a.path} and {b.path} have no good run of the same point "
                                       f"({some(a.points())} in the one, {some(b.points())} in the other)")
        asked: "List[Tuple[Point, Metric, past.Slots]]" = []
        for name in both:       # a single run of A says nothing about the spread
            test = name.partition(".")[0].upper()
            wanted = metric(DEFAULTS.get(test, figure) if figure == "THROUGHPUT" else figure, margin)
            asked.append((Point(name, test, metrics=(wanted,)), wanted, b.slots(name) if len(a.slots(name)) > 1 else past.NO_SLOTS))
        self.judged = Sessions(a, b, [point for point, _, _ in asked]).judge_all(asked, CONFIDENCE)
        for one in self.judged:
            self._complete(one)

    def _complete(self, one: Judgement) -> None:
        """Fill in means and change if there is no interval, and the unit."""
        slots = [side.slots(one.point) for side in (self.a, self.b)]
        figures = [known.usable(one.metric, clean=False) for known in slots]
        one.unit = slots[1].units.get(one.metric.name, "")
        sides = [side.values(one.point, one.metric) for side in (self.a, self.b)]
        if any(silent or 0 in values for values, silent, _ in sides):
            self._rank(one, sides)
        elif one.change is None and all(figures):
            one.base, one.value = (math.exp(past.mean(values)[0]) for values in figures)
            one.change = 100 * (one.value / one.base - 1)

    def _rank(self, one: Judgement, sides: "List[Tuple[List[float], int, int]]") -> None:
        """For runs that failed or gave 0, and so have no ratio: compare ranks, and give the means."""
        from scipy.stats import mannwhitneyu    # slow to import: only where it is needed
        worst = 0.0 if one.metric.more_is_better else math.inf
        ranked = [[*values, *[worst] * (tried - len(values))] for values, _, tried in sides]
        greater, chance = mannwhitneyu(*ranked, alternative="two-sided")
        lower = greater > len(ranked[0]) * len(ranked[1]) / 2       # B's are lower
        shares = [silent / tried for _, silent, tried in sides]
        one.base, one.value = (sum(values) / len(values) if values else None for values, _, _ in sides)
        one.change = 100 * (one.value / one.base - 1) if one.base and one.value is not None else None
        if chance <= (1 - CONFIDENCE / 100) / len(self.judged):
            one.verdict = WORSE if lower == one.metric.more_is_better else BETTER
        elif abs(shares[1] - shares[0]) > trial.FAILING or not one.metric.more_is_better or (
                one.verdict == EQUAL and (one.change is None or abs(one.change) > self.margin)):
            one.verdict = CANT_TELL
        one.low = one.high = None
        one.failing = ", ".join(f"{silent} of {tried} runs of {name}" for name, (_, silent, tried) in zip("AB", sides) if silent)

    def table(self) -> Block:
        rows = [[one.point, output.figure(one.base), output.figure(one.value), one.unit, *(
            output.percent(value) for value in (one.change, one.low, one.high)), one.verdict, *(
                str(side.values(one.point, one.metric)[2]) for side in (self.a, self.b))] for one in self.judged]
        figures = ", ".join(dict.fromkeys(one.metric.name for one in self.judged))
        return Block(f"{figures}: B ({self.b.path}) against A ({self.a.path})", HEAD, rows, list(self.notes()),
                     left=(0, 3, 7))

    def notes(self) -> "Iterator[str]":
        found = Counter(one.verdict for one in self.judged)
        verdicts = ", ".join(f"{found[verdict]} {verdict}" for verdict in VERDICTS if found[verdict])
        yield from self.a.left_out + self.b.left_out
        yield (f"{len(self.judged)} compared: {verdicts}; equal: within {self.margin:g} %; {CONFIDENCE:g} % sure of all")
        ranked = [one for one in self.judged if any(0 in values or silent for values, silent, _ in (
            side.values(one.point, one.metric) for side in (self.a, self.b)))]
        yield from (f"failed, without the figure, or 0 where more is better: {one.point}: {one.failing}" for one in ranked if one.failing)
        if ranked:
            yield ("with runs that failed or gave 0: means of all that did not fail, judged by ranks of the runs (Mann-Whitney), in which "
                   f"days do not count: {some([one.point for one in ranked])}")
        lone = [one.point for one in self.judged if one.change is not None and one.low is None and one not in ranked]
        if lone:
            yield f"no verdict without two runs of either side: {some(lone)}"
        if len(self.a.sessions) == 1:
            yield (f"A is one file: how much sessions differ is unknown, and {past.BETWEEN:g} times what its runs differ by is taken for "
                   "it, of files of several days 1 % at least; a folder with several files narrows the intervals")
        for side, there in ((self.a, set(self.b.points())), (self.b, set(self.a.points()))):
            rest = [name for name in side.points() if name not in there]
            if rest:
                yield f"only in {side.path}: {some(rest)}"
        old, new = (side.parts[-1].header for side in (self.a, self.b))
        sides = [{**one.constants, **{axis.name: axis.values[0] for axis in one.axes if len(axis.values) == 1}} for one in (old, new)]
        named = {*self.a.axes(), *self.b.axes()}        # part of the points' names
        for name in dict.fromkeys([*sides[0], *sides[1]]):
            values = [show_value(known.get(name)) for known in sides]
            if values[0] != values[1] and name not in named:
                yield f"differs: {name}: {values[0]} -> {values[1]}"
        yield from (f"differs: {line}" for part in past.differing(old.environment, new.environment) for line in part)

    def figure(self, title: "str | None") -> plots.Figure:
        shown = [one for one in self.judged if one.change is not None]
        if len(shown) > MOST:
            raise results.ResultsError(f"--plot: {len(shown)} points are more than the {MOST} that have room: choose some "
                                       "by --where")
        panel = plots.Panel("", "%", None, begin=None, what="B against A", rows=[one.point for one in shown])
        for row, one in enumerate(shown):
            name, change = plots.gid(one.point), one.change or 0.0
            words = f"{one.point}\n{output.interval(one)}: {one.verdict}"
            mark = plots.Mark(float(row), change, words, *(change if end is None else end for end in (one.low, one.high)))
            panel.lines += [plots.Line(f"margin-{name}-{sign}", "", plots.TEXT, [plots.Mark(float(row), sign * self.margin)],
                                       "ceiling") for sign in (-1, 1)]
            panel.lines.append(plots.Line(f"bar-{name}", f"{output.percent(change)} %  {one.verdict}".replace("-", "\u2212"), COLOURS[one.verdict],
                                          [mark], "bar"))
        return plots.Figure("compare", f"{self.b.path} against {self.a.path}" if title is None else title, [[panel]],
                            f"lines: the interval, {CONFIDENCE:g} % sure of all; upright: the margin, {self.margin:g} %")

