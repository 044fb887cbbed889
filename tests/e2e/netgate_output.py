#!/usr/bin/env python3
"""The output of netgate for made-up gates: JSON lines, text, KTAP, JUnit XML, criteria, differences; parsed by other
people's programs."""

import contextlib
import importlib.util
import io
import json
import math
import os
import pty
import random
import resource
import shutil
import subprocess
import sys
import unittest
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import lib
from netkit import python, results
from netkit.gate import differ, output
from netkit.gate.model import (BETTER, CANT_TELL, EQUAL, WORSE, A, B, Gate, GateError,
                               Judgement, Learned, Metric, Point, Side, Slot)

SPARE = Metric("LOCAL_CPU_UTIL", 5.0, more_is_better=False)
STREAM = Point("tcp_stream.mtu9000", "TCP_STREAM", b=Side(options=("-m", "1K"), settings=(("mtu lab0", "9000"),)),
               metrics=(Metric(), SPARE))
RR = Point("tcp_rr", "TCP_RR", metrics=(Metric(margin=1.0),))
MBIT = "Mbit/s"


def slot(number, side, rate, point=STREAM, **more):
    return Slot(point.name, side, number, 1, "2026-11-23T04:00:00.000Z", 1.5, 1.0, ["netperf", "-t", point.test],
                {"THROUGHPUT": rate}, {"THROUGHPUT": MBIT}, **more)


def judged(verdict, change, low, high, point=STREAM, metric=None, **more):
    return Judgement(point.name, metric or point.metrics[0], verdict, change, low, high, 9412.3, 9401.0, MBIT,
                     **{"pairs": 12, "noise": 1.25, "seconds": 31.0, **more})


def gate(*judgements, **more):
    """A gate with two points, a disturbed slot and a failed one."""
    slots = [slot(1, A, 9400.5, disturbed=0.0, samples=[(0.5, 9400.0), (1.0, 9401.0)]),
             slot(2, B, 9412.0, disturbed=0.25, reasons={"steal": 0.2, "foreign": 0.05},
                  evidence={"near": {"flow.bytes_sent": 12}, "far": {}}),
             slot(3, A, 1.0, RR, failed="netperf: connect to 10.0.0.2: Connection refused")]
    return Gate([STREAM, RR], list(judgements), slots, Learned(4, {STREAM.name: 1.2}), 95.0, 60.0, 62.5,
                "2026-11-23T04:00:00.000Z", ["netgate", "--test", "TCP_STREAM"],
                {"client": {"hostname": "box", "kernel": "Linux 6.18"}}, **more)


class Place(lib.InPlace):
    def refused(self, call, *args):
        """The error message of a call."""
        with self.assertRaises(GateError) as caught:
            call(*args)
        self.assertNotIn("\n", str(caught.exception))
        return str(caught.exception)


def only(path):
    """The only gate in a file."""
    (found,) = output.sessions(path)
    return found


