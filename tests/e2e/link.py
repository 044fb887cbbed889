#!/usr/bin/env python3
"""Link-layer tests, DLCL_STREAM and DLCL_RR, between network namespaces, over a pair of interfaces without addresses;
another pair has the control connection. Counts are compared with those of the interfaces and of nftables. Needs root,
for scripts/netlab."""

import contextlib
import json
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Callable, Dict, List, NamedTuple, Sequence

import lib
import netns

IPV4 = netns.IPV4
ETHERTYPE = 0x88B5
NEAR, FAR = "frames0", "frames1"        # the pair without addresses
RATE = 50                               # Mbit/s: any machine's receiver keeps up
PREFIX = f"netlab-{netns.NAME}-"
FRAMING = 38                            # overhead per frame that the lab's link counts
FAREWELLS = 60                          # maximum: three, and one for each 50 ms of waiting

CLIENT, SERVER = (lib.in_lab(netns.NAME, end) for end in ("client", "server"))


class Pair:
    """A second pair of interfaces for the duration of a block. It is deleted with the lab's namespaces."""

    def __enter__(self) -> "Pair":
        lib.must(["ip", "link", "add", NEAR, "netns", f"{PREFIX}client", "type", "veth",
                    "peer", "name", FAR, "netns", f"{PREFIX}server"])
        for end, device in ((CLIENT, NEAR), (SERVER, FAR)):
            lib.must([*end, "sysctl", "-qw", f"net.ipv6.conf.{device}.disable_ipv6=1"])
            lib.must([*end, "ip", "link", "set", device, "up"])
        lib.must([*CLIENT, "tc", "qdisc", "add", "dev", NEAR, "root", "tbf", "rate",
                    f"{RATE}mbit", "burst", "20k", "limit", "400k"])
        return self

    def __exit__(self, *_: object) -> None:
        lib.must([*CLIENT, "ip", "link", "delete", NEAR])


class Counts(NamedTuple):
    near: Dict[str, int]
    far: Dict[str, int]

    def since(self, before: "Counts") -> "Counts":
        return Counts(*({name: now[name] - then[name] for name in now}
                        for now, then in zip(self, before)))


def link_counts() -> Counts:
    """The interfaces' counters (ip -s link)."""
    found = []
    for end, device in ((CLIENT, NEAR), (SERVER, FAR)):
        got = lib.run([*end, "ip", "-s", "-j", "link", "show", "dev", device], 20)
        stats = json.loads(got.out)[0]["stats64"]
        found.append({f"{way}_{what}": stats[way][what]
                      for way in ("rx", "tx") for what in ("packets", "bytes")})
    return Counts(*found)


def command(port: int, *args: str, more: Sequence[str] = (), devices: str = f"{NEAR},{FAR}",
            host: str = IPV4) -> List[str]:
    device = ["--device", devices] if devices else []
    return lib.command(port, *args, "--", *device, *more, host=host)


FIGURES = "THROUGHPUT,ELAPSED_TIME,LOCAL_SEND_CALLS,REMOTE_RECV_CALLS,REMOTE_BYTES_RECVD," \
          "LOCAL_SEND_SIZE,LOST_REQUESTS,TRANSACTION_RATE,PROTOCOL"


def figures(port: int, *args: str, more: Sequence[str] = (), timeout: float = 30,
            devices: str = f"{NEAR},{FAR}") -> Dict[str, str]:
    got = lib.run([*CLIENT, *command(port, "-P", "0", *args, more=[*more, "-k", FIGURES],
                                     devices=devices)], timeout)
    assert got.rc == 0 and not got.err, f"status {got.rc}: {got.err.strip()}"
    return dict(line.split("=", 1) for line in got.out.split("\n") if "=" in line)


def refused(prefix: Sequence[str], args: Sequence[str], *says: str) -> str:
    """The exit status is 1 if this end refuses, 255 if the daemon does."""
    got = lib.run([*prefix, *args], 20)
    assert got.rc in (1, 255), f"status {got.rc}: {got.out}"
    assert "\nSocket" not in got.out and "\nLocal" not in got.out, got.out
    return lib.error_line(got, "netperf", *says)


