#!/usr/bin/env python3
"""The real properties of netlab's links, and the problems that netlab avoids. Takes some minutes; it measures, so the
machine should be idle. Needs root."""

import json
import os
import re
import sys
import time
from typing import Any, Callable, Dict, Sequence

import lib
from netns import CUBIC

NAME = f"nl{os.getpid()}"
ATTEMPTS = 3                # for measurements that a busy machine may spoil
LINK = "/run/netns/netlab-" + NAME + "-{}"


class Lab(lib.Lab):
    def __init__(self, *options: str) -> None:
        super().__init__(NAME, *options)

    def link(self, *words: str) -> "Dict[str, Any]":
        """Output of netlab-link."""
        return json.loads(lib.must([program(), *words]) or "{}")

    def probe(self, kind: str, **words: int) -> "Dict[str, Any]":
        return self.link(*probe(kind, **words))

    def line(self) -> "Dict[str, Any]":
        return self.link("tell", LINK.format("server"), "show")

    def uncure(self) -> None:
        """Let TCP hand packets of 64 KiB to the queue, as on other people's links."""
        for end in ("client", "server"):
            lib.must(["ip", "-n", f"netlab-{NAME}-{end}", "link", "set", "lab0", "gso_max_segs", "65535",
                  "gso_max_size", "65536"])

    def count_drops(self, end: Sequence[str], hook: str, what: str) -> None:
        lib.must([*end, "nft", f"add table inet lab; add chain inet lab c {{ type filter hook {hook} "
              f"priority 0; }}; add rule inet lab c {what} counter drop"])

    def throughput(self, port: int, *more: str, host: str = "10.77.0.2", test: str = "TCP_STREAM",
                   seconds: int = 3) -> float:
        """10^6 bits/s; for datagrams, those received."""
        out = lib.must(self.command(port, "-t", test, "-P", "0", "-l", str(seconds), "--", *more, host=host))
        return float(out.split()[-1])


def program() -> str:
    return os.environ.get("NETLAB_LINK") or str(lib.TOP / "tests" / "link" / "netlab-link")


def probe(kind: str, **words: int) -> "list[str]":
    return ["probe", f"from={LINK.format('client')}", f"to={LINK.format('server')}", "source=10.77.0.1",
            "target=10.77.0.2", "device=lab0", f"kind={kind}", *(f"{k}={v}" for k, v in words.items())]


def again(measure: "Callable[[], tuple[bool, str]]") -> str:
    """The detail of the first good attempt."""
    details = []
    for _ in range(ATTEMPTS):
        good, detail = measure()
        details.append(detail)
        if good:
            return ", then ".join(details)
    raise AssertionError(", then ".join(details))


# --- links --------------------------------------------------------------------------------

def checks(report: lib.Report) -> None:
    """netlab check confirms what netlab was asked for."""
    def check(lab: Lab) -> "tuple[bool, str]":
        got = lib.run([lib.NETLAB, "check", "--name", NAME], timeout=180)
        off = [line.strip() for line in got.out.splitlines() if line.startswith("  off")]
        return got.rc == 0, "; ".join(off) or got.err.strip() or f"{got.seconds:.0f} s"

    for options in ("", "--rate 10mbit --mtu 9000 --congestion reno", "--rate 1mbit --mtu 576",
                    "--rate 50mbit --delay 5ms --jitter 1ms --loss 1 --reorder 2 --duplicate 0.5",
                    "--rate none --delay 250us --loss 0.1", "--rate 20mbit --delay 100ms --framing none",
                    "--emulator link --rate 1mbit --duplicate 30 --reorder 30"):
        with Lab(*options.split()) as lab:
            report.case(f"check {options}".strip(), lambda lab=lab: again(lambda: check(lab)))
    with Lab("--delay", "1ms") as lab:
        lab.netlab("set", "--loss", "2", "--delay", "3ms", "--rate", "20mbit", "--mtu", "1400")
        report.case("check after set", lambda: again(lambda: check(lab)))


def a_wrong_link(report: lib.Report) -> None:
    """netlab check reports a link that is different."""
    with Lab() as lab:
        lab.count_drops(lab.server, "prerouting", "udp length 72 numgen inc mod 50 == 0")
        got = lib.run([lib.NETLAB, "check", "--name", NAME], timeout=180)
        report.check("a link that loses", got.rc == 1 and re.search(r"(?m)^  off  loss .* 2\d\d of 10000",
                                                                   got.out) is not None, got.out)


