"""Earlier sessions, read from netgate's or netsweep's files as slots of one side, to compare new slots with.

Old and new slots do not share noise, as those of a pair do, and a day may affect all of its slots. So a session counts
as one value, its mean, and Student's t test compares the new session with the spread of the earlier means. For
Gaussian session means the error is exact, with one degree of freedom fewer than there are sessions. A single session
says nothing about the spread: it is guessed from that of its slots."""

import contextlib
import datetime
import glob
import itertools
import json
import math
import os
import re
import shlex
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, NamedTuple, Sequence, Tuple

import numpy as np
from scipy.special import stdtr, stdtrit

from netkit import ceiling, files, results, units
from netkit.gate import output, stats, trial
from netkit.gate.bench import Bench, taken_of, unit_of
from netkit.gate.model import (A, B, BETTER, CANT_TELL, EQUAL, GATE_SCHEMA, WORSE, Gate, GateError, Judgement, Metric,
                               Point, Side, Slot, View)
from netkit.gate.points import DEFAULTS

LEAST_SLOTS = 4         # in a session that is the only one, and in the new one
MOST_SLOTS = 200        # of a point in the new session
# Where the spread of session means is unknown: how many times that of the slots it is taken to be (0.5 to 1.2 were
# measured, doc/gate.md), and its lower bound, as a log.
BETWEEN, LEAST_BETWEEN = 1.5, 0.01
MOST_CORRELATION = 0.9
NARROW = 1.1            # stop when the variance is within this factor of what infinitely many slots would leave
FEW_SESSIONS = 5        # with fewer, most of the interval's width comes from their number
A_DAY = 20 * 3600.0     # seconds
# Which names of facts() distinguish one machine from another.
OWN = "seed"            # of the order of slots: differs in every session
ACCEPTED, ACCEPTED_SCHEMA = "accepted", "plumbline-accepted/1"     # a file in a history's directory, and the schema of its lines
MACHINE = re.compile(r"(^|\.)(hostname|cpu|interface\.(name|driver|speed))$")


class Slots:
    """A point's slots as columns: figures (NaN: none), share of time disturbed, seconds, and the figures' units."""

    def __init__(self, figures: "Dict[str, Any]", taken: "Sequence[float | None]", lengths: "Sequence[float]",
                 units: "Dict[str, str]", failed: int = 0) -> None:
        self._figures = {name: np.array(values, dtype=float) for name, values in figures.items()}
        self.taken, self.lengths = np.array(taken, dtype=float), np.array(lengths, dtype=float)
        self.units, self.failed = units, failed

    @classmethod
    def of(cls, slots: "Sequence[Slot]") -> "Slots":
        names = dict.fromkeys(name for slot in slots for name in slot.figures)
        units = {name: unit for slot in reversed(slots) for name, unit in slot.units.items()}
        return cls({name: [math.nan if slot.failed else slot.figures.get(name, math.nan) for slot in slots] for name in names},
                   [slot.taken for slot in slots], [slot.length for slot in slots], units, sum(bool(slot.failed) for slot in slots))

    @classmethod
    def of_runs(cls, runs: "Sequence[results.Run]", constants: "Dict[str, Any]") -> "Slots":
        figures, units, told = {}, {}, [in_mbits(run.result) for run in runs]
        for name in dict.fromkeys(itertools.chain.from_iterable(told)):
            values = [one.get(name) for one in told]
            kinds = set(map(type, values))
            if kinds & {int, float}:
                figures[name] = values if kinds == {float} and max(map(abs, values)) <= results.MOST_FIGURE else [
                    value if results.is_figure(value) else math.nan for value in values]
                units[name] = next(unit_of(name, one) for one, value in zip(told, values) if type(value) in (int, float))
        length = constants.get("length")
        lengths = [run.point.get("length", length) for run in runs]
        return cls(figures, [taken_of(run.more.get("disturbed") or {}, str(run.more.get("link", ""))) if run.more else None for run in runs],
                   [length if results.is_number(length) else 0.0 for length in lengths], units)

    @classmethod
    def joined(cls, several: "Sequence[Slots]") -> "Slots":
        names = dict.fromkeys(name for one in several for name in one._figures)
        return cls({name: np.concatenate([one._column(name) for one in several]) for name in names},
                   *(np.concatenate([[], *(getattr(one, name) for one in several)]) for name in ("taken", "lengths")),
                   {name: unit for one in reversed(several) for name, unit in one.units.items()}, sum(one.failed for one in several))

    def __len__(self) -> int:
        return len(self.taken)

    def __contains__(self, figure: str) -> bool:
        return figure in self._figures

    def _column(self, name: str) -> Any:
        return self._figures.get(name, np.full(len(self), math.nan))

    def all(self, metric: Metric) -> "List[float]":
        """All figures, zeros included."""
        values = self._column(metric.name)
        return values[values >= 0].tolist()

    def usable(self, metric: Metric, clean: bool = True) -> "List[float]":
        """The figures that count and have a logarithm."""
        values = self._column(metric.name)
        return values[(values > 0) & ~(clean & (self.taken > trial.MUCH))].tolist()

    def silent(self, metric: Metric) -> int:
        """How many slots gave no result."""
        return len(self) - int(np.sum(self._column(metric.name) > 0)) if metric.more_is_better else self.failed


