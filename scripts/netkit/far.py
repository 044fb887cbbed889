"""Ends that are elsewhere: ssh:HOST and netns:NAME, a plan's client and server. As a program it runs a netperf or netserver
at a host as if it were here, its document included, until it ends or we do."""

import contextlib
import functools
import io
import itertools
import os
import re
import resource
import secrets
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from typing import Any, BinaryIO, Dict, List, Optional, Sequence, Tuple

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from netkit import machine  # noqa: E402

END = re.compile(r"(ssh|netns):([^\s/=-][^\s/=]*)(?:=([^\s/=-][^\s/=]*))?")
SSH = ("ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=10")
DOCUMENT = re.compile(r"--json=/dev/fd/(\d+)")
KEY = "key"         # a file's name
PATIENCE = 10       # seconds for a daemon to answer a client, and for files to be copied
TRY_S = 5           # and for one try
START_S = 30        # and for a connection by ssh, and what goes over it first
PLACE_MOST = 1 << 16    # bytes of an answer that is a path

# At the host: a command that begins when a line comes on its standard input, which it asks for by an empty line, and is ended
# when our end of that is closed, in whichever way that comes about. With a document its standard output is followed by a 0
# byte and the document, from a file that has no name any more.
RUN = """PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin; exec 3<&0; f=$1; shift
echo; read -r go <&3 || exit 143
if [ "$f" ]; then f=$(mktemp) && exec 8<"$f" 9>"$f" && rm -f "$f" || exit 125; fi
"$@" </dev/null 3<&- & p=$!
{ cat <&3; kill "$p"; sleep 2; kill -9 "$p"; } >/dev/null 2>&1 8<&- 9>&- & w=$!
wait "$p"; s=$?
kill "$w"
if [ "$f" ]; then printf '\\0'; cat <&8; fi
exit "$s"
"""

# At the host: a folder for a tar file of that many bytes; it is named, and removed when standard input ends.
KEEP = """d=$(mktemp -d) && head -c "$1" | tar -xo -C "$d" -f - && echo "$d" && cat >/dev/null; rm -rf "$d"
"""


class EndError(Exception):
    """What is no end; one line."""


def split(end: str) -> "List[str]":
    """Kind, name and, where one is given, its address in tests. Raises EndError."""
    found = END.fullmatch(end)
    if not found:
        raise EndError(f"{end}: ssh:HOST or netns:NAME, and =ADDRESS where tests go by another one")
    return [found[1], found[2], found[3] or ""]


@functools.lru_cache(maxsize=None)      # of each point of a mesh
def named(end: Any) -> str:
    """The same, without an address for tests."""
    return str(end).partition("=")[0] if END.fullmatch(str(end)) else str(end)


def host(end: str) -> str:
    """The address of an end that has it in its name; else empty."""
    kind, name, address = split(end)
    return address or (name.rpartition("@")[2] if kind == "ssh" else "")


def plain(end: str) -> "List[str]":
    """What a user would type in front of a command."""
    if not end:
        return []
    kind, name, _ = split(end)
    return ["ssh", name] if kind == "ssh" else ["ip", "netns", "exec", name]


def at_host(ssh: Sequence[str], script: str, *words: str) -> "List[str]":
    """A script of ours with these words, where that ssh command leads."""
    return [*ssh, shlex.join(["exec", "sh", "-c", script, "sh", *words])]


def through(ssh: Sequence[str], program: str) -> "List[str]":
    """What goes before a command to run it there, with that program in place of ours: see main()."""
    return [sys.executable, "-B", __file__, shlex.join(ssh), program]


