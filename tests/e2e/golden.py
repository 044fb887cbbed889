"""Replays the commands of tests/golden/recorded.txt, whose head describes it, and compares what
they print with what netperf 2.7 printed: the text character by character, figures by sign, decimals
and place in their column. doc/DIFFERENCES.md lists what is meant to differ, and why: what stands
there must differ, all else must not. Most commands that last a second move a count of bytes or
transactions instead, which prints the same.

    golden.py [--timed] [--real] [PATTERN...]

PATTERN picks recordings by name. --timed runs for 0.3 s what moves a count without it, and nothing else. --real runs
the real netperf 2.7.0 instead of ours, against Debian's recordings and without the list of differences: a test of the
comparer, not of the program.
"""

import fnmatch
import os
import re
import shlex
import signal
import socket
import socketserver
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

import lib

AT_ONCE = 6
PATIENCE = 4 if lib.QUICK else 1
LIMIT = 90.0        # seconds for a command
LOOK = 3.0          # seconds after which a program that does not exit is examined
EACH = 1 if "--timed" in sys.argv else 11  # change that is tested: all of them take long
MOST_DIFFER = 10    # of Debian's recordings that may be listed as different, not counting errors
HOST = "127.0.0.1"
RECORDED = lib.TOP / "tests" / "golden" / "recorded.txt"
DIFFERENCES = lib.TOP / "doc" / "DIFFERENCES.md"


class Misfit(Exception):
    """An output differs from the recording; the text says how."""


# ---- recordings ---------------------------------------------------------------------------------

class Golden:
    """A recording; only its name and command differ from those of one that is like it."""

    def __init__(self, name: str, like: "Optional[Golden]") -> None:
        self.name = name
        self.run = ""
        self.facts: Dict[str, str] = {"exit": "0"}
        self.texts: Dict[str, str] = {"out": "", "err": ""}
        self.files: Dict[str, str] = {}
        if like:
            self.facts, self.texts, self.files = like.facts, like.texts, like.files

    def __getattr__(self, key: str) -> str:
        return self.facts.get(key, "")

    @property
    def message(self) -> bool:
        return "message" in self.facts

    @property
    def fails(self) -> bool:
        return self.facts["exit"] not in ("0", "none")


def load() -> List[Golden]:
    blocks: Dict[str, str] = {}
    goldens: List[Golden] = []
    place, key = blocks, ""
    before: Optional[Golden] = None
    for line in RECORDED.read_text().split("\n"):
        if line[:1] in ("|", "\\"):
            place[key] += line[1:] + ("\n" if line[0] == "|" else "")
            continue
        if line[:1] in ("=", ","):
            block = blocks[line[1:]]
            place[key] += block if line[0] == "=" else block.replace(",", "\n")
            continue
        word, _, rest = line.partition(" ")
        if word == "block":
            place, key = blocks, rest
            blocks[key] = ""
        elif word == "golden":
            before = Golden(rest, before)
            goldens.append(before)
            place, key = before.texts, "out"
        elif word == "run":
            goldens[-1].run = rest
        elif word == "file":
            place, key = goldens[-1].files, rest
            place[key] = ""
        elif word in ("out", "err"):
            place, key = goldens[-1].texts, word
        elif word == "":
            before = None
        elif word != "#":
            goldens[-1].facts[word] = rest
    return goldens


class Difference(NamedTuple):
    """A row of doc/DIFFERENCES.md."""
    what: str
    why: str


