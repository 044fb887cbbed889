"""The laws: what must hold for every test on every path. Each states its reason, and yields a line for each figure
that breaks it. Tolerances come from the path (round trip, queue, messages in flight) and from how late this program
itself was woken, so that a slow machine breaks no law.
"""

import calendar
import math
import re
import time
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional

from bed import FIRST, QUEUE, Seen
from case import PACED, Case
from witness import Course

TOKEN = 64              # bytes, at most, that identify the session of a connection to the one port
TICK = 0.05             # s: a timer's 10 ms, and time without a processor
SETTING_UP = 14         # round trips of control and data connections before and after a test
GONE = ("cut", "deaf")   # the interface still receives, but the daemon does not
MACHINE = 6.0           # s that a busy machine may take to start and end programs
PROMISED = 60.0         # s of silence that a test survives
COUNTED = 30.0          # s for a counted test, in addition to its transactions' round trips


class View:
    """A case and its results, in the terms of the laws."""

    def __init__(self, case: Case, seen: Seen) -> None:
        self.case, self.seen = case, seen
        document = seen.document or {}
        self.document = document
        runs = document.get("iterations") or [{}]
        self.run: "Dict[str, Any]" = runs[-1]
        self.whole = seen.status == 0 and document.get("result", "complete") == "complete" and not self.partial()
        self.elapsed = self.figure("ELAPSED_TIME") or 0.0
        sender = seen.far.out if case.down_stream else seen.near.out
        self.first = float(sender.at[0]) if len(sender.at) else None
        self.begin = self.started() or self.first or 0.0
        self.end = self.begin + self.elapsed

    def partial(self) -> bool:
        return bool(self.run) and self.run.get("complete") is False

    def figure(self, name: str) -> "Optional[float]":
        """A figure, as exact as possible; None if there is none."""
        metrics = {**(self.document.get("final") or {}), **(self.run.get("metrics") or {})}
        if metrics:
            return metrics[name] if isinstance(metrics.get(name), (int, float)) else None
        try:
            value = float(self.seen.figures[name])
        except (KeyError, ValueError):
            return None
        return None if value == -1 else value

    def started(self) -> "Optional[float]":
        if not self.run.get("started"):
            return None
        whole, _, parts = self.run["started"].rstrip("Z").partition(".")
        return calendar.timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) + float(f"0.{parts or 0}")

    def opens(self, sender: Course) -> float:
        """When a window begins. Each half of --both has its own, from its first message; with a port of its own, that
        is not the control connection's."""
        c = self.case
        own = sender.at[sender.size >= c.size] if c.udp else sender.at
        return float(own[0]) + c.warm if c.both and not c.one_port and len(own) else self.begin

    @property
    def queue(self) -> float:
        """Seconds that a packet may wait in the path's queue, in one direction."""
        c = self.case
        small = c.rr and c.depth * max(c.size, c.answer, 100) < 20_000
        headers = 1 + 66 / c.size if c.udp and c.size else 1
        # a sender that was stopped catches up
        if c.unix or small or not c.mbit or (c.stream and c.bits and not c.frozen and c.bits * headers < c.mbit * 8e5):
            return 0.05
        return max(0.024, QUEUE * 8 / (c.mbit * 1e6)) + 0.05

    @property
    def way(self) -> float:
        return self.case.delay / 1000 + self.queue

    @property
    def slack(self) -> float:
        """By how much the edges of a window may differ when all is well."""
        return 0.01 + 2 * self.seen.late

    @property
    def behind(self) -> float:
        """Seconds after the window of an open loop in which answers still arrive. The maximum latency is unknown if a
        request was never answered: netperf waits a second or two round trips for that, and as long again as an outage
        lasted."""
        most, c = self.figure("MAX_LATENCY"), self.case
        if most is not None and most < math.inf:
            return most / 1e6
        return max(1.0, 2 * (c.rtt + c.late / 1000 + 2 * self.queue) + 0.1) + 2 * (c.down_s + c.frozen_s)

    @property
    def message(self) -> float:
        c = self.case
        if c.rr:
            # Nagle's algorithm delays requests; those due at the end are sent, at most 64, if all IDs were in flight.
            # So does an outage, after which TCP retransmits only after as long as it lasted.
            held = c.bits * (c.rtt + self.queue + 2 * c.down_s * (not c.udp)) * c.open
            depth = c.depth + (held if not c.udp else 64 * c.flows if held > 100 * c.flows else 0)
            return depth * max(c.size, c.answer, 4) + 4 + TOKEN * self.connections
        return 65536 * bool(c.real) + c.flows * max(self.figure("LOCAL_SEND_SIZE") or 0, self.figure("REMOTE_SEND_SIZE") or 0,
                                                           c.size or 2 * c.buffers * bool(c.real) or 131072)

    @property
    def connections(self) -> float:
        """Connections that must identify their session."""
        c = self.case
        return 0 if not c.one_port else self.operations + c.depth if c.connects else c.flows

    @property
    def failed(self) -> float:
        """Datagrams that could not be sent: they count as sent and lost."""
        return (self.figure("FAILED_SENDS") or 0) if self.case.down in ("link", "route") else 0

    @property
    def cut_up(self) -> bool:
        """Whether datagrams were fragmented and may have lost fragments; the witness counts first fragments."""
        c = self.case
        return c.udp and max(c.size, c.answer) > 1472 and bool(c.loss or c.disturbed or self.seen.full or (
            c.stream and (not c.bits or c.bits * 1.5 > (c.mbit or 1e9) * 1e6)))

    @property
    def operations(self) -> float:
        return (self.figure("THROUGHPUT") or 0) * self.elapsed

    @property
    def over(self) -> float:
        """Seconds that a test may take longer than requested."""
        c = self.case
        over = TICK + 4 * self.seen.late + self.seen.kept(self.begin + c.length, self.end)
        if c.stream and not c.udp:
            # dropped packets may arrive for a second and two round trips
            # slow start, limited by what there is to send
            first = min(c.flows * 14480 * (2 ** (c.length / c.rtt) if c.rtt > 0.1 else 1), (c.bits or math.inf) * c.length / 8)
            over += 2 * c.rtt + 2 * self.queue + bool(c.buffers) + (
                2.0 if c.loss or c.down or c.frozen or first > QUEUE else 0.0)
        if c.real and c.stream and not c.udp:
            # it waits until its socket's buffer has been delivered, by slow start
            over += max(5.0, c.rtt * math.log2(1 + 2 * c.buffers / 14480)) + 16 * c.buffers / ((c.mbit or 100) * 1e6)
        if c.frozen == "near":
            over += 4.0     # it may have to report an outage, which a busy machine can cause
        if c.real and c.rr:
            over += c.rtt + self.queue + bool(c.loss)
        return over

    def word(self) -> bool:
        """Whether it reports that something is not as requested."""
        return self.seen.status != 0 or not self.whole or bool(self.seen.said.strip())


