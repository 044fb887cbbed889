"""Suites that neither measure nor wait for a quiet machine, all at a time: alone each would mostly
sit out time limits of the programs. Any of them can be run by itself.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

SUITES = ("cut", "daemon", "doc", "keys", "limits", "old_clients", "scarce", "service", "unix")
SKIPPED = 77  # automake's status


def main() -> int:
    running = []
    for suite in SUITES:
        log = tempfile.TemporaryFile("w+", errors="replace")
        path = Path(__file__).with_name(f"{suite}.py")
        running.append((suite, log, subprocess.Popen([sys.executable, str(path)], stdout=log,
                                                     stderr=subprocess.STDOUT)))
    failed = 0
    for suite, log, process in running:
        status = process.wait()  # each suite bounds what it starts
        log.seek(0)
        print(f"== {suite}: status {status}\n{log.read()}", flush=True)
        failed += status not in (0, SKIPPED)
    return 1 if failed else 0


sys.exit(main())
