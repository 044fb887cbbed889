"""Documents of runs (--json): they conform to the published schema, however the run ended, and netreport --show turns
them into the table that the run printed (--human), byte for byte.
"""

import json
import os
import re
import shlex
import signal
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

import lib
from netkit import python, shown

HOST = "127.0.0.1"
LACKS = "built without libjansson"

# Everything that a document or its table can contain.
RUNS = (
    "-l -1000000 -c -C",
    "-l -1000000 -i 3,3 -I 95,0.001",
    "-l -1000000 --latency",
    "-l -1000000 -A 64 --explain",
    "-l -1000000 -H 127.0.0.1,inet -L 127.0.0.1 -- -V -D -s 64K -S 32K",
    "-t TCP_MAERTS -l -1000000 -f G",
    "-t TCP_SENDFILE -l -1000000 -f K",
    "-t TCP_RR -l -400 --latency",
    "-t TCP_RR -l -300 -i 3,3 -I 99,0.001 -c -C",
    "-t TCP_RR -l -100 -f m --engine sync,",
    "-t TCP_RR -l 1 --flows 3 --ramp 100",
    "-t TCP_RR -l 1 --rate 200 --arrivals poisson --beside UDP_RR:100",
    "-t UDP_RR -l -50 --latency -- -r 100,200",
    "-t TCP_CRR -l -50 --latency",
    "-t TCP_CC -l -50",
    "-t TCP_MSS",
    "-t UDP_STREAM -l 0.3 -c -C -- -m 1000",
    "-t UDP_STREAM -l 1 --rate 10mbit -- -m 1000",
    "-l 1 --both --flows 2",
    "-t UDP_STREAM -l 1 --both --flows 2 --rate 20M -- -m 1400",
    "-t STREAM_STREAM -l -1000000 -c",
    "-t DG_RR -l -50",
    "-t OMNI -l -50 -- -d rr",
)


class Runner(NamedTuple):
    """Where runs write their documents, and the validator."""
    place: Path
    port: int
    errors: "Optional[Callable[[Any], List[str]]]"  # None: there is no validator

    def command(self, args: str, json_as: str, port: Optional[int] = None) -> List[str]:
        return [lib.netperf(), json_as, "-p", str(port or self.port), "-H", HOST, *shlex.split(args)]

    def check(self, text: str) -> Any:
        """Parse a document. Raises AssertionError if it violates the schema."""
        if self.errors is not None:
            found = self.errors(json.loads(text))
            assert not found, "; ".join(found[:3])
        return lib.document(text)


def numbers_are_exact(text: str) -> None:
    """Reading and writing again changes nothing: 17 digits would."""
    document = json.loads(text)
    assert json.loads(json.dumps(document)) == document
    for found in re.findall(r"(?<=[:,\[])-?\d+\.\d+(?:e[-+]?\d+)?", text):
        assert float("%.17g" % float(found)) == float(found), found


def same_as_live(runner: Runner, args: str, number: int) -> str:
    path = runner.place / f"{number}.json"
    out = lib.must(runner.command(f"--human {args}", f"--json={path}"), timeout=30)
    text = path.read_text()
    document = runner.check(text)
    numbers_are_exact(text)
    assert document["result"] == "complete" and document["reason"] is None, document["reason"]
    table = shown.table(*shown.read(str(path)))
    table = table if "--explain" in args else re.split(r"(?m)^(?=Limit|Calls|Doubts|Ceiling)", table)[0]
    assert table == out, f"shown:\n{table}\nprinted:\n{out}"
    return f"{len(text)} bytes, {len(document['iterations'])} iterations"


def alone(runner: Runner, args: str) -> Dict[str, Any]:
    """The document of a run that writes nothing else to stdout."""
    got = lib.run(runner.command(args, "--json"), timeout=30)
    assert got.rc == 0 and not got.err, f"status {got.rc}: {got.err!r}"
    assert got.out.count("\n") == 1 and got.out.endswith("\n"), got.out[:300]
    document = runner.check(got.out)
    return document


# ---- what a document says -----------------------------------------------------------------------

