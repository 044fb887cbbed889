# netvm: modules dccp_ipv4 dccp_ipv6
"""DCCP: streams and transactions, the counts of both ends, planted drops, congestion controls, limits."""

import re
import signal
import socket
from typing import Any

import lib
import strangers

SOME = "meta length > 1000 numgen inc mod 20 == 3"      # of those that are as long as a message with data
STRANGER = "127.0.0.2"
SOCK_DCCP, IPPROTO_DCCP, SOL_DCCP, DCCP_SOCKOPT_SERVICE = 6, 33, 269, 2


def run(daemon: lib.Daemon, test: str, *options: str, length: str = "0.5") -> Any:
    """The document of a run, and its far end's counts."""
    out = lib.must(lib.command(daemon.port, "-t", test, "-l", length, "--json", *options), timeout=60)
    return lib.document(out)


def the_counts_agree(daemon: lib.Daemon, family: str, ccid: int) -> None:
    document = run(daemon, "DCCP_STREAM", "--", "--ccid", str(ccid), "-H", family)
    final = document["final"]
    sent, received = final["LOCAL_SEND_CALLS"], final["REMOTE_RECV_CALLS"]
    assert received > 20, received
    assert final["PROTOCOL_DETAIL"] == f"CCID {ccid}", final["PROTOCOL_DETAIL"]
    assert final["LOCAL_CONG_CONTROL"] == final["REMOTE_CONG_CONTROL"] == f"ccid{ccid}"
    assert sent == received + final["LOST_DATAGRAMS"], (sent, received, final["LOST_DATAGRAMS"])
    assert final["DUPLICATE_DATAGRAMS"] == 0
    near = document["iterations"][0]["near"]
    assert near["dccp.tx_ccid"] == near["dccp.rx_ccid"] == ccid, near
    assert ("dccp.rate_bps" in near) == (ccid == 3), near


def plant(which: str) -> lib.Filter:
    """Drops such packets on their way in."""
    return lib.Filter((), "input", f"meta l4proto dccp {which} counter drop")


def planted_drops_are_counted(daemon: lib.Daemon) -> None:
    """A receiver that has time enough drops none itself: what is lost are the planted ones."""
    with plant(SOME) as drops:
        final = run(daemon, "DCCP_STREAM", "-b", "5", "-w", "10", "--", "-m", "1200", length="1")["final"]
        planted = drops.count()
    sent, received = final["LOCAL_SEND_CALLS"], final["REMOTE_RECV_CALLS"]
    assert planted > 1, planted
    assert sent - received == final["LOST_DATAGRAMS"] == planted, (sent, received, planted)


def transactions_agree(daemon: lib.Daemon) -> None:
    final = run(daemon, "DCCP_RR", "--", "-r", "100,200", length="-200")["final"]
    counts = {name: final[name] for name in ("LOST_REQUESTS", "LOCAL_SEND_CALLS", "REMOTE_SEND_CALLS")}
    assert counts == {"LOST_REQUESTS": 0, "LOCAL_SEND_CALLS": 200, "REMOTE_SEND_CALLS": 200}, counts
    assert final["LOCAL_BYTES_RECVD"] == 200 * 200, final["LOCAL_BYTES_RECVD"]


def lost_requests_are_given_up(daemon: lib.Daemon) -> None:
    with plant(SOME) as drops:
        final = run(daemon, "DCCP_RR", "--", "-r", "1200,1", "-e", "1", length="-40")["final"]
        planted = drops.count()
    assert planted >= 2, planted
    assert final["LOST_REQUESTS"] == planted, (final["LOST_REQUESTS"], planted)
    assert final["REMOTE_SEND_CALLS"] == 40, final["REMOTE_SEND_CALLS"]


def omni_reaches_it(daemon: lib.Daemon) -> None:
    for direction in ("send", "recv", "rr"):
        document = run(daemon, "OMNI", "--", "-T", "dccp", "-d", direction)
        assert document["test"]["protocol"] == "DCCP", document["test"]
        assert document["final"]["THROUGHPUT"] > 0


