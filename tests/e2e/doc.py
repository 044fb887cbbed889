"""The generated manual pages: they have every option and test in the programs' help, and formatters accept them
without warnings. recipes.py runs their examples.
"""

import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Callable, List, Set

import lib

BUILD = lib.BUILD / "doc"
PATIENCE = 120 if lib.QUICK else 60  # seconds for an example, which takes 1 to 4

# A line of the help: "  -t name, --test   what it is".
OPTION = re.compile(r"^  (-\w)\b|(?:^  |, )(--[\w-]+)")


# ---- what the programs say ----------------------------------------------------------------------

def options(text: str) -> Set[str]:
    """The options listed in a help text."""
    return {word for line in text.splitlines()
            for words in OPTION.findall(line) for word in words if word}


def tests() -> List[str]:
    text = lib.run([lib.netperf(), "--help=all"], timeout=20).out
    return re.findall(r"\b[A-Z]+(?:_[A-Z]+)+\b|\bOMNI\b|\bUUID\b",
                      text.partition("\nTests")[2].partition("Pairs")[0].partition("Not on this")[0])


def global_options() -> Set[str]:
    return options(lib.run([lib.netperf(), "--help=all"], timeout=20).out)


def test_options() -> Set[str]:
    found: Set[str] = set()
    for test in tests():
        found |= options(lib.run([lib.netperf(), "-t", test, "--", "-h"], timeout=20).out)
    return found


def daemon_options() -> Set[str]:
    return options(lib.run([lib.netserver(), "--help"], timeout=20).out)


# ---- the pages ----------------------------------------------------------------------------------

def plain(line: str) -> str:
    """A line of a page without font changes and escapes."""
    return re.sub(r"\\f.", "", line).replace("\\-", "-").replace("\\&", "").replace("\\e", "\\")


def section(page: str, *names: str) -> List[str]:
    """The lines of some sections."""
    lines = lib.page(page).read_text().splitlines()
    found, inside = [], False
    for line in lines:
        if line.startswith(".SH "):
            inside = line[len(".SH "):] in names
        elif inside:
            found.append(line)
    assert found, f"{page} has no section {names}"
    return found


def tags(page: str, *names: str) -> Set[str]:
    """The words on the lines after .TP in a section."""
    lines = section(page, *names)
    return {word for before, line in zip(lines, lines[1:]) if before == ".TP"
            for word in re.findall(r"--?[\w-]+|\w+", plain(line))}


def assert_covered(wanted: Set[str], have: Set[str], least: int) -> None:
    assert len(wanted) >= least, f"the help lists only {sorted(wanted)}"
    assert wanted <= have, f"missing: {sorted(wanted - have)}"


def the_page_has_the_global_options() -> None:
    assert_covered(global_options(), tags("netperf.1", "GLOBAL OPTIONS"), 40)


def the_page_has_the_test_options() -> None:
    assert_covered(test_options(), tags("netperf.1", "TEST OPTIONS"), 30)


def the_page_has_the_groups_of_the_help() -> None:
    """The help's groups are headings, none of them empty."""
    for program, page in ((lib.netperf(), "netperf.1"), (lib.netserver(), "netserver.1")):
        helps = lib.run([program, "--help=all" if page == "netperf.1" else "--help"], timeout=20).out
        groups = re.findall(r"^(\w.*):$", helps.partition("\n\n")[2].partition("\nTests")[0], re.M)
        lines = [line for line in lib.page(page).read_text().splitlines() if not line.startswith('.\\"')]
        headings = [(line, after) for line, after in zip(lines, [*lines[1:], ""]) if re.match(r"\.S[SH]\b", line)]
        empty = [line for line, after in headings
                 if not re.fullmatch(r"\.S[SH] ([^\s\"].*|\"[^\s\"].*\")", line) or after == ""
                 or after.startswith((".SH", line[:3]))]
        assert not empty, f"{page}: {empty}"
        wanted = {f'.SS "{group}"' for group in groups}
        assert_covered(wanted, {line for line, _ in headings}, 5)


def no_range_is_said_twice() -> None:
    """The page adds an option's range to its help text, which must not contain it already."""
    for page in ("netperf.1", "netserver.1"):
        twice = re.findall(r"(?m)^.*?(\d+ to \d+).*\1.*$", lib.page(page).read_text())
        assert not twice, f"{page}: {twice}"


