"""Documents of runs (--json) and what --show makes of them: they fit to the published schema, whatever
became of the run; what is shown equals what the run printed, byte for byte; what is no document, or
a damaged one, is an error of one line.
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

sys.path.insert(0, str(lib.TOP / "scripts"))
from netkit import python  # noqa: E402

HOST = "127.0.0.1"
LACKS = "built without libjansson"

# Every layout and style, and each thing that a result can have beside its table.
RUNS = (
    "-l -1000000",
    "-l -1000000 -P 0",
    "-l -1000000 -v 0",
    "-l -1000000 -v 2",
    "-l -1000000 -j -v 2",
    "-l -1000000 -j -v 3",
    "-l -1000000 -c -C",
    "-l -1000000 -c -v 0 -B tag",
    "-l -1000000 -P 0 -B 'a tag' -f K",
    "-t TCP_MAERTS -l -1000000 -v 2 -f G",
    "-t TCP_MAERTS -l -1000000 -C",
    "-t TCP_SENDFILE -l -1000000 -v 2",
    "-t TCP_RR -l -100",
    "-t TCP_RR -l -100 --latency",
    "-t TCP_RR -l -100 --human -c -C",
    "-l -1000000 --human -i 3,3 -I 95,0.001",
    "-t TCP_CC -l -50 --human -P 0 -v 0",
    "-t UDP_RR -l -50 --human --latency",
    "-t TCP_CRR -l -50 --latency -P 0 -v 2",
    "-l -1000000 --latency",
    "-t OMNI -l -50 --latency -- -d rr",
    "-t TCP_RR -l -100 -f m -v 2",
    "-t TCP_RR -l -100 --engine sync,",
    "-t TCP_RR -l -100 -v 2 -j -c",
    "-t TCP_RR -l -100 -f k -c -C",
    "-t TCP_RR -l -300 -i 3,3 -I 99,0.001",
    "-t TCP_RR -l -300 -i 3,3 -I 95,0.001 -r -c -C -P 0",
    "-t UDP_RR -l -50 -v 2 -j",
    "-t UDP_RR -l -50 -- -r 100,200 -o",
    "-t TCP_CRR -l -50 -v 2",
    "-t TCP_CC -l -50 -v 2 -j",
    "-t TCP_MSS",
    "-t UDP_STREAM -l 1 -- -m 1000",
    "-t UDP_STREAM -l 1 -c -C -v 2 -j -- -m 1000",
    "-l 1 -D 0.2",
    "-l 1 -D 0.2 -t TCP_RR -- -k",
    "-l 1 -D 0.2 -P 0 -- -o THROUGHPUT,ELAPSED_TIME",
    "-t STREAM_STREAM -l -1000000 -v 2 -c",
    "-t STREAM_RR -l -50",
    "-t DG_STREAM -l -100000",
    "-t DG_RR -l -50 -v 2",
    "-t OMNI -l -1000000",
    "-t OMNI -l -50 -j -v 2 -- -d rr -O 'THROUGHPUT,NO_SUCH,P99_LATENCY;LOCAL_CONG_CONTROL'",
    "-t TCP_RR -l -100 -- -O 'P95_LATENCY,p99.990_latency;P50.0_LATENCY,CONNECT_P99.9'",
    "-t TCP_RR -l 1 --flows 3 --ramp 100 -- -k CONNECT_P50,CONNECT_P99.9",
    "-t OMNI -l -50 -- -d rr -o all",
    "-t OMNI -l -50 -P 0 -- -d rr -k all",
    "-t OMNI -l -50 -c -C -- -d recv -T tcp -k",
    "-l -1000000 -- -o SELECTED",
    "-l -1000000 -H 127.0.0.1,inet -L 127.0.0.1 -- -V -D -s 64K -S 32K",
)


class Runner(NamedTuple):
    """Where runs put their documents, and what judges these."""
    place: Path
    port: int
    errors: "Optional[Callable[[Any], List[str]]]"  # None: there is no validator

    def command(self, args: str, json_as: str, port: Optional[int] = None) -> List[str]:
        words = [str(self.place / "selectors") if word == "SELECTED" else word
                 for word in shlex.split(args)]
        return [lib.netperf(), json_as, "-p", str(port or self.port), "-H", HOST, *words]

    def check(self, document: Any) -> None:
        """Raises AssertionError unless it is as the schema says."""
        if self.errors is not None:
            found = self.errors(document)
            assert not found, "; ".join(found[:3])


def show(path: Path, *args: str) -> lib.Result:
    return lib.run([lib.netperf(), "--show", str(path), *args], timeout=20)


def numbers_are_exact(text: str) -> None:
    """Reading and writing again loses nothing, as 17 digits do not."""
    document = json.loads(text)
    assert json.loads(json.dumps(document)) == document
    for found in re.findall(r"(?<=[:,\[])-?\d+\.\d+(?:e[-+]?\d+)?", text):
        assert float("%.17g" % float(found)) == float(found), found


def same_as_live(runner: Runner, args: str, number: int) -> str:
    path = runner.place / f"{number}.json"
    got = lib.run(runner.command(args, f"--json={path}"), timeout=30)
    said = re.sub(r"netperf: NO_SUCH: there is no such output selector .*\n", "", got.err)
    assert got.rc == 0 and not lib.without_account(said), f"status {got.rc}: {got.err!r}"
    text = path.read_text()
    document = json.loads(text)
    runner.check(document)
    numbers_are_exact(text)
    assert document["result"] == "complete" and document["reason"] is None, document["reason"]
    again = show(path)
    assert again.rc == 0 and again.err == said, f"--show: status {again.rc}: {again.err!r}, not {got.err!r}"
    assert again.out == got.out, f"shown:\n{again.out}\nprinted:\n{got.out}"
    return f"{len(text)} bytes, {len(document['iterations'])} iterations"


def alone(runner: Runner, args: str) -> Dict[str, Any]:
    """The document of a run that puts nothing else on standard output."""
    got = lib.run(runner.command(args, "--json"), timeout=30)
    assert got.rc == 0 and not got.err, f"status {got.rc}: {got.err!r}"
    assert got.out.count("\n") == 1 and got.out.endswith("\n"), got.out[:300]
    document = json.loads(got.out)
    runner.check(document)
    return document


# ---- what a document says -----------------------------------------------------------------------

def stands_alone(runner: Runner) -> None:
    """Also with interim results, a confidence warning, a histogram, or talk about the connection."""
    for args in ("-l -1000000", "-l -1000 --json=-", "-l 1 -D 0.3 -v 2 -j", "-t TCP_RR -l -50 -i 3,3 -I 99,0.001",
                 "-t OMNI -l -50 -- -d rr -k", "-t DG_RR -l -50"):
        alone(runner, args)
    got = lib.run(runner.command("-l -1000000 -d", "--json"), timeout=30)
    assert got.rc == 0 and json.loads(got.out) and "debug: " in got.err, got
    # A document may be shown from a pipe.
    shown = lib.run(["sh", "-c", f"{shlex.join(runner.command('-l -1000000', '--json'))} |"
                     f" {lib.netperf()} --show - -- -k THROUGHPUT"], timeout=30)
    assert shown.rc == 0 and re.fullmatch(r"THROUGHPUT=\d+\.\d\d\n", shown.out), shown


def people_read_one_table(runner: Runner) -> None:
    """What --human prints agrees with the figures; --explain goes into it, and not to standard error."""
    path = runner.place / "human.json"
    # Where the daemon's buffers begin, which a busy machine may doubt, is none of the table's.
    for args in ("-t TCP_RR -l -300 --latency", "-l -1000000 -A 64 --explain", "-t UDP_STREAM -l 1"):
        got = lib.run(runner.command(f"{args} --human", f"--json={path}"), timeout=30)
        document = json.loads(path.read_text())
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
    # another document as such a table, and this one in netperf's
    lib.run(runner.command("-t TCP_RR -l -50", f"--json={path}"), timeout=30)
    shown = show(path, "--human", "--explain")
    assert shown.rc == 0 and re.match(r"Test +TCP_RR, ", shown.out) and "\nLimit " in shown.out, shown
    for words in (("--", "-k"), ("--prometheus",)):
        got = show(path, "--human", *words)
        assert got.rc != 0 and not got.out and re.fullmatch(r"netperf: --human: .*choose one.*\n", got.err), got


def says_what_was_asked_and_granted(runner: Runner) -> None:
    document = alone(runner, "-t TCP_STREAM -l -1000000 -c -i 3,3 -I 95,50 -B me -- -s 20000,30000"
                     " -S 40000 -m 5000,6000 -D")
    test, asked = document["test"], document["parameters"]["asked"]
    granted = document["parameters"]["granted"]
    assert test["name"] == "TCP_STREAM" and test["protocol"] == "TCP" and test["brand"] == "me"
    assert test["length"] == {"seconds": None, "bytes": 1000000, "transactions": None}, test
    assert test["iterations"]["max"] == 3 and test["iterations"]["confidence_level"] == 95, test
    assert asked["nodelay"] and asked["near"]["measure_cpu"] and not asked["far"]["measure_cpu"]
    assert (asked["near"]["send_buffer"], asked["near"]["receive_buffer"]) == (20000, 30000), asked
    assert asked["far"]["send_buffer"] == asked["far"]["receive_buffer"] == 40000, asked
    assert asked["near"]["send_size"] == granted["near"]["send_size"] == 5000, granted
    assert granted["near"]["send_buffer"] >= 20000 and granted["far"]["receive_buffer"] >= 40000
    assert granted["far"]["address"].startswith(f"{HOST} port "), granted
    assert alone(runner, "-l 1")["test"]["length"]["seconds"] == 1
    near = document["near"]
    assert near["kernel"] == os.uname().release and near["name"] == os.uname().nodename, near


def says_flows_and_engines(runner: Runner) -> None:
    document = alone(runner, "-t TCP_RR -l -50")
    plan = document["plan"]
    assert plan["flows"] == plan["sessions"] == 1 and not plan["both"], plan
    assert plan["warm_up_s"] == 0 and plan["threads"] == {"near": 1, "far": None}, plan
    assert plan["engine"] == {"near": "sync", "far": None}, plan
    assert document["iterations"][0]["flows"] is None, "one flow is the sum"
    assert document["final"]["FLOWS"] == 1 and document["final"]["LOCAL_ENGINE"] == "sync"
    assert document["final"]["REMOTE_ENGINE"] is None, document["final"]["REMOTE_ENGINE"]


def figures_agree(runner: Runner) -> None:
    """Those of the iterations with each other and with the final ones, and the times with both."""
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
    assert abs(final["P50_LATENCY"] - median) <= 1 + median / 1000, (median, final["P50_LATENCY"])
    assert iterations[0]["metrics"]["MIN_LATENCY"] == iterations[0]["latency"]["min"] // 1000


def what_was_not_measured_is_null(runner: Runner) -> None:
    """No figure is a mark of netperf's, none is missing, and those that netperf has given up are gone."""
    names = set(lib.run([lib.netperf(), "--", "-k", "?"], timeout=20).out.strip().split(","))
    for args in ("-t TCP_RR -l -50", "-l -1000", "-l -1000 -c -C", "-t UDP_STREAM -l 1 -- -m 1000",
                 "-t TCP_CC -l -50 -C", "-t TCP_SENDFILE -l -1000 -C", "-t TCP_RR -l -50 -i 3,3 -I 99,5", "-t DG_RR -l -50"):
        document = alone(runner, args)
        gone = names - set(document["final"]) - {"OUTPUT_NONE", "OUTPUT_END"}
        assert len(gone) == 44 and {"LOCAL_SYSNAME", "REMOTE_CPU_FREQUENCY"} < gone, gone
        for figures in (document["final"], document["iterations"][-1]["metrics"]):
            assert set(figures) == names - gone - {"OUTPUT_NONE", "OUTPUT_END"}, args
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
    """The sum of all iterations' times, and the percentiles that were selected."""
    document = alone(runner, "-t TCP_RR -l -300 -i 2,2 -I 99,0.001 -- -k P25_LATENCY,P50.0_LATENCY,P99.9_LATENCY")
    final, sums, parts = document["final"], document["latency"], [one["latency"] for one in document["iterations"]]
    assert sums["count"] == sum(one["count"] for one in parts) and sums["of"] == "request/response", sums
    assert sums["min"] == min(one["min"] for one in parts) / 1000, sums
    assert sums["max"] == max(one["max"] for one in parts) / 1000, sums
    assert abs(sums["mean"] - sum(one["sum"] for one in parts) / sums["count"] / 1000) < 1e-6, sums
    order = ("min", "p50", "p90", "p99", "p99.9", "max")
    assert [sums[name] for name in order] == sorted(sums[name] for name in order), sums
    assert final["P50_LATENCY"] == int(sums["p50"]) and final["P50.0_LATENCY"] == sums["p50"], (final, sums)
    for name, few in (("p50", False), ("p90", False), ("p99", False), ("p99.9", True)):
        told = sums["intervals"][name]
        assert told is None if few else told[0] <= sums[name] <= told[1], (name, sums)
    assert final["P99.9_LATENCY"] == sums["p99.9"] >= final["P25_LATENCY"] >= sums["min"], (final, sums)
    assert alone(runner, "-l -1000")["latency"] is None


