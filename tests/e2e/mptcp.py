#!/usr/bin/env python3
"""MPTCP in a lab with two paths: both are used, according to the interfaces' counters; the daemon rejects connections
from other hosts; fallback to TCP in both directions, and hosts without MPTCP. Needs root, and a kernel with MPTCP
(net.mptcp.enabled)."""

import json
import os
import re
import signal
import tempfile
import time
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Sequence

import lib

NAME = f"mptcp{os.getpid()}"
PATHS = ("10.77.0", "10.77.1")          # networks; .1 is the client's address, .2 the daemon's
STRANGER = "10.78.3"
HOST = f"{PATHS[0]}.2"
RATE = "40mbit"                         # of each path: slower than any machine here
BYTES = 4_000_000                       # per second, on both paths together
PROTOCOL = 262                          # IPPROTO_MPTCP
LEAST_SHARE = 0.2                       # of the bytes on the wire that each path must carry
# Headers are 76 of 1500 bytes in a full packet. Not all packets are full, and what one path does not deliver in time
# is sent on the other, too.
# across in time goes over the other, too.
MOST_BESIDE = 1.3

Document = Dict[str, Any]


def why_not() -> str:
    """Why this machine or user can't run this; empty if it can."""
    try:
        if Path("/proc/sys/net/mptcp/enabled").read_text().strip() != "1":
            return "net.mptcp.enabled is 0"
    except OSError:
        return "this kernel has no MPTCP (net.mptcp.enabled is missing)"
    if lib.run(["ip", "mptcp", "endpoint", "show"], timeout=10).rc != 0:
        return "no 'ip mptcp' (iproute2), or not permitted"
    if os.geteuid() != 0:
        return "not root"
    # Not lib.no_lab(): a guest of netvm has another unshare.
    probe = f"{NAME}-probe"
    tries = (["ip", "netns", "add", probe],
             ["tc", "-n", probe, "qdisc", "add", "dev", "lo", "root", "tbf", "rate", RATE, "burst", "10000", "limit", "30000"])
    faults = [got.err.strip() for got in (lib.run(command, timeout=10) for command in tries) if got.rc != 0]
    lib.run(["ip", "netns", "del", probe], timeout=20)
    return f"no namespaces with a tbf queue: {faults[0]}" if faults else ""


class Bed(lib.Net):
    """A lab with two paths between client and daemon, and a third host with another path to the daemon."""

    names = [f"{NAME}-stranger"]
    client, server = (lib.in_lab(NAME, role) for role in ("client", "server"))
    stranger = ["ip", "netns", "exec", *names]

    def make(self) -> None:
        lib.must([lib.NETLAB, "up", "--name", NAME, "--paths", str(len(PATHS)), "--rate", RATE])
        lib.ip(f"link add away netns {self.names[0]} type veth peer name away netns netlab-{NAME}-server")
        for number, name in enumerate((self.names[0], f"netlab-{NAME}-server"), 1):
            lib.ip(f"-n {name} addr add {STRANGER}.{number}/24 dev away", f"-n {name} link set away up")
        lib.ip(f"-n {self.names[0]} route add {PATHS[0]}.0/24 via {STRANGER}.2")

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        lib.must([lib.NETLAB, "down", "--name", NAME])

    def sent(self, role: str) -> List[int]:
        """Bytes sent by an end on each path, from its interfaces."""
        links = json.loads(lib.run([*getattr(self, role), "ip", "-s", "-j", "link"], timeout=20).out)
        of = {link["ifname"]: link["stats64"]["tx"]["bytes"] for link in links}
        return [of[f"lab{number}"] for number in range(len(PATHS))]

    def strip(self, role: str) -> None:
        """Act as a middlebox in front of an end that removes MPTCP's option from SYNs."""
        script = ("add table inet strip; "
                  "add chain inet strip pre { type filter hook prerouting priority -300; }; "
                  "add rule inet strip pre tcp flags syn reset tcp option mptcp")
        got = lib.run([*getattr(self, role), "nft", script], timeout=20)
        if got.rc != 0:
            raise lib.Skipped(f"nft cannot take options away: {got.err.strip().splitlines()[0]}")

    def heal(self, role: str) -> None:
        lib.must([*getattr(self, role), "nft", "add table inet strip; delete table inet strip"])


