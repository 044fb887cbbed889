"""What the parts of the benchmark share: our client, how many bars were held, and what a run gave."""

import math
import os
import platform
import re
import resource
import shutil
import statistics
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Sequence, Tuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "e2e"))

import layout  # noqa: E402
import lib  # noqa: E402

HOST = "127.0.0.1"
RINGS = 4           # of the daemon, for the engine uring
ENOUGH = 6          # values whose least and greatest hold their median with 95 %
FIGURE = re.compile(r"^([A-Z][A-Z0-9_]*)=(\S+)$", re.M)


class Failed(Exception):
    """Something did not run; the text says what."""


class Refused(Failed):
    """A client has no such test or option; the text is its line."""


class Unmeasured(Failed):
    """The text says why there is no figure."""


class Peer(NamedTuple):
    """A client and the port of its own daemon."""
    name: str
    client: str
    port: int
    host: str = HOST

    def command(self, test: str, length: int, options: Tuple[str, ...],
                specific: Tuple[str, ...]) -> List[str]:
        return [self.client, "-H", self.host, "-p", str(self.port), "-t", test, "-l", str(length),
                "-P", "0", *options, *(["--", *specific] if specific else [])]


class Timed(NamedTuple):
    """A timed run, of which `figure` is compared."""
    name: str
    test: str
    cpus: Tuple[int, int]  # near, far
    size: int = 0          # of -m; 0 is the default
    figure: str = "rate"
    also: Tuple[str, ...] = ()  # options of the test

    def specific(self) -> Tuple[str, ...]:
        return (*(("-m", str(self.size)) if self.size else ()), *self.also)


class Verdicts:
    """How many bars were held and missed."""

    def __init__(self) -> None:
        self.held = self.missed = 0

    def judge(self, holds: bool) -> str:
        self.held, self.missed = self.held + holds, self.missed + (not holds)
        return "ok" if holds else "MISSED"


def run(cmd: Sequence[str], timeout: float) -> lib.Result:
    """Its output. Raises Refused where a netperf names an option that it can't do, else Failed."""
    return good(cmd, lib.run(cmd, timeout))


def good(cmd: Sequence[str], got: lib.Result) -> lib.Result:
    """The same result, if it is one."""
    if got.rc == 0:
        return got
    said = ((got.err or got.out).strip().splitlines() or [""])[-1]
    if got.rc in (1, 2) and not got.out.strip() and re.match(r"netperf: --[a-z-]+\b.*:", said):
        raise Refused(said)
    raise Failed(f"{' '.join(cmd)}: exit status {got.rc}: {said}")


def needs(program: str) -> str:
    if not shutil.which(program):
        raise Unmeasured(f"no program {program}")
    return program


def daemon(*args: str, program: str = "") -> lib.Daemon:
    """In a session of its own, as neper's and iperf3's servers are: the kernel divides a busy processor between
    sessions (sched(7), autogroup), and an end that shares one with this program would have less of it."""
    if program:
        return lib.Daemon(["setsid"], args, program=program, grace=None)
    return lib.Daemon(["setsid"], args)


def daemon_options() -> List[str]:
    """What our daemon needs so that every engine is possible."""
    got = lib.run([lib.netserver(), "--help"], 10)
    return [word for option in ("--uring", "--spin") if option in got.out + got.err for word in (option, str(RINGS))]


def rate_of_peer(peer: Peer, row: Timed, seconds: int, options: Tuple[str, ...] = ()) -> float:
    words = ("-T", f"{row.cpus[0]},{row.cpus[1]}", *options)
    got = run(peer.command(row.test, seconds, words, row.specific()), seconds + 15)
    style = layout.Style(1, heads=False)
    rows = "".join(line for line in got.out.splitlines(True) if not line.startswith("Interim"))
    try:
        fields = layout.match(layout.expected(layout.load(row.test), style), rows)
    except layout.Misfit as misfit:
        raise Failed(f"{peer.name} {row.name}: {misfit}") from None
    return float(fields[row.figure])


def rate_of_bare(bare: str, row: Timed, seconds: int) -> float:
    words = (seconds, row.size, *row.cpus)
    return float(run([bare, row.test, *map(str, words)], seconds + 15).out)


def in_turn(measures: "Dict[str, Callable[[], Any]]", rounds: int) -> "Tuple[Dict[str, List[Any]], Dict[str, Failed]]":
    """What each gave, a round after the other, and the faults: who fails is left out from there on, and with "ours"
    all. Who comes first changes from round to round."""
    told: "Dict[str, List[Any]]" = {name: [] for name in measures}
    faults: "Dict[str, Failed]" = {}
    for number in range(rounds):
        first = number % len(measures)
        for name in [*measures][first:] + [*measures][:first]:
            if name in faults or "ours" in faults:
                continue
            try:
                told[name].append(measures[name]())
            except Failed as fault:
                faults[name] = fault
    return told, faults


def figures(out: str) -> "Dict[str, float]":
    """The numbers among what -k printed."""
    found = {}
    for name, value in FIGURE.findall(out):
        try:
            found[name] = float(value)
        except ValueError:
            pass
    return found


def quartiles(values: "Sequence[float]") -> "List[float]":
    return statistics.quantiles(values, n=4, method="inclusive") if values[1:] else 3 * list(values)


def sure_of_median(values: "Sequence[float]") -> "Tuple[float, float]":
    """Between which values the median lies with 95 % at least, by how many lie on either side of it. Of fewer
    than ENOUGH that can't be told."""
    ordered, count = sorted(values), len(values)
    if count < ENOUGH:
        return -math.inf, math.inf
    outside, out = 0.0, 0
    while out < (count - 1) // 2 and outside + 2 * math.comb(count, out) / 2**count <= 0.05:
        outside += 2 * math.comb(count, out) / 2**count
        out += 1
    out = max(0, out - 1)
    return ordered[out], ordered[count - 1 - out]


def spread(values: "Sequence[float]", digits: int = 3) -> str:
    """The median with the quartiles."""
    low, half, high = quartiles(values)
    return f"{half:.{digits}f} ({low:.{digits}f}..{high:.{digits}f})"


def interval(values: "Sequence[float]", digits: int = 2) -> str:
    """The median with its interval (sure_of_median); of few values with the least and greatest."""
    low, high = sure_of_median(values) if len(values) >= ENOUGH else (min(values), max(values))
    return f"{statistics.median(values):.{digits}f} ({low:.{digits}f}..{high:.{digits}f})"


def more_descriptors() -> None:
    """As many as this user may have: thousands of connections need one each, at both ends."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def machine() -> str:
    """This machine in a few words."""
    text = Path("/proc/cpuinfo").read_text(errors="replace")
    model = re.search(r"^(?:model name|Hardware|cpu model)\s*:\s*(.*)$", text, re.M)
    return (f"{model[1].strip() if model else platform.machine()}, {len(os.sched_getaffinity(0))} processors, "
            f"{platform.system()} {platform.release()}")
