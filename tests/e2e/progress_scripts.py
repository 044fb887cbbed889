"""What netsweep, netgate, netlab check and netreport show while they run on a terminal of known size: a line that is
redrawn, erased at the end, and not part of the remaining output; without a terminal, plain lines.
"""

import os
import re
import shlex
import signal
import sys
import time
import unittest
from pathlib import Path

import lib
from netkit import progress, python, results
from terminal import PATIENCE, OnTerminal

ERASE = progress.ERASE
ROWS, COLUMNS = 40, 100
BRIEF = "[constants]\ntest = 'TCP_RR'\nlength = -300\n[axes]\nsize = [64, 128, 256]\n"
PACE = " ".join(lib.PACED)
SECONDS = f"[constants]\ntest = 'TCP_RR'\nlength = 3\noptions = '{PACE}'\n[axes]\nsize = [64, 128]\n"
LONG = f"[constants]\ntest = 'TCP_RR'\noptions = '{PACE}'\n[axes]\nlength = [1, 600]\n"  # the second run ends when it is interrupted
LAB = f"progress{os.getpid()}"
NO_LAB = lib.no_lab()


def settings(**more):
    """The environment of a terminal."""
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "LINES")}
    return {**kept, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **more}


class Terminal(OnTerminal):
    def __init__(self, command, place, columns=COLUMNS, **more):
        super().__init__(command, ROWS, columns, settings(**more), place)

    def until(self, pattern):
        """Read until a pattern has appeared."""
        self.read_until(lambda: re.search(pattern, self.raw), repr(pattern))

    def end(self):
        """The exit status, and the lines that remain."""
        return self.rest(), self.lines()

    def lines(self):
        found = [line.rstrip() for line in self.screen.display]
        while found and not found[-1]:
            found.pop()
        return found

    def drawn(self):
        """Each line that was drawn, in order, without colours; "" where it was erased."""
        parts = self.raw.split(ERASE)[1:]
        return [re.sub(r"\x1b\[[0-9;]*m", "", part.partition("\r")[0].partition("\n")[0]) for part in parts]


class Showing(lib.InPlace):
    def plan(self, text, name="p.toml"):
        Path(self.place, name).write_text(text)
        return name

    def command(self, script, *words):
        programs = ["--netperf", lib.netperf(), "--netserver", lib.netserver()]
        return [sys.executable, str(lib.SCRIPTS / script), *words, *(programs if script in ("netsweep", "netgate") else [])]

    def sweep(self, *words):
        return self.command("netsweep", self.plan(BRIEF), "--local", "--output", "o.jsonl", "--force", *words)

    def gate(self, *words):
        return self.command("netgate", "--local", "--test", "TCP_RR", "--slot", "1", "--no-learn", f"--a={PACE} -- -r 1",
                            f"--b={PACE} -- -r 1", "--seed", "1", *words)

    def clean(self, terminal, lines):
        """The line is gone from the screen."""
        self.assertTrue(any(terminal.drawn()), terminal.raw)
        self.assertEqual([line for line in lines if re.search(r"to go|[━╸╺]", line)], [], lines)
        self.assertNotRegex(terminal.raw, r"\x1b\[\?25l")       # the cursor was never hidden

    def piped(self, command, **more):
        with lib.Started(command, cwd=self.place, env=settings(**more)) as started:
            got = started.finish(PATIENCE)
        self.assertEqual(got.rc, 0, got)
        return got


