#!/usr/bin/env python3
"""Tests of scripts/netreport and of what it shares with the other scripts: results, ceilings, tables
in every format to the letter, plots by their SVG, the page by what it refers to."""

import cProfile
import csv
import html.parser
import json
import lzma
import math
import os
import pstats
import random
import re
import shutil
import subprocess
import sys
import tracemalloc
import unittest
import warnings
import xml.etree.ElementTree as ET
from pathlib import Path
from unittest import mock

import lib
from netkit import ceiling, compare, draw, mesh, methods, numbers, paths, plots, python, results, shown, tables, units

os.environ.setdefault("NETPERF", lib.netperf())    # which netreport asks for ceilings
NETREPORT = str(lib.SCRIPTS / "netreport")
SVG = "{http://www.w3.org/2000/svg}"


def matplotlib_is_there():
    return any(python.has(one, "matplotlib, jinja2") for one in {sys.executable, python.SYSTEM_PYTHON})


DRAWS = matplotlib_is_there()
NO_SCIPY = "" if any(python.has(one, "scipy.special") for one in {sys.executable, python.SYSTEM_PYTHON}) else "no scipy"
NO_PLOTS = "no matplotlib or jinja2: apt-get install python3-matplotlib python3-jinja2"


REPORT = lib.script("netreport")


def netreport(*args, env=None):
    """Status, output and errors of a netreport, in this process, or with an environment in one of its own. A slow machine
    would add lines of progress to the errors: progress_scripts.py is about those."""
    words = ["--progress", "never", *map(str, args)]
    if env is None:
        ceiling.MISSED.clear()
        with warnings.catch_warnings():     # unittest shows those that a script's users don't see
            warnings.simplefilter("ignore", DeprecationWarning)
            warnings.simplefilter("ignore", PendingDeprecationWarning)
            got = lib.called(REPORT.main, *words)
        return got.rc, got.out, got.err
    done = subprocess.run([sys.executable, NETREPORT, *words], capture_output=True, text=True, timeout=120,
                          stdin=subprocess.DEVNULL, env={**os.environ, **env})
    return done.returncode, done.stdout, done.stderr


def good(point, throughput, repetition=1, unit="10^6bits/s", **more):
    return results.Run(point, repetition, result={"THROUGHPUT": throughput, "THROUGHPUT_UNITS": unit,
                                                  **more},
                       started=f"{json.dumps(point)} {repetition}",
                       command=["netperf", "-H", "10.77.0.2", "-t", str(point.get("test"))])


def failed(point, words, repetition=1):
    return results.Run(point, repetition, status="failed", exit=1, stderr=f"hm\n{words}\n",
                       started=f"{json.dumps(point)} {repetition}", command=["netperf", "-l", "1"])


class Place(lib.InPlace):
    def refused(self, words, *args, status=1, **more):
        """With one line, which is returned, and nothing else."""
        rc, out, err = netreport(*args, **more)
        self.assertEqual((rc, out, err.count("\n")), (status, "", 1), (args, err))
        self.assertIn(words, err)
        return err

    def printed(self, *args, **more):
        """What netreport prints; it succeeds without a message."""
        rc, out, err = netreport(*args, **more)
        self.assertEqual((rc, err), (0, ""))
        return out

    def file(self, axes, runs, constants=None, name="r.jsonl", **header):
        path = str(self.dir / name)
        made = results.Header(plan="lab", title="The lab", constants=constants or {},
                              axes=[results.Axis(*axis) for axis in axes], **header)
        with results.Writer.create(path, made, overwrite=True) as writer:
            for run in runs:
                writer.write(run)
        return path

    def lab(self, **header):
        """Two tests, buffers of 16 and 32 KiB, sizes 64 and 1500: one point failed, one in part, one
        is missing."""
        tcp = {"test": "TCP_STREAM"}
        udp = {"test": "UDP_STREAM"}
        return self.file(
            [("test", ["TCP_STREAM", "UDP_STREAM"]), ("buffer", [16384, 32768], "bytes"),
             ("size", [64, 1500], "bytes")],
            [good({**tcp, "buffer": 16384, "size": 64}, 70.0),
             good({**tcp, "buffer": 16384, "size": 64}, 71.0, 2),
             failed({**tcp, "buffer": 16384, "size": 1500}, "netperf: 50 % & _lost_"),
             failed({**tcp, "buffer": 16384, "size": 1500}, "netperf: 50 % & _lost_", 2),
             good({**tcp, "buffer": 32768, "size": 64}, 80.0),
             failed({**tcp, "buffer": 32768, "size": 64}, "netperf: no answer", 2),
             good({**tcp, "buffer": 32768, "size": 1500}, 94.0),
             good({**tcp, "buffer": 32768, "size": 1500}, 94.2, 2),
             good({**udp, "buffer": 16384, "size": 64}, 48.5),
             good({**udp, "buffer": 16384, "size": 1500}, 92.2),
             good({**udp, "buffer": 32768, "size": 64}, 48.7)],
            {"mtu": 1500, "rate": 100000000, "host": "10.77.0.2"}, repetitions=2, **header)

    def sets(self, one={}, two={}, **constants):
        """Five runs at two points, the second set's twice as high; header members of each."""
        return [self.file([("size", [64, 576])], [
            good({"size": size}, rate + off, n) for size in (64, 576)
            for n, off in enumerate((0.0, 0.1, -0.1, 0.05, -0.05), 1)], constants, name, **header)
            for name, rate, header in (("mon.jsonl", 10.0, one), ("tue.jsonl", 20.0, two))]


class Ceilings(Place):
    def test_costs(self):
        """netlab's own arithmetic, and netperf's."""
        for wire in (ceiling.Wire(), ceiling.ethernet(vlan=True), ceiling.Wire(0, 0, 0)):
            for size in (0, 1, 17, 18, 1472):
                self.assertEqual(ceiling.ask("UDP_STREAM", wire, size=size)["wire"], wire.cost(size + 28))

    def test_of_a_point(self):
        link = {"rate": "100mbit", "mtu": 1500}
        for point, constants, value in (
                ({"test": "TCP_STREAM"}, link, 94.148), ({"test": "UDP_STREAM", "size": 64}, link, 49.231),
                ({"test": "UDP_STREAM", "family": 6}, link, 94.408), ({"test": "TCP_MAERTS", "mss": 500}, link, 84.429),
                ({"test": "TCP_STREAM"}, {**link, "host": "fd77::2"}, 92.848),
                ({"test": "UDP_STREAM"}, {**link, "test_options": "-m 576 -R 1"}, 89.720),
                ({"test": "TCP_RR"}, link, 68681.319), ({"test": "TCP_RR", "flows": 9}, link, 137362.637),
                ({"test": "TCP_RR", "flows": 3, "processes": 3, "threads": "3,2"}, link, 137362.637),
                ({"test": "TCP_RR", "processes": 2}, {**link, "delay": "10ms"}, 2 * 49.964),
                ({"test": "TCP_RR"}, {**link, "test_options": "-b8"}, 137362.637),
                ({"test": "TCP_RR"}, {**link, "delay": "10ms"}, 49.964)):
            got = ceiling.of_point(point, constants)
            self.assertAlmostEqual(got.value, value, delta=0.002, msg=(point, constants))
        self.assertEqual(ceiling.of_point({"test": "UDP_STREAM", "size": 1}, link,
                                          {"LOCAL_SEND_SIZE": 1472}).value,
                         1e2 * 1472 / 1538)
        for point, constants in (({"test": "TCP_STREAM"}, {"mtu": 1500}), ({"test": "LOC_CPU"}, link),
                                 ({"test": "UDP_STREAM", "size": 70000}, link),
                                 ({"test": "TCP_STREAM"}, {"rate": 1e8})):
            self.assertIsNone(ceiling.of_point(point, constants), (point, constants))

    def test_units(self):
        for value, unit, mbit in ((94.0, "10^6bits/s", 94.0), (0.094, "10^9bits/s", 94.0),
                                  (94e3, "10^3bits/s", 94.0), (1.0, "MBytes/s", 8.388608)):
            self.assertAlmostEqual(ceiling.in_unit(value, unit), mbit, msg=unit)

    def test_what_is_printed(self):
        out = self.printed("--ceiling", "--mtu", 1500, "--rate", "100mbit")
        self.assertRegex(out, r"TCP_STREAM +1448 +1538 +94\.148 +94\.148\n")
        self.assertRegex(out, r"TCP_CRR +1,1 +369 +369 +19290\.1 +33875\.3 +SYN 98, SYN\+ACK 98, ")
        out = netreport("--ceiling", "--ipv6", "--no-timestamps", "--vlan", "--preamble", 0, "--gap", 0,
                        "--size", 64, "--rate", "1gbit", "--format", "csv")[1]
        self.assertIn("TCP_STREAM,1440,1522,94.612,946.124\n", out)
        self.assertIn("UDP_STREAM,64,134,47.761,477.612\n", out)
        for form in ("markdown", "latex"):
            self.assertIn("94.148", netreport("--ceiling", "--format", form)[1])

    def test_without_a_netperf(self):
        path = self.file([("size", [64])], [good({"size": 64}, 40.0)],
                         {"test": "UDP_STREAM", "mtu": 1500, "rate": "100mbit"})
        real = os.environ["NETPERF"]
        for name, words in (("/nonesuch", "no netperf beside this script"), ("/bin/true", "/bin/true has no")):
            with mock.patch.dict(os.environ, {"NETPERF": name}):
                for args in (["--ceiling"], [path, "--of-ceiling"]):
                    self.assertIn("in NETPERF", self.refused(words, *args, env={}))
                out = self.printed(path, env={})
                self.assertIn("40.0", out)
        self.assertEqual(os.environ["NETPERF"], real)

    def test_refusals(self):
        for args, words in (
                (["--rate", "5"], "argument --rate: '5' is not a rate (try 100mbit"),
                (["--mtu", "x"], "argument --mtu: 'x' is not a number"), (["--mtu", "67"], "argument --mtu: '67' is not a number of bytes (68"),
                (["--mtu", "1279", "--ipv6"], "MTU 1279: IPv6 needs 1280"),
                (["--size", "65508"], "a datagram of 65508 bytes"),
                (["--delay", "10"], "argument --delay: '10' is not a time (try 50us"),
                (["x.jsonl"], "x.jsonl: not together with --ceiling"),
                (["--html", "x"], "--html: not together with --ceiling"),
                (["--format", "tap"], "--format tap: only with --mesh"), (["--rows", "x"], "--rows: not together with --ceiling"),
                (["--where", "size=1"], "--where: not together with --ceiling"),
                (["--format", "tidy"], "--format tidy: not together with --ceiling, which reads no results (try csv)"),
                (["--nonesuch"], "--nonesuch")):
            self.refused(f"netreport: {words}" if args[0] != "--nonesuch" else words, "--ceiling", *args, status=2)


class Files(Place):
    """Reading and writing results."""

    def points(self):
        return [("size", [1, 2])]

    def test_what_is_written_is_read(self):
        run = results.Run({"size": 1}, 3, 7, "t", 1.5, ["netperf", "\udcff é"], [{"command": "x"}],
                          result={"THROUGHPUT": 1.25}, interim=[[0.5, 1.0]], more={"new": [1]})
        path = self.file(self.points(), [run], {"mtu": 9000}, seed=5, more={"newer": {"a": 1}})
        got = results.read(path)
        self.assertEqual(got.runs, [run])
        self.assertEqual(results.read(path, {"THROUGHPUT"}).runs[0].more, {})   # 200,000 runs are compared in 400 MB
        self.assertEqual(got.header.more, {"newer": {"a": 1}})
        self.assertEqual(got.header.seed, 5)
        self.assertEqual(got.warnings, [])

    def test_other_readers_of_json(self):
        """What a quick one refuses, such as NaN, is read by Python's."""
        path = self.file(self.points(), [good({"size": 1}, 1.0), good({"size": 2}, 123.5), good({"size": 1}, 3.0, 2)])
        Path(path).write_text(Path(path).read_text().replace("123.5", "NaN"))
        with mock.patch.object(results, "loads_quickly", lambda text: json.loads(text, parse_constant=int)):
            strictly = results.read(path)
        self.assertEqual(len(strictly.runs), 3)
        self.assertEqual([str(run) for run in strictly.runs], [str(run) for run in results.read(path).runs])

    def test_memory_grows_with_what_is_kept(self):
        """Of what netperf printed nothing is kept: memory is at most 1.5 times the file, and grows like it."""
        runs = [good({"size": 1}, 1.0 + n / 7, n) for n in range(1, 4001)]
        for run in runs:
            run.stdout = 600 * "x"
        peaks = []
        for count in (2000, 4000):
            path = self.file(self.points(), runs[:count])
            tracemalloc.start()
            sweep = tables.Sweep(results.read(path))
            tables.build(sweep)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        self.assertLess(peaks[1], 2.2 * peaks[0])
        self.assertLess(peaks[1], 1.5 * os.path.getsize(path))

    def test_points_of_one_run_each(self):
        """A table and a comparison take the same memory and number of calls for each, however many there are."""
        used = []
        for count in (400, 800):
            path = self.file([("size", [*range(count)])], [good({"size": n}, 1.0 + n / 7) for n in range(count)])
            tracemalloc.start()
            tables.build(tables.Sweep(results.read(path)))
            memory = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            with cProfile.Profile() as work:
                [*compare.Comparison(compare.Side(path, ()), compare.Side(path, ()), "THROUGHPUT", 2.0).notes()]
            used.append((memory, pstats.Stats(work).total_calls))
        print("memory, calls:", used)
        self.assertLess(used[1][0], 800 * 2700)
        self.assertLess(used[1][1], 2.2 * used[0][1])

    def test_a_crash_at_every_byte(self):
        """Cut anywhere behind the header, a file is read, continued, and whole afterwards."""
        runs = [good({"size": 1}, 1.0), good({"size": 2}, 2.0)]
        whole = Path(self.file(self.points(), runs)).read_bytes()
        header, first = (whole.index(b"\n") + 1, whole.index(b"\n", whole.index(b"\n") + 1) + 1)
        cut = self.dir / "cut.jsonl"
        for length in range(header, len(whole) + 1):
            cut.write_bytes(whole[:length])
            got = results.read(str(cut))
            count = 0 if length < first - 1 else 1 if length < len(whole) - 1 else 2
            self.assertEqual(len(got.runs), count, length)
            torn = length not in (header, first - 1, first, len(whole) - 1, len(whole))
            self.assertEqual(len(got.warnings), int(torn), length)
            writer, before = results.Writer.resume(str(cut))
            with writer:
                for run in runs[len(before.runs):]:
                    writer.write(run)
            self.assertEqual(cut.read_bytes(), whole, length)

    def test_a_good_run_takes_the_place_of_a_failed_one(self):
        path = self.file(self.points(), [failed({"size": 1}, "a"), failed({"size": 1}, "b"),
                                         good({"size": 1}, 4.0), failed({"size": 1}, "c"),
                                         failed({"size": 2}, "d"), failed({"size": 2}, "e")])
        got = results.read(path)
        self.assertEqual([run.status for run in got.runs], ["ok", "failed"])
        self.assertEqual(got.runs[1].reason(), "e")
        self.assertEqual(list(got.done()), [('{"size":1}', 1)])

    def test_reasons(self):
        one = failed({}, "")
        one.stderr = ""
        self.assertEqual(one.reason(), "exit status 1")
        one.exit = None
        self.assertEqual(one.reason(), "did not end")
        one.before = [{"command": "modprobe x", "status": 1, "output": "a\nno such module\n"}]
        self.assertEqual(one.reason(), "modprobe x: no such module")

    def test_one_writer_at_a_time(self):
        path = self.file(self.points(), [])
        with results.Writer.resume(path)[0]:
            with self.assertRaisesRegex(results.ResultsError, "another netsweep"):
                results.Writer.resume(path)
        with self.assertRaisesRegex(results.ResultsError, "--resume goes on"):
            results.Writer.create(path, results.Header())

    def test_merge(self):
        one = self.file(self.points(), [good({"size": 1}, 1.0)], {"mtu": 1500, "length": 1}, "a.jsonl")
        two = self.file(self.points(), [good({"size": 1}, 3.0)], {"mtu": 9000, "length": 1}, "b.jsonl")
        got = results.merge([results.read(one), results.read(two)])
        self.assertEqual([(axis.name, axis.values) for axis in got.header.axes],
                         [("size", [1, 2]), ("mtu", [1500, 9000])])
        self.assertEqual([run.point for run in got.runs], [{"size": 1, "mtu": 1500},
                                                          {"size": 1, "mtu": 9000}])
        self.assertEqual(got.header.constants, {"length": 1})
        again = results.merge([results.read(one), results.read(one)])
        self.assertEqual(len(again.runs), 1)
        none = results.read(self.file(self.points(), [], {"mtu": 2000}, "none.jsonl"))
        alone = results.merge([results.read(one), none])
        self.assertEqual((alone.path, len(alone.warnings)), (one, 1))
        more = self.file(self.points(), [good({"size": 1}, 3.0, 2)], {"mtu": 1500, "length": 1})
        pooled = results.merge([results.read(one), results.read(more)])
        self.assertEqual([run.repetition for run in pooled.runs], [1, 2])
        paths = [self.file(self.points(), [good({"size": 1}, 1.0), then], {}, name, plan_text="p") for name, then in (
            ("copy.jsonl", failed({"size": 1}, "no", 2)), ("resumed.jsonl", good({"size": 1}, 1.0, 2)))]
        for both in (paths, paths[::-1]):   # copied, then resumed
            self.assertEqual([run.ok for run in results.merge([results.read(path) for path in both]).runs], [True, True])

    def test_faults_name_file_line_and_mend(self):
        header = json.dumps(results.Header().as_json())
        run = json.dumps(good({"size": 1}, 1.0).as_json())
        for text, words in (
                ("", "the file is empty"), ('{"schema":', "ends within its first line"),
                ("x\n", "line 1 is not JSON"), ("[1]\n", "line 1 is not a JSON object"),
                ("{}\n", "line 1 is not a header of a sweep"),
                ('{"schema": "plumbline-sweep/9"}\n', "its schema is plumbline-sweep/9"),
                (header + "\nx\n" + run + "\n", "line 2 is damaged"),
                (header + "\n" + header + "\n", "line 2: a second header"),
                (header + "\n" + run + "\n" + run + "\n", "line 3: a second good run"),
                (header + '\n{"schema": "plumbline-run/1"}\n', 'line 2: no point'),
                (header + "\n" + run.replace('"ok"', '"fine"') + "\n", '"status" is "fine"'),
                (header + "\n" + run.replace('"exit": 0', '"exit": "0"') + "\n", 'exit: "0" is not a whole number'),
                (header + "\n", "a sweep without runs")):
            path = self.dir / "bad.jsonl"
            path.write_text(text)
            self.assertIn(words, self.refused(f"netreport: {path}: ", path))
        self.assertIn("No such file", netreport(self.dir / "none")[2])


