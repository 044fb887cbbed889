"""The history of a machine: the mean of each session, and where it changed for good.

E-divisive splits where the two parts differ most by the energy statistic, then each part likewise, while a permutation
test rejects chance. If nothing ever changed, the innovations of sessions are exchangeable, and the first test finds a
change with at most its nominal probability, whatever the distribution. The correlation of successive sessions is that
of an autoregressive series of order one within the segments, corrected for the bias from subtracting their means.

    Matteson, James, A nonparametric approach for multiple change point analysis of multivariate data, JASA 109 (2014).
    Marriott, Pope, Bias in the estimation of autocorrelations, Biometrika 41 (1954).
    Besag, Clifford, Sequential Monte Carlo p-values, Biometrika 78 (1991): when to stop permuting."""

import datetime
import fnmatch
import functools
import itertools
import json
import math
import re
import sys
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Sequence, TextIO, Tuple

import numpy as np

from netkit import draw, files, plots, python, results, units
from netkit.gate import past
from netkit.gate.model import A, B, BETTER, EQUAL, WORSE, GateError, Metric
from netkit.gate.past import Session
from netkit.gate.trial import FAILING

HISTORY_SCHEMA = "plumbline-history/1"
LEAST = 2               # sessions in a segment
MOST = 300              # the newest sessions that are examined
EXCEEDANCES = 10        # permutations at least as good as the split that make it insignificant
PERMUTATIONS = 499      # number of permutations, if fewer than EXCEEDANCES are as good
AT_ONCE = 200_000       # distances held in memory at a time
LEANING = 0.3           # lag-1 correlation of sessions that is worth a note
MOST_CORRELATION = 0.9
SEGMENT = 10            # sessions per candidate segment, so that changes are not taken for correlation
# Nightly readings share the error probability: each spends at most SPENT, and SPENT_SESSIONS / n with n sessions.
SPENT, SPENT_SESSIONS = 0.5, 16
FORMS = ("svg", "png", "pdf")
# Percentage of slots with a result: a series of its own unless always 100. NOTHING stands for 0, which has no log.
GIVING, NOTHING = Metric("SLOTS_WITH_RESULT", 100 * FAILING), 0.1


@functools.lru_cache(maxsize=64)
def weights(n: int) -> "Tuple[Any, Any, Any]":
    """Weights of the sums of distances, for n values: of both parts and, negative, within the first and the second.
    Rows are the ends of the first part, columns those of the second; 0 where a part is too short."""
    first = np.arange(n + 1.0)[:, None] + np.zeros(n + 1)
    second = first.T - first
    there = (first >= LEAST) & (second >= LEAST)
    with np.errstate(divide="ignore", invalid="ignore"):
        of_both, of_first, of_second = (np.where(there, weight, 0.0) for weight in (
            2 / (first + second), second / first / (first + second), first / second / (first + second)))
    of_sums = of_both + 2 * of_second
    return of_sums, of_sums + of_first - of_second, of_second


def divergence(series: "Any") -> "Any":
    """Energy statistics of adjacent parts that end at the row and the column. The second may end early, as dips do."""
    sums = np.zeros((len(series), series.shape[1] + 1, series.shape[1] + 1))
    distances = np.abs(series[:, :, None] - series[:, None, :])
    np.cumsum(np.cumsum(distances, axis=1), axis=2, out=sums[:, 1:, 1:])
    within = np.diagonal(sums, axis1=1, axis2=2).copy()
    of_sums, of_within, of_second = weights(series.shape[1])
    sums *= of_sums
    sums -= of_within * within[:, :, None]
    sums -= of_second * within[:, None, :]
    return sums


