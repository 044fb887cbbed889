"""The open loop (--rate): requests are due by the clock, whatever was answered. The latencies include the time for
which a server stood still; requests that were never answered are at their top; a generator that can't keep its rate
reports that.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any, Dict, List, Tuple

import lib
from netkit import shown

HOST, LINKED = "127.0.0.1", "10.77.0.2"
RATE, LENGTH = 2000, 3
FROZEN, PERIOD = 0.1, 0.6
PATIENCE = 60
NEVER = (1 << 47) - 1

REFUSED = (
    ("--rate 0", ("--rate", "1 to 10000000")),
    ("--rate many", ("--rate", "many")),
    ("--rate 1.0000000000000000000000000gbitXYZ -t TCP_STREAM", ("--rate", "is not a rate")),
    ("--rate 100 --arrivals seldom", ("seldom", "constant, poisson or burst:K")),
    ("--rate 100 --arrivals burst:1", ("burst:1", "burst:K")),
    ("--arrivals poisson", ("--arrivals", "--rate")),
    ("--rate 100 -t TCP_SENDFILE", ("--rate", "TCP_SENDFILE")),
    ("--rate 100 -t DLCL_RR", ("--rate", "DLCL_RR", "epoll")),
    ("--rate 1m,2m -t TCP_STREAM", ("--rate", "--both")),
    ("--rate auto -t TCP_MAERTS", ("--rate auto", "far end")),
    ("--rate 1m,2m --rate auto -t TCP_MAERTS", ("--rate auto", "far end")),
    ("--rate 1m -t TCP_MAERTS --arrivals poisson", ("--rate", "--arrivals")),
    ("--rate auto:1 -t TCP_RR", ("--rate", "auto:1")),
    ("--rate auto -i 3 -t TCP_RR", ("--rate auto", "-i")),
    ("--rate auto --beside TCP_RR", ("--rate auto", "--beside")),
    ("--rate 1mbit -t TCP_RR", ("--rate", "operations a second")),
    ("--rate 1m -t TCP_STREAM -b 4 -w 10", ("--rate", "-b")),
    ("--rate 100 -t TCP_CRR -- -U", ("--rate", "-U")),
    ("--rate 100 -t TCP_CRR --engine spin", ("--engine spin",)),
    ("--rate 100 -t TCP_RR -l -100", ("--rate", "-l")),
    ("--rate 100 -t TCP_RR -N", ("--rate", "-N")),
    ("--rate 100 -t TCP_RR --flows 2 --ramp 5", ("--rate", "--ramp")),
    ("--rate 100 -t TCP_RR --engine sync", ("--engine sync", "waits for answers")),
    ("--rate 100 -t TCP_CRR --engine uring", ("--engine uring",)),
    ("--rate 100 -t TCP_RR -- -b 4", ("--rate", "-b")),
)


def client(port: int, test: str, *args: str, rate: Any = RATE, length: float = LENGTH, host: str = HOST) -> "List[str]":
    return lib.command(port, "-t", test, "-l", str(length), "--rate", str(rate), "--json", *args, host=host)


def document_of(got: lib.Result) -> Any:
    assert got.rc == 0, got
    return lib.document(got.out)


def percentile(cells: "List[List[int]]", share: float) -> float:
    """In seconds."""
    rank, seen = share * sum(count for _, count in cells), 0
    for bottom, count in cells:
        seen += count
        if seen >= rank:
            return bottom / 1e9
    return NEVER / 1e9


def adds_up(document: Any) -> "Dict[str, Any]":
    one = document["iterations"][0]
    loop, figures = one["open"], one["metrics"]
    due, sent, unanswered = (figures[f"{name}_OPERATIONS"] for name in ("DUE", "SENT", "UNANSWERED"))
    assert loop["lost"] <= unanswered and figures["LATE_OPERATIONS"] <= sent <= due, (loop, figures)
    assert one["latency"]["count"] == loop["since_sent"]["count"] == due, (one["latency"]["count"], figures)
    assert loop["lateness"]["count"] <= sent, loop
    never = sum(count for bottom, count in one["latency"]["cells"] if bottom > NEVER // 2)
    assert never == unanswered, (never, figures)
    return dict(figures)


def all_that_is_due_is_counted(port: int, test: str, *args: str) -> str:
    got = lib.run(client(port, test, "--flows", "3", *args, length=0.5), PATIENCE)
    if "--engine uring: is not available here" in got.err:
        raise lib.Skipped(got.err.strip())
    document = document_of(got)
    figures, one = adds_up(document), document["iterations"][0]
    due, elapsed = figures["DUE_OPERATIONS"], one["elapsed"]
    assert elapsed == 0.5 and figures["SENT_OPERATIONS"] == one["open"]["lateness"]["count"], figures
    asked = args[1].split(",")[0] if args[:1] == ("--engine",) else "epoll"
    assert document["plan"]["engine"]["near"] == asked, document["plan"]
    if "poisson" in args:  # five standard errors
        assert abs(due - RATE / 2) < 5 * (RATE / 2) ** 0.5, figures
        assert 0 <= figures["ARRIVALS_P_VALUE"] <= 1, figures
    else:
        assert due == RATE / 2, figures  # however late they were started, and by however many threads
        assert figures.get("ARRIVALS_P_VALUE") is None, figures
    return f"{figures['UNANSWERED_OPERATIONS']} of {due} not answered, {figures['LATE_OPERATIONS']} late"


def long_requests_are_waited_for(port: int, engine: str, *args: str) -> str:
    """Requests that are being sent at the end of the warm-up or of the test are counted exactly once."""
    for _ in range(4):
        got = lib.run(client(port, "TCP_RR", "--engine", f"{engine},epoll", *args, "--", "-r", "4000000,1", rate=100, length=1), PATIENCE)
        if "is not available here" in got.err:
            raise lib.Skipped(got.err.strip())
        figures = adds_up(document_of(got))
        if figures["UNANSWERED_OPERATIONS"] == 0 and figures["DUE_OPERATIONS"] == 100:
            return f"{figures['DUE_OPERATIONS']} answered"
    busy = any(words in (figures.get("GENERATOR_LIMITS") or "") for words in ("waited for a processor", "were woken late"))
    if figures["UNANSWERED_OPERATIONS"] == 100 - figures["SENT_OPERATIONS"] and busy:
        raise lib.Skipped(figures["GENERATOR_LIMITS"])
    raise AssertionError(figures)


class Freezer(threading.Thread):
    """Stops the daemon's sessions repeatedly, and records the real times."""

    def __init__(self, pid: int) -> None:
        super().__init__()
        self.pid, self.over = pid, threading.Event()
        self.stops: "List[Tuple[float, float]]" = []

    def run(self) -> None:
        while not self.over.wait(PERIOD - FROZEN):
            pids = lib.children(self.pid)
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
            begin = time.monotonic()
            time.sleep(FROZEN)
            end = time.monotonic()
            for pid in pids:
                os.kill(pid, signal.SIGCONT)
            self.stops.append((begin, end))


