"""scripts/version: the version of a tree from its tags, its commits or its tarball; and versions that are written by
hand agree.
"""

import os
import re
import shutil
import tempfile
from functools import partial
from pathlib import Path
from typing import Callable

import lib

# Without the user's name and git settings.
CLEAN = {**{key: value for key, value in os.environ.items() if not key.startswith("GIT_")},
         "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
for who in "AUTHOR", "COMMITTER":
    CLEAN.update({f"GIT_{who}_NAME": "A", f"GIT_{who}_EMAIL": "a@example.org", f"GIT_{who}_DATE": "@1700000000 +0000"})
CLEAN.pop("SOURCE_DATE_EPOCH", None)


def command(*words: str, **env: str) -> str:
    with lib.Started(words, env={**CLEAN, **env}) as started:
        got = started.finish(60)
    assert got.rc == 0, f"{' '.join(words)}: {got}"
    return got.out.strip()


class Tree:
    """A source tree with its scripts/version and a NEWS of version 0.9.1."""

    def __init__(self, place: Path) -> None:
        self.place = place
        (place / "scripts").mkdir(parents=True)
        shutil.copy(lib.SCRIPTS / "version", place / "scripts")
        (place / "NEWS").write_text("What changes\n\nPlumbline 0.9.1\n\n* New\n\nPlumbline 0.9.0\n\n* Old\n")

    def git(self, *words: str) -> str:
        return command("git", "-C", str(self.place), *words)

    def commit(self) -> None:
        if not (self.place / ".git").exists():
            self.git("init", "-q")
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "A change")

    def version(self, *words: str, **env: str) -> str:
        return command("sh", str(self.place / "scripts" / "version"), *words, **env)


def without_tags(tree: Tree) -> str:
    tree.commit()
    assert tree.version() == "0.9.1+1", tree.version()
    tree.commit()
    tree.commit()
    assert tree.version() == "0.9.1+3", tree.version()
    assert tree.version("--release") == "0.9.1"
    assert tree.version("--epoch") == "1700000000"
    assert tree.version("--epoch", SOURCE_DATE_EPOCH="12345") == "12345"
    return tree.version()


def with_tags(tree: Tree) -> str:
    tree.commit()
    tree.git("tag", "v1.2.3")
    assert tree.version() == "1.2.3", tree.version()
    tree.git("tag", "beautiful")
    tree.commit()
    tree.commit()
    assert tree.version() == "1.2.3+2", tree.version()
    tree.git("tag", "-a", "v1.3.0", "-m", "Plumbline 1.3.0")
    assert tree.version() == "1.3.0", tree.version()
    return "1.2.3, 1.2.3+2, 1.3.0"


def shallow(tree: Tree) -> str:
    """The number of commits is unknown, and is not invented."""
    tree.commit()
    tree.commit()
    clone = tree.place.with_name("clone")
    command("git", "clone", "-q", "--depth", "1", f"file://{tree.place}", str(clone))
    got = command("sh", str(clone / "scripts" / "version"))
    assert re.fullmatch(r"0\.9\.1\+g[0-9a-f]{10}", got), got
    return got


def without_git(tree: Tree) -> str:
    assert tree.version() == "0.9.1+unknown", tree.version()
    (tree.place / ".tarball-version").write_text("0.9.1+7\n")
    os.utime(tree.place / ".tarball-version", (1600000000, 1600000000))
    assert tree.version() == "0.9.1+7", tree.version()
    assert tree.version("--epoch") == "1600000000"
    return tree.version()


def written_by_hand() -> str:
    """In the places that scripts/release checks: a change to NEWS alone is reported here already."""
    want = command("sh", str(lib.SCRIPTS / "version"), "--release")
    for path, pattern in (("debian/changelog", r"\Aplumbline \(([\d.]+)-\d+\)"),
                          ("packaging/plumbline.spec", r"global plumbline_version ([\d.]+)\}"),
                          ("packaging/plumbline.spec", r"%changelog\n\*.* - ([\d.]+)-\d+\n"),
                          ("scripts/netkit/__init__.py", r'(?m)^VERSION = "([\d.]+)"')):
        found = re.search(pattern, (lib.TOP / path).read_text())
        assert found and found[1] == want, f"{path}: {found and found[1]}, NEWS: {want}"
    return want


def suite(report: lib.Report) -> None:
    cases: "tuple[Callable[[Tree], str], ...]" = (without_tags, with_tags, shallow, without_git)
    with tempfile.TemporaryDirectory() as place:
        for case in cases:
            needed = case is not without_git
            report.case(case.__name__.replace("_", " "), partial(case, Tree(Path(place, case.__name__, "tree"))),
                        unless="no git" if needed and not shutil.which("git") else "")
    report.case("written by hand", written_by_hand)


if __name__ == "__main__":
    lib.main(suite)
