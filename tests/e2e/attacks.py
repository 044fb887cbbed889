"""Attackers on other networks try to keep others out, each against the daemon's defaults: meanwhile an honest client
on a network of its own starts within a tenth of a second.

--long runs the attacks at full size.
"""

import fcntl
import multiprocessing
import os
import re
import resource
import signal
import socket
import struct
import tempfile
import termios
import time
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Callable, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

import keys
import lib
import ours
from ours import CALIBRATE, FRAME, field

SLOW = lib.QUICK or b"__asan_init" in Path(lib.netserver()).read_bytes()
PATIENCE = 4.0 if SLOW else 1.0  # sanitizers stretch time limits
PROMPT_S = 0.1        # from a client's connect to its first answer
STILL_S = 10          # after which a test that moves nothing may be ended in favour of others
DAY_S = 86400
CAP_SYS_RESOURCE = 24
# One address in each of several networks (/24), as the daemon sees them.
GREEDY, NEIGHBOUR, SECOND, HONEST = "127.1.0.1", "127.1.0.2", "127.2.0.1", "127.3.0.1"
ROUNDS = 10
HONEST_STARTS = 40 if lib.LONG else 10
BURST = 1000 if lib.LONG else 400  # requests and resets
KEY = "correct horse battery staple"
HELLO, CHALLENGE, PROOF = 0x504C0001, 0x504C0002, 0x504C0003
MANY = 101 if lib.LONG else 40     # of resources that a daemon has few of
DATAGRAM_PORTS, FLOWS = (101, 64) if lib.LONG else (30, 15)

Case = Tuple[str, Callable[[], Optional[str]]]


def request(seconds: int, size: int = 131072, width: int = 2) -> bytes:
    """A TCP stream to the daemon, which receives `size` bytes per call into `width` buffers."""
    return ours.omni(seconds, receives=size, width=width)


def plan(pattern: str, transport: str, flows: int = 1, threads: int = 1, engine: str = "", seconds: int = DAY_S,
         *more: bytes, size: int = 1) -> bytes:
    """A PLAN, for what OMNI can't express. Requests and responses have one byte."""
    words = [(5, 4), (7, size), (8, size), (32, flows), (35, threads)]
    parts = [field(1, pattern.encode()), field(2, transport.encode()), field(6, struct.pack("!q", 1000 * seconds)),
             *(field(tag, struct.pack("!i", value)) for tag, value in words)]
    if engine:
        parts.append(field(34, engine.encode()))
    return ours.message(ours.PLAN, *parts, *more)


def calling(port: int, source: str, patience: float = 20) -> socket.socket:
    conn = socket.create_connection(("127.0.0.1", port), patience, (source, 0))
    conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return conn


def ask(conn: socket.socket, request: bytes) -> ours.Came:
    """Send a request and return the answer; a PLAN needs a greeting first."""
    if request[:4] == ours.word(ours.PLAN):
        ours.greet(conn)
    conn.sendall(request)
    return ours.receive(conn)


def start(port: int, source: str = HONEST) -> float:
    """Seconds from an honest client's connect to the grant of its test."""
    begun = time.monotonic()
    with calling(port, source) as conn:
        got = ask(conn, request(5))
        seconds = time.monotonic() - begun
        conn.shutdown(socket.SHUT_WR)
        with suppress(OSError):
            conn.recv(1)  # until its session has ended: it occupies a place
    assert got.error == 0, f"refused, error {got.error}"
    return seconds


class Round(NamedTuple):
    """The longest wait of an honest client, that at an idle daemon during the same time, and all waits."""
    worst: float
    idle: float
    waits: "Sequence[float]" = ()

    def is_prompt(self) -> bool:
        return self.worst < PROMPT_S * PATIENCE + 3 * self.idle  # idle is next to nothing, except on a busy machine

    def __str__(self) -> str:
        return f"{1e3 * self.worst:.1f} ms at the most, {1e3 * self.idle:.1f} at an idle daemon"


def measure(once: Callable[[], Round]) -> str:
    """Repeat until a round is prompt, as a delay may be caused by the machine; but a refusal is never accepted."""
    done: "List[Round]" = []
    while len(done) < ROUNDS and (lib.LONG or not any(one.is_prompt() for one in done)):
        done.append(once())
    words = f"{min(done)}; {len(done)} rounds"
    assert any(one.is_prompt() for one in done), words
    if lib.LONG:
        waits = sorted(wait for one in done for wait in one.waits)
        p50, p99 = (waits[int(part * (len(waits) - 1))] for part in (0.5, 0.99))
        words += f", {len(waits)} starts, p50 {1e3 * p50:.1f} ms, p99 {1e3 * p99:.1f} ms"
        assert p99 < PROMPT_S * PATIENCE + 3 * max(one.idle for one in done), words
    return words


def starts(port: int, going_on: Callable[[], bool], least: int = 3, source: str = HONEST,
           begin: Callable[[int, str], float] = start, args: Sequence[str] = ()) -> Round:
    """Honest starts during an attack, and as many at another daemon that is not attacked, which show the machine's
    share."""
    times: "List[float]" = []
    others: "List[float]" = []
    with lib.Daemon(args=args, grace=None) as idle:
        while going_on() or len(times) < least:
            times.append(begin(port, source))
            others.append(begin(idle.port, source))
    return Round(max(times), max(others), times)