class Sweep(Showing):
    def test_drawn_redrawn_gone(self):
        with Terminal(self.sweep(), self.place) as terminal:
            status, lines = terminal.end()
        self.assertEqual(status, 0, lines)
        self.clean(terminal, lines)
        counts = re.findall(r"(\d)/3, about [^|]*? to go: (\S+)", "\n".join(terminal.drawn()))
        self.assertEqual([one for one, word in counts if word.startswith("size=")], sorted(one for one, word in counts))
        self.assertLessEqual({("0", "size=64"), ("1", "size=128"), ("2", "size=256")}, set(counts))
        self.assertRegex("\n".join(terminal.drawn()), r"size=128 #1 \| size=64 #1: [\d.]+ Trans/s")
        self.assertIn("3 runs ok, 0 failed: o.jsonl", lines)
        self.assertIn("expected to take", "\n".join(lines))

    def test_time_passes_within_a_run(self):
        command = self.command("netsweep", self.plan(SECONDS), "--local", "--output", "o.jsonl")
        with Terminal(command, self.place) as terminal:
            terminal.until(r"1/2,")
            first = [re.findall(r"about (\d+) s to go", line)[0] for line in terminal.drawn() if "0/2," in line]
            terminal.child.sendintr()
            terminal.end()
        self.assertGreater(len(set(first)), 1, first)
        self.assertEqual(first, sorted(first, key=int, reverse=True))

    def test_a_failure_stays(self):
        text = BRIEF + "[before]\nsize = 'test {value} -ne 128'\n"
        command = self.command("netsweep", self.plan(text), "--local", "--output", "o.jsonl")
        with Terminal(command, self.place) as terminal:
            status, lines = terminal.end()
        self.assertEqual(status, 1, lines)
        self.clean(terminal, lines)
        self.assertEqual(sum(line.startswith("2/3 size=128 #1: FAILED: ") for line in lines), 1, lines)

    def test_ctrl_c(self):
        command = self.command("netsweep", self.plan(LONG), "--local", "--output", "o.jsonl")
        with Terminal(command, self.place) as terminal:
            terminal.until(r"1/2,[^\r]*length=600 #1")
            terminal.child.sendintr()
            status, lines = terminal.end()
        self.assertEqual(status, 130, lines)
        self.clean(terminal, lines)
        self.assertNotIn("^C", "".join(lines))
        self.assertRegex(" ".join(lines), r"netsweep: interrupted: netsweep --resume --output o.jsonl .*goes on$")
        self.assertEqual(len(results.read(f"{self.place}/o.jsonl").runs), 1)

    def test_without_a_terminal(self):
        got = self.piped(self.sweep())
        lines = got.err.splitlines()
        self.assertEqual([line.split(":")[0] for line in lines],
                         ["1/3 size=64 #1", "2/3 size=128 #1", "3/3 size=256 #1"], got.err)
        self.assertNotIn("\x1b", got.err + got.out)
        self.assertEqual(self.piped(self.sweep("--progress", "never")).err, "")
        got = self.piped(self.sweep("--progress", "always"))
        self.assertTrue(got.err.endswith(ERASE.lstrip()) and "3/3" in got.err, got.err)
        self.assertNotIn("\x1b", got.out)

    def test_terminals_that_are_told_to_be_plain(self):
        for more, words in ((dict(TERM="dumb"), ()), ({}, ("--progress", "plain"))):
            with Terminal(self.sweep(*words), self.place, **more) as terminal:
                status, lines = terminal.end()
            self.assertEqual(status, 0, lines)
            self.assertNotIn("\x1b", terminal.raw)
            self.assertIn("3/3 size=256 #1: ", "\n".join(lines))
        with Terminal(self.sweep(), self.place, NO_COLOR="1") as terminal:
            status, lines = terminal.end()
        self.clean(terminal, lines)
        self.assertNotRegex(terminal.raw, r"\x1b\[[0-9;]*m")
        with Terminal(self.sweep("--progress", "never"), self.place) as terminal:
            status, lines = terminal.end()
        self.assertNotIn("3/3", terminal.raw)

    def test_ctrl_z(self):
        """A shell with job control stops it, and it continues."""
        with Terminal(["bash", "--norc", "--noprofile", "-i"], self.place, columns=400) as terminal:
            terminal.child.sendline(shlex.join(self.command("netsweep", self.plan(LONG), "--local", "--output",
                                                            "o.jsonl")))
            terminal.until("to go")
            terminal.child.sendcontrol("z")
            terminal.until(r"Stopped(.|\n)*[#$] $")      # the shell's prompt: before that, input may be lost
            self.clean(terminal, [line for line in terminal.lines() if "Stopped" not in line])
            time.sleep(2 * progress.EVERY)      # now an update is overdue
            terminal.raw = ""
            terminal.child.sendline("fg")
            terminal.until("to go")
            terminal.child.sendintr()
            terminal.until("interrupted|ended")
            terminal.child.sendline("exit")
            _, lines = terminal.end()
        self.clean(terminal, lines)

    def test_a_narrow_one(self):
        for columns in (30, 16):
            with Terminal(self.sweep(), self.place, columns=columns) as terminal:
                _, lines = terminal.end()
            self.clean(terminal, lines)
            self.assertLessEqual(max(len(line) for line in terminal.drawn() if "/3" in line), columns - 3)

    def test_without_rich(self):
        Path(self.place, "rich").mkdir()
        Path(self.place, "rich/__init__.py").write_text("raise ImportError('no rich')\n")
        with Terminal(self.sweep(), self.place, PYTHONPATH=self.place) as terminal:
            status, lines = terminal.end()
        self.assertEqual(status, 0, lines)
        self.assertNotIn("\x1b", terminal.raw)
        self.assertIn("3/3 size=256 #1: ", "\n".join(lines))
        with Terminal(self.sweep("--progress", "always"), self.place, PYTHONPATH=self.place) as terminal:
            _, lines = terminal.end()
        self.assertIn("rich.progress_bar, which is installed and cannot be imported: no rich", "".join(lines))