def best_split(series: "Any", ends: "Sequence[int]") -> "Tuple[Any, Any, Any]":
    """For series with the same ends: the greatest statistic in a segment, where its second part begins and ends."""
    most, where, until = np.full(len(series), -1.0), *np.zeros((2, len(series)), dtype=int)
    for begin, end in zip(ends, ends[1:]):
        if end - begin < 2 * LEAST:
            continue
        found = divergence(series[:, begin:end]).reshape(len(series), -1)
        index = found.argmax(axis=1)
        value = found[np.arange(len(series)), index]
        where = np.where(value > most, begin + index // (end - begin + 1), where)
        until = np.where(value > most, begin + index % (end - begin + 1), until)
        most = np.maximum(most, value)
    return most, where, until


def splits(series: "Any", ends: "Sequence[int]") -> "List[int]":
    """The ends plus the best further splits, significant or not, up to one segment per SEGMENT sessions."""
    made = list(ends)
    while len(made) - 1 < max(len(ends), len(series) // SEGMENT):
        most, where, until = best_split(series[None, :], made)
        if most[0] <= 0:
            break
        made = sorted({*made, int(where[0]), int(until[0])})
    return made


def correlation(values: "Any", ends: "Sequence[int]") -> float:
    """Lag-1 correlation of sessions within segments, at least 0. Each subtracted mean lowers it by (1 + 3 r) / n, and
    each end that was chosen to fit counts as one more mean."""
    rests = [values[begin:end] - np.mean(values[begin:end]) for begin, end in zip(ends, ends[1:])]
    total, n, means = sum(float(rest @ rest) for rest in rests), len(values), 2 * len(rests)
    if total <= 1e-12 * n * max(1e-12, float(np.var(values))) or n <= len(rests):
        return 0.0
    found = sum(float(rest[1:] @ rest[:-1]) for rest in rests) / total * n / (n - len(rests))
    return min(MOST_CORRELATION, max(0.0, (found + means / n) / max(0.2, 1 - 1.5 * means / n)))


def permuted(series: "Any", ends: "Sequence[int]", lean: float, times: int, rng: "Any") -> "Any":
    """Copies of the series with the innovations of sessions permuted within each segment."""
    made = np.tile(series, (times, 1))
    for begin, end in zip(ends, ends[1:]):
        part, mean = made[:, begin:end], np.mean(series[begin:end])
        part -= mean
        part[:, 1:] -= lean * part[:, :-1]
        part[:, 0] *= math.sqrt(1 - lean * lean)
        part[:] = rng.permuted(part, axis=1)
        part[:, 0] /= math.sqrt(1 - lean * lean)
        for at in range(1, end - begin if lean else 0):
            part[:, at] += lean * part[:, at - 1]
        part += mean
    return made


def chance(series: "Any", ends: "Sequence[int]", lean: float, most: float, level: float, rng: "Any") -> float:
    """The p-value of a split: how often chance gives one as good."""
    total = max(PERMUTATIONS, math.ceil(5 / level) - 1)
    done = as_good = 0
    while done < total:
        times = min(total - done, max(1, min(25, AT_ONCE // len(series) ** 2)))
        found, *_ = best_split(permuted(series, ends, lean, times, rng), ends)
        so_far = as_good + np.cumsum(found >= most * (1 - 1e-12))
        if so_far[-1] >= EXCEEDANCES:
            return EXCEEDANCES / (done + int(np.searchsorted(so_far, EXCEEDANCES)) + 1)
        as_good, done = int(so_far[-1]), done + times
    return (as_good + 1) / (total + 1)


def least_p(count: int, part: int) -> float:
    """The smallest possible p-value of a step, at either end, that has `part` of `count` sessions."""
    return 2 / math.comb(count, part)


def spent(level: float, count: int) -> float:
    """The error probability that a reading with this number of sessions may spend."""
    return level * min(SPENT, SPENT_SESSIONS / count)


def fewest(level: float) -> int:
    """The smallest number of sessions with which a change can be significant."""
    return next(count for count in itertools.count(2 * LEAST) if least_p(count, count // 2) <= spent(level, count))


def change_points(values: "Sequence[float]", level: float = 0.05, seed: int = 1) -> "List[Tuple[int, float]]":
    """Where new segments begin, with their p-values. If nothing changed, the list is empty except with probability
    `level`, and twice that over all readings while a series grows to 90 values."""
    series, rng = np.asarray(values, dtype=float), np.random.default_rng(seed)
    found: "Dict[int, float]" = {}
    now = spent(level, max(1, len(series)))
    while len(series) >= fewest(level):
        ends = [0, *sorted(found), len(series)]
        most, where, until = best_split(series[None, :], ends)
        if most[0] <= 0:    # no segment can be split, or all values are equal
            break
        lean = correlation(series, splits(series, ends))
        p = chance(series, ends, lean, float(most[0]), now, rng)
        if p > now:
            break
        found[int(where[0])] = p
    return sorted(found.items())


@dataclass
class Change:
    """A step in a series."""
    index: int                          # of the first session after the step
    before: float                       # geometric means of the segments
    after: float
    p: float
    verdict: str                        # equal: smaller than the margin
    differs: "List[str]" = field(default_factory=list)      # kernels, versions and options that changed with it, as far as the files say

    @property
    def percent(self) -> float:
        return 100 * (self.after / self.before - 1)


@dataclass
class Series:
    """A metric of a point, session by session."""
    point: str
    metric: Metric
    sessions: "List[Session]" = field(default_factory=list)
    means: "List[float]" = field(default_factory=list)      # mean logarithm of each session, and standard deviation
    spreads: "List[float]" = field(default_factory=list)
    counts: "List[int]" = field(default_factory=list)       # slots in each session
    changes: "List[Change]" = field(default_factory=list)
    unit: str = ""
    worse: "Optional[Change]" = None    # the change since which the series has been worse
    missing: int = 0                    # further sessions like the newest ones that would make a possible step significant

    @property
    def name(self) -> str:
        return f"{self.point} {self.metric.name}"

    def add(self, session: Session, mean: float, spread: float, count: int) -> None:
        self.sessions.append(session)
        self.means.append(mean)
        self.spreads.append(spread)
        self.counts.append(count)

    def ends(self) -> "List[int]":
        return [0, *(change.index for change in self.changes), len(self.means)]

    def segments(self) -> "List[Tuple[int, int]]":
        return list(zip(self.ends(), self.ends()[1:]))

    def noise(self) -> float:
        """Standard deviation of the sessions within segments, in percent."""
        inside = [np.var(self.means[begin:end]) * (end - begin) for begin, end in self.segments()]
        free = max(1, len(self.means) - len(inside))
        return 100 * math.sqrt(sum(inside) / free)

    def leans(self) -> float:
        return correlation(np.asarray(self.means), self.ends())

    def find(self, level: float, seed: int, since: str = "", accepted: str = "") -> None:
        """Find the changes. `worse` is one after `accepted`, from `since` on, before which values were better."""
        for index, p in change_points(self.means, level, seed):
            self.changes.append(Change(index, 0.0, 0.0, p, EQUAL))
        heights = [math.exp(np.mean(self.means[begin:end])) for begin, end in self.segments()]
        counted = [accepted < one.started >= since for one in self.sessions]
        counts = [one for one in self.changes if counted[one.index]]
        for change, before, after in zip(self.changes, heights, heights[1:]):
            change.before, change.after = before, after
            change.verdict = self._verdict(before, after)
            old, new = (self.sessions[change.index - back] for back in (1, 0))
            change.differs = list(itertools.chain(*past.differing(old.environment, new.environment)))
            if self.point in old.points and self.point in new.points:
                sides = [one.points[self.point].side(one.side) for one in (old, new)]
                change.differs += past.given(*sides)
        best = max if self.metric.more_is_better else min
        worst = best(counts, key=lambda one: one.before, default=None)
        self.worse = worst if worst and self._verdict(worst.before, heights[-1]) == WORSE else None
        self.missing = max(fewest(level) - len(self.means), self._missing(level, counted))

    def _verdict(self, before: float, after: float) -> str:
        if abs(100 * (after / before - 1)) <= self.metric.margin:
            return EQUAL
        return BETTER if (after > before) == self.metric.more_is_better else WORSE

    def _missing(self, level: float, counted: "Sequence[bool]") -> int:
        """How many more sessions it takes if the newest are all worse than their segment, but not significantly."""
        sign = 1 if self.metric.more_is_better else -1
        segment = sign * np.asarray(self.means[self.segments()[-1][0]:])
        for part in range(LEAST, len(segment) - LEAST + 1):
            old, new = segment[:-part], segment[-part:]
            worse = self._verdict(*(math.exp(sign * np.mean(one)) for one in (old, new))) == WORSE
            if worse and counted[-part] and np.max(new) < np.min(old) and least_p(len(segment), part) > spent(level, len(self.means)):
                return next(more for more in itertools.count(1)
                            if least_p(len(segment) + more, part + more) <= spent(level, len(self.means) + more))
        return 0


@dataclass
class History:
    series: "List[Series]"
    sessions: "List[Session]"
    confidence: float
    since: str = ""
    notes: "List[str]" = field(default_factory=list)

    def status(self, strict: bool = False) -> int:
        if any(one.worse for one in self.series):
            return 1
        return 0 if not any(one.missing for one in self.series) else 1 if strict else 77


def read(folder: str, side: str = B, metrics: "Sequence[Metric]" = (), confidence: float = 95.0,
         since: str = "", other_machine: bool = False, seed: int = 1, clean: bool = True) -> History:
    """Read a directory's history. Default metrics: the newest file's or, for sweeps, throughput. Raises GateError."""
    sessions, notes = past.read(folder, side)
    accepted = past.accepted(folder)
    sessions = [session for session in sessions if any(session.slots.values()) or session.failed]
    if not any(any(session.slots.values()) for session in sessions):
        raise GateError(f"{folder}: not one good slot of side {side}: "
                        f"--baseline-side {A if side == B else B} takes the other")
    if not other_machine:
        here = [one for one in sessions
                if not past.differing(one.environment, sessions[-1].environment)[0]]
        if len(here) < len(sessions):
            notes.append(f"{len(sessions) - len(here)} of {len(sessions)} sessions are of another machine than the "
                         "newest, and left out (--other-machine takes them)")
        sessions = here
    if len(sessions) > MOST:
        notes.append(f"the newest {MOST} of {len(sessions)} sessions")
        sessions = sessions[-MOST:]
    wanted = {(point, metric.name): metric for session in sessions for point in session.slots
              for metric in metrics or session.metrics(point)}
    made = [series_of(point, metric, sessions, clean) for (point, _), metric in sorted(
        wanted.items(), key=lambda one: one[0])]
    known = {one.point: one.metric for one in reversed(made) if one.means or not one.metric.more_is_better}
    silent = {point: [(one, *one.silent(point, metric)) for one in sessions] for point, metric in sorted(known.items())}
    giving = [shares_of(point, GIVING, [(one, tried - none, tried) for one, none, tried in counts]) for point, counts in silent.items()]
    above = [shares_of(one.point, Metric(f"{one.metric.name}_ABOVE_0", GIVING.margin, False), [
        (session, sum(value > 0 for value in figures), len(figures)) for session, figures in (
            (session, session.slots.get(one.point, past.NO_SLOTS).all(one.metric)) for session in sessions)])
        for one in made if not one.metric.more_is_better]
    made = [one for one in made if one.means] + [one for one in above if one.means and min(one.means) < math.log(100)]
    if not made:
        raise GateError(f"{folder}: no session has {', '.join(one.name for one in metrics) or 'a figure'}")
    made += [one for one in giving if min(one.means) < math.log(100)]
    never = {point for session in sessions for point in session.failed} - {point for point, _ in wanted}
    notes += [f"{point}: no good slot in any session" for point in sorted(never)]
    for one in made:
        until = accepted.get(one.point, {}).get("until", "")
        one.find((1 - confidence / 100) / len(made), seed, since, until)
        dead = [*itertools.takewhile(lambda index: one.means[index] == math.log(NOTHING), reversed(range(len(one.means))))]
        if one.metric is GIVING and not one.worse and dead and one.sessions[dead[-1]].started > until:
            one.missing = max(1, one.missing)
        if one.leans() > max(LEANING, 2 / math.sqrt(len(one.means))):
            notes.append(f"{one.name}: each session is like the one before (correlation {one.leans():.1f}): a change has to be "
                         "larger, or to last longer, to be found")
    return History(made, sessions, confidence, since, notes)


def series_of(point: str, metric: Metric, sessions: "Sequence[Session]", clean: bool = True) -> Series:
    made = Series(point, metric)
    for session in sessions:
        figures = session.figures(point, metric, clean)
        if figures:
            made.add(session, *past.mean(figures), len(figures))
            made.unit = session.slots[point].units.get(metric.name) or made.unit
    return made


def shares_of(point: str, metric: Metric, counts: "Sequence[Tuple[Session, int, int]]") -> Series:
    """A series of the percentage of slots with a result."""
    made = Series(point, metric, unit="%")
    for session, some, tried in counts:
        if tried:
            made.add(session, math.log(max(NOTHING, 100 * some / tried)), 0.0, tried)
    return made


def rows(history: History) -> "List[List[str]]":
    made = [["point", "metric", "sessions", "change at", "from", "to", "unit", "change", "p", ""]]
    for one in history.series:
        head = [one.point, one.metric.name, str(len(one.means))]
        for change in one.changes:
            made.append([*head, one.sessions[change.index].day, units.show_figure(change.before), units.show_figure(change.after),
                         one.unit, f"{change.percent:+.1f} %", f"{change.p:.2g}", said(change)])
            head = ["", "", ""]
        if not one.changes:
            made.append([*head, "-", units.show_figure(math.exp(np.mean(one.means))), "", one.unit, "", "",
                         f"no change, sessions differ by {one.noise():.3g} %" if not one.missing else
                         f"too few sessions to tell, {one.missing} missing"])
    return made


def said(change: Change) -> str:
    words = "less than the margin" if change.verdict == EQUAL else change.verdict
    return "; ".join([words, *change.differs])


def text(history: History) -> str:
    table = rows(history)
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    lines = ["  ".join(word.ljust(width) for word, width in zip(row, widths)).rstrip() for row in table]
    lines += [f"note: {note}" for note in history.notes]
    for one in history.series:
        if one.worse:
            now = math.exp(np.mean(one.means[one.changes[-1].index:]))
            lines.append(f"worse: {one.name} is {abs(100 * (now / one.worse.before - 1)):.1f} % "
                         f"{'below' if now < one.worse.before else 'above'} what it was before "
                         f"{one.sessions[one.worse.index].day}, for {len(one.means) - one.changes[-1].index} sessions")
        elif one.missing:
            lines.append(f"can't tell: {one.name}: {one.missing} sessions like the newest ones are missing, until a "
                         "step can be told from chance")
    if not history.status():
        lines.append("not worse: no newest segment is worse than an earlier one"
                     + (f" since {history.since}" if history.since else ""))
    return "\n".join(lines) + "\n"


def as_json(history: History) -> str:
    return "".join(json.dumps({
        "schema": HISTORY_SCHEMA, "point": one.point, "metric": one.metric.name, "unit": one.unit,
        "margin": one.metric.margin, "more_is_better": one.metric.more_is_better,
        "confidence": history.confidence, "worse": one.worse is not None, "missing": one.missing,
        "sessions": [{"file": session.path, "started": session.started, "mean": math.exp(mean),
                      "stddev_percent": 100 * spread if count > 1 else None, "slots": count}
                     for session, mean, spread, count in zip(
                         one.sessions, one.means, one.spreads, one.counts)],
        "changes": [{"session": change.index, "started": one.sessions[change.index].started,
                     "from": change.before, "to": change.after, "percent": change.percent,
                     "p": change.p, "verdict": change.verdict, "differs": change.differs}
                    for change in one.changes]}, ensure_ascii=False) + "\n" for one in history.series)


def figure(history: History) -> plots.Figure:
    """A panel for each series: session means and their spread, segments, and changes with what else changed."""
    return plots.Figure("history", "", [[panel(one)] for one in history.series],
                        "bars: how far the slots of a session are apart")


def panel(one: Series) -> plots.Panel:
    days = [session.day for session in one.sessions]
    one_a_day = len({day[:10] for day in days}) == len(days)
    made = plots.Panel(one.name, one.unit, plots.Scale(
        list(map(float, range(len(days)))), [day[:10] if one_a_day else day for day in days], "Session (UTC)", len(days) > 1), begin=None, what=one.metric.name)
    made.lines = [plots.Line(f"sessions-{one.point}", "", plots.COLOURS[0], [
        plots.Mark(float(at), math.exp(mean), f"{day}\n{units.show_figure(math.exp(mean))} {one.unit}",
                   math.exp(mean - spread), math.exp(mean + spread), spread)
        for at, (day, mean, spread) in enumerate(zip(days, one.means, one.spreads))], "points", "circle")]
    for begin, end in one.segments():
        level = math.exp(np.mean(one.means[begin:end]))
        made.lines.append(plots.Line(f"segment-{one.point}-{begin}", "", plots.TEXT,
                                     [plots.Mark(begin - 0.4, level), plots.Mark(end - 0.6, level)], "mean"))
    for change in one.changes:
        words = [f"{change.percent:+.1f} % {change.verdict}".replace("-", "\u2212"), *change.differs[:2]]
        made.lines.append(plots.Line(f"change-{one.point}-{change.index}", "\n".join(words),
                                     plots.COLOURS[1] if change.verdict == WORSE else plots.MUTED,
                                     [plots.Mark(change.index - 0.5, math.nan)], "change", dash=plots.DASHES[1]))
    return made


def run(folder: str, form: str = "text", plot: str = "", strict: bool = False, out: TextIO = sys.stdout,
        accept: str = "", **choices: Any) -> int:
    """netgate --history; returns the exit status. choices are read()'s; accept is a pattern of points to accept."""
    form_of = plot.rpartition(".")[2].lower()
    if plot and form_of not in FORMS:
        raise GateError(f"--plot {plot}: the name has to end in .{', .'.join(FORMS)}")
    if plot:
        python.need("matplotlib", "python3-matplotlib", "--plot")
    history = read(folder, **choices)
    if accept:
        accept_points(folder, history, accept)
        history = read(folder, **choices)
    if plot:
        with files.raising(GateError, f"--plot {plot}"):
            files.write(plot, draw.draw(figure(history), form_of))
    out.write(as_json(history) if form == "json" else text(history))
    return history.status(strict)


def accept_points(folder: str, history: History, pattern: str) -> None:
    """Record that points' present level, from its first to its last session, is accepted. Raises GateError."""
    begins: "Dict[str, str]" = {}
    for one in history.series:
        if fnmatch.fnmatchcase(one.point, pattern):
            found = [one.sessions[change.index].started for change in one.changes]
            begins[one.point] = max([begins.get(one.point, ""), *found])
    if not begins:
        raise GateError(f"--accept {pattern}: no such point (there are "
                        f"{', '.join(sorted({one.point for one in history.series}))})")
    path = past.accepted_file(folder)
    lines = "".join(json.dumps({"schema": past.ACCEPTED_SCHEMA, "point": point, "from": begin,
                                "until": history.sessions[-1].started}) + "\n" for point, begin in begins.items())
    with files.raising(GateError, path), open(path, "a+b", opener=files.opener) as file:
        file.seek(0)
        data = file.read()
        end = data.rfind(b"\n") + 1
        whole = results.is_object(data[end:])       # without a line break, as editors do; else a crash cut it
        file.truncate(len(data) if whole else end)
        file.write(b"\n" * whole + lines.encode())


def since_day(words: str, today: "Optional[datetime.date]" = None) -> str:
    """The date that --since means, in the format of the files: a date, or a number of days ago. Raises GateError."""
    days = re.fullmatch(r"([0-9]{1,5})d", words)
    if days:
        day = (today or datetime.datetime.now(datetime.timezone.utc).date())
        return (day - datetime.timedelta(days=int(days[1]))).isoformat()
    try:
        return datetime.date.fromisoformat(words).isoformat()
    except ValueError:
        raise GateError(f"--since {words}: neither a date nor a number of days (try 2026-11-01 or "
                        "14d)") from None
