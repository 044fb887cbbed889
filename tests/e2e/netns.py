#!/usr/bin/env python3
"""Client and daemon on a link of known properties: their figures, compared with what the link carried, and what they
do when it loses datagrams or goes silent. Needs root, for scripts/netlab.

    netns.py [PART...]  these parts, or those of `make check`"""

import json
import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Callable, NamedTuple, Sequence

import lib

NAME = f"ns{os.getpid()}"
IPV4, IPV6 = "10.77.0.2", "fd77::2"
RATE, MTU, FRAMING = 100.0, 1500, 38    # Mbit/s, and bytes that Ethernet adds to a packet
ETHERNET = 14                           # those of them that the kernel counts
TIMED = 1 if lib.QUICK else 3           # seconds of a timed test
LATE = 2.0                              # what it may take longer, including set-up and end
ATTEMPTS = 3                            # at a rate
BEGIN = 60.0                            # seconds within which all tests must be running
SILENCE = 10                            # seconds of silence that are waited for
GIVE_UP = 15.0                          # seconds in which a client notices that its peer is gone
TESTS = ("TCP_STREAM", "TCP_MAERTS", "TCP_RR", "TCP_CRR", "UDP_STREAM", "UDP_RR")


# Whatever the machine's default is: BBR's probing costs a short test up to 1.6 %. No session may choose it by -K
# where the machine does not allow it to everybody.
CUBIC = ("--congestion", "cubic")


class Lab(lib.Lab):
    """That link."""

    def __init__(self, name: str = NAME) -> None:
        super().__init__(name, "--rate", f"{RATE:g}mbit", "--mtu", str(MTU), *CUBIC)

    def heal(self) -> None:
        for end in (self.client, self.server):
            lib.must([*end, "nft", "add table inet lab; delete table inet lab"])


def client(lab: Lab, port: int, test: str, seconds: int, timeout: float,
           host: str = IPV4, more: Sequence[str] = (), flows: int = 1, before: Sequence[str] = ()) -> lib.Result:
    """Run a test of that many seconds over the link; kill it after the timeout."""
    return lib.run(lab.command(port, "-t", test, "-l", str(seconds), "--flows", str(flows), "-P", "0",
                               "--silence", str(SILENCE), *before, "--", *more, host=host), timeout)


def rows(got: lib.Result) -> "list[list[float]]":
    """The figures of a classic table."""
    assert got.rc == 0, f"status {got.rc} after {got.seconds:.1f} s: {got.err.strip()}"
    found = [[float(word) for word in line.split()] for line in got.out.splitlines() if line]
    assert found, "no result row"
    return found


# --- figures ------------------------------------------------------------------------------

class Figure(NamedTuple):
    """A test whose last rate can be computed: payload and headers of a full packet."""
    test: str
    host: str
    payload: int
    headers: int
    more: "tuple[str, ...]" = ()
    flows: int = 1

    def expected(self) -> float:
        return RATE * self.payload / (self.payload + self.headers + FRAMING)


FIGURES = (
    Figure("TCP_STREAM", IPV4, 1448, 52),   # 20 of IP, 20 of TCP, 12 of its time-stamps
    Figure("TCP_MAERTS", IPV4, 1448, 52),
    Figure("UDP_STREAM", IPV4, 1472, 28, ("-m", "1472")),
    Figure("TCP_STREAM", IPV6, 1428, 72),
    Figure("TCP_MAERTS", IPV6, 1428, 72),
    Figure("UDP_STREAM", IPV6, 1452, 48, ("-m", "1452")),
    Figure("TCP_STREAM", IPV4, 1448, 52, flows=4),
    Figure("TCP_MAERTS", IPV4, 1448, 52, flows=4),
)


def carried(lab: Lab) -> "dict[str, tuple[int, int]]":
    """Bytes and packets that left the link at either end."""
    found = {}
    for name, end in (("client", lab.client), ("server", lab.server)):
        got = lib.run([*end, "cat", "/proc/net/dev"], 20)
        row = next(line.split() for line in got.out.replace(":", ": ").splitlines()
                   if line.split()[:1] == ["lab0:"])
        found[name] = int(row[1]), int(row[2])
    return found