class Gate(Showing):
    def test_drawn_and_gone(self):
        with Terminal(self.gate("--budget", "4"), self.place, columns=160) as terminal:
            status, lines = terminal.end()
        self.assertIn(status, (0, 1, 77), lines)
        self.clean(terminal, lines)
        shown = "\n".join(terminal.drawn())
        self.assertRegex(shown, r"\d/4 s, at most \d s to go: tcp_rr [AB]")
        self.assertRegex(shown, r"tcp_rr [AB] \| tcp_rr [AB]: [\d.]+ trans/s|to go: tcp_rr [AB]: [\d.]+ trans/s")
        self.assertTrue(any(line.startswith("B against A") for line in lines), lines)

    def test_ctrl_c(self):
        with Terminal(self.gate("--budget", "600"), self.place, columns=160) as terminal:
            terminal.until(r"trans/s")
            terminal.child.sendintr()
            status, lines = terminal.end()
        self.assertEqual(status, 130, lines)
        self.clean(terminal, lines)
        self.assertNotIn("^C", "".join(lines))
        self.assertIn("ended early: ended by signal 2", lines)

    def test_a_gate_that_fails(self):
        """Messages on stderr have a line of their own."""
        command = self.gate("--budget", "60", "--before-b", "false", "--after-b", "true")
        with Terminal(command, self.place, columns=160) as terminal:
            status, lines = terminal.end()
        self.assertEqual(status, 1, lines)
        self.clean(terminal, lines)
        self.assertTrue(any(line.startswith("netgate: ") and "in a row failed" in line for line in lines), lines)

    def test_without_a_terminal(self):
        for words, shown in (((), True), (("--progress", "never"), False)):
            with lib.Started(self.gate("--budget", "4", *words), cwd=self.place, env=settings()) as started:
                got = started.finish(PATIENCE)
            self.assertIn(got.rc, (0, 1, 77), got)
            self.assertNotIn("\x1b", got.err + got.out)
            self.assertEqual("/4 s  tcp_rr " in got.err, shown, got.err)


@unittest.skipIf(NO_LAB, NO_LAB)
class Check(Showing):
    @classmethod
    def setUpClass(cls):
        cls.addClassCleanup(lib.run, [lib.NETLAB, "down", "--name", LAB], 60)
        lib.must([lib.NETLAB, "up", "--name", LAB])

    def test_drawn_and_gone(self):
        with Terminal(self.command("netlab", "check", "--name", LAB), self.place) as terminal:
            status, lines = terminal.end()
        self.assertIn(status, (0, 1), lines)    # a busy machine spoils a link
        self.clean(terminal, lines)
        told = re.findall(r"(\d)/6, about \S+ \w+ to go: measuring (\w+)", "\n".join(terminal.drawn()))
        self.assertEqual(list(dict.fromkeys(told)), list(zip("012345", ("mtu", "ipv6", "packets", "rate", "delay",
                                                                       "loss"))))
        stays = [line.split()[1] for line in lines if re.match("  (ok|off) ", line)]
        self.assertEqual(stays, ["mtu", "ipv6", "packets", "rate", "delay", "loss", "reorder", "duplicate"])

    def test_signals(self):
        for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)):
            for _ in range(3):
                with Terminal(self.command("netlab", "check", "--name", LAB), self.place) as terminal:
                    terminal.until("measuring rate")
                    terminal.child.kill(number)
                    got, lines = terminal.end()
                if not any("Exception ignored" in line for line in lines):  # Python loses one that arrives in a hook of fork()
                    break
            self.assertEqual(got, status, lines)
            self.clean(terminal, lines)
            self.assertRegex("\n".join(lines), "(ok|off) +mtu ")

    def test_without_a_terminal(self):
        with lib.Started(self.command("netlab", "check", "--name", LAB), env=settings()) as started:
            got = started.finish(PATIENCE)
        self.assertNotIn("\x1b", got.err + got.out)
        self.assertEqual([line for line in got.err.splitlines() if not re.match(
            r"netlab: (\d/6, about .* to go: measuring \w+|lab .* not what was asked)", line)], [])


