#!/usr/bin/env python3
"""Tests of a gate's judgement: error rates over 10,000 made-up sequences with many kinds of noise, and the gate's
loop with a bench of made-up figures."""

import math
import random
import unittest

import lib

np = lib.needs("numpy")

from netkit.gate import model, stats, trial

SEQUENCES, PAIRS = 10000, 40
ERROR = 0.05
MARGIN = stats.as_log(2)


def slots(kind, noise, rng):
    """Log figures of several sequences of slots."""
    made = rng.standard_normal((SEQUENCES, 2 * PAIRS)) * noise
    if kind == "correlated":
        for i in range(1, 2 * PAIRS):
            made[:, i] = 0.6 * made[:, i - 1] + 0.8 * made[:, i]
    elif kind == "heavy tails":
        made = rng.standard_t(2, made.shape) * noise
    elif kind == "drift":
        made += np.linspace(0, 0.5, 2 * PAIRS)
    elif kind == "period of four":
        made += 0.03 * np.array([1, -1, -1, 1])[np.arange(2 * PAIRS) % 4]
    elif kind == "hog":     # comes and goes; takes up to a half
        busy = rng.random(SEQUENCES) < 0.3
        for i in range(2 * PAIRS):
            busy = np.where(busy, rng.random(SEQUENCES) < 0.8, rng.random(SEQUENCES) < 0.08)
            made[:, i] -= busy * rng.random(SEQUENCES) * 0.5
    return made


def log_ratios(kind, noise, rng):
    """A against A, in pairs with random order."""
    made = slots(kind, noise, rng)
    first, second = made[:, ::2], made[:, 1::2]
    return np.where(rng.random(first.shape) < 0.5, second - first, first - second)


KINDS = ("gaussian", "correlated", "heavy tails", "drift", "period of four", "hog")


class ErrorRates(unittest.TestCase):
    # Three standard errors of a share of 10,000 above what is promised for each side.
    MOST = ERROR / 2 + 3 * math.sqrt(ERROR / 2 * (1 - ERROR / 2) / SEQUENCES)

    def reached(self, x, center, noise, sign):
        rates = stats.betting_rates(noise * math.sqrt(2), MARGIN)
        return np.max(stats.log_evidence(x, center, rates, sign), axis=-1) >= math.log(2 / ERROR)

    def test_a_bound_is_wrong_no_more_often_than_promised_whenever_one_looks(self):
        for kind in KINDS:
            for noise in (0.003, 0.02):
                x = log_ratios(kind, noise, np.random.default_rng(7))
                for sign in (1.0, -1.0):
                    with self.subTest(kind=kind, noise=noise, sign=sign):
                        self.assertLessEqual(np.mean(self.reached(x, 0.0, noise, sign)), self.MOST)

    def test_a_difference_as_large_as_the_margin_is_seldom_called_equal(self):
        for kind in KINDS:
            x = log_ratios(kind, 0.01, np.random.default_rng(8)) - MARGIN
            wrong = self.reached(x, -MARGIN, 0.01, 1.0) & self.reached(x, MARGIN, 0.01, -1.0)
            self.assertLessEqual(np.mean(wrong), self.MOST, kind)

    def test_what_differs_by_twice_the_margin_is_found(self):
        x = log_ratios("gaussian", 0.01, np.random.default_rng(9)) - 2 * MARGIN
        self.assertGreater(np.mean(self.reached(x, -MARGIN, 0.01, -1.0)), 0.99)

    def test_noise_that_was_learned_wrong_costs_pairs_alone(self):
        x = log_ratios("gaussian", 0.003, np.random.default_rng(9))
        for learned in (0.0003, 0.003, 0.1):
            for sign in (1.0, -1.0):
                told = self.reached(x, -sign * MARGIN, learned, sign)
                self.assertGreater(np.mean(told), 0.99, learned)

    def test_in_much_noise_the_bounds_are_not_far_beyond_it(self):
        x = log_ratios("gaussian", 0.2, np.random.default_rng(9))[:50]
        rates = stats.betting_rates(0.28, MARGIN)
        self.assertGreater(np.median([stats.bound(one, rates, 1.0, 0.025) for one in x]), -0.28)

    def test_the_bounds_are_where_the_evidence_reaches_the_level(self):
        x = log_ratios("gaussian", 0.01, np.random.default_rng(10))[0]
        rates = stats.betting_rates(0.014, MARGIN)
        for sign in (1.0, -1.0):
            edge = stats.bound(x, rates, sign, 0.025)
            self.assertAlmostEqual(stats.most_evidence(x, edge, rates, sign), math.log(40), places=4)
        self.assertEqual(stats.bound(x[:3], rates, 1.0, 0.025), -math.inf)
        self.assertEqual([stats.as_percent(one) for one in (0.0, -math.inf, 709.9)], [0.0, None, None])


    def test_the_least_number_of_pairs(self):
        rates = stats.betting_rates(0.001, MARGIN)
        for error, pairs in ((0.05, 6), (0.01, 8), (0.001, 11)):
            self.assertEqual(stats.least_pairs(error), pairs)
            self.assertLess(stats.most_evidence(np.full(pairs - 1, 2.0), MARGIN, rates, 1.0), math.log(2 / error))


    def test_the_intervals_that_are_shown_hold_together(self):
        x = log_ratios("heavy tails", 0.01, np.random.default_rng(14))
        most = np.maximum(*(np.max(stats.log_evidence(x, 0.0, stats.betting_rates(0.014, MARGIN), sign), axis=-1)
                            for sign in (1.0, -1.0)))
        for points in (1, 5, 10):
            level = stats.judge([("equal", 0.0)] * points, ERROR)[0][1]
            gates = np.any(np.reshape(most >= -math.log(level / 2), (-1, points)), axis=1)
            print(f"{points} points: an interval misses in {100 * np.mean(gates):.1f} % of {len(gates)} gates")
            self.assertLessEqual(np.mean(gates), ERROR + 3 * math.sqrt(ERROR * (1 - ERROR) / len(gates)))


