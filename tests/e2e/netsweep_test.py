#!/usr/bin/env python3
"""Tests of scripts/netsweep: the meaning of plans, sweeps on loopback, and as root the bundled plans in labs."""

import contextlib
import importlib.util
import io
import json
import math
import os
import pty
import random
import re
import resource
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request
from pathlib import Path
from unittest import mock

import lib
from netkit import (adaptive, calls, environment, ioengines, machine, options, plan as plans, results,
                    sweep, units, watch)

NETSWEEP = str(lib.SCRIPTS / "netsweep")
netsweep = lib.script("netsweep")
PAGE = lib.page("netsweep.1")
READY = plans.ready(str(lib.SCRIPTS / "plans"))
OBSTACLE = lib.no_lab()
NO_RICH = "" if importlib.util.find_spec("rich") else "this Python has no rich: python3-rich"
NO_SCIPY = "" if importlib.util.find_spec("scipy") else "this Python has no scipy: python3-scipy"
NO_PROMETHEUS = "" if importlib.util.find_spec("prometheus_client") else "this Python has no prometheus_client: python3-prometheus-client"
NO_LINE = lib.no_line()


def made(text: str) -> plans.Plan:
    """A plan that has been checked, for a host unless it says otherwise."""
    plan = plans.parse("t", text)
    if not plan.has("lab"):
        plan.constants.setdefault("host", "h")
    plans.check(plan)
    return plan


class Plans(unittest.TestCase):
    def refused(self, text, words):
        with self.assertRaisesRegex(plans.PlanError, words, msg=text) as got:
            made(text)
        self.assertNotIn("\n", str(got.exception))

    def test_axes(self):
        plan = made('[axes]\nbuffer = { from = 16, to = 24, step = 4 }\n'
                    'size = { from = 1, to = 9, times = 2 }\nnodelay = ["default", true]')
        self.assertEqual([axis.values for axis in plan.axes],
                         [[16, 20, 24], [1, 2, 4, 8], [None, True]])
        self.assertEqual(plan.axes[0].unit, "bytes")
        points = plan.points()
        self.assertEqual(len(points), 24)
        self.assertEqual(points[1], {"buffer": 16, "size": 1, "nodelay": True})

    def test_ranges_of_decimals(self):
        plan = made('[axes]\nlength = { from = 0.1, to = 0.3, step = 0.1 }\nwarm_up = { from = 0.1, to = 2.7, times = 3 }')
        self.assertEqual([axis.values for axis in plan.axes], [[0.1, 0.2, 0.3], [0.1, 0.3, 0.9, 2.7]])

    def test_skips(self):
        plan = made('[axes]\nfamily = [4, 6]\nmtu = [256, 1280]\ntest = ["TCP_STREAM", "UDP_STREAM"]\n'
                    '[before]\nmtu = "x {value}"\n'
                    '[[skip]]\nfamily = 6\nmtu = "< 1280"\n[[skip]]\ntest = ["UDP_STREAM", "X"]\nmtu = 1280')
        self.assertEqual([tuple(point.values()) for point in plan.points()], [
            (4, 256, "TCP_STREAM"), (4, 256, "UDP_STREAM"), (4, 1280, "TCP_STREAM"),
            (6, 1280, "TCP_STREAM")])

    def test_a_condition_is_no_other_kind(self):
        for value, wanted, holds in ((1, 1, True), (True, 1, False), (1, True, False), (5, ">= 5", True),
                                     (5, "< 5", False), ("a", "< 5", False), (None, "default", True),
                                     (4, [1, "> 3"], True), (True, "< 5", False), (5.0, 5, True),
                                     (999, "< 1e3", True), (64, "!= 64", False), (65, "!= 64", True), (-2, "< -1", True)):
            self.assertEqual(results.fits(value, wanted), holds, (value, wanted))

    def test_refusals(self):
        for text, words in (
                ("axes = 1", "wrong kind"), ("[axis]\na = 1", "axis is not a member of a plan"),
                ("[axes]\nbuffer = []", "no values"), ("[axes]\nbuffer = [1, 1]", "twice"),
                ("[axes]\n" + "".join(f"{name} = {[*range(1, 102)]}\n" for name in ("buffer", "size", "flows")), "1030301 runs"),
                ("[axes]\nfoo = [1]", "foo changes nothing"), ("[axes]\nsend_buffer = [1]", "(try buffer)"),
                ("[constants]\nlenght = 1", "lenght changes nothing: is length meant?"),
                ("[constants]\nhost = 'g'\nlab = '--mtu 9000'", "host and lab"),
                ("[constants]\nclean = 0", "clean: 0 is not a number from 1"),
                ("[constants]\nclean = 5\nlength = -100", "is a count, but clean is in seconds"),
                ("[constants]\nclean = 5\nat_most = 4", "at_most: 4 is less than clean"),
                ("[constants]\nat_most = 4", "there is no clean"),
                ("[constants]\nclean = 5\nconfidence = \"99,5\"", "clean: confidence says when to repeat"),
                ("[constants]\nclean = 5\niterations = \"10,3\"", "clean: iterations says when to repeat"),
                ("[axes]\nmtu = [256]", "ip link set"), ("[axes]\ntest = ['TCP_MSS']", "at test=TCP_MSS"),
                ("[axes]\nsize = ['full']\ntest = ['UDP_STREAM']", "needs an mtu"),
                ("[axes]\nfamily = [5]", "neither 4 nor 6"), ("[axes]\nnodelay = [2]", "true nor false"),
                ("[axes]\nbuffer = { from = 1, to = 4 }", "a range is"),
                ("[axes]\nbuffer = { from = 0, to = 4, times = 2 }", "a range is"),
                ("[axes]\nbuffer = { from = 1, to = 4, step = 0 }", "a range is"),
                ("[axes]\nbuffer = [1]\n[constants]\nbuffer = 1", "an axis and a constant"),
                ("order = 'up'", "one of given"), ("repetitions = 0", "from 1"),
                ("repetitions = 2000000000", "make 2000000000 runs: 1000000 at most"),
                ("[before]\nx = 'true'", "neither an axis"), ("[[skip]]\nx = 1", "skip: x is neither"),
                ("[axes]\nbuffer = [1, 2]\n[[skip]]\nbuffer = '<64KB'", "'<64KB' is neither a value nor a bound"),
                ("[axes]\nbuffer = [1, 2]\n[[skip]]\nbuffer = [1, '=> 3']", "'=> 3' is neither"),
                *((f"[axes]\nbuffer = [1, 2]\n[[skip]]\nbuffer = {one}", "is neither a value") for one in ("'64-128'", "''", "[]", "{a = 1}")),
                ("[axes]\nbuffer = [1, 2]\n[[skip]]\nbuffer = [1, nan]", "skip: buffer: nan is neither"),
                ("pause = nan\n", "a pause from 0 to"), ("pause = inf\n", "a pause from 0 to"),
                ("[axes]\nlength = [1.0, nan]", "nan and inf"), ("[constants]\nlength = inf", "constant length: a number"),
                ("[axes]\nx = [1]\n[before]\nx = 'set {y}'", "{y} is neither"),
                ("[axes]\nbuffer = [1]\n[[skip]]\nbuffer = 1", "everything is skipped"),
                ("until_confidence = '99'", "try 99,2.5"), ("flows = 1", "flows belongs in [constants]"),
                ("[constants]\nflows = 0", "flows: 0 is not a number from 1"),
                ("[axes]\nflows = ['2']", "flows: '2' is not a number"),
                ("[constants]\nflows = 10001", "more than the 10000"),
                ("[constants]\nflows = true", "flows: True is no"),
                ("[constants]\nprocesses = 0", "processes: 0 is not a number from 1"),
                ("[axes]\nthreads = ['2,x']\nflows = [2]", "threads: '2,x' is neither a number"),
                ("[constants]\nthreads = 0", "threads: 0 is neither"),
                ("[axes]\nthreads = [1, '1,3']\nflows = [2, 3]",
                 "flows=2: threads: 1,3 with flows = 2: a thread drives a flow at least (leave"),
                ("[constants]\nthreads = 2", "2 with flows = 1"),
                ("[axes]\nengine = ['sync,batch']", "engine: 'sync,batch' is neither an engine nor two"),
                ("[constants]\ncycles = 1", "cycles: 1 is neither true nor false"),
                ("[constants]\nlength = -0.5", "a count is a whole number"), ("x =", "t: "),
                ("[constants]\noptions = \"'\"", "No closing quotation")):
            self.refused(text, re.escape(words).replace("\\ ", " "))

    def test_how_long_any_plan_takes_is_told(self):
        """Also for a plan that takes more than a year, and for iterations that netperf will refuse."""
        for more, words in (("length = 1e12", "h [0-9]* min$"), ("iterations = 'many'", "s, until [0-9:]*$")):
            plan = made(f"[constants]\nhost = 'h'\n{more}\n[axes]\nsize = [1, 2]\n")
            self.assertRegex(list(sweep.describe(plan, plan.tasks(), 2))[-1], words)

    def test_no_host(self):
        with self.assertRaisesRegex(plans.PlanError, "--host NAME, --local"):
            plans.check(plans.parse("t", "[axes]\nsize = [1]"))

    def test_overrides(self):
        plan = plans.parse("t", "[constants]\nlength = 10\n[axes]\nbuffer = [1, 2]")
        for setting in ("buffer=16384,default", "length=5", "nodelay=true", "cpu=0,0;0,1",
                        "congestion=cubic,reno", "options=-Z x,y"):
            plans.override(plan, setting)
        self.assertEqual({axis.name: axis.values for axis in plan.axes}, {
            "buffer": [16384, None], "cpu": ["0,0", "0,1"], "congestion": ["cubic", "reno"]})
        self.assertEqual(plan.constants, {"length": 5, "nodelay": True, "options": "-Z x,y"})
        for setting in ("foo=1", "length", "=1"):
            with self.assertRaises(plans.PlanError, msg=setting):
                plans.override(plan, setting)

    def test_what_can_be_changed_in_a_lab_that_is_up(self):
        up = ["--rate", "100mbit", "--mtu", "1500"]
        for new, wanted in (
                (["--rate", "10mbit", "--mtu", "1500"], ["--rate", "10mbit"]),
                (["--rate=10mbit", "--mtu=9000"], ["--rate", "10mbit", "--mtu", "9000"]),
                (["--rate", "100mbit", "--mtu", "1279"], None),     # too small for IPv6
                (["--rate", "100mbit"], None), (up + ["--no-ipv6"], None),
                (up + ["--delay", "5ms"], None)):
            self.assertEqual(machine.lab_changes(up, new), wanted, new)
        line = up + ["--delay", "5ms", "--no-ipv6"]
        self.assertEqual(machine.lab_changes(line, up + ["--delay", "7ms", "--no-ipv6"]), ["--delay", "7ms"])
        self.assertIsNone(machine.lab_changes(line, up + ["--delay", "5ms", "--ipv6"]))
        self.assertEqual(machine.lab_changes(["--mtu", "256"], ["--mtu", "576"]), ["--mtu", "576"])
        self.assertIsNone(machine.lab_changes(["--framing", "none"], ["--framing", "ethernet"]))

    def test_without_a_lab(self):
        text = "[axes]\nlab = ['--rate none', '--rate 1gbit']\n"
        plan = plans.parse("t", text)
        self.assertEqual(plan.known({"lab": "--rate none"})["host"], "10.77.0.2")
        plans.override(plan, "host=h")      # not to be recorded where it is not used
        self.assertFalse(plan.has("lab"))
        self.assertEqual(plan.known({})["host"], "h")
        plans.override(plan, "lab=--rate 1gbit")
        self.assertFalse(plan.has("host"))
        self.assertEqual(plan.known({})["host"], "10.77.0.2")
        plan = plans.parse("t", "[constants]\nlab = '--rate none'")
        plans.override(plan, "lab=default")
        self.assertFalse(plan.has("lab"))

    def test_hosts(self):
        for text, wanted in (("a,b", ["a", "b"]), ("a,4", ["a,4"]), ("a,inet6,b", ["a,inet6", "b"]), ("a", ["a"]),
                             ("a,6;b", ["a,6", "b"]), ("fd77::2,10.0.0.4", ["fd77::2", "10.0.0.4"])):
            plan = plans.parse("t", "")
            plans.override(plan, f"host={text}")
            self.assertEqual([point.get("host") or plan.constants["host"] for point in plan.points()], wanted)

    def test_labels(self):
        plan = made("[constants]\ncard = 'x370'\nfirmware = 7")
        self.assertEqual(plan.shown_constants()["card"], "x370")
        header = plan.header("", {})
        plan.label = "A"
        self.assertIn("label: default in the file, A now", plan.difference(header))
        header = results.parse(io.BytesIO(json.dumps(plan.header("", {}).as_json()).encode()), "x").header
        self.assertEqual(plans.from_header(header).label, "A")

    def test_orders(self):
        text = "repetitions = 2\nseed = 7\n[axes]\nsize = [1, 2, 3]\n"

        def order(kind):
            return [(task.point["size"], task.repetition)
                    for task in made(f"order = '{kind}'\n{text}").tasks()]

        self.assertEqual(order("given"), [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (3, 2)])
        self.assertEqual(order("interleaved"), [(1, 1), (2, 1), (3, 1), (1, 2), (2, 2), (3, 2)])
        self.assertEqual(order("random"), order("random"))
        self.assertNotEqual(order("random"), order("given"))
        self.assertEqual(sorted(order("random")), order("given"))

    def test_a_lab_says_what_the_link_is(self):
        plan = made("[constants]\nlab = '--rate 2.5gbit --mtu=9000 --framing none'")
        known = plan.shown_constants()
        self.assertEqual((known["rate"], known["mtu"], known["framing"], known["host"]),
                         (2_500_000_000, 9000, "none", "10.77.0.2"))
        plan = made("[constants]\nlab = '--mtu {mtu}'\n[axes]\nmtu = [256, 1500]")
        self.assertEqual(plan.lab({"mtu": 256}), ["--mtu", "256"])
        self.assertNotIn("mtu", plan.shown_constants())
        self.assertEqual(plan.shown_constants()["rate"], 100_000_000)

    def test_what_makes_two_plans_one(self):
        text = "repetitions = 2\n[axes]\nsize = [1, 2]\n[constants]\nlength = 3"
        header = results.parse(io.BytesIO(json.dumps(made(text).header("", {}).as_json()).encode()), "x").header
        self.assertEqual(made(text).difference(header), "")
        self.assertEqual(header.skips, [])
        skip = "\n[[skip]]\nsize = 1"
        self.assertIn("skip: ", made(text + skip).difference(header))
        header.skips = None     # as in older files
        self.assertEqual(made(text + skip).difference(header), "")
        for old, new, words in (("[1, 2]", "[1, 3]", "size: 1,2 in the file, 1,3 now"),
                                ("length = 3", "length = 4", "length: 3 in the file, 4 now"),
                                ("repetitions = 2", "repetitions = 3", "repetitions: 2 in"),
                                ("length = 3", "length = 3\nburst = 1", "burst: default in the file")):
            self.assertIn(words, made(text.replace(old, new)).difference(header))
        again = plans.from_header(header)
        plans.check(again)
        self.assertEqual(again.tasks(), made(text).tasks())

    @unittest.skipIf(NO_SCIPY, NO_SCIPY)
    def test_confidence(self):
        self.assertAlmostEqual(plans.width([90, 110], 95), 2 * 12.706 * 10 / 100 * 100, delta=0.02)
        self.assertEqual(plans.width([100, 100], 99), 0)
        self.assertEqual(plans.width([100], 99), float("inf"))
        # Mean 100, deviation 1: half of the interval is 9.925 / sqrt(3) at 99 %, 5.73.
        for values, wanted, least, most, reached in (
                ([99, 100, 101], 11.4, 3, 3, False), ([99, 100, 101], 11.5, 3, 3, True), ([100, 100], 5, 3, 9, False),
                ([100], 5, 1, 1, False), ([0, 0, 0], 5, 3, 3, False), ([99, 100, 101], 25, 3, 10, False), ([99, 100, 101], 33, 3, 10, True)):
            self.assertEqual(plans.confident(values, (99, wanted), least, most)[1], reached)

    def test_lengths(self):
        for length, wanted in ((10, 10), ("10s", 10), ("1m30s", 90), ("2m", 120), ("1h", 3600), (-500, 10)):
            self.assertEqual(plans.Plan("t", "", constants={"length": length}).run_seconds({}), wanted, length)


