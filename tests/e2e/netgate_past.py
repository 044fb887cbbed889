#!/usr/bin/env python3
"""netgate against the past: change points in a history, and judgements against earlier sessions, with made-up files
and figures."""

import io
import json
import math
import random
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ET
from pathlib import Path

import lib

lib.needs("numpy", "scipy")

from netkit import compare, files, mesh, paths, python, results, tables
from netkit.gate import history, output, past, trial
from netkit.gate.model import (A, B, BETTER, CANT_TELL, EQUAL, WORSE, Gate, GateError, Judgement,
                               Metric, Point, Side, Slot, View)

files.os.fsync = lambda number: None   # made-up files need not survive a crash

LEVEL = 0.05
HISTORIES = 1000
STEPS = 30
GATES = 200
STREAM = Point("tcp_stream", "TCP_STREAM")
MBIT = "10^6bits/s"


def machine(kernel="Linux 6.1.0", host="lab1", netperf="netperf 1.0"):
    client = {"hostname": host, "cpu": "A processor", "kernel": kernel, "netperf": netperf,
              "interface": {"name": "eth0", "driver": "ice", "mtu": 1500}}
    return {"client": client, "server": client, "seed": random.randrange(1 << 30)}


def began(day):
    return f"2026-10-{day:02}T03:00:00.000Z"


def slot(point, figure, pair=1, side=B, **more):
    return Slot(point, side, pair=pair, figures={"THROUGHPUT": figure}, units={"THROUGHPUT": MBIT},
                length=1.0, **more)


class Place(lib.InPlace):
    def setUp(self):
        super().setUp()
        self.chance = random.Random(7)

    def gate(self, day, slots, environment=None, point=STREAM, name="", verdict=EQUAL):
        """Write a gate's file with these slots."""
        gate = Gate([point], [Judgement(point.name, point.metrics[0], verdict)], started=began(day),
                    environment=environment or machine(), command=["netgate"])
        path = str(self.dir / (name or f"gate-{day:02}.jsonl"))
        writer = output.Writer(path)
        writer.begin(gate)
        for one in slots:
            writer.slot(one, gate, [])
        writer.end(gate)
        return path

    def session(self, day, height, spread=0.01, between=0.004, count=4, **more):
        """Write a day's gate, whose slots are spread around a mean that itself varies from day to day."""
        height *= math.exp(self.chance.gauss(0, between))
        return self.gate(day, [slot("tcp_stream", height * math.exp(self.chance.gauss(0, spread)), pair)
                               for pair in range(1, count + 1)], **more)

    def sweep(self, day, figures, environment=None, status="ok"):
        path = str(self.dir / f"sweep-{day:02}.jsonl")
        header = results.Header("p", "t", [results.Axis("test", ["TCP_STREAM"]), results.Axis("mtu", [9000])],
                                started=began(day), environment=environment or machine())
        with results.Writer.create(path, header) as writer:
            for number, figure in enumerate(figures, 1):
                writer.write(results.Run({"test": "TCP_STREAM", "mtu": 9000}, number, status=status, result={
                    "THROUGHPUT": figure, "THROUGHPUT_UNITS": MBIT} if status == "ok" else {}))
        return path

    def refuses(self, *words, body):
        with self.assertRaises(GateError) as caught:
            body()
        said = str(caught.exception)
        self.assertNotIn("\n", said)
        for word in words:
            self.assertIn(word, said)


class ChangePoints(unittest.TestCase):
    def false_alarms(self, draw):
        return sum(bool(history.change_points([draw() for _ in range(12)], LEVEL, seed))
                   for seed in range(HISTORIES))

    def test_no_change_is_found_where_there_is_none(self):
        chance = random.Random(11)
        found = self.false_alarms(lambda: chance.gauss(0, 1))
        print(f"{found} of {HISTORIES} histories without a change: a false alarm; promised: {LEVEL:.0%}")
        # Three standard deviations of the count.
        self.assertLess(found, HISTORIES * LEVEL + 3 * math.sqrt(HISTORIES * LEVEL * (1 - LEVEL)))

    def test_sessions_that_depend_on_the_one_before_are_no_change(self):
        """Autoregressive with 0.5, which used to give changes in 40 to 60 % of histories."""
        rng, found, count = history.np.random.default_rng(14), 0, 120
        for seed in range(count):
            values = rng.standard_normal(80)
            for at in range(1, 80):
                values[at] += 0.5 * values[at - 1]
            found += bool(history.change_points(values[-20:], LEVEL, seed))
        print(f"{found} of {count} histories with a correlation of 0.5: a false alarm")
        self.assertLessEqual(found, count * 0.15)

    def test_nightly_readings_share_the_error(self):
        """40 sessions, read after each one from the ninth on."""
        rng, found, count = history.np.random.default_rng(15), 0, 40
        for seed in range(count):
            values = rng.standard_normal(40)
            found += any(history.change_points(values[:number], LEVEL, seed) for number in range(9, 41))
        print(f"{found} of {count} histories read each night: a false alarm")
        self.assertLessEqual(found, 6)

    def test_a_step_is_found_where_it_is(self):
        chance = random.Random(12)
        for size, least in ((10, 24), (5, 14), (3, 6)):    # sessions since the step
            near = 0
            for seed in range(STEPS):
                values = [chance.gauss(0, 1) + 3 * (at >= 20 - size) for at in range(20)]
                near += any(abs(at - 20 + size) <= 1 for at, _ in history.change_points(values, LEVEL, seed))
            print(f"a step of 3 sigma {size} sessions ago: found within one session in {near} of {STEPS}")
            self.assertGreaterEqual(near, least)

    def test_a_dip_has_two_ends(self):
        chance = random.Random(13)
        values = [chance.gauss(0, 1) - 6 * (14 <= at < 19) for at in range(34)]
        self.assertEqual([at for at, _ in history.change_points(values)], [14, 19])

    def test_values_that_are_all_the_same_or_few(self):
        self.assertEqual(history.change_points([3.0] * 30), [])
        self.assertEqual(history.change_points([1.0, 1.0, 1.0, 9.0, 9.0]), [])
        self.assertEqual(history.change_points([]), [])

    def test_the_statistic_by_hand(self):
        # |x - y| between {0, 1} and {3, 5}: 3 5 2 4, mean 3.5; within: 1 and 2 of each 4, so 0.5 and 1.
        # 2 * 2 / 4 * (2 * 3.5 - 0.5 - 1) = 5.5
        most, where, _ = history.best_split(history.np.array([[0.0, 1.0, 3.0, 5.0]]), [0, 4])
        self.assertAlmostEqual(most[0], 5.5)
        self.assertEqual(where[0], 2)