Found = Iterator[str]


def about(value: "Optional[float]", what: str, low: float, high: float) -> Found:
    if value is not None and not low <= value <= high:
        yield f"{what} is {value:.6g}, not {low:.6g} to {high:.6g}"


def law_1_bytes_are_the_witness_s(v: View) -> Found:
    """The bytes counted at an end are those that its interface carried in the window, within one message and what was
    in flight at the edges. A rate without packets is invented."""
    c, s = v.case, v.seen
    if not v.whole or c.unix or s.missed or not v.elapsed or v.cut_up or c.beside or c.down in GONE:
        return
    lossy = bool(c.loss or c.disturbed)
    ends: "List[tuple[str, Course, float]]" = []
    if c.rr or not c.down_stream or c.both:
        ends += [("REMOTE_BYTES_RECVD", s.far.inn, v.way), ("LOCAL_BYTES_SENT", s.near.out, 0.0)]
    if c.rr or c.down_stream or c.both:
        ends += [("LOCAL_BYTES_RECVD", s.near.inn, 2 * v.way), ("REMOTE_BYTES_SENT", s.far.out, v.way)]
    for name, course, shift in ends:
        sends = "SENT" in name
        edge = v.slack + shift + (3.0 + c.down_s if lossy and not c.udp else 0.0)
        # A receiver's window opens when the first datagram of the sender's has left the queue: a queue longer than FIRST,
        # when the bed begins an outage, makes that wait for the outage, too
        if c.udp and c.stream and c.warm and v.queue > FIRST and sends == (c.down_stream and not c.both):
            edge += c.down_s
        begin = v.opens(s.near.out if course is s.near.out or course is s.far.inn else s.far.out)
        end = begin + v.elapsed
        more = c.rtt + 2 * v.queue if sends and c.stream and not c.udp else 0     # it counts acknowledged bytes
        first = begin + min(v.elapsed, c.length) if c.both and not c.count else end      # each half has its own window
        # What was sent in an open loop's window counts when an end or the path that stood still goes on
        behind = v.behind if c.open and course is not s.near.out else 0.0
        low = course.within(begin + edge + more + (behind if c.warm else 0), first - edge - more) - v.message
        high = course.within(begin - edge, end + edge + behind) + v.message
        low -= (v.figure("LATE_RESPONSES") or 0) * (v.figure("RESPONSE_SIZE") or 1) if name == "LOCAL_BYTES_RECVD" else 0
        low -= 0 if sends else s.full * max(c.size, c.answer, 4)
        high += v.failed * ((v.figure("REQUEST_SIZE") or 0) if c.rr else c.size) * sends
        high += v.message * (sends and c.warm > 0 and c.burst > 0)     # those in flight at the start count, and others are held back at the end
        high += QUEUE * (sends and c.udp and c.down == "link")      # an interface that goes down drops its queue
        if sends and not c.udp and c.stream:
            high = 9e18         # what is in its socket has not left
        if course is s.near.out and c.udp and c.stream and not c.warm:
            low = course.total()
            high = low + v.failed * c.size + QUEUE * (c.down == "link")
            low -= 3 * c.flows * 8192 if c.disturbed or c.real else 0
            low -= TOKEN * c.flows * (2 + 10 * (c.rtt + c.late / 1000)) * (c.one_port or c.both)
            low -= 4096 * c.one_port * c.both       # the second session's control connection uses that port, too
        yield from about(v.figure(name), name, low, high)
    if c.stream and not c.both and not c.udp:
        course = s.near.inn if c.down_stream else s.far.inn
        edge = v.slack + v.way + v.case.rtt + (3.0 if lossy else 0.0)
        most = course.within(v.begin - edge, v.end + edge) + v.message
        yield from about(v.figure("THROUGHPUT"), "THROUGHPUT", 0, most * 8e-6 / v.elapsed * 1.001)


