"""What the engines reach, beside other programs and beside bare loops of the same calls (ways.c).

A row is a test under one engine, a contender what it is compared with: the real netperf, a bare loop, google/neper,
iperf3, sockperf. All of a row run in turn, and who comes first changes from round to round, so that what disturbs
the machine meets all of them; a ratio is the median of the rounds' ratios, with the quartiles. A goal is a least
ratio; a contender without one is there to be seen. What can't be measured is a line with the reason.
"""

import datetime
import json
import os
import re
import statistics
from contextlib import ExitStack
from pathlib import Path
from typing import Callable, List, NamedTuple, Optional, Tuple

import common
import iperf3
import lib
import many
import neper

APART = (0, 1)          # the processors of the near and the far end
SMALL = 64              # bytes of a datagram
PACKET = 1400
LARGE = 65536           # of a call of a stream
FLOWS = ((100, 1.2), (1000, 1.3))   # and of neper's rate the least
Measure = Callable[[], float]


class Contender(NamedTuple):
    """What one row is compared with."""
    name: str
    measure: Measure
    goal: Optional[float] = None


class Row(NamedTuple):
    """A test under an engine. Figures are divided by `scale` to be in the unit."""
    test: str
    engine: str
    unit: str
    measure: Measure
    others: "Tuple[Contender, ...]"
    scale: float = 1.0


class Asked(NamedTuple):
    rounds: int = 7
    seconds: int = 2
    only: "Tuple[str, ...]" = ()    # engines; empty: all
    markdown: str = ""              # a file for the table


class Programs(NamedTuple):
    """What is measured: ours, the others or why there are none, and for how long."""
    ours: common.Peer
    real: Optional[common.Peer]
    bare: str
    seconds: int

    def run_ours(self, what: common.Timed, engine: str) -> Measure:
        return lambda: common.rate_of_peer(self.ours, what, self.seconds, ("--engine", engine) if engine else ())

    def run_real(self, what: common.Timed) -> Measure:
        def measure() -> float:
            if self.real is None:
                raise common.Unmeasured("no real netperf")
            return common.rate_of_peer(self.real, what, self.seconds)
        return measure

    def run_bare(self, loop: str, size: int = 0) -> Measure:
        what = common.Timed(loop, loop, APART, size)
        return lambda: common.rate_of_bare(self.bare, what, self.seconds)


# ---- other programs -----------------------------------------------------------------------------

def iperf3_udp(size: int, seconds: int) -> Measure:
    return lambda: iperf3.udp(size, seconds, APART)


SOCKPERF = re.compile(r"\[Valid Duration\] RunTime=([0-9.]+) sec; SentMessages=\d+; ReceivedMessages=(\d+)")


def sockperf(test: str, seconds: int) -> Measure:
    """Round trips a second by sockets that never block; its messages have 14 bytes at least."""
    tcp = ["--tcp"] if test == "TCP_RR" else []

    def measure() -> float:
        port = str(lib.free_port())
        words = ["-i", common.HOST, "-p", port, "--nonblocked", *tcp]
        with lib.Started([*iperf3.bound(APART[1]), common.needs("sockperf"), "server", *words]) as server:
            if not lib.wait_for(lambda: (lib.listening(int(port)) if tcp else "Warmup" in server.said()
                                         or "using recvfrom" in server.said()) or not server.running(), 10):
                raise common.Failed(f"sockperf does not listen: {server.said()}")
            got = common.run([*iperf3.bound(APART[0]), "sockperf", "ping-pong", *words, "-t", str(seconds + 1)],
                             seconds + 16)  # the first 0.4 s and the last are not in its result
        found = SOCKPERF.search(got.out)
        if not found:
            raise common.Failed(f"sockperf told no result: {got.out[-200:]}")
        return int(found[2]) / float(found[1])
    return measure


def with_neper(flows: int, seconds: int) -> Measure:
    place = os.path.abspath(os.environ["NEPER"]) if os.environ.get("NEPER") else ""

    def measure() -> float:
        reason = neper.why_not(place, ("TCP_RR",))
        if reason:
            raise common.Unmeasured(reason)
        return neper.measure(place, neper.Flows("TCP_RR", flows), seconds, APART).rate
    return measure


