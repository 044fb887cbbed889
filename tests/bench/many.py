"""All cells: a test with a number of flows and threads under an engine, beside google/neper, netperf and iperf3.

Of a cell all run in turn, and who comes first changes from round to round, so that what disturbs the machine meets
all of them; a ratio is the median of the rounds' ratios, with the interval that holds it with 95 %. What our netperf
refuses is shown with its line, and is no number.
"""

import datetime
import itertools
import os
import statistics
from pathlib import Path
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import common
import iperf3
import lib
import neper

TESTS = ("TCP_RR", "TCP_STREAM", "TCP_CRR", "UDP_RR")
FLOWS = (1, 10, 100, 1000)
THREADS = (1, 2)
ENGINES = ("", "uring")     # ours; empty: its own choice
STREAM_SIZE = 65536     # of a call of all
LEAST_RATE = 0.95       # of another program's rate
MOST_P99 = 1.00         # of neper's 99th percentile
LEAST_AT_WORK = 0.90    # of neper's flows, or its latencies are not compared
# One worker at each end has a processor of its own; several are where the kernel puts them.
APART = (0, 1)
Measure = Callable[[], neper.Told]


class Asked(NamedTuple):
    """Which cells, and how each is measured."""
    tests: "Sequence[str]" = TESTS
    flows: "Sequence[int]" = FLOWS
    threads: "Sequence[int]" = THREADS
    rounds: int = 9
    seconds: int = 2
    engines: "Sequence[str]" = ENGINES
    markdown: str = ""  # a file for the table

    def cells(self) -> "List[Tuple[neper.Flows, str]]":
        """One flow has one thread."""
        return [(neper.Flows(test, flows, threads, STREAM_SIZE if test == "TCP_STREAM" else 0), engine)
                for test, engine, threads, flows in itertools.product(self.tests, self.engines, self.threads,
                                                                      self.flows)
                if flows >= threads]


class Cell(NamedTuple):
    """All rounds of a cell beside one program, or why there are none."""
    what: neper.Flows
    engine: str
    beside: str
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


def measure_netperf(peer: common.Peer, what: neper.Flows, seconds: int, engine: str = "") -> neper.Told:
    """Ours, or the real one."""
    bound = processors(what)
    words = (*(("-T", f"{bound[0]},{bound[1]}") if bound else ()), *(("-f", "m") if what.size else ()),
             *(("--flows", str(what.flows)) if what.flows > 1 else ()),
             *(("--threads", str(what.threads)) if what.threads > 1 else ()),
             *(("--engine", engine) if engine else ()))
    # Calls of a stream are timed only for its latency, which no other program has.
    size = ("-m", str(what.size), "-M", str(what.size)) if what.size else ()
    asked = "REMOTE_RECV_THROUGHPUT" if what.size else "THROUGHPUT,P99_LATENCY,MEAN_LATENCY"
    cmd = peer.command(what.test, seconds, words, (*size, "-k", asked))
    got = common.figures(common.run(cmd, seconds + 15).out)
    rate = got.get("REMOTE_RECV_THROUGHPUT" if what.size else "THROUGHPUT")
    if not rate:
        raise common.Failed(f"{' '.join(cmd)}: no rate")
    return neper.Told(rate) if what.size else neper.Told(rate, got.get("P99_LATENCY"), got.get("MEAN_LATENCY"))


def contenders(real: Optional[common.Peer], place: str, what: neper.Flows, seconds: int) -> "Dict[str, Measure]":
    """The programs that have such a test."""
    found: "Dict[str, Measure]" = {}
    if not neper.why_not(place, (what.test,)):
        found["neper"] = lambda: neper.measure(place, what, seconds, processors(what))
    if real and what.flows == 1:
        found["netperf"] = lambda: measure_netperf(real, what, seconds)
    if what.size and what.threads == 1 and what.flows <= iperf3.MOST_FLOWS and iperf3.is_there():
        found["iperf3"] = lambda: neper.Told(iperf3.tcp(what.size, what.flows, seconds, APART))
    return found


def idle(cell: Cell) -> str:
    """Whether neper's flows were not all at work, so that its latencies are those of fewer: over UDP one
    that lost a datagram waits for ever."""
    found = [told.at_work() for told in cell.theirs]
    working = statistics.median([many for many in found if many is not None] or [cell.what.flows])
    return f"neper: {working:.0f} flows at work" if working < LEAST_AT_WORK * cell.what.flows else ""


