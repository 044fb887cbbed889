#!/usr/bin/env python3
"""Tests of scripts/netlab: its arithmetic, and as root the labs it builds and removes."""

import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

import lib

sys.dont_write_bytecode = True  # or scripts/ would get a __pycache__
NAME = f"t{os.getpid()}"
OBSTACLE = lib.no_lab()


def load_netlab():
    loader = importlib.machinery.SourceFileLoader("netlab", lib.NETLAB)
    spec = importlib.util.spec_from_loader("netlab", loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules["netlab"] = module  # where dataclasses look
    loader.exec_module(module)
    return module


netlab = load_netlab()


def refusal(*args: str) -> "tuple[int, str]":
    """Status and words of a netlab run within this process."""
    err = io.StringIO()
    with contextlib.redirect_stderr(err):
        try:
            status = netlab.main(list(args))
        except SystemExit as end:
            status = end.code
    return status, err.getvalue()


class Arithmetic(unittest.TestCase):
    def test_rate(self):
        for text, bits in (("100mbit", 100_000_000), ("2.5gbit", 2_500_000_000),
                           ("500kbit", 500_000), ("64KBIT", 64_000), ("none", None)):
            self.assertEqual(netlab.parse_rate(text), bits, text)
        for text in ("", "100", "100mb", "-1mbit", "1e9", "mbit", "1kbit", "101gbit", "0mbit",
                     "100mbit ", "1.mbit", "nonesuch"):
            with self.assertRaisesRegex(netlab.UsageError, r"^--rate .*\(", msg=text):
                netlab.parse_rate(text)

    def test_mtu(self):
        for text in ("256", "1500", "9000"):
            self.assertEqual(netlab.parse_mtu(text), int(text))
        for text in ("255", "9001", "x", "", "-1", "1500.0", "99999999999999999999"):
            with self.assertRaisesRegex(netlab.UsageError, "^--mtu ", msg=text):
                netlab.parse_mtu(text)

    def test_name(self):
        for name in ("plumb", "a-client", "_x.1", "x" * 32):
            self.assertEqual(netlab.check_name(name), name)
        for name in ("", "-x", ".x", "a b", "a/b", "x" * 33, "é", "a\n"):
            with self.assertRaisesRegex(netlab.UsageError, "^--name ", msg=name):
                netlab.check_name(name)

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

    def test_bucket_and_queue(self):
        self.assertEqual((netlab.Link().burst(), netlab.Link().limit()), (10000, 300000))
        for rate in (64_000, 10**6, 10**8, 10**9, 10**11):
            for mtu in (256, 1280, 1500, 9000):
                for framing in (True, False):
                    link = netlab.Link(rate, mtu, framing)
                    self.assertGreaterEqual(link.burst(), 2 * link.cost(mtu))
                    self.assertGreaterEqual(link.burst(), rate / 8 * 0.0007)
                    self.assertGreaterEqual(link.limit(), 32 * link.cost(mtu))
                    self.assertGreater(link.gso_max_size(), mtu + 320)

    def test_size_table_has_an_entry_for_every_length(self):
        for mtu in (256, 1500, 2010, 2011, 9000):
            link = netlab.Link(mtu=mtu)
            words = link.stab()
            table = int(words[words.index("tsize") + 1])
            self.assertGreater(table, link.cost(mtu))
            self.assertEqual(int(words[words.index("mtu") + 1]), table - 1)
        self.assertEqual(netlab.Link(framing=False).stab(), ["stab", "overhead", "-14"])


class Refusals(unittest.TestCase):
    """One line on stderr, and what to do about it; none of these needs root."""

    def check(self, args, status, words, **patches):
        with contextlib.ExitStack() as stack:
            for target, value in {"geteuid": 0, **patches}.items():
                where = "os.geteuid" if target == "geteuid" else "shutil.which"
                stack.enter_context(mock.patch(where, return_value=value))
            stack.enter_context(mock.patch.dict(os.environ))
            got, said = refusal(*args)
        self.assertEqual(got, status, said)
        self.assertEqual(said.count("\n"), 1, said)
        self.assertTrue(said.startswith("netlab: "), said)
        self.assertIn(words, said)

    def test_not_root(self):
        for command in (["up"], ["down"], ["status"], ["exec", "client", "true"]):
            self.check(command, 1, "sudo", geteuid=1000)

    def test_no_ip(self):
        self.check(["up"], 1, "install iproute2", which=None)

    def test_values(self):
        for args, words in ((["up", "--rate", "5x"], "try 100mbit"), (["up", "--mtu", "9"], "256"),
                            (["up", "--framing", "x"], "'ethernet'"), (["up", "--foo"], "--foo"),
                            (["up", "--name", "a/b"], "letters"), ([], "COMMAND"),
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
        left = [n for n in os.listdir("/run/netns") if n.startswith(f"netlab-{NAME}-")]
        self.assertEqual(left, [])
        self.assertEqual(set(os.listdir("/sys/class/net")), self.devices)

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
        """Whether the far end refuses a connection, as one that is there does."""
        script = ("import errno, socket, sys; s = socket.socket(socket.AF_INET6 if ':' in "
                  "sys.argv[1] else socket.AF_INET); s.settimeout(5); "
                  "sys.exit(s.connect_ex((sys.argv[1], 1)) != errno.ECONNREFUSED)")
        self.netlab("exec", role, sys.executable, "-c", script, address, status=0)

    def queue(self, role):
        got = lib.run(["tc", "-n", f"netlab-{NAME}-{role}", "-j", "-d", "qdisc", "show", "dev",
                       "lab0"], timeout=10)
        return json.loads(got.out)[0]

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
            tc.write_text("#!/bin/sh\necho 'Error: Specified qdisc kind is unknown.' >&2\nexit 2\n")
            tc.chmod(0o755)
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
                if status == 0:  # the signal came too late: then the lab is up
                    self.netlab("status", status=0)
                    self.netlab("down", status=0)
                else:
                    self.assertIn(status, (143, -signal.SIGTERM))
                self.nothing_left()

    def test_down_after_a_kill_of_up(self):
        for delay in (0.06, 0.08, 0.1, 0.12, 0.14):
            with self.subTest(delay=delay):
                self.interrupt(signal.SIGKILL, delay)
                time.sleep(0.2)  # the `ip` it may have started outlives it
                self.netlab("down", status=0)
                self.nothing_left()

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
        self.assertFalse(self.lives(orphan))
        self.nothing_left()

    def lives(self, pid):
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except FileNotFoundError:
            return False

    def test_two_labs_at_a_time(self):
        self.netlab("up", status=0)
        other = f"{NAME}-b"
        self.addCleanup(lib.run, [lib.NETLAB, "down", "--name", other], 30)
        self.assertEqual(lib.run([lib.NETLAB, "up", "--name", other], 30).rc, 0)
        self.netlab("down", status=0)
        self.assertEqual(lib.run([lib.NETLAB, "status", "--name", other], 30).rc, 0)
        self.assertEqual(lib.run([lib.NETLAB, "down", "--name", other], 30).rc, 0)


def main() -> int:
    if OBSTACLE:
        print(f"SKIP: the labs themselves: {OBSTACLE}", flush=True)
    result = unittest.main(exit=False, verbosity=2).result
    if not result.wasSuccessful():
        return 1
    return 77 if len(result.skipped) == result.testsRun else 0


if __name__ == "__main__":
    sys.exit(main())
