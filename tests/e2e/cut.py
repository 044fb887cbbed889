"""A link between two namespaces that is cut in the middle of every test: by `ip link set down` at either end, or by
dropping all received packets. Both ends finish in time with what was measured, and nothing is left. Needs root, for
scripts/netlab.
"""

import os
import re
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Callable, Dict, List, Tuple

import lib
import netns

TESTS = ("TCP_STREAM", "TCP_MAERTS", "TCP_SENDFILE", "TCP_RR", "TCP_CRR", "TCP_CC", "UDP_STREAM",
         "UDP_RR")
# Paced, as otherwise some flow could be starved and time out before the link is cut.
MANY = tuple(f"{test} --flows {100 if lib.QUICK else 1000} --threads 2 -b 1 -w 5s -D 0.5"
             for test in ("TCP_STREAM", "TCP_MAERTS", "TCP_RR"))
PATIENCE = 4.0 if lib.QUICK else 1.0
MEASURED = 0.5              # seconds, at least, for which all tests run
SILENCE = 10                # seconds of silence that are waited for
CLIENT_S, BOTH_S = 15.0, 30.0  # until the client ends, and until the session ends as well
PARTIAL = re.compile(r"\(the result is partial: it covers (\d+\.\d\d) s of 120 s(; the rate is the sender's, .*)?\)$")


class Lab(netns.Lab):
    """A link of its own for each way to cut it."""

    def __init__(self, name: str) -> None:
        super().__init__(f"cut{name}{os.getpid()}")

    def down(self, end: List[str]) -> None:
        lib.must([*end, "ip", "link", "set", "lab0", "down"])

    def silence(self) -> None:
        for end in (self.server, self.client):
            self.drop(end, "")


def client(lab: Lab, port: int, test: str) -> List[str]:
    return lab.command(port, "-t", *test.split(), "-l", "120", "-P", "0", "--silence", str(SILENCE),
                       *(lib.PACED if test == "UDP_STREAM" else ()))


def end_of(one: lib.Started) -> Tuple[lib.Result, float]:
    got = one.finish(4 * CLIENT_S * PATIENCE)
    return got, time.monotonic()


def listeners(pid: int) -> List[str]:
    """Open sockets in a process's namespace: TCP listeners, and UDP sockets of any kind."""
    found = []
    for table in ("tcp", "tcp6", "udp", "udp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            f = line.split()
            if table.startswith("udp") or f[3] == "0A":
                found.append(f"{table} {int(f[1].rpartition(':')[2], 16)}")
    return found


def judge(test: str, got: lib.Result, took: float) -> str:
    """One line says how much was measured, which matches stdout."""
    assert got.rc not in (0, None), f"status {got.rc} after {took:.1f} s: {got}"
    line = lib.error_line(got, "netperf")
    assert 0 < took <= CLIENT_S * PATIENCE + lib.SLACK, f"{took:.1f} s: {line}"
    covers = PARTIAL.search(line)
    assert covers, f"not marked as partial: {line}"
    assert bool(covers[2]) == (test == "UDP_STREAM"), f"did what was sent arrive? {line}"
    assert re.search(rf"\b{re.escape(covers[1])}\b", got.out), f"{line}: {got.out!r}"
    return f"{took:.1f} s: {line}"


def cut(report: lib.Report, way: str, lab: Lab, how: Callable[[], None]) -> None:
    tests = (*TESTS, *MANY) if way == "silence" else TESTS
    with lab, lib.Daemon(lab.server, ("--max-idle", str(SILENCE))) as daemon, ExitStack() as stack:
        before = listeners(daemon.pid)
        clients = {test: stack.enter_context(lib.Started(client(lab, daemon.port, test)))
                   for test in tests}
        began = all([lib.wait_for(lambda one=one: "Interim" in one.said(), 60 * PATIENCE) if test in MANY
                     else one.measuring() for test, one in clients.items()])
        time.sleep(MEASURED)
        began = began and all(one.running() for one in clients.values())
        how()
        since = time.monotonic()
        pool = stack.enter_context(ThreadPoolExecutor(len(tests)))
        running = {test: pool.submit(end_of, one) for test, one in clients.items()}
        report.check(f"{way}: all tests began", began, daemon.log())
        for test, future in running.items():
            got, end = future.result()
            report.case(f"{way}: {test}", partial(judge, test, got, end - since))
        lib.wait_for(lambda: not daemon.children(),
                     since + BOTH_S * PATIENCE + lib.SLACK - time.monotonic())
        took, stay = time.monotonic() - since, daemon.children()
        report.check(f"{way}: no session is left", not stay, f"{took:.1f} s {stay or ''}")
        lib.wait_for(lambda: listeners(daemon.pid) == before, lib.SLACK)
        report.check(f"{way}: no socket is left", listeners(daemon.pid) == before,
                     f"{listeners(daemon.pid)}")


def ends_in_silence(lab: Lab) -> str:
    """The reset is lost, and the daemon's side of TCP_SENDFILE has no timer: before the client gives up, it ends the
    test over the control connection, and makes a new one for the second test."""
    with lab, lib.Daemon(lab.server) as daemon:
        with lib.Started(lab.command(daemon.port, "-t", "TCP_SENDFILE", "-l", "4", "-P", "0", "-i", "2,2")) as one:
            assert one.measuring()
            lab.silence()
            time.sleep(5)
            lab.heal()
            got = one.finish(60)
    assert got.rc == 0 and float(got.out.split()[-1]) > 0, got
    assert got.seconds > 12, f"the reset was not lost: {got}"
    return f"{got.seconds:.1f} s"


def suite(report: lib.Report) -> None:
    lib.skip_if(lib.no_lab())
    lib.netperf(), lib.netserver()
    labs: Dict[str, Lab] = {name: Lab(name) for name in "cso"}
    ways = (("the client's end goes down", labs["c"], lambda: labs["c"].down(labs["c"].client)),
            ("the daemon's end goes down", labs["s"], lambda: labs["s"].down(labs["s"].server)),
            ("silence", labs["o"], labs["o"].silence))

    def run(way: Tuple[str, Lab, Callable[[], None]]) -> None:
        report.case(f"{way[0]}: the daemon ended well", lambda: cut(report, *way))

    with ThreadPoolExecutor(len(ways)) as pool:
        list(pool.map(run, ways))
    report.case("TCP_SENDFILE ends in silence", partial(ends_in_silence, Lab("e")))


if __name__ == "__main__":
    lib.main(suite)