TEXT = """\
TCP_STREAM: THROUGHPUT in Mbit/s, mean \u00b1 standard deviation of 1 to 2 runs (n)

buffer \\ size               64             1500  average
--------------------------------------------------------
16 KiB         70.50 \u00b10.71 (2)      -              70.50
32 KiB         80.00* (1)       94.10 \u00b10.14 (2)    87.05
--------------------------------------------------------
average        75.25            94.10              81.53

TCP_STREAM, buffer 16 KiB, size 1500: 2 of 2 failed: netperf: 50 % & _lost_
TCP_STREAM, buffer 32 KiB, size 64: 1 of 2 failed: netperf: no answer

UDP_STREAM: THROUGHPUT in Mbit/s

buffer \\ size     64   1500  average
------------------------------------
16 KiB         48.50  92.20    70.35
32 KiB         48.70      -    48.70
------------------------------------
average        48.60  92.20    63.13

UDP_STREAM, buffer 32 KiB, size 1500: not measured
"""
CSV = """\
test,buffer \\ size,64,1500,average
TCP_STREAM,16384,70.50,-,70.50
TCP_STREAM,32768,80.00,94.10,87.05
TCP_STREAM,average,75.25,94.10,81.53
UDP_STREAM,16384,48.50,92.20,70.35
UDP_STREAM,32768,48.70,-,48.70
UDP_STREAM,average,48.60,92.20,63.13
"""
MARKDOWN = """\
**TCP_STREAM: THROUGHPUT in Mbit/s, mean \u00b1 standard deviation of 1 to 2 runs (n)**

| buffer \\\\ size | 64 | 1500 | average |
|---|---:|---:|---:|
| 16 KiB | 70.50 \u00b10.71 (2) | - | 70.50 |
| 32 KiB | 80.00\\* (1) | 94.10 \u00b10.14 (2) | 87.05 |
| average | 75.25 | 94.10 | 81.53 |

- TCP_STREAM, buffer 16 KiB, size 1500: 2 of 2 failed: netperf: 50 % & _lost_
- TCP_STREAM, buffer 32 KiB, size 64: 1 of 2 failed: netperf: no answer

"""
LATEX = r"""\begin{table}[htbp] % \usepackage{booktabs}
  \centering
  \caption{TCP\_STREAM: THROUGHPUT in Mbit/s, mean $\pm$ standard deviation of 1 to 2 runs (n)}
  \begin{tabular}{lrrr}
    \toprule
    buffer \textbackslash{} size & 64 & 1500 & average \\
    \midrule
    16 KiB & 70.50 $\pm$0.71 (2) & - & 70.50 \\
    32 KiB & 80.00* (1) & 94.10 $\pm$0.14 (2) & 87.05 \\
    \midrule
    average & 75.25 & 94.10 & 81.53 \\
    \bottomrule
  \end{tabular}
  \par\footnotesize TCP\_STREAM, buffer 16 KiB, size 1500: 2 of 2 failed: netperf: 50 \% \& \_lost\_
"""


class Tables(Place):
    def made(self, *args, rc=0):
        got = netreport(*args)
        self.assertEqual(got[0], rc, got)
        return got[1]

    def test_every_format_to_the_letter(self):
        path = self.lab()
        self.assertEqual(self.made(path), TEXT)
        rc, out, err = netreport(path, "--format", "csv")
        self.assertEqual(out, CSV)
        self.assertEqual(err.splitlines()[0], "netreport: gap: TCP_STREAM, buffer 16 KiB, size 1500: "
                         "2 of 2 failed: netperf: 50 % & _lost_")
        self.assertEqual(len(err.splitlines()), 3)
        self.assertTrue(self.made(path, "--format", "markdown").startswith(MARKDOWN))
        self.assertTrue(self.made(path, "--format", "latex").startswith(LATEX))

    def test_where(self):
        path = self.lab()
        out = self.made(path, "--where", "test=UDP_STREAM", "--format", "csv", "--no-averages")
        self.assertEqual(out, "buffer \\ size,64,1500\n16384,48.50,92.20\n32768,48.70,-\n")
        self.assertTrue(self.made(path, "--where", "buffer=16384", "--where", "test=UDP_STREAM").startswith(
            "UDP_STREAM, buffer 16 KiB: THROUGHPUT in Mbit/s\n"))
        for conditions in (["size>64"], ["size=1500", "test=TCP_STREAM", "test=UDP_STREAM"], ["size<=1500", "size>=65"]):
            out = self.made(path, *(word for one in conditions for word in ("--where", one)), "--format", "csv",
                            "--no-averages")
            self.assertEqual(out, "buffer \\ test,TCP_STREAM,UDP_STREAM\n16384,-,92.20\n32768,94.10,-\n")
        for condition, words in (("size", "no condition, such as size=64 (axes: test, buffer, size)"),
                                 ("sizes=64", "no such axis (axes: test, buffer, size)"),
                                 ("size=65", "no such value (try 64, 1500)"), ("size>1500", "no such value")):
            self.refused(f"netreport: --where {condition}: {words}", path, "--where", condition)

    def test_of_ceiling(self):
        out = self.made(self.lab(), "--of-ceiling", "--format", "csv", "--digits", 1)
        self.assertIn(f"TCP_STREAM,16384,{100 * 70.5 / 94.14824:.1f},-,", out)
        self.assertIn(f"UDP_STREAM,16384,{100 * 48.5 / 49.23077:.1f},{100 * 92.2 / 92.36453:.1f},", out)
        ten = self.made(self.lab(), "--of-ceiling", "--rate", "1gbit", "--format", "csv", "--digits", 2)
        self.assertIn(f"TCP_STREAM,16384,{10 * 70.5 / 94.14824:.2f},-,", ten)

    def test_units_of_transactions(self):
        """-f changes the throughput alone, and what is sent and received of transactions is counted in bits."""
        path = self.file([("size", [1, 2])], [good({"size": size}, 0.0004, unit="10^9bits/s", TRANSACTION_RATE=50000.0)
                                              for size in (1, 2)], {"test": "TCP_RR"})
        out = self.made(path, "--figure", "TRANSACTION_RATE")
        self.assertRegex(out, r"^TCP_RR: TRANSACTION_RATE in transactions/s\n[^$]*\n1 +50000\n")
        self.assertIn("THROUGHPUT in Mbit/s", self.made(path))
        path = self.file([("size", [1, 2])], [good({"size": size}, 50000.0, unit="Trans/s", LOCAL_SEND_THROUGHPUT=0.4)
                                              for size in (1, 2)], {"test": "TCP_RR", "rate": 10**9, "mtu": 1500})
        self.assertIn("LOCAL_SEND_THROUGHPUT in Mbit/s", self.made(path, "--figure", "LOCAL_SEND_THROUGHPUT"))
        self.assertRegex(self.made(path, "--figure", "LOCAL_SEND_THROUGHPUT", "--of-ceiling"), "(?m)^1 +-$")

    def test_a_plan_of_one_point(self):
        path = self.file([], [good({}, 94.1), good({}, 94.3, 2)], {"test": "TCP_MAERTS"})
        self.assertRegex(self.made(path), r"THROUGHPUT in Mbit/s, .* of 2 runs\n[^$]*\nTCP_MAERTS +94\.20 \u00b10\.14\n")
        self.assertIn("TCP_MAERTS,1,", self.made(path, "--format", "tidy"))
        self.assertRegex(self.made(self.file([], [failed({}, "no")])), r"\nTCP_STREAM +-\n")

    def test_no_ceiling_is_known(self):
        path = self.file([("buffer", [1, 2])], [good({"buffer": 1}, 5.0)])
        rc, out, err = netreport(path, "--of-ceiling")
        self.assertEqual((rc, out), (1, ""))
        self.assertIn("--of-ceiling: no point's ceiling is known: say what the link is by --rate", err)
        self.assertIn("5.31", self.made(path, "--of-ceiling", "--rate", "100mbit", "--mtu", 1500))

    def test_axes_can_be_chosen(self):
        path = self.lab()
        out = self.made(path, "--rows", "size", "--columns", "test", "--group", "buffer", "--format",
                        "csv")
        self.assertEqual(out.splitlines()[:3], ["buffer,size \\ test,TCP_STREAM,UDP_STREAM",
                                                "16384,64,70.50,48.50", "16384,1500,-,92.20"])
        for args, words in ((["--rows", "x"], "--rows x: no such axis (try test, buffer, size)"),
                            (["--group", "test,y"], "--group y: no such axis"),
                            (["--rows", "size", "--columns", "size"], "axis size is asked for twice"),
                            (["--figure", "X"], "--figure X: no run has it (try THROUGHPUT)"),
                            (["--digits", "x"], "argument --digits: 'x' is not a number"),
                            (["--size", "1"], "--size: only with --ceiling"),
                            (["--plot", "a.gif"], "--plot a.gif: ends neither in .png nor .svg nor .pdf"),
                            (["--tidy", "a.txt"], "--tidy a.txt: ends neither in .csv nor .parquet")):
            rc, out, err = netreport(path, *args)
            self.assertIn(rc, (1, 2))
            self.assertEqual((out, err.count("\n")), ("", 1), err)
            self.assertIn(f"netreport: {words}", err)

    def test_a_point_that_lacks_an_axis_is_told(self):
        """Its value is that of the plan's constants, or none."""
        runs = [good({"test": test, "size": size}, 10.0) for test in ("A", "B") for size in (1, 2)]
        for constants, row in (({}, "default"), ({"test": "C"}, "C")):
            path = self.file([("test", ["A", "B"]), ("size", [1, 2])], [*runs, good({"size": 2}, 11.0)], constants)
            self.assertIn(f"{row},,11.00\n", self.made(path, "--rows", "test", "--format", "csv", "--no-averages").replace("-,", ","))
            if DRAWS:
                self.assertEqual(netreport(path, "--plot", self.dir / "p.svg"), (0, "", ""))

    def test_what_is_chosen_by_itself(self):
        def layout(*axes, mixed=False):
            runs = [good({name: values[0] for name, *values in axes}, 1.0)]
            path = self.file([(name, values) for name, *values in axes], runs)
            got = tables.choose(tables.Sweep(results.read(path)), mixed=mixed)
            return got.rows, got.columns, got.groups

        test = ("test", "TCP_STREAM", "UDP_STREAM")
        self.assertEqual(layout(("size", 1, 2), test, ("buffer", 1, 2)), ("buffer", "size", ["test"]))
        self.assertEqual(layout(test, ("mtu", 1, 2)), ("mtu", "test", []))
        self.assertEqual(layout(test, ("mtu", 1, 2), mixed=True), ("mtu", None, ["test"]))
        self.assertEqual(layout(test), ("test", None, []))
        self.assertEqual(layout(("DMA_length", 0, 1), ("test", "A", "B")), ("DMA_length", "test", []))
        self.assertEqual(layout(("size", 64)), ("size", None, []))
        self.assertEqual(layout(("threads", 1, "2,1"), test, ("flows", 1, 9)), ("flows", "threads", ["test"]))
        self.assertEqual(layout(("processes", 1, 9), ("flows", 1, 9)), ("flows", "processes", []))
        self.assertEqual(layout(("mtu", 1, 2), ("family", 4, 6), test, ("nodelay", True, False)),
                         ("mtu", "nodelay", ["family", "test"]))

    def test_what_the_plan_leaves_out_is_no_gap(self):
        axes = [("size", [1, 2, 3]), ("test", ["A", "B", "C"]), ("family", [4, 6])]
        runs = [good({"size": size, "test": "A", "family": 4}, 90.0 + size) for size in (1, 2)]
        skips = [{"test": "B", "size": ["> 2", 1]}, {"test": "A", "size": 1, "family": 6}, {"test": "C"}]
        out = self.made(self.file(axes, runs, skips=skips), "--group", "family")
        four, six = out.split("IPv6")[:2]
        self.assertRegex(four, r"(?m)^1 +91\.00 +n/a$")
        self.assertRegex(four, r"(?m)^2 +92\.00 +-$")
        self.assertRegex(four, r"(?m)^3 +- +n/a$")
        self.assertIn("IPv4, size 3, A: not measured", four)
        self.assertIn("IPv4, size 2, B: not measured", four)
        self.assertNotIn("C", four.splitlines()[2])     # a column of nothing
        self.assertNotRegex(six, r"(?m)^1 ")
        self.assertRegex(six, r"(?m)^2 +- +-$")         # a table of what is still to be measured
        self.assertEqual(out.count("not measured"), 5)
        # Where it is not known what the plan leaves out only what was tried is shown.
        self.assertRegex(self.made(self.file(axes, runs), "--group", "family"), r"(?m)^1 +91\.00$")
        many = self.file([("size", list(range(9))), ("family", [4, 6])], [good({"size": 1, "family": 4}, 9.0)],
                         skips=[])
        self.assertIn("\n17 of 18 not measured\n", self.made(many))

    def test_the_plan_of_several_files(self):
        axes, runs = [("size", [1, 2, 3])], [good({"size": 1}, 5.0)]
        one = self.file(axes, runs, skips=[{"size": 2}])
        for more, rows in (({"skips": [{"size": 2}]}, ["1", "3"]), ({"skips": []}, ["1"]), ({}, ["1"])):
            two = self.file(axes, [good({"size": 1}, 6.0)], name="two.jsonl", **more)
            out = self.made(one, two)
            self.assertEqual(re.findall(r"(?m)^(\d) ", out), rows)

    def test_figures_statistics_and_averages(self):
        axes = [("test", ["TCP_RR", "UDP_RR"])]
        path = self.file(axes, [good({"test": "TCP_RR"}, 17000.0, n, "Trans/s", P99_LATENCY=50.5 + n)
                                for n in (1, 2, 3)], repetitions=3)
        out = self.made(path)
        self.assertRegex(out, r"(?m)^TCP_RR +17000 \u00b10$")
        self.assertNotIn("average", out)        # of tests it would mean nothing
        for statistic, value in (("min", "51.50"), ("max", "53.50"), ("median", "52.50"),
                                 ("stddev", "1.00")):
            self.assertIn(value, self.made(path, "--figure", "P99_LATENCY", "--statistic", statistic))
        self.assertIn("P99_LATENCY in us, mean \u00b1 standard deviation of 3 runs",
                      self.made(path, "--figure", "P99_LATENCY"))
        self.assertIn("P99_LATENCY in us, mean of 3 runs",
                      self.made(path, "--figure", "P99_LATENCY", "--spread", "none"))
        self.assertRegex(self.made(path, "--statistic", "n"), r"(?m)^TCP_RR +3\.00$")
        self.assertNotIn("average", self.made(self.lab(), "--no-averages"))
        self.assertRegex(self.made(self.file([("size", [1, 2])], [good({"size": 1}, 0.044), good({"size": 2}, 20000.0)])), r"(?m)^1 +0\.044$")
        alone = self.file(axes, [good({"test": "TCP_RR"}, 17000.0, unit="Trans/s")])
        self.assertRegex(self.made(alone, "--statistic", "stddev"), r"(?m)^TCP_RR +-$[^$]*one run has no standard deviation")

    def test_flows_and_threads(self):
        runs = [good({"flows": flows, "threads": threads}, 90.0 + flows, JAIN_INDEX=1 - flows / 100,
                     MIN_FLOW_THROUGHPUT=80.0 / flows) for flows in (1, 10) for threads in (1, "2,1")]
        for run in runs:
            run.command += ["--flows"]
        path = self.file([("flows", [1, 10]), ("threads", [1, "2,1"])], runs)
        out = self.made(path)
        self.assertRegex(out, r"(?m)^flows \\ threads +1 +2,1$")     # of flows no average means anything
        self.assertRegex(out, r"(?m)^10 +100\.00 +100\.00$")
        least = self.made(path, "--figure", "MIN_FLOW_THROUGHPUT")
        self.assertIn("MIN_FLOW_THROUGHPUT in Mbit/s", least)
        self.assertRegex(self.made(path, "--figure", "JAIN_INDEX"), r"(?m)^10 +0\.90+ ")

    def test_confidence_that_was_not_reached(self):
        runs = [good({"size": size}, 90.0 + n, n) for size in (64, 576) for n in (1, 2)]
        for run, reached in zip(runs, (False, True, False, False)):
            run.more["confidence"] = {"level": 95, "width": 4.2, "wanted": 2.5, "reached": reached}
        for more in ([], [failed({"size": 576}, "no answer", 3)]):      # a failed run has no confidence
            out = self.made(self.file([("size", [64, 576])], [*runs, *more]))
            self.assertIn("\nsize 576: not sure: the mean's interval is 4.2 % wide after 2 runs, 2.5 % was", out)
            self.assertEqual(out.count("not sure"), 1)

    def test_several_files(self):
        one = self.file([("size", [64, 576])], [good({"size": 64}, 1.0), good({"size": 576}, 2.0)],
                        {"mtu": 1500}, "a.jsonl")
        two = self.file([("size", [64, 576])], [good({"size": 64}, 3.0), good({"size": 576}, 4.0)],
                        {"mtu": 9000}, "b.jsonl")
        self.assertEqual(self.made(one, two, "--format", "csv", "--no-averages"),
                         "mtu \\ size,64,576\n1500,1.00,2.00\n9000,3.00,4.00\n")


ETHERNET = {"client": {"kernel": "6.1", "interface": {"name": "eth0", "mtu": 9000, "speed": 10000}}}


