#!/usr/bin/env python3
"""netserver --one-port: everything passes through the control connection's port, with our client and the real
netperf, behind a firewall, a NAT, a load balancer, and beside strangers. Needs root, for network namespaces."""

import itertools
import os
import re
import socket
import struct
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from typing import Dict, List, Sequence, Tuple

import lib
import ours

NAME = f"op{os.getpid()}"
NEAR, FAR = {"c": "10.78.1.1", "r": "10.78.1.2"}, {"s": "10.78.2.1", "t": "10.78.3.1"}
NEAR6, FAR6 = {"c": "fd78:1::1", "r": "fd78:1::2"}, {"s": "fd78:2::1", "t": "fd78:3::1"}
BOTH_WAYS = ("TCP_STREAM", "TCP_MAERTS", "TCP_RR", "TCP_CRR", "TCP_SENDFILE", "UDP_STREAM -- -R 1", "UDP_RR")
OURS_ALONE = ("TCP_CC", "UDP_STREAM --flows 3 -- -R 1", "TCP_RR --flows 5", "TCP_MAERTS --flows 4 --threads 2",
              "UDP_RR --flows 4 --engine epoll", "TCP_CRR --flows 3 --threads 2", "TCP_RR --json", "TCP_CRR --rate 200")
COUNTED = ("TCP_RR", "TCP_CRR", "UDP_STREAM -- -R 1", "UDP_RR")
PATIENCE = 60
MEET_S = 2          # until all connections have reached their session behind a balancer
CROWD = 50          # real clients behind one address
STRANGERS = int(os.environ.get("NP_STRANGERS", 400 if lib.QUICK else 2000))
HELD = 500          # of their connections at a time
FORGED = 5000       # datagrams per second


class Lab(lib.Net):
    """A client, a router that translates its addresses and forwards a single port, and two servers."""

    names = [f"{NAME}{end}" for end in "crst"]
    client, router, server, twin = (["ip", "netns", "exec", name] for name in names)

    def make(self) -> None:
        self._link("c", "r", "near", NEAR["c"], NEAR["r"], NEAR6["c"], NEAR6["r"])
        for end in "st":
            four, six = FAR[end], FAR6[end]
            self._link(end, "r", f"far{end}", four, four[:-1] + "2", six, six[:-1] + "2")
        for name in ("ipv4/ip_forward", "ipv6/conf/all/forwarding"):
            lib.must([*self.router, "sh", "-c", f"echo 1 > /proc/sys/net/{name}"])

    @staticmethod
    def _link(end: str, router: str, device: str, *at: str) -> None:
        lib.ip(f"link add lab0 netns {NAME}{end} type veth peer name {device} netns {NAME}{router}")
        for name, link, four, six in ((end, "lab0", at[0], at[2]), (router, device, at[1], at[3])):
            lib.ip(*(f"-n {NAME}{name} {words}" for words in (
                f"addr add {four}/24 dev {link}", f"addr add {six}/64 dev {link} nodad", f"link set {link} up")))
        lib.ip(f"-n {NAME}{end} -4 route add default via {at[1]}", f"-n {NAME}{end} -6 route add default via {at[3]}")

    def nft(self, *rules: str) -> None:
        lib.must([*self.router, "nft", "; ".join(["add table inet lab", "delete table inet lab", "add table inet lab",
                                                  *rules])])

    def one_port(self, port: int, *more: str) -> None:
        """Forward that port, with the router's own address as the source."""
        self.nft("add chain inet lab forwarded { type filter hook forward priority 0; policy drop; }",
                 "add rule inet lab forwarded ct state established,related accept",
                 "add rule inet lab forwarded meta l4proto ipv6-icmp accept",
                 f"add rule inet lab forwarded meta l4proto {{ tcp, udp }} th dport {port} accept",
                 "add chain inet lab leaving { type nat hook postrouting priority 100; }",
                 'add rule inet lab leaving oifname "far*" masquerade', *more)

    def balance(self, port: int) -> None:
        """Distribute connections to the first server over both servers."""
        self.one_port(port, "add chain inet lab coming { type nat hook prerouting priority -100; }",
                      f"add rule inet lab coming meta nfproto ipv4 meta l4proto {{ tcp, udp }} th dport {port} dnat ip to "
                      f"numgen random mod 2 map {{ 0 : {FAR['s']}, 1 : {FAR['t']} }}")


