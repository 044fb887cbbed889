"""Tests of fractions of a second: their duration, inferred from paced operations; in both directions, with our
daemon, with one that knows only whole seconds, and with the real one.
"""

import re
import tempfile
from functools import partial
from pathlib import Path
from typing import Any, List

import lib

MS = 250
BEAT_MS = 10         # between operations of a paced test
USUAL = MS / BEAT_MS
BENCHES = ("TCP_STREAM", "TCP_MAERTS", "UDP_STREAM", "TCP_RR", "UDP_RR", "TCP_CRR")
OPTIONS = ("TCP_STREAM --both", "TCP_MAERTS --flows 2", "TCP_STREAM --warm-up 0.1", "TCP_MAERTS --warm-up 0.1",
           "TCP_MAERTS -i 3,3", "TCP_MAERTS -D 0.1")
TRIES = 5            # if one process is delayed while the other runs, the test is longer


def command(port: int, test: str, *options: str) -> List[str]:
    return lib.command(port, "-t", test, "-b", "1", "-w", f"{BEAT_MS}ms", *options)


def document(port: int, test: str, *options: str) -> Any:
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "run.json"
        got = lib.run(command(port, test, "-l", f"{MS}ms", "-P", "0", f"--json={path}", *options), 60)
        assert got.rc == 0, f"status {got.rc}: {got.err}"
        run = lib.document(path.read_text())
        run["stderr"] = got.err
        return run


def operations(run: Any) -> float:
    """Calls of the client, which is the paced end: of one flow, in the last iteration."""
    metrics = run["iterations"][-1]["metrics"]
    return float(max(metrics["LOCAL_SEND_CALLS"], metrics["LOCAL_RECV_CALLS"])) / metrics.get("FLOWS", 1)


def lasts_a_fraction(daemon: lib.Daemon, words: str) -> str:
    """As many beats as fit into the fraction, fewer than into a whole second."""
    seen = []
    for _ in range(TRIES):
        run = document(daemon.port, *words.split())
        assert run["test"]["length"]["seconds"] == MS / 1000, run["test"]["length"]
        assert all(one["elapsed"] >= MS / 1000 for one in run["iterations"]), "too short"
        assert "-l" not in run["stderr"], run["stderr"]
        seen.append(operations(run))
        if seen[-1] < 2 * USUAL:
            return f"{seen[-1]:.0f} operations where {USUAL:.0f} are due"
    raise AssertionError(f"operations of {MS} ms at one in {BEAT_MS}: {seen}")


def daemon_knows(daemon: lib.Daemon) -> None:
    """The daemon gets the exact length of tests that it ends by its own clock, and the next whole second for others."""
    lengths = re.findall(r": (\w+ \w+), length ([\d.]+),", daemon.log())
    assert lengths, daemon.log()
    assert {length for _, length in lengths} == {"1", f"{MS / 1000:g}"}, lengths
    assert not [kind for kind, length in lengths if kind != "TCP stream" and length != "1"], lengths


def is_rounded_up(port: int, words: str) -> str:
    """It says so in one line."""
    run = document(port, *words.split())
    assert run["test"]["length"]["seconds"] == 1, run["test"]["length"]
    assert all(one["elapsed"] >= 1 for one in run["iterations"]), "too short"
    said = [line for line in run["stderr"].splitlines() if f"-l {MS / 1000:g}: " in line]
    assert len(said) == 1 and "the test lasts 1 s" in said[0], run["stderr"]
    return said[0]


def is_ours_to_end(port: int, words: str) -> str:
    run = document(port, *words.split())
    assert run["test"]["length"]["seconds"] == MS / 1000, run["test"]["length"]
    assert "whole seconds" not in run["stderr"], run["stderr"]
    return ""


def has_no_pattern(daemon: lib.Daemon, test: str, rc: int) -> None:
    """Nothing is measured for half a second there."""
    got = lib.run(command(daemon.port, test, "-l", "0.5"), timeout=30)
    assert got.rc == rc, got


def suite(report: lib.Report) -> None:
    with lib.Daemon(args=["-v", "2"]) as daemon:
        report.cases([(words, partial(lasts_a_fraction, daemon, words)) for words in (*BENCHES, *OPTIONS)], 2)
        report.case("what the daemon knows", partial(daemon_knows, daemon))
        for test, rc in (("LOC_CPU", 0), ("REM_CPU", 0), ("UUID", 0), ("NOSUCH", 1)):
            report.case(f"{test} -l 0.5", partial(has_no_pattern, daemon, test, rc))
    try:
        real = str(lib.real_netperf() / "netserver")
    except lib.Skipped as why:
        report.skip("the real netserver", str(why))
        return
    with lib.Daemon(program=real, grace=None) as daemon:
        for words in ("TCP_MAERTS", "TCP_STREAM --both"):
            report.case(f"the real netserver: {words}", partial(is_rounded_up, daemon.port, words))
        for words in ("TCP_STREAM", "UDP_STREAM", "TCP_RR"):
            report.case(f"the real netserver: {words}", partial(is_ours_to_end, daemon.port, words))


if __name__ == "__main__":
    lib.main(suite)
