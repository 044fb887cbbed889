"""The progress line of --progress on a terminal: drawn, redrawn, and erased when something else is written and when
the test ends; without a terminal there is none.

The checks judge what was written, in which order, but not how long it took: a test runs until its line has been seen
often enough, and is then interrupted.
"""

import os
import re
import shlex
import signal
import socket
import subprocess
from functools import partial, wraps
from typing import Any, Callable, Dict, List, Optional, Sequence

import lib
from terminal import PATIENCE, OnTerminal

FRAME = re.compile("\r([^\r\n\x1b]+)\x1b\\[K\r")  # one drawing of the line
GONE = "\r\x1b[K"
LONG = ("-l", "60", *lib.PACED)  # interrupted long before that
WORDS = re.compile(r"connecting to|waiting for netserver|making |warming up|measuring|collecting")
TABLE = re.compile(r"^ *[\d.]+ +[\d.]+ .*[\d.]+$")  # figures of a classic table


def tried(body: Callable[..., None]) -> Callable[..., None]:
    """Make up to three attempts: four updates a second may be too many for a busy machine."""
    @wraps(body)
    def again(*args: Any) -> None:
        for attempt in range(3):
            try:
                return body(*args)
            except AssertionError:
                if attempt == 2:
                    raise

    return again


class Terminal(OnTerminal):
    """netperf, or a command that starts it, on a terminal of its own, an xterm unless env says otherwise."""

    def __init__(self, *args: str, columns: int = 100, env: Optional[Dict[str, str]] = None,
                 program: str = "") -> None:
        around = {"PATH": os.environ["PATH"], "TERM": "xterm", "LC_ALL": "C", **(env or {})}
        super().__init__([program or lib.netperf(), *args], 60, columns, {k: v for k, v in around.items() if v})

    def frames(self) -> List[str]:
        return FRAME.findall(self.raw)

    def rows(self) -> List[str]:
        """The non-empty rows on the screen."""
        return [row.rstrip() for row in self.screen.display if row.strip()]

    def until(self, pattern: str, times: int = 1) -> List[str]:
        """Read until this number of different lines with this pattern have been drawn."""
        def found() -> List[str]:
            return sorted({frame for frame in self.frames() if re.search(pattern, frame)})

        self.read_until(lambda: len(found()) >= times, f"{times} times {pattern!r}")
        return found()

    def interrupt(self, by: int = signal.SIGINT) -> int:
        self.child.kill(by)
        return self.rest()


def netperf(port: int, *args: str) -> List[str]:
    return ["-H", "127.0.0.1", "-p", str(port), *args]


def assert_clean(seen: Terminal) -> None:
    """The line is gone from the screen, and nothing else was written while it was drawn."""
    rows = seen.rows()
    assert not [row for row in rows if WORDS.search(row) or "^C" in row], rows
    frames = list(FRAME.finditer(seen.raw))
    assert frames, seen.raw
    for frame in frames:
        after = seen.raw[frame.end():]
        assert FRAME.match(after) or after.startswith(GONE), after[:200]


def assert_table(seen: Terminal, banner: bool = True) -> None:
    rows = seen.rows()
    assert len([row for row in rows if TABLE.match(row)]) >= 1, rows
    assert (" TEST from " in rows[0]) == banner, rows


# ---- on a terminal ------------------------------------------------------------------------------

@tried
def a_whole_test(port: int) -> None:
    """It is redrawn, its time advances, and at the end there is the classic table."""
    with Terminal(*netperf(port, "-l", "3", *lib.PACED)) as seen:
        status = seen.rest()
    times = [float(found[1]) for frame in seen.frames()
             if (found := re.fullmatch(r"TCP_STREAM: measuring ([\d.]+) of 3 s  \[#*-*\]  \S+ .?bit/s", frame))]
    assert status == 0 and len(times) >= 2 and times == sorted(times) and times[0] < times[-1] <= 3, seen.raw
    assert_clean(seen)
    assert_table(seen)


def each_test(port: int, test: str, options: Sequence[str], pattern: str) -> None:
    with Terminal(*netperf(port, "-t", test, *LONG, *options)) as seen:
        seen.until(pattern, times=2)
        status = seen.interrupt()
    assert (status == 0) == ("--warm-up" not in options), (status, seen.raw)  # a warm-up has no result
    assert_clean(seen)


def interrupted_from_the_keyboard(port: int) -> None:
    """The terminal echoes ^C at the cursor."""
    with Terminal(*netperf(port, "-t", "TCP_RR", *LONG)) as seen:
        seen.until(r"measuring [\d.]+ of 60 s .* transactions/s")
        seen.child.sendintr()
        status = seen.rest()
    assert status == 0 and "^C" in seen.raw, (status, seen.raw)
    rows = seen.rows()
    assert not [row for row in rows if WORDS.search(row) or "^C" in row], rows
    assert_table(seen)
    elapsed = next(float(row.split()[4]) for row in rows if TABLE.match(row))
    assert 0 < elapsed < 60, rows