class Doubts(Place):
    """Runs that were disturbed, and runs above their ceiling, are marked, and a line says why."""

    def runs(self):
        calm, short = ({"share": share, "seconds": 10.0, "reasons": {"steal": 10 * share, "switches": 0.1}}
                       for share in (0.01, 0.04))
        made = [good({"size": size}, rate, n, REMOTE_RECV_THROUGHPUT=rate) for size, rate in ((64, 48.0), (1472, 98.0))
                for n in (1, 2)]
        for run, told in zip(made, (calm, {**short, "share": 0.21}, calm, short)):
            run.more["disturbed"] = told
        return self.file([("size", [64, 1472], "bytes")], made, {"test": "UDP_STREAM", "rate": 1e8, "mtu": 1500})

    def test_tables(self):
        text = self.printed(self.runs(), "--no-averages")
        self.assertRegex(text, r"(?m)^64 +48\.00! \u00b10\.00$")
        self.assertRegex(text, r"(?m)^1472 +98\.00 \u00b10\.00$")
        self.assertIn("\nsize 64: 1 of 2 runs was disturbed, 11 % of the time: steal 0.4 s, switches 0.1 s\n", text)
        rc, text, err = netreport(self.runs(), "--of-ceiling", "--format", "csv")
        self.assertEqual(err.count("gap: size 64: 1 of 2 runs was disturbed"), 1)
        self.assertIn("gap: size 1472: 102.4 % of its ceiling: what a queue held at the end arrived later", err)

    def test_many_are_told_in_one_line(self):
        sizes = list(range(1, 31))
        runs = [good({"size": size}, 48.0) for size in sizes]
        for run in runs[:27]:
            run.more["disturbed"] = {"share": 0.5, "seconds": 10.0, "reasons": {"steal": 5.0}}
        text = netreport(self.file([("size", sizes)], runs, {"test": "TCP_STREAM"}))[1]
        self.assertEqual(text.splitlines()[-2:], ["", "27 of 30 points (!): 27 of 27 runs were disturbed, 50 % of the time: steal 140 s"])
        runs = [good({"size": size}, 48.0, n, **({"DROPPED": 1.0} if n == 1 else {})) for size in sizes for n in (1, 2)]
        text = netreport(self.file([("size", sizes)], runs, {"test": "TCP_STREAM"}), "--figure", "DROPPED")[1]
        self.assertEqual(text.splitlines()[-2:], ["", "30 points (*) have runs without DROPPED"])

    def test_percentiles(self):
        """Of one run where they lie; not where it had too few transactions."""
        runs = [good({"size": size}, 1000.0, 1, THROUGHPUT_UNITS="Trans/s", P99_LATENCY=99) for size in (1, 64)]
        for run, told in zip(runs, ([98.25, 101.5], None)):
            run.more["intervals"] = {"p50": [1.0, 2.0], "p99": told}
        made = self.file([("size", [1, 64], "bytes")], runs, {"test": "TCP_RR"})
        text = netreport(made, "--no-averages", "--figure", "P99_LATENCY")[1]
        self.assertRegex(text, r"(?m)^1 +99\.00 \[98\.25, 101\.50\]$")
        self.assertRegex(text, r"(?m)^64 +99\.00!$")
        self.assertIn("\nsize 64: too few transactions for P99_LATENCY, which takes 368: 1 of 1 runs\n", text)
        self.assertNotIn("[", netreport(made, "--no-averages")[1])

    @unittest.skipUnless(DRAWS, NO_PLOTS)
    def test_page(self):
        out = self.dir / "p.html"
        self.assertEqual(netreport(self.runs(), "--html", out)[2], "")
        for words in ("size 64: 1 of 2 runs was disturbed, 11 %", "size 1472: 102.4 % of its ceiling", "48.00<small>!"):
            self.assertIn(words, out.read_text())

    def test_other_reasons(self):
        for test, rate, words in (("TCP_STREAM", 95.0, "a longer run has less of it"),
                                  ("TCP_STREAM", 200.0, "rate or MTU are not those of the link"), ("TCP_STREAM", 94.0, "")):
            sweep = tables.Sweep(results.read(self.file([("size", [1])], [good({"size": 1}, rate)], {
                "test": test, "rate": 1e8, "mtu": 1500})))
            said = sweep.beyond(next(iter(sweep.cells.values())))
            self.assertTrue(words in said and bool(words) == bool(said), said)


class Sets(Place):
    """Several sets of runs of the same points."""

    def runs_at(self, *paths):
        sweep = tables.Sweep(results.merge([results.read(path) for path in paths]))
        return sweep, {len(cell.runs) for cell in sweep.cells.values()}

    def alter(self, paths):
        """Makes the runs of the second file others than the first one's, as those of another day are."""
        text = Path(paths[1]).read_text()
        Path(paths[1]).write_text(text.replace('"started": "{', '"started": "2{'))
        return paths

    def test_labels_tell_them_apart(self):
        paths = self.alter(self.sets({"more": {"label": "old"}}, {"more": {"label": "new"}}))
        sweep, counts = self.runs_at(*paths)
        self.assertEqual((sweep.values["label"], counts), (["old", "new"], {5}))
        out = self.printed(*paths)
        self.assertIn("mean \u00b1 standard deviation of 5 runs", out)
        self.assertRegex(out, r"(?m)^64 +10\.00 \u00b10\.08 +20\.00 \u00b10\.08$")
        self.assertNotRegex(out, "label.*average")
        paths = self.alter(self.sets({"more": {"label": "old"}}, {}))
        self.assertEqual(self.runs_at(*paths)[0].values["label"], ["old", "tue"])

    def test_files_tell_them_apart_where_environments_differ(self):
        other = {"client": {"kernel": "6.2", "interface": ETHERNET["client"]["interface"]}}
        paths = self.alter(self.sets({"environment": ETHERNET}, {"environment": other}))
        sweep, counts = self.runs_at(*paths)
        self.assertEqual((sweep.values["file"], counts), (["mon", "tue"], {5}))
        for same in ({}, {"environment": {"client": None}}, {"environment": ETHERNET}):
            paths = self.alter(self.sets({"environment": ETHERNET}, same))
            sweep, counts = self.runs_at(*paths)
            self.assertEqual((sweep.varying(), counts), (["size"], {10}))
            self.assertIn("of 10 runs", netreport(*paths)[1])
        both = self.sets({"environment": ETHERNET}, {"environment": other})
        self.assertEqual(len(results.merge([results.read(both[0])] * 2).runs), 10)     # a copy counts once

    def test_two_plans_stand_apart(self):
        lab = self.lab()
        mtu = str(self.dir / "mtu.jsonl")
        header = results.Header("mtu", "MTUs", [results.Axis("mtu", [576, 1500])], {"rate": 1e8})
        with results.Writer.create(mtu, header) as writer:
            writer.write(good({"mtu": 576}, 80.0))
        rc, out, err = netreport(lab, mtu)
        self.assertEqual((rc, out), (0, TEXT + "\n" + netreport(mtu)[1]))
        rc, out, err = netreport(lab, mtu, "--plot", self.dir / "x.svg")
        self.assertEqual((rc, err.count("\n")), (2, 1))
        self.assertIn("these are files of 2 plans", err)
        if DRAWS:
            page = self.dir / "p.html"
            self.assertEqual(netreport(lab, mtu, "--html", page), (0, "", ""))
            got = Reader(page.read_text())
            self.assertEqual(got.tags.count("h1"), 2)
            self.assertEqual(len(got.ids), len(set(got.ids)))
            self.assertIn("plan2-plots", got.ids)

    def test_the_recorded_interface_makes_the_ceiling(self):
        jumbo, runs = 10000 * 8948 / 9038, [good({"test": "TCP_STREAM"}, 4474.0)]
        for environment, percent in ((ETHERNET, 447400 / jumbo),
                                     ({"hosts": {"b": ETHERNET}, "client": {}}, 447400 / jumbo)):
            path = self.file([("test", ["TCP_STREAM"]), ("host", ["b"])],
                             [results.replace(run, point={**run.point, "host": "b"}) for run in runs],
                             environment=environment)
            self.assertIn(f"{percent:.2f}", netreport(path, "--of-ceiling")[1])
        path = self.file([("test", ["TCP_STREAM"])], runs, {"mtu": 1500}, environment=ETHERNET)
        self.assertIn(f"{447400 / (10000 * 1448 / 1538):.2f}", netreport(path, "--of-ceiling")[1])

    def test_units_are_made_one(self):
        runs = [good({"size": 1}, 94.0), good({"size": 2}, 0.096, unit="10^9bits/s")]
        out = netreport(self.file([("size", [1, 2])], runs))[1]
        self.assertIn("THROUGHPUT in Mbit/s", out)
        self.assertRegex(out, r"(?m)^2 +96\.00$")

    def test_averages_are_of_like_things(self):
        for name, values, means in (("size", [64, 576], True), ("mtu", [576, 1500], True), ("host", ["a", "b"], False),
                                    ("cpu", [0, 1], False), ("build", [1, 2], False), ("flows", [1, 2], False),
                                    ("nodelay", [True, False], False)):
            runs = [good({name: value}, 90.0) for value in values]
            for run in runs:
                run.command += ["--flows"]
            self.assertEqual("average" in netreport(self.file([(name, values)], runs))[1], means, name)

    def test_no_table_looks_at_all_runs_for_each_place(self):
        """By the number of comparisons: twice the points, twice as many."""
        counts = []
        for count in (200, 400):
            sizes = list(range(1, count + 1))
            sweep = tables.Sweep(results.read(self.file(
                [("size", sizes), ("buffer", [1, 2])],
                [good({"size": size, "buffer": buffer}, 1.0) for size in sizes for buffer in (1, 2)])))
            made, real = [0], tables.key_of

            def counted(value):
                made[0] += 1
                return real(value)

            try:
                tables.key_of = plots.key_of = counted
                tables.build(sweep)
                plots.figure(sweep, "buffer")
            finally:
                tables.key_of = plots.key_of = real
            counts.append(made[0])
        self.assertGreater(counts[0], 400)
        self.assertLess(counts[1], 2.2 * counts[0])


def document(name):
    return lib.TOP / "tests" / "vectors" / "documents" / name


class Documents(Place):
    """Those of netperf --json, read as sweeps are."""

    def test_iterations_are_runs(self):
        for name, status in (("stream", "ok"), ("confidence", "ok"), ("rr-histogram", "ok"), ("failed-early", "failed")):
            told, found = json.loads(document(name).read_text()), results.read(str(document(name)))
            self.assertEqual([run.status for run in found.runs], [status] * max(1, len(told["iterations"])), name)
            for run, one in zip(found.runs, told["iterations"]):
                self.assertEqual(run.figure("THROUGHPUT"), one["metrics"]["THROUGHPUT"])
                self.assertEqual(run.point, {"test": told["test"]["name"]})
            self.assertEqual(found.header.constants.get("host"), told.get("test", {}).get("host"))
        self.assertIn("-l", results.read(str(document("stream"))).runs[0].command)
        self.assertEqual(len(results.read(str(document("stream"))).runs[0].interim),
                         len(json.loads(document("stream").read_text())["interim"]))

    def test_what_differs_is_an_axis(self):
        """In a file of several documents, and in several files."""
        told = json.loads(document("stream").read_text())
        lines = []
        for size in (None, 64, 64):
            told["parameters"]["asked"]["near"]["send_size"] = size
            told["iterations"][0]["started"] += "1"
            lines.append(json.dumps(told, indent=1 if size else None))
        one, more = self.dir / "one.json", self.dir / "more.json"
        one.write_text(lines[0])
        more.write_text("\n".join(lines[1:]))
        text = self.printed(one, more, "--rows", "size", "--format", "csv", "--no-averages")
        self.assertEqual([line.partition(",")[0] for line in text.splitlines()], ["size", "default", "64"])
        self.assertEqual([len(cell.runs) for cell in tables.Sweep(
            results.merge([results.read(str(one)), results.read(str(more))])).cells.values()], [1, 2])

    def test_flows_over_time(self):
        told = json.loads(document("stream").read_text())
        told["interim"] = [dict(told["interim"][0], number=n, seconds=0.5) for n in range(3)]
        for many in (False, True):
            for n, one in enumerate(told["interim"]):
                one.update(flows=[] if many else [float(n + 1), 2.0 * n + 1], jain_index=None if n == 1 else 0.9,
                           flow_quartiles=[1.0, 2.0, 3.0, 4.0, 5.0])
            (self.dir / "d.json").write_text(json.dumps(told))
            rc, _, err = netreport(self.dir / "d.json", "--plot", self.dir / "d.svg")
            drawn = (self.dir / "d.svg").read_text()
            self.assertEqual((rc, err, "Flows over time" in drawn, 'id="jain-0"' in drawn), (0, "", True, True))
            self.assertEqual(len(re.findall(r'<g id="flow-0-', drawn)), 5 if many else 2)
            for words in (["least", "median", "most"] if many else ["flow 1", "flow 2"]):
                self.assertIn(f">{words}<", drawn)
            for words in (f"{'most' if many else 'flow 2'}, until 1.5 s", "until 1 s\nnothing moved"):
                self.assertTrue(words in drawn, words)

    def test_what_is_none(self):
        self.assertIn("nothing to draw", netreport(document("failed-early"), "--plot", self.dir / "p.svg")[2])
        for text, words in (("%s [1]", "not a document"), ('{"schema": "plumbline-netperf/99"}', "number 99"),
                            ('{"schema": "plumbline-netperf/2", "interim": [{"rate": 1e999}]}', "not a document"),
                            ('{"schema": "plumbline-netperf/2", "iterations": [7]}', "a damaged document")):
            path = self.dir / "bad.json"
            path.write_text(text.replace("%s", document("stream").read_text()))
            self.refused(words, path)


    def written(self, name="d.json", **members):
        """A recorded one with other members; its path."""
        told = json.loads(document("rr-histogram").read_text())
        told.update(members)
        (self.dir / name).write_text(json.dumps(told))
        return self.dir / name

    def test_a_table_for_people(self):
        text = self.printed("--show", document("rr-histogram"), document("csv"))
        self.assertIn("Transactions    30622/s\nLatency         min 6.26 us, mean 11.8 us, max 101 us of 20 times\n", text)
        self.assertIn("\n\nTest            UDP_RR, 0.00 s\n", text)
        self.assertNotIn("-1", text)            # what number 1 has for null
        final = {**json.loads(document("rr-histogram").read_text())["final"], "ASKED_RATE": 9.0, "SENT_RATE": 8.0, "DUE_OPERATIONS": 9,
                 "P99_LATENESS": 1.0, "MAX_LATENESS": 1.0}
        for p_value in (0.0, 0.0009, 0.001, 0.5, None):
            text = netreport("--show", self.written(final={**final, "ARRIVALS_P_VALUE": p_value}))[1]
            self.assertIn("lateness P99", text)
            self.assertEqual("Anderson-Darling p < 0.001" in " ".join(text.split()), p_value in (0.0, 0.0009), text)

    def test_all_recorded_documents_are_read(self):
        """By older programs, in every way; more of number 3 are json_doc.py's."""
        for path in sorted((lib.TOP / "tests" / "vectors" / "documents").iterdir()):
            failed = path.name.startswith("failed")
            for words in (["--show"], ["-k", "all"], ["-o", "all"], ["--evidence", ""]):
                rc, text, err = netreport(*words, path)
                self.assertEqual((rc, bool(text), err.count("\n")), (1, False, 1) if failed else (0, True, 0), (path, words, err))
            self.assertIn("netperf_complete{", netreport("--prometheus", path)[1])

    def test_fifty_documents_of_number_2(self):
        """One behind the other, as the program before number 3 wrote them."""
        path = self.dir / "number-2"
        path.write_bytes(lzma.decompress((lib.TOP / "tests/vectors/documents-of-number-2.xz").read_bytes()))
        found = shown.read(str(path))
        self.assertEqual(len(found), 49)
        for one in found:
            self.assertIn("Test ", shown.table(one))
            self.assertIn("THROUGHPUT=", shown.keyval(one, "all"))
            self.assertIn("netperf_complete{", shown.prometheus([one]))
        self.assertEqual(len(results.read(str(path)).runs), sum(len(one["iterations"]) for one in found))

    def test_number_3_is_as_number_2_was(self):
        """What stands once there stands wherever programs look for it."""
        raw, (one,) = json.loads(document("number-3").read_text()), shown.read(str(document("number-3")))
        iteration, as_written = one["iterations"][0], raw["iterations"][0]
        self.assertEqual(iteration["metrics"]["P99_LATENCY"], raw["final"]["P99_LATENCY"])
        self.assertNotIn("P99_LATENCY", as_written["metrics"])
        self.assertEqual(iteration["near"]["tcp.mss"], as_written["near"]["tcp"]["mss"])
        self.assertEqual(iteration["latency"]["count"], sum(max(0, count) for count in as_written["latency"]["cells"]))
        self.assertEqual(list(numbers.pairs([-3, 2, -2044, 1, 4])), [(3, 2), (2048, 1), (2050, 4)])
        for cells in ([-10 ** 6, 1], ["x"], 7, [[1, 2]]):
            path = self.dir / "damaged"
            path.write_text(json.dumps({**raw, "iterations": [{**as_written, "latency": {**as_written["latency"], "cells": cells}}]}))
            self.assertEqual(netreport("--show", path)[0::2][0], 1, cells)

    def test_figures(self):
        path = self.written()
        told = json.loads(path.read_text())
        final = told["final"]
        rc, text, err = netreport(path, "-k", "throughput,P99.9_LATENCY,MAX_LATENCY,LOCAL_CPU_UTIL,THROUGHPUT_UNITS")
        self.assertEqual((rc, text, err), (0, f"THROUGHPUT={final['THROUGHPUT']:.12g}\nP99.9_LATENCY={told['iterations'][0]['latency']['max'] / 1000:g}\nMAX_LATENCY=100\n"
                                           "LOCAL_CPU_UTIL=\nTHROUGHPUT_UNITS=Trans/s\n", ""))
        self.assertEqual(netreport("-o", "PROTOCOL,LSS_SIZE", path, path)[1],
                         "PROTOCOL,LSS_SIZE\n" + 2 * f"TCP,{final['LSS_SIZE']}\n")
        self.assertEqual(netreport("-k", "NO_SUCH", path), (0, "NO_SUCH=\n", ""))

    def test_prometheus_reads_it(self):
        told = json.loads(document("rr-histogram").read_text())
        told["test"]["brand"] = 'a"b\\c\u202e'
        text = netreport("--prometheus", self.written(test=told["test"]))[1]
        labels = f'test="TCP_RR",host="{told["test"]["host"]}",protocol="TCP",brand="a\\"b\\\\c?"'
        self.assertIn(f'\nnetperf_throughput{{{labels},unit="Trans/s"}} {told["final"]["THROUGHPUT"]:.17g}\n', text)
        self.assertIn(f"\nnetperf_latency_seconds_count{{{labels}}} 20\n", text)
        self.assertIn(f"\nnetperf_complete{{{labels}}} 1\n", text)
        for line in text.splitlines():
            self.assertRegex(line, r"# (HELP|TYPE) netperf_\w+ .|netperf_\w+\{.*\} ([0-9.e+-]+|\+Inf)$")
        self.refused("have the same labels", "--prometheus", document("stream"), document("stream"))
        heads = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
        self.assertEqual(len(heads), len(set(heads)))

    def test_what_was_never_answered_is_infinite(self):
        told = json.loads(document("rr-histogram").read_text())
        times = told["iterations"][0]["latency"]
        times.update(max=2 ** 47 - 1, cells=[[times["min"], 18], [2 ** 47 - 2 ** 36, 2]])
        told["final"].update(P99_LATENCY=None, MAX_LATENCY=None)
        path = self.written(**told)
        self.assertEqual(netreport("-k", "P99_LATENCY,MAX_LATENCY,P90_LATENCY", path)[1].split()[:2], ["P99_LATENCY=inf", "MAX_LATENCY=inf"])
        self.assertIn("max never of 20 times", netreport("--show", path)[1])
        self.assertRegex(netreport("--prometheus", path)[1], r'quantile="0.99"\} \+Inf\n(.*\n)*netperf_latency_seconds_sum\{.*\} \+Inf\n')

    def test_several_are_one(self):
        """Their percentiles are those of all times, which no mean of percentiles is."""
        told = json.loads(document("rr-histogram").read_text())
        slow = json.loads(json.dumps(told))
        slow["iterations"][0]["latency"] = {**told["iterations"][0]["latency"], "min": 2 ** 30, "max": 2 ** 30, "sum": 20 << 30, "cells": [[2 ** 30, 20]]}
        one, other = self.written("one.json"), self.written("other.json", **slow)
        text = self.printed("--merge", one, other)
        self.assertRegex(text, rf"\ntogether +{2 * told['final']['THROUGHPUT']:.2f} ")
        self.assertRegex(text, r"Latency of 40 times: min 6.26 us, P50 .* us, P90 1.07 s, P99 not known")
        later = json.loads(json.dumps(told))
        later["iterations"][0]["started"] = later["iterations"][-1]["started"] = "2031-01-01T00:00:00.000Z"
        self.assertIn("they ran together for 0.00 of", netreport("--merge", one, self.written("later.json", **later))[2])
        self.assertIn("no latencies", netreport("--merge", one, self.written(
            iterations=[{**told["iterations"][0], "latency": None}]))[2])
        for path, words in ((document("csv"), "the first one a TCP_RR"), (document("failed"), "no result"), ("/nowhere", "No such file")):
            rc, text, err = netreport("--merge", one, path)
            self.assertEqual((rc, err.count("\n") >= 1, words in err), (1, True, True), err)

    def test_what_is_damaged_is_an_error_of_one_line(self):
        told = json.loads(document("rr-histogram").read_text())
        first = told["iterations"][0]
        bad = self.dir / "bad.json"
        texts = ["", "[]", "{}", "\0\1", "[" * 100000, json.dumps(told)[:2000], *(
            json.dumps({**told, **change}) for change in (
                *({name: 7} for name in ("iterations", "final")), *({"schema": f"plumbline-netperf/{n}"} for n in ("", "0", "2x", "99")),
                {"iterations": [7]}, {"final": {"THROUGHPUT": "x", "ELAPSED_TIME": "y"}},
                *({"iterations": [{**first, "latency": {**first["latency"], "cells": cells}}]} for cells in (7, [[1]], [["1", 1]], [[1, "x"]]))))]
        for text in texts:
            bad.write_text(text)
            self.refused("", "--show", bad)

    def test_hostile_texts_are_harmless(self):
        for words in (["--show"], ["-k", "all"], ["-o", "all"], ["--prometheus"], ["--evidence", ""], ["--merge"]):
            _, text, err = netreport(*words, document("hostile-texts"))
            self.assertFalse([one for one in text + err if not one.isprintable() and one != "\n"], words)

    def test_ways_do_not_go_together(self):
        for words in (["-k", "all", "--prometheus"], ["--show", "--html", "x.html"], ["--merge", "--table"]):
            rc, text, err = netreport(document("stream"), *words)
            self.assertEqual((rc, text, "not together with" in err), (2, "", True), err)


