"""Settings of the machine for the time of a slot: the old value is noted, the new one is set and read back,
and the old one is put back, whatever ends netgate.

What was changed stands in a journal, which is on disk before the change. The journal is locked as long as
its owner lives, or a command that the owner started: who gets the lock may put back.
"""

import contextlib
import fcntl
import json
import os
import re
import shlex
import signal
import stat
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

from .. import machine
from .model import GateError

COMMAND_LIMIT = 30.0        # seconds that a command may take
LOCK_LIMIT = 60.0           # seconds until the journal of a dead owner is free
SETTLE_LIMIT = 20.0         # seconds until an interface carries packets again
IPV6_LEAST_MTU = machine.IPV6_LEAST_MTU
JOURNAL = re.compile(r"settings-(?P<pid>[0-9]+)-(?P<start>[0-9]+)-[0-9]+\.journal")
GONE = re.compile(r"does not exist|[Nn]o such device|Cannot find device|Cannot open network namespace"
                  r"|lab \S+ is not up|cannot stat /proc/sys")
# ethtool -k shows these by another name than ethtool -K best takes; the first four have parts of their own.
SHORT = {"tx-checksumming": "tx", "scatter-gather": "sg", "tcp-segmentation-offload": "tso",
         "udp-fragmentation-offload": "ufo", "rx-checksumming": "rx", "generic-segmentation-offload": "gso",
         "generic-receive-offload": "gro", "large-receive-offload": "lro", "rx-vlan-offload": "rxvlan",
         "tx-vlan-offload": "txvlan", "ntuple-filters": "ntuple", "receive-hashing": "rxhash"}
FAR_PATH = "env PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin LC_ALL=C "
ETHTOOL = {"coalesce": ("-c", "-C"), "ring": ("-g", "-G"), "channels": ("-l", "-L")}
FORMS = {"mtu": ("DEV",), "offload": ("DEV", "FEATURE"), "sysctl": ("NAME",),
         **{kind: ("DEV", "NAME") for kind in ETHTOOL}}
KNOWN = ", ".join(" ".join((kind, *words)) for kind, words in FORMS.items())


# --- commands -----------------------------------------------------------------------------

def wrapped(prefix: Sequence[str], command: Sequence[str]) -> "List[str]":
    """A command behind what leads to its place: nothing, "ip netns exec NAME" or "ssh HOST"."""
    if prefix and os.path.basename(prefix[0]) == "ssh":     # whose far shell takes one text
        return [*prefix, FAR_PATH + shlex.join(command)]
    return [*prefix, machine.find(command[0]) or command[0], *command[1:]]


def call(prefix: Sequence[str], command: Sequence[str], fds: Sequence[int] = ()) -> str:
    """What a command prints. Raises GateError with the last line of its complaint."""
    try:
        done = subprocess.run(
            wrapped(prefix, command), stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            timeout=COMMAND_LIMIT, check=False, env={**os.environ, "LC_ALL": "C"}, start_new_session=True,
            pass_fds=fds, preexec_fn=machine.tie_to_parent)
    except OSError as fault:
        raise GateError(f"{(*prefix, *command)[0]}: {fault.strerror}") from None
    except subprocess.TimeoutExpired:
        raise GateError(f"{command[0]}: no end after {COMMAND_LIMIT:g} s") from None
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise GateError(f"{command[0]}: {said[-1] if said else f'status {done.returncode}'}")
    return done.stdout


# --- what an interface is -----------------------------------------------------------------

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
    parts: bool = False     # it stands for the features behind it


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


def parameters(prefix: Sequence[str], kind: str, dev: str) -> "Dict[str, str]":
    """What ethtool -c, -g or -l shows as the present value, by the names that the same in capitals takes."""
    text = call(prefix, ["ethtool", ETHTOOL[kind][0], dev]).rpartition("Current hardware settings:")[2]
    text = re.sub(r"^(Adaptive|CQE mode) +RX: (\S+) +TX: (\S+)", r"\1 RX: \2\n\1 TX: \3", text, flags=re.M)
    found = {}
    for name, value in re.findall(r"^([\w -]+):[ \t]+(\S+)[ \t]*$", text, re.M):
        name = re.sub(r"frame(-low|-high)$", r"frames\1", name.lower().replace(" ", "-"))
        if value != "n/a":
            found[name] = value
    return found


