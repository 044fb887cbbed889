#!/usr/bin/env python3
"""Who disturbed a test, and how much of it was clean: planted causes are found, the figures agree with each
other, and --clean goes on until there is enough. Others may disturb these tests, too: only what they can't
change is judged. Needs root where a namespace of its own is needed."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Iterator, List, Sequence

import lib

HOST = "127.0.0.1"
STOPPED = 0.6       # seconds
PACED = ("-b", "1", "-w", "1")  # an operation a millisecond: little work
NAMES = ("steal", "pressure", "switches", "frequency", "throttling", "irq", "squeezed", "foreign", "clock", "stopped",
         "processor")
# Datagrams at a fixed rate to nobody, 1400 bytes each, until it is killed.
FLOOD = """
import socket, sys, time
out, since, count = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), time.monotonic(), 0
while True:
    try:
        out.sendto(bytes(1400), (sys.argv[1], 9))
    except ConnectionRefusedError:
        pass
    count += 1
    if count == 1:
        print("begun", flush=True)
    time.sleep(max(0, count / float(sys.argv[2]) - (time.monotonic() - since)))
"""


def command(port: int, place: Path, *options: str) -> List[str]:
    return [lib.netperf(), "-H", HOST, "-p", str(port), f"--json={place / 'run.json'}", *options]


def document(place: Path) -> Any:
    return json.loads((place / "run.json").read_text())


def disturbed(place: Path) -> Any:
    return document(place)["iterations"][0]["disturbed"]


def need(what: str, found: object, wanted: object) -> None:
    assert found == wanted, f"{what}: {found}, not {wanted}"


def near(what: str, found: float, wanted: float, within: float = 1e-6) -> None:
    assert abs(found - wanted) <= within, f"{what}: {found}, not {wanted}"


def agrees(one: Any) -> None:
    """Runs of marks, their sum by reason, the clean rest and the share tell the same."""
    total = sum(end - begin for begin, end, _ in one["intervals"])
    near("disturbed", total, one["seconds"] - one["clean_seconds"])
    near("share", one["share"], total / one["seconds"])
    assert 0 <= one["clean_seconds"] <= one["seconds"]
    for name, seconds in one["reasons"].items():
        assert name in NAMES, name
        near(name, sum(end - begin for begin, end, why in one["intervals"] if name in why), seconds)
        ends = [one[end].get(name, 0) for end in ("near", "far") if one[end] is not None]
        assert max(ends) - 1e-6 <= seconds <= sum(ends) + 1e-6, f"{name}: {seconds} of {ends}"
    last = 0.0
    for begin, end, _ in one["intervals"]:
        assert last <= begin < end <= one["seconds"] + 1e-6, one["intervals"]
        last = end


def both_ends_look(place: Path, test: str, *options: str) -> None:
    with lib.Daemon() as daemon:
        got = lib.run(command(daemon.port, place, "-t", test, "-l", "1", *PACED, *options), 20)
    need("status", got.rc, 0)
    one = disturbed(place)
    agrees(one)
    final = document(place)["final"]
    near("CLEAN_SECONDS", final["CLEAN_SECONDS"], one["clean_seconds"])
    if one["clean_throughput"] is not None:
        near("CLEAN_THROUGHPUT", final["CLEAN_THROUGHPUT"], one["clean_throughput"])
    assert one["far"] is not None and "far" not in one["unread"], one
    assert one["seconds"] > 0.5, one
    need("who counted", one["counted_by"], "near" if test.endswith("RR") else "far")
    if one["clean_seconds"] == one["seconds"]:
        near("the rate of a clean test", one["clean_throughput"], final["THROUGHPUT"], final["THROUGHPUT"] * 1e-6)


def a_far_end_that_does_not_look_is_told(place: Path) -> None:
    with lib.Daemon(args=["--no-evidence"]) as daemon:
        got = lib.run(command(daemon.port, place, "-t", "TCP_STREAM", "--clean", "1", "--at-most", "1", *PACED), 20)
    need("status", got.rc, 0)
    one = disturbed(place)
    agrees(one)
    need("far", one["far"], None)
    assert one["unread"]["far"] and one["unread"]["switches"], one["unread"]
    need("who counted", one["counted_by"], "near")
    assert "were clean" in got.err, got


def a_stopped_end_is_found(place: Path, end: str) -> None:
    with lib.Daemon() as daemon, \
         lib.Started(command(daemon.port, place, "-t", "TCP_RR", "-l", "30", *PACED)) as client:
        client.measuring()
        time.sleep(0.3)
        pid = client.pid if end == "near" else daemon.children()[0]
        os.kill(pid, signal.SIGSTOP)
        time.sleep(STOPPED)
        os.kill(pid, signal.SIGCONT)
        time.sleep(0.3)
        client.signal(signal.SIGINT)
        got = client.finish(60)
    one = disturbed(place)
    agrees(one)
    assert one[end].get("stopped", 0) >= 0.9 * STOPPED, f"{got} {one}"


def a_hog_is_found(place: Path) -> None:
    """Both ends and an endless loop on one processor, that this process may have."""
    cpu = str(min(os.sched_getaffinity(0)))
    with lib.Daemon() as daemon, \
         lib.Started(["taskset", "-c", cpu, sys.executable, "-c", "while True: pass"]):
        got = lib.run(command(daemon.port, place, "-t", "TCP_STREAM", "-l", "1", "-T", f"{cpu},{cpu}"), 20)
    need("status", got.rc, 0)
    one = disturbed(place)
    agrees(one)
    if "near.switches" in one["unread"]:
        raise lib.Skipped(f"this kernel tells no waits: {one['unread']}")
    assert one["reasons"].get("switches", 0) >= 0.5 * one["seconds"], one


@contextmanager
def namespace() -> Iterator[Sequence[str]]:
    """The words before a command that runs where there is nobody else's traffic."""
    with lib.Started(["unshare", "-n", "sh", "-c", "ip link set lo up; exec sleep 1000"]) as holder:
        words = ["nsenter", "-n", "-t", str(holder.pid)]
        up = [*words, "sh", "-c", "ip link show dev lo | grep -q LOOPBACK,UP"]
        own = os.readlink("/proc/self/ns/net")
        assert lib.wait_for(lambda: os.readlink(f"/proc/{holder.pid}/ns/net") != own and
                            subprocess.run(up, check=False).returncode == 0, 20), "no namespace"
        yield words


