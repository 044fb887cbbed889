"""--stations: how the time of a transaction is spent, from timestamps of both ends, which add up to the round trip."""

import os
import socket
import time
from functools import partial
from typing import Any, Dict, List

import lib

LINKED, PATIENCE = "10.77.0.2", 60
SO_TIMESTAMP = 29  # from asm-generic/socket.h; Python lacks it

REFUSED = (
    ("-t TCP_STREAM --stations", ("--stations", "TCP_RR")),
    ("-t TCP_CRR --stations", ("--stations", "TCP_RR")),
    ("-t TCP_RR --stations=none", ("--stations", "none")),
    ("-t TCP_RR --stations=0", ("--stations", "0")),
    ("-t TCP_RR --stations --flows 2", ("--stations", "--flows")),
    ("-t TCP_RR --stations --rate 100", ("--stations", "--rate")),
    ("-t UDP_RR --stations --engine epoll", ("--stations", "sync")),
    ("-t UDP_RR --stations -- -b 4", ("--stations", "-b")),
    ("-t TCP_RR --stations -N", ("--stations", "-N")),
)


def client(port: int, *args: str, host: str = "127.0.0.1") -> "List[str]":
    return lib.command(port, "--json", *args, host=host)


def stations_of(got: lib.Result, lost: int = 0) -> "Dict[str, Any]":
    """A document's stations: all requested transactions were seen at both ends, except those lost on the link, were
    matched, and add up."""
    assert got.rc == 0, got
    document = lib.document(got.out)
    found: Dict[str, Any] = document["iterations"][0]["stations"]
    for end in ("near", "far"):
        asked = found[end]["asked"]
        assert asked > 0 and min(found[end].values()) >= asked - lost, found[end]
    assert 0 < found["kept"] - lost <= found["matched"] <= found["kept"], (found["matched"], found["kept"])
    whole = found["round_trip"]
    assert sum(part["sum"] for part in found["stations"].values()) == whole["sum"], found
    assert whole["count"] == found["matched"], whole
    return found


def too_few(port: int) -> str:
    """One transaction in a hundred, of five."""
    got = lib.run(lib.command(port, "-t", "TCP_RR", "-l", "-5", "--stations"), PATIENCE)
    said = [line for line in got.err.splitlines() if "too few transactions for one in 100" in line]
    assert got.rc == 0 and said, got
    return said[0]


def median(part: "Dict[str, Any]") -> float:
    """In us."""
    half = part["count"] / 2
    for ns, count in part["cells"]:
        half -= count
        if half <= 0:
            break
    return float(ns / 1e3)


def all_are_matched(port: int, test: str, *args: str) -> str:
    got = lib.run(client(port, "-t", test, "-l", "-20000", *args), PATIENCE)
    found = stations_of(got)
    every = found["every"]
    assert found["near"]["asked"] == found["far"]["asked"] == 19999 // every, (found["near"], found["far"])
    latency = lib.document(got.out)["iterations"][0]["latency"]
    if every == 1:
        assert median(found["round_trip"]) < 1.2 * median(latency) + 20, (median(found["round_trip"]), median(latency))
    assert found["one_way"]["within_us"] < latency["max"] / 1e3, found["one_way"]
    return f"{found['matched']} matched, offset within {found['one_way']['within_us']:.1f} us"


def it_begins_behind_the_warm_up(port: int) -> None:
    got = lib.run(client(port, "-t", "UDP_RR", "-l", "0.5", "--warm-up", "0.5", "--stations=10"), PATIENCE)
    found = stations_of(got)
    all_of_it = lib.document(got.out)["iterations"][0]["latency"]["count"]
    assert abs(found["near"]["asked"] - all_of_it / 10) <= 2, (found["near"], all_of_it)


