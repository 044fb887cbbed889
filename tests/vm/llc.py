# netvm: modules llc2 veth
"""Connections of the link layer: DLCO_STREAM and DLCO_RR between the two ends of a veth pair."""

import subprocess
from typing import Any, Sequence

import lib

NEAR, FAR = "d19a", "d19b"


def command(port: int, test: str, length: str, *options: str, devices: str = f"{NEAR},{FAR}") -> Sequence[str]:
    return lib.command(port, "-t", test, "-l", length, "--json", "--", "--device", devices, *options)


def run(port: int, test: str, length: str, *options: str) -> Any:
    for _ in range(3):  # on a busy machine Linux's LLC2 at times acknowledges no end, and the client says so
        got = lib.run(command(port, test, length, *options), timeout=60)
        if "did not acknowledge the end" not in got.err:
            break
    assert got.rc == 0, got.err
    return lib.document(got.out), got.err


def the_counts_agree(port: int) -> None:
    """Or the client says how many bytes the kernel has lost."""
    for length, options in (("1", []), ("-50000", ["-m", "100"]), ("-100000", ["-m", "20000"])):
        document, said = run(port, "DLCO_STREAM", length, *options)
        final = document["final"]
        sent, received = final["LOCAL_BYTES_SENT"], final["REMOTE_BYTES_RECVD"]
        assert received > 0, (length, sent)
        lost = f"{sent - received} of {sent} bytes were acknowledged, and did not arrive"
        assert (lost in said) == (sent != received), (sent, received, said)
        assert document["iterations"][0]["near"]["llc.tx_window"] > 0


def transactions_agree(port: int) -> None:
    final = run(port, "DLCO_RR", "-40", "-r", "10,3000")[0]["final"]
    assert final["LOCAL_BYTES_SENT"] == final["REMOTE_BYTES_RECVD"] == 400, final["LOCAL_BYTES_SENT"]
    assert final["LOCAL_BYTES_RECVD"] == final["REMOTE_BYTES_SENT"] == 120000, final["REMOTE_BYTES_SENT"]


def refused(port: int, devices: str, *words: str) -> None:
    got = lib.run(command(port, "DLCO_STREAM", "1", devices=devices), timeout=30)
    assert got.rc != 0 and all(word in got.err for word in words), got.err


def suite(report: lib.Report) -> None:
    for line in (f"link add {NEAR} type veth peer name {FAR}", f"link set {NEAR} up", f"link set {FAR} up"):
        subprocess.run(["ip", *line.split()], check=True)
    assert lib.wait_for(lambda: "state UP" in lib.run(["ip", "link", "show", FAR], 10).out, 10)
    try:
        with lib.Daemon(args=["--allow-raw"]) as daemon:
            port = daemon.port
            report.each((the_counts_agree, transactions_agree), port)
            report.case("no loopback", lambda: refused(port, "lo,lo", "LLC2 has no loopback"))
            report.case("no such interface", lambda: refused(port, f"{NEAR},nosuch", "no interface nosuch"))
        with lib.Daemon() as daemon:
            port = daemon.port
            report.case("not without --allow-raw", lambda: refused(port, f"{NEAR},{FAR}", "--allow-raw"))
    finally:
        subprocess.run(["ip", "link", "del", NEAR], check=False)


lib.main(suite)
