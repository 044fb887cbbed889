"""Does --explain name the cause? A bed of namespaces with planted causes, each some runs: prints a
table of what was said. `make check-explain`; needs root and a machine with nothing else to do.

    explain_bed.py [CAUSE...]           these alone
    NP_EXPLAIN_RUNS=5 explain_bed.py    runs of each (20)
    NP_EXPLAIN_SHOW=1 explain_bed.py    an example of what is said rightly, too
    NP_EXPLAIN_KEEP=DIR explain_bed.py  what both ends knew of each run, as CAUSE-NUMBER-SAID.json
"""

import collections
import contextlib
import os
import re
import shutil
import subprocess
import sys
from typing import Callable, ContextManager, Counter, Dict, Iterator, List, NamedTuple, Tuple

import lib
import longlink
import netns

SECONDS = 1
ENOUGH = 0.95           # of the runs have to name the cause
SAID = re.compile(r"^explain: ([a-z-]+): (.*)$", re.M)
CUBIC = ("-K", "cubic")  # per socket: the default of the machine may be another one


class Lab(netns.Lab):
    def __init__(self, *link: str) -> None:
        self.name = f"explain{os.getpid()}"
        self.link = link
        self.client = [lib.NETLAB, "exec", "--name", self.name, "client"]
        self.server = [lib.NETLAB, "exec", "--name", self.name, "server"]

    def __enter__(self) -> "Lab":
        self._netlab("up", *self.link)
        return self

    def _netlab(self, verb: str, *args: str) -> None:
        netns.must([lib.NETLAB, verb, "--name", self.name, *args])


class SpoiltLab(Lab):
    """A lab with more to it, for which it is taken down, too, when that fails."""

    def __enter__(self) -> "SpoiltLab":
        super().__enter__()
        try:
            self.spoil()
        except BaseException:
            self.__exit__()
            raise
        return self

    def spoil(self) -> None:
        raise NotImplementedError


class LossyLab(SpoiltLab):
    """One of a hundred packets is lost on its way in: what is dropped on its way out is told to
    TCP at once."""

    def spoil(self) -> None:
        self.drop(self.server, "meta length > 1000 numgen random mod 100 < 1")


class TiresomeLab(SpoiltLab):
    """The second processor alone takes packets in, and has a long list of rules to go through."""

    def spoil(self) -> None:
        self.drop(self.server, *(f"meta mark {mark}" for mark in range(1, 1501)))
        netns.must([*self.server, "sh", "-c",
                    "echo 2 > /sys/class/net/lab0/queues/rx-0/rps_cpus"])


