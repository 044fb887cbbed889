"""Describes the ends of a sweep, by netperf's evidence (doc/evidence.md, host.*), else as known to this machine."""

import contextlib
import json
import os
import platform
import re
import socket
from typing import Any, Dict, List

from netkit import calls, files, machine, options
from netkit.plan import Plan
from netkit.units import show_value

LIMIT = 15.0        # seconds for an answer: a far end may be slow to refuse
Ends = Dict[str, Any]       # "client" and "server"; "hosts" by name if there are several

# Members of an end, by their names in the evidence.
IDENTITY = {"hostname": "name", "kernel": "kernel", "cpu": "cpu.model", "cpus": "cpu.count", "netperf": "program"}
INTERFACE = {"name": "nic.name", "driver": "nic.driver", "driver_version": "nic.driver_version",
             "firmware": "nic.firmware", "bus": "nic.bus", "mtu": "nic.mtu", "speed": "nic.speed_mbps"}
MOVING = ("load", "cpu.steal_share", "cpu.mhz", "nic.other_packets_per_s", "task.cpus")    # change by themselves: not settings


def of(evidence: Any) -> "Dict[str, Any]":
    """An end, from its evidence; empty if that has nothing."""
    host = {name[5:]: value for name, value in (evidence if isinstance(evidence, dict) else {}).items()
            if name.startswith("host.") and name[5:] not in MOVING}
    if not host:
        return {}
    host["kernel"] = f"{platform.system()} {host.get('kernel', '')}".strip()
    made, interface = ({name: host.pop(told) for name, told in names.items() if told in host}
                       for names in (IDENTITY, INTERFACE))
    return {**made, "interface": interface, "settings": host}


def told(ends: "List[calls.Ended]") -> Ends:
    """Both ends, from the documents of a run."""
    near = of(ends[0].last.get("near")) if ends else {}
    return {"client": near, "server": of(ends[0].last.get("far")) or None} if near else {}


def collect(plan: Plan, netperf: str, place: machine.Place) -> Ends:
    """Ask each far end with a test of one transaction. If one does not answer, its runs will report that."""
    points: "Dict[str, Dict[str, Any]]" = {}       # one for each host, from another host if possible
    clients: "set[Any]" = set()
    for point in plan.points():
        known = plan.known(point)
        host = "" if place.own else str(known["host"])
        if host not in points or points[host].get("client") in clients and known.get("client") not in clients:
            points[host] = point
            clients.add(known.get("client"))
    found = of_points(plan, list(points.values()), netperf, place) if machine.knows(netperf, "--json") else [{} for _ in points]
    hosts = {host: one or alone(netperf, str(plan.known(points[host])["host"]), place.own) for host, one in zip(points, found)}
    first = next(iter(hosts.values()))
    return first if len(hosts) == 1 else {"client": first["client"], "server": None, "hosts": hosts}


def of_points(plan: Plan, points: "List[Dict[str, Any]]", netperf: str, place: machine.Place) -> "List[Ends]":
    """Ask at several points, at the same time if possible."""
    asked: "Dict[int, calls.Call]" = {}
    knowns = [plan.known(point) for point in points]
    for number, (known, fault) in enumerate(zip(knowns, place.prepare(knowns))):
        with contextlib.suppress(machine.MachineError):
            if not fault:
                place.ready(plan.lab(points[number]), options.family(known), known)
                asked[number] = calls.at(place, question(netperf, known))
    ends = dict(zip(asked, calls.run_all(list(asked.values()), LIMIT, True)))
    return [told(ends[number]) if number in ends else {} for number in range(len(points))]


def question(netperf: str, known: "Dict[str, Any]") -> "List[str]":
    """The command of a test of one transaction; `known` says how to reach the far end."""
    plain = {name: known.get(name) for name in ("host", "port", "family", "options")}
    return options.command(netperf, {**known, **dict.fromkeys(options.BY_NAME), **plain, "test": "TCP_RR", "length": -1})


def ask(netperf: str, known: "Dict[str, Any]", place: machine.Place) -> Ends:
    return told([calls.run_one(place, question(netperf, known), LIMIT, True)])


def alone(netperf: str, host: str, own: bool) -> Ends:
    """The ends, if netperf writes no document."""
    found = {"hostname": socket.gethostname(), "kernel": f"{platform.system()} {platform.release()}",
             "cpu": cpu_model(), "cpus": len(os.sched_getaffinity(0)), "netperf": machine.version(netperf),
             "interface": {} if own else interface(host)}
    return {"client": found, "server": found if own else None}


def cpu_model() -> str:
    found = re.search(r"^(?:model name|Hardware|cpu model)\s*:\s*(.*)$", files.content("/proc/cpuinfo"), re.M)
    return found[1] if found else platform.processor() or platform.machine()


def interface(host: str) -> "Dict[str, Any]":
    """The interface of the route to a host, as far as iproute2 and sysfs know it."""
    found: "Dict[str, Any]" = {}
    with contextlib.suppress(machine.MachineError, ValueError, LookupError, OSError):
        address = socket.getaddrinfo(host.partition(",")[0], None)[0][4][0]
        route = machine.run([machine.find("ip") or "ip", "-j", "route", "get", address], limit=10).stdout
        found["name"] = json.loads(route)[0]["dev"]
        home = f"/sys/class/net/{found['name']}"
        for what in ("mtu", "speed"):
            with contextlib.suppress(ValueError):
                found.update({what: value} if (value := int(files.content(f"{home}/{what}"))) > 0 else {})
        found["driver"] = os.path.basename(os.readlink(f"{home}/device/driver"))
    return found


def base(environment: Ends, host: Any) -> Ends:
    """What a file says about the ends of a run to this host."""
    return (environment.get("hosts") or {}).get(str(host)) or environment


def changed(old: Any, now: "Dict[str, Any]") -> "Dict[str, Any]":
    made: "Dict[str, Any]" = {}
    for name, value in now.items():
        before = old.get(name) if isinstance(old, dict) else None
        if isinstance(value, dict):
            value = changed(before, value)
            made.update({name: value} if value else {})
        elif value not in (None, before):
            made[name] = value
    return made


def elsewhere(old: Ends, now: Ends) -> str:
    """How a machine differs from the one in a file; empty if it is the same."""
    pairs = [(f"to {host}: ", (old.get("hosts") or {}).get(host), one) for host, one in
             (now.get("hosts") or {}).items()] or [("", old, now)]
    for to, before, after in pairs:
        for end in ("client", "server"):
            one, other = ((ends or {}).get(end) or {} for ends in (before, after))
            alike = ("settings" in one) == ("settings" in other)    # both from evidence, or neither
            for name in (*IDENTITY, "interface.name", "interface.driver") if alike else ("hostname", "kernel"):
                part, _, inner = name.rpartition(".")
                values = [(found.get(part) or {} if part else found).get(inner) for found in (one, other)]
                if None not in values and values[0] != values[1]:
                    return (f"{to}{end}'s {name.replace('.', ' ')}: {show_value(values[0])} in the file, "
                            f"{show_value(values[1])} now")
    return ""