def stands_alone(runner: Runner) -> None:
    """Also with interim results, a confidence warning, a histogram, or messages about the connection."""
    for args in ("-l -1000000", "-l -1000 --json=-", "-l 1 -D 0.3 -v 2 -j", "-t TCP_RR -l -50 -i 3,3 -I 99,0.001",
                 "-t OMNI -l -50 -- -d rr -k", "-t DG_RR -l -50"):
        alone(runner, args)
    got = lib.run(runner.command("-l -1000000 -d", "--json"), timeout=30)
    assert got.rc == 0 and json.loads(got.out) and "debug: " in got.err, got


def people_read_one_table(runner: Runner) -> None:
    """The output of --human agrees with the figures; --explain is part of it and does not go to stderr."""
    path = runner.place / "human.json"
    # A warning about where the daemon's buffers begin, which a busy machine may cause, is not part of the table.
    for args in ("-t TCP_RR -l -300 --latency", "-l -1000000 -A 64 --explain", "-t UDP_STREAM -l -65536"):
        got = lib.run(runner.command(f"{args} --human", f"--json={path}"), timeout=30)
        document = lib.document(path.read_text())
        lines, rows = got.out.splitlines(), {}
        for line in lines:
            rows.setdefault(line[:16].strip(), line[16:])
        final, granted = document["final"], document["parameters"]["granted"]
        assert got.rc == 0 and len(lines) <= 18 and max(map(len, lines)) < 80, got
        assert rows["Test"].startswith(f"{document['test']['name']}, {final['ELAPSED_TIME']:.2f} s"), rows
        assert rows["Local end"].startswith(granted["near"]["address"]), (rows, granted)
        assert rows["Remote end"].startswith(granted["far"]["address"]), (rows, granted)
        assert ("Limit" in rows) == ("--explain" in args) and "explain:" not in got.err, got
        assert ("Latency" in rows) == ("--latency" in args), rows
        assert ("Loss" in rows) == ("UDP" in args), rows
        assert ("Retransmitted" in rows) == ("UDP" not in args) and "Processors" not in rows, rows
        if "RR" in args:
            assert rows["Transactions"] == f"{final['THROUGHPUT']:.0f}/s", (rows, final)
            assert " of 300 times (request/response)" in " ".join(got.out.split()), rows
        else:
            value, unit = rows["Throughput"].split()
            bits = float(value) * {"kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9}[unit]
            assert abs(bits / final["THROUGHPUT"] / 1e6 - 1) < 1e-3, (rows, final)


def says_what_was_asked_and_granted(runner: Runner) -> None:
    document = alone(runner, "-t TCP_STREAM -l -1000000 -c -i 3,3 -I 95,50 -B me -- -s 20000,30000"
                     " -S 40000 -m 5000,6000 -D")
    test, asked = document["test"], document["parameters"]["asked"]
    granted, final = document["parameters"]["granted"], document["final"]
    assert test["name"] == "TCP_STREAM" and test["protocol"] == "TCP" and test["brand"] == "me"
    assert test["length"] == {"bytes": 1000000}, test
    assert test["iterations"]["max"] == 3 and test["iterations"]["confidence_level"] == 95, test
    assert asked["nodelay"] and asked["near"]["measure_cpu"] and not asked["far"]["measure_cpu"]
    assert (asked["near"]["send_buffer"], asked["near"]["receive_buffer"]) == (20000, 30000), asked
    assert asked["far"]["send_buffer"] == asked["far"]["receive_buffer"] == 40000, asked
    assert asked["near"]["send_size"] == final["LOCAL_SEND_SIZE"] == 5000, final
    assert final["LSS_SIZE"] >= 20000 and final["RSR_SIZE"] >= 40000, final
    assert granted["far"]["address"].startswith(f"{HOST} port "), granted
    assert alone(runner, "-l 1")["test"]["length"]["seconds"] == 1
    near = document["iterations"][-1]["near"]
    assert near["host.kernel"] == os.uname().release and near["host.name"] == os.uname().nodename, near


def says_flows_and_engines(runner: Runner) -> None:
    document = alone(runner, "-t TCP_RR -l -50")
    plan = document["plan"]
    assert plan["flows"] == plan["sessions"] == 1 and not plan["both"], plan
    assert plan["warm_up_s"] == 0 and plan["threads"] == {"near": 1}, plan
    assert plan["engine"] == {"near": "sync"}, plan
    assert document["iterations"][0]["flows"] is None, "one flow is the sum"
    assert document["final"]["FLOWS"] == 1 and document["final"]["LOCAL_ENGINE"] == "sync"
    assert document["final"]["REMOTE_ENGINE"] is None, document["final"]["REMOTE_ENGINE"]


def figures_agree(runner: Runner) -> None:
    """The figures of iterations agree with each other and with the final ones, and so do latencies."""
    document = alone(runner, "-t TCP_RR -l -200 -i 3,3 -I 99,0.001 -c")
    iterations = document["iterations"]
    assert [one["number"] for one in iterations] == [1, 2, 3]
    rates = [one["metrics"]["THROUGHPUT"] for one in iterations]
    final = document["final"]
    assert abs(sum(rates) / 3 / final["THROUGHPUT"] - 1) < 1e-12, (rates, final["THROUGHPUT"])
    assert final["CONFIDENCE_ITERATION"] == 3 and final["THROUGHPUT_CONFID"] > 0, final
    merged: Dict[int, int] = {}
    for one in iterations:
        times = one["latency"]
        assert sum(count for _, count in times["cells"]) == times["count"] == 200, times
        assert times["min"] <= times["sum"] / times["count"] <= times["max"]
        for bottom, count in times["cells"]:
            merged[bottom] = merged.get(bottom, 0) + count
            width = max(1, 1 << max(0, bottom.bit_length() - 1 - 10))
            assert bottom % width == 0, f"{bottom} is no cell's smallest time"
    ranked = [bottom for bottom in sorted(merged) for _ in range(merged[bottom])]
    median = ranked[299] / 1000
    assert abs(final["P50_LATENCY"] - median) <= median / 1000, (median, final["P50_LATENCY"])
    assert iterations[0]["metrics"]["MIN_LATENCY"] == iterations[0]["latency"]["min"] / 1000


def what_was_not_measured_is_absent(runner: Runner) -> None:
    """No value is one of netperf's marks, none is missing, and members that were dropped are gone."""
    names = set(lib.run([lib.netperf(), "--", "-k", "?"], timeout=20).out.strip().split(","))
    for args in ("-t TCP_RR -l -50", "-l -1000", "-l -1000 -c -C", "-t UDP_STREAM -l -65536 -- -m 1000",
                 "-t TCP_CC -l -50 -C", "-t TCP_SENDFILE -l -1000 -C", "-t TCP_RR -l -50 -i 3,3 -I 99,5", "-t DG_RR -l -50"):
        document = alone(runner, args)
        for figures in (document["final"], document["iterations"][-1]["metrics"]):
            assert set(figures) <= names and not {"LOCAL_SYSNAME", "REMOTE_CPU_FREQUENCY"} & set(figures), (args, figures)
            below = {name: value for name, value in figures.items()
                     if value in ("", "U", "Deprecated") or isinstance(value, (int, float)) and value < 0}
            assert not below, (args, below)
        final, measured = document["final"], "-C" in args
        assert (final["REMOTE_CPU_UTIL"] is None) != measured, (args, final["REMOTE_CPU_UTIL"])
        assert (final["REMOTE_CPU_COUNT"] is None) != measured, (args, final["REMOTE_CPU_COUNT"])
        assert measured or final["LOCAL_CPU_PERCENT_USER"] is None, (args, final["LOCAL_CPU_PERCENT_USER"])
        streams = "SENDFILE" in args or "STREAM" in document["test"]["name"]
        assert (final["TRANSACTION_RATE"] is None) == streams, args
        assert (final["THROUGHPUT_CONFID"] is None) == ("-I" not in args), (args, final["THROUGHPUT_CONFID"])
        assert final["COMMAND_LINE"] == document["iterations"][0]["metrics"]["COMMAND_LINE"], args


def latencies_have_fractions(runner: Runner) -> None:
    """The sum of all iterations' latencies, and the selected percentiles."""
    document = alone(runner, "-t TCP_RR -l -300 -i 2,2 -I 99,0.001 -- -k P25_LATENCY,P50.0_LATENCY,P99.9_LATENCY")
    final, sums, parts = document["final"], document["latency"], [one["latency"] for one in document["iterations"]]
    assert sums["of"] == "request/response", sums
    assert final["MIN_LATENCY"] == min(one["min"] for one in parts) / 1000, final
    assert final["MAX_LATENCY"] == max(one["max"] for one in parts) / 1000, final
    assert abs(final["MEAN_LATENCY"] - sum(one["sum"] for one in parts) / sum(one["count"] for one in parts) / 1000) < 1e-6, final
    told = [final[f"{name}_LATENCY"] for name in ("MIN", "P25", "P50", "P90", "P99", "P99.9", "MAX")]
    assert told == sorted(told) and final["P50.0_LATENCY"] == final["P50_LATENCY"], final
    for name, few in (("p50", False), ("p90", False), ("p99", False), ("p99.9", True)):
        between = sums["intervals"][name]
        assert between is None if few else between[0] <= final[f"{name.upper()}_LATENCY"] <= between[1], (name, sums)
    assert alone(runner, "-l -1000")["latency"] is None


def has_both_ends_evidence(runner: Runner) -> None:
    document = alone(runner, "-l 1")
    near, far = (document["iterations"][0][end] for end in ("near", "far"))
    assert near["flow.role"] == "transmit" and far["flow.role"] == "receive", (near, far)
    assert near["flow.bytes_sent"] > 0 and isinstance(near["unread"], dict)
    assert document["far"]["peer"] == f"{HOST} port {runner.port}", document["far"]
    # which a session reads before it is confined, and can't read after
    for name in ("host.irqbalance", "host.cpu.model", "host.hypervisor"):
        assert near.get(name) == far.get(name), (name, near, far)
        assert name in far or name in near["unread"], (name, far["unread"])
    document = alone(runner, "-t UDP_RR -l -10")
    for end in ("near", "far"):
        assert document["iterations"][0][end]["host.path_mtu"] >= 65535, document["iterations"]


def interim_results_are_a_series(runner: Runner) -> None:
    document = alone(runner, "-l 1 -D 0.2")
    series = document["interim"]
    # on a busy machine the observer is woken too late for some of the five, or the test is longer
    most = document["final"]["ELAPSED_TIME"] / 0.2 + 1.5
    assert 1 <= len(series) <= most, f"{len(series)} of at most {most:.1f}"
    assert [one["number"] for one in series] == list(range(len(series)))
    work = sum(one["rate"] * one["seconds"] for one in series)
    whole = document["final"]["THROUGHPUT"] * document["final"]["ELAPSED_TIME"]
    assert abs(work / whole - 1) < 0.03, (work, whole)
    times = [one["ending_ms"] for one in series]
    assert times == sorted(times) and abs(times[-1] / 1000 - time.time()) < 600, times


def keeps_secrets(runner: Runner) -> None:
    secret = runner.place / "secret"
    secret.write_text("open-sesame-0123456789\n")
    secret.chmod(0o600)
    with lib.Daemon(args=["--passphrase-file", str(secret)]) as daemon:
        for words in ("-Z open-sesame-0123456789", f"--passphrase-file {secret}"):
            got = lib.run(runner.command(f"-l -1000 {words}", "--json", daemon.port), timeout=20)
            assert got.rc == 0 and "sesame" not in got.out, got
            json.loads(got.out)


def odd_words_are_mended(runner: Runner) -> None:
    """Invalid UTF-8 is replaced, as JSON can't have it."""
    path = runner.place / "odd.json"
    lib.must([*runner.command("-l -1000 -P 0", f"--json={path}"), "-B", os.fsdecode(b"gr\xfc\xdf")], timeout=20)
    document = lib.document(path.read_text())
    assert document["test"]["brand"] == "gr\ufffd\ufffd", document["test"]


# ---- runs that end otherwise --------------------------------------------------------------------

def ended_by(runner: Runner, number: signal.Signals, status: int) -> None:
    path = runner.place / f"{number.name}.json"
    heeded = [sys.executable, "-c", "import os, signal, sys; signal.signal(signal.SIGHUP, signal.SIG_DFL); "
              "os.execv(sys.argv[1], sys.argv[1:])"]     # it may be ignored in the parent, as under nohup(1)
    with lib.Started([*heeded, *runner.command("-l 300 -D 0.1", f"--json={path}")]) as command:
        assert lib.wait_for(lambda: "Interim result" in command.said(), 60), command.said()
        command.signal(number)
        got = command.finish(60)
    assert got.rc == status, got
    document = runner.check(path.read_text())
    assert document["result"] == "partial" and document["error"] is None, document["result"]
    assert document["reason"] == f"ended by {number.name}", document["reason"]
    assert document["iterations"][0]["ended_by"] == "signal" and document["interim"]


def a_connection_test_interrupted(runner: Runner) -> None:
    """Its end closes the control connection: the far end's evidence is then not requested."""
    path = runner.place / "crr.json"
    got = lib.interrupted(runner.command("-t TCP_CRR -l 300 --explain", f"--json={path}"))
    assert got.rc == 0 and "pipe" not in got.err, got
    document = runner.check(path.read_text())
    assert document["result"] == "partial", document["result"]
    assert document["far"]["why"].startswith("the test was interrupted"), document["far"]


def until_interrupted(runner: Runner) -> None:
    """-l 0 has no other end: that is a complete run."""
    path = runner.place / "endless.json"
    got = lib.interrupted(runner.command("-l 0", f"--json={path}"))
    document = runner.check(path.read_text())
    assert got.rc == 0 and document["result"] == "complete", (got, document["result"])


def dead_peer(runner: Runner, alone_on_stdout: bool) -> None:
    path = runner.place / "dead.json"
    with lib.Daemon(grace=None) as daemon:
        with lib.Started(runner.command("-l 300", "--json" if alone_on_stdout else f"--json={path}",
                                        daemon.port)) as command:
            assert command.measuring()
            for sent in (signal.SIGSTOP, signal.SIGKILL):   # a stopped process does not read, which fills the buffers
                for pid in daemon.children():
                    os.kill(pid, sent)
                time.sleep(0.5)
            got = command.finish(60)
    assert got.rc, got
    lib.error_line(got, "netperf", "the result is partial")
    document = runner.check(got.out if alone_on_stdout else path.read_text())
    assert document["result"] == "partial" and "covers" in document["reason"], document["reason"]
    assert document["error"] and document["error"] in got.err, document["error"]
    assert not document["iterations"][0]["complete"] and document["final"]["THROUGHPUT"] > 0
    assert document["final"]["LOCAL_BYTES_SENT"] <= document["iterations"][0]["near"]["tcp.bytes_acked"]


def nothing_measured(runner: Runner) -> None:
    for args, port, says in (("-t NO_SUCH", runner.port, "NO_SUCH"),
                             ("", lib.free_port(), "control connection"),
                             ("-- -H no.such.host.invalid", runner.port, "data connection"),
                             ("-t TCP_RR -a 3", runner.port, "power of two")):
        path = runner.place / "failed.json"
        got = lib.run(runner.command(args, f"--json={path}", port), timeout=30)
        assert got.rc, got
        line = lib.error_line(got, "netperf", says)
        document = runner.check(path.read_text())
        assert document["result"] == "failed" and document["final"] is None, document["result"]
        assert document["error"] in line and document["iterations"] == [], document["error"]


def stock_daemon(runner: Runner) -> None:
    place = lib.real_netperf()
    with lib.Daemon(program=str(place / "netserver"), grace=None) as daemon:
        for number, args in enumerate(("-l 1", "-t TCP_RR -l -50 -c -C", "-t UDP_STREAM -l -65536",
                                       "-t TCP_RR -l -50 -- -o all")):
            path = runner.place / f"stock{number}.json"
            got = lib.run(runner.command(args, f"--json={path}", daemon.port), timeout=30)
            assert got.rc == 0, got
            lib.error_line(got, "netperf", "evidence of this end only")
            document = runner.check(path.read_text())
            far = document["iterations"][-1]["far"]
            assert far is None and document["far"]["why"]
            assert document["iterations"][-1]["near"]["flow.role"], document["iterations"]


def no_control_connection(runner: Runner) -> None:
    """-N: there is no far end to ask."""
    import golden
    service = golden.Chatter("echo")
    try:
        path = runner.place / "alone.json"
        args = f"-N -t OMNI -l -50 -- -d rr -P 0,{service.server_address[1]} -k"
        got = lib.run(runner.command(args, f"--json={path}"), timeout=30)
        assert got.rc == 0, got
        document = runner.check(path.read_text())
        assert document["far"]["peer"] is None and document["far"]["why"], document["far"]
    finally:
        service.shutdown()


# ---- files --------------------------------------------------------------------------------------

def files_are_replaced_whole(runner: Runner) -> None:
    """An old file stays if the new one can't be written; links stay links; no temporary file is left."""
    place = runner.place / "files"
    place.mkdir()
    path, link = place / "run.json", place / "link.json"
    link.symlink_to(path)
    for target in (path, link):
        assert lib.run(runner.command("-l -1000", f"--json={target}"), timeout=20).rc == 0
    assert link.is_symlink() and json.loads(path.read_text())["command_line"].count(str(link))
    assert sorted(place.iterdir()) == [link, path], list(place.iterdir())
    path.chmod(0o640)
    assert lib.run(runner.command("-l -1000", f"--json={path}"), timeout=20).rc == 0
    assert path.stat().st_mode & 0o777 == 0o640
    got = lib.run(runner.command("-l -1000", "--json=/dev/full"), timeout=20)
    assert got.rc == 1 and "TCP STREAM TEST" in got.out and got.out.count("\n") > 5, got
    lib.error_line(got, "netperf", "--json", "/dev/full", "No space")
    full = lib.Started(runner.command("-l -1000", "--json"), stdout=open("/dev/full", "w"))
    with full:
        got = full.finish(60)
    assert got.rc == 1 and "standard output" in got.err, got


def files_that_cannot_be_written(runner: Runner) -> None:
    """This is reported before the test, so that no run is lost. No file is left behind, neither then nor by a run
    that fails."""
    place = runner.place / "unwritten"
    place.mkdir()
    ours = place / "ours"
    ours.write_text("{}")
    hopeless = [(place / "no" / "such", "No such file"), (place, "Is a directory"),
                (ours / "below", "Not a directory"), (f"{place}/new/", "Is a directory")]
    for option in ("--json=", "--wire=pcap:"):
        for target, says in hopeless:
            got = lib.run(runner.command("-l 60", f"{option}{target}"), timeout=20)
            assert got.rc == 1 and not got.out, got
            lib.error_line(got, "netperf", option.partition("=")[0], str(target), says)
    if os.geteuid() == 0:
        place.chmod(0o755)
        ours.chmod(0o644)
        for target in (place / "new", ours):
            for option in ("--json=", "--wire=pcap:"):
                got = lib.run([*lib.as_nobody(), *runner.command("-l 60", f"{option}{target}")],
                              timeout=20)
                assert got.rc == 1 and not got.out and "Permission denied" in got.err, got
    got = lib.run(runner.command("-l 1", f"--json={place / 'new'}", port=lib.free_port()),
                  timeout=20)
    assert got.rc != 0 and json.loads((place / "new").read_text())["result"] == "failed", got
    (place / "new").unlink()
    got = lib.run(runner.command("-t NO_SUCH", f"--wire=pcap:{place / 'new'}"), timeout=20)
    assert got.rc == 1 and list(place.iterdir()) == [ours] and ours.read_text() == "{}", got


def wrong_options(runner: Runner) -> None:
    for args, says in (("--json=", "no name"), ("--preflight --json", "--preflight"), ("-t LOC_CPU --json", "LOC_CPU")):
        got = lib.run(lib.command(runner.port, *args.split()), timeout=20)
        assert got.rc == 1 and not got.out, got
        lib.error_line(got, "netperf", says)


def every_member_is_published(runner: Runner, schema: Any) -> None:
    """The schema has all members of a document, so that all are validated."""
    def fields(part: Any, where: str) -> "List[Tuple[str, Any]]":
        part = part if "$ref" not in part else schema["$defs"][part["$ref"].rpartition("/")[2]]
        found = list(part.get("properties", {}).items())
        for one in [*part.get("anyOf", []), *part.get("allOf", [])]:
            found += fields(one, where)
        return found

    def compare(value: Any, part: Any, where: str) -> None:
        known = dict(fields(part, where))
        for name, inner in value.items():
            assert name in known, f"{where}.{name} is not in the schema"
            if isinstance(inner, dict) and dict(fields(known[name], where)):
                compare(inner, known[name], f"{where}.{name}")

    document = json.loads(lib.run(runner.command("-t TCP_RR -l -50 -c -C", "--json"), timeout=30).out)
    for bag in ("near", "far"):
        document["iterations"][0].pop(bag)  # the schema has no names in these
    document["explanation"].pop("values")
    compare(document, schema, "")
    compare(document["iterations"][0], schema["$defs"]["iteration"], "iterations")


def each_number_stands_once(runner: Runner) -> str:
    """Each number, such as P99, occurs once, which makes documents short."""
    text = lib.run(runner.command("-t TCP_RR -l 1", "--json"), timeout=30).out
    document = json.loads(text)
    final, intervals = document["final"], json.dumps(document["latency"].pop("intervals"))
    iteration = document["iterations"][0]
    # Disturbances, and the spread of latencies
    grows = [iteration["latency"]["cells"], iteration.get("disturbed"), *(iteration[end].get("moved") for end in ("near", "far"))]
    numbers = [float(one) for one in re.findall(r"-?\d+\.\d+", json.dumps(document))]
    for name in ("P99_LATENCY", "MEAN_LATENCY", "STDDEV_LATENCY", "RT_LATENCY"):
        assert numbers.count(final[name]) <= 1, (name, final[name], intervals)
    assert list(iteration["metrics"]) == ["CONFIDENCE_ITERATION"], text[:2000]
    rest = len(text) - sum(len(json.dumps(part, separators=(",", ":"))) for part in grows)
    assert rest <= 18000, f"{rest} bytes without {[len(json.dumps(part)) for part in grows]}"
    return f"{len(text)} bytes"


def refused_without_jansson() -> None:
    """Each of the options is a one-line error that says why, and nothing is measured."""
    for args in ("--json", "--json=/nowhere/file"):
        got = lib.run([lib.netperf(), *args.split()], timeout=20)
        assert got.rc == 1 and not got.out, got
        lib.error_line(got, "netperf", args.split("=")[0].split()[0], LACKS)


def validator(schema: Any) -> "Callable[[Any], List[str]]":
    """A function that lists where a document violates the schema. Raises MissingModule."""
    jsonschema = python.need("jsonschema", "python3-jsonschema")
    jsonschema.Draft202012Validator.check_schema(schema)
    judge = jsonschema.Draft202012Validator(schema)
    return lambda document: [f"{'.'.join(map(str, fault.absolute_path))}: {fault.message[:200]}"
                             for fault in judge.iter_errors(document)]


def suite(report: lib.Report) -> None:
    schema = json.loads((lib.TOP / "doc" / "netperf-run.schema.json").read_text())
    errors = None
    why = ""
    try:
        errors = validator(schema)
    except python.MissingModule as missing:
        why = str(missing)
    lib.netperf(), lib.netserver()
    if not lib.has_documents():
        report.case("a build without jansson says so", refused_without_jansson)
        return
    if why:
        report.skip("documents against the schema", why)
    with tempfile.TemporaryDirectory() as place, lib.Daemon() as daemon:
        runner = Runner(Path(place), daemon.port, errors)
        cases: "List[Tuple[str, Callable[[], Optional[str]]]]" = [
            (f"one table: {args}", partial(same_as_live, runner, args, number))
            for number, args in enumerate(RUNS)]
        cases += [(case.__name__.replace("_", " "), partial(case, runner)) for case in (
            stands_alone, people_read_one_table, says_what_was_asked_and_granted,
            says_flows_and_engines, figures_agree, what_was_not_measured_is_absent, latencies_have_fractions,
            has_both_ends_evidence, interim_results_are_a_series, keeps_secrets, odd_words_are_mended, until_interrupted,
            a_connection_test_interrupted, nothing_measured, no_control_connection, files_are_replaced_whole,
            files_that_cannot_be_written, wrong_options)]
        cases += [("each number stands once", partial(each_number_stands_once, runner)),
                  ("every member is published", partial(every_member_is_published, runner, schema)),
                  ("ended by SIGINT", partial(ended_by, runner, signal.SIGINT, 0)),
                  ("ended by SIGTERM", partial(ended_by, runner, signal.SIGTERM, 143)),
                  ("ended by SIGHUP", partial(ended_by, runner, signal.SIGHUP, 129)),
                  ("dead peer", partial(dead_peer, runner, False)),
                  ("dead peer, document on standard output", partial(dead_peer, runner, True)),
                  ("stock daemon", partial(stock_daemon, runner))]
        report.cases(cases, 3)


if __name__ == "__main__":
    lib.main(suite)
