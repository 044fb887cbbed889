"""Ours and the real netperf 2.7.0 with each other, beyond the classic tests: OMNI in all directions; tests without a
layout of their own; and CPU figures, confidence intervals, interim results, passphrases and CPU binding in every test
that supports them. The figures must be consistent with each other, with the clock, and with this program's own
measurements.

Known peculiarities of the real peer are noted at their cells, and appear in the table. --every runs the options in
every test, --long the cells that take a minute.
"""

import math
import os
import re
import sys
from functools import partial
from typing import Callable, Dict, List, NamedTuple, Optional, Tuple

import interop
import lib
from interim import Line, interims
from interop import KINDS, Cell, Known, Run, counted, need, need_near

CPUS = os.cpu_count() or 1
UUID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
WAITS = "the real netserver's timer: 4 s more"

ASKED = ("DIRECTION,PROTOCOL,ELAPSED_TIME,THROUGHPUT,THROUGHPUT_UNITS,LOCAL_SEND_SIZE,"
         "LOCAL_SEND_CALLS,LOCAL_RECV_CALLS,LOCAL_BYTES_SENT,LOCAL_BYTES_RECVD")
ASKED_FAR = "REMOTE_SEND_CALLS,REMOTE_RECV_CALLS,REMOTE_BYTES_SENT,REMOTE_BYTES_RECVD"
ASKED_CPU = ("LOCAL_CPU_UTIL,LOCAL_CPU_METHOD,LOCAL_CPU_COUNT,LOCAL_SD,LOCAL_CPU_PEAK_UTIL,"
             "REMOTE_CPU_UTIL,REMOTE_CPU_METHOD,REMOTE_CPU_COUNT,REMOTE_SD,REMOTE_CPU_PEAK_UTIL,"
             "SD_UNITS")
ASKED_CONFIDENCE = ("CONFIDENCE_LEVEL,CONFIDENCE_INTERVAL,CONFIDENCE_ITERATION,THROUGHPUT_CONFID,"
                    "LOCAL_CPU_CONFID,REMOTE_CPU_CONFID,ELAPSED_TIME")

Judge = Callable[[Run], None]


def keyval(run: Run) -> Dict[str, str]:
    """Parse the output of -k."""
    interop.need_success(run.got)
    pairs = [line.partition("=") for line in run.got.out.splitlines()]
    wrong = [name for name, sign, _ in pairs if not sign]
    need(not wrong, f"not NAME=value: {wrong}")
    return {name: value for name, _, value in pairs}


def need_figures(value: Dict[str, str], **wanted: str) -> None:
    for name, text in wanted.items():
        need(value.get(name) == text, f"{name} is {value.get(name)!r} instead of {text!r}")


def in_time(run: Run) -> None:
    """A timed run lasts as long as requested, without waiting for the peer's timer."""
    if run.cell.length != 1 or lib.QUICK:
        return
    waits = run.pairing.daemon == "real" and str(run.pairing) in run.cell.known
    # Ours gives the real netserver half a second for its results.
    limit = 6.5 if waits else max(2.0, interop.longest(run.pairing, run.cell.test))
    limit += run.slack()
    need(run.got.seconds <= limit, f"took {run.got.seconds:.2f} s, not {limit:.2f}")


# ---- OMNI ---------------------------------------------------------------------------------------

class Way(NamedTuple):
    """A direction of OMNI: its options, the value of DIRECTION, and a count for some tenths of a second."""
    words: Tuple[str, ...]
    direction: str
    count: int
    protocol: str = "TCP"


SIZES = ("-r", "100,300")
WAYS = (
    Way(("-d", "send", "-m", "16384"), "Send", 40_960_000),
    Way(("-d", "recv", "-m", ",16384"), "Receive", 40_960_000),
    Way(("-d", "rr", *SIZES), "Send|Recv", 2000),
    Way(("-c",), "Connection", 500),
    Way(("-c", "-d", "rr", *SIZES), "Connect|Send|Recv", 500),
    Way(("-T", "udp", "-d", "send", "-m", "1024", "-R", "1"), "Send", 65536, "UDP"),
    Way(("-T", "udp", "-d", "recv", "-m", ",1024", "-R", "1"), "Receive", 65536, "UDP"),
    Way(("-T", "udp", "-d", "rr", *SIZES), "Send|Recv", 2000, "UDP"),
)


