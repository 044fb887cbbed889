# netvm: modules sctp dccp_ipv4 dccp_ipv6 vsock_loopback tls
# netvm: with tests/unit/test_bench tests/unit/test_conversation tests/unit/test_stop tests/unit/test_transport
"""The unit tests that run every test of netperf's, on a kernel that has the protocols which most machines lack."""

import os
import re

import lib

TESTS = ("bench", "conversation", "stop", "transport")
NEEDED = ("SCTP", "DCCP", "VSOCK", "TLS")   # what says that it lacks one of them has not run it


def run(name: str) -> None:
    got = lib.run([os.path.join(os.environ["top_builddir"], "tests/unit", f"test_{name}")], 200)
    said = got.out + got.err
    assert got.rc == 0, "; ".join(re.findall(r"^.*(?:ERROR|LINE|FAILED).*$", said, re.M)) or f"status {got.rc}"
    lacks = [line for line in said.splitlines() if line.startswith(NEEDED)]
    assert not lacks, lacks


def suite(report: lib.Report) -> None:
    for name in TESTS:
        report.case(f"test_{name}", lambda name=name: run(name))


lib.main(suite)