class Lines(Place):
    """JSON lines."""

    def written(self, made, name="gate.jsonl", **options):
        path = str(self.dir / name)
        writer = output.Writer(path, **options)
        writer.begin(made)
        for one in made.slots:
            writer.slot(one, made, [])
        writer.end(made)
        return path

    def test_what_is_written_is_read(self):
        made = gate(judged(WORSE, -3.1, -3.8, -2.4, notes=["n"], differs=["tso: on -> off"]),
                    judged(CANT_TELL, None, None, None, RR, more_pairs=40), notes=["note"], over="SIGINT")
        self.assertEqual(only(self.written(made, evidence=True)), made)
        without = only(self.written(made, "small.jsonl"))
        self.assertEqual([one.evidence for one in without.slots], [{}, {}, {}])

    def test_the_schema(self):
        try:
            import jsonschema
        except ImportError:
            self.skipTest("no jsonschema: apt-get install python3-jsonschema")
        schema = json.loads((lib.TOP / "doc" / "netgate.schema.json").read_text())
        jsonschema.Draft202012Validator.check_schema(schema)
        check = jsonschema.Draft202012Validator(schema)
        made = gate(judged(WORSE, -3.1, -3.8, math.nan), judged(CANT_TELL, None, -math.inf, math.inf, RR))
        lines = [json.loads(line) for line in Path(self.written(made, evidence=True)).read_text().splitlines()]
        for line in lines:
            check.validate(line)
            shape = schema["$defs"][{"gate": "gate", "slot": "slot", "verdict": "verdict", "gate-end": "end"}[
                line["schema"].split("/")[0][len("plumbline-"):]]]
            self.assertEqual(set(line) - set(shape["properties"]), set(), "members that the schema does not name")
            self.assertFalse(check.is_valid({**line, "schema": "else"}))
        self.assertEqual((lines[4]["high"], lines[5]["low"]), (None, None))
        self.assertFalse(check.is_valid({**lines[1], "side": "C"}))

    def test_a_gate_that_was_killed(self):
        path = Path(self.written(gate(judged(EQUAL, 0.1, -0.4, 0.6))))
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(lines[:3]) + lines[3][:70])
        found = only(str(path))
        self.assertEqual((len(found.slots), found.judgements, bool(found.over)), (2, [], True))
        path.write_bytes(b"".join(lines * 2))
        self.assertEqual([len(one.slots) for one in output.sessions(str(path))], [3, 3])

    def test_what_another_program_wrote_is_kept(self):
        """--keep appends after the last complete line, and only to netgate's files."""
        path = Path(self.written(gate()))
        whole = path.read_bytes()
        path.write_bytes(whole + b'{"schema"')
        output.Writer(str(path), mode="a+b").end(gate())
        self.assertEqual([len(one.slots) for one in output.sessions(str(path))], [3])
        for text in (b"a line\nand half a line", b"half a line", b'{"schema": "plumbline-sweep/1"}\n'):
            path.write_bytes(text)
            self.assertIn("not a file of netgate's", self.refused(output.Writer, str(path), False, "a+b"))
            self.assertEqual(path.read_bytes(), text)

    def test_files_that_are_none(self):
        good = Path(self.written(gate())).read_text().splitlines(keepends=True)
        for text, words in (("hello\n", "line 1: not JSON"), ("[]\n", "line 1: not an object"),
                            (good[1], "line 1: the header"), (good[0] + "{\n" + good[1], "line 2: not JSON"),
                            (good[0] + good[1].replace('"A"', '"C"'), "line 2: side: \"C\""),
                            (good[0] + good[1].replace("9400.5", '"much"'), "line 2: figures.THROUGHPUT: \"much\""),
                            (good[0] + good[1].replace("9400.5", "9" * 400), "line 2: figures.THROUGHPUT: 999"),
                            (good[0].replace('"points": [', '"points": [{}, '), "line 1: points: no name"),
                            (good[0] + '{"schema": "plumbline-slot/9"}\n', "line 2: schema")):
            path = self.dir / "bad.jsonl"
            path.write_text(text)
            self.assertIn(words, self.refused(output.sessions, str(path)))
        self.assertIn("No such file", self.refused(output.sessions, str(self.dir / "none")))

    def test_a_disk_that_is_full_at_the_header_leaves_no_file(self):
        """Otherwise the next run finds a file that it can neither append to nor overwrite."""
        told = resource.getrlimit(resource.RLIMIT_FSIZE)
        header = results.Header("p", "t", [])
        for create, fault in ((lambda path: output.Writer(path).begin(gate()), GateError),
                              (lambda path: results.Writer.create(path, header), results.ResultsError),
                              (lambda path: results.Writer.create(path, header, overwrite=True), results.ResultsError)):
            path = self.dir / "full.jsonl"
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, told[1]))
            try:
                with self.assertRaisesRegex(fault, "full.jsonl: File too large"):
                    create(str(path))
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, told)
            self.assertFalse(path.exists())

    def test_a_pipe_that_nobody_reads_stays(self):
        path = self.dir / "pipe"
        os.mkfifo(path)
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        writer = output.Writer(str(path), mode="wb")
        os.close(reader)
        self.assertIn("pipe: Broken pipe", self.refused(writer.begin, gate()))
        self.assertTrue(path.exists())

    def test_a_file_that_is_there(self):
        path = self.written(gate())
        self.assertIn("already exists", self.refused(output.Writer, path))
        self.written(replace(gate(), budget=5.0), mode="wb")
        self.assertEqual(only(path).budget, 5.0)
        other = output.Writer(path, mode="a+b")
        for mode in ("a+b", "wb"):
            self.assertIn("another netgate is writing it", self.refused(output.Writer, path, False, mode))
        other.end(gate())
        self.assertEqual(only(path).budget, 5.0)
        self.assertIn("No such file", self.refused(output.Writer, str(self.dir / "no" / "where")))


