#!/usr/bin/env python3
"""What a gate finds: `gate_bed.py aa` runs gates of A against A in namespaces beside a processor hog that
comes and goes; `gate_bed.py planted` plants differences and tabulates how often, how soon and in how
many pairs each is found, beside what a test with a number of pairs fixed beforehand would take.

    gate_bed.py aa [--runs 100] [--budget 30] [--at-once 2]
    gate_bed.py planted [NAME...] [--runs 5] [--budget 60]

Takes root, and long: 100 gates of 30 s, two at once, are 25 minutes. Exit status 1 when A/A errs more
often than it may."""

import argparse
import json
import math
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import lib

NETLAB, NETGATE = str(lib.SCRIPTS / "netlab"), str(lib.SCRIPTS / "netgate")
LEAST_GOOD, MOST_WORSE, MOST_BETTER = 0.95, 0.02, 0.03     # of A/A gates
CANT_TELL = "can't tell"
SPIN = "import time\nend = time.monotonic() + {0}\nwhile time.monotonic() < end: pass"
# Busy for a share of each 10 ms, as work in the path of every send would be.
BUSY = ("import os, time\nos.sched_setaffinity(0, {{{cpu}}})\nend = time.monotonic() + {limit}\n"
        "while time.monotonic() < end:\n t = time.monotonic() + 0.01 * {share}\n"
        " while time.monotonic() < t: pass\n time.sleep(0.01 * (1 - {share}))")


class Lab:
    """A lab with a daemon in it, of a name of ours."""

    def __init__(self, name, *options):
        self.name = name
        lib_run(NETLAB, "up", "--name", name, *options)
        self.daemon = subprocess.Popen([NETLAB, "exec", "--name", name, "server", lib.netserver(), "-D"],
                                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL, start_new_session=True)
        time.sleep(0.5)

    def gate(self, *options):
        """Runs netgate in the client's namespace: its judgements, and the seconds it took."""
        with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
            since = time.monotonic()
            done = subprocess.run(
                [NETLAB, "exec", "--name", self.name, "client", sys.executable, NETGATE, "--host", "10.77.0.2",
                 "--netperf", lib.netperf(), "--progress", "never", "--format", "json", *options],
                stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.PIPE, text=True, timeout=900)
            file.seek(0)
            rows = [json.loads(line) for line in file.read().splitlines() if line.startswith(b"{")]
        found = [row for row in rows if row.get("schema") == "plumbline-verdict/1"]
        if not found:
            raise RuntimeError(f"netgate gave no verdict, status {done.returncode}: {done.stderr[-300:]}")
        return found, time.monotonic() - since

    def down(self):
        os.killpg(self.daemon.pid, signal.SIGTERM)
        self.daemon.wait(10)
        lib_run(NETLAB, "down", "--name", self.name)