@unittest.skipIf(NO_SCIPY, NO_SCIPY)
class Meshes(Place):
    """Figures of all pairs of hosts, with noise and what was planted."""

    def figures(self, hosts, noise, seed, planted):
        dice, names = random.Random(seed), [f"h{number}" for number in range(hosts)]
        return {(a, b): 1000 * math.exp(noise * dice.gauss(0, 1)) * (planted(a, b) if planted else 1.0)
                for a in names for b in names if a != b}

    def planted(self, a, b):
        """A host that sends at half its rate, one direction, one pair."""
        return (0.5 if a == "h2" else 1.0) * (0.6 if (a, b) == ("h0", "h4") else 0.7 if {a, b} == {"h1", "h3"} else 1.0)

    def test_what_is_planted_is_named(self):
        for seed in range(20):
            figures = self.figures(6, 0.02, seed, self.planted)
            self.assertEqual([row[0] for row in mesh.worse(figures, False)],
                             ["h2, as client", "h0 to h4", "h1 and h3, both ways"])
            upside_down = {pair: 1 / value for pair, value in figures.items()}
            self.assertEqual([row[0] for row in mesh.worse(upside_down, True)],
                             ["h2, as client", "h0 to h4", "h1 and h3, both ways"])
        what, mine, others = next(mesh.worse(self.figures(6, 0.0, 1, lambda a, b: 0.25 if "h3" in (a, b) else 1.0), False))
        self.assertEqual((what, round(mine), round(others)), ("h3, as client and server", 250, 1000))

    def test_noise_is_not(self):
        for hosts in (5, 6, 10):
            named = sum(any(mesh.worse(self.figures(hosts, 0.1, seed, None), False)) for seed in range(100))
            self.assertLessEqual(named, 3, hosts)

    def file_of(self, figures, runs=(), **header):
        """A good run of each pair, or these runs."""
        names = sorted({name for pair in figures for name in pair})
        return self.file([("client", names), ("server", names)], runs or [
            good({"client": a, "server": b}, value) for (a, b), value in figures.items()], {}, "mesh.jsonl", **header)

    @unittest.skipUnless(DRAWS, NO_PLOTS)
    def test_a_heat_map_names_hosts_without_an_engine(self):
        names = ("ssh:one", "fd77::2", "e\x1b[31m", "\udcff")
        path = self.file_of({(a, b): 900.0 * ("fd77::2" not in (a, b)) for a in names for b in names if a != b})
        self.assertEqual(netreport(path, "--mesh", "--plot", self.dir / "m.svg")[0], 0)
        words = [text.text for text in ET.parse(self.dir / "m.svg").iter(f"{SVG}text")]
        self.assertLessEqual({"one", "fd77::2", "e?[31m", "?"}, {*words})
        self.assertEqual(words.count("\u00d7"), 6)     # pairs that gave nothing

    def test_a_whole_mesh_has_no_gaps(self):
        """No host is measured with itself, whatever its addresses are called; a star has its pairs."""
        figures = self.figures(5, 0.02, 1, None)
        star = {pair: value for pair, value in figures.items() if "h0" in pair}
        for held, more in ((figures, {}), (star, {"settings": {"pairs": [list(pair) for pair in star]}})):
            sweep = tables.Sweep(results.read(self.file_of(held, skips=[], more=more)))
            self.assertEqual(sum(bool(sweep.planned(point)) for point in sweep.points()), len(held))
        self.assertEqual([sweep.label(name, "ssh:alpha=10.99.0.1") for name in ("client", "route")], ["ssh:alpha", "ssh:alpha=10.99.0.1"])

    def test_hosts_of_two_link_rates(self):
        """Two of eight hosts have 10 Gbit/s, the others 25: no fault, but a host that sends at half of its rate has one."""
        slow = {"h0", "h1"}
        hosts = {f"h{number}": {"speed_mbps": 10000 if number < 2 else 25000} for number in range(8)}
        for seed in range(5):
            figures = self.figures(8, 0.02, seed, lambda a, b: 0.4 if {a, b} & slow else 0.5 if a == "h5" else 1.0)
            sweep = tables.Sweep(results.read(self.file_of(figures, more={"hosts": hosts})))
            found = mesh.find(sweep, "THROUGHPUT", False)
            self.assertEqual([row[:2] for row in found.rows], [["all, links of 25 Gbit/s", "h5, as client"]])
            self.assertEqual(found.good, ["all, links of 10 Gbit/s"])
            self.assertEqual(len([line for line in found.notes if "a link of 10 Gbit/s, most have 25" in line]), 2)

    def test_who_gives_nothing_is_named(self):
        """A dead host, a pair that failed, one at 0; and one that gave something in one run of two."""
        figures = self.figures(6, 0.02, 1, None)
        for failed in (True, False):
            runs = []
            for (a, b), value in figures.items():
                for number in (1, 2):
                    dead = "h5" in (a, b) or (a, b) == ("h0", "h1") or (a, b, number) == ("h2", "h3", 1)
                    run = good({"client": a, "server": b}, 0.0 if dead else value, number)
                    if dead and failed:
                        run.status, run.result, run.more = "failed", {}, {"reason": "no route"}
                    runs.append(run)
            text = self.printed("--mesh", self.file_of(figures, runs))
            why = "no route" if failed else "0"
            self.assertRegex(text, f"h5, in all pairs: {why} +nothing\n.*h0 to h1: {why} +nothing\n")
            self.assertNotRegex(text, r"h5 to|to h5|nothing is worse|h2 to h3: (no route|0)")
            self.assertIn("h2 to h3: 1 of 2 runs gave nothing", text)
        path = self.file_of({(a, b): 0.0 if b == "h4" else value for (a, b), value in figures.items()})
        self.assertRegex(netreport("--mesh", path)[1], r"h4, as server: 0 +nothing\n\n")
        self.assertEqual(netreport("--bad-hosts", path)[1], "h4\n")

    def test_a_host_that_failed_once_and_what_was_not_measured(self):
        """netmesh gives a host up after the first failure; and of a mesh that was interrupted not all is good."""
        names = [f"h{number}" for number in range(7)]
        runs = [good({"client": a, "server": b, "test": "TCP_RR"}, value)
                for (a, b), value in self.figures(6, 0.02, 1, None).items()]
        axes = [("client", names), ("server", names), ("test", ["TCP_RR", "UDP_RR"])]
        dead = failed({"client": "h6", "server": "h0", "test": "TCP_RR"}, "no route")
        path = self.file(axes, [*runs, dead], {}, "gone.jsonl", skips=[{"test": "UDP_RR"}])
        rc, text, err = netreport("--bad-hosts", path)
        self.assertEqual((rc, text, "11 pairs of the plan were not measured" in err), (0, "h6\n", True), err)
        pairs = {"pairs": [[a, b] for a in names[:6] for b in names[:6] if a != b]}
        for left, more, says in ((30, {"settings": pairs}, "nothing is worse"), (30, {}, ": 12 pairs of the plan"),
                                 (29, {"settings": pairs}, ": 1 pairs of the plan")):
            path = self.file(axes, runs[:left], {}, "part.jsonl", skips=[{"test": "UDP_RR"}], more=more)
            text = netreport("--mesh", path)[1]
            self.assertEqual((says in text, "nothing is worse" in text), (True, says == "nothing is worse"), text)
        text = netreport("--mesh", self.file(axes, runs, {}, "part.jsonl", skips=[], more={"settings": pairs}))[1]
        self.assertRegex(text, r"(?s)test=UDP_RR: fewer than 5 hosts.*test=TCP_RR: nothing is worse")

    def test_what_cannot_be_told_is_not_good(self):
        """Two hosts of six have losses and the others none; and too few hosts."""
        figures = self.figures(6, 0.02, 1, None)
        path = self.file_of(figures, [
            good({"client": a, "server": b}, value, LOST_REQUESTS=0, LOCAL_TRANSPORT_RETRANS=round(value / 10) if {a, b} & {"h1", "h2"} else 0)
            for (a, b), value in figures.items()])
        text = netreport("--mesh", path, "--figure", "LOCAL_TRANSPORT_RETRANS")[1]
        self.assertIn("all: 12 of 30 pairs have 0", text)
        self.assertNotIn("nothing is worse", text)
        self.assertIn("nothing is worse", netreport("--mesh", path, "--figure", "LOST_REQUESTS")[1])
        few = self.file_of(self.figures(3, 0.02, 1, None))
        self.assertEqual(netreport("--bad-hosts", few), (0, "", "netreport: all: fewer than 5 hosts, or too few pairs, to tell which one differs\n"))

    def test_text(self):
        path = self.file_of(self.figures(6, 0.02, 1, self.planted))
        text = self.printed("--mesh", path)
        self.assertRegex(text, r"(?m)h2, as client +[45]\d\d[.\d]* +[\d.]+ +-[45]\d$")
        self.assertNotIn("h4, as", text)
        self.assertIn("h1 and h3, both ways", netreport("--mesh", path, "--format", "csv")[1])
        self.assertIn("nothing is worse", netreport("--mesh", self.file_of(self.figures(6, 0.02, 1, None)))[1])
        self.assertIn("fewer than 5 hosts", netreport("--mesh", self.file_of(self.figures(3, 0.02, 1, None)))[1])
        self.assertIn("--rows: not together with --mesh", netreport("--mesh", path, "--rows", "client")[2])
        self.assertIn("--paths: not together with --mesh", netreport("--mesh", path, "--paths")[2])
        self.assertIn("--mesh: not together with --format tidy", netreport("--bad-hosts", path, "--format", "tidy")[2])
        self.assertIn("--figure FOO: say", netreport("--mesh", path, "--figure", "FOO")[2])
        other = self.file([("size", [64, 576])], [good({"size": size}, 1.0) for size in (64, 576)], {}, "other.jsonl")
        self.assertIn("several clients and servers", netreport("--mesh", other)[2])


@unittest.skipIf(NO_SCIPY, NO_SCIPY)
class Paths(Place):
    """Rows of flows, of which every fourth has another path."""

    def rows(self, seed, lost, usual=0.0, sent=2000, late=0):
        dice = random.Random(seed)
        return [{"local_port": 40000 + number, "remote_port": 1, "transactions": 2000, "data_segments": sent, "retransmissions": sum(
            dice.random() < (usual if number % 4 else lost) for _ in range(sent)),
            "min_rtt_us": dice.randint(100, 110) + (0 if number % 4 else late)} for number in range(64)]

    def test_a_bad_path_is_named(self):
        bad = [number for number in range(64) if number % 4 == 0]
        for seed in range(5):
            (found,), _ = paths.worse(self.rows(seed, 0.02, 0.001), False)
            self.assertEqual((found.what, found.flows), ("loses (%)", bad))
            self.assertTrue(1.7 < float(found.figure) < 2.3 and float(found.others) < 0.2, found)
            (found,), _ = paths.worse(self.rows(seed, 0, late=40), False)
            self.assertEqual((found.what, found.flows), ("lags (us)", bad))

    def test_of_udp(self):
        rows = [{"transactions": 2000 - (number % 4 == 0) * 25 - number % 2, "retransmissions": None} for number in range(64)]
        (found,), _ = paths.worse(rows, True)
        self.assertEqual((found.flows, found.figure, found.others), ([*range(0, 64, 4)], "1.20", "0.00"))
        self.assertEqual(paths.worse(rows, False), ([], 64))      # a closed loop has no number to do

    def test_loss_of_all_is_not(self):
        """One in 100 runs may have a name."""
        for usual in (0.0, 0.001, 0.01):
            self.assertLessEqual(sum(bool(paths.worse(self.rows(seed, usual, usual, 400), False)[0]) for seed in range(100)), 4, usual)

    def test_bursts_are_no_bad_path(self):
        """One in 100 runs may have a name; a path that loses still has."""
        dice = random.Random(1)
        for flows, usual in ((8, 0.001), (16, 0.003), (16, 0.01), (64, 0.003)):
            named = 0
            for _ in range(50):
                bursts = [0] * flows
                for _ in range(round(dice.gauss(3000 * usual * flows / 16.5, (3000 * usual * flows / 16.5) ** 0.5))):
                    bursts[dice.randrange(flows)] += dice.randint(3, 30)
                named += bool(paths.lossy([(lost, 3000) for lost in bursts]))
            self.assertLessEqual(named, 2, (flows, usual))
        self.assertEqual(paths.lossy([(1000 if number < 8 else 3, 50000) for number in range(16)]), [*range(8)])

    def test_flows_that_send_little_are_no_bad_path(self):
        """A quarter sends a twentieth, bursts are 20 packets at most: 30 of 100 runs had a name. A bad path has."""
        dice, named, found = random.Random(1), 0, 0
        for more in 25 * (0.0, 0.06):
            counts = []
            for number in range(64):
                sent, rate = 250 if number % 4 == 3 else 5000, 0.003 + (number == 0) * more
                events = round(sent * rate / 10.5 + dice.gauss(0, (sent * rate / 10.5) ** 0.5))
                counts.append((sum(dice.randint(1, 20) for _ in range(events)), sent))
            named += not more and bool(paths.lossy(counts))
            found += 0 in paths.lossy(counts) and more > 0
        self.assertEqual((named <= 1, found >= 22), (True, True), (named, found))

    def test_jitter_is_no_lag(self):
        dice = random.Random(1)
        for count in (8, 16):
            named = sum(bool(paths.laggards({number: 100 + round(dice.expovariate(0.02)) for number in range(count)})[0]) for _ in range(400))
            self.assertLessEqual(named, 8)
        half = {number: 100 + number + 100 * (number >= 8) for number in range(16)}
        self.assertEqual(paths.laggards(half), ([*range(8, 16)], 103.5))

    def test_text(self):
        runs = [good({"test": test}, 1.0) for test in ("TCP_RR", "UDP_RR")]
        runs[0].more["flows"] = self.rows(1, 0.02)
        path = self.file([("test", ["TCP_RR", "UDP_RR"])], runs, {}, "paths.jsonl")
        text = self.printed("--paths", path)
        self.assertRegex(text, r"(?m)^test=TCP_RR +loses \(%\) +16 of 64 +[12]\.\d\d +0\.00  40000>1 40004>1 ")
        self.assertIn("test=UDP_RR: fewer than 8 flows", text)
        self.assertIn("--group: not together with --paths", netreport("--paths", path, "--group", "test")[2])


