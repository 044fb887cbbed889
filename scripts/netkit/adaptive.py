"""Which value of an axis to measure next, so that straight lines between the measured ones come near the curve
(netsweep --adaptive). Values are counted: what lies between two neighbours of a plan nobody asks for."""

import math
import statistics
from typing import Collection, Dict, List, Optional, Sequence, Tuple

Known = Dict[int, Tuple[float, float]]      # by the value's number: the mean of its runs, and its standard error
TOLERANCE = 2.0     # percent of the curve's span
PARTS = 5           # of the axis, at whose ends it begins: no bend is expected that shows at none of them


def of_runs(values: Sequence[float]) -> "Tuple[float, float]":
    error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return statistics.fmean(values), error


def bend(before: Optional[float], slope: float, after: Optional[float], length: int) -> "Tuple[float, float]":
    """How far a curve can be from the line between two of its points, and where, in steps from the first: of one that
    bends one way it is between that line and those through its neighbours, up to where they meet. Where there is one
    neighbour alone the curve is taken to bend as much at the other end."""
    one = slope - before if before is not None else None
    other = after - slope if after is not None else None
    one, other = (other if one is None else one) or 0.0, (one if other is None else other) or 0.0
    if one * other > 0:
        return length * one * other / (one + other), length * other / (one + other)
    return length * max(abs(one), abs(other)) / 4, length / 2


def next_value(count: int, known: Known, lost: "Collection[int]" = (), tolerance: float = TOLERANCE) -> Optional[int]:
    """The number of the value to measure next, of count; None: the lines are near enough. Of those that are lost there
    will be no figure."""
    for number in (round(part * (count - 1) / PARTS) for part in range(PARTS + 1)):
        if number not in known and number not in lost:
            return number
    at: "List[int]" = sorted(known)
    if len(at) < 2:
        return next((number for number in range(count) if number not in known and number not in lost), None)
    means = [known[number][0] for number in at]
    slopes = [(known[b][0] - known[a][0]) / (b - a) for a, b in zip(at, at[1:])]
    worst, chosen = (max(means) - min(means)) * tolerance / 100, None
    for i, slope in enumerate(slopes):
        a, b = at[i], at[i + 1]
        free = [number for number in range(a + 1, b) if number not in lost]
        far, where = bend(slopes[i - 1] if i else None, slope, slopes[i + 1] if i + 1 < len(slopes) else None, b - a)
        far = abs(far) - known[a][1] - known[b][1]
        if free and far > worst:
            worst, chosen = far, min(free, key=lambda number: abs(number - a - where))
    return chosen
