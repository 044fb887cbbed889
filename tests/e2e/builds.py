"""How other programs build netperf for themselves: the configure options that they use, and where they look for the
result. Unknown --enable options must do no harm.
"""

import os
import re
import shutil
import tempfile
from functools import partial
from pathlib import Path
from typing import NamedTuple

import lib


class Build(NamedTuple):
    name: str
    options: str
    cflags: str = ""


BUILDS = (
    Build("PKB", "--enable-burst --enable-demo --enable-histogram --enable-sctp "
          "--enable-intervals", "-fcommon -DHIST_NUM_OF_BUCKET=100 -O0"),     # without optimisation, which PKB leaves to configure: half the time
    Build("tp-qemu", "--enable-burst --enable-demo=yes --enable-intervals=yes"),
    Build("lkp-tests", "--enable-demo --enable-unixdomain --enable-sctp --enable-dccp "
          "--enable-burst", "-fcommon"),
)


ENV = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}


def files() -> "list[str]":
    """The files of the source tree, without build products."""
    return lib.must(["git", "-C", str(lib.TOP), "ls-files", "-co", "--exclude-standard"], 20).splitlines()


def copy_tree(place: Path) -> None:
    for name in files():
        source = lib.TOP / name
        if source.is_file():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, place / name)


def step(place: Path, env: "dict[str, str]", *command: str) -> None:
    with lib.Started(command, cwd=place, env=env) as started:
        got = started.finish(400)
    assert got.rc == 0, f"{' '.join(command)}: status {got.rc}: {got.err[-1000:]}"


def settings(tree: Path) -> str:
    """What configure decided, except for what the client sets itself: the prefix and CFLAGS."""
    made = (tree / "Makefile").read_text()
    return re.sub(r"(?m)^(prefix|CFLAGS) = .*\n", "", made) + (tree / "config.h").read_text()


def build(tree: Path, how: Build, before: str) -> str:
    """Run configure, make and make install, as clients do after autogen.sh. `before` is what configure decided for
    the previous client: other options must change nothing, so that make reuses its objects."""
    env = {**ENV, "CFLAGS": how.cflags} if how.cflags else ENV
    with tempfile.TemporaryDirectory() as name:
        step(tree, env, "sh", "configure", f"--prefix={name}/usr", *how.options.split())
        assert before in ("", settings(tree)), f"{how.options}: configure decides otherwise than for {BUILDS[0].name}"
        step(tree, env, "make", "-j2")
        step(tree, env, "make", "install")
        programs = [tree / "src" / "netperf", tree / "src" / "netserver",
                    Path(name, "usr/bin/netperf"), Path(name, "usr/bin/netserver")]
        for program in programs:
            got = lib.run([str(program), "-V"], 5)
            assert got.rc == 0 and re.match(r"Netperf version 2\.7", got.out), f"{program}: {got}"
        with lib.Daemon(program=str(programs[1])) as daemon:
            got = lib.run([str(programs[0]), "-H", "127.0.0.1", "-p", str(daemon.port),
                           "-l", "1"], 20)
            assert got.rc == 0 and not got.err, got
        step(tree, env, "make", "uninstall")
        left = [str(path) for path in Path(name).rglob("*") if not path.is_dir() or "plumbline" in path.name]
        assert not left, f"make uninstall leaves {left}"
        return how.options


def suite(report: lib.Report) -> None:
    if not (lib.TOP / ".git").exists() or not shutil.which("autoconf"):
        lib.skip("no git tree, or no autoconf")
    with tempfile.TemporaryDirectory() as name:
        tree = Path(name, "netperf")
        copy_tree(tree)
        step(tree, ENV, "sh", "autogen.sh")
        before = ""
        for how in BUILDS:
            if not report.case(how.name, partial(build, tree, how, before)):
                break
            before = settings(tree)


if __name__ == "__main__":
    lib.main(suite)
