"""Runs in a guest: takes jobs from netvm, lines of JSON, one after the other through a port of the virtual machine.
Answers are frames: a letter (O and E: stdout and stderr, R: result, B: booted), four bytes of length, the contents."""

import contextlib
import json
import os
import signal
import struct
import subprocess
import threading
from typing import Any, BinaryIO, Dict, List

PORT = "/dev/vport0p1"
TREE = "/plumbline"
SERVED = ("sctp", "dccp_ipv4", "dccp_ipv6", "tls", "tipc", "vsock_loopback")    # netserver does not load modules on behalf of a client
PATH = f"{TREE}/src:{TREE}/scripts:/usr/bin"


class Port:
    """Sends frames to netvm; may be used by several threads."""

    def __init__(self) -> None:
        self.fd = os.open(PORT, os.O_RDWR)
        self.lines = os.fdopen(os.dup(self.fd), "rb")
        self.lock = threading.Lock()

    def send(self, kind: bytes, data: bytes = b"") -> None:
        frame = memoryview(kind + struct.pack("!I", len(data)) + data)
        with self.lock:
            while frame:
                frame = frame[os.write(self.fd, frame):]

    def copy(self, kind: bytes, source: BinaryIO) -> None:
        for data in iter(lambda: os.read(source.fileno(), 32768), b""):
            self.send(kind, data)


def shell(command: "List[str]") -> str:
    """Run a command; returns its output if it fails, else ""."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace")
    return "" if done.returncode == 0 else (" ".join(done.stdout.split()) or f"status {done.returncode}")


def others() -> "List[int]":
    """All processes except the first one, this one and kernel threads."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) not in (1, os.getpid()):
            with contextlib.suppress(OSError):
                os.readlink(f"/proc/{name}/exe")
                found.append(int(name))
    return found


def clean() -> None:
    """Kill what a job left behind and undo its changes, so that the next one finds the guest as new."""
    for _ in range(50):
        left = others()
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if not left:
            break
    for name in os.listdir("/run/netns"):
        shell(["ip", "netns", "del", name])
    shell(["nft", "flush", "ruleset"])


def prepare(job: "Dict[str, Any]") -> str:
    """Load modules and set up a link before the command; returns what went wrong, or ""."""
    for module in job.get("modules", ()):
        said = shell(["modprobe", module])
        if said:
            return f"module {module}: {said}"
    for module in SERVED if job.get("daemon") else ():
        shell(["modprobe", module])     # some kernels lack some of them
    place: "List[str]" = []
    if job.get("link") is not None:
        said = shell(["netlab", "up", *job["link"]])
        if said:
            return said
        place = ["netlab", "exec", "server"]
    said = shell([*place, "netserver"]) if job.get("daemon") else ""
    return said and f"netserver: {said}"


def run(job: "Dict[str, Any]", port: Port) -> "Dict[str, Any]":
    """Run a job to its end; the exit status is as in a shell."""
    said = prepare(job)
    if said:
        return {"error": said}
    command = list(job["command"])
    if job.get("link") is not None:
        command = ["netlab", "exec", "client", *command]
    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   cwd=job.get("cwd", "/root"), env={**os.environ, **job.get("env", {})},
                                   start_new_session=True)
    except OSError as fault:
        return {"error": f"{command[0]}: {fault.strerror}",
                "status": 127 if isinstance(fault, FileNotFoundError) else 126}
    readers = [threading.Thread(target=port.copy, args=(kind, pipe))
               for kind, pipe in ((b"O", process.stdout), (b"E", process.stderr))]
    for reader in readers:
        reader.start()
    late = False
    try:
        process.wait(job.get("limit"))
    except subprocess.TimeoutExpired:
        late = True
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    clean()
    for reader in readers:
        reader.join()
    return {"late": True} if late else {"status": process.returncode if process.returncode >= 0
                                        else 128 - process.returncode}


def interactive(job: "Dict[str, Any]") -> "Dict[str, Any]":
    said = prepare(job)
    if said:
        print(f"netvm: {said}", flush=True)
    with open("/dev/ttyS0", "r+b", buffering=0) as console:
        os.environ["PS1"] = "guest# "
        shells = [name for name in ("/usr/bin/bash", "/usr/bin/sh") if os.path.exists(name)]
        subprocess.run(["setsid", "-c", shells[0]], stdin=console, stdout=console, stderr=console, cwd="/root")
    return {"status": 0}


def main() -> None:
    os.environ.update(PATH=PATH, HOME="/root", LANG="C.UTF-8", TERM="vt100", PYTHONDONTWRITEBYTECODE="1")
    port = Port()
    port.send(b"B")
    for line in port.lines:
        job = json.loads(line)
        result = interactive(job) if job.get("shell") else run(job, port)
        port.send(b"R", json.dumps(result).encode())


if __name__ == "__main__":
    main()
