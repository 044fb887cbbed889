"""Simultaneous sessions: several flows with a netserver that serves one per session (--flows), and a stream each way
(--both). The netserver is ours behind a relay that disconnects after a greeting, as netperf's own does; --long uses
the real one, too, with every test.
"""

import os
import re
import signal
import socket
from contextlib import suppress
from functools import partial
from typing import Dict, Tuple

import lib
import ours

HOST = "127.0.0.1"
FLOWS = 4
PATIENCE = 60
GREETING = b"PL\0\x10"
Tests = Tuple[Tuple[str, Tuple[str, ...]], ...]
TESTS: Tests = (("TCP_MAERTS", ()), ("TCP_CRR", ()), ("UDP_STREAM", ("-m", "1000")))
OTHERS: Tests = (("TCP_STREAM", ()), ("TCP_SENDFILE", ()), ("TCP_RR", ()), ("TCP_CC", ()), ("UDP_RR", ()))

# Options, and the error line about them; stdout is empty.
REFUSED = (
    ("--flows 2 -- -P ,5000", ("--flows", "port 5000")),
    ("--flows 4 -t TCP_RR -l -3", ("-l -3", "--flows")),
    ("--flows 2 --threads 2", ("--threads", "--threads N,1")),
    ("--flows 2 --warm-up 1", ("--warm-up", "leave it out")),
    ("--flows 1001", ("--flows 1001", "1000 sessions")),
    ("--flows 2 -t TCP_MSS", ("--flows", "TCP_MSS")),
    ("--both -- -P ,5000", ("--both", "port 5000")),
)


def serves_all_iterations() -> None:
    """The control connection serves another test unless its half-close has ended one; not if evidence is wanted."""
    with lib.Daemon(args=["-v", "2"]) as daemon:
        got = lib.run(lib.command(daemon.port, "-t", "TCP_CRR", "-l", "0.1", "-i", "3,3", "--explain"), 20)
        log = daemon.log()
    assert got.rc == 0 and log.count("TCP crr, length") == 3 and log.count("event=session-begin") == 1, (got, log)


class Door(ours.Relay):
    """A relay between our client and our daemon that disconnects clients with a greeting."""

    def serve(self, near: socket.socket) -> None:
        if near.recv(len(GREETING), socket.MSG_PEEK) != GREETING:
            super().serve(near)
        else:
            ours.take(near, ours.FRAME)     # a close with unread bytes would be a reset
            near.close()


def netperf(port: int, *args: str, timeout: float = PATIENCE) -> lib.Result:
    return lib.run(lib.command(port, *args), timeout=timeout)


def figures(got: lib.Result) -> "Dict[str, str]":
    return dict(line.split("=", 1) for line in got.out.splitlines() if "=" in line)


def told(got: lib.Result, sessions: int) -> None:
    """Success, with the line about the sessions and no other."""
    assert got.rc == 0, got
    line = lib.error_line(got._replace(rc=1), "netperf", f"{sessions} sessions at once")
    assert "processes" in line, line


def every_test(port: int, test: str, specific: "Tuple[str, ...]") -> str:
    length = "1" if test == "TCP_MAERTS" else "0.4"     # which the far end ends, by whole seconds
    got = netperf(port, "-t", test, "-l", length, "--flows", str(FLOWS), "--", *specific)
    told(got, FLOWS)
    assert f" : {FLOWS} flows" in got.out.splitlines()[0], got.out
    return got.out.splitlines()[-1]


def counts_are_exact(port: int) -> None:
    want = "THROUGHPUT,LOCAL_SEND_CALLS,REMOTE_RECV_CALLS,FLOWS,LOCAL_BYTES_SENT,REMOTE_BYTES_RECVD,LOCAL_ENGINE"
    got = netperf(port, "-t", "TCP_RR", "-l", "-1001", "--flows", str(FLOWS), "--", "-k", want)
    told(got, FLOWS)
    of = figures(got)
    assert of["LOCAL_SEND_CALLS"] == of["REMOTE_RECV_CALLS"] == "1001", of
    assert of["FLOWS"] == str(FLOWS) and of["LOCAL_ENGINE"] == "sync", of
    of = figures(netperf(port, "-t", "TCP_STREAM", "-l", "-1003000", "--flows", str(FLOWS), "--", "-m", "1000", "-k",
                         want))
    assert of["LOCAL_SEND_CALLS"] == "1003", of
    assert of["LOCAL_BYTES_SENT"] == of["REMOTE_BYTES_RECVD"] == "1003000", of


