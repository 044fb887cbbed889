"""Data connections that are made one after the other (--ramp), and from several local addresses (--source-range):
they count from when they are established, interim results give their number, and failures are reported in one line.
"""

import os
import re
import signal
import socket
import struct
import time
from functools import partial
from typing import Any, Dict, List, Set

import alone
import lib

HOST = "127.0.0.1"
FLOWS, RATE = 40, 80            # the last one is due after half a second, of two
PATIENCE = 60
TESTS = ("TCP_RR", "TCP_STREAM", "TCP_MAERTS")
CONNECT = ("CONNECT_P50", "CONNECT_P90", "CONNECT_P99", "CONNECT_MAX")

# Options, and the error line about them.
REFUSED = (
    ("--ramp 0 --flows 2", ("--ramp", "1 to 1000000")),
    ("--ramp 5/h --flows 2", ("--ramp", "5/h")),
    ("--ramp many --flows 2", ("--ramp", "many")),
    ("--ramp 5", ("--ramp", "--flows")),
    ("--ramp 5 --flows 2 -t TCP_CRR", ("--ramp", "TCP_CRR", "TCP_RR")),
    ("--ramp 5 --flows 2 -t UDP_RR", ("--ramp", "UDP_RR", "TCP_RR")),
    ("--ramp 5 --flows 2 -l -100", ("--ramp", "-l")),
    ("--ramp 5 --flows 2 -l 0", ("--ramp", "-l")),
    ("--ramp 5 --flows 2 --warm-up 1", ("--ramp", "--warm-up")),
    ("--ramp 5 --flows 2 --both", ("--ramp", "--both")),
    ("--ramp 5 --flows 2 --spread", ("--ramp", "--spread")),
    ("--ramp 5 --flows 2 -- -F", ("--ramp", "-F")),
    ("--ramp 5 --flows 2 --engine sync", ("--engine sync", "waits for each connection")),
    ("--ramp 5 --flows 2 -N", ("--flows", "-N")),
    ("--ramp 5 -t UUID", ("--ramp", "UUID")),
    ("--source-range 127.0.0.1 --flows 2", ("--source-range", "not a range")),
    ("--source-range 127.0.0.9-127.0.0.1 --flows 2", ("--source-range", "below the first")),
    ("--source-range 127.0.0.9-127.0.1.1 --flows 2", ("--source-range", "/24")),
    ("--source-range 127.0.0.2-127.0.0.9", ("--source-range", "--flows")),
    ("--source-range 127.0.0.2-127.0.0.9 --flows 2 -t UDP_RR", ("--source-range", "UDP_RR", "TCP_RR")),
    ("--source-range 127.0.0.2-127.0.0.9 --flows 2 -t TCP_CRR", ("--source-range", "TCP_CRR", "TCP_RR")),
    ("--source-range 127.0.0.2-127.0.0.9 --flows 2 -- -L 127.0.0.3", ("--source-range", "-L")),
    ("--source-range 127.0.0.2-127.0.0.9 --flows 2 --wire", ("--source-range", "--wire")),
    ("--source-range 192.0.2.10-192.0.2.11 --flows 2", ("--source-range", "192.0.2.10", "ip addr add")),
    ("--source-range 127.0.0.2-127.0.0.9 -t UUID", ("--source-range", "UUID")),
)


def client(port: int, test: str, *args: str, flows: int = FLOWS, rate: int = RATE, length: int = 2) -> "List[str]":
    return lib.command(port, "-t", test, "-l", str(length), "--flows", str(flows), "--ramp", f"{rate}/s", *args)


def document_of(got: lib.Result) -> Any:
    assert got.rc == 0, got
    return lib.document(got.out)


def flows_come_about(port: int, test: str, threads: str, *args: str) -> str:
    got = lib.run(client(port, test, "--json", "-D", "0.25", "--threads", threads, *args), timeout=PATIENCE)
    document = document_of(got)
    assert not got.err, got
    one, final = document["iterations"][0], document["final"]
    assert document["plan"]["ramp_per_s"] == RATE and document["plan"]["engine"] == {"near": "epoll", "far": "epoll"}
    ramp, rows = one["ramp"], one["flows"]
    assert ramp["flows"] == ramp["up"] == ramp["connect"]["count"] == final["FLOWS"] == len(rows) == FLOWS, ramp
    assert not ramp["failed"], ramp
    for row, figure in (("bytes_sent", "LOCAL_BYTES_SENT"), ("bytes_received", "LOCAL_BYTES_RECVD")):
        assert sum(flow[row] for flow in rows) == final[figure], (row, rows, final[figure])
    times = [final[name] for name in CONNECT]
    assert 0 < times[0] and times == sorted(times), times
    up = [interim["flows_up"] for interim in document["interim"]]
    assert up == sorted(up) and 0 < up[0] < up[2] and up[-1] <= FLOWS, up
    return f"connected in {times[0]} us, at most {times[-1]}; up: {up}"


