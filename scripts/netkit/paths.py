"""netreport --paths: flows that lose packets or lag. Paths depend on ports, so a bad one affects only some flows."""

import math
import statistics
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple, Union

from netkit import outliers
from netkit.tables import Block, Sweep, Words
from netkit.units import show_point

ERROR = 0.01        # probability that a run without a bad path has a flow named for its losses
LEAST = 0.001       # smaller loss ratios don't matter
BURST = 40.0        # packets of a stream that are lost at a time, at most
FEW = 2.0           # the same for requests, which are further apart
LAG, LAG_US = 25.0, 20      # percent above the others' minimum RTT, and microseconds, below which lag doesn't matter
SEPARATE = 3, 16    # times the range of the others, or as much more as the flows are fewer than this
LEAST_FLOWS = 8
HEAD = ["at", "what is worse", "flows", "figure", "others", "ports"]
Counts = Sequence[Tuple[int, int]]      # for each flow, packets lost and sent


class Worse(NamedTuple):
    """The finding in words, the flows' indexes, their figure, and the others'."""
    what: str
    flows: "List[int]"
    figure: str
    others: str


def share(counts: Counts) -> float:
    return sum(lost for lost, _ in counts) / max(1, sum(sent for _, sent in counts))


def lossy(counts: Counts, most: float = BURST) -> "List[int]":
    """Flows that lose more than others, up to half, by the ESD test on square roots. Losses come in bursts: their
    variance is a multiple of the mean; `most` losses may be one event, or fewer if half of the flows lose fewer."""
    usual = statistics.median(sent for _, sent in counts)
    scaled = [lost * usual / max(1, sent) for lost, sent in counts]
    low = sorted(scaled)[:(len(counts) + 1) // 2]
    burst = min(most, max(1.0, sum(one * one for one in low) / sum(low))) if low[len(low) // 2] else most
    roots = [2 * math.sqrt(lost) for lost in scaled]    # their variance would be 1 if losses were independent
    middle = statistics.median(roots)       # of a flow that sent less, the noise was scaled up as well
    roots = [middle + (one - middle) * math.sqrt(min(1.0, n / max(1, usual))) for one, (_, n) in zip(roots, counts)]
    found = outliers.esd(roots, ERROR, math.sqrt(burst))
    return sorted(number for number in found if counts[number][0] >= LEAST * counts[number][1])


def laggards(times: "Dict[int, int]") -> "Tuple[List[int], float]":
    """Flows with longer round trips than the others, up to half of them, and the others' median. The gap before the
    first of them must be SEPARATE times the whole range of the others, which delays with a long tail seldom produce."""
    order, separate = sorted(times, key=times.__getitem__), SEPARATE[0] * max(1.0, SEPARATE[1] / len(times))
    for first in range((len(order) + 1) // 2, len(order)):
        good = [times[number] for number in order[:first]]
        gap = times[order[first]] - good[-1]
        if gap >= max(LAG / 100 * good[-1], LAG_US, separate * (good[-1] - good[0])):
            return sorted(order[first:]), statistics.median(good)
    return [], statistics.median(times.values())


def losses(rows: "Dict[int, Dict[str, Any]]", by_number: bool) -> "Dict[int, Tuple[int, int]]":
    """By flow: TCP's retransmissions or, if all flows have the same number of transactions to do, the missing ones."""
    counts = {number: (row["retransmissions"], row["data_segments"]) for number, row in rows.items()
              if row.get("retransmissions") is not None and row.get("data_segments")}
    if counts or not by_number:
        return counts
    done = {number: row["transactions"] for number, row in rows.items() if row.get("transactions")}
    most = max(done.values(), default=0)
    return {number: (max(0, most - count - 1), most) for number, count in done.items()}


def worse(flows: "List[Dict[str, Any]]", by_number: bool) -> "Tuple[List[Worse], int]":
    """Findings, and how many flows have nothing to judge. by_number: all have the same number of transactions."""
    done = [row["transactions"] if row.get("transactions") is not None else row.get("bytes_sent", 1) + row.get("bytes_received", 1)
            for row in flows]
    silent = [number for number, amount in enumerate(done) if not amount]
    if 0 < len(silent) < len(flows) and statistics.median(row.get("transactions") or 0 for row in flows) < FEW and by_number:
        silent = []     # with few transactions some flows do none
    found = [Worse("gives nothing", silent, "0", "")] if silent else []
    rows = {number: row for number, row in enumerate(flows) if number not in silent}
    counts = losses(rows, by_number)
    order = list(counts) if len(counts) >= LEAST_FLOWS else []
    bad = [order[one] for one in lossy([counts[number] for number in order], FEW if rows[order[0]].get("transactions") else BURST)
           ] if order else []
    if bad:
        rest = [counts[number] for number in order if number not in bad]
        found.append(Worse("loses (%)", bad, f"{100 * share([counts[i] for i in bad]):.2f}", f"{100 * share(rest):.2f}"))
    times = {number: row["min_rtt_us"] for number, row in rows.items() if row.get("min_rtt_us")}
    late, usual = laggards(times) if len(times) >= LEAST_FLOWS else ([], 0.0)
    if late:
        found.append(Worse("lags (us)", late, f"{statistics.median(times[number] for number in late):.0f}", f"{usual:.0f}"))
    return found, sum(number not in counts and number not in times for number in rows)


def block(sweep: Sweep) -> Block:
    rows: "List[List[Union[str, Words]]]" = []
    notes = [f"worse: loses {100 * LEAST:g} % or more, and more than the others (generalised ESD, error {100 * ERROR:g} % a run, "
             f"bursts of up to {BURST:g} packets of streams, {FEW:g} requests); a least round trip {LAG:g} % and {LAG_US} us longer than all others', and {SEPARATE[0]} "
             f"times their range ({SEPARATE[0] * SEPARATE[1]} divided by the number of flows if those are fewer than {SEPARATE[1]})"]
    for cell in sweep.cells.values():
        for run in cell.tried():
            flows, known = run.more.get("flows") or [], {**sweep.constants, **run.point}
            at = show_point(run.point) or "all"
            if not run.ok:
                rows.append([at, f"failed: {run.reason()}", "", "", "", ""])
                continue
            if len(flows) < LEAST_FLOWS or any(row.get("local_port") is None for row in flows):
                notes.append(f"{at}: fewer than {LEAST_FLOWS} flows, or none with their ports")
                continue
            found, unknown = worse(flows, known.get("asked_rate") is not None)
            for one in found:
                ports = " ".join(f"{flows[number]['local_port']}>{flows[number]['remote_port']}" for number in one.flows)
                rows.append([at, one.what, f"{len(one.flows)} of {len(flows)}", one.figure, one.others, ports])
            if unknown:
                notes.append(f"{at}: can't tell of {unknown} of {len(flows)} flows: neither losses nor round trips are known")
            elif not found:
                notes.append(f"{at}: no flow is worse than the others")
    return Block("Flows of a run that are worse than its others", HEAD, rows, notes, left=(0, 1, 5))