def overrun(lab: Lab, host: str = IPV4) -> int:
    """Datagrams dropped at the server as its socket buffer was full."""
    return lib.snmp(lab.server, "Udp6RcvbufErrors" if ":" in host else "UdpRcvbufErrors")


class Rates(NamedTuple):
    """Of a run, in Mbit/s: the printed rate; what the link carried in that time and a socket had room for; and the
    computed rate of a full link."""
    printed: float
    link: float
    full: float

    def __str__(self) -> str:
        return (f"{self.printed:.2f} Mbit/s, the link's {self.link:.2f}, {self.full:.2f} when it is "
                "full")


def measure(lab: Lab, port: int, one: Figure) -> Rates:
    end = "client" if one.test == "TCP_MAERTS" else "server"
    before, lost = carried(lab), overrun(lab, one.host)
    found = rows(client(lab, port, one.test, 3, 15, one.host, one.more, one.flows))
    lost = overrun(lab, one.host) - lost
    size, packets = (b - a for a, b in zip(before[end], carried(lab)[end]))
    size -= packets * (one.headers + ETHERNET) + lost * one.payload
    seconds = found[0][2] if one.test == "UDP_STREAM" else found[0][3]
    return Rates(found[-1][-1], size * 8e-6 / seconds, one.expected())


def keeps_the_link_full(lab: Lab, port: int, one: Figure) -> str:
    """This needs a tenth of a processor, immediately whenever a packet is due: on a busy machine the link is
    sometimes idle."""
    seen = []
    for _ in range(ATTEMPTS):
        rates = measure(lab, port, one)
        seen.append(f"{rates}")
        if abs(rates.printed / rates.full - 1) <= 0.01:
            return seen[-1]
    raise AssertionError(f"{', then '.join(seen)}; has this machine nothing else to do?")


def full_link(report: lib.Report, lab: Lab) -> None:
    """The laws (tests/laws) check that figures are the link's, however busy the machine is."""
    with lib.Daemon(lab.server) as daemon:
        for one in FIGURES:
            family = "IPv6" if ":" in one.host else "IPv4"
            flows = f", {one.flows} flows" if one.flows > 1 else ""
            report.rate_case(f"rate {one.test} {family}{flows}", partial(keeps_the_link_full, lab, daemon.port, one))


# --- a peer that is gone ------------------------------------------------------------------

def gave_up(test: str, got: lib.Result, seconds: float) -> str:
    """Whether a client whose peer is gone ended as it should."""
    said = lib.complaints(got)
    assert got.rc is not None, f"still running {seconds:.1f} s after"
    assert seconds > 0, f"ended {-seconds:.1f} s too early, status {got.rc}: {got.err.strip()}"
    assert got.rc != 0, f"exit status 0 after {seconds:.1f} s: {got.out.strip()!r}"
    assert seconds <= GIVE_UP + lib.SLACK, f"ended only after {seconds:.1f} s: {said}"
    assert len(said) == 1, f"not one line on stderr: {said}"
    assert any(name in said[0] for name in (test, IPV4, "control connection")), (
        f"does not name what failed: {said[0]}")
    return f"{seconds:.1f} s, status {got.rc}: {said[0]}"


def go_silent(lab: Lab) -> None:
    for end in (lab.server, lab.client):
        lab.drop(end, "")


def waiting(report: lib.Report, lab: Lab) -> None:
    report.case("silent link before the response", lambda: silent_in_line(lab))


NO_ANSWER = ("import socket, sys, time\n"
             "s = socket.create_server(('', int(sys.argv[1])))\n"
             "print('listens', flush=True)\n"
             "c, _ = s.accept()\n"
             "c.recv(656, socket.MSG_WAITALL)\n"
             "print('was asked', flush=True)\n"
             "time.sleep(600)\n")


def silent_in_line(lab: Lab) -> str:
    """A client may wait two minutes for its turn, but only if the host is there."""
    port = str(lib.free_port())
    with tempfile.TemporaryFile("w+") as out, \
            lib.Started([*lab.server, sys.executable, "-c", NO_ANSWER, port], stdout=out):
        def said(words: str) -> bool:
            return words in os.pread(out.fileno(), 100, 0).decode()

        assert lib.wait_for(lambda: said("listens"), 60), "no listener"
        with lib.Started([*lab.client, lib.netperf(), "-H", IPV4, "-p", port, "-t", "TCP_RR",
                          "-l", "1", "-P", "0", "--silence", str(SILENCE)]) as waiting:
            assert lib.wait_for(lambda: said("was asked"), 60), "no client"
            go_silent(lab)
            since = time.monotonic()
            got = waiting.finish(GIVE_UP + 60)
            return gave_up("TCP_RR", got, time.monotonic() - since)


