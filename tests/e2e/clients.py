"""What programs that drive netperf rely on, one case each, parsed as the program does it, and the life cycle of both
programs. Successful runs must leave stderr empty. golden.py checks the layout of the output.

    clients.py [--real] [PATTERN...]

PATTERN selects cases by name. --real runs the real netperf 2.7.0 instead of ours; cases in which ours has to do
better then only report how the real one fares.
"""

import csv
import fnmatch
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence

import daemon
import lib
from interim import Line, interims

AT_ONCE = 8
PATIENCE = 4.0 if lib.QUICK else 1.0
MOMENT = 0.7            # seconds into a test when it is ended
HOST = "127.0.0.1"
PASSPHRASE = "sesame"
NUMBER = re.compile(r"-?\d+(\.\d+)?$")
FLENT_KEYS = ("THROUGHPUT,LOCAL_CONG_CONTROL,REMOTE_CONG_CONTROL,TRANSPORT_MSS,"
              "LOCAL_TRANSPORT_RETRANS,REMOTE_TRANSPORT_RETRANS,LOCAL_SOCKET_TOS,"
              "REMOTE_SOCKET_TOS,DIRECTION,ELAPSED_TIME,PROTOCOL,LOCAL_SEND_SIZE,"
              "LOCAL_RECV_SIZE,REMOTE_SEND_SIZE,REMOTE_RECV_SIZE,LOCAL_BYTES_SENT,"
              "LOCAL_BYTES_RECVD,REMOTE_BYTES_SENT,REMOTE_BYTES_RECVD")
PKB_KEYS = {
    "THROUGHPUT": "Throughput", "THROUGHPUT_UNITS": "Throughput Units",
    "P50_LATENCY": "50th Percentile Latency Microseconds",
    "P90_LATENCY": "90th Percentile Latency Microseconds",
    "P99_LATENCY": "99th Percentile Latency Microseconds",
    "STDDEV_LATENCY": "Stddev Latency Microseconds",
    "MIN_LATENCY": "Minimum Latency Microseconds", "MAX_LATENCY": "Maximum Latency Microseconds",
    "CONFIDENCE_ITERATION": "Confidence Iterations Run",
    "THROUGHPUT_CONFID": "Throughput Confidence Width (%)",
    "LOCAL_TRANSPORT_RETRANS": "Local Transport Retransmissions",
    "REMOTE_TRANSPORT_RETRANS": "Remote Transport Retransmissions",
    "TRANSPORT_MSS": "Transport MSS bytes",
}
DECADES = ("UNIT_USEC", "TEN_USEC", "HUNDRED_USEC", "UNIT_MSEC", "TEN_MSEC", "HUNDRED_MSEC",
           "UNIT_SEC", "TEN_SEC")


# ---- running ------------------------------------------------------------------------------------

class Bench:
    """The daemons shared by all cases."""

    def __init__(self, stack: ExitStack, real: bool) -> None:
        grace = None if real else 10.0
        self.real = real
        self.brief = "1" if real else "0.5"     # s, where the length of a test does not matter
        self.port = stack.enter_context(lib.Daemon(grace=grace)).port
        self._stack, self._locked_port = stack, 0

    def locked_port(self) -> int:
        """The port of a daemon that requires a passphrase."""
        if not self._locked_port:
            locked = lib.Daemon(grace=None, args=("-Z", PASSPHRASE))
            self._locked_port = self._stack.enter_context(locked).port
        return self._locked_port

    def command(self, args: str, *more: str) -> List[str]:
        """The netperf command with these arguments; PORT is the daemon's, DPORT a free one."""
        def port(found: "re.Match[str]") -> str:
            return str(self.port if found[0] == "PORT" else lib.free_port())

        return [lib.netperf(), *re.sub(r"\bD?PORT\b", port, args).split(), *more]

    def good(self, args: str, *more: str, timeout: float = 15, **popen: object) -> str:
        """The stdout of a run that must succeed without anything on stderr."""
        return must_succeed(self.command(args, *more), timeout, **popen)

    def ended(self, args: str, number: int, after: float, timeout: float) -> str:
        """The stdout of a run that a signal ends this long after its beginning; it succeeds like any other."""
        with lib.Started(self.command(args)) as started:
            self.real or started.under_way()
            time.sleep(after)
            started.signal(number)
            got = started.finish(timeout * PATIENCE)
        assert got.rc == 0 and not got.err, f"status {got.rc} after {got.seconds:.1f} s: {got.err!r}"
        return got.out

    def lines(self, args: str, *more: str) -> List[str]:
        return self.good(args, *more).splitlines()


