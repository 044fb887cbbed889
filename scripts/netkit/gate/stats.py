"""The statistics of a gate: a confidence sequence for the log ratio of pairs.

Each pair is a slot of A and a slot of B beside each other; a fair coin says which is first. If A and B
are the same, exchanging the two changes nothing, so the log ratio x of a pair is symmetric about 0,
whatever the noise is: of heavy tails, in bursts, correlated, drifting. If B differs by a factor, x is
symmetric about its logarithm mu. Nothing else is assumed.

For a true mu <= m and any rate of betting l > 0, the product over the pairs of
1 + s tanh(l (x - m)), 0 < s <= 1, is a nonnegative supermartingale that begins at 1. By Ville's inequality it ever
reaches 1/a with probability a at most, however often one looks and whenever one stops. The product for
several l and s, averaged, is one as well. The bounds are the m at which it reaches 2/a on either side.

    V. H. de la Pena, A general class of exponential inequalities for martingales and ratios, Annals of
    Probability 27 (1999): symmetric increments.
    A. Ramdas, J. Ruf, M. Larsson, W. Koolen, Admissible anytime-valid sequential inference must rely on
    nonnegative martingales, arXiv:2009.03167: why exp(l x) / cosh(l x) beats exp(l x - l^2 x^2 / 2);
    1 + tanh(l x) is the same thing, and s < 1 puts a part at stake.
    S. R. Howard, A. Ramdas, J. McAuliffe, J. Sekhon, Time-uniform, nonparametric, nonasymptotic
    confidence sequences, Annals of Statistics 49 (2021): mixtures, running intersections.
    S. Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics
    6 (1979).
"""

import math
from dataclasses import dataclass, field
from typing import Any, Callable, List, Optional, Sequence, Tuple

import numpy as np

from netkit.gate.model import BETTER, CANT_TELL, EQUAL, WORSE

# Rates of betting, the share of what is there that is put at stake in a pair, and how much each of these
# has in the beginning. A smaller stake wins less and survives pairs that a burst of noise turned round.
OF_BEST = (0.5, 1.0, 2.0)       # of the rate that is best for a margin's difference in the noise learned
OF_MARGIN = (2.0,)              # over the margin: should the noise be less than was learned
OF_NOISE = (0.25, 0.6)          # over the noise: they bound what is far beyond the margin
STAKES = (1.0, 1.0, 1.0, 0.6, 1.0, 1.0)
WEIGHTS = (0.08, 0.27, 0.2, 0.25, 0.1, 0.1)
LEAST_NOISE = 1e-4      # of a log ratio: what two clocks and a counter can tell apart
ROBUST = 1.4826         # of the median of a normal variable's size: a burst in the A/A part counts little
FEW = 200               # values whose pairs are few enough to be held
FAR = 3.0               # log ratios that are looked at at most: a factor of 20


def betting_rates(noise: float, margin: float) -> "Any":
    """Rates for log ratios of this standard deviation, and a margin of this log ratio."""
    noise = max(noise, LEAST_NOISE)
    best = margin / (noise * noise + margin * margin)
    return np.array([*(best * one for one in OF_BEST), *(one / margin for one in OF_MARGIN),
                     *(one / max(noise, margin) for one in OF_NOISE)])


def log_evidence(x: "Any", center: float, rates: "Any", sign: float) -> "Any":
    """Logarithm of the evidence that the center of x lies above (sign 1) or below (sign -1) this one,
    after each pair. x may have leading dimensions; the last one is time."""
    growth = np.cumsum(pair_growth(x, center, rates, sign), axis=-1)
    growth += np.log(WEIGHTS).reshape((-1,) + (1,) * (growth.ndim - 1))
    most = np.max(growth, axis=0)       # np.logaddexp.reduce() takes several times as long
    return most + np.log(np.sum(np.exp(growth - most), axis=0))


def pair_growth(x: "Any", center: float, rates: "Any", sign: float) -> "Any":
    """log(1 + s tanh(l (x - m))) of each rate and its stake, in a form that stays exact far out."""
    bets = np.multiply.outer(sign * rates, np.asarray(x, dtype=float) - center)
    stakes = np.array(STAKES).reshape((-1,) + (1,) * (bets.ndim - 1))
    far = (bets < -4.0) & (stakes == 1.0)       # 1 + tanh() has lost digits there
    lost = 2.0 * bets[far]
    growth = np.log1p(stakes * np.tanh(np.where(far, 0.0, bets)))
    growth[far] = math.log(2.0) + lost - np.log1p(np.exp(lost))
    return growth


def most_evidence(x: "Any", center: float, rates: "Any", sign: float) -> float:
    """The most that there ever was."""
    return float(np.max(log_evidence(x, center, rates, sign), initial=0.0))


def bound(x: "Any", rates: "Any", sign: float, level: float) -> float:
    """The farthest center on one side that the evidence excludes at an error of `level`: the lower
    bound for sign 1, the upper one for -1. Infinite where nothing is excluded yet."""
    need = -math.log(level)
    out, inside = -sign * FAR, float(np.median(x))
    if most_evidence(x, out, rates, sign) < need:
        return -sign * math.inf
    for _ in range(40):     # the evidence falls as the center comes nearer
        middle = (out + inside) / 2
        if most_evidence(x, middle, rates, sign) >= need:
            out = middle
        else:
            inside = middle
    return out


def least_pairs(error: float) -> int:
    """The fewest pairs that tell anything, however far apart A and B are: the evidence doubles at most."""
    return math.ceil(math.log2(2 / error))