def the_short_help_names_real_options() -> None:
    """The short help fits on two screens, and what it says about --help=all is true."""
    short = lib.run([lib.netperf(), "--help"], timeout=20)
    assert short.rc == 0 and not short.err, short
    lines = short.out.splitlines()
    assert len(lines) <= 48 and max(map(len, lines)) <= 80, f"{len(lines)} lines"
    assert "--help=all" in short.out and len(short.out) < len(lib.run([lib.netperf(), "--help=all"], 20).out)
    listed = lib.run([lib.netperf(), "-h"], timeout=20)
    assert listed.rc == 1 and listed.err == lib.run([lib.netperf(), "--help=all"], 20).out, listed
    refused = lib.run([lib.netperf(), "--help=some"], timeout=20)
    assert refused.rc == 1 and "--help=all" in refused.err, refused
    for example in re.findall(r"^(netperf .*?)(?:  .*)?$", short.out, re.M):
        words = shlex.split(example)
        own = words.index("--") if "--" in words else len(words)
        assert {word for word in words[1:own] if re.match("-[a-zA-Z-]", word)} <= global_options(), example


def figures_are_a_table_for_people() -> None:
    """A table on a terminal or with --list-figures; for scripts, netperf's list."""
    listed = lib.run([lib.netperf(), "--list-figures"], timeout=20)
    names = lib.run([lib.netperf(), "--", "-O", "?"], timeout=20).out.split()
    rows = re.findall(r"^  ([A-Z]\w+) .*\w", listed.out, re.M)
    assert listed.rc == 0 and not listed.err and sorted(rows) == sorted(names), set(rows) ^ set(names)
    assert max(map(len, listed.out.splitlines())) <= 80
    for style in ("-k", "-o", "-O"):
        command = [lib.netperf(), "--", style, "?"]
        assert lib.on_a_terminal(command) == listed.out, style
        assert lib.run(command, timeout=20).out.startswith("OUTPUT_NONE"), style


def the_tests_have_protocols() -> None:
    """Each test is listed with its protocol, and with what is missing if it can't run here."""
    listed = lib.run([lib.netperf(), "--list-tests"], timeout=20)
    rows = re.findall(r"^(\S+(?: -- -T \S+)?) +(\S+) +(yes|no   .*\S)$", listed.out, re.M)
    assert listed.rc == 0 and not listed.err and len(rows) == len(listed.out.splitlines()) - 1, listed
    known = {name for name, _, _ in rows}
    assert set(tests()) <= known | {"OMNI", "UUID", "LOC_CPU", "REM_CPU"}, set(tests()) - known
    assert ("TCP_RR", "TCP", "yes") in rows and "OMNI -- -T UDPLite" in known, rows
    lacking = sorted({protocol for _, protocol, here in rows if re.search("this (kernel|build) has no", here)})
    for option in ("--help", "--help=all"):
        said = re.search(r"^Not on this host *((?:.|\n +)*)\(--list-tests", lib.run([lib.netperf(), option], 20).out, re.M)
        assert sorted(set(said.group(1).split())) == lacking if said else not lacking, (option, said, lacking)


def each_test_has_a_row() -> None:
    """Each test is in the table of protocols, which says how each of them carries tests."""
    rows = [line.split("|")[2] for line in (lib.TOP / "doc/protocols.md").read_text().splitlines() if line.startswith("| ")]
    have = {word for row in rows for word in re.findall(r"\b[A-Z]+(?:_[A-Z]+)*\b", row)}
    wanted = set(tests()) - {"OMNI", "UUID", "LOC_CPU", "REM_CPU"}     # without a protocol of their own
    assert not wanted - have, f"doc/protocols.md has no row for {sorted(wanted - have)}"


def the_page_has_the_tests() -> None:
    wanted = set(tests())
    have = tags("netperf.1", "TESTS")
    assert_covered(wanted, have, 8)
    unknown = {word for word in have if re.fullmatch(r"[A-Z]+_[A-Z_]+", word)} - wanted
    assert not unknown - {"LOC_CPU", "REM_CPU"}, f"no such tests: {sorted(unknown)}"


