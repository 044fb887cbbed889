#!/usr/bin/env python3
"""Evidence of both ends, or of one: every option that requests it, against our daemon, one that refuses it, and the
real netperf's, which does not know it. There always is a result, and what the far end could not tell is reported."""

import os
import re
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Callable, Iterable, List, Tuple

import lib

TESTS = ("TCP_STREAM", "TCP_MAERTS", "TCP_SENDFILE", "TCP_RR", "TCP_CRR", "UDP_STREAM", "UDP_RR")
ONE_SIDED = "gives only netperf's results"
AT_ONCE = 4
PACING = 10_000_000    # bytes/s


def measured(port: int, test: str, place: str, *options: str) -> Tuple[lib.Result, Any]:
    """A run with all evidence, and its document."""
    handle, name = tempfile.mkstemp(dir=place)
    os.close(handle)
    document = Path(name)
    document.unlink()
    got = lib.run(lib.command(port, "-t", test, "-l", "1", f"--json={document}", "--explain", "--wire", *options),
                  timeout=30)
    if not document.exists():
        return got, {}
    run = lib.document(document.read_text())
    document.unlink()
    return got, run


def has_result(got: lib.Result, run: Any) -> bool:
    """A classic table, and the document of a complete run."""
    return got.rc == 0 and len(got.out.splitlines()) >= 5 and run.get("result") == "complete"


def each(body: Callable[[str], None], tests: Iterable[str]) -> None:
    """Run a check for all of these tests, several at a time."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(body, tests))


def interrupted(report: lib.Report, port: int, place: str) -> None:
    """A daemon that sends datagrams learns of the client's end from the request for evidence."""
    document = Path(place) / "run.json"
    command = lib.command(port, "-t", "OMNI", "-l", "30", f"--json={document}", "--", "-d", "recv", "-T", "udp")
    got = lib.interrupted(command, after=0.5)
    run = lib.document(document.read_text()) if document.exists() else {}
    far = run["iterations"][0]["far"] if run else None
    said = lib.without_account(got.err)
    report.check("ours, interrupted: evidence of both ends",
                 got.rc == 0 and not said and far is not None and far["flow.sends"] > 0,
                 f"{got} {str(run)[:300]}")
    if run:
        one = run["iterations"][0]
        report.check("ours, interrupted: the time holds all that counts",
                     one["near"]["udp.receive_span_s"] <= one["elapsed"] and
                     one["near"]["flow.bytes_received"] == one["near"]["udp.received_bytes"],
                     f"{one['near'].get('udp.receive_span_s')} s in {one['elapsed']}")


def latencies(report: lib.Report, port: int, place: str) -> None:
    """The document has latencies with any engine; the end that responds has none."""
    for test, *words in (("TCP_RR",), ("UDP_RR", "--", "-b", "3"), ("TCP_CRR",),
                         ("TCP_RR", "--flows", "4", "--threads", "2")):
        got, run = measured(port, test, place, "-l", "-300", *words)
        near, far = ((run["iterations"][0][end] if run else {}) for end in ("near", "far"))
        final = run["final"] if run else {}
        told = [final.get(f"{what}_LATENCY", -2) for what in ("MIN", "P50", "MEAN", "P99", "MAX")]
        report.check(f"{' '.join((test, *words))}: latencies stand once",
                     0 < told[0] <= told[1] <= told[3] <= told[4] and told[0] <= told[2] <= told[4] and
                     not any(name.startswith("flow.latency") for name in [*near, *far]), f"{told} {got.err}")
        if test == "TCP_RR":
            report.check(f"{' '.join((test, *words))}: both ends' congestion control",
                         bool(near.get("tcp.congestion")) and bool(far.get("tcp.congestion")), str(far.get("tcp.congestion")))


def told_apart(report: lib.Report, port: int, place: str, ours: bool) -> None:
    """Responses have IDs if the far end supports them; if not, the document says so."""
    for sizes, width in (("1,1", 1), ("64,4", 4)):
        got, run = measured(port, "UDP_RR", place, *lib.PACED, "--", "-r", sizes)
        near = run["iterations"][0]["near"] if run else {}
        if ours:
            report.check(f"ours, UDP_RR -r {sizes}: ids", near.get("flow.id_bytes") == width,
                         f"{got} {str(near)[:500]}")
        else:
            report.check(f"stock, UDP_RR -r {sizes}: no ids", got.rc == 0 and near.get("flow.responses_surplus", 9) <= near.get("flow.requests_lost", 0)
                         and "knows no ids" in near["unread"].get("flow.id_bytes", ""), f"{got} {str(near)[:500]}")


def pace(test: str) -> "Tuple[str, ...]":
    """At full speed a single test is enough, and some tests would show in the sockets' state."""
    return () if test in ("TCP_STREAM", "TCP_CRR") else lib.PACED


