"""What the daemon grants to whom: limits, address rules, passphrases in combination with them, exclusive tests; and
what refused clients are told, ours and the real one.
"""

import errno
import os
import re
import signal
import socket
import struct
import tempfile
import time
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Callable, Iterator, List, Optional, Sequence, Tuple

import attacks
import lib
import ours
from ours import CALIBRATE, FRAME

AT_ONCE = 6
PATIENCE = 4.0 if lib.QUICK else 1.0  # sanitizers stretch time limits
WHY = 0x504c5721                      # marks the text after a refusal
HELLO_S = 5                           # for a client's first message
UNREAD_S = 10                         # for one that receives nothing more, after the results
STREAM_5S = ours.omni(5)

Case = Tuple[str, Callable[[], Optional[str]]]


def client(port: int, test: str, *args: str, host: str = "127.0.0.1") -> List[str]:
    return lib.command(port, "-t", test, "-P", "0", *args, host=host)


def run(port: int, test: str = "TCP_RR", *args: str, host: str = "127.0.0.1") -> lib.Result:
    return lib.run(client(port, test, *(args or ("-l", "-10")), host=host), timeout=90)


def must_serve(port: int, *args: str, host: str = "127.0.0.1") -> None:
    got = run(port, *args, host=host)
    assert got.rc == 0 and not lib.complaints(got), f"status {got.rc}: {got.err!r}"


def must_refuse(got: lib.Result, *words: str) -> str:
    assert got.rc not in (0, None), f"status {got.rc}: {got.out!r}"
    lines = lib.complaints(got)
    assert len(lines) == 1, f"not one line: {lines}"
    assert all(word in lines[0] for word in words), f"{words} not in: {lines[0]}"
    return lines[0]


def ask(conn: socket.socket, frame: bytes = CALIBRATE) -> Tuple[int, str]:
    """Send a message, unless it is empty; returns the answer's error code and text. netperf answers CPU_CALIBRATE (5) by
    its own number."""
    conn.sendall(frame)
    got = ours.take(conn, FRAME)
    asked = int.from_bytes(frame[:4], "big")
    code, word, magic = struct.unpack("!IiI", got[:12])
    assert not frame or code == asked + (asked != 5), (asked, code)
    return word, got[12:212].split(b"\0")[0].decode() if magic == WHY else ""


def calling(port: int, stack: ExitStack, source: str = "127.0.0.1") -> socket.socket:
    return stack.enter_context(attacks.calling(port, source, 60))


# ---- how many -----------------------------------------------------------------------------------

def sessions(option: str, error: int) -> None:
    """The third one is refused with the name of the limit, and admitted when one has ended."""
    with lib.Daemon(args=[option, "2"]) as daemon, ExitStack() as stack:
        conns = [calling(daemon.port, stack) for _ in range(2)]
        for conn in conns:
            assert ask(conn) == (0, "")
        for _ in range(3):
            word, words = ask(calling(daemon.port, stack))
            assert word == error and option in words, f"{word}: {words!r}"
        line = must_refuse(run(daemon.port), option, f"port {daemon.port}")
        assert "refus" in line, line
        assert f"reason={option[2:]}" in daemon.log(), daemon.log()
        conns[0].close()
        assert lib.wait_for(lambda: len(daemon.children()) < 2, 20 * PATIENCE)
        must_serve(daemon.port)


def one_after_another() -> None:
    """A client that has closed its session gets another one, although the first one's process has yet to end."""
    def served() -> bool:
        with lib.Daemon(args=["--max-sessions", "1"]) as daemon, ExitStack() as stack:
            first = calling(daemon.port, stack)
            assert ask(first) == (0, "")
            (process,) = daemon.children()
            os.kill(process, signal.SIGSTOP)
            first.close()
            second = calling(daemon.port, stack)
            second.sendall(CALIBRATE)
            time.sleep(0.1)
            os.kill(process, signal.SIGCONT)
            return ask(second, b"") == (0, "")

    assert any(served() for _ in range(3)), "refused"


def per_address() -> None:
    with lib.Daemon(args=["--max-per-address", "1"]) as daemon, ExitStack() as stack:
        assert ask(calling(daemon.port, stack)) == (0, "")
        assert ask(calling(daemon.port, stack))[0] == 122
        assert ask(calling(daemon.port, stack, "127.0.0.2")) == (0, "")


