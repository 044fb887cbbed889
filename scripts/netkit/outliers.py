"""Which values lie above the others: the generalised ESD test (Rosner 1983), for up to half of them, and modified z-scores."""

import math
import statistics
from typing import Any, List, Sequence

from netkit import python

SCORE = 5           # a modified z-score (Iglewicz and Hoaglin 1993) from where a value is an outlier


def esd(values: "Sequence[float]", error: float, least: float = 0.0) -> "List[int]":
    """Their numbers; of values without one it names some with this probability, if they are gaussian. least: a standard
    deviation that the others have at least. Raises python.MissingModule."""
    student: Any = python.need("scipy.stats", "python3-scipy", "the test for outliers (--mesh, --paths)").t
    order = sorted(range(len(values)), key=lambda number: -values[number])
    found = 0
    for first in range(len(order) // 2):
        rest = [values[number] for number in order[first:]]
        n, t = len(rest), student.isf(error / len(rest), len(rest) - 2)
        if rest[0] - statistics.mean(rest) > max(statistics.stdev(rest), least) * (n - 1) * t / math.sqrt((n - 2 + t * t) * n):
            found = first + 1
    return order[:found]
