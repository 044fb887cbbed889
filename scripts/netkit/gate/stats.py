"""The statistics of a gate: a confidence sequence for the log ratio of pairs.

Each pair is a slot of A and a slot of B beside each other; a fair coin says which is first. If A and B are the same,
exchanging them changes nothing, so a pair's log ratio x is symmetric about 0, whatever the noise: heavy tails, bursts,
correlation, drift. If B differs by a factor, x is symmetric about its logarithm mu. Nothing else is assumed.

For a true mu <= m and a rate of betting l > 0, the product over the pairs of 1 + s tanh(l (x - m)), 0 < s <= 1, is a
nonnegative supermartingale that begins at 1. By Ville's inequality it ever reaches 1/a with probability a at most,
whenever one looks or stops. So does the average over several l and s. The bounds are the m where it reaches 2/a.

    V. H. de la Pena, A general class of exponential inequalities for martingales and ratios, Annals of
    Probability 27 (1999): symmetric increments.
    A. Ramdas, J. Ruf, M. Larsson, W. Koolen, Admissible anytime-valid sequential inference must rely on nonnegative
    martingales, arXiv:2009.03167: why 1 + tanh(l x) = exp(l x) / cosh(l x) beats exp(l x - l^2 x^2 / 2).
    S. R. Howard, A. Ramdas, J. McAuliffe, J. Sekhon, Time-uniform, nonparametric, nonasymptotic
    confidence sequences, Annals of Statistics 49 (2021): mixtures, running intersections.
    S. Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6 (1979)."""

import math
from dataclasses import dataclass, field
from typing import Any, Callable, List, Optional, Sequence, Tuple

import numpy as np

from netkit.gate.model import BETTER, CANT_TELL, EQUAL, WORSE

# Betting rates, the shares of the capital that are staked, and initial capitals. Small stakes survive bursts of noise.
OF_BEST = (0.5, 1.0, 2.0)       # relative to the rate that is best for a difference of the margin, given the learned noise
OF_MARGIN = (2.0,)              # divided by the margin: in case there is less noise than was learned
OF_NOISE = (0.25, 0.6)          # divided by the noise: they bound changes far beyond the margin
STAKES = (1.0, 1.0, 1.0, 0.6, 1.0, 1.0)
WEIGHTS = (0.08, 0.27, 0.2, 0.25, 0.1, 0.1)
LEAST_NOISE = 1e-4      # of a log ratio: the resolution of two clocks and a counter
ROBUST = 1.4826         # times the median absolute value estimates the standard deviation: a burst in the A/A slots hardly counts
FEW = 200               # up to this number of values, all pairs are held in memory
FAR = 3.0               # largest log ratio considered: a factor of 20


def betting_rates(noise: float, margin: float) -> "Any":
    """Betting rates for log ratios with this standard deviation, and a margin as a log ratio."""
    noise = max(noise, LEAST_NOISE)
    best = margin / (noise * noise + margin * margin)
    return np.array([*(best * one for one in OF_BEST), *(one / margin for one in OF_MARGIN),
                     *(one / max(noise, margin) for one in OF_NOISE)])


def log_evidence(x: "Any", center: float, rates: "Any", sign: float) -> "Any":
    """Log evidence after each pair that x is centered above (sign 1) or below (-1) `center`. x's last axis is time."""
    growth = np.cumsum(pair_growth(x, center, rates, sign), axis=-1)
    growth += np.log(WEIGHTS).reshape((-1,) + (1,) * (growth.ndim - 1))
    most = np.max(growth, axis=0)       # several times as fast as np.logaddexp.reduce()
    return most + np.log(np.sum(np.exp(growth - most), axis=0))


def pair_growth(x: "Any", center: float, rates: "Any", sign: float) -> "Any":
    """log(1 + s tanh(l (x - m))) for each rate and stake, computed without loss of precision far out."""
    bets = np.multiply.outer(sign * rates, np.asarray(x, dtype=float) - center)
    stakes = np.array(STAKES).reshape((-1,) + (1,) * (bets.ndim - 1))
    far = (bets < -4.0) & (stakes == 1.0)       # 1 + tanh() loses digits there
    lost = 2.0 * bets[far]
    growth = np.log1p(stakes * np.tanh(np.where(far, 0.0, bets)))
    growth[far] = math.log(2.0) + lost - np.log1p(np.exp(lost))
    return growth


