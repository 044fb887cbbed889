"""What a connection that comes late does to the figures of many, and what beginning one after the other does.

Two network namespaces have a link of a known rate between them. The SYN of one of 64 flows takes another way,
a pair of TUN devices between which it waits for half a second: exactly that packet is late, and nothing else
of the flow. Beside it as many netperf are started by a loop of the shell, each of which counts in a window of
its own. The link's counters of the same seconds say what was carried: bytes that the far end received, without
headers.
"""

import ctypes
import fcntl
import os
import re
import selectors
import statistics
import struct
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Callable, Dict, List, NamedTuple, Sequence, Tuple

import common
import lib

FLOWS, LATE = 64, 0.5
LATE_FLOW = 32          # of them, from 0
RATE = 200              # 10^6 bits/s of the link
NEAR, FAR, CONTROL = "10.99.0.1", "10.99.0.2", 12865
PAYLOAD = 1448 / 1514   # of what a counter of veth tells of a full segment with time-stamps
LEAST_CHANGE = 0.01     # of a figure: less is never more than noise
LOOK_EVERY = 0.01
CLONE_NEWNET = 0x40000000
TUNSETIFF, TUN_WITHOUT_HEAD = 0x400454CA, 0x1001
FIRST = re.compile(r"^NETPERF_(INTERVAL|ENDING)\[0\]=([0-9.]+)$", re.M)
MARK = "meta mark set 7"
# Another route from the mark on; the control connection is not counted.
RULES = f"""table ip late {{
 chain out {{
  type route hook output priority mangle;
  tcp dport != {CONTROL} tcp flags & (syn | ack) == syn numgen inc mod {FLOWS} {LATE_FLOW} {MARK}
 }}
}}"""


# ---- the bed ------------------------------------------------------------------------------------

class Bed:
    """The two namespaces, and the way for what is late. Root's; gone when it is left."""

    def __init__(self) -> None:
        self.near, self.far = (f"bench-{os.getpid()}-{end}" for end in ("near", "far"))
        self._stack = ExitStack()
        self._stop = threading.Event()
        self.carried = 0        # packets that were late

    def __enter__(self) -> "Bed":
        try:
            self._build()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._stack.close()

    def _build(self) -> None:
        for name in (self.near, self.far):
            common.run(["ip", "netns", "add", name], 10)
            self._stack.callback(lib.run, ["ip", "netns", "del", name], 10)
            common.run(["ip", "netns", "exec", name, "sysctl", "-qw", "net.ipv4.conf.all.rp_filter=0",
                        "net.ipv4.conf.default.rp_filter=0"], 10)
        common.run(["ip", "-n", self.near, "link", "add", "link0", "type", "veth", "peer", "name", "link0",
                    "netns", self.far], 10)
        ends = []
        for name, address in ((self.near, NEAR), (self.far, FAR)):
            ends.append(in_namespace(name, lambda: tun("late0")))
            self._stack.callback(os.close, ends[-1])
            common.run(["ip", "netns", "exec", name, "ethtool", "-K", "link0", "tso", "off", "gso", "off", "gro",
                        "off"], 10)
            common.run(["ip", "-n", name, "address", "add", f"{address}/24", "dev", "link0"], 10)
            for device in ("lo", "link0", "late0"):
                common.run(["ip", "-n", name, "link", "set", device, "up"], 10)
        common.run(["tc", "-n", self.near, "qdisc", "add", "dev", "link0", "root", "tbf", "rate", f"{RATE}mbit",
                    "burst", "32k", "limit", "1m"], 10)
        common.run(["ip", "-n", self.near, "rule", "add", "fwmark", "7", "table", "7"], 10)
        common.run(["ip", "-n", self.near, "route", "add", FAR, "dev", "late0", "src", NEAR, "table", "7"], 10)
        thread = threading.Thread(target=self._carry, args=tuple(ends))
        thread.start()
        self._stack.callback(thread.join)
        self._stack.callback(self._stop.set)

    def _carry(self, near: int, far: int) -> None:
        """Packets from the near end to the far one, each of them late; nothing goes the other way."""
        waiting: "List[Tuple[float, bytes]]" = []
        with selectors.DefaultSelector() as events:
            events.register(near, selectors.EVENT_READ)
            while not self._stop.is_set():
                left = waiting[0][0] - time.monotonic() if waiting else LATE
                if events.select(max(0.0, min(left, 0.1))):
                    waiting.append((time.monotonic() + LATE, os.read(near, 1 << 16)))
                while waiting and waiting[0][0] <= time.monotonic():
                    packet = waiting.pop(0)[1]
                    if packet[0] >> 4 == 4 and packet[9] == 6:     # what is not TCP is the kernel's own
                        os.write(far, packet)
                        self.carried += 1

    def late(self, wanted: bool) -> None:
        """From now on the SYN of one flow of 64 is late, or none."""
        lib.run(["ip", "netns", "exec", self.near, "nft", "delete", "table", "ip", "late"], 10)
        if wanted:
            common.run(["ip", "netns", "exec", self.near, "nft", RULES], 10)


