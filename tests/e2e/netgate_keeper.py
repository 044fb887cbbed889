"""Settings that netgate sets for a slot are put back, whatever ends it; and what surrounds that: the
environment of the kernel's driver tests, the suite of points for an interface. In namespaces and with a
/run of its own. netgate_keeper_long.py kills more of them.
"""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Tuple
from unittest import mock

import lib

sys.dont_write_bytecode = True
sys.path.insert(0, str(lib.TOP / "scripts"))
from netkit.gate import keeper      # noqa: E402
from netkit.gate.model import GateError     # noqa: E402

MARK = "NP_TEST_GATE_PLACE"
FAR = "far"     # the namespace of the other end; the near one is this process's
INSIDE = ("ip", "netns", "exec", FAR)
# of both ends; what sets tx takes tso with it
SETTINGS = (("mtu v0", "1400"), ("far mtu v1", "1400"), ("offload v0 tx", "off"), ("offload v0 gso", "off"),
            ("far offload v1 gro", "on"), ("sysctl net.ipv4.tcp_rmem", "4096 8192 16384"))


def enter() -> None:
    """Runs this program again with a network and a /run of its own; skips where that can't be."""
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
    """Everything that the settings of this test touch."""
    links = [one[one.index("mtu"):].split()[1] for one in (
        said("ip", "link", "show", "dev", "v0"), said(*INSIDE, "ip", "link", "show", "dev", "v1"))]
    return [*links, said("ethtool", "-k", "v0"), said(*INSIDE, "ethtool", "-k", "v1"),
            said("sysctl", "-n", "net.ipv4.tcp_rmem")]


def journals() -> "List[Path]":
    return sorted(Path("/run/plumbline").glob("*")) if Path("/run/plumbline").is_dir() else []


def pending() -> bool:
    """Whether a journal has changes, or is about to go."""
    try:
        return any(len(one.read_text().splitlines()) > 1 for one in journals())
    except FileNotFoundError:
        return True


@contextlib.contextmanager
def kept() -> "Iterator[keeper.Keeper]":
    one = keeper.Keeper((), INSIDE)
    try:
        yield one
    finally:
        one.leave()


def refused(words: str, *settings: "Tuple[str, str]") -> str:
    """What is said to settings; it is to have these words."""
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
            there, = journals()
            assert there.stat().st_mode & 0o777 == 0o600 and there.parent.stat().st_mode & 0o077 == 0
            assert len(there.read_text().splitlines()) == 1 + len(SETTINGS), there.read_text()
            one.put_back()
            assert machine_now() == before
            assert len(there.read_text().splitlines()) == 1
        one.set([("mtu v0", "1500")])       # that it has
        assert len(there.read_text().splitlines()) == 1
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
                           (("channels v0 combined", "2"), "it has rx, tx"),
                           (("channels v0 rx", "99"), "channels v0 rx=99: ethtool: "),
                           (("sysctl net.nonesuch", "1"), "cannot stat"),
                           (("sysctl ../../etc/passwd", "1"), "cannot stat"),
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
        told = refused("mtu v0=1400: it did not take: it is 1500", ("mtu v0", "1400"))
    refused("Could not change", ("offload v0 tx", "off"), ("offload v0 tx-udp-segmentation", "off"),
            ("offload v0 tx-udp-segmentation", "on"))     # which needs the other one
    assert machine_now() == before and not journals()
    return told


def channels_and_coalescing() -> str:
    said("ip", "tuntap", "add", "t0", "mode", "tap")
    before = said("ethtool", "-c", "t0"), said("ethtool", "-l", "v0")
    with kept() as one:
        one.set([("coalesce t0 rx-frames", "4"), ("channels v0 rx", "2")])
        assert "rx-frames: 4" in said("ethtool", "-c", "t0")
    assert before == (said("ethtool", "-c", "t0"), said("ethtool", "-l", "v0"))
    said("ip", "link", "del", "t0")
    return ""


def names_of_ethtool() -> str:
    """Rings and the rest of coalescing need an interface that these machines lack: the texts do."""
    ring = ("Ring parameters for eth0:\nPre-set maximums:\nRX:\t\t4096\nTX:\t\t4096\nCurrent hardware "
            "settings:\nRX:\t\t256\nRX Mini:\tn/a\nTX:\t\t512\nRX Buf Len:\t\t2048\nTX Push:\toff\n")
    coalesce = ("Coalesce parameters for eth0:\nAdaptive RX: on  TX: n/a\nstats-block-usecs: 0\n\n"
                "rx-usecs: 8\nrx-frame-low: 3\ntx-frames: n/a\n\nCQE mode RX: off  TX: on\n")
    for kind, text, wanted in (
            ("ring", ring, {"rx": "256", "tx": "512", "rx-buf-len": "2048", "tx-push": "off"}),
            ("coalesce", coalesce, {"adaptive-rx": "on", "stats-block-usecs": "0", "rx-usecs": "8",
                                    "rx-frames-low": "3", "cqe-mode-rx": "off", "cqe-mode-tx": "on"})):
        with mock.patch.object(keeper, "call", return_value=text):
            got = keeper.parameters((), kind, "eth0")
        assert got == wanted, got
    return ""


