"""Which flows of a run lose or lag while the others don't (netreport --paths): routers and bundles of links choose a path by a
flow's addresses and ports, so a bad one shows in some flows only."""

import math
import statistics
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

from netkit import mesh, python
from netkit.tables import Block, Sweep, Words
from netkit.units import show_point

ERROR = 0.01        # that a run without a bad path has a flow named for its losses
LEAST = 0.001       # a smaller part lost does not matter
LAG, LAG_US = 25.0, 20      # of the others' least round trip in percent, and microseconds, likewise
LEAST_FLOWS = 8
HEAD = ["at", "what is worse", "flows", "figure", "others", "ports"]
Counts = Sequence[Tuple[int, int]]      # of each flow, what was lost of what was sent


class Worse(NamedTuple):
    """In words, the flows' numbers, their figure, and what the others have."""
    what: str
    flows: "List[int]"
    figure: str
    others: str


def share(counts: Counts) -> float:
    return sum(lost for lost, _ in counts) / max(1, sum(sent for _, sent in counts))


def lossy(counts: Counts) -> "List[int]":
    """Those that lose more than the others, if all of these lose alike: by the binomial distribution, with the error shared
    among the flows (Bonferroni), again without those that were found. Raises python.MissingModule."""
    binom = python.need("scipy.stats", "python3-scipy", "--paths").binom
    good = dict(enumerate(counts))
    while True:
        found = []
        all_lost, all_sent = (sum(counted) for counted in zip(*good.values()))
        for number, (lost, sent) in good.items():
            usual = (1 + all_lost - lost) / (1 + all_sent - sent)       # of the others
            if sent and lost / sent >= max(LEAST, usual) and binom.sf(lost - 1, sent, usual) < ERROR / len(counts):
                found.append(number)
        if not found or len(found) == len(good):
            return [number for number in range(len(counts)) if number not in good]
        for number in found:
            del good[number]


def laggards(times: "Dict[int, int]") -> "Tuple[List[int], float]":
    """Those with longer round trips than the others, found again without those that were found; and the others' median."""
    good = dict(times)
    while True:
        usual = statistics.median(good.values())
        speeds = {number: -math.log(time) for number, time in good.items()}
        late = [number for number in mesh.outliers(speeds, mesh.spread(speeds), 100 - 100 / (1 + LAG / 100))
                if good[number] >= usual + LAG_US]
        for number in late:
            del good[number]
        if not late or len(good) <= len(times) / 2:
            return sorted(times.keys() - good.keys()), usual


def losses(rows: "List[Dict[str, Any]]") -> Optional[Counts]:
    """By TCP's retransmissions; else by the transactions that are missing where all flows have
    as many to do."""
    if all(row.get("retransmissions") is not None and row.get("data_segments") for row in rows):
        return [(row["retransmissions"], row["data_segments"]) for row in rows]
    if all(row.get("transactions") for row in rows):
        most = max(row["transactions"] for row in rows)
        return [(max(0, most - row["transactions"] - 1), most) for row in rows]
    return None


def worse(rows: "List[Dict[str, Any]]", by_number: bool) -> "List[Worse]":
    """by_number: all flows have as many transactions to do. Raises python.MissingModule."""
    found = []
    counts = losses(rows) if by_number or rows[0].get("retransmissions") is not None else None
    bad = lossy(counts) if counts else []
    if counts and bad:
        rest = [one for number, one in enumerate(counts) if number not in bad]
        found.append(Worse("loses (%)", bad, f"{100 * share([counts[i] for i in bad]):.2f}", f"{100 * share(rest):.2f}"))
    times = {number: row["min_rtt_us"] for number, row in enumerate(rows) if row.get("min_rtt_us")}
    if len(times) == len(rows):
        late, usual = laggards(times)
        if late:
            found.append(Worse("lags (us)", late, f"{statistics.median(times[number] for number in late):.0f}", f"{usual:.0f}"))
    return found


def block(sweep: Sweep) -> Block:
    rows: "List[List[Union[str, Words]]]" = []
    notes = [f"worse: loses {100 * LEAST:g} % or more, and more than the others (binomial, error {100 * ERROR:g} % a run); a least "
             f"round trip {LAG:g} % and {LAG_US} us longer, and a modified z-score of {mesh.SCORE:g}"]
    for cell in sweep.cells.values():
        for run in cell.good():
            flows, known = run.more.get("flows") or [], {**sweep.constants, **run.point}
            at = show_point(run.point) or "all"
            if len(flows) < LEAST_FLOWS or any(row.get("local_port") is None for row in flows):
                notes.append(f"{at}: fewer than {LEAST_FLOWS} flows, or none with their ports")
                continue
            found = worse(flows, known.get("asked_rate") is not None)
            for one in found:
                ports = " ".join(f"{flows[number]['local_port']}>{flows[number]['remote_port']}" for number in one.flows)
                rows.append([at, one.what, f"{len(one.flows)} of {len(flows)}", one.figure, one.others, ports])
            notes += [] if found else [f"{at}: no flow is worse than the others"]
    return Block("Flows of a run that are worse than its others", HEAD, rows, notes, left=(0, 1, 5))