def must_succeed(command: Sequence[str], timeout: float, **popen: object) -> str:
    with lib.Started(command, **popen) as started:
        got = started.finish(timeout * PATIENCE)
    assert got.rc == 0, f"status {got.rc} after {got.seconds:.1f} s: {got.out!r} {got.err!r}"
    assert not lib.PASSED_OVER.sub("", got.err), f"stderr: {got.err!r}"
    return got.out


def number(word: str) -> float:
    assert NUMBER.match(word), f"{word!r} is not a number"
    return float(word)


def positive(word: str) -> float:
    value = number(word)
    assert value > 0, f"{word} is not above 0"
    return value


def must_be(value: object, wanted: object) -> None:
    assert value == wanted, f"{value!r} instead of {wanted!r}"


def key_values(text: str) -> Dict[str, str]:
    """Parse KEY=VALUE lines with distinct keys."""
    pairs = [line.split("=", 1) for line in text.splitlines() if "=" in line]
    keys = [pair[0] for pair in pairs]
    assert len(set(keys)) == len(keys), f"a key twice: {keys}"
    return {pair[0]: pair[1] for pair in pairs}


def csv_row(lines: Sequence[str]) -> Dict[str, str]:
    """Parse a line of names and a row into a dict."""
    rows = list(csv.reader(lines[:2]))
    must_be(len(rows[1]), len(rows[0]))
    return dict(zip(*rows))


def check_interims(style: str, lines: Sequence[str], unit: str, least: int = 2) -> str:
    """Check the unit, and that the intervals follow each other according to the wall clock."""
    found = interims(style, list(map(Line, lines)))
    assert len(found) >= least, f"only {len(found)} interim results"
    must_be({one.unit for one in found}, {unit})
    endings = [one.ending for one in found]
    assert endings == sorted(endings), endings
    assert abs(endings[-1] - time.time()) < 30, f"no Unix time: {endings[-1]}"
    for before, after in zip(found, found[1:]):
        assert abs(after.ending - before.ending - after.seconds) < 0.05, f"{before} {after}"
    return f"{len(found)} interim results"


# ---- classic tables -----------------------------------------------------------------------------

def slack(since: float) -> float:
    """Extra seconds for a time limit, if the machine woke this program late."""
    return 4 * lib.late_since(since)


def elapsed_to_the_point(bench: Bench) -> str:
    """grep ' 1.00 ': a test of a second takes exactly that, in at least one of several runs: a busy machine delays
    some, a wrong program all."""
    seconds: List[float] = []
    while 1.0 not in seconds and len(seconds) < (1 if lib.QUICK else 10):
        since = time.monotonic()
        row = bench.lines(f"-H {HOST} -p PORT -t TCP_STREAM -l 1", *(() if bench.real else lib.PACED))[6]
        seconds.append(float(row.split()[3]))
        assert 1.0 <= seconds[-1] < 1.1 * PATIENCE + slack(since), row
    assert lib.QUICK or 1.0 in seconds, f"never 1.00: {seconds}"
    return " ".join(f"{one:.2f}" for one in seconds)


# ---- omni output --------------------------------------------------------------------------------

LATENCIES = ("MIN_LATENCY", "P50_LATENCY", "P90_LATENCY", "P99_LATENCY", "MAX_LATENCY")


def latencies(bench: Bench, test: str) -> str:
    """Selecting a latency enables them all; they are whole numbers in ascending order."""
    found = key_values(bench.good(f"-P 0 -H {HOST} -p PORT -t {test} -l {bench.brief} -- -k",
                                  ",".join((*LATENCIES, "MEAN_LATENCY", "STDDEV_LATENCY",
                                            "RT_LATENCY"))))
    assert all(found[name].isdigit() for name in LATENCIES), found
    values = [int(found[name]) for name in LATENCIES]
    least, most = values[0], values[-1]
    assert 0 < most and all(least * 0.8 - 2 <= value <= most * 1.2 + 2 for value in values), found
    assert values[1:4] == sorted(values[1:4]), found
    assert least <= number(found["MEAN_LATENCY"]) <= most, found
    if test.endswith("STREAM"):
        must_be(found["RT_LATENCY"], "-1.000")
    return " ".join(map(str, values))


# ---- interim results ----------------------------------------------------------------------------