def in_mbits(result: "Dict[str, Any]") -> "Dict[str, Any]":
    """The result with throughputs in 10^6 bits/s, as a gate has them, whatever -f a sweep was run with."""
    told = str(result.get("THROUGHPUT_UNITS") or "")
    return result if ceiling.factor_of(told) == 1 else {
        **{name: ceiling.in_unit(value, told) if name.endswith("THROUGHPUT") and results.is_number(value) else value
           for name, value in result.items()}, "THROUGHPUT_UNITS": ceiling.STREAM_UNIT}


NO_SLOTS = Slots({}, [], [], {})


@dataclass
class Session:
    """One side of a session in a file: its good slots by point. All statistics about the past are over sessions."""
    path: str
    started: str = ""
    environment: "Dict[str, Any]" = field(default_factory=dict)
    slots: "Dict[str, Slots]" = field(default_factory=dict)
    points: "Dict[str, Point]" = field(default_factory=dict)    # if it is a gate's session
    side: str = B
    bad: "set[str]" = field(default_factory=set)                # points of a gate where this side was worse
    failed: "Dict[str, int]" = field(default_factory=dict)      # failed slots, by point

    @property
    def day(self) -> str:
        return self.started[:16].replace("T", " ")

    def figures(self, point: str, metric: Metric, clean: bool = True) -> "List[float]":
        """Figures of the slots that count; of all slots, if the processors were disturbed in most of them."""
        slots = self.slots.get(point, NO_SLOTS)
        found = slots.usable(metric, clean)
        return found if 2 * len(found) >= len(slots) else slots.usable(metric, False)

    def silent(self, point: str, metric: Metric) -> "Tuple[int, int]":
        """How many slots gave no result, and of how many."""
        slots, failed = self.slots.get(point, NO_SLOTS), self.failed.get(point, 0)
        return failed + slots.silent(metric), failed + len(slots)

    def metrics(self, point: str) -> "Tuple[Metric, ...]":
        """The metrics judged at a point: a gate's criteria; for a sweep, the throughput."""
        if point in self.points:
            return self.points[point].metrics
        name = DEFAULTS.get(self.test(point), "")
        return (Metric(name) if name in self.slots[point] else Metric(),)

    def test(self, point: str) -> str:
        return self.points[point].test if point in self.points else point.partition(".")[0].upper()


def mean(figures: "Sequence[float]") -> "Tuple[float, float]":
    """Mean and standard deviation of the logarithms."""
    logs = np.log(figures)
    return float(np.mean(logs)), float(np.std(logs, ddof=1)) if len(logs) > 1 else 0.0


def read(path: str, side: str) -> "Tuple[List[Session], List[str]]":
    """Sessions of a file or directory, oldest first, and notes on files left out. Raises GateError if none is left."""
    if not os.path.isdir(path):
        return in_order(read_file(path, side)), []
    found: "List[Session]" = []
    notes = []
    for name in sorted(glob.glob(os.path.join(glob.escape(path), "*.json*"))):
        try:
            found += read_file(name, side)
        except GateError as fault:
            notes.append(f"left out: {fault}")
    if not found:
        raise GateError(notes[0] if notes else f"{path}: no file of netgate's or netsweep's (*.jsonl) in it")
    return in_order(found), notes


def accepted_file(path: str) -> str:
    return os.path.join(path if os.path.isdir(path) else os.path.dirname(path), ACCEPTED)     # the one beside a file