def law_1_rate_by_time_is_bytes(v: View) -> Found:
    """A rate is a count divided by the time in which it was counted."""
    c = v.case
    if not v.whole or not v.elapsed or not v.document or c.beside or c.test.endswith("_CC"):
        return
    if c.rr:
        return (yield from about(v.figure("LOCAL_BYTES_RECVD"), "LOCAL_BYTES_RECVD, by THROUGHPUT and ELAPSED_TIME",
                                 (v.operations - 1) * (v.figure("RESPONSE_SIZE") or 1) - 1,
                                 (v.operations + 1 + c.depth) * (v.figure("RESPONSE_SIZE") or 1) + 1))
    for rate, count in (("LOCAL_SEND_THROUGHPUT", "LOCAL_BYTES_SENT"), ("REMOTE_RECV_THROUGHPUT", "REMOTE_BYTES_RECVD"),
                        ("LOCAL_RECV_THROUGHPUT", "LOCAL_BYTES_RECVD")):
        counted = v.figure(count)
        expected = (counted or 0) * 8e-6 / v.elapsed
        if counted and not (c.udp and c.warm):
            own = 1.0 if not c.both else math.inf if c.count else v.elapsed / c.length     # each half has its own window
            yield from about(v.figure(rate), f"{rate} by ELAPSED_TIME", 0.99 * expected - 0.01, 1.01 * own * expected + 0.01)