def an_older_document_is_shown(runner: Runner) -> None:
    """With -1 and 0 in place of null, and without the members that came later."""
    document = alone(runner, "-t TCP_RR -l -50")
    want = show(write(runner, document), "--", "-k", "all").out
    older = json.loads(json.dumps(document))
    for name, word in older["display"]["oddities"].items():
        older["final"][name] = int(word) if re.fullmatch("-?[0-9]+", word) else word
    for name, value in want_of(want).items():
        if value == "Deprecated":
            older["final"][name] = value
    older["final"] = {name: value for name, value in older["final"].items() if value is not None}
    older["display"]["oddities"] = {}
    del older["latency"], older["display"]["times"]
    got = show(write(runner, older), "--", "-k", "all")
    assert got.rc == 0 and not got.err, got
    assert want_of(got.out) == want_of(want)


def rank(cells: "List[List[int]]", share: float) -> int:
    """The least time of the cell that a percentile lies in."""
    at, seen = share * sum(count for _, count in cells), 0
    for bottom, count in sorted(cells):
        seen += count
        if seen >= at:
            return bottom
    raise AssertionError(cells)


def several_are_merged(runner: Runner) -> None:
    """The percentiles are those of the merged histograms, which no mean of percentiles is."""
    files = []
    for number, words in enumerate(("-r 1,1", "-r 1,60000")):
        document = alone(runner, f"-t TCP_RR -l -500 -- {words}")
        files.append(runner.place / f"part{number}.json")
        files[-1].write_text(json.dumps(document))
    parts = [json.loads(path.read_text()) for path in files]
    got = lib.run([lib.netperf(), "--merge", *map(str, files)], timeout=20)
    lines = got.out.splitlines()
    assert got.rc == 0 and lines[3].split()[:2] == ["together", "TCP_RR"], got
    rates = [part["final"]["THROUGHPUT"] for part in parts]
    assert abs(float(lines[3].split()[2]) - sum(rates)) < 0.02 and lines[3].split()[3] == "Trans/s", (lines, rates)
    times = dict(zip(lines[5].split(), lines[6].split()))
    cells = [cell for part in parts for cell in part["iterations"][0]["latency"]["cells"]]
    assert int(times["Count"]) == sum(count for _, count in cells) == 1000, (times, lines)
    for name, share in (("P50/us", 0.5), ("P90/us", 0.9)):
        assert abs(float(times[name]) - rank(cells, share) / 1000) <= 0.01 * float(times[name]), (name, times)
    assert "they ran together for 0.00 of" in got.err, got.err  # one after the other
    other = runner.place / "other.json"
    other.write_text(json.dumps(alone(runner, "-l -1000000")))
    for words, says in (((), "no documents are named"), (("--json", str(files[0])), "runs no test"),
                        ((str(files[0]), "/nowhere"), "/nowhere: open it: No such file"),
                        ((str(files[0]), str(other)), "the first one a TCP_RR"), ((str(lib.TOP / "NEWS"),), "line 1")):
        got = lib.run([lib.netperf(), "--merge", *words], timeout=20)
        assert got.rc == 1 and says in got.err and "--merge" in got.err, (words, got)