class Adaptive(unittest.TestCase):
    """Curves of known shape: how many values are measured, and the error of interpolation."""

    def drawn(self, curve, count, lost=()):
        known, asked = {}, 0
        while (number := adaptive.next_value(count, known, lost)) is not None:
            self.assertNotIn(number, {*known, *lost})
            known[number], asked = (curve(number), 0.0), asked + 1
        at, values = sorted(known), [curve(number) for number in range(count)]
        off = [abs(curve(number) - curve(a) - (curve(b) - curve(a)) * (number - a) / (b - a))
               for a, b in zip(at, at[1:]) for number in range(a, b)]
        return asked, 100 * max(off) / ((max(values) - min(values)) or 1)

    def test_a_knee(self):
        for count, most in ((31, 0.4), (61, 1 / 3), (101, 1 / 5)):
            shares = []
            for place in range(2, 2 * count - 4):
                asked, off = self.drawn(lambda number, at=place / 2: min(number, at), count)
                self.assertLess(off, 2 * adaptive.TOLERANCE, (count, place))
                shares.append(asked / count)
            self.assertLess(max(shares), most)
            self.assertLess(statistics.fmean(shares), 1 / 3)

    def test_other_curves(self):
        for curve in (math.exp, lambda number: 1 / (32 - number), lambda number: 100 - abs(number - 11),
                      lambda number: number > 17):
            self.assertLess(self.drawn(curve, 31)[1], adaptive.TOLERANCE)
        self.assertEqual(self.drawn(lambda number: 5.0, 31)[0], adaptive.PARTS + 1)

    def test_noise_is_no_bend(self):
        self.assertIsNone(adaptive.next_value(31, {6 * part: (100 + part % 2, 2.0) for part in range(6)}))
        self.assertEqual(adaptive.of_runs([1.0, 3.0]), (2.0, 1.0))

    def test_what_fails_is_not_asked_for_again(self):
        self.drawn(lambda number: min(number, 13), 31, lost={0, 12, 13, 14})
        self.assertIsNone(adaptive.next_value(2, {}, lost={0, 1}))


class Units(unittest.TestCase):
    def test_rates(self):
        for given, wanted in (("100mbit", 1e8), ("2.5gbit", 2.5e9), ("500k", 5e5), ("64KBIT", 64e3), (1e6, 1e6),
                              ("100", 100.0), ("none", None), ("", None), ("1.mbit", None), ("0mbit", None),
                              ("1 mbit", None), ("-1mbit", None), (0, None), (True, None), (None, None)):
            self.assertEqual(units.rate(given), wanted, given)
        self.assertEqual([units.rate(text, unit=True) for text in ("1gbit", "1g", "1000")], [1e9, None, None])
        self.assertEqual([units.show_rate(bits) for bits in (94.12e6, 1e9, 64e3, 500, 1e14)],
                         ["94.12 Mbit/s", "1 Gbit/s", "64 kbit/s", "0.5 kbit/s", "100000 Gbit/s"])
        self.assertEqual([units.show_figure(value) for value in (0.25, 99999.4, 99999.7, 1e6)], ["0.25", "99999", "100000", "1000000"])

    def test_times(self):
        for given, wanted in (("5ms", 0.005), ("250us", 0.00025), ("0", 0.0), ("1.5ms", 0.0015), ("1m30s", 90.0),
                              ("1h0m5s", 3605.0), ("90", 90.0), (0.01, 0.01), ("", None), ("5 ms", None), ("ms", None),
                              ("-5", None), (-5, None), ("1e3us", None), (True, None), (None, None)):
            self.assertEqual(units.seconds(given), wanted, given)
        self.assertEqual([units.seconds(text, unit=True) for text in ("5ms", "0", "5")], [0.005, 0.0, None])
        self.assertEqual([units.show_figure(value) for value in (0.5, 99999.4, 99999.7, 123456.0)], ["0.5", "99999", "100000", "123456"])
        self.assertEqual([units.show_time(time) for time in (0.0, 0.005, 0.00025, 2.0)],
                         ["0", "5 ms", "250 us", "2 s"])
        self.assertEqual([units.show_duration(time) for time in (12.4, 65, 7800)],
                         ["12 s", "1 min 05 s", "2 h 10 min"])

    def test_points(self):
        self.assertEqual(units.show_point({"a": None, "b": True, "c": 1.5}), "a=default b=on c=1.5")
        self.assertEqual(units.show_point({}), "the point")


NASTY = ("a b", "$(touch x)", "`touch x`", "; touch x #", "'", '"', "a'b\"c", "\\", "*", "\n", "-n",
         "&& touch x", "${HOME}", "{value}", "!", "é")


class Commands(unittest.TestCase):
    """Shell commands, in which a value stays a value."""

    def test_values_are_words(self):
        with tempfile.TemporaryDirectory() as place:
            for value in NASTY:
                text = plans.fill_shell("printf '%s|' {value} end", {"value": value})
                got = subprocess.run(["/bin/sh", "-c", text], cwd=place, capture_output=True, text=True,
                                     timeout=10)
                self.assertEqual((got.stdout, got.returncode), (f"{value}|end|", 0), (value, text))
            self.assertEqual(os.listdir(place), [])

    def test_no_place_makes_a_value_a_command(self):
        with tempfile.TemporaryDirectory() as place:
            for template in ("true # it's\necho '{v}'", 'echo "$(echo "{v}")"', "cat <<E\n{v}\nE", 'echo "${x:-"{v}"}"'):
                for value in NASTY:
                    with contextlib.suppress(plans.PlanError):
                        text = plans.fill_shell(template, {"v": value})
                        subprocess.run(["/bin/sh", "-c", text], cwd=place, capture_output=True, timeout=10, check=False)
                        self.assertEqual(os.listdir(place), [], text)

    def test_within_quotes(self):
        for template in ("echo '{v}'", 'echo "{v}"', "echo 'a\\' '{v}'", "echo \"'\" \"{v}\"", "echo \\{v}",
                         "echo `x {v}`", "echo \"\\\"{v}\"", "echo \"it's\" `x '`' {v}`", "echo \"`true`\" `{v}`"):
            self.assertEqual(plans.fill_shell(template, {"v": 3}), template.replace("{v}", "3"))
            with self.assertRaisesRegex(plans.PlanError, "within quotes", msg=template):
                plans.fill_shell(template, {"v": "a b"})
        for template in ("echo '`' {v}", "echo \\` {v}", "echo \"\\`\" {v}"):
            self.assertEqual(plans.fill_shell(template, {"v": "a b"}), "NETSWEEP_1='a b'; " + template.replace("{v}", '"$NETSWEEP_1"'))
        self.assertEqual(plans.fill_shell("echo 'x' {v} \\\\{v}", {"v": "a b"}),
                         "NETSWEEP_1='a b'; NETSWEEP_2='a b'; echo 'x' \"$NETSWEEP_1\" \\\\\"$NETSWEEP_2\"")

    def test_braces(self):
        self.assertEqual(plans.fill_shell("awk '{print $1}' ${HOME} {{x}} {a}{b}",
                                          {"a": True, "b": None}),
                         "awk '{print $1}' ${HOME} {x} 1default")


