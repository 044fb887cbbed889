# netvm: modules vsock_loopback
# netvm: with tests/unit/test_transport
"""VSOCK: control and data without IP, the counts of both ends, whom the daemon admits, buffers, errors."""

import contextlib
import os
import socket
import sys
from typing import Any, Iterator

import lib

BIN = os.path.join(os.environ["top_builddir"], "tests/unit")


def connects(cid: int, port: int) -> bool:
    with socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM) as one:
        one.settimeout(5)
        return one.connect_ex((cid, port)) == 0


@contextlib.contextmanager
def daemon(port: int, *args: str) -> Iterator[lib.Started]:
    with lib.Started([lib.netserver(), "-D", "-L", "vsock:any", "-p", str(port), *args]) as one:
        assert lib.wait_for(lambda: connects(1, port), 20), one.said()
        yield one


def netperf(port: int, *words: str) -> lib.Result:
    return lib.run([lib.netperf(), "-H", "vsock:1", "-p", str(port), *words], timeout=60)


def run(port: int, *words: str) -> Any:
    got = netperf(port, "--json", *words)
    assert got.rc == 0, got.err
    return lib.document(got.out)


def the_counts_agree(port: int, test: str, *words: str) -> None:
    document = run(port, "-t", test, *words)
    final = document["final"]
    assert final["PROTOCOL"] == "VSOCK" and document["far"]["peer"] == f"vsock:1 port {port}", document
    assert final["LOCAL_BYTES_SENT"] == final["REMOTE_BYTES_RECVD"] > 0, final
    # What is answered when the time is up is not read any more.
    assert 0 <= final["REMOTE_BYTES_SENT"] - final["LOCAL_BYTES_RECVD"] <= max(final["RESPONSE_SIZE"] or 0, 0), final
    if "SEQPACKET_STREAM" in test:
        assert final["LOCAL_SEND_CALLS"] == final["REMOTE_RECV_CALLS"] > 0, final
        assert final["SOCKET_TYPE"] == "Seqpacket", final
    # Nothing of TCP or of IP is claimed.
    assert final["TRANSPORT_MSS"] is None and final["LOCAL_TRANSPORT_RETRANS"] is None, final
    evidence = [name for end in ("near", "far") for name in document["iterations"][0].get(end) or {}]
    assert not [name for name in evidence if name.startswith(("tcp.", "ip."))], evidence


def the_buffers_are_read_back(port: int) -> None:
    final = run(port, "-t", "VSOCK_STREAM", "-l", "-1m", "--", "-s", "100000", "-S", "1000000")["final"]
    assert (final["LSS_SIZE"], final["LSR_SIZE"]) == (100000, 100000), final
    assert (final["RSS_SIZE"], final["RSR_SIZE"], final["RSR_SIZE_END"]) == (1000000,) * 3, final


def a_message_may_be_too_long(port: int) -> None:
    got = netperf(port, "-t", "VSOCK_SEQPACKET_STREAM", "-l", "1", "--", "-m", "300000")
    lib.error_line(got, "netperf", "300000 bytes", "far end's buffer")


def a_strangers_cid_is_not_admitted(port: int) -> None:
    """The one of the control connection counts, and no other that a client may name."""
    got = netperf(port, "-t", "VSOCK_RR", "-l", "1", "--", "-L", "vsock:any")
    lib.error_line(got, "netperf", "vsock:any", "only with", "vsock:1")


def an_ip_test_needs_a_host_of_ip(port: int) -> None:
    lib.error_line(netperf(port, "-l", "1"), "netperf", "vsock:1", "-- -H HOST")
    final = run(port, "-t", "TCP_RR", "-l", "-50", "--", "-H", "127.0.0.1")["final"]
    assert final["PROTOCOL"] == "TCP" and final["LOCAL_BYTES_SENT"] == 50, final
    final = run(port, "-t", "UDP_RR", "-l", "-50", "--", "-H", "127.0.0.1")["final"]
    assert final["PROTOCOL"] == "UDP" and final["LOCAL_BYTES_SENT"] == 50, final


