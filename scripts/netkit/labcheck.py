"""Measures a lab's link and compares it with what was asked for: netlab check."""

import math
import time
from dataclasses import dataclass, replace
from typing import Any, Callable, Dict, Iterator, List, Sequence, Tuple

from netkit import units
from netkit.progress import State

WAYS = (("client", "server"), ("server", "client"))
ATTEMPTS = 3            # for measurements that a busy machine may spoil
PAYLOAD, HEADERS = 64, 28
RATE_TOLERANCE = 0.01
TIME_TOLERANCE = 100e-6     # s: the machine's own latency, including wake-ups
SPREAD_TOLERANCE = 0.15
TRAIN, PACE = 10_000, 20_000.0      # datagrams, and their maximum per second
LONGEST = 5.0                       # s for a train
WAIT = 0.3                          # s for stragglers, in addition to the delay
PROBE = 0.05                        # s to start a probe

# Runs netlab-link's prober (direction, kind, IP version, further words) and returns its result.
Prober = Callable[..., Dict[str, Any]]
Say = Callable[[State], None]


@dataclass(frozen=True)
class Finding:
    """A property: the requested value, the measured value in each direction, and whether they agree."""
    name: str
    asked: str
    measured: str
    good: bool
    path: str = ""      # if there are several

    def line(self) -> str:
        return (f"{'ok ' if self.good else 'off'}  {self.path and self.path + '  '}{self.name:<11}{self.asked}: "
                f"measured {self.measured}")


def ns(seconds: float) -> int:
    return round(seconds * 1e9)


def both(texts: "List[str]") -> str:
    """The findings of both directions as one text."""
    return texts[0] if len(set(texts)) == 1 else " and ".join(texts)


def retried(measure: "Callable[[Check], Finding]") -> "Callable[[Check], Iterator[Finding]]":
    """Repeat a measurement up to ATTEMPTS times until it agrees: if the link is wrong, it always fails."""
    def attempts(check: "Check") -> "Iterator[Finding]":
        found = measure(check)
        for _ in range(ATTEMPTS - 1):
            found = found if found.good else measure(check)
        yield found
    return attempts