def rate() -> None:
    """A rate, and twice as many connections in a burst."""
    with lib.Daemon(args=["--max-rate", "5"]) as daemon:
        words = []
        start = time.monotonic()
        for _ in range(40):
            with ExitStack() as stack:
                words.append(ask(calling(daemon.port, stack))[0])
        granted, most = words.count(0), 10 + 5 * (time.monotonic() - start) + 1
        assert 10 <= granted <= most and set(words) == {0, 11}, f"{granted} of {most}: {words}"
        assert lib.wait_for(lambda: run(daemon.port).rc == 0, 20 * PATIENCE)


def the_silent() -> None:
    """Of silent connections, the oldest of the address with the most is closed, and no other."""
    with lib.Daemon(args=["--max-silent", "8"]) as daemon, ExitStack() as stack:
        other = calling(daemon.port, stack, "127.0.0.2")
        flood = [calling(daemon.port, stack) for _ in range(20)]
        assert ask(other) == (0, ""), "the one from elsewhere is out"
        must_serve(daemon.port)
        for conn in flood[:10]:
            conn.settimeout(HELLO_S / 2)
            assert conn.recv(1) == b"", "an answer to nothing"
        flood[-1].settimeout(60)
        assert ask(flood[-1]) == (0, "")


def between_requests() -> None:
    with lib.Daemon(args=["--max-idle", "1"]) as daemon, ExitStack() as stack:
        conn = calling(daemon.port, stack)
        assert ask(conn) == (0, "")
        conn.settimeout(1 + 4 * PATIENCE + lib.SLACK)
        assert conn.recv(1) == b""


# ---- how much -----------------------------------------------------------------------------------

def too_much(options: Sequence[str], wanted: Sequence[str], fine: Sequence[str],
             reason: str) -> str:
    """A test above the limit is refused with the limit's name; one below runs."""
    with lib.Daemon(args=options) as daemon:
        line = must_refuse(run(daemon.port, *wanted), options[0])
        must_serve(daemon.port, *fine)
        assert lib.wait_for(lambda: options[0] in daemon.log(), 60), daemon.log()
        status = lib.run([lib.netserver(), "--status", "-p", str(daemon.port)], timeout=30)
        assert status.rc == 0 and f"{reason}" in status.out, f"{status}"
        return line


def fewer_flows() -> str:
    """Fewer data connections than requested are granted, and the user is told."""
    with lib.Daemon(args=["--max-flows", "3"]) as daemon:
        got = lib.run(lib.command(daemon.port, "-t", "TCP_RR", "-l", "1", "-P", "0", "--flows", "4", "--threads", "4",
                                  "--", "-k", "FLOWS,THREADS"), timeout=30)
        assert got.rc == 0 and got.out.split() == ["FLOWS=3", "THREADS=3"], got
        assert "grants 3 of 4 data connections" in got.err and "--max-flows" in got.err, got
        return got.err.strip()


def few_ports() -> str:
    """Without connections each flow needs a port at the daemon: no more are granted than there are ports."""
    first = attacks.free_range(8)
    with lib.Daemon(args=["--data-ports", f"{first}-{first + 7}"]) as daemon:
        got = lib.run(lib.command(daemon.port, "-t", "UDP_RR", "-l", "-100", "-P", "0", "--flows", "20", "--", "-k",
                                  "FLOWS,LOST_REQUESTS"), timeout=30)
        flows = int(dict(line.split("=") for line in got.out.split())["FLOWS"])
        assert got.rc == 0 and 1 < flows <= 8 and "LOST_REQUESTS=0" in got.out, got
        assert f"grants {flows} of 20 data connections" in got.err and "--data-ports" in got.err, got
        must_refuse(run(daemon.port, "UDP_RR", "-l", "-10", "--flows", "3", "--", "-P", f",{first + 6}"), "--data-ports")
        return got.err.strip()


def counted_for_ever() -> None:
    """A counted test ends when the longest timed one would."""
    with lib.Daemon(args=["--max-length", "1"]) as daemon:
        got = run(daemon.port, "TCP_MAERTS", "-l", "-1000000000000")
        assert got.rc != 0 and got.seconds < 8 * PATIENCE + lib.SLACK, f"{got}"
        must_serve(daemon.port)


