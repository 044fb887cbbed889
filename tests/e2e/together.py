"""The end-to-end suites of `make check`, some at a time: alone each would mostly sit out time limits of
the programs. None of them minds what else the machine does. Any of them can be run by itself.

NP_TEST_E2E names those that are to run in their place. Files that are named as arguments, with their own
arguments behind colons, do so, too. NP_TEST_AT_ONCE says how many at a time; of a single one the
output comes as it is written. NP_ONLY and NP_FAILURES: see scripts/check. Of a suite of unittest these name the tests, too,
as its arguments: "netsweep_test:Labs.test_mtu:Far.test_namespaces".
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

# The long ones first. What takes longer, or is seldom touched, is in `make check-more`.
SUITES = ("doc", "json_doc", "daemon", "golden", "faults", "evidence", "interop_more", "syslog", "silent",
          "wire_short", "fraction", "interim", "datagrams", "torture", "tree", "explain_flows", "exchanges", "programs",
          "version", "ceilings", "granted", "law_judge")
AT_ONCE = int(os.environ.get("NP_TEST_AT_ONCE", "6"))
FAILURES = os.environ.get("NP_FAILURES", "")
ENV = {key: value for key, value in os.environ.items() if key not in ("NP_FAILURES", "NP_ONLY")}    # of suites
SKIPPED = 77  # automake's status


class Done(NamedTuple):
    suite: str
    status: int
    seconds: float
    busy: float     # seconds of a processor, of those of its processes that it has waited for
    text: str


def run(suite: str) -> Done:
    """Each suite bounds what it starts."""
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
    """Those of unittest, each behind a colon; none where not only single tests have failed."""
    failures = re.findall(r"^(?:ERROR|FAIL): (\w+)(?: \(__main__\.([\w.]+)\))?", done.text, re.M)
    tests = dict.fromkeys(place if place.endswith(f".{test}") else f"{place}.{test}" for test, place in failures)
    named = "".join(f":{test}" for test in tests)
    alone = done.status == 1 and ":-" not in done.suite and all(place and test.startswith("test") for test, place in failures)
    return named if alone and len(named) < 150 else ""      # it is in the name of a file


def keep(done: Done) -> None:
    """What a suite that failed has said, for .ci/run."""
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
