#!/usr/bin/env python3
"""What disturbed a test, and how much of it was clean: planted causes are found, figures agree with each other, and
--clean continues until there is enough. As other programs may disturb these tests, too, only what they can't change
is checked. Needs root for a network namespace.

With --long, disturbances are planted for two of eight seconds, on loopback in a namespace and on a 100 Mbit/s link:
at least nine in ten of these intervals must be marked. Without a disturbance, at most one in twenty may be, which is
checked only if other programs used next to no processor time."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Callable, Iterator, List, Sequence

import lib

HOST, LINKED = "127.0.0.1", "10.77.0.2"
STOPPED = 1.0       # seconds
PACED = ("-b", "1", "-w", "1")  # an operation per millisecond: little work
NAMES = ("steal", "pressure", "switches", "frequency", "throttling", "irq", "squeezed", "foreign", "clock", "stopped",
         "processor")
# 1400-byte datagrams at a fixed rate to a closed port, until it is killed.
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
    return lib.command(port, f"--json={place / 'run.json'}", *options)


def document(place: Path) -> Any:
    return lib.document((place / "run.json").read_text())


def disturbed(place: Path) -> Any:
    return document(place)["iterations"][0]["disturbed"]


def need(what: str, found: object, wanted: object) -> None:
    assert found == wanted, f"{what}: {found}, not {wanted}"


def near(what: str, found: float, wanted: float, within: float = 1e-6) -> None:
    assert abs(found - wanted) <= within, f"{what}: {found}, not {wanted}"


def agrees(one: Any) -> None:
    """Marked intervals, their sum by reason, the clean rest and the share are consistent."""
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
    one, bag = disturbed(place), document(place)["iterations"][0][end]
    agrees(one)
    assert one[end].get("stopped", 0) >= 0.9 * STOPPED, f"{got} {one}"
    assert bag["sampler.gap_max_s"] >= 0.9 * STOPPED and bag["sampler.stopped_s"] >= STOPPED / 2, f"{got} {bag}"


def a_hog_is_found(place: Path) -> None:
    """Both ends and an endless loop share a processor."""
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
    """The command prefix for a namespace without other traffic."""
    with lib.Started(["unshare", "-n", "sh", "-c", "ip link set lo up; exec sleep 1000"]) as holder:
        words = ["nsenter", "-n", "-t", str(holder.pid)]
        up = [*words, "sh", "-c", "ip link show dev lo | grep -q LOOPBACK,UP"]
        own = os.readlink("/proc/self/ns/net")
        assert lib.wait_for(lambda: os.readlink(f"/proc/{holder.pid}/ns/net") != own and
                            subprocess.run(up, check=False).returncode == 0, 20), "no namespace"
        yield words


def foreign_bytes_are_found(place: Path) -> None:
    """Other traffic is found, and the test's own is not counted."""
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
        got = lib.run(lib.command(daemon.port, "-t", "TCP_RR", "-l", "1", *PACED, "--", "-k",
                                  "DISTURBED_SHARE,CLEAN_SECONDS,CLEAN_THROUGHPUT,DISTURBED_REASONS"), 20)
    found = dict(line.split("=", 1) for line in got.out.splitlines() if "=" in line)
    assert 0 <= float(found["DISTURBED_SHARE"]) <= 1 and float(found["CLEAN_SECONDS"]) >= 0, got
    reasons = found["DISTURBED_REASONS"].strip('"')
    assert reasons == "none" or all(word.split(":")[0] in NAMES for word in reasons.split()), got


REFUSED = (("--clean 5 -l 3", "leave out -l"), ("--clean 5 -i 3,3", "--clean: together with -i"),
           ("--clean 5 -I 99", "choose"), ("--at-most 4", "--clean, which is not given"),
           ("--clean 5 --at-most 3", "less than --clean 5"), ("--clean 2 -t TCP_CC", "TCP_CC runs only once"),
           ("--clean 0", "out of range"))


def suite(report: lib.Report) -> None:
    with tempfile.TemporaryDirectory() as name, lib.Daemon() as daemon:
        place = Path(name)

        case = report.case
        for args, says in REFUSED:
            case(f"refused: {args}", partial(lib.refused, daemon.port, args, [says]))
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


# ---- --long: planted for two of eight seconds --------------------------------------------------

TESTS = ("TCP_STREAM", "TCP_RR", "UDP_STREAM")
SECONDS, FROM, TO = 8, 3.0, 5.0
MARGIN = 0.15           # s: uncertainty of the beginning and end of a disturbance
FOUND, FALSE = 0.9, 0.05
OTHERS = 0.02           # share of processor time, above which the machine is not idle
LOOP = "print('begun', flush=True)\nwhile True: pass"
TICKS = os.sysconf("SC_CLK_TCK")


class Bed:
    """A daemon, and how to reach it."""

    def __init__(self, name: str, prefix: Sequence[str], host: str, daemon: lib.Daemon, place: Path) -> None:
        self.name, self.prefix, self.host, self.daemon, self.place = name, prefix, host, daemon, place

    def start(self, test: str, *options: str) -> lib.Started:
        return lib.Started([*self.prefix, lib.netperf(), "-H", self.host, "-p", str(self.daemon.port), "-t", test, "-l",
                            str(SECONDS), f"--json={self.place / 'run.json'}", *options])

    def iteration(self, client: lib.Started) -> Any:
        got = client.finish(5 * SECONDS)
        assert got.rc == 0, got
        return lib.document((self.place / "run.json").read_text())["iterations"][0]