class Readers(Place):
    """The final output, parsed by programs that do not know netgate."""

    def all_verdicts(self):
        return gate(judged(WORSE, -3.1, -3.8, -2.4, differs=["offload tso: on -> off"], left_out=2),
                    judged(EQUAL, 0.1, -0.4, 0.6, metric=SPARE, notes=["two\nlines"]),
                    judged(CANT_TELL, 0.6, -3.0, 4.1, RR, noise=4.2, more_pairs=40),
                    judged(BETTER, 5.0, 4.0, 6.0, replace(RR, name="tcp_crr")), notes=["A and B are the same"])

    names = ["tcp_stream.mtu9000.throughput", "tcp_stream.mtu9000.local_cpu_util", "tcp_rr", "tcp_crr"]

    def test_tappy(self):
        try:
            from tap.parser import Parser
        except ImportError:
            self.skipTest("no tappy: apt-get install python3-tap")
        for options, good in (({}, [False, True, True, True]),
                              ({"strict": True, "tap13": True}, [False, True, False, True])):
            lines = list(Parser().parse_text(output.ktap(self.all_verdicts(), **options)))
            kinds = [line.category for line in lines]
            self.assertEqual(kinds[:2], ["version" if "tap13" in options else "unknown", "plan"])
            self.assertEqual(kinds.count("unknown"), 0 if "tap13" in options else 1)
            self.assertEqual(lines[1].expected_tests, 4)
            found = [line for line in lines if line.category == "test"]
            self.assertEqual([line.description for line in found], self.names)
            self.assertEqual([line.ok for line in found], good)
            self.assertFalse(any(line.skip for line in found))
            self.assertEqual(dict(word.split("=") for word in found[0].directive.text.split()), {
                "value": "9412.3", "unit": "Mbit/s", "lo": "-3.8", "hi": "-2.4", "base": "9401.0",
                "verdict": "worse", "time": "31000ms"})
            self.assertIn("noise 4.2 %, about 40 more pairs (103 s)", output.ktap(self.all_verdicts(), **options))

    def proved(self, text):
        path = self.dir / "gate.tap"
        path.write_text(text)
        return lib.run(["prove", "-e", "cat", str(path)], timeout=60)

    @unittest.skipUnless(shutil.which("prove"), "no prove: apt-get install perl")
    def test_prove(self):
        got = self.proved(output.ktap(self.all_verdicts()))
        self.assertIn("Failed 1/4 subtests", got.out)
        for text in (output.ktap(gate(judged(EQUAL, 0.1, -0.4, 0.6)), strict=True),
                     output.tap(gate(judged(CANT_TELL, None, None, None, pairs=0, noise=None))),
                     output.ktap(gate(over="SIGTERM"))):
            got = self.proved(text)
            self.assertEqual(got.rc, 0, text + got.out)
        self.assertNotEqual(self.proved(output.ktap(gate(over="SIGTERM"), strict=True)).rc, 0)

    def test_what_makes_a_whole_program_skipped(self):
        """The readers of the kernel's network tests take " # SKIP" anywhere for that of the whole program: it is used
        only if there is no verdict at all."""
        unsure = judged(CANT_TELL, 0.6, -3.0, 4.1, RR, more_pairs=40)
        left_out = [("tcp_crr", "no IPv6")]
        made = gate(judged(EQUAL, 0.1, -0.4, 0.6), unsure, skipped=left_out)
        text = output.tap(made)
        self.assertNotIn("SKIP", text)
        self.assertIn("\nok 2 tcp_rr # value=9412.3", text)
        self.assertIn("\n# left out: tcp_crr: no IPv6\n", text)
        self.assertEqual((made.status(), made.status(one_will_do=True), made.status(True, True)), (77, 0, 1))
        made = gate(unsure, skipped=left_out)
        self.assertIn("\nok 1 tcp_rr # SKIP can't tell (noise", output.tap(made))
        self.assertEqual(made.status(one_will_do=True), 77)

    def test_a_single_slot_is_no_evidence(self):
        if importlib.util.find_spec("scipy"):
            self.assertEqual(differ.error_of([1.0], [2.0]), 1.0)

    def test_a_gate_that_failed(self):
        """It has no verdict, but must not look like one that was skipped."""
        made = gate(judged(CANT_TELL, None, None, None, pairs=0, noise=None), over="no answer", failed=True)
        self.assertRegex(output.ktap(made), r"(?m)^not ok 1 tcp_stream.mtu9000 # value=.* verdict=cant_tell "
                                            r"time=31000ms$")
        suite = ET.fromstring(output.junit(made))[0]
        self.assertEqual((suite.get("errors"), suite.get("skipped")), ("1", "0"))
        self.assertEqual(suite.find("testcase/error").get("message"), "no answer")

    def test_junit(self):
        try:
            from junitparser import Failure, JUnitXml, Skipped
        except ImportError:
            self.skipTest("no junitparser: apt-get install python3-junitparser")
        made = self.all_verdicts()
        made.slots[2].failed = "\x1b[31mno <route> & so on\x00"
        for strict, kinds in ((False, [[Failure], [], [Skipped], []]), (True, [[Failure], [], [Failure], []])):
            suite, = JUnitXml.fromstring(output.junit(made, strict).encode())
            self.assertEqual((suite.tests, suite.failures, suite.skipped), (4, 1 + strict, 1 - strict))
            self.assertEqual({one.name: one.value for one in suite.properties()}["client.kernel"], "Linux 6.18")
            cases = list(suite)
            self.assertEqual([[type(one) for one in case.result] for case in cases], kinds)
            self.assertEqual([(case.classname, case.name, case.time) for case in cases][1],
                             ("netgate.tcp_stream.mtu9000", "LOCAL_CPU_UTIL", 31.0))
            self.assertIn("differs: offload tso: on -> off", cases[0].result[0].text)
            self.assertIn("no <route> & so on?", cases[2].result[0].text)
        self.assertEqual(len(list(*JUnitXml.fromstring(output.junit(gate()).encode()))), 1)

    def test_the_change_is_explained_where_the_medians_do_not_show_it(self):
        one = Judgement("p", Metric(), WORSE, -31.0, -40.0, -20.0, 6336.0, 10925.0, MBIT, pairs=20)
        self.assertIn("A and B are medians, -42.0 % apart; the change is the centre", output.text(gate(one)))
        one.change = -41.0
        self.assertNotIn("medians", output.text(gate(one)))

    def test_text(self):
        lines = output.text(self.all_verdicts()).splitlines()
        ends = [line.find("9412.3 Mbit/s") for line in lines if "9412.3" in line]
        self.assertEqual((len(ends), len(set(ends))), (4, 1), "columns that are not aligned")
        for line in ("    1 of 2 slots was disturbed, 12 % of the time: steal 0.2 s, foreign 0.05 s",
                     "    2 pairs left out", "    differs: offload tso: on -> off", "    two lines",
                     "    1 of 1 slots failed: netperf: connect to 10.0.0.2: Connection refused",
                     "worse: tcp_stream.mtu9000.throughput is 3.1 % (2.4 to 3.8) below A after 12 pairs, 31 s",
                     "can't tell: tcp_rr: +0.60 % (-3.0 to +4.1) after 12 pairs, 31 s: noise 4.2 %, about 40 more "
                     "pairs (103 s)", "better: tcp_crr is 5.0 % (4.0 to 6.0) above A after 12 pairs, 31 s",
                     "4 judged: 1 equal, 1 worse, 1 better, 1 can't tell"):
            self.assertEqual(lines.count(line), 1, line + "\n" + "\n".join(lines))
        self.assertNotIn("\033", "".join(lines))
        self.assertIn("\033[31mworse", output.text(self.all_verdicts(), colour=True))

    def test_the_verdict_of_one(self):
        def last(*args, **more):
            return output.text(gate(judged(*args, **more))).splitlines()[-1]
        self.assertEqual(last(EQUAL, 0.1, -0.4, 0.6), "equal: tcp_stream.mtu9000 is within 2 % of A: +0.10 % "
                         "(-0.40 to +0.60) after 12 pairs, 31 s")
        self.assertEqual(last(CANT_TELL, None, None, None, pairs=0, noise=None),
                         "can't tell: tcp_stream.mtu9000: no pair was measured")
        self.assertEqual(last(CANT_TELL, -0.0, -math.inf, None, pairs=1, noise=None),
                         "can't tell: tcp_stream.mtu9000: +0.00 % after 1 pair, 31 s: noise not known")
        self.assertEqual(last(WORSE, -99.5, None, -90.0), "worse: tcp_stream.mtu9000 is 99.5 % (90.0 to ?) below A "
                         "after 12 pairs, 31 s")
        self.assertEqual(output.text(gate(over="SIGTERM")).splitlines()[-2:],
                         ["ended early: SIGTERM", "can't tell: nothing was measured"])

    def test_progress(self):
        made, stream = self.all_verdicts(), io.StringIO()
        for kind in ("plain", "never"):
            live = output.Live(kind, stream)
            live.begin(made)
            live.slot(made.slots[1], made, made.judgements)
            live.slot(made.slots[2], made, [])
            live.end(made)
        lines = stream.getvalue().splitlines()
        self.assertEqual([line.partition("  ")[2] for line in lines], [
            "tcp_stream.mtu9000 B: 9412.0 Mbit/s; -3.1 % (-3.8 to -2.4) after 12 pairs: worse",
            "tcp_rr A: failed: netperf: connect to 10.0.0.2: Connection refused"])

    def test_a_bar(self):
        """On a terminal, whose line is erased at the end."""
        if not python.has(sys.executable, "rich"):
            self.skipTest("no rich: apt-get install python3-rich")
        code = ("import netgate_output as t\nfrom netkit.gate import output\n"
                "made, live = t.Readers().all_verdicts(), output.Live('bar')\nlive.begin(made)\n"
                "for one in made.slots: live.slot(one, made, made.judgements)\nlive.end(made)\n")
        near, far = pty.openpty()
        self.addCleanup(os.close, near)
        done = subprocess.run([sys.executable, "-c", code], stderr=far, timeout=60, check=False, env={
            **os.environ, "TERM": "xterm", "COLUMNS": "120", "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": f"{Path(__file__).parent}:{lib.TOP / 'scripts'}"})
        os.close(far)
        shown = b""
        with contextlib.suppress(OSError):      # the other side of the terminal is closed
            while got := os.read(near, 65536):
                shown += got
        self.assertEqual(done.returncode, 0, shown)
        self.assertIn(b"tcp_stream.mtu9000 B: 9412.0 Mbit/s; -3.1 % (-3.8 to -2.4)", shown)
        self.assertTrue(shown.endswith(b"\x1b[2K"), shown[-60:])