def out_at_once(bench: Bench) -> None:
    """The banner and each interim result are written immediately, also into a file. interim.py reads from a pipe."""
    with lib.Started(bench.command(f"-D -0.2 -H {HOST} -p PORT -t TCP_RR -l 2")) as client:
        assert lib.wait_for(lambda: client.said().count("Interim") >= 2, 1.5 * PATIENCE), client.said()
        assert client.running() and client.said().startswith("MIGRATED"), client.said()


# ---- flent --------------------------------------------------------------------------------------

def flent_probe(bench: Bench) -> None:
    """How flent finds out what this netperf can do: on the default port, and killed at once."""
    with lib.Started([lib.netperf(), "-l", "1", "-D", "-0.2", "--", "-e", "1"]) as probe:
        time.sleep(0.1)
        probe.signal(signal.SIGKILL)
        got = probe.finish(2)
    assert "Demo Mode not configured" not in got.out, got.out
    assert "invalid option" not in got.err, got.err


def flent_run(bench: Bench, test: str, extra: str, specific: str) -> str:
    got = None
    command = bench.command(f"-P 0 -v 0 -D -0.20 -4 -Y 0x10,0x10 -H {HOST} -p PORT -t {test} -l 1 "
                            f"-F /dev/urandom {extra} -- {specific} -H {HOST} -k {FLENT_KEYS}")
    with lib.Started(command, env={**os.environ, "DUMP_TCP_INFO": "1"}) as started:
        got = started.finish(11 * PATIENCE)
    must_be(got.rc, 0)
    lines = got.out.splitlines()
    found = key_values("\n".join(line for line in lines if "]=" not in line))
    must_be(list(found), FLENT_KEYS.split(","))
    for name in ("LOCAL_SOCKET_TOS", "REMOTE_SOCKET_TOS"):
        must_be(int(found[name], 0), 0x10)
    must_be(found["PROTOCOL"], test[:3])
    must_be(found["DIRECTION"], {"TCP_STREAM": "Send", "TCP_MAERTS": "Receive",
                                 "UDP_RR": "Send|Recv"}[test])
    check_tcp_info(got.err, test)
    unit = "Trans/s" if test == "UDP_RR" else "10^6bits/s"
    check_interims("key=value", lines, unit)
    points = interims("key=value", list(map(Line, lines)))
    mean = sum(one.seconds for one in points[:-1]) / max(1, len(points) - 1)
    assert all(mean / 10 < one.seconds < 10 * mean for one in points[:-1]), points
    return f"{len(points)} points, {found['THROUGHPUT']} {unit}"


def check_tcp_info(err: str, test: str) -> None:
    """Lines of words and integers, and nothing else on stderr."""
    words: List[str] = []
    for line in err.splitlines():
        assert line.startswith("tcpi") and test != "UDP_RR", f"stderr: {line!r}"
        words += line.split()
    if test != "UDP_RR":
        pairs = dict(zip(words[::2], map(int, words[1::2])))
        wanted = {"tcpi_rtt", "tcpi_rttvar", "tcpi_pmtu", "tcpi_total_retrans"}
        assert wanted <= set(pairs), pairs


def flent_interrupt(bench: Bench) -> str:
    """flent ends a test by a signal and expects all results and status 0."""
    out = bench.ended(f"-H {HOST} -p PORT -t TCP_STREAM -l 30 -P 0 -v 0 -D -0.20 -f m -F /dev/urandom -- -k ELAPSED_TIME",
                      signal.SIGINT, MOMENT, 4)
    elapsed = positive(key_values(out)["ELAPSED_TIME"])
    assert 0.2 < elapsed < (MOMENT + 2) * PATIENCE, f"{elapsed} s elapsed"
    return f"{elapsed} s"


# ---- the scripts in netperf's own doc/examples --------------------------------------------------

def aggregate_demo(bench: Bench, test: str, specific: str) -> str:
    """runemomniaggdemo.sh: all of it, until SIGALRM."""
    out = bench.ended(f"-D 0.25 -c -C -f {'m' if '-m' in specific else 'x'} -P 0 -t omni "
                      f"-l 7200 -H {HOST} -p PORT -v 2 -- {specific} -T {test} "
                      "-u 1f283c8e-e4f2-11f1-99db-79f0de054238 -o all", signal.SIGALRM, 1.2, 8)
    lines = [line for line in out.splitlines() if line.count(",") > 100]
    must_be(len(lines), 1)
    assert "1f283c8e-e4f2-11f1-99db-79f0de054238" in lines[0], lines[0]
    unit = "10^6bits/s" if "-m" in specific else "Trans/s"
    return check_interims("CSV", out.splitlines(), unit, least=1)