def flows_add_up(port: int) -> str:
    document = lib.document_of(port, "TCP_RR", "--flows", str(FLOWS), length="0.4")
    final, one = document["final"], document["iterations"][0]
    assert document["plan"]["sessions"] == document["plan"]["flows"] == len(one["flows"]) == FLOWS, document["plan"]
    assert document["plan"]["engine"] == {"near": "sync"}, document["plan"]
    assert sum(row["bytes_sent"] for row in one["flows"]) == final["LOCAL_BYTES_SENT"], one["flows"]
    assert all(row["transactions"] > 0 for row in one["flows"]), one["flows"]
    rate = sum(row["transactions_per_s"] for row in one["flows"])
    assert abs(rate / final["TRANSACTION_RATE"] - 1) < 1e-6, (rate, final["TRANSACTION_RATE"])
    assert one["latency"]["count"] == sum(row["transactions"] for row in one["flows"]), one["latency"]["count"]
    assert len(one["workers"]) == final["THREADS"] == FLOWS, one["workers"]
    assert [row["worker"] for row in one["flows"]] == list(range(FLOWS)), one["flows"]
    assert all(row["cwnd"] > 0 and row["incoming_cpu"] >= 0 for row in one["flows"]), one["flows"]
    assert one["skew"]["near"]["end_us"] > 0 and one["skew"]["far"]["end_us"] is None, one["skew"]
    others = [end["unread"].get(f"foreign.{way}_bytes") for end in (one["near"], one["far"] or one["near"])
              for way in ("out", "in")]
    assert all(why and "sessions" in why for why in others), others
    assert one["near"]["flow.sessions"] == FLOWS, one["near"]
    assert document["explanation"]["values"]["explain.flows_sentence"], document["explanation"]
    return " ".join(str(row["transactions"]) for row in one["flows"])


def a_stream_each_way(port: int, sessions: int, test: str, *args: str) -> str:
    document = lib.document_of(port, test, "--both", *args)
    final, flows = document["final"], document["iterations"][0]["flows"]
    assert document["plan"]["both"] and document["plan"]["sessions"] == sessions, document["plan"]
    assert document["test"]["direction"] == "both", document["test"]
    out, back = final["LOCAL_SEND_THROUGHPUT"], final["LOCAL_RECV_THROUGHPUT"]
    assert out > 0 and back > 0, (out, back)
    arrived = final["REMOTE_RECV_THROUGHPUT"] + back
    assert abs(final["THROUGHPUT"] / arrived - 1) < 1e-6, (final["THROUGHPUT"], arrived)
    assert all((row["bytes_sent"] > 0) != (row["bytes_received"] > 0) for row in flows), flows
    assert len(flows) == 2 * document["plan"]["flows"], flows
    if "--rate" in args:
        assert abs(out - 8) < 0.6 and abs(final["REMOTE_SEND_THROUGHPUT"] - 4) < 0.6, final     # datagrams of 0.5 Mbit
    return f"{out:.0f} and {back:.0f} Mbit/s"


def datagrams_each_way_print_what_arrived(port: int) -> str:
    """For each direction, what was sent, and what the other end received."""
    for _ in range(5):      # on a busy machine less than the rate may be sent now and then, which is said
        got = netperf(port, "-t", "UDP_STREAM", "--both", "-l", "1", "-P", "0", "--rate", "8M,4M", "--", "-m", "1000,1000")
        if not got.err:
            break
    assert got.rc == 0 and not got.err, got
    there, back, total = (list(map(float, got.out.split()[i:j])) for i, j in ((2, 4), (4, 6), (7, 8)))
    assert 7.5 < there[0] < 8.5 and 3.5 < back[0] < 4.5 and there[1] <= 1.01 * there[0] and back[1] <= 1.01 * back[0], got.out
    assert abs((there[1] + back[1]) / total[0] - 1) < 0.05, got.out
    seen = netperf(port, "-t", "UDP_STREAM", "--both", "-l", "1", "--human", "--rate", "8M", "--", "-m", "1000,1000").out
    assert re.search(r"Throughput .*Mbit/s of \S+\s+Mbit/s arrived there, \S+\s+Mbit/s of \S+\s+Mbit/s here", seen, re.S), seen
    lost = re.search(r"Loss +\d+ of (\d+) datagrams", seen)
    assert lost and 1900 < int(lost[1]) < 2100, seen
    return got.out.strip()


