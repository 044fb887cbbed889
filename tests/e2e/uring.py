"""The engine uring with a daemon that has rings and one that has none: evidence, a pace, refusals. test_engine has
the counts.
"""

import resource
import time
from functools import partial
from typing import Any, List

import lib
from flows import each_has_a_pace

PATIENCE = 60
RINGS = 3


def why_no_rings() -> str:
    """Why this end has no rings; empty if it has."""
    got = lib.run([lib.netperf(), "-t", "TCP_RR", "--engine", "list"], timeout=20)
    row = next(line for line in got.out.splitlines() if line.split()[0] == "uring")
    return row.split("not here: ")[1] if "not here: " in row else ""


def both(doc: Any) -> List[Any]:
    return [{what: doc["iterations"][0][end][f"engine.{what}"] for what in ("name", "submissions", "completions")}
            for end in ("near", "far")]


def its_calls_are_counted(port: int) -> None:
    for test, flows in (("TCP_RR", "20"), ("TCP_STREAM", "2"), ("TCP_MAERTS", "2"), ("UDP_STREAM -- -m 500", "1")):
        doc = lib.document_of(port, test, "--engine", "uring,uring", "--flows", flows)
        assert doc["plan"]["engine"] == {"near": "uring", "far": "uring"}, doc["plan"]
        for engine in both(doc):
            assert engine["name"] == "uring", engine
            assert engine["completions"] > 0 and engine["submissions"] > 0, engine


def figures(port: int, test: str, length: str, *args: str) -> "dict[str, float]":
    name, *specific = test.split()
    got = lib.run(lib.command(port, "-t", name, "-l", length, "-P", "0", "--engine", "uring,uring", *args, "--",
                              *specific, "-k",
                              "LOCAL_SEND_CALLS,LOCAL_BYTES_SENT,LOCAL_BYTES_RECVD,REMOTE_BYTES_SENT,REMOTE_BYTES_RECVD"),
                  timeout=PATIENCE)
    assert got.rc == 0, got
    return {name: float(value) for name, value in (row.split("=") for row in got.out.split())}


def it_keeps_a_pace(port: int) -> None:
    """At most a burst for each connection in an interval; fewer on a busy machine."""
    for test, size, length in (("TCP_RR", 1, "1"), ("TCP_RR", 1, "-200"), ("TCP_RR -b 4", 1, "1"),
                               ("TCP_STREAM -m 1000", 1000, "1"), ("TCP_STREAM -m 1000", 1000, "-200000"),
                               ("UDP_STREAM -m 1000 -R 1", 1000, "1")):
        since = time.monotonic()
        got = figures(port, test, length, "-b", "5", "-w", "10", "--flows", "3")
        intervals = (time.monotonic() - since) / 0.01 + 1
        begun = got["LOCAL_BYTES_SENT"] / size
        assert 10 <= begun <= 15 * intervals + 15, (test, length, intervals, got)  # 15: those in flight


def each_datagram_is_accounted_for(port: int) -> None:
    """Sent datagrams are received or lost, including those not yet read when the end mark arrives."""
    for size in ("100", "2000"):
        doc = lib.document_of(port, f"UDP_STREAM -- -m {size}", "--engine", "uring,uring", "--warm-up", "0", length="0.4")
        near, far = doc["iterations"][0]["near"], doc["iterations"][0]["far"]
        assert far["udp.duplicated"] == 0 and far["udp.foreign"] == 0 and far["udp.reordered"] == 0, far
        assert near["flow.sends"] == near["udp.sent"] == far["udp.unique"] + far["udp.lost"], (near, far)
        assert far["udp.unique"] == far["udp.received"] == far["flow.receives"], far


def a_warm_up_is_left_and_gone_on_from(port: int) -> None:
    for test in ("TCP_RR", "TCP_STREAM", "TCP_MAERTS", "UDP_STREAM -- -m 100"):
        flows = "1" if test.startswith("UDP") else "4"
        doc = lib.document_of(port, test, "--engine", "uring,uring", "--warm-up", "0.2", "--flows", flows, "--threads", "2" if flows == "4" else "1")
        assert doc["result"] == "complete", doc["reason"]
        assert all(engine["completions"] > 0 for engine in both(doc)), both(doc)


def a_session_has_as_many_threads_as_rings(port: int) -> None:
    doc = lib.document_of(port, "TCP_RR", "--engine", "uring,uring", "--flows", "12", "--threads", "6", "-l", "-1000")
    assert doc["plan"]["threads"] == {"near": 6, "far": RINGS}, doc["plan"]


def tests_of_one_session_take_turns(port: int) -> None:
    """More tests than there are rings."""
    got = lib.run(lib.command(port, "-t", "TCP_RR", "-l", "-400", "-P", "0", "-i", "4,4", "-I", "95,90", "--engine",
                              "uring,uring", "--flows", "4", "--threads", "2"), timeout=PATIENCE)
    assert got.rc == 0 and got.out, got


def many_requests_end_at_little_cost(port: int) -> None:
    """Processor time of a short test with many connections, of which the end once took 12 times as much as all of
    epoll's."""
    def seconds(engine: str) -> float:
        doc = lib.document_of(port, "TCP_RR", "--engine", engine, "--flows", "2000", "-l", "-4000")
        near = doc["iterations"][0]["near"]
        return near["work.user_s"] + near["work.system_s"]
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < 2100:
        raise lib.Skipped("no 2000 connections: the limit of descriptors (ulimit -Hn) is less than 2100")
    pairs = [(seconds("uring,uring"), seconds("epoll,epoll")) for _ in range(3)]
    assert min(uring for uring, _ in pairs) < 3 * min(epoll for _, epoll in pairs), pairs


def what_it_does_not_drive_is_refused(port: int) -> None:
    for args, says in (("-t UDP_RR --engine uring", "answer"),
                       ("-t TCP_CRR --engine uring", "before the test"),
                       ("-t TCP_STREAM --flows 2 --ramp 5 --engine uring", "before the measured part"),
                       ("-t TCP_SENDFILE --engine uring", "sendfile"),
                       ("-t STREAM_STREAM --engine uring", "TCP and UDP"),
                       ("-t TCP_MAERTS -b 3 -w 10 --engine uring", "paced")):
        lib.refused(port, args, ("--engine", says))


def without_rings_it_is_refused_in_a_line(port: int) -> None:
    got = lib.run(lib.command(port, "-t", "TCP_RR", "-l", "1", "-P", "0", "--engine", "sync,uring"), timeout=20)
    assert got.rc != 0, got
    lib.error_line(got, "netperf", "engine uring at the daemon", "start netserver with --uring N", "--max-filters")


def suite(report: lib.Report) -> None:
    lib.skip_if(why_no_rings())
    lib.many_descriptors()
    with lib.Daemon(args=["--uring", str(RINGS), "--max-flows", "2000"]) as daemon:
        report.case("each has a pace", partial(each_has_a_pace, daemon.port, 1, "uring,epoll"))
        report.cases([(case.__name__.replace("_", " "), partial(case, daemon.port))
                      for case in (its_calls_are_counted, it_keeps_a_pace, each_datagram_is_accounted_for,
                                   a_warm_up_is_left_and_gone_on_from, a_session_has_as_many_threads_as_rings,
                                   tests_of_one_session_take_turns, many_requests_end_at_little_cost,
                                   what_it_does_not_drive_is_refused)], 4)
    with lib.Daemon() as daemon:
        report.case("without rings it is refused in a line", partial(without_rings_it_is_refused_in_a_line,
                                                                      daemon.port))


if __name__ == "__main__":
    lib.main(suite)