def behind_its_window() -> str:
    """A client that sends beyond its window (after a warm-up) and is silent on the control connection is cut off
    soon."""
    plan = attacks.plan("stream", "TCP", 1, 1, "", 1, attacks.field(37, struct.pack("!I", 100)))
    with lib.Daemon() as daemon, ExitStack() as stack:
        control = calling(daemon.port, stack)
        data = calling(ours.ports_of(attacks.ask(control, plan))[0], stack)
        began = time.monotonic()
        while (took := time.monotonic() - began) < 40 * PATIENCE:
            if took > 1.5:
                control.close()
            try:
                data.send(100 * b"x")
            except OSError:
                return f"{took:.1f} s"
            time.sleep(0.05)
        raise AssertionError("it is heard still")


def late_reader(half_closes: bool = False) -> str:
    """A client that reads nothing before it has its results gets all data and their end."""
    with lib.Daemon(grace=None) as daemon, ExitStack() as stack:
        control = calling(daemon.port, stack)
        got = attacks.ask(control, attacks.plan("stream", "TCP", 1, 1, "", 1, ours.number(4, 1), size=100000))
        data = attacks.reluctant(ours.ports_of(got)[0], stack, "127.0.0.1")
        if half_closes:
            time.sleep(0.3)  # it has sent what there is room for
            data.shutdown(socket.SHUT_WR)
        assert ours.receive(control).kind == ours.RESULT
        data.settimeout(60)
        time.sleep(2)
        size = 0
        while part := data.recv(1 << 16):
            size += len(part)
        assert attacks.ask(control, attacks.plan("stream", "TCP", 1, 1, "", 1)).kind == ours.GRANT
        data.close()
        control.close()
        assert lib.wait_for(lambda: not daemon.children(), 20 * PATIENCE), "the session stays"
        assert size > 100000, f"{size} bytes: the test is blind"
        return f"{size} bytes"


def never_read() -> str:
    """Connections that a client does not read count until they end: at its next request, and with its session."""
    stream = attacks.plan("stream", "TCP", 2, 1, "", 1, ours.number(4, 1), size=100000)
    with lib.Daemon(args=["--max-total-flows", "3"], grace=None) as daemon, ExitStack() as stack:
        control = calling(daemon.port, stack)
        for _ in range(2):
            begun = time.monotonic()
            got = attacks.ask(control, stream)
            assert got.kind == ours.GRANT and (took := time.monotonic() - begun) < UNREAD_S, f"{got} after {took:.1f} s"
            for _ in range(2):
                attacks.reluctant(ours.ports_of(got)[0], stack, "127.0.0.1")
            assert ours.receive(control).kind == ours.RESULT
        assert attacks.ask(calling(daemon.port, stack), stream).error == errno.EMFILE, "they are not counted"
        control.close()
        assert lib.wait_for(lambda: len(daemon.children()) < 2, UNREAD_S), "the session stays"
        return f"asked again: granted after {took:.1f} s"


def shared_memory() -> None:
    """Memory held by one session is not available to another until its test ends."""
    args = ("TCP_STREAM", "-l", "4", *lib.PACED, "--", "-M", "4m", "-s", "100k", "-S", "100k")
    with lib.Daemon(args=["--max-total-memory", "13M"]) as daemon:
        with lib.Started(client(daemon.port, *args)) as first:
            assert first.measuring()
            must_refuse(run(daemon.port, *args), "--max-total-memory")
            must_serve(daemon.port)
            assert first.finish(90).rc == 0
        must_serve(daemon.port, *args)


# ---- one at a time ------------------------------------------------------------------------------

def in_line(daemon: lib.Daemon) -> int:
    """The number of sessions in the queue."""
    shown = lib.run([lib.netserver(), "--status", "-p", str(daemon.port)], 20).out
    return int(re.findall(r"waiting +(\d+) sessions", shown)[0])


def exclusive() -> str:
    """Tests wait for each other; requests without load do not wait."""
    with lib.Daemon(args=["--exclusive"]) as daemon, ExitStack() as stack:
        start = time.monotonic()
        runs = [stack.enter_context(lib.Started(client(daemon.port, "TCP_RR", "-l", "1", *lib.PACED)))
                for _ in range(3)]
        assert ask(calling(daemon.port, stack)) == (0, ""), "a calibration waits"
        for one in runs:
            got = one.finish(90)
            assert got.rc == 0 and not lib.complaints(got), f"{got}"
        took = time.monotonic() - start
        assert took >= 2.9, f"three tests of a second took {took:.1f} s"
        return f"{took:.1f} s"


