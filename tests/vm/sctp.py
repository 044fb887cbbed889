# netvm: modules sctp
# netvm: real netperf
"""SCTP between two namespaces with two wires: both ends' counts, the real netperf at either end, planted drops,
strangers, several paths."""

import re
import socket
import subprocess
import time

import lib
import strangers

A, B = ["ip", "netns", "exec", "s19a"], ["ip", "netns", "exec", "s19b"]
WIRES = (("s19a", "v0", "10.9.1.1", "fd00:1::1"), ("s19b", "v1", "10.9.1.2", "fd00:1::2"),
         ("s19a", "w0", "10.9.2.1", "fd00:2::1"), ("s19b", "w1", "10.9.2.2", "fd00:2::2"))
PACED = ("-b", "1", "-w", "100ms")
COUNTS = ("LOCAL_BYTES_SENT", "REMOTE_BYTES_RECVD", "REMOTE_BYTES_SENT", "LOCAL_BYTES_RECVD", "LOCAL_TRANSPORT_RETRANS",
          "PROTOCOL", "PROTOCOL_DETAIL")


def build() -> None:
    lib.ip("netns add s19a", "netns add s19b")
    for near, far in (("v0", "v1"), ("w0", "w1")):
        lib.ip(f"link add {near} type veth peer name {far}")
    for name, device, four, six in WIRES:
        lib.ip(f"link set {device} netns {name}", *(f"-n {name} {words}" for words in (
            f"addr add {four}/24 dev {device}", f"addr add {six}/64 dev {device} nodad", f"link set {device} up",
            "link set lo up")))
    for end in (A, B):  # a path is confirmed in fractions of a second
        sctp_timer(end, "rto_min", 500), sctp_timer(end, "rto_initial", 600), sctp_timer(end, "hb_interval", 300)


def sctp_timer(end: "list[str]", name: str, value: int) -> None:
    lib.must([*end, "sh", "-c", f"echo {value} > /proc/sys/net/sctp/{name}"])


def client(program: str, port: int, *words: str) -> lib.Result:
    return lib.run([*A, program, "-H", "10.9.1.2", "-p", str(port), *words], 60)


def figures(program: str, port: int, *words: str) -> "dict[str, str]":
    """A test by the client of that program; its last word is a list of test options."""
    got = client(program, port, *words, "-k", ",".join(COUNTS if program == lib.netperf() else COUNTS[:-1]))
    assert got.rc == 0, f"status {got.rc}: {got.err}"
    return dict(re.findall(r"^(\w+)=(.*)$", got.out, re.M))


def agree(seen: "dict[str, str]") -> str:
    assert seen["PROTOCOL"] == "SCTP", seen
    assert seen["LOCAL_BYTES_SENT"] == seen["REMOTE_BYTES_RECVD"], seen
    assert seen["LOCAL_BYTES_RECVD"] == seen["REMOTE_BYTES_SENT"], seen
    assert int(seen["LOCAL_BYTES_SENT"]) + int(seen["LOCAL_BYTES_RECVD"]) > 0, seen
    return f"{seen['LOCAL_BYTES_SENT']} bytes there, {seen['LOCAL_BYTES_RECVD']} back"


