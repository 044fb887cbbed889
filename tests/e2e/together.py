"""Suites that neither measure nor wait for a quiet machine, some at a time: alone each would mostly
sit out time limits of the programs. Any of them can be run by itself.
"""

import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Tuple

# The long ones first.
SUITES = ("evidence", "scarce", "golden", "json_doc", "unix", "syslog", "cut",
          "silent", "daemon", "strangers", "limits", "preflight", "service", "keys", "old_clients",
          "ceilings", "explain", "doc", "tree")
AT_ONCE = 5   # more would be a load that no user's machine has
SKIPPED = 77  # automake's status


def run(suite: str) -> Tuple[int, str]:
    """Its exit status and what it printed; each suite bounds what it starts."""
    path = Path(__file__).with_name(f"{suite}.py")
    with tempfile.TemporaryFile("w+", errors="replace") as log:
        done = subprocess.run([sys.executable, str(path)], stdout=log, stderr=subprocess.STDOUT,
                              check=False)
        log.seek(0)
        return done.returncode, log.read()


def main() -> int:
    failed = 0
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for suite, (status, text) in zip(SUITES, pool.map(run, SUITES)):
            print(f"== {suite}: status {status}\n{text}", flush=True)
            failed += status not in (0, SKIPPED)
    return 1 if failed else 0


sys.exit(main())
