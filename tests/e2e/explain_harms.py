"""The harms that explain_bed.py does to a test, one class each. Each counts what it has done, if possible with a
counter independent of netperf, to tell a run in which it had no effect from one whose cause was missed.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import lib
import netns
from explain_links import DEVICE, Lab

def output(*cmd: str) -> str:
    return lib.must(cmd)


# --- a run --------------------------------------------------------------------------------------

class Bed:
    """The link and daemon of one plant; the client of the current run, and its output."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.daemon: Optional[lib.Daemon] = None
        self.netperf: Optional["subprocess.Popen[str]"] = None
        self.over = threading.Event()
        self.document: Dict[str, Any] = {}
        self.others: List[int] = []     # sessions of other runs

    def sessions(self) -> List[int]:
        assert self.daemon
        return [pid for pid in self.daemon.children() if pid not in self.others]

    def bag(self, end: str) -> Dict[str, Any]:
        return self.document["iterations"][-1][end] or {}


class Harm:
    """A harm, and a witness that it happened."""

    what = "times"  # the unit of count()
    least = 1.0     # that must be counted in a run

    def prefix(self, end: str) -> List[str]:
        """The command prefix for an end."""
        return []

    def begin(self, bed: Bed) -> None:
        """Called before the daemon starts."""

    def beside(self, bed: Bed) -> None:
        """Called when the daemon runs."""

    def during(self, bed: Bed) -> None:
        """Runs in a thread of its own, from the start of the run's session to the end of the run."""

    def leave(self, bed: Bed) -> None:
        """Undo beside(); always called."""

    def end(self, bed: Bed) -> None:
        """Undo begin(), after the daemon has ended."""

    def count(self, bed: Bed) -> float:
        """For witness(), unless that looks at something else."""
        return 0

    def witness(self, bed: Bed, before: float) -> Tuple[bool, str]:
        """Whether the harm took effect in the last run, and the figure that shows it."""
        moved = self.count(bed) - before
        return moved >= self.least, f"{moved:.6g} {self.what}"

    def refutes(self, bed: Bed) -> bool:
        """Whether the document contradicts the cause."""
        return False


class Told(Harm):
    """Only options: the document must confirm that they were used."""

    def __init__(self, what: str, read: Callable[[Bed], Any], least: float = 1,
                 most: float = float("inf")) -> None:
        self.what, self.read, self.least, self.most = what, read, least, most

    def witness(self, bed: Bed, before: float) -> Tuple[bool, str]:
        value = self.read(bed)
        return value is not None and self.least <= value <= self.most, f"{self.what} {value}"


def told(end: str, name: str, least: float = 1, most: float = float("inf")) -> Told:
    """A figure in one end's evidence."""
    return Told(f"{end} {name}", lambda bed: bed.bag(end).get(name), least, most)


def asked(end: str, name: str, least: float = 1) -> Told:
    """An option, as the document records it."""
    return Told(f"{end} {name}", lambda bed: bed.document["parameters"]["asked"][end][name], least)


class Nothing(Harm):
    """No harm. Judged only if other programs used next to no processor time."""

    most = 0.1      # processors

    def __init__(self, offloads: bool = True) -> None:
        self.offloads, self.since = "on" if offloads else "off", 0.0

    def begin(self, bed: Bed) -> None:
        for end in ("near", "far"):
            output(*bed.lab.enter(end), "ethtool", "-K", DEVICE, "gso", self.offloads, "tso", self.offloads)

    def count(self, bed: Bed) -> float:
        """Processor seconds of everything except this program's children and kernel threads (2)."""
        self.since = time.monotonic()
        parents, ticks = {}, {}
        for file in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                words = file.read_text().rpartition(")")[2].split()
                parents[int(file.parent.name)] = int(words[1])
                ticks[int(file.parent.name)] = sum(int(word) for word in words[11:15])
        own = {2, os.getpid()}
        while more := {pid for pid, parent in parents.items() if parent in own} - own:
            own |= more
        return sum(n for pid, n in ticks.items() if pid not in own) / os.sysconf("SC_CLK_TCK")

    def witness(self, bed: Bed, before: float) -> Tuple[bool, str]:
        since = self.since
        others = (self.count(bed) - before) / (self.since - since)
        return others <= self.most, f"others had {others:.2f} processors"

    def refutes(self, bed: Bed) -> bool:
        told = bed.document["iterations"][-1]["disturbed"]
        return told is not None and "stopped" in told["reasons"]


# --- processors ---------------------------------------------------------------------------------