def most_evidence(x: "Any", center: float, rates: "Any", sign: float) -> float:
    """The maximum of the evidence over time."""
    return float(np.max(log_evidence(x, center, rates, sign), initial=0.0))


def bound(x: "Any", rates: "Any", sign: float, level: float) -> float:
    """The furthest center excluded at error `level`: the lower bound for sign 1, upper for -1; infinite if none."""
    need = -math.log(level)
    out, inside = -sign * FAR, float(np.median(x))
    if most_evidence(x, out, rates, sign) < need:
        return -sign * math.inf
    for _ in range(40):     # the evidence falls as the center moves closer
        middle = (out + inside) / 2
        if most_evidence(x, middle, rates, sign) >= need:
            out = middle
        else:
            inside = middle
    return out


def least_pairs(error: float) -> int:
    """With fewer pairs no verdict is possible, however different A and B are: a pair at most doubles the evidence."""
    return math.ceil(math.log2(2 / error))


def center(x: "Sequence[float]") -> float:
    """The Hodges-Lehmann estimate, the median of all pairs' means; for many values by counting and bisection."""
    values = np.sort(np.asarray(x, dtype=float))
    rows = np.arange(len(values))
    if len(values) <= FEW:
        left, right = np.triu_indices(len(values))
        return float(np.median((values[left] + values[right]) / 2))
    half, low, high = len(values) * (len(values) + 1) / 4, values[0], values[-1]
    for _ in range(60):
        middle = (low + high) / 2
        below = np.maximum(np.searchsorted(values, 2 * middle - values, "right") - rows, 0)
        low, high = (middle, high) if np.sum(below) < half else (low, middle)
    return float(high)


def best_verdict(beyond: "Callable[[float, float], float]", margin: float, more_is_better: bool) -> "Tuple[str, float]":
    """The verdict with the smallest error probability, given the error of claiming that B is beyond an edge."""
    up, down = beyond(1.0, margin), beyond(-1.0, -margin)
    equal = max(beyond(1.0, -margin), beyond(-1.0, margin))
    good, bad = (up, down) if more_is_better else (down, up)
    return min(((EQUAL, equal), (WORSE, bad), (BETTER, good)), key=lambda one: one[1])


@dataclass
class Comparison:
    """The log ratios of B to A, for one metric of one point."""
    margin: float               # as a log ratio
    noise: float                # standard deviation of a log ratio, learned from A/A slots
    more_is_better: bool = True
    x: "List[float]" = field(default_factory=list)

    def rates(self) -> "Any":
        return betting_rates(self.noise, self.margin)

    def beyond(self, sign: float, edge: float) -> float:
        """The smallest two-sided error at which B is above an edge (sign 1) or below it (-1)."""
        return min(1.0, 2.0 * math.exp(-most_evidence(self.x, edge, self.rates(), sign)))

    def best(self) -> "Tuple[str, float]":
        return best_verdict(self.beyond, self.margin, self.more_is_better)

    def bounds(self, error: float) -> "Tuple[float, float]":
        """The current confidence sequence."""
        if not self.x:
            return -math.inf, math.inf
        return tuple(bound(self.x, self.rates(), sign, error / 2) for sign in (1.0, -1.0))

    def spread(self) -> float:
        """Standard deviation of a log ratio."""
        return float(np.std(self.x, ddof=1)) if len(self.x) > 1 else self.noise

    def more_pairs(self, error: float) -> Optional[int]:
        """How many more pairs like these a verdict needs, about; None if the difference is too close to the margin."""
        if len(self.x) < 2:
            return None
        values, middle = np.asarray(self.x), center(self.x)
        if abs(middle) < self.margin:
            needs = [(1.0, -self.margin), (-1.0, self.margin)]
        else:
            needs = [(math.copysign(1.0, middle), math.copysign(self.margin, middle))]
        # Evidence that one more such pair adds at the best rate.
        growth = min(float(np.max(np.mean(pair_growth(values, edge, self.rates(), sign), axis=-1))) for sign, edge in needs)
        if growth < 1e-3:
            return None
        total = (math.log(2.0 / error) - math.log(max(WEIGHTS))) / growth
        return max(1, math.ceil(total - len(values)))