class Outputs(Place):
    """Where they can't be written, or names can't be encoded: a line and a status, no traceback."""

    def shell(self, text, *args):
        got = subprocess.run(["/bin/sh", "-c", text, "sh", *args], capture_output=True, timeout=120, check=False)
        self.assertNotIn(b"Traceback", got.stderr)
        return got.returncode, got.stderr.decode(errors="replace")

    def test_each_program(self):
        """What prints to where nothing can be, to a terminal of ASCII, and reads and writes files of any name."""
        path = self.file([("size", [64])], [good({"size": 64}, 1.0, n) for n in (1, 2)], {}, "\udcff \u00b5.jsonl")
        plan = path.replace(".jsonl", ".toml")
        Path(plan).write_text("[axes]\nsize = [64]\n\n[constants]\nlength = 1\nhost = \"h\"\n")
        hosts = str(self.dir / "\udcfe hosts")
        Path(hosts).write_text("one\ntwo\n")
        table = (("netreport", ['"$1"', '"$1" --html "$1.html"' * DRAWS, '"$1" --tidy "$1.csv"', '"$1" --compare "$1"', '"$1.gone"']),
                 ("netsweep", ['--list', '--dry-run "$2"', '"$2.gone"', '--dry-run "$2" --output "$2.out"', '--resume --output "$1.gone"']),
                 ("netgate", ['--list-metrics', '--history "$1"', '--dry-run "$2"', '--dry-run --local --criteria "$1.gone"',
                              '--dry-run --local --baseline "$1"', '--dry-run --local --baseline "$1.gone"']),
                 ("netmesh", ['--list', '--dry-run --inventory "$3"', '--dry-run --inventory "$3" "$2"', '--dry-run --inventory "$3.gone"']))
        for program, ways in table:
            words = f"'{lib.SCRIPTS}/{program}'"
            for way in filter(None, ways):
                with self.subTest(program=program, way=way):
                    for locale in ("LC_ALL=C PYTHONIOENCODING=ascii", "LC_ALL=C PYTHONUTF8=0 PYTHONCOERCECLOCALE=0"):
                        status, said = self.shell(f"{locale} {words} {way} > /dev/null", path, plan, hosts)
                        self.assertNotIn("codec", said)
                        self.assertIn(status, (1, 2, 77) if "gone" in way else (0, 1, 2, 77), said)
                        self.assertTrue(said or "gone" not in way)
            self.assertEqual(self.shell(f"{words} {ways[0]} >&-", path), (1, f"{program}: standard output is closed\n"))
            for way in (ways[0], "--help") if os.path.exists("/dev/full") else ():
                status, said = self.shell(f"{words} {way} > /dev/full", path)
                self.assertRegex(f"{status} {said}", r"\A1 net\w+: standard output: No space left on device\n\Z")


class Comparisons(Place):
    """Of two sides, by the gate's statistics: those have tests of their own, netgate_past.py."""

    def test_text(self):
        mon, tue = self.sets(length=1)
        text = self.printed("--compare", mon, tue)
        rows = [line.split() for line in text.splitlines() if line.startswith("run.size")]
        self.assertEqual([(row[0], row[1], row[2], row[7:]) for row in rows], [
            (f"run.size{size}", "9.9997", "20.000", ["better", "5", "5"]) for size in (64, 576)])
        self.assertIn("2 compared: 2 better; equal: within 2 %; 95 % sure of all", text)
        self.assertIn("A is one file: how much sessions differ is unknown", text)
        self.assertIn("can't tell", netreport("--compare", mon, mon)[1])
        self.assertIn("2 equal", netreport("--compare", mon, mon, "--margin", "9")[1])
        rc, text, err = netreport("--compare", tue, mon, "--where", "size=64", "--format", "csv")
        self.assertEqual([line.split(",")[::7] for line in text.splitlines()[1:]], [["run.size64", "worse"]])
        self.assertIn("1 compared: 1 worse", err)

    def test_units_are_made_one(self):
        """A side measured with -f g, and bits of transactions."""
        mon, tue = self.sets()
        Path(tue).write_text(re.sub(r'"THROUGHPUT": ([0-9.]+), "THROUGHPUT_UNITS": "10.6', lambda found:
                             f'"THROUGHPUT": {float(found[1]) / 2000}, "THROUGHPUT_UNITS": "10^9', Path(tue).read_text()))
        self.assertEqual(re.findall(r"(?m)^run\.size\S+ +9\.9997 +(\S+) +(\S+)", netreport("--compare", mon, tue)[1]), 2 * [("9.9999", "Mbit/s")])
        path = self.file([("size", [1])], [good({"size": 1}, 5e4, n, "Trans/s", LOCAL_SEND_THROUGHPUT=0.4) for n in (1, 2)], {"test": "TCP_RR"})
        self.assertIn("Mbit/s", netreport("--compare", path, path, "--figure", "LOCAL_SEND_THROUGHPUT")[1])

    def test_points_of_any_alphabet(self):
        path = self.file([("route", ["\u6771\u4eac", "\u5927\u962a"])], [good({"route": name}, rate, n) for name, rate in (
            ("\u6771\u4eac", 100.0), ("\u5927\u962a", 200.0)) for n in (1, 2, 3)])
        self.assertIn("run.route\u5927\u962a  200.00  200.00", netreport("--compare", path, path)[1])

    def test_sessions_of_both_sides_count(self):
        """Ten days against ten, 5 % apart, which differ by 2 %: found nine times in ten; without a difference seldom."""
        told = json.loads(document("stream").read_text())
        dice, found = random.Random(4), {0.95: 0, 1.0: 0}
        for rate in found:
            for attempt in range(10):
                for side, height in (("a", 900.0), ("b", 900.0 * rate)):
                    folder = self.dir / f"{side}{rate}{attempt}"
                    folder.mkdir()
                    for day in range(10):
                        told["started"] = f"2026-11-{day + 1:02}T03:00:00.000Z"
                        told["iterations"][0]["metrics"]["THROUGHPUT"] = height * math.exp(dice.gauss(0, 0.02))
                        (folder / f"{day}.json").write_text(json.dumps(told))
                sides = [compare.Side(str(self.dir / f"{side}{rate}{attempt}"), ()) for side in "ab"]
                found[rate] += compare.Comparison(*sides, "THROUGHPUT", 2.0).judged[0].verdict == "worse"
        self.assertGreaterEqual(found[0.95], 7)
        self.assertLessEqual(found[1.0], 2)

    def test_what_nothing_measures_is_no_figure(self):
        """Numbers that add up to infinity, those that JSON does not have, and JSON that is too deep."""
        path = self.file([("size", [64, 128])], [good({"size": size}, 123.5, n) for size in (64, 128) for n in (1, 2)], {}, "big.jsonl")
        for number in ("1e308", "1e999", "NaN", "1" + 400 * "0"):
            Path(path).write_text(Path(path).read_text().replace(": 123.5", f": {number}"))
            self.assertEqual(netreport(path)[::2], (1, "netreport: --figure THROUGHPUT: no run has it (try another file)\n"))
            self.assertIn("can't tell", netreport("--compare", path, path)[1])
            Path(path).write_text(Path(path).read_text().replace(f": {number}", ": 123.5"))
        deep = self.dir / "deep.json"
        deep.write_text('{"schema": "plumbline-netperf/2", "x": ' + 100000 * "[" + 100000 * "]" + "}")
        self.assertIn("not a document of netperf", netreport(deep)[2])

    def test_two_files_can_be_equal(self):
        """Of the same day; how much other days differ nobody knows."""
        for day, verdict in ((1, "equal"), (3, "can't tell")):
            dice, paths = random.Random(4), []
            for number, started in enumerate(("2026-11-01T03:00:00.000Z", f"2026-11-0{day}T04:00:00.000Z")):
                runs = [good({"size": 64}, 900.0 * math.exp(dice.gauss(0, 0.002)), n) for n in range(1, 11)]
                paths.append(self.file([("size", [64])], runs, {}, f"{day}{number}.jsonl", started=started))
            self.assertEqual(compare.Comparison(*(compare.Side(path, ()) for path in paths), "THROUGHPUT", 2.0).judged[0].verdict, verdict)

    def test_runs_that_gave_nothing_count(self):
        """All of B, or some: failed, or 0; and losses of none against losses."""
        def side(name, values, **more):
            return self.file([("size", [64])], [failed({"size": 64}, "dead", n) if value is None else
                                                good({"size": 64}, value or 0.0, n, **{one: value for one in more})
                                                for n, value in enumerate(values, 1)], {}, name)
        a, high = side("a.jsonl", [10.0, 10.1, 9.9, 10.05, 9.95, 10.0, 10.1, 9.9]), [10.0, 10.1, 9.9, 10.05, 9.95]
        for gone in (None, 0.0):
            for values, verdict, figure in ((8 * [gone], "worse", "-" if gone is None else "0"),
                                            ([*high, gone, gone], "can't tell", "10.000" if gone is None else "7.1429")):
                text = self.printed("--compare", a, side("b.jsonl", values), "--margin", "9")
                self.assertRegex(text, rf"(?m)^run +10\.000 +{figure} .* {verdict} +8 +{len(values)}$")
                self.assertIn(f"run: {values.count(gone)} of {len(values)} runs of B", text)
        figures = [side(f"{gone[0]}.jsonl", 5 * [10.0, *gone]) for gone in ([0.0], [None])]   # A's mean has zeros, B's has not
        self.assertRegex(netreport("--compare", *figures, "--margin", "9")[1], r"(?m)^run +5\.0000 +10\.000 .*\+100\S* .*can't tell +10 +10$")
        one, two = (side(name, values, LOCAL_TRANSPORT_RETRANS=1) for name, values in (("c.jsonl", 6 * [0]), ("d.jsonl", 6 * [50])))
        for figure in ("LOCAL_TRANSPORT_RETRANS", "LOCAL_TRANSPORT_RETRANS:less"):
            text = netreport("--compare", one, two, "--figure", figure)[1]
            self.assertRegex(text, r"(?m)^run +0\S* +50\.000 +\? +\? +\? +worse +6 +6$")
            self.assertIn("by ranks of the runs", text)

    def test_what_differs(self):
        mon, tue = self.sets({"environment": {"client": {"kernel": "6.1"}}}, {"environment": {"client": {"kernel": "6.2"}}})
        path = Path(tue)
        lines = path.read_text().splitlines(True)
        lines[0] = lines[0].replace('"constants": {}', '"constants": {"congestion": "bbr"}')
        path.write_text("".join(line for line in lines if '"size": 576' not in line or '"repetition": 1' in line))
        text = netreport("--compare", mon, tue)[1]
        for words in ("differs: client kernel: 6.1 -> 6.2", "differs: congestion: default -> bbr",
                      "no verdict without two runs of either side: run.size576"):
            self.assertIn(words, text)

    def test_axes_of_one_value_differ_too(self):
        """They are in no point's name, as those of several values are."""
        def side(name, *sizes):
            return self.file([("size", list(sizes))], [good({"size": size}, 10.0, n) for size in sizes for n in (1, 2)], {}, name)
        self.assertIn("differs: size: 64 -> 1024", netreport("--compare", side("a.jsonl", 64), side("b.jsonl", 1024))[1])
        fixed = self.file([], [good({}, 10.0, n) for n in (1, 2)], {"size": 64}, "c.jsonl")
        self.assertNotIn("differs: size", netreport("--compare", fixed, side("d.jsonl", 64, 576))[1])

    def test_folders_and_documents(self):
        """A folder is a side; a day is a session."""
        told = json.loads(document("stream").read_text())
        for side, rate in (("a", 1.0), ("b", 0.5)):
            (self.dir / side).mkdir()
            for day in range(1, 7):
                told["started"] = f"2026-11-0{day}T03:00:00.000Z"
                told["iterations"][0]["metrics"]["THROUGHPUT"] = 900.0 * rate + day
                (self.dir / side / f"{day}.json").write_text(json.dumps(told))
        (self.dir / "b" / "other.json").write_text("{}")
        text = self.printed("--compare", self.dir / "a", self.dir / "b")
        self.assertRegex(text, r"(?m)^tcp_stream +903\.50 +453\.50 +Mbit/s +-49\.8 +-5\S+ +-4\S+ +worse +6 +6$")
        self.assertNotIn("A is one file", text)
        self.assertIn(f"left out: {self.dir / 'b' / 'other.json'}: ", text)

    @unittest.skipUnless(DRAWS, NO_PLOTS)
    def test_plot(self):
        mon, tue = self.sets()
        path = self.dir / "d.svg"
        self.assertEqual(netreport("--compare", mon, tue, "--plot", path)[2], "")
        root = ET.parse(path).getroot()
        names = {g.get("id") for g in root.iter() if g.get("id")}
        self.assertTrue({"bar-run-size64", "margin-run-size576--1"} <= names, names)
        said = "".join(text.text or "" for text in root.iter(f"{SVG}text"))
        self.assertIn("B against A (%)", said)
        self.assertRegex(said, r"\+100\.0 %  better")

    def test_refusals(self):
        mon, tue = self.sets()
        for args, words in (((mon,), "two results, not 1"), ((mon, tue, "--html", "x"), "not together with --compare"),
                            ((mon, tue, "--format", "tidy"), "--compare: not together with --format tidy"),
                            ((mon, tue, "--margin", "0"), "--margin: '0' is not a percentage"), ((mon, tue, "--figure", "FOO"), "FOO:more or FOO:less"),
                            ((mon, document("stream")), "no good run of the same point")):
            self.refused(words, "--compare", *args, status=1 if "good run" in words else 2)
        self.assertIn("only with --compare or --mesh", netreport(mon, "--margin", "3")[2])


class Endless(unittest.TestCase):
    def test_what_is_no_number_is_no_figure(self):
        for value in (math.nan, math.inf, -math.inf):
            run = good({"size": 64}, value)
            self.assertIsNone(run.figure("THROUGHPUT"), value)
            self.assertEqual(good({"size": 64}, 5).figure("THROUGHPUT"), 5)


