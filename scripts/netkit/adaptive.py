"""netsweep --adaptive: the next value to measure, by index in the plan, so that lines between values fit a curve."""

import math
import statistics
from typing import Collection, Dict, List, Optional, Sequence, Tuple

Known = Dict[int, Tuple[float, float]]      # by index of the value: mean of its runs, and standard error
TOLERANCE = 2.0     # percent of the curve's span
PARTS = 5           # sections to start with: their ends are measured first, and every bend should show at one of them


def of_runs(values: Sequence[float]) -> "Tuple[float, float]":
    error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return statistics.fmean(values), error


def bend(before: Optional[float], slope: float, after: Optional[float], length: int) -> "Tuple[float, float]":
    """How far a curve may be from the line between adjacent points, and where, in steps from the first. If it bends in
    one direction, the neighbouring lines bound it up to where they meet. A single one counts for both ends."""
    one = slope - before if before is not None else None
    other = after - slope if after is not None else None
    one, other = (other if one is None else one) or 0.0, (one if other is None else other) or 0.0
    if one * other > 0:
        return length * one * other / (one + other), length * other / (one + other)
    return length * max(abs(one), abs(other)) / 4, length / 2


def next_value(count: int, known: Known, lost: "Collection[int]" = (), tolerance: float = TOLERANCE) -> Optional[int]:
    """The index of the next value of `count`; None if the lines are close enough. `lost` values can't be measured."""
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