def it_samples_all_of_a_burst(port: int) -> None:
    """Not only the first transaction, which has to wake both ends."""
    found = stations_of(lib.run(client(port, "-t", "TCP_RR", "-l", "-1000", "-b", "5", "--stations=10"), PATIENCE))
    assert (found["every"], found["near"]["asked"]) == (11, 999 // 11), found["near"]


def it_is_a_table(port: int) -> None:
    got = lib.run([lib.netperf(), "-p", str(port), "-t", "TCP_RR", "-l", "0.5", "--stations"], PATIENCE)
    assert got.rc == 0 and "matched" in got.err, got
    assert all(f"\n{name} " in got.err for name in ("near_send", "wire", "far_work", "round trip")), got.err


def the_real_netserver() -> None:
    with lib.Daemon(program=str(lib.real_netperf() / "netserver"), grace=None) as daemon:
        got = lib.run(client(daemon.port, "-t", "TCP_RR", "-l", "1", "--stations"), PATIENCE)
    assert got.rc != 0 and "--stations" in lib.error_line(got, "netperf", "TCP_RR"), got


def what_waits_in_the_queue(lab: lib.Lab, port: int) -> str:
    """Behind streams from this end, each with several packets in the queue, at 20 Mbit/s."""
    load = client(port, "-t", "TCP_STREAM", "-l", "4", "--flows", "8", host=LINKED)
    with lib.Started([*lab.client, *load]) as stream:
        stream.measuring(1)
        got = lib.run([*lab.client, *client(port, "-t", "UDP_RR", "-l", "1.5", "--stations=1", host=LINKED)], PATIENCE)
        stream.finish(PATIENCE)
    parts = stations_of(got, lost=2)["stations"]   # each takes a second of the 1.5
    queued, wire = median(parts["near_queue"]), median(parts["wire"])
    assert queued > 2000 and queued > 3 * wire and queued > 3 * median(parts["far_queue"]), (queued, wire)
    return f"queue {queued:.0f} us, wire {wire:.0f} us"


def messages_in_pieces(lab: lib.Lab, port: int) -> str:
    """Sending a request takes longer than the far end needs to wake up for its first packet."""
    got = lib.run([*lab.client, *client(port, "-t", "TCP_RR", "-l", "-100", "--stations=5", "--", "-r", "4000,4000",
                                        host=LINKED)], PATIENCE)
    calls = [float(lib.document(got.out)["final"][f"{end}_RECV_CALLS"]) for end in ("LOCAL", "REMOTE")]
    return f"{stations_of(got)['matched']} matched, {calls} calls"


def what_is_far_away(lab: lib.Lab, port: int) -> str:
    got = lib.run([*lab.client, *client(port, "-t", "TCP_RR", "-l", "3", "--stations=1", host=LINKED)], PATIENCE)
    found = stations_of(got)
    wire = found["stations"]["wire"]
    assert wire["min"] >= 40e6, wire
    rest = sum(median(part) for name, part in found["stations"].items() if name != "wire")
    assert rest < 20000, rest
    assert found["one_way"]["within_us"] >= 20000, found["one_way"]
    return f"wire {median(wire):.0f} us, the rest {rest:.0f} us"


def over_a_link(report: lib.Report) -> None:
    for what, case, *options in (("what waits in the queue", what_waits_in_the_queue, "--rate", "20mbit"),
                                 ("what is far away", what_is_far_away, "--delay", "20ms")):
        with lib.Lab(f"stations{os.getpid() % 10000}", *options) as lab, lib.Daemon(lab.server) as daemon, \
                lib.Daemon(lab.server, ["--one-port"]) as one:
            report.case(what, partial(case, lab, daemon.port))
            if case is what_waits_in_the_queue:
                report.case("messages in pieces", partial(messages_in_pieces, lab, daemon.port))
            if case is what_is_far_away:
                report.case(f"{what}, behind a token under way", partial(case, lab, one.port))


def suite(report: lib.Report) -> None:
    """A socket has timestamps throughout: the kernel starts to take them some time after the first request."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stamped, lib.Daemon() as daemon:
        stamped.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMP, 1)
        time.sleep(0.5)
        for args, says in REFUSED:
            report.case(f"refused: {args}", partial(lib.refused, daemon.port, args, says))
        report.case("too few transactions", partial(too_few, daemon.port))
        for test, args in (("TCP_RR", "--stations=1"), ("UDP_RR", "--stations=1"), ("UDP_RR", "--stations -- -r 100,5000"),
                           ("TCP_RR", "--stations=7 -- -r 300,40"), ("UDP_RR", "--stations=3 -H ::1")):
            report.case(f"all are matched: {test} {args}", partial(all_are_matched, daemon.port, test, *args.split()))
        report.each((it_begins_behind_the_warm_up, it_samples_all_of_a_burst, it_is_a_table), daemon.port)
        report.case("the real netserver", the_real_netserver)
        report.part("over a link", partial(over_a_link, report))


if __name__ == "__main__":
    lib.main(suite)
