"""A network namespace of a suite's own: every socket and process in it belongs to the suite, so that leftovers can be
counted.
"""

import os
import re
import shutil
import sys
import time
from pathlib import Path
from typing import Dict, List, NamedTuple, NoReturn, Optional, Sequence, Set

import lib

MARK = "NP_TEST_ALONE"
LATE_S = 20.0           # seconds after which nothing may be left, however busy the machine is
ADDRESS = "10.77.255.1"  # without another address than loopback's, the real netperf can't resolve 127.0.0.1
NICE = ("nice", "-n", "5")  # before commands, so that this program is woken in time
LISTEN = "0A"           # in /proc/net/tcp
TIME_WAIT = " 06 00000000:00000000 03:"
_begun = time.time()


# A daemon and a client in a network namespace with another setting of /proc/sys/net.
INSIDE = """
ip link set lo up && test -e "/proc/sys/net/$1" || exit 77
echo "$2" > "/proc/sys/net/$1" || exit 77
"$3" -D -p 12865 > /dev/null 2>&1 &
daemon=$!
shift 3
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    grep -qs ":3241 .* 0A " /proc/net/tcp /proc/net/tcp6 && break
    sleep 0.2
done
"$@"
status=$?
kill $daemon
exit $status
"""


def own_net() -> List[str]:
    return ["unshare", "-n"] if os.geteuid() == 0 else ["unshare", "-n", "-r"]


def under(setting: str, value: str, patience: float, *cmd: str) -> lib.Result:
    """The result of a client of a daemon at port 12865, where a setting has this value."""
    if not shutil.which("unshare") or not shutil.which("ip"):
        raise lib.Skipped("no unshare(1), or no ip(8)")
    got = lib.run([*own_net(), "sh", "-c", INSIDE, "sh", setting, value, lib.netserver(), *cmd], patience)
    if got.rc == 77 or "Operation not permitted" in got.err:
        raise lib.Skipped(f"no network namespace with a {setting} of its own: {got.err.strip()}")
    return got


def enter() -> None:
    """Restart this program in a namespace of its own; skip it if that is impossible."""
    if os.environ.get(MARK) == "1":
        return
    for program in ("unshare", "ip"):
        if not shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"):
            lib.skip(f"no program {program}")
    got = lib.run([*own_net(), "ip", "link", "set", "lo", "up"], 20)
    if got.rc != 0:
        lib.skip(f"no network namespace of its own: {got.err.strip()}")
    os.environ[MARK] = "1"
    # Connection tests leave tens of thousands of sockets in TIME-WAIT, which take long to read.
    few = 'echo 500 2> /dev/null > /proc/sys/net/ipv4/tcp_max_tw_buckets'
    _become([*own_net(), "sh", "-c", f'ip link set lo up && ip address add {ADDRESS}/32 dev lo && '
             f'{{ {few} || :; }} && exec "$@"', "sh", sys.executable, *sys.argv])


def _become(cmd: Sequence[str]) -> NoReturn:
    sys.stdout.flush()
    os.execvp(cmd[0], cmd)


def children(pid: int) -> List[int]:
    """As lib.children(), but with a single read if the kernel supports it."""
    try:
        pids = map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
        return [one for one in pids if not lib.forks_sessions(one)]
    except OSError:
        return lib.children(pid)


# ---- what there is ------------------------------------------------------------------------------

def processes() -> Dict[int, str]:
    """The names of all processes in this namespace except this one. Zombies appear only in their parent's list."""
    mine = os.readlink("/proc/self/ns/net")
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(entry / "ns/net") == mine and int(entry.name) != os.getpid():
                found[int(entry.name)] = (entry / "comm").read_text().strip()
        except OSError:
            continue  # it ended, or is another user's
    return found


class Row(NamedTuple):
    """A socket in /proc/net."""
    table: str
    local: int   # port
    remote: int
    state: str
    inode: str


def sockets(*tables: str) -> List[Row]:
    rows = []
    for table in tables:
        try:
            lines = Path(f"/proc/self/net/{table}").read_text().splitlines()[1:]
        except OSError:
            continue  # no IPv6
        for line in lines:
            if TIME_WAIT in line:
                continue
            f = line.split()
            local, remote = (int(f[n].rpartition(":")[2], 16) for n in (1, 2))
            rows.append(Row(table, local, remote, f[3], f[9]))
    return rows


def paths() -> List[str]:
    """The UNIX sockets in the file system."""
    rows = [line.split() for line in Path("/proc/self/net/unix").read_text().splitlines()[1:]]
    return [row[7] for row in rows if len(row) > 7 and row[7].startswith("/")]


def inodes_of(pid: int) -> Set[str]:
    found = set()
    try:
        for fd in Path(f"/proc/{pid}/fd").iterdir():
            try:
                text = os.readlink(fd)
            except OSError:
                continue
            if text.startswith("socket:["):
                found.add(text[8:-1])
    except OSError:
        pass
    return found


def session_of(client: int, port: int, daemon: int) -> Optional[int]:
    """The daemon's child at the other end of a client's control connection. Waits until no other process has that
    connection: for a moment after fork(2), another client's session has it, too."""
    own = inodes_of(client)
    rows = sockets("tcp", "tcp6")
    local = {row.local for row in rows if row.remote == port and row.inode in own}
    far = {row.inode for row in rows if row.local == port and row.remote in local}
    found = [pid for pid in (daemon, *children(daemon)) if far & inodes_of(pid)]
    return found[0] if len(found) == 1 and found[0] != daemon else None


# ---- what is left -------------------------------------------------------------------------------

def places_left() -> List[str]:
    """Directories for sockets in /tmp whose process is dead."""
    found = []
    for place in Path("/tmp").glob("netperf-*"):
        name = re.fullmatch(r"netperf-(\d+)\.\w{6}", place.name)
        try:
            fresh = place.stat().st_mtime >= _begun - 1
        except OSError:
            continue
        if name and fresh and not lib.alive(int(name[1])):
            found.append(str(place))
    return found


def parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0  # gone


def left(daemons: Sequence[lib.Daemon]) -> List[str]:
    """What exists in this namespace apart from these daemons and their listeners."""
    pids, ports = [d.pid for d in daemons], {d.port for d in daemons}
    found = [f"process {pid} ({name})" for pid, name in processes().items()
             if pid not in pids and not (lib.forks_sessions(pid) and parent(pid) in pids)]
    found += [f"child {pid} of {daemon}" for daemon in pids for pid in children(daemon)]
    found += [f"listener on port {row.local}" for row in sockets("tcp", "tcp6")
              if row.state == LISTEN and row.local not in ports]
    found += [f"{row.table} socket on port {row.local}" for row in sockets("udp", "udp6")]
    found += [f"socket {path}" for path in paths()]
    return found + [f"directory {place}" for place in places_left()]


def must_be_clean(daemons: Sequence[lib.Daemon], seconds: float = LATE_S) -> str:
    """Check that nothing is left after that many seconds; returns how long it took."""
    since = time.monotonic()
    clean = lib.wait_for(lambda: not left(daemons), seconds)
    assert clean, f"left after {seconds:g} s: {', '.join(left(daemons))}"
    return f"nothing left after {time.monotonic() - since:.1f} s"