class Report(Showing):
    made = b""      # results for all tests

    @classmethod
    def setUpClass(cls):
        made = cls("piped")
        made.setUp()
        cls.addClassCleanup(made.doCleanups)
        made.piped(made.sweep())
        cls.made = Path(made.place, "o.jsonl").read_bytes()

    def setUp(self):
        super().setUp()
        Path(self.place, "o.jsonl").write_bytes(self.made)

    def test_drawn_and_gone(self):
        for words in (["--progress", "always"], ["--progress", "always", "--html", "o.html"]):
            with Terminal(self.command("netreport", "o.jsonl", *words), self.place) as terminal:
                status, lines = terminal.end()
            self.assertEqual(status, 0, lines)
            self.clean(terminal, lines)
            shown = "\n".join(terminal.drawn())
            self.assertIn("reading o.jsonl", shown)
            self.assertEqual("drawing" in shown, "--html" in words, shown)
            self.assertEqual(any("THROUGHPUT" in line for line in lines), "--html" not in words, lines)

    def test_signals(self):
        """A report may be finished already: then its status is 0."""
        command = self.command("netreport", "o.jsonl", "--progress", "always", "--html", "o.html")
        for number, wanted in ((signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)):
            with Terminal(command, self.place) as terminal:
                terminal.until("drawing")
                terminal.child.kill(number)
                status, lines = terminal.end()
            self.assertIn(status, (0, wanted), lines)
            self.clean(terminal, lines)
            self.assertEqual(lines, ["netreport: interrupted"] if status == 130 else [])

    def test_without_a_terminal(self):
        """Short operations print nothing."""
        got = self.piped(self.command("netreport", "o.jsonl"))
        self.assertNotIn("\x1b", got.out + got.err)
        self.assertRegex(got.err, r"^(netreport: \d+/\d+.*\n)*$")
        got = self.piped(self.command("netreport", "o.jsonl", "--progress", "never"))
        self.assertEqual(got.err, "")


class Lines(unittest.TestCase):
    """The line itself."""

    def test_text(self):
        state = progress.State(2, 12, "size=64\x1b[31m\n", 250, 10)
        self.assertEqual(state.text(), "2/12, about 4 min 10 s to go: size=64?[31m?")
        self.assertEqual(state.later(5).text(), "2/12, about 4 min 05 s to go: size=64?[31m?")
        self.assertEqual((state.later(5).done, state.later(500).done), (2.5, 2.99))
        self.assertEqual(state.later(500).left, 0.0)
        gate = progress.State(10, 60, "", 50, 50, 50, "s", "at most")
        self.assertEqual(gate.later(20).text(), "30/60 s, at most 30 s to go")
        self.assertEqual(gate.later(90).text(), "60/60 s, at most 0 s to go")
        self.assertEqual(progress.State(0, 3).text(), "0/3")


def main() -> None:
    lib.needs("rich.progress_bar")
    if not any(python.has(sys.executable, module) for module in ("tomllib", "tomli")):
        lib.skip("this Python reads no TOML: python3-tomli is missing")
    lib.wants("scipy.special")
    lib.netperf(), lib.netserver()
    lib.unit_main()


if __name__ == "__main__":
    main()
