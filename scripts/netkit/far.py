"""Ends that are elsewhere: ssh:HOST and netns:NAME, a plan's client and server. As a program it runs a netperf or netserver
at a host as if it were here, its document included, until it ends or we do."""

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tarfile
import time
from typing import Any, Dict, List, Optional, Sequence, Tuple

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from netkit import machine  # noqa: E402

END = re.compile(r"(ssh|netns):([^\s/-][^\s/]*)")
SSH = ("ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=10")
DOCUMENT = re.compile(r"--json=/dev/fd/(\d+)")
PATIENCE = 10       # seconds for a daemon to answer a client, and for files to be copied
TRY_S = 5           # and for one try

# At the host: a command, ended when our end of its standard input is closed, in whichever way that comes about. With a
# document its standard output is followed by a 0 byte and the document, from a file that has no name any more.
RUN = """PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin; exec 3<&0; f=$1; shift
if [ "$f" ]; then f=$(mktemp) && exec 8<"$f" 9>"$f" && rm -f "$f" || exit 125; fi
"$@" </dev/null 3<&- & p=$!
{ cat <&3; kill "$p"; sleep 2; kill -9 "$p"; } >/dev/null 2>&1 8<&- 9>&- & w=$!
wait "$p"; s=$?
kill "$w"
if [ "$f" ]; then printf '\\0'; cat <&8; fi
exit "$s"
"""

# At the host: a folder for a tar file of that many bytes; it is named, and removed when standard input ends.
KEEP = """d=$(mktemp -d) && head -c "$1" | tar -x -C "$d" -f - && echo "$d" && cat >/dev/null; rm -rf "$d"
"""


class EndError(Exception):
    """What is no end; one line."""


def split(end: str) -> "List[str]":
    """Kind and name. Raises EndError."""
    found = END.fullmatch(end)
    if not found:
        raise EndError(f"{end}: ssh:HOST or netns:NAME")
    return [found[1], found[2]]


def host(end: str) -> str:
    """The address of an end that has it in its name; else empty."""
    kind, name = split(end)
    return name.rpartition("@")[2] if kind == "ssh" else ""


def plain(end: str) -> "List[str]":
    """What a user would type in front of a command."""
    if not end:
        return []
    kind, name = split(end)
    return ["ssh", name] if kind == "ssh" else ["ip", "netns", "exec", name]


def at_host(ssh: Sequence[str], script: str, *words: str) -> "List[str]":
    """A script of ours with these words, where that ssh command leads."""
    return [*ssh, shlex.join(["exec", "sh", "-c", script, "sh", *words])]


def through(ssh: Sequence[str], program: str) -> "List[str]":
    """What goes before a command to run it there, with that program in place of ours: see main()."""
    return [sys.executable, "-B", __file__, shlex.join(ssh), program]


class Copies:
    """Programs at a host, as long as we live."""

    def __init__(self, name: str, programs: Sequence[str]) -> None:
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as tar:
            for program in programs:
                tar.add(machine.find(program) or program, os.path.basename(program))
        size = str(len(packed.getvalue()))
        self._ssh = subprocess.Popen(at_host([*SSH, name], KEEP, size), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     start_new_session=True, preexec_fn=machine.free_signals)
        assert self._ssh.stdin and self._ssh.stdout
        with contextlib.suppress(BrokenPipeError):
            self._ssh.stdin.write(packed.getvalue())
            self._ssh.stdin.flush()
        self.place = self._ssh.stdout.readline().decode().strip()
        if not self.place:
            self.remove()
            raise machine.MachineError(f"ssh:{name}: no programs could be copied there")

    def remove(self) -> None:
        assert self._ssh.stdin
        with contextlib.suppress(BrokenPipeError, subprocess.TimeoutExpired):
            self._ssh.stdin.close()
            self._ssh.wait(PATIENCE)
        self._ssh.kill()
        self._ssh.wait()


class Ends(machine.Place):
    """The clients and servers that the points of a plan name; those of ssh are the programs in the PATH there, or copies
    of ours."""

    def __init__(self, netperf: str, netserver: str, args: Sequence[str] = (), copies: bool = False,
                 known: "Optional[Dict[str, Any]]" = None) -> None:
        self._known = known or {}       # where there are no points
        self._programs = {"netperf": netperf, "netserver": netserver}
        self._args, self._copies = list(args), copies
        self._daemons: "Dict[Tuple[str, str], machine.Process]" = {}     # by the end and the port
        self._kept: "Dict[str, Copies]" = {}
        self.prefix: "List[str]" = []

    def _before(self, end: str, program: str) -> "List[str]":
        """What goes before a command of a program of ours, to have it run there."""
        if not end.startswith("ssh:"):
            return plain(end)
        name = split(end)[1]
        if self._copies:
            if name not in self._kept:
                self._kept[name] = Copies(name, list(self._programs.values()))
            program = f"{self._kept[name].place}/{os.path.basename(self._programs[program])}"
        return through([*SSH, name], program)

    def ready(self, lab: "Optional[List[str]]", family: int, known: "Optional[Dict[str, Any]]" = None) -> None:
        known = known or self._known
        server, port = str(known.get("server") or ""), str(known.get("port") or machine.LAB_PORT)
        self.prefix = self._before(str(known.get("client") or ""), "netperf")
        daemon = self._daemons.get((server, port))
        if not server or daemon and not daemon.ended():
            return
        daemon = machine.Process(
            [*self._before(server, "netserver"), self._programs["netserver"], "-D", "-p", port, *self._args])
        try:
            self._await(daemon, server, ["-H", str(known["host"]), "-p", port, f"-{family}"])
        except BaseException:
            daemon.end()
            raise
        self._daemons[server, port] = daemon

    def _await(self, daemon: machine.Process, server: str, to: "List[str]") -> None:
        """Until the client has an answer."""
        until = time.monotonic() + PATIENCE
        while True:
            tried = machine.run([*self.prefix, self._programs["netperf"], *to, "-t", "TCP_RR", "-l", "-1"], TRY_S)
            if daemon.ended():
                said = daemon.said()
                raise machine.MachineError(f"the netserver at {server} has ended: {said}"
                                           + (" (--copy takes ours there)" if "not found" in said else ""))
            if tried.exit == 0:
                return
            if time.monotonic() > until:
                lines = tried.stderr.strip().splitlines()
                raise machine.MachineError(f"the netserver at {server} does not answer: {(lines or [tried.reason])[-1]}")
            machine.pause(0.1)

    def leave(self) -> None:
        for daemon in self._daemons.values():
            daemon.end()
        for copies in self._kept.values():
            copies.remove()
        self._daemons, self._kept = {}, {}


def main(ssh_words: str, program: str, _here: str, *words: str) -> int:
    """Runs a program there with the words of a command of ours."""
    found = [match for match in map(DOCUMENT.fullmatch, words) if match]
    words = tuple("--json=/dev/fd/9" if DOCUMENT.fullmatch(word) else word for word in words)
    ssh = subprocess.Popen(at_host(shlex.split(ssh_words), RUN, "document" if found else "", program, *words), stdin=subprocess.PIPE,
                           stdout=subprocess.PIPE if found else None)
    if ssh.stdout:
        output, _, document = ssh.stdout.read().partition(b"\0")
        sys.stdout.buffer.write(output)
        sys.stdout.buffer.flush()
        with open(int(found[0][1]), "wb", closefd=False) as file:
            file.write(document)
    return ssh.wait()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
