#!/usr/bin/env python3
"""Client and daemon on a link of known properties: the figures they read, and what they do when
the link goes silent, loses datagrams, or the far end dies. Needs root, for scripts/netlab."""

import os
import signal
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Callable, NamedTuple, Sequence

import interop
import lib

NAME = f"ns{os.getpid()}"
IPV4, IPV6 = "10.77.0.2", "fd77::2"
RATE, MTU, FRAMING = 100.0, 1500, 38    # Mbit/s, and the bytes that Ethernet adds to a packet
ETHERNET = 14                           # and those of them that the kernel counts
TIMED = 1 if lib.QUICK else 3           # seconds of a test that is to end by its time
LATE = 2.0                              # and what it may take beyond, set-up and end included
ATTEMPTS = 3                            # at a figure
BEGIN = 10.0                            # seconds in which all tests are to be under way
GIVE_UP = 15.0                          # seconds in which a client sees that its peer is gone
CLEAN = 30.0                            # and in which the daemon has got rid of the session
TESTS = ("TCP_STREAM", "TCP_MAERTS", "TCP_RR", "TCP_CRR", "UDP_STREAM", "UDP_RR")


class Lab:
    """A link of netlab's for the length of a block; client and server are command prefixes."""

    client = [lib.NETLAB, "exec", "--name", NAME, "client"]
    server = [lib.NETLAB, "exec", "--name", NAME, "server"]

    def __enter__(self) -> "Lab":
        self._netlab("up", "--rate", f"{RATE:g}mbit", "--mtu", str(MTU))
        return self

    def __exit__(self, *_: object) -> None:
        self._netlab("down")

    def _netlab(self, verb: str, *args: str) -> None:
        must([lib.NETLAB, verb, "--name", NAME, *args])

    def drop(self, end: Sequence[str], *rules: str) -> None:
        """Drops what arrives at one end over the link and fits one of the rules."""
        chain = "inet lab pre"
        script = ["add table inet lab",
                  f"add chain {chain} {{ type filter hook prerouting priority -300; }}",
                  *(f"add rule {chain} iifname lab0 {rule} drop" for rule in rules)]
        must([*end, "nft", "; ".join(script)])

    def heal(self) -> None:
        for end in (self.client, self.server):
            must([*end, "nft", "add table inet lab; delete table inet lab"])


def must(cmd: Sequence[str]) -> None:
    got = lib.run(cmd, timeout=60)
    assert got.rc == 0, f"{' '.join(cmd)}: {got.err.strip() or got.rc}"


def client(lab: Lab, port: int, test: str, seconds: int, timeout: float,
           host: str = IPV4, more: Sequence[str] = ()) -> lib.Result:
    """Runs one test of so many seconds over the link, and kills it when timeout is over."""
    return lib.run([*lab.client, lib.netperf(), "-H", host, "-p", str(port), "-t", test,
                    "-l", str(seconds), "-P", "0", "--", *more], timeout)


def rows(got: lib.Result) -> "list[list[float]]":
    """The figures of a classic table without its head."""
    assert got.rc == 0, f"status {got.rc} after {got.seconds:.1f} s: {got.err.strip()}"
    found = [[float(word) for word in line.split()] for line in got.out.splitlines() if line]
    assert found, "no result row"
    return found


# --- figures ------------------------------------------------------------------------------

class Figure(NamedTuple):
    """A test whose last rate the arithmetic foretells: payload and headers of a full packet."""
    test: str
    host: str
    payload: int
    headers: int
    more: "tuple[str, ...]" = ()

    def expected(self) -> float:
        return RATE * self.payload / (self.payload + self.headers + FRAMING)


# Cubic, whatever the machine's default is: BBR's probing costs a short test up to 1.6 %.
CUBIC = ("-K", "cubic")
FIGURES = (
    Figure("TCP_STREAM", IPV4, 1448, 52, CUBIC),   # 20 of IP, 20 of TCP, 12 of its time-stamps
    Figure("TCP_MAERTS", IPV4, 1448, 52, CUBIC),
    Figure("UDP_STREAM", IPV4, 1472, 28, ("-m", "1472")),
    Figure("TCP_STREAM", IPV6, 1428, 72, CUBIC),
    Figure("TCP_MAERTS", IPV6, 1428, 72, CUBIC),
    Figure("UDP_STREAM", IPV6, 1452, 48, ("-m", "1452")),
)


def carried(lab: Lab) -> "dict[str, tuple[int, int]]":
    """Bytes and packets that have come out of the link at either end."""
    found = {}
    for name, end in (("client", lab.client), ("server", lab.server)):
        got = lib.run([*end, "cat", "/proc/net/dev"], 20)
        row = next(line.split() for line in got.out.replace(":", ": ").splitlines()
                   if line.split()[:1] == ["lab0:"])
        found[name] = int(row[1]), int(row[2])
    return found


