"""Settings that netgate changes for a slot are restored, however it ends; and its environment: that of the kernel's
driver tests, and the suite of points for an interface. In namespaces with a /run of its own. --long kills more of
them.
"""

import argparse
import contextlib
import io
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Sequence, Tuple
from unittest import mock

import lib
from netkit import Fault, script
from netkit.gate import bench, ends, keeper, nic, output
from netkit.gate.model import EQUAL, Gate, GateError, Judgement, Metric

MARK = "NP_TEST_GATE_PLACE"
NETGATE = f"{lib.SCRIPTS}/netgate"
FAR = "far"     # the far end's namespace; the near one is this process's
INSIDE = ("ip", "netns", "exec", FAR)
# of both ends; setting tx also sets tso
SETTINGS = (("mtu v0", "1400"), ("far mtu v1", "1400"), ("offload v0 tx", "off"), ("offload v0 gso", "off"),
            ("far offload v1 gro", "on"), ("sysctl net.ipv4.tcp_rmem", "4096 8192 16384"))


def enter() -> None:
    """Restart this program with a network and a /run of its own; skip if that is impossible."""
    if os.environ.get(MARK):
        return
    for program in ("unshare", "ip", "ethtool", "sysctl"):
        if not keeper.machine.find(program):
            lib.skip(f"no program {program}")
    how = ["unshare", "-n", "-m", *(["-r"] if os.geteuid() else [])]
    make = ("mount -t tmpfs none /run && ip link add v0 type veth peer name v1 && ip netns add far && "
            "ip link set v1 netns far && ip addr add 192.0.2.1/24 dev v0 && ip link set lo up && ip link set v0 up && "
            "ip addr add 2001:db8::1/64 dev v0 nodad && ip -n far addr add 192.0.2.2/24 dev v1 && "
            "ip -n far addr add 2001:db8::2/64 dev v1 nodad && ip -n far link set lo up && ip -n far link set v1 up")
    got = lib.run([*how, "sh", "-c", make], 30)
    if got.rc:
        lib.skip(f"no namespaces of its own: {got.err.strip()}")
    os.environ[MARK] = "1"
    sys.stdout.flush()
    os.execvp(how[0], [*how, "sh", "-c", f'{make} && exec "$@"', "sh", sys.executable, *sys.argv])