def law_2_elapsed_is_what_was_asked(v: View) -> Found:
    """Set-up, the closing round trip and waiting for a silent end are not measured; a stream may wait until its data
    has arrived, which takes the path's time and no longer."""
    c = v.case
    if v.seen.status != 0 or c.count or not v.elapsed or c.down == "cut" or (c.frozen and v.word()):
        return
    # netperf's daemon sends for that long from its answer on, which is late
    least = 0.0 if not v.whole or (c.real == "daemon" and c.down_stream) else c.length - TICK
    yield from about(v.elapsed, "ELAPSED_TIME", least, c.length + v.over)


def law_2_the_window_begins_behind_the_warm_up(v: View) -> Found:
    """Nothing from the warm-up is in the window."""
    c, s = v.case, v.seen
    if v.first is None or not v.started() or c.unix or s.missed or c.disturbed or c.loss or c.ramp or c.beside:
        return
    yield from about(v.begin - v.first, "the window's begin behind the first packet", c.warm - v.slack - 0.02 - c.rtt - (10 / c.bits if c.open else 0),
                     c.warm + v.slack + 0.3 + (4 + 2 * c.both if c.one_port else 2) * c.rtt + v.queue + c.late / 1000
                     + 2 * c.muted * c.both)   # one half is connected before the other's first message gets through


def law_2_a_count_is_what_was_asked(v: View) -> Found:
    """Exactly the requested number of transactions, and at least the requested bytes."""
    c = v.case
    if not v.whole or not c.count or c.both or c.real:
        return
    if c.stream:
        for names, what in ((("LOCAL_BYTES_SENT", "REMOTE_BYTES_SENT"), "sent"), (("REMOTE_BYTES_RECVD", "LOCAL_BYTES_RECVD"), "received")):
            yield from about(v.figure(names[c.down_stream]), f"bytes {what}", c.count, math.inf)
    elif not v.figure("LOST_REQUESTS"):
        yield from about(v.operations, "transactions", c.count - 0.5, c.count + 0.5)


def law_3_loss_is_the_path_s(v: View) -> Found:
    """Nothing arrives that was not sent, and nothing is lost that was not dropped."""
    c, s = v.case, v.seen
    if not v.whole or not c.udp or c.unix or s.missed or v.cut_up or c.frozen or c.down in GONE:
        return
    ways = [(s.near.out, s.far.inn)] * (not c.down_stream) + [(s.far.out, s.near.inn)] * (c.rr or c.both or c.down_stream)
    dropped = sum(a.number() - b.number() for a, b in ways) + s.full + v.failed
    gone = QUEUE / max(c.size, c.answer, 4) * (c.down == "link")    # the queue of an interface that went down
    if c.stream:
        lost, sent, unique, back, came = (v.figure(n) for n in ("LOST_DATAGRAMS", "LOCAL_SEND_CALLS", "REMOTE_RECV_CALLS",
                                                               "REMOTE_SEND_CALLS", "LOCAL_RECV_CALLS"))
        less = None if sent is None or unique is None else sent + (back or 0) - unique - (came or 0)
        edge = 0.0
        if lost is None:
            lost = less
            # without numbers a receiver's window has other edges
            edge = (v.slack + v.way) * (sent or 0) / max(v.elapsed, TICK) * (c.warm > 0)
        elif not c.both and not v.figure("DUPLICATE_DATAGRAMS"):     # with --both it is known for one direction
            yield from about(less, "sends less receives, beside LOST_DATAGRAMS", lost, lost)
        exact = not (c.warm or c.disturbed or c.real or c.one_port or c.both or c.beside)    # these have packets of their own
        marks = min(s.full, s.near.marks + s.far.marks)     # a full buffer loses them, too
        yield from about(lost, "lost datagrams, by the witness", (dropped - marks if exact else 0) - edge,
                         dropped + gone + edge)
    elif not c.disturbed:
        yield from about(v.figure("LOST_REQUESTS"), "LOST_REQUESTS, by the witness", 0, dropped + gone)
        if not dropped:
            for name in ("LATE_RESPONSES", "STRAY_RESPONSES"):
                yield from about(v.figure(name), name, 0, 0)


