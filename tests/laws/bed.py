"""A path between two network namespaces that is changed for each case, the programs at its ends, and the run of a
case.
"""

import contextlib
import ctypes
import os
import signal
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Tuple

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "e2e"), str(Path(__file__).resolve().parents[2] / "scripts")]

import lib  # noqa: E402
import numpy as np  # noqa: E402
from case import Case  # noqa: E402
from netkit import shown  # noqa: E402
from witness import UDP, Course, Ring, connections, course, keys  # noqa: E402

netlab = lib.script("netlab")
libc = ctypes.CDLL(None, use_errno=True)
NEWNET = 0x40000000
HOSTS = {4: "10.77.0.2", 6: "fd77::2"}
PORT, REAL_PORT, ONE_PORT = 12865, 12866, 12867
PORTS = f"{{{PORT}, {REAL_PORT}, {ONE_PORT}}}"
LATE = "late0"
FIRST = 1.1             # s of a test before a disturbance: faults from the start on end a test at once
QUEUE = 300_000         # bytes: the smallest queue of netlab-link
FRAGMENTS = 64 << 20    # bytes for incomplete fragmented datagrams: the kernel's default of 4 MB stays full for half a minute after some cases
FIGURES = ("THROUGHPUT", "ELAPSED_TIME", "LOCAL_BYTES_SENT", "LOCAL_BYTES_RECVD", "REMOTE_BYTES_SENT",
           "REMOTE_BYTES_RECVD", "LOCAL_SEND_CALLS", "LOCAL_RECV_CALLS", "REMOTE_SEND_CALLS", "REMOTE_RECV_CALLS",
           "LOCAL_SEND_THROUGHPUT", "LOCAL_RECV_THROUGHPUT", "REMOTE_SEND_THROUGHPUT", "REMOTE_RECV_THROUGHPUT",
           "MIN_LATENCY", "MEAN_LATENCY", "P50_LATENCY", "P90_LATENCY", "P99_LATENCY", "MAX_LATENCY",
           "LOCAL_TRANSPORT_RETRANS", "REMOTE_TRANSPORT_RETRANS", "REQUEST_SIZE", "RESPONSE_SIZE", "THROUGHPUT_UNITS")
OURS = ("LOST_REQUESTS", "LATE_RESPONSES", "STRAY_RESPONSES", "LOST_DATAGRAMS", "UNIQUE_DATAGRAMS", "DUE_OPERATIONS",
        "SENT_OPERATIONS", "UNANSWERED_OPERATIONS", "ASKED_RATE", "SENT_RATE", "OUTAGE", "FLOWS", "FAILED_SENDS")


@dataclass
class End:
    """What the witness has seen at one end: sent and received data."""
    out: Course
    inn: Course
    marks: int = 0              # received empty datagrams, which mark the end of a test


@dataclass
class Seen:
    """The results of a case."""
    status: Optional[int]       # None: it had to be killed
    took: float
    text: str
    said: str                   # stderr
    figures: "Dict[str, str]"   # of -k
    interim: "List[Tuple[float, float]]"    # of -D: rate and seconds
    document: "Optional[Dict[str, Any]]"
    near: End
    far: End
    began: float = 0.0          # start of the command, seconds since 1970
    missed: int = 0             # packets that the witness lost
    full: int = 0               # datagrams lost in a full receive buffer
    late: float = 0.0           # s: the largest delay with which this program was woken
    waits: "List[Tuple[float, float]]" = field(default_factory=list)   # Waits.seen
    events: "List[Tuple[float, str]]" = field(default_factory=list)
    shows: "Dict[str, str]" = field(default_factory=dict)    # other outputs of the same run

    def kept(self, begin: float, end: float) -> float:
        """For how many seconds of an interval a thread of either end may have been waiting for a processor."""
        told = sum(min(seconds, at - begin) for at, seconds in self.waits if begin < at < end + 2 * Waits.EVERY)
        return min(max(0.0, end - begin), told)


