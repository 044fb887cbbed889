# netvm: modules tls
"""Tests over TLS: both ends count the same bytes and the same records, and TCP carries what the arithmetic
of doc/ceilings.md says, under each cipher and engine, over a slow link, and without the module."""

import os
import re
import signal
import time
from typing import Any, Dict, List, NamedTuple

import lib

COST = 22                   # bytes of a record beside its payload
FRAME = 14 + 20 + 20 + 12   # of a frame beside its segment's; a SYN has 8 more
QUEUE = 300_000             # bytes that may wait for a slow link
CIPHERS = ("aes128-gcm", "aes256-gcm", "chacha20-poly1305")
STREAMS = ("TLS_STREAM", "TLS_SENDFILE")


class Ends(NamedTuple):
    """What both ends reported of a test."""
    near: Dict[str, Any]
    far: Dict[str, Any]
    figures: Dict[str, Any]


def test(command: List[str], *options: str) -> Ends:
    out = lib.must([*command, "--json", *options], 60)
    last = lib.document(out)["iterations"][-1]
    return Ends(last["near"], last["far"], last["metrics"])


def overhead(sender: Dict[str, Any], receiver: Dict[str, Any], connections: int = 1) -> float:
    """Bytes that arrived beside data, records and the alert: those of the handshake, and FIN."""
    return float(receiver["tcp.bytes_received"] - sender["flow.bytes_sent"] -
                 COST * sender["tls.records_sent"]) / connections - 2


def same_stream(ends: Ends, what: str, alerts: int = 0) -> None:
    """alerts: as many may be sent behind the one at which the receiver ends."""
    near, far = ends.near, ends.far
    for sent, received in (("flow.bytes_sent", "flow.bytes_received"), ("tls.records_sent", "tls.records_received")):
        extra = near[sent] - far[received]
        assert far[received] > 0 and 0 <= extra <= (alerts if sent.startswith("tls") else 0), (
            f"{what}: {sent} {near[sent]}, {received} {far[received]}")
    for end in (near, far):
        assert end["tls.encrypted_by"] == end["tls.decrypted_by"] == "software", what


def streams(command: List[str]) -> None:
    seen = set()
    for name in STREAMS:
        for length in ("-2000000", "0.5"):
            ends = test(command, "-t", name, "-l", length)
            same_stream(ends, f"{name} -l {length}")
            assert ends.near["tls.records_sent"] == ends.near["flow.sends"] + 1, "a send is a record, and the end an alert"
            seen.add(overhead(ends.near, ends.far))
    assert len(seen) == 1 and 200 < min(seen) < 1000, f"handshakes differ: {seen}"
    ends = test(command, "-t", "TLS_STREAM", "-l", "-500000", "--", "-m", "40000")
    same_stream(ends, "three records a send")
    assert ends.near["tls.records_sent"] == 3 * ends.near["flow.sends"] + 1, ends.near
    assert overhead(ends.near, ends.far) == min(seen), ends.near


def backwards(command: List[str]) -> None:
    ends = test(command, "-t", "TLS_MAERTS", "-l", "-1000000")
    assert ends.near["flow.bytes_received"] >= 1000000, ends.near
    assert 0 < ends.near["tls.records_received"] <= ends.far["tls.records_sent"], ends


def transactions(command: List[str]) -> None:
    for sizes, records in (("1,1", (1, 1)), ("40000,20000", (3, 2))):
        ends = test(command, "-t", "TLS_RR", "-l", "-40", "--", "-r", sizes)
        near, far = ends.near, ends.far
        assert near["flow.transactions"] == far["flow.transactions"] == 40, (near, far)
        assert near["flow.bytes_sent"] == far["flow.bytes_received"], (near, far)
        assert near["tls.records_sent"] == 40 * records[0] + 1, near    # and the alert
        assert far["tls.records_sent"] == 40 * records[1], far
    ends = test(command, "-t", "TLS_CRR", "-l", "-4")
    assert ends.near["flow.transactions"] == ends.far["flow.transactions"] == 4, ends
    ends = test(command, "-t", "TLS_CRR", "-l", "4")
    assert 0 < ends.near["flow.transactions"] <= ends.far["flow.transactions"], ends


def ciphers(command: List[str]) -> None:
    for cipher in CIPHERS:
        ends = test(command, "-t", "TLS_STREAM", "-l", "-300000", "--", "--tls-cipher", cipher)
        same_stream(ends, cipher)
        assert ends.near["tls.cipher"].lower().replace("aes-", "aes", 1) == cipher, ends.near["tls.cipher"]
    got = lib.run([*command, "-t", "TLS_CRR", "-l", "-2", "-P", "0", "--", "--tls-cipher", CIPHERS[2], "-k",
                   "PROTOCOL,PROTOCOL_DETAIL"], 60)
    assert "PROTOCOL=TLS\nPROTOCOL_DETAIL=TLS 1.3 ChaCha20-Poly1305, kernel (software) both ways" in got.out, got