def command(lab: Lab, program: str, port: int, test: str, *args: str, host: str = FAR["s"]) -> "List[str]":
    before, _, specific = test.partition(" -- ")
    return [*lab.client, program, "-H", host, "-p", str(port), "-P", "0", "-t", *before.split(), *args, "--",
            *specific.split()]


def figure(got: lib.Result) -> float:
    """The last figure of its table."""
    assert got.rc == 0, f"status {got.rc} after {got.seconds:.1f} s: {got.err.strip() or got.out.strip()}"
    found = [line.split() for line in got.out.splitlines() if re.match(r"\s*[\d.]+ +[\d.]", line)]
    assert found, got.out
    return float(found[0][-1])


def passes(lab: Lab, program: str, port: int, test: str, args: Sequence[str], host: str) -> str:
    got = lib.run(command(lab, program, port, test, *args, host=host), PATIENCE)
    if "--json" in test:
        assert got.rc == 0 and lib.document(got.out)["final"]["THROUGHPUT"] > 0, got
        return ""
    assert figure(got) > 0, got
    return f"{figure(got):g}"


def through_a_router(report: lib.Report, lab: Lab) -> None:
    with lib.Daemon(lab.server, ["--one-port"]) as daemon:
        lab.one_port(daemon.port)
        for name, program in (("ours", lib.netperf()), ("netperf's", str(lib.real_netperf() / "netperf"))):
            for test in BOTH_WAYS + (OURS_ALONE if name == "ours" else ()):
                for host in (FAR["s"], FAR6["s"]):
                    more = ["-F", program] if test == "TCP_SENDFILE" else []
                    for length in ("0.3" if name == "ours" else "1", *(["-100"] if test in COUNTED else [])):
                        report.case(f"{name}: {test} -l {length} to {host}",
                                    partial(passes, lab, program, daemon.port, test, ["-l", length, *more], host))
        report.case("a ramp has a port of its own", partial(ramp_is_dropped, lab, daemon.port))
    with lib.Daemon(lab.server) as daemon:
        lab.one_port(daemon.port)
        report.case("without --one-port it is stopped", partial(is_stopped, lab, daemon.port))


def ramp_is_dropped(lab: Lab, port: int) -> None:
    got = lib.run(command(lab, lib.netperf(), port, "TCP_STREAM --ramp 10 --flows 3", "-l", "0.5"), 4)
    assert got.rc != 0, got


def is_stopped(lab: Lab, port: int) -> None:
    got = lib.run(command(lab, lib.netperf(), port, "TCP_RR", "-l", "0.5"), 4)
    assert got.rc != 0, got


def marks_all(lab: Lab, port: int) -> str:
    """All packets of a test with -Y have the DSCP, both ways, not counting the control connection."""
    lab.nft("add counter inet lab marked", "add counter inet lab plain",
            "add chain inet lab forwarded { type filter hook forward priority 0; }",
            "add rule inet lab forwarded meta l4proto udp ip dscp 0x0a counter name marked",
            "add rule inet lab forwarded meta l4proto udp ip dscp != 0x0a counter name plain")
    got = lib.run(command(lab, lib.netperf(), port, "UDP_RR -Y 0x28,0x28", "-l", "-50"), PATIENCE)
    figure(got)
    text = lib.run([*lab.router, "nft", "list counters"], 20).out
    counted = {name: int(packets) for name, packets in re.findall(r"counter (\w+) {\s*packets (\d+)", text)}
    assert counted["marked"] >= 100 and counted["plain"] == 0, counted
    return f"{counted['marked']} marked"


