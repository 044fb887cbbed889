"""What thousands of connections cost before and beside a measurement: time and memory of both ends.

The window begins an interval before the end of the first interim result, by the clock of the wall. What is
left of a process beyond its set-up and the window is tearing down and telling results. Flows that were lost
are those without a transaction in the window, by the document of a further run.
"""

import re
import tempfile
import threading
import time
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Tuple

import common
import lib

FLOWS = (1000, 10000)
SECONDS = 3             # of the window
# By flows: seconds from start to window, and MiB of the client at most.
BARS = {1000: (1.0, 32.0), 10000: (8.0, 96.0)}
LOOK_EVERY = 0.02
FIRST = re.compile(r"^NETPERF_(INTERVAL|ENDING)\[0\]=([0-9.]+)$", re.M)


class Seen(NamedTuple):
    """Of a process: when it was there first and last, and its peak of resident memory in MiB."""
    first: float
    last: float
    peak: float


def peak_of(pid: int) -> Optional[float]:
    """In MiB; None where the process is gone or has no memory any more."""
    try:
        found = re.search(r"^VmHWM:\s*(\d+) kB$", Path(f"/proc/{pid}/status").read_text(), re.M)
    except OSError:
        return None
    return int(found[1]) / 1024 if found else None


class Watch:
    """Looks at a client and at the sessions of a daemon until it is left."""

    def __init__(self, daemon: lib.Daemon) -> None:
        self._daemon, self._stop = daemon, threading.Event()
        self._thread = threading.Thread(target=self._look)
        self.client = 0
        self.seen: "Dict[int, Seen]" = {}

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._stop.wait(LOOK_EVERY):
            for pid in [self.client, *self._daemon.children()]:
                peak, now = peak_of(pid) if pid else None, time.monotonic()
                if peak is not None:
                    old = self.seen.get(pid, Seen(now, now, 0.0))
                    self.seen[pid] = Seen(old.first, now, max(old.peak, peak))

    def session(self) -> Seen:
        """The one that lived longest: the test's."""
        others = [seen for pid, seen in self.seen.items() if pid != self.client]
        return max(others, key=lambda seen: seen.last - seen.first, default=Seen(0, 0, 0))


class Cost(NamedTuple):
    """Seconds from start to window, and beyond the window in all; MiB."""
    until_window: float
    client_rest: float
    session_rest: float
    client_peak: float
    session_peak: float


def command(peer: common.Peer, flows: int, *options: str) -> "List[str]":
    return peer.command("TCP_RR", SECONDS, ("--flows", str(flows), *options),
                        ("-k", "THROUGHPUT,ELAPSED_TIME,FLOWS"))


def measure(peer: common.Peer, daemon: lib.Daemon, flows: int) -> Cost:
    cmd = command(peer, flows, "-D", "0.5")
    with Watch(daemon) as watch:
        since, clock = time.monotonic(), time.time()
        with lib.Started(cmd) as client:
            watch.client = client.pid
            got = common.good(cmd, client.finish(120))
        whole = time.monotonic() - since
        lib.wait_for(lambda: not daemon.children(), 20)
    told, first = common.figures(got.out), dict(FIRST.findall(got.out))
    if len(first) != 2 or told.get("FLOWS") != flows or watch.client not in watch.seen:
        raise common.Failed(f"{' '.join(cmd)}: {got.out.strip()}")
    session, length = watch.session(), told["ELAPSED_TIME"]
    return Cost(float(first["ENDING"]) - float(first["INTERVAL"]) - clock, whole - length,
                session.last - session.first - length, watch.seen[watch.client].peak, session.peak)


def lost(peer: common.Peer, flows: int) -> "Tuple[int, float]":
    """How many flows had no transaction, and the fewest that one had a second."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        common.run(command(peer, flows, f"--json={file.name}"), 120)
        last = lib.document(open(file.name, encoding="utf-8").read())["iterations"][-1]
    rows = last["flows"]        # of one alone there are none
    rates = [row["transactions_per_s"] for row in rows] if rows else [last["metrics"]["THROUGHPUT"]]
    return flows - sum(rate > 0 for rate in rates), min(rates)


def medians(costs: "List[Cost]") -> Cost:
    return Cost(*(common.quartiles(values)[1] for values in zip(*costs)))


def row(peer: common.Peer, daemon: lib.Daemon, flows: int, rounds: int, verdicts: common.Verdicts) -> str:
    try:
        cost = medians([measure(peer, daemon, flows) for _ in range(rounds)])
        gone, fewest = lost(peer, flows)
    except common.Refused as fault:
        return f"refused: {fault}"
    except common.Failed as fault:
        return f"failed: {fault}  {verdicts.judge(False)}"
    line = (f"{cost.until_window:9.2f} {cost.client_rest:9.2f} {cost.session_rest:9.2f} {cost.client_peak:9.1f}"
            f" {cost.session_peak:9.1f} {gone:6} {fewest:9.1f}")
    if flows not in BARS:
        return line
    seconds, size = BARS[flows]
    said = [f"{verdicts.judge(cost.until_window < seconds)} (< {seconds:g} s)",
            f"{verdicts.judge(cost.client_peak < size)} (< {size:g} MiB)", f"{verdicts.judge(gone == 0)} (none lost)"]
    return f"{line}  {', '.join(said)}"


def show(flows: "Tuple[int, ...]", rounds: int, verdicts: common.Verdicts) -> None:
    print(f"Setting up many connections (TCP_RR over loopback, a window of {SECONDS} s): medians of {rounds} runs."
          " Seconds from the\nstart of the client to the window, and beyond the window in all, of the client and of"
          " the session; MiB that\neach had at most (VmHWM); flows without a transaction in the window, and the"
          " fewest transactions/s of one.\n")
    print("   flows to window    client   session  MiB here MiB there   lost    fewest")
    knows = "--max-flows" in lib.run([lib.netserver(), "--help"], 10).out
    with lib.Daemon(args=["--max-flows", str(max(flows))] if knows else []) as daemon:
        peer = common.Peer("ours", lib.netperf(), daemon.port)
        for many in flows:
            print(f"{many:8} {row(peer, daemon, many, rounds, verdicts)}", flush=True)
    print()