def judge_way(way: Way, run: Run) -> None:
    value = keyval(run)
    need_figures(value, DIRECTION=way.direction, PROTOCOL=way.protocol)
    figures = {name: float(text) for name, text in value.items()
               if re.fullmatch(r"-?[\d.]+", text)}
    rate, elapsed = figures["THROUGHPUT"], figures["ELAPSED_TIME"]
    need(rate > 0, "no throughput")
    # A length that was not understood would give ten seconds.
    need(run.cell.length > 0 or elapsed < 9, f"{elapsed} s for a count")
    interop.check_elapsed(elapsed, run)
    if "Send|Recv" in way.direction:
        judge_exchange(run, figures)
    elif way.direction != "Connection":
        judge_flow(way, run, figures)
    in_time(run)


def judge_exchange(run: Run, f: Dict[str, float]) -> None:
    """Every byte sent is received; a timed test may end within a transaction."""
    count = -run.cell.length if run.cell.length < 0 else round(f["LOCAL_BYTES_RECVD"] / 300)
    slack = 0 if run.cell.length < 0 else 2
    for name, size in (("LOCAL_BYTES_SENT", 100), ("LOCAL_BYTES_RECVD", 300),
                       ("REMOTE_BYTES_RECVD", 100), ("REMOTE_BYTES_SENT", 300)):
        if name in f:
            need_near(name, f[name], count * size, slack * size)
    interop.need_rate("rate", f["THROUGHPUT"], f["ELAPSED_TIME"], count)


def judge_flow(way: Way, run: Run, f: Dict[str, float]) -> None:
    near = way.direction == "Send"
    sent, arrived = (f["LOCAL_BYTES_SENT"], f["REMOTE_BYTES_RECVD"]) if near else (
        f["REMOTE_BYTES_SENT"], f["LOCAL_BYTES_RECVD"])
    size = 16384 if way.protocol == "TCP" else 1024
    need(arrived > 0, "nothing arrived")
    if way.protocol == "UDP":
        need(arrived <= sent, f"{arrived} bytes arrived of {sent}")
    else:
        under_way = size if near or run.cell.length < 0 else interop.UNDER_WAY
        need(-size <= sent - arrived <= under_way, f"{arrived} bytes arrived of {sent}")
    if run.cell.length < 0 and near:
        need(sent == -run.cell.length, f"sent {sent} bytes")
    interop.need_rate("throughput", f["THROUGHPUT"], f["ELAPSED_TIME"], arrived * 8 / 1e6)


def omni(way: Way, length: int) -> Cell:
    """CRR and connect/close request nothing of the far end that would make netserver's timer count."""
    waits = way.words[0] == "-c" and length > 0
    names = ASKED if waits else f"{ASKED},{ASKED_FAR}"
    words = " ".join(word for word in way.words if word not in (*SIZES, "-R", "1"))
    return Cell(f"OMNI {words} {'timed' if length > 0 else 'counted'}", "OMNI", length,
                options=("-P", "0"), specific=(*way.words, "-k", names),
                judge=partial(judge_way, way))


# ---- tests without rows -------------------------------------------------------------------------

def judge_text(pattern: str, run: Run) -> None:
    interop.need_success(run.got)
    need(re.fullmatch(pattern, run.got.out) is not None, f"printed {run.got.out!r}")


def judge_mss(run: Run) -> None:
    judge_text(r"(?s)TCP MSS TEST from .* : demo\nMaximum\nSegment\nSize \(bytes\)\n\n\d+ \n", run)
    mss = int(run.got.out.split()[-1])
    need(536 <= mss <= 65495, f"a segment of {mss} bytes")


def plain_tests() -> List[Cell]:
    ticks = os.sysconf("SC_CLK_TCK")
    few = "There (are|is) %d %s cpus?\n"
    rows = (
        ("LOC_CPU", f"{ticks}", 1), ("LOC_CPU", f"{ticks}\n" + few % (CPUS, "local"), 2),
        ("REM_CPU", f"{ticks}", 1), ("REM_CPU", f"{ticks}\n" + few % (CPUS, "remote"), 2),
        ("UUID", UUID, 1),
    )
    cells = [Cell(f"{test} -v {verbosity}", test, 1, style=interop.layout.Style(verbosity),
                  judge=partial(judge_text, pattern)) for test, pattern, verbosity in rows]
    return [*cells, Cell("TCP_MSS", "TCP_MSS", 1, style=interop.layout.Style(1), judge=judge_mss)]


