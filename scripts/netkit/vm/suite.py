"""The guest tests: tests/vm/NAME.sh and NAME.py. Lines "# netvm: KEY WORDS" in them say what they need."""

import glob
import os
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

from netkit import UsageError
from netkit.vm import VmError, modules
from netkit.vm.guest import Guest
from netkit.vm.image import TREE, Image

REAL = "opt/netperf-2.7.0"
SKIPPED = 77
SAID_MOST = 16 << 20     # bytes of a test's output that are kept
LIMIT = 600.0       # s; default limit of a test, many times what it takes on an idle machine
SHELLS = {".sh": "/usr/bin/sh", ".py": "/usr/bin/python3"}


@dataclass
class Test:
    name: str
    path: str
    modules: "List[str]" = field(default_factory=list)
    files: "List[str]" = field(default_factory=list)    # from the build
    real: bool = False                                  # needs the real netperf
    limit: float = LIMIT
    counted: bool = False                               # needs a clock that counts instructions

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
            elif (key, words.strip()) == ("clock", "counted"):
                self.counted = True
            elif key == "limit" and re.fullmatch("[0-9]+ *", words):
                self.limit = float(words)
            else:
                raise VmError(f"{self.path}: netvm: {key} {words}: not known (modules, with, real netperf, "
                              "clock counted, limit)")

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
    """The directory of Debian's netperf; empty if it can't be fetched, which the tests then report."""
    place = os.environ.get("NP_REAL_NETPERF_DIR") or os.path.join(modules.cache(), "netperf-2.7.0")
    done = subprocess.run([os.path.join(scripts, "fetch"), "netperf", place], stdin=subprocess.DEVNULL)
    return place if done.returncode == 0 else ""


def fill(image: Image, tests: "List[Test]", top: str, folder: str) -> None:
    """Add the files that these tests need to a guest. Those next to a directory of tests take precedence."""
    beside = os.path.join(folder, "..", "..") if folder else top
    for part in ("tests/e2e", "tests/golden"):
        has = os.path.isdir(os.path.join(beside, part))
        image.add(f"{TREE}/{part}", os.path.join(beside if has else top, part))
    image.add(f"{TREE}/tests/vm", folder or os.path.join(top, "tests", "vm"))
    image.add(f"{TREE}/scripts/fetch", os.path.join(image.scripts, "fetch"))
    build = os.path.dirname(os.path.dirname(image.programs["src/netperf"]))
    for test in tests:
        image.modules += test.modules
        for name in test.files:
            path = os.path.join(build, name)
            if not os.path.isfile(path):
                raise VmError(f"guest test {test.name} wants {path}, which is not built: make {name}")
            image.add(f"{TREE}/{name}", path)
    real = real_netperf(image.scripts) if any(test.real for test in tests) else ""
    if real:
        image.add(f"{REAL}/usr/bin", os.path.realpath(os.path.join(real, "usr", "bin")))


class Runner:
    """Runs tests in several guests at a time, each with one kind of clock. A test's output is printed when it ends."""

    def __init__(self, tests: "List[Test]", boot: "Callable[[bool], Guest]") -> None:
        self.left = sorted(tests, key=lambda test: not test.counted)    # they take longest
        self.boot = boot    # boots a guest, given whether its clock counts instructions
        self.lock = threading.Lock()
        self.results: "List[str]" = []
        self.guests: "Set[Guest]" = set()
        self.failures: "Dict[str, str]" = {}    # output of failed tests

    def run(self, at_once: int) -> None:
        with ThreadPoolExecutor(at_once) as pool:
            working = [pool.submit(self.work) for _ in range(min(at_once, len(self.left)))]
            try:
                faults = [fault for fault in (one.result() for one in working) if fault]
            except BaseException:
                with self.lock:
                    self.left.clear()
                for guest in list(self.guests):
                    guest.kill()
                raise
        if faults:
            raise faults[0]
        if os.environ.get("NP_FAILURES"):   # for .ci/run
            for name, text in self.failures.items():
                with open(os.path.join(os.environ["NP_FAILURES"], name), "w", encoding="utf-8") as file:
                    file.write(text)

    def next(self, counted: "Optional[bool]" = None) -> "Optional[Test]":
        """The next test for a guest with that kind of clock."""
        with self.lock:
            for test in self.left:
                if counted in (None, test.counted):
                    self.left.remove(test)
                    return test
        return None

    def work(self) -> "Optional[VmError]":
        """Run tests until none is left. Returns the error if no guest can be started."""
        test = self.next()
        while test:
            guest = self.boot(test.counted)
            with self.lock:
                self.guests.add(guest)
            try:
                with guest:
                    seconds = guest.start()
                    self.say(f"netvm: kernel {guest.image.kernel.version}, started in {seconds:.1f} s\n")
                    while test:
                        self.one(guest, test)
                        test = self.next(guest.counted)
            except VmError as fault:    # continue with another guest, if one can be started
                if not guest.up:
                    with self.lock:
                        self.left.clear()
                    return fault
            finally:
                with self.lock:
                    self.guests.discard(guest)
            test = self.next()
        return None

    def one(self, guest: Guest, test: Test) -> None:
        start, said = time.monotonic(), bytearray()

        def keep(data: bytes) -> None:
            said.extend(data[:max(0, SAID_MOST - len(said))])

        try:
            result, why = judge(guest.run(test.job(), keep, keep, test.limit), test)
        except VmError as fault:
            result, why = "FAIL", str(fault)
            raise
        finally:
            text = said.decode("utf-8", "replace")
            self.results.append(result)
            if result == "FAIL":
                self.failures[test.name] = f"{text}{why}\n"
            self.say(f"== {test.name}\n{text}{'' if text.endswith(chr(10)) or not text else chr(10)}"
                     f"{result:<4} {test.name}{': ' if why else ''}{why} ({time.monotonic() - start:.1f} s)\n")

    def say(self, text: str) -> None:
        with self.lock:
            sys.stdout.write(text)
            sys.stdout.flush()

    def summary(self) -> str:
        return ", ".join(f"{self.results.count(key)} {word}" for key, word in (
            ("ok", "passed"), ("FAIL", "failed"), ("skip", "skipped")))


def judge(got: "Dict[str, Any]", test: Test) -> "Tuple[str, str]":
    """The verdict on a test from its job's result, and the reason."""
    if got.get("late"):
        return "FAIL", f"not done after {test.limit:g} s"
    if "error" in got:
        return "FAIL", str(got["error"])
    status = got["status"]
    return {0: "ok", SKIPPED: "skip"}.get(status, "FAIL"), "" if status in (0, SKIPPED) else f"exit status {status}"