def terminated(port: int) -> None:
    with Terminal(*netperf(port, *LONG)) as seen:
        seen.until("measuring")
        assert seen.interrupt(signal.SIGTERM) == 128 + signal.SIGTERM, seen.raw
    assert_clean(seen)
    assert_table(seen)


@tried
def iterations(port: int) -> None:
    with Terminal(*netperf(port, "-t", "TCP_RR", "-l", "1", "-i", "3,3", *lib.PACED)) as seen:
        status = seen.rest()
    said = [found[1] for frame in seen.frames() if (found := re.search(r"iteration (\d of 3): measuring", frame))]
    assert status == 0 and sorted(set(said)) == ["1 of 3", "2 of 3", "3 of 3"] and said == sorted(said), seen.raw
    assert_clean(seen)
    assert_table(seen)


@tried
def a_count(port: int) -> None:
    with Terminal(*netperf(port, "-t", "TCP_RR", "-l", "-300", "--progress", "always", *lib.PACED)) as seen:
        status = seen.rest()
    done = [int(found[1]) for frame in seen.frames()
            if (found := re.search(r"measuring [\d.]+ s, (\d+) %  \[", frame))]
    assert status == 0 and done and done == sorted(done) and done[-1] <= 100, seen.raw
    assert_clean(seen)
    assert_table(seen)


def interim_results(port: int) -> None:
    """They share the terminal with the line, and stay."""
    with Terminal(*netperf(port, "-t", "TCP_RR", "-D", "0.1", *LONG)) as seen:
        seen.until("measuring", times=3)
        assert seen.interrupt() == 0, seen.raw
    assert_clean(seen)
    assert_table(seen)
    whole = [row for row in seen.rows() if re.fullmatch(r"Interim result: .* ending at [\d.]+", row)]
    assert len(whole) == seen.raw.count("Interim result") >= 2, seen.rows()


def a_pause_before(port: int) -> None:
    with Terminal(*netperf(port, "-s", "60", *LONG)) as seen:
        seen.until(r"TCP_STREAM: waiting [\d.]+ of 60 s  \[")
        seen.interrupt()
    assert_clean(seen)


def a_narrow_terminal(port: int) -> None:
    """One row, with the last column free."""
    with Terminal(*netperf(port, "-P", "0", *LONG), columns=30) as seen:
        assert max(len(frame) for frame in seen.until("measuring", times=2)) <= 29, seen.raw
        assert len(seen.rows()) == 1, seen.rows()
        seen.interrupt()
    assert_clean(seen)


def not_wanted(port: int) -> None:
    """Refused, or on a terminal that can't erase it."""
    for options, env in ((("--progress", "never"), {}), ((), {"TERM": "dumb"}), ((), {"TERM": ""})):
        with Terminal(*netperf(port, "-l", "3", *lib.PACED, *options), env=env) as seen:
            assert seen.rest() == 0, seen.raw
        assert "\x1b" not in seen.raw and not WORDS.search(seen.raw), seen.raw
        assert_table(seen)


# ---- when things go wrong -----------------------------------------------------------------------

def a_daemon_that_dies() -> None:
    with lib.Daemon(grace=None) as daemon:
        with Terminal(*netperf(daemon.port, "-t", "TCP_RR", *LONG)) as seen:
            seen.until("measuring")
            for session in daemon.children():
                os.kill(session, signal.SIGKILL)
            status = seen.rest()
    assert status > 0, seen.raw
    assert_clean(seen)
    assert [row for row in seen.rows() if row.startswith("netperf: TCP_RR: ")], seen.rows()


class Mute:
    """A daemon that accepts connections and does not answer."""

    def __enter__(self) -> int:
        self._listener = socket.create_server(("127.0.0.1", 0))
        return self._listener.getsockname()[1]

    def __exit__(self, *_: object) -> None:
        self._listener.close()


def while_nobody_answers() -> None:
    """Before the test begins, a signal ends the program as it does without a progress line. (With --explain, a
    greeting comes first.)"""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        with Mute() as port, Terminal(*netperf(port, "--explain", *LONG)) as seen:
            seen.until("TCP_STREAM: waiting for netserver at 127.0.0.1")
            assert seen.interrupt(number) == -number, seen.raw
        assert_clean(seen)
        assert not seen.rows(), seen.rows()


def a_note_meanwhile() -> None:
    """After five seconds, netperf says what it is waiting for."""
    with Mute() as port, Terminal(*netperf(port, "-P", "0", *LONG), columns=300) as seen:
        seen.until("waiting for netserver at 127.0.0.1, 6 s")
        assert seen.interrupt() > 0, seen.raw
    assert_clean(seen)
    rows = seen.rows()
    assert len(rows) == 2 and re.fullmatch(r"netperf: 127\.0\.0\.1 port \d+ .* has not answered for 5 s.* more", rows[0]) \
        and rows[1].startswith("netperf: TCP_STREAM: interrupted"), rows


