"""google/neper's tcp_rr and tcp_stream as programs: one thread at each end, any number of flows.

NEPER names the directory where they have been built. Each end is bound to a processor as netperf's -T
does it. tcp_rr moves requests and responses of one byte unless it is told otherwise, as TCP_RR does; the
size of a stream's calls is given to both. Loopback only.
"""

import os
import re
from typing import Dict, List, NamedTuple, Tuple

import lib

PROGRAMS = {"TCP_RR": "tcp_rr", "TCP_STREAM": "tcp_stream"}
# Transactions/s as the client counted them; bits/s as the daemon received them.
RATES = {"TCP_RR": re.compile(r"^local_throughput=(\d+)$", re.M),
         "TCP_STREAM": re.compile(r"^remote_throughput=(\d+)$", re.M)}
SCALE: "Dict[str, float]" = {"TCP_RR": 1.0, "TCP_STREAM": 1e6}


class Unusable(Exception):
    """It did not run, or told no rate; the text says what."""


class Flows(NamedTuple):
    """What one run has: a test, so many flows, and bytes of a stream's call (0: none is given)."""
    test: str
    flows: int
    size: int = 0


def why_not(place: str) -> str:
    """Why the programs can't be had; empty where they can."""
    if not place:
        return "NEPER names no directory of google/neper, built"
    missing = [name for name in PROGRAMS.values() if not os.access(os.path.join(place, name), os.X_OK)]
    return f"no {' and no '.join(missing)} in {place}: build google/neper there" if missing else ""


def _command(place: str, what: Flows, seconds: int, ports: Tuple[int, int], cpu: int) -> List[str]:
    size = ["-B", str(what.size)] if what.size else []
    return ["taskset", "-c", str(cpu), os.path.join(place, PROGRAMS[what.test]), "-T", "1",
            "-F", str(what.flows), "-l", str(seconds), "-C", str(ports[0]), "-P", str(ports[1]), *size]


def rate(place: str, what: Flows, seconds: int, cpus: Tuple[int, int]) -> float:
    """Transactions/s or 10^6 bits/s of one run; cpus are the client's and the server's."""
    ports = (lib.free_port(), lib.free_port())
    with lib.Started(_command(place, what, seconds, ports, cpus[1])) as server:
        if not lib.wait_for(lambda: lib.listening(ports[0]) or not server.running(), 20):
            raise Unusable(f"{PROGRAMS[what.test]} does not listen: {server.said().strip()}")
        cmd = [*_command(place, what, seconds, ports, cpus[0]), "-c", "-H", "127.0.0.1"]
        got = lib.run(cmd, seconds + 15)
        server.finish(15)
    found = RATES[what.test].search(got.out)
    if got.rc != 0 or not found or int(found[1]) == 0:
        raise Unusable(f"{' '.join(cmd)}: exit status {got.rc}, {'a' if found else 'no'} rate: {got.err.strip()}")
    return int(found[1]) / SCALE[what.test]
