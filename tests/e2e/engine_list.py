"""What `--engine list` says about each end is true; and kernels that lack a feature that an engine needs: it is
reported in one line if the engine was requested, and the feature is never used otherwise.
"""

import json
import re
import shutil
import signal
import socket
import tempfile
import threading
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

import kernel
import lib
import ours

HOST = "127.0.0.1"
PATIENCE = 60

# Tests with a count that is reached immediately.
QUICK = {"TCP_STREAM": -1000000, "TCP_MAERTS": -1000000, "TCP_SENDFILE": -1000000, "TCP_RR": -50, "TCP_CRR": -20,
         "TCP_CC": -20, "UDP_STREAM": -20000, "UDP_RR": -50}


def listed(command: List[str], status: int = 0) -> Any:
    """The list as a document."""
    got = lib.run([*command, "--engine", "list", "--json"], PATIENCE)
    assert got.rc == status and bool(got.err) == (status != 0), got
    return json.loads(got.out)


def whys(rows: Any) -> "Dict[str, Optional[str]]":
    """Why each engine is unavailable; None: it is available."""
    assert all(set(row) == {"name", "help", "why"} and row["name"] and row["help"] for row in rows), rows
    return {row["name"]: row["why"] for row in rows}


@lru_cache(maxsize=None)
def rings() -> List[str]:
    """Options of a daemon that make all engines available."""
    here = whys(listed([lib.netperf(), "-t", "TCP_RR"])["near"])
    return ["--spin", "8", *(("--uring", "2", "--max-filters", "128") if here.get("uring", "none") is None else ())]


# ---- what is said ----


def only_this_end() -> None:
    for args in ((), ("-N", "-H", HOST)):
        got = lib.run([lib.netperf(), *args, "--engine", "list"], PATIENCE)
        assert got.rc == 0 and not got.err, got
        *_, last = got.out.splitlines()
        assert last.startswith("only this end is shown: ") and last.endswith(("(-H)", "(-N)")), last
        document = listed([lib.netperf(), *args])
        assert document["far"] is None and last.endswith(document["far_lacks"]), document
        assert whys(document["near"]).get("sync", "") is None, document


def both_ends(port: int) -> None:
    document = listed(lib.command(port, "-t", "UDP_STREAM"))
    near, far = whys(document["near"]), whys(document["far"])
    assert list(near) == list(far) and near["sync"] is None and far["epoll"] is None, document
    assert (document["test"], document["flows"], document["far_lacks"]) == ("UDP_STREAM", 1, None), document
    got = lib.run([*lib.command(port, "-t", "UDP_STREAM"), "--engine", "list"], PATIENCE)
    here, there = got.out.splitlines()[::len(near) + 1]
    assert here == "engines at this end, for UDP_STREAM with --flows 1:", got
    assert there == f"engines at the netserver at {HOST} port {port}, for UDP_STREAM with --flows 1:", got


def the_shape_excludes(port: int) -> None:
    document = listed(lib.command(port, "-t", "TCP_RR", "--flows", "3"))
    near, far = whys(document["near"]), whys(document["far"])
    assert near["sync"] == far["sync"] and "one connection" in str(near["sync"]), document
    assert near["epoll"] is None and far["epoll"] is None and near["batch"], document


def into_a_file(port: int, place: Path) -> None:
    got = lib.run([*lib.command(port), "--engine", "list", f"--json={place}"], PATIENCE)
    assert got.rc == 0 and got.out.startswith("engines at this end") and not got.err, got
    assert json.loads(place.read_text())["far"], place.read_text()
    got = lib.run([*lib.command(port), "--engine", "list", "--json=/nowhere/list.json"], PATIENCE)
    assert got.rc != 0, got
    lib.error_line(got, "netperf", "--json", "/nowhere/list.json")


# What a daemon's limits would refuse: its options, the test, and the reasons in the list.
LIMITS = (
    ("--max-message 1000", "-t TCP_STREAM -- -M 2000", "--max-message"),
    ("--max-length 5", "-t TCP_RR -l 6", "--max-length"),
    ("--data-ports 20000-20001", "-t TCP_STREAM -- -P ,30000", "--data-ports"),
    ("", "-t DLCL_RR", "--allow-raw"),
)


