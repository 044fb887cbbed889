"""The guest tests: tests/vm/NAME.sh and NAME.py, each with lines "# netvm: KEY WORDS" about what it needs."""

import glob
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import Any, Dict, List

from netkit.vm import UsageError, VmError
from netkit.vm.guest import Guest
from netkit.vm.image import TREE, Image

REAL = "opt/netperf-2.7.0"
SKIPPED = 77
LIMIT = 90.0        # s of a test that says none
SHELLS = {".sh": "/usr/bin/sh", ".py": "/usr/bin/python3"}


@dataclass
class Test:
    name: str
    path: str
    modules: "List[str]" = field(default_factory=list)
    files: "List[str]" = field(default_factory=list)    # of the build
    real: bool = False                                  # the real netperf is wanted
    limit: float = LIMIT

    def __post_init__(self) -> None:
        with open(self.path, encoding="utf-8") as file:
            lines = re.findall(r"^# netvm: *(\S+) *(.*)$", file.read(), re.M)
        for key, words in lines:
            if key == "modules":
                self.modules += words.split()
            elif key == "with":
                self.files += words.split()
            elif (key, words.strip()) == ("real", "netperf"):
                self.real = True
            elif key == "limit" and re.fullmatch("[0-9]+ *", words):
                self.limit = float(words)
            else:
                raise VmError(f"{self.path}: netvm: {key} {words}: not known (modules, with, real netperf, limit)")

    def job(self) -> "Dict[str, Any]":
        tree, name = "/" + TREE, os.path.basename(self.path)
        return {"command": [SHELLS[os.path.splitext(name)[1]], f"{tree}/tests/vm/{name}"], "modules": self.modules,
                "cwd": tree, "env": {
                    "NETPERF": f"{tree}/src/netperf", "NETSERVER": f"{tree}/src/netserver", "top_srcdir": tree,
                    "top_builddir": tree, "NP_REAL_NETPERF_DIR": "/" + REAL, "PYTHONPATH": f"{tree}/tests/e2e",
                    "NETVM": "1"}}


def find(folder: str, names: "List[str]") -> "List[Test]":
    paths = {os.path.splitext(os.path.basename(path))[0]: path for end in SHELLS
             for path in glob.glob(os.path.join(folder, "*" + end)) if os.path.basename(path) != "lib.sh"}
    if not paths:
        raise VmError(f"no guest tests in {os.path.normpath(folder)}: they are in the source tree, not installed")
    for name in names:
        if name not in paths:
            raise UsageError(f"test {name}: no such guest test ({', '.join(sorted(paths))})")
    return [Test(name, paths[name]) for name in (names or sorted(paths))]


def real_netperf(scripts: str) -> str:
    """The folder with Debian's netperf; empty when it cannot be had, which the tests then say."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    place = os.environ.get("NP_REAL_NETPERF_DIR") or os.path.join(cache, "plumbline", "netperf-2.7.0")
    done = subprocess.run([os.path.join(scripts, "fetch-netperf"), place], stdin=subprocess.DEVNULL)
    return place if done.returncode == 0 else ""


def fill(image: Image, tests: "List[Test]", top: str) -> None:
    """Puts into a guest what these tests need."""
    for part in ("tests/e2e", "tests/vm", "tests/golden"):
        image.add(f"{TREE}/{part}", os.path.join(top, part))
    image.add(f"{TREE}/scripts/fetch-netperf", os.path.join(top, "scripts", "fetch-netperf"))
    for test in tests:
        image.modules += test.modules
        for name in test.files:
            path = os.path.join(image.build, name)
            if not os.path.isfile(path):
                raise VmError(f"guest test {test.name} wants {path}, which is not built: make {name}")
            image.add(f"{TREE}/{name}", path)
    real = real_netperf(image.scripts) if any(test.real for test in tests) else ""
    if real:
        image.add(f"{REAL}/usr/bin", os.path.realpath(os.path.join(real, "usr", "bin")))


def run_one(guest: Guest, test: Test) -> str:
    """Runs a test and prints what it says; its result."""
    start = time.monotonic()
    print(f"== {test.name}", flush=True)
    write = sys.stdout.buffer.write
    got = guest.run(test.job(), write, write, test.limit)
    if got.get("late"):
        result, why = "FAIL", f": not done after {test.limit:g} s"
    elif "error" in got:
        result, why = "FAIL", f": {got['error']}"
    else:
        status = got["status"]
        result = "ok" if status == 0 else "skip" if status == SKIPPED else "FAIL"
        why = f": exit status {status}" if result == "FAIL" else ""
    print(f"{result:<4} {test.name}{why} ({time.monotonic() - start:.1f} s)", flush=True)
    return result


def summary(results: "List[str]") -> str:
    return ", ".join(f"{results.count(key)} {word}" for key, word in (
        ("ok", "passed"), ("FAIL", "failed"), ("skip", "skipped")))
