"""Changes the machine's settings for a slot, checks them, and restores the old values however netgate ends.

Each setting in use has a journal file, on disk before it changes. That stays locked while its owner, or a command that
the owner started, is alive. Only the holder of the lock may restore the setting."""

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
LOCK_LIMIT = 60.0           # seconds until the journal of a dead owner must be unlocked
SETTLE_LIMIT = 20.0         # seconds until an interface must carry packets again
JOURNAL = "setting-*.journal"
BOOT_ID, PIDS = "/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid"
FIRST_PIDS = "pid:[4026531836]"     # the initial PID namespace, which contains all others
GONE = re.compile(r"does not exist|[Nn]o such device|Cannot find device|cannot stat /proc/sys")
NAMELESS = re.compile(r"Cannot open network namespace .*No such file|lab \S+ is not up")
# Sysctls with side effects that restoring the old value does not undo.
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
# ethtool -K prefers other names than ethtool -k prints; the first four are groups of features.
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
    """The command to run at an end, given the prefix that leads there: nothing, "ip netns exec NAME" or "ssh HOST"."""
    if prefix and os.path.basename(prefix[0]) == "ssh":     # ssh passes one string to the remote shell
        return [*prefix, FAR_PATH + shlex.join(command)]
    return [*prefix, machine.find(command[0]) or command[0], *command[1:]]


def call(prefix: Sequence[str], command: Sequence[str], fds: Sequence[int] = ()) -> str:
    """Run a command and return its stdout. Raises GateError with the last line of its stderr."""
    with files.raising(GateError, (*prefix, *command)[0]):
        done = machine.ask(wrapped(prefix, command), COMMAND_LIMIT, env={**os.environ, "LC_ALL": "C"}, pass_fds=fds,
                           preexec_fn=machine.tied())
    if done.exit != 0:
        raise GateError(f"{command[0]}: {done.complaint()}")
    return done.stdout


def interface(prefix: Sequence[str], dev: str) -> "Dict[str, Any]":
    """What ip prints about an interface: mtu, address, operstate, addr_info and so on."""
    try:
        return dict(next(one for one in json.loads(call(prefix, ["ip", "-j", "-d", "addr", "show", "dev", dev]))
                         if one))
    except (ValueError, StopIteration):
        raise GateError(f"ip prints nothing about {dev}") from None


@dataclass(frozen=True)
class Feature:
    """One line of ethtool -k."""
    active: bool
    requested: bool
    fixed: bool
    parts: bool = False     # a group: the indented features after it are its parts


def features(prefix: Sequence[str], dev: str) -> "Dict[str, Feature]":
    """The offloads of an interface, by ethtool -K's short names where they exist."""
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
        else:       # a group is fixed if all its parts are
            whole = found[group]
            found[group] = Feature(whole.active, whole.requested,
                                   note == "fixed" and (whole.fixed or not whole.parts), True)
        found[name] = Feature(active, requested, note == "fixed")
    return found


def one_queue(dev: str, queue: str, *words: str) -> "List[str]":
    """The ethtool command for the coalescing of a single queue."""
    return ["ethtool", "-Q", dev, "queue_mask", hex(1 << int(queue)), *words]


