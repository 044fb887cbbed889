"""Finds outliers by the generalised ESD test (Rosner 1983) or modified z-scores; splits pairs' figures among hosts."""

import math
import statistics
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

from netkit import python

SCORE = 5           # a modified z-score (Iglewicz and Hoaglin 1993) from which a value is an outlier
ROUNDS = 20         # of the median polish
Pair = Tuple[str, str]      # client and server


def esd(values: "Sequence[float]", error: float, least: float = 0.0) -> "List[int]":
    """The indexes of high outliers. If there are none and the values are Gaussian, some are named with probability
    `error`. `least` is a lower bound for the standard deviation. Raises python.MissingModule."""
    special: Any = python.need("scipy.special", "python3-scipy", "the test for outliers (--mesh, --paths)")
    order = sorted(range(len(values)), key=lambda number: -values[number])
    found = 0
    for first in range(len(order) // 2):
        rest = [values[number] for number in order[first:]]
        n, t = len(rest), -special.stdtrit(len(rest) - 2, error / len(rest))
        if rest[0] - statistics.mean(rest) > max(statistics.stdev(rest), least) * (n - 1) * t / math.sqrt((n - 2 + t * t) * n):
            found = first + 1
    return order[:found]


class Parts(NamedTuple):
    """Logarithms: the overall value, the parts of clients and servers, and the residuals of pairs."""
    whole: float
    clients: "Dict[str, float]"
    servers: "Dict[str, float]"
    pairs: "Dict[Pair, float]"

    @property
    def noise(self) -> float:
        """Standard deviation of the residuals, by their median absolute value without a zero per fitted parameter."""
        fitted = len(self.clients) + len(self.servers) - 1
        return statistics.median(sorted(map(abs, self.pairs.values()))[fitted:] or [0.0]) / 0.6745


def polish(logs: "Dict[Pair, float]") -> Parts:
    """Tukey's median polish. Raises python.MissingModule."""
    np = python.need("numpy", "python3-numpy", "--mesh")
    names = [sorted({pair[end] for pair in logs}) for end in (0, 1)]
    left = np.full([len(one) for one in names], np.nan)
    for (client, server), value in logs.items():
        left[names[0].index(client), names[1].index(server)] = value
    counts = [np.sum(~np.isnan(left), axis=1 - end, keepdims=True) for end in (0, 1)]     # np.nanmedian is slow
    whole, effects = 0.0, [np.zeros((left.shape[0], 1)), np.zeros((1, left.shape[1]))]
    for _ in range(ROUNDS):
        moved = 0.0
        for end, known in enumerate(effects):
            ordered = np.sort(left, axis=1 - end)
            middle = sum(np.take_along_axis(ordered, (counts[end] - more) // 2, 1 - end) for more in (0, 1)) / 2
            left -= middle
            moved = max(moved, float(np.max(np.abs(middle))))
            known += middle
            usual = statistics.median(known.ravel().tolist())    # for few values ten times as fast as np.median()
            whole += usual
            known -= usual
        if moved < 1e-12:
            break
    clients, servers = (dict(zip(one, known.ravel().tolist())) for one, known in zip(names, effects))
    return Parts(whole, clients, servers, {
        (client, server): float(left[names[0].index(client), names[1].index(server)]) for client, server in logs})