# ---- the rows -----------------------------------------------------------------------------------

def datagrams(p: Programs, engine: str, size: int, others: "Tuple[Contender, ...]") -> Row:
    """In 10^6 datagrams/s received."""
    return Row(f"UDP_STREAM -m {size}", engine, "10^6/s", p.run_ours(sized("UDP_STREAM", size), engine), others,
               8.0 * size)


def sized(test: str, size: int = 0) -> common.Timed:
    return common.Timed(test, test, APART, size, "far_rate" if test == "UDP_STREAM" else "rate")


def rows_of_datagrams(p: Programs) -> "List[Row]":
    small = sized("UDP_STREAM", SMALL)
    found = [datagrams(p, "segment", SMALL, (Contender("netperf", p.run_real(small), 30.0),
                                             Contender("bare loop", p.run_bare("SEGMENT", SMALL), 0.7))),
             datagrams(p, "batch", SMALL, (Contender("netperf", p.run_real(small), 1.3),
                                           Contender("bare loop", p.run_bare("BATCH", SMALL))))]
    for size in (SMALL, PACKET):
        peer = iperf3_udp(size, p.seconds)
        found += [datagrams(p, engine, size, (Contender("iperf3", peer, 1.0 if engine == "segment" else None),))
                  for engine in ("segment", "batch", "sync")]
    return found


def rows_of_streams(p: Programs) -> "List[Row]":
    found = []
    for test, loop in (("TCP_SENDFILE", "SENDFILE_TRUNCATE"), ("TCP_STREAM", "TRUNCATE")):
        for engine in ("zerocopy",) if test == "TCP_SENDFILE" else (",zerocopy", "zerocopy"):
            # Over loopback the kernel copies what was to be sent without a copy: no goal for that.
            judged = engine == ",zerocopy" or test == "TCP_SENDFILE"
            found.append(Row(test, engine, "Mbit/s", p.run_ours(sized(test), engine),
                             (Contender("netperf", p.run_real(sized(test)), 1.5 if judged else None),
                              Contender("bare loop", p.run_bare(loop), 0.9 if judged else None))))
        # The goals are for calls of the usual size; larger ones show what of that is the sender's calls.
        found.append(Row(f"{test} -m {LARGE}", ",zerocopy", "Mbit/s", p.run_ours(sized(test, LARGE), ",zerocopy"),
                         (Contender("netperf", p.run_real(sized(test, LARGE))),
                          Contender("bare loop", p.run_bare(loop, LARGE)))))
    return found


def rows_of_transactions(p: Programs) -> "List[Row]":
    found = [Row(test, "spin", "/s", p.run_ours(sized(test), "spin"),
                 (Contender("netperf", p.run_real(sized(test)), 5.0),
                  Contender("bare loop", p.run_bare(f"SPIN_{test}"), 0.9),
                  Contender("sockperf", sockperf(test, p.seconds))))
             for test in ("TCP_RR", "UDP_RR")]
    for flows, goal in FLOWS:
        cell = neper.Flows("TCP_RR", flows)
        found.append(Row(f"TCP_RR --flows {flows}", "uring", "/s",
                         lambda cell=cell: many.measure_netperf(p.ours, cell, p.seconds, "uring").rate,
                         (Contender("neper", with_neper(flows, p.seconds), goal),)))
    return found


def why_not(ours: common.Peer, row: Row) -> str:
    """What our netperf says against the engine at either end; empty: nothing."""
    got = lib.run([ours.client, "-H", ours.host, "-p", str(ours.port), "-t", row.test.split()[0],
                   *(["--flows", "2"] if "--flows" in row.test else []), "--engine", "list", "--json"], 20)
    if got.rc != 0:
        raise common.Failed(f"--engine list: {got.err.strip()}")
    listed, near, far = json.loads(got.out), *(row.engine.split(",") * 2)[:2]
    for end, name in (("near", near), ("far", far)):
        why = {one["name"]: one["why"] for one in listed[end] or ()}
        if name and name not in why:
            return "no such engine"
        if name and why[name]:
            return str(why[name])
    return ""


# ---- a row's rounds -----------------------------------------------------------------------------

