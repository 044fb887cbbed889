"""The engine zerocopy (--engine): both ends count the same; documents prove that the kernel used the buffers and
returned them, and that received data was not copied; if either end dies or is interrupted while the kernel has
buffers, the other ends in time. On lo, the kernel copies all these buffers when they are received.
"""

import os
import signal
import time
from functools import partial
from typing import Any, Dict, List, Tuple

import alone
import lib

HOST = "127.0.0.1"
PATIENCE = 60
BOTH = ("--engine", "zerocopy,zerocopy")
HEADER = 20  # of a numbered datagram, which is read

# Options, and the error line about them.
REFUSED = (
    ("-t TCP_RR --engine zerocopy", ("--engine zerocopy", "TCP_RR", "streams")),
    ("-t UDP_RR --engine ,zerocopy", ("zerocopy", "streams")),
    ("-t TCP_CRR --engine zerocopy", ("--engine zerocopy", "streams")),
    ("-t STREAM_STREAM --engine zerocopy", ("--engine zerocopy", "TCP and UDP")),
    ("-t TCP_MAERTS --engine zerocopy -k 1", ("--engine zerocopy", "-k")),
    ("-t TCP_STREAM --engine ,zerocopy -K 1,1", ("engine zerocopy at the daemon", "-K")),
    ("-t TCP_STREAM --engine zerocopy -- -I", ("--engine zerocopy", "-I")),
    ("-t TCP_STREAM --engine ,zerocopy -- -V", ("engine zerocopy at the daemon", "-V")),
)
# Counted: everything sent is received. test_zerocopy has flows, threads, and the engine at one end only.
COUNTED = (
    "TCP_STREAM -l -3000001 --flows 3 -b 4 -w 1",
    "TCP_MAERTS -l -30000001 -- -M 500000",
    "TCP_STREAM -l -30000001 -k 100 -W 3,3",
    "TCP_STREAM -l -30000001 -- -m 16M",
    "TCP_STREAM -l -3000001 -6",
)


def document_of(port: int, test: str, *args: str) -> Any:
    return lib.document_of(port, test.replace(" -6", ""), *args, host="::1" if " -6" in test else HOST)


def ends_of(document: Any) -> Tuple[Dict[str, int], Dict[str, int]]:
    """Transmitter and receiver."""
    one = document["iterations"][0]
    ends = one["near"], one["far"]
    return ends if one["near"]["flow.role"] == "transmit" else ends[::-1]


def lent_and_back(tx: Dict[str, Any], unsent: int = 0) -> int:
    """MSG_ZEROCOPY was used for everything, and 100 % copied, except for at most `unsent` that a timed test left
    unsent."""
    lent = tx["engine.zerocopy_sends"]
    assert tx["engine.name"] == "zerocopy", tx
    assert lent >= tx["engine.zerocopy_completions"] >= tx["engine.zerocopy_copied"] >= lent - unsent, tx
    assert lent + tx.get("engine.zerocopy_refused", 0) == tx["flow.sends"], tx
    return lent


def counts_agree(port: int, test: str) -> str:
    document = document_of(port, test, *BOTH)
    tx, rx = ends_of(document)
    wanted = -int(test.split("-l ")[1].split()[0])
    sent, received = tx["flow.bytes_sent"], rx["flow.bytes_received"]
    assert sent == received == rx["engine.bytes_truncated"] >= wanted, (sent, received, rx)
    return f"{lent_and_back(tx)} sends were asked for, 100 % copied"


def a_file_is_sent_as_ever(port: int) -> None:
    tx, rx = ends_of(document_of(port, "TCP_SENDFILE -l -30000001", *BOTH))
    assert tx["engine.name"] == "zerocopy" and "engine.zerocopy_sends" not in tx, tx
    assert tx["flow.bytes_sent"] == rx["flow.bytes_received"] == rx["engine.bytes_truncated"], (tx, rx)