def an_even_ramp(port: int) -> None:
    """A flow that started late had less time; there is no other difference."""
    document = document_of(lib.run(client(port, "TCP_RR", "--json"), timeout=PATIENCE))
    rows = document["iterations"][0]["flows"]
    first, last = rows[: FLOWS // 4], rows[-FLOWS // 4:]
    assert sum(row["transactions"] for row in first) > sum(row["transactions"] for row in last), rows


def interim_lines(port: int) -> None:
    """The number of flows in interim results, in each style; without a ramp there is none."""
    some = {"flows": 8, "rate": 16, "length": 1}
    got = lib.run(client(port, "TCP_RR", "-D", "0.25", **some), timeout=PATIENCE)
    lines = [line for line in got.out.splitlines() if line.startswith("Interim result")]
    assert got.rc == 0 and len(lines) >= 3, got
    assert all(re.search(r" ending at \d+\.\d{3} \d+ flows up$", line) for line in lines), lines
    got = lib.run(client(port, "TCP_RR", "-D", "0.25", "--", "-k", "THROUGHPUT,CONNECT_P50", **some), timeout=PATIENCE)
    assert re.search(r"(?m)^NETPERF_FLOWS_UP\[2\]=\d$", got.out), got
    got = lib.run(lib.command(port, "-t", "TCP_RR", "-l", "1", "-D", "0.25", "--flows", "8"), timeout=PATIENCE)
    assert got.rc == 0 and "Interim" in got.out and "flows up" not in got.out, got


def the_time_may_be_short(port: int, test: str) -> str:
    """The test ends before all connections have been made: neither end waits for the rest."""
    since = time.monotonic()
    document = document_of(lib.run(client(port, test, "--json", "--threads", "2", *lib.PACED, flows=1000, rate=20,
                                          length=1), timeout=PATIENCE))
    took = time.monotonic() - since
    ramp = document["iterations"][0]["ramp"]
    assert 0 < ramp["up"] < 100 and ramp["flows"] == 1000 and not ramp["failed"], ramp
    assert document["final"]["FLOWS"] == ramp["up"], document["final"]
    assert took < 3 + lib.SLACK, took
    return f"{ramp['up']} up, {took:.1f} s in all"


def many_at_once(port: int) -> str:
    document = document_of(lib.run(client(port, "TCP_RR", "--json", flows=1000, rate=1000), timeout=PATIENCE))
    ramp = document["iterations"][0]["ramp"]
    assert 100 < ramp["up"] == ramp["connect"]["count"] and not ramp["failed"], ramp
    return f"{ramp['up']} up, at most {document['final']['CONNECT_MAX']} us"


def a_session_that_is_killed_ends_it() -> None:
    with lib.Daemon(grace=None) as daemon, \
            lib.Started(client(daemon.port, "TCP_RR", flows=100, rate=50, length=30)) as started:
        assert started.measuring()
        os.kill(lib.children(daemon.pid)[-1], signal.SIGKILL)
        got = started.finish(20)
    assert got.rc == 1, got
    lib.error_line(got, "netperf", "TCP_RR")


# --- several local addresses ---------------------------------------------------------------------

NET = f"127.{1 + os.getpid() % 250}.{os.getpid() // 250 % 250}"    # other tests on this machine may do the same
FIRST, LAST, STRANGER = 10, 13, 16      # host numbers; the prefix of the first two ends at 15


def connections_from() -> "Dict[int, Dict[int, int]]":
    """For each address of the range: the local ports of connections from NET.LAST, and their remote ports
    (proc_net_tcp(5)). The table changes while it is read: some may be missing, others there twice."""
    found: "Dict[int, Dict[int, int]]" = {last: {} for last in range(FIRST, LAST + 1)}
    with open("/proc/net/tcp", encoding="ascii") as table:
        for line in table:
            row = line.split(None, 4)
            near = socket.inet_ntoa(struct.pack("=I", int(row[1].split(":")[0], 16))) if row[3] == "01" else ""
            if near.startswith(f"{NET}.") and int(near.split(".")[3]) in found:
                found[int(near.split(".")[3])][int(row[1].split(":")[1], 16)] = int(row[2].split(":")[1], 16)
    return found


def is_answered(last: int, port: int) -> bool:
    """Whether a request from NET.LAST is served. Where the kernel filters, other addresses can't even connect."""
    try:
        with socket.create_connection((HOST, port), 0.4, (f"{NET}.{last}", 0)) as s:
            s.sendall(b"x")
            return s.recv(1) != b""
    except OSError:
        return False


def they_go_round(port: int, test: str, *args: str) -> None:
    cmd = lib.command(port, "-t", test, "-l", "30", "--flows", "10", "--json", "--source-range",
                      f"{NET}.{FIRST}-{NET}.{LAST}", *args, *lib.PACED)

    seen: "List[Set[int]]" = [set() for _ in range(FIRST, LAST + 1)]

    def spread() -> bool:
        for last, ports in connections_from().items():
            seen[last - FIRST].update(ports)
        return [len(ports) for ports in seen] == [3, 3, 2, 2]

    with lib.Started(cmd) as started:
        assert lib.wait_for(spread, 20), (seen, started.said()[-200:])
        started.signal(signal.SIGINT)
        document = document_of(started.finish(PATIENCE))
    assert document["final"]["FLOWS"] == len(document["iterations"][0]["flows"]) == 10, document["final"]


def strangers_are_not_heard(port: int) -> None:
    """During the ramp the daemon accepts connections, but only from the range's prefix."""
    cmd = client(port, "TCP_RR", "--source-range", f"{NET}.{FIRST}-{NET}.{LAST}", *lib.PACED, flows=100, rate=1, length=6)
    with lib.Started(cmd) as started:
        assert lib.wait_for(lambda: bool(connections_from()[FIRST]), 20), started.said()
        data = next(iter(connections_from()[FIRST].values()))
        assert not is_answered(STRANGER, data) and not is_answered(1, data)
        assert is_answered(LAST, data)
        got = started.finish(PATIENCE)
    assert got.rc in (0, 1), got


def of_ipv6(port: int) -> None:
    got = lib.run(lib.command(port, "-t", "TCP_RR", "-l", "1", "--flows", "4", "--source-range", "::1-::1", "--ramp",
                              "20", "--json", host="::1"), timeout=PATIENCE)
    if "could not establish" in got.err:
        raise lib.Skipped("no IPv6")
    assert document_of(got)["final"]["FLOWS"] == 4, got


# --- scarce ports, in a network namespace of its own --------------------------------------------------

def with_twenty_ports(*args: str, **more: Any) -> lib.Result:
    """A daemon and a client with few local ports."""
    return alone.under("ipv4/ip_local_port_range", "40000 40019", PATIENCE, *client(12865, "TCP_RR", *args, **more))


def those_that_fail_are_counted() -> str:
    """The daemon's listener has one of the ports, of which there are as many as flows."""
    got = with_twenty_ports("--json", flows=20, rate=100, length=1)
    document = document_of(got)
    ramp = document["iterations"][0]["ramp"]
    count = ramp["failed"]["EADDRNOTAVAIL"]
    assert set(ramp["failed"]) == {"EADDRNOTAVAIL"} and count + ramp["up"] == 20, ramp
    assert document["final"]["FLOWS"] == len(document["iterations"][0]["flows"]) == ramp["up"], document["final"]
    assert got.err.count("\n") == 1 and f"{count} of 20 data connections failed: EADDRNOTAVAIL {count}" in got.err, got
    return got.err.strip()


def more_addresses_have_more_ports() -> None:
    got = with_twenty_ports("--json", "--source-range", "127.0.0.10-127.0.0.13", flows=60, rate=100, length=2)
    ramp = document_of(got)["iterations"][0]["ramp"]
    assert ramp["up"] > 2 * 20 and not ramp["failed"], ramp  # a busy machine is late with the rest


def too_few_ports_are_refused() -> None:
    got = with_twenty_ports(flows=30, rate=100, length=1)
    assert got.rc == 1 and not got.out, got
    lib.error_line(got, "netperf", "--flows 30", "20 local ports", "ip_local_port_range")


def suite(report: lib.Report) -> None:
    with lib.Daemon() as daemon:
        for args, says in REFUSED:
            report.case(f"refused: {args}", partial(lib.refused, daemon.port, args, says))
        for test in TESTS:
            report.case(f"flows come about: {test}, 1", partial(flows_come_about, daemon.port, test, "1"))
        report.cases([(f"flows come about: {test}, 3,2", partial(flows_come_about, daemon.port, test, "3,2", *lib.PACED))
                      for test in TESTS] +
                     [(f"the time may be short: {test}", partial(the_time_may_be_short, daemon.port, test))
                      for test in TESTS], 2 * len(TESTS))
        report.each((an_even_ramp, interim_lines, many_at_once), daemon.port)
        for test in TESTS:
            report.case(f"they go round: {test}", partial(they_go_round, daemon.port, test))
        report.case("they go round: in a ramp", partial(they_go_round, daemon.port, "TCP_RR", "--ramp", "20"))
        report.each((strangers_are_not_heard, of_ipv6), daemon.port)
    report.each((more_addresses_have_more_ports, a_session_that_is_killed_ends_it, those_that_fail_are_counted,
                 too_few_ports_are_refused))


if __name__ == "__main__":
    lib.main(suite)
