"""Many clients at a time: each gets its result, the daemon's memory stays within its limit, and nothing is left when
they are gone. A daemon with many clients also starts and ends quickly.

NP_CLIENTS is their number, NP_SECONDS the duration of their tests; --long has 500 for ten seconds.
"""

import os
import signal
import socket
import time
from collections import Counter
from contextlib import ExitStack
from functools import partial
from typing import NamedTuple

import alone
import layout
import lib

PATIENCE = 4.0 if lib.QUICK else 1.0  # sanitizers stretch time limits
CLIENTS = int(os.environ.get("NP_CLIENTS", 20 if lib.QUICK else 100))
SECONDS = int(os.environ.get("NP_SECONDS", 1))
MEMORY = 512 << 20     # of the daemon and all of its sessions
START_S = 0.5          # from exec to listening, without time spent waiting for a processor
TRIES = 30             # attempts to be that fast
END_S = 3.0            # from SIGTERM to its end, including sessions
GATED = ("sh", "-c", 'read -r word; exec "$@" </dev/null', "sh")  # starts when its pipe is closed
ENDED_ONES = {signal.SIGTERM: 20 if lib.QUICK else 100, signal.SIGINT: 20}


# ---- a crowd ------------------------------------------------------------------------------------

class Told(NamedTuple):
    """The result of a client: figures, a refusal, or something unexpected."""
    kind: str
    words: str


def judge(got: lib.Result) -> Told:
    if got.rc is None:
        return Told("hung", f"after {got.seconds:.0f} s: {got.err.strip()}")
    if got.rc == 0 and not lib.complaints(got):
        fields = layout.match(layout.expected(layout.load("TCP_RR"), layout.Style()), got.out)
        return Told("result" if float(fields["rate"]) > 0 else "empty", f"{fields['rate']}/s")
    words = got.err.strip()
    refused = len(words.splitlines()) == 1 and ("refuse" in words or "reports error" in words)
    return Told("refusal" if refused else "failure", f"status {got.rc}: {words}")


def crowd(count: int, seconds: int) -> str:
    """All of them at the same time, for that many seconds."""
    patience = 120 + 2 * seconds * PATIENCE + count / 2
    with lib.Daemon(grace=None) as daemon, ExitStack() as stack:
        cmd = lib.command(daemon.port, "-t", "TCP_RR", *(lib.PACED if CLIENTS <= 100 else ()), "-l", str(seconds))
        waiting, gate = os.pipe()
        clients = [stack.enter_context(lib.Started([*GATED, *cmd], stdin=waiting))
                   for _ in range(count)]
        since = time.monotonic()
        os.close(gate), os.close(waiting)
        most_bytes = most_sessions = 0
        while time.monotonic() < since + patience and any(lib.alive(c.pid) for c in clients):
            most_bytes = max(most_bytes, lib.memory([daemon.pid, *alone.children(daemon.pid)]))
            most_sessions = max(most_sessions, len(alone.children(daemon.pid)))
            time.sleep(0.2)
        took = time.monotonic() - since
        told = [judge(client.finish(0.1)) for client in clients]
        kinds = Counter(one.kind for one in told)
        words = (f"{dict(kinds)} in {took:.1f} s; {most_sessions} sessions, "
                 f"{most_bytes / 1e6:.0f} MB")
        bad = Counter(one.words for one in told if one.kind != "result")
        assert not bad, f"{words}: {bad.most_common(3)}; {daemon.log()[-500:]}"
        assert most_bytes < MEMORY, words
        words += f"; {alone.must_be_clean([daemon])}"
        lib.must(cmd[:-1] + ["-10"], 20)
        return words


# ---- start and end ------------------------------------------------------------------------------

def start_up() -> str:
    """The fastest of several, as the machine may delay some."""
    times = []
    for _ in range(TRIES):
        port = lib.free_port()
        since, own = time.monotonic(), lib.waited(os.getpid())
        with lib.Started([lib.netserver(), "-D", "-p", str(port)]) as daemon:
            while not lib.listening(port):
                assert lib.alive(daemon.pid), f"{daemon.finish(0)}"
                assert time.monotonic() < since + 60, "not listening after 60 s"
                time.sleep(0.002)
            late = lib.waited(daemon.pid) + lib.waited(os.getpid()) - own
            times.append(time.monotonic() - since - late)
            daemon.signal(signal.SIGTERM)
            daemon.finish(60)
        if times[-1] <= START_S * PATIENCE:
            return f"{times[-1]:.3f} s"
    raise AssertionError(f"{min(times):.3f} s at the best")


def end_all(number: int) -> str:
    """A signal while many measure and many are silent."""
    count = ENDED_ONES[number]
    with ExitStack() as stack:
        port = lib.free_port()
        daemon = stack.enter_context(lib.Started([lib.netserver(), "-D", "-p", str(port)]))
        assert lib.wait_for(lambda: lib.listening(port), 60)
        cmd = [*alone.NICE, lib.netperf(), "-H", "127.0.0.1", "-p", str(port), "-t", "TCP_RR",
               "-l", "600", *lib.PACED]
        clients = [stack.enter_context(lib.Started(cmd)) for _ in range(count)]
        for _ in range(count):
            silent = stack.enter_context(socket.socket())
            silent.connect(("127.0.0.1", port))
        assert lib.wait_for(lambda: len(alone.children(daemon.pid)) >= count, 120), "too few"
        sessions = alone.children(daemon.pid)
        since = time.monotonic()
        daemon.signal(number)
        got = daemon.finish(60)
        took = time.monotonic() - since
        stay = [pid for pid in sessions if lib.alive(pid)]
        assert got.rc == 0, f"status {got.rc} after {took:.1f} s: {got.err}"
        assert not stay, f"{len(stay)} sessions are there after {took:.1f} s"
        assert took <= END_S * PATIENCE + lib.SLACK, f"{took:.1f} s"
        for client in clients:
            one = client.finish(60)
            assert one.rc not in (0, None) and len(lib.complaints(one)) == 1, f"{one}"
        return f"{took:.2f} s"


# ---- the suite ----------------------------------------------------------------------------------

def prepare() -> None:
    lib.netperf(), lib.netserver()
    lib.many_descriptors()


def suite(report: lib.Report) -> None:
    prepare()
    if lib.LONG:
        report.case("500 clients at a time", partial(crowd, 500, 10))
        return
    report.case("from exec to listening", start_up)
    report.case(f"{CLIENTS} clients at a time", partial(crowd, CLIENTS, SECONDS))
    for number in (signal.SIGTERM, signal.SIGINT):
        report.case(f"{number.name} with {ENDED_ONES[number]} sessions and as many silent callers",
                    partial(end_all, number))
    report.case("in the end", partial(alone.must_be_clean, []))


if __name__ == "__main__":
    alone.enter()
    lib.main(suite)
