"""Kills the client, its session or the whole daemon at random moments of every test. The survivor ends in time, with
a message, the right status and what was measured until then; nothing is left behind.

NP_SEED repeats a run's choices, NP_KILLS is the number of kills; --long has 200, and no other cases.
"""

import os
import random
import re
import signal
import time
from functools import partial
from pathlib import Path
from typing import Callable, Iterator, List, NamedTuple, Optional, Tuple

import alone
import layout
import lib

AT_ONCE = 8
PATIENCE = 4.0 if lib.QUICK else 1.0  # sanitizers stretch time limits
KILLS = int(os.environ.get("NP_KILLS", 12 if lib.QUICK else 32))
SEED = int(os.environ.get("NP_SEED", random.SystemRandom().randrange(1 << 32)))
FIRST_S = 60.0     # for a client to get its session on a busy machine
AT_ONCE_S = 3.0    # README: when the daemon dies, or a client, its sessions end
LATEST = 0.8       # seconds after its start at which a client or its peer is killed
FLOWS = 100 if lib.QUICK else 1000
TESTS = ("TCP_STREAM", "TCP_MAERTS", "TCP_SENDFILE", "TCP_RR", "TCP_CRR", "TCP_CC", "UDP_STREAM",
         "UDP_RR", "STREAM_STREAM", "STREAM_RR", "DG_STREAM", "DG_RR")
REAL_TESTS = ("TCP_STREAM", "TCP_MAERTS", "TCP_RR", "TCP_CRR", "UDP_STREAM", "UDP_RR")
LENGTHS = {"timed": "20", "endless": "0", "counted": "-2000000000"}
SMALL = ("--", "-m", "64")  # so that a count takes longer
COVERS = re.compile(r"\(the result is partial: it covers (\d+\.\d\d) s"
                    r"(?: of 20 s| and \d+ of 2000000000 (?:bytes|transactions)|)(?:; the rate is the sender's, .*)?\)$")

Case = Tuple[str, Callable[[], Optional[str]]]


class Kill(NamedTuple):
    """A kill, at a time in seconds after the client's start."""
    number: int
    whom: str
    test: str
    length: str
    moment: float
    client: str = "ours"
    daemon: str = "ours"
    options: Tuple[str, ...] = ()  # before the test-specific ones

    def name(self) -> str:
        whose = "".join(f", real {end}" for end in ("client", "daemon")
                        if getattr(self, end) == "real")
        return (f"kill {self.number}: {self.whom} after {self.moment:.3f} s, "
                f"{self.test} {self.length}{whose} {' '.join(self.options)}".rstrip())

    def command(self, program: str, port: int) -> List[str]:
        small = SMALL if self.length == "counted" and self.test.endswith("STREAM") else ()
        return [*alone.NICE, program, "-H", "127.0.0.1", "-p", str(port), "-t", self.test,
                "-l", LENGTHS[self.length], *self.options, *small]


