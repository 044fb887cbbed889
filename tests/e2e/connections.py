"""Many data connections in one test (--flows): a thousand connections cost the client little, and the end of either program
in the middle is told. flows.py has what is refused, and the document; that both ends count the same is a law (tests/laws).
"""

import os
import re
import resource
import signal
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Iterator, List

import lib

HOST = "127.0.0.1"
TESTS = ("TCP_STREAM", "TCP_MAERTS", "TCP_RR", "UDP_RR")
BOTH_EPOLL = ("--engine", "epoll,epoll")
MANY = 1000
MOST_MEMORY = 16 << 20  # what MANY connections may cost the client beyond one, in bytes


def client(port: int, test: str, *options: str, length: str = "1") -> List[str]:
    return [lib.netperf(), "-H", HOST, "-p", str(port), "-t", test, "-l", length, *options]


# ---- a client from outside ----------------------------------------------------------------------

def sockets(pid: int) -> int:
    """How many a process has, in the table of that thread which has most; 0 when it has ended."""
    most = 0
    for table in Path(f"/proc/{pid}/task").glob("*/fd"):
        try:
            most = max(most, sum(os.readlink(fd).startswith("socket:") for fd in table.iterdir()))
        except OSError:
            continue  # a descriptor or a thread that is gone
    return most


def peak(pid: int) -> int:
    """The most memory that a process has had at a time, in bytes; 0 when it has ended."""
    try:
        found = re.search(r"^VmHWM:\s+(\d+) kB$", Path(f"/proc/{pid}/status").read_text(), re.M)
    except OSError:
        return 0
    return int(found[1]) << 10 if found else 0


def watched(started: lib.Started, flows: int) -> int:
    """Until its end; its peak(), which never falls. It had a socket for each flow, and one for control."""
    memory_of_it = open_at_once = 0
    while started.running():
        memory_of_it = max(memory_of_it, peak(started.pid))
        open_at_once = max(open_at_once, sockets(started.pid))
        time.sleep(0.02)
    assert open_at_once > flows, f"--flows {flows}: {open_at_once} sockets: {started.said()}"
    assert memory_of_it, f"--flows {flows}: never seen"
    return memory_of_it


# ---- memory -------------------------------------------------------------------------------------

def peak_with(port: int, flows: int) -> int:
    """That of a client with that many flows."""
    with lib.Started(client(port, "TCP_RR", "--flows", str(flows), *BOTH_EPOLL, length="3")) as started:
        seen = watched(started, flows)
        got = started.finish(60)
    assert got.rc == 0 and not got.err, f"--flows {flows}: {got.rc}: {got.err!r}"
    return seen


def memory(port: int) -> str:
    """The rings, histogram and thread are one worker's; what is more comes with the connections."""
    if lib.QUICK:
        raise lib.Skipped("sanitizers have memory of their own")
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard != resource.RLIM_INFINITY and hard < MANY + 100:
        raise lib.Skipped(f"no more than {hard} descriptors")
    cost = peak_with(port, MANY) - peak_with(port, 1)
    assert cost < MOST_MEMORY, f"{MANY} connections cost {cost / (1 << 20):.1f} MiB"
    return f"{cost / (1 << 20):.1f} MiB"


# ---- ends ---------------------------------------------------------------------------------------

@contextmanager
def under_way(port: int, test: str, *options: str) -> Iterator[lib.Started]:
    with lib.Started(client(port, test, "--flows", "10", *options, length="60")) as started:
        assert started.measuring(), f"the test does not begin: {started.said()}"
        assert started.running(), f"it ended at once: {started.finish(1)}"
        yield started


def dead_daemon(test: str) -> None:
    """Its process is gone in the middle of the test."""
    with lib.Daemon() as daemon:
        with under_way(daemon.port, test) as started:
            for session in daemon.children():
                os.kill(session, signal.SIGKILL)
            got = started.finish(60)
    assert got.rc == 1, f"status {got.rc}: {got.out!r} {got.err!r}"
    lib.error_line(got, "netperf", test)


def interrupted(port: int, test: str) -> None:
    """^C ends it with what was measured."""
    with under_way(port, test, "-P", "0", "--", "-k", "THROUGHPUT") as started:
        started.signal(signal.SIGINT)
        got = started.finish(60)
    pairs = dict(line.split("=", 1) for line in got.out.splitlines() if "=" in line)
    assert got.rc is not None and float(pairs.get("THROUGHPUT", "0")) > 0, f"{got}"


def dead_client(test: str) -> None:
    """The session of a client that died ends, which lib.Daemon waits for."""
    with lib.Daemon() as daemon:
        with under_way(daemon.port, test) as started:
            started.signal(signal.SIGKILL)
            started.finish(20)
        assert lib.wait_for(lambda: not daemon.children(), 60), "the session goes on"


# ---- refusals -----------------------------------------------------------------------------------

def far_sync(port: int, test: str) -> None:
    """The far end can't drive them, which it says, or we know."""
    got = lib.run(client(port, test, "--flows", "2", "--engine", ",sync"), 20)
    assert got.rc == 1, f"status {got.rc}: {got.out!r}"
    lib.error_line(got, "netperf", "sync", "flows")


def few_descriptors(port: int) -> None:
    """A soft limit is raised, as far as the hard one goes; behind that a line says what to do."""
    cmd = " ".join(client(port, "TCP_RR", "--flows", "100", "-l", "1"))
    got = lib.run(["sh", "-c", f"ulimit -S -n 40 && exec {cmd}"], 20)
    assert got.rc == 0, got.err
    got = lib.run(["sh", "-c", f"ulimit -n 40 && exec {cmd}"], 20)
    assert got.rc == 1, f"status {got.rc}: {got.out!r}"
    lib.error_line(got, "netperf", "--flows", "ulimit -n")


def real_daemon(test: str) -> None:
    """The real netserver has one connection a session, and nothing to choose what drives it by."""
    with lib.Daemon(program=str(lib.real_netperf() / "netserver"), grace=None) as daemon:
        got = lib.run(client(daemon.port, test, "--flows", "2", "--engine", ",epoll"), 20)
    assert got.rc not in (0, None), f"status {got.rc}: {got.out!r}"
    lib.error_line(got, "netperf", "--engine: the netserver", "does not support this")


# ---- all of it ----------------------------------------------------------------------------------

def suite(report: lib.Report) -> None:
    with lib.Daemon() as daemon:
        port = daemon.port
        report.case(f"memory of {MANY} connections", partial(memory, port))
        report.case("few descriptors", partial(few_descriptors, port))
        report.case("sync at the far end", partial(far_sync, port, "TCP_RR"))
        report.cases([(f"interrupted: {test}", partial(interrupted, port, test)) for test in TESTS], 2)
    ends = [(f"daemon dies: {test}", partial(dead_daemon, test)) for test in TESTS]
    ends += [(f"client dies: {test}", partial(dead_client, test)) for test in TESTS]
    ends += [(f"real netserver: {test}", partial(real_daemon, test)) for test in ("TCP_STREAM", "TCP_RR")]
    report.cases(ends, 2)


lib.main(suite)
