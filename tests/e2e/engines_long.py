"""Every engine under every test that it can drive, with all sorts of options, again and again: both ends' counts
agree, the evidence names the engines that were asked for, and nothing is said on the way.

NP_ENGINES_MINUTES says for how long: 2 unless it does, 10 with NP_TEST_QUICK=1, hence with sanitizers. A round takes
each test under each engine once; the rest is chance, which NP_SEED repeats. NP_ENGINES_ONLY is the number of the one
case to run. NETPERF and NETSERVER name the programs, as everywhere.
"""

import functools
import os
import random
import re
import time
from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

import lib

MINUTES = float(os.environ.get("NP_ENGINES_MINUTES") or (10 if lib.QUICK else 2))
SEED = int(os.environ.get("NP_SEED") or random.SystemRandom().randrange(1 << 32))
ONLY = int(os.environ.get("NP_ENGINES_ONLY") or 0)
PATIENCE = 40       # seconds for a case, thrice that on a busy machine (lib.run)
RINGS = 8           # of a daemon that can have them
FINDING = re.compile(r"Sanitizer|runtime error")
STREAMS = ("TCP_STREAM", "TCP_MAERTS", "TCP_SENDFILE", "UDP_STREAM", "STREAM_STREAM", "DG_STREAM")
TRANSACTIONS = ("TCP_RR", "UDP_RR", "STREAM_RR", "DG_RR", "TCP_CRR")
CONNECTS = ("TCP_CRR",)
Document = Dict[str, Any]


class Case(NamedTuple):
    """One run. Of a counted one `count` is what -l says of bytes or transactions, else 0."""
    number: int
    test: str
    near: str
    far: str
    count: int
    options: Tuple[str, ...]
    specific: Tuple[str, ...]

    def name(self) -> str:
        return " ".join(map(str, (self.number, self.test, self.length(), f"{self.near},{self.far}", *self.options,
                                  *self.specific)))

    def length(self) -> int:
        """What -l says."""
        return -self.count if self.count else 1

    def command(self, port: int) -> List[str]:
        return [lib.netperf(), "-p", str(port), "-t", self.test, "-l", str(self.length()), "--json",
                "--engine", f"{self.near},{self.far}", *self.options, "--", *self.specific]


# ---- which cases --------------------------------------------------------------------------------

class Ends(NamedTuple):
    """What each end can drive a test with."""
    near: Tuple[str, ...]
    far: Tuple[str, ...]


@functools.lru_cache(maxsize=None)
def possible(port: int, test: str, flows: int) -> Ends:
    listed = engines(port, "-t", test, *(("--flows", str(flows)) if flows > 1 else ()))
    near, far = (tuple(row["name"] for row in listed[end] if row["why"] is None) for end in ("near", "far"))
    return Ends(near, far)


def engines(port: int, *options: str) -> Document:
    got = lib.run([lib.netperf(), "-H", "127.0.0.1", "-p", str(port), *options, "--engine", "list", "--json"], 20)
    assert got.rc == 0, got
    return lib.document(got.out)


def sizes(chance: random.Random, test: str) -> Tuple[str, ...]:
    """Of messages, none of which has to be cut."""
    if test in STREAMS:
        most = 1400 if test == "UDP_STREAM" else 4000 if test == "DG_STREAM" else 100_000
        size = chance.choice((64, 1000, 1400, most))
        return () if test == "TCP_SENDFILE" else ("-m", str(size))
    if chance.random() < 0.5:
        return ()
    most = 20_000 if test in ("TCP_RR", "STREAM_RR") else 1400
    return ("-r", f"{chance.choice((1, 100, most))},{chance.choice((1, 100, most))}")


def load(chance: random.Random, test: str) -> Tuple[str, ...]:
    """Several in flight, or paced."""
    if chance.random() < 0.2:
        return ("-b", str(chance.randrange(1, 30)), "-w", "2ms")
    if test in TRANSACTIONS and test not in CONNECTS and chance.random() < 0.5:
        return ("-b", str(chance.randrange(1, 20)))
    return ()


def draw(chance: random.Random, number: int, port: int, test: str, engine: str) -> Case:
    """A case of that test with that engine at one end, and of all the rest some."""
    flows = chance.choice((1, 1, 2, 10))
    ends = possible(port, test, flows)
    if engine not in (*ends.near, *ends.far):
        flows = 1 if flows > 1 else 2
        ends = possible(port, test, flows)
    near, far = chance.choice(ends.near), chance.choice(ends.far)
    if engine in ends.near and (engine not in ends.far or chance.random() < 0.5):
        near = engine
    else:
        far = engine
    counted, loaded = chance.random() < 0.6, load(chance, test)
    most = 1500 if test in TRANSACTIONS else 20_000 if "-w" in loaded else 20_000_000
    count = chance.randrange(1, most) if counted else 0
    options = [*(("--flows", str(flows)) if flows > 1 else ()), *loaded]
    if flows > 1 and chance.random() < 0.3:
        options += ["--threads", "2"]
    if not counted and chance.random() < 0.3:
        options += ["--warm-up", "0.2"]
    options += chance.choice(((), (), ("-j",), ("-D", "0.1")))
    if test.startswith(("TCP", "UDP")):
        options += ["-H", chance.choice(("127.0.0.1", "::1"))]
    return Case(number, test, near, far, count, tuple(options), sizes(chance, test))