def both_sides(report: lib.Report, port: int, place: str, test: str) -> None:
    got, run = measured(port, test, place, *pace(test))
    if not report.check(f"ours, {test}: a result", has_result(got, run), f"{got} {str(run)[:300]}"):
        return
    near, far = (run["iterations"][0][end] or {} for end in ("near", "far"))
    report.check(f"ours, {test}: evidence of both ends", "flow.role" in near and "flow.role" in far,
                 f"{list(near)[:9]} {list(far)[:9]}")
    report.check(f"ours, {test}: the daemon's thread and counters could be read",
                 far.get("thread.cpu_share", -1) >= 0 and "moved.seconds" in far
                 and "host.kernel" in far, f"unread: {far.get('unread')}")
    queues = [key for end in (near, far) for key in end if key.endswith(".samples.queued_in")]
    report.check(f"ours, {test}: queues of a socket that lasts",
                 len(queues) == (0 if test == "TCP_CRR" else 2), f"of {len(queues)} ends")
    said = run["explanation"] or {"text": "", "values": {}}
    report.check(f"ours, {test}: an explanation, printed and put down",
                 f"explain: {said['values'].get('explain.limit')}: {said['text']}\n" in got.err,
                 f"{said} {got.err}")


def one_side(report: lib.Report, name: str, port: int, place: str, test: str) -> None:
    got, run = measured(port, test, place, *pace(test))
    if not report.check(f"{name}, {test}: a result", has_result(got, run), f"{got} {str(run)[:300]}"):
        return
    near, far = (run["iterations"][0][end] for end in ("near", "far"))
    report.check(f"{name}, {test}: evidence of this end", "flow.role" in (near or {}), str(near)[:300])
    report.check(f"{name}, {test}: why there is none of the far end",
                 far is None and ONE_SIDED in str(run["far"]["why"]), str(run["far"]))
    report.check(f"{name}, {test}: standard error says so", ONE_SIDED in got.err, got.err)


def facts_of_one_side(report: lib.Report, name: str, port: int) -> None:
    got = lib.run(lib.command(port, "--preflight"), timeout=20)
    report.check(f"{name}: facts of this host alone", got.rc == 0 and ONE_SIDED in got.out + got.err, str(got))


def costs_no_time(report: lib.Report, port: int, place: str) -> None:
    """What an end collects after the data phase does not count in the other end's test."""
    lib.watch_wakes()
    longer, late = 1.0, 0.0
    for _ in range(20):  # a busy machine takes time for other reasons
        since = time.monotonic()
        _, run = measured(port, "TCP_STREAM", place, "-l", "0.3")
        near, far = (run["iterations"][0][end] for end in ("near", "far"))
        longer, late = near["flow.seconds"] - far["flow.seconds"], lib.late_since(since)
        if longer < 0.004 + late:
            break
    report.check("the test is no longer for the evidence", longer < 0.004 + late,
                 f"by {longer * 1e3:.1f} ms, of which the machine may have taken {late * 1e3:.1f}")


