#!/usr/bin/env python3
"""What goes wrong first for a user, on a link between two network namespaces: a firewall at either end that only lets
the control connection through; a name with several addresses of which one works. The result is a line that says what
to try, or a test with the address that answers. Needs root, for scripts/netlab."""

import os
import signal
import tempfile
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import List, NamedTuple, Sequence, Tuple

import lib

NAME = f"ff{os.getpid()}"
IPV4, IPV6, DEAD, FAR = "10.77.0.2", "fd77::2", "10.77.0.3", "10.99.0.1"
CLIENT, SERVER = lib.in_lab(NAME, "client"), lib.in_lab(NAME, "server")
command = partial(lib.command, host=IPV4, prefix=CLIENT)
HINT = "a firewall? see netserver --data-ports"
MEET = 10.0          # seconds that the client waits for its data connection


# ---- a firewall -------------------------------------------------------------------------------------

class Blocked(NamedTuple):
    """A test, the firewall rule in its way, and what its error line contains besides the hint."""
    test: str
    end: Sequence[str]
    hook: str
    what: str
    becomes: str
    says: Tuple[str, ...]
    limit: float = 5.0


TCP, UDP = "tcp dport != {port}", "meta l4proto udp"
LOSES_REQUESTS = f"{TCP} tcp flags & psh == psh"
REFUSED = ("connect the data socket", f"{IPV4} port", "Connection refused")
NO_ROUTE = ("connect the data socket", f"{IPV4} port", "No route to host")
BLOCKED = (
    Blocked("TCP_STREAM", SERVER, "input", TCP, "reject with tcp reset", REFUSED),
    Blocked("TCP_MAERTS", SERVER, "input", TCP, "reject with icmpx type admin-prohibited", NO_ROUTE),
    Blocked("TCP_RR", SERVER, "input", TCP, "drop", ("no data connection", f"{IPV4} port", "within 10 s"), MEET + 5),
    Blocked("TCP_CRR", SERVER, "input", TCP, "reject with tcp reset", (f"{IPV4} port", "Connection refused")),
    Blocked("TCP_STREAM --flows 3", SERVER, "input", TCP, "reject with tcp reset", REFUSED),
    Blocked("TCP_STREAM --flows 3 --ramp 10", SERVER, "input", TCP, "reject with tcp reset", ("none of 3", "REFUSED 3")),
    Blocked("TCP_MAERTS", CLIENT, "output", TCP, "reject with icmpx type host-unreachable", NO_ROUTE),
    Blocked("UDP_RR", SERVER, "input", UDP, "drop", ("not one transaction",), 15.0),
    Blocked("UDP_RR --warm-up 1", SERVER, "input", UDP, "drop", ("not one transaction",), 15.0),
)


def is_blocked(port: int, case: Blocked) -> str:
    with lib.Filter(case.end, case.hook, f"{case.what.format(port=port)} {case.becomes}"):
        got = lib.run(command(port, "-l", "0.5", "-P", "0", "-t", *case.test.split()), 60)
    assert got.rc == 1, f"status {got.rc}: {got.err}"
    assert got.seconds < case.limit + lib.SLACK, f"took {got.seconds:.1f} s"
    return lib.error_line(got, "netperf", HINT, *case.says)


def interrupted(port: int, ramp: str, says: str) -> str:
    """The user interrupts before the data connections are made: the firewall hint would be a guess."""
    with lib.Filter(SERVER, "input", f"{TCP.format(port=port)} drop"):
        with lib.Started(command(port, "-l", "30", "-P", "0", "-t", "TCP_STREAM", "--flows", "3",
                                 *ramp.split())) as client:
            assert lib.wait_for(lambda: lib.run([*CLIENT, "ss", "-tnH", "state", "syn-sent"], 20).out != "", 60)
            client.signal(signal.SIGINT)
            got = client.finish(60)
    assert got.rc == 1, f"status {got.rc}: {got.err}"
    line = lib.error_line(got, "netperf", says)
    assert HINT not in line, line
    return line


