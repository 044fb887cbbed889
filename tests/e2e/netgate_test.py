#!/usr/bin/env python3
"""Tests of scripts/netgate: options and plans, slots, and gates with a netperf that makes figures up, so that nothing
depends on the machine."""

import functools
import importlib.util
import json
import os
import re
import shutil
import signal
import socket
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import lib
from netkit import machine, plan as plans, python
from netkit.gate import bench, points
from netkit.gate.model import GateError, Metric, Point, Side

NETGATE = str(lib.SCRIPTS / "netgate")

# A stand-in for netperf: $n counts its calls, $* are its arguments. It starts no processes, as it is called often.
FAKE = """#!/bin/sh
case "$*" in *--help*) cat help; exit 0 ;; --version) echo fake; exit 0 ;;
*'-- -k ?') cat figures 2> /dev/null; exit 1 ;; esac
n=0; [ ! -e n ] || read -r n < n; n=$((n + 1)); echo $n > n; echo "$*" >> calls
"""
HELP = "  --json[=file]   write it\n  --warm-up s   first\n"


called = functools.partial(lib.called, lib.script("netgate").main)


class Folder(lib.InPlace):
    """A directory with that netperf."""

    def setUp(self):
        super().setUp()
        before = os.getcwd()
        os.chdir(self.place)
        self.addCleanup(os.chdir, before)
        # as in netgate: otherwise each wait for a process takes a second
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, [])
        machine.hold_signals()
        self.addCleanup(signal.pthread_sigmask, signal.SIG_SETMASK, mask)

    def fake(self, body, help_text=HELP, name="netperf"):
        path = Path(self.place, name)
        lib.executable(path, FAKE + body)
        Path(self.place, "help").write_text(help_text)
        return str(path)

    def text(self, name):
        return Path(self.place, name).read_text()