def center(x: "Sequence[float]") -> float:
    """The Hodges-Lehmann estimate: the median of the means of all pairs of values. Of many values the means are not
    made but counted below a bound, which is halved until it is their median."""
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
    """The verdict that has the most for it, and its error, of those at which B is beyond an edge."""
    up, down = beyond(1.0, margin), beyond(-1.0, -margin)
    equal = max(beyond(1.0, -margin), beyond(-1.0, margin))
    good, bad = (up, down) if more_is_better else (down, up)
    return min(((EQUAL, equal), (WORSE, bad), (BETTER, good)), key=lambda one: one[1])


@dataclass
class Comparison:
    """The log ratios of B to A of one metric at one point."""
    margin: float               # as a log ratio
    noise: float                # standard deviation of a log ratio, learned before the first of them
    more_is_better: bool = True
    x: "List[float]" = field(default_factory=list)

    def rates(self) -> "Any":
        return betting_rates(self.noise, self.margin)

    def beyond(self, sign: float, edge: float) -> float:
        """The least error at which B is above an edge (sign 1) or below it (-1), both sides being looked at."""
        return min(1.0, 2.0 * math.exp(-most_evidence(self.x, edge, self.rates(), sign)))

    def best(self) -> "Tuple[str, float]":
        return best_verdict(self.beyond, self.margin, self.more_is_better)

    def bounds(self, error: float) -> "Tuple[float, float]":
        """The confidence sequence at this moment."""
        if not self.x:
            return -math.inf, math.inf
        return tuple(bound(self.x, self.rates(), sign, error / 2) for sign in (1.0, -1.0))

    def spread(self) -> float:
        """Standard deviation of a log ratio."""
        return float(np.std(self.x, ddof=1)) if len(self.x) > 1 else self.noise

    def more_pairs(self, error: float) -> Optional[int]:
        """About how many pairs are missing until a verdict, were they all like these; None where they
        would lead to none, as the difference is about as large as the margin."""
        if len(self.x) < 2:
            return None
        values, middle = np.asarray(self.x), center(self.x)
        if abs(middle) < self.margin:
            needs = [(1.0, -self.margin), (-1.0, self.margin)]
        else:
            needs = [(math.copysign(1.0, middle), math.copysign(self.margin, middle))]
        # Evidence that a pair like these adds, at the best rate.
        growth = min(float(np.max(np.mean(pair_growth(values, edge, self.rates(), sign), axis=-1))) for sign, edge in needs)
        if growth < 1e-3:
            return None
        total = (math.log(2.0 / error) - math.log(max(WEIGHTS))) / growth
        return max(1, math.ceil(total - len(values)))


def holm(errors: "Sequence[float]", error: float) -> "List[bool]":
    """Which of several verdicts stand when the error of all together shall not be more than this one."""
    stand = [False] * len(errors)
    for done, index in enumerate(sorted(range(len(errors)), key=lambda i: errors[i])):
        if errors[index] > error / (len(errors) - done):
            break
        stand[index] = True
    return stand


def judge(best: "Sequence[Tuple[str, float]]", error: float) -> "List[Tuple[str, float]]":
    """What stands of the verdicts that have most for them, by Holm's steps, and the error at which each one's interval
    is to be shown: all of them hold together."""
    return [(verdict if stands else CANT_TELL, error / len(best))
            for (verdict, _), stands in zip(best, holm([least for _, least in best], error))]


def correlation(values: "Sequence[float]", lag: int = 1) -> float:
    """Autocorrelation; 0 where there is too little to tell."""
    if len(values) < lag + 3:
        return 0.0
    moved = np.asarray(values, dtype=float) - np.mean(values)
    total = float(np.dot(moved, moved))
    return float(np.dot(moved[:-lag], moved[lag:])) / total if total > 0 else 0.0


def variance_of_mean(values: "Sequence[float]") -> float:
    """Of the mean of a series of samples that lean on each other: its autocorrelation counts up to where
    it first falls below 0 (Geyer's first cut)."""
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
    """What slots of one and the same side tell."""
    pair: float             # standard deviation of the log ratio of two neighbours
    within: float           # variance of a second of a slot, of the log rate
    between: float          # variance that a longer slot does not make less
    correlation: float      # lag 1, of slots in a row
    overhead: float         # seconds of a slot beside its length


def learn(rates: "Sequence[float]", samples: "Sequence[Sequence[float]]", length: float,
          overhead: float) -> Noise:
    """Of slots of a length in a row: their figures, and the rates inside each where they are known."""
    logs = np.log(np.asarray(rates, dtype=float))
    steps = np.diff(logs)
    pair = float(np.median(np.abs(steps))) * ROBUST if len(steps) else 0.0
    inside = [variance_of_mean(np.log(one)) for one in samples if len(one) > 3 and min(one) > 0]
    within = float(np.median(inside)) if inside else pair * pair / 2
    return Noise(pair, within * length, max(0.0, pair * pair / 2 - within), correlation(logs), overhead)


def slot_length(noise: Noise, budget: float, least: float = 1, most: float = 10, pairs: int = 20) -> float:
    """Seconds of a slot that tell most in the time there is: longer ones have less noise each, shorter
    ones are more. At least `pairs` pairs have to fit."""
    room = max(least, min(most, budget / (2 * pairs) - noise.overhead))
    best = math.sqrt(noise.overhead * noise.within / noise.between) if noise.between > 0 else room
    return math.floor(10 * min(room, max(least, best))) / 10


def pair_noise(noise: Noise, length: float) -> float:
    """Standard deviation of a pair's log ratio with slots of this length."""
    return math.sqrt(2 * (noise.between + noise.within / length))


def as_log(percent: float) -> float:
    """A margin: 2 % are what makes 0.98 of 1."""
    return -math.log1p(-percent / 100)


def as_percent(log_ratio: float) -> Optional[float]:
    """A change: None where there is no bound."""
    return 100 * math.expm1(log_ratio) if math.isfinite(log_ratio) else None