@dataclass
class Check:
    link: Any               # netlab's Link
    probe: Prober
    say: Say = lambda state: None   # is told what is measured next

    def run(self) -> "Iterator[Finding]":
        """Measure all properties in turn, client to server first."""
        for turn, measure in zip(self.turns(), (self.mtu, self.ipv6, self.packets, self.rate, self.delay, self.trains)):
            self.say(turn)
            yield from measure()

    def turns(self) -> "List[State]":
        """The measurements in order, with their normal duration in both directions."""
        link, wait = self.link, self.wait / 1e9
        rest = link.delay + link.jitter
        settle = 0.005 + rest + wait
        lasts = {"mtu": wait, "ipv6": 0.1 + wait if link.ipv6 else 0.0, "packets": 0.3 + 4 * rest,
                 "rate": settle + 1.25 * self.rate_time() + 2 * rest,
                 "delay": settle + math.prod(self.apart()) + wait,
                 "loss, reorder and duplicate": math.prod(self.train()) + wait}
        each = {name: 2 * (seconds + PROBE) for name, seconds in lasts.items()}
        names = list(each)
        return [State(i, len(names), f"measuring {name}", sum(each[one] for one in names[i:]), each[name])
                for i, name in enumerate(names)]

    def each(self, kind: str, family: int = 4, **words: int) -> "List[Dict[str, Any]]":
        """Measure one kind of property in both directions."""
        return [self.probe(way, kind, family, **words) for way in WAYS]

    @property
    def wait(self) -> int:
        return ns(WAIT + self.link.delay + self.link.jitter)

    def settle(self) -> None:
        """Wait until the queues are empty."""
        link = self.link
        most = link.delay + link.jitter + 0.005 + 4 * self.cost_time()
        end = time.monotonic() + 5 + (link.limit() * 8 / link.rate if link.rate else 0.0)
        for way in WAYS:
            while time.monotonic() < end:
                got = self.probe(way, "train", count=5, gap=ns(0.001), wait=self.wait)
                if got["arrived"] and got["delay_us"]["p50"] * 1e-6 <= most:
                    break

    def mtu(self) -> "Iterator[Finding]":
        got = self.each("mtu", wait=self.wait)
        yield Finding("mtu", f"{self.link.mtu}",
                      both([f"{one['mtu']}" + ("" if one["arrives"] else ", which does not arrive") for one in got]),
                      all(one["mtu"] == self.link.mtu and one["arrives"] for one in got))

    @retried    # the neighbour solicitation may be lost
    def ipv6(self) -> Finding:
        if not self.link.ipv6:
            return Finding("ipv6", "off", "no address", True)
        got = self.each("train", 6, count=100, gap=ns(0.001), wait=self.wait)
        return Finding("ipv6", "on", both([f"{one['arrived']} of 100 arrived" for one in got]),
                       all(one["arrived"] >= 50 * (1 - self.link.loss) for one in got))

    def packets(self) -> "Iterator[Finding]":
        """Check at both ends that no TCP packet exceeds the MTU. In the queue it can't be seen: tbf splits packets."""
        lasts = 0.3 + 4 * (self.link.delay + self.link.jitter)
        got = self.each("tcp", time=ns(lasts))
        yield Finding("packets", f"at most {self.link.mtu} bytes",
                      both([f"{one['largest']}" for one in got])
                      + (f", but up to {self.link.segments} segments at a time in the queue"
                         if self.link.segments > 1 else ""),
                      all(0 < one["largest"] <= self.link.mtu for one in got) and self.link.segments <= 1)
        if self.link.congestion:
            yield Finding("congestion", self.link.congestion, both([one["congestion"] for one in got]),
                          all(one["congestion"] == self.link.congestion for one in got))

    @retried
    def rate(self) -> Finding:
        self.settle()
        cost, rate = self.link.cost(self.link.mtu), self.link.rate
        each, lasts = cost * 8 / rate if rate else 0.0, self.rate_time()
        rest, passed = self.link.delay + self.link.jitter, max(self.link.share_that_passes(), 1e-9)
        found = self.each("rate", size=self.link.mtu - HEADERS, gap=ns(0.9 * each), time=ns(1.25 * lasts + rest),
                          skip=ns(0.25 * lasts + rest))
        got = [one["packets"] * cost * 8e9 / max(1, one["ns"]) / passed for one in found]
        # Packets are lost or duplicated at the start or end of the interval, too.
        unsure = [RATE_TOLERANCE + (2 / max(1, one["packets"]) if passed != 1 else 0) for one in found]
        good = not rate or all(abs(one / rate - 1) <= most for one, most in zip(got, unsure))
        return Finding("rate", units.show_rate(rate) if rate else "no limit",
                       both([units.show_rate(one) for one in got]), good)

    def rate_time(self) -> float:
        """Duration of the measured interval in seconds."""
        link = self.link
        return min(10.0, max(1.0, 60 * link.cost(link.mtu) * 8 / link.rate if link.rate else 0.0))

    @retried
    def delay(self) -> Finding:
        """Datagrams are spaced so that each has independent jitter."""
        self.settle()
        link = self.link
        count, gap = self.apart()
        got = self.each("train", count=count, size=PAYLOAD, gap=ns(gap), wait=self.wait)
        texts, good = [], True
        for one in got:
            if not one.get("delay_us"):
                return Finding("delay", link.show_delay(), "nothing, as nothing arrived", False)
            median, jitter = self.read_delay(one["delay_us"])
            texts.append(f"{1e3 * median:.4g} ms" + (f" +-{1e3 * jitter:.4g} ms" if link.jitter else ""))
            good = (good and abs(median - link.delay) <= TIME_TOLERANCE + 0.01 * link.delay + 4 * link.jitter / math.sqrt(count)
                    and abs(jitter - link.jitter) <= TIME_TOLERANCE + SPREAD_TOLERANCE * link.jitter)
        return Finding("delay", link.show_delay(), both(texts), good)

    def apart(self) -> "Tuple[int, float]":
        """Number of datagrams, and their spacing in seconds."""
        gap = max(0.001, 2 * self.link.jitter, 2 * self.cost_time())
        return int(min(500, max(40, LONGEST / gap))), gap

    def read_delay(self, found: "Dict[str, List[float]]") -> "Tuple[float, float]":
        """The median, and half the range of a uniform distribution with these percentiles, of packets that were not
        reordered: netlab-link delays reordered packets, and netem sends them at once."""
        share = self.link.reorder

        def at(part: float) -> float:
            return found["centiles"][round(100 * ((0 if self.link.exact else share) + part * (1 - share)))]

        return at(0.5) * 1e-6, (at(0.95) - at(0.05)) * 1e-6 / 0.9 / 2

    def cost_time(self) -> float:
        return self.link.cost(PAYLOAD + HEADERS) * 8 / self.link.rate if self.link.rate else 0.0

    def train(self) -> "Tuple[int, float]":
        """Number of datagrams, and their spacing in seconds: at most half of the rate, so that no queue overflows."""
        gap = max(1 / PACE, 2 * self.cost_time())
        return int(min(TRAIN, max(100, LONGEST / gap))), gap

    def trains(self) -> "Iterator[Finding]":
        count, gap = self.train()
        got = self.each("train", count=count, size=PAYLOAD, gap=ns(gap), wait=self.wait)
        passed = [one["arrived"] for one in got]
        yield self.counted("loss", self.link.loss, [one["lost"] for one in got], [count, count])
        if not self.link.exact and self.link.jitter:     # it reorders packets
            yield Finding("reorder", "as the jitter makes it",
                          both([f"{one['reordered']} of {count}" for one in got]), True)
        else:
            yield self.counted("reorder", self.link.reorder, [one["reordered"] for one in got], passed)
        yield self.counted("duplicate", self.link.duplicate, [one["duplicated"] for one in got], passed)

    def counted(self, name: str, share: float, found: "List[int]", of: "List[int]") -> Finding:
        good = all(abs(one - share * n) <= self.allowed(share, n) for one, n in zip(found, of))
        return Finding(name, f"{100 * share:.7g} %",
                       both([f"{one} of {n}" for one, n in zip(found, of)]), good)

    def allowed(self, share: float, n: int) -> float:
        """The tolerance of a count: our own link is exact except at the edges; netem is random."""
        if share == 0:
            return 0
        return 2 if self.link.exact else 2 + 4 * math.sqrt(n * share * (1 - share))


def examine(link: Any, probes: "Sequence[Prober]", say: Say = lambda state: None) -> "Iterator[Finding]":
    """Check one path after the other against the link."""
    whole, several = Check(link, probes[0]).turns()[0].left or 0.0, len(probes) > 1
    for number, probe in enumerate(probes):
        def say_more(state: State, number: int = number) -> None:
            say(replace(state, done=state.done + number * state.total, total=state.total * len(probes),
                        words=f"{state.words} of path {number}" if several else state.words,
                        left=(state.left or 0.0) + (len(probes) - 1 - number) * whole))

        for finding in Check(link, probe, say_more).run():
            yield replace(finding, path=f"path {number}" if several else "")


def lateness(found: "Dict[str, Any]") -> str:
    """How late our own link was with packets, in words."""
    parts = []
    for end, far in WAYS:
        late = found[end]["late_us"]
        if late["packets"]:
            parts.append(f"{end} to {far} half within {late['p50']} us, 99 % within {late['p99']} us, "
                         f"the worst {late['max']:.0f} us")
    return "; ".join(parts)