def flows_and_engines(daemon: lib.Daemon) -> None:
    for engine in ("epoll", "spin"):
        final = run(daemon, "DCCP_STREAM", "--engine", engine)["final"]
        assert final["LOCAL_SEND_CALLS"] == final["REMOTE_RECV_CALLS"] + final["LOST_DATAGRAMS"], (engine, final["LOST_DATAGRAMS"])
    final = run(daemon, "DCCP_RR", "--flows", "3", "--", "-r", "10,20", length="-90")["final"]
    assert final["LOCAL_SEND_CALLS"] >= 90 and final["FLOWS"] == 3


def connect(near: str, far: str, port: int, service: bytes = b"") -> str:
    """What comes of a connection from one address of this machine to another."""
    with socket.socket(socket.AF_INET6 if ":" in far else socket.AF_INET, SOCK_DCCP, IPPROTO_DCCP) as one:
        one.settimeout(3)
        if service:
            one.setsockopt(SOL_DCCP, DCCP_SOCKOPT_SERVICE, service)
        try:
            one.bind((near, 0))
            one.connect((far, port))
        except OSError as fault:
            return type(fault).__name__
    return "connected"


def too_long_is_refused(daemon: lib.Daemon) -> None:
    for options, letter in ((["-m", "70000"], "m"), (["-r", "70000,1"], "r")):
        got = lib.run(lib.command(daemon.port, "-t", "DCCP_STREAM" if letter == "m" else "DCCP_RR", "-l", "1", "--",
                                  *options), timeout=60)
        found = re.search(rf"takes (\d+) at most \(try -{letter} \1\)", got.err)
        assert got.rc == 1 and found, got
        assert 60000 < int(found.group(1)) < 65536, got.err


def a_stranger_is_not_served(daemon: lib.Daemon) -> None:
    """It comes while the client's connection is still being made."""
    data = lib.free_port()
    with plant(f"ip saddr 127.0.0.1 dccp dport {data}"):
        test = lib.Started(lib.command(daemon.port, "-t", "DCCP_RR", "-l", "1", "--", "-P", f",{data}"))
        assert lib.wait_for(lambda: connect(STRANGER, "127.0.0.1", data) == "connected", 10), test.said()
        assert not strangers.connects(STRANGER, data, kind=(SOCK_DCCP, IPPROTO_DCCP))
    got = test.finish(60)
    assert got.rc == 0, got


def a_service_code_is_for_both_ends(daemon: lib.Daemon) -> None:
    for test in ("DCCP_STREAM", "DCCP_RR", "OMNI"):
        for code, shown in (("SC:test", "SC:test"), ("SC=x1A2", "SC=x000001A2")):
            document = run(daemon, test, "--", "--service-code", code, *(["-T", "dccp"] if test == "OMNI" else []), length="-20")
            assert document["final"]["THROUGHPUT"] > 0
            for end in ("near", "far"):
                assert document["iterations"][0][end]["dccp.service"] == shown, (test, end)
    assert "dccp.service" not in run(daemon, "DCCP_STREAM", length="-20")["iterations"][0]["near"]
    data = lib.free_port()
    with lib.Started(lib.command(daemon.port, "-t", "DCCP_RR", "-l", "60", "--", "--service-code", "SC:test",
                                 "-P", f",{data}")) as test:
        assert test.measuring(), test.said()
        said = [connect("127.0.0.1", "127.0.0.1", data, code) for code in (b"", b"tesu", b"test")]
        test.signal(signal.SIGINT)
        test.finish(60)
    assert said == ["OSError", "OSError", "connected"], said    # EBADRQC has no class of its own


def a_named_address_is_admitted(daemon: lib.Daemon) -> None:
    lib.must(lib.command(daemon.port, "-t", "DCCP_STREAM", "-l", "1", "--", "-L", "127.0.0.9"), timeout=60)


def suite(report: lib.Report) -> None:
    with lib.Daemon(args=["--spin", "4"]) as daemon:
        for family in ("127.0.0.1,inet", "::1,inet6"):
            for ccid in (2, 3):
                report.case(f"DCCP_STREAM to {family} by CCID {ccid}: the counts agree",
                            lambda f=family, c=ccid: the_counts_agree(daemon, f, c))
        report.each((planted_drops_are_counted, transactions_agree, lost_requests_are_given_up, omni_reaches_it,
                     flows_and_engines, too_long_is_refused, a_stranger_is_not_served, a_service_code_is_for_both_ends,
                     a_named_address_is_admitted), daemon)


lib.main(suite)
