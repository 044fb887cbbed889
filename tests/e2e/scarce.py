"""A daemon that runs out of descriptors, processes or disk space, and a client that is stopped. The daemon reports it
once, continues, and serves clients as soon as it can.
"""

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Callable, Iterator, List, Optional, Sequence, Tuple

import alone
import lib
import service

AT_ONCE = 4
PATIENCE = 4.0 if lib.QUICK else 1.0  # sanitizers stretch time limits
CALLERS = 100       # of each kind, with 40 descriptors
BUSY = 0.2          # share of a processor that a daemon without free descriptors may use
FULL_DEVICE = "/dev/full"
STRANGER = 100000 + os.getpid() % 100000  # a user without other processes
SMALL_DISK = 'mount -t tmpfs -o size=64k,mode=1777 none "$0" && exec "$@"'

Case = Tuple[str, Callable[[], Optional[str]]]


def client(port: int, *args: str, program: Optional[str] = None) -> List[str]:
    return [program or lib.netperf(), "-H", "127.0.0.1", "-p", str(port), "-t", "TCP_RR", *args]


def must_serve(port: int, program: Optional[str] = None) -> None:
    got = lib.run(client(port, "-l", "-50", program=program), 30 * PATIENCE)
    assert got.rc == 0 and not got.err, f"{got}"


def must_tell(got: lib.Result, *words: str) -> str:
    assert got.rc not in (0, None), f"{got}"
    return lib.error_line(got, "netperf", *words)


def lines(daemon: lib.Daemon, words: str) -> int:
    return sum(words in line for line in daemon.log().splitlines())


# ---- descriptors --------------------------------------------------------------------------------

def silent(port: int, stack: ExitStack) -> None:
    one = stack.enter_context(socket.socket())
    one.settimeout(60)
    one.connect(("127.0.0.1", port))


def few_descriptors() -> str:
    """A shortage is reported; where clients are slow, they may not be enough at a time."""
    for _ in range(3):
        words, logged = forty_descriptors()
        if logged >= 1:
            return words
    raise AssertionError(words)


def forty_descriptors() -> "Tuple[str, int]":
    """Half a dozen of them are the daemon's own: silent clients are disconnected in favour of others."""
    prefix = ["sh", "-c", 'ulimit -n 40; exec "$@"', "sh"]
    with lib.Daemon(prefix) as daemon, ExitStack() as stack:
        begun, before = time.monotonic(), lib.cpu_seconds(daemon.pid)
        for _ in range(CALLERS):
            silent(daemon.port, stack)
        must_serve(daemon.port)
        clients = []
        for _ in range(CALLERS):
            clients.append(stack.enter_context(lib.Started(client(daemon.port, "-l", "1", *lib.PACED))))
            silent(daemon.port, stack)
        told = [one.finish(60 * PATIENCE) for one in clients]
        results = sum(got.rc == 0 for got in told)
        for got in told:
            assert got.rc == 0 or must_tell(got, "netserver"), f"{got}"
        busy = (lib.cpu_seconds(daemon.pid) - before) / (time.monotonic() - begun)
        logged = lines(daemon, "accept a connection")
        words = f"{results} of {CALLERS} got results; {busy:.1%} busy, told {logged} times"
        assert results, f"{words}: {told[0].err}"
        assert busy < BUSY, words
        # A shortage is reported once, and others at most once a second.
        assert logged <= 10 + time.monotonic() - begun, f"{words}: {daemon.log()[:600]}"
        stack.close()
        must_serve(daemon.port)
        return words, logged