def a_limit_is_a_reason(options: str, args: str, says: str) -> None:
    with lib.Daemon(args=options.split()) as daemon:
        words = args.split()
        at = words.index("--") if "--" in words else len(words)
        command = [*lib.command(daemon.port, *words[:at]), "--engine", "list", "--json", *words[at:]]
        got = lib.run(command, PATIENCE)
        if "DLCL" in args and "CAP_NET_RAW" in got.err:
            raise lib.Skipped("no CAP_NET_RAW")
        document = json.loads(got.out)
        assert got.rc == 0 and all(says in str(why) for why in whys(document["far"]).values()), got
        assert None in whys(document["near"]).values(), document


def too_much_memory() -> None:
    """An engine's own memory counts."""
    with lib.Daemon(args=["--max-memory", "8M"]) as daemon:
        document = listed(lib.command(daemon.port, "-t", "UDP_STREAM", "--batch", "1024"))
        far = whys(document["far"])
        assert far["sync"] is None and "--max-memory" in str(far["batch"]), document


def no_test_is_one(port: int) -> None:
    """Invalid tests are refused as they are without the list."""
    got = lib.run([*lib.command(port, "-t", "TCP_CRR", "--ramp", "5", "--flows", "2"), "--engine", "list"], PATIENCE)
    assert got.rc == 1 and not got.out, got
    lib.error_line(got, "netperf", "--ramp", "TCP_CRR")
    got = lib.run([*lib.command(port, "-t", "REM_CPU"), "--engine", "list"], PATIENCE)
    assert got.rc == 1 and not got.out, got
    lib.error_line(got, "netperf", "--engine list", "REM_CPU")


def only_for_those_let_in() -> None:
    """The list is available only after the passphrase."""
    with lib.Daemon(args=["-Z", "sesame"]) as daemon:
        for args, status in (((), 1), (("-Z", "barley"), 1), (("-Z", "sesame"), 0)):
            got = lib.run([*lib.command(daemon.port, *args), "--engine", "list", "--json"], PATIENCE)
            assert (got.rc == 0) == (status == 0) and got.rc is not None, (args, got)
            assert (json.loads(got.out)["far"] is None) == (status != 0), (args, got)


def nobody_there() -> None:
    port = lib.free_port()
    document = listed(lib.command(port), status=255)
    assert document["near"] and document["far"] is None and "control connection" in document["far_lacks"], document
    got = lib.run([*lib.command(port), "--engine", "list"], PATIENCE)
    assert got.rc == 255 and got.out.startswith("engines at this end"), got
    lib.error_line(got, "netperf", "establish the control connection")


# ---- daemons that are none of ours, or hostile ----


def text(name: bytes, value: bytes) -> bytes:
    """A text in an evidence bag."""
    return ours.field(3, ours.word(len(name)) + name + bytes(-len(name) % 4) + value)


def welcome(caps: int) -> bytes:
    return ours.frame(ours.WELCOME, 0, ours.number(1, 1) + ours.number(2, caps))


