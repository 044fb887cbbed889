"""Invalid input and failures from the client's point of view: netperf always ends in bounded time, with the right
exit status and one line on stderr that says what failed. What was measured until then is printed.
"""

import json
import math
import os
import re
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Callable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import interop
import layout
import lib
from ours import Relay

AT_ONCE = 6
PATIENCE = 4.0 if lib.QUICK else 1.0  # sanitizers stretch time limits
MOMENT = 0.1                          # seconds into a test, at least, when something happens
AT_ONCE_LIMIT = 2.0                   # seconds for faults that need no answer from a peer
TESTS = tuple(interop.KINDS)
REAL_TESTS = ("TCP_STREAM", "TCP_MAERTS", "TCP_RR", "TCP_CRR", "UDP_STREAM")
LONG = {"20 s": ("-l", "20"), "endless": ("-l", "0"), "counted": ("-l", "-2000000000")}
# Counted streams with such small sends last longer than any case.
SMALL = {"TCP_STREAM": ("-m", "64"), "TCP_MAERTS": ("-m", ",64"), "TCP_SENDFILE": ("-m", "64"),
         "UDP_STREAM": ("-m", "64")}

Case = Tuple[str, Callable[[], Optional[str]]]


class Bed(NamedTuple):
    """Shared by the cases: a daemon, two unused ports, a directory of unusual files."""
    port: int
    dead: int  # without a listener
    free: int
    place: Path

    def client(self, *args: str, port: Optional[int] = None) -> List[str]:
        return lib.command(port or self.port, *args)


def odd_files(place: Path) -> None:
    """Programs and files with usual permissions, except a secret one."""
    place.chmod(0o755)
    for program in (lib.netperf(), lib.netserver()):
        lib.copied(program, place)
    for name, text in (("empty", ""), ("small", "small\n"), ("secret", "x" * 65536)):
        (place / name).write_text(text)
    (place / "secret").chmod(0o600)
    os.mkfifo(place / "fifo")


# ---- what a run must leave behind ---------------------------------------------------------------

def check_time(seconds: float, limit: float) -> None:
    """Check the duration of something that has just ended."""
    limit = limit * PATIENCE + lib.SLACK
    assert seconds <= limit, f"took {seconds:.2f} s, not {limit:.2f}"


def check_no_figures(out: str) -> None:
    """Check that there is at most a banner, which is printed before the fault is found."""
    lines = lib.without_phrases(out, lib.STDOUT_PHRASES)
    assert not lines or len(lines) == 1 and " TEST from " in lines[0], f"stdout: {out!r}"


def check_error(got: lib.Result, *says: str, status: int = 1,
                limit: float = AT_ONCE_LIMIT) -> str:
    assert got.rc == status, f"status {got.rc}, not {status}: {got.err!r}"
    line = lib.error_line(got, "netperf", *says)
    check_no_figures(got.out)
    check_time(got.seconds, limit)
    return f"{got.seconds:.1f} s: {line}"


def check_result(test: str, got: lib.Result) -> None:
    """Check for the classic layout, with the measured time, which started before MOMENT."""
    fields = layout.match(layout.expected(layout.load(test), layout.Style()), got.out)
    shown = fields["elapsed"]
    assert MOMENT - 0.005 <= shown <= got.seconds + 0.005, f"elapsed {shown} s of {got.seconds:.2f}"


# ---- peers that are no netserver ----------------------------------------------------------------

class Peer(NamedTuple):
    """What a peer does with a connection."""
    name: str
    says: bytes
    listens: bool         # reads a request first
    stays: bool           # until the client disconnects
    told: Tuple[str, ...]
    resets: bool = False
    limit: float = 12.0


PEERS = (
    Peer("ssh", b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n", False, True, ("SSH-2.0", "not a netperf message", "see -p"),
         limit=2.0),
    Peer("http", b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", True, False,
         ("HTTP/1.1 400", "not a netperf message")),
    Peer("silent", b"", False, True, ("did not come within 120 s",), limit=122.0),
    Peer("leaving", b"", False, False, ("while waiting for",), limit=2.0),
    Peer("resetting", b"", True, False, ("reset",), resets=True, limit=2.0),
    Peer("zeros", bytes(656), False, True, ("a message of code 0",), limit=2.0),
    Peer("half", bytes(256), True, False, ("256 of 656", "2.5.0"), limit=2.0),
    Peer("two of 2.5", bytes(512), True, False, ("512 of 656", "2.5.0", "a newer netserver"), limit=2.0),
    Peer("a fragment", b"\x15\x03\x03\0\x02\x02F", True, False, ("7 of 656", "is that a netserver?"), limit=2.0),
    Peer("noise", bytes(range(1, 83)) * 8, True, True, ("not a netserver", "see -p"), limit=2.0),
    Peer("unknown test", struct.pack("!Ii", 98, 998).ljust(656, b"\0"), True, True, ("998", "a newer netserver"),
         limit=2.0),
)


