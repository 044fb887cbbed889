"""The end-to-end suites of `make check`, some at a time: alone each would mostly sit out time limits of
the programs. None of them minds what else the machine does. Any of them can be run by itself.

NP_TEST_E2E names those that are to run; without it all do. Files that are named as arguments run in their place,
as many at a time as NP_TEST_AT_ONCE says.
"""

import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import List, NamedTuple

# The long ones first.
SUITES = ("scarce", "attacks", "netns", "limits", "doc", "golden", "service", "cut", "faults", "old_clients",
          "exchanges", "evidence", "standstill", "explain", "explain_flows", "datagrams", "syslog", "json_doc", "strangers",
          "daemon", "connections", "interop_more", "kills", "unix", "sessions", "keys", "silent", "preflight",
          "flows", "engine_list", "spin", "ramp", "planted", "placement", "interim", "crowd", "engines", "uring",
          "torture", "ceilings", "zerocopy", "clean", "wire_short", "tree",
          "fraction", "version", "programs")
AT_ONCE = int(os.environ.get("NP_TEST_AT_ONCE", "6"))
SKIPPED = 77  # automake's status


class Done(NamedTuple):
    suite: str
    status: int
    seconds: float
    text: str


def run(suite: str) -> Done:
    """Each suite bounds what it starts."""
    path = Path(__file__).with_name(f"{suite}.py")
    since = time.monotonic()
    with tempfile.TemporaryFile("w+", errors="replace") as log:
        done = subprocess.run([sys.executable, str(path)], stdout=log, stderr=subprocess.STDOUT,
                              check=False)
        log.seek(0)
        return Done(suite, done.returncode, time.monotonic() - since, log.read())


def chosen() -> List[str]:
    if sys.argv[1:]:
        return [Path(name).stem for name in sys.argv[1:]]
    wanted = os.environ.get("NP_TEST_E2E", "").split()
    return [suite for suite in SUITES if not wanted or suite in wanted]


def main() -> int:
    failed = []
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for future in as_completed([pool.submit(run, suite) for suite in chosen()]):
            done = future.result()
            print(f"== {done.suite}, {done.seconds:.1f} s: status {done.status}\n{done.text}", flush=True)
            if done.status not in (0, SKIPPED):
                failed.append(done.suite)
    if failed:
        print(f"failed: {' '.join(failed)}", flush=True)
    return 1 if failed else 0


sys.exit(main())