class Run(NamedTuple):
    got: lib.Result
    document: Document  # empty if there is none

    def near(self) -> Document:
        return self.document["iterations"][0]["near"]

    def far(self) -> Document:
        return self.document["iterations"][0]["far"]

    def metric(self, name: str) -> Any:
        return self.document["final"][name]


def run(bed: Bed, port: int, test: str, *options: str, specific: Sequence[str] = ()) -> Run:
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "run.json"
        got = lib.run([*bed.client, lib.netperf(), "-H", HOST, "-p", str(port), "-t", test, "-P", "0",
                       f"--json={file}", *options, "--", *specific], timeout=30)
        return Run(got, lib.document(file.read_text()) if got.rc == 0 else {})


def good(ran: Run) -> Run:
    assert ran.got.rc == 0, f"status {ran.got.rc}: {ran.got.err.strip()}"
    assert not ran.got.err.strip(), f"on stderr: {ran.got.err.strip()}"
    return ran


def counts_agree(ran: Run) -> int:
    """Each end has received what the other has sent; returns the bytes of both directions."""
    near, far = ran.near(), ran.far()
    for here, there in ((near, far), (far, near)):
        sent, received = here["flow.bytes_sent"], there["flow.bytes_received"]
        assert sent == received, f"{sent} bytes sent, {received} received"
    return int(near["flow.bytes_sent"] + near["flow.bytes_received"])


def subflows(side: Document, what: str) -> List[int]:
    return [int(side[f"mptcp.{n}.{what}"]) for n in range(side["mptcp.subflows"])]


# --- two paths ----------------------------------------------------------------------------

def both_paths(bed: Bed, port: int, test: str) -> str:
    """The bytes of the subflows, of the interfaces and of the test agree."""
    sender = "client" if test == "MPTCP_STREAM" else "server"
    before = bed.sent(sender)
    ran = good(run(bed, port, test, "-l", f"-{BYTES}"))
    wire = [after - past for past, after in zip(before, bed.sent(sender))]
    receiver = ran.far() if sender == "client" else ran.near()
    moved = counts_agree(ran)  # whole messages
    assert ran.metric("PROTOCOL_DETAIL") == "2 subflows", ran.metric("PROTOCOL_DETAIL")
    assert min(wire) > LEAST_SHARE * sum(wire), f"on the two paths: {wire}"
    assert moved < sum(wire) < MOST_BESIDE * moved, f"{moved} bytes, {wire} on the two paths"
    each = subflows(receiver, "bytes_received")
    # A subflow's FIN counts as a byte.
    assert moved <= sum(each) < MOST_BESIDE * moved, f"{moved} bytes, {each} by subflow"
    paths = {(receiver[f"mptcp.{n}.near"].split()[0], receiver[f"mptcp.{n}.far"].split()[0]) for n in (0, 1)}
    ends = {(HOST, f"{PATHS[0]}.1"), (HOST, f"{PATHS[1]}.1")}
    assert paths == (ends if sender == "client" else {pair[::-1] for pair in ends}), paths
    for n, own in enumerate(each):
        on = PATHS.index(next(net for net in PATHS if receiver[f"mptcp.{n}.{'far' if sender == 'client' else 'near'}"]
                              .startswith(net + ".")))
        assert own < wire[on] < MOST_BESIDE * own, f"subflow {n}: {own} bytes, path {on}: {wire[on]}"
    return f"{wire[0]} and {wire[1]} bytes on the wires"


def as_if_joined(detail: str) -> str:
    """On a busy machine, a short test may end before each connection has its second subflow."""
    found = re.match(r"(\d+) subflows?( of (\d+) connections)?$", detail)
    if found is None:
        return detail
    connections = int(found[3] or 1)
    assert connections <= int(found[1]) <= 2 * connections, detail
    return f"{2 * connections} subflows{found[2] or ''}"