def nothing_arrives(port: int, rule: str, size: int, fragments: int) -> str:
    """That is a result, with a line about the data port, or about fragments if there are any."""
    with lib.Filter(SERVER, "prerouting", f"{rule} drop"):
        got = lib.run(command(port, "-l", "0.2", "-P", "0", "-t", "UDP_STREAM", "--", "-m", str(size)), 60)
    assert got.rc == 0, f"status {got.rc}: {got.err}"
    assert float(got.out.splitlines()[1].split()[2]) == 0, got.out
    line = lib.error_line(got, "netperf", "nothing of what was sent has arrived", HINT)
    said = f"datagrams of {size} bytes in {fragments} fragments each, up to 1472 in one: try a smaller -m"
    assert (said in line) == (fragments > 1) and f"port {port} " not in line, line
    return line


def nothing_comes(port: int) -> str:
    """The same for data from the daemon, of which only the end mark arrives."""
    with lib.Filter(CLIENT, "prerouting", f"{UDP} udp length > 100 drop"):
        got = lib.run(command(port, "-l", "0.2", "-P", "0", "-t", "omni", "--", "-T", "udp", "-d", "recv",
                              "-m", ",1000"), 60)
    assert got.rc == 0, f"status {got.rc}: {got.err}"
    return lib.error_line(got, "netperf", "nothing of what was sent has arrived from", HINT)


def nothing_passes(port: int) -> None:
    """Four sessions: a line for each way, whichever session has it to tell."""
    with lib.Filter(CLIENT, "prerouting", f"{UDP} udp length > 100 drop"), lib.Filter(SERVER, "prerouting", f"{UDP} udp length > 100 drop"):
        got = lib.run(command(port, "-l", "0.2", "-P", "0", "-t", "UDP_STREAM", "--both", "--flows", "2", "--",
                              "-m", "1000"), 60)
    said = sorted(line.split(IPV4)[0] for line in lib.without_phrases(got.err, lib.STDERR_PHRASES))
    assert said == [f"netperf: UDP_STREAM: nothing of what was sent has arrived {way} " for way in ("at", "from")], got


def a_late_handshake_is_no_long_path(port: int) -> str:
    """The SYN-ACK is lost: the first RTT sample is a second."""
    try:
        with lib.Filter(CLIENT, "prerouting", "tcp flags & (syn | ack) == (syn | ack) quota until 100 bytes drop"):
            return nothing_arrives(port, UDP, 1472, 1)
    finally:    # or later connections start with that RTT
        lib.must([*CLIENT, "ip", "tcp_metrics", "flush", "all"])


def small_segments_alone_pass(port: int, test: str, *says: str) -> str:
    """A path MTU black hole: the control connection passes, with the evidence, and one line says what does not."""
    large = "meta length > 1000 drop"
    with lib.Filter(SERVER, "prerouting", large), lib.Filter(CLIENT, "prerouting", large):
        got = lib.run(command(port, "-l", "1", "-P", "0", "--explain", "-t", *test.split()), 60)
    assert got.seconds < 9 + lib.SLACK and "evidence of this end only" not in got.err, got
    said = [line for line in got.err.splitlines() if line.startswith("netperf: ")]
    assert len(said) == 1 and "small segments pass, those of 1448 bytes do not" in said[0], got.err
    assert all(word in got.err + got.out for word in says), got
    return said[0]


def some_requests_are_lost(port: int, which: str, sizes: str) -> str:
    """When small requests are lost, or only some segments of large ones, the path MTU is not blamed."""
    with lib.Filter(SERVER, "prerouting", f"{TCP.format(port=port)} {which} drop"):
        got = lib.run(command(port, "-l", "1", "-P", "0", "-t", "TCP_RR", "--", "-r", sizes), 60)
    line = lib.error_line(got, "netperf", "not one transaction")
    assert got.rc == 1 and "MTU" not in line and ("firewall" in line) == (sizes == "1,1"), got
    return line


def started(port: int, test: str) -> lib.Started:
    return lib.Started(command(port, "-l", "60", "-P", "0", "-t", *test.split()))