def over() -> bool:
    return False


# ---- all that there is of something ------------------------------------------------------------

class Idle:
    """Sessions whose tests move no data."""

    def __init__(self, port: int, stack: ExitStack) -> None:
        self._port = port
        self._stack = stack
        self.refused = 0

    def add(self, source: str, frame: bytes) -> bool:
        conn = self._stack.enter_context(calling(self._port, source))
        got = ask(conn, frame)
        if got.error != 0:
            self.refused += 1
            return False
        if got.kind == ours.GRANT:
            self._connect(source, frame, ours.ports_of(got))
        elif frame != CALIBRATE:
            self._stack.enter_context(calling(struct.unpack("!I", got.body[44:48])[0], source))
        return True

    def _connect(self, source: str, frame: bytes, ports: "Sequence[int]") -> None:
        """Make all TCP data connections of a test."""
        if b"TCP" not in frame:
            return
        (flows,) = struct.unpack("!i", re.findall(rb"\0\0\0\x20\0\0\0\x04(....)", frame, re.S)[0])
        for _ in range(flows):
            self._stack.enter_context(calling(ports[0], source))


def big_request() -> bytes:
    """50 MiB of buffers: nine times that is more than the daemon's limit."""
    return request(DAY_S, 1 << 20, 50)


def all_memory() -> str:
    """Nine connections from one address, then small tests from another address of its network."""
    with lib.Daemon(grace=None) as daemon, ExitStack() as stack:
        idle = Idle(daemon.port, stack)
        got = sum(idle.add(GREEDY, big_request()) for _ in range(9))
        assert 5 <= got < 9, f"{got} of 9 got their memory"
        got += sum(idle.add(NEIGHBOUR, request(DAY_S)) for _ in range(300 if lib.LONG else 60))
        assert idle.refused > 0, "the memory is not given away: the test is blind"
        return f"{got} idle tests; {measure(partial(starts, daemon.port, over, HONEST_STARTS))}"


def a_lab() -> str:
    """Ten big tests from one address, then all others of its /24, one after the other and twenty at a time."""
    with lib.Daemon(args=["--no-sandbox"], grace=None) as daemon, ExitStack() as stack:
        idle = Idle(daemon.port, stack)
        got = sum(idle.add(GREEDY, request(DAY_S, 1 << 20, 42)) for _ in range(10))
        assert got == 10, f"{got} of 10 got their memory"
        while idle.add(GREEDY, request(DAY_S)):
            got += 1
            assert got < 30, "the memory is not given away: the test is blind"
        for last in range(2, 42):
            start(daemon.port, f"127.1.0.{last}")
        with ExitStack() as others:
            idle = Idle(daemon.port, others)
            held = sum(idle.add(f"127.1.0.{last}", request(DAY_S)) for last in range(2, 22))
        assert held == 20, f"{held} of 20 neighbours have a test at the same time"
        return f"{got} idle tests; {measure(partial(starts, daemon.port, over, HONEST_STARTS, NEIGHBOUR))}"


def status(daemon: lib.Daemon) -> str:
    return lib.run([lib.netserver(), "--status", "-p", str(daemon.port)], 20).out


def in_use(daemon: lib.Daemon, what: str) -> "Tuple[int, int]":
    """What the daemon reports about a shared resource: used, and its limit."""
    now, most = re.findall(rf"^{what} +(\d+) of (\d+)$", status(daemon), re.M)[0]
    return int(now), int(most)


def free_range(count: int) -> int:
    """The first of that many consecutive free ports."""
    for first in range(12000 + os.getpid() % 10000, 32000, count):
        with ExitStack() as stack, suppress(OSError):
            for port in range(first, first + count):
                for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                    stack.enter_context(socket.socket(socket.AF_INET, kind)).bind(("127.0.0.1", port))
            return first
    raise AssertionError(f"no {count} free ports in a row")


class Fill(NamedTuple):
    """A way in which one address takes all that it can get of a shared resource."""
    name: str
    what: str               # its line in the daemon's status
    option: str             # "{}" is a range of ports
    most: int
    frame: bytes            # repeated until it is refused
    error: int
    held: int               # how much the address then holds
    ask: bytes              # request of others for the same resource


def open_part(most: int) -> int:
    """What is not reserved."""
    return most - most // 10


FILLS = (
    Fill("idle tests that take all ports", "ports", "--data-ports {}", MANY, plan("rr", "TCP"), 98, open_part(MANY), plan("rr", "TCP")),
    Fill("UDP flows that take all ports", "ports", "--data-ports {}", DATAGRAM_PORTS, plan("rr", "UDP", flows=FLOWS), 98,
         open_part(DATAGRAM_PORTS), plan("rr", "UDP")),
    Fill("tests that take all threads", "threads", f"--max-threads {MANY}", MANY, plan("rr", "TCP", 4, 4), 11, open_part(MANY) // 4 * 4,
         plan("rr", "TCP")),
    Fill("tests that take all sockets", "sockets", f"--max-total-flows {MANY}", MANY, plan("rr", "TCP", 4), 24, open_part(MANY) // 4 * 4,
         plan("rr", "TCP")),
    Fill("UDP flows that take all of one port", "datagrams", "--one-port", 2048, plan("rr", "UDP", 256, 1, "", DAY_S, ours.TOKENS), 24,
         open_part(2048), plan("rr", "UDP", 1, 1, "", DAY_S, ours.TOKENS)),
    Fill("idle tests that spin", "spinning", "--spin 2", 2, plan("rr", "TCP", 8, 8, "spin"), 16, 1,
         plan("rr", "TCP", 8, 8, "spin")),
)


