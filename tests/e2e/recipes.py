"""Runs the commands of README.md, doc/cookbook.md and the examples of manual pages, and holds their output against what
stands there.

    recipes.py [--show] [PATTERN...]

PATTERN picks blocks with a command that contains it; --show prints what each one wrote.

What is run: the code blocks, fenced or indented by four blanks. Where lines of a block begin with "$ ", these
are its commands, and what follows is the output; else every line is a command. "   # ..." behind a command is
a comment. The commands of a block run one after the other, in one directory for a whole file, by bash.

An HTML comment before a block says more of it:

    <!-- recipe: lab --delay 10ms -->    run in a netlab of 100 Mbit/s and these options
    <!-- recipe: words vary: why -->     of the output, its first word that is no figure and the status count
    <!-- recipe: not run: why -->        skipped, with the reason
    <!-- recipe: output -->              no command: something else that is shown

Several are joined by "; ". NOT_RUN has what is not run anywhere, and why.

The output is compared in shape: the same words in the same columns of the same lines, and a figure where there
is one. A line "..." stands for any lines, "..." at a line's end for any words. A table of one column more or
less is another shape.

HOST is replaced by where a daemon of ours listens: on loopback, or at the lab's other end. A line that begins
with netserver starts another one, for the rest of its block. What takes time is shortened by shortened().
"""

import inspect
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Tuple

import lib
from netkit.python import SYSTEM_PYTHON, has

FILES = ("README.md", "doc/cookbook.md")
PAGES = ("netperf.1", "netserver.1")
QUESTIONS = len(re.findall(r"^## ", (lib.TOP / "doc/cookbook.md").read_text(), re.M))
LAB = f"recipes{os.getpid() % 10000}"
LAB_PORT, LAB_HOST = 12865, "10.77.0.2"
PATIENCE = 120
COMMENT = r"\s+# .*"
PROGRAMS = ("netlab", "netsweep", "netreport", "netgate", "netmesh")

# Commands that would build these programs, or measure for minutes.
NOT_RUN = (
    (r"\bgit clone\b|scripts/(quickstart|test)\b|autogen\.sh|\bmake\b|\bapt(-get)?\b|\bdpkg\b",
     "CI's jobs build and install"),
    (r"\bnetgate\b(?!.*--budget 1?[1-9]\b).*--(host|local)\b", "it measures for minutes: netgate_test.py runs it"),
    (r"\bnetsweep lab-buffers\b(?!.*--set size=)", "it measures for minutes: netsweep_long.py runs it"),
    (r"\bnetreport (?!fig\.)[\w./-]+\.jsonl", "it needs the results of a sweep: netreport_test.py has some"),
    (r"\bnetlab check\b", "it measures for a minute: netlab_long.py runs it"),
    (r"\bnetvm\b|install-needed", "it starts a virtual machine: netvm_test.py does"),
    (r"\bsystemctl\b|\bjournalctl\b", "it is about this machine's services"),
)
# Options with which netperf runs no test.
NO_TEST = ("--preflight", "--help", "--version", "--ceiling", "--list-figures", "-h", "-V", "--clean")


# ---- the documents ------------------------------------------------------------------------------

class Command(NamedTuple):
    text: str
    output: Optional[List[str]]  # None: none is shown


class Block(NamedTuple):
    where: str
    marks: Dict[str, str]
    commands: List[Command]


def marks_of(line: str) -> Dict[str, str]:
    """Parse "lab --loss 1; words vary: why" into {"lab": "--loss 1", "words vary": "why"}."""
    found = {}
    for mark in re.fullmatch(r"<!-- recipe: (.*) -->", line)[1].split("; "):
        name = next((name for name in ("lab", "words vary", "not run", "output") if mark.startswith(name)), None)
        if name is None or name in ("words vary", "not run") and not mark[len(name) + 1:].strip():
            raise ValueError(f"no mark such as {line}")
        found[name] = mark[len(name):].lstrip(": ")
    return found


def commands_of(lines: List[str]) -> List[Command]:
    if not any(line.startswith("$ ") for line in lines):
        return [Command(re.sub(COMMENT, "", line), None) for line in lines if line.strip()]
    found: List[Command] = []
    for line in lines:
        if line.startswith("$ "):
            found.append(Command(re.sub(COMMENT, "", line[2:]), []))
        elif found and found[-1].text.endswith("\\"):
            found[-1] = Command(found[-1].text[:-1] + line.strip(), [])
        elif found:
            found[-1].output.append(line.rstrip())
    return found