def holm(errors: "Sequence[float]", error: float) -> "List[bool]":
    """Which verdicts stand (Holm) if the error probability of all together is to be at most `error`."""
    stand = [False] * len(errors)
    for done, index in enumerate(sorted(range(len(errors)), key=lambda i: errors[i])):
        if errors[index] > error / (len(errors) - done):
            break
        stand[index] = True
    return stand


def judge(best: "Sequence[Tuple[str, float]]", error: float) -> "List[Tuple[str, float]]":
    """Verdicts that stand (Holm's procedure), and the errors at which to show intervals so that all hold together."""
    return [(verdict if stands else CANT_TELL, error / len(best))
            for (verdict, _), stands in zip(best, holm([least for _, least in best], error))]


def correlation(values: "Sequence[float]", lag: int = 1) -> float:
    """Autocorrelation; 0 if there are too few values."""
    if len(values) < lag + 3:
        return 0.0
    moved = np.asarray(values, dtype=float) - np.mean(values)
    total = float(np.dot(moved, moved))
    return float(np.dot(moved[:-lag], moved[lag:])) / total if total > 0 else 0.0


def variance_of_mean(values: "Sequence[float]") -> float:
    """Variance of a correlated series' mean. The autocorrelation counts until it first falls below 0 (Geyer)."""
    if len(values) < 4:
        return 0.0
    time = 1.0
    for lag in range(1, len(values) // 2):
        found = correlation(values, lag)
        if found <= 0:
            break
        time += 2 * found
    return float(np.var(values, ddof=1)) * time / len(values)


@dataclass
class Noise:
    """What A/A slots tell about the noise."""
    pair: float             # standard deviation of the log ratio of two successive slots
    within: float           # variance of the log rate over one second within a slot
    between: float          # variance that longer slots do not reduce
    correlation: float      # lag 1, of slots in a row
    overhead: float         # seconds that a slot takes beyond its length


def learn(rates: "Sequence[float]", samples: "Sequence[Sequence[float]]", length: float,
          overhead: float) -> Noise:
    """Learn from successive slots of one length: their figures, and the rates within each if known."""
    logs = np.log(np.asarray(rates, dtype=float))
    steps = np.diff(logs)
    pair = float(np.median(np.abs(steps))) * ROBUST if len(steps) else 0.0
    inside = [variance_of_mean(np.log(one)) for one in samples if len(one) > 3 and min(one) > 0]
    within = float(np.median(inside)) if inside else pair * pair / 2
    return Noise(pair, within * length, max(0.0, pair * pair / 2 - within), correlation(logs), overhead)


def slot_length(noise: Noise, budget: float, least: float = 1, most: float = 10, pairs: int = 20) -> float:
    """The best slot length in seconds: longer slots have less noise, but `pairs` pairs must fit into the budget."""
    room = max(least, min(most, budget / (2 * pairs) - noise.overhead))
    best = math.sqrt(noise.overhead * noise.within / noise.between) if noise.between > 0 else room
    return math.floor(10 * min(room, max(least, best))) / 10


def pair_noise(noise: Noise, length: float) -> float:
    """Standard deviation of a pair's log ratio for slots of this length."""
    return math.sqrt(2 * (noise.between + noise.within / length))


def as_log(percent: float) -> float:
    """A margin as a log ratio: 2 % makes 0.98 of 1."""
    return -math.log1p(-percent / 100)


def as_percent(log_ratio: float) -> Optional[float]:
    """A log ratio as a change in percent; None if infinite, or as good as."""
    return 100 * math.expm1(log_ratio) if abs(log_ratio) < 700 else None

