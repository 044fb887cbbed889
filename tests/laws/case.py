"""A case: a test and the path that it runs over. tidy() resets fields that do not go together to their defaults, so
that no failure is dismissed as invalid.
"""

import dataclasses
import json
from dataclasses import dataclass
from typing import Any, Dict, List

from hypothesis import strategies as st


PACED = 2       # transactions that begin in an interval of -w


@dataclass(frozen=True)
class Case:
    test: str = "TCP_STREAM"
    seconds: float = 1.0
    count: int = 0              # transactions or bytes; 0: timed
    warm: float = 0.0
    rate: str = ""              # the argument of --rate
    arrivals: str = ""
    burst: int = 0              # -b: transactions in flight or, with wait, messages per burst
    wait: str = ""              # -w: also the interval in which PACED transactions begin
    ramp: int = 0
    flows: int = 1
    threads: int = 1
    engine: str = ""            # --engine: local,remote
    both: bool = False
    one_port: bool = False
    stations: int = 0
    beside: str = ""
    interim: float = 0.0
    explain: bool = False
    look: str = ""              # further options that change no figure
    call: str = ""              # options of sockets and calls, behind --
    size: int = 0               # -m, or of a request; 0: the default
    answer: int = 0             # of a response, or -M
    buffers: int = 0            # -s and -S
    family: int = 4
    real: str = ""              # "client" or "daemon" is the real netperf
    delay: int = 0              # ms each way
    mbit: float = 100.0         # 0: unlimited
    loss: float = 0.0           # percent
    late: int = 0               # ms that the control connection's answers take in addition
    mute: bool = False          # the first message on the control connection is lost, and retransmitted
    frozen: str = ""            # "near", "far": that end's process is stopped; "signal": ended by ^C
    frozen_s: float = 0.0
    # Outages of the path: "silent", "link", "route". "deaf": from then on nothing reaches the far end; "cut": nor does it send.
    down: str = ""
    down_s: float = 0.0

    def __str__(self) -> str:
        return json.dumps(self.told())

    def told(self) -> "Dict[str, Any]":
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if getattr(self, f.name) != f.default}

    @property
    def rr(self) -> bool:
        return self.test.endswith(("_RR", "_CRR", "_CC"))

    @property
    def stream(self) -> bool:
        return not self.rr

    @property
    def udp(self) -> bool:
        return self.test.startswith(("UDP", "DG"))

    @property
    def unix(self) -> bool:
        return self.test.startswith(("STREAM_", "DG_"))

    @property
    def connects(self) -> bool:
        return self.test.endswith(("_CRR", "_CC"))

    @property
    def down_stream(self) -> bool:
        """Whether the far end sends."""
        return self.test.endswith("_MAERTS")

    @property
    def open(self) -> bool:
        return bool(self.rate) and self.rr

    @property
    def depth(self) -> int:
        return self.flows * (1 + self.burst)

    @property
    def disturbed(self) -> bool:
        return bool(self.frozen or self.down)

    @property
    def length(self) -> float:
        """-l in seconds: long enough for a disturbance to end within the test."""
        if not self.disturbed:
            return self.seconds
        return max(self.seconds, 1.0) + 1.0 + (self.down_s if self.down not in ("cut", "deaf") else 1.0) + (self.frozen_s if self.frozen == "far" else 0)

    @property
    def rtt(self) -> float:
        return 2 * self.delay / 1000

    @property
    def muted(self) -> float:
        """Seconds during which the client's messages on the control connection are lost."""
        return self.mute * (1.0 + 1.5 * (self.rtt + self.late / 1000))

    @property
    def bits(self) -> float:
        """--rate in bits/s of a stream, or transactions/s; 0 without it."""
        if not self.rate or self.rate == "auto":
            return 0.0
        factor = {"k": 1e3, "M": 1e6}.get(self.rate[-1])
        return float(self.rate[:-1]) * factor if factor else float(self.rate)

    @property
    def features(self) -> "frozenset[str]":
        """The fields without their default value, except those that follow from others."""
        return frozenset(self.told()) - {"test", "seconds", "down_s", "frozen_s"} - ({"size"} if self.udp and self.stream else set())

    def command(self) -> "List[str]":
        """Options of netperf except host, port and figures."""
        c = self
        words = ["-t", c.test if c.test != "UDP_MAERTS" else "OMNI", "-l", f"-{c.count}" if c.count else f"{c.length:g}"]
        for option, value in (("--warm-up", c.warm), ("--rate", c.rate), ("--arrivals", c.arrivals), ("--ramp", c.ramp),
                              ("-b", c.burst if c.stream else PACED * bool(c.wait)), ("-w", c.wait), ("--engine", c.engine), ("-D", c.interim),
                              ("--beside", c.beside)):
            if value:
                words += [option, f"{value:g}" if isinstance(value, float) else str(value)]
        if c.flows > 1:
            words += ["--flows", str(c.flows)]
        if c.threads > 1:
            words += ["--threads", str(c.threads)]
        words += ["--both"] * c.both + ["--explain"] * c.explain + c.look.split()
        words += [f"--stations={c.stations}"] * bool(c.stations)
        if c.real == "client" and c.rr:
            words += ["-j"]
        more: "List[str]" = ["-T", "udp", "-d", "recv"] if c.test == "UDP_MAERTS" else []
        if c.rr and (c.size or c.answer):
            more += ["-r", f"{c.size or 1},{c.answer or 1}"]
        elif c.size:
            more += ["-m", f",{c.size}" if c.down_stream else f"{c.size},{c.size}" if c.both and c.udp else str(c.size)]
        if c.buffers:
            more += ["-s", str(c.buffers), "-S", str(c.buffers)]
        if c.udp and not c.unix and c.real:
            more += ["-R", "1"]
        if c.rr and c.burst:
            more += ["-b", str(c.burst)]
        return [*words, "--", *more, *c.call.split()]


