"""The two ends as the kernel's selftests name them (tools/testing/selftests/drivers/net): an interface here,
and a far end in another namespace or behind ssh."""

import asyncio
import contextlib
import json
import os
import random
import shlex
import socket
import time
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence

from .. import fleet, machine, plan
from ..engines import Ssh
from . import bench, keeper
from .model import GateError

VARIABLES = ("NETIF", "LOCAL_V4", "LOCAL_V6", "REMOTE_V4", "REMOTE_V6", "REMOTE_TYPE", "REMOTE_ARGS")
CONFIG = "net.config"
PORTS = range(20000, 30000)     # of daemons at the far end: below those that kernels hand out
LAB = ("--mtu", "9000")         # of netlab up, where there is no interface
BEGIN_LIMIT = 30.0              # seconds until a daemon listens
PASS, FAIL, SKIP = 0, 1, 4      # what a program of theirs ends with


class Lacking(GateError):
    """This machine has not what the test takes: a test of theirs is then skipped."""


# --- variables ----------------------------------------------------------------------------

def variables(environ: "Mapping[str, str]", folders: Sequence[str]) -> "Dict[str, str]":
    """Those of the environment and of the first net.config of these folders, which goes before, as with the
    kernel's tests. Empty ones are none."""
    found = {name: environ.get(name, "") for name in VARIABLES}
    for folder in folders:
        path = os.path.join(folder, CONFIG)
        if os.path.exists(path):
            found.update(config(path))
            break
    return {name: value for name, value in found.items() if name in VARIABLES and value}