def blocks_of(name: str) -> List[Block]:
    found: List[Block] = []
    marks: Dict[str, str] = {}
    inside, fenced, at = [], False, 0

    def end() -> None:
        nonlocal marks, inside
        while inside and not inside[-1].strip():
            inside.pop()
        if inside and "output" not in marks:
            found.append(Block(f"{name}:{at}", marks, commands_of(inside)))
        if inside:
            marks, inside = {}, []

    text = (lib.TOP / name).read_text().splitlines()
    for number, line in enumerate([*text, ""], 1):
        if line.startswith("```"):
            end()
            fenced, at = not fenced, number
        elif fenced:
            inside.append(line)
        elif line.startswith("    ") and (inside or not text[number - 2].strip()):
            at = at if inside else number
            inside.append(line[4:])
        elif inside and not line.strip():
            inside.append("")
        else:
            end()
            marks = marks_of(line) if line.startswith("<!-- recipe:") else marks if not line.strip() else {}
    end()
    return found


def examples_of(page: str) -> List[Block]:
    """Those between .EX and .EE, with our daemon in place of the page's; a client for each daemon."""
    found: List[Block] = []
    text = re.sub(r"\\f.|\\(?=-)", "", lib.page(page).read_text().partition("\n.SH EXAMPLES\n")[2].partition("\n.SH ")[0])
    for words, new in (("server.example.net,inet6", "::1,inet6"), ("server.example.net", "HOST"), ("192.0.2.1", "127.0.0.1"),
                       (" -T 1,1", " -T 0,0")):
        text = text.replace(words, new)
    for example in re.findall(r"(?ms)^\.EX\n(.*?)^\.EE$", text):
        client = ["netperf -H HOST -t TCP_RR"] * example.startswith("netserver")
        found.append(Block(page, {}, commands_of([*example.splitlines(), *client])))
    return found


# ---- commands -----------------------------------------------------------------------------------

def shortened(words: List[str], port: str) -> List[str]:
    """netperf's arguments changed to a short test, at the port of our daemon."""
    own = words.index("--") if "--" in words else len(words)
    mine, behind = list(words[:own]), words[own:]
    length = "3" if "--latency" in mine else "0.5"      # its P99 takes some hundred transactions
    for letter, value in (("-l", length), ("-i", "3,3"), ("-p", port), ("--clean", "1"), ("--flows", "")):
        if letter in mine and not mine[mine.index(letter) + 1].startswith("-"):
            at = mine.index(letter) + 1
            mine[at] = value or str(min(100, int(mine[at])))
    if "-I" in mine and "-i" not in mine:
        mine[:0] = ["-i", "3,3"]
    if "-l" not in mine and not any(word.partition("=")[0] in NO_TEST for word in mine):
        mine[:0] = ["-l", length]
    return ["-p", port, *mine, *behind]


# A wrapper for netperf in a command's PATH: it is started often, so it imports next to nothing.
AS_NETPERF = f"""#!{sys.executable} -ISB
from __future__ import annotations
import os
import sys

NO_TEST = {NO_TEST!r}


{inspect.getsource(shortened)}

os.execv({lib.netperf()!r}, ["netperf", *shortened(sys.argv[1:], os.environ["RECIPES_PORT"])])
"""


def make_programs(place: Path) -> None:
    """The programs in PATH, and as scripts/NAME in the commands' directory."""
    (place / "bin").mkdir()
    (place / "scripts").symlink_to("bin")
    lib.executable(place / "bin/netperf", AS_NETPERF)
    lib.executable(place / "bin/netserver", f"#!/bin/sh\nexec {shlex.quote(lib.netserver())} \"$@\"\n")
    for name in PROGRAMS:
        lib.executable(place / "bin" / name, f"#!/bin/sh\nexec {shlex.quote(str(lib.TOP / 'scripts' / name))} \"$@\"\n")
    lib.executable(place / "bin/netlab", "#!/bin/sh\n# The lab of this run alone.\nverb=$1; shift\n"
                                f"export RECIPES_PORT={LAB_PORT}\n"
                                f"exec {shlex.quote(lib.NETLAB)} \"$verb\" --name own{LAB} \"$@\"\n")
    lib.executable(place / "bin/sudo", "#!/bin/sh\nexec \"$@\"\n")


# ---- shapes -------------------------------------------------------------------------------------

NUMBER = r"[-+]?\d[\d.]*(?:e[-+]?\d+)?"
UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"


def pattern_of(word: str) -> str:
    """A pattern for the word with other figures."""
    parts = re.split(rf"({UUID}|{NUMBER})", word)
    number = f"(?:{NUMBER}|inf)" if "_LATENCY=" in word else NUMBER     # of requests that a busy machine did not answer
    return "".join((UUID if re.fullmatch(UUID, part) else number) if i % 2 else re.escape(part)
                   for i, part in enumerate(parts))


