"""What the documents refer to exists: files, sections, make targets, and in an installation the pages named by manual
pages. scripts/check-dist also runs it in an unpacked tarball.
"""

import os
import re
import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Dict, List, Sequence, Set, Tuple

import lib

DOC = lib.TOP / "doc"
TEXTS = [lib.TOP / "README.md", lib.TOP / "CONTRIBUTING.md", *sorted(DOC.glob("*.md"))]
BUILD = Path(os.environ.get("top_builddir") or lib.TOP)
COMPILER = "cc"

# How paths in a text begin, and paths that are generated or placeholders.
PATH = re.compile(r"(?<![\w/.-])((?:\.ci|doc|m4|netserver|scripts|src|tests)/[\w./*-]*[\w*]"
                  r"|autogen\.sh)")
MADE = {"src/netperf", "src/netserver", "doc/netperf.1"}
PLACEHOLDER = re.compile(r"NAME|JOB|\*")


def without_code(text: str) -> str:
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^    .*$", "", text, flags=re.M))


def code(text: str) -> str:
    """Code blocks and code spans."""
    spans = [" ".join(span.split()) for span in re.findall(r"`([^`]*)`", text)]
    return "\n".join(re.findall(r"^    .*$", text, re.M) + spans)


def anchors(text: str) -> Set[str]:
    """The anchors that the usual viewers generate from headings."""
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
            for heading in re.findall(r"^#+ +(.*)$", text, re.M)}


def links(path: Path) -> None:
    bad = []
    found = re.findall(r"\]\(([^)\s]+)\)", without_code(path.read_text()))
    for link in found:
        name, _, section = link.partition("#")
        if ":" in name:
            continue  # a URL
        to = path.parent / name if name else path
        if not to.is_file() or (section and section not in anchors(to.read_text())):
            bad.append(link)
    assert not bad, bad


def files(path: Path) -> None:
    """Paths, and pages by their names alone."""
    text = path.read_text()
    bad = [name for name in PATH.findall(text)
           if not PLACEHOLDER.search(name) and name not in MADE
           and not (lib.TOP / name).exists() and not any((lib.TOP / name).parent.glob(
               Path(name).name + ".*"))]
    pages = re.findall(r"(?<![\w/.-])([\w-]+\.md)\b", text)
    bad += [name for name in pages if not (DOC / name).exists() and not (lib.TOP / name).exists()]
    assert not bad, sorted(set(bad))


def targets() -> str:
    """Each make target that is named exists."""
    wanted: Set[str] = set()
    for path in TEXTS[:2]:
        text = re.sub(r" -C +\S+", "", code(path.read_text()))
        for words in re.findall(r"\bmake((?: +[\w=-]+)+)", text):
            wanted |= {word for word in words.split() if re.fullmatch(r"[a-z][a-z-]+", word)}
    assert {"check", "bench", "check-links", "check-long", "install"} <= wanted, wanted
    env = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
    with lib.Started(["make", "-n", "-C", str(BUILD), *sorted(wanted)], env=env) as make:
        got = make.finish(120)
    assert got.rc == 0, got.err[-500:]
    return " ".join(sorted(wanted))


def suites_run() -> str:
    """Each suite is run by a make target or a CI job."""
    here = Path(__file__).parent
    lists = [(lib.TOP / name).read_text() for name in ("tests/local.mk", "scripts/ci")]
    runs = set(re.findall(r"e2e/(\w+)\.py", "".join(lists)))
    known = re.search(r"^SUITES = \((.*?)\)", (here / "together.py").read_text(), re.M | re.S)
    assert known and len(runs) > 20, (known, runs)
    runs |= set(re.findall(r'"(\w+)"', known[1]))
    files = {path.stem for path in here.glob("*.py")}
    suites = {name for name in files - {"lib"} if "lib.main(" in (here / f"{name}.py").read_text()}
    assert not runs - files and not suites - runs, (runs - files, suites - runs)
    return f"{len(suites)} suites"


def installed() -> List[Path]:
    """The documents that make install installs."""
    found = re.search(r"^dist_doc_DATA =((?:.*\\\n)*.*)$", (DOC / "local.mk").read_text(), re.M)
    assert found, "no dist_doc_DATA in doc/local.mk"
    return [lib.TOP / name.replace("%D%", "doc") for name in found[1].replace("\\\n", " ").split()]


