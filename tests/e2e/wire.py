#!/usr/bin/env python3
"""The wire ledger (--wire, netserver --allow-raw) in every test, and the messages if capturing is not permitted.
wire_short.py and wire_bed.py compare it with the kernel's filter. Needs root, for scripts/netlab."""

import os
import re
import signal
import struct
import sys
import tempfile
import threading
from functools import partial
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import lib
import netns

IPV4, IPV6 = netns.IPV4, netns.IPV6
SECONDS = 1
CAP_NET_RAW = 1 << 13
CLASSIC = ("TCP_SENDFILE", "TCP_CC")    # tests with a table, and without selectors

Row = List[Optional[float]]             # local out, local in, remote out, remote in


class Ledger(NamedTuple):
    rows: Dict[str, Row]
    text: str

    def value(self, label: str, column: int) -> float:
        """0 in rows that are omitted as they have no counts."""
        found = self.rows.get(label, [0.0] * 4)[column]
        assert found is not None, f"no {label} in column {column}: {self.text}"
        return found


def ledger(err: str) -> Ledger:
    rows = {}
    for line in err.splitlines():
        got = re.match(r"(?P<label>.{22})(?P<values>(?: +(?:[0-9.]+|-)){4})$", line)
        if got:
            rows[got["label"].strip()] = [None if word == "-" else float(word)
                                          for word in got["values"].split()]
    return Ledger(rows, err)


class Run(NamedTuple):
    figures: Dict[str, float]
    ledger: Ledger
    document: Optional[Dict[str, Any]]  # None: this build writes no documents


def netperf(prefix: Sequence[str], port: int, *args: str, more: Sequence[str] = (),
            host: str = IPV4) -> Run:
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "run.json"
        os.chmod(place, 0o777)
        json_too = [f"--json={path}"] if writes_json() else []
        figures_too = [] if set(args) & set(CLASSIC) else ["-k", "THROUGHPUT,ELAPSED_TIME,LOCAL_SEND_CALLS"]
        got = lib.run([*prefix, lib.netperf(), "-H", host, "-p", str(port), "-l", str(SECONDS),
                       "-P", "0", *args, *json_too, "--", *more, *figures_too], 60)
        assert got.rc == 0, f"status {got.rc}: {got.err.strip()}"
        document = lib.document(path.read_text()) if json_too else None
    figures = {name: float(value) for name, _, value in
               (line.partition("=") for line in got.out.split() if figures_too)}
    return Run(figures, ledger(got.err), document)


def writes_json() -> bool:
    got = lib.run([lib.netperf(), "-H", "127.0.0.1", "-p", "9", "--json"], 10)
    return "jansson" not in got.err


def counted(lab: netns.Lab) -> "list[int]":
    """The counters of the lab's filter rules at the server, in order."""
    got = lib.run([*lab.server, "nft", "list", "table", "inet", "lab"], 20)
    return [int(n) for n in re.findall(r"counter packets (\d+)", got.out)]


def count(lab: netns.Lab, *rules: str) -> None:
    lab.heal()
    script = ["add table inet lab",
              "add chain inet lab pre { type filter hook prerouting priority -300; }",
              *(f"add rule inet lab pre iifname lab0 {rule}" for rule in rules)]
    lib.must([*lab.server, "nft", "; ".join(script)])


# --- figures ------------------------------------------------------------------------------

def loses(lab: netns.Lab, port: int) -> str:
    """What is dropped at the receiver is retransmitted once, as either tap reports."""
    count(lab, f"tcp dport != {port} meta length > 200 numgen random mod 1000 < 20 counter drop")
    led = netperf(lab.client, port, "--wire").ledger
    dropped, = counted(lab)
    lab.heal()
    found = [led.value("retransmitted segments", i) for i in (0, 3)]
    near = max(3, dropped / 100)
    assert dropped > 50 and all(abs(n - dropped) <= near for n in found), \
        f"{dropped} dropped, {found} retransmitted: {led.text}"
    return f"{dropped} dropped, {found[0]:.0f} and {found[1]:.0f} retransmitted"


