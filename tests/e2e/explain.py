"""--explain over loopback: what it prints and where, and that the result does not change. explain_bed.py tests
whether it names the right cause.
"""

import re
from functools import partial
from typing import Sequence

import lib

TESTS = ("TCP_STREAM", "TCP_MAERTS", "TCP_SENDFILE", "TCP_RR", "TCP_CRR", "UDP_STREAM", "UDP_RR",
         "STREAM_STREAM", "DG_RR")
OF_STOCK = ("-t TCP_MAERTS -b 1 -w 10ms -- -s 16K", "-t TCP_STREAM", "-t UDP_STREAM",
            "-t TCP_STREAM -- -S 2304", "-t TCP_SENDFILE", "-t TCP_MAERTS", "-t TCP_RR", "-t TCP_CRR")
LINES = re.compile(r"explain: [a-z-]+: .+\n(also: [a-z-]+: .+\n)?"
                   r"(next: [a-z-]+ would limit at .+\n)?(calls: .+\n)?(doubts: .+\n)?(ceiling: .+\n)?")


def run(port: int, *words: str) -> lib.Result:
    return lib.run(lib.command(port, "-l", "1", *words), 60)


def explains(port: int, *words: str) -> str:
    plain, got = run(port, *words), run(port, "--explain", *words)
    assert got.rc == 0 and plain.rc == 0, f"status {got.rc} and {plain.rc}: {got.err}{plain.err}"
    assert LINES.fullmatch(lib.without_account(got.err)), got.err
    assert "nan" not in got.err, got.err
    digits = re.compile(r"\s*[0-9]+(\.[0-9]+)?")
    assert digits.sub(" 0", got.out) == digits.sub(" 0", plain.out), got.out
    assert not plain.err, plain.err
    return got.err.splitlines()[0]


def ceiling(port: int) -> str:
    """Loopback has packets of 65535 bytes: all but 0.14 % of the link's rate is payload."""
    got = run(port, "--explain", "--link-rate", "400gbit")
    found = re.search(r"^ceiling: 399\.5 Gbit/s of payload at 400 Gbit/s \(--link-rate\), MTU 65535; "
                      r"[0-9.]+ % of it reached", got.err, re.M)
    assert got.rc == 0 and found, got.err
    got = run(port, "--explain", "--link-rate", "1mbit")
    assert "the data did not go over that link" in got.err, got.err
    got = run(port, "--explain", "--link-rate", "10gbit", "-t", "TCP_CC")  # 278 bytes each way, without payload
    assert "ceiling: 2682403 transactions a second at 10 Gbit/s" in got.err, got.err
    return found[0]


def sleeper(port: int) -> str:
    """An end that does next to nothing is told from one that can't do more, on any machine."""
    said = explains(port, "-b", "1", "-w", "100ms", "--", "-m", "1000")
    assert "sending-application" in said or "waited" in said, said
    return said


def iterations(port: int, *pace: str) -> str:
    got = run(port, "--explain", *pace, "-i", "3,3", "-I", "99,50")
    assert got.rc == 0, f"status {got.rc}: {got.err}"
    assert re.search("^doubts: .*only the last of 3 iterations", got.err, re.M), got.err
    return "said"


FAR_ALONE = re.compile(r"explain: (receiver-cpu|reader-slow|receive-buffer|far-softirq|"
                       r"udp-receive-buffer)")


def one_sided(port: int, words: str) -> str:
    """With netperf's own daemon, the verdict is based on this end's evidence, and says so."""
    got = run(port, "--explain", *words.split())
    assert got.rc == 0 and got.err.startswith("explain: "), got
    assert re.search("^doubts: .*the far end reported nothing about its side", got.err, re.M), got.err
    assert "netperf: evidence of this end only" in got.err and "?" not in got.err, got.err
    assert "MAERTS" in words or not FAR_ALONE.match(got.err), got.err
    return got.err.splitlines()[0]


def stock(report: lib.Report, tests: Sequence[str], at_once: int) -> None:
    with lib.Daemon(program=str(lib.real_netperf() / "netserver"), grace=None) as daemon:
        report.cases([(f"netperf's netserver, {words}", partial(one_sided, daemon.port, words))
                      for words in tests], at_once)


def all_of_it(report: lib.Report, pace: Sequence[str], of_stock: Sequence[str], at_once: int) -> None:
    with lib.Daemon() as daemon:
        cases = [(test, partial(explains, daemon.port, *pace, "-t", test)) for test in TESTS]
        if lib.has_ipv6():
            cases.append(("IPv6", partial(explains, daemon.port, *pace, "-6", "-H", "::1")))
        cases += [("a ceiling", partial(ceiling, daemon.port)),
                  ("a sender that sleeps", partial(sleeper, daemon.port)),
                  ("iterations", partial(iterations, daemon.port, *pace))]
        report.cases(cases, at_once)
    report.part("netperf's netserver", partial(stock, report, of_stock, at_once))


def suite(report: lib.Report) -> None:
    """With --long, everything at full speed."""
    if lib.LONG:
        all_of_it(report, (), OF_STOCK, at_once=1)
    else:
        all_of_it(report, lib.PACED, OF_STOCK[:3], at_once=3)


if __name__ == "__main__":
    lib.main(suite)