class Points(unittest.TestCase):
    def refused(self, words, call, *args):
        with self.assertRaisesRegex(points.UsageError, words) as got:
            call(*args)
        self.assertNotIn("\n", str(got.exception))

    def test_options_of_a_side(self):
        for text, wanted in (("", ((), ())), ("-c", (("-c",), ())), ("-- -m 1000", ((), ("-m", "1000"))),
                             ("-6 -T 0,1 -- -D -m '1 2'", (("-6", "-T", "0,1"), ("-D", "-m", "1 2")))):
            self.assertEqual(points.split("--a", text), wanted, text)
        for text, words in (("-l 5", "gives -l by itself: take netgate's --slot"), ("-l5", "-l by itself"),
                            ("--json=x", "take netgate's --output"), ("-- -k X", "take netgate's --metric"),
                            ("-f g", "-f by itself$"), ("'", "No closing quotation")):
            self.refused(words, points.split, "--a", text)

    def test_metrics(self):
        for text, wanted in (("THROUGHPUT", Metric("THROUGHPUT", 3.0, True)),
                             ("P99_LATENCY", Metric("P99_LATENCY", 3.0, False)),
                             ("LOCAL_SD:5", Metric("LOCAL_SD", 5.0, False)),
                             ("TRANSPORT_MSS:less", Metric("TRANSPORT_MSS", 3.0, False)),
                             ("P99_LATENCY:more:0.5", Metric("P99_LATENCY", 0.5, True)),
                             ("P99_LATENCY:0.5:more", Metric("P99_LATENCY", 0.5, True))):
            self.assertEqual(points.metric(text, 3.0), wanted, text)
        for text in ("throughput", "", "THROUGHPUT:x", "THROUGHPUT:0", "THROUGHPUT:51", "THROUGHPUT:1:2",
                     "THROUGHPUT:less:1:2", "TRANSPORT_MSS", "THROUGHPUT:nan"):
            self.refused(f"--metric {re.escape(text)}: ", points.metric, text, 3.0)

    def test_settings(self):
        self.assertEqual(points.setting("--set-a", "offload  lab0 tso=off "), ("offload lab0 tso", "off"))
        for text in ("mtu lab0", "=1", "mtu lab0="):
            self.refused("--set-a .*try 'mtu", points.setting, "--set-a", text)

    def test_points(self):
        made = list(points.points({"test": "tcp_stream,UDP_STREAM", "margin": 1.0, "a": "-- -m 1",
                                   "before_b": ["x"], "set_b": ["mtu lab0=1400"], "netperf_b": "/p"}, "n"))
        self.assertEqual([point.name for point in made], ["n.tcp_stream", "n.udp_stream"])
        self.assertEqual(made[0].metrics, (Metric("THROUGHPUT", 1.0),))
        self.assertEqual(made[1].metrics, (Metric("REMOTE_RECV_THROUGHPUT", 1.0),))
        self.assertEqual(made[0].a, Side(options=("-m", "1")))
        self.assertEqual(made[0].b, Side(before=("x",), settings=(("mtu lab0", "1400"),), netperf="/p"))
        alike, = points.points({"test": "TCP_RR", "margin": 1.0, "aa": True, "a": "-c"})
        self.assertEqual((alike.a, alike.b), (Side(globals=("-c",)),) * 2)
        self.refused("--aa compares", list, points.points({"test": "TCP_RR", "margin": 1.0, "aa": True, "b": "-c"}))
        self.refused("used twice", points.check, made * 2)
        self.refused("a name consists of", points.check, [Point("a b", "TCP_RR")])
        self.refused("no test whose", list, points.points({"test": "TCP_MSS", "margin": 1.0}))

    def test_which_way_is_better(self):
        """Which direction is better, for each of netperf's figures whose name tells: never both."""
        rows = re.findall(r"^NP_(?:METRIC\(|(ENDS|PAIR)\(\d+, )((?:\w+, )+)(?:INT|REAL)", (
            lib.TOP / "src/stats/metrics.def").read_text(), re.MULTILINE)
        names = [end + name for kind, alike in rows for name in alike.rstrip(", ").split(", ")
                 for end in (("LOCAL_", "REMOTE_") if kind == "ENDS" else ("",))]
        self.assertGreater(len(names), 100)
        for name in names:
            self.assertFalse(points.LESS.search(name) and points.MORE.search(name), name)
        for name in ("P99_LATENCY", "LOCAL_CPU_UTIL", "REMOTE_SD", "LOCAL_TRANSPORT_RETRANS", "CONNECT_P99",
                     "LOST_DATAGRAMS", "LOCAL_CPU_PERCENT_SWINTR"):
            self.assertTrue(points.LESS.search(name) and name in names, name)
        for name in ("THROUGHPUT", "REMOTE_RECV_THROUGHPUT", "JAIN_INDEX", "MIN_FLOW_THROUGHPUT"):
            self.assertTrue(points.MORE.search(name) and name in names, name)

    def test_plans(self):
        with tempfile.TemporaryDirectory() as place:
            path = os.path.join(place, "p.toml")
            Path(path).write_text("[gate]\nbudget = 9\nlocal = true\nno-aa = false\n[[point]]\nname = 'x'\n"
                                  "test = 'TCP_RR'\nb = '-- -r 2'\nmetric = ['A:less', 'B:more']\n"
                                  "[[point]]\ntest = 'TCP_STREAM'\n")
            known = {"budget", "local", "no-aa"}
            self.assertEqual(points.load(path, known), (
                ["--budget=9", "--local"],
                [("x", ["--test=TCP_RR", "--b=-- -r 2", "--metric=A:less", "--metric=B:more"]),
                 ("", ["--test=TCP_STREAM"])]))
            for text, words in (("x", "p.toml: "), ("[gate]\n", "tables \\[\\[point"), ("gate = 1", "a table"),
                                ("[[point]]\nfoo = 1", "has no foo .try a, after-a"),
                                ("[[point]]\nbudget = 1", "has no budget"),
                                ("[gate]\nx = 1\n[[point]]\n", "\\[gate\\] has no x"),
                                ("[axes]\n[[point]]\n", "but no axes"),
                                ("[[point]]\naxes = {size = 1}", "a list of values for each name"),
                                (f"[[point]]\naxes = {{a = {list(range(200))}, b = {list(range(200))}}}", "more than 10000 points"),
                                ("[[point]]\naxes = {size = [1]}\na = '-m {seize}'", "seize. is neither"),
                                ("[[point]]\na = {x = 1}", "a: a text, a number")):
                Path(path).write_text(text)
                self.refused(words, points.load, path, known)

    def test_axes_of_a_plan(self):
        with tempfile.TemporaryDirectory() as place:
            path = os.path.join(place, "p.toml")
            Path(path).write_text("[[point]]\nname = 'n'\naxes = {size = [1, 2], test = ['TCP_RR', 'UDP_RR']}\n"
                                  "test = '{test}'\nmargin = 3\nb = '-- -r {size}'\nbefore-b = ['echo {size} ${x}']\n")
            self.assertEqual(points.load(path, set())[1], [
                (f"n.size{size}.test{test}", [f"--test={test}", "--margin=3", f"--b=-- -r {size}", f"--before-b=echo {size} ${{x}}"])
                for size in (1, 2) for test in ("TCP_RR", "UDP_RR")])


def document(**more):
    """A document of netperf with what a slot reads."""
    last = {"near": {"tcp.mss": 1448, "tcp.samples.t_s": [1], "unread": {"x": "no file"}}, "far": None, **more}
    return {"result": "complete", "reason": None,
            "final": {"THROUGHPUT": 941.25, "THROUGHPUT_UNITS": "10^6bits", "ELAPSED_TIME": 1.5, "LOCAL_SD": -1.0,
                      "P99_LATENCY": 7, "PROTOCOL": "TCP"},
            "interim": [{"rate": 940.0, "seconds": 0.75}, {"rate": 942.5, "seconds": 0.75}],
            "iterations": [{}, last]}


WRITES = 'for w; do case $w in --json=*) cat document > "${w#--json=}" ;; esac; done\necho THROUGHPUT=941\n'