class Line(NamedTuple):
    """A row beside one contender: all rounds of both, or why there are none."""
    row: Row
    other: Contender
    mine: "List[float]"
    theirs: "List[float]"
    fault: str = ""
    judged: bool = True     # a fault misses the goal

    def ratios(self) -> "List[float]":
        return [mine / other for mine, other in zip(self.mine, self.theirs)]

    def verdict(self, verdicts: common.Verdicts) -> str:
        if self.other.goal is None or (self.fault and not self.judged):
            return ""
        return verdicts.judge(not self.fault and statistics.median(self.ratios()) >= self.other.goal)

    def columns(self) -> "List[str]":
        if self.fault:
            return [f"not measured: {self.fault}", "", ""]
        return [figure(self.mine, self.row), figure(self.theirs, self.row), common.spread(self.ratios(), 2)]


def figure(values: "List[float]", row: Row) -> str:
    value = statistics.median(values) / row.scale
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def measure_row(row: Row, rounds: int) -> "List[Line]":
    """Ours once a round, and each contender."""
    rates, failed = common.in_turn({"ours": row.measure, **{one.name: one.measure for one in row.others}}, rounds)
    faults = {name: (str(why), not isinstance(why, (common.Unmeasured, common.Refused))) for name, why in failed.items()}
    return [Line(row, one, rates["ours"], rates[one.name], *faults.get("ours", faults.get(one.name, ("", True))))
            for one in row.others]


# ---- what is shown ------------------------------------------------------------------------------

HEADS = ("test", "engine", "beside", "ours", "theirs", "ours / theirs", "goal", "")
WIDTHS = (22, 9, 9, 9, 9, 20, 6, 6)


def cells(line: Line, verdict: str) -> "List[str]":
    row, goal = line.row, line.other.goal
    return [row.test, row.engine, line.other.name, *line.columns(), f">= {goal:g}" if goal is not None else "",
            verdict]


def as_markdown(table: "List[List[str]]", asked: Asked) -> str:
    lines = [f"{common.machine()}; loopback, {datetime.date.today().isoformat()}; medians of {asked.rounds} rounds of "
             f"{asked.seconds} s each, all of a row in turn; ratios with their quartiles. The near end is bound to "
             "processor 0, the far one to 1. Received: 10^6 datagrams/s of UDP_STREAM, 10^6 bits/s of the other "
             f"streams; else transactions/s. {iperf3.version()}.", "",
             f"| {' | '.join(HEADS[:-1])} | |", "|---|---|---|---:|---:|---:|---|---|"]
    lines += [f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in table]
    return "\n".join(lines) + "\n"


def rows_of(programs: Programs, only: "Tuple[str, ...]") -> "List[Row]":
    found = [*rows_of_datagrams(programs), *rows_of_streams(programs), *rows_of_transactions(programs)]
    return [row for row in found if not only or row.engine.strip(",") in only]


def compare(real: Optional[common.Peer], bare: str, asked: Asked, verdicts: common.Verdicts) -> None:
    print(f"Engines over loopback: medians of {asked.rounds} rounds of {asked.seconds} s each, all of a row in turn."
          " CPU 0 is\nthe near end's, 1 the far end's. UDP_STREAM in 10^6 datagrams/s received, other streams in 10^6"
          f" bits/s,\nelse transactions/s. {iperf3.version()}.\n")
    print(" ".join(map(str.ljust, HEADS, WIDTHS)).rstrip())
    table = []
    with ExitStack() as stack:
        daemon = stack.enter_context(common.daemon(*common.daemon_options()))
        programs = Programs(common.Peer("ours", lib.netperf(), daemon.port), real, bare, asked.seconds)
        for row in rows_of(programs, asked.only):
            reason = why_not(programs.ours, row)
            lines = ([Line(row, one, [], [], reason, False) for one in row.others] if reason
                     else measure_row(row, asked.rounds))
            for line in lines:
                table.append(cells(line, line.verdict(verdicts)))
                print(" ".join(map(str.ljust, table[-1], WIDTHS)).rstrip(), flush=True)
            if asked.markdown:
                Path(asked.markdown).write_text(as_markdown(table, asked), encoding="utf-8")
    print()