# ---- Several daemons behind one address ----

def meets(lab: Lab, port: int, test: str) -> str:
    # On a busy machine 0.3 s may see no connection.
    got = lib.run(command(lab, lib.netperf(), port, test, "-l", "1", *lib.PACED), PATIENCE)
    assert figure(got) > 0, got
    assert got.seconds < 1 + MEET_S + (20 if lib.QUICK else 3), got.seconds
    return f"{got.seconds:.1f} s"


def ends(lab: Lab, program: str, port: int, test: str) -> str:
    """With a result or an error, but it ends."""
    got = lib.run(command(lab, program, port, test, "-l", "1"), PATIENCE)
    assert got.rc is not None and (got.rc == 0 or got.err.strip() or got.out.strip()), got
    assert got.seconds < 30, got
    return f"status {got.rc} after {got.seconds:.1f} s: {got.err.strip()[:100]}"


def never_meets(lab: Lab, port: int, test: str) -> str:
    """All but the first connection of a client go to the other server."""
    lab.one_port(port, "add chain inet lab coming { type nat hook prerouting priority -100; }",
                 "add set inet lab seen { typeof ip saddr; }",
                 f"add rule inet lab coming meta nfproto ipv4 meta l4proto {{ tcp, udp }} th dport {port} ip saddr @seen "
                 f"dnat ip to {FAR['t']}",
                 f"add rule inet lab coming meta nfproto ipv4 tcp dport {port} tcp flags & (syn|ack) == syn update @seen "
                 "{ ip saddr }")
    got = lib.run(command(lab, lib.netperf(), port, test, "-l", "4"), PATIENCE)
    line = lib.error_line(got, "netperf", "another netserver")
    assert got.rc != 0 and "affinity" in line, got
    return line


def behind_a_balancer(report: lib.Report, lab: Lab) -> None:
    with lib.Daemon(lab.server, ["--one-port"]) as daemon, lib.Daemon(lab.twin, ["--one-port"], daemon.port):
        for test in ("TCP_RR", "UDP_RR", "TCP_CRR"):
            report.case(f"never meets: {test}", partial(never_meets, lab, daemon.port, test))
        lab.balance(daemon.port)
        for test in (*(test for test in BOTH_WAYS if test != "TCP_SENDFILE"), "TCP_CC", "TCP_RR --flows 16",
                     "UDP_RR --flows 8"):
            report.case(f"balanced: {test}", partial(meets, lab, daemon.port, test))
        real = str(lib.real_netperf() / "netperf")
        for test in ("TCP_STREAM", "TCP_RR"):
            report.case(f"balanced, netperf's: {test}", partial(ends, lab, real, daemon.port, test))


# ---- Many behind one address ----

def crowd(lab: Lab, port: int) -> str:
    """With different sizes and counts: with another client's connection, a session would wait forever or send too
    much."""
    real = str(lib.real_netperf() / "netperf")

    def one(number: int) -> lib.Result:
        test = ("TCP_RR", "UDP_RR")[number % 2]
        return lib.run(command(lab, real, port, f"{test} -- -r {100 + 7 * number},{2000 - 11 * number}", "-l",
                               str(-20 - number)), PATIENCE)

    with ThreadPoolExecutor(CROWD) as pool:
        got = list(pool.map(one, range(CROWD)))
    for number, result in enumerate(got):
        assert figure(result) > 0, (number, result)
    return f"{CROWD} clients, the last after {max(result.seconds for result in got):.1f} s"


# ---- Strangers ----

SAID: "Dict[str, bytes]" = {
    "nothing": b"",
    "data": b"netperf!" * 10,
    "half a token": ours.token(3)[:11],
    "a wrong token": ours.token(3, os.urandom(16)),
    "a wrong token in passing": ours.token(4, os.urandom(16)),
    "no word of tokens": ours.token(77),
}


