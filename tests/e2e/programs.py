"""The number of BPF programs that sessions create, counted by strace(1): seccomp and socket filters. A kernel may
hang when about a thousand of them are freed at once.

--long has 500 sessions, and tests of 2,000 flows, counted at both ends.
"""

import re
import shutil
import socket
import tempfile
from functools import partial
from pathlib import Path
from typing import List

import lib
import ours

SESSIONS, FLOWS = 500 if lib.LONG else 60, 2000
MOST = 4              # one for each kind of session
# Probes for kernel features have a NULL address and create no program.
MADE = re.compile(r"SECCOMP_SET_MODE_FILTER, [^,]+, \{|PR_SET_SECCOMP, SECCOMP_MODE_FILTER|"
                  r"SO_ATTACH_FILTER|SO_ATTACH_BPF|BPF_PROG_LOAD")


def traced(trace: str) -> List[str]:
    return ["strace", "-D", "-f", "-o", trace, "-e", "trace=seccomp,prctl,setsockopt,bpf"]


def count(trace: str, pid: int) -> int:
    """The count, after the process has ended and strace has written it."""
    ended = re.compile(rf"^{pid} +\+\+\+", re.M)
    assert lib.wait_for(lambda: ended.search(Path(trace).read_text()), 60), "strace does not end"
    return len([line for line in Path(trace).read_text().splitlines()
                if MADE.search(line) and " = -1 " not in line])


def begin(port: int, code: int) -> socket.socket:
    conn = socket.create_connection(("127.0.0.1", port), 60)
    conn.sendall(ours.frame(code, -1))
    return conn


def sessions(place: str) -> str:
    """With evidence and without, all at once."""
    trace = f"{place}/sessions"
    with lib.Daemon(prefix=traced(trace), args=["--max-rate", "0"]) as daemon:
        conns = [begin(daemon.port, ours.HELLO if i % 2 else 5) for i in range(SESSIONS)]
        for conn in conns:
            assert conn.recv(ours.FRAME, socket.MSG_WAITALL), "no answer"
        for conn in conns:
            conn.close()
    made = count(trace, daemon.pid)
    assert 0 < made <= MOST, f"{made} programs for {SESSIONS} sessions"
    return f"{made} programs for {SESSIONS} sessions"


def flows(place: str, test: str) -> str:
    near, far = f"{place}/near-{test}", f"{place}/far-{test}"
    with lib.Daemon(prefix=traced(far)) as daemon:
        client = lib.Started([*traced(near), lib.netperf(), "-H", "127.0.0.1", "-p", str(daemon.port), "-t", test,
                              "-l", "1", "--flows", str(FLOWS)])
        with client:
            got = client.finish(120)
        assert got.rc == 0, got.err
    made = count(near, client.pid), count(far, daemon.pid)
    assert made[0] == 0 and made[1] <= MOST, f"{made[0]} and {made[1]} programs for {FLOWS} flows"
    return f"{made[0]} and {made[1]} programs for {FLOWS} flows"


def suite(report: lib.Report) -> None:
    if lib.QUICK or shutil.which("strace") is None:
        report.skip("programs", "no strace, or a sanitizer, which it hides leaks from")
        return
    if lib.run(["strace", "-D", "-f", "-o", "/dev/null", "true"], 20).rc != 0:
        report.skip("programs", "strace can't trace here")
        return
    with tempfile.TemporaryDirectory() as place:
        report.case(f"{SESSIONS} sessions", partial(sessions, place))
        for test in ("TCP_RR", "UDP_RR", "UDP_STREAM") if lib.LONG else ():  # engine_list.py has some
            report.case(f"{FLOWS} flows of {test}", partial(flows, place, test))


if __name__ == "__main__":
    lib.main(suite)