def the_page_has_the_figures() -> None:
    listed = lib.run([lib.netperf(), "--", "-O", "?"], timeout=20).out.split()
    page = {plain(line).rstrip(",.") for line in section("netperf.1", "OUTPUT")}
    marks = {"OUTPUT_NONE", "OUTPUT_END"}
    assert_covered(set(listed) - marks, page, 100)


def the_daemons_page_has_its_options() -> None:
    assert_covered(daemon_options(), tags("netserver.1", "OPTIONS"), 12)


def the_tables_of_pages_are_the_codes() -> None:
    mkdoc = lib.script("mkdoc")
    for name, has in (("protocol.md", "### OMNI results (99)"), ("netperf-run.schema.json", '"send_buffer": {'),
                      ("evidence.md", "| `LOCAL_TCP_RTO_MAX`, `REMOTE_TCP_RTO_MAX` | `tcp.samples.rto_us` | usec |")):
        page = lib.TOP / "doc" / name
        made = mkdoc.with_tables(str(page))
        assert has in made, name
        assert made == page.read_text(), f"doc/{name} is not what the tables in src say: make protocol-tables"


def pages_are_made_of_rows() -> None:
    """Pages made from small tables, line by line: scopes, groups, and text that roff would take for requests."""
    made = lib.script("mkdoc")
    with tempfile.TemporaryDirectory() as place:
        rows = Path(place, "rows")
        rows.write_text("#!/bin/sh\nprintf '%b' '" + r"""package\tthing 1.2\ntable\tpart\nscope\todd tests\nscope\teven tests\n"""
                        r"""row\tn\tnumber\tneeds\tn\t1 to 9\t1\ta -n 5-9\nrow\tf\t\tnone\t\t\t3\ta well-known \\ flag\n"""
                        r"""row\t\tlong\tneeds\tx-y\t\t0\t.first\nrow\tk\tkeys\tmay\tlist\t\t0\tkeys\n"""
                        r"""row\tn\t\tneeds\ta,b\tat least 2\t2\tanother\ntable\tpaths\ngroup\tOthers\ngroup\tNothing\n"""
                        r"""group\tWords\nrow\t\tprofile\tneeds\tprofile\t\t2\tno file\nrow\tF\tto\tneeds\tfile\t\t0\ta file\n"""
                        r"""row\t\twire\tglued\tpcap:file\t\t0\tmaybe one\nlist\tcolours\nitem\tRED\nitem\tBLUE-1\n"""
                        "'\n")
        rows.chmod(0o755)
        known = made.rows_of(str(rows))
        made.PAGES = place
        Path(place, "thing.1.in").write_text("@title THING\n.PP\n a @options part\n@names colours\n")
        page = made.for_page("thing", known, {})
    assert page == ('.TH THING 1 "" "thing 1.2" "User Commands"\n.PP\n a @options part\n'
                    ".nh\n.ad l\nRED,\nBLUE\\-1.\n.ad\n.hy\n"), page
    part = "".join(made.page_options(known.tables["part"]))
    assert part == ('.SS "All tests"\n'
                    ".TP\n\\fB\\-\\-long\\fR \\fIx-y\\fR\n\\&.first\n"
                    ".TP\n\\fB\\-k\\fR, \\fB\\-\\-keys\\fR [\\fIlist\\fR]\nkeys\n"
                    '.SS "odd tests"\n'
                    ".TP\n\\fB\\-n\\fR, \\fB\\-\\-number\\fR \\fIn\\fR\na \\-n 5\\-9, 1 to 9\n"
                    '.SS "odd tests; even tests"\n'
                    ".TP\n\\fB\\-f\\fR\na well-known \\e flag\n"
                    '.SS "even tests"\n'
                    ".TP\n\\fB\\-n\\fR \\fIa,b\\fR\nanother, at least 2\n"), part
    paths = "".join(made.page_options(known.tables["paths"]))
    assert paths == ('.SS "Others"\n'
                     ".TP\n\\fB\\-F\\fR, \\fB\\-\\-to\\fR \\fIfile\\fR\na file\n"
                     ".TP\n\\fB\\-\\-wire\\fR[=\\fIpcap:file\\fR]\nmaybe one\n"
                     '.SS "Words"\n'
                     ".TP\n\\fB\\-\\-profile\\fR \\fIprofile\\fR\nno file\n"), paths