def accepted(path: str) -> "Dict[str, Dict[str, str]]":
    """For each point, the first and last session of the change that was accepted there. Raises GateError."""
    path = accepted_file(path)
    with files.raising(GateError, path), contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
        return {known.get("point", ""): known for _, known in output.objects(file.read(), path)}
    return {}


def in_order(found: "Sequence[Session]") -> "List[Session]":
    """Sort sessions by their start. Copies of a session are dropped; that with the most good slots stays."""
    one_each = {(session.started, json.dumps(session.environment, sort_keys=True)): session
                for session in sorted(reversed(found), key=lambda one: sum(map(len, one.slots.values())))}
    return sorted(one_each.values(), key=lambda session: session.started)


def read_file(path: str, side: str) -> "List[Session]":
    with files.raising(GateError, path), open(path, "rb") as file:
        first = file.readline()
    if GATE_SCHEMA.encode() in first:
        return [of_gate(path, gate, side) for gate in output.sessions(path)]
    try:
        return [of_sweep(results.read(path))]
    except results.ResultsError as fault:
        raise GateError(str(fault).replace("of netsweep's", "of netgate's or netsweep's")) from None


def of_gate(path: str, gate: Any, side: str) -> Session:
    """A gate's session, without the A/A slots, whose length may differ."""
    made = Session(path, gate.started, gate.environment, points={point.name: point for point in gate.points}, side=side,
                   bad={one.point for one in gate.judgements if side == B and one.verdict == WORSE})
    mine = [slot for slot in gate.slots if slot.side == side and slot.pair]
    made.failed.update(Counter(slot.point for slot in mine if slot.failed))
    for point in dict.fromkeys(slot.point for slot in mine if not slot.failed):
        made.slots[point] = Slots.of([slot for slot in mine if slot.point == point and not slot.failed])
    return made


def of_sweep(sweep: results.Results, names: "Sequence[str] | None" = None) -> Session:
    """A sweep as a session: each run is a slot. Points are named by test and axes, such as tcp_stream.mtu9000."""
    made, called = Session(sweep.path, sweep.header.started, sweep.header.environment), {}
    good: "Dict[str, List[results.Run]]" = defaultdict(list)
    for run in sweep.runs:
        if run.place not in called:
            called[run.place] = sweep_point(sweep.header, run, names)
        if run.status == "ok":
            good[called[run.place]].append(run)
        elif not run.excluded:
            made.failed[called[run.place]] = made.failed.get(called[run.place], 0) + 1
    made.slots = {name: Slots.of_runs(runs, sweep.header.constants) for name, runs in good.items()}
    return made


def sweep_point(header: results.Header, run: results.Run, names: "Sequence[str] | None" = None) -> str:
    """The name of a run's point: test and axes, or test and the given names."""
    known = {**header.constants, **run.point}
    test = str(known.get("test", "run")).lower()
    axes = [f"{name}{units.show_value(known.get(name))}" for name in (
        run.point if names is None else names) if name != "test"]
    return re.sub(r"[^\w.-]+", "_", ".".join([test, *axes]))


def facts(environment: "Dict[str, Any]") -> "Dict[str, str]":
    """What is known of the environment, by names such as "client.kernel"; once if both ends are the same."""
    alike = environment.get("client") == environment.get("server")
    known = {name: value for name, value in environment.items() if name not in (OWN, "server" if alike else OWN)}
    return {name: value if isinstance(value, str) else json.dumps(value)
            for name, value in units.flatten(known, between=".") if value not in ("", [])}


def differing(old: "Dict[str, Any]", new: "Dict[str, Any]") -> "Tuple[List[str], List[str]]":
    """What differs, if both environments know it: lines about what makes it another machine, and other lines."""
    before, after = facts(old), facts(new)
    lines: "Tuple[List[str], List[str]]" = [], []
    for name in before:
        if after.get(name, before[name]) != before[name]:
            lines[not MACHINE.search(name)].append(
                f"{name.replace('.', ' ')}: {before[name]} -> {after[name]}")
    return lines


