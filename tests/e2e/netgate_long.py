#!/usr/bin/env python3
"""Gates in labs of their own: a planted difference is found, and equal sides are not worse. They measure, so the
machine should be idle; two to six minutes."""

import json
import os
import tempfile
from pathlib import Path

import lib

NETGATE = str(lib.SCRIPTS / "netgate")
SLOWER = [f"--before-b={lib.NETLAB} set --name $NETGATE_LAB --rate 90mbit > log",
          f"--after-b={lib.NETLAB} set --name $NETGATE_LAB --rate 100mbit > log"]
# Options of the gate, and the right verdicts.
GATES = (("a rate that is 10 % lower", ["--test", "TCP_STREAM", *SLOWER], ("worse",)),
         ("a figure of which less is better", ["--test", "TCP_STREAM", "--metric", "THROUGHPUT:less", *SLOWER],
          ("better",)),
         ("an MTU as a setting", ["--test", "TCP_STREAM", "--set-b", "mtu lab0=1280"], ("worse",)),
         ("the same, two tests", ["--test", "TCP_STREAM,TCP_RR", "--aa", "--a", "-T 0,1"], ("equal", "can't tell")))


def gate(report: lib.Report, name: str, words: "list[str]", right: "tuple[str, ...]") -> None:
    with tempfile.TemporaryDirectory() as place:
        file = os.path.join(place, "o.jsonl")
        with lib.Started([NETGATE, "--lab", "--rate 100mbit --mtu 9000", "--netperf", lib.netperf(), "--netserver",
                          lib.netserver(), "--budget", "150", "--progress", "never", "--output", file, *words],
                         cwd=place) as started:
            got = started.finish(400)
        rows = [json.loads(line) for line in Path(file).read_text().splitlines()] if os.path.exists(file) else []
    told = [row["verdict"] for row in rows if row["schema"] == "plumbline-verdict/1"]
    failed = [row["failed"] for row in rows if row["schema"] == "plumbline-slot/1" and row["failed"]]
    report.check(name, bool(told) and all(one in right for one in told) and not failed,
                 f"{told}, {len(rows)} lines, {got.seconds:.0f} s, failed {failed[:1]}, {got.err[-200:]}")


def suite(report: lib.Report) -> None:
    lib.skip_if(lib.no_lab())
    for name, words, right in GATES:
        gate(report, name, words, right)
    labs = [name for name in os.listdir("/run/netns") if name.startswith("netlab-sweep-")] if os.path.isdir(
        "/run/netns") else []
    report.check("no lab is left", not labs, str(labs))


if __name__ == "__main__":
    lib.main(suite)