def interrupted_without_an_answer(port: int, test: str, what: str) -> str:
    """A rate of 0 would not be a result, so nothing is waited for. The daemon is not told of the end."""
    data = [*CLIENT, "ss", "-tnH", "state", "established", "dport", "!=", f":{port}"]
    with lib.Filter(SERVER, "prerouting", f"{what} drop"), started(port, test) as client:
        waits = client.under_way if what == UDP else lambda: lib.run(data, 20).out.split()[1:2] > ["0"]
        assert lib.wait_for(waits, 60), "no request waits for its acknowledgement"
        begun = time.monotonic()
        client.signal(signal.SIGINT)
        got = client.finish(60)
    assert got.rc == 1 and got.out == "", got
    assert time.monotonic() - begun < lib.SLACK, f"ended after {time.monotonic() - begun:.1f} s"
    return lib.error_line(got, "netperf", "interrupted before a transaction was completed")


INTERRUPTED = {     # tests and their exit status: only a sender of datagrams needs the far end for its result
    "TCP_RR": 0, "UDP_RR": 0, "TCP_RR --rate 50": 0, "TCP_STREAM --rate 5M": 0, "TCP_STREAM --rate 5M --both": 0, "UDP_STREAM --rate 5M": 1}


def interrupted_in_silence(port: int) -> str:
    """The path is silent: a signal limits the wait for data in flight and for results."""
    with ExitStack() as stack:
        clients = {test: stack.enter_context(started(port, test)) for test in INTERRUPTED}
        assert all(client.measuring() for client in clients.values())
        stack.enter_context(lib.Filter(SERVER, "prerouting", "drop"))
        time.sleep(0.5)
        begun = time.monotonic()
        for client in clients.values():
            client.signal(signal.SIGINT)
        for test, client in clients.items():
            got = client.finish(60)
            assert time.monotonic() - begun < 7 + lib.SLACK, f"{test}: {time.monotonic() - begun:.1f} s: {got}"
            assert got.rc == INTERRUPTED[test] and got.out and ("no results from" in got.err) == (got.rc == 1), f"{test}: {got}"
    return f"{time.monotonic() - begun:.1f} s"


def interrupted_twice_in_silence(port: int, test: str, after_s: float) -> str:
    """A second signal ends the wait for results, which the first one only limits."""
    with ExitStack() as stack:
        once, twice = (stack.enter_context(started(port, test)) for _ in range(2))
        assert once.measuring() and twice.measuring()
        stack.enter_context(lib.Filter(SERVER, "prerouting", "drop"))
        time.sleep(0.5)
        begun = time.monotonic()
        once.signal(signal.SIGINT)
        twice.signal(signal.SIGINT)
        time.sleep(after_s)
        twice.signal(signal.SIGINT)
        got = twice.finish(60)
        waited = time.monotonic() - begun
        once.finish(60)
        whole = time.monotonic() - begun
    assert got.rc == 0 and got.out and waited - after_s < (whole - after_s) / 2, f"{waited:.1f} s of {whole:.1f} s: {got}"
    return f"{waited:.1f} s, {whole:.1f} s after one signal"


def interrupted_while_data_is_lost(port: int) -> str:
    """The far end learns of the test's end through the control connection instead of the data's path, and sends its
    results."""
    with started(port, "UDP_RR -- -k REMOTE_RECV_CALLS") as client:
        assert client.measuring()
        with lib.Filter(SERVER, "prerouting", f"{UDP} drop"):
            client.signal(signal.SIGINT)
            got = client.finish(60)
    assert got.rc == 0 and int(got.out.partition("=")[2]) > 0, got
    return got.out.strip()


def handshake_loses_its_last_segment(port: int) -> str:
    """The daemon accepts the connection after retransmitting a second later: netperf prints 0.00, too."""
    with lib.Filter(SERVER, "prerouting", f"{TCP.format(port=port)} meta length < 60 tcp flags & (syn|ack) == ack quota until 60 bytes drop"):
        got = lib.run(command(port, "-l", "0.2", "-P", "0", "-t", "TCP_MAERTS"), 60)
    assert got.rc == 0 and got.out.split()[-1] == "0.00", got
    return lib.error_line(got, "netperf", "nothing of what was sent has arrived", "began to send too late", "longer -l")


