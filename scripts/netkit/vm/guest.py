"""A guest: qemu, its console output, and the port through which jobs and answers pass."""

import contextlib
import json
import lzma
import os
import re
import selectors
import shutil
import socket
import struct
import subprocess
import sys
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

from netkit import files, machine
from netkit.vm import VmError, modules
from netkit.vm.image import Image
from netkit.vm.modules import INSTALL

QEMU = {"x86_64": "qemu-system-x86_64"}
CONSOLE_LINES = 25      # shown when a guest has died
PANIC = "BUG: |Oops: |Kernel panic|sysrq: "   # the beginning of a kernel's last messages
CONSOLE_BYTES = 1 << 18
TURN_S = 1.0            # Python handles a signal that comes just before a wait only after it
FRAME = 5               # bytes of a frame's header
FRAME_MOST = 1 << 20    # of its contents
ACCEL = {"tcg": ["-accel", "tcg,thread=multi"],
         # One nanosecond per instruction; a sleeping guest's timers expire at once.
         "counted": ["-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off"]}
# qemu executes "rep movsb" byte by byte, and leaves translated code at each stac and clac.
CPU = dict.fromkeys(ACCEL, "max,-erms,-smap")
KVM_STARTS = 15.0       # s; a guest that has not started with KVM by then never does: it was seen to hang


def program() -> str:
    kind = os.uname().machine
    if kind not in QEMU:
        raise VmError(f"a guest needs a machine of the kind {' or '.join(QEMU)}, and this is {kind}")
    found = shutil.which(QEMU[kind])
    if not found:
        raise VmError(f"no program {QEMU[kind]}: {INSTALL}")
    return found


# The header of a compressed kernel (Documentation/arch/x86/boot.rst), and of a note in an uncompressed one.
HEAD, SETUP_SECTORS, PAYLOAD = slice(0x202, 0x206), 0x1F1, 0x248
PVH = struct.pack("<I", 18) + b"Xen\0"


def unpacked(path: str) -> bytes:
    """A compressed image's kernel if qemu can start it, else the file. Without KVM, unpacking takes seconds."""
    with files.raising(VmError, path), open(path, "rb") as file:
        image = file.read()
    if image[HEAD] != b"HdrS":
        return image
    offset, = struct.unpack_from("<I", image, PAYLOAD)
    try:
        kernel = lzma.LZMADecompressor().decompress(image[(image[SETUP_SECTORS] + 1) * 512 + offset:])
    except lzma.LZMAError:
        return image
    return kernel if PVH in kernel else image


class Late(VmError):
    status = 124


def kvm_note() -> "Tuple[str, bytes]":
    """A file that notes that KVM has hung since this machine booted, and its contents: KVM is then not tried again."""
    with open("/proc/sys/kernel/random/boot_id", "rb") as file:
        return os.path.join(modules.cache(), "kvm-hung"), file.read()


def kvm_hung() -> bool:
    with contextlib.suppress(OSError):
        path, boot = kvm_note()
        with open(path, "rb") as file:
            return file.read() == boot
    return False


def note_kvm_hung() -> None:
    with contextlib.suppress(OSError):
        os.makedirs(modules.cache(), exist_ok=True)
        files.write(*kvm_note())