class Criteria(Place):
    def file(self, text):
        path = self.dir / "criteria.toml"
        path.write_text(text)
        return str(path)

    def test_the_later_ones_count(self):
        found = output.load_criteria(self.file(
            '[default]\nmargin = 3\nconfidence = 99\n[[criterion]]\npoint = "tcp_*.mtu9000"\nmargin = 1.5\n'
            '[[criterion]]\nmetric = "LOCAL_*"\nbetter = "more"\n[[criterion]]\npoint = "udp_*"\nmargin = 9\n'))
        stream, rr = output.apply([STREAM, RR], found)
        self.assertEqual(stream.metrics, (Metric(margin=1.5), Metric("LOCAL_CPU_UTIL", 1.5, True)))
        self.assertEqual((rr.metrics, found.confidence), ((Metric(margin=3.0),), 99))
        self.assertEqual([line.split(": ", 1)[1] for line in output.unused([STREAM, RR], found)],
                         ["[[criterion]] 3: nothing is measured that udp_*, * fits"])

    def test_what_is_written(self):
        path = str(self.dir / "made.toml")
        output.write_criteria(path, [STREAM, RR], 99.5)
        found = output.load_criteria(path)
        plain = [replace(point, metrics=tuple(Metric(one.name) for one in point.metrics)) for point in (STREAM, RR)]
        self.assertEqual((output.apply(plain, found), found.confidence), ([STREAM, RR], 99.5))
        self.assertIn("already exists", self.refused(output.write_criteria, path, [RR], 95.0))

    def test_files_that_are_none(self):
        for text, words in (("x = [", "(at "), ("[defaults]\n", "defaults: a file of criteria has"),
                            ("[default]\nmargin = 0\n", "margin: 0 is"), ("default = 1\n", "default: a file"),
                            ("[default]\nconfidence = 5\n", "confidence: 5 is"),
                            ("[default]\npoint = \"x\"\n", "[default]: point: unknown"),
                            ("[[criterion]]\nmargin = nan\n", "[[criterion]] 1: margin: nan is"),
                            ("[default]\nmargin = 2026-11-01\n", "margin: \"2026-11-01\" is not a number"),
                            ("[[criterion]]\n[[criterion]]\nmargins = 1\n", "[[criterion]] 2: margins: unknown"),
                            ("[[criterion]]\nbetter = \"higher\"\n", "better: higher is neither"),
                            ("[[criterion]]\npoint = 1\n", "point: 1 is not a text")):
            self.assertIn(words, self.refused(output.load_criteria, self.file(text)))
        self.assertIn("No such file", self.refused(output.load_criteria, str(self.dir / "none")))


