#!/usr/bin/env python3
"""The wire ledger against what others have counted of the same packets: the kernel's filter (nft), its
interfaces (ip -s link), a capture of our own at either end (tcpdump, read here packet by packet), and
tshark on the file that --wire=pcap:FILE writes. On links that are clean, lose, double or reorder, with
super-packets and without, where the kernel puts segments together, and over both families. Nothing is
judged by time. Needs root, tcpdump and nft, for scripts/netlab; some minutes. tshark if there is one.

    wire_bed.py [LINK...]     these links alone
"""

import collections
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import struct
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import lib
import netns

NAME = f"wb{os.getpid()}"
FIN, SYN, RST = 1, 2, 4
TCP, UDP = 6, 17
WAYS = ("out", "in")
SETTLE = 40             # looks at the interfaces, of 50 ms, until nothing moves any more
ATTEMPTS = 4
# what tshark calls segments below the highest: a byte that is sent again is a keep-alive to it
ANALYSIS = ("retransmission", "fast_retransmission", "spurious_retransmission", "out_of_order", "keep_alive")
SPARSE = 0.05           # share by which a tap alone may be wrong where packets carry no order (IPv6)


# --- links ---------------------------------------------------------------------------------

class End(NamedTuple):
    prefix: "list[str]"
    device: str


class Link(lib.Lab):
    """A lab of netlab's; `near` is where netperf runs, `hosts` are the daemon's addresses."""

    hosts = {4: netns.IPV4, 6: netns.IPV6}

    def __init__(self, *args: str) -> None:
        super().__init__(NAME, *netns.CUBIC, *args)
        self.near, self.far = End(self.client, "lab0"), End(self.server, "lab0")

    def __enter__(self) -> "Link":
        super().__enter__()
        try:
            self.change()
        except BaseException:
            self.__exit__()
            raise
        return self

    def change(self) -> None:
        """What makes it another link than netlab's."""


class SuperPackets(Link):
    """Nothing between the ends cuts what TCP hands down."""

    def change(self) -> None:
        for end in (self.client, self.server):
            lib.must([*end, "tc", "qdisc", "del", "dev", "lab0", "root"])
            lib.must([*end, "ip", "link", "set", "lab0", "gso_max_segs", "64", "gso_max_size", "65536"])
            lib.must([*end, "ethtool", "-K", "lab0", "tso", "on", "gso", "on", "gro", "on"])