def line_ends() -> None:
    with lib.Daemon(args=["--exclusive", "1"]) as daemon:
        with lib.Started(client(daemon.port, "TCP_RR", "-l", "6", *lib.PACED)) as first:
            assert first.measuring()
            must_refuse(run(daemon.port), "--exclusive")
            assert first.finish(90).rc == 0
        must_serve(daemon.port)


def a_crowd_in_line(crowd: Sequence[str], source: str) -> None:
    """An address with many queued sessions, or a network with many addresses, leaves every other turn to others,
    except at the one daemon in 256 that hashes both into one group."""
    got = [in_a_crowd(crowd, source)]
    if got[0].rc or got[0].seconds >= 8 * PATIENCE + lib.SLACK:
        got.append(in_a_crowd(crowd, source))
    # The running one ends, and perhaps one that came earlier has its turn.
    assert got[-1].rc == 0 and got[-1].seconds < 8 * PATIENCE + lib.SLACK, f"{got}"


def in_a_crowd(crowd: Sequence[str], source: str) -> lib.Result:
    with ExitStack() as stack:
        daemon = stack.enter_context(lib.Daemon(args=["--exclusive", "30"]))
        for one in crowd:
            stack.enter_context(lib.Started([*client(daemon.port, "TCP_RR", "-l", "3", *lib.PACED), "-L", one]))
        # Not all at the same time: the first ones may have had their turn when the last ones connect.
        assert lib.wait_for(lambda: in_line(daemon) >= 8, 60), "the crowd does not come"
        return lib.run([*client(daemon.port, "TCP_RR", "-l", "1"), "-L", source], 60)


def a_turn_not_used() -> None:
    """A client that gets its turn and never makes its data connection loses it soon."""
    with ExitStack() as stack:
        daemon = stack.enter_context(lib.Daemon(args=["--exclusive", "30"]))
        conn = calling(daemon.port, stack)
        conn.sendall(STREAM_5S)
        assert conn.recv(8, socket.MSG_WAITALL)[4:] == bytes(4)
        got = lib.run(client(daemon.port, "TCP_RR", "-l", "-10"), 60)
        assert got.rc == 0 and got.seconds < 15 * PATIENCE + lib.SLACK, f"{got}"


def leaving_the_line() -> None:
    """A client that disconnects or dies while it waits or runs does not block others."""
    with lib.Daemon(args=["--exclusive"]) as daemon, ExitStack() as stack:
        first = stack.enter_context(lib.Started(client(daemon.port, "TCP_RR", "-l", "600")))
        assert first.measuring()
        second = stack.enter_context(lib.Started(client(daemon.port, "TCP_RR", "-l", "600")))
        assert lib.wait_for(lambda: in_line(daemon) == 1, 60), "the second does not come"
        second.signal(signal.SIGKILL)
        assert lib.wait_for(lambda: in_line(daemon) == 0, 60), "the second does not go"
        third = stack.enter_context(lib.Started(client(daemon.port, "TCP_RR", "-l", "1")))
        assert lib.wait_for(lambda: in_line(daemon) == 1, 60), "the third does not come"
        first.signal(signal.SIGKILL)
        got = third.finish(60)
        assert got.rc == 0, f"{got}"


# ---- who ----------------------------------------------------------------------------------------

def by_address() -> None:
    with lib.Daemon(args=["--allow", "127.0.0.0/8,::1", "--deny", "127.0.0.3"]) as daemon:
        must_serve(daemon.port)
        if Path("/proc/net/if_inet6").exists():
            must_serve(daemon.port, host="::1")
        got = lib.run([*client(daemon.port, "TCP_RR", "-l", "-10"), "-L", "127.0.0.3"], 20)
        must_refuse(got, "--deny")
        # The log line comes after the answer.
        assert lib.wait_for(lambda: "reason=denied" in daemon.log() and "peer=127.0.0.3" in daemon.log(), 20)
    with lib.Daemon(args=["--allow", "192.0.2.0/24"]) as daemon:
        must_refuse(run(daemon.port), "--allow")
        assert not daemon.children()


def denied_and_gone() -> None:
    """A connection that is reset before it is accepted is denied and logged like others."""
    with lib.Daemon(args=["--deny", "127.0.0.3"]) as daemon:
        for _ in range(100):
            with socket.create_connection(("127.0.0.1", daemon.port), 60, ("127.0.0.3", 0)) as conn:
                conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                conn.sendall(CALIBRATE)
        assert lib.wait_for(lambda: daemon.log().count("reason=denied") == 100, 60), daemon.log()


