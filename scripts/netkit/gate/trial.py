"""Measures A and B in random order and judges after every pair, until each verdict is known or the budget is spent."""

import functools
import math
import random
import statistics
import time
from dataclasses import dataclass, field
from typing import Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np

from netkit.gate import stats
from netkit.gate.bench import Bench
from netkit.gate.model import A, B, BETTER, CANT_TELL, EQUAL, WORSE, Gate, GateError, Judgement, Metric, Point, Slot, View

LEARNING = 0.2          # share of the budget that the A/A part may take
LEARNING_SLOTS = 8      # of a point, at most
LEAST_LEARNING = 4      # and at least, unless they would take more than this share of the point's budget:
MOST_LEARNING = 0.3
LEAST_SLOT, MOST_SLOT = 1, 10
VISIT = 4               # pairs of a point in a row, where there are several points: switching takes time
MUCH = 0.2              # a slot may be left out if something else used the processors for a larger share of it
FEW = 3                 # with fewer pairs their spread is unknown
FAILURES = 3            # failed slots in a row, after which netgate gives up
FAILING = 0.05          # for sides to be equal, one may fail in this share of the pairs more than the other
GONE = 7.0              # the log ratio that stands for something against zero: a factor of 1,000


@dataclass
class Options:
    budget: float = 60.0
    confidence: float = 95.0
    seed: Optional[int] = None
    slot: Optional[float] = None        # seconds; None: learned
    aa: bool = True                     # learn from A/A slots first
    clean: bool = True                  # pairs with disturbed processors may be left out


@dataclass
class Track:
    """The state of a point during the trial."""
    point: Point
    length: float = LEAST_SLOT
    clean: bool = True
    noise: "Dict[str, float]" = field(default_factory=dict)     # standard deviation of a pair's log ratio, by metric
    pairs: "List[Tuple[Slot, Slot]]" = field(default_factory=list)
    seconds: float = 0.0
    chosen: "Dict[str, Pairs]" = field(default_factory=dict)        # by metric
    rows: "Dict[Tuple[str, int, float], Row]" = field(default_factory=dict)


def usable(slot: Slot, metric: Metric, clean: bool) -> Optional[float]:
    """The figure of a slot, if it counts and has a logarithm; else None."""
    return None if clean and taken(slot) else figure_of(slot, metric) or None


def taken(slot: Slot) -> bool:
    """Whether something outside the test used the processors for a large part of the slot."""
    return (slot.taken or 0.0) > MUCH


def figure_of(slot: Slot, metric: Metric) -> Optional[float]:
    figure = slot.figures.get(metric.name)
    return figure if figure is not None and figure >= 0 and not slot.failed else None


def log_ratio(base: float, value: float, more_is_better: bool) -> Optional[float]:
    """The log ratio of two figures. Two zeros are equal if less is better (losses), else it is None (no traffic)."""
    if base > 0 and value > 0:
        return math.log(value / base)
    return None if base == value and more_is_better else GONE * ((value > 0) - (base > 0))