def super_packets(lab: netns.Lab, port: int) -> str:
    """Without segmentation on the path, a packet on the link is many segments, and the ledger still adds up."""
    for end in (lab.client, lab.server):
        lib.must([*end, "tc", "qdisc", "del", "dev", "lab0", "root"])
        lib.must([*end, "ip", "link", "set", "lab0", "gso_max_segs", "64",
                    "gso_max_size", "65536"])
        lib.must([*end, "ethtool", "-K", "lab0", "tso", "on", "gso", "on"])
    led = netperf(lab.client, port, "-l", "0.4", "--wire").ledger
    packets, segments = led.value("packets seen", 0), led.value("segments", 0)
    data, payload = led.value("with data", 0), led.value("payload, bytes", 0)
    assert led.value("super-packets", 0) > 0 and packets < segments, led.text
    # the last segment of a packet is small if the sender did not keep up
    assert payload / 1448 <= data <= payload / 1448 * 1.2 + 2, f"{data} segments, {payload} bytes"
    assert "lost" in led.text or led.value("with data", 3) == data, led.text
    return f"{packets:.0f} packets, {segments:.0f} segments"


# --- the file -----------------------------------------------------------------------------

def packets_of(path: Path) -> "Iterator[Tuple[int, int]]":
    """Captured and original length of each packet in a pcap file with times in ns or us."""
    data = path.read_bytes()
    magic, = struct.unpack_from("=I", data)
    assert magic in (0xa1b23c4d, 0xa1b2c3d4), f"begins with {data[:4]!r}"
    at = 24
    while at < len(data):
        captured, length = struct.unpack_from("=8xII", data, at)
        yield captured, length
        at += 16 + captured
    assert at == len(data), "the last packet is cut"


def file(lab: netns.Lab, port: int) -> str:
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "test.pcap"
        led = netperf(lab.client, port, "-t", "TCP_RR", "-l", "0.3", f"--wire=pcap:{path}").ledger
        found = list(packets_of(path))
        seen = led.value("packets seen", 0) + led.value("packets seen", 1)
        assert len(found) == seen, f"{len(found)} packets in the file, {seen} in the ledger"
        assert max(captured for captured, _ in found) <= 128
        return f"{len(found)} packets"


# --- all tests ----------------------------------------------------------------------------

TESTS: "tuple[tuple[str, ...], ...]" = (
    ("TCP_STREAM",), ("TCP_MAERTS",), ("TCP_SENDFILE",), ("UDP_STREAM",),
    ("TCP_RR", "-l", "-300"), ("UDP_RR", "-l", "-300"),
    # their worker opens a socket for each transaction, in addition to the capture's
    ("TCP_CRR", "-l", "-300"), ("TCP_CC", "-l", "-300"),
    ("TCP_CRR", "-l", "-100", "-i", "3,3"), ("TCP_RR", "-l", "-100", "-i", "3,3"),
)


def every_test(lab: netns.Lab, port: int, host: str, test: Sequence[str]) -> str:
    """Both ends capture, without interfering with the test."""
    name, *how = test
    run = netperf(lab.client, port, "-t", name, *how, "--explain", "--wire", host=host)
    seen = [run.ledger.value("packets seen", i) for i in range(4)]
    assert seen[0] > 0 and seen[3] > 0, run.ledger.text
    assert "no ledger" not in run.ledger.text, run.ledger.text
    if run.document is not None:
        assert run.document["result"] == "complete", run.document["result"]
        several = len(run.document["iterations"])
        said = f"ledger: the last of {several} iterations\n"
        assert (said in run.ledger.text) == (several > 1), run.ledger.text
        for end in ("near", "far"):
            assert run.document["iterations"][-1][end]["wire.captured"] > 0, run.document
    return f"{seen[0]:.0f} packets"


def every_flow(lab: netns.Lab, port: int, test: str) -> str:
    """The ledger covers all data connections: each request is a packet of its own."""
    got = lib.run(lab.command(port, "-l", "0.4", "-P", "0", "-t", test, "--flows", "5", "--threads", "2", "--wire",
                              "--", "-D", "-k", "LOCAL_SEND_CALLS"), 60)
    assert got.rc == 0, got
    seen, sent = ledger(got.err), float(got.out.split("=")[1])
    with_data = [seen.value("with data", i) for i in range(4)]
    assert with_data[0] == with_data[3] == sent, (with_data, sent)
    # At the end of a capture, some of the last responses, one for each flow, are not sent or have not arrived.
    assert sent - 5 <= with_data[1] <= with_data[2] <= sent, (with_data, sent)
    assert "sent again" not in seen.text, seen.text
    return f"{sent:.0f} requests"