class LeftOut(unittest.TestCase):
    """The effect of leaving out pairs on the verdicts."""
    GATES = 400

    def pairs(self, rng, effect, takes):
        """Chosen pairs of A and B, where B differs by this logarithm."""
        made = trial.Pairs()
        for _ in range(PAIRS):
            slots = []
            for more in (0.0, effect):
                hog = takes(rng)
                figure = 100 * math.exp(rng.normal(0, 0.005) + more - hog * rng.random() * 0.5)
                slots.append(model.Slot("p", "A", figures={"THROUGHPUT": figure}, taken=hog))
            made.add(*slots, model.Metric(), True, ERROR)
        return made

    def test_it_moves_nothing(self):
        """With hogs in a third of all slots, in few and in most."""
        for share in (0.05, 0.3, 0.7):
            rng, centers, every, missed = np.random.default_rng(15), [], [], 0
            for _ in range(self.GATES):
                found = self.pairs(rng, -0.01, lambda rng: float(rng.random() < share))
                centers.append(stats.center(found.x))
                every.append(stats.center(found.every))
                rates = stats.betting_rates(0.007, MARGIN)
                missed += any(stats.most_evidence(found.x, -0.01, rates, sign) >= math.log(2 / ERROR)
                              for sign in (1.0, -1.0))
            print(f"hogs in {share:.0%} of slots: {np.mean(centers):.4f} +- {np.std(centers):.4f} for -0.0100, all "
                  f"pairs {np.mean(every):.4f} +- {np.std(every):.4f}; {missed} of {self.GATES} intervals miss")
            self.assertLess(abs(np.mean(centers) + 0.01), 4 * np.std(centers) / math.sqrt(self.GATES))
            self.assertLessEqual(missed, self.GATES * ERROR + 3 * math.sqrt(self.GATES * ERROR))
            self.assertLess(np.std(centers), 1.1 * np.std(every))

    def test_even_what_goes_with_the_figure_makes_no_difference_of_none(self):
        """For example, if the slower one of two slots is left out."""
        rng, wrong = np.random.default_rng(16), 0
        for _ in range(self.GATES):
            made = trial.Pairs()
            for _ in range(PAIRS):
                figures = 100 * np.exp(rng.normal(0, 0.02, 2))
                made.add(*(model.Slot("p", "A", figures={"THROUGHPUT": one}, taken=float(one < 99)) for one in figures),
                         model.Metric(), True, ERROR)
            rates = stats.betting_rates(0.028, MARGIN)
            wrong += any(stats.most_evidence(made.x, 0.0, rates, sign) >= math.log(2 / ERROR) for sign in (1.0, -1.0))
        self.assertLessEqual(wrong, self.GATES * ERROR + 3 * math.sqrt(self.GATES * ERROR))


