#!/usr/bin/env python3
"""The judge of tests/laws, without a bed: what is right breaks no law, and each planted fault breaks the one that is there
for it. With --long the bed itself, for an hour."""

import copy
import math
import subprocess
import sys
from functools import partial
from typing import Any, Callable, Dict, List, Tuple

import lib

sys.path.insert(0, str(lib.TOP / "tests/laws"))
try:
    import numpy as np
    from bed import End, Seen
    from case import Case, made
    from laws import judge, limit
    from witness import Course, Packets, course
except ImportError as fault:
    lib.skip(f"no Python module {fault.name}")

BEGAN = 1_700_000_000.0
STARTED = "2023-11-14T22:13:20.100Z"    # a tenth of a second later


def steady(begin: float, seconds: float, size: int, number: int) -> Course:
    return Course(begin + np.arange(number) * seconds / number, np.full(number, size))


def none() -> Course:
    return Course(np.zeros(0), np.zeros(0, int))


def right(case: Case) -> Seen:
    """The results of a faultless program on a faultless path."""
    begin, number = BEGAN + 0.1, 1000 if case.stream else 100
    size = 1250 if case.stream else 1
    if case.bits or case.count:
        number = round(case.bits / 8 / size or case.count / size) if case.stream else round(case.bits or case.count)
    sent = steady(begin - case.warm, case.length + case.warm, size, round(number * (case.length + case.warm)))
    there = Course(sent.at + case.delay / 1000, sent.size)
    back = none() if case.stream else Course(sent.at + case.rtt, sent.size)
    counted = round(number * case.length)
    moved = counted * size
    rate = number * size * 8e-6
    metrics: "Dict[str, Any]" = {
        "THROUGHPUT": rate if case.stream else float(number), "ELAPSED_TIME": case.length, "LOCAL_BYTES_SENT": moved,
        "REMOTE_BYTES_RECVD": moved, "LOCAL_SEND_CALLS": counted, "REMOTE_RECV_CALLS": counted, "LOCAL_SEND_SIZE": size,
        "LOCAL_SEND_THROUGHPUT": rate, "REMOTE_RECV_THROUGHPUT": rate, "MIN_LATENCY": case.rtt * 1e6 + 50,
        "MEAN_LATENCY": case.rtt * 1e6 + 120, "P50_LATENCY": case.rtt * 1e6 + 100, "P90_LATENCY": case.rtt * 1e6 + 200,
        "P99_LATENCY": case.rtt * 1e6 + 300, "MAX_LATENCY": case.rtt * 1e6 + 400, "LOST_DATAGRAMS": 0, "LOST_REQUESTS": 0}
    if case.rr:
        metrics.update(LOCAL_BYTES_RECVD=moved, REMOTE_BYTES_SENT=moved, RESPONSE_SIZE=1, REQUEST_SIZE=1, THROUGHPUT=float(number))
    if case.open:
        metrics.update(DUE_OPERATIONS=counted, SENT_OPERATIONS=counted, UNANSWERED_OPERATIONS=0)
    run = {"started": STARTED, "complete": True, "metrics": metrics, "latency": {"count": counted},
           "flows": [{"bytes_sent": moved, "bytes_received": 0 if case.stream else moved, "retransmissions": None}]}
    document = {"result": "complete", "final": metrics, "iterations": [run]}
    figures = {name: f"{value:.2f}" for name, value in metrics.items() if value is not None}
    shows = {"csv": ",".join(figures.values()), "prometheus": "".join(
        f'netperf_{name.lower()}{{test="T"}} {value}\n' for name, value in metrics.items())}
    stamps = f"netperf: --stations: near end: {counted} transactions; stamps: {counted} queued, {counted} sent, {counted} received"
    return Seen(0, case.warm + case.length + 0.3, "", stamps if case.stations else "", figures, [], document, End(sent, back),
                End(Course(back.at - case.delay / 1000, back.size), there), BEGAN, shows=shows)


def figure(seen: Seen, **values: Any) -> None:
    seen.document["iterations"][0]["metrics"].update(values)   # type: ignore[index]


def fact(seen: Seen, **values: Any) -> None:
    seen.__dict__.update(values)


def a_flow(seen: Seen, **values: Any) -> None:
    seen.document["iterations"][0]["flows"][0].update(values)   # type: ignore[index]


def missing(seen: Seen) -> None:
    """A tenth of the datagrams is dropped on the path."""
    keep = np.arange(len(seen.far.inn.at)) % 10 > 0
    seen.far.inn = Course(seen.far.inn.at[keep], seen.far.inn.size[keep])