@contextlib.contextmanager
def hog() -> Iterator[None]:
    """A process that wants the first processor for itself."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        os.sched_setaffinity(process.pid, {0})
        try:
            yield
        finally:
            process.kill()


class Cause(NamedTuple):
    name: str
    expected: Tuple[str, ...]
    link: Callable[[], ContextManager]
    options: str            # global ones, "--", test options
    beside: Callable[[], ContextManager[None]] = contextlib.nullcontext


def plain() -> Lab:
    return Lab("--rate", "none")


def far_away() -> longlink.LongLink:
    return longlink.LongLink(0.005)


CAUSES = (
    Cause("reader asleep, small buffer", ("reader-slow",), plain,
          "-b 0,1 -w 0,5ms -- -S 16K -M 16K -K cubic"),
    Cause("reader busy, small buffer", ("receiver-cpu",), plain,
          "-K 0,1000000 -- -M 1000000 -S 32K -K cubic"),
    Cause("sender that sleeps", ("sending-application",), plain,
          "-b 1 -w 10ms -- -m 64K -K cubic"),
    Cause("tbf shaper", ("link",), lambda: Lab("--rate", "100mbit"), "-- -K cubic"),
    Cause("1 % loss", ("loss",), lambda: LossyLab("--rate", "none"), "-- -K cubic"),
    Cause("sender beside a CPU hog", ("sender-cpu",), plain, "-T 0,1 -- -K cubic", hog),
    Cause("tiny UDP receive buffer", ("udp-receive-buffer",), plain,
          "-t UDP_STREAM -- -m 1472 -S 2304"),
    Cause("tiny MTU", ("mtu",), lambda: Lab("--rate", "none", "--mtu", "256"), "-- -K cubic"),
    Cause("send buffer, 10 ms", ("send-buffer",), far_away, "-- -s 16K -m 1448 -K cubic"),
    Cause("receive buffer, 10 ms", ("receive-buffer",), far_away, "-- -S 16K -K cubic"),
    Cause("slow hop on the way", ("path-rate",),
          lambda: longlink.LongLink(0.002, 20e6, 100_000), "-- -K cubic"),
    Cause("far softirq", ("far-softirq",), lambda: TiresomeLab("--rate", "none"),
          "-T 0,0 -- -K cubic"),
    Cause("far softirq, datagrams", ("far-softirq",), lambda: TiresomeLab("--rate", "none"),
          "-t UDP_STREAM -T 0,0 -- -m 1472"),
    Cause("sender of 16 bytes at a time", ("sender-cpu",), plain, "-- -m 16 -K cubic"),
    Cause("far away, turn by turn", ("turns",), far_away, "-t TCP_RR -- -K cubic"),
    Cause("nothing: a fast link", ("sender-cpu", "receiver-cpu"), plain, "-- -K cubic"),
)


def say(lab, port: int, cause: Cause, run: int) -> Tuple[str, str]:
    """What --explain names, and the whole of it."""
    keep = os.environ.get("NP_EXPLAIN_KEEP")
    file = f"{keep}/{re.sub('[^a-z0-9]+', '-', cause.name.lower())}-{run}"
    got = lib.run([*lab.client, lib.netperf(), "-H", netns.IPV4, "-p", str(port), "-P", "0",
                   "-l", str(SECONDS), "--explain", *([f"--json={file}"] if keep else []),
                   *cause.options.split()], 60)
    found = SAID.search(got.err)
    if got.rc != 0 or not found:
        return "no result", f"status {got.rc}: {got.err.strip()}"
    if keep:
        os.rename(file, f"{file}-{found[1]}.json")
    return found[1], got.err.strip()


def plant(cause: Cause, runs: int) -> Tuple[Counter[str], Dict[str, str]]:
    """How often what was said, and an example of each."""
    said: Counter[str] = collections.Counter()
    examples: Dict[str, str] = {}
    with cause.link() as lab, lib.Daemon(lab.server) as daemon, cause.beside():
        for run in range(runs):
            named, text = say(lab, daemon.port, cause, run)
            said[named] += 1
            examples.setdefault(named, text)
    return said, examples


def show(cause: Cause, runs: int, said: Counter[str], examples: Dict[str, str]) -> None:
    right = sum(said[name] for name in cause.expected)
    others = ", ".join(f"{name} {n}" for name, n in said.most_common()
                       if name not in cause.expected)
    print(f"{cause.name:28} {'/'.join(cause.expected):24} {right:3} of {runs:3}  {others}",
          flush=True)
    for name, text in examples.items():
        if name not in cause.expected or os.environ.get("NP_EXPLAIN_SHOW"):
            print("".join(f"    | {line}\n" for line in text.splitlines()), end="", flush=True)


def bed(report: lib.Report, runs: int, wanted: List[str]) -> None:
    why = lib.no_lab()
    if why:
        lib.skip(why)
    if not shutil.which("nft", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"):
        lib.skip("no program nft")
    print(f"{'planted':28} {'to be named':24} named right")
    for cause in CAUSES:
        if wanted and not any(word in cause.name for word in wanted):
            continue
        if "longlink" in cause.link.__code__.co_names and not os.path.exists("/dev/net/tun"):
            report.skip(cause.name, "no /dev/net/tun")
            continue
        said, examples = plant(cause, runs)
        show(cause, runs, said, examples)
        right = sum(said[name] for name in cause.expected)
        report.check(cause.name, right >= ENOUGH * runs or (runs < 20 and right >= runs - 1 > 0)
                     or right == runs, f"{right} of {runs}")


def suite(report: lib.Report) -> None:
    bed(report, int(os.environ.get("NP_EXPLAIN_RUNS", "20")), sys.argv[1:])


if __name__ == "__main__":
    lib.main(suite)