def series(values, seed=1, margin=2.0):
    """A history of log figures in percent, one per session."""
    sessions = [past.Session("", f"{number:04}") for number in range(len(values))]
    made = history.Series("p", Metric(margin=margin), sessions, [one / 100 for one in values], [0.0] * len(values),
                          [1] * len(values))
    made.find(LEVEL, seed)
    return history.History([made], sessions, 95.0)


class Statuses(unittest.TestCase):
    """Series whose sessions have a standard deviation of 0.4 % unless noted."""

    def share(self, status, count, draw, margin=2.0):
        return sum(series(draw(), seed, margin).status() == status for seed in range(count)) / count

    def noise(self, chance, *heights, each=10, spread=0.4):
        return [chance.gauss(height, spread) for height in heights for _ in range(each)]

    def test_where_nothing_changes(self):
        chance, count = random.Random(31), 300
        for each in (10, 20):
            alarms, unsure = (self.share(status, count, lambda: self.noise(chance, 0, each=each, spread=3.0))
                              for status in (1, 77))
            print(f"{each} sessions that differ by more than the margin, no change: {alarms:.1%} worse, "
                  f"{unsure:.1%} can't tell")
            self.assertLessEqual(alarms, LEVEL + 3 * math.sqrt(LEVEL / count))
            self.assertLessEqual(unsure, 0.15)

    def test_steps_that_are_missed(self):
        chance = random.Random(32)
        for name, heights in (("-10 %, then +1 %", (0, -10, -9)), ("-10 %, then -1 %", (0, -10, -11)),
                              ("three of -1.5 %", (0, -1.5, -3, -4.5)), ("+5 %, and back", (0, 5, 0))):
            found = self.share(1, STEPS, lambda heights=heights: self.noise(chance, *heights))
            print(f"{name}: told in {found:.0%} of {STEPS}")
            self.assertGreaterEqual(found, 0.85)
        self.assertEqual(self.share(1, STEPS, lambda: self.noise(chance, -5, 0, -1.5)), 0.0)

    def test_what_no_chance_can_exclude_yet(self):
        """8 sessions, the newest two 35 % lower: in 7 of 100 orders, chance puts them at an end."""
        for before, sessions, missing in ((6, 2, 1), (5, 2, 2), (4, 2, 3), (3, 2, 4)):
            found = series([0.1 * number for number in range(before)] + [-43 - 0.1 * number for number in range(sessions)])
            self.assertEqual((found.status(), found.status(strict=True), found.series[0].missing), (77, 1, missing))
        self.assertIn("can't tell: p THROUGHPUT: 4 sessions", history.text(found))
        found.series[0].find(LEVEL, 1, accepted="9")
        self.assertEqual((found.series[0].missing, series([0, 1, 0.5, 1, 0, 1, -43, -44, -43.5]).status()), (4, 1))
        found = series([0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, -43, -44])
        found.series[0].find(LEVEL, 1, accepted="9")
        self.assertEqual(found.status(), 0)
        self.assertEqual([history.fewest(level) for level in (0.05, 0.01)], [9, 11])