def pages_are_installed() -> None:
    """Pages named by installed manual pages, units and scripts are installed."""
    have = installed()
    lacking: Dict[str, str] = {}
    others = [path for pattern in ("doc/*.1.in", "doc/systemd/*", "scripts/net*",
                                   "scripts/netkit/*.py", "scripts/plans/*")
              for path in lib.TOP.glob(pattern) if path.is_file()]
    assert len(others) > 20, others
    for path in others:
        for name in re.findall(r"\bdoc/([\w.-]+\.(?:md|json))", path.read_text()):
            if DOC / name not in have:
                lacking[name] = path.name
    for path in have:
        for name in re.findall(r"\]\(([\w.-]+)\)|(?<![\w/.-])([\w-]+\.md)\b", path.read_text()):
            page = "".join(name)
            if DOC / page not in have and not (lib.TOP / page).exists():
                lacking[page] = path.name
    assert not lacking, f"not installed, by where it is named: {lacking}"


# Texts that use a word from scripts/words/own.tsv, some of them only in code.
LET = "let"  # so that this file does not use it
WORDS = {"a.md": ("It is let\npass.", 1), "b.md": (f"    {LET} pass\n`{LET} pass`", 0),
         "a.1": ("It is let\npass.", 1), "b.1": (f".EX\n{LET} pass\n.EE\n.B {LET} pass", 0),
         "a.c": ("/*\n * It is let\n * pass.\n */", 1), "b.c": (f'f("{LET} pass");', 1),
         "c.c": (f"x = {LET} pass; /* it */", 0), "d.c": ("x->lent = lent(y.lent);", 0),
         "a": ("true # it is let\n# pass", 1), "b": (f"{LET} pass", 0)}


def words_are_found() -> None:
    """scripts/check-words finds them in texts, comments and strings, and nowhere else."""
    with tempfile.TemporaryDirectory() as place:
        for name, (text, found) in WORDS.items():
            (Path(place) / name).write_text(text)
        got = lib.run([str(lib.TOP / "scripts/check-words"), *(f"{place}/{name}" for name in WORDS)], timeout=60)
    lines = sorted(Path(line.split(":")[0]).name for line in got.out.splitlines())
    assert got.rc == 1 and lines == sorted(name for name, (_, found) in WORDS.items() if found), got


# Files that define a function of their own name and call others: a, b and c are a circle, d leads into it; base may
# not use sys, and sys may use base; the table of engines and a row may use each other.
CALLS = {"src/base/a.c": "b", "src/base/b.c": "c", "src/base/c.c": "a", "src/base/d.c": "a", "src/base/e.c": "f",
         "src/sys/f.c": "d"}
FOUND = ["src/base/a.c: in a circle: uses b of src/base/b.c",
         "src/base/b.c: in a circle: uses c of src/base/c.c",
         "src/base/c.c: in a circle: uses a of src/base/a.c",
         "src/base/e.c: base/ may not use f of src/sys/f.c"]


def circles_are_found() -> None:
    """scripts/check-layers finds them in object files, as well as uses of an upper directory; without object files it
    says that it can't."""
    with tempfile.TemporaryDirectory() as place:
        for name, calls in CALLS.items():
            path = Path(place) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"void {calls}(void);\nvoid {path.stem}(void) {{ {calls}(); }}\n")
        for folder in ("scripts", "netserver"):
            (Path(place) / folder).mkdir()
        script = shutil.copy(lib.TOP / "scripts/check-layers", f"{place}/scripts")
        got = lib.run([script, place], timeout=60)
        assert got.rc == 0 and "only includes are checked" in got.out, got
        for name in CALLS:
            got = lib.run([COMPILER, "-c", "-o", f"{place}/{name[:-1]}o", f"{place}/{name}"], timeout=60)
            assert got.rc == 0, got
        got = lib.run([script, place], timeout=60)
    assert got.rc == 1 and got.out.splitlines() == FOUND, got


# A suite of unittest, and another one.
SUITES = {"units": "import unittest\n\n\nclass Case(unittest.TestCase):\n    def test_good(self): pass\n"
                   "    def test_bad(self): self.fail()\n\n\nunittest.main(verbosity=2)\n",
          "lines": "print('FAIL one')\nraise SystemExit(1)\n"}