def counted(bed: Bed, port: int, test: str, options: Sequence[str], specific: Sequence[str], detail: str) -> str:
    """Other tests and options: both ends count the same."""
    ran = run(bed, port, test, *options, specific=specific)
    if ran.got.rc == 1 and "set TCP_MAXSEG" in ran.got.err:
        raise lib.Skipped(ran.got.err.strip())  # Linux before 6.17
    good(ran)
    moved = counts_agree(ran)
    assert moved > 0, "nothing moved"
    assert ran.metric("PROTOCOL") == "MPTCP", ran.metric("PROTOCOL")
    assert as_if_joined(ran.metric("PROTOCOL_DETAIL") or "") == detail, ran.metric("PROTOCOL_DETAIL")
    assert not [name for name in ran.near() if name.startswith("tcp.")], "TCP_INFO of one subflow as if of all"
    return f"{moved} bytes"


# By bytes or transactions, which both ends count exactly.
STREAM, TURNS = ("-l", "-1000000"), ("-l", "-300")
COUNTED = (
    ("MPTCP_RR", TURNS, (), "2 subflows"),
    ("MPTCP_CRR", TURNS, (), ""),
    ("OMNI", STREAM, ("-T", "mptcp"), "2 subflows"),
    ("TCP_RR", TURNS, ("-T", "mptcp"), "2 subflows"),
    ("MPTCP_STREAM", (*STREAM, "--engine", "epoll,epoll"), (), "2 subflows"),
    ("MPTCP_MAERTS", (*STREAM, "--engine", "epoll,epoll"), (), "2 subflows"),
    ("MPTCP_CRR", (*TURNS, "--engine", "epoll,epoll"), (), ""),
    ("MPTCP_STREAM", (*STREAM, "--engine", "spin,spin"), (), "2 subflows"),
    ("MPTCP_RR", (*TURNS, "--engine", "spin,spin"), (), "2 subflows"),
    ("MPTCP_STREAM", (*STREAM, "--engine", "uring,uring"), (), "2 subflows"),
    ("MPTCP_RR", (*TURNS, "--engine", "uring,uring"), (), "2 subflows"),
    ("MPTCP_STREAM", (*STREAM, "--flows", "4"), (), "8 subflows of 4 connections"),
    ("MPTCP_RR", (*TURNS, "--flows", "3", "--threads", "2,2"), (), "6 subflows of 3 connections"),
    ("MPTCP_STREAM", STREAM, ("-V",), "2 subflows"),             # splice(2)
    ("MPTCP_STREAM", STREAM, ("-D", "-C", "-G", "1000", "-K", "reno"), "2 subflows"),
    ("MPTCP_STREAM", STREAM, ("-s", "200K", "-S", "200K", "-m", "1000"), "2 subflows"),
)


def refused(bed: Bed, port: int, options: Sequence[str], says: str) -> None:
    ran = run(bed, port, "MPTCP_STREAM", "-l", "1", *options)
    assert ran.got.rc == 1, f"status {ran.got.rc}"
    lib.error_line(ran.got, "netperf", says)


def an_outage(bed: Bed, port: int, paths: int) -> str:
    """One path is down for a second, and the other one carries its data after a few time-outs at the latest; or both
    are down.

    The client is stopped in the middle: what it did not see make progress is one outage. If this test itself is held
    up, it tries again."""
    rules = [f"iifname lab{path} drop" for path in range(paths)]
    for _ in range(4):
        with lib.Started([*bed.client, lib.netperf(), "-H", HOST, "-p", str(port), "-t", "MPTCP_STREAM", "-l", "4", "--rate", "10M",
                          "--json"]) as client:
            assert client.measuring(), client.said()
            begun = time.monotonic()
            time.sleep(0.5)
            with lib.Filter(bed.server, "prerouting", *rules):
                time.sleep(0.7)
                client.signal(signal.SIGSTOP)
                time.sleep(0.2)
                client.signal(signal.SIGCONT)
                time.sleep(0.1)
            took = time.monotonic() - begun
            got = client.finish(30)
        if took < 1.8:
            break
    assert got.rc == 0, got.err
    ms = lib.document(got.out)["final"]["OUTAGE"]
    assert 850 < ms < 2500 if paths == len(PATHS) else 0 <= ms < 850, (ms, took)
    return f"{ms:.0f} ms"


def no_capture(bed: Bed, port: int) -> None:
    ran = run(bed, port, "MPTCP_STREAM", *STREAM, "--wire")
    assert ran.got.rc == 0 and "--wire: a capture sees one path" in ran.got.err, ran.got.err


