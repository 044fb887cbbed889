"""Settings of the machine for the time of a slot: the old value is noted, the new one is set and read back,
and the old one is put back, whatever ends netgate.

Each setting has a journal while a netgate uses it, on disk before the change. The journal is locked as long as
its owner lives, or a command that the owner started: who gets the lock may put back.
"""

import contextlib
import errno
import fcntl
import functools
import glob
import hashlib
import json
import os
import re
import shlex
import signal
import sys
import time
from dataclasses import dataclass, replace
from typing import Any, Dict, List, Optional, Sequence, Tuple

from .. import files, machine, progress
from .model import GateError

note = functools.partial(progress.say, "netgate")
COMMAND_LIMIT = 30.0        # seconds that a command may take
LOCK_LIMIT = 60.0           # seconds until the journal of a dead owner is free
SETTLE_LIMIT = 20.0         # seconds until an interface carries packets again
JOURNAL = "setting-*.journal"
BOOT_ID, PIDS = "/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid"
FIRST_PIDS = "pid:[4026531836]"     # the namespace of processes that contains all others
GONE = re.compile(r"does not exist|[Nn]o such device|Cannot find device|cannot stat /proc/sys")
NAMELESS = re.compile(r"Cannot open network namespace .*No such file|lab \S+ is not up")
# What writing a sysctl changes beside it, and writing the old value does not undo.
LASTING = (
    (r"net/ipv4/ip_forward|net/ipv[46]/conf/[^/]+/forwarding",
     "the kernel resets other settings with it (forwarding and redirects of all interfaces, LRO, learned routes)"),
    (r"net/ipv6/conf/[^/]+/(disable_ipv6|addr_gen_mode|stable_secret)", "interfaces lose or get addresses by it"),
    (r"net/ipv6/conf/all/(force_forwarding|ignore_routes_with_linkdown|disable_policy)",
     "the kernel sets those of all interfaces with it"),
    (r"net/ipv[46]/neigh/[^/]+/(unres_qlen|retrans_time|base_reachable_time)|net/ipv6/route/gc_min_interval"
     r"|net/mptcp/pm_type|vm/(dirty_(background_)?|overcommit_)(ratio|k?bytes)",
     "another sysctl shows the same in a finer unit, or is reset by it"),
    (r"net/netfilter/nf_hooks_lwtunnel|net/mpls/platform_labels|vm/drop_caches|kernel/(modules_disabled"
     r"|kexec_load_disabled|unprivileged_bpf_disabled|yama/ptrace_scope)", "the kernel does not take it back"))
# ethtool -k shows these by another name than ethtool -K best takes; the first four have parts of their own.
SHORT = {"tx-checksumming": "tx", "scatter-gather": "sg", "tcp-segmentation-offload": "tso",
         "udp-fragmentation-offload": "ufo", "rx-checksumming": "rx", "generic-segmentation-offload": "gso",
         "generic-receive-offload": "gro", "large-receive-offload": "lro", "rx-vlan-offload": "rxvlan",
         "tx-vlan-offload": "txvlan", "ntuple-filters": "ntuple", "receive-hashing": "rxhash"}
FAR_PATH = "env PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin LC_ALL=C "
ETHTOOL = {"coalesce": ("-c", "-C"), "ring": ("-g", "-G"), "channels": ("-l", "-L")}
FORMS = {"mtu": ("DEV",), "offload": ("DEV", "FEATURE"), "sysctl": ("NAME",),
         **{kind: ("DEV", "NAME") for kind in ETHTOOL}, "queue": ("DEV", "QUEUE", "NAME")}
KNOWN = ", ".join(" ".join((kind, *words)) for kind, words in FORMS.items())


def wrapped(prefix: Sequence[str], command: Sequence[str]) -> "List[str]":
    """A command after what leads to its place: nothing, "ip netns exec NAME" or "ssh HOST"."""
    if prefix and os.path.basename(prefix[0]) == "ssh":     # whose far shell takes one text
        return [*prefix, FAR_PATH + shlex.join(command)]
    return [*prefix, machine.find(command[0]) or command[0], *command[1:]]