class Guest:
    """A virtual machine. Use it as a context manager, which ends it."""

    def __init__(self, image: Image, accel: str = "auto", cpus: int = 2, memory: int = 1024, limit: float = 120.0,
                 console: bool = False) -> None:
        self.end = time.monotonic() + limit
        self.limit = limit
        self.said = bytearray()     # console output
        self.got = bytearray()      # received through the port, not yet a complete frame
        self.up = False
        self.process: "Optional[subprocess.Popen[bytes]]" = None
        self.image, self.accel, self.cpus, self.memory = image, accel, cpus, memory
        self.counted, self.on_terminal = accel == "counted", console

    def __enter__(self) -> "Guest":
        self.qemu, self.kinds = program(), self.accelerators()
        with contextlib.ExitStack() as opened:
            self.archive, self.kernel = (opened.enter_context(os.fdopen(os.memfd_create(name), "w+b"))
                                         for name in ("initramfs", "kernel"))
            self.image.write(self.archive)
            self.kernel.write(unpacked(self.image.kernel.image))
            self.kernel.flush()
            self.launch()
            self.files = opened.pop_all()
        return self

    def accelerators(self) -> "List[str]":
        if self.counted:
            return [self.accel]
        usable = os.access("/dev/kvm", os.R_OK | os.W_OK)
        if self.accel == "kvm" and not usable:
            raise VmError("--accel kvm: this user cannot open /dev/kvm")
        return [self.accel] if self.accel != "auto" else ["kvm", "tcg"] if usable and not kvm_hung() else ["tcg"]

    def launch(self) -> None:
        """Start qemu in the best mode that has not been tried yet."""
        self.said, self.got = bytearray(), bytearray()
        self.port, port = socket.socketpair()
        self.console, console = socket.socketpair()
        with port, console:
            keep = [self.kernel.fileno(), self.archive.fileno(), port.fileno(), console.fileno()]
            self.process = subprocess.Popen(
                self.command(self.kinds[0], *keep), pass_fds=keep,
                stdin=None if self.on_terminal else subprocess.DEVNULL,
                stdout=None if self.on_terminal else subprocess.DEVNULL, stderr=subprocess.PIPE,
                preexec_fn=machine.tied())
        assert self.process.stderr
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.port, selectors.EVENT_READ, self.got)
        self.selector.register(self.console, selectors.EVENT_READ, self.said)
        self.selector.register(self.process.stderr, selectors.EVENT_READ, self.said)

    def command(self, kind: str, kernel: int, initrd: int, port: int, console: int) -> "List[str]":
        serial = ["-serial", "mon:stdio"] if self.on_terminal else [
            "-chardev", f"socket,id=console,fd={console}", "-serial", "chardev:console"]
        return [self.qemu, "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-machine", "pc",
                *ACCEL.get(kind, ["-accel", kind]), "-cpu", CPU.get(kind, "max"), "-m", str(self.memory),
                "-smp", str(1 if kind == "counted" else self.cpus),
                "-kernel", f"/proc/self/fd/{kernel}", "-initrd", f"/proc/self/fd/{initrd}",
                "-append", "console=ttyS0 quiet loglevel=4 panic=-1 oops=panic no_timer_check mitigations=off "
                "init_on_alloc=0 cryptomgr.notests", *serial,
                "-device", "virtio-serial-pci", "-chardev", f"socket,id=port,fd={port}",
                "-device", "virtserialport,chardev=port"]

    def __exit__(self, *_: object) -> None:
        self.stop()
        self.files.close()

    def kill(self) -> None:
        """Kill it, from another thread, or before it has started."""
        self.end = 0.0
        if self.process:
            self.process.kill()

    def stop(self) -> None:
        assert self.process and self.process.stderr
        self.process.kill()
        self.process.wait()
        self.selector.close()
        self.port.close()
        self.console.close()
        self.process.stderr.close()

    def receive(self, end: float) -> None:
        """Wait until `end` for data and store it. Raises Late at the deadline."""
        events: "List[Any]" = []
        while not events and time.monotonic() <= end:
            events = self.selector.select(max(0.0, min(TURN_S, end - time.monotonic())))
        if not events or time.monotonic() > end:
            raise Late("")
        for key, _ in events:
            data = os.read(key.fd, 1 << 16)
            if data:
                key.data.extend(data)
                del self.said[:-CONSOLE_BYTES]
            else:
                self.selector.unregister(key.fileobj)
                if key.fileobj is self.port:
                    raise VmError(self.last_words("the guest has died" if self.up else "the guest did not start"))

    def frame(self, end: float) -> "tuple[bytes, bytes]":
        while True:
            if len(self.got) >= FRAME:
                size, = struct.unpack("!I", self.got[1:FRAME])
                if size > FRAME_MOST:
                    raise VmError(f"the guest sent a frame of {size} bytes, more than {FRAME_MOST}")
                if len(self.got) >= FRAME + size:
                    kind, data = bytes(self.got[:1]), bytes(self.got[FRAME:FRAME + size])
                    del self.got[:FRAME + size]
                    return kind, data
            self.receive(end)

    def last_words(self, what: str) -> str:
        """A message, followed by the end of the console output."""
        for _ in range(20):     # there may be more output to read
            try:
                self.receive(time.monotonic() + 0.1)
            except VmError as fault:
                if isinstance(fault, Late):
                    break
        text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x1bc|\r", "", self.said.decode("utf-8", "replace"))
        lines = [line for line in text.split("\n") if line.strip()]
        first = next((i for i, line in enumerate(lines) if re.search(PANIC, line)), max(0, len(lines) - CONSOLE_LINES))
        lines = lines[first:first + CONSOLE_LINES]
        return "\n".join([what + (", with this on its console:" if lines else ", with nothing on its console"),
                          *(f"  {line}" for line in lines)])

    def start(self) -> float:
        """Boot; returns the seconds it took. Falls back to emulation if KVM does not work."""
        begin = time.monotonic()
        while len(self.kinds) > 1:
            try:
                self.frame(min(self.end, begin + KVM_STARTS))
                break
            except VmError as fault:
                if isinstance(fault, Late) and time.monotonic() < self.end:
                    note_kvm_hung()
                self.stop()
                del self.kinds[0]
                self.launch()
        else:
            try:
                self.frame(self.end)
            except Late:
                raise Late(self.last_words(f"the guest had not started after {self.limit:g} s")) from None
        self.up = True
        return time.monotonic() - begin

    def run(self, job: "Dict[str, Any]", out: "Callable[[bytes], object]", err: "Callable[[bytes], object]",
            limit: "Optional[float]" = None) -> "Dict[str, Any]":
        """Run a job; `out` and `err` get its output as it arrives. The guest enforces its limit, we the guest's."""
        if not self.up:
            self.start()
        words = json.dumps({**job, **({"limit": limit} if limit else {})}).encode() + b"\n"
        self.port.sendall(words)
        end = self.end if limit is None or self.counted else min(self.end, time.monotonic() + limit + 30)
        while True:
            try:
                kind, data = self.frame(end)
            except Late:
                raise Late(self.last_words(f"not done when the guest's {self.limit:g} s were over"
                                           if end == self.end else "the guest no longer answers")) from None
            if kind == b"R":
                return dict(json.loads(data))
            (out if kind == b"O" else err)(data)


def to(stream: Any) -> "Callable[[bytes], None]":
    """A function that writes bytes to one of our output streams."""
    def write(data: bytes) -> None:
        stream.buffer.write(data)
        stream.flush()

    return write


STDOUT, STDERR = to(sys.stdout), to(sys.stderr)