def cgroup_cpu() -> Tuple[Optional[Path], bool]:
    """Where cgroups with a quota can be created, and whether that is version 2."""
    for line in Path("/proc/mounts").read_text().splitlines():
        _, place, kind, options = line.split()[:4]
        if kind == "cgroup" and "cpu" in options.split(","):
            return Path(place), False
        if kind == "cgroup2" and "cpu" in (Path(place) / "cgroup.subtree_control").read_text().split():
            return Path(place), True
    return None, False


def cgroup_root() -> Path:
    """The root of version 2."""
    return next((Path(line.split()[1]) for line in Path("/proc/mounts").read_text().splitlines()
                 if line.split()[2] == "cgroup2"), Path("/none"))


def join(group: Path) -> List[str]:
    """The command prefix that runs a command in that cgroup."""
    return ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"]


def limit(group: Path, new: bool, quota_us: int, period_us: int) -> None:
    """Its processes get that much of each period of a processor."""
    if new:
        (group / "cpu.max").write_text(f"{quota_us} {period_us}")
    else:
        (group / "cpu.cfs_period_us").write_text(str(period_us))
        (group / "cpu.cfs_quota_us").write_text(str(quota_us))


def remove(group: Path) -> None:
    if group.exists():
        lib.wait_for(lambda: not (group / "cgroup.procs").read_text(), 20)
        group.rmdir()


class Grouped(Harm):
    """An end in a cgroup of its own."""

    def __init__(self, end: str, group: Path) -> None:
        self.where, self.group = end, group

    def prefix(self, end: str) -> List[str]:
        return join(self.group) if end == self.where else []

    def begin(self, bed: Bed) -> None:
        self.group.mkdir()

    def end(self, bed: Bed) -> None:
        remove(self.group)


class Quota(Grouped):
    """A cgroup that limits an end to that many ms of each period of a processor."""

    what = "s throttled"

    def __init__(self, end: str, quota_ms: int, period_ms: int, least: float = 0.4) -> None:
        root, self.new = cgroup_cpu()
        super().__init__(end, (root or Path("/none")) / f"explain{os.getpid()}-{end}")
        self.least, self.quota, self.period = least, quota_ms * 1000, period_ms * 1000

    def begin(self, bed: Bed) -> None:
        super().begin(bed)
        # relative to others on the machine; the quota must be the limit
        name, most = ("cpu.weight", "10000") if self.new else ("cpu.shares", "200000")
        (self.group / name).write_text(most)
        limit(self.group, self.new, self.quota, self.period)

    def count(self, bed: Bed) -> float:
        text = (self.group / "cpu.stat").read_text()
        spent = dict(line.split() for line in text.splitlines())
        return int(spent["throttled_usec"]) / 1e6 if self.new else int(spent["throttled_time"]) / 1e9


class Stop(Harm):
    """An end's process is stopped and continued repeatedly."""

    what = "stops"
    least = 4

    def __init__(self, who: str, stopped: float = 0.1, runs: float = 0.1) -> None:
        self.who, self.stopped, self.runs, self.stops = who, stopped, runs, 0

    def during(self, bed: Bed) -> None:
        assert bed.netperf
        while not bed.over.wait(self.runs):
            # Look it up again each time: a session that is being forked looks like the process that forks it.
            pids = [bed.netperf.pid] if self.who == "near" else bed.sessions()
            try:
                self._all(pids, signal.SIGSTOP)
                time.sleep(self.stopped)
                self.stops += 1
            finally:
                self._all(pids, signal.SIGCONT)

    @staticmethod
    def _all(pids: Sequence[int], number: int) -> None:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def count(self, bed: Bed) -> float:
        return self.stops


class Freeze(Grouped):
    """The same by the cgroup freezer; version 1 has a separate hierarchy for that."""

    what = "times frozen"
    least = 4
    root = Path("/sys/fs/cgroup/freezer")

    def __init__(self, end: str, frozen: float = 0.1, runs: float = 0.1) -> None:
        self.new = not self.root.exists()
        super().__init__(end, (cgroup_root() if self.new else self.root) / f"explain{os.getpid()}-frozen")
        self.frozen, self.runs, self.times = frozen, runs, 0

    def _freeze(self, yes: bool) -> None:
        if self.new:
            (self.group / "cgroup.freeze").write_text("1" if yes else "0")
        else:
            (self.group / "freezer.state").write_text("FROZEN" if yes else "THAWED")

    def during(self, bed: Bed) -> None:
        while not bed.over.wait(self.runs):
            try:
                self._freeze(True)
                time.sleep(self.frozen)
                self.times += 1
            finally:
                self._freeze(False)

    def count(self, bed: Bed) -> float:
        return self.times