class Fake:
    """Acts as a peer for one connection on its own port."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.settimeout(60)
        self.port = self._socket.getsockname()[1]
        self.heard = threading.Event()  # set when the client has sent something
        self._thread = threading.Thread(target=self._play, daemon=True)

    def __enter__(self) -> "Fake":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()
        self._thread.join(20)

    def _play(self) -> None:
        try:
            conn = self._socket.accept()[0]
            with conn:
                self._speak(conn)
        except OSError:
            pass  # the client has disconnected

    def _speak(self, conn: socket.socket) -> None:
        conn.settimeout(150)
        if self._peer.listens:
            conn.recv(656, socket.MSG_WAITALL)
        conn.sendall(self._peer.says)
        while self._peer.stays and conn.recv(4096):
            self.heard.set()
        if self._peer.resets:
            conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def meet_peer(bed: Bed, peer: Peer) -> str:
    with Fake(peer) as fake:
        got = lib.run(bed.client("-l", "1", port=fake.port), timeout=peer.limit + 10)
    assert got.rc, f"status {got.rc}"
    return check_error(got, f"127.0.0.1 port {fake.port}", *peer.told, status=got.rc,
                       limit=peer.limit)


def interrupt_waiting(bed: Bed) -> str:
    """Nobody answers, and the user interrupts."""
    silent = next(p for p in PEERS if p.name == "silent")
    with Fake(silent) as fake, lib.Started(bed.client(port=fake.port)) as client:
        assert fake.heard.wait(60), "the client asks for nothing"
        client.signal(signal.SIGINT)
        got = client.finish(60)
    assert got.rc, f"status {got.rc}"
    return check_error(got, "interrupted", status=got.rc, limit=MOMENT + 1)


class RelayOneTest(Relay):
    """Forwards until the client asks for a second test."""

    last, reported = math.inf, False

    def passes(self, data: bytes, from_client: bool) -> bool:
        # What the daemon sends after the silence of a test is its results.
        if not from_client and time.monotonic() - self.last > 1.5:
            self.reported = True
        self.last = time.monotonic()
        return not (self.reported and from_client)


def later_iteration(bed: Bed) -> str:
    """An iteration fails before it has figures: those of the previous one are printed, with its texts."""
    with RelayOneTest(bed.port) as relay:
        got = lib.run(bed.client("-l", "2", "-P", "0", "-i", "3,3", "--", "-k", "THROUGHPUT,LOCAL_CONG_CONTROL,REMOTE_CONG_CONTROL",
                                 port=relay.port), timeout=60)
    known = Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()
    assert f"LOCAL_CONG_CONTROL={known}\nREMOTE_CONG_CONTROL={known}\n" in got.out, got
    return lib.error_line(got, "netperf", "it covers 1 whole iteration")


class RelayHolding(RelayOneTest):
    """Does not forward a second request until it is released."""

    def __init__(self, port: int) -> None:
        self.held, self.released = threading.Event(), threading.Event()
        super().__init__(port)

    def passes(self, data: bytes, from_client: bool) -> bool:
        if super().passes(data, from_client):
            return True
        self.held.set()
        self.released.wait(60)
        return False


def later_signal(bed: Bed) -> str:
    """A signal before the second iteration has figures: the first one is a result."""
    with RelayHolding(bed.port) as relay, lib.Started(bed.client(
            "-l", "2", "-P", "0", "-i", "3,3", "--", "-k", "CONFIDENCE_ITERATION", port=relay.port)) as client:
        assert relay.held.wait(60), client.said()
        client.signal(signal.SIGTERM)
        got = client.finish(60)
        relay.released.set()
    assert got.rc == 128 + signal.SIGTERM and got.out == "CONFIDENCE_ITERATION=1\n", got
    return got.err


def search_fails(bed: Bed) -> str:
    """A step of a search fails: it is no step, and the last one before it is no knee."""
    with RelayOneTest(bed.port) as relay:
        got = lib.run(bed.client("-t", "TCP_RR", "-l", "2", "--rate", "auto", "--json", port=relay.port), timeout=60)
    assert got.rc == 1 and [step["rate"] for step in json.loads(got.out)["curve"]["steps"]] == [100], got
    assert "the search was cut short; 100 a second was still good\n" in got.err and "knee" not in got.err, got
    none = lib.run(bed.client("-F", ",/etc/passwd", "-l", "1", "--rate", "auto", "--json"), timeout=60)
    assert none.rc and json.loads(none.out)["curve"]["steps"] == [], none
    return lib.error_line(none, "netperf")


def wait_in_line(bed: Bed) -> str:
    """A daemon that runs other tests first does not answer: its client waits for its turn."""
    with socket.create_server(("127.0.0.1", 0)) as front:
        front.settimeout(60)
        port = front.getsockname()[1]
        with lib.Started(bed.client("-t", "TCP_RR", "-l", "-100", "-P", "0", port=port)) as client:
            with front.accept()[0] as theirs:
                request = theirs.recv(656, socket.MSG_WAITALL)
                time.sleep(13)
                with socket.create_connection(("127.0.0.1", bed.port)) as ours:
                    ours.sendall(request)
                    for _ in range(2):  # response and results
                        theirs.sendall(ours.recv(656, socket.MSG_WAITALL))
                    got = client.finish(60)
    assert got.rc == 0, f"status {got.rc}: {got.err!r}"
    said = re.fullmatch(r"netperf: 127\.0\.0\.1 port (\d+) accepted the connection, and has not answered "
                        r"for (\d+) s: it hangs, or other tests run first; waiting for up to "
                        r"(\d+) s more\n", got.err)
    assert said and int(said[1]) == port, f"stderr: {got.err!r}"
    assert int(said[2]) >= 5 and 119 <= int(said[2]) + int(said[3]) <= 121, got.err
    return f"served after {got.seconds:.1f} s"


# ---- arguments ----------------------------------------------------------------------------------

fault = lib.fault
NO_DAEMON = ("establish the control connection", "is netserver running")

FAULTS = (
    # address of the daemon
    fault("-p {dead}", "127.0.0.1 port {dead}", "Connection refused", *NO_DAEMON, status=255),
    fault("-H ::1 -p {dead}", "::1 port {dead}", *NO_DAEMON, status=255),
    fault("-H " + 64 * "x", "resolve", 64 * "x", status=255),
    *(fault(f"-H {host}", f"resolve host '{host}'", "the address alone, and a port by -p", status=255)
      for host in ("[::1]", "127.0.0.1:12865")),
    fault("-H 127.0.0.1,6", "resolve", "127.0.0.1", "AF_INET6", status=255),
    fault("-6", "resolve", "127.0.0.1", "AF_INET6", status=255),
    fault("-H 255.255.255.255", "establish the control connection", "Network is unreachable", "is there a route", status=255),
    fault("-H fe80::1", "link-local", "fe80::1%eth0", status=255),
    fault("-H ::1 -L fe80::2", "link-local", "fe80::2%eth0", status=255),
    fault("-L ::1", "from ::1 to 127.0.0.1", "both of IPv6", status=255),
    fault("-p {port},{port}", "from port {port}: Address already in use", status=255),
    fault("-H ::1,4", "resolve", "::1", "AF_INET", status=255),
    fault("-H ::1 -4", "resolve", "::1", "AF_INET", status=255),
    fault("-L 192.0.2.1", "192.0.2.1", "Cannot assign requested address", status=255),
    fault("-- -L 192.0.2.1", "bind", "192.0.2.1", "Cannot assign requested address"),
    fault("-t UDP_RR -- -L 192.0.2.1", "UDP_RR", "bind", "192.0.2.1"),
    fault("-- -H 192.0.2.1", "the netserver at 127.0.0.1", "Cannot assign", status=255),
    fault("-p nosuchservice", "nosuchservice", status=255),
    # unknown words
    fault("-t NOSUCH", "-t", "NOSUCH", "--help lists them"),
    fault("-p {dead} -t TCP_STRAEM", "-t", "TCP_STRAEM", "the nearest is TCP_STREAM"),
    fault("--lenght 3", "--lenght", "the nearest is --length"),
    fault("-- -k THRUPUT", "THRUPUT", "the nearest is THROUGHPUT", status=255),
    fault("-- -o foo,bar", "foo", "no such output selector"),
    fault("-q", "-q", "no such option", "-h lists them"),
    fault("--nosuch", "--nosuch", "no such option", "-h lists them"),
    fault("-- --nosuch", "--nosuch", "no such option"),
    # missing or invalid numbers, or out of range
    *(fault(args, args.split()[-1], "needs an argument")
      for args in ("-l", "-t", "-p", "--host", "-- -m", "-t TCP_RR -- -r", "-- --sizes")),
    *(fault(args, *args.split()[-2:], "try") for args in (
        "-l 10x", "-v loud", "-P x", "-s soon", "-y x", "-- -m 12x", "-- -M 64Q", "-- -s 12q",
        "-- -S x", "-- -b x", "-- -r x", "-- -W x", "-- -R x", "-- --burst x")),
    *(fault(args, *args.split()[-2:], "out of range (") for args in (
        "-s -1", "-T 99999", "-W 99999999", "-a 99999999", "-l 3000000000", "-- -m 0", "-- -m -5",
        "-- -m 99999999999", "-- -M 0", "-- -M 99999999999", "-- -s 99999999999", "-- -b -1",
        "-- -b 70000", "-- -R 5", "-t TCP_RR -- -r 0",
        "-t UDP_RR -- -r -2")),
    fault("-t TCP_RR -- -r 1,0", "-r", "0", "out of range"),
    fault("-p 70000", "-p", "70000", "0 to 65535"),
    fault("-p 1,99999", "-p", "99999", "0 to 65535"),
    fault("-t TCP_CRR -- -p 99999", "-p", "99999", "0 to 65535"),
    fault("-t TCP_RR -- -P {free},{free}", "127.0.0.1 port {free}", "itself", "two different ports with -P"),
    fault("-W 1048576", "1048576 buffers", "256 MiB"),
    # options with a syntax of their own
    fault("-i x", "-i", "x", "try"),
    fault("-I 99,x", "-I", "x", "try 5"),
    *(fault(args, *args.split(), "try") for args in ("-k x", "-k x8", "-o l6", "-O o8")),
    fault("-k -2", "-k", "-2", "out of range"),
    fault("--progress often", "--progress", "often", "always, never or auto"),
    *(fault(f"--link-rate {rate}", "--link-rate", "100mbit") for rate in ("100", "fast", "0mbit", "-5mbit", "1e9gbit")),
    fault("-n x", "-n", "x", "try"),
    fault("-- -c", "-c", "try -d rr"),
    fault("-t SCTP_STREAM -- -T x", "-T", "x", "2 to"),
    fault("-t SCTP_STREAM -- -N 5", "-N", "-m"),
    fault("-t SCTP_STREAM --warm-up 1 -- -N 5 -m 100", "--warm-up", "by a count"),
    fault("-t SCTP_STREAM --beside TCP_RR -- -N 5 -m 100", "--beside", "by time"),
    fault("-t TCP_RR -- --also-bind ::1", "--also-bind", "TCP", "try SCTP_STREAM"),
    fault("-t SCTP_RR -N -- --also-bind ::1", "--also-bind", "-N"),
    fault("-t TCP_STRAEM --engine list", "-t", "TCP_STRAEM", "TCP_STREAM"),
    fault("-t SCTP_RR -- --also-bind +::1", "--also-bind", "missing before +"),
    fault("-t DCCP_STREAM -- --ccid 2 -K ,cubic", "-K", "try --ccid 2"),
    fault("-t omni -- -T tcp -t dgram", "-t", "tcp", "try -T udp"),
    fault("-- -H 127.0.0.1/x", "-H", "x", "try /24"),
    fault("-- -G 1400x", "-G", "1400x", "1 to 65535"),
    fault("-- -u " + 38 * "x", "-u", "37 characters"),
    fault("-t STREAM_STREAM -- -P 1", "-P", "no such option"),
    fault("-N -t REM_CPU", "-N", "REM_CPU", status=255),
    # messages larger than a datagram
    fault("-t UDP_STREAM -- -m 100000", "UDP_STREAM", "100000 bytes", "try -m 65507"),
    fault("-t UDP_RR -- -r 70000,1", "UDP_RR", "70000 bytes", "try -r 65507"),
    fault("-t UDP_RR -- -b 4 -r 70000,1", "UDP_RR", "70000 bytes"),
    fault("-t UDP_RR -- -r 1,70000", "UDP_RR", "Message too long", status=255),
    # files
    fault("-F {place}/missing", "{place}/missing", "No such file"),
    fault("-F {place}/empty", "{place}/empty", "is empty"),
    fault("-F {place}", "{place}", "Is a directory"),
    fault("-F {place}/fifo", "{place}/fifo", "had no data for 5 s"),
    fault("-F ,/etc/passwd", "the netserver at", "Permission denied", status=255),
    fault("-t TCP_SENDFILE -F {place}/missing", "TCP_SENDFILE", "{place}/missing", "No such file"),
    fault("-t TCP_SENDFILE -F {place}/empty", "TCP_SENDFILE", "{place}/empty", "empty"),
    fault("-t TCP_SENDFILE -F {place}/small -- -m 1000", "{place}/small", "1000 bytes", "-m"),
)


def give_fault(bed: Bed, row: lib.Fault) -> str:
    """The row's words come last, so that they override others."""
    words = row.args.format(**bed._asdict()).split()
    got = lib.run(bed.client("-l", "1", *words), timeout=20)
    return check_error(got, *(say.format(**bed._asdict()) for say in row.says), status=row.status)