@dataclass
class Pairs:
    """The log ratios of a metric that count. This is decided when a pair arrives, from earlier pairs and disturbances.
    Neither depends on which slot is the better one, so the guarantees of stats.py hold."""
    x: "List[float]" = field(default_factory=list)
    base: "List[float]" = field(default_factory=list)
    value: "List[float]" = field(default_factory=list)
    left_out: int = 0
    every: "List[float]" = field(default_factory=list)      # all log ratios
    good: "List[float]" = field(default_factory=list)       # of pairs with undisturbed processors
    lean: "List[float]" = field(default_factory=list)       # 1: B's slot was disturbed more, -1: A's
    alone: "List[float]" = field(default_factory=list)      # 1: only B's slot failed, -1: only A's

    def add(self, a: Slot, b: Slot, metric: Metric, clean: bool, error: float) -> None:
        base, value = figure_of(a, metric), figure_of(b, metric)
        x = None if base is None or value is None else log_ratio(base, value, metric.more_is_better)
        dirty = taken(a) or taken(b)
        silent = [not figure_of(slot, metric) if metric.more_is_better else bool(slot.failed) for slot in (a, b)]
        self.alone += [1.0 if silent[1] else -1.0] if silent[0] != silent[1] else []
        if x is None or dirty and clean and not self._counts(error):
            self.left_out += 1
        else:
            self.x.append(x)
            self.base.append(base or 0.0)
            self.value.append(value or 0.0)
        if x is not None:
            self.every.append(x)
            self.good += [] if dirty else [x]
            self.lean += [math.copysign(1.0, taken(b) - taken(a))] if taken(a) != taken(b) else []

    def _counts(self, error: float) -> bool:
        """Whether disturbed pairs count. They do if one side is disturbed more often, which is part of the difference;
        if nearly all are; and if all pairs together give the mean as precisely as the undisturbed ones."""
        if len(self.every) - len(self.good) < FEW:
            return False
        return len(self.good) < FEW or min(error_of(self.lean, sign) for sign in (1.0, -1.0)) <= error or (
            np.var(self.every, ddof=1) / len(self.every) <= np.var(self.good, ddof=1) / len(self.good))

    def uneven(self) -> bool:
        """Whether one side failed so much more often that the sides can't be equal."""
        return abs(sum(self.alone)) > FAILING * (self.left_out + len(self.x))

    def best(self, best: "Tuple[str, float]") -> "Tuple[str, float]":
        """The stronger of two verdicts, from the ratios or because one side fails more often (equal sides could be
        exchanged), with its error probability, of which each gets half as there are two chances of error."""
        if not self.alone:
            return best
        verdict, error = (CANT_TELL, 1.0) if best[0] == EQUAL and self.uneven() else best
        more = min((error_of(self.alone, sign), verdict) for sign, verdict in ((1.0, WORSE), (-1.0, BETTER)))
        return min(((verdict, min(1.0, 2 * error)), (more[1], min(1.0, 2 * more[0]))), key=lambda one: one[1])

    def failing(self) -> str:
        if not self.alone:
            return ""
        of_b = sum(sign > 0 for sign in self.alone)
        return (f"B alone gave nothing in {of_b} of {self.left_out + len(self.x)} pairs, A alone in {len(self.alone) - of_b}")

    def noise(self) -> Optional[float]:
        """Standard deviation of all log ratios, if some were left out; else None."""
        return float(np.std(self.every, ddof=1)) if len(self.every) > max(1, len(self.x)) else None


def error_of(signs: "Sequence[float]", sign: float) -> float:
    """Error probability of the claim that this sign is the more frequent one, two-sided."""
    more = most = 0.0
    for done, one in enumerate(signs, 1):
        more += one == sign
        most = max(most, evidence(more, done - more))
    return min(1.0, 2 * math.exp(-most))


@functools.lru_cache(maxsize=None)
def evidence(more: float, less: float) -> float:
    """Log evidence that one sign is more frequent, from the number of each; their order does not matter."""
    signs = [1.0] * int(more) + [-1.0] * int(less)
    return float(stats.log_evidence(signs, 0.0, stats.betting_rates(1.0, 1.0), 1.0)[-1])


def choose(track: Track, metric: Metric, error: float) -> Pairs:
    made = track.chosen.setdefault(metric.name, Pairs())
    for a, b in track.pairs[made.left_out + len(made.x):]:
        made.add(a, b, metric, track.clean, error)
    return made


@dataclass
class Row:
    """A metric of a point, and the result of its pairs."""
    track: Track
    metric: Metric
    pairs: Pairs
    one: stats.Comparison
    best: "Tuple[str, float]"       # the verdict with the smallest error probability, and that probability


def row_of(track: Track, metric: Metric, error: float) -> Row:
    """The row, computed once for each number of pairs."""
    key = (metric.name, len(track.pairs), error)
    if key not in track.rows:
        pairs = choose(track, metric, error)
        margin = stats.as_log(metric.margin)
        one = stats.Comparison(margin, track.noise.get(metric.name, margin), metric.more_is_better, pairs.x)
        track.rows = {old: row for old, row in track.rows.items() if old[0] != metric.name}
        track.rows[key] = Row(track, metric, pairs, one, pairs.best(one.best()))
    return track.rows[key]