def pages_of_scripts_have_all_options() -> None:
    """Each option has its help or the text below it; an option missing from the page is named."""
    made = lib.script("mkdoc")
    known = {name: made.Argument(name, "", "N", made.Values() if name != "--off" else None, False, "what it is")
             for name in ("--one", "--two", "--off")}
    with tempfile.TemporaryDirectory() as place:
        made.PAGES = place
        Path(place, "part.1.in").write_text("drawn WHEN.\n")
        Path(place, "thing.1.in").write_text("@option --one --two\n@option --off\n.B text\n@include part.1.in a day\n")
        page = made.for_page("thing", made.Known([], {}, {}), known)
        assert page == (".TP\n\\fB\\-\\-one\\fR \\fIN\\fR\n.TQ\n\\fB\\-\\-two\\fR \\fIN\\fR\nWhat it is.\n"
                        ".TP\n\\fB\\-\\-off\\fR\n.B text\ndrawn a day.\n"), page
        Path(place, "thing.1.in").write_text("@option --one\n")
        try:
            made.for_page("thing", made.Known([], {}, {}), known)
            raise AssertionError("a page without two options was made")
        except SystemExit as fault:
            assert "no @option --off --two" in str(fault), fault


def formatters_have_no_complaint() -> None:
    tools = [["man", "-l", "--warnings"], ["groff", "-ww", "-man", "-Tutf8"], ["mandoc", "-Tlint", "-Wwarning"],
             ["groff", "-ww", "-man", "-Tascii", "-rLL=60n"]]
    tools = [tool for tool in tools if shutil.which(tool[0])]
    for page in ("netperf.1", "netserver.1", *(f"{script}.1" for script in SCRIPTS)):
        assert "\n@" not in lib.page(page).read_text(), f"{page}: something is not filled in"
        for tool in tools:
            # A missing locale would cause another warning.
            with lib.Started([*tool, str(lib.page(page))], env={**os.environ, "LC_ALL": "C.UTF-8"}) as one:
                got = one.finish(120)
            assert got.rc == 0 and not got.err, f"{' '.join(tool)} {page}: {got.err}"
            assert tool[0] == "mandoc" or "SEE ALSO" in re.sub(".\b|\033\\[[0-9;]*m", "", got.out), f"{page} is cut short"


# ---- what can be counted, or looked up ----------------------------------------------------------

def text_of(page: str, *names: str) -> str:
    """The words of some sections, separated by single blanks."""
    lines = [plain(line) for line in section(page, *names)]
    words = [re.sub(r'^\.\w+ ?|"', "", line) for line in lines]
    return re.sub(r"\s+([,.;:])", r"\1", " ".join(" ".join(words).split()))


def the_rules_of_explain_use_each_constant() -> None:
    source = (lib.TOP / "src/out/explain/constants.h").read_text()
    defined = re.findall(r"^#define (NP_\w+) +[0-9.]+ +/\*", source, re.M)
    rules = "".join(path.read_text() for path in (lib.TOP / "src/out").glob("explain*/*.c")) + \
        (lib.TOP / "src/out/explain.c").read_text()
    unused = [name for name in defined if not re.search(rf"\b{name}\b", rules)]
    assert len(defined) >= 30 and not unused, f"no rule looks at {unused}"


def the_design_names_all_that_a_transport_is() -> None:
    """Every member of struct np_transport is in the section on adding a transport, and no others."""
    source = (lib.TOP / "src/bench/bench.h").read_text()
    source = source[source.index("\nstruct np_transport {"):]
    row = re.sub(r"/\*.*?\*/", "", source[:source.index("\n};")], flags=re.DOTALL)
    parts = re.findall(r"^\tstruct \{(.*?)^\t\} (\w+);", row, flags=re.MULTILINE | re.DOTALL)
    parts.append((re.sub(r"^\tstruct \{.*?^\t\} \w+;", "", row, flags=re.MULTILINE | re.DOTALL), ""))
    members = set()
    for inside, part in parts:
        values = re.findall(r"^\t+(?:const char|enum \w+|\w+)\s+([*\w, \n\t]+);", inside, flags=re.MULTILINE)
        names = re.findall(r"\(\*(\w+)\)\(", inside) + re.findall(r"\w+", " ".join(values))
        members |= {f"{part}.{name}".lstrip(".") for name in names}
    text = (lib.TOP / "doc/architecture.md").read_text()
    text = text[text.index("**A transport**"):text.index("**A family of addresses**")]
    named = set(re.findall(r"`([a-z][a-z_.]*)`", text))
    assert {"name", "protocol", "kernel.option", "packets.turn_options", "message.too_long_as", "close"} <= members, members
    assert named == members, f"only named: {named - members}; not named: {members - named}"