def write(runner: Runner, document: Any) -> Path:
    path = runner.place / "written.json"
    path.write_text(json.dumps(document))
    return path


def want_of(shown: str) -> Dict[str, str]:
    return dict(line.split("=", 1) for line in shown.splitlines() if "=" in line)


def has_both_ends_evidence(runner: Runner) -> None:
    document = alone(runner, "-l 1")
    near, far = (document["iterations"][0][end] for end in ("near", "far"))
    assert near["flow.role"] == "transmit" and far["flow.role"] == "receive", (near, far)
    assert near["flow.bytes_sent"] > 0 and isinstance(near["unread"], dict)
    assert document["far"]["peer"] == f"{HOST} port {runner.port}", document["far"]
    # which a session reads before it is confined, and can't any more then
    for name in ("host.irqbalance", "host.cpu.model", "host.hypervisor"):
        assert near.get(name) == far.get(name), (name, near, far)
        assert name in far or name in near["unread"], (name, far["unread"])
    document = alone(runner, "-t UDP_RR -l -10")
    for end in ("near", "far"):
        assert document["iterations"][0][end]["host.path_mtu"] >= 65535, document["iterations"]


def interim_results_are_a_series(runner: Runner) -> None:
    document = alone(runner, "-l 1 -D 0.2")
    series = document["interim"]
    # a busy machine wakes the one who counts too late for some of the five, or stretches the test
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
    """What is no UTF-8 can't stand in JSON."""
    path = runner.place / "odd.json"
    got = lib.run([os.fsencode(word) for word in runner.command(
        "-l -1000 -P 0", f"--json={path}")] + [b"-B", b"gr\xfc\xdf"], timeout=20)
    assert got.rc == 0, got.err
    document = json.loads(path.read_text())
    assert document["test"]["brand"] == "gr\ufffd\ufffd", document["test"]
    assert show(path).out == got.out  # as our reader has it, too