class Options(unittest.TestCase):
    def words(self, **known):
        got = options.command("netperf", known)
        self.assertEqual(got[0], "netperf")
        if "-k" in got:
            self.assertEqual(got[-1], ",".join(options.selectors(known)))
            got = got[:-2]
        return re.sub(" ?-P 0( |$)", r"\1", re.sub(" ?--$", "", " ".join(got[1:]))).strip()

    def test_table(self):
        for known, wanted in (
                ({"host": "h", "port": 1, "length": 3, "family": 6}, "-H h -p 1 -6 -l 3"),
                ({"test": "udp_stream", "size": 64, "congestion": "cubic"}, "-t UDP_STREAM -- -m 64 -R 1"),
                ({"test": "UDP_STREAM", "size": "full", "mtu": 1500}, "-t UDP_STREAM -- -m 1472 -R 1"),
                ({"test": "UDP_STREAM", "size": "full", "mtu": 1500, "family": 6},
                 "-6 -t UDP_STREAM -- -m 1452 -R 1"),
                ({"test": "UDP_STREAM", "test_options": "-R0"}, "-t UDP_STREAM -- -R0"),
                ({"test": "TCP_STREAM", "size": "full", "mtu": 1500}, "-t TCP_STREAM"),
                ({"test": "TCP_RR", "size": 5}, "-t TCP_RR -- -r 5,5"),
                ({"test": "TCP_RR", "request": 5}, "-t TCP_RR -- -r 5,1"),
                ({"test": "TCP_RR", "response": 5}, "-t TCP_RR -- -r 1,5"),
                ({"test": "TCP_RR", "request": 7, "response": 5}, "-t TCP_RR -- -r 7,5"),
                ({"test": "TCP_CC", "size": 5}, "-t TCP_CC"),
                ({"buffer": 16384}, "-- -s 16384 -S 16384"),
                ({"local_buffer": 1, "remote_buffer": "2K"}, "-- -s 1 -S 2K"),
                ({"nodelay": True, "mss": 536, "burst": 3, "receive_size": 9, "congestion": "reno"},
                 "-- -M 9 -b 3 -D -G 536 -K reno"),
                ({"nodelay": False, "cpu_figures": False, "buffer": None}, ""),
                ({"flows": 1, "threads": 1, "processes": 9}, ""), ({"threads": "1,1"}, ""),
                ({"flows": 8, "threads": "2,1"}, "--flows 8 --threads 2,1"),
                ({"flows": 8, "threads": 4, "test": "TCP_RR"}, "-t TCP_RR --flows 8 --threads 4"),
                ({"cpu": "0,1", "cpu_figures": True, "interval": 0.25}, "-T 0,1 -c -C -D 0.25"),
                ({"confidence": "99,5", "iterations": "10,3"}, "-I 99,5 -i 10,3"),
                ({"options": "-Z 'a b' -Y {tos}", "tos": "ef", "test_options": "-C"}, "-Z a b -Y ef -- -C"),
                ({"test": "TCP_SENDFILE", "fill_file": "f", "size": 9, "congestion": "cubic"},
                 "-t TCP_SENDFILE -F f -- -m 9 -K cubic"),
                ({"test": "TCP_SENDFILE"}, "-t TCP_SENDFILE"),
                ({"clean": 5, "at_most": 60, "length": 10}, "--clean 5 --at-most 60"),
                ({"engine": "batch", "cycles": True}, "--engine batch --cycles"),
                ({"engine": "sync/batch", "cycles": False}, "--engine sync,batch")):
            self.assertEqual(self.words(**known), wanted, known)

    def test_every_row_is_used(self):
        """Each name with an option changes the command, others don't."""
        values = {"host": "h", "family": 4, "test": "TCP_MAERTS", "cpu": "0,0", "cpu_figures": True,
                  "options": "-d", "test_options": "-C", "nodelay": True, "cycles": True}
        for row in options.NAMES:
            known = {row.name: values.get(row.name, 7)}
            if row.name in ("request", "response"):
                known["test"] = "TCP_RR"
            beside = {"threads": {"flows": 7}, "at_most": {"clean": 7}}.get(row.name, {})
            known.update(beside)
            got = options.command("netperf", known)
            plain = options.command("netperf", beside)
            self.assertEqual(got != plain, row.make is not None, row.name)
            shown = re.search(rf'^\.BR "{row.name} " "\((.*)\)"$', PAGE.read_text().replace("\\-", "-"), re.M)
            self.assertEqual(shown is not None, row.make is not None, row.name)
            for letter in re.findall(r"(?<!\S)-\w", shown[1] if shown else "") if row.name != "family" else ["-4"]:
                self.assertIn(letter if row.name != "size" or letter == "-m" else "-m", got, row.name)

    def test_apart(self):
        mine = sorted(os.sched_getaffinity(0))
        self.assertEqual(self.words(cpu="apart"), f"-T {mine[0]},{mine[1]}" if mine[1:] else "")

    def test_figures(self):
        got = options.figures({"test": "TCP_RR"}, "x\nTHROUGHPUT=94.10\nTHROUGHPUT_UNITS=10^6bits/s\n"
                              "P50_LATENCY=11\nLOCAL_TRANSPORT_RETRANS=-1\nP99.9_LATENCY=12.5\nA=1e3\nB=nan\nC=\n")
        self.assertEqual(got, {"THROUGHPUT": 94.1, "THROUGHPUT_UNITS": "10^6bits/s", "P50_LATENCY": 11,
                               "LOCAL_TRANSPORT_RETRANS": None, "P99.9_LATENCY": 12.5, "A": 1000.0, "B": "nan"})
        self.assertIs(type(got["P50_LATENCY"]), int)

    def test_interim(self):
        text = ("NETPERF_INTERIM_RESULT[0]=93.5\nNETPERF_UNITS[0]=10^6bits/s\nNETPERF_INTERVAL[0]=0.250\n"
                "NETPERF_ENDING[0]=1795284348.1\nNETPERF_INTERIM_RESULT[1]=94\nNETPERF_INTERVAL[1]=0.5\n"
                "NETPERF_INTERIM_RESULT[2]=1\n")
        self.assertEqual(options.interim(text), [[0.25, 93.5], [0.75, 94.0]])
        line = "Interim result:   93.10 10^6bits/s over 1.002 seconds ending at 1700000000.123\n"
        self.assertEqual(options.interim(line * 2), [[1.002, 93.1], [2.004, 93.1]])
        for bad in (text.replace("=94\n", "=1e999\n"), text.replace("=94\n", "=nan\n"), line.replace("93.10", "9.3.1")):
            self.assertIsNone(options.interim(bad), bad)

    def test_figures_of_flows(self):
        alone = options.selectors({"test": "TCP_RR"})
        self.assertNotIn("FLOWS", alone)
        self.assertEqual(options.selectors({"test": "TCP_RR", "flows": 1}), alone)
        self.assertEqual(options.selectors({"test": "TCP_RR", "flows": 2}), alone + options.FLOW_FIGURES)
        self.assertEqual(options.shares([0.0, 0.0]),
                         {"FLOWS": 2, "MIN_FLOW_THROUGHPUT": 0.0, "MAX_FLOW_THROUGHPUT": 0.0})

    def test_several_processes(self):
        got = options.together([
            {"THROUGHPUT": 10.5, "ELAPSED_TIME": 1.0, "LOCAL_CPU_UTIL": 40.0, "P99_LATENCY": 5, "X": "a",
             "LOCAL_TRANSPORT_RETRANS": 2, "REMOTE_TRANSPORT_RETRANS": -1, "MIN_LATENCY": 3},
            {"THROUGHPUT": 20.0, "ELAPSED_TIME": 1.1, "LOCAL_CPU_UTIL": 50.0, "P99_LATENCY": 7, "X": "a",
             "LOCAL_TRANSPORT_RETRANS": 3, "REMOTE_TRANSPORT_RETRANS": 4, "MIN_LATENCY": 2}])
        self.assertEqual(got, {"THROUGHPUT": 30.5, "ELAPSED_TIME": 1.1, "LOCAL_CPU_UTIL": 45.0, "X": "a",
                               "LOCAL_TRANSPORT_RETRANS": 5, "MIN_LATENCY": 2, "FLOWS": 2,
                               "MIN_FLOW_THROUGHPUT": 10.5, "MAX_FLOW_THROUGHPUT": 20.0,
                               "JAIN_INDEX": round(30.5**2 / (2 * (10.5**2 + 400)), 6)})
        flows = {"FLOWS": 3, "THREADS": 1, "MIN_FLOW_THROUGHPUT": 1.0, "MAX_FLOW_THROUGHPUT": 4.0, "JAIN_INDEX": 1.0}
        self.assertEqual(options.together([{"THROUGHPUT": 6.0, **flows, "THREADS": "2,1"}] * 2)["THREADS"], "2,1")
        self.assertEqual(options.together([{"THROUGHPUT": 6.0, **flows},
                                           {"THROUGHPUT": 6.0, **flows, "MIN_FLOW_THROUGHPUT": 0.5}]),
                         {"THROUGHPUT": 12.0, "FLOWS": 6, "THREADS": 2, "MIN_FLOW_THROUGHPUT": 0.5,
                          "MAX_FLOW_THROUGHPUT": 4.0})


class Engines(unittest.TestCase):
    """Which points are excluded because of the ends' engines."""
    NEAR = {"sync": None, "batch": None, "uring": "built without liburing"}
    FAR = {"sync": None, "batch": "no sendmmsg(2)"}

    def test_excluded(self):
        for engine, near, far, words in (
                ("sync", self.NEAR, self.FAR, ""), ("Batch", self.NEAR, None, ""),
                ("batch", self.NEAR, self.FAR, "the far end: batch: no sendmmsg(2)"),
                ("batch/sync", self.NEAR, self.FAR, ""),
                ("uring", self.NEAR, None, "this end: uring: built without liburing"),
                ("spin", self.NEAR, self.FAR, "this end has no engine spin"),
                ("sync/uring", self.NEAR, self.FAR, "the far end has no engine uring"),
                ("anything", None, None, "")):
            self.assertEqual(ioengines.excluded(engine, near, far), words, engine)

    def test_answers(self):
        self.assertEqual(ioengines.reasons([{"name": "sync", "help": "x", "why": None},
                                          {"name": "Uring", "help": "x", "why": "no"}, 7]),
                         {"sync": None, "uring": "no"})
        self.assertIsNone(ioengines.reasons(None))    # a far end that does not report engines

    def test_the_question(self):
        got = ioengines.question("netperf", {"host": "h", "test": "TCP_RR", "flows": 2, "engine": "batch"})
        self.assertEqual(got[:4], ["netperf", "--engine", "list", "--json"])
        self.assertIn("--flows", got)
        self.assertNotIn("batch", got)

    def test_what_a_daemon_of_ours_takes(self):
        self.assertEqual(ioengines.daemon_options([None, "sync", "uring/sync"]), [])
        for asked in ("uring", "Uring", "sync/uring"):
            self.assertEqual(ioengines.daemon_options([None, "sync", asked])[0], "--uring")
        self.assertEqual(ioengines.daemon_options(["spin/sync", "sync/spin"])[0], "--spin")


class Ready(unittest.TestCase):
    NAMES = {"bufferbloat", "cpu-binding", "driver-parameter", "flows", "fluctuation", "knee", "lab-buffers",
             "latency", "mesh", "methods", "mtu", "netpipe", "paths"}

    def plan(self, name):
        plan = plans.load(name, str(lib.SCRIPTS / "plans"))
        if name == "mesh":      # as netmesh runs it
            plans.between(plan, [f"ssh:{a},ssh:{b}" for a in range(10) for b in range(10) if a != b])
            plan.order = "rounds"
        if name == "paths":     # it has no lab
            plan.constants["host"] = "h"
        plans.check(plan)
        return plan

    def test_each(self):
        self.assertEqual(set(READY), self.NAMES)
        for name in READY:
            plan = self.plan(name)
            seconds = sweep.expected(plan, plan.tasks())
            self.assertTrue(50 < seconds < 1800, f"{name}: {seconds}")
            comments = [line for line in plan.text.splitlines() if line.startswith("#")]
            self.assertGreaterEqual(len(comments), 5, name)
            # The estimated duration is the one in the comments.
            told = re.search(r"^# ([0-9]+) minutes?", plan.text, re.MULTILINE)
            self.assertLess(abs(int(told[1]) * 60 - seconds), 75, f"{name}: {seconds}")

    def test_lab_buffers(self):
        points = self.plan("lab-buffers").points()
        self.assertEqual(len([p for p in points if p["test"] == "TCP_STREAM"]), 13 * 4)
        self.assertEqual({p["size"] for p in points if p["test"] == "UDP_STREAM"}, {64, 576, 1500, 64512})
        self.assertEqual(len([p for p in points if p["test"] == "UDP_STREAM"]), 13 * 4 - 3)

    def test_mtu(self):
        points = self.plan("mtu").points()
        self.assertEqual(len(points), (16 + 8) * 4)
        self.assertEqual({p["test"] for p in points if p["nodelay"]}, {"TCP_STREAM"})
        self.assertEqual(min(p["mtu"] for p in points if p["family"] == 6), 1500)

    def test_flows(self):
        points = self.plan("flows").points()
        self.assertEqual([(p["flows"], p["processes"]) for p in points if p["test"] == "TCP_RR"],
                         [(1, 1), (1, 10), (10, 1), (100, 1)])

    def test_methods(self):
        """Round after round, sync first; one test, which can be overridden."""
        plan = self.plan("methods")
        engines_of = [task.point["engine"] for task in plan.tasks()]
        self.assertEqual(engines_of[:2], ["sync", "epoll"])
        self.assertEqual(engines_of, engines_of[:len(set(engines_of))] * plan.repetitions)
        self.assertEqual(plan.constants["test"], "TCP_STREAM")
        plans.override(plan, "test=UDP_STREAM")
        plans.override(plan, "engine=sync,batch")
        self.assertEqual(plan.axes[0].values, ["sync", "batch"])

    def test_netpipe(self):
        self.assertEqual(self.plan("netpipe").axes[1].values, [2**n for n in range(21)])


class Processes(unittest.TestCase):
    def test_time_limit(self):
        """A command that does not end is killed with its children."""
        with tempfile.TemporaryDirectory() as place:
            mark = Path(place, "pid")
            since = time.monotonic()
            done = machine.run(["sh", "-c", f"trap '' TERM; sleep 60 & echo $! > {mark}; wait; wait"],
                               limit=0.5, patience=0.3)
            self.assertLess(time.monotonic() - since, 20)
            self.assertIsNone(done.exit)
            self.assertIn("did not end within", done.reason)
            # On a busy machine a killed process takes a while to be gone.
            self.assertTrue(lib.wait_for(lambda: not lib.alive(int(mark.read_text())), 5))

    def test_signals_are_not_passed_on_blocked(self):
        script = ("from netkit import machine; machine.hold_signals(); "
                  "print(machine.run(['grep', 'SigBlk', '/proc/self/status'], 10).stdout)")
        got = subprocess.run([sys.executable, "-c", script], cwd=lib.SCRIPTS, capture_output=True, text=True,
                             timeout=30)
        self.assertEqual(got.stdout.split(), ["SigBlk:", "0000000000000000"], got.stderr)

    def test_an_end_is_seen_at_once(self):
        """Immediately, even if the script does not block signals, and not at the next poll."""
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
        with mock.patch.object(machine.progress, "EVERY", 60.0):
            self.assertLess(machine.run(["sleep", "0.1"], limit=60).seconds, 30)

    def test_a_signal_to_both(self):
        """If ^C also ended a program, the program has not failed."""
        script = ("import time; from netkit import machine; machine.hold_signals(); "
                  "one = machine.Process(['sh', '-c', 'kill -INT $PPID $$'])\n"
                  "while not one.ended(): time.sleep(0.01)\n"
                  "try: machine.wait([one], time.monotonic() + 10); print('no signal')\n"
                  "except machine.Interrupted as fault: print('interrupted by', *fault.args)")
        got = subprocess.run([sys.executable, "-c", script], cwd=lib.SCRIPTS, capture_output=True, text=True,
                             timeout=60)
        self.assertEqual(got.stdout, "interrupted by 2\n", got.stderr)

    def test_a_stop_is_no_signal(self):
        """The timeout passes while the script is stopped, as by ^Z; here a handler takes that long."""
        script = ("import os, signal, threading, time; from netkit import machine; machine.hold_signals()\n"
                  "signal.signal(signal.SIGUSR1, lambda *_: time.sleep(1))\n"
                  "threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGUSR1)).start()\n"
                  "machine.pause(0.5); machine.run(['sleep', '0.5'], 10); print('goes on')")
        got = subprocess.run([sys.executable, "-c", script], cwd=lib.SCRIPTS, capture_output=True, text=True, timeout=60)
        self.assertEqual(got.stdout, "goes on\n", got.stderr)


