#!/usr/bin/env python3
"""Tests of scripts/netlab: its arithmetic and, as root, the labs that it creates and removes."""

import contextlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from dataclasses import replace
from pathlib import Path
from unittest import mock

import lib

NAME = f"t{os.getpid()}"
ATTEMPTS = 5                # for what a busy machine may spoil
OBSTACLE = lib.no_lab()
NO_LINE = lib.no_line()


os.environ.setdefault("NETPERF", lib.netperf())    # netlab asks it for ceilings
netlab = lib.script("netlab")
labcheck = netlab.labcheck


@contextlib.contextmanager
def refusing(program, words, says, status):
    """A wrapper around a program that fails if its arguments match; returns its path."""
    real = shutil.which(program, path=os.environ["PATH"] + ":/sbin")
    with tempfile.TemporaryDirectory() as place, mock.patch.dict(
            os.environ, {"PATH": f"{place}:{os.environ['PATH']}"}):
        fake = Path(place, os.path.basename(program))
        fake.write_text(f"#!/bin/sh\ncase \"$*\" in {words}) echo '{says}' >&2; exit {status} ;; esac\n"
                        f"exec {real} \"$@\"\n")
        fake.chmod(0o755)
        yield str(fake)


class Arithmetic(unittest.TestCase):
    def values(self, option, good, bad):
        """How --option parses texts, and that it refuses others in a line with a remedy in brackets."""
        def read(text):
            return getattr(netlab.parser().parse_args(["up", f"--{option}={text}"]), option)

        for text, value in good.items():
            self.assertEqual(read(text), value, text)
        for text in bad:
            with contextlib.redirect_stderr(io.StringIO()) as said, self.assertRaises(SystemExit, msg=text):
                read(text)
            self.assertRegex(said.getvalue(), rf"^netlab: argument --{option}: .* is not a .* \(.*\) \(see netlab up --help\)\n$")

    def test_values(self):
        self.values("rate", {"100mbit": 100_000_000, "2.5gbit": 2_500_000_000, "500kbit": 500_000, "64KBIT": 64_000, "none": 0},
                    ("", "100", "100mb", "-1mbit", "1e9", "mbit", "1kbit", "101gbit", "0mbit", "100mbit ", "1.mbit", "nonesuch"))
        self.values("mtu", {"256": 256, "1500": 1500, "9000": 9000}, ("255", "9001", "x", "", "-1", "1500.0", "9" * 20))
        self.values("delay", {"5ms": 0.005, "250us": 0.00025, "1s": 1.0, "0": 0.0, "0ms": 0.0, "1.5ms": 0.0015, "10s": 10.0},
                    ("", "5", "-5ms", "5 ms", "ms", "1m", "11s", "1e3us", "5MS"))
        self.values("loss", {"1": 0.01, "0.05%": 0.0005, "100": 1.0, "0": 0.0}, ("", "101", "-1", "1 %", "x", "1e1", "%"))
        self.values("congestion", {"cubic": "cubic", "default": ""}, ("", "a b", "x" * 16, "../x", "Cubic"))
        self.values("paths", {"1": 1, "4": 4}, ("0", "5", "x", "", "-1", "2.0", "9" * 20))
        self.values("name", {name: name for name in ("plumb", "a-client", "_x.1", "x" * 32)},
                    ("", "-x", ".x", "a b", "a/b", "x" * 33, "\u00e9", "a\n"))

    def test_times_are_shown(self):
        for seconds, text in ((0.0, "0"), (0.005, "5 ms"), (0.00025, "250 us"), (2.0, "2 s")):
            self.assertEqual(netlab.units.show_time(seconds), text)

    def test_paths(self):
        self.assertEqual([path.addresses(role) for path in netlab.Link(paths=2).each() for role in netlab.ROLES],
                         [("10.77.0.1", "fd77::1"), ("10.77.0.2", "fd77::2"),
                          ("10.77.1.1", "fd77:1::1"), ("10.77.1.2", "fd77:1::2")])
        link = netlab.Link(paths=2)
        self.assertTrue(link.describe().endswith("IPv4 and IPv6, on each of 2 paths (veth)"), link.describe())
        first, *more = link.ceilings().splitlines()
        self.assertEqual(first, netlab.Link().ceilings() + " by one path")
        if netlab.has_mptcp():
            self.assertIn("IPv4: MPTCP 185.18 Mbit/s", more[0])

    def test_paths_choose_for_themselves(self):
        for seed in (0, 3, 2**64 - 1):
            link = netlab.Link(seed=seed, paths=4, made_by="link")
            seeds = [int(word.partition("=")[2]) for path in link.each() for word in link.words(path)
                     if word.startswith("seed=")]
            # netlab-link's for the way back is 2**32 higher
            self.assertEqual(len({(one + way) % 2**64 for one in seeds for way in (0, 2**32)}), 8)
            self.assertTrue(all(one < 2**64 for one in seeds), seeds)
            self.assertEqual(seeds[0], seed)

    def test_what_netlab_link_and_tc_are_told(self):
        link = netlab.Link(delay=0.005, jitter=0.001, loss=0.01, reorder=0.02, duplicate=0.005, seed=3,
                           made_by="link")
        words = dict(word.split("=") for word in link.words())
        self.assertEqual(words, {
            "rate": "100000000", "overhead": "38", "least": "84", "burst": "10000", "limit": "300000",
            "delay": "5000000", "jitter": "1000000", "seed": "3", "loss": "10000000",
            "reorder": "20000000", "duplicate": "5000000"})
        self.assertEqual(" ".join(link.netem()), "netem limit 100000 delay 5000.000us 1000.000us "
                         "loss 1.0000000% duplicate 0.5000000% reorder 2.0000000%")
        self.assertEqual(netlab.Link(delay=0.0).netem(), ["netem", "limit", "100000"])
        bare = dict(word.split("=") for word in replace(link, framing=False, rate=None).words())
        self.assertEqual((bare["overhead"], bare["least"], bare["rate"]), ("0", "0", "0"))
        # both report the same
        plan = {name: int(value) for name, value in words.items()}
        self.assertEqual(netlab.read_line(netlab.Link(rate=None), plan), link)
        queues = {"tbf": {"options": {"rate": 12500000}},
                  "netem": {"stab": {"overhead": 24}, "options": {"delay": {"delay": 0.005, "jitter": 0.001},
                                        "loss-random": {"loss": 0.01}, "reorder": {"reorder": 0.02},
                                        "duplicate": {"duplicate": 0.005}}}}
        self.assertEqual(netlab.read_queues(netlab.Link(rate=None), queues),
                         replace(link, seed=0, made_by="netem"))

    def test_what_cannot_be(self):
        for link, words in ((netlab.Link(delay=0.001, jitter=0.002, made_by="link"), "--jitter 2 ms"),
                            (netlab.Link(reorder=0.1, made_by="netem"), "--emulator link"),
                            (netlab.Link(loss=0.1), "no delay line")):
            with self.assertRaisesRegex(netlab.UsageError, words):
                link.check()
        netlab.Link(reorder=0.1, made_by="link").check()

    def test_cost(self):
        self.assertEqual(netlab.Link().cost(1500), 1538)
        self.assertEqual(netlab.Link().cost(46), 84)
        self.assertEqual(netlab.Link().cost(29), 84)
        self.assertEqual(netlab.Link(framing=False).cost(29), 29)

    def test_what_a_link_carries(self):
        link = netlab.Link()
        for test, family, size, mbit in (
                ("TCP_STREAM", 4, None, 94.148), ("TCP_STREAM", 6, None, 92.848),
                ("UDP_STREAM", 4, None, 95.709), ("UDP_STREAM", 6, None, 94.408),
                ("UDP_STREAM", 4, 64, 49.231)):
            self.assertAlmostEqual(link.payload_rate(test, family, size) / 1e6, mbit, places=3)
        self.assertAlmostEqual(netlab.Link(framing=False).payload_rate("TCP_STREAM") / 1e6, 96.533,
                               places=3)
        self.assertIsNone(netlab.Link(rate=None).payload_rate("TCP_STREAM"))
        self.assertIn("TCP 94.148 Mbit/s", link.ceilings())
        self.assertNotIn("IPv6", netlab.Link(mtu=256, ipv6=False).ceilings())
        with mock.patch.dict(os.environ, {"NETPERF": "/nowhere"}):
            netlab.ceiling.netperf.cache_clear()
            netlab.ceiling.answer.cache_clear()
            self.assertTrue(link.ceilings().startswith("not known: no netperf beside"))

    def test_bucket_and_queue(self):
        self.assertEqual((netlab.Link().burst(), netlab.Link().limit()), (10000, 300000))
        for rate in (64_000, 10**6, 10**8, 10**9, 10**11):
            for mtu in (256, 1280, 1500, 9000):
                for framing in (True, False):
                    link = netlab.Link(rate, mtu, framing)
                    self.assertGreaterEqual(link.burst(), 2 * link.cost(mtu))
                    self.assertGreaterEqual(link.burst(), rate / 8 * 0.0007)
                    self.assertGreaterEqual(link.limit(), 32 * link.cost(mtu))

    def test_size_table_has_an_entry_for_every_length(self):
        for mtu in (256, 1500, 2010, 2011, 9000):
            link = netlab.Link(mtu=mtu)
            words = link.stab()
            table = int(words[words.index("tsize") + 1])
            self.assertGreater(table, link.cost(mtu))
            self.assertEqual(int(words[words.index("mtu") + 1]), table - 1)
        self.assertEqual(netlab.Link(framing=False).stab(), ["stab", "overhead", "-14"])