class Center(unittest.TestCase):
    def test_it_is_the_median_of_all_means(self):
        rng = np.random.default_rng(17)
        for draw in (rng.standard_normal, rng.standard_cauchy, lambda n: np.round(rng.standard_normal(n), 1), np.zeros,
                     lambda n: 5 + 1e-9 * rng.standard_normal(n)):
            for count in (1, 2, 3, 40, 41, stats.FEW, stats.FEW + 1, 1000):
                x = draw(count)
                rows, columns = np.triu_indices(count)
                means = np.sort((x[rows] + x[columns]) / 2)
                if count <= stats.FEW:
                    self.assertEqual(stats.center(x), float(np.median(means)))
                else:       # the lower median
                    self.assertAlmostEqual(stats.center(x), means[(len(means) - 1) // 2], delta=1e-12 * np.ptp(x))

    def test_of_many(self):
        """Listing their means would take 40 GB."""
        self.assertAlmostEqual(stats.center(np.random.default_rng(18).standard_normal(100_000)), 0.0, delta=0.02)


class Holm(unittest.TestCase):
    def test_steps(self):
        self.assertEqual(stats.holm([0.02, 0.001, 0.03], 0.05), [True, True, True])
        self.assertEqual(stats.holm([0.03, 0.001, 0.03], 0.05), [False, True, False])
        self.assertEqual(stats.holm([0.04, 0.02, 0.2], 0.05), [False, False, False])
        self.assertEqual(stats.holm([], 0.05), [])

    def test_errors_of_many_together(self):
        """20 equal pairs of sides: at most one gate in 20 may have a wrong verdict."""
        rng = np.random.default_rng(11)
        rates = stats.betting_rates(0.014, MARGIN)
        errors = []
        for sign in (1.0, -1.0):
            found = stats.log_evidence(log_ratios("gaussian", 0.01, rng), sign * 0.0, rates, sign)
            errors.append(np.minimum(1, 2 * np.exp(-np.max(found, axis=-1))))
        gates = np.minimum(*errors).reshape(-1, 20)
        wrong = [any(stats.holm(list(gate), ERROR)) for gate in gates]
        self.assertLessEqual(np.mean(wrong), ERROR + 3 * math.sqrt(ERROR * 0.95 / len(wrong)))


class Noise(unittest.TestCase):
    def test_noise_of_neighbours_and_of_samples_sets_the_length(self):
        rng = np.random.default_rng(12)
        steady = 1000 * np.exp(rng.standard_normal(8) * 1e-6)
        shaky = [list(1000 * np.exp(rng.standard_normal(10) * 0.05)) for _ in range(400)]
        long = stats.learn([np.mean(one) for one in shaky], shaky, 1, 0.25)
        self.assertGreater(stats.slot_length(long, 600), 2)
        self.assertAlmostEqual(stats.pair_noise(long, 4), 0.05 * math.sqrt(2 / 40), delta=0.002)
        jumpy = stats.learn(list(1000 * np.exp(rng.standard_normal(8) * 0.05)), [list(steady)] * 8, 1, 0.25)
        self.assertEqual(stats.slot_length(jumpy, 600), 1)
        self.assertLessEqual(2 * 20 * (stats.slot_length(long, 60) + 0.25), 60)

    def test_samples_that_lean_on_each_other_tell_less(self):
        rng = np.random.default_rng(13)
        free = rng.standard_normal(400)
        leaning = np.convolve(free, np.ones(10) / math.sqrt(10), "same")
        self.assertGreater(stats.variance_of_mean(leaning), 3 * stats.variance_of_mean(free))


class Bench:
    """A bench with random figures and a simulated clock."""

    def __init__(self, effect=0.0, noise=0.005, seed=1, disturb=None, fail=()):
        self.effect, self.noise, self.random = effect, noise, random.Random(seed)
        self.disturb, self.fail, self.time, self.count = disturb, fail, 0.0, 0

    def clock(self):
        return self.time

    def slot(self, point, side, seconds):
        self.count += 1
        self.time += seconds + 0.25
        value = 9400 * math.exp(self.random.gauss(0, self.noise))
        value *= 1 + (self.effect if side == model.B else 0)
        made = model.Slot(point.name, side, seconds=seconds + 0.25, length=seconds, disturbed=0.0,
                          figures={"THROUGHPUT": value}, units={"THROUGHPUT": "Mbit/s"})
        if self.disturb:
            self.disturb(self.count, made)
        if self.count in self.fail:
            made.failed, made.figures = "connection refused", {}
        return made

    def leave(self):
        pass


class View(model.View):
    def __init__(self):
        self.told = []

    def begin(self, gate):
        self.told.append("begin")

    def slot(self, slot, gate, judgements):
        self.told.append(slot.number)

    def end(self, gate):
        pass


def gate(bench, points=1, budget=60.0, metrics=(model.Metric(),), **options):
    made = model.Gate([model.Point(f"p{i}", "TCP_STREAM", metrics=metrics) for i in range(points)], [])
    view = View()
    try:
        trial.Trial(made, bench, view, trial.Options(budget=budget, seed=3, **options), bench.clock).run()
    except model.GateError:
        pass
    return made, view


class Loop(unittest.TestCase):
    def test_verdicts_and_statuses(self):
        for effect, noise, verdict, status in ((0.0, 0.002, "equal", 0), (-0.04, 0.002, "worse", 1),
                                               (0.04, 0.002, "better", 0), (0.0, 0.2, "can't tell", 77)):
            found, _ = gate(Bench(effect, noise))
            self.assertEqual((found.judgements[0].verdict, found.status()), (verdict, status))
        self.assertEqual(found.status(strict=True), 1)
        self.assertGreater(found.judgements[0].more_pairs or 10**6, 20)

    def test_less_is_better(self):
        found, _ = gate(Bench(0.04, 0.002), metrics=(model.Metric(more_is_better=False),))
        self.assertEqual(found.judgements[0].verdict, "worse")
        self.assertGreater(found.judgements[0].low, 2.0)

    def test_the_budget_bounds_it_and_every_slot_is_shown(self):
        found, view = gate(Bench(0.0, 0.2), budget=30)
        self.assertLessEqual(found.seconds, 30)
        self.assertEqual(sorted(view.told[1:]), list(range(1, len(found.slots) + 1)))

    def test_a_budget_that_is_small_is_not_spent_on_learning(self):
        for budget, slot, points in ((1, None, 1), (8, 3, 1), (60, 10, 1), (60, None, 12)):
            with self.subTest(budget=budget, slot=slot, points=points):
                found, _ = gate(Bench(0.0, 0.2), budget=budget, slot=slot, points=points)
                self.assertLessEqual(found.seconds, budget)
                self.assertIn("6 pairs of each", " ".join(found.notes))
                self.assertLessEqual(sum(one.seconds for one in found.slots if not one.pair), 0.3 * budget)
        found, _ = gate(Bench(0.0, 0.2), budget=30)
        self.assertEqual((found.learned.slots, found.notes), (4, []))

    def test_an_end_comes_as_soon_as_all_is_told(self):
        found, _ = gate(Bench(-0.1, 0.001), budget=600)
        self.assertLess(found.judgements[0].pairs, 10)

    def test_many_points_are_judged_together(self):
        found, _ = gate(Bench(0.0, 0.002), points=6, budget=400)
        self.assertEqual({one.verdict for one in found.judgements}, {"equal"})

    def test_pairs_whose_processors_were_taken_are_left_out(self):
        def take(count, slot):
            if count % 5 == 0:
                slot.taken, slot.figures = 0.9, {"THROUGHPUT": 5000.0}
        one, = gate(Bench(0.0, 0.002, disturb=take))[0].judgements
        self.assertEqual(one.verdict, "equal")
        self.assertGreater(one.left_out, 0)
        self.assertGreater(one.noise_all, 10 * one.noise)
        one, = gate(Bench(0.0, 0.002, disturb=take), clean=False)[0].judgements
        self.assertEqual((one.verdict, one.left_out, one.noise_all), ("can't tell", 0, None))

    def test_all_count_where_to_leave_out_makes_nothing_better(self):
        """Disturbances of one side only are part of that side; those of nearly all slots are normal for the machine;
        harmless ones are no reason to leave slots out."""
        for effect, verdict, most, takes in ((-0.04, "worse", trial.FEW, lambda count, slot: slot.side == model.B),
                                             (0.0, "equal", trial.FEW, lambda count, slot: True),
                                             (0.0, "equal", 8, lambda count, slot: count % 3 == 0)):
            def take(count, slot, takes=takes):
                slot.taken = 0.9 * takes(count, slot)
            one, = gate(Bench(effect, 0.004, disturb=take), budget=120, confidence=99.9)[0].judgements
            self.assertEqual((one.verdict, trial.FEW <= one.left_out <= most), (verdict, True))
            self.assertGreaterEqual(one.pairs, most)

    def test_a_figure_of_nothing(self):
        """A side that moves nothing is not left out, and no losses on either side are equal."""
        for a, b, more, verdict in ((9.0, 0.0, True, "worse"), (0.0, 9.0, True, "better"), (0.0, 9.0, False, "worse"),
                                    (0.0, 0.0, False, "equal"), (0.0, 0.0, True, "can't tell")):
            def nothing(count, slot):
                slot.figures = {"THROUGHPUT": b if slot.side == model.B else a}
            found, _ = gate(Bench(disturb=nothing), metrics=(model.Metric(more_is_better=more),))
            one, = found.judgements
            self.assertEqual((one.verdict, one.left_out > 0), (verdict, a == b and more), (a, b, more))
            self.assertFalse(any(value is not None and math.isnan(value) for value in (one.change, one.noise)))

    def test_failures(self):
        found, _ = gate(Bench(0.0, 0.002, fail=(10, 14)), budget=150, slot=1)
        self.assertEqual((found.judgements[0].verdict, found.judgements[0].left_out), ("equal", 2))
        found, _ = gate(Bench(fail=range(1, 100)))
        self.assertIn("3 slots in a row failed: connection refused", found.over)
        self.assertEqual(found.status(), 77)

    def test_what_fails_more_often_is_not_equal(self):
        """Failed or 0: in some or half of B's slots only; if both fail alike, that says nothing about B."""
        for share, sides, verdicts in ((0.2, "B", {"can't tell", "worse"}), (0.5, "B", {"worse"}), (0.5, "A", {"better"}),
                                       (0.2, "AB", {"equal", "can't tell"})):
            for failed in (True, False):
                chance = random.Random(5)
                def fail(count, slot, share=share, sides=sides, failed=failed, chance=chance):
                    if count > 8 and slot.side in sides and chance.random() < share:
                        slot.failed, slot.figures = ("no answer", {}) if failed else ("", {"THROUGHPUT": 0.0})
                one, = gate(Bench(0.0, 0.002, disturb=fail), budget=150, slot=1)[0].judgements
                self.assertIn(one.verdict, verdicts, (share, sides, failed, one.failing))
                self.assertIn("alone gave nothing in ", one.failing)

    def test_a_side_that_never_gives_anything_has_failed(self):
        """Also where it hangs for so long that the budget is over before it has failed three times."""
        def hang(count, slot):
            if slot.side == model.B:
                bench.time += 20
                slot.seconds, slot.failed, slot.figures = slot.seconds + 20, "no answer", {}
        bench = Bench(disturb=hang)
        found, _ = gate(bench)
        self.assertEqual((found.over, found.failed), ("p0: no slot of B gave anything: no answer", True))
        self.assertLess(sum(bool(one.failed) for one in found.slots), 3)

    def test_noise_that_nobody_has_seen_is_not_told(self):
        one, = gate(Bench(noise=0.2), budget=3, aa=False)[0].judgements
        self.assertEqual((one.pairs, one.noise), (1, None))

    def test_a_difference_that_is_there_but_small_is_said(self):
        found, _ = gate(Bench(-0.015, 0.012, seed=5), budget=60)
        one = found.judgements[0]
        self.assertEqual(one.verdict, "can't tell")
        self.assertLess(one.high, 0)
        self.assertIn("B is below A", one.notes[0])


if __name__ == "__main__":
    lib.unit_main()