def the_thresholds_are_those_of_the_code() -> None:
    """doc/evidence.md has each threshold with its value and meaning."""
    pattern = r"^#define (NP_D_\w+) +([0-9.]+) +/\* (.*?) \*/"
    defined = {name: (value, " ".join(words.split())) for name, value, words in
               re.findall(pattern, (lib.TOP / "src/run/disturbed.h").read_text(), re.M | re.S)}
    told = {name: (value, words) for name, value, words in
            re.findall(r"^\| `(NP_D_\w+)` \| (\S+) \| (.*) \|$",
                       (lib.TOP / "doc/evidence.md").read_text(), re.M)}
    assert len(defined) >= 10 and told == defined, (told, defined)


def one_number(pattern: str, text: str) -> int:
    found = re.findall(pattern, text)
    assert len(found) == 1, f"{pattern!r}: {found}"
    return int(found[0])


def preflight_names(daemon: lib.Daemon) -> Set[str]:
    """The names that --preflight prints before colons, for both ends and in an empty namespace."""
    commands = [["-H", "127.0.0.1", "-p", str(daemon.port)], []]
    prefixes = [[], ["unshare", "-n"] if os.geteuid() == 0 else []]
    out = "".join(lib.run([*prefix, lib.netperf(), "--preflight", *command], timeout=20).out
                  for prefix, command in zip(prefixes, commands))
    return set(re.findall(r"^(?:ok|look|warn|unread) +(?:local|remote) +([\w.:-]+): ", out, re.M))


def the_page_has_the_preflight_rules(daemon: lib.Daemon) -> None:
    """The page has exactly the names that are printed, and README states their number."""
    lines = section("netperf.1", "PREFLIGHT")
    from_ = next(i for i, line in enumerate(lines) if "stay as they are:" in line)
    to = next(i for i, line in enumerate(lines) if line.startswith("Rules that do not apply"))
    rules = {plain(line).rstrip(",.") for line in lines[from_ + 1:to] if not line.startswith(".")}
    facts = set(re.findall(r"`(host\.[\w.]+)`", (lib.TOP / "doc/evidence.md").read_text()))
    assert_covered(preflight_names(daemon), rules | facts, 12)
    readme = (lib.TOP / "README.md").read_text()
    assert one_number(r"each of (\d+) rules", readme) == len(rules), sorted(rules)


def what_is_not_there_is_said() -> None:
    """Protocols that netperf has and this version refuses are documented."""
    places = {name: " ".join((lib.TOP / name).read_text().split())
              for name in ("README.md", "doc/DIFFERENCES.md")}
    places["netperf.1"] = text_of("netperf.1", "DIFFERENCES FROM NETPERF")
    for protocol in ("sctp", "dccp", "sdp", "tcp", "udp", "udplite"):
        got = lib.run([lib.netperf(), "-p", str(lib.free_port()), "-t", "OMNI", "--", "-T",
                       protocol], timeout=20)
        missing = "is not in this version" in got.err
        for name, text in places.items():
            said = any(protocol.upper() in words for words in re.findall(
                r"(?:Not there are netperf's tests|Tests) over ([^(.]*(?:\([^)]*\)[^(.]*)*)", text))
            assert said == missing, f"{name} and {protocol}: {said}, {got.err!r}"


def confidence_repeats_as_often_as_the_page_says(daemon: lib.Daemon) -> None:
    """A width of a millionth is never reached: the limit ends the test."""
    text = text_of("netperf.1", "CONFIDENCE")
    most = {("-I", "99,0.000001"): one_number(r"3 to (\d+) times with -I alone", text),
            ("-i", "40,3", "-I", "99,0.000001"): one_number(r"above (\d+) as", text)}
    for options, count in most.items():
        got = lib.run(lib.command(daemon.port, "-t", "TCP_RR", "-l", "-20", "-P", "0", *options, "--", "-k",
                                  "CONFIDENCE_ITERATION"), timeout=PATIENCE)
        assert f"CONFIDENCE_ITERATION={count}\n" in got.out, f"{options}: {got}"