def said(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def machine_now() -> "List[str]":
    """Everything that the settings in this test change."""
    links = [one[one.index("mtu"):].split()[1] for one in (
        said("ip", "link", "show", "dev", "v0"), said(*INSIDE, "ip", "link", "show", "dev", "v1"))]
    return [*links, said("ethtool", "-k", "v0"), said(*INSIDE, "ethtool", "-k", "v1"),
            said("sysctl", "-n", "net.ipv4.tcp_rmem")]


def journals() -> "List[Path]":
    return sorted(Path("/run/plumbline").glob("*")) if Path("/run/plumbline").is_dir() else []


@contextlib.contextmanager
def kept() -> "Iterator[keeper.Keeper]":
    one = keeper.Keeper((), INSIDE)
    try:
        yield one
    finally:
        one.leave()


def what_does_nothing_is_said() -> str:
    """Settings that are already in effect at either end, and segmentation that no packet can use, are reported."""
    with kept() as one:
        assert one.set([("far mtu v1", "1500"), ("mtu v0", "1400")]) == {("far mtu v1", "1500"): "far v1 already has mtu=1500"}
        keeper.call((), ["ip", "link", "set", "dev", "v0", "gso_max_segs", "1"])
        try:
            said = one.set([("offload v0 tso", "off")])
            assert said == {("offload v0 tso", "off"): "v0 makes nothing of tso=off: its gso_max_segs is 1, a packet has one "
                            "segment"}, said
        finally:
            keeper.call((), ["ip", "link", "set", "dev", "v0", "gso_max_segs", "65535"])
    return ""


def refused(words: str, *settings: "Tuple[str, str]") -> str:
    """The error message about settings, which must contain these words."""
    with kept() as one:
        try:
            one.set(settings)
        except GateError as fault:
            assert words in str(fault) and "\n" not in str(fault), fault
            return str(fault)
    raise AssertionError(f"{settings} were set")


# --- setting and putting back -------------------------------------------------------------

def set_and_put_back() -> str:
    before = machine_now()
    with kept() as one:
        for _ in range(2):
            one.set(SETTINGS)
            during = machine_now()
            assert during[:2] == ["1400", "1400"] and during[4].split() == ["4096", "8192", "16384"], during
            assert "tx-checksum-ip-generic: off" in during[2] and "generic-receive-offload: on" in during[3]
            there = journals()
            assert len(there) == len(SETTINGS) - 1, there       # offloads of an interface share one
            assert {one.stat().st_mode & 0o777 for one in there} == {0o600}
            assert there[0].parent.stat().st_mode & 0o077 == 0
            assert {len(one.read_text().splitlines()) for one in there} == {3, 5}, there
            one.put_back()
            assert machine_now() == before
            assert {len(one.read_text().splitlines()) for one in there} == {1}
        assert one.set([("mtu v0", "1500")]) == {("mtu v0", "1500"): "v0 already has mtu=1500"}
        assert {len(one.read_text().splitlines()) for one in there} == {1}
    assert machine_now() == before and not journals()
    return f"{len(SETTINGS)} settings, twice"


def mtu_off_the_link() -> str:
    return "; ".join(refused(words, ("mtu v0", value)) for value, words in (
        ("1000", "IPv6 addresses"), ("70000", "68 to 65535"), ("x", "68 to 65535")))


def refusals() -> str:
    for setting, words in ((("qdisc v0", "fq"), "there are mtu DEV, offload DEV FEATURE"),
                           (("mtu", "1500"), "not a setting"), (("", "1"), "not a setting"),
                           (("mtu v9", "1400"), "v9"), (("mtu -x", "1400"), "not a name"),
                           (("offload v0 lro", "on"), "the driver has it fixed"),
                           (("offload v0 tx-checksum-ipv4", "on"), "the driver has it fixed"),
                           (("offload v0 nonesuch", "on"), "no such offload"),
                           (("offload v0 tso", "yes"), "on or off"),
                           (("coalesce v0 rx-usecs", "9"), "coalesce v0 rx-usecs=9: "),
                           (("queue v0 0 rx-usecs", "9"), "queue v0 0 rx-usecs=9: "),
                           (("queue v0 first rx-usecs", "9"), "not a number of a queue"),
                           (("channels v0 combined", "2"), "it has rx, tx"),
                           (("channels v0 rx", "99"), "channels v0 rx=99: ethtool: "),
                           (("sysctl net.nonesuch", "1"), "cannot stat"),
                           (("sysctl ../../etc/passwd", "1"), "not a name"),
                           (("sysctl net/ipv4/../ipv4/tcp_rmem", "1"), "not a name"),
                           (("sysctl net.ipv4.tcp_rmem", "x"), "Invalid argument"),
                           (("far mtu v0", "1400"), "v0")):
        assert refused(words, setting).startswith(setting[0]) or not setting[0], setting
    try:
        keeper.Keeper().set([("far mtu v1", "1400")])
    except GateError as fault:
        assert "REMOTE_TYPE" in str(fault)
    else:
        raise AssertionError("a far end that nobody named was changed")
    return ""


def one_that_does_not_take() -> str:
    before = machine_now()
    with mock.patch.object(keeper.Setting, "command", return_value=["true"]):
        told = refused("mtu v0=1400: it had no effect: it is 1500", ("mtu v0", "1400"))
    refused("Could not change", ("offload v0 tx", "off"), ("offload v0 tx-udp-segmentation", "off"),
            ("offload v0 tx-udp-segmentation", "on"))     # needs the other one
    assert machine_now() == before and not journals()
    return told


def channels_and_coalescing() -> str:
    got = lib.run(["ip", "tuntap", "add", "t0", "mode", "tap"], 20)
    if got.rc:
        raise lib.Skipped(got.err.strip())
    before = said("ethtool", "-c", "t0"), said("ethtool", "-l", "v0")
    with kept() as one:
        one.set([("coalesce t0 rx-frames", "4"), ("channels v0 rx", "2")])
        assert "rx-frames: 4" in said("ethtool", "-c", "t0")
    assert before == (said("ethtool", "-c", "t0"), said("ethtool", "-l", "v0"))
    said("ip", "link", "del", "t0")
    return ""


def names_of_ethtool() -> str:
    """Rings and other coalescing parameters need an interface that these machines lack: sample texts replace it."""
    ring = ("Ring parameters for eth0:\nPre-set maximums:\nRX:\t\t4096\nTX:\t\t4096\nCurrent hardware "
            "settings:\nRX:\t\t256\nRX Mini:\tn/a\nTX:\t\t512\nRX Buf Len:\t\t2048\nTX Push:\toff\n")
    coalesce = ("Coalesce parameters for eth0:\nAdaptive RX: on  TX: n/a\nstats-block-usecs: 0\n\n"
                "rx-usecs: 8\nrx-frame-low: 3\ntx-frames: n/a\n\nCQE mode RX: off  TX: on\n")
    for kind, text, wanted in (
            ("ring", ring, {"rx": "256", "tx": "512", "rx-buf-len": "2048", "tx-push": "off"}),
            ("coalesce", coalesce, {"adaptive-rx": "on", "stats-block-usecs": "0", "rx-usecs": "8",
                                    "rx-frames-low": "3", "cqe-mode-rx": "off", "cqe-mode-tx": "on"}),
            ("queue", f"Queue: 5\n{coalesce.partition(':')[2]}", {"rx-usecs": "8"})):
        setting = keeper.Setting(kind, ("eth0", *["5"] * (kind == "queue"), next(iter(wanted))))
        with mock.patch.object(keeper, "call", return_value=text) as asked:
            got = setting.look()
        assert {name: got.get(name) for name in wanted} == wanted, got
    assert asked.call_args[0][1] == ["ethtool", "-Q", "eth0", "queue_mask", "0x20", "--show-coalesce"]
    assert setting.command("9") == ["ethtool", "-Q", "eth0", "queue_mask", "0x20", "--coalesce", "rx-usecs", "9"]
    return ""


def two_at_a_time() -> str:
    with kept() as one:
        one.set([("offload v0 tso", "off")])
        one.put_back()
        one.set([("sysctl net.ipv4.tcp_rmem", "4096 8192 16384")])
        for setting, value in (("offload v0 gro", "on"),        # between two slots
                               ("sysctl net/ipv4/tcp_rmem", "4096 8192 16384")):    # shared by that setting only
            refused("wait until that one ends", (setting, value))
        with kept() as other:       # another setting
            other.set([("mtu v0", "1450")])
    return ""


def interface_that_went() -> str:
    """Nothing is restored on an interface that is gone; one of the same name is another one."""
    said("ip", "link", "add", "d0", "type", "veth", "peer", "name", "d1")
    one = keeper.Keeper()
    one.set([("mtu d0", "1300")])
    said("ip", "link", "del", "d0")
    said("ip", "link", "add", "d0", "mtu", "1400", "type", "veth", "peer", "name", "d1")
    one.put_back()
    assert " mtu 1400 " in said("ip", "link", "show", "dev", "d0")
    one.set([("mtu d0", "1300")])
    said("ip", "link", "del", "d0")
    one.leave()
    assert not journals()
    return ""


# --- killed -------------------------------------------------------------------------------

def victim(prepare: "Callable[[keeper.Keeper], None]") -> int:
    """A process in its own group that sets and restores until it is killed."""
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setpgid(0, 0)
        one = keeper.Keeper((), INSIDE)
        prepare(one)
        end = time.monotonic() + 60
        while time.monotonic() < end:
            one.set(SETTINGS)
            one.put_back()
    finally:
        os._exit(3)     # it should have been killed


def dies_at(moment: int, with_watchdog: bool, one: keeper.Keeper) -> None:
    """Make a keeper's process kill itself, and perhaps the watchdog, before a given command or write."""
    left = [moment]

    def counted(do: "Callable[..., object]") -> "Callable[..., object]":
        def wrapper(*args: object, **more: object) -> object:
            left[0] -= 1
            if not left[0]:
                if not with_watchdog and one._watchdog:
                    os.kill(one._watchdog.pid, signal.SIGKILL)
                os.kill(os.getpid(), signal.SIGKILL)
            return do(*args, **more)
        return wrapper
    for place, name in ((keeper, "call"), (os, "write"), (os, "fsync"), (os, "ftruncate"), (os, "open")):
        setattr(place, name, counted(getattr(place, name)))


def killed(number: int, before: "List[str]", draw: random.Random) -> str:
    """One kill: between two steps, or at any time; with the watchdog, or without."""
    alone, by_time = number % 2 == 0, number % 4 > 1
    moment = draw.randint(1, 140)
    pid = victim((lambda one: None) if by_time else partial(dies_at, moment, alone))
    if by_time:
        time.sleep(draw.uniform(0.02, 1.0))
        os.kill(pid, signal.SIGKILL)
    assert os.waitpid(pid, 0)[1] == signal.SIGKILL, "the keeper ended by itself"
    if alone:
        assert lib.wait_for(lambda: not journals(), 60), journals()
    lines = keeper.recover()
    after = machine_now()
    assert after == before, f"{'time' if by_time else moment}: {before} became {after} ({lines})"
    assert not journals() and (not alone or not lines), (journals(), lines)
    return f"{len(lines)} put back by the next start"


def kills(report: lib.Report, deaths: int) -> None:
    seed = int(os.environ.get("NP_TEST_SEED", "0")) or random.randrange(1, 1 << 30)
    draw, before = random.Random(seed), machine_now()
    for number in range(deaths):
        report.case(f"kill -9, {number + 1} of {deaths}, NP_TEST_SEED={seed}", partial(killed, number, before, draw))


def journal_of(change: keeper.Change, *states: str) -> Path:
    """A journal as left by a dead owner."""
    dead = subprocess.run(["sh", "-c", "echo $$"], check=True, capture_output=True, text=True).stdout.strip()
    path = Path(keeper.folder()) / "setting-0123456789abcdef.journal"
    owner = {"pid": int(dead), "start": 1, "pids": os.readlink("/proc/self/ns/pid")}
    path.write_text("\n".join([*map(keeper.json.dumps, (owner, change.row())), *states]))
    return path


def next_start() -> str:
    """What is restored, and what is not, from journals that were left behind."""
    link = keeper.Setting("mtu", ("v0",))
    change = keeper.Change(link, link.place(), link.where()["address"], "1500")
    for is_now, one, states, told, then in (
            ("1400", change, (), "put back mtu v0 to 1500: netgate ", "1500"),
            ("1400", change, ("null", '"1400"'), "put back mtu v0 to 1500: netgate ", "1500"),
            ("1450", change, ("null", '"14'), "put back mtu v0 to 1500: netgate ", "1500"),   # during the change
            ("1450", change, ('"1400"',), "did not put back mtu v0 to 1500: it has been set to 1450", "1450"),
            ("1400", keeper.replace(change, place="another net:[1]"), (), "machine was started anew", "1400"),
            ("1400", keeper.replace(change, identity="02:00:00:00:00:01"), (), "interface is gone", "1400")):
        said("ip", "link", "set", "dev", "v0", "mtu", is_now)
        journal_of(one, *states)
        lines = keeper.recover()
        assert len(lines) == 1 and told in lines[0] and not journals(), (states, lines)
        assert link.value(link.look()) == then, (states, lines)
    said("ip", "link", "set", "dev", "v0", "mtu", "1400")
    path = journal_of(change)
    path.write_text(path.read_text()[:-9])
    assert keeper.recover() == [] and not journals() and link.value(link.look()) == "1400", "a piece of a line"
    said("ip", "link", "set", "dev", "v0", "mtu", "1500")
    # one that can't be restored is kept, and reported
    broken = keeper.replace(change, setting=keeper.Setting("mtu", ("v0",), ("/nonesuch/ssh", "host")))
    path = journal_of(broken)
    told, = keeper.recover()
    assert "could not put back mtu v0 to 1500" in told and str(path) in told and journals() == [path], told
    path.unlink()
    return ""


# --- killed with its watchdog, in namespaces, two gates -----------------------------------

HOLD = ("import sys, time; sys.path.insert(0, sys.argv[1]); from netkit.gate import keeper; "
        "one = keeper.Keeper((), sys.argv[2].split() or None); "
        "one.set([tuple(word.split('=')) for word in sys.argv[3:]]); print('set', flush=True); time.sleep(60)")
RECOVER = ("import sys; sys.path.insert(0, sys.argv[1]); from netkit.gate import keeper; "
           "print(*keeper.recover(), sep='\\n')")


def kill(pid: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    return True


def into(group: Path) -> "Tuple[str, ...]":
    """The command prefix that enters a cgroup. It precedes entering a namespace, as ip netns exec hides cgroups."""
    return "sh", "-c", f'echo $$ >{group}/cgroup.procs && exec "$@"', "sh"


def processes(group: Path) -> "List[int]":
    return [int(word) for word in (group / "cgroup.procs").read_text().split()]


@contextlib.contextmanager
def control_group() -> "Iterator[Path]":
    """A cgroup; at the end its processes are killed, all at once if the kernel supports that."""
    mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text().splitlines()]
    for place, _ in sorted((one for one in mounts if one[1].startswith("cgroup")), key=lambda one: one[1] != "cgroup2"):
        group = Path(place) / f"netgate-keeper-{os.getpid()}"
        with contextlib.suppress(OSError):
            group.mkdir()
            break
    else:
        raise lib.Skipped("no control group can be made")
    try:
        yield group
    finally:
        with contextlib.suppress(OSError):
            (group / "cgroup.kill").write_text("1")
        while any(map(kill, processes(group))):
            time.sleep(0.01)
        group.rmdir()


def killed_with_watchdog(settings: "List[str]", where: "Tuple[str, ...]" = (), far: "Tuple[str, ...]" = INSIDE) -> None:
    """A gate that has changed something, here or in a namespace, and is killed with its watchdog."""
    with control_group() as group:
        one = lib.Started((*into(group), *where, sys.executable, "-c", HOLD, lib.SCRIPTS, " ".join(far), *settings))
        assert lib.wait_for(lambda: "set\n" in one.said() or not one.running(), 60) and one.running(), one.said()
        assert len(processes(group)) == 2, "a gate and its watchdog"
    one.finish(20)


def rmem(*where: str) -> str:
    return " ".join(said(*where, "sysctl", "-n", "net.ipv4.tcp_rmem").split())


@contextlib.contextmanager
def namespace(name: str) -> "Iterator[Tuple[str, ...]]":
    said("ip", "netns", "add", name)
    try:
        yield "ip", "netns", "exec", name
    finally:
        subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def next_start_elsewhere() -> str:
    """What belongs to another namespace is kept and reported, restored there, and dropped when that one is gone."""
    with namespace("side") as there:
        before = rmem(*there), rmem()
        net = said(*there, "readlink", "/proc/self/ns/net").strip()
        killed_with_watchdog(["sysctl net.ipv4.tcp_rmem=4096 8192 16384", "mtu lo=60000"], there)
        for _ in range(2):
            lines = keeper.recover()
            assert len(lines) == 2 == len(journals()), (lines, journals())
            for line in lines:
                assert "could not put back " in line and net in line and "start netgate in that one" in line, line
                assert any(str(path) in line for path in journals()), line
        assert (rmem(*there), rmem()) == ("4096 8192 16384", before[1])
        with kept() as one:     # the same names mean other settings here
            one.set([("sysctl net.ipv4.tcp_rmem", "4096 4096 4096")])
        got = said(*there, sys.executable, "-c", RECOVER, lib.SCRIPTS)
        assert got.count("put back ") == 2 and not journals(), got
        assert (rmem(*there), rmem()) == before and " mtu 65536 " in said(*there, "ip", "link", "show", "dev", "lo")
        killed_with_watchdog(["sysctl net.ipv4.tcp_rmem=4096 8192 16384"], there)
    told, = keeper.recover()
    assert f"its network namespace, {net}, is gone" in told and not journals(), told
    return told


def two_gates_one_killed() -> str:
    """The second gate takes over what the first one left, although it started earlier: the old value is the original
    one."""
    before = machine_now()
    with kept() as one:
        one.set([("offload v0 gso", "off")])        # it has begun
        killed_with_watchdog(["mtu v0=1400", "far mtu v1=1400", "sysctl net.ipv4.tcp_rmem=4096 8192 16384"])
        assert machine_now()[:2] == ["1400", "1400"] and rmem() == "4096 8192 16384"
        with contextlib.redirect_stderr(io.StringIO()) as told:
            one.set([("mtu v0", "1450"), ("sysctl net.ipv4.tcp_rmem", "4096 8192 16384")])
        assert told.getvalue().count("netgate: put back ") == 2, told.getvalue()
        one.put_back()
        assert (machine_now()[0], rmem()) == (before[0], " ".join(before[4].split())), machine_now()
        assert machine_now()[1] == "1400"
    told, = keeper.recover()
    assert told.startswith("put back mtu v1 to 1500"), told
    assert machine_now() == before and not journals()
    return ""


def one_of_several_fails() -> str:
    """What was restored once is not restored again over later changes."""
    with tempfile.TemporaryDirectory() as folder:
        far = Path(folder) / "far"
        lib.executable(far, f'#!/bin/sh\n[ ! -e {folder}/broken ] || exit 9\nexec {" ".join(INSIDE)} "$@"\n')
        killed_with_watchdog(["mtu v0=1400", "far mtu v1=1400", "sysctl net.ipv4.tcp_rmem=4096 8192 16384"],
                             far=(str(far),))
        (Path(folder) / "broken").touch()
        lines = keeper.recover()
        assert len(lines) == 3 and len(journals()) == 1 and "could not put back mtu v1 to 1500" in "".join(lines), lines
        assert str(journals()[0]) in "".join(lines)
        said("ip", "link", "set", "dev", "v0", "mtu", "1450")
        told, = keeper.recover()
        assert "could not put back mtu v1 to 1500" in told and machine_now()[:2] == ["1450", "1400"], told
        refused("could not put back mtu v1 to 1500", ("far mtu v1", "1300"))
        (Path(folder) / "broken").unlink()
        assert len(keeper.recover()) == 1 and not journals() and machine_now()[:2] == ["1450", "1500"]
    said("ip", "link", "set", "dev", "v0", "mtu", "1500")
    return told


def set_since_by_somebody() -> str:
    """A value that was changed by something else is left alone, and reported."""
    killed_with_watchdog(["mtu v0=1400", "offload v0 gso=off"])
    said("ip", "link", "set", "dev", "v0", "mtu", "1450")
    said("ethtool", "-K", "v0", "gro", "on")
    lines = keeper.recover()
    assert len(lines) == 2 and "it has been set to 1450 since" in "".join(lines) and not journals(), lines
    now = keeper.features((), "v0")
    assert machine_now()[0] == "1450" and now["gso"].active and now["gro"].active, now
    said("ethtool", "-K", "v0", "gro", "off")
    one = keeper.Keeper()
    one.set([("mtu v0", "1400"), ("sysctl net.ipv4.tcp_rmem", "4096 8192 16384")])
    said("ip", "link", "set", "dev", "v0", "mtu", "1500")
    said("ip", "link", "set", "dev", "v0", "mtu", "1460")
    assert "been set to 1460 since" in complaint(one.leave) and machine_now()[0] == "1460" and not journals()
    assert rmem() != "4096 8192 16384"
    said("ip", "link", "set", "dev", "v0", "mtu", "1500")
    return ""


def sysctls_that_last() -> str:
    """Sysctls with side effects that restoring the old value does not undo."""
    names = ["net.ipv4.ip_forward", "net/ipv4/ip_forward", "net.ipv4.conf.all.forwarding",
             "net.ipv6.conf.all.forwarding", "net.ipv6.conf.v0.forwarding", "net.ipv6.conf.all.disable_ipv6",
             "net/ipv6/conf/v0/disable_ipv6", "net.ipv6.conf.v0.addr_gen_mode",
             "net.ipv6.conf.all.ignore_routes_with_linkdown",
             "net.ipv4.neigh.v0.unres_qlen", "net.ipv6.route.gc_min_interval"]
    for name in names:
        look = partial(said, "sysctl", "-a", "-r", "forward|redirects|disable_ipv6|gen_mode|linkdown|qlen|gc_min")
        before = look(), said("ip", "-o", "addr", "show", "scope", "global")
        refused("restoring the old value would not undo it: ", (f"sysctl {name}", "1"))
        assert before == (look(), said("ip", "-o", "addr", "show", "scope", "global")), name
    with kept() as one:
        one.set([("sysctl net.ipv4.conf.v0.rp_filter", "2"), ("sysctl net.ipv6.conf.all.hop_limit", "60")])
    return f"{len(names)} refused"


def sysctls_come_back() -> str:
    """For all of this kernel's network sysctls that are not refused: restoring the old value makes all of them, and
    addresses, what they were. Leaves this namespace with random values."""
    def read(path: Path) -> str:
        try:
            return " ".join(path.read_text().split())
        except (OSError, UnicodeDecodeError):
            return ""

    def look() -> "Dict[str, str]":
        return {"addresses": said("ip", "-o", "addr", "show", "scope", "global"),
                **{str(path): read(path) for path in paths}}

    def write(path: Path, values: "Sequence[str]") -> bool:
        """Whether writing one of these changed the value."""
        old = read(path)
        for value in values:
            with contextlib.suppress(OSError):
                path.write_text(value)
            if read(path) != old:
                return True
        return False

    paths, tried, draw = sorted(one for one in Path("/proc/sys/net").rglob("*") if one.is_file()), 0, random.Random(1)
    mine = []
    for path in paths:
        with contextlib.suppress(GateError):
            keeper.parse(f"sysctl {path.relative_to('/proc/sys')}", (), ())
            mine.append(path)
    for path in paths:
        if read(path) in ("0", "1") and (path in mine or path.name == "forwarding") and "_dad" not in path.name:
            write(path, draw.choice("01"))
    before = look()
    for path in mine:
        old = read(path)
        if not path.stat().st_mode & 0o200 or not write(path, ("1", "0", "2", "100", "1500", "7 8 9")):
            continue
        tried += 1
        write(path, (old or "\n",))
        now = look()
        assert before == now, [(path, name, before[name], now[name]) for name in now if before[name] != now[name]]
    return f"{tried} of {len(paths)}, {len(paths) - len(mine)} refused"


def programs_killed_with_their_watchdogs() -> str:
    """The program itself, in a namespace, and the next one: outside, and inside."""
    with namespace("side") as there:
        said(*there, "ip", "link", "set", "lo", "up")
        before, words = rmem(*there), ["--test", "TCP_RR", "--local", "--budget", "60", "--no-learn", "--slot", "1",
                                       "--netperf", lib.netperf(), "--netserver", lib.netserver()]
        with control_group() as group:
            one = lib.Started((*into(group), *there, NETGATE, *words,
                               "--set-a", "sysctl net.ipv4.tcp_rmem=4096 8192 16384",
                               "--set-b", "sysctl net.ipv4.tcp_rmem=4096 8192 32768"))
            assert lib.wait_for(lambda: rmem(*there) != before or not one.running(), 60) and one.running(), one.said()
        one.finish(20)
        assert rmem(*there) != before
        for where, words, left in (((), "could not put back sysctl net.ipv4.tcp_rmem", 1),
                                   (there, "put back sysctl net.ipv4.tcp_rmem", 0)):
            got = lib.run([*where, NETGATE, "nic", "--list"], 60)
            assert words in got.err and len(journals()) == left, (got, journals())
        assert rmem(*there) == before
    return ""


def owner_that_lives() -> str:
    with kept() as one:
        one.set([("mtu v0", "1450")])
        assert keeper.recover() == [] and len(journals()) == 1
        assert machine_now()[0] == "1450"
    return ""


def folder_of_another() -> str:
    home = Path(keeper.folder())
    home.chmod(0o777)
    try:
        return refused("only this user writes", ("mtu v0", "1450"))
    finally:
        home.chmod(0o700)


# --- the kernel's environment -------------------------------------------------------------

NETIF = {"NETIF": "v0", "LOCAL_V4": "192.0.2.1", "REMOTE_V4": "192.0.2.2", "LOCAL_V6": "2001:db8::1",
         "REMOTE_V6": "2001:db8::2", "REMOTE_TYPE": "netns", "REMOTE_ARGS": FAR}


def found(changes: "Dict[str, str]", folders: "Tuple[str, ...]" = ()) -> ends.Ends:
    return ends.find({**NETIF, **changes}, folders, lib.netperf(), lib.NETLAB, lib.netserver())


def variables() -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ends.CONFIG
        path.write_text('# theirs\nNETIF="v0"   # ours\n\nexport REMOTE_ARGS="-i key root@far"\nOTHER=yes\nLOCAL_V6=\n')
        got = ends.variables({"NETIF": "eth9", "LOCAL_V4": "192.0.2.1", "HOME": "/"}, ["/nonesuch", folder])
        assert got == {"NETIF": "v0", "LOCAL_V4": "192.0.2.1", "REMOTE_ARGS": "-i key root@far"}, got
        for text, words in (("NETIF\n", ":1: not NAME=VALUE"), ("A=b\nNETIF=a b\n", ":2: not NAME=VALUE"),
                            ('NETIF="a\n', ":1: No closing quotation")):
            path.write_text(text)
            told = complaint(partial(ends.config, str(path)))
            assert told.startswith(f"{path}{words}"), told
    return ""


def complaint(do: "Callable[[], object]") -> str:
    """The error message."""
    try:
        do()
    except Fault as fault:
        assert "\n" not in str(fault), fault
        return str(fault)
    raise AssertionError("it was not refused")


def what_is_missing() -> str:
    for changes, words in (({"LOCAL_V6": ""}, "without LOCAL_V6 "), ({"REMOTE_TYPE": ""}, "without REMOTE_TYPE "),
                           ({"REMOTE_TYPE": "serial"}, "netns or ssh"), ({"NETIF": "v9"}, "v9"),
                           ({"LOCAL_V4": "192.0.2.9"}, "is not an address of v0 (it has 192.0.2.1, "),
                           ({"REMOTE_V4": "192.0.2.1"}, "leave by lo, not by NETIF=v0"),
                           ({"REMOTE_V4": "192.0.2.7"}, "no interface there has the address 192.0.2.7"),
                           ({"REMOTE_ARGS": "nonesuch"}, "REMOTE_ARGS=nonesuch: ip: Cannot open network namespace")):
        told = complaint(partial(found, changes))
        assert words in told, (words, told)
    said(*INSIDE, "ip", "link", "set", "v1", "down")
    try:
        assert lib.wait_for(lambda: "has no link: its state is" in complaint(partial(found, {})), 20)
        said("ip", "link", "set", "v0", "down")
        assert "ip link set dev v0 up" in complaint(partial(found, {}))
    finally:
        for where, dev, address in (((), "v0", "2001:db8::1"), (INSIDE, "v1", "2001:db8::2")):
            said(*where, "ip", "link", "set", dev, "up")
            said(*where, "ip", "addr", "replace", f"{address}/64", "dev", dev, "nodad")
    assert lib.wait_for(lambda: keeper.carries(keeper.interface((), "v0")), 20)
    assert [output.ksft_status(status) for status in (0, 1, 77, 2)] == [0, 1, 4, 1]
    return ""


def options(*words: str) -> "argparse.Namespace":
    """Options as netgate parses them."""
    return script(str(lib.SCRIPTS), "netgate").parser().parse_args(["nic", *words])


def a_slot(there: ends.Ends, version: int) -> str:
    """One slot of the suite between these ends, which leaves nothing behind."""
    measure = bench.Bench(there, lib.netperf())
    try:
        there.place.ready(there.lab, version)
        assert there.device == "v0" and there.far_device == "v1" and there.hosts[6] == "2001:db8::2"
        point, = nic.suite(there, options("--only", f"tcp_rr.v{version}.mtu1500")).points
        slot = measure.slot(point, "A", 1)
        assert not slot.failed and slot.figures["THROUGHPUT"] > 0, slot.failed
    finally:
        measure.leave()
    assert lib.wait_for(lambda: not listeners(), 20), listeners()
    return f"{slot.figures['THROUGHPUT']:.0f} trans/s"


def listeners() -> str:
    return said(*INSIDE, "ss", "-Hltn")


@contextlib.contextmanager
def stand_in(netserver: str) -> "Iterator[None]":
    """A stand-in for ssh that enters the far namespace, for a user with a netserver there, or without."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ssh"
        path.write_text(f'#!/bin/sh\nfor last; do :; done\ncd / && exec {" ".join(INSIDE)} env '
                        f'PATH="{folder}/far:$PATH" sh -c "$last"\n')
        path.chmod(0o755)
        (Path(folder) / "far").mkdir()
        if netserver:
            (Path(folder) / "far" / "netserver").symlink_to(netserver)
        with mock.patch.dict(os.environ, {"PATH": f"{folder}:{os.environ['PATH']}"}):
            yield


def by_ssh() -> str:
    ssh = {"REMOTE_TYPE": "ssh", "REMOTE_ARGS": "-p 22 root@far"}
    known = {**NETIF, **ssh}
    with stand_in(""):
        told = complaint(lambda: ends.find(known, (), lib.netperf(), lib.NETLAB, "/nonesuch/netserver"))
        assert "no /nonesuch/netserver there" in told, told
    with stand_in(lib.netserver()):
        there = ends.find(known, (), lib.netperf(), lib.NETLAB)
        assert there.over_ssh and there.far[-2:] == ["22", "root@far"], there.far
        pid = os.fork()
        if not pid:
            with contextlib.suppress(BaseException):
                there.place.ready(there.lab, 4)
                os.kill(os.getpid(), signal.SIGKILL)
            os._exit(3)
        assert os.waitpid(pid, 0)[1] == signal.SIGKILL, "no daemon came up"
        assert lib.wait_for(lambda: not listeners(), 20), "a killed gate left its far daemon"
        return a_slot(there, 4)


# --- the suite nic ------------------------------------------------------------------------

def names_of_the_suite() -> str:
    made = nic.suite(found({}), options())
    names = [point.name for point in made.points]
    for name in ("tcp_stream.v4.mtu1500", "tcp_stream.v6.mtu9000.tso_off", "tcp_maerts.v4.mtu9000.gro_on",
                 "tcp_crr.v6.mtu1500", "udp_stream.v4.mtu9000.tx_off"):
        assert name in names, (name, names)
    assert len(set(names)) == len(names) == 44 and len(made.skipped) == 4, (len(names), made.skipped)
    assert ("tcp_maerts.v4.mtu1500.lro_on", "the driver has it fixed") in made.skipped, made.skipped
    point = next(one for one in made.points if one.name == "udp_stream.v6.mtu9000.tx_off")
    assert point.a == point.b and point.a.options == ("-m", "8952") and point.a.globals == ("-6",)
    assert point.a.settings == (("mtu v0", "9000"), ("far mtu v1", "9000"), ("offload v0 tx", "off"))
    assert point.metrics[0].name == "REMOTE_RECV_THROUGHPUT"
    assert nic.shares(made, 48000).startswith("44 points, 18 min 11 s each")
    assert nic.shares(made, 900) == "44 points, 20 s each; 4 left out"
    assert "(--budget 660, or fewer" in complaint(partial(nic.shares, made, 60))
    lines = nic.listing(made)
    assert len(lines) == 48 and any(line.split()[1:3] == ["mtu", "v0=9000,"] for line in lines), lines
    return f"{len(names)} points"


def what_an_interface_lacks() -> str:
    chosen = options("--set-a", "offload v0 tso=on", "--set-b", "offload v0 tso=off", "--before-b", "true", "--only", "tcp_[sr]*")
    one = found({"LOCAL_V6": "", "REMOTE_V6": ""})
    link = keeper.interface((), "v0")
    with mock.patch.object(keeper, "interface", return_value={**link, "max_mtu": 2000}):
        made = nic.suite(one, chosen)
    assert [point.name for point in made.points] == [
        f"{name}.v4.mtu1500{way}" for name, ways in (("tcp_stream", ("", ".gso_off", ".tx_off")), ("tcp_rr", ("",)))
        for way in ways], made.points
    reasons = dict(made.skipped)
    assert reasons["tcp_stream.v4.mtu1500.tso_off"] == "A or B sets offload v0 tso"
    assert reasons["tcp_stream.v4.mtu9000"] == "the interface takes an MTU of 2000 at most"
    assert reasons["tcp_rr.v6.mtu1500"] == "no addresses of IPv6"
    point = made.points[0]
    assert point.b.settings == (("mtu v0", "1500"), ("far mtu v1", "1500"), ("offload v0 tso", "off"))
    assert point.b.before == ("true",) and not point.a.before
    one.far = None
    reasons = dict(nic.suite(one, chosen).skipped)
    assert "no commands run at the far end" in reasons["tcp_stream.v4.mtu9000"], reasons
    assert "--only matches none" in complaint(lambda: nic.suite(one, options("--only", "sctp*")))
    one.device = "lo"
    assert "NETIF names one" in complaint(lambda: nic.suite(one, chosen))
    assert "--set-a 'tso'" in complaint(lambda: nic.suite(one, options("--set-a", "tso")))
    return ""


def what_is_left_out_is_said() -> str:
    made = Gate([], [Judgement("tcp_rr.v4.mtu1500", Metric(), EQUAL)], skipped=[("tcp_rr.v6.mtu1500", "no IPv6")])
    lines = output.FORMATS["tap"](made).splitlines()
    assert lines[:2] == ["TAP version 13", "1..1"], lines
    assert lines[2] == "# left out: tcp_rr.v6.mtu1500: no IPv6", lines
    assert "left out: tcp_rr.v6.mtu1500: no IPv6" in output.text(made)
    assert output.junit(made).count('<skipped message="no IPv6"') == 1
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "gate.jsonl")
        writer = output.Writer(path)
        writer.begin(made)
        writer.end(made)
        assert [tuple(one) for one in output.sessions(path)[0].skipped] == made.skipped
    return ""


def netgate(*args: str, **variables: str) -> lib.Started:
    return lib.Started([NETGATE, "nic", "--netperf", lib.netperf(), "--netserver",
                        lib.netserver(), "--progress", "never", *args],
                       env={**os.environ, **NETIF, **variables})


def as_the_kernel_runs_it() -> str:
    """Exit status and output of the program itself."""
    got = netgate("--list", "--only", "*v4.mtu1500.[lt]*").finish(60)
    assert (got.rc, len(got.out.splitlines())) == (0, 4), got
    got = netgate("--format", "tap", REMOTE_TYPE="").finish(60)
    assert got.rc == 1 and "without REMOTE_TYPE" in got.err, got
    with stand_in(""):
        got = netgate("--format", "tap", "--netserver", "/nonesuch", REMOTE_TYPE="ssh").finish(60)
    assert got.rc == 4 and "no /nonesuch there" in got.err, got
    for args, words in ((("--local",), "--local has no network interface"), (("--only", "x"), "--only matches none"),
                        (("--budget", "60"), "44 points get 1.36 s each"),
                        (("--before-b", "true"), "--before-b without --after-b"),
                        (("--test", "TCP_RR"), "no --test beside it")):
        got = netgate(*args).finish(60)
        assert got.rc == 2 and words in got.err and got.err.count("\n") == 1, got
    return ""


def a_gate_that_is_killed() -> str:
    """Settings and daemon are gone, whenever it is killed."""
    before = machine_now()
    draw = random.Random()
    for _ in range(4):
        one = netgate("--only", "tcp_rr.v6.mtu9000", "--budget", "60", "--set-b", "offload v0 tx=off", "--no-learn")
        assert lib.wait_for(lambda: machine_now() != before, 60), one.finish(60)
        time.sleep(draw.uniform(0, 3))
        os.kill(one.pid, signal.SIGKILL)
        one.finish(20)
        assert lib.wait_for(lambda: not journals() and not listeners(), 60), (journals(), listeners())
        assert machine_now() == before
    return ""


def settings_of_the_suite() -> str:
    """They are applied, and restored."""
    before = machine_now()
    chosen = nic.suite(found({}), options("--only", "*.v6.mtu9000.*")).points
    with kept() as one:
        for point in chosen:
            one.set(point.a.settings)
            now = machine_now()
            assert now[:2] == ["9000", "9000"] and now[2] != before[2], point.name
            one.put_back()
            assert machine_now() == before, point.name
    return f"{len(chosen)} points"


def a_slot_by_way_of_a_namespace() -> str:
    return a_slot(found({}), 6)


def suite(report: lib.Report) -> None:
    report.each((set_and_put_back, what_does_nothing_is_said, mtu_off_the_link, refusals, one_that_does_not_take, channels_and_coalescing,
                 names_of_ethtool, two_at_a_time, interface_that_went, next_start, next_start_elsewhere,
                 two_gates_one_killed, one_of_several_fails, set_since_by_somebody, sysctls_that_last,
                 owner_that_lives, folder_of_another, variables, what_is_missing, by_ssh, names_of_the_suite,
                 what_an_interface_lacks, what_is_left_out_is_said))
    kills(report, 2)


def long(report: lib.Report) -> None:
    report.each((settings_of_the_suite, as_the_kernel_runs_it, a_gate_that_is_killed,
                 programs_killed_with_their_watchdogs, a_slot_by_way_of_a_namespace))
    kills(report, 40)
    report.case("sysctls come back", sysctls_come_back)


if __name__ == "__main__":
    enter()
    lib.main(long if lib.LONG else suite)