def differences() -> Dict[str, Difference]:
    """By recording; a row may name several in its first cell."""
    found: Dict[str, Difference] = {}
    for line in DIFFERENCES.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `") and len(cells) == 3:
            for name in re.findall(r"`([\w-]+)`", cells[0]):
                found[name] = Difference(cells[1], cells[2])
    return found


# ---- shapes -------------------------------------------------------------------------------------

TOKEN = re.compile(
    r"(?P<id>\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b)"
    r"|(?P<odd>-?\b(?:nan|inf)\b)"
    r"|(?P<number>(?<![\w.^])-?(?:[\d#]+(?:\.[\d#]+)?(?:e[+-][\d#]+)?|~+|@+|\$+|&+)(?![\w.^]))"
    r"|(?P<text>\w+|\S)")


class Token(NamedTuple):
    kind: str
    text: str
    start: int
    end: int


def tokens(line: str) -> List[Token]:
    return [Token(str(found.lastgroup), found.group(), found.start(), found.end())
            for found in TOKEN.finditer(line)]


def setting(name: str, field: int = 0) -> str:
    try:
        return Path("/proc/sys/net", name).read_text().split()[field]
    except (OSError, IndexError):
        return ""


# What the marks in a shape stand for on this machine.
MACHINE = {
    "~": setting("ipv4/tcp_wmem", 1),
    "@": setting("ipv4/tcp_rmem", 1),
    "$": setting("core/wmem_default"),
    "&": setting("core/rmem_default"),
    "{cc}": setting("ipv4/tcp_congestion_control"),
}


def decimals(number: str) -> int:
    return len(number.partition("e")[0].partition(".")[2])


def check_number(want: str, got: Token) -> None:
    """Raise Misfit if a number does not have the shape."""
    if got.kind == "odd":
        return  # if one divides by zero, the other may
    if got.kind != "number":
        raise Misfit(f"{got.text!r} instead of a number like {want}")
    if want[0] in MACHINE:
        if MACHINE[want[0]] not in ("", got.text):
            raise Misfit(f"{got.text} instead of this machine's {MACHINE[want[0]]}")
    elif "#" not in want:
        if want != got.text:
            raise Misfit(f"{got.text} instead of {want}")
    elif (want[0] == "-") != (got.text[0] == "-"):
        raise Misfit(f"sign of {got.text}, which should look like {want}")
    elif "e" in want or "e" in got.text:
        if ("e" in want) != ("e" in got.text):
            raise Misfit(f"{got.text} instead of a number like {want}")
    elif decimals(want) != decimals(got.text):
        raise Misfit(f"{decimals(got.text)} decimals in {got.text} instead of {decimals(want)}")


def check_token(want: Token, got: Token) -> None:
    if want.kind == "number" or want.kind == "odd" and got.kind == "number":
        if want.kind == "number":
            check_number(want.text, got)
    elif want.kind != got.kind or want.kind == "text" and want.text != got.text:
        raise Misfit(f"{got.text!r} instead of {want.text!r}")


def overflow(number: str) -> int:
    """By how much a number of this length may have outgrown the narrowest column there is."""
    return max(0, len(number) - (6 if "." in number else 4))


def pushes(shape: str, want: Token, got: Token) -> Set[int]:
    """By how much a number may move what stands behind it in its line."""
    longer = len(got.text) - len(want.text)
    padded = want.start == 0 or shape[want.start - 1] == " " or shape[want.end:want.end + 1] == " "
    if longer == 0 or not padded:
        return {longer}
    most = overflow(got.text) - overflow(want.text)
    if "  " not in shape[max(0, want.start - 2):want.end + 2]:  # single blanks may be text
        most = longer
    return set(range(min(0, most), max(0, most) + 1))


def check_line(shape: str, line: str) -> None:
    """Raises Misfit if a line has not the shape: each number must begin or end where it did."""
    if shape == line:
        return
    wanted, found = tokens(shape), tokens(line)
    if len(wanted) != len(found):
        raise Misfit(f"{len(found)} words instead of {len(wanted)}")
    moved = {0}
    for want, got in zip(wanted, found):
        check_token(want, got)
        left, right = got.start - want.start, got.end - want.end
        if want.kind in ("number", "odd"):
            by = pushes(shape, want, got)
            after = {left + push for push in by if left in moved}
            after |= {right} if any(right - push in moved for push in by) else set()
        else:
            after = {left} & moved
        if not after:
            raise Misfit(f"{got.text!r} stands in column {got.start + 1}")
        moved = after
    if len(line) - len(shape) not in moved:
        raise Misfit("blanks at the end of the line")


# ---- columns as wide as their text --------------------------------------------------------------

WORD = re.compile(r'"[^"]*"|\S+')
HEADS = 4


def columns(block: List[str]) -> List[List[str]]:
    """The cells of each column, its values' row last; an empty value joins the column before."""
    starts = [word.start() for word in WORD.finditer(block[-1])]
    ends = [*starts[1:], max(map(len, block))]
    return [[row[start:end] for row in block] for start, end in zip(starts, ends)]


def check_human(shape: List[str], block: List[str]) -> None:
    """Raise Misfit if a block of header lines and values differs in content."""
    want, got = columns(shape), columns(block)
    if len(want) != len(got):
        raise Misfit(f"{len(got)} columns instead of {len(want)}")
    for wanted, found in zip(want, got):
        if [cell.split() for cell in wanted[:-1]] != [cell.split() for cell in found[:-1]]:
            raise Misfit(f"column headed {found[:-1]} instead of {wanted[:-1]}")
        wanted_tokens, found_tokens = tokens(wanted[-1]), tokens(found[-1])
        if len(wanted_tokens) != len(found_tokens):
            raise Misfit(f"{found[-1]!r} instead of {wanted[-1]!r}")
        for pair in zip(wanted_tokens, found_tokens):
            check_token(*pair)


def slack(column: List[str]) -> int:
    """How much wider a column is than its text requires."""
    heads = [cell.rstrip() for cell in column[:-1]]
    return len(column[-1]) - max([len(column[-1].rstrip()) + 1, *map(len, heads)]) - 1


def check_widths(shape: List[str], block: List[str]) -> None:
    """Raise Misfit unless each column has the width that its text requires. A column without a value is part of the
    one before, and widens it by its width in the recording. The header's length is ignored where the name HOST has
    another length here."""
    if len({len(row) for row in block}) != 1:
        raise Misfit("rows of different lengths")
    if not shape[-1].strip():
        compare_lines(shape, block)
    for was, column in zip(columns(shape), columns(block)):
        unknown = any("  " in cell.rstrip() for cell in column[:-1]) or '"' in column[-1]
        more = slack(column) - max(0, slack(was))
        if not unknown and "HOST" not in was[-1] and more:
            raise Misfit(f"column {column[-1]!r} is {more:+} wide")


def is_prose(line: str) -> bool:
    return " TEST from " in line or line.startswith("Interim result:")


def blocks_of(lines: Sequence[str], heads: bool) -> List[List[str]]:
    """Groups of lines: a line of prose, an empty line, a block of columns."""
    blocks: List[List[str]] = []
    for line in lines:
        alone = is_prose(line) or line == ""
        room = blocks and blocks[-1] and not is_prose(blocks[-1][0]) and blocks[-1][0] != ""
        if alone or not room or not heads or len(blocks[-1]) > HEADS:
            blocks.append([line])
        else:
            blocks[-1].append(line)
    return blocks


# ---- whole texts --------------------------------------------------------------------------------

FEATURE = re.compile(r" : (?:histogram|(?:spin )?interval|dirty data|demo)(?= : |$)")
CSV_INTERIM = re.compile(r" *[\d.#]+,[^,]+/s,[\d.#]+,[\d#]+\.[\d#]{3}$")
KEY_INTERIM = re.compile(r"NETPERF_(?:INTERIM_RESULT|UNITS|INTERVAL|ENDING)\[(\d+)\]=")


def tidy(text: str) -> List[str]:
    """The lines, without what a banner says about the build, and with one of many interim results."""
    kept: List[str] = []
    for line in text.split("\n"):
        if " TEST from " in line:
            line = FEATURE.sub("", line)
        line = re.sub(r"^(HIST_TOTAL: {6})[\d#]+$", r"\1N", line)  # left-aligned, of any width
        if kept:
            again = (line.startswith("Interim result:") and kept[-1].startswith("Interim result:")
                     or CSV_INTERIM.match(line) and CSV_INTERIM.match(kept[-1]))
            key = KEY_INTERIM.match(line)
            if again or key and key[1] != "0":
                continue
        kept.append(line)
    return kept


def check_text(golden: Golden, shape: str, text: str) -> None:
    """Raise Misfit if a text does not have the shape. The last line is what follows the last newline."""
    wanted, found = tidy(shape.replace("{cc}", MACHINE["{cc}"])), tidy(text)
    if golden.style.startswith("head "):
        most = int(golden.style.split()[1])
        wanted, found = ([line for line in lines if line.strip()][:most]
                         for lines in (wanted, found))
    if len(wanted) != len(found):
        odd = (found[len(wanted):] or wanted[len(found):])[0]
        raise Misfit(f"{len(found)} lines instead of {len(wanted)}, such as {odd!r}: {text!r}")
    heads = golden.style == "human" and " -P 0 " not in golden.run
    if golden.style == "human":
        for want, got in zip(blocks_of(wanted, heads), blocks_of(found, heads)):
            if len(want) == len(got) == HEADS + 1:
                check_human(want, got)
            else:
                compare_lines(want, got)
    else:
        compare_lines(wanted, found)


def compare_lines(wanted: Sequence[str], found: Sequence[str]) -> None:
    if len(wanted) != len(found):
        raise Misfit(f"{found} instead of {wanted}")
    for want, got in zip(wanted, found):
        try:
            check_line(want, got)
        except Misfit as misfit:
            raise Misfit(f"{misfit}:\n     recorded |{want}|\n     now      |{got}|") from None


# ---- running ------------------------------------------------------------------------------------

class Chatter(socketserver.ThreadingTCPServer):
    """The services echo, discard and chargen, on free ports."""
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, service: str) -> None:
        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                try:
                    while service == "chargen" or (data := self.request.recv(65536)):
                        if service != "discard":
                            self.request.sendall(16384 * b"x" if service == "chargen" else data)
                except OSError:
                    pass
        super().__init__((HOST, 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


# The count of a test that replaces a second.
COUNTS = {"TCP_RR": "-500", "UDP_RR": "-500", "TCP_CRR": "-100", "TCP_STREAM": "-4000000",
          "TCP_MAERTS": "-4000000", "UDP_STREAM": "-65536", "STREAM_RR": "-500", "DG_RR": "-500",
          "STREAM_STREAM": "-4000000", "DG_STREAM": "-65536", "TCP_CC": "-100",
          "TCP_SENDFILE": "-4000000", "OMNI rr": "-500", "OMNI": "-65536"}
NEEDS_TIME = ("-D", "-N")


def shortened(args: List[str], length: str = "") -> List[str]:
    """The arguments with a count instead of a second if that prints the same, or with this length."""
    test = args[args.index("-t") + 1].upper() if "-t" in args[:-1] else ""
    if test == "OMNI" and "rr" in args:
        test = "OMNI rr"
    if test not in COUNTS or "all" in args or any(
            arg.startswith(NEEDS_TIME) for arg in own_options(args)):
        return args
    return [length or COUNTS[test] if before == "-l" and arg == "1" else arg
            for before, arg in zip(["", *args], args)]


def own_options(args: Sequence[str]) -> Sequence[str]:
    """The options before the test-specific ones."""
    return args[:args.index("--")] if "--" in args else args


class Programs:
    """The commands of the recordings on this machine: programs, daemons, ports."""

    def __init__(self, stack: ExitStack, netperf: str, netserver: str, real: bool,
                 timed: bool) -> None:
        self.real, self.timed = real, timed
        self._programs = {"netperf": netperf, "netserver": netserver}
        self._daemons: Dict[str, lib.Daemon] = {}
        for options in ("", "-Z sesame"):
            try:
                self._daemons[options] = stack.enter_context(lib.Daemon(
                    args=options.split(), program=netserver, grace=None if real else 10.0))
            except RuntimeError as fault:
                self._missing = str(fault)  # reported by the recordings that need it
        self._services = {
            f"{name.upper()}PORT": str(stack.enter_context(Chatter(name)).server_address[1])
            for name in ("echo", "discard", "chargen")}
        self._place = stack.enter_context(tempfile.TemporaryDirectory())

    def words(self, golden: Golden) -> Dict[str, str]:
        """The replacements for the words in capitals of a command."""
        if golden.server not in self._daemons:
            raise Misfit(self._missing)
        words = {"HOST": HOST, "PORT": str(self._daemons[golden.server].port), **self._services}
        for name in ("NOPORT", "DPORT1", "DPORT2"):
            if name in golden.run:
                words[name] = str(lib.free_port())
        return words

    def arguments(self, golden: Golden) -> List[str]:
        name, *args = shlex.split(golden.run)
        if "HIST_TOTAL" in golden.texts["out"] and not self.real:
            args.insert(0, "-j")  # ours prints a histogram if latencies are requested
        if golden.fails and "-l" not in args and name == "netperf":
            args[:0] = ["-l", "1"]  # where ours does not fail
        return [name, *args]

    def command(self, golden: Golden, words: Dict[str, str]) -> List[str]:
        name, *args = self.arguments(golden)
        if not self.real:
            args = shortened(args, "0.3" if self.timed else "")
        known = re.compile(r"(?<![A-Za-z_])(?:%s)(?![A-Za-z_])" % "|".join(
            sorted(words, key=len, reverse=True)))
        return [self._programs[name], *(known.sub(lambda m: words[m[0]], arg) for arg in args)]

    def canonical(self, text: str, words: Dict[str, str]) -> str:
        """A text with programs, ports and addresses replaced by their names."""
        for name, path in self._programs.items():
            text = text.replace(path, name.upper())
        for name, value in words.items():
            if name != "HOST":
                text = re.sub(rf"(?<![\d.]){value}(?![\d.])", name, text)
        return text.replace(HOST, "HOST")

    def run(self, golden: Golden) -> "Tuple[lib.Result, Dict[str, str]]":
        """The result of the command, and the replacements needed to read it."""
        words = self.words(golden)
        place = Path(tempfile.mkdtemp(dir=self._place))
        for name, text in golden.files.items():
            (place / name).write_text(text)
        env = {**os.environ, "LC_ALL": "C"}
        env.pop("DUMP_TCP_INFO", None)
        env.update(item.split("=", 1) for item in shlex.split(golden.env))
        name, _, after = golden.signal.partition(" ")
        with lib.Started(self.command(golden, words), cwd=place, env=env) as command:
            if name and name != "NONE":
                if golden.run.startswith("netperf "):
                    command.measuring()
                time.sleep(float(after))
                command.signal(getattr(signal, f"SIG{name}"))
            return command.finish(LOOK if name == "NONE" else LIMIT * PATIENCE), words


def check_status(golden: Golden, got: lib.Result, exactly: bool) -> None:
    status = "none" if got.rc is None else str(got.rc % 256 if got.rc >= 0 else got.rc)
    same = status == golden.exit if exactly else (
        (status == "none") == (golden.exit == "none") and (got.rc != 0) == (golden.exit != "0"))
    if not same:
        raise Misfit(f"exit status {status} instead of {golden.exit}: {got.out!r} {got.err!r}")


# netserver's line about missing means of confinement, in this kernel or in a build with a sanitizer.
LESS = re.compile(r"^netserver\[\d+\]: sessions are less confined: .*\n", re.M)


class Figure(NamedTuple):
    """A figure that netperf lacks: its name, whether `all` includes it, and its headers."""
    name: str
    in_all: bool
    heads: List[str]


def our_figures() -> List[Figure]:
    """The rows after OUTPUT_END; a row for both ends is two figures."""
    table = (lib.TOP / "src" / "stats" / "metrics.def").read_text()
    rows = re.findall(r'^NP_(?:METRIC\(|PAIR\(\d+, )((?:\w+, )+)[A-Z]+, "(?:[^"\\]|\\.)*", (\d), \w+,'
                      r'\s*((?:"[^"]*",\s*){3,4})', table[table.index("NP_METRIC(OUTPUT_END"):], re.M)
    figures = []
    for names, group, text in rows[1:]:
        heads = re.findall(r'"([^"]*)"', text)
        ends = [[]] if len(heads) == 4 else [["Local"], ["Remote"]]
        figures += [Figure(name, group != "0", end + heads)
                    for name, end in zip(names.split(", "), ends)]
    return figures


def cut(text: str, end: str) -> str:
    """The text without the pattern at its end."""
    found = re.search(f"(?:{end})\\Z", text, re.M)
    if not found:
        raise Misfit(f"figures of ours are not last: {text[-200:]!r}")
    return text[:found.start()] + ("\n" if found[0].endswith("\n") and found[0][0] == "," else "")


def without_ours(golden: Golden, text: str) -> str:
    """The output of `all` or `?` without our figures, which must be there, and last."""
    asked = re.search(r" -([oOk]) (all|\?)$", golden.run, re.I)
    if not asked:
        return text
    style, every = asked[1], asked[2] != "?"
    figures = [one for one in our_figures() if one.in_all or not every]
    names = [one.name for one in figures]
    if not every:
        return cut(text, "".join(f"{name}\n" for name in names) if style == "O"
                   else "," + ",".join(names) + "\n")
    if style == "k":
        return cut(text, "".join(f"{name}=.*\n" for name in names))
    lines = text.splitlines(keepends=True)
    if style == "o":
        values = cut(lines.pop(), rf"(?:,[\w.-]*){{{len(names)}}}\n")
        if " -P 0 " not in golden.run:
            titles = [" ".join(filter(None, one.heads)) for one in figures]
            values = cut(lines.pop(), "," + ",".join(map(re.escape, titles)) + "\n") + values
        return "".join(lines) + values
    first = lines[-HEADS - 1]
    column = len(cut(first, " +".join(one.heads[0] for one in figures) + " *\n"))
    return "".join(lines[:-HEADS - 1] + [line[:column] + "\n" for line in lines[-HEADS - 1:]])


def check_recorded(programs: Programs, golden: Golden, got: lib.Result,
                   words: Dict[str, str]) -> None:
    """Raise Misfit unless the output is as recorded."""
    if not programs.real:
        got = got._replace(out=without_ours(golden, got.out), err=lib.PASSED_OVER.sub("", got.err))
    check_status(golden, got, exactly=True)
    for name, text in (("out", got.out), ("err", got.err)):
        if f"std{name}" in golden.ignore:
            continue
        try:
            check_text(golden, golden.texts[name],
                       programs.canonical(LESS.sub("", text), words))
        except Misfit as misfit:
            raise Misfit(f"std{name}: {misfit}") from None
    if golden.style == "human" and " -P 0 " not in golden.run:
        for pair in zip(*(blocks_of(tidy(text), heads=True)
                          for text in (golden.texts["out"], got.out))):
            if len(pair[1]) == HEADS + 1:
                check_widths(*pair)


def check_message(programs: Programs, golden: Golden, got: lib.Result,
                  words: Dict[str, str]) -> None:
    """Raise Misfit unless it says in one line what is wrong, fails if the real one did, and prints what was recorded
    on stdout, and those parts of stderr that scripts look for."""
    check_status(golden, got, exactly=False)
    try:
        lib.error_line(got, golden.run.split()[0])
    except AssertionError as fault:
        raise Misfit(str(fault)) from None
    try:
        check_text(golden, golden.texts["out"], programs.canonical(got.out, words))
    except Misfit as misfit:
        raise Misfit(f"stdout: {misfit}") from None
    said = programs.canonical(got.err, words).splitlines()
    missing = [line for line in golden.texts["err"].splitlines()
               if lib.STDERR_PHRASES.fullmatch(line) and line not in said]
    if missing:
        raise Misfit(f"stderr: without {missing}: {said}")


def check(programs: Programs, golden: Golden) -> None:
    got, words = programs.run(golden)
    try:
        check_recorded(programs, golden, got, words)
    except Misfit:
        if programs.real or not golden.message:
            raise
        check_message(programs, golden, got, words)


def must_fit(programs: Programs, golden: Golden) -> None:
    try:
        check(programs, golden)
    except Misfit:
        if "udp" not in golden.run.lower():
            raise
        check(programs, golden)  # a datagram lost on a busy machine is not replaced


def must_differ(programs: Programs, golden: Golden, row: Difference) -> str:
    """A listed difference. Unless the list says otherwise, it must at least fail if the real one did."""
    got, words = programs.run(golden)
    if "exit status" not in row.what:
        check_status(golden, got, exactly=False)
    try:
        if golden.message:
            check_message(programs, golden, got, words)
        else:
            check_recorded(programs, golden, got, words)
    except Misfit:
        return f"differs as listed: {row.what}"
    raise Misfit(f"no longer differs: take it out of {DIFFERENCES.relative_to(lib.TOP)}")


# ---- what cannot run everywhere -----------------------------------------------------------------

def without_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as sock:
            sock.bind(("::1", 0))
    except OSError:
        return True
    return False


def cannot_run(golden: Golden) -> str:
    """Why a command can't run on this machine; empty if it can."""
    args = shlex.split(golden.run)
    if ("-6" in args or "::1" in args) and not golden.fails and without_ipv6():
        return "no IPv6"
    if "reno,cubic" in args and {"reno", "cubic"} - set(
            Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()):
        return "not both reno and cubic"
    return ""


# ---- the comparer itself ------------------------------------------------------------------------

def filled(text: str, digit: str) -> str:
    """A text of this shape."""
    for mark, value in MACHINE.items():
        if mark == "{cc}":
            text = text.replace(mark, value)
        else:
            text = re.sub(re.escape(mark) + "+", lambda m: value or "8" * len(m[0]), text)
    return text.replace("#", digit)


def changes(line: str) -> Iterator[Tuple[str, str]]:
    """Variants of a line with one error each, and the error."""
    yield "a blank more at the end", line + " "
    yield "a blank more in front", " " + line
    if line.endswith(" "):
        yield "a blank less at the end", line[:-1]
    for gap in re.finditer(r"(?<=\S) +(?=\S)", line):
        yield "a blank more", line[:gap.start()] + " " + line[gap.start():]
        if gap.end() - gap.start() > 1:
            yield "a blank less", line[:gap.start()] + line[gap.start() + 1:]
    for found in re.finditer(r"(?<![\d.])\d+\.\d+(?![\w.])", line):
        yield "a decimal less", line[:found.end() - 1] + line[found.end():]
        yield "a decimal more", line[:found.end()] + "0" + line[found.end():]
    for word in re.finditer(r"[A-Za-z]+", line):
        yield "another word", line[:word.start()] + "Q" + line[word.start() + 1:]
    for found in re.finditer(r"(?<= ) (\S+)(?= {2,}|$)", line):
        yield "a column to the left", line[:found.start()] + found[1] + " " + line[found.end():]


def notices_changes(goldens: Sequence[Golden]) -> str:
    """Each line fits its own shape, and not with an error in it; one in EACH errors is tried."""
    lines = {line: golden for golden in goldens for line in golden.texts["out"].splitlines()
             if line and golden.style == ""}
    count = 0
    for shape in lines:
        shape = shape.replace("{cc}", MACHINE["{cc}"])
        line = filled(shape, "7")
        check_line(shape, line)
        if re.search(r"-\b[0-9a-f]{4}-|\bnan\b", shape):
            continue
        for what, wrong in changes(line):
            count += 1
            if count % EACH:
                continue
            try:
                check_line(shape, wrong)
            except Misfit:
                continue
            raise Misfit(f"{what} is not noticed:\n     {line!r}\n     {wrong!r}")
    return f"{count // EACH} changes to {len(lines)} lines"


def notices_widths(goldens: Sequence[Golden]) -> str:
    """The same for columns: a recorded block has the right widths, and not with a blank added."""
    blocks = [block for golden in goldens if golden.style == "human" and " -P 0 " not in golden.run
              for block in blocks_of(golden.texts["out"].split("\n"), heads=True)
              if len(block) == HEADS + 1 and "HOST" not in block[-1]]
    for block in blocks:
        sample = [filled(row, "7") for row in block]
        check_human(block, sample)
        check_widths(block, sample)
        for number, row in enumerate(sample):
            wrong = [*sample[:number], row + " ", *sample[number + 1:]]
            try:
                check_widths(block, wrong)
            except Misfit:
                continue
            raise Misfit(f"a blank more is not noticed: {wrong}")
        wrong = [row[:len(row) - 1] for row in sample]
        try:
            check_widths(block, wrong)
        except Misfit:
            continue
        raise Misfit(f"a blank less is not noticed: {wrong}")
    return f"{len(blocks)} blocks"


def grown_numbers() -> None:
    """Only numbers that outgrow their column move what follows."""
    shape = "~~~~~  @@@@@@ 1        1       #.##     #####.##   "
    sizes = filled(shape[:13], "")
    if len(sizes) == 13:
        check_line(shape, sizes + " 1        1       10.00    1234567.89   ")
        check_line(shape, sizes + " 1        1       0.07        1.00   ")
    for shape, line in (("#.## #", "12.34 5"), ("A=##", "A=1"), ("    #:   ##", "12345:   10")):
        check_line(shape, line)
    for shape, line in (("A=#.##", "A= 1.23"), ("a,#,b", "a, 1,b"), ("  ## x", " 12 x"),
                        ("#", "-1"), ("4", "5"), ("0", "0.0"), ("-1", "1"), ("#.##e+##", "4.0")):
        try:
            check_line(shape, line)
        except Misfit:
            continue
        raise Misfit(f"{line!r} passes for {shape!r}")


# ---- the suite ----------------------------------------------------------------------------------

def seconds(golden: Golden) -> float:
    """The approximate duration of a command: the longest ones start first."""
    args = shlex.split(golden.run)
    length = 1.0 if "-l" not in args or args[args.index("-l") + 1] == "1" else 0.1
    return length * (3 if "-i" in args else 1) * (0 if golden.fails else 1)


def chosen(goldens: Sequence[Golden], patterns: Sequence[str]) -> List[Golden]:
    picked = [golden for golden in goldens
              if not patterns or any(fnmatch.fnmatch(golden.name, one) for one in patterns)]
    return sorted(picked, key=seconds, reverse=True)


def check_list(goldens: Sequence[Golden], listed: Dict[str, Difference]) -> str:
    """The list of differences names recordings, gives reasons, and is short."""
    unknown = set(listed) - {golden.name for golden in goldens}
    if unknown:
        raise Misfit(f"no such recordings: {sorted(unknown)}")
    bare = sorted(name for name, row in listed.items() if not row.what or not row.why)
    if bare:
        raise Misfit(f"no reason given: {bare}")
    others = sorted(name for name in listed
                    if not name.startswith(("err-", "full-", "plain-", "spin-")))
    if len(others) > MOST_DIFFER:
        raise Misfit(f"{len(others)} listed, {MOST_DIFFER} are the most: {others}")
    return f"{len(listed)} listed"


def suite(report: lib.Report) -> None:
    real, timed = "--real" in sys.argv, "--timed" in sys.argv
    patterns = [arg for arg in sys.argv[1:] if arg not in ("--real", "--timed")]
    goldens = load()
    listed = {} if real else differences()
    if real:
        place = lib.real_netperf()
        netperf, netserver = str(place / "netperf"), str(place / "netserver")
    else:
        netperf, netserver = lib.netperf(), lib.netserver()
    if not patterns:
        report.case("the comparer notices changes", partial(notices_changes, goldens))
        report.case("the comparer notices widths", partial(notices_widths, goldens))
        report.case("the comparer lets numbers grow", grown_numbers)
        report.case("the list of differences", partial(check_list, goldens, listed))
    cases = []
    with ExitStack() as stack:
        programs = Programs(stack, netperf, netserver, real, real or timed)
        for golden in chosen(goldens, patterns):
            if timed and not patterns and shortened(programs.arguments(golden)) == programs.arguments(golden):
                continue    # it runs like that without --timed
            why = "another build" if real and golden.build else cannot_run(golden)
            if why:
                report.skip(golden.name, why)
            elif golden.name in listed:
                cases.append((golden.name,
                              partial(must_differ, programs, golden, listed[golden.name])))
            else:
                cases.append((golden.name, partial(must_fit, programs, golden)))
        report.cases(cases, AT_ONCE)


if __name__ == "__main__":
    lib.main(suite)
