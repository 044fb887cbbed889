#!/usr/bin/env python3
"""The receiver's own figures of UDP_STREAM where netperf's table misleads: behind a slow router, whose queue drains
after the sender has ended; and how TCP_STREAM ends there. They are compared with nftables' counters at the server;
udp_account.py has lost and duplicate datagrams. Needs root, for network namespaces."""

import os
import re
import tempfile
from pathlib import Path
from typing import Any, Dict, NamedTuple, Tuple

import explain_links
import lib

RATE = 10e6                             # bits/s from the router to the server
BURST = 5000                            # bytes in its token bucket
SIZE, PACKET = 1000, 1042               # payload, and what tbf counts: with UDP, IP and Ethernet headers
DIFFERS = 0.01                          # smallest difference that is reported
COUNT = 400                             # datagrams of a counted test: all fit into the router's queue
FIGURES = ("RECEIVER_SPAN_THROUGHPUT", "RECEIVER_SPAN", "UNIQUE_DATAGRAMS", "DUPLICATE_DATAGRAMS",
           "LOST_DATAGRAMS")
SPAN_LINE = re.compile(r"^netperf: UDP_STREAM: received at ([\d.]+) 10\^6bits/s over the ([\d.]+) s from the first "
                       r"datagram to the last; ([\d.]+) is over the test's ([\d.]+) s$", re.M)
TWICE_LINE = re.compile(r"^netperf: UDP_STREAM: (\d+) datagrams came twice: of (\d+) sent, (\d+) are lost \(sent "
                        r"less received is (-?\d+)\)$", re.M)


class Run(NamedTuple):
    got: lib.Result
    document: "Dict[str, Any]"

    @property
    def far(self) -> "Dict[str, Any]":
        return dict(self.document["iterations"][0]["far"])

    @property
    def final(self) -> "Dict[str, Any]":
        return dict(self.document["final"])


class Lab(explain_links.RoutedLab):
    """A client, a router with a slow link to the server, and the server."""

    def __init__(self) -> None:
        super().__init__(toward_far=f"{RATE:.0f}bit", limit=500_000)

    def count(self) -> None:
        """Reset the counters of what arrives at the server; end marks are not counted."""
        lib.must([*self.server, "nft", "; ".join([
            "add table inet lab", "add counter inet lab came",
            "add chain inet lab pre { type filter hook prerouting priority -300; }",
            f"add rule inet lab pre meta l4proto udp udp length {8 + SIZE} counter name came"])])


def netperf(lab: Lab, port: int, *args: str, specific: "Tuple[str, ...]" = ()) -> lib.Result:
    got = lib.run(lab.command(port, "-t", "UDP_STREAM", "-P", "0", *args, "--", "-R", "1", "-m", str(SIZE), *specific),
                  60)
    assert got.rc == 0, f"status {got.rc}: {got.err.strip()}"
    return got


def documented(lab: Lab, port: int, *args: str) -> Run:
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "run.json"
        got = netperf(lab, port, f"--json={file}", *args)
        return Run(got, lib.document(file.read_text()))


def need(what: str, have: Any, want: Any) -> None:
    assert have == want, f"{what}: {have} instead of {want}"


def judge_lines(run: Run) -> None:
    """Each line is printed if and only if its figures call for it, and shows them."""
    own, table = run.final["RECEIVER_SPAN_THROUGHPUT"], run.final["REMOTE_RECV_THROUGHPUT"]
    line = SPAN_LINE.search(run.got.err)
    need(f"a line of {own} and {table}", line is not None, abs(own - table) > DIFFERS * table)
    if line:
        need("its rates", (line[1], line[3]), (f"{own:.2f}", f"{table:.2f}"))
    twice = TWICE_LINE.search(run.got.err)
    need("a line of duplicates", twice is not None, run.far["udp.duplicated"] > 0)
    if twice:
        need("its counts", [int(n) for n in twice.groups()],
             [run.far["udp.duplicated"], run.far["udp.sent"], run.far["udp.lost"],
              run.far["udp.sent"] - run.far["udp.received"]])


def judge_figures(run: Run, size: int = SIZE) -> None:
    """The document's figures are the receiver's."""
    far, final = run.far, run.final
    for figure, name in (("UNIQUE_DATAGRAMS", "udp.unique"), ("DUPLICATE_DATAGRAMS", "udp.duplicated"),
                         ("LOST_DATAGRAMS", "udp.lost"), ("RECEIVER_SPAN", "udp.receive_span_s")):
        need(figure, final[figure], far[name])
    bytes_behind = far["udp.received_bytes"] - size
    rate = bytes_behind * 8 / far["udp.receive_span_s"]
    assert abs(rate - far["udp.receive_span_bps"]) < 1e-6 * rate, (rate, far["udp.receive_span_bps"])
    need("udp.received_bytes", far["udp.received_bytes"], size * far["udp.received"])