def call(prefix: Sequence[str], command: Sequence[str], fds: Sequence[int] = ()) -> str:
    """What a command prints. Raises GateError with the last line of its complaint."""
    with files.raising(GateError, (*prefix, *command)[0]):
        done = machine.ask(wrapped(prefix, command), COMMAND_LIMIT, env={**os.environ, "LC_ALL": "C"}, pass_fds=fds,
                           preexec_fn=machine.tied())
    if done.exit != 0:
        raise GateError(f"{command[0]}: {done.complaint()}")
    return done.stdout


def interface(prefix: Sequence[str], dev: str) -> "Dict[str, Any]":
    """ip's view of an interface: mtu, address, operstate, addr_info and the rest."""
    try:
        return dict(next(one for one in json.loads(call(prefix, ["ip", "-j", "-d", "addr", "show", "dev", dev]))
                         if one))
    except (ValueError, StopIteration):
        raise GateError(f"ip says nothing of {dev}") from None


@dataclass(frozen=True)
class Feature:
    """A line of ethtool -k."""
    active: bool
    requested: bool
    fixed: bool
    parts: bool = False     # it stands for the features after it


def features(prefix: Sequence[str], dev: str) -> "Dict[str, Feature]":
    """The offloads of an interface, by the short names of ethtool -K where there are such."""
    found: "Dict[str, Feature]" = {}
    group = ""
    for line in call(prefix, ["ethtool", "-k", dev]).splitlines():
        one = re.fullmatch(r"(\s*)([\w-]+): (on|off)(?: \[(.*)\])?", line.rstrip())
        if not one:
            continue
        name, active, note = SHORT.get(one[2], one[2]), one[3] == "on", one[4] or ""
        requested = {"requested on": True, "requested off": False}.get(note, active)
        if not one[1]:
            group = name
        else:       # fixed, when all of its parts are
            whole = found[group]
            found[group] = Feature(whole.active, whole.requested,
                                   note == "fixed" and (whole.fixed or not whole.parts), True)
        found[name] = Feature(active, requested, note == "fixed")
    return found


def one_queue(dev: str, queue: str, *words: str) -> "List[str]":
    """ethtool's command for the coalescing of a single queue."""
    return ["ethtool", "-Q", dev, "queue_mask", hex(1 << int(queue)), *words]


def parameters(prefix: Sequence[str], command: Sequence[str]) -> "Dict[str, str]":
    """What ethtool -c, -g, -l or -Q shows as the present value, by the names that it takes to set it."""
    text = call(prefix, command).rpartition("Current hardware settings:")[2]
    text = re.sub(r"^(Adaptive|CQE mode) +RX: (\S+) +TX: (\S+)", r"\1 RX: \2\n\1 TX: \3", text, flags=re.M)
    found = {}
    for name, value in re.findall(r"^([\w -]+):[ \t]+(\S+)[ \t]*$", text, re.M):
        name = re.sub(r"frame(-low|-high)$", r"frames\1", name.lower().replace(" ", "-"))
        if value != "n/a":
            found[name] = value
    return found