def explained(bed: Bed, port: int) -> None:
    """The ceiling of two links together; it takes MPTCP's options into account."""
    one = run(bed, port, "MPTCP_STREAM", *STREAM, "--explain").got
    both = run(bed, port, "MPTCP_STREAM", *STREAM, "--explain", "--link-rate", "1gbit").got
    assert "ceiling: not known: subflows may use several links" in one.err, one.err
    assert f"ceiling: {1000 * 1424 / 1538:.1f} Mbit/s of payload" in both.err, both.err


# --- whom it lets in ----------------------------------------------------------------------

ATTEMPT = """
import errno, socket, sys
got = []
for attempt in range(20):
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, {protocol}) as s:
        s.settimeout(20)
        try:
            s.connect(({host!r}, {port}))
            s.sendall(b"x")
            got.append(repr(s.recv(1)))
        except OSError as fault:
            got.append(errno.errorcode.get(fault.errno, str(fault)))
print(*sorted(set(got)))
"""


def stranger(bed: Bed, port: int, protocol: int) -> str:
    """A request from another host to a listener that answers the client's is neither answered nor counted."""
    data = lib.free_port()
    command = [*bed.client, lib.netperf(), "-H", HOST, "-p", str(port), "-t", "MPTCP_CRR", "-P", "0", "-l", "60",
               "-b", "1", "-w", "5ms", "--json", "--", "-P", f",{data}"]
    with lib.Started(command) as client:
        assert client.measuring(), client.said()
        got = lib.run([*bed.stranger, "python3", "-c", ATTEMPT.format(protocol=protocol, host=HOST, port=data)], 60)
        client.signal(2)
        end = client.finish(60)
    assert got.rc == 0 and got.out.strip() == "ECONNRESET", f"{got.out} {got.err}"
    assert end.rc == 0, end.err
    final = lib.document(end.out)["final"]
    mine, told = final["LOCAL_BYTES_SENT"], final["REMOTE_BYTES_RECVD"]
    assert mine - 1 <= told <= mine and told > 0, f"{mine} bytes of requests sent, {told} received"    # the signal may meet one
    return f"20 attempts, {got.out.strip()}; {mine} requests"


# --- less than MPTCP ----------------------------------------------------------------------

def fallen_back(bed: Bed, port: int, end: str, test: str, count: Sequence[str], says: str) -> None:
    """If the option is removed, this is always reported: on stderr, in the figures, at both ends."""
    bed.strip(end)
    try:
        ran = run(bed, port, test, *count)
    finally:
        bed.heal(end)
    assert ran.got.rc == 0, ran.got.err
    assert ran.got.err == f"netperf: {test}: {says}\n", ran.got.err
    assert ran.metric("PROTOCOL_DETAIL") == says, ran.metric("PROTOCOL_DETAIL")
    counts_agree(ran)
    if test != "MPTCP_CRR":  # its connections are gone
        for side in (ran.near(), ran.far()):
            assert side["mptcp.fallback"] == 1 and side["flow.protocol_detail"] == says, side


def plain_service(bed: Bed) -> str:
    """A TCP service without a netserver next to it."""
    code = ("import socket; s = socket.create_server(('', 0)); print(s.getsockname()[1], flush=True)\n"
            "c = s.accept()[0]\nwhile c.recv(1 << 16): pass\n")
    with lib.Started([*bed.server, "python3", "-c", code]) as service:
        assert lib.wait_for(lambda: "\n" in service.said(), 60), "no service"
        data = service.said().strip()
        got = lib.run([*bed.client, lib.netperf(), "-N", "-H", HOST, "-t", "MPTCP_STREAM", "-P", "0", "-l", "0.5",
                       "--", "-P", f",{data}", "-k", "PROTOCOL_DETAIL"], timeout=20)
    assert got.rc == 0 and "PROTOCOL_DETAIL=fell back to TCP" in got.out, got.out + got.err
    assert "MPTCP_STREAM: fell back to TCP" in got.err, got.err
    return ""