def rules_are_for_cids() -> None:
    port = 23610
    with daemon(port, "--allow", "127.0.0.0/8,vsock:7"):
        got = netperf(port, "-t", "VSOCK_RR", "-l", "1")
        assert got.rc != 0, got
    with daemon(port + 1, "--allow", "vsock:1"):
        run(port + 1, "-t", "VSOCK_RR", "-l", "-20")
    with daemon(port + 2, "--deny", "vsock:any"):
        assert netperf(port + 2, "-t", "VSOCK_RR", "-l", "1").rc != 0
    with daemon(port + 3, "--max-per-address", "1"), socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM):
        for _ in range(20):     # connects() was a session, too, which may last for a while
            with lib.Started([lib.netperf(), "-H", "vsock:1", "-p", str(port + 3), "-t", "VSOCK_RR", "-l", "4"]) as first:
                assert first.measuring()
                got = netperf(port + 3, "-t", "VSOCK_RR", "-l", "1")
                done = first.finish(30)
            if done.rc == 0:
                break
        assert done.rc == 0, done
        lib.error_line(got, "netperf", "--max-per-address")


def a_wide_port_is_one() -> None:
    port = 3000000000
    with daemon(port):
        assert run(port, "-t", "VSOCK_RR", "-l", "-20", "--", "-P", "0,3000000001")["final"]["DEST_PORT"] == "3000000001"


def without_ip() -> None:
    """In a network namespace where not even the loopback is up."""
    port = 23620
    with daemon(port):
        lib.must(["unshare", "-n", lib.netperf(), "-H", "vsock:1", "-p", str(port), "-t", "VSOCK_RR", "-l", "-20"],
                 timeout=60)


def a_service_manager_hands_it_down() -> None:
    port = 23630
    with socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM) as listener:
        listener.bind((socket.VMADDR_CID_ANY, port))
        listener.listen()
        start = (f"import os, sys; os.dup2({listener.fileno()}, 3); os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS='1'); "
                 "os.execv(sys.argv[1], sys.argv[1:])")
        with lib.Started([sys.executable, "-c", start, lib.netserver(), "-D"], pass_fds=[listener.fileno()]):
            run(port, "-t", "VSOCK_RR", "-l", "-20")


def suite(report: lib.Report) -> None:
    port = 23600
    with daemon(port, "--spin", "4"):
        for test in ("VSOCK_STREAM", "VSOCK_SEQPACKET_STREAM"):
            for words in (("-l", "0.5"), ("-l", "-1m", "--engine", "epoll", "--flows", "3"),
                          ("-l", "-1m", "--", "-m", "1000", "-M", "100")):
                report.case(f"{test} {' '.join(words)}", lambda t=test, w=words: the_counts_agree(port, t, *w))
        for test in ("VSOCK_RR", "VSOCK_SEQPACKET_RR"):
            for words in (("-l", "0.5"), ("-l", "-60", "--flows", "3", "--engine", "spin"),
                          ("-l", "-20", "--", "-r", "1000,60000")):
                report.case(f"{test} {' '.join(words)}", lambda t=test, w=words: the_counts_agree(port, t, *w))
        for body in (the_buffers_are_read_back, a_message_may_be_too_long, a_strangers_cid_is_not_admitted,
                     an_ip_test_needs_a_host_of_ip):
            report.case(body.__name__.replace("_", " "), lambda b=body: b(port))
    for alone in (rules_are_for_cids, a_wide_port_is_one, without_ip, a_service_manager_hands_it_down):
        report.case(alone.__name__.replace("_", " "), alone)
    got = lib.run([os.path.join(BIN, "test_transport")], timeout=120)
    report.check("the unit test in the guest", got.rc == 0 and "VSOCK does not reach" not in got.out + got.err, got.err)


lib.main(suite)