class Histories(Place):
    def month(self, step=0.95, newest=24, **more):
        for day in range(1, newest + 1):
            later = day > 16
            self.session(day, 9400 * (step if later else 1), environment=machine(
                "Linux 6.6.8" if later else "Linux 6.1.0"), **more)

    def run_it(self, **more):
        out = io.StringIO()
        status = history.run(str(self.dir), out=out, **more)
        return status, out.getvalue()

    def test_a_step_down_is_worse(self):
        self.month()
        status, text = self.run_it()
        self.assertEqual(status, 1)
        self.assertRegex(text, r"tcp_stream +THROUGHPUT +24 +2026-10-17 03:00 +9[34]\d\d\S* +8\d\d\d\S* +10\^6bits/s +"
                               r"-[45]\.\d % +0\.002 +worse; client kernel: Linux 6.1.0 -> Linux 6.6.8\n")
        self.assertRegex(text, r"(?m)^worse: tcp_stream THROUGHPUT is [45]\.\d % below what it was before "
                               r"2026-10-17 03:00, for 8 sessions$")
        self.assertEqual(self.run_it()[1], text)    # it is reproducible

    def test_what_gives_nothing_is_worse(self):
        """The last six of thirty sessions: all slots, or two in three, failed or gave 0; the very last session alone
        is doubtful."""
        for dead, silent, status, says in ((6, 3, 1, "worse: tcp_stream SLOTS_WITH_RESULT is 99.9 % below"),
                                           (6, 2, 1, "worse: tcp_stream SLOTS_WITH_RESULT is 66.7 % below"),
                                           (1, 3, 77, "can't tell: tcp_stream SLOTS_WITH_RESULT: 1 sessions"), (0, 0, 0, "not worse")):
            for failed in (True, False):
                for day in range(1, 31):
                    good = 3 if day <= 30 - dead else 3 - silent
                    made = [slot("tcp_stream", self.chance.gauss(9400, 30) if pair <= good else 0.0, pair) for pair in (1, 2, 3)]
                    for one in made[good:]:
                        one.failed, one.figures = ("no answer", {}) if failed else ("", one.figures)
                    (self.dir / f"gate-{day:02}.jsonl").unlink(missing_ok=True)
                    self.gate(day, made)
                got, text = self.run_it()
                self.assertEqual((got, says in text), (status, True), text)
                self.assertEqual(self.run_it(accept="*")[0], 0)
                (self.dir / past.ACCEPTED).unlink()

    def test_what_was_not_run_did_not_fail(self):
        """In the last six of thirty sweeps an end lacks the engine: -99.9 % it was."""
        for day in range(1, 31):
            self.sweep(day, around(self.chance, 9400.0, count=3), status="excluded" if day > 24 else "ok")
        status, text = self.run_it()
        self.assertEqual((status, "tcp_stream.mtu9000" in text, "SLOTS_WITH_RESULT" in text), (0, True, False), text)
        one, other = (compare.Side(str(self.dir / f"sweep-{day}.jsonl"), []) for day in (24, 30))
        with self.assertRaisesRegex(results.ResultsError, r"\(tcp_stream in the one, none in the other"):
            compare.Comparison(one, other, "THROUGHPUT", 2.0)

    def test_losses_after_none_are_worse(self):
        """Where less is better, 0 is good and has no logarithm; and a point that never gave a result."""
        losses = Metric("LOCAL_TRANSPORT_RETRANS", more_is_better=False)
        for lossy, status, says in ((10, 1, "worse: tcp_stream LOCAL_TRANSPORT_RETRANS_ABOVE_0"), (0, 0, "not worse")):
            for day in range(1, 31):
                made = [slot("tcp_stream", 9400.0, pair) for pair in (1, 2, 3)] + [slot("dead", 0.0, 1)]
                for one in made:
                    one.figures[losses.name] = 50.0 * (day > 30 - lossy)
                made[-1].failed, made[-1].figures = "no answer", {}
                (self.dir / f"gate-{day:02}.jsonl").unlink(missing_ok=True)
                self.gate(day, made)
            got, text = self.run_it(metrics=[losses])
            self.assertEqual((got, says in text), (status, True), text)
            self.assertIn("note: dead: no good slot in any session", text)
            self.assertNotIn("correlation", text)

    def test_other_options_are_said_at_a_change(self):
        for day in range(1, 13):
            self.gate(day, [slot("tcp_rr", 100.0 + day - 50 * (day > 6))],
                      point=Point("tcp_rr", "TCP_RR", b=Side(("-r", "9K") if day > 6 else ())))
        self.assertIn("worse; options: none -> -r 9K\n", self.run_it()[1])

    def test_what_is_worse_depends_on_the_criterion(self):
        self.month()
        self.assertEqual(self.run_it(metrics=[Metric(margin=8.0)])[0], 0)
        status, text = self.run_it(metrics=[Metric(more_is_better=False)])
        self.assertEqual((status, BETTER in text, WORSE + ";" in text), (0, True, False))

    def test_what_is_older_than_since_is_no_failure(self):
        self.month()
        self.assertEqual(self.run_it(since="2026-10-17")[0], 1)
        status, text = self.run_it(since="2026-10-18")
        self.assertEqual(status, 0)
        self.assertIn("since 2026-10-18", text)

    def test_since(self):
        today = history.datetime.date(2026, 11, 23)
        self.assertEqual(history.since_day("14d", today), "2026-11-09")
        self.assertEqual(history.since_day("2026-10-01", today), "2026-10-01")
        for wrong in ("yesterday", "2026-13-01", "14", "9999999d"):
            self.refuses("--since", wrong, "14d", body=lambda wrong=wrong: history.since_day(wrong))

    def test_json_has_every_session(self):
        self.month()
        (line,) = [json.loads(line) for line in self.run_it(form="json")[1].splitlines()]
        self.assertEqual((line["schema"], line["point"], line["worse"]),
                         (history.HISTORY_SCHEMA, "tcp_stream", True))
        self.assertEqual([one["started"] for one in line["sessions"]], [began(day) for day in range(1, 25)])
        self.assertEqual({one["slots"] for one in line["sessions"]}, {4})
        (change,) = line["changes"]
        self.assertEqual((change["session"], change["verdict"]), (16, WORSE))
        self.assertAlmostEqual(change["percent"], -5, delta=0.7)
        self.assertEqual(change["differs"], ["client kernel: Linux 6.1.0 -> Linux 6.6.8"])

    def test_sweeps_are_sessions_too(self):
        for day in range(1, 16):
            self.sweep(day, [100.0 + day % 3 - 30 * (day > 9), 101.0 - 30 * (day > 9)])
        status, text = self.run_it()
        self.assertEqual(status, 1)
        self.assertRegex(text, r"tcp_stream\.mtu9000 +THROUGHPUT +15 +2026-10-10")

    def test_few_sessions_tell_nothing(self):
        for day in range(1, 4):
            self.session(day, 9400)
        status, text = self.run_it()
        self.assertEqual(status, 77)
        self.assertIn("too few sessions to tell, 6 missing", text)
        self.assertEqual(self.run_it(strict=True)[0], 1)

    def test_what_is_accepted_fails_no_more(self):
        """An accepted level does not fail, until it becomes worse."""
        self.month()
        self.refuses("--accept udp*", "tcp_stream", body=lambda: self.run_it(accept="udp*"))
        self.assertEqual(self.run_it(accept="tcp_*")[0], 0)
        self.assertEqual(self.run_it()[0], 0)
        single = self.dir / "single.jsonl"      # the same sessions
        single.write_text("".join(path.read_text() for path in sorted(self.dir.glob("*.jsonl"))))
        (self.dir / past.ACCEPTED).rename(self.dir / "aside")
        self.assertEqual(history.run(str(single), out=io.StringIO()), 1)
        self.assertEqual(history.run(str(single), out=io.StringIO(), accept="tcp_*"), 0)
        self.assertEqual((self.dir / past.ACCEPTED).read_text(), (self.dir / "aside").read_text())
        single.unlink()
        line, = [json.loads(line) for line in (self.dir / past.ACCEPTED).read_text().splitlines()]
        self.assertEqual((line["point"], line["from"], line["until"]), ("tcp_stream", began(17), began(24)))
        for day in range(25, 31):
            self.session(day, 9400 * 0.92)
        status, text = self.run_it()
        self.assertEqual(status, 1)
        self.assertRegex(text, r"(?m)^worse: .* is 3\.\d % below what it was before 2026-10-25 03:00, for 6 sessions$")
        whole = (self.dir / past.ACCEPTED).read_text()
        for more, lines in ((whole[:30], 2), (whole.rstrip("\n"), 3), ("", 2)):     # by a crash; by an editor; whole
            (self.dir / past.ACCEPTED).write_text(whole + more)
            self.assertEqual((self.run_it(accept="tcp_*")[0], self.run_it()[0]), (0, 0))
            self.assertEqual(len((self.dir / past.ACCEPTED).read_text().splitlines()), lines)
        (self.dir / past.ACCEPTED).write_text("{\"point\": 1\n{}\n")
        self.refuses("accepted: line 1: not JSON", body=self.run_it)

    def test_other_machines_copies_and_strange_files_are_left_out(self):
        self.month(step=1.0, newest=12)
        self.session(13, 5000, environment=machine(host="lab2"), name="other.jsonl")
        self.session(14, 9400)
        (self.dir / "copy.jsonl").write_bytes((self.dir / "gate-03.jsonl").read_bytes())
        (self.dir / "notes.json").write_text("{}\n")
        status, text = self.run_it()
        self.assertEqual(status, 0)
        self.assertRegex(text, r"tcp_stream +THROUGHPUT +13 ")
        self.assertIn("note: 1 of 14 sessions are of another machine", text)
        self.assertRegex(text, r"note: left out: \S+notes.json: line 1")
        self.assertRegex(self.run_it(other_machine=True)[1], r"tcp_stream +THROUGHPUT +14 ")

    def test_a_copy_from_before_a_resume_is_left_out(self):
        same = machine()
        for name, runs in (("a.jsonl", [100.0]), ("b.jsonl", [100.0, 100.0])):
            Path(self.sweep(1, runs, same)).rename(self.dir / name)
        self.assertEqual([len(one) for session in past.read(str(self.dir), "B")[0] for one in session.slots.values()], [2])

    def test_slots_of_the_other_side_and_of_learning_do_not_count(self):
        for day in range(1, 9):
            self.gate(day, [slot("tcp_stream", 50.0, 0), slot("tcp_stream", 70.0, 1, "A"),
                            slot("tcp_stream", 100.0), slot("tcp_stream", 1.0, 2, failed="no answer")])
        text = self.run_it()[1]
        self.assertRegex(text, r"tcp_stream +THROUGHPUT +8 +- +100 ")
        self.assertRegex(self.run_it(side="A")[1], r"tcp_stream +THROUGHPUT +8 +- +70 ")

    def test_sessions_that_lean_on_each_other_are_said(self):
        height = 0.0
        for day in range(1, 31):
            height = 0.8 * height + self.chance.gauss(0, 0.01)
            self.gate(day, [slot("tcp_stream", 100 * math.exp(height))])
        self.assertEqual(history.read(str(self.dir), confidence=99.9999).notes[0].split(" (")[0],
                         "tcp_stream THROUGHPUT: each session is like the one before")

    def test_refusals(self):
        self.refuses(str(self.dir), "no file of netgate's", body=self.run_it)
        self.gate(1, [slot("tcp_stream", 3.0, side="A")])
        self.refuses("not one good slot of side B", "--baseline-side A", body=self.run_it)
        self.refuses("P99_LATENCY", body=lambda: self.run_it(side="A", metrics=[Metric("P99_LATENCY")]))
        self.refuses("nowhere", "No such file", body=lambda: past.read(str(self.dir / "nowhere"), B))

    @unittest.skipUnless(python.has(sys.executable, "matplotlib"), "no matplotlib: apt-get install python3-matplotlib")
    def test_the_plot_has_sessions_and_changes(self):
        self.month()
        path = self.dir / "history.svg"
        self.run_it(plot=str(path))
        found = list(ET.parse(path).iter())
        self.assertIn("change-tcp_stream-16", [one.get("id") for one in found])
        self.assertIn("client kernel: Linux 6.1.0 -> Linux 6.6.8", " ".join(one.text or "" for one in found))
        self.refuses("--plot", ".svg", body=lambda: self.run_it(plot=str(self.dir / "history.gif")))