@dataclass(frozen=True)
class Setting:
    """What can be set, and where: prefix leads there."""
    kind: str
    item: "Tuple[str, ...]"
    prefix: "Tuple[str, ...]" = ()

    @property
    def name(self) -> str:
        return " ".join((self.kind, *self.item))

    @property
    def feature(self) -> str:
        return SHORT.get(self.item[1], self.item[1])

    @property
    def path(self) -> str:
        """Of a sysctl, below /proc/sys: the first separator of a name says which kind it has."""
        name = self.item[0]
        return name if re.match(r"[^./]*/", name) else name.translate(str.maketrans("./", "/."))

    def place(self) -> str:
        """Boot and network namespace; the boot alone of a sysctl that all namespaces share."""
        text = call(self.prefix, ["sh", "-c", f"cat {BOOT_ID}; readlink /proc/self/ns/net"])
        boot, net = text.split()
        return boot if self.kind == "sysctl" and not self.path.startswith("net/") else f"{boot} {net}"

    def journal(self, place: str) -> str:
        """The name of its journal. Settings with the same one can't be had by two at a time."""
        item = {"offload": self.item[:1], "sysctl": (self.path,)}.get(self.kind, self.item)
        return f"setting-{hashlib.sha256(json.dumps([place, self.kind, item]).encode()).hexdigest()[:16]}.journal"

    def where(self) -> "Dict[str, Any]":
        return {} if self.kind == "sysctl" else interface(self.prefix, self.item[0])

    def look(self) -> Any:
        """What value() and the like read: one look at the machine."""
        dev = self.item[0]
        if self.kind == "mtu":
            return interface(self.prefix, dev)
        if self.kind == "sysctl":
            return " ".join(call(self.prefix, ["sysctl", "-n", dev]).split())
        if self.kind == "offload":
            return features(self.prefix, dev)
        return parameters(self.prefix, one_queue(*self.item[:2], "--show-coalesce") if self.kind == "queue" else
                          ["ethtool", ETHTOOL[self.kind][0], dev])

    def value(self, seen: Any) -> Any:
        """What command() takes to make it so again. Of an offload it is what is asked of all offloads of
        the interface, since one takes others with it."""
        if self.kind == "mtu":
            return str(seen["mtu"])
        if self.kind == "sysctl":
            return seen
        if self.kind == "offload":
            return {name: one.requested for name, one in seen.items() if not one.fixed and not one.parts}
        if self.item[-1] not in seen:
            raise GateError(f"the interface has no such parameter (it has {', '.join(seen) or 'none'})")
        return seen[self.item[-1]]

    def check(self, value: str, seen: Any) -> None:
        """Refuses what could not be put back exactly, or would not take."""
        if self.kind == "mtu":
            least, most = seen.get("min_mtu", 0), seen.get("max_mtu", 0) or 1 << 32
            if not re.fullmatch("[0-9]{1,9}", value) or not least <= int(value) <= most:
                raise GateError(f"not an MTU of this interface (it takes {least} to {most})")
            six = any(one.get("family") == "inet6" for one in seen.get("addr_info", ()))
            if six and int(value) < machine.IPV6_LEAST_MTU <= seen["mtu"]:
                raise GateError("the interface would lose its IPv6 addresses for good "
                                f"(take {machine.IPV6_LEAST_MTU} or more)")
        if self.kind == "offload":
            one = seen.get(self.feature)
            if value not in ("on", "off"):
                raise GateError("an offload is on or off")
            if not one:
                raise GateError("the interface has no such offload (ethtool -k names them)")
            if one.fixed and one.active != (value == "on"):
                raise GateError("the driver has it fixed (leave it out)")

    def differs(self, value: str, seen: Any) -> str:
        """The present value when it is another than this one of a user, else ""."""
        if self.kind == "offload":
            active = seen[self.feature].active
            return "" if active == (value == "on") else "on" if active else "off"
        now = str(self.value(seen))
        return "" if now == " ".join(value.split()) else now

    def idle(self, value: str) -> str:
        """Why it does nothing though it is set, where that can be seen."""
        if self.kind != "offload" or self.feature not in ("tso", "gso") or self.where().get("gso_max_segs") != 1:
            return ""
        return f"makes nothing of {self.feature}={value}: its gso_max_segs is 1, a packet has one segment"

    def command(self, value: Any) -> "List[str]":
        """What makes it this value: one of a user, or one that value() gave. Empty: there is nothing to do."""
        dev = self.item[0]
        if self.kind == "mtu":
            return ["ip", "link", "set", "dev", dev, "mtu", str(value)]
        if self.kind == "sysctl":
            return ["sysctl", "-q", "-w", f"{dev}={value}"]
        if self.kind == "queue":
            return one_queue(*self.item[:2], "--coalesce", self.item[2], str(value))
        if self.kind != "offload":
            return ["ethtool", ETHTOOL[self.kind][1], dev, self.item[1], str(value)]
        if isinstance(value, str):
            return ["ethtool", "-K", dev, self.feature, value]
        now = self.value(self.look())
        words = [word for name, on in value.items() if now.get(name, on) != on
                 for word in (name, "on" if on else "off")]
        return ["ethtool", "-K", dev, *words] if words else []


