"""The example scripts of Debian's netperf package, unchanged, with our programs: each command succeeds and prints a
row of figures.

    examples.py [--real]

Most have fixed lengths and take hours. So the netperf that they find runs ours with each length reduced to a second,
and iterations to three; NP_TEST_LONG=1 changes neither. --real runs the real netperf 2.7.0. The scripts use the
default port, so each runs in a network namespace of its own.
"""

import gzip
import os
import re
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import List, NamedTuple, Tuple

import lib

AT_ONCE = 4
LONG = os.environ.get("NP_TEST_LONG") == "1"
TIMEOUT = 24 * 3600 if LONG else 400

# Runs netperf with a shorter length, and records its exit status.
SHORTEN = """#!/bin/bash
args=()
while [[ $# -gt 0 && $1 != -- ]]; do
	case $1 in
	-l) args+=(-l "$SECONDS_EACH"); shift 2 ;;
	-i) args+=(-i "$ITERATIONS"); shift 2 ;;
	*) args+=("$1"); shift ;;
	esac
done
"$PROGRAM" "${args[@]}" "$@" 2> >(tee -a "$COMPLAINTS" >&2)
status=$?
echo "$status ${args[*]} $*" >> "$RUNS"
exit "$status"
"""
PLAIN = """#!/bin/bash
"$PROGRAM" "$@" 2> >(tee -a "$COMPLAINTS" >&2)
status=$?
echo "$status $*" >> "$RUNS"
exit "$status"
"""
# With an address other than loopback's, without which the real netperf resolves none.
INSIDE = """ip link set lo up && ip address add 192.0.2.1/32 dev lo || exit 3
"$SERVER" -D > /dev/null 2>&1 &
server=$!
sleep 0.5
sh "$@"
status=$?
kill "$server"
exit "$status"
"""


class Script(NamedTuple):
    name: str
    runs: int  # minimum number of commands
    args: Tuple[str, ...] = ("127.0.0.1",)


CPU = ("127.0.0.1", "CPU")
SCRIPTS = (
    Script("packet_byte_script", 50),
    Script("tcp_stream_script", 12),
    Script("tcp_range_script", 8),
    Script("tcp_rr_script", 4),
    Script("tcp_rr_script", 6, CPU),
    Script("udp_stream_script", 3),
    Script("udp_stream_script", 5, CPU),
    Script("udp_rr_script", 4),
    Script("snapshot_script", 10),
    Script("snapshot_script", 12, CPU),
)


def fetch(examples: Path, name: str) -> bytes:
    plain = examples / name
    return plain.read_bytes() if plain.exists() else gzip.decompress(
        (examples / f"{name}.gz").read_bytes())


def rows(text: str) -> List[str]:
    """Lines of figures, that is, results; the second line of a pair may have fewer."""
    return [line for line in text.splitlines()
            if re.fullmatch(r"[ \d.-]+", line) and len(line.split()) >= 5]


def run(script: Script, examples: Path) -> str:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        (place / script.name).write_bytes(fetch(examples, script.name))
        lib.executable(place / "netperf", PLAIN if LONG else SHORTEN)
        env = {**os.environ, "PATH": f"{place}:{os.environ['PATH']}", "PROGRAM": lib.netperf(),
               "SERVER": lib.netserver(), "RUNS": f"{place}/runs", "SECONDS_EACH": "1",
               "ITERATIONS": "3,3", "COMPLAINTS": f"{place}/complaints",
               "NETPERF_DIR": name, "NETPERF_CMD": f"{place}/netperf"}
        if not LONG:
            env.update(NETPERF_TIME="1", NETPERF_CRR_TIME="1", NETPERF_STATS=" ")
        with lib.Started(["unshare", "-n", "bash", "-c", INSIDE, "bash", script.name,
                          *script.args], cwd=place, env=env) as started:
            got = started.finish(TIMEOUT)
        assert got.rc == 0, f"status {got.rc}: {got.err[-500:]}"
        done = (place / "runs").read_text().splitlines()
        bad = [line for line in done if not line.startswith("0 ")]
        assert not bad, f"failed: {bad}"
        said = (place / "complaints").read_text()
        assert not said, f"stderr: {said[:500]}"
        assert len(done) >= script.runs, f"only {len(done)} commands: {done}"
        quiet = sum("_CPU" in line or "TCP_MSS" in line for line in done)
        quiet += 3 if script.name.startswith("snapshot") else 0  # it discards three
        found = rows(got.out)
        assert len(found) >= len(done) - quiet, f"{len(found)} rows of {len(done)}: {got.out}"
        return f"{len(done)} commands in {got.seconds:.0f} s"


def suite(report: lib.Report) -> None:
    why = lib.no_lab()
    if why:
        lib.skip(f"no network namespace: {why}")
    try:
        place = lib.real_netperf()
    except lib.Skipped as fault:
        lib.skip(str(fault))
    if "--real" in sys.argv:
        os.environ.update(NETPERF=str(place / "netperf"), NETSERVER=str(place / "netserver"))
    lib.netperf(), lib.netserver()
    examples = place.parent / "share" / "doc" / "netperf" / "examples"
    report.cases([(" ".join((script.name, *script.args[1:])), partial(run, script, examples))
                  for script in SCRIPTS], AT_ONCE)


if __name__ == "__main__":
    lib.main(suite)