def a_refusal_has_the_status_of_the_page() -> None:
    lines = [plain(line) for line in section("netperf.1", "EXIT STATUS")]
    says = next(i for i, line in enumerate(lines) if "the daemon refused the test" in line)
    status = next(int(line[3:]) for line in reversed(lines[:says])
                  if re.fullmatch(r"\.B \d+", line))
    with lib.Daemon(args=["--max-message", "1000"]) as daemon:
        got = lib.run(lib.command(daemon.port, "-l", "1", "--", "-M", "64K"), timeout=20)
    assert got.rc == status and "--max-message" in got.err, got


def the_example_names_the_unit(daemon: lib.Daemon) -> None:
    """The unit of service demand."""
    unit = re.findall(r"How much processor time a (\w+) costs, in (\w+),",
                      text_of("netperf.1", "EXAMPLES"))
    got = lib.run(lib.command(daemon.port, "-l", "1", "-c", "-C", "--", "-k", "SD_UNITS"), timeout=20)
    short = {"kilobyte": "KB", "megabit": "Mbit", "microseconds": "usec", "milliseconds": "msec"}
    said = [f"SD_UNITS={short[time]}/{short[what]}" for what, time in unit]
    assert said == got.out.split()[-1:], f"{unit}: {got.out}"


def shape(line: str) -> str:
    """A log line with its numbers removed."""
    return re.sub(r"\d+", "#", line.replace("sessions are", "session is"))


def the_page_has_lines_of_the_log() -> None:
    """The lines in the page's section on the log are those that a daemon writes by default."""
    lines = section("netserver.1", "LOG")
    examples = [plain(after) for line, after in zip(lines, lines[1:]) if line == ".EX"]
    assert len(examples) == 1, examples
    with lib.Daemon(args=["--max-sessions", "1"]) as daemon:
        where = lib.command(daemon.port, "-t", "TCP_RR")
        with lib.Started([*where, "-l", "60"]) as first:
            assert first.under_way(60)
            refused = lib.run([*where, "-l", "-1"], timeout=20).err
            first.signal(signal.SIGINT)
            first.finish(PATIENCE)
        written = daemon.log()
    assert "--max-sessions" in refused, refused
    shapes = {shape(line) for line in written.splitlines()}
    for example in examples:
        assert any(one.endswith(shape(example)) for one in shapes), f"{example}: {written}"


# ---- scripts ------------------------------------------------------------------------------------

SCRIPTS = ("netgate", "netlab", "netmesh", "netreport", "netsweep", "netvm")


def scripts_tell_the_version() -> None:
    """Also where they are installed."""
    version = re.findall(r"^Plumbline ([\d.]+)$", (lib.TOP / "NEWS").read_text(), re.M)
    with tempfile.TemporaryDirectory() as place:
        lib.installed(place, *SCRIPTS)
        for script in SCRIPTS:
            for folder in (lib.SCRIPTS, f"{place}/bin"):
                got = lib.run([f"{folder}/{script}", "--version"], timeout=30)
                assert [got.rc, got.out, got.err] == [0, f"{script} (plumbline) {version[0]}\n", ""], got


def pages_have_the_commands_of_scripts() -> None:
    for script, words in (("netlab", "up set check exec status down"), ("netvm", "run shell test")):
        for command in words.split():
            found = re.search(rf"(?m)^\.B[RI]? \"?{script} {command}\b", lib.page(f"{script}.1").read_text())
            assert found, f"{script} {command}"


def a_reader_may_have_enough() -> None:
    """A reader closes its pipe before anything is written, which buffering may hide. Tested with a script's help, a
    plan, a list and a table, as the scripts share the code."""
    env = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
    for script in SCRIPTS:
        assert re.search(r"\n    sys\.exit\((run|run_main)\(main\)\)\n$", (lib.SCRIPTS / script).read_text()), script
    for script, *options in (("netvm", "--help"), ("netsweep", "latency", "--host", "192.0.2.1", "--set", "size=1", "--dry-run"), ("netsweep", "--list"),
                             ("netreport", "--ceiling")):
        reader, writer = os.pipe()
        os.close(reader)
        try:
            got = subprocess.run([str(lib.SCRIPTS / script), *options], stdout=writer,
                                 stderr=subprocess.PIPE, timeout=60, check=False, text=True,
                                 env=env)
        finally:
            os.close(writer)
        assert got.returncode == 0 and not got.stderr, f"{script} {options}: {got}"