def bloat(bench: Bench) -> str:
    out = bench.ended(f"-H {HOST} -p PORT -l 7200 -t TCP_RR -D -0.25 -v 2 -- -r 1", signal.SIGALRM, 1.0, 5)
    return check_interims("classic", out.splitlines(), "Trans/s")


# ---- PerfKitBenchmarker -------------------------------------------------------------------------

def pkb(bench: Bench, options: str, specific: str, unit: str, banner: str = "OMNI") -> str:
    """PKB reads the CSV output by names."""
    lines = bench.good(f"-p PORT -j {options} -H {HOST} -l {bench.brief} -- {specific} -P ,DPORT -o",
                       ",".join(PKB_KEYS), timeout=20).splitlines()
    assert lines[0].startswith(banner), lines[0]
    row = csv_row(lines[1:])
    must_be(list(row), list(PKB_KEYS.values()))
    must_be(row["Throughput Units"], unit)
    positive(row["Throughput"])
    for name, value in row.items():
        if name != "Throughput Units":
            number(value)
    return row["Throughput"]


def pkb_histogram(bench: Bench) -> str:
    """PKB splits rows at colons and reads the counts, which must add up to the total."""
    lines = bench.lines(f"-p PORT -j -v2 -t OMNI -H {HOST} -L {HOST} -l {bench.brief} -- "
                        "-T TCP -d RR -P ,DPORT -o THROUGHPUT,P50_LATENCY")
    rows = {line.split(":")[0].strip(): line.split(":")[1:] for line in lines if ":" in line}
    must_be([name for name in rows if name in DECADES], list(DECADES))
    cells = [[int(cell) for cell in rows[name]] for name in DECADES]
    total = int(rows["HIST_TOTAL"][0])
    must_be(sum(map(sum, cells)) + int(rows[">100_SECS"][0]), total)
    assert total > 0, rows
    return f"{total} samples"


def pkb_mesh(bench: Bench) -> None:
    out = bench.good(f"-p PORT -t TCP_STREAM -H {HOST} -i 1 -l {bench.brief}")
    must_be(len(re.findall(r"(\d+\.\d+)\s+\n", out)), 1)


def pkb_pairs(bench: Bench) -> None:
    """A netserver -p P for each stream, P even, with data on P+1."""
    with ExitStack() as stack:
        clients = []
        for _ in range(4):
            server = stack.enter_context(lib.Daemon(grace=None))
            clients.append(stack.enter_context(lib.Started(
                [lib.netperf(), "-p", str(server.port), "-t", "TCP_STREAM", "-H", HOST, "-l", "1",
                 "-P", "0", "--", "-P", f",{lib.free_port()}", "-o", "THROUGHPUT"])))
        for client in clients:
            got = client.finish(15 * PATIENCE)
            assert got.rc == 0 and not got.err, f"status {got.rc}: {got.err!r}"
            positive(got.out.strip())


# ---- others -------------------------------------------------------------------------------------

def k8s_netperf(bench: Bench, test: str, specific: str) -> str:
    """The script greps for KEY= and adds up with bc."""
    out = bench.good(f"-s 1 -H {HOST} -L 127.0.0.2 -p PORT -l {bench.brief} -t {test} -- -k "
                     "rt_latency,p99_latency,throughput,throughput_units,remote_recv_calls,"
                     f"local_send_calls,local_transport_retrans {specific} -P DPORT")
    assert len(out.splitlines()) >= 5, out
    found = key_values(out)
    positive(found["THROUGHPUT"])
    must_be(found["RT_LATENCY"] == "-1.000", test.endswith("STREAM"))
    if test != "TCP_CRR":  # it has no value there
        must_be(float(found["LOCAL_TRANSPORT_RETRANS"]) < 0, test.startswith("UDP"))
    if test == "UDP_STREAM":
        sent, arrived = int(found["LOCAL_SEND_CALLS"]), int(found["REMOTE_RECV_CALLS"])
        assert 0 < arrived <= sent, found
    return f"{found['THROUGHPUT']} {found['THROUGHPUT_UNITS']}"


def k8s_probe(bench: Bench) -> None:
    bench.good(f"-H {HOST} -p PORT -l {bench.brief} -- 42424")