def carries(there: "Dict[str, Any]") -> bool:
    return "UP" in there.get("flags", ()) and there.get("operstate") in ("UP", "UNKNOWN")


def settle(settings: "Sequence[Setting]") -> None:
    """Waits until interfaces carry packets again: drivers restart the link for some changes, and IPv6 then
    looks for duplicates of its addresses."""
    end = time.monotonic() + SETTLE_LIMIT
    for prefix, dev in {(one.prefix, one.item[0]): None for one in settings if one.kind != "sysctl"}:
        while True:
            there = interface(prefix, dev)
            if carries(there) and not any(one.get("tentative") and not one.get("dadfailed")
                                          for one in there.get("addr_info", ())):
                break
            if time.monotonic() > end:
                raise GateError(f"the link of {dev} is not up again after {SETTLE_LIMIT:g} s")
            time.sleep(0.05)


def parse(name: str, near: Sequence[str], far: Optional[Sequence[str]]) -> Setting:
    """A setting of its name: "mtu lab0", or of the far end, "far mtu lab0"."""
    words = name.split()
    there = words[:1] == ["far"]
    kind, *item = words[1:] if there else words or [""]
    if kind not in FORMS or len(item) != len(FORMS[kind]):
        raise GateError(f"{name or 'a setting'}: not a setting (there are {KNOWN}; "
                        "of the far end with \"far\" before)")
    if any(word.startswith("-") for word in item) or not re.fullmatch(
            r"\w[\w-]*([./][\w-]+)*" if kind == "sysctl" else r"[^\s/]{1,15}", item[0]):
        raise GateError(f"{name}: not a name of {'a sysctl' if kind == 'sysctl' else 'an interface'}")
    if kind == "queue" and not re.fullmatch("[0-9]{1,4}", item[1]):
        raise GateError(f"{name}: not a number of a queue")
    if there and far is None:
        raise GateError(f"{name}: no commands can be run at the far end (REMOTE_TYPE and REMOTE_ARGS say how)")
    setting = Setting(kind, tuple(item), tuple(far or () if there else near))
    for pattern, why in LASTING if kind == "sysctl" else ():
        if re.fullmatch(pattern, setting.path):
            raise GateError(f"{name}: restoring the old value would not undo it: {why} (set it before netgate "
                            "begins, or by commands of yours)")
    return setting


def folder() -> str:
    """Where the journals are: with the system's, or with the user's. Commands in them are run again, so
    nobody else may write there."""
    base = "/run" if os.access("/run", os.W_OK) else os.environ.get("XDG_RUNTIME_DIR", "")
    if not base:
        raise GateError("no place for the journal of settings: neither /run nor XDG_RUNTIME_DIR can be "
                        "written (run it as root)")
    path = os.path.join(base, "plumbline")
    with files.raising(GateError, path):
        files.own_folder(path)
    return path


def lives(owner: "Dict[str, Any]") -> bool:
    """Whether the owner of a journal does, as far as can be seen from here."""
    return owner.get("pids") != os.readlink(PIDS) or machine.start_time(owner["pid"]) == owner["start"]


def held(net: str) -> bool:
    """Whether a network namespace of this machine has processes or a name; also when that can't be seen."""
    if os.readlink(PIDS) != FIRST_PIDS:
        return True
    for one in {*glob.glob("/proc/[0-9]*")} - {"/proc/1"}:    # whose namespaces the kernel's threads have
        try:
            if os.readlink(f"{one}/ns/net") == net:
                return True
            with open(f"{one}/mountinfo", encoding="utf-8", errors="replace") as file:
                if f" {net} " in file.read():
                    return True
        except PermissionError:
            return True
        except OSError:     # it has just ended
            continue
    return False