OMNI = {
    "send, timed": ["-t", "omni", "-l", "1", "--", "-T", "sctp", "-d", "send", "-m", "1400"],
    "send, counted": ["-t", "omni", "-l", "-140000", "--", "-T", "sctp", "-d", "send", "-m", "1400"],
    "rr, counted": ["-t", "omni", "-l", "-200", "--", "-T", "sctp", "-d", "rr", "-r", "100,200"],
}
OURS = {
    "SCTP_STREAM": ["-t", "SCTP_STREAM", "-l", "0.5", "--", "-m", "1400"],
    "SCTP_STREAM -D -G 1200 -m 3000": ["-t", "SCTP_STREAM", "-l", "0.5", "--", "-D", "-G", "1200", "-m", "3000"],
    "SCTP_STREAM -N 100": ["-t", "SCTP_STREAM", "--", "-m", "1000", "-N", "100"],
    "SCTP_STREAM_MANY": ["-t", "SCTP_STREAM_MANY", "-l", "0.5", "--", "-m", "1400", "-T", "3"],
    "SCTP_RR": ["-t", "SCTP_RR", "-l", "-200", "--", "-r", "3000,2000"],
    "SCTP_RR_MANY": ["-t", "SCTP_RR_MANY", "-l", "-200", "--", "-T", "4"],
    "OMNI with a connection for each transaction": ["-t", "omni", "-l", "-50", "--", "-T", "sctp", "-d", "rr", "-c"],
    "OMNI with a large response on each connection": ["-t", "omni", "-l", "-20", "--", "-T", "sctp", "-d", "rr", "-c", "-r", "100,20000"],
    "OMNI that the daemon leads": ["-t", "omni", "-l", "-140000", "--", "-T", "sctp", "-d", "recv", "-m", ",1400",
                                   "-M", ",1400"],
}


def counts(report: lib.Report, port: int) -> None:
    for name, words in (*OURS.items(), *OMNI.items()):
        report.case(f"ours to ours: {name}", lambda w=words: agree(figures(lib.netperf(), port, *w)))

    def six() -> str:
        out = lib.must([*A, lib.netperf(), "-H", "fd00:1::2", "-p", str(port), "-t", "SCTP_RR", "-l", "-50", "--",
                        "-k", ",".join(COUNTS)], 60)
        return agree(dict(re.findall(r"^(\w+)=(.*)$", out, re.M)))

    def receiver_ends() -> None:
        got = client(lib.netperf(), port, "-t", "omni", "-l", "1", "--", "-T", "sctp", "-d", "recv", "-M", ",1400",
                     "-m", ",1400")
        assert got.rc == 0, got.err

    report.case("ours to ours: IPv6", six)
    report.case("ours to ours: a receiver ends the test", receiver_ends)


def shape(text: str) -> str:
    """A table without its figures."""
    return re.sub(r" +", " ", re.sub(r"[\d.]+", "N", text))


def real(report: lib.Report, port: int) -> None:
    place = lib.real_netperf()
    theirs = str(place / "netperf")
    for name, words in OMNI.items():
        report.case(f"theirs to ours: {name}", lambda w=words: agree(figures(theirs, port, *w)))

    def same(words: "list[str]") -> None:
        one, other = (client(p, port, *words) for p in (theirs, lib.netperf()))
        assert one.rc == other.rc == 0, (one.err, other.err)
        assert shape(one.out) == shape(other.out), f"{one.out!r} is not {other.out!r}"

    for words in (["-t", "TCP_RR", "-l", "1", "--", "-T", "sctp"],
                  ["-t", "TCP_STREAM", "-l", "1", "--", "-T", "sctp", "-m", "1400"],
                  ["-t", "omni", "-l", "1", "--", "-T", "sctp", "-m", "1400"]):
        report.case(f"the same output: {' '.join(words)}", lambda w=words: same(w))
    with lib.Daemon(B, ["-4"], program=str(place / "netserver"), grace=None) as daemon:
        for name, words in OMNI.items():
            report.case(f"ours to theirs: {name}", lambda w=words: agree(figures(lib.netperf(), daemon.port, *w)))
        for test in ("SCTP_STREAM", "SCTP_RR", "SCTP_RR_MANY"):
            report.case(f"ours to theirs: {test}", lambda t=test: no_error(client(
                lib.netperf(), daemon.port, "-t", t, "-l", "1", "--", "-m", "1400", "-T", "2")))


def no_error(got: lib.Result) -> None:
    assert got.rc == 0, got.err