def around(chance, height, spread=0.01, count=8):
    """Figures of a session's slots."""
    return [height * math.exp(chance.gauss(0, spread)) for _ in range(count)]


def slots(figures, point="tcp_stream", **more):
    return [slot(point, figure, pair, **more) for pair, figure in enumerate(figures, 1)]


def held_against(sessions, now, metric=Metric(margin=2.0), confidence=95.0):
    """The judgement of new figures against those of earlier sessions."""
    known = [past.Session("", slots={"tcp_stream": past.Slots.of(slots(one))}) for one in sessions]
    return past.Baseline("", B, known, [STREAM]).judge_all([(STREAM, metric, past.Slots.of(slots(now)))], confidence)[0]


class Judgements(unittest.TestCase):
    def setUp(self):
        self.chance = random.Random(21)

    def session(self, height=100.0, between=0.01, **more):
        return around(self.chance, height * math.exp(self.chance.gauss(0, between)), **more)

    def test_the_interval_holds_what_it_promises(self):
        for count in (3, 8):
            wrong = 0
            for _ in range(GATES):
                one = held_against([self.session() for _ in range(count)], self.session(95.0))
                wrong += not one.low <= -5 <= one.high
            print(f"{count} earlier sessions: {wrong} of {GATES} intervals miss; promised: {LEVEL:.0%}")
            self.assertLess(wrong, GATES * LEVEL + 3 * math.sqrt(GATES * LEVEL * (1 - LEVEL)))

    def test_slots_of_a_single_day_do_not_make_a_difference_sure(self):
        # Each session's slots agree to 0.01 %: a t test over slots would nearly always be wrong.
        told = [held_against([self.session(spread=0.0001, count=50) for _ in range(5)],
                             self.session(spread=0.0001, count=50), Metric(margin=0.1)).verdict
                for _ in range(200)]
        self.assertLess(sum(one in (WORSE, BETTER) for one in told), 200 * LEVEL + 3 * math.sqrt(200 * LEVEL))

    def test_verdicts(self):
        then = [self.session(between=0.002) for _ in range(8)]
        for height, verdict in ((100.0, EQUAL), (90.0, WORSE), (110.0, BETTER)):
            one = held_against(then, self.session(height, between=0.002))
            self.assertEqual(one.verdict, verdict)
            self.assertAlmostEqual(one.change, height - 100, delta=1.5)
            self.assertTrue(one.low < one.change < one.high)
            self.assertEqual(one.notes, ["A is 8 earlier sessions, B 8 slots of now"])
        for silent, verdict in (3, CANT_TELL), (4, WORSE):      # failures come in bursts
            self.assertEqual(held_against(then, [0.0] * silent).verdict, verdict)
        less = held_against(then, self.session(90.0, between=0.002), Metric(more_is_better=False))
        self.assertEqual(less.verdict, BETTER)

    def test_zeros_where_less_is_better(self):
        """They have no logarithm: 256 of 320 slots with 0, and then none, were equal."""
        losses = Metric(more_is_better=False, margin=10.0)
        for then, now, height, verdict in (
                (4, 0, 11, CANT_TELL), (0, 4, 11, CANT_TELL), (4, 4, 11, CANT_TELL), (0, 0, 11, EQUAL),
                (4, 0, 22, WORSE), (0, 4, 22, CANT_TELL), (0, 4, 5, BETTER), (4, 0, 5, CANT_TELL)):
            sessions = [around(self.chance, 11, count=40)[then * 8:] + [0.0] * then * 8 for _ in range(8)]
            made = held_against(sessions, around(self.chance, height, count=8 - now) + [0.0] * now, losses)
            self.assertEqual((made.verdict, made.more_pairs), (verdict, None), (then, now, height))
            said = f"{now} of 8 slots gave 0, and {then * 64} of 320 in the past"
            self.assertEqual(said in (made.why, made.notes[0]), bool(then or now), made.notes)

    def test_by_hand(self):
        # Logs with means 0, 2 and 4 %, spread 0.02 with two degrees of freedom: t is 4.3027.
        one = held_against([[100.0 * math.exp(x)] * 4 for x in (0.0, 0.02, 0.04)], [100.0 * math.exp(0.02)] * 4)
        half = 4.3027 * 0.02 * math.sqrt(1 + 1 / 3)
        self.assertAlmostEqual(one.low, 100 * math.expm1(-half), 2)
        self.assertAlmostEqual(one.high, 100 * math.expm1(half), 2)
        self.assertAlmostEqual(one.base, one.value)

    def test_where_sessions_differ_more_slots_do_not_help(self):
        one = held_against([self.session(between=0.1) for _ in range(5)], self.session(95.0))
        self.assertEqual((one.verdict, one.more_pairs), (CANT_TELL, None))
        self.assertRegex(output.sentence(one, "p"), r"\Acan't tell: p: .*, \d+ s: more slots would not help: sessions differ by \d")
        few = held_against([self.session(between=0, count=100) for _ in range(9)],
                           around(self.chance, 100.0, 0.03, 4))
        self.assertEqual(few.verdict, CANT_TELL)
        self.assertTrue(0 < few.more_pairs < 50, few.more_pairs)

    def test_one_session_tells_no_small_difference(self):
        then = around(self.chance, 100.0, 0.001, 20)    # in a single day, 97 would be worse for sure
        for height, verdict in ((97.0, CANT_TELL), (100.0, CANT_TELL), (90.0, WORSE)):
            one = held_against([then], around(self.chance, height, 0.001, 20))
            self.assertEqual(one.verdict, verdict)
        self.assertIsNone(held_against([then], [100.0]).change)

    def test_where_more_is_taken_than_in_the_past_the_other_slots_have_to_agree(self):
        then = slots(around(self.chance, 100.0), taken=0.0)
        baseline = past.Baseline("", B, [past.Session("", slots={"tcp_stream": past.Slots.of(then)})], [STREAM])
        for free, verdict in ((100.0, CANT_TELL), (None, CANT_TELL), (55.0, WORSE)):
            now = [slot("tcp_stream", 50.0, taken=0.4) for _ in range(8)]
            now += [slot("tcp_stream", free, taken=0.1) for _ in range(4 if free else 0)]
            one = baseline.judge_all([(STREAM, Metric(), past.Slots.of(now))], 95.0)[0]
            self.assertEqual((one.verdict, one.pairs), (verdict, len(now)))
            self.assertRegex(one.why or one.notes[0], "others had processors for 0 % of the time in the past and [34]0 % now")
        now[0].taken, then[0].taken = 0.9, 0.9    # and here only rarely
        for each in now[1:]:
            each.taken = 0.0
        baseline.sessions[0].slots["tcp_stream"] = past.Slots.of(then)
        one = baseline.judge_all([(STREAM, Metric(), past.Slots.of(now))], 95.0)[0]
        self.assertEqual((one.left_out, one.pairs), (1, 11))
        baseline.clean = False
        self.assertEqual(baseline.judge_all([(STREAM, Metric(), past.Slots.of(now))], 95.0)[0].left_out, 0)