def abandoned_before_anything_arrives(port: int) -> str:
    """Two interrupts: an error line, no partial result of 0."""
    with lib.Filter(SERVER, "prerouting", "meta length > 1000 drop"):
        with lib.Started(command(port, "-l", "30", "-P", "0", "-t", "TCP_STREAM")) as client:
            assert lib.wait_for(lambda: lib.run([*CLIENT, "ss", "-tnH", "state", "established"], 20).out.count("\n") > 1, 60)
            time.sleep(0.5)     # it has begun
            client.signal(signal.SIGINT)
            time.sleep(0.1)
            client.signal(signal.SIGINT)
            got = client.finish(60)
    assert got.rc == 1 and got.out == "" and "partial" not in got.err, got
    return lib.error_line(got, "netperf", "interrupted before the far end had received all data")


def fragments_are_shown(port: int) -> str:
    got = lib.run(command(port, "-l", "0.2", "-t", "UDP_STREAM", "--human", "--explain"), 60)
    assert got.rc == 0 and "Fragments       datagrams of 65507 bytes in 45 fragments each" in got.out, got
    assert "datagrams of 65507 bytes are 45 fragments each" in got.out.replace("\n                ", " "), got
    return ""


def refused_in_the_midst(port: int) -> str:
    """A reset after a while of data does not come from a firewall."""
    with lib.Started(command(port, "-l", "4", "-P", "0", "-t", "UDP_STREAM", "--flows", "2", "--rate", "1m", "--",
                             "-m", "1000")) as client:
        assert client.measuring()
        time.sleep(2)
        with lib.Filter(SERVER, "input", f"{UDP} reject"):
            got = client.finish(60)
    assert HINT not in got.err, got
    return got.err.strip()


def reset_in_the_midst(port: int) -> str:
    """A connection that has moved data was not blocked by a firewall or NAT, however soon it is reset."""
    with started(port, "TCP_STREAM") as client:
        assert client.measuring()
        with lib.Filter(SERVER, "input", f"{TCP.format(port=port)} reject with tcp reset"):
            got = client.finish(60)
    assert got.rc == 1 and "NAT" not in got.err and "firewall" not in got.err, got
    return lib.error_line(got, "netperf", "Connection reset by peer")


def readers_are_killed() -> str:
    """The daemon does not wait until they have received what is in its buffers."""
    with lib.Daemon(SERVER) as daemon, ExitStack() as stack:
        clients = [stack.enter_context(started(daemon.port, "TCP_MAERTS")) for _ in range(6)]
        assert all(client.measuring() for client in clients)
        for client in clients:
            client.signal(signal.SIGKILL)
        begun = time.monotonic()
        assert lib.wait_for(lambda: not daemon.children(), 5), f"{len(daemon.children())} sessions are left after 5 s"
        return f"{time.monotonic() - begun:.1f} s"


def needs_a_router(port: int, test: str) -> str:
    """The first send or connect fails: there is no waiting, and the line says what to try."""
    got = lib.run(command(port, "-l", "2", "-P", "0", "--json", "-t", *test.split(), host=FAR), 60)
    assert got.rc == 1, f"status {got.rc}: {got.err}"
    return lib.error_line(got, "netperf", "Network is unreachable (no router is used: try -R 1)")


def keeps_to_one_source(port: int, test: str) -> str:
    """The ports select the next hop, and with it this end's address; the daemon knows the control connection's."""
    got = lib.run(command(port, "-l", "-16", "-P", "0", "--flows", "16", "-t", test, host=FAR), 30)
    assert got.rc == 0 and got.err == "", got
    return ""


def two_next_hops() -> bool:
    lib.must([*CLIENT, "ip", "addr", "add", "10.78.0.1/24", "dev", "lab0"])
    lib.must([*SERVER, "ip", "addr", "add", "10.78.0.2/24", "dev", "lab0"])
    lib.must([*CLIENT, "sysctl", "-qw", "net.ipv4.fib_multipath_hash_policy=1"])
    return lib.run([*CLIENT, "ip", "route", "replace", FAR, "nexthop", "via", IPV4, "nexthop", "via", "10.78.0.2"], 20).rc == 0