# ---- a daemon that goes away --------------------------------------------------------------------

def session_of(daemon: lib.Daemon, client: lib.Started) -> int:
    """The client's session, once it measures: before that, a process that forks sessions may not have its name yet."""
    client.measuring()
    time.sleep(MOMENT)
    sessions = daemon.children()
    assert len(sessions) == 1, (sessions, client.said())
    return sessions[0]


def kill_session(bed: Bed, test: str) -> str:
    with lib.Daemon() as daemon:
        cmd = bed.client("-t", test, "-l", "20", port=daemon.port)
        with lib.Started(cmd) as client:
            session = session_of(daemon, client)
            os.kill(session, signal.SIGKILL)
            got = client.finish(60)
        assert lib.wait_for(lambda: f"session process {session} was ended by signal 9" in daemon.log(), 20), daemon.log()
        assert lib.run(bed.client("-t", test, "-l", "-100", port=daemon.port), 20).rc == 0, "the next one is not served"
    assert got.rc, f"status {got.rc}"
    line = lib.error_line(got, "netperf", test, "partial", "127.0.0.1 port")
    check_time(got.seconds, 3)
    check_result(test, got)
    return f"{got.seconds:.1f} s: {line}"


def stop_session(bed: Bed, test: str) -> str:
    """The far end is stopped: it neither answers nor disconnects. When it continues, the client is gone."""
    with lib.Daemon() as daemon:
        cmd = bed.client("-t", test, "-l", "5", port=daemon.port)
        with lib.Started(cmd) as client:
            session = session_of(daemon, client)
            os.kill(session, signal.SIGSTOP)
            got = client.finish(90)
            os.kill(session, signal.SIGCONT)
    assert got.rc, f"status {got.rc} after {got.seconds:.1f} s"
    line = lib.error_line(got, "netperf", test, "partial")
    covered = re.search(r"it covers ([\d.]+) s of 5 s", line)
    assert covered is None or float(covered[1]) < 5, line
    check_time(got.seconds, 30)
    return f"{got.seconds:.1f} s: {line}"