class Page(unittest.TestCase):
    def setUp(self):
        self.text = PAGE.read_text().replace("\\-", "-")

    def test_every_name(self):
        for row in options.NAMES:
            self.assertRegex(self.text, rf"(?m)^\.B[RI]? \"?{row.name}\b", row.name)

    def test_every_ready_plan(self):
        for name in READY:
            self.assertRegex(self.text, rf"(?m)^\.B {name}$", name)


def name_of(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def running_in(place: str) -> "list[int]":
    """Processes whose working directory is this one, as that of all processes of a sweep is."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{pid}/cwd") == place and lib.alive(int(pid)):
                found.append(int(pid))
        except OSError:
            continue
    return found


class Sweeping(lib.InPlace):
    """The folder is for plans and results; netsweep is run there."""

    def plan(self, text, name="p.toml"):
        Path(self.place, name).write_text(text)
        return name

    def command(self, *args):
        return [NETSWEEP, "--netperf", lib.netperf(), "--netserver", lib.netserver(), *args]

    def sweep(self, *args, status=0, timeout=180):
        with lib.Started(self.command(*args), cwd=self.place) as started:
            got = started.finish(timeout)
        self.assertEqual(got.rc, status, got)
        return got

    def started(self, *args):
        proc = subprocess.Popen(self.command(*args), cwd=self.place, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (proc.kill(), proc.communicate()))
        return proc

    def lines(self, name):
        path = Path(self.place, name)
        return path.read_text().splitlines() if path.exists() else []

    def runs(self, name):
        return [json.loads(line) for line in self.lines(name)[1:]]

    def await_runs(self, name, count):
        self.assertTrue(lib.wait_for(lambda: len(self.lines(name)) > count, 60), self.lines(name))

    def once_each(self, name, plan):
        """Every run of a plan is in the file exactly once, and good."""
        keys = [(results.point_key(run["point"]), run["repetition"]) for run in self.runs(name)
                if run["status"] == "ok"]
        self.assertEqual(sorted(keys), sorted(task.key for task in plan.tasks()))

    def fake(self, body, options=""):
        """A stand-in for netperf whose help names these options; $n counts its calls."""
        helps = f"[ \"${{1%%=*}}\" != --help ] || {{ echo '  {options}  '; exit 0; }}\n"
        return str(lib.executable(
            self.dir / "netperf", "#!/bin/sh\n[ \"$1\" != --version ] || { echo fake; exit 0; }\n" + helps +
            "n=$(($(cat n 2> /dev/null || echo 0) + 1)); echo $n > n\n" + body))


class Calling(Sweeping):
    """The same within this process: starting netsweep takes a quarter of a second of processor time."""

    def sweep(self, *args, status=0):
        before = os.getcwd()
        machine.knows.cache_clear()     # another stand-in for netperf has other options
        os.chdir(self.place)
        try:
            got = lib.called(netsweep.main, *self.command(*args)[1:])
        finally:
            os.chdir(before)
        self.assertEqual(got.rc, status, got)
        return got


# Counted, so that a run takes no longer than the machine needs.
BRIEF = "[constants]\ntest = 'TCP_RR'\nlength = -300\n"
SHORT = BRIEF + "[axes]\nsize = [64, 128, 256]\n"
PACED = f"[constants]\nlength = 1\noptions = '{' '.join(lib.PACED)}'\n"     # timed, with little load


class Loopback(Calling):
    def tearDown(self):
        self.assertTrue(lib.wait_for(lambda: not running_in(self.place), 10), running_in(self.place))

    def test_a_sweep(self):
        plan = self.plan("repetitions = 2\n[constants]\nlength = 0.3\ncpu_figures = true\n"
                         "[axes]\ntest = ['TCP_STREAM', 'UDP_RR', 'TCP_SENDFILE']\n")
        got = Sweeping.sweep(self, plan, "--local", "--output", "o.jsonl")
        self.assertIn("6 runs ok, 0 failed: o.jsonl", got.out)
        self.assertEqual(len(got.err.splitlines()), 6, got.err)     # a line for each run, no bar
        found = results.read(f"{self.place}/o.jsonl")
        self.assertEqual((found.header.plan, found.header.repetitions), ("p", 2))
        self.assertEqual(found.header.plan_text, Path(self.place, plan).read_text())
        self.assertTrue(found.header.environment["client"]["netperf"])
        self.assertEqual([run.number for run in found.runs], [1, 2, 3, 4, 5, 6])
        for run in found.runs:
            self.assertGreater(run.figure("THROUGHPUT"), 0)
            self.assertGreater(run.figure("LOCAL_CPU_UTIL"), 0)
            self.assertEqual(run.command[0], lib.netperf())
            self.assertEqual(run.result["THROUGHPUT_UNITS"],
                             "Trans/s" if run.point["test"] == "UDP_RR" else "10^6bits/s")

    def test_a_daemon_for_rings(self):
        """Its end can use the engine uring, unless the build or the kernel forbids it."""
        plan = self.plan("repetitions = 1\n" + BRIEF + "[axes]\nengine = ['sync', 'sync/uring']\n")
        self.assertRegex(self.sweep(plan, "--local", "--dry-run").out, "netserver .*--uring [1-9]")
        self.sweep(plan, "--local", "--output", "o.jsonl")
        found = results.read(f"{self.place}/o.jsonl").runs
        self.assertTrue(found[0].ok, found[0])
        self.assertNotIn("netserver --uring", found[1].reason())
        self.assertTrue(found[1].ok or found[1].excluded, found[1])

    def test_nobody_reads(self):
        """A sweep continues to its end if its output has no reader."""
        reader, writer = os.pipe()
        os.close(reader)
        self.addCleanup(os.close, writer)
        plan = self.plan(SHORT)
        done = subprocess.run(self.command(plan, "--local", "--output", "o.jsonl"), cwd=self.place,
                              stdin=subprocess.DEVNULL, stdout=writer, stderr=subprocess.PIPE,
                              timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(self.runs("o.jsonl")), 3)

    def test_ipv6(self):
        if not Path("/proc/net/if_inet6").exists():
            self.skipTest("no IPv6")
        plan = self.plan(BRIEF + "[axes]\nfamily = [4, 6]\n")
        self.sweep(plan, "--local", "--output", "o.jsonl")
        self.assertEqual([run["command"][2] for run in self.runs("o.jsonl")], ["127.0.0.1", "::1"])

    def test_a_failure_is_a_gap(self):
        plan = self.plan(SHORT + "card = [1, 2]\n[before]\ncard = 'echo no card {value} >&2; "
                         "echo {value} >> set; test {value} = 1 -o -e repaired'\n")
        got = self.sweep(plan, "--local", "--output", "o.jsonl", status=1)
        self.assertIn("3 runs ok, 3 failed", got.out)
        self.assertIn("3 of 6 runs failed: netsweep --resume --output o.jsonl", got.err)
        runs = self.runs("o.jsonl")
        self.assertEqual([run["status"] for run in runs], ["ok", "failed"] * 3)
        self.assertEqual(runs[1]["before"][0]["status"], 1)
        self.assertIn("no card 2", runs[1]["before"][0]["output"])
        self.assertEqual(results.read(f"{self.place}/o.jsonl").runs[1].reason()[-9:], "no card 2")
        Path(self.place, "repaired").touch()
        self.assertIn("6 runs ok", self.sweep("--resume", "--output", "o.jsonl").out)
        self.once_each("o.jsonl", results_plan(f"{self.place}/o.jsonl"))

    def test_a_command_runs_when_its_value_changes(self):
        plan = self.plan(f"repetitions = 2\n{BRIEF}[axes]\ncard = ['a b', 'c']\n"
                         "size = [1, 2]\n[before]\ncard = 'echo set {value} >> log'\n"
                         "each_run = 'echo run {size} >> log'\n[after]\ncard = 'echo unset {card} >> log'\n")
        self.sweep(plan, "--local", "--output", "o.jsonl")
        runs = ["run 1", "run 1", "run 2", "run 2"]
        self.assertEqual(Path(self.place, "log").read_text().splitlines(),
                         ["set a b", *runs, "unset a b", "set c", *runs, "unset c"])
        self.assertEqual(len(self.runs("o.jsonl")[3]["after"]), 1)

    def test_a_change_in_part_is_undone(self):
        """If a [before] command fails, those before it are undone immediately, and repeated for the next run."""
        plan = self.plan(f"repetitions = 2\n{BRIEF}[axes]\ncard = [1, 2]\n"
                         "[before]\ncard = ['echo first {value} >> log', 'test {value} = 2']\n"
                         "[after]\ncard = 'echo undo {value} >> log'\n")
        self.sweep(plan, "--local", "--output", "o.jsonl", status=1)
        self.assertEqual([run["status"] for run in self.runs("o.jsonl")], ["failed"] * 2 + ["ok"] * 2)
        self.assertEqual(Path(self.place, "log").read_text().splitlines(),
                         [f"{what} {card}" for card in (1, 1, 2) for what in ("first", "undo")])

    def test_a_failure_afterwards_fails_the_run(self):
        plan = self.plan(BRIEF + "[axes]\ncard = [1, 2]\n"
                         "[after]\ncard = 'echo stuck; test {value} = 2'\n")
        self.sweep(plan, "--local", "--output", "o.jsonl", status=1)
        self.assertEqual([run["status"] for run in self.runs("o.jsonl")], ["failed", "ok"])

    def test_netperf_that_fails(self):
        netperf = self.fake("[ $n != 2 ] || { echo 'netperf: no luck' >&2; exit 1; }\n"
                            "[ $n != 3 ] || exit 0\necho THROUGHPUT=1\n")
        plan = self.plan("[axes]\nsize = [1, 2, 3, 4]\n")
        with lib.Daemon() as daemon:
            got = self.sweep(plan, "--host", "127.0.0.1", "--set", f"port={daemon.port}", "--netperf", netperf,
                             "--output", "o.jsonl", status=1)
        self.assertIn("2 runs ok, 2 failed", got.out)
        runs = results.read(f"{self.place}/o.jsonl").runs
        self.assertEqual([run.reason() for run in runs],
                         ["", "netperf: no luck", "netperf printed no throughput", ""])
        self.assertEqual((runs[1].exit, runs[1].stderr), (1, "netperf: no luck\n"))

    def test_interrupted(self):
        plan = self.plan(f"repetitions = 500\n{BRIEF}[axes]\ncard = [1]\n"
                         "[before]\ncard = 'touch set'\n[after]\ncard = 'touch unset'\n")
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            name = f"{number.name}.jsonl"
            proc = self.started(plan, "--local", "--output", name)
            self.await_runs(name, 2)
            proc.send_signal(number)
            _, err = proc.communicate(timeout=30)
            self.assertEqual(proc.returncode, 130, err)
            self.assertIn(f"interrupted: netsweep --resume --output {name}", err)
            self.assertEqual(running_in(self.place), [])
            self.assertTrue(all(run["status"] == "ok" for run in self.runs(name)))
            self.assertTrue(Path(self.place, "unset").exists())
            Path(self.place, "unset").unlink()
            self.assertEqual(results.read(f"{self.place}/{name}").warnings, [])

    def test_a_signal_that_is_ignored(self):
        """nohup ignores SIGHUP, so the sweep must continue."""
        plan = self.plan(f"repetitions = 4\n{BRIEF}[before]\neach_run = 'kill -HUP $PPID'\n")
        with lib.Started(["nohup", *self.command(plan, "--local", "--output", "o.jsonl")], cwd=self.place) as started:
            got = started.finish(60)
        self.assertEqual(got.rc, 0, got)
        self.assertEqual(len(self.runs("o.jsonl")), 4)

    def test_interrupted_and_the_rest_fails(self):
        """The [after] commands are run, and one that fails is named."""
        plan = self.plan(f"repetitions = 500\n{BRIEF}[axes]\ncard = [1]\nrouter = [1]\n"
                         "[before]\ncard = ':'\nrouter = ':'\n[after]\ncard = 'touch unset'\nrouter = 'exit 3'\n")
        proc = self.started(plan, "--local", "--output", "o.jsonl")
        self.await_runs("o.jsonl", 2)
        proc.send_signal(signal.SIGINT)
        _, err = proc.communicate(timeout=30)
        self.assertEqual(proc.returncode, 130, err)
        self.assertIn("netsweep: the command after router failed: exit 3\n", err)
        self.assertTrue(Path(self.place, "unset").exists())

    def test_killed_and_resumed(self):
        """At any moment: after resuming, each run is in the file once."""
        plan = self.plan("repetitions = 9\norder = 'random'\n" + SHORT)
        proc = self.started(plan, "--local", "--output", "o.jsonl")
        for count in (2, 5, 9):
            self.await_runs("o.jsonl", count)
            proc.kill()
            proc.wait(10)
            self.assertTrue(lib.wait_for(lambda: not running_in(self.place), 10))
            proc = self.started("--resume", "--output", "o.jsonl")
        proc.kill()
        proc.wait(10)
        with open(f"{self.place}/o.jsonl", "a", encoding="utf-8") as file:
            file.write('{"schema": "plumbline-run/1", "point"')      # as left by a crash
        got = self.sweep("--resume", "--output", "o.jsonl")
        self.assertIn("27 runs ok, 0 failed", got.out)
        self.assertIn("cut short", got.err)
        self.once_each("o.jsonl", results_plan(f"{self.place}/o.jsonl"))
        self.assertIn("27 runs ok", self.sweep("--resume", "--output", "o.jsonl").out)
        self.assertEqual(len(self.runs("o.jsonl")), 27)

    @unittest.skipIf(os.geteuid(), "only root gives files away")
    def test_a_file_of_another_user(self):
        """Commands of its plan are run only if the user says so or gives the plan."""
        plan = self.plan(SHORT)
        self.sweep(plan, "--local", "--output", "o.jsonl")
        path = Path(self.place, "o.jsonl")
        for owner, mode, words in ((12345, 0o644, "belongs to another user"), (0, 0o666, "everybody may write to it")):
            os.chown(path, owner, -1)
            path.chmod(mode)
            said = self.sweep("--resume", "--output", "o.jsonl", status=2).err
            self.assertIn(f"netsweep: o.jsonl: {words}, and the commands of its plan would be run here", said)
            self.sweep("--resume", "--output", "o.jsonl", "--dry-run")
            self.sweep(plan, "--local", "--resume", "--output", "o.jsonl")
            self.sweep("--resume-anyway", "--output", "o.jsonl")
        os.chown(path, 12345, -1)
        path.chmod(0o644)
        with mock.patch.dict(os.environ, {"SUDO_UID": "12345"}):
            self.sweep("--resume", "--output", "o.jsonl")

    def test_no_file_is_written_over(self):
        plan = self.plan(SHORT)
        name = f"p-{time.strftime('%Y-%m-%d')}.jsonl"
        self.sweep(plan, "--local", "--set", "size=1")
        before = self.lines(name)
        said = self.sweep(plan, "--local", "--set", "size=1", status=2).err
        self.assertIn("--resume goes on with it, --force writes over it", said)
        self.assertEqual(said.count("\n"), 1)
        self.assertEqual(self.lines(name), before)
        said = self.sweep(plan, "--local", "--set", "size=2", "--resume", status=2).err
        self.assertIn("size: 1 in the file, 2 now", said)
        self.sweep(plan, "--local", "--set", "size=1", "--resume")
        self.assertEqual(self.lines(name), before)
        self.sweep(plan, "--local", "--set", "size=2", "--force")
        self.assertEqual([run["point"] for run in self.runs(name)], [{"size": 2}])

    def test_two_at_a_time(self):
        plan = self.plan("repetitions = 500\n" + SHORT)
        proc = self.started(plan, "--local", "--output", "o.jsonl")
        self.await_runs("o.jsonl", 1)
        self.assertIn("another netsweep", self.sweep("--resume", "--output", "o.jsonl", status=1).err)
        proc.send_signal(signal.SIGINT)
        proc.communicate(timeout=30)

    def test_a_far_end_that_is_not_there(self):
        """Two runs of each silent host, all of the one that answers; nothing is lost."""
        plan = self.plan(BRIEF + "[axes]\nsize = [1, 2, 3]\n")
        with lib.Daemon(args=["-4", "-L", "127.0.0.1"]) as daemon:
            args = [plan, "--host", "127.0.0.2,127.0.0.1", "--set", f"port={daemon.port}", "--output", "o.jsonl"]
            got = self.sweep(*args, status=1)
            self.assertRegex(got.err, r"127\.0\.0\.2 port \d+: Connection refused: nobody listens there; runs not "
                             r"tried: 1 \(--keep-going tries all\)")
            self.assertEqual([(run["point"]["host"], run["status"]) for run in self.runs("o.jsonl")], [
                (f"127.0.0.{n}", "ok" if n == 1 else "failed") for n in (2, 1, 2, 1, 1)])
            ends = json.loads(self.lines("o.jsonl")[0])["environment"]["hosts"]
            self.assertEqual(ends["127.0.0.1"]["server"]["interface"]["name"], "lo")
            with lib.Daemon(args=["-4", "-L", "127.0.0.2"], port=daemon.port):
                self.assertIn("6 runs ok, 0 failed", self.sweep(*args, "--resume").out)

    def test_runs_that_all_fail_alike(self):
        """Three are enough, even if their messages differ by a number; not if one run was good."""
        fails = '[before]\neach_run = "echo no card $$; test {size} -gt %d"\n'
        plan = self.plan(BRIEF + "[axes]\nsize = [1, 2, 3, 4, 5, 6]\n" + fails % 9)
        got = self.sweep(plan, "--local", "--output", "o.jsonl", status=1)
        self.assertRegex(got.err, r"127\.0\.0\.1: 3 runs failed alike, and none was good: .*: no card \d+; runs not tried: 3 "
                         r"\(--keep-going tries all\)")
        self.assertEqual([run["status"] for run in self.runs("o.jsonl")], ["failed"] * 3)
        self.sweep(plan, "--local", "--output", "o.jsonl", "--resume", "--keep-going", status=1)
        self.assertEqual(len(self.runs("o.jsonl")), 9)
        plan = self.plan(BRIEF + "[axes]\nsize = [9, 1, 2, 3, 4, 5]\n" + fails % 8)
        self.sweep(plan, "--local", "--output", "one.jsonl", status=1)
        self.assertEqual([run["status"] for run in self.runs("one.jsonl")], ["ok"] + ["failed"] * 5)

    def test_options_that_a_test_has_not(self):
        """Found before the first run, by asking netperf; unless that netperf can't be asked."""
        plan = self.plan("[constants]\nlength = 0.2\n[axes]\ntest = ['TCP_STREAM', 'TCP_SENDFILE']\nmss = [1000]\n")
        for args in (["--local", "--output", "o.jsonl"], ["--host", "192.0.2.1", "--dry-run"]):
            got = self.sweep(plan, *args, status=2)
            self.assertEqual(got.err, "netsweep: at test=TCP_SENDFILE mss=1000: -G: ignored, as in netperf: the test has no "
                             "such option (-- -h lists them) (leave such points out by [[skip]])\n")
        self.assertFalse(Path(self.place, "o.jsonl").exists())
        with open(f"{self.place}/{plan}", "a", encoding="utf-8") as file:
            file.write("[[skip]]\ntest = 'TCP_SENDFILE'\n")
        self.sweep(plan, "--local", "--output", "o.jsonl")
        self.assertEqual(calls.refused([lib.netperf(), "-t", "TCP_RR", "--threads", "2"]),
                         "--threads 2: is more than the 1 data connection to drive (a larger --flows)")
        self.assertEqual(calls.refused(["/bin/true", "-t", "NONE"]), "")

    def test_the_ready_plans_have_no_such_options(self):
        for name in READY:
            self.sweep(name, "--dry-run", *{"mesh": ["--pair", "ssh:a,ssh:b"], "paths": ["--local"]}.get(name, []))

    def test_what_the_ends_are(self):
        """In the header; in a run, what has changed since, and how much was disturbed."""
        plan = self.plan(BRIEF + "evidence = true\n[axes]\nsize = [1, 2]\n")
        self.sweep(plan, "--local", "--label", "A", "--output", "o.jsonl")
        header = json.loads(self.lines("o.jsonl")[0])
        self.assertEqual(header["label"], "A")
        self.assertEqual(header["environment"]["client"]["netperf"],
                         lib.run([lib.netperf(), "--version"], 10).out.splitlines()[1])
        for end in ("client", "server"):
            told = header["environment"][end]
            self.assertEqual([told["kernel"].split()[-1], told["interface"]["name"]], [os.uname().release, "lo"])
            self.assertEqual(told["settings"]["nic.offload.sg"], 1)
        for run in self.runs("o.jsonl"):
            self.assertEqual(run["label"], "A")
            self.assertNotIn("netperf", str(run.get("environment")))
            self.assertIn("moved.nic.rx_packets", run["evidence"]["far"])
            self.assertFalse([name for name in run["evidence"]["near"] if name.startswith("host.")])

    def test_on_another_machine(self):
        plan = self.plan(SHORT)
        self.sweep(plan, "--local", "--set", "size=64,128", "--output", "o.jsonl")
        path = Path(self.place, "o.jsonl")
        header, first, _ = path.read_text().splitlines(True)
        path.write_text(header.replace(os.uname().release, "5.4.0-old") + first)
        got = self.sweep("--resume", "--output", "o.jsonl", status=2)
        self.assertIn("o.jsonl was begun elsewhere: client's kernel: Linux 5.4.0-old in the file, Linux ", got.err)
        self.assertEqual((len(self.runs("o.jsonl")), got.err.count("\n")), (1, 1))
        self.sweep("--resume-anyway", "--output", "o.jsonl")
        one, other = self.runs("o.jsonl")
        self.assertNotIn("environment", one)
        self.assertEqual(other["environment"]["client"]["kernel"], f"Linux {os.uname().release}")

    def test_another_machine_in_words(self):
        old = {"client": {"hostname": "a", "kernel": "1", "interface": {"name": "eth0", "mtu": 1500}}, "server": None}
        now = {"client": {"hostname": "a", "kernel": "1", "interface": {"name": "eth0", "mtu": 9000},
                          "settings": {"cpu.governor": "powersave"}}, "server": {"hostname": "b"}}
        self.assertEqual(environment.elsewhere(old, now), "")
        self.assertEqual(environment.changed(old, now), {
            "client": {"interface": {"mtu": 9000}, "settings": {"cpu.governor": "powersave"}},
            "server": {"hostname": "b"}})
        self.assertEqual(environment.changed(now, now), {})
        del now["client"]["settings"]
        now["client"]["interface"]["name"] = "eth1"
        self.assertEqual(environment.elsewhere(old, now), "client's interface name: eth0 in the file, eth1 now")
        self.assertEqual(environment.elsewhere({"hosts": {"x": now}}, {"hosts": {"x": old, "y": now}}),
                         "to x: client's interface name: eth1 in the file, eth0 now")

    def test_disturbances_are_kept(self):
        document = {"iterations": [{"disturbed": {"seconds": 4, "clean_seconds": 3, "share": 0.25,
                                                  "reasons": {"steal": 1}}},
                                   {"disturbed": {"seconds": 1, "share": 0, "reasons": {}}, "near": {}}],
                    "latency": {"count": 9, "intervals": {"p50": [1.5, 2], "p99": None}}}
        netperf = self.fake("for word; do case $word in --json=*) "
                            f"echo '{json.dumps(document)}' > ${{word#--json=}} ;; esac; done\n"
                            "echo THROUGHPUT=1\n", "--json[=file]  --clean s")
        plan = self.plan("[constants]\nlength = 3\n")
        got = self.sweep(plan, "--host", "h", "--netperf", netperf, "--clean", "3", "--output", "o.jsonl")
        self.assertIn("o.jsonl\n1 of 1 run was disturbed, 20 % of the time: steal 1 s\n", got.out)
        run = self.runs("o.jsonl")[0]
        self.assertEqual(run["disturbed"], {"share": 0.2, "seconds": 5, "reasons": {"steal": 1}})
        self.assertEqual(run["intervals"], {"p50": [1.5, 2], "p99": None})
        self.assertIn("--clean 3", " ".join(run["command"]))
        self.assertNotIn("-l", run["command"])
        self.assertIn("CLEAN_THROUGHPUT", run["command"][-1])

    def test_documents_that_are_newer(self):
        netperf = self.fake("for word; do case $word in --json=*) "
                            "echo '{\"schema\": \"plumbline-netperf/99\"}' > ${word#--json=} ;; esac; done\n"
                            "echo THROUGHPUT=1\n", "--json[=file]")
        self.sweep(self.plan("[axes]\nsize = [1]\n"), "--host", "h", "--netperf", netperf, "--output", "o.jsonl", status=1)
        run = results.read(f"{self.place}/o.jsonl").runs[0]
        self.assertIn("document of number 99, and this program reads 1 to 3", run.reason())
        for damaged in ('{"latency": {"intervals": NaN}}', '{"iterations": [{"disturbed": {"seconds": "x"}}]}'):
            self.fake(f"for word; do case $word in --json=*) echo '{damaged}' > ${{word#--json=}} ;; esac; done\necho THROUGHPUT=1\n",
                      "--json[=file]")
            self.sweep(self.plan("[axes]\nsize = [1]\n"), "--host", "h", "--netperf", netperf, "--output", "o.jsonl", "--force")

    @unittest.skipIf(NO_SCIPY, NO_SCIPY)
    def test_until_confidence(self):
        """One size is steady, the other one never."""
        netperf = self.fake("case $* in *'-m 1 '*) echo THROUGHPUT=100 ;; "
                            "*) echo THROUGHPUT=$((n * 37 % 83 + 1)) ;; esac\n")
        plan = self.plan("[axes]\nsize = [1, 2]\n")
        common = ("--host", "h", "--netperf", netperf, "--until-confidence", "99,2.5")
        for order in ("given", "interleaved", "random"):
            got = self.sweep(plan, *common, "--order", order, "--output", f"{order}.jsonl", status=3)
            self.assertRegex(got.err, r"(?m)^netsweep: size=2: after 10 runs the mean is sure to \S+ % in all, not "
                                      r"to 2\.5 %, at 99 %$")
            runs = self.runs(f"{order}.jsonl")
            sizes = [run["point"]["size"] for run in runs]
            self.assertEqual((sizes.count(1), sizes.count(2)), (3, 10), order)
            for size in (1, 2):
                last = [run["confidence"] for run in runs if run["point"]["size"] == size][-1]
                self.assertEqual((last["reached"], last["width"] <= 2.5), (size == 1,) * 2)
        self.sweep("--resume", "--output", "given.jsonl", "--netperf", netperf, status=3)     # nothing left to do, which is reported
        self.sweep(plan, *common, "--set", "size=1", "--output", "s.jsonl")
        self.sweep(plan, *common, "--repeat", "4,6", "--output", "r.jsonl", status=3)
        self.assertEqual(len(self.runs("r.jsonl")), 10)

    @unittest.skipIf(NO_SCIPY, NO_SCIPY)
    def test_the_mean_is_as_sure_as_it_is_said(self):
        """Whether repetition ends because of that, or not."""
        chance, least, count = random.Random(3), 3, 500
        for spread, most in ((1, 20), (2, 60), (3, 100)):
            missed = ended = 0
            for _ in range(count):
                values = [chance.gauss(100, spread) for _ in range(least)]
                while not plans.confident(values, (99, 2.5), least, most)[1] and len(values) < most:
                    values.append(chance.gauss(100, spread))
                ended += len(values) < most
                mean, width = statistics.fmean(values), plans.confident(values, (99, 2.5), least, most)[0]
                missed += abs(mean / 100 - 1) > width / 200 * mean / 100
            print(f"noise of {spread} %: {ended} of {count} ended early, {missed} means are wrong")
            self.assertLessEqual(missed, count * 0.01 + 3 * math.sqrt(count * 0.01))

    def test_processes(self):
        plan = self.plan(PACED + "interval = 0.2\n[axes]\nprocesses = [1, 3]\n")
        self.sweep(plan, "--local", "--output", "o.jsonl")
        one, three = self.runs("o.jsonl")
        self.assertNotIn("processes", one)
        self.assertGreaterEqual(len(one["interim"]), 1)
        parts = [part["result"]["THROUGHPUT"] for part in three["processes"]]
        self.assertEqual(len(parts), 3)
        self.assertAlmostEqual(three["result"]["THROUGHPUT"], sum(parts), places=2)
        self.assertEqual(three["result"]["FLOWS"], 3)

    def test_flows_over_time(self):
        """The data for netreport's plots: the rates of each flow by interval, and Jain's index."""
        self.sweep(self.plan(PACED + "interval = 0.2\n[axes]\nflows = [1, 3]\n"), "--local", "--output", "o.jsonl")
        one, three = self.runs("o.jsonl")
        self.assertNotIn("interim_flows", one)
        self.assertGreaterEqual(len(three["interim_flows"]), 2)
        for at, rates, jain in three["interim_flows"]:
            self.assertTrue(len(rates) == 3 and 0 < at < 60 and 0 < jain <= 1, three["interim_flows"])

    def test_flows(self):
        """In one netperf: the sum, its figures, and a row for each flow; also with two netperfs."""
        plan = self.plan("[constants]\ntest = 'TCP_RR'\nlength = -3000\ninterval = 0.1\n[axes]\n"
                         "flows = [1, 3]\nprocesses = [1, 2]\n[[skip]]\nflows = 1\nprocesses = 2\n")
        self.sweep(plan, "--local", "--output", "o.jsonl")
        one, three, six = self.runs("o.jsonl")
        self.assertNotIn("flows", one)
        self.assertNotIn("--flows", one["command"])
        at = three["command"].index("--flows")
        self.assertEqual(three["command"][at + 1], "3")
        self.assertNotIn("--json", " ".join(three["command"]))
        self.assertEqual(three["result"]["FLOWS"], 3)
        self.assertEqual(sum(row["transactions"] for row in three["flows"]), 3000)
        self.assertAlmostEqual(sum(row["transactions_per_s"] for row in three["flows"]),
                               three["result"]["THROUGHPUT"], delta=0.02)
        self.assertEqual([len(part["flows"]) for part in six["processes"]], [3, 3])
        self.assertNotIn("flows", six)
        self.assertEqual(six["result"]["FLOWS"], 6)

    def test_engines(self):
        """The evidence of both ends is kept (single values), and names the engines."""
        plan = self.plan(BRIEF + "cycles = true\n[axes]\nengine = ['sync', 'epoll/sync']\n")
        self.sweep(plan, "--local", "--output", "o.jsonl")
        for run, near in zip(self.runs("o.jsonl"), ("sync", "epoll")):
            self.assertNotIn("--json", " ".join(run["command"]))
            told = run["evidence"]
            self.assertEqual([told[end]["engine.name"] for end in ("near", "far")], [near, "sync"])
            for end in ("near", "far"):
                self.assertEqual(told[end]["flow.transactions"], 300)
                self.assertIn("work.system_s", told[end])
                self.assertFalse([name for name, value in told[end].items()
                                  if isinstance(value, list) or name.startswith(("tcp.", "host."))])
            self.assertTrue("work.cycles" in told["near"] or told["near"]["unread"]["work.cycles"])

    def test_an_engine_that_an_end_has_not(self):
        """The point is excluded at its first run, with the reason, and has not failed. Ends that do not report
        engines exclude nothing."""
        plan = self.plan("repetitions = 2\n[constants]\nhost = 'h'\n[axes]\nengine = ['sync', 'uring', 'batch']\n"
                         "[before]\nengine = 'echo set {value} >> log'\n[after]\nengine = 'echo undo {value} >> log'\n")
        answer = json.dumps({"near": [{"name": name, "help": "", "why": why} for name, why in (
            ("sync", None), ("uring", "built without liburing"), ("batch", None))],
                             "far": [{"name": "sync", "help": "", "why": None}]})
        netperf = self.fake(f"[ \"$2\" != list ] || {{ echo '{answer}'; echo x >> asked; exit 0; }}\n"
                            "echo THROUGHPUT=1\n", "--engine")
        got = self.sweep(plan, "--netperf", netperf, "--output", "o.jsonl")
        self.assertIn("2 runs ok, 0 failed", got.out)
        self.assertIn("left out: this end: uring: built without liburing", got.err)
        runs = self.runs("o.jsonl")
        self.assertEqual([(run["point"]["engine"], run["status"]) for run in runs], [
            ("sync", "ok"), ("sync", "ok"), ("uring", "excluded"), ("batch", "excluded")])
        self.assertEqual(runs[3]["reason"], "the far end has no engine batch")
        self.assertEqual(Path(self.place, "asked").read_text(), "x\n")      # once
        self.assertEqual(Path(self.place, "log").read_text().splitlines(), [
            f"{what} {engine}" for engine in ("sync", "uring", "batch") for what in ("set", "undo")])
        netperf = self.fake("[ \"$2\" != list ] || { echo 'engines at this end'; exit 0; }\n"
                            "echo THROUGHPUT=1\n", "--engine")
        got = self.sweep("--resume", "--output", "o.jsonl", "--netperf", netperf)
        self.assertIn("6 runs ok, 0 failed", got.out)
        got = self.sweep(self.plan(BRIEF + "engine = 'none'\n", "none.toml"), "--local", "--output", "none.jsonl", status=1)
        self.assertIn("nothing was measured: all points were left out", got.err)

    def test_the_method_table(self):
        """The bundled plan with two engines, and netreport's table."""
        self.sweep("methods", "--local", "--set", "engine=sync,epoll", "--set", "length=0.3", "--repeat", "2",
                   "--output", "o.jsonl")
        self.assertEqual([run["point"]["engine"] for run in self.runs("o.jsonl")], ["sync", "epoll"] * 2)
        got = lib.run([str(lib.SCRIPTS / "netreport"), "--progress", "never", f"{self.place}/o.jsonl"], 60)
        self.assertEqual((got.rc, got.err), (0, ""))
        self.assertRegex(got.out, r"(?m)^sync +[\d.]+ +[\d.]+ +[\d.]+ +1\.00 +- +2$")
        self.assertRegex(got.out, r"(?m)^epoll +[\d.]+ +[\d.]+ +[\d.]+ +\d+\.\d\d +- +2$")
        for engine in ("sync", "epoll"):
            for end in ("near", "far"):
                self.assertRegex(got.out, rf"(?m)^{engine} +{end} +[\d.]+ +[\d.]+ +[>=\d.]+ +[\d.e-]+ ")
        self.assertIn("what a kB cost", got.out)

    def test_a_document_of_the_users(self):
        plan = self.plan(BRIEF + "flows = 2\noptions = '--json=mine'\n")
        self.sweep(plan, "--local", "--output", "o.jsonl")
        self.assertNotIn("flows", self.runs("o.jsonl")[0])
        self.assertEqual(len(json.loads(Path(self.place, "mine").read_text())["iterations"][0]["flows"]), 2)

    def test_a_netperf_without_flows(self):
        """One line with a remedy before anything is run or written."""
        netperf = self.fake("echo THROUGHPUT=1\n", "--flow  --flowsy  -T")
        for axes, words in (("flows = [1, 4]", "has no --flows, which flows = 4 needs: take processes = 4 "),
                            ("flows = [3, 4]\nthreads = [1, 2]", "processes = 3 for as many")):
            plan = self.plan(f"[constants]\nhost = 'h'\n[axes]\n{axes}\n")
            got = self.sweep(plan, "--netperf", netperf, "--output", "o.jsonl", status=1)
            self.assertEqual((got.out, got.err.count("\n")), ("", 1))
            self.assertIn(words, got.err)
            self.assertFalse(Path(self.place, "o.jsonl").exists())
        got = self.sweep(plan, "--netperf", netperf, "--set", "threads=1", "--set", "flows=1", "--output", "o")
        self.assertIn("1 run ok", got.out)
        netperf = self.fake("", "--flows n")
        self.assertIn("leave threads out", self.sweep(plan, "--netperf", netperf, "--output", "p", status=1).err)

    def test_the_real_netperf(self):
        """Everything that is asked of netperf works with the original one."""
        try:
            place = lib.real_netperf()
        except lib.Skipped as fault:
            self.skipTest(str(fault))
        plan = self.plan("[constants]\nlength = 1\ncpu_figures = true\ninterval = 0.25\n"
                         "[axes]\ntest = ['TCP_STREAM', 'UDP_STREAM', 'TCP_RR', 'TCP_SENDFILE']\n")
        self.sweep(plan, "--local", "--netperf", str(place / "netperf"), "--netserver",
                   str(place / "netserver"), "--output", "o.jsonl")
        runs = self.runs("o.jsonl")
        self.assertEqual([run["status"] for run in runs], ["ok"] * 4)
        self.assertGreater(runs[2]["result"]["P99_LATENCY"], 0)

    def test_dry_run_can_be_pasted(self):
        plan = self.plan(BRIEF + "options = \"-B 'a; b'\"\n[axes]\nsize = [64, 128]\n"
                         "x = ['$(touch bad)']\n[before]\nx = 'echo {value}'\n")
        with lib.Daemon() as daemon:
            got = self.sweep(plan, "--host", "127.0.0.1", "--set", f"port={daemon.port}", "--dry-run")
            self.assertRegex(got.out, r"(?m)^#   expected to take \d+ s, until \d\d:\d\d$")
            self.assertEqual(re.findall(r"  # (size=\d+) x=\S+ bad\)$", got.out, re.M), ["size=64", "size=128"])
            self.assertEqual([name for name in os.listdir(self.place) if name != plan], [])
            script = subprocess.run(["sh", "-eu"], input=got.out, capture_output=True, text=True,
                                    cwd=self.place, timeout=60)
        self.assertEqual((script.returncode, script.stderr), (0, ""))
        self.assertEqual(script.stdout.count("THROUGHPUT="), 2)
        self.assertFalse(Path(self.place, "bad").exists())
        self.assertIn("$(touch bad)", script.stdout)

    @unittest.skipIf(NO_RICH, NO_RICH)
    def test_progress(self):
        plan = self.plan(SHORT)
        self.assertEqual(self.sweep(plan, "--local", "--progress", "never", "--output", "n").err, "")
        mother, child = pty.openpty()
        self.addCleanup(os.close, mother)
        done = subprocess.run(self.command(plan, "--local", "--output", "t"), cwd=self.place,
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=child,
                              env={**os.environ, "TERM": "xterm"}, timeout=60)
        os.close(child)
        shown = os.read(mother, 1 << 16).decode()
        self.assertEqual(done.returncode, 0)
        self.assertIn("3/3, about 0 s to go", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown))
        self.assertNotIn("runs ok", shown)

    def test_usage(self):
        plan = self.plan(SHORT)
        for args, status, words in (
                ([], 2, "no PLAN"), (["nosuch"], 2, "nor a ready plan (bufferbloat, cpu-binding"), ([plan], 2, "no host"),
                ([plan, "--host", "h", "--local"], 2, "give only one"), ([plan, "--foo"], 2, "--foo"),
                ([plan, "--local", "--set", "foo=1"], 2, "foo"), ([plan, "--resume"], 2, "no file p-DATE"),
                ([plan, "--local", "--repeat", "2,3"], 2, "--until-confidence"),
                ([plan, "--local", "--until-confidence", "9"], 2, "try 99,2.5"),
                ([plan, "--resume", "--force"], 2, "give only one"),
                (["--resume", "--output", "no"], 1, "no: No such file"),
                (["--resume", "--output", plan], 1, "p.toml: line 1"),
                ([plan, "--local", "--netperf", "/no/netperf"], 1, "--netperf names one"),
                ([plan, "--local", "--output", "/no/dir/x"], 1, "/no/dir/x: ")):
            got = self.sweep(*args, status=status)
            self.assertEqual(got.err.count("\n"), 1, got.err)
            self.assertTrue(got.err.startswith("netsweep: "), got.err)
            self.assertIn(words, got.err)
        self.assertEqual(os.listdir(self.place), [plan])

    def test_list(self):
        lines = self.sweep("--list").out.splitlines()
        self.assertEqual([line.split()[0] for line in lines], sorted(READY))
        self.assertTrue(all(len(line.split()) > 4 for line in lines))

    def test_ready_plans_need_root(self):
        if os.geteuid() == 0:
            if not shutil.which("setpriv"):
                self.skipTest("no setpriv")
            os.chmod(self.place, 0o777)
        with lib.Started([*lib.as_nobody(), *self.command("latency")], cwd=self.place) as started:
            got = started.finish(30)
        self.assertEqual(got.rc, 1, got)
        self.assertIn("try sudo, or --host NAME, or --local", got.err)

    def test_from_a_build_tree(self):
        """It uses the programs built there, wherever that is."""
        for folder in ("scripts", "build/src"):
            Path(self.place, folder).mkdir(parents=True)
        for name in ("netkit", "plans"):
            Path(self.place, "scripts", name).symlink_to(lib.SCRIPTS / name)
        shutil.copy(NETSWEEP, f"{self.place}/scripts/netsweep")
        os.rename(self.fake("echo THROUGHPUT=7\n"), f"{self.place}/build/src/netperf")
        with lib.Started([f"{self.place}/scripts/netsweep", self.plan("[axes]\nsize = [1]\n"), "--host", "h",
                          "--output", "o.jsonl"], cwd=self.place) as started:
            self.assertEqual(started.finish(60).rc, 0)
        run = self.runs("o.jsonl")[0]
        self.assertEqual((run["command"][0], run["result"]["THROUGHPUT"]), (f"{self.place}/build/src/netperf", 7))

    def test_from_where_it_is_installed(self):
        script = lib.installed(f"{self.place}/usr", "netsweep")
        shutil.copytree(lib.SCRIPTS / "plans", f"{self.place}/usr/share/plumbline/plans")
        got = lib.run([script, "--list"], 30)
        self.assertEqual((got.rc, len(got.out.splitlines())), (0, len(READY)), got)