def comes_from_two_addresses(port: int) -> str:
    """A NAT gives each connection of this end the next one of its addresses."""
    lib.must([*CLIENT, "nft", "add table ip pool; add chain ip pool out { type nat hook postrouting priority 100; };"
              " add rule ip pool out snat to numgen inc mod 2 map { 0 : 10.77.0.1, 1 : 10.78.0.1 }"])
    got = lib.run(command(port, "-l", "1", "-P", "0", "-t", "TCP_RR"), 60)
    lib.must([*CLIENT, "nft", "delete table ip pool"])
    assert got.rc == 1, got
    return lib.error_line(got, "netperf", "Connection reset by peer (a NAT with several addresses? see netserver --one-port)")


def routers(report: lib.Report) -> None:
    lib.must([*SERVER, "ip", "addr", "add", f"{FAR}/32", "dev", "lo"])
    lib.must([*CLIENT, "ip", "route", "add", FAR, "via", IPV4])
    with lib.Daemon(SERVER) as daemon:
        for test in ("UDP_STREAM", "UDP_STREAM --flows 2", "TCP_STREAM -- -R 0"):
            report.case(f"{test}: behind a router", partial(needs_a_router, daemon.port, test))
        if report.lacks("two next hops", "" if two_next_hops() else "the kernel has no multipath routes"):
            return
        for test in ("TCP_RR", "UDP_RR"):
            report.case(f"{test}: two next hops", partial(keeps_to_one_source, daemon.port, test))
        report.case("a NAT with two addresses", partial(comes_from_two_addresses, daemon.port))


# ---- several addresses ------------------------------------------------------------------------------

def known_as(place: str, addresses: Sequence[str]) -> List[str]:
    """The command prefix with which the name `many` has these addresses."""
    hosts = Path(place) / f"hosts-{len(os.listdir(place))}"
    hosts.write_text("".join(f"{address} many\n" for address in addresses))
    return [*CLIENT, "unshare", "-m", "sh", "-c", f'mount --bind {hosts} /etc/hosts && exec "$@"', "sh"]


def goes_by(place: str, port: int, addresses: Sequence[str], family: str, *says: str, test: str = "TCP_STREAM") -> str:
    """The test uses the address that answered and says so once; with the first address, it says nothing."""
    path = Path(place) / "run.json"
    got = lib.run([*known_as(place, addresses), lib.netperf(), "-H", "many", "-p", str(port), "-l", "0.2", "-P", "0",
                   "-i", "3,3", f"--json={path}", "-t", *test.split()], 60)
    assert got.rc == 0, f"status {got.rc}: {got.err}"
    run = lib.document(path.read_text())
    assert run["test"]["family"] == family, run["test"]["family"]
    assert len(run["iterations"]) == 3, "not three iterations"
    lines = got.err.splitlines()
    assert len(lines) == bool(says), f"stderr: {got.err}"
    assert not says or lines[0].startswith("netperf: many: ") and all(word in lines[0] for word in says), lines
    return got.err.strip()


def none_answers(place: str, port: int) -> str:
    got = lib.run([*known_as(place, (IPV6, IPV4)), lib.netperf(), "-H", "many", "-p", str(port)], 60)
    assert got.rc == 255, f"status {got.rc}: {got.err}"
    return lib.error_line(got, "netperf", "establish the control connection", f"{IPV6}: Connection refused",
                          f"{IPV4}: Connection refused")