def interrupt_hanging(bed: Bed, test: str) -> str:
    """The daemon hangs at the end of the test: a signal ends the wait for its results."""
    with lib.Daemon() as daemon:
        cmd = bed.client("-t", test, "-l", "5", *(lib.PACED if test == "UDP_STREAM" else ()), port=daemon.port)
        with lib.Started(cmd) as client:
            session = session_of(daemon, client)
            os.kill(session, signal.SIGSTOP)
            time.sleep(5)
            begun = time.monotonic()
            client.signal(signal.SIGINT)
            got = client.finish(60)
            os.kill(session, signal.SIGCONT)
    assert got.rc, f"status {got.rc}"
    lib.error_line(got, "netperf", test, "partial", "interrupted")
    check_time(time.monotonic() - begun, 2.5)
    return f"{time.monotonic() - begun:.2f} s after the signal"


def end_at_rest(bed: Bed, test: str, interrupted: bool) -> str:
    """The daemon is stopped for a time that the client survives: the result still comes."""
    cmd = bed.client("-t", test, "-l", "30" if interrupted else "1", "-b", "20,2", "-w", "1ms,40s", "-P", "0")
    with lib.Started(cmd) as client:
        if interrupted:
            client.measuring(3)
            client.signal(signal.SIGINT)
        got = client.finish(60)
    paced = re.sub(r"^netperf: -b 20 -w 1: \d+ % of this pace was kept\n$", "", got.err)
    assert got.rc == 0 and not paced, f"status {got.rc}: {got.err}"
    check_time(got.seconds, 5.5)
    return f"{got.seconds:.1f} s"