def parameters(prefix: Sequence[str], command: Sequence[str]) -> "Dict[str, str]":
    """The current values that ethtool -c, -g, -l or -Q prints, by the names that ethtool takes to set them."""
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
    """A setting, and the command prefix that leads to its end."""
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
        """A sysctl's path below /proc/sys. As in sysctl(8), a name's first separator says which kind it uses."""
        name = self.item[0]
        return name if re.match(r"[^./]*/", name) else name.translate(str.maketrans("./", "/."))

    def place(self) -> str:
        """Boot ID and network namespace; for a sysctl that is not per namespace, the boot ID alone."""
        text = call(self.prefix, ["sh", "-c", f"cat {BOOT_ID}; readlink /proc/self/ns/net"])
        boot, net = text.split()
        return boot if self.kind == "sysctl" and not self.path.startswith("net/") else f"{boot} {net}"

    def journal(self, place: str) -> str:
        """The name of its journal. Settings that share a journal cannot be changed by two netgates at once."""
        item = {"offload": self.item[:1], "sysctl": (self.path,)}.get(self.kind, self.item)
        return f"setting-{hashlib.sha256(json.dumps([place, self.kind, item]).encode()).hexdigest()[:16]}.journal"

    def where(self) -> "Dict[str, Any]":
        return {} if self.kind == "sysctl" else interface(self.prefix, self.item[0])

    def look(self) -> Any:
        """Read the state of the machine, once, for value(), check() and differs()."""
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
        """What command() takes to restore it. One offload may change others, so it is the requested state of all."""
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
        """Refuse a value that could not be restored exactly or would have no effect."""
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
        """The present value if it differs from the one that a user asked for, else ""."""
        if self.kind == "offload":
            active = seen[self.feature].active
            return "" if active == (value == "on") else "on" if active else "off"
        now = str(self.value(seen))
        return "" if now == " ".join(value.split()) else now

    def idle(self, value: str) -> str:
        """Why the value, although set, makes no difference, where that can be seen; else ""."""
        if self.kind != "offload" or self.feature not in ("tso", "gso") or self.where().get("gso_max_segs") != 1:
            return ""
        return f"makes nothing of {self.feature}={value}: its gso_max_segs is 1, a packet has one segment"

    def command(self, value: Any) -> "List[str]":
        """The command that sets a value, either a user's or one from value(). Empty if there is nothing to do."""
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
    """Wait until the interfaces carry packets: drivers may restart the link, and IPv6 then looks for duplicates."""
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
    """Parse the name of a setting: "mtu lab0", or "far mtu lab0" for the far end."""
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
    """The journals' directory: the system's, else ours. No other user may write there, as their commands are run."""
    base = "/run" if os.access("/run", os.W_OK) else os.environ.get("XDG_RUNTIME_DIR", "")
    if not base:
        raise GateError("no place for the journal of settings: neither /run nor XDG_RUNTIME_DIR can be "
                        "written (run it as root)")
    path = os.path.join(base, "plumbline")
    with files.raising(GateError, path):
        files.own_folder(path)
    return path


def lives(owner: "Dict[str, Any]") -> bool:
    """Whether the owner of a journal is alive, as far as can be seen from here."""
    return owner.get("pids") != os.readlink(PIDS) or machine.start_time(owner["pid"]) == owner["start"]


def held(net: str) -> bool:
    """Whether a network namespace has processes or a name; also true when that can't be determined."""
    if os.readlink(PIDS) != FIRST_PIDS:
        return True
    for one in {*glob.glob("/proc/[0-9]*")} - {"/proc/1"}:    # kernel threads are in init's namespaces
        try:
            if os.readlink(f"{one}/ns/net") == net:
                return True
            with open(f"{one}/mountinfo", encoding="utf-8", errors="replace") as file:
                if f" {net} " in file.read():
                    return True
        except PermissionError:
            return True
        except OSError:     # the process has just ended
            continue
    return False


class Overruled(GateError):
    """The setting was changed by something else since, and is left alone."""


class Held(GateError):
    """Another running netgate holds the journal, or the journal does not exist."""