Plant = Callable[[Seen], None]
STREAM, RR = made(), made(test="TCP_RR", delay=5)
UDP, OPEN = made(test="UDP_STREAM", rate="5M"), made(test="UDP_RR", rate="100", delay=100, warm=1.0)
PLANTS: "List[Tuple[str, Case, Plant]]" = [
    ("1_bytes_are", STREAM, lambda s: figure(s, REMOTE_BYTES_RECVD=3_000_000)),
    ("1_bytes_are", STREAM, lambda s: figure(s, THROUGHPUT=75.8)),
    ("1_bytes_are", OPEN, lambda s: figure(s, LOCAL_BYTES_RECVD=250)),
    ("1_bytes_are", OPEN, lambda s: figure(s, LOCAL_BYTES_SENT=250, MAX_LATENCY=700_000.0)),
    *(("1_bytes_are", made(test="UDP_RR", rate="100", warm=1.0, seconds=4.0), partial(figure, LOCAL_BYTES_RECVD=100, MAX_LATENCY=most))
      for most in (None, math.inf)),      # null in a document, inf in lines: one was never answered
    ("1_bytes_are", UDP, lambda s: figure(s, LOCAL_BYTES_SENT=623_750)),
    ("1_bytes_are", made(test="UDP_STREAM", rate="5M", warm=1.0, down="link", down_s=0.5),
     lambda s: figure(s, REMOTE_BYTES_RECVD=1_750_000)),
    ("1_rate_by", STREAM, lambda s: figure(s, REMOTE_RECV_THROUGHPUT=9.0)),
    ("1_interim", made(mbit=1, interim=1.0), lambda s: fact(s, interim=[(4.19, 1.0)])),
    ("2_elapsed", RR, lambda s: figure(s, ELAPSED_TIME=1.22)),
    ("2_elapsed", STREAM, lambda s: figure(s, ELAPSED_TIME=6.5)),
    ("2_elapsed", STREAM, lambda s: fact(s, waits=[(BEGAN + 1.0, 6.0)]) or figure(s, ELAPSED_TIME=6.5)),     # before the end of the test
    ("2_the_window", made(test="TCP_RR", warm=1.0), lambda s: s.document["iterations"][0].update(   # type: ignore[index]
        started="2023-11-14T22:13:19.100Z")),
    ("2_a_count", made(test="TCP_RR", count=100), lambda s: figure(s, THROUGHPUT=99.0)),
    ("2_a_count", made(count=1), lambda s: figure(s, LOCAL_BYTES_SENT=2_000_000, REMOTE_BYTES_RECVD=1_250_000)),
    ("3_loss", UDP, lambda s: figure(s, LOST_DATAGRAMS=1)),
    ("3_loss", UDP, lambda s: figure(s, REMOTE_RECV_CALLS=499)),
    ("3_loss", UDP, missing),
    ("3_loss", OPEN, lambda s: figure(s, LOST_REQUESTS=85)),
    ("4_latencies", RR, lambda s: figure(s, P90_LATENCY=60_000.0)),
    ("4_latencies", RR, lambda s: figure(s, MIN_LATENCY=9_000.0)),
    ("4_latencies", OPEN, lambda s: figure(s, P99_LATENCY=140737488355, MAX_LATENCY=140737488355)),
    ("4_latency_by", RR, lambda s: figure(s, MEAN_LATENCY=25_000.0, MAX_LATENCY=30_000.0)),
    ("5_due", OPEN, lambda s: figure(s, DUE_OPERATIONS=101)),
    ("5_due", OPEN, lambda s: figure(s, UNANSWERED_OPERATIONS=3)),
    ("5_due", OPEN, lambda s: figure(s, UNANSWERED_OPERATIONS=5, THROUGHPUT=95.0, LOCAL_BYTES_RECVD=95)),
    ("5_a_stream", made(rate="5M"), lambda s: figure(s, REMOTE_RECV_THROUGHPUT=0.5)),
    ("5_a_stream", made(rate="5M"), lambda s: fact(s, waits=[(BEGAN + 1.1, 6.0)]) or figure(s, REMOTE_RECV_THROUGHPUT=0.5)),
    ("5_a_stream", made(test="UDP_STREAM", rate="5M", size=1400), lambda s: fact(s, full=400) or figure(s, REMOTE_RECV_THROUGHPUT=0.5)),
    ("5_a_pace", made(test="TCP_RR", wait="10ms"), lambda s: figure(s, THROUGHPUT=250.0)),
    ("5_a_pace", made(wait="10ms", burst=20), lambda s: figure(s, LOCAL_BYTES_SENT=3_000_000)),
    ("6_parts", STREAM, lambda s: a_flow(s, bytes_sent=1)),
    ("6_parts", STREAM, lambda s: a_flow(s, bytes_sent=0, bytes_received=5, retransmissions=0)),
    ("6_parts", RR, lambda s: s.document["iterations"][0].update(latency={"count": 5})),    # type: ignore[index]
    ("7_one", STREAM, lambda s: s.figures.update(THROUGHPUT="11.00")),
    ("7_one", STREAM, lambda s: s.shows.update(csv=s.shows["csv"].replace("10.00", "11.00", 1))),
    ("7_one", STREAM, lambda s: s.shows.update(prometheus=s.shows["prometheus"].replace("10.0", "11.0", 1))),
    ("8_both", STREAM, lambda s: figure(s, LOCAL_BYTES_SENT=1_000_000)),
    ("8_both", made(engine="zerocopy"), lambda s: s.document["iterations"][0].update(near={"engine.name": "sync"})),    # type: ignore[index]
    ("8_both", made(test="TCP_RR", stations=1), lambda s: fact(
        s, said="netperf: --stations: near end: 13 transactions; stamps: 0 queued, 0 sent, 13 received")),
    ("8_both", made(test="TCP_RR", stations=1), lambda s: fact(s, said="")),
    ("8_nothing", made(warm=1.0, frozen="signal", frozen_s=0.5), lambda s: figure(s, REMOTE_BYTES_RECVD=2_800_000)),
    ("9_what", made(down="cut", down_s=1.0), lambda s: fact(s, events=[(BEGAN + 1, "cut")])),
    ("9_what", made(test="TCP_RR", frozen="near", frozen_s=4.0), lambda s: (
        fact(s, events=[(BEGAN, "near"), (BEGAN + 4, "over")]), figure(s, ELAPSED_TIME=6.3))),  # type: ignore[func-returns-value]
    ("10_it_goes", STREAM, lambda s: fact(s, status=1, said="netperf: lost the control connection")),
    ("10_it_goes", STREAM, lambda s: s.document["iterations"][0].update(complete=False)),    # type: ignore[index]
    ("10_it_ends", STREAM, lambda s: fact(s, took=65.0)),
    ("10_it_ends", STREAM, lambda s: fact(s, status=None)),
]