def measure_cell(ours: common.Peer, others: "Dict[str, Measure]", what: neper.Flows, engine: str,
                 asked: Asked) -> "List[Cell]":
    """All its rounds beside each."""
    run: "Dict[str, Measure]" = {"ours": lambda: measure_netperf(ours, what, asked.seconds, engine), **others}
    told, failed = common.in_turn(run, asked.rounds)
    faults = {name: (f"refused: {why}", True) if isinstance(why, common.Refused) else (f"failed: {why}", False)
              for name, why in failed.items()}
    if "ours" in faults:
        return [Cell(what, engine, "-", [], [], *faults["ours"])]
    return [Cell(what, engine, name, told["ours"], told[name], *faults.get(name, ("", False))) for name in others]


# ---- what is shown ------------------------------------------------------------------------------

HEADS = ("test", "engine", "threads", "flows", "beside", "ours", "theirs", "ours / theirs", "p99 ours", "theirs",
         "ours / theirs")
WIDTHS = (10, 6, 7, 5, 8, 8, 8, 18, 8, 8, 18)


def middle(values: "List[float]") -> str:
    return f"{statistics.median(values):.0f}" if values else "-"


def columns(cell: Cell) -> "List[str]":
    what = cell.what
    first = [what.test, cell.engine or "-", str(what.threads), str(what.flows), cell.beside]
    if cell.fault:
        return [*first, cell.fault, *[""] * 5]
    late = [[told.p99 for told in told if told.p99 is not None] for told in (cell.ours, cell.theirs)]
    return [*first, middle([told.rate for told in cell.ours]), middle([told.rate for told in cell.theirs]),
            common.interval(cell.rates()), *map(middle, late), common.interval(cell.p99()) if cell.p99() else "-"]


def verdict(cell: Cell, verdicts: common.Verdicts) -> str:
    """Whether the bars are held; a cell that failed misses them, one that is refused is not judged. That of the
    latency is neper's, which has as many flows."""
    if cell.fault:
        return "" if cell.refused else verdicts.judge(False)
    said = verdicts.judge(statistics.median(cell.rates()) >= LEAST_RATE)
    if cell.p99() and cell.beside == "neper":
        said += " " + (idle(cell) or verdicts.judge(statistics.median(cell.p99()) <= MOST_P99))
    return said


def as_markdown(cells: "List[Cell]", asked: Asked) -> str:
    day = datetime.date.today().isoformat()
    lines = [f"{common.machine()}; loopback, {day}; medians of {asked.rounds} rounds of {asked.seconds} s each, "
             "all of a cell in turn; ratios with the interval that holds the median with 95 % (of fewer than "
             f"{common.ENOUGH} rounds the least and greatest). Transactions/s or 10^6 bits/s received; p99 in "
             f"microseconds. {iperf3.version()}.", "",
             f"| {' | '.join(HEADS)} |", f"|{'---|' * 2}{'---:|' * 2}---|{'---:|' * 6}"]
    for cell in cells:
        row = [column.replace("|", "\\|") for column in columns(cell)]
        row[-1] += f"; {idle(cell)}" if not cell.fault and cell.beside == "neper" and idle(cell) else ""
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines) + "\n"


def compare(real: Optional[common.Peer], asked: Asked, verdicts: common.Verdicts) -> None:
    place = os.path.abspath(os.environ["NEPER"]) if os.environ.get("NEPER") else ""
    reason = neper.why_not(place, tuple(asked.tests))
    if reason:
        print(f"SKIP: neper: {reason}\n", flush=True)
    print(f"All cells over loopback: medians of {asked.rounds} rounds of {asked.seconds} s each, all of a cell in turn."
          " One worker at\neach end is on CPUs 0 and 1, several are unbound. Transactions/s or 10^6 bits/s received;"
          " p99 in us. A ratio is\nthe median of the rounds' ratios, with its 95 % interval. How many of neper's flows"
          " are at work is its rate\ntimes its mean latency: its p99 is compared where nearly all are."
          f" {iperf3.version()}.\n")
    print(" ".join(map(str.ljust, HEADS, WIDTHS)) + f"  bars >= {LEAST_RATE:.2f}, <= {MOST_P99:.2f}")
    cells: "List[Cell]" = []
    with common.daemon(*common.daemon_options()) as daemon:
        ours = common.Peer("ours", lib.netperf(), daemon.port)
        for what, engine in asked.cells():
            others = contenders(real, place, what, asked.seconds)
            for cell in measure_cell(ours, others, what, engine, asked) if others else []:
                cells.append(cell)
                print(f"{' '.join(map(str.ljust, columns(cell), WIDTHS))}  {verdict(cell, verdicts)}".rstrip(),
                      flush=True)
            if asked.markdown:
                Path(asked.markdown).write_text(as_markdown(cells, asked), encoding="utf-8")
    print()