class Overruled(GateError):
    """Somebody has changed the setting since, and it is left so."""


class Held(GateError):
    """A netgate that lives has the journal, or nobody has one."""


@dataclass
class Change:
    """What a setting was, and what netgate made of it: None while that is under way."""
    setting: Setting
    place: str
    identity: str       # the address of the interface
    old: Any
    now: Any = None

    def row(self) -> "Dict[str, Any]":
        one = self.setting
        return {"kind": one.kind, "item": one.item, "prefix": one.prefix, "place": self.place,
                "identity": self.identity, "old": self.old}

    def _reach(self) -> str:
        """Finds the way to the setting; why it is gone, else "". Raises GateError when it is elsewhere."""
        one, here = self.setting, ""
        boot, _, net = self.place.partition(" ")
        over_ssh = one.prefix and os.path.basename(one.prefix[0]) == "ssh"
        for way in dict.fromkeys([one] if over_ssh else [one, replace(one, prefix=())]):
            try:
                here = way.place()
            except GateError as fault:
                if not NAMELESS.search(str(fault)):
                    raise
            if here == self.place:
                self.setting = way
                return ""
        if not here.startswith(boot):
            return "its machine was started anew"
        if not over_ssh and not held(net):
            return f"its network namespace, {net}, is gone"
        raise GateError(f"its network namespace is {net}, not {here.partition(' ')[2]} (start netgate in that one; "
                        "lsns -t net shows who is in it)")

    def put_back(self, fds: Sequence[int]) -> str:
        """Why there is nothing to put back, else "". Raises GateError when it can't be."""
        why = self._reach()
        if why:
            return why
        one, wanted = self.setting, self.old
        if isinstance(wanted, dict) and self.now:   # those that netgate changed
            wanted = {name: on for name, on in wanted.items() if self.now.get(name) != on}
        try:
            if one.where().get("address", "") != self.identity:
                return "its interface is gone, and this is another one"
            seen = one.value(one.look())
            # Whoever has changed an offload since has made it what it was. Coalescing changes by itself.
            known = seen if self.now is None or one.kind in ("coalesce", "queue") else self.now
            if isinstance(seen, str) and seen not in (known, wanted):
                raise Overruled(f"somebody has set it to {seen} since, which stays")
            if not contains(seen, wanted):
                command = one.command(wanted)
                if command:
                    call(one.prefix, command, fds)
                if not contains(one.value(one.look()), wanted):
                    raise GateError("it had no effect")
        except GateError as fault:
            if GONE.search(str(fault)):
                return str(fault)
            raise
        return ""

    def shown(self) -> str:
        if isinstance(self.old, str):
            return f"{self.setting.name} to {self.old}"
        return f"the offloads of {self.setting.item[0]}"


def contains(seen: Any, wanted: Any) -> bool:
    """Whether a value is this one; of offloads, whether these are so."""
    return bool(wanted.items() <= seen.items() if isinstance(wanted, dict) else seen == wanted)