def without_close(test: str, reads: bool) -> str:
    """A service that keeps the connection open after its end: a client that has read all data need not wait for the
    close."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def serve() -> None:
            conn = listener.accept()[0]
            while reads and conn.recv(1 << 16):
                pass
            done.wait(60)
            conn.close()

        done = threading.Event()
        thread = threading.Thread(target=serve)
        thread.start()
        got = lib.run([lib.netperf(), "-N", "-H", "127.0.0.1", "-t", test, "-l", "0.5", "-P", "0", "--", "-P",
                       f",{listener.getsockname()[1]}"], 60)
        done.set()
        thread.join()
    if reads:
        assert got.rc == 0 and not got.err, f"status {got.rc}: {got.err}"
        return got.out
    assert got.rc == 1, f"status {got.rc}: {got.err}"
    return lib.error_line(got, "netperf", "did not read the end of the data", "counts data that the far end did not read")


# ---- netperf's own words ------------------------------------------------------------------------

LISTENING = "establish control: are you sure there is a netserver listening on {0} at port {dead}?"
BETWEEN = ("establish_control could not establish the control connection from {1} address family "
           "{2} to {0} port {dead} address family {3}")

# Arguments, and netperf 2.7.0's output for both ends without a daemon.
UNREACHABLE = (
    ("", ("localhost", "0.0.0.0 port 0", "AF_UNSPEC", "AF_UNSPEC")),
    ("-4", ("localhost", "0.0.0.0 port 0", "AF_INET", "AF_INET")),
    ("-P 0 -v 0 -t UDP_RR", ("localhost", "0.0.0.0 port 0", "AF_UNSPEC", "AF_UNSPEC")),
    ("-H 127.0.0.1", ("127.0.0.1", "0.0.0.0 port 0", "AF_UNSPEC", "AF_INET")),
    ("-H 127.0.0.1,4", ("127.0.0.1", "0.0.0.0 port 0", "AF_UNSPEC", "AF_INET")),
    ("-H ::1", ("::1", "::0 port 0", "AF_UNSPEC", "AF_INET6")),
    ("-6 -H ::1", ("::1", "::0 port 0", "AF_INET6", "AF_INET6")),
    ("-L 127.0.0.1", ("localhost", "127.0.0.1 port 0", "AF_UNSPEC", "AF_UNSPEC")),
    ("-L ::1,6", ("::1", "::1 port 0", "AF_INET6", "AF_UNSPEC")),
    ("-H 127.0.0.1 -L 127.0.0.1,4", ("127.0.0.1", "127.0.0.1 port 0", "AF_INET", "AF_INET")),
    ("-p {dead},{free}", ("localhost", "0.0.0.0 port {free}", "AF_UNSPEC", "AF_UNSPEC")),
)


def run_bare(bed: Bed, args: str) -> lib.Result:
    """Without host and port."""
    return lib.run([lib.netperf(), "-p", str(bed.dead), *args.format(**bed._asdict()).split()], 20)


def unreachable(bed: Bed, args: str, ends: Tuple[str, ...]) -> None:
    got = run_bare(bed, args)
    wanted = "".join(f"{line.format(*ends, **bed._asdict())}\n" for line in (LISTENING, BETWEEN))
    assert got.out == wanted.format(**bed._asdict()), got.out
    assert got.rc == 255, f"status {got.rc}"
    lib.error_line(got, "netperf", *NO_DAEMON)


def unresolved(bed: Bed) -> None:
    got = run_bare(bed, "-H nosuchname.invalid,4")
    lines = got.out.splitlines()
    assert got.rc == 255 and len(lines) == 3, f"status {got.rc}: {got.out!r}"
    assert lines[0] == (f"resolve_host: could not resolve host 'nosuchname.invalid' port '{bed.dead}' af "
                        "AF_INET"), lines
    assert lines[1].startswith("\tgetaddrinfo returned -"), lines
    assert lines[2] == "Netperf could not resolve nosuchname.invalid as a host name", lines


def clean_document(bed: Bed, args: str) -> None:
    """A document on stdout is not mixed with other output."""
    got = lib.run(bed.client(*args.format(**bed._asdict()).split(), "--json"), 20)
    assert got.rc and not lib.STDOUT_PHRASES.search(got.out), got.out
    assert not got.out or json.loads(got.out), got.out


OPTIONS = {  # messages of getopt(3), with the program's name as it was called
    "-q": ("invalid option -- 'q'", "no such option"),
    "-cq": ("invalid option -- 'q'", "no such option"),
    "--nosuch": ("invalid option -- '-'", "no such option"),
    "-t STREAM_RR -- -x": ("invalid option -- 'x'", "no such option"),
    "-H": ("option requires an argument -- 'H'", "needs an argument"),
    "-- -m": ("option requires an argument -- 'm'", "needs an argument"),
}


def bad_option(args: str, said: str, ours: str) -> None:
    got = lib.run([lib.netperf(), *args.split()], 20)
    lines = got.err.splitlines()
    assert (got.rc, got.out) == (1, ""), f"status {got.rc}: {got.out!r}"
    assert lines[:2] == [f"{lib.netperf()}: {said}",
                         "Usage: netperf [global options] -- [test options] "], lines
    assert len(lines) == 3 and ours in lib.error_line(got, "netperf"), lines


def unknown_test_option(bed: Bed, test: str, option: str) -> None:
    """netperf's IP tests run nevertheless."""
    got = lib.run(bed.client("-t", test, "-l", str(interop.counted(test, quick=True)), "--", option), 20)
    assert got.rc == 0 and " TEST from " in got.out, f"status {got.rc}: {got.out!r} {got.err!r}"
    hint = "its figures are in --json" if option == "-k" else "-- -h lists them"
    assert got.err == f"netperf: {option}: ignored, as in netperf: the test has no such option ({hint})\n", got.err