class Hog(Harm):
    """A process that keeps one processor busy."""

    what = "s on the processor"
    least = 0.3

    def __init__(self, cpu: int, many: int = 1) -> None:
        self.cpu, self.many = cpu, many
        self.hogs: "List[subprocess.Popen[bytes]]" = []

    def beside(self, bed: Bed) -> None:
        for _ in range(self.many):
            hog = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            self.hogs.append(hog)
            os.sched_setaffinity(hog.pid, {self.cpu})

    def leave(self, bed: Bed) -> None:
        for hog in self.hogs:
            hog.kill()
            hog.wait()
        self.hogs = []

    def count(self, bed: Bed) -> float:
        return sum(lib.cpu_seconds(hog.pid) for hog in self.hogs)


class Nice(Harm):
    """An end has the lowest priority."""

    def __init__(self, end: str, value: int) -> None:
        self.where, self.value, self.found = end, value, 0

    def prefix(self, end: str) -> List[str]:
        return ["nice", "-n", str(self.value)] if end == self.where else []

    def during(self, bed: Bed) -> None:
        assert bed.netperf
        pid = bed.netperf.pid if self.where == "near" else bed.sessions()[0]
        self.found = os.getpriority(os.PRIO_PROCESS, pid)

    def witness(self, bed: Bed, before: float) -> Tuple[bool, str]:
        return self.found == self.value, f"nice {self.found}"


# --- packets ------------------------------------------------------------------------------------

class Drop(Harm):
    """Drops packets that arrive at one end over the link and match a rule of nft's. Packets dropped on output would
    be reported to TCP at once, and are no loss."""

    what = "packets dropped"

    def __init__(self, end: str, *rules: str, least: float = 1) -> None:
        self.where, self.rules, self.least = end, rules, least

    def begin(self, bed: Bed) -> None:
        self._rules(bed, *(f"add rule inet harm pre iifname {DEVICE} {rule} counter drop"
                           for rule in self.rules))

    def _rules(self, bed: Bed, *commands: str) -> None:
        output(*bed.lab.enter(self.where), "nft", "; ".join((
            "add table inet harm",
            "add chain inet harm pre { type filter hook prerouting priority -300; }", *commands)))

    def count(self, bed: Bed) -> float:
        text = output(*bed.lab.enter(self.where), "nft", "list", "table", "inet", "harm")
        return sum(float(n) for n in re.findall(r"counter packets (\d+)", text))


class Outage(Drop):
    """Nothing arrives for a while: every `every` seconds, `times` times, starting at `first`."""

    def __init__(self, end: str, first: float, length: float, times: int = 1, every: float = 1,
                 rule: str = "") -> None:
        super().__init__(end, rule)
        self.first, self.length, self.times, self.every = first, length, times, every

    def begin(self, bed: Bed) -> None:
        self._rules(bed, "add counter inet harm gone",
                    "add chain inet harm out", "add rule inet harm pre jump out")

    def during(self, bed: Bed) -> None:
        if bed.over.wait(self.first):
            return
        for turn in range(self.times):
            if turn > 0 and bed.over.wait(self.every - self.length):
                return
            self._rules(bed, f"add rule inet harm out iifname {DEVICE} {self.rules[0]} "
                        "counter name gone drop")
            bed.over.wait(self.length)
            self._rules(bed, "flush chain inet harm out")

    def count(self, bed: Bed) -> float:
        text = output(*bed.lab.enter(self.where), "nft", "list", "counters", "table", "inet", "harm")
        return float(re.findall(r"packets (\d+)", text)[0])


class LinkDown(Harm):
    """The router's interface to the far end goes down and up again."""

    what = "times down"

    def __init__(self, first: float = 0.4, length: float = 0.3, every: float = 1) -> None:
        self.first, self.length, self.every, self.times = first, length, every, 0

    def during(self, bed: Bed) -> None:
        device = ("ip", "-n", bed.lab.ns("router"), "link", "set", "right")
        while not bed.over.wait(self.first if self.times == 0 else self.every - self.length):
            output(*device, "down")
            self.times += 1
            time.sleep(self.length)
            output(*device, "up")

    def count(self, bed: Bed) -> float:
        return self.times


class Queue(Harm):
    """A token bucket's queue: a new one with a rate, otherwise the link's."""

    what = "times that packets waited for the rate"
    least = 10

    def __init__(self, end: str, rate: str = "", device: str = DEVICE, limit: int = 100_000) -> None:
        self.where, self.rate, self.device, self.limit = end, rate, device, limit

    def begin(self, bed: Bed) -> None:
        if self.rate:
            output("tc", "-n", bed.lab.ns(self.where), "qdisc", "replace", "dev", self.device, "root",
                   "tbf", "rate", self.rate, "burst", "5000", "limit", str(self.limit))

    def count(self, bed: Bed) -> float:
        queues = json.loads(output("tc", "-s", "-j", "-n", bed.lab.ns(self.where), "qdisc", "show",
                                   "dev", self.device))
        return sum(queue["overlimits"] for queue in queues)


