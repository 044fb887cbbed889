"""Many connections on some threads at each end: ours and google/neper's in turn.

A cell is a test with a number of flows and threads. Who comes first changes from round to round, so that what
disturbs the machine meets both; a ratio is the median of the rounds' ratios, with the quartiles. What our
netperf refuses is shown with its line, and is no number.
"""

import datetime
import itertools
import os
import statistics
from pathlib import Path
from typing import List, NamedTuple, Optional, Sequence, Tuple

import common
import neper

TESTS = ("TCP_RR", "TCP_STREAM", "TCP_CRR", "UDP_RR")
FLOWS = (1, 10, 100, 1000)
THREADS = (1, 2)
STREAM_SIZE = 65536     # of a call of both
LEAST_RATE = 1.00       # of neper's rate
MOST_P99 = 1.00         # of neper's 99th percentile
LEAST_AT_WORK = 0.90    # of neper's flows, or its latencies are not compared
# One worker at each end has a processor of its own; several are where the kernel puts them.
APART = (0, 1)


class Asked(NamedTuple):
    """Which cells, and how each is measured."""
    tests: "Sequence[str]" = TESTS
    flows: "Sequence[int]" = FLOWS
    threads: "Sequence[int]" = THREADS
    rounds: int = 7
    seconds: int = 2
    engine: str = ""    # ours; empty: its own choice
    markdown: str = ""  # a file for the table

    def cells(self) -> "List[neper.Flows]":
        return [neper.Flows(test, flows, threads, STREAM_SIZE if test == "TCP_STREAM" else 0)
                for test, threads, flows in itertools.product(self.tests, self.threads, self.flows)]


class Cell(NamedTuple):
    """All rounds of a cell, or why there are none."""
    what: neper.Flows
    ours: "List[neper.Told]"
    theirs: "List[neper.Told]"
    fault: str = ""
    refused: bool = False

    def rates(self) -> "List[float]":
        return [mine.rate / other.rate for mine, other in zip(self.ours, self.theirs)]

    def p99(self) -> "List[float]":
        return [mine.p99 / other.p99 for mine, other in zip(self.ours, self.theirs)
                if mine.p99 is not None and other.p99]


def processors(what: neper.Flows) -> "Optional[Tuple[int, int]]":
    return APART if what.threads == 1 else None


def measure_ours(ours: common.Peer, what: neper.Flows, asked: Asked) -> neper.Told:
    bound = processors(what)
    words = (*(("-T", f"{bound[0]},{bound[1]}") if bound else ()), *(("-f", "m") if what.size else ()),
             *(("--flows", str(what.flows)) if what.flows > 1 else ()),
             *(("--threads", str(what.threads)) if what.threads > 1 else ()),
             *(("--engine", asked.engine) if asked.engine else ()))
    size = ("-m", str(what.size), "-M", str(what.size)) if what.size else ()
    cmd = ours.command(what.test, asked.seconds, words,
                       (*size, "-k", "THROUGHPUT,REMOTE_RECV_THROUGHPUT,P99_LATENCY,MEAN_LATENCY"))
    got = common.figures(common.run(cmd, asked.seconds + 15).out)
    rate = got.get("REMOTE_RECV_THROUGHPUT" if what.size else "THROUGHPUT")
    if not rate:
        raise common.Failed(f"{' '.join(cmd)}: no rate")
    return neper.Told(rate) if what.size else neper.Told(rate, got.get("P99_LATENCY"), got.get("MEAN_LATENCY"))


def idle(cell: Cell) -> str:
    """Whether neper's flows were not all at work, so that its latencies are those of fewer: over UDP one
    that lost a datagram waits for ever."""
    found = [told.at_work() for told in cell.theirs]
    working = statistics.median([many for many in found if many is not None] or [cell.what.flows])
    return f"neper: {working:.0f} flows at work" if working < LEAST_AT_WORK * cell.what.flows else ""


