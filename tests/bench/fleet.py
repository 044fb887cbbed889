#!/usr/bin/env python3
"""What the controller of netmesh costs with many pairs at once: fleet.py [HOSTS...] as root, of network namespaces on a switch. Of the first
round of tests: seconds from its begin until the last command begins, and how far the begins are apart; of the whole run: seconds, peak
memory of the controller, and processes at most, here and at the hosts."""

import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))
import lib  # noqa: E402

HOSTS = (3, 8, 15)      # 6, 56 and 210 pairs


def bed(prefix: str, count: int) -> "list[str]":
    """ip's commands, a line each, that make the hosts."""
    made = [f"netns add {prefix}s", f"-n {prefix}s link add hub type bridge", f"-n {prefix}s link set hub up"]
    for number in range(1, count + 1):
        host = f"{prefix}h{number}"
        made += [f"netns add {host}", f"-n {host} link add v type veth peer name p{number} netns {prefix}s", f"-n {prefix}s link set p{number} master hub up",
                 f"-n {host} address add 10.97.0.{number}/24 dev v", f"-n {host} link set v up", f"-n {host} link set lo up"]
    return made


def children(pid: int) -> int:
    """And theirs."""
    found = subprocess.run(["ps", "-e", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout.split()
    parents = dict(zip(map(int, found[::2]), map(int, found[1::2])))
    below, count = {pid}, 0
    while len(below) > count:
        count = len(below)
        below |= {one for one, parent in parents.items() if parent in below}
    return count - 1


def measure(hosts: "list[str]", place: str) -> None:
    """Runs in its own process, so that its peak memory is that of the controller alone."""
    netmesh = lib.script("netmesh")
    from netkit import fleet
    rounds, most, over, plain = [], [0], threading.Event(), fleet.together

    async def together(commands, limit):
        since = time.monotonic()
        await plain(commands, limit)
        begins = [command.begun for command in commands if command.begun]
        if len(begins) == len(hosts) * (len(hosts) - 1):
            rounds.append((max(begins) - since, max(begins) - min(begins)))

    def look() -> None:
        while not over.wait(0.5):
            most[0] = max(most[0], children(os.getpid()))

    fleet.together = together
    looks = threading.Thread(target=look)
    looks.start()
    since = time.monotonic()
    got = lib.called(netmesh.main, str(Path(place, "p.toml")), "--inventory", "netns:" + ",".join(hosts), "--at-once", "--output", f"{place}/o",
                     "--netperf", lib.netperf(), "--netserver", lib.netserver())
    took = time.monotonic() - since
    over.set()
    looks.join()
    peak = next(int(line.split()[1]) / 1024 for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    if got.rc != 0 or not rounds:
        sys.exit(got.err + got.out)
    (last, apart), *_ = rounds
    print(f"{len(hosts) * (len(hosts) - 1):6} {last:12.2f} {apart:12.2f} {took:8.1f} {peak:8.0f} {most[0]:10}", flush=True)


def main(counts: "list[int]") -> None:
    print(" pairs  last begins   apart (s)  run (s)  MiB here  processes", flush=True)
    for count in counts:
        prefix = f"fl{os.getpid()}"
        with tempfile.TemporaryDirectory() as place:
            # So few transactions that it is not these that the processors are busy with.
            Path(place, "p.toml").write_text("[constants]\nlength = 5\ntest = 'UDP_RR'\noptions = '-b 1 -w 50ms'\n")
            lines = bed(prefix, count)
            try:
                for line in lines:
                    lib.must(["ip", *line.split()])
                subprocess.run([sys.executable, __file__, place, *(f"{prefix}h{number}=10.97.0.{number}" for number in range(1, count + 1))], check=True)
            finally:
                for line in lines:
                    if line.startswith("netns add"):
                        subprocess.run(["ip", "netns", "del", line.split()[2]], check=False)


if __name__ == "__main__":
    if len(sys.argv) > 1 and not sys.argv[1].isdigit():
        measure(sys.argv[2:], sys.argv[1])
    else:
        main([int(word) for word in sys.argv[1:]] or list(HOSTS))