CILIUM_KEYS = ("MIN_LATENCY,MEAN_LATENCY,MAX_LATENCY,P50_LATENCY,P90_LATENCY,P99_LATENCY,"
               "TRANSACTION_RATE,THROUGHPUT,THROUGHPUT_UNITS")


def cilium(bench: Bench, test: str, specific: str) -> None:
    """The length is a duration in Go's format; lines that start with a digit have nine fields."""
    since = time.monotonic()
    out = bench.good(f"-H {HOST} -p PORT -l 1s -t {test} -- -R 1 -o {CILIUM_KEYS} {specific}")
    seconds = time.monotonic() - since
    assert 0.9 < seconds < 7 * PATIENCE, f"took {seconds:.1f} s"
    rows = [line.split(",") for line in out.splitlines() if line[:1].isdigit()]
    must_be([len(row) for row in rows], [9])
    for cell in rows[0][:6]:
        number(cell)
    must_be(rows[0][8], "Trans/s" if test.endswith("RR") else "10^6bits/s")


def lnst(bench: Bench, test: str) -> None:
    """A regular expression for each key, which needs a decimal point."""
    out = bench.good(f"-H {HOST} -f k -P 0 -L {HOST} -p PORT -l {bench.brief} -t {test} -I 99,5 -i 3,3 -c -C "
                     "-- -k", "THROUGHPUT, LOCAL_CPU_UTIL, REMOTE_CPU_UTIL, CONFIDENCE_LEVEL, "
                     "THROUGHPUT_CONFID", timeout=25)
    for name in ("THROUGHPUT", "LOCAL_CPU_UTIL", "REMOTE_CPU_UTIL", "THROUGHPUT_CONFID"):
        found = re.search(rf"{name}=([-+]?\d+\.\d+)", out)
        assert found, f"no {name} in {out!r}"
        assert float(found[1]) >= 0, found[0]
    must_be(re.findall(r"CONFIDENCE_LEVEL=(\d+)", out), ["99"])


def super_netperf(bench: Bench, args: str, clients: int) -> str:
    """The last word of line 6, or of line 7 if that has any; the outputs of many clients are added up."""
    with ExitStack() as stack:
        started = [stack.enter_context(lib.Started(bench.command(
            f"-s 1 -H {HOST} -p PORT -l {bench.brief} {args}"))) for _ in range(clients)]
        total = 0.0
        for client in started:
            got = client.finish(20 * PATIENCE)
            assert got.rc == 0 and not got.err, f"status {got.rc}: {got.err!r}"
            lines = got.out.splitlines()
            last = lines[5].split()[-1:] if len(lines) > 5 else []
            last = (lines[6].split()[-1:] if len(lines) > 6 else []) or last
            total += positive(last[0])
    return f"{total:.2f}"


def mmtests(bench: Bench, test: str) -> None:
    """stdout and stderr in one file; on lines without letters, the last word if there are more than four."""
    command = bench.command(f"-4 -i 3,3 -I 95,5 -l 1 -f m -D 1 -t {test} -H {HOST} -p PORT -- "
                            "-s 851968 -S 851968 -m 1024 -M 1024")
    with lib.Started(command, stderr=subprocess.STDOUT) as started:
        got = started.finish(20 * PATIENCE)
    must_be(got.rc, 0)
    rows = [line.split() for line in got.out.splitlines()
            if not re.search("[a-zA-Z]", line) and line.strip()]
    if test == "UDP_STREAM":
        must_be([len(row) for row in rows], [6, 4])
        rows = rows[:1]
    values = [number(row[-1]) for row in rows if len(row) > 4]
    must_be(len(values), 1)


def openwrt(bench: Bench) -> None:
    """Outputs are appended to one file, a number per line, and added up by awk."""
    with tempfile.NamedTemporaryFile("a+") as results:
        for test in ("TCP_MAERTS", "TCP_STREAM"):
            for secret in ("", f"-Z {PASSPHRASE}"):
                port = bench.locked_port() if secret else bench.port
                results.write(must_succeed([lib.netperf(), *f"-4 -H {HOST} -p {port} -t {test} "
                                            f"-l {bench.brief} -v 0 -P 0 {secret}".split()], 15))
                results.flush()
        total = must_succeed(["awk", "{s += $1} END {print NR, s}", results.name], 5).split()
    must_be(total[0], "4")
    positive(total[1])