def config(path: str) -> "Dict[str, str]":
    """NAME=VALUE a line, as a shell reads it: quotes go, # begins a comment."""
    found = {}
    with open(path, encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            try:
                words = [word for word in shlex.split(line, comments=True) if word != "export"]
            except ValueError as fault:
                raise GateError(f"{path}:{number}: {fault}") from None
            if len(words) > 1 or words and "=" not in words[0]:
                raise GateError(f"{path}:{number}: not NAME=VALUE (a value with blanks stands in quotes)")
            if words:
                name, _, value = words[0].partition("=")
                found[name] = value
    return found


def check(known: "Mapping[str, str]") -> None:
    """That all is there, and of both ends."""
    pairs = [version for version in "46" if f"LOCAL_V{version}" in known or f"REMOTE_V{version}" in known]
    wanted = [f"{end}_V{version}" for version in pairs or "4" for end in ("LOCAL", "REMOTE")]
    missing = [name for name in (*wanted, "REMOTE_TYPE", "REMOTE_ARGS") if name not in known]
    if missing:
        raise GateError(f"NETIF={known['NETIF']} without {', '.join(missing)} (set them in the environment or in "
                        f"{CONFIG})")
    if known["REMOTE_TYPE"] not in ("netns", "ssh"):
        raise GateError(f"REMOTE_TYPE={known['REMOTE_TYPE']}: not a way to the far end (netns or ssh)")


# --- the far end's daemon -----------------------------------------------------------------

class SshDaemon:
    """A netserver at the other end of an ssh connection, and as long as that is there."""

    def __init__(self, prefix: Sequence[str], program: str, host: str, port: int) -> None:
        engine = Ssh("")
        engine.words = list(prefix[:-1])
        self._daemon = fleet.Command(fleet.Way(engine, prefix[-1], program).words([program, "-D", "-p", str(port)]))
        self._loop = fleet.loop()
        for fault in filter(None, self._loop.run(self._daemon.start())):
            raise fault
        self._daemon.write(b"\n")
        try:
            self._await(host, port)
        except BaseException:
            self.stop()
            raise

    def _await(self, host: str, port: int) -> None:
        end = time.monotonic() + BEGIN_LIMIT
        while True:
            with contextlib.suppress(OSError), socket.create_connection((host, port), 2.0):
                machine.pause(0.1)
                if self.alive():    # else it was another one's
                    return
            if not self.alive():
                raise machine.MachineError(f"netserver ended at once: {self._daemon.complaint() or 'it said nothing'}")
            if time.monotonic() > end:
                raise machine.MachineError(f"no connection to {host} port {port}, where netserver was started: "
                                           "does a firewall block it?")
            machine.pause(0.1)

    def alive(self) -> bool:
        self._loop.run(asyncio.sleep(0.001))
        return not self._daemon.ended()

    def stop(self) -> None:
        self._loop.run(self._daemon.end(), heed=False)


class FarEnd(machine.Place):
    """Commands run here, the daemon at the far end."""

    def __init__(self, ends: "Ends", netserver: str) -> None:
        self._ends, self._netserver = ends, netserver
        self._daemon: Any = None

    def ready(self, lab: "Optional[List[str]]", family: int, known: "Optional[Dict[str, Any]]" = None) -> None:
        ends = self._ends
        if self._daemon and self._daemon.alive():
            return
        port = ends.port or machine.LAB_PORT
        if ends.over_ssh:
            self._daemon = SshDaemon(ends.far or (), self._netserver, next(iter(ends.hosts.values())), port)
        else:
            self._daemon = machine.Daemon(ends.far or (), self._netserver, [], port)

    def leave(self) -> None:
        if self._daemon:
            self._daemon.stop()
        self._daemon = None


# --- the ends -----------------------------------------------------------------------------

@dataclass
class Ends(bench.Site):
    """What a suite for an interface has to know of them."""
    far_device: str = ""                    # whose addresses the far end's are

    @property
    def over_ssh(self) -> bool:
        return bool(self.far) and os.path.basename(self.far[0]) == "ssh"

    def ready(self) -> None:
        """Has everything up. Raises MachineError."""
        self.place.ready(self.lab, min(self.hosts))


def find(environ: "Mapping[str, str]", folders: Sequence[str], netperf: str, netlab: str,
         netserver: str = "", port: int = 0) -> Ends:
    """The ends that the environment or a net.config names; where they name no interface, a pair of
    namespaces of our own. Raises GateError."""
    known = variables(environ, folders)
    if "NETIF" not in known:
        if os.geteuid():
            raise Lacking("no NETIF, and two namespaces in its place need root")
        return of_lab(machine.LabPlace(netlab, netserver or machine.netserver_beside(netperf)), LAB)
    check(known)
    remote = {version: known[f"REMOTE_V{version}"] for version in (4, 6) if f"REMOTE_V{version}" in known}
    local = {version: known[f"LOCAL_V{version}"] for version in remote}
    args = shlex.split(known["REMOTE_ARGS"])
    far = ["ip", "netns", "exec", *args]
    if known["REMOTE_TYPE"] == "ssh":
        far = ["ssh", "-o", "LogLevel=ERROR", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", *args]
    far[0] = machine.find(far[0]) or far[0]
    ends = Ends(machine.Place(), remote, port or random.choice(PORTS), device=known["NETIF"], far=far)
    check_near(ends, local)
    try:
        ends.far_device = device_of(far, remote)
        ends.place = FarEnd(ends, far_netserver(ends, netperf, netserver))
    except GateError as fault:
        raise type(fault)(f"REMOTE_TYPE={known['REMOTE_TYPE']} REMOTE_ARGS={known['REMOTE_ARGS']}: {fault}") from None
    return ends


def of_lab(place: machine.LabPlace, words: Sequence[str]) -> Ends:
    site = bench.lab(place, list(words), dict(plan.LAB_ADDRESS))
    return Ends(**{**vars(site), "port": machine.LAB_PORT, "far_device": site.device})


def check_near(ends: Ends, local: "Dict[int, str]") -> None:
    """That the interface is up, has these addresses, and that packets to the far end go by it."""
    there = keeper.interface(ends.near, ends.device)
    if "UP" not in there.get("flags", ()):
        raise GateError(f"NETIF={ends.device} is not up (ip link set dev {ends.device} up)")
    if not keeper.carries(there):
        raise GateError(f"NETIF={ends.device} has no link: its state is {there.get('operstate')} (is the far end up?)")
    own = [one.get("local") for one in there.get("addr_info", ())]
    for version, address in local.items():
        if address not in own:
            raise GateError(f"LOCAL_V{version}={address} is not an address of {ends.device} (it has "
                            f"{', '.join(map(str, own)) or 'none'})")
        to = ends.hosts[version]
        by = device_towards(ends.near, to)
        if by != ends.device:
            raise GateError(f"packets to REMOTE_V{version}={to} leave by {by}, not by NETIF={ends.device} (routes "
                            "or a namespace of its own for the far end corrects it)")


def device_towards(prefix: Sequence[str], address: str) -> str:
    """The interface that packets to an address leave by."""
    return str(json.loads(keeper.call(prefix, ["ip", "-j", "route", "get", address]) or "[{}]")[0].get("dev", ""))


def device_of(prefix: Sequence[str], addresses: "Mapping[int, str]") -> str:
    """The interface that has these addresses."""
    found = set()
    for address in addresses.values():
        rows = json.loads(keeper.call(prefix, ["ip", "-j", "addr", "show", "to", address]) or "[]")
        names = {row["ifname"] for row in rows if row.get("ifname")}
        if not names:
            raise GateError(f"no interface there has the address {address}")
        found |= names
    if len(found) > 1:
        raise GateError(f"its addresses are of several interfaces: {', '.join(sorted(found))}")
    return found.pop()


def far_netserver(ends: Ends, netperf: str, netserver: str) -> str:
    if not ends.over_ssh:
        return netserver or machine.netserver_beside(netperf)
    program = netserver or "netserver"
    try:
        keeper.call(ends.far or (), ["sh", "-c", f"command -v {shlex.quote(program)}"])
    except GateError:
        raise Lacking(f"no {program} there (install it, or name it by --netserver)") from None
    return program


def ksft_status(status: int) -> int:
    """netgate's exit status as the kernel's test framework counts it."""
    return {0: PASS, 77: SKIP}.get(status, FAIL)
