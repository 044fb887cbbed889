#!/usr/bin/env python3
"""Disturbances that are planted for two of eight seconds, and what is marked: nine in ten of these intervals at
least. Where nobody disturbs, one in twenty at most; that is judged only where others took next to nothing of
the processors. Over loopback in a namespace of its own, and over a link of 100 Mbit/s between two. Needs root."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any, Callable, List, Sequence

import clean
import lib

NAME = f"cl{os.getpid()}"
HERE, THERE = "10.21.0.1", "10.21.0.2"
TESTS = ("TCP_STREAM", "TCP_RR", "UDP_STREAM")
SECONDS, FROM, TO = 8, 3.0, 5.0
MARGIN = 0.15           # where a plant begins and ends is known to that
FOUND, FALSE = 0.9, 0.05
OTHERS = 0.02           # of the processors' time: more, and the machine is not idle
LOOP = "print('begun', flush=True)\nwhile True: pass"
TICKS = os.sysconf("SC_CLK_TCK")


def must(*command: str) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


class Lab:
    """Two hosts; the link has the framing of Ethernet, packet by packet."""

    def __init__(self) -> None:
        self.near, self.far = (["ip", "netns", "exec", f"{NAME}{end}"] for end in "ab")

    def __enter__(self) -> "Lab":
        try:
            for end in "ab":
                must("ip", "netns", "add", f"{NAME}{end}")
                must("ip", "-n", f"{NAME}{end}", "link", "set", "lo", "up")
            must("ip", "link", "add", "wire0", "netns", f"{NAME}a", "type", "veth", "peer", "name", "wire0", "netns",
                 f"{NAME}b")
            for end, address in (("a", HERE), ("b", THERE)):
                space = f"{NAME}{end}"
                must("ip", "-n", space, "addr", "add", f"{address}/24", "dev", "wire0")
                must("ip", "-n", space, "link", "set", "wire0", "gso_max_segs", "1", "gso_max_size", "2000")
                must("ip", "-n", space, "link", "set", "wire0", "up")
                must("tc", "-n", space, "qdisc", "add", "dev", "wire0", "root", "stab", "overhead", "24", "mpu", "84",
                     "linklayer", "ethernet", "tbf", "rate", "100mbit", "burst", "10000", "limit", "300000")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for end in "ab":
            subprocess.run(["ip", "netns", "del", f"{NAME}{end}"], check=False, stderr=subprocess.DEVNULL)


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
        return json.loads((self.place / "run.json").read_text())["iterations"][0]


def busy() -> float:
    """Seconds that all processors have worked."""
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
    """From when to when it was there, by the wall clock."""

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
    with lib.Started([*bed.prefix, sys.executable, "-c", clean.FLOOD, bed.host, "1750"]) as others:
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
    """Of "2026-11-21T20:33:25.123Z" the seconds since 1970."""
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
        if bed.host == THERE or test == "TCP_RR":  # a stream over loopback has a thousand times as much
            found.append((f"{bed.name}, {test}: foreign bytes",
                          partial(is_found, bed, test, (), flood, ("foreign",))))
        found.append((f"{bed.name}, {test}: the far end stopped", partial(is_found, bed, test, (), stop, ("stopped",))))
    return found


def suite(report: lib.Report) -> None:
    obstacle = lib.no_lab()
    if obstacle:
        report.skip("plants", obstacle)
        return
    with tempfile.TemporaryDirectory() as name, Lab() as lab:
        place = Path(name)
        with lib.Daemon(prefix=lab.near) as local, lib.Daemon(prefix=lab.far) as remote:
            for bed in (Bed("loopback", lab.near, "127.0.0.1", local, place),
                        Bed("100 Mbit/s", lab.near, THERE, remote, place)):
                for title, body in cases(bed):
                    report.case(title, body)


if __name__ == "__main__":
    lib.main(suite)