def one_line_for_people(args: str) -> None:
    said = lib.on_a_terminal([lib.netperf(), "--progress", "never", *args.split()])
    assert re.fullmatch(r"netperf: [^\n]+\n", said) and "(null)" not in said, said


def refused_priority(bed: Bed) -> None:
    """A session has no capability for that."""
    got = lib.run(bed.client("-y", ",7", "-l", "-100000"), timeout=20)
    assert got.rc == 0, f"status {got.rc}: {got.err!r}"
    lib.error_line(got, "netperf", "-y: SO_PRIORITY at the far end: 7 was refused", "CAP_NET_ADMIN")


def debug_names_port(bed: Bed, test: str) -> None:
    """Parsers read the data connection's port from the debug output while the test runs."""
    port = lib.free_port()
    out = lib.must(bed.client("-d", "-t", test, "-l", str(interop.counted(test, quick=True)), "--", "-P", f",{port}",
                              *interop.KINDS[test].specific), timeout=20)
    lines = out.splitlines()
    assert lines.count(f"remote port is {port}") == 1, out
    before = lines[:lines.index(f"remote port is {port}")]
    assert " TEST from " in "".join(before) and before[-1] == "remote listen done.", out


def words(bed: Bed) -> Iterator[Case]:
    for args, ends in UNREACHABLE:
        if "::" not in "".join(ends) or Path("/proc/net/if_inet6").exists():
            yield f"no daemon: {args}", partial(unreachable, bed, args, ends)
    yield "no such host", partial(unresolved, bed)
    for args in ("-p {dead}", "-H nosuchname.invalid", "-t NOSUCH", "-F ,nosuchfile"):
        yield f"--json {args}", partial(clean_document, bed, args)
    for args in ("-p {dead}", "-H nosuchname.invalid", "-t NOSUCH", "--nosuch", "-H", "-- -k NOSUCH"):
        yield f"on a terminal: {args}", partial(one_line_for_people, args.format(**bed._asdict()))
    yield "-y ,7", partial(refused_priority, bed)
    for args, (said, ours) in OPTIONS.items():
        yield f"bad option: {args}", partial(bad_option, args, said, ours)
    for test, option in (("TCP_STREAM", "-x"), ("UDP_RR", "-x"), ("TCP_CRR", "-J"), ("TCP_CC", "-k")):
        yield f"unknown option: {test} -- {option}", partial(unknown_test_option, bed, test, option)
    for test in ("TCP_STREAM", "UDP_RR", "TCP_CC"):
        yield f"-d {test}", partial(debug_names_port, bed, test)