class Kept:
    """Files at a host, as long as we live, over a connection that others share."""

    def __init__(self, ssh: Sequence[str], name: str, files: Sequence[str], control: str) -> None:
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as tar:
            for file in files:
                tar.add(file, os.path.basename(file))
        data, self.place = packed.getvalue(), ""
        way = ["-S", control, name]
        self.ssh = [*ssh, *way]
        self._process = subprocess.Popen(at_host([*ssh, "-M", *way], KEEP, str(len(data))), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         stderr=subprocess.PIPE, start_new_session=True, preexec_fn=machine.free_signals)
        try:
            self.place = self._answer(data)
        except machine.MachineError as fault:
            raise machine.MachineError(f"ssh:{name}: {fault}") from None
        finally:
            if not self.place:
                self.remove()

    def _answer(self, data: bytes) -> str:
        """Where they are now."""
        said = {False: b"", True: b""}
        for is_complaint, piece in machine.pieces(self._process, START_S, data, PLACE_MOST, heed=True):
            said[is_complaint] += piece
            line, newline, _ = said[False].decode(errors="replace").partition("\n")
            if newline and line.strip():
                return line.strip()
        lines = said[True].decode(errors="replace").strip().splitlines()
        raise machine.MachineError((lines or ["no files could be copied there"])[-1])

    def ended(self) -> bool:
        return self._process.poll() is not None

    def remove(self) -> None:
        assert self._process.stdin
        with contextlib.suppress(BrokenPipeError, subprocess.TimeoutExpired):
            self._process.stdin.close()
            self._process.wait(PATIENCE)
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe:
                pipe.close()