# --- a path that comes back -----------------------------------------------------------------

def outage(report: lib.Report, lab: Lab) -> None:
    """All tests continue in the outage and end in it, as it is longer than their time and than what was once waited
    for. The laws (tests/laws) have outages that end before."""
    tests = (*TESTS, "TCP_RR -l -20000")
    with lib.Daemon(lab.server) as daemon, ThreadPoolExecutor(len(tests)) as pool:
        def one(words: str) -> lib.Result:
            test, *options = words.split()
            return client(lab, daemon.port, test, 4, 120, before=("--silence", "60", *options))

        running = {test: pool.submit(one, test) for test in tests}
        report.check("silence: all began", lib.wait_for(lambda: len(daemon.children()) >= len(tests) - 1, BEGIN), daemon.log())
        time.sleep(1.5)
        go_silent(lab)
        time.sleep(8)
        lab.heal()
        for test, future in running.items():
            got = future.result()
            report.check(f"silence: {test}", got.rc == 0, str(got))


# --- loss ---------------------------------------------------------------------------------

def in_time(got: lib.Result) -> None:
    """For a run that has just ended."""
    assert TIMED <= got.seconds <= TIMED + LATE + lib.SLACK, f"{got.seconds:.1f} s instead of {TIMED}"


def lossy_stream(lab: Lab, daemon: lib.Daemon) -> str:
    """All of the empty datagrams (8 bytes with UDP's header) that mark the end are lost."""
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


def only_what_was_sent_again_in_the_window(lab: Lab, port: int, flows: int) -> str:
    """Most of what the kernel counted before its first sample belongs to the warm-up, which took twice as long as the
    window."""
    out = lib.must(lab.command(port, "--flows", str(flows), "--warm-up", "2", "-l", "1", "-P", "0", "--json"), 40)
    run = lib.document(out)["iterations"][0]
    counted = lib.document(out)["final"]["LOCAL_TRANSPORT_RETRANS"]
    told, samples = run["near"]["tcp.retransmitted_segments"], run["near"]["tcp.samples.retransmitted_segments"]
    seen = f"{counted} and {told}, {samples[0]} to {samples[-1]}"
    assert flows == 1 or counted == sum(row["retransmissions"] for row in run["flows"]), run["flows"]
    assert 0 < max(counted, told) < 2 * min(counted, told), seen      # read one after the other
    assert samples[0] > 0 and max(counted, told) <= samples[-1] - samples[0] / 2, seen
    return seen


def counters_of_the_window(lab: Lab, port: int) -> str:
    """What the machine counted in a warm-up that took three times as long as the window is not used to explain the
    window."""
    got = lib.run(lab.command(port, "-t", "UDP_STREAM", "--rate", "8M", "--warm-up", "3", "-l", "1", "--json", "--",
                              "-m", "1000"), 40)
    run = lib.document(got.out)["iterations"][0]
    told = [(run["near"]["moved.snmp.Udp.OutDatagrams"], run["near"]["flow.sends"]),
            (run["far"]["moved.snmp.Udp.InDatagrams"], run["far"]["flow.receives"])]
    assert all(moved < 2 * mine for moved, mine in told), told
    return f"{told}"


def connections_begun_again(lab: Lab, port: int) -> str:
    """Every fourth SYN is lost: TCP_INFO of each connection tells, not only that of the first one of a flow."""
    lab.drop(lab.server, f"tcp dport != {port} tcp flags & (syn | ack) == syn numgen inc mod 4 == 3")
    got = lib.run(lab.command(port, "-t", "TCP_CC", "--engine", "epoll", "--flows", "2", "-l", "-20", "--json"), 40)
    lab.heal()
    counted = lib.document(got.out)["final"]["LOCAL_TRANSPORT_RETRANS"]
    assert counted >= 4, counted
    return f"{counted}"