# --- one setting --------------------------------------------------------------------------

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

    def clashes(self) -> str:
        """Settings with the same text here can't be had by two at a time."""
        return " ".join((self.kind, self.item[0])) if self.kind == "offload" else self.name

    def where(self) -> "Dict[str, Any]":
        """The interface; of a sysctl its namespace, as an address."""
        if self.kind == "sysctl":
            return {"address": call(self.prefix, ["readlink", "/proc/self/ns/net"]).strip()}
        return interface(self.prefix, self.item[0])

    def look(self) -> Any:
        """What value() and the like read: one look at the machine."""
        dev = self.item[0]
        if self.kind == "mtu":
            return interface(self.prefix, dev)
        if self.kind == "sysctl":
            return " ".join(call(self.prefix, ["sysctl", "-n", dev]).split())
        return features(self.prefix, dev) if self.kind == "offload" else parameters(self.prefix, self.kind, dev)

    def value(self, seen: Any) -> Any:
        """What command() takes to make it so again. Of an offload it is what is asked of all offloads of
        the interface, since one takes others with it."""
        if self.kind == "mtu":
            return str(seen["mtu"])
        if self.kind == "sysctl":
            return seen
        if self.kind == "offload":
            return {name: one.requested for name, one in seen.items() if not one.fixed and not one.parts}
        if self.item[1] not in seen:
            raise GateError(f"the interface has no such parameter (it has {', '.join(seen) or 'none'})")
        return seen[self.item[1]]

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

    def command(self, value: Any) -> "List[str]":
        """What makes it this value: one of a user, or one that value() gave. Empty: there is nothing to do."""
        dev = self.item[0]
        if self.kind == "mtu":
            return ["ip", "link", "set", "dev", dev, "mtu", str(value)]
        if self.kind == "sysctl":
            return ["sysctl", "-q", "-w", f"{dev}={value}"]
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
            r"[\w./-]+" if kind == "sysctl" else r"[^\s/]{1,15}", item[0]):
        raise GateError(f"{name}: not a name of {'a sysctl' if kind == 'sysctl' else 'an interface'}")
    if there and far is None:
        raise GateError(f"{name}: no commands can be run at the far end (REMOTE_TYPE and REMOTE_ARGS say how)")
    return Setting(kind, tuple(item), tuple(far or () if there else near))


# --- the journal --------------------------------------------------------------------------

def folder() -> str:
    """Where the journals are: with the system's, or with the user's. Commands in them are run again, so
    nobody else may write there."""
    base = "/run" if os.access("/run", os.W_OK) else os.environ.get("XDG_RUNTIME_DIR", "")
    if not base:
        raise GateError("no place for the journal of settings: neither /run nor XDG_RUNTIME_DIR can be "
                        "written (run it as root)")
    path = os.path.join(base, "plumbline")
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        there = os.lstat(path)
    except OSError as fault:
        raise GateError(f"{path}: {fault.strerror}") from None
    if not stat.S_ISDIR(there.st_mode) or there.st_uid != os.geteuid() or there.st_mode & 0o022:
        raise GateError(f"{path}: not a folder that only this user writes (remove it)")
    return path


def boot_id() -> str:
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