def drops(port: int) -> str:
    """One request is under way at a time, so each one that is dropped is sent again once."""
    for end in (A, B):  # nor is one sent again because its answer took long
        sctp_timer(end, "rto_initial", 3000), sctp_timer(end, "rto_min", 1000)
    try:
        with lib.Filter(B, "prerouting", "meta l4proto sctp meta length > 900 numgen inc mod 40 == 20 counter drop") as plant:
            seen = figures(lib.netperf(), port, "-t", "SCTP_RR", "-l", "-200", "--", "-r", "1000,1")
            dropped = plant.count()
    finally:
        for end in (A, B):
            sctp_timer(end, "rto_min", 500), sctp_timer(end, "rto_initial", 600)
    assert dropped >= 4 and int(seen["LOCAL_TRANSPORT_RETRANS"]) == dropped, (dropped, seen)
    agree(seen)
    return f"{dropped} dropped, as many sent again"


def paths(port: int) -> str:
    for _ in range(3):  # a guest that stands still for half a second has no working path
        got = client(lib.netperf(), port, "-t", "SCTP_RR", "-l", "4", *PACED, "--json", "--", "--also-bind", "10.9.2.1,10.9.2.2")
        if got.err == "" and '"2 paths"' in got.out:
            break
    assert got.rc == 0 and got.err == "", got.err
    run = lib.document(got.out)
    bags = [b for b in find(run, "sctp.paths")]
    assert bags, "no evidence of paths"
    near = bags[0]
    assert near["sctp.paths"] == near["sctp.paths_active"] == 2, near
    assert {near["sctp.path0.address"], near["sctp.path1.address"]} == {"10.9.1.2", "10.9.2.2"}, near
    assert near["flow.protocol_detail"] == "2 paths", near["flow.protocol_detail"]
    return near["flow.protocol_detail"]


def find(node: object, name: str) -> "list[dict]":
    """The objects of a document that have such a member."""
    if isinstance(node, list):
        return [x for one in node for x in find(one, name)]
    if not isinstance(node, dict):
        return []
    return ([node] if name in node else []) + [x for one in node.values() for x in find(one, name)]


def failed_path(port: int) -> str:
    """The wire of the first path is cut: the other one carries the rest, and a line says so."""
    with subprocess.Popen([*A, lib.netperf(), "-H", "10.9.1.2", "-p", str(port), "-t", "SCTP_RR", "-l", "8", *PACED, "--",
                           "--also-bind", "10.9.2.1,10.9.2.2", "-k", "THROUGHPUT"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as test:
        time.sleep(3)
        with lib.Filter(B, "prerouting", "meta l4proto sctp ip daddr 10.9.1.2 drop"):
            _, err = test.communicate(timeout=60)
    assert test.returncode == 0, err
    assert re.search(r"SCTP_RR: 2 paths, \d (potentially failed|inactive)", err), err
    return err.strip()


def refusals(port: int) -> None:
    got = client(lib.netperf(), port, "-t", "SCTP_RR", "-l", "1", "--", "--also-bind", "10.9.2.1,10.9.2.9")
    assert got.rc == 255 and "bind to 10.9.2.9, too" in got.err, got.err
    for host, address, most in (("10.9.1.2", "10.9.2.1", 4), ("fd00:1::2,inet6", "fd00:2::1", 1)):
        for both in ("{},", ",{}"):
            got = client(lib.netperf(), port, "-t", "SCTP_RR", "-l", "1", "--", "-H", host, "--also-bind",
                         both.format("+".join([address] * (most + 1))))
            assert got.rc == 1 and f"--also-bind: no more than {most} of " in got.err, got.err
    got = client(lib.netperf(), port, "-t", "SCTP_STREAM", "-l", "1", "--", "-m", "1000000")
    assert got.rc == 1 and "a send buffer of" in got.err, got.err


def suite(report: lib.Report) -> None:
    build()
    with lib.Daemon(B) as daemon:
        counts(report, daemon.port)
        report.part("the real netperf", lambda: real(report, daemon.port))
        report.each((drops, paths, failed_path, refusals), daemon.port)
    with lib.Daemon() as daemon:
        report.case("a stranger is not served", lambda: strangers.are_not_served(daemon.port, (socket.SOCK_STREAM, 132)))


lib.main(suite)