def ingress(*rules: str) -> None:
    """Set rules for frames received at the far end; without arguments, remove them."""
    script = ["add table netdev frames; delete table netdev frames"]
    if rules:
        script += ["add table netdev frames",
                   f"add chain netdev frames in {{ type filter hook ingress device {FAR} "
                   "priority 0; }", *(f"add rule netdev frames in {rule}" for rule in rules)]
    lib.must([*SERVER, "nft", "; ".join(script)])


def dropped() -> int:
    got = lib.run([*SERVER, "nft", "list", "table", "netdev", "frames"], 20)
    return sum(int(n) for n in re.findall(r"counter packets (\d+)", got.out))


# The first bytes of a stream's frames, but not of the end marks (doc/protocol.md).
DATA = f"ether type {ETHERTYPE:#x} @nh,0,32 0"


# --- figures ------------------------------------------------------------------------------

class Overrun(AssertionError):
    """Frames are missing that nothing on the path dropped: the receiver's buffer may have been full."""


def patiently(body: Callable[[], str]) -> Callable[[], str]:
    """Make up to five attempts, as buffers overflow on a busy machine."""
    def attempts() -> str:
        for _ in range(4):
            with contextlib.suppress(Overrun):
                return body()
        return body()
    return attempts


def counted(got: Dict[str, str]) -> int:
    """Everything that was sent was received."""
    sent, received = int(got["LOCAL_SEND_CALLS"]), int(got["REMOTE_RECV_CALLS"])
    if received < sent:
        raise Overrun(f"{sent} sent, {received} received")
    assert sent == received, f"{sent} sent, {received} received"
    return received


def agrees(port: int, size: int, *length: str) -> str:
    """Every frame is counted by both ends and both interfaces, and nothing else is."""
    before = link_counts()
    got = figures(port, "-t", "DLCL_STREAM", *length, more=("-m", str(size)))
    time.sleep(0.05)
    moved = link_counts().since(before)
    sent = received = counted(got)
    carried = max(size, 46)
    assert received > 100, f"{received} received"
    assert int(got["LOCAL_SEND_SIZE"]) == carried, got
    assert int(got["REMOTE_BYTES_RECVD"]) == received * carried, got
    extra = moved.near["tx_packets"] - sent
    assert 3 <= extra <= FAREWELLS, f"{moved.near['tx_packets']} frames went out, {sent} counted"
    assert moved.far["rx_packets"] == moved.near["tx_packets"], moved
    size_on_link = moved.far["rx_bytes"] - extra * (46 + 14)
    assert size_on_link == received * (carried + 14), f"{size_on_link} bytes of {received} frames"
    assert moved.near["rx_packets"] == 0, "something came back"
    seconds = float(got["ELAPSED_TIME"])
    rate = received * carried * 8e-6 / seconds
    exact = 0.01 if seconds > 0.5 else 0.2     # it has two decimals
    assert abs(rate / float(got["THROUGHPUT"]) - 1) < exact, f"{rate} Mbit/s, {got['THROUGHPUT']}"
    return f"{sent} frames of {carried} bytes, {rate:.2f} Mbit/s"


def table(port: int) -> str:
    """The classic table; without a size, frames have the MTU."""
    got = lib.run([*CLIENT, *command(port, "-t", "DLCL_STREAM", "-l", "1")], 20)
    assert got.rc == 0 and not got.err, got.err
    lines = got.out.splitlines()
    assert lines[0].startswith(f"DLCL STREAM TEST from {NEAR} to {FAR} of {IPV4}"), lines[0]
    rows = [line.split() for line in lines[1:] if line and line.split()[0].isdigit()]
    assert len(rows) == 2 and len(rows[0]) == 6 and len(rows[1]) == 4, got.out
    assert rows[0][1] == "1500" and rows[0][3] == rows[1][2], got.out
    return f"{rows[1][2]} frames, {rows[1][3]} Mbit/s"


