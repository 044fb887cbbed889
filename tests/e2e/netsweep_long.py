#!/usr/bin/env python3
"""The results of the bundled plans on links of 100 Mbit/s, some minutes each: the published table of socket buffers,
and the ceiling for every MTU. They measure, so the machine should be idle."""

import json
import os
import tempfile
from pathlib import Path

import lib
from netkit import ceiling as ceilings_of

os.environ.setdefault("NETPERF", lib.netperf())

NETSWEEP = str(lib.SCRIPTS / "netsweep")

# The columns of the published Linux-to-Linux table, in 10^6 bits/s, and the tolerance of a mean.
PUBLISHED = {("TCP_STREAM", 576): 94.0, ("TCP_STREAM", 1500): 94.0, ("TCP_STREAM", 65536): 94.0,
             ("UDP_STREAM", 64): 48.5, ("UDP_STREAM", 576): 89.7, ("UDP_STREAM", 1500): 92.3,
             ("UDP_STREAM", 64512): 96.05}
TOLERANCE = 0.015
# The published 48.5 is 1.5 % below the computed maximum for 64 bytes in the smallest frame, 49.23; a machine that
# reaches that is right, too.
TOLERANCES = {("UDP_STREAM", 64): 0.02}
MTUS = (576, 700, 850, 1000, 1250, 1500, 2000, 3000, 4000, 5000, 6000, 7000, 9000)
SHARE = 0.99


def measured(report: lib.Report, *args: str) -> "list[dict]":
    """The runs of a sweep, in order."""
    with tempfile.TemporaryDirectory() as place:
        file = os.path.join(place, "o.jsonl")
        got = lib.run([NETSWEEP, *args, "--netperf", lib.netperf(), "--netserver", lib.netserver(),
                       "--output", file], timeout=1800)
        report.check(" ".join(args), got.rc == 0, got.err if got.rc else f"{got.seconds:.0f} s")
        lines = Path(file).read_text().splitlines() if os.path.exists(file) else []
    return [run for run in map(json.loads, lines[1:]) if run["status"] == "ok"]


def columns(report: lib.Report) -> None:
    runs = measured(report, "lab-buffers", "--set", "length=1")
    for (test, size), wanted in PUBLISHED.items():
        cells = {run["point"]["buffer"]: run["result"]["THROUGHPUT"] for run in runs
                 if (run["point"]["test"], run["point"]["size"]) == (test, size)}
        mean = sum(cells.values()) / max(1, len(cells))
        tolerance = TOLERANCES.get((test, size), TOLERANCE)
        report.check(f"{test} {size}: the published {wanted}", abs(mean / wanted - 1) <= tolerance,
                     f"mean {mean:.2f}, cells {cells}")


def ceiling(test: str, mtu: int, family: int) -> float:
    """10^6 bits/s of payload on 100 Mbit/s of Ethernet frames, for TCP segments with timestamps."""
    return 100 * ceilings_of.ask(test, mtu=mtu, family=family)["share"]


def ceilings(report: lib.Report) -> None:
    for run in measured(report, "mtu", "--set", "length=2", "--set", f"mtu={','.join(map(str, MTUS))}"):
        point, got = run["point"], run["result"]["THROUGHPUT"]
        most = ceiling(point["test"], point["mtu"], point["family"])
        report.check(" ".join(f"{name}={value}" for name, value in point.items()),
                     got >= SHARE * most, f"{got:.2f} of {most:.2f}: {got / most:.2%}")


def suite(report: lib.Report) -> None:
    lib.skip_if(lib.no_lab())
    columns(report)
    ceilings(report)


if __name__ == "__main__":
    lib.main(suite)