# ---- rows with CPU figures ----------------------------------------------------------------------

class Row(NamedTuple):
    """The figures of a classic result; service demands are per unit of work."""
    elapsed: float
    rate: float
    work: float                         # per second: transactions, else KB
    digit: float                        # half a unit of the rate's last digit, as work
    util: "Tuple[float, float]" = (-1.0, -1.0)    # near, far
    demand: "Tuple[float, float]" = (-1.0, -1.0)


KB_OF_MBIT = 1e6 / 8 / 1024


def classic_row(run: Run, cpu: bool) -> Row:
    """Parse the last rows of a run with -P 0 -v 1."""
    interop.need_success(run.got)
    lines = [line.split() for line in run.got.out.splitlines() if re.match(r"[ \d]+ ", line)]
    near = lines[0]
    if run.cell.test.endswith(("RR", "CC")):
        need(len(lines) == 2 and len(near) == (10 if cpu else 6), f"rows {lines}")
        elapsed, rate, *more = map(float, near[4:])
        work, digit = rate, 0.005
    elif run.cell.test == "UDP_STREAM":
        need(len(lines) == 2 and len(near) == (8 if cpu else 6), f"rows {lines}")
        elapsed, rate = float(near[2]), float(near[5])
        more = [float(part[at]) for at in (-2, -1) for part in lines] if cpu else []
        work, digit = rate * KB_OF_MBIT, 0.05 * KB_OF_MBIT
    else:
        need(len(lines) == 1 and len(near) == (9 if cpu else 5), f"rows {lines}")
        elapsed, rate, *more = map(float, near[3:])
        work, digit = rate * KB_OF_MBIT, 0.005 * KB_OF_MBIT
    row = Row(elapsed, rate, work, digit)
    return row._replace(util=(more[0], more[1]), demand=(more[2], more[3])) if cpu else row


def need_demand(side: str, row: Row, util: float, demand: float) -> None:
    """Check util x 10000 x CPUs / work, all rounded as printed."""
    low, high = ((util + d * 0.005) * 1e4 * CPUS / (row.work - d * row.digit)
                 for d in (-1, 1))
    slack = 0.0005 + abs(high) * 2e-3
    need(low - slack <= demand <= high + slack,
         f"{side} service demand {demand} is not {util} % x 10000 x {CPUS} / {row.work:.0f}")


def judge_cpu(run: Run) -> None:
    """Both ends are on this machine, and read the same counters as this program."""
    row = classic_row(run, True)
    need(row.rate > 0, "no throughput")
    waits = str(run.pairing) in run.cell.known
    for side, util, demand in zip(("near", "far"), row.util, row.demand):
        if waits and side == "far":  # its samples are 5 s apart, while the elapsed time is 1 s
            need(0 <= util <= 600, f"{side} utilisation {util} %")
        else:
            judge_util(run, row, side, util)
        if util > 0 or run.pairing.client == "ours":  # at 0 the real client uses the other side's
            need_demand(side, row, util, demand)
    if run.cell.load:
        # What the loop used outside the samples is not included.
        least = 100 * (run.loop - (run.got.seconds - row.elapsed)) / row.elapsed / CPUS - 5
        need(min(row.util) >= least, f"{row.util} % beside a loop that alone makes {least:.1f} %")
    in_time(run)


def most_util(run: Run, row: Row) -> float:
    """The samples are further apart than the test is long, and load in between counts: our netserver takes a tenth of
    a second to notice that there are no more connections, and either end may be woken late."""
    return 104 + 100 * (0.1 + run.slack()) / max(row.elapsed, 0.005)


def judge_util(run: Run, row: Row, side: str, util: float) -> None:
    need(0 <= util <= most_util(run, row), f"{side} utilisation {util} % in {row.elapsed} s")
    if row.elapsed >= 0.9:  # some hundred clock ticks
        # This program's own samples include time before and after the test.
        apart = 10 + 100 * (run.got.seconds - row.elapsed) / row.elapsed
        need(abs(util - run.busy) <= apart, f"{side} utilisation {util} %, not {run.busy:.1f}")