# ---- signals ------------------------------------------------------------------------------------

def deaf_start(bed: Bed) -> None:
    """Started with SIGALRM blocked, which would interrupt a blocking call."""
    cmd = [sys.executable, "-c", "import os, signal, sys; signal.pthread_sigmask(signal.SIG_BLOCK, "
           "[signal.SIGURG]); os.execv(sys.argv[1], sys.argv[1:])",
           *bed.client("-t", "UDP_RR", "-l", "1", "-P", "0")]
    got = lib.run(cmd, 20)
    assert got.rc == 0, f"status {got.rc}: {got.err!r}"
    check_time(got.seconds, 2.5)


def interrupt_before(bed: Bed) -> str:
    with lib.Started(bed.client("-s", "60", "-l", "1")) as client:
        assert lib.wait_for(lambda: "TEST from" in client.said(), 20), "no banner"
        client.signal(signal.SIGINT)
        got = client.finish(60)
    return check_error(got, "interrupted before the test began")


def interrupt(bed: Bed, test: str, length: str, number: int, port: int, status: int = 0) -> str:
    small = ("--", *SMALL[test]) if length == "counted" and test in SMALL else ()
    with lib.Started(bed.client("-t", test, *LONG[length], *small, port=port)) as client:
        client.measuring()
        time.sleep(MOMENT)
        client.signal(number)
        signalled = time.monotonic()
        got = client.finish(60)
        after = time.monotonic() - signalled
    assert got.rc == status, f"status {got.rc} after {got.seconds:.1f} s: {got.err!r}"
    assert not lib.PASSED_OVER.sub("", got.err), f"stderr: {got.err!r}"
    check_time(after, 2.5)
    check_result(test, got)
    return f"{after:.2f} s after the signal"


def interruptions(bed: Bed) -> Iterator[Case]:
    ours = {"port": bed.port}
    yield "SIGINT: -s", partial(interrupt_before, bed)
    for test in TESTS:
        for length in LONG:
            for number in (signal.SIGINT, signal.SIGALRM):
                yield (f"{number.name}: {test} {length}",
                       partial(interrupt, bed, test, length, number, **ours))
        yield (f"SIGTERM: {test}", partial(interrupt, bed, test, "20 s", signal.SIGTERM,
                                           status=128 + signal.SIGTERM, **ours))


def real_interruptions(bed: Bed, port: int) -> Iterator[Case]:
    for test in REAL_TESTS:
        yield (f"SIGINT: {test}, real daemon",
               partial(interrupt, bed, test, "20 s", signal.SIGINT, port))


# ---- surroundings -------------------------------------------------------------------------------

def full_disk(bed: Bed) -> str:
    """Of a result, and of a text."""
    seen = ""
    for args in (("--list-figures",), ("-l", "-1000")):
        with open("/dev/full", "w") as full, lib.Started(bed.client(*args), stdout=full) as client:
            seen = check_error(client.finish(60), "standard output", "No space left")
    return seen


def without(descriptor: int, cmd: Sequence[str]) -> List[str]:
    """The command with one of its standard streams closed."""
    return ["sh", "-c", f'exec "$@" {descriptor}>&-', "sh", *cmd]


def closed_output(bed: Bed) -> str:
    """No other descriptor may take its number: results must not be written to a socket."""
    got = lib.run(without(1, bed.client("-l", "-1000")), timeout=20)
    return check_error(got, "standard output", "Bad file descriptor")


def closed_rest(bed: Bed) -> None:
    got = lib.run(without(0, without(2, bed.client("-l", "-100", "-t", "TCP_RR"))), timeout=20)
    assert got.rc == 0 and not got.err, f"status {got.rc}: {got.err!r}"
    layout.match(layout.expected(layout.load("TCP_RR"), layout.Style()), got.out)


def run_as_nobody(bed: Bed, *args: str) -> lib.Result:
    cmd = [*lib.as_nobody(), str(bed.place / "netperf"), *bed.client(*args)[1:]]
    return lib.run(cmd, timeout=20)


def plain_user(bed: Bed, test: str) -> None:
    specific = interop.KINDS[test].specific
    length = str(interop.counted(test, quick=True))
    got = run_as_nobody(bed, "-t", test, "-l", length, *(("--", *specific) if specific else ()))
    assert got.rc == 0 and not got.err, f"status {got.rc}: {got.err!r}"
    layout.match(layout.expected(layout.load(test), layout.Style()), got.out)