class Figures:
    """A bench with made-up figures."""

    def __init__(self, height, spread=0.01, fails=0):
        self.chance, self.height, self.spread, self.fails = random.Random(5), height, spread, fails
        self.asked = []

    def slot(self, point, side, seconds):
        self.asked.append((point.name, side, seconds))
        if self.fails and len(self.asked) % self.fails == 0:
            return Slot(point.name, side, failed="no answer")
        return Slot(point.name, side, figures={"THROUGHPUT": around(self.chance, self.height, self.spread, 1)[0]},
                    units={"THROUGHPUT": MBIT}, length=seconds, seconds=seconds)

    def leave(self):
        pass


class Views(View):
    def begin(self, gate):
        self.slots = []

    def slot(self, one, gate, judgements):
        self.slots.append((one, judgements))

    def end(self, gate):
        pass


class Baselines(Place):
    def days(self, count, **more):
        return [self.session(day, 9400, **more) for day in range(1, count + 1)]

    def gate_now(self, bench, point=STREAM, environment=None, budget=60.0, path=None, **more):
        gate = Gate([point], [], started=began(31), environment=environment or machine())
        options = trial.Options(budget=budget)
        past.run_alone(gate, bench, Views(), options, past.baseline(path or str(self.dir), [point], **more))
        return gate

    def test_slots_of_b_are_held_against_a_folder(self):
        self.days(8)
        bench = Figures(8000)
        gate = self.gate_now(bench)
        self.assertEqual(gate.judgements[0].verdict, WORSE)
        self.assertEqual((gate.judgements[0].unit, gate.status()), (MBIT, 1))
        self.assertEqual({one[:2] for one in bench.asked}, {("tcp_stream", B)})
        self.assertEqual({one[2] for one in bench.asked}, {1})          # as long as they were
        self.assertEqual([one.pair for one in gate.slots], list(range(1, len(gate.slots) + 1)))
        self.assertTrue(past.LEAST_SLOTS <= len(gate.slots) <= 30, len(gate.slots))
        self.assertEqual(gate.notes, [])

    def test_what_gives_nothing_is_not_equal(self):
        self.days(8)
        bench = Figures(9400, fails=3)
        one, = self.gate_now(bench).judgements
        self.assertEqual((one.verdict, "slots gave nothing, and 0 of 32 in the past" in one.why), (CANT_TELL, True), one)

    def test_what_it_measures_is_a_further_session(self):
        self.days(8)
        gate = Gate([STREAM], [], started=began(31), environment=machine())
        writer = output.Writer(str(self.dir / "now.jsonl"))
        past.run_alone(gate, Figures(9400), writer, trial.Options(), past.baseline(str(self.dir), [STREAM]))
        writer.end(gate)
        self.assertEqual(gate.judgements[0].verdict, EQUAL)
        self.assertEqual(len(past.baseline(str(self.dir), [STREAM]).sessions), 9)

    def test_the_budget_ends_it(self):
        self.days(8, spread=0.0001)
        ticks = iter(range(0, 1000, 1))
        gate = Gate([STREAM], [], environment=machine())
        past.Alone(gate, Figures(9400, 0.2), Views(), trial.Options(budget=30.0),
                   past.baseline(str(self.dir), [STREAM]), clock=lambda: float(next(ticks))).run()
        self.assertLess(len(gate.slots), 15)
        self.assertEqual(gate.judgements[0].verdict, CANT_TELL)

    def test_a_bench_that_fails_ends_it(self):
        self.days(8)
        self.refuses("slots in a row failed: no answer", body=lambda: self.gate_now(Figures(1, fails=1)))

    def test_few_slots_are_no_baseline(self):
        path = self.session(1, 9400, count=2)
        self.refuses(path, "2 slots of tcp_stream", "4 at least", body=lambda: self.gate_now(Figures(1), path=path))

    def test_one_session_is_said(self):
        path = self.session(1, 9400)
        gate = self.gate_now(Figures(9300), path=path)
        self.assertIn("one earlier session only: differences between days are unknown", gate.notes[0])
        self.assertEqual(gate.judgements[0].verdict, CANT_TELL)
        self.session(2, 9400)
        self.assertIn("2 earlier sessions only", self.gate_now(Figures(9300)).notes[0])

    def test_sessions_of_one_day_are_said(self):
        for hour in range(5):
            session = self.session(1, 9400, name=f"{hour}.jsonl")
            text = Path(session).read_text().replace("T03:00", f"T0{hour}:00")
            Path(session).write_text(text)
        self.assertIn("all earlier sessions began within 4 h 00 min", self.gate_now(Figures(9300)).notes[0])

    def test_another_machine_is_refused_and_another_kernel_said(self):
        self.days(6)
        other = machine(host="lab2")
        self.refuses("of another machine", "client hostname: lab1 -> lab2", "--other-machine",
                     body=lambda: self.gate_now(Figures(1), environment=other))
        gate = self.gate_now(Figures(9400), environment=other, other_machine=True)
        self.assertIn("client hostname: lab1 -> lab2", gate.notes[-1])
        gate = self.gate_now(Figures(9400), environment=machine("Linux 6.6.8", netperf="netperf 1.1"))
        self.assertEqual(gate.notes, ["since the newest session of the baseline: client kernel: Linux 6.1.0 -> "
                                      "Linux 6.6.8; client netperf: netperf 1.0 -> netperf 1.1"])
        self.session(7, 100, environment=other)
        gate = self.gate_now(Figures(9400))
        self.assertIn("1 sessions of another machine are left out", gate.notes[0])

    def test_other_options_are_said_and_another_test_is_refused(self):
        self.days(6)
        gate = self.gate_now(Figures(9400), Point("tcp_stream", "TCP_STREAM", b=Side(("-m", "1K"))))
        self.assertIn("tcp_stream: options: none -> -m 1K", gate.notes)
        self.refuses("tcp_stream was TCP_STREAM there", body=lambda: self.gate_now(
            Figures(1), Point("tcp_stream", "TCP_RR")))

    def test_candidates_that_were_worse_are_no_baseline(self):
        self.days(8)
        for day in (9, 10, 11):
            self.session(day, 4700, verdict=WORSE)
        self.gate(12, slots(around(self.chance, 9400.0), taken=0.9))
        gate = self.gate_now(Figures(9400))
        self.assertEqual((gate.judgements[0].verdict, len(past.baseline(str(self.dir), [STREAM]).sessions)), (EQUAL, 9))
        self.assertIn("left out as worse, or older than what was accepted: 3 sessions of a point", gate.notes[0])
        (self.dir / past.ACCEPTED).write_text(json.dumps(
            {"point": "tcp_stream", "from": began(9), "until": began(11)}) + "\n")
        self.assertEqual([one.started for one in past.baseline(str(self.dir), [STREAM]).sessions],
                         [began(day) for day in (9, 10, 11, 12)])
        for path in self.dir.glob("*.jsonl"):
            path.unlink()
        self.session(13, 4700, verdict=WORSE)
        self.refuses("side B was worse in all sessions", "--accept", body=lambda: self.gate_now(Figures(1)))

    def test_what_is_not_there_is_refused(self):
        self.days(2)
        self.refuses("no THROUGHPUT of tcp_rr on side B", "tcp_stream", body=lambda: self.gate_now(
            Figures(1), Point("tcp_rr", "TCP_RR")))
        self.refuses("not one good slot of side A", "--baseline-side B", body=lambda: self.gate_now(
            Figures(1), side=A))

    def test_runs_of_sweeps_are_slots(self):
        for day in range(1, 8):
            self.sweep(day, around(self.chance, 100.0, count=3))
        point = Point("tcp_stream.mtu9000", "TCP_STREAM")
        self.assertEqual(self.gate_now(Figures(80), point).judgements[0].verdict, WORSE)