def holds(case: Case) -> None:
    found = judge(case, right(case))
    assert not found, found


def catches(law: str, case: Case, plant: Plant) -> str:
    seen = copy.deepcopy(right(case))
    plant(seen)
    found = [breach for breach in judge(case, seen) if breach.law.startswith(law)]
    assert found, f"{case}: no law was broken by what was planted"
    return found[0].line


def late_by_load() -> None:
    """An end that was waiting for a processor when its time was up may end later by that time."""
    seen = right(RR)
    figure(seen, ELAPSED_TIME=1.4)
    fact(seen, waits=[(BEGAN + 1.3, 0.9), (BEGAN + 1.55, 0.3)])
    assert not [breach for breach in judge(RR, seen) if breach.law.startswith("2_elapsed")]


def answered_behind_the_end() -> None:
    """A far end that was stopped answers after the window what was sent in it."""
    case = made(test="TCP_RR", rate="500", seconds=2.0)
    seen = right(case)
    for way in (seen.far.out, seen.near.inn):
        way.at = np.where(way.at > BEGAN + 1.5, way.at + 0.7, way.at)
    figure(seen, MAX_LATENCY=700_000.0)
    assert not [breach for breach in judge(case, seen) if breach.law.startswith("1_bytes")]


def reads_a_capture() -> None:
    """Payload counts once, when all bytes before it have arrived: with retransmissions, reordering, and a repeated
    SYN."""
    at = [0.0, 0.1, 1.0, 2.0, 3.0, 4.0, 5.0]
    seq = [999, 999, 1000, 1200, 1100, 1100, 1300]      # the segment at 1100 arrives late, and twice
    size = [0, 0, 100, 100, 100, 100, 50]
    flags = [2, 2, 16, 16, 16, 16, 16]
    columns = [np.array(x) for x in (at, [True] * 7, [6] * 7, [5] * 7, [9] * 7, seq, flags, size)]
    got = course(Packets(*columns))
    assert list(zip(got.at, got.size)) == [(1.0, 100), (3.0, 100), (3.0, 100), (5.0, 50)], got
    assert got.within(0, 2.5) == 100 and got.total() == 350


def draws_are_valid() -> str:
    """tidy() is complete: what netperf would refuse is never drawn."""
    from hypothesis import HealthCheck, Phase, given, settings
    from case import cases
    drawn: "set[Case]" = set()

    @settings(max_examples=250, database=None, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(cases)
    def collect(case: Case) -> None:
        drawn.add(case)

    collect()
    for case in drawn:
        words = case.command()
        at = words.index("--")
        if not case.real:
            lib.must([lib.netperf(), *words[:at], "--dry-run", "--json=/dev/null", *words[at:]], 20)
        assert made(**case.told()) == case, case
    return f"{len(drawn)} cases, the longest of {max(map(limit, drawn)):.0f} s"


def suite(report: lib.Report) -> None:
    if lib.LONG:
        bed = [sys.executable, str(lib.TOP / "tests/laws/run.py"), "--minutes", "60", "--keep-going"]
        status = subprocess.run(bed, check=False).returncode
        if status == 77:
            lib.skip("no bed")
        report.check("an hour of laws", status == 0)
        return
    for case in sorted({case for _, case, _ in PLANTS}, key=str):
        if not case.disturbed:
            report.case(f"right: {case}", lambda case=case: holds(case))    # type: ignore[misc]
    for law, case, plant in PLANTS:
        report.case(f"caught by {law}", lambda law=law, case=case, plant=plant: catches(law, case, plant))    # type: ignore[misc]
    report.each((late_by_load, answered_behind_the_end, reads_a_capture, draws_are_valid))


if __name__ == "__main__":
    lib.main(suite)