def resuming_repeats_a_command() -> None:
    """--resume takes the plan with the same options as the original command."""
    readme = re.findall(r"^    (.*?)(?: +#.*)?$", (lib.TOP / "README.md").read_text(), re.M)
    for where, lines in (("README.md", readme), ("netsweep.1", [
            plain(line) for line in lib.page("netsweep.1").read_text().splitlines()])):
        resumed = [line for line in lines if re.match(r"(?:sudo )?\S*netsweep \S.* --resume$", line)]
        assert resumed, where
        for line in resumed:
            assert line.replace(" --resume", "") in lines, f"{where}: {line}"


def a_dry_run_connects_to_nobody() -> None:
    for words, said in ((["-t", "TCP_RR", "--", "-r", "1,1"], ""), (["-t", "TCP_SENDFILE", "--", "-G", "9"], "-G: ignored"),
                        (["-t", "NONE"], "NONE is not a test"), (["--flows", "0"], "--flows"), (["-l", "1", "x"], "x: ignored"),
                        (["-t", "LOC_CPU", "--flows", "4"], "--flows"), (["--json", "-t", "LOC_CPU"], "measures nothing"),
                        (["--json=/no/such/dir/x"], "/no/such/dir/x"), (["--json"], "")):
        if words[0].startswith("--json") and not lib.has_documents():
            continue
        got = lib.run([lib.netperf(), "-H", "192.0.2.1", "--dry-run", *words], timeout=20)
        assert got.rc == bool(said) and said in got.err and not got.out, (words, got)


def the_help_says_what_the_build_lacks() -> None:
    """Options that the build does not support are marked in the help, and no others."""
    libraries = {"--json": "libjansson", "--key-file": "libsodium",
                 "--wire": "libpcap"}
    config = (BUILD.parent / "config.h").read_text()
    listed = re.sub(r"\n {20,}", " ", lib.run([lib.netperf(), "--help=all"], timeout=20).out)
    for option, library in libraries.items():
        has = f"#define HAVE_{library[3:].upper()} 1" in config
        line = next(line for line in listed.splitlines() if line.startswith(f"  {option}"))
        assert (f"lacks {library}" not in line) == has, line


# ---- all ----------------------------------------------------------------------------------------

def texts() -> "List[Callable[[], None]]":
    """Tests that do not depend on how the programs were built. The slow ones first."""
    return [formatters_have_no_complaint, a_reader_may_have_enough, scripts_tell_the_version, no_range_is_said_twice, the_rules_of_explain_use_each_constant,
            the_design_names_all_that_a_transport_is, the_thresholds_are_those_of_the_code, resuming_repeats_a_command]


def suite(report: lib.Report) -> None:
    if not lib.page("netperf.1").exists():
        lib.skip(f"no {BUILD}/netperf.1: built for another machine, or without Python 3.9")
    report.each((the_page_has_the_global_options, the_page_has_the_test_options,
                 the_page_has_the_tests, the_page_has_the_figures,
                 the_page_has_the_groups_of_the_help,
                 the_short_help_names_real_options, figures_are_a_table_for_people,
                 the_tests_have_protocols, each_test_has_a_row,
                 the_daemons_page_has_its_options, the_tables_of_pages_are_the_codes,
                 what_is_not_there_is_said, a_refusal_has_the_status_of_the_page,
                 the_page_has_lines_of_the_log, a_dry_run_connects_to_nobody, the_help_says_what_the_build_lacks,
                 pages_are_made_of_rows, pages_of_scripts_have_all_options, pages_have_the_commands_of_scripts))
    with lib.Daemon() as daemon:
        report.each((the_page_has_the_preflight_rules, the_example_names_the_unit,
                     confidence_repeats_as_often_as_the_page_says), daemon)
    with ThreadPoolExecutor() as pool:  # most of it is waiting
        list(pool.map(lambda case: report.each([case]), [] if lib.QUICK else texts()))


lib.main(suite)