class Against(NamedTuple):
    """The new session against earlier ones: a log ratio with its standard error."""
    margin: float
    more_is_better: bool
    change: float
    error: float
    free: float             # degrees of freedom

    def beyond(self, sign: float, edge: float) -> float:
        """The two-sided error probability of the claim that the change is above an edge (sign 1) or below it (-1)."""
        return min(1.0, 2 * float(stdtr(self.free, -sign * (self.change - edge) / self.error)))

    def best(self) -> "Tuple[str, float]":
        return stats.best_verdict(self.beyond, self.margin, self.more_is_better)

    def bounds(self, error: float) -> "Tuple[float, float]":
        half = self.error * -float(stdtrit(self.free, error / 2))
        return self.change - half, self.change + half


class Spread(NamedTuple):
    """How much session means differ, and slots within a session; variances of logarithms."""
    means: "List[float]"
    between: float          # variance of session means, including what the variance of their slots contributes
    own: float              # that contribution
    slot: float             # variance of one new slot
    known: bool             # False: between is a guess

    def variance(self, count: float) -> float:
        """Variance of the difference between the past and a session of that many slots."""
        more = max(0.0, self.slot / count - self.own) if count else math.inf
        return self.between * (1 + 1 / len(self.means)) + more

    def narrow(self, count: int) -> bool:
        """Whether more slots would hardly narrow the interval."""
        return self.variance(count) <= NARROW * self.variance(math.inf)


def spread(sessions: "Sequence[Sequence[float]]", now: "Sequence[float]", least: float = LEAST_BETWEEN) -> Spread:
    """The spread, from each session's figures. New slots are assumed to be at least as noisy as old ones."""
    logs = [np.log(one) for one in sessions]
    then, slot = variance(logs), variance([np.log(now)])
    own = then * float(np.mean([1 / len(one) for one in logs]))
    means = [float(np.mean(one)) for one in logs]
    guess = max(least ** 2, BETWEEN ** 2 * then)
    between = guess + own if len(means) == 1 else max(own, float(np.var(means, ddof=1)))
    return Spread(means, between, own, max(then, slot), len(means) > 1)


def variance(sessions: "Sequence[Any]") -> float:
    """Variance of a slot within its session, corrected for the correlation of slots in a row."""
    free = max(1, sum(len(one) for one in sessions) - len(sessions))
    residues = [one - np.mean(one) for one in sessions]
    found = sum(float(np.sum(one ** 2)) for one in residues) / free
    pairs = sum(float(np.dot(one[1:], one[:-1])) for one in residues)
    lean = min(MOST_CORRELATION, max(0.0, pairs / (found * free))) if found > 0 else 0.0
    return max(stats.LEAST_NOISE ** 2, found * (1 + lean) / (1 - lean))


@dataclass
class Row:
    """A metric of a point compared with its past."""
    point: str
    metric: Metric
    spread: Spread
    now: "List[float]"
    against: Against
    best: "Tuple[str, float]"       # the verdict with the smallest error probability, and that probability
    left_out: int
    why: str = ""                   # why it can't be told
    notes: "List[str]" = field(default_factory=list)

    def note(self, text: str, doubtful: bool) -> None:
        """Of what is doubtful the first note is the reason."""
        if doubtful and not self.why:
            self.best, self.why = (CANT_TELL, 1.0), text
        else:
            self.notes.append(text)