@dataclass
class Change:
    """The old value of a setting and what netgate changed it to (None while the change is under way)."""
    setting: Setting
    place: str
    identity: str       # MAC address of the interface
    old: Any
    now: Any = None

    def row(self) -> "Dict[str, Any]":
        one = self.setting
        return {"kind": one.kind, "item": one.item, "prefix": one.prefix, "place": self.place,
                "identity": self.identity, "old": self.old}

    def _reach(self) -> str:
        """Find a way to it. Returns why it no longer exists, else "". Raises GateError if it is out of reach."""
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
        """Restore the old value. Returns why there is nothing to restore, else "". Raises GateError on failure."""
        why = self._reach()
        if why:
            return why
        one, wanted = self.setting, self.old
        if isinstance(wanted, dict) and self.now:   # only those that netgate changed
            wanted = {name: on for name, on in wanted.items() if self.now.get(name) != on}
        try:
            if one.where().get("address", "") != self.identity:
                return "its interface is gone, and this is another one"
            seen = one.value(one.look())
            # An offload that was changed since already has its old value. Adaptive coalescing changes by itself.
            known = seen if self.now is None or one.kind in ("coalesce", "queue") else self.now
            if isinstance(seen, str) and seen not in (known, wanted):
                raise Overruled(f"it has been set to {seen} since, and is left so")
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
    """Whether a value is the wanted one; for offloads, whether all the wanted ones are as wanted."""
    return bool(wanted.items() <= seen.items() if isinstance(wanted, dict) else seen == wanted)


class Journal:
    """The locked journal file of a setting. The first line names the owner, the second the change; each later step
    adds a line: null before the setting is changed, the resulting value after. An incomplete line was not acted on.
    Raises Held if another netgate holds it, and GateError if the lock outlasts its owner."""

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
        self.fds = (self._fd,)      # for a command that changes the setting: the journal stays locked while it runs
        self._read()

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
        """Append a line and sync it; on failure the file is as before."""
        size, line = os.fstat(self._fd).st_size, (json.dumps(row) + "\n").encode()
        try:
            if os.write(self._fd, line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(self._fd)
        except OSError as fault:
            os.ftruncate(self._fd, size)
            raise GateError(f"{self.path}: {fault.strerror}") from None

    def own(self) -> None:
        os.ftruncate(self._fd, 0)
        self.owner = {"pid": os.getpid(), "start": machine.start_time(os.getpid()), "pids": os.readlink(PIDS)}
        self._write(self.owner)

    def begin(self, change: Change) -> None:
        """Note the old value before a change. If there were several changes, the first old value counts."""
        self._write(None if self.change else change.row())
        self.change = self.change or change
        self.change.now = None

    def became(self, value: Any) -> None:
        assert self.change
        self._write(value)
        self.change.now = value

    def put_back(self) -> str:
        """Restore and clear the journal. Returns why there was nothing to do, else "". Raises GateError, Overruled."""
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
        """Restore what a dead owner left behind; returns lines that say what was done."""
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
    """Restore what dead owners (or only the one with this pid) left, the latest change first; says what was done."""
    try:
        home = folder()
    except GateError:
        return []       # then there can be no journals either
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
    """Changes settings and restores them. near and far are the command prefixes that lead to the two ends."""

    def __init__(self, near: Sequence[str] = (), far: Optional[Sequence[str]] = None) -> None:
        self._near, self._far = found(near), None if far is None else found(far)
        self._journals: "Dict[str, Journal]" = {}   # ours until leave()
        self._changed: "List[Journal]" = []
        self._carry: "List[Setting]" = []       # interfaces that carried packets before the change
        self._watchdog: Optional[machine.Guard] = None     # restores the settings if this process is killed

    def set(self, settings: "Sequence[Tuple[str, str]]") -> "Dict[Tuple[str, str], str]":
        """Apply settings. Returns those without effect, and why. On GateError, what is set stays until put_back()."""
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
        """Apply one setting. Returns a remark if it already had the value, else ""."""
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
        """The journal of a setting, ours until leave(). What a dead owner left in it is restored first."""
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
        """Restore all, the latest first. Raises GateError for failures (the journal stays) and changes by others."""
        if not self._changed:
            return
        held = signal.pthread_sigmask(signal.SIG_BLOCK, machine.ENDS)   # must not be interrupted half-way
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
        with contextlib.suppress(GateError):    # an interface that is gone, or whose peer is
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
    """The prefix with its program's absolute path: the watchdog runs in another directory."""
    if not prefix:
        return ()
    program = machine.find(prefix[0])
    return (os.path.abspath(program) if program else prefix[0], *prefix[1:])