def foreign_bytes_are_found(place: Path) -> None:
    """And the test's own are none of them."""
    if os.geteuid() != 0:
        raise lib.Skipped("not root")
    with namespace() as there, lib.Daemon(prefix=there) as daemon:
        for test in ("TCP_STREAM", "TCP_RR", "UDP_STREAM"):
            got = lib.run([*there, *command(daemon.port, place, "-t", test, "-l", "1", *PACED)], 20)
            need("status", got.rc, 0)
            need(f"foreign in {test} alone", disturbed(place)["reasons"].get("foreign", 0), 0)
        with lib.Started([*there, sys.executable, "-c", FLOOD, HOST, "2000"]) as flood:
            assert lib.wait_for(lambda: "begun" in flood.said(), 30), flood.said()
            got = lib.run([*there, *command(daemon.port, place, "-t", "TCP_RR", "--clean", "1", "--at-most", "2",
                                            *PACED)], 20)
    need("status", got.rc, 0)
    for iteration in document(place)["iterations"]:
        one = iteration["disturbed"]
        agrees(one)
        assert one["reasons"].get("foreign", 0) >= 0.5 * one["seconds"], one
    assert "no more than" in got.err and "foreign:" in got.err, got


def clean_goes_on_until_there_is_enough(place: Path) -> None:
    with lib.Daemon() as daemon:
        got = lib.run(command(daemon.port, place, "-t", "TCP_RR", "--clean", "1", "--at-most", "3", *PACED,
                              "--", "-k", "THROUGHPUT,ELAPSED_TIME,CLEAN_SECONDS"), 30)
    need("status", got.rc, 0)
    run = document(place)
    plan, final, iterations = run["test"]["iterations"], run["final"], run["iterations"]
    need("the plan", (plan["clean_seconds"], plan["at_most_seconds"], run["test"]["length"]["seconds"]), (1, 3, 1))
    spent = [one["elapsed"] for one in iterations]
    clean = sum(one["disturbed"]["clean_seconds"] for one in iterations
                if one["disturbed"]["clean_throughput"] is not None)
    near("CLEAN_SECONDS", final["CLEAN_SECONDS"], clean)
    near("ELAPSED_TIME", final["ELAPSED_TIME"], sum(spent))
    rate = sum(one["metrics"]["THROUGHPUT"] * s for one, s in zip(iterations, spent)) / sum(spent)
    near("THROUGHPUT", final["THROUGHPUT"], rate, 1e-6 * rate)
    need("iterations", final["CONFIDENCE_ITERATION"], len(iterations))
    assert clean >= 0.9 or len(iterations) == 3 or sum(spent) > 2.1, f"it gave up: {spent} {got}"
    need("told to be short of it", "no more than" in got.err, clean < 0.9)
    assert f"ELAPSED_TIME={sum(spent):.2f}" in got.out and " s were clean" in got.err, got