def rows_of(tracks: "Sequence[Track]", confidence: float) -> "List[Tuple[Row, str, float]]":
    """Rows with verdicts, for the requested error probability of all together, and that of each shown interval."""
    error = 1 - confidence / 100
    rows = [row_of(track, metric, error) for track in tracks for metric in track.point.metrics]
    return [(row, *told) for row, told in zip(rows, stats.judge([row.best for row in rows], error))]


def judge(tracks: "Sequence[Track]", confidence: float, only: Optional[Track] = None) -> "List[Judgement]":
    return [judgement(row, verdict, error) for row, verdict, error in rows_of(tracks, confidence)
            if only is None or row.track is only]


def judgement(row: Row, verdict: str, error: float) -> Judgement:
    track, metric, pairs, one = row.track, row.metric, row.pairs, row.one
    made = Judgement(track.point.name, metric, verdict, pairs=len(pairs.x), left_out=pairs.left_out,
                     failing=pairs.failing(), seconds=track.seconds)
    made.unit = next((slot.units[metric.name] for pair in track.pairs for slot in pair
                      if metric.name in slot.units), "")
    if pairs.x:
        low, high = one.bounds(error)
        made.change = stats.as_percent(stats.center(pairs.x))
        made.low, made.high = stats.as_percent(low), stats.as_percent(high)
        made.base, made.value = statistics.median(pairs.base), statistics.median(pairs.value)
        known = len(pairs.x) > 1 or metric.name in track.noise
        made.noise = 100 * one.spread() if known else None
        made.noise_all = 100 * (pairs.noise() or 0.0) or None
    else:
        failed = next((slot.failed for pair in reversed(track.pairs) for slot in pair if slot.failed), "")
        made.notes.append(f"no pair was measured: {failed}" if failed else "no pair was left" if track.pairs else
                          "nothing was measured before the end")
    if verdict == CANT_TELL and pairs.x:
        made.more_pairs = None if pairs.uneven() else one.more_pairs(error)
        if low > 0 or high < 0:     # there is a difference, but it may be within the margin
            made.notes.append(f"B is {'above' if low > 0 else 'below'} A; whether by more than {metric.margin:g} % can't be told yet")
    return made