def frozen(daemon: lib.Daemon, command: "List[str]") -> "Tuple[Any, Freezer]":
    with lib.Started(command) as run:
        assert run.measuring()
        freezer = Freezer(daemon.pid)
        freezer.start()
        got = run.finish(PATIENCE)
        freezer.over.set()
        freezer.join()
    return document_of(got), freezer


def a_closed_loop_can_not_know(daemon: lib.Daemon) -> str:
    """--explain doubts the figures if the server stood still, unless P99 is long, too."""
    command = [lib.netperf(), "-p", str(daemon.port), "-t", "TCP_RR", "-l", str(LENGTH), "--json", "--explain"]
    document, _ = frozen(daemon, command)
    p99 = document["final"]["P99_LATENCY"]
    said = document["explanation"]["values"].get("explain.doubts", "")
    assert "no requests were sent meanwhile" in said or p99 > 1e5 * FROZEN, (p99, document["explanation"])
    return f"P99 {p99} us"


def a_frozen_server_is_in_the_latencies(daemon: lib.Daemon, test: str) -> str:
    """What is due while it is frozen waits for the rest of that time: FROZEN times the rate, each time."""
    document, freezer = frozen(daemon, client(daemon.port, test, rate=RATE // 4))
    one = document["iterations"][0]
    figures = adds_up(document)
    stops = sorted(end - begin for begin, end in freezer.stops[:-1])
    assert len(stops) >= 2, stops
    # At least as many requests as were due while it was stopped waited for the remaining time.
    bound = 0.01 * one["elapsed"]
    theory = least(stops, bound)
    p99 = percentile(one["latency"]["cells"], 0.99)
    assert p99 >= 0.95 * theory, (p99, theory, stops, figures)
    # What the client sends late, waiting for a processor, is answered late.
    assert test != "TCP_RR" or figures["OUTAGE"] < 20 + figures["MAX_LATENESS"] / 1e3, figures
    said = f"p99 {1e3 * p99:.1f} ms" if p99 < 3600 else f"{figures['UNANSWERED_OPERATIONS']} not answered"
    return f"{said}, {1e3 * theory:.1f} by the freezes"


def least(stops: "List[float]", seconds: float) -> float:
    """The minimum latency of what is due in that many seconds: s, where the stops have sum(stop - s)."""
    low, high = 0.0, max(stops)
    for _ in range(50):
        middle = (low + high) / 2
        if sum(max(0.0, stop - middle) for stop in stops) > seconds:
            low = middle
        else:
            high = middle
    return low


def what_is_never_answered_is_at_the_top(daemon: lib.Daemon, test: str) -> str:
    with lib.Started(client(daemon.port, test, rate=200, length=3)) as run:
        assert run.measuring()
        pids = lib.children(daemon.pid)
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            time.sleep(6)
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)
        got = run.finish(PATIENCE)
    document = document_of(got)
    figures = adds_up(document)
    assert figures["UNANSWERED_OPERATIONS"] > 100, figures
    times = document["latency"]
    assert document["final"]["P99_LATENCY"] is document["final"]["MAX_LATENCY"] is None, times
    told = shown.prometheus([document])
    assert shown.keyval(document, "P99_LATENCY,P99.9_LATENCY,MAX_LATENCY") == "P99_LATENCY=inf\nP99.9_LATENCY=inf\nMAX_LATENCY=inf\n"
    assert re.search(r"netperf_p99_latency\{.*\} \+Inf\n(.*\n)*netperf_latency_seconds_sum\{.*\} \+Inf\n", told), told
    assert "were not answered" in got.err, got.err
    return f"{figures['UNANSWERED_OPERATIONS']} of {figures['DUE_OPERATIONS']} not answered"


def a_rate_beyond_what_it_can_is_said(port: int) -> str:
    got = lib.run(client(port, "TCP_RR", rate=10000000, length=0.3), PATIENCE)
    figures = adds_up(document_of(got))
    assert "were sent" in figures["GENERATOR_LIMITS"] and "the load generator was the bottleneck" in got.err, (got.err, figures)
    got = lib.run(client(port, "TCP_RR", "--strict", rate=10000000, length=0.3), PATIENCE)
    assert got.rc == 1 and "--strict: what was sent is not what --rate asks for" in got.err, got
    adds_up(lib.document(got.out))
    return f"{figures['SENT_OPERATIONS']} of {figures['DUE_OPERATIONS']} sent"


def what_limits_is_the_rate(port: int, test: str) -> str:
    """And never the round trip with requests in flight, whose number is unknown."""
    got = lib.run([word for word in client(port, test, "--explain", rate=500, length=2) if word != "--json"], PATIENCE)
    assert got.rc == 0 and "in flight at a time" not in got.err, got
    assert "--rate asks it for 500 transactions a second" in got.err or "the load generator was the bottleneck: " in got.err, got.err
    return [line for line in got.err.splitlines() if line.startswith("explain:")][0]


def a_stream_sends_what_it_is_asked_for(port: int, test: str, rate: float, *args: str) -> str:
    """At each wake-up it sends what is due: in the end, all except what became due since the last one."""
    command = [lib.netperf(), "-p", str(port), "-t", test, "-l", "2", "--json", "--rate", f"{rate / 1e6:g}m", *args]
    got = lib.run(command, PATIENCE)
    final = document_of(got)["final"]
    asked = final["ASKED_RATE"] * 8 * final["LOCAL_SEND_SIZE"]
    assert abs(asked / rate - 1) < 1e-6, (asked, rate)
    luck = 5 * (final["ASKED_RATE"] / 2) ** 0.5 if "poisson" in args else 4
    assert final["SENT_RATE"] <= final["ASKED_RATE"] * final["ELAPSED_TIME"] / 2 + luck, final
    assert final["SENT_RATE"] >= 0.999 * final["ASKED_RATE"] - luck or "that --rate asks for were sent" in got.err, got
    return f"{final['SENT_RATE']:.1f} of {final['ASKED_RATE']:.1f} messages a second"


def a_message_is_one_operation(port: int, engine: str) -> str:
    """However many calls it takes, as the send buffer holds only a sixteenth of it."""
    for _ in range(3):
        got = lib.run([lib.netperf(), "-p", str(port), "-l", "1", "--json", "--rate", "100m", "--flows", "2", "--engine", engine,
                       "--", "-m", "1M", "-s", "64K"], PATIENCE)
        final = document_of(got)["final"]
        if 90 < final["THROUGHPUT"] < 120 and abs(final["SENT_RATE"] * 2**23 / 1e6 / final["THROUGHPUT"] - 1) < 0.1:
            return f"{final['THROUGHPUT']:.1f} Mbit/s, {final['LOCAL_SEND_CALLS']} calls"
    raise AssertionError(final)


def each_way_has_its_rate(port: int) -> str:
    """What arrives differs from what was sent by the buffers' contents at most."""
    got = lib.run([lib.netperf(), "-p", str(port), "-l", "3", "--json", "--both", "--rate", "8m,24m", "--", "-s", "64K",
                   "-S", "64K"], PATIENCE)
    final = document_of(got)["final"]
    rates = [final[name] / 1e6 if final["THROUGHPUT_UNITS"] == "bits" else final[name]
             for name in ("LOCAL_SEND_THROUGHPUT", "LOCAL_RECV_THROUGHPUT")]
    for rate, asked in zip(rates, (8, 24)):
        assert rate <= 1.05 * asked and (rate >= 0.97 * asked or "that --rate asks for" in got.err), (rates, got.err)
    only = lib.run([lib.netperf(), "-p", str(port), "-l", "2", "-t", "TCP_MAERTS", "-P", "0", "-v", "0", "--rate", "16m"], PATIENCE)
    assert only.rc == 0 and float(only.out) < 1.05 * 16 and (float(only.out) > 15 or "received" in only.err), only
    return f"{rates[0]:.2f} and {rates[1]:.2f} Mbit/s; {only.out.strip()} of 16"


def a_large_message_of_the_far_end_is_told(port: int) -> None:
    """The message reports its size, not that of receive calls, and the option that changes it."""
    got = lib.run([lib.netperf(), "-p", str(port), "-l", "0.3", "-t", "TCP_MAERTS", "--rate", "50k"], PATIENCE)
    assert "a message alone is 16384 bytes (try -- -m ,BYTES)" in got.err, got
    got = lib.run([lib.netperf(), "-p", str(port), "-l", "0.3", "-t", "TCP_MAERTS", "--rate", "1m", "--", "-m", ",1000"], PATIENCE)
    assert got.rc == 0 and "a message alone" not in got.err, got


def a_stream_that_can_not_says_so(port: int) -> None:
    got = lib.run([lib.netperf(), "-p", str(port), "-l", "1", "--rate", "900gbit", "--strict"], PATIENCE)
    assert got.rc == 1 and "that --rate asks for were sent" in got.err and "--strict" in got.err, got


def a_generator_that_stands_still_is_told(port: int) -> str:
    with lib.Started(client(port, "TCP_RR", "--strict", rate=RATE // 4)) as run:
        assert run.measuring()
        for _ in range(3):
            time.sleep(0.5)
            os.kill(run.pid, signal.SIGSTOP)
            time.sleep(0.2)
            os.kill(run.pid, signal.SIGCONT)
        got = run.finish(PATIENCE)
    assert got.rc == 1 and "netperf: TCP_RR: the load generator was the bottleneck: " in got.err, got
    figures = adds_up(lib.document(got.out))
    assert figures["MAX_LATENESS"] > 0.19e6, figures
    return f"late by {figures['P99_LATENESS'] / 1e3:.0f} ms and more"


# A 4 ms clock tick, as in kernels without CONFIG_HIGH_RES_TIMERS.
COARSE = """
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>
int timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *old)
{
	struct itimerspec later = *at;
	long ns = at->it_value.tv_nsec + 3999999;

	later.it_value.tv_nsec = ns - ns % 4000000;
	later.it_value.tv_sec += later.it_value.tv_nsec / 1000000000;
	later.it_value.tv_nsec %= 1000000000;
	return (int)syscall(SYS_timerfd_settime, fd, flags, &later, old);
}
"""


def timers_that_are_coarse_are_told(port: int) -> str:
    """Two requests in 4 ms are never due within the spinning time."""
    with tempfile.TemporaryDirectory() as place:
        Path(place, "coarse.c").write_text(COARSE)
        built = lib.run(["cc", "-shared", "-fPIC", "-o", f"{place}/coarse.so", f"{place}/coarse.c"], PATIENCE)
        if built.rc != 0:
            raise lib.Skipped(f"cc: {built.err.strip()}")
        got = lib.run(["env", f"LD_PRELOAD={place}/coarse.so", *client(port, "TCP_RR", "--strict", rate=500)], PATIENCE)
    assert got.rc == 1 and "netperf: TCP_RR: the load generator was the bottleneck: " in got.err, got
    figures = adds_up(lib.document(got.out))
    assert figures["P99_LATENESS"] > 1e3 and figures["LATE_OPERATIONS"] > 0.4 * figures["SENT_OPERATIONS"], figures
    return f"late by {figures['P99_LATENESS'] / 1e3:.1f} ms and more"


# When datagrams left by lab0, by the kernel's clock: a line for each, with its ports, until stdin is closed.
CAPTURE = """
import select, socket, struct, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
s.bind(("lab0", 3))
s.setsockopt(socket.SOL_SOCKET, 35, 1)  # SO_TIMESTAMPNS
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
print("ready", flush=True)
seen = []
while s in select.select([s, sys.stdin], [], [])[0]:    # to the last packet
    packet, rest, _, sender = s.recvmsg(200, 100)
    ours = sender[1] == 0x800 and sender[2] == socket.PACKET_OUTGOING and packet[9] == socket.IPPROTO_UDP
    if ours and packet[24:26] != bytes((0, 8)):  # an empty one marks the end
        seconds, ns = struct.unpack("@qq", rest[0][2])
        seen.append(f"{packet[20:24].hex()} {seconds}.{ns:09}")
print(*seen, sep=chr(10))
"""


def a_capture_agrees(lab: lib.Lab, port: int, arrivals: str) -> str:
    """When packets left, by the kernel's clock: not later than this end reports, except for delays between its clock
    and the wire."""
    rate, held = 500, 0.3
    with subprocess.Popen([*lab.client, sys.executable, "-c", CAPTURE], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as capture:
        assert capture.stdout is not None and capture.stdout.readline() == "ready\n"
        got = lib.run([*lab.client, *client(port, "UDP_RR", "--arrivals", arrivals, rate=rate, length=2, host=LINKED)],
                      PATIENCE)
        seen = [line.split() for line in capture.communicate(timeout=PATIENCE)[0].splitlines()]
    figures, data = adds_up(document_of(got)), Counter(ports for ports, _ in seen).most_common(1)[0][0]
    sent = [float(at) for ports, at in seen if ports == data]
    assert len(sent) == figures["SENT_OPERATIONS"], (len(sent), figures)
    gaps = sorted(later - one for one, later in zip(sent, sent[1:]))
    if arrivals == "constant":
        off = [at - i / rate for i, at in enumerate(sent)]
        late = max(off) - min(off)
        assert late <= figures["MAX_LATENESS"] / 1e6 + held, (late, figures)
        return f"late by {1e6 * late:.0f} us at most, {figures['MAX_LATENESS']:.0f} by its own account"
    # Of an exponential distribution a share of 1/e is above the mean: by five times the error of that, and of what came
    # late none is, and all that was held with it.
    above = sum(gap > 1 / rate for gap in gaps) / len(gaps)
    slack = 5 * (0.368 * 0.632 / len(gaps)) ** 0.5 + figures["LATE_OPERATIONS"] / len(gaps)
    assert abs(above - 0.368) < slack, (above, figures)
    return f"{100 * above:.1f} % of the gaps are above the mean, p {figures['ARRIVALS_P_VALUE']:.2g}"


def an_outage_is_as_long_as_what_it_lost(lab: lib.Lab, port: int, flows: int, seconds: float, rate: int = RATE // 2) -> str:
    """According to a counter of dropped packets, of which each flow has its share."""
    with lib.Started([*lab.client, *client(port, "UDP_RR", "--flows", str(flows), rate=rate, host=LINKED)]) as run:
        assert run.measuring()
        time.sleep(0.5)
        lib.must([*lab.server, "nft", "; ".join((
            "add table inet lab", "add counter inet lab lost",
            "add chain inet lab pre { type filter hook prerouting priority -300; }",
            "add rule inet lab pre iifname lab0 udp length > 8 counter name lost drop"))])
        time.sleep(seconds)
        lib.wait_for(lambda: lib.nft_counters(lab.server)["lost"] > seconds * rate / 2, 2)  # a busy machine sends them later
        lib.must([*lab.server, "nft", "flush chain inet lab pre"])
        lost = lib.nft_counters(lab.server)["lost"]
        lib.must([*lab.server, "nft", "delete table inet lab"])
        got = run.finish(PATIENCE)
    figures = adds_up(document_of(got))
    assert lost > seconds * rate / 2 and figures["UNANSWERED_OPERATIONS"] >= lost, (lost, figures)
    truth, slack = 1e3 * lost / rate, 1e3 * 2 * flows / rate
    more = 1e3 * (figures["UNANSWERED_OPERATIONS"] - lost) / rate  # lost on a busy machine
    late = (figures["MAX_LATENESS"] + 3 * figures["P50_LATENCY"]) / 1e3  # the last request or answer before it, on a busy machine
    assert truth - slack - late <= figures["OUTAGE"] <= truth + slack + more, (truth, figures)
    assert 0 < figures["OUTAGE_BEGIN"] < LENGTH, figures
    return f"{figures['OUTAGE']:.1f} ms, {truth:.1f} by what was lost"


def an_outage_of_a_stream(lab: lib.Lab, port: int, flows: int) -> str:
    """2,000 datagrams a second: 137 ms, by their sequence numbers and timestamps. A busy machine sends late, and
    then in bursts: it may try again."""
    for _ in range(4):
        with lib.Started([*lab.client, *client(port, "UDP_STREAM", "--flows", str(flows), "--", "-m", "125", rate="2M",
                                               host=LINKED)]) as run:
            assert run.measuring()
            time.sleep(0.5)
            lab.drop(lab.server, "udp length > 8")
            time.sleep(0.137)
            lib.must([*lab.server, "nft", "delete table inet lab"])
            got = run.finish(PATIENCE)
        document = document_of(got)
        figures, far = document["final"], document["iterations"][0]["far"]
        assert far["udp.flows"] == flows and far["udp.sent"] - far["udp.unique"] == far["udp.lost"] > 0, far
        longest = 1e3 * far["udp.loss_burst_longest"] * flows / 2000
        assert 0 < figures["OUTAGE_BEGIN"] < LENGTH, figures
        if figures["OUTAGE"] > 100 and abs(figures["OUTAGE"] / longest - 1) < 0.25:
            return f"{figures['OUTAGE']:.1f} ms, {longest:.1f} by the longest burst"
    raise AssertionError((longest, figures["OUTAGE"]))


def an_outage_of_connections(lab: lib.Lab, port: int, test: str, rate: str, flows: int) -> str:
    """TCP retransmits after at most the same time again plus one time-out."""
    seconds = 0.3
    for _ in range(4):
        with lib.Started([*lab.client, *client(port, test, "--flows", str(flows), "--", *(() if test == "TCP_RR" else ("-m", "1250")),
                                               rate=rate, host=LINKED)]) as run:
            assert run.measuring()
            time.sleep(0.5)
            begun = time.monotonic()
            lab.drop(lab.server, "ip protocol tcp")
            time.sleep(seconds)
            lib.must([*lab.server, "nft", "delete table inet lab"])
            longest = time.monotonic() - begun
            got = run.finish(PATIENCE)
        figures = document_of(got)["final"]
        if 1e3 * seconds - 50 < figures["OUTAGE"] < 2e3 * longest + 400 and 0 < figures["OUTAGE_BEGIN"] < LENGTH:
            return f"{figures['OUTAGE']:.0f} ms, of {1e3 * longest:.0f} at most"
    raise AssertionError((figures["OUTAGE"], longest))


def an_outage_that_is_not_over(lab: lib.Lab, port: int, test: str, rate: str) -> str:
    """Is one until the end of the test. Datagrams of control and those that end a test get through."""
    with lib.Started([*lab.client, *client(port, test, "--", *(() if "RR" in test else ("-m", "1250")), rate=rate, host=LINKED)]) as run:
        assert run.measuring()
        time.sleep(0.5)
        lab.drop(lab.server, "ip protocol tcp" if "TCP" in test else "udp length > 8")
        time.sleep(LENGTH)
        lib.must([*lab.server, "nft", "delete table inet lab"])
        got = run.finish(PATIENCE)
    figures = document_of(got)["final"]
    over = (figures["OUTAGE_BEGIN"] or 0) + figures["OUTAGE"] / 1e3
    late = (figures["MAX_LATENESS"] or 0) / 1e6
    assert figures["OUTAGE"] > 100 and abs(over - LENGTH) < 0.3 + late, figures
    return f"{figures['OUTAGE']:.0f} ms from {figures['OUTAGE_BEGIN']:.2f} s on"


def knee_of(lab: lib.Lab, port: int, *args: str) -> "Tuple[Any, float]":
    got = lib.run(lab.command(port, "-l", "1", "--json", "--rate", "auto", *args), 3 * PATIENCE)
    document = document_of(got)
    curve = document["curve"]
    fine = [step["rate"] for step in curve["steps"] if step["too_much"] is None]
    much = [step["rate"] for step in curve["steps"] if step["too_much"] is not None]
    if not fine or not much:  # the generator had no processor
        return document, 0.0
    arrived = {step["rate"]: step["arrived"] for step in curve["steps"]}[max(fine)]
    assert curve["knee"] == int(arrived * max(fine)) and max(fine) < min(much) <= 1.06 * max(fine), curve
    assert len(document["iterations"]) == 1 and f"the knee is at {curve['knee'] / 1e6:.2f} Mbit/s" in got.err, got
    return document, curve["knee"]


def the_banner_of_a_search_has_no_rate(port: int) -> None:
    got = lib.run([lib.netperf(), "-p", str(port), "-t", "TCP_RR", "-l", "0.05", "--rate", "auto"], PATIENCE)
    assert " : rate auto constant\n" in got.out, got


def interim_results_of_a_search_are_of_one_run_each(port: int) -> None:
    got = lib.run([lib.netperf(), "-p", str(port), "-t", "TCP_RR", "-l", "0.15", "-D", "0.05", "--rate", "auto", "--json"],
                  3 * PATIENCE)
    rates = [(one["rate"], one["seconds"]) for one in document_of(got)["interim"]]
    assert len(rates) > 2 and all(rate >= 0 for rate, _ in rates), rates


def the_knee_is_the_rate_of_the_link(lab: lib.Lab, port: int) -> str:
    """On 20 Mbit/s, datagrams have 1400 bytes of 1466 on Ethernet. A busy machine may end the search early; what the
    send buffer holds at the end is in addition, as is a late wake-up of 30 ms."""
    most = 20e6 * 1400 / 1466
    for _ in range(5):
        document, knee = knee_of(lab, port, "-t", "UDP_STREAM", "--", "-m", "1400", "-s", "16K")
        assert knee <= 1.05 * most, (knee, most)
        if not knee:
            continue
        # A good step may lack 0.1 %, and the last 30 ms of its second.
        assert abs(document["final"]["THROUGHPUT"] * 1e6 / knee - 1) < 0.035, (knee, document["final"])
        if knee >= 0.95 * most:
            return f"{knee / 1e6:.2f} of {most / 1e6:.2f} Mbit/s"
    raise AssertionError((knee, most, document["curve"]))


def no_answer_is_above_what_arrives(lab: lib.Lab, port: int) -> str:
    """In half a second a queue holds a fifth of what is sent. A receiver without a processor may see the first one
    late."""
    most = 20e6 * 1400 / 1466
    knee = knee_of(lab, port, "-t", "UDP_STREAM", "--rate", "ndr", "-l", "0.5", "--", "-m", "1400")[1]
    assert knee <= 1.05 * most, (knee, most)
    return f"{knee / 1e6:.2f} of {most / 1e6:.2f} Mbit/s"


def one_local_port_is_waited_for(lab: lib.Lab, port: int) -> str:
    """On a link, the previous connection's last segment delays it for a moment: the real netperf waits, too."""
    got = lib.run(lab.command(port, "-t", "TCP_CRR", "-l", "1", "-P", "0", "-v", "0", "--", "-p", "30130,30130"),
                  PATIENCE)
    assert got.rc == 0 and not got.err, got
    return f"{got.out.strip()} a second"


def connections_tell_what_they_sent_again(lab: lib.Lab, port: int, length: "List[str]", share: float) -> str:
    """In the window, up to the close of each connection: the kernel's counter includes the warm-up, later closes, and
    the control connection."""
    ends = {"LOCAL": lab.client, "REMOTE": lab.server}
    before = {name: lib.snmp(end, "TcpRetransSegs") for name, end in ends.items()}
    got = lib.run(lab.command(port, "-t", "TCP_CRR", *length, "--json", "--", "-r", "1,12000", "-S", "8K"), PATIENCE)
    told = []
    for name, end in ends.items():
        again, most = document_of(got)["final"][f"{name}_TRANSPORT_RETRANS"], lib.snmp(end, "TcpRetransSegs") - before[name]
        assert again <= share * most and (again > 0 or share < 1), (name, again, most)
        told.append(f"{name.lower()} {again} of {most}")
    return ", ".join(told)


def over_a_link(report: lib.Report) -> None:
    with lib.Lab(f"open{os.getpid() % 10000}") as lab, lib.Daemon(lab.server) as daemon:
        for arrivals in ("constant", "poisson"):
            report.case(f"a capture agrees: {arrivals}", partial(a_capture_agrees, lab, daemon.port, arrivals))
        report.case("one local port is waited for", partial(one_local_port_is_waited_for, lab, daemon.port))
        for flows, seconds in ((1, 0.137), (3, 0.3)):
            report.case(f"an outage of {seconds} s, {flows} flows",
                        partial(an_outage_is_as_long_as_what_it_lost, lab, daemon.port, flows, seconds))
        for flows in (1, 3):
            report.case(f"an outage of a stream, {flows} flows", partial(an_outage_of_a_stream, lab, daemon.port, flows))
        for test, rate in (("TCP_STREAM", "10M"), ("TCP_MAERTS", "10M"), ("TCP_RR", "500")):
            report.case(f"an outage of {test}", partial(an_outage_of_connections, lab, daemon.port, test, rate, 2))
        for test, rate in (("TCP_STREAM", "10M"), ("TCP_RR", "2000"), ("UDP_STREAM", "10M"), ("UDP_RR", "2000")):
            report.case(f"an outage that is not over: {test}", partial(an_outage_that_is_not_over, lab, daemon.port, test, rate))
    with lib.Lab(f"again{os.getpid() % 10000}", "--loss", "5") as lab, lib.Daemon(lab.server) as daemon:
        for length, share in ((["-l", "-50"], 1.0), (["--warm-up", "4", "-l", "0.5", "--flows", "8"], 0.25)):
            report.case(f"connections tell what they sent again: {length[0]}",
                        partial(connections_tell_what_they_sent_again, lab, daemon.port, length, share))
    with lib.Lab(f"knee{os.getpid() % 10000}", "--rate", "20mbit") as lab, lib.Daemon(lab.server) as daemon:
        report.each((the_knee_is_the_rate_of_the_link, no_answer_is_above_what_arrives), lab, daemon.port)


def the_real_netserver() -> str:
    with lib.Daemon(program=str(lib.real_netperf() / "netserver"), grace=None) as daemon:
        said = a_frozen_server_is_in_the_latencies(daemon, "TCP_RR")
        got = lib.run(client(daemon.port, "UDP_RR"), PATIENCE)
        assert got.rc != 0 and "copies no ids" in got.err, got
    return said


def suite(report: lib.Report) -> None:
    with lib.Daemon() as daemon:
        for args, says in REFUSED:
            report.case(f"refused: {args}", partial(lib.refused, daemon.port, args, says))
        for words in ("TCP_RR --engine spin,epoll", "TCP_CC", "UDP_RR --engine spin,epoll", "UDP_RR --engine batch,epoll",
                      "UDP_RR --engine segment,epoll", "TCP_RR --engine uring,epoll -- -r 100,9000",
                      "TCP_RR --engine uring,epoll --warm-up 0.5 --arrivals burst:8 -- -r 9000,100"):
            report.case(f"all that is due is counted: {words}",
                        partial(all_that_is_due_is_counted, daemon.port, *words.split()))
        for test in ("TCP_RR", "UDP_RR", "TCP_CRR"):
            for args in ("--arrivals poisson", "--arrivals burst:8 --warm-up 0.5", "--threads 2"):
                report.case(f"all that is due is counted: {test} {args}",
                            partial(all_that_is_due_is_counted, daemon.port, test, *args.split()))
        for engine in ("epoll", "uring"):
            for args in ("", "--warm-up 0.5"):
                report.case(f"long requests are waited for: {engine} {args}",
                            partial(long_requests_are_waited_for, daemon.port, engine, *args.split()))
        for test in ("TCP_RR", "UDP_RR"):
            report.case(f"a frozen server is in the latencies: {test}",
                        partial(a_frozen_server_is_in_the_latencies, daemon, test))
            report.case(f"what is never answered is at the top: {test}",
                        partial(what_is_never_answered_is_at_the_top, daemon, test))
        for engine in ("epoll", "spin,epoll", "uring,epoll", "zerocopy,epoll"):
            report.case(f"a message is one operation: {engine}", partial(a_message_is_one_operation, daemon.port, engine))
        report.case("a closed loop can't know", partial(a_closed_loop_can_not_know, daemon))
        for test in ("TCP_RR", "UDP_RR"):
            report.case(f"what limits is the rate: {test}", partial(what_limits_is_the_rate, daemon.port, test))
        for test, rate, args in (("UDP_STREAM", 8e6, "--arrivals burst:4 -- -m 1000"), ("TCP_STREAM", 50e6, "--flows 3 --threads 2"),
                                 ("UDP_STREAM", 20e6, "--engine batch -- -m 1000"), ("TCP_STREAM", 30e6, "--arrivals poisson")):
            report.case(f"a stream sends what it is asked for: {test} {args}",
                        partial(a_stream_sends_what_it_is_asked_for, daemon.port, test, rate, *args.split()))
        report.each((the_banner_of_a_search_has_no_rate, interim_results_of_a_search_are_of_one_run_each,
                     each_way_has_its_rate, a_large_message_of_the_far_end_is_told, a_stream_that_can_not_says_so,
                     a_rate_beyond_what_it_can_is_said, a_generator_that_stands_still_is_told,
                     timers_that_are_coarse_are_told), daemon.port)
    report.part("over a link", partial(over_a_link, report))
    report.case("the real netserver", the_real_netserver)


if __name__ == "__main__":
    lib.main(suite)