# ---- runs that end otherwise --------------------------------------------------------------------

def ended_by(runner: Runner, number: signal.Signals, status: int) -> None:
    path = runner.place / f"{number.name}.json"
    heeded = [sys.executable, "-c", "import os, signal, sys; signal.signal(signal.SIGHUP, signal.SIG_DFL); "
              "os.execv(sys.argv[1], sys.argv[1:])"]     # who started us may have had it ignored, as nohup(1) does
    with lib.Started([*heeded, *runner.command("-l 300 -D 0.1", f"--json={path}")]) as command:
        assert lib.wait_for(lambda: "Interim result" in command.said(), 60), command.said()
        command.signal(number)
        got = command.finish(60)
    assert got.rc == status, got
    document = json.loads(path.read_text())
    runner.check(document)
    assert document["result"] == "partial" and document["error"] is None, document["result"]
    assert document["reason"] == f"ended by {number.name}", document["reason"]
    assert document["iterations"][0]["ended_by"] == "signal" and document["interim"]
    again = show(path)
    assert again.rc == 0 and again.out == got.out, again
    lib.error_line(again, "netperf", "not a complete run", number.name)


def a_connection_test_interrupted(runner: Runner) -> None:
    """Its end closes the control connection: the far end's evidence is not asked for then."""
    path = runner.place / "crr.json"
    with lib.Started(runner.command("-t TCP_CRR -l 300 --explain", f"--json={path}")) as command:
        assert command.measuring()
        command.signal(signal.SIGINT)
        got = command.finish(60)
    assert got.rc == 0 and "pipe" not in got.err, got
    document = json.loads(path.read_text())
    runner.check(document)
    assert document["result"] == "partial", document["result"]
    assert document["far"]["why"].startswith("the test was interrupted"), document["far"]