def turns(port: int) -> str:
    """Each request and response is a frame."""
    before = link_counts()
    got = figures(port, "-t", "DLCL_RR", "-l", "-200", more=("-r", "100,1400"))
    moved = link_counts().since(before)
    assert moved.near["rx_packets"] == 200, moved
    assert moved.near["rx_bytes"] == 200 * 1414, moved
    assert 200 < moved.near["tx_packets"] <= 200 + FAREWELLS, moved
    assert int(got["LOCAL_SEND_CALLS"]) == 200 and got["LOST_REQUESTS"] == "0", got
    by_time = figures(port, "-t", "DLCL_RR", "-l", "1")
    assert float(by_time["TRANSACTION_RATE"]) > 100, by_time
    burst = figures(port, "-t", "DLCL_RR", "-l", "-200", more=("-b", "4"))
    return f"{by_time['TRANSACTION_RATE']}/s, {burst['TRANSACTION_RATE']}/s with 5 under way"


def default_devices(port: int) -> str:
    """Without --device, the control connection's interfaces are used, and their rate for the ceiling."""
    got = figures(port, "-t", "DLCL_STREAM", "-l", "2", devices="")
    expected = netns.RATE * 1500 / (1500 + FRAMING)
    rate = float(got["THROUGHPUT"])
    # For packet sockets, the kernel's shaper does not count link-layer headers.
    assert got["PROTOCOL"] == "DLCL" and abs(rate / expected - 1) < 0.03, f"{rate}, not {expected}"
    return f"{rate} Mbit/s of {expected:.2f}"


def one_name(port: int) -> str:
    got = figures(port, "-t", "DLCL_STREAM", "-l", "1", devices="lab0")
    assert int(got["REMOTE_RECV_CALLS"]) > 100, got
    return f"{got['REMOTE_RECV_CALLS']} frames"


def loses(port: int) -> str:
    """Frames dropped at the far interface are the difference between sent and received."""
    ingress(f"{DATA} numgen inc mod 10 == 3 counter drop")
    got = figures(port, "-t", "DLCL_STREAM", "-l", "1", more=("-m", "1000"))
    lost = dropped()
    ingress()
    sent, received = int(got["LOCAL_SEND_CALLS"]), int(got["REMOTE_RECV_CALLS"])
    if sent - received > lost:
        raise Overrun(f"{sent} - {received} is more than {lost}")
    assert lost > 50 and sent - received == lost, f"{sent} - {received} is not {lost}"
    return f"{sent} sent, {lost} dropped, {received} received"


def survives_loss(port: int) -> str:
    """A lost request or response costs only its time-out."""
    ingress(f"ether type {ETHERTYPE:#x} numgen inc mod 500 == 99 counter drop")
    began = time.monotonic()
    got = figures(port, "-t", "DLCL_RR", "-l", "3", timeout=25)
    lost, took = dropped(), time.monotonic() - began
    ingress()
    assert took < 8, f"{took:.1f} s"
    assert 1 <= int(got["LOST_REQUESTS"]) <= lost, f"{got['LOST_REQUESTS']} lost, {lost} dropped"
    assert float(got["TRANSACTION_RATE"]) > 20, got
    return f"{got['LOST_REQUESTS']} lost, {got['TRANSACTION_RATE']}/s"


def all_lost(port: int) -> str:
    """Nothing arrives, not even the end mark: the test ends nevertheless, with zero."""
    ingress(f"ether type {ETHERTYPE:#x} counter drop")
    began = time.monotonic()
    got = figures(port, "-t", "DLCL_STREAM", "-l", "1")
    took = time.monotonic() - began
    rr = lib.run([*CLIENT, *command(port, "-t", "DLCL_RR", "-l", "2")], 25)
    ingress()
    assert got["REMOTE_RECV_CALLS"] == "0" and float(got["THROUGHPUT"]) == 0, got
    assert took < 10, f"{took:.1f} s"
    lib.error_line(rr, "netperf", "DLCL_RR", "not one transaction")
    return f"after {took:.1f} s"


# --- others' frames -----------------------------------------------------------------------