def noisy() -> None:
    """Repeated refusals and invalid requests do not fill the log, and leave lines of it to others."""
    with lib.Daemon(args=["--deny", "127.0.0.3,127.9.0.1"]) as daemon:
        def log() -> str:
            return daemon.log(1 << 20)

        began = time.monotonic()
        for _ in range(600):
            with socket.create_connection(("127.0.0.1", daemon.port), 60, ("127.0.0.3", 0)) as conn:
                conn.sendall(CALIBRATE)
                assert conn.recv(len(CALIBRATE))
        most = 100 + 50 * (time.monotonic() - began + 1)
        with socket.create_connection(("127.0.0.1", daemon.port), 60, ("127.9.0.1", 0)) as conn:
            conn.sendall(CALIBRATE)
        assert lib.wait_for(lambda: "event=refused peer=127.9.0.1" in log(), 60), "another one's refusal is not logged"
        lines = lib.settled(lambda: log().count("peer=127.0.0.3"))
        assert 100 <= lines <= min(most, 600), f"{lines} lines"
        time.sleep(1)
        with socket.create_connection(("127.0.0.1", daemon.port), 60, ("127.0.0.3", 0)) as conn:
            conn.sendall(CALIBRATE)
        assert lib.wait_for(lambda: lines == 600 or "lines-not-logged" in log(), 60), \
            f"{lines} of 600 refusals are logged, and no word of the rest"
        with socket.create_connection(("127.0.0.1", daemon.port), 60) as conn:
            with suppress(ConnectionError):
                for _ in range(1000):
                    conn.sendall(ours.frame(4711, -1))
                while conn.recv(65536):
                    pass
        assert lib.wait_for(lambda: "unknown requests: the session ends" in log(), 60)
        assert log().count("4711 is not served") < 100, log()
        must_serve(daemon.port)


def noisy_sessions() -> str:
    """The same if sessions refuse: those of an address get half of the sessions' log lines."""
    count, each = 400, 2  # the refusal, and the end of the session
    with lib.Daemon(args=["--max-length", "1", "--max-rate", "0"], grace=10) as daemon:
        began = time.monotonic()
        for _ in range(count):
            with socket.create_connection(("127.0.0.1", daemon.port), 10) as conn:
                assert ask(conn, STREAM_5S)[0] == errno.ERANGE
        assert lib.wait_for(lambda: not daemon.children(), 10)
        most = 100 + 50 * (time.monotonic() - began + 1)
        logged = daemon.log(1 << 20)
        lines = sum("--max-length" in line or "session-end" in line for line in logged.splitlines())
        assert 100 <= lines <= min(most, each * count), f"{lines} lines of {each * count}"
        time.sleep(1)
        with socket.create_connection(("127.0.0.1", daemon.port), 10) as conn:
            assert ask(conn, STREAM_5S)[0] == errno.ERANGE
        assert lib.wait_for(lambda: lines == each * count
                            or "lines-not-logged" in daemon.log(1 << 20), 5), logged[-500:]
        return f"{lines} lines of {each * count}"


def read_again() -> None:
    """SIGHUP reads the file again; an invalid one changes nothing and is reported in the log."""
    with tempfile.TemporaryDirectory() as place:
        rules = Path(place, "rules")
        Path(place).chmod(0o755)
        rules.write_text("deny 127.0.0.1  # for now\n")
        with lib.Daemon(args=["--access-file", str(rules)]) as daemon:
            must_refuse(run(daemon.port), "--deny")
            for text, told in (("allow 127.0.0.0/8\n", "1 allow, 0 deny"),
                               ("allow everybody\n", "everybody")):
                rules.write_text(text)
                os.kill(daemon.pid, signal.SIGHUP)
                assert lib.wait_for(lambda: told in daemon.log(), 60), daemon.log()
                must_serve(daemon.port)
            rules.write_text("deny 127.0.0.1\n")
            rules.chmod(0o666)
            os.kill(daemon.pid, signal.SIGHUP)
            assert lib.wait_for(lambda: "everybody may write to the file" in daemon.log(), 5), \
                daemon.log()
            must_serve(daemon.port)