def measure_cell(ours: common.Peer, place: str, what: neper.Flows, asked: Asked) -> Cell:
    """All its rounds; one that fails ends it."""
    cell = Cell(what, [], [])
    try:
        for number in range(asked.rounds):
            for own in (True, False) if number % 2 == 0 else (False, True):
                if own:
                    cell.ours.append(measure_ours(ours, what, asked))
                else:
                    cell.theirs.append(neper.measure(place, what, asked.seconds, processors(what)))
    except common.Refused as fault:
        return cell._replace(fault=f"refused: {fault}", refused=True)
    except common.Failed as fault:
        return cell._replace(fault=f"failed: {fault}")
    return cell


# ---- what is shown ------------------------------------------------------------------------------

def middle(values: "List[float]") -> str:
    return f"{statistics.median(values):.0f}" if values else "-"


def columns(cell: Cell) -> "List[str]":
    """Of a cell that was measured: rates, their ratio, 99th percentiles, theirs."""
    late = [[told.p99 for told in told if told.p99 is not None] for told in (cell.ours, cell.theirs)]
    return [middle([told.rate for told in cell.ours]), middle([told.rate for told in cell.theirs]),
            common.spread(cell.rates(), 2), *map(middle, late),
            common.spread(cell.p99(), 2) if cell.p99() else "-"]


def verdict(cell: Cell, verdicts: common.Verdicts) -> str:
    """Whether both bars are held; a cell that failed misses them, one that is refused is not judged."""
    if cell.fault:
        return "" if cell.refused else verdicts.judge(False)
    said = verdicts.judge(statistics.median(cell.rates()) >= LEAST_RATE)
    if cell.p99():
        said += " " + (idle(cell) or verdicts.judge(statistics.median(cell.p99()) <= MOST_P99))
    return said


def as_markdown(cells: "List[Cell]", asked: Asked) -> str:
    day = datetime.date.today().isoformat()
    lines = [f"{common.machine()}; loopback, {day}; medians of {asked.rounds} rounds of {asked.seconds} s each, "
             "ours and neper in turn; ratios with their quartiles. Transactions/s or 10^6 bits/s received; "
             "p99 in microseconds.", "",
             "| test | threads | flows | ours | neper | ours / neper | p99 ours | p99 neper | p99 ours / neper |",
             "|---|---:|---:|---:|---:|---:|---:|---:|---:|"]
    for cell in cells:
        what = cell.what
        rest = columns(cell) if not cell.fault else [cell.fault.replace("|", "\\|"), *[""] * 5]
        rest[-1] += f"; {idle(cell)}" if idle(cell) else ""
        lines.append(f"| {' | '.join([what.test, str(what.threads), str(what.flows), *rest])} |")
    return "\n".join(lines) + "\n"


WIDTHS = (9, 9, 19, 8, 8, 19)


def compare(ours: common.Peer, asked: Asked, verdicts: common.Verdicts) -> None:
    place = os.path.abspath(os.environ["NEPER"]) if os.environ.get("NEPER") else ""
    reason = neper.why_not(place, tuple(asked.tests))
    if reason:
        print(f"SKIP: flows: {reason}\n", flush=True)
        return
    print(f"Many connections over loopback: medians of {asked.rounds} rounds of {asked.seconds} s each, ours and"
          " neper in\nturn. One worker at each end is on CPUs 0 and 1, several are unbound. Transactions/s or 10^6"
          " bits/s\nreceived; p99 in us. A ratio is the median of the rounds' ratios, with the quartiles. How many"
          " of neper's\nflows are at work is its rate times its mean latency: its p99 is compared where nearly all"
          " are.\n")
    heads = ("ours", "neper", "ours/neper", "p99 ours", "neper", "ours/neper")
    print(f"{'':11}threads  flows " + " ".join(map(str.rjust, heads, WIDTHS))
          + f"  bars >= {LEAST_RATE:.2f}, <= {MOST_P99:.2f}")
    cells = []
    for what in asked.cells():
        cell = measure_cell(ours, place, what, asked)
        cells.append(cell)
        shown = cell.fault or " ".join(map(str.rjust, columns(cell), WIDTHS))
        print(f"{what.test:11}{what.threads:7}{what.flows:7} {shown}  {verdict(cell, verdicts)}".rstrip(), flush=True)
        if asked.markdown:
            Path(asked.markdown).write_text(as_markdown(cells, asked), encoding="utf-8")
    print()