def memory(pid: int) -> int:
    """Memory of a process in kB."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return int(next(line.split()[1] for line in status if line.startswith("VmRSS:")))


def strangers(daemon: lib.Daemon) -> str:
    """None reaches the session of a waiting test, and honest clients are served at the same time."""
    held: "List[socket.socket]" = []
    answers: "Dict[str, bytes]" = {}
    before = 0
    with lib.Started(lib.command(daemon.port, "-t", "TCP_RR", "-l", "3", "-P", "0", host="127.0.0.2")) as test:
        test.measuring()
        for number in range(STRANGERS):
            what = list(SAID)[number % len(SAID)]
            conn = socket.create_connection(("127.0.0.1", daemon.port), 20)
            conn.sendall(SAID[what])
            if what.startswith("a wrong") and what not in answers:
                conn.settimeout(20)
                try:
                    answers[what] = conn.recv(100)
                except ConnectionResetError:
                    answers[what] = b"reset"
            held.append(conn)
            if len(held) > HELD:
                held.pop(0).close()
            if number == STRANGERS // 2:
                before = memory(daemon.pid)
        honest = lib.run([lib.netperf(), "-p", str(daemon.port), "-t", "TCP_RR", "-l", "-10", "-P", "0"], PATIENCE)
        after = memory(daemon.pid)
        done = test.finish(PATIENCE)
    for conn in held:
        conn.close()
    assert honest.rc == 0 and done.rc == 0 and not lib.complaints(done), (honest, done)
    assert answers["a wrong token"] == ours.token(6) and answers["a wrong token in passing"] == b"reset", answers
    assert after < before + 20000, (before, after)
    return f"{STRANGERS} strangers, {after - before} kB, a test beside them {honest.seconds:.2f} s"


def datagrams_of_strangers(port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.settimeout(2)
        one.sendto(b"netperf", ("127.0.0.1", port))
        one.sendto(ours.token(3, os.urandom(16)), ("127.0.0.1", port))
        assert one.recv(100) == ours.token(6)


def flood_of_unknown_tokens(port: int) -> str:
    """Datagrams are lost meanwhile, including tokens of honest clients, which are sent again."""
    over = threading.Event()

    def flood() -> None:
        says = ours.token(3, os.urandom(16))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
            one.connect(("127.0.0.1", port))
            while not over.is_set():
                for _ in range(1000):
                    with suppress(OSError):
                        one.send(says)

    attacker = threading.Thread(target=flood, daemon=True)
    attacker.start()
    try:
        got = [lib.run(lib.command(port, "-t", "UDP_RR", "-P", "0", "-l", "-1"), PATIENCE)
               for _ in range(5)]
    finally:
        over.set()
        attacker.join()
    assert all(figure(one) > 0 for one in got)
    return f"a start took {max(one.seconds for one in got):.2f} s at the most"


def forged_datagrams(port: int) -> str:
    """From other ports of a client's address: a client that shows no token has stated its port."""
    over = threading.Event()

    def forge(socks: "List[socket.socket]") -> None:
        for one in itertools.cycle(socks):
            if over.wait(1 / FORGED):
                break
            one.sendto(b"netperf", ("127.0.0.1", port))

    with ExitStack() as stack:
        attacker = threading.Thread(target=forge, daemon=True, args=(
            [stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in range(50)],))
        attacker.start()
        try:
            got = [lib.run([str(lib.real_netperf() / "netperf"), "-H", "127.0.0.1", "-p", str(port), "-t", "UDP_RR", "-P",
                            "0", "-l", "1"], 5) for _ in range(3)]
        finally:
            over.set()
            attacker.join()
    answered = sum(one.rc == 0 and figure(one) > 0 for one in got)
    assert answered >= 2, got    # a request may be lost, for which the real netperf waits
    return f"{answered} of 3 answered"