def cases(seed: int, port: int) -> Iterator[Case]:
    """Round after round of all tests under all engines, without end."""
    chance, number = random.Random(seed), 0
    pairs = [(test, name) for test in (*STREAMS, *TRANSACTIONS) for name in dict.fromkeys(
        name for flows in (1, 2) for end in possible(port, test, flows) for name in end)]
    while pairs:
        chance.shuffle(pairs)
        for test, name in pairs:
            number += 1
            yield draw(chance, number, port, test, name)


# ---- what has to hold ---------------------------------------------------------------------------

def same(what: str, *values: object) -> None:
    assert len(set(values)) == 1, f"{what}: {values}"


def judge_stream(case: Case, near: Document, far: Document) -> None:
    """What one end has sent the other one has received, but for datagrams that a queue dropped, and for what was
    on its way when a window ended."""
    sender, receiver = (far, near) if case.test == "TCP_MAERTS" else (near, far)
    sent, received = sender["flow.bytes_sent"], receiver["flow.bytes_received"]
    if case.test == "UDP_STREAM":
        assert received <= sent or "--warm-up" in case.options, (sent, received)
        judge_numbers(case, near, far)
    elif case.count:
        same("bytes", sent, received)
    if case.count:
        assert sent >= case.count, (sent, case.count)


def judge_numbers(case: Case, near: Document, far: Document) -> None:
    """The account of numbered datagrams."""
    if "udp.sent" not in far or "--warm-up" in case.options:
        return
    same("sent", far["udp.sent"], near["flow.sends"])
    same("lost", far["udp.lost"], far["udp.sent"] - far["udp.unique"])
    same("unique", far["udp.unique"], far["udp.received"] - far["udp.duplicated"])
    same("received", far["flow.receives"] + far["udp.late"], far["udp.received"])


def judge_transactions(case: Case, near: Document, far: Document) -> None:
    if not case.count or near.get("flow.requests_lost"):
        return
    same("transactions", near["flow.transactions"], case.count)
    same("requests", near["flow.bytes_sent"], far["flow.bytes_received"])
    same("responses", far["flow.bytes_sent"], near["flow.bytes_received"])


def judge(case: Case, document: Document) -> None:
    one = document["iterations"][0]
    same("near engine", case.near, one["near"]["engine.name"], document["plan"]["engine"]["near"])
    same("far engine", case.far, one["far"]["engine.name"], document["plan"]["engine"]["far"])
    assert document["result"] == "complete", (document["result"], document["reason"], document["error"])
    (judge_stream if case.test in STREAMS else judge_transactions)(case, one["near"], one["far"])


def run_case(case: Case, port: int) -> bool:
    """Whether it was run, and not refused in one line that says why."""
    got = lib.run(case.command(port), PATIENCE)
    assert not FINDING.search(got.err), got.err
    if got.rc == 1 and got.err.startswith("netperf: --"):
        lib.error_line(got, "netperf", "--")
        return False
    assert got.rc == 0, (got.rc, got.err.strip(), got.out[-300:])
    judge(case, lib.document(got.out))
    return True


# ---- the suite ----------------------------------------------------------------------------------

def daemon_options() -> List[str]:
    got = lib.run([lib.netserver(), "--help"], 20)
    return [word for option in ("--uring", "--spin") if option in got.out + got.err for word in (option, str(RINGS))]


def soak(report: lib.Report, port: int) -> "Dict[str, List[int]]":
    """How many cases each engine has run at either end, and how many were refused."""
    found: "Dict[str, List[int]]" = {}
    end = time.monotonic() + 60 * MINUTES
    for case in cases(SEED, port):
        if time.monotonic() > end or (ONLY and case.number > ONLY):
            break
        if ONLY and case.number != ONLY:
            continue
        try:
            ran = run_case(case, port)
        except Exception as fault:  # a case that breaks is one that fails
            report.check(case.name(), False, f"{type(fault).__name__}: {fault}")
            continue
        for name in {case.near, case.far}:
            found.setdefault(name, [0, 0])[0 if ran else 1] += 1
    return found


def suite(report: lib.Report) -> None:
    print(f"# NP_SEED={SEED} NP_ENGINES_MINUTES={MINUTES:g}", flush=True)
    with lib.Daemon(args=daemon_options()) as daemon:
        found = soak(report, daemon.port)
        known = [row["name"] for row in engines(daemon.port)["near"]]
        log = daemon.log(1 << 24)
    for name in known:
        ran, refused = found.get(name, [0, 0])
        if ran or refused:
            report.check(f"{name}: {ran} cases", ran > 0, f"{refused} refused" if refused else "")
        elif not ONLY:
            report.skip(name, "this machine can't drive any of the tests with it, see netperf --engine list")
    report.check("no sanitizer says anything of the daemon", not FINDING.search(log), log[-2000:] if FINDING.search(log)
                 else "")


if __name__ == "__main__":
    lib.main(suite)