def made(**fields: Any) -> Case:
    return tidy(Case(**fields))


def tidy(c: Case) -> Case:
    """Apply the rules until nothing changes."""
    new = rules(c)
    return new if new == c else tidy(new)


def rules(c: Case) -> Case:
    new: "Dict[str, Any]" = {}

    def off(*names: str) -> None:
        for name in names:
            new[name] = Case.__dataclass_fields__[name].default

    def settle() -> Case:
        nonlocal new
        got, new = dataclasses.replace(c, **new), {}
        return got

    if c.unix:
        if c.rr or c.engine == "spin,epoll":
            off("burst", "engine")
        off("family", "real", "delay", "mbit", "loss", "late", "mute", "down", "down_s", "one_port", "stations", "both",
            "beside", "interim")
    if c.test in ("TCP_CC", "TCP_CRR", "MPTCP_CRR"):
        off("burst", "stations", "one_port" if c.flows > 1 else "burst")
    if c.test.endswith("_CC"):
        off("size", "answer")
    if c.test not in ("TCP_STREAM", "MPTCP_STREAM", "UDP_STREAM"):
        off("both")
    if not c.rr:
        off("stations", "ramp", "arrivals", "answer")
        if c.count:
            new["count"] = 2_000_000
        if c.rate.isdigit():
            new["rate"] = {"10": "400k", "100": "5M", "500": "20M"}[c.rate]
        if not c.wait:
            off("burst")
    if c.rr:
        off("both")
        if c.rate and not c.rate.isdigit():
            new["rate"] = {"400k": "10", "5M": "100", "20M": "500"}[c.rate]
    c = settle()
    if c.test.endswith("TCP_MAERTS") or c.rate:     # MPTCP_MAERTS, too
        off("wait", "burst")
    if not c.rate:
        off("arrivals")
    if c.rate and (c.test == "TCP_SENDFILE" or c.test.startswith("DG_")):
        off("rate", "arrivals")
    if c.rate:
        off("count")
    if c.flows == 1:
        off("threads", "ramp")
    if c.real:
        off("warm", "rate", "arrivals", "ramp", "flows", "threads", "both", "one_port", "stations", "beside",
            "explain", "interim", "wait", "engine", "look", "call")
        if c.test.startswith("MPTCP") or c.test in ("TCP_CC", "TCP_SENDFILE", "UDP_MAERTS"):
            new["test"] = "TCP_RR" if c.rr else "TCP_STREAM"
        off("burst", *["size"] * c.down_stream)
    if c.one_port:
        off("late", *["down", "down_s"] * (c.both and c.udp))    # which its set-up of several round trips would meet
    if c.count and c.stream and c.loss and c.delay > 50:    # minutes
        off("count")
    if c.real and c.stream and c.loss and c.delay > 50:     # it waits for what its socket holds: minutes
        off("buffers")
    if c.count:
        off(*["warm"] * c.stream, "beside", "ramp", "frozen", "frozen_s", "down", "down_s")
    if "-k" in c.look and ("zerocopy" in c.engine or c.test == "TCP_SENDFILE") or "--wire" in c.look and (c.unix or c.test.startswith("MPTCP")):
        off("look")
    if c.call and ("zerocopy" in c.engine or c.test == "TCP_SENDFILE" or c.udp or c.unix or c.connects or (c.stream and c.rate)) or (
            c.call == "-I" and "uring" in c.engine):
        off("call")
    if c.stations and (c.connects or c.unix or c.test.startswith("MPTCP") or c.flows > 1 or c.rate or c.burst or c.engine):
        off("stations")
    if c.beside and (c.rr or c.test.startswith("MPTCP") or c.flows > 8):
        off("beside")
    c = settle()
    if c.engine == "sync" and (c.flows > 1 or c.rate):
        off("engine")
    if c.engine in ("spin,epoll", "uring,epoll") and c.connects or c.engine == "uring,epoll" and (c.stream or c.udp or c.unix):
        off("engine")
    if c.engine in (",batch", ",segment") and not (c.udp and c.stream and not c.unix) or "zerocopy" in c.engine and (
            c.rr or c.udp or c.unix or c.test.startswith("MPTCP")):
        off("engine")
    if "zerocopy" in c.engine and c.buffers > 1 << 20:     # sixteen of what a socket gets: more than a daemon allows
        off("buffers")
    if "zerocopy" in c.engine and c.size > 65536:
        new["size"] = 65536
    if c.engine in ("spin,epoll", "uring,epoll") and c.ramp:     # they drive only connections that are there at the start
        off("engine")
    if c.engine == ",segment" and c.both:     # it sends no fragments
        new["size"] = min(c.size or 1400, 1400)
    if c.ramp and (c.rate or c.warm or c.test not in ("TCP_STREAM", "TCP_MAERTS", "TCP_RR")):
        off("ramp")
    if c.udp:
        new["size"] = min(c.size, 8192) if c.stream else min(c.size, 4000)
        new["answer"] = min(c.answer, 4000)
        if c.stream and not c.size:
            new["size"] = 1400
        if c.stream and c.size < 500 and c.mbit not in (1, 10) and not c.rate:
            new["size"] = 1400
        if c.stream and c.bits > new["size"] * 8 * 3000:     # three thousand a second are for any machine
            new["size"] = 1400
        if c.stream and c.count:
            off("count")
        if c.stream and c.wait and c.flows > 8:     # each has a pace
            new["burst"] = min(c.burst, 1)
        if c.stream and not (c.rate or c.wait):     # a hundred thousand datagrams a second
            new.update({"rate": "5M"} if c.disturbed or c.warm > 0.1 else {"seconds": 0.3})
        if c.rr and c.burst and c.loss:
            off("burst")
    if c.stream and not (c.rate or c.wait or c.count) and not c.mbit and not c.unix:
        new["mbit"] = 100.0
    if c.stream and 0 < c.size < 1000 and not c.udp:
        new["size"] = 1000
    if c.rr and max(c.size, c.answer) > 100_000 and c.mbit == 1:
        new["mbit"] = 10.0
    if c.down == "" or not c.down_s:
        off("down", "down_s")
    if c.down in ("cut", "deaf"):
        off("frozen", "frozen_s")
    if c.frozen == "" or not c.frozen_s:
        off("frozen", "frozen_s")
    if c.rr and max(c.size, c.answer) > 4000 and (c.rate or c.delay >= 50 or c.mbit <= 10):
        new.update(size=min(c.size, 4000), answer=min(c.answer, 4000))
    if c.rr and c.rate and (max(c.size, c.answer) * c.bits * 16 > c.mbit * 1e6 or
                            max(c.size, c.answer) * c.bits * c.rtt > 14480):        # no more than a first window is under way
        new.update(size=0, answer=0)
    if c.rr and not c.count:    # time for a transaction, and for one that follows a lost one
        new["seconds"] = max(c.seconds, round(3 * c.rtt * (2 if c.connects or c.test.startswith("MPTCP") else 1), 1) + (2.0 if c.loss else 0))
    c = settle()
    if c.disturbed:
        off("real")
    elif c.real == "client":      # it takes whole seconds, and waits for ever for a lost datagram of a count
        new["seconds"] = float(-(-c.seconds // 1))
        if c.udp and c.loss:
            off("count")
    if c.test.startswith("DG_STREAM") and c.flows > 1:
        off("flows", "threads")
    return settle()


def mostly(default: Any, *others: Any, times: int = 6) -> "st.SearchStrategy[Any]":
    return st.sampled_from([default] * times + list(others))


TESTS = ("TCP_STREAM", "UDP_STREAM", "TCP_RR", "UDP_RR", "TCP_MAERTS", "TCP_CRR", "TCP_SENDFILE", "TCP_CC", "TCP_RR",
         "UDP_RR", "UDP_STREAM", "UDP_MAERTS", "TCP_STREAM", "MPTCP_STREAM", "MPTCP_RR", "STREAM_STREAM", "STREAM_RR", "DG_RR",
         "MPTCP_MAERTS", "MPTCP_CRR", "DG_STREAM")
ENGINES = ("epoll", "spin,epoll", "uring,epoll", "sync", ",epoll", "zerocopy", ",zerocopy", ",batch", ",segment")

cases = st.builds(
    made, test=st.sampled_from(TESTS), seconds=st.sampled_from([1.0, 0.3, 2.0]), count=mostly(0, 20, times=8),
    warm=mostly(0.0, 0.1, 1.0, times=3), rate=mostly("", "100", "10", "500", times=3),
    arrivals=mostly("", "poisson", "burst:5", times=3), burst=mostly(0, 1, 8), wait=mostly("", "10ms"),
    ramp=mostly(0, 100), flows=mostly(1, 2, 8, 40, times=4), threads=mostly(1, 2), engine=mostly("", *ENGINES, times=12),
    both=mostly(False, True), one_port=mostly(False, True), stations=mostly(0, 1, 10), beside=mostly("", "TCP_RR:50", times=8),
    interim=mostly(0.0, 0.2), explain=mostly(False, True), look=mostly("", "-c -C", "--wire", "-k 64,64 -K 64,64", times=9),
    call=mostly("", "-D", "-G 720", "-I", times=9), size=mostly(0, 1, 23, 1400, 65536, 1 << 20),
    answer=mostly(0, 1, 1400, 65536), buffers=mostly(0, 65536, 2 << 20), family=mostly(4, 6, times=3),
    real=mostly("", "client", "daemon"), delay=mostly(0, 5, 50, 300, 600, times=3), mbit=mostly(100.0, 10.0, 1.0, 0.0, times=2),
    loss=mostly(0.0, 1.0, 5.0), late=mostly(0, 20, 300, 1500), mute=mostly(False, True, times=8), frozen=mostly("", "far", "near", "signal", times=10),
    frozen_s=st.sampled_from([0.5, 2.0, 4.0]), down=mostly("", "silent", "link", "route", "deaf", times=10),
    down_s=st.sampled_from([0.5, 0.3, 2.0, 7.0]))