def line_fits(shown: str, line: str) -> bool:
    words = shown.split()
    open_end = len(words) > 1 and words[-1] == "..."
    pattern = r"\s+".join(pattern_of(word) for word in (words[:-1] if open_end else words))
    return re.fullmatch(r"\s*" + pattern + (r"\s.*" if open_end else r"\s*"), line) is not None


def misfit(shown: List[str], lines: List[str]) -> Optional[str]:
    """The first line shown that no output matches; None if all match in order and there are no other lines."""
    shown = [line for line in shown if line.strip()]
    lines = [line for line in lines if line.strip()]
    at, any_lines = 0, False
    for line in shown:
        if line.strip() == "...":
            any_lines = True
            continue
        while any_lines and at < len(lines) and not line_fits(line, lines[at]):
            at += 1
        if at == len(lines) or not line_fits(line, lines[at]):
            return f"{line!r} is not {lines[at] if at < len(lines) else 'there'!r}"
        at, any_lines = at + 1, False
    return None if at == len(lines) or any_lines else f"and then {lines[at]!r}"


# ---- running ------------------------------------------------------------------------------------

class Place:
    """Where a file's commands run: a directory, a daemon on loopback, and a lab if needed."""

    def __init__(self, stack: ExitStack) -> None:
        self.stack = stack
        self.path = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        make_programs(self.path)
        self.port = stack.enter_context(lib.Daemon(grace=None)).port
        self.labs: Dict[str, str] = {}

    def lab_of(self, options: str) -> str:
        """The name of the lab with these options, created on first use."""
        if options not in self.labs:
            name = f"{LAB}x{len(self.labs)}"
            self.stack.callback(lib.run, [lib.NETLAB, "down", "--name", name], 60)
            got = lib.run([lib.NETLAB, "up", "--name", name, "--rate", "100mbit", *shlex.split(options)], 60)
            assert got.rc == 0, got
            self.stack.enter_context(lib.Daemon(prefix=lib.in_lab(name, "server"), port=LAB_PORT, grace=None))
            self.labs[options] = name
        return self.labs[options]

    def run(self, text: str, host: str, port: int, prefix: List[str]) -> lib.Result:
        env = {**os.environ, "PATH": f"{self.path}/bin:{os.environ['PATH']}", "RECIPES_PORT": str(port),
               "LC_ALL": "C.UTF-8"}
        with lib.Started([*prefix, "bash", "-c", f"exec 2>&1; {text.replace('HOST', host)}"], cwd=self.path,
                         env=env) as one:
            return one.finish(PATIENCE)


def cannot_run(text: str) -> str:
    """Why a command is not run on this machine; empty if it is."""
    for pattern, why in NOT_RUN:
        if re.search(pattern, text):
            return why
    if re.search(r"\bnetlab\b", text) and lib.no_lab():
        return lib.no_lab()
    if "inet6" in text and not lib.has_ipv6():
        return "no IPv6"
    if "-t MPTCP" in text and not Path("/proc/sys/net/mptcp").exists():
        return "this kernel has no MPTCP"
    for words, module in (("--plot", "matplotlib"), ("--compare", "scipy"), ("netgate", "scipy")):
        if words in text and not any(has(one, module) for one in {sys.executable, SYSTEM_PYTHON}):
            return f"no {module}"
    missing = [name for name in re.findall(r"(?:^|\| *|&& *)(jq|openssl|column)\b", text) if not shutil.which(name)]
    if missing:
        return f"no {missing[0]}"
    config = Path(os.environ.get("top_builddir") or lib.TOP) / "config.h"
    for option, library in (("--json", "JANSSON"), ("--wire", "PCAP"), ("run.json", "JANSSON"), ("--key-file", "SODIUM")):
        if option in text and config.exists() and f"#define HAVE_{library} 1" not in config.read_text():
            return f"a build without {library.lower()}"
    return ""


def judge(command: Command, got: lib.Result, marks: Dict[str, str]) -> str:
    """What is wrong with the output; empty if nothing is."""
    lines = got.out.splitlines()
    if got.rc != 0:
        return f"status {got.rc}: {got.out!r}"
    if command.output is None:
        names = re.search(r" -k ([A-Z\w,]+)", command.text)
        wanted = set(names[1].split(",")) if names and command.text.startswith("netperf") else set()
        missing = wanted - {line.partition("=")[0] for line in lines}
        told = [line for line in lines if re.match("net(perf|report): ", line)]
        silent = "explain: " not in got.out if "--explain" in command.text else not re.search(r"\d", got.out)
        return f"told: {told}" if told else f"no figures: {got.out!r}" if silent or missing else ""
    if "words vary" in marks and command.output:
        words = [line.split()[0] for line in command.output if line.strip()]
        first = next((word for word in words if not re.fullmatch(NUMBER, word)), words[0])
        begin = re.compile(rf"\s*{pattern_of(first)}(\s|$)")
        return "" if any(map(begin.match, lines)) else f"no line begins with {first}: {got.out!r}"
    wrong = misfit(command.output, lines)
    return f"{wrong}; all: {got.out!r}" if wrong else ""