class Line(Harm):
    """What netlab-link did to packets, by its own counters."""

    def __init__(self, what: str, least: float = 5) -> None:
        self.what, self.least = what, least

    def count(self, bed: Bed) -> float:
        text = output(link_program(), "tell", f"/run/netns/{bed.lab.ns('far')}", "show")
        return sum(float(n) for n in re.findall(rf'"{self.what}": ?(\d+)', text))


def link_program() -> str:
    return os.environ.get("NETLAB_LINK") or str(Path(lib.netperf()).parents[1] / "tests" / "link" / "netlab-link")


class Foreign(Harm):
    """Another test over the same link, or beyond the router."""

    what = "packets of others"
    least = 200

    def __init__(self, options: str, start: str = "near") -> None:
        self.options, self.start = options.split(), start
        self.process: "Optional[subprocess.Popen[str]]" = None

    def beside(self, bed: Bed) -> None:
        assert bed.daemon
        self.process = subprocess.Popen(
            [*bed.lab.enter(self.start), lib.netperf(), "-H", netns.IPV4, "-p", str(bed.daemon.port),
             "-P", "0", "-l", "120", *self.options], stdout=subprocess.DEVNULL, text=True)
        assert lib.wait_for(lambda: bool(bed.sessions()), 20), "no session of the others"
        time.sleep(0.5)
        bed.others = bed.sessions()

    def leave(self, bed: Bed) -> None:
        if self.process:
            self.process.kill()
            self.process.wait()

    def count(self, bed: Bed) -> float:
        """Packets that are not the run's."""
        text = output("ip", "-s", "-j", "-n", bed.lab.ns("far"), "link", "show", "dev", DEVICE)
        stats = json.loads(text)[0]["stats64"]
        return float(stats["rx"]["packets"] + stats["tx"]["packets"])

    def witness(self, bed: Bed, before: float) -> Tuple[bool, str]:
        bag = bed.bag("near")
        own = sum(bag.get(name, 0) for name in ("tcp.segments_out", "tcp.segments_in"))
        own += (bag.get("flow.sends", 0) + bag.get("flow.receives", 0)) if not own else 0
        moved = self.count(bed) - before - own
        return moved >= self.least, f"{moved:.6g} {self.what}"


# --- settings -----------------------------------------------------------------------------------

class Sysctl(Harm):
    what = "settings as wanted"

    def __init__(self, end: str, **settings: str) -> None:
        self.where, self.settings = end, settings

    def begin(self, bed: Bed) -> None:
        for name, value in self.settings.items():
            output(*bed.lab.enter(self.where), "sysctl", "-q", "-w", f"net.ipv4.{name}={value}")

    def witness(self, bed: Bed, before: float) -> Tuple[bool, str]:
        got = {name: output(*bed.lab.enter(self.where), "sysctl", "-n", f"net.ipv4.{name}").split()
               for name in self.settings}
        right = all(got[name] == value.split() for name, value in self.settings.items())
        return right, ", ".join(f"{name} {' '.join(value)}" for name, value in got.items())


class Route(Harm):
    """Route metrics of one end."""

    def __init__(self, end: str, *words: str) -> None:
        self.where, self.words = end, words

    def begin(self, bed: Bed) -> None:
        output("ip", "-n", bed.lab.ns(self.where), "route", "change", "10.77.0.0/24", "dev", DEVICE,
               "proto", "kernel", "scope", "link", *self.words)

    def witness(self, bed: Bed, before: float) -> Tuple[bool, str]:
        text = output("ip", "-n", bed.lab.ns(self.where), "route", "show", "10.77.0.0/24").strip()
        return " ".join(self.words) in text, text


class Steering(Harm):
    """Only the second processor receives packets at the far end, and it has a long list of nftables rules."""

    what = "rules"

    def begin(self, bed: Bed) -> None:
        Drop("far", *(f"meta mark {mark}" for mark in range(1, 1501))).begin(bed)
        output(*bed.lab.enter("far"), "unshare", "--mount", "sh", "-c",
               "mount -t sysfs none /sys && "
               f"echo 2 > /sys/class/net/{DEVICE}/queues/rx-0/rps_cpus")

    def witness(self, bed: Bed, before: float) -> Tuple[bool, str]:
        text = output(*bed.lab.enter("far"), "nft", "list", "table", "inet", "harm")
        return text.count("counter") == 1500, f"{text.count('counter')} rules"