def law_4_latencies_are_in_order(v: View) -> Found:
    """Percentiles ascend, the mean is between minimum and maximum, and nothing is faster than the path."""
    c = v.case
    if v.seen.status != 0 or c.real == "client":
        return
    names = ("MIN_LATENCY", "P50_LATENCY", "P90_LATENCY", "P99_LATENCY", "MAX_LATENCY")
    values = [v.figure(name) for name in names]
    for i in range(len(names) - 1):
        low, high = values[i], values[i + 1]
        if low is not None and high is not None and low > high + 1 and not high < 0:
            yield f"{names[i]} {low:.6g} > {names[i + 1]} {high:.6g}"
    mean = v.figure("MEAN_LATENCY")
    if None not in (mean, values[0], values[4]):
        yield from about(mean, "MEAN_LATENCY", (values[0] or 0) - 1, (values[4] or 0) + 1)
    if c.rr and not c.unix and values[0] is not None and not c.real:
        yield from about(values[0], "MIN_LATENCY by the path", c.rtt * 1e6, 9e18)
    for name, value in zip(names, values):
        if value is not None and value >= 1 << 46 >> 10:
            yield f"{name} is {value:.6g}: the top of a histogram"


def law_4_latency_by_rate_is_what_was_in_flight(v: View) -> Found:
    """Little's law: mean latency times rate is the mean number in flight, which is at most the depth."""
    c, mean = v.case, v.figure("MEAN_LATENCY")
    if v.whole and c.rr and not c.rate and mean and v.operations and not c.real:
        most = c.depth * (v.elapsed + (v.figure("MAX_LATENCY") or 0) / 1e6) * 1.02
        yield from about(mean / 1e6 * v.operations, "time of all transactions", 0, most)


def law_5_due_is_rate_by_time(v: View) -> Found:
    """An open loop follows its own clock: what is due does not depend on what happens, and each operation is answered
    or not."""
    c = v.case
    due, unanswered = v.figure("DUE_OPERATIONS"), v.figure("UNANSWERED_OPERATIONS")
    if not v.whole or not c.open or due is None:
        return
    expected = c.bits * c.length if not c.count else float(c.count)
    free = 1e-6      # relative rounding error of a product
    if c.arrivals == "poisson":
        free = 5 * expected ** 0.5 + 1
    elif c.arrivals:
        free = 5.0
    elif c.flows > 1 and c.ramp:
        free = expected
    if not c.count:
        yield from about(due, "DUE_OPERATIONS", expected - free, expected + free)
    yield from about(v.operations + (unanswered or 0), "answered and unanswered", due - 0.5, due + 0.5)
    sent = v.figure("SENT_OPERATIONS")
    if sent is not None and not (c.loss or c.disturbed or v.seen.full):
        yield from about(v.operations, "answered of what was sent", sent - 0.5, sent + 0.5)


def law_5_a_stream_sends_at_its_rate(v: View) -> Found:
    """A stream reaches its --rate if the path can carry it."""
    c = v.case
    if not v.whole or not c.stream or not c.bits or c.disturbed or c.loss or c.both or c.unix or c.ramp or v.cut_up:
        return
    name = "LOCAL_RECV_THROUGHPUT" if c.down_stream else "REMOTE_RECV_THROUGHPUT"
    one = v.message * 8 / c.length
    most = min(c.bits, (c.mbit or 1e9) * 1e6)
    yield from about((v.figure(name) or 0) * 1e6, f"{name}, bits a second", 0,
                     most * (1.01 + v.queue / c.length) + one * (1 + (c.warm > 0)))    # a message from the warm-up may be in flight
    window = 16 * 1448 * 8 / c.rtt * c.flows if c.rtt and not c.udp else 9e18   # slow start
    if c.bits < min(0.7 * most if most < c.bits else c.bits + 1, window) and c.bits * 1.5 < (c.mbit or 1e9) * 1e6 and \
            v.seen.late < 0.2 * c.length:
        lag = 0 if c.udp else (2 * c.rtt + v.slack) * c.bits / c.length
        # a machine that delays a sender, which it reports, or a receiver until its buffer is full
        kept = v.seen.kept(v.begin, v.end) * c.bits / c.length
        lag += kept * v.word() + min(kept, v.seen.full * c.size * 8 / c.length)
        yield from about((v.figure(name) or 0) * 1e6, f"{name}, bits a second", 0.97 * c.bits - one - lag, 9e18)