@contextmanager
def filled(fill: Fill) -> "Iterator[lib.Daemon]":
    """A daemon of which one address has taken all that it can get."""
    first = free_range(fill.most) if "{}" in fill.option else 0
    args = fill.option.format(f"{first}-{first + fill.most - 1}").split()
    with lib.Daemon(args=args, grace=None) as daemon, ExitStack() as stack:
        idle = Idle(daemon.port, stack)
        while idle.add(GREEDY, fill.frame):
            assert len(daemon.children()) <= fill.most, "it is not given away: the test is blind"
        with calling(daemon.port, GREEDY) as conn:
            assert ask(conn, fill.frame).error == fill.error
        assert in_use(daemon, fill.what) == (fill.held, fill.most), in_use(daemon, fill.what)
        yield daemon


def fills(fill: Fill) -> str:
    """Meanwhile others start at once, in the same network and in another one, and get a part of the same resource."""
    with filled(fill) as daemon:
        for source in (NEIGHBOUR, HONEST):
            with ExitStack() as other:
                assert Idle(daemon.port, other).add(source, fill.ask)
            # On a slow machine, idle tests are ended meanwhile.
            assert lib.wait_for(lambda: in_use(daemon, fill.what)[0] <= fill.held, 20)
        words = measure(partial(starts, daemon.port, over, HONEST_STARTS, NEIGHBOUR))
        return f"{words} in its network; {measure(partial(starts, daemon.port, over, HONEST_STARTS))} elsewhere"


def filters() -> str:
    """A session with rings has a seccomp filter of its own. If there is none left, it gets no rings and is served
    without."""
    with lib.Daemon(args=["--uring", "1", "--max-filters", "20"], grace=None) as daemon, ExitStack() as stack:
        idle = Idle(daemon.port, stack)
        assert all(idle.add(GREEDY, CALIBRATE) for _ in range(10))
        if in_use(daemon, "filters") == (0, 20):
            raise lib.Skipped("sessions have no filter of system calls here")
        # An address gets half of the filters of a second.
        assert lib.wait_for(lambda: idle.add(GREEDY, CALIBRATE) and in_use(daemon, "filters")[0] >= 18, 20)
        assert all(idle.add(GREEDY, CALIBRATE) for _ in range(10))
        assert in_use(daemon, "filters") == (18, 20), in_use(daemon, "filters")
        assert idle.add(NEIGHBOUR, CALIBRATE) and in_use(daemon, "filters")[0] == 19
        return measure(partial(starts, daemon.port, over, HONEST_STARTS))


def sleeping(daemon: lib.Daemon, seconds: float, most: float) -> str:
    """Soon its sessions together use less than that of a processor in this time."""
    used: "List[float]" = []

    def sleep() -> bool:
        before = sum(lib.cpu_seconds(pid) for pid in daemon.children())
        time.sleep(seconds)
        used.append(sum(lib.cpu_seconds(pid) for pid in daemon.children()) - before)
        return used[-1] < most

    assert lib.wait_for(sleep, 60), used
    return f"{used[-1]:.2f} s of a processor in {seconds} s"


def idle_ones_sleep() -> str:
    """Sessions with spinning engines that have no data use no processor time."""
    with filled(FILLS[-1]) as daemon:
        return sleeping(daemon, 2, 0.1)


def still_ports() -> str:
    """An idle test has to go when a newcomer needs more than the reserve. Run by limits.py, as still_ones()."""
    begun = time.monotonic()
    with filled(FILLS[0]) as daemon, ExitStack() as stack:
        idle = Idle(daemon.port, stack)
        got, filled_at = 0, time.monotonic()
        while got < 8 and time.monotonic() < filled_at + 6 * STILL_S:
            got += idle.add(NEIGHBOUR, plan("rr", "TCP"))
            assert got <= 2 or time.monotonic() > begun + STILL_S - 1, f"{got} from the reserve"
            time.sleep(0.1)
        was_slow = filled_at > begun + STILL_S / 2   # the first ones may be ended already
        assert got == 8 and (idle.refused > 0 or was_slow), f"still tests stay: {got} ports, {daemon.log()[-600:]}"
        assert f"event=session-still peer={GREEDY}" in daemon.log(), daemon.log()[-600:]
        return f"{got} ports after {time.monotonic() - begun:.1f} s, {idle.refused} refusals before"


def moving(port: int, *args: str) -> lib.Started:
    return lib.Started([lib.netperf(), "-H", "127.0.0.1", "-L", SECOND, "-p", str(port),
                        "-l", str(6 * STILL_S), *args])