def revoked() -> None:
    """Changed rules apply at each grant, also to clients that are admitted or queued already. Running tests go on."""
    with tempfile.TemporaryDirectory() as place, ExitStack() as stack:
        rules = Path(place, "rules")
        Path(place).chmod(0o755)
        rules.write_text("")
        daemon = stack.enter_context(lib.Daemon(args=["--access-file", str(rules), "--exclusive"]))
        runs, waits, idle, silent = (calling(daemon.port, stack) for _ in range(4))
        assert ask(idle) == (0, "") and ask(runs, STREAM_5S)[0] == 0
        waits.sendall(STREAM_5S)
        assert lib.wait_for(lambda: len(daemon.children()) == 3, 20 * PATIENCE)
        rules.write_text("deny 127.0.0.1\n")
        os.kill(daemon.pid, signal.SIGHUP)
        assert lib.wait_for(lambda: "0 allow, 1 deny" in daemon.log(), 20 * PATIENCE), daemon.log()
        runs.settimeout(0.5)
        with suppress(socket.timeout):
            raise AssertionError(f"what runs is ended: {runs.recv(1)!r}")
        runs.close()
        for conn, frame in ((waits, b""), (idle, STREAM_5S), (silent, CALIBRATE)):
            word, words = ask(conn, frame)
            assert word == errno.EACCES and "--deny" in words, f"{word}: {words!r}"
        shown = lib.run([lib.netserver(), "--status", "-p", str(daemon.port)], 20).out
        assert re.search(r"3 denied", shown), shown


# ---- where --------------------------------------------------------------------------------------

def data_ports() -> None:
    """Every data socket is in the range, whichever ports in it are taken."""
    first = lib.free_port()
    with lib.Daemon(args=["--data-ports", f"{first}-{first + 3}", "-d"]) as daemon:
        for test in ("TCP_RR", "TCP_STREAM", "UDP_RR", "TCP_CRR"):
            must_serve(daemon.port, test, "-l", "-10")
        ports = {int(line.rpartition("port ")[2].split()[0]) for line in daemon.log().splitlines()
                 if "data at" in line}
        assert ports and ports <= set(range(first, first + 4)), f"{ports} from {first}"
        must_refuse(run(daemon.port, "TCP_RR", "-l", "-10", "--", "-P", f",{first + 100}"),
                    "--data-ports")


# ---- what a stock client sees -------------------------------------------------------------------

def stock(report: lib.Report) -> None:
    real = str(lib.real_netperf() / "netperf")

    def refused(options: Sequence[str], *args: str) -> str:
        with lib.Daemon(args=options) as daemon, ExitStack() as stack:
            if "--max-sessions" in options:
                assert ask(calling(daemon.port, stack)) == (0, "")
            got = lib.run([real, "-H", "127.0.0.1", "-p", str(daemon.port), "-l", "1", *args], 30)
            said = (got.out + got.err).strip().splitlines()
            assert got.rc not in (0, None) and said, f"{got}"
            return said[-1]

    report.case("the real client: --max-sessions", partial(refused, ["--max-sessions", "1"]))
    report.case("the real client: --deny", partial(refused, ["--deny", "127.0.0.0/8"]))
    report.case("the real client: --max-length", partial(refused, ["--max-length", "1"],
                                                         "-t", "TCP_STREAM", "-l", "5"))


def missing_protocol() -> Optional[str]:
    """A request for a protocol that the daemon's kernel lacks is refused with the protocol's name."""
    try:
        socket.socket(socket.AF_INET, 6, 33).close()
        return "this kernel has DCCP"
    except OSError:
        pass
    with lib.Daemon() as daemon, ExitStack() as stack:
        word, words = ask(calling(daemon.port, stack), ours.omni(5, (3, 33)))
        assert word != 0 and words.startswith("DCCP: the daemon's kernel did not have it"), words
        assert "--transports DCCP" in words and "Linux has dropped it in 6.16" in words, words
    return None


def the_usual_engines() -> None:
    """Tests without --engine get their default engine, whatever the list."""
    with lib.Daemon(args=["--engines", "segment"]) as daemon:
        for args in ((), ("--flows", "3")):
            must_serve(daemon.port, "TCP_RR", "-l", "-10", *args)


def by_other_groups(body: "Callable[[], str]") -> str:
    """Each daemon hashes addresses into 256 groups: in 1 of 256 daemons two of them share a group and its limits."""
    try:
        return body()
    except AssertionError as fault:
        if "still tests stay" not in str(fault):
            raise
        return body()


