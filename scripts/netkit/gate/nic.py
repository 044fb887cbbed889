"""The suite for an interface: compares A and B over IPv4 and IPv6, at several MTUs, with each offload toggled."""

import fnmatch
import itertools
import os
import shlex
import socket
import sys
from argparse import Namespace
from dataclasses import dataclass, field, replace
from typing import List, Sequence, Tuple

from .. import UsageError, files, machine, options, units
from . import ends as both, keeper
from .ends import Ends
from .model import Metric, Point, Side
from .points import side as side_of

MTUS = (1500, 9000)
LEAST_SECONDS = 15.0        # of a point: A/A slots, and enough pairs for a verdict if there is no noise
HEADERS = {version: size + options.UDP_HEADER for version, size in options.IP_HEADER.items()}


@dataclass(frozen=True)
class Test:
    """A test, the metric to compare, and the offloads that its traffic uses."""
    name: str
    metric: str = "THROUGHPUT"
    offloads: "Tuple[str, ...]" = ()


TESTS = (Test("TCP_STREAM", offloads=("tso", "gso", "tx")), Test("TCP_MAERTS", offloads=("gro", "lro", "rx")),
         Test("TCP_RR"), Test("TCP_CRR"), Test("UDP_STREAM", "REMOTE_RECV_THROUGHPUT", ("tx",)))


@dataclass
class Suite:
    points: "List[Point]" = field(default_factory=list)
    skipped: "List[Tuple[str, str]]" = field(default_factory=list)     # names, and what is missing


@dataclass(frozen=True)
class Way:
    """A setting that points may have: its part of their name, how it is made, and why it can't be."""
    name: str
    settings: "Tuple[Tuple[str, str], ...]" = ()
    lacking: str = ""
    changes: bool = True        # False: it is in effect already


def mtus(ends: Ends) -> "List[Tuple[int, Way]]":
    """1500, 9000 and the present MTU, set at both ends if commands can be run at both."""
    here = keeper.interface(ends.near, ends.device)
    there = keeper.interface(ends.far or (), ends.far_device) if ends.far is not None and ends.far_device else None
    present, ways = int(here["mtu"]), []
    for mtu in sorted({*MTUS, present}):
        settings = [(f"mtu {ends.device}", str(mtu))]
        lacking = ""
        for which, one in (("the interface", here), ("the far end's", there)):
            most = (one or {}).get("max_mtu") or 0
            if most and mtu > most:
                lacking = lacking or f"{which} takes an MTU of {most} at most"
        if there:
            settings.append((f"far mtu {ends.far_device}", str(mtu)))
        elif mtu > present:
            lacking = "no commands run at the far end, which has to take that MTU, too"
        ways.append((mtu, Way(f"mtu{mtu}", tuple(settings), lacking, mtu != present)))
    return ways


def offloads(ends: Ends, names: Sequence[str]) -> "List[Way]":
    """Each offload, toggled. The point without it has the present state."""
    known = keeper.features(ends.near, ends.device)
    ways = []
    for name in names:
        one = known.get(name)
        value = "off" if one and one.active else "on"
        lacking = "the interface has no such offload" if not one else "the driver has it fixed" if one.fixed else ""
        ways.append(Way(f"{name}_{value}", ((f"offload {ends.device} {name}", value),), lacking))
    return ways


def side(of: Side, test: Test, family: int, mtu: int, settings: "Sequence[Tuple[str, str]]") -> Side:
    """A user's side at a point. The suite's options precede the user's, which therefore prevail."""
    own = [name for name, _ in of.settings]
    size = ("-m", str(mtu - HEADERS[family])) if test.name == "UDP_STREAM" else ()     # one packet each
    return replace(of, globals=(f"-{family}", *of.globals), options=(*size, *of.options),
                   settings=(*(one for one in settings if one[0] not in own), *of.settings))