def used_tokens(port: int) -> None:
    """A token is valid for as many connections as its test has, and not after it."""
    with socket.create_connection(("127.0.0.1", port), 20) as control:
        control.sendall(ours.omni(5)[:616] + ours.token(ours.ASKED).ljust(40, b"\0"))
        answer = control.recv(656, socket.MSG_WAITALL)
        given = answer[616:640]
        assert given[:8] == ours.token(2)[:8] and given[8:] != bytes(16), given
        asks = ours.token(3, given[8:])
        with socket.create_connection(("127.0.0.1", port), 20) as first, \
                socket.create_connection(("127.0.0.1", port), 20) as second:
            first.sendall(asks[:7])
            time.sleep(0.05)
            first.sendall(asks[7:])
            assert first.recv(24, socket.MSG_WAITALL) == ours.token(5)
            second.sendall(asks)
            assert second.recv(24, socket.MSG_WAITALL) == ours.token(6)
    time.sleep(0.3)
    with socket.create_connection(("127.0.0.1", port), 20) as late:
        late.sendall(asks)
        assert late.recv(24, socket.MSG_WAITALL) == ours.token(6)


def asked(port: int, transport: str, flags: int, request: int) -> "Tuple[socket.socket, bytes]":
    """The control connection of a request/response test with four-byte responses, and its token."""
    control = socket.create_connection(("127.0.0.1", port), 20)
    ours.greet(control)
    control.sendall(ours.message(
        ours.PLAN, ours.field(1, b"rr"), ours.field(2, transport.encode()), ours.field(6, struct.pack("!q", 5000)),
        ours.number(5, 4), ours.number(7, request), ours.number(8, 4), ours.number(19, flags), ours.number(32, 1),
        ours.field(34, b"epoll"), ours.number(35, 1)))
    granted = ours.receive(control)
    assert granted.kind == ours.GRANT, granted
    return control, ours.token_of(granted)


def a_token_in_two_pieces(port: int) -> None:
    """Requests after it may be shorter than the token, and are waited for by poll(2)."""
    control, given = asked(port, "TCP", 0x2000, 23)
    with control, socket.create_connection(("127.0.0.1", port), 20) as data:
        data.sendall(ours.token(3, given)[:7])
        time.sleep(0.2)
        data.sendall(ours.token(3, given)[7:])
        assert data.recv(24, socket.MSG_WAITALL) == ours.token(5)
        data.settimeout(20)
        for _ in range(3):
            data.sendall(bytes(23))
            assert len(data.recv(4, socket.MSG_WAITALL)) == 4


def ids_without_a_token(port: int) -> None:
    """The first request creates the daemon's socket: its response has an ID, too."""
    control, _ = asked(port, "UDP", 0x4, 8)
    with control, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as data:
        data.settimeout(20)
        for number in range(3):
            data.sendto(ours.word(0x12345678 + number) + bytes(4), ("127.0.0.1", port))
            assert data.recv(100) == ours.word(0x12345678 + number), number
        data.sendto(b"", ("127.0.0.1", port))


def who_never_comes(port: int) -> str:
    """A client that shows no token and makes no connection delays another one from its address for a while."""
    real = str(lib.real_netperf() / "netperf")
    with socket.create_connection(("127.0.0.1", port), 20) as control:
        control.sendall(ours.omni(5))
        control.recv(656, socket.MSG_WAITALL)
        got = lib.run([real, "-H", "127.0.0.1", "-p", str(port), "-t", "TCP_RR", "-P", "0", "-l", "-10"], PATIENCE)
        figure(got)
        assert got.seconds > 3, got.seconds
        control.settimeout(20)
        told = struct.unpack("!iI", control.recv(8, socket.MSG_WAITALL))
        assert told[1] != 0, told
    return f"{got.seconds:.1f} s"


# ---- Through another program ----

def relay(port: int, says: bytes = b"") -> ours.Relay:
    """Forwards each connection to 127.0.0.3, preceded by the PROXY protocol's header."""
    return ours.Relay(port, says, ("127.0.0.3", port))