class Ends(machine.Place):
    """The clients and servers that the points of a plan name; those of ssh are the programs in the PATH there, or copies
    of ours. A key made for us is what a client needs at these servers."""

    def __init__(self, netperf: str, netserver: str, args: Sequence[str] = (), copies: bool = False,
                 known: "Optional[Dict[str, Any]]" = None, ssh_config: str = "", keyed: bool = True) -> None:
        self._known = known or {}       # where there are no points
        self._programs = {"netperf": netperf, "netserver": netserver}
        self._args, self._copies = list(args), copies
        self._keyed = keyed and all(machine.knows(one, "--key-file") for one in self._programs.values() if machine.find(one))
        self._daemons: "Dict[Tuple[str, str], machine.Process]" = {}     # by the end and the port
        self._kept: "Dict[str, Kept]" = {}
        self._numbers = itertools.count()
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))    # some files for each host
        self._home = tempfile.mkdtemp()
        self._guard = machine.Guard("rm", "-rf", self._home)
        self._key = f"{self._home}/{KEY}"
        with open(os.open(self._key, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as file:
            file.write(secrets.token_hex(32) + "\n")
        self._ssh = list(SSH)
        if ssh_config:
            self._ssh += ["-F", shutil.copy(ssh_config, f"{self._home}/config")]
        self.prefix, self.options = [], []

    def _at(self, name: str) -> Kept:
        if name in self._kept and self._kept[name].ended():     # the host, or a firewall, has forgotten us
            self._kept.pop(name).remove()
        if name not in self._kept:
            files = [machine.find(program) or program for program in self._programs.values()] if self._copies else []
            self._kept[name] = Kept(self._ssh, name, [self._key, *files], f"{self._home}/{next(self._numbers)}")
        return self._kept[name]

    def _before(self, end: str, which: str) -> "Tuple[List[str], List[str]]":
        """What goes before a command of a program of ours, to have it run there, and the options for our key."""
        before, key = plain(end), self._key
        if end.startswith("ssh:"):
            kept = self._at(split(end)[1])
            before = through(kept.ssh, f"{kept.place}/{os.path.basename(self._programs[which])}" if self._copies else which)
            key = f"{kept.place}/{KEY}"
        return before, ["--key-file", key] if self._keyed else []

    def ready(self, lab: "Optional[List[str]]", family: int, known: "Optional[Dict[str, Any]]" = None) -> None:
        known = known or self._known
        server, port = str(known.get("server") or ""), str(known.get("port") or machine.LAB_PORT)
        self.prefix, key = self._before(str(known.get("client") or ""), "netperf")
        self.options = key if server else []
        daemon = self._daemons.get((server, port))
        if not server or daemon and not daemon.ended():
            return
        before, key = self._before(server, "netserver")
        daemon = machine.Process([*before, self._programs["netserver"], "-D", "-p", port, *key, *self._args])
        try:
            self._await(daemon, server, [*shlex.split(str(known.get("options") or "")), "-H", str(known["host"]), "-p", port,
                                         f"-{family}"])
        except BaseException:
            daemon.end()
            raise
        self._daemons[server, port] = daemon

    def unreached(self, end: str) -> str:
        if not end.startswith("ssh:"):
            return ""
        name = split(end)[1]
        kept = self._kept.get(name)
        tried = machine.ask([*(kept.ssh if kept else [*self._ssh, name]), "true"], PATIENCE, preexec_fn=machine.tie_to_parent)
        said = tried.stderr.strip().splitlines()
        return f"{end}: {tried.reason or (said or ['no answer'])[-1]}" if tried.exit != 0 else ""

    def _await(self, daemon: machine.Process, server: str, to: "List[str]") -> None:
        """Until the client has an answer."""
        until = time.monotonic() + PATIENCE
        while True:
            tried = machine.run([*self.prefix, self._programs["netperf"], *self.options, *to, "-t", "TCP_RR", "-l", "-1"], TRY_S)
            if daemon.ended():
                said = daemon.said()
                raise machine.MachineError(f"the netserver at {server} has ended: {said}"
                                           + (" (--copy takes ours there)" if re.search("not found|key-file", said) else ""))
            if tried.exit == 0:
                return
            if time.monotonic() > until:
                lines = tried.stderr.strip().splitlines()
                raise machine.MachineError(f"the netserver at {server} does not answer: {(lines or [tried.reason])[-1]}")
            machine.pause(0.1)

    def leave(self) -> None:
        for daemon in self._daemons.values():
            daemon.end()
        for kept in self._kept.values():
            kept.remove()
        self._daemons, self._kept = {}, {}
        shutil.rmtree(self._home, ignore_errors=True)
        self._guard.leave()


def main(ssh_words: str, program: str, _here: str, *words: str) -> int:
    """Runs a program there with the words of a command of ours."""
    found = [match for match in map(DOCUMENT.fullmatch, words) if match]
    words = tuple("--json=/dev/fd/9" if DOCUMENT.fullmatch(word) else word for word in words)
    ssh = subprocess.Popen(at_host(shlex.split(ssh_words), RUN, "document" if found else "", program, *words), stdin=subprocess.PIPE,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with open(int(found[0][1]), "wb", closefd=False) if found else contextlib.nullcontext() as document:
        try:
            relay(ssh, document)
        except machine.MachineError as fault:
            ssh.kill()
            print(f"ssh:{shlex.split(ssh_words)[-1]}: {fault}", file=sys.stderr)
    return ssh.wait()


def relay(ssh: "subprocess.Popen[bytes]", document: "Optional[BinaryIO]") -> None:
    """What it prints is ours: the first line is its question, and behind a 0 byte comes the document. It may take as long as
    our caller lets it."""
    assert ssh.stdin
    out: "Optional[BinaryIO]" = None
    for is_complaint, piece in machine.pieces(ssh):
        if is_complaint:
            sys.stderr.buffer.write(piece)
            sys.stderr.flush()
            continue
        if not out:
            _, newline, piece = piece.partition(b"\n")
            if not newline:
                continue
            out = sys.stdout.buffer
            machine.Gate.pass_through()
            with contextlib.suppress(BrokenPipeError):
                ssh.stdin.write(b"\n")
                ssh.stdin.flush()
        parts = piece.split(b"\0", 1) if document and out is not document else [piece]
        out.write(parts[0])
        if document and len(parts) == 2:
            out = document
            out.write(parts[1])
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