@dataclass
class Baseline:
    path: str
    side: str
    sessions: "List[Session]"
    points: "Sequence[Point]"
    other_machine: bool = False
    notes: "List[str]" = field(default_factory=list)
    clean: bool = True
    checked: bool = False
    least: float = LEAST_BETWEEN

    def check(self, environment: "Dict[str, Any]") -> "List[str]":
        """Leave out other machines' sessions; returns notes on differences. Raises GateError if too little is left."""
        self.checked, notes = True, list(self.notes)
        if not self.other_machine:
            apart = [differing(one.environment, environment)[0] for one in self.sessions]
            left = [one for one, lines in zip(self.sessions, apart) if not lines]
            if not left:
                raise GateError(f"{self.path}: of another machine ({'; '.join(apart[-1])}): measure a baseline on this "
                                "one, or say --other-machine")
            if len(left) < len(self.sessions):
                notes.append(f"{len(self.sessions) - len(left)} sessions of another machine are left out")
            self.sessions = left
        for point in self.points:
            notes += self._suffices(point)
        if len(self.sessions) > 1 and span(self.sessions) < A_DAY:
            notes.append(f"all earlier sessions began within {units.show_duration(span(self.sessions))}: differences "
                         "between days are unknown")
        newest = self.sessions[-1]
        lines = [line for part in differing(newest.environment, environment) for line in part]
        if lines:
            notes.append(f"since the newest session of the baseline: {'; '.join(lines)}")
        return [*notes, *(note for point in self.points for note in self._options(point))]

    def _suffices(self, point: Point) -> "Iterator[str]":
        for metric in point.metrics:
            counts = [count for count in (len(one.figures(point.name, metric)) for one in self.sessions) if count]
            if not counts:
                names = sorted({name for one in self.sessions for name in one.slots})
                raise GateError(f"{self.path}: no {metric.name} of {point.name} on side {self.side}: it has "
                                f"{', '.join(names) or 'no good slot of that side'}")
            if len(counts) == 1 and counts[0] < LEAST_SLOTS:
                raise GateError(f"{self.path}: {counts[0]} slot{'s' * (counts[0] > 1)} of {point.name}: no baseline "
                                f"({LEAST_SLOTS} at least, better several sessions): measure it for longer")
            name = f"{point.name} {metric.name}"
            if len(counts) == 1:
                yield (f"{name}: one earlier session only: differences between days are unknown, {BETWEEN:g} times "
                       f"those between its slots are taken for them, {100 * LEAST_BETWEEN:g} % at least")
            elif len(counts) < FEW_SESSIONS:
                yield (f"{name}: {len(counts)} earlier sessions only: with {FEW_SESSIONS} or more the interval is much "
                       "narrower")

    def _options(self, point: Point) -> "Iterator[str]":
        """Notes about options of netperf that differ from then."""
        old = self.sessions[-1].points.get(point.name)
        if not old:
            return
        if old.test != point.test:
            raise GateError(f"{self.path}: {point.name} was {old.test} there, and is {point.test} here")
        for line in given(old.side(self.side), point.b):
            yield f"{point.name}: {line}"

    def length(self, point: Point) -> float:
        """A slot's length in seconds: that of old ones, as start-up has a larger share of shorter slots."""
        known = self.then(point).lengths
        return max(0.1, round(float(np.median(known[known > 0])), 1)) if any(known > 0) else trial.LEAST_SLOT

    def then(self, point: Point) -> Slots:
        return Slots.joined([one.slots[point.name] for one in self.sessions if point.name in one.slots])

    def row(self, point: Point, metric: Metric, now: Slots, error: float) -> "Row | None":
        """The comparison; None before there are two slots. If processors are disturbed more or less than in the past,
        by B or by a neighbour, the verdict must hold both for all slots and for the undisturbed ones."""
        unlike = leaning(self.then(point), now, error) if self.clean else ""
        most = self.clean and 2 * len(now.usable(metric)) < len(now)
        made = self._row(point, metric, now, clean=self.clean and not (unlike or most))
        if made and unlike:
            other = self._row(point, metric, now, clean=True)
            made.note(unlike, other is None or other.best[0] != made.best[0])
            made.best = (made.best[0], max(made.best[1], other.best[1] if other else 1.0))
        elif made and most:
            made.notes.append("processors were taken in most slots: all count")
        then = self.then(point)
        zeros = [0 if metric.more_is_better else slots.all(metric).count(0) for slots in (then, now)]
        if made and any(zeros):     # they have no logarithm; a verdict that they only strengthen stays
            made.note(f"{zeros[1]} of {len(now)} slots gave 0, and {zeros[0]} of {len(then)} in the past",
                      made.best[0] != (WORSE if not zeros[1] else BETTER if not zeros[0] else ""))
        silent, before = now.silent(metric), self._silent(point, metric)
        if made and silent > len(now) * (trial.FAILING + before[0] / max(1, before[1])):
            made.note(f"{silent} of {len(now)} slots gave nothing, and {before[0]} of {before[1]} in the past",
                      made.best[0] == EQUAL)    # a side that fails more often is not equal
        return made

    def _row(self, point: Point, metric: Metric, slots_now: Slots, clean: bool) -> "Row | None":
        now = slots_now.usable(metric, clean)
        sessions = [figures for figures in (one.figures(point.name, metric, clean) for one in self.sessions) if figures]
        if len(now) < 2 or not sessions:
            return None
        found = spread(sessions, now, self.least)
        free = len(found.means) - 1 if found.known else sum(map(len, sessions)) + len(now) - 2
        change = mean(now)[0] - float(np.mean(found.means))
        against = Against(stats.as_log(metric.margin), metric.more_is_better, change,
                          math.sqrt(found.variance(len(now))), free)
        return Row(point.name, metric, found, now, against, against.best(), len(slots_now) - len(now))

    def judge_all(self, asked: "Sequence[Tuple[Point, Metric, Slots]]", confidence: float
                  ) -> "List[Judgement]":
        """Judge all rows together by Holm's procedure."""
        error = 1 - confidence / 100
        rows = [self.row(*one, error) for one in asked]
        told = stats.judge([row.best if row else self._nothing(*one) for row, one in zip(rows, asked)], error)
        return [judgement(row, verdict, at) if row else self._without_figures(*one, verdict)
                for row, one, (verdict, at) in zip(rows, asked, told)]

    def _without_figures(self, point: Point, metric: Metric, now: Slots, verdict: str) -> Judgement:
        if verdict != WORSE:
            return Judgement(point.name, metric, verdict, left_out=len(now), why="fewer than two good slots")
        silent, tried = self._silent(point, metric)
        return Judgement(point.name, metric, verdict, left_out=len(now),
                         words=f"{point.name}: all {len(now)} slots gave nothing, and {silent} of {tried} in the past")

    def _silent(self, point: Point, metric: Metric) -> "List[int]":
        """How many slots of the past gave no result, and of how many."""
        return [sum(of) for of in zip(*(one.silent(point.name, metric) for one in self.sessions))]

    def _nothing(self, point: Point, metric: Metric, now: Slots) -> "Tuple[str, float]":
        """The verdict if no new slot gave a result, and its error probability by Fisher's exact test."""
        silent, tried = self._silent(point, metric)
        if len(now) < LEAST_SLOTS or now.silent(metric) < len(now):
            return CANT_TELL, 1.0
        return WORSE, min(1.0, 2 * math.comb(silent + len(now), len(now)) / math.comb(tried + len(now), len(now)))