def overrun(lab: Lab, host: str = IPV4) -> int:
    """Datagrams that the server's end had no room for, as nobody read in time."""
    if ":" in host:
        found = lib.run([*lab.server, "cat", "/proc/net/snmp6"], 20).out.split()
        return int(found[found.index("Udp6RcvbufErrors") + 1])
    found = lib.run([*lab.server, "cat", "/proc/net/snmp"], 20).out.splitlines()
    heads, row = (line.split() for line in found if line.startswith("Udp:"))
    return int(row[heads.index("RcvbufErrors")])


def machine_is_busy(idle: float, since: float) -> bool:
    """Too much so to keep the link full: on a quiet machine it takes a tenth of one CPU."""
    return idle < 0.4 or lib.late_since(since) > 0.05


def figures(report: lib.Report, lab: Lab) -> None:
    def link_rate(one: Figure, before: "dict[str, tuple[int, int]]", overran: int,
                  seconds: float) -> float:
        """Payload that the link did carry and a socket had room for, in Mbit/s: what any result
        must say, however busy the machine was."""
        end = "client" if one.test == "TCP_MAERTS" else "server"
        size, packets = (b - a for a, b in zip(before[end], carried(lab)[end]))
        size -= packets * (one.headers + ETHERNET) + overran * one.payload
        return size * 8e-6 / seconds

    def check(one: Figure) -> str:
        """A machine busy with other things reads low now and then; a wrong program, each time.
        Where it is busy all the time, the link itself tells what was possible."""
        details = []
        by_link = 0
        for _ in range(ATTEMPTS):
            before, lost = carried(lab), overrun(lab, one.host)
            ticks, since = interop.cpu_ticks(), time.monotonic()
            got = client(lab, daemon.port, one.test, 3, 15, one.host, one.more)
            busy = machine_is_busy(1 - interop.busy_share(ticks, interop.cpu_ticks()) / 100, since)
            found, expected = rows(got), one.expected()
            rate = found[-1][-1]
            seconds = found[0][2] if one.test == "UDP_STREAM" else found[0][3]
            link = link_rate(one, before, overrun(lab, one.host) - lost, seconds)
            details.append(f"{rate:.2f} Mbit/s, {100 * (rate / expected - 1):+.2f} % "
                           f"of {expected:.2f}, the link's {link:.2f}")
            if abs(rate / expected - 1) <= 0.01:
                return ", then ".join(details)
            by_link += busy and abs(rate / link - 1) <= 0.02
            if by_link == 2:
                return f"{', then '.join(details)}: what this busy machine got through the link"
        raise AssertionError(", then ".join(details))

    with lib.Daemon(lab.server) as daemon:
        for one in FIGURES:
            family = "IPv6" if ":" in one.host else "IPv4"
            report.case(f"rate {one.test} {family}", lambda one=one: check(one))


# --- a peer that is gone ------------------------------------------------------------------

def break_off(report: lib.Report, lab: Lab, daemon: lib.Daemon, what: str,
              harm: Callable[[], None]) -> None:
    """Starts all tests for a minute, does harm a second after the last has its session, and
    expects each client to end with an error in time, and no session to stay."""
    def one(test: str) -> "tuple[lib.Result, float]":
        got = client(lab, daemon.port, test, 60, BEGIN + 1 + GIVE_UP + 5)
        return got, time.monotonic()

    with ThreadPoolExecutor(len(TESTS)) as pool:
        running = {test: pool.submit(one, test) for test in TESTS}
        started = lib.wait_for(lambda: len(daemon.children()) >= len(TESTS), BEGIN)
        time.sleep(1)  # the tests are to be under way
        harm()
        since = time.monotonic()
        ended = {test: future.result() for test, future in running.items()}
    report.check(f"{what}: all {len(TESTS)} sessions began", started, daemon.log())
    for test, (got, end) in ended.items():
        report.case(f"{what}: {test}",
                    lambda test=test, got=got, end=end: gave_up(test, got, end - since))
    lib.wait_for(lambda: not daemon.children(), since + CLEAN - time.monotonic())
    left = daemon.children()
    report.check(f"{what}: no session left", not left,
                 f"{time.monotonic() - since:.1f} s after" + (f": {left}" if left else ""))


def gave_up(test: str, got: lib.Result, seconds: float) -> str:
    """Whether a client ended as it should when its peer is gone."""
    said = lib.complaints(got)
    assert got.rc is not None, f"still running {seconds:.1f} s after"
    assert seconds > 0, f"ended {-seconds:.1f} s too early, status {got.rc}: {got.err.strip()}"
    assert got.rc != 0, f"exit status 0 after {seconds:.1f} s: {got.out.strip()!r}"
    assert seconds <= GIVE_UP, f"ended only after {seconds:.1f} s: {said}"
    assert len(said) == 1, f"not one line on stderr: {said}"
    assert any(name in said[0] for name in (test, IPV4, "control connection")), (
        f"does not name what failed: {said[0]}")
    return f"{seconds:.1f} s, status {got.rc}: {said[0]}"