def in_namespace(name: str, act: "Callable[[], int]") -> int:
    """What act gives in a network namespace, which it has in a thread of its own."""
    made: "List[int]" = []

    def enter() -> None:
        with open(f"/run/netns/{name}", "rb") as place:
            if ctypes.CDLL(None, use_errno=True).setns(place.fileno(), CLONE_NEWNET) == 0:
                made.append(act())

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    if not made:
        raise common.Failed(f"no TUN device in the namespace {name}")
    return made[0]


def tun(name: str) -> int:
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH14x", name.encode(), TUN_WITHOUT_HEAD))
    return fd


class Counter:
    """Reads what the link has brought to the far end, where a process lives, until it is left."""

    def __init__(self, pid: int) -> None:
        self._table, self._stop = Path(f"/proc/{pid}/net/dev"), threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._seen: "List[Tuple[float, int]]" = []

    def __enter__(self) -> "Counter":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._stop.wait(LOOK_EVERY):
            found = re.search(r"^ *link0: *(\d+)", self._table.read_text(), re.M)
            self._seen.append((time.time(), int(found[1]) if found else 0))

    def rate(self, since: float, until: float) -> float:
        """10^6 bits/s of payload in these seconds."""
        ends = [min(self._seen, key=lambda seen: abs(seen[0] - at)) for at in (since, until)]
        (first, before), (last, after) = ends
        return (after - before) * PAYLOAD * 8 / 1e6 / (last - first)


# ---- runs ---------------------------------------------------------------------------------------

class Window(NamedTuple):
    begin: float        # by the clock of the wall
    end: float
    figures: "Dict[str, float]"


def window_of(cmd: "Sequence[str]", out: str) -> Window:
    told, first = common.figures(out), dict(FIRST.findall(out))
    if len(first) != 2 or "ELAPSED_TIME" not in told or "THROUGHPUT" not in told:
        raise common.Failed(f"{' '.join(cmd)}: {out.strip()}")
    begin = float(first["ENDING"]) - float(first["INTERVAL"])
    return Window(begin, begin + told["ELAPSED_TIME"], told)


def command(bed: Bed, test: str, seconds: int, *options: str) -> "List[str]":
    peer = common.Peer("ours", lib.netperf(), CONTROL, FAR)
    wanted = "THROUGHPUT,ELAPSED_TIME" + (",P99_LATENCY" if test == "TCP_RR" else "")
    sizes = ("-m", "65536") if test == "TCP_STREAM" else ()
    return ["ip", "netns", "exec", bed.near, *peer.command(
        test, seconds, ("-D", "0.5", *options), ("-K", "cubic", *sizes, "-k", wanted))]


class Once(NamedTuple):
    """A run of many flows: its figures, how long it took to begin, and what the link carried meanwhile."""
    figures: "Dict[str, float]"
    until_window: float
    carried: float


def in_one(bed: Bed, counter: Counter, test: str, seconds: int) -> Once:
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        cmd = command(bed, test, seconds, "--flows", str(FLOWS), f"--json={file.name}")
        since = time.time()
        window = window_of(cmd, common.run(cmd, seconds + 30).out)
        rows = lib.document(open(file.name, encoding="utf-8").read())["iterations"][-1]["flows"]
    rates = [row["bits_per_s"] for row in rows]
    found = {"throughput": window.figures["THROUGHPUT"], "least flow": min(rates) / 1e6, "most flow": max(rates) / 1e6,
             "Jain's index": sum(rates) ** 2 / (len(rates) * sum(rate * rate for rate in rates)),
             **{"p99": window.figures[name] for name in ("P99_LATENCY",) if name in window.figures}}
    return Once(found, window.begin - since, counter.rate(window.begin, window.end))