def stopped_and_continued(port: int) -> None:
    """By ^Z: the shell has the terminal for itself until the program continues."""
    command = shlex.join([lib.netperf(), *netperf(port, *LONG)])
    with Terminal("-c", f"set -m; {command}; echo it stands; fg > /dev/null", program="bash") as seen:
        seen.until("measuring")
        seen.child.sendcontrol("z")
        assert lib.wait_for(lambda: seen.read() and "it stands" in seen.raw, PATIENCE), seen.raw
        seen.until("measuring", times=len(set(seen.frames())) + 2)
        seen.child.sendintr()
        assert seen.rest() == 0, seen.raw
    before, _, after = seen.raw.partition("it stands")
    assert before.rstrip("\r\n").endswith(GONE) or not FRAME.search(before.rpartition(GONE)[2]), seen.raw
    assert FRAME.search(after), seen.raw
    assert not [row for row in seen.rows() if WORDS.search(row)], seen.rows()
    assert_table(seen)


def in_the_background(port: int) -> None:
    """A background job does not write to the terminal."""
    command = shlex.join([lib.netperf(), *netperf(port, "-l", "3", *lib.PACED)])
    with Terminal("-c", f"set -m; {command} & wait", program="bash") as seen:
        assert seen.rest() == 0 and GONE not in seen.raw and not FRAME.search(seen.raw), seen.raw
    assert_table(seen)


# ---- without a terminal -------------------------------------------------------------------------

def a_pipe_is_left_alone(port: int) -> None:
    got = lib.run([lib.netperf(), *netperf(port, "-l", "3", *lib.PACED)], timeout=20)
    assert (got.rc, got.err) == (0, "") and "\x1b" not in got.out, got


@tried
def always(port: int) -> None:
    """Also into a pipe; stdout is the same as without it."""
    shapes = []
    for word in ("always", "never"):
        got = subprocess.run([lib.netperf(), *netperf(port, "-l", "2", "--progress", word, *lib.PACED)],
                             capture_output=True, stdin=subprocess.DEVNULL, timeout=PATIENCE, check=True)
        shapes.append(re.sub(r"[\d.]+", "#", got.stdout.decode()))
        said = got.stderr.decode()
        if word == "always":
            assert len(FRAME.findall(said)) >= 2 and said.endswith(GONE), said
            assert not re.sub(f"{FRAME.pattern}|\r\x1b\\[K", "", said), said
        else:
            assert said == "", said
    assert shapes[0] == shapes[1], shapes


def no_more_than_the_link(lab: lib.Lab, port: int) -> str:
    """Data in the send buffer has not been carried."""
    got = lib.run(lab.command(port, "-l", "2", "--progress", "always", "--", "-s", "8M"), 60)
    rates = [float(rate) for rate in re.findall(r"measuring .*  ([\d.]+) Mbit/s", got.err.replace("\r", "\n"))]
    assert got.rc == 0 and rates and max(rates) < 30, (rates, got)
    return f"{max(rates)} of 20 Mbit/s"


def over_a_link(report: lib.Report) -> None:
    with lib.Lab(f"progress{os.getpid() % 10000}", "--rate", "20mbit") as lab, lib.Daemon(lab.server) as daemon:
        report.case("no more than the link", partial(no_more_than_the_link, lab, daemon.port))


def suite(report: lib.Report) -> None:
    with lib.Daemon() as daemon:
        port = daemon.port
        report.case("a whole test: drawn, drawn again, gone", partial(a_whole_test, port))
        for test, options, pattern in (
                ("TCP_MAERTS", (), r"TCP_MAERTS: measuring .*  \S+ .?bit/s$"),
                ("TCP_STREAM", ("--flows", "4"), r"TCP_STREAM: measuring .*  \S+ .?bit/s$"),
                ("TCP_STREAM", ("--both",), r"TCP_STREAM: measuring .*  \S+ .?bit/s$"),
                ("TCP_STREAM", ("-f", "M"), r"TCP_STREAM: measuring .*  [\d.]+ MBytes/s$"),
                ("TCP_RR", ("--warm-up", "50"), r"TCP_RR: warming up .* of 50 s  \[.*transactions/s$"),
                ("TCP_CRR", (), r"TCP_CRR: measuring .*  \d+ transactions/s$"),
                ("UDP_STREAM", ("--", "-m", "1000"), r"UDP_STREAM: measuring .*  \S+ .?bit/s sent$"),
                ("UDP_RR", (), r"UDP_RR: measuring .*  \d+ transactions/s$")):
            report.case(f"{test} {' '.join(options)}", partial(each_test, port, test, options, pattern))
        for name, body in (("iterations", iterations), ("by count", a_count), ("with -D", interim_results),
                           ("with -s", a_pause_before), ("interrupted from the keyboard", interrupted_from_the_keyboard),
                           ("SIGTERM", terminated), ("a narrow terminal", a_narrow_terminal),
                           ("not wanted", not_wanted),
                           ("a pipe", a_pipe_is_left_alone), ("always", always), ("^Z and fg", stopped_and_continued),
                           ("in the background", in_the_background)):
            report.case(name, partial(body, port))
    report.part("over a link", partial(over_a_link, report))
    report.each((a_daemon_that_dies, while_nobody_answers, a_note_meanwhile))


lib.main(suite)