class Waits:
    """Samples, ten times a second, for how long threads of both ends waited for a processor; the kernel reports a
    wait when it ends."""

    EVERY = 0.1

    def __init__(self, pids: "Callable[[], List[int]]") -> None:
        self.pids, self.over = pids, threading.Event()
        self.seen: "List[Tuple[float, float]]" = []     # when it was reported, and its duration
        self.thread = threading.Thread(target=self.watch)

    def watch(self) -> None:
        before: "Dict[int, float]" = {}
        while not self.over.wait(self.EVERY):
            now = {pid: lib.waited(pid) for pid in self.pids()}
            self.seen.append((time.time(), sum(max(0.0, waited - before.get(pid, 0.0)) for pid, waited in now.items())))
            before = now

    def __enter__(self) -> "Waits":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join()


def within(namespace: str, make: "Callable[[], Any]") -> Any:
    """Call make in a thread in that namespace, and return its result: sockets stay in the namespace."""
    got: "List[Any]" = []

    def enter() -> None:
        fd = os.open(namespace, os.O_RDONLY)
        try:
            if libc.setns(fd, NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "setns")
            got.append(make())
        finally:
            os.close(fd)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    if not got:
        raise RuntimeError(f"{namespace}: not entered")
    return got[0]


class Bed:
    """Created once; each case changes it."""

    def __init__(self, name: str) -> None:
        self.lab = netlab.Lab(name)
        self.path = netlab.Path()
        self.link = netlab.Link(rate=100_000_000, congestion="cubic", made_by="link")
        self.client, self.server = lib.in_lab(name, "client"), lib.in_lab(name, "server")
        self.daemons: "Dict[int, lib.Daemon]" = {}

    def __enter__(self) -> "Bed":
        self.stack = contextlib.ExitStack()
        self.lab.up(self.link)
        self.stack.callback(self.lab.down)
        try:
            for role in ("client", "server"):
                lib.must(["ip", "netns", "exec", self.lab.ns(role), "sysctl", "-qw",
                          "net.ipv6.conf.all.keep_addr_on_down=1", "net.ipv6.conf.lab0.keep_addr_on_down=1",
                          *(f"net.{name}frag_high_thresh={FRAGMENTS}" for name in ("ipv4.ip", "ipv6.ip6"))])
            self.rings = [within(self.lab.file(role), lambda: Ring("lab0")) for role in ("client", "server")]
            self.join_late()
            self.another(PORT, [])
        except BaseException:
            self.stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stack.close()

    def join_late(self) -> None:
        """Add a second link, for answers on the control connection that are to be late."""
        lib.must([netlab.link_program(), "run", f"device={LATE}", f"one={self.lab.file('client')}",
                  f"two={self.lab.file('server')}", f"control={LATE}", "rate=0"])
        for role in ("client", "server"):
            self.lab.ip(role, "link", "set", LATE, "up")
        lib.must([*self.client, "sysctl", "-qw", "net.ipv4.conf.all.rp_filter=0", f"net.ipv4.conf.{LATE}.rp_filter=0"])
        for family in ("-4", "-6"):
            self.lab.ip("server", family, "rule", "add", "fwmark", "1", "table", "99")
            self.lab.ip("server", family, "route", "add", "default", "dev", LATE, "table", "99")

    def nft(self, role: str, *rules: str) -> None:
        lib.must(["ip", "netns", "exec", self.lab.ns(role), "nft", "; ".join(
            ["add table inet laws", "delete table inet laws", "add table inet laws",
             "add chain inet laws pre { type filter hook prerouting priority -300; }",
             "add chain inet laws answers { type route hook output priority -150; }", *rules])])

    def set(self, case: Case) -> None:
        """Set up the path of a case."""
        self.tell(case)
        mute = f"add rule inet laws pre iifname lab0 tcp dport {PORTS} meta length > 100 drop"
        self.nft("server", *self.rules(case), *[mute] * case.mute)
        for role in ("client", "server"):
            self.lab.forget(role)

    @staticmethod
    def rules(case: Case) -> "List[str]":
        return [f"add rule inet laws answers tcp sport {PORTS} meta mark set 1"] if case.late else []

    def tell(self, case: Case, loss: "Optional[float]" = None) -> None:
        link = netlab.replace(self.link, rate=round(case.mbit * 1e6) or None, delay=case.delay / 1000,
                              loss=case.loss / 100 if loss is None else loss)
        self.lab.tell(self.path, "set", *link.words(self.path))
        late = netlab.replace(link, rate=None, delay=link.delay + case.late / 1000)
        lib.must([netlab.link_program(), "tell", self.lab.file("server"), f"control={LATE}", "set", *late.words()])

    def down(self, case: Case) -> None:
        if case.down == "silent":
            self.tell(case, 1.0)
        elif case.down == "link":
            self.lab.ip("client", "link", "set", "lab0", "down")
        elif case.down == "route":
            for family, host in HOSTS.items():
                self.lab.ip("client", f"-{family}", "route", "add", "unreachable", host)
        else:
            deaf = "add rule inet laws pre iifname lab0 drop"
            self.nft("server", *self.rules(case), deaf, *(["add rule inet laws answers oifname != lo drop"] * (case.down == "cut")))

    def up(self, case: Case) -> None:
        if case.down == "silent":
            self.tell(case)
        elif case.down == "link":
            self.lab.ip("client", "link", "set", "lab0", "up")
            self.lab.choose_congestion("client", self.path, self.link)
        elif case.down == "route":
            for family, host in HOSTS.items():
                self.lab.ip("client", f"-{family}", "route", "del", "unreachable", host)
        else:
            self.nft("server", *self.rules(case))

    def program(self, case: Case) -> "Tuple[str, int]":
        if case.real == "client":
            return str(lib.real_netperf() / "netperf"), PORT
        if case.real == "daemon":
            return lib.netperf(), self.another(REAL_PORT, [], str(lib.real_netperf() / "netserver"))
        return lib.netperf(), self.another(ONE_PORT, ["--one-port"]) if case.one_port else PORT

    def another(self, port: int, args: "List[str]", program: "Optional[str]" = None) -> int:
        """Start a daemon that few cases need; returns its port."""
        if port not in self.daemons:
            self.daemons[port] = self.stack.enter_context(lib.Daemon(self.server, args, port, None, program))
        return port

    def run(self, case: Case, limit: float) -> Seen:
        """Run a case; it is killed at the limit."""
        program, port = self.program(case)
        self.port = port
        self.set(case)
        with tempfile.TemporaryDirectory() as place:
            return self._run(case, limit, program, port, f"{place}/run.json")

    def _run(self, case: Case, limit: float, program: str, port: int, document: str) -> Seen:
        names = FIGURES if case.real == "client" else FIGURES + OURS
        host = "127.0.0.1" if case.unix else HOSTS[case.family]
        prefix = self.server if case.unix else self.client
        words = [*prefix, program, "-H", host, "-p", str(port), "-P", "0",
                 *([] if case.real == "client" else [f"--json={document}"]), *case.command(),
                 *([] if case.unix else ["-k", ",".join(names)])]
        if not case.unix and case.family == 6:
            words[words.index("--"):words.index("--")] = ["-6"]
        lib.watch_wakes()
        before = self.full()
        for ring in self.rings:
            ring.forget()
        since, began = time.monotonic(), time.time()
        events: "List[Tuple[float, str]]" = []
        unmute = threading.Timer(case.muted, lambda: self.nft("server", *self.rules(case)))
        if case.mute:
            unmute.start()
        with lib.Started(words) as command, Waits(lambda: [command.pid, *self.sessions()]) as waits:
            if case.disturbed:
                self.disturb(case, command, events)
            got = command.finish(max(0.1, limit - (time.monotonic() - since)))
        if case.mute:
            unmute.cancel()
            unmute.join()
        if case.down:
            with contextlib.suppress(Exception):
                self.up(case)
        if case.udp and not case.unix:
            time.sleep(case.delay / 1000)
            lib.settled(lambda: [ring.moved() for ring in self.rings], 5)
        (near, far), missed = self.read(case)
        stop(self.sessions(), signal.SIGKILL)
        made = self.made(document)
        said = dict(line.split("=", 1) for line in got.out.splitlines() if "=" in line)
        interim = [(float(said[f"NETPERF_INTERIM_RESULT[{n}]"]), float(said[f"NETPERF_INTERVAL[{n}]"])) for n in range(1000)
                   if f"NETPERF_ENDING[{n}]" in said]
        return Seen(got.rc, got.seconds, got.out, got.err, {k: v for k, v in said.items() if "[" not in k}, interim, made, near, far, began, missed,
                    self.full() - before, lib.late_since(since), waits.seen, events, self.shows(made) if made else {})

    def sessions(self) -> "List[int]":
        return [pid for daemon in self.daemons.values() for pid in lib.children(daemon.pid)]

    def disturb(self, case: Case, command: lib.Started, events: "List[Tuple[float, str]]") -> None:
        """Disturb the running test as the case says."""
        moving = lib.wait_for(lambda: not command.running() or self.has_begun(case), 30)
        if not moving or not command.running():
            return
        time.sleep(case.warm + min(FIRST + case.rtt, 0.7 * case.length if case.frozen == "signal" else 9e9))
        what = case.frozen or case.down
        events.append((time.time(), what))
        if case.frozen == "signal":
            stop([command.pid], signal.SIGINT)
        elif case.frozen:
            pids = [command.pid] if case.frozen == "near" else self.sessions()
            stop(pids, signal.SIGSTOP)
            time.sleep(case.frozen_s)
            stop(pids, signal.SIGCONT)
        else:
            self.down(case)
            if case.down in ("cut", "deaf"):
                return
            time.sleep(case.down_s)
            self.up(case)
        events.append((time.time(), "over"))

    def has_begun(self, case: Case) -> bool:
        """Whether data has been sent, or in TCP_CC connections made."""
        time.sleep(0.03)
        if case.test.endswith("_CC"):
            return len(connections(self.rings[0].packets()[0], self.port, case.one_port)) > 0
        return case.unix or any(len(course.at) for end in self.read(case)[0] for course in (end.out, end.inn))

    def read(self, case: Case) -> "Tuple[List[End], int]":
        """What both interfaces have carried, and how many packets the witness lost."""
        (near, lost), (far, missed) = (ring.packets() for ring in self.rings)
        mine = connections(near, self.port, case.one_port)
        ends = [some.where(np.isin(keys(some, is_near), mine)) for some, is_near in ((near, True), (far, False))]
        return [End(course(some.where(some.out)), course(some.where(~some.out)),
                    int((~some.out & (some.protocol == UDP) & (some.payload == 0)).sum())) for some in ends], lost + missed

    def full(self) -> int:
        """Datagrams lost in full receive buffers at both ends."""
        return sum(lib.snmp(["ip", "netns", "exec", self.lab.ns(role)], "UdpRcvbufErrors", "Udp6RcvbufErrors")
                   for role in ("client", "server"))

    @staticmethod
    def made(document: str) -> "Optional[Dict[str, Any]]":
        try:
            return lib.document(Path(document).read_text())
        except (OSError, ValueError):
            return None

    @staticmethod
    def shows(document: "Dict[str, Any]") -> "Dict[str, str]":
        return {"prometheus": shown.prometheus([document]), "human": shown.table(document) if document.get("final") else "",
                "csv": shown.rows_of([document], ",".join(FIGURES + OURS)).partition("\n")[2]}


def stop(pids: "List[int]", number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
