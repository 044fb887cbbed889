"""Makes the initramfs of a guest from the build and from programs of this machine."""

import json
import os
import re
import stat
import subprocess
from typing import BinaryIO, Dict, List, Sequence, Set

from netkit import UsageError, files, machine
from netkit.vm import VmError
from netkit.vm.modules import INSTALL, START, Kernel

TREE = "plumbline"      # directory in the guest with the source tree's and the build's files
BUSYBOX = "usr/bin/busybox"
# Programs for a guest besides busybox, and whether they are required. busybox's shell prefers its own ip to PATH's.
PROGRAMS = (("sh", True), ("bash", False), ("ip", True), ("tc", True), ("ss", True), ("nft", False),
            ("ethtool", False), ("taskset", False), ("setpriv", False))
# The scripts that work in a guest.
SCRIPTS = ("netgate", "netlab", "netreport", "netsweep")
# Large parts of Python's library that no guest needs. Some of these modules depend on libraries of Tk or databases.
LEFT_OUT = re.compile(r"(test|tkinter|idlelib|lib2to3|pydoc_data|ensurepip|distutils|turtledemo|sqlite3|config-.*|dist-packages"
                      r"|site-packages|.*\.opt-[12]\.pyc|turtle\.(py|.*\.pyc)"
                      r"|(_tkinter|_dbm|_gdbm|_sqlite3|nis|_codecs_(cn|hk|iso2022|jp|kr|tw))\..*\.so)")
# Prints where a Python has its files.
WHERE = """import json, os, sys, sysconfig
print(json.dumps([os.path.realpath(sys.executable), *map(sysconfig.get_path, ("stdlib", "platstdlib"))]))"""

TEXTS = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\n", "etc/hostname": "guest\n",
    "etc/hosts": "127.0.0.1 localhost guest\n::1 localhost\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\nprotocols: files\nservices: files\n"}

# The first process. busybox's shell also reaps orphaned processes.
INIT = """#!/bin/busybox sh
export PATH=/usr/bin HOME=/root
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm; mount -t devpts devpts /dev/pts; mount -t tmpfs shm /dev/shm
mount -t tmpfs tmp /tmp; mount -t tmpfs run /run; mount -t cgroup2 cgroup /sys/fs/cgroup 2> /dev/null
mkdir -p /run/netns; chmod 1777 /tmp
hostname guest; ip link set lo up
echo /usr/bin/modprobe > /proc/sys/kernel/modprobe
for module in tun START; do modprobe $module; done
cd /root; /usr/bin/python3 -I /plumbline/scripts/netkit/vm/agent.py; poweroff -f
"""


class Archive:
    """A cpio archive in the format newc, which the kernel unpacks."""

    def __init__(self, out: BinaryIO) -> None:
        self.out, self.number = out, 0
        self.names: "Set[str]" = set()

    def put(self, name: str, mode: int, data: bytes = b"", mtime: int = 0) -> None:
        """Add an entry with its parent directories, unless it exists."""
        if name in self.names:
            return
        folder = os.path.dirname(name)
        if folder:
            self.folder(folder)
        self.number += 1
        path = name.encode() + b"\0"
        head = b"070701" + b"".join(b"%08X" % value for value in (
            self.number, mode, 0, 0, 1, mtime, len(data), 0, 0, 0, 0, len(path), 0))
        for part in (head + path, data):
            self.out.write(part + b"\0" * (-len(part) % 4))
        self.names.add(name)

    @staticmethod
    def place(path: str) -> str:
        """The path in the guest for a path of this machine: /bin and the like are links to /usr."""
        path = os.path.normpath(path).lstrip("/")
        first, _, rest = path.partition("/")
        if first in ("bin", "sbin"):
            return "usr/bin/" + rest
        if first.startswith("lib"):
            return "usr/" + path
        return "usr/bin/" + path[len("usr/sbin/"):] if path.startswith("usr/sbin/") else path

    def folder(self, name: str) -> None:
        self.put(name, stat.S_IFDIR | 0o755)

    def link(self, name: str, target: str) -> None:
        self.put(name, stat.S_IFLNK | 0o777, target.encode())

    def text(self, name: str, data: "str | bytes", mode: int = 0o644) -> None:
        self.put(name, stat.S_IFREG | mode, data.encode() if isinstance(data, str) else data)

    def file(self, name: str, path: str) -> None:
        """Add a file with its timestamp, which Python compares with that in compiled files."""
        with files.raising(VmError, path), open(path, "rb") as source:
            about = os.fstat(source.fileno())
            self.put(name, stat.S_IFREG | stat.S_IMODE(about.st_mode), source.read(), int(about.st_mtime))

    def end(self) -> None:
        self.put("TRAILER!!!", 0)
        self.out.flush()


def libraries(paths: "Sequence[str]") -> "Set[str]":
    got = subprocess.run(["ldd", *paths], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                         text=True, errors="replace", timeout=60)
    missing = re.findall(r"^\s*(\S+) => not found", got.stdout, re.M)
    if missing:
        raise VmError(f"{', '.join(sorted(set(missing)))}: not found, which one of {' '.join(paths)} needs")
    return set(re.findall(r"(?:=>\s*|^\s+)(/[^ :]+)(?= \()", got.stdout, re.M))