def law_5_a_pace_is_kept(v: View) -> Found:
    """No more begins in an interval of -w, and of a connection, than -b says, but for what was under way at the edges."""
    c = v.case
    if v.whole and c.wait and (c.rr or c.burst):
        most = c.flows * (PACED if c.rr else c.burst) * (v.elapsed * 1000 / float(c.wait[:-2]) + 2) + c.depth
        if c.rr:
            yield from about(v.operations, f"transactions of {most / v.elapsed:.6g} a second", 0, most)
        else:
            yield from about(v.figure("LOCAL_BYTES_SENT"), "LOCAL_BYTES_SENT by -b and -w", 0, most * (v.figure("LOCAL_SEND_SIZE") or 0))


def law_6_parts_add_up(v: View) -> Found:
    """Flows and workers add up to the whole, a histogram has as many values as were counted, and what a flow can't
    know is null."""
    c = v.case
    if not v.whole or not v.document:
        return
    for part in ("flows", "workers"):
        rows = v.run.get(part) or []
        for name, whole in (("bytes_sent", "LOCAL_BYTES_SENT"), ("bytes_received", "LOCAL_BYTES_RECVD")):
            total = sum(row.get(name) or 0 for row in rows)
            if rows and v.figure(whole) is not None and not c.beside:
                yield from about(total, f"{name} of all {part}", v.figure(whole) or 0, v.figure(whole) or 0)
    for row in v.run.get("flows") or []:
        if c.stream and not c.udp and not row.get("bytes_sent") and row.get("bytes_received") and \
                row.get("retransmissions") is not None:
            yield f"retransmissions of a flow that only receives: {row['retransmissions']}, not null"
    count = (v.run.get("latency") or {}).get("count")
    if c.rr and count is not None:
        answered = v.operations + ((v.figure("UNANSWERED_OPERATIONS") or 0) if c.open else 0)
        yield from about(count, "values of the histogram", v.operations - 0.5, answered + 0.5)


def law_7_one_figure_is_one_number(v: View) -> Found:
    """A figure has the same value in all outputs."""
    s = v.seen
    if s.status != 0 or not v.document:
        return
    metrics = v.document.get("final") or {}
    for name, text in s.figures.items():
        value = metrics.get(name)
        if value is None and re.fullmatch(r"-?\d+(\.\d+)?", text) and float(text) not in (-1, 0):
            yield f"-k {name}={text}, and null in the document"
        if isinstance(value, (int, float)) and not isinstance(value, bool) and not same(text, value):
            yield f"-k {name}={text}, and {value} in the document"
    row = s.shows.get("csv", "").strip().split(",")
    for name, text in zip(s.figures, row):
        if text and s.figures[name] != text and not (
                re.fullmatch(r"[\d.e+-]+", text) and same(s.figures[name], float(text))):
            yield f"-k {name}={s.figures[name]}, and {text} by netreport -o"
    yield from prometheus(s.shows.get("prometheus", ""), metrics)


def same(text: str, value: float) -> bool:
    try:
        shown = float(text)
    except ValueError:
        return False
    decimals = len(text.partition(".")[2])
    return abs(shown - value) <= 1.001 * 10 ** -decimals + 1e-9 * abs(value)