def test_waits(test: str) -> bool:
    """Whether figures of the far end involve the real netserver's timer."""
    return test in ("TCP_CRR", "TCP_CC")


def cpu(test: str, length: int, load: bool = False) -> Cell:
    waits = test_waits(test) and length > 0
    known = {f"{client} x real": Known(WAITS) for client in ("ours", "real")} if waits else {}
    row = f"{test} -c -C {'timed' if length > 0 else 'counted'}"
    return Cell(row + (" beside a busy loop" if load else ""), test, length,
                options=("-P", "0", "-c", "-C"), style=interop.layout.Style(1), judge=judge_cpu,
                specific=KINDS[test].specific if length < 0 else (), load=load, known=known)


def judge_omni_cpu(way: Way, run: Run) -> None:
    value = keyval(run)
    unit = "usec/Tran" if "|" in way.direction else "usec/KB"
    need_figures(value, LOCAL_CPU_METHOD="S", REMOTE_CPU_METHOD="S", SD_UNITS=unit,
                 LOCAL_CPU_COUNT=str(CPUS), REMOTE_CPU_COUNT=str(CPUS))
    f = {name: float(text) for name, text in value.items() if re.fullmatch(r"-?[\d.]+", text)}
    moved = f["LOCAL_BYTES_SENT"] + f["LOCAL_BYTES_RECVD"]
    exchange = "|" in way.direction
    work = f["THROUGHPUT"] if exchange else moved / 1024 / f["ELAPSED_TIME"]
    row = Row(f["ELAPSED_TIME"], f["THROUGHPUT"], work,
              0.005 if exchange else work * 0.005 / f["ELAPSED_TIME"])
    for side in ("LOCAL", "REMOTE"):
        judge_util(run, row, side, f[f"{side}_CPU_UTIL"])
        need_demand(side, row, f[f"{side}_CPU_UTIL"], f[f"{side}_SD"])
        peak = f[f"{side}_CPU_PEAK_UTIL"]
        need(f[f"{side}_CPU_UTIL"] - 1 <= peak <= 110, f"{side} peak utilisation {peak} %")


def omni_cpu(way: Way) -> Cell:
    return Cell(f"OMNI {' '.join(way.words)} -c -C", "OMNI", 1, options=("-P", "0", "-c", "-C"),
                specific=(*way.words, "-k", f"{ASKED},{ASKED_CPU}"),
                judge=partial(judge_omni_cpu, way))


# ---- confidence ---------------------------------------------------------------------------------

SENDFILE_ITERATES = {
    # It is killed by an alarm that is still running: the first connection that is used reports it.
    "ours x real": Known("the second iteration fails",
                         r"lost the control connection|Broken pipe|reset by peer|closed early"),
}
WARNING = "Desired confidence was not achieved within the specified iterations."
WIDTHS = r"!!! Confidence intervals: Throughput      : *(-?[\d.a-z]+)%\n" \
         r"!!! +Local CPU util  : *(-?[\d.a-z]+)%\n!!! +Remote CPU util : *(-?[\d.a-z]+)%\n\n"


def width(run: Run, text: str) -> float:
    """The width of a confidence interval; around a mean of 0, the real client's is not a number."""
    if "nan" in text and run.pairing.client == "real":
        return math.inf
    value = float(text) if re.fullmatch(r"[\d.]+", text) else math.nan
    need(0 <= value < 1e5, f"an interval of {text} %")
    return value


def judge_confidence(run: Run) -> None:
    """Three iterations; a warning if one of the widths is larger than requested."""
    interop.need_success(run.got)
    need(" : +/-25.000% @ 95% conf. " in run.got.out.split("\n", 1)[0], f"{run.got.out[:200]!r}")
    row = classic_row(run, True)
    widths = re.search(WIDTHS, run.got.out)
    need((WARNING in run.got.out) == bool(widths), f"half a warning: {run.got.out!r}")
    if widths:
        most = max(width(run, text) for text in widths.groups())
        need(most > 50, f"warned of widths {widths.groups()}")
    times = 1 if run.cell.test == "TCP_CC" else 3
    need(run.got.seconds >= (times * row.elapsed) - 0.02, f"{row.elapsed} s in {run.got.seconds}")
    waits = run.pairing.daemon == "real" and run.cell.length > 0 and test_waits(run.cell.test)
    usual = most_util(run, row)
    for util, most in zip(row.util, (usual, 600 if waits else usual)):
        need(0 <= util <= most, f"utilisation {row.util} % in {row.elapsed} s")