def lib_run(*command):
    subprocess.run(command, check=True, timeout=60, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


# --- A against A ----------------------------------------------------------------------------

def hog(stop, seed):
    """Takes a processor for 0.2 to 4 s, then leaves it for as long."""
    rng = random.Random(seed)
    while not stop.wait(rng.uniform(0.2, 4)):
        subprocess.run([sys.executable, "-c", SPIN.format(rng.uniform(0.2, 4))], timeout=60, check=False)


def aa(args):
    stop, counts, lost = threading.Event(), Counter(), []
    hogs = [threading.Thread(target=hog, args=(stop, seed), daemon=True) for seed in range(1)]
    for one in hogs:
        one.start()

    def several(worker):
        lab = Lab(f"gbed{os.getpid() % 1000}{worker}", "--rate", args.rate)
        try:
            for number in range(worker, args.runs, args.at_once):
                try:
                    found, took = lab.gate("--test", args.test, "--aa", "--margin", "2", "--budget",
                                           str(args.budget), "--seed", str(number))
                except (RuntimeError, subprocess.TimeoutExpired) as fault:
                    lost.append(str(fault))
                    continue
                one = found[0]
                counts[one["verdict"]] += 1
                print(f"{number:3} {one['verdict']:10} {shown(one['change'])} ({shown(one['low'])} to "
                      f"{shown(one['high'])}) %, {one['pairs']} pairs, {one['left_out']} left out, noise "
                      f"{shown(one['noise'])} %, {took:.0f} s", flush=True)
        finally:
            lab.down()
    with ThreadPoolExecutor(args.at_once) as pool:
        list(pool.map(several, range(args.at_once)))
    stop.set()
    total = sum(counts.values())
    print(f"A/A, {total} gates: " + ", ".join(f"{verdict} {n}" for verdict, n in counts.most_common())
          + (f"; {len(lost)} without a verdict: {lost[0]}" if lost else ""))
    good = counts["equal"] + counts["can't tell"]
    return 0 if total and not lost and good >= LEAST_GOOD * total and counts["worse"] <= math.ceil(
        MOST_WORSE * total) and counts["better"] <= math.ceil(MOST_BETTER * total) else 1


def shown(value):
    return "-" if value is None else f"{value:+.2f}"


# --- differences that are planted -----------------------------------------------------------

def rate_hook(lab, rate):
    return f"{NETLAB} set --name {lab} --rate {rate} > /dev/null"


def busy_hook(share, cpu):
    code = BUSY.format(share=share, cpu=cpu, limit=30)
    return (f"{sys.executable} -c '{code}' > /dev/null 2>&1 & echo $! > /tmp/gate-bed-busy.pid",
            "kill $(cat /tmp/gate-bed-busy.pid) || true")


def plants(lab):
    """Name, whether the lab is slow, the options of the gate, and the verdict that is right."""
    full = rate_hook(lab, "100mbit")
    work, rest = busy_hook(0.02, 0)
    half, rest2 = busy_hook(0.2, 0)
    back = ["--after-b", full]
    return (
        ("nothing", True, ["--margin", "1", "--aa"], "equal"),
        ("tbf 3 % lower", True, ["--margin", "1", "--before-b", rate_hook(lab, "97mbit"), *back], "worse"),
        ("tbf 1 % lower", True, ["--margin", "0.5", "--before-b", rate_hook(lab, "99mbit"), *back], "worse"),
        ("tbf 1 % lower, margin 2 %", True, ["--margin", "2", "--before-b", rate_hook(lab, "99mbit"), *back],
         "equal"),
        ("MTU 1400, margin 0.2 %", True, ["--margin", "0.2", "--before-b", "ip link set lab0 mtu 1400",
                                          "--after-b", "ip link set lab0 mtu 1500"], "worse"),
        ("TSO off", False, ["--margin", "5", "--before-b", "ethtool -K lab0 tso off gso off", "--after-b",
                            "ethtool -K lab0 tso on gso on"], "worse"),
        ("2 % busy loop", False, ["--margin", "1", "--a", "-T 0,1", "--b", "-T 0,1", "--before-b", work,
                                  "--after-b", rest], "worse"),
        ("20 % busy loop", False, ["--margin", "5", "--a", "-T 0,1", "--b", "-T 0,1", "--before-b", half,
                                   "--after-b", rest2], "worse"),
    )


def fixed_pairs(noise, margin):
    """Pairs that two one-sided t tests at 2.5 % take to tell equal things to be equal 9 times in 10."""
    from scipy import stats
    sigma, edge = noise / 100, -math.log1p(-margin / 100)
    for n in range(2, 100000):
        bound = stats.t.ppf(0.975, n - 1) * sigma / math.sqrt(n)
        if bound < edge and stats.norm.cdf((edge - bound) / (sigma / math.sqrt(n))) > 0.95:
            return n
    return None


def planted(args):
    labs = {slow: Lab(f"gbed{os.getpid() % 1000}{'s' if slow else 'f'}", "--rate",
                      "100mbit" if slow else "none", "--congestion", "cubic") for slow in (True, False)}
    print(f"{'planted':26} right  worse equal better can't  pairs  fixed  seconds  noise %")
    try:
        for name, slow, options, right in ((n, s, o, r) for n, s, o, r in plants(labs[True].name)
                                           if not args.names or any(word in n for word in args.names)):
            lab, found, took = labs[slow], [], []
            for number in range(args.runs):
                one, seconds = lab.gate("--test", args.test, "--budget", str(args.budget), "--seed",
                                        str(number), *options)
                found.append(one[0])
                took.append(seconds)
            counts = Counter(one["verdict"] for one in found)
            noises = [one["noise"] for one in found if one["noise"]]
            fixed = fixed_pairs(statistics.median(noises), float(options[1])) if noises else None
            print(f"{name:26} {counts[right]:2} of {len(found):2}  {counts['worse']:3} {counts['equal']:5} "
                  f"{counts['better']:6} {counts[CANT_TELL]:5} "
                  f"{statistics.mean(one['pairs'] for one in found):6.1f} {fixed or '-':>6} "
                  f"{statistics.mean(took):8.1f} {statistics.median(noises) if noises else math.nan:8.2f}",
                  flush=True)
    finally:
        for lab in labs.values():
            lab.down()
    return 0


def main():
    top = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    top.add_argument("what", choices=("aa", "planted"))
    top.add_argument("names", nargs="*", help="of plants: a part is enough")
    top.add_argument("--runs", type=int)
    top.add_argument("--budget", type=int)
    top.add_argument("--at-once", type=int, default=2)
    top.add_argument("--rate", default="none")
    top.add_argument("--test", default="TCP_STREAM")
    args = top.parse_args()
    if os.geteuid() != 0:
        print("SKIP: only root makes namespaces")
        return 77
    if args.what == "aa":
        args.runs, args.budget = args.runs or 100, args.budget or 30
        return aa(args)
    sys.path.insert(0, str(lib.SCRIPTS))
    from netkit import python
    python.need("scipy", "python3-scipy")
    args.runs, args.budget = args.runs or 5, args.budget or 60
    return planted(args)


if __name__ == "__main__":
    sys.exit(main())