def both_ways_print_both_rates(port: int) -> str:
    got = netperf(port, "--both", "-l", "1", "-P", "0", "-f", "m")
    assert got.rc == 0 and not got.err, got
    near, far, out, back, seconds, total, unit = got.out.split()
    assert int(near) > 0 and int(far) > 0 and unit == "10^6bits/s" and float(seconds) < 5, got.out
    assert abs((float(out) + float(back)) / float(total) - 1) < 0.05, got.out
    one = netperf(port, "--both", "-l", "1", "-P", "0", "-v", "0").out
    assert float(one) > 0 and len(one.split()) == 1, one
    return got.out.strip()


def pace_is_that_of_the_sending_half(port: int) -> str:
    """Half of the threads receive, and have no pace."""
    got = netperf(port, "--both", "-l", "2", "-b", "1", "-w", "1", "--", "-m", "100", "-k", "LOCAL_SEND_CALLS,ELAPSED_TIME")
    kept = re.search(r"-b 1 -w 1: (\d+) % of this pace was kept", got.err)
    sent = float(figures(got)["LOCAL_SEND_CALLS"]) / float(figures(got)["ELAPSED_TIME"]) / 10
    assert got.rc == 0 and (not kept or abs(float(kept[1]) - sent) < 2), (got, sent)
    return f"{sent:.0f} %"


def of_a_count_each_way_has_all() -> str:
    """The missing part of a count is that of both directions."""
    with lib.Daemon(grace=None) as daemon, lib.Started(lib.command(daemon.port, "--both", "-l", "-2000000000", "--",
                                                                   "-m", "64")) as client:
        assert client.measuring()
        for pid in daemon.children():
            with suppress(ProcessLookupError):      # the client has ended it already
                os.kill(pid, signal.SIGKILL)
        got = client.finish(PATIENCE)
    assert got.rc == 1, got
    return lib.error_line(got, "netperf", "of 4000000000 bytes", "partial")


def explained(port: int, whose: str) -> str:
    """From the first session's evidence, which is said; the flows' figures are of all."""
    got = netperf(port, "--flows", str(FLOWS), "--explain", "-l", "1", "-b", "1", "-w", "5ms")
    assert got.rc == 0 and re.search("^explain: [a-z-]+: ", got.err, re.M), got
    said = re.search(r"^flows: (shared|own|by-worker|unclear): .*", got.err, re.M)
    assert said and f"{FLOWS} flows" in said[0] and "nan" not in got.err, got.err
    assert re.search(f"^doubts: .*this covers the first of {FLOWS} sessions", got.err, re.M), got.err
    assert whose != "stock" or "the far end reported nothing about its side" in got.err, got.err
    return said[0]


def explained_each_way(port: int) -> str:
    got = netperf(port, "--both", "--explain", "-l", "1")
    assert got.rc == 0 and re.search("^doubts: .*this covers only what this end sends", got.err, re.M), got
    assert "flows: " not in got.err and "sessions" not in got.err, got.err
    return got.err.splitlines()[0]


def too_few_descriptors(port: int) -> None:
    got = lib.run(["sh", "-c", 'ulimit -n 64; exec "$0" "$@"', lib.netperf(), "-H", HOST, "-p", str(port), "--flows",
                   "20"], timeout=20)
    assert got.rc == 1 and not got.out, got
    lib.error_line(got, "netperf", "--flows 20", "ulimit -n")


def interim_lines_show_the_sum(port: int) -> str:
    got = netperf(port, "-t", "TCP_RR", "-l", "2", "-D", "0.5", "-v", "0", "-P", "0", "--flows", str(FLOWS), *lib.PACED)
    told(got, FLOWS)
    rates = [float(rate) for rate in re.findall(r"^Interim result: *([\d.]+) Trans/s", got.out, re.M)]
    whole = float(got.out.split()[-1])
    assert 2 <= len(rates) <= 5, got.out
    assert max(rates) > whole / 2 and min(rates) < whole * 2, (rates, whole)
    return f"{rates}, {whole}"


def interim_lines_begin_with_the_window(port: int) -> str:
    got = netperf(port, "--both", "-l", "2", "-D", "0.5", "-v", "0", "-P", "0", "--warm-up", "1")
    assert got.rc == 0 and not got.err, got
    first = float(re.findall(r"^Interim result: .* over *([\d.]+) seconds", got.out, re.M)[0])
    assert first < 1, got.out
    return f"{first} s"