def until_interrupted(runner: Runner) -> None:
    """-l 0 has no other end: that is a complete run."""
    path = runner.place / "endless.json"
    with lib.Started(runner.command("-l 0", f"--json={path}")) as command:
        assert command.measuring()
        command.signal(signal.SIGINT)
        got = command.finish(60)
    document = json.loads(path.read_text())
    assert got.rc == 0 and document["result"] == "complete", (got, document["result"])
    runner.check(document)


def dead_peer(runner: Runner, alone_on_stdout: bool) -> None:
    path = runner.place / "dead.json"
    with lib.Daemon(grace=None) as daemon:
        with lib.Started(runner.command("-l 300", "--json" if alone_on_stdout else f"--json={path}",
                                        daemon.port)) as command:
            assert command.measuring()
            for pid in daemon.children():
                os.kill(pid, signal.SIGKILL)
            got = command.finish(60)
    assert got.rc, got
    lib.error_line(got, "netperf", "the result is partial")
    document = json.loads(got.out if alone_on_stdout else path.read_text())
    runner.check(document)
    assert document["result"] == "partial" and "covers" in document["reason"], document["reason"]
    assert document["error"] and document["error"] in got.err, document["error"]
    assert not document["iterations"][0]["complete"] and document["final"]["THROUGHPUT"] > 0
    if not alone_on_stdout:
        assert show(path).out == got.out


def nothing_measured(runner: Runner) -> None:
    for args, port, says in (("-t NO_SUCH", runner.port, "NO_SUCH"),
                             ("", lib.free_port(), "control connection"),
                             ("-- -H no.such.host.invalid", runner.port, "data connection"),
                             ("-t TCP_RR -a 3", runner.port, "power of two")):
        path = runner.place / "failed.json"
        got = lib.run(runner.command(args, f"--json={path}", port), timeout=30)
        assert got.rc, got
        line = lib.error_line(got, "netperf", says)
        document = json.loads(path.read_text())
        runner.check(document)
        assert document["result"] == "failed" and document["final"] is None, document["result"]
        assert document["error"] in line and document["iterations"] == [], document["error"]
        again = show(path)
        # netperf's words for a fault are of the run; ours are in the document.
        assert again.rc == 1, again
        assert again.out.splitlines() == lib.without_phrases(got.out, lib.STDOUT_PHRASES), again
        lib.error_line(again, "netperf", "the run has no result", says)