def still_ones() -> str:
    """An idle test has to go when another client needs more than what is reserved for newcomers, and only an idle
    one. Run by limits.py, as it depends on waiting and not on timing."""
    with ExitStack() as stack:
        daemon = stack.enter_context(lib.Daemon(grace=None))
        small = stack.enter_context(lib.Daemon(args=["--max-total-memory", "20M"], grace=None))
        idle = Idle(daemon.port, stack)
        begun = time.monotonic()
        assert sum(idle.add(GREEDY, big_request()) for _ in range(9)) >= 5
        mover = stack.enter_context(moving(daemon.port))
        big = stack.enter_context(moving(small.port, "--", "-M", "4m", "-S", "100k"))
        assert mover.under_way() and big.under_way()
        got, until = False, time.monotonic() + 4 * STILL_S
        while not got and time.monotonic() < until:
            with ExitStack() as other:
                got = Idle(daemon.port, other).add(HONEST, big_request())
            took = time.monotonic() - begun
            assert not got or took > STILL_S - 1, "the memory is not given away: the test is blind"
            time.sleep(0.5)
        assert got, f"still tests stay: {daemon.log()[-600:]}"
        assert f"event=session-still peer={GREEDY}" in daemon.log(), daemon.log()[-600:]
        # Here, only a test that moves data could be ended.
        time.sleep(max(0.0, begun + STILL_S + 2 - time.monotonic()))
        with ExitStack() as other:
            assert not Idle(small.port, other).add(HONEST, request(5, 1 << 20, 11))
        assert mover.running() and big.running(), "a test that moves has ended, too"
        assert "session-still" not in small.log(), small.log()
        return f"room after {took:.1f} s"


# ---- pinned memory -------------------------------------------------------------------------------

def pinned() -> str:
    """Tests with MSG_ZEROCOPY to a client that does not read. The kernel limits pinned memory per user: what it
    refuses to pin for another session is copied."""
    most = resource.getrlimit(resource.RLIMIT_MEMLOCK)[1]
    effective = re.search(r"CapEff:\s*(\w+)", Path("/proc/self/status").read_text())[1]
    if 0 <= most < 8 << 20 and not int(effective, 16) >> CAP_SYS_RESOURCE & 1:
        raise lib.Skipped(f"a user may pin {most} bytes here")
    with lib.Daemon(["prlimit", f"--memlock={1 << 18}:"], grace=None) as daemon, ExitStack() as stack:
        unread, queued = [], [-1, 0]
        for _ in range(2):
            conn = stack.enter_context(calling(daemon.port, GREEDY))
            got = ask(conn, plan("stream", "TCP", 4, 1, "zerocopy", DAY_S, ours.number(4, 1)))
            for _ in range(4):
                unread.append(stack.enter_context(calling(ours.ports_of(got)[0], GREEDY)))

        def is_full() -> bool:
            queued.append(sum(struct.unpack("i", fcntl.ioctl(one, termios.FIONREAD, bytes(4)))[0] for one in unread))
            return queued[-2] == queued[-1]

        assert lib.wait_for(is_full, 20), queued
        sent = lib.document_of(daemon.port, "TCP_MAERTS", "-L", HONEST, "-l", "-1000000", "--engine", "zerocopy,zerocopy")
        far = sent["iterations"][0]["far"]
        assert far.get("engine.zerocopy_sends", 0) > 0 and far.get("engine.zerocopy_refused", 0) == 0, far
        return f"{queued[-1]} bytes are not read; {far['engine.zerocopy_sends']} sends of another one without a copy"


# ---- what ended sessions leave -------------------------------------------------------------------

def reluctant(port: int, stack: ExitStack, source: str = GREEDY) -> socket.socket:
    """A data connection that has room for next to nothing."""
    data = stack.enter_context(socket.socket())
    data.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    data.settimeout(1)
    data.bind((source, 0))
    data.connect(("127.0.0.1", port))
    return data


def orphans(ports: "Set[int]") -> "List[str]":
    """Connections at these ports that no process has, and that have data to send."""
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [" ".join(row[1:5]) for row in rows
            if int(row[1][-4:], 16) in ports and row[9] == "0" and row[3] in ("04", "09", "0B") and int(row[4][:8], 16) > 1]


def unread() -> str:
    """Tests of a second whose data the client does not read: when their sessions are over the kernel keeps none of it."""
    count, size, ports = 20, 100000, set()
    with lib.Daemon(grace=None) as daemon, ExitStack() as stack:
        for pattern in ("stream", "rr", "crr"):
            with calling(daemon.port, GREEDY) as conn:
                got = ask(conn, plan(pattern, "TCP", count, 1, "", 1, *[ours.number(4, 1)] * (pattern == "stream"), size=size))
                assert got.kind == ours.GRANT, got
                ports.update(ours.ports_of(got))
                for _ in range(count):
                    data = reluctant(ours.ports_of(got)[0], stack)
                    if pattern != "stream":
                        data.sendall(bytes(size))
                assert ours.receive(conn).kind == ours.RESULT
        assert lib.wait_for(lambda: not daemon.children(), 60), "the sessions stay"
        left = orphans(ports)
        assert not left, f"{len(left)} connections are left, such as {left[0]}"
        return f"nothing of {3 * count} connections"