def a_signal_ends_all(port: int) -> None:
    with lib.Started(lib.command(port, "-t", "TCP_RR", "-l", "60", "--flows", str(FLOWS), "--", "-k",
                                 "TRANSACTION_RATE,ELAPSED_TIME")) as client:
        assert lib.wait_for(lambda: "sessions at once" in client.said(), PATIENCE), client.said()
        assert client.measuring()
        client.signal(signal.SIGINT)
        got = client.finish(PATIENCE)
    told(got, FLOWS)
    of = figures(got)
    assert float(of["ELAPSED_TIME"]) < 30 and float(of["TRANSACTION_RATE"]) > 0, of


def too_many_sessions() -> None:
    """The daemon's own limit: one refused session ends all, and the error line says why."""
    with lib.Daemon(args=["--max-sessions", str(FLOWS - 1)]) as daemon, Door(daemon.port) as door:
        got = netperf(door.port, "-t", "TCP_RR", "-l", "30", "--flows", str(FLOWS), timeout=20)
    assert got.rc not in (0, None) and got.seconds < 25, got
    assert f" of {FLOWS}: " in got.err and "--max-sessions" in got.err, got


def one_test_after_another() -> None:
    with lib.Daemon(args=["--exclusive"]) as daemon:
        got = netperf(daemon.port, "--both", "-l", "1", timeout=30)
    assert got.rc == 1 and "--exclusive" in got.err, got


def suite_of(report: lib.Report, whose: str, port: int, tests: Tests = TESTS) -> None:
    for test, specific in tests:
        report.case(f"{whose}: {FLOWS} flows of {test}", partial(every_test, port, test, specific))
    report.case(f"{whose}: counts are exact", partial(counts_are_exact, port))
    report.case(f"{whose}: interim lines show the sum", partial(interim_lines_show_the_sum, port))
    report.case(f"{whose}: a signal ends all", partial(a_signal_ends_all, port))
    report.case(f"{whose}: both ways print both rates", partial(both_ways_print_both_rates, port))
    report.case(f"{whose}: both ways keep their pace", partial(pace_is_that_of_the_sending_half, port))
    report.case(f"{whose}: too few descriptors", partial(too_few_descriptors, port))
    for args, says in REFUSED:
        report.case(f"{whose}: refused: {args}", partial(lib.refused, port, args, says))
    if report.lacks(f"{whose}: documents", lib.no_documents()):
        return
    report.case(f"{whose}: flows add up", partial(flows_add_up, port))
    report.case(f"{whose}: several explained", partial(explained, port, whose))
    report.case(f"{whose}: each way explained", partial(explained_each_way, port))
    report.case(f"{whose}: a stream each way", partial(a_stream_each_way, port, 2, "TCP_STREAM"))
    report.case(f"{whose}: two each way", partial(a_stream_each_way, port, 4, "TCP_STREAM", "--flows", "2"))
    report.case(f"{whose}: datagrams, two each way", partial(a_stream_each_way, port, 4, "UDP_STREAM", "--flows", "2"))


def suite(report: lib.Report) -> None:
    with lib.Daemon() as daemon:
        with Door(daemon.port) as door:
            suite_of(report, "without plans", door.port)
        report.case("with plans: interim lines begin with the window",
                    partial(interim_lines_begin_with_the_window, daemon.port))
        report.case("with plans: two each way", partial(a_stream_each_way, daemon.port, 2, "TCP_STREAM", "--flows", "2"))
        report.case("with plans: datagrams, two each way",
                    partial(a_stream_each_way, daemon.port, 2, "UDP_STREAM", "--flows", "2", "--rate", "8M,4M"))
        report.case("with plans: datagrams each way", partial(datagrams_each_way_print_what_arrived, daemon.port))
    report.each((too_many_sessions, one_test_after_another, of_a_count_each_way_has_all, serves_all_iterations))


def long(report: lib.Report) -> None:
    with lib.Daemon() as daemon, Door(daemon.port) as door:
        for test, specific in OTHERS:
            report.case(f"without plans: {FLOWS} flows of {test}", partial(every_test, door.port, test, specific))
    report.part("the real netserver", partial(stock, report))


def stock(report: lib.Report) -> None:
    with lib.Daemon(program=str(lib.real_netperf() / "netserver"), grace=None) as daemon:
        suite_of(report, "stock", daemon.port, TESTS + OTHERS)


if __name__ == "__main__":
    lib.main(long if lib.LONG else suite)