def the_figures_ask_for_evidence(_: Path) -> None:
    with lib.Daemon() as daemon:
        got = lib.run([lib.netperf(), "-H", HOST, "-p", str(daemon.port), "-t", "TCP_RR", "-l", "1", *PACED, "--", "-k",
                       "DISTURBED_SHARE,CLEAN_SECONDS,CLEAN_THROUGHPUT,DISTURBED_REASONS"], 20)
    found = dict(line.split("=", 1) for line in got.out.splitlines() if "=" in line)
    assert 0 <= float(found["DISTURBED_SHARE"]) <= 1 and float(found["CLEAN_SECONDS"]) >= 0, got
    reasons = found["DISTURBED_REASONS"].strip('"')
    assert reasons == "none" or all(word.split(":")[0] in NAMES for word in reasons.split()), got


REFUSED = [lib.fault("--clean 5 -l 3", "leave out -l"), lib.fault("--clean 5 -i 3,3", "--clean: together with -i"),
           lib.fault("--clean 5 -I 99", "choose"), lib.fault("--at-most 4", "--clean, which is not given"),
           lib.fault("--clean 5 --at-most 3", "less than --clean 5"),
           lib.fault("--clean 2 -t TCP_CC", "TCP_CC runs only once"), lib.fault("--clean 0", "out of range")]


def refused(case: Any, port: int) -> None:
    got = lib.run([lib.netperf(), "-H", HOST, "-p", str(port), *case.args.split()], 20)
    need("status", got.rc, case.status)
    lib.error_line(got, "netperf", *case.says)


def suite(report: lib.Report) -> None:
    with tempfile.TemporaryDirectory() as name, lib.Daemon() as daemon:
        place = Path(name)

        def case(title: str, body: Any) -> None:
            report.case(title, body)

        for one in REFUSED:
            case(f"refused: {one.args}", partial(refused, one, daemon.port))
        case("the figures ask for evidence", partial(the_figures_ask_for_evidence, place))
        if "without libjansson" in lib.run([lib.netperf(), "--json", "--help"], 20).out:
            report.skip("documents", "built without libjansson")
            return
        for words in ("TCP_STREAM", "TCP_RR", "UDP_STREAM", "TCP_STREAM --engine epoll", "TCP_STREAM --flows 2"):
            case(f"both ends look: {words}", partial(both_ends_look, place, *words.split()))
        case("a far end that does not look", partial(a_far_end_that_does_not_look_is_told, place))
        for end in ("near", "far"):
            case(f"the {end} end stopped", partial(a_stopped_end_is_found, place, end))
        case("a hog on the processor", partial(a_hog_is_found, place))
        case("foreign bytes", partial(foreign_bytes_are_found, place))
        case("--clean goes on", partial(clean_goes_on_until_there_is_enough, place))


if __name__ == "__main__":
    lib.main(suite)