def a_late_flow_has_the_whole_window(lab: Lab, port: int) -> str:
    """The SYN of one of eight flows is lost, and sent again a second later: the window waits for that flow."""
    lab.drop(lab.server, f"tcp dport != {port} tcp flags & (syn | ack) == syn numgen inc mod 8 == 4")
    got = lib.run(lab.command(port, "-t", "TCP_RR", "--flows", "8", "-l", "1", "--json"), 40)
    lab.heal()
    run = lib.document(got.out)
    counts = [flow["transactions"] for flow in run["iterations"][0]["flows"]]
    assert got.seconds > 1.9 and run["final"]["ELAPSED_TIME"] < 1 + lib.SLACK, f"{got.seconds:.1f} s: the test is blind"
    assert min(counts) > max(counts) / 2, counts
    return f"{counts} in {got.seconds:.1f} s"


def loss(report: lib.Report, lab: Lab) -> None:
    with lib.Daemon(lab.server) as daemon:
        report.each((a_late_flow_has_the_whole_window,), lab, daemon.port)
        report.each((counters_of_the_window, connections_begun_again), lab, daemon.port)
        lab.drop(lab.server, "meta l4proto tcp meta length > 1000 numgen inc mod 20 == 19")
        for flows in (1, 2):
            report.case(f"sent again in the window, {flows} flows",
                        partial(only_what_was_sent_again_in_the_window, lab, daemon.port, flows))
        lab.heal()
        report.case("UDP_STREAM, 5 % and the end lost", partial(lossy_stream, lab, daemon))
        lab.heal()


# --- a long way ---------------------------------------------------------------------------

DELAY = 0.15                            # seconds each way


def all_received_were_sent(lab: lib.Lab, port: int, args: str) -> str:
    """What the far end sent in the window arrives in a window of the same length, and nothing else: 125 datagrams a
    second. The laws (tests/laws) have the tests in which this end sends."""
    out = lib.must(lab.command(port, "-t", "omni", "--rate", "1m", "-l", "2", *args.split(), "-P", "0", "--",
                               "-T", "udp", "-d", "recv", "-m", ",1000", "-M", "1000",
                               "-k", "THROUGHPUT,ELAPSED_TIME,LOCAL_RECV_CALLS,REMOTE_SEND_CALLS,LOST_DATAGRAMS"), 40)
    value = {name: float(text) for name, text in (line.split("=") for line in out.splitlines())}
    sent = value["REMOTE_SEND_CALLS"]
    assert sent == value["LOCAL_RECV_CALLS"] and value["LOST_DATAGRAMS"] <= 0, f"{value}"
    assert 2 <= value["ELAPSED_TIME"] * 1.001 and value["ELAPSED_TIME"] < 2 + DELAY, f"{value}"
    assert abs(value["THROUGHPUT"] * value["ELAPSED_TIME"] - sent * 8e-3) < 0.02, f"{value}"
    return f"{sent:.0f} in {value['ELAPSED_TIME']:.2f} s"


def delay(report: lib.Report, _: Lab) -> None:
    options = ("--rate", "none", "--delay", f"{DELAY}s", "--emulator", "link")
    with lib.Lab(f"{NAME}d", *options) as lab, lib.Daemon(lab.server) as daemon:
        for args in ("--warm-up 0.1", "--warm-up 0.5 --flows 2", "--engine batch --warm-up 0.3", ""):
            report.case(f"all received were sent: {args}", partial(all_received_were_sent, lab, daemon.port, args))


# --- what is known of the way ------------------------------------------------------------------

OTHERS = """
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    s.sendto(b"x" * 1400, ("%s", 9))
    time.sleep(0.001)
""" % IPV4


def both_ends(lab: Lab, port: int, test: str) -> "list[dict[str, Any]]":
    """Evidence of both ends from a test of one second."""
    out = lib.must(lab.command(port, "-l", "1", "-P", "0", "--json", "-t", *test.split()), 30)
    run = lib.document(out)["iterations"][0]
    return [run["near"], run["far"]]


