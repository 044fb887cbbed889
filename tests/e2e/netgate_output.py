#!/usr/bin/env python3
"""What netgate says of gates that are made up: JSON lines, text, KTAP, JUnit XML, criteria, what differs;
read by readers that others wrote."""

import json
import math
import sys
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path

sys.dont_write_bytecode = True  # or scripts/ would get a __pycache__
sys.path.insert(0, str(Path(__file__).resolve().parent))

import lib  # noqa: E402

sys.path.insert(0, str(lib.TOP / "scripts"))

from netkit import python  # noqa: E402
from netkit.gate import output  # noqa: E402
from netkit.gate.model import (BETTER, CANT_TELL, EQUAL, WORSE, A, B, Gate, GateError, Judgement, Learned,  # noqa: E402
                               Metric, Point, Side, Slot)

SPARE = Metric("LOCAL_CPU_UTIL", 5.0, more_is_better=False)
STREAM = Point("tcp_stream.mtu9000", "TCP_STREAM", b=Side(options=("-m", "1K"), settings=(("mtu lab0", "9000"),)),
               metrics=(Metric(), SPARE))
RR = Point("tcp_rr", "TCP_RR", metrics=(Metric(margin=1.0),))
MBIT = "10^6bits/s"


def slot(number, side, rate, point=STREAM, **more):
    return Slot(point.name, side, number, 1, "2026-11-23T04:00:00.000Z", 1.5, 1.0, ["netperf", "-t", point.test],
                {"THROUGHPUT": rate}, {"THROUGHPUT": MBIT}, **more)


def judged(verdict, change, low, high, point=STREAM, metric=None, **more):
    return Judgement(point.name, metric or point.metrics[0], verdict, change, low, high, 9412.3, 9401.0, MBIT,
                     **{"pairs": 12, "noise": 1.25, "seconds": 31.0, **more})


def gate(*judgements, **more):
    """A gate of two points: a slot was disturbed, and one failed."""
    slots = [slot(1, A, 9400.5, disturbed=0.0, samples=[(0.5, 9400.0), (1.0, 9401.0)]),
             slot(2, B, 9412.0, disturbed=0.25, reasons={"steal": 0.2, "foreign": 0.05},
                  evidence={"near": {"flow.bytes_sent": 12}, "far": {}}),
             slot(3, A, 1.0, RR, failed="netperf: connect to 10.0.0.2: Connection refused")]
    return Gate([STREAM, RR], list(judgements), slots, Learned(4, {STREAM.name: 1.2}), 95.0, 60.0, 62.5,
                "2026-11-23T04:00:00.000Z", ["netgate", "--test", "TCP_STREAM"],
                {"client": {"hostname": "box", "kernel": "Linux 6.18"}}, **more)


class Place(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.dir = Path(place.name)

    def refused(self, call, *args):
        """The one line that a call is refused with."""
        with self.assertRaises(GateError) as caught:
            call(*args)
        self.assertNotIn("\n", str(caught.exception))
        return str(caught.exception)


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
        self.assertEqual(output.read(self.written(made, evidence=True)), made)
        without = output.read(self.written(made, "small.jsonl"))
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
            self.assertEqual(set(line), set(shape["properties"]), "a member that the schema does not name")
            self.assertFalse(check.is_valid({**line, "schema": "else"}))
        self.assertEqual((lines[4]["high"], lines[5]["low"]), (None, None))
        self.assertFalse(check.is_valid({**lines[1], "side": "C"}))

    def test_a_gate_that_was_killed(self):
        path = Path(self.written(gate(judged(EQUAL, 0.1, -0.4, 0.6))))
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(lines[:3]) + lines[3][:70])
        found = output.read(str(path))
        self.assertEqual((len(found.slots), found.judgements, bool(found.over)), (2, [], True))
        path.write_bytes(b"".join(lines * 2))
        self.assertEqual([len(one.slots) for one in output.sessions(str(path))], [3, 3])
        self.assertIn("2 gates", self.refused(output.read, str(path)))

    def test_files_that_are_none(self):
        good = Path(self.written(gate())).read_text().splitlines(keepends=True)
        for text, words in (("", "empty"), ("hello\n", "line 1: not JSON"), ("[]\n", "line 1: not an object"),
                            (good[1], "line 1: the header"), (good[0] + "{\n" + good[1], "line 2: not JSON"),
                            (good[0] + good[1].replace('"A"', '"C"'), "line 2: side: \"C\""),
                            (good[0] + good[1].replace("9400.5", '"much"'), "line 2: figures.THROUGHPUT: \"much\""),
                            (good[0].replace('"points": [', '"points": [{}, '), "line 1: points: no name"),
                            (good[0] + '{"schema": "plumbline-slot/9"}\n', "line 2: schema")):
            path = self.dir / "bad.jsonl"
            path.write_text(text)
            self.assertIn(words, self.refused(output.sessions if text else output.read, str(path)))
        self.assertIn("No such file", self.refused(output.read, str(self.dir / "none")))

    def test_a_file_that_is_there(self):
        path = self.written(gate())
        self.assertIn("is there already", self.refused(output.Writer, path))
        self.written(replace(gate(), budget=5.0), overwrite=True)
        self.assertEqual(output.read(path).budget, 5.0)
        self.assertIn("No such file", self.refused(output.Writer, str(self.dir / "no" / "where")))


def main() -> int:
    for module in ("scipy", "tap", "junitparser", "jsonschema", "rich"):
        try:
            python.need(module, f"python3-{module}")
        except python.MissingModule as fault:
            print(f"SKIP: what {fault}", flush=True)
    result = unittest.main(exit=False, verbosity=2).result
    if not result.wasSuccessful():
        return 1
    return 77 if len(result.skipped) == result.testsRun else 0


if __name__ == "__main__":
    sys.exit(main())