def results_plan(path: str) -> plans.Plan:
    """The plan that a file was started with."""
    plan = plans.from_header(results.read(path).header)
    plans.check(plan)
    return plan


class Chosen(Calling):
    PLAN = BRIEF + "[axes]\nsize = { from = 1, to = 8192, times = 2 }\n"

    def test_as_many_values_as_needed(self):
        self.plan(self.PLAN)
        args = ["--netperf", self.fake("size=${*#* -r }; size=${size%%,*}; echo THROUGHPUT=$((size < 512 ? size : 512))\n"),
                "--output", "f"]
        self.sweep("p.toml", "--host", "h", "--adaptive", "size,40", *args)
        sizes = [run["point"]["size"] for run in self.runs("f")]
        self.assertEqual(sizes[:6], [1, 8, 32, 256, 1024, 8192])
        self.assertLess(len(sizes), 14)
        self.sweep("--resume", *args)
        self.assertEqual(len(self.runs("f")), len(sizes))
        self.assertIn("another plan", self.sweep("p.toml", "--host", "h", "--resume", *args, status=2).err)

    def test_all_fail(self):
        self.plan(self.PLAN + "[before]\neach_run = 'false'\n")
        self.sweep("p.toml", "--local", "--adaptive", "size", "--keep-going", "--output", "f", status=1)
        self.assertEqual(len(self.runs("f")), 14)

    def test_usage(self):
        self.plan(self.PLAN)
        for words, says in ((["--adaptive", "sze"], "no axis of the plan"), (["--adaptive", "size,0"], "try size"),
                            (["--adaptive", "size", "--order", "random"], "decides the order")):
            self.assertIn(says, self.sweep("p.toml", "--local", *words, status=2).err)