def prometheus(text: str, metrics: "Dict[str, Any]") -> Found:
    values: "Dict[str, float]" = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            quantile = re.search(r'quantile="([^"]*)"', name)
            values[re.sub(r"\{.*", "", name) + (f" {quantile[1]}" if quantile else "")] = float(value)
    for name, value in metrics.items():
        shown = values.get(f"netperf_{name.lower()}")
        if shown is not None and isinstance(value, (int, float)) and abs(shown - value) > 1e-9 * abs(value):
            yield f"{name} {value}, and {shown} for Prometheus"
    count, total = (values.get(f"netperf_latency_seconds_{name}") for name in ("count", "sum"))
    mean, unanswered = metrics.get("MEAN_LATENCY"), metrics.get("UNANSWERED_OPERATIONS") or 0
    if count and mean and not unanswered:
        yield from about((total or 0) / count * 1e6, "Prometheus' sum by count", 0.999 * mean - 1, 1.001 * mean + 1)
    if count and mean and unanswered:
        yield from about((total or 0) / count * 1e6, "Prometheus' sum by count, with unanswered ones", mean * 0.999 - 1, 9e18)
    for name, value in values.items():
        if name.startswith("netperf_latency_seconds") and 140_000 < value < 1e12 and "count" not in name:
            yield f"{name} is {value}: the top of a histogram"


def law_8_both_ends_agree(v: View) -> Found:
    """One end has sent what the other may have received; options that only report change nothing; the named engine
    was used."""
    c, s = v.case, v.seen
    for end, name in zip(("near", "far"), c.engine.split(",") if c.engine and v.whole and v.document else ()):
        drove = (v.run.get(end) or {}).get("engine.name", name)
        if name and drove != name:
            yield f"--engine {c.engine}: {drove} drove the {end} end"
    if not v.whole or c.warm or c.disturbed:
        return
    for sent, received in (("LOCAL_BYTES_SENT", "REMOTE_BYTES_RECVD"), ("REMOTE_BYTES_SENT", "LOCAL_BYTES_RECVD")):
        a, b = v.figure(sent), v.figure(received)
        if a is not None and b is not None and b > a + (v.message if c.rr or c.real else 0):
            yield f"{received} {b:.0f} > {sent} {a:.0f}"
    if c.stations and v.operations >= 3 * c.stations and not c.real:
        looked = re.findall(r"--stations: \w+ end: (\d+) transactions; stamps: (\d+) queued, (\d+) sent, (\d+) received", s.said)
        if not looked:
            yield "--stations: no line about the stamps"
        for of, *stamps in looked:
            if int(of) and not all(map(int, stamps)):
                yield f"--stations: of {of} transactions {', '.join(stamps)} have stamps (queued, sent, received)"


def law_8_nothing_counts_behind_a_signal(v: View) -> Found:
    """What this end no longer counts after a signal, the far end does not count either."""
    c, sent = v.case, v.figure("LOCAL_BYTES_SENT")
    if c.frozen == "signal" and c.stream and not c.unix and not c.down_stream and v.seen.status == 0 and sent is not None:
        edge = (v.slack + v.way) * sent / max(v.elapsed, TICK) * (c.warm > 0)     # its window has other edges
        yield from about(v.figure("REMOTE_BYTES_RECVD"), "REMOTE_BYTES_RECVD", 0, sent + v.message + edge)


def law_9_what_is_not_whole_says_so(v: View) -> Found:
    """An exit status, a line, or `partial`: a partial result never looks complete."""
    c, s = v.case, v.seen
    happened = [what for _, what in s.events]
    if "cut" in happened and s.status == 0 and v.whole:
        yield f"the far end vanished: status 0, complete, {v.figure('THROUGHPUT')} over {v.elapsed:.2f} s"
    if s.status == 0 and c.test.startswith("TCP_") and c.stream and not (c.rate or c.wait or c.real or c.disturbed) and (
            v.figure("THROUGHPUT") == 0 and "has arrived" not in s.said):
        yield "a rate of 0 without a word"
    if c.frozen == "near" and "over" in happened and v.elapsed > c.length + v.over and not v.word():
        yield f"stopped for {c.frozen_s} s: {v.elapsed:.2f} s of {c.length} without a word"