# ---- datagrams to others --------------------------------------------------------------------------

def forged_token() -> str:
    """A client shows its token from another address, which it may have forged: nothing is sent there but an answer as long
    as what came. The test goes to the client."""
    def shown(source: str) -> "Set[bytes]":
        """What is sent there until half a second after the first answer."""
        got: "Set[bytes]" = set()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as data:
            data.bind((source, 0))
            data.settimeout(0.5)
            until = time.monotonic() + 30
            while not got and time.monotonic() < until:
                for says in (ours.token(ours.SHOWN, token), b"x"):
                    data.sendto(says, ("127.0.0.1", daemon.port))
                with suppress(socket.timeout):
                    while len(got) < 2 and time.monotonic() < until:
                        got.add(data.recv(1 << 16))
        return got

    with lib.Daemon(args=["--one-port"], grace=None) as daemon, calling(daemon.port, GREEDY) as conn:
        got = ask(conn, plan("stream", "UDP", 1, 1, "", DAY_S, ours.number(4, 1), ours.number(19, 0x2800), size=1000))
        assert got.kind == ours.GRANT, got
        token = ours.token_of(got)
        assert shown(SECOND) == {ours.token(ours.UNKNOWN)}, "it is sent to another address"
        more = shown(GREEDY) - {ours.token(ours.TAKEN)}
        assert more and len(max(more, key=len)) >= 1000, more
        return f"{len(max(more, key=len))} bytes a datagram to the client alone"


def kept_token() -> None:
    """A session that the daemon itself forks has nothing by which it could get another one's data connections."""
    with lib.Daemon(args=["--one-port", "--uring", "1"], grace=None) as daemon, ExitStack() as stack:
        got = ask(stack.enter_context(calling(daemon.port, HONEST)), plan("stream", "TCP", 4, 1, "", 60, ours.TOKENS))
        first = set(daemon.children())
        assert ask(stack.enter_context(calling(daemon.port, GREEDY)), CALIBRATE).error == 0
        (session,) = set(daemon.children()) - first
        assert not any(ours.token_of(got) in part for part in keys.memory(session)), "a session has another one's token"


def through_a_proxy() -> str:
    """A client of whom a proxy says the address gets the datagrams that it asks for, and not the proxy."""
    says = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c" + bytes((127, 1, 0, 1, 127, 0, 0, 1)) + b"\x12\x34\0\x50"
    with lib.Daemon(args=["--proxy-protocol", SECOND], grace=None) as daemon, ExitStack() as stack:
        conn = stack.enter_context(calling(daemon.port, SECOND))
        proxy, client = (stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in range(2))
        proxy.bind((SECOND, 0))
        client.bind((GREEDY, proxy.getsockname()[1]))
        conn.sendall(says)
        got = ask(conn, plan("stream", "UDP", 1, 1, "", DAY_S, ours.number(4, 1), ours.number(30, proxy.getsockname()[1]), size=1000))
        assert got.kind == ours.GRANT, got
        client.settimeout(20)
        size = len(client.recv(1 << 16))
        proxy.setblocking(False)
        with suppress(BlockingIOError):
            raise AssertionError(f"{len(proxy.recv(1 << 16))} bytes to the proxy")
        return f"{size} bytes a datagram to the client alone"


# ---- descriptors in flight -----------------------------------------------------------------------

def data_connection(port: int, source: str, says: bytes) -> socket.socket:
    conn = calling(port, source)
    conn.sendall(says)
    return conn


def start_data(port: int, source: str, tokens: bool) -> float:
    """As start(), to the first response on a data connection."""
    begun = time.monotonic()
    with calling(port, source) as conn:
        got = ask(conn, plan("rr", "TCP", 1, 1, "", 5, *[ours.TOKENS] * tokens))
        assert got.kind == ours.GRANT, f"refused, error {got.error}"
        with data_connection(port, source, ours.token(ours.SHOWN, ours.token_of(got)) if tokens else b"x") as data:
            if tokens:
                assert ours.take(data, 24) == ours.token(ours.TAKEN)
                data.sendall(b"x")
            assert len(ours.take(data, 1)) == 1
        seconds = time.monotonic() - begun
        conn.shutdown(socket.SHUT_WR)
        with suppress(OSError):
            conn.recv(1)
    return seconds


def fork_servers(daemon: lib.Daemon) -> "List[int]":
    found = lib.run(["ps", "-o", "pid=,comm=", "--ppid", str(daemon.pid)], 20).out.split("\n")
    return sorted(int(line.split()[0]) for line in found if "netserver-fork" in line)