def no_descriptor_at_all() -> str:
    """For a while, sessions hold all descriptors: no busy loop, and one log line."""
    prefix = ["sh", "-c", 'ulimit -n 20; exec "$@"', "sh"]
    with lib.Daemon(prefix) as daemon, ExitStack() as stack:
        holders = [stack.enter_context(lib.Started(client(daemon.port, "-l", "60", *lib.PACED)))
                   for _ in range(20)]     # until they are interrupted
        # Sessions may push out the callers that are left: let more come, for which accept(2) fails.
        for _ in range(20):
            stack.enter_context(socket.create_connection(("127.0.0.1", daemon.port)))
        assert lib.wait_for(lambda: lines(daemon, "Too many open files") > 0, 60), daemon.log()
        begun, before = time.monotonic(), lib.cpu_seconds(daemon.pid)
        time.sleep(2)
        busy = (lib.cpu_seconds(daemon.pid) - before) / (time.monotonic() - begun)
        logged = sum("Too many open files" in line and "event=refused" not in line
                     for line in daemon.log().splitlines())
        for one in holders:
            one.signal(signal.SIGINT)
        told = [one.finish(60 * PATIENCE) for one in holders]
        words = (f"{sum(got.rc == 0 for got in told)} of {len(told)} got results; "
                 f"{busy:.1%} busy, told {logged} times")
        for got in told:
            assert got.rc == 0 or must_tell(got, "netserver"), f"{words}: {got}"
        assert busy < BUSY and logged <= 3, words
        must_serve(daemon.port)
        return words


def too_few_descriptors() -> str:
    """A daemon that could not serve any client does not start; it raises a low soft limit itself."""
    for few in (6, 12):
        got = lib.run(["sh", "-c", f'ulimit -n {few}; exec "$@"', "sh", lib.netserver(), "-D", "-p",
                       str(lib.free_port())], 20)
        assert got.rc == 1, f"{got}"
        line = lib.error_line(got, "netserver", f"may open {few} descriptors", "ulimit -n")
    with lib.Daemon(["sh", "-c", 'ulimit -Sn 6; exec "$@"', "sh"], grace=10) as daemon:
        must_serve(daemon.port)
    return line


# ---- memory --------------------------------------------------------------------------------------

def no_memory(*args: str) -> None:
    """The kernel must kill a session before the daemon."""
    def score(pid: int) -> int:
        return int(Path(f"/proc/{pid}/oom_score_adj").read_text())

    with lib.Daemon(args=args) as daemon, lib.Started(client(daemon.port, "-l", "600", *lib.PACED)) as one:
        assert one.measuring()
        (session,) = daemon.children()
        assert score(session) == min(1000, score(daemon.pid) + 100), (score(session), score(daemon.pid))


# ---- processes ----------------------------------------------------------------------------------

STRANGERS = 5  # processes that the user may have


def sleeps(pid: int) -> bool:
    """Whether it has exec'd sleep(1), and so has the other user's ID."""
    return Path(f"/proc/{pid}/comm").read_text() == "sleep\n"


def few_processes(place: Path) -> str:
    """No process for a session, then no thread for its test: each is a refusal, and later there is a result."""
    if os.geteuid() != 0:
        raise lib.Skipped("needs root, to be another user")
    be = ["prlimit", f"--nproc={STRANGERS}", "setpriv", "--reuid", str(STRANGER), "--regid",
          str(STRANGER), "--clear-groups"]
    words = []
    with lib.Daemon(be, ["--no-sandbox"], program=str(place / "netserver")) as daemon:
        must_serve(daemon.port)
        for others in (STRANGERS - 1, STRANGERS - 2):
            assert lib.wait_for(lambda: not daemon.children(), 60)
            with ExitStack() as stack:
                sleepers = [stack.enter_context(lib.Started([*be, "sleep", "600"]))
                            for _ in range(others)]
                assert lib.wait_for(lambda: all(sleeps(one.pid) for one in sleepers), 60)
                got = lib.run(client(daemon.port, "-l", "1"), 20)
            # Before the test is granted, so in the first answer.
            words.append(must_tell(got, "netserver at 127.0.0.1", " refuses: "))
        must_serve(daemon.port)
        assert lines(daemon, "no process") < 3, daemon.log()
    return "; ".join(words)


# ---- pages for pipes -----------------------------------------------------------------------------

# Takes them until the kernel gives no more, and keeps them until its input ends.
TAKE_PAGES = """
import fcntl, os, sys
kept = []
try:
    for _ in range(4096):
        kept.append(os.pipe())
        fcntl.fcntl(kept[-1][1], 1031, 1 << 20)   # F_SETPIPE_SZ
except PermissionError:
    print(len(kept), flush=True)
    sys.stdin.read()
"""
PAGES = 8192    # two pages, all that a pipe holds then