class Derived(Place):
    """Figures that follow from others, and the tidy table."""

    def runs(self):
        lossy = good({"test": "UDP_STREAM"}, 90.0, PROTOCOL="UDP", LOCAL_SEND_THROUGHPUT=100.0,
                     REMOTE_RECV_THROUGHPUT=90.0, LOCAL_CPU_PERCENT_SWINTR=7.5, REMOTE_CPU_PERCENT_SWINTR=-1)
        rich = good({"test": "UDP_STREAM"}, 80.0, 2, PROTOCOL="UDP", LOCAL_SEND_THROUGHPUT=100.0,
                    REMOTE_RECV_THROUGHPUT=90.0)
        rich.more.update({
            "evidence": {"near": {"moved.seconds": 1.0, "moved.ethtool.tx_queue_0_stops": 3, "cpu.count": 4,
                                  "cpu.0.softirq": 0.5, "cpu.1.softirq": 0.3, "moved.nic.tx_dropped": 2,
                                  "moved.nic.tx_packets": 1000},
                         "far": {"moved.seconds": 1.0, "moved.snmp.Udp.RcvbufErrors": 5, "udp.sent": 1000,
                                 "udp.lost": 250, "moved.softnet.0.dropped": 1}},
            "disturbed": {"share": 0.125, "seconds": 2.0, "reasons": {"steal": 0.25}}})
        return [lossy, rich, good({"test": "TCP_STREAM"}, 94.0, PROTOCOL="TCP"),
                failed({"test": "TCP_STREAM"}, "no answer", 2)]

    def test_figures(self):
        lossy, rich, plain, _ = self.runs()
        for run, figures in ((lossy, (10.0, 7.5, None, None, None)), (rich, (25.0, 20.0, None, 8.0, 12.5)),
                             (plain, (None,) * 5)):
            got = [run.figure(name) for name in ("LOSS_PERCENT", "LOCAL_SOFTIRQ_PERCENT",
                                                 "REMOTE_SOFTIRQ_PERCENT", "DROPS", "DISTURBED_PERCENT")]
            self.assertEqual(got, list(figures))
        path = self.file([("test", ["UDP_STREAM", "TCP_STREAM"])], self.runs())
        rc, out, err = netreport(path, "--figure", "LOSS_PERCENT")
        self.assertIn("LOSS_PERCENT in %, mean", out)
        self.assertRegex(out, r"(?m)^UDP_STREAM +17\.50! \u00b110\.61$")
        self.assertRegex(netreport(path, "--figure", "near.moved.ethtool.tx_queue_0_stops")[1],
                         r"(?ms)^UDP_STREAM +3\.00\*!$.*^UDP_STREAM: 1 of 2 have no near\.")
        self.assertIn("--figure far.nonesuch: no run has it", netreport(path, "--figure", "far.nonesuch")[2])

    def test_compare(self):
        """The figures that they follow from are read as well: there were only dashes."""
        paths = [self.file([("size", [64])], [good(
            {"size": 64}, 90.0, n, LOCAL_SEND_THROUGHPUT=100.0, REMOTE_RECV_THROUGHPUT=100 - lost - n / 50,
            PROTOCOL="UDP") for n in range(1, 9)], {"test": "UDP_STREAM"}, f"{lost}.jsonl") for lost in (5, 20)]
        figure = ["--figure", "LOSS_PERCENT:less"]
        out = self.printed("--compare", *paths, *figure)
        self.assertRegex(out, r"(?m)^udp_stream +5\.0\d+ +20\.\d+ +% .* worse +8 +8$")
        self.assertRegex(netreport("--compare", *paths[:1] * 2, *figure, "--margin", "9")[1], "equal +8 +8")

    def test_tidy(self):
        path = self.file([("test", ["UDP_STREAM", "TCP_STREAM"])], self.runs(),
                         {"rate": 1e8, "mtu": 1500, "vlan": False})
        out = self.dir / "t.csv"
        self.assertEqual(netreport(path, "--tidy", out), (0, "", ""))
        self.assertEqual(out.read_text(), netreport(path, "--format", "tidy")[1])
        with open(out, newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(len(rows), 4)
        first, rich, plain, bad = rows
        self.assertEqual((first["test"], first["mtu"], first["vlan"], first["repetition"], first["THROUGHPUT"]),
                         ("UDP_STREAM", "1500", "false", "1", "90.0"))
        self.assertEqual((rich["LOSS_PERCENT"], rich["near.moved.ethtool.tx_queue_0_stops"],
                          rich["disturbed.steal"], rich["DROPS"]), ("25.0", "3", "0.25", "8.0"))
        self.assertAlmostEqual(float(plain["CEILING"]), 94.148, 3)
        self.assertEqual((bad["status"], bad["reason"], bad["THROUGHPUT"]), ("failed", "no answer", ""))

    def test_parquet(self):
        """Where Python has what writes it; else one line says what is missing."""
        out = self.dir / "t.parquet"
        rc, said, err = netreport(self.lab(), "--tidy", out)
        if rc == 0:
            self.assertEqual(out.read_bytes()[:4], b"PAR1")
            return
        self.assertEqual((rc, said, err.count("\n")), (1, "", 1), err)
        self.assertRegex(err, r"^netreport: --tidy FILE\.parquet needs Python's (pandas|pyarrow or fastparquet)")
        self.assertFalse(out.exists())


def told(engine, role="transmit", protocol="TCP", unread=None, **values):
    """One end's evidence; dots of names are written __."""
    return {"engine.name": engine, "flow.role": role, "flow.protocol": protocol, "work.threads": 1,
            "work.user_s": 0.1, "work.system_s": 0.5, "work.switches_voluntary": 100,
            "work.switches_involuntary": 50,
            **{name.replace("__", "."): value for name, value in values.items()},
            **({"unread": unread} if unread else {})}


def measured(engine, rate, near, far, repetition=1, unit="10^6bits/s", **point):
    run = good({**point, "engine": engine}, rate, repetition, unit)
    run.more["evidence"] = {"near": near, "far": far}
    return run


def left_out(engine, reason):
    return results.Run({"engine": engine}, status="excluded", exit=None, more={"reason": reason})


class Proofs(unittest.TestCase):
    """What shows that an engine's way was taken, by its counts."""

    def test_each_engine(self):
        for e, asked, words in (
                (told("sync"), "sync", ""),
                (told("sync"), "epoll", "driven by sync"),
                ({"flow.role": "transmit"}, "sync", "not known"),
                (told("batch", engine__send_calls=100, engine__messages_sent=6400), "batch",
                 "64.0 messages sent a call"),
                (told("batch", engine__receive_calls=3, engine__messages_received=4), "batch",
                 "1.3 messages received a call"),
                (told("segment", engine__send_calls=100, engine__messages_sent=6400,
                      engine__segmented_sends=99), "segment",
                 "64.0 messages sent a call, 99 % of the calls cut by the kernel"),
                (told("segment", engine__receive_calls=100, engine__messages_received=6400,
                      engine__joined_receives=100), "segment",
                 "64.0 messages received a call, 100 % of the calls joined by the kernel"),
                (told("segment", protocol="UDP", engine__send_calls=10, engine__messages_sent=640,
                      flow__sends=640, moved__nic__tx_packets=10), "segment",
                 "64.0 messages sent a call; 64.0 datagrams a packet by the interface"),
                (told("segment", protocol="UDP", flow__sends=640, wire__out__packets=20,
                      moved__nic__tx_packets=10), "segment", "32.0 datagrams a packet by the ledger"),
                (told("batch", protocol="UDP", flow__sends=640, moved__nic__tx_packets=700), "batch", ""),
                (told("zerocopy", engine__zerocopy_sends=10, engine__zerocopy_completions=10,
                      engine__zerocopy_copied=10), "zerocopy", "asked for, 100 % copied"),
                (told("zerocopy", engine__zerocopy_sends=10, engine__zerocopy_completions=10), "zerocopy",
                 "asked for, 0 % copied"),
                (told("zerocopy", engine__zerocopy_sends=10, engine__zerocopy_completions=1000,
                      engine__zerocopy_copied=999), "zerocopy", "asked for, 99.9 % copied"),
                (told("zerocopy", engine__zerocopy_sends=10), "zerocopy", "asked for, no completion came"),
                (told("zerocopy", engine__zerocopy_refused=3), "zerocopy", "3 sends copied at once"),
                (told("zerocopy", engine__bytes_truncated=500, flow__bytes_received=1000), "zerocopy",
                 "50 % of the bytes never copied"),
                (told("spin", flow__sends=10, flow__receives=10, engine__empty_calls=180), "spin",
                 "90 % of the calls found nothing"),
                (told("spin", engine__busy_poll_us=50), "spin", "busy polls of 50 us"),
                (told("spin", unread={"engine.busy_poll_us": "no NAPI id"}), "spin", "no busy polls (no NAPI id)"),
                (told("epoll", engine__empty_calls=5), "epoll", ""),
                (told("uring", engine__submissions=100, engine__completions=250), "uring",
                 "2.5 completions a submission")):
            self.assertEqual(methods.proof(e, asked), words, e)

    def test_shares_of_nearly_all(self):
        for share, words in ((0.0, "0 %"), (1.0, "100 %"), (0.999999, "99.99 %"), (0.00001, "0.001 %"),
                             (0.5, "50 %"), (0.004, "0.4 %")):
            self.assertEqual(methods.percent(share), words)

    def test_system_calls(self):
        for e, flows, count, exact in (
                (told("sync", flow__sends=7), 1, 7, True),
                (told("epoll", flow__sends=7, engine__empty_calls=2), 1, 9, False),
                (told("spin", flow__sends=7, flow__receives=6, engine__empty_calls=100), 9, 113, True),
                (told("batch", flow__sends=640, engine__send_calls=10), 1, 10, True),
                (told("batch", flow__sends=640, engine__send_calls=10), 2, 10, False),
                (told("zerocopy", flow__sends=5), 1, 5, False),
                (told("uring", flow__sends=100, engine__submissions=4), 50, 4, True)):
            self.assertEqual(methods.system_calls(e, flows), (count, exact), e)
        self.assertIsNone(methods.system_calls({}, 1))

    def test_units_of_work(self):
        for e, wanted in (
                (told("sync", flow__bytes_sent=5000), (5, "kB")),
                (told("sync", protocol="UDP", flow__sends=7, flow__bytes_sent=448), (7, "datagram")),
                (told("sync", protocol="UDP", flow__sends=7, flow__transactions=6), (6, "transaction")),
                (told("sync"), None)):
            self.assertEqual(methods.work(e), wanted)


NO_CYCLES = {"work.cycles": "no such counters", "work.instructions": "no such counters"}
METHODS = """\
UDP_STREAM: Mbit/s

engine   median  lower quartile  upper quartile  to sync    lost  runs
----------------------------------------------------------------------
sync        100            95.0             105     1.00    50 %     2
segment    2300            2250            2350    23.13  12.5 %     2
batch         -               -               -        -       -     -

what a datagram cost; calls: those that move data, or try to; >=: and waits, which nobody counts

engine    end  user ns  system ns   calls  switches  cycles  instructions  the way taken
--------------------------------------------------------------------------------------------------------
sync     near     1000       5000    1.00   0.00150  unread        unread  -
sync      far     2000      10000    1.00   0.00300  unread        unread  -
segment  near     10.0       50.0  0.0156  1.50e-05     200           300  64.0 messages sent a call
segment   far     20.0        100  0.0312  3.00e-05  unread        unread  32.0 messages received a call

"""


class Methods(Place):
    """The table over hand-made runs."""

    def udp(self):
        def pair(engine, count, near=None, far=None, unread=None):
            return (told(engine, "transmit", "UDP", unread, flow__sends=count, **(near or {})),
                    told(engine, "receive", "UDP", flow__receives=count // 2, udp__sent=count,
                         udp__lost=count // 2 if engine == "sync" else count // 8, **(far or {})))

        several = {"engine__send_calls": 156250, "engine__messages_sent": 10**7, "work__cycles": 2 * 10**9,
                   "work__instructions": 3 * 10**9, "work__counted": "user"}
        joined = {"engine__receive_calls": 156250, "engine__messages_received": 5 * 10**6}
        runs = [measured("sync", 90.0, *pair("sync", 10**5, unread=NO_CYCLES)),
                measured("segment", 2200.0, *pair("segment", 10**7, several, joined)),
                measured("sync", 110.0, *pair("sync", 10**5, unread=NO_CYCLES), 2),
                measured("segment", 2400.0, *pair("segment", 10**7, several, joined), 2),
                left_out("batch", "the far end: batch: no sendmmsg(2)")]
        return self.file([("engine", ["sync", "segment", "batch"])], runs, {"test": "UDP_STREAM"},
                         repetitions=2)

    def test_text(self):
        out = self.printed(self.udp())
        wanted = METHODS
        self.assertEqual(out[:len(wanted)], wanted)
        self.assertEqual(out[len(wanted):].splitlines(), [
            "batch: left out: the far end: batch: no sendmmsg(2)",
            "cycles and instructions, near: no such counters",
            "cycles and instructions, near: of the user's part alone, the kernel's is not permitted",
            "cycles and instructions, far: a session of the daemon's counts none"])

    def test_formats(self):
        path = self.udp()
        rc, out, err = netreport(path, "--format", "csv")
        self.assertIn("segment,2300,2250,2350,23.13,12.5 %,2\n", out)
        self.assertEqual(err.splitlines()[0], "netreport: batch: left out: the far end: batch: no sendmmsg(2)")
        self.assertIn("| segment | 2300 |", netreport(path, "--format", "markdown")[1])
        self.assertIn("- batch: left out", netreport(path, "--format", "markdown")[1])
        self.assertIn(r"segment & 2300 &", netreport(path, "--format", "latex")[1])

    def test_the_other_tables(self):
        """What an end has not is no failure there, and no gap."""
        rc, out, err = netreport(self.udp(), "--table")
        self.assertRegex(out, r"(?m)^batch +n/a$")
        self.assertNotIn("average", out)
        self.assertNotIn("sendmmsg", out)
        both = netreport(self.udp(), "--methods", "--table")[1]
        self.assertIn("the way taken", both)
        self.assertIn("THROUGHPUT in", both)
        self.assertNotIn("the way taken", netreport(self.udp(), "--statistic", "max")[1])
        self.refused("no runs by several engines", self.lab(), "--methods", status=2)

    def test_several_tests_and_failures(self):
        runs = []
        for size in (1, 100):
            for engine in ("sync", "epoll"):
                e = told(engine, "request", flow__transactions=1000, flow__sends=1000, flow__receives=1000)
                if (size, engine) != (100, "sync"):
                    runs.append(measured(engine, 1000.0 * size, e, e, unit="Trans/s", size=size))
        runs.append(failed({"engine": "sync", "size": 100}, "netperf: it drives one connection for each worker"))
        path = self.file([("size", [1, 100]), ("engine", ["sync", "epoll"])], runs, {"test": "TCP_RR"})
        out = self.printed(path)
        self.assertIn("TCP_RR, size 1: transactions/s", out)
        self.assertIn("TCP_RR, size 100: transactions/s", out)
        self.assertIn("sync: 1 of 1 failed: netperf: it drives one connection for each worker", out)
        self.assertIn("nothing to compare with: no run by sync", out)
        self.assertRegex(out, r"(?m)^epoll +near +[\d.]+ +[\d.]+ +>=2\.00 +0\.150 ")
        self.assertIn("what a transaction cost", out)


MTUS = [576, 1500, 9000]


def mtu_runs():
    """Runs at 99 % of their ceilings; that of UDP at 1500 failed."""
    for test, headers in (("TCP_STREAM", 52), ("UDP_STREAM", 28)):
        for mtu in MTUS:
            point = {"test": test, "mtu": mtu}
            if (test, mtu) == ("UDP_STREAM", 1500):
                yield failed(point, "netperf: <gone> & away")
            else:
                yield good(point, 99.0 * (mtu - headers) / (mtu + 38))


def coordinates(group):
    """The points of the path of a drawn line; a gap begins a new part."""
    path = group.find(f".//{SVG}path").get("d")
    return [(float(x), float(y)) for x, y in re.findall(r"[ML] ([-\d.]+) ([-\d.]+)", path)]


WORDS = {
    "mtu": "Throughput (Mbit/s) | TCP_STREAM | UDP_STREAM | TCP at most | UDP at most | MTU (bytes) | From the ceiling (%) | "
    "TCP_STREAM | UDP_STREAM | Throughput over MTU | \u00d7: failed; n = 1, 100 Mbit/s",
    "netpipe": "Throughput (Mbit/s) | TCP_RR at most | TCP_RR | Message size (bytes) | One way (\u00b5s) | Latency and "
    "bandwidth over message size | n = 1, 10 s each, 100 Mbit/s, MTU 1500",
    "flows": "Throughput of each flow (Mbit/s) | flow 1 | flow 2 | TCP_STREAM | Time (s) | Jain's index | Flows over time | "
             "each interval at its middle; circles: the first and the last, in which buffers fill and drain; Jain's index: 1 | where "
             "all flows are alike; n = 1, 10 s each, 100 Mbit/s, MTU 1500",
    "fluctuation": "Time (s) | Throughput (Mbit/s) | mean 85, samples 40 to 94, deviation 24\u00a0% | worst second 40 | TCP_STREAM | "
    "Fluctuation within the runs | a line a run; dashed: the mean; thick: the second in which least went through; n = 1, "
    "10 s each, 100 Mbit/s, | delay 5 ms, MTU 1500",
    "buffer": "16 KiB | 32 KiB | Socket buffer | Throughput (Mbit/s) | TCP_STREAM | 16 KiB | 32 KiB | Socket buffer | "
    "Throughput (Mbit/s) | UDP_STREAM | message size 64 | message size 1500 | TCP at most | message size 64 at most | "
    "message size 1500 at most | Throughput over socket buffer | band or bar: least to most of the runs; \u00d7: failed; "
    "n = 1 to 2, 100 Mbit/s, MTU 1500, 2026-11-25",
    "cpu": "Throughput (Mbit/s) | UDP at most | UDP_STREAM | off | on | TCP_NODELAY | Processor busy (%) | local | remote | "
    "Throughput and processors of both ends | solid: local end, dashed: remote end; band or bar: least to most of the runs; "
    "n = 2, 10 s each, 100 Mbit/s, MTU",
    "tests": "Throughput (transactions/s) | TCP_RR | UDP_RR | 17 000  (24.8 % of 68 681) | 17 000  (22.8 % of 74 405) | "
    "Throughput by test | upright: the ceiling; n = 1, 10 s each, 100 Mbit/s, MTU 1500"}


@unittest.skipUnless(DRAWS, NO_PLOTS)
class Plots(Place):
    def svg(self, path, *args):
        out = self.dir / "p.svg"
        rc, said, err = netreport(path, "--plot", out, *args)
        self.assertEqual((rc, said, err), (0, "", ""))
        root = ET.parse(out).getroot()
        return root, {g.get("id"): g for g in root.iter(f"{SVG}g") if g.get("id")}

    def words(self, root):
        return [text.text for text in root.iter(f"{SVG}text")]

    def scale(self, groups, axis):
        """From heights on the paper to values, by the grid lines and the words beside them."""
        known = []
        for tick in groups[f"matplotlib.axis_{axis}"]:
            text = tick.find(f".//{SVG}text")
            grid = tick.find(f".//{SVG}path")
            if (tick.get("id") or "").startswith("ytick") and text is not None and grid is not None:
                height = float(re.match(r"M [-\d.]+ ([-\d.]+)", grid.get("d"))[1])
                known.append((height, float(text.text.replace("\u2212", "-").replace(" ", ""))))
        (y0, v0), (y1, v1) = known[0], known[-1]
        return lambda y: v0 + (y - y0) * (v1 - v0) / (y1 - y0)

    def test_mtu_shows_ceiling_and_deviation(self):
        path = self.file([("test", ["TCP_STREAM", "UDP_STREAM"]), ("mtu", MTUS)], mtu_runs(),
                         {"rate": 100000000})
        root, groups = self.svg(path)
        value = self.scale(groups, 2)
        for name, headers in (("TCP", 52), ("UDP", 28)):
            drawn = [value(y) for _, y in coordinates(groups[f"ceiling-{name}-0"])]
            for got, mtu in zip(drawn, MTUS):
                self.assertAlmostEqual(got, 100 * (mtu - headers) / (mtu + 38), delta=0.02)
            self.assertEqual(len(drawn), 3)
        deviation = self.scale(groups, 4)
        for _, y in coordinates(groups["deviation0-TCP-STREAM"]):
            self.assertAlmostEqual(deviation(y), -1.0, delta=0.01)
        self.assertEqual(len(coordinates(groups["line0-TCP-STREAM"])), 3)
        self.assertLess(groups["line0-UDP-STREAM"].find(f"{SVG}path").get("d").count("L"), 2)
        self.assertIn("gap-line0-UDP-STREAM", groups)
        self.assertNotIn("gap-line0-TCP-STREAM", groups)
        for word in ("TCP_STREAM", "UDP_STREAM", "TCP at most", "UDP at most", "MTU (bytes)", "Throughput (Mbit/s)", "From the ceiling (%)"):
            self.assertIn(word, self.words(root))

    def test_points_tell_their_words(self):
        """Where a marker is, the mouse finds what it says; where a run failed, that it did."""
        path = self.file([("test", ["TCP_STREAM", "UDP_STREAM"]), ("mtu", MTUS)], mtu_runs(), {"rate": 100000000})
        root, groups = self.svg(path)
        told = [(tip.find(f"{SVG}title").text, *(float(tip.get(at)) + 6 for at in "xy")) for tip in groups["tips"]]
        for (x, y), mtu, rate in zip(coordinates(groups["line0-TCP-STREAM"]), MTUS, ("84.4886", "93.2068", "98.0142")):
            found = [words for words, cx, cy in told if abs(cx - x) < 0.5 and abs(cy - y) < 0.5]
            self.assertTrue(any(words.startswith(f"TCP_STREAM, MTU {mtu}\n{rate}") for words in found), (mtu, told))
        self.assertIn("UDP_STREAM, MTU 1500\nfailed", [words for words, _, _ in told])
        bars = self.file([("test", ["TCP_RR", "UDP_RR"])], [
            good({"test": name}, 17000.0, unit="Trans/s") for name in ("TCP_RR", "UDP_RR")])
        groups = self.svg(bars)[1]
        self.assertEqual([tip.find(f"{SVG}title").text for tip in groups["tips"]], [
            "TCP_RR\n17 000 transactions/s", "UDP_RR\n17 000 transactions/s"])

    def test_buffer_shows_spread_and_ceiling(self):
        point = {"test": "UDP_STREAM"}
        runs = [good({**point, "buffer": b, "size": 1472}, 90.0 + b / 16384 + n, n)
                for b in (16384, 32768, 65536) for n in (1, 2, 3)]
        path = self.file([("test", ["UDP_STREAM"]), ("buffer", [16384, 32768, 65536], "bytes"),
                          ("size", [1472])], runs, {"rate": 1e8, "mtu": 1500}, repetitions=3)
        root, groups = self.svg(path)
        value = self.scale(groups, 2)
        line = [value(y) for _, y in coordinates(groups["line0-all"])]
        for got, wanted in zip(line, (93, 94, 96)):
            self.assertAlmostEqual(got, wanted, delta=0.02)
        shape = groups["spread-line0-all"]
        moved = float(shape.find(f".//{SVG}use").get("y"))
        band = [value(y + moved) for _, y in coordinates(shape)]
        self.assertAlmostEqual(min(band), 92, delta=0.05)
        self.assertAlmostEqual(max(band), 97, delta=0.05)
        self.assertAlmostEqual(value(coordinates(groups["ceiling-UDP-0"])[0][1]), 95.709, delta=0.02)
        self.assertIn("32 KiB", self.words(root))
        for spread in ("stddev", "none"):
            self.svg(path, "--spread", spread)

    def test_flows_and_threads_are_axes(self):
        for name, values, words in (("threads", [1, "2,2"], "threads 2,2"), ("processes", [1, 4], "netperf processes 4")):
            runs = [good({"flows": flows, name: value}, 80.0 + flows) for flows in (1, 2, 4) for value in values]
            for run in runs:
                run.command += ["--flows"]
            path = self.file([(name, values), ("flows", [1, 2, 4])], runs, {"rate": 1e8, "mtu": 1500})
            root, groups = self.svg(path)
            self.assertIn("Flows", self.words(root))
            self.assertIn(words, self.words(root))
            self.assertEqual(len([one for one in groups if one.startswith("line0")]), 2, list(groups))

    def test_cpu_shows_both_ends(self):
        runs = [good({"DMA_length": n}, 90.0, LOCAL_CPU_UTIL=10.0 * n, REMOTE_CPU_UTIL=50.0)
                for n in range(4)]
        root, groups = self.svg(self.file([("DMA_length", [0, 1, 2, 3])], runs), "--kind", "cpu")
        value = self.scale(groups, 4)
        for got, wanted in zip(coordinates(groups["cpu0-local"]), (0, 10, 20, 30)):
            self.assertAlmostEqual(value(got[1]), wanted, delta=0.1)
        self.assertAlmostEqual(value(coordinates(groups["cpu0-remote"])[0][1]), 50, delta=0.1)

    def test_fluctuation_shows_the_worst_second(self):
        run = good({"test": "TCP_STREAM"}, 85.0)
        run.interim = [[0.5 * n, 40.0 if n in (7, 8) else 94.0] for n in range(1, 13)]
        root, groups = self.svg(self.file([("test", ["TCP_STREAM"])], [run]))
        value = self.scale(groups, 2)
        self.assertAlmostEqual(value(coordinates(groups["worst-0"])[0][1]), 40, delta=0.2)
        self.assertAlmostEqual(value(coordinates(groups["mean-0"])[0][1]), 85, delta=0.2)
        self.assertIn("worst second 40", self.words(root))
        self.assertIn("mean 85, samples 40 to 94, deviation 24\u00a0%", self.words(root))
        many = []
        for buffer in range(1, 9):
            one = good({"buffer": buffer}, 85.0)
            many.append(one)
            one.interim = run.interim
        many[0].result["THROUGHPUT"] = 99.0     # more than any sample: the last seconds, say
        self.svg(self.file([("buffer", [str(b) for b in range(1, 9)])], [
            results.replace(one, point={"buffer": str(b)}) for b, one in enumerate(many, 1)]))
        root, groups = self.svg(self.file([("buffer", list(range(1, 9)))], many))
        self.assertAlmostEqual(self.scale(groups, 2)(coordinates(groups["worst-0"])[0][1]), 40, delta=1)
        run.interim[0][1] = run.interim[1][1] = 30.0    # words beside the axis begin there
        root, _ = self.svg(self.file([("test", ["TCP_STREAM"])], [run]))
        self.assertIn("text-anchor: start", next(text.get("style") for text in root.iter(f"{SVG}text") if text.text == "worst second 30"))

    def test_netpipe_and_tests(self):
        sizes = [2 ** n for n in range(0, 21, 2)]
        runs = [good({"test": "TCP_RR", "size": size}, 1e6 / (40 + size * 0.16), unit="Trans/s")
                for size in sizes]
        path = self.file([("test", ["TCP_RR"]), ("size", sizes, "bytes")], runs,
                         {"rate": 1e8, "mtu": 1500})
        root, groups = self.svg(path)
        self.assertEqual(len(coordinates(groups["latency-all"])), len(sizes))
        self.assertIn("One way (\u00b5s)", self.words(root))
        path = self.file([("test", ["TCP_RR", "UDP_RR"])], [
            good({"test": name}, 17000.0, unit="Trans/s") for name in ("TCP_RR", "UDP_RR")],
            {"rate": 1e8, "mtu": 1500})
        root, groups = self.svg(path)
        self.assertIn("17 000  (24.8 % of 68 681)", self.words(root))
        self.assertIn("ceiling-UDP-RR", groups)

    def test_a_curve_has_its_knee(self):
        run = good({"test": "UDP_RR"}, 17000.0, unit="Trans/s")
        run.more["curve"] = {"unit": "1/s", "knee": 400.0, "steps": [
            {"rate": rate, "p50": 10.0, "p99": p99, "intervals": {"p50": [9.0, 11.0], "p99": None}}
            for rate, p99 in ((100.0, 20.0), (800.0, plots.NEVER), (400.0, 30.0))]}
        root, groups = self.svg(self.file([("test", ["UDP_RR"])], [run]))
        self.assertEqual([len(coordinates(groups[f"curve-0-{name}"])) for name in ("p50", "p99")], [3, 2])
        self.assertIn("the knee: 400", self.words(root))
        curve = run.more["curve"]
        whole = Path(self.file([("size", [64])], [good({"size": 64}, 17000.0)], name="whole.jsonl"))
        whole.write_text(whole.read_text().replace('"lab"', '"another"'))
        for damaged in ({"curve": 7}, {"curve": {"steps": 7}}, {"curve": {**curve, "steps": [{}, {}]}},
                        {"curve": {**curve, "steps": [{**step, "rate": 0} for step in curve["steps"]]}}, {"disturbed": [7]}):
            run.more = damaged
            path = self.file([("test", ["UDP_RR"])], [run])
            self.refused(f"netreport: {path}: a damaged document", whole, path, "--html", self.dir / "x.html")
        with mock.patch.object(draw, "draw", side_effect=KeyError), self.assertRaises(KeyError):     # a fault of ours
            netreport(whole, "--html", self.dir / "x.html")

    def test_stations_add_up(self):
        runs = [good({"test": name}, 17000.0, unit="Trans/s") for name in ("TCP_RR", "UDP_RR")]
        for run, wire in zip(runs, (10.0, 30.0)):
            run.more["evidence"] = {"near": {f"stations.{name}_us": 5.0 for name in plots.STATIONS}}
            run.more["evidence"]["near"]["stations.wire_us"] = wire
        root, groups = self.svg(self.file([("test", ["TCP_RR", "UDP_RR"])], runs), "--kind", "stations")
        self.assertIn("UDP_RR\nwire 30 \u00b5s, 46 %", [title.text for title in root.iter() if title.tag.endswith("title")])
        self.assertEqual(len([name for name in groups if name.startswith("part-")]), 2 * len(plots.STATIONS))
        self.assertLessEqual({name.replace("_", " ") for name in plots.STATIONS}, set(self.words(root)))
        self.assertEqual(len(set(plots.BARS)), len(plots.STATIONS))

    def test_dollars_are_no_mathematics(self):
        values = ["$a^b$", r"$\frac{$"]
        root, _ = self.svg(self.file([("how", values)], [good({"how": value}, 5.0) for value in values]), "--title", "from $5 to $6")
        self.assertLessEqual({*values, "from $5 to $6"}, set(self.words(root)))

    def test_texts_that_cannot_be_printed(self):
        """Of a file's name that is not UTF-8, and of values that a terminal would obey."""
        files = [self.file([("how", ["\udcff", "a\x1b[31mb"])], [good({"how": value}, 5.0, n) for value in ("\udcff", "a\x1b[31mb") for n in (1, 2)],
                           {"number": number}, f"\udcfe{number}.jsonl") for number in (1, 2)]
        root, _ = self.svg(files[0], "--title", "two\nlines\tof it")
        self.assertLessEqual({"a?[31mb", "two lines of it"}, set(self.words(root)))
        self.assertEqual(units.printable("a\tb\x1b"), "a b?")
        bad = self.file([("how", [1])], [failed({"how": 1}, "\x1b[31mnetperf")], {}, "bad.jsonl")
        rc, text, err = netreport(*files, bad)
        self.assertEqual((rc, [one for one in text + err if not one.isprintable() and one != "\n"]), (0, []))
        self.assertEqual(netreport("--compare", *files, "--plot", self.dir / "x.svg", env={})[2] if not NO_SCIPY else "", "")

    def test_large_numbers_have_no_power_of_ten(self):
        self.assertEqual([plots.plain(value, 4) for value in (239260.4, 1e6, 9404.5, 94.126, -3.5, 0.01)],
                         ["239 260", "1 000 000", "9404", "94.13", "\u22123.5", "0.01"])
        self.assertEqual(tables.latex("-0.5 tcp-1"), "$-$0.5 tcp-1")

    def test_a_latency_axis_has_several_values(self):
        """However little of a decade it spans."""
        runs = [good({"asked_rate": rate}, rate, ASKED_RATE=rate, P50_LATENCY=41.0 + rate / 1000, P99_LATENCY=60.0) for rate in (1000.0, 2000.0)]
        groups = self.svg(self.file([("asked_rate", [1000, 2000], "1/s")], runs, {"test": "TCP_RR"}))[1]
        named = [tick for tick in groups["matplotlib.axis_2"] if (tick.get("id") or "").startswith("ytick") and tick.find(f".//{SVG}text") is not None]
        self.assertGreater(len(named), 2)

    def test_ceilings_differ_in_stroke_or_colour(self):
        sizes = [64 << i for i in range(8)]
        path = self.file([("buffer", [1, 2]), ("size", sizes)], [good({"size": size, "buffer": buffer}, 40.0) for size in sizes
                                                                 for buffer in (1, 2)], {"test": "UDP_STREAM", "rate": 1e8, "mtu": 1500})
        made = plots.figure(tables.Sweep(results.read(path)), "buffer")
        looks = [(line.colour, line.dash) for line in made.stacks[0][0].lines if line.kind == "ceiling"]
        self.assertEqual((len(looks), len(set(looks))), (8, 8))

    def test_ceilings_leave_room_for_the_data(self):
        """A link of 100 Gbit/s carries 70 million transactions of a byte a second."""
        sizes = [1, 65536, 262144]
        path = self.file([("size", sizes)], [good({"size": size}, 3e4, unit="Trans/s") for size in sizes],
                         {"test": "TCP_RR", "rate": 1e11, "mtu": 1500})
        panel, = plots.figure(tables.Sweep(results.read(path)), "buffer").stacks[0]
        self.assertEqual([(len(line.marks), line.marks[-1].x) for line in panel.lines if line.kind == "ceiling"], [(2, 262144.0)])
        self.assertIn("4 times", panel.note)
        self.assertLess(panel.limits()[1], 5 * 3e4)

    def test_doubtful_points_have_a_ring(self):
        runs = [good({"size": size}, 10.0) for size in (64, 128)]
        runs[0].more["disturbed"] = {"share": 0.5, "seconds": 10.0, "reasons": {"steal": 5.0}}
        root, groups = self.svg(self.file([("size", [64, 128])], runs, {"test": "TCP_STREAM"}))
        self.assertEqual(len(groups["doubt-line0-all"].findall(f".//{SVG}use")), 1)
        self.assertIn("(1 of 2)", " ".join(self.words(root)))

    def test_what_labels_say_and_where_they_belong(self):
        runs = [good({"size": size, "buffer": b}, 80.0 + size / 1000 + b) for size in (64, 576) for b in (1, 2, 3)]
        root, groups = self.svg(self.file([("size", [64, 576]), ("buffer", [1, 2, 3])], runs,
                                          {"rate": 1e8, "mtu": 1500, "test": "TCP_STREAM"}))
        for size in (64, 576):
            self.assertIn(f"message size {size}", self.words(root))
            leader = next(groups[f"leader-line0-message-size-{size}"].iter(f"{SVG}path"))
            end = coordinates(groups[f"line0-message-size-{size}"])[-1]
            begin = [float(n) for n in re.findall(r"[-\d.]+", leader.get("d"))][-2:]
            self.assertLess(abs(begin[1] - end[1]) + abs(begin[0] - end[0]), 12)
        order = [g.get("id") for g in root.iter(f"{SVG}g")]
        self.assertGreater(order.index("ceiling-TCP-0"), order.index("line0-message-size-576"))     # on top

    def test_on_and_off_are_no_line(self):
        runs = [good({"tso": value}, 90.0 + n, n) for value in (True, False) for n in (1, 2)]
        root, groups = self.svg(self.file([("tso", [True, False])], runs, {"test": "TCP_STREAM"}))
        self.assertIsNone(groups["line0-all"].find(f"{SVG}path"))       # markers alone
        self.assertEqual(len(list(groups["line0-all"].iter(f"{SVG}use"))), 2)
        self.assertIn("on", self.words(root))

    def test_the_deviation_shows_its_spread(self):
        runs = [good({"test": "TCP_STREAM", "mtu": mtu}, 90.0 + n, n) for mtu in (1500, 9000) for n in (1, 2)]
        groups = self.svg(self.file([("test", ["TCP_STREAM"]), ("mtu", [1500, 9000])], runs, {"rate": 1e8}))[1]
        self.assertIn("spread-deviation0-all", groups)

    def every_kind(self):
        """A small sweep for each kind of plot."""
        link = {"rate": 1e8, "mtu": 1500, "length": 10}
        run = good({"test": "TCP_STREAM"}, 85.0)
        run.interim = [[0.5 * n, 40.0 if n in (7, 8) else 94.0] for n in range(1, 13)]
        sizes = [2 ** n for n in range(0, 21, 4)]
        several = good({"test": "TCP_STREAM"}, 90.0)
        several.more.update(interim_flows=[[n, [20.0 * n, 90.0 - 20.0 * n], 0.5 + 0.1 * n] for n in range(1, 4)],
                            interim_quartiles=False)
        return {
            "mtu": self.file([("test", ["TCP_STREAM", "UDP_STREAM"]), ("mtu", MTUS)], mtu_runs(), {"rate": 1e8}, "m.jsonl"),
            "netpipe": self.file([("test", ["TCP_RR"]), ("size", sizes, "bytes")], [
                good({"test": "TCP_RR", "size": size}, 1e6 / (40 + size), unit="Trans/s") for size in sizes], link, "n.jsonl"),
            "flows": self.file([("test", ["TCP_STREAM"])], [several], link, "s.jsonl"),
            "fluctuation": self.file([("test", ["TCP_STREAM"])], [run], {**link, "delay": "5ms"}, "f.jsonl"),
            "buffer": self.lab(started="2026-11-25T09:00:00Z"),
            "cpu": self.file([("nodelay", [False, True])], [
                good({"nodelay": value}, 90.0 + n, n, LOCAL_CPU_UTIL=5.0, REMOTE_CPU_UTIL=9.0)
                for value in (False, True) for n in (1, 2)], {**link, "test": "UDP_STREAM"}, "c.jsonl"),
            "tests": self.file([("test", ["TCP_RR", "UDP_RR"])], [
                good({"test": name}, 17000.0, unit="Trans/s") for name in ("TCP_RR", "UDP_RR")], link, "t.jsonl")}

    def test_words_of_every_kind(self):
        """As they were when somebody looked at the pictures; the numbers at the axes are not among them."""
        for kind, path in self.every_kind().items():
            words = [word for word in self.words(self.svg(path, "--kind", kind)[0])
                     if not re.fullmatch("[\u2212\\d. ]+", word)]
            self.assertEqual(" | ".join(words), WORDS[kind])

    def test_what_a_paper_asks_for(self):
        """Width, title, axis, and where it begins."""
        path = self.lab(started="2026-11-25T09:00:00Z")
        for width in (8, 18):
            root, groups = self.svg(path, "--width", width, "--title", "", "--x", "size", "--where", "buffer=32768")
            self.assertAlmostEqual(float(root.get("width").rstrip("pt")), width / 2.54 * 72, 1)
            words = self.words(root)
            self.assertNotIn("Throughput over message size", words)
            for word in ("Message size (bytes)", "Throughput (Mbit/s)", "TCP at most", "0", "64", "1500"):
                self.assertIn(word, words)
            self.assertIn("n = 1 to 2, 100 Mbit/s, MTU 1500, socket buffer 32 KiB", " ".join(words).replace("; ", " "))
        low = {}
        for begin, least in (("0", 0), ("50", 50), ("data", 1)):
            root, groups = self.svg(path, "--y-from", begin, "--where", "test=TCP_STREAM")
            low[begin] = min(float(word.replace(" ", "")) for word in self.words(root)
                             if re.fullmatch(r"[\d ]+\.?\d*", word) and word not in ("64", "1500"))
            self.assertGreaterEqual(low[begin], least)
        self.assertEqual(low["0"], 0)
        for args, rc, words in ((["--x", "nonesuch"], 1, "--x nonesuch: no such axis (try test, buffer, size)"),
                                (["--width", "3"], 2, "--width: '3' is not a number (4 to 100)"),
                                (["--y-from", "x"], 2, "--y-from: 'x' is not a number"),):
            got = netreport(path, "--plot", self.dir / "x.svg", *args)
            self.assertEqual((got[0], got[1], got[2].count("\n")), (rc, "", 1), got)
            self.assertIn(words, got[2])
        for option, value in (("--x", "size"), ("--width", "8"), ("--title", "a"), ("--y-from", "1")):
            rc, out, err = netreport(path, option, value)
            self.assertEqual((rc, out), (2, ""))
            self.assertIn(f"{option}: only with --plot", err)

    def test_ticks_are_values_and_never_on_each_other(self):
        mtus = [576, 1000, 1280, 1500, 9000]
        path = self.file([("test", ["TCP_STREAM"]), ("mtu", mtus)], [
            good({"test": "TCP_STREAM", "mtu": mtu}, mtu / 100) for mtu in mtus])
        for width, kept in ((18, {"576", "1000", "1500", "9000"}), (6, {"576", "1500", "9000"})):
            root, groups = self.svg(path, "--width", width)
            rows = [], []       # where names stand, by the number of lines before them
            for tick in groups["matplotlib.axis_1"]:
                names = [text.text for text in tick.iter(f"{SVG}text")]
                if (tick.get("id") or "").startswith("xtick") and names:
                    at = float(next(tick.iter(f"{SVG}use")).get("x"))
                    rows[len(names) - 1].append((at, len(names[-1]) * 8 * 0.62, names[-1]))
            self.assertLessEqual(kept, {name for _, _, name in rows[0]})
            self.assertLessEqual({name for row in rows for _, _, name in row}, set(map(str, mtus)))
            self.assertEqual(len(rows[1]), 1)
            for row in map(sorted, rows):
                for (one, wide, _), (other, also, _) in zip(row, row[1:]):
                    self.assertGreater(other - one, (wide + also) / 2)

    def test_a_panel_has_few_lines(self):
        """Tests, then the axis with the fewest values, make panels where lines would be too many to tell apart."""
        runs = [good({"test": test, "mtu": mtu, "buffer": buffer, "size": size}, mtu / 100 + size)
                for test in ("TCP_STREAM", "UDP_STREAM") for mtu in MTUS for buffer in (1, 2) for size in range(1, 9)]
        path = self.file([("test", ["TCP_STREAM", "UDP_STREAM"]), ("mtu", MTUS), ("buffer", [1, 2]),
                          ("size", list(range(1, 9)))], runs)
        root, groups = self.svg(path)
        words = self.words(root)
        for test in ("TCP_STREAM", "UDP_STREAM"):
            for buffer in (1, 2):
                self.assertIn(f"{test}, socket buffer {buffer}", words)
        self.assertEqual([words.count(f"message size {size}") for size in range(1, 9)], [4] * 8)
        self.assertEqual(len([name for name in groups if name.startswith("line3-")]), 8)

    def test_lines_differ_in_grey(self):
        """Each has other dashes or another marker, and each its name, however many there are."""
        runs = [good({"queues": queues, "size": size}, 1.0 * queues + size) for queues in range(1, 21) for size in (64, 128, 512)]
        path = self.file([("queues", list(range(1, 21))), ("size", [64, 128, 512])], runs)
        for width in (8, 18):
            root, groups = self.svg(path, "--x", "size", "--width", width)
            looks = set()
            for queues in range(1, 21):
                self.assertIn(f"queues {queues}", self.words(root))
                line = groups[f"line0-queues-{queues}"]
                dashes = re.search(r"stroke-dasharray: ([^;]+)", line.find(f"{SVG}path").get("style"))
                looks.add((dashes and dashes[1], line.find(f".//{SVG}defs/{SVG}path").get("d")))
            self.assertEqual(len(looks), 20)

    def test_colours_and_markers_differ(self):
        looks = [plots.look(test) for test in plots.TESTS]
        self.assertEqual(len({colour for colour, _ in looks}), 4)
        self.assertEqual(len({marker for _, marker in looks}), 4)

        def protanope(colour):
            """Roughly what is left of a colour without red cones: its yellow to blue, and its lightness."""
            r, g, b = (int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5))
            return 0.11 * r + 0.89 * g, b
        seen = [protanope(colour) for colour in plots.COLOURS]
        for i, (light, blue) in enumerate(seen):
            for other in seen[:i]:
                self.assertGreater(abs(light - other[0]) + abs(blue - other[1]), 0.15)

    def test_png_pdf_and_refusals(self):
        for name, magic in (("p.PNG", b"\x89PNG\r\n\x1a\n"), ("p.pdf", b"%PDF-1.4")):
            out = self.dir / name
            self.assertEqual(netreport(self.lab(), "--plot", out)[0], 0)
            self.assertEqual(out.read_bytes()[:8], magic)
        for kind, words in (("mtu", "no axis mtu with two values (try buffer)"),
                            ("fluctuation", "give netperf -D"), ("cpu", "measure with -c -C")):
            rc, _, err = netreport(self.lab(), "--plot", out, "--kind", kind)
            self.assertEqual((rc, err.count("\n")), (1, 1), err)
            self.assertIn(f"netreport: --kind {kind}: ", err)
            self.assertIn(words, err)
        bad = self.file([("buffer", [1, 2])], [failed({"buffer": 1}, "x")])
        self.assertIn("not one good run", netreport(bad, "--plot", out)[2])
        self.assertIn("/nowhere/p.svg: No such file", netreport(self.lab(), "--plot",
                                                                "/nowhere/p.svg")[2])

    def test_the_same_results_make_the_same_file(self):
        path = self.lab()
        for name in ("a.svg", "b.svg"):
            netreport(path, "--plot", self.dir / name)
        self.assertEqual((self.dir / "a.svg").read_bytes(), (self.dir / "b.svg").read_bytes())


class Reader(html.parser.HTMLParser):
    """What stands in a page: its tags in balance, references, identifiers, words."""
    EMPTY = ("meta", "link", "img", "br", "hr", "input")

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.references, self.ids, self.data = [], [], [], [], []
        self.styles = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in self.EMPTY:
            self.open.append(tag)
        self._attributes(attrs)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self._attributes(attrs)

    def _attributes(self, attrs):
        for name, value in attrs:
            if name in ("href", "src", "srcset", "action", "data", "poster") or name.endswith(":href"):
                self.references.append(value)
            elif name == "id":
                self.ids.append(value)
            else:
                self.styles.append(value or "")

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> in {self.open}"
        self.open.pop()

    def handle_data(self, data):
        (self.styles if self.open and self.open[-1] == "style" else self.data).append(data)


@unittest.skipUnless(DRAWS, NO_PLOTS)
class Page(Place):
    def page(self, *paths):
        out = self.dir / "p.html"
        rc, said, err = netreport(*paths, "--html", out)
        self.assertEqual((rc, said, err), (0, "", ""))
        return Reader(out.read_text()), out.read_text()

    def test_it_refers_to_nothing_outside_itself(self):
        one = self.lab(environment={"client": {"kernel": "6.18 <x>", "interface": {"mtu": 1500}}},
                       plan_text='title = "a <b> & c"\n')
        two = self.file([("test", ["TCP_STREAM", "UDP_STREAM"]), ("mtu", MTUS)], mtu_runs(),
                        {"rate": 100000000}, "m.jsonl")
        for path in (one, two):
            got, text = self.page(path)
            self.assertEqual(got.open, [])
            self.assertNotIn("http", text)
            self.assertEqual(len(got.ids), len(set(got.ids)))
            for reference in got.references:
                self.assertTrue(reference.startswith("data:") or reference[0] == "#"
                                and reference[1:] in got.ids, reference)
            for style in got.styles:
                self.assertNotIn("@import", style)
                for url in re.findall(r"url\(([^)]*)\)", style):
                    self.assertIn(url.strip("\"'")[1:], got.ids)
            for tag in ("link", "img", "iframe", "object", "script"):
                self.assertNotIn(tag, got.tags)

    def test_what_it_shows(self):
        got, text = self.page(self.lab(environment={"client": {"kernel": "6.18 <x>"}},
                                       plan_text='title = "a <b> & c"\n'))
        words = "".join(got.data)
        for word in ("The lab", "70.50", "80.00*", "% of the ceiling", "6.18 <x>", "client kernel",
                     'title = "a <b> & c"', "2 of 2 runs: netperf: 50 % & _lost_", "100 Mbit/s",
                     "netperf -H 10.77.0.2 -t TCP_STREAM", "netperf -l 1"):
            self.assertIn(word, words)
        self.assertEqual(got.tags.count("svg"), 1)
        self.assertEqual(got.tags.count("table"), 5)    # two of either figure, the environment
        self.assertIn("prefers-color-scheme: dark", text)
        self.assertIn("@media print", text)
        self.assertNotIn("#1f2a37", text.partition("</style>")[2])      # the page's colours

    def test_the_page_has_the_plot_of_the_file(self):
        """Its words, those under the mouse, and its lines, in the colours of the page."""
        path = self.file([("test", ["TCP_STREAM", "UDP_STREAM"]), ("mtu", MTUS)], mtu_runs(), {"rate": 1e8})
        text = self.page(path)[1]
        page = ET.fromstring(text[text.index("<svg"):text.index("</svg>")] + "</svg>")
        netreport(path, "--plot", self.dir / "p.svg")
        file = ET.parse(self.dir / "p.svg").getroot()
        for tag in ("text", "title"):
            self.assertEqual([one.text for one in page.iter(tag)], [one.text for one in file.iter(SVG + tag)])
        self.assertEqual([one.get("d") for one in page.iter("path") if one.get("clip-path")],
                         [one.get("d") for one in file.iter(f"{SVG}path") if one.get("clip-path")])

    def test_no_empty_table_and_no_word_on_what_the_sweep_set(self):
        """A test without a figure has no table of it; the MTU that a machine had is not that of an MTU sweep."""
        environment = {"client": {"interface": {"name": "eth0", "mtu": 1400}}}
        path = self.file([("test", ["TCP_STREAM", "UDP_STREAM"]), ("mtu", [576, 1500]), ("size", [64, 1472])], [
            good({"test": test, "mtu": mtu, "size": size}, 90.0, **({"LOCAL_CPU_UTIL": 5.0} if test == "TCP_STREAM" else {}))
            for test in ("TCP_STREAM", "UDP_STREAM") for mtu in (576, 1500) for size in (64, 1472)],
            environment=environment)
        words = "".join(self.page(path)[0].data)
        self.assertIn("TCP_STREAM: LOCAL_CPU_UTIL in %", words)
        self.assertNotIn("UDP_STREAM: LOCAL_CPU_UTIL", words)
        self.assertIn("client interface nameeth0", words)
        self.assertNotIn("1400", words)
        path = self.file([("size", [64, 1472])], [good({"size": 64}, 1.0)], environment=environment)
        self.assertIn("client interface mtu1400", "".join(self.page(path)[0].data))

    def test_many_panels_are_on_several_sheets(self):
        """With one title, one caption, and the same limits."""
        path = self.file([("host", list("abcdef")), ("mtu", MTUS)], [
            good({"host": host, "mtu": mtu}, 90.0 * (host == "a") + 1) for host in "abcdef" for mtu in MTUS], {"rate": 1e8})
        got, text = self.page(path)
        self.assertEqual(got.tags.count("svg"), 3)
        self.assertEqual(len(got.ids), len(set(got.ids)))
        words = "".join(got.data)
        self.assertEqual((words.count("Throughput over MTU"), words.count("n = 1")), (1, 1))
        for host in "abcdef":
            self.assertEqual(words.count(f"host {host}, MTU 576\n"), 2)    # of the mouse: throughput and deviation

    def test_what_carried_the_packets(self):
        runs = [good({"size": size}, 1.0) for size in (64, 576)]
        for run in runs:
            run.more["link"] = "100 Mbit/s, delay 1 ms (netlab-link)"
        path = self.file([("size", [64, 576])], runs)
        words = "".join(self.page(path)[0].data)
        self.assertIn("link made bynetlab-link", words)
        self.assertEqual(words.count("100 Mbit/s, delay 1 ms"), 1)
        runs = [good({"size": size}, 1.0) for size in range(5)]
        for size, run in enumerate(runs):
            run.more["link"] = f"MTU {size} (veth)"
        words = "".join(self.page(self.file([("size", list(range(5)))], runs))[0].data)
        self.assertIn("link made byveth", words)
        self.assertNotIn("MTU 3", words)

    def test_on_paper(self):
        """A wide table has its longer axis downwards, and commands are unfolded."""
        out, sizes = self.dir / "p.html", list(range(1, 17))
        runs = [good({"size": size, "buffer": buffer}, 48.0) for size in sizes for buffer in (1, 2)]
        self.assertEqual(netreport(self.file([("buffer", [1, 2]), ("size", sizes)], runs, {"test": "TCP_STREAM"}), "--html", out)[2], "")
        text = out.read_text()
        self.assertIn('<th scope="col">size \\ buffer</th><th scope="col">1</th><th scope="col">2</th>', text)
        self.assertIn("details::details-content { content-visibility: visible; }", text)

    def test_a_rate_has_its_unit(self):
        """In the facts, among the constants, and as the heading of a table."""
        words = "".join(self.page(self.file([("size", [64])], [good({"size": 64}, 1.0)], {"rate": 97656250.0}))[0].data)
        self.assertEqual((words.count("rate97.656 Mbit/s"), "97656250" in words), (2, False))
        path = self.file([("rate", [1e6, 1e7])], [good({"rate": rate}, 1.0) for rate in (1e6, 1e7)])
        self.assertIn("\n10 Mbit/s", netreport(path)[1])

    def test_several_files(self):
        one = self.file([("size", [64, 576])], [good({"size": 64}, 1.0)], {"mtu": 1500}, "a.jsonl",
                        plan_text="one")
        two = self.file([("size", [64, 576])], [good({"size": 64}, 3.0)], {"mtu": 9000}, "b.jsonl",
                        plan_text="two")
        words = "".join(self.page(one, two)[0].data)
        for word in ("a.jsonl", "b.jsonl", "one", "two"):
            self.assertIn(word, words)


class Surroundings(Place):
    @unittest.skipUnless(DRAWS and python.has(python.SYSTEM_PYTHON, "matplotlib"), NO_PLOTS)
    def test_another_python(self):
        """One without the modules, such as pyenv's, starts the script again under the distribution's."""
        other, plot = shutil.copy(python.SYSTEM_PYTHON, self.dir), self.dir / "p.svg"
        got = lib.run([str(other), "-S", NETREPORT, "--progress", "never", self.lab(), "--plot", str(plot)], timeout=60)
        self.assertEqual((got.rc, got.err, plot.exists()), (0, "", True))

    def test_without_matplotlib(self):
        """Neither Python has it, or it is broken: one line that says which, and nothing is written."""
        fake = self.dir / "matplotlib.py"
        for option, fault, why in (
                ("--plot", "ModuleNotFoundError('x', name='matplotlib')", "not installed: apt-get install python3-matplotlib"),
                ("--html", "ImportError('not here')", "installed and cannot be imported: not here")):
            fake.write_text(f"raise {fault}\n")
            out = self.dir / ("x.svg" if option == "--plot" else "x.html")
            err = self.refused("matplotlib", self.lab(), option, out, env={"PYTHONPATH": str(self.dir)})
            self.assertEqual(err, f"netreport: {option} needs Python's matplotlib, which is {why}\n")
            self.assertFalse(out.exists())
        self.assertEqual(netreport(self.lab(), env={"PYTHONPATH": str(self.dir)})[1], TEXT)

    def test_help_and_page(self):
        text = self.printed("--help")
        page = lib.page("netreport.1").read_text().replace("\\-", "-").replace("\\&", "").replace("\\f", " ")
        options = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", text))
        self.assertGreater(len(options), 25)
        of_others = {"--resume", "--label", "--json", "--baseline", "--until-confidence"}
        named = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", page)) - of_others
        self.assertEqual(named - options, set())

    def test_installed(self):
        """The script in bin finds its modules in share, also through a link."""
        script, share, link = lib.installed(self.dir / "usr", "netreport"), self.dir / "usr/share", self.dir / "link"
        link.symlink_to(script)
        for path in (script, link):
            got = lib.run([sys.executable, str(path), "--ceiling"], timeout=30)
            self.assertEqual((got.rc, got.err), (0, ""))
        self.assertFalse((share / "plumbline/netkit/__pycache__").exists())
        shutil.rmtree(share)
        got = lib.run([sys.executable, str(link), "--ceiling"], timeout=30)
        self.assertEqual((got.rc, got.err.count("\n")), (1, 1))
        self.assertIn("no netkit/", got.err)

    def test_every_module_is_installed(self):
        listed = re.findall(r"scripts/netkit/(\w+\.py)", (lib.TOP / "Makefile.am").read_text())
        self.assertEqual(set(listed), {path.name for path in (lib.SCRIPTS / "netkit").glob("*.py")})


def main() -> None:
    lib.wants("matplotlib", "pandas")
    if not DRAWS:
        print(f"SKIP: plots and pages: {NO_PLOTS}", flush=True)
    lib.unit_main()


if __name__ == "__main__":
    main()