class Checks(unittest.TestCase):
    """netlab check's judgement, with a prober whose results are given."""

    def setUp(self):
        self.link = netlab.Link(delay=0.005, jitter=0.001, loss=0.01, reorder=0.02, duplicate=0.005,
                                made_by="link")
        self.found = {"lost": 100, "reordered": 198, "duplicated": 49, "p50": 5010.0, "spread": 1.0,
                      "rate": 1.0, "mtu": 1500, "arrives": True, "largest": 1500, "arrived6": 99,
                      "congestion": "cubic"}

    def probe(self, way, kind, family=4, **words):
        found = self.found
        if kind == "mtu":
            return {"mtu": found["mtu"], "arrives": found["arrives"]}
        if kind == "tcp":
            return {"largest": found["largest"], "congestion": found["congestion"]}
        if kind == "rate":
            passed = self.link.share_that_passes() * found["rate"] * 100e6 / 8 / 1538
            return {"packets": round(passed * 10), "ns": 10 * 10**9}
        if family == 6:
            return {"arrived": found["arrived6"]}
        half = self.link.jitter * 1e6 * found["spread"]
        return {"arrived": words["count"] - found["lost"], "lost": found["lost"],
                "reordered": found["reordered"], "duplicated": found["duplicated"],
                "delay_us": {"p50": found["p50"], "centiles": self.centiles(found["p50"], half)}}

    def centiles(self, middle, half):
        """Of a uniform distribution, with reordered packets above or below it."""
        n = round(100 * self.link.reorder)
        rest = [middle + half * (2 * i / (100 - n) - 1) for i in range(101 - n)]
        return rest + [9e9] * n if self.link.exact else [0.0] * n + rest

    def off(self, **found):
        """Which properties are wrong with these results."""
        with mock.patch.dict(self.found, found):
            return {one.name for one in labcheck.examine(self.link, [self.probe]) if not one.good}

    def test_what_was_asked_for(self):
        self.assertEqual(self.off(), set())
        names = [one.line().split()[1] for one in labcheck.examine(self.link, [self.probe])]
        self.assertEqual(names, ["mtu", "ipv6", "packets", "rate", "delay", "loss", "reorder",
                                 "duplicate"])
        self.link = replace(self.link, congestion="cubic")
        self.assertEqual(self.off(), set())

    def test_what_was_not(self):
        self.link = replace(self.link, congestion="cubic")
        for found, name in (({"lost": 104}, "loss"), ({"lost": 97}, "loss"), ({"reordered": 201}, "reorder"),
                            ({"duplicated": 54}, "duplicate"), ({"p50": 5700.0}, "delay"),
                            ({"spread": 1.4}, "delay"), ({"spread": 0.5}, "delay"), ({"rate": 0.98}, "rate"),
                            ({"rate": 1.02}, "rate"), ({"mtu": 1499}, "mtu"), ({"arrives": False}, "mtu"),
                            ({"largest": 1501}, "packets"), ({"largest": 0}, "packets"),
                            ({"arrived6": 0}, "ipv6"), ({"congestion": "bbr"}, "congestion")):
            with self.subTest(**found), mock.patch.object(labcheck.time, "monotonic",
                                                          side_effect=range(0, 10**6, 100)):
                self.assertEqual(self.off(**found), {name})

    def test_each_path(self):
        """Findings name their path, and progress counts all paths."""
        turns, asked = [], []

        def probe_of(path):
            def probe(*words, **more):
                asked.append(path)
                return self.probe(*words, **more)
            return probe

        lines = [one.line() for one in labcheck.examine(self.link, [probe_of(0), probe_of(1)], turns.append)]
        self.assertEqual([line.split()[1:4] for line in lines],
                         [["path", number, one.name] for number in "01"
                          for one in labcheck.examine(self.link, [self.probe])])
        self.assertEqual(asked, sorted(asked))
        self.assertEqual(set(asked), {0, 1})
        self.assertEqual([turn.done for turn in turns], list(range(12)))
        self.assertEqual({turn.total for turn in turns}, {12})
        left = [turn.left for turn in turns]
        self.assertEqual(left, sorted(left, reverse=True))
        self.assertAlmostEqual(left[0], 2 * left[6])
        with mock.patch.dict(self.found, {"mtu": 1499}):
            bad = [one.line() for one in labcheck.examine(self.link, [probe_of(0), self.probe]) if not one.good]
        self.assertEqual([line[:17] for line in bad], ["off  path 0  mtu ", "off  path 1  mtu "])

    def test_segments_at_a_time(self):
        self.link = replace(self.link, segments=65535)
        self.assertEqual(self.off(), {"packets"})

    def test_netem_draws_lots(self):
        self.link = replace(self.link, made_by="netem", jitter=0.0)
        self.assertEqual(self.off(lost=120, reordered=230, duplicated=60), set())
        self.assertEqual(self.off(lost=150), {"loss"})

    def test_nothing_may_be_lost_where_nothing_was_asked(self):
        self.link = netlab.Link(delay=0.005, made_by="link")
        self.assertEqual(self.off(lost=0, reordered=0, duplicated=0), set())
        self.assertEqual(self.off(lost=1, reordered=1, duplicated=1), {"loss", "reorder", "duplicate"})