def start_time(pid: int) -> int:
    """When a process began, in ticks since boot; 0 when it is dead."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            words = file.read().rpartition(")")[2].split()
    except OSError:
        return 0
    return 0 if words[0] in "ZX" else int(words[19])


def lives(path: str) -> bool:
    """Whether the owner of a journal does, by its name."""
    owner = JOURNAL.fullmatch(os.path.basename(path))
    return owner is not None and start_time(int(owner["pid"])) == int(owner["start"])


def lock(fd: int, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > end:
                return False
            time.sleep(0.02)


@contextlib.contextmanager
def locked_folder(path: str) -> "Iterator[None]":
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if not lock(fd, LOCK_LIMIT):
            raise GateError(f"{path}: another netgate keeps it locked")
        yield
    finally:
        os.close(fd)


@dataclass
class Change:
    """A line of a journal."""
    setting: Setting
    identity: str
    old: Any

    def line(self) -> str:
        one = self.setting
        return json.dumps({"kind": one.kind, "item": one.item, "prefix": one.prefix,
                           "identity": self.identity, "old": self.old}) + "\n"

    def put_back(self, fds: Sequence[int]) -> bool:
        """False when the interface is gone, and the setting with it."""
        one = self.setting
        try:
            if one.where().get("address", "") != self.identity:
                return False
            command = one.command(self.old)
            if command:
                call(one.prefix, command, fds)
            if one.value(one.look()) != self.old:
                raise GateError("it had no effect")
        except GateError as fault:
            if GONE.search(str(fault)):
                return False
            raise
        return True

    def shown(self) -> str:
        """What it was, in words."""
        if isinstance(self.old, str):
            return f"{self.setting.name} to {self.old}"
        return f"the offloads of {self.setting.item[0]}"


def read_journal(fd: int) -> "Tuple[Dict[str, Any], List[Change]]":
    """Header and changes. The last line may be a piece: then its change was not made."""
    lines = os.pread(fd, os.fstat(fd).st_size, 0).decode(errors="replace").splitlines()
    rows = []
    for line in lines:
        try:
            rows.append(json.loads(line))
        except ValueError:
            break
    return (rows[0] if rows else {}), [
        Change(Setting(row["kind"], tuple(row["item"]), tuple(row["prefix"])), row["identity"], row["old"])
        for row in rows[1:]]


def restore(changes: "List[Change]", fds: Sequence[int]) -> "Tuple[List[Change], List[str]]":
    """Puts back, the last change first: those that were, and complaints of those that could not be."""
    done, said = [], []
    for change in reversed(changes):
        try:
            if change.put_back(fds):
                done.append(change)
        except GateError as fault:
            said.append(f"could not put back {change.shown()}: {fault}")
    return done, said


def recover_one(path: str) -> "List[str]":
    """Puts back what the journal of a dead owner says, and removes it; what was done, in lines."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return []
    try:
        if not lock(fd, LOCK_LIMIT):
            return [f"{path}: locked although its owner is dead (remove it when no netgate runs)"]
        if not os.fstat(fd).st_nlink:       # somebody else has put back meanwhile
            return []
        header, changes = read_journal(fd)
        if header.get("boot") != boot_id():
            changes = []
        done, said = restore(changes, (fd,))
        if not said:
            os.unlink(path)
        owner = f"netgate {header.get('pid')} was killed"
        return [f"put back {change.shown()}: {owner}" for change in done] + [
            f"{line} ({owner}; {path} remembers it: correct this, or remove the file)" for line in said]
    finally:
        os.close(fd)


def recover() -> "List[str]":
    """Puts back what dead owners left, and says what, in lines. Every netgate begins with this."""
    try:
        home = folder()
    except GateError:
        return []       # no journals can be there either
    names = sorted(name for name in os.listdir(home) if JOURNAL.fullmatch(name))
    return [line for name in names if not lives(os.path.join(home, name))
            for line in recover_one(os.path.join(home, name))]


# --- the keeper ---------------------------------------------------------------------------

WATCHDOG = ("import sys; sys.dont_write_bytecode = True; sys.path.insert(0, sys.argv[1]); "
            "from netkit.gate import keeper; keeper.recover_one(sys.argv[2])")