def cases() -> Iterator[Case]:
    yield "--max-sessions", partial(sessions, "--max-sessions", 87)
    yield "--max-sessions, one after another", one_after_another
    yield "--max-per-address", partial(sessions, "--max-per-address", 122)
    yield "--max-per-address, two of them", per_address
    yield "--max-rate", rate
    yield "--max-silent", the_silent
    yield "--max-idle", between_requests
    yield "--max-length", partial(too_much, ["--max-length", "2"], ["TCP_RR", "-l", "3"],
                                  ["TCP_RR", "-l", "1"], "max-length")
    for most, own in ((["-l", "0.5", "--warm-up", "0.6"], ["-l", "0.5", "--warm-up", "0.5"]), (["-l", "1.5"], ["-l", "0.5"])):
        yield f"--max-length in fractions: {' '.join(most)}", partial(
            too_much, ["--max-length", "1"], ["TCP_RR", *most], ["TCP_RR", *own], "max-length")
    yield "--max-length by count", counted_for_ever
    yield "--max-length of a warm-up", partial(too_much, ["--max-length", "2"],
                                               ["TCP_RR", "-l", "-10", "--warm-up", "2"],
                                               ["TCP_RR", "-l", "-10", "--warm-up", "1"], "max-length")
    yield "behind its window", behind_its_window
    yield "a client that reads late", late_reader
    yield "a client that half-closes, and reads late", partial(late_reader, True)
    yield "a client that never reads", never_read
    yield "--max-message", partial(too_much, ["--max-message", "64k"],
                                   ["TCP_STREAM", "-l", "1", "--", "-M", "65k"],
                                   ["TCP_STREAM", "-l", "1", "--", "-M", "64k"], "max-message")
    yield "--max-flows", fewer_flows
    yield "--data-ports, fewer than flows", few_ports
    yield "--max-memory", partial(too_much, ["--max-memory", "3M"],
                                  ["TCP_STREAM", "-l", "1", "--", "-M", "2m", "-S", "100k"],
                                  ["TCP_STREAM", "-l", "1"], "max-memory")
    yield "--max-total-memory", shared_memory
    yield "tests that move nothing", partial(by_other_groups, attacks.still_ones)
    yield "tests that move nothing and have ports", partial(by_other_groups, attacks.still_ports)
    yield "--max-threads", partial(too_much, ["--max-threads", "3"],
                                   ["TCP_RR", "-l", "-10", "--flows", "4", "--threads", "4"],
                                   ["TCP_RR", "-l", "-10", "--flows", "3", "--threads", "3"], "max-threads")
    yield "--max-total-flows", partial(too_much, ["--max-total-flows", "3"],
                                       ["TCP_RR", "-l", "-10", "--flows", "4"],
                                       ["TCP_RR", "-l", "-10", "--flows", "3"], "max-total-flows")
    yield "--engines", partial(too_much, ["--engines", "batch"],
                               ["UDP_STREAM", "-l", "-1000", "--engine", ",segment"],
                               ["UDP_STREAM", "-l", "-1000", "--engine", ",batch"], "other")
    yield "--engines, the usual ones", the_usual_engines
    yield "--exclusive", exclusive
    yield "--exclusive 1", line_ends
    yield "--exclusive, a crowd", partial(a_crowd_in_line, 15 * ["127.0.0.3"], "127.0.0.1")
    yield "--exclusive, a network", partial(a_crowd_in_line, [f"127.1.0.{last}" for last in range(1, 16)], "127.0.0.1")
    yield "--exclusive, a turn not used", a_turn_not_used
    yield "--exclusive, gone", leaving_the_line
    yield "--allow, --deny", by_address
    yield "--deny, a reset at once", denied_and_gone
    yield "a noisy stranger", noisy
    yield "noisy sessions", noisy_sessions
    yield "--access-file", read_again
    yield "--access-file, in a session", revoked
    yield "a protocol that the kernel lacks", missing_protocol
    yield "--data-ports", data_ports


def suite(report: lib.Report) -> None:
    lib.netperf(), lib.netserver()  # without them the whole suite is skipped
    report.cases(cases(), AT_ONCE)
    report.part("the real client", partial(stock, report))


if __name__ == "__main__":
    lib.main(suite)