def judge_iterations(run: Run) -> None:
    value = keyval(run)
    need_figures(value, CONFIDENCE_LEVEL="95", CONFIDENCE_INTERVAL="50.000000",
                 CONFIDENCE_ITERATION="3")
    for name in ("LOCAL_CPU_CONFID", "REMOTE_CPU_CONFID"):
        width(run, value[name])
    need(0 < float(value["THROUGHPUT_CONFID"]) < 1e5, f"throughput {value['THROUGHPUT_CONFID']}")
    least = 3 * float(value["ELAPSED_TIME"]) - 0.02
    need(run.got.seconds >= least, f"too quick for three: {value}")


def confidence(test: str, length: int) -> List[Cell]:
    iterate = ("-i", "3,3", "-I", "95,50", "-c", "-C")
    specific = KINDS[test].specific
    known = SENDFILE_ITERATES if test == "TCP_SENDFILE" else {}
    if test_waits(test) and length > 0:
        known = {f"{client} x real": Known(WAITS) for client in ("ours", "real")}
    cells = [Cell(f"{test} -i 3,3 -I 95,50 -c -C {'timed' if length > 0 else 'counted'}", test,
                  length, options=iterate, style=interop.layout.Style(1), specific=specific,
                  judge=judge_confidence, known=known)]
    if test not in ("TCP_CC", "TCP_SENDFILE"):
        cells.append(Cell(f"{cells[0].row} -- -k", test, length, options=("-P", "0", *iterate),
                          specific=(*specific, "-k", ASKED_CONFIDENCE), judge=judge_iterations,
                          known=known))
    return cells


# ---- interim results ----------------------------------------------------------------------------

def judge_interim(run: Run) -> None:
    """Interim results add up to the result. Ours are on time, and the last one has the rest; the real client's come
    when it checks its clock, and TCP_SENDFILE and TCP_CC have no last one."""
    row = classic_row(run, False)
    lines, test = interims("classic", list(map(Line, run.got.out.splitlines()))), run.cell.test
    without_last = test in ("TCP_SENDFILE", "TCP_CC")
    ours = run.pairing.client == "ours"
    # A result is skipped if it is due while the client waits for a CPU or when the test is over.
    missed = int((run.slack() + 0.2) / 0.3)
    least = max(1, 3 - missed) if ours else 0 if without_last else 1
    need(least <= len(lines) <= 5, f"{len(lines)} interim results")
    if not ours and test == "TCP_CC":
        return  # its unit is bytes
    for before, line in zip(lines, lines[1:]):
        need(abs(line.ending - before.ending - line.seconds) <= 0.005, f"stamps: {before}, {line}")
    if ours:
        for line in lines[:least]:
            off = abs(line.seconds - 0.3)
            need(off <= 0.1 + run.slack(), f"an interval of {line.seconds} s")
        need(lines[least - 1].ending - lines[0].ending < 0.7 + run.slack(), f"stamps drift: {lines}")
    seconds = sum(line.seconds for line in lines)
    if not without_last:
        need_near("seconds", seconds, row.elapsed, 0.05)
    need(seconds <= row.elapsed + 0.05, f"{seconds} s of {row.elapsed}")
    work = sum(line.rate * line.seconds for line in lines)
    if not without_last:
        # The far end may have received less than was sent.
        under_way = interop.UNDER_WAY * 8e-6 if "STREAM" in test else 0
        need_near("sum", work, row.rate * row.elapsed, row.rate * row.elapsed * 0.06 + under_way)
    elif lines:
        need(work <= row.rate * row.elapsed * 1.06, f"{work} of {row.rate * row.elapsed}")


def interim(test: str) -> Cell:
    return Cell(f"{test} -D 0.3", test, 1, options=("-P", "0", "-D", "0.3"),
                style=interop.layout.Style(1), judge=judge_interim)