def given(old: Side, new: Side) -> "Iterator[str]":
    """How the options and settings of two sides differ."""
    for what in ("globals", "options", "settings", "before"):
        then, now = getattr(old, what), getattr(new, what)
        if then != now:
            yield f"{what}: {words(then)} -> {words(now)}"


def span(sessions: "Sequence[Session]") -> float:
    """Seconds from the first session to the last; infinite if a file does not say when."""
    try:
        first, last = (datetime.datetime.fromisoformat(one.started.replace("Z", "+00:00"))
                       for one in (sessions[0], sessions[-1]))
        return (last - first).total_seconds()
    except (ValueError, TypeError):
        return math.inf


def words(of: "Sequence[Any]") -> str:
    return shlex.join(" ".join(one) if isinstance(one, tuple) else one for one in of) or "none"


def leaning(then: Slots, now: Slots, error: float) -> str:
    """A note, if processors were disturbed significantly more now than in the past, or less; else ""."""
    shares = [slots.taken[slots.taken >= 0].tolist() for slots in (then, now)]
    if not all(shares) or not any(map(any, shares)):
        return ""
    from scipy.stats import mannwhitneyu    # slow to import: only where it is needed
    if not mannwhitneyu(*shares, alternative="two-sided").pvalue <= error:
        return ""
    old, new = (100 * sum(one) / len(one) for one in shares)
    return (f"others had processors for {old:.0f} % of the time in the past and {new:.0f} % now: a verdict has to hold "
            "of all slots and of those without")


def judgement(row: Row, verdict: str, error: float) -> Judgement:
    found, against = row.spread, row.against
    low, high = map(stats.as_percent, against.bounds(error))
    made = Judgement(row.point, row.metric, verdict, stats.as_percent(against.change), low, high,
                     math.exp(mean(row.now)[0]), math.exp(float(np.mean(found.means))),
                     pairs=len(row.now), left_out=row.left_out, noise=100 * math.sqrt(2 * found.between),
                     notes=list(row.notes))
    sessions = len(found.means)
    made.notes.append(f"A is {sessions} earlier session{'s' * (sessions > 1)}, B {len(row.now)} slots of now")
    made.why = row.why
    if verdict == CANT_TELL and not row.why:
        made.more_pairs = more_slots(row, error)
        if made.more_pairs is None:
            made.why = (f"more slots would not help: sessions differ by {100 * math.sqrt(found.between):.3g} %"
                        + ("" if found.known else ", as far as is known") + "; more sessions would")
    return made