class Far(Sweeping):
    """Clients and servers that a plan names. A stand-in for ssh does on this machine what sshd would."""
    PLAN = "[constants]\nclient = 'ssh:there'\nserver = 'ssh:me@127.0.0.1'\nport = {}\ntest = 'TCP_RR'\nlength = {}\n"

    def setUp(self):
        super().setUp()
        self.port, self.place_of_programs = lib.free_port(), Path(self.place, "bin")
        self.place_of_programs.mkdir()
        lib.executable(self.place_of_programs / "ssh", "#!/bin/sh\nfor last; do :; done\nexec sh -c \"$last\"\n")
        held = mock.patch.dict(os.environ, {"PATH": f"{self.place_of_programs}:/usr/bin:/bin", "TMPDIR": self.place})
        held.start()
        self.addCleanup(held.stop)

    def tearDown(self):
        self.assertTrue(lib.wait_for(lambda: not running_in(self.place), 20), running_in(self.place))
        self.assertEqual([path.name for path in Path(self.place).glob("tmp.*")], [])

    def there(self):
        for name, path in (("netperf", lib.netperf()), ("netserver", lib.netserver())):
            (self.place_of_programs / name).symlink_to(os.path.abspath(path))

    def test_ssh_at_both_ends(self):
        self.there()
        self.plan(self.PLAN.format(self.port, "-300") + "evidence = true\n[axes]\nsize = [64, 128]\n")
        self.sweep("p.toml", "--output", "f")
        for run in self.runs("f"):
            self.assertEqual((run["status"], run["prefix"]), ("ok", ["ssh", "there"]), run)
            self.assertGreater(run["result"]["THROUGHPUT"], 0)
            self.assertIn("near", run["evidence"])
        self.assertEqual(json.loads(self.lines("f")[0])["environment"]["server"]["hostname"], os.uname().nodename)

    def test_programs_are_copied(self):
        self.plan(self.PLAN.format(self.port, "-300"))
        self.sweep("p.toml", "--copy", "--output", "f")
        self.assertEqual([run["status"] for run in self.runs("f")], ["ok"])

    def test_a_killed_sweep_ends_them(self):
        self.there()
        self.plan(self.PLAN.format(self.port, "60"))
        for number in (signal.SIGKILL, signal.SIGINT):
            proc = self.started("p.toml", "--force", "--output", "f", "--copy")
            self.assertTrue(lib.wait_for(lambda: len([pid for pid in running_in(self.place) if name_of(pid) == "netperf"]), 60))
            proc.send_signal(number)
            proc.communicate()
            self.assertTrue(lib.wait_for(lambda: not running_in(self.place), 20), running_in(self.place))

    def test_what_is_no_end(self):
        for ends, says in (("client = 'host'", "host: ENGINE:HOST, and"), ("server = 'ssh:-oProxyCommand=x'", "ssh:HOST"),
                           ("client = 'kubectl:a/-b'", "try kubectl:HOST"), ("server = 'slurm:'", "try slurm:HOST"),
                           ("server = 'netns:x'", "no host, the address of the server netns:x"),
                           ("client = 'ssh:a'\nlab = '--mtu 1500'", "give only one")):
            self.plan(f"[constants]\n{ends}\n" + ("" if "server" in ends or "lab" in ends else "host = '127.0.0.1'\n"))
            self.assertIn(says, self.sweep("p.toml", status=2).err)
        self.plan(BRIEF)
        self.assertIn("no end of this plan is elsewhere", self.sweep("p.toml", "--local", "--copy", status=2).err)

    def test_an_end_with_itself(self):
        """It is left out, also when a sweep is resumed."""
        plan = plans.parse("p", "[axes]\nclient = ['ssh:a', 'ssh:b']\nserver = ['ssh:a', 'ssh:b', 'ssh:c']\n")
        for _ in range(2):
            plans.check(plan)
            self.assertEqual([(point["client"], point["server"]) for point in plan.points()],
                             [("ssh:a", "ssh:b"), ("ssh:a", "ssh:c"), ("ssh:b", "ssh:a"), ("ssh:b", "ssh:c")])
            plan = plans.from_header(plan.header("", {}))

    def test_nobody_is_there(self):
        (self.place_of_programs / "ssh").write_text("#!/bin/sh\necho 'ssh: no route' >&2\nexit 255\n")
        self.plan(self.PLAN.format(self.port, "-300"))
        self.sweep("p.toml", "--output", "f", status=1)
        self.assertIn("ssh:there: ssh: no route", self.runs("f")[0]["reason"])

    def test_commands_in_words(self):
        self.plan(self.PLAN.format(self.port, "-300") + "[axes]\nsize = [64, 128]\n")
        lines = [line for line in self.sweep("p.toml", "--dry-run").out.splitlines() if not line.startswith("#")]
        self.assertEqual([line.split()[:3] for line in lines],
                         [["ssh", "me@127.0.0.1", "netserver"], *[["ssh", "there", "netperf"]] * 2])
        words = self.sweep("p.toml", "--dry-run", "--set", "port=5001,5002").out
        self.assertRegex(words, r"netserver.* -p 5001\n.*netperf .*-p 5001,5002 ")

    @unittest.skipIf(OBSTACLE, OBSTACLE)
    def test_namespaces(self):
        ends = [f"far{os.getpid()}{end}" for end in "ab"]
        for end in ends:
            lib.must(["ip", "netns", "add", end])
            self.addCleanup(lib.must, ["ip", "netns", "del", end])
        lib.must(["ip", "-n", ends[0], "link", "add", "v", "type", "veth", "peer", "name", "v", "netns", ends[1]])
        for number, end in enumerate(ends):
            lib.must(["ip", "-n", end, "address", "add", f"10.93.0.{number + 1}/24", "dev", "v"])
            lib.must(["ip", "-n", end, "link", "set", "v", "up"])
        self.plan(f"[constants]\nclient = 'netns:{ends[0]}'\nserver = 'netns:{ends[1]}'\nhost = '10.93.0.2'\nlength = -300\n"
                  "test = 'TCP_RR'\n")
        self.sweep("p.toml", "--output", "f")
        self.assertEqual([run["status"] for run in self.runs("f")], ["ok"])