ETHTOOL = """@@ ethtool i
driver: veth
version: 1.0
supports-statistics: yes
@@ ethtool k
Features for lab0:
tcp-segmentation-offload: {0}
\ttx-tcp-segmentation: {0}
\ttx-tcp6-segmentation: on [fixed]
rx-all: off [fixed]
@@ ethtool g
Ring parameters for lab0:
Pre-set maximums:
RX:\t\t4096
Current hardware settings:
RX:\t\t{1}
TX:\t\tn/a
@@ link
[{{"ifname": "lab0", "mtu": {2}, "address": "02:00:00:00:00:01"}}]
@@ qdisc
[{{"kind": "mq", "handle": "0:", "root": true, "options": {{}}}},
 {{"kind": "fq", "parent": ":1", "options": {{"limit": 9}}}},
 {{"kind": "fq", "parent": ":2", "options": {{"limit": 9}}}}]
@@ nic
queues/rx-0/rps_cpus:0
queues/rx-1/rps_cpus:{3}
@@ irq
24:0
25:1
@@ sysctl
ipv4/tcp_rmem:4096\t131072\t6291456
"""


class Differs(unittest.TestCase):
    """Differences between A and B."""

    def test_settings(self):
        a, b = (dict(differ.read(ETHTOOL.format(*values))) for values in (
            ("on", 256, 9000, 0), ("off", 512, 1500, "f")))
        self.assertEqual(a, {
            "driver": "veth", "driver version": "1.0", "offload tso": "on", "offload tso/tx-tcp-segmentation": "on",
            "offload tso/tx-tcp6-segmentation": "on", "offload rx-all": "off", "ring RX": "256", "mtu": "9000",
            "qdisc": "mq; 2 fq limit 9", "nic queues/rx-*/rps_cpus": "0", "irq affinity": "0 1",
            "sysctl net.ipv4.tcp_rmem": "4096 131072 6291456"})
        self.assertEqual(list(differ.changed(a, b)), [
            "offload tso: on -> off", "ring RX: 256 -> 512", "mtu: 9000 -> 1500",
            "nic queues/rx-*/rps_cpus: 0 -> 0 f"])
        self.assertEqual(list(differ.changed({"x": "1"}, {"y": "2"})), ["x: 1 -> none", "y: none -> 2"])

    def test_this_machine(self):
        found = differ.look([], "lo")
        self.assertIn(os.uname().release, found["host kernel"])
        self.assertEqual(found["mtu"], Path("/sys/class/net/lo/mtu").read_text().strip())
        self.assertEqual(differ.look(["env"], "lo"), found)
        self.assertEqual(list(differ.look([], "x'; echo '@@ mtu")), list(differ.look([], None)))
        below = '@@ of bond0\n@@ link\n[{"mtu": 1500}]\n@@ of eth0\n@@ link\n[{"mtu": 9000}]\n'
        self.assertEqual(dict(differ.read(below)), {"mtu": "1500", "eth0 mtu": "9000"})
        self.assertEqual(list(differ.look(["/no/such/program"], None)), ["unread"])
        self.assertEqual(list(differ.look(["false"], None)), ["unread"])

    def test_options(self):
        def lines(one, other):
            return list(differ.of_commands(*([Slot("p", A, command=words.split())] for words in (one, other))))
        self.assertEqual(lines("netperf --json=/tmp/1 -- -m 1K", "netperf --json=/tmp/2 -- -m 1K"), [])
        self.assertEqual(lines("netperf -- -m 1K", "netperf -c -- -m 64K -D"),
                         ["command: none -> -c", "command: -m 1K -> -m 64K -D"])
        self.assertEqual(lines("/old/netperf -l 1", "/new/netperf -l 1"), ["command: /old/netperf -> /new/netperf"])

    def test_counters_that_ends_tell(self):
        self.assertEqual(differ.sums({"sampler.stopped_s": 0.5, "sampler.samples": 9, "flow.sends": 3}),
                         {"sampler.stopped_s": 0.5, "flow.sends": 3})

    @staticmethod
    def slots(side, number, seed, speed=1.0, lossy=1.0, cpu=0):
        """Slots whose counters follow time or bytes, except for what is planted."""
        chance, made = random.Random(seed), []
        for _ in range(number):
            size = 1e8 * speed * chance.uniform(0.97, 1.03)

            def near(rate, chance=chance):
                return round(rate * chance.uniform(0.95, 1.05))
            lost = near(20 * lossy)
            bag = {"flow.seconds": 1.0, "flow.bytes_sent": size, "moved.seconds": 1.0,
                   "moved.irq.timer": near(1000), "moved.nic.tx_packets": near(size / 1500),
                   "tcp.segments_out": near(size / 1448), "tcp.retransmitted_segments": lost,
                   "moved.snmp.Tcp.RetransSegs": lost + 0.1, "tcp.rtt_us": near(100), "cpu.0.idle": chance.random(),
                   "cpu.0.softirq": 0.3 if cpu == 0 else 0.0, "cpu.1.softirq": 0.3 if cpu else 0.0,
                   "tcp.samples.rtt_us": [1, 2], "host.tcp.congestion": "bbr" if lossy == 1 else "reno",
                   "host.load": chance.random(), "thread.cpu": cpu}
            bag.update({f"moved.netstat.TcpExt.X{i}": near(500) for i in range(40)})
            if lossy > 1:
                bag["moved.nic.tx_errors"] = near(700)
            made.append(Slot(STREAM.name, side, command=["netperf"], evidence={"near": bag, "far": None}))
        return made

    def test_what_was_counted(self):
        """Few and many slots; B is slower by a fifth and has losses: counters that follow time or bytes are not
        named."""
        for number in (3, 12):
            a, b = self.slots(A, number, 1), self.slots(B, number, 2, 0.8, lossy=9.0)
            lines = differ.differences(a, b, {"mtu": "9000"}, {"mtu": "1500"})
            self.assertEqual([line.partition(": ")[0] for line in lines], [
                "mtu", "near moved.nic.tx_errors", "near tcp.retransmitted_segments"])
            self.assertRegex(lines[2], r": (19|20|21)(\.\d+)? -> 1[78]\d(\.\d+)? /s$")
            self.assertIn("near host.tcp.congestion: bbr -> reno", differ.differences(a, b, {}, {}))
        a, b = self.slots(A, 12, 4), self.slots(B, 12, 3, cpu=1)
        self.assertEqual(differ.differences(a, b, {}, {}), [
            "near thread.cpu: 0 -> 1", "near cpu.0.softirq: 0.30000 -> 0 processors",
            "near cpu.1.softirq: 0 -> 0.30000 processors"])

    def test_nothing_differs(self):
        """By chance, one of 20 comparisons of equal sides finds something; the seeds are chosen accordingly."""
        for number in (2, 3, 12):
            found = [differ.differences(self.slots(A, number, seed), self.slots(B, number, 99 + seed), {}, {})
                     for seed in range(20)]
            self.assertLess(sum(map(bool, found)), 3, found)

    def test_a_gate_that_is_worse(self):
        made = gate(judged(WORSE, -3.1, -3.8, -2.4), judged(EQUAL, 0.1, -0.4, 0.6, metric=SPARE))
        made.slots = [replace(one, settings={"mtu": mtu}) for mtu, side, seed in (("9000", A, 1), ("1500", B, 2))
                      for one in self.slots(side, 3, seed)]
        differ.explain(made)
        self.assertEqual([one.differs for one in made.judgements], [["mtu: 9000 -> 1500"], []])


def main() -> None:
    for module in ("scipy", "tap", "junitparser", "jsonschema", "rich"):
        try:
            python.need(module, f"python3-{module}")
        except python.MissingModule as fault:
            print(f"SKIP: what {fault}", flush=True)
    lib.unit_main()


if __name__ == "__main__":
    main()