def slow_router(lab: Lab, port: int) -> str:
    lab.count()
    run = documented(lab, port, "-l", "1")
    came, lost_here = lib.nft_counters(lab.server)["came"], lib.snmp(lab.server, "UdpRcvbufErrors")
    judge_figures(run)
    judge_lines(run)
    if lost_here == 0:
        need("udp.received", run.far["udp.received"], came)
    # BURST bytes may pass at once, in addition to the rate; and on a machine that delayed the receiver, its buffer
    # may be full when it reads the first datagram.
    at_once = 8 * (BURST + PACKET + run.far["flow.rcvbuf"] // 2)
    most = (RATE * run.far["udp.receive_span_s"] + at_once) * SIZE / PACKET
    behind = 8 * (run.far["udp.received_bytes"] - SIZE)
    assert behind <= most, f"{behind} bits in {run.far['udp.receive_span_s']} s of a link that carries {most:.0f}"
    return (f"{run.final['RECEIVER_SPAN_THROUGHPUT']:.2f} of {RATE * SIZE / PACKET / 1e6:.2f} Mbit/s; "
            f"{run.final['REMOTE_RECV_THROUGHPUT']:.2f} in the table")


def queued_stream(lab: Lab, port: int) -> str:
    """Data in a queue on the path at the end of the test still arrive: the client does not cut them off."""
    lib.must(["ip", "-n", lab.ns("near"), "route", "change", "default", "via", "10.77.1.2"])   # RoutedLab's route forces cubic
    slow = ("dev", "right", "root", "tbf", "rate", "3mbit", "burst", str(BURST), "limit", "2000000")
    lib.must(["tc", "-n", lab.ns("router"), "qdisc", "change", *slow])
    lib.must([*lab.server, "nft", "; ".join([
        "add table inet lab", "add counter inet lab resets",
        "add chain inet lab pre { type filter hook prerouting priority -300; }",
        "add rule inet lab pre tcp flags & rst == rst counter name resets"])])
    out = lib.must(lab.command(port, "-P", "0", "-l", "3", "--", "-s", "600K", "-K", "reno", "-k", "ELAPSED_TIME"), 60)
    need("resets", lib.nft_counters(lab.server)["resets"], 0)
    elapsed = float(out.split("=")[1])
    assert elapsed > 4.2, f"the queue was too short to tell: {elapsed} s"
    return f"{elapsed} s"


def table_stays(lab: Lab, port: int) -> str:
    """Without a request for evidence, the output is exactly netperf's."""
    got = netperf(lab, port, "-l", f"-{COUNT * SIZE}")
    need("standard error", got.err, "")
    need("rows", len([line for line in got.out.splitlines() if line]), 2)
    got = netperf(lab, port, "-l", f"-{COUNT * SIZE}", "--explain")
    assert SPAN_LINE.search(got.err), got.err  # 400 datagrams arrive for a third of a second after the sender's end
    need("rows", len([line for line in got.out.splitlines() if line]), 2)
    return ""


def selected(lab: Lab, port: int) -> str:
    """Selecting one of these figures enables them."""
    got = netperf(lab, port, "-l", f"-{COUNT * SIZE}", specific=("-k", ",".join(FIGURES)))
    found = dict(line.split("=") for line in got.out.split())
    need("names", sorted(found), sorted(FIGURES))
    need("datagrams", int(found["UNIQUE_DATAGRAMS"]) + int(found["LOST_DATAGRAMS"]), COUNT)
    assert float(found["RECEIVER_SPAN_THROUGHPUT"]) > 0 and float(found["RECEIVER_SPAN"]) > 0, found
    return " ".join(found.values())


def real_receiver(lab: Lab) -> str:
    """The real receiver does not report them, and nothing is printed about them."""
    program = str(lib.real_netperf() / "netserver")
    with lib.Daemon(prefix=lab.server, program=program, grace=None) as daemon:
        got = netperf(lab, daemon.port, "-l", "1", "--explain", specific=("-k", ",".join(FIGURES)))
    assert not SPAN_LINE.search(got.err) and not TWICE_LINE.search(got.err), got.err
    found = dict(line.split("=") for line in got.out.split())
    need("figures", {float(value) for value in found.values()}, {-1.0})
    return ""


def suite(report: lib.Report) -> None:
    if os.geteuid() != 0:
        lib.skip("not root")
    said = lib.run([lib.netperf(), "--json=/dev/null", "-t", "UUID"], 20).err
    if "no such option" in said or "libjansson" in said:
        lib.skip(said.strip())
    lib.skip_if(lib.no_lab())
    with Lab() as lab:
        with lib.Daemon(prefix=lab.server) as daemon:
            report.each((slow_router, table_stays, selected, queued_stream), lab, daemon.port)
        report.case("the real netserver receives", lambda: real_receiver(lab))


if __name__ == "__main__":
    lib.main(suite)
