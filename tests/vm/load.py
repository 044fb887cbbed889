# netvm: modules tipc tls
"""What sessions share with the whole kernel: nothing that a client asks for loads a module (requests for modprobe are
counted), and the daemon has watches of epoll(7) where the sessions' user has none left."""

import contextlib
import os
import socket
import sys

import attacks
import lib
import strangers

ASKED, HELPER = "/root/asked", "/root/helper"
SYSCTL = "/proc/sys/kernel/modprobe"
WATCHES = "/proc/sys/fs/epoll/max_user_watches"
MODULES = ("tipc", "tls")
SCTP, DCCP, L2TP = (1, socket.IPPROTO_SCTP), (3, 33), (2, 115)   # as requests have them


def count() -> "list[str]":
    """What the kernel has asked its helper for."""
    with open(ASKED, encoding="ascii") as file:
        return file.read().splitlines()


def lacks(name: str) -> bool:
    """Another test may have loaded what can't be unloaded."""
    with open("/proc/net/protocols", encoding="ascii") as file:
        return name not in file.read()


def is_loaded(name: str) -> bool:
    return os.path.isdir(f"/sys/module/{name}")


def unload() -> None:
    for name in MODULES:
        assert lib.wait_for(lambda n=name: not is_loaded(n) or lib.run(["rmmod", n], 20).rc == 0, 60), name


def refusals(port: int) -> None:
    """Each is refused by a line that names the transport and the option."""
    for kind, name in ((SCTP, "SCTP"), (DCCP, "DCCP"), (L2TP, "")):
        if name and not lacks(name):
            continue
        with strangers.Control(port) as control:
            got = control.ask(kind, strangers.BOTH)
            assert got.error != 0 and name in got.why, (name, got.error)
            assert not name or f"--transports {name}" in got.why, got.why
    for name in ("SCTP", "DCCP", "TIPC", "TLS"):
        if name in ("SCTP", "DCCP") and not lacks(name):
            continue
        with attacks.calling(port, "127.0.0.1") as conn:
            answer = attacks.ask(conn, attacks.plan("stream", name))
            assert answer.error != 0 and f"--transports {name}".encode() in answer.body, (name, answer)


def nothing_is_loaded(args: "list[str]") -> None:
    unload()
    with lib.Daemon(args=args) as daemon:
        before = count()
        refusals(daemon.port)
        assert count() == before, count()[len(before):]
    assert not any(is_loaded(name) for name in MODULES)


def what_is_named_is_loaded() -> None:
    """At the start; the rest is refused as before."""
    unload()
    with lib.Daemon(args=["--transports", "Tls"]) as daemon:
        ask = [lib.netserver(), "-p", str(daemon.port), "--status"]
        assert lib.wait_for(lambda: lib.run(ask, 20).rc == 0, 60), daemon.log()     # it listens before it loads
        assert is_loaded("tls") and not is_loaded("tipc")
        before = count()
        with attacks.calling(daemon.port, "127.0.0.1") as conn:
            assert attacks.ask(conn, attacks.plan("stream", "TIPC")).error != 0
        assert count() == before, count()[len(before):]
        for _ in range(3):      # where nearly all of the processors is taken from a guest, a handshake takes over 12 s
            got = lib.run(lib.command(daemon.port, "-t", "TLS_RR", "-l", "-20"), 60)
            if "nothing moved" not in got.err:
                break
        assert got.rc == 0, got


def what_there_is_no_module_for() -> None:
    got = lib.run([lib.netserver(), "-D", "--transports", "nosuch"], 20)
    lib.error_line(got, "netserver", "--transports", "'nosuch' is no transport")


def the_helper_counts() -> None:
    """A socket of a family that this kernel has no module for."""
    before = count()
    with contextlib.suppress(OSError):
        socket.socket(socket.AF_ROSE if hasattr(socket, "AF_ROSE") else 11, socket.SOCK_SEQPACKET).close()
    assert len(count()) > len(before), "the kernel asked for nothing"


ALL_WATCHES = """
import os, select, time
os.setuid(65534)
watches, here = select.epoll(), os.pipe()[0]
try:
    while True:
        watches.register(os.dup(here), 0)
except OSError as fault:
    print(fault.strerror, flush=True)
time.sleep(600)
"""


def no_watches_are_left() -> None:
    """The user that sessions have has used up what epoll(7) may watch: a daemon that root started goes on."""
    with open(WATCHES, encoding="ascii") as file:
        usual = file.read()
    try:
        with open(WATCHES, "w", encoding="ascii") as file:
            file.write("200")
        with lib.Daemon() as daemon, lib.Started([sys.executable, "-c", ALL_WATCHES]) as greedy:
            assert lib.wait_for(lambda: "No space" in greedy.said(), 60), greedy.said()
            lib.must(lib.command(daemon.port, "-t", "TCP_RR", "-l", "-20"), 60)
    finally:
        with open(WATCHES, "w", encoding="ascii") as file:
            file.write(usual)


def suite(report: lib.Report) -> None:
    with open(ASKED, "w", encoding="ascii"):
        pass
    with open(SYSCTL, encoding="ascii") as file:
        usual = file.read()
    with open(HELPER, "w", encoding="ascii") as file:
        file.write(f'#!/usr/bin/sh\necho "$@" >> {ASKED}\nexec {usual.strip()} "$@"\n')
    os.chmod(HELPER, 0o755)
    try:
        with open(SYSCTL, "w", encoding="ascii") as file:
            file.write(HELPER)
        report.case("what is asked for is counted", the_helper_counts)
        report.case("a request loads nothing", lambda: nothing_is_loaded([]))
        report.case("nor where sessions are not confined", lambda: nothing_is_loaded(["--no-sandbox"]))
        report.each((what_is_named_is_loaded, what_there_is_no_module_for))
        report.case("no epoll watches are left", no_watches_are_left)
    finally:
        with open(SYSCTL, "w", encoding="ascii") as file:
            file.write(usual)


lib.main(suite)