def suite(ends: Ends, args: Namespace) -> Suite:
    """The points that the user selected, and those the interface can't have. Raises UsageError or GateError."""
    for option, given in (("--test", args.test), ("--metric", args.metric), ("--host-a", args.host_a), ("--host-b", args.host_b)):
        if given:
            raise UsageError(f"nic has its own tests, metrics and ends: no {option} beside it")
    sides = [side_of(vars(args), letter) for letter in "ab"]
    if ends.device in ("", "lo"):
        raise UsageError("nic: no network interface (NETIF names one, or --lab or --host leads to one)")
    made, by_mtu = Suite(), mtus(ends)
    theirs = {setting for one in sides for setting, _ in one.settings}
    for test in TESTS:
        turned: "List[Way]" = [Way("", changes=False), *offloads(ends, test.offloads)]
        for family, (mtu, size), way in itertools.product((4, 6), by_mtu, turned):
            ways = (size, way)
            name = ".".join(filter(None, (test.name.lower(), f"v{family}", size.name, way.name)))
            if args.only and not any(fnmatch.fnmatchcase(name, pattern) for pattern in args.only):
                continue
            lacking = [] if family in ends.hosts else [f"no addresses of IPv{family}"]
            lacking += [one.lacking for one in ways if one.lacking]
            lacking += [f"A or B sets {setting}" for one in ways if one.changes for setting, _ in one.settings if setting in theirs]
            if lacking:
                made.skipped.append((name, lacking[0]))
                continue
            settings = [setting for one in ways for setting in one.settings]
            a, b = (side(one, test, family, mtu, settings) for one in sides)
            made.points.append(Point(name, test.name, a, b, (Metric(test.metric, args.margin),)))
    if not made.points:
        what = f"of {len(made.skipped)} each lacks something" if made.skipped else "--only matches none"
        raise UsageError(f"nic: no point is left: {what} (--list shows them)")
    return made


def listing(made: Suite) -> "List[str]":
    """For --list: a line for each point."""
    lines = []
    for point in made.points:
        settings = dict.fromkeys(f"{name}={value}" for side in (point.a, point.b) for name, value in side.settings)
        lines.append(f"{point.name:32} {', '.join(settings)}".rstrip())
    return lines + [f"{name:32} left out: {why}" for name, why in made.skipped]


def shares(made: Suite, budget: float) -> str:
    """A line that says how long each point is measured. Raises UsageError if that is too short."""
    count = len(made.points)
    each = budget / count
    if each < LEAST_SECONDS:
        raise UsageError(f"--budget {budget:g}: {count} points get {each:.3g} s each, and take {LEAST_SECONDS:g} s "
                        f"at least (--budget {count * LEAST_SECONDS:g}, or fewer points by --only)")
    return f"{count} point{'s' * (count != 1)}, {units.show_duration(each)} each" + (
        f"; {len(made.skipped)} left out" if made.skipped else "")


def ends_of(args: Namespace, netlab: str) -> Ends:
    """The ends that options, or else the environment, name. Sets the options that the rest of netgate reads."""
    if args.local:
        raise UsageError("nic: --local has no network interface (NETIF names one, or --lab or --host leads to one)")
    if args.server:
        raise UsageError("nic: REMOTE_TYPE and REMOTE_ARGS say how the far end is reached, not --server")
    if args.lab is not None:
        place = machine.LabPlace(netlab, args.netserver or machine.netserver_beside(args.netperf))
        return both.of_lab(place, options.words(args.lab, {}))
    if args.host:
        port = args.port or machine.LAB_PORT
        with files.raising(UsageError, f"--host {args.host}"):
            rows = socket.getaddrinfo(args.host, port, type=socket.SOCK_STREAM)
        remote = {6 if row[0] == socket.AF_INET6 else 4: str(row[4][0]) for row in reversed(rows)}
        device = both.device_towards([], next(iter(remote.values())))
        return Ends(machine.Place(), dict(sorted(remote.items())), port, device=device)     # no commands run there
    there = both.find(os.environ, [os.getcwd(), os.path.dirname(os.path.abspath(sys.argv[0]))], args.netperf,
                      netlab, args.netserver or "", args.port or 0)
    if there.lab is not None:
        args.lab = shlex.join(there.lab)
    else:
        args.host, args.port = next(iter(there.hosts.values())), there.port
    return there
