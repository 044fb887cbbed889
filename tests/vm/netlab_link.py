# netvm: modules sch_netem
# netvm: clock counted
"""netlab-link beside the kernel's netem: both are asked for the same link, and measured by the same probe."""

from functools import partial
from typing import Any

import lib

NAME = "judge"
# Datagrams of a train, not 10,000, and seconds of those for the delay: a guest takes a millisecond for each datagram, and
# test_line counts the shares of many more. Few do where nothing is to be lost or doubled, or each takes the same time.
LINKS = (
    ("a delay with jitter", 500, 5.0, ["--delay", "10ms", "--jitter", "2ms"]),
    ("loss and duplicates", 2500, 0.2, ["--delay", "5ms", "--loss", "2", "--duplicate", "1"]),
    ("reordering", 2500, 0.2, ["--delay", "5ms", "--reorder", "3"]),
)


def suite(report: lib.Report) -> None:
    netlab = lib.script("netlab")
    from netkit import labcheck
    for words, train, longest, options in LINKS:
        labcheck.TRAIN, labcheck.LONGEST = train, longest
        for emulator in ("netem", "link"):
            got = lib.called(netlab.main, "up", "--name", NAME, "--rate", "none", "--emulator", emulator, *options)
            if not report.check(f"{words}: {emulator} is built", got.rc == 0, got.err):
                continue
            lab = netlab.Lab(NAME)
            check = labcheck.Check(lab.read_link(), lab.probe)
            # The delay is first: then the neighbours' addresses are known, as the link may lose questions for them, too.
            for finding in (*check.delay(), *check.trains()):
                print(f"  {emulator:<6}{finding.line()}", flush=True)
                report.check(f"{words}: {finding.name} by {emulator}", finding.good, finding.measured)
            lab.down()
    for emulator in ("netem", "link"):
        several_paths(report, netlab, emulator)


def several_paths(report: lib.Report, netlab: Any, emulator: str) -> None:
    """A change reaches each of them."""
    from netkit import labcheck
    lab = netlab.Lab(NAME)
    for words in (["up", "--rate", "none", "--emulator", emulator, "--paths", "2", "--delay", "5ms"],
                  ["set", "--delay", "20ms"]):
        got = lib.called(netlab.main, words[0], "--name", NAME, *words[1:])
        report.check(f"two paths: {words[0]} of {emulator}", got.rc == 0, got.err)
    link = lab.read_link()
    report.check(f"two paths: as asked for, of {emulator}", (link.paths, link.delay) == (2, 0.02), str(link))
    for path in link.each():
        finding, = labcheck.Check(link, partial(lab.probe, path=path)).delay()
        report.check(f"two paths: delay of path {path.number} by {emulator}", finding.good, finding.measured)
    lab.down()


lib.main(suite)