def run_block(report: lib.Report, place: Place, block: Block, chosen: List[str]) -> None:
    if chosen and not any(part in command.text for command in block.commands for part in chosen):
        return
    host, port, prefix = "127.0.0.1", place.port, []
    all_of_it = "; ".join(command.text for command in block.commands)
    with ExitStack() as stack:
        for command in block.commands:
            name = f"{block.where}: {command.text}"
            # The second command of MPTCP's block reads a file that the first one writes.
            why = block.marks.get("not run") or cannot_run(all_of_it if "MPTCP" in all_of_it else command.text)
            if not why and "lab" in block.marks:
                why = lib.no_lab() or (block.marks["lab"] and lib.no_line())
            if why:
                report.skip(name, why)
                continue
            if "lab" in block.marks:
                host, port, prefix = LAB_HOST, LAB_PORT, lib.in_lab(place.lab_of(block.marks["lab"]), "client")
            if command.text.startswith("netserver"):
                port = stack.enter_context(daemon_of(command.text, place, block)).port
                report.check(name, True)
                continue
            got = place.run(command.text, host, port, prefix)
            if "--show" in sys.argv:
                print(got.out)
            wrong = judge(command, got, block.marks)
            report.check(name, not wrong, wrong)


def daemon_of(text: str, place: Place, block: Block) -> lib.Daemon:
    """The daemon that a line starts, in the foreground, on one of our ports."""
    words = shlex.split(text)[1:]
    for option, count in (("-p", 2), ("-D", 1), ("&", 1)):
        if option in words:
            del words[words.index(option):words.index(option) + count]
    words = [str(place.path / word) if (place.path / word).is_file() else word for word in words]
    assert "lab" not in block.marks, "a lab has its daemon already"
    return lib.Daemon(args=words, grace=None)


def shapes_are_told_apart(report: lib.Report) -> None:
    """Tests the comparison: what it must accept, and what not."""
    fits = [(["A=1.5", "b  2"], ["A=-3", "", "b 77"]), (["x", "...", "y 1"], ["x", "q", "r", "y 2"]),
            (["a b ..."], ["a b c d"]), (["1 %  kbit"], ["99.25 % kbit"]), (["end", "..."], ["end", "more"])]
    differ: List[Tuple[List[str], List[str]]] = [
        (["A=1"], ["B=1"]), (["1 2"], ["1"]), (["a"], ["a", "b"]), (["a", "b"], ["a"]), (["5"], ["five"]),
        (["x", "...", "y"], ["x", "z"]), (["a b ..."], ["a c d"]), (["a"], [])]
    vary = {"words vary": "why"}
    explained = Command("", ["131072 10.1", "explain: link", "next: loss"])
    fits_not = judge(explained, lib.Result(0, "131072 94.1\n", "", 0.0), vary)
    fits_so = judge(explained, lib.Result(0, "131072 94.1\nexplain: loss\n", "", 0.0), vary)
    report.check("words that vary have a first one", fits_not and not fits_so, f"{fits_not}; {fits_so}")
    wrong = [pair for pair in fits if misfit(*pair)] + [pair for pair in differ if not misfit(*pair)]
    report.check("the comparer tells shapes apart", not wrong, str(wrong) if wrong else "")


def suite(report: lib.Report) -> None:
    chosen = [word for word in sys.argv[1:] if not word.startswith("--")]
    shapes_are_told_apart(report)
    began, count = time.monotonic(), 0
    for name in FILES:
        questions = re.findall(r"\b(\d+) questions\b", (lib.TOP / name).read_text())
        report.check(f"{name} counts the questions", questions == [str(QUESTIONS)], " ".join(questions))
    for name in (*FILES, *PAGES):
        blocks = examples_of(name) if name in PAGES else blocks_of(name)
        report.check(f"{name} has commands", sum(len(block.commands) for block in blocks) >= 6)
        with ExitStack() as stack:
            place = Place(stack)
            # A failed command may leave a lab behind.
            stack.callback(lambda: lib.no_lab() or subprocess.run(
                [lib.NETLAB, "down", "--name", f"own{LAB}"], capture_output=True, timeout=60, check=False))
            for block in blocks:
                run_block(report, place, block, chosen)
                count += len(block.commands)
    print(f"{count} commands in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    lib.main(suite)