class Every(Sweeping):
    """A plan that is repeated forever."""
    PLAN = "[constants]\nlength = 1\n[axes]\ntest = ['TCP_RR', 'UDP_RR']\n"

    @unittest.skipIf(NO_PROMETHEUS, NO_PROMETHEUS)
    def test_prometheus(self):
        """The metrics agree with the runs; percentiles within a bucket."""
        self.plan(self.PLAN.replace("1", "0.3"))
        port = lib.free_port()
        proc = self.started("p.toml", "--local", "--every", "2s", "--metrics-listen", f"127.0.0.1:{port}", "--history", "h",
                            "--metrics-file", "m.prom")
        self.assertTrue(lib.wait_for(lambda: len(list(Path(self.place, "h").glob("*"))) > 2, 60))
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            self.assertIn("netperf_latency_seconds_bucket", answer.read().decode())
        proc.send_signal(signal.SIGTERM)
        self.assertEqual((proc.wait(20), proc.stderr.read()), (0, ""))
        text = Path(self.place, "m.prom").read_text()
        runs = [json.loads(line) for path in sorted(Path(self.place, "h").iterdir()) for line in path.read_text().splitlines()[1:]]
        runs = [run for run in runs if run["point"]["test"] == "UDP_RR" and run["status"] == "ok"]
        told = int(float(re.search(r'(?m)^netperf_runs_total{status="ok",test="UDP_RR"} (\S+)$', text)[1]))
        self.assertTrue(2 <= told <= len(runs), (told, len(runs)))
        count = float(re.search(r'(?m)^netperf_latency_seconds_count{test="UDP_RR"} (\S+)$', text)[1])
        self.assertAlmostEqual(count, sum(run["result"]["THROUGHPUT"] * run["result"]["ELAPSED_TIME"] for run in runs[:told]), delta=count / 50)
        buckets = [(float(le), float(count)) for le, count in re.findall(
            r'(?m)^netperf_latency_seconds_bucket{le="([0-9.e-]+)",test="UDP_RR"} (\S+)$', text)]
        medians = [run["result"]["P50_LATENCY"] * 1e-6 for run in runs[:told]]
        above = next(le for le, below in buckets if 2 * below >= count)
        self.assertTrue(min(medians) / 1.3 < above < (max(medians) + 1e-6) * 1.3, (above, medians))

    def test_what_can_not_be(self):
        self.plan(self.PLAN)
        for words, says in ((["--every", "20s", "--budget", "1"], "here is in runs for 2 s of each cycle, which is 10 % of the time, not 1 %: "
                             "--every 3 min 20 s would do"),
                            (["--every", "5000s", "--set", "length=1000", "--budget", "1"], "for 2000 s of each cycle, which is 40 %"),
                            (["--every", "1s"], "a cycle takes about"), (["--every", "0s"], "'0s' is not a time"), (["--budget", "1"], "only with --every"),
                            (["--history", "h", "--output", "o"], "--output: not together with --history"),
                            (["--every", "5s", "--output", "o"], "--output: not together with --every"),
                            (["--every", "9s", "--metrics-listen", "x"], "--metrics-listen x: try 127.0.0.1:9464")):
            status = 1 if words[-1] == "x" else 2
            if not (NO_PROMETHEUS and status == 1):
                self.assertIn(says, self.sweep("p.toml", "--local", *words, status=status).err)

    def test_once(self):
        """For cron: one cycle, in a directory that it creates, and the exit status."""
        self.plan(self.PLAN)
        for number, (host, status) in enumerate(((["--local"], 0), (["--host", "127.0.0.1", "--set", f"port={lib.free_port()}"], 1))):
            got = self.sweep("p.toml", *host, "--set", "length=0.2", "--history", f"made/{number}", status=status)
            path, = Path(self.place, "made", str(number)).iterdir()
            self.assertEqual((len(path.read_text().splitlines()), bool(got.err)), (3, bool(status)), got)
        told = resource.getrlimit(resource.RLIMIT_FSIZE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_FSIZE, told)
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(path.read_text().splitlines()[0]) + 100, told[1]))     # as of a full disk
        self.assertIn("netsweep: full: File too large", self.sweep("p.toml", "--local", "--history", "full", status=1).err)

    def test_two_at_the_same_time(self):
        """Their files have the names of different seconds; an error other than a name that is taken is raised."""
        plan = plans.Plan("p", "")
        for _ in range(3):
            watch.new_file(self.place, plan, {}).close()
        names = sorted(os.listdir(self.place))
        self.assertEqual([bool(re.fullmatch(r"p-\d{8}T\d{6}Z\.jsonl", name)) for name in names], 3 * [True], names)
        with self.assertRaisesRegex(results.ResultsError, "No such file"):
            watch.new_file(f"{self.place}/none", plan, {})

    def test_when(self):
        begun = []
        for _ in watch.begins(0.2):
            begun.append(time.monotonic())
            if len(begun) == 5:
                break
            time.sleep(0.25 if len(begun) == 2 else 0)      # longer than a period: one cycle is skipped
        for place, at in zip((0, 1, 3, 4), (begun[0], begun[1], begun[2], begun[3])):
            self.assertGreaterEqual(at - begun[0], 0.2 * place - 0.001)
        for number in range(3):
            path = Path(self.place, f"p-2026112{number}T000000Z.jsonl")
            path.touch()
        Path(self.place, "p-mine.jsonl").touch()
        with mock.patch.object(watch, "KEPT", 1):
            watch.prune(self.place, plans.Plan("p", ""))
        self.assertEqual(sorted(os.listdir(self.place)), ["p-20261122T000000Z.jsonl", "p-mine.jsonl"])