class Refusals(unittest.TestCase):
    """One line on stderr with a remedy; none of these needs root."""

    def check(self, args, status, words, **patches):
        with contextlib.ExitStack() as stack:
            for target, value in {"geteuid": 0, **patches}.items():
                where = "os.geteuid" if target == "geteuid" else "shutil.which"
                stack.enter_context(mock.patch(where, return_value=value))
            stack.enter_context(mock.patch.dict(os.environ))
            got, _, said, _ = lib.called(netlab.main, *args)
        self.assertEqual(got, status, said)
        self.assertEqual(said.count("\n"), 1, said)
        self.assertTrue(said.startswith("netlab: "), said)
        self.assertIn(words, said)

    def test_not_root(self):
        for command in (["up"], ["down"], ["status"], ["exec", "client", "true"], ["check"],
                        ["set", "--mtu", "1500"]):
            self.check(command, 1, "sudo", geteuid=1000)

    def test_no_ip(self):
        self.check(["up"], 1, "install iproute2", which=None)
        with mock.patch.object(netlab.machine, "run", side_effect=netlab.machine.MachineError("ip: Permission denied")):
            self.check(["up"], 1, "ip: Permission denied", which="/bin/ip")

    def test_processes_of_an_end(self):
        """An empty list only if the end is gone, and not if ip fails for another reason."""
        with tempfile.TemporaryDirectory() as place, mock.patch.object(netlab, "RUN_NETNS", place), mock.patch.object(
                netlab.machine, "run", side_effect=netlab.machine.MachineError("ip: no end within 30 s")):
            lab = netlab.Lab("x")
            self.assertEqual(lab.processes("client"), [])
            Path(lab.file("client")).touch()
            with self.assertRaisesRegex(netlab.LabError, "no end within"):
                lab.processes("client")

    def test_values(self):
        for args, words in ((["up", "--rate", "5x"], "try 100mbit"), (["up", "--mtu", "9"], "256"),
                            (["up", "--framing", "x"], "'ethernet'"), (["up", "--foo"], "--foo"),
                            (["up", "--name", "a/b"], "letters"), ([], "COMMAND"),
                            (["up", "--delay", "5"], "try 5ms"), (["up", "--loss", "x"], "try 1 or"),
                            (["up", "--reorder", "51"], "0 to 50"), (["set"], "nothing to set"),
                            (["up", "--jitter", "1ms"], "more than --delay"),
                            (["set", "--emulator", "link"], "--emulator"),
                            (["up", "--seed", "x"], "--seed"),
                            (["up", "--paths", "0"], "1 to 4"), (["up", "--paths", "5"], "1 to 4"),
                            (["up", "--paths", "x"], "1 to 4"), (["set", "--paths", "2"], "--paths"),
                            (["exec", "middle", "ls"], "'client'"), (["sideways"], "'up'"),
                            (["up", "--mtu"], "--mtu")):
            self.check(args, 2, words, which="/bin/ip")