def openwrt_waits(bench: Bench) -> None:
    """pgrep -P SHELL netperf, while it runs."""
    with lib.Started(bench.command(f"-H {HOST} -p PORT -l 5")) as client:
        time.sleep(0.3)
        must_be(Path(f"/proc/{client.pid}/comm").read_text().strip(), "netperf")


def bare_number(bench: Bench, test: str) -> None:
    """golden.py takes nan and 0.00 for any number."""
    positive(bench.good(f"-P 0 -v 0 -H {HOST} -p PORT -t {test} -l {bench.brief}").strip())


def phoronix(bench: Bench, test: str, extra: str) -> None:
    """Lines that contain "is" are dropped; the remaining number is the result."""
    lines = [line for line in bench.lines(f"-P 0 -v 0 -H {HOST} -p PORT -t {test} -l {bench.brief} {extra}")
             if "is" not in line]
    must_be(len(lines), 1)
    positive(lines[0].strip())


def kernel_selftests(bench: Bench) -> None:
    """They check the exit status, leave stray words on the command line, and bind the control connection."""
    bench.good(f"-4 -t TCP_STREAM -H {HOST} -p PORT -l {bench.brief}")
    bench.good(f"-p PORT -l {bench.brief} localhost")
    with lib.Started(bench.command(
            f"-4 -H {HOST} -p PORT,DPORT -L 127.0.0.2 -l 1000")) as client:
        time.sleep(MOMENT)
        client.signal(signal.SIGTERM)
        got = client.finish(5 * PATIENCE)
    assert "establish" not in got.out + got.err, got.out + got.err


# ---- netserver ----------------------------------------------------------------------------------

def first_process(bench: Bench) -> str:
    """-D as PID 1 of a container: it stays in the foreground, reaps its children, and ends at once on SIGTERM."""
    port = lib.free_port()
    with lib.Started([lib.netserver(), "-D", "-p", str(port)]) as server:
        daemon.must_listen(server, port)
        for _ in range(3):
            must_succeed(lib.command(port, "-l", "-100", "-t", "TCP_RR"), 10)
        assert lib.wait_for(lambda: not lib.children(server.pid), 5 * PATIENCE), "children left"
        since = time.monotonic()
        server.signal(signal.SIGTERM)
        got = server.finish(5 * PATIENCE)
        seconds = time.monotonic() - since
    assert got.rc is not None and seconds < 1 * PATIENCE + slack(since), f"{got.rc} after {seconds:.1f} s"
    return f"status {got.rc} after {seconds:.2f} s"


# ---- where ours does better ---------------------------------------------------------------------

def go_minutes(bench: Bench) -> str:
    """1m0s is a minute, not a million seconds nor one; 0m1s ends by itself."""
    since = time.monotonic()
    out = bench.good(f"-P 0 -H {HOST} -p PORT -l 0m1s -t TCP_RR -- -k ELAPSED_TIME")
    elapsed = float(key_values(out)["ELAPSED_TIME"])
    assert 0.9 < elapsed < 1.5 * PATIENCE + slack(since), f"{elapsed} s"
    with lib.Started(bench.command(f"-H {HOST} -p PORT -l 1m0s -t TCP_RR")) as client:
        time.sleep(2)
        client.signal(signal.SIGINT)
        got = client.finish(5 * PATIENCE)
    assert got.rc == 0 and got.seconds > 1.9, f"status {got.rc} after {got.seconds:.1f} s"
    assert not got.err, got.err
    return f"{elapsed} s"


def wait_is_no_test(bench: Bench) -> str:
    """-s 1 does not shorten a TCP_MAERTS of one second."""
    since = time.monotonic()
    out = bench.good(f"-P 0 -H {HOST} -p PORT -l 1 -s 1 -t TCP_MAERTS -- -k "
                     "ELAPSED_TIME,THROUGHPUT")
    found = key_values(out)
    assert 0.9 < float(found["ELAPSED_TIME"]) < 1.5 * PATIENCE + slack(since), found
    positive(found["THROUGHPUT"])
    return found["ELAPSED_TIME"]


def prompt_return(bench: Bench, test: str) -> str:
    since = time.monotonic()
    bench.good(f"-H {HOST} -p PORT -l 1 -t {test}")
    seconds = time.monotonic() - since
    assert seconds < 2.5 * PATIENCE + slack(since), f"took {seconds:.1f} s"
    return f"{seconds:.1f} s"


