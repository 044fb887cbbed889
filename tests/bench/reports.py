#!/usr/bin/env python3
"""What netreport costs with many runs: reports.py [RUNS]. Of a sweep of 100,000 runs (93 MB): seconds and peak memory of its tables,
of --html, and of --compare with another such file."""

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

NETREPORT = str(Path(__file__).resolve().parents[2] / "scripts" / "netreport")
AXES = [("size", [64, 576, 1448, 9000]), ("test", ["TCP_STREAM", "UDP_STREAM", "TCP_RR", "UDP_RR", "TCP_CRR"])]


def write(path: str, runs: int, seed: int) -> None:
    """As netsweep does, with what netperf printed."""
    dice = random.Random(seed)
    points = [{"size": size, "test": test} for size in AXES[0][1] for test in AXES[1][1]]
    with open(path, "w", encoding="ascii") as file:
        print(json.dumps({"schema": "plumbline-sweep/1", "plan": "many", "title": "many", "axes": [
            {"name": name, "values": values} for name, values in AXES], "repetitions": runs // len(points)}), file=file)
        for number in range(runs):
            point = points[number % len(points)]
            rate, is_stream = dice.gauss(900, 20), point["test"].endswith("STREAM")
            print(json.dumps({
                "schema": "plumbline-run/1", "point": point, "repetition": number // len(points) + 1, "number": number + 1,
                "started": f"2026-11-28T00:00:00.{number:06}Z", "seconds": 1.0, "command": [
                    "netperf", "-H", "10.77.0.2", "-t", point["test"], "-l", "1", "--", "-m", str(point["size"]), "-k", "all"],
                "before": [], "status": "ok", "exit": 0, "stdout": 20 * f"THROUGHPUT={rate:.2f}\n", "stderr": "", "result": {
                    "THROUGHPUT": rate, "THROUGHPUT_UNITS": "10^6bits/s" if is_stream else "Trans/s", "PROTOCOL": point["test"][:3],
                    "REMOTE_RECV_THROUGHPUT": rate, "ELAPSED_TIME": 1.0, "P99_LATENCY": dice.gauss(100, 5), "LOCAL_CPU_UTIL": 3.2,
                    "REMOTE_CPU_UTIL": 2.1}}), file=file)


def main(runs: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        a, b = (os.path.join(place, name) for name in ("a.jsonl", "b.jsonl"))
        for seed, path in enumerate((a, b)):
            write(path, runs, seed)
        print(f"{runs} runs, {os.path.getsize(a) / 1e6:.0f} MB     seconds  of a processor    MiB", flush=True)
        for name, words in (("tables", [a]), ("--html", [a, "--html", f"{place}/page.html"]), ("--compare", ["--compare", a, b])):
            since = time.monotonic()
            process = subprocess.Popen([sys.executable, NETREPORT, *words], stdout=subprocess.DEVNULL)
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            print(f"{name:24} {time.monotonic() - since:9.1f} {used.ru_utime + used.ru_stime:15.1f} {used.ru_maxrss / 1024:6.0f}", flush=True)
            if process.returncode:
                sys.exit(f"{name}: status {process.returncode}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