def through_a_relay(program: str, port: int, test: str, *args: str) -> str:
    got = lib.run([program, "-H", "127.0.0.3", "-p", str(port), "-P", "0", "-t", test, "-l", "1", *args], PATIENCE)
    assert figure(got) > 0, got
    return f"{figure(got):g}"


def whose_it_is(daemon: lib.Daemon) -> None:
    """A proxy that may state the client's address is believed, and the daemon's rules apply to that address."""
    says = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c" + bytes((192, 0, 2, 7, 127, 0, 0, 1)) + b"\x12\x34\0\x50"
    command = lib.command(daemon.port, "-P", "0", "-t", "TCP_RR", "-l", "-10", host="127.0.0.3")
    with relay(daemon.port, says):
        assert figure(lib.run(command, PATIENCE)) > 0
    assert "192.0.2.7" in daemon.log(), daemon.log()
    with relay(daemon.port, says.replace(bytes((2, 7)), bytes((2, 8)))):
        lib.error_line(lib.run(command, PATIENCE), "netperf", "--deny")
    with relay(daemon.port):
        assert lib.run(command, PATIENCE).rc != 0


def behind_other_programs(report: lib.Report) -> None:
    with lib.Daemon(args=["-L", "127.0.0.1", "--one-port"]) as daemon, relay(daemon.port):
        for name, program, *args in (("ours", lib.netperf(), *lib.PACED), ("netperf's", str(lib.real_netperf() / "netperf"))):
            for test in ("TCP_STREAM", "TCP_MAERTS", "TCP_RR", "TCP_CRR"):
                report.case(f"relayed, {name}: {test}", partial(through_a_relay, program, daemon.port, test, *args))
    with lib.Daemon(args=["-L", "127.0.0.1", "--one-port", "--proxy-protocol", "127.0.0.1", "--deny", "192.0.2.8", "-v",
                          "2"]) as daemon:
        report.case("a proxy says whose it is", partial(whose_it_is, daemon))


def tokens_are_no_data(port: int) -> None:
    got = lib.run([lib.netperf(), "-p", str(port), "-t", "TCP_CRR", "-l", "-50", "-P", "0", "--", "-r", "10,20", "-k",
                   "LOCAL_BYTES_SENT,LOCAL_BYTES_RECVD,REMOTE_BYTES_RECVD"], PATIENCE)
    assert got.rc == 0 and got.out.split() == ["LOCAL_BYTES_SENT=500", "LOCAL_BYTES_RECVD=1000",
                                               "REMOTE_BYTES_RECVD=500"], got


def refused(args: Sequence[str], *says: str) -> None:
    got = lib.run([lib.netserver(), *args], 20)
    lib.error_line(got, "netserver", *says)


def suite(report: lib.Report) -> None:
    report.case("refused: -f", partial(refused, ["--one-port", "-f", "-p", "1"], "--one-port", "-f"))
    with lib.Daemon(args=["--one-port"]) as daemon:
        report.case("strangers", partial(strangers, daemon))
        report.each((datagrams_of_strangers, flood_of_unknown_tokens, forged_datagrams, tokens_are_no_data,
                     used_tokens, a_token_in_two_pieces, ids_without_a_token, who_never_comes), daemon.port)
    report.part("behind other programs", partial(behind_other_programs, report))
    with ExitStack() as stack:
        if os.getuid() != 0:
            raise lib.Skipped("needs root, for network namespaces")
        lab = stack.enter_context(Lab())
        report.part("through a router", partial(through_a_router, report, lab))
        report.part("behind a balancer", partial(behind_a_balancer, report, lab))
        with lib.Daemon(lab.server, ["--one-port"]) as daemon:
            lab.one_port(daemon.port)
            report.each((crowd, marks_all), lab, daemon.port)


if __name__ == "__main__":
    lib.main(suite)
