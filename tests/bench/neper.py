"""google/neper's programs: any number of flows and threads, the same at both ends.

NEPER names the directory where they have been built. With one thread each end is bound to a processor as
netperf's -T does it. Requests and responses are of one byte, as netperf's are; the size of a stream's calls
is given to both. tcp_crr closes its connections as netperf does (--time-wait), rather than by a reset.
Loopback only, as root that of a network namespace of its own: its closed connections (TIME_WAIT) would occupy ports
that ours then have to skip.
"""

import atexit
import os
import re
import socket
from functools import lru_cache
from typing import Dict, List, NamedTuple, Optional, Tuple

import common
import lib

PROGRAMS = {"TCP_RR": "tcp_rr", "TCP_STREAM": "tcp_stream", "TCP_CRR": "tcp_crr", "UDP_RR": "udp_rr"}
OPTIONS = {"TCP_CRR": ("--time-wait",)}
# Transactions/s as the client counted them; bits/s as the daemon received them.
RATES = {test: re.compile(rf"^{'remote' if test == 'TCP_STREAM' else 'local'}_throughput=(\d+)$", re.M)
         for test in PROGRAMS}
SCALE: "Dict[str, float]" = {"TCP_STREAM": 1e6}
LATENCY = {name: re.compile(rf"^latency_{name}=([0-9.]+)$", re.M) for name in ("p99", "mean")}


class Unusable(common.Failed):
    """It did not run, or told no rate; the text says what."""


class Flows(NamedTuple):
    """What one run has: a test, a number of flows and of threads, and bytes of a stream's call (0: none
    is given)."""
    test: str
    flows: int
    threads: int = 1
    size: int = 0


class Told(NamedTuple):
    """Transactions/s or 10^6 bits/s, and us where the test has transactions."""
    rate: float
    p99: Optional[float] = None
    mean: Optional[float] = None

    def at_work(self) -> Optional[float]:
        """How many flows had a transaction under way, by Little's law."""
        return self.rate * self.mean / 1e6 if self.mean is not None else None


def why_not(place: str, tests: "Tuple[str, ...]") -> str:
    """Why the programs can't be had; empty where they can."""
    if not place:
        return "NEPER names no directory of google/neper, built"
    missing = [PROGRAMS[test] for test in tests if not os.access(os.path.join(place, PROGRAMS[test]), os.X_OK)]
    return f"no {' and no '.join(missing)} in {place}: make {' '.join(missing)} there" if missing else ""


def _ports(what: Flows) -> Tuple[int, int]:
    """For control and data; over UDP every flow has a port, counted from the second one on."""
    for _ in range(100):
        ports = (lib.free_port(), lib.free_port())
        last = ports[1] + (what.flows if what.test == "UDP_RR" else 1)
        if not ports[1] <= ports[0] < last and all(map(_free, range(ports[1], last))):
            return ports
    raise Unusable(f"{PROGRAMS[what.test]}: no {what.flows} free ports in a row")


def _free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.bind(("", port))
        except OSError:
            return False
    return True


def _command(place: str, what: Flows, seconds: int, ports: Tuple[int, int],
             cpu: Optional[int]) -> List[str]:
    size = ["-B", str(what.size)] if what.size else []
    told = ["-p", "99"] if what.test != "TCP_STREAM" else []
    bound = ["taskset", "-c", str(cpu)] if cpu is not None else []
    return [*bound, os.path.join(place, PROGRAMS[what.test]), "-T", str(what.threads), "-F", str(what.flows),
            "-l", str(seconds), "-C", str(ports[0]), "-P", str(ports[1]), "--listen-backlog", "4096",
            *OPTIONS.get(what.test, ()), *size, *told]


@lru_cache(None)
def _namespace() -> "Tuple[str, ...]":
    """What runs a command there, until this program ends; nothing where it is not root."""
    if os.geteuid() != 0:
        return ()
    # Linux uses half of the ports first: after 14,000 connections its search for one takes long.
    holder = lib.Started(["unshare", "-n", "sh", "-c", "ip link set lo up; echo 1024 65535 > /proc/sys/net/ipv4/ip_local_port_range; "
                          "echo up; exec sleep infinity"])
    atexit.register(holder.__exit__)
    assert lib.wait_for(lambda: "up" in holder.said(), 20), holder.said()
    return ("nsenter", "-t", str(holder.pid), "-n")


def measure(place: str, what: Flows, seconds: int, cpus: "Optional[Tuple[int, int]]") -> Told:
    """One run; cpus are the client's and the server's, None where their threads may run anywhere."""
    ports = _ports(what)
    near, far = cpus or (None, None)
    there = _namespace()
    with lib.Started([*there, *_command(place, what, seconds, ports, far)]) as server:
        if not lib.wait_for(lambda: lib.listening(ports[0], server.pid) or not server.running(), 20):
            raise Unusable(f"{PROGRAMS[what.test]} does not listen: {server.said().strip()}")
        cmd = [*there, *_command(place, what, seconds, ports, near), "-c", "-H", "127.0.0.1"]
        got = lib.run(cmd, seconds + 15)
        server.finish(15)
    rate = RATES[what.test].search(got.out)
    if got.rc != 0 or not rate or int(rate[1]) == 0:
        raise Unusable(f"{' '.join(cmd)}: exit status {got.rc}, {'a' if rate else 'no'} rate: {got.err.strip()}")
    late = {name: found.search(got.out) for name, found in LATENCY.items()}
    return Told(int(rate[1]) / SCALE.get(what.test, 1.0),
                **{name: float(found[1]) * 1e6 for name, found in late.items() if found})
