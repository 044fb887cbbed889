"""Runs the end-to-end suites of `make check`, several at a time, as they mostly wait for time limits. None depends on
an idle machine, and each can be run by itself.

NP_TEST_E2E, or arguments, name the suites to run instead; arguments may have arguments of their own after colons.
NP_TEST_AT_ONCE is how many run at a time; the output of a single suite is not buffered. NP_ONLY and NP_FAILURES: see
scripts/check. For suites of unittest, these name single tests as well:
"netsweep_test:Labs.test_mtu:Far.test_namespaces".
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import List, NamedTuple

# The long ones first. Those that take longer, or rarely break, are in `make check-more`.
SUITES = ("doc", "json_doc", "daemon", "golden", "faults", "evidence", "interop_more", "syslog", "silent",
          "wire_short", "fraction", "interim", "datagrams", "torture", "tree", "explain_flows", "exchanges", "programs",
          "version", "ceilings", "granted", "law_judge")
AT_ONCE = int(os.environ.get("NP_TEST_AT_ONCE", "6"))
FAILURES = os.environ.get("NP_FAILURES", "")
ENV = {key: value for key, value in os.environ.items() if key not in ("NP_FAILURES", "NP_ONLY")}    # for suites
SKIPPED = 77  # automake's status


class Done(NamedTuple):
    suite: str
    status: int
    seconds: float
    busy: float     # processor seconds of its children
    text: str


def run(suite: str) -> Done:
    """Run a suite, which limits the time of whatever it starts."""
    name, *args = suite.split(":")
    command = [sys.executable, str(Path(__file__).with_name(f"{name}.py")), *args]
    since = time.monotonic()
    shown = AT_ONCE == 1 and not FAILURES
    if shown:
        print(f"== {suite}", flush=True)
    with tempfile.TemporaryFile("w+", errors="replace") as log:
        child = subprocess.Popen(command, stdout=None if shown else log, stderr=subprocess.STDOUT, env=ENV)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        log.seek(0)
        return Done(suite, child.returncode, time.monotonic() - since, used.ru_utime + used.ru_stime, log.read())


def chosen() -> List[str]:
    named = [Path(name).name.replace(".py", "") for name in sys.argv[1:]]
    suites = named or os.environ.get("NP_TEST_E2E", "").split() or list(SUITES)
    only = os.environ.get("NP_ONLY", "").split()
    return [one for suite in suites for one in only or [suite] if one == suite or one.startswith(f"{suite}:")]


def failed_tests(done: Done) -> str:
    """The failed tests of a unittest suite, each after a colon; empty if something else failed as well."""
    failures = re.findall(r"^(?:ERROR|FAIL): (\w+)(?: \(__main__\.([\w.]+)\))?", done.text, re.M)
    tests = dict.fromkeys(place if place.endswith(f".{test}") else f"{place}.{test}" for test, place in failures)
    named = "".join(f":{test}" for test in tests)
    alone = done.status == 1 and ":-" not in done.suite and all(place and test.startswith("test") for test, place in failures)
    return named if alone and len(named) < 150 else ""      # it becomes part of a file name


def keep(done: Done) -> None:
    """Keep the output of a failed suite for .ci/run."""
    if FAILURES:
        name = done.suite.partition(":")[0] + tests if (tests := failed_tests(done)) else done.suite
        Path(FAILURES, name).write_text(f"{done.text}status {done.status}\n")


def main() -> int:
    failed = []
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for future in as_completed([pool.submit(run, suite) for suite in chosen()]):
            done = future.result()
            print(f"== {done.suite}, {done.seconds:.1f} s, {done.busy:.1f} s of a processor: status {done.status}\n"
                  f"{done.text}", flush=True)
            if done.status not in (0, SKIPPED):
                failed.append(done.suite)
                keep(done)
    if failed:
        print(f"failed: {' '.join(failed)}", flush=True)
    return 1 if failed else 0


sys.exit(main())