FORGE = """
import socket, struct, sys, time
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind((sys.argv[1], 0))
far = bytes.fromhex(sys.argv[2])
end = time.monotonic() + 2
while time.monotonic() < end:
    for first in (0, 0x504c7371, 0x504c656e):   # as data, numbered, and as the end of a test
        for near in (s.getsockname()[4], bytes.fromhex("020000000042")):
            s.send(far + near + struct.pack("!HI", 0x88b5, first) + b"x" * 100)
    time.sleep(0.002)
"""


def mac(end: Sequence[str], device: str) -> str:
    got = lib.run([*end, "ip", "-j", "link", "show", "dev", device], 20)
    return str(json.loads(got.out)[0]["address"]).replace(":", "")


def foreign(port: int) -> str:
    """Frames with the same EtherType but without the test's tag are ignored."""
    forger = subprocess.Popen([*CLIENT, sys.executable, "-c", FORGE, NEAR, mac(SERVER, FAR)])
    try:
        before = link_counts()
        got = figures(port, "-t", "DLCL_STREAM", "-l", "1", more=("-m", "1200"))
        moved = link_counts().since(before)
        rr = figures(port, "-t", "DLCL_RR", "-l", "-100")
    finally:
        forger.kill()
        forger.wait()
    received = counted(got)
    others = moved.near["tx_packets"] - received
    assert others > 200, f"only {others} frames of others"
    assert rr["LOST_REQUESTS"] == "0", rr
    return f"{received} counted, {others} not"