class Slots(Folder):
    def bench(self, netperf, **more):
        made = bench.Bench(bench.Site(machine.Place(), {4: "h"}, device="eth7"), netperf, **more)
        made._look = dict   # no settings of the machine here
        return made

    def test_a_document(self):
        Path("document").write_text(json.dumps(document(disturbed={
            "share": 0.25, "seconds": 2.0, "reasons": {"steal": 0.5}})))
        there = self.bench(self.fake(WRITES), warm_up=0.5)
        slot = there.slot(Point("p", "TCP_STREAM", a=Side(("-m", "9"), ("-T", "0,0"))), "A", 1.2)
        self.assertEqual(slot.failed, "")
        self.assertEqual((slot.point, slot.side, slot.length, slot.figures["THROUGHPUT"]),
                         ("p", "A", 1.5, 941.25))
        self.assertNotIn("LOCAL_SD", slot.figures)
        self.assertEqual(slot.units["THROUGHPUT"], "Mbit/s")
        self.assertEqual(slot.samples, [(0.75, 940.0), (1.5, 942.5)])
        self.assertEqual(slot.evidence, {"near": {"tcp.mss": 1448, "unread": {"x": "no file"}}})
        self.assertEqual((slot.disturbed, slot.reasons, slot.taken), (0.25, {"steal": 0.5}, 0.25))
        words = " ".join(slot.command)
        for part in ("netperf -H h -t TCP_STREAM -l 1.2 -D 0.1 --warm-up 0.5 -T 0,0 -P 0 -- -m 9 -k THROUGHPUT,",):
            self.assertIn(part, words)
        self.assertNotIn("--json", words)
        self.assertIn("--json=", self.text("calls"))

    def test_the_number_of_a_document(self):
        for number, failed in ((1, "^$"), (2, "^$"), (3, "^$"), (99, "document of number 99, and this program reads 1 to 3 .a newer")):
            Path("document").write_text(json.dumps(document()).replace("{", f'{{"schema": "plumbline-netperf/{number}", ', 1))
            self.assertRegex(self.bench(self.fake(WRITES)).slot(Point("p", "TCP_STREAM"), "A", 1).failed, failed)

    def test_nothing_is_left_when_it_is_killed(self):
        """Nothing exists while a slot runs."""
        Path("document").write_text(json.dumps(document()))
        os.mkdir("tmp")
        with mock.patch.object(tempfile, "tempdir", f"{self.place}/tmp"):
            slot = self.bench(self.fake("ls tmp > seen\n" + WRITES)).slot(Point("p", "TCP_STREAM"), "A", 1)
        self.assertEqual((slot.failed, slot.figures["THROUGHPUT"], self.text("seen")), ("", 941.25, ""))

    def test_a_command_that_hangs(self):
        there = self.bench(self.fake(WRITES), command_limit=0.3)
        slot = there.slot(Point("p", "TCP_RR", a=Side(before=("sleep 60",))), "A", 1)
        self.assertRegex(slot.failed, "^command of A: sleep 60: did not end within 0")
        self.assertLess(slot.seconds, 5)

    def test_a_netperf_without_documents(self):
        """On either side: then neither is asked for a document, as that takes time."""
        with_it = self.fake(WRITES)
        for name, help_text in (("old", "  --warm-up s\n"),
                                ("bare", "  --json[=file]  a document (not in this build: libjansson)\n")):
            shutil.copy(with_it, name)
            Path(name).write_text(FAKE.replace("cat help", f"echo '{help_text}'")
                                  + "echo THROUGHPUT=5.5; echo THROUGHPUT_UNITS=10^9bits/s\n")
            Path("calls").unlink(missing_ok=True)
            there = self.bench(with_it)
            point = Point("p", "TCP_STREAM", b=Side(netperf=f"{self.place}/{name}"))
            a, b = (there.slot(point, side, 1) for side in "AB")
            self.assertEqual((a.figures["THROUGHPUT"], b.figures["THROUGHPUT"]), (941.0, 5.5))
            self.assertEqual((b.units["THROUGHPUT"], b.disturbed, b.evidence, b.samples),
                             ("Gbit/s", None, {}, []))
            self.assertNotRegex(self.text("calls"), "--json|-D 0.1")

    def test_figures_that_are_asked_for(self):
        netperf = self.fake("echo THROUGHPUT=1; echo P99_LATENCY=40; echo LOCAL_SD=2.5; echo SD_UNITS=usec/Tran\n",
                            help_text="")
        there = self.bench(netperf)
        metrics = tuple(map(Metric, ("P99_LATENCY", "LOCAL_SD", "FOO_BAR")))
        slot = there.slot(Point("p", "TCP_RR", metrics=metrics[:2]), "A", 1)
        self.assertEqual((slot.figures["P99_LATENCY"], slot.figures["LOCAL_SD"]), (40.0, 2.5))
        self.assertEqual((slot.units["P99_LATENCY"], slot.units["LOCAL_SD"]), ("us", "usec/Tran"))
        self.assertIn("-c", slot.command)       # or netperf would not measure it
        slot = there.slot(Point("p", "TCP_RR", metrics=metrics), "A", 1)
        self.assertIn("FOO_BAR", slot.command[-1].split(","))
        self.assertEqual(slot.failed, "netperf gave no FOO_BAR for TCP_RR")

    def test_slots_that_fail(self):
        partial = {**document(), "result": "partial", "reason": "the far end vanished"}
        Path("document").write_text(json.dumps(partial))
        for body, words in ((WRITES, "the far end vanished"), ("echo x >&2; echo 'no luck' >&2; exit 1\n", "no luck"),
                            ("exit 3\n", "netperf ended with status 3"), ("exit 0\n", "netperf gave no THROUGHPUT"),
                            ("echo THROUGHPUT=-1\n", "netperf gave no THROUGHPUT for TCP_RR")):
            slot = self.bench(self.fake(body)).slot(Point("p", "TCP_RR"), "A", 1)
            self.assertEqual(slot.failed, words if "for" in words else slot.failed)
            self.assertIn(words, slot.failed)
            self.assertTrue(slot.command and not slot.figures.get("THROUGHPUT", 0) < 0)

    def test_a_side_is_made_when_it_changes(self):
        there = self.bench(self.fake("echo slot >> log; echo THROUGHPUT=1\n"))
        point = Point("p", "TCP_RR", a=Side(before=("echo $NETGATE_SIDE up $NETGATE_DEVICE | tee -a log",),
                                            after=("echo A down >> log",)),
                      b=Side(before=("echo B 1 >> log", "echo B 2 >> log"), after=("echo B down >> log",)))
        slots = [there.slot(point, side, 1) for side in "AABBA"]
        there.leave()
        self.assertEqual(self.text("log").splitlines(), [
            "A up eth7", "slot", "slot", "A down", "B 1", "B 2", "slot", "slot", "B down", "A up eth7", "slot",
            "A down"])
        self.assertEqual(slots[0].hooks[0]["output"], "A up eth7\n")
        self.assertEqual([len(slot.hooks) for slot in slots], [1, 0, 3, 0, 2])

    def test_a_command_that_fails(self):
        """The slot fails; the command is undone and tried again; failures of [after] commands are reported at the
        end."""
        there = self.bench(self.fake("echo slot >> log; echo THROUGHPUT=1\n"))
        point = Point("p", "TCP_RR", b=Side(
            before=("echo one >> log", "test -e repaired || { echo 'no card' >&2; false; }"),
            after=("echo undo >> log; test ! -e broken || { echo stuck; false; }",)))
        self.assertEqual(there.slot(point, "A", 1).failed, "")
        slot = there.slot(point, "B", 1)
        self.assertRegex(slot.failed, "^command of B: test -e .*: no card$")
        self.assertEqual((slot.hooks[1]["status"], slot.hooks[1]["output"]), (1, "no card\n"))
        Path("repaired").touch()
        self.assertEqual(there.slot(point, "B", 1).failed, "")
        Path("broken").touch()
        with self.assertRaisesRegex(GateError, "command of B: echo undo .*: stuck"):
            there.leave()
        self.assertEqual(self.text("log").split(), ["slot", "one", "undo", "one", "slot", "undo"])

    def test_settings(self):
        """Settings are applied after the commands and restored before the commands are undone."""
        log = []

        class Keeper:
            def set(self, settings):
                log.append(settings)
                return {one: f"{one[0]} is so" for one in settings}

            def put_back(self):
                log.append("back")

            def leave(self):
                log.append("leave")

        there = self.bench(self.fake("echo THROUGHPUT=1\n"))
        there._keeper = Keeper()
        one, two = (("mtu x", "1400"),), (("mtu x", "1500"),)
        for settings, letter in ((one, "A"), (one, "A"), (two, "B"), ((), "B"), (one, "A")):
            point = Point("p", "TCP_RR", **{letter.lower(): Side(settings=settings)})
            self.assertEqual(there.slot(point, letter, 1).failed, "")
        there.leave()
        sides = (Side(settings=one), Side(settings=two, before=("x",)))
        there.rehearse([Point("p", "TCP_RR", a=sides[0], b=sides[1])] * 2)
        self.assertEqual(log[-2:], [one, "back"])
        for a, b, said in ((one, (), ["mtu x is so"]), (one, one, []), ((), two, ["mtu x is so"])):
            self.assertEqual(there.rehearse([Point("p", "TCP_RR", a=Side(settings=a), b=Side(settings=b))]), said)
        for a, said in (((), "mtu x is so"), (two, "")):
            with self.assertRaisesRegex(GateError, f"A and B are the same: {said}"):
                there.rehearse([Point("p", "TCP_RR", a=Side(settings=a), b=Side(settings=two))], True)
        for a, b in (((), ()), (one, one)):     # only a note
            there.rehearse([Point("p", "TCP_RR", a=Side(settings=a), b=Side(settings=b, globals=("-c",)))], True)
        del log[-12:]
        self.assertEqual(log[:-2], [one, "back", two, "back", one, "back", "leave"])

    def test_versions_of_ip(self):
        site = bench.Site(machine.Place(), {4: "127.0.0.1", 6: "::1"})
        for side, wanted in ((Side(), "127.0.0.1"), (Side(globals=("-6",)), "::1"), (Side(host="x::1"), "x::1")):
            self.assertEqual(site.host(side, site.family(side)), wanted)
        self.assertEqual(site.family(Side(host="x::1")), 6)

    def test_units(self):
        for name, units, wanted in (("THROUGHPUT", "10^6bits", "Mbit/s"), ("THROUGHPUT", "Trans/s", "trans/s"),
                                    ("MIN_FLOW_THROUGHPUT", "MBytes", "MBytes/s"), ("THROUGHPUT", "", ""),
                                    ("LOCAL_CPU_UTIL", "", "%"), ("CONNECT_P99", "", "us"),
                                    ("LSS_SIZE", "", "bytes"), ("LOCAL_TRANSPORT_RETRANS", "", "")):
            self.assertEqual(bench.unit_of(name, {"THROUGHPUT_UNITS": units}), wanted, name)