def delays(report: lib.Report) -> None:
    """Half of all datagrams within 50 us of their due time, nine of ten within 100 us."""
    def measure(lab: Lab, delay: float, gap: int) -> "tuple[bool, str]":
        lab.link("tell", LINK.format("server"), "clear")
        got = lab.probe("train", count=int(1e9 / gap), gap=gap, wait=int(5e8))["delay_us"]
        late = {name: got[name] - delay * 1e6 for name in ("min", "p50", "p90", "p99", "p99.9", "max")}
        own = lab.line()["client"]["late_us"]
        detail = (" ".join(f"{name} {value:.0f}" for name, value in late.items())
                  + f" us; by its own account p50 {own['p50']} p99 {own['p99']} max {own['max']:.0f} us; "
                  f"load {os.getloadavg()[0]:.1f}")
        return 0 <= late["min"] and late["p50"] <= 50 and late["p90"] <= 100, detail

    with Lab("--rate", "none", "--emulator", "link") as lab:
        for delay in (0.001, 0.01, 0.1):
            lab.netlab("set", "--delay", f"{delay * 1e3:g}ms")
            for gap in (1_000_000, 20_000):
                report.case(f"delay {delay * 1e3:g} ms, {1e9 / gap:.0f} packets/s", lambda d=delay, g=gap:
                            again(lambda: measure(lab, d, g)))


def capacity(report: lib.Report) -> None:
    """64-byte datagrams from two senders, dropped on arrival."""
    def measure(lab: Lab) -> "tuple[bool, str]":
        words = probe("rate", size=64, gap=0, time=int(3e9))
        with lib.Started([program(), *words]), lib.Started([program(), *words]):
            time.sleep(0.5)
            before, since = lab.line()["client"], time.monotonic()
            time.sleep(2)
            after, seconds = lab.line()["client"], time.monotonic() - since
        rate = (after["forwarded"] - before["forwarded"]) / seconds
        return rate >= 100_000, (f"{rate:.0f} packets/s of {(after['received'] - before['received']) / seconds:.0f}"
                                 f", goal 300000; load {os.getloadavg()[0]:.1f}")

    with Lab("--rate", "none", "--delay", "1ms") as lab:
        lab.count_drops(lab.server, "prerouting", "meta l4proto udp")
        report.case("capacity", lambda: again(lambda: measure(lab)))


def rate_and_delay(report: lib.Report) -> None:
    """A TCP connection over a queue and a delay reaches the computed rate."""
    def measure(lab: Lab, port: int) -> "tuple[bool, str]":
        got = lab.throughput(port, seconds=5)
        return abs(got / 47.07 - 1) <= 0.03, f"{got:.2f} of 47.07"

    with Lab("--rate", "50mbit", "--delay", "2ms", *CUBIC) as lab, lib.Daemon(lab.server) as daemon:
        report.case("TCP_STREAM, 50 Mbit/s and 2 ms", lambda: again(lambda: measure(lab, daemon.port)))


# --- what makes links lie -----------------------------------------------------------------

def super_packets(report: lib.Report) -> None:
    """For packets above the MTU, a token bucket counts the overhead of one frame instead of many."""
    def near(lab: Lab, port: int, low: float, high: float) -> "tuple[bool, str]":
        got = lab.throughput(port)
        return low <= got <= high, f"{got:.2f}"

    with Lab(*CUBIC) as lab, lib.Daemon(lab.server) as daemon:
        report.case("gso_max_segs 1: TCP reads 94.15",
                    lambda: again(lambda: near(lab, daemon.port, 93.2, 94.3)))
        largest = lab.probe("tcp", time=int(3e8))["largest"]
        report.check("gso_max_segs 1: no packet above the MTU", largest == 1500, str(largest))
        lab.uncure()
        report.case("without: TCP reads too much", lambda: again(lambda: near(lab, daemon.port, 95.0, 99.0)))
        got = lib.run([lib.NETLAB, "check", "--name", NAME], timeout=180)
        report.check("without: netlab check says so", got.rc == 1 and "off  packets" in got.out, got.out)
        lab.netlab("set", "--mtu", "1500")
        report.case("netlab set cures it", lambda: again(lambda: near(lab, daemon.port, 93.2, 94.3)))


def framing(report: lib.Report) -> None:
    """Frames cost what they do on Ethernet, including the smallest. 95,000 a second take a whole processor, so a busy
    machine stays below; a wrong link would be above."""
    def measure(lab: Lab, port: int, size: int, most: float, least: float) -> "tuple[bool, str]":
        got = lab.throughput(port, "-m", str(size), test="UDP_STREAM")
        return least * most <= got <= 1.002 * most, f"{got:.2f} of {most:.2f}"

    with Lab() as lab, lib.Daemon(lab.server) as daemon:
        for size, most, least in ((1472, 95.709, 0.99), (64, 49.231, 0.6)):
            report.case(f"UDP_STREAM of {size}", lambda s=size, m=most, n=least:
                        again(lambda: measure(lab, daemon.port, s, m, n)))


PARTS = {"checks": checks, "wrong": a_wrong_link, "delays": delays, "capacity": capacity, "rate": rate_and_delay,
         "super": super_packets, "framing": framing}


def suite(report: lib.Report) -> None:
    wanted = sys.argv[1:] or list(PARTS)
    unknown = [part for part in wanted if part not in PARTS]
    assert not unknown, f"no part {unknown[0]}: there are {' '.join(PARTS)}"
    lib.skip_if(lib.no_line())
    lib.netperf(), lib.netserver()  # or skip
    for part in wanted:
        report.case(f"part {part}", lambda: PARTS[part](report))


if __name__ == "__main__":
    lib.main(suite)