def blocks_of_datagrams(lab: netns.Lab, port: int, test: str, size: int, *more: str) -> str:
    """A packet is several datagrams until it leaves the machine, of which each end knows the size."""
    run = netperf(lab.client, port, "-t", test, "-l", f"-{size * 500 if test == 'UDP_STREAM' else 500}", "-b", "10",
                  "--engine", "segment", "--wire", more=more)
    with_data = [run.ledger.value("with data", i) for i in ((0, 3) if test == "UDP_STREAM" else range(4))]
    assert run.ledger.value("super-packets", 3) > 0 and set(with_data) == {500}, run.ledger.text
    return f"{run.ledger.value('packets seen', 3):.0f} packets"


def of_the_window(lab: netns.Lab, port: int) -> str:
    """Without the warm-up, which takes three times as long. Losses are counted over both."""
    run = netperf(lab.client, port, "-t", "TCP_RR", "--warm-up", "3", *lib.PACED, "--wire")
    sent, text = run.figures["LOCAL_SEND_CALLS"], run.ledger.text
    assert all(sent / 2 < run.ledger.value("with data", i) < 2 * sent for i in range(4)), (sent, text)
    way = re.search(r"local to remote, with the warm-up: (\d+) segments with data sent, (\d+) arrived", text)
    assert way and int(way[1]) > 2 * sent and 0 <= int(way[1]) - int(way[2]) <= 1, (sent, text)
    assert text.count("counted from the end of the warm-up") == 2, text
    return f"{sent:.0f} requests, {way[0]}"


def without_control(lab: netns.Lab) -> str:
    """The receiver is not a netserver."""
    sink = "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); " \
           "s.bind(('', 9)); print(flush=True); [s.recv(65535) for _ in iter(int, 1)]"
    with tempfile.TemporaryFile("w+") as out, \
            lib.Started([*lab.server, sys.executable, "-c", sink], stdout=out):
        assert lib.wait_for(lambda: os.fstat(out.fileno()).st_size > 0, 10), "no sink"
        run = netperf(lab.client, 9, "-N", "-t", "UDP_STREAM", "--explain", "--wire",
                      more=("-m", "1000", "-P", "0,9"))
    assert run.ledger.value("packets seen", 0) > 0, run.ledger.text
    said = "there is no control connection (-N)"
    assert said in run.ledger.text, run.ledger.text
    return said


def at_the_daemons_own_machine(lab: netns.Lab) -> str:
    """Its clients may run UNIX domain tests, which need no capture."""
    with lib.Daemon(lab.server, ["--allow-raw"]) as daemon:
        for name in ("STREAM_RR", "DG_RR"):
            got = lib.run([*lab.server, lib.netperf(), "-H", "127.0.0.1", "-p", str(daemon.port),
                           "-l", "-100", "-t", name, "--wire"], 20)
            assert got.rc == 0, got.err
            lib.error_line(got, "netperf", "--wire", "UNIX domain")
        led = netperf(lab.server, daemon.port, "-t", "TCP_CRR", "-l", "-100", "--wire",
                      host="127.0.0.1").ledger
        assert led.value("packets seen", 2) > 0, led.text
        assert "Operation not permitted" not in daemon.log(), daemon.log()
    return "UNIX domain and loopback"


# --- who may not --------------------------------------------------------------------------

def without_permission(lab: netns.Lab, port: int) -> str:
    """One line says what to do; the result and the interface's counters are there."""
    text = netperf([*lab.client, *lib.as_nobody()], port, "--wire").ledger.text
    lines = [line for line in text.splitlines() if line.startswith("netperf: ")]
    assert len(lines) == 1 and "setcap cap_net_raw+ep" in lines[0], text
    assert "local: no ledger: " in text and "its interface counted tx_packets " in text, text
    assert ledger(text).value("packets seen", 3) > 0, text
    return lines[0]


def nothing_in_other_protocols() -> str:
    for test in ("SCTP_STREAM", "DCCP_RR"):
        got = lib.run([lib.netperf(), "-H", IPV4, "-t", test, "--wire", "--dry-run"], 20)
        assert f"--wire: packets of {test[:4]} are not read" in got.err, got
    with lib.Daemon() as daemon:
        got = lib.run(lib.command(daemon.port, "-l", "-100", "-t", "DG_RR", "--wire"), 20)
    assert got.rc == 0, got.err
    return lib.error_line(got, "netperf", "--wire", "UNIX domain")