def together(port: int) -> str:
    """Two simultaneous tests on the same interfaces count only their own frames."""
    got: List[Dict[str, str]] = [{}, {}]

    def run(i: int) -> None:
        got[i] = figures(port, "-t", "DLCL_STREAM", "-l", "1", "-b", "4", "-w", "5",
                         more=("-m", str(600 + 100 * i)))

    threads = [threading.Thread(target=run, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, one in enumerate(got):
        assert one, "a test failed"
        assert one["LOCAL_SEND_CALLS"] == one["REMOTE_RECV_CALLS"], one
        assert int(one["REMOTE_BYTES_RECVD"]) == int(one["REMOTE_RECV_CALLS"]) * (600 + 100 * i)
    return " and ".join(one["REMOTE_RECV_CALLS"] for one in got)


# --- the other outputs --------------------------------------------------------------------

def document(port: int) -> str:
    """--json and --explain: evidence of both ends, and numbered frames."""
    ingress(f"ether type {ETHERTYPE:#x} @nh,0,32 0x504c7371 numgen inc mod 10 == 3 counter drop")
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "run.json"
        got = lib.run([*CLIENT, *command(port, "-t", "DLCL_STREAM", "-l", "1", "--explain",
                                         f"--json={path}", more=("-m", "1000"))], 20)
        lost = dropped()
        ingress()
        if "jansson" in got.err:
            return "built without jansson"
        assert got.rc == 0, got.err
        run = lib.document(path.read_text())
    near, far = (run["iterations"][0][end] for end in ("near", "far"))
    assert run["test"]["family"] == "AF_PACKET" and run["test"]["protocol"] == "DLCL", run["test"]
    assert near["flow.device"] == NEAR and far["flow.device"] == FAR, far
    full = far["flow.socket_drops"]  # dropped while the receiver waited for a processor
    assert far["udp.lost"] == lost + full and lost > 10 and far["udp.sent"] == near["udp.sent"], far
    assert far["udp.foreign"] == 0, far
    assert far["moved.nic.rx_packets"] >= far["udp.unique"], far
    lines = got.err.splitlines()
    assert full > 0 or lines[0].startswith("explain: loss: "), got.err
    most = RATE * 1000 / 1038
    assert any(line.startswith(f"ceiling: {most:.2f} Mbit/s") for line in lines), got.err
    return f"{lost} of {far['udp.sent']} lost; {lines[0]}"


def no_ledger(port: int) -> str:
    got = lib.run([*CLIENT, *command(port, "-t", "DLCL_STREAM", "-l", "1", "--wire")], 20)
    assert got.rc == 0, got.err
    return lib.error_line(got, "netperf", "--wire", "no packets of IP")


def repeated(port: int) -> str:
    """With confidence intervals: one control connection, and one socket at the daemon."""
    got = figures(port, "-t", "DLCL_STREAM", "-l", "1", "-i", "3,3", more=("-m", "1000"))
    assert got["LOCAL_SEND_CALLS"] == got["REMOTE_RECV_CALLS"], got
    return f"{got['THROUGHPUT']} Mbit/s"


# --- refusals -----------------------------------------------------------------------------

def is_up(end: Sequence[str], device: str) -> bool:
    return " state UP " in lib.run([*end, "ip", "link", "show", "dev", device], 20).out


def carrier() -> None:
    """The kernel takes up to a second to report the carrier."""
    assert lib.wait_for(lambda: is_up(CLIENT, NEAR) and is_up(SERVER, FAR), 10), "no carrier"


def refusals(report: lib.Report, port: int) -> None:
    def case(name: str, devices: str, more: Sequence[str], *says: str, test: str = "DLCL_STREAM",
             prefix: Sequence[str] = CLIENT) -> None:
        args = command(port, "-t", test, "-l", "1", more=more, devices=devices)
        report.case(name, lambda: refused(prefix, args, test, *says))

    both = f"{NEAR},{FAR}"
    case("above the MTU", both, ["-m", "1501"], "1501", f"MTU of {NEAR}", "-m 1500")
    case("request above the MTU", both, ["-r", "1501,1"], "1501", NEAR, "-r", test="DLCL_RR")
    case("no such interface", f"nosuch0,{FAR}", [], "nosuch0", "ip link")
    case("no such interface there", f"{NEAR},nosuch1", [], IPV4, "nosuch1")
    case("loopback and Ethernet", f"{NEAR},lo", [], "loopback", "--device")
    case("not permitted", both, [], "CAP_NET_RAW", "root", prefix=[*CLIENT, *lib.as_nobody()])
    lib.must([*SERVER, "ip", "link", "set", FAR, "mtu", "1400"])
    case("above the far MTU", both, ["-m", "1450"], "1450", f"MTU of {FAR}", "-m 1400")
    lib.must([*SERVER, "ip", "link", "set", FAR, "mtu", "1500", "down"])
    assert lib.wait_for(lambda: not is_up(CLIENT, NEAR), 10), "a carrier"
    case("no carrier", both, [], f"{NEAR} has no carrier")
    lib.must([*CLIENT, "ip", "link", "set", NEAR, "down"])
    case("down", both, [], f"ip link set {NEAR} up")
    lib.must([*CLIENT, "ip", "link", "set", NEAR, "up"])
    case("down there", f"lab0,{FAR}", [], f"ip link set {FAR} up")
    lib.must([*SERVER, "ip", "link", "set", FAR, "up"])
    carrier()
    lib.must([*CLIENT, "ip", "tuntap", "add", "tun7", "mode", "tun"])
    case("no Ethernet", f"tun7,{FAR}", [], "tun7 carries no Ethernet frames", "--device")
    lib.must([*CLIENT, "ip", "tuntap", "del", "tun7", "mode", "tun"])
    report.case("no control connection",
                lambda: refused(CLIENT, command(port, "-t", "DLCL_STREAM", "-N"), "-N", "DLCL"))


def goes_down(port: int) -> str:
    """An interface that goes down in the middle of a test: one line, soon."""
    with lib.Started([*CLIENT, *command(port, "-t", "DLCL_STREAM", "-l", "20")]) as started:
        time.sleep(1)
        lib.must([*CLIENT, "ip", "link", "set", NEAR, "down"])
        got = started.finish(15)
    lib.must([*CLIENT, "ip", "link", "set", NEAR, "up"])
    carrier()
    assert got.rc == 1 and "Network is down" in got.err, f"{got.rc}: {got.err}"
    return got.err.strip()


def not_allowed(*args: str) -> str:
    with lib.Daemon(SERVER, args) as daemon:
        line = refused(CLIENT, command(daemon.port, "-t", "DLCL_RR", "-l", "1"), "DLCL_RR",
                       "--allow-raw")
        lib.must(lib.command(daemon.port, "-l", "1", "-t", "TCP_RR", host=IPV4, prefix=CLIENT), 20)
    return line


def not_served_alone() -> str:
    with lib.Daemon(SERVER, ["--allow-raw", "-f"]) as daemon:
        return refused(CLIENT, command(daemon.port, "-t", "DLCL_RR", "-l", "1"), "DLCL_RR",
                       "netserver -f")


def without_evidence() -> str:
    with lib.Daemon(SERVER, ["--allow-raw", "--no-evidence"]) as daemon:
        got = figures(daemon.port, "-t", "DLCL_RR", "-l", "-50")
    assert got["LOCAL_SEND_CALLS"] == "50", got
    return "served"


def stock() -> str:
    """netperf's own daemon does not have this test."""
    with lib.Daemon(SERVER, program=str(lib.real_netperf() / "netserver")) as daemon:
        return refused(CLIENT, command(daemon.port, "-t", "DLCL_STREAM", "-l", "1"),
                       "DLCL_STREAM", "link layer", "--allow-raw")


def within_one_host() -> str:
    """Both ends on one host: with two of its interfaces, but not with one."""
    lib.must([*SERVER, "ip", "link", "add", "here0", "type", "veth", "peer", "name", "here1"])
    for device in ("here0", "here1"):
        lib.must([*SERVER, "sysctl", "-qw", f"net.ipv6.conf.{device}.disable_ipv6=1"])
        lib.must([*SERVER, "ip", "link", "set", device, "up"])
    try:
        with lib.Daemon(SERVER, ["--allow-raw"]) as daemon:
            got = lib.run([*SERVER, *command(daemon.port, "-t", "DLCL_RR", "-l", "-100",
                                             devices="here0,here1", host="127.0.0.1")], 20)
            assert got.rc == 0 and not got.err, got.err
            line = refused(SERVER, command(daemon.port, "-t", "DLCL_RR", devices="here0",
                                           host="127.0.0.1"), "both ends are interface here0")
            loop = lib.run([*SERVER, *command(daemon.port, "-t", "DLCL_RR", "-l", "-100",
                                              devices="", host="127.0.0.1")], 20)
            assert loop.rc == 0 and not loop.err, loop.err
    finally:
        lib.must([*SERVER, "ip", "link", "delete", "here0"])
    return line


def suite(report: lib.Report) -> None:
    lib.skip_if(lib.no_lab())
    with netns.Lab(), Pair():
        with lib.Daemon(SERVER, ["--allow-raw"]) as daemon:
            port = daemon.port
            report.rate_case("stream: 1500 bytes", patiently(lambda: agrees(port, 1500, "-l", "1")))
            # At the link's rate a socket buffer holds only 5 ms of such frames, so the test is slower.
            report.rate_case("stream: 100 bytes",
                             patiently(lambda: agrees(port, 100, "-l", "1", "-b", "10", "-w", "1")))
            report.rate_case("stream: 1 byte is 46",
                             patiently(lambda: agrees(port, 1, "-l", "1", "-b", "10", "-w", "1")))
            report.rate_case("stream by count", patiently(lambda: agrees(port, 1000, "-l", "-500000")))
            report.rate_case("table", lambda: table(port))
            report.case("requests and responses", lambda: turns(port))
            report.rate_case("default interfaces", lambda: default_devices(port))
            report.case("one name for both", lambda: one_name(port))
            report.rate_case("dropped frames", patiently(lambda: loses(port)))
            report.each((survives_loss, all_lost), port)
            report.rate_case("frames of others", patiently(lambda: foreign(port)))
            report.rate_case("two at a time", lambda: together(port))
            report.rate_case("document", lambda: document(port))
            report.case("--wire", lambda: no_ledger(port))
            report.rate_case("repeated", lambda: repeated(port))
            refusals(report, port)
            report.case("goes down", lambda: goes_down(port))
        report.each((not_allowed, without_evidence, not_served_alone, within_one_host, stock))


if __name__ == "__main__":
    lib.main(suite)