def more_slots(row: Row, error: float) -> "int | None":
    """About how many more slots a verdict needs if all are like these; None if no number of slots would do."""
    done = len(row.now)
    if row.spread.narrow(done):
        return None
    for count in range(done + 1, MOST_SLOTS):
        if row.against._replace(error=math.sqrt(row.spread.variance(count))).best()[1] <= error:
            return count - done
    return None


def baseline(path: str, points: "Sequence[Point]", side: str = B, other_machine: bool = False,
             clean: bool = True) -> Baseline:
    """The sessions to compare these points with, from a file or a directory. From a directory, sessions before an
    accepted change are left out, as are candidates that were worse and not accepted. Raises GateError."""
    sessions, notes = read(path, side)
    known, left_out = accepted(path) if os.path.isdir(path) else {}, 0
    for one in sessions if os.path.isdir(path) else []:
        for point in {**one.slots, **one.failed}:
            since = known.get(point, {})
            if one.started < since.get("from", "") or point in one.bad and one.started > since.get("until", ""):
                one.slots.pop(point, None)
                one.failed.pop(point, None)
                left_out += 1
    good = [session for session in sessions if any(session.slots.values())]
    if not good and left_out:
        raise GateError(f"{path}: side {side} was worse in all sessions (netgate --history DIR --accept accepts that)")
    if not good:
        raise GateError(f"{path}: not one good slot of side {side}: --baseline-side {A if side == B else B} takes the "
                        "other")
    if left_out:
        notes.append(f"left out as worse, or older than what was accepted: {left_out} sessions of a point")
    return Baseline(path, side, good, points, other_machine, notes, clean)


class Alone(trial.Trial):
    """Slots of one side, in rounds of all points: of A for later use, of B against the past. How many a point gets
    depends on their spread, never on the verdict, so looking at each slot costs no error probability."""

    def __init__(self, gate: Gate, bench: Bench, view: View, options: trial.Options, past: "Baseline | None",
                 **more: Any) -> None:
        super().__init__(gate, bench, view, options, **more)
        self._past, self._side = past, B if past else A
        self._slots: "Dict[str, List[Slot]]" = {point.name: [] for point in gate.points}
        for track in self._tracks:
            track.length = options.slot or (past.length(track.point) if past else trial.LEAST_SLOT)

    def _warn(self) -> None:
        """There are no pairs."""

    def _learn(self) -> None:
        """The noise is known from the past."""

    def _pairs(self) -> None:
        number = 0
        while True:
            waiting = [track for track in self._tracks if not self._enough(track)]
            number += 1
            for track in waiting:
                if not self._fits(track):
                    return
                slot = self._slot(track, self._side, number, track.length)
                self._slots[track.point.name].append(slot)
                self.view.slot(slot, self.gate, self._judged(track))
            if not waiting:
                return

    def _fits(self, track: trial.Track) -> bool:
        done = self._slots[track.point.name]
        each = track.seconds / len(done) if done else track.length
        return self._spent() + each <= self.options.budget

    def _enough(self, track: trial.Track) -> bool:
        slots, past = self._slots[track.point.name], self._past
        rows = [past and past.row(track.point, metric, Slots.of(slots), 1 - self.options.confidence / 100)
                for metric in track.point.metrics]
        return len(slots) >= MOST_SLOTS or all(
            row and len(row.now) >= LEAST_SLOTS and row.spread.narrow(len(row.now)) for row in rows)

    def _judged(self, only: "trial.Track | None" = None) -> "List[Judgement]":
        asked = [(track.point, metric, Slots.of(self._slots[track.point.name])) for track in self._tracks
                 for metric in track.point.metrics]
        found = self._past.judge_all(asked, self.options.confidence) if self._past else []
        for track in self._tracks:
            for one in found:
                if one.point == track.point.name:
                    one.seconds = track.seconds
                    one.unit = Slots.of(self._slots[one.point]).units.get(one.metric.name, "")
        return [one for one in found if only is None or one.point == only.point.name]


def run_alone(gate: Gate, bench: Bench, view: View, options: trial.Options, past: "Baseline | None" = None) -> None:
    """As trial.run(), but of B against the past; without a past, of A."""
    if past and not past.checked:
        gate.notes += past.check(gate.environment)
    Alone(gate, bench, view, options, past).run()