def law_10_it_goes_on(v: View) -> Found:
    """An outage of up to a minute ends no test, and a long or slow path never does."""
    c, s = v.case, v.seen
    if c.frozen == "near" and s.status == 1 and "still" in s.said:    # and reports it
        return
    if c.frozen == "signal" and s.status == 1 and ("interrupted before" in s.said or "interrupted while waiting" in s.said):
        return
    if set(GONE) & {what for _, what in s.events}:
        return
    if c.rate and c.loss and "not one transaction" in s.said:     # lost SYNs: earlier requests are answered first
        return
    if c.real == "daemon" and c.down_stream and 2 * c.rtt + c.late / 1000 > c.length:    # its time is over before it is connected
        return
    if c.rr and c.arrivals.startswith("burst") and 5 / float(c.rate) > c.seconds and "not one transaction" in s.said:   # none was due
        return
    too_short = "the load moved nothing" in s.said and c.length < 2 * c.rtt
    told = too_short or "transactions were not answered" in s.said
    if c.beside and s.status == 0 and not (c.loss or c.disturbed or told) and v.document and v.figure("LOADED_P50_LATENCY") is None:
        yield f"--beside without a latency under load: {s.said.strip().splitlines()[-1:]}"
    if not c.real and "not Plumbline's" in s.said:
        yield "taken for netperf's daemon"
    if s.status != 0 or v.partial():
        line = s.said.strip().splitlines()
        yield f"status {s.status}{', partial' if v.partial() else ''} after {s.took:.1f} s: {line[-1] if line else 'without a word'}"


def limit(c: Case) -> float:
    """Seconds within which a case must end."""
    trips = c.rtt + c.late / 1000 + (2 * QUEUE * 8 / (c.mbit * 1e6) if c.mbit and c.stream else 0)
    time_of_it = c.length if not c.count else 0.0
    if c.count and c.rr:
        time_of_it = c.count / c.bits if c.bits else c.count * (c.rtt * (2 if c.connects else 1) + 0.3)
    if c.count and c.stream:
        time_of_it = max(c.count * 10 / (c.mbit * 1e6 if c.mbit else 1e8), c.count * 8 / c.bits if c.bits else 0)
    free = SETTING_UP * trips + MACHINE + (COUNTED if c.count else 0) + (15 if c.loss else 0)
    free += 4 * c.muted     # TCP's time-outs double
    if c.down in GONE:
        free += PROMISED + 10
    if c.real and c.stream:     # it waits until its socket's buffer has been delivered
        free += 6e7 / ((c.mbit or 100) * 1e6) * max(1.0, c.buffers / 1e6) + 10 * trips
    return c.warm + time_of_it + 2 * (c.down_s + c.frozen_s) + free + (c.flows / c.ramp if c.ramp else 0) + (
        5 if c.beside else 0) + c.flows * 0.02


def law_10_it_ends_when_it_should(v: View) -> Found:
    """After its time a test takes a few round trips of the path, and no longer."""
    most = limit(v.case) + 5 * v.seen.late
    if v.seen.status is None or v.seen.took > most:
        yield f"{'still there' if v.seen.status is None else 'ended'} after {v.seen.took:.1f} s of at most {most:.1f} s"


def law_1_interim_results_are_the_path_s(v: View) -> Found:
    """Data still in a buffer has not been carried: an interim result shows at most what the path carries, plus one
    call."""
    c = v.case
    if c.mbit and c.stream and not c.unix and not c.udp and not c.burst:
        for rate, seconds in v.seen.interim:
            # after a loss, a window waits for the retransmission; several flows without a rate overflow the queue
            held = (QUEUE + c.mbit * 1.25e5 * c.rtt) * bool(c.loss or c.disturbed or (c.flows > 1 and not c.bits))
            most = c.mbit * (1 + c.both) * (1 + v.slack / max(seconds, 0.01)) + (65536 + v.message + held) * 8e-6 / max(seconds, 0.01)
            yield from about(rate, f"an interim result over {seconds} s", 0, most)


Law = Callable[[View], Found]
LAWS: "List[Law]" = [f for name, f in list(globals().items()) if name.startswith("law_")]


class Breach(NamedTuple):
    law: str
    line: str


def judge(case: Case, seen: Seen) -> "List[Breach]":
    view = View(case, seen)
    return [Breach(law.__name__[4:], line) for law in LAWS for line in law(view)]