def sampled(report: lib.Report, port: int, place: str) -> None:
    """The sampling interval is the user's at both ends. A busy machine may delay some samples, but not all."""
    for option, interval_s in (((), 0.02), (("--sample-interval", "5"), 0.005)):
        got, run = measured(port, "TCP_RR", place, *lib.PACED, *option)
        ends = [run["iterations"][0][end] or {} for end in ("near", "far")] if run else []
        times = [end.get("tcp.samples.t_s", ()) for end in ends]
        most = [end.get("flow.seconds", 0) / (0.75 * interval_s) + 1 for end in ends]
        apart = [sorted(b - a for a, b in zip(one, one[1:]))[len(one) // 4] if len(one) > 3 else 9 for one in times]    # lower quartile
        report.check(f"samples {' '.join(option) or 'of 20 ms, as with --explain'}: {[*map(len, times)]}, {apart} s apart",
                     len(times) == 2 and all(len(one) <= m for one, m in zip(times, most))
                     and all(interval_s / 2 < one < 3 * interval_s for one in apart), f"up to {most}: {got}")
    refused = lib.run(lib.command(port, "--json", "--sample-interval", "0"), timeout=20)
    report.check("no time between two samples", refused.rc != 0 and "--sample-interval" in refused.err
                 and len(refused.err.splitlines()) == 1, str(refused))


def behind_a_warm_up(port: int, place: str, flows: str) -> str:
    """Accumulated times exclude a warm-up of a second with data in flight, in the window's figures and in the
    samples. Bytes are positions in the stream."""
    got, run = measured(port, "TCP_MAERTS", place, "--warm-up", "1", "--flows", flows)
    far = run["iterations"][0]["far"]
    busy, at_us = far["tcp.samples.busy_us"], [1e6 * t for t in far["tcp.samples.t_s"]]
    told = f"{busy[0]} at {at_us[0]}, {busy[-1]} at {at_us[-1]}, {far['tcp.busy_us']} at last"
    assert busy[0] <= at_us[0] + 3e5 and 0 < busy[-1] <= far["tcp.busy_us"] + 1e4, told
    assert far["tcp.samples.bytes_sent"][-1] > far["tcp.bytes_sent"], far["tcp.bytes_sent"]
    return told


def of_one_clock(report: lib.Report, port: int, place: str) -> None:
    """Two ends on one machine use the same clock, and agree about their connection."""
    got, run = measured(port, "TCP_STREAM", place, "--sample-interval", "20", "--", "-q", str(PACING))
    report.check("one clock: a document", has_result(got, run), str(got))
    if not run:
        return
    near, far = (run["iterations"][0][end] for end in ("near", "far"))
    report.check("one clock: it has one name", re.fullmatch(r"[0-9a-f]{8}-\d+", near["clock.boot"]) is not None and
                 near["clock.boot"] == far["clock.boot"] and abs(near["clock.begin_s"] - far["clock.begin_s"]) < 10,
                 f"{near['clock.boot']} {far['clock.boot']}")
    sent = near["tcp.bytes_sent"] - near["tcp.retransmitted_bytes"]
    # the FIN has a sequence number, too
    report.check("one clock: all that was sent was received", sent in (far["tcp.bytes_received"],
                 far["tcp.bytes_received"] - 1), f"{sent} {far['tcp.bytes_received']}")
    lists = [near[f"tcp.samples.{name}"] for name in ("bytes_acked", "bytes_sent", "retransmitted_bytes")]
    report.check("one clock: acknowledged was what was sent", all(acked <= out - again + 1 for acked, out, again in
                 zip(*lists)) and all(values == sorted(values) for values in lists), str(lists))
    report.check("one clock: a window is shifted by what its owner says", near["tcp.send_scale"] ==
                 far["tcp.receive_scale"] and 0 <= near["tcp.receive_scale"] <= 14, str(near["tcp.send_scale"]))
    report.check("one clock: the pacing asked for", near.get("flow.pacing_asked_bps") == 8 * PACING and
                 "flow.pacing_asked_bps" not in far, str(near.get("flow.pacing_asked_bps")))


def plain_afterwards(report: lib.Report, name: str, port: int) -> None:
    """Greetings leave no state behind in a daemon."""
    got: List[lib.Result] = [lib.run(lib.command(port, "-t", test, "-l", "-1000"), timeout=20) for test in ("TCP_STREAM", "TCP_RR")]
    report.check(f"{name}: and serves as ever", all(g.rc == 0 for g in got), str(got))


def plan(port: int, *options: str) -> "list[str]":
    return lib.command(port, "-t", "TCP_RR", "-l", "-50", *options)


def not_planned(port: int, *options: str) -> str:
    """What netperf's messages can't express is not requested from a netperf daemon: one line names the option."""
    return lib.error_line(lib.run(plan(port, *options), 20), "netperf", f"{options[0]}: the netserver", "does not support this")


def stock(report: lib.Report, place: str) -> None:
    with lib.Daemon(program=str(lib.real_netperf() / "netserver"), grace=None) as daemon:
        each(partial(one_side, report, "stock", daemon.port, place), TESTS)
        facts_of_one_side(report, "stock", daemon.port)
        told_apart(report, daemon.port, place, False)
        report.case("stock: --engine ,epoll", partial(not_planned, daemon.port, "--engine", ",epoll"))
        plain_afterwards(report, "stock", daemon.port)


def suite(report: lib.Report) -> None:
    with tempfile.TemporaryDirectory() as place:
        with lib.Daemon() as daemon:
            each(partial(both_sides, report, daemon.port, place), TESTS)
            costs_no_time(report, daemon.port, place)
            sampled(report, daemon.port, place)
            of_one_clock(report, daemon.port, place)
            for flows in ("1", "3"):
                report.case(f"times behind a warm-up, {flows} flows", partial(behind_a_warm_up, daemon.port, place, flows))
            told_apart(report, daemon.port, place, True)
            latencies(report, daemon.port, place)
            report.case("ours, interrupted", partial(interrupted, report, daemon.port, place))
            plain_afterwards(report, "ours", daemon.port)
        with lib.Daemon(args=["--no-evidence"]) as daemon:
            each(partial(one_side, report, "--no-evidence", daemon.port, place),
                 ("TCP_STREAM", "UDP_STREAM", "TCP_CRR"))
            facts_of_one_side(report, "--no-evidence", daemon.port)
            got = lib.run(plan(daemon.port, "--flows", "3"), 20)
            report.check("--no-evidence: plans are known", got.rc == 0 and not got.err, str(got))
        report.part("the real netserver", partial(stock, report, place))


if __name__ == "__main__":
    os.environ.setdefault("LC_ALL", "C")
    lib.main(suite)