class Script:
    """A daemon that gives prepared answers to requests one after the other, then disconnects."""

    def __init__(self, answers: "List[bytes]") -> None:
        self._answers: "Iterator[bytes]" = iter(answers)
        self._listener = socket.create_server((HOST, 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> "Script":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(PATIENCE)

    def _serve(self) -> None:
        while True:
            try:
                control = self._listener.accept()[0]
            except OSError:
                return  # disconnected
            with control:
                try:
                    self._answer(control)
                except ConnectionError:
                    pass  # the client has disconnected

    def _answer(self, control: socket.socket) -> None:
        control.settimeout(PATIENCE)
        while True:
            ours.receive(control)
            answer = next(self._answers, b"")
            if not answer:
                return
            control.sendall(answer)


def netperfs_says_nothing() -> None:
    with Script([ours.frame(0, 998), ours.frame(5, 0)] * 2) as script:
        document = listed(lib.command(script.port))
        assert document["far"] is None and "does not say what its engines are" in document["far_lacks"], document
        got = lib.run([*lib.command(script.port), "--engine", "list"], PATIENCE)
        assert got.rc == 0 and not got.err, got
        assert got.out.splitlines()[-1].startswith("only this end is shown: the netserver at "), got


def what_a_stranger_says_is_harmless() -> None:
    bag = (text(b"steam.help", "\u202egnip \u200b".encode() + b"\x1b[31m\xff\nengines") + text(b"steam.why", b"no coal\x07")
           + text(b"why", b"?") + text(b"sync", b"?") + text(b"a.b.help", b"?") + text(b".help", b"?"))
    with Script([welcome(ours.PLANS), ours.message(ours.BAG, bag)] * 2) as script:
        document = listed(lib.command(script.port))
        assert whys(document["far"]) == {"steam": "no coal?"}, document
        got = lib.run([*lib.command(script.port), "--engine", "list"], PATIENCE)
        assert got.rc == 0 and not got.err, got
        assert got.out.isascii() and got.out.replace("\n", "").isprintable(), got
        assert got.out.splitlines()[-1].endswith("; not here: no coal?"), got


# Invalid answers, and the error line about each.
NONSENSE = (
    ([welcome(ours.PLANS), ours.word(ours.BAG) + ours.word(4)], "8 of 12 bytes"),
    ([welcome(ours.PLANS), ours.message(ours.BAG, b"xyz")], "cut off"),
    ([welcome(ours.PLANS), ours.word(ours.BAG) + ours.word(1 << 30)], "0x504c0035 with 1073741824 bytes"),
    ([welcome(ours.PLANS), ours.message(ours.ERROR, ours.number(1, 22))], "error 22"),
    ([welcome(ours.PLANS), ours.message(ours.GRANT)], "0x504c0035"),
    ([welcome(ours.PLANS)], ""),
)


def nonsense(answers: "List[bytes]", says: str) -> None:
    with Script(answers) as script:
        got = lib.run([*lib.command(script.port), "--engine", "list"], PATIENCE)
        assert got.rc not in (None, 0) and got.out.startswith("engines at this end"), got
        lib.error_line(got, "netperf", says)


def hostile_questions(port: int) -> None:
    """The daemon answers invalid requests with an error, and continues to serve others."""
    def ask(*fields: bytes) -> ours.Came:
        with socket.create_connection((HOST, port)) as control:
            control.settimeout(PATIENCE)
            ours.greet(control)
            control.sendall(ours.message(ours.ENGINES, *fields))
            return ours.receive(control)

    rr = (ours.field(1, b"rr"), ours.field(2, b"TCP"), *(ours.number(*one) for one in ((3, 1), (5, 4), (7, 1), (8, 1))))
    assert ask(*rr)[:2] == (ours.BAG, 0)
    for fields in ((), (ours.field(1, b"rr"),), (*rr, ours.number(32, 0)), (*rr, ours.field(34, b"steam")),
                   (*rr, ours.word(7) + ours.word(999)), (*rr, ours.number(41, 1025))):
        came = ask(*fields)
        assert came.kind == ours.ERROR and came.error in (22, 93, 95), (fields, came)
    assert ask(*rr)[:2] == (ours.BAG, 0)


# ---- that it is true ----


def counted(port: int, test: str, *args: str) -> lib.Result:
    return lib.run(lib.command(port, "-t", test, "-l", str(QUICK[test]), *args), PATIENCE)


def the_list_is_true(port: int, test: str) -> str:
    """Available engines work; others are refused with the listed reason. The request does not break the session,
    although seccomp forbids many calls."""
    document = listed(lib.command(port, "-t", test))
    near, far = whys(document["near"]), whys(document["far"])
    for name in near:
        if near[name] is None and far[name] is None:
            got = counted(port, test, "--engine", name)
            assert got.rc == 0 and not lib.complaints(got), (name, got)
            continue
        for why, asked in ((near[name], f"{name},"), (far[name], f",{name}")):
            got = counted(port, test, "--engine", asked)
            assert (got.rc == 0) == (why is None), (asked, why, got)
            if why is not None:
                lib.error_line(got, "netperf", name, why)
    return " ".join(name for name in near if near[name] is None and far[name] is None)


# ---- kernels without ----


class Lack(NamedTuple):
    """A missing feature, named after its engine, and tests that need it at the near and at the far end."""
    feature: str
    near: str
    far: str
    answers: "Tuple[str, ...]"


CALL, OPTION = ("ENOSYS", "EPERM"), ("ENOPROTOOPT", "EPERM")
LACKS = (
    Lack("batch", "UDP_STREAM", "UDP_STREAM", CALL),
    Lack("segment", "UDP_STREAM", "UDP_STREAM", OPTION),
    Lack("zerocopy", "TCP_STREAM", "TCP_MAERTS", OPTION),
    Lack("uring", "TCP_RR", "TCP_RR", CALL),
)


@lru_cache(maxsize=None)
def as_they_are(port: int, test: str, end: str) -> "Dict[str, Optional[str]]":
    return whys(listed(lib.command(port, "-t", test))[end])


def need(there: "Dict[str, Optional[str]]", name: str) -> None:
    """Skip if the engine is unavailable anyway."""
    if name not in there:
        raise lib.Skipped(f"no engine {name} in this build")
    if there[name] is not None:
        raise lib.Skipped(f"{name} can't be had as it is: {there[name]}")


def lacks_here(port: int, lack: Lack, answer: str) -> str:
    need(as_they_are(port, lack.near, "near"), lack.feature)
    poorer = kernel.without(answer, lack.feature)
    why = whys(listed([*poorer, lib.netperf(), "-t", lack.near])["near"])[lack.feature]
    assert why, "the list says that it can be had"
    got = lib.run([*poorer, *lib.command(port, "-t", lack.near, "-l", str(QUICK[lack.near]), "--engine", f"{lack.feature},")],
                  PATIENCE)
    assert got.rc == 1 and not got.out, got
    return lib.error_line(got, "netperf", f"--engine {lack.feature}", why, "--engine list")


def lacks_there(port: int, lack: Lack, answer: str) -> str:
    need(as_they_are(port, lack.far, "far"), lack.feature)
    with lib.Daemon(prefix=kernel.without(answer, lack.feature), args=rings()) as daemon:
        why = whys(listed(lib.command(daemon.port, "-t", lack.far))["far"])[lack.feature]
        assert why, "the list says that it can be had"
        got = counted(daemon.port, lack.far, "--engine", f",{lack.feature}")
        assert got.rc not in (None, 0), got
        return lib.error_line(got, "netperf", f"engine {lack.feature} at the daemon", why, "--engine list")


def never_unasked(port: int, test: str, *args: str) -> None:
    """Each of these calls would kill either program."""
    got = lib.run([*kernel.without("KILL", ",".join(kernel.FEATURES)),
                   *lib.command(port, "-t", test, "-l", str(QUICK[test]), *args)], PATIENCE)
    assert got.rc == 0 and not lib.complaints(got), got


def asked_it_kills(port: int) -> None:
    """Check that the previous test can fail."""
    got = lib.run([*kernel.without("KILL", "batch"), *lib.command(port, "-t", "UDP_STREAM", "-l", "-1000", "--engine", "batch,")],
                  PATIENCE)
    assert got.rc == -signal.SIGSYS, got
    got = counted(port, "UDP_STREAM", "--engine", ",batch")
    assert got.rc not in (None, 0), got


def kernels(report: lib.Report, port: int) -> None:
    if report.lacks("kernels without a feature", kernel.lacks()):
        return
    report.cases([(f"{lack.feature}: {answer}, {where}", partial(body, port, lack, answer)) for lack in LACKS
                  for answer in lack.answers for where, body in (("here", lacks_here), ("there", lacks_there))], at_once=4)
    with lib.Daemon(prefix=kernel.without("KILL", ",".join(kernel.FEATURES))) as daemon:
        cases = [(test, args) for test in QUICK for args in ((), ("--flows", "3"))]
        cases += [(test, ("--json", "--threads", "2", "--flows", "2")) for test in ("TCP_STREAM", "UDP_RR")]
        report.cases([(f"{test} {' '.join(args)}: nothing unasked", partial(never_unasked, daemon.port, test, *args))
                      for test, args in cases], at_once=4)
        report.case("what is asked for is seen", partial(asked_it_kills, daemon.port))


# ---- what a session may do ----


DENIED = re.compile(r"^\d+ +(\w+)\((?:\d+, (\w+, \w+))?.* = -1 (?:EPERM|EACCES)", re.M)
KNOWN = ("setsockopt", "SOL_SOCKET, SO_PREFER_BUSY_POLL")    # which needs CAP_NET_ADMIN; spin reports that it failed


def denied(log: Path) -> "Set[Tuple[str, str]]":
    return set(DENIED.findall(log.read_text(errors="replace")))


def trace_into(log: Path, what: str) -> List[str]:
    if lib.QUICK:
        raise lib.Skipped("sanitizers find no leaks while strace looks on, and sessions are not confined")
    if not shutil.which("strace"):
        raise lib.Skipped("no strace")
    trace = ["strace", "-D", "-f", "-o", str(log), "-e", what]
    if lib.run([*trace, "true"], PATIENCE).rc != 0:
        raise lib.Skipped("strace can't trace here")
    return trace


FLOWS = 100
MANY = {"TCP_RR": -1000, "TCP_STREAM": -1000000, "TCP_CRR": -200, "UDP_RR": -1000, "UDP_STREAM": -1000000}


def no_programs() -> str:
    """No data socket has a BPF program: kernels do not survive a thousand of them being freed at once."""
    ran = 0
    with tempfile.TemporaryDirectory() as place:
        near, far, calls = Path(place) / "near", Path(place) / "far", "setsockopt,bpf,bind"
        trace = [*trace_into(near, calls), "-A"]
        with lib.Daemon(args=["--no-sandbox", *rings()], prefix=trace_into(far, calls)) as daemon:
            for test, length in MANY.items():
                command = lib.command(daemon.port, "-t", test, "--flows", str(FLOWS), "--threads", "2")
                document = listed(command)
                here, there = whys(document["near"]), whys(document["far"])
                for name in [name for name in here if here[name] is None and there[name] is None]:
                    lib.must([*trace, *command, "-l", str(length), "--engine", name], PATIENCE)
                    ran += 1
        for log in (near, far):
            text = log.read_text(errors="replace")
            made = re.findall(r"^.*(?:SO_ATTACH_|\bbpf\().*$", text, re.M)
            assert " bind(" in text and not made, made[:3]
    return f"{ran} tests of {FLOWS} flows"


def nothing_off_the_list() -> str:
    """What seccomp or other rules deny to a session with an engine is denied without one, too."""
    with tempfile.TemporaryDirectory() as place:
        log = Path(place) / "calls"
        trace = trace_into(log, "status=failed")
        with lib.Daemon(args=rings(), prefix=trace) as daemon:
            for test in QUICK:
                assert counted(daemon.port, test, "--json").rc == 0, test
            before, ran = denied(log), 0
            for test in QUICK:
                far = whys(listed(lib.command(daemon.port, "-t", test))["far"])
                assert denied(log) - before <= {KNOWN}, (test, denied(log) - before)
                for name in [name for name in far if far[name] is None]:
                    got = counted(daemon.port, test, "--engine", f",{name}", "--json")
                    assert got.rc == 0, (test, name, got)
                    assert denied(log) - before <= {KNOWN}, (test, name, denied(log) - before)
                    ran += 1
    return f"{ran} tests; denied without an engine: {len(before)} calls"


def suite(report: lib.Report) -> None:
    lib.skip_if(lib.no_documents())
    report.each((only_this_end, nobody_there, only_for_those_let_in, nothing_off_the_list, no_programs,
                 netperfs_says_nothing, what_a_stranger_says_is_harmless))
    for number, (answers, says) in enumerate(NONSENSE):
        report.case(f"nonsense {number}", partial(nonsense, answers, says))
    report.cases([(f"netserver {options}, {args}", partial(a_limit_is_a_reason, options, args, says))
                  for options, args, says in LIMITS] + [("netserver --max-memory", too_much_memory)], at_once=4)
    with lib.Daemon(args=rings()) as daemon, tempfile.TemporaryDirectory() as place:
        report.each((both_ends, the_shape_excludes), daemon.port)
        report.case("into a file", partial(into_a_file, daemon.port, Path(place) / "list.json"))
        report.each((no_test_is_one, hostile_questions), daemon.port)
        report.cases([(f"{test}: the list is true", partial(the_list_is_true, daemon.port, test))
                      for test in QUICK], at_once=4)
        kernels(report, daemon.port)


lib.main(suite)