@unittest.skipIf(OBSTACLE, OBSTACLE)
class Labs(unittest.TestCase):
    def setUp(self):
        self.devices = set(os.listdir("/sys/class/net"))

    def tearDown(self):
        self.netlab("down", status=0)
        self.nothing_left()

    def command(self, verb, *args):
        return [lib.NETLAB, verb, "--name", NAME, *args]

    def netlab(self, verb, *args, status):
        got = lib.run(self.command(verb, *args), timeout=30)
        self.assertEqual(got.rc, status, got)
        return got

    def nothing_left(self):
        self.assertEqual(self.left(), [])
        self.assertEqual(set(os.listdir("/sys/class/net")), self.devices)

    def left(self):
        return [n for n in os.listdir("/run/netns") if n.startswith(f"netlab-{NAME}-")]

    def inside(self, role, *cmd):
        proc = subprocess.Popen(self.command("exec", role, *cmd), stdin=subprocess.DEVNULL)
        self.addCleanup(self.end, proc)
        wanted = Path(cmd[0]).name
        self.assertTrue(lib.wait_for(
            lambda: Path(f"/proc/{proc.pid}/comm").read_text().strip() == wanted, 10))
        return proc

    def end(self, proc):
        proc.kill()
        proc.wait()

    def answers(self, role, address):
        """Whether the far end is reachable: it refuses a connection."""
        script = ("import errno, socket, sys; s = socket.socket(socket.AF_INET6 if ':' in "
                  "sys.argv[1] else socket.AF_INET); s.settimeout(5); "
                  "sys.exit(s.connect_ex((sys.argv[1], 1)) != errno.ECONNREFUSED)")
        self.netlab("exec", role, sys.executable, "-c", script, address, status=0)

    def queue(self, role, device="lab0"):
        got = lib.run(["tc", "-n", f"netlab-{NAME}-{role}", "-j", "-d", "qdisc", "show", "dev",
                       device], timeout=10)
        return json.loads(got.out)[0]

    def device(self, role, device="lab0"):
        got = lib.run(["ip", "-n", f"netlab-{NAME}-{role}", "-d", "-j", "link", "show", device], 10)
        return json.loads(got.out)[0]

    def sent(self, role):
        """Bytes sent by each interface of an end."""
        got = lib.run(["ip", "-n", f"netlab-{NAME}-{role}", "-s", "-j", "link"], 10)
        return {link["ifname"]: link["stats64"]["tx"]["bytes"] for link in json.loads(got.out)}

    def ends_of_paths(self):
        """Pairs of addresses of two paths, with the interface by which the end must send: the one with the client's
        address."""
        for role, far in labcheck.WAYS:
            for here, there in ((0, 0), (0, 1), (1, 0), (1, 1)):
                for near_end, far_end in zip(netlab.Path(here).addresses(role), netlab.Path(there).addresses(far)):
                    yield role, near_end, far_end, f"lab{here if role == 'client' else there}"

    def each_leaves_by_its_path(self):
        script = ("import errno, socket, sys\n"
                  "near, far = sys.argv[1:]\n"
                  "family = socket.AF_INET6 if ':' in near else socket.AF_INET\n"
                  "tcp, udp = socket.socket(family), socket.socket(family, socket.SOCK_DGRAM)\n"
                  "tcp.bind((near, 0)), udp.bind((near, 0))\n"
                  "tcp.settimeout(20)\n"
                  "assert tcp.connect_ex((far, 1)) == errno.ECONNREFUSED\n"
                  "for n in range(50): udp.sendto(bytes(1000), (far, 1))\n")
        for role, near, far, device in self.ends_of_paths():
            with self.subTest(end=role, near=near, far=far):
                before = self.sent(role)
                got = lib.run([*lib.in_lab(NAME, role), sys.executable, "-c", script, near, far], 60)
                self.assertEqual(got.rc, 0, got.err)
                self.assertTrue(lib.wait_for(lambda: self.sent(role)[device] - before[device] >= 50_000, 20), device)
                others = [name for name in before if name not in (device, "lo")]
                self.assertEqual(len(others), 1)
                # Neighbour discovery sends now and then.
                self.assertLess(self.sent(role)[others[0]] - before[others[0]], 10_000, others)

    def test_two_paths(self):
        got = self.netlab("up", "--paths", "2", status=0)
        self.assertIn(", on each of 2 paths (veth)\n", got.out)
        self.assertIn("\n  path 1   lab1: 10.77.1.1  fd77:1::1 and 10.77.1.2  fd77:1::2\n", got.out)
        self.assertEqual(self.netlab("status", status=0).out, got.out)
        self.each_leaves_by_its_path()
        got = self.netlab("set", "--rate", "10mbit", "--mtu", "4000", "--congestion", "reno", status=0)
        self.assertIn("10 Mbit/s", got.out)
        self.assertIn("congestion reno, on each of 2 paths (veth)\n", got.out)
        self.assertEqual(self.netlab("status", status=0).out, got.out)
        for role in netlab.ROLES:
            for device in ("lab0", "lab1"):
                self.assertEqual((self.queue(role, device)["options"]["rate"] * 8, self.device(role, device)["mtu"]),
                                 (10_000_000, 4000))
            # Each network; at the client, each path by its source address, too.
            routes = [line for family in "46" for line in lib.run(
                ["ip", "-n", f"netlab-{NAME}-{role}", f"-{family}", "route", "show", "table", "all"],
                10).out.splitlines() if "77:" in line or "10.77." in line]
            self.assertEqual(len([line for line in routes if "congctl reno" in line]), 8 if role == "client" else 4,
                             routes)
        self.netlab("set", "--congestion", "default", status=0)
        self.each_leaves_by_its_path()

    def test_set_changes_all_paths_or_none(self):
        self.netlab("up", "--paths", "2", status=0)
        with refusing("tc", "*server*lab1*10000000bit*", "no", 2):
            self.netlab("set", "--rate", "10mbit", "--mtu", "2000", status=1)
        for role in netlab.ROLES:
            for device in ("lab0", "lab1"):
                self.assertEqual((self.queue(role, device)["options"]["rate"] * 8, self.device(role, device)["mtu"]),
                                 (100_000_000, 1500))

    def test_a_path_that_is_gone(self):
        self.netlab("up", "--paths", "2", status=0)
        self.assertEqual(lib.run(["ip", "-n", f"netlab-{NAME}-server", "link", "del", "lab1"], 10).rc, 0)
        for verb in (["status"], ["check"], ["set", "--rate", "1mbit"]):
            self.assertIn(f"not whole: netlab down --name {NAME}", self.netlab(*verb, status=1).err)

    def test_subflows_of_mptcp(self):
        """The other paths are MPTCP subflows if the kernel supports it; otherwise nothing is printed."""
        if not netlab.has_mptcp() or lib.run(["ip", "mptcp", "endpoint", "show"], 10).rc != 0:
            self.skipTest("no MPTCP, or an ip that does not know it")
        self.netlab("up", "--paths", "4", status=0)
        asked = ["ip", "-n", f"netlab-{NAME}-client", "mptcp"]
        found = lib.run([*asked, "endpoint", "show"], 10).out.splitlines()
        self.assertEqual({line.split()[0] for line in found},
                         {address for path in netlab.Link(paths=4).each()[1:] for address in path.addresses("client")})
        self.assertTrue(all("subflow" in line for line in found), found)
        for role in netlab.ROLES:
            limits = lib.run(["ip", "-n", f"netlab-{NAME}-{role}", "mptcp", "limits", "show"], 10).out
            self.assertRegex(limits, r"\bsubflows? 3\b")
        self.netlab("down", status=0)
        with refusing("ip", "*mptcp*", 'Object "mptcp" is unknown', 255):
            got = self.netlab("up", "--paths", "2", "--no-ipv6", status=0)
        self.assertEqual(got.err, "")
        self.assertIn("\n  path 1   lab1: 10.77.1.1 and 10.77.1.2\n", got.out)
        self.assertEqual(lib.run([*asked, "endpoint", "show"], 10).out, "")

    def test_no_super_packets(self):
        """TCP would hand down 64 KiB at a time, for which the rate counts one frame's overhead."""
        self.netlab("up", "--mtu", "9000", status=0)
        for role in netlab.ROLES:
            self.assertEqual(self.device(role)["gso_max_segs"], 1)
            self.assertEqual(self.device(role)["gso_max_size"], 9500)
        self.netlab("set", "--mtu", "1500", "--rate", "2.5mbit", status=0)
        for role in netlab.ROLES:
            self.assertEqual(self.device(role)["gso_max_segs"], 1)
            self.assertEqual(self.device(role)["gso_max_size"], 2000)
            self.assertEqual(self.device(role)["ifalias"], "netlab rate=2500000")

    def test_set(self):
        self.netlab("up", status=0)
        got = self.netlab("set", "--rate", "10mbit", "--mtu", "4000", status=0)
        self.assertIn("10 Mbit/s, counting Ethernet frames with preamble and gap, MTU 4000", got.out)
        self.assertEqual(self.netlab("status", status=0).out, got.out)
        for role in netlab.ROLES:
            queue = self.queue(role)
            self.assertEqual((queue["options"]["rate"] * 8, queue["stab"]["tsize"]), (10_000_000, 4096))
        self.assertIn("no rate limit", self.netlab("set", "--rate", "none", status=0).out)
        self.assertEqual(self.queue("server")["kind"], "noqueue")
        self.assertIn("2 Gbit/s", self.netlab("set", "--rate", "2gbit", status=0).out)
        self.answers("client", "10.77.0.2")
        for args, words in ((["--mtu", "1000"], "this lab has IPv6"), (["--delay", "1ms"], "no delay line"),
                            (["--congestion", "nosuch"], "congestion")):
            got = self.netlab("set", *args, status=2 if "--delay" in args else 1)
            self.assertIn(words, got.err)
            self.assertEqual(got.err.count("\n"), 1, got.err)
        # What one end refuses has changed neither the other end nor part of this one.
        for rate in ("10mbit", "none"):
            got = self.netlab("set", "--rate", rate, "--mtu", "2000", "--congestion", "nosuch", status=1)
            self.assertIn("no such congestion control", got.err)
        with refusing("tc", "*server*10000000bit*", "no", 2):
            self.netlab("set", "--rate", "10mbit", "--mtu", "2000", status=1)
        for role in netlab.ROLES:
            self.assertEqual((self.queue(role)["options"]["rate"] * 8, self.device(role)["mtu"]),
                             (2_000_000_000, 4000))
        self.assertIn("2 Gbit/s, counting Ethernet frames with preamble and gap, MTU 4000, IPv4 and IPv6 (veth)\n",
                      self.netlab("status", status=0).out)
        self.netlab("down", status=0)
        self.assertIn("not up", self.netlab("set", "--rate", "1mbit", status=1).err)
        self.assertIn("not up", self.netlab("check", status=1).err)

    def congestion(self, role, family="4"):
        """The congestion control of a new connection to the other end."""
        script = ("import errno, socket, sys\n"
                  "six, far = sys.argv[1] == '6', sys.argv[2]\n"
                  "s = socket.socket(socket.AF_INET6 if six else socket.AF_INET)\n"
                  "s.settimeout(5)\n"
                  "assert s.connect_ex((far, 1)) == errno.ECONNREFUSED\n"
                  "print(s.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).split(b'\\0')[0].decode())")
        far = netlab.Path().addresses("server" if role == "client" else "client")[family == "6"]
        return self.netlab("exec", role, sys.executable, "-c", script, family, far, status=0).out.strip()

    def test_congestion_control(self):
        """The default is the machine's, which a namespace may not change; the route's setting is used."""
        default = Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()
        other = "reno" if default != "reno" else "cubic"
        self.netlab("up", status=0)
        self.assertEqual(self.congestion("client"), default)
        self.assertIn(f"congestion {other}", self.netlab("set", "--congestion", other, status=0).out)
        for role in netlab.ROLES:
            for family in ("4", "6"):
                self.assertEqual(self.congestion(role, family), other)
        self.netlab("set", "--congestion", "default", status=0)
        self.assertEqual(self.congestion("server"), default)
        self.netlab("down", status=0)
        got = self.netlab("up", "--congestion", "nosuch", status=1)
        self.assertEqual(got.err.count("\n"), 1, got.err)
        self.nothing_left()

    def test_both_ends_are_usable_at_once(self):
        got = self.netlab("up", status=0)
        self.assertIn("TCP 94.148 Mbit/s", got.out)
        self.assertEqual(got.err, "")
        for role, far in (("client", "2"), ("server", "1")):
            self.answers(role, f"fd77::{far}")
            self.answers(role, f"10.77.0.{far}")
            self.answers(role, "127.0.0.1")
            queue = self.queue(role)
            self.assertEqual(queue["options"]["rate"] * 8, 100_000_000)
            self.assertEqual(queue["stab"]["tsize"], 2048)
        self.assertIn("TCP 94.148 Mbit/s", self.netlab("status", status=0).out)

    def test_every_size(self):
        for mtu, rate, framing in ((9000, "10gbit", "ethernet"), (256, "500kbit", "ethernet"),
                                   (1280, "none", "ethernet"), (1500, "1gbit", "none")):
            with self.subTest(mtu=mtu, rate=rate, framing=framing):
                got = self.netlab("up", "--mtu", str(mtu), "--rate", rate, "--framing", framing,
                                  status=0)
                self.assertEqual(got.err.count("IPv6 is off"), int(mtu < 1280), got.err)
                self.answers("client", "10.77.0.2")
                if mtu >= 1280:
                    self.answers("client", "fd77::2")
                self.assertEqual(self.queue("server")["kind"] == "tbf", rate != "none")
                self.assertEqual(self.netlab("status", status=0).out, got.out)
                self.netlab("down", status=0)

    def test_without_ipv6(self):
        self.netlab("up", "--no-ipv6", status=0)
        got = lib.run(["ip", "-n", f"netlab-{NAME}-client", "-6", "addr", "show", "lab0"], 10)
        self.assertEqual(got.out, "")

    def test_twice_up_and_twice_down(self):
        self.netlab("up", status=0)
        said = self.netlab("up", status=1).err
        self.assertIn(f"already up: netlab down --name {NAME}", said)
        self.assertEqual(said.count("\n"), 1)
        self.answers("client", "10.77.0.2")
        self.netlab("down", status=0)
        self.assertIn("nothing to remove", self.netlab("down", status=0).out)
        self.netlab("status", status=1)
        self.assertIn("not up", self.netlab("exec", "client", "true", status=1).err)

    def test_exec_is_the_command(self):
        self.netlab("up", status=0)
        self.netlab("exec", "client", "sh", "-c", "exit 7", status=7)
        self.netlab("exec", "client", "sh", "-c", "kill -PIPE $$; exit 3", status=-signal.SIGPIPE)
        self.assertIn("no such program", self.netlab("exec", "client", "nosuch", status=127).err)
        self.assertEqual(self.netlab("exec", "server", "--", "echo", "-n", "--name", "x",
                                     status=0).out, "--name x")
        proc = self.inside("client", "sleep", "60")
        proc.terminate()
        self.assertEqual(proc.wait(5), -signal.SIGTERM)

    def test_no_tbf(self):
        with tempfile.TemporaryDirectory() as place:
            tc = Path(place, "tc")
            lib.executable(tc, "#!/bin/sh\necho 'Error: Specified qdisc kind is unknown.' >&2\nexit 2\n")
            got = subprocess.run(self.command("up"), capture_output=True, text=True, timeout=30,
                                 env={**os.environ, "PATH": f"{place}:{os.environ['PATH']}"})
        self.assertEqual(got.returncode, 1)
        self.assertIn("try modprobe sch_tbf, or --rate none", got.stderr)
        self.assertEqual(got.stderr.count("\n"), 1)
        self.nothing_left()

    def interrupt(self, number, delay):
        proc = subprocess.Popen(self.command("up"), stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)
        time.sleep(delay)
        proc.send_signal(number)
        return proc.wait(20)

    def test_up_that_is_interrupted_undoes_itself(self):
        for delay in (0.06, 0.08, 0.1, 0.12, 0.14, 0.16, 0.18):
            with self.subTest(delay=delay):
                status = self.interrupt(signal.SIGTERM, delay)
                if status == 0:  # the signal came too late: the lab is up
                    self.netlab("status", status=0)
                    self.netlab("down", status=0)
                else:
                    self.assertIn(status, (143, -signal.SIGTERM))
                self.nothing_left()

    def kill_up(self, *options):
        """Kill it at many moments: a moment later nothing is left."""
        for delay in (0.06, 0.07, 0.08, 0.09, 0.1, 0.11, 0.12, 0.14):
            with self.subTest(delay=delay):
                proc = subprocess.Popen(self.command("up", *options), stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL)
                time.sleep(delay)
                proc.kill()
                if proc.communicate(timeout=20)[0]:     # it was faster
                    self.netlab("down", status=0)
                time.sleep(0.2)             # an `ip` command that it started may outlive it
                self.assertTrue(lib.wait_for(lambda: not self.left(), 60), self.left())
                self.nothing_left()

    def test_kill_of_up(self):
        self.kill_up()

    def test_down_after_half_a_namespace(self):
        Path(f"/run/netns/netlab-{NAME}-server").touch()
        self.assertIn("netlab down", self.netlab("up", status=1).err)
        self.assertIn("not whole", self.netlab("status", status=1).err)
        self.netlab("down", status=0)
        self.nothing_left()

    def test_down_ends_what_runs_inside(self):
        self.netlab("up", status=0)
        stubborn = self.inside("server", "sh", "-c", "trap '' TERM; while :; do sleep 1; done")
        mother = self.inside("client", "sh", "-c", "sleep 300 & wait")
        self.assertTrue(lib.wait_for(lambda: lib.children(mother.pid), 5))
        orphan, = lib.children(mother.pid)
        mother.kill()
        mother.wait()
        self.assertIn(f"running: {orphan}", self.netlab("status", status=0).out)
        got = self.netlab("down", status=0)
        self.assertLess(got.seconds, 8)
        self.assertEqual(stubborn.wait(5), -signal.SIGKILL)
        self.assertFalse(lib.alive(orphan))
        self.nothing_left()

    def test_two_labs_at_a_time(self):
        self.netlab("up", status=0)
        other = f"{NAME}-b"
        self.addCleanup(lib.run, [lib.NETLAB, "down", "--name", other], 30)
        self.assertEqual(lib.run([lib.NETLAB, "up", "--name", other], 30).rc, 0)
        self.netlab("down", status=0)
        self.assertEqual(lib.run([lib.NETLAB, "status", "--name", other], 30).rc, 0)
        self.assertEqual(lib.run([lib.NETLAB, "down", "--name", other], 30).rc, 0)


