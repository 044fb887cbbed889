#!/usr/bin/env python3
"""Requested, granted, done: every option of both programs in a situation where it can't be granted. Either it is an
error that names the option, or a line on stderr says what is done instead: nothing is replaced silently. --table
prints what netperf says; daemon.py has netserver's refusals. Options that can't be refused are in NOTHING, with the
reason."""

import os
import re
import sys
from functools import partial
from typing import Dict, List, NamedTuple, Set

import alone
import lib
from daemon import KEPT, REFUSED

NOWHERE = 4000      # a processor that does not exist
NO_PROC = ("unshare", "-m", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh")
AT_ONCE = 3


class Ask(NamedTuple):
    words: str
    says: str               # part of the line
    test: str = "TCP_STREAM"
    how: str = ""           # nobody: the client has no privileges; blind: it has no /proc; far: the daemon has no /proc


def of_test(test: str, says: str, *words: str) -> "List[Ask]":
    return [Ask(f"-- {one}", says, test) for one in words]


GLOBAL = [
    Ask("-4 -H ::1", "resolve"), Ask("-6 -H 127.0.0.1", "resolve"), Ask("-a 3", "power of two"), Ask("-A 3", "power of two"),
    Ask("-b 100000 -w 1", "of this pace was kept", "TCP_RR"), Ask("-c", "could not be measured", how="blind"),
    Ask("-C", "could not be measured", how="far"), Ask("-D 0.0001", "0.001"), Ask("-D 1", "no interim results", "DG_RR"), Ask("-f Z", "not a unit"), Ask("-F /nosuch", "fill file"),
    Ask("-F zero-page", "only streams", "TCP_RR"), Ask("-F zero-page", "only streams", "UDP_STREAM"), Ask("-F zero-page -k 1", "write to the buffers"),
    Ask("-F ,zero-page", "only streams", "TCP_SENDFILE"),
    Ask("-H nosuch.invalid", "resolve"), Ask("-i 1000,31 -l 0.01", "as in netperf"), Ask("-I 90", "95% and 99%"), Ask("--clean 1", "--clean"),
    Ask("--at-most 5", "--clean"), Ask("-k 2G", "out of range"), Ask("-k nosuch", "-- -k NAMES"), Ask("-K 2G", "out of range"), Ask("-l 3G", "out of range"),
    Ask("-L 192.0.2.1", "192.0.2.1"), Ask("-N", "TCP_MSS", "TCP_MSS"), Ask("-o 20M", "out of range"), Ask("-O 20M", "out of range"), Ask("-p 1", "port 1"),
    Ask("-P 10", "shows headers"), Ask("-s 100000", "out of range"), Ask("-t NOSUCH", "not a test"), Ask(f"-T {NOWHERE},", "refused at this end"),
    Ask(f"-T ,{NOWHERE}", "refused at the far end"), Ask(f"-T ,{NOWHERE}", "refused at the far end", "UDP_RR"),
    Ask(f"-T 0+{NOWHERE},", "not available"), Ask(f"-T ,0+{NOWHERE} --flows 2 --threads 1,2", "binds its threads to 0 of"), Ask("-W 1000000", "256 MiB"),
    Ask("-y 7,", "refused", how="nobody"), Ask("-y ,7", "refused"), Ask("-Y nosuch", "not a type of service"),
    Ask("--passphrase-file /nosuch", "nosuch"), Ask("--key-file /nosuch", "nosuch"), Ask("--nat", "--key-file"), Ask("--threads 100000", "out of range"),
    Ask("--threads 4", "threads"), Ask("--spread", "--flows"), Ask("--warm-up 1000000", "not a warm-up time"), Ask("--silence 0", "out of range"), Ask("--ramp 5", "--flows"),
    Ask("--rate 1k", "more than"), Ask("--rate 100gbit", "that --rate asks for"), Ask("--arrivals poisson", "--rate"), Ask("--beside TCP_RR:10 -N", "-N"),
    Ask("--stations", "--stations"), Ask("--strict", "--rate"), Ask("--source-range 192.0.2.1-192.0.2.5 --flows 2", "192.0.2.1"),
    Ask("--both", "--both", "TCP_RR"), Ask("--engine nosuch", "not an engine"), Ask("--engine ,zerocopy", "zerocopy", "TCP_RR"), Ask("--batch 4", "needs an engine"),
    Ask("--segment-size 100", "another engine", "UDP_STREAM"), Ask("--json=/nosuch/file", "nosuch"),
    Ask("--human -- -k", "--human"), Ask("--link-rate x", "not a rate"),
    Ask("--sample-interval 1", "sample"), Ask("--cycles", "cycles", how="nobody"), Ask("--wire", "--wire", how="nobody"), Ask("--progress x", "is not always, never or auto"),
    Ask("--help=x", "help"), Ask("--flows 100000", "out of range"), Ask("--flows 2000", "grants"), Ask("--socket-mark 1,", "SO_MARK", how="nobody"),
    Ask("--socket-mark ,1", "SO_MARK"), Ask("-r 5,5", "-r has no argument"), Ask("--latency", "no ", "TCP_MSS"), Ask("-l 0", "until SIGINT"),
]
TESTS = [
    *of_test("TCP_STREAM", "resolve", "-4 -H ::1", "-6 -H 127.0.0.1"), *of_test("TCP_STREAM", "Cannot assign", "-L 192.0.2.1"),
    *of_test("TCP_STREAM", "has no use for it", "-b 5", "-e 5", "-l 5", "-n", "-N", "-p 1,2", "-r 5", "-U", "-B"),
    *of_test("UDP_RR", "has no use for it", "-a", "-C", "-F", "-g", "-K reno", "-m 5", "-M 5", "-V"),
    *of_test("TCP_STREAM", "one path", "--also-bind 127.0.0.1"), *of_test("TCP_STREAM", "DCCP", "--ccid 2", "--service-code SC:test"),
    *of_test("TCP_STREAM", "does not encrypt", "--tls-cipher aes128-gcm"), *of_test("OMNI", "try -T tcp", "-c -T udp -d rr"), *of_test("OMNI", "not a direction", "-d sideways"),
    *of_test("OMNI", "-T", "-T nosuch"), *of_test("OMNI", "-t", "-t nosuch"),
    *of_test("TCP_RR", "out of range", "-b 70000", "-q 3G", "-r 0", "-R 5", "-W 2M", "-m 0", "-M 0"), *of_test("UDP_RR", "not a time-out", "-e 0"),
    *of_test("UDP_STREAM", "out of range", "-l 300"), *of_test("TCP_STREAM", "not a segment size", "-G 70000"), *of_test("TCP_STREAM", "MAXSEG", "-G 5"),
    *of_test("TCP_STREAM", "no such output selector", "-k NOSUCH,", "-o NOSUCH,", "-O NOSUCH,"), *of_test("TCP_STREAM", "TCP_CONGESTION", "-K nosuch", "-K ,nosuch"),
    *of_test("TCP_MAERTS", "the end that sends is the far one", "-m 1000"), *of_test("OMNI", "the end that sends is the far one", "-d recv -m 1000"),
    *of_test("TCP_STREAM", "the end that receives is the far one", "-M ,1000"), *of_test("TCP_STREAM", "not a port", "-P 99999"),
    *of_test("TCP_CC", "all connections come from port", "-p 30000,20000"), *of_test("TCP_CC", "not a port", "-p 99999"), *of_test("TCP_STREAM", "SO_SNDBUF", "-s 100M", "-S 100M"),
    *of_test("TCP_STREAM", "SO_BINDTODEVICE", "--bind-device nosuch,"), *of_test("TCP_CRR", "--allow-device", "--bind-device ,lo"),
    *of_test("TCP_STREAM", "at most 37", "-u " + 40 * "x"), *of_test("TCP_CRR", "has no use for it", "-b 5"),
]
NOTHING = {
    "netperf": {"-B": "a text", "-Z": "a daemon without one serves all", "-d": "says more", "-h": "a text", "-V": "a text", "--version": "a text", "--list-figures": "a text", "--list-tests": "a text",
                "-j": "figures", "-v": "says more", "-S": "each socket has it", "--preflight": "no test", "--dry-run": "no test", "--ceiling": "no test",
                "-n": "its help says that Linux knows better", "--explain": "says what it does not know"},
    "test": {"-D": "datagrams never wait", "-f": "each socket of IPv4 has it", "-h": "a text", "-I": "write(2) is there", "-i": "its help says so", "-j": "its help says so", "-w": "its help says so",
             "-q": "each socket has it, see its range", "--device": "tests of the link layer alone"},
    "netserver": {"-Z": "a text", "-d": "says more", "-D": "stays in the foreground", "-h": "a text", "-N": "says less", "-V": "a text", "--help": "a text", "--version": "a text", "--nat": "is less",
                  "--want-echo": "the client is told", "--no-sandbox": "is less", "--allow-device": "the client is told", "--allow-raw": "the client is told", "--no-evidence": "the client is told", "--no-status": "is less",
                  "-f": "see --one-port"},
}


def known(text: str) -> "Set[str]":
    """The options in a help text, by their letters if they have one."""
    return {short or long for short, long in re.findall(r"^  (-\w)?(?: \S+)?(?:, )?(--[a-z-]+)?", text, re.M) if short or long}


def missing(program: str, text: str, asked: "List[str]") -> None:
    given = {word.partition("=")[0] for line in asked for word in line.split()}
    left = sorted(known(text) - given - set(NOTHING[program]))
    assert not left, f"no case asks for {' '.join(left)}"


def command(ask: Ask, port: int, far_port: int) -> "List[str]":
    own, _, behind = f"{ask.words} ".partition("-- ")
    words = [lib.netperf(), "-l", "0.1", "-P", "0", *own.split()]
    words += [] if "-H" in own else ["-H", "127.0.0.1"]
    words += [] if "-p" in own.split() else ["-p", str(far_port if ask.how == "far" else port)]
    words += [] if "-t" in own.split() else ["-t", ask.test]
    before = lib.as_nobody() if ask.how == "nobody" else list(NO_PROC) if ask.how == "blind" else []
    return [*before, *words, *(["--", *behind.split()] if behind else [])]


def is_told(ask: Ask, ports: "List[int]", done: "Dict[str, str]") -> str:
    if ask.how and os.geteuid() != 0:
        raise lib.Skipped("not root")
    words = command(ask, *ports)
    got = lib.interrupted(words) if ask.words == "-l 0" else lib.run(words, 40)
    said = lib.without_phrases(got.err, lib.STDERR_PHRASES) + (got.out.splitlines()[-1:] if got.rc == 255 else [])
    lines = [line for line in said if ask.says in line]
    done[f"{ask.test} {ask.words}"] = f"{'refused' if got.rc else 'done otherwise'}: {lines[0] if lines else said}"
    assert lines, f"status {got.rc}, and stderr is {got.err!r}"
    return lines[0]


def bound_to_a_device(daemon: lib.Daemon) -> None:
    """A socket bound to an interface uses no other: the ends can't reach each other through a pair of interfaces
    without peer."""
    def measured(device: str, test: str = "TCP_RR", words: str = "-- --bind-device") -> lib.Result:
        return lib.run(lib.command(daemon.port, "-l", "0.2", "-t", test, *words.split(), device), 40)

    for words, device in (("-- --bind-device", "lo,lo"), ("-- -L", "127.0.0.1%lo"), ("-- -H", "127.0.0.1%lo"), ("-L", "%lo"), ("-L", "127.0.0.1%lo,4")):
        for test in ("TCP_RR", "TCP_CRR", "UDP_RR"):
            got = measured(device, test, words)
            assert got.rc == 0 and not got.err, got
    lib.error_line(measured("127.0.0.1%nosuch", words="-L"), "netperf", "no interface is called nosuch")
    lib.error_line(measured("%", words="-L"), "netperf", "not the name of an interface")
    if lib.run(["ip", "link", "add", "granted0", "type", "veth", "peer", "granted1"], 20).rc != 0:
        raise lib.Skipped("no veth")
    lib.error_line(measured("granted0,"), "netperf", "connect", "127.0.0.1")
    lib.error_line(measured(",granted0"), "netperf", "connect", "127.0.0.1")
    for words in ("-L", "-- -L", "-- -H"):
        lib.error_line(measured("127.0.0.1%granted0", words=words), "netperf", "127.0.0.1")


def suite(report: lib.Report) -> None:
    done: "Dict[str, str]" = {}
    helped = {program: lib.run([tool, *words], 20).out for program, tool, *words in (
        ("netperf", lib.netperf(), "--help=all"), ("test", lib.netperf(), "-t", "OMNI", "--", "-h"), ("netserver", lib.netserver(), "--help"))}
    report.case("options of netperf", partial(missing, "netperf", helped["netperf"], [ask.words for ask in GLOBAL]))
    report.case("options of tests", partial(missing, "test", helped["test"], [ask.words for ask in TESTS]))
    report.case("options of netserver", partial(missing, "netserver", helped["netserver"], [*REFUSED, *dict(KEPT)]))
    blind = NO_PROC if os.geteuid() == 0 else ()
    with lib.Daemon() as daemon, lib.Daemon(blind, grace=None) as far:
        ports = [daemon.port, far.port]
        report.cases([(f"{ask.test} {ask.words}{' ' * bool(ask.how)}{ask.how}", partial(is_told, ask, ports, done)) for ask in (*GLOBAL, *TESTS)], AT_ONCE)
    with lib.Daemon(args=["--allow-device"]) as daemon:
        report.case("sockets bound to a device", partial(bound_to_a_device, daemon))
    if "--table" in sys.argv:
        for asked in sorted(done):
            print(f"| `{asked}` | {done[asked]} |")


if __name__ == "__main__":
    alone.enter()
    lib.main(suite)