def long_file(bench: Bench) -> None:
    names = ["THROUGHPUT", "THROUGHPUT_UNITS", "PROTOCOL", "DIRECTION", "ELAPSED_TIME",
             "SOCKET_TYPE", "REQUEST_SIZE", "RESPONSE_SIZE"]
    with tempfile.NamedTemporaryFile("w") as chosen:
        chosen.write("\n".join(names) + "\n")
        chosen.flush()
        out = bench.good(f"-P 0 -H {HOST} -p PORT -l -100 -t TCP_RR -- -k {chosen.name}")
    must_be(list(key_values(out)), names)


def bare_namespace(bench: Bench) -> None:
    """Only a loopback interface, as in a container without network."""
    script = ('ip link set lo up && "$1" -p 12865 > /dev/null && '
              '"$2" -H 127.0.0.1 -l -100 -t TCP_RR -P 0 -v 0; status=$?; '
              'for pid in $(ss -Hltnp sport = :12865 | grep -o "pid=[0-9]*" | cut -d= -f2); do '
              'kill "$pid"; done; exit $status')
    out = must_succeed(["unshare", "-n", "sh", "-c", script, "sh", lib.netserver(),
                        lib.netperf()], 15)
    positive(out.strip())


def quiet_about_builds(bench: Bench) -> None:
    """No messages about features that are not compiled in, as they would shift every line."""
    lines = bench.lines(f"-H {HOST} -p PORT -t TCP_RR -l -100 -b 1 -w 1")
    must_be((len(lines), len(lines[6].split())), (8, 6))


# ---- the suite ----------------------------------------------------------------------------------

class Case(NamedTuple):
    name: str
    body: Callable[..., Optional[str]]
    args: Sequence[object] = ()
    better: bool = False  # ours does better than the real netperf, which fails the case


def figures() -> Iterator[Case]:
    for test in ("TCP_RR", "UDP_RR", "TCP_STREAM"):
        yield Case(f"omni: latencies of {test}", latencies, (test,))
    yield Case("demo: out at once into a file", out_at_once)


def programs() -> Iterator[Case]:
    yield Case("flent probe", flent_probe)
    yield Case("flent run: TCP_STREAM", flent_run, ("TCP_STREAM", "-f m", ""))
    yield Case("flent run: TCP_MAERTS", flent_run, ("TCP_MAERTS", "-f m", ""))
    yield Case("flent run: UDP_RR", flent_run, ("UDP_RR", "", "-e 2"))
    yield Case("flent interrupt", flent_interrupt)
    yield Case("netperf's runemomniaggdemo, udp rr", aggregate_demo, ("udp", "-r 1 -b 4 -e 1"))
    yield Case("netperf's runemomniaggdemo, tcp rr", aggregate_demo, ("tcp", "-r 1 -D"))
    yield Case("netperf's runemomniaggdemo, out", aggregate_demo, ("tcp", "-m 64K"))
    yield Case("netperf's runemomniaggdemo, in", aggregate_demo, ("tcp", "-m ,64K"), True)
    yield Case("netperf's bloat", bloat)
    yield Case("PKB: TCP RR", pkb, ("-v1 -t OMNI -I 99,5 -i 3,3", "-T TCP -d RR", "Trans/s"))
    yield Case("PKB: UDP RR", pkb, (f"-t OMNI -L {HOST}", "-T UDP -d RR", "Trans/s"))
    yield Case("PKB: -d CRR", pkb, ("-t OMNI", "-T TCP -d CRR", "10^6bits/s"))
    yield Case("PKB: -d STREAM", pkb, ("-t OMNI", "-T TCP -d STREAM -m 131072 -M 131072",
                                       "10^6bits/s"))
    yield Case("PKB: -T UDP -R 1", pkb, ("-t OMNI", "-T UDP -d STREAM -R 1 -m 1400 -M 1400",
                                         "10^6bits/s"))
    yield Case("PKB: -G", pkb, ("-t OMNI", "-T TCP -d STREAM -G 1400b", "10^6bits/s"))
    yield Case("PKB: containers", pkb, ("-t TCP_STREAM", "-m 131072", "10^6bits/s", "MIGRATED"))
    yield Case("PKB: bidirectional", pkb, ("-t TCP_MAERTS", "", "10^6bits/s", "MIGRATED"))
    yield Case("PKB: histogram", pkb_histogram, (), True)
    yield Case("PKB: mesh", pkb_mesh)
    yield Case("PKB: a netserver a stream", pkb_pairs)