@unittest.skipIf(NO_LINE, NO_LINE)
class Lines(Labs):
    """Labs whose link is made by netlab-link."""

    # do not repeat the tests of Labs
    for _name in [name for name in dir(Labs) if name.startswith("test_")]:
        locals()[_name] = None

    LINE = ("--emulator", "link")

    def pid(self):
        return self.told()["pid"]

    def told(self, *control):
        """Status of a netlab-link."""
        return json.loads(lib.run([os.environ.get("NETLAB_LINK") or netlab.link_program(), "tell",
                                   f"/run/netns/netlab-{NAME}-server", *control, "show"], 10).out)

    def test_up_set_status_down(self):
        got = self.netlab("up", *self.LINE, "--delay", "5ms", "--jitter", "1ms", "--loss", "1",
                          "--reorder", "2", "--duplicate", "0.5", "--rate", "50mbit", status=0)
        wanted = ("50 Mbit/s, counting Ethernet frames with preamble and gap, MTU 1500, IPv4 and IPv6, "
                  "delay 5 ms +-1 ms, loss 1 %, reorder 2 %, duplicate 0.5 % (netlab-link)")
        self.assertIn(wanted, got.out)
        self.assertIn(wanted, self.netlab("status", status=0).out)
        self.assertNotIn("running", got.out)
        got = self.netlab("set", "--loss", "0", "--duplicate", "0", "--reorder", "0", "--rate", "none",
                          "--mtu", "9000", "--jitter", "0", "--delay", "20ms", status=0)
        self.assertIn("no rate limit, MTU 9000, IPv4 and IPv6, delay 20 ms (netlab-link)", got.out)
        for role, far in (("client", "2"), ("server", "1")):
            for address in (f"10.77.0.{far}", f"fd77::{far}"):
                since = time.monotonic()
                self.answers(role, address)
                self.assertGreater(time.monotonic() - since, 0.04)
        self.assertRegex(self.netlab("status", status=0).out,
                         r"client to server  [1-9]\d* packets received, [1-9]\d* forwarded")
        self.assertIn("--jitter", self.netlab("set", "--jitter", "21ms", status=2).err)
        pid = self.pid()
        self.netlab("down", status=0)
        self.assertFalse(lib.alive(pid))

    def test_two_paths_with_a_delay(self):
        """Two processes: both are changed, report counters, and are ended."""
        got = self.netlab("up", "--paths", "2", *self.LINE, "--delay", "5ms", status=0)
        self.assertIn("delay 5 ms, on each of 2 paths (netlab-link)\n", got.out)
        self.assertNotIn("running", got.out)
        self.each_leaves_by_its_path()
        got = self.netlab("set", "--delay", "7ms", "--rate", "50mbit", status=0)
        self.assertEqual(len(re.findall(r"(?m)^  path [01], (?:client to server|server to client)  [1-9]\d* packets",
                                        got.out)), 4, got.out)
        both = [self.told(), self.told("control=netlab-link-1")]
        self.assertEqual([(one["plan"]["delay"], one["plan"]["rate"]) for one in both], 2 * [(7_000_000, 50_000_000)])
        # If the second one refuses, the change of the first one is undone.
        with refusing(netlab.link_program(), "*netlab-link-1*delay=9000000*", "no", 1) as fake, mock.patch.dict(
                os.environ, {"NETLAB_LINK": fake}):
            self.netlab("set", "--delay", "9ms", status=1)
        self.assertEqual([self.told(*words)["plan"]["delay"] for words in ((), ("control=netlab-link-1",))],
                         2 * [7_000_000])
        os.kill(both[1]["pid"], signal.SIGKILL)
        self.assertTrue(lib.wait_for(lambda: not lib.run(
            ["ip", "-n", f"netlab-{NAME}-client", "link", "show", "lab1"], 10).out, 5))
        self.assertIn(f"not whole: netlab down --name {NAME}", self.netlab("status", status=1).err)
        self.netlab("down", status=0)
        self.assertFalse(lib.alive(both[0]["pid"]))
        self.nothing_left()

    def test_what_is_not_obeyed(self):
        """A command that is too long, and a process that does not answer."""
        self.netlab("up", *self.LINE, status=0)
        tell = [os.environ.get("NETLAB_LINK") or netlab.link_program(), "tell", f"/run/netns/netlab-{NAME}-server"]
        self.assertEqual(lib.run([*tell, "clear"], 10)[:3], (0, "", ""))
        for count, status in ((100, 1), (1000, 2)):
            got = lib.run([*tell, "set", *(count * ["delay=5000000"])], 10)
            self.assertEqual((got.rc, got.out), (status, ""))
            self.assertIn("too long", got.err)
        self.assertEqual(self.told()["plan"]["delay"], 0)
        pid = self.pid()
        os.kill(pid, signal.SIGSTOP)
        with subprocess.Popen([*tell, "show"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as caller:
            time.sleep(0.5)
            os.kill(pid, signal.SIGKILL)
            self.assertIn("does not answer", caller.communicate(timeout=10)[1])
            self.assertEqual(caller.returncode, 1)
        self.netlab("down", status=0)

    def test_down_ends_both_links(self):
        self.netlab("up", "--paths", "2", *self.LINE, "--delay", "5ms", status=0)
        pids = [self.told(*words)["pid"] for words in ((), ("control=netlab-link-1",))]
        self.assertNotEqual(pids[0], pids[1])
        self.netlab("down", status=0)
        self.assertEqual([pid for pid in pids if lib.alive(pid)], [])

    def train(self, count, *words):
        got = lib.run([netlab.link_program(), "probe", f"from=/run/netns/netlab-{NAME}-client",
                       f"to=/run/netns/netlab-{NAME}-server", "source=10.77.0.1", "target=10.77.0.2",
                       "kind=train", f"count={count}", "gap=50000", *words], 60)
        self.assertEqual(got.rc, 0, got)
        return json.loads(got.out)

    def test_shares_are_exact(self):
        self.netlab("up", *self.LINE, "--rate", "none", "--loss", "1", "--reorder", "2", "--duplicate",
                    "0.5", status=0)
        wanted = {"lost": 40, "duplicated": 20, "reordered": 79}
        # A machine that stands still loses and reorders packets itself.
        for attempt in range(ATTEMPTS):
            time.sleep(attempt)
            got = self.train(4000)
            if all(abs(got[name] - count) <= 2 for name, count in wanted.items()):
                break
        self.assertAlmostEqual(got["lost"], 40, delta=1)
        self.assertAlmostEqual(got["duplicated"], 0.005 * got["arrived"], delta=2)
        self.assertAlmostEqual(got["reordered"], 0.02 * got["arrived"], delta=2)

    def test_the_same_seed_loses_the_same(self):
        seen = set()
        for seed in ("5", "5", "6"):
            self.netlab("up", *self.LINE, "--rate", "none", "--no-ipv6", "--loss", "10", "--seed", seed,
                        status=0)
            seen.add((seed, tuple(self.numbers_that_arrive())))
            self.netlab("down", status=0)
        self.assertEqual(len(seen), 2)
        self.assertEqual(len({numbers for _, numbers in seen}), 2)

    def numbers_that_arrive(self):
        """How many of 200 datagrams from one end to the other arrive."""
        take = ("import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
                "s.bind(('', 7)); s.settimeout(20); print(flush=True)\n"
                "while True:\n n = s.recv(9)\n print(n.decode(), flush=True)\n if n == b'end': break")
        give = ("import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
                "far = ('10.77.0.2', 7)\n"
                "for n in range(200): s.sendto(b'%d' % n, far)\n"
                "for n in range(20): s.sendto(b'end', far)")
        with subprocess.Popen(self.command("exec", "server", sys.executable, "-c", take),
                              stdout=subprocess.PIPE, text=True) as taker:
            taker.stdout.readline()
            self.netlab("exec", "client", sys.executable, "-c", give, status=0)
            return taker.communicate(timeout=30)[0].split()

    def test_delay(self):
        self.netlab("up", *self.LINE, "--delay", "10ms", "--rate", "none", status=0)
        for attempt in range(ATTEMPTS):     # a machine that is busy with other tests is sometimes late
            time.sleep(attempt)
            got = self.train(500, "gap=1000000")["delay_us"]
            if got["p50"] < 10_200:
                break
        self.assertGreaterEqual(got["min"], 10_000)
        self.assertLess(got["p50"], 10_200, got)

    def test_kill_of_a_check(self):
        """Measuring stops with netlab."""
        self.netlab("up", status=0)
        # Packets that fill one end's MTU do not arrive at the other, and are waited for.
        lib.run(["ip", "-n", f"netlab-{NAME}-client", "link", "set", "lab0", "mtu", "9000"], 10)
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
            proc = subprocess.Popen(self.command("check"), stdout=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL)
            self.assertTrue(lib.wait_for(self.probes, 10))
            proc.send_signal(number)
            proc.wait(10)
            self.assertTrue(lib.wait_for(lambda: not self.probes(), 2), number)

    def test_a_probe_whose_netlab_is_gone(self):
        """It ends by itself: netlab was killed before the probe could set its parent-death signal."""
        self.netlab("up", status=0)
        ends = [f"{name}=/run/netns/netlab-{NAME}-{role}" for name, role in (("from", "client"), ("to", "server"))]
        for parent, status in ((os.getpid(), 0), (2, 1)):
            with subprocess.Popen([netlab.link_program(), "probe", *ends, "source=10.77.0.1", "target=10.77.0.2",
                                   "kind=train", "device=lab0", f"parent={parent}"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as probe:
                self.assertEqual(probe.wait(20), status, parent)

    def probes(self):
        return [pid for role in netlab.ROLES for pid in netlab.Lab(NAME).processes(role)]

    def test_kill_of_the_link(self):
        self.netlab("up", *self.LINE, "--delay", "1ms", status=0)
        os.kill(self.pid(), signal.SIGKILL)
        self.assertTrue(lib.wait_for(lambda: not lib.run(
            ["ip", "-n", f"netlab-{NAME}-client", "link", "show", "lab0"], 10).out, 5))
        for verb in ("status", "check"):
            got = self.netlab(verb, status=1)
            self.assertIn(f"not whole: netlab down --name {NAME}", got.err)
        self.netlab("down", status=0)
        self.nothing_left()

    def test_the_link_ends_with_the_names(self):
        self.netlab("up", *self.LINE, "--delay", "1ms", status=0)
        pid = self.pid()
        lib.run(["ip", "netns", "delete", f"netlab-{NAME}-client"], 10)
        self.assertTrue(lib.wait_for(lambda: not lib.alive(pid), 10))

    def test_kill_of_up(self):
        self.kill_up(*self.LINE)

    def refused(self, link, *args):
        """The error line of an up with another netlab-link."""
        with mock.patch.dict(os.environ, {"NETLAB_LINK": link}):
            got = self.netlab("up", *args, status=1)
        self.assertEqual(got.err.count("\n"), 1, got.err)
        self.nothing_left()
        return got.err

    def test_without_tun_or_the_program(self):
        self.assertIn("or name it in NETLAB_LINK",
                      self.refused("/nowhere/netlab-link", *self.LINE))
        with tempfile.TemporaryDirectory() as place:
            fake = Path(place, "netlab-link")
            fake.write_text("#!/bin/sh\necho 'netlab-link: open /dev/net/tun: No such file or directory' "
                            ">&2\nexit 1\n")
            fake.chmod(0o755)
            self.assertIn("try modprobe tun", self.refused(str(fake), *self.LINE))

    def test_strangers_cannot_command_it(self):
        self.netlab("up", *self.LINE, status=0)
        script = ("import os, socket; os.setuid(65534); s = socket.socket(socket.AF_UNIX, "
                  "socket.SOCK_SEQPACKET); s.settimeout(5); s.connect('\\0netlab-link'); "
                  "s.send(b'set loss=1000000000'); print(len(s.recv(100)))")
        got = lib.run(self.command("exec", "server", sys.executable, "-c", script), 20)
        self.assertTrue(got.out.strip() == "0" or "ConnectionReset" in got.err or "BrokenPipe" in got.err, got)
        self.assertNotIn("loss", self.netlab("status", status=0).out)

    def test_words_that_are_none(self):
        program = netlab.link_program()
        for words, status in ((["run", "device=x"], 2), (["run", "foo=1"], 2), (["tell", "/x"], 2),
                              (["tell", "/x", "control=x"], 2), (["tell", "/x", "control=x", "show"], 1),
                              (["tell", "/nowhere", "show"], 1), (["probe", "kind=x"], 2), ([], 2),
                              (["run", "device=lab0", "one=/nowhere", "two=/nowhere"], 1)):
            got = lib.run([program, *words], 10)
            self.assertEqual(got.rc, status, (words, got))
            self.assertEqual(got.out, "")
            self.assertNotEqual(got.err, "")


def main() -> None:
    if OBSTACLE or NO_LINE:
        what = "the labs themselves" if OBSTACLE else "links of netlab-link"
        print(f"SKIP: {what}: {OBSTACLE or NO_LINE}", flush=True)
    lib.unit_main()


if __name__ == "__main__":
    main()