def descriptors(tokens: bool) -> str:
    """Eight tests that accept a connection each, and more descriptors than may be in flight to all their sessions.
    The kernel limits them per user: a second daemon is affected, too."""
    few, begin = ["prlimit", "--nofile=1024:1024"], partial(start_data, tokens=tokens)
    with lib.Daemon(few, ["--one-port"], grace=None) as daemon, lib.Daemon(few, grace=None) as second, ExitStack() as stack:
        with calling(daemon.port, HONEST) as conn:  # the daemon listens before all of its fork servers are ready
            assert ask(conn, CALIBRATE).error == 0
        before = fork_servers(daemon)
        for last in range(11, 19):  # without a token, the address tells which test a connection belongs to
            conn = stack.enter_context(calling(daemon.port, f"127.1.0.{last}"))
            got = ask(conn, plan("crr", "TCP", 1, 1, "", DAY_S, *[ours.TOKENS] * tokens, size=100))
            assert got.kind == ours.GRANT, got
            says = ours.token(ours.PASSED, ours.token_of(got)) if tokens else b"x"
            for _ in range(225 if lib.LONG else 40):
                stack.enter_context(data_connection(daemon.port, f"127.1.0.{last}", says))
        # Of 256, the last 25 are reserved: an address and a network that have none get two each.
        assert lib.wait_for(lambda: in_use(daemon, "in-flight")[0] >= 231, 5), in_use(daemon, "in-flight")
        held = in_use(daemon, "in-flight")
        assert held[0] <= 243 and held[1] == 256, held
        words = [measure(partial(starts, daemon.port, over, HONEST_STARTS, source, begin, ["--one-port"]))
                 for source in (NEIGHBOUR, HONEST)]
        start(second.port)
        assert fork_servers(daemon) == before, (before, fork_servers(daemon))
        assert lib.wait_for(lambda: "reason=in-flight" in daemon.log(), 20), daemon.log()[-600:]
        assert "--one-port" in daemon.log() and "reason=process" not in daemon.log(), daemon.log()[-600:]
        return f"{held[0]} in flight, {len(before)} fork servers; {words[0]} in its network; {words[1]} elsewhere"


def stalls() -> str:
    """A late session receives all of its connections, including those that had to wait for room."""
    with lib.Daemon(["prlimit", "--nofile=1024:1024"], ["--one-port"], grace=None) as daemon, ExitStack() as stack:
        conn = stack.enter_context(calling(daemon.port, HONEST))
        got = ask(conn, plan("crr", "TCP", 1, 1, "", DAY_S, ours.TOKENS))
        (session,) = daemon.children()
        os.kill(session, signal.SIGSTOP)
        try:
            says = ours.token(ours.PASSED, ours.token_of(got)) + b"x"
            conns = [stack.enter_context(data_connection(daemon.port, HONEST, says)) for _ in range(260)]
            assert lib.wait_for(lambda: in_use(daemon, "in-flight")[0] == 64, 20)
        finally:
            os.kill(session, signal.SIGCONT)
        for one in conns:
            assert ours.take(one, 1)
        assert lib.wait_for(lambda: in_use(daemon, "in-flight")[0] == 0, 20), in_use(daemon, "in-flight")
        return f"{len(conns)} connections"


def silent_beside_tests() -> str:
    """With --one-port a test needs two descriptors of the daemon: silent connections leave them."""
    with lib.Daemon(["prlimit", "--nofile=128:128"], ["--one-port"], grace=None) as daemon, ExitStack() as stack:
        for last in range(10, 40):
            conn = stack.enter_context(calling(daemon.port, f"127.{last}.0.1"))
            ours.greet(conn)  # now it has a session
            for _ in range(10):
                stack.enter_context(calling(daemon.port, GREEDY))
            conn.sendall(plan("rr", "TCP", 1, 1, "", DAY_S, ours.TOKENS))
            assert ours.receive(conn).kind == ours.GRANT, f"{last - 10} of 30 are served"
        return "30 of 30 are served"


def pushed_out() -> str:
    """As many silent connections as possible, each from another address: those of networks with fewer connections
    stay."""
    with lib.Daemon(args=["--max-silent", "100"], grace=None) as daemon, ExitStack() as stack:
        quiet = [stack.enter_context(calling(daemon.port, f"127.3.0.{last}")) for last in range(1, 21)]
        for last in range(1, 251):
            stack.enter_context(calling(daemon.port, f"127.1.0.{last}"))
        for conn in quiet:
            assert ask(conn, CALIBRATE).error == 0
        assert re.search(r"^refused +\d+ silent$", status(daemon), re.M), "nothing is pushed out: the test is blind"
        return f"{len(quiet)} of another network are served"


def all_sessions() -> str:
    """Two addresses take as many sessions as they can get."""
    with lib.Daemon(grace=None) as daemon, ExitStack() as stack:
        idle = Idle(daemon.port, stack)
        per, second = (512, 128) if not SLOW else (100, 20)
        got = sum(idle.add(GREEDY, CALIBRATE) for _ in range(per + 8))
        got += sum(idle.add(SECOND, CALIBRATE) for _ in range(second))
        assert SLOW or idle.refused > 0, f"{got} sessions, and nobody was refused"
        words = measure(partial(starts, daemon.port, over, HONEST_STARTS))
        return f"{got} sessions; {words}"


# ---- more than is done in the time ---------------------------------------------------------------

def resets(port: int, count: int) -> None:
    """Complete requests, each followed by a reset."""
    conns = []
    for _ in range(count):
        with suppress(OSError):
            conn = calling(port, GREEDY)
            conns.append(conn)
            conn.sendall(request(DAY_S))
    for conn in conns:
        conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        conn.close()