def knows_the_queue(lab: Lab, port: int) -> str:
    """The token bucket that makes the link, and a route's window, each at the end that has them."""
    lib.must([*lab.client, "ip", "route", "replace", IPV4, "dev", "lab0", "window", "20000"])
    near, far = both_ends(lab, port, "TCP_STREAM")
    lib.must([*lab.client, "ip", "route", "delete", IPV4])
    moved = [value for name, value in near.items() if name.startswith("moved.tc.tbf_") and name.endswith(".bytes")]
    assert [end["tc.out.kind"] for end in (near, far)] == ["tbf", "tbf"], f"{near}"
    assert [end["tc.out.rate_bps"] for end in (near, far)] == [RATE * 1e6] * 2, f"{near['tc.out.rate_bps']}"
    assert len(moved) == 1 and moved[0] > near["flow.bytes_sent"], f"{moved} {near['flow.bytes_sent']}"
    assert near["host.route.window"] == 20000 and "host.route.window" not in far
    return f"{moved[0]} bytes"


def knows_others(lab: Lab, port: int, test: str) -> str:
    """Datagrams of another program are not counted at either end."""
    for end, told in zip(both_ends(lab, port, test), ("out", "in")):
        assert [end[f"foreign.{way}_bytes"] for way in ("out", "in")] == [0, 0], f"{told}: alone"
    before = carried(lab)["server"][0]
    with lib.Started([*lab.client, sys.executable, "-c", OTHERS]):
        near, far = both_ends(lab, port, test)
    most = carried(lab)["server"][0] - before
    detail = f"{near['foreign.out_bytes']} and {far['foreign.in_bytes']} of at most {most} bytes"
    assert 20000 < near["foreign.out_bytes"] <= most and 20000 < far["foreign.in_bytes"] <= most, detail
    assert near["foreign.in_bytes"] == 0 and far["foreign.out_bytes"] == 0, detail
    return detail


def link_local(lab: Lab, port: int, test: str) -> None:
    """The zone of a link-local address is not sent to the far end, where it would be another."""
    (device, _), (_, far) = (
        next((link["ifname"], at["local"]) for link in json.loads(lib.run([*end, "ip", "-j", "-6", "addr"], 20).out)
             for at in link["addr_info"] if at["scope"] == "link") for end in (lab.client, lab.server))
    where = f"{far}%{device}"
    for data in (where, far):
        assert rows(client(lab, port, test, -10, 20, where, ["-H", data])), data


def has_its_buffers_back(lab: Lab, port: int) -> None:
    """What is in flight at the end of one test takes none of the memory of the next one."""
    got = client(lab, port, "TCP_MAERTS", 1, 20, IPV4, ["-m", ",1000000", "-s", "400K", "-S", "400K"],
                 before=["-i", "3,3", "-I", "99,1", "--engine", ",zerocopy"])
    if "--engine ,zerocopy" in got.err:
        raise lib.Skipped(got.err.strip())
    assert got.rc == 0, got


def around(report: lib.Report, lab: Lab) -> None:
    with lib.Daemon(lab.server) as daemon:
        report.each((has_its_buffers_back, knows_the_queue), lab, daemon.port)
        for test in ("TCP_RR", "TCP_STREAM --warm-up 0.5 --rate 5M"):
            report.case(f"others' traffic: {test}", partial(knows_others, lab, daemon.port, test))
        for test in ("TCP_RR", "UDP_RR"):
            report.case(f"link-local data: {test}", partial(link_local, lab, daemon.port, test))


# --- all ----------------------------------------------------------------------------------

# The last one, in `make check-links`, needs a machine that keeps the link full.
PARTS: "dict[str, Callable[[lib.Report, Lab], None]]" = {
    "loss": loss, "waiting": waiting, "around": around, "outage": outage, "delay": delay, "full-link": full_link}


def suite(report: lib.Report) -> None:
    wanted = sys.argv[1:] or list(PARTS)[:-1]
    unknown = [part for part in wanted if part not in PARTS]
    assert not unknown, f"no part {unknown[0]}: there are {' '.join(PARTS)}"
    lib.skip_if(lib.no_lab())
    lib.netperf(), lib.netserver()  # or skip
    for part in wanted:
        if lib.QUICK and part in ("full-link", "outage"):
            report.skip(part, "NP_TEST_QUICK")
            continue
        with Lab() as lab:
            # the daemon must not have died, nor leave a session
            report.case(f"{part}: daemon ended well", lambda: PARTS[part](report, lab))


if __name__ == "__main__":
    lib.main(suite)