def silence(report: lib.Report, lab: Lab) -> None:
    def harm() -> None:
        for end in (lab.server, lab.client):
            lab.drop(end, "")

    with lib.Daemon(lab.server) as daemon:
        break_off(report, lab, daemon, "silent link", harm)
    lab.heal()
    report.case("silent link before the response", lambda: silent_in_line(lab, harm))


NO_ANSWER = ("import socket, sys, time\n"
             "s = socket.create_server(('', int(sys.argv[1])))\n"
             "print('listens', flush=True)\n"
             "time.sleep(60)\n")


def silent_in_line(lab: Lab, harm: Callable[[], None]) -> str:
    """A client may wait two minutes for its turn, but only of a machine that is there."""
    port = str(lib.free_port())
    with tempfile.TemporaryFile("w+") as out, \
            lib.Started([*lab.server, sys.executable, "-c", NO_ANSWER, port], stdout=out):
        assert lib.wait_for(lambda: os.fstat(out.fileno()).st_size > 0, 10), "no listener"
        with lib.Started([*lab.client, lib.netperf(), "-H", IPV4, "-p", port, "-t", "TCP_RR",
                          "-l", "1", "-P", "0"]) as waiting:
            time.sleep(1)
            harm()
            since = time.monotonic()
            got = waiting.finish(GIVE_UP + 5)
            return gave_up("TCP_RR", got, time.monotonic() - since)


def death(report: lib.Report, lab: Lab) -> None:
    def harm() -> None:
        for pid in daemon.children():
            os.kill(pid, signal.SIGKILL)

    with lib.Daemon(lab.server) as daemon:
        break_off(report, lab, daemon, "killed session", harm)
        report.case("killed session: the daemon goes on",
                    lambda: f"{rows(client(lab, daemon.port, 'TCP_RR', 1, 10))[0][5]:.0f}/s")


# --- loss ---------------------------------------------------------------------------------

def in_time(got: lib.Result) -> None:
    """For a run that has just ended."""
    late = LATE + 4 * lib.late_since(time.monotonic() - got.seconds)
    assert TIMED <= got.seconds <= TIMED + late, f"{got.seconds:.1f} s instead of {TIMED}"


def lossy_rr(lab: Lab, daemon: lib.Daemon) -> str:
    """The data connection of a UDP test is its only UDP: the control connection is TCP."""
    lab.drop(lab.server, "meta l4proto udp numgen inc mod 100 == 99")
    got = client(lab, daemon.port, "UDP_RR", TIMED, TIMED + 10)
    rate = rows(got)[0][5]
    in_time(got)
    assert rate > 0, "no transaction"
    return f"{rate:.0f}/s, {got.seconds:.1f} s"


def lossy_stream(lab: Lab, daemon: lib.Daemon) -> str:
    """The empty datagrams (8 bytes with UDP's header) that tell the end get lost one and all."""
    lab.drop(lab.server, "udp length 8", "meta l4proto udp numgen inc mod 20 == 19")
    before = overrun(lab)
    got = client(lab, daemon.port, "UDP_STREAM", TIMED, TIMED + 10, more=("-m", "1472"))
    too_many = overrun(lab) - before
    (*_, sent, _errors, sent_rate), (*_, received, received_rate) = rows(got)
    in_time(got)
    detail = (f"{sent:.0f} sent, {received:.0f} received, {too_many} overrun, "
              f"rates {sent_rate:.2f} and {received_rate:.2f}, {got.seconds:.1f} s")
    assert received <= sent, detail
    wanted = 0.95 - too_many / sent
    assert lib.QUICK or abs(received_rate / sent_rate - wanted) <= 0.01, detail
    return detail


def loss(report: lib.Report, lab: Lab) -> None:
    with lib.Daemon(lab.server) as daemon:
        for name, body in (("UDP_RR, each 100th lost", lossy_rr),
                           ("UDP_STREAM, 5 % and the end lost", lossy_stream)):
            report.case(name, lambda body=body: body(lab, daemon))
            lab.heal()


# --- all ----------------------------------------------------------------------------------

PARTS = {"figures": figures, "loss": loss, "silence": silence, "death": death}


def suite(report: lib.Report) -> None:
    wanted = sys.argv[1:] or list(PARTS)
    unknown = [part for part in wanted if part not in PARTS]
    assert not unknown, f"no part {unknown[0]}: there are {' '.join(PARTS)}"
    obstacle = lib.no_lab()
    if obstacle:
        lib.skip(obstacle)
    lib.netperf(), lib.netserver()  # or skip
    lib.watch_wakes()
    for part in wanted:
        if lib.QUICK and part == "figures":
            report.skip(part, "NP_TEST_QUICK")
            continue
        with Lab() as lab:
            # the daemon's own end is a check too: it must not have died, nor leave a session
            report.case(f"{part}: daemon ended well", lambda: PARTS[part](report, lab))


if __name__ == "__main__":
    lib.main(suite)