# ---- single options -----------------------------------------------------------------------------

def judge_refused(run: Run) -> None:
    """The daemon closes the connection, and the client reports that."""
    got = run.got
    need(got.rc == 1, f"exit status {got.rc}: {got.out!r} {got.err!r}")
    need(len(got.err.splitlines()) == 1, f"stderr: {got.err!r}")
    says = "passphrase.*-Z" if run.pairing.client == "ours" else "recv_response"
    need(re.search(says, got.err) is not None, f"stderr: {got.err!r}")
    need(got.seconds < 2 + run.slack(), f"took {got.seconds:.2f} s")


def locked(row: str, *words: str, judge: "Optional[Judge]" = None) -> Cell:
    style = interop.layout.Style(1 if judge else 2)
    return Cell(row, "TCP_RR", counted("TCP_RR", True), options=words, locked=True, judge=judge,
                style=style)


def judge_bound(run: Run) -> None:
    value = keyval(run)
    need_figures(value, LOCAL_CPU_BIND="0", REMOTE_CPU_BIND="0")
    need(run.bound["client"] == "0", f"the client is bound to CPUs {run.bound['client']}")
    need("0" in run.bound["sessions"].split(), f"sessions are bound to {run.bound['sessions']}")


def bound(test: str) -> Cell:
    return Cell(f"{test} -T 0,0 -- -k", test, 1, options=("-P", "0", "-T", "0,0"),
                specific=("-k", "LOCAL_CPU_BIND,REMOTE_CPU_BIND"), judge=judge_bound)


# ---- the suites ---------------------------------------------------------------------------------

def single() -> List[Cell]:
    return [
        locked("-Z right", "-Z", interop.PASSPHRASE),
        locked("-Z wrong", "-Z", "sesam", judge=judge_refused),
        locked("-Z missing", judge=judge_refused),
        interop.globally("TCP_RR", "-Z", "unneeded"),
        *(interop.globally(test, "-T", "0,0", tail=" : cpu bind")._replace(specific=kind.specific)
          for test, kind in KINDS.items()),
        bound("TCP_STREAM"),
    ]


SOME = ("TCP_STREAM", "TCP_RR", "TCP_CRR", "UDP_STREAM")


def short() -> List[Cell]:
    """For make check: counted lengths, and a test of each kind."""
    return [
        *(omni(way, -way.count // 4) for way in WAYS),
        *plain_tests(),
        *(cpu(test, counted(test, True)) for test in SOME),
        *(cell for test in SOME for cell in confidence(test, counted(test, True))),
        interim("TCP_RR"),
        *single(),
    ]


def middle() -> List[Cell]:
    """For make check-clients: every test."""
    return [
        *(omni(way, -way.count) for way in WAYS),
        *(cpu(test, counted(test)) for test in KINDS),
        cpu("TCP_RR", 1, load=True),
        *(cell for test in KINDS for cell in confidence(test, counted(test) // 10)),
        *map(interim, ("TCP_STREAM", "TCP_SENDFILE")),
    ]


def long() -> List[Cell]:
    """Every test, timed."""
    return [
        *(omni(way, 1) for way in WAYS),
        *(cpu(test, 1) for test in KINDS),
        *(cpu(test, 1, load=True) for test in ("TCP_STREAM", "UDP_RR")),
        *(omni_cpu(way) for way in WAYS if not way.words[0] == "-c"),
        *(cell for test in KINDS for cell in confidence(test, 1)),
        *map(interim, KINDS),
    ]


def serves_one_by_one() -> None:
    """Without processes of its own for tests (-f), the real netserver ends at a connection that is reset."""
    with lib.Daemon(program=str(lib.real_netperf() / "netserver"), args=["-f"], grace=None) as daemon:
        for test in "TCP_CRR", "TCP_RR":
            interop.need_success(lib.run(lib.command(daemon.port, "-t", test, "-l", "1"), 60))


def suite(report: lib.Report) -> None:
    report.case("netperf's netserver -f", serves_one_by_one)
    if lib.LONG or "--every" in sys.argv:
        interop.run_table(report, long() if lib.LONG else middle())
    else:
        interop.run_table(report, short(), at_once=4)


if __name__ == "__main__":
    lib.main(suite)