class PutTogether(Link):
    """Behind a link that does everything wrong a router, and an end that puts segments together."""

    hosts = {4: "10.78.0.2", 6: "fd78::2"}
    end = f"netlab-{NAME}-behind"

    def __init__(self, *args: str) -> None:
        super().__init__(*args)
        self.far = End(["ip", "netns", "exec", self.end], "e0")

    def change(self) -> None:
        server = f"netlab-{NAME}-server"
        lib.ip(f"netns add {self.end}", f"-n {server} link add r0 type veth peer name e0 netns {self.end}")
        router, behind = self.server, self.far.prefix
        lib.must([*router, "sysctl", "-q", "-w", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1"])
        for space, end, device, number in ((server, router, "r0", 1), (self.end, behind, "e0", 2)):
            lib.ip(*(f"-n {space} {words}" for words in (
                f"addr add 10.78.0.{number}/24 dev {device}", f"addr add fd78::{number}/64 dev {device} nodad",
                f"link set {device} up")))
            # a veth device puts together what its peer can't send in super-packets
            tso = "off" if device == "r0" else "on"
            lib.must([*end, "ethtool", "-K", device, "gro", "on", "tso", tso, "gso", "on"])
        # what comes within two milliseconds is put together, where this kernel can
        lib.run([*behind, "sh", "-c", "cd /sys/class/net/e0 && echo 10 > napi_defer_hard_irqs && "
                                      "echo 2000000 > gro_flush_timeout"], 20)
        near = f"netlab-{NAME}-client"
        lib.ip(f"-n {self.end} link set lo up")
        for space, version, to, via in ((self.end, "-4", "default", "10.78.0.1"), (self.end, "-6", "default", "fd78::1"),
                                        (near, "-4", "10.78.0.0/24", netns.IPV4), (near, "-6", "fd78::/64", netns.IPV6)):
            lib.ip(f"-n {space} {version} route add {to} via {via} congctl cubic")

    def __exit__(self, *_: object) -> None:
        lib.run(["ip", "netns", "delete", self.end], 20)
        super().__exit__()


LINE = ("--rate", "100mbit", "--emulator", "link")
BAD = ("--loss", "0.5", "--duplicate", "2", "--reorder", "2")
LINKS: "Dict[str, Callable[[], Link]]" = {
    "veth": lambda: Link("--rate", "100mbit"),
    "super-packets": lambda: SuperPackets("--rate", "100mbit"),
    "clean": lambda: Link(*LINE, "--delay", "1ms"),
    "lossy": lambda: Link(*LINE, "--loss", "1"),
    "doubling": lambda: Link(*LINE, "--duplicate", "3"),
    "reordering": lambda: Link(*LINE, "--reorder", "3"),
    "all": lambda: Link(*LINE, *BAD),
    "all, with a delay": lambda: Link(*LINE, *BAD, "--delay", "10ms", "--jitter", "2ms"),
    "all, put together": lambda: PutTogether(*LINE, *BAD),
}


# --- packets -------------------------------------------------------------------------------

class Packet(NamedTuple):
    at_ns: int
    size: int                   # on the link
    source: bytes
    protocol: int
    ports: "Optional[Tuple[int, int]]"  # None: of a fragment that is not the first
    is_piece: bool
    seq: int
    flags: int
    payload: int


def ip_header(packet: bytes) -> "Optional[Tuple[bytes, int, int, bool, bool, int]]":
    """Source, protocol, bytes before it, is it a fragment, the first one (or whole), bytes in all."""
    version = packet[0] >> 4 if packet else 0
    if version == 4:
        piece, = struct.unpack_from("!H", packet, 6)
        return (packet[12:16], packet[9], (packet[0] & 15) * 4, bool(piece & 0x3fff), not piece & 0x1fff,
                struct.unpack_from("!H", packet, 2)[0])
    if version == 6:
        total = struct.unpack_from("!H", packet, 4)[0] + 40
        if packet[6] != socket.IPPROTO_FRAGMENT:
            return packet[8:24], packet[6], 40, False, True, total
        return (packet[8:24], packet[40], 48, True, not struct.unpack_from("!H", packet, 42)[0] & ~7,
                total)
    return None


def understand(at_ns: int, size: int, link: int, packet: bytes) -> Packet:
    """What is neither TCP nor UDP has the protocol 0."""
    got = ip_header(packet)
    if got is None or got[1] not in (TCP, UDP):
        return Packet(at_ns, size, b"", 0, None, False, 0, 0, 0)
    source, protocol, at, is_piece, first, total = got
    if not first:
        return Packet(at_ns, size, source, protocol, None, True, 0, 0, total - at)
    ports = struct.unpack_from("!HH", packet, at)
    if protocol == UDP:
        return Packet(at_ns, size, source, UDP, ports, is_piece, 0, 0, total - at - 8)
    seq, = struct.unpack_from("!I", packet, at + 4)
    return Packet(at_ns, size, source, TCP, ports, is_piece, seq, packet[at + 13],
                  (total or size - link) - at - (packet[at + 12] >> 4) * 4)


def read(path: Path) -> "List[Packet]":
    data = path.read_bytes()
    magic, kind = struct.unpack_from("=I16xI", data)
    assert magic in (0xa1b23c4d, 0xa1b2c3d4), f"{path} begins with {data[:4]!r}"
    unit, link = (1 if magic == 0xa1b23c4d else 1000), {1: 14, 12: 0, 101: 0}[kind]
    found, at = [], 24
    while at + 16 <= len(data):
        s, part, captured, size = struct.unpack_from("=IIII", data, at)
        at += 16
        found.append(understand(s * 1000000000 + part * unit, size, link, data[at + link:at + captured]))
        at += captured
    return found


class Count(NamedTuple):
    """What the packets of one direction come to."""
    packets: int
    size: int
    syn: int
    fin: int
    rst: int
    pieces: int
    payload: int
    again: int                  # bytes of TCP that were sent, or came, below the highest


def count(packets: "Sequence[Packet]") -> Count:
    top: Optional[int] = None
    again = 0
    for p in packets:
        if p.protocol == TCP and p.payload > 0:
            behind = 0 if top is None else (top - p.seq + 0x80000000) % 0x100000000 - 0x80000000
            again += max(0, min(behind, p.payload))
            top = (p.seq + p.payload) % 0x100000000 if top is None or behind < p.payload else top
    return Count(len(packets), sum(p.size for p in packets), *(
        sum(1 for p in packets if p.flags & flag) for flag in (SYN, FIN, RST)),
        sum(p.is_piece for p in packets), sum(p.payload for p in packets), again)


# --- witnesses -----------------------------------------------------------------------------

class Counters:
    """What the kernel counts at one end: its filter the packets of the test, its interface all."""

    def __init__(self, end: End, control: int, is_near: bool) -> None:
        self.end, self.control = end, control
        self.ours, self.theirs = ("dport", "sport") if is_near else ("sport", "dport")

    def begin(self) -> None:
        device = self.end.device
        script = ["add table inet bed", "delete table inet bed", "add table inet bed",
                  "add chain inet bed in { type filter hook prerouting priority -450; }",
                  "add chain inet bed out { type filter hook postrouting priority 350; }",
                  f"add rule inet bed in iifname {device} tcp {self.theirs} {self.control} return",
                  f"add rule inet bed in iifname {device} meta l4proto {{ tcp, udp }} counter",
                  f"add rule inet bed out oifname {device} tcp {self.ours} {self.control} return",
                  f"add rule inet bed out oifname {device} meta l4proto {{ tcp, udp }} counter"]
        lib.must([*self.end.prefix, "nft", "; ".join(script)])
        self.before = self._still()

    def end_now(self) -> None:
        """Once nothing moves any more."""
        self.after = now = self._still()
        self.filtered = {way: self._filtered(way) for way in WAYS}
        self.moved = {way: {name: now[way][name] - self.before[way][name] for name in ("packets", "bytes")}
                      for way in WAYS}

    def _filtered(self, chain: str) -> int:
        got = lib.run([*self.end.prefix, "nft", "list", "chain", "inet", "bed", chain], 20)
        found = re.search(r"counter packets (\d+)", got.out)
        assert found, got
        return int(found[1])

    def link(self) -> "Dict[str, Dict[str, int]]":
        got = lib.run([*self.end.prefix, "ip", "-s", "-j", "link", "show", self.end.device], 20)
        stats = json.loads(got.out)[0]["stats64"]
        return {way: stats[name] for way, name in (("out", "tx"), ("in", "rx"))}

    def _still(self) -> "Dict[str, Dict[str, int]]":
        looks = [self.link()]
        while len(looks) < SETTLE and not (len(looks) > 3 and looks[-1] == looks[-2] == looks[-3]):
            time.sleep(0.05)
            looks.append(self.link())
        return looks[-1]


class Witness(Counters):
    """One end, from before a test until nothing moves any more: what a capture of ours has, too."""

    def __init__(self, end: End, place: Path, control: int, is_near: bool) -> None:
        super().__init__(end, control, is_near)
        self.path, self.lost, self.steady = place, 0, False
        self.packets: "List[Packet]" = []

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        self.begin()
        command = [*self.end.prefix, "tcpdump", "-i", self.end.device, "-s", "128", "-B", "32768",
                   "--immediate-mode", "--time-stamp-precision=nano", "-U", "-w", str(self.path), "-Z", "root"]
        with tempfile.TemporaryFile("w+") as err, lib.Started(command, stderr=err) as dump:
            def said() -> str:
                return os.pread(err.fileno(), 1 << 16, 0).decode(errors="replace")

            assert lib.wait_for(lambda: "listening on" in said(), 20), said()
            steady = self.link() == self.before
            yield
            self.end_now()
            dump.signal(signal.SIGINT)
            dump.finish(20)
            self.steady = steady and self.link() == self.after
            dropped = re.search(r"(\d+) packets dropped by kernel", said())
            self.lost = int(dropped[1]) if dropped else 0
        self.packets = read(self.path)

    def flow(self, way: str, protocol: int, source: bytes) -> "List[Packet]":
        """Those of the test: the control connection is TCP's of the daemon's port."""
        return [p for p in self.packets if p.protocol == protocol and (p.source == source) == (way == "out")
                and not (p.protocol == TCP and p.ports and self.control in p.ports)]


# --- one test ------------------------------------------------------------------------------

class Test(NamedTuple):
    name: str
    how: "tuple[str, ...]"
    more: "tuple[str, ...]" = ()

    @property
    def protocol(self) -> int:
        return TCP if self.name.startswith("TCP") else UDP

    def __str__(self) -> str:
        return self.name if self.protocol == TCP else " ".join((self.name, *self.more[:2]))


PACED = ("-l", "1", "-b", "2", "-w", "2ms")
TESTS = (
    Test("TCP_STREAM", ("-l", "-4000000")),
    Test("TCP_MAERTS", ("-l", "-4000000")),
    Test("TCP_RR", ("-l", "-500")),
    Test("UDP_STREAM", PACED, ("-m", "1000", "-R", "1")),
    Test("UDP_STREAM", PACED, ("-m", "4000", "-R", "1")),
    Test("UDP_RR", ("-l", "-200"), ("-r", "3000,2000")),
)


class Taken(NamedTuple):
    test: Test
    near: Witness
    far: Witness
    evidence: "Dict[str, Dict[str, Any]]"
    explanation: "Dict[str, Any]"
    file: "List[Packet]"
    text: str


def take_steadily(link: Link, port: int, test: Test, family: int, place: Path) -> Taken:
    """Again where something went by, of neighbours or routers, that a witness alone can have seen."""
    for _ in range(ATTEMPTS):
        taken = take(link, port, test, family, place)
        if taken.near.steady and taken.far.steady:
            return taken
    raise lib.Skipped("the link was never quiet")


def take(link: Link, port: int, test: Test, family: int, place: Path) -> Taken:
    near = Witness(link.near, place / "near.pcap", port, True)
    far = Witness(link.far, place / "far.pcap", port, False)
    document, file = place / "run.json", place / "wire.pcap"
    with near.watching(), far.watching():
        got = lib.run([*link.near.prefix, lib.netperf(), "-H", link.hosts[family], "-p", str(port),
                       "-t", test.name, *test.how, "-P", "0", "--explain", f"--wire=pcap:{file}",
                       f"--json={document}", "--", *test.more], 120)
        assert got.rc == 0, got.err
    made = lib.document(document.read_text())
    last = made["iterations"][-1]
    if near.lost or far.lost or any(last[end].get("wire.dropped") for end in ("near", "far")):
        raise lib.Skipped("a capture lost packets")
    return Taken(test, near, far, {end: last[end] for end in ("near", "far")},
                 made["explanation"]["values"], read(file), got.err)


def same(what: str, found: float, expected: float, why: str = "") -> None:
    assert found == expected, f"{what}: the ledger has {found:.0f}, {why or 'not'} {expected:.0f}"


def later_ones(taken: Taken, way: str, packets: "List[Packet]", source: bytes) -> int:
    """Packets of the near end that no ledger has: the file that goes with it has all that came before
    them. Two captures need not agree on a packet's time."""
    have = [key(p) for p in taken.file if (p.source == source) == (way == "out")]
    early = collections.Counter(key(p) for p in packets[:len(have)])
    early.subtract(have)
    wrong = [(k, n) for k, n in early.items() if n]
    assert not wrong, f"{way}: packets that are in one of ledger's file and capture alone: {wrong[:3]}"
    return len(packets) - len(have)


def key(p: Packet) -> "Tuple[Any, ...]":
    return (p.size, p.ports, p.seq, p.flags, p.payload, p.is_piece)


class Judged(NamedTuple):
    said: str
    late: int                   # packets that went by when the capture of the ledger had ended


def judge_way(taken: Taken, name: str, way: str, source: bytes) -> Judged:
    """The ledger of one end and direction, against all witnesses there."""
    witness = taken.near if name == "near" else taken.far
    ledger = taken.evidence[name]
    packets = witness.flow(way, taken.test.protocol, source)
    seen = count(packets)
    have = ledger[f"wire.{way}.packets"] + ledger[f"wire.{way}.fragments_orphaned"]
    late = seen.packets - have
    what = f"{name} {way}"
    everything = [p for p in witness.packets if (p.source == source) == (way == "out")]
    assert late >= 0, f"{what}: {have} packets in the ledger, {seen.packets} in a capture"
    if name == "near":
        same(f"{what}, packets", have, seen.packets - later_ones(taken, way, packets, source), "tcpdump")
    if late and taken.test.protocol == TCP:
        assert ledger["wire.open_at_end"] == 1, f"{what}: {late} packets more, and no word: {taken.text}"
        assert "the capture ended with the test" in taken.text, taken.text
    if way == "in" or not seen.pieces:  # what goes out is cut into pieces behind the filter
        same(f"{what}, nft", have, witness.filtered[way] - late, "nft")
    if not any(p.protocol == 0 for p in witness.packets):
        same(f"{what}, ip -s link", have + len(everything) - seen.packets,
             witness.moved[way]["packets"] - late, "the interface")
    if late == 0:
        same(f"{what}, bytes", ledger[f"wire.{way}.bytes.seen"] + ledger[f"wire.{way}.bytes.orphaned"],
             seen.size, "tcpdump")
        judge_figures(ledger, way, what, seen, taken.test.protocol)
    return Judged(f"{what} {have:.0f}" + (f" and {late} later" if late else ""), late)


def judge_figures(ledger: "Dict[str, Any]", way: str, what: str, seen: Count, protocol: int) -> None:
    same(f"{what}, fragments", ledger[f"wire.{way}.fragments"] + ledger[f"wire.{way}.fragments_orphaned"],
         seen.pieces, "tcpdump")
    if not ledger[f"wire.{way}.fragments_orphaned"]:
        same(f"{what}, payload", ledger[f"wire.{way}.bytes.payload"], seen.payload, "tcpdump")
    if protocol == TCP:
        for flag in ("syn", "fin", "rst"):
            same(f"{what}, {flag}", ledger[f"wire.{way}.{flag}"], getattr(seen, flag), "tcpdump")
    if protocol == TCP and way == "out":
        same(f"{what}, sent again", ledger["wire.out.retransmitted_bytes"], seen.again, "tcpdump")


def judge_both(taken: Taken, family: int, late: "Dict[str, int]") -> str:
    """What the two taps say of each other. late: of each direction, at its sender."""
    said = []
    for way in WAYS:
        values = {key[len(f"wire.way.{way}."):]: value for key, value in taken.explanation.items()
                  if key.startswith(f"wire.way.{way}.")}
        if "mistaken" not in values:
            continue
        sender, receiver = (("near", "far") if way == "out" else ("far", "near"))
        back = taken.evidence[receiver]
        uncertain = 0 if family == 4 else 2 + SPARSE * (back["wire.in.reordered"] + back["wire.in.duplicated"])
        assert values["mistaken"] <= uncertain + late[way], f"{way}: {values}: {taken.text}"
        assert values["sent_again"] == taken.evidence[sender]["wire.out.retransmitted_segments"]
        said.append(f"{way} " + ", ".join(f"{n} {key}" for key, n in values.items() if n))
    return "; ".join(word for word in said if " " in word.strip())


def by_tshark(taken: Taken, file: Path, client: str) -> None:
    """Its own reading of the file: frames, bytes, payload, and what it finds wrong with sequences."""
    if not shutil.which("tshark"):
        return
    fields = ("frame.len", "tcp.len", "ip.src", "ipv6.src", *(f"tcp.analysis.{what}" for what in ANALYSIS))
    got = lib.run(["tshark", "-n", "-r", str(file), "-T", "fields", *(
        word for field in fields for word in ("-e", field))], 60)
    rows = [line.split("\t") for line in got.out.splitlines()]
    near = taken.evidence["near"]
    orphans = sum(near[f"wire.{way}.fragments_orphaned"] for way in WAYS)
    same("tshark, packets", near["wire.captured"] + orphans, len(rows), "tshark")
    same("tshark, bytes", sum(near[f"wire.{way}.bytes.{kind}"] for way in WAYS for kind in ("seen", "orphaned")),
         sum(int(row[0]) for row in rows), "tshark")
    if taken.test.protocol != TCP:
        return
    same("tshark, payload", sum(near[f"wire.{way}.bytes.payload"] for way in WAYS),
         sum(int(row[1] or 0) for row in rows), "tshark")
    for way in WAYS:
        found = sum(1 for row in rows if int(row[1] or 0) > 0 and (client in row[2:4]) == (way == "out")
                    and any(row[4:]))
        if not near[f"wire.{way}.super_packets"]:
            judge_analysis(near, way, found)


def judge_analysis(near: "Dict[str, Any]", way: str, found: int) -> None:
    """It finds the segments below the highest, and guesses what they are: of what goes out all were sent
    again. Of what comes in those are known that are not an original behind its retransmission."""
    told = sum(near[f"wire.{way}.{what}"] for what in ("retransmitted_segments", "reordered", "doubled"))
    most = told + near["wire.in.duplicated"] if way == "in" else told
    assert told <= found <= most, f"{way}: {found} of tshark's are below the highest, of the ledger's {told} to {most}"


def case(link: Link, port: int, test: Test, family: int) -> str:
    addresses = {4: netns.IPV4.rpartition(".")[0] + ".1", 6: "fd77::1"}
    kind = socket.AF_INET if family == 4 else socket.AF_INET6
    client, server = (socket.inet_pton(kind, host) for host in (addresses[family], link.hosts[family]))
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        taken = take_steadily(link, port, test, family, place)
        judged = {(end, way): judge_way(taken, end, way, client if end == "near" else server)
                  for end in ("near", "far") for way in WAYS}
        by_tshark(taken, place / "wire.pcap", addresses[family])
        both = judge_both(taken, family, {"out": judged["near", "out"].late, "in": judged["far", "out"].late})
    return ", ".join(one.said for one in judged.values()) + (f"; {both}" if both else "")


def suite(report: lib.Report) -> None:
    obstacle = lib.no_line()
    missing = [program for program in ("tcpdump", "nft", "ethtool") if not shutil.which(program)]
    if obstacle or missing:
        lib.skip(obstacle or f"no {', '.join(missing)}")
    wanted = [name for name in LINKS if not sys.argv[1:] or name in sys.argv[1:]]
    for name in wanted:
        with LINKS[name]() as link, lib.Daemon(link.far.prefix, ["--allow-raw"]) as daemon:
            for family in (4, 6):
                for test in TESTS:
                    report.case(f"{name}: {test}, IPv{family}", partial(case, link, daemon.port, test, family))


if __name__ == "__main__":
    lib.main(suite)