def engines(command: List[str]) -> None:
    for engine in ("epoll", "spin"):
        for name in STREAMS:
            same_stream(test(command, "-t", name, "-l", "0.5", "--engine", engine), f"{engine} {name}")
        ends = test(command, "-t", "TLS_RR", "-l", "-30", "--engine", engine)
        assert ends.near["flow.transactions"] == ends.far["flow.transactions"] == 30, ends
    same_stream(test(command, "-t", "TLS_STREAM", "-l", "0.5", "--flows", "5", "--threads", "2"), "5 flows")
    same_stream(test(command, "-t", "TLS_STREAM", "-l", "-300000", "--", "-V"), "splice")
    same_stream(test(command, "-t", "TLS_STREAM", "-l", "-300000", "--", "-I"), "write")
    for engine in ("zerocopy", "batch", "segment"):
        got = lib.run([*command, "-t", "TLS_STREAM", "-l", "1", "--engine", engine], 60)
        assert got.rc == 1 and got.err.count("\n") == 1 and f"--engine {engine}: " in got.err, got
    got = lib.run([*command, "-t", "TCP_STREAM", "--", "--tls-cipher", CIPHERS[0]], 60)
    assert got.rc == 1 and "--tls-cipher: TCP_STREAM does not encrypt" in got.err, got


def never_read() -> None:
    """What a client has not read stays in its session, and is not left to the kernel for minutes."""
    def orphans() -> int:
        with open("/proc/net/sockstat", encoding="ascii") as file:
            return int(re.findall(r"^TCP: .* orphan ([0-9]+)", file.read(), re.M)[0])

    daemon = lib.Daemon(grace=None)
    with daemon, lib.Started(lib.command(daemon.port, "-t", "TLS_MAERTS", "-l", "60", "--flows", "4")) as client:
        assert client.measuring()
        time.sleep(4)   # it may have yet to shake hands
        client.signal(signal.SIGSTOP)
        assert lib.wait_for(lambda: re.search(r"^ESTAB +0 +[1-9]", lib.run(["ss", "-tn"], 20).out, re.M) is not None,
                            20), "no data are left unread"
        for session in daemon.children():
            os.kill(session, signal.SIGTERM)
        assert lib.wait_for(lambda: not daemon.children(), 60), "the session stays"
        assert lib.wait_for(lambda: orphans() == 0, 20), f"{orphans()} connections are left"


def slow_link() -> None:
    """A send that is cut short leaves a part of a record behind: it arrives nevertheless."""
    with lib.Lab("t19", "--rate", "8mbit", "--delay", "5ms") as lab:
        server = lib.Started([*lab.server, lib.netserver(), "-D", "-4"])
        client = [*lab.client, lib.netperf(), "-H", "10.77.0.2"]
        with server:
            assert lib.wait_for(lambda: lib.run([*client, "-t", "UUID"], 20).rc == 0, 20)
            for more in ([], ["--flows", "4"], ["--", "-s", "4K", "-m", "100000"]):
                ends = test(client, "-t", "TLS_STREAM", "-l", "1", *more)
                same_stream(ends, f"8 Mbit/s {more}", alerts=100)
                near = ends.near
                frames = near["tcp.bytes_sent"] + FRAME * near["tcp.segments_out"] + 8 * near.get("tcp.connections", 1)
                # The interface's own packets (IPv6 looks for routers) are few. What still waits in the queue when
                # the window closes is counted by TCP alone.
                beside = near["moved.nic.tx_bytes"] - frames
                assert -QUEUE <= beside < 600, (near["moved.nic.tx_bytes"], frames)


def without_module(command: List[str]) -> None:
    with open("/proc/sys/kernel/modprobe", encoding="ascii") as file:
        before = file.read()
    try:
        with open("/proc/sys/kernel/modprobe", "w", encoding="ascii") as file:
            file.write("/nonexistent\n")
        assert lib.wait_for(lambda: lib.run(["rmmod", "tls"], 20).rc == 0, 20), "tls is in use"
        got = lib.run([*command, "-t", "TLS_STREAM", "-l", "1"], 60)
        assert got.rc == 1, got
        assert got.err == ("netperf: TLS_STREAM: this kernel has no TLS (try 'modprobe tls'; its option is "
                           "CONFIG_TLS)\n"), got.err
    finally:
        with open("/proc/sys/kernel/modprobe", "w", encoding="ascii") as file:
            file.write(before)


def suite(report: lib.Report) -> None:
    with lib.Daemon(args=["--spin", "4"]) as daemon:
        command = [lib.netperf(), "-H", "127.0.0.1", "-p", str(daemon.port)]
        report.each((streams, backwards, transactions, ciphers, engines), command)
        report.each((never_read, slow_link))
        report.case("without the module one line says so", lambda: without_module(command))


lib.main(suite)
