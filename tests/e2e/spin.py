"""The engine that never sleeps (--engine spin): lost requests time out, tests end as with any other engine, and its
evidence is true; test_engine has the counts of both ends. Runs are tiny, as spinning is a burden on a busy machine.
"""

import os
import shutil
import signal
import socket
import threading
import time
from contextlib import ExitStack
from functools import partial
from typing import List, Sequence

import attacks
import flows
import lib
import ours
import placement

HOST = "127.0.0.1"
PATIENCE = 60
MAY = ("--spin", "8")       # needed by the daemon
APART = placement.processors()[:2]  # one for each end, if there are two
BOTH = ("--engine", "spin,spin", *(("-T", f"{APART[0]},{APART[1]}") if len(APART) > 1 else ()))
REFUSED = (
    ("--engine spin -t TCP_CRR", ("--engine spin", "TCP_CRR", "before the test")),
    ("--engine spin -t TCP_CC --flows 3", ("--engine spin", "TCP_CC", "before the test")),
    ("--engine spin -t TCP_MSS", ("--engine spin", "makes its own connection")),
    ("--engine spin -t TCP_RR --flows 20 --ramp 10 -l 1", ("spin", "ramp")),
)
DROPS, ANSWERS = 3, 6       # the echo drops one of this many datagrams; a loss takes a second


def refused_there(port: int) -> None:
    got = lib.run(lib.command(port, "-t", "TCP_CRR", "-l", "1", "--engine", ",spin"), timeout=20)
    assert got.rc not in (0, None), got
    assert "engine spin at the daemon: it drives only connections that exist before the test" in got.err, got


def it_never_sleeps(port: int) -> str:
    """A waiting end has a context switch per transaction; a spinning one only if the machine forces it."""
    run = lib.document_of(port, "TCP_RR", "-l", "-200", *BOTH)["iterations"][0]
    ends = [run[end] for end in ("near", "far")]
    assert all(end["engine.name"] == "spin" for end in ends), ends
    assert sum(end.get("engine.empty_calls", 0) for end in ends) > 0, ends
    sleeps = [end["thread.switches_voluntary"] for end in ends]
    assert max(sleeps) < 50, sleeps
    assert all("engine.busy_poll_us" in end["unread"] for end in ends), ends
    return f"{sleeps[0]} and {sleeps[1]} voluntary switches, {ends[0].get('engine.empty_calls', 0)} empty calls"