def in_many(bed: Bed, seconds: int) -> "List[Window]":
    """As many netperf as a loop of the shell starts."""
    with tempfile.TemporaryDirectory() as place:
        cmd = command(bed, "TCP_STREAM", seconds)[4:]
        loop = f'for i in $(seq {FLOWS}); do "$@" > {place}/$i & done; wait'
        common.run(["ip", "netns", "exec", bed.near, "sh", "-c", loop, "sh", *cmd], seconds + 60)
        return [window_of(cmd, Path(place, str(number + 1)).read_text()) for number in range(FLOWS)]


# ---- what is shown ------------------------------------------------------------------------------

def show_late(bed: Bed, counter: Counter, test: str, rounds: int, seconds: int,
              verdicts: common.Verdicts) -> None:
    runs: "Dict[bool, List[Once]]" = {True: [], False: []}
    for number in range(rounds):
        for late in (True, False) if number % 2 == 0 else (False, True):
            before = bed.carried
            bed.late(late)
            runs[late].append(in_one(bed, counter, test, seconds))
            if bed.carried - before != late:
                raise common.Failed(f"{bed.carried - before} packets were late, not {int(late)}")
    bed.late(False)
    begun = {late: statistics.median(run.until_window for run in ran) for late, ran in runs.items()}
    print(f"{test}: the window began after {begun[True]:.2f} s with a late flow, after {begun[False]:.2f} s without",
          flush=True)
    for name in runs[True][0].figures:
        each = {late: [run.figures[name] for run in ran] for late, ran in runs.items()}
        pairs = [one / other for one, other in zip(each[True], each[False]) if other]
        low, high = common.sure_of_median(pairs)
        noise = low <= 1 <= high or abs(statistics.median(pairs) - 1) <= LEAST_CHANGE
        verdict = verdicts.judge(noise) if len(pairs) >= common.ENOUGH else "too few rounds"
        print(f"  {name:13} {statistics.median(each[True]):10.4g} {statistics.median(each[False]):10.4g}"
              f"  {common.spread(pairs)}   {verdict}", flush=True)
    if test == "TCP_STREAM":
        ratios = [run.figures["throughput"] / run.carried for run in runs[True] + runs[False]]
        print(f"  sum of the flows / what the link carried in the window: {common.spread(ratios, 4)}", flush=True)


def show_many(bed: Bed, counter: Counter, rounds: int, seconds: int) -> None:
    lines: "Dict[str, List[float]]" = {"s from the first window's begin to the last one's": []}
    for _ in range(rounds):
        windows = in_many(bed, seconds)
        begins, ends = [one.begin for one in windows], [one.end for one in windows]
        time.sleep(2 * LOOK_EVERY)
        lines["s from the first window's begin to the last one's"].append(max(begins) - min(begins))
        total = sum(one.figures["THROUGHPUT"] for one in windows)
        for span, since, until in (("from the first begin to the last end", min(begins), max(ends)),
                                   ("while all counted", max(begins), min(ends))):
            words = f"sum of the rates / what the link carried {span}"
            lines.setdefault(words, []).append(total / counter.rate(since, until))
    print(f"{FLOWS} netperf side by side, TCP_STREAM, each in a window of its own:")
    for words, values in lines.items():
        print(f"  {words}: {common.spread(values, 4)}", flush=True)


def obstacle() -> str:
    missing = [name for name in ("nft", "ethtool") if lib.run(["sh", "-c", f"command -v {name}"], 10).rc != 0]
    return lib.no_lab() or ("" if os.path.exists("/dev/net/tun") else "no /dev/net/tun") or (
        f"no program {missing[0]}" if missing else "")


def show(rounds: int, seconds: int, verdicts: common.Verdicts) -> None:
    reason = obstacle()
    if reason:
        print(f"SKIP: skew: {reason}\n", flush=True)
        return
    print(f"{FLOWS} flows over a link of {RATE} Mbit/s, one of them connected {LATE} s late: medians of {rounds} rounds"
          f" of {seconds} s each,\nwith and without in turn, and the ratio with its quartiles. No figure is to move by"
          " more than noise: the ratio's median\nis not sure to differ from 1 (95 %, by signs), or is within 1 % of"
          " it.\n")
    with ExitStack() as stack:
        bed = stack.enter_context(Bed())
        daemon = stack.enter_context(lib.Daemon(prefix=["ip", "netns", "exec", bed.far], port=CONTROL))
        counter = stack.enter_context(Counter(daemon.pid))
        try:
            for test in ("TCP_STREAM", "TCP_RR"):
                show_late(bed, counter, test, rounds, seconds, verdicts)
        except common.Refused as fault:
            print(f"refused: {fault}", flush=True)
        show_many(bed, counter, rounds, seconds)
    print()