class Journal:
    """The file of a setting, locked. It has a line for the owner, one for the change, and then one whenever that
    goes on: null before, the value that it came to after. A line that is not whole was not acted on.

    Raises Held, and GateError when the lock outlasts its owner."""

    def __init__(self, path: str, make: bool = False) -> None:
        self.path, self.owner = path, {}    # type: str, Dict[str, Any]
        self.change: Optional[Change] = None
        end = time.monotonic() + LOCK_LIMIT
        while True:
            try:
                self._fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
                                   | make * os.O_CREAT, 0o600)
            except OSError as fault:
                raise (Held if fault.errno == errno.ENOENT else GateError)(f"{path}: {fault.strerror}") from None
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(self._fd).st_nlink:
                    break
                os.close(self._fd)      # its owner has just removed it
            except BlockingIOError:
                self._read()
                os.close(self._fd)
                if not self.owner or lives(self.owner):
                    raise Held(f"netgate {self.owner.get('pid', '')} uses it (wait until that one ends)") from None
                if time.monotonic() > end:
                    raise GateError(f"{path}: locked although netgate {self.owner['pid']} is dead (remove it when no "
                                    "netgate runs)") from None
                time.sleep(0.02)
        self._read()

    @property
    def fds(self) -> "Tuple[int]":
        """For a command that changes the setting: as long as it runs the journal stays locked."""
        return (self._fd,)

    def _read(self) -> None:
        rows, self.change = [], None
        for line in os.pread(self._fd, os.fstat(self._fd).st_size, 0).decode(errors="replace").splitlines():
            try:
                rows.append(json.loads(line))
            except ValueError:
                break
        self.owner = rows[0] if rows else {}
        if len(rows) > 1:
            row, now = rows[1], rows[-1] if len(rows) > 2 else None
            self.change = Change(Setting(row["kind"], tuple(row["item"]), tuple(row["prefix"])), row["place"],
                                 row["identity"], row["old"], now)

    def _write(self, row: Any) -> None:
        """Adds a line, for good; none when that fails."""
        size, line = os.fstat(self._fd).st_size, (json.dumps(row) + "\n").encode()
        try:
            if os.write(self._fd, line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(self._fd)
        except OSError as fault:
            os.ftruncate(self._fd, size)
            raise GateError(f"{self.path}: {fault.strerror}") from None

    def own(self) -> None:
        """Makes it this process's."""
        os.ftruncate(self._fd, 0)
        self.owner = {"pid": os.getpid(), "start": machine.start_time(os.getpid()), "pids": os.readlink(PIDS)}
        self._write(self.owner)

    def begin(self, change: Change) -> None:
        """Before the setting is changed. What it was at first is what counts."""
        self._write(None if self.change else change.row())
        self.change = self.change or change
        self.change.now = None

    def became(self, value: Any) -> None:
        assert self.change
        self._write(value)
        self.change.now = value

    def put_back(self) -> str:
        """Puts back and forgets: why there was nothing to put back, else "". Raises GateError when that is still
        to be done, Overruled when it is not."""
        try:
            why = self.change.put_back(self.fds) if self.change else ""
        except Overruled:
            self._forget()
            raise
        self._forget()
        return why

    def _forget(self) -> None:
        os.ftruncate(self._fd, len(json.dumps(self.owner)) + 1)
        self.change = None

    def recover(self) -> "List[str]":
        """Puts back what a dead owner left; what was done, in a line."""
        if not self.change:
            return []
        shown, ended = self.change.shown(), f"netgate {self.owner['pid']} ended with it changed"
        try:
            why = self.put_back()
        except Overruled as fault:
            why = str(fault)
        except GateError as fault:
            return [f"could not put back {shown}: {fault} ({ended}; {self.path} remembers it: correct this, or "
                    "remove the file)"]
        return [f"did not put back {shown}: {why} ({ended})" if why else f"put back {shown}: {ended}"]

    def leave(self) -> None:
        if not self.change:
            os.unlink(self.path)
        os.close(self._fd)


def recover(pid: Optional[int] = None) -> "List[str]":
    """Puts back what dead owners left, or one of them, the last change first, and says what, in lines. Every
    netgate begins with this."""
    try:
        home = folder()
    except GateError:
        return []       # no journals can be there either
    said = []
    for path in sorted(glob.glob(os.path.join(glob.escape(home), JOURNAL)), key=changed_at, reverse=True):
        try:
            one = Journal(path)
        except Held:
            continue
        except GateError as fault:
            said.append(str(fault))
            continue
        if pid in (None, one.owner.get("pid")):
            said += one.recover()
        one.leave()
    return said


def changed_at(path: str) -> int:
    try:
        return os.lstat(path).st_mtime_ns
    except OSError:
        return 0


WATCHDOG = ("import sys; sys.dont_write_bytecode = True; sys.path.insert(0, sys.argv[1]); "
            "from netkit.gate import keeper; keeper.recover(int(sys.argv[2]))")


class Keeper:
    """Sets, and puts back. near and far are what leads to the two ends: words before a command."""

    def __init__(self, near: Sequence[str] = (), far: Optional[Sequence[str]] = None) -> None:
        self._near, self._far = found(near), None if far is None else found(far)
        self._journals: "Dict[str, Journal]" = {}   # that are ours until we leave
        self._changed: "List[Journal]" = []
        self._carry: "List[Setting]" = []       # of interfaces that carried packets
        self._watchdog: Optional[machine.Guard] = None     # looks after the journals

    def set(self, settings: "Sequence[Tuple[str, str]]") -> "Dict[Tuple[str, str], str]":
        """Sets what is not so yet. Returns the settings without effect, and why. Raises GateError; what was set until then
        stays until put_back()."""
        idle = {}
        for name, value in settings:
            try:
                setting = parse(name, self._near, self._far)
                why = self._set_one(setting, value) or setting.idle(value)
                if why:
                    idle[name, value] = f"{'far ' * name.startswith('far ')}{setting.item[0]} {why}"
            except GateError as fault:
                text = str(fault)
                raise GateError(text if text.startswith(f"{name}:") else f"{name}={value}: {text}") from None
        return idle

    def _set_one(self, setting: Setting, value: str) -> str:
        """What it is already, if it is."""
        place = setting.place()
        journal = self._journal(os.path.join(folder(), setting.journal(place)))
        seen = setting.look()
        setting.check(value, seen)
        if not setting.differs(value, seen):
            return f"already has {' '.join(setting.item[1:]) or setting.kind}={value}"
        where = seen if setting.kind == "mtu" else setting.where()
        self._changed = [*(one for one in self._changed if one is not journal), journal]
        journal.begin(Change(setting, place, where.get("address", ""), setting.value(seen)))
        call(setting.prefix, setting.command(value), journal.fds)
        seen = setting.look()
        journal.became(setting.value(seen))
        now = setting.differs(value, seen)
        if now:
            raise GateError(f"it had no effect: it is {now}")
        if carries(where):
            self._carry.append(setting)
            settle([setting])
        return ""

    def _journal(self, path: str) -> Journal:
        """The journal of a setting, which nobody else has until we leave. What a dead one left is put back."""
        one = self._journals.get(path)
        if not one:
            home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
            self._watchdog = self._watchdog or machine.Guard(sys.executable, "-c", WATCHDOG, home, str(os.getpid()))
            one = Journal(path, make=True)
            said = one.recover()
            if one.change:
                one.leave()
                raise GateError(said[0])
            self._journals[path] = one
            one.own()
            for line in said:
                note(line)
        return one

    def put_back(self) -> None:
        """Makes everything what it was, the last change first. Raises GateError for what could not be, which its
        journal keeps, and for what somebody else has changed."""
        if not self._changed:
            return
        held = signal.pthread_sigmask(signal.SIG_BLOCK, machine.ENDS)   # half of it is worth nothing
        said = []
        try:
            for journal in reversed(self._changed):
                shown = journal.change.shown() if journal.change else ""
                try:
                    journal.put_back()
                except GateError as fault:
                    said.append(f"did not put back {shown}: {fault}" + (
                        " (the next start of netgate tries it again)" if journal.change else ""))
            self._changed = [one for one in self._changed if one.change]
            links, self._carry = self._carry, []
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, held)
        if said:
            raise GateError("; ".join(said))
        with contextlib.suppress(GateError):    # an interface that went, or one that has no partner now
            settle(links)

    def leave(self) -> None:
        try:
            self.put_back()
        finally:
            for journal in self._journals.values():
                journal.leave()
            self._journals = {}
            if self._watchdog:
                self._watchdog.leave()
            self._watchdog = None


def found(prefix: Sequence[str]) -> "Tuple[str, ...]":
    """A prefix whose program is found from any folder: the watchdog is in another one."""
    if not prefix:
        return ()
    program = machine.find(prefix[0])
    return (os.path.abspath(program) if program else prefix[0], *prefix[1:])
