"""iperf3: rates of UDP and TCP over loopback, as its server received them."""

import json
import shutil
from typing import Dict, List, Sequence, Tuple

import common
import lib

MOST_FLOWS = 128    # of its -P; before version 3.16 all of them have one thread


def bound(cpu: int) -> "List[str]":
    return ["taskset", "-c", str(cpu)]


def is_there() -> bool:
    return shutil.which("iperf3") is not None


def has_gso() -> bool:
    """Whether it knows UDP's segment offloads, which came long after its -Z."""
    got = lib.run([common.needs("iperf3"), "--help"], 10)
    return "gso" in (got.out + got.err + lib.run(["iperf3", "--version"], 10).out).lower()


def version() -> str:
    if not is_there():
        return "iperf3: not installed"
    told = (lib.run(["iperf3", "--version"], 10).out.split() or ["", "?"])[1]
    return f"iperf3 {told}, {'with' if has_gso() else 'without'} UDP GSO"


def _measured(options: "Sequence[str]", seconds: int, cpus: "Tuple[int, int]") -> "Dict[str, Dict[str, float]]":
    port = str(lib.free_port())
    with lib.Started([*bound(cpus[1]), common.needs("iperf3"), "-s", "-1", "-p", port]) as server:
        if not lib.wait_for(lambda: lib.listening(int(port)) or not server.running(), 10):
            raise common.Failed(f"iperf3 does not listen: {server.said()}")
        got = common.run([*bound(cpus[0]), "iperf3", "-c", common.HOST, "-p", port, *options, "-t", str(seconds), "-J"],
                         seconds + 15)
        server.finish(10)
    return dict(json.loads(got.out)["end"])


def udp(size: int, seconds: int, cpus: "Tuple[int, int]") -> float:
    """10^6 bits/s."""
    told = _measured(("-u", "-b", "0", "-l", str(size)), seconds, cpus)["sum"]
    return (told["packets"] - told["lost_packets"]) * size * 8e-6 / told["seconds"]


def tcp(size: int, flows: int, seconds: int, cpus: "Tuple[int, int]") -> float:
    """10^6 bits/s."""
    return _measured(("-l", str(size), "-P", str(flows)), seconds, cpus)["sum_received"]["bits_per_second"] / 1e6
