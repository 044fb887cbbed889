#!/usr/bin/env python3
"""Every test with options that are rarely combined: no combination crashes a program or never ends. The output is
checked by other suites. NETPERF=build-asan/src/netperf NETSERVER=... tests another build."""

from functools import partial
from typing import Sequence

import lib

TESTS = ("TCP_STREAM", "TCP_MAERTS", "TCP_SENDFILE", "TCP_RR", "TCP_CRR", "TCP_CC", "TCP_MSS", "UDP_STREAM", "UDP_RR",
         "STREAM_STREAM", "STREAM_RR", "DG_STREAM", "DG_RR", "VSOCK_RR", "OMNI", "UUID", "LOC_CPU", "REM_CPU", "NOSUCH")
OPTIONS = (
    "", "--human", "--latency", "--human --explain -i 3,3 -I 99,50", "--progress always", "-D 0.1 --progress always",
    "--human --flows 3", "--latency --both", "--human --both", "-P 0 -v 0 --latency", "-v 2 -j", "--json", "-l -10 --human",
    "-l -10 --progress always", "--warm-up 0.1 --human", "--clean 1 --at-most 1 --human",
    "--latency -- -k P99.9_LATENCY,THROUGHPUT", "--human -- -o all", "-- -h",
)
STATUS = (0, 1, 255)


def ends_by_itself(daemon: lib.Daemon, test: str, options: Sequence[str]) -> str:
    said = []
    for line in options:
        words, _, of_test = line.partition("-- -")
        command = lib.command(daemon.port, "-t", test, "-l", "0.1", *words.split())
        got = lib.run([*command, *(["--", *f"-{of_test}".split()] if of_test else [])], timeout=60)
        if got.rc not in STATUS or "Sanitizer" in got.err:
            said.append(f"{line}: status {got.rc}: {got.err[-500:]}")
    assert not said, said
    return f"{len(options)} combinations"


def suite(report: lib.Report) -> None:
    with lib.Daemon() as daemon:
        report.cases([(test, partial(ends_by_itself, daemon, test, OPTIONS)) for test in TESTS], 2)


if __name__ == "__main__":
    lib.main(suite)