# Constant figures that depend on the options of B: a tenth lower, a tenth higher, or equal.
STEADY = ("case $* in *'-m 9 '*) f=90 ;; *'-m 11 '*) f=110 ;; *) f=100 ;; esac\n"
          "echo THROUGHPUT=$f.$((n % 3)); echo THROUGHPUT_UNITS=10^6bits/s\n")
WILD = "sleep 0.1; echo THROUGHPUT=$((n * 37 % 83 + 40))\n"


class Gates(Folder):
    """The program itself, with a far end that listens but is never used."""

    def setUp(self):
        super().setUp()
        if not importlib.util.find_spec("numpy"):
            self.skipTest("no numpy: apt-get install python3-numpy")
        self.far = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(self.far.close)

    def command(self, *args):
        return [NETGATE, "--netperf", f"{self.place}/netperf", "--host", "127.0.0.1", "--port",
                str(self.far.getsockname()[1]), "--progress", "never", *args]

    def gate(self, *args, status=0):
        """In this process, as starting Python takes longer than the slots of such a gate."""
        got = called(*self.command(*args)[1:])
        self.assertEqual(got.rc, status, got)
        return got

    def lines(self, name, schema):
        found = [json.loads(line) for line in self.text(name).splitlines()]
        return [one for one in found if one["schema"] == f"plumbline-{schema}/1"]

    def test_verdicts(self):
        """B is equal, a tenth lower, a tenth higher; reversed where less is better."""
        self.fake(STEADY)
        for b, verdict, status, form, begin in (
                ("", "equal", 0, "text", "B against A"), ("-- -m 9", "worse", 1, "ktap", "KTAP version 1"),
                ("-- -m 11", "better", 0, "junit", "<?xml"), ("-- -m 9", "better", 0, "json", '{"schema": "plum')):
            less = ["--metric", "THROUGHPUT:less"] if form == "json" else []
            got = self.gate("--test", "TCP_STREAM", "--b", b, "--output", "o", "--force", "--format", form, *less,
                            status=status)
            self.assertTrue(got.out.startswith(begin), got.out)
            self.assertIn(verdict, got.out)
            self.assertEqual(got.err, "")
            found, = self.lines("o", "verdict")
            self.assertEqual((found["point"], found["verdict"], found["unit"]), ("tcp_stream", verdict, "Mbit/s"))
            self.assertEqual("A and B are the same" in got.out, not b)

    def test_what_is_written(self):
        self.fake(STEADY)
        self.gate("--test", "TCP_RR", "--b", "-- -m 9", "--after-b", "true", "--before-b", "echo it is $NETGATE_SIDE",
                  "--output", "o", "--seed", "7", "--confidence", "99", "--metric", "THROUGHPUT:more:50")
        header, = self.lines("o", "gate")
        self.assertEqual((header["confidence"], header["environment"]["seed"]), (99.0, 7))
        slots = self.lines("o", "slot")
        self.assertEqual([slot["number"] for slot in slots], list(range(1, len(slots) + 1)))
        self.assertEqual(len(slots), self.text("calls").count(" -l 1"))
        said = [hook for slot in slots for hook in slot["hooks"] if hook["command"] != "true"]
        self.assertTrue(said and all(hook["output"] == "it is B\n" for hook in said))
        got = self.gate("--test", "TCP_RR", "--output", "o", status=1)
        self.assertIn("o: already exists", got.err)
        self.assertEqual(len(self.lines("o", "slot")), len(slots))

    def test_one_side(self):
        """A now, B later: the file keeps the results of either side."""
        if not importlib.util.find_spec("scipy"):
            self.skipTest("no scipy: apt-get install python3-scipy")
        self.fake(STEADY)
        sides = ["--test", "TCP_RR", "--a", "-- -m 11", "--b", "-- -m 9", "--budget", "3", "--keep", "k"]
        for _ in range(2):
            got = self.gate(*sides, "--side", "A")
            self.assertRegex(got.out, r"A is measured: \d+ slots? of 1 point")
            self.assertIn("A is in k: the same options with --side B compare B with it", got.err)
        self.assertEqual({(slot["side"], "-m 11" in " ".join(slot["command"])) for slot in self.lines("k", "slot")},
                         {("A", True)})
        with open("k", "a", encoding="utf-8") as file:
            file.write('{"schema": "plumbline-slot/1"')     # as left by a crash
        got = self.gate(*sides, "--side", "B", status=1)
        self.assertIn("worse: tcp_rr is 18.", got.out)
        self.assertIn("A is 2 earlier sessions", got.out)
        self.assertEqual(len(self.lines("k", "gate")), 3)
        self.assertEqual({"-m 9" in " ".join(slot["command"]) for slot in self.lines("k", "slot") if slot["side"] == "B"}, {True})
        for args, words in ((["--side", "A"], "go together"), (["--keep", "k"], "go together"),
                            ([*sides[-2:], "--side", "A", "--output", "o"], "no --output beside it")):
            self.assertIn(words, self.gate("--test", "TCP_RR", *args, status=2).err)
        self.assertIn("No such file", self.gate("--test", "TCP_RR", "--side", "B", "--keep", "none", status=1).err)

    def test_no_scipy(self):
        """Without scipy, other differences are not found, which is reported before anything is measured; the verdicts
        are the same."""
        self.fake(STEADY)
        with mock.patch.dict(sys.modules, {"scipy": None, "scipy.special": None}), mock.patch.object(
                python, "WAS_TRIED", "scipy"):
            got = self.gate("--test", "TCP_RR", "--b", "-- -m 9", status=1)
            self.assertIn("worse: tcp_rr is", got.out)
            self.assertIn("needs Python's scipy.special", got.err)

    def test_it_can_not_be_told(self):
        self.fake(WILD)
        for more, status in (([], 77), (["--strict"], 1)):
            got = self.gate("--test", "TCP_STREAM", "--b", "-c", "--budget", "2.5", "--confidence", "99.99", *more,
                            status=status)      # not enough time for as many pairs
            self.assertIn("can't tell", got.out)

    def test_a_plan(self):
        self.fake(STEADY)
        Path("p.toml").write_text("[gate]\nmargin = 50\noutput = 'o'\n[[point]]\nname = 'x'\ntest = 'TCP_RR'\n"
                                  "b = '-- -m 9'\n[[point]]\nname = 'y'\ntest = 'UDP_STREAM'\n"
                                  "metric = 'THROUGHPUT'\nb = '-- -m 11'\nmargin = 1\n")
        self.gate("p.toml")
        self.assertEqual([(one["point"], one["verdict"], one["metric"]["margin"])
                          for one in self.lines("o", "verdict")], [("x", "equal", 50.0), ("y", "better", 1.0)])
        got = self.gate("p.toml", "--margin", "5", "--dry-run")     # the command line overrides the plan
        self.assertRegex(got.out, "(?s)# x: .* within 5 %.*# y: .* within 5 %")

    def test_a_file_that_can_not_be_written(self):
        self.fake(STEADY)
        got = self.gate("--test", "TCP_RR", "--output", "/dev/full", "--force", "--format", "ktap", status=1)
        self.assertRegex(got.out, "(?m)^not ok 1 netgate # verdict=cant_tell time=0ms\n# ended early: /dev/full: No space")

    def test_a_plan_for_the_kernels_selftests(self):
        """The exit statuses of the kernel's selftests, wherever the format is set."""
        self.fake(WILD)
        plan = "[gate]\nformat = 'tap'\nbudget = 1.1\n[[point]]\nname = 'tap'\ntest = 'TCP_RR'\n"
        Path("p.toml").write_text(plan)
        self.assertTrue(self.gate("p.toml", status=4).out.startswith("TAP version 13\n"))
        Path("p.toml").write_text(plan.replace("'tap'\nbudget", "'text'\nbudget"))
        self.gate("p.toml", "--output", "tap", status=77)

    def test_criteria(self):
        self.fake(STEADY)
        self.gate("--test", "TCP_RR", "--b", "-- -m 9", "--write-criteria", "c.toml", "--dry-run")
        Path("c.toml").write_text(self.text("c.toml").replace("margin = 2.0", "margin = 20.0")
                                  + "[[criterion]]\npoint = 'no'\nmargin = 1\n")
        got = self.gate("--test", "TCP_RR", "--b", "-- -m 9", "--criteria", "c.toml")
        self.assertIn("nothing is measured that no", got.err)

    def test_commands_that_fail(self):
        self.fake(STEADY)
        got = self.gate("--test", "TCP_RR", "--before-b", "echo no card; exit 3", "--after-b", "echo undone >> log",
                        "--output", "o", status=1)
        self.assertRegex(got.err, "tcp_rr: 3 slots of B in a row failed: command of B: .*: no card")
        self.assertIn("no card", got.out)
        failed = [slot["failed"] for slot in self.lines("o", "slot") if slot["failed"]]
        self.assertEqual(len(failed), 3)
        self.assertGreaterEqual(len(self.text("log").splitlines()), 1)

    def test_an_end_in_the_middle(self):
        """What was measured is judged and written, and the side is undone."""
        self.fake("echo slot >> log; " + WILD)
        Path("log").write_text("")
        os.environ.pop(python.TRIED, None)      # this process's, which would mislead the other
        with lib.Started(self.command("--test", "TCP_RR", "--before-b", "echo up >> log", "--after-b",
                                      "echo down >> log", "--output", "o")) as started:
            self.assertTrue(lib.wait_for(lambda: self.text("log").count("up\nslot") > 2, 30))
            started.signal(signal.SIGTERM)
            got = started.finish(30)
        self.assertEqual(got.rc, 130, got)
        self.assertIn("can't tell", got.out)
        self.assertEqual(len(self.lines("o", "verdict")), 1)
        self.assertIn("signal", self.lines("o", "gate-end")[0]["over"])
        self.assertEqual(self.text("log").count("up\n"), self.text("log").count("down\n"))

    def test_a_history(self):
        """From files that gates have written; netgate_past.py has the other tests."""
        self.fake(STEADY)
        self.gate("--test", "TCP_RR", "--no-learn", "--output", "o.jsonl")
        for more, status in (([], 77), (["--strict"], 1)):
            got = called("--history", self.place, *more)
            self.assertEqual((got.rc, got.err), (status, ""))
            self.assertRegex(got.out, r"(?m)^tcp_rr +THROUGHPUT +1 .*Mbit/s.*too few sessions")
        for more, words in ((["--test", "TCP_RR"], "no --test beside it"), (["--format", "ktap"], "not as ktap"),
                            (["--since", "x"], "--since x: neither"), (["--baseline-side", "C"], "invalid choice")):
            got = called("--history", self.place, *more)
            self.assertEqual((got.rc, got.err.count("\n")), (1 if "--since" in more else 2, 1), got)
            self.assertIn(words, got.err)

    def test_options_that_the_test_has_not(self):
        got = self.gate("--netperf", lib.netperf(), "--test", "TCP_STREAM", "--b", "-- -Q", status=2)
        self.assertEqual(got.err, "netgate: tcp_stream: B: -Q: ignored, as in netperf: the test has no such option (-- -h "
                         "lists them)\n")

    def test_dry_run(self):
        self.fake(STEADY)
        got = self.gate("--test", "TCP_RR", "--b", "-- -r '1 2'", "--before-b", "it's", "--after-b", "true", "--dry-run")
        self.assertIn("# tcp_rr: TCP_RR: THROUGHPUT within 2 %, more is better\n", got.out)
        self.assertRegex(got.out, r"netperf -H 127.0.0.1 -p \d+ -t TCP_RR -l 1 -D 0.1 -P 0 -- -r '1 2' -k ")
        self.assertFalse(Path("calls").exists())

    def test_usage(self):
        self.fake(STEADY)
        Path("bad.toml").write_text("[[point]]\nname = 'x'\n")
        place = ["--host", "h", "--netperf", f"{self.place}/netperf"]
        for args, status, words in (
                (place, 2, "no --test and no PLAN"), ([*place, "--test", "TCP_MSS"], 2, "--test TCP_MSS: no test"),
                (["--test", "TCP_RR"], 2, "--host NAME, --local, or a lab"),
                ([*place, "--test", "TCP_RR", "--local"], 2, "--host and --local: give only one"),
                (["--test", "TCP_RR", "--local", "--host-b", "x"], 2, "go with --host, not with --local"),
                (["--test", "TCP_RR", "--local", "--server", "ssh:x"], 2, "--server and --local: give only one"),
                (["--test", "TCP_RR", "--server", "netns:x"], 2, "--server netns:x: --host NAME is its address"),
                ([*place, "--test", "TCP_RR", "--copy"], 2, "--copy goes with --server and --client"),
                (["--test", "TCP_RR", "--local", "--client", "ssh:a"], 2, "--client: not together"),
                (["--test", "TCP_RR", "--server", "x"], 2, "x: ENGINE:HOST"),
                ([*place, "--test", "TCP_RR", "--margin", "0"], 2, "--margin: '0' is not a percentage"),
                ([*place, "--test", "TCP_RR", "--budget", "x"], 2, "--budget: 'x' is not a number of seconds"),
                ([*place, "--test", "TCP_RR", "--confidence", "100"], 2, "--confidence: '100' is no"),
                ([*place, "--test", "TCP_RR", "--slot", "0.05"], 2, "--slot: '0.05' is not a number of seconds"),
                ([*place, "--test", "TCP_RR", "--accept", "*"], 2, "--accept goes with --history"),
                ([*place, "--test", "TCP_RR", "--a", "-l 3"], 2, "--a '-l 3': netgate gives -l by itself"),
                ([*place, "--test", "TCP_RR", "--a"], 2, "--a: expected one argument"),
                ([*place, "--test", "TCP_RR", "--metric", "x"], 2, "--metric x: try NAME"),
                ([*place, "--test", "TCP_RR", "--set-b", "x"], 2, "--set-b 'x': try 'mtu"),
                ([*place, "--test", "TCP_RR,TCP_RR"], 2, "tcp_rr: used twice"), ([*place, "--foo"], 2, "--foo"),
                ([*place, "--test", "TCP_RR", "--aa", "--b", "-c"], 2, "--aa compares A with itself"),
                ([*place, "bad.toml"], 2, "[[point]] x: no test"),
                ([*place, "no.toml"], 2, "no.toml: No such file or directory (a plan is a TOML file)"),
                ([*place, "--test", "TCP_RR", "--netperf-b", "/no"], 1, "no program /no"),
                ([*place, "--test", "TCP_RR", "--criteria", "no"], 1, "no: No such file"),
                (["--test", "TCP_RR", *place, "--host", "127.0.0.1", "--port", "1"], 1,
                 "no netserver at 127.0.0.1 port 1: Connection refused")):
            got = called(*args)
            self.assertEqual((got.rc, got.out, got.err.count("\n")), (status, "", 1), (args, got))
            self.assertTrue(got.err.startswith("netgate: "), got.err)
            self.assertIn(words, got.err)
        self.assertFalse(Path("calls").exists())

    def test_figures_that_a_netperf_has(self):
        self.fake("")
        Path("figures").write_text("OUTPUT_NONE,THROUGHPUT,PROTOCOL,P99_LATENCY\n")
        got = self.gate("--list-metrics")
        self.assertRegex(got.out, r"(?s)^THROUGHPUT +more is better\nP99_LATENCY +less is better +us\n")
        self.assertIn("has no such figure", self.gate("--test", "TCP_RR", "--metric", "LOCAL_SD", status=2).err)