class Image:
    def __init__(self, kernel: Kernel, programs: "Dict[str, str]", scripts: str) -> None:
        self.kernel, self.scripts = kernel, scripts
        self.programs = programs                # from the build: path below its directory, path here
        self.modules: "List[str]" = []          # in addition to the default ones
        self.files: "Dict[str, str]" = {}       # path in the guest, path here

    def add(self, place: str, path: str) -> None:
        if os.path.isdir(path):
            for folder, folders, names in os.walk(path):
                folders[:] = [name for name in folders if name != "__pycache__"]
                for name in names:
                    inner = os.path.join(folder, name)
                    self.files[os.path.normpath(os.path.join(place, os.path.relpath(inner, path)))] = inner
        elif os.path.isfile(path):
            self.files[place] = path
        else:
            raise UsageError(f"--with {path}: no such file")

    def write(self, out: BinaryIO) -> None:
        archive = Archive(out)
        for name in ("bin", "sbin"):
            archive.link(name, "usr/bin")
        for name in ("lib", "lib32", "lib64", "libx32"):
            archive.folder("usr/" + name)
            archive.link(name, "usr/" + name)
        archive.link("usr/sbin", "bin")
        for name in ("proc", "sys", "dev", "tmp", "run", "root", "var/tmp", "opt"):
            archive.folder(name)
        archive.link("var/run", "../run")
        self._system(archive)
        programs = [*self._python(archive), *self._tools(archive), *self._ours(archive)]
        for library in sorted(libraries(programs)):
            archive.file(archive.place(library), library)
        self._kernel(archive)
        self._busybox(archive)
        archive.end()

    def _system(self, archive: Archive) -> None:
        for name, text in TEXTS.items():
            archive.text(name, text)
        for name in ("etc/protocols", "etc/services"):
            if os.path.isfile("/" + name):
                archive.file(name, "/" + name)
        archive.text("init", INIT.replace("START", " ".join(START)), 0o755)

    def _busybox(self, archive: Archive) -> None:
        """busybox's applets under all names that do not exist yet: to be called last."""
        busybox = machine.find("busybox")
        if not busybox:
            raise VmError(f"no program busybox: {INSTALL}")
        if libraries([busybox]):
            raise VmError(f"{busybox} needs libraries; the package busybox-static has one that does not: {INSTALL}")
        archive.file(BUSYBOX, busybox)
        names = subprocess.run([busybox, "--list"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                               timeout=60, check=True).stdout.split()
        for name in names:
            archive.link("usr/bin/" + name, "busybox")

    def _python(self, archive: Archive) -> "List[str]":
        """The distribution's Python; returns the files that need libraries."""
        python = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else machine.find("python3")
        program, library, platform = json.loads(subprocess.run(
            [python, "-I", "-c", WHERE], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            timeout=60, check=True).stdout)
        archive.file(archive.place(program), program)
        archive.link("usr/bin/python3", "/" + archive.place(program))
        linked = [program]
        for top in sorted({library, platform}):
            for folder, folders, names in os.walk(top):
                folders[:] = [name for name in folders if not LEFT_OUT.fullmatch(name)]
                for name in names:
                    if LEFT_OUT.fullmatch(name):
                        continue
                    path = os.path.join(folder, name)
                    archive.file(archive.place(path), path)
                    if name.endswith(".so"):
                        linked.append(path)
        return linked

    @staticmethod
    def _tools(archive: Archive) -> "List[str]":
        found = []
        for name, needed in PROGRAMS:
            path = machine.find(name)
            if path:
                archive.file("usr/bin/" + name, os.path.realpath(path))
                found.append(os.path.realpath(path))
            elif needed:
                raise VmError(f"no program {name}: {INSTALL}")
        return found

    def _ours(self, archive: Archive) -> "List[str]":
        """The build's programs, the scripts, and the user's files."""
        self.add(f"{TREE}/scripts/netkit", os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        placed = {**{f"{TREE}/{name}": path for name, path in self.programs.items()},
                  **{f"{TREE}/scripts/{name}": os.path.join(self.scripts, name) for name in SCRIPTS}, **self.files}
        for place, path in placed.items():
            archive.file(place, path)
        return [path for path in placed.values() if is_program(path)]

    def _kernel(self, archive: Archive) -> None:
        folder = f"usr/lib/modules/{self.kernel.version}"
        modules = self.kernel.wanted(self.modules)
        for module in modules:
            archive.text(f"{folder}/{module.place}", module.data)
        for name, data in self.kernel.index(modules).items():
            archive.text(f"{folder}/{name}", data)
        for name in ("modules.builtin", "modules.order"):
            path = os.path.join(self.kernel.folder, name)
            if os.path.isfile(path):
                archive.file(f"{folder}/{name}", path)


def is_program(path: str) -> bool:
    """Whether it is an ELF file."""
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"