class Keeper:
    """Sets, and puts back. near and far are what leads to the two ends: words before a command."""
    _count = 0

    def __init__(self, near: Sequence[str] = (), far: Optional[Sequence[str]] = None) -> None:
        self._near, self._far = found(near), None if far is None else found(far)
        self._changes: "List[Change]" = []
        self._carry: "List[Setting]" = []       # of interfaces that carried packets
        self._path, self._fd = "", -1
        self._header = 0        # bytes of the journal that are no changes
        self._watchdog: "Optional[subprocess.Popen[bytes]]" = None

    def set(self, settings: "Sequence[Tuple[str, str]]") -> None:
        """Sets what is not so yet. Raises GateError; what was set until then stays until put_back()."""
        for name, value in settings:
            try:
                self._set_one(parse(name, self._near, self._far), value)
            except GateError as fault:
                text = str(fault)
                raise GateError(text if text.startswith(f"{name}:") else f"{name}={value}: {text}") from None

    def _set_one(self, setting: Setting, value: str) -> None:
        seen = setting.look()
        setting.check(value, seen)
        if not setting.differs(value, seen):
            return
        where = seen if setting.kind == "mtu" else setting.where()
        self._note(Change(setting, where.get("address", ""), setting.value(seen)))
        call(setting.prefix, setting.command(value), (self._fd,))
        now = setting.differs(value, setting.look())
        if now:
            raise GateError(f"it had no effect: it is {now}")
        if carries(where):
            self._carry.append(setting)
            settle([setting])

    def _note(self, change: Change) -> None:
        """Writes down what it was, for good."""
        if self._fd < 0:
            self._begin()
        with locked_folder(os.path.dirname(self._path)):
            self._refuse_another(change)
            os.write(self._fd, change.line().encode())
            os.fsync(self._fd)
        self._changes.append(change)

    def _refuse_another(self, change: Change) -> None:
        """Two that change one thing would put back what the other one made of it."""
        home = os.path.dirname(self._path)
        for name in os.listdir(home):
            path = os.path.join(home, name)
            if path == self._path or not JOURNAL.fullmatch(name) or not lives(path):
                continue
            with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
                header, others = read_journal(file.fileno())
                if any((one.setting.clashes(), one.identity) == (change.setting.clashes(), change.identity)
                       for one in others):
                    raise GateError(f"netgate {header['pid']} has changed it (wait until that one ends)")

    def _begin(self) -> None:
        """Makes the journal and what looks after it."""
        pid, start = os.getpid(), start_time(os.getpid())
        Keeper._count += 1
        path = os.path.join(folder(), f"settings-{pid}-{start}-{Keeper._count}.journal")
        try:
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except OSError as fault:
            raise GateError(f"{path}: {fault.strerror}") from None
        self._path = path
        fcntl.flock(self._fd, fcntl.LOCK_EX)
        self._header = os.write(self._fd, (json.dumps({"pid": pid, "start": start, "boot": boot_id()})
                                           + "\n").encode())
        home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        # In a session of its own, so that what kills us does not kill it. It waits for a word that does
        # not come when we die.
        self._watchdog = subprocess.Popen(
            ["/bin/sh", "-c", 'read -r word || exec "$@"', "sh", sys.executable, "-c", WATCHDOG, home, path],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/",
            start_new_session=True, preexec_fn=machine.free_signals)

    def put_back(self) -> None:
        """Makes everything what it was, the last change first. Raises GateError for what could not be; the
        journal keeps it."""
        if not self._changes:
            return
        held = signal.pthread_sigmask(signal.SIG_BLOCK, machine.ENDS)   # half of it is worth nothing
        try:
            _, said = restore(self._changes, (self._fd,))
            if said:
                raise GateError(f"{said[0]} (the next start of netgate tries it again)")
            os.ftruncate(self._fd, self._header)
            links, self._changes, self._carry = self._carry, [], []
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, held)
        with contextlib.suppress(GateError):    # an interface that went, or one that has no partner now
            settle(links)

    def leave(self) -> None:
        """Puts back, and ends the watchdog."""
        try:
            self.put_back()
        finally:
            if self._fd >= 0:
                if not self._changes:
                    os.unlink(self._path)
                os.close(self._fd)
                self._fd = -1
            if self._watchdog:
                self._watchdog.communicate(b"done\n")
            self._watchdog = None


def found(prefix: Sequence[str]) -> "Tuple[str, ...]":
    """A prefix whose program is found from any folder: the watchdog is in another one."""
    if not prefix:
        return ()
    program = machine.find(prefix[0])
    return (os.path.abspath(program) if program else prefix[0], *prefix[1:])