def two_at_a_time() -> str:
    with kept() as one:
        one.set([("offload v0 tso", "off")])
        refused("wait until that one ends", ("offload v0 gro", "on"))
        with kept() as other:       # another thing
            other.set([("mtu v0", "1450")])
    return ""


def interface_that_went() -> str:
    """What is gone needs nothing put back; one of the same name is another one."""
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
    """A process that sets and puts back until it is killed, in its own group."""
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
        os._exit(3)     # it was to be killed


def dies_at(moment: int, with_watchdog: bool, one: keeper.Keeper) -> None:
    """Has a keeper's process kill itself, and maybe the watchdog, before a certain command or write."""
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
    """One death: between two steps, or at any time; with the watchdog, or both."""
    alone, by_time = number % 2 == 0, number % 4 > 1
    moment = draw.randint(1, 140)
    pid = victim((lambda one: None) if by_time else partial(dies_at, moment, alone))
    if by_time:
        time.sleep(draw.uniform(0.02, 1.0))
        os.kill(pid, signal.SIGKILL)
    assert os.waitpid(pid, 0)[1] == signal.SIGKILL, "the keeper ended by itself"
    if alone:       # without a change there need not have been a watchdog
        assert lib.wait_for(lambda: not pending(), 60)
    lines = keeper.recover()
    after = machine_now()
    assert after == before, f"{'time' if by_time else moment}: {before} became {after} ({lines})"
    assert not journals() and (not alone or not lines), (journals(), lines)
    return f"{len(lines)} put back by the next start"


def kills(report: lib.Report, deaths: int) -> None:
    seed = int(os.environ.get("NP_TEST_SEED", "0")) or random.randrange(1, 1 << 30)
    draw, before = random.Random(seed), machine_now()
    for number in range(deaths):
        report.case(f"kill -9, {number + 1} of {deaths}, seed {seed}", partial(killed, number, before, draw))


def journal_of(header: "Dict[str, object]", *changes: str, whole: bool = True) -> Path:
    """A journal as a dead owner left it."""
    dead = subprocess.run(["sh", "-c", "echo $$"], check=True, capture_output=True, text=True).stdout.strip()
    path = Path(keeper.folder()) / f"settings-{dead}-1-1.journal"
    text = "\n".join([keeper.json.dumps({"pid": int(dead), "start": 1, **header}), *changes])
    path.write_text(text + ("\n" if whole else ""))
    return path


def next_start() -> str:
    """What is put back and what is not, of journals that were left."""
    link = keeper.Setting("mtu", ("v0",))
    change = keeper.Change(link, link.where()["address"], "1500").line().strip()
    said("ip", "link", "set", "dev", "v0", "mtu", "1400")
    journal_of({"boot": "another"}, change)
    assert keeper.recover() == [] and not journals() and link.value(link.look()) == "1400", "of another boot"
    journal_of({"boot": keeper.boot_id()}, change[:-9], whole=False)
    assert keeper.recover() == [] and not journals() and link.value(link.look()) == "1400", "a piece of a line"
    journal_of({"boot": keeper.boot_id()}, change, change[:-9], whole=False)
    told, = keeper.recover()
    assert told.startswith("put back mtu v0 to 1500: netgate "), told
    assert not journals() and link.value(link.look()) == "1500"
    # one that cannot be put back is kept, and said
    broken = keeper.Change(keeper.Setting("mtu", ("v0",), ("/nonesuch/ssh", "host")), "x", "1500").line().strip()
    path = journal_of({"boot": keeper.boot_id()}, broken)
    told, = keeper.recover()
    assert "could not put back mtu v0 to 1500" in told and str(path) in told and journals() == [path], told
    path.unlink()
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


def suite(report: lib.Report) -> None:
    for body in (set_and_put_back, mtu_off_the_link, refusals, one_that_does_not_take, channels_and_coalescing,
                 names_of_ethtool, two_at_a_time, interface_that_went, next_start, owner_that_lives,
                 folder_of_another):
        report.case(body.__name__.replace("_", " "), body)
    kills(report, 2)


if __name__ == "__main__":
    enter()
    lib.main(suite)