class Trial:
    def __init__(self, gate: Gate, bench: Bench, view: View, options: Options,
                 clock: "Callable[[], float]" = time.monotonic) -> None:
        self.gate, self.bench, self.view, self.options, self._clock = gate, bench, view, options, clock
        self._coin = random.Random(options.seed)
        self._tracks = [Track(point, options.slot or LEAST_SLOT, options.clean) for point in gate.points]
        self._since = clock()
        self._failed = 0

    def run(self) -> None:
        """Run the trial and fill in the gate. However it ends, what was measured is judged."""
        self.view.begin(self.gate)
        try:
            self._warn()
            if self.options.aa:
                self._learn()
            self._pairs()
            self._heed_silence()
        except GateError as fault:
            self.gate.over, self.gate.failed = str(fault), True
            raise
        except BaseException as fault:
            self.gate.over = self.gate.over or f"ended early: {type(fault).__name__}"
            raise
        finally:
            self.gate.seconds = self._spent()
            self.gate.judgements = self._judged()

    def _warn(self) -> None:
        """Note a budget that is too small for any verdict."""
        pairs = stats.least_pairs(1 - self.options.confidence / 100)
        least = 2 * pairs * len(self._tracks) * (self.options.slot or LEAST_SLOT)
        if least > self.options.budget:
            self.gate.notes.append(f"a budget of {self.options.budget:g} s tells nothing of some points: {pairs} pairs "
                                   f"of each, the least for a verdict, take {least:g} s")

    def _spent(self) -> float:
        return self._clock() - self._since

    def _slot(self, track: Track, side: str, pair: int, length: float) -> Slot:
        since = self._clock()
        self.view.next(track.point, side)
        slot = self.bench.slot(track.point, side, length)
        slot.number, slot.pair = len(self.gate.slots) + 1, pair
        slot.seconds = slot.seconds or self._clock() - since
        track.seconds += self._clock() - since
        self.gate.slots.append(slot)
        self._failed = self._failed + 1 if slot.failed else 0
        if self._failed >= FAILURES:
            raise GateError(f"{FAILURES} slots in a row failed: {slot.failed}")
        return slot

    def _judged(self, only: Optional[Track] = None) -> "List[Judgement]":
        return judge(self._tracks, self.options.confidence, only)

    def _learn(self) -> None:
        """Measure A/A slots to learn the noise, the correlation of slots in a row, and the best length of a slot."""
        share = self.options.budget / max(1, len(self._tracks))
        for track in self._tracks:
            slots: "List[Slot]" = []
            each = track.length
            while len(slots) < LEARNING_SLOTS:
                few = len(slots) < LEAST_LEARNING
                if max(LEAST_LEARNING, len(slots) + 1) * each > (MOST_LEARNING if few else LEARNING) * share:
                    break
                slots.append(self._slot(track, A, 0, track.length))
                self.view.slot(slots[-1], self.gate, [])
                each = sum(slot.seconds for slot in slots) / len(slots)
            self._understand(track, slots)

    def _understand(self, track: Track, slots: "List[Slot]") -> None:
        learned = self.gate.learned
        learned.slots += len(slots)
        for metric in track.point.metrics:
            clean = track.clean and sum(not taken(slot) for slot in slots) > len(slots) / 2
            good = [slot for slot in slots if usable(slot, metric, clean) is not None]
            if len(good) < 3:
                continue
            first = metric is track.point.metrics[0]
            overhead = sum(max(0.0, slot.seconds - track.length) for slot in good) / len(good)
            noise = stats.learn([usable(slot, metric, clean) or 1.0 for slot in good],
                                [[rate for _, rate in slot.samples] for slot in good] if first else [],
                                track.length, overhead)
            if first and self.options.slot is None:
                left = self.options.budget * (1 - LEARNING) / len(self._tracks)
                track.length = stats.slot_length(noise, left, LEAST_SLOT, MOST_SLOT)
            track.noise[metric.name] = stats.pair_noise(noise, track.length)
            if first:
                learned.noise[track.point.name] = 100 * track.noise[metric.name]
                learned.correlation[track.point.name] = noise.correlation
                learned.length[track.point.name] = track.length

    def _pairs(self) -> None:
        visit = VISIT if len(self._tracks) > 1 else 1
        while True:
            tracks = [track for track in self._open() if self._fits(track)]
            if not tracks:
                return
            self._coin.shuffle(tracks)
            for track in tracks:
                for _ in range(visit):
                    if not self._fits(track) or track not in self._open():
                        break
                    self._pair(track, len(track.pairs) + 1)

    def _heed_silence(self) -> None:
        """Raise GateError if a side never gave a result, also if the budget ended before FAILURES slots in a row."""
        for track in self._tracks:
            for side in (A, B):
                slots = [slot for slot in self.gate.slots if (slot.point, slot.side) == (track.point.name, side)]
                if slots and all(slot.failed for slot in slots):
                    raise GateError(f"{track.point.name}: no slot of {side} gave anything: {slots[-1].failed}")

    def _open(self) -> "List[Track]":
        """Points with a metric whose verdict is open."""
        waiting = {row.track.point.name for row, verdict, _ in rows_of(self._tracks, self.options.confidence)
                   if verdict == CANT_TELL}
        return [track for track in self._tracks if track.point.name in waiting]

    def _fits(self, track: Track) -> bool:
        """Whether another pair fits into the budget."""
        done = [slot.seconds for pair in track.pairs for slot in pair]
        each = sum(done) / len(done) if done else track.length
        return self._spent() + 2 * each <= self.options.budget

    def _pair(self, track: Track, number: int) -> None:
        """Measure a pair. A fair coin decides which side is first: the statistics depend on it."""
        order = (A, B) if self._coin.random() < 0.5 else (B, A)
        slots = {side: self._slot(track, side, number, track.length) for side in order}
        track.pairs.append((slots[A], slots[B]))
        found = self._judged(track)
        for side in order:
            self.view.slot(slots[side], self.gate, found)


def run(gate: Gate, bench: Bench, view: View, options: Options) -> None:
    """Measure and judge. The gate has the results even if this raises."""
    Trial(gate, bench, view, options).run()