def plan(count: int, seed: int) -> Iterator[Kill]:
    """All tests are equally frequent; half of the kills are clients."""
    chance = random.Random(seed)
    for number in range(count):
        whom = ("client", "session", "client", "session", "client", "session", "client",
                "daemon")[number % 8]
        test = TESTS[(number + number // 12) % len(TESTS)]
        yield Kill(number, whom, test, chance.choice(list(LENGTHS)), chance.uniform(0, LATEST))


def real_plan(count: int, seed: int) -> Iterator[Kill]:
    """The real client is killed with our daemon, and the real daemon's session with our client."""
    chance = random.Random(seed + 1)
    for number in range(count):
        kill = Kill(number, "client" if number % 2 else "session",
                    REAL_TESTS[number // 2 % len(REAL_TESTS)], "timed", chance.uniform(0, LATEST))
        yield kill._replace(client="real") if number % 2 else kill._replace(daemon="real")


def many_plan() -> Iterator[Kill]:
    """Either end of a thousand data connections is killed."""
    for number, (whom, test) in enumerate((("client", "TCP_RR"), ("session", "TCP_RR"), ("client", "TCP_STREAM"),
                                           ("session", "TCP_MAERTS"), ("client", "UDP_RR"), ("session", "UDP_RR"),
                                           ("daemon", "TCP_RR"))):
        yield Kill(number, whom, test, "timed", 1.5, options=("--flows", str(FLOWS), "--threads", "2", *(("-b", "1", "-w", "500ms") if "RR" in test else ())))


class Mortal(lib.Daemon):
    """A daemon that may be dead at the end of the block."""

    def __exit__(self, *_: object) -> None:
        self._stop()
        self._proc.wait()


# ---- what the survivor must do ------------------------------------------------------------------

def check_partial(kill: Kill, got: lib.Result, line: str, must: bool) -> None:
    """What was measured is printed in the usual layout and marked as partial; otherwise nothing is printed."""
    covers = COVERS.search(line)
    if not covers:
        assert not must, f"nothing partial: {line!r}, {got.out!r}"
        heads = got.out.splitlines()  # the title, and in some tests column headers
        assert not any(re.search(r"\d\.\d", line) for line in heads[1:]), f"figures: {got.out!r}"
        return
    seconds = float(covers[1])
    assert seconds <= got.seconds + 0.01, f"{seconds} s of {got.seconds:.2f}"
    assert len(got.out.splitlines()) > 1, f"no result: {got.out!r}"
    if (layout.GOLDEN / f"{kill.test.lower()}.txt").exists():
        fields = layout.match(layout.expected(layout.load(kill.test), layout.Style()), got.out)
        assert fields["elapsed"] == seconds, f"{seconds} s, not {fields['elapsed']}"
    else:
        assert f" {covers[1]} " in got.out, f"{seconds} s: {got.out!r}"


def check_client(kill: Kill, got: lib.Result, killed: float, measured: bool) -> str:
    """measured: whether it had moved data before."""
    took = time.monotonic() - killed
    assert got.rc not in (0, None), f"status {got.rc} after {took:.1f} s: {got}"
    line = lib.error_line(got, "netperf")
    assert took <= AT_ONCE_S * PATIENCE + lib.SLACK, f"took {took:.1f} s: {line}"
    check_partial(kill, got, line, measured)
    return f"{took:.2f} s, status {got.rc}: {line}"


def gone(pids: List[int]) -> str:
    """Wait until these processes have ended."""
    since = time.monotonic()
    lib.wait_for(lambda: not any(map(lib.alive, pids)), alone.LATE_S * PATIENCE)
    took = time.monotonic() - since
    stay = [pid for pid in pids if lib.alive(pid)]
    assert not stay, f"{stay} still there after {took:.1f} s"
    return f"{took:.2f} s"


# ---- one kill -----------------------------------------------------------------------------------

def await_moment(kill: Kill, client: lib.Started) -> bool:
    """Sleep until the moment; returns whether the client had moved data by then."""
    time.sleep(kill.moment)
    return kill.client == "ours" and client.measuring(0)


def session(client: lib.Started, daemon: lib.Daemon, patience: float) -> Optional[int]:
    found: List[int] = []

    def look() -> bool:
        pid = alone.session_of(client.pid, daemon.port, daemon.pid)
        found.extend([pid] if pid is not None else [])
        return bool(found)

    lib.wait_for(look, patience)
    return found[0] if found else None


def kill_client(kill: Kill, program: str, daemon: lib.Daemon) -> str:
    with lib.Started(kill.command(program, daemon.port)) as client:
        await_moment(kill, client)
        victim = session(client, daemon, 0)
        client.signal(signal.SIGKILL)
        got = client.finish(60)
    assert got.rc == -signal.SIGKILL, f"it had ended: {got}"
    return "no session yet" if victim is None else f"its session ends within {gone([victim])}"


def kill_session(kill: Kill, program: str, daemon: lib.Daemon) -> str:
    with lib.Started(kill.command(program, daemon.port)) as client:
        measured = await_moment(kill, client)
        victim = session(client, daemon, FIRST_S * PATIENCE)
        assert victim is not None, f"no session: {client.finish(0)} {daemon.log()}"
        os.kill(victim, signal.SIGKILL)
        killed = time.monotonic()
        got = client.finish(60 * PATIENCE)
        return check_client(kill, got, killed, measured)


def kill_daemon(kill: Kill, program: str) -> str:
    """Its sessions end with it, and remove their files."""
    with Mortal(alone.NICE) as daemon, lib.Started(kill.command(program, daemon.port)) as client:
        measured = await_moment(kill, client)
        victim = session(client, daemon, FIRST_S * PATIENCE)
        assert victim is not None, f"no session: {client.finish(0)} {daemon.log()}"
        os.kill(daemon.pid, signal.SIGKILL)
        killed = time.monotonic()
        got = client.finish(60 * PATIENCE)
        says = check_client(kill, got, killed, measured)
        return f"{says}; its session: {gone([victim])}"


def do(kill: Kill, bed: "Bed") -> str:
    program = bed.clients[kill.client]
    if kill.whom == "daemon":
        return kill_daemon(kill, program)
    one = kill_client if kill.whom == "client" else kill_session
    return one(kill, program, bed.daemons[kill.daemon])


# ---- the suite ----------------------------------------------------------------------------------

class Bed:
    """A daemon of each kind that survives."""

    def __init__(self, real: Optional[Path]) -> None:
        self.clients = {"ours": lib.netperf()}
        self.daemons = {"ours": lib.Daemon(alone.NICE, grace=None)}
        if real:
            self.clients["real"] = str(real / "netperf")
            self.daemons["real"] = lib.Daemon(alone.NICE, grace=None, program=str(real / "netserver"))

    def __enter__(self) -> "Bed":
        for daemon in self.daemons.values():
            daemon.__enter__()
        return self

    def __exit__(self, *why: object) -> None:
        for daemon in self.daemons.values():
            daemon.__exit__(*(why if why[0] else (None,)))


def descriptors(daemon: lib.Daemon) -> int:
    return len(os.listdir(f"/proc/{daemon.pid}/fd"))


def serves(daemon: lib.Daemon) -> None:
    got = lib.run(lib.command(daemon.port, "-t", "TCP_RR", "-l", "-100"), 20)
    assert got.rc == 0 and not got.err, f"{got}"


def one_block(report: lib.Report, bed: Bed, kills: List[Kill]) -> None:
    daemon = bed.daemons["ours"]
    serves(daemon)
    assert lib.wait_for(lambda: not daemon.children(), alone.LATE_S), "a session stays"
    before = lib.settled(lambda: descriptors(daemon))
    report.cases(((kill.name(), partial(do, kill, bed)) for kill in kills), AT_ONCE)
    report.case(f"after {len(kills)} kills", lambda: alone.must_be_clean(list(bed.daemons.values())))
    report.case("the daemon serves", lambda: serves(daemon))
    report.case("the daemon has its descriptors back",
                lambda: _same(before, lambda: descriptors(daemon)))


def _same(before: int, now: Callable[[], int]) -> str:
    assert lib.wait_for(lambda: now() == before, alone.LATE_S), f"{now()}, not {before}"
    return f"{before}"


def kill_many(report: lib.Report, count: int) -> None:
    print(f"# NP_SEED={SEED} NP_KILLS={count}", flush=True)
    try:
        real = lib.real_netperf() if not lib.QUICK else None
    except lib.Skipped as why:
        report.skip("the real netperf's", str(why))
        real = None
    with Bed(real) as bed:
        kills = list(plan(count, SEED))
        if real:
            kills += real_plan(max(4, count // 8), SEED)
        one_block(report, bed, kills)


def interrupted(daemon: lib.Daemon, test: str) -> str:
    """SIGINT ends a test of many flows with its result, and the session."""
    kill = Kill(0, "client", test, "timed", 0, options=("--flows", str(FLOWS), "--threads", "2"))
    with lib.Started([*kill.command(lib.netperf(), daemon.port), "-P", "0"]) as client:
        assert client.measuring(), client.said()
        time.sleep(1)
        client.signal(signal.SIGINT)
        since = time.monotonic()
        got = client.finish(60)
        took = time.monotonic() - since
    assert got.rc == 0 and not got.err, f"{got}"
    assert float(got.out.split()[-1]) > 0, f"no result: {got.out!r}"
    # What is in a thousand queues arrives first, received by one of twenty runnable processes.
    assert took <= AT_ONCE_S * PATIENCE + 2 * lib.SLACK, f"{took:.1f} s"
    assert lib.wait_for(lambda: not daemon.children(), alone.LATE_S), "a session stays"
    return f"{took:.2f} s: {got.out.split()}"


def many(report: lib.Report) -> None:
    """One after the other: each keeps the machine busy."""
    with Bed(None) as bed:
        for kill in many_plan():
            report.case(kill.name(), partial(do, kill, bed))
        for test in ("TCP_RR", "TCP_STREAM", "TCP_MAERTS", "UDP_RR"):
            report.case(f"interrupted: {test} --flows {FLOWS}", partial(interrupted, bed.daemons["ours"], test))
        report.case("after them", lambda: alone.must_be_clean(list(bed.daemons.values())))
        report.case("the daemon serves still", lambda: serves(bed.daemons["ours"]))


def suite(report: lib.Report) -> None:
    lib.netperf(), lib.netserver()
    if not lib.LONG:
        many(report)
    kill_many(report, 200 if lib.LONG else KILLS)


if __name__ == "__main__":
    alone.enter()
    lib.main(suite)