@contextmanager
def beside(attack: Callable[[], None]) -> "Iterator[Callable[[], bool]]":
    """A process that attacks; yields a function that tells whether it is still running."""
    other = multiprocessing.get_context("fork").Process(target=attack)
    other.start()
    try:
        yield other.is_alive
    except BaseException:
        other.terminate()
        raise
    finally:
        other.join()
    assert other.exitcode == 0, f"the attack failed: {other.exitcode}"


def burst() -> str:
    """Each round uses a new daemon, at which the address has its full share."""
    def once() -> Round:
        with lib.Daemon(grace=None) as daemon, \
                beside(partial(resets, daemon.port, BURST)) as going_on:
            return starts(daemon.port, going_on)

    return measure(once)


def stay(port: int, count: int) -> None:
    with ExitStack() as stack:
        conns = [stack.enter_context(calling(port, GREEDY)) for _ in range(count)]
        for conn in conns:
            conn.sendall(CALIBRATE)
        if any(ours.receive(conn).error != 0 for conn in conns):
            raise SystemExit("somebody was refused")


def served_burst() -> str:
    """The same by clients that stay: all are served, one after another."""
    def once() -> Round:
        with lib.Daemon(grace=None) as daemon:
            with beside(partial(stay, daemon.port, 500 if lib.LONG else 200)) as going_on:
                return starts(daemon.port, going_on)

    return measure(once)


# ---- processors ----------------------------------------------------------------------------------