def switched_off(bed: Bed, port: int, role: str) -> None:
    """One line reports it, for either end."""
    switch = [*getattr(bed, role), "sysctl", "-q", "-w"]
    lib.must([*switch, "net.mptcp.enabled=0"])
    try:
        got = run(bed, port, "MPTCP_STREAM", "-l", "1").got
    finally:
        lib.must([*switch, "net.mptcp.enabled=1"])
    assert got.rc == 1 if role == "client" else got.rc not in (0, None), f"status {got.rc}"
    line = lib.error_line(got, "netperf", "MPTCP is switched off (try 'sysctl -w net.mptcp.enabled=1')")
    assert role == "client" or "refuses" in line, line


def stock_daemon(bed: Bed) -> None:
    """It is not asked: it would try forever to create such a socket."""
    real = lib.real_netperf() / "netserver"
    with lib.Daemon(prefix=bed.server, program=str(real), args=["-4"], grace=None) as daemon:
        got = run(bed, daemon.port, "MPTCP_RR", "-l", "1").got
        assert got.rc not in (0, None) and got.seconds < 20 + lib.SLACK, f"status {got.rc}, {got.seconds:.1f} s"
        lib.error_line(got, "netperf", "MPTCP: the netserver at", "does not support this")


def brief(report: lib.Report) -> None:
    """The cases that differ between kernels, for a machine that is ten times slower."""
    lib.skip_if(why_not())
    with Bed() as bed, lib.Daemon(prefix=bed.server, args=["-4"]) as daemon:
        port = daemon.port
        for test in ("MPTCP_STREAM", "MPTCP_MAERTS"):
            report.case(f"{test} by two paths", lambda test=test: both_paths(bed, port, test))
        for row in COUNTED[:2]:
            report.case(f"{row[0]} {' '.join(row[2])}", lambda row=row: counted(bed, port, *row))
        for end, test, count in (("server", "MPTCP_STREAM", STREAM), ("client", "MPTCP_RR", TURNS)):
            report.case(f"{test} falls back, options lost before the {end}",
                        lambda row=(end, test, count): fallen_back(bed, port, *row, "fell back to TCP"))
        for role in ("client", "server"):
            report.case(f"switched off at the {role}", lambda role=role: switched_off(bed, port, role))


def suite(report: lib.Report) -> None:
    lib.skip_if(why_not())
    with Bed() as bed, lib.Daemon(prefix=bed.server, args=["-4", "--uring", "1", "--spin", "8"]) as daemon:
        port = daemon.port
        for test in ("MPTCP_STREAM", "MPTCP_MAERTS"):
            report.case(f"{test} by two paths", lambda test=test: both_paths(bed, port, test))
        for test, options, specific, detail in COUNTED:
            report.case(" ".join((test, *options, "--", *specific)).rstrip(" -"),
                        lambda row=(test, options, specific, detail): counted(bed, port, *row))
        for engine, says in (("zerocopy", "only TCP and UDP can send without a copy"),
                             ("batch", "it is for datagrams only"), ("segment", "it is for datagrams only")):
            report.case(f"--engine {engine}",
                        lambda row=(engine, says): refused(bed, port, ("--engine", row[0]), row[1]))
        for paths in (1, len(PATHS)):
            report.case(f"an outage of {paths} of {len(PATHS)} paths", lambda paths=paths: an_outage(bed, port, paths))
        report.each((no_capture, explained), bed, port)
        for protocol in (0, PROTOCOL):
            report.case(f"a stranger by {'MPTCP' if protocol else 'TCP'}",
                        lambda protocol=protocol: stranger(bed, port, protocol))
        for end in ("server", "client"):
            for test, count in (("MPTCP_STREAM", STREAM), ("MPTCP_MAERTS", STREAM), ("MPTCP_RR", TURNS),
                                ("MPTCP_CRR", TURNS)):
                report.case(f"{test} falls back, options lost before the {end}",
                            lambda row=(end, test, count): fallen_back(bed, port, *row, "fell back to TCP"))
        report.case("several fall back",
                    lambda: fallen_back(bed, port, "server", "MPTCP_RR", (*TURNS, "--flows", "3"),
                                        "3 of 3 connections fell back to TCP"))
        report.case("a service of TCP", lambda: plain_service(bed))
        for role in ("client", "server"):
            report.case(f"switched off at the {role}", lambda role=role: switched_off(bed, port, role))
        report.case("netserver 2.7", lambda: stock_daemon(bed))


if __name__ == "__main__":
    lib.main(suite)