def stock_daemon(runner: Runner) -> None:
    place = lib.real_netperf()
    with lib.Daemon(program=str(place / "netserver"), grace=None) as daemon:
        for number, args in enumerate(("-l 1", "-t TCP_RR -l -50 -c -C", "-t UDP_STREAM -l 1",
                                       "-t TCP_RR -l -50 -- -o all")):
            path = runner.place / f"stock{number}.json"
            got = lib.run(runner.command(args, f"--json={path}", daemon.port), timeout=30)
            assert got.rc == 0, got
            lib.error_line(got, "netperf", "evidence of this end only")
            document = json.loads(path.read_text())
            runner.check(document)
            far = document["iterations"][-1]["far"]
            assert far is None and document["far"]["kernel"] is None and document["far"]["why"]
            assert document["iterations"][-1]["near"]["flow.role"], document["iterations"]
            again = show(path)
            assert again.out == got.out, f"shown:\n{again.out}\nprinted:\n{got.out}"


def no_control_connection(runner: Runner) -> None:
    """-N: there is nobody to ask."""
    import golden
    service = golden.Chatter("echo")
    try:
        path = runner.place / "alone.json"
        args = f"-N -t OMNI -l -50 -- -d rr -P 0,{service.server_address[1]} -k"
        got = lib.run(runner.command(args, f"--json={path}"), timeout=30)
        assert got.rc == 0, got
        document = json.loads(path.read_text())
        runner.check(document)
        assert document["far"]["peer"] is None and document["far"]["why"], document["far"]
        assert show(path).out == got.out
    finally:
        service.shutdown()


# ---- shown otherwise ----------------------------------------------------------------------------

def other_figures(runner: Runner) -> None:
    """Chosen later: also those that the run did not show."""
    path = runner.place / "other.json"
    got = lib.run(runner.command("-t TCP_RR -l -100", f"--json={path}"), timeout=20)
    assert got.rc == 0, got.err
    document = json.loads(path.read_text())
    final = document["final"]
    shown = show(path, "--", "-k", "THROUGHPUT,P50_LATENCY,LOCAL_CONG_CONTROL,PROTOCOL").out
    assert shown == (f"THROUGHPUT={final['THROUGHPUT']:.2f}\nP50_LATENCY={final['P50_LATENCY']}\n"
                     f"LOCAL_CONG_CONTROL={final['LOCAL_CONG_CONTROL']}\nPROTOCOL=TCP\n"), shown
    assert final["LOCAL_CONG_CONTROL"], "no congestion control"
    shown = show(path, "-P", "0", "--", "-o", "ELAPSED_TIME,LSS_SIZE").out
    assert shown == f"{final['ELAPSED_TIME']:.2f},{final['LSS_SIZE']}\n", shown
    assert show(path, "--", "-O", "THROUGHPUT").out.startswith("Throughput"), "no columns"
    every = show(path, "--", "-k", "all").out
    assert every.count("\n") > 100, every
    assert show(path, "-v", "0", "-P", "0").out == f"{final['THROUGHPUT']:7.2f} \n"
    assert "HIST_TOTAL:      100\n" in show(path, "-v", "2").out
    assert show(path, "-P", "0").out == "".join(got.out.splitlines(keepends=True)[6:]), "heads"


def evidence_is_kept(runner: Runner) -> None:
    """What --explain and --wire print of a run they print of its document."""
    path = runner.place / "explained.json"
    got = lib.run(runner.command("-l 1 --explain --wire", f"--json={path}"), timeout=20)
    assert got.rc == 0 and "explain: " in got.err, got
    runner.check(json.loads(path.read_text()))
    again = show(path, "--explain", "--wire")
    assert again.rc == 0 and again.out == got.out, again
    said = got.err[got.err.index("explain: "):]
    assert again.err == said, f"shown:\n{again.err}\nprinted:\n{said}"
    document = json.loads(path.read_text())
    document["explanation"] = None
    path.write_text(json.dumps(document))
    lib.error_line(show(path, "--explain"), "netperf", "no explanation")


SAMPLE = re.compile(r"([a-z_:][a-z0-9_:]*)(\{(?:[a-z_]+=\"(?:[^\"\\\n]|\\[\\\"n])*\",?)+\})? (\S+)")