def few_pages(place: Path) -> str:
    """Another process of the daemon's user has all pages for pipes (fs.pipe-user-pages-soft): -V does without one."""
    if os.geteuid() != 0:
        raise lib.Skipped("needs root, to be another user")
    be = ["setpriv", "--reuid", str(STRANGER + 1), "--regid", str(STRANGER + 1), "--clear-groups"]
    with lib.Daemon(be, ["--no-sandbox"], program=str(place / "netserver")) as daemon, \
            subprocess.Popen([*be, sys.executable, "-c", TAKE_PAGES], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as taker:
        assert taker.stdout and taker.stdout.readline(), "this user gets any number of pages"
        got = lib.run(lib.command(daemon.port, "-t", "TCP_STREAM", "-l", "-200000000", "-P", "0", "--", "-V",
                                  "-M", "256k", "-k", "REMOTE_BYTES_RECVD,REMOTE_RECV_CALLS"), 60 * PATIENCE)
        taker.communicate()
    assert got.rc == 0 and not got.err, got
    told = dict(line.split("=") for line in got.out.split())
    each = int(told["REMOTE_BYTES_RECVD"]) / int(told["REMOTE_RECV_CALLS"])
    assert each > PAGES, f"{each:.0f} bytes a call"
    return f"{each:.0f} bytes a call"


# ---- room on the disk ---------------------------------------------------------------------------

class Mute(lib.Daemon):
    """A daemon whose output is discarded."""

    def __init__(self, to: Optional[str], args: Sequence[str] = ()) -> None:
        streams = f"2>{to} >{to if to == FULL_DEVICE else '/dev/null'}" if to else ">&- 2>&-"
        super().__init__(["sh", "-c", f'exec "$@" {streams}', "sh"], args)


def stray(port: int) -> None:
    """A client without a valid request, which the daemon itself logs."""
    with socket.create_connection(("127.0.0.1", port)) as stranger:
        stranger.sendall(b"GET / HTTP/1.0\r\n".ljust(656, b"x"))  # a complete message, which is judged at once
        stranger.settimeout(60)
        assert stranger.recv(1) == b""


def full_output(to: Optional[str]) -> None:
    """A daemon whose output can't be written serves and refuses as usual."""
    with Mute(to, ["-v", "2", "--max-length", "5"]) as daemon:
        for _ in range(5):
            must_serve(daemon.port)
        stray(daemon.port)
        must_serve(daemon.port)


def counted(port: int, pattern: str) -> int:
    """A number of the daemon's status."""
    status = lib.run([lib.netserver(), "-p", str(port), "--status"], 60).out
    found = re.search(pattern, status)
    assert found, status
    return int(found[1])


def unread_output() -> None:
    """The daemon does not wait for a reader of its output."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    try:
        while True:
            os.write(writer, b" " * 4096)
    except BlockingIOError:
        os.set_blocking(writer, True)
    try:
        with Mute(f"/proc/{os.getpid()}/fd/{writer}", ["-v", "2"]) as daemon:
            for _ in range(5):
                must_serve(daemon.port)
            assert counted(daemon.port, r"log +(\d+) lines lost") >= 5
    finally:
        os.close(reader), os.close(writer)


METRICS_S = 10  # between updates of the metrics


def fill(place: Path) -> None:
    with open(place / "rest", "wb", buffering=0) as rest:
        try:
            while True:
                rest.write(bytes(512))
        except OSError:
            pass


def full_metrics() -> str:
    """A full file system is reported once, and leaves the old metrics as they are; then there is room again."""
    if lib.no_lab():
        raise lib.Skipped(lib.no_lab())
    with tempfile.TemporaryDirectory() as place:
        prefix = ["unshare", "-m", "sh", "-c", SMALL_DISK, place]
        with lib.Daemon(prefix, ["-v", "2", "--metrics-file", f"{place}/file"]) as daemon:
            inside = Path(f"/proc/{daemon.pid}/root{place}")
            file = inside / "file"
            assert lib.wait_for(file.exists, 60), daemon.log()
            first = file.stat().st_ino
            fill(inside)
            must_serve(daemon.port)
            assert lib.wait_for(lambda: lines(daemon, "No space left") > 0, 6 * METRICS_S)
            time.sleep(METRICS_S + 1)  # another update fails
            assert lines(daemon, "No space left") == 1, daemon.log()
            assert counted(daemon.port, r"metrics +(\d+) files not written") >= 1
            assert file.stat().st_ino == first, "what was there is lost"
            assert service.metric(file, "sessions_total") <= 1
            assert sorted(os.listdir(inside)) == ["file", "rest"], os.listdir(inside)
            must_serve(daemon.port)
            (inside / "rest").unlink()
            os.kill(daemon.pid, signal.SIGHUP)
            assert lib.wait_for(lambda: service.metric(file, "sessions_total") == 2, 6 * METRICS_S), daemon.log()
            assert file.stat().st_ino != first
        assert not os.listdir(place), os.listdir(place)
    return "goes on"


FULL = (("-v", "2"), ("-P", "0", "-v", "0"), ("-D", "0.2"), ("--", "-o", "all"), ("--", "-k", "all"),
        ("-j", "-v", "2"))


def full_results(port: int, args: Sequence[str]) -> str:
    """In each output style: one line, and an exit status."""
    with open("/dev/full", "w") as full, \
            lib.Started(client(port, "-l", "1", *lib.PACED, *args), stdout=full) as one:
        return must_tell(one.finish(20 * PATIENCE), "standard output", "No space left")


# ---- a client that stands still -----------------------------------------------------------------

def stopped(test: str) -> str:
    """The client of a one-second test is stopped: its session ends."""
    with lib.Daemon(args=["--max-length", "2", "--max-idle", "1"], grace=None) as daemon, \
            lib.Started([*client(daemon.port, "-l", "2"), "-t", test]) as one:
        assert one.measuring(), daemon.log()
        one.signal(signal.SIGSTOP)
        since = time.monotonic()
        clean = lib.wait_for(lambda: not daemon.children(), 45 * PATIENCE)
        took = time.monotonic() - since
        one.signal(signal.SIGCONT)
        got = one.finish(20 * PATIENCE)
        assert clean, f"the session is there after {took:.0f} s: {daemon.log()}"
        must_serve(daemon.port)
        return f"{took:.1f} s; {got.err.strip() or 'a result'}"


def waits(own_port: bool) -> str:
    """Longer than a daemon allows a connection to be silent."""
    with lib.Daemon() as daemon:
        ports = ["-p", f"{daemon.port},{lib.free_port()}"] if own_port else []
        got = lib.run([*client(daemon.port, "-l", "-50", "-s", "6"), *ports], 30 * PATIENCE)
        assert got.rc == 0 and not got.err and got.seconds >= 6, f"{got}"
        assert "refused" not in daemon.log(), daemon.log()
        return f"{got.seconds:.1f} s"


# ---- the suite ----------------------------------------------------------------------------------

def waiting() -> Iterator[Case]:
    for test in ("TCP_STREAM", "TCP_MAERTS", "TCP_RR", "TCP_CRR", "UDP_STREAM", "UDP_RR"):
        yield f"a client that stands still, {test}", partial(stopped, test)
    yield "a client that waits, -s", partial(waits, False)
    yield "a client that waits, -s, and with a port of its own", partial(waits, True)


def busy(place: Path, port: int) -> Iterator[Case]:
    yield "40 descriptors", few_descriptors
    yield "20 descriptors, all in use", no_descriptor_at_all
    yield "6 descriptors", too_few_descriptors
    yield "no memory", no_memory
    yield "no memory, not confined", partial(no_memory, "--no-sandbox")
    yield "no process", partial(few_processes, place)
    yield "no pages for pipes", partial(few_pages, place)
    yield "no room for the log", partial(full_output, FULL_DEVICE)
    yield "nowhere for the log", partial(full_output, None)
    yield "nobody reads the log", unread_output
    yield "no room for --metrics-file", full_metrics
    for args in FULL:
        yield f"no room for results, {' '.join(args)}", partial(full_results, port, args)


def suite(report: lib.Report) -> None:
    lib.watch_wakes()
    with tempfile.TemporaryDirectory() as name, lib.Daemon() as daemon:
        place = Path(name)
        place.chmod(0o755)
        lib.copied(lib.netserver(), place)
        slow = threading.Thread(target=report.cases, args=(waiting(), 8))
        slow.start()
        report.cases(busy(place, daemon.port), AT_ONCE)
        slow.join()
        report.case("in the end", partial(alone.must_be_clean, [daemon]))


if __name__ == "__main__":
    alone.enter()
    lib.main(suite)