def threads_of(pid: int) -> "List[Tuple[int, float]]":
    """Their nice values and processor times."""
    found = []
    for stat in Path("/proc", str(pid), "task").glob("*/stat"):
        with suppress(OSError):
            words = stat.read_text().rpartition(")")[2].split()
            found.append((int(words[16]), (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")))
    return found


def turns_of(pid: int) -> "Set[float]":
    """The time slices of its threads in ms; empty if the kernel does not report them."""
    found = set()
    for about in Path("/proc", str(pid), "task").glob("*/sched"):
        with suppress(OSError):
            found.update(float(ns) / 1e6 for ns in re.findall(r"^se\.slice *: *([0-9]+)", about.read_text(), re.M))
    return found


def flood(port: int, stack: ExitStack, flows: int) -> None:
    """Datagrams from the daemon that the client does not read, one thread per flow."""
    conn = stack.enter_context(calling(port, GREEDY))
    got = ask(conn, plan("stream", "UDP", flows, flows, "", DAY_S, ours.number(4, 1), ours.number(19, 0x800)))
    assert got.error == 0, got
    token = dict(ours.fields(got.body))[5]
    for to in ours.ports_of(got):
        data = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        data.bind((GREEDY, 0))
        data.sendto(struct.pack("!II", 0x504C4543, 0x81F0E05E) + token, ("127.0.0.1", to))


def processors() -> str:
    """Alone, its threads keep their priority. When others run, its threads have less weight than new ones, and a
    fixed share together."""
    sessions, flows = 14 if lib.LONG else 3, min(64, max(8, os.cpu_count() or 8))
    with lib.Daemon(grace=None) as daemon, ExitStack() as stack:
        for _ in range(sessions):
            flood(daemon.port, stack, flows)
        greedy = daemon.children()
        base = os.getpriority(os.PRIO_PROCESS, daemon.pid)

        def nices() -> "List[int]":
            return [nice for pid in greedy for nice, _ in threads_of(pid)]

        assert lib.wait_for(lambda: len(nices()) >= sessions * (flows + 1), 20), nices()
        assert set(nices()) == {base}, "its own tests are no others"
        if short := turns_of(daemon.pid):
            assert max(short) < 1 and all(turns_of(pid) == {20} for pid in greedy), [turns_of(pid) for pid in greedy]
        start(daemon.port, GREEDY)
        assert set(nices()) == {base}, "its own starts are no others"
        start(daemon.port, HONEST)
        least = min(19, base + 6)
        assert min(nices()) >= least, f"{nices()}, and the daemon has {base}"
        words = measure(partial(starts, daemon.port, over, HONEST_STARTS))
        return f"{len(nices())} threads with nice {min(nices())}; {words}"


def sampled_ones_sleep() -> str:
    """Idle tests that request samples every millisecond: the daemon enforces a minimum interval, and samples less and
    less often."""
    with lib.Daemon(grace=None) as daemon, ExitStack() as stack:
        for _ in range(MANY):
            conn = stack.enter_context(calling(daemon.port, GREEDY))
            conn.sendall(ours.frame(ours.HELLO, -1, ours.number(1, 1) + ours.number(2, ours.PLANS | 1) + ours.number(3, 1)))
            welcome = dict(ours.fields(ours.receive(conn).body))
            assert welcome[2] == ours.word(ours.PLANS | 1) and welcome[3] == ours.word(10), welcome
            conn.sendall(plan("rr", "TCP"))
            stack.enter_context(calling(ours.ports_of(ours.receive(conn))[0], GREEDY))
        return f"{MANY} tests: {sleeping(daemon, 5, 0.25 * PATIENCE)}"


# ---- wrong secrets -------------------------------------------------------------------------------

def guess(port: int, option: str, seconds: float, tell: Connection) -> None:
    """Try as many wrong secrets as are answered in that time, over parallel connections."""
    tries, until = 0, time.monotonic() + seconds
    while time.monotonic() < until:
        with suppress(OSError), ExitStack() as stack:
            conns = [stack.enter_context(calling(port, GREEDY)) for _ in range(8)]
            for conn in conns:
                conn.settimeout(max(0.01, until - time.monotonic()))
                if option == "--key-file":
                    conn.sendall(struct.pack("!IiI", HELLO, -1, 2).ljust(FRAME, b"\1"))
                    ours.receive(conn)
                    conn.sendall(struct.pack("!IiI", PROOF, -1, 2).ljust(FRAME, b"\2"))
                else:
                    conn.sendall(struct.pack("!Ii", 6, -1).ljust(FRAME, b"x"))
            for conn in conns:
                while conn.recv(FRAME):
                    pass
                tries += 1
    tell.send(tries)


def guess_as_network(port: int, _option: str, seconds: float, tell: Connection) -> None:
    """Wrong passphrases from all addresses of a /24: three from each at once, and again."""
    until = time.monotonic() + seconds
    tries = 0
    with ExitStack() as stack:
        while time.monotonic() < until:
            for last in (range(1, 255) if tries < 3 * 254 else ()):
                with suppress(OSError):
                    conn = stack.enter_context(calling(port, f"127.1.0.{last}"))
                    conn.sendall(struct.pack("!Ii", 6, -1).ljust(FRAME, b"x"))
                    tries += 1
            time.sleep(0.05)
    tell.send(tries)


def guesses(option: str, attack: "Callable[[int, str, float, Connection], None]" = guess, burst: int = 3, each_s: float = 2.0) -> str:
    """From one address or network, hardly any guesses are possible; users elsewhere with the secret notice nothing."""
    seconds = 10 if lib.LONG else 3
    with tempfile.TemporaryDirectory() as place, ExitStack() as stack:
        path = Path(place, "secret")
        path.touch(0o600)
        path.write_text(KEY)
        daemon = stack.enter_context(lib.Daemon(args=[option, str(path)], grace=None))
        hear, tell = multiprocessing.Pipe(False)
        idle = stack.enter_context(lib.Daemon(args=[option, str(path)], grace=None))
        times: "List[float]" = []
        others: "List[float]" = []
        begun = time.monotonic()
        with beside(partial(attack, daemon.port, option, seconds, tell)) as going_on:
            while going_on():
                for port, into in ((daemon.port, times), (idle.port, others)):
                    got = lib.run([lib.netperf(), "-H", "127.0.0.1", "-L", f"127.3.{len(into) % 200}.1", "-p", str(port),
                                   "-t", "TCP_RR", "-l", "-1", option, str(path)], 30)
                    assert got.rc == 0 and not got.err, f"{got}"
                    into.append(got.seconds)
                time.sleep(0.05)
        looked = daemon.log(1 << 20).count('msg="wrong ')
        took = time.monotonic() - begun
        words = (f"{looked} tries looked at in {took:.1f} s, {hear.recv()} made; {len(times)} whole tests with the "
                 f"right one took {1e3 * min(times):.1f} ms at the best, {1e3 * max(times):.1f} at the worst, "
                 f"{1e3 * max(others):.1f} with an idle daemon")
        assert burst <= looked <= burst + took / each_s + 1, words
        assert "reason=tries peer=127.3." not in daemon.log(1 << 20), words
        assert Round(min(times), min(others)).is_prompt(), words
        return words


def suite(report: lib.Report) -> None:
    lib.many_descriptors()
    cases: "List[Case]" = [
        ("nine idle tests that take all memory", all_memory),
        ("two addresses that take all sessions", all_sessions),
        *((fill.name, partial(fills, fill)) for fill in FILLS),
        ("idle tests that spin sleep", idle_ones_sleep),
        ("sessions that take all filters", filters),
        ("tests that take all processors", processors),
        ("idle tests that ask for samples sleep", sampled_ones_sleep),
        ("tests that do not accept their connections", partial(descriptors, True)),
        ("the same without tokens", partial(descriptors, False)),
        ("a test that is late to accept", stalls),
        ("silent connections beside tests of one port", silent_beside_tests),
        ("tests that pin memory", pinned),
        ("tests that nobody reads", unread),
        ("a token from another address", forged_token),
        *([("a session forgets others' tokens", kept_token)] if keys.MAY_LOOK else []),
        ("a client behind a proxy", through_a_proxy),
        ("silent connections of 250 addresses", pushed_out),
        ("ten big tests in a lab of one /24", a_lab),
        (f"{BURST} requests and resets", burst),
        ("requests of many that stay", served_burst),
        ("passphrases are guessed", partial(guesses, "--passphrase-file")),
        ("passphrases are guessed by a network", partial(guesses, "--passphrase-file", guess_as_network, 32, 0.25)),
    ]
    if "libsodium" in lib.run([lib.netserver(), "--key-file", "/nonexistent", "-V"], 10).err:
        report.skip("keys are guessed", "built without libsodium")
    else:
        cases.append(("keys are guessed", partial(guesses, "--key-file")))
    for name, body in cases:  # in the main thread, as attackers are forked, and need the whole machine
        report.case(name, body)


if __name__ == "__main__":
    lib.netperf(), lib.netserver()
    lib.main(suite)
