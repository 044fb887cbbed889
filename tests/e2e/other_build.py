"""Programs of another build, such as 32-bit or with another libc, with ours and with each other: the results and the
evidence of both ends agree. OTHER_BUILD is its directory.
"""

import os
import re
from functools import partial
from pathlib import Path
from typing import Dict, Tuple

import lib

# Counted, so that both ends must have the same figures.
TESTS = (
    ("TCP_STREAM", "-l -2147483647", "-m 1M -M 1M"),  # what is sent is a byte more than 31 bits hold
    ("TCP_MAERTS", "-l -10m", ""),
    ("TCP_SENDFILE", "-l -10m", ""),
    ("UDP_STREAM", "-l -1m", "-m 1000"),
    ("TCP_RR", "-l -300", "-r 100,2000"),
    ("TCP_CRR", "-l -50", ""),
    ("TCP_CC", "-l -50", ""),
    ("UDP_RR", "-l -300", ""),
    ("DG_RR", "-l -50", ""),
    ("OMNI", "-l -300", "-d rr -T udp"),
)
FIGURES = "THROUGHPUT,LOCAL_BYTES_SENT,LOCAL_BYTES_RECVD,REMOTE_BYTES_SENT,REMOTE_BYTES_RECVD"


def client(program: str, port: int, *args: str) -> lib.Result:
    return lib.run([program, "-H", "127.0.0.1", "-p", str(port), *args], 60)


def figures(out: str) -> Dict[str, float]:
    return {name: float(value) for name, value in re.findall(r"^(\w+)=([\d.e+-]+)$", out, re.M)}


def runs(program: str, port: int, test: str, length: str, options: str) -> str:
    selectable = not test.startswith(("DG_", "TCP_CC", "TCP_SENDFILE"))
    words = [*options.split(), *(["-k", FIGURES] if selectable else [])]
    got = client(program, port, "-t", test, *length.split(), *(["--", *words] if words else []))
    assert got.rc == 0 and not got.err, got
    if not selectable:
        numbers = [float(word) for word in re.findall(r"(?<![\w.])\d+\.\d+", got.out)]
        assert numbers and max(numbers) > 0, got.out
        return ""
    found = figures(got.out)
    assert len(found) == 5 and found["THROUGHPUT"] > 0, got.out
    for sent, received in (("LOCAL_BYTES_SENT", "REMOTE_BYTES_RECVD"),
                           ("REMOTE_BYTES_SENT", "LOCAL_BYTES_RECVD")):
        lost = test == "UDP_STREAM"
        assert found[received] == found[sent] or (lost and 0 < found[received] <= found[sent]), (
            f"{sent} and {received}: {found}")
    if length == "-l -2147483647":
        assert found["LOCAL_BYTES_SENT"] >= 2147483648, found
    return f"{found['THROUGHPUT']:.1f}"


def evidence(program: str, port: int) -> str:
    """Evidence of both ends, whatever its integer sizes."""
    if not lib.has_documents(program):
        got = client(program, port, "-l", "1", *lib.PACED, "--explain")
        assert got.rc == 0 and got.err.startswith("explain: "), got
        assert "the far end reported nothing" not in got.err, got.err
        return "without documents"
    got = client(program, port, "-l", "1", *lib.PACED, "--json")
    assert got.rc == 0, got
    ends = [lib.document(got.out)["iterations"][0][end] for end in ("near", "far")]
    near, far = ends
    assert near["flow.bytes_sent"] == far["flow.bytes_received"] > 1e6, (near, far)
    for end in ends:
        assert {"host.kernel", "tcp.rtt_us", "flow.seconds"} <= set(end), sorted(end)
        assert 0.5 < end["flow.seconds"] < 10 and end["host.nic.mtu"] >= 1280, end
        assert end["moved.netstat.IpExt.OutOctets"] > 1e6, end
    return ""


def pairs(ours: Tuple[str, str], other: Tuple[str, str]) -> Dict[str, Tuple[str, str]]:
    return {"other netperf, our netserver": (other[0], ours[1]),
            "our netperf, other netserver": (ours[0], other[1]),
            "other netperf, other netserver": other}


def suite(report: lib.Report) -> None:
    place = os.environ.get("OTHER_BUILD")
    if not place:
        lib.skip("no OTHER_BUILD")
    other = str(Path(place, "src/netperf").resolve()), str(Path(place, "src/netserver").resolve())
    for name, (netperf, netserver) in pairs((lib.netperf(), lib.netserver()), other).items():
        with lib.Daemon(program=netserver) as daemon:
            for test, length, options in TESTS:
                report.case(f"{name}: {test} {length} {options}".rstrip(),
                            partial(runs, netperf, daemon.port, test, length, options))
            report.case(f"{name}: evidence", partial(evidence, netperf, daemon.port))
            report.check(f"{name}: nothing was refused to a session",
                         "not permitted" not in daemon.log(), daemon.log())


if __name__ == "__main__":
    lib.main(suite)