def samples(text: str) -> "Dict[str, float]":
    """By name and labels; raises unless every line is as the format wants it."""
    found: Dict[str, float] = {}
    types: Dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("# "):
            _, what, name, rest = line.split(" ", 3)
            assert what in ("HELP", "TYPE") and rest, line
            if what == "TYPE":
                assert name not in types and rest in ("gauge", "summary"), line
                types[name] = rest
            continue
        match = SAMPLE.fullmatch(line)
        assert match, line
        name = re.sub(r"_(sum|count)$", "", match[1])
        assert match[1] in types or name in types, f"{line} has no type"
        assert match[1] + (match[2] or "") not in found, line
        found[match[1] + (match[2] or "")] = float(match[3])
    return found


def for_prometheus(runner: Runner) -> None:
    path = runner.place / "prometheus.json"
    got = lib.run(runner.command("-t TCP_RR -l -100 -B 'a\"b'", f"--json={path}"), timeout=20)
    assert got.rc == 0, got.err
    final = json.loads(path.read_text())["final"]
    found = samples(show(path, "--prometheus").out)
    labels = f'test="TCP_RR",host="{HOST}",protocol="TCP",brand="a\\"b"'
    assert found[f'netperf_throughput{{{labels},unit="Trans/s"}}'] == final["THROUGHPUT"], found
    assert found[f"netperf_complete{{{labels}}}"] == 1
    assert found[f"netperf_latency_seconds_count{{{labels}}}"] == 100
    assert len(found) > 60 and min(found.values()) >= 0, len(found)


# ---- what is no document ------------------------------------------------------------------------