def low_port(bed: Bed) -> str:
    first = int(Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text())
    if first <= 1:
        return "any user may have port 1 here"
    got = run_as_nobody(bed, "-l", "1", "--", "-P", "1,2")
    return check_error(got, "bind", "port 1", "Permission denied")


def secret_file(bed: Bed) -> str:
    got = run_as_nobody(bed, "-l", "1", "-t", "TCP_SENDFILE", "-F", f"{bed.place}/secret")
    return check_error(got, f"{bed.place}/secret", "Permission denied")


def busy_local_port(bed: Bed) -> None:
    """TCP_CRR cycles through a small range of ports many times, and skips the one in use."""
    first = lib.free_port()
    with socket.create_server(("127.0.0.1", first)):
        got = lib.run(bed.client("-t", "TCP_CRR", "-l", "1", "--", "-p", f"{first},{first + 9}"), 20)
    assert got.rc == 0, f"status {got.rc}: {got.err!r}"


def no_service_is_one(bed: Bed) -> None:
    """0 is a valid type of service, which flent uses."""
    for host in ("127.0.0.1", *(["::1"] if lib.has_ipv6() else [])):
        got = lib.run(bed.client("-H", host, "-t", "TCP_RR", "-l", "-9", "-Y", "0x0,0x0", "--", "-k",
                                 "LOCAL_SOCKET_TOS,REMOTE_SOCKET_TOS"), 20)
        assert "LOCAL_SOCKET_TOS=0x00\nREMOTE_SOCKET_TOS=0x00\n" in got.out, got


def surroundings(bed: Bed) -> Iterator[Case]:
    yield "SIGURG blocked at the start", partial(deaf_start, bed)
    yield "TCP_CRR, a local port in use", partial(busy_local_port, bed)
    yield "-Y 0x0,0x0", partial(no_service_is_one, bed)
    yield "full disk", partial(full_disk, bed)
    yield "stdout closed", partial(closed_output, bed)
    yield "stdin and stderr closed", partial(closed_rest, bed)
    yield "plain user: low port", partial(low_port, bed)
    if os.geteuid() == 0:
        yield "plain user: unreadable file", partial(secret_file, bed)
    for test in TESTS:
        yield f"plain user: {test}", partial(plain_user, bed, test)


# ---- the suite ----------------------------------------------------------------------------------

def patient(bed: Bed) -> Iterator[Case]:
    """Cases that mostly wait."""
    if not lib.QUICK:
        for test in ("TCP_STREAM", "TCP_RR", "TCP_CRR", "TCP_CC"):
            yield f"daemon stopped: {test}", partial(stop_session, bed, test)
        for test in ("TCP_STREAM", "TCP_MAERTS", "UDP_STREAM"):
            yield f"daemon stopped, SIGINT: {test}", partial(interrupt_hanging, bed, test)
    for peer in PEERS:
        if peer.limit < 60 or os.environ.get("NP_TEST_LONG"):
            yield f"peer: {peer.name}", partial(meet_peer, bed, peer)
    for test in ("TCP_STREAM", "UDP_STREAM", "TCP_RR"):
        for interrupted in (False, True):
            yield f"daemon at rest: {test}{', SIGINT' * interrupted}", partial(end_at_rest, bed, test, interrupted)
    yield "-N: a service that does not close", partial(without_close, "TCP_STREAM", True)
    yield "-N: a service that does not read", partial(without_close, "TCP_STREAM", False)
    yield "peer: silent, interrupted", partial(interrupt_waiting, bed)
    yield "a later iteration fails", partial(later_iteration, bed)
    yield "a signal before a later iteration has figures", partial(later_signal, bed)
    yield "a search fails", partial(search_fails, bed)
    if not lib.QUICK:
        yield "peer: silent, but in its queue", partial(wait_in_line, bed)


def busy(bed: Bed) -> Iterator[Case]:
    for test in TESTS:
        yield f"session killed: {test}", partial(kill_session, bed, test)
    yield from interruptions(bed)
    yield from words(bed)
    yield from surroundings(bed)
    for row in FAULTS:
        yield row.args.format(**bed._asdict()), partial(give_fault, bed, row)


def against_real(report: lib.Report, bed: Bed, stack: ExitStack) -> List[Case]:
    """These start before other busy cases: the real daemon's sessions take their time."""
    try:
        program = str(lib.real_netperf() / "netserver") if not lib.QUICK else ""
    except lib.Skipped as why:
        report.skip("real daemon", str(why))
        return []
    if not program:
        return []
    daemon = stack.enter_context(lib.Daemon(grace=None, program=program))
    return list(real_interruptions(bed, daemon.port))


def suite(report: lib.Report) -> None:
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        odd_files(place)
        daemon: Any = stack.enter_context(lib.Daemon())
        bed = Bed(daemon.port, lib.free_port(), lib.free_port(), place)
        waiting = threading.Thread(target=report.cases, args=(patient(bed), 10))
        waiting.start()
        report.cases([*against_real(report, bed, stack), *busy(bed)], AT_ONCE)
        waiting.join()


if __name__ == "__main__":
    lib.main(suite)
