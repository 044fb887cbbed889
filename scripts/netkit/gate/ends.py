"""The two ends as in Linux's tools/testing/selftests/drivers/net: an interface, and a namespace or ssh host."""

import json
import os
import random
import shlex
from dataclasses import dataclass
from typing import Dict, List, Mapping, Sequence, Tuple

from .. import far, fleet, machine, plan
from ..engines import Ssh
from . import bench, keeper
from .model import GateError, Lacking

VARIABLES = ("NETIF", "LOCAL_V4", "LOCAL_V6", "REMOTE_V4", "REMOTE_V6", "REMOTE_TYPE", "REMOTE_ARGS")
CONFIG = "net.config"
PORTS = range(20000, 30000)     # of daemons at the far end: below the kernel's ephemeral ports
LAB = ("--mtu", "9000")         # of netlab up, if no interface is named


def variables(environ: "Mapping[str, str]", folders: Sequence[str]) -> "Dict[str, str]":
    """Variables of the first net.config in these directories, else of the environment. Empty ones are ignored."""
    path = next(filter(os.path.exists, (os.path.join(folder, CONFIG) for folder in folders)), "")
    found = {**environ, **(config(path) if path else {})}
    return {name: found[name] for name in VARIABLES if found.get(name)}


def config(path: str) -> "Dict[str, str]":
    """Read lines NAME=VALUE like a shell: quotes are removed, # begins a comment."""
    found = {}
    with open(path, encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            try:
                words = [word for word in shlex.split(line, comments=True) if word != "export"]
            except ValueError as fault:
                raise GateError(f"{path}:{number}: {fault}") from None
            if len(words) > 1 or words and "=" not in words[0]:
                raise GateError(f"{path}:{number}: not NAME=VALUE (quote a value with blanks)")
            if words:
                name, _, value = words[0].partition("=")
                found[name] = value
    return found


def check(known: "Mapping[str, str]") -> None:
    """Check that the variables are complete for both ends."""
    pairs = [version for version in "46" if f"LOCAL_V{version}" in known or f"REMOTE_V{version}" in known]
    wanted = [f"{end}_V{version}" for version in pairs or "4" for end in ("LOCAL", "REMOTE")]
    missing = [name for name in (*wanted, "REMOTE_TYPE", "REMOTE_ARGS") if name not in known]
    if missing:
        raise GateError(f"NETIF={known['NETIF']} without {', '.join(missing)} (set them in the environment or in "
                        f"{CONFIG})")
    if known["REMOTE_TYPE"] not in ("netns", "ssh"):
        raise GateError(f"REMOTE_TYPE={known['REMOTE_TYPE']}: not a way to reach the far end (try netns or ssh)")


class FarEnd(far.Ends):
    """A netserver at the far end, in a namespace or behind ssh, and commands that run here."""

    def __init__(self, ends: "Ends", netperf: str, netserver: str) -> None:
        words = list(ends.far or ())
        kind = "ssh" if ends.over_ssh else "netns"
        super().__init__(netperf, netserver, keyed=False, known={
            "server": f"{kind}:{words[-1]}", "host": next(iter(ends.hosts.values())), "port": ends.port or machine.LAB_PORT})
        if ends.over_ssh:
            self._engines[kind] = ssh = Ssh()
            ssh.words = words[:-1]

    def _way(self, end: str, which: str) -> "Tuple[fleet.Way, List[str]]":
        """The program there is called what --netserver says."""
        way, key = super()._way(end, which)
        return way._replace(program=self._programs[which]), key


@dataclass
class Ends(bench.Site):
    far_device: str = ""                    # the interface with the far end's addresses

    @property
    def over_ssh(self) -> bool:
        return bool(self.far) and os.path.basename(self.far[0]) == "ssh"


def find(environ: "Mapping[str, str]", folders: Sequence[str], netperf: str, netlab: str,
         netserver: str = "", port: int = 0) -> Ends:
    """The ends of the environment or net.config; without an interface, our own namespaces. Raises GateError."""
    known = variables(environ, folders)
    if "NETIF" not in known:
        if os.geteuid():
            raise Lacking("no NETIF, and two namespaces in its place need root")
        return of_lab(machine.LabPlace(netlab, netserver or machine.netserver_beside(netperf)), LAB)
    check(known)
    remote = {version: known[f"REMOTE_V{version}"] for version in (4, 6) if f"REMOTE_V{version}" in known}
    local = {version: known[f"LOCAL_V{version}"] for version in remote}
    args = shlex.split(known["REMOTE_ARGS"])
    way = ["ip", "netns", "exec", *args]
    if known["REMOTE_TYPE"] == "ssh":
        way = ["ssh", "-o", "LogLevel=ERROR", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", *args]
    way[0] = machine.find(way[0]) or way[0]
    ends = Ends(machine.Place(), remote, port or random.choice(PORTS), device=known["NETIF"], far=way)
    check_near(ends, local)
    try:
        ends.far_device = device_of(way, remote)
        ends.place = FarEnd(ends, netperf, far_netserver(ends, netperf, netserver))
    except GateError as fault:
        raise type(fault)(f"REMOTE_TYPE={known['REMOTE_TYPE']} REMOTE_ARGS={known['REMOTE_ARGS']}: {fault}") from None
    return ends


def of_lab(place: machine.LabPlace, words: Sequence[str]) -> Ends:
    return Ends(place, dict(plan.LAB_ADDRESS), machine.LAB_PORT, list(words), "lab0", place.far, far_device="lab0")


def check_near(ends: Ends, local: "Dict[int, str]") -> None:
    """Check that the interface is up, has these addresses, and carries the packets to the far end."""
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
    return str(json.loads(keeper.call(prefix, ["ip", "-j", "route", "get", address]) or "[{}]")[0].get("dev", ""))


def device_of(prefix: Sequence[str], addresses: "Mapping[int, str]") -> str:
    found = set()
    for address in addresses.values():
        rows = json.loads(keeper.call(prefix, ["ip", "-j", "addr", "show", "to", address]) or "[]")
        names = {row["ifname"] for row in rows if row.get("ifname")}
        if not names:
            raise GateError(f"no interface there has the address {address}")
        found |= names
    if len(found) > 1:
        raise GateError(f"its addresses belong to several interfaces: {', '.join(sorted(found))}")
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