def damaged(runner: Runner) -> str:
    """Cut short, of another kind, or with another type in any place: a line, and no more."""
    path = runner.place / "good.json"
    assert lib.run(runner.command("-t TCP_RR -l -30 -D 1", f"--json={path}"), timeout=20).rc == 0
    text = path.read_text()
    document = json.loads(text)
    bad = runner.place / "bad.json"
    wrong = [("", "line"), (text[:len(text) // 2], "line"), ("[]", "not a document"),
             ("{}", "not a document"), ('{"schema": "other"}', "not a document"), ("\0\1\2", "line"),
             *((json.dumps({**document, "schema": f"plumbline-netperf/{n}"}), "not a document")
               for n in ("", "0", "2x", "-1", "K")),
             *((json.dumps({**document, "schema": f"plumbline-netperf/{n}"}), f"number {n}, and this netperf reads 1 to 2 "
                "(a newer netperf is needed)") for n in (3, 99))]
    for name in ("result", "reason", "error", "iterations", "final", "display"):
        wrong.append((json.dumps({**document, name: 7}), ""))
    for name in document["display"]:
        if name != "oddities":
            wrong.append((json.dumps({**document, "display": {**document["display"], name: {}}}),
                          ""))
    for cells in (7, [[1]], [["1", 1]], [[1, -5]], [[2049, 1]]):
        times = {**document["iterations"][0]["latency"], "cells": cells}
        wrong.append((json.dumps({**document, "iterations": [{"latency": times}]}), "histogram"))
    wrong.append((json.dumps({**document, "final": {**document["final"], "LSS_SIZE": "x"}}),
                  "LSS_SIZE"))
    for content, says in wrong:
        bad.write_text(content)
        got = show(bad)
        assert got.rc == 1 and not got.out, f"{content[:80]}: {got}"
        lib.error_line(got, "netperf", "--show", "bad.json", says)
    bad.write_text(json.dumps({**document, "display": None}))
    assert show(bad).rc == 1
    for name, says in (("/nowhere/at/all", "No such file"), (str(runner.place), "directory")):
        got = show(Path(name))
        assert got.rc == 1 and not got.out, got
        lib.error_line(got, "netperf", "--show", says)
    return f"{len(wrong)} kinds of damage"


def earlier_number(runner: Runner) -> None:
    """Number 1 is shown as it was."""
    path = runner.place / "earlier.json"
    got = lib.run(runner.command("-t TCP_RR -l -30", f"--json={path}"), timeout=20)
    document = json.loads(path.read_text())
    assert document["schema"] == "plumbline-netperf/2", document["schema"]
    document["schema"] = "plumbline-netperf/1"
    del document["latency"]
    document["final"].update(dict.fromkeys(
        [name for name, value in document["final"].items() if value is None and name.endswith("_SD")], -1.0))
    path.write_text(json.dumps(document))
    assert show(path).out == got.out


def later_versions_may_add(runner: Runner) -> None:
    """Unknown members are ignored."""
    path = runner.place / "added.json"
    got = lib.run(runner.command("-l -1000000", f"--json={path}"), timeout=20)
    document = json.loads(path.read_text())
    document["added"] = {"by": ["a", "later", {"version": 1}]}
    document["final"]["A_NEW_FIGURE"] = [1]
    document["display"]["colour"] = "green"
    path.write_text(json.dumps(document, indent=2))
    assert show(path).out == got.out


# ---- files --------------------------------------------------------------------------------------

def files_are_replaced_whole(runner: Runner) -> None:
    """What was there stays when the new one can't be written; links stay links; nothing is left."""
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
    """That is told before the test: a run of an hour is not to be lost. Nothing is left behind,
    neither then nor by a run that fails."""
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
    for args, says in (("--json=", "no name"), ("--show=", "no name"), ("--prometheus", "--show"),
                       ("--show x --json", "--show"), ("--preflight --json", "--preflight"), ("-t LOC_CPU --json", "LOC_CPU")):
        got = lib.run([lib.netperf(), "-H", HOST, "-p", str(runner.port), *args.split()],
                      timeout=20)
        assert got.rc == 1 and not got.out, got
        lib.error_line(got, "netperf", says)


def every_member_is_published(runner: Runner, schema: Any) -> None:
    """The schema names all members of a document, so that what it says of them is checked."""
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

    document = alone(runner, "-t TCP_RR -l -50 -c -C")
    for bag in ("near", "far"):
        document["iterations"][0].pop(bag)  # of these the schema names nothing
    document["explanation"].pop("values")
    compare(document, schema, "")
    compare(document["iterations"][0], schema["$defs"]["iteration"], "iterations")


def made_without_jansson() -> bool:
    return LACKS in lib.run([lib.netperf(), "--show", "/nowhere"], timeout=20).err


def refused_without_jansson() -> None:
    """Each of the options is an error of one line, that says why, and nothing is measured."""
    for args in ("--show /nowhere", "--merge /nowhere", "--json", "--json=/nowhere/file"):
        got = lib.run([lib.netperf(), *args.split()], timeout=20)
        assert got.rc == 1 and not got.out, got
        lib.error_line(got, "netperf", args.split("=")[0].split()[0], LACKS)


def validator(schema: Any) -> "Callable[[Any], List[str]]":
    """What names the places where a document is not as the schema says. Raises MissingModule."""
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
    if made_without_jansson():
        report.case("a build without jansson says so", refused_without_jansson)
        return
    if why:
        report.skip("documents against the schema", why)
    with tempfile.TemporaryDirectory() as place, lib.Daemon() as daemon:
        runner = Runner(Path(place), daemon.port, errors)
        (runner.place / "selectors").write_text("THROUGHPUT,P99_LATENCY,REMOTE_CONG_CONTROL\nUUID\n")
        cases: "List[Tuple[str, Callable[[], Optional[str]]]]" = [
            (f"shown as printed: {args}", partial(same_as_live, runner, args, number))
            for number, args in enumerate(RUNS)]
        cases += [(case.__name__.replace("_", " "), partial(case, runner)) for case in (
            stands_alone, people_read_one_table, says_what_was_asked_and_granted,
            says_flows_and_engines, figures_agree, what_was_not_measured_is_null, latencies_have_fractions,
            an_older_document_is_shown, several_are_merged, has_both_ends_evidence,
            interim_results_are_a_series, keeps_secrets, odd_words_are_mended, until_interrupted,
            a_connection_test_interrupted,
            nothing_measured, no_control_connection, other_figures, evidence_is_kept, for_prometheus, damaged,
            earlier_number, later_versions_may_add, files_are_replaced_whole, files_that_cannot_be_written,
            wrong_options)]
        cases += [("every member is published", partial(every_member_is_published, runner, schema)),
                  ("ended by SIGINT", partial(ended_by, runner, signal.SIGINT, 0)),
                  ("ended by SIGTERM", partial(ended_by, runner, signal.SIGTERM, 143)),
                  ("ended by SIGHUP", partial(ended_by, runner, signal.SIGHUP, 129)),
                  ("dead peer", partial(dead_peer, runner, False)),
                  ("dead peer, document on standard output", partial(dead_peer, runner, True)),
                  ("stock daemon", partial(stock_daemon, runner))]
        report.cases(cases, 3)


if __name__ == "__main__":
    lib.main(suite)