class Nothing(Place):
    """Runs of B that failed, gave 0 or lack the figure: some, all, or every second one. No verdict says that nothing
    is wrong."""

    WAYS = {"some": lambda n: n % 5 == 0, "all": lambda n: True, "alternate": lambda n: n % 2 == 0}

    def slots(self, kind, way, side=B, count=20):
        made = [slot("tcp_stream", self.chance.gauss(9400, 20), pair, side) for pair in range(1, count + 1)]
        for one in made if side == B else []:
            if self.WAYS[way](one.pair):
                one.failed, one.figures = "no answer" if kind == "failed" else "", {"THROUGHPUT": 0.0} if kind == "zero" else {}
        return made

    def by_gate(self, kind, way):
        track = trial.Track(STREAM, pairs=list(zip(self.slots(kind, way, A), self.slots(kind, way))))
        return trial.judge([track], 95.0)[0].verdict

    def by_baseline(self, kind, way):
        for day in range(1, 8):
            self.gate(day, [slot("tcp_stream", self.chance.gauss(9400, 20), pair) for pair in range(1, 5)])
        now = past.Slots.of(self.slots(kind, way))
        made = past.baseline(str(self.dir), [STREAM]).judge_all([(STREAM, STREAM.metrics[0], now)], 95.0)[0]
        if way == "all":
            self.assertIn("all 20 slots gave nothing, and 0 of 28 in the past", output.sentence(made, "tcp_stream"))
        return made.verdict

    def by_history(self, kind, way):
        for day in range(1, 31):
            made = self.slots(kind, way, B if day > 24 else A, 10)
            for one in made:
                one.side = B
            self.gate(day, made)
        return {0: EQUAL, 1: WORSE, 77: CANT_TELL}[history.run(str(self.dir), out=io.StringIO())]

    def file(self, name, axes, runs):
        """Write runs of points with a slot each."""
        path = self.dir / name
        with results.Writer.create(str(path), results.Header("p", "t", axes, started=began(1))) as writer:
            for number, (point, one) in enumerate(runs, 1):
                writer.write(results.Run(point, one.pair, number, status="failed" if one.failed else "ok", exit=1 if one.failed else 0,
                                         stderr=one.failed, result={**one.figures, "THROUGHPUT_UNITS": MBIT} if not one.failed else {}))
        return str(path)

    def by_compare(self, kind, way):
        point, axes = {"test": "TCP_STREAM", "size": 64}, [results.Axis("test", ["TCP_STREAM"]), results.Axis("size", [64])]
        sides = [compare.Side(self.file(f"{side}.jsonl", axes, [(point, one) for one in self.slots(kind, way, side)]), []) for side in (A, B)]
        return compare.Comparison(*sides, "THROUGHPUT", 2.0).judged[0].verdict

    def by_mesh(self, kind, way):
        """Of six hosts, one receives nothing, or less."""
        names = [f"h{number}" for number in range(6)]
        runs = [({"client": a, "server": b}, one) for a in names for b in names if a != b
                for one in self.slots(kind, way, B if b == "h5" else A, 10)]
        path = self.file("mesh.jsonl", [results.Axis("client", names), results.Axis("server", names)], runs)
        made = mesh.find(tables.Sweep(results.read(path)), "THROUGHPUT", False)
        named = [row for row in made.rows if "h5" in str(row[1])]
        return WORSE if named else CANT_TELL if any("gave nothing" in line and "h5" in line for line in made.notes) else EQUAL

    def by_paths(self, kind, way):
        """Runs that failed, or flows that moved nothing or whose rows lack the figure."""
        flow = {"local_port": 1, "remote_port": 2, "transactions": 900, "data_segments": 900, "retransmissions": 0, "min_rtt_us": 90}
        bad = {"local_port": 1, "remote_port": 2, **({"transactions": 0, "bytes_sent": 1} if kind == "zero" else {})}
        path = self.file("paths.jsonl", [results.Axis("test", ["TCP_RR"])], [({"test": "TCP_RR"}, one) for one in self.slots(kind, way)])
        sweep = tables.Sweep(results.read(path))
        for run in sweep.results.runs:
            run.more["flows"] = [bad if kind != "failed" and self.WAYS[way](number) else flow for number in range(20)]
        made = paths.block(sweep)
        return WORSE if made.rows else CANT_TELL if any("can't tell" in note for note in made.notes) else EQUAL

    def test_each_verdict(self):
        place = self.dir
        for verdict in (self.by_gate, self.by_baseline, self.by_history, self.by_compare, self.by_mesh, self.by_paths):
            for kind in ("failed", "zero", "missing"):
                for way in self.WAYS:
                    is_sure = way == "all" and (verdict, kind) != (self.by_paths, "missing")
                    with self.subTest(verdict=verdict.__name__, kind=kind, way=way):
                        self.dir = Path(tempfile.mkdtemp(dir=place))
                        self.assertIn(verdict(kind, way), (WORSE,) if is_sure else (WORSE, CANT_TELL))


if __name__ == "__main__":
    lib.unit_main()