def the_lost_are_given_up() -> str:
    """A service that drops some: each is a loss, and no other is."""
    dropped: List[int] = [0]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as echo:
        echo.bind((HOST, 0))
        echo.settimeout(PATIENCE)

        def serve() -> None:
            for number in range(1, 1000):
                data, peer = echo.recvfrom(64)
                if data == b"end":
                    return
                if number % DROPS == 0:
                    dropped[0] += 1
                else:
                    echo.sendto(data, peer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        got = lib.run([lib.netperf(), "-H", HOST, "-t", "UDP_RR", "-l", f"-{ANSWERS}", "-P", "0", "-N",
                       "--engine", "spin", "--", "-e", "1", "-P", f",{echo.getsockname()[1]}", "-r", "8,8", "-k",
                       "LOCAL_SEND_CALLS,LOCAL_RECV_CALLS,LOST_REQUESTS"], timeout=PATIENCE)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
            end.sendto(b"end", echo.getsockname())
        thread.join()
    assert got.rc == 0, got
    said = dict(line.split("=") for line in got.out.split())
    lost = int(said["LOST_REQUESTS"])
    assert lost >= dropped[0] > 0, (said, dropped)  # more if the echo was a second late
    assert int(said["LOCAL_SEND_CALLS"]) == ANSWERS + lost and said["LOCAL_RECV_CALLS"] == str(ANSWERS), said
    return f"{lost} lost, {dropped[0]} dropped"


def an_interrupt_ends_it(port: int, test: str, *args: str) -> None:
    got = lib.interrupted(lib.command(port, "-t", test, "-l", "60", "-P", "0", *BOTH, *args), timeout=20)
    assert got.rc == 0 and got.out and not got.err, got


def a_dead_far_end_ends_it(test: str) -> str:
    with lib.Daemon(args=MAY, grace=None) as daemon:
        with lib.Started(lib.command(daemon.port, "-t", test, "-l", "60", "-P", "0", *BOTH)) as client:
            assert client.measuring(), client.said()
            for pid in daemon.children():
                os.kill(pid, signal.SIGKILL)
            got = client.finish(20)
    assert got.rc not in (0, None), got
    return lib.error_line(got, "netperf")


def a_burst_is_paced(port: int) -> str:
    """Exactly as many as may start, however long it takes."""
    final = lib.document_of(port, "TCP_RR", "-l", "1", "-b", "3", "-w", "100", "--flows", "2", *BOTH)["final"]
    intervals = int(final["ELAPSED_TIME"] / 0.1) + 2
    assert 0 < final["LOCAL_SEND_CALLS"] <= 2 * 3 * intervals, final
    return f"{final['LOCAL_SEND_CALLS']} requests"


def crowded_is_said(port: int) -> str:
    """More threads than processors: there is a result, and a line about it."""
    threads = len(os.sched_getaffinity(0)) + 1
    got = lib.run(lib.command(port, "-t", "TCP_RR", "-l", f"-{10 * threads}", "--flows", str(threads), "--threads",
                              str(threads), "--engine", "spin,"), timeout=PATIENCE)
    assert got.rc == 0 and got.out, got
    said = lib.run(lib.command(port, "-t", "TCP_RR", "-l", "-10", "--engine", "spin,"), timeout=PATIENCE)
    assert f"{threads} threads" in got.err and "processors" in got.err and not said.err, (got, said)
    both = lib.run(lib.command(port, "-t", "TCP_STREAM", "-l", "-10000", "--both", "--flows", str(threads), "--threads",
                               str(threads), "--engine", "spin,"), timeout=PATIENCE)
    assert f"{2 * threads} threads" in both.err, both     # of two sessions
    return got.err.strip()


def used(pids: Sequence[int]) -> float:
    """Processor time in seconds."""
    return sum(lib.cpu_seconds(pid) for pid in pids)


def sleeps(daemon: lib.Daemon) -> bool:
    """Whether a session uses next to no processor time."""
    before = used(daemon.children())
    time.sleep(2)
    return used(daemon.children()) - before < 0.2


def the_daemon_sleeps_without_data(test: str, *args: str) -> None:
    """While the client is stopped; then it continues."""
    with lib.Daemon(args=MAY, grace=None) as daemon, \
            lib.Started(lib.command(daemon.port, "-t", test, "-l", "60", "-P", "0", "--engine", ",spin",
                                    *args)) as client:
        assert client.measuring(), client.said()
        before = used(daemon.children())
        assert lib.wait_for(lambda: used(daemon.children()) > before + 0.2, PATIENCE), "it sleeps: the test is blind"
        client.signal(signal.SIGSTOP)
        assert lib.wait_for(lambda: sleeps(daemon), PATIENCE), "it does not sleep"
        client.signal(signal.SIGCONT)
        before = used(daemon.children())
        assert lib.wait_for(lambda: used(daemon.children()) > before + 0.2, PATIENCE), "it does not go on"
        client.signal(signal.SIGINT)
        got = client.finish(PATIENCE)
    assert got.rc == 0 and got.out, got


def the_daemon_sleeps_before_data() -> None:
    """A client that has its test and connection, and sends nothing."""
    with lib.Daemon(args=MAY, grace=None) as daemon, ExitStack() as stack:
        control = stack.enter_context(attacks.calling(daemon.port, HOST))
        grant = attacks.ask(control, attacks.plan("rr", "TCP", engine="spin"))
        data = stack.enter_context(attacks.calling(ours.ports_of(grant)[0], HOST))
        assert lib.wait_for(lambda: sleeps(daemon), PATIENCE), "it does not sleep"
        data.sendall(b"x")
        assert data.recv(1), "no response"
        assert attacks.in_use(daemon, "spinning") == (1, 8)


def a_few_may_spin() -> str:
    """As many threads as allowed: a test gets fewer, another address still gets one, and then tests are refused."""
    with lib.Daemon(args=["--spin", "3"], grace=None) as daemon, ExitStack() as stack:
        def start(source: str) -> lib.Started:
            return stack.enter_context(lib.Started(
                [lib.netperf(), "-H", HOST, "-L", source, "-p", str(daemon.port), "-t", "TCP_RR", "-l", "60", "-P", "0",
                 "--flows", "4", "--threads", "4", "--engine", ",spin", *lib.PACED, "--", "-k", "REMOTE_ENGINE"]))

        for source, now in (("127.0.0.1", 2), ("127.0.0.2", 3)):
            assert start(source).measuring()
            assert attacks.in_use(daemon, "spinning") == (now, 3)
        got = lib.run(lib.command(daemon.port, "-t", "TCP_RR", "-l", "-10", "--engine", ",spin"), PATIENCE)
        assert got.rc != 0, got
        return lib.error_line(got, "netperf", "spinning threads", "--spin")


def none_may_spin() -> str:
    with lib.Daemon() as daemon:
        got = lib.run(lib.command(daemon.port, "-t", "TCP_RR", "-l", "-10", "--engine", ",spin"), PATIENCE)
        assert got.rc != 0, got
        return lib.error_line(got, "netperf", "engine spin at the daemon", "not started with --spin N, which lets")


def a_queue_is_polled(wire: placement.Wire) -> str:
    """Packets arrive through a receive queue: both ends report what the kernel says about the sockets."""
    with lib.Daemon(args=MAY, prefix=wire.server) as daemon:
        got = lib.run(lib.command(daemon.port, "-t", "TCP_RR", "-l", "-50", "--json", *BOTH, host=wire.far,
                                  prefix=wire.client), timeout=PATIENCE)
    assert got.rc == 0, got
    run = lib.document(got.out)["iterations"][0]
    if "engine.busy_poll_us" in run["near"]["unread"]:
        why = run["near"]["unread"]["engine.busy_poll_us"]
        assert any(word in why for word in ("receive queue", "not permitted", "not available")), run["near"]["unread"]
        return f"not here: {why}"
    for end in ("near", "far"):
        assert run[end]["engine.busy_poll_us"] > 0, run[end]
        preferred = run[end].get("engine.prefer_busy_poll") == 1
        assert preferred or run[end]["unread"]["engine.prefer_busy_poll"], run[end]
    polled = run["near"].get("moved.netstat.TcpExt.BusyPollRxPackets", 0)
    return f"{run['near']['engine.busy_poll_us']} us, {polled} packets by polling"


def over_a_wire(report: lib.Report) -> None:
    if report.lacks("a queue is polled", lib.no_lab() or ("" if shutil.which("ethtool") else "no program ethtool")):
        return
    with placement.Wire() as wire:
        report.case("a queue is polled", partial(a_queue_is_polled, wire))


def suite(report: lib.Report) -> None:
    with lib.Daemon(args=MAY) as daemon:
        port = daemon.port
        for args, says in REFUSED:
            report.case(f"refused: {args}", partial(lib.refused, port, args, list(says)))
        report.case("refused: at the far end", partial(refused_there, port))
        report.case("an interrupt ends it: TCP_STREAM", partial(an_interrupt_ends_it, port, "TCP_STREAM"))
        report.case("an interrupt ends it: UDP_RR", partial(an_interrupt_ends_it, port, "UDP_RR", "--flows", "3"))
        report.each((none_may_spin, a_few_may_spin, the_daemon_sleeps_before_data))
        report.case("the daemon sleeps without data: TCP_RR", partial(the_daemon_sleeps_without_data, "TCP_RR"))
        report.case("the daemon sleeps without data: TCP_MAERTS", partial(the_daemon_sleeps_without_data, "TCP_MAERTS"))
        report.case("a dead far end ends it: TCP_RR", partial(a_dead_far_end_ends_it, "TCP_RR"))
        report.case("a dead far end ends it: TCP_MAERTS", partial(a_dead_far_end_ends_it, "TCP_MAERTS"))
        report.case("the lost are given up", the_lost_are_given_up)
        report.case("more threads than processors", partial(crowded_is_said, port))
        if report.lacks("documents", lib.no_documents()):
            return
        report.each((it_never_sleeps, a_burst_is_paced), port)
        report.case("each has a pace", partial(flows.each_has_a_pace, port, 1, "spin,spin"))
    over_a_wire(report)


if __name__ == "__main__":
    lib.main(suite)