def what_failed_is_repeated() -> None:
    """By tests/e2e/together.py: the failed tests of a unittest suite, or the whole suite otherwise."""
    with tempfile.TemporaryDirectory() as place:
        runner = shutil.copy(lib.TOP / "tests/e2e/together.py", place)
        for name, text in SUITES.items():
            Path(place, f"{name}.py").write_text(text)
        env = {**os.environ, "NP_TEST_E2E": " ".join(SUITES)}
        for only, tests in (("", 2), ("units:Case.test_bad lines", 1)):
            failures = Path(place, f"failed {tests}")
            failures.mkdir()
            with lib.Started([sys.executable, runner], env={**env, "NP_ONLY": only, "NP_FAILURES": str(failures)}) as started:
                got = started.finish(60)
            assert got.rc == 1 and f"Ran {tests} test" in got.out and "FAIL one" in got.out, got
            assert {path.name for path in failures.iterdir()} == {"units:Case.test_bad", "lines"}, got


def wrong_calls_are_refused() -> None:
    """Scripts that make a release refuse invalid arguments before anything is made."""
    with tempfile.TemporaryDirectory() as place:
        out = f"{place}/out"
        for words in (["static"], ["static", "--libc", "other", out], ["static", "--help"], ["release"],
                      ["release", "--quick", out, out], ["release", "--help"], ["version", "--other"]):
            got = lib.run(["sh", str(lib.SCRIPTS / words[0]), *words[1:]], timeout=60)
            assert got.rc == 2 and got.err.startswith(f"usage: {words[0]} ") and not got.out, (words, got)
        assert not Path(out).exists(), out


def named_tests(cell: str) -> "List[Tuple[str, str]]":
    """Split a cell "attacks.py `a`, `b`; test_guard `c`" into file and test."""
    return [(name, test) for name, tests in re.findall(r"((?:vm/)?\w+\.py|test_\w+)((?:,? `[^`]+`)+)", cell)
            for test in re.findall(r"`([^`]+)`", tests)]


def is_there(name: str, test: str) -> bool:
    tests = lib.TOP / "tests"
    path = tests / f"unit/{name}.c" if name.startswith("test_") else tests / name if "/" in name else tests / "e2e" / name
    defined = rf"\bTEST(_WITH)?\({test}\b" if name.startswith("test_") else re.escape(f'"{test}"')
    return path.exists() and bool(re.search(defined, path.read_text()))


def shared_lacks(text: str, resources: "Sequence[str]") -> "List[str]":
    """Errors in the tables of doc/security.md that begin with "shared": a row without a test, or a resource without a
    row."""
    tables = re.findall(r"^\| shared.*the test that fills it \|\n\|[-|: ]+\|\n((?:\|.*\n)+)", text, re.M)
    rows = [line for table in tables for line in table.splitlines()]
    bad = [f"no test: {row}" for row in rows if not named_tests(row.split("|")[-2])]
    bad += [f"{name} has no {test}" for row in rows for name, test in named_tests(row.split("|")[-2]) if not is_there(name, test)]
    return bad + [f"no row: {option}" for option in resources if sum(f"`{option}`" in row for row in rows) != resources.count(option)]


def shared_things_have_tests() -> str:
    """Each resource in netserver/guard.c has a row, and each row names an existing test."""
    table = re.search(r"^const struct ns_resource ns_resources.*?^};", (lib.TOP / "netserver/guard.c").read_text(), re.M | re.S)
    assert table
    resources = re.findall(r'"(--[\w-]+)"', table[0])
    assert len(resources) == len(re.findall(r"\[NP_RES_\w+\] =", table[0])) > 5, resources
    text = (DOC / "security.md").read_text()
    assert not shared_lacks(text, resources), shared_lacks(text, resources)
    # Errors that it must find.
    assert shared_lacks(text, [*resources, "--max-of-another"]) == ["no row: --max-of-another"]
    assert len(shared_lacks(text.replace("attacks.py `tests that take all threads`", ""), resources)) == 1
    assert len(shared_lacks(text.replace("`tests that take all threads`", "`another`"), resources)) == 1
    return f"{len(resources)} resources"


def suite(report: lib.Report) -> None:
    for path in TEXTS:
        report.case(f"links of {path.name}", partial(links, path))
        report.case(f"files of {path.name}", partial(files, path))
    made = shutil.which("make") and (BUILD / "Makefile").exists()
    report.case("targets", targets, unless="" if made else f"no make, or no {BUILD}/Makefile")
    report.each((suites_run, pages_are_installed, shared_things_have_tests, words_are_found))
    compiles = shutil.which(COMPILER) and shutil.which("nm")
    report.case("circles are found", circles_are_found, unless="" if compiles else f"no {COMPILER}, or no nm")
    report.each((what_failed_is_repeated, wrong_calls_are_refused))


if __name__ == "__main__":
    lib.main(suite)
