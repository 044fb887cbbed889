#!/usr/bin/env python3
"""A daemon in the background and its sessions log to syslog, and nowhere else. Runs in namespaces of its own, where
/dev/log is this test's."""

import os
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import lib
import ours

PORT = 22222
LOG = "/dev/log"
DEVICES = ("null", "zero", "urandom", "random")


def own_devices() -> socket.socket:
    """Mount a /dev with a few devices and syslog's socket, which is returned."""
    with tempfile.TemporaryDirectory() as place:
        subprocess.run(["mount", "-t", "tmpfs", "dev", place], check=True)
        for name in DEVICES:
            Path(place, name).touch()
            subprocess.run(["mount", "--bind", f"/dev/{name}", f"{place}/{name}"], check=True)
        subprocess.run(["mount", "--rbind", place, "/dev"], check=True)
        subprocess.run(["umount", "-R", place], check=True)
    log = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    log.bind(LOG)
    os.chmod(LOG, 0o666)
    return log


def lines(log: socket.socket, awaited: str = "", seconds: float = 60) -> str:
    """Lines from the log until one contains the awaited text; without one, all that are there."""
    got = ""
    end = time.monotonic() + (seconds if awaited else 0)
    while not awaited or awaited not in got:
        log.settimeout(max(0.001, end - time.monotonic()))
        try:
            got += log.recv(4096).decode() + "\n"
        except socket.timeout:
            break
    return got


def in_vain() -> bytes:
    """A test that the daemon ends with an error: returns what arrives on its data connection."""
    with socket.create_connection(("127.0.0.1", PORT), 60) as control:
        control.sendall(ours.omni(-100000))
        answer = control.recv(ours.FRAME, socket.MSG_WAITALL)
        port = struct.unpack_from("!I", answer, 52)[0]
        with socket.create_connection(("127.0.0.1", port), 60) as data:
            data.settimeout(60)
            return data.recv(4096)


def unread(log: socket.socket) -> str:
    """The log is not read: clients are served, and later a line says how many lines were lost."""
    subprocess.run([lib.netserver(), "-p", str(PORT), "-L", "127.0.0.1", "-v", "2"], check=True,
                   stdout=subprocess.DEVNULL)
    pid = int(lines(log, awaited="netserver[").split("netserver[")[1].split("]")[0])
    command = lib.command(PORT, "-t", "TCP_RR", "-l", "-10", "-P", "0")
    try:
        for _ in range(10):     # a test logs three lines or more; 11 fill the socket
            lib.must(command, 60)
        status = lib.run([lib.netserver(), "-p", str(PORT), "--status"], 60).out
        counted = int(re.findall(r"^log +(\d+) lines lost", status, re.M)[0])
        assert counted > 5, status
        lines(log)
        assert lib.run(command, 60).rc == 0
        said = lines(log, awaited="event=lines-lost")
        assert int(re.findall(r"event=lines-lost lines=(\d+)", said)[0]) >= counted, (counted, said)
    finally:
        os.kill(pid, signal.SIGTERM)
        assert lib.wait_for(lambda: not Path(f"/proc/{pid}").exists(), 60)
        lines(log)
    return f"{counted} lines lost"


def suite(report: lib.Report) -> None:
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    with own_devices() as log, tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o777)
        for name, args in (
                ("plain", []),
                ("one listener", ["-L", "127.0.0.1"]),
                ("no status", ["-L", "127.0.0.1", "--no-status"]),
                ("metrics", ["-L", "127.0.0.1", "--metrics-file", f"{place}/m.prom"]),
        ):
            subprocess.run([lib.netserver(), "-p", str(PORT), "--max-length", "1", *args],
                           check=True, stdout=subprocess.DEVNULL)
            began = lines(log, awaited="netserver[")
            pid = int(began.split("netserver[")[1].split("]")[0])
            try:
                came = in_vain()
                said = lines(log, awaited="allows no longer tests")
            finally:
                os.kill(pid, signal.SIGTERM)
                gone = lib.wait_for(lambda: not Path(f"/proc/{pid}").exists(), 60)
            lines(log)
            report.check(f"{name}: the daemon ends", gone)
            report.check(f"{name}: the client gets no log line", came == b"", repr(came))
            report.check(f"{name}: syslog gets it", "allows no longer tests" in said, said)
        report.case("nobody reads", lambda: unread(log))


if os.environ.get("NP_TEST_OWN_DEVICES") != "1":
    lib.skip_if(lib.no_lab())
    os.execvpe("unshare", ["unshare", "-m", "-n", sys.executable, *sys.argv],
               {**os.environ, "NP_TEST_OWN_DEVICES": "1"})
lib.main(suite)