def more_programs() -> Iterator[Case]:
    yield Case("k8s-netperf probe", k8s_probe)
    yield Case("k8s-netperf: TCP_STREAM", k8s_netperf, ("TCP_STREAM", "-m 1024"))
    yield Case("k8s-netperf: UDP_STREAM", k8s_netperf, ("UDP_STREAM", "-m 1024 -R 1"))
    yield Case("k8s-netperf: TCP_RR", k8s_netperf, ("TCP_RR", "-r 1024,1024 -b 4"))
    yield Case("k8s-netperf: UDP_RR", k8s_netperf, ("UDP_RR", "-r 1024,1024"))
    yield Case("k8s-netperf: TCP_CRR", k8s_netperf, ("TCP_CRR", "-r 1024,1024"))
    for test, specific in (("TCP_STREAM", ""), ("UDP_STREAM", "-m 1024"), ("TCP_RR", ""),
                           ("UDP_RR", ""), ("TCP_CRR", ""), ("TCP_MAERTS", "")):
        yield Case(f"cilium-cli: {test}", cilium, (test, specific))
    for test in ("TCP_STREAM", "UDP_STREAM", "TCP_RR"):
        yield Case(f"LNST: {test}", lnst, (test,))
    yield Case("super_netperf: TCP_STREAM", super_netperf, ("-t TCP_STREAM", 8))
    yield Case("super_netperf: TCP_RR", super_netperf, ("-t TCP_RR", 8))
    yield Case("super_netperf: UDP_STREAM", super_netperf,
               ("-t UDP_STREAM -- -n -P,DPORT -m 120", 4))
    yield Case("mmtests: TCP_STREAM", mmtests, ("TCP_STREAM",))
    yield Case("mmtests: UDP_STREAM", mmtests, ("UDP_STREAM",))
    yield Case("OpenWrt", openwrt)
    yield Case("OpenWrt waits", openwrt_waits)
    for test in "TCP_MAERTS", "TCP_SENDFILE", "TCP_CRR", "TCP_CC":
        yield Case(f"bare number: {test}", bare_number, (test,))
    yield Case("Phoronix: TCP_RR", phoronix, ("TCP_RR", ""))
    yield Case("Phoronix: UDP_STREAM -b 10G", phoronix, ("UDP_STREAM", "-b 10G"))
    yield Case("kernel selftests", kernel_selftests)


def life() -> Iterator[Case]:
    yield Case("netserver -D as the first process", first_process)


def better() -> Iterator[Case]:
    yield Case("1m0s is a minute", go_minutes, (), True)
    yield Case("-s and TCP_MAERTS", wait_is_no_test, (), True)
    yield Case("TCP_CRR returns promptly", prompt_return, ("TCP_CRR",), True)
    yield Case("TCP_CC returns promptly", prompt_return, ("TCP_CC",), True)
    yield Case("long selector files", long_file, (), True)
    yield Case("nothing about builds", quiet_about_builds, (), True)


def how_real_fares(case: Case, bench: Bench) -> str:
    try:
        case.body(bench, *case.args)
    except AssertionError as fault:
        return f"the real one does not: {str(fault)[:100]}"
    return "the real one does, too"


def suite(report: lib.Report) -> None:
    real = "--real" in sys.argv
    patterns = [arg for arg in sys.argv[1:] if arg != "--real"]
    if real:
        place = lib.real_netperf()
        os.environ.update(NETPERF=str(place / "netperf"), NETSERVER=str(place / "netserver"))
    lib.netperf(), lib.netserver()  # without them the whole suite is skipped
    lib.watch_wakes()
    cases = [*figures(), *programs(), *more_programs(), *life(), *better()]
    alone = [Case("table: elapsed 1.00", elapsed_to_the_point)]
    why = lib.no_lab()
    if why:
        report.skip("127.0.0.1 in a bare namespace", why)
    else:
        alone.append(Case("127.0.0.1 in a bare namespace", bare_namespace, (), True))
    with ExitStack() as stack:
        bench = Bench(stack, real)
        for batch, at_once in ((cases, AT_ONCE), (alone, 1)):
            report.cases([(case.name, partial(how_real_fares, case, bench)
                           if real and case.better else partial(case.body, bench, *case.args))
                          for case in batch if not patterns or any(
                              fnmatch.fnmatch(case.name, one) for one in patterns)], at_once)


if __name__ == "__main__":
    lib.main(suite)