def shared_out(lab: netns.Lab, port: int) -> str:
    """One client's address may have two of a daemon's captures. Without a capture there is a message, and a result."""
    def held() -> lib.Started:
        return lib.Started(lab.command(port, "-t", "TCP_RR", "-l", "30", "--wire"))

    with held() as first, held() as second:
        assert first.under_way() and second.under_way(), "no test began"
        third = netperf(lab.client, port, "--wire", "-t", "TCP_RR", "-l", "-100").ledger
        other = netperf(lab.client, port, "--wire", "-t", "TCP_RR", "-l", "-100",
                        host=IPV6).ledger
        for one in (first, second):
            one.signal(signal.SIGINT)
            got = one.finish(20)
            assert got.rc == 0 and ledger(got.err).value("packets seen", 2) > 0, got
    assert "remote: no ledger: 2 of 4 captures of packets are in use, the rest" in third.text, third.text
    assert third.value("packets seen", 0) > 0, third.text
    assert other.value("packets seen", 2) > 0, other.text
    return "two of one address, and one of another"


def not_allowed(lab: netns.Lab) -> str:
    with lib.Daemon(lab.server) as daemon:
        led = netperf(lab.client, daemon.port, "--wire").ledger
    assert led.value("packets seen", 0) > 0, led.text
    said = "remote: no ledger: netserver was not started with --allow-raw"
    assert said in led.text, led.text
    return said


def stock(lab: netns.Lab) -> str:
    place = lib.real_netperf()
    with lib.Daemon(lab.server, program=str(place / "netserver")) as daemon:
        led = netperf(lab.client, daemon.port, "--wire").ledger
    assert led.value("packets seen", 0) > 0, led.text
    assert "remote: no ledger: the netserver at " in led.text, led.text
    return "said"


def permitted(pid: int) -> int:
    """Capabilities of a process; none if it is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(re.search(r"^CapPrm:\s*([0-9a-f]+)", status, re.M)[1], 16)


def given_up(lab: netns.Lab, daemon: lib.Daemon) -> str:
    """The daemon keeps the capability as permitted, but not effective; no session keeps it."""
    assert permitted(daemon.pid) & CAP_NET_RAW, "the daemon has lost it"
    left: "list[int]" = []
    for args in (["--wire"], []):
        thread = threading.Thread(target=netperf, args=(lab.client, daemon.port, *args))
        thread.start()
        assert lib.wait_for(lambda: bool(daemon.children()), 10), "no session"
        lib.wait_for(lambda: not any(permitted(p) & CAP_NET_RAW for p in daemon.children()), 1)
        left += [p for p in daemon.children() if permitted(p) & CAP_NET_RAW]
        thread.join()
        lib.wait_for(lambda: not daemon.children(), 5)
    assert not left, f"sessions that have CAP_NET_RAW still: {left}"
    return "by sessions that capture, and others"


def suite(report: lib.Report) -> None:
    lib.skip_if(lib.no_lab())
    got = lib.run([lib.netperf(), "-H", "127.0.0.1", "-p", "9", "--wire=x"], 10)
    assert "pcap:FILE" in got.err, got.err
    with netns.Lab() as lab:
        with lib.Daemon(lab.server, ["--allow-raw"]) as daemon:
            probe = netperf(lab.client, daemon.port, "--wire").ledger.text
            if "without libpcap" in probe:
                lib.skip("built without libpcap")
            port = daemon.port
            report.each((loses, file, without_permission), lab, port)
            for host in (IPV4, IPV6):
                for test in TESTS:
                    report.case(f"{' '.join(test)} to {host}",
                                lambda host=host, test=test: every_test(lab, port, host, test))
            for test in ("TCP_RR", "UDP_RR"):
                report.case(f"every flow: {test}", partial(every_flow, lab, port, test))
            report.case("of the window", partial(of_the_window, lab, port))
            report.case("no control connection", lambda: without_control(lab))
            report.case("shared out", lambda: shared_out(lab, port))
            report.case("sessions give it up", lambda: given_up(lab, daemon))
        report.each((at_the_daemons_own_machine, not_allowed, stock), lab)
        report.case("other protocols", nothing_in_other_protocols)
        with lib.Daemon(lab.server, ["--allow-raw"]) as daemon:
            report.case("super-packets", lambda: super_packets(lab, daemon.port))
            for test, size, *more in (("UDP_STREAM", 700, "-m", "700"), ("UDP_RR", 100, "-b", "19", "-r", "100")):
                report.case(f"blocks of datagrams: {test}",
                            partial(blocks_of_datagrams, lab, daemon.port, test, size, *more))


if __name__ == "__main__":
    lib.main(suite)