def busy() -> float:
    """Seconds that all processors were busy."""
    with open("/proc/stat", encoding="ascii") as stat:
        ticks = [int(word) for word in stat.readline().split()[1:8]]
    return (sum(ticks) - ticks[3] - ticks[4]) / TICKS


def is_left_alone(bed: Bed, test: str) -> str:
    before = busy()
    with bed.start(test) as client:
        one = bed.iteration(client)
    used = sum(sum(one[end]["disturbed.used_us"]) for end in ("near", "far")) / 1e6
    others = max(0.0, busy() - before - used) / (SECONDS * (os.cpu_count() or 1))
    said = f"{100 * one['disturbed']['share']:.1f} % marked: {one['disturbed']['reasons']}; others {100 * others:.1f} %"
    if one["disturbed"]["share"] > FALSE and others > OTHERS:
        raise lib.Skipped(f"this machine is not idle: {said}")
    assert one["disturbed"]["share"] <= FALSE, said
    return said


class Plant:
    """A disturbance, with its begin and end by the wall clock."""

    def __init__(self) -> None:
        self.at = self.over = 0.0

    def lasts(self, seconds: float) -> None:
        self.at = time.time()
        time.sleep(seconds)
        self.over = time.time()


def hog(cpu: str) -> Callable[[Plant, Bed, float], None]:
    def work(plant: Plant, _: Bed, seconds: float) -> None:
        with lib.Started(["taskset", "-c", cpu, sys.executable, "-c", LOOP]) as loop:
            assert lib.wait_for(lambda: "begun" in loop.said(), 30), "no hog"
            plant.lasts(seconds)
    return work


def flood(plant: Plant, bed: Bed, seconds: float) -> None:
    """20 Mbit/s."""
    with lib.Started([*bed.prefix, sys.executable, "-c", FLOOD, bed.host, "1750"]) as others:
        assert lib.wait_for(lambda: "begun" in others.said(), 30), "no flood"
        plant.lasts(seconds)


def stop(plant: Plant, bed: Bed, seconds: float) -> None:
    sessions = bed.daemon.children()
    for pid in sessions:
        os.kill(pid, signal.SIGSTOP)
    plant.lasts(seconds)
    for pid in sessions:
        os.kill(pid, signal.SIGCONT)


def is_found(bed: Bed, test: str, options: Sequence[str], plants: Callable[[Plant, Bed, float], None],
             reasons: Sequence[str]) -> str:
    with bed.start(test, *options) as client:
        assert client.measuring(), "it did not begin"
        time.sleep(FROM)
        plant = Plant()
        plants(plant, bed, TO - FROM)
        one = bed.iteration(client)
    began = started(one)  # when the window opened, to the millisecond
    first, last = plant.at - began + MARGIN, min(plant.over - began, SECONDS) - MARGIN
    runs = [(begin, end) for begin, end, why in one["disturbed"]["intervals"] if set(why) & set(reasons)]
    marked = sum(max(0.0, min(end, last) - max(begin, first)) for begin, end in runs)
    elsewhere = sum(end - begin for begin, end in runs) - marked
    said = f"{100 * marked / (last - first):.0f} % of the plant marked; {elsewhere:.1f} s elsewhere"
    assert marked >= FOUND * (last - first), f"{said}: {one['disturbed']['reasons']} {one['disturbed']['unread']}"
    return said


def started(one: Any) -> float:
    """Parse "2026-11-21T20:33:25.123Z" into seconds since 1970."""
    whole, _, rest = one["started"].rstrip("Z").partition(".")
    return float(subprocess.run(["date", "-u", "-d", whole + "Z", "+%s"], check=True, capture_output=True,
                                text=True).stdout) + float("0." + rest)


def cases(bed: Bed) -> "List[tuple[str, Callable[[], str]]]":
    cpus = sorted(os.sched_getaffinity(0))
    here, there = str(cpus[0]), str(cpus[-1])
    found = []
    for test in TESTS:
        found.append((f"{bed.name}, {test}: idle", partial(is_left_alone, bed, test)))
        for bound in {f"{here},{there}", f"{here},{here}"}:
            found.append((f"{bed.name}, {test}: hog on the processor, -T {bound}",
                          partial(is_found, bed, test, ("-T", bound), hog(here), ("switches", "pressure", "processor"))))
        if bed.host == LINKED or test == "TCP_RR":  # a stream over loopback moves a thousand times as much
            found.append((f"{bed.name}, {test}: foreign bytes",
                          partial(is_found, bed, test, (), flood, ("foreign",))))
        found.append((f"{bed.name}, {test}: the far end stopped", partial(is_found, bed, test, (), stop, ("stopped",))))
    return found


def long(report: lib.Report) -> None:
    if report.lacks("plants", lib.no_lab()):
        return
    with tempfile.TemporaryDirectory() as name, lib.Lab(f"cl{os.getpid()}") as lab:
        place = Path(name)
        with lib.Daemon(prefix=lab.client) as local, lib.Daemon(prefix=lab.server) as remote:
            for bed in (Bed("loopback", lab.client, HOST, local, place),
                        Bed("100 Mbit/s", lab.client, LINKED, remote, place)):
                for title, body in cases(bed):
                    report.case(title, body)


if __name__ == "__main__":
    lib.main(long if lib.LONG else suite)