def datagrams_are_accounted_for(port: int, *options: str) -> str:
    """The number in each datagram is read, and no more; every loss is counted."""
    tx, rx = ends_of(document_of(port, "UDP_STREAM", "-l", "1", *BOTH, *options))
    assert lent_and_back(tx) == rx["udp.sent"] == tx["flow.sends"], (tx, rx)
    assert rx["udp.received"] == rx["udp.unique"] == rx["flow.receives"], rx
    assert rx["udp.lost"] == rx["udp.sent"] - rx["udp.unique"], rx
    # What was drained after the end counts as received, too.
    assert rx["engine.bytes_truncated"] == rx["udp.received"] * (1400 - HEADER), rx
    return f"{rx['udp.lost']} of {rx['udp.sent']} lost"


def a_warm_up_does_not_count(port: int, test: str, *options: str) -> None:
    tx, _ = ends_of(document_of(port, test, "-l", "1", "--warm-up", "0.3", *BOTH, *options))
    lent_and_back(tx, 4 * tx["flow.sndbuf"] // tx["flow.send_size"])     # at most four flows


def what_stays_unread_hides_no_counters(port: int) -> str:
    """The daemon disconnects what the client does not read, but not before it has read the kernel's figures."""
    tx, rx = ends_of(document_of(port, "TCP_MAERTS", "-l", "0.3", "--flows", "4", *BOTH, "--", "-s", "65536", "-S", "65536"))
    assert tx["tcp.bytes_acked"] >= rx["flow.bytes_received"] > 0, (tx, rx)
    return f"{tx['tcp.bytes_acked']} bytes acknowledged, {rx['flow.bytes_received']} received"


def interrupted(port: int, test: str, *options: str) -> str:
    """The result has what was moved until then."""
    got = lib.interrupted(lib.command(port, "-t", test, "-l", "60", *BOTH, *options), timeout=20)
    assert got.rc == 0 and len(got.out.splitlines()) > 1 and got.seconds < 60, got
    return f"{got.seconds:.1f} s"


def the_client_reads_no_more(port: int) -> str:
    """At the end of a test, with data in flight and closed windows: the daemon does not wait for acknowledgements."""
    got = lib.run(lib.command(port, "-t", "TCP_MAERTS", "-l", "0.5", "--flows", "40", *BOTH, "--", "-s", "65536", "-S",
                              "65536"), 40)
    assert got.rc == 0, got
    return f"{got.seconds:.1f} s"


def session_of(daemon: lib.Daemon) -> int:
    """Once the test runs: at its start a process that forks sessions does not have its name yet."""
    assert lib.wait_for(lambda: bool(daemon.children()), 20), "no session"
    return daemon.children()[0]


def the_far_end_hangs(test: str, *options: str) -> str:
    """It reads nothing, and the kernel keeps the buffers: two signals end the wait."""
    with lib.Daemon() as daemon:
        cmd = lib.command(daemon.port, "-t", test, "-l", "60", *BOTH, *options)
        with lib.Started(cmd) as client:
            assert client.measuring(), client.said()
            session = session_of(daemon)
            os.kill(session, signal.SIGSTOP)
            time.sleep(0.3)
            begun = time.monotonic()
            while client.running() and time.monotonic() - begun < 20:
                client.signal(signal.SIGINT)
                time.sleep(0.2)
            got = client.finish(1)
            os.kill(session, signal.SIGCONT)
    assert got.rc not in (0, None), got
    lib.error_line(got, "netperf", "interrupted")
    return f"{time.monotonic() - begun:.1f} s"


def the_far_end_dies(test: str) -> None:
    with lib.Daemon() as daemon:
        cmd = lib.command(daemon.port, "-t", test, "-l", "60", *BOTH)
        with lib.Started(cmd) as client:
            assert client.measuring(), client.said()
            session = session_of(daemon)
            os.kill(session, signal.SIGKILL)
            got = client.finish(20)
    assert got.rc not in (0, None), got
    lib.error_line(got, "netperf", "partial")


def the_client_dies(test: str) -> None:
    """Its session does not wait for what it was to send."""
    with lib.Daemon() as daemon:
        cmd = lib.command(daemon.port, "-t", test, "-l", "60", *BOTH)
        with lib.Started(cmd) as client:
            assert client.measuring(), client.said()
            assert daemon.children(), "no session"
            client.signal(signal.SIGKILL)
            client.finish(20)
        assert lib.wait_for(lambda: not daemon.children(), 30), daemon.log()


def little_may_be_lent(limit: int, *options: str) -> str:
    """The sender waits, or data is copied; nothing fails."""
    got = alone.under("core/optmem_max", str(limit), PATIENCE, *lib.command(
        12865, "-t", "TCP_STREAM", "-l", "-10000000", "--json", *BOTH, *options))
    assert got.rc == 0, got
    tx, rx = ends_of(lib.document(got.out))
    uncopied, copied = tx.get("engine.zerocopy_sends", 0), tx.get("engine.zerocopy_refused", 0)
    assert uncopied + copied == tx["flow.sends"] and tx.get("engine.zerocopy_completions", 0) == uncopied, tx
    assert tx["flow.bytes_sent"] == rx["flow.bytes_received"] >= 10000000, (tx, rx)
    assert (uncopied == 0) == (limit < 1000), tx
    assert ("of the sends were copied" in got.err) == (copied > uncopied), got.err
    return f"{uncopied} sent without a copy, {copied} refused"


def refused(port: int, args: str, says: List[str]) -> None:
    got = lib.run(lib.command(port, "-l", "1", *args.split()), timeout=20)
    assert got.rc not in (0, None), got
    lib.error_line(got, "netperf", *says)


def lacking() -> str:
    """What this machine lacks, according to the list."""
    got = lib.run([lib.netperf(), "-t", "TCP_STREAM", "--engine", "list"], timeout=20)
    row = next(row for row in got.out.splitlines() if row.split()[0] == "zerocopy")
    return row.partition("not here: ")[2]


def documents(report: lib.Report, port: int) -> None:
    for test in COUNTED:
        report.case(f"counts agree: {test}", partial(counts_agree, port, test),
                    unless="" if "-6" not in test or lib.has_ipv6() else "no IPv6 here")
    report.case("a file is sent as ever", partial(a_file_is_sent_as_ever, port))
    report.cases([
        ("datagrams are accounted for",
         partial(datagrams_are_accounted_for, port, *lib.PACED, "--", "-m", "1400")),
        ("a warm-up does not count: TCP_STREAM", partial(a_warm_up_does_not_count, port, "TCP_STREAM")),
        ("a warm-up does not count: TCP_MAERTS, flows",
         partial(a_warm_up_does_not_count, port, "TCP_MAERTS", "--flows", "4", "--threads", "2")),
        ("what stays unread hides no counters", partial(what_stays_unread_hides_no_counters, port)),
    ], 3)


def suite(report: lib.Report) -> None:
    if report.lacks("zerocopy", lacking()):
        return
    with lib.Daemon() as daemon:
        for args, says in REFUSED:
            report.case(f"refused: {args}", partial(refused, daemon.port, args, list(says)))
        if not report.lacks("documents", lib.no_documents()):
            documents(report, daemon.port)
        for test in ("TCP_STREAM", "TCP_MAERTS", "UDP_STREAM"):
            report.case(f"interrupted: {test}", partial(interrupted, daemon.port, test))
        report.case("the client reads no more: TCP_MAERTS, flows", partial(the_client_reads_no_more, daemon.port))
        report.case("interrupted: TCP_MAERTS, flows", partial(interrupted, daemon.port, "TCP_MAERTS", "--flows", "4"))
    if lib.has_documents():
        report.cases([(f"little memory for buffers: {limit} {' '.join(options)}", partial(little_may_be_lent, limit, *options))
                      for limit in (4000, 100) for options in ((), ("--flows", "5"))], 4)
    report.case("the far end hangs: TCP_STREAM", partial(the_far_end_hangs, "TCP_STREAM"))
    report.case("the far end hangs: TCP_STREAM, flows", partial(the_far_end_hangs, "TCP_STREAM", "--flows", "3"))
    report.case("the far end dies: TCP_STREAM", partial(the_far_end_dies, "TCP_STREAM"))
    report.case("the client dies: TCP_MAERTS", partial(the_client_dies, "TCP_MAERTS"))


if __name__ == "__main__":
    lib.main(suite)