@unittest.skipIf(OBSTACLE, OBSTACLE)
class Labs(Sweeping):
    """The bundled plans in real labs, shortened."""
    SHORTENED = {
        "bufferbloat": (2, "flows=4", "length=1"),
        "cpu-binding": (2, "test=TCP_STREAM", "cpu=default;0,0", "length=0.3"),
        "driver-parameter": (4, "DMA_length=0,7", "length=0.3"),
        "flows": (6, "flows=1,5", "processes=1,5"),
        "fluctuation": (2, "length=2", "buffer=65536"),
        "knee": (1, "test=UDP_STREAM", "asked_rate=ndr", "length=0.3"),
        "lab-buffers": (8, "buffer=32768"),
        "latency": (3, "size=64", "length=0.3"),
        "methods": (2, "engine=sync,epoll", "length=0.3"),
        "mtu": (12, "mtu=576,1500", "length=0.3"),
        "netpipe": (4, "size=1,1048576", "length=0.3"),
    }

    def tearDown(self):
        self.assertTrue(lib.wait_for(lambda: not self.labs(), 10), self.labs())     # other suites may have killed theirs
        self.assertTrue(lib.wait_for(lambda: not running_in(self.place), 10), running_in(self.place))

    def labs(self):
        """Labs whose sweep is gone."""
        names = os.listdir("/run/netns") if os.path.isdir("/run/netns") else []
        pids = {m[1] for m in (re.match(r"netlab-sweep-(\d+)-", name) for name in names) if m}
        return [pid for pid in pids if not machine.is_sweep(int(pid))]

    def guards(self, pid):
        """The processes that remove a sweep's lab if it can't do so itself."""
        found = []
        for one in filter(str.isdigit, os.listdir("/proc")):
            try:
                words = Path(f"/proc/{one}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if f"sweep-{pid}".encode() in words and b"/bin/sh" in words:
                found.append(int(one))
        return found

    def ready_plan(self, name):
        count, *settings = self.SHORTENED[name]
        if not any(setting.startswith("length=") for setting in settings):
            settings.append("length=0.3")
        args = [word for setting in settings for word in ("--set", setting)]
        got = self.sweep(name, *args, "--repeat", "1", "--output", "o.jsonl")
        runs = self.runs("o.jsonl")
        self.assertEqual(len(runs), count, got)
        for run in runs:
            self.assertEqual(run["prefix"][1:3], ["exec", "--name"])
            self.assertIn(run["command"][2], ("10.77.0.2", "fd77::2"))
            self.assertGreater(run["result"]["THROUGHPUT"], 0, run)
            self.assertRegex(run["link"], r"^(\d+ [MG]bit/s|no rate limit), .*\(veth\)$")
        return runs

    def test_cpu_binding(self):
        for run in self.ready_plan("cpu-binding"):
            self.assertEqual("-T" in run["command"], run["point"]["cpu"] is not None)

    def test_bufferbloat(self):
        """Four streams keep some milliseconds of packets in the queue at 20 Mbit/s, on any machine."""
        for run in self.ready_plan("bufferbloat"):
            got = run["result"]
            self.assertEqual(got["LOAD_DIED"], "no", got)
            self.assertGreater(got["LOADED_P50_LATENCY"], 2000, got)
            self.assertGreater(got["IDLE_P50_LATENCY"], 0)
            self.assertIn("IDLE_RPM", got)      # 0 on a machine too busy to answer nineteen of twenty in time

    def test_knee(self):
        """A rate above the link's is too much, and the knee is below it."""
        run, = self.ready_plan("knee")
        curve = run["curve"]
        too_much = [step["rate"] for step in curve["steps"] if "too_much" in step]
        self.assertLess(curve["knee"], min(too_much), curve)
        self.assertLess(curve["knee"], 100e6, curve)

    def test_driver_parameter(self):
        runs = self.ready_plan("driver-parameter")
        self.assertEqual([len(run["before"]) for run in runs], [1, 0, 1, 0])
        self.assertIn("DMA_length=7", runs[2]["before"][0]["output"])

    def test_flows(self):
        """One process reports the same time for all flows: never more than the wire carries."""
        for run in self.ready_plan("flows"):
            self.assertEqual("--flows" in run["command"], run["point"]["flows"] > 1)
            self.assertEqual(len(run.get("flows", [])), 5 * (run["point"]["flows"] > 1))
            self.assertEqual(len(run.get("processes", [])), 5 * (run["point"]["processes"] > 1))
            if run["point"]["test"] == "TCP_STREAM" and run["point"]["processes"] == 1:
                self.assertLess(run["result"]["THROUGHPUT"], 100)

    def test_fluctuation(self):
        for run in self.ready_plan("fluctuation"):
            self.assertGreaterEqual(len(run["interim"]), 1)

    def test_lab_buffers(self):
        """At most what the wire carries, and at least what a busy machine can do."""
        for run in self.ready_plan("lab-buffers"):
            self.assertLess(run["result"]["THROUGHPUT"], 100)
            self.assertEqual(run["result"]["LSS_SIZE_END"], 65536)  # Linux doubles the requested size

    def test_latency(self):
        for run in self.ready_plan("latency"):
            self.assertGreater(run["result"]["P99_LATENCY"], 0)

    def test_methods(self):
        for run in self.ready_plan("methods"):
            self.assertEqual(run["evidence"]["far"]["engine.name"], run["point"]["engine"])

    def test_mtu(self):
        runs = self.ready_plan("mtu")
        segments = {(run["point"]["mtu"], run["point"]["family"]): run["result"]["TRANSPORT_MSS"]
                    for run in runs if run["point"]["test"] == "TCP_STREAM"}
        for run in runs:
            self.assertIn(f", MTU {run['point']['mtu']}, ", run["link"])
        self.assertEqual(segments, {(576, 4): 524, (1500, 4): 1448, (1500, 6): 1428})

    def test_netpipe(self):
        rates = {(run["point"]["test"], run["point"]["size"]): run["result"]["THROUGHPUT"]
                 for run in self.ready_plan("netpipe")}
        self.assertGreater(rates["TCP_RR", 1], rates["TCP_RR", 1048576])

    @unittest.skipIf(NO_LINE, NO_LINE)
    def test_what_carried_the_packets_is_told(self):
        self.sweep("latency", "--set", "test=TCP_RR", "--set", "size=1", "--set", "length=1", "--set",
                   "lab=--delay 1ms", "--output", "o.jsonl")
        self.assertRegex(self.runs("o.jsonl")[0]["link"], r"delay 1 ms \((netlab-link|netem)\)$")
        self.assertNotIn("veth", self.lines("o.jsonl")[0])

    def test_killed(self):
        """Its lab is removed, too, and if that is impossible the next sweep does it."""
        proc = self.started("latency", "--set", "length=0.3", "--set", "size=1,64", "--output", "o.jsonl")
        for count in (1, 2):
            self.await_runs("o.jsonl", count)
            if count == 2:
                for guard in self.guards(proc.pid):
                    os.kill(guard, signal.SIGKILL)
            proc.kill()
            proc.wait(10)
            self.assertTrue(lib.wait_for(lambda: not running_in(self.place), 10))
            if count == 2:
                self.assertIn(str(proc.pid), self.labs())
            else:
                self.assertTrue(lib.wait_for(lambda: str(proc.pid) not in self.labs(), 10))
                proc = self.started("--resume", "--output", "o.jsonl")
        self.sweep("--resume", "--output", "o.jsonl")
        self.assertEqual(self.guards(proc.pid), [])
        self.once_each("o.jsonl", results_plan(f"{self.place}/o.jsonl"))

    def test_interrupted(self):
        """Also while the lab is being created, as soon as signals are blocked: Python loses some that arrive before."""
        def waits(pid):
            held = re.search(r"(?m)^SigBlk:\s*(\w+)$", Path(f"/proc/{pid}/status").read_text())
            return not held or int(held[1], 16) >> (signal.SIGINT - 1) & 1

        for delay in (0, 0.15, 0.3, 1.2):
            proc = self.started("latency", "--set", "length=0.3", "--output", f"{delay}.jsonl")
            self.assertTrue(lib.wait_for(lambda: waits(proc.pid), 60))
            time.sleep(delay)
            proc.send_signal(signal.SIGINT)
            _, err = proc.communicate(timeout=40)
            self.assertEqual(proc.returncode, 130, err)
            self.assertNotIn(str(proc.pid), self.labs())

    def test_dry_run_brings_up_labs(self):
        got = self.sweep("mtu", "--set", "mtu=576,1500", "--dry-run")
        words = [shlex.split(line) for line in got.out.splitlines() if not line.startswith("#")]
        ups = [line[2:] for line in words if line[1] == "up"]
        self.assertEqual(ups, [["--rate", "100mbit", "--mtu", mtu, "--congestion", "cubic"] for mtu in ("576", "1500")])
        self.assertEqual(len([line for line in words if line[1:3] == ["exec", "client"]]), 12)
        self.assertEqual(words[-1][1], "down")


def no_toml() -> bool:
    return not any(importlib.util.find_spec(module) for module in ("tomllib", "tomli"))


def main() -> None:
    lib.wants("scipy.special", "rich.progress")
    if no_toml():
        lib.skip("this Python reads no TOML: python3-tomli is missing")
    if OBSTACLE:
        print(f"SKIP: the ready plans in labs: {OBSTACLE}", flush=True)
    lib.unit_main(warnings="ignore")    # messages of the garbage collector would appear in a captured stderr


if __name__ == "__main__":
    main()