class ForReal(Folder):
    """A slot of our own programs."""

    def test_a_server_elsewhere(self):
        """It runs as long as the gate; commands for the far end are run there."""
        ssh, port = Path(self.place, "ssh"), lib.free_port()
        ssh.write_text(f'#!/bin/sh\nfor last; do name=$here; here=$last; done\necho "$name $last" >>{self.place}/calls\n'
                       f'tee -a {self.place}/typed | sh -c "$last"\n')
        ssh.chmod(0o755)
        with mock.patch.dict(os.environ, {"PATH": f"{self.place}:{os.environ['PATH']}", "TMPDIR": self.place}):
            got = called("--netperf", lib.netperf(), "--netserver", lib.netserver(), "--test", "TCP_RR", "--server",
                         "ssh:127.0.0.1", "--client", "ssh:near", "--copy", "--port", str(port), "--budget", "4", "--before-a",
                         'echo "to $NETGATE_FAR by $NETGATE_DEVICE"', "--after-a", "true", "--output", "f")
        self.assertIn(got.rc, (0, 1, 77), got)      # any verdict: it depends on noise
        self.assertIn("to ssh 127.0.0.1 by lo", self.text("f"))
        near = [text.partition("\n127.0.0.1 ")[0] for text in self.text("calls").split("near ")[1:]]
        self.assertRegex(Path(self.place, "typed").read_bytes(), rb"--key-file \S+ .*TCP_RR")     # to the shell there
        self.assertTrue(any(text.startswith("env ") and "NETGATE_SIDE=A" in text for text in near), near)
        self.assertTrue(lib.wait_for(lambda: machine.silent("127.0.0.1", port), 20))
        self.assertEqual(list(Path(self.place).glob("tmp.*")), [])

    def test_a_slot_on_loopback(self):
        """Its document is understood; a killed daemon is restarted for the next one."""
        place = machine.Loopback(lib.netserver())
        there = bench.Bench(bench.Site(place, plans.LOCAL_ADDRESS, place.port, device="lo"), lib.netperf())
        self.addCleanup(there.leave)
        point = Point("p", "TCP_RR", a=Side(globals=lib.PACED), metrics=(Metric(), Metric("P99_LATENCY")))
        slot = there.slot(point, "A", 1)
        self.assertEqual(slot.failed, "")
        self.assertGreater(slot.figures["P99_LATENCY"], 0)
        self.assertEqual(slot.units["THROUGHPUT"], "trans/s")
        if machine.knows(lib.netperf(), "--json"):
            self.assertGreater(len(slot.samples), 1)
            self.assertEqual(slot.evidence["far"]["flow.role"], "respond")
        place._daemons[4].end()
        again = there.slot(point, "A", 1)
        self.assertEqual((again.failed, again.settings), ("", {}))


if __name__ == "__main__":
    lib.wants("numpy")
    lib.unit_main(warnings="ignore")  # messages of the garbage collector would appear in a captured stderr