def addresses(report: lib.Report) -> None:
    used = f"{IPV4} is used"
    with tempfile.TemporaryDirectory() as place:
        with lib.Daemon(SERVER, ["-4"]) as daemon:
            go = partial(goes_by, place, daemon.port)
            report.case("the first one refuses", partial(go, (IPV6, IPV4), "AF_INET", used, f"{IPV6}: Connection refused"))
            report.case("nobody has the first one", partial(go, (DEAD, IPV4), "AF_INET", used, f"{DEAD}: no answer"))
            report.case("the first one works", partial(go, (IPV4, DEAD), "AF_INET"))
            for test in ("TCP_RR", "UDP_RR"):
                report.case(f"{test} -- -H many", partial(go, (DEAD, IPV4), "AF_INET", used, test=f"{test} -- -H many"))
            for test in ("TCP_CRR", "TCP_STREAM --both", "UDP_RR"):
                report.case(test, partial(go, (IPV6, IPV4), "AF_INET", used, test=test))
            with lib.Filter(SERVER, "input", f"ip6 daddr {IPV6} meta l4proto tcp drop"):
                report.case("the first one is silent", partial(go, (IPV6, IPV4), "AF_INET", used, f"{IPV6}: no answer"))
            report.case("none", partial(none_answers, place, lib.free_port()))
        with lib.Daemon(SERVER, ["-6"]) as daemon:
            go = partial(goes_by, place, daemon.port)
            report.case("the data has the family, too", partial(go, (IPV6, IPV4), "AF_INET6"))


def suite(report: lib.Report) -> None:
    lib.skip_if(lib.no_lab())
    with lib.Lab(NAME):
        with lib.Daemon(SERVER) as daemon:
            for case in BLOCKED:
                report.case(f"{case.test}: {case.hook}, {case.becomes}", partial(is_blocked, daemon.port, case))
            for ramp, says in (("--ramp 10", "before a data connection was made"), ("", "before the test began")):
                report.case(f"TCP_STREAM --flows 3 {ramp}: interrupted", partial(interrupted, daemon.port, ramp, f"interrupted {says}"))
            report.case("UDP_STREAM: nothing arrives", partial(nothing_arrives, daemon.port, UDP, 1472, 1))
            report.each((nothing_comes, nothing_passes, a_late_handshake_is_no_long_path), daemon.port)
            report.case("UDP_STREAM: no fragment arrives", partial(nothing_arrives, daemon.port, "ip frag-off & 0x1fff != 0", 65507, 45))
            report.case("TCP_MAERTS: the handshake loses its last segment", partial(handshake_loses_its_last_segment, daemon.port))
            for test, says in (("TCP_STREAM", "explain: mtu: "), ("TCP_MAERTS", "explain: mtu: "), ("TCP_RR -- -r 4000,1", "-r"),
                               ("TCP_MAERTS --warm-up 1", "try -G 720"), ("TCP_RR -- -r 1,4000", "not one transaction"),
                               ("TCP_MAERTS --warm-up 4", "try -G 720"), ("TCP_RR --warm-up 4 -- -r 4000,1", "not one transaction")):
                report.case(f"{test}: small segments alone pass", partial(small_segments_alone_pass, daemon.port, test, says))
            report.each((abandoned_before_anything_arrives, fragments_are_shown), daemon.port)
            for which, sizes in (("tcp flags & psh == psh", "1,1"), ("meta length > 1000 numgen inc mod 20 == 0", "30M,1")):
                report.case(f"TCP_RR -r {sizes}: lost", partial(some_requests_are_lost, daemon.port, which, sizes))
            for test, what in (("TCP_RR", LOSES_REQUESTS), ("TCP_RR --rate 50", LOSES_REQUESTS), ("UDP_RR", UDP)):
                report.case(f"{test}: interrupted without an answer", partial(interrupted_without_an_answer, daemon.port, test,
                                                                              what.format(port=daemon.port)))
            report.case("interrupted in silence", partial(interrupted_in_silence, daemon.port))
            for test in "TCP_RR", "TCP_RR --explain":
                for after_s in 0.2, 2:
                    report.case(f"interrupted twice in silence: {test}, {after_s} s",
                                partial(interrupted_twice_in_silence, daemon.port, test, after_s))
            report.each((interrupted_while_data_is_lost, refused_in_the_midst, reset_in_the_midst), daemon.port)
        report.case("TCP_MAERTS: killed", readers_are_killed)
        addresses(report)
        routers(report)


if __name__ == "__main__":
    lib.main(suite)
